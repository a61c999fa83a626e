"""Norms with a lower limit, and backwards that are right above it."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = [pytest.mark.peers, pytest.mark.slow]

FUNCTION: Any = torch.autograd.Function


class Above(FUNCTION):
    """Backward is the derivative where the norm is above the limit."""

    sign = -1

    @staticmethod
    def norm(x: Any) -> Any:
        return x.norm(dim=-1, keepdim=True).clamp(min=1e-3)

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        n = cls.norm(x)
        ctx.save_for_backward(x, n)
        return x / n

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, n = ctx.saved_tensors
        y = x / n
        return (g + cls.sign * y * (g * y).sum(-1, keepdim=True)) / n


class ByMaximum(Above):
    @staticmethod
    def norm(x: Any) -> Any:
        return torch.maximum(x.norm(dim=-1, keepdim=True), torch.tensor(1e-3))


class OfSquares(Above):
    @staticmethod
    def norm(x: Any) -> Any:
        return x.square().sum(-1, keepdim=True).clamp(min=1e-6).sqrt()


class Inside(Above):
    """What is added inside of the root is no limit: backward is right everywhere."""

    @staticmethod
    def norm(x: Any) -> Any:
        return (x.square().sum(-1, keepdim=True) + 1e-3).sqrt()


class Wrong(Above):
    sign = 1


class WrongByMaximum(ByMaximum):
    sign = -2


class Default(FUNCTION):
    """The limit is an argument with a small default."""

    factor = 1

    @staticmethod
    def forward(ctx: Any, x: Any, eps: float = 1e-12) -> Any:
        n = x.norm(dim=-1, keepdim=True).clamp(min=eps)
        ctx.save_for_backward(x, n)
        return x / n

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, n = ctx.saved_tensors
        y = x / n
        return (g - cls.factor * y * (g * y).sum(-1, keepdim=True)) / n, None


class WrongDefault(Default):
    factor = 2


class Ball(Default):
    """A projection onto a ball: what lies inside of it is no exception."""

    @staticmethod
    def forward(ctx: Any, x: Any, eps: float = 1.0) -> Any:
        return Default.forward(ctx, x, eps)


class Required(FUNCTION):
    """Nobody says how large the limit is."""

    backward = Default.backward

    @staticmethod
    def forward(ctx: Any, x: Any, eps: float) -> Any:
        return Default.forward(ctx, x, eps)


def judged(cls: Any) -> Any:
    return sg.verify(cls, "n m", suggest=False, timeout=None)


@pytest.mark.parametrize("cls", [Above, ByMaximum, OfSquares])
def test_what_is_right_above_a_limit_is_proved_there(cls: Any) -> None:
    report = judged(cls)
    assert str(report.verdict) == "PROVED"
    assert any(one.kind == "nonzero" and " <= " in one.text for one in report.conditions)


def test_what_is_right_everywhere_has_no_condition() -> None:
    report = judged(Inside)
    assert (str(report.verdict), report.conditions) == ("PROVED", ())


@pytest.mark.parametrize("cls", [Wrong, WrongByMaximum, WrongDefault])
def test_what_is_wrong_above_the_limit_is_refuted(cls: Any) -> None:
    assert str(judged(cls).verdict) == "REFUTED"


def test_a_limit_with_a_small_default_is_an_exception_for_all_its_values() -> None:
    report = judged(Default)
    assert str(report.verdict) == "PROVED"
    assert report.quantified == ("all real eps > 0",)
    said = [one.text for one in report.conditions if one.kind == "nonzero"]
    assert said == ["x.square().sum(1, keepdim=True).sqrt() <= eps"]


@pytest.mark.parametrize(("cls", "limit"), [(Ball, "1"), (Required, "eps")])
def test_a_limit_that_may_be_large_is_a_condition_that_was_found(cls: Any, limit: str) -> None:
    report = judged(cls)
    assert str(report.verdict) == "REFUTED"
    found = [one.text for one in report.conditions if one.kind == "found"]
    assert any(f"x.square().sum(1, keepdim=True).sqrt() > {limit}" in one for one in found)


class Arcsinh(FUNCTION):
    """What backward limits is at least 1."""

    factor = 1

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        z = (x * x + 1).sqrt()
        ctx.save_for_backward(z)
        return (x + z).log()

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (z,) = ctx.saved_tensors
        return cls.factor * torch.where(z <= 1e-6, 7 * g, g / z.clamp(min=1e-5))


class ArcsinhWrong(Arcsinh):
    factor = 2


def test_a_limit_that_nothing_is_below_is_no_condition() -> None:
    report = sg.verify(Arcsinh, "n", suggest=False)
    assert report.ok
    assert not report.conditions
    assert sg.verify(ArcsinhWrong, "n", suggest=False) == sg.REFUTED
