"""Rounding to integers, and division with a remainder.

In: nothing.  Out: records.

``mod`` has the sign of the divisor, as Python's ``%`` and ``torch.remainder``; ``fmod`` that of
the dividend.  Among integers, whatever is divided by zero gives 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.graph import Node
from symgrad.ops.arithmetic import number
from symgrad.ops.record import Array, Constraint, Function, Helper, Kink, Latex, apply, elementwise


def _trunc(sp: Any, x: Any) -> Any:
    return sp.sign(x) * sp.floor(sp.Abs(x))


def _half_even(sp: Any, x: Any) -> Any:
    low = sp.floor(x)
    rest = x - low
    half = sp.Rational(1, 2)
    even = 2 * sp.floor((low + 1) / 2)
    return sp.Piecewise((low, rest < half), (low + 1, rest > half), (even, True))


_JUMP = "it jumps; the derivative is taken as 0"
_AT_INTEGERS = (Kink(lambda sp, x: x - sp.floor(x), _JUMP),)
_AT_HALVES = (Kink(lambda sp, x: x - sp.floor(x) - sp.Rational(1, 2), _JUMP),)

elementwise(
    "floor", numpy=np.floor, sympy=lambda sp, x: sp.floor(x), c=Function("floor"),
    kinks=_AT_INTEGERS, vjp=None, latex=Latex(r"\left\lfloor {0} \right\rfloor", "atom"),
)  # fmt: skip
elementwise(
    "ceil", numpy=np.ceil, sympy=lambda sp, x: sp.ceiling(x), c=Function("ceil"),
    kinks=_AT_INTEGERS, vjp=None, latex=Latex(r"\left\lceil {0} \right\rceil", "atom"),
)  # fmt: skip
elementwise(
    "trunc", numpy=np.trunc, sympy=_trunc, c=Function("trunc"), kinks=_AT_INTEGERS, vjp=None
)
elementwise(
    "round", numpy=np.rint, sympy=_half_even, c=Function("rint"), kinks=_AT_HALVES, vjp=None
)


# -- division with a remainder

_FLOORDIV = Helper(
    "floordiv",
    """\
static double symgrad_floordiv(double x, double y)
{
    if (y == 0.0)
        return x / y;
    double rest = fmod(x, y);
    double quotient = (x - rest) / y;
    if (rest != 0.0 && (y < 0.0) != (rest < 0.0))
        quotient -= 1.0;
    if (quotient == 0.0)
        return copysign(0.0, x / y);
    double whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1.0 : whole;
}
""",
)
_FLOORDIV_INTEGER = Helper(
    "floordiv_i64",
    """\
static int64_t symgrad_floordiv_i64(int64_t x, int64_t y)
{
    if (y == 0)
        return 0;
    if (y == -1)
        return (int64_t)(0u - (uint64_t)x);
    int64_t quotient = x / y;
    return x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient;
}
""",
    types=("int64_t",),
)
_MOD = Helper(
    "mod",
    """\
static double symgrad_mod(double x, double y)
{
    double rest = fmod(x, y);
    return rest != 0.0 && (y < 0.0) != (rest < 0.0) ? rest + y : rest;
}
""",
)
_MOD_INTEGER = Helper(
    "mod_i64",
    """\
static int64_t symgrad_mod_i64(int64_t x, int64_t y)
{
    if (y == 0 || y == -1)
        return 0;
    int64_t rest = x % y;
    return rest != 0 && (y < 0) != (rest < 0) ? rest + y : rest;
}
""",
    types=("int64_t",),
)
_FMOD_INTEGER = Helper(
    "fmod_i64",
    """\
static int64_t symgrad_fmod_i64(int64_t x, int64_t y)
{
    return y == 0 || y == -1 ? 0 : x % y;
}
""",
    types=("int64_t",),
)
_MODULO = Latex(r"{0:power} \bmod {1:power}", "sum")
_DIVISOR = (Constraint("nonzero", lambda sp, x, y: y),)
_AT_MULTIPLES = (
    Kink(lambda sp, x, y: x / y - sp.floor(x / y), "it jumps; the slope beside it is used"),
)


def _mod_vjp(g: Node, out: Node, x: Node, y: Node) -> tuple[Node, Node]:
    return g, -(g * apply("floordiv", x, y))


def _fmod_vjp(g: Node, out: Node, x: Node, y: Node) -> tuple[Node, Node]:
    return g, -(g * apply("trunc", x / y))


def _remainder(x: Array, y: Array) -> Array:
    """NumPy's remainder, but with the sign of x for a zero, as C and torch have it."""
    rest = np.fmod(x, y)
    wrong = (rest != 0) & ((y < 0) != (rest < 0))
    return np.where(wrong, rest + y, rest)


elementwise(
    "floordiv", numpy=np.floor_divide, sympy=lambda sp, x, y: sp.floor(x / y), takes=number,
    c=_FLOORDIV, c_integer=_FLOORDIV_INTEGER, cost=10.0, domain=_DIVISOR, kinks=_AT_MULTIPLES,
    vjp=None, code="{0} // {1}",
    latex=Latex(r"\left\lfloor \frac{{{0}}}{{{1}}} \right\rfloor", "atom"),
)  # fmt: skip
elementwise(
    "mod", numpy=_remainder, sympy=lambda sp, x, y: x - y * sp.floor(x / y), takes=number, c=_MOD,
    c_integer=_MOD_INTEGER, cost=10.0, domain=_DIVISOR, kinks=_AT_MULTIPLES, vjp=_mod_vjp,
    program="np.mod({0}, {1})", code="{0} % {1}", latex=_MODULO,
)  # fmt: skip
elementwise(
    "fmod", numpy=np.fmod, sympy=lambda sp, x, y: x - y * _trunc(sp, x / y), takes=number,
    c=Function("fmod"), c_integer=_FMOD_INTEGER, cost=10.0, domain=_DIVISOR, kinks=_AT_MULTIPLES,
    vjp=_fmod_vjp, latex=_MODULO,
)  # fmt: skip
