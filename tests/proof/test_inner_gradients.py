"""Backwards that ask for gradients: what is traced, what is not, and what is compiled.

Cases that torch confirms are in ``tests/suite/corpus/inner_gradients.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.errors import UnsupportedOpError
from symgrad.proof.report.verdict import Verdict
from tests.proof.second_orders import second_order


class Base(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.sin() * x


class ByVjp(Base):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        _, pull_back = sg.vjp(lambda x: x.sin() * x, x)
        return pull_back(g)[0]


class ByGrad(Base):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * sg.grad(lambda x: (x.sin() * x).sum())(x)


class ByBackward(Base):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with sg.enable_grad():
            (x.sin() * x).backward(g)
        return x.grad


class UsedUp(Base):
    """The second call finds what the first one left: the list of saved tensors is emptied."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.kept = [x]
        return x.sin() * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        _, pull_back = sg.vjp(lambda x: x.sin() * x, ctx.kept.pop())
        return pull_back(g)[0]


@pytest.mark.parametrize("function", [ByVjp, ByGrad, ByBackward])
def test_proved_and_compiled(function: Any) -> None:
    assert sg.verify(function, "n", suggest=False).verdict is Verdict.PROVED
    op = sg.compile(function, "f64[n]")
    x, g = np.linspace(-2, 2, 5), np.linspace(1, 3, 5)
    _, residuals = op.forward(x)
    (found,) = op.backward(residuals, g)
    np.testing.assert_allclose(np.asarray(found), g * (x * np.cos(x) + np.sin(x)), rtol=1e-12)


@pytest.mark.parametrize("function", [ByVjp, ByGrad])
def test_transforms_keep_histories(function: Any) -> None:
    assert second_order(function, "n").verdict is Verdict.PROVED


def test_a_backward_inside_gives_constants() -> None:
    found = second_order(ByBackward, "n")
    assert found.verdict is Verdict.REFUTED
    assert "without create_graph" in found.text


def test_the_second_call_is_compared() -> None:
    report = sg.verify(UsedUp, "n", suggest=False)
    (found,) = (one for one in report.protocol if one.name == "a second call agrees")
    assert found.verdict is Verdict.REFUTED


class ByOwnOutput(Base):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return sg.autograd.grad(y, x, g)[0]


class ByComputed(Base):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        double = 2 * x
        return 2 * sg.autograd.grad((double / 2).sin() * double / 2, double, g)[0]


@pytest.mark.parametrize("function", [ByOwnOutput, ByComputed])
def test_what_is_not_traced_is_undecided(function: Any) -> None:
    report = sg.verify(function, "n", order=2, suggest=False)
    assert report.inputs["x"].verdict is Verdict.UNDECIDED
    assert "differentiates" in report.inputs["x"].reason
    assert report.verdict is Verdict.UNDECIDED


def test_forward_asks_for_no_gradients() -> None:
    class InForward(Base):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return sg.autograd.grad((x * x).sum(), x)[0]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g

    with pytest.raises(UnsupportedOpError, match="not recorded"):
        sg.verify(InForward, "n")
