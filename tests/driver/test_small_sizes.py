"""Programs that need the number of a size: some numbers are judged, and the report says which."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg
from symgrad.errors import ControlFlowError, NotProvedError


class Pieces(sg.Function):
    """exp, piece by piece."""

    @staticmethod
    def forward(ctx: Any, x: Any, piece: int) -> Any:
        y = sg.zeros_like(x)
        for start in range(0, x.shape[0], piece):
            y[start : start + piece] = x[start : start + piece].exp()
        ctx.save_for_backward(y)
        ctx.piece = piece
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        out = sg.zeros_like(g)
        for start in range(0, g.shape[0], ctx.piece):
            out[start : start + ctx.piece] = (
                g[start : start + ctx.piece] * y[start : start + ctx.piece]
            )
        return out, None


class LastLost(Pieces):
    """A piece that is shorter than the others is left out."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        out = sg.zeros_like(g)
        for start in range(0, g.shape[0] - ctx.piece + 1, ctx.piece):
            out[start : start + ctx.piece] = (
                g[start : start + ctx.piece] * y[start : start + ctx.piece]
            )
        return out, None


class Split(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, piece: int) -> Any:
        ctx.save_for_backward(x)
        return sum((one * one).sum(0) for one in x.split(piece))

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * g * x, None


@pytest.mark.slow
@pytest.mark.parametrize("function", [Pieces, Split])
def test_sizes_of_one_piece_and_of_more_are_judged(function: Any) -> None:
    report = sg.verify(function, "n m", static={"piece": 2})
    assert report.ok, str(report)
    assert report.domain == (
        "for all m >= 1, over the reals; for n = 1, 2, 3, 5 only, each judged separately"
    )
    assert "n is one of 1, 2, 3, 5" in {str(one) for one in report.inputs["x"].conditions}
    assert any(note.startswith("not for every n: ") for note in report.notes)
    with pytest.raises((ControlFlowError, NotProvedError, sg.SymgradError)):
        sg.compile(function, "n m", static={"piece": 2})


@pytest.mark.slow
def test_a_mistake_in_the_last_piece_is_refuted() -> None:
    report = sg.verify(LastLost, "n m", static={"piece": 2})
    assert str(report.verdict) == "REFUTED"
    assert report.inputs["x"].reason.startswith("for n = 1"), str(report)
