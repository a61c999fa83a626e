"""What the runtime knows of an op: its arrays, kernels and sizes, as plain literals.

In: the literals that a generated wrapper spells out.  Out: frozen records.

The records mirror ``symgrad.ir.abi``, with each size written as a Python expression over the
size symbols and with the recipe (``Binding``) that reads the symbols off the shapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
ITEMSIZES = {
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "float32": 4,
    "float64": 8,
}  # fmt: skip

# What the C between cffi and a kernel answers when it has not called the kernel.
MISALIGNED = -1
OVERLAP = -2
WORKSPACE_TOO_SMALL = -3
WORKSPACE_OVERFLOW = -4


@dataclass(frozen=True)
class Array:
    """One array of a call.

    ``dtype`` is NumPy's name, ``dims`` are expressions, ``strides`` the axes whose stride the
    kernel takes (in elements); all other axes lie as in a C-contiguous array.  ``batch``: a name,
    an axis and a count.  So many axes from there on stand for any number of axes of an array: the
    last has as many elements as all of these together, those before it have one.
    """

    name: str
    dtype: str
    dims: tuple[str, ...]
    strides: tuple[int, ...] = ()
    batch: tuple[str, int, int] | None = None

    def __str__(self) -> str:
        dims = list(self.dims)
        if self.batch is not None:
            name, axis, count = self.batch
            dims[axis : axis + count] = [f"*{name}"]
        return f"{self.dtype}[{', '.join(dims)}]"


@dataclass(frozen=True)
class Binding:
    """A size read off a shape: ``size = (input.shape[axis] - offset) / factor``, exactly."""

    size: str
    input: int
    axis: int
    factor: int = 1
    offset: int = 0


@dataclass(frozen=True)
class Kernel:
    """One C function, called as ``symgrad.ir.abi`` says.  Status 1 is ``statuses[0]``."""

    name: str
    sizes: tuple[str, ...]
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    statuses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Residual:
    """An array kept for backward: ``source`` is ``"input"``, ``"output"`` or ``"kernel"``."""

    array: Array
    source: str
    position: int = 0


@dataclass(frozen=True)
class Backward:
    """The gradients of the inputs that ``mask`` marks; those in ``zeros`` are identically zero.

    The kernel takes these ``residuals`` and ``cotangents`` (positions) and writes the rest.
    """

    mask: tuple[bool, ...]
    kernel: Kernel
    residuals: tuple[int, ...]
    cotangents: tuple[int, ...]
    zeros: tuple[int, ...] = ()


@dataclass(frozen=True)
class Case:
    """The kernels that serve the sizes for which all ``conditions`` hold.

    ``apart``: the numbers of batch axes that they do not serve.
    """

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    bindings: tuple[Binding, ...]
    residuals: tuple[Residual, ...]
    inference: Kernel
    forward: Kernel
    backward: tuple[Backward, ...]
    conditions: tuple[str, ...] = ()
    apart: tuple[int, ...] = ()

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
        """What tells all sizes: the names of the bound ones, then each ``*name`` for its axes."""
        batches = self.batches
        together = {size for sizes in batches.values() for size in sizes}
        own = (binding.size for binding in self.bindings if binding.size not in together)
        return (*own, *batches)


@dataclass(frozen=True)
class Value:
    """A plain argument, and the ``text`` of the value that the op is compiled for.

    ``place``: where it stands among the positional arguments, None where it goes by name alone.
    ``exact``: no other value has this text.
    """

    name: str
    text: str
    place: int | None = None
    exact: bool = True


@dataclass(frozen=True)
class Op:
    """One op: what it is called, the C files that hold its kernels, and its cases.

    ``values``: its plain arguments.
    """

    name: str
    differentiable: tuple[bool, ...]
    cases: tuple[Case, ...]
    files: tuple[str, ...]
    header: str
    blas: bool = False
    values: tuple[Value, ...] = ()

    @property
    def module(self) -> str:
        """The name of its extension module, whose file is called as the last part.

        It lies in a package that there is not: an op Random must not take the place of _random.
        """
        return f"_symgrad_kernels._{self.header.removesuffix('.h')}"

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Every kernel once, in the order of first mention."""
        found: dict[str, Kernel] = {}
        for case in self.cases:
            backward = (one.kernel for one in case.backward if one.kernel.outputs)
            for kernel in (case.inference, case.forward, *backward):
                found.setdefault(kernel.name, kernel)
        return tuple(found.values())


@lru_cache(maxsize=4096)
def _compiled(expression: str) -> CodeType:
    return compile(expression, "<size>", "eval")


def evaluate(expression: str, sizes: Sizes) -> int:
    """The value of a size expression or condition.  ZeroDivisionError as in Python.

    The expressions come from the generated wrapper, never from a user's data.
    """
    names = {"__builtins__": {}, "min": min, "max": max}
    return int(eval(_compiled(expression), names, dict(sizes)))


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
