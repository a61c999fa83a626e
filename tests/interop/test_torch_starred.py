"""``*args`` of tensors: how many there are is read from the code, judged, and printed."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.frontend.starred import Starred, starred_of  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function


class Sum(Function):
    @staticmethod
    def forward(ctx: Any, *xs: Any) -> Any:
        ctx.count = len(xs)
        return sum(xs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return (g,) * ctx.count


class WrongThird(Sum):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return tuple(g if place < 2 else 2 * g for place in range(ctx.count))


class Times(Sum):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return (g,) * 3


class Rest(Sum):
    @staticmethod
    def forward(ctx: Any, w: Any, *xs: Any) -> Any:
        ctx.save_for_backward(w, *xs)
        return w * sum(xs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        w, *xs = ctx.saved_tensors
        return g * sum(xs), *[g * w for _ in xs]


class RestOfFour(Rest):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        w, *xs = ctx.saved_tensors
        return (g * sum(xs),) + 2 * (g * w,) + (g * w, g * w)


class Indexed(Sum):
    @staticmethod
    def forward(ctx: Any, *xs: Any) -> Any:
        ctx.save_for_backward(*xs)
        return xs[0] * xs[1] + xs[2]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y, _ = ctx.saved_tensors
        return g * y, g * x, g


class Sliced(Indexed):
    """More tensors are ignored, but backward returns three gradients."""

    @staticmethod
    def forward(ctx: Any, *xs: Any) -> Any:
        ctx.save_for_backward(*xs)
        first = xs[:2]
        return first[0] * first[1] + xs[-1]


class TakenApart(Indexed):
    @staticmethod
    def forward(ctx: Any, *xs: Any) -> Any:
        ctx.save_for_backward(*xs)
        x, y, z = xs
        return x * y + z


class Asserted(Sum):
    @staticmethod
    def forward(ctx: Any, *xs: Any) -> Any:
        assert len(xs) == 4
        ctx.count = 4
        return sum(xs)


class Raising(Sum):
    @staticmethod
    def forward(ctx: Any, *xs: Any) -> Any:
        if 1 != len(xs):  # noqa: SIM300
            raise ValueError
        ctx.count = 1
        return 1 * xs[0]


class Needing(Sum):
    @staticmethod
    def forward(ctx: Any, *xs: Any) -> Any:
        ctx.count = len(xs)
        return xs[2] + sum(xs[:2]) + sum(xs[3:])


RIGHT = {
    Sum: (2, False, "2 or 3 tensors"), Rest: (2, False, "2 or 3 tensors"),
    Times: (3, True, "3 tensors"), Indexed: (3, True, "3 tensors"),
    Sliced: (3, True, "3 tensors"), TakenApart: (3, True, "3 tensors"),
    Asserted: (4, True, "4 tensors"), Raising: (1, True, "1 tensor"),
    Needing: (4, False, "4 or 5 tensors"),
}  # fmt: skip


@pytest.mark.parametrize("function", RIGHT)
def test_their_number_is_read_and_printed(function: Any) -> None:
    count, stated, said = RIGHT[function]
    assert starred_of(function) == Starred(count, stated)
    report = sg.verify(function, suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert any(one.text.startswith("*xs ") and one.text.endswith(f" {said}")
               for one in report.conditions), str(report)  # fmt: skip
    given = ["n"] * (count + (function is Rest))
    assert sg.verify(function, *given, suggest=False).verdict == sg.PROVED


def test_one_more_is_judged_where_nothing_says_their_number() -> None:
    assert sg.verify(WrongThird, suggest=False).verdict == sg.REFUTED
    assert sg.verify(WrongThird, "n", "n", suggest=False).verdict == sg.PROVED


def test_a_number_that_backward_returns_does_not_count_what_comes_before() -> None:
    assert starred_of(RestOfFour) == Starred(4, True)
    assert sg.verify(RestOfFour, suggest=False).verdict == sg.PROVED


class TimesTwice(Times):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return (g, 2 * g, g)


def test_a_wrong_gradient_is_refuted_for_the_number_that_is_stated() -> None:
    report = sg.verify(TimesTwice, suggest=False)
    assert report.verdict == sg.REFUTED
    assert report.inputs["xs_1"].verdict == sg.REFUTED
    assert report.inputs["xs_2"].verdict == sg.PROVED
