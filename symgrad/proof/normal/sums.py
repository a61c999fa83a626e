"""Sums over index variables.

In: index variables and a polynomial.  Out: the sum in normal form, in which every sum atom is one
connected component.

The steps for one monomial, in order: sums inside that depend on the variables are merged, deltas
eliminated, flattened indices split where a quotient of them occurs, and what is left is taken
apart into connected components; factors that depend on no variable come out.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import partial

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.algebra import (
    at_least,
    condense,
    equal_integers,
    floordiv,
    from_dim,
    in_range,
    integer_nonnegative,
    leaf,
    monomial_poly,
    multiply,
    opened,
    quotient,
    remainder,
    substitute,
)
from symgrad.proof.normal.atoms import Atom, Monomial, Number
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.facts import Orthogonal, Spectrum
from symgrad.proof.normal.labels import close
from symgrad.proof.normal.permutations import counted_once
from symgrad.proof.normal.poly import (
    ONE,
    ZERO,
    Exponents,
    Poly,
    direct_atoms,
    magnitude,
    of_atom,
    plain_product,
    total,
)


def sum_over(context: Proof, binders: list[Atom], poly: Poly) -> Poly:
    """The sum of ``poly`` over all values of the binders.  [rule: sum-linear]."""
    if not binders or not poly.terms:
        return poly
    single = {v: ZERO for v in binders if v.data[1].constant == 1}
    if single:
        rest = [v for v in binders if v not in single]
        return sum_over(context, rest, substitute(context, poly, dict(single)))
    if any(v.data[1].constant == 0 for v in binders):
        return ZERO
    if context.factored and len(poly.terms) > 1:
        poly = condense(context, poly)
    return total(
        sum_monomial(context, list(binders), dict(monomial)).scaled(value)
        for monomial, value in poly.terms.items()
    )


def sum_monomial(context: Proof, binders: list[Atom], factors: Exponents) -> Poly:
    """The sum of one monomial."""
    context.spend(1 + len(factors))
    bound = frozenset(binders)
    for atom, exponent in factors.items():
        if atom.kind != kinds.SUM or not atom.free & bound:
            continue
        if isinstance(exponent, int) and exponent > 0:
            return _merge(context, binders, factors, atom, exponent)
    for step in (_eliminate_delta, _split_flattened):
        changed = step(context, binders, factors)
        if changed is not None:
            return changed
    return _take_apart(context, binders, factors, bound)


def _merge(
    context: Proof, binders: list[Atom], factors: Exponents, atom: Atom, exponent: int
) -> Poly:
    """An inner sum that depends on the binders becomes part of the outer one.  [rule: merge]."""
    rest = {a: e for a, e in factors.items() if a is not atom}
    body, everything = monomial_poly(context, rest), list(binders)
    for _ in range(exponent):
        fresh, monomial = opened(context, atom)
        everything += fresh
        inner = monomial_poly(context, dict(monomial))
        body = multiply(context, body, inner)
    return sum_over(context, everything, body)


def _take_apart(
    context: Proof, binders: list[Atom], factors: Exponents, bound: frozenset[Atom]
) -> Poly:
    """Connected components; a variable that nothing depends on counts its values.

    [rule: components]
    """
    outside: Exponents = {}
    groups: list[tuple[set[Atom], Exponents]] = []
    for atom, exponent in factors.items():
        touched = set(atom.free & bound)
        if not touched:
            outside[atom] = exponent
            continue
        members: Exponents = {}
        for group in [g for g in groups if g[0] & touched]:
            groups.remove(group)
            touched |= group[0]
            members.update(group[1])
        members[atom] = exponent
        groups.append((touched, members))
    result = monomial_poly(context, outside) if outside else ONE
    for binder in binders:
        if not any(binder in touched for touched, _ in groups):
            result = multiply(context, result, binder.data[1])
    for touched, members in groups:
        order = sorted(touched, key=lambda v: v.key)
        result = multiply(context, result, _component(context, order, members))
    return result


# -- deltas: [P == 0] solved for a bound variable


def _eliminate_delta(context: Proof, binders: list[Atom], factors: Exponents) -> Poly | None:
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
                body = substitute(context, monomial_poly(context, rest), solution)
                body = multiply(context, guard, body)
                return sum_over(context, [v for v in binders if v not in solution], body)
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


def _window(context: Proof, binders: list[Atom], factors: Exponents) -> Poly | None:
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
            if not integer_nonnegative(context, width.plus(-1)):
                continue
            value = floordiv(context, linear[2], width)
            rest = {a: e for a, e in factors.items() if a is not lower and a is not upper}
            body = substitute(context, monomial_poly(context, rest), {variable: value})
            guard = _range_guard(context, value, variable.data[1])
            body = multiply(context, guard, body)
            return sum_over(context, [v for v in binders if v is not variable], body)
    return None


def _in_range_solution(context: Proof, poly: Poly, order: list[Atom]) -> Solution | None:
    for variable in order:
        value = solved_in_range(context, poly, variable)
        if value is not None:
            return {variable: value}, ONE
    return None


def solved_in_range(context: Proof, poly: Poly, variable: Atom) -> Poly | None:
    """The value of an index for which an integer polynomial is 0, where it is in range."""
    for _, value in _solutions(poly, [variable]):
        if in_range(context, value, variable.data[1]):
            return value
    return None


def _guarded_solution(context: Proof, poly: Poly, order: list[Atom]) -> Solution | None:
    for variable, value in _solutions(poly, order):
        return {variable: value}, _range_guard(context, value, variable.data[1])
    return None


def _range_guard(context: Proof, value: Poly, extent: Poly) -> Poly:
    below = at_least(context, (extent - value).plus(-1))
    return multiply(context, at_least(context, value), below)


def _flattened_pair(context: Proof, poly: Poly, order: list[Atom]) -> Solution | None:
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
            whole = floordiv(context, value, extent)
            solution = {high: whole, low: remainder(context, value, extent)}
            return solution, _range_guard(context, whole, high.data[1])
    return None


def _divided_solution(context: Proof, poly: Poly, order: list[Atom]) -> Solution | None:
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
        if not integer_nonnegative(context, stride.plus(-1)):
            continue
        whole = floordiv(context, value, stride)
        rest = remainder(context, value, stride)
        guard = _range_guard(context, whole, variable.data[1])
        exact = equal_integers(context, rest)
        return {variable: whole}, multiply(context, guard, exact)
    return None


# -- flattened indices


def _split_flattened(context: Proof, binders: list[Atom], factors: Exponents) -> Poly | None:
    """A variable k with ``k // m`` in a factor runs as ``m a + b``.  [rule: flatten]."""
    bound = frozenset(binders)
    found = _quotients([a for a in factors if a.divides and a.free & bound], bound)
    if not found:
        return None
    found.sort(key=lambda item: (item[0], item[2].key), reverse=True)
    _, index, divisor, parts = found[0]
    high, low = context.fresh(parts), context.fresh(divisor)
    whole = plain_product(divisor, high) + of_atom(low)
    body = substitute(context, monomial_poly(context, factors), {index: whole})
    return sum_over(context, [v for v in binders if v is not index] + [high, low], body)


def _quotients(
    todo: list[Atom], bound: frozenset[Atom]
) -> list[tuple[Number, Atom, Poly, Poly]]:  # fmt: skip
    """Quotients of a bound variable by a divisor of its extent, in these atoms."""
    found: list[tuple[Number, Atom, Poly, Poly]] = []
    seen: set[Atom] = set()
    while todo:
        atom = todo.pop()
        if atom in seen or not (atom.divides and atom.free & bound):
            continue
        seen.add(atom)
        if atom.kind == kinds.FLOORDIV:
            index, divisor = atom.data[0].atom, atom.data[1]
            if index in bound and index is not None:
                parts = quotient(index.data[1], divisor)
                if parts is not None:
                    found.append((_magnitude(divisor), index, divisor, parts))
        elif atom.kind != kinds.INDEX:
            todo.extend(direct_atoms(atom.data))
    return found


def _magnitude(poly: Poly) -> Number:
    degree = sum(e for _, e in poly.lead)
    return degree * 1_000_000 + poly.terms[poly.lead]


def _merge_flattened(context: Proof, binders: list[Atom], factors: Exponents) -> Poly | None:
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
            body = substitute(context, monomial_poly(context, factors), {low: value})
            if high not in body.free:
                rest = [v for v in binders if v is not high and v is not low]
                return sum_over(context, [*rest, joint], body)
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


def index_expressions(atom: Atom) -> tuple[Poly, ...]:
    """All index expressions of leaves inside an atom."""
    if atom.index_cache is None:
        if atom.kind == kinds.LEAF:
            atom.index_cache = atom.data[1]
        else:
            inside = direct_atoms(atom.data) if atom.kind != kinds.INDEX else ()
            found = itertools.chain.from_iterable(map(index_expressions, inside))
            atom.index_cache = tuple(dict.fromkeys(found))
    return atom.index_cache


# -- one connected component: folding, reversal, closed forms, labelling


def _component(context: Proof, binders: list[Atom], factors: Exponents) -> Poly:
    """The sum of one connected component."""
    rules = (
        _inverse_matrix, _cholesky_product, _orthonormal, _recomposed,
        _orthogonal_product, counted_once, _fold,
        _reverse, _merge_flattened, _closed_form,
    )  # fmt: skip
    for rule in rules:
        changed = rule(context, binders, factors)
        if changed is not None:
            return changed
    return of_atom(close(context, binders, factors))


def _fold(context: Proof, binders: list[Atom], factors: Exponents) -> Poly | None:
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
    context: Proof,
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
    if close(context, list(chosen), inside) is not inner:
        return None
    rest = {a: e for a, e in factors.items() if a not in inside}
    rest[inner] = rest.get(inner, 0) + 1
    body = monomial_poly(context, rest)
    if any(a is inner and e == 1 for m in body.terms for a, e in m):
        return None
    return sum_over(context, [v for v in binders if v not in chosen], body)


def _reverse(context: Proof, binders: list[Atom], factors: Exponents) -> Poly | None:
    """``k`` becomes ``n - 1 - k`` where every access runs backwards in it.  [rule: reverse]."""
    for binder in binders:
        slopes = [
            value
            for atom in factors
            for index in index_expressions(atom)
            for monomial, value in index.terms.items()
            if monomial == ((binder, 1),)
        ]
        if slopes and max(slopes) < 0:
            fresh = context.fresh(binder.data[1])
            value = (binder.data[1] - of_atom(fresh)).plus(-1)
            body = substitute(context, monomial_poly(context, factors), {binder: value})
            rest = [fresh if v is binder else v for v in binders]
            return sum_over(context, rest, body)
    return None


def _inverse_matrix(context: Proof, binders: list[Atom], factors: Exponents) -> Poly | None:
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
            name, other = left.data[0], right.data[0]
            inverse = name if inverses.get(name) == other else other
            if inverses.get(inverse) not in (name, other) or not _is_whole(
                context, binder, inverse
            ):
                continue
            outside = _outside_indices(left, right, binder, -2)
            if outside is not None:
                rest = {a: e for a, e in factors.items() if a not in holders}
                delta = equal_integers(context, outside[-2] - outside[-1])
                body = multiply(context, monomial_poly(context, rest), delta)
                return sum_over(context, [v for v in binders if v is not binder], body)
    return None


def _cholesky_product(context: Proof, binders: list[Atom], factors: Exponents) -> Poly | None:
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
        if not _is_whole(context, binder, first.data[0]):
            continue
        outside = _outside_indices(first, last, binder, -1)
        if outside is None:
            continue
        *batch, row, other = outside
        matrix = known[first.data[0]]
        both = leaf(context, matrix, (*batch, row, other)) + leaf(
            context, matrix, (*batch, other, row)
        )
        rest = {a: e for a, e in factors.items() if a not in holders}
        body = multiply(context, monomial_poly(context, rest), both)
        left = [v for v in binders if v is not binder]
        return sum_over(context, left, body.scaled(Fraction(1, 2)))
    return None


def _is_whole(context: Proof, binder: Atom, matrix: str) -> bool:
    """Does a binder run over all rows of an inverse, or of a factor?"""
    length = context.facts.lengths.get(matrix)
    return length is not None and binder.data[1] == from_dim(context, length)


def _orthonormal(context: Proof, binders: list[Atom], factors: Exponents) -> Poly | None:
    """``sum_k U[k,i] U[k,j] = [i == j]`` for orthonormal columns; of a square one, its rows too.

    [rule: orthonormal]
    """
    spectra: dict[str, Spectrum | Orthogonal] = {
        **context.facts.spectra, **context.facts.orthogonal
    }  # fmt: skip
    for binder in binders if spectra else ():
        holders = [a for a in factors if binder in a.free]
        powers = [factors[a] for a in holders]
        if powers not in ([2], [1, 1]) or any(a.kind != kinds.LEAF for a in holders):
            continue
        first, last = holders[0], holders[-1]
        known = spectra.get(first.data[0])
        if known is None or first.data[0] != last.data[0]:
            continue
        length = known.length(first.data[0])
        outside = _of_columns(first, last, binder)
        if outside is None and length == known.count:
            outside = _outside_indices(first, last, binder, -1)
        if outside is None or binder.data[1] != from_dim(context, length):
            continue
        rest = {a: e for a, e in factors.items() if a not in holders}
        delta = equal_integers(context, outside[-2] - outside[-1])
        body = multiply(context, monomial_poly(context, rest), delta)
        return sum_over(context, [v for v in binders if v is not binder], body)
    return None


def _of_columns(left: Atom, right: Atom, binder: Atom) -> tuple[Poly, ...] | None:
    """``(..., i, j)`` of ``left[..., k, i] right[..., k, j]``."""
    *batch, inner, column = left.data[1]
    *others, other_inner, other = right.data[1]
    variable = of_atom(binder)
    if inner != variable or other_inner != variable or batch != others:
        return None
    outside = (*batch, column, other)
    return None if any(binder in index.free for index in outside) else outside


def _recomposed(context: Proof, binders: list[Atom], factors: Exponents) -> Poly | None:
    """``sum_k U[i,k] s[k] V[j,k] = A[i,j]``; of eigenvectors, the symmetric part.

    [rule: spectrum]
    """
    spectra = context.facts.spectra
    for binder in binders if spectra else ():
        holders = [a for a in factors if binder in a.free]
        if len(holders) not in (2, 3) or any(a.kind != kinds.LEAF for a in holders):
            continue
        several = [a for a in holders for _ in range(_times(factors[a]))]
        vectors = [a for a in several if a.data[0] in spectra]
        values = [a for a in several if a.data[0] not in spectra]
        if len(vectors) != 2 or len(values) != 1:
            continue
        known = spectra[vectors[0].data[0]]
        if vectors[0].data[0] != known.left:
            vectors.reverse()
        first, last = vectors
        names = tuple(a.data[0] for a in (*vectors, *values))
        outside = _outside_indices(first, last, binder, -1)
        if names != (known.left, known.right, known.values) or outside is None:
            continue
        *batch, row, column = outside
        if [*batch, of_atom(binder)] != list(values[0].data[1]):
            continue
        if binder.data[1] != from_dim(context, known.count):
            continue
        found = leaf(context, known.matrix, (*batch, row, column))
        if known.left == known.right:
            other = leaf(context, known.matrix, (*batch, column, row))
            found = (found + other).scaled(Fraction(1, 2))
        rest = {a: e for a, e in factors.items() if a not in holders}
        body = multiply(context, monomial_poly(context, rest), found)
        return sum_over(context, [v for v in binders if v is not binder], body)
    return None


def _orthogonal_product(context: Proof, binders: list[Atom], factors: Exponents) -> Poly | None:
    """``sum_k Q[i,k] R[k,j] = A[i,j]``, and what follows of the two other ones.

    [rule: orthogonal-factor]
    """
    known = context.facts.orthogonal.values()
    for binder in binders if known else ():
        holders = [a for a in factors if binder in a.free]
        if len(holders) != 2 or any(a.kind != kinds.LEAF or factors[a] != 1 for a in holders):
            continue
        for (left, right), one in itertools.product((holders, holders[::-1]), known):
            found = _third(context, binder, left, right, one)
            if found is not None:
                rest = {a: e for a, e in factors.items() if a not in holders}
                body = multiply(context, monomial_poly(context, rest), found)
                return sum_over(context, [v for v in binders if v is not binder], body)
    return None


def _third(
    context: Proof, binder: Atom, left: Atom, right: Atom, known: Orthogonal
) -> Poly | None:  # fmt: skip
    """``Q R = A``, ``Qᵀ A = R`` and ``A R⁻¹ = Q``, as ``left right``."""
    names = (left.data[0], right.data[0])
    across = names == (known.factor, known.matrix)
    name = known.upper if across else {
        (known.factor, known.upper): known.matrix, (known.matrix, known.inverse): known.factor,
    }.get(names)  # fmt: skip
    length = known.rows if across else known.count
    if name is None or binder.data[1] != from_dim(context, length):
        return None
    read = _of_columns if across else partial(_outside_indices, axis=-2)
    outside = read(left, right, binder)
    return None if outside is None else leaf(context, name, outside)


def _times(exponent: Number) -> int:
    """How often a factor stands there; 9 for what is no small power."""
    return exponent if isinstance(exponent, int) and 0 < exponent < 3 else 9


def _outside_indices(left: Atom, right: Atom, binder: Atom, axis: int) -> tuple[Poly, ...] | None:
    """``(..., i, j)`` of ``left[..., i, k] right[..., j, k]``; ``axis``: of k in the right one."""
    *batch, row, inner = left.data[1]
    other = list(right.data[1])
    other_inner = other.pop(axis)
    variable = of_atom(binder)
    if inner != variable or other_inner != variable or batch != other[:-1]:
        return None
    outside = (*batch, row, other[-1])
    return None if any(binder in index.free for index in outside) else outside


# -- closed forms


def _closed_form(context: Proof, binders: list[Atom], factors: Exponents) -> Poly | None:
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


def _counted(context: Proof, extent: Poly, rest: Poly, upward: bool, exponent: int) -> Poly | None:
    """The power sum over ``k >= -rest`` or ``k <= rest``, where the end is in range."""
    start = -rest if upward else rest.plus(1)
    if not integer_nonnegative(context, start):
        return None
    if not integer_nonnegative(context, extent - start):
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
        weight = Fraction(math.comb(exponent + 1, j)) * _BERNOULLI[j] / (exponent + 1)
        result = result + power.scaled(weight)
    return result


_BERNOULLI = (Fraction(1), Fraction(-1, 2), Fraction(1, 6), Fraction(0), Fraction(-1, 30))
