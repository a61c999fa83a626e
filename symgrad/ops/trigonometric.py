"""Circular and hyperbolic functions and their inverses.

In: nothing.  Out: records.
"""

from __future__ import annotations

import numpy as np

from symgrad.ir.graph import Node
from symgrad.ops.record import (
    Bounds,
    Constraint,
    Function,
    Kink,
    apply,
    choose,
    compare,
    elementwise,
)

_INSIDE = (Constraint("positive", lambda sp, x: 1 - x**2),)
_WITHIN = (
    Constraint("nonnegative", lambda sp, x: 1 + x),
    Constraint("nonnegative", lambda sp, x: 1 - x),
)
_BETWEEN = (
    Constraint("positive", lambda sp, x: 1 + x),
    Constraint("positive", lambda sp, x: 1 - x),
)


def _root(x: Node) -> Node:
    return apply("sqrt", x)


def _square(x: Node) -> Node:
    return apply("square", x)


elementwise(
    "sin", numpy=np.sin, sympy=lambda sp, x: sp.sin(x), c=Function("sin", vector=True), cost=0.32,
    vjp=lambda g, y, x: (g * apply("cos", x),), latex=r"\sin", bounds=Bounds(-1, 1),
)  # fmt: skip
elementwise(
    "cos", numpy=np.cos, sympy=lambda sp, x: sp.cos(x), c=Function("cos", vector=True), cost=0.32,
    vjp=lambda g, y, x: (-(g * apply("sin", x)),), latex=r"\cos", bounds=Bounds(-1, 1),
)  # fmt: skip
elementwise(
    "tan", numpy=np.tan, sympy=lambda sp, x: sp.tan(x), c=Function("tan", vector=True), cost=0.60,
    domain=(Constraint("nonzero", lambda sp, x: sp.cos(x)),),
    vjp=lambda g, y, x: (g * (_square(y) + 1.0),), latex=r"\tan",
)  # fmt: skip
elementwise(
    "asin", numpy=np.arcsin, sympy=lambda sp, x: sp.asin(x), c=Function("asin", vector=True),
    cost=0.50, domain=_INSIDE, defined=_WITHIN, latex=r"\arcsin",
    vjp=lambda g, y, x: (g / _root(1.0 - _square(x)),), growing=True,
)  # fmt: skip
elementwise(
    "acos", numpy=np.arccos, sympy=lambda sp, x: sp.acos(x), c=Function("acos", vector=True),
    cost=0.50, domain=_INSIDE, defined=_WITHIN, latex=r"\arccos",
    vjp=lambda g, y, x: (-(g / _root(1.0 - _square(x))),),
)  # fmt: skip
elementwise(
    "atan", numpy=np.arctan, sympy=lambda sp, x: sp.atan(x), c=Function("atan", vector=True),
    cost=0.50, vjp=lambda g, y, x: (g / (_square(x) + 1.0),), latex=r"\arctan",
    bounds=Bounds(-2, 2, open=True), growing=True,
)  # fmt: skip


def _atan2_vjp(g: Node, out: Node, y: Node, x: Node) -> tuple[Node, Node]:
    square = _square(x) + _square(y)
    scaled = choose(compare("eq", square, 0.0), 0.0, g / square)
    return scaled * x, -(scaled * y)


elementwise(
    "atan2", numpy=np.arctan2, sympy=lambda sp, y, x: sp.atan2(y, x),
    c=Function("atan2", vector=True), cost=0.80,
    domain=(Constraint("positive", lambda sp, y, x: x**2 + y**2),), defined=(),
    kinks=(
        Kink(lambda sp, y, x: sp.Abs(y) + sp.Max(x, 0), "it jumps by 2π; at 0 its slope is 0"),
    ),
    vjp=_atan2_vjp,
)  # fmt: skip
elementwise(
    "sinh", numpy=np.sinh, sympy=lambda sp, x: sp.sinh(x), c=Function("sinh", vector=True),
    cost=0.60, vjp=lambda g, y, x: (g * apply("cosh", x),), latex=r"\sinh", growing=True,
)  # fmt: skip
elementwise(
    "cosh", numpy=np.cosh, sympy=lambda sp, x: sp.cosh(x), c=Function("cosh", vector=True),
    cost=0.60, vjp=lambda g, y, x: (g * apply("sinh", x),), latex=r"\cosh", bounds=Bounds(1, None),
)  # fmt: skip
elementwise(
    "tanh", numpy=np.tanh, sympy=lambda sp, x: sp.tanh(x), c=Function("tanh", vector=True),
    cost=0.44, vjp=lambda g, y, x: (g * (1.0 - _square(y)),), latex=r"\tanh",
    bounds=Bounds(-1, 1, open=True), growing=True,
)  # fmt: skip
elementwise(
    "asinh", numpy=np.arcsinh, sympy=lambda sp, x: sp.asinh(x), c=Function("asinh", vector=True),
    cost=0.70, vjp=lambda g, y, x: (g / _root(_square(x) + 1.0),), growing=True,
)  # fmt: skip
elementwise(
    "acosh", numpy=np.arccosh, sympy=lambda sp, x: sp.acosh(x), c=Function("acosh", vector=True),
    cost=0.70, domain=(Constraint("positive", lambda sp, x: x - 1),),
    defined=(Constraint("nonnegative", lambda sp, x: x - 1),),
    vjp=lambda g, y, x: (g / _root(_square(x) - 1.0),), growing=True,
)  # fmt: skip
elementwise(
    "atanh", numpy=np.arctanh, sympy=lambda sp, x: sp.atanh(x), c=Function("atanh", vector=True),
    cost=0.70, domain=_INSIDE, defined=_BETWEEN, vjp=lambda g, y, x: (g / (1.0 - _square(x)),),
    growing=True,
)  # fmt: skip
