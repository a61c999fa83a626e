"""Gradients that a forward itself takes, under ``torch.enable_grad``: what torch records there."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers
FUNCTION: Any = torch.autograd.Function


def by_grad(x: Any) -> Any:
    with torch.enable_grad():
        own = x.detach().requires_grad_(True)
        y = own.sin() * own
        (slope,) = torch.autograd.grad(y.sum(), own)
    return y.detach(), slope


def by_backward(x: Any) -> Any:
    own = x.detach().clone().requires_grad_(True)
    with torch.set_grad_enabled(True):
        y = own.sin() * own
        y.backward(torch.ones_like(y))
    return y.detach(), own.grad


def by_input(x: Any) -> Any:
    doubled = 2 * x  # a constant, since nothing is recorded here
    with torch.enable_grad():
        y = x.square() * doubled
        (slope,) = torch.autograd.grad(y.sum(), x)
    return y.detach(), 1.5 * slope


def cut_inside(x: Any) -> Any:
    with torch.enable_grad():
        own = x.detach().requires_grad_(True)
        y = own * own.detach()
        (slope,) = torch.autograd.grad(y.sum(), own)
    return y.detach(), 2 * slope


def not_recorded_between(x: Any) -> Any:
    own = x.detach().requires_grad_(True)
    square = own * own
    with torch.enable_grad():
        y = own * square
        (slope,) = torch.autograd.grad(y.sum(), own)
    return y.detach(), 3 * slope


class Inner(FUNCTION):
    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        y, slope = cls.inner(x)
        ctx.save_for_backward(slope)
        return y

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (slope,) = ctx.saved_tensors
        return cls.scale * g * slope


@pytest.mark.parametrize(
    "inner", [by_grad, by_backward, by_input, cut_inside, not_recorded_between]
)
def test_what_forward_differentiates_is_what_torch_does(inner: Any) -> None:
    def made(scale: int) -> Any:
        return type("Inner", (Inner,), {"inner": staticmethod(inner), "scale": scale})

    right, wrong = made(1), made(2)
    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(right.apply, (x,))
    assert str(sg.verify(right, "n", suggest=False, timeout=None).verdict) == "PROVED"
    found = str(sg.verify(wrong, "n", suggest=False, timeout=None).verdict)
    assert found == ("UNDECIDED" if inner is by_input else "REFUTED")  # not run without a record


class Kept(FUNCTION):
    """Forward keeps what it recorded, and backward differentiates that."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        with torch.enable_grad():
            ctx.own = x.detach().requires_grad_(True)
            ctx.y = ctx.own.sin() * ctx.own
        return ctx.y.detach()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return torch.autograd.grad(ctx.y, ctx.own, g, retain_graph=True)[0]


class KeptValue(FUNCTION):
    """What forward recorded is a constant for the derivative of backward."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        with torch.enable_grad():
            y = x.detach().requires_grad_(True).exp()
        ctx.save_for_backward(y)
        return y.detach()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return g * y


def test_what_forward_records_is_kept_for_backward() -> None:
    assert str(sg.verify(Kept, "n", suggest=False, timeout=None).verdict) == "PROVED"
    assert str(sg.verify(KeptValue, "n", suggest=False, timeout=None).verdict) == "PROVED"
    second = sg.verify(KeptValue, "n", order=2, suggest=False, timeout=None)
    assert str(second.verdict) != "PROVED"


def whole(x: Any) -> Any:
    with torch.enable_grad():
        return x.sin() * x


def from_a_view(x: Any) -> Any:
    with torch.enable_grad():
        return (x.view(-1).sin() * x.view(-1)).view(x.shape)


def made_before(x: Any) -> Any:
    before = x.sin()
    with torch.enable_grad():
        return before * x


def cut_between(x: Any) -> Any:
    with torch.enable_grad():
        return x.sin().detach() * x


def not_recorded_inside(x: Any) -> Any:
    with torch.enable_grad():
        with torch.no_grad():
            part = x.sin()
        return part * x


class KeptOfInput(FUNCTION):
    """Forward records what it computes from its argument itself, which requires a gradient."""

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        y = cls.recorded(x)
        ctx.save_for_backward(x, y)
        return y.detach()

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        (slope,) = torch.autograd.grad(y, x, g, retain_graph=True)
        return cls.scale * slope + cls.missing(x) * g


RECORDED = [whole, from_a_view, made_before, cut_between, not_recorded_inside]


@pytest.mark.slow
@pytest.mark.parametrize("recorded", RECORDED)
def test_a_graph_that_forward_records_from_its_argument_is_what_torch_does(recorded: Any) -> None:
    """``missing``: the part that torch does not record; without it, backward is wrong."""

    def nothing(x: Any) -> Any:
        return 0 * x

    def part(x: Any) -> Any:
        return x.cos() * x

    right = nothing if recorded in RECORDED[:2] else part
    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    for scale, missing in ((1, nothing), (1, part), (2, nothing), (2, part)):
        members = {"recorded": staticmethod(recorded), "missing": staticmethod(missing)}
        cls: Any = type("Twin", (KeptOfInput,), {**members, "scale": scale})
        is_right = scale == 1 and missing is right
        for argument in (x, 1 * x):  # a leaf, and what has a history
            found = torch.autograd.gradcheck(cls.apply, (argument,), raise_exception=False)
            assert found is is_right
        report = sg.verify(cls, "n", suggest=False, timeout=None)
        assert str(report.verdict) == ("PROVED" if is_right else "REFUTED")
        assert "backward failed" not in str(report)
        second = sg.verify(cls, "n", order=2, suggest=False, timeout=None)
        assert str(second.verdict) != "PROVED"


class Returned(KeptOfInput):
    """What forward returns has the Function for its history, and not what forward recorded."""

    @staticmethod
    def recorded(x: Any) -> Any:
        with torch.enable_grad():
            return x.sin() * x

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, y := cls.recorded(x))
        return y

    scale, missing = 1, staticmethod(torch.zeros_like)


def test_what_forward_returns_is_not_what_it_records() -> None:
    assert str(sg.verify(Returned, "n", suggest=False, timeout=None).verdict) != "PROVED"
