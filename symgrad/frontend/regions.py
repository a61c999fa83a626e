"""The values of one plain number that a trace holds for, and unions of such.

In: comparisons with literals.  Out: ``Region``s, as text and as facts for the proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from symgrad.ir.assume import Assumption
from symgrad.ir.function import RELATIONS

PLAIN = "plain"
"""The kind of the assumption that an input is a plain number, with which nothing is generic."""


@dataclass
class Region:
    """The values of one plain number that a trace holds for; ``value`` is one of them.

    ``settled``: it holds for the value alone.  ``low`` and ``high``: None is unbounded;
    ``low_open`` and ``high_open``: the ends do not belong to it.  ``typed``: the program asks
    for its type, so that an integer in the place of a float may be treated differently.
    """

    name: str
    value: int | float
    low: Fraction | None = None
    high: Fraction | None = None
    low_open: bool = True
    high_open: bool = True
    settled: bool = False
    typed: bool = field(default=False, compare=False)

    @property
    def whole(self) -> bool:
        """Is it an integer?"""
        return isinstance(self.value, int)

    @property
    def dtype(self) -> str:
        """What kernels take it as: Python's float, or an integer of 64 bits."""
        return "int64" if self.whole else "float64"

    def compare(self, relation: str, literal: int | float) -> bool:
        """The answer for the value; the region shrinks to where it is the same."""
        answer = RELATIONS[relation](self.value, literal)
        bound = Fraction(literal)
        if self.value == literal:
            if relation in ("<=", ">") and answer == (relation == "<="):
                self._below(bound, is_open=False)
            elif relation in (">=", "<"):
                self._above(bound, is_open=False)
            else:
                self._above(bound, is_open=False)
                self._below(bound, is_open=False)
        elif self.value > literal:
            self._above(bound, is_open=relation in ("==", "!=", "<=", ">"))
        else:
            self._below(bound, is_open=relation in ("==", "!=", ">=", "<"))
        return answer

    def holds(self, value: float) -> bool:
        """Is it one of the values?"""
        if self.low is not None and not (
            value >= self.low if not self.low_open else value > self.low
        ):
            return False
        return self.high is None or (value < self.high if self.high_open else value <= self.high)

    def to_side(self, bound: Fraction) -> None:
        """Shrink to the numbers on the value's side of another one."""
        (self._above if self.value > bound else self._below)(bound, is_open=True)

    def meet(
        self, low: Fraction | None, high: Fraction | None, *, low_open: bool, high_open: bool
    ) -> None:
        """Shrink to what lies in an interval as well."""
        if low is not None:
            self._above(low, is_open=low_open)
        if high is not None:
            self._below(high, is_open=high_open)

    def _above(self, bound: Fraction, *, is_open: bool) -> None:
        if self.low is None or (bound, is_open) > (self.low, self.low_open):
            self.low, self.low_open = bound, is_open

    def _below(self, bound: Fraction, *, is_open: bool) -> None:
        if self.high is None or (-bound, is_open) > (-self.high, self.high_open):
            self.high, self.high_open = bound, is_open

    @property
    def is_everything(self) -> bool:
        """Does it leave out no number?"""
        return self.low is None and self.high is None

    @property
    def interval(self) -> str:
        """``(0, inf)``."""
        low = "(-inf" if self.low is None else f"{'(' if self.low_open else '['}{_number(self.low)}"
        end = ")" if self.high_open else "]"
        return f"{low}, inf)" if self.high is None else f"{low}, {_number(self.high)}{end}"

    @property
    def condition(self) -> str:
        """``alpha > 0``, ``0 <= alpha < 2``; empty where it is everything."""
        below, above = "<" if self.high_open else "<=", ">" if self.low_open else ">="
        if self.is_point:
            return f"{self.name} == {_number(Fraction(self.value))}"
        if self.low is None:
            return "" if self.high is None else f"{self.name} {below} {_number(self.high)}"
        if self.high is None:
            return f"{self.name} {above} {_number(self.low)}"
        reached = "<" if self.low_open else "<="
        return f"{_number(self.low)} {reached} {self.name} {below} {_number(self.high)}"

    @property
    def is_point(self) -> bool:
        """Is it a single value?"""
        return self.low is not None and self.low == self.high

    def __str__(self) -> str:
        if self.low is not None and self.high is not None and not self.is_point:
            return f"all {self._kind} {self.name} in {self.interval}"
        return f"all {self._kind} {self.condition or self.name}"

    @property
    def _kind(self) -> str:
        if self.whole:
            return "integer"
        return "float" if self.typed else "real"

    def copy(self) -> Region:
        """Another one like it."""
        return replace(self)

    def without(self, other: Region) -> list[Region]:
        """What of it is left outside of another region that lies in it, with values of its own."""
        found = []
        if other.low is not None and (other.low, other.low_open) != (self.low, self.low_open):
            below = self.copy()
            below.high, below.high_open = other.low, not other.low_open
            found.append(below)
        if other.high is not None and (other.high, other.high_open) != (self.high, self.high_open):
            above = self.copy()
            above.low, above.low_open = other.high, not other.high_open
            found.append(above)
        return [one for one in found if one._find_value()]

    def _find_value(self) -> bool:
        """Take a value in it, not at an end if possible; is there one that a float can be?"""
        low, high = self.low, self.high
        if self.whole:
            low, high = self._least, self._greatest
            if low is not None and high is not None and low > high:
                return False
        if low is not None:
            middle = low + 1 if high is None else (low + high) / 2
        else:
            middle = Fraction(0) if high is None else high - 1
        if self.whole:
            self.value = math.floor(middle)
            return True
        try:
            self.value = float(middle)
        except OverflowError:
            return False
        exact = Fraction(self.value)
        if low is not None and low == high:
            return exact == low and not self.low_open and not self.high_open
        return (low is None or exact > low) and (high is None or exact < high)

    @property
    def _least(self) -> Fraction | None:
        """The least integer in it."""
        if self.low is None:
            return None
        return Fraction(math.floor(self.low) + 1 if self.low_open else math.ceil(self.low))

    @property
    def _greatest(self) -> Fraction | None:
        """The greatest integer in it."""
        if self.high is None:
            return None
        return Fraction(math.ceil(self.high) - 1 if self.high_open else math.floor(self.high))

    def touches(self, other: Region) -> bool:
        """Is there nothing between it and a region above it?"""
        if self.high is None or other.low is None:
            return True
        if self.whole and self._greatest is not None and other._least is not None:
            return other._least <= self._greatest + 1
        return other.low < self.high or (
            other.low == self.high and not (self.high_open and other.low_open)
        )

    def assumptions(self) -> tuple[Assumption, ...]:
        """What the proof may take for granted of it."""
        found = [
            Assumption(self.name, "constant", "constant"),
            Assumption(self.name, PLAIN, PLAIN, usual=float(self.value)),
        ]
        if not self.is_everything:
            found.append(self.interval_fact)
        return tuple(found)

    @property
    def interval_fact(self) -> Assumption:
        """That it lies between its ends."""
        ends = self.low, self.high, self.low_open, self.high_open
        return Assumption(self.name, "interval", self.interval, *ends)


@dataclass(frozen=True)
class Union:
    """Values of one number: regions that do not touch, in order."""

    regions: tuple[Region, ...]

    @property
    def is_point(self) -> bool:
        """Is it a single value?"""
        return len(self.regions) == 1 and self.regions[0].is_point

    @property
    def condition(self) -> str:
        """``alpha < 0 or alpha > 1``; empty where it is everything."""
        return " or ".join(filter(None, (one.condition for one in self.regions)))

    @property
    def text(self) -> str:
        """``all real alpha > 0``, ``all real alpha with alpha < 0 or alpha > 1``."""
        first = self.regions[0]
        if len(self.regions) == 1:
            return str(first)
        if all(one.is_point for one in self.regions):
            values = " or ".join(map(_number, (Fraction(one.value) for one in self.regions)))
            return f"{first.name} = {values}"
        return f"all {first._kind} {first.name} with {self.condition}"


def union(regions: Iterable[Region]) -> Union:
    """The values of regions of one number."""
    found: list[Region] = []
    for one in sorted(regions, key=lambda one: (one.low is not None, one.low or 0, one.low_open)):
        if found and found[-1].touches(one):
            found[-1].high, found[-1].high_open = one.high, one.high_open
            found[-1].typed |= one.typed
        else:
            found.append(one.copy())
    return Union(tuple(found))


def _number(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else repr(float(value))
