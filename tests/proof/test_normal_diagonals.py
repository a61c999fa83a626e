"""Divisions by what is 0 for equal indices, and is masked there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import symgrad as sg

Backward = Callable[[Any, Any, Any, Any], Any]


def _verdict(backward: Backward, added: bool) -> str:
    class Pairs(sg.Function):
        @staticmethod
        def forward(ctx: Any, p: Any) -> Any:
            d = p[:, None, :] - p[None, :, :]
            same = sg.eye(p.shape[0])
            r2 = (d**2).sum(-1)
            safe = r2 + same if added else sg.where(same > 0, 1.0, r2)
            inverse = (1 - same) / safe if added else sg.where(same > 0, 0.0, 1 / safe)
            ctx.save_for_backward(d, inverse, same)
            return inverse.sum()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            d, inverse, same = ctx.saved_tensors
            return grad * backward(d, inverse, same, ctx)

    return str(sg.verify(Pairs, "n m", suggest=False, timeout=None).verdict)


def _right(d: Any, inverse: Any, same: Any, ctx: Any) -> Any:
    return (-4 * (inverse**2)[:, :, None] * d).sum(1)


WRONG: dict[str, Backward] = {
    "half": lambda d, inverse, same, ctx: (-2 * (inverse**2)[:, :, None] * d).sum(1),
    "power": lambda d, inverse, same, ctx: (-4 * inverse[:, :, None] * d).sum(1),
    "sign": lambda d, inverse, same, ctx: (-4 * (inverse**2)[:, :, None] * d).sum(0),
    "diagonal": lambda d, inverse, same, ctx: _right(d, inverse, same, ctx) + same.sum(1)[:, None],
    "apart": lambda d, inverse, same, ctx: (
        _right(d, inverse, same, ctx) + (inverse * (d**2).sum(-1)).sum(1)[:, None]
    ),
    "diagonal of a quotient": lambda d, inverse, same, ctx: (
        _right(d, inverse, same, ctx) + (inverse * (d**2).sum(-1) - 1).sum(1)[:, None]
    ),
}


@pytest.mark.parametrize("added", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_what_is_masked_on_the_diagonal_is_not_inverted_there(added: bool) -> None:
    """[rule: apart]."""
    assert _verdict(_right, added) == "PROVED"


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_gradients_beside_a_masked_diagonal_are_refuted(wrong: str) -> None:
    """[rule: apart]."""
    assert _verdict(WRONG[wrong], False) == "REFUTED"
