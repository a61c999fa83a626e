"""How many gradients backward returns: one for each argument that a call of ``apply`` passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import NotProvedError  # noqa: E402

pytestmark = pytest.mark.peers

FUNCTION: Any = torch.autograd.Function


class Scaled(FUNCTION):
    """Backward returns a gradient for x alone."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: float = 3.0) -> Any:
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.scale


class Shifted(FUNCTION):
    """Backward returns no gradient for the last argument."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: float = 3.0, way: str = "up") -> Any:
        ctx.scale = scale
        return x * scale + (1.0 if way == "up" else -1.0)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.scale, None


class Longer(Scaled):
    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.scale, None, None


class Affine(FUNCTION):
    """Backward returns a gradient for b only where it is there."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, b: Any = None) -> Any:
        ctx.save_for_backward(x, w, b)
        y = x * w
        return y if b is None else y + b

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, w, b = ctx.saved_tensors
        found = grad * w, grad * x
        return found if b is None else (*found, grad)


class AffineAlways(Affine):
    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, w, b = ctx.saved_tensors
        return grad * w, grad * x, None if b is None else grad


class AffineAsking(Affine):
    """Fails where b is left out, for it reads its flag; and where it is None, too."""

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, w, b = ctx.saved_tensors
        found = grad * w, grad * x
        given = grad if ctx.needs_input_grad[2] else None
        return found if b is None else (*found, given)


def _runs(function: Any, *values: Any) -> bool:
    """Does torch accept the gradients of this call?"""
    given = [
        torch.full((2, 3), 0.5, dtype=torch.float64, requires_grad=True) if one == "tensor" else one
        for one in values
    ]
    try:
        function.apply(*given).sum().backward()
    except (RuntimeError, IndexError):
        return False
    return True


def _conditions(report: Any) -> list[str]:
    return [one.text for one in report.inputs["x"].conditions]


def test_a_default_without_a_gradient_is_left_out() -> None:
    report = sg.verify(Scaled, "n m")
    assert _runs(Scaled, "tensor")
    assert not _runs(Scaled, "tensor", 2.0)
    assert report.verdict is sg.PROVED
    assert _conditions(report) == ["scale is left out"]
    assert not report.quantified
    assert dict(report.values) == {"scale": "3.0"}


def test_a_default_that_is_stated_is_passed() -> None:
    report = sg.verify(Scaled, "n m", static={"scale": 3.0}, suggest=False)
    assert report.verdict is sg.REFUTED
    assert "1 gradient for 2 arguments" in report.inputs["x"].reason


def test_defaults_before_the_one_that_is_left_out_are_any() -> None:
    report = sg.verify(Shifted, "n m")
    assert _runs(Shifted, "tensor", 2.0)
    assert not _runs(Shifted, "tensor", 2.0, "down")
    assert report.verdict is sg.PROVED
    assert _conditions(report) == ["way is left out"]
    assert report.quantified == ("all real scale",)
    assert dict(report.values) == {"way": "'up'"}


def test_more_gradients_may_be_none() -> None:
    report = sg.verify(Longer, "n m")
    assert _runs(Longer, "tensor")
    assert _runs(Longer, "tensor", 2.0)
    assert report.verdict is sg.PROVED
    assert not _conditions(report)
    assert report.quantified == ("all real scale",)


def test_kernels_hold_the_default_that_is_left_out() -> None:
    with pytest.raises(NotProvedError):
        sg.compile(Scaled, "f32[n m]", static={"scale": 3.0})
    op = sg.compile(Scaled, "f32[n m]")
    x = np.ones((2, 3), np.float32)
    assert op.forward(x)[0][0, 0] == 3.0
    with pytest.raises(sg.SymgradError):
        op.forward(x, scale=2.0)


def test_a_tensor_that_is_left_out_is_not_none() -> None:
    report = sg.verify(Affine, "n m", "n m", "n m")
    assert _runs(Affine, "tensor", "tensor")
    assert _runs(Affine, "tensor", "tensor", "tensor")
    assert not _runs(Affine, "tensor", "tensor", None)
    assert report.verdict is sg.PROVED
    assert _conditions(report) == ["b is left out rather than None (with b absent)"]


def test_a_tensor_may_be_left_out_or_none() -> None:
    report = sg.verify(AffineAlways, "n m", "n m", "n m")
    assert _runs(AffineAlways, "tensor", "tensor")
    assert _runs(AffineAlways, "tensor", "tensor", None)
    assert report.verdict is sg.PROVED
    assert not _conditions(report)


def test_a_tensor_that_may_be_neither_left_out_nor_none() -> None:
    report = sg.verify(AffineAsking, "n m", "n m", "n m", suggest=False)
    assert not _runs(AffineAsking, "tensor", "tensor")
    assert not _runs(AffineAsking, "tensor", "tensor", None)
    assert report.verdict is sg.REFUTED
    assert "with b absent: backward failed" in report.inputs["x"].reason
