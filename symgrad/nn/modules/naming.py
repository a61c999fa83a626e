"""What may be a parameter, a buffer or a module, and under which names.

In: a module, a name, a value.  Out: the value, or the error that torch raises.
Imports: the eager tensor, this package's parameters and errors.
"""

from __future__ import annotations

from typing import Any

from symgrad.nn.errors import (
    ModuleAttributeError,
    ModuleKeyError,
    ModuleTypeError,
    ModuleValueError,
)
from symgrad.nn.parameter import Parameter
from symgrad.tensor import Tensor


def _check(module: Any, kind: str, table: str, name: Any) -> None:
    if table not in module.__dict__:
        raise ModuleAttributeError(f"cannot assign {kind} before Module.__init__() call")
    if not isinstance(name, str):
        raise ModuleTypeError(f"{kind} name should be a string. Got {type(name).__name__}")
    if "." in name:
        raise ModuleKeyError(f'{kind} name can\'t contain "."')
    if not name:
        raise ModuleKeyError(f'{kind} name can\'t be empty string ""')
    if hasattr(module, name) and name not in module.__dict__[table]:
        raise ModuleKeyError(f"attribute '{name}' already exists")


def checked_parameter(module: Any, name: Any, value: Any) -> Parameter | None:
    """The parameter.  Raises ModuleTypeError, ModuleKeyError, ModuleValueError."""
    _check(module, "parameter", "_parameters", name)
    if value is None:
        return None
    if not isinstance(value, Parameter):
        raise ModuleTypeError(
            f"cannot assign '{type(value).__name__}' object to parameter '{name}' "
            "(symgrad.nn.Parameter or None required)"
        )
    if value.grad_fn is not None:
        raise ModuleValueError(
            f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
            f"created explicitly. To express '{name}' as a function of another Tensor, compute "
            "the value in the forward() method."
        )
    return value


def checked_buffer(module: Any, name: Any, value: Any) -> Tensor | None:
    """The buffer.  Raises ModuleTypeError, ModuleKeyError."""
    _check(module, "buffer", "_buffers", name)
    if value is not None and not isinstance(value, Tensor):
        raise ModuleTypeError(
            f"cannot assign '{type(value).__name__}' object to buffer '{name}' "
            "(symgrad.Tensor or None required)"
        )
    return value


def checked_module(module: Any, name: Any, value: Any, kind: type) -> Any:
    """The module.  Raises ModuleTypeError, ModuleKeyError."""
    _check(module, "module", "_modules", name)
    if value is not None and not isinstance(value, kind):
        raise ModuleTypeError(
            f"cannot assign '{type(value).__name__}' object to module '{name}' "
            "(symgrad.nn.Module or None required)"
        )
    return value
