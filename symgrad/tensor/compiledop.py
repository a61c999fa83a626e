"""Compiled ops called with tensors, and in traces.

In: an op of ``sg.compile``, its arguments.  Out: tensors whose backward runs its kernels.

Where the backward is differentiated again, the Function that the op was compiled from is traced,
and kernels of the derivative are compiled; where that cannot be, the Function runs eagerly, as its
``apply`` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from symgrad.budgets import MOST_READY
from symgrad.errors import BuildError, CacheError, KernelArgumentError, counted
from symgrad.frontend.function import class_of, is_instance_style
from symgrad.frontend.request import Argument, Request
from symgrad.frontend.session import active
from symgrad.runtime.op import OpAt
from symgrad.runtime.strict import fall_back
from symgrad.runtime.values import is_symbol
from symgrad.tensor.batched import levels
from symgrad.tensor.gradients import grad_where_recorded
from symgrad.tensor.jit.variant import EmptyTensor, Variant
from symgrad.tensor.modes import enable_grad
from symgrad.tensor.tape import kernelnode
from symgrad.tensor.tape.kernelnode import Mask
from symgrad.tensor.tensor import Tensor


class OpKernels:
    """A compiled op behind the tape (``kernelnode.Kernels``)."""

    def __init__(self, op: Any, function: Any, arguments: Sequence[Argument]) -> None:
        self.op = op
        self.function = function
        self.arguments = tuple(arguments)
        self.label = f"{class_of(function).__name__}Backward"
        self.differentiable: Mask = op.caller.op.differentiable
        self._variants: dict[Any, Variant] = {}
        self._hopeless = False
        self._at: dict[tuple[Any, ...], OpKernels] = {}

    def at(self, op: Any) -> OpKernels:
        """The same at values of the plain numbers of an op, an ``OpAt``."""
        symbols = any(map(is_symbol, op.numbers.values()))
        key = () if symbols else tuple((type(one), repr(one)) for one in op.numbers.values())
        if key in self._at:
            return self._at[key]
        left = dict(op.numbers)
        arguments = [
            replace(one, value=left.pop(one.name), spec=None) if one.name in left else one
            for one in self.arguments
        ]
        arguments += [Argument(name, value=value, keyword=True) for name, value in left.items()]
        found = OpKernels(op, self.function, arguments)
        if not symbols:
            if len(self._at) >= MOST_READY:
                self._at.pop(next(iter(self._at)))
            self._at[key] = found
        return found

    def apply(self, *tensors: Any) -> Any:
        """The Function itself, for tensors or in a trace."""
        given = iter(tensors)
        values = {
            one.name: next(given) if one.is_tensor else one.value for one in self.arguments
        }  # fmt: skip
        request = Request(self.function, self.arguments)
        call: Any = getattr(self.function, "apply", None)
        call = call if isinstance(self.function, type) else self.function
        positional = [values[one.name] for one in request.positional]
        named = {one.name: values[one.name] for one in self.arguments if one.keyword}
        return call(*positional, **named)

    def differentiate(
        self, inputs: Sequence[Tensor], cotangents: Sequence[Tensor | None], mask: Mask
    ) -> Sequence[Tensor | None]:
        """The gradients with histories: by kernels of the derivative, else on the tape."""
        if not self._hopeless:
            try:
                family = self._variant(inputs).prepare(inputs, ()).entry.family
                return family.differentiate(inputs, cotangents, mask)
            except (BuildError, CacheError) as error:
                fall_back(f"the second derivative of {self.op.name} runs", error)
                self._hopeless = True
            except Exception as error:  # whatever tracing the user's code raises
                self._hopeless = not isinstance(error, EmptyTensor)
        return on_tape(self.apply, inputs, cotangents, mask)

    def _variant(self, inputs: Sequence[Tensor]) -> Variant:
        kinds = tuple((one.dtype.name, one.ndim) for one in inputs)
        found = self._variants.get(kinds)
        if found is None:
            found = self._variants[kinds] = Variant(self.apply, tuple(inputs), {})
        return found


def on_tape(
    call: Any, inputs: Sequence[Tensor], cotangents: Sequence[Tensor | None], mask: Mask
) -> list[Tensor | None]:
    """The gradients of ``call`` by what its operations record, with histories."""
    with enable_grad():
        moved = [
            one.view_as(one) if asked else one for one, asked in zip(inputs, mask, strict=True)
        ]
        result = call(*moved)
    outputs = list(result) if isinstance(result, (tuple, list)) else [result]
    pairs = [pair for pair in zip(outputs, cotangents, strict=True) if pair[1] is not None]
    wanted = [one for one, asked in zip(moved, mask, strict=True) if asked]
    found = iter(grad_where_recorded(pairs, wanted))
    return [next(found) if asked else None for asked in mask]


def kernels_of(op: Any) -> OpKernels:
    """What is behind the tape for an op that ``sg.compile`` made.  Raises KernelArgumentError."""
    if isinstance(op, OpAt):
        return kernels_of(op.op).at(op)
    if op.behind_tape is None:
        if op.origin is None:
            raise KernelArgumentError(
                f"{op.name}: nothing says which Function it was compiled from",
                hint="call it with NumPy arrays, or compile it with sg.compile",
            )
        request: Request = op.origin
        function = request.function
        if request.init and isinstance(function, type) and is_instance_style(function):
            function = function(**dict(request.init))
        op.behind_tape = OpKernels(op, function, request.arguments)
    assert isinstance(op.behind_tape, OpKernels)
    return op.behind_tape


def call_op(op: Any, inputs: Sequence[Any], out: Any) -> Any:
    """What an op gives for tensors: by its kernels.  Raises KernelArgumentError.

    Under ``vmap`` the Function itself is applied, whose backward takes vectors of whole batches.
    """
    if active() is not None or levels.active:
        return inline_op(op, inputs, out)
    if out is not None:
        raise _takes_arrays(op)
    kernels = kernels_of(op)
    count = len(kernels.differentiable)
    if len(inputs) != count:
        raise KernelArgumentError(
            f"{op.name}: {counted(len(inputs), 'input')} given, {count} expected"
        )
    found = kernelnode.call(kernels, kernelnode.as_tensors(op.name, inputs))
    return found[0] if len(found) == 1 else tuple(found)


def inline_op(op: Any, inputs: Sequence[Any], out: Any) -> Any:
    """What the Function gives that an op was compiled from.  Raises KernelArgumentError."""
    if out is not None:
        raise _takes_arrays(op)
    return kernels_of(op).apply(*inputs)


def _takes_arrays(op: Any) -> KernelArgumentError:
    return KernelArgumentError(
        f"{op.name}: out= takes arrays, and is for calls with arrays alone",
        hint="call it under sg.no_grad() with tensor.numpy() and out=",
    )
