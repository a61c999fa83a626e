"""Arithmetic with complex numbers, products and sums.

In: tensors and numbers, complex ones among them.  Out: what is computed with their two parts.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from symgrad.errors import DTypeError
from symgrad.frontend.caller import here
from symgrad.frontend.complexes import ComplexTensor
from symgrad.frontend.lift import as_tensor, result_dtype
from symgrad.frontend.table import functions as sg
from symgrad.interop.torch.complexes.table import (
    Parts,
    as_complex,
    each,
    operation,
    paired,
    parts,
    refused,
)


def _plus(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return left if right is None else right
    return left + right


def _minus(left: Any, right: Any) -> Any:
    if right is None:
        return left
    return -right if left is None else left - right


def _times(left: Any, right: Any) -> Any:
    return None if left is None or right is None else left * right


def _bilinear(product: Callable[[Any, Any], Any], left: Parts, right: Parts) -> Parts:
    """The parts of a product that is linear in both."""

    def term(one: Any, other: Any) -> Any:
        return None if one is None or other is None else product(one, other)

    real = _minus(term(left[0], right[0]), term(left[1], right[1]))
    return real, _plus(term(left[0], right[1]), term(left[1], right[0]))


@operation("complex", of_reals=True)
def _complex(real: Any, imag: Any) -> ComplexTensor:
    return paired(*_alike("complex", real, imag), real, imag)


@operation("polar", of_reals=True)
def _polar(abs: Any, angle: Any) -> ComplexTensor:
    size, turned = _alike("polar", abs, angle)
    return paired(size * sg.cos(turned), size * sg.sin(turned), abs, angle)


def _alike(name: str, *given: Any) -> list[Any]:
    """Both as tensors.  Raises DTypeError where their dtypes differ, as torch does."""
    first, second = map(as_tensor, given)
    if first.dtype != second.dtype:
        raise DTypeError(
            f"{name}(): expected two tensors of one dtype, got {first.dtype} and {second.dtype}",
            location=here(),
        )  # fmt: skip
    return [first, second]


@operation("abs", "absolute", "__abs__")
def _abs(input: ComplexTensor) -> Any:
    return sg.hypot(*parts(input))


@operation("angle", of_reals=True)
def _angle(input: Any) -> Any:
    real, imaginary = parts(input)
    if imaginary is None:
        source = as_tensor(real)
        kind = result_dtype([source, 0.0])
        return sg.where(source < 0, sg.full((), math.pi, dtype=kind), sg.zeros((), dtype=kind))
    return sg.atan2(imaginary, real)


# -- arithmetic


@operation("conj_physical", "_conj_physical")
def _conj_physical(input: ComplexTensor) -> ComplexTensor:
    real, imaginary = parts(input)
    return paired(real, -imaginary, input)


@operation("add", "__add__", "__radd__")
def _add(input: Any, other: Any, *, alpha: Any = 1) -> ComplexTensor:
    left, right = parts(input), parts(other if alpha == 1 else _mul(other, alpha))
    return paired(*map(_plus, left, right), input, other)


@operation("sub", "subtract", "__sub__")
def _sub(input: Any, other: Any, *, alpha: Any = 1) -> ComplexTensor:
    left, right = parts(input), parts(other if alpha == 1 else _mul(other, alpha))
    return paired(*map(_minus, left, right), input, other)


@operation("mul", "multiply", "__mul__", "__rmul__")
def _mul(input: Any, other: Any) -> Any:
    return paired(*_bilinear(_times, parts(input), parts(other)), input, other)


@operation("div", "divide", "true_divide", "__truediv__")
def _div(input: Any, other: Any, *, rounding_mode: Any = None) -> ComplexTensor:
    if rounding_mode is not None:
        raise refused("complex numbers are divided with a rounding mode")
    (left, right), (real, imaginary) = parts(input), parts(other)
    if imaginary is None:
        found = [None if one is None else one / real for one in (left, right)]
        return paired(*found, input, other)
    of = _times(imaginary, imaginary) if real is None else real * real + imaginary * imaginary
    top = _bilinear(_times, (left, right), (real, -imaginary))
    return paired(*(None if one is None else one / of for one in top), input, other)


@operation("reciprocal")
def _reciprocal(input: ComplexTensor) -> ComplexTensor:
    return _div(1.0, input)


@operation("neg", "negative", "__neg__")
def _neg(input: ComplexTensor) -> ComplexTensor:
    return each(lambda part: -part, input)


operation("positive", "__pos__")(lambda input: input)


@operation("square")
def _square(input: ComplexTensor) -> Any:
    return _mul(input, input)


_MOST_FACTORS = 8
"""Greater exponents are not split into a whole number, a product, and a rest."""


@operation("pow", "__pow__")
def _pow(input: Any, exponent: Any) -> ComplexTensor:
    if type(exponent) not in (int, float) or not isinstance(input, ComplexTensor):
        raise refused("a power of complex numbers whose exponent is no real number that is known")
    if not abs(exponent) <= _MOST_FACTORS:
        return _root(input, exponent)
    whole = math.floor(exponent)
    rest = float(Fraction(repr(exponent)) - whole)
    factors = [input] * abs(whole)
    if rest and whole >= 0:
        factors.append(_root(input, rest))
    found = functools.reduce(_mul, factors) if factors else _add(_mul(input, 0.0), 1.0)
    if whole >= 0:
        return found
    return _div(_root(input, rest) if rest else 1.0, found)


def _root(input: ComplexTensor, exponent: float) -> ComplexTensor:
    """A power from the absolute value and the angle."""
    return _polar(sg.pow(_abs(input), exponent), _angle(input) * exponent)


@operation("exp")
def _exp(input: ComplexTensor) -> ComplexTensor:
    real, imaginary = parts(input)
    return _polar(sg.exp(real), imaginary)


@operation("log")
def _log(input: ComplexTensor) -> ComplexTensor:
    return paired(sg.log(_abs(input)), _angle(input), input)


@operation("sqrt")
def _sqrt(input: ComplexTensor) -> ComplexTensor:
    return _polar(sg.sqrt(_abs(input)), _angle(input) / 2)


@operation("sgn")
def _sgn(input: ComplexTensor) -> ComplexTensor:
    size = _abs(input)
    return _div(input, sg.where(size == 0, 1, size))


def _turned(value: ComplexTensor) -> ComplexTensor:
    """It times i: sines are hyperbolic there."""
    real, imaginary = parts(value)
    return paired(-imaginary, real, value)


@operation("sinh")
def _sinh(input: ComplexTensor) -> ComplexTensor:
    real, turn = parts(input)
    return paired(sg.sinh(real) * sg.cos(turn), sg.cosh(real) * sg.sin(turn), input)


@operation("cosh")
def _cosh(input: ComplexTensor) -> ComplexTensor:
    real, turn = parts(input)
    return paired(sg.cosh(real) * sg.cos(turn), sg.sinh(real) * sg.sin(turn), input)


@operation("tanh")
def _tanh(input: ComplexTensor) -> ComplexTensor:
    return _div(_sinh(input), _cosh(input))


operation("sin")(lambda input: -_turned(_sinh(_turned(input))))
operation("cos")(lambda input: _cosh(_turned(input)))
operation("sigmoid", "expit", "special_expit")(lambda input: _div(1.0, _add(_exp(_neg(input)), 1)))


def _reflected(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda input, other: function(other, input)


operation("__rsub__", "rsub")(_reflected(_sub))
operation("__rtruediv__", "__rdiv__")(_reflected(_div))


# -- products and sums


@operation("matmul", "mm", "bmm", "mv", "dot", "__matmul__")
def _matmul(input: Any, other: Any) -> ComplexTensor:
    if not isinstance(input, ComplexTensor) or not isinstance(other, ComplexTensor):
        raise refused("torch multiplies no matrix of reals by one of complex numbers", "x.to(z)")
    return paired(*_bilinear(sg.matmul, parts(input), parts(other)), input, other)


operation("__rmatmul__")(_reflected(_matmul))


@operation("linear")
def _linear(input: Any, weight: Any, bias: Any = None) -> ComplexTensor:
    found = _matmul(input, each(lambda part: part.t(), weight))
    return found if bias is None else _add(found, bias)


@operation("vdot")
def _vdot(input: Any, other: Any) -> ComplexTensor:
    return _matmul(_conj_physical(as_complex(input)), other)


@operation("outer", "ger")
def _outer(input: Any, other: Any) -> ComplexTensor:
    return paired(*_bilinear(sg.outer, parts(input), parts(other)), input, other)


@operation("einsum")
def _einsum(equation: Any, *operands: Any) -> ComplexTensor:
    given = operands[0] if len(operands) == 1 and type(operands[0]) in (list, tuple) else operands
    if not isinstance(equation, str):
        raise refused("einsum of complex numbers without an equation")
    found: list[Any] = [None, None]
    for chosen in itertools.product((0, 1), repeat=len(given)):
        terms = [parts(one)[place] for one, place in zip(given, chosen, strict=True)]
        if all(one is not None for one in terms):
            power = sum(chosen) % 4  # of i
            term = sg.einsum(equation, *terms)
            place = power % 2
            found[place] = (_minus if power > 1 else _plus)(found[place], term)
    return paired(*found, *given)


def _reduced(name: str) -> Callable[..., ComplexTensor]:
    def reduce(input: ComplexTensor, *args: Any, **kwargs: Any) -> ComplexTensor:
        if kwargs.get("dtype") is not None:
            raise refused(f"{name} of complex numbers in another dtype")
        return each(lambda part: getattr(sg, name)(part, *args, **kwargs), input)

    return reduce


for _name in (
    "sum", "mean", "cumsum", "gather", "index_select", "flip", "roll", "repeat_interleave", "tril",
    "triu",
):  # fmt: skip
    operation(_name)(_reduced(_name))


@operation("norm", "linalg_vector_norm")
def _norm(
    input: ComplexTensor, p: Any = 2, dim: Any = None, keepdim: bool = False, *, ord: Any = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    if dtype is not None:
        raise refused("the norm of complex numbers in another dtype")
    order = p if ord is None else ord
    if order not in (2, "fro", None):
        return sg.norm(_abs(input), order, dim, keepdim)
    if dim is None:
        dim = tuple(range(input.ndim))
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    own = [one + input.ndim if one < 0 else one for one in dims]
    found = sg.norm(input.pairs, 2, (*own, input.ndim), keepdim)
    return found.squeeze(-1) if keepdim else found


@operation("linalg_norm", "linalg_matrix_norm")
def _linalg_norm(
    input: ComplexTensor, ord: Any = None, dim: Any = None, keepdim: bool = False
) -> Any:
    axes = input.ndim if dim is None else len(dim) if isinstance(dim, (tuple, list)) else 1
    if ord not in (None, "fro") and axes != 1:
        raise refused("a norm of complex matrices that is not that of their entries")
    return _norm(input, ord, dim, keepdim)


def _joined(name: str, *names: str) -> None:
    def join(tensors: Any, *args: Any, **kwargs: Any) -> ComplexTensor:
        split = [parts(as_complex(one)) for one in tensors]
        made = (getattr(sg, name)(list(one), *args, **kwargs) for one in zip(*split, strict=True))
        return paired(*made, *tensors)

    operation(name, *names)(join)


_joined("cat", "concat", "concatenate")
_joined("stack")


@operation("where")
def _where(condition: Any, input: Any, other: Any) -> ComplexTensor:
    pairs = zip(parts(input), parts(other), strict=True)
    given = ([0.0 if one is None else one for one in pair] for pair in pairs)
    return paired(*(sg.where(condition, *pair) for pair in given), condition, input, other)


@operation("masked_fill")
def _masked_fill(input: Any, mask: Any, value: Any) -> ComplexTensor:
    return _where(mask, value, input)


@operation("pad")
def _pad(input: ComplexTensor, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    if value:
        raise refused("complex numbers are padded with another number than 0")
    return each(lambda part: sg.pad(part, pad, mode), input)
