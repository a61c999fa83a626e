"""Activations under torch's names, each with its hand-written backward.

In: tensors.  Out: tensors; and the Functions that differentiate the operations.

What a backward reads are inputs or outputs, never intermediates, so that each may be differentiated
twice.  Exponentials take only what cannot overflow, so that second derivatives have no ``0 * inf``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

from symgrad.errors import ShapeError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.dtypes import finfo
from symgrad.frontend.function import backward_of, own_backward
from symgrad.frontend.functions.arithmetic import add, div, mul, neg, sub
from symgrad.frontend.functions.comparisons import holds, logical_and, logical_or, where
from symgrad.frontend.functions.mathematics import clamp
from symgrad.frontend.functions.movement import axis_of
from symgrad.frontend.lift import as_tensor, elementwise, setting
from symgrad.frontend.table import OperationCallError, OperationValueError, operation
from symgrad.frontend.table import functions as sg
from symgrad.frontend.tensor import SymbolicTensor, fresh

Tensor = SymbolicTensor
Each = Annotated[Any, "f32[*s]"]
EXACT_THRESHOLD = 20
"""The default threshold of softplus, above which it is exact all the same."""
SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805


def _each(compute: Callable[..., Tensor], input: Any, inplace: bool, *settings: Any) -> Tensor:
    """What is computed of each element; written into the tensor itself if ``inplace``."""
    if not inplace:
        return compute(input, *settings)
    tensor = as_tensor(input)
    tensor.write(compute(fresh(tensor.node), *settings).node)
    return tensor


# -- linear in parts


@backward_of("relu")
def ReLU(grad_y: Any, y: Each) -> Any:
    """``max(x, 0)``; its derivative at 0 is 0."""
    return sg.where(y <= 0, 0.0, grad_y)


@own_backward(ReLU)
def _relu(input: Any) -> Tensor:
    return elementwise("relu", input)


@operation("relu", inplace=True)
def relu(input: Any, inplace: bool = False) -> Tensor:
    """``max(x, 0)``; its derivative at 0 is 0."""
    return _each(_relu, input, inplace)


@backward_of("hardtanh")
def Hardtanh(grad_y: Any, x: Each, min_val: Any = -1.0, max_val: Any = 1.0) -> Any:
    """``clamp(x, min_val, max_val)``; its derivative at both ends is 0."""
    return sg.where((x <= min_val) | (x >= max_val), 0.0, grad_y)


@own_backward(Hardtanh)
def _hardtanh(input: Any, low: Any, high: Any) -> Tensor:
    low, high = (setting(end, as_tensor(input).dtype) for end in (low, high))
    below = elementwise("le", input, low)
    return where(below, low, where(elementwise("ge", input, high), high, input))


@operation("hardtanh", method=False, elementwise=True)
def hardtanh(
    input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:  # fmt: skip
    """``clamp(x, min_val, max_val)``; its derivative at both ends is 0."""
    if not holds("le", min_val, max_val):
        raise OperationValueError("min_val cannot be greater than max_val", location=here())
    return _each(_hardtanh, input, inplace, min_val, max_val)


@operation("relu6", method=False, elementwise=True)
def relu6(input: Any, inplace: bool = False) -> Tensor:
    """``clamp(x, 0, 6)``; its derivative at both ends is 0."""
    return hardtanh(input, 0.0, 6.0, inplace)


@operation("rrelu", method=False, elementwise=True)
def rrelu(
    input: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False,
    inplace: bool = False,
) -> Tensor:  # fmt: skip
    """``leaky_relu`` with the mean of the slopes that training would draw from."""
    if training:
        raise UnsupportedOpError(
            "rrelu draws random numbers", location=here(),
            hint="draw outside, and pass the draw as an input",
        )  # fmt: skip
    return leaky_relu(input, (lower + upper) / 2, inplace)


@backward_of("leaky_relu")
def LeakyReLU(grad_y: Any, x: Each, negative_slope: Any = 0.01) -> Any:
    """``x`` above 0, ``negative_slope x`` elsewhere."""
    return sg.where(x > 0, grad_y, grad_y * negative_slope)


@own_backward(LeakyReLU)
def _leaky_relu(input: Any, negative_slope: Any) -> Tensor:
    return where(elementwise("gt", input, 0), input, mul(input, negative_slope))


@operation("leaky_relu", method=False, elementwise=True)
def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``x`` above 0, a small multiple of it elsewhere."""
    return _each(_leaky_relu, input, inplace, negative_slope)


@backward_of(lambda x, weight: sg.where(x > 0, x, weight * x))
def PReLU(grad_y: Any, x: Annotated[Any, "f32[n c]"], weight: Annotated[Any, "f32[c]"]) -> Any:
    """``x`` above 0, ``weight x`` elsewhere; one weight for each column."""
    return sg.where(x > 0, grad_y, grad_y * weight), sg.where(x > 0, 0.0, grad_y * x)


@own_backward(PReLU)
def _prelu(input: Any, weight: Any) -> Tensor:
    return where(elementwise("gt", input, 0), input, mul(weight, input))


@operation("prelu")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """``x`` above 0, ``weight * x`` elsewhere; one weight, or one for each index of axis 1."""
    source, slope = as_tensor(input), as_tensor(weight)
    if slope.ndim > 1:
        raise ShapeError(
            "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
            f"{slope.ndim}", location=here(),
        )  # fmt: skip
    count = slope.node.shape[0] if slope.ndim else 1
    if count != 1:
        channels = source.node.shape[1] if source.ndim > 1 else 1
        if channels != count:
            raise ShapeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{count} and channel size = {channels}.", location=here(),
                equal=[(count, channels)] if source.ndim > 1 else (),
            )  # fmt: skip
        slope = slope.reshape(-1, *[1] * (source.ndim - 2))
    elif slope.ndim and not source.ndim:
        slope = slope.reshape(())
    return _prelu(source, slope)


def _threshold(input: Any, threshold: Any, value: Any) -> Tensor:
    threshold, value = (setting(one, as_tensor(input).dtype) for one in (threshold, value))
    return where(elementwise("le", input, threshold), value, input)


@operation("threshold", method=False, elementwise=True)
def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``x`` above the threshold, ``value`` elsewhere."""
    return _each(_threshold, input, inplace, threshold, value)


@backward_of("hardsigmoid")
def Hardsigmoid(grad_y: Any, x: Each) -> Any:
    """``clamp(x + 3, 0, 6) / 6``; its derivative at both ends is 0."""
    return sg.where((x > -3) & (x < 3), grad_y / 6, 0.0)


@own_backward(Hardsigmoid)
def _hardsigmoid(input: Any) -> Tensor:
    below, above = elementwise("le", input, -3), elementwise("ge", input, 3)
    return where(below, 0.0, where(above, 1.0, div(add(input, 3), 6)))


@operation("hardsigmoid", method=False, elementwise=True)
def hardsigmoid(input: Any, inplace: bool = False) -> Tensor:
    """``clamp(x + 3, 0, 6) / 6``; its derivative at both ends is 0."""
    return _each(_hardsigmoid, input, inplace)


@backward_of("hardswish")
def Hardswish(grad_y: Any, x: Each) -> Any:
    """``x clamp(x + 3, 0, 6) / 6`` (Howard and others, Searching for MobileNetV3, 2019)."""
    inside = grad_y * (x / 3 + 0.5)
    return sg.where(x <= -3, 0.0, sg.where(x < 3, inside, grad_y))


@own_backward(Hardswish)
def _hardswish(input: Any) -> Tensor:
    below, above = elementwise("le", input, -3), elementwise("ge", input, 3)
    inside = div(mul(input, add(input, 3)), 6)
    return where(below, mul(input, 0.0), where(above, input, inside))


@operation("hardswish", method=False, elementwise=True)
def hardswish(input: Any, inplace: bool = False) -> Tensor:
    """``x clamp(x + 3, 0, 6) / 6``; its derivative is 0 at -3 and 1 at 3."""
    return _each(_hardswish, input, inplace)


@operation("softshrink", method=False, elementwise=True)
def softshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """Moved towards 0 by ``lambd``, 0 where it would cross it."""
    if not lambd >= 0:
        dtype = as_tensor(input).dtype
        raise OperationCallError(
            f"lambda must be in range [0, {finfo(dtype).max:g}] for input dtype "
            f"{dtype.scalar_type}, but found {lambd:g}", location=here(),
        )  # fmt: skip
    below = where(elementwise("ge", input, -lambd), 0.0, add(input, lambd))
    return where(elementwise("gt", input, lambd), sub(input, lambd), below)


@operation("hardshrink", elementwise=True)
def hardshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """0 where ``|x| <= lambd``."""
    return where(elementwise("le", elementwise("abs", input), lambd), 0.0, input)


# -- with exponentials below 0


@backward_of("elu")
def ELU(grad_y: Any, x: Each, alpha: Any = 1.0) -> Any:
    """``x`` above 0, ``alpha (exp(x) - 1)`` elsewhere."""
    low = x <= 0
    return sg.where(low, grad_y * (alpha * sg.exp(sg.where(low, x, 0.0))), grad_y)


@own_backward(ELU)
def _elu(input: Any, alpha: Any) -> Tensor:
    above = elementwise("gt", input, 0)
    below = mul(elementwise("expm1", where(above, 0.0, input)), alpha)
    return where(above, input, below)


@operation("elu", method=False, elementwise=True)
def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` above 0, ``alpha (exp(x) - 1)`` elsewhere."""
    return _each(_elu, input, inplace, alpha)


@backward_of("celu")
def CELU(grad_y: Any, x: Each, alpha: Any = 1.0) -> Any:
    """``x`` above 0, ``alpha (exp(x / alpha) - 1)`` elsewhere."""
    low = x <= 0
    return sg.where(low, grad_y * sg.exp(sg.where(low, x, 0.0) / alpha), grad_y)


@own_backward(CELU)
def _celu(input: Any, alpha: Any) -> Tensor:
    above = elementwise("gt", input, 0)
    below = mul(elementwise("expm1", div(where(above, 0.0, input), alpha)), alpha)
    return where(above, input, below)


@operation("celu", method=False, elementwise=True)
def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` above 0, ``alpha (exp(x / alpha) - 1)`` elsewhere."""
    if alpha == 0:
        raise OperationCallError("ZeroDivisionError: alpha cannot be 0 for CELU", location=here())
    return _each(_celu, input, inplace, alpha)


@backward_of("selu")
def SELU(grad_y: Any, x: Each) -> Any:
    """The scaled ELU of Klambauer and others, Self-normalizing neural networks (2017)."""
    low = x <= 0
    slope = sg.where(low, SELU_ALPHA * sg.exp(sg.where(low, x, 0.0)), 1.0)
    return grad_y * (SELU_SCALE * slope)


@own_backward(SELU)
def _selu(input: Any) -> Tensor:
    return mul(_elu(input, SELU_ALPHA), SELU_SCALE)


@operation("selu", method=False, elementwise=True)
def selu(input: Any, inplace: bool = False) -> Tensor:
    """The scaled ELU of Klambauer and others (2017)."""
    return _each(_selu, input, inplace)


# -- smooth


@backward_of("sigmoid")
def Sigmoid(grad_y: Any, y: Each) -> Any:
    """``1 / (1 + exp(-x))``."""
    return grad_y * (1 - y) * y


@backward_of("logsigmoid")
def LogSigmoid(grad_y: Any, x: Each) -> Any:
    """``log(sigmoid(x))``, without overflow."""
    return grad_y * sg.sigmoid(-x)


@backward_of("tanh")
def Tanh(grad_y: Any, y: Each) -> Any:
    """``tanh(x)``."""
    return grad_y * (1 - y * y)


@backward_of("gelu")
def GELU(grad_y: Any, x: Each) -> Any:
    """``x Φ(x)``, Φ the distribution function of the standard normal."""
    distribution = 0.5 * (1 + sg.erf(x / math.sqrt(2)))
    density = sg.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return grad_y * (distribution + x * density)


@own_backward(GELU)
def _gelu(input: Any) -> Tensor:
    scaled = elementwise("erf", mul(input, 0.7071067811865476))
    return mul(mul(input, 0.5), add(scaled, 1))


@backward_of(lambda x: sg.gelu(x, approximate="tanh"))
def GELUTanh(grad_y: Any, x: Each) -> Any:
    """The approximation of GELU by tanh (Hendrycks and Gimpel, 2016)."""
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
    t = sg.tanh(inner)
    return grad_y * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)


@own_backward(GELUTanh)
def _gelu_tanh(input: Any) -> Tensor:
    cube = mul(elementwise("square", input), input)
    inner = mul(add(input, mul(cube, 0.044715)), 0.7978845608028654)
    return mul(mul(input, 0.5), add(elementwise("tanh", inner), 1))


@operation("gelu", method=False, elementwise=True)
def gelu(input: Any, *, approximate: str = "none") -> Tensor:
    """``x Φ(x)``, or its approximation by tanh (Hendrycks and Gimpel, 2016)."""
    if approximate not in ("none", "tanh"):
        raise OperationCallError(
            "approximate argument must be either none or tanh.", location=here()
        )
    return (_gelu if approximate == "none" else _gelu_tanh)(input)


@backward_of("silu")
def SiLU(grad_y: Any, x: Each) -> Any:
    """``x sigmoid(x)``."""
    s = sg.sigmoid(x)
    return grad_y * (s * (1 + x * (1 - s)))


@own_backward(SiLU)
def _silu(input: Any) -> Tensor:
    return elementwise("silu", input)


@operation("silu", "swish", method=False)
def silu(input: Any, inplace: bool = False) -> Tensor:
    """``x sigmoid(x)``."""
    return _each(_silu, input, inplace)


@backward_of("softplus")
def Softplus(grad_y: Any, x: Each, beta: Any = 1.0, threshold: Any = EXACT_THRESHOLD) -> Any:
    """``log(1 + exp(beta x)) / beta``; ``x`` above another threshold than 20."""
    scaled = x * beta
    grad_x = grad_y * sg.sigmoid(scaled)
    if threshold != EXACT_THRESHOLD:
        grad_x = sg.where(scaled > threshold, grad_y, grad_x)
    return grad_x


@own_backward(Softplus)
def _softplus(input: Any, beta: Any, threshold: Any) -> Tensor:
    if isinstance(beta, (int, float)) and beta == 1:
        scaled, exact = input, elementwise("softplus", input, floats=True)
    else:
        scaled = mul(input, beta)
        exact = div(elementwise("softplus", scaled), beta)
    if threshold == EXACT_THRESHOLD:
        return exact
    return where(elementwise("gt", scaled, threshold), input, exact)


@operation("softplus", method=False)
def softplus(input: Any, beta: float = 1, threshold: float = 20) -> Tensor:
    """``log(1 + exp(beta x)) / beta``; ``x`` where ``beta x`` is above another threshold than 20.

    Above 20, torch's default, the function and ``x`` differ by less than 2.1e-9: it is exact there.
    """
    return _softplus(input, beta, threshold)


@backward_of("mish")
def Mish(grad_y: Any, x: Each) -> Any:
    """``x tanh(softplus(x))`` (Misra, 2019)."""
    t = sg.tanh(sg.softplus(x))
    return grad_y * (t + x * (1 - t * t) * sg.sigmoid(x))


@own_backward(Mish)
def _mish(input: Any) -> Tensor:
    return mul(input, elementwise("tanh", elementwise("softplus", input)))


@operation("mish", method=False, elementwise=True)
def mish(input: Any, inplace: bool = False) -> Tensor:
    """``x tanh(softplus(x))``."""
    return _each(_mish, input, inplace)


@backward_of("softsign")
def Softsign(grad_y: Any, x: Each) -> Any:
    """``x / (1 + |x|)``."""
    root = 1 + sg.abs(x)
    return grad_y / (root * root)


@own_backward(Softsign)
def _softsign(input: Any) -> Tensor:
    return div(input, add(elementwise("abs", input), 1))


@operation("softsign", method=False, elementwise=True)
def softsign(input: Any) -> Tensor:
    """``x / (1 + |x|)``."""
    return _softsign(input)


@operation("tanhshrink", method=False, elementwise=True)
def tanhshrink(input: Any) -> Tensor:
    """``x - tanh(x)``."""
    return sub(input, elementwise("tanh", input))


@operation("glu", method=False)
def glu(input: Any, dim: int = -1) -> Tensor:
    """One half times the sigmoid of the other."""
    source = as_tensor(input)
    if not source.ndim:
        raise OperationCallError("glu does not support 0-dimensional tensors", location=here())
    axis = axis_of(dim, source.ndim)
    size = source.node.shape[axis].constant
    if size is not None and size % 2:
        raise OperationCallError(
            f"Halving dimension must be even, but dimension {axis} is size {size}",
            location=here(),
        )
    left, right = source.chunk(2, axis)
    return mul(left, elementwise("sigmoid", right))


@operation("logit", inplace=True, elementwise=True)
def logit(input: Any, eps: Any = None) -> Tensor:
    """``log(x / (1 - x))``."""
    source = input if eps is None else clamp(input, eps, 1 - eps)
    return sub(elementwise("log", source), elementwise("log1p", neg(source)))


@operation("xlogy", inplace=True, elementwise=True)
def xlogy(input: Any, other: Any) -> Tensor:
    """``x log(y)``, 0 where x is 0."""
    infinite = logical_or(elementwise("le", other, 0), elementwise("eq", other, float("inf")))
    nothing = logical_and(elementwise("eq", input, 0), infinite)
    return mul(input, elementwise("log", where(nothing, 1.0, other)))


@operation("xlog1py", method=False, elementwise=True)
def xlog1py(input: Any, other: Any) -> Tensor:
    """``x log(1 + y)``, 0 where x is 0."""
    infinite = logical_or(elementwise("le", other, -1), elementwise("eq", other, float("inf")))
    nothing = logical_and(elementwise("eq", input, 0), infinite)
    return mul(input, elementwise("log1p", where(nothing, 0.0, other)))


@operation("entr", method=False, elementwise=True)
def entr(input: Any) -> Tensor:
    """``-x log(x)``, 0 at 0."""
    return neg(xlogy(input, input))
