"""What is known at one place of one path through a wrapper, and what a call of a kernel does there.

In: facts that the text has checked.  Out: arrays with the values that they hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from symgrad import abi
from symgrad.abi import C_TYPES
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Node
from symgrad.validate.source import Header
from symgrad.validate.wrappers.calls import Parameter, parameters
from symgrad.validate.wrappers.meaning import Meaning
from symgrad.validate.wrappers.sizes import Facts, merged, product
from symgrad.validate.wrappers.values import (
    Axes,
    NotShown,
    Number,
    Pointer,
    Shape,
    Stride,
    Thing,
    Wrong,
)

NUMBERS = {"float64": ("float", "double"), "int64": ("int", "int64_t")}
"""The types of Python and of C of plain numbers."""


@dataclass
class Call:
    """A call that was made.  ``given``, ``outputs``: nodes by inputs and outputs of its graph."""

    kernel: str
    given: Mapping[str, Node]
    outputs: Mapping[str, Node]


@dataclass
class State:
    """One path.  ``names``: the locals.

    ``arrays``: what is known to be an array of NumPy, ``tuples`` a tuple; ``dtypes``, ``shapes``:
    of arrays; ``types``: of numbers; ``none``: whether it is None; ``conditions``: what holds of
    numbers; ``checked``: the plain values that were compared with what is compiled in.
    ``holds``: the values of arrays: a node, or None for all zeros.  ``written``: which call wrote
    an array, as which output.  ``called``: a kernel was called.
    """

    names: dict[str, Any]
    facts: Facts = field(default_factory=Facts)
    arrays: set[Thing] = field(default_factory=set)
    tuples: set[Thing] = field(default_factory=set)
    dtypes: dict[Thing, str] = field(default_factory=dict)
    shapes: dict[Thing, Shape] = field(default_factory=dict)
    types: dict[Number, str] = field(default_factory=dict)
    none: dict[Any, bool] = field(default_factory=dict)
    conditions: set[str] = field(default_factory=set)
    checked: set[str] = field(default_factory=set)
    holds: dict[Thing, Node | None] = field(default_factory=dict)
    written: dict[Thing, tuple[Call, str]] = field(default_factory=dict)
    called: bool = False

    def copy(self) -> State:
        """The same, for another path."""
        return State(
            dict(self.names), self.facts.copy(), set(self.arrays), set(self.tuples),
            dict(self.dtypes), dict(self.shapes), dict(self.types), dict(self.none),
            set(self.conditions), set(self.checked), dict(self.holds), dict(self.written),
            self.called,
        )  # fmt: skip

    def array(self, thing: Thing, dtype: str, shape: Shape) -> None:
        """It is an array of this dtype and shape."""
        self.arrays.add(thing)
        self.dtypes[thing] = dtype
        self.shapes[thing] = shape


class Calls:
    """The calls of kernels in one case."""

    def __init__(self, header: Header, records: Sequence[abi.Kernel], meaning: Meaning) -> None:
        self.header = header
        self._records = {one.name: one for one in records}
        self.meaning = meaning
        self._made: dict[tuple[Any, ...], Call] = {}

    def record(self, kernel: str, line: int) -> abi.Kernel:
        """The record of the calls of a kernel, by which its C is validated."""
        if kernel not in self._records:
            raise NotShown(f"there is no record of calls of {kernel}", line)
        return self._records[kernel]

    def make(
        self, kernel: str, arguments: Sequence[Any], state: State, sizes: Mapping[str, Dim],
        line: int,
    ) -> Call:  # fmt: skip
        """Check the arguments of a call that returns 0, and let it write its outputs."""
        graph = self.meaning.graph(kernel, line)
        taken = parameters(self.header, self.record(kernel, line), graph, line)
        if len(arguments) != len(taken) + 1:
            raise Wrong(f"{kernel} takes {len(taken) + 1} arguments, not {len(arguments)}", line)
        check = _Arguments(kernel, graph, state, sizes, line)
        for one, value in zip(taken, arguments, strict=False):
            check.take(one, value)
        if arguments[-1] != "workspace bytes":
            raise Wrong(f"{kernel} is not told the size of its workspace", line)
        key = (kernel, *sorted((name, node.index) for name, node in check.given.items()))
        call = self._made.get(key)
        if call is None:
            outputs = self.meaning.call(kernel, check.given, line)
            call = self._made[key] = Call(kernel, check.given, outputs)
        for name, array in check.written.items():
            state.holds[array] = call.outputs[name]
            state.written[array] = (call, name)
        return call


class _Arguments:
    """The arguments of one call, one after the other."""

    def __init__(
        self, kernel: str, graph: Any, state: State, sizes: Mapping[str, Dim], line: int
    ) -> None:
        self._kernel, self._graph, self._state = kernel, graph, state
        self._sizes, self._line = sizes, line
        self._pointer: Pointer | None = None
        self._strides: set[int] = set()
        self.given: dict[str, Node] = {}
        self.written: dict[str, Thing] = {}

    def take(self, parameter: Parameter, value: Any) -> None:
        """The next argument."""
        kind = parameter.kind
        if kind != "stride":
            self._check_strides()
        if kind == "workspace":
            if value != "workspace pointer":
                raise self._wrong("the workspace is something else")
        elif kind == "size":
            self._size(parameter.name, value)
        elif kind == "number":
            self._number(parameter, value)
        elif kind == "stride":
            self._stride(parameter, value)
        else:
            self._array(parameter, value)

    def _wrong(self, what: str) -> Wrong:
        return Wrong(f"{what}, in the call of {self._kernel}", self._line)

    def _dim(self, dim: Dim) -> Dim:
        """A size of the graph as what it is on this path."""
        missing = [name for name in dim.sizes if name not in self._sizes]
        if missing:
            raise NotShown(f"no array tells the size {missing[0]}", self._line)
        return at(dim, self._sizes)

    def _size(self, name: str, value: Any) -> None:
        if not isinstance(value, Dim):
            raise self._wrong(f"{value} is passed for the size {name}")
        what = f"the size {name} of {self._kernel}"
        self._state.facts.require(value, self._dim(Dim.size(name)), what, self._line)

    def _number(self, parameter: Parameter, value: Any) -> None:
        meaning_of = self._graph.inputs[parameter.name]
        if not isinstance(value, Number):
            raise self._wrong(f"{value} is passed for the number {parameter.name}")
        node = self._state.holds.get(Thing(f"number {value.position}"))
        found = self._state.types.get(value)
        if node is None or found is None:
            raise self._wrong(f"the type of the number {parameter.name} was not checked")
        if NUMBERS.get(found, ("", ""))[1] != parameter.ctype.base or meaning_of.type != node.type:
            raise self._wrong(f"a {found} is passed for {parameter.ctype} {parameter.name}")
        self.given[parameter.name] = node

    def _array(self, parameter: Parameter, value: Any) -> None:
        output = parameter.kind == "output"
        node = (self._graph.outputs if output else self._graph.inputs)[parameter.name]
        if not isinstance(value, Pointer):
            raise self._wrong(f"{value} is passed for the array {parameter.name}")
        array, state = value.array, self._state
        if array not in state.arrays or array not in state.dtypes:
            raise self._wrong(f"{array.name} was not checked to be an array of {node.dtype}")
        base = C_TYPES.get(state.dtypes[array], "")
        if state.dtypes[array] != str(node.dtype) or base != (value.base or base):
            raise self._wrong(f"an array of {state.dtypes[array]} is passed for {parameter.name}")
        if base != parameter.ctype.base:
            raise self._wrong(f"a pointer to {base} is passed for {parameter.name}")
        if array not in state.shapes:
            raise self._wrong(f"the shape of {array.name} was not checked")
        self._fits(array.name, state.shapes[array], [self._dim(dim) for dim in node.shape])
        if output:
            if not value.writable:
                raise self._wrong(f"{array.name} was not checked to be writable")
            if value.free:
                raise self._wrong(f"{array.name} need not be contiguous")
            self._write(parameter.name, array)
        else:
            self._read(parameter.name, array)
            self._pointer = value
            self._strides = set(value.free)

    def _fits(self, name: str, shape: Shape, dims: Sequence[Dim]) -> None:
        facts = self._state.facts
        try:
            pairs = list(merged(facts, shape, dims))
        except NotShown as problem:
            raise self._wrong(problem.reason) from problem
        for axis, (one, other) in enumerate(pairs):
            facts.require(one, other, f"axis {axis} of {name}", self._line)

    def _write(self, name: str, array: Thing) -> None:
        if array in self.written.values():
            raise self._wrong(f"{array.name} is written twice")
        self.written[name] = array

    def _read(self, name: str, array: Thing) -> None:
        found = self._state.holds.get(array)
        if found is None:
            raise self._wrong(f"{array.name}, passed for {name}, holds nothing that was computed")
        self.given[name] = found

    def _stride(self, parameter: Parameter, value: Any) -> None:
        """Of the array before it: as in a contiguous array, or that of the array itself."""
        pointer = self._pointer
        if pointer is None:
            raise self._wrong(f"a stride of {parameter.name} comes before it")
        self._strides = self._strides - {parameter.axis}
        if isinstance(value, Stride):
            if value != Stride(pointer.array, parameter.axis):
                raise self._wrong(f"the stride of axis {value.axis} is passed for {parameter.axis}")
            return
        if not isinstance(value, Dim):
            raise self._wrong(f"{value} is passed for a stride of {parameter.name}")
        dims = self._graph.inputs[parameter.name].shape[parameter.axis + 1 :]
        what = f"the stride of axis {parameter.axis} of {parameter.name}"
        wanted = product([self._dim(dim) for dim in dims])
        self._state.facts.require(value, wanted, what, self._line)

    def _check_strides(self) -> None:
        """All axes along which the array before may have any stride are told."""
        if self._strides:
            raise self._wrong(f"the stride of axis {min(self._strides)} is not passed")


def at(dim: Dim, sizes: Mapping[str, Dim]) -> Dim:
    """A size expression with other sizes put in."""
    from symgrad.ir.dim import Size

    return dim.substitute({Size(name): value for name, value in sizes.items()})


def shape_of(node: Node, group: tuple[int, int, Axes] | None, sizes: Mapping[str, Dim]) -> Shape:
    """The shape of an array of the op: some axes of its node stand for any number of axes."""
    found: tuple[Dim | Axes, ...] = tuple(at(dim, sizes) for dim in node.shape)
    if group is not None:
        start, count, axes = group
        found = (*found[:start], axes, *found[start + count :])
    return found
