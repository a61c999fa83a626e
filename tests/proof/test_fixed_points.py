"""Backwards of fixed points, judged by the implicit function theorem: [rule: fixed point]."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg
from symgrad.errors import SpecError

ROUNDS = 3


def step(z: Any, x: Any, w: Any) -> Any:
    return sg.tanh(z @ w.t() + x)


class Layer(sg.Function):
    """z = tanh(z wT + x), by iteration; backward solves with a matrix for each row."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        z = sg.zeros_like(x)
        for _ in range(ROUNDS):
            z = step(z, x, w)
        ctx.save_for_backward(z, w)
        return z

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        z, w = ctx.saved_tensors
        slope = 1 - z * z
        jacobian = slope.unsqueeze(-1) * w
        matrix = sg.eye(w.shape[0], dtype=w.dtype) - jacobian.transpose(-2, -1)
        u = sg.linalg.solve(matrix, g.unsqueeze(-1)).squeeze(-1)
        return u * slope, (u * slope).t() @ z


class Unsolved(Layer):
    """It leaves out the inverse."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        z, _ = ctx.saved_tensors
        inner = g * (1 - z * z)
        return inner, inner.t() @ z


class WrongSign(Layer):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        z, w = ctx.saved_tensors
        slope = 1 - z * z
        matrix = sg.eye(w.shape[0], dtype=w.dtype) + (slope.unsqueeze(-1) * w).transpose(-2, -1)
        u = sg.linalg.solve(matrix, g.unsqueeze(-1)).squeeze(-1)
        return u * slope, (u * slope).t() @ z


class NotTransposed(Layer):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        z, w = ctx.saved_tensors
        slope = 1 - z * z
        matrix = sg.eye(w.shape[0], dtype=w.dtype) - slope.unsqueeze(-1) * w
        u = sg.linalg.solve(matrix, g.unsqueeze(-1)).squeeze(-1)
        return u * slope, (u * slope).t() @ z


class Iterated(Layer):
    """Backward iterates as well."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        z, w = ctx.saved_tensors
        slope = 1 - z * z
        u = g
        for _ in range(ROUNDS):
            u = g + (u * slope) @ w
        return u * slope, (u * slope).t() @ z


class Elementwise(sg.Function):
    """z = cos(z) * x."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        z = sg.ones_like(x)
        for _ in range(ROUNDS):
            z = sg.cos(z) * x
        ctx.save_for_backward(x, z)
        return z

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, z = ctx.saved_tensors
        return g * sg.cos(z) / (1 + x * sg.sin(z))


class Root(sg.Function):
    """Newton's iteration for a root: z = (z + a / z) / 2."""

    @staticmethod
    def forward(ctx: Any, a: Any) -> Any:
        z = sg.ones_like(a)
        for _ in range(ROUNDS):
            z = 0.5 * (z + a / z)
        ctx.save_for_backward(z)
        return z

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (z,) = ctx.saved_tensors
        return g / (2 * z)


class Nowhere(sg.Function):
    """z = cos(z x); backward is right for almost all z and x, and 0 / 0 at every fixed point."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        z = sg.ones_like(x)
        for _ in range(ROUNDS):
            z = sg.cos(z * x)
        ctx.save_for_backward(x, z)
        return z

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, z = ctx.saved_tensors
        spoilt = z - sg.cos(-x * z)
        return -g * z * sg.sin(z * x) / (1 + x * sg.sin(z * x)) * (spoilt / spoilt)


def verdict(function: Any, meant: Any, *specs: str) -> sg.Report:
    marked = type(function.__name__, (function,), {})
    return sg.verify(sg.surrogate(sg.fixed_point(meant))(marked), *specs)


CONVERGED = "forward has converged (z = f(z))"
INVERSE = "I - df/dz has an inverse there"


@pytest.mark.slow
def test_an_implicit_backward_is_proved_under_its_conditions() -> None:
    report = verdict(Layer, step, "n m", "m m")
    assert report.ok, str(report)
    for one in report.inputs.values():
        assert {CONVERGED, INVERSE} <= {str(condition) for condition in one.conditions}
    assert "REFUTED" in str(sg.verify(Layer, "n m", "m m").verdict)


@pytest.mark.slow
def test_an_iteration_of_backward_is_a_condition() -> None:
    report = verdict(Iterated, step, "n m", "m m")
    assert report.ok, str(report)
    said = {str(condition) for condition in report.inputs["x"].conditions}
    assert "the iteration of backward has converged" in said


@pytest.mark.slow
def test_an_elementwise_fixed_point() -> None:
    assert verdict(Elementwise, lambda z, x: sg.cos(z) * x, "n").ok
    assert verdict(Root, lambda z, a: 0.5 * (z + a / z), "n").ok


@pytest.mark.slow
def test_a_wrong_root_is_not_proved() -> None:
    class Wrong(Root):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return Root.backward(ctx, g) * 2

    assert str(verdict(Wrong, lambda z, a: 0.5 * (z + a / z), "n").verdict) == "UNDECIDED"


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [Unsolved, WrongSign, NotTransposed])
def test_what_is_no_implicit_derivative_is_not_proved(wrong: Any) -> None:
    assert str(verdict(wrong, step, "n m", "m m").verdict) == "UNDECIDED"


@pytest.mark.slow
def test_equal_but_at_fixed_points_is_not_proved() -> None:
    report = verdict(Nowhere, lambda z, x: sg.cos(z * x), "n")
    assert str(report.verdict) == "UNDECIDED"
    assert "is continuous, or numbers" in str(report)


@pytest.mark.slow
def test_another_step_than_that_of_forward_is_not_proved() -> None:
    report = verdict(Elementwise, lambda z, x: sg.sin(z) * x, "n")
    assert "does not end in the step" in str(report)
    assert str(report.verdict) == "UNDECIDED"


def test_a_fixed_point_has_one_output() -> None:
    class Two(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1, x * 2

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g + 2 * h

    with pytest.raises(SpecError, match="does not return one tensor"):
        verdict(Two, lambda z, x: z, "n")
