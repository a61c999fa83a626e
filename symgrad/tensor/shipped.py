"""Functions whose kernels come with symgrad: ``apply`` runs these, where the tensors fit them.

In: Functions and the names of their modules in ``symgrad.generated``.  Out: the results of
``apply``, or None where it is to run the Function's Python.

``register({"nn_gelu": GELU})`` says that the module ``nn_gelu`` of ``symgrad.generated`` was
compiled from the Function, which ``symgrad regen`` sees to (see ``symgrad.tools.cli.regen``): each
argument in the shape that its annotation says, each plain argument at its default.  A call fits if
its tensors lie contiguously in those dtypes and ranks (where an annotation has ``*batch``, in any
rank), none stands for an element of a batch, its other arguments are the defaults, and there is
work enough that it pays.  Where no
compiler works, and where the Function is no more what was compiled, none does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symgrad.errors import KernelArgumentError
from symgrad.frontend.function import Function
from symgrad.frontend.request import Argument, bind, parameters
from symgrad.frontend.spec import TensorSpec
from symgrad.ir.dtype import float32
from symgrad.runtime.strict import fall_back
from symgrad.tensor.batched import BatchedTensor
from symgrad.tensor.compiledop import OpKernels
from symgrad.tensor.generated import load
from symgrad.tensor.tape import kernelnode
from symgrad.tensor.tensor import Array, Tensor

LEAST_ELEMENTS = 1024
"""A first tensor of fewer elements is left to NumPy: loading kernels would not pay."""

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
        self._kernels: OpKernels | None = None
        self._missing = False

    def call(self, args: Sequence[Any]) -> Any:
        """The outputs for these arguments; None where the kernels are not for them."""
        if self._missing:
            return None
        tensors = self._fitting(args)
        if tensors is None:
            return None
        kernels = self._loaded()
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
            if not isinstance(value, Tensor) or isinstance(value, BatchedTensor):
                return None
            array = value._array
            if array.dtype != str(wanted.spec.dtype or float32) or not array.flags.c_contiguous:
                return None
            if not _has_rank(array, wanted.spec):
                return None
            tensors.append(value)
        return tensors if tensors[0]._array.size >= LEAST_ELEMENTS else None

    def _is_default(self, place: int, value: Any) -> bool:
        default = self._defaults[place]
        numbers = type(value) in (int, float) and type(default) in (int, float)
        return (numbers or type(default) is type(value)) and bool(default == value)

    def _loaded(self) -> OpKernels | None:
        if self._kernels is None and not self._missing:
            try:
                op = load(self.name, self.function)
            except ImportError as error:
                fall_back("functions of symgrad.nn run", error, once=True)
                self._missing = True
            else:
                self._kernels = OpKernels(op, self.function, self._arguments)
        return self._kernels


def _has_rank(array: Array, spec: TensorSpec) -> bool:
    """May an array of this rank be what the spec describes?"""
    known = len(spec.dims)
    return array.ndim == known or (spec.batch is not None and array.ndim > known)
