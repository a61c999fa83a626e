"""Calls of kernels with plain tensors, around torch's dispatcher or from its first rule.

In: the tensors of one call.  Out: new tensors, or None for a call that this cannot make.

What the kernel is given for tensors of known shapes, dtypes and layouts is worked out once, and
found again: a call looks at its tensors, takes their addresses, and makes its results.  No array is
made and nothing is copied but inputs whose strides the kernels do not take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy
import torch
from torch.autograd import forward_ad

from .abi import WORKSPACE_TOO_SMALL, Array, Backward, Case, Kernel
from .export_table import Entry, Sizes, Table, shape_in
from .arguments import complies, steps_of
from .workspace import workspace

# So many shapes are known at a time.
_MOST = 512
_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})
_SINGLE: Any = torch.autograd.function._SingleLevelFunction

DTYPES: dict[Any, str] = {
    torch.bool: "bool", torch.uint8: "uint8", torch.int8: "int8", torch.int16: "int16",
    torch.int32: "int32", torch.int64: "int64", torch.float32: "float32", torch.float64: "float64",
}  # fmt: skip
OF_NAME = {name: dtype for dtype, name in DTYPES.items()}

_transforms = torch._C._are_functorch_transforms_active
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_autocast = torch._C._is_any_autocast_enabled
_tracing = torch._C._get_tracing_state
_profiled = torch._C._autograd._profiler_enabled
_strided = torch.strided


def usual() -> bool:
    """Does nothing in this thread want to see each call, or to change it?"""
    return not (
        _transforms() or _dispatch_modes() or _function_modes() or _autocast()
        or forward_ad._current_level >= 0 or _tracing() is not None or _profiled()
    )  # fmt: skip


def _looked_at(tensors: Sequence[Any]) -> tuple[Any, ...] | None:
    """Shapes, dtypes, and strides where they are no contiguous ones; None for unusual tensors."""
    found: list[Any] = []
    for one in tensors:
        if type(one) not in _PLAIN or not one.is_cpu or one.layout is not _strided or one.is_neg():
            return None
        found.append(one.shape)
        found.append(one.dtype)
        if not one.is_contiguous():
            found.append(one.stride())
    return tuple(found)


class Ready:
    """A kernel that is ready for tensors of known shapes and layouts."""

    def __init__(
        self, entry: Entry, kernel: Kernel, sizes: Sizes, sources: Sequence[int],
        tensors: Sequence[Any], results: Sequence[tuple[tuple[int, ...], Any]],
    ) -> None:  # fmt: skip
        library = entry.runner.caller.library
        self.call: Any = getattr(library.lib, f"call_{kernel.name}")
        self.cast: Any = library.ffi.cast
        self.pointer: Any = library.ffi.typeof("void *")
        self.arguments: list[Any] = [int(sizes[name]) for name in kernel.sizes]
        self.needed = partial(getattr(library.lib, f"needed_{kernel.name}"), *self.arguments)
        self.taken: list[tuple[int, int]] = []
        self.packed: list[int] = []
        self.numbers: list[tuple[int, int]] = []
        for array, source in zip(kernel.inputs, sources, strict=True):
            place = len(self.arguments)
            self.arguments.append(None)
            if array.by_value:
                self.numbers.append((place, source))
                continue
            self.taken.append((place, source))
            steps = _steps(array, shape_in(array, sizes), tensors[source])
            if steps is None:
                self.packed.append(source)
                steps = _steps(array, shape_in(array, sizes), None) or []
            self.arguments += [steps[axis] for axis in array.strides]
        first = len(self.arguments)
        self.arguments += [None] * len(kernel.outputs)
        self.made = [
            (place, *one, _alike(one, tensors)) for place, one in enumerate(results, first)
        ]

    def run(self, tensors: Sequence[Any], numbers: Sequence[Any]) -> list[Any] | None:
        """The results; None where the kernel refuses, or a tensor has no memory."""
        arguments, cast, pointer = self.arguments.copy(), self.cast, self.pointer
        if self.packed:
            tensors = list(tensors)
            for source in self.packed:
                tensors[source] = tensors[source].contiguous()
        for place, source in self.taken:
            address = tensors[source].data_ptr()
            if not address:
                return None
            arguments[place] = cast(pointer, address)
        for place, source in self.numbers:
            arguments[place] = numbers[source]
        found = []
        for place, shape, dtype, like in self.made:
            one = torch.empty(shape, dtype=dtype) if like < 0 else torch.empty_like(tensors[like])
            arguments[place] = cast(pointer, one.data_ptr())
            found.append(one)
        status = self.call(*arguments, workspace.pointer, workspace.size)
        if status == WORKSPACE_TOO_SMALL:
            workspace.grow(self.needed())
            status = self.call(*arguments, workspace.pointer, workspace.size)
        return None if status else found


def _alike(result: tuple[tuple[int, ...], Any], tensors: Sequence[Any]) -> int:
    """A contiguous tensor of the same shape and dtype, of which one more is made quickest."""
    for position, one in enumerate(tensors):
        if (tuple(one.shape), one.dtype) == result and one.stride() == _contiguous(one.shape):
            return position
    return -1


def _contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(steps_of(_stand_in(shape, None, numpy.dtype("int8"))))


def _stand_in(shape: Sequence[int], stride: Sequence[int] | None, dtype: Any) -> Any:
    """An array that lies in memory as a tensor does; nobody reads it."""
    if stride is None:
        stride = [1] * len(shape)
        for axis in range(len(shape) - 2, -1, -1):
            stride[axis] = stride[axis + 1] * max(shape[axis + 1], 1)
    bytes_of = [one * dtype.itemsize for one in stride]
    return numpy.lib.stride_tricks.as_strided(numpy.empty(1, dtype), tuple(shape), bytes_of)


def _steps(array: Array, shape: Sequence[int], tensor: Any) -> list[int] | None:
    """The strides of a tensor in elements, as a kernel takes them; None where it does not.

    ``tensor``: None for one that lies as in a C-contiguous array.
    """
    stride = None
    if tensor is not None and not tensor.is_contiguous():
        if array.batch is not None or tuple(tensor.shape) != tuple(shape):
            return None
        stride = tensor.stride()
    found = _stand_in(shape, stride, numpy.dtype(array.dtype))
    return steps_of(found) if complies(found, array) else None


@dataclass
class Plan:
    """What calls with tensors of the same shapes, dtypes and layouts have in common.

    ``saved``: where each array that backward needs comes from; ``silent``: the outputs without a
    gradient.
    """

    entry: Entry
    sizes: Sizes
    shapes: list[int]
    inference: Ready
    forward: Ready
    saved: list[tuple[str, int]]
    silent: list[int]


class Direct:
    """One op on tensors, by their addresses.  ``kernels`` is what the dispatcher calls for it."""

    def __init__(self, kernels: Any) -> None:
        self.kernels = kernels
        self.table: Table = kernels.table
        self.outputs = self.table.outputs
        self.kinds = [float if one.number == "float64" else int for one in self.table.numbers]
        values = [one for entry in self.table.entries for one in entry.runner.record.values]
        cases = [entry.case for entry in self.table.entries]
        # Whether these kernels serve a call may depend on its numbers: then all of it is looked at.
        asks = any(one.condition for one in values) or any(case.where for case in cases)
        self.able = not asks and all(_is_compiled(entry) for entry in self.table.entries)
        self.plans: dict[Any, Plan] = {}
        # What computes the gradients that a mask marks, for tensors of one look; None: nothing.
        self.backwards: dict[Any, Ready | None] = {}
        self.node = _node(self)

    def __call__(self, args: tuple[Any, ...]) -> Any:
        """The outputs; None where the dispatcher has to make the call."""
        if not usual():
            return None
        try:
            plan, tensors, numbers = self._planned(args)
            if plan is None:
                return None
            if torch.is_grad_enabled():
                for one in tensors:
                    if one.requires_grad:
                        return self.node.apply(plan, numbers, *tensors)
            found = plan.inference.run(tensors, numbers)
        except RuntimeError:  # a tensor whose memory cannot be had: the dispatcher says why
            return None
        if found is None:
            return None
        return found[0] if self.outputs == 1 else tuple(found)

    def kept(self, args: tuple[Any, ...]) -> Any:
        """The outputs and what the forward kernel keeps, where nothing is recorded.

        None where the dispatcher has to make the call.
        """
        if not usual():
            return None
        try:
            plan, tensors, numbers = self._planned(args)
            recorded = torch.is_grad_enabled() and any(one.requires_grad for one in tensors)
            if plan is None or recorded:
                return None
            found = plan.forward.run(tensors, numbers)
        except RuntimeError:
            return None
        if found is None:
            return None
        found += [torch.empty(0)] * (self.outputs + self.table.extra - len(found))
        return found[0] if len(found) == 1 else tuple(found)

    def _planned(self, args: tuple[Any, ...]) -> tuple[Plan | None, Sequence[Any], Sequence[Any]]:
        """The plan of a call, its tensors, and its numbers; no plan where nothing serves them."""
        if not self.able:
            return None, (), ()
        tensors: Sequence[Any] = args
        numbers: Sequence[Any] = ()
        if not self.kernels.only_tensors:
            tensors, numbers = self.kernels.split(args)
            for value, kind in zip(numbers, self.kinds, strict=True):
                if type(value) is not kind or (kind is int and not -(1 << 63) <= value < 1 << 63):
                    return None, (), ()
        key = _looked_at(tensors)
        return self.plans.get(key) or self._plan(key, tensors, numbers), tensors, numbers

    def _plan(self, key: Any, tensors: Sequence[Any], numbers: Sequence[Any]) -> Plan | None:
        """The plan for these tensors, kept; None where no kernel serves them."""
        if key is None or len(tensors) != len(self.table.inputs):
            return None
        dtypes = [DTYPES.get(one.dtype, "") for one in tensors]
        shapes = [tuple(one.shape) for one in tensors]
        try:
            served = self.table.served(shapes, dtypes, numbers)
        except (TypeError, ValueError):  # the dispatcher says it better
            return None
        entry, sizes = served.entry, served.sizes
        case = entry.case
        if len(self.plans) >= _MOST:
            self.plans.clear()
        sources = [self._source(case, array) for array in case.inference.inputs]
        outputs = [_result(one, sizes) for one in case.outputs]
        every = outputs + [_result(one, sizes) for one in entry.extra]
        plan = self.plans[key] = Plan(
            entry, sizes, [x for one in shapes for x in (len(one), *one)],
            Ready(entry, case.inference, sizes, sources, tensors, outputs),
            Ready(entry, case.forward, sizes, sources, tensors, every),
            _saved(case), [p for p, one in enumerate(outputs) if not one[1].is_floating_point],
        )  # fmt: skip
        return plan

    def _source(self, case: Case, array: Array) -> int:
        """Where an input of a kernel stands among the tensors, or among the numbers."""
        names = [one.name for one in (self.table.numbers if array.by_value else case.inputs)]
        return names.index(array.name)

    def backward(self, ctx: Any, cotangents: Sequence[Any]) -> list[Any] | None:
        """The gradients that are needed; None where the dispatcher has to compute them."""
        plan: Plan = ctx.symgrad_plan
        if torch.is_grad_enabled():
            return None
        asked = ctx.needs_input_grad[2:]
        mask = tuple(
            needed and possible
            for needed, possible in zip(asked, self.table.differentiable, strict=True)
        )
        tensors = [*ctx.saved_tensors[: len(plan.saved)], *cotangents]
        results = self.gradients(
            plan.entry, lambda: plan.sizes, plan.shapes, mask, tensors, ctx.symgrad_numbers
        )
        if results is None:
            return None
        made = iter(results)
        return [None, None, *(next(made) if needed else None for needed in mask)]

    def gradients(
        self, entry: Entry, sizes: Callable[[], Sizes], shapes: Sequence[int],
        mask: tuple[bool, ...], tensors: Sequence[Any], numbers: Sequence[Any],
    ) -> list[Any] | None:  # fmt: skip
        """The gradients that ``mask`` marks, from what was kept and the cotangents.

        ``shapes`` are those of the inputs, and ``sizes`` is asked for theirs at the first look.
        """
        if not self.able or not usual():
            return None
        key = (entry.position, tuple(shapes), mask, _looked_at(tensors))
        if key[3] is None:
            return None
        ready: Any = self.backwards.get(key, self)
        if ready is self:
            if len(self.backwards) >= _MOST:
                self.backwards.clear()
            ready = self.backwards[key] = self._backward(entry, sizes(), mask, tensors)
        return None if ready is None else ready.run(tensors, numbers)

    def _backward(
        self, entry: Entry, sizes: Sizes, mask: tuple[bool, ...], tensors: Sequence[Any]
    ) -> Ready | None:
        """What computes these gradients; None where no kernel alone does."""
        case = entry.case
        arrays = [one.array for one in case.residuals if one.source != "number"]
        expected = [_result(one, sizes) for one in (*arrays, *case.outputs)]
        kernel = case.backward_for(mask) if any(mask) else None
        if kernel is None or kernel.zeros or tuple(kernel.mask) != mask:
            return None
        if [(tuple(one.shape), one.dtype) for one in tensors] != expected:
            return None
        results = [_result(one, sizes) for one, has in zip(case.inputs, mask, strict=True) if has]
        sources = self._backward_sources(case, kernel, len(arrays))
        return Ready(entry, kernel.kernel, sizes, sources, tensors, results)

    def _backward_sources(self, case: Case, kernel: Backward, saved: int) -> list[int]:
        """Where the inputs of a backward kernel stand among tensors, or among the numbers."""
        found, names = [], [one.name for one in self.table.numbers]
        for position in kernel.residuals:
            residual = case.residuals[position]
            if residual.source == "number":
                found.append(names.index(residual.array.name))
            else:
                before = case.residuals[:position]
                found.append(sum(one.source != "number" for one in before))
        return found + [saved + position for position in kernel.cotangents]


def _is_compiled(entry: Entry) -> bool:
    lib = getattr(entry.runner.caller.library, "lib", None)
    return all(hasattr(lib, f"call_{one.name}") for one in entry.case.kernels)


def _result(array: Array, sizes: Sizes) -> tuple[tuple[int, ...], Any]:
    return tuple(int(extent) for extent in shape_in(array, sizes)), OF_NAME[array.dtype]


def _saved(case: Case) -> list[tuple[str, int]]:
    """The source and the position there of each array that is kept; extra ones are counted."""
    found, extra = [], 0
    for one in case.residuals:
        if one.source == "kernel":
            found.append(("kernel", extra))
            extra += 1
        elif one.source != "number":
            found.append((one.source, one.position))
    return found


def _node(direct: Direct) -> Any:
    """What is recorded for a call: ``apply`` takes the plan, the numbers, then the tensors."""
    kernels, count = direct.kernels, direct.outputs

    class Recorded(_SINGLE):
        @staticmethod
        def forward(ctx: Any, plan: Plan, numbers: Any, *tensors: Any) -> Any:
            found = plan.forward.run(tensors, numbers)
            if found is None:
                again = kernels.forward(*kernels.joined(tensors, numbers))
                found = list(again) if type(again) is tuple else [again]
            ctx.set_materialize_grads(False)
            if plan.silent:
                ctx.mark_non_differentiable(*(found[place] for place in plan.silent))
            kept = {"input": tensors, "output": found, "kernel": found[count:]}
            saved = [kept[source][place] for source, place in plan.saved]
            ctx.save_for_backward(*saved, *kernels.kept_inputs(tensors))
            ctx.symgrad_plan, ctx.symgrad_numbers = plan, numbers
            return found[0] if count == 1 else tuple(found[:count])

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            found = direct.backward(ctx, cotangents)
            if found is not None:
                return tuple(found)
            plan = ctx.symgrad_plan
            ctx.symgrad_entry, ctx.symgrad_shapes = plan.entry.position, plan.shapes
            asked = kernels.joined(ctx.needs_input_grad[2:], [False] * len(ctx.symgrad_numbers))
            gradients = kernels.gradients(ctx, asked, *cotangents)
            return None, None, *(gradients[place] for place in kernels.tensors)

    Recorded.__name__ = Recorded.__qualname__ = kernels.plain
    return Recorded
