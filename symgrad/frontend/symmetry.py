"""Is a matrix plainly symmetric?  What reads one triangle of it is a condition where it is not.

In: a node whose last two axes are matrices.  Out: whether it is its own transpose by the way it is
built, or because an input was declared symmetric.  False where that is not seen.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import permutations

from symgrad.frontend.caller import here
from symgrad.frontend.questions import questions
from symgrad.frontend.session import Session
from symgrad.ir.assume import symmetric
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.contraction import parse
from symgrad.ops.movement import transposed_axes
from symgrad.ops.record import get

_COMMUTATIVE = ("add", "mul", "eq", "ne", "maximum", "minimum", "logical_and", "logical_or")


def demand_symmetric(session: Session, node: Node, name: str) -> None:
    """Print that ``name`` takes symmetric matrices, of which the library reads one triangle.

    symgrad's own takes the symmetric part of any.  Where it is enough that inputs are symmetric,
    the session notes these, so that no point is looked at where they are not.
    """
    known = questions()
    if known is not None and session.guest is not None and not is_symmetric(session, node):
        known.assume(f"the matrices that {name} takes are symmetric", here())
        session.symmetric |= _enough(session, node)


def _enough(session: Session, node: Node) -> set[str]:
    """Square inputs with which it is plainly symmetric, if these are; none where none suffice."""
    names = [
        one.attributes["name"] for one in ancestors([node])
        if one.op == "input" and one.rank >= 2 and one.shape[-1] == one.shape[-2]
    ]  # fmt: skip
    own, needed = session.assumed, set(names)

    def suffice(chosen: Collection[str]) -> bool:
        session.assumed = (*own, *map(symmetric, sorted(chosen)))
        return is_symmetric(session, node)

    try:
        if not suffice(needed):
            return set()
        for name in names:
            if suffice(needed - {name}):
                needed.remove(name)
        return needed
    finally:
        session.assumed = own


def is_symmetric(session: Session, node: Node) -> bool:
    """Is it plainly its own transpose?"""
    if node.op == "input":
        return node.attributes["name"] in session.declared("symmetric")
    if node.op == "inverse":
        return is_symmetric(session, node.args[0])
    return _is_turned(session, node, node)


def _is_turned(session: Session, left: Node, right: Node) -> bool:
    """Is the one plainly the transpose of the other?"""
    if left.rank < 2:
        return left.rank == 0 and left is right
    for one, other in ((left, right), (right, left)):
        if one.op == "permute" and tuple(one.attributes["axes"]) == transposed_axes(one.rank):
            return one.args[0] is other or _is_turned(session, one.args[0], one.args[0])
    if left.op != right.op:
        return False
    if left.op in ("input", "inverse"):
        return left is right and is_symmetric(session, left)
    if left.op == "einsum":
        return _products_turned(left, right)
    if left.op == "expand":
        return _expansions_turned(session, left.args[0], right.args[0])
    if left is right and left.op in ("square", "abs"):
        inner = left.args[0]
        if inner.op == "sub" and _is_turned(session, *inner.args):
            return True
    if left.op == "cast" or get(left.op).kind == "elementwise":
        orders = permutations(right.args) if left.op in _COMMUTATIVE else (right.args,)
        return dict(left.attributes) == dict(right.attributes) and any(
            all(_is_turned(session, *pair) for pair in zip(left.args, order, strict=True))
            for order in orders
        )
    return False


def _expansions_turned(session: Session, left: Node, right: Node) -> bool:
    """Of a number, of a column beside the same row, of matrices."""
    if left.rank == right.rank == 0:
        return left is right
    both = (left, right)
    if all(one.op == "reshape" for one in both) and left.args[0] is right.args[0]:
        origin = left.args[0]
        size, one = (*origin.shape, 1), (1, *origin.shape)
        return origin.rank == 1 and {left.shape, right.shape} == {size, one}
    return left.rank == right.rank >= 2 and _is_turned(session, left, right)


def _products_turned(left: Node, right: Node) -> bool:
    """Are they the same contraction with the last two axes of the result exchanged?"""
    *inputs, output = parse(left.attributes["spec"])
    *others, result = parse(right.attributes["spec"])
    if len(output) < 2 or len(output) != len(result):
        return False
    swapped = (*result[:-2], result[-1], result[-2])
    names = dict(zip(swapped, output, strict=True))
    return any(
        _same_factors(list(zip(inputs, left.args, strict=True)), order, names)
        for order in permutations(zip(others, right.args, strict=True))
    )


def _same_factors(
    factors: Sequence[tuple[str, Node]], others: Sequence[tuple[str, Node]], names: dict[str, str]
) -> bool:
    """Are the factors the same tensors, with the same letters but for those summed over?"""
    known = dict(names)
    for (letters, factor), (own, other) in zip(factors, others, strict=True):
        first, second = _origin(letters, factor), _origin(own, other)
        if first[1] is not second[1]:
            return False
        for letter, its in zip(first[0], second[0], strict=True):
            if known.setdefault(its, letter) != letter:
                return False
    return len(set(known.values())) == len(known)


def _origin(letters: str, factor: Node) -> tuple[tuple[str, ...], Node]:
    """A factor with its letters, before its axes were permuted."""
    found = tuple(letters)
    while factor.op == "permute":
        axes = factor.attributes["axes"]
        found = tuple(found[axes.index(place)] for place in range(len(axes)))
        factor = factor.args[0]
    return found, factor
