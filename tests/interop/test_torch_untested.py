"""Shapes that forward takes and that are not those inferred: judged, or a condition says so."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers

FUNCTION: Any = torch.autograd.Function


def judged(cls: Any) -> sg.Report:
    return sg.verify(cls, suggest=False, timeout=None)


def shapes(report: sg.Report) -> set[str]:
    """The conditions on shapes, without those that the verdict is for."""
    return {
        one.text.split(" (", 1)[1][:-1] for one in report.conditions if one.kind == "shapes"
    }  # fmt: skip


# -- tensors with more axes


class RowSquares(FUNCTION):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x.sum(-1, keepdim=True)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x.sum(-1, keepdim=True) + (g * x).sum(-1).unsqueeze(-1)


class RowsOfTwoAxes(RowSquares):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x.sum(-1, keepdim=True) + (g * x).sum(-1).unsqueeze(1)


class Scores(FUNCTION):
    @staticmethod
    def forward(ctx: Any, q: Any, k: Any) -> Any:
        ctx.save_for_backward(q, k)
        return q @ k.transpose(-2, -1)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        q, k = ctx.saved_tensors
        return g @ k, g.transpose(-2, -1) @ q


class ScoresOfTwoAxes(Scores):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        q, k = ctx.saved_tensors
        return g @ k, g.transpose(0, 1) @ q


class Mirrored(FUNCTION):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x + 3 * x.transpose(-1, -2)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g + 3 * g.transpose(-1, -2)


class MirroredMatrix(Mirrored):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g + 3 * g.transpose(0, 1)


MORE_AXES = (
    (RowSquares, RowsOfTwoAxes, {"backward fails for x[n, m, k]",
                                 "the gradient of x is wrong for x[n, m, m]"}),
    (Scores, ScoresOfTwoAxes, {"backward fails for q[n, m, k], k[l, k]",
                               "the gradient of k is wrong for q[n, n, m], k[n, m]"}),
    (Mirrored, MirroredMatrix, {"backward fails for x[n, m, m]",
                                "the gradient of x is wrong for x[n, n, n]"}),
)  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "said"), MORE_AXES)
def test_more_axes_for_which_backward_fails_are_a_condition(
    right: Any, wrong: Any, said: set[str]
) -> None:
    report = judged(right)
    assert (str(report.verdict), shapes(report)) == ("PROVED", set())
    report = judged(wrong)
    assert str(report.verdict) == "PROVED"
    assert said <= shapes(report)
