"""Layouts that kernels do not take: copied in tiles, and said at the line of the call."""

from __future__ import annotations

import warnings
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
from symgrad.errors import CopyWarning
from symgrad.runtime import copies, support
from symgrad.runtime.op import CompiledOp
from tests.runtime.layouts import LAYOUTS, NDArray

DTYPES = ["?", "i1", "u1", "i2", "f4", "i4", "f8", "i8"]


@st.composite
def views(draw: Any) -> NDArray:
    """Views with any order of axes, steps and directions, misaligned ones among them."""
    dtype = numpy.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(st.lists(st.sampled_from([0, 1, 2, 5, 16, 17, 33]), min_size=1, max_size=4))
    shape = shape[:4] if numpy.prod(shape) < 1 << 16 else shape[:2]
    steps = [draw(st.sampled_from([1, 1, 2, -1, -3])) for _ in shape]
    base = [extent * abs(step) for extent, step in zip(shape, steps, strict=True)]
    offset = draw(st.integers(0, 1))
    count = int(numpy.prod(base)) * dtype.itemsize
    values = numpy.random.default_rng(1).integers(0, 2, count + offset, numpy.uint8)
    view = values[offset:].view(dtype).reshape(base)
    view = view[tuple(slice(None, None, step) for step in steps)]
    return numpy.transpose(view, draw(st.permutations(range(len(shape)))))


@given(value=views(), order=st.sampled_from("CF"))
def test_any_layout_to_any(softplus: CompiledOp, value: NDArray, order: Any) -> None:
    to = numpy.zeros(value.shape, value.dtype, order)
    twice = numpy.zeros([2 * extent for extent in value.shape], value.dtype)
    back = twice[tuple(slice(None, None, 2) for _ in value.shape)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(copies, "LARGE", 0)
        copies.copy(softplus.caller.library, to, value)
        copies.copy(softplus.caller.library, back, to)
    assert to.tobytes() == value.tobytes()
    assert back.tobytes() == value.tobytes()
    assert numpy.count_nonzero(twice) == numpy.count_nonzero(value)


@given(value=views(), first=st.integers(0, 3), count=st.integers(0, 4))
def test_axes_that_are_taken_as_one_are_copied_by_numpy_or_before_it(
    value: NDArray, first: int, count: int
) -> None:
    axes = value.shape
    merged = (*axes[:first], int(numpy.prod(axes[first : first + count])), *axes[first + count :])
    seen = numpy.may_share_memory(value.reshape(merged), value) or not value.size
    assert support._is_seen_as(value, merged) == seen


class Squared(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * g * x


def test_batch_axes_that_cannot_be_one_are_copied_in_tiles_and_said() -> None:
    squared, x = sg.compile(Squared, "f32[*s]"), large("F")
    with pytest.warns(CopyWarning, match="x is copied"):
        found = squared(x)
    assert numpy.array_equal(found, x * x)


def large(order: Any) -> NDArray:
    values = numpy.random.default_rng(1).standard_normal((300, 200)).astype("f4")
    return numpy.asarray(values, order=order)


def test_it_is_said_once_a_line(softplus: CompiledOp) -> None:
    x = large("F")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            softplus(x)
        softplus.forward(x)
    assert [one.category for one in found] == [CopyWarning, CopyWarning]
    assert {one.filename for one in found} == {__file__}
    assert "Softplus: x is copied" in str(found[0].message)
    assert "ascontiguousarray" in str(found[0].message)


def test_what_is_small_or_fits_is_not(softplus: CompiledOp, matmul: CompiledOp) -> None:
    softplus(large("C"))
    softplus(large("F")[:9, :9])
    rows = numpy.zeros((400, 300))[::2, :200]
    matmul(rows, rows.T.copy())


def test_forward_and_backward(softplus: CompiledOp) -> None:
    x, gy = large("F"), large("F")
    with pytest.warns(CopyWarning, match=r"Softplus\.forward: x is"):
        y, residuals = softplus.forward(x)
    assert numpy.array_equal(y, softplus(x.copy(order="C")))
    with pytest.warns(CopyWarning, match=r"Softplus\.backward: grad_y is"):
        (gx,) = softplus.backward(residuals, gy)
    _, residuals = softplus.forward(x.copy(order="C"))
    assert numpy.array_equal(gx, softplus.backward(residuals, gy.copy(order="C"))[0])


@given(
    name=st.sampled_from(["fortran", "every other", "backwards", "misaligned", "rows apart"]),
    shape=st.lists(st.sampled_from([0, 1, 3, 4]), min_size=2, max_size=4),
)
def test_out_of_any_strides(softplus: CompiledOp, name: str, shape: list[int]) -> None:
    x = numpy.random.default_rng(1).standard_normal(shape).astype("f4")
    out, gradient = LAYOUTS[name](x), LAYOUTS[name](x)
    assert softplus(x, out=out) is out
    y, residuals = softplus.forward(x)
    assert numpy.array_equal(out, y)
    assert softplus.backward(residuals, y, out=(gradient,))[0] is gradient
    assert numpy.array_equal(gradient, softplus.backward(residuals, y)[0])


def test_a_large_out_is_said(softplus: CompiledOp) -> None:
    x = large("C")
    out = numpy.empty_like(x, order="F")
    with pytest.warns(CopyWarning, match="out for y is copied"):
        softplus(x, out=out)
    assert numpy.array_equal(out, softplus(x))
