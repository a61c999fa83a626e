"""Verdicts as files that other programs read: SARIF 2.1.0 and JUnit XML.

In: ``Judged`` records, or those of a scan.  Out: text, and ``write``, which replaces a file
atomically.

SARIF (https://docs.oasis-open.org/sarif/sarif/v2.1.0/) holds one result for each Function that is
not PROVED, at the line of its backward, and a note for each that is PROVED under conditions.
JUnit holds one test case a Function.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from xml.etree import ElementTree

from symgrad.errors import Location, SpecError, SymgradError
from symgrad.proof.report.rendering import worded
from symgrad.runtime.package import replace_file
from symgrad.tools.importing import OWN_MODULES

if TYPE_CHECKING:
    from symgrad.proof.report.records import Report

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FENCE = re.compile("`{3,}")
_RULES = {
    "REFUTED": (
        "refuted", "RefutedBackward", "error",
        "The hand-written backward is not the vector-Jacobian product of forward.",
        "At the point that the report shows, the difference quotient of forward and its symbolic "
        "derivative agree with each other and contradict the backward.",
    ),
    "SURROGATE?": (
        "surrogate", "UndeclaredSurrogate", "warning",
        "The hand-written backward is meant to be another function's, as it seems.",
        "It is not the vector-Jacobian product of forward. Declare what it is the derivative of.",
    ),
    "UNDECIDED": (
        "undecided", "UndecidedBackward", "warning",
        "The hand-written backward was neither proved nor refuted.",
        "symgrad found neither a proof nor a point at which the gradients differ.",
    ),
    "ERROR": (
        "error", "UnreadableFunction", "error",
        "The Function could not be traced.",
        "Its backward was not judged; the message says what to do.",
    ),
    "PROVED": (
        "conditional", "ConditionalProof", "note",
        "The hand-written backward is PROVED, but under conditions.",
        "Where a condition does not hold, nothing was proved of it.",
    ),
}  # fmt: skip


class Outcome(Protocol):
    """What is known of one class: ``Judged``, or what a scan has of it."""

    @property
    def name(self) -> str:
        """The name of the class."""

    @property
    def module(self) -> str:
        """The name of its module."""

    @property
    def verdict(self) -> str:
        """PROVED, REFUTED ..., ERROR, or IGNORED."""

    @property
    def passes(self) -> bool:
        """Is it what is expected?"""

    @property
    def expectation(self) -> str:
        """What a file declares of the verdict."""

    @property
    def report(self) -> Report | None:
        """The report."""

    @property
    def error(self) -> SymgradError | None:
        """Why there is none."""

    @property
    def seconds(self) -> float:
        """Processor time of judging it, without the import of its module."""

    @property
    def given(self) -> str:
        """The plain arguments that the verdict holds for."""

    @property
    def derived(self) -> bool:
        """Was a derived backward judged?"""

    @property
    def blamed(self) -> Location | None:
        """The line of the wrong backward, or of the class."""

    @property
    def text(self) -> str:
        """The report, or the error, as text."""


def write(path: Path, text: str) -> None:
    """Write a file atomically.  Raises SpecError where that fails."""
    try:
        replace_file(path, text)
    except OSError as error:
        raise SpecError(f"{path} cannot be written: {error.strerror or error}") from error


def short_reason(one: Outcome) -> str:
    """One line: which gradients are not PROVED, and why; those that decide the verdict first."""
    if one.report is None:
        return f"{one.name}: {one.error.what if one.error else 'not judged'}".splitlines()[0]
    parts = []
    for name, found in one.report.inputs.items():
        if str(found.verdict) == "PROVED":
            continue
        said = found.diagnosis[0] if found.diagnosis else found.reason
        said = f"backward {found.surrogate}" if found.surrogate else said
        if found.counterexample is not None:
            said = "; ".join(part for part in (said, str(found.counterexample)) if part)
        text = f"the gradient of {name} is {found.verdict}{': ' if said else ''}{said}"
        parts.append((found.verdict, text))
    if not parts and str(one.report.verdict) == "PROVED":
        return f"{one.name}{one.given}: PROVED {'; '.join(_unwritten(one))}".replace("\n", " ")
    parts += [
        (finding.verdict, f"{finding.name} is {finding.verdict}"
         f"{': ' if finding.text else ''}{finding.text}")
        for finding in one.report.protocol if str(finding.verdict) != "PROVED"
    ]  # fmt: skip
    parts.sort(key=lambda part: part[0], reverse=True)
    return f"{one.name}{one.given}: {'; '.join(text for _, text in parts)}".replace("\n", " ")


# -- SARIF


def sarif(
    judged: Sequence[Outcome], root: Path, incomplete: str = "", status: int | None = None
) -> str:
    """A SARIF log; files below ``root`` are named relative to it.

    ``incomplete``: what is missing, where not all was judged; then ``status`` is the exit status.
    """
    run = {
        "tool": {
            "driver": {
                "name": "symgrad",
                "semanticVersion": _semantic(version("symgrad")),
                "version": version("symgrad"),
                "rules": [_rule(*rule) for rule in _RULES.values()],
            }
        },
        "originalUriBaseIds": {"SRCROOT": {"uri": f"{root.resolve().as_uri()}/"}},
        "columnKind": "utf16CodeUnits",
        "properties": {
            "judged": [
                {
                    "function": one.name,
                    "verdict": one.verdict,
                    "values": _values(one),
                    "derived": one.derived,
                    "conditions": _conditions(one),
                }
                for one in judged
            ]
        },
        "results": [_result(one, root.resolve()) for one in judged if _is_told(one)],
    }
    if incomplete:
        told = {"level": "error", "message": {"text": incomplete}}
        run["invocations"] = [
            {"executionSuccessful": False, "exitCode": status, "toolExecutionNotifications": [told]}
        ]
    log = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _is_told(one: Outcome) -> bool:
    return not one.passes or (one.verdict == "PROVED" and bool(_unwritten(one)))


def _unwritten(one: Outcome) -> list[str]:
    """The conditions that nobody declared."""
    if one.report is None:
        return []
    found = [worded(each) for each in one.report.conditions if each.kind != "declared"]
    return [*found, *one.report.limits]


def _semantic(text: str) -> str:
    """``0.1.0.dev0`` as semantic versioning writes it."""
    match = re.match(r"(\d+\.\d+\.\d+)\.?(.*)", text)
    if match is None:
        return "0.0.0"
    return f"{match[1]}-{match[2].replace('+', '.')}" if match[2] else match[1]


def _rule(name: str, title: str, level: str, short: str, full: str) -> dict[str, Any]:
    return {
        "id": f"symgrad/{name}",
        "name": title,
        "shortDescription": {"text": short},
        "fullDescription": {"text": full},
        "help": {"text": f"{short} {full}"},
        "defaultConfiguration": {"level": level},
    }


def _result(one: Outcome, root: Path) -> dict[str, Any]:
    name, _, level, _, _ = _RULES[one.verdict]
    found: dict[str, Any] = {
        "ruleId": f"symgrad/{name}",
        "ruleIndex": list(_RULES).index(one.verdict),
        "level": level,
        "kind": "fail",
        "message": {"text": short_reason(one), "markdown": _fenced(one.text)},
        "properties": {
            "function": one.name,
            "verdict": one.verdict,
            "values": _values(one),
            "conditions": _conditions(one),
            "report": one.text,
        },
    }
    location = one.blamed
    if location is not None:
        physical: dict[str, Any] = {"artifactLocation": _artifact(location.file, root)}
        if location.line > 0:
            physical["region"] = {"startLine": location.line}
            columns = location.characters("utf-16-le")
            if columns is not None:
                first, last = columns
                physical["region"] |= {"startColumn": first + 1, "endColumn": last + 1}
        logical = {"fullyQualifiedName": one.name, "name": one.name, "kind": "type"}
        found["locations"] = [{"physicalLocation": physical, "logicalLocations": [logical]}]
    return found


def _fenced(text: str) -> str:
    """A block of code in Markdown; its fence is longer than any in the text."""
    fence = "`" * (1 + max(map(len, _FENCE.findall(text)), default=2))
    return f"{fence}text\n{text}\n{fence}"


def _artifact(file: str, root: Path) -> dict[str, str]:
    path = Path(file)
    if not path.is_absolute():
        path = root / path
    if path.is_relative_to(root):
        relative = path.relative_to(root)
        # a relative URI, escaped as by as_uri
        uri = Path("/", relative).as_uri().removeprefix("file:///")
        return {"uri": uri, "uriBaseId": "SRCROOT"}
    return {"uri": path.as_uri()}


# -- JUnit


def junit(judged: Sequence[Outcome]) -> str:
    """A JUnit report: failure for what is not PROVED, error for what cannot be traced."""
    counts = {
        "tests": str(len(judged)),
        "failures": str(sum(not one.passes and one.verdict != "ERROR" for one in judged)),
        "errors": str(sum(one.verdict == "ERROR" for one in judged)),
        "skipped": str(sum(one.verdict == "IGNORED" for one in judged)),
        "time": f"{sum(one.seconds for one in judged):.3f}",
    }
    top = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(top, "testsuite", {"name": "symgrad", **counts})
    for one in judged:
        _case(suite, one)
    ElementTree.indent(top)
    return ElementTree.tostring(top, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ElementTree.Element, one: Outcome) -> None:
    location = one.blamed
    place = {"file": _xml(location.file), "line": str(location.line)} if location else {}
    file = Path(location.file).stem if location else ""
    group = file if one.module.startswith(OWN_MODULES) else one.module
    facts = {"classname": _xml(group), "name": _xml(one.name), "time": f"{one.seconds:.3f}"}
    case = ElementTree.SubElement(suite, "testcase", {**facts, **place})
    if values := _values(one):
        properties = ElementTree.SubElement(case, "properties")
        for name, text in values.items():
            ElementTree.SubElement(
                properties, "property", {"name": _xml(name), "value": _xml(text)}
            )
    if one.verdict == "IGNORED":
        ElementTree.SubElement(case, "skipped", {"message": _xml(one.expectation)})
        return
    if one.passes:
        ElementTree.SubElement(case, "system-out").text = _xml(one.text)
        return
    kind = "error" if one.verdict == "ERROR" else "failure"
    attributes = {"type": one.verdict, "message": _xml(short_reason(one))}
    ElementTree.SubElement(case, kind, attributes).text = _xml(one.text)


def _values(one: Outcome) -> dict[str, str]:
    """The plain arguments that a verdict holds for, the optional ones, what is declared."""
    if one.report is None:
        return {}
    presences, quantified = one.report.presences, one.report.quantified
    declared = one.report.declared
    return {
        **({"proved for": ", ".join(quantified)} if quantified else {}),
        **dict(one.report.values),
        **({"judged for": "; ".join(presences)} if presences else {}),
        **({"declared": declared} if declared else {}),
    }


def _conditions(one: Outcome) -> dict[str, list[dict[str, Any]]]:
    """The conditions of each gradient, as ``--json`` has them."""
    found = {} if one.report is None else one.report.inputs
    return {name: [each.to_dict() for each in of.conditions] for name, of in found.items()}


def _xml(text: str) -> str:
    """Without the characters that XML 1.0 cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
