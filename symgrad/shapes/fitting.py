"""Shapes near to those that were found, for which backward runs and its gradients fit.

They are judged where backward is refuted for what was found.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from symgrad.errors import ShapeError, SymgradError
from symgrad.frontend.evidence import MOST_UNPACKED, named_axes
from symgrad.frontend.request import Request
from symgrad.frontend.tensor import SelectedShapeError
from symgrad.ir.dim import Dim, Size
from symgrad.ir.dtype import bool_, int64
from symgrad.ir.function import FunctionGraphs, SizeCondition
from symgrad.shapes.by_running import run_shapes
from symgrad.shapes.candidates import INDICES, Candidate
from symgrad.shapes.found import request_of
from symgrad.shapes.outcomes import compared_labels, fits_backward, problem_of, single_axes
from symgrad.shapes.presences import with_presences
from symgrad.shapes.sizes import Step, following, substituted
from symgrad.shapes.tracing import Search
from symgrad.shapes.trial import (
    NONE,
    Trial,
    has_axes,
    is_float,
    is_more_general,
    is_sized,
    price_of,
    put,
)
from symgrad.shapes.trying import attempt, cheapest_fitting

_UNPACKED = re.compile(r"not enough values to unpack \(expected (\d), got (\d)\)")
_BEYOND = re.compile(r"axis (\d) is out of range for a tensor with (\d) ax[ie]s")
FITTING_TRIALS = 12
"""How many shapes near to some are tried, since these do not fit backward."""
READING_TRIALS = 80
"""How many calls are spent on what backward alone reads, where it raises."""


def near_shapes(search: Search, found: Trial) -> Request | None:
    """Shapes to judge where backward is refuted for what was found; None for none.

    They have numbers where the gradients are numbers.  Else they are the nearest shapes for
    which backward runs, and each gradient has its argument's shape, if it does not for these.
    What is compared by ``==`` alone is an integer there, such as a class; integers that forward
    takes as a mask as well are one.
    """
    if found.fits:
        other = _with_numbers(search, found)
    else:
        other = _nearest(search, found) or _by_running(search, found)
    other = with_integers(search, other or found) or other or _with_mask(search, found)
    if other is None or (has_axes(found) and not has_axes(other)):
        return None
    return replace(request_of(search, other), guess=with_presences(search, other, kept=True))


def _with_numbers(search: Search, found: Trial) -> Trial | None:
    """The same with numbers for tensors whose gradients are made of sums over all axes."""
    chosen = tuple(
        next((zero for zero in unknown.candidates if zero.rank == 0 and is_float(zero)), one)
        if one.rank and unknown.name in found.summed
        else one
        for unknown, one in search.rows(found)
    )
    other = None if chosen == found.chosen else attempt(search, chosen)
    return None if other is None or other.hidden or not other.fits else other


def _by_running(search: Search, found: Trial) -> Trial | None:
    """Shapes for which the class itself runs, if they hide no more than those that were found.

    With fewer axes in all of them, a sum over a wrong axis might not show.
    """
    other = run_shapes(search, found)
    if other is None or other.failing or _most_axes(other) < _most_axes(found):
        return None
    own, its = search.trace(found)[0], search.trace(other)[0]
    is_hidden = own is None or its is None or single_axes(its) > single_axes(own)
    return None if is_hidden else other


def _most_axes(trial: Trial) -> int:
    """The axes of the tensor of floats that has the most."""
    return max(one.rank or 0 for one in trial.chosen if is_float(one))


def _nearest(search: Search, found: Trial) -> Trial | None:
    """The nearest shapes for which backward runs, and each gradient has its argument's shape.

    They are near if one size is at least another one, two sizes are one that meet in backward, a
    size is a number that backward asks for, a tensor has an axis less, all sizes that Python has
    to know are one number, or tensors have as many axes as backward names or takes their shapes
    apart into.  If none of these fit, the cheapest do that were tried.
    """
    todo, seen, single = deque([found]), {found.specs}, 0
    shorter = {found.chosen}
    last = search.trials + READING_TRIALS
    for _ in range(FITTING_TRIALS):
        if not todo:
            break
        trial = todo.popleft()
        graphs, _ = search.trace(trial)
        if graphs is None:
            continue
        if trial is found:
            single = single_axes(graphs)
        elif fits_backward(graphs) and single_axes(graphs) <= single:
            return trial
        for other in _near(search, trial, graphs, shorter) if search.trials < last else ():
            if other.specs not in seen:
                seen.add(other.specs)
                todo.append(other)
            if search.trials >= last:
                break
    for trial in sorted(search.accepted, key=lambda one: one.price):
        fits = trial.fits and not trial.hidden and trial.kinds == found.kinds
        if fits and all(
            mine.rank or not its.rank  # all fits a number
            for mine, its in zip(trial.chosen, found.chosen, strict=True)
        ):
            graphs, _ = search.trace(trial)
            if graphs is not None and single_axes(graphs) <= single:
                return trial
    return None


def wider_shapes(search: Search, found: Trial) -> str:
    """Shapes that forward takes as well, more general ones, for which backward fails.

    More general is a tensor for a number, and any size for one.
    """
    wider = [one for one in search.failed if is_more_general(one, found)]
    if not wider:
        return ""
    return search.shapes(min(wider, key=lambda trial: sum(one.rank or 0 for one in trial.chosen)))


def sized_shapes(search: Search, found: Trial) -> str:
    """Shapes that forward takes as well, with any size for a number, for which backward fails."""
    wider = [one for one in search.failed if is_sized(one, found)]
    return search.shapes(wider[0]) if wider else ""


def _near(
    search: Search, trial: Trial, graphs: FunctionGraphs, shorter: set[tuple[Candidate, ...]]
) -> Iterator[Trial]:
    """Steps from one; ``shorter``: what was tried with fewer axes, which this adds to."""
    problem = problem_of(graphs)
    last = Step(trial.specs, tried=trial.tried, uneven=trial.uneven)
    for case in graphs.cases if problem else ():
        if case.problem is None and (apart := _apart(case.conditions)):
            yield replace(trial, specs=substituted(trial.specs, trial.guessed, apart))
    united = problem and following(last, trial.guessed, problem)
    if united:
        yield replace(trial, specs=united.specs, tried=united.tried, uneven=united.uneven)
    for case in graphs.cases if problem else ():
        asked = {
            one.left.atom: one.right for one in case.conditions
            if one.relation == "==" and isinstance(one.left.atom, Size)
        }  # fmt: skip
        if asked and case.problem is None:
            yield replace(trial, specs=substituted(trial.specs, trial.guessed, asked))
    yield from _at_one_number(search, trial)
    longer = _as_unpacked(search, trial, problem)
    if longer is not None:
        yield longer
        yield as_returned(search, longer)
    for place, (unknown, one) in enumerate(search.rows(trial)):
        if one.rank is not None and one.rank > 1 and is_float(one):  # all fits a number
            rank = one.rank - 1
            chosen = put(
                trial.chosen, place, replace(one, rank=rank, price=price_of(unknown, rank))
            )
            if chosen not in shorter:
                shorter.add(chosen)
                other, _ = search.forward(chosen)
                if other is not None:
                    yield other


def _apart(conditions: Sequence[SizeCondition]) -> dict[Any, Dim]:
    """What the larger one of two sizes is, where their order is the only condition."""
    for one in conditions if len(conditions) == 1 else ():
        less, more = (one.left, one.right) if "<" in one.relation else (one.right, one.left)
        ordered = one.relation in ("<", "<=", ">", ">=")
        if ordered and isinstance(less.atom, Size) and isinstance(more.atom, Size):
            return {more.atom: less + more - (1 if "=" in one.relation else 0)}
    return {}


def _at_one_number(search: Search, trial: Trial) -> Iterator[Trial]:
    """With one number for all sizes that Python has to know: a window may have to fit.

    The shapes name it, since backward is known to fail at others.
    """
    for value in (3, 2) if trial.tried else ():
        specs = trial.specs
        for at, axis in itertools.chain(*trial.tried):
            spec = specs[at]
            assert spec is not None
            if spec.dims[axis].constant is not None:
                dims = put(spec.dims, axis, Dim.of(value))
                specs = put(specs, at, replace(spec, dims=dims))
        yield replace(trial, specs=specs, tried=frozenset())


def _as_unpacked(search: Search, trial: Trial, problem: SymgradError | None) -> Trial | None:
    """With as many axes as backward takes a shape apart into, or names."""
    text = str(problem)
    if counts := _UNPACKED.search(text):  # b, h, n, d = x.shape
        wanted, had = int(counts[1]), int(counts[2])
    elif counts := _BEYOND.search(text):  # g.sum((0, 2, 3))
        ranks = [one.rank or 0 for one in trial.chosen]
        had = int(counts[2]) if int(counts[2]) in ranks else max(ranks)
        wanted = min(max(int(counts[1]) + 1, named_axes(search.function)), MOST_UNPACKED)
    else:
        return None
    chosen = tuple(
        replace(one, rank=wanted, price=price_of(unknown, wanted)) if one.rank == had else one
        for unknown, one in search.rows(trial)
    )
    return search.forward(chosen)[0]


def as_returned(search: Search, found: Trial) -> Trial:
    """The same with tensors of as many axes as their gradients have.

    torch raises an error where a gradient has fewer elements than its argument, and JAX where
    it has another shape.
    """
    _, graphs = search.forward(found.chosen)
    returned = {} if graphs is None else {
        one.input: one.returned.rank for case in graphs.cases for one in case.gradients
        if one.problem is not None and one.returned is not None
    }  # fmt: skip
    for case in () if graphs is None else graphs.cases:
        raised = case.problem
        if isinstance(raised, ShapeError) and raised.gradient and raised.rank is not None:
            returned[raised.gradient] = raised.rank
    chosen = list(found.chosen)
    for place, (unknown, one) in enumerate(search.rows(found)):
        rank = returned.get(unknown.name)
        known = [other.rank for other in unknown.candidates]
        if rank is not None and rank in known and one.rank is not None and rank < one.rank:
            chosen[place] = replace(one, rank=rank, price=price_of(unknown, rank))
    other = None if tuple(chosen) == found.chosen else attempt(search, tuple(chosen))
    if other is None or other.failing or (has_axes(found) and not has_axes(other)):
        return found
    return other


def with_integers(search: Search, found: Trial) -> Trial | None:
    """The same with integers for floats without a gradient that are compared by ``==``."""
    graphs, _ = search.trace(found)
    names = NONE if graphs is None else compared_labels(graphs)
    chosen = tuple(
        next((it for it in unknown.candidates if (it.rank, it.dtype) == (one.rank, int64)), one)
        if unknown.name in names and is_float(one)
        else one
        for unknown, one in search.rows(found)
    )
    return None if chosen == found.chosen else cheapest_fitting(search, [chosen])


def _masks(search: Search, found: Trial) -> Iterator[tuple[str, list[tuple[Candidate, ...]]]]:
    """Integers whose names say no index, with what is tried where they are a mask."""
    for at, (unknown, own) in enumerate(search.rows(found)):
        masks = [one for one in unknown.candidates if one.dtype == bool_]
        if own.dtype == int64 and own.rank and masks and not INDICES.search(unknown.name):
            yield unknown.name, [put(found.chosen, at, one) for one in masks]


def _with_mask(search: Search, found: Trial) -> Trial | None:
    """The same with a mask for such integers, where both fit."""
    for _, masks in _masks(search, found):
        if (other := cheapest_fitting(search, masks)) is not None:
            return other
    return None


def unread_masks(search: Search, found: Trial) -> str:
    """Which of these forward takes as a mask, but symgrad does not trace it; or nothing."""
    for name, masks in _masks(search, found):
        search.refusals = []
        tried = [search.forward(chosen)[1] for chosen in masks]
        problems = [*search.refusals, *(problem_of(graphs) for graphs in tried if graphs)]
        untraced = [one for one in problems if isinstance(one, SelectedShapeError)]
        if untraced and None not in problems:
            return f"where {name} holds truth values, this is not traced: {untraced[0].what}"
    return ""
