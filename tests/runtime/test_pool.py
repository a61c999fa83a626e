"""Memory of large arrays that are gone is used again, and never what anybody still holds."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
from symgrad.abi import LARGE
from symgrad.errors import KernelArgumentError, KernelTypeError
from symgrad.runtime import pool
from symgrad.runtime.arguments import NDArray

FLOAT32 = np.dtype(np.float32)
SIZES = st.sampled_from([LARGE // 4, LARGE // 4 + 1, LARGE // 2, 3 * LARGE])
VIEWS = (
    lambda array: array[1:],
    lambda array: array.reshape(-1, 1).T,
    lambda array: memoryview(array),
    lambda array: np.from_dlpack(array),
    lambda array: array.view(np.uint8)[::3],
)


@pytest.fixture(autouse=True)
def _limit() -> Iterator[None]:
    limit = pool._pool.limit
    yield
    sg.set_pool_limit(limit)


def address(array: NDArray) -> int:
    """Where an array begins."""
    return int(array.__array_interface__["data"][0])


@given(st.lists(st.tuples(SIZES, st.sampled_from(VIEWS), st.integers(0, 3)), max_size=40))
def test_arrays_that_live_share_no_memory(steps: list[tuple[int, object, int]]) -> None:
    """Whatever is dropped in whatever order: what a view still shows keeps its value."""
    held: list[tuple[object, float]] = []
    for number, (size, view, dropped) in enumerate(steps):
        array = pool.empty((size,), FLOAT32)
        assert address(array) % 64 == 0
        assert array.flags.carray
        array.fill(number)
        held.append((view(array) if number % 3 else array, number))  # type: ignore[operator]
        del array
        del held[:dropped]
        for kept, value in held:
            bytes_of = np.frombuffer(np.asarray(kept).copy(order="C").tobytes(), np.uint8)
            expected = np.frombuffer(np.float32(value).tobytes(), np.uint8)
            assert set(bytes_of.tolist()) <= set(expected.tolist())


def test_memory_is_used_again_once_the_last_view_is_gone() -> None:
    """Not before."""
    first = pool.leased((LARGE,), FLOAT32)
    begin, view = address(first), first[5:]
    del first
    other = pool.leased((LARGE,), FLOAT32)
    assert address(other) != begin
    del view
    assert address(pool.leased((LARGE - 1,), FLOAT32)) == begin, "of about the same size"


def test_a_small_array_is_numpys_own() -> None:
    """Malloc keeps such memory itself."""
    assert pool.empty((7, 3), FLOAT32).flags.owndata
    assert not pool.empty((LARGE,), FLOAT32).flags.owndata


def test_what_waits_is_bounded() -> None:
    """In bytes, in number, and by what was asked for meanwhile."""
    sg.set_pool_limit(20 * LARGE)
    arrays = [pool.leased((LARGE,), FLOAT32) for _ in range(30)]
    arrays.clear()
    assert 0 < pool._pool._bytes <= 20 * LARGE
    assert pool._pool._bytes == sum(block.size for block in pool._pool._waiting)
    for _ in range(pool._PATIENCE + 2):
        pool.leased((LARGE // 2,), FLOAT32)
    assert {block.size for block in pool._pool._waiting} == {2 * LARGE}
    sg.set_pool_limit(0)
    assert not pool._pool._waiting
    pool.leased((LARGE,), FLOAT32)
    assert not pool._pool._waiting
    for wrong in (-1, 2**70):
        with pytest.raises(KernelArgumentError, match=f"bytes that may wait cannot be {wrong}"):
            sg.set_pool_limit(wrong)
    wrongs: Any = ("x", None, 1.5)
    for none in wrongs:
        with pytest.raises(KernelTypeError, match=r"bytes that may wait is .*, and an integer"):
            sg.set_pool_limit(none)


def test_impossible_sizes_are_what_numpy_says() -> None:
    """And nothing is lost."""
    with pytest.raises((MemoryError, ValueError)):
        pool.leased((1 << 50,), FLOAT32)
    assert pool.leased((LARGE,), FLOAT32).shape == (LARGE,)


def test_threads_share_the_pool() -> None:
    """Each writes to arrays that are its own."""
    wrong: list[float] = []

    def work(number: int) -> None:
        for step in range(300):
            array = pool.leased((LARGE // 2,), FLOAT32)
            array.fill(1000 * number + step)
            if not (array == 1000 * number + step).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_arrays_that_die_by_the_collector_come_back() -> None:
    """A collection may start while the pool is being asked."""
    circle: list[object] = [pool.leased((LARGE,), FLOAT32)]
    begin = address(circle[0])  # type: ignore[arg-type]
    circle.append(circle)
    del circle
    gc.collect()
    assert address(pool.leased((LARGE,), FLOAT32)) == begin


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_does_not_wait_for_a_lock_of_its_parent() -> None:
    """Nor does it lose what it holds."""
    array = pool.leased((LARGE,), FLOAT32)
    array.fill(3)
    with pool._pool._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            other = pool.leased((LARGE,), FLOAT32)
            other.fill(4)
            right = bool((array == 3).all()) and address(other) != address(array)
            del other
            os._exit(0 if right and len(pool._pool._waiting) == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (array == 3).all()


def test_outputs_residuals_and_gradients_are_over_it() -> None:
    """A second step computes where the first did."""

    class Square(sg.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            y = sg.exp(x)
            ctx.save_for_backward(y)
            return y * y

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            (y,) = ctx.saved_tensors
            return 2 * g * y * y

    op = sg.compile(Square, "f32[n m]")
    x = np.linspace(-1, 1, LARGE, dtype=np.float32).reshape(256, -1)

    def step() -> set[int]:
        y, residuals = op.forward(x)
        (grad,) = op.backward(residuals, np.ones_like(x))
        assert isinstance(grad, np.ndarray)
        np.testing.assert_allclose(grad, 2 * np.exp(2 * x), rtol=1e-5)
        kept = residuals.arrays.values()
        return {address(one) for one in (y, grad, *kept)} - {address(x)}

    first = step()
    assert step() == first
    assert len(first) >= 2
