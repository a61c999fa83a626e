"""Softmax of masked logits: masks by -inf, and by large negative numbers."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.proof.judge.fills import GREATEST_FILL  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function
INFINITY = float("inf")
ROW = "every row has an entry that is not masked: not mask[i, j]"


class Softmax(Function):
    """Backward reads the weights alone, as the backward of a softmax does."""

    fill = -INFINITY
    mean = staticmethod(lambda t: t.sum(-1, keepdim=True))

    @classmethod
    def forward(cls, ctx: Any, x: Any, mask: Any) -> Any:
        p = torch.softmax(x.masked_fill(mask, cls.fill), dim=-1)
        ctx.save_for_backward(p)
        return p

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (p,) = ctx.saved_tensors
        return p * (g - cls.mean(g * p)), None


def judged(fill: float, **changes: Any) -> Any:
    function = type("Masked", (Softmax,), {"fill": fill, **changes})
    return sg.verify(function, "n m", "bool[n m]", suggest=False)


def texts(report: Any) -> list[str]:
    return [one.text for one in report.inputs["x"].conditions]


@pytest.mark.parametrize("fill", [-1e4, -1e9, torch.finfo(torch.float32).min])
def test_a_large_negative_number_is_read_as_minus_infinity(fill: float) -> None:
    report = judged(fill)
    assert report.verdict == sg.PROVED, str(report)
    row, reading = report.inputs["x"].conditions
    assert (row.text, reading.kind) == (ROW, "reading")
    assert reading.text.startswith(f"{fill:g}, where it masks, is -inf")
    above = "above it" if fill < -1e30 else f"above {fill + 746:.12g}"
    assert reading.text.endswith(above)


def test_minus_infinity_needs_no_reading() -> None:
    assert texts(judged(-INFINITY)) == [ROW]


def test_numbers_that_may_be_logits_are_not_read() -> None:
    assert judged(GREATEST_FILL / 10).verdict == sg.REFUTED


@pytest.mark.parametrize("fill", [-INFINITY, -1e9])
def test_mistakes_stay_mistakes(fill: float) -> None:
    wrong = judged(fill, mean=staticmethod(lambda t: t.mean(-1, keepdim=True)))
    assert wrong.verdict == sg.REFUTED


class Scaled(Softmax):
    """What masks is scaled and moved by numbers before it is an exponent."""

    fill = -1e9
    scale, moved = 1.0, 0.0

    @classmethod
    def forward(cls, ctx: Any, x: Any, mask: Any) -> Any:
        p = (x.masked_fill(mask, cls.fill) * cls.scale + cls.moved).exp()
        ctx.save_for_backward(p)
        return p / cls.scale

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (p,) = ctx.saved_tensors
        return p * g, None


@pytest.mark.parametrize(
    ("numbers", "verdict"),
    [
        ({"scale": 0.125}, sg.PROVED), ({"scale": 1e-9}, sg.REFUTED),
        ({"fill": -1e4, "scale": 1e-3}, sg.REFUTED), ({"moved": 1e9}, sg.REFUTED),
        ({"fill": -1e4, "moved": 9999}, sg.REFUTED), ({"moved": -4.0}, sg.PROVED),
    ],
)  # fmt: skip
def test_what_masks_has_to_be_far_below_where_it_is_an_exponent(
    numbers: dict[str, float], verdict: Any
) -> None:
    judged = sg.verify(type("Judged", (Scaled,), numbers), "n", "bool[n]", suggest=False)
    assert judged.verdict == verdict, str(judged)


class Sum(Softmax):
    """What is masked is read by more than exponentials."""

    fill = -1e9

    @classmethod
    def forward(cls, ctx: Any, x: Any, mask: Any) -> Any:
        return x.masked_fill(mask, cls.fill).sum(-1)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return g[..., None].expand(*g.shape, 1), None


class Both(Function):
    """The logits are an output as well."""

    @staticmethod
    def forward(ctx: Any, x: Any, mask: Any) -> Any:
        z = x.masked_fill(mask, -1e9)
        p = torch.softmax(z, dim=-1)
        ctx.save_for_backward(p)
        return p, z

    @staticmethod
    def backward(ctx: Any, g: Any, gz: Any) -> Any:
        (p,) = ctx.saved_tensors
        return p * (g - (g * p).sum(-1, keepdim=True)) + gz, None


@pytest.mark.parametrize("function", [Sum, Both])
def test_what_else_reads_the_number_sees_it(function: Any) -> None:
    shapes = ("n 1", "bool[n 1]") if function is Sum else ("n m", "bool[n m]")
    assert sg.verify(function, *shapes, suggest=False).verdict == sg.REFUTED


class Greatest(Function):
    """A maximum over what is not masked; its place gets the gradient."""

    fill, place = -INFINITY, 0

    @classmethod
    def forward(cls, ctx: Any, x: Any, mask: Any) -> Any:
        y, i = x.masked_fill(mask, cls.fill).max(-1)
        ctx.save_for_backward(mask, i)
        return y

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        mask, i = ctx.saved_tensors
        g = torch.zeros(mask.shape, dtype=g.dtype).scatter(-1, i[..., None], g[..., None])
        return g.roll(cls.place, -1), None


def test_the_greatest_entry_is_not_masked() -> None:
    report = sg.verify(Greatest, "n m", "bool[n m]", suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert ROW in texts(report)
    wrong = type("Wrong", (Greatest,), {"place": 1})
    assert sg.verify(wrong, "n m", "bool[n m]", suggest=False).verdict == sg.REFUTED


def test_a_number_that_is_the_greatest_entry_is_an_output() -> None:
    """No exponential makes 0 of it, and forward is constant in a row that is masked throughout."""
    of_number = type("OfNumber", (Greatest,), {"fill": -1e9})
    assert sg.verify(of_number, "n m", "bool[n m]", suggest=False).verdict == sg.REFUTED


class Rows(Softmax):
    """Whole rows are masked."""

    @classmethod
    def forward(cls, ctx: Any, x: Any, mask: Any) -> Any:
        s = x.clone()
        s[mask] = -INFINITY
        e = torch.exp(s - s.max(-1, keepdim=True).values)
        p = e / e.sum(-1, keepdim=True)
        ctx.save_for_backward(p)
        return p


def test_nothing_is_claimed_of_rows_that_are_masked_throughout() -> None:
    report = sg.verify(Rows, "n m k", "bool[n m]", suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert texts(report) == [ROW]


class Filled(Softmax):
    """Backward masks again; the mask is that of the last axes alone."""

    @classmethod
    def forward(cls, ctx: Any, x: Any, mask: Any) -> Any:
        p = torch.softmax(torch.where(mask, x, torch.full_like(x, -1e9)), dim=-1)
        ctx.save_for_backward(p, mask)
        return p

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        p, mask = ctx.saved_tensors
        return torch.where(mask, p * (g - (g * p).sum(-1, keepdim=True)), 0), None


def test_a_sum_of_exponentials_is_no_condition() -> None:
    report = sg.verify(Filled, "n m k", "bool[m k]", suggest=False)
    assert report.verdict == sg.PROVED
    assert texts(report) == []


class Causal(Function):
    """Each row of ``x[a, b]`` sees one entry more than the row above; finite where a <= b."""

    mean = staticmethod(lambda t: t.sum(-1, keepdim=True))

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        a, b = x.shape
        seen = torch.arange(b)[None, :] <= torch.arange(b - a, b)[:, None]
        p = x.masked_fill(~seen[None], -INFINITY).softmax(-1)
        ctx.save_for_backward(p)
        return p

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (p,) = ctx.saved_tensors
        return p * (g - cls.mean(g * p))


def test_forward_may_be_finite_for_sizes_that_are_not_tried_first() -> None:
    report = sg.verify(Causal, "a b", suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    wrong = type("Wrong", (Causal,), {"mean": staticmethod(lambda t: t.mean(-1, keepdim=True))})
    assert sg.verify(wrong, "a b", suggest=False).verdict == sg.REFUTED
