"""More than 2^31 elements: places are 64 bits, and what the BLAS cannot count is refused.

Memory that nobody writes to is not there: an array of zeros takes none.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from symgrad import abi
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import float32, int8, int64
from symgrad.ir.graph import Graph
from symgrad.ir.types import TensorType
from tests.codegen.support import Kernel, compile_graphs

INT_MAX = 2**31 - 1
FAR = INT_MAX + 10
N, M, K = map(Dim.size, "nmk")


def doubled() -> Graph:
    graph = Graph()
    x = graph.input("x", TensorType(int8, (N, M)))
    graph.output("y", graph.binary("add", x, x))
    return graph


def chosen() -> Graph:
    graph = Graph()
    x, places = graph.input("x", TensorType(int8, (N,))), graph.input("i", TensorType(int64, (K,)))
    graph.output("y", graph.apply("index", x, places))
    return graph


def total() -> Graph:
    graph = Graph()
    x = graph.apply("cast", graph.input("x", TensorType(int8, (N,))), dtype=int64)
    graph.output("y", graph.apply("sum", x, axes=(0,), keepdims=False))
    return graph


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kernel]:
    graphs = {"doubled": doubled(), "chosen": chosen(), "total": total()}
    return compile_graphs(graphs, tmp_path_factory.mktemp("large"))


@pytest.mark.parametrize("sign", [1, -1])
def test_rows_that_lie_far_apart(kernels: dict[str, Kernel], sign: int) -> None:
    memory = np.zeros(2 * FAR + 5, np.int8)
    x = np.lib.stride_tricks.as_strided(memory, (3, 5), (FAR, 1))[::sign]
    x[:] = np.arange(15).reshape(3, 5)
    (y,) = kernels["doubled"]({"x": x})
    np.testing.assert_array_equal(y, 2 * np.arange(15).reshape(3, 5))


def test_places_beyond_32_bits(kernels: dict[str, Kernel]) -> None:
    x = np.zeros(2 * FAR, np.int8)
    places = np.array([0, FAR - 1, FAR, 2 * FAR - 1])
    x[places] = (1, 2, 3, 4)
    (y,) = kernels["chosen"]({"x": x, "i": places})
    assert y.tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="out of range"):
        kernels["chosen"]({"x": x, "i": np.array([2 * FAR])})


@pytest.mark.slow
def test_a_loop_of_more_than_32_bits(kernels: dict[str, Kernel]) -> None:
    x = np.zeros(FAR, np.int8)
    x[[0, -1]] = (3, 4)
    assert kernels["total"]({"x": x})[0] == 7


def product() -> Graph:
    graph = Graph()
    x = graph.input("x", TensorType(float32, (N, M)))
    w = graph.input("w", TensorType(float32, (M, K)))
    graph.output("y", graph.apply("einsum", x, w, spec="nm,mk->nk"))
    return graph


@pytest.mark.parametrize("large", range(3))
def test_a_matrix_that_the_blas_cannot_count(large: int, tmp_path: Path) -> None:
    """It is refused before any array is looked at; one row less, of nothing, is taken."""
    (kernel,) = compile_graphs({"product": product()}, tmp_path).values()
    record = kernel.emitted.record
    arrays = [ctypes.c_void_p()] * (len(record.inputs) + len(record.outputs) + 1)
    function = getattr(kernel.library, record.name)
    status = {}
    for size in (INT_MAX, INT_MAX + 1):
        sizes = [ctypes.c_int64(size if place == large else 0) for place in range(3)]
        status[size] = function(*sizes, *arrays)
    assert status[INT_MAX] == 0
    assert record.reasons[status[INT_MAX + 1]] == abi.TOO_LARGE
