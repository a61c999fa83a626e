"""NumPy's functions on symbolic tensors: ``np.exp(x)``, ``2.0 * x`` with NumPy numbers.

In: a ufunc or a function of NumPy's and its arguments.  Out: what the operation of that name gives.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symgrad.frontend import unsupported
from symgrad.frontend.caller import here
from symgrad.frontend.table import FUNCTIONS, NUMPY_NAMES, public
from symgrad.frontend.tensor import SymbolicTensor

# NumPy's names where torch has another.
_OTHER_NAMES = {
    "absolute": "abs", "fabs": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin",
    "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh",
    "equal": "eq", "greater": "gt", "greater_equal": "ge",
    "invert": "bitwise_not", "less": "lt", "less_equal": "le", "not_equal": "ne",
    "power": "pow", "float_power": "pow", "mod": "remainder", "rint": "round",
    "true_divide": "div", "divide": "div", "transpose": "permute", "round_": "round",
    "max": "amax", "min": "amin", "cumulative_sum": "cumsum",
}  # fmt: skip
_RENAMED = {**NUMPY_NAMES, "a": "input", "x": "input"}


def array_ufunc(
    self: SymbolicTensor, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
) -> Any:  # fmt: skip
    """``ufunc(*inputs)`` by the operation of its name."""
    call = _operation(ufunc.__name__)
    if method == "reduce" and ufunc.__name__ in ("add", "maximum", "minimum", "multiply"):
        reduction = {"add": "sum", "maximum": "amax", "minimum": "amin", "multiply": "prod"}
        return FUNCTIONS[reduction[ufunc.__name__]](*inputs, **_keywords(kwargs))
    out = kwargs.pop("out", None)
    if method != "__call__" or call is None or kwargs:
        raise unsupported.missing_op(f"np.{ufunc.__name__}", here())
    result = call(*inputs)
    if out is not None:
        out[0].write(result.node)
        return out[0]
    return result


def array_function(
    self: SymbolicTensor,
    function: Callable[..., Any],
    types: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """``function(*args)`` of NumPy's by the operation of its name."""
    name = function.__name__
    call = _operation(name)
    if call is None:
        raise unsupported.missing_op(f"np.{name}", here())
    if name == "transpose":
        return args[0].permute(*args[1]) if len(args) > 1 else args[0].T
    if name in ("var", "std"):
        settings = _keywords(kwargs)
        settings["correction"] = settings.pop("ddof", 0)
        return call(*args, **settings)
    return call(*args, **_keywords(kwargs))


def _keywords(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """NumPy's keyword arguments under torch's names, less those that say nothing."""
    ours = ("out", "where", "initial")
    return {_RENAMED.get(name, name): kwargs[name] for name in kwargs if name not in ours}


def _operation(name: str) -> Callable[..., Any] | None:
    """The operation, which takes numbers wherever NumPy's function does."""
    own = _OTHER_NAMES.get(name, name)
    found = FUNCTIONS.get(own)
    return public(own, inspect.unwrap(found)) if callable(found) else None


setattr(SymbolicTensor, "__array_ufunc__", array_ufunc)  # noqa: B010
setattr(SymbolicTensor, "__array_function__", array_function)  # noqa: B010
