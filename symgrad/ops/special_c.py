"""The special functions that ``math.h`` lacks, as C text.

In: nothing.  Out: definitions of C functions on doubles, with the numbers of ``special_numpy``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from symgrad.ops import special_numpy as numbers


def _assign(name: str, coefficients: Sequence[float], x: str) -> str:
    """Statements that put a polynomial in ``name``, one line a coefficient."""
    lines = [f"{name} = {coefficients[0]!r};"]
    lines += [f"{name} = {name} * {x} + {coefficient!r};" for coefficient in coefficients[1:]]
    return "\n".join(lines).replace("+ -", "- ")


def _indent(text: str, columns: int) -> str:
    return text.replace("\n", "\n" + " " * columns)


def _quotient(pair: tuple[Sequence[float], Sequence[float]], columns: int) -> str:
    both = f"{_assign('above', pair[0], 'r')}\n{_assign('below', pair[1], 'r')}"
    return _indent(both, columns)


ERFINV = f"""\
/* AS241: M. J. Wichura, Applied Statistics 37 (1988) 477-484. */
static double symgrad_erfinv(double x)
{{
    double r, above, below;
    double half = x / 2.0;
    if (fabs(half) <= 0.425) {{
        r = 0.180625 - half * half;
        {_quotient(numbers.NEAR, 8)}
        return half * (above / below) / {math.sqrt(2)!r};
    }}
    double depth = sqrt(-log((1.0 - fabs(x)) / 2.0));
    if (isinf(depth))
        return copysign(depth, x);
    if (depth <= 5.0) {{
        r = depth - 1.6;
        {_quotient(numbers.TAIL, 8)}
    }} else {{
        r = depth - 5.0;
        {_quotient(numbers.FAR, 8)}
    }}
    return copysign(above / below, x) / {math.sqrt(2)!r};
}}
"""

DIGAMMA = f"""\
/* Recurrence, reflection and asymptotic series: Abramowitz and Stegun 6.3.5, 6.3.7, 6.3.18. */
static double symgrad_digamma(double x)
{{
    if (x == 0.0)
        return copysign(INFINITY, -x);
    double turn = x - floor(x);
    if (x < 0.0 && turn == 0.0)
        return NAN;
    double total = x < 0.0 ? -{math.pi!r} / tan({math.pi!r} * turn) : 0.0;
    double z = x < 0.0 ? 1.0 - x : x;
    for (; z < {numbers.STEPS}.0; z += 1.0)
        total -= 1.0 / z;
    double w = 1.0 / (z * z);
    double series;
    {_indent(_assign("series", numbers.DIGAMMA_SERIES, "w"), 4)}
    return total + log(z) - 0.5 / z + w * series;
}}
"""

TRIGAMMA = f"""\
/* Recurrence, reflection and asymptotic series: Abramowitz and Stegun 6.4.6, 6.4.7, 6.4.12. */
static double symgrad_trigamma(double x)
{{
    double total = 0.0;
    double z = x < 0.5 ? 1.0 - x : x;
    for (; z < {numbers.STEPS}.0; z += 1.0)
        total += 1.0 / (z * z);
    double w = 1.0 / (z * z);
    double series;
    {_indent(_assign("series", numbers.TRIGAMMA_SERIES, "w"), 4)}
    total += (1.0 + 0.5 / z + w * series) / z;
    double sine = sin({math.pi!r} * (x - floor(x)));
    return x < 0.5 ? {math.pi**2!r} / (sine * sine) - total : total;
}}
"""

TETRAGAMMA = f"""\
/* Recurrence, reflection and asymptotic series: Abramowitz and Stegun 6.4.6, 6.4.7, 6.4.13. */
static double symgrad_tetragamma(double x)
{{
    double total = 0.0;
    double z = x < 0.5 ? 1.0 - x : x;
    for (; z < {numbers.STEPS}.0; z += 1.0)
        total -= 2.0 / (z * z * z);
    double w = 1.0 / (z * z);
    double series;
    {_indent(_assign("series", numbers.TETRAGAMMA_SERIES, "w"), 4)}
    total += w * (w * series - 1.0 - 1.0 / z);
    if (!(x < 0.5))
        return total;
    double angle = {math.pi!r} * (x - floor(x));
    double sine = sin(angle);
    return sine == 0.0 ? NAN : total - {2 * math.pi**3!r} * cos(angle) / (sine * sine * sine);
}}
"""
