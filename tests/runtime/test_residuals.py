"""Whatever residuals hold, backward computes with it or says what is wrong: it reads nothing else.

The kernels run on arrays whose lengths come from the residuals, so that before these were compared
a wrong one was read, and written, beyond its end.
"""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad.abi import Array, Case, Kernel, Residual
from symgrad.errors import KernelArgumentError, KernelTypeError
from symgrad.runtime.op import CompiledOp
from symgrad.runtime.residuals import taken_apart
from tests.runtime.layouts import LAYOUTS

F4 = numpy.float32


def ones(*shape: int, dtype: Any = F4) -> numpy.ndarray[Any, Any]:
    return numpy.ones(shape, dtype)


ARRAYS = st.builds(
    numpy.ones,
    st.lists(st.integers(0, 5), max_size=3).map(tuple),
    st.sampled_from(["f4", "f8", "i8", "?", ">f4"]),
)
ODD = st.sampled_from([2**40, 2**63, 2.0, True, None, "n", [1.0], F4(1)])
VALUES = ARRAYS | st.integers(-3, 9) | ODD


@given(place=st.integers(0, 3), value=VALUES, more=st.integers(-1, 1))
def test_residuals_made_by_hand(softplus: CompiledOp, place: int, value: Any, more: int) -> None:
    """One of the three is replaced, or one is left out or added."""
    y, residuals = softplus.forward(ones(2, 3))
    held: list[Any] = list(residuals)
    held[place : place + 1] = [value]
    held = [*held, 1][: len(held) + more]
    if _fit(held):
        (found,) = softplus.backward(type(residuals)(held), y)
        numpy.testing.assert_allclose(found, y / (1 + numpy.exp(-held[0])), 1e-6)
        return
    with pytest.raises((KernelArgumentError, KernelTypeError), match="residual"):
        softplus.backward(type(residuals)(held), y)


def _fit(held: list[Any]) -> bool:
    """Could forward have kept these, for an output of shape (2, 3)?"""
    if len(held) != 3 or type(held[0]) is not numpy.ndarray:
        return False
    sizes = [(type(size), size) for size in held[1:]]
    right = held[0].shape == (2, 3) and held[0].dtype.newbyteorder("=") == F4
    return right and sizes == [(int, 2), (int, 3)]


def test_an_input_that_is_resized(softplus: CompiledOp) -> None:
    x = ones(300, 300)
    y, residuals = softplus.forward(x)
    x.resize((2, 2), refcheck=False)
    with pytest.raises(
        KernelArgumentError,
        match=r"residual x has the shape \(2, 2\), .* \(300, 300\)\n.*not copied",
    ):
        softplus.backward(residuals, y)


def test_an_input_seen_as_another_dtype(softplus: CompiledOp) -> None:
    x = ones(4, 4)
    y, residuals = softplus.forward(x)
    other = type(residuals)((x.view(numpy.int32), *residuals[1:]))
    with pytest.raises(KernelTypeError, match="residual x has the dtype int32"):
        softplus.backward(other, y)


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_residuals_of_any_layout(matmul: CompiledOp, layout: str) -> None:
    """They may be packed anew, or unpickled: what counts is what is in them."""
    random = numpy.random.default_rng(4)
    x, w = random.standard_normal((3, 4)), random.standard_normal((4, 2))
    y, residuals = matmul.forward(x, w)
    moved = type(residuals)((LAYOUTS[layout](x), LAYOUTS[layout](w), *residuals[2:]))
    for wanted, got in zip(matmul.backward(residuals, y), matmul.backward(moved, y), strict=True):
        numpy.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_too_few_or_too_many_where_there_are_no_sizes(count: int) -> None:
    number, kernel = Array("x", "float32", ()), Kernel("k", sizes=(), inputs=(), outputs=())
    kept = (Residual(number, "input"), Residual(number, "kernel"))
    case = Case(
        inputs=(number,), outputs=(number,), bindings=(), residuals=kept, inference=kernel,
        forward=kernel, backward=(),
    )  # fmt: skip
    with pytest.raises(KernelArgumentError, match="expected 2 arrays and 0 sizes"):
        taken_apart("op.backward", case, (ones(),) * count)


def test_sizes_that_belong_to_another_case(gated: CompiledOp) -> None:
    """The kernels of a case count on its conditions."""
    x, c = ones(2, 4, dtype="f8"), numpy.array(1.0)
    y, residuals = gated.forward(x, c)
    _, narrow = gated.forward(ones(2, 1, dtype="f8"), c)
    assert type(narrow) is not type(residuals)
    for kind, held in ((type(narrow), residuals), (type(residuals), narrow)):
        with pytest.raises((KernelArgumentError, KernelTypeError)):
            gated.backward(kind(held), y)
