"""Elementwise arithmetic: sums, products, powers, magnitudes, the greater and the lesser.

In: nothing.  Out: records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.ir.dtype import DType, bool_
from symgrad.ir.graph import Node
from symgrad.ops.record import (
    Array,
    Bounds,
    Constraint,
    Function,
    Infix,
    Kink,
    Latex,
    Template,
    apply,
    choose,
    compare,
    elementwise,
)


def number(dtype: DType) -> bool:
    """Floats and integers: what arithmetic takes."""
    return dtype != bool_


elementwise(
    "add", numpy=np.add, sympy=lambda sp, x, y: x + y, c=Infix("+"), takes=number,
    program="{0} + {1}", code="{0} + {1}", latex=Latex("{0:sum} + {1:sum}", "sum"),
    vjp=lambda g, out, x, y: (g, g),
)  # fmt: skip
elementwise(
    "sub", numpy=np.subtract, sympy=lambda sp, x, y: x - y, c=Infix("-"), takes=number,
    program="{0} - {1}", code="{0} - {1}", vjp=lambda g, out, x, y: (g, -g),
    latex=Latex("{0:sum} - {1:big}", "sum"),
)  # fmt: skip
elementwise(
    "mul", numpy=np.multiply, sympy=lambda sp, x, y: x * y, c=Infix("*"), takes=number,
    program="{0} * {1}", code="{0} * {1}", latex=Latex(r"{0:product} \, {1:product}", "product"),
    vjp=lambda g, out, x, y: (g * y, g * x),
)  # fmt: skip
elementwise(
    "div", numpy=np.divide, sympy=lambda sp, x, y: x / y, c=Infix("/"), cost=0.10,
    program="{0} / {1}", code="{0} / {1}", domain=(Constraint("nonzero", lambda sp, x, y: y),),
    vjp=lambda g, out, x, y: (g / y, -(g / y * out)), latex=r"\frac{{{0}}}{{{1}}}",
)  # fmt: skip
elementwise(
    "neg", numpy=np.negative, sympy=lambda sp, x: -x, c=Template("-{0}"), takes=number,
    program="-{0}", code="-{0}", vjp=lambda g, out, x: (-g,), latex=Latex("-{0:product}", "sum"),
)  # fmt: skip
elementwise(
    "reciprocal", numpy=np.reciprocal, sympy=lambda sp, x: 1 / x, c=Template("{lit:1} / {0}"),
    program="1 / {0}", cost=0.10, domain=(Constraint("nonzero", lambda sp, x: x),),
    vjp=lambda g, out, x: (-(g * out * out),), latex=r"\frac{{1}}{{{0}}}",
)  # fmt: skip
elementwise(
    "square", numpy=np.square, sympy=lambda sp, x: x**2, c=Template("{0} * {0}"), takes=number,
    vjp=lambda g, out, x: (g * (x * 2.0),), latex="{0:atom}^{{2}}", bounds=Bounds(0, None),
)  # fmt: skip
elementwise(
    "sqrt", numpy=np.sqrt, sympy=lambda sp, x: sp.sqrt(x), c=Function("sqrt"), cost=0.15,
    domain=(Constraint("nonnegative", lambda sp, x: x),),
    kinks=(Kink(lambda sp, x: x, "the slope is infinite"),),
    vjp=lambda g, out, x: (g / (out * 2.0),), latex=r"\sqrt{{{0}}}", growing=True,
)  # fmt: skip
elementwise(
    "root", numpy=np.sqrt, sympy=lambda sp, x: sp.sqrt(x), c=Function("sqrt"), cost=0.15,
    code="{0}.sqrt()",
    domain=(Constraint("nonnegative", lambda sp, x: x),),
    kinks=(Kink(lambda sp, x: x, "the derivative is taken as 0"),),
    vjp=lambda g, out, x: (choose(compare("eq", out, 0.0), 0.0, g / (out * 2.0)),),
    latex=r"\sqrt{{{0}}}", growing=True,
)  # fmt: skip  # the square root of a sum of squares: a norm, a deviation
elementwise(
    "hypot", numpy=np.hypot, sympy=lambda sp, x, y: sp.sqrt(x**2 + y**2),
    c=Function("hypot", vector=True), cost=0.50,
    kinks=(Kink(lambda sp, x, y: x**2 + y**2, "there is no derivative"),),
    vjp=lambda g, out, x, y: (g * (x / out), g * (y / out)),
)  # fmt: skip
elementwise(
    "rsqrt", numpy="1 / np.sqrt({0})", sympy=lambda sp, x: 1 / sp.sqrt(x),
    c=Template("{lit:1} / sqrt{f}({0})"), cost=0.25,
    domain=(Constraint("positive", lambda sp, x: x),),
    vjp=lambda g, out, x: (g * -0.5 * (out * out * out),), latex=r"\frac{{1}}{{\sqrt{{{0}}}}}",
)  # fmt: skip


# -- pow: at x = 0 the cotangents are torch's (0^0 is 1, and its derivatives are 0)


def _pow_domain(sp: Any, x: Any, y: Any) -> Any:
    """Positive where ``x**y`` is defined and smooth: everywhere for an integer y >= 0."""
    if not (y.is_number and y == int(y)):
        return x
    return sp.Integer(1) if y >= 0 else x**2


def _base_of(sign: int, *, whole: bool) -> Callable[[Any, Any, Any], Any]:
    """The base where the exponent is a number of this sign, whole or not; elsewhere 1."""

    def base(sp: Any, x: Any, y: Any) -> Any:
        fits = y.is_number and (y >= 0 if sign > 0 else y < 0) and (y == int(y)) == whole
        return x if fits else sp.Integer(1)

    return base


_POW_DEFINED = (
    Constraint("positive", lambda sp, x, y: sp.Integer(1) if y.is_number else x),
    Constraint("positive", _base_of(-1, whole=False)),
    Constraint("nonnegative", _base_of(1, whole=False)),
    Constraint("nonzero", _base_of(-1, whole=True)),
)


def _pow(x: Array, y: Array) -> Array:
    """NumPy's power without its shortcut for a single exponent, sqrt for 0.5: wrong at -inf."""
    value: Array = np.power(np.atleast_1d(x), np.ascontiguousarray(y)).reshape(x.shape)
    return value


def _pow_vjp(g: Node, out: Node, x: Node, y: Node) -> tuple[Node, Node]:
    constant = compare("eq", y, 0.0)  # no power of this is negative: the second derivative is 0 too
    by_base = choose(constant, 0.0, g * (y * apply("pow", x, choose(constant, 1.0, y) - 1.0)))
    flat = apply("logical_and", compare("eq", x, 0.0), compare("ge", y, 0.0))
    return by_base, choose(flat, 0.0, g * (out * apply("log", x)))


elementwise(
    "pow", numpy=_pow, sympy=lambda sp, x, y: x**y, c=Function("pow", vector=True), cost=0.90,
    domain=(Constraint("positive", _pow_domain),), defined=_POW_DEFINED, vjp=_pow_vjp,
    program="{0} ** {1}", code="{0}**{1}", latex="{0:atom}^{{{1}}}",
)  # fmt: skip


# -- piecewise linear: NaN goes through; ties of maximum and minimum share the cotangent


def _share(relation: str, g: Node, x: Node, y: Node) -> Node:
    """The cotangent of ``x`` where it is chosen over ``y``: all, half at a tie, none."""
    return choose(compare("eq", x, y), g * 0.5, choose(compare(relation, x, y), 0.0, g))


def _sign(x: Array) -> Array:
    return np.subtract(x > 0, x < 0, dtype=x.dtype)


elementwise(
    "abs", numpy=np.abs, sympy=lambda sp, x: sp.Abs(x), c=Function("fabs"), takes=number,
    program="np.abs({0})", c_integer=Template("{0} < 0 ? -{0} : {0}"),
    kinks=(Kink(lambda sp, x: x, "the derivative is taken as 0"),),
    vjp=lambda g, out, x: (g * apply("sign", x),), latex=Latex(r"\left|{0}\right|", "atom"),
    bounds=Bounds(0, None),
)  # fmt: skip
elementwise(
    "sign", numpy=_sign, sympy=lambda sp, x: sp.sign(x), takes=number, chooses=True,
    program="np.sign({0})",
    c=Template("{0} > {lit:0} ? {lit:1} : {0} < {lit:0} ? -{lit:1} : {lit:0}"),
    kinks=(Kink(lambda sp, x: x, "it jumps; the derivative is taken as 0"),), vjp=None,
    bounds=Bounds(-1, 1),
)  # fmt: skip


def _unit(y: Node) -> Node:
    """1 with the sign of ``y``."""
    return apply("copysign", y.graph.lift(1.0, y), y)


elementwise(
    "copysign", numpy=np.copysign, c=Function("copysign"), cost=0.03,
    sympy=lambda sp, x, y: sp.Piecewise((sp.Abs(x), y >= 0), (-sp.Abs(x), True)),
    kinks=(
        Kink(lambda sp, x, y: x, "the derivative is taken as 0"),
        Kink(lambda sp, x, y: y, "it jumps; the derivative is taken as 0"),
    ),
    vjp=lambda g, out, x, y: (g * (apply("sign", x) * _unit(y)), None),
)  # fmt: skip
elementwise(
    "maximum", numpy=np.maximum, sympy=lambda sp, x, y: sp.Max(x, y), takes=number, chooses=True,
    c=Template("{0} > {1} || {0} != {0} ? {0} : {1}"), c_integer=Template("{0} > {1} ? {0} : {1}"),
    kinks=(Kink(lambda sp, x, y: x - y, "each operand gets half of the cotangent"),),
    vjp=lambda g, out, x, y: (_share("lt", g, x, y), _share("lt", g, y, x)), latex=r"\max",
)  # fmt: skip
elementwise(
    "minimum", numpy=np.minimum, sympy=lambda sp, x, y: sp.Min(x, y), takes=number, chooses=True,
    c=Template("{0} < {1} || {0} != {0} ? {0} : {1}"), c_integer=Template("{0} < {1} ? {0} : {1}"),
    kinks=(Kink(lambda sp, x, y: x - y, "each operand gets half of the cotangent"),),
    vjp=lambda g, out, x, y: (_share("gt", g, x, y), _share("gt", g, y, x)), latex=r"\min",
)  # fmt: skip
elementwise(
    "relu", numpy="np.maximum({0}, 0)", sympy=lambda sp, x: sp.Max(x, 0), takes=number,
    chooses=True, c=Template("{0} < {lit:0} ? {lit:0} : {0}"),
    kinks=(Kink(lambda sp, x: x, "the derivative is taken as 0"),),
    vjp=lambda g, out, x: (choose(compare("le", out, 0.0), 0.0, g),),
    latex=r"\max\left(0, {0}\right)",
)  # fmt: skip


# -- shift: the number itself, by which a formula is shifted to avoid overflow without changing its
# value (softmax).  So nothing flows back; the proof does not rely on that: to it a shift is ``x``.

elementwise(
    "shift", numpy=np.positive, sympy=lambda sp, x: x, c=Template("{0}"), cost=0.01, vjp=None,
    program="{0}", code="{0}", latex="{0}",
)  # fmt: skip
