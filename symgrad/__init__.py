"""Backwards judged, gradients in C: the public names of symgrad.

In: nothing.  Out: the names of ``__all__``, each imported from its module when first asked for
(PEP 562), so that ``import symgrad`` costs next to nothing and never imports sympy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symgrad.compiler import NumpyBackendWarning as NumpyBackendWarning
    from symgrad.compiler import compile as compile
    from symgrad.compiler import verify as verify
    from symgrad.errors import SymgradError as SymgradError
    from symgrad.frontend.dtypes import finfo as finfo
    from symgrad.frontend.dtypes import iinfo as iinfo
    from symgrad.frontend.function import Function as Function
    from symgrad.frontend.function import custom_bwd as custom_bwd
    from symgrad.frontend.function import custom_fwd as custom_fwd
    from symgrad.frontend.function import once_differentiable as once_differentiable
    from symgrad.frontend.surrogate import assume as assume
    from symgrad.frontend.surrogate import surrogate as surrogate
    from symgrad.ir.dtype import bool_ as bool  # noqa: F401
    from symgrad.ir.dtype import float32 as float32
    from symgrad.ir.dtype import float64 as float64
    from symgrad.ir.dtype import int64 as int64
    from symgrad.proof.verdict import PROVED as PROVED
    from symgrad.proof.verdict import REFUTED as REFUTED
    from symgrad.proof.verdict import UNDECIDED as UNDECIDED

# The module that a name comes from, and its name there where it differs.
_SOURCES: dict[str, str] = {
    "Function": "symgrad.frontend.function",
    "NumpyBackendWarning": "symgrad.compiler",
    "PROVED": "symgrad.proof.verdict",
    "REFUTED": "symgrad.proof.verdict",
    "SymgradError": "symgrad.errors",
    "UNDECIDED": "symgrad.proof.verdict",
    "assume": "symgrad.frontend.surrogate",
    "bool": "symgrad.ir.dtype:bool_",
    "compile": "symgrad.compiler",
    "custom_bwd": "symgrad.frontend.function",
    "custom_fwd": "symgrad.frontend.function",
    "finfo": "symgrad.frontend.dtypes",
    "float32": "symgrad.ir.dtype",
    "float64": "symgrad.ir.dtype",
    "iinfo": "symgrad.frontend.dtypes",
    "int64": "symgrad.ir.dtype",
    "once_differentiable": "symgrad.frontend.function",
    "surrogate": "symgrad.frontend.surrogate",
    "verify": "symgrad.compiler",
}
# Every other public name is an operation on tensors: sg.exp, sg.where, sg.cat...
_OPERATIONS = "symgrad.frontend.functions"

__all__ = ["__version__", *_SOURCES]


def __getattr__(name: str) -> Any:
    """Import a public name from its module, once."""
    if name == "__version__":
        value = importlib.import_module("importlib.metadata").version("symgrad")
    elif name in _SOURCES:
        module, _, attribute = _SOURCES[name].partition(":")
        value = getattr(importlib.import_module(module), attribute or name)
    else:
        value = _operation(name)
    globals()[name] = value
    return value


def _operation(name: str) -> Any:
    functions = {} if name.startswith("__") else importlib.import_module(_OPERATIONS).FUNCTIONS
    if name not in functions:
        raise importlib.import_module("symgrad.frontend.unsupported").missing_function(name)
    return functions[name]


def __dir__() -> list[str]:
    operations = importlib.import_module(_OPERATIONS).FUNCTIONS
    return sorted({*globals(), *__all__, *operations})
