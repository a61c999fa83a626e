"""What an op looks like from another framework: its parameters, and its cases as shapes.

In: compiled ops, or modules of generated packages.  Out: a ``Table``, which knows the shapes and
dtypes of all results from those of the inputs, and calls the kernels with arrays.

Shapes may hold the symbolic integers of a framework: nothing is made an ``int`` of.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy

from .abi import Array, Case, Op, Value, as_one, value_of
from .errors import KernelArgumentError, KernelTypeError, SymgradError
from .digests import digest
from .values import AS_COMPILED

Shape = tuple[Any, ...]
Sizes = dict[str, Any]


@dataclass(frozen=True)
class Served:
    """What one call needs: the entry of the table that serves it, and the sizes there."""

    entry: Entry
    sizes: Sizes


@dataclass(frozen=True)
class Entry:
    """One case of one op.  ``position``: its place in the table.

    ``kept`` are the positions, among the residuals, of those that only the forward kernel makes;
    ``saved`` those of inputs and outputs.
    """

    position: int
    runner: Runner
    case: Case
    kind: Any

    @property
    def extra(self) -> tuple[Array, ...]:
        """The arrays that the forward kernel makes for backward alone."""
        return tuple(one.array for one in self.case.residuals if one.source == "kernel")

    def pack(self, kept: Sequence[Any], sizes: Sequence[Any], numbers: Mapping[str, Any]) -> Any:
        """The residuals, from their arrays in order, the values of ``case.sizes``, the numbers."""
        arrays = iter(kept)
        values = [
            numbers[one.array.name] if one.source == "number" else next(arrays)
            for one in self.case.residuals
        ]
        return self.kind((*values, *sizes))


class Runner:
    """One op, called with arrays: a compiled op, or a module of a generated package."""

    def __init__(self, op: Any) -> None:
        module = op if isinstance(op, ModuleType) else getattr(op, "module", None)
        caller: Any = getattr(op, "_careful" if isinstance(op, ModuleType) else "caller", None)
        # A generated package has classes of its own.
        if not (hasattr(caller, "residuals") and hasattr(caller, "served")):
            raise KernelTypeError(
                f"a {type(op).__name__} is no compiled op",
                hint="pass what sg.compile returned, or a module of a generated package",
            )
        self.op = op
        self.caller: Any = caller
        self.record: Op = self.caller.op
        self.keywords: tuple[str, ...] = tuple(one.name for one in self.record.numbers)
        if module is not None:
            self.keywords = getattr(module, "_NUMBERS", ())
        self.inference: Callable[..., Any] = op.inference
        self.forward: Callable[..., Any] = op.forward
        self.backward: Callable[..., Any] = op.backward

    @property
    def identity(self) -> str:
        """Equal for ops with the same kernels: a digest of the record and of the C."""
        library = getattr(self.caller.library, "path", "")
        return digest(repr(self.record), str(library))

    def named(self, numbers: Sequence[Any]) -> dict[str, Any]:
        """The plain numbers as keyword arguments of ``forward``."""
        return dict(zip(self.keywords, numbers, strict=True))


@dataclass(frozen=True)
class Parameter:
    """One argument of the op elsewhere: a tensor, or a plain number (``number`` is its record)."""

    name: str
    number: Value | None = None
    by_name: bool = False


class Table:
    """The cases of one op, or of several that differ in dtypes and shapes alone."""

    def __init__(self, ops: Sequence[Any]) -> None:
        if not ops:
            raise KernelTypeError("no op is given", hint="pass what sg.compile returned")
        self.runners = [Runner(op) for op in ops]
        first = self.runners[0].record
        self.name: str = first.name
        self.differentiable: tuple[bool, ...] = first.differentiable
        self.numbers: tuple[Value, ...] = first.numbers
        self.outputs: int = len(first.cases[0].outputs)
        for other in self.runners[1:]:
            _check_alike(self, other.record)
        self.entries: list[Entry] = []
        for runner in self.runners:
            for case, kind in zip(runner.record.cases, runner.caller.residuals, strict=True):
                self.entries.append(Entry(len(self.entries), runner, case, kind))
        self.of_kind = {entry.kind: entry for entry in self.entries}
        self.extra = max(len(entry.extra) for entry in self.entries)
        self.parameters = _parameters(first)

    @property
    def identity(self) -> str:
        """Equal for tables of the same kernels."""
        return digest(*(runner.identity for runner in self.runners))

    @property
    def inputs(self) -> tuple[Array, ...]:
        """The tensors, as the first case takes them."""
        return self.entries[0].case.inputs

    @property
    def dtypes(self) -> set[str]:
        """The dtypes of all floating inputs."""
        arrays = (array for entry in self.entries for array in entry.case.inputs)
        return {one.dtype for one in arrays if one.dtype in ("float32", "float64")}

    def modules(self, shown: object) -> tuple[str, ...]:
        """The modules that the ops come from, for pickles.  ``shown``: what is pickled.

        Raises KernelTypeError where an op is of this process alone.
        """
        ops = [runner.op for runner in self.runners]
        found = [op.__name__ for op in ops if isinstance(op, ModuleType)]
        if len(found) != len(ops):
            raise KernelTypeError(
                f"{shown!r} cannot be pickled: its kernels are of this process alone",
                hint="build a package of it (symgrad build), and export the module of that",
            )
        return tuple(found)

    # -- which kernels serve a call

    def runner_for(self, dtypes: Sequence[str]) -> Runner:
        """The op for these dtypes of the inputs; the first where none has them."""
        if len(self.runners) == 1:
            return self.runners[0]
        for entry in self.entries:
            if _has_dtypes(entry.case, dtypes):
                return entry.runner
        return self.runners[0]

    def served(
        self, shapes: Sequence[Shape], dtypes: Sequence[str], numbers: Sequence[Any]
    ) -> Served:
        """The case and the sizes for inputs of these shapes and dtypes.

        Raises KernelTypeError and KernelArgumentError, as a call with such arrays does.
        """
        named = dict(zip((one.name for one in self.numbers), numbers, strict=True))
        for entry in self.entries:
            if not _has_dtypes(entry.case, dtypes):
                continue
            if not all(value_of(condition, named) for condition in entry.case.where):
                continue
            sizes = bound(entry.case, shapes)
            if sizes is not None:
                return Served(entry, sizes)
        raise self.refusal(shapes, dtypes, numbers)

    def refusal(
        self, shapes: Sequence[Shape], dtypes: Sequence[str], numbers: Sequence[Any]
    ) -> Exception:
        """Why no kernel serves such a call, in the words of a call with arrays."""
        stand_ins = [
            numpy.broadcast_to(numpy.zeros((), dtype), tuple(int(extent) for extent in shape))
            for shape, dtype in zip(shapes, dtypes, strict=True)
        ]
        try:
            self.runner_for(dtypes).caller.served(stand_ins, numbers)
        except (TypeError, ValueError) as error:  # its classes are those of the op's own runtime
            if isinstance(error, SymgradError) or hasattr(error, "hint"):
                return error
            raise
        return KernelArgumentError(
            f"{self.name}: no kernel serves the shapes {', '.join(map(str, shapes))}"
        )

    def number(self, where: str, values: Mapping[str, Any]) -> list[Any]:
        """The plain numbers in the order of the kernels, checked; their defaults where not given.

        Raises KernelTypeError and KernelArgumentError.
        """
        caller = self.runners[0].caller
        given = [values.get(one.name, AS_COMPILED) for one in self.numbers]
        return list(caller.values.numbers(where, given).values()) if given else []


def _check_alike(table: Table, other: Op) -> None:
    """Can one op elsewhere stand for both?  Raises KernelArgumentError."""
    same = (
        other.differentiable == table.differentiable
        and len(other.cases[0].outputs) == table.outputs
        and other.numbers == table.numbers
    )
    if not same:
        raise KernelArgumentError(
            f"{other.name} and {table.name} differ in more than dtypes and shapes",
            hint="pass together only the same Function, compiled for several dtypes or ranks",
        )


def _has_dtypes(case: Case, dtypes: Sequence[str]) -> bool:
    return [array.dtype for array in case.inputs] == list(dtypes)


# -- sizes


def bound(case: Case, shapes: Sequence[Shape]) -> Sizes | None:
    """The sizes of a case, read off the shapes of its inputs; None where it does not serve them."""
    sizes = _batch_axes(case, shapes)
    if sizes is None or len(shapes) != len(case.inputs):
        return None
    together = [_together(shape, array) for shape, array in zip(shapes, case.inputs, strict=True)]
    for one in case.bindings:
        extent = together[one.input][one.axis] - one.offset
        if not one.plain and (extent < 0 or extent % one.factor):
            return None
        sizes[one.size] = extent if one.plain else extent // one.factor
    try:
        for shape, array in zip(together, case.inputs, strict=True):
            for extent, dim in zip(shape, array.dims, strict=True):
                expected = sizes[dim] if dim in sizes else value_of(dim, sizes)
                if expected is not extent and expected != extent:
                    return None
        return sizes if all(value_of(one, sizes) for one in case.conditions) else None
    except ZeroDivisionError:
        return None


def _batch_axes(case: Case, shapes: Sequence[Shape]) -> Sizes | None:
    found: Sizes = {}
    for shape, array in zip(shapes, case.inputs, strict=False):
        least = len(array.dims) - (array.batch[2] if array.batch else 0)
        if len(shape) < least or (len(shape) > least and array.batch is None):
            return None
        if array.batch is None:
            continue
        group, start, count = array.batch
        axes = tuple(shape[start : len(shape) - (len(array.dims) - start - count)])
        if found.setdefault(f"*{group}", axes) != axes or len(axes) in case.apart:
            return None
    return found


def _together(shape: Shape, array: Array) -> Shape:
    """The shape with one axis for all batch axes, and those of one element before it."""
    if array.batch is None:
        return shape
    _, start, count = array.batch
    end = len(shape) - (len(array.dims) - start - count)
    return (*shape[:start], *as_one(shape[start:end], count), *shape[end:])


def shape_in(array: Array, sizes: Mapping[str, Any]) -> Shape:
    """The shape of an array for these sizes."""
    dims = array.dims
    shape = tuple(sizes[dim] if dim in sizes else value_of(dim, sizes) for dim in dims)
    if array.batch is None:
        return shape
    name, axis, count = array.batch
    return (*shape[:axis], *sizes[f"*{name}"], *shape[axis + count :])


# -- parameters


def _parameters(op: Op) -> tuple[Parameter, ...]:
    """Tensors and plain numbers in the order of ``forward``; compiled-in values are left out."""
    by_place = {one.place: one for one in op.values if one.place is not None}
    names = iter(array.name for array in op.cases[0].inputs)
    found: list[Parameter] = []
    place, left = 0, len(op.differentiable)
    while left or any(known >= place for known in by_place):
        value = by_place.get(place)
        place += 1
        if value is None and left:
            found.append(Parameter(next(names)))
            left -= 1
        elif value is not None and value.number:
            found.append(Parameter(value.name, value))
    found += [
        Parameter(one.name, one, by_name=True) for one in op.numbers if one.place is None
    ]  # fmt: skip
    return _with_plain_names(found)


def _with_plain_names(parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """The parameters with names that every framework takes, each once."""
    taken: set[str] = set()
    found = []
    for position, one in enumerate(parameters):
        name = one.name
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
            name = f"arg{position}"
        if keyword.iskeyword(name) or name == "out":
            name += "_"
        while name in taken:
            name += "_"
        taken.add(name)
        found.append(Parameter(name, one.number, one.by_name))
    return tuple(found)
