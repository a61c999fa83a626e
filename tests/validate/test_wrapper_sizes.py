"""Sizes that only a multiple of them tells, and arrays that are called like sizes."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg
from symgrad.emission import emit
from tests.validate.test_wrappers import judged, planned


class Product(sg.Function):
    """Of two arrays of one shape."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y, g * x


def named(first: str, second: str) -> Any:
    """The product of two arrays of these names, the second added over rows."""
    scope: dict[str, Any] = {"sg": sg}
    exec(
        f"""
class Named(sg.Function):
    @staticmethod
    def forward(ctx, {first}, {second}):
        ctx.save_for_backward({first}, {second})
        return {first} * {second}

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, (g * a).sum(0)
""",
        scope,
    )
    return scope["Named"]


RIGHT = {
    "2*n 3*n": ("f32[2*n 3*n]", "f32[2*n 3*n]"),
    "4*n": ("f32[4*n]", "f32[4*n]"),
    "n 2*m": ("f32[n 2*m]", "f32[n 2*m]"),
    "2*n, told later": ("f32[2*n]", "f32[2*n]"),
    "2*n+1": ("f32[2*n+1]", "f32[2*n+1]"),
    "n+1": ("f32[n+1 m]", "f32[n+1 m]"),
    "6*n 4*m": ("f64[6*n 4*m 2]", "f64[6*n 4*m 2]"),
}


@pytest.mark.parametrize("what", RIGHT)
def test_sizes_that_a_multiple_tells_are_validated(what: str) -> None:
    outcome = judged(planned(Product, *RIGHT[what], name="product"))
    assert outcome.validated, f"line {outcome.line}: {outcome.reason}"


@pytest.mark.parametrize(("first", "second", "sizes"), [
    ("x", "w", "h w"), ("n", "m", "n m"), ("m", "n", "n m"), ("n", "n_", "n m"),
    ("x", "m_", "m_ m"), ("m_", "m", "m m_"), ("out", "m", "n m"),
])  # fmt: skip
def test_arrays_that_are_called_like_sizes_are_validated(
    first: str, second: str, sizes: str
) -> None:  # fmt: skip
    specs = (f"f32[{sizes}]", f"f32[{sizes.split()[1]}]")
    outcome = judged(planned(named(first, second), *specs, name="named"))
    assert outcome.validated, f"line {outcome.line}: {outcome.reason}"


@pytest.mark.parametrize(("old", "new"), [
    ("_x_1 != 2*m", "_x_1 != 2*n"), ("_x_1 != 2*m", "_x_1 < 2*m"),
    ("        if _x_1 != 2*m:\n            raise _Unusual\n", ""),
    ("m = _x_1 // 2", "m = (_x_1 - 2) // 2 + 1"), ("m = _x_1 // 2", "m = -(_x_1 // 2)"),
])  # fmt: skip
def test_wrong_quotients_are_found(old: str, new: str) -> None:
    op = planned(Product, *RIGHT["n 2*m"], name="product")
    text = emit(op, "").wrapper()
    assert old in text
    assert not judged(op, text.replace(old, new)).validated


@pytest.mark.parametrize(
    "names", [("h, w_", "w_, h"), ("(h, w_", "(h, w"), ("w_, _p_w", "h, _p_w"), ("_p_w", "w_")]
)
def test_sizes_and_arrays_of_one_name_are_told_apart(names: tuple[str, str]) -> None:
    """What is passed for the size is the size, for the array the array."""
    op = planned(named("x", "w"), "f32[h w]", "f32[w]", name="named")
    text = emit(op, "").wrapper()
    start = text.index("_call_named_forward(")
    call = text[start : text.index(")", start)]
    changed = call.replace(*names, 1)
    assert changed != call
    assert not judged(op, text.replace(call, changed)).validated
