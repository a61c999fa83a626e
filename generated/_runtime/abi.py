"""The call of a kernel: the contract between the emitted C and its callers.

In: nothing.  Out: frozen records, and functions of them.  The code generator makes the records, a
generated wrapper spells them out as literals, and the runtime reads them there: they hold text and
numbers only.  A size is a Python expression over the size symbols.

A kernel is one C function.  Its parameters, in this order:

1. one ``int64_t`` for each size symbol, in the order of ``Kernel.sizes``;
2. for each input: ``const T *restrict name``, then one ``int64_t name_s<axis>`` (counted in
   elements) for each axis named in ``Array.strides``; or ``T name`` for a plain number;
3. for each output: ``T *restrict name``, C-contiguous;
4. ``void *workspace``, aligned to 64 bytes, of at least the bytes that the companion function
   ``int64_t <name>_workspace(int64_t sizes...)`` returns.

It returns ``int``: 0, or a status, which is the place in ``STATUSES`` of what it means, from 1 on.
It allocates nothing and keeps no state.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from functools import lru_cache
from math import prod
from types import CodeType
from typing import Any

Sizes = Mapping[str, Any]
"""Sizes by name: integers, and for each ``*name`` the tuple of its axes."""

C_TYPES = {
    "bool": "uint8_t", "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t",
    "int32": "int32_t", "int64": "int64_t", "float32": "float", "float64": "double",
}  # fmt: skip

ALIGNMENT = 64
"""A workspace begins at a multiple of so many bytes."""

LARGE = 1 << 17
"""Bytes of an array from which on it is made over memory of the pool; less, malloc itself keeps."""

OUT_OF_RANGE = "an index is out of range"
TOO_LARGE = "a matrix is too large for the BLAS"
STATUSES = (OUT_OF_RANGE, TOO_LARGE)
"""What the numbers that a kernel returns mean, from 1 on; others come behind."""

# The statuses that the C between cffi and a kernel returns when it has not called the kernel.
MISALIGNED = -1
OVERLAP = -2
WORKSPACE_TOO_SMALL = -3
WORKSPACE_OVERFLOW = -4


class Record:
    """A record whose repr evaluates back to it."""

    def arguments(self) -> list[tuple[str, Any]]:
        """What makes it: fields by position under "", then those that are not their defaults."""
        found = []
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if not field.kw_only:
                found.append(("", value))
            elif value != field.default:
                found.append((field.name, value))
        return found

    def __repr__(self) -> str:
        return literal(self)


def literal(value: Any) -> str:
    """A record, or what it holds, as Python text on one line, strings in double quotes."""
    if isinstance(value, Record):
        words = (f"{key}={literal(one)}" if key else literal(one) for key, one in value.arguments())
        return f"{type(value).__name__}({', '.join(words)})"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, str) and '"' not in value:
        return '"' + repr("'" + value)[2:]  # a text with ' and no " is repr'd in double quotes
    return repr(value)


@dataclass(frozen=True, repr=False)
class Array(Record):
    """One array of a call.

    ``dtype`` is NumPy's name, ``dims`` are expressions.  ``strides``: the axes whose stride the
    kernel takes, in elements.  All other axes lie as in a C-contiguous array: with ``()`` the whole
    array is contiguous, with ``(0,)`` of a matrix each row is.  The caller copies an array that
    does not comply.  ``batch``: a name, an axis and a count, in the arrays of an op only.  So many
    axes from there on stand for any number of axes of an array: the last has as many elements as
    all of these together, those before it have one.  ``by_value``: it is a plain number, which the
    kernel takes itself.
    """

    name: str
    dtype: str
    dims: tuple[str, ...]
    _: KW_ONLY
    strides: tuple[int, ...] = ()
    batch: tuple[str, int, int] | None = None
    by_value: bool = False

    def __str__(self) -> str:
        dims = list(self.dims)
        if self.batch is not None:
            name, axis, count = self.batch
            dims[axis : axis + count] = [f"*{name}"]
        return f"{self.dtype}[{', '.join(dims)}]"


@dataclass(frozen=True, repr=False)
class Binding(Record):
    """A size read off a shape: ``size = (input.shape[axis] - offset) / factor``, exactly."""

    size: str
    _: KW_ONLY
    input: int
    axis: int
    factor: int = 1
    offset: int = 0

    @property
    def plain(self) -> bool:
        """Is the axis the size itself?"""
        return (self.factor, self.offset) == (1, 0)


@dataclass(frozen=True, repr=False)
class Kernel(Record):
    """One C function.  ``statuses``: those of ``STATUSES`` that it may return.

    ``indices``: the inputs from which it reads where other elements lie.  It checks them, and then
    reads them again, so that nobody may write to them meanwhile: callers pass copies.
    """

    name: str
    _: KW_ONLY
    sizes: tuple[str, ...]
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    statuses: tuple[str, ...] = ()
    indices: tuple[str, ...] = ()

    @property
    def reasons(self) -> dict[int, str]:
        """What the numbers that it returns mean."""
        return {n: text for n, text in enumerate(STATUSES, 1) if text in self.statuses}


@dataclass(frozen=True, repr=False)
class Residual(Record):
    """An array that forward keeps for backward.

    ``source`` is ``"input"`` or ``"output"`` where it is one of the op's own (``position`` says
    which), ``"number"`` where it is one of ``Op.numbers``, else ``"kernel"``: an extra output of
    the forward kernel.
    """

    array: Array
    source: str
    _: KW_ONLY
    position: int = 0


@dataclass(frozen=True, repr=False)
class Backward(Record):
    """One backward kernel: the gradients of the inputs that ``mask`` marks.

    The kernel's inputs are those ``residuals`` (positions in ``Case.residuals``), then those
    ``cotangents`` (positions among the outputs) that these gradients really need; its outputs are
    the gradients in the order of the inputs.  A gradient that is identically zero has no output:
    its input is in ``zeros``.
    """

    _: KW_ONLY
    mask: tuple[bool, ...]
    kernel: Kernel
    residuals: tuple[int, ...]
    cotangents: tuple[int, ...]
    zeros: tuple[int, ...] = ()


@dataclass(frozen=True, repr=False)
class Case(Record):
    """The kernels that serve the sizes for which all ``conditions`` hold.

    ``bindings``: how the sizes are read off the shapes of the inputs.  ``inference`` computes the
    outputs alone; ``forward`` also the residuals of source ``"kernel"``: the same kernel where
    there are none.  ``apart``: the numbers of batch axes that they do not serve.  ``where``: what
    must hold of the plain numbers.
    """

    _: KW_ONLY
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    bindings: tuple[Binding, ...]
    residuals: tuple[Residual, ...]
    inference: Kernel
    forward: Kernel
    backward: tuple[Backward, ...]
    conditions: tuple[str, ...] = ()
    apart: tuple[int, ...] = ()
    where: tuple[str, ...] = ()

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Inputs, outputs, residuals."""
        return (*self.inputs, *self.outputs, *(residual.array for residual in self.residuals))

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Every kernel that is called."""
        backward = (one.kernel for one in self.backward if one.kernel.outputs)
        return (self.inference, self.forward, *backward)

    def backward_for(self, mask: Sequence[bool]) -> Backward | None:
        """The kernel for exactly these gradients, else the one with the fewest others."""
        able = [
            one for one in self.backward
            if all(has or not wanted for has, wanted in zip(one.mask, mask, strict=True))
        ]  # fmt: skip
        return min(able, key=lambda one: sum(one.mask), default=None)

    @property
    def batches(self) -> dict[str, tuple[str, ...]]:
        """The sizes that stand for the axes of each ``*name``."""
        found = {}
        for array in self.inputs:
            if array.batch is not None:
                name, axis, count = array.batch
                found[f"*{name}"] = array.dims[axis : axis + count]
        return found

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names that determine all sizes: those of the bound ones, then each ``*name``."""
        batches = self.batches
        together = {size for sizes in batches.values() for size in sizes}
        own = (binding.size for binding in self.bindings if binding.size not in together)
        return (*own, *batches)


@dataclass(frozen=True, repr=False)
class Value(Record):
    """A plain argument, and the ``text`` of the value that the op is compiled for.

    ``place``: where it stands among the positional arguments, None where it goes by name alone.
    ``exact``: no other value has this text.  ``number``: the dtype of one that each call passes, of
    which ``text`` is the default, empty for none; empty where the value is part of the kernels.
    ``condition``: an expression that must hold of it; empty where any number will do.
    """

    name: str
    text: str
    _: KW_ONLY
    place: int | None = None
    exact: bool = True
    number: str = ""
    condition: str = ""


@dataclass(frozen=True, repr=False)
class Op(Record):
    """One op: what it is called, the C files that hold its kernels, and its cases.

    ``differentiable`` marks the inputs that have a gradient.  ``values``: its plain arguments.
    ``header`` declares the kernels; ``includes``: the headers that the C files include.
    """

    _: KW_ONLY
    name: str
    differentiable: tuple[bool, ...]
    cases: tuple[Case, ...]
    files: tuple[str, ...]
    header: str
    includes: tuple[str, ...] = ()
    blas: bool = False
    values: tuple[Value, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """All files of C, headers first."""
        return (self.header, *self.includes, *self.files)

    @property
    def numbers(self) -> tuple[Value, ...]:
        """The plain arguments that each call passes to the kernels."""
        return tuple(one for one in self.values if one.number)

    @property
    def module(self) -> str:
        """The name of its extension module, whose file is called as the last part.

        The package of that name does not exist: an op Random must not replace Python's _random.
        """
        return f"_symgrad_kernels._{self.header.removesuffix('.h')}"

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Every kernel once, in the order of first mention."""
        found: dict[str, Kernel] = {}
        for case in self.cases:
            for kernel in case.kernels:
                found.setdefault(kernel.name, kernel)
        return tuple(found.values())


def with_names(expression: str, names: Mapping[str, str]) -> str:
    """A size expression with other names for some of its sizes."""
    return re.sub(r"[^\W\d]\w*", lambda word: names.get(word[0], word[0]), expression)


@lru_cache(maxsize=4096)
def _compiled(expression: str) -> CodeType:
    return compile(expression, "<size>", "eval")


def evaluate(expression: str, sizes: Sizes) -> int:
    """The value of a size expression or condition.  ZeroDivisionError as in Python.

    The expressions come from the generated wrapper, never from a user's data.
    """
    return int(value_of(expression, sizes))


def value_of(expression: str, sizes: Sizes) -> Any:
    """As ``evaluate``, for sizes that need not be integers of Python; a condition is a truth."""
    names = {"__builtins__": {}, "min": min, "max": max}
    return eval(_compiled(expression), names, dict(sizes))


def as_one(axes: tuple[int, ...], count: int) -> tuple[int, ...]:
    """``count`` sizes for these axes: one for all of them together, and before it ones."""
    return (*(1,) * (count - 1), prod(axes))


def all_sizes(case: Case, kept: Sequence[Any]) -> dict[str, Any]:
    """All sizes by name, from the values of ``case.sizes``."""
    sizes = dict(zip(case.sizes, kept, strict=True))
    for name, together in case.batches.items():
        sizes.update(zip(together, as_one(sizes[name], len(together)), strict=True))
    return sizes


def shape_of(array: Array, sizes: Sizes) -> tuple[int, ...]:
    """The shape that ``array`` must have for these sizes."""
    shape = tuple(evaluate(dim, sizes) for dim in array.dims)
    if array.batch is None:
        return shape
    name, axis, count = array.batch
    return (*shape[:axis], *sizes[f"*{name}"], *shape[axis + count :])
