"""Arithmetic on the numbers of the text: is what floating point makes of it what the reals do?

In: each operation on floats that the C evaluates.  Out: nothing; ``NotShown`` for one on constants
alone that overflows, underflows or loses what it adds, and that the graph does not have.

A constant is a pair: what it is over the reals, and what is stored.  Products and quotients round
it, sums have to be exact, and what a comparison tells has to be so of both.  A choice between
constants is each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product

from symgrad.ir.expr import Call, Expr, IntValue, Literal, rebuild
from symgrad.validate.rounding import least_normal, nearest
from symgrad.validate.symbolic.memory import NotShown
from symgrad.validate.symbolic.parts import parts
from symgrad.validate.symbolic.values import Values

Pair = tuple[Fraction, Fraction]
"""A number over the reals, and as it is stored."""
Pairs = tuple[Pair, ...]
"""All that a constant may be; none where it is no number."""
_MOST = 16


class Constants:
    """The operations on constants of one way through a kernel."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._known: dict[Expr, Pairs | None] = {}
        self._doubtful: dict[Call, int] = {}

    def computed(self, made: Expr, line: int) -> None:
        """The C evaluates this."""
        if isinstance(made, Call) and self._pairs(made) == ():
            self._doubtful.setdefault(made, line)

    def settle(self, wanted: Callable[[], Iterable[Expr]], spelled: Callable[[Expr], Expr]) -> None:
        """Raises NotShown for what is in doubt, and in none of these.

        ``spelled``: what has the same value to the bit, in one spelling.
        """
        if not self._doubtful:
            return
        roots = [spelled(self._rounded(one)) for one in wanted()]
        had = set(parts(self._values, roots))
        for one, line in self._doubtful.items():
            if spelled(self._rounded(one)) not in had:
                raise NotShown(
                    f"{one.function} of constants may be another number in floating point, and the "
                    "graph does not have it", line,
                )  # fmt: skip

    def _rounded(self, root: Expr) -> Expr:
        """With its numbers as they are stored."""
        pool = self._values.pool

        def rule(expr: Expr, _: Mapping[Expr, Expr]) -> Expr | None:
            if isinstance(expr, Literal) and expr.dtype.is_float:
                return pool.literal(nearest(float(expr.value), expr.dtype.c), expr.dtype)
            return None

        return rebuild(pool, [root], rule)[root]

    def _pairs(self, expr: Expr) -> Pairs | None:
        """What a constant may be; None for all else; nothing where it is in doubt."""
        if expr not in self._known:
            self._known[expr] = self._made(expr)
        return self._known[expr]

    def _made(self, expr: Expr) -> Pairs | None:
        if isinstance(expr, Literal):
            if not math.isfinite(expr.value):
                return None
            number = float(expr.value) if expr.dtype.is_float else expr.value
            exact = Fraction(nearest(number, expr.dtype.c) if expr.dtype.is_float else number)
            return ((exact, exact),)
        if isinstance(expr, IntValue):
            whole = expr.value.constant
            return None if whole is None else ((Fraction(whole), Fraction(whole)),)
        if not isinstance(expr, Call):
            return None
        operands = expr.operands[1:] if expr.function == "where" else expr.operands
        given = [self._pairs(one) for one in operands]
        known = [one for one in given if one is not None]
        if len(known) < len(given):
            return None
        ways = list(product(*known))
        if expr.function == "where":
            return tuple(dict.fromkeys(pair for pairs in known for pair in pairs))
        found = [_result(expr, way) for way in ways] if 0 < len(ways) <= _MOST else []
        certain = [one for one in found if one is not None]
        return tuple(dict.fromkeys(certain)) if len(certain) == len(found) else ()


def _result(call: Call, operands: Sequence[Pair]) -> Pair | None:
    """What an operation makes of constants; None where it is in doubt."""
    exact, stored = ([one[side] for one in operands] for side in (0, 1))
    function = call.function
    if function in _TELL:
        truth = _TELL[function](*exact)
        return (Fraction(truth),) * 2 if truth == _TELL[function](*stored) else None
    if function in _KEEP:
        return _KEEP[function](*exact), _KEEP[function](*stored)
    if function in _STEPS:
        (one,), (other,) = exact, stored
        whole = Fraction(_STEPS[function](one))
        return (whole, whole) if one == other else None
    if function == "cast" and not call.dtype.is_float:
        (one,), (other,) = exact, stored
        whole = Fraction(math.trunc(one))
        return (whole, whole) if one == other and abs(whole) < 2**63 else None
    if function not in _ROUND or (function == "div" and 0 in (exact[1], stored[1])):
        return None
    real, made = _ROUND[function](*exact), _ROUND[function](*stored)
    return _rounded(real, made, call.dtype.c, sums=function in ("add", "sub"))


def _rounded(real: Fraction, made: Fraction, ctype: str, *, sums: bool) -> Pair | None:
    found = nearest(made, ctype)
    small = made and abs(made) < least_normal(ctype)
    if not math.isfinite(found) or small or (sums and not real == made == Fraction(found)):
        return None
    return real, Fraction(found)


_ROUND: dict[str, Callable[..., Fraction]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y, "cast": lambda x: x,
}  # fmt: skip
_KEEP: dict[str, Callable[..., Fraction]] = {
    "neg": lambda x: -x, "abs": abs, "maximum": max, "minimum": min,
}  # fmt: skip
_TELL: dict[str, Callable[..., bool]] = {
    "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
}  # fmt: skip
_STEPS: dict[str, Callable[[Fraction], int]] = {
    "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "rint": round,
}  # fmt: skip
