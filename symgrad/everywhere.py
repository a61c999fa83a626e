"""Does a repair hold for all that a class is judged for?

In: a request, the report on it with repairs, what judges requests.  Out: the report, whose repairs
say for what they were proved.

A repair is proved where the gradient was refuted: for one choice of shapes, and for a call in which
all is given and asked for.  A user who pastes it has the class judged for all that symgrad infers;
so it is judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from symgrad.deadline import TimeUp
from symgrad.errors import SymgradError
from symgrad.frontend.evidence import AnyFunction
from symgrad.frontend.plain import defaults
from symgrad.frontend.request import Request, presences
from symgrad.proof.judge.protocol import VARIANTS
from symgrad.proof.report.distinct import is_left_out
from symgrad.proof.report.implied import without_implied
from symgrad.proof.report.records import Condition, InputReport, Report
from symgrad.proof.report.verdict import Verdict
from symgrad.proof.second.order import NAME as SECOND_ORDER
from symgrad.proof.verify import UNDEFINED

Judge = Callable[[Request], Report]
ALONE = "alone"
"""The kind of the condition that a repair was proved for less than is judged."""
_OTHER_CALLS = (VARIANTS, UNDEFINED, SECOND_ORDER)
"""The theorems about gradients in other calls, and of the gradients."""


def is_more(request: Request, report: Report) -> bool:
    """Is more judged of a class than its repairs were proved for?"""
    repaired = report.repaired
    if repaired is None:
        return False
    several = request.guess is not None or request.batches or presences(request)
    return bool(several or defaults(request) or repaired.asks)


def checked(report: Report, again: Request, judge: Judge, part: Judge) -> Report:
    """The report with what its repairs do not hold for, and with all that they hold under.

    ``again``: the request for the repaired Function.  ``judge``: judges all of a request; ``part``:
    for its own shapes alone.
    """
    assert report.repaired is not None
    reports, failure = list[tuple[str, Report]](), ""
    try:
        reports = list(_reports(again, judge, part, [*report.repaired.codes]))
    except (SymgradError, TimeUp) as error:
        failure = str(error)
    inputs = dict(report.inputs)
    for name, code in report.repaired.codes.items():
        one = inputs[name]
        if one.suggestion != code:  # it says what it was proved for
            continue
        wrong = failure or _failing(report, reports, name)
        under = tuple(c for c in one.suggested_under if c.kind != ALONE)
        if wrong:
            under += (Condition(ALONE, f"{_judged(again)} alone: {wrong}"),)
        else:
            under += tuple(_beside(one, reports, name))
        inputs[name] = replace(one, suggested_under=without_implied(under))
    return replace(report, inputs=inputs)


def _reports(
    request: Request, judge: Judge, part: Judge, names: Sequence[str]
) -> Iterator[tuple[str, Report]]:
    """The report on a Function; where something is wrong in it, those for all its shapes.

    Each with the shapes that it is about.  ``names``: the gradients in question; no more reports
    are made where all of these are wrong.
    """
    whole = judge(request)
    if request.guess is None:
        yield "", whole
        return
    others = {one.guess.text: one for one in request.guess.others if one.guess is not None}
    shapes = [text for text in (request.guess.text, *others) if text not in whole.beside]
    yield shapes[0] if shapes else "", whole
    if any(_is_proved(whole, name) for name in names) and whole.verdict is not Verdict.PROVED:
        for text, other in others.items():
            yield text, part(other)


def _is_proved(report: Report, name: str) -> bool:
    own = report.inputs.get(name)
    return own is not None and own.verdict is Verdict.PROVED


def _failing(before: Report, reports: Sequence[tuple[str, Report]], name: str) -> str:
    """For what a repaired gradient is not proved, or what else is not right; empty for nothing."""
    for shapes, report in reports:
        if not _is_proved(report, name):
            own = report.inputs.get(name)
            verdict = "not judged" if own is None else str(own.verdict)
            said = report.given == before.given or report.given.removeprefix(" for ") in shapes
            verdict += "" if said else report.given
            return f"{verdict} for {shapes}" if shapes else verdict
    known = {finding.name: finding.verdict for finding in before.protocol}
    for finding in reports[0][1].protocol:
        worse = finding.verdict > known.get(finding.name, Verdict.PROVED)
        if worse or (finding.name in _OTHER_CALLS and finding.verdict is not Verdict.PROVED):
            return f"{finding.name} is {finding.verdict}"
    return ""


def _beside(
    one: InputReport, reports: Sequence[tuple[str, Report]], name: str
) -> Iterator[Condition]:
    """The conditions of the proofs that are printed nowhere else."""
    held = {c.text.replace(" = ", " == ", 1) for c in one.suggested_under if c.kind == "value"}
    for _, report in reports:
        for condition in report.inputs[name].conditions:
            known = condition in one.conditions or condition in one.suggested_under
            known = known or is_left_out(condition, one.suggested_under, dict(report.values))
            if not known and condition.code not in held:
                yield condition


def _judged(request: Request) -> str:
    return request.guess.text if request.guess is not None else "this call"


def holds(report: Report) -> bool:
    """Does every repair hold for all that is judged?"""
    return not any(
        condition.kind == ALONE for one in report.inputs.values()
        for condition in one.suggested_under
    )  # fmt: skip


def with_repairs(report: Report, other: Report) -> Report | None:
    """The report with the repairs of another one; None where they are the same, or not as many."""
    own, new = report.repaired, other.repaired
    if own is None or new is None or new.codes == own.codes or new.codes.keys() != own.codes.keys():
        return None
    inputs = dict(report.inputs)
    for name in new.codes:
        found = other.inputs[name]
        inputs[name] = replace(
            inputs[name], suggestion=found.suggestion, suggested_under=found.suggested_under,
            diagnosis=found.diagnosis,
        )  # fmt: skip
    return replace(report, inputs=inputs, repair=other.repair, repaired=new)


def wrong_for(parts: tuple[Request, ...], function: AnyFunction, name: str, part: Judge) -> str:
    """For which of some parts a gradient is not proved; empty for none."""
    for one in parts:
        try:
            found = part(replace(one, function=function)).inputs.get(name)
        except (SymgradError, TimeUp):
            continue
        if found is not None and found.verdict is not Verdict.PROVED:
            return one.inferred or "another call"
    return ""
