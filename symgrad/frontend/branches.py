"""What a program is under each answer to what it asks of plain numbers.

In: a request, and what is to be done with it.  Out: what is done, for values of the numbers for
which the program takes one way each; together these are all values.  Where inferred shapes do not
fit one of the ways, it has shapes of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from symgrad.budgets import MOST_ANSWERS
from symgrad.errors import ControlFlowError, ShapeError, SpecError, SymgradError, is_limit
from symgrad.frontend.evidence import AnyFunction
from symgrad.frontend.plain import in_all
from symgrad.frontend.regions import Region
from symgrad.frontend.request import Request
from symgrad.frontend.thresholds import Threshold, ThresholdError, region_of
from symgrad.ir.assume import Assumption

T = TypeVar("T")


class Branch(NamedTuple):
    """Values of numbers for which a program takes one way; ``text`` is empty for all.

    ``stated``: what the request says of these numbers; ``facts``: that and the answers.  ``only``:
    what is judged is one value of these alone.
    """

    text: str
    stated: tuple[Assumption, ...]
    facts: tuple[Assumption, ...]
    only: bool = False


def branches(
    request: Request, judge: Callable[[Request], T]
) -> Iterator[tuple[Branch, T | SymgradError]]:
    """What is judged under each answer that the program asks for; one alone where it asks nothing.

    An error is what forward raises for these values.  Raises ControlFlowError where it asks too
    often, and whatever says nothing of the program.
    """
    todo: list[tuple[Request, dict[str, None], str | None]] = [(request, {}, None)]
    asked = 1
    while todo:
        one, names, moved = todo.pop()
        where = _branch(request, one, names)
        if moved:
            where = where._replace(text=moved, only=True)
        try:
            yield where, judge(one)
        except ThresholdError as error:
            asks = error.asks
            asked += 2
            if asks.decided(one.assumptions) is not None:
                raise
            if asked > MOST_ANSWERS:
                raise ControlFlowError(
                    f"Python asks about the value of {asks.name} again and again",
                    location=error.location, asked=error.asked,
                    hint=f'give it a value, static={{"{asks.name}": 1.0}}',
                ) from None  # fmt: skip
            known = {**names, asks.name: None}
            todo += [(_narrowed(one, asks, holds), known, moved) for holds in (True, False)]
        except SymgradError as error:
            if not names or is_limit(error):
                raise
            other = None if moved is not None else _elsewhere(one, names, error)
            if other is None:
                yield where, error
            else:
                todo.append((other[0], names, other[1]))


def _branch(request: Request, one: Request, names: Collection[str]) -> Branch:
    text = " and ".join(region_of(name, one.assumptions).condition for name in names)
    intervals = [
        [fact for fact in asked.assumptions if fact.name in names and fact.kind == "interval"]
        for asked in (request, one)
    ]  # fmt: skip
    return Branch(text, tuple(intervals[0]), tuple(intervals[1]))


def _narrowed(request: Request, asks: Threshold, holds: bool) -> Request:
    """The request, in all its shapes, for the numbers of which the answer is so."""

    def change(one: Request) -> Request:
        return replace(one, assumptions=asks.fact(holds, one.assumptions))

    found, known = in_all(request, change), request.guess
    if found.guess is None or known is None:
        return found

    def near() -> Request | None:
        return known.fitting and _narrowed(known.fitting, asks, holds)

    def again(
        function: AnyFunction, values: Mapping[str, Any], facts: Sequence[Assumption]
    ) -> Request:
        assert known is not None
        assert known.again is not None
        return known.again(function, values, asks.fact(holds, facts))

    guess = replace(found.guess, near=near, again=known.again and again)
    return replace(found, guess=guess)


def is_of_shapes(request: Request, error: SymgradError) -> bool:
    """May it be the fault of inferred shapes that forward does not accept a call?"""
    return request.guess is not None and isinstance(error, ShapeError)


def _elsewhere(
    request: Request, names: Collection[str], error: SymgradError
) -> tuple[Request, str] | None:
    """The same at shapes that are inferred for these answers alone; None where there are none.

    Where the numbers have to be known, for one of the values; then, which one, in words.
    """
    guess = request.guess
    if guess is None or guess.again is None or not is_of_shapes(request, error):
        return None
    with suppress(SpecError):
        found = guess.again(request.function, {}, ())
        if {one.name for one in found.assumptions if one.kind == "interval"} >= set(names):
            return found, ""
    values = {name: _value(region_of(name, request.assumptions)) for name in names}
    with suppress(SpecError):
        said = " and ".join(f"{name} = {value}" for name, value in values.items())
        return guess.again(request.function, values, ()), said
    return None


def _value(region: Region) -> int | float:
    """A number in it, a plain one if possible."""
    ends = [int(end) + by for end in (region.low, region.high) if end is not None for by in (1, -1)]
    return next((one for one in (*_PLAIN, *ends) if region.holds(one)), region.value)


_PLAIN = (4, 3, 2, 1, 0.5, 0, -1)
"""Numbers that are easy to read, those first that are unlike one another."""
