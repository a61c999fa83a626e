"""What may be a parameter, a buffer or a module, and under which names.

In: a module, a name, a value.  Out: the value, or the error that torch raises.
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


def check_made(module: Any, kind: str) -> None:
    """Was ``Module.__init__`` called?  Raises ModuleAttributeError."""
    if "_parameters" not in module.__dict__:
        raise ModuleAttributeError(f"cannot assign {kind} before Module.__init__() call")


def check_name(module: Any, kind: str, table: str, name: Any) -> None:
    """May something new have this name?  Raises ModuleTypeError, ModuleKeyError."""
    check_made(module, kind)
    if not isinstance(name, str):
        raise ModuleTypeError(f"{kind} name should be a string. Got {type(name).__name__}")
    if "." in name:
        raise ModuleKeyError(f'{kind} name can\'t contain "."')
    if not name:
        raise ModuleKeyError(f'{kind} name can\'t be empty string ""')
    if hasattr(module, name) and name not in module.__dict__[table]:
        raise ModuleKeyError(f"attribute '{name}' already exists")


def _refused(name: str, value: Any, kind: str, expected: str) -> ModuleTypeError:
    found = value.type() if isinstance(value, Tensor) else type(value).__name__
    return ModuleTypeError(
        f"cannot assign '{found}' as {kind} '{name}' (symgrad.{expected} or None expected)"
    )


def as_parameter(name: str, value: Any) -> Parameter | None:
    """The parameter.  Raises ModuleTypeError, ModuleValueError."""
    if value is not None and not isinstance(value, Parameter):
        raise _refused(name, value, "parameter", "nn.Parameter")
    if value is not None and value.grad_fn is not None:
        raise ModuleValueError(
            f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
            f"created explicitly. To express '{name}' as a function of another Tensor, compute "
            "the value in the forward() method."
        )
    return value


def as_buffer(name: str, value: Any) -> Tensor | None:
    """The buffer.  Raises ModuleTypeError."""
    if value is not None and not isinstance(value, Tensor):
        raise _refused(name, value, "buffer", "Tensor")
    return value


def as_module(name: str, value: Any, kind: type) -> Any:
    """The module.  Raises ModuleTypeError."""
    if value is not None and not isinstance(value, kind):
        raise _refused(name, value, "child module", "nn.Module")
    return value
