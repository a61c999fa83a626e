"""Directions, medians and triangles in traces: judged, compiled, and as they are eagerly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.nn import functional as F

pytestmark = pytest.mark.usefixtures("unoptimised")


class Cosine(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        long = [one.norm(dim=1, keepdims=True).clamp_min(1e-8) for one in (x, y)]
        found = sg.cosine_similarity(x, y)
        ctx.save_for_backward(x, y, *long, found)
        return found

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y, a, b, found = ctx.saved_tensors
        g, found = g.unsqueeze(1), found.unsqueeze(axis=1)
        inner = (a > 1e-8, b > 1e-8)
        by_x = g * (y / (a * b) - sg.where(inner[0], found * x / (a * a), 0.0))
        return by_x, g * (x / (a * b) - sg.where(inner[1], found * y / (b * b), 0.0))


@pytest.mark.slow
def test_the_gradient_of_the_cosine_is_proved() -> None:
    assert sg.verify(Cosine, "n m", "n m").verdict is sg.PROVED


def _loss(x: Any, y: Any) -> Any:
    middle = x.median(1, keepdims=True)
    return (
        (F.cosine_similarity(x, y) ** 2).sum() + (F.normalize(x, p=3.0) * y).sum()
        + (middle.values * y).sum() + x.nanmedian(axis=0).values.square().sum()
        + x.t().median() * 3 + F.pairwise_distance(x, y).sum()
    )  # fmt: skip


@pytest.mark.slow
def test_kernels_compute_what_is_computed_eagerly() -> None:
    compiled = sg.jit(_loss)
    for n, m in ((4, 5), (1, 2)):
        rows = sg.rand(2, n, m).numpy()
        found, wanted = ([sg.tensor(row).requires_grad_() for row in rows] for _ in range(2))
        compiled(*found).backward()
        _loss(*wanted).backward()
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one.grad.numpy(), other.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_triangles_in_a_trace() -> None:
    @sg.jit
    def loss(x: Any) -> Any:
        rows, columns = sg.triu_indices(3, 4, offset=1)
        return (x[rows, columns] ** 2).sum()

    x = sg.rand(3, 4).requires_grad_()
    loss(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.triu(x.detach().numpy(), 1), rtol=1e-6)


def test_numpys_names_of_arguments() -> None:
    x = sg.rand(2, 3)
    assert x.sum(axis=0, keepdims=True).shape == (1, 3)
    with pytest.raises(TypeError, match=r"both 'keepdims?' and 'keepdims?'"):
        x.sum(0, keepdim=True, keepdims=True)


@pytest.mark.parametrize("make", [lambda x: x.t(), lambda x: x[0], lambda x: x[:, ::2]])
def test_what_shares_memory_is_not_resized(make: Any) -> None:
    x = sg.arange(6.0).reshape(2, 3).clone()
    with pytest.raises(sg.SymgradError, match="shares its memory"):
        make(x).resize_(2)
    view = x[0]
    with pytest.raises(sg.SymgradError, match="shares its memory"):
        x.resize_(2)
    assert view.shape == (3,)


def test_what_was_resized_is_not_what_was_saved() -> None:
    w = sg.ones(3).requires_grad_()
    x = sg.ones(3)
    y = (w * x).sum()
    x.resize_(2)
    with pytest.raises(sg.SymgradError, match="modified by an inplace operation"):
        y.backward()


def test_a_misspelled_name_gets_the_nearest_one() -> None:
    with pytest.raises(AttributeError, match="did you mean 'softmax'"):
        _ = sg.sofmax
    with pytest.raises(AttributeError, match="did you mean 'Function'"):
        _ = sg.Functoin
    with pytest.raises(AttributeError, match=r"has no attribute 'zzz'$"):
        _ = sg.zzz
