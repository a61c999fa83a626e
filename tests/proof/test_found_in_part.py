"""A gradient that is open in a region alone is proved elsewhere, which is printed beside it."""

from __future__ import annotations

from typing import Any

import symgrad as sg


class Barrier(sg.Function):
    """Minus infinity where the logarithm is not defined: nothing there is compared."""

    slip = 0.0

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return sg.where(x < 0, float("-inf"), sg.log(x))

    @classmethod
    def backward(cls, ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return sg.where(x < 0, float("inf"), grad / x + cls.slip * sg.exp(-x) * grad)


class Slipped(Barrier):
    slip = 1e-3


def found(function: Any, **options: Any) -> Any:
    return sg.verify(function, "n", suggest=False, **options).inputs["x"]


def test_where_the_rest_is_proved_is_found() -> None:
    judged = found(Barrier)
    assert judged.verdict == "UNDECIDED"
    said = [str(one) for one in judged.conditions]
    assert any("PROVED if x > 0" in one for one in said), said
    assert found(Barrier, assume={"x": "positive"}).verdict == "PROVED"


def test_what_is_wrong_there_is_not() -> None:
    judged = found(Slipped)
    assert judged.verdict == "REFUTED"
    assert not any("PROVED if" in str(one) for one in judged.conditions)
    assert found(Slipped, assume={"x": "positive"}).verdict == "REFUTED"
