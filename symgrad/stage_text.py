"""The text of each stage of the compiler.

In: traced Functions and plans.  Out: text in the names of the user's source.
"""

from __future__ import annotations

from collections.abc import Iterator

from symgrad.codegen.schedule.explain import schedule_text
from symgrad.emission import emit
from symgrad.index.lower import Lowering
from symgrad.index.text import expression_text
from symgrad.ir.dim import Dim
from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.ir.graph import Graph
from symgrad.ir.printer import graph_text
from symgrad.kernels import KernelPlan, OpPlan


def graph(graphs: FunctionGraphs) -> str:
    """Forward and the hand-written backward, as traced."""
    return "\n".join(_case(graphs, case) for case in graphs.cases)


def reverse(plan: OpPlan) -> str:
    """The graphs of the kernels: forward and backward."""
    return "\n".join(
        f"# {kernel.name}\n{graph_text(kernel.graph)}" for kernel in _main(plan)
    )  # fmt: skip


def index(plan: OpPlan) -> str:
    """Each output in index notation."""
    return "\n".join(line for kernel in _main(plan) for line in _index(kernel))


def schedule(plan: OpPlan) -> str:
    """The loops of each kernel, and what each loop computes."""
    return "\n".join(
        f"# {kernel.name}\n{schedule_text(kernel.graph, derived=kernel.derived)}"
        for kernel in _main(plan)
    )


def c(plan: OpPlan, proof: str) -> str:
    """The C of forward and of the whole backward."""
    return emit(plan, proof).texts[f"{plan.name}.c"]


def _main(plan: OpPlan) -> list[KernelPlan]:
    return [kernel for kernel in plan.kernels if not kernel.pruned]


def _case(graphs: FunctionGraphs, case: FunctionCase) -> str:
    title = f"{graphs.name}.forward"
    when = ", ".join(map(str, case.conditions))
    parts = [f"# {title}{f', {when}' if when else ''}"]
    outputs = dict(zip(case.output_names, case.outputs, strict=True))
    parts.append(graph_text(case.graph, outputs, locations=True))
    gradients = {
        f"grad_{gradient.input}": gradient.node for gradient in case.gradients if gradient.node
    }
    if gradients:
        parts.append(f"# {graphs.name}.backward")
        parts.append(graph_text(case.graph, gradients, locations=True))
    if case.problem is not None:
        parts.append(f"# {graphs.name}.backward raised: {case.problem}\n")
    return "\n".join(parts)


def _index(kernel: KernelPlan) -> Iterator[str]:
    yield f"# {kernel.name}"
    yield from _definitions(kernel.graph)
    yield ""


def _definitions(graph: Graph) -> Iterator[str]:
    """One line for each output and each named value; lines refer to values by name."""
    named = [node for node in graph.nodes if node.name and node.args]
    wanted = dict(graph.outputs)
    shown = {node: node.name for node in named if node not in wanted.values()}
    lowering = Lowering(graph, cuts=shown)
    names = {f"%{node.index}": str(name) for node, name in shown.items()}
    lines = [(node, str(name)) for node, name in shown.items()]
    lines += [(node, name) for name, node in wanted.items()]
    for node, name in sorted(lines, key=lambda line: line[0].index):
        axes = lowering.axes(node)
        body = lowering.element(node, [Dim.of(axis) for axis in axes], body=True)
        yield expression_text(name, axes, body, names)
