"""Sums of floats: as exact for millions as for few, the same bits for any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symgrad as sg

COUNT = 1 << 22
WIDTH = 8
EXACT = 2e-6
"""32 roundings of f32, all in one direction; one by one, equal numbers are off by 1e-4 and more."""


def sums(x: Any) -> tuple[Any, ...]:
    """Of everything, of rows, of columns, of products, and running."""
    columns, rows = x.reshape(-1, WIDTH), x.reshape(WIDTH, -1)
    return (
        x.sum(), (x * x).sum(), columns.sum(0), rows.sum(1), x.cumsum(0)[-1], sg.norm(x),
        x.mean(),
    )  # fmt: skip


def wanted(x: Any) -> tuple[Any, ...]:
    columns, rows = x.reshape(-1, WIDTH), x.reshape(WIDTH, -1)
    return (
        x.sum(), (x * x).sum(), columns.sum(0), rows.sum(1), x.sum(), np.sqrt((x * x).sum()),
        x.mean(),
    )  # fmt: skip


DATA = {
    "equal": np.full(COUNT, 0.1, np.float32),
    "random": np.random.default_rng(0).random(COUNT, np.float32),
}


@pytest.mark.parametrize("data", DATA)
def test_eager(data: str) -> None:
    x = DATA[data]
    for found, exact in zip(sums(sg.tensor(x)), wanted(x.astype(np.float64)), strict=True):
        np.testing.assert_allclose(found.numpy(), exact, rtol=EXACT, atol=1e-10)


def test_eager_rows_that_lie_apart() -> None:
    """However an array lies in memory."""
    x = np.asfortranarray(DATA["random"].reshape(WIDTH, -1))
    for array in (x, x[:, ::-1], x[:, ::2], x.T):
        for axis in (0, 1, (0, 1)):
            found = sg.from_numpy(array).sum(axis).numpy()
            np.testing.assert_allclose(found, array.astype(np.float64).sum(axis), rtol=EXACT)


def test_compiled_on_any_number_of_threads() -> None:
    kernel = sg.jit(sums)
    before = sg.get_num_threads()
    try:
        for x in DATA.values():
            found = []
            for threads in (1, 2, 3):
                sg.set_num_threads(threads)
                found.append([one.numpy() for one in kernel(sg.tensor(x))])
            for one, exact in zip(found[0], wanted(x.astype(np.float64)), strict=True):
                np.testing.assert_allclose(one, exact, rtol=EXACT, atol=1e-10)
            for other in found[1:]:
                for one, same in zip(found[0], other, strict=True):
                    np.testing.assert_array_equal(one, same)
    finally:
        sg.set_num_threads(before)
