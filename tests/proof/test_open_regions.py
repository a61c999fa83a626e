"""A gradient that is proved but in a small region: the region is printed as an exception."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.frontend.request import bind
from symgrad.frontend.trace import trace_request
from symgrad.index.lower import leaf_name
from symgrad.proof.judge.witness import vanishes_in_part
from symgrad.proof.normal.algebra import leaf
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.facts import Facts
from symgrad.proof.normal.rules import RULES
from tests.suite.adversarial.program import class_of, class_text


class Normalized(sg.Function):
    """Backward forgets that the norm is a constant where it is small."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        norm = (x * x).sum(-1, keepdim=True).sqrt().clamp(min=1e-12)
        y = x / norm
        ctx.save_for_backward(y, norm)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        y, norm = ctx.saved_tensors
        return (g - y * (g * y).sum(-1, keepdim=True)) / norm


class NormalizedRight(Normalized):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        length = (x * x).sum(-1, keepdim=True).sqrt()
        norm = length.clamp(min=1e-12)
        y = x / norm
        ctx.save_for_backward(y, norm, length > 1e-12)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        y, norm, large = ctx.saved_tensors
        return (g - large * y * (g * y).sum(-1, keepdim=True)) / norm


def test_the_open_region_is_left_out() -> None:
    report = sg.verify(Normalized, "n m")
    assert report.verdict == sg.PROVED
    (said,) = report.inputs["x"].conditions
    assert str(said) == "(x * x).sum(1, keepdim=True).sqrt() <= 1e-12"
    assert said.excepted
    for scale, inside in ((1.0, False), (1e-14, True)):
        x = sg.tensor(np.full((2, 3), scale))
        assert bool(eval(said.code, {"x": x, "sg": sg}).any()) is inside


WRONG = (sg.REFUTED, sg.SURROGATE)  # a limit that backward alone has may be meant
GUARDED = {
    "x.sin() | sg.where(x.abs() < {v}, 0 * g, g * x.cos())": "x.abs() <= {v}",
    "x.norm() | n = x.norm()\ng * x / n.clamp(min={v})": "x.square().sum().sqrt() <= {v}",
    "x.norm() | n = x.norm()\nsg.where(n > {v}, g * x / n, g)": "x.square().sum().sqrt() <= {v}",
    "x * x | 2 * g * x * (x > -{v}) + 2 * g * x * (x <= {v})": "x.abs() <= {v}",
    "x ** 3 | g * (3 * x * x).clamp(min={v})": "(3 * x * x).abs() <= {v}",
}


@pytest.mark.parametrize("program", GUARDED)
@pytest.mark.parametrize("bound", ["1e-12", "1e-11"])
def test_regions_around_zero_are_left_out(program: str, bound: str) -> None:
    forward, backward = program.format(v=bound).split(" | ")
    made = class_of("Guarded", class_text("Guarded", forward, backward, "x"), sg)
    report = sg.verify(made, "n", suggest=False, timeout=None)
    assert report.verdict == sg.PROVED
    (said,) = report.inputs["x"].conditions
    assert str(said) == GUARDED[program].format(v=bound)


@pytest.mark.parametrize("program", GUARDED)
def test_regions_that_are_not_small_are_not_left_out(program: str) -> None:
    forward, backward = program.format(v="0.5").split(" | ")
    made = class_of("Guarded", class_text("Guarded", forward, backward, "x"), sg)
    assert sg.verify(made, "n", suggest=False, timeout=None).verdict in WRONG


@pytest.mark.parametrize("wrong", ["1.5 * g * x.cos()", "g * x.cos() * (x > 0)"])
def test_what_is_wrong_outside_of_a_region_is_refuted(wrong: str) -> None:
    backward = f"sg.where(x.abs() < 1e-12, 0 * g, {wrong})"
    made = class_of("Guarded", class_text("Guarded", "x.sin()", backward, "x"), sg)
    assert sg.verify(made, "n", suggest=False, timeout=None).verdict == sg.REFUTED


def test_nothing_is_open_where_the_region_is_right() -> None:
    assert sg.verify(NormalizedRight, "n m").verdict == sg.PROVED


@pytest.mark.parametrize("bound", [1e-12, 1e-9])
def test_a_region_on_one_side(bound: float) -> None:
    class Limited(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.clamp(min=bound).log()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g / x.clamp(min=bound)

    report = sg.verify(Limited, "n")
    assert report.verdict != sg.PROVED


FLAT = {
    "sg.maximum(x, x.abs())": "g * (x >= x.abs()) + g * x.sign() * (x.abs() >= x)",
    "sg.maximum(x, x.relu())": "g * (x >= x.relu()) + g * (x.relu() >= x) * (x > 0)",
}


@pytest.mark.parametrize("forward", FLAT)
def test_an_exception_that_has_inner_points_is_none_of_a_proof(forward: str) -> None:
    """``x.abs() - x`` is 0 for all positive numbers, where this backward is wrong."""
    report = sg.verify(class_of("Tied", class_text("Tied", forward, FLAT[forward], "x"), sg), "")
    assert report.verdict != sg.PROVED, str(report)


def test_integers_of_forward_do_not_hide_zeros_with_inner_points() -> None:
    made = class_of("Value", class_text("Value", "(x.abs() - x) * k", "g, None", "xk"), sg)
    (case,) = trace_request(bind(made, ("f32[]", "i64[]"))).cases
    (product,) = case.outputs
    node = product.args[0]
    base = leaf(Proof(RULES), leaf_name(node), ())
    assert vanishes_in_part(base, (), Facts(), {leaf_name(node): node}, [product])


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("x.abs() - x", True), ("x.relu()", True), ("x.floor()", True), ("x.sign() - 1", True),
        ("x.clamp(0, 1) - x", True), ("x * x - 2", False), ("x.abs()", False), ("x - 1", False),
    ],
)  # fmt: skip
def test_zeros_with_inner_points_are_told_from_null_sets(text: str, inside: bool) -> None:
    """Of what a proof reads as one value."""
    made = class_of("Value", class_text("Value", text, "g", "x"), sg)
    (case,) = trace_request(bind(made, ("",))).cases
    (node,) = case.outputs
    base = leaf(Proof(RULES), leaf_name(node), ())
    assert vanishes_in_part(base, (), Facts(), {leaf_name(node): node}) is inside


@pytest.mark.parametrize("spec", ["f32[]", "n", "n m"])
def test_a_mean_of_what_a_mask_selects_is_right_where_it_selects_something(spec: str) -> None:
    """Forward is 0 / 0 elsewhere."""
    text = class_text("Mean", "x[t > 0].mean()", "g * (t > 0) / (t > 0).sum(), None", ("x", "t"))
    report = sg.verify(class_of("Mean", text, sg), f"{spec}; {spec}")
    assert report.verdict == sg.PROVED, str(report)
    assert any("(t > 0)" in str(one) and one.excepted for one in report.inputs["x"].conditions)


def test_the_number_that_a_mask_selects_is_divided_by_in_backward_alone() -> None:
    """0 / 0 where forward is 0, on an open set."""
    forward = "(x * (t > 0)).sum()"
    backward = "g * (t > 0) * ((t > 0).sum() / (t > 0).sum()), None"
    report = sg.verify(class_of("Sum", class_text("Sum", forward, backward, "xt"), sg), "n; n")
    assert report.verdict != sg.PROVED, str(report)
