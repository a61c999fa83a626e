"""Deltas under sums: [P == 0] solved for a bound variable, flattened indices split.

In: binders and the factors under them.  Out: the sum with a variable gone, or None.
"""

from __future__ import annotations

import itertools

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import integers, multiply, relations, signs, substitute, sums
from symgrad.proof.normal.atoms import Atom, Monomial, Number
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import ONE, Poly, magnitude, of_atom, plain_product

Exponents = dict[Atom, Number]


def eliminate(context: Context, binders: list[Atom], factors: Exponents) -> Poly | None:
    """``sum_v [v == e] f(v)`` is ``[e in range] f(e)``.  [rule: delta].

    Solutions that are provably in range are preferred; then a pair of variables that run over
    a flattened index; then a solution with its range conditions; then one with a factor.
    """
    bound = frozenset(binders)
    equalities = [a for a in factors if a.kind == kinds.EQUAL and a.free & bound]
    if not equalities:
        return _window(context, binders, factors)
    equalities.sort(key=lambda a: (a.erased, a.key))
    for attempt in (_in_range_solution, _flattened_pair, _guarded_solution, _divided_solution):
        for atom in equalities:
            order = sorted((v for v in binders if v in atom.free), key=lambda v: v.key)
            found = attempt(context, atom.data[0], order)
            if found is not None:
                solution, guard = found
                rest = {a: e for a, e in factors.items() if a is not atom}
                body = multiply.monomial_poly(context, rest)
                body = substitute.substitute(context, body, solution)
                body = multiply.multiply(context, guard, body)
                return sums.sum_over(context, [v for v in binders if v not in solution], body)
    return None


Solution = tuple[dict[Atom, Poly], Poly]


def _linear(poly: Poly, variable: Atom) -> tuple[Monomial, Number, Poly] | None:
    """``(m, c, rest)`` with ``poly == c * m * variable + rest``, where nothing else holds it."""
    holders = [m for m in poly.terms if any(variable in a.free for a, _ in m)]
    if len(holders) != 1:
        return None
    (monomial,) = holders
    others = tuple((a, e) for a, e in monomial if a is not variable)
    if dict(monomial).get(variable) != 1 or any(variable in a.free for a, _ in others):
        return None
    value = poly.terms[monomial]
    return others, value, poly - Poly({monomial: value})


def _solutions(poly: Poly, order: list[Atom]) -> list[tuple[Atom, Poly]]:
    """The variables with coefficient 1 or -1, and what they equal."""
    found = []
    for variable in order:
        linear = _linear(poly, variable)
        if linear is not None and not linear[0] and linear[1] in (1, -1):
            found.append((variable, linear[2].scaled(-linear[1])))
    return found


def _window(context: Context, binders: list[Atom], factors: Exponents) -> Poly | None:
    """``sum_v [0 <= e - m v < m] f(v)`` is f at ``v = e // m``.  [rule: flatten]."""
    bounds = [a for a in factors if a.kind == kinds.ATLEAST]
    for lower, upper in itertools.permutations(bounds, 2):
        width: Poly = (lower.data[0] + upper.data[0]).plus(1)
        for variable in binders:
            linear = _linear(lower.data[0], variable)
            if linear is None or variable in width.free:
                continue
            if Poly({linear[0]: -linear[1]}) != width:
                continue
            if not signs.integer_nonnegative(context, width.plus(-1)):
                continue
            value = integers.floordiv(context, linear[2], width)
            rest = {a: e for a, e in factors.items() if a is not lower and a is not upper}
            body = multiply.monomial_poly(context, rest)
            body = substitute.substitute(context, body, {variable: value})
            guard = _range_guard(context, value, variable.data[1])
            body = multiply.multiply(context, guard, body)
            return sums.sum_over(context, [v for v in binders if v is not variable], body)
    return None


def _in_range_solution(context: Context, poly: Poly, order: list[Atom]) -> Solution | None:
    for variable, value in _solutions(poly, order):
        if signs.integer_nonnegative(context, value) and signs.integer_nonnegative(
            context, (variable.data[1] - value).plus(-1)
        ):
            return {variable: value}, ONE
    return None


def _guarded_solution(context: Context, poly: Poly, order: list[Atom]) -> Solution | None:
    for variable, value in _solutions(poly, order):
        return {variable: value}, _range_guard(context, value, variable.data[1])
    return None


def _range_guard(context: Context, value: Poly, extent: Poly) -> Poly:
    return multiply.multiply(
        context,
        relations.at_least(context, value),
        relations.at_least(context, (extent - value).plus(-1)),
    )


def _flattened_pair(context: Context, poly: Poly, order: list[Atom]) -> Solution | None:
    """``[m a + b == e]`` with b over m values: ``a = e // m``, ``b = e % m``.  [rule: flatten]."""
    for low, rest in _solutions(poly, order):
        extent: Poly = low.data[1]
        for high in order:
            linear = _linear(rest, high)
            if high is low or linear is None:
                continue
            stride = Poly({linear[0]: -linear[1]})
            if stride != extent:
                continue
            value = rest - plain_product(Poly({linear[0]: linear[1]}), high)
            quotient = integers.floordiv(context, value, extent)
            remainder = integers.remainder(context, value, extent)
            guard = _range_guard(context, quotient, high.data[1])
            return {high: quotient, low: remainder}, guard
    return None


def _divided_solution(context: Context, poly: Poly, order: list[Atom]) -> Solution | None:
    """``[m a == e]``: ``a = e // m`` where m divides e.  [rule: stride]."""
    for variable in order:
        linear = _linear(poly, variable)
        if linear is None:
            continue
        stride, value = Poly({linear[0]: magnitude(linear[1])}), linear[2]
        if any(not isinstance(c, int) for c in poly.terms.values()):
            continue
        if linear[1] > 0:
            value = -value
        if not signs.integer_nonnegative(context, stride.plus(-1)):
            continue
        quotient = integers.floordiv(context, value, stride)
        rest = integers.remainder(context, value, stride)
        guard = _range_guard(context, quotient, variable.data[1])
        exact = relations.equal_integers(context, rest)
        return {variable: quotient}, multiply.multiply(context, guard, exact)
    return None


# -- flattened indices


def split_flattened(context: Context, binders: list[Atom], factors: Exponents) -> Poly | None:
    """A variable k with ``k // m`` in a factor runs as ``m a + b``.  [rule: flatten]."""
    bound = frozenset(binders)
    found: list[tuple[Number, Atom, Poly, Poly]] = []
    for atom in factors:
        if atom.divides and atom.free & bound:
            _find_quotients(atom, bound, found)
    if not found:
        return None
    found.sort(key=lambda item: (item[0], item[2].key), reverse=True)
    _, index, divisor, parts = found[0]
    high, low = context.fresh(parts), context.fresh(divisor)
    whole = plain_product(divisor, high) + of_atom(low)
    body = multiply.monomial_poly(context, factors)
    body = substitute.substitute(context, body, {index: whole})
    return sums.sum_over(context, [v for v in binders if v is not index] + [high, low], body)


def _find_quotients(
    item: object, bound: frozenset[Atom], found: list[tuple[Number, Atom, Poly, Poly]]
) -> None:
    """Quotients of a bound variable by a divisor of its extent, the largest first."""
    if isinstance(item, Poly):
        for monomial in item.terms:
            for atom, _ in monomial:
                _find_quotients(atom, bound, found)
    elif isinstance(item, tuple):
        for part in item:
            _find_quotients(part, bound, found)
    elif isinstance(item, Atom) and item.divides and item.free & bound:
        if item.kind == kinds.FLOORDIV:
            index, divisor = item.data[0].atom, item.data[1]
            if index in bound and index is not None:
                parts = signs.quotient(index.data[1], divisor)
                if parts is not None:
                    found.append((_magnitude(divisor), index, divisor, parts))
        elif item.kind != kinds.INDEX:
            _find_quotients(item.data, bound, found)


def _magnitude(poly: Poly) -> Number:
    degree = sum(e for _, e in poly.lead)
    return degree * 1_000_000 + poly.terms[poly.lead]


def merge_flattened(context: Context, binders: list[Atom], factors: Exponents) -> Poly | None:
    """Variables a, b that occur as ``m a + b`` only, b over m values, become one.

    [rule: flatten]
    """
    if len(binders) < 2 or not any(len(i.free) > 1 for a in factors for i in index_expressions(a)):
        return None
    for low in binders:
        for high in binders:
            if high is low or not _looks_flattened(factors, high, low):
                continue
            extent = plain_product(high.data[1], low.data[1])
            joint = context.fresh(extent)
            value = of_atom(joint) - plain_product(low.data[1], high)
            body = multiply.monomial_poly(context, factors)
            body = substitute.substitute(context, body, {low: value})
            if high not in body.free:
                rest = [v for v in binders if v is not high and v is not low]
                return sums.sum_over(context, [*rest, joint], body)
    return None


def _looks_flattened(factors: Exponents, high: Atom, low: Atom) -> bool:
    """Does each index expression that holds one of the two hold ``m * high + low``?"""
    seen = False
    for atom in factors:
        for index in index_expressions(atom):
            if high not in index.free and low not in index.free:
                continue
            seen = True
            linear = _linear(index, high), _linear(index, low)
            if linear[0] is None or linear[1] is None or linear[1][0]:
                return False
            stride = Poly({linear[0][0]: linear[0][1]})
            if stride != low.data[1].scaled(linear[1][1]):
                return False
    return seen


def index_expressions(item: object) -> tuple[Poly, ...]:
    """All index expressions of leaves inside an atom."""
    if isinstance(item, Atom):
        if item.index_cache is None:
            if item.kind == kinds.LEAF:
                item.index_cache = item.data[1]
            else:
                item.index_cache = () if item.kind == kinds.INDEX else index_expressions(item.data)
        return item.index_cache
    parts: list[object] = []
    if isinstance(item, Poly):
        parts = [atom for monomial in item.terms for atom, _ in monomial]
    elif isinstance(item, tuple):
        parts = list(item)
    return tuple(dict.fromkeys(index for part in parts for index in index_expressions(part)))
