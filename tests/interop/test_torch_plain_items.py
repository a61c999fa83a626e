"""Items of ``*args`` that are numbers: found by what makes a tensor of them, and stated."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import SpecError  # noqa: E402
from symgrad.frontend.guests import taken  # noqa: E402
from symgrad.frontend.starred import plain_items  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function


class Focal(Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        p, gamma = args[0], args[1]
        ctx.save_for_backward(p, torch.tensor(gamma))
        return (1 - p) ** gamma

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        p, gamma = ctx.saved_tensors
        return -g * gamma * (1 - p) ** (gamma - 1), None


class WrongFocal(Focal):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        return Focal.forward(ctx, args[0], float(args[1]))

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return Focal.backward(ctx, 2 * g)


class Scaled(Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.factor = args[1]
        return args[0] * args[1]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.factor, None


def test_what_a_tensor_is_made_of_is_a_number() -> None:
    assert plain_items(taken(Focal)) == {1}
    report = sg.verify(Focal)
    assert report.verdict == sg.PROVED, str(report)
    assert [*report.inputs] == ["args_0"]
    assert "args_1 (any number, without a gradient)" in str(report)
    assert "if *args are 2 arguments" in str(report)


def test_a_mistake_beside_a_number_is_confirmed() -> None:
    report = sg.verify(WrongFocal, suggest=False)
    assert report.verdict == sg.REFUTED, str(report)
    assert "confirmed in torch" in str(report)


@pytest.mark.parametrize("shapes", [(), ("n",)])
def test_a_value_is_stated_as_reports_name_it(shapes: tuple[str, ...]) -> None:
    report = sg.verify(Scaled, *shapes, static={"args_1": 2.0})
    assert report.verdict == sg.PROVED, str(report)
    assert "args_1 = 2.0" in str(report)
    wrong = sg.verify(WrongFocal, *shapes, static={"args_1": 3.0}, suggest=False)
    assert wrong.verdict == sg.REFUTED
    assert "confirmed in torch" in str(wrong)


def test_there_is_no_such_item() -> None:
    with pytest.raises(SpecError, match="no argument 'args_5'"):
        sg.verify(Scaled, static={"args_5": 2.0})


def windows(x: Any, before: int, behind: int) -> Any:
    """The diagonals of a band matrix that is kept row by row, of its transpose."""
    front = x.new_zeros(*x.shape[:-2], behind, x.shape[-1])
    back = x.new_zeros(*x.shape[:-2], before, x.shape[-1])
    every = torch.cat([front, x, back], dim=-2).unfold(-2, before + behind + 1, 1)
    return torch.diagonal(every, 0, -2, -1)


class Banded(Function):
    """Plain numbers are kept in a tensor, and are Python's own again."""

    factor = 1

    @staticmethod
    def forward(ctx: Any, x: Any, before: int, behind: int) -> Any:
        ctx.save_for_backward(torch.tensor([before, behind]))
        return windows(x.flip(-1), before, behind)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (band,) = ctx.saved_tensors
        before, behind = band.tolist()
        assert isinstance(before, int)
        return cls.factor * windows(g.flip(-1), behind, before), None, None


class BandedWrong(Banded):
    factor = 2


def test_plain_numbers_kept_in_a_tensor_are_numbers_again() -> None:
    """The gradient has three columns, at most: these are the shapes that are meant."""
    report = sg.verify(Banded, suggest=False)
    assert report.verdict == "PROVED"
    assert report.guessed.startswith("x[n, 3]")
    assert sg.verify(BandedWrong, suggest=False).verdict == "REFUTED"
