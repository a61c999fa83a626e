"""Every op of the registry in C: equal to its NumPy meaning, for arbitrary uses of it."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from symgrad.errors import KernelArgumentError
from symgrad.ir.graph import Graph
from symgrad.ir.rewrite import extract
from symgrad.ops.record import get
from symgrad.passes.evaluate import evaluate
from tests.codegen.support import FAST, Array, Kernel, compile_graphs
from tests.ops.cases import OPS, Case, use

pytestmark = pytest.mark.slow

T = TypeVar("T")
PARTS = 8
IN_C = [name for name in OPS if get(name).lower or get(name).scalar]
USES = 6
FLAGS = (*(flag for flag in FAST if flag != "-O2"), "-O1")
TOLERANCE = {"float32": 3e-5, "float64": 1e-11}


def drawn(strategy: st.SearchStrategy[T], count: int, part: int = 0) -> list[T]:
    """So many arbitrary values, always the same ones for one ``part``."""
    found: list[T] = []

    @seed(part)
    @settings(
        max_examples=count, database=None, deadline=None,
        phases=(Phase.generate,), suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def collect(case: T) -> None:
        found.append(case)

    collect()
    return found


def graph_of(case: Case) -> Graph:
    """A graph whose output is the use of the op."""
    return extract({"y": case.node}, case.args)


def assert_close(got: Array, wanted: Array, what: object) -> None:
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, wanted, err_msg=repr(what))
        return
    tolerance = TOLERANCE[str(got.dtype)]
    np.testing.assert_allclose(
        got, wanted, rtol=tolerance, atol=tolerance / 10, err_msg=repr(what)
    )  # fmt: skip


def strided(array: Array) -> Array:
    """The same numbers, every other element of a larger array."""
    if array.ndim == 0:
        return array
    wide = np.zeros([2 * size for size in array.shape], array.dtype)
    wide[tuple(slice(None, None, 2) for _ in array.shape)] = array
    return wide[tuple(slice(None, None, 2) for _ in array.shape)]


def padded(array: Array) -> Array:
    """The same numbers, each row a part of a longer one."""
    if array.ndim < 2:
        return array
    wide = np.zeros((*array.shape[:-1], array.shape[-1] + 3), array.dtype)
    wide[..., : array.shape[-1]] = array
    return wide[..., : array.shape[-1]]


def compare(kernel: Kernel, case: Case) -> None:
    try:
        wanted = evaluate(list(kernel.graph.outputs.values()), case.feeds, case.sizes)
    except KernelArgumentError:
        with pytest.raises(ValueError, match="out of range"):
            kernel(case.feeds, case.sizes)
        return
    for change in (np.asarray, strided, padded):
        feeds = {name: change(np.asarray(array)) for name, array in case.feeds.items()}
        for got, one in zip(kernel(feeds, case.sizes), wanted, strict=True):
            assert_close(got, one, case)


@pytest.mark.parametrize("part", range(PARTS))
def test_op_in_c_is_its_numpy_meaning(part: int, tmp_path: Path) -> None:
    uses: dict[str, Case] = {}
    for name in IN_C:
        if zlib.crc32(name.encode()) % PARTS == part:
            # How a sum of products is taken apart decides where infinities meet zeros.
            for special in (False, True)[: 1 + (get(name).kind != "contraction")]:
                for number in range(USES):
                    case = use(name, number, special=special)
                    uses[f"k_{name}_{int(special)}_{number}"] = case
    graphs = {name: graph_of(case) for name, case in uses.items()}
    rows = ("-DSHORT_ROW=0",) if part % 2 else ()  # all sizes are small here
    kernels = compile_graphs(graphs, tmp_path, (*FLAGS, *rows))
    for name, kernel in kernels.items():
        compare(kernel, uses[name])
