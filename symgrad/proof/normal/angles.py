"""Angles of points: atan2 and the sine and cosine of it.

In: two polynomials.  Out: an angle atom, or what its sine or cosine is.
"""

from __future__ import annotations

from fractions import Fraction

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import lifting, multiply, power, signs
from symgrad.proof.normal.atoms import Number
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.poly import ZERO, Poly, of_atom


def angle(context: Context, y: Poly, x: Poly) -> Poly:
    """``atan2(y, x)``: positive common factors come out.  [rule: angle].

    Where y is not 0 it is odd in y, which is recorded.  The origin has no angle.
    """
    lifted = lifting.lift(context, y, lambda piece: angle(context, piece, x))
    if lifted is None:
        lifted = lifting.lift(context, x, lambda piece: angle(context, y, piece))
    if lifted is not None:
        return lifted
    if not y.terms and signs.is_positive(context, x):
        return ZERO
    y, x = _reduced(context, y, x)
    if y.terms and y.terms[y.lead] < 0:
        context.require_nonzero("angle", y)
        return -of_atom(context.atom(kinds.ANGLE, -y, x))
    return of_atom(context.atom(kinds.ANGLE, y, x))


def _reduced(context: Context, y: Poly, x: Poly) -> tuple[Poly, Poly]:
    """Both sides over their common positive factors."""
    sides = [side for side in (y, x) if side.terms]
    if not sides:
        return y, x
    contents = [power.content(context, side) for side in sides]
    shared: dict[kinds.Atom, Number] = {}
    for atom in contents[0][1]:
        least = min(own.get(atom, 0) for _, own, _ in contents)
        if least and signs.factor_sign(context, atom, least) == signs.POSITIVE:
            shared[atom] = -least
    scale = 1 / min(abs(Fraction(value)) for value, _, _ in contents)
    factor = multiply.monomial_poly(context, shared)
    first, second = (multiply.multiply(context, factor, side).scaled(scale) for side in (y, x))
    return first, second


def side_of(context: Context, name: str, argument: Poly) -> Poly | None:
    """``sin(atan2(y, x))`` is ``y / sqrt(x**2 + y**2)``, the cosine ``x`` over it.  [rule: angle].

    None for any other argument.
    """
    atom = argument.atom
    if atom is None or atom.kind != kinds.ANGLE:
        return None
    y, x = atom.data
    squares = multiply.multiply(context, y, y) + multiply.multiply(context, x, x)
    return multiply.multiply(
        context, y if name == "sin" else x, power.power(context, squares, Fraction(-1, 2))
    )
