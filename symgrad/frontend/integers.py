"""What ``int`` and ``math`` compute of integers, by ``+ - * // %`` and comparisons alone.

In: integers, symbolic ones among them, whose comparisons decide.  Out: the same.

So ``n & 7`` is ``n % 8``, ``n >> 9`` is ``n // 512``, and ``math.gcd(n, 6)`` asks what divides n.
"""

from __future__ import annotations

import math
from typing import Any

from symgrad.budgets import LARGEST_DIVIDED, MOST_FACTORS


def masked(number: Any, mask: int) -> Any:
    """``number & mask``: each run of ones in the mask keeps the remainder of a quotient."""
    if mask < 0:
        return number - masked(number, ~mask)
    total: Any = 0
    place = 0
    while mask >> place:
        if (mask >> place) & 1:
            run = place
            while (mask >> run) & 1:
                run += 1
            total = total + (number // 2**place) % 2 ** (run - place) * 2**place
            place = run
        place += 1
    return total


def joined(number: Any, mask: int) -> Any:
    """``number | mask``."""
    return number + mask - masked(number, mask)


def differing(number: Any, mask: int) -> Any:
    """``number ^ mask``."""
    return number + mask - 2 * masked(number, mask)


def rounded(number: Any, digits: int | None) -> Any:
    """``round(number, digits)``: to a multiple of ``10**-digits``, halves to even ones."""
    if digits is None or digits >= 0:
        return number
    step = 10**-digits
    return nearest(number, step) * step


def nearest(above: Any, below: Any) -> Any:
    """The integer nearest to a quotient, of two the even one."""
    if below < 0:
        above, below = -above, -below
    whole, twice = above // below, above % below * 2
    up = twice > below or (twice == below and whole % 2 == 1)
    return whole + 1 if up else whole


def truncated(above: Any, below: Any) -> Any:
    """The integer part of a quotient."""
    if (above >= 0) is (below > 0):
        return above // below
    return -(-above // below)


def greatest_divisor(number: Any, other: int) -> Any:
    """``math.gcd(number, other)`` for a small other one; None where that is large."""
    other = abs(other)
    if not 0 < other <= LARGEST_DIVIDED:
        return None if other else abs(number)
    divisors = (one for one in range(other, 0, -1) if other % one == 0)
    return next(one for one in divisors if number % one == 0)


def arrangements(number: Any, count: int) -> Any:
    """``math.perm(number, count)`` for a few; None for many."""
    if not 0 <= count <= MOST_FACTORS:
        return None
    return math.prod((number - place for place in range(count)), start=1)


def combinations(number: Any, count: int) -> Any:
    """``math.comb(number, count)`` for a few; None for many."""
    found = arrangements(number, count)
    return None if found is None else found // math.factorial(count)
