"""Refutation: needs both derivatives, and ends in a small point that anyone can recompute."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Node
from symgrad.proof.judge.decide import judge
from symgrad.proof.oracle.refute import check_element, confirmed, refute, simple_point
from symgrad.proof.oracle.sample import DENOMINATOR, Point
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.verdict import Verdict
from symgrad.proof.words.snippet import numpy_snippet
from tests.proof.builders import K, M, N, elementwise, softmax, subject, tensor


def _relu() -> Subject:
    return elementwise("relu", lambda x, y: x.graph.apply("sign", y))


def _at(subject: Subject, value: float) -> Point:
    point = subject.sampler.point({"n": 1, "m": 1}, 0)
    numerators = {**point.numerators, "x": np.array([[int(value * DENOMINATOR)]])}
    return replace(point, numerators=numerators)


def test_a_point_on_a_kink_refutes_nothing() -> None:
    right = _relu()
    assert not confirmed(right, _at(right, 0.0), "x")
    wrong = elementwise("relu", lambda x, y: x.graph.apply("sign", x))
    assert not confirmed(wrong, _at(wrong, 0.0), "x")
    assert not confirmed(wrong, _at(wrong, 1.0), "x")
    assert confirmed(wrong, _at(wrong, -1.0), "x")


def test_the_counterexample_is_the_smallest() -> None:
    one = subject(
        {"x": tensor(N, M)}, softmax, lambda g, y, x: [g * y],
    )  # fmt: skip
    found = judge(one)["x"]
    assert found.verdict is Verdict.REFUTED
    assert found.counterexample is not None
    assert found.counterexample.point.sizes == {"n": 1, "m": 1}
    assert found.counterexample.true == 0.0


def test_a_shape_that_is_needed_is_kept() -> None:
    """Wrong only where k is at least 2: the mean written as a sum."""
    one = subject(
        {"x": tensor(N, K)},
        lambda x: x.graph.apply("sum", x, axes=(1,)) / K,
        lambda g, y, x: [x.graph.expand(x.graph.apply("reshape", g, shape=(N, Dim.of(1))), (N, K))],
    )
    found = judge(one)["x"]
    assert found.verdict is Verdict.REFUTED
    assert found.counterexample is not None
    assert found.counterexample.point.sizes == {"k": 2, "n": 1}


def test_a_tiny_error_is_found() -> None:
    """A relative error of 1e-25 is far below doubles, and no rounding."""
    one = subject(
        {"x": tensor(N)}, lambda x: x * x, lambda g, y, x: [g * x * 2 + g * x * 1e-25],
    )  # fmt: skip
    assert judge(one)["x"].verdict is Verdict.REFUTED


def test_a_rare_region_is_visited() -> None:
    def steep(x: Node) -> Node:
        graph = x.graph
        beyond = graph.binary("gt", x, 1000.0)
        return graph.apply("where", beyond, graph.binary("mul", x, 2.0), x)

    one = subject({"x": tensor(N)}, steep, lambda g, y, x: [g])
    assert judge(one)["x"].verdict is Verdict.REFUTED


def test_undefined_where_the_forward_is_fine_is_wrong() -> None:
    """A gradient that divides by zero everywhere."""
    one = elementwise("exp", lambda x, y: y / (x - x))
    found = judge(one)["x"]
    assert found.verdict is Verdict.REFUTED


def test_an_element_that_is_right_is_no_counterexample() -> None:
    one = elementwise("exp", lambda x, y: y)
    assert check_element(one, "x", simple_point(one, {"n": 1, "m": 1}, 0), (0, 0)) is None
    assert refute(one, "x", []) is None


@pytest.mark.parametrize("op", ["exp", "sqrt", "lgamma", "erfinv", "digamma", "trigamma"])
def test_the_snippet_needs_numpy_alone(op: str) -> None:
    one = elementwise(op, lambda x, y: y * y)
    one.settle()
    found = refute(one, "x", [])
    assert found is not None
    text = numpy_snippet(one, found)
    assert text is not None
    blocked = "import sys\nfor name in ('symgrad', 'sympy', 'mpmath'): sys.modules[name] = None\n"
    run = subprocess.run(
        [sys.executable, "-c", blocked + text], capture_output=True, text=True, check=True
    )
    written, quotient = (float(line.rpartition(" ")[2]) for line in run.stdout.splitlines())
    assert written == pytest.approx(found.hand, rel=1e-9)
    assert quotient == pytest.approx(found.true, rel=1e-4, abs=1e-6)


class ForgottenRoot(sg.Function):
    """The normalisation's factor is applied once where it has to be applied twice."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        root = sg.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
        ctx.save_for_backward(x, root)
        return x * root

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, root = ctx.saved_tensors
        return root * (grad - x * root * (grad * x).mean(-1, keepdim=True))


def test_a_counterexample_that_can_be_seen_is_taken_before_a_smaller_one() -> None:
    """With one element in a row, both gradients are some millionths."""
    found = sg.verify(ForgottenRoot, "n m").inputs["x"].counterexample
    assert found is not None
    assert abs(found.hand - found.true) > 0.01
    assert "too small" not in found.snippet


class HiddenEverywhere(sg.Function):
    """Wrong by a millionth, wherever one looks."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return sg.sin(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * sg.cos(x) * (1 + 2**-20)


def test_a_difference_that_is_small_everywhere_is_a_refutation_too() -> None:
    assert sg.verify(HiddenEverywhere, "n").verdict == "REFUTED"


class CutOff(sg.Function):
    """Zero from where float64 cannot tell the slope from zero."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return sg.sigmoid(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        y = sg.sigmoid(x)
        return grad * y * (1 - y) * (x < 37.25)


def test_what_float64_rounds_away_is_no_refutation() -> None:
    report = sg.verify(CutOff, "n", suggest=False)
    assert report.verdict == "UNDECIDED"
    assert "float64 rounds by more than that" in " ".join(str(report).split())


class GreatestSelected(sg.Function):
    """The greatest element that a mask selects; where it selects none, a large constant."""

    fill = -1e30

    @staticmethod
    def forward(ctx: Any, x: Any, mask: Any) -> Any:
        value, place = sg.where(mask, x, GreatestSelected.fill).max(-1)
        ctx.save_for_backward(mask, place)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        mask, place = ctx.saved_tensors
        return grad.unsqueeze(-1) * sg.one_hot(place, mask.shape[-1]) * mask, None


class FirstOfNone(GreatestSelected):
    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        mask, place = ctx.saved_tensors
        return grad.unsqueeze(-1) * sg.one_hot(place, mask.shape[-1]), None


def test_a_large_constant_among_the_outputs_hides_nothing() -> None:
    assert sg.verify(GreatestSelected, "n m", "bool[n m]", suggest=False).verdict == "PROVED"
    found = sg.verify(FirstOfNone, "n m", "bool[n m]", suggest=False)
    assert found.verdict == "REFUTED"
    example = found.inputs["x"].counterexample
    assert example is not None
    assert example.true == 0
