"""Combinations as forward accepts them, the cheapest first."""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from symgrad import deadline
from symgrad.budgets import SHAPE_STEPS, TRIALS_AFTER_A_TRACE
from symgrad.ir.function import FunctionGraphs
from symgrad.ops.integers import ramp
from symgrad.shapes.candidates import CONSTANT, ITEMS, Candidate, Unknown
from symgrad.shapes.outcomes import (
    calls_what_is_no_function,
    divides_by_zero,
    fits_backward,
    having_gradients,
    inputs_read,
    price_of_failing,
    problem_of,
    single_axes,
    summed_tensors,
    takes_no_floats,
)
from symgrad.shapes.sizes import Specs, Step, fitted, following, indexed, numbered, unpacks
from symgrad.shapes.tracing import ENDING_ALIKE, LEARNED_PRICE, Search
from symgrad.shapes.trial import NONE, Trial, is_float

MOST_LATE, MOST_LEFT = 4000, 200
"""How many combinations wait until others were tried; how many are left out."""
_NO_ITEMS = re.compile(
    r"'(int|bool|float)' object is not (iterable|subscriptable)"
    r"|object of type '(int|bool|float)' has no len|must be an iterable, not (int|bool|float)"
)
"""What Python says of a number that is used as a tuple."""
_OF_VALUES = (TypeError, ValueError, IndexError, AssertionError)
"""What other items may avoid."""


def cheapest(
    search: Search, last: int, wanted: frozenset[str] = NONE, *, late: bool = True
) -> Trial | None:  # fmt: skip
    """The cheapest combination of so many trials.

    ``wanted``: arguments that are to get a gradient.  ``late``: also of those that are likely to
    end in an error.
    """
    best: Trial | None = None
    asked, todo = set(search.asked), _in_turn(search, wanted, late)
    while (one := next(todo, None)) is not None:
        price, chosen = one
        if search.trials >= last or (best is not None and price >= best.price):
            break
        if best is None and search.ending is not None and search.same >= ENDING_ALIKE:
            break
        before = list(search.unknowns)
        trial = attempt(search, chosen, wanted)
        if search.unknowns != before:  # what was tried stands for something else
            best, todo = None, _in_turn(search, wanted, late)
            continue
        if trial is None and best is None and search.asked > asked:
            asked, todo = set(search.asked), _in_turn(search, wanted, late)
        if trial is None:
            continue
        last = min(last, search.trials + TRIALS_AFTER_A_TRACE)
        if best is None or trial.price < best.price:
            best = trial
    return best


def attempt(
    search: Search, chosen: tuple[Candidate, ...], wanted: frozenset[str] = NONE
) -> Trial | None:
    """A combination as forward accepts it; None where it does not, or nothing is to prove.

    ``wanted``: arguments of which backward has to make a gradient.
    """
    if not any(map(is_float, chosen)):
        return None
    if any(
        unknown.name in search.square and one.rank is not None and one.rank < 2
        for unknown, one in zip(search.unknowns, chosen, strict=True)
    ):
        return None
    trial, graphs = search.forward(chosen)
    if trial is None or graphs is None or not has_gradients(search, trial, graphs):
        return None
    if calls_what_is_no_function(graphs) or (
        any(one.is_value and one.value == 0 for one in chosen) and divides_by_zero(graphs)
    ):
        return None
    if wanted and (takes_no_floats(graphs) or not wanted <= having_gradients(graphs)):
        return None
    trial, graphs = at_numbers(search, trial, graphs)
    if problem_of(graphs) is not None:
        search.failed.append(trial)
        trial, graphs = _as_fitted(search, trial, graphs)
    trial, graphs = _as_met(search, trial, graphs)
    free, (trial, graphs) = trial, _tied(search, trial, graphs)
    if not wanted <= having_gradients(graphs) or wants_items(search, trial, graphs):
        return None
    return weighed(search, trial, graphs, free)


def weighed(
    search: Search, trial: Trial, graphs: FunctionGraphs, free: Trial | None = None
) -> Trial:  # fmt: skip
    """The trial, accepted, with what backward makes of it.

    ``free``: the same before an index got as many rows as what it is an index of.
    """
    with_gradient = having_gradients(graphs)
    number = any(
        one.rank == 0 and not one.constant and unknown.name in with_gradient
        for unknown, one in search.rows(trial)
    )
    raising = any(case.problem is not None for case in graphs.cases)
    # beside integers alone, outputs have no derivative: nothing that is wrong would show
    flat = any(one.dtype for one in trial.chosen) and inputs_read(graphs).isdisjoint(
        graphs.differentiable
    )
    # torch raises an error where a gradient has fewer elements than its argument
    hidden = (number and search.guest is None) or any(case.surplus for case in graphs.cases)
    hidden |= flat
    fits = fits_backward(graphs)
    found = replace(
        trial, failing=price_of_failing(graphs), raising=raising, hidden=hidden, fits=fits,
        summed=summed_tensors(graphs),
    )  # fmt: skip
    search.untied[found.chosen, found.specs] = free or trial
    search.accepted.append(found)
    return found


def cheapest_fitting(search: Search, every: Iterable[tuple[Candidate, ...]]) -> Trial | None:
    """The cheapest of some combinations for which backward runs and fits."""
    tried = [attempt(search, chosen) for chosen in every]
    fitting = [one for one in tried if one and not (one.failing or one.hidden)]
    return min(fitting, key=lambda one: one.price, default=None)


def wants_items(search: Search, trial: Trial, graphs: FunctionGraphs) -> bool:
    """Does backward raise since a value that nobody stated has no items, or has other ones?

    Then the value is none that the program is meant for, and tuples are tried.
    """
    problem = next((case.problem for case in graphs.cases if case.problem is not None), None)
    if problem is None:
        return False
    cause = problem.__cause__
    said = _NO_ITEMS.search(str(cause)) if isinstance(cause, TypeError) else None
    wanted = False
    for at, one in enumerate(trial.chosen[: len(search.unknowns)]):
        is_odd = isinstance(one.value, tuple) and isinstance(cause, _OF_VALUES)
        is_number = said is not None and type(one.value).__name__ in said[0]
        if not one.is_value or not (is_odd or is_number):
            continue
        wanted, unknown = True, search.unknowns[at]
        search.with_items.setdefault(unknown.name, problem)
        if not any(isinstance(other.value, tuple) for other in unknown.candidates):
            rest = [replace(it, price=it.price + LEARNED_PRICE) for it in unknown.candidates]
            search.unknowns[at] = replace(unknown, candidates=(*ITEMS, *rest))
    return wanted


def _as_fitted(
    search: Search, trial: Trial, graphs: FunctionGraphs
) -> tuple[Trial, FunctionGraphs]:
    """The same with shapes that backward fits, where these hide no mistake."""
    own = [unknown.name for unknown in search.unknowns]
    for _ in range(SHAPE_STEPS):
        problem = problem_of(graphs)
        specs = problem and fitted(trial.specs, own, trial.guessed, problem)
        if not specs:
            break
        again, _ = search.trace(replace(trial, specs=specs))
        if again is None or single_axes(again) > single_axes(graphs):
            break
        trial, graphs = replace(trial, specs=specs), again
    for specs in _like_others(search, trial, graphs) if problem_of(graphs) is not None else ():
        again, _ = search.trace(replace(trial, specs=specs))
        if again is not None and problem_of(again) is None:
            return replace(trial, specs=specs), again
    return trial, graphs


def _as_met(search: Search, trial: Trial, graphs: FunctionGraphs) -> tuple[Trial, FunctionGraphs]:
    """The same with sizes that backward needs, of what forward does not read and no others."""
    for _ in range(SHAPE_STEPS):
        read, problem = inputs_read(graphs), problem_of(graphs)
        rows = zip(search.unknowns, trial.guessed, strict=True)
        unread = [free and unknown.name not in read for unknown, free in rows]
        step = problem and following(
            Step(trial.specs, tried=trial.tried, uneven=trial.uneven, ways=search.ways),
            unread,
            problem,
        )
        if not step or any(not unread[at] for place in step.tried - trial.tried
                           for at, _ in place):  # fmt: skip
            break
        other = replace(trial, specs=step.specs, tried=step.tried, uneven=step.uneven)
        again, _ = search.trace(other)
        if again is None:
            break
        trial, graphs = other, again
    return trial, graphs


def _tied(search: Search, trial: Trial, graphs: FunctionGraphs) -> tuple[Trial, FunctionGraphs]:
    """The same with as many rows of an index as the tensor has that it is an index of.

    ``gather`` takes fewer, and so does ``x[arange(len(index)), index]``.
    """
    pairs = [
        (size, one.high) for case in graphs.cases for one in case.demanded
        if one.high is not None and (size := ramp(one.node)) is not None
    ]  # fmt: skip
    if any(high == 1 != size for size, high in pairs):
        trial = replace(trial, single=True)
    specs = indexed(trial.specs, trial.guessed, pairs)
    if specs is None:
        return trial, graphs
    other = replace(trial, specs=specs)
    again, _ = search.trace(other)
    worse = again is None or (problem_of(again) is not None and problem_of(graphs) is None)
    return (trial, graphs) if again is None or worse else _tied(search, other, again)


def _like_others(search: Search, trial: Trial, graphs: FunctionGraphs) -> Iterator[Specs]:
    """What forward does not use in the shape of another tensor: that hides no mistake."""
    used = inputs_read(graphs)
    if used >= {*graphs.input_names}:
        return
    rows = list(zip(search.unknowns, trial.specs, trial.guessed, strict=True))
    shapes = [spec for unknown, spec, _ in rows
              if spec is not None and spec.dims and unknown.name in used]  # fmt: skip
    for other in dict.fromkeys(shapes):
        found = [
            replace(spec, dims=other.dims)
            if spec is not None and free and unknown.name not in used
            and len(spec.dims) == len(other.dims) else spec
            for unknown, spec, free in rows
        ]  # fmt: skip
        if found != list(trial.specs):
            yield tuple(found)


def has_gradients(search: Search, trial: Trial, graphs: FunctionGraphs) -> bool:
    """Is there something to prove, an element at least, and has no number a gradient?"""
    if any(dim.constant == 0 for spec in trial.specs if spec is not None for dim in spec.dims):
        return False
    numbers = {
        unknown.name
        for unknown, one in search.rows(trial) if one.constant
    }  # fmt: skip
    returned = having_gradients(graphs) if any(case.gradients for case in graphs.cases) else set()
    return not numbers & returned and bool(set(graphs.differentiable) - numbers)


def _in_turn(
    search: Search, wanted: Collection[str] = (), tried: bool = True
) -> Iterator[tuple[int, tuple[Candidate, ...]]]:
    """The combinations with their prices, those last that are likely to end in an error.

    They are no more where another ending shows that the guess was wrong.  ``tried``: the others
    are tried, too.
    """
    every, late = _combinations(search, wanted), list[tuple[int, tuple[Candidate, ...]]]()
    refuted = search.hopeless.refuted
    for price, chosen in every:
        if search.hopeless.covers(chosen):
            late.append((price, chosen))
            if len(late) == (MOST_LATE if tried else MOST_LEFT):
                break
            continue
        yield price, chosen
        while search.hopeless.refuted > refuted:
            refuted = search.hopeless.refuted
            again, late = late, []
            for one in again:
                if search.hopeless.covers(one[1]):
                    late.append(one)
                else:
                    yield one
    if tried:
        yield from late
        yield from every


def _combinations(
    search: Search, wanted: Collection[str] = ()
) -> Iterator[tuple[int, tuple[Candidate, ...]]]:
    """All of them with their prices, in order: numbers alone for what Python asks for."""
    lists = [
        (unknown.name in search.asked - {*wanted} and _numbers(search, unknown))
        or unknown.candidates
        for unknown in search.unknowns
    ]  # fmt: skip
    if not lists or not all(lists):
        return
    start = (0,) * len(lists)
    heap = [(sum(one[0].price for one in lists), start)]
    seen = {start}
    while heap:
        deadline.check()
        price, at = heapq.heappop(heap)
        yield price, tuple(one[i] for one, i in zip(lists, at, strict=True))
        for position, index in enumerate(at):
            following = (*at[:position], index + 1, *at[position + 1 :])
            if index + 1 < len(lists[position]) and following not in seen:
                seen.add(following)
                step = lists[position][index + 1].price - lists[position][index].price
                heapq.heappush(heap, (price + step, following))


def _numbers(search: Search, unknown: Unknown) -> tuple[Candidate, ...]:
    """Any number, unless it is one of a few, plain values, None; nothing without values."""
    values = tuple(one for one in unknown.candidates if one.is_value or one.absent)
    constant = () if unknown.name in search.literals else (CONSTANT,)
    return (*constant, *values) if any(one.is_value for one in values) else ()


def _at_number(
    search: Search, trial: Trial, graphs: FunctionGraphs
) -> tuple[Trial, FunctionGraphs] | None:
    """The same with a number for one of them; None where forward takes none that is tried."""
    problem = problem_of(graphs)
    for numbers in (search.numbers, search.numbers[:1]):
        last = Step(trial.specs, tried=trial.tried, numbers=numbers, ways=search.ways)
        step = problem and numbered(last, trial.guessed, problem)
        if not step:
            return None
        other = replace(trial, specs=step.specs, tried=step.tried)
        again, _ = search.trace(other)
        if again is not None:
            return _as_named(search, step, other, again) or (other, again)
    return None


def _as_named(
    search: Search, step: Step, trial: Trial, graphs: FunctionGraphs
) -> tuple[Trial, FunctionGraphs] | None:
    """The same with as many as backward has names for; None where it unpacks no size."""
    problem = problem_of(graphs)
    named = problem and unpacks(problem) and following(step, trial.guessed, problem)
    if not named:
        return None
    other = replace(trial, specs=named.specs)
    again, _ = search.trace(other)
    return None if again is None or problem_of(again) is not None else (other, again)


def at_numbers(
    search: Search, trial: Trial, graphs: FunctionGraphs
) -> tuple[Trial, FunctionGraphs]:
    """The same with numbers for the sizes that Python has to know in backward."""
    for _ in range(SHAPE_STEPS):
        found = _at_number(search, trial, graphs)
        if found is None:
            break
        trial, graphs = found
    return trial, graphs
