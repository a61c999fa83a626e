"""One connected component of a sum: folding, reversal, closed forms, labelling.

In: binders and the factors that connect them.  Out: a polynomial, usually one sum atom.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import (
    deltas,
    labels,
    leaves,
    multiply,
    permutations,
    relations,
    signs,
    substitute,
    sums,
)
from symgrad.proof.normal.atoms import Atom, Number
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import ONE, Poly, of_atom, plain_product

Exponents = dict[Atom, Number]


def component(context: Context, binders: list[Atom], factors: Exponents) -> Poly:
    """The sum of one connected component."""
    rules = (
        _inverse_matrix, _cholesky_product, permutations.counted_once, _fold, _reverse,
        deltas.merge_flattened, _closed_form,
    )  # fmt: skip
    for rule in rules:
        changed = rule(context, binders, factors)
        if changed is not None:
            return changed
    return of_atom(labels.close(context, binders, factors))


def _fold(context: Context, binders: list[Atom], factors: Exponents) -> Poly | None:
    """An inner sum is folded up where its inverse is a factor: softmax rows sum to 1.

    [rule: fold]
    """
    for atom, exponent in factors.items():
        if exponent >= 0 or atom.kind not in (kinds.SUM, kinds.POWER) or not atom.free:
            continue
        for inner in _inverted_sums(atom):
            count = len(inner.data[0])
            if count >= len(binders):
                continue
            for chosen in itertools.combinations(binders, count):
                folded = _fold_one(context, binders, factors, atom, inner, chosen)
                if folded is not None:
                    return folded
    return None


def _inverted_sums(atom: Atom) -> list[Atom]:
    if atom.kind == kinds.SUM:
        return [atom]
    return [a for a, e in atom.data[0].lead if a.kind == kinds.SUM and e == 1]


def _fold_one(
    context: Context,
    binders: list[Atom],
    factors: Exponents,
    inverted: Atom,
    inner: Atom,
    chosen: tuple[Atom, ...],
) -> Poly | None:
    context.spend(1)
    inside = {a: e for a, e in factors.items() if a.free & set(chosen)}
    if inverted in inside or len(inside) != len(inner.data[1]):
        return None
    if sorted(inside.values()) != sorted(e for _, e in inner.data[1]):
        return None
    if labels.close(context, list(chosen), inside) is not inner:
        return None
    rest = {a: e for a, e in factors.items() if a not in inside}
    rest[inner] = rest.get(inner, 0) + 1
    body = multiply.monomial_poly(context, rest)
    if any(a is inner and e == 1 for m in body.terms for a, e in m):
        return None
    return sums.sum_over(context, [v for v in binders if v not in chosen], body)


def _reverse(context: Context, binders: list[Atom], factors: Exponents) -> Poly | None:
    """``k`` becomes ``n - 1 - k`` where every access runs backwards in it.  [rule: reverse]."""
    for binder in binders:
        slopes = [
            value
            for atom in factors
            for index in deltas.index_expressions(atom)
            for monomial, value in index.terms.items()
            if monomial == ((binder, 1),)
        ]
        if slopes and max(slopes) < 0:
            fresh = context.fresh(binder.data[1])
            value = (binder.data[1] - of_atom(fresh)).plus(-1)
            body = multiply.monomial_poly(context, factors)
            body = substitute.substitute(context, body, {binder: value})
            rest = [fresh if v is binder else v for v in binders]
            return sums.sum_over(context, rest, body)
    return None


def _inverse_matrix(context: Context, binders: list[Atom], factors: Exponents) -> Poly | None:
    """``sum_k A[i,k] B[k,j] = [i == j]`` where B is declared the inverse of A.

    [rule: inverse-matrix]
    """
    inverses = context.facts.inverses
    if not inverses:
        return None
    for binder in binders:
        holders = [a for a in factors if binder in a.free]
        if len(holders) != 2 or any(a.kind != kinds.LEAF or factors[a] != 1 for a in holders):
            continue
        for left, right in (holders, holders[::-1]):
            names = left.data[0], right.data[0]
            if inverses.get(names[0]) != names[1] and inverses.get(names[1]) != names[0]:
                continue
            ends = _matrix_ends(left, right, binder)
            if ends is not None:
                rest = {a: e for a, e in factors.items() if a not in holders}
                delta = relations.equal_integers(context, ends[0] - ends[1])
                body = multiply.multiply(context, multiply.monomial_poly(context, rest), delta)
                return sums.sum_over(context, [v for v in binders if v is not binder], body)
    return None


def _cholesky_product(context: Context, binders: list[Atom], factors: Exponents) -> Poly | None:
    """``sum_k L[i,k] L[j,k] = (A[i,j] + A[j,i]) / 2`` for the Cholesky factor L of A.

    [rule: cholesky]
    """
    known = context.facts.factors
    for binder in binders if known else ():
        holders = [a for a in factors if binder in a.free]
        powers = [factors[a] for a in holders]
        if powers not in ([2], [1, 1]) or any(a.kind != kinds.LEAF for a in holders):
            continue
        first, last = holders[0], holders[-1]
        if first.data[0] != last.data[0] or first.data[0] not in known:
            continue
        ends = _common_column(first, last, binder)
        if ends is None:
            continue
        *batch, row, other = ends
        matrix = known[first.data[0]]
        both = leaves.leaf(context, matrix, (*batch, row, other)) + leaves.leaf(
            context, matrix, (*batch, other, row)
        )
        rest = {a: e for a, e in factors.items() if a not in holders}
        body = multiply.multiply(context, multiply.monomial_poly(context, rest), both)
        left = [v for v in binders if v is not binder]
        return sums.sum_over(context, left, body.scaled(Fraction(1, 2)))
    return None


def _common_column(left: Atom, right: Atom, binder: Atom) -> tuple[Poly, ...] | None:
    """The batch and the rows of ``left[..., i, k] right[..., j, k]``."""
    *batch, row, inner = left.data[1]
    *other_batch, other, other_inner = right.data[1]
    variable = of_atom(binder)
    if inner != variable or other_inner != variable or batch != other_batch:
        return None
    outside = (*batch, row, other)
    return None if any(binder in index.free for index in outside) else outside


def _matrix_ends(left: Atom, right: Atom, binder: Atom) -> tuple[Poly, Poly] | None:
    """The outer indices of ``left[..., i, k] right[..., k, j]``."""
    *batch, row, inner = left.data[1]
    *other_batch, other_inner, column = right.data[1]
    variable = of_atom(binder)
    if inner != variable or other_inner != variable or batch != other_batch:
        return None
    outside = [row, column, *batch]
    return None if any(binder in index.free for index in outside) else (row, column)


# -- closed forms


def _closed_form(context: Context, binders: list[Atom], factors: Exponents) -> Poly | None:
    """Sums of powers of the index, and counts under one condition.  [rule: closed-form]."""
    if len(binders) != 1:
        return None
    (binder,) = binders
    extent: Poly = binder.data[1]
    exponent = factors.get(binder, 0)
    others = [a for a in factors if a is not binder]
    if not isinstance(exponent, int) or not 0 <= exponent <= 4:
        return None
    if not others:
        return _power_sum(extent, exponent)
    if len(others) != 1 or others[0].kind != kinds.ATLEAST:
        return None
    condition: Poly = others[0].data[0]
    slope = condition.terms.get(((binder, 1),))
    rest = condition - of_atom(binder).scaled(slope or 0)
    if slope not in (1, -1) or binder in rest.free:
        return None
    return _counted(context, extent, rest, slope == 1, exponent)


def _counted(
    context: Context, extent: Poly, rest: Poly, upward: bool, exponent: int
) -> Poly | None:
    """The power sum over ``k >= -rest`` or ``k <= rest``, where the end is in range."""
    start = -rest if upward else rest.plus(1)
    if not signs.integer_nonnegative(context, start):
        return None
    if not signs.integer_nonnegative(context, extent - start):
        return None
    below = _power_sum(start, exponent)
    return _power_sum(extent, exponent) - below if upward else below


def _power_sum(extent: Poly, exponent: int) -> Poly:
    """``sum_{k < n} k**p`` by Bernoulli's formula."""
    result = Poly({})
    for j in range(exponent + 1):
        power = ONE
        for _ in range(exponent + 1 - j):
            power = plain_product(power, extent)
        weight = Fraction(_binomial(exponent + 1, j)) * _BERNOULLI[j] / (exponent + 1)
        result = result + power.scaled(weight)
    return result


def _binomial(n: int, k: int) -> int:
    result = 1
    for i in range(k):
        result = result * (n - i) // (i + 1)
    return result


_BERNOULLI = (Fraction(1), Fraction(-1, 2), Fraction(1, 6), Fraction(0), Fraction(-1, 30))
