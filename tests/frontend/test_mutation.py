"""Writes in place reach the base and every view of it, as they do in NumPy's memory.

A program is a list of steps over numbered tensors: making views, and writing through them.  It
runs on NumPy arrays (real memory) and on symbolic tensors (a graph), and all tensors must agree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad.errors import DTypeError, ShapeError, UnsupportedOpError
from symgrad.frontend.trace import trace
from tests.frontend.support import Array, forward_only, run

Step = tuple[Any, ...]
ROWS, COLUMNS = 3, 4


def take_view(tensor: Any, kind: str, number: int) -> Any:
    """A view, the same way for NumPy and symgrad."""
    size = tensor.shape[0] if tensor.ndim else 0
    if kind == "t":
        return tensor.T
    if kind == "row" and size:
        return tensor[number % size, ...]
    if kind == "from" and size > 1:
        return tensor[number % size :]
    if kind == "step" and size > 1:
        return tensor[number % 2 :: 2]
    if kind == "last" and size:
        return tensor[..., -1:]
    if kind == "new":
        return tensor[None]
    if kind == "flat":
        return tensor.reshape(-1)
    return tensor[...]


def write(tensor: Any, kind: str, number: int) -> None:
    """A write in place, the same way for NumPy and symgrad."""
    if kind == "add":
        tensor += number
    elif kind == "mul":
        tensor *= 1.5
    elif kind == "set":
        tensor[...] = float(number)
    elif kind == "mask":
        tensor[tensor > number / 2] = 0.5
    elif kind == "masked":
        mask = tensor < 0.25 * number
        tensor[mask] = tensor[mask] * 2 - 1
    elif kind == "first" and tensor.ndim:
        tensor[0] = -float(number)
    elif kind == "flip" and tensor.ndim:
        tensor[...] = tensor.flip(0) if not isinstance(tensor, np.ndarray) else tensor[::-1].copy()
    elif kind == "list" and tensor.ndim:
        tensor[[0, tensor.shape[0] - 1]] = float(number)


def execute(base: Any, program: list[Step]) -> list[Any]:
    tensors = [base]
    for kind, what, source, number in program:
        tensor = tensors[source % len(tensors)]
        if kind == "view":
            tensors.append(take_view(tensor, what, number))
        else:
            write(tensor, what, number)
    return tensors


_steps = st.one_of(
    st.tuples(
        st.just("view"), st.sampled_from(["t", "row", "from", "step", "last", "new", "flat"]),
        st.integers(0, 5), st.integers(0, 3),
    ),
    st.tuples(
        st.just("write"),
        st.sampled_from(["add", "mul", "set", "mask", "masked", "first", "flip", "list"]),
        st.integers(0, 5), st.integers(0, 3),
    ),
)  # fmt: skip


@given(st.lists(_steps, min_size=2, max_size=8))
def test_programs_agree_with_memory(program: list[Step]) -> None:
    array: Array = np.linspace(-1.0, 2.0, ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    wanted = [found.copy() for found in execute(array.copy(), program)]

    def forward(x: Any) -> Any:
        return tuple(tensor.clone() for tensor in execute(x.clone(), program))

    (found,) = run(forward, [f"{ROWS} {COLUMNS}"], [({}, {"x": array})])
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_copy_shares_nothing() -> None:
    def forward(x: Any) -> Any:
        copied, product = x.clone(), x * 1
        transposed = x.t().reshape(-1)
        x.zero_()
        return copied, product, transposed

    (found,) = run(forward, ["n m"], [({"n": 2, "m": 3}, {"x": np.arange(6.0).reshape(2, 3)})])
    assert [float(array.sum()) for array in found] == [15.0] * 3


def failing(forward: Any, *specs: str) -> None:
    trace(forward_only(forward), *specs)


def test_an_expanded_tensor_cannot_be_written() -> None:
    with pytest.raises(ShapeError, match="clone"):
        failing(lambda x: x.expand(3, -1).add_(1), "m")


def test_a_float_does_not_go_into_integers() -> None:
    with pytest.raises(DTypeError, match=r"\.to\(sg\.float32\)"):
        failing(lambda i: i.mul_(1.5), "i64[n]")


def test_a_result_must_fit() -> None:
    with pytest.raises(ShapeError):
        failing(lambda x, y: x.add_(y), "n", "m n")


def test_masks_must_be_the_same() -> None:
    def forward(x: Any, y: Any) -> Any:
        x[x > 0] = y[y > 0]
        return x

    with pytest.raises(UnsupportedOpError, match="not selected by the same mask"):
        failing(forward, "n", "n")


def test_what_a_mask_selects_has_no_shape() -> None:
    with pytest.raises(UnsupportedOpError, match="depends on values"):
        failing(lambda x: x[x > 0].flip(0), "n")


def assign(x: Any, i: Any, v: Any) -> Any:
    x = x.clone()
    x[i] = v
    return x


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_the_last_of_several_writes_stays(places: list[int]) -> None:
    arrays = {"x": np.zeros(4), "i": np.asarray(places), "v": 1.0 + np.arange(len(places))}
    wanted = arrays["x"].copy()
    wanted[arrays["i"]] = arrays["v"]
    (found,) = run(assign, ["m", "i64[n]", "n"], [({"n": len(places), "m": 4}, arrays)])
    np.testing.assert_array_equal(found[0], wanted)


def test_declared_distinct_places_are_not_compared() -> None:
    function = forward_only(assign)
    compared = trace(function, "m", "i64[n]", "n").cases[0].graph
    declared = trace(function, "m", "i64[n]", "n", assume={"i": "unique index m"}).cases[0].graph
    assert "any" in {node.op for node in compared.nodes}
    assert "any" not in {node.op for node in declared.nodes}
