"""A normal form of values over the real numbers, in which equal values of two programs meet.

In: index notation with flat addresses.  Out: ``Polynomial``s over elements, functions, quotients,
indicators and reductions.

Sums are linear, what does not depend on their axis stands outside, and sums over blocks or over
rows are sums over the whole.  Nothing else is used; equal polynomials are equal real numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isfinite
from typing import Any

from symgrad.ir.dim import Axis, Derived, Dim, Element, Size
from symgrad.ir.dtype import bool_
from symgrad.ir.expr import Access, Call, Expr, IntValue, Literal, Reduce
from symgrad.validate.rounding import nearest
from symgrad.validate.symbolic.integers import coefficient, put, uppers
from symgrad.validate.symbolic.values import ASSOCIATIVE, RELATIONS, Values, facts_of, is_defined

Monomial = tuple[tuple["Term", int], ...]


@dataclass(frozen=True)
class Term:
    """What polynomials are over.  ``parts``: names, index expressions, polynomials."""

    kind: str
    parts: tuple[Any, ...]

    @cached_property
    def _hash(self) -> int:
        return hash((self.kind, self.parts))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def key(self) -> str:
        """It orders terms."""
        return f"{self.kind}({';'.join(map(_key, self.parts))})"

    @cached_property
    def axes(self) -> frozenset[Axis]:
        """The axes that it depends on."""
        found = frozenset[Axis]()
        for part in self.parts:
            found |= _axes(part)
        if self.kind == "reduce":
            axis = self.parts[1]
            found = (found - {axis}) | frozenset(axis.extent.axes)
        return found

    @cached_property
    def total(self) -> bool:
        """Is it a real number wherever what it is made of is?"""
        return self.kind in _TOTAL and all(
            part.total for part in self.parts if isinstance(part, Polynomial)
        )

    @cached_property
    def depth(self) -> int:
        """How deep reductions lie in it."""
        inner = max((_depth(part) for part in self.parts), default=0)
        return inner + (self.kind == "reduce")

    def __str__(self) -> str:
        if self.kind in ("element", "bool"):
            return f"{self.parts[0]}[{self.parts[1]}]"
        if self.kind == "integer":
            return str(self.parts[0])
        if self.kind == "reduce":
            kind, axis, body = self.parts
            return f"{kind}({axis} < {axis.extent}: {body})"
        return f"{self.kind}({', '.join(map(str, self.parts))})"


def _key(part: Any) -> str:
    return part.key if isinstance(part, (Term, Polynomial, Dim, Axis)) else str(part)


def _axes(part: Any) -> frozenset[Axis]:
    if isinstance(part, Dim):
        return frozenset(part.axes)
    return part.axes if isinstance(part, (Term, Polynomial)) else frozenset()


def _depth(part: Any) -> int:
    return part.depth if isinstance(part, (Term, Polynomial)) else 0


class Polynomial:
    """A sum of products of terms with rational coefficients; powers may be negative."""

    __slots__ = ("__dict__", "terms")

    def __init__(self, terms: Mapping[Monomial, Fraction]) -> None:
        kept = [(one, value) for one, value in terms.items() if value]
        kept.sort(key=lambda item: [(term.key, power) for term, power in item[0]])
        self.terms = tuple(kept)

    @staticmethod
    def of(value: Term | int | Fraction) -> Polynomial:
        """A term, or a number."""
        if isinstance(value, Term):
            return Polynomial({((value, 1),): Fraction(1)})
        return Polynomial({(): Fraction(value)})

    @property
    def constant(self) -> Fraction | None:
        """Its value where it has no terms."""
        if not self.terms:
            return Fraction(0)
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @property
    def single(self) -> Term | None:
        """The term that it consists of."""
        if len(self.terms) == 1:
            monomial, value = self.terms[0]
            if value == 1 and len(monomial) == 1 and monomial[0][1] == 1:
                return monomial[0][0]
        return None

    @cached_property
    def key(self) -> str:
        """It orders polynomials."""
        return "+".join(
            f"{value}" + "".join(f"*{term.key}^{power}" for term, power in monomial)
            for monomial, value in self.terms
        )

    @cached_property
    def axes(self) -> frozenset[Axis]:
        """The axes that it depends on."""
        return frozenset[Axis]().union(
            *(term.axes for monomial, _ in self.terms for term, _ in monomial)
        )

    @cached_property
    def total(self) -> bool:
        """Is it a real number wherever what it is made of is?"""
        return all(term.total and power > 0 for one, _ in self.terms for term, power in one)

    @cached_property
    def depth(self) -> int:
        """How deep reductions lie in it."""
        return max((t.depth for one, _ in self.terms for t, _ in one), default=0)

    def __add__(self, other: Polynomial) -> Polynomial:
        total = dict(self.terms)
        for monomial, value in other.terms:
            total[monomial] = total.get(monomial, Fraction(0)) + value
        return Polynomial(total)

    def __neg__(self) -> Polynomial:
        return self.scaled(Fraction(-1))

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def scaled(self, factor: Fraction) -> Polynomial:
        """It times a number."""
        return Polynomial({monomial: value * factor for monomial, value in self.terms})

    def __mul__(self, other: Polynomial) -> Polynomial:
        total: dict[Monomial, Fraction] = {}
        for left, one in self.terms:
            for right, two in other.terms:
                monomial = _times(left, right)
                if monomial is not None:
                    total[monomial] = total.get(monomial, Fraction(0)) + one * two
        return Polynomial(total)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    @cached_property
    def _hash(self) -> int:
        return hash(self.terms)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        texts = []
        for monomial, value in self.terms:
            factors = [str(term) + (f"^{power}" if power != 1 else "") for term, power in monomial]
            texts.append("*".join(([str(value)] if value != 1 or not factors else []) + factors))
        return " + ".join(texts) or "0"


def _times(left: Monomial, right: Monomial) -> Monomial | None:
    """A product of monomials; None where it is 0."""
    powers = dict(left)
    for term, power in right:
        powers[term] = powers.get(term, 0) + power
    for term in list(powers):
        if term.kind != "is" or powers[term] <= 0:
            continue
        relation, gap = term.parts
        base = gap.single
        present = base is not None and powers.get(base, 0) > 0
        if relation == "eq" and powers.get(Term("is", ("gt", gap)), 0) > 0:
            return None
        if relation == "eq" and present and all(t.total and p > 0 for t, p in powers.items()):
            return None
        if relation == "gt" and present:  # x [x > 0] is the positive part of x
            whole = Term("positive", (gap,))
            powers[base] -= 1
            powers[whole] = powers.get(whole, 0) + 1
            if not powers[base]:
                del powers[term]
    kept = [
        (term, 1 if term.kind in ("is", "bool") and power > 0 else power)
        for term, power in powers.items() if power
    ]  # fmt: skip
    return tuple(sorted(kept, key=lambda item: item[0].key))


_TOTAL = frozenset((
    "element", "bool", "integer", "is", "positive", "maximum", "exp", "tanh", "sin", "cos", "erf",
    "atan", "floor", "ceil", "round", "trunc",
))  # fmt: skip
ONE, ZERO = Polynomial.of(1), Polynomial.of(0)
INFINITE = Polynomial.of(Term("number", ("inf",)))
LOWEST = Polynomial.of(Term("number", ("-inf",)))


def _negated(value: Polynomial) -> Polynomial:
    """Minus it; of an infinity the other one."""
    return {INFINITE: LOWEST, LOWEST: INFINITE}.get(value, -value)


class Reals:
    """Makes the normal form."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._integers = values.integers
        self._done: dict[Expr, Polynomial] = {}

    def normal(self, expr: Expr) -> Polynomial:
        """The normal form of a value."""
        found = self._done.get(expr)
        if found is None:
            found = self._done[expr] = self._made(expr)
        return found

    def _made(self, expr: Expr) -> Polynomial:
        if isinstance(expr, Literal):
            return self._literal(expr)
        if isinstance(expr, IntValue):
            return self.integer(expr.value)
        if isinstance(expr, Access):
            if not expr.indices:
                return self.integer(Dim.of(Element(expr.tensor, ())))
            kind = "bool" if expr.dtype == bool_ else "element"
            return Polynomial.of(Term(kind, (expr.tensor, self._index(expr.indices[0]))))
        if isinstance(expr, Reduce):
            return self.reduce(expr.kind, expr.axis, self.normal(expr.body))
        assert isinstance(expr, Call)
        return self._call(expr)

    def _literal(self, expr: Literal) -> Polynomial:
        value = expr.value
        if expr.dtype.is_float:
            number = nearest(float(value), expr.dtype.c)
            if not isfinite(number):
                return Polynomial.of(Term("number", (str(number),)))
            return Polynomial.of(Fraction(number))
        return Polynomial.of(int(value))

    def integer(self, dim: Dim) -> Polynomial:
        """An integer as a real number."""
        total = ZERO
        for monomial, value in self._integers.settled(dim).terms:
            product = Polynomial.of(value)
            for atom, power in monomial:
                if is_defined(atom):
                    one = self.normal(self._values.definition(atom))
                elif isinstance(atom, Element):
                    one = (
                        Polynomial.of(Term("element", (atom.tensor, self._index(atom.indices[0]))))
                        if atom.indices
                        else Polynomial.of(Term("integer", (Dim.of(atom),)))
                    )
                elif isinstance(atom, Derived) and atom.function == "min" and _data(atom):
                    one = self._extreme(
                        "minimum", [self.integer(atom.left), self.integer(atom.right)]
                    )
                else:
                    one = Polynomial.of(Term("integer", (self._index(Dim.of(atom)),)))
                for _ in range(power):
                    product = product * one
            total = total + product
        return total

    def _index(self, dim: Dim) -> Dim:
        """An address with elements of defined arrays named by what they are."""
        mapping = {}
        for atom in dim.atoms:
            if is_defined(atom):
                value = self.normal(self._values.definition(atom))
                mapping[atom] = Dim.of(Element("=", (Dim.of(_Named(value)),)))
        return self._integers.settled(put(dim, mapping) if mapping else dim)

    def _call(self, expr: Call) -> Polynomial:
        function = expr.function
        if function == "where":
            return self._choice(*expr.operands)
        operands = [self.normal(one) for one in expr.operands]
        if function in _RATIONAL:
            return _RATIONAL[function](self, operands)
        if function in RELATIONS:
            if function in ("eq", "ne") and all(one.dtype == bool_ for one in expr.operands):
                same = ONE - _RATIONAL["logical_xor"](self, operands)
                return same if function == "eq" else ONE - same
            whole = not any(one.dtype.is_float for one in expr.operands)
            return self._relation(function, operands[0] - operands[1], whole)
        if function in ("maximum", "minimum"):
            return self._extreme(function, operands)
        if function == "cast" and (expr.dtype.is_float or not expr.operands[0].dtype.is_float):
            return operands[0]
        if (
            function == "pow"
            and (power := operands[1].constant) is not None
            and power.denominator == 1
        ):
            return self.power(operands[0], int(power))
        if function.startswith(UNDEFINED) and len(operands) == 1:
            return self.undefined(function.removeprefix(UNDEFINED), operands[0])
        if function in _WRAPS and getattr(operands[0].single, "kind", "") == function:
            return operands[0]
        return Polynomial.of(Term(SAME.get(function, function), tuple(operands)))

    def _choice(self, condition: Expr, chosen: Expr, other: Expr) -> Polynomial:
        """Each side is what it is where it is chosen; it is one where both are the same there."""
        test = self.normal(condition)
        one, two = (
            self._where(facts_of(self._values, condition, truth), side)
            for truth, side in ((True, chosen), (False, other))
        )
        gap = one - two
        if self._vanishes(gap, test):
            return two
        otherwise = facts_of(self._values, condition, False)
        if otherwise and self._where(otherwise, chosen) == two:
            return self.normal(chosen)
        return test * gap + two

    def _vanishes(self, value: Polynomial, test: Polynomial) -> bool:
        """Is ``value`` 0 where ``test``, an equality, holds?"""
        term = test.single
        if term is None or term.kind != "is" or term.parts[0] != "eq" or not value.total:
            return False
        gap: Polynomial = term.parts[1]
        (*others, (lead, factor)) = gap.terms
        if len(lead) != 1 or lead[0][1] != 1:
            return False
        rest = Polynomial({one: -value / factor for one, value in others})
        positive = self._positive_part(gap).terms
        zero = {t for one, _ in positive for t, _ in one if t.kind == "positive"}
        total = ZERO
        for monomial, number in value.terms:
            if any(one in zero and power > 0 for one, power in monomial):
                continue
            left = tuple(one for one in monomial if one[0] != lead[0][0])
            power = dict(monomial).get(lead[0][0], 0)
            total = total + Polynomial({left: number}) * self.power(rest, power)
        return not total.terms

    def _where(self, facts: Sequence[Dim], expr: Expr) -> Polynomial:
        with self.given(*facts):
            return self.normal(expr)

    @contextmanager
    def given(self, *facts: Dim) -> Iterator[None]:
        """With facts besides; what was made before stays as it is."""
        if not facts:
            yield
            return
        outer, self._done = self._done, {}
        try:
            with self._integers.given(*facts):
                yield
        finally:
            self._done = outer

    def power(self, base: Polynomial, power: int) -> Polynomial:
        """An integer power."""
        if power < 0:
            return self.inverse(self.power(base, -power))
        total = ONE
        for _ in range(power):
            total = total * base
        return total

    def inverse(self, base: Polynomial) -> Polynomial:
        """One over it."""
        if not base.terms:
            return Polynomial.of(Term("number", ("1/0",)))
        if len(base.terms) == 1:
            monomial, value = base.terms[0]
            return Polynomial({tuple((term, -power) for term, power in monomial): 1 / value})
        lead = base.terms[0][1]
        return Polynomial.of(Term("inverse", (base.scaled(1 / lead),))).scaled(1 / lead)

    def undefined(self, kind: str, value: Polynomial) -> Polynomial:
        """At least 1 where ``value`` is not what ``kind`` says, ``positive`` and so on; else 0.

        A product is 0 where a factor is.  What it is divided by is no 0, nor is ``exp``.
        """
        if (constant := value.constant) is not None and kind in _MEETS:
            return ZERO if _MEETS[kind](constant) else ONE
        if kind == "nonzero" and len(value.terms) == 1:
            total = ZERO
            for term, power in value.terms[0][0]:
                if power > 0 and term.kind not in ("exp", "inverse"):
                    root = self.undefined(kind, term.parts[0]) if term.kind == "sqrt" else None
                    own = Polynomial.of(Term("undefined", (kind, Polynomial.of(term))))
                    total = total + (own if root is None else root)
            return total
        if kind == "positive" and len(value.terms) == 1 and value.terms[0][1] > 0:
            sizes = [term for term, _ in value.terms[0][0]]
            if len(sizes) > 1 and all(map(_is_size, sizes)):
                return sum((self.undefined(kind, Polynomial.of(one)) for one in sizes), ZERO)
        if kind in _MEETS:
            lead = value.terms[-1][1]
            value = value.scaled(1 / (lead if kind == "nonzero" else abs(lead)))
        return Polynomial.of(Term("undefined", (kind, value)))

    def _relation(self, function: str, gap: Polynomial, whole: bool) -> Polynomial:
        if function == "ne":
            return ONE - self._relation("eq", gap, whole)
        if function == "lt":
            return self._relation("gt", -gap, whole)
        if function == "le":
            return self._relation("ge", -gap, whole)
        if function == "ge":
            if whole:
                return self._relation("gt", gap + ONE, whole)
            return ONE - self._relation("gt", -gap, whole)
        known = self._known(function, gap, whole)
        if known is not None:
            return ONE if known else ZERO
        lead = abs(gap.terms[-1][1]) if function == "gt" else gap.terms[-1][1]
        if function == "gt" and gap.terms[-1][1] < 0 and not (whole and _counts(gap)):
            return ONE - self._relation("gt", -gap, whole) - self._relation("eq", gap, whole)
        if not whole or function == "eq":
            gap = gap.scaled(1 / lead)
        return Polynomial.of(Term("is", (function, gap)))

    def _known(self, function: str, gap: Polynomial, whole: bool) -> bool | None:
        """Whether ``gap > 0``, or ``gap == 0``, where that is known."""
        if (constant := gap.constant) is not None:
            return constant == 0 if function == "eq" else constant > 0
        dim = _as_dim(gap) if whole else None
        if dim is None:
            return None
        entails = self._integers.entails
        if function == "gt":
            return True if entails(dim - 1) else False if entails(-dim) else None
        if entails(dim - 1) or entails(-dim - 1):
            return False
        return True if self._integers.same(dim, Dim.of(0)) else None

    def _extreme(self, function: str, operands: list[Polynomial]) -> Polynomial:
        if function == "minimum":
            return _negated(self._extreme("maximum", [_negated(one) for one in operands]))
        found: dict[Polynomial, None] = {}
        for one in operands:
            term = one.single
            if term is not None and term.kind == "positive":
                parts: tuple[Polynomial, ...] = (ZERO, *term.parts)
            else:
                parts = term.parts if term is not None and term.kind == "maximum" else (one,)
            found.update(dict.fromkeys(parts))
        if INFINITE in found:
            return INFINITE
        kept = [one for one in found if one != LOWEST] or [LOWEST]
        if len(kept) == 1:
            return kept[0]
        if len(kept) == 2:
            return kept[0] + self._positive_part(kept[1] - kept[0])
        return Polynomial.of(Term("maximum", tuple(sorted(kept, key=lambda one: one.key))))

    def _absolute(self, value: Polynomial) -> Polynomial:
        if (constant := value.constant) is not None:
            return Polynomial.of(abs(constant))
        lead = value.terms[-1][1]
        value = value.scaled(1 / lead)
        return (self._positive_part(value).scaled(Fraction(2)) - value).scaled(abs(lead))

    def _softplus(self, value: Polynomial) -> Polynomial:
        """``log(1 + exp(x))`` is ``max(x, 0) + log(1 + exp(-|x|))``."""
        small = Polynomial.of(Term("exp", (-self._absolute(value),)))
        return self._positive_part(value) + Polynomial.of(Term("log1p", (small,)))

    def _positive_part(self, value: Polynomial) -> Polynomial:
        """``max(0, value)``, as that of the one of ``value`` and ``-value`` that leads with +."""
        if (constant := value.constant) is not None:
            return Polynomial.of(max(constant, Fraction(0)))
        lead = value.terms[-1][1]
        if lead < 0:
            return value + self._positive_part(-value)
        value = value.scaled(1 / lead)
        bare = self._bare(value)
        if bare is not None:
            return self._positive_part(bare).scaled(lead)
        return Polynomial.of(Term("positive", (value,))).scaled(lead)

    def _bare(self, value: Polynomial) -> Polynomial | None:
        """The greatest of positive parts is the positive part of the greatest, or of nothing."""
        term = value.single
        if term is None:
            return None
        if term.kind == "positive":
            inner: Polynomial = term.parts[0]
            return inner
        if term.kind != "reduce" or term.parts[0] != "max":
            return None
        _, axis, body = term.parts
        found = self._bare(body)
        if found is None:
            return None
        fresh = self._values.axis("u", axis.extent)
        return self.reduce("max", fresh, self.substitute(found, {axis: Dim.of(fresh)}))

    # -- reductions

    def reduce(self, kind: str, axis: Axis, body: Polynomial) -> Polynomial:
        """A reduction over an axis."""
        if kind == "min":
            return _negated(self.reduce("max", axis, _negated(body)))
        settled = self._integers.settled(axis.extent)
        if settled != axis.extent:
            shorter = self._values.axis("u", settled)
            body, axis = self.substitute(body, {axis: Dim.of(shorter)}), shorter
        if kind in _NOTHING and self._integers.entails(-axis.extent):
            return _NOTHING[kind]
        if kind in ASSOCIATIVE:
            for step in divisors(axis, body):
                if (count := axis.extent.exact_quotient(step)) is not None:
                    return self._in_rows(kind, axis, body, count, step)
        if kind == "any" and not body.terms:
            return ZERO
        if kind == "all":
            return ONE - self.reduce("any", axis, ONE - body)
        if kind == "max":
            return self._greatest(axis, body)
        if kind == "prod":
            return self._product_of_few(axis, body) or self._reduced(kind, axis, body)
        return self._linear(axis, body) if kind == "sum" else self._reduced(kind, axis, body)

    def _in_rows(
        self, kind: str, axis: Axis, body: Polynomial, count: Dim, step: Dim
    ) -> Polynomial:
        """A reduction over ``count * step`` places as one over rows."""
        outer, inner = self._values.axis("u", count), self._values.axis("u", step)
        body = self.substitute(body, {axis: step * Dim.of(outer) + Dim.of(inner)})
        return self.reduce(kind, outer, self.reduce(kind, inner, body))

    def _linear(self, axis: Axis, body: Polynomial) -> Polynomial:
        """A sum, with what does not depend on its axis outside."""
        groups: dict[Monomial, dict[Monomial, Fraction]] = {}
        for monomial, value in body.terms:
            inside = tuple(one for one in monomial if axis in one[0].axes)
            outside = tuple(one for one in monomial if axis not in one[0].axes)
            groups.setdefault(inside, {})[outside] = value
        total = ZERO
        for inner, outer in groups.items():
            total = total + Polynomial(outer) * self._sum(axis, inner)
        return total

    def _greatest(self, axis: Axis, body: Polynomial) -> Polynomial:
        """What does not depend on the axis is added, positive factors are multiplied, after it."""
        inside = Polynomial(
            {one: v for one, v in body.terms if any(axis in t.axes for t, _ in one)}
        )
        if not inside.terms:
            return self._reduced("max", axis, body)
        outside = body - inside
        factor = abs(inside.terms[-1][1])
        inside = inside.scaled(1 / factor)
        part = inside.single
        if part is not None and part.kind == "positive" and self._integers.entails(axis.extent - 1):
            found = self._positive_part(self.reduce("max", axis, part.parts[0]))
        else:
            found = self._reduced("max", axis, inside)
        return found.scaled(factor) + outside

    def _sum(self, axis: Axis, inside: Monomial) -> Polynomial:
        if not inside and self._integers.entails(axis.extent):
            return self.integer(axis.extent)
        for term, power in inside:
            if power == 1 and term.kind == "is" and term.parts[0] == "eq":
                place = self._only(axis, term.parts[1])
                if place is not None:
                    rest = tuple(one for one in inside if one[0] != term)
                    return self.substitute(Polynomial({rest: Fraction(1)}), {axis: place})
            if power == 1 and term.kind == "is" and term.parts[0] == "gt":
                found = self.shorter(axis, term.parts[1])
                if found is not None:
                    rest = tuple(one for one in inside if one[0] != term)
                    shorter, mapping = found
                    body = self.substitute(Polynomial({rest: Fraction(1)}), mapping)
                    return self.reduce("sum", shorter, body)
        return self._reduced("sum", axis, Polynomial({inside: Fraction(1)}))

    def _product_of_few(self, axis: Axis, body: Polynomial) -> Polynomial | None:
        """A product of 1 but where ``[gap > 0]``: over the shorter range."""
        rest = body - ONE
        common = [
            term for term, _ in (rest.terms[0][0] if rest.terms else ())
            if term.kind == "is" and all((term, 1) in monomial for monomial, _ in rest.terms)
        ]  # fmt: skip
        for term in common:
            found = self.shorter(axis, term.parts[1]) if term.parts[0] == "gt" else None
            if found is not None:
                inside = {tuple(o for o in one if o[0] != term): v for one, v in rest.terms}
                shorter, mapping = found
                each = self.substitute(ONE + Polynomial(inside), mapping)
                return self.reduce("prod", shorter, each)
        return None

    def _only(self, axis: Axis, gap: Polynomial) -> Dim | None:
        """``[gap == 0]`` in a sum leaves one place of its range."""
        dim = _as_dim(gap)
        if dim is None:
            return None
        rest = put(dim, {axis: Dim.of(0)})
        for sign in (1, -1):
            place = -sign * rest
            if dim - rest == sign * Dim.of(axis) and self._integers.within(place, axis.extent):
                return place
        return None

    def shorter(self, axis: Axis, gap: Polynomial) -> tuple[Axis, dict[Axis, Dim]] | None:
        """``[gap > 0]`` in a sum shortens its range: to the axis, in which the old one is given."""
        dim = _as_dim(gap)
        if dim is None:
            return None
        rest = put(dim, {axis: Dim.of(0)})
        slope = dim - rest
        if slope == -Dim.of(axis):  # axis < rest
            extent = _least(self._integers, axis.extent, rest)
            if extent is None:
                return None
            shorter = Axis(axis.name, extent)
            return shorter, {axis: Dim.of(shorter)}
        if slope == Dim.of(axis):  # axis > -rest: from 1 - rest on
            first = 1 - rest
            if not self._integers.entails(first):
                return None
            shorter = Axis(axis.name, axis.extent - first)
            return shorter, {axis: Dim.of(shorter) + first}
        return None

    def _reduced(self, kind: str, axis: Axis, body: Polynomial) -> Polynomial:
        inner = body.single if kind in ASSOCIATIVE else None
        if inner is not None and inner.kind == "reduce" and inner.parts[0] == kind:
            _, within, content = inner.parts
            fresh = self._values.axis("u", within.extent)
            content = self.substitute(content, {within: Dim.of(fresh)})
            merged = self._merged(kind, axis, fresh, content)
            if merged is not None:
                return merged
            if axis not in frozenset(within.extent.axes):
                return self._in_order(kind, axis, body, fresh, content)
        return self._named(kind, axis, body)

    def _merged(self, kind: str, axis: Axis, inner: Axis, body: Polynomial) -> Polynomial | None:
        """Two reductions in each other as one, where addresses go on from row to row."""
        flat = self._flat(axis, inner)
        if flat is None:
            return None
        whole, step = flat
        if _falls(axis, body):
            body = self.substitute(body, {axis: axis.extent - 1 - Dim.of(axis)})
        merged = self.substitute(body, {inner: Dim.of(whole) - step * Dim.of(axis)})
        return None if axis in merged.axes else self.reduce(kind, whole, merged)

    def _in_order(
        self, kind: str, outer: Axis, body: Polynomial, inner: Axis, content: Polynomial
    ) -> Polynomial:
        """Of two reductions in each other, the one that reads first is outside."""
        merged = self._merged(kind, inner, outer, content)
        if merged is not None:
            return merged
        here = self._named(kind, outer, body)
        swapped = self.reduce(kind, outer, content)
        if swapped.single is None or swapped.single.kind != "reduce":
            return self.reduce(kind, inner, swapped)
        return min(here, self._named(kind, inner, swapped), key=lambda one: one.key)

    def _named(self, kind: str, axis: Axis, body: Polynomial) -> Polynomial:
        depth = 1 + body.depth
        name = Axis(f"#{depth}", axis.extent)
        renamed = self.substitute(body, {axis: Dim.of(name)})
        if kind in ASSOCIATIVE and _falls(name, renamed):
            back = self.substitute(body, {axis: axis.extent - 1 - Dim.of(name)})
            renamed = min(renamed, back, key=lambda one: (_falls(name, one), one.key))
        return Polynomial.of(Term("reduce", (kind, name, renamed)))

    def _flat(self, outer: Axis, inner: Axis) -> tuple[Axis, Dim] | None:
        found = self._values.joined(outer, inner)
        if found is not None:
            return found
        if (
            outer in frozenset(inner.extent.axes)
            or len(uppers(inner.extent)) > 1
            or len(uppers(outer.extent)) > 1
        ):
            return None
        return self._values.axis("f", outer.extent * inner.extent), inner.extent

    # -- replacement

    def substitute(self, root: Polynomial, mapping: Mapping[Axis, Dim]) -> Polynomial:
        """With axes replaced."""
        if root.axes.isdisjoint(mapping):
            return root
        total = ZERO
        for monomial, value in root.terms:
            product = Polynomial.of(value)
            for term, power in monomial:
                if term.axes.isdisjoint(mapping):
                    product = product * Polynomial({((term, power),): Fraction(1)})
                else:
                    product = product * self.power(self._substituted(term, mapping), power)
            total = total + product
        return total

    def _substituted(self, term: Term, mapping: Mapping[Axis, Dim]) -> Polynomial:
        put = dict(mapping.items())
        if term.kind in ("element", "bool"):
            return Polynomial.of(Term(term.kind, (term.parts[0], self._put(term.parts[1], put))))
        if term.kind == "integer":
            return self.integer(self._put(term.parts[0], put))
        if term.kind == "reduce":
            kind, axis, body = term.parts
            fresh = self._values.axis("u", self._put(axis.extent, put))
            inner = {one: dim for one, dim in mapping.items() if one != axis}
            body = self.substitute(body, {**inner, axis: Dim.of(fresh)})
            return self.reduce(kind, fresh, body)
        parts = tuple(
            self.substitute(part, mapping) if isinstance(part, Polynomial) else part
            for part in term.parts
        )
        if term.kind == "inverse":
            return self.inverse(parts[0])
        if term.kind == "is":
            return self._relation(term.parts[0], parts[1], whole=_as_dim(parts[1]) is not None)
        if term.kind == "undefined":
            return self.undefined(term.parts[0], parts[1])
        if term.kind == "maximum":
            return self._extreme("maximum", list(parts))
        if term.kind == "positive":
            return self._positive_part(parts[0])
        return Polynomial.of(Term(term.kind, parts))

    def _put(self, dim: Dim, mapping: Mapping[Any, Dim]) -> Dim:
        named = {}
        for atom in dim.atoms:
            if isinstance(atom, _Named) and not atom.value.axes.isdisjoint(mapping):
                named[atom] = Dim.of(_Named(self.substitute(atom.value, mapping)))
        return self._integers.settled(put(dim, {**mapping, **named}))


class _Named(Axis):
    """A value that serves as an index: equal values are equal indices."""

    value: Polynomial

    def __init__(self, value: Polynomial) -> None:
        super().__init__(f"<{value.key}>", Dim.of(0))
        object.__setattr__(self, "value", value)


def _as_dim(value: Polynomial) -> Dim | None:
    total = Dim.of(0)
    for monomial, factor in value.terms:
        if factor.denominator != 1:
            return None
        product = Dim.of(factor.numerator)
        for term, power in monomial:
            if power < 0 or term.kind not in ("integer", "element", "bool"):
                return None
            one = (
                term.parts[0]
                if term.kind == "integer"
                else Dim.of(Element(term.parts[0], (term.parts[1],)))
            )
            for _ in range(power):
                product = product * one
        total = total + product
    return total


def _is_size(term: Term) -> bool:
    return term.kind == "integer" and isinstance(term.parts[0].atom, Size)


def divisors(axis: Axis, part: Any) -> Iterator[Dim]:
    """What an axis is divided by, as it is."""
    if isinstance(part, Polynomial):
        for monomial, _ in part.terms:
            for term, _ in monomial:
                if axis in term.axes:
                    for one in term.parts:
                        yield from divisors(axis, one)
    elif isinstance(part, Dim) and axis in part.axes:
        for atom in part.atoms:
            if isinstance(atom, Derived) and (atom.function, atom.left) == (
                "floordiv",
                Dim.of(axis),
            ):
                yield atom.right


def _falls(axis: Axis, part: Any) -> bool:
    """Does an address in it fall with the axis?"""
    if isinstance(part, Polynomial):
        terms = (term for monomial, _ in part.terms for term, _ in monomial if axis in term.axes)
        return any(_falls(axis, one) for term in terms for one in term.parts)
    if not isinstance(part, Dim):
        return False
    slope = coefficient(part, axis)
    return slope is not None and bool(slope.terms) and slope.terms[-1][1] < 0


def _data(atom: Derived) -> bool:
    """Does it hold elements of arrays?"""
    return any(isinstance(one, Element) and not one.tensor.startswith("#") for one in atom.atoms)


def _counts(gap: Polynomial) -> bool:
    """Does it hold sizes or axes?"""
    return any(term.kind == "integer" for monomial, _ in gap.terms for term, _ in monomial)


def _least(integers: Any, left: Dim, right: Dim) -> Dim | None:
    if integers.entails(right - left):
        return left
    if integers.entails(left - right):
        return right
    return None


_NOTHING = {"sum": ZERO, "any": ZERO, "prod": ONE, "all": ONE, "max": LOWEST}
"""What a reduction over nothing is."""
_WRAPS = ("wrap_i8", "wrap_i16", "wrap_i32", "wrap_u8")
UNDEFINED = "undefined "
"""Before the name of what an operand has to be: whether it is not."""
_MEETS: dict[str, Callable[[Fraction], bool]] = {
    "positive": lambda value: value > 0,
    "nonnegative": lambda value: value >= 0,
    "nonzero": lambda value: value != 0,
}
SAME = {"rint": "round", "root": "sqrt"}
"""Names of functions that are other names of ops."""

_RATIONAL: dict[str, Callable[[Reals, Sequence[Polynomial]], Polynomial]] = {
    "add": lambda reals, x: x[0] + x[1],
    "sub": lambda reals, x: x[0] - x[1],
    "mul": lambda reals, x: x[0] * x[1],
    "neg": lambda reals, x: -x[0],
    "shift": lambda reals, x: x[0],
    "div": lambda reals, x: x[0] * reals.inverse(x[1]),
    "square": lambda reals, x: x[0] * x[0],
    "reciprocal": lambda reals, x: reals.inverse(x[0]),
    "rsqrt": lambda reals, x: reals.inverse(Polynomial.of(Term("sqrt", (x[0],)))),
    "sigmoid": lambda reals, x: reals.inverse(ONE + Polynomial.of(Term("exp", (-x[0],)))),
    "relu": lambda reals, x: reals._extreme("maximum", [x[0], ZERO]),
    "logical_not": lambda reals, x: ONE - x[0],
    "logical_and": lambda reals, x: x[0] * x[1],
    "logical_xor": lambda reals, x: x[0] + x[1] - (x[0] * x[1]).scaled(Fraction(2)),
    "logical_or": lambda reals, x: ONE - (ONE - x[0]) * (ONE - x[1]),
    "silu": lambda reals, x: x[0] * _RATIONAL["sigmoid"](reals, x),
    "abs": lambda reals, x: reals._absolute(x[0]),
    "softplus": lambda reals, x: reals._softplus(x[0]),
    "logaddexp": lambda reals, x: x[0] + reals._softplus(x[1] - x[0]),
    "log_sigmoid": lambda reals, x: -reals._softplus(-x[0]),
    "sign": lambda reals, x: (
        reals._relation("gt", x[0], False) - reals._relation("gt", -x[0], False)
    ),
}
