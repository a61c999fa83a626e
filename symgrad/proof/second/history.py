"""The derivative of a backward as PyTorch takes it, from the markers of a trace.

In: a ``FunctionCase`` that was traced with histories.  Out: ``Recorded``: the gradients without
markers, their derivatives, and the markers that these went through.

A value with a ``detach`` marker passes nothing on.  One with an ``applied`` marker passes on what
the backward of that Function makes of it.  Every other op passes on its own derivative.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from symgrad.autodiff.reverse import Parts, adjoints, by_record
from symgrad.ir.function import AppliedRule, FunctionCase, HistoryRecord
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ops.markers import MARKERS, recorded_args, value_args, without_markers


@dataclass(frozen=True)
class Marker:
    """A place where PyTorch's record is not the computation itself.

    ``node``: the marker; ``depends``: the inputs that its value depends on, by name; ``rule``: of
    an ``applied`` marker.
    """

    node: Node
    depends: frozenset[str]
    rule: AppliedRule | None = None


class Recorded:
    """One case, its gradients with the markers that matter.

    ``trusted``: the backward is proved, so that what the outputs pass on is their derivative.
    ``gradients`` by input; ``inputs`` and ``cotangents``: what these are differentiated by.
    """

    def __init__(self, case: FunctionCase, wanted: Sequence[str], *, trusted: bool) -> None:
        self.case = case
        record = case.record or HistoryRecord()
        self.graph = Graph()
        given = {g.input: g.node for g in case.gradients if g.node is not None}
        cotangents = [node for node in case.cotangents if node is not None]
        rules = [node for rule in record.rules for node in (*rule.cotangents, *rule.gradients)]
        roots = [*case.inputs, *cotangents, *given.values(), *(n for n in rules if n is not None)]
        nodes = ancestors(roots)
        self.inputs = [node for node in case.inputs if node.dtype.is_float]
        depends = dependence(nodes, [*self.inputs, *cotangents])
        new = _marked(self.graph, nodes, depends, trusted)
        self._rules = tuple(_moved(rule, new) for rule in record.rules)
        self.all_inputs = [new[node] for node in case.inputs]
        self.inputs = [new[node] for node in self.inputs]
        self.cotangents = [new[node] for node in cotangents]
        self.gradients = {name: new[given[name]] for name in wanted if name in given}
        self.overwritten = {new[node] for node in record.overwritten if node in new}
        self.read_late: dict[Node, None] = {}
        self._writes = {new[node] for node in record.writes if node in new}
        self.depends = dependence(self.graph.nodes, [*self.inputs, *self.cotangents])
        self.markers = [
            Marker(node, self.depends[node], self._rule(node))
            for node in float_ancestors(self.gradients.values())
            if node.op in MARKERS
        ]

    def _rule(self, node: Node) -> AppliedRule | None:
        return self._rules[node.attributes["rule"]] if node.op == "applied" else None

    def derivative(self, outputs: Sequence[tuple[Node, Node]]) -> dict[Node, Node]:
        """The adjoint of every node that the first of each pair depends on.

        The second of each pair is its cotangent.  ``read_late`` is what this needs of values that
        have been written over by then.
        """

        def flows(node: Node) -> bool:
            return bool(self.depends.get(node))

        recorded = by_record(self._rules.__getitem__, flows)

        def parts(node: Node, cotangent: Node) -> Parts:
            before = len(self.graph.nodes)
            for arg, part in recorded(node, cotangent):
                if part is not None and flows(arg) and node not in self._writes:
                    self._note_read(part, before)
                yield arg, part

        order = ancestors(node for node, _ in outputs)
        return adjoints(outputs, order, flows=flows, parts=parts)

    def _note_read(self, part: Node, before: int) -> None:
        """Remember what nodes that were made since ``before`` read of what was written over."""
        todo = [part] if self.overwritten else []
        seen: set[Node] = set()
        while todo:
            node = todo.pop()
            if node.index >= before and node not in seen:
                seen.add(node)
                self.read_late.update(dict.fromkeys(a for a in node.args if a in self.overwritten))
                todo.extend(node.args)


def _marked(
    graph: Graph, nodes: Sequence[Node], depends: Mapping[Node, frozenset[str]], trusted: bool
) -> dict[Node, Node]:
    """``nodes`` in ``graph``, without the markers that change no derivative."""
    plain = without_markers(graph, nodes)

    def rule(node: Node, args: Sequence[Node]) -> Node | None:
        if node.op not in MARKERS:
            return None
        value = plain[node]
        if not depends[node] or (trusted and node.attributes.get("rule") == 0):
            return value
        return graph.apply(node.op, value, *args[1:], **node.attributes)

    return rewrite(graph, nodes, rule=rule)


def _moved(rule: AppliedRule, new: Mapping[Node, Node]) -> AppliedRule:
    def moved(nodes: Sequence[Node | None]) -> tuple[Node | None, ...]:
        return tuple(None if node is None else new[node] for node in nodes)

    return AppliedRule(
        rule.name, moved(rule.cotangents), moved(rule.gradients), rule.location, rule.problem,
        rule.once,
    )  # fmt: skip


def stripped(roots: Iterable[Node]) -> tuple[Graph, dict[Node, Node]]:
    """What the values of ``roots`` need in a new graph, without markers."""
    graph = Graph()
    return graph, without_markers(graph, roots)


def dependence(nodes: Iterable[Node], inputs: Sequence[Node]) -> dict[Node, frozenset[str]]:
    """The inputs that each node depends on through floats, whatever the markers say."""
    own = {node: frozenset((str(node.attributes["name"]),)) for node in inputs}
    nothing: frozenset[str] = frozenset()
    found: dict[Node, frozenset[str]] = {}
    for node in nodes:
        if node in own:
            found[node] = own[node]
            continue
        parts = [found[arg] for arg in value_args(node) if found[arg]]
        parts = parts if node.dtype.is_float else []
        found[node] = parts[0].union(*parts[1:]) if parts else nothing
    return found


def float_ancestors(roots: Iterable[Node]) -> list[Node]:
    """What ``roots`` are recorded to depend on through floats, arguments first."""
    return ancestors(
        roots, follow=lambda node: [arg for arg in recorded_args(node) if arg.dtype.is_float]
    )
