"""Indices that another thread writes to during a call."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.errors import KernelArgumentError

ROWS, WIDTH, COUNT = 50, 16, 4000


class Lookup(sg.Function):
    """Rows of a table, at places in a matrix."""

    @staticmethod
    def forward(ctx: Any, table: "f32[v d]", places: "i64[n k]") -> Any:  # type: ignore[valid-type]
        ctx.save_for_backward(places)
        ctx.rows = table.shape[0]
        return table[places]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (places,) = ctx.saved_tensors
        whole = sg.zeros((ctx.rows, g.shape[2]), dtype=g.dtype)
        return whole.index_add(0, places.reshape(-1), g.reshape(-1, g.shape[2])), None


def race() -> None:
    """Call kernels while a thread makes the indices wrong and right again."""
    import threading

    op: Any = sg.compile(Lookup)
    table = np.zeros((ROWS, WIDTH), np.float32)
    places = np.zeros((COUNT, 2), np.int64)
    result, residuals = op.forward(table, places)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            places.fill(2**40)
            places.fill(3)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(200):
            with contextlib.suppress(KernelArgumentError):
                op(table, places)
            with contextlib.suppress(KernelArgumentError):
                op.backward(residuals, result)
    finally:
        done.set()
        thread.join()


@pytest.mark.slow
def test_no_write_of_another_thread_ends_the_process() -> None:
    code = "from tests.runtime.test_owned import race; race()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("form", ["packed", "reversed", "transposed", "sliced", "one row"])
def test_indices_of_any_layout_are_copied_as_they_lie(form: str) -> None:
    rng = np.random.default_rng(0)
    table = rng.standard_normal((ROWS, WIDTH)).astype(np.float32)
    base = rng.integers(0, ROWS, (24, 8))
    places = {
        "packed": base, "reversed": base[::-1, ::-1], "transposed": base.T,
        "sliced": base[::3, 1::2], "one row": base[5:6],
    }[form]  # fmt: skip
    op: Any = sg.compile(Lookup)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.CopyWarning)
        result, residuals = op.forward(table, places)
        gradient, _ = op.backward(residuals, result)
    assert np.array_equal(result, table[places])
    expected = np.zeros_like(table)
    np.add.at(expected, places, result)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-5)


def test_a_batch_of_indices() -> None:
    rng = np.random.default_rng(1)
    table = rng.standard_normal((3, ROWS, WIDTH)).astype(np.float32)
    places = rng.integers(0, ROWS, (3, 5, 2))
    op: Any = sg.compile(Lookup)
    result = op(table, places)
    assert np.array_equal(result, np.stack([t[p] for t, p in zip(table, places, strict=True)]))
    wrong = places.copy()
    wrong[1, 2, 0] = ROWS
    with pytest.raises(KernelArgumentError, match="out of range"):
        op(table, wrong)
