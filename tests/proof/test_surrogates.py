"""Undeclared surrogates: what a backward that is not forward's is the derivative of.

Each named one is declared then, and must be PROVED: the name is true.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.errors import NotProvedError, UnsupportedOpError
from symgrad.pasting.repairs import Pasting

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


def by_masks(x: Any) -> Any:
    y = x.clone()
    y[x <= 0] = 0
    y[x > 0] = 1
    return y


STEPS: dict[str, Slope] = {
    "two masks": by_masks,
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
        "the integral of `(-(2 * x.abs())).exp()`",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_slope_of_a_step_is_named(step: str) -> None:
    """Each slope of one step, and of the others each third: what is a step is found by itself."""
    turn = [*STEPS].index(step)
    chosen = SLOPES if step == "sign" else [*SLOPES][turn % 3 :: 3]
    for name, (slope, meant, text) in ((one, SLOPES[one]) for one in chosen):
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
    assert "not zero; the true gradient is" in report.inputs["x"].surrogate, str(report)


MULTIPLIERS: dict[str, tuple[Slope, str]] = {
    "cut off": (lambda x: (x > 2).float() / (1 + 25 * x.abs()) ** 2, "(x > 2)"),
    "chosen": (lambda x: sg.where(x > 0.5, x, 0 * x + 1), "x > 0.5"),
    "sums": (lambda x: -x.exp() - x, "x.exp()"),
}


@pytest.mark.parametrize("name", MULTIPLIERS)
def test_what_backward_multiplies_by_is_said(name: str) -> None:
    """Where no function is known that has this derivative."""
    slope, part = MULTIPLIERS[name]
    report = sg.verify(made(heaviside, slope), "n m")
    assert report.verdict == sg.SURROGATE
    said = re.search(r"not zero; .*; it multiplies by `(.*)`", report.inputs["x"].surrogate)
    assert said is not None, str(report)
    assert part in said[1]
    x = sg.Tensor(np.linspace(-3, 4, 23))
    shown = eval(said[1], {"x": x, "torch": sg, "sg": sg})
    np.testing.assert_allclose(shown.numpy(), slope(x).numpy(), rtol=1e-6)


def test_a_number_has_no_dtype_in_what_is_said() -> None:
    class CutOff(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, a: float) -> Any:
            ctx.save_for_backward(x)
            ctx.bound = a
            return heaviside(x)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad / (1 + x * x) * (x > ctx.bound).float() * (2 * x).relu(), None

    said = sg.verify(CutOff).inputs["x"].surrogate
    assert "(x > a).to(x.dtype)" in said


@pytest.mark.parametrize(("name", "bound"), [("maximum", "min"), ("minimum", "max")])
def test_torch_has_no_maximum_of_a_tensor_and_a_number(name: str, bound: str) -> None:
    def slope(x: Any) -> Any:
        return getattr(sg, name)(3 * x, sg.full_like(x, 0.3)) * x + 1 / (1 + x * x)

    said = sg.verify(made(heaviside, slope), "n m").inputs["x"].surrogate
    assert f"(3 * x).clamp({bound}=0.3)" in said


def test_what_mixes_elements_is_no_multiplier() -> None:
    report = sg.verify(made(heaviside, lambda x: x.exp() * x.sum()), "n")
    assert report.verdict == sg.SURROGATE
    assert "not zero" in report.inputs["x"].surrogate
    assert "multiplies" not in report.inputs["x"].surrogate


@pytest.mark.parametrize(
    ("slope", "text"),
    [
        (lambda g: -g, "`-1 * x`"),
        (lambda g: 0.1 * g, "`0.1 * x`"),
        (lambda g: g.clamp(-1, 1), "the true gradient, clipped to [-1, 1]"),
        (lambda g: g.sign(), "the true gradient, of which the sign is kept"),
        (lambda g: g * g.shape[0], "`n * x`"),
        (lambda g: g / (g.norm() + 1), "scaled by `1 / (grad_output.square().sum().sqrt() + 1)`"),
        (lambda g: 3 * g / g.abs().amax(0), "scaled by `3 / grad_output.abs().amax(0)`"),
        (
            lambda g: g * (0.5 / (g.norm() + 1e-6)).clamp(max=1),
            "sum().sqrt() + 1e-06)).clamp(max=1",
        ),
        (
            lambda g: sg.where(g.norm() > 2, g * (2 / g.norm()), g),
            "`2 / grad_output.square().sum().sqrt()` where `grad_output.square().sum().sqrt() > 2`",
        ),
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


@pytest.mark.parametrize("shape", ["", "n", "n m"])
@pytest.mark.parametrize(
    ("limits", "said"),
    [((-1, 1), "[-1, 1]"), ((-2.5, None), "[-2.5, inf]"), ((None, 3), "[-inf, 3]")],
)
def test_a_clip_is_one_at_any_rank(shape: str, limits: Any, said: str) -> None:
    class Clipped(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.clamp(*limits)

    report = sg.verify(Clipped, shape, suggest=False)
    assert report.verdict == sg.SURROGATE
    assert f"the true gradient, clipped to {said}" in report.inputs["x"].surrogate, str(report)


PARTS: list[Slope] = [
    lambda c: (c.clamp(min=0), c.clamp(max=0)), lambda c: (c.relu(), -(-c).relu()),
    lambda c: (c.clamp(min=2), c.clamp(max=2)),
]  # fmt: skip


@pytest.mark.parametrize("parts", PARTS)
def test_a_branch_that_is_forgotten_is_no_surrogate(parts: Slope) -> None:
    """Both parts of one value: their gradient is that of the part that it is in."""

    class Upwind(sg.Function):
        @staticmethod
        def forward(ctx: Any, c: Any, u: Any, v: Any) -> Any:
            ctx.save_for_backward(c, u, v)
            above, below = parts(c)
            return above * u + below * v

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            c, u, v = ctx.saved_tensors
            above, below = parts(c)
            return g * (u + v), g * above, g * below

    report = sg.verify(Upwind, "n", "n", "n", suggest=False)
    assert report.inputs["c"].verdict == sg.REFUTED


@pytest.mark.parametrize(
    "slope",
    [
        lambda g: g * g.sum(),
        lambda g: g / g.norm() + g,
        lambda g: g * g.abs(),
        lambda g: g + 1,
        lambda g: g * g,
        lambda g: -g.clamp(max=2),
    ],
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


class Tanh(sg.Function):
    """Its gradient is clipped by its norm."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = sg.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def slope(y: Any) -> Any:
        return 1 - y * y

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        gradient = g * cls.slope(y)
        return gradient * (1 / (gradient.norm() + 1e-6)).clamp(max=1)


class WrongTanh(Tanh):
    @staticmethod
    def slope(y: Any) -> Any:
        return 1 - y


def test_what_is_scaled_is_proved() -> None:
    assert "is the true gradient, scaled by" in sg.verify(Tanh, "n m").inputs["x"].surrogate
    assert sg.verify(WrongTanh, "n m").verdict == sg.REFUTED


LIMITED: list[tuple[Slope, Slope, str]] = [
    (sg.exp, lambda x: x.clamp(-15, 15).exp(), "`x.clamp(min=-15, max=15)` in place of `x`"),
    (sg.exp, lambda x: x.clamp(max=11).exp(), "`x.clamp(max=11)` in place of `x`"),
    (sg.exp, lambda x: x.exp().clamp(max=100), "`x.exp().clamp(max=100)` in place of `x.exp()`"),
    (sg.sinh, lambda x: x.clamp(max=8).cosh(), "`x.clamp(max=8)` in place of `x`"),
    (sg.exp, lambda x: x.clamp(min=0).exp(), ""),
    (sg.exp, lambda x: x.clamp(min=1e-6).exp(), ""),
    (sg.exp, lambda x: -x.clamp(-15, 15).exp(), ""),
    (sg.exp, lambda x: (2 * x).clamp(-15, 15).exp(), ""),
    (sg.sinh, lambda x: x.clamp(-15, 15).sinh(), ""),
]


@pytest.mark.parametrize("which", range(len(LIMITED)))
def test_a_limit_of_backward_alone_is_named(which: int) -> None:
    """Where the gradient is the true one without it; a limit at or near 0 may be a mistake."""
    forward, slope, said = LIMITED[which]
    report = sg.verify(made(forward, slope), "n")
    assert report.verdict == (sg.SURROGATE if said else sg.REFUTED), str(report)
    assert not said or report.inputs["x"].surrogate == f"is the true gradient with {said}"


class OneHot(sg.Function):
    """Backward alone computes what its gradient is the derivative of."""

    axis = 1

    @staticmethod
    def forward(ctx: Any, x: Any, tau: float = 1.0) -> Any:
        ctx.save_for_backward(x)
        ctx.tau = tau
        return sg.one_hot(x.argmax(1), x.shape[1]).float()

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        p = (x / ctx.tau).softmax(1)
        return p * (g - (g * p).sum(cls.axis, keepdim=True)) / ctx.tau, None


class OverTheOtherAxis(OneHot):
    axis = 0


def test_derivative_of_what_backward_computes() -> None:
    assert sg.verify(OneHot, "n m").inputs["x"].surrogate == (
        "is the derivative of `p` in place of forward"
    )
    report = sg.verify(OverTheOtherAxis, "n m")
    assert "is not zero" in report.inputs["x"].surrogate, str(report)


WRONG: list[tuple[Slope, Slope]] = [
    (lambda x: x * x, lambda x: sg.ones_like(x)),
    (lambda x: x * x, lambda x: x),
    (lambda x: x.exp(), lambda x: -x.exp()),
    (lambda x: x.relu(), lambda x: 2 * sg.ones_like(x)),
    (lambda x: x.relu(), lambda x: x < 0),
    (lambda x: x.relu().exp(), lambda x: x.relu().exp()),
    (lambda x: x.relu() + x, lambda x: sg.ones_like(x)),
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


LIMIT_ALONE: dict[str, Slope] = {
    "min=0": lambda x: x.relu(),
    "min=1": lambda x: x.clamp(min=1),
    "max=6": lambda x: x.clamp(max=6),
    "min=2": lambda x: sg.where(x < 2, 2.0, x),
    "min=0, max=6": lambda x: sg.where(x < 0, 0.0, sg.where(x > 6, 6.0, x)),
}


@pytest.mark.parametrize("limits", LIMIT_ALONE)
def test_straight_through_a_limit_that_is_all_of_forward(limits: str) -> None:
    report = sg.verify(made(LIMIT_ALONE[limits], lambda x: sg.ones_like(x)), "n", suggest=False)
    assert report.verdict == sg.SURROGATE
    said = f"is the derivative of `x` in place of `x.clamp({limits})`"
    assert report.inputs["x"].surrogate == said


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


NUMBERED: dict[str, tuple[Callable[[Any, float], Any], str]] = {
    "fast sigmoid": (lambda x, k: 1 / (1 + k * x.abs()) ** 2, "`x / (1 + k * x.abs())`"),
    "sigmoid": (
        lambda x, k: k * sg.sigmoid(k * x) * (1 - sg.sigmoid(k * x)), "`(k * x).sigmoid()`"
    ),
    "arctan": (lambda x, k: k / 2 / (1 + (math.pi / 2 * k * x) ** 2), "k * x).atan()`"),
    "escape": (lambda x, k: 3 * sg.exp(-k * (x - 1).abs()), "(k * (x - 1).abs()"),
    "triangular": (lambda x, k: sg.where(x >= 0, -k, k), "`-k * x.abs()`"),
}  # fmt: skip


def test_a_slope_with_a_plain_number_that_has_no_name_is_no_mistake() -> None:
    class Spike(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, k: float) -> Any:
            ctx.save_for_backward(x)
            ctx.k = k
            return (x > 0).float()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * sg.where(x >= 0, -ctx.k, ctx.k) * x.exp().sin(), None

    assert sg.verify(Spike, "n").verdict == sg.SURROGATE


@pytest.mark.parametrize("which", NUMBERED)
def test_a_plain_number_that_nobody_stated_stands_in_a_slope(which: str) -> None:
    slope, text = NUMBERED[which]

    class Spike(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, k: float) -> Any:
            ctx.save_for_backward(x)
            ctx.k = k
            return (x > 0).float()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * slope(x, ctx.k), None

    report = sg.verify(Spike, "n")
    assert report.verdict == sg.SURROGATE
    assert text in report.inputs["x"].surrogate, str(report)


def test_it_is_never_a_pass() -> None:
    report = sg.verify(made(STEPS["round"], sg.ones_like), "n")
    assert not report
    assert not report.ok
    assert sg.UNDECIDED < report.verdict < sg.REFUTED
    with pytest.raises(NotProvedError, match="SURROGATE"):
        sg.compile(made(STEPS["round"], sg.ones_like), "n")
    op = sg.compile(made(STEPS["round"], sg.ones_like), "n", allow=("SURROGATE?",))
    assert op is not None


# -- forward keeps its values


class Lsq(sg.Function):
    """A learned step size, as it is usually written: by regions of ``x / s``."""

    @staticmethod
    def forward(ctx: Any, x: Any, s: Any) -> Any:
        ctx.save_for_backward(x, s)
        return (x / s).round().clamp(-8, 7) * s

    @staticmethod
    def inside(v: Any) -> Any:
        return (v >= -8) & (v <= 7)

    @staticmethod
    def step(v: Any) -> Any:
        return sg.where(v < -8, -8.0, sg.where(v > 7, 7.0, v.round() - v))

    @classmethod
    def scaled(cls, total: Any, x: Any) -> Any:
        return total

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, s = ctx.saved_tensors
        v = x / s
        return g * cls.inside(v), cls.scaled((g * cls.step(v)).sum(), x)


class LsqOfQuantized(Lsq):
    """The quantised value is kept, and the window is open."""

    @staticmethod
    def forward(ctx: Any, x: Any, s: Any) -> Any:
        v = x / s
        q = v.round().clamp(-8, 7)
        ctx.save_for_backward(v, q)
        return q * s

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        v, q = ctx.saved_tensors
        inside = (v > -8) & (v < 7)
        return g * inside, (g * (q - v * inside)).sum()


class LsqOfRounded(Lsq):
    """The window is that of the rounded value."""

    @staticmethod
    def inside(v: Any) -> Any:
        return (v.round() >= -8) & (v.round() <= 7)

    @staticmethod
    def step(v: Any) -> Any:
        low, high = v.round() < -8, v.round() > 7
        return sg.where(low, -8.0, sg.where(high, 7.0, v.round() - v))


class LsqScaled(Lsq):
    @classmethod
    def scaled(cls, total: Any, x: Any) -> Any:
        return total / math.sqrt(7) / (x.shape[0] * x.shape[1]) ** 0.5


class LsqByNumber(sg.Function):
    """Limits and the scale of the gradient are plain arguments; sums of indicators."""

    @staticmethod
    def forward(ctx: Any, x: Any, s: Any, g: float, low: float, high: float) -> Any:
        ctx.save_for_backward(x, s)
        ctx.other = g, low, high
        return (x / s).round().clamp(low, high) * s

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, s = ctx.saved_tensors
        g, low, high = ctx.other
        v = x / s
        under, over = (v < low).float(), (v > high).float()
        inside = 1.0 - under - over
        steps = under * low + over * high + inside * (v.round() - v)
        return inside * grad, (steps * grad * g).sum(), None, None, None


class LsqTurned(Lsq):
    @staticmethod
    def step(v: Any) -> Any:
        return sg.where(v < -8, -8.0, sg.where(v > 7, 7.0, v - v.round()))


class LsqOffByOne(Lsq):
    @staticmethod
    def inside(v: Any) -> Any:
        return (v >= -8) & (v <= 8)


class LsqUnlimited(Lsq):
    @staticmethod
    def inside(v: Any) -> Any:
        return v < float("inf")


class LsqDoubled(Lsq):
    @classmethod
    def scaled(cls, total: Any, x: Any) -> Any:
        return 2 * total


class LsqMean(Lsq):
    @classmethod
    def scaled(cls, total: Any, x: Any) -> Any:
        return total / (x.shape[0] * x.shape[1])


class LsqTwice(Lsq):
    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return tuple(2 * one for one in super().backward(ctx, g))


@pytest.mark.parametrize("function", [Lsq, LsqOfQuantized, LsqScaled])
def test_learned_step(function: type[sg.Function]) -> None:
    found = sg.verify(function, "n m", "")
    assert found.verdict == sg.SURROGATE, str(found)
    texts = {one.surrogate for one in found.inputs.values()}
    assert len(texts) == 1
    text = texts.pop()
    assert "`(x / s).clamp(min=-8, max=7)` in place of" in text
    assert ("that by s is scaled by" in text) == (function is LsqScaled)


def test_learned_step_with_the_window_of_what_is_rounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("symgrad.proof.verify.SURROGATE_SECONDS", 120.0)
    text = sg.verify(LsqOfRounded, "n m", "").inputs["s"].surrogate
    assert "is the derivative of `x / s` in place of `(x / s).round()`" in text, text


def test_no_repair_is_proved_of_what_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    offer = Pasting.offer

    def counted(self: Pasting, case: Any, name: str, *rest: Any) -> Any:
        tried.append(name)
        return offer(self, case, name, *rest)

    monkeypatch.setattr(Pasting, "offer", counted)
    slipped = made(lambda x: x * sg.sigmoid(x), sg.sigmoid, "Slipped")
    assert sg.verify(slipped, "n").verdict == "REFUTED"
    assert tried == ["x"]
    meant = sg.verify(made(lambda x: x.clamp(-1, 1), sg.ones_like, "Clamped"), "n").inputs["x"]
    assert meant.verdict == "SURROGATE?"
    assert meant.derived
    assert not meant.diagnosis
    assert tried == ["x"]


def test_learned_step_by_plain_numbers() -> None:
    text = sg.verify(LsqByNumber, "n m", "").inputs["s"].surrogate
    assert "`(x / s).clamp(min=low, max=high)` in place of" in text, text
    assert "that by s is scaled by `g`" in text
    assert "for integers low and high, low < high" in text


@pytest.mark.parametrize(
    ("function", "right"),
    [
        (LsqTurned, "x"), (LsqOffByOne, "s"), (LsqUnlimited, ""), (LsqDoubled, "x"),
        (LsqMean, "x"), (LsqTwice, ""),
    ],
)  # fmt: skip
def test_mistake_in_a_learned_step_is_refuted(
    function: type[sg.Function], right: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands beside the mistake keeps its name; two names are none."""
    monkeypatch.setattr("symgrad.proof.verify.SURROGATE_SECONDS", 120.0)
    found = sg.verify(function, "n m", "", timeout=None)
    assert found.verdict == sg.REFUTED, str(found)
    assert "".join(name for name, one in found.inputs.items() if one.surrogate) == right
    assert all(one.verdict is sg.REFUTED for one in found.inputs.values() if not one.surrogate)


class Limited(sg.Function):
    """Between two tensors; the limits get no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any, low: Any, high: Any) -> Any:
        ctx.save_for_backward(x, low, high)
        return sg.minimum(sg.maximum(x, low), high)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, None, None


class LimitedByWhere(Limited):
    @staticmethod
    def forward(ctx: Any, x: Any, low: Any, high: Any) -> Any:
        out = sg.where(x > high, high, x)
        return sg.where(out < low, low, out)


class LimitedInside(Limited):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, low, high = ctx.saved_tensors
        return g * ((x > low) & (x < high)), None, None


class LimitedTwice(Limited):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, low, high = ctx.saved_tensors
        return 2 * g * ((x > low) & (x < high)), g * (x < low), g * (x > high)


class LimitsSwapped(Limited):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, low, high = ctx.saved_tensors
        return g * ((x > low) & (x < high)), g * (x > high), g * (x < low)


class LimitForgotten(Limited):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, low, _ = ctx.saved_tensors
        return g * (x > low), None, None


class Greater(sg.Function):
    """No limits: the greater one of two tensors, of which one gets no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return sg.maximum(x, y)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * (x > y), None


class Times(sg.Function):
    """Nothing is rounded here: a factor without its gradient is a mistake."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return (x * y).clamp(-1, 1)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y * ((x * y).abs() < 1), None


@pytest.mark.parametrize("shape", ["n", "n m"])
@pytest.mark.parametrize("function", [Limited, LimitedByWhere])
def test_clamp_by_tensors_straight_through(function: type[sg.Function], shape: str) -> None:
    found = sg.verify(function, shape, shape, shape)
    assert found.verdict == sg.SURROGATE, str(found)
    assert {one.surrogate for one in found.inputs.values()} == {found.inputs["x"].surrogate}
    text = found.inputs["low"].surrogate
    assert "is the derivative of `x` in place of" in text
    assert "`low` and `high` being taken for constants" in text


@pytest.mark.parametrize("limit", ["n", "", "1"])
def test_limits_without_gradients(limit: str) -> None:
    found = sg.verify(LimitedInside, "n", limit, limit)
    assert found.inputs["x"].verdict == sg.PROVED
    text = "is the true gradient, `low` and `high` being taken for constants"
    assert found.inputs["low"].surrogate == found.inputs["high"].surrogate == text


@pytest.mark.parametrize("function", [LimitedTwice, LimitsSwapped, LimitForgotten])
def test_mistake_in_a_clamp_is_refuted(function: type[sg.Function]) -> None:
    assert sg.verify(function, "n", "n", "n").verdict == sg.REFUTED


@pytest.mark.parametrize("function", [Greater, Times])
def test_factors_and_greater_values_are_no_limits(function: type[sg.Function]) -> None:
    assert sg.verify(function, "n", "n").verdict == sg.REFUTED


class BinaryWeight(sg.Function):
    """The mean of the absolute values as a scale, which backward takes for a constant."""

    @staticmethod
    def forward(ctx: Any, w: Any) -> Any:
        mean = w.abs().mean(1, keepdim=True)
        ctx.save_for_backward(w, mean)
        return w.sign() * mean

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        w, mean = ctx.saved_tensors
        return g * mean * (w.abs() <= 1)


class BinaryWeightUnscaled(BinaryWeight):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        w, mean = ctx.saved_tensors
        return g / mean * (w.abs() <= 1)


def test_scale_that_is_a_constant() -> None:
    text = sg.verify(BinaryWeight, "n m").inputs["w"].surrogate
    assert "`w.clamp(min=-1, max=1)` in place of `w.sign()`" in text
    assert "being taken for a constant" in text
    assert sg.verify(BinaryWeightUnscaled, "n m").verdict == sg.REFUTED


class LearnedLimit(sg.Function):
    """Activations below a learned limit, in sixteenths of it."""

    @staticmethod
    def forward(ctx: Any, x: Any, limit: Any) -> Any:
        ctx.save_for_backward(x, limit)
        scale = 15 / limit
        return (sg.minimum(x.relu(), limit) * scale).round() / scale

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, limit = ctx.saved_tensors
        return g * (x >= 0) * (x < limit), (g * (x >= limit)).sum().reshape(limit.shape)


class LearnedLimitBelow(LearnedLimit):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, limit = ctx.saved_tensors
        return g * (x >= 0) * (x < limit), (g * (x < limit)).sum().reshape(limit.shape)


class LearnedLimitMean(LearnedLimit):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, limit = ctx.saved_tensors
        return g * (x >= 0) * (x < limit), (g * (x >= limit)).mean().reshape(limit.shape)


@pytest.mark.slow
def test_learned_limit() -> None:
    """Below 0 the limit is the output of all; there the gradient of the limit is a mistake."""
    found = sg.verify(LearnedLimit, "n", "1")
    assert found.inputs["limit"].counterexample is not None, str(found)
    assert "is left out" not in str(found)  # it is 0 at the counterexample, and not everywhere
    for one in found.inputs.values():
        assert one.verdict == sg.SURROGATE
        assert "for limit > 0" in one.surrogate
    for wrong in (LearnedLimitBelow, LearnedLimitMean):
        found = sg.verify(wrong, "n", "1", suggest=False)
        assert found.inputs["limit"].verdict == sg.REFUTED, str(found)


class FakeQuantize(sg.Function):
    """Affine; scale and zero point get no gradient, limits are plain arguments."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any, zero: Any, low: float, high: float) -> Any:
        ctx.save_for_backward(x, scale, zero)
        ctx.limits = low, high
        return ((x / scale + zero).round().clamp(low, high) - zero) * scale

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, scale, zero = ctx.saved_tensors
        low, high = ctx.limits
        q = (x / scale + zero).round()
        return g * ((q >= low) & (q <= high)), None, None, None, None


def test_scale_and_zero_point_without_gradients() -> None:
    text = sg.verify(FakeQuantize, "n m", "", "").inputs["x"].surrogate
    assert "in place of" in text, text
    assert "`scale` and `zero` being taken for constants" in text


@pytest.mark.parametrize("factor", [1, 2])
def test_backward_may_ask_about_sizes_that_the_surrogate_does_not(factor: int) -> None:
    @sg.surrogate(lambda x: x)
    class Rounded(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.round()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g if g.shape[0] > 1 else factor * g

    verdict = sg.verify(Rounded, "n", suggest=False).verdict
    assert verdict == ("PROVED" if factor == 1 else "REFUTED")


def test_a_surrogate_that_asks_about_sizes_is_said() -> None:
    @sg.surrogate(lambda x: x if x.shape[0] > 3 else 2 * x)
    class Rounded(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.round()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    with pytest.raises(UnsupportedOpError, match="the surrogate asks about sizes"):
        sg.verify(Rounded, "n", suggest=False)


def leaky(turned: bool) -> type[sg.Function]:
    """Backward compares the spike that forward saved, which is 0 or 1."""

    class Leaky(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, slope: float = 0.1) -> Any:
            spike = heaviside(x)
            ctx.save_for_backward(spike)
            ctx.slope = slope
            return spike

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (spike,) = ctx.saved_tensors
            arms = (ctx.slope * g, g) if turned else (g, ctx.slope * g)
            return sg.where(spike == 1, *arms), None

    return Leaky


def test_what_compares_a_step_reads_its_value() -> None:
    """A step is 1 on one side, though almost no number is."""
    said = sg.verify(leaky(False), "n").inputs["x"]
    assert "`x.relu() - slope * (-x).relu()` in place of" in said.surrogate, said.surrogate
    assert said.declaration
    said = sg.verify(leaky(True), "n").inputs["x"]
    assert "`slope * (x.relu() - 1 / slope * (-x).relu())` in" in said.surrogate, said.surrogate


class GuardedAcosh(sg.Function):
    """Its limit is no guard: it is met."""

    @staticmethod
    def forward(ctx: Any, x: Any, eps: float = 0.05) -> Any:
        z = (x * x - 1).sqrt()
        ctx.save_for_backward(z)
        ctx.eps = eps
        return (x + z).log()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (z,) = ctx.saved_tensors
        return g / z.clamp(min=ctx.eps), None


class ClippedLoss(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, delta: float = 1.0) -> Any:
        ctx.save_for_backward(x - y)
        ctx.delta = delta
        return 0.5 * (x - y).square().sum()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (d,) = ctx.saved_tensors
        clipped = g * d.clamp(-ctx.delta, ctx.delta)
        return clipped, -clipped, None


class DoubledAbove(ClippedLoss):
    """At its default alone it is clipped to that."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (d,) = ctx.saved_tensors
        clipped = g * d.clamp(-ctx.delta, ctx.delta * ctx.delta)
        return clipped, -clipped, None


LIMITS = {GuardedAcosh: "clamp(min=eps)", ClippedLoss: "clamp(min=-delta, max=delta)",
          DoubledAbove: "clamp(min=-delta, max=delta * delta)"}  # fmt: skip


@pytest.mark.parametrize("function", LIMITS)
def test_a_number_that_is_an_argument_is_named(function: type[sg.Function]) -> None:
    """What is said holds for all its values, and not for the one that was tried alone."""
    said = sg.verify(function, suggest=False).inputs["x"].surrogate
    assert LIMITS[function] in said, said


class Levels(sg.Function):
    """How many levels there are is an argument that is read by Python."""

    @staticmethod
    def forward(ctx: Any, x: Any, bits: int) -> Any:
        levels = float(2**bits - 1)
        return (x * levels).round() / levels

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, None


class UnscaledLevels(Levels):
    @staticmethod
    def forward(ctx: Any, x: Any, bits: int) -> Any:
        return (x * float(2**bits - 1)).round().exp()


def test_what_parts_make_of_the_input_is_the_input() -> None:
    said = sg.verify(Levels, "n", static={"bits": 2}).inputs["x"]
    assert "derivative of `x` in place of forward" in said.surrogate, said.surrogate
    assert said.declaration == 'surrogate = "x"'
    found = sg.verify(UnscaledLevels, "n", static={"bits": 2}).inputs["x"]
    assert "derivative of `x` in place of forward" in found.surrogate, found.surrogate


def bell(v: Any, width: float) -> Any:
    return sg.exp(-(v**2) / (2 * width**2)) / math.sqrt(2 * math.pi) / width


BELLS: dict[str, tuple[Slope, bool]] = {
    "one": (lambda x: bell(x, 0.5), True),
    "elsewhere": (lambda x: 0.3 * bell(x - 1, 2.0), True),
    "several": (lambda x: 1.15 * bell(x, 0.5) - 0.15 * bell(x - 0.5, 3.0), True),
    "a negative number": (lambda x: sg.exp(-0.5 * (3 * (x - 1)) ** 2) * 2, True),
    "growing": (lambda x: sg.exp(x**2 / 2) + 1, False),
    "of a root": (lambda x: sg.exp(-x.abs().sqrt()), False),
    "times the input": (lambda x: x * sg.exp(-(x**2)) + 0.5, False),
}


@pytest.mark.parametrize("name", BELLS)
def test_sums_of_bells_are_integrated(name: str) -> None:
    slope, known = BELLS[name]
    found = sg.verify(made(heaviside, slope), "n").inputs["x"]
    assert ("erf()" in found.surrogate) is known, found.surrogate
    assert bool(found.declaration) is known


CURVES: dict[str, tuple[Any, str]] = {
    "tanh": (
        lambda x, k, t: k * t * (1 - sg.tanh(x * t) ** 2),
        "is the derivative of `k * (x * t).tanh()` in place of forward",
    ),
    "tanh, not scaled": (lambda x, k, t: k * (1 - sg.tanh(x * t) ** 2), "(x * t).tanh() / t"),
    "sigmoid": (
        lambda x, k, t: k * sg.sigmoid(t * x) * (1 - sg.sigmoid(t * x)), "(t * x).sigmoid() / t"
    ),
    "arc tangent": (lambda x, k, t: k / (1 + (t * x) ** 2), "(t * x).atan() / t"),
    "softsign": (lambda x, k, t: k * t / (1 + (t * x).abs()) ** 2, "t * x / ((t * x).abs() + 1)"),
    "neither": (lambda x, k, t: k * (1 - sg.tanh(x * t) ** 4), "it multiplies by"),
}  # fmt: skip


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("shape", ["n", "1"])
def test_curves_with_widths_that_are_tensors_are_integrated(name: str, shape: str) -> None:
    slope, said = CURVES[name]

    class Curve(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, k: Any, t: Any) -> Any:
            ctx.save_for_backward(x, k, t)
            return heaviside(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * slope(*ctx.saved_tensors), None, None

    report = sg.verify(Curve, "n", shape, shape, assume={"t": "positive"}, suggest=False)
    assert report.verdict == sg.SURROGATE
    assert said in report.inputs["x"].surrogate, report.inputs["x"].surrogate


class Triangle(sg.Function):
    """The width of the window is an argument."""

    @staticmethod
    def forward(ctx: Any, x: Any, width: float) -> Any:
        ctx.save_for_backward(x)
        ctx.width = width
        return heaviside(x)

    @staticmethod
    def slope(x: Any, width: float) -> Any:
        return (width - x.abs()).clamp(min=0) / width / width

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * cls.slope(x, ctx.width), None


class TooWide(Triangle):
    @staticmethod
    def slope(x: Any, width: float) -> Any:
        return (2 * width - x.abs()).clamp(min=0) * (width - x.abs()).abs()


def test_a_width_that_is_an_argument_is_positive() -> None:
    found = sg.verify(Triangle, "n").inputs["x"]
    assert "the integral of" in found.surrogate, found.surrogate
    assert found.surrogate.endswith("for width > 0")
    assert "the integral of" not in sg.verify(TooWide, "n").inputs["x"].surrogate


class MaskedRows(sg.Function):
    """The mask of backward is off by one; what it is made of gets no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any, t: Any) -> Any:
        ctx.save_for_backward(x, t)
        return x * x * (t > 0).float()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, t = ctx.saved_tensors
        return 2 * g * x * (t >= 0).float(), None


class OtherLimit(sg.Function):
    """The mask of backward has another limit than the clip of forward."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * (x.abs() <= 2).float()


@pytest.mark.parametrize("function", [MaskedRows, OtherLimit])
def test_a_mask_that_is_off_is_a_mistake(function: type[sg.Function]) -> None:
    report = sg.verify(function)
    assert str(report.inputs["x"].verdict) == "REFUTED", str(report)
    assert not report.inputs["x"].surrogate
