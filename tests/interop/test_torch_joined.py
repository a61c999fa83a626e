"""Joined tensors that backward takes apart in equal chunks: right where their sizes are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from tests.frontend.support import run  # noqa: E402

pytestmark = pytest.mark.peers

FUNCTION: Any = torch.autograd.Function


class All(FUNCTION):
    @staticmethod
    def forward(ctx: Any, *xs: Any) -> Any:
        ctx.count = len(xs)
        return torch.cat(xs, 0)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return tuple(grad.chunk(ctx.count, 0))


class AllTwice(All):
    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return tuple(2 * one for one in grad.chunk(ctx.count, 0))


class Three(FUNCTION):
    @staticmethod
    def forward(ctx: Any, a: Any, b: Any, c: Any) -> Any:
        joined = torch.cat((a, b, c), 1)
        ctx.save_for_backward(joined)
        return joined * joined

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (joined,) = ctx.saved_tensors
        return (2 * joined * grad).chunk(3, dim=1)


class ThreeTurned(Three):
    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        first, second, third = Three.backward(ctx, grad)
        return second, third, first


@pytest.mark.parametrize("right", [All, Three])
def test_chunks_are_right_where_sizes_are_equal(right: Any) -> None:
    report = sg.verify(right, suggest=False)
    assert str(report.verdict) == "PROVED"
    assert "if the shapes are" in str(report)
    assert "are wrong for" in str(report), "sizes that are unequal are named"


@pytest.mark.parametrize(
    ("wrong", "shapes"), [(AllTwice, ("n m", "n m")), (ThreeTurned, ("n m", "n m", "n m"))]
)
def test_wrong_chunks_are_refuted(wrong: Any, shapes: tuple[str, ...]) -> None:
    assert str(sg.verify(wrong, suggest=False).verdict) == "REFUTED"
    found = sg.verify(wrong, *shapes, suggest=False).inputs
    assert all(one.counterexample is not None for one in found.values())


@pytest.mark.parametrize(
    ("right", "shapes"), [(All, ("n m", "k m")), (Three, ("n m", "n k", "n l"))]
)
def test_chunks_of_unequal_sizes_are_refuted_as_torch_fails(
    right: Any, shapes: tuple[str, ...]
) -> None:
    report = sg.verify(right, *shapes, suggest=False)
    assert str(report.verdict) == "REFUTED"
    assert "returned an invalid gradient" in str(report)


@pytest.mark.parametrize("count", [2, 3])
def test_chunks_of_a_sum_of_sizes_are_those_of_torch(count: int) -> None:
    sizes = [(n, k) for n in range(1, 6) for k in range(1, 6) if -(-(n + k) // 3) * 2 < n + k]
    points = [({"n": n, "k": k}, {"x": np.arange(n), "y": -np.arange(k)}) for n, k in sizes]
    arrays = [({**at}, {name: 1.0 * one for name, one in given.items()}) for at, given in points]
    found = run(lambda x, y: sg.cat([x, y]).chunk(count), ["n", "k"], arrays)
    for (_, given), result in zip(arrays, found, strict=True):
        joined = torch.cat([torch.from_numpy(one) for one in given.values()])
        for one, other in zip(result, joined.chunk(count), strict=True):
            np.testing.assert_array_equal(one, other.numpy())
