"""How a float literal is read: as its shortest decimal, or as the known constant it rounds.

In: a Python number.  Out: a fraction, or a ``Constant``.

0.9 + 0.1 is 1: a literal is the shortest decimal that prints it.  Where a proof fails on that
reading, a decimal of at least five digits may be read as a number that rounds to it, and the
reading is printed as a condition with its distance from the literal.  That number is a known
constant (also cut to at least six digits); or what Python's own arithmetic has rounded: 0.1 * 3
is 0.30000000000000004, read as 3/10; or, of a literal of backward, what the derivative of forward
asks for (``products``, ``Rounding``).  How far it may lie from the literal says ``reach``.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any

import mpmath
import numpy as np

from symgrad.ir.graph import Scalar
from symgrad.proof.scalars.tables import CONSTANTS
from symgrad.proof.scalars.terms import Term, decoded, term
from symgrad.proof.scalars.values import number

LEAST_DIGITS = 5
"""Digits from which on a literal may be rounded; a shorter one is meant as written."""
LEAST_DECIMALS = 2
"""Decimals from which on zeros at the end of a literal are digits that somebody meant."""
CUT_DIGITS = 6
"""Digits from which on a known constant may be cut, too."""
LONG_CUT_DIGITS = 8
"""Digits from which on any number may be cut."""
SINGLE_DIGITS = 9
"""So many digits tell one float32 from the next."""
FULL_SINGLE_DIGITS = 11
"""A decimal of so many digits that is a float32, rounded, is none by chance."""
FULL_DIGITS = 16
"""So many digits has a double that is no short decimal."""
SHORT_DIGITS = 10
LARGEST_DENOMINATOR = 1000
MOST_DECIMALS = 30
MOST_ZEROS = -8
"""How many digits a decimal may have in text, and how small it may be."""
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


LIMITS = frozenset((sys.float_info.max, sys.float_info.min, (2 - 2.0**-23) * 2.0**127, 2.0**-126))
"""The greatest and the least positive numbers of float64 and float32, which round nothing."""


@lru_cache(maxsize=4096)
def recognise(value: Scalar) -> Constant | None:
    """The known constant that ``value`` is a rounding of, at six digits or more; or None."""
    if not isinstance(value, float) or value in (0.0, float("inf"), float("-inf")):
        return None
    if value != value or abs(value) in LIMITS:
        return None
    written = Decimal(repr(abs(value))).normalize()
    digits = len(written.as_tuple().digits)
    if digits < LEAST_DIGITS:
        return None
    near = max(_printed(value), Fraction(ULPS * math.ulp(value)))
    for expression, exact_value in _near(float(written)):
        cut = digits >= CUT_DIGITS and _rounded(exact_value, digits, ROUND_DOWN) == written
        if cut or abs(Fraction(written) - Fraction(exact_value)) <= near:
            signed = expression if value > 0 else -expression
            error = abs(Decimal(repr(abs(value))) - exact_value)
            _NAMES.setdefault(signed, f"-{_NAMES[expression]}")
            return Constant(value, signed, float(error))
    return _computed(value) if digits >= FULL_DIGITS or is_single(value) else None


def is_single(value: Scalar, digits: int = FULL_SINGLE_DIGITS) -> bool:
    """Is a literal of at least so many digits a float32, rounded to these?"""
    if not isinstance(value, float) or not math.isfinite(value) or _is_short(value):
        return False
    written = Decimal(repr(value)).normalize()
    count = len(written.as_tuple().digits)
    return count >= digits and _rounded(Decimal(_single(value)), count, ROUND_HALF_EVEN) == written


def _single(value: float) -> float:
    """The nearest float32; 0 or infinity beyond them."""
    with np.errstate(all="ignore"):
        return float(np.float32(value))


def _single_ulp(value: float) -> Fraction:
    return Fraction(2) ** max(math.frexp(value)[1] - 24, -149)


def is_long(value: Scalar) -> bool:
    """Has a literal so many digits that it may be the rounded result of a computation?"""
    if not isinstance(value, float) or not math.isfinite(value):
        return False
    return len(Decimal(repr(value)).normalize().as_tuple().digits) >= FULL_DIGITS - 1


@lru_cache(maxsize=4096)
def printed_digits(line: str) -> Mapping[float, int]:
    """How many digits the decimals of a line of source have that end in zeros."""
    found: dict[float, int] = {}
    for match in _DECIMAL.finditer(line):
        digits = len((match[1] + match[2]).replace("_", "").lstrip("0"))
        if match[2].endswith("0") and len(match[2]) >= LEAST_DECIMALS and digits >= LEAST_DIGITS:
            value = float(match[0].replace("_", ""))
            found[value] = max(digits, found.get(value, 0))
    return found


_DECIMAL = re.compile(r"(?<![\w.])(\d[\d_]*|)\.(\d[\d_]*)(?:[eE][+-]?\d+)?(?![\w.])")


def reach(value: Scalar, digits: int | None = None) -> Fraction:
    """How far the number that is meant may lie from a literal that is read as it; 0: as written.

    Half a unit of its last digit; of a double in full, what Python's arithmetic may have lost; of
    a float32 in full, half a unit of its last place.  Integers, short binary fractions and
    literals of fewer than ``LEAST_DIGITS`` digits are exact.  ``digits``: how many it has in the
    source, where these end in zeros.
    """
    if not isinstance(value, float) or not math.isfinite(value) or not value:
        return Fraction(0)
    if digits is not None and not is_long(value):
        first = Decimal(repr(value)).normalize().adjusted()
        return Fraction(10) ** (first - digits + 1) / 2
    if _is_short(value):
        return Fraction(0)
    found = _printed(value)
    if found and is_long(value):
        found = max(found, Fraction(ULPS * math.ulp(value)))
        if abs(value) > LEAST_DIFFERENCE:
            found = max(found, Fraction(CANCELLED))
    return found


_LESS = 1 - Fraction(1, 10**6)  # what is cut off is less than a unit: 0.3125 is not 0.3124999999


def outward(value: Scalar, digits: int | None = None) -> Fraction:
    """How much greater in size the number that is meant may be: it may also be cut."""
    found = reach(value, digits)
    if not found or not isinstance(value, float) or is_long(value) or is_single(value):
        return found
    count = digits or len(Decimal(repr(value)).normalize().as_tuple().digits)
    return 2 * found * _LESS if count >= LONG_CUT_DIGITS else found


def slack(value: Scalar, digits: int | None = None, *, own: bool = False) -> Fraction:
    """How far what is meant may lie from a literal before a difference refutes anything.

    ``outward``, and up to the known constant that it is read as; of what may be a float32, what
    arithmetic in float32 may have lost.  ``own``: it is a literal of forward, and so exact if it
    has ``LEAST_DIGITS`` digits only and is no known constant.
    """
    found = outward(value, digits)
    if not found or not isinstance(value, float):
        return found
    known = recognise(value) if digits is None else None
    if own and known is None and reach(value, LEAST_DIGITS) == found:
        return Fraction(0)
    if known is not None:
        found = max(found, Fraction(known.error) * Fraction(11, 10))
    return max(found, ULPS * _single_ulp(value)) if is_single(value, SINGLE_DIGITS) else found


def _printed(value: float) -> Fraction:
    """Half a unit of the last digit of a literal; 0 where it has too few."""
    written = Decimal(repr(value)).normalize().as_tuple()
    if len(written.digits) < LEAST_DIGITS:
        return Fraction(0)
    assert isinstance(written.exponent, int)
    unit = Fraction(10) ** written.exponent
    return (unit + _single_ulp(value)) / 2 if is_single(value) else unit / 2


def _is_short(value: float) -> bool:
    """Is it a binary fraction of few bits?"""
    return abs(value) < 2**53 and Fraction(value).denominator <= SHORT_FRACTION


def _computed(value: float) -> Constant | None:
    """The simple fraction that a double is, but for the rounding of Python's arithmetic."""
    simple = Fraction(value).limit_denominator(LARGEST_DENOMINATOR)
    if is_single(value):
        allowed: float | Fraction = _printed(value)
        by_chance = 2 * allowed * simple.denominator**2 > Fraction(1, 100)
        short = Fraction(str(np.float32(value)))
        candidates = (short,) if by_chance else (simple, short)
    else:
        with localcontext() as context:
            context.prec = SHORT_DIGITS
            short = Fraction(+Decimal(repr(value)))
        allowed, candidates = max(ULPS * math.ulp(value), CANCELLED), (short, simple)
    for fraction in candidates:
        error = abs(fraction - exact(value))
        if fraction and error <= allowed:
            found = term(fraction)
            _NAMES.setdefault(found, decimal(fraction))
            return Constant(value, found, float(error))
    return _multiple(value)


def decimal(fraction: Fraction) -> str:
    """A fraction as text: as a decimal of few digits, or as a quotient."""
    if fraction.denominator <= LARGEST_DENOMINATOR:
        return str(fraction)
    with localcontext() as context:
        context.prec = MOST_DECIMALS
        found = (Decimal(fraction.numerator) / fraction.denominator).normalize()
    exact_ = Fraction(found) == fraction and MOST_ZEROS < found.adjusted() < MOST_DECIMALS
    return f"{found:f}" if exact_ else str(fraction)


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


Reach = tuple[Fraction, Fraction]
"""How much smaller, and how much greater, in size the number that a literal stands for may be."""


def stands_for(error: Any, off: tuple[Any, Any]) -> bool:
    """May a number that is greater in size by ``error`` be rounded to the literal, or cut?"""
    inward, outward_ = off
    return bool(-inward <= error <= inward or inward < error < outward_)


def products(known: Iterable[Scalar], others: Mapping[float, Reach]) -> dict[float, Constant]:
    """Which of ``others`` are rounded products, quotients and powers of literals ``known``.

    ``others``: with how far each may be off.  A factor that is a known constant itself stands for
    that.
    """
    own = {v for v in known if isinstance(v, float) and math.isfinite(v)}
    wanted = [v for v in others if others[v][0] and v not in own]
    bases = sorted({abs(v) for v in own} - {0.0, 1.0})[:MOST_BASES]
    if not wanted or not bases:
        return {}
    found: dict[float, Constant] = {}
    for value in wanted:
        made = _product(value, tuple(bases), others[value])
        if made is not None:
            found[value] = made
    return found


@lru_cache(maxsize=1024)
def _product(value: float, bases: tuple[float, ...], off: Reach) -> Constant | None:
    written = Decimal(repr(abs(value))).normalize()
    found: list[tuple[int, Constant]] = []
    for exponents, monomial in _monomials(bases):
        near = float(written / monomial)
        for place, factor in enumerate(_FACTORS):
            if abs(near - factor) > NEAR * factor:
                continue
            exactly = Fraction(monomial) * factor
            error = exactly - Fraction(written)
            if stands_for(error, off):
                powers = dict(exponents)
                made = _made(value, factor, powers, abs(float(error)))
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
NEAR = 1e-4
"""Relative distance above which no rounding to five digits is looked at."""
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
    constant = constant or (recognise(value) if recognised else None)
    if constant is not None:
        return _high_precision(constant.term, mpmath.mp.dps)
    fraction = exact(value)
    return mpmath.mpf(fraction.numerator) / fraction.denominator


@lru_cache(maxsize=1024)
def _high_precision(constant: Term, digits: int) -> Any:
    with mpmath.workdps(digits + 5):
        return number(constant)


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
