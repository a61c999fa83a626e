"""Special functions: the error function and its kin, log-gamma and its derivatives.

In: nothing.  Out: records.

The derivatives end with ``tetragamma``: asking for its derivative raises UnsupportedOpError.
"""

from __future__ import annotations

import math

from symgrad.errors import UnsupportedOpError
from symgrad.ir.graph import Node
from symgrad.ops import special_c, special_numpy, special_programs
from symgrad.ops.erf_c import ERF
from symgrad.ops.record import Bounds, Constraint, Function, Helper, apply, elementwise

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)

_POSITIVE = (Constraint("positive", lambda sp, x: x),)
_NO_POLE = (Constraint("regular", lambda sp, x: x),)


def _bell(x: Node) -> Node:
    return apply("exp", -apply("square", x))


def _tetragamma_vjp(g: Node, y: Node, x: Node) -> tuple[Node]:
    raise UnsupportedOpError(
        "the derivative of tetragamma, the fourth of lgamma, is not in the registry",
        location=y.location,
        hint="lgamma can be differentiated three times",
    )


elementwise(
    "erf", numpy=special_numpy.erf, sympy=lambda sp, x: sp.erf(x), c=Function("erf", vector=True),
    c_single=Helper("erf", ERF, types=("float",), shared=True),
    program="np.vectorize(math.erf, otypes=[float])({0})",
    cost=0.64, vjp=lambda g, y, x: (g * (_bell(x) * TWO_OVER_ROOT_PI),),
    bounds=Bounds(-1, 1, open=True), growing=True,
)  # fmt: skip
elementwise(
    "erfc", numpy=special_numpy.erfc, sympy=lambda sp, x: sp.erfc(x),
    c=Function("erfc", vector=True), cost=1.20,
    program="np.vectorize(math.erfc, otypes=[float])({0})",
    vjp=lambda g, y, x: (g * (_bell(x) * -TWO_OVER_ROOT_PI),), bounds=Bounds(0, 2, open=True),
)  # fmt: skip
elementwise(
    "erfinv", numpy=special_numpy.erfinv, sympy=lambda sp, x: sp.erfinv(x),
    c=Helper("erfinv", special_c.ERFINV), cost=15.0,
    program="np.vectorize(_erfinv, otypes=[float])({0})", prelude=special_programs.ERFINV,
    domain=(Constraint("positive", lambda sp, x: 1 - x**2),),
    defined=(
        Constraint("positive", lambda sp, x: 1 + x), Constraint("positive", lambda sp, x: 1 - x),
    ),
    vjp=lambda g, y, x: (g * (apply("exp", apply("square", y)) * (1 / TWO_OVER_ROOT_PI)),),
    growing=True,
)  # fmt: skip
elementwise(
    "lgamma", numpy=special_numpy.lgamma, sympy=lambda sp, x: sp.loggamma(x),
    program="np.vectorize(math.lgamma, otypes=[float])({0})", c=Function("lgamma"), cost=15.0,
    domain=_POSITIVE, defined=_NO_POLE, latex=r"\log\Gamma",
    vjp=lambda g, y, x: (g * apply("digamma", x),),
)  # fmt: skip
elementwise(
    "digamma", numpy=special_numpy.digamma, sympy=lambda sp, x: sp.digamma(x),
    c=Helper("digamma", special_c.DIGAMMA), cost=15.0, domain=_POSITIVE, defined=_NO_POLE,
    program="np.vectorize(_digamma, otypes=[float])({0})", prelude=special_programs.DIGAMMA,
    vjp=lambda g, y, x: (g * apply("trigamma", x),), latex=r"\psi",
    growing=True,
)  # fmt: skip
elementwise(
    "trigamma", code="{sg}.polygamma(1, {0})", numpy=special_numpy.trigamma,
    sympy=lambda sp, x: sp.polygamma(1, x), c=Helper("trigamma", special_c.TRIGAMMA), cost=15.0,
    program="np.vectorize(_trigamma, otypes=[float])({0})", prelude=special_programs.TRIGAMMA,
    domain=_POSITIVE, defined=_NO_POLE,
    vjp=lambda g, y, x: (g * apply("tetragamma", x),),
    latex=r"\psi_{1}",
)  # fmt: skip
elementwise(
    "tetragamma", code="{sg}.polygamma(2, {0})", numpy=special_numpy.tetragamma,
    sympy=lambda sp, x: sp.polygamma(2, x), c=Helper("tetragamma", special_c.TETRAGAMMA), cost=15.0,
    domain=_POSITIVE, defined=_NO_POLE, vjp=_tetragamma_vjp, latex=r"\psi_{2}",
    program="np.vectorize(_tetragamma, otypes=[float])({0})", prelude=special_programs.TETRAGAMMA,
    growing=True,
)  # fmt: skip
