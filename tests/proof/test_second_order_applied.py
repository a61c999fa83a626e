"""``order=2`` where backward applies Functions or writes in place."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg
from symgrad.proof.report.verdict import Verdict
from tests.proof.second_orders import Cube, second_order

# -- Functions applied in backward


class Inner(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, g: Any) -> Any:
        ctx.save_for_backward(x, g)
        return 3 * g * x * x

    @staticmethod
    def backward(ctx: Any, gg: Any) -> Any:
        x, g = ctx.saved_tensors
        return gg * 6 * g * x, gg * 3 * x * x


class InnerOnce(Inner):
    @staticmethod
    @sg.once_differentiable
    def backward(ctx: Any, gg: Any) -> Any:
        x, g = ctx.saved_tensors
        return gg * 6 * g * x, gg * 3 * x * x


class InnerFails(Inner):
    @staticmethod
    def backward(ctx: Any, gg: Any) -> Any:
        raise ValueError("not yet")


class InnerNone(Inner):
    @staticmethod
    def backward(ctx: Any, gg: Any) -> Any:
        x, _ = ctx.saved_tensors
        return None, gg * 3 * x * x


def _by(inner: Any) -> Any:
    class ByInner(Cube):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return inner.apply(x, g)

    return ByInner


@pytest.mark.parametrize(
    ("inner", "verdict", "word"),
    [
        (Inner, Verdict.PROVED, ""),
        (InnerOnce, Verdict.REFUTED, "once_differentiable"),
        (InnerFails, Verdict.UNDECIDED, "not yet"),
        (InnerNone, Verdict.REFUTED, "the backward of InnerNone"),
    ],
)
def test_inner(inner: Any, verdict: Verdict, word: str) -> None:
    found = second_order(_by(inner), "n")
    assert found.verdict is verdict, found.text
    assert word in found.text


def test_inner_in_forward_says_nothing() -> None:
    """Forward is not recorded: what the applied Function's backward says plays no part."""

    class Outer(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return _by(InnerNone).apply(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * g * x * x

    assert second_order(Outer, "n").verdict is Verdict.PROVED


# -- in place


class ReadThenWritten(sg.Function):
    """PyTorch: one of the variables needed for gradient computation has been modified."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        scaled = 2 * g
        grad_w = scaled * x / 2
        scaled.mul_(w)
        return scaled / 2, grad_w


class WrittenThenRead(ReadThenWritten):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        grad = g.clone()
        grad.mul_(w)
        return grad, g * x


class WrittenThroughDetached(ReadThenWritten):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        grad = g.clone()
        grad.detach().mul_(w)
        return grad, g * x


class HistoryWrittenUnrecorded(ReadThenWritten):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        grad = g.clone()
        with sg.no_grad():
            grad.mul_(w)
        return grad, g * x


@pytest.mark.parametrize(
    "function", [ReadThenWritten, WrittenThroughDetached, HistoryWrittenUnrecorded]
)
def test_writes_that_are_not_followed(function: Any) -> None:
    assert second_order(function, "n", "n").verdict is Verdict.UNDECIDED


def test_writes_that_are_followed() -> None:
    assert second_order(WrittenThenRead, "n", "n").verdict is Verdict.PROVED
