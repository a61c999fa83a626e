"""The reference gradient, element by element, against the difference quotient at 60 digits."""

from __future__ import annotations

import itertools
from itertools import islice
from typing import Any

import mpmath
import numpy as np
import pytest

from symgrad.index.lower import Lowering
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.graph import Node
from symgrad.ir.registry import names
from symgrad.proof.judge.goals import is_atom
from symgrad.proof.judge.reference import gradient, gradient_indices
from symgrad.proof.oracle.subject import Evaluation, Subject, precisely
from tests.proof.builders import M, N, chain, softmax, subject, tensor
from tests.proof.interpreter import Interpreter
from tests.proof.registry import Variant, subject_of, variants

LOWERED = [v for name in names() for v in variants(name) if name != "tetragamma"]


def _reference(
    one: Subject, at: Evaluation, name: str, cuts: int = 0
) -> list[tuple[tuple[int, ...], Any, Any]]:
    """Every element of the reference with the difference quotient beside it."""
    contractions = [node for node in one.forward.nodes if node.op == "einsum"][:cuts]
    lowering = Lowering(one.graph, contractions)
    indices = gradient_indices(one.by_name[name].shape)
    expr = gradient(lowering, one.outputs, name, indices, through=contractions)
    tensors = dict(at.point.precise())
    tensors |= {f"%{node.index}": at.values[node] for node in lowering.cuts}
    reader = Interpreter(tensors, at.point.sizes, one.read)
    found = []
    for position in itertools.product(
        *(range(size) for size in at.values[one.by_name[name]].shape)
    ):
        axes = {
            index.atom: value for index, value in zip(indices, position, strict=True)
            if isinstance(index.atom, Axis)
        }  # fmt: skip
        direction = np.full(at.values[one.by_name[name]].shape, mpmath.mpf(0), dtype=object)
        direction[position] = mpmath.mpf(1)
        value = mpmath.mpf(0) if expr is None else reader.value(expr, axes)
        found.append((position, value, at.differences.along({name: direction})))
    return found


def _agrees(one: Subject, cuts: int = 0) -> int:
    one.settle()
    checked = 0
    for number, sizes in enumerate(islice(one.sampler.size_choices(), 4)):
        small = {name: min(size, 3) for name, size in sizes.items()}
        at = one.draw(small, number) if one.sampler.allows(small) else None
        if at is None:
            continue
        with precisely():
            exact = one.evaluate_precise(at.point)
            for node in one.inputs:
                if node.dtype.is_float:
                    for position, value, quotient in _reference(
                        one, exact, node.attributes["name"], cuts
                    ):
                        assert abs(value - quotient) < 1e-25 * (1 + abs(quotient)), position
                        checked += 1
    return checked


@pytest.mark.parametrize("variant", LOWERED, ids=str)
def test_every_op(variant: Variant) -> None:
    one = subject_of(variant, gradients=False)
    if is_atom(one.outputs[0][0]):
        pytest.skip("the op is an atom of the proof")
    assert _agrees(one) > 0


def test_softmax_of_a_product() -> None:
    one = subject(
        {"x": tensor(N, M), "w": tensor(M, M)},
        lambda x, w: softmax(x.graph.apply("einsum", x, w, spec="ik,kj->ij")),
        lambda g, y, x, w: [None, None],
    )
    assert _agrees(one) > 10
    assert _agrees(one, cuts=1) > 10


def test_cut_contractions_are_differentiated_through() -> None:
    assert _agrees(chain(2), cuts=2) > 10


def test_a_direction_that_does_not_matter_is_zero() -> None:
    one = subject(
        {"x": tensor(N), "y": tensor(N)},
        lambda x, y: x * x,
        lambda g, out, x, y: [g, g],
    )
    lowering = Lowering(one.graph)
    assert gradient(lowering, one.outputs, "y", gradient_indices([Dim.size("n")])) is None


def test_deep_graphs_do_not_recurse() -> None:
    one = subject({"x": tensor(N)}, _deep, lambda g, y, x: [g])
    lowering = Lowering(one.graph)
    assert gradient(lowering, one.outputs, "x", gradient_indices([N])) is not None


def _deep(x: Node) -> Node:
    for _ in range(5000):
        x = x.graph.apply("sin", x)
    return x
