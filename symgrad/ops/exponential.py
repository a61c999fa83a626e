"""Exponentials, logarithms, and the activations made of them.

In: nothing.  Out: records.
"""

from __future__ import annotations

import math

import numpy as np

from symgrad.ir.graph import Node
from symgrad.ops.exponential_c import EXP, SIGMOID, SILU
from symgrad.ops.record import (
    Bounds,
    Constraint,
    Function,
    Helper,
    Latex,
    Template,
    apply,
    elementwise,
)

LN_2 = math.log(2)
LN_10 = math.log(10)

_POSITIVE = (Constraint("positive", lambda sp, x: x),)

elementwise(
    "exp", numpy=np.exp, sympy=lambda sp, x: sp.exp(x), cost=0.35,
    c=Helper("exp", EXP, types=("double", "float"), shared=True),
    vjp=lambda g, y, x: (g * y,), latex="e^{{{0}}}", bounds=Bounds(0, None, open=True),
    growing=True,
)  # fmt: skip
elementwise(
    "expm1", numpy=np.expm1, sympy=lambda sp, x: sp.exp(x) - 1, c=Function("expm1", vector=True),
    cost=0.45, vjp=lambda g, y, x: (g * (y + 1.0),), latex=Latex("e^{{{0}}} - 1", "sum"),
    bounds=Bounds(-1, None, open=True), growing=True,
)  # fmt: skip
elementwise(
    "exp2", numpy=np.exp2, sympy=lambda sp, x: 2**x, c=Function("exp2", vector=True), cost=0.35,
    vjp=lambda g, y, x: (g * (y * LN_2),), latex="2^{{{0}}}",
    bounds=Bounds(0, None, open=True), growing=True,
)  # fmt: skip
elementwise(
    "log", numpy=np.log, sympy=lambda sp, x: sp.log(x), c=Function("log", vector=True), cost=0.35,
    domain=_POSITIVE, vjp=lambda g, y, x: (g / x,), latex=r"\log", growing=True,
)  # fmt: skip
elementwise(
    "log1p", numpy=np.log1p, sympy=lambda sp, x: sp.log(1 + x), c=Function("log1p", vector=True),
    cost=0.45, domain=(Constraint("positive", lambda sp, x: 1 + x),),
    vjp=lambda g, y, x: (g / (x + 1.0),), latex=r"\log\left(1 + {0}\right)", growing=True,
)  # fmt: skip
elementwise(
    "log2", numpy=np.log2, sympy=lambda sp, x: sp.log(x) / sp.log(2),
    c=Function("log2", vector=True), cost=0.35, domain=_POSITIVE,
    vjp=lambda g, y, x: (g / (x * LN_2),), latex=r"\log_{2}", growing=True,
)  # fmt: skip
elementwise(
    "log10", numpy=np.log10, sympy=lambda sp, x: sp.log(x) / sp.log(10),
    c=Function("log10", vector=True), cost=0.40, domain=_POSITIVE,
    vjp=lambda g, y, x: (g / (x * LN_10),), latex=r"\log_{10}", growing=True,
)  # fmt: skip


def _silu_vjp(g: Node, y: Node, x: Node) -> tuple[Node]:
    s = apply("sigmoid", x)
    return (g * (s * (x * (1.0 - s) + 1.0)),)


elementwise(
    "sigmoid", numpy="1 / (1 + np.exp(-{0}))", sympy=lambda sp, x: 1 / (1 + sp.exp(-x)),
    c=Helper("sigmoid", SIGMOID, types=("double", "float"), shared=True,
             formula=Template("{lit:1} / ({lit:1} + symgrad_exp{f}(-{0}))")),
    cost=0.47,
    vjp=lambda g, y, x: (g * (y * (1.0 - y)),), latex=r"\sigma",
    bounds=Bounds(0, 1, open=True), growing=True,
)  # fmt: skip
elementwise(
    "silu", code="{sg}.silu({0})", numpy="{0} / (1 + np.exp(-{0}))",
    sympy=lambda sp, x: x / (1 + sp.exp(-x)),
    c=Helper("silu", SILU, types=("double", "float"), shared=True,
             formula=Template("{0} / ({lit:1} + symgrad_exp{f}(-{0}))")),
    cost=0.49, vjp=_silu_vjp,
)  # fmt: skip
elementwise(
    "softplus", code="{sg}.softplus({0})", numpy="np.logaddexp(0, {0})",
    sympy=lambda sp, x: sp.log(1 + sp.exp(x)),
    c=Template(
        "({0} < {lit:0} ? {lit:0} : {0}) + log1p{f}(symgrad_exp{f}(-fabs{f}({0})))", ("log1p",)
    ),
    cost=0.85, vjp=lambda g, y, x: (g * apply("sigmoid", x),),
    bounds=Bounds(0, None, open=True), growing=True,
)  # fmt: skip
elementwise(
    "log_sigmoid", code="{sg}.logsigmoid({0})", numpy="-np.logaddexp(0, -{0})",
    sympy=lambda sp, x: -sp.log(1 + sp.exp(-x)),
    c=Template(
        "({0} > {lit:0} ? {lit:0} : {0}) - log1p{f}(symgrad_exp{f}(-fabs{f}({0})))", ("log1p",)
    ),
    cost=0.85, vjp=lambda g, y, x: (g * apply("sigmoid", -x),),
    bounds=Bounds(None, 0, open=True), growing=True,
)  # fmt: skip
elementwise(
    "logaddexp", numpy=np.logaddexp, sympy=lambda sp, x, y: sp.log(sp.exp(x) + sp.exp(y)),
    c=Template(
        "({0} < {1} ? {1} : {0})"
        " + log1p{f}(symgrad_exp{f}({0} == {1} ? {lit:0} : -fabs{f}({0} - {1})))", ("log1p",)
    ),
    cost=0.90, vjp=lambda g, z, x, y: (g * apply("sigmoid", x - y), g * apply("sigmoid", y - x)),
)  # fmt: skip
