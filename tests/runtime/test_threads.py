"""Threads: how many, from several at once, and after a fork."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy
import pytest

from symgrad.errors import KernelArgumentError, KernelTypeError
from symgrad.runtime import threads
from symgrad.runtime.op import CompiledOp
from symgrad.runtime.workspace import workspace
from tests.runtime import scripts

SHAPE = (300, 300)  # large enough for a parallel region


@pytest.fixture
def _threads_restored() -> object:
    yield
    threads.set_num_threads(0)


@pytest.mark.usefixtures("_threads_restored")
def test_setting(softplus: CompiledOp) -> None:
    x = numpy.random.default_rng(1).standard_normal(SHAPE).astype("f4")
    results = []
    for count in (1, 2, 3):
        threads.set_num_threads(count)
        assert threads.get_num_threads() == count
        results.append(softplus(x))
    assert all(numpy.array_equal(results[0], other) for other in results)
    threads.set_num_threads(0)
    assert threads.get_num_threads() >= 1


@pytest.mark.usefixtures("_threads_restored")
def test_what_is_no_number_of_threads() -> None:
    threads.set_num_threads(2)
    for wrong in (-1, 2**31, 10**5000):
        with pytest.raises(KernelArgumentError, match="the number of threads cannot be"):
            threads.set_num_threads(wrong)
    nones: Any = ("x", None, 1.5, [1], float("nan"))
    for none in nones:
        with pytest.raises(KernelTypeError, match=r"the number of threads is .*, and an integer"):
            threads.set_num_threads(none)
    assert threads.get_num_threads() == 2


def test_before_any_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_libraries", [])
    monkeypatch.setattr(threads, "_threads", 0)
    monkeypatch.setenv("OMP_NUM_THREADS", "7,3")
    assert threads.get_num_threads() == 7
    monkeypatch.setenv("OMP_NUM_THREADS", "nonsense")
    assert threads.get_num_threads() >= 1


def test_python_threads_at_once(matmul: CompiledOp) -> None:
    """Each thread has a workspace of its own."""
    failures: list[str] = []

    def work(seed: int) -> None:
        random = numpy.random.default_rng(seed)
        for size in (3, 40, 7, 90, 5):
            x, w = random.standard_normal((size, size)), random.standard_normal((size, size))
            y, residuals = matmul.forward(x, w)
            if not numpy.allclose(y, x @ w):
                failures.append(f"forward {size}")
            if not numpy.allclose(matmul.backward(residuals, y)[0], y @ w.T):
                failures.append(f"backward {size}")

    running = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert failures == []


def test_workspace_is_aligned_and_released(matmul: CompiledOp) -> None:
    workspace.release()
    matmul(numpy.ones((50, 70)), numpy.ones((70, 2)))  # more than what C has on the stack
    assert workspace.size >= 8 * 50 * 70
    ffi = matmul.module._library.ffi
    assert int(ffi.cast("uintptr_t", workspace.pointer)) % 64 == 0
    before = workspace.pointer
    matmul(numpy.ones((2, 2)), numpy.ones((2, 2)))
    assert workspace.pointer is before
    workspace.release()
    assert workspace.size == 0


FORK = """
import os, signal, sys, threading, warnings
import numpy
from symgrad.errors import KernelArgumentError, KernelTypeError
from symgrad.runtime import threads
from tests.runtime.examples import MATMUL, SOFTPLUS
warnings.simplefilter("ignore", DeprecationWarning)
op, product = SOFTPLUS.op(), MATMUL.op()
x = numpy.ones((1000, 1000), "f4")
expected = op(x)  # starts the pool of threads
square = numpy.ones((50, 50))
product(square, square)
child = os.fork()
if child == 0:
    signal.alarm(60)
    assert numpy.array_equal(op(x), expected)
    assert threads.get_num_threads() == 1
    other = threading.Thread(target=lambda: op(x))
    other.start()
    other.join()
    assert (product(square, square) == 50).all()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        threads.set_num_threads(4)
    assert "forked process" in str(caught[0].message)
    assert threads.get_num_threads() == 1
    assert numpy.array_equal(op(x), expected)
    os._exit(42)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 42, status
assert numpy.array_equal(op(x), expected)
print(threads.get_num_threads())
"""


FORK_IN_AN_IMPORT = """
import importlib.abc, os, signal, sys, threading, time, warnings
from tests.runtime.examples import SOFTPLUS
warnings.simplefilter("ignore", DeprecationWarning)
begun = threading.Event()

class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            begun.set()
            time.sleep(1)

assert sys.argv[1] not in sys.modules
sys.meta_path.insert(0, Slow())
compiling = threading.Thread(target=SOFTPLUS.op)
compiling.start()
begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)
    SOFTPLUS.op()
    os._exit(42)
_, status = os.waitpid(child, 0)
compiling.join()
print(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("module", ["cffi.cparser"])
def test_a_child_forked_while_another_thread_imports(module: str, tmp_path: Path) -> None:
    """It inherits no lock of a module that nobody will release, and no end of a compiler's pipe."""
    found = scripts.run(FORK_IN_AN_IMPORT, module, SYMGRAD_CACHE_DIR=str(tmp_path / "cache"))
    assert found.splitlines()[-1] == "42"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child() -> None:
    assert scripts.run(FORK, OMP_NUM_THREADS="3").strip() == "3"
