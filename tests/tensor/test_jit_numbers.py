"""Floats that compiled functions are called with: passed to the kernels, not compiled in."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg
from symgrad.tensor.jit.variant import Variant

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unoptimised")]  # programs are compiled

X = np.linspace(-1.5, 1.5, 6).reshape(2, 3)
floats = st.floats(-3, 3, width=32)


class Swish(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, beta: float = 1.0) -> Any:
        ctx.save_for_backward(x)
        ctx.beta = beta
        return x * sg.sigmoid(beta * x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        s = sg.sigmoid(ctx.beta * x)
        return g * (s + ctx.beta * x * s * (1 - s)), None


KERNELS = sg.compile(Swish, "f64[n m]")


def branches(x: Any, a: float, b: float) -> Any:
    if b > 1:
        return sg.tanh(x * a) * (1 - a**2) + b
    return x * x * b / 3


def applied(x: Any, a: float, b: float) -> Any:
    return Swish.apply(x, a) * b


def called(x: Any, a: float, b: float) -> Any:
    return KERNELS(x, beta=a) + math.exp(b) * x


def derived(x: Any, a: float, b: float) -> Any:
    return sg.func.grad(lambda t: (sg.sin(t * a) * b).sum())(x)


FUNCTIONS = {one.__name__: one for one in (branches, applied, called, derived)}
JITTED = {name: sg.jit(one, strict=True) for name, one in FUNCTIONS.items()}


def values(function: Any, a: float, b: float) -> list[Any]:
    """The value, its derivative, and the derivative of that."""
    x = sg.tensor(X).requires_grad_()
    y = function(x, a, b)
    (first,) = sg.autograd.grad((y * y).sum(), x, create_graph=True)
    (second,) = sg.autograd.grad((first * first).sum(), x)
    return [one.detach().numpy() for one in (y, first, second)]


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=12, deadline=None)
@given(a=floats, b=floats)
def test_a_float_is_what_the_call_passes(name: str, a: float, b: float) -> None:
    found, expected = values(JITTED[name], a, b), values(FUNCTIONS[name], a, b)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_one_kernel_serves_all_floats_of_a_region() -> None:
    traces: list[float] = []

    def function(x: Any, a: float) -> Any:
        traces.append(0.0)
        return x * a if a >= 0 else x - a

    jitted = sg.jit(function, strict=True)
    for a in (0.5, 0.25, 7.0, 0.0):
        np.testing.assert_array_equal(jitted(sg.tensor(X), a).numpy(), X * a)
    first = len(traces)
    for a in (-0.5, -1e-30):
        np.testing.assert_array_equal(jitted(sg.tensor(X), a).numpy(), X - a)
    assert first <= 2  # once with a symbol, once with a value, to compare
    assert len(traces) <= 4
    assert "double a," in jitted.lower(sg.tensor(X), 0.5).c


def test_what_asks_for_the_value_has_it() -> None:
    asks: list[Any] = [
        lambda x, a: x * float(f"{a:.1f}"), lambda x, a: x * {0.5: 2.0}.get(a, 3.0),
        lambda x, a: x * round(a), lambda x, a: x * (a if type(a) is float else 7),
        lambda x, a: (x, a)[0] + max(a, 0.25), lambda x, a: x.clamp(-a * a, a * a),
    ]  # fmt: skip
    for function in asks:
        jitted = sg.jit(function, strict=True)
        for a in (0.5, 0.25, 1.5, 0.5, math.nan, math.inf):
            if math.isfinite(a) or function is not asks[2]:
                np.testing.assert_array_equal(
                    jitted(sg.tensor(X), a).numpy(), function(sg.tensor(X), a).numpy()
                )


def test_a_result_may_hold_the_float() -> None:
    jitted = sg.jit(lambda x, a: (x * a, a), strict=True)
    for a in (0.5, 2.5):
        assert jitted(sg.tensor(X), a)[1] == a


def test_zeros_of_both_signs_and_precisions() -> None:
    jitted = sg.jit(lambda x, a: a / x.abs(), strict=True)
    for a in (0.0, -0.0):
        found = jitted(sg.tensor(X), a).numpy()
        assert np.signbit(found).all() == (str(a) == "-0.0")
    single = sg.jit(lambda x, a: x * (1 - a), strict=True)
    x = X.astype(np.float32)
    for a in (1e-9, 0.1):
        np.testing.assert_array_equal(single(sg.tensor(x), a).numpy(), x * np.float32(1 - a))


@pytest.mark.parametrize("beta", [0.5, -2.0])
def test_vmap_of_a_compiled_op_at_a_number(beta: float) -> None:
    x = sg.tensor(X.reshape(2, 3, 1)).requires_grad_()
    y = sg.func.vmap(lambda one: KERNELS(one, beta))(x)
    np.testing.assert_allclose(y.detach().numpy(), Swish.apply(x, beta).detach().numpy())
    (slope,) = sg.autograd.grad(y.sum(), x)
    (other,) = sg.autograd.grad(Swish.apply(x, beta).sum(), x)
    np.testing.assert_allclose(slope.numpy(), other.numpy())


def test_a_float_inside_of_vmap_in_a_trace() -> None:
    def function(x: Any, a: float) -> Any:
        return sg.func.vmap(lambda one: sg.sin(one * a) if a > 0 else one)(x)

    jitted = sg.jit(function, strict=True)
    for a in (0.5, 2.0, -1.0):
        expected = np.sin(X * a) if a > 0 else X
        np.testing.assert_allclose(jitted(sg.tensor(X), a).numpy(), expected)


def test_a_refused_number_is_refused_in_a_trace() -> None:
    class Root(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, a: float = 1.0) -> Any:
            ctx.a = a
            return x * math.sqrt(a)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * math.sqrt(ctx.a), None

    kernels = sg.compile(Root, "f64[n m]")
    jitted = sg.jit(lambda x, a: kernels(x, a), strict=True)
    np.testing.assert_allclose(jitted(sg.tensor(X), 4.0).numpy(), 2 * X)
    with pytest.raises(sg.SymgradError, match="compiled for"):
        jitted(sg.tensor(X), -4.0)


def test_patterns_are_counted_for_each_value() -> None:
    variant = Variant(lambda x, a: x * float(str(a)), (sg.tensor(X), 0.5), {}, [1])
    for a in range(40):
        tensors = [sg.tensor(X), sg.tensor(float(a), dtype=sg.float64)]
        variant.prepare(tensors, [])
    assert variant.fixed == {1}
