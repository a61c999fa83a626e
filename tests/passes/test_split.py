"""Forward and backward apart compute what they did together."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad.autodiff import vjp
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import float32, float64
from symgrad.ir.graph import Graph, Node
from symgrad.ir.types import TensorType
from symgrad.ir.verifier import verify
from symgrad.ops.record import get
from symgrad.passes.evaluate import evaluate
from symgrad.passes.save import choose_saved
from symgrad.passes.split import Joint, Split, split
from tests.graphs import Example, examples

N, M = Dim.size("n"), Dim.size("m")


def derived(graph: Graph, saved: tuple[Node, ...] = ()) -> Joint:
    """The graph and the gradients of its outputs."""
    outputs = tuple(graph.outputs.values())
    inputs = tuple(graph.inputs.values())
    cotangents = tuple(
        graph.input(f"grad_{name}", node.type) for name, node in graph.outputs.items()
    )
    gradients = tuple(vjp(outputs, cotangents, inputs))
    return Joint(inputs, outputs, tuple(graph.outputs), cotangents, gradients, saved)


def _run(joint: Joint, parts: Split, feeds: dict[str, np.ndarray], sizes: dict[str, int]) -> None:
    """Compare each part with the joint graph, to the bit."""
    values = evaluate(list(parts.forward.outputs.values()), feeds, sizes)
    forward = dict(zip(parts.forward.outputs, values, strict=True))
    plain = evaluate(list(parts.inference.outputs.values()), feeds, sizes)
    for left, right in zip(plain, values, strict=False):
        np.testing.assert_array_equal(left, right)
    for backward in parts.backward:
        given = dict(feeds)
        for position in backward.residuals:
            residual = parts.residuals[position]
            if residual.source == "input":
                given[residual.name] = feeds[str(joint.inputs[residual.position].name)]
            else:
                given[residual.name] = forward[residual.name]
        found = evaluate(list(backward.graph.outputs.values()), given, sizes)
        wanted = [joint.gradients[position] for position in backward.gradients]
        together = evaluate([node for node in wanted if node is not None], feeds, sizes)
        assert len(found) == len(together)
        for left, right in zip(found, together, strict=True):
            np.testing.assert_array_equal(left, right)


def _check_inputs(joint: Joint, parts: Split) -> None:
    """A backward takes its residuals, then its cotangents, in order, and nothing else."""
    for backward in parts.backward:
        residuals = [parts.residuals[position].name for position in backward.residuals]
        nodes = [joint.cotangents[position] for position in backward.cotangents]
        assert list(backward.graph.inputs) == residuals + [str(n.name) for n in nodes if n]
        assert all(backward.mask[position] for position in backward.gradients)


@given(examples(smooth=True), st.data())
def test_apart_as_together(example: Example, data: st.DataObject) -> None:
    """With what the minimum cut saves, and with any saved nodes."""
    graph = example.graph
    forward = [node for node in graph.nodes if node.args]
    source = np.random.default_rng(0)
    joint = derived(graph)
    chosen = data.draw(st.lists(st.sampled_from(forward), unique=True)) if forward else []
    saved = choose_saved(joint) if data.draw(st.booleans()) else tuple(chosen)
    joint = Joint(
        joint.inputs, joint.outputs, joint.output_names, joint.cotangents, joint.gradients, saved
    )
    masks = [mask for mask in product([True, False], repeat=len(joint.inputs)) if any(mask)]
    parts = split(joint, masks)
    for each in (parts.inference, parts.forward, *(b.graph for b in parts.backward)):
        verify(each)
    _check_inputs(joint, parts)
    feeds = dict(example.feeds)
    for node in joint.cotangents:
        assert node is not None
        shape = [size.at(example.sizes) for size in node.shape]
        feeds[str(node.name)] = np.asarray(source.uniform(-1, 1, shape), str(node.dtype))
    _run(joint, parts, feeds, dict(example.sizes))


@given(examples(smooth=True))
def test_a_derived_backward_never_repeats_a_reduction(example: Example) -> None:
    joint = derived(example.graph)
    inside = {node.index for node in joint.outputs}
    saved = {node.index for node in choose_saved(joint)}
    todo = [node for node in joint.gradients if node is not None]
    forward = _needed(list(joint.outputs), set())
    for index in _needed(todo, saved | inside) & forward:
        assert get(example.graph.nodes[index].op).kind not in ("reduction", "contraction")


def _needed(roots: list[Node], stop: set[int]) -> set[int]:
    """The nodes that have to be computed, given those in ``stop``."""
    found: set[int] = set()
    todo = list(roots)
    while todo:
        node = todo.pop()
        if node.index not in found and node.index not in stop:
            found.add(node.index)
            todo.extend(node.args)
    return found


def _softmax() -> Graph:
    graph = Graph()
    x = graph.input("x", TensorType(float64, (N, M)))
    top = graph.apply("amax", x, axes=(1,))
    keep = (N, Dim.of(1))
    shifted = x - graph.expand(graph.apply("reshape", top, shape=keep), x.shape)
    powers = graph.apply("exp", shifted)
    total = graph.apply("sum", powers, axes=(1,))
    graph.output("y", powers / graph.expand(graph.apply("reshape", total, shape=keep), x.shape))
    return graph


def test_a_unary_chain_saves_what_it_was_given() -> None:
    graph = Graph()
    x = graph.input("x", TensorType(float32, (N,)))
    graph.output("y", graph.apply("tanh", x) * x)
    saved = choose_saved(derived(graph))
    assert [node.name or node.op for node in saved] in (["x"], ["x", "tanh"])


def test_exp_and_tanh_save_their_outputs() -> None:
    for op in ("exp", "tanh", "sigmoid"):
        graph = Graph()
        x = graph.input("x", TensorType(float32, (N,)))
        graph.output("y", graph.apply(op, x))
        parts = split(_with_saved(derived(graph)), [(True,)])
        assert [(r.name, r.source) for r in parts.residuals] == [("y", "output")]


def test_softmax_saves_no_array_but_its_own() -> None:
    joint = _with_saved(derived(_softmax()))
    parts = split(joint, [(True,)])
    full = [r for r in parts.residuals if r.source == "kernel" and M in r.node.shape]
    assert full == []


def _with_saved(joint: Joint) -> Joint:
    return Joint(
        joint.inputs, joint.outputs, joint.output_names, joint.cotangents, joint.gradients,
        choose_saved(joint),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["grad_y", "grad_x", "y", "x"])
def test_a_saved_node_may_be_called_anything(name: str) -> None:
    graph = Graph()
    x = graph.input("x", TensorType(float64, (N,)))
    middle = graph.apply("exp", x)
    middle.name = name
    graph.output("y", graph.apply("sin", middle))
    joint = derived(graph, saved=(middle,))
    parts = split(joint, [(True,)])
    feeds = {"x": np.array([0.5, 1.0]), "grad_y": np.array([1.0, 2.0])}
    verify(parts.backward[0].graph)
    _run(joint, parts, feeds, {"n": 2})
