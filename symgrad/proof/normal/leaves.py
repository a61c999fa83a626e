"""Elements of tensors, as declared facts make them.

In: a tensor's name and index polynomials.  Out: a leaf atom, or what a fact turns it into.
"""

from __future__ import annotations

from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal import power, relations, triangular
from symgrad.proof.normal.context import Context
from symgrad.proof.normal.facts import HOT
from symgrad.proof.normal.poly import ZERO, Poly, of_atom


def leaf(context: Context, tensor: str, indices: tuple[Poly, ...], sort: str = "real") -> Poly:
    """An element of a tensor; ``sort`` is ``real``, ``int`` or ``bool``.  [rule: declared-leaf].

    One-hot tensors become ``[hot(n) == c]``, binary ones conditions, and the last two indices
    of symmetric ones are put in order.
    """
    facts = context.facts
    if tensor in facts.one_hot and indices:
        hot = of_atom(context.atom(kinds.LEAF, HOT + tensor, indices[:-1], "int"))
        return relations.equal_integers(context, hot - indices[-1])
    if tensor in facts.binary:
        sort = "bool"
    if tensor in facts.symmetric and len(indices) >= 2:
        indices = symmetric_order(indices)
    if triangular.is_outside(context, tensor, indices):
        return ZERO
    turned = _inverted_diagonal(context, tensor, indices)
    if turned is not None:
        return turned
    return of_atom(context.atom(kinds.LEAF, tensor, indices, sort))


def _inverted_diagonal(context: Context, tensor: str, indices: tuple[Poly, ...]) -> Poly | None:
    """The diagonal of the inverse of a triangular matrix: one over its own.  [rule: triangular]."""
    facts = context.facts
    matrix = facts.inverses.get(tensor)
    if matrix is None or tensor not in facts.lower | facts.upper or indices[-1] != indices[-2]:
        return None
    return power.power(context, leaf(context, matrix, indices), -1)


def symmetric_order(indices: tuple[Poly, ...]) -> tuple[Poly, ...]:
    """The last two indices in the order of their keys."""
    *rest, row, column = indices
    if (column.erased, column.key) < (row.erased, row.key):
        row, column = column, row
    return (*rest, row, column)
