"""symgrad judges backwards and compiles gradients to C: its public names.

In: nothing.  Out: the names of ``__all__``, each imported from its module when first asked for
(PEP 562), so that ``import symgrad`` costs next to nothing and never imports sympy.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from symgrad.forks import forks_wait
from symgrad.garbage import fewer_collections

if TYPE_CHECKING:
    from symgrad import autograd as autograd
    from symgrad import func as func
    from symgrad import nn as nn
    from symgrad import optim as optim
    from symgrad.compiler import compile as compile
    from symgrad.compiler import verify as verify
    from symgrad.custom.define import custom_op as custom_op
    from symgrad.drawing.draw import draw as draw
    from symgrad.errors import CopyWarning as CopyWarning
    from symgrad.errors import InferredShapesWarning as InferredShapesWarning
    from symgrad.errors import SymgradError as SymgradError
    from symgrad.frontend.dtypes import can_cast as can_cast
    from symgrad.frontend.dtypes import finfo as finfo
    from symgrad.frontend.dtypes import iinfo as iinfo
    from symgrad.frontend.dtypes import promote_types as promote_types
    from symgrad.frontend.function import Function as Function
    from symgrad.frontend.function import assume as assume
    from symgrad.frontend.function import custom_bwd as custom_bwd
    from symgrad.frontend.function import custom_fwd as custom_fwd
    from symgrad.frontend.function import fixed_point as fixed_point
    from symgrad.frontend.function import once_differentiable as once_differentiable
    from symgrad.frontend.function import surrogate as surrogate
    from symgrad.ir.dtype import bool_ as bool  # noqa: F401
    from symgrad.ir.dtype import float32 as float32
    from symgrad.ir.dtype import float64 as float64
    from symgrad.ir.dtype import int8 as int8
    from symgrad.ir.dtype import int16 as int16
    from symgrad.ir.dtype import int32 as int32
    from symgrad.ir.dtype import int64 as int64
    from symgrad.ir.dtype import uint8 as uint8
    from symgrad.proof.report.verdict import PROVED as PROVED
    from symgrad.proof.report.verdict import REFUTED as REFUTED
    from symgrad.proof.report.verdict import SURROGATE as SURROGATE
    from symgrad.proof.report.verdict import UNDECIDED as UNDECIDED
    from symgrad.runtime.gufunc import gufunc as gufunc
    from symgrad.runtime.pool import set_pool_limit as set_pool_limit
    from symgrad.runtime.strict import NumpyBackendWarning as NumpyBackendWarning
    from symgrad.runtime.threads import get_num_threads as get_num_threads
    from symgrad.runtime.threads import set_num_threads as set_num_threads
    from symgrad.tensor.creation import from_numpy as from_numpy
    from symgrad.tensor.creation import manual_seed as manual_seed
    from symgrad.tensor.functional.gradcheck import gradcheck as gradcheck
    from symgrad.tensor.functional.gradcheck import gradgradcheck as gradgradcheck
    from symgrad.tensor.functional.transforms import grad as grad
    from symgrad.tensor.functional.transforms import hessian as hessian
    from symgrad.tensor.functional.transforms import hvp as hvp
    from symgrad.tensor.functional.transforms import jacobian as jacobian
    from symgrad.tensor.functional.transforms import jvp as jvp
    from symgrad.tensor.functional.transforms import value_and_grad as value_and_grad
    from symgrad.tensor.functional.transforms import vjp as vjp
    from symgrad.tensor.functions import tensor as tensor
    from symgrad.tensor.jit.jit import JitWarning as JitWarning
    from symgrad.tensor.jit.jit import jit as jit
    from symgrad.tensor.modes import enable_grad as enable_grad
    from symgrad.tensor.modes import get_default_dtype as get_default_dtype
    from symgrad.tensor.modes import inference_mode as inference_mode
    from symgrad.tensor.modes import is_grad_enabled as is_grad_enabled
    from symgrad.tensor.modes import no_grad as no_grad
    from symgrad.tensor.modes import set_default_dtype as set_default_dtype
    from symgrad.tensor.modes import set_grad_enabled as set_grad_enabled
    from symgrad.tensor.tensor import Size as Size
    from symgrad.tensor.tensor import Tensor as Tensor
    from symgrad.tensor.vmap.vmap import vmap as vmap

_MODULES = {
    "symgrad.compiler": "compile verify",
    "symgrad.custom.define": "custom_op",
    "symgrad.drawing.draw": "draw",
    "symgrad.errors": "CopyWarning InferredShapesWarning SymgradError",
    "symgrad.frontend.dtypes": "can_cast finfo iinfo promote_types",
    "symgrad.frontend.function": (
        "Function assume custom_bwd custom_fwd fixed_point once_differentiable surrogate"
    ),
    "symgrad.ir.dtype": "float32 float64 int16 int32 int64 int8 uint8",
    "symgrad.proof.report.verdict": "PROVED REFUTED SURROGATE UNDECIDED",
    "symgrad.runtime.gufunc": "gufunc",
    "symgrad.runtime.strict": "NumpyBackendWarning",
    "symgrad.runtime.pool": "set_pool_limit",
    "symgrad.runtime.threads": "get_num_threads set_num_threads",
    "symgrad.tensor.creation": "from_numpy manual_seed",
    "symgrad.tensor.functional.gradcheck": "gradcheck gradgradcheck",
    "symgrad.tensor.functional.transforms": "grad hessian hvp jacobian jvp value_and_grad vjp",
    "symgrad.tensor.functions": "tensor",
    "symgrad.tensor.jit.jit": "JitWarning jit",
    "symgrad.tensor.modes": (
        "enable_grad get_default_dtype inference_mode is_grad_enabled no_grad set_default_dtype "
        "set_grad_enabled"
    ),
    "symgrad.tensor.tensor": "Size Tensor",
    "symgrad.tensor.vmap.vmap": "vmap",
}
"""The names that come from each module."""

_SOURCES: dict[str, str] = {
    "autograd": "symgrad:autograd", "func": "symgrad:func", "nn": "symgrad:nn",
    "optim": "symgrad:optim", "bool": "symgrad.ir.dtype:bool_",
    **{name: module for module, names in _MODULES.items() for name in names.split()},
}  # fmt: skip
"""The module that a name comes from, and its name there where it differs."""

# Every other public name is an operation on tensors: sg.exp, sg.where, sg.cat...
_OPERATIONS = "symgrad.tensor"

__all__ = ["__version__", *_SOURCES]


def __getattr__(name: str) -> Any:
    """Import a public name from its module, once."""
    if name == "__version__":
        value = importlib.import_module("importlib.metadata").version("symgrad")
    elif name in _SOURCES:
        module, _, attribute = _SOURCES[name].partition(":")
        package = module == __name__  # a package that is a public name itself
        found = _import(f"{module}.{attribute}" if package else module)
        value = found if package else getattr(found, attribute or name)
    else:
        value = _operation(name)
    globals()[name] = value
    return value


def _import(module: str) -> Any:
    with forks_wait(), fewer_collections():
        return importlib.import_module(module)


def _operation(name: str) -> Any:
    if importlib.util.find_spec(f"{__name__}.{name}") is not None:
        raise AttributeError(f"symgrad.{name} is a module: import symgrad.{name}", name=name)
    functions = {} if name.startswith("__") else _import(_OPERATIONS).FUNCTIONS
    if name not in functions:
        public = [] if name.startswith("_") else [*functions, *_SOURCES]
        raise _import("symgrad.frontend.unsupported").missing_function(name, public)
    return functions[name]


def __dir__() -> list[str]:
    operations = _import(_OPERATIONS).FUNCTIONS
    return sorted({*globals(), *__all__, *operations})
