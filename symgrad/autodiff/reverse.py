"""Reverse and forward differentiation, from graph to graph.

In: nodes of a graph, and cotangents (or tangents) in the same graph.  Out: more nodes in it.

Both walk the nodes in order of creation, never recursively.  Cotangents of a node that is used
several times are added in that order, so results are reproducible to the bit.  There is one walk
in reverse, ``adjoints``; what a node passes on to its arguments is a parameter of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from symgrad.errors import UnsupportedOpError
from symgrad.ir.function import AppliedRule
from symgrad.ir.graph import Follow, Node, all_args, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ops.markers import recorded_args
from symgrad.ops.record import Op, apply, get

Test = Callable[[Node], bool]
Parts = Iterable[tuple[Node, "Node | None"]]
"""The arguments of a node with what they get of its cotangent; None for zero."""


def _is_float(node: Node) -> bool:
    return node.dtype.is_float


def by_op(node: Node, cotangent: Node) -> Parts:
    """What the op's own VJP passes on; nothing where it has none."""
    rule = get(node.op).vjp
    return () if rule is None else zip(node.args, rule(node, cotangent), strict=True)


def by_record(rule_of: Callable[[int], AppliedRule], flows: Test) -> Callable[[Node, Node], Parts]:
    """What PyTorch's record of a computation passes on: nothing through ``detach``.

    ``rule_of``: the backward behind an ``applied`` marker, by its attribute ``rule``.
    """

    def parts(node: Node, cotangent: Node) -> Parts:
        if node.op == "detach":
            return ()
        if node.op == "applied":
            return by_rule(node, rule_of(node.attributes["rule"]), cotangent, flows)
        return by_op(node, cotangent)

    return parts


def by_rule(
    node: Node, rule: AppliedRule, cotangent: Node, flows: Test = _is_float
) -> list[tuple[Node, Node]]:
    """What a Function's backward makes of the cotangent of one of its outputs."""
    graph, chosen = node.graph, node.attributes["output"]
    known = {
        own: cotangent if place == chosen else graph.lift(0.0, own)
        for place, own in enumerate(rule.cotangents)
        if own is not None
    }
    pairs = zip(node.args[1:], rule.gradients, strict=True)
    wanted = [(arg, found) for arg, found in pairs if found is not None and flows(arg)]
    new = rewrite(graph, (found for _, found in wanted), known)
    return [(arg, new[found]) for arg, found in wanted]


def adjoints(
    outputs: Iterable[tuple[Node, Node]], order: Sequence[Node], *, flows: Test = _is_float,
    parts: Callable[[Node, Node], Parts] = by_op,
) -> dict[Node, Node]:  # fmt: skip
    """The adjoints of nodes, given those of ``outputs``.

    ``order``: the nodes that pass on what they get, arguments first.  ``flows``: which nodes get
    something.  ``parts``: what a node passes on.
    """
    found: dict[Node, Node] = {}
    for node, cotangent in outputs:
        _accumulate(found, node, cotangent)
    for node in reversed(order):
        if node in found and flows(node):
            for arg, part in parts(node, found[node]):
                if part is not None and flows(arg):
                    _accumulate(found, arg, part)
    return found


def vjp(
    outputs: Sequence[Node], cotangents: Sequence[Node | None], wrt: Sequence[Node]
) -> list[Node | None]:
    """The cotangents of ``wrt``: v·J for the cotangents v of ``outputs``.

    ``cotangents[i]`` has the type of ``outputs[i]``, or is None for zero.  An entry of the result
    is None where no path of differentiable ops leads from the node to an output.
    """
    order = ancestors(outputs)
    found = adjoints(_given(outputs, cotangents), order, flows=reached(order, wrt).__contains__)
    return [found.get(node) for node in wrt]


def recorded_vjp(
    outputs: Sequence[Node], cotangents: Sequence[Node | None], wrt: Sequence[Node],
    rule_of: Callable[[int], AppliedRule],
) -> list[Node | None]:  # fmt: skip
    """The same as PyTorch takes it from a trace with markers; ``wrt`` are leaves.

    ``rule_of``: as for ``by_record``.  Raises what a hand-written backward raised.
    """
    leaves = set(wrt)
    order = [node for node in ancestors(outputs, stop=leaves) if node not in leaves]
    flows = reached(order, wrt, recorded_args).__contains__
    parts = by_record(rule_of, flows)
    found = adjoints(_given(outputs, cotangents), order, flows=flows, parts=parts)
    return [found.get(node) for node in wrt]


def reached(order: Iterable[Node], wrt: Iterable[Node], follow: Follow = all_args) -> set[Node]:
    """The nodes that depend on one of ``wrt`` through floats; ``follow``: by these arguments."""
    found = set(wrt)
    for node in order:
        if node.dtype.is_float and any(arg in found for arg in follow(node)):
            found.add(node)
    return found


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


def _given(
    outputs: Sequence[Node], cotangents: Sequence[Node | None]
) -> Iterable[tuple[Node, Node]]:
    pairs = zip(outputs, cotangents, strict=True)
    return [(node, cotangent) for node, cotangent in pairs if cotangent is not None]


def _accumulate(found: dict[Node, Node], node: Node, cotangent: Node) -> None:
    known = found.get(node)
    found[node] = cotangent if known is None else known + cotangent


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
