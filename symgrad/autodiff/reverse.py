"""Reverse and forward differentiation, from graph to graph.

In: nodes of a graph, and cotangents (or tangents) in the same graph.  Out: more nodes in it.

Both walk the nodes in order of creation, never recursively.  Cotangents of a node that is used
several times are added in that order, so results are reproducible to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symgrad.errors import UnsupportedOpError
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.record import Op, apply, get


def vjp(
    outputs: Sequence[Node], cotangents: Sequence[Node | None], wrt: Sequence[Node]
) -> list[Node | None]:
    """The cotangents of ``wrt``: v·J for the cotangents v of ``outputs``.

    ``cotangents[i]`` has the type of ``outputs[i]``, or is None for zero.  An entry of the result
    is None where no path of differentiable ops leads from the node to an output.
    Raises UnsupportedOpError for an op without a VJP.
    """
    order = ancestors(outputs)
    active = _reachable(order, wrt)
    found: dict[int, Node] = {}
    for node, cotangent in zip(outputs, cotangents, strict=True):
        if cotangent is not None:
            _accumulate(found, node, cotangent)
    keep = {node.index for node in wrt}
    for node in reversed(order):
        if node.index not in found or node.index not in active or not node.args:
            continue
        cotangent = found[node.index] if node.index in keep else found.pop(node.index)
        for arg, contribution in zip(node.args, _contributions(node, cotangent), strict=True):
            if contribution is not None and arg.index in active:
                _accumulate(found, arg, contribution)
    return [found.get(node.index) for node in wrt]


def jvp(
    outputs: Sequence[Node], inputs: Sequence[Node], tangents: Sequence[Node | None]
) -> list[Node | None]:
    """The tangents of ``outputs``: J·t for the tangents t of ``inputs``; None for zero.

    An op's own tangent rule comes first, then linearity, then the diagonal of an elementwise op.
    Raises UnsupportedOpError for an op that has neither.
    """
    found = {n.index: t for n, t in zip(inputs, tangents, strict=True) if t is not None}
    for node in ancestors(outputs):
        if node.index not in found and any(arg.index in found for arg in node.args):
            tangent = _tangent(node, [found.get(arg.index) for arg in node.args])
            if tangent is not None:
                found[node.index] = tangent
    return [found.get(node.index) for node in outputs]


def _reachable(order: Iterable[Node], wrt: Sequence[Node]) -> set[int]:
    """The nodes that depend on one of ``wrt`` through floats."""
    active = {node.index for node in wrt}
    for node in order:
        if node.dtype.is_float and any(arg.index in active for arg in node.args):
            active.add(node.index)
    return active


def _contributions(node: Node, cotangent: Node) -> Sequence[Node | None]:
    op = get(node.op)
    if op.vjp is None:
        return [None] * len(node.args)
    return op.vjp(node, cotangent)


def _accumulate(found: dict[int, Node], node: Node, cotangent: Node) -> None:
    known = found.get(node.index)
    found[node.index] = cotangent if known is None else known + cotangent


def _tangent(node: Node, tangents: list[Node | None]) -> Node | None:
    op = get(node.op)
    if op.tangent is not None:
        return op.tangent(node, tangents)
    if op.linear:
        return _linear(node, op, tangents)
    if op.kind == "elementwise":
        return _elementwise(node, op, tangents)
    if not node.dtype.is_float:
        return None
    raise UnsupportedOpError(f"the op {node.op!r} has no tangent", location=node.location)


def _linear(node: Node, op: Op, tangents: list[Node | None]) -> Node | None:
    """A multilinear op: the sum of its values with one argument after another as its tangent."""
    total: Node | None = None
    for position in op.linear:
        tangent = tangents[position]
        if tangent is None:
            continue
        args = [*node.args[:position], tangent, *node.args[position + 1 :]]
        term = apply(node.op, *args, **node.attributes)
        total = term if total is None else total + term
    return total


def _elementwise(node: Node, op: Op, tangents: list[Node | None]) -> Node | None:
    """The Jacobian of an elementwise op is diagonal: its VJP with a tangent is its JVP."""
    if op.vjp is None:
        return None
    total: Node | None = None
    for position, tangent in enumerate(tangents):
        if tangent is None:
            continue
        term = op.vjp(node, tangent)[position]
        if term is not None:
            total = term if total is None else total + term
    return total
