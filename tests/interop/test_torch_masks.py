"""Branches on whether a mask selects anything."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.autograd import Function  # noqa: E402

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers

ASKED = (
    "m.any()", "m.sum() > 0", "m.sum().item() > 0", "m.sum() != 0", "m.sum() >= 1", "0 < m.sum()",
    "m.float().sum() > 0", "m.nonzero().numel() > 0", "m.nonzero().shape[0] != 0",
    "m.long().sum().item()", "not (~m).all()", "not (m.sum() == 0)", "m.any().item()",
)  # fmt: skip
"""Ways to ask whether a mask selects anything."""
OTHER = ("m.sum() > 1", "x.sum() > 0", "(x > m).sum() > 0 and x.max() > 0", "m[0]")
"""Questions about values."""


def leaky(condition: str, otherwise: str = "pass", slope: float = 0.1) -> Any:
    """Forward and backward scale where x is negative, if the condition holds."""
    names: dict[str, Any] = {"torch": torch}
    body = f"""
def forward(ctx, x):
    m = x < 0
    ctx.save_for_backward(x, m)
    y = x.clone()
    if {condition}:
        y[m] = 0.1 * x[m]
    else:
        {otherwise}
    return y


def backward(ctx, g):
    x, m = ctx.saved_tensors
    g = g.clone()
    if m.any():
        g[m] *= {slope}
    return g
"""
    exec(compile(body, __file__, "exec"), names)
    members = {name: staticmethod(names[name]) for name in ("forward", "backward")}
    return type("Leaky", (torch.autograd.Function,), members)


@pytest.mark.parametrize("condition", ASKED)
def test_a_mask_that_selects_nothing_changes_nothing(condition: str) -> None:
    assert sg.verify(leaky(condition), "n", suggest=False).verdict is sg.PROVED
    wrong = leaky(condition, slope=0.2)
    assert sg.verify(wrong, "n", suggest=False).verdict is sg.REFUTED


@pytest.mark.parametrize("otherwise", ["y = 2 * y", "y = y + m"])
def test_what_does_something_else_where_a_mask_selects_nothing(otherwise: str) -> None:
    verdict = sg.REFUTED if "2" in otherwise else sg.PROVED
    report = sg.verify(leaky("m.any()", otherwise), "n", suggest=False)
    assert report.verdict is verdict, str(report)


@pytest.mark.parametrize("condition", ["m.all()", *OTHER])
def test_other_questions_about_values_are_judged(condition: str) -> None:
    report = sg.verify(leaky(condition), "n", suggest=False)
    assert report.verdict is sg.REFUTED, str(report)


class Pieces(Function):
    """Three masks, of which each may select nothing."""

    factor = 2.0

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        low, high = x < -1, x > 1
        middle = ~(low | high)
        y = torch.zeros_like(x)
        if low.any():
            y.masked_scatter_(low, x.masked_select(low).mul(2))
        if middle.sum() > 0:
            y[middle] = x[middle] ** 2
        if high.any():
            y[high] = x[high].exp()
        ctx.save_for_backward(x)
        return y

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        low, high = x < -1, x > 1
        middle = ~(low | high)
        out = torch.zeros_like(x)
        out[low] = cls.factor * g[low]
        out[middle] = 2 * x[middle] * g[middle]
        out[high] = x[high].exp() * g[high]
        return out


class WrongPieces(Pieces):
    factor = 3.0


def test_several_masks() -> None:
    assert sg.verify(Pieces, "n m", suggest=False).verdict is sg.PROVED
    assert sg.verify(WrongPieces, "n m", suggest=False).verdict is sg.REFUTED


def asserting(condition: str) -> Any:
    names: dict[str, Any] = {"torch": torch}
    body = f"def forward(ctx, x):\n    assert {condition}\n    return 2 * x\n"
    exec(compile(body, __file__, "exec"), names)
    backward = staticmethod(lambda ctx, g: 2 * g)
    members = {"forward": staticmethod(names["forward"]), "backward": backward}
    return type("Asserting", (torch.autograd.Function,), members)


def test_reals_are_finite() -> None:
    finite = "not torch.isnan(x).any()", "torch.isfinite(x).all()", "not x.isinf().any()"
    for condition in finite:
        assert sg.verify(asserting(condition), "n", suggest=False).verdict is sg.PROVED
    report = sg.verify(asserting("(x > 0).all()"), "n", suggest=False)
    assert report.verdict is sg.PROVED
    assert [str(one) for one in report.conditions] == ["x > 0 (demanded in line 2)"]
    report = sg.verify(asserting("not (x == 1).any()"), "n", suggest=False)
    assert report.verdict is sg.PROVED
    assert [str(one) for one in report.conditions] == ["x != 1 (demanded in line 2)"]
