"""Reverse differentiation of a lifted trace, in which Functions keep their own backwards.

In: nodes of a ``Session`` with a history.  Out: more nodes in it: cotangents; or the same values in
another graph, without the markers that tell histories.
"""

from __future__ import annotations

from collections.abc import Sequence

from symgrad.frontend.session import Session
from symgrad.ir.graph import Graph, Node, ancestors, copy_into
from symgrad.ops.record import get


def pull_back(
    session: Session, outputs: Sequence[Node], cotangents: Sequence[Node | None],
    wanted: Sequence[Node],
) -> list[Node | None]:  # fmt: skip
    """The cotangents of ``wanted``: v·J for the cotangents v of ``outputs``; None for zero.

    Raises what a hand-written backward raised.
    """
    order = ancestors(outputs, stop=wanted)
    active = _active(order, wanted)
    keep = {node.index for node in wanted}
    found: dict[int, Node] = {}
    for node, cotangent in zip(outputs, cotangents, strict=True):
        if cotangent is not None:
            _add(found, node, cotangent)
    for node in reversed(order):
        if node.index not in found or node.index not in active or node.index in keep:
            continue
        parts = _parts(session, node, found.pop(node.index), active)
        for arg, part in zip(node.args, parts, strict=False):
            if part is not None and arg.index in active:
                _add(found, arg, part)
    return [found.get(node.index) for node in wanted]


def _active(order: Sequence[Node], wanted: Sequence[Node]) -> set[int]:
    """The nodes that depend on one of ``wanted`` through floats and histories."""
    active = {node.index for node in wanted}
    for node in order:
        if node.index not in active and node.dtype.is_float and node.op != "detach":
            args = node.args[1:] if node.op == "applied" else node.args
            if any(arg.index in active for arg in args):
                active.add(node.index)
    return active


def _parts(
    session: Session, node: Node, cotangent: Node, active: set[int]
) -> Sequence[Node | None]:  # fmt: skip
    if node.op == "applied":
        return [None, *_by_own_rule(session, node, cotangent, active)]
    rule = get(node.op).vjp
    return () if rule is None or not node.args else rule(node, cotangent)


def _by_own_rule(
    session: Session, node: Node, cotangent: Node, active: set[int]
) -> list[Node | None]:  # fmt: skip
    """What a Function's backward makes of the cotangent of one of its outputs."""
    assert session.history is not None
    rule = session.history.rule(node.attributes["rule"])
    known: dict[Node, Node] = {}
    for place, own in enumerate(rule.cotangents):
        if own is not None:
            chosen = place == node.attributes["output"]
            known[own] = cotangent if chosen else session.graph.lift(0, own)
    wanted = [
        gradient if arg.index in active else None
        for arg, gradient in zip(node.args[1:], rule.gradients, strict=True)
    ]
    roots = [gradient for gradient in wanted if gradient is not None]
    new = _rebuilt(session.graph, roots, known)
    return [None if gradient is None else new[gradient] for gradient in wanted]


def _rebuilt(graph: Graph, roots: Sequence[Node], known: dict[Node, Node]) -> dict[Node, Node]:
    """``roots`` in the same graph, with other nodes in place of ``known``."""
    new = dict(known)
    for node in ancestors(roots, stop=known):
        if node in new:
            continue
        if all(new[arg] is arg for arg in node.args):
            new[node] = node
        else:
            new.update(copy_into(graph, [node], new))
    return new


def _add(found: dict[int, Node], node: Node, cotangent: Node) -> None:
    known = found.get(node.index)
    found[node.index] = cotangent if known is None else known + cotangent


def settled(graph: Graph, roots: Sequence[Node], known: dict[Node, Node]) -> dict[Node, Node]:
    """Rebuild what ``roots`` need in another graph, markers replaced by what they mark.

    ``known`` gives nodes already there; the result, where each node has gone.
    """
    new = dict(known)
    todo, order, seen = list(roots), [], set()
    while todo:
        node = todo.pop()
        if node.index in seen:
            continue
        seen.add(node.index)
        order.append(node)
        if node not in new:
            todo.extend(node.args[:1] if is_marker(node) else node.args)
    for node in sorted(order, key=lambda node: node.index):
        if node in new:
            continue
        if is_marker(node):
            new[node] = new[node.args[0]]
        else:
            new.update(copy_into(graph, [node], new))
    return new


def is_marker(node: Node) -> bool:
    """Does it only say something of the history of its first argument?"""
    return node.op in ("detach", "applied")
