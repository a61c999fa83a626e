"""Functions of inverse functions, of multiples of an angle, and conditions that never hold."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg


def op(forward: str, backward: str) -> type[sg.Function]:
    """A Function of one input x with the output y, out of two expressions."""
    value = eval(f"lambda x: {forward}", {"sg": sg})
    slope = eval(f"lambda x, y, g: {backward}", {"sg": sg})

    class Op(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = value(x)
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return slope(x, y, g)

    return Op


INSIDE = "(-1, 1)"
RIGHT = [
    ("x.cos()", "-2 * g * (x / 2).sin() * (x / 2).cos()", ""),
    ("x.sin()", "g * (1 - 2 * (x / 2).sin() ** 2)", ""),
    ("(3 * x).sin()", "3 * g * (1 - 2 * (1.5 * x).sin() ** 2)", ""),
    ("(x / 3).cos()", "-g * (3 * (x / 9).sin() - 4 * (x / 9).sin() ** 3) / 3", ""),
    ("x.atan()", "g * x.atan().cos() ** 2", ""),
    ("x.atan()", "g * y.cos() ** 2", ""),
    ("x.atan().sin()", "g * (1 + x * x) ** -1.5", ""),
    ("x.asin()", "g / y.cos()", INSIDE),
    ("x.acos()", "-g / y.sin()", INSIDE),
    ("x * x", "2 * g * x.asin().sin()", INSIDE),
    ("x * x", "2 * g * x.acos().cos()", INSIDE),
    ("x.asin().cos()", "-g * x / y", INSIDE),
    ("x.asinh()", "g / y.cosh()", ""),
    ("x.asinh()", "g / (y.exp() - x)", ""),
    ("(2 * x.asinh()).cosh()", "4 * g * x", ""),
    ("x.cosh().clamp(min=1.0)", "g * x.sinh()", ""),
    ("x * x", "sg.where(x.cosh() < 1, 0, 2 * g * x)", ""),
    ("x * x", "sg.where((x - 3) ** 2 < 0, 0, 2 * g * x)", ""),
]
WRONG = [
    ("x.cos()", "-2 * g * (x / 2).sin() * (x / 2).sin()", ""),
    ("x.sin()", "g * (1 - 2 * (x / 3).sin() ** 2)", ""),
    ("x.sin()", "g * (1 - (x / 2).sin() ** 2)", ""),
    ("(x / 3).cos()", "-g * (3 * (x / 9).sin() + 4 * (x / 9).sin() ** 3) / 3", ""),
    ("x.atan()", "g * y.cos()", ""),
    ("x.asin()", "-g / y.cos()", INSIDE),
    ("x.acos()", "g / y.sin()", INSIDE),
    ("x * x", "2 * g * x.asin().cos()", INSIDE),
    ("x * x", "2 * g * x.acos().sin()", INSIDE),
    ("x.asinh()", "g / y.sinh()", ""),
    ("x.asinh()", "2 * g / (y.exp() + x)", ""),
    ("x.cosh().clamp(min=1.5)", "g * x.sinh()", ""),
    ("x * x", "sg.where(x.cosh() < 2, 0, 2 * g * x)", ""),
    ("x * x", "sg.where((x - 3) ** 2 * (x + 1) < 0, 0, 2 * g * x)", ""),
    ("x * x", "sg.where((x - 3) ** 3 < 0, 0, 2 * g * x)", ""),
]


@pytest.mark.parametrize(("forward", "backward", "where"), RIGHT)
def test_right_ones_are_proved(forward: str, backward: str, where: str) -> None:
    facts = {"x": where} if where else None
    assert sg.verify(op(forward, backward), "n", assume=facts).verdict == "PROVED"


@pytest.mark.parametrize(("forward", "backward", "where"), WRONG)
def test_slips_are_refuted(forward: str, backward: str, where: str) -> None:
    facts = {"x": where} if where else None
    report = sg.verify(op(forward, backward), "n", assume=facts, suggest=False)
    assert report.verdict == "REFUTED"
