"""Numbers without a default whose type the program asks for are judged as Python numbers."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function


class Scaled(Function):
    """``is_one``: a question about the number, for which backward gives something else."""

    is_one: Callable[[Any], bool]
    factor = 2

    @staticmethod
    def forward(ctx: Any, x: Any, alpha: Any) -> Any:
        ctx.alpha = alpha
        return x * alpha

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        hasattr(ctx, "alpha")  # asks of something else
        return g * (cls.factor * ctx.alpha if cls.is_one(ctx.alpha) else ctx.alpha), None


def _is_detached(alpha: Any) -> bool:
    try:
        alpha.detach()
    except AttributeError:
        return False
    return True


OF_NUMBERS: dict[str, Callable[[Any], bool]] = {
    "no tensor": lambda alpha: not isinstance(alpha, torch.Tensor),
    "is_tensor": lambda alpha: not torch.is_tensor(alpha),
    "no attribute": lambda alpha: not hasattr(alpha, "shape"),
    "raises": lambda alpha: not _is_detached(alpha),
    "a Number": lambda alpha: isinstance(alpha, numbers.Number),
    "type": lambda alpha: type(alpha) is float,
    "attribute": lambda alpha: hasattr(alpha, "is_integer"),
}


@pytest.mark.parametrize("asks", OF_NUMBERS)
def test_what_is_wrong_for_numbers_is_refuted(asks: str) -> None:
    wrong = type("Wrong", (Scaled,), {"is_one": staticmethod(OF_NUMBERS[asks])})
    report = sg.verify(wrong, suggest=False)
    assert report.verdict >= sg.SURROGATE, str(report)
    assert "alpha = " in report.stated


@pytest.mark.parametrize("asks", OF_NUMBERS)
def test_what_is_right_for_both_is_proved(asks: str) -> None:
    members = {"is_one": staticmethod(OF_NUMBERS[asks]), "factor": 1}
    report = sg.verify(type("Right", (Scaled,), members), suggest=False)
    assert report.verdict is sg.PROVED, str(report)
    assert "alpha" in " ".join(report.quantified)


def test_an_integer_is_judged_as_well() -> None:
    wrong = type("Wrong", (Scaled,), {"is_one": staticmethod(lambda a: isinstance(a, int))})
    report = sg.verify(wrong, suggest=False)
    assert report.verdict >= sg.SURROGATE, str(report)
    assert "alpha = 1" in report.stated


def test_what_is_wrong_for_tensors_alone_is_a_condition() -> None:
    wrong = type("Wrong", (Scaled,), {"is_one": staticmethod(torch.is_tensor)})
    report = sg.verify(wrong, suggest=False)
    assert report.verdict is sg.PROVED, str(report)
    assert "for x[n, m], alpha (any number" in " ".join(map(str, report.conditions))


def test_kernels_take_any_number() -> None:
    class Plain(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, alpha: float) -> Any:
            ctx.alpha = float(alpha) if type(alpha) is int else alpha
            return x * ctx.alpha

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.alpha, None

    with pytest.warns(sg.InferredShapesWarning):
        op = sg.compile(Plain)
    y, _ = op.forward(torch.ones(2, 3).numpy(), 3.0)
    assert y.tolist() == [[3.0] * 3] * 2
