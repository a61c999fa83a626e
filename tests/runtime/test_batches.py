"""Axes in front of what an op is compiled for: NumPy's own broadcasting is the oracle."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
from symgrad.errors import KernelArgumentError
from symgrad.runtime import batches
from symgrad.runtime.op import CompiledOp
from symgrad.runtime.support import Caller
from tests.runtime.layouts import LAYOUTS, NDArray

NAMES = sorted(LAYOUTS)
CORE = st.sampled_from([0, 1, 3])


@st.composite
def axes(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Leading axes of two inputs that broadcast against each other."""
    whole = draw(st.lists(st.sampled_from([0, 1, 2, 3]), min_size=1, max_size=3))
    found = []
    for _ in range(2):
        own = [draw(st.sampled_from([extent, 1])) for extent in whole]
        found.append(tuple(own[draw(st.integers(0, len(whole))) :]))
    return found[0], found[1]


def random(shape: tuple[int, ...], dtype: str, seed: int) -> NDArray:
    return numpy.random.default_rng(seed).standard_normal(shape).astype(dtype)


def summed(gradient: NDArray, shape: tuple[int, ...]) -> NDArray:
    """The gradient of an array of this shape that was broadcast."""
    more = gradient.ndim - len(shape)
    repeated = [more + a for a, e in enumerate(shape) if e == 1 and gradient.shape[more + a] != 1]
    found: NDArray = gradient.sum((*range(more), *repeated)).reshape(shape)
    return found


def close(left: Any, right: Any) -> bool:
    return left.shape == right.shape and numpy.allclose(left, right, rtol=2e-5, atol=1e-5)


@given(
    leading=axes(), sizes=st.tuples(CORE, CORE, CORE), x_name=st.sampled_from(NAMES),
    w_name=st.sampled_from(NAMES), g_name=st.sampled_from(NAMES), mask=st.sampled_from([
        None, (True, False), (False, True),
    ]),
)  # fmt: skip
def test_product(
    matmul: CompiledOp, leading: Any, sizes: Any, x_name: str, w_name: str, g_name: str, mask: Any
) -> None:
    n, k, m = sizes
    x, w = random((*leading[0], n, k), "f8", 1), random((*leading[1], k, m), "f8", 2)
    expected = x @ w
    y, residuals = matmul.forward(LAYOUTS[x_name](x), LAYOUTS[w_name](w))
    assert close(y, expected)
    assert numpy.array_equal(matmul(x, w), y)
    gy = random(expected.shape, "f8", 3)
    gx, gw = matmul.backward(residuals, LAYOUTS[g_name](gy), needs_input_grad=mask)
    if mask is None or mask[0]:
        assert close(gx, summed(gy @ w.swapaxes(-1, -2), x.shape))
    if mask is None or mask[1]:
        assert close(gw, summed(x.swapaxes(-1, -2) @ gy, w.shape))


@given(shape=st.lists(CORE, min_size=3, max_size=4), name=st.sampled_from(NAMES))
def test_elementwise(softplus: CompiledOp, shape: list[int], name: str) -> None:
    x, gy = random(tuple(shape), "f4", 1), random(tuple(shape), "f4", 2)
    y, residuals = softplus.forward(LAYOUTS[name](x), out=numpy.empty_like(x))
    assert close(y, numpy.log1p(numpy.exp(x)))
    out = numpy.empty_like(x)
    (gx,) = softplus.backward(residuals, gy, out=(out,))
    assert gx is out
    assert close(gx, gy / (1 + numpy.exp(-x)))


@given(leading=axes(), n=CORE)
def test_integers_and_residuals_of_the_kernel(pick: CompiledOp, leading: Any, n: int) -> None:
    x = random((*leading[0], n, 3), "f4", 1)
    index = numpy.random.default_rng(2).integers(0, 3, (*leading[1], n))
    (y, first), residuals = pick.forward(x, index)
    batch = numpy.broadcast_shapes(*leading)
    whole = numpy.broadcast_to(x, (*batch, n, 3))
    places = numpy.broadcast_to(index, (*batch, n))[..., None]
    assert numpy.array_equal(y, numpy.take_along_axis(whole, places, -1)[..., 0])
    assert numpy.array_equal(first, whole[..., 0])
    gy = random(y.shape, "f4", 3)
    gx, nothing = pick.backward(residuals, gy, None)
    assert nothing is None
    parts = numpy.zeros(whole.shape, "f4")
    numpy.put_along_axis(parts, places, gy[..., None], -1)
    assert close(gx, summed(parts, x.shape))


class Scaled(sg.Function):
    """A plain number that each call passes, and an input without axes."""

    @staticmethod
    def forward(ctx: Any, x: Any, c: Any, alpha: float = 2.0) -> Any:
        ctx.save_for_backward(x, c)
        ctx.alpha = alpha
        return alpha * x * c

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        x, c = ctx.saved_tensors
        return ctx.alpha * grad_y * c, (ctx.alpha * grad_y * x).sum(), None


@pytest.fixture(scope="module")
def scaled() -> Any:
    return sg.compile(Scaled, "f32[n]", "f32[]")


def test_numbers_and_scalars(scaled: Any) -> None:
    x, c = random((4, 2, 3), "f4", 1), random((2,), "f4", 2)
    y, residuals = scaled.forward(x, c, alpha=3.0)
    assert close(y, 3 * x * c[:, None])
    gx, gc = scaled.backward(residuals, numpy.ones_like(y))
    assert close(gx, numpy.broadcast_to(3 * c[:, None], x.shape))
    assert close(gc, (3 * x).sum((0, 2)))
    again = pickle.loads(pickle.dumps(residuals.batch))
    assert again == residuals.batch
    assert "over (4, 2)" in repr(residuals)


def test_tensors(scaled: Any) -> None:
    x = sg.ones(4, 3).requires_grad_()
    c = sg.tensor(2.0).requires_grad_()
    scaled(x, c).sum().backward()
    assert c.grad is not None
    assert c.grad.item() == 24
    assert numpy.array_equal(x.grad.numpy(), numpy.full((4, 3), 4, "f4"))
    with pytest.raises(KernelArgumentError, match=r"not differentiated\n.*vmap"):
        sg.grad(lambda one: sg.grad(lambda two: scaled(two, c).sum())(one).sum())(x)


@given(leading=axes(), sizes=st.tuples(CORE, CORE, CORE))
def test_one_by_one_is_the_same(matmul: CompiledOp, leading: Any, sizes: Any) -> None:
    """What packages do where no library is loaded, with the same kernels."""
    n, k, m = sizes
    x, w = random((*leading[0], n, k), "f8", 1), random((*leading[1], k, m), "f8", 2)
    slow = Caller(matmul.module.OP, replace(matmul.caller.library), matmul.caller.residuals)
    slow._call_over = lambda kernel, sizes, batch, used, outputs: (  # type: ignore[method-assign]
        batches.one_by_one(
            lambda given, parts: slow._call_one(kernel, sizes, given, parts),
            kernel, batch, used, outputs,
        )
    )  # fmt: skip
    y, residuals = matmul.forward(x, w)
    again, kept = slow.forward((x, w))
    assert numpy.array_equal(y, again)
    for left, right in zip(
        matmul.backward(residuals, y), slow.backward(kept, (y,)), strict=True
    ):  # fmt: skip
        assert close(left, right)


def test_sums_do_not_depend_on_threads(matmul: CompiledOp) -> None:
    x, w = random((999, 4, 3), "f8", 1), random((3, 2), "f8", 2)
    y, residuals = matmul.forward(x, w)
    found = []
    before = sg.get_num_threads()
    try:
        for number in (1, 2, 5):
            sg.set_num_threads(number)
            found.append(matmul.backward(residuals, y))
    finally:
        sg.set_num_threads(before)
    for gx, gw in found[1:]:
        assert numpy.array_equal(gx, found[0][0])
        assert numpy.array_equal(gw, found[0][1])


def test_sums_in_float_are_taken_in_double(scaled: Any) -> None:
    x = numpy.full((1 << 17, 1), 0.1, "f4")
    _, residuals = scaled.forward(x, numpy.float32(1))
    _, gc = scaled.backward(residuals, numpy.ones_like(x))
    assert gc == numpy.float32(numpy.float64(numpy.float32(2) * x[0, 0]) * len(x))


def test_what_does_not_fit(matmul: CompiledOp, pick: CompiledOp) -> None:
    x, w = random((3, 2, 4), "f8", 1), random((2, 4, 2), "f8", 2)
    with pytest.raises(KernelArgumentError, match=r"leading axes .* x \(3,\), w \(2,\)\n.*or 1"):
        matmul(x, w)
    with pytest.raises(KernelArgumentError, match=r"disagree on k: 4 .* and 5"):
        matmul(x, random((5, 2), "f8", 1))
    with pytest.raises(KernelArgumentError, match="1 axis where"):
        matmul(x, w[0, 0])
    y, residuals = matmul.forward(x, w[0])
    with pytest.raises(KernelArgumentError, match=r"cotangent of y has the shape \(2, 2\)"):
        matmul.backward(residuals, y[0])
    with pytest.raises(KernelArgumentError, match=r"out for w has the shape \(3, 4, 2\)"):
        matmul.backward(residuals, y, out=(None, numpy.empty((3, 4, 2))))
    with pytest.raises(KernelArgumentError, match=r"33 leading axes.*\n.*reshape"):
        matmul(x.reshape((1,) * 32 + x.shape), w[0])
    index = numpy.zeros((3, 2), int)
    index[1, 1] = 7
    with pytest.raises(KernelArgumentError, match="index is out of range"):
        pick(random((3, 2, 4), "f4", 1), index)


def test_residuals_that_were_changed(matmul: CompiledOp) -> None:
    x, w = random((3, 2, 4), "f8", 1), random((4, 2), "f8", 2)
    y, residuals = matmul.forward(x, w)
    for wrong in (x[:2], x[:, :1], random((3, 3, 2, 4), "f8", 1)):
        kept = type(residuals.residuals)((wrong, *residuals.residuals[1:]))
        with pytest.raises(KernelArgumentError, match="the residual x has the shape"):
            matmul.backward(replace(residuals, residuals=kept), y)
