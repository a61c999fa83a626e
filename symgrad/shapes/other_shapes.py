"""Other shapes that are judged beside those that were found: ranks, repeated axes, free sizes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from symgrad.budgets import MOST_OTHER_SHAPES, SHAPE_STEPS
from symgrad.frontend.evidence import (
    MOST_UNPACKED,
    counts_axes,
    named_axes,
    numbers_the_last,
)
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import bool_, int64
from symgrad.shapes.candidates import RANKS, Candidate
from symgrad.shapes.found import at_uneven
from symgrad.shapes.outcomes import (
    fits_backward,
    larger_gradients,
    problem_of,
    refusal_of,
    work_done,
)
from symgrad.shapes.sizes import Places, Step, following
from symgrad.shapes.tracing import Search
from symgrad.shapes.trial import Trial, axes_of, is_float, is_part, oddities, price_of, put
from symgrad.shapes.trying import at_numbers, attempt

MOST_TIED = 2
"""Shapes of other ranks that are judged where backward takes these with two sizes as one alone."""
MOST_LOOSE = 4
"""Shapes that are judged in which sizes are not one that forward does not need to be."""
MOST_SUMMED = 9
"""Shapes of repeated tensors that are judged where PyTorch sums a gradient that is larger."""
MOST_PAIRS = 6
"""Shapes of two repeated tensors that are judged."""


def at_other_shapes(
    search: Search, found: Trial, ranks: Sequence[Trial]
) -> list[tuple[Trial, dict[str, Any]]]:
    """Other shapes that are judged, with what ``Guess`` says of them."""
    uneven = [] if found.failing else at_uneven(search, found)[0]
    loose = [] if found.failing else _loosened(search, [found, *ranks])
    others = [(one, {"accident": _leaves_labels(search, found, one)}) for one in ranks]
    shapes: list[tuple[Trial, dict[str, Any]]] = [*others[:MOST_OTHER_SHAPES]]
    for one in _at_which_it_fails(search, found):
        meant = _is_meant(search, found, one)
        shapes.append((one, {"accident": not meant, "written": meant}))
    special = [*_with_more_indices(search, found)]
    untied = search.untied.get((found.chosen, found.specs), found)
    special += [untied] if untied.specs != found.specs else []
    shapes += [(one, {"accident": True}) for one in special]
    shapes += [(one, {"accident": not one.fits, "written": one.fits}) for one in loose]
    for one, summed, alike in () if found.failing else _with_repeated(search, found, ranks):
        said = {"accident": not (alike or summed), "written": alike, "summed": summed}
        shapes.append((one, said))
    return [*shapes, *((one, {"accident": True}) for one in uneven)]


def _leaves_labels(search: Search, found: Trial, other: Trial) -> bool:
    """Have tensors more axes than those that were found, and their labels, or masks, as many?"""
    more = any(
        len(its.dims) > len(own.dims)
        for own, its in zip(found.specs, other.specs, strict=True) if own and its
    )  # fmt: skip
    return more and any(
        found.chosen[at].rank == other.chosen[at].rank
        for at in (*_label_places(search, found), *_mask_places(found))
    )


def _mask_places(trial: Trial) -> list[int]:
    """The places of masks that have the shape of a tensor."""
    rows = list(zip(trial.chosen, trial.specs, strict=True))
    shapes = [spec.dims for one, spec in rows if spec is not None and is_float(one)]
    return [
        at for at, (one, spec) in enumerate(rows)
        if one.dtype == bool_ and spec is not None and spec.dims in shapes
    ]  # fmt: skip


def _label_places(search: Search, trial: Trial) -> set[int]:
    """The places of integers whose axes are some of those of a tensor, in order."""
    rows = list(zip(trial.chosen, trial.specs, strict=True))
    shapes = [spec.dims for one, spec in rows if spec is not None and is_float(one)]
    return {
        at for at, (one, spec) in enumerate(rows)
        if one.dtype == int64 and one.rank and spec
        and any(is_part(spec.dims, shape) for shape in shapes)
    }  # fmt: skip


def at_other_ranks(search: Search, best: Trial) -> Iterator[Trial]:
    """What fits beside the best, the cheapest first: tensors of other ranks.

    Those with as many axes as the program names come before.
    """
    found = [one for one in _at_ranks(search, best) if not (one.failing or one.hidden)]

    def order(one: Trial) -> tuple[bool, int]:
        return all((it.rank or 0) <= RANKS[-1] for it in one.chosen), one.price

    yield from sorted(found, key=order)


def _at_which_it_fails(search: Search, best: Trial) -> Iterator[Trial]:
    """Other ranks that forward takes, and backward does not: with more axes, the cheapest.

    Where backward takes them once two sizes are one, a mistake shows in no error.
    """
    failing = [one for one in _at_ranks(search, best) if one.failing]
    failing.sort(key=lambda one: one.price)
    tied = filter(None, (_as_backward_ties(search, one) for one in failing[:MOST_OTHER_SHAPES]))
    yield from itertools.islice(tied, MOST_TIED)
    more = [
        one for one in failing if axes_of(one) > axes_of(best) and oddities(one) <= oddities(best)
    ]
    yield from more[:1]


def _is_meant(search: Search, found: Trial, other: Trial) -> bool:
    """Is backward written for other shapes, as forward is: for any number of axes?

    Each gradient has its argument's shape.  Axes are counted from the last one, and not those of
    forward from the first; and no tensor that was found has two axes, for which a program may be
    meant.
    """
    open_ranks = numbers_the_last(search.function) and not counts_axes(search.function)
    is_vector = all((one.rank or 0) < 2 for one in found.chosen)
    if axes_of(other) <= axes_of(found) or not (open_ranks and is_vector):
        return False
    graphs, _ = search.trace(other)
    return graphs is not None and fits_backward(graphs)


def _with_more_indices(search: Search, best: Trial) -> Iterator[Trial]:
    """The same with one axis more of an index, as in ``x[index[0], index[1]]``."""
    labels = _label_places(search, best)
    for at, (unknown, one) in enumerate(search.rows(best)):
        if one.dtype == int64 and one.rank and at not in labels:
            rank = one.rank + 1
            price = price_of(unknown, rank, int64)
            other = attempt(search, put(best.chosen, at, replace(one, rank=rank, price=price)))
            if other is not None and not (other.failing or other.hidden):
                yield other


def _as_backward_ties(search: Search, trial: Trial) -> Trial | None:
    """The same with sizes that meet in backward as one; None where it fails for all that."""
    for _ in range(SHAPE_STEPS):
        graphs, _ = search.trace(trial)
        if graphs is None:
            return None
        problem = problem_of(graphs)
        if problem is None:
            return trial
        step = following(
            Step(trial.specs, tried=trial.tried, uneven=trial.uneven), trial.guessed, problem
        )
        if step is None or step.tried != trial.tried or step.uneven != trial.uneven:
            return None
        trial = replace(trial, specs=step.specs)
    return None


def _at_ranks(search: Search, best: Trial) -> list[Trial]:
    """What forward takes beside the best: tensors of other ranks.

    Tensors of one shape change together; then all do.  A number stays what it is.
    """
    groups: dict[Any, dict[int, int]] = {}
    for position, (one, spec) in enumerate(zip(best.chosen, best.specs, strict=True)):
        if one.rank is not None and one.dtype is None and not one.constant:
            shape = spec.dims if spec is not None and spec.dims else position
            groups.setdefault(shape, {})[position] = one.rank
    every = {position: rank for group in groups.values() for position, rank in group.items()}
    named = named_axes(search.function)
    ranks = (*RANKS, *([named] if RANKS[-1] < named <= MOST_UNPACKED else []))
    changes = [dict.fromkeys(group, rank) for rank in ranks for group in groups.values()]
    changes += [{at: rank + by for at, rank in every.items()} for by in (1, -1)]
    integers = {at: one.rank for at, one in enumerate(best.chosen)
                if one.dtype == int64 and one.rank}  # fmt: skip
    for by in (1, -1) if integers else ():
        labels = {at: rank + by for at, rank in integers.items()}
        changes += [{**{at: rank + by for at, rank in every.items()}, **labels}, labels]
    trials: dict[tuple[Candidate, ...], Trial | None] = {best.chosen: None}
    for change in changes:
        chosen = tuple(
            replace(
                one, rank=change[at],
                price=price_of(search.unknowns[at], change[at], best.chosen[at].dtype),
            ) if at in change else one
            for at, one in enumerate(best.chosen)
        )  # fmt: skip
        if set(change.values()) <= set(ranks) and chosen not in trials:
            trial = trials[chosen] = attempt(search, chosen)
            if trial and not change.keys() & integers.keys() <= _label_places(search, trial):
                trials[chosen] = None
    return [one for one in trials.values() if one]


def _with_repeated(
    search: Search, found: Trial, others: Sequence[Trial]
) -> Iterator[tuple[Trial, str, bool]]:
    """The same with tensors that are repeated along axes; their names if torch sums.

    They have the size 1 there, or lack axes in front, beside tensors that have these sizes.
    Backward is written for it, which is said last, where no other gradient is larger than its
    argument, and something is done for it that is not done for the shape found.  Else three
    such shapes of each tensor are enough: with the size 1 in front or last, and with fewer
    axes.  With more axes than were found, backward may be written for fewer of them.  Two at once
    are tried where forward takes each alone, until torch sums once for both, or where something
    else is done for one of them.
    """
    longer = [one for one in others if axes_of(one) > axes_of(found) and one.kinds == found.kinds]
    summed, pairs = Counter[str](), 0
    for trial in (found, *longer[:1]):
        refused, plain = set[Shaped](), set[Shaped]()
        for dims, alike in _repeatable(trial, both=trial is found):
            alone = dims.items()
            names = {search.unknowns[at].name for at in dims}
            label = " and ".join(sorted(names))
            if len(dims) > 1 and (
                pairs >= MOST_PAIRS or refused & alone or (alone <= plain and summed[label])
            ):
                continue
            other = _with_shapes(search, trial, dims)
            graphs, _ = search.trace(other)
            if graphs is None or refusal_of(graphs) or problem_of(graphs):
                refused |= alone
                continue
            larger = larger_gradients(graphs)
            if not larger <= names:
                continue
            if work_done(graphs) - work_done(search.trace(trial)[0]):
                pairs += len(dims) > 1
                yield other, "", alike
                continue
            plain |= alone
            if larger and trial is found and summed.total() < MOST_SUMMED:
                ((at, one), *more) = alone
                spec = trial.specs[at]
                assert spec is not None
                if not summed[label] if more else one in _shown(spec.dims):
                    summed[label] += 1
                    yield other, label, False


Shaped = tuple[int, tuple[Dim, ...]]
"""A tensor by its place, and another shape of it."""


def _with_shapes(search: Search, trial: Trial, shapes: Mapping[int, tuple[Dim, ...]]) -> Trial:
    """The same with other shapes of some tensors, by their places."""
    for at, dims in shapes.items():
        spec, price = trial.specs[at], price_of(search.unknowns[at], len(dims))
        assert spec is not None
        one = replace(trial.chosen[at], rank=len(dims), price=price)
        trial = replace(
            trial, chosen=put(trial.chosen, at, one),
            specs=put(trial.specs, at, replace(spec, dims=dims)),
            tried=_moved(trial.tried, at, spec.dims, dims),
            uneven=_moved(trial.uneven, at, spec.dims, dims),
        )  # fmt: skip
    return trial


def _loosened(search: Search, trials: Sequence[Trial]) -> list[Trial]:
    """The same with other sizes for those that are one, where forward takes them."""
    found: list[Trial] = []
    for trial, loose in itertools.product([one for one in trials if one.tied], (1, 2)):
        if len(found) == MOST_LOOSE:
            break
        search.loose = loose
        other, graphs = search.forward(trial.chosen)
        if other is not None and graphs is not None:
            other, graphs = at_numbers(search, other, graphs)
            if other.specs not in [one.specs for one in (*trials, *found)]:
                found.append(replace(other, fits=fits_backward(graphs)))
    search.loose = 0
    return found


def _shown(shape: tuple[Dim, ...]) -> list[tuple[Dim, ...]]:
    """Of shapes that are repeated to one: the size 1 in front or last, and an axis less."""
    one = Dim.of(1)
    return [(one, *shape[1:]), (*shape[:-1], one), shape[1:]]


def _repeatable(trial: Trial, *, both: bool) -> Iterator[tuple[dict[int, tuple[Dim, ...]], bool]]:
    """Shapes, by places, of tensors that are repeated beside others; have these been alike?

    ``both``: also of two tensors at once, each beside the other, or beside a third one.
    """
    rows = zip(trial.chosen, trial.specs, strict=True)
    shapes = {at: spec.dims for at, (one, spec) in enumerate(rows)
              if spec is not None and is_float(one) and one.rank and not one.complex}  # fmt: skip
    every = Counter(shapes.values())
    sizes = {at: {dim for it, dims in shapes.items() if it != at for dim in dims} for at in shapes}
    for at, shape in shapes.items():
        for dims in _repeated_to(shape):
            if every[shape] > 1 or {*shape} - {*dims} <= sizes[at]:
                yield {at: dims}, every[shape] > 1
    pairs = [
        (one, other) for one, other in itertools.combinations(shapes, 2)
        if both and shapes[one] == shapes[other] and len(shapes[one]) > 1
    ]  # fmt: skip
    for way in itertools.product(range(3), repeat=2):
        for one, other in pairs:
            shown = _shown(shapes[one])
            if way[0] != way[1] or every[shapes[one]] > 2:
                yield {one: shown[way[0]], other: shown[way[1]]}, True


def _moved(
    every: frozenset[Places], at: int, old: Sequence[Dim], new: Sequence[Dim]
) -> frozenset[Places]:
    """The places where they are once a tensor has other axes, of which the last ones are kept."""
    less = len(old) - len(new)
    moved = [
        frozenset(
            (place, axis - less if place == at else axis) for place, axis in places
            if place != at or (axis >= less and new[axis - less] == old[axis])
        )
        for places in every
    ]  # fmt: skip
    return frozenset(filter(None, moved))


def _repeated_to(shape: tuple[Dim, ...]) -> Iterator[tuple[Dim, ...]]:
    """Shapes that are repeated to one: an axis of size 1, or axes in front left out."""
    one = Dim.of(1)
    for axis, size in enumerate(shape):
        if size != one:
            yield put(shape, axis, one)
    for axis in range(len(shape)):
        yield shape[axis + 1 :]
