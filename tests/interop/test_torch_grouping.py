"""Functions that reduce the entries which name one place, and that count them."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg

pytestmark = pytest.mark.peers


def function(forward: str, saved: str, backward: str) -> Any:
    """A class whose methods are these texts over ``src``, ``index`` and ``base``."""
    import torch

    text = f"""
class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, src, index, base):
        {forward}
        ctx.save_for_backward({saved})
        return out

    @staticmethod
    def backward(ctx, g):
        {saved}, = ctx.saved_tensors
        return {backward}
"""
    names: dict[str, Any] = {"torch": torch}
    exec(text, names)
    return names["Op"]


HITS = "torch.zeros_like(base).index_add(0, index, torch.ones_like(src))"
COUNT = "torch.bincount(index, minlength=base.shape[0])"
CASES = {
    "sum": (
        "out = base.scatter_reduce(0, index, src, 'sum', include_self=False)",
        "src, index, base", f"g[index], None, g * ({HITS} == 0)", "g[index], None, g",
    ),
    "mean": (
        "out = base.scatter_reduce(0, index, src, 'mean')",
        "src, index, base", f"(g / ({HITS} + 1))[index], None, g / ({HITS} + 1)",
        f"(g / {HITS})[index], None, g / ({HITS} + 1)",
    ),
    "prod": (
        "out = base.scatter_reduce(0, index, src, 'prod')",
        "src, index, base, out", "(g * out)[index] / src, None, g * out / base",
        "g[index] / src, None, g * out / base",
    ),
    "amin": (
        "out = base.scatter_reduce(0, index, src, 'amin', include_self=False)",
        "src, index, base, out", f"g[index] * (src == out[index]), None, g * ({HITS} == 0)",
        f"g[index], None, g * ({HITS} == 0)",
    ),
    "index_reduce": (
        "out = base.index_reduce(0, index, src, 'mean')",
        "src, index, base", f"(g / ({HITS} + 1))[index], None, g / ({HITS} + 1)",
        "g[index], None, g",
    ),
    "bincount": (
        f"out = base * {COUNT} + src.sum()",
        "src, index, base", f"g.sum().expand_as(src), None, g * {COUNT}",
        "g.sum().expand_as(src), None, g",
    ),
    "histc": (
        "n = base.shape[0]; out = base * torch.histc(index.float(), n, 0, n) + src.sum()",
        "src, index, base", f"g.sum().expand_as(src), None, g * {COUNT}",
        "g.sum().expand_as(src), None, g",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_right_backward_is_proved_and_a_wrong_one_refuted(name: str) -> None:
    forward, saved, right, wrong = CASES[name]
    shapes = "n; i64[n]; m"
    assert sg.verify(function(forward, saved, right), shapes, suggest=False).verdict == "PROVED"
    assert sg.verify(function(forward, saved, wrong), shapes, suggest=False).verdict == "REFUTED"


def test_what_bincount_makes_longer_is_printed() -> None:
    forward, saved, right, _ = CASES["bincount"]
    report = str(sg.verify(function(forward, saved, right), "n; i64[n]; m"))
    assert "bincount counts are less than its minlength" in report


def test_a_place_that_was_read_needs_no_such_condition() -> None:
    _, saved, _, _ = CASES["bincount"]
    forward = f"out = base[index].sum() + base * {COUNT} + src.sum()"
    right = f"g.sum().expand_as(src), None, g * {COUNT} + g.sum() * {COUNT}"
    report = sg.verify(function(forward, saved, right), "n; i64[n]; m")
    assert report.verdict == "PROVED"
    assert "minlength" not in str(report)


def test_what_info_says_of_factors_is_printed() -> None:
    import torch

    class LogDet(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            inverse, _ = torch.linalg.inv_ex(a)
            ctx.save_for_backward(inverse)
            return inverse.sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (inverse,) = ctx.saved_tensors
            return -g * inverse.sum(-2)[:, None] * inverse.sum(-1)[None, :]

    report = sg.verify(LogDet, "n n")
    assert report.verdict == "PROVED"
    assert "inv_ex takes are invertible" in str(report)
