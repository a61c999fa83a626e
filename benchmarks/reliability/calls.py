"""The parts ``calls`` and ``sanitized``: hostile calls of one compiled op.

In: a seed and a number.  Out: a record.

A call must give what the same op gives for clean arrays of the same values, or raise SymgradError,
TypeError or ValueError; it must write to nothing but what it was given to write into.
"""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from benchmarks.reliability import hostile
from benchmarks.reliability.draw import draw
from benchmarks.reliability.hostile import Trick
from benchmarks.reliability.loading import defined
from benchmarks.reliability.notes import Notes, difference
from benchmarks.reliability.pool import LAST_CALL
from benchmarks.reliability.program import class_text
from symgrad.abi import all_sizes, shape_of
from symgrad.emission import emit
from symgrad.errors import SymgradError
from symgrad.frontend.trace import trace
from symgrad.kernels import plan
from symgrad.runtime.op import make_op, shipped_op
from symgrad.runtime.residuals import serves

CALLS = 1500  # of one unit
DRAWN = 40  # so many programs are compiled for a seed, and then come from the cache
_REFUSED = (SymgradError, TypeError, ValueError, MemoryError)
_EXTENTS = (0, 1, 2, 3, 5, 8, 17)
_FAR_EXTENTS = (64, 130, 300)
_RANKS = (0, 1, 2, 3)
_TRIES = 30
_FAR = 0.03  # of the tricks are arrays far too large for any result
_ROUNDINGS = 1e-4, 1e-10  # of float32 and float64: the same kernel, perhaps by another path


def unit(seed: str, number: int) -> dict[str, Any]:
    """So many calls of one op."""
    notes, choice = Notes(), random.Random(f"{seed} calls {number}")
    name = (
        f"{seed}:{number // 2 % DRAWN}" if number % 2 else _shipped()[number // 2 % len(_shipped())]
    )
    op = _drawn(name) if number % 2 else shipped_op(name)
    if op is None:
        notes.counts["calls: programs refused"] += 1
        return notes.record()
    hostility = Hostility(op, name, notes, choice)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(CALLS):
            hostility.call()
    return notes.record()


def _shipped() -> list[str]:
    """The modules of ``symgrad.generated``."""
    import symgrad.generated

    folder = Path(symgrad.generated.__path__[0])
    return sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


@lru_cache(maxsize=8)
def _drawn(name: str) -> Any:
    """A random program, compiled; None where symgrad refuses it."""
    program = draw(f"call {name}")
    try:
        function = defined("Program", class_text(program), f"<Program {name}>")
        planned = plan(
            trace(function, *program.specs(dtype="f32" if crc32(name.encode()) % 2 else "f64"))
        )
        emitted = emit(planned, "")
        return make_op(emitted.wrapper(), emitted.texts, key_extra=planned.graphs.source)
    except SymgradError:
        return None


class Hostility:
    """Calls of one op."""

    def __init__(self, op: Any, name: str, notes: Notes, choice: random.Random) -> None:
        self.op, self.name, self.notes, self.choice = op, name, notes, choice
        self.spec = op.module.OP
        path = os.environ.get(LAST_CALL)
        self._last = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC) if path else None

    def call(self) -> None:
        """One call, drawn anew."""
        clean = self._clean()
        if clean is None:
            self.notes.counts["calls: no sizes"] += 1
            return
        tricks = [Trick("clean", value, value) for value in clean]
        for _ in range(self.choice.choice([0, 1, 1, 1, 2])):
            place = self.choice.randrange(len(tricks))
            axes = [axis for axis in self._far_axes(place) if axis < np.ndim(clean[place])]
            if axes and self.choice.random() < _FAR:
                tricks[place] = hostile.far(clean[place], self.choice.choice(axes))
            else:
                tricks[place] = self._trick(clean[place])
        way = self.choice.choice(["__call__", "forward", "backward", "backward"])
        self._note(f"{self.name}: {way}({', '.join(trick.name for trick in tricks)})")
        getattr(self, f"_{way.strip('_')}")(tricks)

    # -- arrays

    def _clean(self) -> list[Any] | None:
        """Right inputs of some sizes that a case serves."""
        case = self.choice.choice(self.spec.cases)
        extents = _FAR_EXTENTS if self.choice.random() < 0.01 else _EXTENTS
        for _ in range(_TRIES):
            kept = [self._axes(case, size, extents) for size in case.sizes]
            sizes = all_sizes(case, kept)
            try:
                if serves(case, sizes):
                    return [self.array(one, sizes) for one in case.inputs]
            except (ArithmeticError, ValueError):
                continue
        return None

    def _axes(self, case: Any, size: str, extents: Sequence[int]) -> Any:
        """A size; several for what stands for any number of axes."""
        if not size.startswith("*"):
            return self.choice.choice(extents)
        count = self.choice.choice([rank for rank in _RANKS if rank not in case.apart])
        return tuple(self.choice.choice(_EXTENTS[:5]) for _ in range(count))

    def array(self, wanted: Any, sizes: dict[str, Any]) -> Any:
        """Right values for an input."""
        shape = shape_of(wanted, sizes)
        source = np.random.default_rng(self.choice.getrandbits(32))
        if wanted.dtype == "int64":
            below = max(
                1, min([size for size in sizes.values() if size and isinstance(size, int)] or [1])
            )
            return source.integers(0, below, shape)
        if wanted.dtype == "bool":
            return np.asarray(source.integers(0, 2, shape), bool)
        return np.asarray(source.standard_normal(shape), wanted.dtype)

    def _far_axes(self, place: int) -> list[int]:
        """The axes of an input that are axes of an output too, in every case."""
        found = [
            {
                axis for axis, dim in enumerate(case.inputs[place].dims)
                if dim.isidentifier() and any(dim in output.dims for output in case.outputs)
            }
            for case in self.spec.cases
        ]  # fmt: skip
        return sorted(set.intersection(*found))

    def _trick(self, value: Any) -> Trick:
        chance = self.choice.random()
        if value.dtype == np.int64 and chance < 0.35:
            return hostile.misplaced(value, self.choice)
        return (hostile.same if chance < 0.6 else hostile.broken)(value, self.choice)

    # -- calls

    def _call(self, tricks: list[Trick]) -> None:
        self._outputs("__call__", self.op, self.op, tricks)

    def _forward(self, tricks: list[Trick]) -> None:
        self._outputs(
            "forward", lambda *a, **k: self.op.forward(*a, **k)[0],
            lambda *a: self.op.forward(*a)[0], tricks,
        )  # fmt: skip

    def _outputs(self, way: str, call: Any, right: Any, tricks: list[Trick]) -> None:
        known = self.right(right, [trick.clean for trick in tricks])
        given: list[Trick] = []
        if known is not None and self.choice.random() < 0.4:
            inputs = [trick.value for trick in tricks]
            given = [hostile.output(one, inputs, self.choice) for one in known]
            self._note(f"{self.name}: {way}({_names(tricks)}, out={_names(given)})")
        self.compute(way, call, tricks, known, given)

    def compute(
        self, way: str, call: Any, tricks: list[Trick], known: Any, given: list[Trick]
    ) -> None:
        """Call it, into ``given`` where there is any, and compare with what is known."""
        inputs = [trick.value for trick in tricks]
        out = None
        if given:
            out = given[0].value if len(given) == 1 else tuple(one.value for one in given)
        usable = known is not None and all(one.clean is not None for one in given)
        found = self._guarded(way, lambda: call(*inputs, out=out), inputs, given, usable, tricks)
        if found is not None:
            self._compare(way, as_tuple(found), known, tricks + given)

    def _backward(self, tricks: list[Trick]) -> None:
        """Right inputs, then hostile residuals, cotangents, masks and buffers."""
        clean = self._clean()
        if clean is None:
            return
        try:
            outputs, residuals = self.op.forward(*clean)
        except _REFUSED:
            return
        cotangents = [
            Trick("clean", value, value) if value is not None else Trick("none", None, None)
            for value in map(cotangent_of, as_tuple(outputs))
        ]
        right = self.right(self.op.backward, [residuals, *(one.value for one in cotangents)])
        kind = self.choice.choice(["cotangent", "cotangent", "out", "residuals", "mask", "between"])
        self._note(f"{self.name}: backward, {kind}")
        getattr(self, f"_backward_{kind}")(clean, residuals, cotangents, right)

    def _backward_cotangent(
        self, clean: list[Any], residuals: Any, cotangents: list[Trick], right: Any
    ) -> None:
        place = self.choice.randrange(len(cotangents))
        if cotangents[place].value is not None:
            cotangents[place] = self._trick(cotangents[place].value)
        self.differentiate(residuals, cotangents)

    def differentiate(
        self, residuals: Any, cotangents: list[Trick], mask: Any = None, by: Any = None
    ) -> None:
        """Gradients for these cotangents, compared with those for clean ones.

        ``by``: residuals with one place changed in a way that keeps its values.
        """
        values = [one.value for one in cotangents]
        right = None
        if all(one.clean is not None or one.value is None for one in cotangents):
            usable = [one.clean if one.value is not None else None for one in cotangents]
            right = self.right(self.op.backward, [residuals, *usable])
        given = residuals if by is None else by
        self._gradients(
            lambda: self.op.backward(given, *values, needs_input_grad=mask),
            values,
            right,
            cotangents,
        )

    def _backward_out(
        self, clean: list[Any], residuals: Any, cotangents: list[Trick], right: Any
    ) -> None:
        """Into given arrays, which may be unfit."""
        if right is None:
            return
        taken = [*clean, *(one.value for one in cotangents)]
        given = [
            Trick("none", None, np.zeros(0)) if wanted is None or self.choice.random() < 0.1
            else hostile.output(wanted, taken, self.choice)
            for wanted in right
        ]  # fmt: skip
        self.differentiate_into(residuals, cotangents, right, given, taken)

    def differentiate_into(
        self, residuals: Any, cotangents: list[Trick], right: Any, given: list[Trick],
        taken: list[Any], mask: Any = None,
    ) -> None:  # fmt: skip
        """Gradients written into ``given``; ``right``: what they are for clean arguments."""
        values = [one.value for one in cotangents]
        buffers = tuple(one.value for one in given)
        usable = all(one.clean is not None for one in given)
        arrays = [one for one in [*taken, *residuals] if isinstance(one, np.ndarray)]
        kept = [one.copy() for one in arrays]  # later calls read what this one may write over
        found = self._guarded(
            "backward",
            lambda: self.op.backward(residuals, *values, needs_input_grad=mask, out=buffers),
            taken, given, usable, cotangents,
        )  # fmt: skip
        if found is not None:
            self._compare("backward", found, right, [*cotangents, *given])
        for array, before in zip(arrays, kept, strict=True):
            if array.flags.writeable:
                array[...] = before

    def _backward_residuals(
        self, clean: list[Any], residuals: Any, cotangents: list[Trick], right: Any
    ) -> None:
        """Residuals made by hand: other arrays, other sizes, other types, fewer of them."""
        kept = list(residuals)
        if not kept:
            return
        place = self.choice.randrange(len(kept))
        kept[place] = self._residual(kept[place])
        kind: Any = type(residuals)
        made = self.choice.choice(
            [kind(kept), tuple(kept), kept, kind(kept[1:]), kind((*kept, 1)), None]
        )
        values = [one.value for one in cotangents]
        self.survives(lambda: self.op.backward(made, *values), [*clean, *values])

    def _residual(self, value: Any) -> Any:
        """Another size, other sizes of the batch axes, or another array."""
        if isinstance(value, int):
            return self.choice.choice([-1, 0, 1, 2**40, 2**63 - 1, 10**30, "n", None, 3])
        if isinstance(value, tuple):
            others = [(), (*value, 2), value[1:], (-1,) * len(value), (2**62,) * 2, list(value)]
            return self.choice.choice([*others, "n", None, 3])
        return self._trick(value).value

    def _backward_mask(
        self, clean: list[Any], residuals: Any, cotangents: list[Trick], right: Any
    ) -> None:
        count = len(self.spec.differentiable)
        mask = self.choice.choice([
            (False,) * count, (True,) * count, [True] * count, (1,) * count, (None,) * count,
            (True,) * (count + 1), (), "yes", 1, np.ones(count, bool), ("a",) * count, {},
            (True, False),
        ])  # fmt: skip
        values = [one.value for one in cotangents]
        self.survives(
            lambda: self.op.backward(residuals, *values, needs_input_grad=mask), [*clean, *values]
        )

    def _backward_between(
        self, clean: list[Any], residuals: Any, cotangents: list[Trick], right: Any
    ) -> None:
        """What forward was given or gave changes before backward."""
        arrays: list[Any] = [one for one in [*clean, *residuals] if isinstance(one, np.ndarray)]
        values = [one.value for one in cotangents]
        if not arrays:
            return
        array: Any = self.choice.choice(arrays)
        kind = self.choice.choice(["resize", "shape", "dtype", "values", "strides"])
        try:
            if kind == "resize":
                array.resize(self.choice.choice([0, 1, 3]), refcheck=False)
            elif kind == "shape":
                array.shape = (array.size,)
            elif kind == "dtype":
                array.dtype = self.choice.choice(["f4", "f8", "i8", "u1", "c8"])
            elif kind == "strides":
                array.strides = (0,) * array.ndim
            else:
                array[...] = self.choice.choice([-1, 10**6, 0])
        except (ValueError, AttributeError, TypeError):
            return
        self.survives(lambda: self.op.backward(residuals, *values), [])

    def _gradients(self, call: Any, values: list[Any], right: Any, tricks: list[Trick]) -> None:
        found = self._guarded("backward", call, values, [], right is not None, tricks)
        if found is not None:
            self._compare("backward", found, right, tricks)

    def survives(self, call: Any, arrays: Sequence[Any]) -> None:
        """The call ends in whatever way, and writes to nothing."""
        before = [one.tobytes() if isinstance(one, np.ndarray) else None for one in arrays]
        self.notes.counts["hostile: calls"] += 1
        try:
            call()
        except _REFUSED:
            self.notes.counts["hostile: refused"] += 1
        except Exception as error:
            self._fail(f"raised {type(error).__name__}: {error}")
        after = [one.tobytes() if isinstance(one, np.ndarray) else None for one in arrays]
        if before != after:
            self._fail("something was written that was not given to be written")

    # -- what comes of it

    def right(self, call: Any, clean: list[Any]) -> tuple[Any, ...] | None:
        """What clean arrays give; None where one of them stands for nothing, or is refused."""
        if any(one is None for one in clean[:1]) or (call is self.op and None in map(_kind, clean)):
            return None
        if any(_kind(one) is None for one in clean) and call is not self.op.backward:
            return None
        try:
            return as_tuple(call(*clean))
        except _REFUSED:
            return None

    def _guarded(
        self, way: str, call: Any, inputs: list[Any], given: list[Trick], right: bool,
        tricks: list[Trick],
    ) -> Any:  # fmt: skip
        """The result of a call; None where it was refused, as it may be unless it is right."""
        arrays = [one for one in inputs if isinstance(one, np.ndarray) and one.size < 10**6]
        arrays = [one for one in arrays if one.dtype != object and not _shares(one, given)]
        before = [one.tobytes() for one in arrays]
        self.notes.counts["hostile: calls"] += 1
        try:
            found = call()
        except _REFUSED as error:
            found = None
            self.notes.counts["hostile: refused"] += 1
            if right:
                self._fail(
                    f"{way} refused {_names(tricks + given)}: {type(error).__name__}: {error}"
                )
        except Exception as error:
            found = None
            self._fail(f"{way} raised {type(error).__name__}: {error}")
        if [one.tobytes() for one in arrays] != before:
            self._fail(f"{way} wrote to an input: {_names(tricks + given)}")
        for one in given:
            if one.name == "room" and not hostile.is_whole(one.value):
                self._fail(f"{way} wrote beyond out")
        return found

    def _compare(self, way: str, found: Any, known: Any, tricks: list[Trick]) -> None:
        if known is None:
            self._fail(f"{way} took {_names(tricks)}")
            return
        for one, wanted in zip(found, known, strict=True):
            if one is None or wanted is None:
                continue
            rounding = _ROUNDINGS[np.asarray(wanted).dtype == np.float64]
            finite = wanted[np.isfinite(wanted)] if wanted.dtype.kind == "f" else wanted
            size = float(np.max(np.abs(finite), initial=1.0))
            problem = difference(one, np.asarray(wanted), rounding * size)
            if problem:
                self._fail(f"{way}({_names(tricks)}): {problem}")

    def _fail(self, what: str) -> None:
        self.notes.fail("hostile", what, self.name)

    def _note(self, text: str) -> None:
        if self._last is not None:
            os.pwrite(self._last, text.encode().ljust(400), 0)


def _shares(array: Any, given: Sequence[Trick]) -> bool:
    """Was the array given to be written into, too?  Whether that is refused is compared."""
    outputs = [one.value for one in given if isinstance(one.value, np.ndarray)]
    return any(np.may_share_memory(array, one) for one in outputs)


def _kind(value: Any) -> Any:
    return None if value is None else type(value)


def _names(tricks: Sequence[Trick]) -> str:
    return ", ".join(trick.name for trick in tricks)


def as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def cotangent_of(value: Any) -> Any:
    value = np.asarray(value)
    return (
        np.sin(np.arange(value.size)).astype(value.dtype).reshape(value.shape)
        if value.dtype.kind == "f"
        else None
    )
