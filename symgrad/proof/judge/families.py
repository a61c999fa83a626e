"""Is there, for all sizes and all index values, an input at which a polynomial is not 0?

In: the base of an ``Obligation``, the context of its proof, what cut names stand for.  Out: the
integer polynomials outside whose zeros that is proved, or None where nothing is.

For fixed sizes and indices the base is a function of the elements of tensors.  Two steps get rid
of the elements.  *Peeling*: where the elements of a tensor are plain factors, and no two of them
coincide, the base is a polynomial in independent variables, and vanishes where all of its
coefficients do.  *A symbolic witness*: one formula of sizes and indices for each tensor, a number
everywhere or a number but for one element; sums over axes become closed forms, and functions of
numbers are enclosed in intervals.  What is left are polynomials in sizes and indices.  They are
not 0 by their sign, by their irreducible factors, none of which has an admissible root, or by
enclosing all values up to a bound of the roots.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import mpmath

from symgrad.budgets import FAMILY_CASES, FAMILY_POINTS, FAMILY_WORK, LARGEST_DEGREE
from symgrad.errors import SymgradError
from symgrad.proof.judge.masks import is_mask
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.algebra import (
    POSITIVE,
    UNKNOWN,
    Substitution,
    by_condition,
    content,
    equal_integers,
    factor_sign,
    integer_nonnegative,
    is_positive,
    leaf,
    multiply,
    multiply_all,
    raise_to,
    substitute,
)
from symgrad.proof.normal.atoms import Atom, Monomial, Number, Undecided
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.factor import irreducible_factors
from symgrad.proof.normal.facts import Facts, Interval
from symgrad.proof.normal.functions import base_of
from symgrad.proof.normal.numeric import Enclosure, Evaluation, NotEvaluable
from symgrad.proof.normal.poly import (
    ONE,
    ZERO,
    Poly,
    all_atoms,
    constant,
    direct_atoms,
    exact,
    of_atom,
    ordered,
    total,
)
from symgrad.proof.normal.zero import orient

DIGITS = 30
ENTIRE = frozenset(("sin", "cos", "erf", "digamma", "trigamma", "tetragamma"))
"""Functions that are meromorphic on the plane: they have one branch."""
UNBOUNDED = frozenset(("atan", "asinh"))
"""Functions with branches that are analytic at each real number."""

MOST_MASKS = 4
"""How many masks a base is taken apart by."""
_INTEGERS = frozenset((kinds.INDEX, kinds.SIZE, kinds.FLOORDIV))
_MARGIN = Fraction(1, 10**9)

Element = tuple[tuple[Poly, ...], Poly]
Definition = Callable[[Proof, str], Element]
"""What an element of a cut node is, in a context: its indices, and its value in them."""


def _unknown(context: Proof, tensor: str) -> Element:
    raise KeyError(tensor)


class Families:
    """The obligations of one proof.

    ``define``: raises SymgradError, Undecided or KeyError where it does not know.
    """

    def __init__(self, context: Proof, define: Definition = _unknown) -> None:
        scratch = copy.copy(context)
        scratch.obligations, scratch.requirements, scratch.readings = {}, {}, {}
        scratch.memo, scratch.domain, scratch.in_domain = {}, {}, False
        scratch.factored = False
        self.context = scratch
        self.facts: Facts = context.facts
        self._define = define
        self._defined: dict[str, Element | None] = {}

    def exceptions(self, base: Poly, apart: tuple[Poly, ...] = ()) -> list[Poly] | None:
        """The integer polynomials one of which is 0 wherever ``base`` vanishes identically.

        ``apart``: integer polynomials that are not 0.  None where nothing is shown.
        """
        before = self.context.work, self.context.budget
        self.context.work, self.context.budget = 0, FAMILY_WORK
        saved, mpmath.iv.dps = mpmath.iv.dps, DIGITS
        try:
            return self._in_all_pieces(orient(self.context, base), apart)
        except (Undecided, SymgradError, NotEvaluable, ZeroDivisionError, ValueError):
            return None
        finally:
            mpmath.iv.dps = saved
            self.context.work, self.context.budget = before

    def _in_all_pieces(self, base: Poly, apart: tuple[Poly, ...]) -> list[Poly] | None:
        """Where the base may vanish identically for some values of the masks in it.

        At each point it is one of its pieces: it vanishes on a null set where each of them does.
        """
        masks = [one for one in _conditions(base) if is_mask(one)]
        if not 0 < len(masks) <= MOST_MASKS:
            return _Search(self, apart).of([base])
        pieces = [base]
        for condition in sorted(masks, key=lambda one: one.key):
            pieces = [part for one in pieces for part in by_condition(self.context, one, condition)]
        if any(not piece.terms for piece in pieces):
            return None
        parts = [_Search(self, apart).of([orient(self.context, piece)]) for piece in pieces]
        return None if None in parts else _joined(parts)

    def definition(self, tensor: str) -> Element | None:
        """What an element of a cut node is; None: not known."""
        if tensor not in self._defined:
            try:
                self._defined[tensor] = self._define(self.context, tensor)
            except (SymgradError, Undecided, KeyError):
                self._defined[tensor] = None
        return self._defined[tensor]

    def written_out(self, poly: Poly) -> Poly | None:
        """A polynomial with the cut nodes in it written out; None where that is not known."""
        before = self.context.work, self.context.budget
        self.context.work, self.context.budget = 0, FAMILY_WORK
        try:
            return _WrittenOut(self).poly(poly)
        except (Undecided, SymgradError):
            return None
        finally:
            self.context.work, self.context.budget = before

    def depends(self, tensor: str) -> frozenset[str] | None:
        """The inputs that an element depends on; None: not known."""
        if not is_cut(tensor):
            return frozenset((tensor,))
        found = self.definition(tensor)
        if found is None:
            return None
        parts = [self.depends(name) for name in tensors_in(found[1])]
        return None if None in parts else frozenset().union(*(p for p in parts if p is not None))

    def is_analytic(self, poly: Poly) -> bool:
        """Is it analytic in the inputs, on a connected domain?

        The plane without poles is connected, so that quotients and functions with one branch may
        be continued around all points at which they are not defined.  Roots, logarithms and other
        functions with branches may not: what they are taken of must have no poles, and the set on
        which they are defined must be convex.
        """
        if poly.piecewise or not self._has_one_branch(poly):
            return False
        found = [self.definition(name) for name in tensors_in(poly) if is_cut(name)]
        return all(one is not None and self.is_analytic(one[1]) for one in found)

    def _has_one_branch(self, poly: Poly) -> bool:
        return all(
            self._factor_has_one_branch(atom, exponent)
            for monomial in poly.terms
            for atom, exponent in monomial
        )

    def _factor_has_one_branch(self, atom: Atom, exponent: Number) -> bool:
        if not isinstance(exponent, int) and not self._is_convex(base_of(atom), log=True):
            return False
        if atom.kind == kinds.FUNCTION and atom.data[0] not in ENTIRE:
            name, argument = atom.data
            if name in UNBOUNDED:
                return self._has_one_branch(argument) and not self._has_poles(argument)
            return self._is_convex(argument, log=name == "log")
        return all(map(self._has_one_branch, _polys_in(atom)))

    def _is_convex(self, argument: Poly, *, log: bool) -> bool:
        """Is a root, a logarithm, or another function defined on a convex set?"""
        if self._has_poles(argument) or not self._has_one_branch(argument):
            return False
        if log and is_positive(self.context, argument):
            return True
        affine = (*_INTEGERS, kinds.NUMBER, kinds.LEAF)
        return not any(map(is_cut, tensors_in(argument))) and all(
            sum(e for a, e in monomial if a.kind == kinds.LEAF) in (0, 1)
            and all(a.kind in affine and e > 0 for a, e in monomial)
            for monomial in argument.terms
        )

    def _has_poles(self, poly: Poly) -> bool:
        """Is anything inverted, at any depth, that is not positive?"""
        return any(
            (exponent < 0 and factor_sign(self.context, atom, 1) != POSITIVE)
            or any(map(self._has_poles, _polys_in(atom)))
            for monomial in poly.terms
            for atom, exponent in monomial
        )


def _polys_in(atom: Atom) -> Iterator[Poly]:
    """The polynomials that an atom is made of, indices and extents left out."""
    if atom.kind in (kinds.LEAF, kinds.INDEX):
        return
    if atom.kind == kinds.SUM:
        yield Poly({atom.data[1]: 1})
        return
    yield from (part for part in atom.data if isinstance(part, Poly))


def is_cut(tensor: str) -> bool:
    """Does the name stand for a node that is read as it is?"""
    return tensor.startswith("%")


def tensors_in(poly: Poly) -> set[str]:
    """The real tensors of which elements occur, at any depth."""
    return {a.data[0] for a in all_atoms(poly) if a.kind == kinds.LEAF and a.data[2] == "real"}


class _Search:
    """One obligation: the bases one of which must not vanish, and what is known of integers."""

    def __init__(self, families: Families, apart: tuple[Poly, ...]) -> None:
        self.families, self.apart = families, apart
        self.context, self.facts = families.context, families.facts
        self.cases = 0

    def of(self, members: list[Poly], depth: int = 0) -> list[Poly] | None:
        """Where all members may vanish identically; None: not known."""
        self.cases += 1
        if self.cases > FAMILY_CASES:
            return None
        members = [member for member in members if member.terms]
        conditions = {a for member in members for a in _conditions(member) if _is_of_integers(a)}
        if len(members) > 1 and conditions:
            return self._in_both_cases(members, min(conditions, key=lambda a: a.key), depth)
        best: list[Poly] | None = None
        for exceptions in self._each(members):
            if not exceptions:
                return []
            if best is None:
                best = exceptions
            best = self._narrowed(best, members, depth)
            if not best:
                return []
            break
        return best

    def _in_both_cases(self, members: list[Poly], condition: Atom, depth: int) -> list[Poly] | None:
        """Where an integer condition holds, and where it does not."""
        pairs = [by_condition(self.context, member, condition) for member in members]
        there, elsewhere = map(list, zip(*pairs, strict=True))
        parts = [self.of(there, depth), self.of(elsewhere, depth)]
        return None if None in parts else _joined(parts)

    def _narrowed(self, exceptions: list[Poly], members: list[Poly], depth: int) -> list[Poly]:
        """Without those in whose case some member is shown not to vanish."""
        if depth >= 2:
            return exceptions
        kept = []
        for exception in exceptions:
            solved = next(exception.solved(kinds.INDEX, kinds.SIZE), None)
            if solved is not None:
                there = [self._put(member, solved[0], solved[2]) for member in members]
                if self.of(there, depth + 1) == []:
                    continue
            kept.append(exception)
        return kept

    def _put(self, member: Poly, atom: Atom, value: Poly) -> Poly:
        try:
            return substitute(self.context, member, {atom: value})
        except Undecided:
            return ZERO

    def _each(self, members: list[Poly]) -> Iterator[list[Poly]]:
        """What each member, and each witness for one, leaves open."""
        integers = [m for m in members if not tensors_in(m)]
        for member in integers:
            found = self.integers(member)
            if found is not None:
                yield found
        for member in members:
            if member not in integers:
                found = self._real(member)
                if found is not None:
                    yield found

    def _real(self, member: Poly) -> list[Poly] | None:
        """A member with elements of tensors."""
        if is_positive(self.context, member) or is_positive(self.context, -member):
            return []
        if len(member.terms) == 1:
            return self._product(next(iter(member.terms)))
        _, shared, rest = content(self.context, member)
        factors = [factor for factor, _ in irreducible_factors(self.context, rest)]
        if shared or len(factors) > 1:
            parts = [self._product(ordered(shared)), *(self.of([one], 1) for one in factors)]
            return None if None in parts else _joined(parts)
        peeled = self._peeled(member)
        if peeled is not None:
            found = self.of(peeled, 1)
            if found is not None:
                return found
        if not self.families.is_analytic(member):
            square = None if member.piecewise else self._without_root(member)
            return None if square is None else self.of([square], 1)
        best: list[Poly] | None = None
        for witness in _witnesses(self.families, member):
            found = self._at(witness, member)
            if found is not None and (best is None or len(found) < len(best)):
                best = found
            if best == []:
                break
        return best

    def _without_root(self, member: Poly) -> Poly | None:
        """``A**2 - B C**2`` for ``A + sqrt(B) C``: it is 0 where that is, and has no root of B."""
        roots = {
            atom for monomial in member.terms for atom, exponent in monomial
            if Fraction(exponent).denominator == 2 and atom.kind != kinds.EXP
        }  # fmt: skip
        if not roots:
            return None
        root = min(roots, key=lambda a: (a.erased, a.key))
        even, odd = {}, {}
        for monomial, value in member.terms.items():
            exponent = dict(monomial).get(root, 0)
            if isinstance(exponent, int):
                even[monomial] = value
            else:
                less = {**dict(monomial), root: exact(exponent - Fraction(1, 2))}
                odd[ordered(less)] = value
        squares = [raise_to(self.context, Poly(terms), 2) for terms in (even, odd)]
        return squares[0] - multiply(self.context, base_of(root), squares[1])

    def _product(self, monomial: Monomial) -> list[Poly] | None:
        """A product vanishes identically where one of its factors does."""
        found: list[Poly] = []
        for atom, exponent in monomial:
            if exponent < 0 or factor_sign(self.context, atom, exponent) == POSITIVE:
                continue
            if atom.indicator:
                return None
            if atom.kind == kinds.LEAF and not is_cut(atom.data[0]):
                continue
            part = self._factor(atom)
            if part is None:
                return None
            found += part
        return list(dict.fromkeys(found))

    def _factor(self, atom: Atom) -> list[Poly] | None:
        if atom.kind == kinds.POWER:
            return self.of([atom.data[0]], 1)
        if atom.kind in _INTEGERS:
            return self.integers(of_atom(atom))
        if atom.kind == kinds.PRODUCT:
            binder, body = atom.data
            place = {binder: of_atom(self.context.fresh(binder.data[1]))}
            return self.of([substitute(self.context, body, place)], 1)
        member = of_atom(atom)
        if not self.families.is_analytic(member):
            return self._computed(atom)
        for witness in _witnesses(self.families, member):
            found = self._at(witness, member)
            if found is not None:
                return found
        return None

    def _computed(self, atom: Atom) -> list[Poly] | None:
        """An element of a cut node that is a product, or a root of one: its factors."""
        if atom.kind != kinds.LEAF or not is_cut(atom.data[0]):
            return None
        known = self.families.definition(atom.data[0])
        return None if known is None or len(known[1].terms) != 1 else self.of([known[1]], 1)

    # -- peeling

    def _peeled(self, member: Poly) -> list[Poly] | None:
        """The coefficients with respect to the elements of one tensor, which are independent."""
        direct = {a for a in direct_atoms(member) if a.kind == kinds.LEAF and a.data[2] == "real"}
        nested = {
            leaf for atom in direct_atoms(member) for leaf in all_atoms(atom.data)
            if leaf.kind == kinds.LEAF
        }  # fmt: skip
        elements = direct | nested
        reached: set[str] = set()
        for name in {a.data[0] for a in elements if is_cut(a.data[0])}:
            depends = self.families.depends(name)
            if depends is None:
                return None
            reached |= depends
        for tensor in sorted({a.data[0] for a in direct}):
            own = {a for a in elements if a.data[0] == tensor}
            if own & nested or is_cut(tensor) or tensor in reached | _tied(self.facts):
                continue
            if self._are_apart(tensor, sorted(own, key=lambda a: a.key)):
                return _coefficients(member, own)
        return None

    def _are_apart(self, tensor: str, leaves: list[Atom]) -> bool:
        if tensor in self.facts.symmetric and len(leaves) > 1:
            return False
        return all(
            any(self._never_zero(a - b) for a, b in zip(one.data[1], two.data[1], strict=True))
            for one, two in itertools.combinations(leaves, 2)
        )

    def _never_zero(self, difference: Poly) -> bool:
        return bool(difference.terms) and self.integers(difference) == []

    # -- symbolic witnesses

    def _at(self, witness: Substitution, member: Poly) -> list[Poly] | None:
        """Where the member may be 0 at a witness, or the witness may not be an input."""
        context = self.context
        context.obligations, context.requirements, context.memo = {}, {}, {}
        try:
            value = witness.poly(member)
            if not value.terms:
                return None
            found = self.integers(value)
            if found is None:
                return None
            for obligation in context.obligations.values():
                more = None if obligation.piecewise else self.integers(obligation.base)
                if more is None:
                    return None
                found = [*found, *more]
            for requirement in context.requirements.values():
                if not self._is_met(requirement.relation, requirement.poly):
                    return None
        except (Undecided, NotEvaluable, KeyError, ZeroDivisionError, ValueError):
            return None
        return list(dict.fromkeys(found))

    def _is_met(self, relation: str, poly: Poly) -> bool:
        if relation not in (">", ">=", "!="):
            return False
        if relation == "!=":
            return self.integers(poly) == []
        return self._is_positive(poly) or (relation == ">=" and not poly.terms)

    # -- polynomials in sizes and indices

    def integers(self, poly: Poly) -> list[Poly] | None:
        """The polynomials one of which is 0 wherever this one is; None: not known."""
        condition = next((a for a in sorted(_conditions(poly), key=lambda a: a.key)), None)
        if condition is not None:
            return self._by_cases(poly, condition)
        poly = self._cleared(poly)
        if not poly.terms:
            return None
        if self._is_apart(poly) or self._is_positive(poly) or self._is_positive(-poly):
            return []
        if all(a.kind in _INTEGERS and isinstance(e, int) for m in poly.terms for a, e in m):
            return self._exactly(poly)
        return self._enclosed(poly)

    def _by_cases(self, poly: Poly, condition: Atom) -> list[Poly] | None:
        """The condition holds, or it does not."""
        there, elsewhere = by_condition(self.context, poly, condition)
        found: list[Poly] = []
        inner: Poly = condition.data[0] if condition.kind == kinds.EQUAL else ZERO
        if condition.kind == kinds.EQUAL and self._is_apart(inner):
            cases = [(elsewhere, self.apart)]
        elif condition.kind == kinds.EQUAL:
            solved = next(inner.solved(kinds.INDEX, kinds.SIZE), None)
            if solved is not None:
                there = substitute(self.context, there, {solved[0]: solved[2]})
            cases = [(there, self.apart), (elsewhere, (*self.apart, inner))]
        else:
            cases = [(there, self.apart), (elsewhere, self.apart)]
        for case, apart in cases:
            if not case.terms:
                if condition.kind != kinds.EQUAL or case is not there:
                    return None
                found.append(inner)
                continue
            search = _Search(self.families, apart)
            search.cases = self.cases = self.cases + 1
            part = search.integers(case) if self.cases < FAMILY_CASES else None
            if part is None:
                if condition.kind == kinds.EQUAL and case is there:
                    found.append(inner)
                    continue
                return None
            found += part
        return list(dict.fromkeys(found))

    def _is_apart(self, poly: Poly) -> bool:
        return any(poly in (other, -other) for other in self.apart)

    def _cleared(self, poly: Poly) -> Poly:
        """Without common factors that are positive, and without denominators."""
        lowest: dict[Atom, Any] = {}
        for atom in direct_atoms(poly):
            lowest[atom] = min(dict(m).get(atom, 0) for m in poly.terms)
        divided = {
            atom: exponent for atom, exponent in lowest.items()
            if exponent < 0 or (exponent and factor_sign(self.context, atom, 1) == POSITIVE)
        }  # fmt: skip
        parts = []
        for monomial, value in poly.terms.items():
            exponents = dict(monomial)
            factors = [constant(value)]
            for atom in {*exponents, *divided}:
                exponent = exact(Fraction(exponents.get(atom, 0)) - Fraction(divided.get(atom, 0)))
                if atom.kind == kinds.POWER and isinstance(exponent, int):
                    factors.append(raise_to(self.context, atom.data[0], exponent))
                elif exponent:
                    factors.append(Poly({ordered({atom: exponent}): 1}))
            parts.append(multiply_all(self.context, factors))
        return total(parts)

    def _is_positive(self, poly: Poly) -> bool:
        """Is it positive for all sizes and indices?"""
        if is_positive(self.context, poly):
            return True
        rows = _enclosed_rows(poly)
        if rows is None:
            return False
        if all(isinstance(value, (int, Fraction)) for value in rows.values()):
            scale = lcm(*(Fraction(value).denominator for value in rows.values()), 1)
            low = Poly({m: exact(value * scale) for m, value in rows.items()}).plus(-1)
        else:
            if any(factor_sign(self.context, a, 1) == UNKNOWN for m in rows for a, _ in m):
                return False
            low = Poly({m: exact(_lowest(value)) for m, value in rows.items() if _lowest(value)})
            low = low.plus(-_MARGIN)
        return integer_nonnegative(self.context, low)

    def _exactly(self, poly: Poly) -> list[Poly] | None:
        """Irreducible factors over the rationals, those left out that have no admissible root."""
        numbers = [Fraction(value) for value in poly.terms.values()]
        scale = Fraction(
            gcd(*(n.numerator for n in numbers)), lcm(*(n.denominator for n in numbers))
        )
        found: list[Poly] = []
        for factor, _ in irreducible_factors(self.context, poly.scaled(1 / scale)):
            if self._is_apart(factor) or self._is_positive(factor) or self._is_positive(-factor):
                continue
            atoms = {a for m in factor.terms for a, _ in m}
            if len(atoms) == 1:
                found += self._roots(factor, next(iter(atoms)))
            elif not _has_no_solution(factor):
                found.append(factor)
        return found

    def _factors(self, poly: Poly) -> list[tuple[Poly, int]]:
        """The irreducible factors over the rationals, atoms taken as variables."""
        numbers = [Fraction(value) for value in poly.terms.values()]
        above, below = gcd(*(n.numerator for n in numbers)), lcm(*(n.denominator for n in numbers))
        return irreducible_factors(self.context, poly.scaled(exact(Fraction(below, above))))

    def _roots(self, poly: Poly, atom: Atom) -> list[Poly]:
        """``v - r`` for the admissible integer roots r of a polynomial in v."""
        degree = max(e for m in poly.terms for _, e in m)
        if degree > LARGEST_DEGREE:
            return [poly]
        import sympy  # it takes longer to import than most proofs take

        rows = {(dict(m).get(atom, 0),): sympy.Rational(str(v)) for m, v in poly.terms.items()}
        roots = sympy.Poly(rows, sympy.Symbol("v"), domain="QQ").ground_roots()
        whole = sorted(int(root) for root in roots if root.is_integer)
        return [of_atom(atom).plus(-root) for root in whole if self._is_admissible(atom, root)]

    def _is_admissible(self, atom: Atom, value: int) -> bool:
        if atom.kind == kinds.SIZE:
            return value >= self.facts.least_sizes.get(atom.data[0], 1)
        if atom.kind == kinds.INDEX:
            extent = atom.data[1].constant
            return value >= 0 and (extent is None or value < extent)
        return True

    def _enclosed(self, poly: Poly) -> list[Poly] | None:
        """Enclosed coefficients, one size or index: all values up to a bound of the roots."""
        rows = _enclosed_rows(poly)
        if rows is None:
            return None
        atoms = {a for m in rows for a, _ in m}
        if not atoms:
            return [] if 0 not in mpmath.iv.mpf(next(iter(rows.values()))) else None
        if len(atoms) != 1 or next(iter(atoms)).kind == kinds.FLOORDIV:
            return None
        (atom,) = atoms
        values = {(m[0][1] if m else 0): mpmath.iv.mpf(_interval(v)) for m, v in rows.items()}
        degree = max(values)
        if 0 in values[degree]:
            return None
        rest = [abs(v) / abs(values[degree]) for e, v in values.items() if e != degree]
        bound = int(mpmath.ceil(mpmath.mpf(1 + max(r.b for r in rest)))) + 1 if rest else 1
        if bound > FAMILY_POINTS:
            return None
        return [
            of_atom(atom).plus(-point)
            for point in range(bound + 1)
            if self._is_admissible(atom, point)
            and 0 in sum((v * point**e for e, v in values.items()), mpmath.iv.mpf(0))
        ]


def _tied(facts: Facts) -> set[str]:
    """Tensors some elements of which are 0, or functions of those of others."""
    pairs = {**facts.inverses, **facts.factors}
    return {*pairs, *pairs.values(), *facts.lower, *facts.upper, *facts.orthogonal}


def _joined(parts: list[list[Poly] | None]) -> list[Poly]:
    return list(dict.fromkeys(one for part in parts if part is not None for one in part))


def _conditions(poly: Poly) -> set[Atom]:
    return {atom for atom in direct_atoms(poly) if atom.indicator}


def _is_of_integers(condition: Atom) -> bool:
    return condition.kind in (kinds.ATLEAST, kinds.EQUAL)


def _coefficients(poly: Poly, elements: set[Atom]) -> list[Poly]:
    """The coefficients of the products of powers of some elements."""
    found: dict[Monomial, dict[Monomial, Any]] = {}
    for monomial, value in poly.terms.items():
        own = tuple(item for item in monomial if item[0] in elements)
        rest = tuple(item for item in monomial if item[0] not in elements)
        found.setdefault(own, {})[rest] = value
    return [Poly(terms) for terms in found.values()]


def _has_no_solution(poly: Poly) -> bool:
    """Do the coefficients of all but the constant have a common factor that it has not?"""
    whole = [value for monomial, value in poly.terms.items() if monomial]
    if not all(isinstance(value, int) for value in poly.terms.values()):
        return False
    return bool(poly.offset % gcd(*map(int, whole)))


def _enclosed_rows(poly: Poly) -> dict[Monomial, Any] | None:
    """Coefficients of products of sizes and indices: rationals, or intervals around reals."""
    rows: dict[Monomial, Any] = {}
    for monomial, value in poly.terms.items():
        own = tuple(item for item in monomial if item[0].kind in _INTEGERS)
        rest = tuple(item for item in monomial if item[0].kind not in _INTEGERS)
        if any(not isinstance(e, int) or e < 0 for _, e in own):
            return None
        number: Any = value
        if rest:
            if any(_is_open(atom) for atom, _ in rest):
                return None
            try:
                number = Evaluation({}, _no_element, {}, Enclosure()).value(Poly({rest: value}))
            except (NotEvaluable, KeyError, ZeroDivisionError, ValueError):
                return None
        before = rows.get(own)
        if before is None:
            rows[own] = number
        elif isinstance(before, (int, Fraction)) and isinstance(number, (int, Fraction)):
            rows[own] = before + number
        else:
            rows[own] = mpmath.iv.mpf(_interval(before)) + _interval(number)
    return rows


def _is_open(atom: Atom) -> bool:
    """Does its value depend on sizes, indices or elements?"""
    inner = [atom, *all_atoms(atom.data)]
    return any(a.kind in (*_INTEGERS, kinds.LEAF) or a.kind in kinds.BINDERS for a in inner)


def _no_element(tensor: str, at: tuple[int, ...]) -> Any:
    raise NotEvaluable("no element is left")


def _interval(value: Any) -> Any:
    if isinstance(value, (int, Fraction)):
        return mpmath.iv.mpf(Fraction(value).numerator) / Fraction(value).denominator
    return value


def _lowest(value: Any) -> Fraction:
    """The lower end as a rational."""
    if isinstance(value, (int, Fraction)):
        return Fraction(value)
    sign, mantissa, exponent, _ = mpmath.mpf(value.a)._mpf_
    return (-1 if sign else 1) * Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


# -- witnesses: a formula for each tensor


def _witnesses(families: Families, member: Poly) -> Iterator[Substitution]:
    """Numbers for all elements first, then what differs from one element to another."""
    for shape in (NUMBER, ELEMENT, COLUMN, SLOPE):
        for seed in range(2):
            yield _Witness(families, member, seed, shape)


NUMBER, ELEMENT, COLUMN, SLOPE = "number", "element", "column", "slope"


class _WrittenOut(Substitution):
    """Puts what cut nodes are computed from."""

    def __init__(self, families: Families) -> None:
        super().__init__(families.context, {})
        self.indices_only = False
        self.families = families
        self._written: dict[str, Poly | None] = {}

    def atom(self, atom: Atom) -> Poly:
        """The replacement in an atom; for a power atom, in its base."""
        if atom.kind != kinds.LEAF or atom.data[2] != "real":
            return super().atom(atom)
        return self.element(atom, tuple(self.poly(index) for index in atom.data[1]))

    def element(self, atom: Atom, indices: tuple[Poly, ...]) -> Poly:
        """An element of a tensor; of a node that is read as it is, by what it is computed from."""
        if not is_cut(atom.data[0]):
            return leaf(self.context, atom.data[0], indices, atom.data[2])
        found = self.families.definition(atom.data[0])
        if found is None:
            raise Undecided(f"{atom.data[0]} has no index notation")
        places, value = found
        pairs = zip(places, indices, strict=True)
        here = {place.atom: index for place, index in pairs if place.atom is not None}
        anywhere = self._anywhere(atom.data[0], value, frozenset(here))
        if anywhere is not None:
            return substitute(self.context, anywhere, here)
        return self.poly(substitute(self.context, value, here))

    def _anywhere(self, tensor: str, value: Poly, places: frozenset[Atom]) -> Poly | None:
        """What an element of a cut node becomes, found once, whatever its indices.

        None where something is needed that depends on them: it has to hold where they are read.
        """
        if tensor not in self._written:
            context = self.context
            obligations, requirements = dict(context.obligations), dict(context.requirements)
            written: Poly | None = self.poly(value)
            needed = [one.base for one in context.obligations.values()]
            needed += [one.poly for one in context.requirements.values()]
            if any(poly.free & places for poly in needed):
                for key, obligation in context.obligations.items():
                    if not obligation.base.free & places:
                        obligations[key] = obligation
                for named, requirement in context.requirements.items():
                    if not requirement.poly.free & places:
                        requirements[named] = requirement
                context.obligations, context.requirements = obligations, requirements
                written, self._memo, context.memo = None, {}, {}
            self._written[tensor] = written
        return self._written[tensor]


class _Witness(_WrittenOut):
    """Puts a formula for the elements of each tensor.

    ``shape``: a number; another one for the first element that occurs with no bound index;
    another one for the first along the last axis; or a sum of multiples of the indices.
    """

    def __init__(self, families: Families, member: Poly, seed: int, shape: str) -> None:
        super().__init__(families)
        self.seed, self.shape = seed, shape
        self.anchors: dict[str, tuple[Poly, ...]] = {}
        for atom in sorted(all_atoms(member), key=lambda a: (a.erased, a.key)):
            if atom.kind == kinds.LEAF and atom.data[2] == "real" and atom.free <= member.free:
                self.anchors.setdefault(atom.data[0], atom.data[1])

    def element(self, atom: Atom, indices: tuple[Poly, ...]) -> Poly:
        """A formula for an element of an input."""
        if is_cut(atom.data[0]):
            return super().element(atom, indices)
        return self._element(atom.data[0], indices)

    def _element(self, tensor: str, indices: tuple[Poly, ...]) -> Poly:
        facts = self.families.facts
        if tensor in _tied(facts):
            raise Undecided(f"the elements of {tensor} are not independent")
        usual, special = _numbers(facts, tensor, self.seed)
        if self.shape == NUMBER or tensor in facts.symmetric or not indices:
            return constant(usual)
        if self.shape == SLOPE:
            slopes = _slopes(facts, tensor, len(indices))
            steps = (index.scaled(slope) for index, slope in zip(indices, slopes, strict=True))
            return total([constant(usual), *steps])
        anchor = self.anchors.get(tensor, (ZERO,) * len(indices))
        places = list(zip(indices, anchor, strict=True))
        if self.shape == COLUMN:
            places = [(indices[-1], ZERO)]
        here = ONE
        for index, place in places:
            here = multiply(self.context, here, equal_integers(self.context, index - place))
        return constant(usual) + here.scaled(exact(special - usual))


def _slopes(facts: Facts, tensor: str, count: int) -> list[Number]:
    """Multiples of the indices that stay in the interval of a tensor."""
    interval = facts.intervals.get(tensor, Interval())
    if interval.low is not None and interval.high is not None:
        return [0] * count
    key = kinds.text_key(f"{tensor} slope") & 0xFFFFFF
    sign = 1 if interval.high is None else -1
    return [exact(sign * Fraction(key % 7 + 2 + axis, 5 + key % 3)) for axis in range(count)]


def _numbers(facts: Facts, tensor: str, seed: int) -> tuple[Any, Any]:
    """Two different numbers in the interval of a tensor."""
    key = kinds.text_key(f"{tensor} {seed}") & 0xFFFFFF
    signs = ((1, -1), (-1, 1))[seed % 2]
    numbers = [
        signs[0] * Fraction(key % 13 + 5, 7 + key % 5),
        signs[1] * Fraction(key % 11 + 3, 6 + key % 7),
    ]
    interval = facts.intervals.get(tensor)
    if interval is not None:
        numbers = [inside(number, interval.low, interval.high) for number in numbers]
        numbers[1] += 0 if numbers[0] != numbers[1] else _nudge(numbers[1], interval.high)
    return exact(numbers[0]), exact(numbers[1])


def _nudge(number: Fraction, high: Fraction | None) -> Fraction:
    return Fraction(1, 3) if high is None else (high - number) / 3


def inside(number: Fraction, low: Fraction | None, high: Fraction | None) -> Fraction:
    """A number of an interval that depends on the given one."""
    if low is not None and high is not None:
        return low + (high - low) * (abs(number) % 3 / 3 * Fraction(8, 9) + Fraction(1, 18))
    if low is not None:
        return low + abs(number)
    return number if high is None else high - abs(number)
