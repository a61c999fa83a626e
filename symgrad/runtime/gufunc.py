"""An op with the keywords of NumPy's generalised ufuncs.

In: a compiled op, or a module of a generated package.  Out: a ``GUFunc``, forward and backward.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from symgrad.abi import Array, Op
from symgrad.errors import KernelArgumentError, KernelTypeError, counted
from symgrad.plain_values import described

_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
Axes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Kept:
    """What ``forward`` keeps for ``backward``: the residuals, and the axes of each operand."""

    residuals: Any
    axes: Axes


class GUFunc:
    """An op as a generalised ufunc of NumPy: ``sg.gufunc(op)(x, y, axes=[(0, 1), (0, 1), ()])``.

    ``axes``, ``axis`` and ``out`` are NumPy's.  ``casting``: what inputs may be converted by; by
    default nothing is, but for the byte order.  Plain arguments go by name.
    """

    def __init__(self, op: Any) -> None:
        caller: Any = getattr(op, "caller", getattr(op, "_careful", None))
        record = getattr(caller, "op", None)
        if record is None:
            raise KernelTypeError(
                f"a {type(op).__name__} is no compiled op",
                hint="pass what sg.compile returned, or a module of a generated package",
            )
        self.op = op
        self._values = caller.values
        self._record: Op = record
        case = self._record.cases[0]
        self._inputs, self._outputs = case.inputs, case.outputs
        self._ranks = tuple(len(_core(one)) for one in (*self._inputs, *self._outputs))
        self.nin, self.nout = len(self._inputs), len(self._outputs)
        self.nargs = self.nin + self.nout
        self.__name__ = self._record.name
        operands = (*self._inputs, *self._outputs)
        self._where = tuple(f"{self.__name__}: the axes of {one.name}" for one in operands)

    def __repr__(self) -> str:
        return f"<gufunc {self.__name__}, signature={self.signature!r}>"

    @property
    def signature(self) -> str:
        """The axes that the op itself has, as ``numpy.vectorize`` takes them."""
        words = [f"({','.join(map(_word, _core(one)))})" for one in self._inputs]
        results = [f"({','.join(map(_word, _core(one)))})" for one in self._outputs]
        return f"{','.join(words)}->{','.join(results)}"

    def __call__(
        self, *inputs: Any, out: Any = None, axes: Any = None, axis: int | None = None,
        casting: Any = "equiv", **values: Any,
    ) -> Any:  # fmt: skip
        """The outputs.  Raises KernelArgumentError and KernelTypeError."""
        places = self._places(axes, axis)
        outs = self._outs(out)
        given = self._given(inputs, places, casting)
        for name in values:
            self._values.named(self.__name__, name)
        found = self.op.inference(*given, out=self._moved(outs, places), **values)
        return self._results(found, outs, places)

    def forward(
        self, *inputs: Any, out: Any = None, axes: Any = None, axis: int | None = None,
        casting: Any = "equiv", **values: Any,
    ) -> tuple[Any, Kept]:  # fmt: skip
        """The outputs, and what ``backward`` needs."""
        places = self._places(axes, axis)
        outs = self._outs(out)
        given = self._given(inputs, places, casting)
        for name in values:
            self._values.named(self.__name__, name)
        found, residuals = self.op.forward(*given, out=self._moved(outs, places), **values)
        return self._results(found, outs, places), Kept(residuals, places)

    def backward(
        self, kept: Kept, *cotangents: Any, needs_input_grad: Any = None
    ) -> tuple[Any, ...]:
        """The gradients of the inputs, each in the layout of its axes; None where not needed."""
        if not isinstance(kept, Kept):
            raise KernelTypeError(
                f"{self.__name__}.backward: the first argument is a {type(kept).__name__}",
                hint="pass the second result of forward of the same gufunc",
            )
        given = [
            None if one is None else _last(where, one, places)
            for where, one, places in zip(
                self._where[self.nin :], cotangents, kept.axes[self.nin :], strict=False
            )
        ]
        found = self.op.backward(kept.residuals, *given, needs_input_grad=needs_input_grad)
        return tuple(
            None if one is None else _back(where, one, places)
            for where, one, places in zip(self._where, found, kept.axes, strict=False)
        )

    # -- operands

    def _places(self, axes: Any, axis: int | None) -> Axes:
        """The axes of each operand that are the op's own."""
        usual = tuple(tuple(range(-rank, 0)) for rank in self._ranks)
        if axes is not None and axis is not None:
            raise KernelTypeError(f"{self.__name__}: axes and axis are both given")
        if axis is not None:
            names = {dim for one in (*self._inputs, *self._outputs) for dim in _core(one)}
            if len(names) != 1 or max(self._ranks) > 1:
                raise KernelTypeError(
                    f"{self.__name__}: axis= is for one shared axis, and the signature is"
                    f" {self.signature}",
                    hint="give axes=, a tuple for each operand",
                )
            own = _integers(f"{self.__name__}: axis", (axis,))
            return tuple(own * rank for rank in self._ranks)
        if axes is None:
            return usual
        several = list(axes) if isinstance(axes, Iterable) else []
        given = [_integers(*one) for one in zip(self._where, several, strict=False)]
        if len(given) == self.nin and not any(self._ranks[self.nin :]):
            given += [()] * self.nout
        if tuple(map(len, given)) != self._ranks or len(several) > self.nargs:
            raise KernelArgumentError(
                f"{self.__name__}: axes={described(axes)} does not fit the signature"
                f" {self.signature}",
                hint="give a list with a tuple for each operand, the outputs last",
            )
        return tuple(given)

    def _given(self, inputs: Sequence[Any], places: Axes, casting: str) -> list[Any]:
        """The inputs, their own axes last; converted where ``casting`` lets them."""
        if len(inputs) != self.nin:
            raise KernelTypeError(
                f"{self.__name__}: {counted(len(inputs), 'input')} given, {self.nin} expected",
                hint="arrays for results go into out=, plain arguments go by name",
            )
        if casting not in _CASTINGS:
            raise KernelArgumentError(
                f"{self.__name__}: casting is {described(casting)}",
                hint=f"one of {', '.join(_CASTINGS)}",
            )
        found = []
        for value, wanted, where, own in zip(
            inputs, self._inputs, self._where, places, strict=False
        ):
            if casting not in ("no", "equiv") and isinstance(value, (numpy.ndarray, numpy.generic)):
                if not numpy.can_cast(value.dtype, wanted.dtype, casting):  # type: ignore[arg-type]
                    raise KernelTypeError(
                        f"{self.__name__}: input {wanted.name} cannot be converted from"
                        f" {value.dtype} to {wanted.dtype} by casting={casting!r}",
                        hint="convert it with .astype, or give casting='same_kind' or 'unsafe'",
                    )
                value = value.astype(wanted.dtype, copy=False)
            found.append(_last(where, value, own))
        return found

    def _outs(self, out: Any) -> tuple[Any, ...]:
        outs = out if isinstance(out, tuple) else (out,) * (self.nout if out is None else 1)
        if len(outs) != self.nout:
            raise KernelArgumentError(
                f"{self.__name__}: out holds {len(outs)} arrays, {self.nout} expected",
                hint="give a tuple with an array or None for each output",
            )
        return outs

    def _moved(self, outs: tuple[Any, ...], places: Axes) -> Any:
        """``out`` as the op takes it: views that are written through."""
        if all(one is None for one in outs):
            return None
        each = zip(self._where[self.nin :], outs, places[self.nin :], strict=True)
        found = tuple(None if one is None else _last(where, one, own) for where, one, own in each)
        return found if self.nout > 1 else found[0]

    def _results(self, found: Any, outs: tuple[Any, ...], places: Axes) -> Any:
        several = found if isinstance(found, tuple) else (found,)
        results = tuple(
            _back(where, one, own) if out is None else out
            for where, one, out, own in zip(
                self._where[self.nin :], several, outs, places[self.nin :], strict=True
            )
        )
        return results if self.nout > 1 else results[0]


def gufunc(op: Any) -> GUFunc:
    """A compiled op, or a module of a generated package, with NumPy's keywords for axes."""
    return GUFunc(op)


def _core(array: Array) -> tuple[str, ...]:
    """The sizes of one element; the axes of ``*name`` are leading ones."""
    if array.batch is None:
        return array.dims
    _, start, count = array.batch
    return array.dims[:start] + array.dims[start + count :]


def _word(dim: str) -> str:
    """A size in a signature, which knows names and numbers alone."""
    return dim if re.fullmatch(r"\w+", dim) else "_" + re.sub(r"\W+", "_", dim)


def _integers(where: str, axes: Any) -> tuple[int, ...]:
    """One axis, or several.  Raises KernelTypeError."""
    try:
        several = axes if isinstance(axes, Iterable) else (axes,)
        return tuple(map(operator.index, several))
    except TypeError:
        raise KernelTypeError(
            f"{where}: {described(axes)} is no integer, nor a tuple of integers",
            hint="axes count from 0, or from -1 backwards",
        ) from None


def _last(where: str, value: Any, axes: tuple[int, ...]) -> Any:
    """A view with these axes last; what is no array is left to the op."""
    if not isinstance(value, numpy.ndarray):
        return value
    return _moved(where, value, axes, axes, tuple(range(-len(axes), 0)))


def _back(where: str, value: Any, axes: tuple[int, ...]) -> Any:
    """The reverse of ``_last``."""
    return _moved(where, value, axes, tuple(range(-len(axes), 0)), axes)


def _moved(
    where: str, value: Any, axes: tuple[int, ...], source: tuple[int, ...], to: tuple[int, ...]
) -> Any:  # fmt: skip
    """``numpy.moveaxis``.  Raises KernelArgumentError."""
    if source == to:
        return value
    try:
        return numpy.moveaxis(value, source, to)
    except (ValueError, OverflowError) as error:
        raise KernelArgumentError(
            f"{where}: {described(axes)} of an array of the shape {value.shape}: {error}",
            hint="axes count from 0, or from -1 backwards",
        ) from error
