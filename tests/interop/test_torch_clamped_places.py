"""Indices that forward clamps, or takes the remainder of: it takes those outside as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function

INSIDE: dict[str, Callable[[Any, int], Any]] = {
    "clamp": lambda index, n: index.clamp(0, n - 1),
    "minimum": lambda index, n: torch.minimum(index.relu(), torch.tensor(n - 1)),
    "remainder": lambda index, n: index % n,
    "at most": lambda index, n: index.clamp(max=n - 1),
}
READ: dict[str, Callable[[Any, Any], Any]] = {
    "index_select": lambda w, place: w.index_select(0, place),
    "one_hot": lambda w, place: torch.nn.functional.one_hot(place, w.shape[0]).to(w.dtype) @ w,
}


def rows(inside: Callable[[Any, int], Any], read: Callable[[Any, Any], Any], kept: bool) -> Any:
    """Reads rows; ``kept``: backward adds to the rows that forward read, and not to others."""

    class Rows(Function):
        @staticmethod
        def forward(ctx: Any, w: Any, index: Any) -> Any:
            place = inside(index, w.shape[0])
            ctx.save_for_backward(place if kept else index)
            ctx.n = w.shape[0]
            return read(w, place)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (place,) = ctx.saved_tensors
            return (place == torch.arange(ctx.n)[:, None]).to(g.dtype) @ g, None

    return Rows


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("inside", INSIDE)
def test_an_index_outside_is_judged_where_forward_takes_it(inside: str, read: str) -> None:
    wrong = sg.verify(rows(INSIDE[inside], READ[read], False), "n m", "i64[k]", suggest=False)
    assert wrong.verdict is sg.REFUTED, str(wrong)
    assert "confirmed in torch" in str(wrong)
    right = sg.verify(rows(INSIDE[inside], READ[read], True), "n m", "i64[k]", suggest=False)
    assert right.verdict is sg.PROVED, str(right)
    printed = [one.text for one in right.inputs["w"].conditions]
    assert all(inside == "at most" and "< n" not in text for text in printed), printed


class Collision(Function):
    """Two indices outside are one row; backward keeps the last."""

    @staticmethod
    def forward(ctx: Any, w: Any, index: Any) -> Any:
        place = index.clamp(0, w.shape[0] - 1)
        ctx.save_for_backward(place)
        ctx.n = w.shape[0]
        return w[place]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (place,) = ctx.saved_tensors
        return g.new_zeros(ctx.n, g.shape[1]).index_copy(0, place, g), None


def test_rows_that_meet_by_a_clamp_add_up() -> None:
    assert sg.verify(Collision, "n m", "i64[k]", suggest=False).verdict is sg.REFUTED


class Compared(Function):
    """Labels that forward compares with all places, as they are: none is meant to lie outside."""

    @staticmethod
    def forward(ctx: Any, x: Any, label: Any) -> Any:
        hot = (label[:, None] == torch.arange(x.shape[1])).to(x.dtype)
        ctx.save_for_backward(x, hot)
        return -(x.log_softmax(1) * hot).sum()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, hot = ctx.saved_tensors
        return g * (x.softmax(1) - hot), None


def test_labels_that_are_compared_as_they_are_are_places() -> None:
    report = sg.verify(Compared, "n m", "i64[n]", suggest=False)
    assert report.verdict is sg.PROVED, str(report)
    assert "0 <= label < m" in str(report)
