"""Which values must be one array of numbers: those that are compared with what is made of them.

In: nodes.  Out: the indices of such values.

``t == amax(t)`` asks for the same bits on both sides.  Arithmetic of IEEE 754 gives them wherever
it is done; a transcendental function, whose vectorised and scalar versions differ in the last bit,
and a sum, which is associated as its loop is, do not.  A value of the latter kind from which both
sides of a comparison are made by the former alone is computed once, stored, and read from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symgrad.ir.graph import Node
from symgrad.ops.logic import COMPARISONS
from symgrad.ops.record import Function, Infix, Template, get
from symgrad.ops.reductions import EXTREMES_ALONG

_LEFT, _RIGHT, _LEFT_MOVED, _RIGHT_MOVED = 1, 2, 4, 8
_BOTH_SIDES = (_LEFT | _LEFT_MOVED, _RIGHT | _RIGHT_MOVED)


def compared(nodes: Sequence[Node]) -> set[int]:
    """The values among ``nodes`` (arguments first) that meet themselves in a comparison.

    They are reached from both sides of comparisons, or from one side both as they lie and
    elsewhere: as a maximum, broadcast, or moved.  One sweep for all comparisons: a value may be
    found that is on the left of one and on the right of another.
    """
    reached: dict[int, int] = {}
    found: set[int] = set()
    for node in reversed(nodes):
        if node.op in COMPARISONS and node.args[0].dtype.is_float:
            for arg, side in zip(node.args, (_LEFT, _RIGHT), strict=True):
                reached[arg.index] = reached.get(arg.index, 0) | side
        elif node.op == "rank":
            (arg,) = node.args
            reached[arg.index] = reached.get(arg.index, 0) | _LEFT | _RIGHT_MOVED
        bits = reached.get(node.index, 0)
        if not bits or not node.args:
            continue
        if _passes(node):
            moved = bits if get(node.op).kind == "elementwise" else _moved(bits)
            for arg in _values(node):
                reached[arg.index] = reached.get(arg.index, 0) | moved
        elif _meets_itself(bits):
            found.add(node.index)
    return found


def shared(nodes: Sequence[Node], outputs: Iterable[Node]) -> set[int]:
    """The values among ``nodes`` that several outputs show, one of them as a maximum or minimum.

    Whoever compares these outputs compares values with their maximum.
    """
    reached: dict[int, set[int]] = {}
    chosen: set[int] = set()
    found: set[int] = set()
    for number, node in enumerate(dict.fromkeys(outputs)):
        reached.setdefault(node.index, set()).add(number)
    for node in reversed(nodes):
        numbers = reached.pop(node.index, None)
        if not numbers or not node.args or not node.dtype.is_float:
            continue
        if _passes(node):
            picked = node.op in EXTREMES_ALONG or node.index in chosen
            for arg in _values(node):
                two = sorted(reached.get(arg.index, set()) | numbers)[:2]
                reached[arg.index] = set(two)
                if picked:
                    chosen.add(arg.index)
        elif len(numbers) > 1 and node.index in chosen:
            found.add(node.index)
    return found


def _moved(bits: int) -> int:
    sides = _LEFT_MOVED if bits & _BOTH_SIDES[0] else 0
    return sides | (_RIGHT_MOVED if bits & _BOTH_SIDES[1] else 0)


def _meets_itself(bits: int) -> bool:
    left, right = _BOTH_SIDES
    return bool(bits & left and bits & right) or bits & left == left or bits & right == right


def _values(node: Node) -> Iterable[Node]:
    """The float arguments."""
    return (arg for arg in node.args if arg.dtype.is_float)


def _passes(node: Node) -> bool:
    """Does the node give the same bits wherever it is computed from the same bits?"""
    op = get(node.op)
    if op.scalar is None:
        return op.kind in ("movement", "marker") or node.op in EXTREMES_ALONG or _picks(node)
    spelling = op.scalar.c
    if isinstance(spelling, Function):
        return not spelling.vector
    if isinstance(spelling, Template):
        return not spelling.vector_functions
    return isinstance(spelling, Infix)


def _picks(node: Node) -> bool:
    """Does it put every element at a place of its own: an indexed read, or a sort?"""
    if node.op == "index_add":
        return any(place.op == "rank" for place in node.args[1:])
    return node.op == "index"
