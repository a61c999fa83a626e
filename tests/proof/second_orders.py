"""A Function that is right to second order, and the finding on that of others."""

from __future__ import annotations

from typing import Any

import symgrad as sg
from symgrad.proof.report.records import Finding
from symgrad.proof.report.verdict import Verdict


def second_order(function: Any, *specs: str, **options: Any) -> Finding:
    """The finding on second order, of a backward that is right to first order."""
    report = sg.verify(function, *specs, order=2, suggest=False, **options)
    assert all(one.verdict is Verdict.PROVED for one in report.inputs.values()), str(report)
    (found,) = (one for one in report.protocol if one.name == "second order")
    return found


class Cube(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * g * x * x
