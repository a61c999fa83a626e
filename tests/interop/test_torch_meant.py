"""What arguments are meant to be where the first guess does not fit; the error where none does."""

from __future__ import annotations

import functools
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import ControlFlowError, ProtocolError  # noqa: E402

pytestmark = pytest.mark.peers
FUNCTION: Any = torch.autograd.Function


class Sums(FUNCTION):
    """``flip`` takes several axes, and ``cumsum`` one."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any, dim: Any) -> Any:
        ctx.dim = dim
        return x.cumsum(dim)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return cls.scale * g.flip(ctx.dim).cumsum(ctx.dim).flip(ctx.dim), None


def test_what_is_flipped_along_may_be_one_axis() -> None:
    report = sg.verify(Sums)
    assert report == sg.PROVED, str(report)
    assert dict(report.values)["dim"] == "-2 or -1 or 0 or 1"
    assert sg.verify(type("Twice", (Sums,), {"scale": 2})) == sg.REFUTED


@functools.cache
def ramp(size: int, dtype: Any) -> Any:
    return torch.arange(size, dtype=dtype)


class Ramped(FUNCTION):
    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * ramp(x.shape[-1], x.dtype)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return cls.scale * g * ramp(g.shape[-1], g.dtype)


def test_a_dtype_may_be_a_part_of_a_key() -> None:
    report = sg.verify(Ramped)
    assert report == sg.PROVED, str(report)
    assert sg.verify(type("Twice", (Ramped,), {"scale": 2})) == sg.REFUTED


class Dirty(FUNCTION):
    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x.clone(), w)
        x.mul_(w)
        ctx.mark_dirty(w)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        return g * w, g * x


def test_a_breach_of_the_protocol_is_the_error_where_all_shapes_end_in_it() -> None:
    with pytest.raises(ProtocolError, match="mark_dirty"):
        sg.verify(Dirty)


class Branching(FUNCTION):
    """A branch by value, with results of other shapes."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        ctx.first = bool(x.sum() > 0)
        return (x * y).sum(0) if ctx.first else (x * x * y).sum(1)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        if ctx.first:
            return g * y, g * x
        g = g.unsqueeze(1)
        return 2 * g * x * y, g * x * x


def test_a_mask_does_not_stand_for_a_tensor_that_is_branched_on() -> None:
    with pytest.raises(ControlFlowError, match="results of other shapes"):
        sg.verify(Branching)
