"""Arithmetics for the oracle: double precision to look, 60 digits to decide.

In: nodes of a graph, one at a time, with the values of their arguments.  Out: their values.

Both arithmetics read every float dtype as a real number: f32 rounding is no part of a proof.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial as bound
from typing import Any, ClassVar

import mpmath
import numpy as np

from symgrad.errors import GraphError
from symgrad.ir.dim import Dim, DimLike
from symgrad.ir.dtype import DType
from symgrad.ir.graph import Node, Scalar
from symgrad.ops.record import Op, get
from symgrad.proof.scalars.bodies import partial, partial_function, value_function

Array = np.ndarray[Any, Any]
SizeOf = Callable[[DimLike], int]
Reading = Callable[[Scalar], Any]
Step = Callable[[Sequence[Array], SizeOf], Array]
"""The value of a node from those of its arguments."""

DIGITS = 60
_SAME_DTYPE = frozenset(
    ("expand", "reshape", "permute", "slice", "concat", "diagonal", "index", "flip")
)
"""Ops whose result holds nothing but elements of their arguments."""


class Arithmetic(ABC):
    """How nodes get values; tensors of integers and truth values are the same in all of them.

    ``steady``: a step of it can be used again, at other sizes and other values.
    """

    steady: ClassVar[bool] = False

    def step(self, node: Node) -> Step:
        """How to compute a node that is not an input: what its op says is looked up once."""
        compute = self._step(node)
        if not node.dtype.wraps:
            return compute
        dtype = str(node.dtype)
        return lambda values, size: compute(values, size).astype(dtype).astype(np.int64)

    def _step(self, node: Node) -> Step:
        op, attributes, is_float = get(node.op), node.attributes, node.dtype.is_float
        if node.op == "constant" and is_float:
            literal = attributes["value"].value
            return lambda values, size: self.full(self.number(literal))
        if node.op == "size" and is_float:
            dim = attributes["dim"]
            return lambda values, size: self.real(np.asarray(size(dim), dtype=np.int64))
        if node.op == "cast":
            old, new = node.args[0].dtype, node.dtype
            return lambda values, size: self.cast(values[0], old, new)
        if node.op == "where" and is_float:
            return lambda values, size: np.where(*values)
        if is_float and op.scalar is not None:
            return self.elementary(op, len(node.args))
        return lambda values, size: self.structural(op, values, size, attributes, node)

    def elementary(self, op: Op, arity: int) -> Step:
        """How to compute an elementwise op on reals."""
        return lambda values, size: self.elementwise(op, values)

    @abstractmethod
    def number(self, value: Scalar) -> Any:
        """A float literal."""

    @abstractmethod
    def real(self, array: Array) -> Array:
        """An array of integers or truth values as real numbers."""

    @abstractmethod
    def elementwise(self, op: Op, values: Sequence[Array]) -> Array:
        """An elementwise op with a float among its arguments and a float result."""

    def apply(self, node: Node, values: Sequence[Array], size: SizeOf) -> Array:
        """The value of a node that is not an input; integers are int64, whatever their range."""
        return self.step(node)(values, size)

    def structural(
        self, op: Op, values: Sequence[Array], size: SizeOf, attributes: dict[str, Any], node: Node
    ) -> Array:
        """Any other op, by its NumPy meaning."""
        return np.asarray(op.numpy(*values, size=size, **attributes))

    def full(self, number: Any) -> Array:
        """A number as an array of rank 0."""
        return np.asarray(number, dtype=np.float64)

    def cast(self, array: Array, old: DType, new: DType) -> Array:
        """A change of dtype; between floats nothing changes."""
        if new.is_float:
            return array if old.is_float else self.real(array)
        if new.name == "bool_":
            return np.asarray(array != 0, dtype=bool)
        return np.asarray(array, dtype=np.int64) if not old.is_float else self.truncated(array)

    def truncated(self, array: Array) -> Array:
        """Reals as integers, rounded towards zero."""
        return np.trunc(array).astype(np.int64)


class Double(Arithmetic):
    """IEEE doubles: quick, and only trusted to say where to look."""

    steady = True

    def __eq__(self, other: object) -> bool:
        return type(other) is Double

    def __hash__(self) -> int:
        return hash(Double)

    def step(self, node: Node) -> Step:
        """How to compute a node; of the commonest ops, by NumPy's function alone."""
        op = get(node.op)
        floats = all(arg.dtype.is_float for arg in node.args)
        if floats and op.ufunc is not None:
            ufunc = op.ufunc
            return lambda values, size: ufunc(*values)
        if node.op == "constant" and node.dtype.is_float:
            value = self.full(self.number(node.attributes["value"].value))
            return lambda values, size: value
        quick = _QUICK.get(node.op) if floats else None
        return super().step(node) if quick is None else bound(quick, **node.attributes)

    def number(self, value: Scalar) -> Any:
        """A float literal."""
        return float(value)

    def real(self, array: Array) -> Array:
        """Integers or truth values as reals."""
        return array.astype(np.float64)

    def elementwise(self, op: Op, values: Sequence[Array]) -> Array:
        """An elementwise op on reals."""
        return np.asarray(op.numpy(*values, size=None))


class Precise(Arithmetic):
    """60 digits, as object arrays of mpmath numbers; the meaning of an op is its sympy body.

    ``read`` gives the exact value of a literal.  Use inside ``mpmath.workdps(DIGITS)``.
    """

    steady = True

    def __init__(self, read: Reading) -> None:
        self.read = read

    def number(self, value: Scalar) -> Any:
        """A float literal."""
        return self.read(value)

    def full(self, number: Any) -> Array:
        """A number as an array of rank 0."""
        return as_object(number)

    def real(self, array: Array) -> Array:
        """Integers or truth values as reals."""
        return as_object(_TO_MPF(array))

    def elementwise(self, op: Op, values: Sequence[Array]) -> Array:
        """An elementwise op on reals."""
        return self.elementary(op, len(values))(values, no_size)

    def elementary(self, op: Op, arity: int) -> Step:
        """How to compute an elementwise op on reals."""
        ufunc = op.ufunc
        if ufunc in _EXACT:
            return lambda values, size: as_object(ufunc(*values))
        function = np.frompyfunc(value_function(op.name, arity), arity, 1)
        return lambda values, size: as_object(function(*values))

    def partial(self, op: Op, position: int, values: Sequence[Array]) -> Array | None:
        """A partial derivative of an elementwise op; None where it is zero."""
        if partial(op.name, len(values), position) == 0:
            return None
        function = partial_function(op.name, len(values), position)
        return as_object(np.frompyfunc(function, len(values), 1)(*values))

    def structural(
        self, op: Op, values: Sequence[Array], size: SizeOf, attributes: dict[str, Any], node: Node
    ) -> Array:
        """Any other op, by its NumPy meaning or, for a few, one of its own."""
        if node.op in _OWN:
            return as_object(_OWN[node.op](*values, **attributes))
        result = op.numpy(*values, size=size, **attributes)
        if not node.dtype.is_float:
            return np.asarray(result, dtype=bool if node.dtype.name == "bool_" else np.int64)
        array = as_object(result)
        return array if node.op in _SAME_DTYPE else as_object(_TO_MPF(array))

    def truncated(self, array: Array) -> Array:
        """Reals as integers, rounded towards zero."""
        return np.asarray(np.frompyfunc(int, 1, 1)(array), dtype=np.int64)


# -- ops on arrays of doubles


def _expanded(values: Sequence[Array], size: SizeOf, *, shape: tuple[Dim, ...]) -> Array:
    """A copy: of small arrays it costs less than a view."""
    found = np.empty([size(dim) for dim in shape])
    found[...] = values[0]
    return found


def _summed(values: Sequence[Array], size: SizeOf, *, axes: tuple[int, ...]) -> Array:
    total: Array = np.add.reduce(values[0], axis=axes)
    return total


def _reshaped(values: Sequence[Array], size: SizeOf, *, shape: tuple[Dim, ...]) -> Array:
    return values[0].reshape([size(dim) for dim in shape])


def _permuted(values: Sequence[Array], size: SizeOf, *, axes: tuple[int, ...]) -> Array:
    found: Array = values[0].transpose(axes)
    return found


def _contracted(values: Sequence[Array], size: SizeOf, *, spec: str) -> Array:
    found: Array = np.einsum(spec, *values)
    return found


def no_size(dim: DimLike) -> int:
    """What an op that has no sizes is given for them."""
    raise GraphError(f"an elementwise op asks for {dim}")


_QUICK: dict[str, Callable[..., Array]] = {
    "expand": _expanded, "sum": _summed, "reshape": _reshaped, "permute": _permuted,
    "einsum": _contracted,
}  # fmt: skip


def as_object(value: Any) -> Array:
    """A value as an array of Python objects."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value
    result = np.empty(np.shape(value), dtype=object)
    result[...] = value
    return result


def _to_mpf(value: Any) -> Any:
    return value if isinstance(value, (mpmath.mpf, mpmath.mpc)) else mpmath.mpf(value)


def _reduced(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def reduce(array: Array, *, axes: tuple[int, ...]) -> Any:
        for axis in reversed(axes):
            array = np.frompyfunc(function, 2, 1).reduce(array, axis=axis, dtype=object)
        return array

    return reduce


def _einsum(left: Array, right: Array, *, spec: str) -> Array:
    return np.asarray(np.einsum(spec, left, right), dtype=object)


_TO_MPF = np.frompyfunc(_to_mpf, 1, 1)
_EXACT = (np.add, np.subtract, np.multiply, np.negative)
"""Ufuncs that do with mpmath numbers what the ops do."""
_OWN: dict[str, Callable[..., Any]] = {
    "amax": _reduced(max),
    "amin": _reduced(min),
    "max": _reduced(max),
    "min": _reduced(min),
    "einsum": _einsum,
}
