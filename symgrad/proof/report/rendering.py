"""The look of a report, as text, HTML and LaTeX.

In: a ``Report``.  Out: strings.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from symgrad.proof.report.verdict import DERIVED, Verdict

if TYPE_CHECKING:
    from symgrad.proof.report.records import CaseReport, Condition, InputReport, Report

WIDTH = 100
MOST_SHOWN = 1600
"""So many characters of an input are shown at a counterexample."""
MOST_CASES = 3
"""Cases of sizes whose formulas are shown."""


def as_text(report: Report) -> str:
    """What a person wants to read: the verdict first, then what it rests on."""
    where = f"   {report.location}" if report.location else ""
    lines = [f"{report.name}: {report.verdict}{report.given}{where}"]
    if len(report.given) > WIDTH // 2:
        lines = [f"{report.name}: {report.verdict}{where}", *_wrapped(report.given.strip(), 2)]
    if report.derived:
        lines.append(f"  {DERIVED}")
    if report.domain:
        lines.append(f"  {report.domain}")
    shared = shared_conditions(report)
    for said in at_once(shared):
        lines += _wrapped(said, 2)
    for one in report.inputs.values():
        own = replace(one, conditions=tuple(c for c in one.conditions if c not in shared))
        lines.append("")
        lines += _input_lines(own, report.verdict, report.quantified)
    if report.protocol:
        lines.append("")
        lines.append("  protocol")
        width = max(len(finding.name) for finding in report.protocol)
        for finding in report.protocol:
            said = f"   {finding.text}" if finding.text else ""
            lines += _wrapped(f"{finding.name.ljust(width)}  {finding.verdict}{said}", 4)
    for note in report.notes:
        lines += _wrapped(f"note: {note}", 2)
    return "\n".join(lines)


def _input_lines(one: InputReport, whole: Verdict, quantified: Sequence[str] = ()) -> list[str]:
    """``whole``: the verdict on the Function, which is what is declared of a surrogate.

    ``quantified``: what the headline says of plain numbers, which is not said again.
    """
    how = f"   ({one.method})" if one.method else ""
    where = f"   {one.location}" if one.location and not one.verdict else ""
    lines = [f"  gradient of {one.name}: {one.verdict}{how}{where}"]
    if one.reason:
        lines += _reason_lines(one)
    if len({case.verdict for case in one.cases}) > 1:
        others = [case for case in one.cases if str(case.verdict) != "PROVED"]
        rest = [case for case in one.cases if case not in others]
        if len(rest) > 1 and len({case.conditions for case in rest}) == 1:
            lines += _case_lines(others)
            lines += _wrapped(f"PROVED for all other sizes{under(rest[0].conditions)}", 6)
        else:
            lines += _case_lines(one.cases)
    elif one.counterexample is not None:
        lines += _case_lines([case for case in one.cases if case.reason])
    if one.surrogate:
        lines += _wrapped(f"backward {one.surrogate}", 6)
        declared = one.declaration or f'verdict = "{whole}"'
        lines.append(f"{' ' * 6}if that is meant, declare it in symgrad.toml:")
        lines += [f"{' ' * 8}{line}" for line in declared.splitlines()]
    lines += _counterexample_lines(one)
    for said in one.diagnosis:
        lines += _wrapped(f"why: {said}", 6)
    if one.suggestion:
        lines += _suggestion_lines(one.suggestion, one.suggested_under)
    elif one.derived and not one.verdict:
        but = f" ({one.derived_but})" if one.derived_but else ""
        lines += _labelled(f"the true gradient{but}", one.derived)
    quantifiers = " ".join(quantified)
    for said in at_once(
        [c for c in one.conditions if c.kind != "declared" or c.text not in quantifiers]
    ):
        lines += _wrapped(said, 6)
    return lines


def _reason_lines(one: InputReport) -> list[str]:
    """Why there is no proof; the line of source that failed, and what to do about it."""
    what, hint, todo = one.reason.partition("\n  hint: ")
    lines = _wrapped(what, 6)
    if one.location is not None and f"{one.location}: " in what:
        lines += [f"{' ' * 4}{line}" for line in one.location.excerpt().splitlines()]
    return [*lines, *(_wrapped(f"hint: {todo}", 6) if hint else [])]


def _case_lines(cases: Sequence[CaseReport]) -> list[str]:
    lines = []
    for case in cases:
        said = f": {case.reason}" if case.reason else under(case.conditions)
        lines += _wrapped(f"{case.verdict} if {case.when}{said}", 6)
    return lines


_LEADS = {
    "kink": "at the kink:", "ties": "except at ties:", "literal": "literal:", "reading": "reading:",
    "nonzero": "except where", "found": "found:",
    "null set": "but where", "alone": "for", "directions": "for",
}  # fmt: skip


_AT_KINKS = ("kink", "ties")


def shared_conditions(report: Report) -> list[Condition]:
    """What the program asks of its call, where all of several gradients rest on it."""
    first, *others = [one.conditions for one in report.inputs.values()] or [()]
    if not others:
        return []
    return [one for one in first if one.kind == "asked" and all(one in own for own in others)]


def at_once(conditions: Sequence[Condition]) -> list[str]:
    """Conditions in words; what is asked in several lines is said once, with all lines."""
    said: dict[str, list[str]] = {}
    for one in conditions:
        place = _AT_LINE.fullmatch(one.text) if one.kind == "asked" else None
        text = worded(one if place is None else replace(one, text=place["what"]))
        own = said.setdefault(f"{text} ({place['file']}" if place else text, [])
        own += [place["line"]] if place else []
    return [f"{text}:{', '.join(lines)})" if lines else text for text, lines in said.items()]


_AT_LINE = re.compile(r"(?P<what>.+) \((?P<file>[^()]+):(?P<line>\d+)\)")


def worded(condition: Condition) -> str:
    """A condition with the word that says what it does: if, but where, at the kink ..."""
    return f"{_LEADS.get(condition.kind, 'if')} {condition.text}"


def under(conditions: Sequence[Condition]) -> str:
    """What follows a theorem: `` and x > 0, except where y == 0``; empty where nothing does."""
    supposed, others = _parted(conditions)
    return "".join([*(f" and {said}" for said in supposed), *(f", {said}" for said in others)])


def supposing(conditions: Sequence[Condition]) -> str:
    """What follows a verdict: `` if x > 0 and y > 0, at the kink: z == 0``, or nothing."""
    supposed, others = _parted(conditions)
    first = f" if {' and '.join(supposed)}" if supposed else ""
    return first + (f", {'; '.join(others)}" if others else "")


def _parted(conditions: Sequence[Condition]) -> tuple[list[str], list[str]]:
    """What is supposed, and the rest in words."""
    both = [worded(one) for one in conditions]
    supposed = [said.removeprefix("if ") for said in both if said.startswith("if ")]
    return supposed, [said for said in both if not said.startswith("if ")]


def _counterexample_lines(one: InputReport) -> list[str]:
    if one.counterexample is None:
        return [] if one.replayed is None else _wrapped(str(one.replayed), 6)
    found = one.counterexample
    sizes = ", ".join(f"{name} = {value}" for name, value in found.sizes.items())
    lines = [f"      smallest counterexample found{': ' + sizes if sizes else ''}"]
    for name, value in found.inputs.items():
        lines += _wrapped(f"{found.aliases.get(name, name)} = {_short(text(value))}", 8)
    lines.append(f"        {found.element}: yours {found.hand_text}, true {found.true_text}")
    return lines if one.replayed is None else [*lines, *_wrapped(str(one.replayed), 8)]


def _short(numbers: str) -> str:
    """Numbers as text; of very many the first."""
    if len(numbers) <= MOST_SHOWN:
        return numbers
    first, count = numbers[:MOST_SHOWN].rpartition(", ")[0], numbers.count(",") + 1
    return f"{first}, ... ({count} numbers; counterexample.snippet has all)"


def _suggestion_lines(code: str, conditions: Sequence[Condition]) -> list[str]:
    """A repair with what its proof leaves out: in the same line where there is room."""
    kinks = [worded(one) for one in conditions if one.kind in _AT_KINKS]
    under = [worded(one) for one in conditions if one.kind not in _AT_KINKS]
    label = f"write instead ({' '.join(['proved', ', '.join(under)]).strip()})"
    if len(label) > WIDTH // 2:
        label = "write instead (proved under the conditions below)"
        kinks = [*under, *kinks]
    lines = _labelled(label, code)
    return [*lines, *(line for said in kinks for line in _wrapped(said, 8))]


def _labelled(label: str, code: str) -> list[str]:
    lines = code.splitlines()
    if len(lines) == 1 and len(label) + len(code) + 8 <= WIDTH:
        return [f"      {label}: {code}"]
    return [f"      {label}:", *(f"        {line}" for line in lines)]


def _wrapped(text: str, indent: int) -> list[str]:
    pad = " " * indent
    return textwrap.wrap(
        text, WIDTH, initial_indent=pad, subsequent_indent=pad + "  ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


_COLOURS = {"PROVED": "#1a7f37", "REFUTED": "#cf222e", "UNDECIDED": "#9a6700",
            "SURROGATE?": "#8250df"}  # fmt: skip


def as_html(report: Report) -> str:
    """A table for a notebook."""
    rows = []
    for one in report.inputs.values():
        cells = [html.escape(one.name), _badge(str(one.verdict))]
        said = _input_lines(one, report.verdict, report.quantified)[1:]
        details = [html.escape(line.strip()) for line in said]
        shown = "<br>".join(details) + _formulas_html(report, one.name)
        rows.append(f"<tr><td>{'</td><td>'.join(cells)}</td><td>{shown}</td></tr>")
    for finding in report.protocol:
        rows.append(
            f"<tr><td><i>{html.escape(finding.name)}</i></td><td>{_badge(str(finding.verdict))}"
            f"</td><td>{html.escape(finding.text)}</td></tr>"
        )
    head = f"<b>{html.escape(report.name)}</b>: {_badge(str(report.verdict))}"
    head += html.escape(report.stated.removeprefix(str(report.verdict)))
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in report.notes)
    domain = f"<p>{html.escape(report.domain)}</p>" if report.domain else ""
    return f"<div>{head}{domain}<table>{''.join(rows)}</table>{notes}</div>"


def _formulas_html(report: Report, name: str) -> str:
    """Both gradients, for MathJax."""
    parts = []
    for label, where, lines in formulas_of(report, name):
        said = html.escape(f"{label} of {name}{where}:")
        parts.append(f"<p>{said}</p><p>$${html.escape(aligned(lines))}$$</p>")
    return "".join(parts)


def formulas_of(report: Report, name: str) -> Iterator[tuple[str, str, Sequence[str]]]:
    """What each formula of an input is, for which sizes, and its lines."""
    made = report.formulas
    for one in made.of(name)[:MOST_CASES] if made is not None else ():
        where = f" if {one.when}" if one.when else ""
        yield "true gradient", where, one.true
        if one.hand:
            yield "hand-written gradient", where, one.hand


def as_latex(report: Report) -> str:
    """Both gradients of every input, below one another."""
    from symgrad.proof.report.latex import symbol

    rows = []
    for name in report.inputs:
        for label, where, lines in formulas_of(report, name):
            sizes = re.sub(r"[^\w\s=<>!+*/()-]|_", " ", where)
            rows += [rf"&\text{{{label} of }} {symbol(name)} \text{{{sizes}:}}", *lines]
    return f"$${aligned(rows)}$$" if rows else ""


def aligned(lines: Sequence[str]) -> str:
    """Lines of LaTeX below one another."""
    return r"\begin{aligned} " + r" \\ ".join(lines) + r" \end{aligned}"


def _badge(verdict: str) -> str:
    colour = _COLOURS.get(verdict, "#57606a")
    return f'<span style="color:{colour};font-weight:600">{html.escape(verdict)}</span>'


def text(value: Any) -> str:
    """Nested lists of numbers, as NumPy prints small arrays."""
    if isinstance(value, list):
        return "[" + ", ".join(text(item) for item in value) + "]"
    if isinstance(value, float):
        return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
    return str(value)
