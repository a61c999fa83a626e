"""What a derived backward keeps and what it computes again: a minimum cut of the joint graph.

In: a joint graph.  Out: the nodes to save.

A node costs the bytes that keeping it moves; computing it again costs its work, converted to
bytes.  The cheapest set of nodes that parts the cotangents' side from the inputs is saved (the
min-cut rematerialisation of Jia et al. 2019 and of PyTorch's AOTAutograd).  What backward compares
with what forward made of it is not computed again: its bits would be others.
"""

from __future__ import annotations

from symgrad.ir.graph import Node, ancestors
from symgrad.ops.compared import compared
from symgrad.ops.record import get
from symgrad.passes.price import moved, work
from symgrad.passes.split import Joint

TRANSFERS_IF_KEPT = 3
"""A new array is allocated, written and read; the op's own inputs and outputs are only read."""


def choose_saved(joint: Joint) -> tuple[Node, ...]:
    """The forward nodes that a derived backward should be given, in order of creation."""
    import networkx as nx

    forward = ancestors(joint.outputs)
    inside = {node.index for node in forward}
    gradients = [node for node in joint.gradients if node is not None]
    backward = [node for node in ancestors(gradients) if node.index not in inside]
    network = nx.DiGraph()
    network.add_nodes_from(("source", "sink"))
    own = {node.index for node in (*joint.inputs, *joint.outputs, *joint.numbers)}
    once = own | compared(ancestors(gradients))
    for node in forward:
        arriving, leaving = (node.index, "in"), (node.index, "out")
        network.add_edge(arriving, leaving, capacity=_price(node, node.index in own))
        if (work := _work(node, node.index in once)) is None:
            network.add_edge("source", arriving)
        elif work:
            network.add_edge("source", arriving, capacity=work)
        for arg in node.args:
            network.add_edge((arg.index, "out"), arriving)
    read = {arg.index for node in backward for arg in node.args if arg.index in inside}
    read |= {node.index for node in gradients if node.index in inside}
    for index in sorted(read):
        network.add_edge((index, "out"), "sink")
    _, (near, far) = nx.minimum_cut(network, "source", "sink")
    cut = (n for n in forward if (n.index, "in") in near and (n.index, "out") in far)
    return tuple(node for node in cut if node.args or node.op == "input")


def saved_to_compare(joint: Joint) -> tuple[Node, ...]:
    """What a hand-written backward must be given besides what it saves.

    A value that backward would compute again, to compare it with something saved that forward
    made of it.
    """
    gradients = [node for node in joint.gradients if node is not None]
    border = {*joint.saved, *joint.inputs, *joint.numbers}
    again = ancestors(gradients, stop=border)
    there = {node.index for node in again}
    made = [node for node in joint.saved if node.index in there]
    forward = {node.index for node in ancestors(made)}
    known = {node.index for node in border}
    once = compared(ancestors(gradients)) & forward & there - known
    return tuple(node for node in again if node.index in once)


def _price(node: Node, own: bool) -> float:
    """The bytes that keeping a node moves."""
    if not node.args and node.op != "input":
        return 0.0
    return moved(node) * (1 if own else TRANSFERS_IF_KEPT)


def _work(node: Node, once: bool) -> float | None:
    """The price of computing a node again; None: it must not be."""
    if once or get(node.op).kind in ("reduction", "contraction", "indexing"):
        return None
    return work(node)
