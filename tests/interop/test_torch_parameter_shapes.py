"""Functions whose parameters torch wants in one shape, beside a shape that is a plain tuple."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function
F = torch.nn.functional


class LayerNorm(Function):
    """Right for every normalized_shape."""

    @staticmethod
    def forward(ctx: Any, x: Any, normalized_shape: Any, weight: Any, bias: Any) -> Any:
        ctx.save_for_backward(x, weight)
        ctx.axes = tuple(range(-len(normalized_shape), 0))
        return F.layer_norm(x, normalized_shape, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, weight = ctx.saved_tensors
        rows = tuple(range(x.dim() - len(ctx.axes)))
        centred = x - x.mean(ctx.axes, keepdim=True)
        scale = torch.rsqrt((centred * centred).mean(ctx.axes, keepdim=True) + 1e-5)
        normal, by_normal = centred * scale, grad * weight
        inner = (by_normal * normal).mean(ctx.axes, keepdim=True)
        by_x = (by_normal - by_normal.mean(ctx.axes, keepdim=True) - normal * inner) * scale
        return by_x, None, (grad * normal).sum(rows), grad.sum(rows)


class ByPosition(LayerNorm):
    """What is given to a norm by position is a shape, whatever it is called."""

    @staticmethod
    def forward(ctx: Any, x: Any, own: Any, weight: Any, bias: Any) -> Any:
        ctx.save_for_backward(x, weight)
        ctx.axes = tuple(range(-len(own), 0))
        return torch.nn.functional.layer_norm(x, own, weight, bias)


class WithoutMean(LayerNorm):
    """Wrong: the mean depends on x, too."""

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, weight = ctx.saved_tensors
        rows = tuple(range(x.dim() - len(ctx.axes)))
        centred = x - x.mean(ctx.axes, keepdim=True)
        scale = torch.rsqrt((centred * centred).mean(ctx.axes, keepdim=True) + 1e-5)
        normal, by_normal = centred * scale, grad * weight
        inner = (by_normal * normal).mean(ctx.axes, keepdim=True)
        return (by_normal - normal * inner) * scale, None, (grad * normal).sum(rows), grad.sum(rows)


def test_the_shape_of_a_norm_is_that_of_its_weight() -> None:
    report = sg.verify(LayerNorm)
    assert report.verdict == sg.PROVED, report
    assert "normalized_shape = (2,), weight[2], bias[2]" in str(report)


def test_a_shape_is_known_by_its_place() -> None:
    report = sg.verify(ByPosition)
    assert report.verdict == sg.PROVED, report
    assert "own = (2,), weight[2], bias[2]" in str(report)


def test_a_wrong_norm_of_a_given_shape_is_refuted() -> None:
    report = sg.verify(WithoutMean)
    assert report.inputs["x"].verdict == sg.REFUTED
    assert "confirmed in torch" in str(report)
    assert report.inputs["weight"].verdict == report.inputs["bias"].verdict == sg.PROVED


class SqueezedBias(Function):
    """``squeeze`` drops the only axis of the gradient where there is one output."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        ctx.save_for_backward(x, weight, bias)
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, weight, bias = ctx.saved_tensors
        return g.mm(weight), g.t().mm(x), None if bias is None else g.sum(0).squeeze(0)


def test_a_bias_of_linear_has_one_axis() -> None:
    """Neither two axes nor none, for which backward would be right."""
    report = sg.verify(SqueezedBias, suggest=False)
    assert "weight[k, m], bias[k]" in report.guessed
    assert report.inputs["bias"].verdict == "REFUTED"
    assert "REFUTED if k == 1" in str(report)
    assert report.inputs["weight"].verdict == "PROVED"
