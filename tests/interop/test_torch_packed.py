"""How many elements a mask selects, and other whole numbers of few values, known to Python."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import SymgradError  # noqa: E402

pytestmark = pytest.mark.peers

Function: Any = torch.autograd.Function


class Sorted(Function):
    """The sum of what a mask selects, weighted by the order."""

    right = True

    @staticmethod
    def forward(ctx: Any, x: Any, m: torch.BoolTensor) -> Any:  # type: ignore[name-defined]
        y, order = x[m].sort()
        ctx.save_for_backward(m, order)
        return (torch.arange(len(y), dtype=x.dtype) * y).sum()

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        m, order = ctx.saved_tensors
        weights = torch.arange(order.numel(), dtype=g.dtype)
        inner = weights
        if cls.right:
            inner = torch.zeros_like(weights)
            inner[order] = weights
        out = torch.zeros(m.shape, dtype=g.dtype)
        out[m] = inner * g
        return out, None


class ByNumber(Function):
    """The sum times how many there are, wrong for two."""

    right = True

    @staticmethod
    def forward(ctx: Any, x: Any, m: torch.BoolTensor) -> Any:  # type: ignore[name-defined]
        y = x[m]
        ctx.number = len(y)
        ctx.save_for_backward(m)
        return y.sum() * ctx.number

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (m,) = ctx.saved_tensors
        out = torch.zeros(m.shape, dtype=g.dtype)
        out[m] = g * (ctx.number if cls.right or ctx.number != 2 else 3)
        return out, None


class Last(Function):
    """The last positive element; torch raises where there is none."""

    right = True

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.place, ctx.shape = torch.nonzero(x > 0)[-1, 0], x.shape
        return x[ctx.place] * 2

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        out = torch.zeros(ctx.shape, dtype=g.dtype)
        out[ctx.place] = (2 if cls.right else 3) * g
        return out


class Greatest(Function):
    """The sum of so many greatest elements as are positive."""

    right = True

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        values, places = x.topk(int((x > 0).sum()))
        ctx.save_for_backward(places)
        ctx.shape = x.shape
        return values.sum()

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (places,) = ctx.saved_tensors
        out = torch.zeros(ctx.shape, dtype=g.dtype)
        out[places if cls.right else places[1:]] = g
        return out


class UpTo(Function):
    """The sum up to the greatest element."""

    right = True

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.end, ctx.shape = x.argmax().item() + 1, x.shape
        return x[: ctx.end].sum()

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        out = torch.zeros(ctx.shape, dtype=g.dtype)
        out[: ctx.end if cls.right else ctx.end - 1] = g
        return out


CASES = [
    (Sorted, ("3", "bool[3]")), (ByNumber, ("3", "bool[3]")), (Last, ("3",)), (Greatest, ("3",)),
    (UpTo, ("3",)),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "shapes"), CASES)
def test_there_is_a_way_for_each_number(cls: Any, shapes: tuple[str, ...]) -> None:
    report = sg.verify(cls, *shapes, suggest=False)
    assert report.verdict is sg.PROVED, str(report)


@pytest.mark.parametrize(("cls", "shapes"), CASES)
def test_what_is_wrong_on_one_way_is_refuted(cls: Any, shapes: tuple[str, ...]) -> None:
    wrong = type("Wrong", (cls,), {"right": False})
    report = sg.verify(wrong, *shapes, suggest=False)
    assert report.verdict is sg.REFUTED, str(report)
    assert "confirmed in torch" in str(report)


def test_where_torch_raises_is_a_condition() -> None:
    report = sg.verify(Last, suggest=False)
    assert report.verdict is sg.PROVED
    assert "(x > 0).to(torch.int64).sum() != 0 (demanded" in str(report)
    assert "Python needs a number" in str(report)


class Written(Function):
    """What is written through a view of what is selected stays."""

    weight = 3

    @staticmethod
    def forward(ctx: Any, x: Any, m: torch.BoolTensor) -> Any:  # type: ignore[name-defined]
        y = x[m]
        first = y[:1]
        first *= 3
        ctx.save_for_backward(m, y)
        return y.sum()

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        m, y = ctx.saved_tensors
        w = torch.ones_like(y)
        w[:1] = cls.weight
        out = torch.zeros(m.shape, dtype=g.dtype)
        out[m] = w * g
        return out, None


def test_views_of_what_a_mask_selects_share_its_memory() -> None:
    right = sg.verify(Written, "2", "bool[2]", suggest=False)
    assert right.verdict is not sg.REFUTED, str(right)
    wrong = type("Wrong", (Written,), {"weight": 1})
    report = sg.verify(wrong, "2", "bool[2]", suggest=False)
    assert report.verdict is sg.REFUTED
    assert "confirmed in torch" in str(report)


class Products(Function):
    """Those of all pairs of rows that a mask selects."""

    factor = 2

    @staticmethod
    def forward(ctx: Any, x: Any, m: torch.BoolTensor) -> Any:  # type: ignore[name-defined]
        y = x[m]
        ctx.save_for_backward(m, y)
        return (y @ y.t()).sum() + (y[:, None] - y[None]).sum()

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        m, y = ctx.saved_tensors
        out = torch.zeros(m.shape[0], y.shape[1], dtype=g.dtype)
        out[m] = cls.factor * g * y.sum(0)
        return out, None


def test_rows_meet_each_other() -> None:
    right = sg.verify(Products, "2 n", "bool[2]", suggest=False)
    assert right.verdict is not sg.REFUTED, str(right)
    wrong = type("Wrong", (Products,), {"factor": 1})
    report = sg.verify(wrong, "2 n", "bool[2]", suggest=False)
    assert report.verdict is sg.REFUTED
    assert "confirmed in torch" in str(report)


def test_a_symbolic_size_has_too_many_values() -> None:
    with pytest.raises(SymgradError, match="number of elements that a mask selects"):
        sg.verify(Sorted, "n", "bool[n]")
