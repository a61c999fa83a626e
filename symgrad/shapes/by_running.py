"""Shapes that are found by running the class itself, on tensors of a few elements.

In: a search that has found nothing for which backward runs and fits.  Out: combinations for which
both methods of the class run, in its own library, and each gradient has its argument's shape.

A call takes less than a millisecond, so thousands are made where a trace would allow for ten.  A
step changes the shape of one argument, or of several that have one shape or a part of their name
in common, or another value; the next step is taken from where the class came farthest.  What was
found is made as general as the class allows.  The calls are made in a child process, and nothing
but shapes comes out of it: these are traced, and judged, as all others are.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from symgrad.budgets import (
    ATTEMPT_MEMORY,
    ATTEMPT_SECONDS,
    ATTEMPT_WAIT,
    MOST_ATTEMPTS,
    SHAPE_STEPS,
)
from symgrad.children import POSSIBLE, ChildEnded, in_child
from symgrad.frontend.evidence import Parameter, parameters
from symgrad.frontend.function import class_of
from symgrad.frontend.guests import Guest, Reached, Sized
from symgrad.frontend.spec import TensorSpec
from symgrad.ir.dim import Dim
from symgrad.plain_values import described
from symgrad.shapes.candidates import Candidate
from symgrad.shapes.outcomes import calls_what_is_no_function, refusal_of
from symgrad.shapes.sizes import Step, following
from symgrad.shapes.tracing import Search
from symgrad.shapes.trial import Trial, is_float, price_of, put
from symgrad.shapes.trying import has_gradients, wants_items, weighed

Axes = tuple[int, ...]
"""The axes of a tensor: which size each has, by a number of its own; -1 for the size 1."""
Choice = tuple[int, Axes | None]
"""What stands for an argument: the place of a candidate, and the axes of a tensor."""
SIZES = (4, 6, 2, 8, 10, 12, 14, 16)
"""Even ones, which can be halved; the usual first."""
_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
USUAL: tuple[Axes, ...] = ((), (0,), (0, 1), (0, 1, 2), (0, 1, 2, 3))


def run_shapes(search: Search, found: Trial | None) -> Trial | None:
    """A trial for which the class runs and its gradients fit, near to what was found.

    None where there is none, or the class cannot be run.
    """
    original = getattr(class_of(search.function), "symgrad_original", None)
    if search.guest is None or search.guest.spawns or original is None or not POSSIBLE:
        return None
    passed = [one for one in parameters(search.function) if one.kind in _BY_PLACE]
    names = [one.name for one in search.unknowns]
    is_like = found is None or len(found.chosen) == len(names)
    if search.partly or not is_like or not {*names} <= {one.name for one in passed}:
        return None
    if any(one.complex for unknown in search.unknowns for one in unknown.candidates):
        return None
    climb = _Climb(search, original, passed, found)
    try:
        best = in_child(
            climb.best, cpu=2 * ATTEMPT_SECONDS, wall=ATTEMPT_WAIT, memory=ATTEMPT_MEMORY
        )
    except ChildEnded:
        return None
    return next(filter(None, (_traced(search, choices) for choices in best)), None)


def _traced(search: Search, choices: Sequence[Choice]) -> Trial | None:
    """The trial of what was found; None for what forward refuses where it is traced.

    With as few numbers for sizes as forward needs: none, one, or all.
    """
    sizes = sorted({axis for _, axes in choices for axis in axes or () if axis >= 0})
    for known in ((), *((one,) for one in sizes), sizes):
        trial = _trial(search, choices, known)
        if trial is not None:
            return trial
    return None


def _trial(search: Search, choices: Sequence[Choice], known: Collection[int]) -> Trial | None:
    """The same at the sizes that forward needs; ``known``: those that are numbers."""
    chosen, specs = [], []
    for unknown, (at, axes) in zip(search.unknowns, choices, strict=True):
        one = unknown.candidates[at]
        if axes is not None:
            price = price_of(unknown, len(axes), one.dtype)
            one = replace(one, rank=len(axes), price=price)
        dims = tuple(
            Dim.of(_size(axis)) if axis < 0 or axis in known else Dim.size(f"s{axis}")
            for axis in axes or ()
        )
        specs.append(one.spec if one.rank is None else TensorSpec(dims, one.dtype))
        chosen.append(one)
    step = Step(tuple(specs))
    for _ in range(SHAPE_STEPS):
        trial = Trial(tuple(chosen), step.specs, tried=step.tried, uneven=step.uneven)
        graphs, error = search.trace(trial)
        error = error if graphs is None else refusal_of(graphs)
        if graphs is not None and error is None:
            odd = calls_what_is_no_function(graphs) or wants_items(search, trial, graphs)
            is_meant = has_gradients(search, trial, graphs) and not odd
            return weighed(search, trial, graphs) if is_meant else None
        after = None if error is None else following(step, trial.guessed, error)
        if after is None:
            return None
        step = after
    return None


@dataclass(frozen=True)
class _State:
    """What stands for the arguments, and how far the class came with it."""

    choices: tuple[Choice, ...]
    reached: Reached
    score: tuple[int, ...]
    changes: int

    def __lt__(self, other: _State) -> bool:
        """Is it to be looked at first?  The class came farther, or it is nearer to the start."""
        return (self.score, -self.changes) > (other.score, -other.changes)


class _Climb:
    """Steps from shapes to shapes, each time from where the class came farthest."""

    def __init__(
        self, search: Search, original: Any, passed: Sequence[Parameter], found: Trial | None
    ) -> None:
        assert search.guest is not None
        self.guest: Guest = search.guest
        self.original, self.is_first = original, found is None
        self.farthest: tuple[int, ...] = (-1,)
        self.unknowns = search.unknowns
        self.kinds = [[_kind(one) for one in unknown.candidates] for unknown in self.unknowns]
        self.start = tuple(_first(search, at, found) for at in range(len(self.unknowns)))
        own = {one.name: at for at, one in enumerate(self.unknowns)}
        self.order = [
            (one.name, own.get(one.name), search.static.get(one.name, one.default))
            for one in passed
        ]  # fmt: skip
        self.floats = [
            at for at, one in enumerate(self.unknowns)
            if any(map(is_float, one.candidates))
        ]  # fmt: skip

    def best(self) -> list[tuple[Choice, ...]]:
        """What the class takes, and its gradients fit, with tensors for numbers and without.

        Nothing where none was found in time.
        """
        self.attempts = self.guest.attempts(self.original)
        self.ends = time.process_time() + ATTEMPT_SECONDS
        self.left = MOST_ATTEMPTS
        seen, best = {self.start}, None
        todo = [self._state(self.start, 0)]
        while todo and self._goes_on:
            state = heapq.heappop(todo)
            if self._fits(state):
                if best is not None and self._quality(state) <= self._quality(best):
                    continue
                best = state
            for choices in self._steps(state.choices):
                if choices not in seen and self._goes_on:
                    seen.add(choices)
                    heapq.heappush(todo, self._state(choices, state.changes + 1))
        every = [one for one in (best, *todo) if one is not None and self._fits(one)]
        if not every and self.is_first:  # at least forward takes it
            every = [one for one in todo if one.score[0] > 0]
        if not every:
            return []
        found = max(every, key=lambda one: (one.score[0], *self._quality(one)))
        general = self._general(found)
        return [general, self._plain(general)]

    def _quality(self, state: _State) -> tuple[int, ...]:
        """The greater, the rather it is meant: usual values, gradients that fit, few steps."""
        shapes = [axes for _, axes in state.choices if axes is not None]
        odd = sum(self._price(at, place) for at, (place, _) in enumerate(state.choices))
        fitting = sum(
            bool(state.choices[at][1]) and self._fit(at, state.choices[at], state.reached) == 2
            for at in self.floats
        )
        ones = sum(axes.count(-1) for axes in shapes)
        return (
            -odd, -ones, state.score[1], fitting, -state.changes, -sum(map(len, shapes)),
        )  # fmt: skip

    def _price(self, at: int, place: int) -> int:
        """How much dearer its kind is than the cheapest, whatever the rank."""
        candidates, kinds = self.unknowns[at].candidates, self.kinds[at]
        own = [one.price for one, kind in zip(candidates, kinds, strict=True)
               if kind == kinds[place]]  # fmt: skip
        return min(own) - min(one.price for one in candidates)

    @property
    def _goes_on(self) -> bool:
        """Is there time left, and did one of the last calls come farther than all before?"""
        return self.left > 0 and time.process_time() < self.ends

    def _state(self, choices: tuple[Choice, ...], changes: int) -> _State:
        """How far the class comes: with how many gradients that fit, over how many steps."""
        self.left -= 1
        arguments = [
            (name, default if at is None else self._argument(at, choices[at]))
            for name, at, default in self.order
        ]  # fmt: skip
        reached = self.attempts.reached(arguments)
        fitting = [self._fit(at, choices[at], reached) for at in self.floats]
        if not any(choices[at][1] for at in self.floats):
            score: tuple[int, ...] = (-1,)  # everything fits a number
        elif reached.stage < 2:
            score = (reached.stage, 0, 0, reached.steps)
        else:
            score = (2, min(fitting), sum(fitting), reached.steps)
        if score > self.farthest:
            self.farthest, self.left = score, MOST_ATTEMPTS
        return _State(choices, reached, score, changes)

    def _argument(self, at: int, choice: Choice) -> Any:
        place, axes = choice
        one = self.unknowns[at].candidates[place]
        if axes is not None:
            return Sized(tuple(_size(axis) for axis in axes), str(one.dtype or "float"))
        return 0.5 if one.constant else one.value

    def _fit(self, at: int, choice: Choice, reached: Reached) -> int:
        """2: the gradient of an argument has its shape; 1: torch sums it; 0: it is refused."""
        name, axes = self.unknowns[at].name, choice[1]
        sizes = reached.gradients.get(name)
        if sizes is None:
            return 2
        if axes is None or not is_float(self.unknowns[at].candidates[choice[0]]):
            return 0
        own = tuple(_size(axis) for axis in axes)
        if sizes == own:
            return 2
        tail = sizes[len(sizes) - len(own) :]
        return int(len(sizes) >= len(own) and all(
            mine in (1, its) for mine, its in zip(own, tail, strict=True)
        ))  # fmt: skip

    def _fits(self, state: _State) -> bool:
        """Is every gradient one that torch takes, and is there one of a tensor with axes?"""
        made = state.reached.gradients
        return state.score[:1] == (2,) and bool(state.score[1]) and any(
            state.choices[at][1] and made.get(self.unknowns[at].name) is not None
            for at in self.floats
        )  # fmt: skip

    # -- steps

    def _steps(self, choices: tuple[Choice, ...]) -> Iterator[tuple[Choice, ...]]:
        """What is near: other axes for an argument or several, and other arguments at first.

        What was found before keeps its values: at others a mistake may not show.
        """
        shapes, known = self._shapes(choices), [axes for _, axes in choices if axes]
        for group in self._groups(choices):
            numbers = all(self._may_be_number(at, choices[at][0]) for at in group)
            for axes in shapes:
                if axes or numbers:
                    yield tuple(
                        (place, axes) if at in group else (place, own)
                        for at, (place, own) in enumerate(choices)
                    )
        for at, unknown in enumerate(self.unknowns if self.is_first else ()):
            kinds: dict[Any, int] = {}
            for place, one in enumerate(unknown.candidates):
                kind = place if one.rank is None else self.kinds[at][place]
                if not one.absent:
                    kinds.setdefault(kind, place)
            for place in kinds.values():
                one = unknown.candidates[place]
                if one.rank is None or one.constant:
                    yield put(choices, at, (place, None))
                elif choices[at][1] is None or one.dtype != self._dtype(at, choices[at]):
                    for axes in dict.fromkeys((*USUAL[1:3], *known)):
                        yield put(choices, at, (place, axes))

    def _may_be_number(self, at: int, place: int) -> bool:
        """Is a tensor without axes among the candidates of its kind?  A bias is none."""
        kinds = self.kinds[at]
        pairs = zip(self.unknowns[at].candidates, kinds, strict=True)
        return any(one.rank == 0 and kind == kinds[place] for one, kind in pairs)

    def _dtype(self, at: int, choice: Choice) -> Any:
        return self.unknowns[at].candidates[choice[0]].dtype

    def _groups(self, choices: tuple[Choice, ...]) -> list[tuple[int, ...]]:
        """Tensors that change together: each alone, those of one shape, of like names, all."""
        tensors = [at for at, (_, axes) in enumerate(choices) if axes is not None]
        names = [one.name.rstrip("0123456789").split("_") for one in self.unknowns]
        alike: list[dict[Any, list[int]]] = [{}, {}, {}, {}]
        for at in tensors:
            for groups, key in zip(
                alike, (choices[at], names[at][0], names[at][-1], 0), strict=True
            ):
                groups.setdefault(key, []).append(at)
        every: list[tuple[int, ...]] = [(at,) for at in tensors]
        every += [tuple(some) for groups in alike for some in groups.values()]
        return list(dict.fromkeys(every))

    def _shapes(self, choices: tuple[Choice, ...]) -> list[Axes]:
        """Axes to try: the usual ones, and parts of those that tensors have."""
        found: dict[Axes, None] = dict.fromkeys(USUAL)
        known = {axes: None for _, axes in choices if axes}
        fresh = max((axis for axes in known for axis in axes), default=-1) + 1
        for axes in known:
            near = [axes, axes[::-1], (*axes, fresh), (fresh, *axes)]
            near += [axes[first:last] for first, last in
                     itertools.combinations(range(len(axes) + 1), 2)]  # fmt: skip
            for place in range(len(axes)):
                near += [put(axes, place, -1), (*axes[:place], *axes[place + 1 :])]
            found.update(dict.fromkeys(near))
        return [axes for axes in found if all(axis < len(SIZES) for axis in axes)]

    # -- more general ones

    def _general(self, state: _State) -> tuple[Choice, ...]:
        """The same with a size of its own for each axis that needs no other."""
        choices = state.choices
        for at, axis in ((at, axis) for at, (_, axes) in enumerate(choices) if axes
                         for axis in range(len(axes))):  # fmt: skip
            place, axes = choices[at]
            assert axes is not None
            taken = [one for _, some in choices for one in some or ()]
            fresh = next((one for one in range(len(SIZES)) if one not in taken), None)
            if fresh is not None and (axes[axis] < 0 or taken.count(axes[axis]) > 1):
                other = put(choices, at, (place, put(axes, axis, fresh)))
                if self._state(other, 0).score[:3] >= state.score[:3]:
                    choices = other
        return choices

    def _plain(self, choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
        """The same with numbers that are none of torch's, where there may be some."""
        found = list(choices)
        for at, (place, axes) in enumerate(choices):
            candidates = self.unknowns[at].candidates
            if axes == () and not candidates[place].constant:
                numbers = [
                    other for other, one in enumerate(candidates)
                    if one.constant or type(one.value) in (int, float)
                ]  # fmt: skip
                found[at] = (numbers[0], None) if numbers else (place, axes)
        return tuple(found)


def _first(search: Search, at: int, found: Trial | None) -> Choice:
    """What the climb begins with: what was found, else the cheapest."""
    candidates = search.unknowns[at].candidates
    if found is None:
        one = candidates[0]
        is_tensor = one.rank is not None and not one.constant
        return 0, tuple(range(one.rank or 0)) if is_tensor else None
    chosen, spec = found.chosen[at], found.specs[at]
    place = next((place for place, one in enumerate(candidates) if _kind(one) == _kind(chosen)), 0)
    if chosen.rank is None or chosen.constant or spec is None:
        return place, None
    every = list(dict.fromkeys(
        str(dim) for spec in found.specs if spec is not None for dim in spec.dims
    ))  # fmt: skip
    axes = tuple(-1 if dim.constant == 1 else every.index(str(dim)) for dim in spec.dims)
    return place, tuple(min(axis, len(SIZES) - 1) for axis in axes)


def _kind(one: Candidate) -> tuple[Any, ...]:
    """What it is, whatever the rank."""
    value = None if one.rank is not None else described(one.value)
    return one.rank is None, one.dtype, one.constant, one.absent, value


def _size(axis: int) -> int:
    return 1 if axis < 0 else SIZES[axis]
