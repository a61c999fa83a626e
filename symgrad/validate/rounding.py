"""Numbers as C stores them: rounded once, to the nearest one of their type, ties to even.

In: the text of a number, or an exact number.  Out: one of Python's floats.
"""

from __future__ import annotations

import math
from fractions import Fraction

_FORMS = {"float": (24, -149, 128), "double": (53, -1074, 1024)}
"""Of a type: its digits, the exponent of its least number, that of what is beyond its largest."""


def stored(text: str) -> float:
    """A number of the text, with ``f`` behind it or without; an infinity beyond its type."""
    bare, ctype = (text[:-1], "float") if text[-1] in "fF" else (text, "double")
    double = float(bare)
    if ctype == "double" or double == 0 or math.isinf(double):
        return double
    return nearest(Fraction(bare), ctype)


def nearest(value: Fraction | float, ctype: str) -> float:
    """The number of a type that is nearest to an exact one; an infinity beyond all of them."""
    if isinstance(value, float) and not math.isfinite(value):
        return value
    digits, lowest, beyond = _FORMS[ctype]
    size = abs(exact := Fraction(value))
    if not size:
        return float(value)  # which keeps the sign of a zero
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    unit = Fraction(2) ** max(exponent - digits + 1, lowest)
    rounded = round(size / unit) * unit
    found = math.inf if rounded >= Fraction(2) ** beyond else float(rounded)
    return math.copysign(found, exact)


def least_normal(ctype: str) -> Fraction:
    """The least positive number of a type that has all its digits."""
    digits, lowest, _ = _FORMS[ctype]
    return Fraction(2) ** (lowest + digits - 1)
