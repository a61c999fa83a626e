"""Arbitrary graphs in C: equal to what NumPy makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from symgrad.codegen.schedule.interchange import SHORT_ROW
from symgrad.errors import KernelArgumentError
from symgrad.ir.dtype import DType, float32, float64
from symgrad.passes.evaluate import evaluate
from tests.codegen.random_graphs import examples
from tests.codegen.support import FAST, compile_graphs
from tests.codegen.test_matrix import drawn, padded
from tests.graphs import Example

pytestmark = pytest.mark.slow

TOLERANCE = {"float32": 2e-3, "float64": 1e-9}


def assert_computes(
    graphs: dict[str, Example], folder: Path, flags: Sequence[str] = FAST, *, derived: bool = False
) -> None:
    """Compile all graphs in one file, and compare each with its NumPy evaluation."""
    found = {name: example.graph for name, example in graphs.items()}
    kernels = compile_graphs(found, folder, flags, derived=derived)
    for name, kernel in kernels.items():
        example = graphs[name]
        outputs = list(example.graph.outputs.values())
        try:
            wanted = evaluate(outputs, example.feeds, example.sizes)
        except KernelArgumentError:
            with pytest.raises(ValueError, match="out of range"):
                kernel(example.feeds, example.sizes)
            continue
        feeds = {one: padded(array) for one, array in example.feeds.items()}
        for got, one in zip(kernel(feeds, example.sizes), wanted, strict=True):
            tolerance = TOLERANCE.get(str(one.dtype), 0.0)
            scale = np.max(np.abs(one), initial=1.0, where=np.isfinite(one))
            np.testing.assert_allclose(
                got, one, rtol=tolerance, atol=tolerance * scale, err_msg=f"{name} {example}"
            )


@pytest.mark.parametrize("short", [0, SHORT_ROW])
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_graph_in_c_is_what_numpy_makes_of_it(dtype: DType, short: int, tmp_path: Path) -> None:
    """With rows as they are, and with short ones side by side; as written, and factored.

    Each two of these choices meet: factored is what the other dtype has as it is written.
    """
    derived = (dtype == float32) == bool(short)
    found = drawn(examples(dtype=dtype), 45, short)
    graphs = {f"g{number}": example for number, example in enumerate(found)}
    assert_computes(graphs, tmp_path, (*FAST, f"-DSHORT_ROW={short}"), derived=derived)
