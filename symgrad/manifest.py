"""The files of a generated package, and its manifest.

In: requests, plans and reports.  Out: the package's files.

The manifest is a certificate.  It states the verdict with its conditions, the versions that the
proof rests on, and digests of the source, of the traced forward and backward, and of the normal
forms of both sides of each gradient.  ``symgrad verify --certificate`` proves the package again and
compares.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symgrad.codegen.wrapper import render_package
from symgrad.emission import EmittedOp, fallback
from symgrad.frontend.request import Request
from symgrad.frontend.spec import TensorSpec
from symgrad.ir.function import FunctionGraphs
from symgrad.ir.printer import function_text
from symgrad.kernels import OpPlan
from symgrad.plain_values import stated
from symgrad.proof.digests import Sides, backward_digest, forward_digest, normal_forms
from symgrad.proof.report.records import Condition
from symgrad.proof.report.rendering import supposing
from symgrad.runtime.digests import programs_name
from symgrad.runtime.libraries import MANIFEST
from symgrad.runtime.package import PackagedOp, package_files, text_digest

if TYPE_CHECKING:
    from symgrad.proof.report.records import Report
    from symgrad.validation import Validation


def proof_line(report: Report, *, replaced: bool = False) -> str:
    """The verdict in one line, for the top of the C.

    ``replaced``: the kernels compute the derivative, which the backward that was judged equals.
    """
    inferred = report.inferred and f" {report.inferred}"
    instead = " The kernels compute the derivative in its place." if replaced else ""
    under = _under(report.conditions, report.quantified)
    return f"Backward {report.stated}{under}.{inferred}{instead}"


def _under(conditions: Iterable[Condition], quantified: Sequence[str]) -> str:
    """The conditions in words, but for those that stand where values are quantified."""
    said = " ".join(quantified)
    return supposing([one for one in conditions if one.kind != "declared" or one.text not in said])


def proved(said: Mapping[str, Any]) -> str:
    """The verdict of a record, with all that it holds for and under."""
    proof = said["proof"]
    found = [one for gradient in proof["gradients"].values() for one in gradient["conditions"]]
    conditions = dict.fromkeys(Condition(one["kind"], one["text"]) for one in found)
    quantified = proof.get("quantified", ())
    given = stated(proof["values"].items(), [*quantified, *proof["presences"]])
    return f"{proof['verdict']}{given}{_under(conditions, quantified)}"


def shown(said: Mapping[str, Any]) -> str:
    """What of the C and the wrapper of a record is validated."""
    if "validation" not in said:
        return "not validated: it was not asked for"
    found = {**said["validation"]["kernels"], "its wrapper": said["validation"]["wrapper"]}
    failed = [name for name, one in found.items() if one["verdict"] != "VALIDATED"]
    return f"NOT VALIDATED: {', '.join(failed)}" if failed else "VALIDATED"


def packaged(
    ops: Sequence[PackagedOp], folder: Path | None = None
) -> dict[str, str]:  # fmt: skip
    """Every file of the package by its path; the same bytes for the same input.

    ``folder``: where an older package may be.  Where only the versions in its manifest would
    change, the older ones stay.
    """
    init = render_package([op.stem for op in ops])
    files = package_files(ops, init, facts_of(versions()))
    before = _manifest(folder) if folder is not None else None
    if before is not None and before != files[MANIFEST]:
        old = json.loads(before)
        kept = package_files(ops, init, {name: old[name] for name in VERSIONS if name in old})
        if kept[MANIFEST] == before:
            return kept
    return files


VERSIONS = ("symgrad", "versions")
_PACKAGES = ("symgrad", "sympy", "mpmath", "numpy", "islpy", "pycparser")


def versions() -> dict[str, str]:
    """The versions of symgrad, of Python and of the libraries that proofs rely on."""
    found = {name: version(name) for name in _PACKAGES}
    return {**found, "python": platform.python_version()}


def facts_of(known: Mapping[str, str]) -> dict[str, Any]:
    """The statements about the whole package."""
    return {"symgrad": known["symgrad"], "versions": dict(known)}


def _manifest(folder: Path) -> str | None:
    """The manifest in a folder; None where there is no readable one."""
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
        return text if isinstance(json.loads(text), dict) else None
    except (OSError, ValueError, RecursionError):
        return None


def record(
    request: Request, plan: OpPlan, report: Report, root: Path | None = None
) -> dict[str, Any]:
    """The statements about one op."""
    graphs = plan.judged or plan.traced
    return {
        "function": graphs.name,
        "file": _relative(graphs.location.file, root) if graphs.location else None,
        "inputs": {
            name: " or ".join(dict.fromkeys(str(case.inputs[place].type) for case in graphs.cases))
            for place, name in enumerate(graphs.input_names)
        },
        "specs": _specs(request),
        "static": {name: repr(value) for name, value in request.static},
        "assume": _assume(request),
        **({"prefer": "derived"} if plan.judged else {}),
        "source_sha256": text_digest(graphs.source),
        "graph_sha256": text_digest(function_text(graphs)),
        "forward_sha256": forward_digest(graphs),
        "backward_sha256": backward_digest(graphs),
        "proof": _proof(graphs, report),
    }


def _proof(graphs: FunctionGraphs, report: Report) -> dict[str, Any]:
    """The verdict; each gradient with the normal forms of its two sides."""
    sides = normal_forms(graphs)
    nothing = Sides(None, None)
    return {
        "verdict": str(report.verdict),
        "values": dict(report.values),
        "presences": list(report.presences),
        **({"quantified": list(report.quantified)} if report.quantified else {}),
        "derived": report.derived,
        "domain": report.domain,
        "gradients": {
            name: {
                "verdict": str(found.verdict),
                "conditions": [condition.to_dict() for condition in found.conditions],
                "hand_written_sha256": sides.get(name, nothing).hand,
                "true_sha256": sides.get(name, nothing).true,
            }
            for name, found in report.inputs.items()
        },
        "protocol": {finding.name: str(finding.verdict) for finding in report.protocol},
    }


def packaged_op(
    request: Request, plan: OpPlan, report: Report, emitted: EmittedOp,
    validation: Validation | None = None, root: Path | None = None, *, on_numpy: bool = True,
) -> PackagedOp:  # fmt: skip
    """The files of one op, and the statements about it.

    ``root``: its source file is named relative to it.  ``on_numpy``: with its programs for NumPy.
    """
    said = record(request, plan, report, root)
    if validation is not None:
        said["validation"] = validation.to_dict()
    texts = dict(emitted.texts)
    programs = fallback(plan, "._runtime") if on_numpy else None
    if programs is not None:
        texts[f"{programs_name(plan.name)}.py"] = programs
    return PackagedOp(plan.name, emitted.wrapper("._runtime"), texts, said)


def _specs(request: Request) -> Any:
    """The stated shapes, or the inferred ones by name; None where annotations state them."""
    if isinstance(request.specs, Mapping):
        return {name: _text(spec) for name, spec in request.specs.items()}
    return [_text(spec) for spec in request.specs] or None


def _text(spec: Any) -> Any:
    return str(spec) if isinstance(spec, TensorSpec) else spec


def _assume(request: Request) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for one in request.assumptions:
        found.setdefault(one.name, []).append(one.text)
    return {name: ", ".join(texts) for name, texts in found.items()}


def _relative(file: str, root: Path | None) -> str:
    path = Path(file)
    if root is not None and path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    return path.name
