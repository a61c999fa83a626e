"""Values that are computed, then compared with their own maximum: kernels against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg

pytestmark = pytest.mark.slow  # each program is compiled

INNER: dict[str, Callable[[Any], Any]] = {
    "tanh": sg.tanh,
    "exp": sg.exp,
    "sigmoid": sg.sigmoid,
    "gelu": sg.nn.functional.gelu,
    "softplus": lambda x: sg.log1p(sg.exp(x)),
    "product": lambda x: x @ x.T,
    "centred": lambda x: x - x.mean(-1, keepdim=True),
    "scaled": lambda x: x / (1 + (x * x).sum(-1, keepdim=True)),
}
OUTER: dict[str, Callable[[Any], Any]] = {
    "amax": lambda t: sg.amax(t, -1),
    "amin": lambda t: sg.amin(t, -1),
    "amax of all": lambda t: sg.amax(t, (0, 1)),
    "softmax": lambda t: sg.softmax(t, -1),
    "log_softmax": lambda t: sg.log_softmax(t, -1),
    "logsumexp": lambda t: sg.logsumexp(t, -1),
    "sort": lambda t: sg.sort(t, -1)[0],
    "maximum": lambda t: sg.maximum(t, sg.amax(t, -1, keepdim=True) * 0.5),
    "mask": lambda t: sg.where(t == sg.amax(t, -1, keepdim=True), t * t, t),
}


@cache
def programs(inner: str, outer: str) -> tuple[Any, Any]:
    def program(x: Any) -> Any:
        return OUTER[outer](INNER[inner](x))

    return program, sg.jit(program)


def derivatives(call: Any, values: Any) -> list[Any]:
    """The value, the gradient by a kernel of its own, and the gradient of the gradient."""
    x = sg.from_numpy(values.copy()).requires_grad_()
    y = call(x)
    (first,) = sg.autograd.grad((y * y).sum(), [x])
    y = call(x)
    (again,) = sg.autograd.grad((y * y).sum(), [x], create_graph=True)
    (second,) = sg.autograd.grad((again * again).sum(), [x])
    return [one.detach().numpy() for one in (y, first, again, second)]


@given(
    inner=st.sampled_from(sorted(INNER)),
    outer=st.sampled_from(sorted(OUTER)),
    rows=st.integers(1, 9),
    columns=st.integers(1, 40),
    seed=st.integers(0, 9),
    single=st.booleans(),
)
@settings(max_examples=15, deadline=None)
def test_derivatives_agree(
    inner: str, outer: str, rows: int, columns: int, seed: int, single: bool
) -> None:
    values = np.random.default_rng(seed).standard_normal((rows, columns))
    values = (values / 2).astype(np.float32 if single else np.float64)
    eager, compiled = programs(inner, outer)
    tolerance = 5e-3 if single else 1e-8
    pairs = zip(derivatives(eager, values), derivatives(compiled, values), strict=True)
    for wanted, found in pairs:
        scale = max(1.0, float(np.abs(wanted).max()))
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("rows", [1, 2, 9])
def test_exp_and_its_maximum(rows: int) -> None:
    """Every size up to several vectors with a remainder."""
    eager, compiled = programs("exp", "amax")
    for columns in range(1, 46):
        values = np.random.default_rng(columns).standard_normal((rows, columns))
        values = values.astype(np.float32)
        for wanted, found in zip(
            derivatives(eager, values), derivatives(compiled, values), strict=True
        ):
            scale = max(1.0, float(np.abs(wanted).max()))
            np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=1e-4 * scale)


class Largest(sg.Function):
    """Saves the maximum alone, and computes again what it was the maximum of."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        top = sg.amax(sg.exp(x), -1, keepdim=True)
        ctx.save_for_backward(x, top)
        return top

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        x, top = ctx.saved_tensors
        e = sg.exp(x)
        ties = sg.where(e == top, 1.0, 0.0)
        return grad_y / ties.sum(-1, keepdim=True) * ties * e


def test_a_backward_that_computes_again_what_it_compares() -> None:
    op = sg.compile(Largest, "f32[n m]")
    (case,) = op.caller.op.cases
    assert [one.source for one in case.residuals] == ["kernel", "output"]
    for rows in (1, 2, 9):
        for columns in range(1, 46):
            x = np.random.default_rng(columns).standard_normal((rows, columns))
            x = x.astype(np.float32)
            y, residuals = op.forward(x)
            found: Any = op.backward(residuals, np.ones_like(y))[0]
            wanted = np.exp(x) * (x == x.max(-1, keepdims=True))
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
