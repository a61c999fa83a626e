"""Which element is the greatest, which of two inputs is: what is left out, and what is used."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.frontend.facts import SizeFacts  # noqa: E402
from symgrad.ir.dim import Dim  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function


class Choosing(Function):
    """The square where a mask says so, and 0 elsewhere; ``factor``: of the gradient."""

    mask: Any
    factor = 2

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return torch.where(cls.mask(x), x * x, 0)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return torch.where(cls.mask(x), cls.factor * g * x, 0)


MASKS = {
    "greatest": lambda x: x == x.amax(-1, keepdim=True),
    "not the least": lambda x: x > x.amin(-1, keepdim=True),
    "two": lambda x: x >= x.topk(2, -1)[0][..., -1:],
    "median": lambda x: x == x.median(-1, keepdim=True)[0],
    "symmetric": lambda x: x >= x.T,
}


@pytest.mark.parametrize("name", MASKS)
def test_that_some_element_is_another_one_leaves_nothing_out(name: str) -> None:
    """The greatest element is one of them for all inputs: which one it is changes at ties."""
    members = {"mask": staticmethod(MASKS[name])}
    shape = "n n" if name == "symmetric" else "n 3"
    report = sg.verify(type("Right", (Choosing,), members), shape, suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert report.conditions
    assert {one.kind for one in report.conditions} == {"ties"}, str(report)
    wrong = type("Wrong", (Choosing,), {**members, "factor": 3})
    assert sg.verify(wrong, shape, suggest=False).verdict == sg.REFUTED


class Distance(Function):
    sign = 1

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        if (x < y).any():
            raise ValueError
        return (x - y).abs()

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return cls.sign * g, -cls.sign * g


class Between(Function):
    """Clamped between two inputs."""

    @staticmethod
    def forward(ctx: Any, low: Any, high: Any, x: Any) -> Any:
        assert (low < high).all()
        ctx.save_for_backward(low, high, x)
        return torch.maximum(torch.minimum(x, high), low)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        low, high, x = ctx.saved_tensors
        return g * (x < low), g * (x > high), g * ((x >= low) & (x <= high))


def test_the_proof_uses_which_of_two_inputs_is_greater() -> None:
    for function, shapes in ((Distance, ("n", "n")), (Between, ("n", "n", "n"))):
        report = sg.verify(function, *shapes, suggest=False)
        assert report.verdict == sg.PROVED, str(report)
        assert any("demanded in line" in one.text for one in report.conditions)
    wrong = type("Wrong", (Distance,), {"sign": -1})
    assert sg.verify(wrong, "n", "n", suggest=False).verdict == sg.REFUTED


class Variance(Function):
    """NaN for one element."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.var()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 2 * (x - x.mean()) / (x.numel() - 1)


def test_a_shape_for_which_forward_is_never_finite_is_none() -> None:
    report = sg.verify(Variance, suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert "Forward is finite for no input that was tried: x[]." in str(report)
    assert sg.verify(Variance, "", suggest=False).verdict == sg.UNDECIDED


class Rolled(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return torch.roll(x, 2, 0)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return torch.roll(g, -2, 0)


def test_a_case_without_sizes_is_none() -> None:
    n = Dim.size("n")
    facts = SizeFacts(("n",)).assume(2, ">=", n)
    facts = facts and facts.assume(n, "!=", 1)
    assert facts is not None
    assert facts.assume(n, "!=", 2) is None
    assert sg.verify(Rolled, "n m", suggest=False).verdict == sg.PROVED


class Demanding(Function):
    """The identity where its input is above 0; ``divisor``: of what backward divides by itself."""

    divisor: Any

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        assert (x > 0).all()
        ctx.save_for_backward(x)
        return x * 1

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        divisor = cls.divisor(x)
        return g * divisor / divisor


DIVISORS = {
    "its size": (lambda x: x.abs(), sg.PROVED),
    "what it is above 0": (lambda x: x.relu(), sg.PROVED),
    "what it is below 0": (lambda x: (-x).relu(), sg.REFUTED),
    "what it is above 1": (lambda x: (x - 1).relu(), sg.REFUTED),
}


@pytest.mark.parametrize("name", DIVISORS)
def test_what_a_demand_excludes_is_divided_by(name: str) -> None:
    divisor, verdict = DIVISORS[name]
    one = type("One", (Demanding,), {"divisor": staticmethod(divisor)})
    assert sg.verify(one, "n", suggest=False).verdict == verdict
