"""Values of polynomials at concrete sizes, indices and elements.

In: a polynomial, sizes, index values, and a function that gives the elements of tensors.
Out: an exact rational, an mpmath number, or an mpmath interval that encloses the value.

``Exact`` computes with fractions and refuses irrational functions; ``Floating`` computes with
mpmath at its working precision; ``Enclosure`` with intervals, so that a value whose interval
leaves out 0 is rigorously nonzero.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

import mpmath

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.atoms import Atom, Monomial, Number
from symgrad.proof.normal.poly import Poly
from symgrad.proof.scalars import uninterpreted
from symgrad.proof.scalars.bodies import number_function, op_of, value_function

Elements = Callable[[str, tuple[int, ...]], Any]


class NotEvaluable(Exception):
    """The value cannot be computed here: outside the domain, or not in this arithmetic."""


class Exact:
    """Rational arithmetic."""

    def number(self, value: Number) -> Any:
        """A rational number in this arithmetic."""
        return Fraction(value)

    def power(self, value: Any, exponent: Number) -> Any:
        """``value**exponent``."""
        if not isinstance(exponent, int):
            raise NotEvaluable("a fractional power is not rational")
        if not value and exponent < 0:
            raise NotEvaluable("a division by zero")
        return value**exponent

    def function(self, name: str, value: Any) -> Any:
        """A function of one argument."""
        if name == "floor":
            return Fraction(value.__floor__())
        raise NotEvaluable(f"{name} is not rational")

    def floor(self, value: Any) -> int:
        """The integer below.  Raises NotEvaluable where that cannot be told."""
        return int(value.__floor__())

    def angle(self, y: Any, x: Any) -> Any:
        """The angle of the point (x, y)."""
        raise NotEvaluable("no angle is computed in this arithmetic")

    def is_positive(self, value: Any) -> bool:
        """Is it certainly positive?  Raises NotEvaluable where that cannot be told."""
        return bool(value > 0)

    def greater(self, value: Any, other: Any) -> Any:
        """The greater of two values; ties do not matter."""
        return max(value, other)


class Floating(Exact):
    """mpmath numbers at the working precision."""

    def number(self, value: Number) -> Any:
        """A rational number in this arithmetic."""
        return mpmath.mpf(Fraction(value).numerator) / Fraction(value).denominator

    def power(self, value: Any, exponent: Number) -> Any:
        """``value**exponent``."""
        if value == 0 and exponent < 0:
            raise NotEvaluable("a division by zero")
        if isinstance(exponent, int):
            return value**exponent
        if value < 0:
            raise NotEvaluable("a root of a negative number")
        return mpmath.power(value, self.number(exponent))

    def angle(self, y: Any, x: Any) -> Any:
        """The angle of the point (x, y)."""
        if not x and not y:
            raise NotEvaluable("the angle of the origin")
        return mpmath.atan2(y, x)

    def is_positive(self, value: Any) -> bool:
        """Is it positive?  Raises NotEvaluable for what may be rounding."""
        if value and abs(value) < mpmath.ldexp(1, 40 - mpmath.mp.prec):
            raise NotEvaluable("the sign of a number that may be zero")
        return bool(value > 0)

    def function(self, name: str, value: Any) -> Any:
        """A function of one argument."""
        if name == "floor":
            return mpmath.floor(value)
        if name == "log" and value <= 0:
            raise NotEvaluable("the logarithm of a number that is not positive")
        function = number_function(name)
        result = mpmath.nan if function is None else function(value)
        if mpmath.isnan(result):
            raise NotEvaluable(f"{name} at {value}")
        return result


class Enclosure(Exact):
    """mpmath intervals: results enclose the true value."""

    def floor(self, value: Any) -> int:
        """The integer below all of the interval."""
        low, high = (int(mpmath.floor(mpmath.mpf(end))) for end in (value.a, value.b))
        if low != high:
            raise NotEvaluable("the floor of an interval that holds an integer")
        return low

    def number(self, value: Number) -> Any:
        """A rational number in this arithmetic."""
        return _enclosed(value.numerator, value.denominator, mpmath.iv.prec)

    def power(self, value: Any, exponent: Number) -> Any:
        """``value**exponent``."""
        if exponent < 0 and 0 in value:
            raise NotEvaluable("a division by an interval that holds zero")
        if isinstance(exponent, int):
            return value**exponent
        if value.a < 0:
            raise NotEvaluable("a root of an interval that holds negative numbers")
        if value.b == 0:
            return value
        return mpmath.iv.exp(mpmath.iv.log(value) * self.number(exponent))

    def function(self, name: str, value: Any) -> Any:
        """A function of one argument."""
        if name == "log":
            if value.a <= 0:
                raise NotEvaluable("the logarithm of an interval that holds 0")
            return mpmath.iv.log(value)
        if name in ("exp", "sin", "cos"):
            return getattr(mpmath.iv, name)(value)
        op = op_of(name)
        if op is not None and op.scalar is not None and op.scalar.rising:
            return self._monotone(value_function(op.name, 1), value)
        try:
            return uninterpreted.enclosed(name, value)
        except ValueError as error:
            raise NotEvaluable(str(error)) from error

    def _monotone(self, function: Callable[[Any], Any], value: Any) -> Any:
        """Both ends at 30 more digits than the interval arithmetic has, widened by their error."""
        with mpmath.workprec(mpmath.iv.prec + 100):
            low, high = (function(mpmath.mpf(end)) for end in (value.a, value.b))
            slack = mpmath.ldexp(1 + abs(low) + abs(high), -mpmath.iv.prec)
            return mpmath.iv.mpf([low - slack, high + slack])

    def greater(self, value: Any, other: Any) -> Any:
        """What encloses the greater of two enclosed values."""
        ends = [max(value.a, other.a), max(value.b, other.b)]
        return mpmath.iv.mpf([end.a if hasattr(end, "a") else end for end in ends])

    def is_positive(self, value: Any) -> bool:
        """Is it certainly positive?  Raises NotEvaluable where that cannot be told."""
        if value.a > 0:
            return True
        if value.b <= 0:
            return False
        raise NotEvaluable("the sign of an interval that holds zero")


@lru_cache(maxsize=4096)
def _enclosed(numerator: int, denominator: int, precision: int) -> Any:
    """A rational number as an interval of this precision, the one that is set."""
    return mpmath.iv.mpf(numerator) / denominator


class Evaluation:
    """The value of polynomials at one point.

    ``sizes``: the value of each size symbol.  ``elements(tensor, indices)``: the element of a
    tensor in the arithmetic of ``field``; an ``int`` for integer tensors, 0 or 1 for bool ones.
    ``indices``: values of free index variables, by atom.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        elements: Elements,
        indices: Mapping[Atom, int] | None = None,
        field: Exact | None = None,
    ) -> None:
        self.sizes = sizes
        self.elements = elements
        self.field = field if field is not None else Floating()
        self._indices: dict[Atom, int] = dict(indices or {})
        self._memo: dict[tuple[Atom, tuple[int, ...]], Any] = {}

    def value(self, poly: Poly) -> Any:
        """The value.  Raises NotEvaluable; KeyError for a size or index that is not given."""
        result = self.field.number(0)
        for monomial, coefficient in poly.terms.items():
            result = result + self.monomial(monomial) * self.field.number(coefficient)
        return result

    def monomial(self, monomial: Monomial) -> Any:
        """The value of a product; conditions first, since the rest may be undefined without."""
        result = self.field.number(1)
        for atom, _ in monomial:
            if atom.indicator and not self.holds(atom):
                return self.field.number(0)
        for atom, exponent in monomial:
            if not atom.indicator:
                result = result * self.field.power(self.atom(atom), exponent)
        return result

    def holds(self, atom: Atom) -> bool:
        """The truth of a condition."""
        if atom.kind == kinds.LEAF:
            return bool(self.elements(atom.data[0], self._position(atom)))
        if atom.kind == kinds.POSITIVE:
            return self.field.is_positive(self.value(atom.data[0]))
        number = self.integer(atom.data[0])
        return number == 0 if atom.kind == kinds.EQUAL else number >= 0

    def integer(self, poly: Poly) -> int:
        """The value of an integer polynomial."""
        result = Fraction(0)
        for monomial, coefficient in poly.terms.items():
            product = Fraction(coefficient)
            for atom, exponent in monomial:
                if not isinstance(exponent, int):
                    raise NotEvaluable("an index with a fractional power")
                product *= Fraction(self._integer_atom(atom)) ** exponent
            result += product
        if result.denominator != 1:
            raise NotEvaluable("an index that is not an integer")
        return int(result)

    def _integer_atom(self, atom: Atom) -> int:
        if atom.indicator:
            return int(self.holds(atom))
        if atom.kind == kinds.INDEX:
            return self._indices[atom]
        if atom.kind == kinds.SIZE:
            return self.sizes[atom.data[0]]
        if atom.kind == kinds.LEAF:
            return int(self.elements(atom.data[0], self._position(atom)))
        if atom.kind == kinds.FLOORDIV:
            return self.integer(atom.data[0]) // self.integer(atom.data[1])
        if atom.kind == kinds.ARGMAX:
            return self._argmax(atom)
        if atom.kind == kinds.FUNCTION and atom.data[0] == "floor":
            return self.field.floor(self.value(atom.data[1]))
        if atom.kind == kinds.SUM:
            body = Poly({atom.data[1]: 1})
            return sum(self.integer(body) for _ in self._ranges(atom.data[0]))
        raise NotEvaluable(f"{atom.kind} is not an integer")

    def _position(self, atom: Atom) -> tuple[int, ...]:
        return tuple(self.integer(index) for index in atom.data[1])

    def atom(self, atom: Atom) -> Any:
        """The value of an atom; for a power atom, of its base."""
        key = atom, tuple(self._indices[v] for v in sorted(atom.free, key=lambda v: v.key))
        if key not in self._memo:
            self._memo[key] = self._compute(atom)
        return self._memo[key]

    def _compute(self, atom: Atom) -> Any:
        kind, data = atom.kind, atom.data
        if kind in (kinds.INDEX, kinds.SIZE, kinds.FLOORDIV, kinds.ARGMAX):
            return self.field.number(self._integer_atom(atom))
        if kind == kinds.LEAF:
            element = self.elements(data[0], self._position(atom))
            return self.field.number(element) if isinstance(element, int) else element
        if kind == kinds.NUMBER:
            return self._constant(data[0])
        if kind == kinds.EXP:
            return self.field.function("exp", self.value(data[0]))
        if kind == kinds.FUNCTION:
            return self.field.function(data[0], self.value(data[1]))
        if kind == kinds.POWER:
            return self.value(data[0])
        if kind == kinds.ANGLE:
            return self.field.angle(self.value(data[0]), self.value(data[1]))
        return self._bound(atom)

    def _constant(self, value: int | str) -> Any:
        if value != "pi":
            return self.field.number(int(value))
        if isinstance(self.field, Enclosure):
            return mpmath.iv.pi
        if isinstance(self.field, Floating):
            return mpmath.mpf(mpmath.pi)
        raise NotEvaluable("pi is not rational")

    def _bound(self, atom: Atom) -> Any:
        if atom.kind == kinds.SUM:
            result = self.field.number(0)
            for _ in self._ranges(atom.data[0]):
                result = result + self.monomial(atom.data[1])
            return result
        if atom.kind == kinds.PRODUCT:
            result = self.field.number(1)
            for _ in self._ranges((atom.data[0],)):
                result = result * self.value(atom.data[1])
            return result
        if atom.kind == kinds.MAXIMUM:
            return self._maximum(atom)
        raise NotEvaluable(f"{atom.kind} has no value")

    def _maximum(self, atom: Atom) -> Any:
        """The greatest value, whichever index it is reached at."""
        values = (self._masked(atom.data[1]) for _ in self._ranges((atom.data[0],)))
        finite = [value for value in values if value is not None]
        if not finite:
            raise NotEvaluable("the maximum of no values")
        return reduce(self.field.greater, finite)

    def _argmax(self, atom: Atom) -> int:
        """The first index of the greatest value; -infinity never wins."""
        best: tuple[int, Any] | None = None
        for position, _ in enumerate(self._ranges((atom.data[0],))):
            value = self._masked(atom.data[1])
            if value is None:
                continue
            if best is None or self.field.is_positive(value - best[1]):
                best = position, value
        if best is None:
            raise NotEvaluable("the maximum of no values")
        return best[0]

    def _masked(self, body: Poly) -> Any:
        """The value, None where it is minus infinity."""
        kept, infinite = {}, Fraction(0)
        for monomial, value in body.terms.items():
            if not any(a.kind == kinds.INFINITY for a, _ in monomial):
                kept[monomial] = value
            elif all(self.holds(a) for a, _ in monomial if a.indicator):
                infinite += value
        if infinite > 0:
            raise NotEvaluable("plus infinity")
        return None if infinite else self.value(Poly(kept))

    def _ranges(self, binders: tuple[Atom, ...]) -> Iterator[None]:
        """Set the binders to all their values, one after the other."""
        outer = {b: self._indices.get(b) for b in binders}
        extents = [range(self.integer(b.data[1])) for b in binders]
        for values in itertools.product(*extents):
            self._indices.update(zip(binders, values, strict=True))
            yield
        for binder, value in outer.items():
            if value is None:
                self._indices.pop(binder, None)
            else:
                self._indices[binder] = value
