"""What the emission of one kernel knows: names, arrays, sizes, the workspace.

In: a program and the names of its inputs and outputs.  Out: ``EmitContext``, which gives C names
and addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from symgrad.codegen.emit import spelling as numbers
from symgrad.codegen.emit.ctree import Binary, Cast, Element, Expression, Text, name, number
from symgrad.codegen.emit.reductions import Reduction
from symgrad.codegen.emit.spelling import Used
from symgrad.codegen.names import Names
from symgrad.ir.dim import Atom, Axis, Dim, Size, product
from symgrad.ir.dim import Element as IntElement
from symgrad.ir.dtype import DType, int64


@dataclass(frozen=True)
class Array:
    """An array in C.

    ``strides``: the C name of the stride of each axis, "" where it is contiguous from there on;
    ``constant``: the kernel does not write it; ``origin``: the indices that its first element has,
    where it holds only a part; ``by_value``: it is a number that the kernel takes in this dtype.
    """

    name: str
    dtype: DType
    shape: tuple[Dim, ...]
    strides: tuple[str, ...] = ()
    constant: bool = True
    origin: tuple[Dim, ...] = ()
    by_value: DType | None = None

    @property
    def strided(self) -> tuple[int, ...]:
        """The axes whose stride is passed."""
        return tuple(axis for axis, stride in enumerate(self.strides) if stride)

    def place(self, indices: Sequence[Dim]) -> tuple[Dim, ...]:
        """Indices counted from the first element."""
        if not self.origin:
            return tuple(indices)
        pairs = zip(indices, self.origin, strict=True)
        return tuple(index - origin for index, origin in pairs)


@dataclass(frozen=True)
class Slot:
    """A piece of the workspace: ``count`` elements, once for each of ``groups`` ("" for once)."""

    name: str
    dtype: DType
    count: Dim
    groups: str = ""


@dataclass
class Flat:
    """While a nest runs over one flat index: what its axes are as the indices of an array."""

    indices: tuple[Dim, ...]
    variable: str


@dataclass
class EmitContext:
    """The state of emission: which names are given, which arrays there are.

    ``limits``: sizes that must fit the integers of the BLAS; ``combines``: the reductions whose
    parts are joined; ``products``: the dtypes of products of matrices.
    """

    names: Names
    sizes: dict[str, str]
    arrays: dict[str, Array] = field(default_factory=dict)
    variables: dict[Axis, str] = field(default_factory=dict)
    slots: list[Slot] = field(default_factory=list)
    used: Used = field(default_factory=Used)
    combines: set[Reduction] = field(default_factory=set)
    products: set[DType] = field(default_factory=set)
    flat: Flat | None = None
    limits: dict[Dim, None] = field(default_factory=dict)

    def symbol(self, c_name: str) -> Dim:
        """A C variable as an integer expression."""
        self.sizes[f"@{c_name}"] = c_name
        return Dim.size(f"@{c_name}")

    def variable(self, axis: Axis) -> str:
        """The loop variable of an axis."""
        if axis not in self.variables:
            self.variables[axis] = self.names.loop_variable()
        return self.variables[axis]

    def in_order(self, indices: Sequence[Dim]) -> list[Axis]:
        """The axes of indices, in the order of these."""
        found: dict[Axis, None] = {}
        for index in indices:
            found.update(dict.fromkeys(index.axes))
        return list(found)

    def forget(self, axes: Sequence[Axis]) -> None:
        """Give the loop variables of axes back."""
        for axis in axes:
            self.names.release(self.variables.pop(axis))

    def dim(self, dim: Dim) -> Expression:
        """An integer expression in C."""
        return numbers.dim_expression(dim, self._atom)

    def _atom(self, atom: Atom) -> Expression:
        if isinstance(atom, Size):
            return name(self.sizes[atom.name])
        if isinstance(atom, Axis):
            return name(self.variable(atom))
        assert isinstance(atom, IntElement)
        array = self.arrays[atom.tensor]
        element = self.element(array, atom.indices)
        return element if array.dtype == int64 else Cast(int64.c, element)

    def element(self, array: Array, indices: Sequence[Dim]) -> Expression:
        """An element of an array."""
        if array.by_value is not None:
            found = name(array.name)
            return found if array.by_value == array.dtype else Cast(array.dtype.c, found)
        if self.flat is not None and tuple(i for i in indices if i != 0) == self.flat.indices:
            return Element(array.name, name(self.flat.variable))
        return Element(array.name, self.address(array, indices))

    def address(self, array: Array, indices: Sequence[Dim]) -> Expression:
        """The place of an element: row-major, with the strides that are given."""
        total: Expression | None = None
        indices = array.place(indices)
        if any(array.strides):
            for axis, (index, stride) in enumerate(zip(indices, array.strides, strict=True)):
                behind = product(list(array.shape[axis + 1 :]))
                total = self._plus(total, index if stride else index * behind, stride)
        else:
            for index, size in zip(indices, array.shape, strict=True):
                if total is not None and size != 1:
                    total = Binary("*", total, self.dim(size))
                total = self._plus(total, index, "")
        return total if total is not None else number(0)

    def _plus(self, total: Expression | None, index: Dim, stride: str) -> Expression | None:
        if index == 0:
            return total
        term = self.dim(index)
        if stride:
            term = name(stride) if index == 1 else Binary("*", term, name(stride))
        return term if total is None else Binary("+", total, term)

    def workspace(self, wanted: str, dtype: DType, count: Dim, groups: str = "") -> str:
        """The name of a new piece of the workspace."""
        slot = Slot(self.names.fresh(wanted), dtype, count, groups)
        self.slots.append(slot)
        return slot.name

    def count(self, axes: Sequence[Axis]) -> Dim:
        """How many elements an array over these axes has."""
        return product([axis.extent for axis in axes])


def text(expression: Expression) -> str:
    """The text of a name or number."""
    assert isinstance(expression, Text)
    return expression.text
