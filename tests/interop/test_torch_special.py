"""Special functions of torch that are made of others: erfcx, ndtr, log_ndtr."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function
special: Any = torch.special
ROOT_2, BELL = math.sqrt(2), math.sqrt(2 * math.pi)


class Applied(Function):
    function: Any
    slope: Any
    factor = 1

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return cls.function(x)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return cls.factor * g * cls.slope(x)


SLOPES = {
    "erfcx": (special.erfcx, lambda x: 2 * x * special.erfcx(x) - 2 / math.sqrt(math.pi)),
    "ndtr": (special.ndtr, lambda x: torch.exp(-x * x / 2) / BELL),
    "log_ndtr": (special.log_ndtr, lambda x: math.sqrt(2 / math.pi) / special.erfcx(-x / ROOT_2)),
    "log_ndtr, by logarithms": (
        special.log_ndtr,
        lambda x: torch.exp(-x * x / 2 - 0.5 * math.log(2 * math.pi) - special.log_ndtr(x)),
    ),
    "by hand": (
        lambda x: torch.log(0.5 * (1 + torch.erf(x / ROOT_2))),
        lambda x: torch.exp(-x * x / 2 - special.log_ndtr(x)) / BELL,
    ),
    "in two pieces": (
        lambda x: torch.where(x > 0, special.erfcx(x).log() - x * x, torch.erfc(x).log()),
        lambda x: -2 / math.sqrt(math.pi) / special.erfcx(x),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SLOPES)
def test_slopes(name: str) -> None:
    function, slope = map(staticmethod, SLOPES[name])
    for factor, verdict in ((1, sg.PROVED), (2, sg.REFUTED)):
        members = {"function": function, "slope": slope, "factor": factor}
        report = sg.verify(type("Special", (Applied,), members), "n", suggest=False)
        assert report.verdict == verdict, str(report)
