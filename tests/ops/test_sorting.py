"""Sorting and the greatest k, made of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad.autodiff import vjp
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Node
from symgrad.ops.record import adds_up, apply
from symgrad.ops.sorting import sort
from symgrad.passes.evaluate import evaluate
from tests.ops.cases import Case, cases

Array = np.ndarray[Any, Any]


def _evaluate(case: Case, *nodes: Node) -> list[Array]:
    return evaluate(list(nodes), case.feeds, case.sizes)


@given(cases("rank", special=True))
def test_sorted_and_stable(case: Case) -> None:
    (x,) = case.args
    if not adds_up(x.dtype):
        return  # public functions sort such integers as int64
    axis, descending = case.node.attributes["axis"], case.node.attributes["descending"]
    values, places = _evaluate(case, *sort(x, axis, descending=descending))
    array = case.arrays[0]
    np.testing.assert_array_equal(values, np.take_along_axis(array, places, axis))
    wanted = np.sort(array, axis=axis)
    np.testing.assert_array_equal(values, np.flip(wanted, axis) if descending else wanted)
    left, right = (np.moveaxis(a, axis, 0) for a in (values, places))
    ties = (left[:-1] == left[1:]) | (np.isnan(left[:-1]) & np.isnan(left[1:]))
    assert np.all((right[:-1] < right[1:])[ties])


@given(cases("rank", double=True), st.booleans(), st.data())
def test_the_greatest_k(case: Case, largest: bool, data: st.DataObject) -> None:
    (x,) = case.args
    axis = case.node.attributes["axis"]
    count = data.draw(st.integers(0, case.arrays[0].shape[axis]))
    sizes = tuple(Dim.of(count) if a == axis else size for a, size in enumerate(x.shape))
    starts, steps = (0,) * x.rank, (1,) * x.rank
    values, places = (
        apply("slice", part, starts=starts, steps=steps, sizes=sizes)
        for part in sort(x, axis, descending=largest)
    )
    found, where = _evaluate(case, values, places)
    order = np.sort(case.arrays[0], axis=axis)
    order = np.flip(order, axis) if largest else order
    np.testing.assert_array_equal(found, np.take(order, range(count), axis=axis))
    (back,) = vjp([values], [values.graph.lift(1.0, values)], [x])
    assert back is not None
    chosen = np.zeros(case.arrays[0].shape)
    np.put_along_axis(chosen, where, 1.0, axis)
    np.testing.assert_array_equal(_evaluate(case, back)[0], chosen)


@pytest.mark.peers
@given(case=cases("rank", double=True, special=True))
def test_gradient_of_sort_as_in_torch(case: Case) -> None:
    torch = pytest.importorskip("torch")
    (x,) = case.args
    axis, descending = case.node.attributes["axis"], case.node.attributes["descending"]
    values, _ = sort(x, axis, descending=descending)
    g = np.asarray(case.source().uniform(-1, 1, case.arrays[0].shape))
    cotangent = x.graph.input("g", values.type)
    (back,) = vjp([values], [cotangent], [x])
    assert back is not None
    tensor = torch.tensor(case.arrays[0], requires_grad=True)
    torch.sort(tensor, dim=axis, descending=descending, stable=True).values.backward(
        torch.from_numpy(g)
    )
    (found,) = evaluate([back], {**case.feeds, "g": g}, case.sizes)
    np.testing.assert_array_equal(found, tensor.grad.numpy())
