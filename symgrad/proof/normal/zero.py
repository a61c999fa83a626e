"""The zero test: is a polynomial zero for all inputs and shapes?

In: a difference of two normal forms, or two expressions.  Out: which stage decided, and what the
answer relies on.

A yes is sound under the recorded requirements and obligations.  A no means "not shown".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from symgrad.budgets import (
    AXIS_STRIDE,
    CLEARING_ROUNDS,
    FIRST_NORMAL_FORM_WORK,
    LARGEST_AXIS,
    LARGEST_BOUNDARY,
    LARGEST_OFFSET,
    LARGEST_REMAINDER,
    LONGEST_AXIS,
    NORMAL_FORM_WORK,
    STABLE_ROUNDS,
)
from symgrad.errors import counted
from symgrad.ir.expr import Expr
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import labels
from symgrad.proof.normal.algebra import (
    at_least,
    by_condition,
    equal_integers,
    has_real_leaf,
    integer_nonnegative,
    is_floor,
    is_instance,
    monomial_poly,
    multiply,
    multiply_all,
    opened,
    power,
    primitive,
    quotient,
    raise_to,
    renormalised,
    substitute,
)
from symgrad.proof.normal.atoms import Atom, Monomial, Number, Undecided
from symgrad.proof.normal.context import Obligation, Proof, Reading, Requirement
from symgrad.proof.normal.facts import Facts
from symgrad.proof.normal.from_expr import Conversion, Definitions, decide
from symgrad.proof.normal.functions import common_angles
from symgrad.proof.normal.maxima import without_masked
from symgrad.proof.normal.poly import (
    ONE,
    ZERO,
    Exponents,
    Poly,
    all_atoms,
    constant,
    direct_atoms,
    exact,
    of_atom,
    plain_product,
    total,
)
from symgrad.proof.normal.rules import RULES
from symgrad.proof.normal.sums import sum_over


@dataclass(frozen=True)
class ZeroResult:
    """The answer of the zero test.

    ``stage``: the name of the stage that showed the difference to be zero, or None.  ``reason``:
    why not, where it is None.  ``residual``: what is left of the difference.  ``obligations``
    and ``requirements``: all that any step relied on.  ``readings``: literals read as constants.
    ``context``: the state of the proof, for rendering and evaluation.
    """

    stage: str | None
    reason: str
    residual: Poly | None
    obligations: tuple[Obligation, ...]
    requirements: tuple[Requirement, ...]
    readings: tuple[str, ...]
    context: Proof

    @property
    def is_zero(self) -> bool:
        """Was the difference shown to be zero?"""
        return self.stage is not None


def is_zero(context: Proof, difference: Poly) -> ZeroResult:
    """Test a polynomial of ``context``.  Never raises Undecided: the reason is in the result."""
    try:
        stage, residual = _run_stages(context, difference)
        reason = "" if stage else _left(len(residual.terms))
    except Undecided as undecided:
        stage, residual, reason = None, difference, undecided.reason
    return _result(context, stage, reason, residual)


def rewritten(context: Proof, poly: Poly) -> Poly:
    """The polynomial after all rewritings, without case splits.  Raises Undecided."""
    for _, stage in _REWRITES:
        poly = stage(context, poly)
    return poly


def _left(count: int) -> str:
    return f"{counted(count, 'term')} {'is' if count == 1 else 'are'} left of the difference"


def _result(context: Proof, stage: str | None, reason: str, residual: Poly | None) -> ZeroResult:
    return ZeroResult(
        stage,
        reason,
        residual,
        tuple(context.obligations.values()),
        tuple(context.requirements.values()),
        tuple(context.readings.values()),
        context,
    )


def prove_equal(
    left: Expr,
    right: Expr | None,
    facts: Facts | None = None,
    *,
    budget: int = NORMAL_FORM_WORK,
    definitions: Definitions | None = None,
    reading: Reading | None = None,
) -> ZeroResult:
    """Are two expressions equal?  ``right`` None stands for zero.

    ``definitions``: see ``from_expr.Conversion``.  ``reading``: of conditions, see ``Proof``.

    Three attempts: multiplied out within a small budget; with products of several-term factors
    kept as they are, which proves deep chains at a cost linear in the depth; multiplied out
    within the whole budget.
    """
    once = partial(attempt, left, right, facts, definitions=definitions, reading=reading)
    first = once(budget=min(budget, FIRST_NORMAL_FORM_WORK))
    if first.is_zero or not out_of_budget(first):
        return first
    factored = once(budget=budget, factored=True)
    if factored.is_zero:
        return factored
    if budget <= FIRST_NORMAL_FORM_WORK:
        return first
    return once(budget=budget)


def attempt(
    left: Expr,
    right: Expr | None,
    facts: Facts | None = None,
    *,
    budget: int = NORMAL_FORM_WORK,
    factored: bool = False,
    definitions: Definitions | None = None,
    reading: Reading | None = None,
) -> ZeroResult:
    """One attempt of ``prove_equal`` in a context of its own."""
    context = Proof(RULES, facts, budget=budget, factored=factored, reading=reading)
    result = _compared(context, left, right, definitions)
    if not factored:
        if not result.is_zero and result.residual is not None and adopt_domain(context):
            return _compared(context, left, right, definitions)
        return result
    if not result.is_zero and result.residual is not None:
        result = _unfolded(context, result.residual)
    if result.is_zero:
        return _result(context, f"let-atoms, {result.stage}", "", result.residual)
    return result


def adopt_domain(context: Proof) -> bool:
    """Let the signs of recorded conditions be used; True where that adds any.

    Two that exclude each other belong to two branches: neither holds everywhere.
    """
    relations = [a for a in context.requirements.values() if a.relation != "!="]
    recorded = {a.poly: a.relation == ">" for a in relations}
    try:
        signs = [primitive(context, poly) for poly in recorded]
    except Undecided:  # too much work
        return False
    adopted = {
        poly: strict for (poly, strict), own in zip(recorded.items(), signs, strict=True)
        if not any(is_instance(context, other, -own) for other in signs)
    }  # fmt: skip
    if not adopted or adopted == context.domain:
        return False
    context.domain = adopted
    context.memo.clear()
    return True


def _compared(
    context: Proof, left: Expr, right: Expr | None, definitions: Definitions | None
) -> ZeroResult:
    conversion = Conversion(context, definitions)
    if context.facts.stated and not context.stated:
        conversion.state()
    if context.facts.decided and not context.decided:
        decide(context)
    try:
        difference = conversion.poly(left)
        if right is not None:
            difference = difference - conversion.poly(right)
    except Undecided as undecided:
        return _result(context, None, undecided.reason, None)
    return is_zero(context, difference)


def _unfolded(context: Proof, residual: Poly) -> ZeroResult:
    """The zero test on what is left, its outermost several-term factors multiplied out."""
    context.factored = False
    try:
        return is_zero(context, renormalised(context, residual))
    except Undecided as undecided:
        return _result(context, None, undecided.reason, residual)


def out_of_budget(result: ZeroResult) -> bool:
    """Was the test given up because it took too much work?"""
    return result.context.work > result.context.budget


# -- the stages: rewritings that the constructors do not do by themselves


def _run_stages(context: Proof, poly: Poly) -> tuple[str | None, Poly]:
    """The name of the stage that made ``poly`` zero, and what is left of it."""
    if not poly.terms:
        return "normal form", poly
    for name, stage in _REWRITES:
        poly = stage(context, poly)
        if not poly.terms:
            return name, poly
    split = _split_axis(context, poly) or _split_size(context, poly)
    if split is not None:
        return split, poly
    long = unroll(context, poly, LONGEST_AXIS)
    if not long.terms:
        return "unroll long axes", long
    if clear_denominators(context, poly):
        return "clear denominators", poly
    if combine_integrands(context, poly):
        return "combine integrands", poly
    return _split_remainder(context, poly), poly


# -- integer conditions in one direction


def orient(context: Proof, poly: Poly) -> Poly:
    """[E + c >= 0] with the leading term of E positive and c = 0, at top level and in sums.

    [rule: orient]
    """
    return _until_stable(context, poly, kinds.ATLEAST, lambda a: _oriented(context, a.data[0]))


def orient_signs(context: Proof, poly: Poly) -> Poly:
    """[P > 0] with a positive leading term; see ``complement``."""
    return _until_stable(context, poly, kinds.POSITIVE, lambda a: _complement(context, a.data[0]))


def _complement(context: Proof, base: Poly) -> Poly:
    """[P > 0] for a P with a negative leading term, by that of -P.  [rule: complement].

    ``1 - [-P > 0]``, less [i == j] where P is a difference that vanishes there; that it does not
    vanish identically elsewhere is recorded.
    """
    unoriented = of_atom(context.atom(kinds.POSITIVE, base))
    if base.terms[base.lead] > 0 or base.piecewise or not has_real_leaf(base):
        return unoriented
    if not context.reading.generic:
        return unoriented
    other = of_atom(context.atom(kinds.POSITIVE, -base))
    pair = _vanishing_pair(context, base)
    if pair is None:
        context.require_nonzero("complement", base)
        return ONE - other
    left, right = pair
    context.require_distinct("complement", base, left, right)
    return ONE - other - equal_integers(context, of_atom(left) - of_atom(right))


def _vanishing_pair(context: Proof, poly: Poly) -> tuple[Atom, Atom] | None:
    """Two index variables over one range such that ``poly`` is zero where they are equal."""
    variables = sorted(poly.free, key=lambda v: v.key)
    for left, right in itertools.combinations(variables, 2):
        if left.data[1] == right.data[1]:
            merged = substitute(context, poly, {left: of_atom(right)})
            if not merged.terms:
                return left, right
    return None


def at_common_angles(context: Proof, poly: Poly) -> Poly:
    """Sines and cosines of one angle; see ``common_angles``."""
    put = common_angles(context, poly)
    if not put:
        return poly

    def factor(atom: Atom, exponent: Number) -> Poly:
        if atom in put and isinstance(exponent, int) and exponent > 0:
            return raise_to(context, put[atom], exponent)
        return monomial_poly(context, {atom: exponent})

    return _by_factors(context, poly, factor)


def at_first_greatest(context: Proof, poly: Poly) -> Poly:
    """``max_k f(k)`` is ``f(argmax_k f(k))``, where the latter occurs.  [rule: reached]."""
    places = {atom.data for atom in all_atoms(poly) if atom.kind == kinds.ARGMAX}
    if not places:
        return poly

    def factor(atom: Atom, exponent: Number) -> Poly:
        if atom.kind == kinds.MAXIMUM and atom.data in places and isinstance(exponent, int):
            binder, body = atom.data
            place = of_atom(context.atom(kinds.ARGMAX, binder, body))
            return raise_to(context, substitute(context, body, {binder: place}), exponent)
        return monomial_poly(context, {atom: exponent})

    try:
        return _by_factors(context, poly, factor)
    except Undecided:  # an infinity among the elements
        return poly


def unchain(context: Proof, poly: Poly) -> Poly:
    """No index between two others in a product of conditions; see ``unchained``."""
    for _ in range(STABLE_ROUNDS):
        result = unchained(context, poly)
        if result == poly:
            break
        poly = orient(context, result)
    return poly


def at_boundaries(context: Proof, poly: Poly) -> Poly:
    """[P >= 0] as deltas where P has few values on one side of 0.  [rule: boundary]."""
    return _until_stable(context, poly, kinds.ATLEAST, lambda a: _few_values(context, a.data[0]))


def _until_stable(context: Proof, poly: Poly, kind: str, rewrite: Callable[[Atom], Poly]) -> Poly:
    for _ in range(STABLE_ROUNDS):
        if not any(_holds(a, kind) for a in direct_atoms(poly)):
            return poly
        result = _map_factors(context, poly, kind, rewrite)
        if result == poly:
            break
        poly = result
    return poly


def _few_values(context: Proof, poly: Poly) -> Poly:
    for count in range(1, LARGEST_BOUNDARY + 1):
        if integer_nonnegative(context, (-poly).plus(count)):
            values = range(count + 1)
            return total(equal_integers(context, poly.plus(-v)) for v in values)
        if integer_nonnegative(context, poly.plus(count + 1)):
            values = range(1, count + 2)
            below = total(equal_integers(context, poly.plus(v)) for v in values)
            return ONE - below
    return at_least(context, poly)


def _holds(atom: Atom, kind: str) -> bool:
    """Is it of this kind, or a sum with such a factor?"""
    if atom.kind == kind:
        return True
    return atom.kind == kinds.SUM and any(_holds(a, kind) for a, _ in atom.data[1])


def _map_factors(context: Proof, poly: Poly, kind: str, function: Callable[[Atom], Poly]) -> Poly:
    """Factors of a kind replaced, at top level and in the monomials of sums."""
    return _by_factors(
        context, poly, lambda atom, power_of: _map_factor(context, atom, power_of, kind, function)
    )


def _by_factors(context: Proof, poly: Poly, function: Callable[[Atom, Number], Poly]) -> Poly:
    """The polynomial with each factor replaced by what the function makes of it."""
    parts = []
    for monomial, value in poly.terms.items():
        factors = itertools.starmap(function, monomial)
        parts.append(multiply_all(context, itertools.chain([constant(value)], factors)))
    return total(parts)


def _map_factor(
    context: Proof, atom: Atom, exponent: Number, kind: str, function: Callable[[Atom], Poly]
) -> Poly:
    whole = isinstance(exponent, int) and exponent > 0
    if atom.kind == kind and whole:
        return function(atom)
    if atom.kind == kinds.SUM and whole and _holds(atom, kind):
        fresh = [context.fresh(binder.data[1]) for binder in atom.data[0]]
        renaming = dict(zip(atom.data[0], fresh, strict=True))
        body = multiply_all(
            context,
            (_map_inner(context, a, e, kind, function, renaming) for a, e in atom.data[1]),
        )
        return raise_to(context, sum_over(context, fresh, body), exponent)
    return monomial_poly(context, {atom: exponent})


def _map_inner(
    context: Proof,
    atom: Atom,
    exponent: Number,
    kind: str,
    function: Callable[[Atom], Poly],
    renaming: dict[Atom, Atom],
) -> Poly:
    """A factor of a sum's monomial; rewritten under its canonical names, then renamed."""
    if atom.kind == kind:
        values = {binder: of_atom(fresh) for binder, fresh in renaming.items()}
        return substitute(context, function(atom), values)
    renamed = labels.Renamer(context, renaming).atom(atom)
    return _map_factor(context, renamed, exponent, kind, function)


def _oriented(context: Proof, poly: Poly) -> Poly:
    offset = poly.offset
    if poly.terms[poly.lead] < 0:
        return ONE - _oriented(context, (-poly).plus(-1))
    if not offset or not isinstance(offset, int) or abs(offset) > LARGEST_OFFSET:
        return at_least(context, poly)
    base = poly.plus(-offset)
    steps = range(1, offset + 1) if offset > 0 else range(offset + 1, 1)
    deltas = total(equal_integers(context, base.plus(step)) for step in steps)
    start = at_least(context, base)
    return start + deltas if offset > 0 else start - deltas


# -- deltas applied to their cofactors


def propagate(context: Proof, poly: Poly) -> Poly:
    """[v == e] f(v) becomes [v == e] f(e), at top level and in sums.  [rule: delta-cofactor]."""
    return total(_propagate_monomial(context, dict(m)).scaled(c) for m, c in poly.terms.items())


def _propagate_monomial(
    context: Proof, factors: Exponents, bound: frozenset[Atom] = frozenset()
) -> Poly:
    deltas = sorted((a for a in factors if a.kind == kinds.EQUAL), key=lambda a: (a.erased, a.key))
    for atom in deltas:
        solution = _solved_variable(atom.data[0], bound)
        rest = {a: e for a, e in factors.items() if a is not atom}
        if solution is None or not any(_mentions(a, solution[0]) for a in rest):
            continue
        body = monomial_poly(context, rest)
        body = substitute(context, body, {solution[0]: solution[1]})
        whole = multiply(context, of_atom(atom), body)
        return total(
            _propagate_monomial(context, dict(m), bound).scaled(c) for m, c in whole.terms.items()
        )
    product = ONE
    for atom, exponent in factors.items():
        if atom.kind == kinds.SUM and exponent == 1 and _holds(atom, kinds.EQUAL):
            fresh, monomial = opened(context, atom)
            body = _propagate_monomial(context, dict(monomial), frozenset(fresh))
            factor = sum_over(context, fresh, body)
        else:
            factor = monomial_poly(context, {atom: exponent})
        product = multiply(context, product, factor)
    return product


_SOLVED = (kinds.INDEX, kinds.LEAF, kinds.ARGMAX, kinds.FUNCTION, kinds.FLOORDIV)


def _solved_variable(poly: Poly, bound: frozenset[Atom]) -> tuple[Atom, Poly] | None:
    """An integer atom with coefficient 1 or -1, and what it equals.

    First what depends on bound variables and equals something that does not, which then comes
    out of the sum; then elements, argmax and quotients, since index variables are simpler; then
    the last in key order.
    """
    found = []
    for atom, _, rest in poly.solved(*_SOLVED):
        if (atom.kind != kinds.FUNCTION or is_floor(atom)) and not _mentions(rest, atom):
            found.append((atom, rest))

    def order(item: tuple[Atom, Poly]) -> tuple[bool, int, int]:
        atom, value = item
        freed = bool(atom.free & bound) and not value.free & bound
        return freed, atom.depth, atom.key

    return max(found, key=order) if found else None


def _mentions(item: object, atom: Atom) -> bool:
    """Does ``atom`` occur in it, at any depth?"""
    if atom.kind == kinds.INDEX:
        return any(atom in part.free for part in direct_atoms(item))
    todo, seen = [*direct_atoms(item)], set[Atom]()
    while todo:
        part = todo.pop()
        if part is atom:
            return True
        if part.depth > atom.depth and part not in seen:
            seen.add(part)
            todo.extend(direct_atoms(part.data))
    return False


# -- free axes


def split_free_indices(context: Proof, poly: Poly) -> Poly:
    """A free flattened index k with ``k // m`` in it is written ``m a + b``.  [rule: flatten]."""
    for variable in sorted(poly.free, key=lambda v: v.key):
        divisor = _divisor_of(poly, variable, set()) if poly.divides else None
        if divisor is None:
            continue
        parts = quotient(variable.data[1], divisor)
        if parts is not None:
            high, low = context.fresh(parts), context.fresh(divisor)
            whole = plain_product(divisor, high) + of_atom(low)
            poly = substitute(context, poly, {variable: whole})
    return poly


def _divisor_of(item: object, variable: Atom, seen: set[Atom]) -> Poly | None:
    """What the variable is divided by in it; ``seen``: atoms in which it is not."""
    if isinstance(item, Poly):
        held = [a for m in item.terms for a, _ in m if a.divides and variable in a.free]
        held.sort(key=lambda a: a.key)
        parts: list[object] = [*held]
    elif isinstance(item, Atom):
        if item in seen:
            return None
        seen.add(item)
        if item.kind == kinds.FLOORDIV and _is_shifted(item.data[0], variable):
            divisor: Poly = item.data[1]
            return divisor
        parts = list(item.data) if item.kind != kinds.INDEX else []
    elif isinstance(item, tuple):
        parts = list(item)
    else:
        return None
    found = (_divisor_of(part, variable, seen) for part in parts)
    return next((divisor for divisor in found if divisor is not None), None)


def _is_shifted(poly: Poly, variable: Atom) -> bool:
    """Is it the variable plus a number, as in ``(k + 1) // 2``?"""
    return poly.plus(-poly.offset).atom is variable


def _split_axis(context: Proof, poly: Poly) -> str | None:
    """Every value of a free index over a small constant axis by itself.  [rule: case-split]."""
    for variable in sorted(poly.free, key=lambda v: v.key):
        extent = variable.data[1].constant
        if extent is None or not 1 < extent <= LARGEST_AXIS:
            continue
        for value in range(int(extent)):
            case = substitute(context, poly, {variable: constant(value)})
            if _run_stages(context, case)[0] is None:
                return None
        return f"case split over {variable.data[0]}"
    return None


def _split_size(context: Proof, poly: Poly) -> str | None:
    """Where [n == 2] occurs for a size n: that case, and all others.  [rule: case-split]."""
    found = {a for m in poly.terms for a, _ in m if a.kind == kinds.EQUAL}
    for atom in sorted(found, key=lambda a: a.key):
        condition: Poly = atom.data[0]
        sizes = {a for m in condition.terms for a, _ in m}
        if len(sizes) != 1 or len(condition.terms) > 2:
            continue
        (size,) = sizes
        slope = condition.terms.get(((size, 1),))
        if size.kind != kinds.SIZE or slope not in (1, -1):
            continue
        value = exact(-condition.offset * slope)
        there, elsewhere = by_condition(context, poly, atom)
        there = substitute(context, there, {size: constant(value)})
        if _run_stages(context, there)[0] is None or _run_stages(context, elsewhere)[0] is None:
            return None
        return f"case split over {size.data[0]}"
    return None


def _split_remainder(context: Proof, poly: Poly) -> str | None:
    """Where ``(n + a) // c`` is left of a size n and a number c: ``n = c q + r`` for each r.

    The sizes below c come one by one, so that q is a size.  [rule: case-split]
    """
    found = [one for atom in all_atoms(poly) if (one := _divided_size(atom)) is not None]
    if not found:
        return None
    size, divisor = min(found, key=lambda one: (one[0].key, one[1]))
    whole = of_atom(context.atom(kinds.SIZE, f"({size.data[0]} // {divisor})")).scaled(divisor)
    least = context.facts.least_sizes.get(size.data[0], 1)
    few = max(least // divisor, 1) * divisor
    sizes = [
        *map(constant, range(least, few)),
        *(whole.plus(few - divisor + r) for r in range(divisor)),
    ]
    known = len(context.obligations), len(context.requirements)
    for value in sizes:
        case = substitute(context, poly, {size: value})
        if _run_stages(context, case)[0] is None:
            return None
        if (len(context.obligations), len(context.requirements)) != known:
            return None
    return f"case split over {size.data[0]} by its remainder"


def _divided_size(atom: Atom) -> tuple[Atom, int] | None:
    """The n and c of ``(n + a) // c``."""
    if atom.kind != kinds.FLOORDIV:
        return None
    size, divisor = atom.data[0].plus(-atom.data[0].offset).atom, atom.data[1].constant
    if size is None or size.kind != kinds.SIZE or not isinstance(divisor, int):
        return None
    return (size, divisor) if 1 < divisor <= LARGEST_REMAINDER else None


# -- sums over small constant axes


def unroll(context: Proof, poly: Poly, longest: int = LARGEST_AXIS) -> Poly:
    """Sums over small constant axes written out.  [rule: unroll].

    Of longer axes, the part beside a bound ``[index >= c]``; see ``_between_strides``.
    """

    def rewritten(atom: Atom) -> Poly | None:
        if _small_binder(atom, longest):
            return _unrolled(context, atom, longest)
        return _between_strides(context, atom) if atom.kind == kinds.SUM else None

    found = {atom: rewritten(atom) for atom in direct_atoms(poly)}
    put = {atom: value for atom, value in found.items() if value is not None}
    if not put:
        return poly

    def factor(atom: Atom, exponent: Number) -> Poly:
        if atom in put:
            return power(context, put[atom], exponent)
        return monomial_poly(context, {atom: exponent})

    return _by_factors(context, poly, factor)


def _small_binder(atom: Atom, longest: int) -> bool:
    return atom.kind == kinds.SUM and any(_is_small(b, longest) for b in atom.data[0])


def _is_small(binder: Atom, longest: int) -> bool:
    extent = binder.data[1].constant
    return extent is not None and extent <= longest


def _unrolled(context: Proof, atom: Atom, longest: int) -> Poly:
    fresh, monomial = opened(context, atom)
    others = [v for v in fresh if not _is_small(v, longest)]
    bodies = [Poly({monomial: 1})]
    for variable in fresh:
        if variable not in others:
            bodies = _at_values(context, bodies, variable, range(int(variable.data[1].constant)))
    return total(unroll(context, sum_over(context, others, body), longest) for body in bodies)


def _at_values(
    context: Proof, bodies: Iterable[Poly], variable: Atom, values: Sequence[int]
) -> list[Poly]:
    bodies = list(bodies)
    context.spend(len(bodies) * len(values))
    return [
        substitute(context, body, {variable: constant(value)})
        for body in bodies
        for value in values
    ]


def _between_strides(context: Proof, atom: Atom) -> Poly | None:
    """``sum_{v >= c} f(v)`` over a long constant axis from a multiple of the stride on.

    What lies between that multiple and c is written out, so that sums with different bounds have
    one sum in common.  None where there is no such bound.  [rule: unroll]
    """
    for binder in atom.data[0]:
        extent = binder.data[1].constant
        bounds = {} if extent is None else _lower_bounds(atom, binder)
        if not bounds:
            continue
        low = max(bounds.values())
        start = low if extent - low <= LARGEST_AXIS else low - low % AXIS_STRIDE
        end = extent if extent - low <= LARGEST_AXIS else low
        if end == start:
            continue
        fresh, monomial = opened(context, atom)
        variable = fresh[atom.data[0].index(binder)]
        others = [v for v in fresh if v is not variable]
        plain = {a: e for a, e in monomial if a not in _lower_bounds_of(monomial, variable)}
        body = monomial_poly(context, plain)
        parts = _at_values(context, [body], variable, range(start, end))
        written = total(sum_over(context, others, part) for part in parts)
        if end == extent:
            return written
        bound = at_least(context, of_atom(variable).plus(-start))
        return sum_over(context, fresh, multiply(context, body, bound)) - written
    return None


def _lower_bounds(atom: Atom, binder: Atom) -> dict[Atom, int]:
    return _lower_bounds_of(atom.data[1], binder)


def _lower_bounds_of(monomial: Monomial, variable: Atom) -> dict[Atom, int]:
    """The factors ``[variable >= c]`` of a product, with c."""
    found = {}
    for factor, _ in monomial:
        if factor.kind == kinds.ATLEAST:
            offset = (factor.data[0] - of_atom(variable)).constant
            if isinstance(offset, int):
                found[factor] = -offset
    return found


# -- chains of order relations: no index lies between two others


def unchained(context: Proof, poly: Poly) -> Poly:
    """``[i >= j] [j >= k] = [i >= k] ([i >= j] + [j >= k] - 1)``, in sums too.

    [rule: order-chain]
    """
    return total(_unchained_monomial(context, dict(m)).scaled(c) for m, c in poly.terms.items())


def _unchained_monomial(context: Proof, factors: Exponents) -> Poly:
    found = _chain(factors)
    if found is not None:
        left, right = found
        rest = monomial_poly(
            context, {a: e for a, e in factors.items() if a is not left and a is not right}
        )
        around = at_least(context, left.data[0] + right.data[0])
        either = of_atom(left) + of_atom(right) - ONE
        return unchained(context, multiply(context, multiply(context, rest, around), either))
    result = ONE
    for atom, exponent in factors.items():
        factor = monomial_poly(context, {atom: exponent})
        if atom.kind == kinds.SUM and exponent == 1 and _chain(dict(atom.data[1])) is not None:
            fresh, monomial = opened(context, atom)
            factor = sum_over(context, fresh, _unchained_monomial(context, dict(monomial)))
        result = multiply(context, result, factor)
    return result


def _chain(factors: Exponents) -> tuple[Atom, Atom] | None:
    """Two relations of indices with one in the middle: the first in the order of keys."""
    ordered = [a for a in factors if a.kind == kinds.ATLEAST and _between_indices(a.data[0])]
    ordered.sort(key=lambda atom: (atom.erased, atom.key))
    for left, right in itertools.combinations(ordered, 2):
        if len((left.data[0] + right.data[0]).terms) == 2:
            return left, right
    return None


def _between_indices(poly: Poly) -> bool:
    """Is it the difference of two index variables?"""
    atoms = [m[0][0] for m in poly.terms if len(m) == 1 and m[0][1] == 1]
    return (
        len(atoms) == len(poly.terms) == 2
        and sorted(poly.terms.values()) == [-1, 1]
        and all(atom.kind == kinds.INDEX for atom in atoms)
    )


# -- denominators cleared: equal quotients need not have equal normal forms


def clear_denominators(context: Proof, poly: Poly) -> bool:
    """Is ``poly`` zero after multiplying with the bases of its negative powers?

    These bases are nonzero almost everywhere: that they do not vanish identically is on record
    since they were inverted.  [rule: clear-denominators]
    """
    for _ in range(CLEARING_ROUNDS):
        if not poly.terms:
            return True
        lowest = _lowest_exponents(poly)
        if not lowest:
            return False
        poly = total(_raised(context, m, lowest).scaled(c) for m, c in poly.terms.items())
    return not poly.terms


def _lowest_exponents(poly: Poly) -> Exponents:
    atoms = {a for a in direct_atoms(poly) if a.kind == kinds.POWER}
    found: Exponents = {}
    for atom in sorted(atoms, key=lambda a: a.key):
        lowest = min(dict(m).get(atom, 0) for m in poly.terms)
        if lowest < 0:
            found[atom] = -lowest
    return found


def _raised(context: Proof, monomial: Monomial, raise_by: Exponents) -> Poly:
    exponents = dict(monomial)
    result = constant(1)
    for atom, amount in raise_by.items():
        exponent = exact(exponents.pop(atom, 0) + amount)
        whole = exponent.__floor__()
        if exponent != whole:
            rest = monomial_poly(context, {atom: exponent - whole})
            result = multiply(context, result, rest)
        raised = raise_to(context, atom.data[0], whole)
        result = multiply(context, result, raised)
    return multiply(context, result, monomial_poly(context, exponents))


def combine_integrands(context: Proof, poly: Poly) -> bool:
    """Is ``poly`` zero when sums over equal ranges are put under one sum?  [rule: combine]."""
    groups: dict[tuple[int, ...], list[tuple[Atom, list[Atom], Monomial, Number]]] = {}
    for monomial, value in poly.terms.items():
        atom = _main_sum(monomial)
        if atom is None:
            return False
        binders = sorted(atom.data[0], key=lambda v: (v.data[1].key, v.data[0]))
        rest = tuple((a, e) for a, e in monomial if a is not atom)
        ranges = tuple(v.data[1].key for v in binders)
        groups.setdefault(ranges, []).append((atom, binders, rest, value))
    return all(_integrand_is_zero(context, groups[ranges]) for ranges in sorted(groups))


def _main_sum(monomial: Monomial) -> Atom | None:
    candidates = [a for a, e in monomial if a.kind == kinds.SUM and e == 1]
    inverted = [a for a in candidates if any(b.kind == kinds.POWER for b, _ in a.data[1])]
    chosen = inverted or candidates
    return max(chosen, key=lambda a: (len(a.data[0]), a.height, a.key)) if chosen else None


def _integrand_is_zero(
    context: Proof, group: list[tuple[Atom, list[Atom], Monomial, Number]]
) -> bool:
    fresh = [context.fresh(binder.data[1]) for binder in group[0][1]]
    integrand = ZERO
    for atom, binders, rest, value in group:
        renaming = dict(zip(binders, fresh, strict=True))
        body = Poly({labels.rename_monomial(context, atom.data[1], renaming): value})
        outside = Poly({rest: 1})
        integrand = integrand + multiply(context, outside, body)
    return clear_denominators(context, integrand)


_REWRITES: tuple[tuple[str, Callable[[Proof, Poly], Poly]], ...] = (
    ("boundary values", at_boundaries),
    ("orient [i >= j]", orient),
    ("delta propagation", propagate),
    ("chains of [i >= j]", unchain),
    ("orient [P > 0]", orient_signs),
    ("split flattened indices", split_free_indices),
    ("unroll constant axes", unroll),
    ("angles", at_common_angles),
    ("boundary values", at_boundaries),
    ("greatest elements", at_first_greatest),
    ("delta propagation", propagate),
    ("masked entries", without_masked),
)
