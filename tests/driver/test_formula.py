"""Formulas and index notation as people read them."""

from __future__ import annotations

import ops

from symgrad import stages
from symgrad.frontend.trace import trace
from symgrad.ir.formula import formulas
from symgrad.kernels import plan, snake_case


def _formulas(function: type, kernel: int) -> tuple[str, ...]:
    return formulas(plan(trace(function)).kernels[kernel].graph)


def test_linear() -> None:
    assert _formulas(ops.Linear, 0) == ("y = x @ weight.T + bias",)
    assert _formulas(ops.Linear, 1) == (
        "grad_x = grad_y @ weight",
        "grad_weight = grad_y.T @ x",
        "grad_bias = sum(grad_y, axes=(0,))",
    )


def test_layer_norm() -> None:
    assert _formulas(ops.LayerNorm, 0) == (
        "centred = x - mean(x, axes=(1,))",
        "inverse_deviation = rsqrt(mean(square(centred), axes=(1,)) + 1e-05)",
        "normalized = centred*inverse_deviation",
        "y = normalized*weight + bias",
    )


def test_index_notation() -> None:
    text = stages.index(plan(trace(ops.Linear)))
    assert "y[i, j] = sum[k](x[i, k]*weight[j, k]) + bias[j]" in text


def test_schedule_fuses_softmax_cross_entropy() -> None:
    """The whole forward is one loop over rows."""
    text = stages.schedule(plan(trace(ops.SoftmaxCrossEntropy))).split("#")[1]
    assert sum(line.startswith("for ") for line in text.splitlines()) == 1


def test_snake_case() -> None:
    assert snake_case("SoftmaxCrossEntropy") == "softmax_cross_entropy"
    assert snake_case("GELU") == "gelu"
    assert snake_case("MyGELUFn2") == "my_gelu_fn2"
