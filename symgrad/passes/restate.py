"""A traced Function with other nodes of the same value in it.

In: a Function, and what is put for each of its nodes.  Out: the Function with these.

A derived backward is the derivative of what was put.  A hand-written one reads what forward saves
as it is: what is put for its nodes does not look below that.  What backward compares with what was
made of it has the same bits on both sides: nothing is put there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from symgrad.autodiff import vjp
from symgrad.ir.function import FunctionCase, FunctionGraphs, Gradient
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ops.compared import compared
from symgrad.passes.rules import simplest

Put = Callable[[Node, Mapping[Node, int]], Node]
"""What is put for a simple node, given how many read each node."""


@dataclass(frozen=True)
class Steps:
    """What was put for what: in forward and backward, and then in derived gradients alone."""

    everywhere: Mapping[Node, Node] = field(default_factory=dict)
    late: Mapping[Node, Node] = field(default_factory=dict)

    @property
    def pairs(self) -> list[tuple[Node, Node]]:
        """Each node with what was put for it."""
        return [*self.everywhere.items(), *self.late.items()]


def derived(graphs: FunctionGraphs, case: FunctionCase) -> FunctionCase:
    """A case with a derived backward."""
    wanted = [case.tensors[graphs.input_names.index(name)] for name in graphs.differentiable]
    found = vjp(case.outputs, case.cotangents, wanted)
    pairs = zip(graphs.differentiable, found, strict=True)
    return replace(case, gradients=tuple(Gradient(name, node, node) for name, node in pairs))


def restated(
    graphs: FunctionGraphs, put: Put, late: Callable[[FunctionCase], Put] | None = None,
    into: Sequence[Graph] | None = None,
) -> FunctionGraphs:  # fmt: skip
    """The Function, with a backward, with what is put for its nodes.

    ``late``: what is put afterwards for nodes of the derived gradients of a case.  ``into``: the
    graphs of its cases, new ones by default.  They hold what kernels are made of, and nothing that
    is stated of it.
    """
    into = into or [Graph() for _ in graphs.cases]
    pairs = zip(graphs.cases, into, strict=True)
    return replace(
        graphs, cases=tuple(_case(graphs, _copied(case, graph), put, late) for case, graph in pairs)
    )


def _copied(case: FunctionCase, graph: Graph) -> FunctionCase:
    """A case in another graph."""
    gradients = [one.node for one in case.gradients if one.node is not None]
    roots = [*case.outputs, *case.saved, *gradients]
    new = rewrite(graph, roots, inputs=case.graph.inputs.values())
    return replace(
        case, graph=graph,
        inputs=tuple(new[node] for node in case.inputs),
        outputs=tuple(new[node] for node in case.outputs),
        cotangents=tuple(None if node is None else new[node] for node in case.cotangents),
        saved=tuple(new[node] for node in case.saved),
        gradients=tuple(
            replace(one, node=None if one.node is None else new[one.node], returned=None)
            for one in case.gradients
        ),
        record=None, relations=(), unwritten=(), demanded=(),
    )  # fmt: skip


def _case(
    graphs: FunctionGraphs, case: FunctionCase, put: Put,
    late: Callable[[FunctionCase], Put] | None,
) -> FunctionCase:  # fmt: skip
    if case.problem is not None or (not graphs.derived and _compares(case)):
        return case
    new = _put([*case.outputs, *case.saved], {}, put)
    forward = replace(
        case, outputs=tuple(new[node] for node in case.outputs),
        saved=tuple(new[node] for node in case.saved),
    )  # fmt: skip
    if graphs.derived:
        found = derived(graphs, forward)
        if _compares(found):
            return found
        found = _backward(found, {}, put)
        return found if late is None else _backward(found, {}, late(found))
    hidden = {node: node.graph.apply("detach", new[node]) for node in case.saved}
    return _backward(forward, hidden, put)


def _compares(case: FunctionCase) -> bool:
    """Does backward compare what forward computed with what was made of it?"""
    gradients = [one.node for one in case.gradients if one.node is not None]
    return bool(compared(ancestors(gradients)))


def _backward(case: FunctionCase, hidden: Mapping[Node, Node], put: Put) -> FunctionCase:
    """Its gradients restated; ``hidden``: what stands for nodes that are not looked into."""
    roots = [one.node for one in case.gradients if one.node is not None]
    new = _put(roots, hidden, put)
    shown = {node: node.args[0] for node in hidden.values()}
    seen = rewrite(case.graph, new.values(), shown) if roots else {}
    gradients = tuple(
        one if one.node is None else replace(one, node=seen[new[one.node]])
        for one in case.gradients
    )
    return replace(case, gradients=gradients)


def _put(roots: Sequence[Node], known: Mapping[Node, Node], put: Put) -> dict[Node, Node]:
    """What stands for ``roots``, in their graph: themselves where nothing is put below them."""
    readers = Counter(arg for node in ancestors(roots, stop=known) for arg in node.args)
    readers.update(roots)
    changed = {hiding for node, hiding in known.items() if hiding.args[0] is not node}

    def rule(node: Node, args: Sequence[Node]) -> Node:
        if not args:
            return node
        made = node if tuple(args) == node.args else node.graph.copy(node, args)
        simple = made if node.op == "shift" else simplest(made)
        found = put(simple, readers)
        if found is not node:
            readers[found] += readers[node]
        if found is not simple or not changed.isdisjoint(args):
            changed.add(found)
        return found

    new = rewrite(roots[0].graph, roots, known, rule, named=False) if roots else {}
    return {root: new[root] if new[root] in changed else root for root in roots}
