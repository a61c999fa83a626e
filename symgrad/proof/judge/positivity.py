"""Conditions that always hold: a sufficient test of signs, stronger than that of the normal form.

In: a polynomial of a finished proof and its context.  Out: is it positive, is it nonnegative?

Four rules on top of ``normal.signs``.  Cauchy-Schwarz: ``(sum a*b)**2 <= sum a**2 * sum b**2``,
put for squares of sums with a negative coefficient; so a variance is not negative.  A sum of what
is not negative is at least its first summand, its last, and that at a free index of its extent.
Sums over the same indices are one sum, whose integrand may be nonnegative.  A quadratic form in
monomials is nonnegative where its symmetric matrix, eliminated exactly, has no negative pivot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice, product
from math import gcd, lcm

from symgrad.budgets import (
    POSITIVITY_BOUNDS,
    POSITIVITY_DEPTH,
    POSITIVITY_ROOTS,
    POSITIVITY_TERMS,
    POSITIVITY_WORK,
)
from symgrad.fitted import note, noted
from symgrad.proof.judge.families import Families, is_cut, tensors_in
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import labels
from symgrad.proof.normal.algebra import (
    NONNEGATIVE,
    POSITIVE,
    UNKNOWN,
    factor_sign,
    integer_nonnegative,
    is_filled,
    monomial_poly,
    multiply,
    poly_sign,
    substitute,
)
from symgrad.proof.normal.algebra import primitive as cleared
from symgrad.proof.normal.atoms import Atom, Monomial, Number, Undecided
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.facts import Facts
from symgrad.proof.normal.poly import (
    ONE,
    ZERO,
    Poly,
    exact,
    of_atom,
    ordered,
    plain_product,
    total,
)
from symgrad.proof.normal.sums import sum_over


def holds(
    context: Proof, poly: Poly, relation: str, families: Families | None = None
) -> bool:  # fmt: skip
    """Does ``poly > 0`` (``>=``, ``!=``) hold wherever ``poly`` is defined?  False: not shown.

    ``families``: writes out contractions, where it is not shown without.
    """
    if _holds(context, poly, relation):
        return True
    cut = families is not None and any(map(is_cut, tensors_in(poly)))
    whole = families.written_out(poly) if families is not None and cut else None
    return whole is not None and _holds(context, whole, relation)


def _holds(context: Proof, poly: Poly, relation: str) -> bool:
    if len(poly.terms) > POSITIVITY_TERMS:
        return False
    question = "sign", relation, str(poly)
    facts = replace(context.facts, plain=context.facts.plain & tensors_in(poly))
    open_for: list[Facts] = noted(question) or []
    if facts in open_for:
        return False
    before, context.budget = context.budget, context.work + POSITIVITY_WORK
    try:
        found = max(_sign(context, one, 0) for one in dict.fromkeys((poly, cleared(context, poly))))
    except Undecided:
        note(question, [*open_for, facts])  # it would take as long for each gradient
        return False
    finally:
        context.budget = before
    return found == POSITIVE or (relation == ">=" and found == NONNEGATIVE)


def _sign(context: Proof, poly: Poly, depth: int) -> int:
    """The greatest sign that is shown of ``poly`` itself or of a lower bound of it."""
    found = poly_sign(context, poly)
    if found != POSITIVE:
        found = max(found, _by_squares(context, poly, depth))
    if found != POSITIVE and depth < POSITIVITY_DEPTH:
        for lower in islice(_lower_bounds(context, poly), POSITIVITY_BOUNDS):
            found = max(found, _sign(context, lower, depth + 1))
            if found == POSITIVE:
                break
    return found


# -- Cauchy-Schwarz


def _lower_bounds(context: Proof, poly: Poly) -> Iterator[Poly]:
    """``poly`` with the square of a sum that counts against it replaced by its upper bound."""
    for monomial, value in poly.terms.items():
        for atom, exponent in monomial:
            if value > 0 or atom.kind != kinds.SUM or not _even(exponent):
                continue
            rest = {a: e for a, e in monomial if a is not atom}
            if any(factor_sign(context, a, e) == UNKNOWN for a, e in rest.items()):
                continue
            rest[atom] = exponent - 2
            factor = monomial_poly(context, {a: e for a, e in rest.items() if e})
            others = poly - Poly({monomial: value})
            for bound in _square_bounds(context, atom):
                yield others + multiply(context, factor, bound).scaled(value)
    yield from _bounds_of_forms(context, poly)
    yield from _single_summands(context, poly)


def _single_summands(context: Proof, poly: Poly) -> Iterator[Poly]:
    """``poly`` with a sum of what is not negative replaced by one summand.

    The first, the last, and those at indices that the summand itself is about: of
    ``sum_{j} exp(x[j])*[index[j] == index[i]]`` that at ``i``.
    """
    for monomial, value in poly.terms.items():
        for atom, exponent in monomial:
            if value <= 0 or atom.kind != kinds.SUM or exponent != 1:
                continue
            rest = {a: e for a, e in monomial if a is not atom}
            binders, inner = atom.data
            summand = Poly({inner: 1})
            if any(factor_sign(context, a, e) == UNKNOWN for a, e in rest.items()) or (
                poly_sign(context, summand) == UNKNOWN
            ):
                continue
            lasts = [binder.data[1].plus(-1) for binder in binders]
            if not all(integer_nonnegative(context, last) for last in lasts):
                continue
            others, factor = poly - Poly({monomial: value}), monomial_poly(context, rest)
            for places in ([ZERO] * len(lasts), lasts, *_own_indices(binders, summand)):
                one = substitute(context, summand, dict(zip(binders, places, strict=True)))
                yield others + multiply(context, factor, one).scaled(value)


def _own_indices(binders: Sequence[Atom], summand: Poly) -> Iterator[list[Poly]]:
    """Free indices of a summand that run as far as the binders do."""
    free = sorted({a for m in summand.terms for factor, _ in m for a in factor.free}, key=_by_key)
    ways = [
        [of_atom(one) for one in free if one not in binders and one.data[1] == binder.data[1]]
        for binder in binders
    ]
    yield from map(list, islice(product(*ways), POSITIVITY_BOUNDS))


def _bounds_of_forms(context: Proof, poly: Poly) -> Iterator[Poly]:
    """The same for quadratic forms in several sums over indices of the same extents."""
    groups: dict[tuple[Monomial, tuple[Poly, ...]], dict[Monomial, Number]] = {}
    for monomial, value in poly.terms.items():
        pair = [(a, e) for a, e in monomial if a.kind == kinds.SUM and e in (1, 2)]
        extents = [tuple(binder.data[1] for binder in a.data[0]) for a, _ in pair]
        if sum(e for _, e in pair) == 2 and len(set(extents)) == 1:
            rest = tuple(item for item in monomial if item not in pair)
            groups.setdefault((rest, extents[0]), {})[monomial] = value
    for (rest, shape), terms in groups.items():
        atoms = sorted({a for m in terms for a, _ in m} - {a for a, _ in rest}, key=_by_key)
        if len(atoms) < 2 or any(factor_sign(context, a, e) == UNKNOWN for a, e in rest):
            continue
        squares = diagonal(_matrix(terms, rest, atoms))
        if squares is None:
            continue
        lower = poly - Poly(terms)
        for scale, row in squares:
            if scale < 0:
                bound = _bound_of_row(context, shape, atoms, row)
                whole = multiply(context, Poly({rest: 1}), bound)
                lower = lower + whole.scaled(exact(scale))
        yield lower


def _by_key(atom: Atom) -> int:
    return atom.key


def _matrix(
    terms: dict[Monomial, Number], rest: Monomial, atoms: list[Atom]
) -> list[list[Fraction]]:
    matrix = [[Fraction(0)] * len(atoms) for _ in atoms]
    for monomial, value in terms.items():
        places = [atoms.index(a) for item in monomial if item not in rest for a in (item[0],)]
        row, column = places[0], places[-1]
        share = Fraction(value) / (1 if row == column else 2)
        matrix[row][column] = matrix[column][row] = share
    return matrix


def _bound_of_row(
    context: Proof, extents: tuple[Poly, ...], atoms: list[Atom], row: list[Fraction]
) -> Poly:
    """``E * sum f**2``, an upper bound of the square of ``sum f``: a combination of sums."""
    fresh = [context.fresh(extent) for extent in extents]
    parts = []
    for atom, value in zip(atoms, row, strict=True):
        if value:
            renaming = dict(zip(atom.data[0], fresh, strict=True))
            parts.append(
                Poly({labels.rename_monomial(context, atom.data[1], renaming): exact(value)})
            )
    body = total(parts)
    bound = sum_over(context, fresh, multiply(context, body, body))
    for extent in extents:
        bound = multiply(context, bound, extent)
    return bound


def _even(exponent: Number) -> bool:
    return isinstance(exponent, int) and exponent >= 2 and exponent % 2 == 0


def _square_bounds(context: Proof, atom: Atom) -> Iterator[Poly]:
    """``sum a**2 * sum b**2`` for each way to write the summand as ``a * b``.

    A factor goes to one side, or by its square root to both where it is not negative.
    """
    monomial: Monomial = atom.data[1]
    shares = []
    for factor, exponent in monomial:
        own: list[tuple[Number, Number]] = [(0, 2 * exponent), (2 * exponent, 0)]
        if factor_sign(context, factor, exponent) != UNKNOWN:
            own.insert(0, (exponent, exponent))
        shares.append(own)
    seen: set[Poly] = set()
    for choice in islice(product(*shares), 9):
        bound = ONE
        for side in (0, 1):
            squared = ordered({f: s[side] for (f, _), s in zip(monomial, choice, strict=True)})
            bound = multiply(context, bound, _sum(context, atom, squared))
        if bound not in seen:
            seen.add(bound)
            yield bound


def _sum(context: Proof, like: Atom, monomial: Monomial) -> Poly:
    """The sum of a monomial over the indices of a sum atom."""
    fresh = [context.fresh(binder.data[1]) for binder in like.data[0]]
    renaming = dict(zip(like.data[0], fresh, strict=True))
    inner = labels.rename_monomial(context, monomial, renaming)
    return sum_over(context, fresh, monomial_poly(context, dict(inner)))


# -- sums over the same indices, and quadratic forms


def _by_squares(context: Proof, poly: Poly, depth: int) -> int:
    """The sign of a polynomial as sums of nonnegative integrands and a quadratic form."""
    groups, rest = _grouped(context, poly)
    found = NONNEGATIVE
    for factor, extents, integrand in groups:
        part = min(
            min((factor_sign(context, a, e) for a, e in factor), default=POSITIVE),
            _integrand_sign(context, integrand, depth),
        )
        if part == POSITIVE and not is_filled(context, extents):
            part = NONNEGATIVE
        if part == UNKNOWN:
            return UNKNOWN
        found = max(found, part)
    return UNKNOWN if (own := _form_sign(context, rest)) == UNKNOWN else max(found, own)


def _integrand_sign(context: Proof, integrand: Poly, depth: int) -> int:
    found = poly_sign(context, integrand)
    if found != UNKNOWN:
        return found
    return _form_sign(context, integrand) if depth == 0 or len(integrand.terms) < 8 else UNKNOWN


def _grouped(
    context: Proof, poly: Poly
) -> tuple[list[tuple[Monomial, tuple[Poly, ...], Poly]], Poly]:
    """Terms ``factor * sum`` with one factor and indices of one extent; and what is left."""
    found: dict[tuple[Monomial, tuple[Poly, ...]], tuple[list[Atom], list[Poly]]] = {}
    rest: dict[Monomial, Number] = {}
    for monomial, value in poly.terms.items():
        atoms = [a for a, e in monomial if a.kind == kinds.SUM and e == 1]
        if len(atoms) != 1:
            rest[monomial] = value
            continue
        (atom,) = atoms
        factor = tuple((a, e) for a, e in monomial if a is not atom)
        extents = tuple(binder.data[1] for binder in atom.data[0])
        fresh, parts = found.setdefault(
            (factor, extents), ([context.fresh(extent) for extent in extents], [])
        )
        renaming = dict(zip(atom.data[0], fresh, strict=True))
        inner = labels.rename_monomial(context, atom.data[1], renaming)
        parts.append(Poly({inner: value}))
    groups = [(*key, total(parts)) for key, (_, parts) in found.items()]
    return groups, Poly(rest)


def _form_sign(context: Proof, poly: Poly) -> int:
    """The sign of nonnegative terms and a quadratic form in monomials.

    Positive terms are first left out of the form, then taken into it.
    """
    signed = {
        m: UNKNOWN if c < 0 else
        min((factor_sign(context, a, e) for a, e in m), default=POSITIVE)
        for m, c in poly.terms.items()
    }  # fmt: skip
    for least in (POSITIVE, POSITIVE + 1):
        form = {
            m: c for m, c in poly.terms.items()
            if signed[m] < least and (signed[m] == UNKNOWN or _is_square(m))
        }  # fmt: skip
        roots = [_root(m) for m, c in form.items() if c > 0 and _is_square(m)]
        roots.sort(key=lambda root: -len(root))
        own = _quadratic_sign(form, roots)
        if own != UNKNOWN:
            return max((sign for m, sign in signed.items() if m not in form), default=own)
    return UNKNOWN


def _is_square(monomial: Monomial) -> bool:
    return all(isinstance(e, int) and e % 2 == 0 for _, e in monomial)


def _root(monomial: Monomial) -> Monomial:
    return tuple((a, exact(Fraction(e) / 2)) for a, e in monomial)


def _quadratic_sign(terms: dict[Monomial, Number], roots: list[Monomial]) -> int:
    """The sign of a form ``h^T G h`` in the monomials ``h``; positive with a number to spare."""
    size = len(roots)
    if not terms:
        return NONNEGATIVE
    if not 0 < size <= POSITIVITY_ROOTS:
        return UNKNOWN
    place: dict[Monomial, tuple[int, int]] = {}
    for i in range(size):
        for j in range(i, size):
            pair = plain_product(Poly({roots[i]: 1}), Poly({roots[j]: 1}))
            place.setdefault(next(iter(pair.terms)), (i, j))
    matrix = [[Fraction(0)] * size for _ in range(size)]
    for monomial, value in terms.items():
        at = place.get(monomial)
        if at is None:
            return UNKNOWN
        share = Fraction(value) / (1 if at[0] == at[1] else 2)
        matrix[at[0]][at[1]] = matrix[at[1]][at[0]] = share
    squares = diagonal(matrix)
    if squares is None or any(scale < 0 for scale, _ in squares):
        return UNKNOWN
    spare = not roots[-1] and any(not any(row[:-1]) for _, row in squares)
    return POSITIVE if spare else NONNEGATIVE


def diagonal(matrix: list[list[Fraction]]) -> list[tuple[Fraction, list[Fraction]]] | None:
    """A quadratic form as ``sum scale * (row . h)**2``; None where a pivot is 0 but its row not."""
    rows = [list(row) for row in matrix]
    found = []
    for pivot, row in enumerate(rows):
        head = row[pivot]
        if not head:
            if any(row[pivot + 1 :]):
                return None
            continue
        unit = [Fraction(0)] * pivot + [value / head for value in row[pivot:]]
        found.append((head, unit))
        for other in rows[pivot + 1 :]:
            scale = other[pivot]
            for column in range(pivot, len(row)):
                other[column] -= scale * unit[column]
    return found


# -- one way to write a condition


def primitive(context: Proof, poly: Poly) -> Poly:
    """``poly`` without positive factors that all terms share, its coefficients coprime integers."""
    shared: dict[Atom, Number] | None = None
    for monomial in poly.terms:
        own = dict(monomial)
        if shared is None:
            shared = own
        else:
            shared = {a: min(shared.get(a, 0), own.get(a, 0)) for a in {**shared, **own}}
    divisor = {
        a: e for a, e in (shared or {}).items()
        if e and factor_sign(context, a, e) == POSITIVE
    }  # fmt: skip
    scale = Fraction(0)
    terms: dict[Monomial, Number] = {}
    for monomial, value in poly.terms.items():
        exponents = dict(monomial)
        for atom, exponent in divisor.items():
            exponents[atom] = exponents.get(atom, 0) - exponent
        terms[ordered(exponents)] = value
        scale = _common(scale, Fraction(value))
    return Poly({m: exact(Fraction(c) / scale) for m, c in terms.items()}) if terms else ZERO


def _common(one: Fraction, other: Fraction) -> Fraction:
    """The greatest rational of which both are integer multiples."""
    if not one:
        return abs(other)
    return Fraction(
        gcd(one.numerator, other.numerator), lcm(one.denominator, other.denominator)
    )  # fmt: skip
