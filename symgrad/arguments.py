"""Is a backward right at the other values of plain arguments that nobody stated?

In: a request, the verdict on the defaults and on numbers that are symbols, what judges requests.
Out: one report for all of it.

Texts, truth values, options that are None and integers are judged at what the program tells apart
(``symgrad.frontend.asked``); numbers that are fixed, at a few plain ones of the default's sign.
Where backward is wrong at one of them, that is the verdict; a value at which forward raises is
none, nor is one at which backward does by its own ``raise``.  What is proved is part of the
verdict.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from symgrad.budgets import MOST_COMBINATIONS, SHAPE_STEPS
from symgrad.deadline import TimeUp, part
from symgrad.errors import OperationError, ShapeError, SymgradError, TraceError, is_limit
from symgrad.frontend.annotated import has_others, others_of
from symgrad.frontend.asked import other_values
from symgrad.frontend.evidence import is_used, labels
from symgrad.frontend.plain import as_unstated, defaults, numbers, with_regions, with_values
from symgrad.frontend.request import Request
from symgrad.frontend.trace import trace_request
from symgrad.plain_values import described, either, is_alike
from symgrad.proof.report.merge import under
from symgrad.proof.report.records import Condition, InputReport, Report
from symgrad.proof.report.rendering import worded
from symgrad.proof.report.verdict import FAILED, REFUSED, Verdict
from symgrad.quantify import (
    OTHERS_WRONG,
    Judge,
    Quantified,
    with_general_names,
    with_general_repairs,
)
from symgrad.shapes.sizes import as_multiples

_SHARE = 0.3
"""The part of the time that is left that a verdict on some values may take."""
_WRONG = (Verdict.REFUTED, Verdict.SURROGATE)
_PLAIN = (0.5, 2.0, 0.25)
"""Numbers that are easy to read."""
_LEAST, _MOST = 0.1, 10.0
"""Sizes of numbers in whose place these stand."""

Values = Mapping[str, Any]


def with_other_values(request: Request, found: Quantified, judge: Judge, first: Judge) -> Report:
    """The report, judged at other values of plain arguments as well.

    ``first``: judges, and looks for repairs.
    """
    if found.report.verdict in _WRONG:
        return found.report
    return _Others(request, found, judge, first).run()


@dataclass
class _Others:
    """``proved``: the reports that are, by the values that are not the defaults.

    ``refused``: values for which backward raises by its own ``raise``, by what it says.
    ``judged``: the arguments that are judged at another value than the default.
    """

    request: Request
    found: Quantified
    judge: Judge
    first: Judge
    proved: dict[tuple[tuple[str, Any], ...], Report] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    refused: dict[str, list[str]] = field(default_factory=dict)
    judged: set[str] = field(default_factory=set)

    def run(self) -> Report:
        """The report on all values."""
        for name, value in defaults(self.request).items():
            others = has_others(self.request.function, value)
            for other in self._values(name, value) if others else ():
                wrong = self._wrong_at({name: other})
                if wrong is not None:
                    return wrong
            if value is None:
                self._note_none_alone(name)
        return self._together()

    def _note_none_alone(self, name: str) -> None:
        """Say that an option was judged at None alone, where a program does more than keep it."""
        if self.request.guess is None or name in self.judged:
            return
        if is_used(self.request.function, name):
            self.notes.append(f"{name} is judged at None alone: no other values of it are known")

    def _values(self, name: str, default: Any) -> Iterator[Any]:
        """The values at which an argument is judged, beside its default."""
        known = [default]
        for one in self._wanted(name, default):
            if not any(is_alike(one, other) for other in known):
                known.append(one)
                yield one

    def _wanted(self, name: str, default: Any) -> Iterator[Any]:
        if name in self._any:
            stated = others_of(self.request.function, name, default).values
            yield from (one for one in stated if type(one) not in (int, float))
            yield from self._other_types(name, default)
            return
        if name in numbers(self.request):
            union = self.found.unions.get(name) if self.found.pieces else None
            points = [one[name] for one in self.found.points if name in one]
            for value in (*_plain(default), *points):
                outside = union is None or not any(one.holds(value) for one in union.regions)
                if outside and _is_alike(value, default):
                    yield value
            if type(default) is int and default < 0 and name in labels(self.request.function):
                yield 1
            yield from self._other_types(name, default)
        yield from other_values(
            self.request, name, default,
            lambda value: trace_request(with_values(self.request, {name: value})),
        )  # fmt: skip

    def _other_types(self, name: str, default: float) -> Iterator[int]:
        """Integers in the place of a float, where the program asks which of the two it is."""
        union = self.found.unions.get(name) if self.found.pieces else None
        if type(default) is float and union is not None and union.regions[0].typed:
            first = round(default) or 1
            yield from (first, first + 1, 10 * first, -first)

    @property
    def _any(self) -> set[str]:
        """The numbers for all values of which it is proved."""
        unions = self.found.unions if self.found.pieces else {}
        return {name for name, one in unions.items() if not one.condition}

    # -- judging

    def _wrong_at(self, values: Values) -> Report | None:
        """The report at values if backward is wrong there; else it is kept, or noted."""
        report, whole = self._for_numbers(values), True
        if report is None:
            report, whole = self._at(values, self.judge), not self.found.pieces
        if report is None:
            return None
        self.judged |= {*values}
        if report.refuses:
            self.refused.setdefault(_why(report), []).append(_said(values))
            return None
        if report.verdict in _WRONG:
            return None if _is_beyond(values, report) else self._refuted(values)
        alone = "" if whole else ", the numbers being their defaults"
        domain = "" if report.domain == self.found.report.domain else f" {report.domain}"
        if report.verdict is Verdict.PROVED and not alone and not domain:
            self.proved[tuple(values.items())] = report
        else:
            self.notes.append(f"for {_said(values)}{alone} it is {report.verdict}{domain}")
        return None

    def _refuted(self, values: Values) -> Report | None:
        """The report where the other numbers are their defaults: wrong, with a repair."""
        report, general = None, self.found.general
        if general is not None:
            plain = self._at(values, self.judge)
            report = None if plain is None else with_general_repairs(plain, self.found)
        if report is None:
            report = self._at(values, self.first)
        if report is None:
            return None
        report = with_general_names(report, self.found, {**defaults(self.request), **values})
        rests = [
            worded(one) for one in self.found.report.conditions
            if not one.text.endswith(OTHERS_WRONG)  # which the values say
        ]  # fmt: skip
        said = ", ".join([f"with the defaults it is {self.found.report.stated}", *rests])
        inputs = {name: _without_found(one) for name, one in report.inputs.items()}
        return replace(report, inputs=inputs, notes=(*report.notes, said))

    def _for_numbers(self, values: Values) -> Report | None:
        """The verdict for all that numbers are proved for, if it is PROVED."""
        reports: dict[str, Report] = {}
        for piece in self.found.pieces:
            points = {name: one.value for name, one in piece.regions.items() if one.is_point}
            symbols = {
                name: one.copy() for name, one in piece.regions.items()
                if not one.is_point and name not in values
            }  # fmt: skip
            before = {name: one.copy() for name, one in symbols.items()}
            request = with_values(self.request, {**points, **values})
            report = self._verdict(with_regions(request, symbols), self.judge)
            if report is None or report.verdict is not Verdict.PROVED or symbols != before:
                return None
            reports[f"where {piece.condition}"] = report
        if not reports:
            return None
        return _with_conditions(next(iter(reports.values())), reports)

    def _at(self, values: Values, judge: Judge) -> Report | None:
        return self._verdict(with_values(self.request, values), judge, values)

    def _accepted(self, request: Request, values: Values) -> Request:
        """The request, with sizes that are multiples where forward needs such for the values.

        Other shapes are looked for where these do not fit, or an operation fails.
        Raises what forward raises.
        """
        for _ in range(SHAPE_STEPS if values else 0):
            try:
                trace_request(request)
            except TraceError as error:
                specs = tuple(one.spec for one in request.tensors)
                sizes = as_multiples(specs, error)
                elsewhere = isinstance(error, (OperationError, ShapeError))
                if (sizes or elsewhere) and request.guess is not None and request.guess.again:
                    found = request.guess.again(request.function, values, ())
                    return as_unstated(found, values, self.request)
                if not sizes:
                    raise
                request = request.with_sizes(sizes)
            else:
                return request
        trace_request(request)
        return request

    def _verdict(
        self, request: Request, judge: Judge, values: Values = MappingProxyType({})
    ) -> Report | None:
        """The report; None where forward raises, and where there is none in time."""
        said = _said(values)
        try:
            with part(_SHARE):
                accepted = self._accepted(request, values)
                report = judge(accepted)
                return report if accepted is request else _under_shapes(report, accepted)
        except SymgradError as error:
            why = error.what if is_limit(error) else ""
        except TimeUp as error:
            why = str(error)
        except Exception:  # whatever forward raises
            why = ""
        if said and why:
            self.notes.append(f"not judged for {said}: {why}")
        return None

    # -- what is proved

    def _together(self) -> Report:
        """The report on the defaults and all that is proved beside them."""
        report = self.found.report
        fixed = {name for name, _ in report.values}
        values, proved = defaults(self.request), self._alone()
        alone = {name: others for name, others in proved.items() if name in fixed}
        every = {name: [values[name], *others] for name, others in alone.items()}
        wrong = self._wrong_combination(every)
        if wrong is not None:
            return wrong
        known = all(one in self.proved for one in _combinations(every))
        whole = report.verdict is Verdict.PROVED and known
        for name, others in proved.items():
            if whole and name in fixed:
                continue
            said = f"for {name} = {either(map(described, others))} it is PROVED"
            self.notes.append(f"{said}, the other arguments being their defaults")
        if not whole:
            return self._noted(report)
        reports = {f"for {_said(dict(one))}": self.proved[one] for one in self.proved}
        texts = {name: either(map(described, own)) for name, own in every.items()}
        return self._noted(
            replace(
                _with_conditions(report, reports),
                values=tuple((name, texts.get(name, text)) for name, text in report.values),
            )
        )

    def _alone(self) -> dict[str, list[Any]]:
        """The values at which arguments are proved, each alone."""
        found: dict[str, list[Any]] = {}
        for ((name, value),) in self.proved:
            found.setdefault(name, []).append(value)
        return found

    def _wrong_combination(self, every: Mapping[str, Sequence[Any]]) -> Report | None:
        """The report for a combination at which backward is wrong, of a few; None for none."""
        todo = [one for one in _combinations(every) if one not in self.proved]
        for one in todo if len(todo) <= MOST_COMBINATIONS else ():
            wrong = self._wrong_at(dict(one))
            if wrong is not None:
                return wrong
        return None

    def _noted(self, report: Report) -> Report:
        refused = [f"not judged for {either(every)}: {why}" for why, every in self.refused.items()]
        notes = dict.fromkeys((*report.notes, *self.notes, *refused))
        return replace(report, notes=tuple(notes))


def _plain(default: float) -> Iterator[float]:
    """Numbers of about the size of a default; of an integer, the next ones."""
    if type(default) is int:
        yield from (default + 1, default + 2, default + 4) if default >= 0 else ()
    elif default == 0 or _LEAST <= abs(default) <= _MOST:
        yield from (-one if default < 0 else one for one in _PLAIN)
    else:
        yield from (default / 2, 2 * default)


def _under_shapes(report: Report, request: Request) -> Report:
    """The report with the shapes that forward needs as a condition."""
    shapes = ", ".join(one.spec.of(one.name) for one in request.tensors if one.spec is not None)
    found = Condition("shapes", f"the shapes are {shapes}")
    return replace(report, inputs=under(report.inputs, before=(found,)))


def _is_alike(value: float, default: float) -> bool:
    """Has it the sign of the default?  Beside 0 these are the positive numbers."""
    return value > 0 if default >= 0 else value < 0


def _is_beyond(values: Values, report: Report) -> bool:
    """Does backward raise for a real number?  Forward may be infinite there, as torch divides."""
    fails = any(one.reason.startswith(FAILED) for one in report.inputs.values())
    return fails and any(type(one) is float for one in values.values())


def _why(report: Report) -> str:
    """What backward raises, and where."""
    reason = next(one.reason for one in report.inputs.values())
    return reason.removeprefix(f"{REFUSED}: ")


def _with_conditions(report: Report, others: Mapping[str, Report]) -> Report:
    """The report with the conditions that others have as well, by words for what these are for."""
    inputs = dict(report.inputs)
    for words, other in others.items():
        for name, one in other.inputs.items():
            known = report.inputs[name].conditions if name in report.inputs else ()
            more = [
                replace(c, text=f"{c.text} ({words})") for c in one.conditions if c not in known
            ]
            if name in inputs:
                inputs[name] = replace(
                    inputs[name], conditions=(*inputs[name].conditions, *more)
                )  # fmt: skip
    return replace(report, inputs=inputs)


def _without_found(one: InputReport) -> InputReport:
    """A report without sufficient conditions, which hold for these values alone."""
    return replace(one, conditions=tuple(c for c in one.conditions if c.kind != "found"))


def _combinations(every: Mapping[str, Sequence[Any]]) -> Iterator[tuple[tuple[str, Any], ...]]:
    """The choices of one value for each argument, without those that are defaults."""
    for values in itertools.product(*every.values()):
        changed = tuple(
            (name, value) for (name, own), value in zip(every.items(), values, strict=True)
            if value is not own[0]
        )  # fmt: skip
        if changed:
            yield changed


def _said(values: Values) -> str:
    return ", ".join(f"{name} = {described(value)}" for name, value in values.items())
