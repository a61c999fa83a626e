"""What the text of tensor code depends on: broadcasting, sharing, the shapes of products.

In: nodes.  Out: answers for ``symgrad.proof.words.code``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from symgrad.ir.dim import Dim, Size
from symgrad.ir.graph import Node
from symgrad.ops.movement import transposed_axes
from symgrad.ops.record import get

INFIX = re.compile(r"\{0\}( ?\S+? ?)\{1\}")
"""The tensor code of an op that is an operator between its operands."""
WRITING = ("unslice", "index_add")
"""Ops that are written as an assignment to parts of zeros."""


def needed(node: Node, stop: Mapping[Node, str]) -> list[Node]:
    """What a node is computed from, arguments first; named nodes are not entered."""
    found: dict[int, Node] = {}
    todo = [node]
    while todo:
        part = todo.pop()
        if part.index not in found:
            found[part.index] = part
            if part not in stop:
                todo.extend(part.args)
    return [found[index] for index in sorted(found)]


def words(names: Mapping[Node, str]) -> set[str]:
    """Names of inputs that may turn up in the code."""
    graphs = {node.graph for node in names}
    return {name for graph in graphs for name in graph.inputs}


def shared(root: Node, names: Mapping[Node, str]) -> list[Node]:
    """Unnamed nodes that are read more than once, arguments first."""
    uses: dict[Node, int] = {}
    order = needed(root, names)
    for node in order:
        if node not in names:
            operands = least_expanded(node, names) if broadcasts(node) else node.args
            doubled = node.op == "add" and node.args[0] is node.args[1]
            for arg in operands[:1] if doubled else operands:
                uses[arg] = uses.get(arg, 0) + 1
    plain = ("input", "constant", "size", "expand", "iota")
    return [
        node for node in order
        if node not in names and node.op not in plain
        and (uses.get(node, 0) > 1 or node.op in WRITING)
    ]  # fmt: skip


def broadcasts(node: Node) -> bool:
    """Is it written as an operator or a function that broadcasts its operands?"""
    op = get(node.op)
    if op.kind != "elementwise" or op.code is None:
        return False
    return op.code.startswith("{sg}.") or INFIX.fullmatch(op.code) is not None


def shed(node: Node, names: Mapping[Node, str]) -> Node:
    """What an operand was expanded from, unless it has a name of its own."""
    while node not in names and (
        node.op == "expand" or (node.op == "reshape" and not node.args[0].rank)
    ):
        node = node.args[0]
    return node


def least_expanded(node: Node, names: Mapping[Node, str]) -> list[Node]:
    """The operands as they were before expansion, as far as broadcasting gives the same shape."""
    bare = [shed(arg, names) for arg in node.args]
    if broadcast(bare) == node.shape:
        return bare
    for position, arg in enumerate(node.args):
        if bare[position].rank:
            mixed = [*bare[:position], arg, *bare[position + 1 :]]
            if broadcast(mixed) == node.shape:
                return mixed
    return list(node.args)


def averaged(
    node: Node, names: Mapping[Node, str]
) -> tuple[Node, tuple[int, ...], bool] | None:  # fmt: skip
    """What a quotient is the mean of, over which axes, and whether these are kept."""
    if node.op != "div":
        return None
    top, count = (shed(arg, names) for arg in node.args)
    kept = top.op == "reshape" and top not in names
    total = top.args[0] if kept else top
    if total.op != "sum" or total in names or top in names or count.op != "size":
        return None
    (inner,), over = total.args, tuple(total.attributes["axes"])
    if kept and inserted_axes(total.shape, top.shape) != over:
        return None
    if top.shape != node.shape:
        return None
    number = Dim.of(1)
    for axis in over:
        number = number * inner.shape[axis]
    return (inner, over, kept) if number == count.attributes["dim"] else None


def broadcast(nodes: Sequence[Node]) -> tuple[Dim, ...]:
    """The shape that nodes broadcast to."""
    rank = max(node.rank for node in nodes)
    shape = [Dim.of(1)] * rank
    for node in nodes:
        for axis, size in enumerate(node.shape, rank - node.rank):
            if size != 1:
                shape[axis] = size
    return tuple(shape)


def axes(axes: Sequence[int]) -> str:
    """Axes as an argument: ``1`` or ``(0, 2)``."""
    return str(axes[0]) if len(axes) == 1 else f"({', '.join(map(str, axes))})"


def finite(value: float) -> bool:
    """Is a number neither infinite nor NaN?"""
    return value == value and value not in (float("inf"), float("-inf"))


def inserted_axes(old: Sequence[Dim], new: Sequence[Dim]) -> tuple[int, ...] | None:
    """The axes of size 1 that ``new`` has beyond ``old``; None where they differ otherwise."""
    found, position = [], 0
    for axis, size in enumerate(new):
        if (
            position < len(old)
            and old[position] == size
            and (size != 1 or len(new) - axis <= len(old) - position)
        ):
            position += 1
        elif size == 1:
            found.append(axis)
        else:
            return None
    return tuple(found) if position == len(old) else None


def matrix_product(spec: str) -> tuple[bool, tuple[bool, bool]] | None:
    """Whether operands are swapped and which are transposed, where a spec is a matrix product."""
    operands, result = spec.split("->")
    left, right = operands.split(",")
    if len(left) != len(right) or len(left) < 2 or len(result) != len(left):
        return None
    batch = result[:-2]
    if left[:-2] != batch or right[:-2] != batch:
        return None
    row, column = result[-2], result[-1]
    for swapped, (first, second) in ((False, (left, right)), (True, (right, left))):
        a, b = first[-2:], second[-2:]
        if row in a and column in b and row not in b and column not in a:
            inner = a.replace(row, "")
            if inner == b.replace(column, ""):
                return swapped, (a[0] != row, b[1] != column)
    return None


def vector_product(spec: str) -> tuple[str, bool] | None:
    """The operator that does what a spec says, and whether operands are swapped.

    For products with a number, with a vector, and of a tensor's last axis with a matrix.
    """
    operands, result = spec.split("->")
    left, right = operands.split(",")
    if not (left and right):
        return ("*", False) if result == left + right else None
    for swapped, (a, b) in ((False, (left, right)), (True, (right, left))):
        over, rest = (b, "") if len(b) == 1 else (b[:1], b[1:])
        distinct = len(set(a)) == len(a) and len(rest) < 2 and not set(rest) & set(a)
        if distinct and a[-1] == over and result == a[:-1] + rest:
            return "@", swapped
    return None


def is_transposition(node: Node) -> bool:
    """Does a node exchange the last two axes and no others?"""
    if node.op != "permute":
        return False
    return node.rank >= 2 and tuple(node.attributes["axes"]) == transposed_axes(node.rank)


def whole_flip(node: Node) -> tuple[int, ...]:
    """The axes that a slice, or its adjoint, reverses as a whole; none where it does more."""
    if node.op not in ("slice", "unslice") or node.shape != node.args[0].shape:
        return ()
    steps = node.attributes["steps"]
    if any(step not in (1, -1) for step in steps):
        return ()
    return tuple(axis for axis, step in enumerate(steps) if step == -1)


def scattered_axis(places: Sequence[Node], rank: int) -> int | None:
    """The axis along which ``scatter_add`` adds: all other places are the position itself."""
    if len(places) != rank or any(place.rank != rank for place in places):
        return None
    free = [axis for axis, place in enumerate(places) if not _is_position(place, axis)]
    return free[0] if len(free) == 1 else None


def _is_position(node: Node, axis: int) -> bool:
    """Is it ``iota`` along one axis, broadcast along the others?"""
    while node.op == "expand":
        node = node.args[0]
    if node.op == "reshape":
        shape, node = node.shape, node.args[0]
        if any(size != 1 for at, size in enumerate(shape) if at != axis):
            return False
    elif axis:
        return False
    return node.op == "iota"


def replace_word(text: str, word: str, new: str) -> str:
    """``text`` with a whole word replaced."""
    return re.sub(rf"\b{re.escape(word)}\b", new, text)


def size_sources(
    inputs: Iterable[Node], aliases: Mapping[str, str] | None = None
) -> dict[str, str]:  # fmt: skip
    """Where each size can be read from: ``{"n": "x.shape[0]"}``.

    ``aliases``: what the program calls the nodes whose labels it does not know.
    """
    called = aliases or {}
    found: dict[str, str] = {}
    for node in inputs:
        for axis, size in enumerate(node.shape):
            atom = size.atom
            if isinstance(atom, Size):
                found.setdefault(atom.name, f"{called.get(node.label, node.label)}.shape[{axis}]")
    return found
