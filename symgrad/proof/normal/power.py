"""Powers: content, factoring, rational exponents and reduction by leading monomials.

In: a polynomial and a rational exponent.  Out: the power in normal form; what it needs to be
defined is recorded in the context.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, lcm

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import factor, lifting, multiply, relations, signs
from symgrad.proof.normal.atoms import Atom, Number, Undecided
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import ONE, ZERO, Poly, constant, exact, of_atom, ordered, total

LARGEST_EXPONENT = 64


def power(context: Context, poly: Poly, exponent: Number) -> Poly:
    """``poly**exponent`` on the reals; a fractional power of a negative number is not defined.

    Records that an inverted base must not vanish, and that the base of a fractional power is
    not negative.  [rule: inverse] [rule: fractional-power]
    """
    exponent = exact(exponent)
    if exponent < 0 and not signs.is_positive(context, poly):
        context.require_nonzero("inverse", poly)
    if isinstance(exponent, Fraction) and not signs.is_nonnegative(context, poly):
        context.assume("fractional-power", ">=" if exponent > 0 else ">", poly)
    return raise_to(context, poly, exponent)


def raise_to(context: Context, poly: Poly, exponent: Number) -> Poly:
    """``poly**exponent`` whose definedness has been recorded already."""
    exponent = exact(exponent)
    if exponent == 0:
        return ONE
    if exponent == 1:
        return poly
    if not poly.terms:
        if exponent > 0:
            return ZERO
        raise Undecided("a division by an expression that is always zero")
    if isinstance(exponent, int):
        return _integer_power(context, poly, exponent)
    lifted = lifting.lift(context, poly, lambda piece: _piece_power(context, piece, exponent))
    if lifted is not None:
        return lifted
    with context.within_domain():
        return _fractional_power(context, poly, exponent)


def _piece_power(context: Context, piece: Poly, exponent: Number) -> Poly:
    """The power of one piece; where a piece to be inverted is 0, the value is undefined: 0."""
    return raise_to(context, piece, exponent) if piece.terms or exponent > 0 else ZERO


def _integer_power(context: Context, poly: Poly, exponent: int) -> Poly:
    if context.factored and exponent > 0:
        poly = condense(context, poly)
    if len(poly.terms) == 1 and exponent > 0:
        ((monomial, scale),) = poly.terms.items()
        power_of = multiply.monomial_poly(context, {a: e * exponent for a, e in monomial})
        return power_of.scaled(scale**exponent)
    if exponent > 0:
        if exponent > LARGEST_EXPONENT:
            raise Undecided(f"a sum is raised to the power {exponent}")
        half = raise_to(context, poly, exponent // 2)
        square = multiply.multiply(context, half, half)
        return multiply.multiply(context, square, poly) if exponent % 2 else square
    if exponent < 0:
        lifted = lifting.lift(context, poly, lambda piece: _piece_power(context, piece, exponent))
        if lifted is not None:
            return lifted
    value, shared, base = content(context, poly)
    result = multiply.monomial_poly(context, {a: e * exponent for a, e in shared.items()})
    if base.constant != 1:
        for part, times in factor.factors(context, base):
            atom = context.atom(kinds.POWER, part)
            piece = multiply.monomial_poly(context, {atom: exponent * times})
            result = multiply.multiply(context, result, piece)
    return result.scaled(exact(Fraction(value) ** exponent))


def content(context: Context, poly: Poly) -> tuple[Number, dict[Atom, Number], Poly]:
    """``(c, m, B)`` with ``poly == c * m * B``; B primitive, its leading coefficient positive.

    All exponents in B are nonnegative, so that its leading monomial is well defined.
    """
    numbers = [Fraction(value) for value in poly.terms.values()]
    scale = Fraction(gcd(*(n.numerator for n in numbers)), lcm(*(n.denominator for n in numbers)))
    shared = _shared_factors(context, poly)
    divided: dict[kinds.Monomial, Number] = {}
    for monomial, value in poly.terms.items():
        exponents = dict(monomial)
        for atom, exponent in shared.items():
            exponents[atom] = exponents.get(atom, 0) - (0 if atom.indicator else exponent)
            if atom.indicator:
                del exponents[atom]
        divided[ordered(exponents)] = exact(Fraction(value) / scale)
    base = Poly(divided)
    if any(a.kind == kinds.POWER and e >= 1 for m in base.terms for a, e in m):
        base = _expand_lets(context, base)
        if not base.terms:
            return 0, {}, ZERO
        inner, more, base = content(context, base)
        scale = scale * inner
        for atom, exponent in more.items():
            shared[atom] = exact(shared.get(atom, 0) + exponent)
        shared = {a: e for a, e in shared.items() if e}
    elif base.terms[base.lead] < 0:
        scale, base = -scale, -base
    return exact(scale), shared, base


def _shared_factors(context: Context, poly: Poly) -> dict[Atom, Number]:
    """The greatest common monomial; conditions belong to it only where lets are used."""
    shared: dict[Atom, Number] | None = None
    for monomial in poly.terms:
        exponents = dict(monomial)
        if shared is None:
            shared = exponents
            continue
        for atom in {**shared, **exponents}:
            shared[atom] = min(shared.get(atom, 0), exponents.get(atom, 0))
    found = shared or {}
    return {a: e for a, e in found.items() if e and (context.factored or not a.indicator)}


def _expand_lets(context: Context, poly: Poly) -> Poly:
    """Positive integer powers of several-term bases multiplied out."""
    parts: list[Poly] = []
    for monomial, value in poly.terms.items():
        rest: dict[Atom, Number] = {}
        bases: list[tuple[Poly, int]] = []
        for atom, exponent in monomial:
            whole = exponent.__floor__() if atom.kind == kinds.POWER and exponent >= 1 else 0
            if whole:
                bases.append((atom.data[0], whole))
            rest[atom] = exponent - whole
        term = Poly({ordered(rest): value})
        for base, whole in bases:
            for _ in range(whole):
                term = _distribute(context, term, base)
        parts.append(term)
    return total(parts)


def _distribute(context: Context, left: Poly, right: Poly) -> Poly:
    """The product multiplied out, whether or not lets are used."""
    context.spend(len(left.terms) * len(right.terms))
    factored, context.factored = context.factored, False
    try:
        return multiply.multiply(context, left, right)
    finally:
        context.factored = factored


def condense(context: Context, poly: Poly) -> Poly:
    """A several-term polynomial as one monomial of its irreducible factors.  [rule: let].

    Polynomials that hold integer conditions stay as they are: deltas must stay visible.
    """
    if len(poly.terms) < 2:
        return poly
    value, shared, base = content(context, poly)
    atoms = [a for m in base.terms for a, _ in m]
    if any(a.kind in (kinds.EQUAL, kinds.ATLEAST) for a in atoms):
        return poly
    if atoms and all(a.indicator for a in atoms):
        return poly
    exponents = dict(shared)
    if base.constant != 1:
        for part, times in factor.factors(context, base):
            atom = context.atom(kinds.POWER, part)
            exponents[atom] = exponents.get(atom, 0) + times
    return Poly({ordered(exponents): value}) if value else ZERO


# -- fractional exponents


def _fractional_power(context: Context, poly: Poly, exponent: Number) -> Poly:
    """[rule: fractional-power]: ``sqrt(x**2)`` is ``|x|``, never ``x``."""
    value, shared, base = content(context, poly)
    result = number_power(context, abs(Fraction(value)), exponent)
    rest = ONE if value > 0 else constant(-1)
    alone = len(shared) == 1 and value > 0 and base.constant == 1
    for atom, own in sorted(shared.items(), key=lambda item: item[0].key):
        taken = _factor_power(context, atom, own, exponent, alone)
        if taken is None:
            rest = multiply.multiply(context, rest, of_atom(atom, own))
        else:
            result = multiply.multiply(context, result, taken)
    if base.constant != 1:
        for part, times in factor.factors(context, base):
            taken = _base_power(context, part, times, exponent)
            if taken is None:
                rest = multiply.multiply(context, rest, raise_to(context, part, times))
            else:
                result = multiply.multiply(context, result, taken)
    if rest.constant == 1:
        return result
    base, own = _as_power(rest)
    atom = base.atom if base.atom is not None else context.atom(kinds.POWER, base)
    root = multiply.monomial_poly(context, {atom: own * exponent})
    return multiply.multiply(context, result, root)


def _as_power(poly: Poly) -> tuple[Poly, Number]:
    """``(-B, e)`` for ``-B**e`` with an odd e; else the polynomial and 1."""
    if len(poly.terms) == 1:
        ((monomial, value),) = poly.terms.items()
        if value == -1 and len(monomial) == 1:
            atom, exponent = monomial[0]
            if atom.kind == kinds.POWER and exponent % 2 == 1:
                return -atom.data[0], exponent
    return poly, 1


def _factor_power(
    context: Context, atom: Atom, own: Number, exponent: Number, alone: bool
) -> Poly | None:
    """``(atom**own)**exponent`` taken out of a root, or None where its sign is not known."""
    if isinstance(own, Fraction) or signs.factor_sign(context, atom, 1) != signs.UNKNOWN:
        return multiply.monomial_poly(context, {atom: own * exponent})
    if own % 2:
        return multiply.monomial_poly(context, {atom: own * exponent}) if alone else None
    whole = exact(own * exponent)
    if not isinstance(whole, int):
        return None
    plain = multiply.monomial_poly(context, {atom: whole})
    if whole % 2 == 0:
        return plain
    return multiply.multiply(context, plain, relations.sign(context, of_atom(atom)))


def _base_power(context: Context, part: Poly, times: int, exponent: Number) -> Poly | None:
    whole = exact(times * exponent)
    if signs.is_nonnegative(context, part):
        return multiply.monomial_poly(context, {context.atom(kinds.POWER, part): whole})
    if times % 2 or not isinstance(whole, int):
        return None
    plain = raise_to(context, part, whole)
    if whole % 2 == 0:
        return plain
    return multiply.multiply(context, plain, relations.sign(context, part))


def number_power(context: Context, value: Fraction, exponent: Number) -> Poly:
    """A positive rational number to a rational power, as primes.  [rule: numbers]."""
    exponents: dict[Atom, Number] = {}
    for prime, times in factor.prime_powers(value):
        exponents[context.atom(kinds.NUMBER, prime)] = times * exponent
    return multiply.monomial_poly(context, exponents)


# -- reduction by the leading monomial


def reduce_lead(context: Context, exponents: dict[Atom, Number], atom: Atom) -> Poly | None:
    """``LM(B) * B**f == (B**(f+1) - rest * B**f) / lc`` for ``f < 0``.  [rule: lead-reduction].

    Also where ``1/x * 1/(x + c)`` splits.  This is partial fractions: linear, so valid under
    sums.  None where neither form applies.
    """
    base: Poly = atom.data[0]
    lead = base.lead
    if not lead or any(e <= 0 or exponents.get(a, 0) < e for a, e in lead):
        if not _splits(exponents, base, atom):
            return None
        lead = ()
    value = base.terms[lead]
    rest = dict(exponents)
    for factor_atom, exponent in lead:
        rest[factor_atom] -= exponent
    context.spend(len(base.terms))
    raised = dict(rest)
    raised[atom] += 1
    terms = [multiply.monomial_poly(context, raised)]
    for monomial, coefficient in base.terms.items():
        if monomial == lead:
            continue
        product = dict(rest)
        for other, exponent in monomial:
            product[other] = product.get(other, 0) + exponent
        terms.append(multiply.monomial_poly(context, product).scaled(-coefficient))
    return total(terms).scaled(exact(Fraction(1) / value))


def _splits(exponents: dict[Atom, Number], base: Poly, atom: Atom) -> bool:
    if () not in base.terms:
        return False
    others = [dict(monomial) for monomial in base.terms if monomial]
    return any(
        exponent < 0 and other is not atom and all(m.get(other, 0) > 0 for m in others)
        for other, exponent in exponents.items()
    )
