"""Activation functions under torch's names.

In: tensors.  Out: tensors.
"""

from __future__ import annotations

from typing import Any

from symgrad.errors import UnsupportedOpError
from symgrad.frontend.functions.arithmetic import add, div, mul, neg, sub
from symgrad.frontend.functions.comparisons import logical_and, logical_or, where
from symgrad.frontend.functions.mathematics import clamp
from symgrad.frontend.functions.movement import axis_of
from symgrad.frontend.lift import as_tensor, elementwise
from symgrad.frontend.session import here
from symgrad.frontend.table import operation
from symgrad.frontend.tensor import SymbolicTensor

Tensor = SymbolicTensor


@operation("relu", inplace=True)
def relu(input: Any, inplace: bool = False) -> Tensor:
    """``max(x, 0)``; its derivative at 0 is 0."""
    return _maybe_in_place(input, elementwise("relu", input), inplace)


def _maybe_in_place(input: Any, result: Tensor, inplace: bool) -> Tensor:
    if not inplace:
        return result
    tensor = as_tensor(input)
    tensor.write(result.node)
    return tensor


@operation("relu6", method=False)
def relu6(input: Any, inplace: bool = False) -> Tensor:
    """``clamp(x, 0, 6)``."""
    return hardtanh(input, 0.0, 6.0, inplace)


@operation("hardtanh", method=False)
def hardtanh(
    input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:  # fmt: skip
    """``clamp(x, min_val, max_val)``."""
    return _maybe_in_place(input, clamp(input, min_val, max_val), inplace)


@operation("leaky_relu", method=False)
def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``x`` above 0, a small multiple of it below."""
    result = where(elementwise("gt", input, 0), input, mul(input, negative_slope))
    return _maybe_in_place(input, result, inplace)


@operation("prelu")
def prelu(input: Any, weight: Any) -> Tensor:
    """``x`` above 0, ``weight * x`` below; one weight, or one for each index of axis 1."""
    source, slope = as_tensor(input), as_tensor(weight)
    if slope.ndim == 1 and source.ndim > 1 and slope.node.shape[0] != 1:
        slope = slope.reshape(-1, *[1] * (source.ndim - 2))
    return where(elementwise("gt", source, 0), source, mul(slope, source))


@operation("threshold", method=False)
def threshold(input: Any, threshold: Any, value: Any, inplace: bool = False) -> Tensor:
    """``x`` above the threshold, ``value`` elsewhere."""
    result = where(elementwise("le", input, threshold), value, input)
    return _maybe_in_place(input, result, inplace)


@operation("elu", method=False)
def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` above 0, ``alpha (exp(x) - 1)`` below."""
    above = elementwise("gt", input, 0)
    below = mul(elementwise("expm1", where(above, 0.0, input)), alpha)
    return _maybe_in_place(input, where(above, input, below), inplace)


@operation("celu", method=False)
def celu(input: Any, alpha: float = 1.0) -> Tensor:
    """``x`` above 0, ``alpha (exp(x / alpha) - 1)`` below."""
    above = elementwise("gt", input, 0)
    below = mul(elementwise("expm1", div(where(above, 0.0, input), alpha)), alpha)
    return where(above, input, below)


@operation("selu", method=False)
def selu(input: Any) -> Tensor:
    """The scaled elu of Klambauer and others (2017)."""
    return mul(elu(input, 1.6732632423543772), 1.0507009873554805)


@operation("gelu", method=False)
def gelu(input: Any, approximate: str = "none") -> Tensor:
    """``x Φ(x)``, or its approximation by tanh (Hendrycks and Gimpel, 2016)."""
    if approximate == "tanh":
        cube = mul(elementwise("square", input), input)
        inner = mul(add(input, mul(cube, 0.044715)), 0.7978845608028654)
        return mul(mul(input, 0.5), add(elementwise("tanh", inner), 1))
    scaled = elementwise("erf", mul(input, 0.7071067811865476))
    return mul(mul(input, 0.5), add(scaled, 1))


@operation("silu", "swish", method=False)
def silu(input: Any, inplace: bool = False) -> Tensor:
    """``x sigmoid(x)``."""
    return _maybe_in_place(input, elementwise("silu", input), inplace)


@operation("softplus", method=False)
def softplus(input: Any, beta: Any = 1, threshold: float = 20) -> Tensor:
    """``log(1 + exp(beta x)) / beta``, exact also where torch switches to ``x``."""
    if isinstance(beta, (int, float)) and beta == 1:
        return elementwise("softplus", input, floats=True)
    return div(elementwise("softplus", mul(input, beta)), beta)


@operation("mish", method=False)
def mish(input: Any) -> Tensor:
    """``x tanh(softplus(x))``."""
    return mul(input, elementwise("tanh", elementwise("softplus", input)))


@operation("softsign", method=False)
def softsign(input: Any) -> Tensor:
    """``x / (1 + |x|)``."""
    return div(input, add(elementwise("abs", input), 1))


@operation("tanhshrink", method=False)
def tanhshrink(input: Any) -> Tensor:
    """``x - tanh(x)``."""
    return sub(input, elementwise("tanh", input))


@operation("softshrink", method=False)
def softshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """Moved towards 0 by ``lambd``, 0 where it would cross it."""
    below = where(elementwise("ge", input, -lambd), 0.0, add(input, lambd))
    return where(elementwise("gt", input, lambd), sub(input, lambd), below)


@operation("hardshrink")
def hardshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """0 where ``|x| <= lambd``."""
    return where(elementwise("le", elementwise("abs", input), lambd), 0.0, input)


@operation("hardsigmoid", method=False)
def hardsigmoid(input: Any) -> Tensor:
    """``clamp(x + 3, 0, 6) / 6``."""
    return div(clamp(add(input, 3), 0.0, 6.0), 6)


@operation("hardswish", method=False)
def hardswish(input: Any) -> Tensor:
    """``x clamp(x + 3, 0, 6) / 6``."""
    return mul(input, hardsigmoid(input))


@operation("glu", method=False)
def glu(input: Any, dim: int = -1) -> Tensor:
    """One half times the sigmoid of the other."""
    source = as_tensor(input)
    left, right = source.chunk(2, axis_of(dim, source.ndim))
    return mul(left, elementwise("sigmoid", right))


@operation("logit", inplace=True)
def logit(input: Any, eps: Any = None) -> Tensor:
    """``log(x / (1 - x))``."""
    source = input if eps is None else clamp(input, eps, 1 - eps)
    return sub(elementwise("log", source), elementwise("log1p", neg(source)))


@operation("dropout", method=False)
def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """The tensor itself where nothing is dropped; random masks are inputs."""
    if p and training:
        raise UnsupportedOpError(
            "dropout draws random numbers", location=here(),
            hint="draw the mask outside and pass it as an input",
        )  # fmt: skip
    return as_tensor(input)


@operation("xlogy", inplace=True)
def xlogy(input: Any, other: Any) -> Tensor:
    """``x log(y)``, 0 where x is 0."""
    infinite = logical_or(elementwise("le", other, 0), elementwise("eq", other, float("inf")))
    nothing = logical_and(elementwise("eq", input, 0), infinite)
    return mul(input, elementwise("log", where(nothing, 1.0, other)))


@operation("entr", method=False)
def entr(input: Any) -> Tensor:
    """``-x log(x)``, 0 at 0."""
    return neg(xlogy(input, input))
