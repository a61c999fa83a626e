"""Scalar functions: exp and log laws, parity, addition theorems, angles, special functions.

In: the name of a function and its argument.  Out: its value in normal form.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, lcm

from symgrad.budgets import LARGEST_SHIFT
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.algebra import (
    POSITIVE,
    UNKNOWN,
    at_least,
    content,
    factor_sign,
    floordiv,
    in_range,
    integer_nonnegative,
    is_integral,
    is_nonnegative,
    is_positive,
    is_whole,
    lift,
    monomial_poly,
    multiply,
    power,
    raise_to,
)
from symgrad.proof.normal.atoms import Atom, Monomial, Number, Undecided
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.factor import irreducible_factors, prime_powers
from symgrad.proof.normal.poly import ONE, ZERO, Poly, constant, direct_atoms, exact, of_atom
from symgrad.proof.scalars import bodies as scalars
from symgrad.proof.scalars import uninterpreted

KNOWN = ("Si",)
"""Functions of sympy's that are atoms although no op is one of them."""
_GAMMA = ("loggamma", "polygamma0", "polygamma1", "polygamma2")


def apply(context: Proof, name: str, argument: Poly) -> Poly:
    """The function ``name`` (sympy's name) of one argument.  Raises Undecided if unknown.

    A function of which only the derivative is declared is an atom.  [rule: declared-derivative]
    """
    if name == "exp":
        return exponential(context, argument)
    if name == "log":
        return logarithm(context, argument)
    lowered = _LOWERED.get(name)
    if lowered is not None:
        return lowered(context, argument)
    known = name in KNOWN or scalars.op_of(name) or uninterpreted.is_uninterpreted(name)
    if not known:
        raise Undecided(f"nothing is known of the function {name}")
    return _opaque(context, name, argument)


def _opaque(context: Proof, name: str, argument: Poly) -> Poly:
    lifted = lift(context, argument, lambda piece: _opaque(context, name, piece))
    if lifted is not None:
        return lifted
    if not argument.terms and (value := scalars.at_zero(name)) is not None:
        return constant(exact(value))
    parity = scalars.parity(name)
    if parity and argument.terms[argument.lead] < 0:  # [rule: parity]
        return _opaque(context, name, -argument).scaled(parity)
    if name in ("sin", "cos"):
        side = _side_of_angle(context, name, argument)
        if side is not None:
            return side
        quarters = _quarters(argument)
        if quarters is not None:
            return constant((0, 1, 0, -1)[(quarters + (name == "cos")) % 4])
        split = _addition_theorem(context, name, argument)
        if split is not None:
            return split
    if name in _GAMMA:
        shifted = _recurrence(context, name, argument)
        if shifted is not None:
            return shifted
    if name == "floor":
        return _floor(context, argument)
    return of_atom(context.atom(kinds.FUNCTION, name, argument))


# -- exponential and logarithm


def exponential(context: Proof, argument: Poly) -> Poly:
    """exp: sums split into products, exp(c log Q) is Q**c, exp(asinh u) is u + sqrt(1 + u**2).

    [rule: exp]
    """
    lifted = lift(context, argument, lambda piece: exponential(context, piece))
    if lifted is not None:
        return lifted
    result = ONE
    for monomial, value in argument.terms.items():
        infinite = any(atom.kind == kinds.INFINITY for atom, _ in monomial)
        if infinite:
            if value > 0:
                raise Undecided("exp of plus infinity")
            return ZERO  # [rule: minus-infinity]
        result = multiply(context, result, _exponential_term(context, monomial, value))
    return result


def _exponential_term(context: Proof, monomial: kinds.Monomial, value: Number) -> Poly:
    if len(monomial) == 1 and monomial[0][1] == 1:
        atom = monomial[0][0]
        if atom.kind == kinds.FUNCTION and atom.data[0] == "log":
            return raise_to(context, atom.data[1], value)
        if atom.kind == kinds.FUNCTION and atom.data[0] == "asinh" and isinstance(value, int):
            u = atom.data[1]
            root = power(context, ONE + multiply(context, u, u), Fraction(1, 2))
            return raise_to(context, root + u if value > 0 else root - u, abs(value))
    return of_atom(context.atom(kinds.EXP, Poly({monomial: 1})), value)


def logarithm(context: Proof, argument: Poly) -> Poly:
    """log: products of positive factors split.  That the argument is positive is recorded.

    [rule: log]
    """
    if not is_positive(context, argument):
        context.require("log", ">", argument)
    with context.using_domain(True):
        return _logarithm(context, argument)


def _logarithm(context: Proof, argument: Poly) -> Poly:
    if not argument.terms:
        return -of_atom(context.atom(kinds.INFINITY))  # [rule: minus-infinity]
    lifted = lift(context, argument, lambda piece: _logarithm(context, piece))
    if lifted is not None:
        return lifted
    value, shared, base = content(context, argument)
    rest = ONE if value > 0 else constant(-1)
    result = _log_number(context, abs(Fraction(value)))
    base_positive = base.constant is not None or is_positive(context, base)
    alone = len(shared) == 1 and base_positive and value > 0
    for atom, exponent in sorted(shared.items(), key=lambda item: item[0].key):
        positive = factor_sign(context, atom, 1) != UNKNOWN
        if positive or isinstance(exponent, Fraction) or (alone and exponent % 2):
            result = result + _log_atom(context, atom).scaled(exponent)
        else:
            rest = multiply(context, rest, of_atom(atom, exponent))
    if base.constant is None:
        for part, times in irreducible_factors(context, base):
            if is_nonnegative(context, part):
                result = result + _log_opaque(context, part).scaled(times)
            else:
                rest = multiply(context, rest, raise_to(context, part, times))
    return result if rest.constant == 1 else result + _log_rest(context, rest)


def _log_rest(context: Proof, rest: Poly) -> Poly:
    """log(-a**e) is e log(-a) for an odd e; anything else stays as it is."""
    if len(rest.terms) == 1:
        ((monomial, value),) = rest.terms.items()
        if value == -1 and len(monomial) == 1 and monomial[0][1] % 2 == 1:
            atom, exponent = monomial[0]
            return _log_opaque(context, -base_of(atom)).scaled(exponent)
    return _log_opaque(context, rest)


def base_of(atom: Atom) -> Poly:
    """What is raised to a power: the base of a power atom, else the atom."""
    base: Poly = atom.data[0] if atom.kind == kinds.POWER else of_atom(atom)
    return base


def _log_number(context: Proof, value: Fraction) -> Poly:
    result = ZERO
    for prime, times in prime_powers(value):
        result = result + _log_opaque(context, constant(prime)).scaled(times)
    return result


def _log_atom(context: Proof, atom: Atom) -> Poly:
    """The logarithm of an atom that is positive."""
    if atom.kind == kinds.EXP:
        inner: Poly = atom.data[0]
        return inner
    if atom.kind == kinds.POWER:
        return _logarithm(context, atom.data[0])
    if atom.kind == kinds.NUMBER and atom.data[0] != "pi":
        return _log_opaque(context, constant(atom.data[0]))
    return _log_opaque(context, of_atom(atom))


def _log_opaque(context: Proof, argument: Poly) -> Poly:
    return of_atom(context.atom(kinds.FUNCTION, "log", argument))


# -- functions lowered to others


def _tanh(context: Proof, argument: Poly) -> Poly:
    whole = ONE + exponential(context, argument.scaled(2))
    return ONE - raise_to(context, whole, -1).scaled(2)


def _sinh(context: Proof, argument: Poly) -> Poly:
    return (exponential(context, argument) - exponential(context, -argument)).scaled(Fraction(1, 2))


def _cosh(context: Proof, argument: Poly) -> Poly:
    return (exponential(context, argument) + exponential(context, -argument)).scaled(Fraction(1, 2))


def _erfc(context: Proof, argument: Poly) -> Poly:
    return ONE - apply(context, "erf", argument)


def _tan(context: Proof, argument: Poly) -> Poly:
    cosine = apply(context, "cos", argument)
    sine = apply(context, "sin", argument)
    return multiply(context, sine, power(context, cosine, -1))


def _atanh(context: Proof, argument: Poly) -> Poly:
    up, down = logarithm(context, ONE + argument), logarithm(context, ONE - argument)
    return (up - down).scaled(Fraction(1, 2))


def _acos(context: Proof, argument: Poly) -> Poly:
    half = of_atom(context.atom(kinds.NUMBER, "pi")).scaled(Fraction(1, 2))
    return half - apply(context, "asin", argument)


def _gamma(context: Proof, argument: Poly) -> Poly:
    if not is_positive(context, argument):
        raise Undecided("gamma of an argument that is not known to be positive")
    return exponential(context, apply(context, "loggamma", argument))


def _ceiling(context: Proof, argument: Poly) -> Poly:
    return -apply(context, "floor", -argument)


_LOWERED = {  # [rule: lowered]
    "tanh": _tanh, "sinh": _sinh, "cosh": _cosh, "erfc": _erfc, "tan": _tan, "atanh": _atanh,
    "acos": _acos, "gamma": _gamma, "ceiling": _ceiling,
}  # fmt: skip


# -- identities


def _quarters(argument: Poly) -> int | None:
    """How many quarters of a turn an angle is; None where that is no integer."""
    if len(argument.terms) != 1:
        return None
    ((monomial, value),) = argument.terms.items()
    whole = exact(2 * Fraction(value))
    turn = len(monomial) == 1 and monomial[0][0].kind == kinds.NUMBER and monomial[0][1] == 1
    return whole if turn and monomial[0][0].data[0] == "pi" and isinstance(whole, int) else None


def common_angles(context: Proof, poly: Poly) -> dict[Atom, Poly]:
    """Sines and cosines of multiples of one angle, by those of the greatest common divisor.

    Beside ``sin(x / 2)``, ``cos(x)`` is ``cos(x / 2)**2 - sin(x / 2)**2``.  [rule: trigonometry]
    """
    found: dict[Monomial, dict[Atom, Fraction]] = {}
    for atom in sorted(direct_atoms(poly), key=lambda a: a.key):
        angles = atom.kind == kinds.FUNCTION and atom.data[0] in ("sin", "cos")
        if angles and len(atom.data[1].terms) == 1:
            ((monomial, value),) = atom.data[1].terms.items()
            found.setdefault(monomial, {})[atom] = Fraction(value)
    put: dict[Atom, Poly] = {}
    for monomial, values in found.items():
        bottom = lcm(*(value.denominator for value in values.values()))
        top = gcd(*(int(value * bottom) for value in values.values()))
        unit = Fraction(top, bottom)
        for atom, value in values.items():
            times = int(value / unit)
            if 1 < times <= LARGEST_SHIFT:
                put[atom] = _multiple(context, atom.data[0], Poly({monomial: exact(unit)}), times)
    return put


def _multiple(context: Proof, name: str, unit: Poly, times: int) -> Poly:
    """The sine or cosine of a multiple of an angle."""
    sine, cosine = (of_atom(context.atom(kinds.FUNCTION, one, unit)) for one in ("sin", "cos"))
    both = sine, cosine
    for _ in range(times - 1):
        both = (
            multiply(context, both[0], cosine) + multiply(context, both[1], sine),
            multiply(context, both[1], cosine) - multiply(context, both[0], sine),
        )
    return both[name == "cos"]


def _addition_theorem(context: Proof, name: str, argument: Poly) -> Poly | None:
    """Sin and cos of sums and of small multiples.  [rule: trigonometry]."""
    monomial = argument.lead
    value = argument.terms[monomial]
    several = len(argument.terms) > 1
    if not several and not (isinstance(value, int) and 1 < value <= LARGEST_SHIFT):
        return None
    first = Poly({monomial: value if several else 1})
    second = argument - first
    sine, cosine = _opaque(context, "sin", first), _opaque(context, "cos", first)
    other_sine, other_cosine = _opaque(context, "sin", second), _opaque(context, "cos", second)
    if name == "sin":
        crossed = multiply(context, sine, other_cosine)
        return crossed + multiply(context, cosine, other_sine)
    straight = multiply(context, cosine, other_cosine)
    return straight - multiply(context, sine, other_sine)


def _recurrence(context: Proof, name: str, argument: Poly) -> Poly | None:
    """Gamma functions at ``x + n`` reduced to ``x + r`` with ``0 <= r < 1``.

    [rule: gamma-recurrence]
    """
    offset = Fraction(argument.terms.get((), 0))
    whole = offset.__floor__()
    base = argument.plus(-whole)
    if whole == 0 or base.constant is not None or abs(whole) > LARGEST_SHIFT:
        return None
    if name == "loggamma" and not is_positive(context, base):
        return None
    result = of_atom(context.atom(kinds.FUNCTION, name, base))
    steps = range(whole) if whole > 0 else range(whole, 0)
    direction = 1 if whole > 0 else -1
    for step in steps:
        shifted = base.plus(step)
        if name == "loggamma":
            term = logarithm(context, shifted)
        else:
            order = int(name[-1])
            term = power(context, shifted, -order - 1)
            term = term.scaled((-1) ** order * (2 if order == 2 else 1))
        result = result + term.scaled(direction)
    return result


def _integer_quotient(context: Proof, argument: Poly) -> Poly | None:
    """``floor(E / D)`` for an integer E and a product D of sizes and a number.  [rule: floor].

    It is ``[E >= 0] - 1`` where ``-D <= E < D``, ``[E >= D]`` where ``0 <= E < 2 D``, else
    ``E // D``.
    """
    divided = {atom: -e for m in argument.terms for atom, e in m if e < 0}
    values = argument.terms.values()
    exact = all(isinstance(value, (int, Fraction)) for value in values)
    if not exact or any(atom.kind != kinds.SIZE for atom in divided):
        return None
    divisor = monomial_poly(context, divided)
    divisor = divisor.scaled(lcm(*(Fraction(value).denominator for value in values)))
    whole = multiply(context, argument, divisor)
    if not (is_whole(whole) and is_whole(divisor)):
        return None
    if not integer_nonnegative(context, divisor.plus(-1)):
        return None
    for low in (-1, 0):
        if in_range(context, whole - divisor.scaled(low), divisor.scaled(2)):
            return at_least(context, whole - divisor.scaled(low + 1)).plus(low)
    return floordiv(context, whole, divisor)


def _floor(context: Proof, argument: Poly) -> Poly:
    """floor: integer parts come out.  [rule: floor]."""
    integers: dict[kinds.Monomial, Number] = {
        m: c for m, c in argument.terms.items() if isinstance(c, int) and is_integral(Poly({m: c}))
    }
    outside = Poly(integers)
    inside = argument - outside
    if not inside.terms:
        return outside
    if inside.constant is not None:
        return outside.plus(Fraction(inside.constant).__floor__())
    whole = _integer_quotient(context, inside)
    if whole is not None:
        return outside + whole
    return outside + of_atom(context.atom(kinds.FUNCTION, "floor", inside))


# -- angles: atan2, and the sine and cosine of it


def angle(context: Proof, y: Poly, x: Poly) -> Poly:
    """``atan2(y, x)``: positive common factors come out.  [rule: angle].

    Where y is not 0 it is odd in y, which is recorded.  The origin has no angle.
    """
    lifted = lift(context, y, lambda piece: angle(context, piece, x))
    if lifted is None:
        lifted = lift(context, x, lambda piece: angle(context, y, piece))
    if lifted is not None:
        return lifted
    if not y.terms and is_positive(context, x):
        return ZERO
    y, x = _over_common_factors(context, y, x)
    if y.terms and y.terms[y.lead] < 0:
        context.require_nonzero("angle", y)
        return -of_atom(context.atom(kinds.ANGLE, -y, x))
    return of_atom(context.atom(kinds.ANGLE, y, x))


def _over_common_factors(context: Proof, y: Poly, x: Poly) -> tuple[Poly, Poly]:
    """Both sides over their common positive factors."""
    sides = [side for side in (y, x) if side.terms]
    if not sides:
        return y, x
    contents = [content(context, side) for side in sides]
    shared: dict[kinds.Atom, Number] = {}
    for atom in contents[0][1]:
        least = min(own.get(atom, 0) for _, own, _ in contents)
        if least and factor_sign(context, atom, least) == POSITIVE:
            shared[atom] = -least
    scale = 1 / min(abs(Fraction(value)) for value, _, _ in contents)
    common = monomial_poly(context, shared)
    first, second = (multiply(context, common, side).scaled(scale) for side in (y, x))
    return first, second


_INVERSE = frozenset(("asin", "acos", "atan"))


def _side_of_angle(context: Proof, name: str, argument: Poly) -> Poly | None:
    """``sin(atan2(y, x))`` is ``y / sqrt(x**2 + y**2)``, the cosine ``x`` over it.  [rule: angle].

    ``asin u`` is the angle of u and sqrt(1 - u**2), ``acos u`` that of the two exchanged, and
    ``atan u`` that of u and 1.  None for any other argument.
    """
    atom = argument.atom
    if atom is not None and atom.kind == kinds.FUNCTION and atom.data[0] in _INVERSE:
        inverse: str = atom.data[0]
        u: Poly = atom.data[1]
        if (inverse, name) in (("asin", "sin"), ("acos", "cos")):
            return u
        if inverse != "atan":
            below, above = (power(context, one, Fraction(1, 2)) for one in (ONE - u, ONE + u))
            return multiply(context, below, above)
        y, x = u, ONE
    elif atom is not None and atom.kind == kinds.ANGLE:
        y, x = atom.data
    else:
        return None
    squares = multiply(context, y, y) + multiply(context, x, x)
    return multiply(context, y if name == "sin" else x, power(context, squares, Fraction(-1, 2)))
