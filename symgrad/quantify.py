"""For which values of its plain numbers is a backward proved?

In: a request, what judges it, what judges other requests.  Out: ``Quantified``: a report in which
plain numbers that nobody stated are symbols, and the requests that it is about.

A number is taken for any real (or any integer, where the default is one) first.  If that is proved
under no condition, the default need not be judged.  Otherwise it is, and then any number but the
one that a condition leaves out, or any of the sign of the default.  Where nothing else is proved,
or more would have to be assumed than for the default, the default stays, and the report names it.
Where the program compares a number with literals, the numbers on the other sides of them are judged
by themselves; what is proved there is part of the verdict, and the rest is noted.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.budgets import MOST_NAMINGS, MOST_REGIONS
from symgrad.deadline import TimeUp, check, part
from symgrad.errors import SymgradError
from symgrad.frontend.plain import numbers, stated_numbers, with_regions, with_values
from symgrad.frontend.regions import Region, Union, union
from symgrad.frontend.request import Request
from symgrad.frontend.state import changes_of
from symgrad.frontend.trace import trace_request
from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.proof.report.records import Condition, Report
from symgrad.proof.report.rendering import supposing
from symgrad.proof.report.verdict import Verdict

if TYPE_CHECKING:
    from symgrad.proof.oracle.subject import Subject

ANY, CUT, SIGN, VALUE = range(4)
"""All values of a number; those on the default's side of one at which the proof has a hole; those
of the default's sign; the default."""
OTHERS_WRONG = "for other values it is wrong"
_AGREEMENT = 1e-7
"""Relative differences below it are rounding: a literal is folded by Python, or by the trace."""

_SHARE = 0.3
"""The part of the time that is left that a verdict on some values may take."""

Judge = Callable[[Request], Report]
Default = Callable[[bool], Report]


@dataclass(frozen=True)
class Piece:
    """Values of plain numbers for which a backward is proved at once.

    ``regions``: of those that are symbols in ``request``; one of a single value is none, and stands
    there as a number.
    """

    request: Request
    regions: Mapping[str, Region]

    @property
    def condition(self) -> str:
        """Which values these are: ``alpha > 0``; empty where they are all."""
        return " and ".join(filter(None, (one.condition for one in self.regions.values())))


@dataclass(frozen=True)
class Quantified:
    """A report, and the pieces that it is about; none where no number is a symbol.

    ``points``: values at which backward is wrong, or may be.  ``general``: the report on many
    values, those of ``regions``, where it is refuted and has repairs.
    """

    report: Report
    pieces: tuple[Piece, ...] = ()
    points: tuple[Mapping[str, int | float], ...] = ()
    general: Report | None = None
    regions: Mapping[str, Region] = field(default_factory=dict)

    @property
    def unions(self) -> dict[str, Union]:
        """The values of each symbol, in all pieces."""
        names = self.pieces[0].regions
        return {name: union(one.regions[name] for one in self.pieces) for name in names}


def for_all_values(
    request: Request, default: Default, judge: Judge, first: Judge | None = None
) -> Quantified:  # fmt: skip
    """The report on all values of the plain numbers that nobody stated, or that on the defaults.

    ``default``: judges the defaults, and looks for a repair where it is told to; what it raises is
    raised.  ``first``: judges all values, and looks for a repair that is right for all of them.
    """
    values = numbers(request)
    if not values:
        return Quantified(default(True))
    known = len(changes_of(request.function))
    found = _found(request, default, judge, first or judge, values)
    if len(changes_of(request.function)) == known:
        return found
    # What calls with some values change, calls with others may depend on.
    return _found(request, default, judge, first or judge, values)


def _found(
    request: Request, default: Default, judge: Judge, first: Judge,
    values: Mapping[str, int | float],
) -> Quantified:  # fmt: skip
    search = _Search(request, default, judge, first, values)
    try:
        found = search.run()
    except (Exception, TimeUp):  # whatever fails here, the verdict on the default stands
        found = Quantified(search.report)
    return replace(
        found, points=tuple(search.points), general=search.general, regions=search.regions
    )  # fmt: skip


_Tried = tuple[Mapping[str, Region], Request, "Report | None"]


@dataclass
class _Search:
    """``notes``: what is not proved, and where; ``general``: the first report on many values.

    ``points``: values at which backward is wrong, or may be.  ``holes``: by number a value but for
    which there is a proof for all.
    """

    request: Request
    default: Default
    judge: Judge
    first: Judge
    values: Mapping[str, int | float]
    notes: list[str] = field(default_factory=list)
    points: list[Mapping[str, int | float]] = field(default_factory=list)
    holes: dict[str, Fraction] = field(default_factory=dict)
    complete: bool = False
    general: Report | None = None
    regions: Mapping[str, Region] = field(default_factory=dict)
    ahead: dict[tuple[int, ...], _Tried] = field(default_factory=dict)
    """What was judged before its turn, by the levels of the numbers."""

    @cached_property
    def report(self) -> Report:
        """The report on the defaults, with the repairs for many values where there are some."""
        repaired = {} if self.general is None else self.general.inputs
        if self.general is None or not any(one.suggestion for one in repaired.values()):
            return self.default(True)
        plain = self.default(False)
        wrong = {name for name, one in plain.inputs.items() if one.verdict is Verdict.REFUTED}
        if not all(name in repaired and repaired[name].suggestion for name in wrong):
            return self.default(True)
        return _repaired(plain, self.general, wrong, self.regions)

    def run(self) -> Quantified:
        """The report on all values."""
        levels = dict.fromkeys(self.values, ANY)
        plain = trace_request(self.request)
        wrong, rests = "", tuple[Condition, ...]()
        while any(level < VALUE for level in levels.values()):
            regions, general, found = self._tried(levels, plain)
            if self.general is None and found is not None:
                self.general, self.regions = found, regions
            if settled := [name for name, region in regions.items() if region.settled]:
                levels.update(dict.fromkeys(settled, VALUE))
                continue
            assert found is not None
            holds = found.verdict is Verdict.PROVED
            self.points += _points(found, self.values)
            wrong, rests = (wrong, rests) if wrong else (_wrong(found), _rests(found, self.values))
            if holds and levels == dict.fromkeys(levels, ANY):
                self.holes = _holes(found, self.values)
            if holds and self._is_plain_for_fewer(found, regions, levels, plain):
                levels = self._fewer(found, regions, levels)
                continue
            if holds and self._is_no_less(found):
                return self._with_others(Piece(general, regions), found, levels)
            if self._is_meant_for_all(found, regions):
                return Quantified(_said(Quantified(found, (Piece(general, regions),)), ()))
            if self._is_unnamed(found, levels):
                levels.update({name: self._next(name, levels[name]) for name in regions})
                continue
            if self.report.verdict is not Verdict.PROVED:
                return self._for_others(found, regions)
            levels = self._fewer(found, regions, levels)
        notes = (wrong,) if wrong else ()
        report = replace(self.report, notes=(*self.report.notes, *notes))
        return Quantified(_resting(report, rests))

    def _tried(self, levels: Mapping[str, int], plain: FunctionGraphs) -> _Tried:
        """The regions of some levels, the request with symbols for them, and its verdict."""
        known = self.ahead.pop(tuple(levels.values()), None)
        if known is not None:
            return known
        regions = self._regions(levels)
        return regions, *self._judged(self.request, regions, plain, self.first)

    def _fewer(
        self, found: Report, regions: Mapping[str, Region], levels: Mapping[str, int]
    ) -> dict[str, int]:
        """The next levels: of the numbers that conditions of a proof are about, else of all."""
        spoken = _spoken_of(found, regions) if found.verdict is Verdict.PROVED else None
        return {
            name: self._next(name, level) if name in (spoken or regions) else level
            for name, level in levels.items()
        }

    def _is_plain_for_fewer(
        self, found: Report, regions: Mapping[str, Region], levels: Mapping[str, int],
        plain: FunctionGraphs,
    ) -> bool:  # fmt: skip
        """Is a proof under conditions one under none for fewer values, the default among them?

        The default need not be judged then: it is proved with these.
        """
        fewer = self._fewer(found, regions, levels)
        if not _assumed(found) or any(fewer[name] == VALUE != levels[name] for name in fewer):
            return False
        tried = self._tried(fewer, plain)
        self.ahead[tuple(fewer.values())] = tried
        own, _, report = tried
        holds = report is not None and report.verdict is Verdict.PROVED and not _assumed(report)
        return holds and all(one.holds(self.values[name]) for name, one in own.items())

    def _is_no_less(self, found: Report) -> bool:
        """Does a proof for many values assume no more than that for the defaults?"""
        assumed = _assumed(found)
        if not assumed or self.report.verdict is Verdict.UNDECIDED:
            return True
        proved = self.report.verdict is Verdict.PROVED
        return proved and len(assumed) <= len(_assumed(self.report))

    def _is_meant_for_all(self, found: Report, regions: Mapping[str, Region]) -> bool:
        """Is backward the derivative of one other function, whatever the numbers are?

        The default then is no worse; that it is no better is seen at the first shapes, if at all.
        """
        if found.verdict is not Verdict.SURROGATE:
            return False
        if not all(one.is_everything for one in regions.values()):
            return False
        guess = self.request.guess
        if guess is not None and guess.others:
            first = replace(self.request, guess=replace(guess, others=()), brief=True)
            if self.judge(first).verdict is Verdict.SURROGATE:
                return True
        return self.report.verdict is Verdict.SURROGATE

    def _is_unnamed(self, found: Report, levels: Mapping[str, int]) -> bool:
        """Is the default a surrogate, and not all of the first values that are tried?"""
        first = levels == dict.fromkeys(levels, ANY)
        wrong = found.verdict is Verdict.REFUTED
        return first and wrong and self.report.verdict is Verdict.SURROGATE

    def _judged(
        self, request: Request, regions: Mapping[str, Region], plain: FunctionGraphs,
        judge: Judge | None = None,
    ) -> tuple[Request, Report | None]:  # fmt: skip
        """The request with symbols, and its verdict; None where some are settled then."""
        general = request
        try:
            _trace(with_regions(request, regions), regions, plain)
            if not _are_settled(regions):
                # The trace has found what they are.
                points = {name: one.value for name, one in regions.items() if one.is_point}
                symbols = {name: one for name, one in regions.items() if not one.is_point}
                general = with_values(request, points)
                general = with_regions(general, symbols) if symbols else general
                with part(_SHARE):
                    return general, (judge or self.judge)(general)
        except Exception:  # whatever it is, it is not proved
            _blame(regions)
        return general, None

    def _regions(self, levels: Mapping[str, int]) -> dict[str, Region]:
        """The values that each number is taken for."""
        regions = {name: Region(name, self.values[name]) for name in levels if levels[name] < VALUE}
        for name, region in regions.items():
            if levels[name] == CUT:
                region.to_side(self.holes[name])
            elif levels[name] == SIGN:
                region.to_side(Fraction(0))
        return regions

    def _next(self, name: str, level: int) -> int:
        if level == ANY and name in self.holes:
            return CUT
        return SIGN if level < SIGN and self.values[name] != 0 else VALUE

    # -- the other sides of comparisons

    def _with_others(
        self, first: Piece, found: Report, levels: Mapping[str, int]
    ) -> Quantified:  # fmt: skip
        """The report on a piece that is proved, and on what is proved beside it."""
        apart = [
            name for name, one in first.regions.items()
            if levels[name] in (ANY, CUT) and not one.is_everything
        ]  # fmt: skip
        judged = list(self._others(first.regions, apart))
        proved = [one for one in judged if one[1].verdict is Verdict.PROVED]
        if len(apart) > 1 and not (self.complete and len(proved) == len(judged)):
            proved = []  # what is proved is no region of each number by itself
        self.notes += [_noted(*one) for one in judged if one not in proved]
        self.points += [
            {name: one.value for name, one in piece.regions.items() if name in apart}
            for piece, other in judged if other.verdict is Verdict.REFUTED
        ]  # fmt: skip
        pieces = (first, *(piece for piece, _ in proved))
        done = Quantified(found, pieces)
        if all(one.is_point for one in done.unions.values()):
            notes = _once((*self.report.notes, *self.notes))
            return Quantified(replace(self.report, notes=notes))
        said = _said(done, [other for _, other in proved])
        return replace(done, report=replace(said, notes=_once((*said.notes, *self.notes))))

    def _for_others(self, found: Report, regions: Mapping[str, Region]) -> Quantified:
        """The report on a default that is not proved, with what holds for other values."""
        self.notes += _beside(found, self.values)
        apart = [name for name, one in regions.items() if not one.is_everything]
        self.notes += [_noted(*one) for one in self._others(regions, apart)]
        notes = _once((*self.report.notes, *self.notes))
        return Quantified(replace(_with_names(self.report, found, regions), notes=notes))

    def _others(
        self, regions: Mapping[str, Region], apart: Sequence[str]
    ) -> Iterator[tuple[Piece, Report]]:  # fmt: skip
        """The verdicts outside of the regions of the numbers ``apart``, piece by piece.

        ``complete`` is whether there is one for all values.
        """
        self.complete = False
        refused = False
        every = {name: Region(name, self.values[name]) for name in apart}
        todo = [one for one in _rest(every, regions) if self._leave_holes(one)]
        for _ in range(MOST_REGIONS):
            if not todo:
                break
            box = todo.pop(0)
            own = {name: one.copy() for name, one in {**regions, **box}.items()}
            try:
                piece, found = self._piece(own)
            except TimeUp:
                return
            except SymgradError:  # forward refuses these values
                refused = True
                todo += _rest(box, self._refused(own))
                continue
            if any(own[name] != one for name, one in regions.items() if name not in apart):
                return  # the program compares another number, too
            todo += _rest(box, own)
            refused = refused or found is None
            if found is not None:
                yield piece, found
        self.complete = not todo and not refused

    def _leave_holes(self, box: Mapping[str, Region]) -> bool:
        """Take the holes out of a box; is anything left?"""
        for name, hole in self.holes.items():
            if name in box and box[name].holds(float(hole)):
                if box[name].is_point:
                    return False
                box[name].to_side(hole)
        return True

    def _refused(self, regions: dict[str, Region]) -> dict[str, Region]:
        """The values for which forward raises what it raises for those of the regions."""
        with suppress(SymgradError):
            trace_request(with_regions(self.request, regions))
        return regions

    def _piece(self, regions: dict[str, Region]) -> tuple[Piece, Report | None]:
        """The verdict on values; None where it is not known.  Raises what forward raises."""
        sample = with_values(self.request, {name: one.value for name, one in regions.items()})
        general, found = self._judged(self.request, regions, trace_request(sample))
        return Piece(general, regions), found


def with_named_numbers(request: Request, report: Report, judge: Judge, first: Judge) -> Report:
    """A report on stated numbers, with repairs that were proved for more values where there are.

    Such repairs read a number where the others have its value.  They have no more lines, and hold
    at the stated values under nothing more.  ``first``: judges many values, and looks for repairs;
    ``judge``: judges what is repaired, at the stated values.
    """
    values = stated_numbers(request) if report.repaired is not None else {}
    if not values:
        return report
    try:
        named = _with_named_numbers(request, report, judge, first, values)
    except (SymgradError, TimeUp):
        check()  # was it the limit of the verdict?
        return report
    return report if named is None else named


def _with_named_numbers(
    request: Request, report: Report, judge: Judge, first: Judge,
    values: Mapping[str, int | float],
) -> Report | None:  # fmt: skip
    search = _Search(request, lambda _: report, first, first, values)
    plain = trace_request(request)
    todo = [[*values]]
    for _ in range(MOST_NAMINGS):
        names = todo.pop(0) if todo else []
        if not names:
            break
        regions = {name: Region(name, values[name]) for name in names}
        _, found = search._judged(request, regions, plain)
        general = Quantified(report, general=found, regions=regions)
        named = with_general_repairs(report, general)
        if named is not None and _is_as_good(named, report, judge, request):
            return named
        todo += [one for one in _fewer(regions) if one not in todo]
    return None


def _fewer(regions: Mapping[str, Region]) -> list[list[str]]:
    """The names of fewer numbers: those that are not settled; the reals, and all but one."""
    loose = [name for name, region in regions.items() if not region.settled]
    if len(loose) < len(regions):
        return [loose]
    real = [name for name, region in regions.items() if not region.whole]
    others = [[name for name in regions if name != one] for one in regions]
    return [real, *others] if real and len(real) < len(regions) else others


def _is_as_good(named: Report, report: Report, judge: Judge, request: Request) -> bool:
    """Do other repairs hold where those of a report do, in as few lines?"""
    if named.repaired is None or report.repaired is None:
        return False
    after = judge(request.of(named.repaired.function))
    for name, code in report.repaired.codes.items():
        own, new = report.inputs[name], after.inputs.get(name)
        known = {one.text for one in (*own.conditions, *own.suggested_under)}
        longer = named.repaired.codes.get(name, "").count("\n") > code.count("\n")
        if longer or not new or any(one.text not in known for one in new.conditions):
            return False
    return True


def with_general_repairs(report: Report, found: Quantified) -> Report | None:
    """A report with the repairs for many values; None where what is wrong in it has no such."""
    wrong = [name for name, one in report.inputs.items() if one.verdict is Verdict.REFUTED]
    general = found.general
    known = {} if general is None else general.inputs
    if general is None or not all(name in known and known[name].suggestion for name in wrong):
        return None
    return _repaired(report, general, wrong, found.regions)


def with_general_names(report: Report, found: Quantified, values: Mapping[str, Any]) -> Report:
    """A report on values with the names of surrogates that were proved for many, these included."""
    inside = all(region.holds(values[name]) for name, region in found.regions.items())
    if found.general is None or not inside:
        return report
    return _with_names(report, found.general, found.regions)


def _with_names(report: Report, general: Report, regions: Mapping[str, Region]) -> Report:
    """The report, whose names read numbers where those that were proved for many values do."""
    where = " and ".join(filter(None, (one.condition for one in regions.values())))
    inputs = dict(report.inputs)
    for name, one in inputs.items():
        other = general.inputs.get(name)
        if one.surrogate and other is not None and other.surrogate:
            said = f"{other.surrogate}, for {where}" if where else other.surrogate
            inputs[name] = replace(
                one, surrogate=said, surrogate_code=other.surrogate_code,
                surrogate_facts=other.surrogate_facts, surrogate_fixed=other.surrogate_fixed,
            )  # fmt: skip
    return replace(report, inputs=inputs)


def _repaired(
    report: Report, general: Report, wrong: Iterable[str], regions: Mapping[str, Region]
) -> Report:  # fmt: skip
    """The report on the defaults with the repairs that were proved for many values."""
    known = tuple(Condition("value", one.condition) for one in regions.values() if one.condition)
    inputs = dict(report.inputs)
    for name in wrong:
        found = general.inputs[name]
        fixed = tuple(
            one for one in found.suggested_under
            if one.kind != "value" or one.text.split(" = ")[0] not in regions
        )  # fmt: skip
        inputs[name] = replace(
            inputs[name], suggestion=found.suggestion, suggested_under=(*fixed, *known),
            diagnosis=found.diagnosis, derived=found.derived, derived_but=found.derived_but,
        )  # fmt: skip
    return replace(report, inputs=inputs, repair=general.repair, repaired=general.repaired)


def _rest(box: Mapping[str, Region], inner: Mapping[str, Region]) -> list[dict[str, Region]]:
    """What of a box is left outside of another one that lies in it, as disjoint boxes."""
    found, names = [], list(box)
    for number, name in enumerate(names):
        for left in box[name].without(inner[name]):
            before = {other: inner[other] for other in names[:number]}
            behind = {other: box[other] for other in names[number + 1 :]}
            found.append({**before, name: left, **behind})
    return found


def _wrong(report: Report) -> str:
    """What to note where backward is wrong for other values than the default; may be empty."""
    shown = _refuted(report)
    return f"it is not right for all values of plain numbers: {shown[0]}" if shown else ""


def _rests(report: Report, values: Mapping[str, int | float]) -> tuple[Condition, ...]:
    """The values that backward is right for, of numbers that a counterexample has others for."""
    points = [one.counterexample for one in report.inputs.values()]
    points += [one.counterexample for one in report.protocol if one.verdict is Verdict.REFUTED]
    moved = {
        name: value for name, value in values.items() for one in points
        if one is not None and one.inputs.get(name, value) != value
    }  # fmt: skip
    return tuple(
        Condition(
            "value",
            f"{name} == {value!r}, {OTHERS_WRONG}",
            code=f"{name} == {value!r}",
        )
        for name, value in moved.items()
    )


def _points(
    report: Report, values: Mapping[str, int | float]
) -> Iterator[Mapping[str, int | float]]:  # fmt: skip
    """The numbers of counterexamples."""
    for one in report.inputs.values():
        known = {} if one.counterexample is None else one.counterexample.inputs
        found = {name: known[name] for name in values if name in known}
        if found:
            yield found


def _holes(report: Report, values: Mapping[str, int | float]) -> dict[str, Fraction]:
    """The values of numbers, but 0, at which alone conditions of a proof exclude something."""
    found: dict[str, Fraction] = {}
    for one in _assumptions(report):
        for name in values:
            hole = _root(one.code, name) if one.excepted else None
            if hole and hole == found.setdefault(name, hole) != values[name]:
                continue
            if re.search(rf"\b{name}\b", one.text):
                found[name] = Fraction(0)
    return {name: hole for name, hole in found.items() if hole}


def _root(code: str, name: str) -> Fraction | None:
    """The number for which an equality in one number holds; None where it may be another thing."""
    with suppress(Exception):  # it is no such equality
        body = ast.parse(code, mode="eval").body
        assert isinstance(body, ast.Compare)
        assert len(body.ops) == 1
        assert isinstance(body.ops[0], ast.Eq)
        at = [_computed(body.left, name, x) - _computed(body.comparators[0], name, x) for x in _AT]
        slope = at[1] - at[0]
        return -at[0] / slope if at[2] == at[0] + 2 * slope else None
    return None


_AT = (Fraction(0), Fraction(1), Fraction(2))


def _computed(node: ast.expr, name: str, value: Fraction) -> Fraction:
    """What an expression is at a value of a number.  Raises for what is no polynomial in it."""
    if isinstance(node, ast.BinOp):
        left, right = _computed(node.left, name, value), _computed(node.right, name, value)
        found: Fraction = _OPERATIONS[type(node.op)](left, right)
        return found
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_computed(node.operand, name, value)
    if isinstance(node, ast.Constant):
        return Fraction(str(node.value))
    assert isinstance(node, ast.Name)
    assert node.id == name
    return value


_OPERATIONS: Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip


def _resting(report: Report, rests: Sequence[Condition]) -> Report:
    """A proof for the defaults alone, whose gradients are under the condition that it is so."""
    if report.verdict is not Verdict.PROVED or not rests:
        return report
    inputs = {
        name: replace(one, conditions=(*one.conditions, *rests))
        for name, one in report.inputs.items()
    }  # fmt: skip
    return replace(report, inputs=inputs)


def _refuted(report: Report) -> list[str]:
    """Counterexamples, and what of the protocol is refuted."""
    points = [one.counterexample for one in report.inputs.values()]
    return [str(one) for one in points if one is not None] + [
        f"{one.name}: {one.text}" for one in report.protocol if one.verdict is Verdict.REFUTED
    ]


def _beside(report: Report, values: Mapping[str, int | float]) -> Iterator[str]:
    """A note on a point at which plain numbers have other values, and backward is wrong."""
    for one in report.inputs.values():
        found = one.counterexample
        if found is not None and any(found.inputs.get(name) != values[name] for name in values):
            yield f"it is not right for other values of plain numbers either: {found}"
            return


def _noted(piece: Piece, report: Report) -> str:
    """The verdict on a piece as a note."""
    if report.refuses:
        return f"not judged for {piece.condition}: backward raises by its own raise"
    shown = _refuted(report)
    conditions = _assumptions(report) if report.verdict is Verdict.PROVED else []
    why = f": {shown[0]}" if shown else supposing(conditions)
    return f"for {piece.condition} it is {report.verdict}{why}"


def _once(notes: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(notes))


def _trace(general: Request, regions: Mapping[str, Region], plain: FunctionGraphs) -> None:
    """Trace with regions, which shrink to where the program does the same, or are settled.

    ``plain``: the trace with their values.
    """
    graphs = trace_request(general)
    if not _are_settled(regions) and not _agree(graphs, plain, regions):
        _blame(regions)


def _are_settled(regions: Mapping[str, Region]) -> bool:
    return any(region.settled for region in regions.values())


def _blame(regions: Mapping[str, Region]) -> None:
    """Something went wrong with symbols: settle what asked, or the integers, or all."""
    if _are_settled(regions):
        return
    whole = [region for region in regions.values() if region.whole]
    for region in whole or regions.values():
        region.settled = True


def _assumed(report: Report) -> list[str]:
    return [one.text for one in _assumptions(report)]


def _assumptions(report: Report) -> list[Condition]:
    """What a verdict is under; a kink is no condition, nor is what a literal is read as."""
    return [one for one in report.conditions if one.kind not in ("kink", "literal")]


def _spoken_of(report: Report, names: Iterable[str]) -> set[str]:
    """The numbers that conditions are about."""
    texts = _assumed(report)
    return {name for name in names if any(re.search(rf"\b{name}\b", text) for text in texts)}


def _said(done: Quantified, others: Sequence[Report]) -> Report:
    """The report that says for which values it holds.

    ``others``: the reports on the pieces but the first, whose conditions it prints as well.
    """
    report = done.report
    found = {name: one for name, one in done.unions.items() if not one.is_point}
    texts = tuple(one.text for one in found.values())
    values = tuple(pair for pair in report.values if pair[0] not in found)
    known = tuple(
        Condition("declared", one.condition) for one in found.values() if one.condition
    )  # fmt: skip
    inputs = {}
    for name, one in report.inputs.items():
        more = []
        for piece, other in zip(done.pieces[1:], others, strict=True):
            own = other.inputs[name].conditions if name in other.inputs else ()
            more += [
                replace(c, text=f"{c.text}, where {piece.condition}")
                for c in own
                if c not in one.conditions and c.kind != "declared"
            ]
        inputs[name] = replace(one, conditions=(*one.conditions, *known, *more))
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
    from symgrad.proof.verify import subject_of  # the proof is not needed where none is made

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
