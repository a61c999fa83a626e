"""Elementary functions of one or two tensors, as the registry has them.

In: tensors and numbers.  Out: tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from symgrad.errors import DTypeError
from symgrad.frontend.caller import here
from symgrad.frontend.dtypes import check_fits
from symgrad.frontend.kinds import refused
from symgrad.frontend.lift import as_tensor, elementwise, on_nodes, result_dtype
from symgrad.frontend.session import current
from symgrad.frontend.table import OperationCallError, operation
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.ir.dtype import bool_

Tensor = SymbolicTensor

# An op of the registry and torch's further names for it; integers become floats first.
_FLOAT_FUNCTIONS: dict[str, tuple[str, ...]] = {
    "exp": (), "expm1": (), "exp2": (), "log": (), "log1p": (), "log2": (), "log10": (),
    "sqrt": (), "rsqrt": (), "reciprocal": (), "sin": (), "cos": (), "tan": (),
    "asin": ("arcsin",), "acos": ("arccos",), "atan": ("arctan",), "sinh": (), "cosh": (),
    "tanh": (), "asinh": ("arcsinh",), "acosh": ("arccosh",), "atanh": ("arctanh",),
    "sigmoid": ("expit",), "log_sigmoid": ("logsigmoid",), "erf": (), "erfc": (), "erfinv": (),
    "lgamma": (), "digamma": (),
}  # fmt: skip


def _function(op: str) -> Callable[[Any], Tensor]:
    def call(input: Any) -> Tensor:
        return elementwise(op, input, floats=True)

    call.__name__ = call.__qualname__ = op
    call.__doc__ = f"The op ``{op}`` of each element."
    return call


for _op, _aliases in _FLOAT_FUNCTIONS.items():
    operation(_op, *_aliases, inplace=True)(_function(_op))


def _keeping_integers(op: str) -> Callable[[Any], Tensor]:
    """Functions that return integers and bools as they are."""

    def call(input: Any) -> Tensor:
        if not as_tensor(input).dtype.is_float:
            return on_nodes(lambda node: node, (input,), None)
        return elementwise(op, input)

    call.__name__ = call.__qualname__ = op
    call.__doc__ = f"The op ``{op}`` of each element; integers stay as they are."
    return call


for _op in ("floor", "ceil", "trunc"):
    operation(_op, *(("fix",) if _op == "trunc" else ()), inplace=True)(_keeping_integers(_op))


_NOT_GIVEN: Any = object()


@operation("round", inplace=True)
def round(input: Any, *, decimals: int = _NOT_GIVEN) -> Tensor:
    """The nearest multiple of ``10 ** -decimals``, the even one of two.

    Integers stay, but are refused with ``decimals``, as in torch.  Raises DTypeError.
    """
    if decimals is _NOT_GIVEN:
        return _nearest(input)
    if not as_tensor(input).dtype.is_float:
        raise DTypeError(
            f"round() with decimals takes floats, not {as_tensor(input).dtype}", location=here(),
            hint="leave decimals out, or convert the tensor: .to(sg.float64)",
        )  # fmt: skip
    if decimals == 0:
        return _nearest(input)
    scale = 10.0 ** abs(decimals)
    inner, outer = ("mul", "div") if decimals > 0 else ("div", "mul")
    return elementwise(outer, _nearest(elementwise(inner, input, scale)), scale)


_nearest = _keeping_integers("round")


@operation("abs", "absolute", inplace=True, elementwise=True)
def absolute(input: Any) -> Tensor:
    """``|x|``; its derivative at 0 is 0."""
    return elementwise("abs", input)


SymbolicTensor.__abs__ = absolute  # type: ignore[attr-defined]
SymbolicTensor.__round__ = SymbolicTensor.round  # type: ignore[attr-defined]


@operation("sign", "sgn", inplace=True)
def sign(input: Any) -> Tensor:
    """-1, 0 or 1."""
    if as_tensor(input).dtype == bool_:
        return on_nodes(lambda node: node, (input,), None)
    return elementwise("sign", input)


@operation("square", inplace=True)
def square(input: Any) -> Tensor:
    """``x * x``."""
    if not as_tensor(input).dtype.is_float:
        return elementwise("mul", input, input)
    return elementwise("square", input)


@operation("frac", inplace=True, elementwise=True)
def frac(input: Any) -> Tensor:
    """The part behind the point, with the sign of the number."""
    return elementwise("sub", input, elementwise("trunc", input))


@operation("atan2", "arctan2", inplace=True)
def atan2(input: Tensor, other: Tensor) -> Tensor:
    """The angle of the point (other, input)."""
    return elementwise("atan2", input, other, floats=True)


@operation("hypot", inplace=True)
def hypot(input: Tensor, other: Tensor) -> Tensor:
    """``sqrt(x² + y²)``."""
    return elementwise("hypot", input, other, floats=True)


@operation("maximum")
def maximum(input: Tensor, other: Tensor) -> Tensor:
    """The greater of two; NaN where either is."""
    bools = result_dtype((input, other)) == bool_
    return elementwise("logical_or" if bools else "maximum", input, other)


@operation("minimum")
def minimum(input: Tensor, other: Tensor) -> Tensor:
    """The lesser of two; NaN where either is."""
    bools = result_dtype((input, other)) == bool_
    return elementwise("logical_and" if bools else "minimum", input, other)


@operation("clamp", "clip", inplace=True, elementwise=True)
def clamp(input: Any, min: Any = None, max: Any = None) -> Tensor:
    """The nearest value in ``[min, max]``; its derivative at the ends is 1, as in torch."""
    if min is None and max is None:
        raise OperationCallError(
            "torch.clamp: At least one of 'min' or 'max' must not be None", location=here()
        )
    result = on_nodes(lambda node: node, (input,), None)
    if min is not None:
        result = _bounded("lt", result, min)
    if max is not None:
        result = _bounded("gt", result, max)
    return result


@operation("clamp_min", inplace=True, elementwise=True)
def clamp_min(input: Any, min: Any) -> Tensor:
    """``clamp(min=min)``."""
    if min is None:
        raise refused("clamp_min", "min", "Number", min)
    return clamp(input, min=min)


@operation("clamp_max", inplace=True, elementwise=True)
def clamp_max(input: Any, max: Any) -> Tensor:
    """``clamp(max=max)``."""
    if max is None:
        raise refused("clamp_max", "max", "Number", max)
    return clamp(input, max=max)


def _bounded(relation: str, input: Any, bound: Any) -> Tensor:
    session, dtype = current(), result_dtype((input, bound))
    check_fits(bound, dtype)
    return on_nodes(
        lambda x, limit: session.apply("where", session.apply(relation, x, limit), limit, x),
        (input, bound), dtype,
    )  # fmt: skip


@operation("deg2rad", inplace=True, elementwise=True)
def deg2rad(input: Any) -> Tensor:
    """Degrees to radians."""
    return elementwise("mul", input, 0.017453292519943295)


@operation("rad2deg", inplace=True, elementwise=True)
def rad2deg(input: Any) -> Tensor:
    """Radians to degrees."""
    return elementwise("mul", input, 57.29577951308232)


@operation("logaddexp")
def logaddexp(input: Tensor, other: Tensor) -> Tensor:
    """``log(exp(x) + exp(y))``."""
    return elementwise("logaddexp", input, other)


@operation("logaddexp2", elementwise=True)
def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """``log2(2**x + 2**y)``, without overflow."""
    scaled = (elementwise("mul", one, _LOG_OF_2) for one in (input, other))
    return elementwise("div", elementwise("logaddexp", *scaled), _LOG_OF_2)


_LOG_OF_2 = math.log(2)
