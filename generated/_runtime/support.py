"""The careful path to a kernel, for every call that straight-line code does not expect.

In: an ``Op``, its loaded kernels, and whatever a caller passed.  Out: results, or an error that
says what is wrong.

A generated wrapper first asks C (``quick``), then tries its own straight-line code.  Where that
meets something else (an array that is not contiguous, another byte order, a wrong shape, a
workspace that is too small, a status other than 0), the whole call is done again here, from the
start.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy

from .abi import (
    OUT_OF_RANGE,
    OVERLAP,
    TOO_LARGE,
    WORKSPACE_OVERFLOW,
    WORKSPACE_TOO_SMALL,
    Array,
    Backward,
    Case,
    Kernel,
    Op,
    Sizes,
    shape_of,
)
from .errors import KernelArgumentError, KernelTypeError, counted
from . import pool
from .arguments import (
    NDArray,
    WrongRank,
    as_array,
    as_output,
    bind_sizes,
    check_apart,
    checked_shape,
    describe,
    steps_of,
)
from .batches import ALONE, Batch, OverBatch, has_one_rank, leading, one_by_one
from .batches import call as call_over
from .copies import copy, laid_out, packed, say
from .load import Library
from .residuals import Residuals, serves, taken_apart
from .values import Values
from .workspace import workspace

_HINTS = {
    OUT_OF_RANGE: "an index is at least 0, and less than its axis is long; none is from the end",
    TOO_LARGE: "split the inputs",
}


class Unusual(Exception):
    """Raised and caught by straight-line wrappers: the call is one for this module."""


# What straight-line code may meet: a wrong type, rank, key or layout, a division by zero.
UNUSUAL: tuple[type[Exception], ...] = (
    Unusual,
    ArithmeticError,
    AttributeError,
    BufferError,
    LookupError,
    TypeError,
    ValueError,
)


class Caller:
    """Calls the kernels of one op, checking everything.

    ``residuals`` are the wrapper's own types, one a case.
    """

    def __init__(self, op: Op, library: Library, residuals: tuple[type[Residuals], ...]) -> None:
        self.op = op
        self.library = library
        self.residuals = residuals
        self.values = Values(op, {})

    def inference(
        self, inputs: Sequence[object], out: object = None, numbers: Sequence[Any] = ()
    ) -> Any:
        """The outputs alone: one array, or a tuple of several.

        ``numbers``: the plain numbers that the kernels take; their defaults where there are none.
        """
        where = self.op.name
        known = self.values.numbers(where, numbers)
        case, arrays, sizes, batch = self._case(where, inputs, known)
        outputs = self._allocate(where, case.outputs, sizes, batch.shape, out)
        self._run(where, case.inference, sizes, batch.shape, {**known, **arrays}, outputs)
        return _one_or_tuple([outputs[array.name] for array in case.outputs])

    def forward(
        self, inputs: Sequence[object], out: object = None, numbers: Sequence[Any] = ()
    ) -> tuple[Any, Residuals | OverBatch]:
        """The outputs, and what backward needs.

        Inputs and outputs are kept as they are: writing to one before ``backward`` changes the
        gradients.
        """
        where = f"{self.op.name}.forward"
        known = self.values.numbers(where, numbers)
        case, arrays, sizes, batch = self._case(where, inputs, known)
        outputs = self._allocate(where, case.outputs, sizes, batch.shape, out)
        produced = dict(outputs)
        for residual in case.residuals:
            if residual.source == "kernel":
                shape = batch.shape + checked_shape(where, residual.array, sizes)
                produced[residual.array.name] = pool.empty(shape, residual.array.dtype)
        used = self._run(
            where, case.forward, sizes, batch.shape, {**known, **arrays}, produced
        )  # fmt: skip
        kept: list[Any] = []
        for residual in case.residuals:
            if residual.source == "input":
                name = case.inputs[residual.position].name
                kept.append(_kept(arrays[name], used.get(name)))
            elif residual.source == "number":
                kept.append(known[residual.array.name])
            elif residual.source == "output":
                kept.append(outputs[case.outputs[residual.position].name])
            else:
                kept.append(produced[residual.array.name])
        kind = self.residuals[self.op.cases.index(case)]
        result = _one_or_tuple([outputs[array.name] for array in case.outputs])
        residuals = kind((*kept, *(sizes[name] for name in case.sizes)))
        return result, OverBatch(residuals, batch) if batch.own else residuals

    def backward(
        self,
        residuals: object,
        cotangents: Sequence[object],
        needs_input_grad: object = None,
        out: object = None,
    ) -> tuple[NDArray | None, ...]:
        """The gradients of the inputs, None for each that is not needed.

        Raises KernelTypeError or KernelArgumentError where ``residuals`` are not what forward kept:
        each array must have its dtype and shape.  Indices are checked again.
        """
        where = f"{self.op.name}.backward"
        batch = residuals.batch if isinstance(residuals, OverBatch) else ALONE
        own = residuals.residuals if isinstance(residuals, OverBatch) else residuals
        case = self.case_of(where, own)
        kept, sizes = taken_apart(where, case, own, batch.shape)
        mask = self._mask(where, needs_input_grad)
        buffers = _split_out(where, out, len(case.inputs), "input")
        if not any(mask):
            return (None,) * len(mask)
        backward = self._backward_for(where, case, mask)
        arrays = self._cotangents(where, case, cotangents, sizes, batch.shape, backward)
        for wanted, position in zip(backward.kernel.inputs, backward.residuals, strict=False):
            arrays[wanted.name] = kept[position]
        gradients = self._gradients(where, case, backward, mask, buffers, sizes, batch)
        if out is not None:
            others = {
                f"the cotangent or residual {one.name}": arrays[one.name]
                for one in backward.kernel.inputs if not one.by_value
            }  # fmt: skip
            named = {case.inputs[p].name: gradient for p, gradient in gradients.items()}
            check_apart(where, named, others)
        for position in backward.zeros:
            gradients[position][...] = 0
        written = [gradient for p, gradient in gradients.items() if p not in backward.zeros]
        if written:
            names = (array.name for array in backward.kernel.outputs)
            produced = dict(zip(names, written, strict=True))
            self._run(where, backward.kernel, sizes, batch.shape, arrays, produced)
        return tuple(gradients[p] if wanted else None for p, wanted in enumerate(mask))

    def _gradients(
        self,
        where: str,
        case: Case,
        backward: Backward,
        mask: tuple[bool, ...],
        buffers: list[Any],
        sizes: Sizes,
        batch: Batch,
    ) -> dict[int, NDArray]:
        """An array for each gradient that the kernel computes, the caller's own where given."""
        own = batch.own or ((),) * len(case.inputs)
        return {
            position: self._buffer(
                where, array, sizes, own[position], buffers[position] if mask[position] else None
            )
            for position, array in enumerate(case.inputs)
            if backward.mask[position]
        }

    # -- which kernels

    def served(
        self, inputs: Sequence[object], numbers: Sequence[Any] = ()
    ) -> tuple[Case, dict[str, Any]]:
        """The case that serves these inputs, and the sizes.  Raises as a call with them does."""
        where = self.op.name
        case, _, sizes = self._alone(where, inputs, self.values.numbers(where, numbers))
        return case, sizes

    def _case(
        self, where: str, inputs: Sequence[object], numbers: Mapping[str, Any]
    ) -> tuple[Case, dict[str, NDArray], dict[str, Any], Batch]:
        """The case that serves these inputs, the arrays by name, the sizes, the leading axes."""
        try:
            return (*self._alone(where, inputs, numbers), ALONE)
        except KernelArgumentError:
            found = self._over_batch(where, inputs, numbers)
            if found is None:
                raise
        return found

    def _over_batch(
        self, where: str, inputs: Sequence[object], numbers: Mapping[str, Any]
    ) -> tuple[Case, dict[str, NDArray], dict[str, Any], Batch] | None:
        """The same where inputs have leading axes; None where they have none.

        Raises KernelArgumentError for shapes that do not fit each other.
        """
        problem: KernelArgumentError | None = None
        for case in self.values.cases(where, numbers) if has_one_rank(self.op) else ():
            names = [array.name for array in case.inputs]
            try:
                arrays = [
                    as_array(f"{where}: input {wanted.name}", value, wanted, leading=True)
                    for value, wanted in zip(inputs, case.inputs, strict=True)
                ]
                found = leading(where, case, arrays)
                if found is None:
                    continue
                batch, elements = found
                sizes = bind_sizes(where, case, elements, names)
            except KernelArgumentError as error:
                problem = problem or error
                continue
            if serves(case, sizes):
                return case, dict(zip(names, arrays, strict=True)), sizes, batch
        if problem is not None:
            raise problem
        return None

    def _alone(
        self, where: str, inputs: Sequence[object], numbers: Mapping[str, Any]
    ) -> tuple[Case, dict[str, NDArray], dict[str, Any]]:
        """The case that serves these inputs, the arrays by name, and the sizes."""
        problem: KernelArgumentError | None = None
        unserved: Sizes | None = None
        for case in self.values.cases(where, numbers):
            names = [array.name for array in case.inputs]
            try:
                arrays = [
                    as_array(f"{where}: input {wanted.name}", value, wanted)
                    for value, wanted in zip(inputs, case.inputs, strict=True)
                ]
                sizes = bind_sizes(where, case, arrays, names)
            except KernelArgumentError as error:
                if problem is None or isinstance(problem, WrongRank) > isinstance(error, WrongRank):
                    problem = error
                continue
            if serves(case, sizes):
                return case, dict(zip(names, arrays, strict=True)), sizes
            unserved = unserved or sizes
        if unserved is not None or problem is None:
            served = " or ".join(
                " and ".join(case.conditions) or ", ".join(map(str, case.inputs))
                for case in self.op.cases
            )
            raise KernelArgumentError(
                f"{where}: no kernel serves {describe(unserved or {})}",
                hint=f"the op is compiled for {served}",
            )
        if isinstance(problem, WrongRank) and len(self.op.cases) > 1:
            shapes = dict.fromkeys(", ".join(map(str, case.inputs)) for case in self.op.cases)
            raise KernelArgumentError(
                problem.what, hint=f"it is compiled for {' or '.join(shapes)}"
            )
        raise problem

    def case_of(self, where: str, residuals: object) -> Case:
        """The case that residuals are of.  Raises KernelTypeError for those of another op."""
        residuals = residuals.residuals if isinstance(residuals, OverBatch) else residuals
        for kind, case in zip(self.residuals, self.op.cases, strict=True):
            if type(residuals) is kind:
                return case
        what = f"a {type(residuals).__name__}"
        if isinstance(residuals, Residuals):
            what = f"the residuals of {residuals.op}"
        raise KernelTypeError(
            f"{where}: the first argument is {what}, not the residuals of {self.op.name}",
            hint=f"pass the second result of {self.op.name}.forward",
        )

    def _mask(self, where: str, needs: Any) -> tuple[bool, ...]:
        if needs is None:
            return self.op.differentiable
        count = len(self.op.differentiable)
        if not isinstance(needs, (tuple, list)) or len(needs) != count:
            raise KernelArgumentError(
                f"{where}: needs_input_grad is {needs!r}, but {self.op.name} takes"
                f" {counted(count, 'input')}",
                hint="give a tuple with True or False for each input",
            )
        pairs = zip(needs, self.op.differentiable, strict=True)
        return tuple(bool(need) and possible for need, possible in pairs)

    def _backward_for(self, where: str, case: Case, mask: tuple[bool, ...]) -> Backward:
        """The kernel that computes these gradients."""
        found = case.backward_for(mask)
        if found is None:
            raise KernelArgumentError(
                f"{where}: {self.op.name} has no backward kernel for these inputs",
                hint="compile it from a Function with a backward",
            )
        return found

    # -- arrays

    def _allocate(
        self, where: str, wanted: Sequence[Array], sizes: Sizes, batch: tuple[int, ...], out: object
    ) -> dict[str, NDArray]:
        given = _split_out(where, out, len(wanted), "output")
        return {
            array.name: self._buffer(where, array, sizes, batch, value)
            for array, value in zip(wanted, given, strict=True)
        }

    def _buffer(
        self, where: str, array: Array, sizes: Sizes, batch: tuple[int, ...], given: object
    ) -> NDArray:
        where = f"{where}: out for {array.name}"
        shape = batch + checked_shape(where, array, sizes)
        if given is not None:
            try:
                return as_output(where, given, array, shape)
            except KernelTypeError as error:
                names = [one.name for one in self.op.values]
                names += [one.name for one in self.op.cases[0].inputs]
                if "out" in names:
                    error.hint = "the argument out of forward is out_ here, or goes by position"
                raise
        try:
            return pool.empty(shape, array.dtype)
        except ValueError as error:
            raise KernelArgumentError(
                f"{where}: no array can have the shape {shape}", hint="split the inputs"
            ) from error

    def _cotangents(
        self,
        where: str,
        case: Case,
        cotangents: Sequence[object],
        sizes: Sizes,
        batch: tuple[int, ...],
        backward: Backward,
    ) -> dict[str, NDArray]:
        """The checked cotangents that the kernel takes, by its names for them."""
        count = len(case.outputs)
        if len(cotangents) != count:
            raise KernelArgumentError(
                f"{where}: {counted(len(cotangents), 'cotangent')} given, {count} expected, one for"
                " each output",
                hint="give an array or None for each output",
            )
        checked: list[NDArray | None] = []
        for position, wanted in enumerate(case.outputs):
            value = cotangents[position]
            if wanted.dtype not in ("float32", "float64"):
                checked.append(None)
                continue
            shape = checked_shape(where, wanted, sizes)
            if value is None:
                checked.append(numpy.broadcast_to(numpy.zeros(shape, wanted.dtype), batch + shape))
                continue
            shape = batch + shape
            array = as_array(
                f"{where}: the cotangent of {wanted.name}", value, wanted, leading=bool(batch)
            )
            if array.shape != shape:
                raise KernelArgumentError(
                    f"{where}: the cotangent of {wanted.name} has the shape {array.shape},"
                    f" {wanted.name} has {shape}",
                    hint="a cotangent has the shape of its output: numpy.broadcast_to may help",
                )
            checked.append(array)
        names = backward.kernel.inputs[len(backward.residuals) :]
        taken = {}
        for taker, position in zip(names, backward.cotangents, strict=True):
            found = checked[position]
            if found is not None:
                taken[taker.name] = found
        return taken

    # -- the call

    def _run(
        self,
        where: str,
        kernel: Kernel,
        sizes: Sizes,
        batch: tuple[int, ...],
        inputs: Mapping[str, Any],
        outputs: Mapping[str, NDArray],
    ) -> dict[str, Any]:
        """Call a kernel; return its inputs as they were passed, packed where that was needed."""
        arrays = {name: one for name, one in inputs.items() if isinstance(one, numpy.ndarray)}
        check_apart(where, outputs, arrays)
        used = {
            array.name: inputs[array.name]
            if array.by_value
            else self._taken(where, inputs[array.name], array, sizes, bool(batch))
            for array in kernel.inputs
        }
        written = {name: _to_write(array) for name, array in outputs.items()}
        if batch:
            status = self._call_over(kernel, sizes, batch, used, written)
        else:
            status = self._call_one(kernel, sizes, used, written)
        if status:
            raise self._refused(where, kernel, sizes, status)
        for name, array in outputs.items():
            if written[name] is not array:
                say(f"{where}: out for {name}", array)
                copy(self.library, array, written[name])
        return used

    def _taken(
        self, where: str, value: NDArray, array: Array, sizes: Sizes, batched: bool
    ) -> NDArray:
        """An input as the kernel takes it: in the shape of its record, and laid out for it."""
        more = value.ndim - len(array.dims) if batched else 0
        shape = value.shape if batched else shape_of(array, sizes)
        if not _is_seen_as(value, shape):
            value = packed(self.library, where, value, array)
        return laid_out(self.library, where, _in_shape(value, shape), array, more)

    def _call_over(
        self, kernel: Kernel, sizes: Sizes, batch: tuple[int, ...],
        used: Mapping[str, Any], outputs: Mapping[str, NDArray],
    ) -> int:  # fmt: skip
        """Call a kernel for each element of a batch; return its status."""
        if 0 in batch:
            for output in outputs.values():
                output[...] = 0
            return 0
        if hasattr(self.library.lib, f"batch_{kernel.name}"):
            return call_over(self.library, kernel, sizes, batch, used, outputs)
        return one_by_one(partial(self._call, kernel, sizes), kernel, batch, used, outputs)

    def _call_one(
        self, kernel: Kernel, sizes: Sizes, used: Mapping[str, Any], outputs: Mapping[str, NDArray]
    ) -> int:
        """Call a kernel; return its status.  It is called again where only its memory was wrong."""
        status = self._call(kernel, sizes, used, outputs)
        if status == OVERLAP:
            # Interleaved, with no element in common: copies lie apart.
            used = {
                array.name: used[array.name] if array.by_value else used[array.name].copy(order="C")
                for array in kernel.inputs
            }
            status = self._call(kernel, sizes, used, outputs)
        if status == WORKSPACE_TOO_SMALL:
            needed = getattr(self.library.lib, f"needed_{kernel.name}")
            workspace.grow(needed(*(sizes[name] for name in kernel.sizes)))
            status = self._call(kernel, sizes, used, outputs)
        return status

    def _call(
        self,
        kernel: Kernel,
        sizes: Sizes,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, NDArray],
    ) -> int:
        if self.library.programs is not None:
            from .on_numpy import call as call_program

            where = self.op.name
            return call_program(self.library.programs, where, kernel, sizes, inputs, outputs)
        ffi = self.library.ffi
        arguments: list[Any] = [sizes[name] for name in kernel.sizes]
        for array in kernel.inputs:
            value = inputs[array.name]
            if array.by_value:
                arguments.append(value)
                continue
            arguments.append(ffi.cast("void *", value.ctypes.data))
            arguments += [steps_of(value)[axis] for axis in array.strides]
        for array in kernel.outputs:
            arguments.append(ffi.cast("void *", outputs[array.name].ctypes.data))
        call = getattr(self.library.lib, f"call_{kernel.name}")
        return int(call(*arguments, workspace.pointer, workspace.size))

    def _refused(
        self, where: str, kernel: Kernel, sizes: Sizes, status: int
    ) -> KernelArgumentError:
        if status in kernel.reasons:
            reason = kernel.reasons[status]
            return KernelArgumentError(f"{where}: {reason}", hint=_HINTS[reason])
        if status == WORKSPACE_OVERFLOW:
            return KernelArgumentError(
                f"{where}: the workspace for {describe(sizes)} has more bytes than 64 bits count",
                hint="split the input into smaller ones",
            )
        return KernelArgumentError(f"{where}: the kernel {kernel.name} ended with status {status}")


def _in_shape(array: NDArray, shape: tuple[int, ...]) -> NDArray:
    """The array itself, or with its batch axes as one, or as they were."""
    return array if array.shape == shape else array.reshape(shape)


def _is_seen_as(array: NDArray, shape: tuple[int, ...]) -> bool:
    """Can it have a shape without a copy, in which neighbouring axes of it may be one?"""
    if array.shape == shape or array.flags.c_contiguous or not array.size:
        return True
    axes = [one for one in zip(array.shape, array.strides, strict=True) if one[0] != 1]
    for size in (one for one in shape if one != 1):
        count, stride = axes.pop(0)
        while count < size and axes:
            length, inner = axes.pop(0)
            if stride != length * inner:
                return False
            count, stride = count * length, inner
    return True


def _to_write(array: NDArray) -> NDArray:
    """The array itself where a kernel can write it, else one to write in its place."""
    fits = array.flags.c_contiguous and array.flags.aligned
    return array if fits else pool.empty(array.shape, array.dtype)


def _kept(given: NDArray, used: NDArray | None) -> NDArray:
    """What backward reads of an input: as a kernel took it, if that has all of its elements."""
    if used is None or used.size != given.size:
        return given
    return _in_shape(used, given.shape)


def _one_or_tuple(arrays: list[NDArray]) -> Any:
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def by_name(function: Any, names: Mapping[str, str]) -> Any:
    """``function`` with other names for its parameters: those that Python needs are taken."""
    others = {own: name for name, own in names.items()}

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **{names.get(name, name): kwargs[name] for name in kwargs})

    signature = inspect.signature(function)
    own = [one.replace(name=others.get(one.name, one.name))
           for one in signature.parameters.values()]  # fmt: skip
    vars(call)["__signature__"] = signature.replace(parameters=own)
    return call


def _split_out(where: str, out: Any, count: int, of: str) -> list[Any]:
    """``out`` as a list with one entry, array or None, for each ``of``."""
    if out is None:
        return [None] * count
    if not isinstance(out, (tuple, list)):
        out = (out,)
    if len(out) != count:
        raise KernelArgumentError(
            f"{where}: out holds {counted(len(out), 'array')}, {count} expected, one for each {of}",
            hint=f"give a tuple with an array or None for each {of}",
        )
    return list(out)
