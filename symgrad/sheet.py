"""The sheet of an op: what each kernel costs, how far it is from its formula, what was proved.

In: a plan, its report, texts and validation.  Out: ``Sheet``, which ``symgrad build --report``
shows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from symgrad.accuracy.drawn import Draws
from symgrad.accuracy.measure import measure
from symgrad.accuracy.records import Accuracy
from symgrad.accuracy.subject import Subject, subject
from symgrad.budgets import SCALING_ELEMENTS
from symgrad.emission import EmittedOp
from symgrad.errors import BuildError, CacheError, SymgradError
from symgrad.ir.dim import Dim, product
from symgrad.ir.formula import formulas
from symgrad.ir.graph import Node, ancestors
from symgrad.kernels import KernelPlan, OpPlan
from symgrad.manifest import proof_line
from symgrad.ops.record import Function, Helper, Template, get
from symgrad.proof.oracle.sample import Unsatisfiable
from symgrad.runtime.op import make_op
from symgrad.runtime.threads import get_num_threads, set_num_threads

if TYPE_CHECKING:
    from symgrad.proof.report.records import Report
    from symgrad.validation import Validation

REPEATS = 5
"""Calls that are timed; the fastest counts."""


@dataclass(frozen=True)
class KernelSheet:
    """One kernel.  Costs are formulas over the sizes.

    ``operations``: additions, multiplications, comparisons; ``calls``: of functions such as exp;
    ``traffic``: bytes of its inputs and outputs, each once; ``status``: of the validation.
    """

    name: str
    formula: tuple[str, ...]
    operations: str
    calls: str
    traffic: str
    workspace: str
    status: str


@dataclass(frozen=True)
class Scaling:
    """Seconds of one forward and backward by threads, at sizes."""

    sizes: dict[str, int]
    seconds: tuple[tuple[int, float], ...]

    @property
    def ratios(self) -> tuple[tuple[int, float], ...]:
        """How many times faster than one thread."""
        return tuple((threads, self.seconds[0][1] / time) for threads, time in self.seconds)


@dataclass(frozen=True)
class Sheet:
    """One op.  ``kept``: the arrays that forward makes for backward alone."""

    name: str
    verdict: str
    said: str
    inputs: str
    outputs: str
    kept: tuple[str, ...]
    kernels: tuple[KernelSheet, ...]
    accuracy: Accuracy
    scaling: Scaling | None = None


def sheet(
    plan: OpPlan, report: Report, emitted: EmittedOp, validation: Validation | None, *,
    scaling: bool = False,
) -> Sheet:  # fmt: skip
    """The sheet of an op, whose kernels are compiled and run; ``scaling``: on more threads."""
    status = {one.name: one.verdict for one in validation.kernels} if validation else {}
    kernels = [one for one in plan.kernels if not one.pruned]
    case = emitted.op.cases[0]
    accuracy, times = _measured(plan, emitted, scaling)
    return Sheet(
        plan.name, str(report.verdict), proof_line(report, replaced=plan.judged is not None),
        ", ".join(map(str, case.inputs)), ", ".join(map(str, case.outputs)),
        tuple(str(one.array) for one in case.residuals if one.source == "kernel"),
        tuple(_kernel(one, emitted, status.get(one.name, "")) for one in kernels), accuracy, times,
    )  # fmt: skip


def _measured(
    plan: OpPlan, emitted: EmittedOp, scaling: bool
) -> tuple[Accuracy, Scaling | None]:  # fmt: skip
    try:
        op = make_op(emitted.wrapper(), emitted.texts, values=plan.graphs.values)
    except (BuildError, CacheError) as error:
        return Accuracy(plan.name, failed=error.what), None
    found = measure(plan.name, [(plan, op)])
    return found, _scaling(subject(plan, op, plan.cases[0])) if scaling else None


# -- costs


def _kernel(kernel: KernelPlan, emitted: EmittedOp, status: str) -> KernelSheet:
    graph = kernel.graph
    nodes = ancestors([*graph.outputs.values()])
    arrays = [*graph.inputs.values(), *graph.outputs.values()]
    traffic = _total(elements(node) * node.dtype.itemsize for node in arrays)
    text = emitted.texts[emitted.op.files[0]]
    return KernelSheet(
        kernel.name, tuple(formulas(graph)), _total(map(_operations, nodes)),
        _total(map(_calls, nodes)), traffic, workspace(text, kernel.name), status,
    )  # fmt: skip


def _total(parts: Iterable[Dim]) -> str:
    return str(sum(parts, Dim.of(0)))


def elements(node: Node) -> Dim:
    """How many elements a node has."""
    return product(node.shape)


def _operations(node: Node) -> Dim:
    """The arithmetic of a node, without functions of libm."""
    kind = get(node.op).kind
    if kind == "contraction":
        letters: dict[str, Dim] = {}
        operands = node.attributes["spec"].split("->")[0].split(",")
        for operand, arg in zip(operands, node.args, strict=True):
            letters |= dict(zip(operand, arg.shape, strict=True))
        return product([*letters.values()]) * 2
    if kind == "reduction":
        return elements(node.args[0])
    if kind == "linalg":
        return elements(node.args[0]) * node.args[0].shape[-1]
    return elements(node) if kind == "elementwise" and not _functions(node) else Dim.of(0)


def _calls(node: Node) -> Dim:
    return elements(node) * _functions(node)


def _functions(node: Node) -> int:
    """How many functions of libm an element of a node calls."""
    scalar = get(node.op).scalar
    if scalar is None or not node.dtype.is_float:
        return 0
    if isinstance(scalar.c, Template):
        return len(scalar.c.vector_functions)
    return int(isinstance(scalar.c, (Function, Helper)))


def workspace(text: str, kernel: str) -> str:
    """The bytes of workspace of a kernel, as its C states them."""
    found = re.search(rf"int64_t {kernel}_workspace\([^)]*\)\n\{{.*?return (.*?);\n\}}", text, re.S)
    return " ".join(found[1].split()) if found else ""


# -- threads


def _scaling(one: Subject) -> Scaling | None:
    """Times at one large point; None where no point can be drawn."""
    draws = Draws(one)
    sizes = _large(draws)
    if sizes is None:
        return None
    feeds: dict[str, Any] = {}
    with suppress(SymgradError, Unsatisfiable):
        feeds = one.full(draws.point(sizes, 0, "real"))
    if not feeds:
        return None
    before, found = get_num_threads(), []
    try:
        for threads in _counts():
            set_num_threads(threads)
            found.append((threads, min(_seconds(one, feeds) for _ in range(REPEATS + 1))))
    finally:
        set_num_threads(before)
    return Scaling(sizes, tuple(found))


def _counts() -> list[int]:
    """1, 2, 4 and so on, and all processors."""
    most = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    powers = [2**power for power in range(most.bit_length()) if 2**power < most]
    return [*powers, most]


def _seconds(one: Subject, feeds: dict[str, Any]) -> float:
    start = perf_counter()
    one.run(feeds)
    return perf_counter() - start


def _large(draws: Draws) -> dict[str, int] | None:
    """All sizes alike, as large as the work allows."""
    draws.sampler.most = SCALING_ELEMENTS
    alike: Sequence[dict[str, int]] = [
        dict.fromkeys(draws.names, 2**power) for power in range(24, 1, -1)
    ]
    return next((sizes for sizes in alike if draws.fits(sizes, SCALING_ELEMENTS)), None)
