"""For which values of its plain numbers is a backward proved?

In: a request, the report on the values that it has, what judges a request.  Out: that report, or
one that holds for all values: plain numbers that nobody stated are symbols in it.

A number is taken for any real (or any integer, where the default is one) first, then for any of the
sign of its default.  Where nothing else is proved, or more would have to be assumed than for the
default, the default stays, and the report names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from symgrad.deadline import TimeUp
from symgrad.frontend.plain import Region, numbers, with_regions
from symgrad.frontend.request import Request
from symgrad.frontend.trace import trace_request
from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.records import Condition, Report
from symgrad.proof.report.verdict import Verdict
from symgrad.proof.verify import subject_of

ANY, SIGN, VALUE = range(3)
_AGREEMENT = 1e-7
"""Relative differences below it are rounding: a literal is folded by Python, or by the trace."""

Judge = Callable[[Request], Report]


def for_all_values(request: Request, report: Report, judge: Judge) -> Report:
    """``report``, or that on all values of the plain numbers that nobody stated."""
    if report.verdict is not Verdict.PROVED or request.order > 1:
        return report
    with suppress(TimeUp):  # then the verdict on the default stands
        return _for_all_values(request, report, judge)
    return report


def _for_all_values(request: Request, report: Report, judge: Judge) -> Report:
    values = numbers(request)
    levels = dict.fromkeys(values, ANY)
    wrong = ""
    plain = trace_request(request) if values else None
    while plain is not None and any(level < VALUE for level in levels.values()):
        regions = {name: Region(name, values[name]) for name in levels if levels[name] < VALUE}
        for name, region in regions.items():
            if levels[name] == SIGN:
                region.to_sign()
        try:
            _trace(request, regions, plain)
            if not any(region.settled for region in regions.values()):
                found = judge(with_regions(request, regions))
        except (Exception, TimeUp):  # whatever fails here, the verdict on the default stands
            _blame(regions)
        if settled := [name for name, region in regions.items() if region.settled]:
            levels.update(dict.fromkeys(settled, VALUE))
            continue
        proved = found.verdict is Verdict.PROVED
        wrong = wrong or _wrong(found)
        if proved and len(_assumed(found)) <= len(_assumed(report)):
            return _said(found, regions)
        for name in (_spoken_of(found, regions) if proved else None) or regions:
            levels[name] = _next(levels[name], values[name])
    return replace(report, notes=(*report.notes, wrong)) if wrong else report


def _wrong(report: Report) -> str:
    """What to note where backward is wrong for other values than the default; may be empty."""
    for one in report.inputs.values():
        if one.counterexample is not None:
            return f"it is not right for all values of plain numbers: {one.counterexample}"
    return ""


def _next(level: int, value: float) -> int:
    return SIGN if level == ANY and value != 0 else VALUE


def _trace(request: Request, regions: Mapping[str, Region], plain: FunctionGraphs) -> None:
    """Trace with regions, which shrink to where the program does the same, or are settled.

    ``plain``: the trace with the defaults.
    """
    graphs = trace_request(with_regions(request, regions))
    if not any(region.settled for region in regions.values()) and not _agree(
        graphs, plain, regions
    ):
        _blame(regions)


def _blame(regions: Mapping[str, Region]) -> None:
    """Something went wrong with symbols: settle what asked, or the integers, or all."""
    if any(region.settled for region in regions.values()):
        return
    whole = [region for region in regions.values() if region.whole]
    for region in whole or regions.values():
        region.settled = True


def _assumed(report: Report) -> list[str]:
    """What a verdict is under; a kink is no condition, nor is what a literal is read as."""
    return [one.text for one in report.conditions if one.kind not in ("kink", "literal")]


def _spoken_of(report: Report, names: Iterable[str]) -> set[str]:
    """The numbers that conditions are about."""
    texts = _assumed(report)
    return {name for name in names if any(re.search(rf"\b{name}\b", text) for text in texts)}


def _said(report: Report, regions: Mapping[str, Region]) -> Report:
    """The report that says for which values it holds."""
    texts = tuple(str(region) for region in regions.values())
    values = tuple(pair for pair in report.values if pair[0] not in regions)
    known = tuple(
        Condition("declared", region.condition)
        for region in regions.values() if not region.is_everything
    )  # fmt: skip
    inputs = {
        name: replace(one, conditions=(*one.conditions, *known))
        for name, one in report.inputs.items()
    }
    quantified = (*texts, *report.quantified)
    return replace(report, values=values, quantified=quantified, inputs=inputs)


# -- a check of the trace: at the defaults it computes what the trace of the defaults computes


def _agree(symbolic: FunctionGraphs, plain: FunctionGraphs, regions: Mapping[str, Region]) -> bool:
    """Have two traces the same cases, and the same values at a point?

    What a program learns behind the back of the trace, such as ``type(alpha)``, shows here.
    """
    if len(symbolic.cases) != len(plain.cases):
        return False
    return all(
        _agree_in(one, other, symbolic, plain, regions)
        for one, other in zip(symbolic.cases, plain.cases, strict=True)
    )


def _agree_in(
    one: FunctionCase, other: FunctionCase, symbolic: FunctionGraphs, plain: FunctionGraphs,
    regions: Mapping[str, Region],
) -> bool:  # fmt: skip
    if one.conditions != other.conditions or bool(one.problem) != bool(other.problem):
        return False
    first, second = subject_of(one, symbolic.assumptions), subject_of(other, plain.assumptions)
    if set(first.gradients) != set(second.gradients):
        return False
    for number, sizes in enumerate(second.sampler.small_choices(3)):
        at = second.draw(sizes, number)
        if at is None:
            continue
        feeds = at.point.doubles()
        feeds |= {name: np.asarray(float(region.value)) for name, region in regions.items()}
        computed = first.evaluate_feeds(feeds, sizes)
        if not all(map(_close, _wanted(first, computed), _wanted(second, at.values))):
            return False
    return True


def _wanted(subject: Subject, values: Mapping[Any, Any]) -> list[Any]:
    nodes = [node for node, _ in subject.outputs]
    return [
        values[node] for node in (*nodes, *map(subject.gradients.get, sorted(subject.gradients)))
    ]


def _close(left: Any, right: Any) -> bool:
    return bool(
        np.shape(left) == np.shape(right)
        and np.allclose(left, right, rtol=_AGREEMENT, atol=_AGREEMENT, equal_nan=True)
    )
