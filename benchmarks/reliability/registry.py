"""Kernels of single ops of the registry and of their derivatives, at ordinary and at odd values.

In: a folder, and which part of the registry.  Out: ``Notes``, and the ops that were emitted.

What a random program seldom meets is met here: every op that has C, special values, both dtypes,
and for what is computed element by element the ends of domains, poles and far tails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reliability.notes import Notes, difference
from symgrad.autodiff import vjp
from symgrad.errors import SymgradError
from symgrad.ir import dtype as dtypes
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Graph, Node
from symgrad.ir.rewrite import extract
from symgrad.ir.types import TensorType
from symgrad.ops.record import get
from symgrad.passes.evaluate import evaluate
from tests.codegen.support import Kernel, compile_graphs
from tests.codegen.test_matrix import IN_C, drawn
from tests.ops.cases import STRUCTURES, Case, cases, differentiable, resized, signatures

PARTS = 6
USES = 8  # of each op, at ordinary and at special values
FLAGS = ("-O0", "-fopenmp", "-ffp-contract=off", "-march=native", "-DSHORT_ROW=3")
ODD = (
    0.0, -0.0, 1.0, -1.0, 0.25, -0.25, 0.5, -0.5, 0.999999, -0.999999, 1.5, 2.0, -2.0, 2.5, -2.5,
    3.0, -3.3, 5.7, -7.1, 11.0, 19.5, -19.5, 40.0, -40.0, 100.3, -100.3, 171.5, 1e-3, 1e-9, -1e-9,
    1e-300, -1e-300, 5e-324, 1e6, -1e6, 1e18, -1e18, 1e300, -1e300, np.inf, -np.inf, np.nan,
)  # fmt: skip
LARGE = (5, 40, 700, 5000, 40_000)
MOST = 200_000  # elements of an array
PAIRED = ("rank",)  # ops that compare all pairs of an axis
_RELATIVE = {"float32": 1e-4, "float64": 1e-9}


def run(part: int, folder: Path) -> tuple[Notes, set[str]]:
    """Compile one part of the registry, call all of it."""
    notes = Notes()
    uses = {
        f"k_{name}_{number}": use
        for name in IN_C[part::PARTS]
        for number, use in enumerate([*_drawn(name), *_odd(name)])
    }
    graphs = {name: _graph(case) for name, case in uses.items()}
    folder.mkdir(parents=True)
    kernels = compile_graphs(graphs, folder, FLAGS)
    with np.errstate(all="ignore"):
        for name, kernel in kernels.items():
            for case in (uses[name], *_resized(uses[name]), *_misplaced(uses[name])):
                _compare(kernel, case, notes)
    emitted = {node.op for graph in graphs.values() for node in graph.nodes}
    notes.counts["registry: programs"] += len(graphs)
    return notes, emitted


def _drawn(name: str) -> Iterator[Case]:
    for special in (False, True)[: 1 + _has_special(name)]:
        yield from drawn(cases(name, special=special), USES)


def _has_special(name: str) -> bool:
    """How a sum of products is taken apart decides where infinities meet zeros."""
    return get(name).kind != "contraction"


def _odd(name: str) -> Iterator[Case]:
    """Every pair of odd values, of an op that is computed element by element."""
    if get(name).kind != "elementwise" or name in STRUCTURES:
        return
    for signature in signatures(name, (dtypes.float64, dtypes.float32)):
        rows = np.array(list(product(ODD, repeat=min(len(signature), 2)))).T
        rows = np.concatenate([rows, rows[:1]])[: len(signature)]
        graph = Graph()
        args = [
            graph.input(f"x{at}", TensorType(dtype, (Dim.size("n"),)))
            for at, dtype in enumerate(signature)
        ]
        with np.errstate(all="ignore"):
            feeds = {
                f"x{at}": row.astype(dtype.name)
                for at, (row, dtype) in enumerate(zip(rows, signature, strict=True))
            }
        yield Case(graph.apply(name, *args), feeds, {"n": rows.shape[1]})


def _resized(case: Case) -> Iterator[Case]:
    """All sizes 1, all 0, each 0, each large: sums in blocks and groups."""
    generic = dict(zip(case.sizes, (3, 2, 4), strict=False))
    found = [dict.fromkeys(generic, 1), dict.fromkeys(generic, 0)]
    extents = LARGE[: 3 if case.node.op in PAIRED else None]
    found += [{**generic, name: extent} for name in generic for extent in (0, *extents)]
    for sizes in found:
        with suppress(ArithmeticError, ValueError, SymgradError):
            shapes = [[dim.at(sizes) for dim in node.shape] for node in (*case.args, case.node)]
            if all(min(shape, default=0) >= 0 and prod(shape) <= MOST for shape in shapes):
                small = max(sizes.values(), default=0) <= LARGE[1]
                for special in (False, True)[: 1 + (small and _has_special(case.node.op))]:
                    yield resized(case, sizes, special)


def _misplaced(case: Case) -> Iterator[Case]:
    """An index outside at the first and at the last place."""
    for name, array in case.feeds.items():
        if get(case.node.op).kind == "indexing" and array.dtype == np.int64 and array.size:
            for place in (0, -1):
                moved = array.copy()
                moved.reshape(-1)[place] = 10**6
                yield Case(case.node, {**case.feeds, name: moved}, case.sizes)


def _graph(case: Case) -> Graph:
    """The op, and its derivative where it has one; each cotangent is a power of two."""
    outputs: dict[str, Node] = {"y": case.node}
    if differentiable(case.node.op) and case.node.dtype.is_float:
        floats = [arg for arg in case.args if arg.dtype.is_float]
        cotangent = case.node.graph.lift(0.5, case.node)
        try:
            found = vjp([case.node], [cotangent], floats)
        except SymgradError:
            found = []
        outputs |= {f"g{at}": node for at, node in enumerate(found) if node is not None}
    return extract(outputs, case.args)


def _compare(kernel: Kernel, case: Case, notes: Notes) -> None:
    notes.counts["registry: calls"] += 1
    problem = _problem(kernel, case.feeds, case.sizes)
    if problem:
        notes.fail("registry", problem, repr(case)[:600])


def _problem(kernel: Kernel, feeds: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
    try:
        wanted = evaluate(list(kernel.graph.outputs.values()), feeds, sizes)
    except SymgradError as error:
        try:
            kernel(feeds, sizes)
        except ValueError:
            return ""
        return f"NumPy refused: {error}"
    for name, got, one in zip(kernel.graph.outputs, kernel(feeds, sizes), wanted, strict=True):
        found = difference(got, one, _tolerance(kernel.graph, one))
        if found:
            return f"{name}: {found}"
    return ""


def _tolerance(graph: Graph, wanted: Any) -> Any:
    """Of each element where elements do not meet, of the largest where they do."""
    if wanted.dtype.kind != "f":
        return 0.0
    sizes = np.where(np.isfinite(wanted), np.abs(wanted), 0.0)
    if any(get(node.op).kind not in ("source", "elementwise") for node in graph.nodes):
        sizes = np.maximum(np.max(sizes, initial=0.0), 1.0)
    return _RELATIVE[str(wanted.dtype)] * sizes + np.finfo(wanted.dtype).smallest_normal
