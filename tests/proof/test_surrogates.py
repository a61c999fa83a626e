"""Undeclared surrogates: what a backward that is not forward's is the derivative of.

Each named one is declared then, and must be PROVED: the name is true.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import symgrad as sg
from symgrad.errors import NotProvedError

Slope = Callable[[Any], Any]


def made(forward: Slope, slope: Slope, name: str = "Made") -> type[sg.Function]:
    """A Function whose backward multiplies by a slope."""

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * slope(x)

    def remembering(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return forward(x)

    parts = {"forward": staticmethod(remembering), "backward": staticmethod(backward)}
    return type(name, (sg.Function,), parts)


def heaviside(x: Any) -> Any:
    return (x > 0).float()


def plus_minus(x: Any) -> Any:
    return sg.where(x >= 0, 1.0, -1.0)


STEPS: dict[str, Slope] = {
    "round": lambda x: x.round(),
    "floor": lambda x: x.floor(),
    "sign": lambda x: x.sign(),
    "cast": heaviside,
    "where": plus_minus,
}
SLOPES: dict[str, tuple[Slope, Slope, str]] = {
    "identity": (lambda x: sg.ones_like(x), lambda x: x, "`x`"),
    "window": (lambda x: x.abs() <= 1, lambda x: x.clamp(-1, 1), "x.clamp(min=-1, max=1)"),
    "half": (lambda x: x <= 3, lambda x: x.clamp(max=3), "x.clamp(max=3)"),
    "tanh": (lambda x: 1 - sg.tanh(x) ** 2, sg.tanh, "x.tanh()"),
    "sigmoid": (
        lambda x: 4 * sg.sigmoid(4 * x) * (1 - sg.sigmoid(4 * x)),
        lambda x: sg.sigmoid(4 * x), "(4 * x).sigmoid()",
    ),
    "fast sigmoid": (
        lambda x: 1 / (1 + 25 * x.abs()) ** 2, lambda x: x / (1 + 25 * x.abs()),
        "x / (1 + 25 * x.abs())",
    ),
    "arctan": (lambda x: 1 / (1 + (3 * x) ** 2), lambda x: sg.atan(3 * x) / 3, "(3 * x).atan()"),
    "error function": (
        lambda x: 2 / math.sqrt(math.pi) * sg.exp(-(x**2)), sg.erf, "x.erf()"
    ),
    "triangle": (
        lambda x: (1 - x.abs()).clamp(min=0),
        lambda x: x.clamp(-1, 1) - 0.5 * x.clamp(-1, 1) * x.clamp(-1, 1).abs(),
        "the integral of `(1 - x.abs()).clamp(min=0)`",
    ),
    "exponential": (
        lambda x: sg.exp(-2 * x.abs()),
        lambda x: x.sign() * (1 - sg.exp(-2 * x.abs())) / 2,
        "the integral of `(-(2 * x).abs()).exp()`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_slope_of_a_step_is_named(step: str) -> None:
    for name, (slope, meant, text) in SLOPES.items():
        function = made(STEPS[step], slope)
        report = sg.verify(function, "n m")
        assert report.verdict == sg.SURROGATE, f"{name}\n{report}"
        assert text in report.inputs["x"].surrogate, f"{name}\n{report}"
        assert sg.verify(sg.surrogate(meant)(function), "n m").verdict == sg.PROVED, name


@pytest.mark.parametrize("name", SLOPES)
def test_wrong_slope_is_not_named(name: str) -> None:
    """A shift of a slope is the derivative of nothing on the list; the answer is not a pass."""
    slope = SLOPES[name][0]
    report = sg.verify(made(STEPS["sign"], lambda x: slope(x) + 0.1 * x), "n")
    assert report.verdict == sg.SURROGATE
    assert "not zero, which is the true gradient" in report.inputs["x"].surrogate, str(report)


@pytest.mark.parametrize(
    ("slope", "text"),
    [
        (lambda g: -g, "`-1 * x`"),
        (lambda g: 0.1 * g, "`0.1 * x`"),
        (lambda g: g.clamp(-1, 1), "the true gradient, clipped to [-1, 1]"),
    ],
)
def test_gradient_that_is_changed_on_its_way(slope: Slope, text: str) -> None:
    class Changed(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view_as(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return slope(g)

    report = sg.verify(Changed, "n")
    assert report.verdict == sg.SURROGATE
    assert text in report.inputs["x"].surrogate, str(report)


@pytest.mark.parametrize(
    "slope", [lambda g: g / g.norm(), lambda g: g + 1, lambda g: g * g, lambda g: -g.clamp(max=2)]
)
@pytest.mark.parametrize("forward", [lambda x: x.view_as(x), lambda x: x.round()])
def test_what_is_not_linear_is_a_mistake(forward: Slope, slope: Slope) -> None:
    class Changed(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return forward(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return slope(g)

    assert sg.verify(Changed, "n").verdict == sg.REFUTED


WRONG: list[tuple[Slope, Slope]] = [
    (lambda x: x * x, lambda x: sg.ones_like(x)),
    (lambda x: x * x, lambda x: x),
    (lambda x: x.exp(), lambda x: -x.exp()),
    (lambda x: x.relu(), lambda x: sg.ones_like(x)),
    (lambda x: x.relu(), lambda x: x < 0),
    (lambda x: x - x.floor(), lambda x: sg.zeros_like(x)),
    (lambda x: x.sign() * (x.abs() - 0.5).relu(), lambda x: x.sign() * (x.abs() > 0.5)),
    (lambda x: x.abs(), lambda x: sg.ones_like(x)),
]


@pytest.mark.parametrize("which", range(len(WRONG)))
def test_mistake_is_refuted(which: int) -> None:
    """Forward has a slope of its own there: the identity, or another part of it, is no excuse."""
    report = sg.verify(made(*WRONG[which]), "n")
    assert report.verdict == sg.REFUTED, str(report)
    assert not report.inputs["x"].surrogate


class Quantize(sg.Function):
    """Clipped at a learned level, then rounded: straight through the rounding."""

    @staticmethod
    def forward(ctx: Any, x: Any, a: Any) -> Any:
        ctx.save_for_backward(x, a)
        return (sg.minimum(sg.relu(x), a) / a * 15).round() * a / 15

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, a = ctx.saved_tensors
        return g * ((x > 0) & (x < a)), (g * (x >= a)).sum()


class OfTwo(Quantize):
    """Each gradient is that of a function, but these are two."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, a = ctx.saved_tensors
        return g * (x > 0), (g * (x >= a)).sum()


def test_one_surrogate_for_all_inputs() -> None:
    report = sg.verify(Quantize, "n m", "", assume={"a": "positive"})
    assert report.verdict == sg.SURROGATE, str(report)
    assert len({one.surrogate for one in report.inputs.values()}) == 1
    assert sg.verify(OfTwo, "n m", "", assume={"a": "positive"}).verdict == sg.REFUTED


class HardSample(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        soft = x.softmax(-1)
        ctx.save_for_backward(soft)
        return sg.one_hot(soft.argmax(-1), x.shape[-1]).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (soft,) = ctx.saved_tensors
        return soft * (g - (g * soft).sum(-1, keepdim=True))


def test_derivative_of_what_forward_computes_on_the_way() -> None:
    found = sg.verify(HardSample, "n m").inputs["x"].surrogate
    assert found == "is the derivative of `soft` in place of forward"


class Parts(sg.Function):
    """Backward is called without the cotangents of outputs that nobody used."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x.round(), x.floor()

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        if g is None or h is None:
            return h if g is None else g
        return g + h


class PartsLost(Parts):
    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        return None if g is None or h is None else g + h


def test_absent_cotangents() -> None:
    assert sg.verify(Parts, "n").verdict == sg.SURROGATE
    assert sg.verify(PartsLost, "n").verdict == sg.SURROGATE


class Scaled(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, alpha: float) -> Any:
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g.neg() * ctx.alpha, None


def test_a_plain_number_stands_in_the_name() -> None:
    assert "-0.3 * x" in sg.verify(Scaled, "n", static={"alpha": 0.3}).inputs["x"].surrogate


def test_it_is_never_a_pass() -> None:
    report = sg.verify(made(STEPS["round"], sg.ones_like), "n")
    assert not report
    assert not report.ok
    assert sg.UNDECIDED < report.verdict < sg.REFUTED
    with pytest.raises(NotProvedError, match="SURROGATE"):
        sg.compile(made(STEPS["round"], sg.ones_like), "n")
    op = sg.compile(made(STEPS["round"], sg.ones_like), "n", allow=("SURROGATE?",))
    assert op is not None
