"""Gradients of eager tensors against central differences and full Jacobians, without a peer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg

UNARY: dict[str, Callable[[Any], Any]] = {
    "sin": lambda x: x.sin(),
    "tanh": lambda x: x.tanh(),
    "sigmoid": lambda x: x.sigmoid(),
    "square": lambda x: x * x,
    "softmax": lambda x: x.softmax(-1),
    "transposed": lambda x: x.t().t(),
    "centred": lambda x: x - x.mean(0, keepdim=True),
    "cumulated": lambda x: x.cumsum(1),
    "flipped": lambda x: x.flip(0),
    "part": lambda x: sg.cat([x[:, 1:], x[:, :1]], 1),
    "gathered": lambda x: x[sg.tensor([1, 0])],
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "sub": lambda x, y: x - 2 * y,
    "through a matrix": lambda x, y: x @ y.t() @ y / 4,
    "row": lambda x, y: x * y[0],
}
SHAPE = (2, 3)
seeds = st.integers(0, 10_000)


def leaf(seed: int, shape: tuple[int, ...] = SHAPE) -> Any:
    """A leaf in double precision."""
    values = np.random.default_rng(seed).uniform(-1, 1, shape)
    return sg.tensor(values, requires_grad=True)


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    """Operations on earlier results, by place: a graph with fan-out."""
    length = draw(st.integers(1, 6))
    names = st.sampled_from([*UNARY, *BINARY])
    return [
        (draw(names), draw(st.integers(0, place + 1)), draw(st.integers(0, place + 1)))
        for place in range(length)
    ]


def run(program: list[tuple[str, int, int]], x: Any, y: Any) -> Any:
    values = [x, y]
    for name, first, second in program:
        if name in UNARY:
            values.append(UNARY[name](values[first]))
        else:
            values.append(BINARY[name](values[first], values[second]))
    return values[-1]


@settings(max_examples=30)
@given(programs(), seeds)
def test_graphs(program: list[tuple[str, int, int]], seed: int) -> None:
    x, y = leaf(seed), leaf(seed + 1)
    assert sg.gradcheck(lambda x, y: run(program, x, y) + 0 * x * y, (x, y))


@settings(max_examples=8)
@given(programs(), seeds)
def test_gradients_of_gradients(program: list[tuple[str, int, int]], seed: int) -> None:
    x, y = leaf(seed), leaf(seed + 1)
    assert sg.gradgradcheck(lambda x, y: run(program, x, y) * x * y, (x, y), atol=1e-4)


@st.composite
def writes(draw: st.DrawFn) -> list[tuple[str, int, int, int]]:
    """Writes in place: what is done, through which rows and columns."""
    kinds = st.sampled_from(["scale", "add x", "sin", "assign", "mask", "row of itself", "swap"])
    rows, columns = st.integers(0, 2), st.integers(0, 2)
    return [
        (draw(kinds), draw(rows), draw(columns), draw(st.integers(1, 3)))
        for _ in range(draw(st.integers(1, 5)))
    ]


def written(steps: list[tuple[str, int, int, int]], x: Any) -> Any:
    y = x * 1
    bystander = y.t()
    for kind, row, column, factor in steps:
        if kind == "scale":
            y[row].mul_(factor)
        elif kind == "add x":
            y[:, column:].add_(x[:, column:])
        elif kind == "sin":
            y.t()[column].sin_()
        elif kind == "assign":
            y[row, column] = x[0, 0] * factor
        elif kind == "mask":
            y[x > 0] = factor
        elif kind == "row of itself":
            y[row] = y[column] * factor
        else:
            y[:, column].copy_(x[row])
    return bystander * y.t()


@settings(max_examples=40)
@given(writes(), seeds)
def test_writes_in_place(steps: list[tuple[str, int, int, int]], seed: int) -> None:
    x = leaf(seed, (3, 3))
    assert sg.gradcheck(lambda x: written(steps, x), (x,))


@settings(max_examples=20)
@given(programs(), seeds)
def test_backward_is_a_vector_jacobian_product(
    program: list[tuple[str, int, int]], seed: int
) -> None:  # fmt: skip
    x, y = leaf(seed), leaf(seed + 1)
    z = run(program, x, y) + 0 * x
    v = sg.tensor(np.random.default_rng(seed).normal(size=SHAPE))
    z.backward(v)
    whole = sg.jacobian(lambda x: run(program, x, y.detach()) + 0 * x, x.detach())
    expected = np.tensordot(v.numpy(), whole.numpy(), 2)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=20)
@given(programs(), seeds)
def test_rows_and_columns_make_one_jacobian(
    program: list[tuple[str, int, int]], seed: int
) -> None:  # fmt: skip
    x, y = leaf(seed).detach(), leaf(seed + 1).detach()
    by_rows, by_columns = (
        sg.jacobian(lambda x: run(program, x, y) + 0 * x, x, strategy=strategy)
        for strategy in ("reverse-mode", "forward-mode")
    )
    np.testing.assert_allclose(by_rows.numpy(), by_columns.numpy(), rtol=1e-9, atol=1e-12)


@settings(max_examples=10)
@given(seeds)
def test_hessian_agrees_with_its_products(seed: int) -> None:
    x = leaf(seed, (3,)).detach()
    v = sg.tensor(np.random.default_rng(seed).normal(size=3))

    def g(x: Any) -> Any:
        return (x.sin() * x[0]).sum() * x.exp().sum() + (x**3).sum()

    whole = sg.hessian(g, x).numpy()
    np.testing.assert_allclose(whole, whole.T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(sg.hvp(g, x, v)[1].numpy(), whole @ v.numpy(), rtol=1e-9)
    along = sg.jvp(sg.grad(g), (x,), (v,))[1].numpy()
    np.testing.assert_allclose(along, whole @ v.numpy(), rtol=1e-9)


def test_derivatives_nest() -> None:
    def f(x: Any) -> Any:
        return x**4

    point = sg.tensor(2.0, dtype=sg.float64)
    for order, expected in enumerate([16.0, 32.0, 48.0, 48.0, 24.0]):
        g: Callable[..., Any] = f
        for _ in range(order):
            g = sg.grad(g)
        assert float(g(point)) == pytest.approx(expected)


def test_value_and_grad_of_several_arguments() -> None:
    def loss(w: Any, b: Any, x: Any) -> Any:
        return ((x * w + b) ** 2).sum(), "aux"

    x = sg.tensor([1.0, 2.0])
    (value, aux), (dw, db) = sg.value_and_grad(loss, argnums=(0, 1), has_aux=True)(
        sg.tensor(3.0), sg.tensor(-1.0), x
    )
    assert (float(value), aux, float(dw), float(db)) == (29.0, "aux", 24.0, 14.0)
    assert not value.requires_grad


def test_gradcheck_tells_a_wrong_backward() -> None:
    class Wrong(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0].sin()

    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to input"):
        sg.gradcheck(Wrong.apply, (leaf(0),))
    assert not sg.gradcheck(Wrong.apply, (leaf(0),), raise_exception=False)
    assert not sg.gradcheck(Wrong.apply, (leaf(0),), raise_exception=False, fast_mode=True)


def test_gradcheck_tells_a_backward_that_changes() -> None:
    class Drifting(sg.Function):
        calls = 0

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            Drifting.calls += 1
            return g * (1 + 1e-3 * Drifting.calls)

    with pytest.raises(RuntimeError, match="not reentrant"):
        sg.gradcheck(Drifting.apply, (leaf(0),), atol=1.0, rtol=1.0)
