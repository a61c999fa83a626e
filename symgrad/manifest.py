"""What a generated package holds, and what its manifest says of each op.

In: plans and reports.  Out: the package's files.  Imports: ``symgrad.emission``,
``symgrad.runtime.package``, ``symgrad.codegen``, ``symgrad.kernels``.

The manifest holds digests of the source and of the traced graphs, the verdict with its
conditions, and the versions that had a say: enough to prove the package again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symgrad.codegen.wrapper import render_package
from symgrad.emission import emit
from symgrad.ir.printer import graph_text
from symgrad.kernels import OpPlan
from symgrad.runtime.package import PackagedOp, package_files

if TYPE_CHECKING:
    from symgrad.proof.report import Report


def proof_line(report: Report) -> str:
    """What was proved, in one line, for the top of the C."""
    conditions = "; ".join(str(condition) for condition in report.conditions)
    under = f", under: {conditions}" if conditions else ""
    return f"Backward {report.verdict}{under}."


def packaged(ops: Sequence[tuple[OpPlan, Report]], root: Path | None = None) -> dict[str, str]:
    """Every file of the package by its path; the same bytes for the same input.

    ``root``: source files are named relative to it.
    """
    found = [_op(plan, report, root) for plan, report in ops]
    facts = {"symgrad": version("symgrad")}
    return package_files(found, render_package([op.stem for op in found]), facts)


def record(plan: OpPlan, report: Report, root: Path | None = None) -> dict[str, Any]:
    """What the manifest says of one op."""
    graphs = plan.graphs
    return {
        "function": graphs.name,
        "file": _relative(graphs.location.file, root) if graphs.location else None,
        "inputs": {
            name: str(node.type)
            for name, node in zip(graphs.input_names, graphs.cases[0].inputs, strict=True)
        },
        "static": {name: repr(value) for name, value in graphs.static},
        "source_sha256": _digest(graphs.source),
        "graph_sha256": _digest("".join(graph_text(case.graph) for case in graphs.cases)),
        "proof": {
            "verdict": str(report.verdict),
            "gradients": {
                name: {
                    "verdict": str(found.verdict),
                    "conditions": [str(condition) for condition in found.conditions],
                }
                for name, found in report.inputs.items()
            },
        },
    }


def _op(plan: OpPlan, report: Report, root: Path | None) -> PackagedOp:
    emitted = emit(plan, proof_line(report))
    return PackagedOp(
        plan.name, emitted.wrapper("._runtime"), emitted.texts, record(plan, report, root)
    )


def _relative(file: str, root: Path | None) -> str:
    path = Path(file)
    if root is not None and path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    return path.name


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
