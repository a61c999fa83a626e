"""Generated wrappers compute what NumPy does, for every size, layout and way of calling."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad.runtime.op import CompiledOp
from tests.runtime.layouts import LAYOUTS, NDArray

SIZES = st.sampled_from([0, 1, 2, 3, 5, 17])
NAMES = sorted(LAYOUTS)


def random(shape: tuple[int, ...], dtype: str, seed: int) -> NDArray:
    return numpy.random.default_rng(seed).standard_normal(shape).astype(dtype)


def close(left: Any, right: Any) -> bool:
    left = numpy.asarray(left)
    return left.shape == numpy.shape(right) and numpy.allclose(left, right, rtol=2e-5, atol=1e-6)


@given(n=SIZES, m=SIZES, x_name=st.sampled_from(NAMES), g_name=st.sampled_from(NAMES))
def test_elementwise(softplus: CompiledOp, n: int, m: int, x_name: str, g_name: str) -> None:
    values, cotangent = random((n, m), "f4", 1), random((n, m), "f4", 2)
    x, gy = LAYOUTS[x_name](values), LAYOUTS[g_name](cotangent)
    y, residuals = softplus.forward(x)
    assert type(y) is numpy.ndarray
    assert close(y, numpy.log1p(numpy.exp(values)))
    assert numpy.array_equal(softplus(x), y)
    (gx,) = softplus.backward(residuals, gy)
    assert close(gx, cotangent / (1 + numpy.exp(-values)))
    assert numpy.array_equal(values, numpy.asarray(x))


@given(
    sizes=st.tuples(SIZES, SIZES, SIZES),
    x_name=st.sampled_from(NAMES),
    w_name=st.sampled_from(NAMES),
    mask=st.tuples(st.booleans(), st.booleans()),
)
def test_product(
    matmul: CompiledOp,
    sizes: tuple[int, int, int],
    x_name: str,
    w_name: str,
    mask: tuple[bool, bool],
) -> None:
    n, k, m = sizes
    x, w, gy = random((n, k), "f8", 1), random((k, m), "f8", 2), random((n, m), "f8", 3)
    y, residuals = matmul.forward(LAYOUTS[x_name](x), LAYOUTS[w_name](w))
    assert close(y, x @ w)
    assert residuals.sizes == {"n": n, "k": k, "m": m}
    everything = matmul.backward(residuals, gy)
    assert close(everything[0], gy @ w.T)
    assert close(everything[1], x.T @ gy)
    some = matmul.backward(residuals, gy, needs_input_grad=mask)
    for wanted, whole, part in zip(mask, everything, some, strict=True):
        assert numpy.array_equal(part, whole) if wanted else part is None


def test_strided_rows_are_not_copied(matmul: CompiledOp) -> None:
    """What the kernel takes by stride is kept as it is for backward; the rest is packed."""
    x, w = LAYOUTS["rows apart"](random((4, 3), "f8", 1)), random((3, 2), "f8", 2)
    _, residuals = matmul.forward(x, w)
    assert residuals.arrays["x"].base is x.base or residuals.arrays["x"] is x
    _, residuals = matmul.forward(x[:, ::-1], w)
    assert residuals.arrays["x"].flags.c_contiguous


@given(n=SIZES, v=st.sampled_from([2, 3, 7]), seed=st.integers(0, 5))
def test_integers_and_several_outputs(pick: CompiledOp, n: int, v: int, seed: int) -> None:
    x = random((n, v), "f4", seed)
    index = numpy.random.default_rng(seed).integers(0, v, n)
    y, first = pick(x, index)
    assert numpy.array_equal(y, x[numpy.arange(n), index])
    assert numpy.array_equal(first, x[:, 0])
    (again, _), residuals = pick.forward(x, index)
    assert numpy.array_equal(again, y)
    assert numpy.array_equal(residuals.arrays["doubled"], 2 * index)
    gy, gf = random((n,), "f4", 8), random((n,), "f4", 9)
    gx, nothing = pick.backward(residuals, gy, gf)
    expected = numpy.zeros((n, v), "f4")
    numpy.add.at(expected, (numpy.arange(n), index), gy)
    expected[:, 0] += gf
    assert close(gx, expected)
    assert nothing is None
    alone, _ = pick.backward(residuals, gy, None)
    expected[:, 0] -= gf
    assert close(alone, expected)


@given(rows=SIZES, half=st.sampled_from([1, 2, 5]))
def test_a_size_solved_from_an_axis(gated: CompiledOp, rows: int, half: int) -> None:
    x, c = random((rows, 2 * half), "f8", 1), numpy.array(2.0)
    y, residuals = gated.forward(x, c)
    assert close(y, x[:, :half] * x[:, half:])
    gy = random((rows, half), "f8", 2)
    gx, gc = gated.backward(residuals, gy)
    assert close(gx, numpy.hstack([gy * x[:, half:], gy * x[:, :half]]))
    assert gc.shape == ()
    assert gc == 0


@given(rows=SIZES)
def test_the_case_for_one_column(gated: CompiledOp, rows: int) -> None:
    x = random((rows, 1), "f8", 1)
    y, residuals = gated.forward(x, numpy.float64(2.0))
    assert close(y, 3 * x)
    gx, _ = gated.backward(residuals, numpy.ones((rows, 1)))
    assert close(gx, numpy.full((rows, 1), 3.0))


@given(n=SIZES, layout=st.sampled_from(NAMES))
def test_truth_values(keep: CompiledOp, n: int, layout: str) -> None:
    x, mask = random((n,), "f4", 1), numpy.arange(n) % 3 == 0
    (y, negated), residuals = keep.forward(x, LAYOUTS[layout](mask))
    assert negated.dtype == numpy.bool_
    assert numpy.array_equal(negated, ~mask)
    assert numpy.array_equal(y, numpy.where(mask, x, 0))
    gradient, nothing = keep.backward(residuals, x, None)
    assert numpy.array_equal(gradient, y)
    assert nothing is None


@given(n=SIZES, m=SIZES)
def test_out(softplus: CompiledOp, n: int, m: int) -> None:
    x, gy = random((n, m), "f4", 1), random((n, m), "f4", 2)
    y, gx = numpy.empty((n, m), "f4"), numpy.empty((n, m), "f4")
    assert softplus(x, out=y) is y
    assert close(y, softplus(x))
    y[...] = 7
    given_back, residuals = softplus.forward(x, out=y)
    assert given_back is y
    assert close(y, softplus(x))
    assert softplus.backward(residuals, gy, out=(gx,))[0] is gx
    assert numpy.array_equal(gx, softplus.backward(residuals, gy)[0])
    gx[...] = 7
    assert softplus.backward(residuals, gy, out=gx)[0] is gx
    assert numpy.array_equal(gx, softplus.backward(residuals, gy)[0])


def test_out_for_some(pick: CompiledOp, matmul: CompiledOp, gated: CompiledOp) -> None:
    x, index = random((3, 2), "f4", 1), numpy.array([0, 1, 1])
    first = numpy.empty(3, "f4")
    y, same = pick(x, index, out=(None, first))
    assert same is first
    assert numpy.array_equal(first, x[:, 0])
    assert numpy.array_equal(y, x[[0, 1, 2], index])
    a, b = random((3, 2), "f8", 1), random((2, 4), "f8", 2)
    _, residuals = matmul.forward(a, b)
    gy, gb = random((3, 4), "f8", 3), numpy.empty((2, 4))
    got_a, got_b = matmul.backward(residuals, gy, out=(None, gb))
    assert got_b is gb
    assert close(got_a, gy @ b.T)
    assert close(gb, a.T @ gy)
    x2, c = random((3, 4), "f8", 1), numpy.array(1.0)
    _, residuals = gated.forward(x2, c)
    outs = (numpy.empty((3, 4)), numpy.array(9.0))
    gradients = gated.backward(residuals, numpy.ones((3, 2)), out=outs)
    assert gradients[1] is outs[1]
    assert outs[1] == 0
    assert close(outs[0], numpy.hstack([x2[:, 2:], x2[:, :2]]))


@pytest.mark.parametrize("name", ["inference", "forward"])
@given(n=SIZES, m=SIZES)
def test_straight_and_careful_paths_agree(softplus: CompiledOp, name: str, n: int, m: int) -> None:
    x = random((n, m), "f4", 1)
    quick = getattr(softplus, name)(x)
    careful = getattr(softplus.module._careful, name)((x,))
    if name == "forward":
        quick, careful = quick[0], careful[0]
    assert numpy.array_equal(quick, careful)


def test_ordinary_calls_are_straight(
    softplus: CompiledOp, matmul: CompiledOp, pick: CompiledOp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The careful path is not entered for contiguous arrays of the right dtype."""
    x, w = random((4, 3), "f8", 1), random((3, 2), "f8", 2)
    matmul(x, w)  # grows the workspace, which is not an ordinary call
    for op in (softplus, matmul, pick):
        monkeypatch.setattr(op.module, "_careful", None)
    image = random((4, 3), "f4", 1)
    y, residuals = softplus.forward(image, out=numpy.empty_like(image))
    softplus.backward(residuals, y, needs_input_grad=(True,), out=(numpy.empty_like(image),))
    y, residuals = matmul.forward(x, w)
    matmul.backward(residuals, y)
    matmul.backward(residuals, y, needs_input_grad=(False, True))
    (y, first), residuals = pick.forward(image, numpy.array([0, 1, 2, 2]))
    pick.backward(residuals, y, first)


def test_a_mask_without_its_own_kernel(pick: CompiledOp) -> None:
    """Inputs that have no gradient may be marked; a list will do; nothing at all is nothing."""
    _, residuals = pick.forward(random((3, 2), "f4", 1), numpy.array([0, 1, 1]))
    gy = random((3,), "f4", 2)
    whole = pick.backward(residuals, gy, gy)[0]
    assert numpy.array_equal(
        pick.backward(residuals, gy, gy, needs_input_grad=[True, True])[0], whole
    )
    assert pick.backward(residuals, gy, gy, needs_input_grad=(False, True)) == (None, None)


def test_interleaved_out_is_no_overlap(matmul: CompiledOp) -> None:
    """The two share no element, though one lies between those of the other."""
    w = random((1, 1), "f8", 2)
    flat = numpy.zeros(40)
    x = numpy.lib.stride_tricks.as_strided(flat[9:], (4, 1), (8 * 8, 8))
    x[...] = random((4, 1), "f8", 4)
    out = flat[10:14].reshape(4, 1)
    with ThreadPoolExecutor(1) as fresh:  # a new thread has no workspace yet
        assert close(fresh.submit(matmul, x, w, out=out).result(), x @ w)
