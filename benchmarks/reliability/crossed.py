"""Every path of an op's wrapper: each function of each case, with one thing amiss at each place.

In: a compiled op.  Out: ``Notes``.

Chance meets a path now and then; here every case is called with every trick for every input,
output, residual, cotangent, mask and plain argument, and with sizes that are large.
"""

from __future__ import annotations

import ast
import itertools
import random
from collections.abc import Iterator, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

import symgrad as sg
from benchmarks.reliability import hostile
from benchmarks.reliability.calls import Hostility, as_tuple, cotangent_of
from benchmarks.reliability.hostile import Trick
from benchmarks.reliability.notes import Notes
from symgrad.abi import all_sizes, shape_of
from symgrad.errors import SymgradError
from symgrad.runtime.residuals import serves
from symgrad.runtime.workspace import workspace

_EXTENTS = (3, 2, 5, 4, 1, 0, 6, 8)
_BATCHES = ((2, 3), (3,), (), (1, 2), (0, 2), (2, 1, 2))
_LARGE = (9000, 9001, 1100, 1101, 300, 301, 40, 41)
_BEYOND = 2**31 + 8
_MOST_ELEMENTS = 100_000  # of an array
_MOST_TRIES = 4000  # of sizes
_MOST_UNSERVED = 200
_FEW = ("another dtype", "another rank", "another size", "no array", "misaligned")
THREADS = (1, 3)


class Crossing:
    """All calls of one op."""

    def __init__(self, op: Any, name: str, notes: Notes) -> None:
        self.op, self.notes = op, notes
        self.choice = random.Random(f"crossing {name}")
        self.hostility = Hostility(op, name, notes, self.choice)
        self.spec = op.module.OP

    def run(self) -> None:
        """Call every path."""
        for number in range(len(self.spec.cases)):
            examples = list(self._examples(number))
            self.notes.counts["crossing: cases"] += 1
            self.notes.counts["crossing: cases without sizes"] += not examples
            self._unserved(number)
            for kept, clean in examples:
                self._forward(clean)
                self._backward(number, clean)
                self._large(number, kept)
            self._beyond(number)

    # -- sizes

    def _examples(self, number: int) -> Iterator[tuple[list[Any], list[Any]]]:
        """Sizes and inputs that the case serves and none before it: generic ones, empty ones."""
        case = self.spec.cases[number]
        extents = [_BATCHES if size.startswith("*") else _EXTENTS for size in case.sizes]
        found: set[bool] = set()
        combinations = sorted(
            itertools.islice(itertools.product(*map(range, map(len, extents))), _MOST_TRIES),
            key=sum,
        )
        for places in combinations:
            kept = [values[place] for values, place in zip(extents, places, strict=True)]
            clean = self._inputs(number, kept)
            if clean is None:
                continue
            empty = any(array.size == 0 for array in clean)
            if empty not in found:
                found.add(empty)
                yield kept, clean
            if len(found) == 2:
                return

    def _sizes(self, case: Any) -> Iterator[list[Any]]:
        """Sizes of a case, whether it serves them or not, the most generic first."""
        extents = [_BATCHES if size.startswith("*") else _EXTENTS for size in case.sizes]
        places = itertools.islice(itertools.product(*map(range, map(len, extents))), _MOST_TRIES)
        for some in sorted(places, key=sum):
            yield [values[place] for values, place in zip(extents, some, strict=True)]

    def _unserved(self, number: int) -> None:
        """Inputs whose ranks are right: of every few sizes, served or not."""
        case = self.spec.cases[number]
        for kept in itertools.islice(self._sizes(case), _MOST_UNSERVED):
            try:
                sizes = all_sizes(case, kept)
                clean = [self.hostility.array(array, sizes) for array in case.inputs]
            except (ArithmeticError, ValueError):
                continue
            for call in (self.op.inference, self.op.forward):
                self.hostility.survives(partial(call, *clean), clean)

    def _beyond(self, number: int) -> None:
        """One size that a BLAS cannot count, beside one that is 0: arrays without elements."""
        case = self.spec.cases[number]
        for large, nothing in itertools.permutations(range(len(case.sizes)), 2):
            if any(case.sizes[at].startswith("*") for at in (large, nothing)):
                continue
            kept: list[Any] = [
                _BATCHES[0] if s.startswith("*") else _EXTENTS[0] for s in case.sizes
            ]
            kept[large], kept[nothing] = _BEYOND, 0
            try:
                sizes = all_sizes(case, kept)
                shapes = [shape_of(array, sizes) for array in (*case.inputs, *case.outputs)]
            except (ArithmeticError, ValueError):
                continue
            if all(prod(shape) <= _MOST_ELEMENTS for shape in shapes):
                clean = [self.hostility.array(array, sizes) for array in case.inputs]
                self.hostility.survives(partial(self.op.inference, *clean), clean)

    def _inputs(self, number: int, kept: list[Any]) -> list[Any] | None:
        """Inputs of these sizes; None where another case serves them, or none does."""
        case = self.spec.cases[number]
        try:
            sizes = all_sizes(case, kept)
            if not serves(case, sizes):
                return None
            wanted = [shape_of(array, sizes) for array in (*case.inputs, *case.outputs)]
            if any(extent < 0 for shape in wanted for extent in shape):
                return None
            clean = [self.hostility.array(array, sizes) for array in case.inputs]
            served, *_ = self.op.caller._case("crossing", clean)
        except (ArithmeticError, ValueError, SymgradError):
            return None
        return clean if served is case else None

    # -- forward

    def _forward(self, clean: list[Any]) -> None:
        ways = {
            "inference": (self.op.inference, self.op.inference),
            "forward": (
                lambda *a, **k: self.op.forward(*a, **k)[0], lambda *a: self.op.forward(*a)[0],
            ),
        }  # fmt: skip
        for way, (call, right) in ways.items():
            known = self.hostility.right(right, clean)
            if known is None:
                continue
            plain = [_clean(value) for value in clean]
            for tricks in self._one_amiss(plain, self._tricks):
                wanted = self.hostility.right(right, [trick.clean for trick in tricks])
                self.hostility.compute(way, call, tricks, wanted, [])
            workspace.release()
            self.hostility.compute(way, call, plain, known, [])
            for given in self._given(known, clean):
                self.hostility.compute(way, call, plain, known, given)
            for tricks, given in self._overlapping(plain, known):
                self.hostility.compute(way, call, tricks, known, given)
            room = [hostile.output(one, [], self.choice, "room").value for one in known]
            self._odd_outs(partial(call, *clean), room, clean)
            self._plain_arguments(call, clean)

    def _tricks(self, value: Any) -> Iterator[Trick]:
        """Every trick for an array."""
        for name in ("zero strides", *hostile.layouts(value)):
            yield hostile.same(value, self.choice, name)
        for name in hostile.BROKEN:
            for _ in range(3):
                yield hostile.broken(value, self.choice, name)
        if value.dtype == np.int64:
            yield hostile.misplaced(value, self.choice)

    def _few_tricks(self, value: Any) -> Iterator[Trick]:
        """Those that take different paths through a backward."""
        for name in _FEW:
            made = hostile.broken if name in hostile.BROKEN else hostile.same
            yield made(value, self.choice, name)

    def _one_amiss(self, tricks: list[Trick], kinds: Any) -> Iterator[list[Trick]]:
        """The tricks, with another one at each place that is an array."""
        for place, one in enumerate(tricks):
            if one.value is not None:
                for kind in kinds(one.value):
                    yield [*tricks[:place], kind, *tricks[place + 1 :]]

    def _given(self, known: Sequence[Any], taken: list[Any]) -> Iterator[list[Trick]]:
        """What to write into, with one of them amiss; nothing for what nobody wants."""
        right = [
            _nothing() if one is None else hostile.output(one, taken, self.choice, "room")
            for one in known
        ]
        yield right
        for place, wanted in enumerate(known):
            if wanted is None:
                continue
            for name in hostile.OUTPUTS:
                made = hostile.output(wanted, taken, self.choice, name)
                yield [*right[:place], made, *right[place + 1 :]]
            yield [*right[:place], _nothing(), *right[place + 1 :]]

    def _overlapping(
        self, tricks: list[Trick], known: Sequence[Any]
    ) -> Iterator[tuple[list[Trick], list[Trick]]]:
        """An input and what is written, or two of what is written, in the same memory."""
        room = [
            _nothing() if one is None else hostile.output(one, [], self.choice, "room")
            for one in known
        ]
        places = [place for place, one in enumerate(known) if one is not None and one.size]
        for place, (number, trick) in itertools.product(places, enumerate(tricks)):
            if trick.value is not None and trick.value.size:
                first, second = hostile.overlapping(trick.value, known[place])
                given = [*room[:place], Trick("over an input", second), *room[place + 1 :]]
                moved = Trick("moved", first, trick.clean)
                yield [*tricks[:number], moved, *tricks[number + 1 :]], given
        for one, other in itertools.combinations(places, 2):
            given = list(room)
            given[one], given[other] = (
                Trick("over an output", array)
                for array in hostile.overlapping(np.zeros_like(known[one]), known[other])
            )
            yield tricks, given

    def _odd_outs(self, call: Any, room: Sequence[Any], taken: list[Any]) -> None:
        """Containers that are none, or hold too few or too many."""
        odd: list[Any] = [list(room), (*room, room[0]), tuple(room[:-1]), (), 7, "out", room[0], {}]
        for out in odd:
            self.hostility.survives(partial(call, out=out), taken)

    def _plain_arguments(self, call: Any, clean: list[Any]) -> None:
        for value in self.spec.values:
            for given in (12345.678, "no value", np.ones(2), None, self._stated(value)):
                self.hostility.survives(partial(call, *clean, **{value.name: given}), clean)

    @staticmethod
    def _stated(value: Any) -> Any:
        try:
            return ast.literal_eval(value.text)
        except (ValueError, SyntaxError):
            return value.text

    # -- backward

    def _backward(self, number: int, clean: list[Any]) -> None:
        try:
            outputs, residuals = self.op.forward(*clean)
        except SymgradError:
            return
        cotangents = [_clean(cotangent_of(value)) for value in as_tuple(outputs)]
        masks = dict.fromkeys(one.mask for one in self.spec.cases[number].backward)
        empty = (False,) * len(self.spec.differentiable)
        right = self.hostility.right(self.op.backward, [residuals, *(t.value for t in cotangents)])
        if right is None:
            return
        nothing = partial(self.op.backward, residuals, needs_input_grad=empty)
        self.hostility.survives(partial(nothing, *(t.value for t in cotangents)), clean)
        for mask in (None, *masks):
            self._one_mask(number, clean, residuals, cotangents, right, mask)

    def _one_mask(
        self, number: int, clean: list[Any], residuals: Any, cotangents: list[Trick], right: Any,
        mask: Any,
    ) -> None:  # fmt: skip
        hostility = self.hostility
        wanted = [one if mask is None or mask[at] else None for at, one in enumerate(right)]
        kinds = self._tricks if mask is None else self._few_tricks
        hostility.differentiate(residuals, cotangents, mask)
        workspace.release()
        hostility.differentiate(residuals, cotangents, mask)
        for tricks in self._one_amiss(cotangents, kinds):
            hostility.differentiate(residuals, tricks, mask)
        for place in range(len(cotangents)):
            absent = [*cotangents[:place], _nothing(), *cotangents[place + 1 :]]
            hostility.differentiate(residuals, absent, mask)
        self._residuals(number, clean, residuals, cotangents, mask, kinds)
        taken = [*clean, *(one.value for one in cotangents)]
        for given in self._given(wanted, taken):
            hostility.differentiate_into(residuals, cotangents, wanted, given, taken, mask)
        for tricks, given in self._overlapping(cotangents, wanted):
            hostility.differentiate_into(residuals, tricks, wanted, given, [], mask)
        values = [one.value for one in cotangents]
        room = [None if one is None else np.zeros_like(one) for one in wanted]
        call = partial(self.op.backward, residuals, *values, needs_input_grad=mask)
        self._odd_outs(call, room, taken)

    def _residuals(
        self, number: int, clean: list[Any], residuals: Any, cotangents: list[Trick], mask: Any,
        kinds: Any,
    ) -> None:  # fmt: skip
        """Each array of the residuals changed, then each size."""
        values = [one.value for one in cotangents]
        kept, kind = list(residuals), type(residuals)
        for place, value in enumerate(kept):
            if isinstance(value, np.ndarray):
                found: Sequence[Any] = [trick.value for trick in kinds(value)]
            elif isinstance(value, tuple):
                found = _BATCHES
            else:
                found = (*_EXTENTS, -1, 2**62)
            for other in found:
                made = kind([*kept[:place], other, *kept[place + 1 :]])
                call = partial(self.op.backward, made, *values, needs_input_grad=mask)
                self.hostility.survives(call, clean)

    # -- large sizes

    def _large(self, number: int, kept: list[Any]) -> None:
        """One size large: sums in blocks and groups, with the same bits for any threads."""
        case = self.spec.cases[number]
        for place, size in enumerate(case.sizes):
            for extent in _LARGE:
                some = (2, extent) if size.startswith("*") else extent
                wide = [*kept[:place], some, *kept[place + 1 :]]
                if not self._fits(number, wide):
                    continue
                clean = self._inputs(number, wide)
                if clean is not None:
                    self._on_threads(clean)
                    break

    def _fits(self, number: int, kept: list[Any]) -> bool:
        case = self.spec.cases[number]
        try:
            sizes = all_sizes(case, kept)
            arrays = [*case.inputs, *case.outputs, *(one.array for one in case.residuals)]
            counts = [np.prod(shape_of(array, sizes), dtype=float) for array in arrays]
        except ArithmeticError:
            return False
        return max(counts) <= _MOST_ELEMENTS

    def _on_threads(self, clean: list[Any]) -> None:
        masks = dict.fromkeys(
            [None, *(one.mask for case in self.spec.cases for one in case.backward)]
        )
        found = []
        before = sg.get_num_threads()
        try:
            for threads in THREADS:
                sg.set_num_threads(threads)
                found.append(self._bits(clean, list(masks)))
        finally:
            sg.set_num_threads(before)
        if len(set(found)) > 1:
            shapes = [array.shape for array in clean]
            self.notes.fail("threads", f"other bits on other numbers of threads: {shapes}")

    def _bits(self, clean: list[Any], masks: list[Any]) -> bytes:
        try:
            outputs, residuals = self.op.forward(*clean)
            arrays = [*as_tuple(outputs), *as_tuple(self.op.inference(*clean))]
            cotangents = [cotangent_of(value) for value in as_tuple(outputs)]
            for mask in masks:
                arrays += self.op.backward(residuals, *cotangents, needs_input_grad=mask)
        except SymgradError:
            return b"refused"
        return b"".join(array.tobytes() for array in arrays if array is not None)


def _clean(value: Any) -> Trick:
    return Trick("clean", value, value)


def _nothing() -> Trick:
    """Nothing is given here, which is right."""
    return Trick("none", None, np.zeros(0))
