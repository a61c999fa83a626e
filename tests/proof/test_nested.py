"""Choices within choices: fewer of them, with the same value at every real number."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from symgrad.ir.dim import Dim
from symgrad.ir.dtype import float64
from symgrad.ir.expr import OPPOSITE
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.types import TensorType
from symgrad.proof.nested import asked_once
from symgrad.proof.oracle.numbers import Double
from symgrad.proof.oracle.values import Evaluator

VALUES = np.array([-1.0, 0.0, 1.0, 2.0])
COMPARISONS = st.tuples(st.sampled_from(sorted(OPPOSITE)), st.booleans())
TREES = st.recursive(
    st.integers(0, 3), lambda inner: st.tuples(COMPARISONS, inner, inner), max_leaves=8
)


def built(graph: Graph, tree: object, x: Node, t: Node) -> Node:
    """``where(x < t, ..., ...)`` and its like; the leaves are numbers, or x itself."""
    if not isinstance(tree, tuple):
        return graph.lift(float(str(tree)), x) if tree else x
    (op, turned), first, second = tree
    sides = (t, x) if turned else (x, t)
    branches = (built(graph, one, x, t) for one in (first, second))
    return graph.apply("where", graph.apply(op, *sides), *branches)


@given(TREES)
def test_nothing_changes_at_real_numbers(tree: object) -> None:
    graph, kind = Graph(), TensorType(float64, (Dim.of(4),))
    x, t = graph.input("x", kind), graph.input("t", kind)
    node = built(graph, tree, x, t)
    (made,) = asked_once([node])
    for limit in (-1.0, 0.0, 1.5):
        values = {"x": VALUES, "t": np.full(4, limit)}
        found = Evaluator([node, made]).run(Double(), values, {})
        np.testing.assert_array_equal(found[node], found[made])


def test_each_condition_is_asked_once() -> None:
    graph, kind = Graph(), TensorType(float64, (Dim.of(4),))
    x, t = graph.input("x", kind), graph.input("t", kind)
    one, zero = graph.lift(1.0, x), graph.lift(0.0, x)
    below = graph.apply("where", graph.apply("le", x, t), zero, x)
    both = graph.apply("where", graph.apply("lt", t, x), one, below)
    (made,) = asked_once([both])
    assert made.args[1:] == (one, zero)
    assert sum(node.op == "where" for node in ancestors([made])) == 1
