"""Indices: every kernel that reads or writes at them checks them, and comparisons never write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
from symgrad.errors import KernelArgumentError
from symgrad.frontend.trace import trace
from symgrad.kernels import plan
from symgrad.numpy_op import NumpyOp

FAR = 2**40
PLACES = st.lists(st.sampled_from([0, 1, 2, 3, -1, 4, -100, FAR, -FAR]), max_size=6)


class Taken(sg.Function):
    """Reads at places, which its backward, here derived, adds up at."""

    @staticmethod
    def forward(ctx: Any, x: Any, places: Any) -> Any:
        return x[places] * x[places]


class Counted(sg.Function):
    """A sum over comparisons, which no kernel may turn into writes beside the array."""

    @staticmethod
    def forward(ctx: Any, weight: Any, places: Any, shape: Any) -> Any:
        hot = places[:, None] == sg.arange(shape.shape[0])
        return sg.where(hot, weight[:, None], 0.0).sum(0)


def both(function: Any, *specs: str) -> list[Any]:
    """Its kernels in C and on NumPy."""
    compiled = sg.compile(function, *specs, allow=("UNDECIDED",))
    return [compiled, NumpyOp(plan(trace(function, *specs)))]


@pytest.fixture(scope="module")
def counted() -> list[Any]:
    return both(Counted, "f64[n]", "i64[n]", "f64[c]")


@given(places=PLACES)
def test_comparisons_with_places_outside(counted: list[Any], places: list[int]) -> None:
    weight = np.arange(1.0, len(places) + 1)
    index = np.array(places, np.int64)
    wanted = [weight[index == place].sum() for place in range(4)]
    guarded = np.full(4 + 400, -1.0)  # what lies around the output
    for op in counted:
        found = op(weight, index, np.ones(4), out=guarded[200:204])
        np.testing.assert_array_equal(found, wanted)
        assert (np.delete(guarded, range(200, 204)) == -1).all()


@pytest.mark.parametrize("rows", ["m", "1", "3"])
def test_places_are_checked_again_by_backward(rows: str) -> None:
    """They were written to in between; an axis of one element has places outside too."""
    x = np.ones((1 if rows == "1" else 3, 2))
    for op in both(Taken, f"f64[{rows} 2]", "i64[n]"):
        for wrong in (-1, len(x), FAR, -FAR):
            with pytest.raises(KernelArgumentError):
                op(x, np.array([0, wrong]))
            places = np.zeros(2, np.int64)
            y, residuals = op.forward(x, places)
            assert op.backward(residuals, y)[0][0].tolist() == [4, 4]
            places[1] = wrong
            with pytest.raises(KernelArgumentError):
                op.backward(residuals, y)


class PickedRow(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, labels: Any) -> Any:
        ctx.save_for_backward(labels)
        ctx.size = x.shape[1]
        return x.gather(1, labels[:, None])

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (labels,) = ctx.saved_tensors
        return g * sg.nn.functional.one_hot(labels, ctx.size).to(g.dtype), None


@pytest.mark.parametrize("specs", [("n c", "n"), ("n c; n",), ("n c", "i64[n]"), ("n c; i64[n]",)])
def test_what_is_declared_an_index_is_of_integers(specs: tuple[str, ...]) -> None:
    report = sg.verify(PickedRow, *specs, assume={"labels": "index c"}, suggest=False)
    assert report.verdict is sg.PROVED, str(report)
