"""No kernel reads or writes outside of its arrays, or does what C leaves undefined."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys, tempfile
from pathlib import Path
import numpy as np
from tests.codegen.support import compile_graphs
from tests.codegen.test_graphs import assert_computes
from tests.codegen.test_matrix import IN_C, compare, drawn, graph_of
from tests.codegen.programs import each_sample
from tests.codegen.random_graphs import examples, products
from tests.codegen.test_programs import feeds_for
from tests.graphs import Example
from symgrad.ir.dtype import float64
from tests.ops.cases import use
from symgrad.ops.record import get

FLAGS = ("-O0", "-g1", "-fopenmp", "-ffp-contract=off", "-fno-math-errno",
         "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
part, parts = int(sys.argv[1]), int(sys.argv[2])
uses = {}
for name in IN_C[part::parts]:
    for number in range(3):
        uses[f"k_{name}_{number}"] = use(name, number)
with tempfile.TemporaryDirectory() as folder:
    graphs = {name: graph_of(case) for name, case in uses.items()}
    for name, kernel in compile_graphs(graphs, Path(folder), FLAGS).items():
        compare(kernel, uses[name])
with tempfile.TemporaryDirectory() as folder:
    found = drawn(examples(), 25, part)
    assert_computes({f"g{n}": one for n, one in enumerate(found)}, Path(folder), FLAGS)
graph, sizes = each_sample(float64), {"n": 70, "m": 9, "k": 33}
for batch in (2 * part, 2 * part + 1):
    with tempfile.TemporaryDirectory() as folder:
        found = drawn(products(), 25, batch)
        if not batch:  # the same graph for each
            found.append(Example(graph, feeds_for(graph, sizes), sizes))
        assert_computes({f"g{n}": one for n, one in enumerate(found)}, Path(folder), FLAGS)
print("clean")
"""


def _sanitizer() -> str:
    """The library that must be loaded first; empty where there is none."""
    compiler = shutil.which("gcc")
    if compiler is None:
        return ""
    done = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=False
    )
    found = done.stdout.strip()
    return found if os.path.isabs(found) else ""


@pytest.mark.slow
@pytest.mark.skipif(not _sanitizer(), reason="gcc has no address sanitizer here")
@pytest.mark.parametrize("part", range(2))
def test_nothing_outside_of_arrays_nothing_undefined(part: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(part), "2"], cwd=ROOT, capture_output=True, text=True,
        check=False,
        env={
            **os.environ, "PYTHONPATH": str(ROOT), "LD_PRELOAD": _sanitizer(), "CC": "gcc",
            "ASAN_OPTIONS": "detect_leaks=0:detect_odr_violation=0", "OMP_NUM_THREADS": "2",
        },
    )  # fmt: skip
    assert done.returncode == 0, (done.stderr or done.stdout)[-6000:]
    assert done.stdout.endswith("clean\n")
