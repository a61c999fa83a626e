"""Is this array what a kernel takes?

In: whatever the caller passed, and the ``Array`` it stands for.  Out: a NumPy array of that dtype,
rank and layout, the sizes read off the shapes, or an error.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from .abi import Array, Case, Sizes, as_one, evaluate, shape_of
from .errors import KernelArgumentError, KernelTypeError, counted
from .plain_values import described

# Steps of the search for an element that two arrays share.
_MOST_WORK: Any = 10_000

NDArray = numpy.ndarray[Any, numpy.dtype[Any]]


class WrongRank(KernelArgumentError):
    """An array has another number of axes than a kernel takes."""


@dataclass(frozen=True)
class Shaped:
    """What stands for an array where only its shape is looked at."""

    shape: tuple[int, ...]


def as_array(where: str, value: object, wanted: Array, *, leading: bool = False) -> NDArray:
    """``value`` as an array of the wanted dtype and rank, with no copy.

    ``leading``: it may have more axes in front.

    ``where`` begins every message: ``"Softplus.forward: input x"``.  Arrays of any layout and
    byte order pass, what shares its memory by DLPack, and NumPy scalars where there are no axes.
    Raises KernelTypeError for anything else than an array of that dtype, KernelArgumentError for
    another rank.
    """
    if isinstance(value, numpy.generic):
        value = numpy.asarray(value)
    if not isinstance(value, numpy.ndarray):
        if not hasattr(type(value), "__dlpack__"):
            raise _not_an_array(where, value, wanted)
        value = _shared(where, value)
    if type(value) is not numpy.ndarray and isinstance(value, numpy.ma.MaskedArray):
        raise KernelTypeError(
            f"{where} is a masked array, and kernels do not know masks",
            hint="pass value.filled(...) with a number for the masked elements",
        )
    value = numpy.asarray(value)
    if value.dtype.newbyteorder("=") != wanted.dtype:
        raise _wrong_dtype(where, value, wanted)
    least = len(wanted.dims) - (wanted.batch[2] if wanted.batch else 0)
    if value.ndim < least or (value.ndim > least and not wanted.batch and not leading):
        has = f"{'at least ' if wanted.batch else ''}{counted(least, 'axis') if least else 'none'}"
        raise WrongRank(
            f"{where} has the shape {value.shape}: {counted(value.ndim, 'axis')} where {wanted}"
            f" has {has}",
            hint="reshape it, or compile the op for that rank",
        )
    return value


def _shared(where: str, value: Any) -> NDArray:
    """An array on the memory of a tensor of another library.  Raises KernelTypeError."""
    try:
        return numpy.from_dlpack(value)
    except RecursionError:  # one of RuntimeError; what is called again and again has to end
        raise
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        hint = "copy it into an array of NumPy"
        if name.split(".")[0] == "torch":
            hint = (
                "pass value.detach().cpu(); symgrad.export.torch makes an op for tensors that"
                " require gradients"
            )
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise KernelTypeError(
            f"{where} is a {name} whose memory cannot be shared: {reason}", hint=hint
        ) from error


def _not_an_array(where: str, value: object, wanted: Array) -> KernelTypeError:
    kind = type(value)
    name = (
        f"{kind.__module__}.{kind.__qualname__}" if kind.__module__ != "builtins" else kind.__name__
    )
    hint = f"pass numpy.asarray(value, dtype=numpy.{_dtype_name(wanted)})"
    if value is None:
        hint = "whether an optional input is given is decided when the op is compiled"
    elif kind.__module__.split(".")[0] == "torch":
        hint = "pass value.detach().cpu().numpy()"
    return KernelTypeError(f"{where} is a {name}, not a NumPy array", hint=hint)


def _dtype_name(wanted: Array) -> str:
    return "bool_" if wanted.dtype == "bool" else wanted.dtype


def _wrong_dtype(where: str, value: NDArray, wanted: Array) -> KernelTypeError:
    what = f"{where} has the dtype {value.dtype}, {wanted.dtype} is expected"
    hint = f"convert it with .astype(numpy.{_dtype_name(wanted)}), or compile the op for its dtype"
    if value.dtype == object:
        hint = (
            "an array of Python objects holds no numbers in a row: give it a dtype when it is made"
        )
    return KernelTypeError(what, hint=hint)


def bind_sizes(
    where: str, case: Case, arrays: Sequence[NDArray | Shaped], names: Sequence[str]
) -> dict[str, Any]:
    """The sizes of ``case``, read off the shapes of its inputs and checked against all of them.

    ``names`` are what messages call the inputs.  Raises KernelArgumentError where shapes do not
    fit each other.
    """
    sizes = _batch_axes(where, case, arrays, names)
    shapes = [_together(one.shape, wanted) for one, wanted in zip(arrays, case.inputs, strict=True)]
    for binding in case.bindings:
        extent = shapes[binding.input][binding.axis] - binding.offset
        if extent < 0 or extent % binding.factor:
            array, shape = case.inputs[binding.input], arrays[binding.input].shape
            raise KernelArgumentError(
                f"{where}: {names[binding.input]} has the shape {shape}, and axis"
                f" {_own_axis(shape, array, binding.axis)} cannot be {array.dims[binding.axis]}"
                f" for any size {binding.size}",
                hint=f"it is expected as {array}",
            )
        sizes[binding.size] = extent // binding.factor
    for position, (shape, wanted) in enumerate(zip(shapes, case.inputs, strict=True)):
        for axis, dim in enumerate(wanted.dims):
            expected = _value(where, dim, sizes)
            if shape[axis] != expected:
                raise _mismatch(where, case, arrays, names, position, axis, expected)
    return sizes


def _batch_axes(
    where: str, case: Case, arrays: Sequence[NDArray | Shaped], names: Sequence[str]
) -> dict[str, Any]:
    """The axes that each ``*name`` stands for, the same in all inputs."""
    found: dict[str, Any] = {}
    first: dict[str, str] = {}
    for name, value, wanted in zip(names, arrays, case.inputs, strict=True):
        if wanted.batch is None:
            continue
        group, start, _ = wanted.batch
        axes = value.shape[start : _end(value.shape, wanted)]
        if found.setdefault(f"*{group}", axes) != axes:
            raise KernelArgumentError(
                f"{where}: {first[group]} and {name} disagree on *{group}: {found[f'*{group}']} and"
                f" {axes}",
                hint="arrays are not broadcast: numpy.broadcast_to may help",
            )
        first.setdefault(group, name)
        if len(axes) in case.apart:
            raise KernelArgumentError(
                f"{where}: no kernel serves {counted(len(axes), 'axis')} for *{group}",
                hint="forward does not accept so many, or treats them by themselves",
            )
    return found


def _end(shape: tuple[int, ...], wanted: Array) -> int:
    """Where the batch axes of ``shape`` end."""
    assert wanted.batch is not None
    _, start, count = wanted.batch
    return len(shape) - (len(wanted.dims) - start - count)


def _together(shape: tuple[int, ...], wanted: Array) -> tuple[int, ...]:
    """The shape with one axis for all batch axes, and those of one element before it."""
    if wanted.batch is None:
        return shape
    _, start, count = wanted.batch
    end = _end(shape, wanted)
    return (*shape[:start], *as_one(shape[start:end], count), *shape[end:])


def _own_axis(shape: tuple[int, ...], wanted: Array, axis: int) -> int:
    """The axis of ``shape`` that is ``axis`` of the dims of ``wanted``."""
    behind = wanted.batch is not None and axis >= wanted.batch[1] + wanted.batch[2]
    return axis - len(wanted.dims) + len(shape) if behind else axis


def _value(where: str, dim: str, sizes: Sizes) -> int:
    try:
        return evaluate(dim, sizes)
    except ZeroDivisionError:
        raise KernelArgumentError(
            f"{where}: the size {dim} divides by zero for {describe(sizes)}",
            hint="no kernel serves these sizes",
        ) from None


def _mismatch(
    where: str,
    case: Case,
    arrays: Sequence[NDArray | Shaped],
    names: Sequence[str],
    position: int,
    axis: int,
    expected: int,
) -> KernelArgumentError:
    """Name both arrays that disagree on a size, or the one that breaks a rule of its own."""
    dim = case.inputs[position].dims[axis]
    shape = arrays[position].shape
    axis = _own_axis(shape, case.inputs[position], axis)
    here = f"{names[position]} has {shape[axis]} in axis {axis} of its shape {shape}"
    what = f"{where}: {here}, where {case.inputs[position]} wants {dim}"
    if dim != str(expected):
        what += f" = {expected}"
    origin = next((binding for binding in case.bindings if binding.size == dim), None)
    if origin is not None and origin.input != position:
        other = arrays[origin.input].shape
        there = _own_axis(other, case.inputs[origin.input], origin.axis)
        what = (
            f"{where}: {names[origin.input]} and {names[position]} disagree on {dim}: {expected}"
            f" (axis {there} of {other}) and {shape[axis]} (axis {axis} of {shape})"
        )
    wanted = ", ".join(f"{n}: {a}" for n, a in zip(names, case.inputs, strict=True))
    return KernelArgumentError(what, hint=f"the op is compiled for {wanted}")


def describe(sizes: Sizes) -> str:
    """``n = 3, m = 4``, for messages."""
    return ", ".join(f"{name} = {value}" for name, value in sizes.items()) or "no sizes"


def checked_shape(where: str, array: Array, sizes: Sizes) -> tuple[int, ...]:
    """The shape of an output.  Raises KernelArgumentError where it is none."""
    try:
        shape = shape_of(array, sizes)
    except ZeroDivisionError:
        shape = (-1,)
    if any(extent < 0 for extent in shape):
        raise KernelArgumentError(
            f"{where}: {array.name} would have the shape [{', '.join(array.dims)}], which is none"
            f" for {describe(sizes)}",
            hint="no kernel serves these sizes",
        )
    return shape


def as_output(where: str, value: object, wanted: Array, shape: tuple[int, ...]) -> NDArray:
    """``value`` as an array to write results into: exact dtype and shape, of any strides.

    Raises KernelTypeError or KernelArgumentError.
    """
    leading = wanted.batch is None and len(shape) > len(wanted.dims)
    array = as_array(where, value, wanted, leading=leading)
    if array.shape != shape:
        raise KernelArgumentError(
            f"{where} has the shape {array.shape}, the result has {shape}",
            hint=f"give numpy.empty({shape}, numpy.{_dtype_name(wanted)})",
        )
    if not array.dtype.isnative:
        raise KernelTypeError(f"{where} is not in this machine's byte order", hint="make a new one")
    if isinstance(value, numpy.generic) or not array.flags.writeable:
        raise KernelArgumentError(f"{where} is read-only", hint="give an array that can be written")
    if _overlaps_itself(array):
        raise KernelArgumentError(
            f"{where} has the same memory for several elements (its strides are {array.strides})",
            hint="give an array whose elements lie apart",
        )
    return array


def share_memory(left: NDArray, right: NDArray) -> bool:
    """Do the two share an element?  Exact where that is cheap, else whether they might."""
    if not numpy.may_share_memory(left, right):
        return False
    try:
        return bool(numpy.shares_memory(left, right, max_work=_MOST_WORK))
    except numpy.exceptions.TooHardError:
        return True


def _overlaps_itself(array: NDArray) -> bool:
    """Do two elements share memory?  They first differ in an axis; shifted, one is at 0 there."""
    if not array.size:
        return False
    falling = array.transpose(numpy.argsort(numpy.abs(array.strides))[::-1])
    rests = (falling[(0,) * axis] for axis in range(array.ndim))
    return any(share_memory(rest[:1], rest[1:]) for rest in rests)


def check_apart(where: str, outputs: Mapping[str, NDArray], inputs: Mapping[str, NDArray]) -> None:
    """No output may overlap an input or another output.  Raises KernelArgumentError."""
    seen: dict[str, NDArray] = {}
    for name, output in outputs.items():
        for other, array in (*inputs.items(), *seen.items()):
            if share_memory(output, array):
                raise KernelArgumentError(
                    f"{where}: out for {name} shares memory with {other}",
                    hint="give an array of its own; kernels cannot work in place",
                )
        seen[name] = output


def whole(what: str, value: Any, most: int) -> int:
    """An integer from 0 to ``most``.  Raises KernelTypeError and KernelArgumentError."""
    try:
        found = operator.index(value)
    except TypeError:
        raise KernelTypeError(
            f"{what} is {described(value)}, and an integer is expected", hint="give 0 or more"
        ) from None
    if not 0 <= found <= most:
        raise KernelArgumentError(
            f"{what} cannot be {described(found)}", hint=f"give a number from 0 to {most}"
        )
    return found


# -- how an array lies in memory


def _contiguous_steps(shape: Sequence[int]) -> list[int]:
    steps = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        steps[axis] = steps[axis + 1] * shape[axis + 1]
    return steps


def steps_of(array: NDArray, more: int = 0) -> list[int]:
    """The strides in elements; as in a contiguous array where an axis has no second element.

    ``more``: so many axes in front are left out.
    """
    shape = array.shape[more:]
    contiguous = _contiguous_steps(shape)
    if array.size == 0:
        return contiguous
    real = [stride // array.itemsize for stride in array.strides[more:]]
    return [
        usual if extent <= 1 else step
        for extent, step, usual in zip(shape, real, contiguous, strict=True)
    ]


def complies(value: NDArray, wanted: Array, more: int = 0) -> bool:
    """Can a kernel take an array as it lies in memory?  No element is looked at."""
    if value.dtype != wanted.dtype or not value.flags.aligned:
        return False
    return value.flags.c_contiguous or _has_strides(value, wanted.strides, more)


def _has_strides(value: NDArray, strided: tuple[int, ...], more: int) -> bool:
    if any(stride % value.itemsize for stride in value.strides):
        return False
    shape = value.shape[more:]
    steps, contiguous = steps_of(value, more), _contiguous_steps(shape)
    behind = max(strided, default=-1) + 1
    least = int(numpy.prod(shape[behind:], dtype=numpy.int64))
    return all(
        step >= least if axis in strided else step == usual
        for axis, (step, usual) in enumerate(zip(steps, contiguous, strict=True))
    )
