"""``order=2``: what PyTorch's double backward makes of a backward, and what is said of it.

Cases that torch itself confirms are in ``tests/suite/corpus``: ``second_order`` and ``records``.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import symgrad as sg
from symgrad.frontend.trace import trace
from symgrad.proof.report.verdict import Verdict
from symgrad.proof.verify import VerifyOptions, verify_function
from tests.proof.second_orders import Cube, second_order

# -- constants


class SlopeMarked(sg.Function):
    """An output without a derivative is a constant, though it is an output."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        slope = 2 * x
        ctx.mark_non_differentiable(slope)
        ctx.save_for_backward(slope)
        return x * x, slope

    @staticmethod
    def backward(ctx: Any, g: Any, _: Any) -> Any:
        (slope,) = ctx.saved_tensors
        return g * slope


class Retyped(Cube):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * g * sg.tensor(x) * x


class SwitchedOff(Cube):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        sg.set_grad_enabled(False)
        slope = 3 * x * x
        sg.set_grad_enabled(True)
        return g * slope


class Decorated(Cube):
    @staticmethod
    @sg.no_grad()
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * g * x * x


class Selected(Cube):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        grad = sg.zeros_like(x)
        grad[x > 0] = (g * 3 * x * x)[x > 0].detach()
        grad[x <= 0] = (g * 3 * x * x)[x <= 0]
        return grad


class ViewUnrecorded(Cube):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        with sg.no_grad():
            view = x.view_as(x)
        return 3 * g * view * view


CONSTANTS = [SlopeMarked, Retyped, SwitchedOff, Decorated, Selected, ViewUnrecorded]


@pytest.mark.parametrize("function", CONSTANTS)
def test_constants(function: Any) -> None:
    found = second_order(function, "n")
    assert found.verdict is Verdict.REFUTED, found.text
    assert "lost in double backward" in found.text
    assert found.counterexample is not None
    assert found.counterexample.hand != pytest.approx(found.counterexample.true)


class GuardedSlope(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return x * x * y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        slope = 2 * x if ctx.needs_input_grad[1] else 2 * x.detach()
        return g * slope * y, g * x * x


def test_where_only_some_gradients_are_asked_for() -> None:
    assert second_order(GuardedSlope, "n", "n").verdict is Verdict.REFUTED


# -- not constants


class AsTensor(Cube):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * g * sg.as_tensor(x) * x


class Returned(sg.Function):
    """A view of the output is not the output; the output itself is."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.parts = {"y": [y]}
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.parts["y"][0]


class ChangedInPlace(sg.Function):
    """A dirty input is the output, and has its history."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return g * y


class WithTarget(sg.Function):
    """No gradient is wanted for t, so that it may lose its."""

    @staticmethod
    def forward(ctx: Any, x: Any, t: Any) -> Any:
        ctx.save_for_backward(x, t)
        return (x - t) ** 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, t = ctx.saved_tensors
        return 2 * g * (x - t.detach()), None


@pytest.mark.parametrize("function", [Cube, AsTensor, Returned, ChangedInPlace])
def test_no_constants(function: Any) -> None:
    assert second_order(function, "n").verdict is Verdict.PROVED


def test_constant_inputs_are_not_asked_about() -> None:
    assert second_order(WithTarget, "n", "n", assume={"t": "constant"}).verdict is Verdict.PROVED


class Derived(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.sin() * x


def test_a_surrogate_is_differentiated_as_it_is_written() -> None:
    class Sign(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sign()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * (1 - x.tanh() ** 2)

    class SignByOutput(Sign):
        """The output's derivative is the hand-written one, not that of its values."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.sign()
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return g * (1 - x.tanh() ** 2) * y * y

    tanh = sg.surrogate(lambda x: x.tanh())
    assert second_order(tanh(Sign), "n").verdict is Verdict.PROVED
    report = sg.verify(tanh(SignByOutput), "n", order=2, suggest=False)
    (found,) = (one for one in report.protocol if one.name == "second order")
    assert found.verdict is not Verdict.PROVED


# -- what is said


class TwoSaved(sg.Function):
    """One of the two saved intermediates is a mask, to which nothing is lost."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        positive = (x > 0).float()
        double = 2 * x
        ctx.save_for_backward(positive, double)
        return x * x * positive

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        positive, double = ctx.saved_tensors
        return g * double * positive


def test_the_lost_intermediate_is_named() -> None:
    text = second_order(TwoSaved, "n").text
    lines, first = inspect.getsourcelines(TwoSaved)
    place = first + next(i for i, line in enumerate(lines) if "double = 2" in line)
    assert "`double`" in text
    assert "`positive`" not in text
    assert f"test_second_order.py:{place})" in text
    assert "save x and recompute it, or return it as an output" in text


def test_the_counterexample_runs() -> None:
    found = second_order(TwoSaved, "n").counterexample
    assert found is not None
    assert found.snippet
    exec(compile(found.snippet, "snippet", "exec"), {"__name__": "snippet"})


def test_once_differentiable() -> None:
    class Once(Cube):
        @staticmethod
        @sg.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * g * x * x

    found = second_order(Once, "n")
    assert found.verdict is Verdict.REFUTED
    assert "once_differentiable" in found.text
    assert sg.verify(Once, "n").verdict is Verdict.PROVED


def test_a_wrong_backward_is_not_differentiated() -> None:
    class Wrong(Cube):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * g * x * x

    report = sg.verify(Wrong, "n", order=2, suggest=False)
    assert report.inputs["x"].verdict is Verdict.REFUTED
    assert "not judged" in str(report)


def test_a_derived_backward_keeps_everything() -> None:
    report = sg.verify(Derived, "n", order=2)
    assert "UNDECIDED" not in {str(one.verdict) for one in report.protocol}


def test_nothing_is_proved_without_histories() -> None:
    report = verify_function(trace(Cube, "n"), VerifyOptions(order=2))
    assert report.verdict is Verdict.UNDECIDED


# -- single values

PIECES = (
    (lambda x: x * x, lambda g, x: sg.where(x == 0, g * 0, 2 * g * x), "x == 0"),
    (lambda x: x * x, lambda g, x: 2 * g * x.abs() * x.sign(), "x == 0"),
    (lambda x: x * x, lambda g, x: 2 * g * (sg.relu(x) - sg.relu(-x)), "x == 0"),
    (lambda x: x * x, lambda g, x: 2 * g * (x.clamp(min=0) + x.clamp(max=0)), "x == 0"),
    (lambda x: x * x, lambda g, x: 2 * g * (x * x).sqrt() * x.sign(), "x == 0"),
    (lambda x: x * x, lambda g, x: 2 * g.abs() * x * g.sign(), "grad_output == 0"),
    (lambda x: x * x, lambda g, x: 2 * g * x * x / sg.where(x == 0, x + 1, x), "x == 0"),
    (lambda x: x**3, lambda g, x: sg.where(g == 1, 3 * x * x, 3 * g * x * x), "grad_output == 1"),
)  # fmt: skip


@pytest.mark.parametrize(("forward", "backward", "where"), PIECES)
def test_values_at_which_backward_changes_are_excepted(
    forward: Any, backward: Any, where: str
) -> None:
    class Pieces(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return backward(g, x)

    found = second_order(Pieces, "n")
    assert found.verdict is Verdict.PROVED
    assert f"almost everywhere, not where {where}" in found.text


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        (sg.relu, lambda g, x, y: g * (x > 0)),
        (sg.exp, lambda g, x, y: g * y),
        (lambda x: sg.softmax(x, -1), lambda g, x, y: y * (g - (g * y).sum(-1, keepdim=True))),
        (sg.sqrt, lambda g, x, y: g / (2 * y)),
    ],
)
def test_what_is_printed_of_the_first_order_is_not_said_again(forward: Any, backward: Any) -> None:
    class Plain(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = forward(x)
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return backward(g, x, y)

    found = second_order(Plain, "n")
    assert found.verdict is Verdict.PROVED
    assert "almost everywhere" not in found.text
