"""What nodes and kernels cost, in bytes of memory traffic at sizes that stand for all.

In: nodes, or the graph of a kernel.  Out: bytes.

Work counts as the traffic that a core could have had meanwhile.  It tells which of two programs of
the same values is the cheaper one, and not how long it takes.
"""

from __future__ import annotations

from math import prod

from symgrad.ir.dim import Dim, Size
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ops.contraction import parse
from symgrad.ops.record import get

NOMINAL_SIZE = 1024
"""The length that a symbolic size is priced at."""
BYTES_PER_NANOSECOND = 3.0
"""The memory traffic that one core could have had instead of one nanosecond of work."""
_TERM, _PRODUCT, _PLACE = 0.1, 0.02, 1.0
"""Nanoseconds of a term of a sum, of a term of a product of matrices, of an index looked up."""


def moved(node: Node) -> float:
    """The bytes of an array."""
    return node.dtype.itemsize * _elements(node)


def work(node: Node) -> float:
    """What computing a node from its arguments costs beside memory traffic."""
    op = get(node.op)
    if op.scalar is not None:
        return op.scalar.cost * _elements(node) * BYTES_PER_NANOSECOND
    if op.kind == "reduction":
        return _TERM * sum(map(_elements, node.args)) * BYTES_PER_NANOSECOND
    if op.kind == "contraction":
        return _PRODUCT * _terms(node) * BYTES_PER_NANOSECOND
    if op.kind == "indexing":
        return _PLACE * _elements(node) * BYTES_PER_NANOSECOND
    return 0.0


def price(graph: Graph) -> float:
    """What a kernel costs that reads its inputs, writes its outputs and computes each node once."""
    nodes = ancestors(graph.outputs.values())
    arrays = [*(node for node in nodes if node.op == "input"), *graph.outputs.values()]
    return sum(map(moved, arrays)) + sum(map(work, nodes))


def _elements(node: Node) -> float:
    return _nominal(node.type.size)


def _terms(node: Node) -> float:
    """How many products of two numbers a contraction adds up."""
    left, right, _ = parse(node.attributes["spec"])
    pairs = zip(left + right, (*node.args[0].shape, *node.args[1].shape), strict=True)
    return prod(map(_nominal, dict(pairs).values()))


def _nominal(size: Dim) -> float:
    return float(size.evaluate(lambda atom: NOMINAL_SIZE if isinstance(atom, Size) else 1))
