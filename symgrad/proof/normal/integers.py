"""Integer arithmetic: index expressions, quotients and remainders.

In: ``Dim`` expressions, integer polynomials.  Out: integer polynomials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import gcd

from symgrad.ir import dim as dims
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import leaves, lifting, multiply, relations, signs
from symgrad.proof.normal.atoms import Atom, Monomial, Number, Undecided
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import (
    ONE,
    ZERO,
    Poly,
    constant,
    magnitude,
    monomial_key,
    of_atom,
    ordered,
    plain_product,
)


@dataclass(frozen=True)
class Environment:
    """What the atoms of index expressions stand for.

    ``axes``: the index variables.  ``element``: the value of an element of an integer tensor that
    is computed rather than given; None for a given one.
    """

    axes: Mapping[dims.Axis, Poly] = field(default_factory=dict)
    element: Callable[[dims.Element], Poly | None] = lambda element: None


_EMPTY = Environment()


def from_dim(context: Context, dim: dims.Dim, environment: Environment = _EMPTY) -> Poly:
    """An index expression or size as a polynomial."""
    value = dim.constant
    if value is not None:
        return constant(value)
    result = ZERO
    for monomial, coefficient in dim.terms:
        product = constant(coefficient)
        for atom, exponent in monomial:
            factor = _from_atom(context, atom, environment)
            for _ in range(exponent):
                product = multiply.multiply(context, product, factor)
        result = result + product
    return result


def _from_atom(context: Context, atom: dims.Atom, environment: Environment) -> Poly:
    if isinstance(atom, dims.Size):
        return of_atom(context.atom(kinds.SIZE, atom.name))
    if isinstance(atom, dims.Axis):
        return environment.axes[atom]
    if isinstance(atom, dims.Element):
        computed = environment.element(atom)
        if computed is not None:
            return computed
        indices = tuple(from_dim(context, index, environment) for index in atom.indices)
        return leaves.leaf(context, atom.tensor, indices, "int")
    if isinstance(atom, dims.Derived):
        left = from_dim(context, atom.left, environment)
        right = from_dim(context, atom.right, environment)
        return DERIVED[atom.function](context, left, right)
    raise Undecided(f"an index expression of an unknown kind: {atom}")


def floordiv(context: Context, left: Poly, right: Poly) -> Poly:
    """``left // right`` rounded down, for ``right >= 1``.  [rule: floordiv].

    Multiples of ``right`` come out; what is left and lies in ``0 <= rest < right`` vanishes.
    """
    if right == ONE:
        return left
    if right.constant == 0:
        raise Undecided("an integer division by zero")
    if left.constant is not None and right.constant is not None:
        return constant(int(left.constant) // int(right.constant))
    if not signs.integer_nonnegative(context, right.plus(-1)):
        raise Undecided("an integer division by something not known to be positive")
    lifted = lifting.lift(context, left, lambda piece: floordiv(context, piece, right))
    if lifted is not None:
        return lifted
    whole, rest = _divide(left, right)
    if _in_range(context, rest, right):
        return whole
    return whole + _nested(context, rest, right)


def _nested(context: Context, left: Poly, right: Poly) -> Poly:
    """``(k // a) // b`` is ``k // (a b)``."""
    atom = left.atom
    if atom is not None and atom.kind == kinds.FLOORDIV:
        return floordiv(context, atom.data[0], plain_product(atom.data[1], right))
    reduced = _reduced(context, left, right)
    if reduced is not None:
        return reduced
    return of_atom(context.atom(kinds.FLOORDIV, left, right))


def _reduced(context: Context, left: Poly, right: Poly) -> Poly | None:
    """``(s a + b) // (s c)`` is ``a // c`` where ``0 <= b < s``."""
    if len(right.terms) != 1:
        return None
    ((whole, size),) = right.terms.items()
    for monomial, value in sorted(left.terms.items(), key=lambda term: monomial_key(term[0])):
        shared = _common(monomial, int(value), whole, int(size))
        divided = signs.quotient(right, shared)
        if shared in (ONE, right) or divided is None:
            continue
        multiple, rest = _divide(left, shared)
        if multiple.terms and _in_range(context, rest, shared):
            return floordiv(context, multiple, divided)
    return None


def _common(first: Monomial, value: int, second: Monomial, size: int) -> Poly:
    """The greatest common divisor of two terms."""
    powers = dict(second)
    shared: dict[Atom, Number] = {a: min(e, powers.get(a, 0)) for a, e in first}
    return Poly({ordered(shared): gcd(value, size)})


def without_quotient(poly: Poly) -> Poly | None:
    """``P // q + c >= 0`` is ``P + c q >= 0``; the same for ``c - P // q``.

    [rule: floordiv]
    """
    for monomial, value in poly.terms.items():
        if len(monomial) != 1 or monomial[0][1] != 1 or value not in (1, -1):
            continue
        atom = monomial[0][0]
        if atom.kind != kinds.FLOORDIV:
            continue
        left: Poly = atom.data[0]
        right: Poly = atom.data[1]
        rest = plain_product(poly - Poly({monomial: value}), right)
        return left + rest if value == 1 else (rest + right - left).plus(-1)
    return None


def congruent(context: Context, poly: Poly) -> tuple[Poly, Poly] | None:
    """``(q, r)``: ``s q + r == 0`` means ``q == 0`` and ``r == 0``, since ``|r| < s``.

    [rule: flatten]
    """
    strides = {}
    for monomial, value in poly.terms.items():
        sizes = tuple((a, e) for a, e in monomial if a.kind == kinds.SIZE)
        if monomial and (sizes or value not in (1, -1)):
            stride = Poly({sizes: magnitude(value)})
            strides[stride.key] = stride
    for key in sorted(strides):
        stride = strides[key]
        first, left = _divide(poly, stride)
        for shift in (0, 1, -1):
            whole, rest = first.plus(shift), left - stride.scaled(shift)
            if not whole.terms or not rest.terms or stride == ONE:
                continue
            below = (stride - rest).plus(-1), (stride + rest).plus(-1)
            if all(signs.integer_nonnegative(context, side) for side in below):
                return whole, rest
    return None


def remainder(context: Context, left: Poly, right: Poly) -> Poly:
    """``left % right`` for ``right >= 1``: ``left - right * (left // right)``."""
    product = multiply.multiply(context, right, floordiv(context, left, right))
    return left - product


def minimum(context: Context, left: Poly, right: Poly) -> Poly:
    """The lesser integer: ``right + [right >= left] (left - right)``."""
    smaller = relations.at_least(context, right - left)
    return right + multiply.multiply(context, smaller, left - right)


def maximum(context: Context, left: Poly, right: Poly) -> Poly:
    """The greater integer."""
    return left + right - minimum(context, left, right)


DERIVED = {"floordiv": floordiv, "mod": remainder, "min": minimum, "max": maximum}


def _divide(left: Poly, right: Poly) -> tuple[Poly, Poly]:
    """``(q, r)`` with ``left == q * right + r``: the terms of ``left`` that divide by ``right``."""
    exact = signs.quotient(left, right)
    if exact is not None:
        return exact, ZERO
    whole, rest = ZERO, left
    lead = right.lead
    for monomial, value in left.terms.items():
        exponents = dict(monomial)
        for atom, exponent in lead:
            exponents[atom] = exponents.get(atom, 0) - exponent
        if any(e < 0 for e in exponents.values()):
            continue
        times = int(value) // int(right.terms[lead])
        if times and (lead or not monomial or times * int(right.terms[lead]) == value):
            step = Poly({tuple((a, e) for a, e in exponents.items() if e): times})
            whole, rest = whole + step, rest - plain_product(step, right)
    return whole, rest


def _in_range(context: Context, value: Poly, bound: Poly) -> bool:
    return signs.integer_nonnegative(context, value) and signs.integer_nonnegative(
        context, (bound - value).plus(-1)
    )
