"""Divisors that are infinite where a mask says so: quotients are 0 there."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function
INFINITY = float("inf")


class Masked(Function):
    """Inverse distances, of which some do not count."""

    factor, outside = 1.0, 0.0

    @classmethod
    def forward(cls, ctx: Any, x: Any, mask: Any) -> Any:
        ctx.save_for_backward(x, mask)
        return cls.inverse(x.masked_fill(mask, INFINITY))

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, mask = ctx.saved_tensors
        return cls.factor * torch.where(mask, cls.outside, cls.slope(g, x)), None


class Inverse(Masked):
    inverse = staticmethod(lambda d: 1 / d)
    slope = staticmethod(lambda g, x: -g / (x * x))


class InverseRoot(Masked):
    inverse = staticmethod(lambda d: d.rsqrt())
    slope = staticmethod(lambda g, x: -0.5 * g / (x * x.sqrt()))


class Cubed(Masked):
    inverse = staticmethod(lambda d: d**-3)
    slope = staticmethod(lambda g, x: -3 * g / x**4)


class InBackward(Function):
    """The mask of the diagonal is in backward alone."""

    factor = 1.0

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(w)
        off = ~torch.eye(w.shape[0], dtype=torch.bool)
        return torch.where(off, x / torch.where(off, w, 1), 0)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (w,) = ctx.saved_tensors
        d = w.clone()
        d.diagonal().fill_(INFINITY)
        return cls.factor * g / d, None


@pytest.mark.parametrize("function", [Inverse, InverseRoot, Cubed])
def test_what_is_divided_by_an_infinity_is_0(function: Any) -> None:
    report = sg.verify(function, "n m", "bool[n m]", suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    for change in ({"factor": 2.0}, {"outside": 1.0}):
        wrong = type("Wrong", (function,), change)
        assert sg.verify(wrong, "n m", "bool[n m]", suggest=False).verdict == sg.REFUTED


def test_a_diagonal_of_infinities() -> None:
    given = {"w": "constant"}
    report = sg.verify(InBackward, "n n", "n n", assume=given, suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    wrong = type("Wrong", (InBackward,), {"factor": 2.0})
    assert sg.verify(wrong, "n n", "n n", assume=given, suggest=False).verdict == sg.REFUTED


class BothSigns(Function):
    """Two infinities whose sum is no number: forward is NaN there, and nothing is proved of it."""

    @staticmethod
    def forward(ctx: Any, x: Any, m: Any) -> Any:
        ctx.save_for_backward(x)
        return 1 / (x.masked_fill(m, INFINITY) + torch.where(x > 1, -INFINITY, 1.0))

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return -g / (x + 1) ** 2, None


def test_infinities_of_both_signs_are_no_proof() -> None:
    assert sg.verify(BothSigns, "n", "bool[n]", suggest=False).verdict != sg.PROVED


class Squared(Function):
    """What is infinite is multiplied with itself; where it is 0 is said once."""

    factor = -1.0

    @classmethod
    def forward(cls, ctx: Any, x: Any, mask: Any) -> Any:
        y = x.masked_fill(mask, INFINITY)
        ctx.save_for_backward(y)
        return (1 / y).sum()

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return cls.factor * g / (y * y), None


class Compared(Squared):
    """The mask is computed of what it masks."""

    @classmethod
    def forward(cls, ctx: Any, x: Any, mask: Any) -> Any:
        y = x.masked_fill(x > 1, INFINITY)
        ctx.save_for_backward(y)
        return (1 / y).sum()


@pytest.mark.parametrize(
    ("function", "where"), [(Squared, "x == 0 and not mask"), (Compared, "x == 0 and x <= 1")]
)
def test_what_is_infinite_is_squared(function: Any, where: str) -> None:
    report = sg.verify(function, "n", "bool[n]", suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    found = [one for one in report.inputs["x"].conditions if one.kind == "nonzero"]
    assert [one.text for one in found] == [where]
    x, mask = sg.tensor([0.0, 0.0, 2.0]), sg.tensor([True, False, False])
    inside = eval(found[0].code, {"x": x, "mask": mask, "sg": sg})
    assert inside.tolist() == [function is Compared, True, False]
    wrong = type("Wrong", (function,), {"factor": 1.0})
    assert sg.verify(wrong, "n", "bool[n]", suggest=False).verdict == sg.REFUTED


class Apart(Function):
    """An infinity less itself, or divided by itself, is no number."""

    value = staticmethod(lambda z: z - z)

    @staticmethod
    def forward(ctx: Any, x: Any, mask: Any) -> Any:
        ctx.save_for_backward(x, mask)
        return torch.where(mask, 0, x)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, mask = ctx.saved_tensors
        return torch.where(mask, 0, g) + cls.value(x.masked_fill(mask, INFINITY)), None


@pytest.mark.parametrize("value", [lambda z: z - z, lambda z: z / z - 1, lambda z: 0 * z * z])
def test_infinities_do_not_cancel(value: Any) -> None:
    wrong = type("Wrong", (Apart,), {"value": staticmethod(value)})
    assert sg.verify(wrong, "n", "bool[n]", suggest=False).verdict == sg.REFUTED
