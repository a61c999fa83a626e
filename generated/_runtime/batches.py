"""Leading axes: an op for each element of a batch, as NumPy's generalised ufuncs have it.

In: arrays with more axes in front than an op is compiled for.  Out: one call of compiled code.

The axes in front are broadcast against each other.  The gradient of an input is summed over those
along which it was repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy

from .abi import Array, Case, Kernel, Op, Sizes
from .errors import KernelArgumentError
from .arguments import NDArray, Shaped, steps_of
from .load import Library
from .residuals import Residuals
from .workspace import workspace

_GROUPS = 32  # parts of a batch whose sums are taken apart, at most
_SUMS = 1 << 24  # bytes of all these sums, at most, where one part needs no more
_MOST_AXES = 32  # that numpy.broadcast_shapes takes
_ALONE = 4096  # elements: with fewer, one thread is faster than several


@dataclass(frozen=True)
class Batch:
    """The leading axes of a call; ``own``: those that each input has."""

    shape: tuple[int, ...]
    own: tuple[tuple[int, ...], ...]


ALONE = Batch((), ())
"""No leading axes."""


@dataclass(frozen=True)
class OverBatch:
    """What forward keeps for backward where it was called over leading axes, which arrays have."""

    residuals: Residuals
    batch: Batch

    @property
    def arrays(self) -> dict[str, NDArray]:
        """The arrays by name."""
        return self.residuals.arrays

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes by name, those of one element."""
        return self.residuals.sizes

    def __repr__(self) -> str:
        return f"{self.residuals!r} over {self.batch.shape}"


def has_one_rank(op: Op) -> bool:
    """Has each input the same number of axes in all cases, and none of any number?

    Otherwise more axes mean something to the op itself, and are no batch.
    """
    cases = [one.inputs for one in op.cases]
    ranks = {tuple(len(array.dims) for array in inputs) for inputs in cases}
    return len(ranks) == 1 and all(one.batch is None for inputs in cases for one in inputs)


def leading(
    where: str, case: Case, arrays: Sequence[NDArray]
) -> tuple[Batch, list[Shaped]] | None:  # fmt: skip
    """The leading axes of a call, and the shapes of one element; None where there are none.

    Raises KernelArgumentError where the axes do not fit each other.
    """
    ranks = [value.ndim - len(one.dims) for value, one in zip(arrays, case.inputs, strict=True)]
    if not any(ranks):
        return None
    own = tuple(value.shape[:rank] for value, rank in zip(arrays, ranks, strict=True))
    if max(ranks) > _MOST_AXES:
        raise KernelArgumentError(
            f"{where}: {max(ranks)} leading axes, where NumPy broadcasts {_MOST_AXES} at most",
            hint="reshape the inputs, so that several leading axes are one",
        )
    try:
        shape = numpy.broadcast_shapes(*own)
    except ValueError:
        axes = [f"{one.name} {axes}" for one, axes in zip(case.inputs, own, strict=True)]
        raise KernelArgumentError(
            f"{where}: the leading axes cannot be broadcast together: {', '.join(axes)}",
            hint="their lengths are equal, or 1; they are counted from the last one",
        ) from None
    elements = [Shaped(value.shape[rank:]) for value, rank in zip(arrays, ranks, strict=True)]
    return Batch(shape, own), elements


def call(
    library: Library, kernel: Kernel, sizes: Sizes, batch: tuple[int, ...],
    inputs: Mapping[str, Any], outputs: Mapping[str, NDArray],
) -> int:  # fmt: skip
    """Call a kernel for each element; return its status.  A sum over no elements is 0."""
    ffi, count = library.ffi, prod(batch)
    integers: list[int] = [sizes[name] for name in kernel.sizes]
    reals: list[float] = []
    pointers, steps, elements = [], [], 0
    for array in kernel.inputs:
        value = inputs[array.name]
        if array.by_value:
            (integers if array.dtype == "int64" else reals).append(value)
            continue
        more = value.ndim - len(array.dims)
        integers += [steps_of(value, more)[axis] for axis in array.strides]
        pointers.append(ffi.cast("char *", value.ctypes.data))
        steps += _steps(value, more, batch)
        elements += prod(value.shape[more:])
    summed = []
    for array in kernel.outputs:
        value = outputs[array.name]
        more = value.ndim - len(array.dims)
        pointers.append(ffi.cast("char *", value.ctypes.data))
        own = _steps(value, more, batch)
        steps += own
        core = prod(value.shape[more:])
        elements += core
        summed.append((core, value.size, value.itemsize if _is_summed(own, batch) else 0))
    needed = int(getattr(library.lib, f"needed_{kernel.name}")(*integers[: len(kernel.sizes)]))
    groups, threads = _shares(library, summed, count, elements)
    own_bytes = _rounded(needed) + sum(_rounded(core * size) for core, _, size in summed)
    sums = sum(whole for _, whole, size in summed if size)
    workspace.grow(threads * own_bytes + 8 * groups * sums)
    run = getattr(library.lib, f"batch_{kernel.name}")
    return int(run(
        integers, reals, pointers, len(batch), list(batch), steps,
        [number for one in summed for number in one], groups, threads,
        workspace.pointer, workspace.size,
    ))  # fmt: skip


def _shares(
    library: Library, summed: Sequence[tuple[int, int, int]], count: int, elements: int
) -> tuple[int, int]:
    """Into how many parts a batch is cut, and on how many threads.

    Sums are cut by sizes alone, so that they do not depend on the threads.
    """
    groups = count
    sums = 8 * sum(whole for _, whole, size in summed if size)
    if any(size for _, _, size in summed):
        groups = max(1, min(count, _GROUPS, _SUMS // max(sums, 1)))
    most = int(library.lib.symgrad_max_threads())
    alone = elements * count <= _ALONE or (groups < most and elements > _ALONE)
    return groups, 1 if alone else min(groups, most)


def _rounded(size: int) -> int:
    return -(-size // 64) * 64


def _steps(value: NDArray, more: int, batch: tuple[int, ...]) -> list[int]:
    """Bytes from element to element along each leading axis, 0 where an array is repeated."""
    own = [
        0 if extent == 1 else stride
        for extent, stride in zip(value.shape[:more], value.strides, strict=False)
    ]
    return [0] * (len(batch) - more) + own


def _is_summed(steps: Sequence[int], batch: tuple[int, ...]) -> bool:
    """Is an output one for several elements?"""
    return any(not step and extent > 1 for step, extent in zip(steps, batch, strict=True))


def one_by_one(
    run: Callable[[Mapping[str, Any], Mapping[str, NDArray]], int], kernel: Kernel,
    batch: tuple[int, ...], inputs: Mapping[str, Any], outputs: Mapping[str, NDArray],
) -> int:  # fmt: skip
    """The same where no library is loaded: ``run`` computes one element."""
    sums = {}
    for array in kernel.outputs:
        value = outputs[array.name]
        more = value.ndim - len(array.dims)
        if _is_summed(_steps(value, more, batch), batch):
            sums[array.name] = numpy.zeros(value.shape)
    for place in numpy.ndindex(batch):
        given = {
            one.name: inputs[one.name] if one.by_value else _at(inputs[one.name], one, place)
            for one in kernel.inputs
        }
        parts = {
            one.name: numpy.empty(_at(outputs[one.name], one, place).shape, one.dtype)
            for one in kernel.outputs
        }
        status = run(given, parts)
        if status:
            return status
        for array in kernel.outputs:
            whole = sums.get(array.name)
            if whole is None:
                _at(outputs[array.name], array, place)[...] = parts[array.name]
            else:
                _at(whole, array, place)[...] += parts[array.name]
    for name, whole in sums.items():
        outputs[name][...] = whole
    return 0


def _at(value: NDArray, array: Array, place: tuple[int, ...]) -> NDArray:
    """One element of an array with leading axes."""
    more = value.ndim - len(array.dims)
    own = place[len(place) - more :]
    index: tuple[Any, ...] = (
        *(at if extent > 1 else 0 for at, extent in zip(own, value.shape, strict=False)),
        ...,
    )
    found: NDArray = value[index]
    return found
