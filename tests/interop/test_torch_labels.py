"""Losses of classes whose shapes nobody stated: rows of scores, and a label for each."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers
functional: Any = torch.nn.functional
FUNCTION: Any = torch.autograd.Function


class CrossEntropy(FUNCTION):
    """The mean over rows, or another reduction."""

    reduction = "mean"
    divided = True

    @classmethod
    def forward(cls, ctx: Any, logits: Any, target: Any) -> Any:
        ctx.save_for_backward(logits, target)
        return functional.cross_entropy(logits, target, reduction=cls.reduction)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        logits, target = ctx.saved_tensors
        p = torch.softmax(logits, 1)
        p[torch.arange(target.shape[0]), target] -= 1
        if cls.reduction == "none":
            return g[:, None] * p, None
        return g * p / (target.shape[0] if cls.reduction == "mean" and cls.divided else 1), None


@pytest.mark.parametrize("reduction", ["mean", "none", "sum"])
def test_labels_are_integers_of_one_axis(reduction: str) -> None:
    report = sg.verify(type("Loss", (CrossEntropy,), {"reduction": reduction}))
    assert str(report.verdict) == "PROVED"
    assert "logits[n, m], i64 target[n]" in report.inferred


def test_a_mean_over_rows_is_divided_by_their_number() -> None:
    """For one row, which is all that was judged, nothing is missing."""
    report = sg.verify(type("Wrong", (CrossEntropy,), {"divided": False}))
    assert str(report.verdict) == "REFUTED"
    assert "confirmed in torch" in str(report)


class NllMissing(FUNCTION):
    @staticmethod
    def forward(ctx: Any, x: Any, t: Any) -> Any:
        ctx.save_for_backward(x, t)
        return functional.nll_loss(x, t)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, t = ctx.saved_tensors
        return -g * functional.one_hot(t, x.shape[-1]), None


def test_scores_of_several_rows_are_judged() -> None:
    assert str(sg.verify(NllMissing).verdict) != "PROVED"
