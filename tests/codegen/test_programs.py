"""Well-known computations: their C to be read, its results, its bits."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symgrad.codegen.emit.file import FileDoc, emit_file, prelude
from symgrad.codegen.emit.kernel import KernelDoc, emit_kernel
from symgrad.ir.dtype import DType, float32, float64
from symgrad.ir.graph import Graph
from symgrad.passes.evaluate import evaluate
from tests.codegen.programs import PROGRAMS, each_sample
from tests.codegen.support import Array, Kernel, compile_graphs
from tests.golden_files import Golden

SIZES = [
    {"n": 1, "m": 1, "k": 1, "b": 1},
    {"n": 3, "m": 5, "k": 4, "b": 2},
    {"n": 0, "m": 3, "k": 2, "b": 0},
    {"n": 4, "m": 0, "k": 2, "b": 1},
    {"n": 257, "m": 33, "k": 40, "b": 3},
    {"n": 1000, "m": 31, "k": 3, "b": 1},
    {"n": 390, "m": 120, "k": 110, "b": 1},
    {"n": 2, "m": 10000, "k": 5, "b": 1},
]
TOLERANCE = {"float32": 2e-4, "float64": 1e-11}


@pytest.mark.parametrize("name", PROGRAMS)
def test_c(name: str, golden: Golden) -> None:
    kernel = emit_kernel(PROGRAMS[name](), name, KernelDoc(name.replace("_", " ")))
    golden(emit_file([kernel], FileDoc(name)).source)


def test_prelude(golden: Golden) -> None:
    golden(prelude(), "h")


def feeds_for(graph: Graph, sizes: dict[str, int]) -> dict[str, Array]:
    source = np.random.default_rng(0)
    found: dict[str, Array] = {}
    for name, node in graph.inputs.items():
        shape = [size.at(sizes) for size in node.shape]
        if node.dtype.is_float:
            found[name] = source.standard_normal(shape).astype(str(node.dtype))
        else:
            found[name] = source.integers(0, max(sizes["m"], 1), shape)
    return found


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kernel]:
    graphs = {
        f"{name}_{dtype.short}": program(dtype)
        for name, program in PROGRAMS.items()
        for dtype in (float32, float64)
    }
    return compile_graphs(graphs, tmp_path_factory.mktemp("programs"))


@pytest.mark.slow
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_is_what_numpy_makes_of_it(kernels: dict[str, Kernel], sizes: dict[str, int]) -> None:
    for name, kernel in kernels.items():
        if name.startswith("cross_entropy") and sizes["n"] and not sizes["m"]:
            continue  # no column to be right
        feeds = feeds_for(kernel.graph, sizes)
        wanted = evaluate(list(kernel.graph.outputs.values()), feeds, sizes)
        for got, one in zip(kernel(feeds, sizes), wanted, strict=True):
            tolerance = TOLERANCE[str(one.dtype)]
            scale = np.max(np.abs(one), initial=1.0)
            np.testing.assert_allclose(
                got, one, rtol=tolerance, atol=tolerance * scale, err_msg=name
            )


@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_a_block_of_a_product_does_not_lie_where_one_row_is_kept(
    dtype: DType, tmp_path: Path
) -> None:
    kernel = compile_graphs({"each_sample": each_sample(dtype)}, tmp_path)["each_sample"]
    for sizes in ({"n": 0, "m": 3, "k": 9}, {"n": 31, "m": 3, "k": 9}, {"n": 259, "m": 9, "k": 33}):
        feeds = feeds_for(kernel.graph, sizes)
        wanted = evaluate(list(kernel.graph.outputs.values()), feeds, sizes)
        tolerance = TOLERANCE[str(dtype)]
        np.testing.assert_allclose(kernel(feeds, sizes)[0], wanted[0], tolerance, tolerance)


@pytest.mark.parametrize(("n", "m", "k"), [(1203, 301, 7), (1203, 301, 37), (1203, 301, 320)])
def test_same_bits_for_any_number_of_threads(
    kernels: dict[str, Kernel], n: int, m: int, k: int
) -> None:
    """Sums of few and many terms; products by rows of their own and as sums over groups."""
    sizes = {"n": n, "m": m, "k": k, "b": 3}
    for name, kernel in kernels.items():
        if name.startswith("attention"):
            sizes = sizes | {"n": 120, "m": 70}
        feeds = feeds_for(kernel.graph, sizes)
        results = []
        for threads in (1, 2, 3, 5):
            _set_threads(kernel.library, threads)
            results.append([output.tobytes() for output in kernel(feeds, sizes)])
        _set_threads(kernel.library, os.cpu_count() or 1)
        assert all(result == results[0] for result in results), name


def _set_threads(library: Any, count: int) -> None:
    """The OpenMP that the kernels were linked with."""
    library.omp_set_num_threads(ctypes.c_int(count))


def test_bytes_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "import sys; from tests.codegen.programs import PROGRAMS\n"
        "from symgrad.codegen.emit.file import FileDoc, emit_file\n"
        "from symgrad.codegen.emit.kernel import emit_kernel\n"
        "for name, program in PROGRAMS.items():\n"
        "    sys.stdout.write(emit_file([emit_kernel(program(), name)], FileDoc(name)).source)\n"
    )
    root = Path(__file__).parents[2]
    texts = {
        subprocess.run(
            [sys.executable, "-c", program], cwd=root, check=True, capture_output=True, text=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
        ).stdout
        for seed in ("0", "1", "2")
    }  # fmt: skip
    assert len(texts) == 1
    assert texts.pop()
