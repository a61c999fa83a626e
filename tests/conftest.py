"""What all tests share: hypothesis profiles, the golden fixture, what runs where peers are absent.

``HYPOTHESIS_PROFILE`` chooses among ``dev`` (the default), ``ci`` (where ``CI`` is set) and
``explore`` (fresh random examples, many of them).
"""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

pytest_plugins = ["tests.golden_files", "tests.quick"]

# Two workers share the cores.  A thread of OpenMP that waits for the others sleeps instead of
# spinning, and the BLAS of NumPy, the reference here, starts no threads.  Kernels run on as many
# threads as before.  Set before a library that reads it is loaded; child processes inherit it.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ["SYMGRAD_NO_VERDICT_CACHE"] = "1"  # what is tested here is the proof
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Functions of a few operations, called once: XLA takes longer to optimise them than to run them.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

PEERS = ("torch", "jax", "sklearn", "scipy")

# Derandomised: a test that fails, fails again.  No deadline: nothing here depends on timing.
_SLOW_IS_FINE = [HealthCheck.too_slow]
settings.register_profile(
    "dev", max_examples=20, derandomize=True, deadline=None, suppress_health_check=_SLOW_IS_FINE
)
settings.register_profile(
    "ci", max_examples=60, derandomize=True, deadline=None, suppress_health_check=_SLOW_IS_FINE
)
settings.register_profile(
    "explore", max_examples=1000, deadline=None, suppress_health_check=_SLOW_IS_FINE
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))
# Hypothesis also draws numbers that stand in the modules imported so far: which these are depends
# on the tests before, and it takes a quarter of a minute to read them all.
if hasattr(providers, "_get_local_constants"):
    providers._get_local_constants = lambda: providers._local_constants


@pytest.fixture(scope="module")
def unoptimised() -> Iterator[None]:
    """Kernels of this module are compiled by ``-O0``, in a fifth of the time.

    For tests of which kernels are made, of what and when.  What the optimiser makes of kernels is
    tested in tests/codegen, and where kernels are shipped, trained with or compared with peers.
    """
    from symgrad.runtime import compiler

    quick = ("-O0", *(flag for flag in compiler._COMMON if not flag.startswith("-O")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "_COMMON", quick)
        compiler._probe.cache_clear()
        yield
    compiler._probe.cache_clear()


@pytest.fixture(scope="module", autouse=True)
def _quickly_bound(request: pytest.FixtureRequest) -> Iterator[None]:
    """What lies around kernels is compiled without optimisation, in half of the time.

    Except in the tests of it, and where kernels are shipped, trained with or compared with peers.
    """
    if request.path.parent.name in ("runtime", "export", "examples", "interop"):
        yield
        return
    from symgrad.runtime import build

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "_AROUND", "-O0")
        yield


def _missing_peers() -> list[str]:
    return [name for name in PEERS if importlib.util.find_spec(name) is None]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that compare with peers where these are not installed."""
    if _missing_peers():
        compared = [item for item in items if item.get_closest_marker("peers")]
        items[:] = [item for item in items if not item.get_closest_marker("peers")]
        config.hook.pytest_deselected(items=compared)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What was imported and collected stays: the collector of cycles need not look at it again.

    It would take a seventh of the time of tests in Python.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 20)


def pytest_report_header() -> list[str]:
    """Say what is left out."""
    missing = _missing_peers()
    if not missing:
        return []
    return [f"peers: {', '.join(missing)} not installed, comparisons left out (make test-peers)"]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Say which signal ended a worker: 9 comes from outside, mostly for want of memory."""
    process = getattr(getattr(node.gateway, "_io", None), "popen", None)
    if error is None or not isinstance(process, subprocess.Popen):
        return
    try:
        status = process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        return
    if status < 0:
        print(f"\nworker {node.gateway.id} was ended by {signal.Signals(-status).name}")
