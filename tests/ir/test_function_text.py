"""The text of a Function, which certificates state the digest of."""

from __future__ import annotations

from typing import Any

import symgrad as sg
from symgrad.frontend.trace import trace
from symgrad.ir.printer import function_text
from symgrad.ops.record import apply


class Scaled(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.exp() * 2.0

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x.exp() * 2.0


def test_what_a_proof_adds_to_a_graph_is_not_in_the_text() -> None:
    graphs = trace(Scaled, "n")
    before = function_text(graphs)
    assert before.count("return") == 1
    assert "grad_x" in before
    (case,) = graphs.cases
    apply("sin", case.inputs[0])
    assert function_text(graphs) == before
