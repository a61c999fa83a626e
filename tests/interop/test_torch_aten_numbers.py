"""ATen operations that are called directly, with numbers that nobody states."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers

Function: Any = torch.autograd.Function


class Normalized(Function):
    """``native_layer_norm`` with any number for eps."""

    factor = 1

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any, eps: Any) -> Any:
        size = [x.shape[-1]]
        y, mean, rstd = torch.ops.aten.native_layer_norm(x, size, weight, bias, eps)
        ctx.save_for_backward(x, weight, bias, mean, rstd)
        return y

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, weight, bias, mean, rstd = ctx.saved_tensors
        found = torch.ops.aten.native_layer_norm_backward(
            cls.factor * g, x, [x.shape[-1]], mean, rstd, weight, bias, [True, True, True]
        )
        return (*found, None)


def test_a_number_is_taken_where_the_schema_says_float() -> None:
    shapes = "n m", "m", "m", ""
    stated: dict[str, Any] = {"assume": {"eps": "constant"}, "suggest": False}
    report = sg.verify(Normalized, *shapes, **stated)
    assert report.verdict is sg.PROVED, str(report)
    wrong = type("Wrong", (Normalized,), {"factor": 2})
    assert sg.verify(wrong, *shapes, **stated).verdict is sg.REFUTED


class OfBatches(Function):
    """``native_batch_norm`` and its derivative, with any numbers."""

    factor = 1

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any, momentum: Any, eps: Any) -> Any:
        y, *kept = torch.native_batch_norm(x, weight, bias, None, None, True, momentum, eps)
        ctx.save_for_backward(x, weight, *kept)
        ctx.eps = eps
        return y

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, weight, mean, rstd = ctx.saved_tensors
        found = torch.ops.aten.native_batch_norm_backward(
            cls.factor * g, x, weight, None, None, mean, rstd, True, ctx.eps, [True, True, True]
        )
        return (*found, None, None)


def test_numbers_of_a_function_of_torch_are_taken_as_its_schema_says() -> None:
    shapes = "n m", "m", "m", "", ""
    constant = dict.fromkeys(("eps", "momentum"), "constant, number")
    stated: dict[str, Any] = {"assume": constant, "suggest": False}
    report = sg.verify(OfBatches, *shapes, **stated)
    assert report.verdict is sg.PROVED, str(report)
    wrong = type("Wrong", (OfBatches,), {"factor": 2})
    assert sg.verify(wrong, *shapes, **stated).verdict is sg.REFUTED


def test_that_torch_asks_for_the_type_of_a_number_is_no_question_of_the_program() -> None:
    class Added(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, beta: float) -> Any:
            ctx.beta = beta
            return torch.add(x, x, alpha=beta)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] * (1 + ctx.beta), None

    report = sg.verify(Added)
    assert report.verdict == "PROVED"
    assert "passed as a tensor" not in str(report)
