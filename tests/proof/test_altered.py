"""Gradients that were altered on purpose: gated, with a penalty, curved beyond a limit.

Each text that is right stands beside neighbours of which it would be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import bool_, float64
from symgrad.ir.graph import Graph
from symgrad.ir.types import TensorType
from symgrad.passes.evaluate import evaluate
from symgrad.proof.altered import folded

Body = Callable[..., Any]


def made(forward: Body, gradient: Body) -> type[sg.Function]:
    """A Function of x, whose backward is a function of x and of the incoming gradient."""

    def remembering(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return forward(x)

    def backward(ctx: Any, g: Any) -> Any:
        return gradient(ctx.saved_tensors[0], g)

    parts = {"forward": staticmethod(remembering), "backward": staticmethod(backward)}
    return type("Made", (sg.Function,), parts)


def said(forward: Body, gradient: Body) -> str:
    """What is said of it; empty where it is REFUTED."""
    report = sg.verify(made(forward, gradient), "n m", suggest=False)
    assert report.verdict in (sg.SURROGATE, sg.REFUTED), str(report)
    found: str = report.inputs["x"].surrogate
    assert bool(found) == (report.verdict == sg.SURROGATE)
    return found


GATES: dict[str, tuple[Body, Body, str]] = {
    "positive gradients alone": (
        lambda x: x.relu(), lambda x, g: g * (x > 0) * (g > 0),
        "it is the true gradient where `grad_output > 0`, and 0 elsewhere",
    ),
    "back over the limit": (
        lambda x: x.clamp(min=2), lambda x, g: ((x >= 2) | (g < 0)) * g,
        "it is the incoming gradient where `grad_output < 0`, and the true gradient elsewhere",
    ),
    "large ones are left out": (
        lambda x: x.exp(), lambda x, g: sg.where(g.abs() > 1, 0, g * x.exp()),
        "it is 0 where `grad_output.abs() > 1`, and the true gradient elsewhere",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GATES)
def test_a_gate_is_named(name: str) -> None:
    forward, gradient, text = GATES[name]
    assert text in said(forward, gradient)


@pytest.mark.parametrize(
    ("forward", "gradient"),
    [
        (lambda x: x.relu(), lambda x, g: g * (x < 0) * (g > 0)),
        (lambda x: x.relu(), lambda x, g: 2 * g * (x > 0) * (g > 0)),
        (lambda x: x.clamp(min=2), lambda x, g: ((x <= 2) | (g < 0)) * g),
        (lambda x: x.clamp(min=2), lambda x, g: ((x >= 1) | (g < 0)) * g),
        (lambda x: x.exp(), lambda x, g: sg.where(g > 1, g, g * x)),
        (lambda x: x.exp(), lambda x, g: sg.where(g > 1, sg.where(g > 2, 0, g), g * x.exp())),
    ],
)
def test_a_gate_before_a_mistake_is_one(forward: Body, gradient: Body) -> None:
    assert not said(forward, gradient)


def test_a_limit_without_a_gradient_is_taken_for_a_constant() -> None:
    class LowerBound(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, bound: Any) -> Any:
            ctx.save_for_backward(x, bound)
            return sg.maximum(x, bound)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, bound = ctx.saved_tensors
            return ((x >= bound) | (g < 0)) * g, None

    report = sg.verify(LowerBound, "n m", "m", suggest=False)
    assert report.verdict == sg.SURROGATE
    assert "`bound` being taken for a constant" in report.inputs["x"].surrogate


PENALTIES: dict[str, tuple[Body, str]] = {
    "squares": (lambda x: 0.25 * x, "(0.25 * x * x).sum() * 0.5"),
    "absolute values": (lambda x: x.sign(), "(x.sign() * x).sum()"),
    "fourth powers": (lambda x: x**3, "(x.square() * x * x).sum() * 0.25"),
}


@pytest.mark.parametrize("name", PENALTIES)
def test_a_penalty_is_named(name: str) -> None:
    added, text = PENALTIES[name]
    found = said(lambda x: x.sin(), lambda x, g: g * x.cos() + added(x))
    assert f"the true gradient, and beside it the derivative of the penalty `{text}`" in found


@pytest.mark.parametrize(
    "gradient",
    [
        lambda x, g: g * x.sin() + x,  # the rest is no derivative of forward
        lambda x, g: g * x.cos() + 1,  # a number is no penalty
        lambda x, g: g * x.cos() + x * x.sum(1, keepdim=True),  # no gradient of anything
        lambda x, g: x.cos(),  # forgets the incoming one
        lambda x, g: g * g * x.cos() + x,
    ],
)
def test_what_is_no_penalty_is_a_mistake(gradient: Body) -> None:
    assert not said(lambda x: x.sin(), gradient)


def test_a_curve_beyond_two_limits_is_named() -> None:
    def curve(x: Any, g: Any) -> Any:
        beyond = (-((x - 1) ** 2)).exp()
        return g * sg.where(x < 0, beyond, sg.where(x > 2, beyond, 1.0))

    found = said(lambda x: x.clamp(0, 2), curve)
    assert "is the true gradient within the limits of forward" in found
    assert ".exp()" in found


@pytest.mark.parametrize(
    ("forward", "gradient"),
    [
        (lambda x: x.clamp(0, 2), lambda x, g: g * ((x > 0) & (x < 1))),
        (lambda x: x.clamp(0, 2), lambda x, g: g * x.exp()),  # wrong between the limits
        (lambda x: x.clamp(min=0), lambda x, g: g * sg.where(x < 0, x.exp(), 1.0)),  # an ELU's
    ],
)
def test_a_wrong_clip_is_a_mistake(forward: Body, gradient: Body) -> None:
    assert not said(forward, gradient)


@pytest.mark.parametrize("width", [0.25, 0.5, 1, 2])
@pytest.mark.parametrize("middle", [0.5, -1.5])
def test_a_window_around_a_threshold_is_a_ramp(width: float, middle: float) -> None:
    """The ramp has its kinks where the window ends; they are no points against it."""
    found = said(lambda x: (x > middle).float(), lambda x, g: g * ((x - middle).abs() < width))
    assert f".clamp(min=-{width}, max={width})` in place of" in found


def test_a_mask_of_ranks_is_flat() -> None:
    """All elements are written over; for how it is built, the mask has those of x in it."""

    def ranked(x: Any) -> Any:
        mask, order = x.flatten(), x.flatten().argsort(descending=True)
        half = math.ceil(0.5 * x.numel())
        mask = mask.index_put((order[half:],), sg.tensor(0.0))
        return mask.index_put((order[:half],), sg.tensor(1.0)).view(x.shape)

    assert "derivative of `x` in place of forward" in said(ranked, lambda x, g: g)
    assert not said(lambda x: x.sort(1)[0], lambda x, g: g)


@pytest.mark.parametrize("op", ["logical_and", "logical_or", "where", "mul", "add", "sub", "div"])
def test_folding_keeps_values(op: str) -> None:
    """Every combination of an unknown with a number or a truth value, by evaluation."""
    logical = op.startswith("logical")
    dtype = bool_ if logical else float64
    for value in (True, False) if logical else (0.0, 1.0, 2.0):
        for place in (0, 1):
            graph = Graph()
            x = graph.input("x", TensorType(dtype, (Dim.of(3),)))
            args = [graph.lift(value, x), x] if place == 0 else [x, graph.lift(value, x)]
            if op == "where":
                args = [graph.lift(bool(value), graph.apply("gt", x, x)), *args]
            node = graph.apply(op, *args)
            short = folded(node, args)
            if short is None:
                continue
            given = np.array([True, False, True]) if logical else np.array([0.5, -2.0, 3.0])
            plain, brief = evaluate([node, short], {"x": given})
            np.testing.assert_array_equal(plain, brief)
