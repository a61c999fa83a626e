"""Inputs that forward writes in place: statistics are updated so; of others autograd is told."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg
from symgrad.errors import UnsupportedOpError


class Normalised(sg.Function):
    """Its running mean is an argument, as in batch normalisation."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any, running: Any, momentum: float = 0.1) -> Any:
        running.mul_(1 - momentum).add_(momentum * x.mean(0))
        return x - x.mean(0)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return cls.scale * (g - g.mean(0)), None


class Doubled(sg.Function):
    """What gets a gradient is written, and ``mark_dirty`` is not called."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        x.mul_(2)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g


class Counting(sg.Function):
    """Backward writes into an input: a second one reads another."""

    @staticmethod
    def forward(ctx: Any, x: Any, seen: Any) -> Any:
        ctx.save_for_backward(seen)
        return 2 * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (seen,) = ctx.saved_tensors
        seen.add_(1)
        return 2 * g, None


def protocol(function: type[sg.Function], *specs: str) -> dict[str, str]:
    report = sg.verify(function, *specs)
    return {one.name: f"{one.verdict} {one.text}" for one in report.protocol}


def test_statistics_are_updated() -> None:
    report = sg.verify(Normalised, "n m", "m")
    assert str(report.verdict) == "PROVED"
    said = protocol(Normalised, "n m", "m")["what forward writes"]
    assert said == "PROVED forward updates running, which gets no gradient"
    wrong = type("Wrong", (Normalised,), {"scale": 2})
    assert str(sg.verify(wrong, "n m", "m").verdict) == "REFUTED"


def test_what_gets_a_gradient_is_not_written_unsaid() -> None:
    assert "call ctx.mark_dirty" in protocol(Doubled, "n")["what forward writes"]
    assert str(sg.verify(Doubled, "n").verdict) == "REFUTED"


def test_backward_writes_nothing() -> None:
    assert protocol(Counting, "n", "n")["a second call agrees"].startswith("REFUTED seen is")


def test_kernels_update_nothing() -> None:
    with pytest.raises(UnsupportedOpError, match="writes into running"):
        sg.compile(Normalised, "n m", "m")
