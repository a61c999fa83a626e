"""Small joint graphs, built by hand: what the tests of the proof's parts stand on.

In: choices.  Out: ``Subject`` records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import symgrad.ops  # noqa: F401  (registers the ops)
from symgrad.ir.dim import Dim, DimLike
from symgrad.ir.dtype import DType, float32
from symgrad.ir.graph import Graph, Node
from symgrad.ir.types import TensorType
from symgrad.proof.oracle.subject import Subject

N, M, K = Dim.size("n"), Dim.size("m"), Dim.size("k")


def tensor(*shape: DimLike, dtype: DType = float32) -> TensorType:
    return TensorType.of(dtype, shape)


def subject(
    inputs: Mapping[str, TensorType],
    forward: Callable[..., Node],
    backward: Callable[..., Sequence[Node | None]],
    **options: Any,
) -> Subject:
    """``backward(grad, output, *inputs)`` returns a gradient for each input, in order."""
    graph = Graph()
    nodes = [graph.input(name, type) for name, type in inputs.items()]
    output = forward(*nodes)
    cotangent = graph.input("grad", output.type)
    found = backward(cotangent, output, *nodes)
    gradients = {
        name: node for name, node in zip(inputs, found, strict=True) if node is not None
    }  # fmt: skip
    return Subject(graph, nodes, [(output, cotangent)], gradients, **options)


def row_sum(node: Node) -> Node:
    """The sum over the last axis, broadcast back."""
    total = node.graph.apply("sum", node, axes=(node.rank - 1,))
    kept = (*node.shape[:-1], Dim.of(1))
    return node.graph.expand(node.graph.apply("reshape", total, shape=kept), node.shape)


def softmax(x: Node) -> Node:
    weights = x.graph.apply("exp", x)
    return weights / row_sum(weights)


def elementwise(op: str, slope: Callable[[Node, Node], Node], **options: Any) -> Subject:
    """``y = op(x)`` with ``grad * slope(x, y)``."""
    return subject(
        {"x": tensor(N, M)},
        lambda x: x.graph.apply(op, x),
        lambda g, y, x: [g * slope(x, y)],
        **options,
    )


def chain(layers: int, *, forget: int | None = None) -> Subject:
    """``tanh(... tanh(x @ w0) ... @ wk)``; at the layer ``forget`` the slope is left out."""
    graph = Graph()
    x = graph.input("x", tensor(N, M))
    weights = [graph.input(f"w{i}", tensor(M, M)) for i in range(layers)]
    states = [x]
    for weight in weights:
        product = graph.apply("einsum", states[-1], weight, spec="ik,kj->ij")
        states.append(graph.apply("tanh", product))
    cotangent = graph.input("grad", states[-1].type)
    gradients: dict[str, Node] = {}
    back = cotangent
    for i in reversed(range(layers)):
        if i != forget:
            back = back * (1 - states[i + 1] * states[i + 1])
        gradients[f"w{i}"] = graph.apply("einsum", states[i], back, spec="ik,ij->kj")
        back = graph.apply("einsum", back, weights[i], spec="ij,kj->ik")
    gradients["x"] = back
    return Subject(graph, [x, *weights], [(states[-1], cotangent)], gradients)
