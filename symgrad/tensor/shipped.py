"""Functions whose kernels come with symgrad: ``apply`` runs these, where the tensors fit them.

In: Functions and the names of their modules in ``symgrad.generated``.  Out: the results of
``apply``, or None where it is to run the Function's Python.
Imports: numpy, ``symgrad.errors``, the frontend's Functions and specs, the runtime, this package's
kernel nodes.

``register({"nn_gelu": GELU})`` says that the module ``nn_gelu`` of ``symgrad.generated`` was
compiled from the Function, which ``symgrad regen`` sees to (see ``symgrad.cli.regen``): each
argument in the shape that its annotation says, each plain argument at its default.  A call fits if
its tensors lie contiguously in those dtypes and ranks (where an annotation has ``*batch``, in any
rank), its other arguments are the defaults, and there is work enough that it pays.  Where no
compiler works, and where the Function is no more what was compiled, none does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.errors import KernelArgumentError
from symgrad.frontend.arguments import Argument, bind, parameters
from symgrad.frontend.function import Function
from symgrad.frontend.spec import TensorSpec
from symgrad.frontend.trace import BATCH_RANK
from symgrad.ir.dtype import float32
from symgrad.runtime.op import CompiledOp
from symgrad.tensor import kernelnode
from symgrad.tensor.compiledop import OpKernels
from symgrad.tensor.generated import load
from symgrad.tensor.tensor import Array, Tensor

LEAST_ELEMENTS = 1024
"""A first tensor of fewer elements is left to NumPy: loading kernels would not pay."""
MOST_LAYOUTS = 1024
Shape = tuple[int, ...]

_functions: dict[Any, ShippedFunction] = {}


def register(functions: Mapping[str, type[Function]]) -> None:
    """Let ``apply`` of these Functions run the kernels in the modules of these names."""
    for name, function in functions.items():
        _functions[function] = ShippedFunction(name, function)


def call(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What ``apply`` returns, by kernels; None where there are none for these arguments."""
    known = _functions.get(function)
    return None if known is None or kwargs else known.call(args)


class ShippedFunction:
    """A Function and its kernels, which are loaded when they are first needed."""

    def __init__(self, name: str, function: type[Function]) -> None:
        self.name = name
        self.function = function
        self._arguments: tuple[Argument, ...] = bind(function).arguments
        self._defaults = [parameter.default for parameter in parameters(function)]
        self._op: CompiledOp | None = None
        self._missing = False
        self._kernels: dict[tuple[Shape, ...], OpKernels | None] = {}

    def call(self, args: Sequence[Any]) -> Any:
        """The outputs for these arguments; None where the kernels are not for them."""
        if self._missing:
            return None
        tensors = self._fitting(args)
        if tensors is None:
            return None
        shapes = tuple([tensor._array.shape for tensor in tensors])
        if shapes not in self._kernels:
            self._kernels[shapes] = self._laid_out(shapes)
            if len(self._kernels) > MOST_LAYOUTS:
                self._kernels.pop(next(iter(self._kernels)))
        kernels = self._kernels[shapes]
        if kernels is None:
            return None
        try:
            found = kernelnode.call(kernels, tensors)
        except KernelArgumentError:  # of the sizes or of an index: the Function says it better
            return None
        return found[0] if len(found) == 1 else tuple(found)

    def _fitting(self, args: Sequence[Any]) -> list[Tensor] | None:
        """The tensors among the arguments, if these are as the kernels take them."""
        if len(args) < len(self._arguments):
            return None
        tensors: list[Tensor] = []
        for place, value in enumerate(args):
            wanted = self._arguments[place] if place < len(self._arguments) else None
            if wanted is None or wanted.spec is None:
                if not self._is_default(place, value):
                    return None
                continue
            if not isinstance(value, Tensor):
                return None
            array = value._array
            if array.dtype != str(wanted.spec.dtype or float32) or not array.flags.c_contiguous:
                return None
            tensors.append(value)
        return tensors if tensors[0]._array.size >= LEAST_ELEMENTS else None

    def _is_default(self, place: int, value: Any) -> bool:
        default = self._defaults[place]
        numbers = type(value) in (int, float) and type(default) in (int, float)
        return (numbers or type(default) is type(value)) and bool(default == value)

    # -- layouts

    def _laid_out(self, shapes: tuple[Shape, ...]) -> OpKernels | None:
        """Kernels for tensors of these shapes: batch axes are taken together."""
        batches: dict[str, Shape] = {}
        flat: list[Shape] = []
        specs = [one.spec for one in self._arguments if one.spec is not None]
        for spec, shape in zip(specs, shapes, strict=True):
            found = _flattened(spec, shape, batches)
            if found is None:
                return None
            flat.append(found)
        op = self._loaded()
        if op is None:
            return None
        kernels = OpKernels(op, self.function, self._arguments)
        if tuple(flat) != shapes:
            kernels.op = FlatOp(op, shapes, flat, batches)
        return kernels

    def _loaded(self) -> CompiledOp | None:
        if self._op is None and not self._missing:
            try:
                self._op = load(self.name, self.function)
            except ImportError:
                self._missing = True
        return self._op


def _flattened(spec: TensorSpec, shape: Shape, batches: dict[str, Shape]) -> Shape | None:
    """The shape with its batch axes taken together; None where it is not that of the spec."""
    if spec.batch is None:
        return shape if len(shape) == len(spec.dims) else None
    behind = len(spec.dims) - spec.position
    end = len(shape) - behind
    if end < spec.position:
        return None
    batch = shape[spec.position : end]
    if batches.setdefault(spec.batch, batch) != batch:
        return None
    if len(batch) == BATCH_RANK:
        return shape
    together = (*(1,) * (BATCH_RANK - 1), math.prod(batch))
    return (*shape[: spec.position], *together, *shape[end:])


class FlatOp:
    """An op whose arrays have other batch axes than it was compiled for."""

    def __init__(
        self, op: CompiledOp, shapes: Sequence[Shape], flat: Sequence[Shape],
        batches: Mapping[str, Shape],
    ) -> None:  # fmt: skip
        self.op = op
        self.caller = op.caller
        self.shapes = shapes
        self.flat = flat
        self.outputs = [
            next((s for s in (_batch_axes(one.dims, name, axes) for name, axes in batches.items())
                  if s), None)
            for one in op.caller.op.cases[0].outputs
        ]  # fmt: skip

    def inference(self, *arrays: Array) -> Any:
        """The outputs alone."""
        return self._shown(self.op.inference(*self._taken(arrays)))

    def forward(self, *arrays: Array) -> Any:
        """The outputs, and what backward needs."""
        found, residuals = self.op.forward(*self._taken(arrays))
        return self._shown(found), residuals

    def backward(self, residuals: Any, *cotangents: Any, needs_input_grad: Any) -> Any:
        """The gradients of the inputs."""
        given = [
            cotangent if cotangent is None or place is None
            else np.ascontiguousarray(cotangent).reshape(_together(cotangent.shape, place))
            for cotangent, place in zip(cotangents, self.outputs, strict=True)
        ]  # fmt: skip
        found = self.op.backward(residuals, *given, needs_input_grad=needs_input_grad)
        return [
            None if gradient is None else gradient.reshape(shape)
            for gradient, shape in zip(found, self.shapes, strict=True)
        ]

    def _taken(self, arrays: Sequence[Array]) -> list[Array]:
        return [array.reshape(shape) for array, shape in zip(arrays, self.flat, strict=True)]

    def _shown(self, found: Any) -> Any:
        several = isinstance(found, tuple)
        shown = []
        for array, place in zip(found if several else (found,), self.outputs, strict=True):
            if place is not None:
                start, batch = place
                shape = array.shape
                array = array.reshape((*shape[:start], *batch, *shape[start + BATCH_RANK :]))
            shown.append(array)
        return tuple(shown) if several else shown[0]


def _batch_axes(dims: Sequence[str], name: str, batch: Shape) -> tuple[int, Shape] | None:
    """Where the batch axes of that name begin among ``dims``, and what they are."""
    wanted = [f"{name}_{axis}" for axis in range(BATCH_RANK)]
    for start in range(len(dims) - BATCH_RANK + 1):
        if list(dims[start : start + BATCH_RANK]) == wanted:
            return start, batch
    return None


def _together(shape: Shape, place: tuple[int, Shape]) -> Shape:
    start, batch = place
    end = start + len(batch)
    ones = (1,) * (BATCH_RANK - 1)
    return (*shape[:start], *ones, math.prod(shape[start:end]), *shape[end:])
