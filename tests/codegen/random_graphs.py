"""Arbitrary graphs of many kinds of ops, with data for their inputs.

In: nothing.  Out: a hypothesis strategy of ``Example``: reductions put back, shifts, scans,
gathers, products of matrices, several outputs; and others, of products above all.
Values stay bounded and smooth, so that a difference is a defect, not rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType, float64, int64
from symgrad.ir.graph import Graph, Node
from symgrad.ir.types import TensorType
from tests.graphs import Example

Draw = Callable[[st.SearchStrategy[Any]], Any]
Step = Callable[[Draw, list[Node]], Node]
SIZES = ("n", "m", "k")
N, M, K = (Dim.size(name) for name in SIZES)
SHAPES = [(N, M), (N, M), (N, N), (N,), (M,), (), (N, Dim.of(1)), (K, N, M), (N + 1, M), (M, K)]
MATRICES = [(N, M), (N, M), (M, K), (M, K), (K, M), (N, K), (M, M), (K, N, M), (N, M, K), (M,)]
MOST_RANK = 4
ROWS = [1, 2, 31, 33, 64, 65, 131, 259]  # of a product: blocks have 32 to 256, groups 32 or more


@st.composite
def examples(draw: Draw, *, dtype: DType = float64, most: int = 14) -> Example:
    """Graphs over ``n``, ``m``, ``k`` with up to four inputs and an index tensor."""
    sizes = {name: draw(st.sampled_from([0, 1, 1, 2, 3, 5, 9, 33])) for name in SIZES}
    return _example(draw, dtype, sizes, SHAPES, STEPS, most)


@st.composite
def products(draw: Draw, *, dtype: DType = float64, most: int = 12) -> Example:
    """Graphs in which products of matrices meet each other, elementwise chains and reductions."""
    sizes = {name: draw(st.sampled_from([0, 1, 2, 3, 5, 9])) for name in SIZES}
    if draw(st.booleans()):
        sizes[draw(st.sampled_from(SIZES))] = draw(st.sampled_from(ROWS))
    return _example(draw, dtype, sizes, MATRICES, PRODUCT_STEPS, most, least=5)


def _example(
    draw: Draw,
    dtype: DType,
    sizes: dict[str, int],
    shapes: Sequence[tuple[Dim, ...]],
    steps: Sequence[Step],
    most: int,
    least: int = 1,
) -> Example:
    graph = Graph()
    source = np.random.default_rng(draw(st.integers(0, 2**16)))
    feeds = {}
    nodes: list[Node] = []
    for name in ("x", "y", "z", "w")[: draw(st.integers(1, 4))]:
        shape = draw(st.sampled_from(shapes))
        nodes.append(graph.input(name, TensorType(dtype, shape)))
        values = source.standard_normal([size.at(sizes) for size in shape])
        feeds[name] = np.asarray(values, str(dtype))
    graph.input("t", TensorType(int64, (K,)))
    feeds["t"] = source.integers(0, max(sizes["n"], 1), sizes["k"])
    for _ in range(draw(st.integers(least, most))):
        nodes.append(draw(st.sampled_from(steps))(draw, nodes))
    outputs = [nodes[-1], *(draw(st.sampled_from(nodes)) for _ in range(draw(st.integers(0, 3))))]
    for position, node in enumerate(outputs):
        graph.output(f"out{position}", node)
    return Example(graph, feeds, sizes)


def _pick(draw: Draw, nodes: list[Node], least: int = 0) -> Node:
    """A node of at least this rank, or the first one made so."""
    found = [node for node in nodes if node.rank >= least]
    if found:
        chosen: Node = draw(st.sampled_from(found[-6:]))
        return chosen
    first = nodes[0]
    return first.graph.expand(first, (*(N, M)[: least - first.rank], *first.shape))


def bounded(node: Node) -> Node:
    return node.graph.apply("tanh", node)


def _unary(draw: Draw, nodes: list[Node]) -> Node:
    op = draw(st.sampled_from(["tanh", "sigmoid", "sin", "neg", "square", "exp", "abs", "erf"]))
    return nodes[0].graph.apply(op, bounded(_pick(draw, nodes)))


def _binary(draw: Draw, nodes: list[Node]) -> Node:
    left, right = _pick(draw, nodes), _pick(draw, nodes)
    graph = left.graph
    op = draw(st.sampled_from(["add", "sub", "mul", "maximum", "minimum"]))
    for first, second in ((left, right), (right, left)):
        kept = len(second.shape) <= len(first.shape) and all(
            b in (1, a) for a, b in zip(reversed(first.shape), reversed(second.shape), strict=False)
        )
        if kept:
            return graph.apply(op, first, graph.expand(second, first.shape))
    return graph.binary(op, left, 0.75)


def _reduced(draw: Draw, nodes: list[Node]) -> Node:
    node = _pick(draw, nodes, 1)
    axes = tuple(sorted(draw(st.sets(st.integers(0, node.rank - 1), min_size=1))))
    op = draw(st.sampled_from(["sum", "sum", "amax", "amin", "prod"]))
    argument = bounded(node)
    found = node.graph.apply(op, argument, axes=axes)
    if op in ("amax", "amin"):  # of nothing: infinite
        return bounded(found)
    return found if draw(st.booleans()) else _put_back(found, argument, axes)


def _put_back(found: Node, node: Node, axes: tuple[int, ...]) -> Node:
    """Minus the reduction, broadcast: as in a softmax or a norm."""
    kept = tuple(Dim.of(1) if axis in axes else size for axis, size in enumerate(node.shape))
    graph = node.graph
    whole = graph.expand(graph.apply("reshape", found, shape=kept), node.shape)
    return graph.apply("sub", node, bounded(whole))


def _product(draw: Draw, nodes: list[Node]) -> Node:
    """A product of matrices over the first size that two nodes share."""
    left, right = _pick(draw, nodes, 1), _pick(draw, nodes, 1)
    words = ["", ""]
    extents: dict[str, Dim] = {}
    labels = iter("abcdefgh")
    for position, node in enumerate((left, right)):
        for size in node.shape:
            shared = [one for one in words[0] if position and extents[one] == size]
            shared = [one for one in shared if one not in words[1]]
            label = shared[0] if shared and draw(st.booleans()) else next(labels)
            extents[label] = size
            words[position] += label
    summed = [one for one in words[0] if one in words[1] and draw(st.booleans())]
    summed += [one for one in extents if one not in summed and draw(st.integers(0, 3)) == 0]
    kept = [one for one in extents if one not in summed][:MOST_RANK]
    result = "".join(draw(st.permutations(kept)))
    spec = f"{words[0]},{words[1]}->{result}"
    return left.graph.apply("einsum", bounded(left), bounded(right), spec=spec)


def _contracted(draw: Draw, nodes: list[Node]) -> Node:
    """A product over a size that two matrices share; others that they share may be batches.

    What is multiplied is computed for it, or lies in memory as it is.
    """
    left = _pick(draw, nodes, 2)
    found = [node for node in nodes if node.rank > 1 and set(node.shape) & set(left.shape)]
    right = draw(st.sampled_from([left, *found[-6:]]))
    first, second = "abcd"[: left.rank], "efgh"[: right.rank]
    extents = dict(zip(first, left.shape, strict=True)) | dict(
        zip(second, right.shape, strict=True)
    )
    pairs = [(a, b) for a in first for b in second if extents[a] == extents[b]]
    summed, other = draw(st.sampled_from(pairs))
    second = second.replace(other, summed)
    for one, two in draw(st.permutations(pairs)):
        if one not in second and two in second and draw(st.integers(0, 2)) == 0:
            second = second.replace(two, one)
    kept = [label for label in dict.fromkeys(first + second) if label != summed]
    kept = sorted(draw(st.permutations(kept))[: MOST_RANK - 1])
    result = "".join(draw(st.permutations(kept)) if draw(st.booleans()) else kept)
    factors = [node if node.op == "input" else _shaped(draw, node) for node in (left, right)]
    return left.graph.apply("einsum", *factors, spec=f"{first},{second}->{result}")


def _outer(draw: Draw, nodes: list[Node]) -> Node:
    """Every element of one times every element of another, or row by row, in any order of axes."""
    found = [node for node in nodes if 0 < node.rank < 3]
    if not found:
        return _unary(draw, nodes)
    left, right = draw(st.sampled_from(found[-3:])), draw(st.sampled_from(found))
    first, second = "ab"[: left.rank], "ef"[: right.rank]
    pairs = [
        (a, b)
        for a, size in zip(first, left.shape, strict=True)
        for b, other in zip(second, right.shape, strict=True)
        if size == other
    ]
    if pairs and draw(st.integers(0, 3)):
        label, old = draw(st.sampled_from(pairs))
        second = second.replace(old, label)
    kept = draw(st.permutations(list(dict.fromkeys(first + second))))
    factors = [draw(st.sampled_from([node, _shaped(draw, node)])) for node in (left, right)]
    return left.graph.apply("einsum", *factors, spec=f"{first},{second}->{''.join(kept)}")


def _shaped(draw: Draw, node: Node) -> Node:
    """A chain that keeps values bounded, or tanh of what may have been multiplied."""
    inner = bounded(node)
    chain = draw(st.sampled_from(["tanh", "slope", "square", "sin"]))
    if chain == "slope":
        graph = node.graph
        return graph.apply("sub", graph.lift(1.0, node), graph.apply("square", inner))
    return inner if chain == "tanh" else node.graph.apply(chain, inner)


def _along(draw: Draw, nodes: list[Node]) -> Node:
    """A node times another one that lacks some of its axes."""
    node = _pick(draw, nodes, 1)
    dropped = draw(st.integers(0, node.rank - 1))
    rest = tuple(size for axis, size in enumerate(node.shape) if axis != dropped)
    found = [one for one in nodes if one.shape == rest]
    if not found:
        return bounded(node)
    ones = tuple(Dim.of(1) if axis == dropped else size for axis, size in enumerate(node.shape))
    graph = node.graph
    factor = graph.apply("reshape", bounded(draw(st.sampled_from(found))), shape=ones)
    return graph.apply("mul", node, graph.expand(factor, node.shape))


def _permute(draw: Draw, nodes: list[Node]) -> Node:
    node = _pick(draw, nodes, 1)
    axes = tuple(draw(st.permutations(range(node.rank))))
    return node.graph.apply("permute", node, axes=axes)


def _merge(draw: Draw, nodes: list[Node]) -> Node:
    """Two axes as one, or an axis more."""
    node = _pick(draw, nodes, 1)
    shape = node.shape
    if node.rank > 1 and draw(st.booleans()):
        return node.graph.apply("reshape", node, shape=(shape[0] * shape[1], *shape[2:]))
    return node.graph.apply("reshape", node, shape=(Dim.of(1), *shape))


def _flip(draw: Draw, nodes: list[Node]) -> Node:
    node = _pick(draw, nodes, 1)
    axis = draw(st.integers(0, node.rank - 1))
    starts = tuple(size - 1 if a == axis else Dim.of(0) for a, size in enumerate(node.shape))
    steps = tuple(-1 if a == axis else 1 for a in range(node.rank))
    return node.graph.apply("slice", node, starts=starts, steps=steps, sizes=node.shape)


def _pad(draw: Draw, nodes: list[Node]) -> Node:
    node = _pick(draw, nodes, 1)
    before, after = draw(st.integers(0, 2)), draw(st.integers(0, 1))
    shape = (node.shape[0] + before + after, *node.shape[1:])
    starts = (before,) + (0,) * (node.rank - 1)
    return node.graph.apply("unslice", node, shape=shape, starts=starts, steps=(1,) * node.rank)


def _roll(draw: Draw, nodes: list[Node]) -> Node:
    """Padded in front, then cut to the old size: each element read one further on."""
    node = _pick(draw, nodes, 1)
    rest, ones = (0,) * (node.rank - 1), (1,) * node.rank
    longer = (node.shape[0] + 1, *node.shape[1:])
    graph = node.graph
    padded = graph.apply("unslice", node, shape=longer, starts=(1, *rest), steps=ones)
    return graph.apply("slice", padded, starts=(0, *rest), steps=ones, sizes=node.shape)


def _concat(draw: Draw, nodes: list[Node]) -> Node:
    node = _pick(draw, nodes, 1)
    axis = draw(st.integers(0, node.rank - 1))
    return node.graph.apply("concat", node, bounded(node), axis=axis)


def _scan(draw: Draw, nodes: list[Node]) -> Node:
    node = _pick(draw, nodes, 1)
    axis, reverse = draw(st.integers(0, node.rank - 1)), draw(st.booleans())
    op = draw(st.sampled_from(["cumsum", "cumsum", "cumprod"]))
    return node.graph.apply(op, bounded(node), axis=axis, reverse=reverse)


def _gather(draw: Draw, nodes: list[Node]) -> Node:
    """Rows of a node that has n of them; else a row for each, added up."""
    node = _pick(draw, nodes, 1)
    places = node.graph.inputs["t"]
    if node.shape[0] == N:
        return node.graph.apply("index", node, places)
    if node.shape[0] == K:
        shape = (N, *node.shape[1:])
        return node.graph.apply("index_add", bounded(node), places, shape=shape)
    return node


def _choice(draw: Draw, nodes: list[Node]) -> Node:
    """A mask of the inputs' signs, or of where an element stands."""
    node = _pick(draw, nodes, 1)
    graph = node.graph
    same = [one for one in graph.inputs.values() if one.type == node.type]
    if same and draw(st.booleans()):
        condition = graph.binary("gt", draw(st.sampled_from(same)), 0.0)
    else:
        place = graph.apply("iota", length=node.shape[-1])
        condition = graph.binary("ge", graph.expand(place, node.shape), draw(st.integers(0, 3)))
    return graph.apply("where", condition, node, graph.lift(0.5, node))


STEPS: list[Step] = [
    _unary, _unary, _unary, _binary, _binary, _binary, _reduced, _reduced, _reduced, _product,
    _product, _permute, _merge, _flip, _pad, _roll, _concat, _scan, _gather, _choice,
]  # fmt: skip
PRODUCT_STEPS: list[Step] = [
    _contracted, _contracted, _contracted, _contracted, _contracted, _outer, _outer, _outer,
    _product, _unary, _unary, _binary, _along, _reduced, _reduced, _permute, _flip, _merge,
]  # fmt: skip
