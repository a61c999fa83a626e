"""Values of plain arguments without a default are judged together, and at other shapes."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.proof.report.together import Judged  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function


class Loss(Function):
    @staticmethod
    def forward(ctx, x, reduction, squared):
        ctx.save_for_backward(x)
        ctx.how = reduction, squared
        loss = x * x if squared else x.exp()
        return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        reduction, squared = ctx.how
        slope = 2 * x if squared else x.exp()
        return g * (slope / x.numel() if reduction == "mean" else slope), None, None


class LossWrong(Loss):
    """Wrong for one pair of values alone."""

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        reduction, squared = ctx.how
        slope = 2 * x if squared else x.exp()
        mean = reduction == "mean" or (reduction == "sum" and not squared)
        return g * (slope / x.numel() if mean else slope), None, None


class Along(Function):
    @staticmethod
    def forward(ctx, x, last):
        ctx.dim = -1 if last else 0
        y = x.softmax(ctx.dim)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(ctx.dim, keepdim=True)), None


class AlongWrong(Along):
    """Wrong for three axes and one of the values alone."""

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        dim = 1 if g.dim() == 3 and ctx.dim == 0 else ctx.dim
        return y * (g - (g * y).sum(dim, keepdim=True)), None


class Between(Function):
    @staticmethod
    def forward(ctx, a, b, minus):
        ctx.minus, ctx.shape = minus, b.shape
        return a - b if minus else a + b

    @staticmethod
    def backward(ctx, g):
        return g, -g if ctx.minus else g, None


class BetweenWrong(Between):
    """Wrong for a vector beside a matrix and one of the values alone."""

    @staticmethod
    def backward(ctx, g):
        if not ctx.minus and len(ctx.shape) < g.dim():
            return g, g.mean(0), None
        return Between.backward(ctx, g)


class Switched(Function):
    @staticmethod
    def forward(ctx, x, one, other, bias=None):
        ctx.how, ctx.bias = (one, other), bias is not None
        y = x * (2 if one else 1) * (3 if other else 1)
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, g):
        one, other = ctx.how
        slope = (2 if one else 1) * (3 if other else 1)
        return g * slope, None, None, g if ctx.bias else None


class SwitchedWrong(Switched):
    """Wrong where the optional tensor is given, for one pair of values alone."""

    @staticmethod
    def backward(ctx, g):
        grads = Switched.backward(ctx, g)
        if ctx.bias and not any(ctx.how):
            return (*grads[:3], g * g.shape[0])
        return grads


@pytest.mark.parametrize("cls", [Loss, Along, Between, Switched])
def test_what_is_right_for_all_is_proved_for_all(cls: Any) -> None:
    report = sg.verify(cls, suggest=False)
    assert str(report.verdict) == "PROVED", str(report)
    assert not [one for one in report.conditions if one.kind in ("together", "shapes")], str(report)


@pytest.mark.parametrize("cls", [LossWrong, AlongWrong, SwitchedWrong])
def test_a_mistake_of_one_combination_is_found(cls: Any) -> None:
    report = sg.verify(cls)
    assert str(report.verdict) == "REFUTED", str(report)
    assert "'False'" in str(report.values)


def test_a_mistake_where_a_tensor_is_repeated_is_left_out() -> None:
    report = sg.verify(BetweenWrong)
    (said,) = [one.text for one in report.inputs["b"].conditions if one.kind == "shapes"]
    assert said.endswith("(the gradient of b is wrong for a[n, m], b[m], minus = False)")


class Sevenfold(Function):
    """So many combinations are not all judged."""

    @staticmethod
    def forward(
        ctx, x, a: bool, b: bool, c: bool, d: bool, e: bool, f: bool, h: bool
    ):  # fmt: skip
        ctx.how = a, b, c, d, e, f, h
        return x * 2 ** sum(1 for one in ctx.how if one)

    @staticmethod
    def backward(ctx, g):
        wrong = 3 if sum(1 for one in ctx.how if one) < 2 else 1
        return g * wrong * 2 ** sum(1 for one in ctx.how if one), *[None] * 7


def test_what_was_not_judged_together_is_left_out() -> None:
    report = sg.verify(Sevenfold)
    said = [one.text for one in report.conditions if one.kind == "together"]
    assert str(report.verdict) == "PROVED", str(report)
    assert any(one.startswith("at most 2 of a and b and c") for one in said), str(report)


def _values(judged: Judged, place: str, *every: tuple[str, bool]) -> None:
    for reduction, flag in every:
        judged.add(place, {"reduction": reduction, "flag": flag})


def test_conditions_say_what_was_judged() -> None:
    first = {"reduction": "mean", "flag": True}
    judged = Judged(("reduction", "flag"), "x[n]", first, ())
    assert not judged.conditions
    _values(judged, "x[n]", ("sum", True), ("none", True), ("mean", False))
    _values(judged, "x[n, m]", ("mean", True), ("sum", True), ("none", True), ("mean", False))
    _values(judged, "x[n, m]", ("sum", False))
    _values(judged, "x[]", ("mean", True))
    assert [one.text for one in judged.conditions] == [
        "it is not reduction = 'sum', flag = False or reduction = 'none', flag = False"
        " (other values were not judged together)",
        "it is not reduction = 'none', flag = False for x[n, m]"
        " (other values were not judged there)",
        "reduction = 'mean', flag = True for x[] (other values were not judged there)",
    ]
    refused = {("x[n]", ("'sum'", "False")), ("x[n]", ("'none'", "False"))}
    judged = Judged(("reduction", "flag"), "x[n]", first, refused)
    _values(judged, "x[n]", ("sum", True), ("none", True), ("mean", False))
    assert not judged.conditions


class Clamped(Function):
    @staticmethod
    def forward(ctx, x, offload, limit):
        ctx.save_for_backward(x)
        ctx.limit = limit
        if offload:
            x = x.clone()
        return x * x.clamp(max=limit) if limit is not None and limit > 0 else x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        limit = ctx.limit
        if limit is not None and limit > 0:
            return g * (x.clamp(max=limit) + x * (x <= limit)), None, None
        return 2 * g * x, None, None


def test_what_holds_at_a_value_is_said_once_for_all_shapes() -> None:
    report = sg.verify(Clamped)
    assert report.ok
    (kink,) = (one for one in report.conditions if "== 2" in one.text)
    assert kink.text.endswith("(for limit = 2)")


def test_a_flag_is_no_tensor_of_one_integer() -> None:
    assert "i64" not in sg.verify(Clamped, suggest=False).inferred
