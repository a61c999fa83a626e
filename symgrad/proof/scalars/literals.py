"""How a float literal is read: as its shortest decimal, or as the known constant it rounds.

In: a Python number.  Out: a fraction, or a ``Constant``.

0.9 + 0.1 is 1: a literal is the shortest decimal that prints it.  Where a proof fails on that
reading, a decimal that is a known constant rounded (or cut) to at least six digits is read as
that constant, and the reading is printed as a condition with its distance from the literal.
So is what Python's own arithmetic has rounded: 0.1 * 3 is 0.30000000000000004, read as 3/10; and
a number of backward that is a product or a quotient of forward's literals, rounded.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any

import mpmath

from symgrad.ir.graph import Scalar
from symgrad.proof.scalars.tables import CONSTANTS
from symgrad.proof.scalars.terms import Term, decoded, term
from symgrad.proof.scalars.values import number

LEAST_DIGITS = 6
FULL_DIGITS = 16
"""So many digits has a double that is no short decimal."""
SHORT_DIGITS = 10
LARGEST_DENOMINATOR = 1000
CANCELLED = 1.2e-16
"""How far off a difference of numbers up to 1 may be: 1 - 0.999 is 0.0010000000000000009."""
LEAST_DIFFERENCE = 1e-9
"""A literal that is smaller is no difference of numbers of about 1."""
SHORT_FRACTION = 2**20
"""The greatest denominator of a binary fraction that people write in full."""
ULPS = 4
"""How far off, in the last place, a constant may be that was computed in double arithmetic."""


@dataclass(frozen=True)
class Constant:
    """A known constant that a literal rounds; ``error``: how far off the literal is.

    ``text``: how it is written, where it is no constant of the table.
    """

    literal: float
    term: Term
    error: float
    text: str = ""

    @property
    def name(self) -> str:
        """The constant as text, such as ``sqrt(2/pi)``."""
        return self.text or _NAMES[self.term]

    def __str__(self) -> str:
        return f"{self.literal!r} is read as {self.name} (off by {self.error:.1e})"


def exact(value: Scalar) -> Fraction:
    """The shortest decimal that prints as ``value``."""
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


@lru_cache(maxsize=4096)
def recognise(value: Scalar) -> Constant | None:
    """The known constant that ``value`` is a rounding of, at six digits or more; or None."""
    if not isinstance(value, float) or value in (0.0, float("inf"), float("-inf")):
        return None
    if value != value:
        return None
    written = Decimal(repr(abs(value))).normalize()
    digits = len(written.as_tuple().digits)
    if digits < LEAST_DIGITS:
        return None
    for expression, exact_value in _near(float(written)):
        if any(_rounded(exact_value, digits, mode) == written for mode in _ROUNDINGS) or (
            abs(float(exact_value) - float(written)) <= ULPS * math.ulp(float(written))
        ):
            signed = expression if value > 0 else -expression
            error = abs(Decimal(repr(abs(value))) - exact_value)
            _NAMES.setdefault(signed, f"-{_NAMES[expression]}")
            return Constant(value, signed, float(error))
    return _computed(value) if digits >= FULL_DIGITS else None


def is_long(value: Scalar) -> bool:
    """Has a literal so many digits that it may be the rounded result of a computation?"""
    if not isinstance(value, float) or not math.isfinite(value):
        return False
    return len(Decimal(repr(value)).normalize().as_tuple().digits) >= FULL_DIGITS - 1


def slack(value: Scalar) -> Fraction:
    """How far what is meant may lie from a literal of many digits; 0: it is meant as written.

    Half a unit of its last digit; of a double that Python may have computed, what its arithmetic
    may have lost.  Integers and short binary fractions are exact.
    """
    if not isinstance(value, float) or not math.isfinite(value) or _is_short(value):
        return Fraction(0)
    written = Decimal(repr(value)).normalize().as_tuple()
    if len(written.digits) < LEAST_DIGITS:
        return Fraction(0)
    assert isinstance(written.exponent, int)
    found = Fraction(10) ** written.exponent / 2
    if is_long(value):
        found = max(found, Fraction(ULPS * math.ulp(value)))
        if abs(value) > LEAST_DIFFERENCE:
            found = max(found, Fraction(CANCELLED))
    return found


def _is_short(value: float) -> bool:
    """Is it a binary fraction of few bits?"""
    return abs(value) < 2**53 and Fraction(value).denominator <= SHORT_FRACTION


def _computed(value: float) -> Constant | None:
    """The simple fraction that a double is, but for the rounding of Python's arithmetic."""
    with localcontext() as context:
        context.prec = SHORT_DIGITS
        short = Fraction(+Decimal(repr(value)))
    allowed = max(ULPS * math.ulp(value), CANCELLED)
    for fraction in (short, Fraction(value).limit_denominator(LARGEST_DENOMINATOR)):
        error = abs(fraction - exact(value))
        if fraction and error <= allowed:
            found = term(fraction)
            _NAMES.setdefault(found, str(fraction))
            return Constant(value, found, float(error))
    return _multiple(value)


def _multiple(value: float) -> Constant | None:
    """The simple multiple of a known irrational constant that a double is, rounded."""
    written = Decimal(repr(value))
    for known, exact_value in _table():
        if known.number is not None:
            continue
        quotient = Fraction(written / exact_value)
        factor = quotient.limit_denominator(LARGEST_DENOMINATOR)
        error = abs(factor - quotient) * Fraction(exact_value)
        if factor and error <= ULPS * math.ulp(value):
            found = term(factor) * known
            _NAMES.setdefault(found, f"{factor}*{_NAMES[known]}")
            return Constant(value, found, float(error))
    return None


# -- products of literals: 0.1070322243 is 3*0.044715*0.79788456, rounded


def products(known: Iterable[Scalar], others: Iterable[Scalar]) -> dict[float, Constant]:
    """Which of ``others`` are rounded products, quotients and powers of literals ``known``.

    A factor that is a known constant itself stands for that.
    """
    own = {v for v in known if isinstance(v, float) and math.isfinite(v)}
    wanted = [v for v in others if slack(v) and v not in own and recognise(v) is None]
    bases = sorted({abs(v) for v in own} - {0.0, 1.0})[:MOST_BASES]
    if not wanted or not bases:
        return {}
    found: dict[float, Constant] = {}
    for value in wanted:
        made = _product(float(value), tuple(bases))
        if made is not None:
            found[float(value)] = made
    return found


@lru_cache(maxsize=1024)
def _product(value: float, bases: tuple[float, ...]) -> Constant | None:
    written = Decimal(repr(abs(value))).normalize()
    digits = len(written.as_tuple().digits)
    found: list[tuple[int, Constant]] = []
    for exponents, monomial in _monomials(bases):
        near = float(written / monomial)
        for place, factor in enumerate(_FACTORS):
            if abs(near - factor) > NEAR * factor:
                continue
            exactly = monomial * factor.numerator / factor.denominator
            error = abs(written - exactly)
            rounds = any(_rounded(exactly, digits, mode) == written for mode in _ROUNDINGS)
            if rounds or error <= Decimal(ULPS * math.ulp(value)):
                powers = dict(exponents)
                made = _made(value, factor, powers, float(error))
                found.append((place + 2 * sum(map(abs, powers.values())), made))
    return min(found, key=lambda one: one[0])[1] if found else None


def _monomials(bases: tuple[float, ...]) -> Iterator[tuple[tuple[tuple[float, int], ...], Decimal]]:
    """Products of up to three literals and their reciprocals, the shortest first."""
    signed = [(base, sign) for base in bases for sign in (1, -1)]
    for count in range(1, MOST_FACTORS + 1):
        for chosen in combinations_with_replacement(signed, count):
            exponents = Counter[float]()
            for base, sign in chosen:
                exponents[base] += sign
            if sum(map(abs, exponents.values())) < count:
                continue  # a literal and its reciprocal
            with localcontext() as context:
                context.prec = 50
                value = Decimal(1)
                for base, exponent in exponents.items():
                    value *= Decimal(repr(base)) ** exponent
            yield tuple(exponents.items()), value


def _made(
    value: float, factor: Fraction, exponents: Mapping[float, int], error: float
) -> Constant:  # fmt: skip
    found = term(factor)
    above = [str(factor.numerator)] if factor.numerator != 1 else []
    below = [str(factor.denominator)] if factor.denominator != 1 else []
    for base, exponent in exponents.items():
        known = recognise(base)
        found = found * (term(exact(base)) if known is None else known.term) ** exponent
        power = f"{base!r}**{abs(exponent)}" if abs(exponent) > 1 else repr(base)
        (above if exponent > 0 else below).append(power)
    over = "*".join(below)
    text = "*".join(above) or "1"
    text += f"/{over if len(below) == 1 else f'({over})'}" if below else ""
    signed = "-" if value < 0 else ""
    return Constant(value, -found if value < 0 else found, error, signed + text)


MOST_BASES = 6
"""Literals that products are made of."""
MOST_FACTORS = 3
NEAR = 2e-5
"""Relative distance above which no rounding to six digits is looked at."""
_FACTORS = tuple(
    Fraction(above, below)
    for above, below in ((1, 1), (2, 1), (3, 1), (4, 1), (6, 1), (8, 1), (1, 2), (1, 3), (1, 4),
                         (1, 6), (1, 8), (3, 2), (2, 3), (3, 4))
)  # fmt: skip


def precise(value: Scalar, *, recognised: bool, constant: Constant | None = None) -> Any:
    """The number that a literal is read as, at the working precision of mpmath.

    ``constant``: what it is read as, where the table does not say.
    """
    if isinstance(value, float) and (value in (float("inf"), float("-inf")) or value != value):
        return mpmath.mpf(value)
    constant = (recognise(value) or constant) if recognised else None
    if constant is not None:
        return _high_precision(constant.term, mpmath.mp.dps)
    fraction = exact(value)
    return mpmath.mpf(fraction.numerator) / fraction.denominator


@lru_cache(maxsize=1024)
def _high_precision(constant: Term, digits: int) -> Any:
    with mpmath.workdps(digits + 5):
        return number(constant)


_ROUNDINGS = (ROUND_HALF_EVEN, ROUND_DOWN)


def _rounded(value: Decimal, digits: int, mode: str) -> Decimal:
    with localcontext() as context:
        context.prec, context.rounding = digits, mode
        return (+value).normalize()


def _near(value: float) -> Iterator[tuple[Term, Decimal]]:
    for expression, exact_value in _table():
        if abs(float(exact_value) - value) <= 1e-4 * value:
            yield expression, exact_value


_NAMES: dict[Term, str] = {}


@lru_cache(maxsize=1)
def _table() -> tuple[tuple[Term, Decimal], ...]:
    """Known constants, simplest first, with 40 digits."""
    found = []
    for name, code, digits in CONSTANTS:
        known = decoded(code)
        _NAMES[known] = name
        found.append((known, Decimal(digits)))
    return tuple(found)
