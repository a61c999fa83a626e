"""Arbitrary graphs: for properties that every pass must have.

In: nothing.  Out: a hypothesis strategy of graphs with data for their inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from symgrad.errors import ShapeError
from symgrad.ir import dtype as dtypes
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType
from symgrad.ir.graph import Graph, Node
from symgrad.ir.types import TensorType
from symgrad.ops.record import get

Array = np.ndarray[Any, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]

UNARY = (
    "neg", "square", "abs", "sqrt", "exp", "log", "tanh", "sigmoid", "relu", "sign", "floor",
    "reciprocal", "sin", "softplus", "round",
)  # fmt: skip
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "pow")
NUMBERS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -0.5, 3.0, 4.0)
DATA = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.5, 3.0)


@dataclass(frozen=True)
class Example:
    """A graph with outputs, arrays for its inputs, and the sizes that these have."""

    graph: Graph
    feeds: Mapping[str, Array]
    sizes: Mapping[str, int]


@st.composite
def examples(draw: Draw, *, dtype: DType = dtypes.float64, smooth: bool = False) -> Example:
    """Graphs over ``n`` and ``m`` with up to three inputs and a dozen ops.

    ``smooth``: only ops with a derivative everywhere, and data away from infinities.
    """
    sizes = {"n": draw(st.integers(0, 3)), "m": draw(st.integers(0, 3))}
    n, m = Dim.size("n"), Dim.size("m")
    graph = Graph()
    source = np.random.default_rng(draw(st.integers(0, 2**16)))
    feeds: dict[str, Array] = {}
    nodes: list[Node] = []
    for name in ("x", "y", "z")[: draw(st.integers(1, 3))]:
        shape = draw(st.sampled_from([(n, m), (n,), (m,), (), (n, Dim.of(1)), (n, n)]))
        nodes.append(graph.input(name, TensorType(dtype, shape)))
        values = source.uniform(0.5, 1.5, [size.at(sizes) for size in shape])
        if not smooth and draw(st.booleans()):
            special = (*DATA, np.inf, -np.inf, np.nan)
            values = source.choice(special, size=values.shape)
        feeds[name] = np.asarray(values, str(dtype))
    for _ in range(draw(st.integers(1, 12))):
        step = draw(st.sampled_from(SMOOTH_STEPS if smooth else STEPS))
        nodes.append(step(draw, nodes))
    for position, node in enumerate(dict.fromkeys([nodes[-1], draw(st.sampled_from(nodes))])):
        graph.output(f"out{position}", node)
    return Example(graph, feeds, sizes)


def _pick(draw: Draw, nodes: list[Node]) -> Node:
    node: Node = draw(st.sampled_from(nodes))
    return node


def _unary(draw: Draw, nodes: list[Node]) -> Node:
    node = _pick(draw, nodes)
    return node.graph.apply(draw(st.sampled_from(UNARY)), node)


def _smooth_unary(draw: Draw, nodes: list[Node]) -> Node:
    node = _pick(draw, nodes)
    name = draw(st.sampled_from(["tanh", "sigmoid", "sin", "softplus", "neg", "square", "atan"]))
    bounded = node.graph.apply("tanh", node)
    return node.graph.apply(name, bounded)


def _binary(draw: Draw, nodes: list[Node]) -> Node:
    return _pair(draw, nodes, draw(st.sampled_from(BINARY)))


def _smooth_binary(draw: Draw, nodes: list[Node]) -> Node:
    return _pair(draw, nodes, draw(st.sampled_from(["add", "sub", "mul"])))


def _pair(draw: Draw, nodes: list[Node], op: str) -> Node:
    left, right = _pick(draw, nodes), _pick(draw, nodes)
    for first, second in ((left, right), (right, left)):
        try:
            return left.graph.apply(op, first, left.graph.expand(second, first.shape))
        except ShapeError:
            continue
    return left.graph.binary(op, left, draw(st.sampled_from(NUMBERS)))


def _number(draw: Draw, nodes: list[Node]) -> Node:
    node, number = _pick(draw, nodes), draw(st.sampled_from(NUMBERS))
    op = draw(st.sampled_from(BINARY))
    lifted = node.graph.lift(number, node)
    return node.graph.apply(op, *((node, lifted) if draw(st.booleans()) else (lifted, node)))


def _reduction(draw: Draw, nodes: list[Node]) -> Node:
    node = _pick(draw, nodes)
    if not node.rank:
        return node
    axes = tuple(sorted(draw(st.sets(st.integers(0, node.rank - 1), min_size=1))))
    return node.graph.apply(draw(st.sampled_from(["sum", "sum", "prod", "amax"])), node, axes=axes)


def _sum(draw: Draw, nodes: list[Node]) -> Node:
    node = _pick(draw, nodes)
    if not node.rank:
        return node
    return node.graph.apply("sum", node, axes=(draw(st.integers(0, node.rank - 1)),))


def _movement(draw: Draw, nodes: list[Node]) -> Node:
    node = _pick(draw, nodes)
    graph, shape, rank = node.graph, node.shape, node.rank
    choice = draw(st.integers(0, 4))
    if choice == 0:
        return graph.apply("permute", node, axes=tuple(draw(st.permutations(range(rank)))))
    if choice == 1:
        where = draw(st.integers(0, rank))
        return graph.apply("reshape", node, shape=(*shape[:where], Dim.of(1), *shape[where:]))
    if choice == 2:
        return graph.expand(node, (Dim.of(draw(st.integers(1, 2))), *shape))
    if choice == 3 and rank:
        return graph.apply("concat", node, _pick(draw, [node]), axis=0)
    zeros = (0,) * rank
    return graph.apply("slice", node, starts=zeros, steps=(1,) * rank, sizes=shape)


def _choice(draw: Draw, nodes: list[Node]) -> Node:
    node = _pick(draw, nodes)
    graph = node.graph
    condition = graph.binary(draw(st.sampled_from(["lt", "ge", "eq"])), node, 1.0)
    if draw(st.booleans()):
        condition = graph.apply("logical_not", condition)
    if draw(st.integers(0, 3)) == 0:
        condition = graph.expand(graph.constant(draw(st.booleans()), dtypes.bool_), node.shape)
    other = node if draw(st.booleans()) else graph.lift(draw(st.sampled_from(NUMBERS)), node)
    return graph.apply("where", condition, node, other)


def _cast(draw: Draw, nodes: list[Node]) -> Node:
    node = _pick(draw, nodes)
    middle = draw(st.sampled_from([dtypes.float32, dtypes.float64, dtypes.bool_]))
    there = node.graph.apply("cast", node, dtype=middle)
    return node.graph.apply("cast", there, dtype=node.dtype)


STEPS = (
    _unary,
    _unary,
    _binary,
    _binary,
    _number,
    _reduction,
    _movement,
    _movement,
    _choice,
    _cast,
)
SMOOTH_STEPS = (_smooth_unary, _smooth_unary, _smooth_binary, _smooth_binary, _sum, _movement)

assert all(get(name) for name in (*UNARY, *BINARY))
