"""Functions that return what a mask selects: the cotangent is as long as the output."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import SymgradError  # noqa: E402

pytestmark = pytest.mark.peers

Function: Any = torch.autograd.Function


class Selected(Function):
    factor = 2

    @staticmethod
    def forward(ctx: Any, x: Any, m: torch.BoolTensor) -> Any:  # type: ignore[name-defined]
        ctx.save_for_backward(m)
        return x[m] * 2

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (m,) = ctx.saved_tensors
        out = torch.zeros(m.shape, dtype=g.dtype)
        out[m] = cls.factor * g
        return out, None


class Masked(Selected):
    @staticmethod
    def forward(ctx: Any, x: Any, m: torch.BoolTensor) -> Any:  # type: ignore[name-defined]
        ctx.save_for_backward(m)
        return 2 * torch.masked_select(x, m)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (m,) = ctx.saved_tensors
        return torch.zeros(m.shape, dtype=g.dtype).masked_scatter_(m, cls.factor * g), None


class Places(Selected):
    @staticmethod
    def forward(ctx: Any, x: Any, m: torch.BoolTensor) -> Any:  # type: ignore[name-defined]
        ctx.places = torch.where(m)
        ctx.shape = x.shape
        return 2 * x[ctx.places]

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        out = g.new_zeros(ctx.shape)
        out[ctx.places] += cls.factor * g
        return out, None


class OfValues(Selected):
    """By a mask of values, whose output backward gets again."""

    factor = 1

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:  # type: ignore[override]
        y = x[x > 0].exp()
        ctx.save_for_backward(x, y)
        return y

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        out = torch.zeros_like(x)
        out[x > 0] = cls.factor * y * g
        return out


class Softmax(Selected):
    """Every element that is selected depends on all of them."""

    factor = 1

    @staticmethod
    def forward(ctx: Any, x: Any, m: torch.BoolTensor) -> Any:  # type: ignore[name-defined]
        e = x[m].exp()
        y = e / e.sum()
        ctx.save_for_backward(m, y)
        return y

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        m, y = ctx.saved_tensors
        out = torch.zeros(m.shape, dtype=g.dtype)
        out[m] = y * (g - cls.factor * (g * y).sum())
        return out, None


class Columns(Selected):
    """Columns beside another output, which may be unused."""

    @staticmethod
    def forward(ctx: Any, x: Any, m: torch.BoolTensor) -> Any:  # type: ignore[name-defined]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(m)
        ctx.shape = x.shape
        return 2 * x[:, m], x.sum()

    @classmethod
    def backward(cls, ctx: Any, g: Any, total: Any) -> Any:  # type: ignore[override]
        (m,) = ctx.saved_tensors
        out = torch.zeros(ctx.shape)
        if g is not None:
            out[:, m] = cls.factor * g
        if total is not None:
            out = out + total
        return out, None


CASES = [
    (Selected, ("n", "bool[n]")), (Selected, ("n m", "bool[n m]")), (Masked, ("n m", "bool[n m]")),
    (Places, ("n m", "bool[n m]")), (Places, ("n m", "bool[n]")), (OfValues, ("n m",)),
    (Softmax, ("n", "bool[n]")), (Columns, ("n m", "bool[m]")),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "shapes"), CASES)
def test_what_forward_selects_is_judged(cls: Any, shapes: tuple[str, ...]) -> None:
    report = sg.verify(cls, *shapes, suggest=False)
    assert report.verdict is sg.PROVED, str(report)


@pytest.mark.parametrize(("cls", "shapes"), CASES)
def test_a_wrong_gradient_of_it_is_confirmed_in_torch(cls: Any, shapes: tuple[str, ...]) -> None:
    wrong = type("Wrong", (cls,), {"factor": 3})
    report = sg.verify(wrong, *shapes, suggest=False)
    assert report.verdict is sg.REFUTED, str(report)
    assert "confirmed in torch" in str(report)
    assert "not confirmed" not in str(report)


def test_no_shapes_need_be_stated() -> None:
    assert sg.verify(Selected, suggest=False).verdict is sg.PROVED


def test_the_cotangent_is_left_alone() -> None:
    class InPlace(OfValues):
        @classmethod
        def backward(cls, ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            out = torch.zeros_like(x)
            out[x > 0] = g.mul_(y)
            return out

    report = sg.verify(InPlace, "n", suggest=False)
    assert report.verdict is sg.REFUTED
    assert "g is written in place" in str(report)


def test_the_length_of_the_cotangent_is_that_of_the_output() -> None:
    class Counted(Selected):
        @classmethod
        def backward(cls, ctx: Any, g: Any) -> Any:
            (m,) = ctx.saved_tensors
            out = torch.zeros(m.shape, dtype=g.dtype)
            out[m] = 2 * g * g.numel() / g.shape[0]
            return out, None

    class Meant(Selected):
        @classmethod
        def backward(cls, ctx: Any, g: Any) -> Any:
            (m,) = ctx.saved_tensors
            out = torch.zeros(m.shape, dtype=g.dtype)
            out[m] = 2 * g.mean()
            return out, None

    assert sg.verify(Counted, "n", "bool[n]", suggest=False).verdict is sg.PROVED
    report = sg.verify(Meant, "n", "bool[n]", suggest=False)
    assert report.verdict is sg.REFUTED
    assert "confirmed in torch" in str(report)


def test_kernels_do_not_return_it() -> None:
    with pytest.raises(SymgradError, match="returns as many elements as a mask selects"):
        sg.compile(Selected, "n", "bool[n]")
