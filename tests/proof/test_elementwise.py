"""What no axis counts for is one program for all shapes, and is looked at once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest

import symgrad as sg
from symgrad.frontend.request import bind
from symgrad.frontend.trace import trace_request
from symgrad.proof import surrogates
from symgrad.proof.elementwise import without_shape


class Step(sg.Function):
    """A step with the slope of a hat, times a number."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any) -> Any:
        ctx.save_for_backward(x, scale)
        return (x > 0).float() * scale

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, scale = ctx.saved_tensors
        return grad * (1 - x.abs()).clamp(min=0) * scale, None


class Steeper(Step):
    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, scale = ctx.saved_tensors
        return grad * (1 - x.abs()).clamp(min=0) * scale * 2, None


class Centred(sg.Function):
    """The sign of what is left once the mean is taken away: an axis counts."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any) -> Any:
        ctx.save_for_backward(scale)
        return (x - x.mean(-1, keepdim=True)).sign() * scale

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (scale,) = ctx.saved_tensors
        return grad * scale, None


class Marked(Step):
    """What has the index of an element demands that it is one."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any) -> Any:
        ctx.save_for_backward(x, scale)
        return sg.one_hot(x.argmax(-1), x.shape[-1]).float() * scale


def form(function: type[sg.Function], x: str, scale: str, *names: str) -> Hashable | None:
    (case,) = trace_request(bind(function, (x, scale))).cases
    return without_shape(case, names or ("x",))


def test_an_elementwise_program_is_the_same_for_all_shapes() -> None:
    assert form(Step, "n", "") is not None
    assert len({form(Step, x, "") for x in ("", "n", "n m", "n n", "3 n 2 k")}) == 1
    assert form(Step, "n m", "") == form(Step, "n m", "n m")


def test_other_programs_have_other_keys() -> None:
    assert form(Steeper, "n m", "") != form(Step, "n m", "")


@pytest.mark.parametrize(
    ("function", "x", "scale", "names"),
    [
        (Centred, "n m", "", ("x",)),
        (Marked, "n m", "", ("x",)),
        (Step, "n m", "m", ("x",)),  # numbers of the last axis
        (Step, "n m", "", ("scale",)),  # the gradient of a number is a sum
        (Step, "n", "", ("x", "scale")),
        (Step, "1", "n", ("x",)),  # the gradient of what is repeated is a sum, too
    ],
)
def test_where_an_axis_counts_there_is_no_key(
    function: type[sg.Function], x: str, scale: str, names: tuple[str, ...]
) -> None:
    assert form(function, x, scale, *names) is None


class Hat(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return (x > 0).float()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * (1 - x.abs()).clamp(min=0)


def test_a_surrogate_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found, plain = list[Any](), surrogates._found

    def counted(*args: Any) -> Any:
        found.append(plain(*args))
        return found[-1]

    monkeypatch.setattr(surrogates, "_found", counted)
    report = sg.verify(Hat)
    assert [*report.beside.values()] == ["SURROGATE?"] * 2
    assert len(found) == 1
