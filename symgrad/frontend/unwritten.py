"""Memory that nobody wrote: what ``empty`` makes, and who reads it.

In: a case whose graph has ``unwritten`` nodes.  Out: the case without them, and what has to be 0
everywhere so that no value is computed from such memory.

Beside each node that may show such memory stands a node of the same shape, which is 1 where it
does and 0 elsewhere.  What moves or chooses elements moves and chooses these as well; anything else
reads its operands, and so does the caller with outputs and gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from symgrad.ir.dtype import float64
from symgrad.ir.function import AppliedRule, Asked, FunctionCase, HistoryRecord, Unwritten
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ops.markers import MARKERS
from symgrad.ops.record import get

OP = "unwritten"


def initialised(case: FunctionCase) -> FunctionCase:
    """The case with zeros for memory that nobody wrote, and with what reads of it have to be."""
    made = [node for node in case.graph.nodes if node.op == OP]
    if not made:
        return case
    returned = [one.returned for one in case.gradients]
    roots = [*case.outputs, *(one.node for one in case.gradients), *returned]
    kept = [node for node in roots if node is not None]
    reads = _Reads(case.graph, kept).found
    names = ", ".join(dict.fromkeys(str(node.attributes["made"]) for node in made))
    location = next((node.location for node in made if node.location), None)
    asked = Asked(f"it reads elements of {names}() that nobody wrote", location)
    clean = _without(case)
    return replace(clean, unwritten=tuple(Unwritten(node, asked) for node in reads))


class _Reads:
    """``found``: nodes that have to be 0 everywhere."""

    def __init__(self, graph: Graph, roots: Sequence[Node]) -> None:
        self.graph = graph
        self.masks: dict[Node, Node | None] = {}
        self.found: list[Node] = []
        for node in ancestors(roots):
            self.masks[node] = self._mask(node)
        for node in dict.fromkeys(roots):
            self._read(node)
        known = dict.fromkeys(self.found)
        clean = rewrite(graph, known, rule=_as_zeros, named=False)
        self.found = [clean[node] for node in known]

    def _read(self, node: Node) -> None:
        mask = self.masks[node]
        if mask is not None and 0 not in mask.shape:
            self.found.append(mask)

    def _mask(self, node: Node) -> Node | None:
        """Where a node shows memory that nobody wrote; None for nowhere."""
        if node.op == OP:
            return self._filled(1.0, node)
        masks = [self.masks[arg] for arg in node.args]
        if not any(masks):
            return None
        first, *rest = node.args
        kind = get(node.op).kind
        if node.op in MARKERS or node.op == "cast":
            return masks[0]
        if kind == "movement":
            return self.graph.apply(node.op, *map(self._shown, node.args), **node.attributes)
        if node.op == "index" and not any(masks[1:]):
            return self.graph.apply(node.op, self._shown(first), *rest, **node.attributes)
        if node.op == "where" and masks[0] is None:
            return self.graph.apply("where", first, *map(self._shown, rest))
        for arg in node.args:
            self._read(arg)
        return None

    def _shown(self, node: Node) -> Node:
        return self.masks[node] or self._filled(0.0, node)

    def _filled(self, value: float, like: Node) -> Node:
        return self.graph.expand(self.graph.constant(value, float64), like.shape)


def _as_zeros(node: Node, args: Sequence[Node]) -> Node | None:
    return args[0] if node.op == OP else None


def _without(case: FunctionCase) -> FunctionCase:
    """The case with what the memory is made of in the trace: zeros."""
    record = case.record
    parts = [node for g in case.gradients for node in (g.node, g.returned)]
    kept = [*case.inputs, *case.outputs, *case.saved, *case.cotangents, *parts]
    kept += [node for one in case.relations for node in one.nodes]
    kept += [one.node for one in case.demanded]
    kept += [] if record is None else _recorded(record)
    new = rewrite(case.graph, [node for node in kept if node is not None], rule=_as_zeros)

    def moved(node: Node | None) -> Node | None:
        return None if node is None else new[node]

    return replace(
        case,
        outputs=tuple(new[node] for node in case.outputs),
        gradients=tuple(
            replace(g, node=moved(g.node), returned=moved(g.returned)) for g in case.gradients
        ),
        saved=tuple(dict.fromkeys(new[node] for node in case.saved)),
        relations=tuple(one.put(new) for one in case.relations),
        demanded=tuple(replace(one, node=new[one.node]) for one in case.demanded),
        record=record and replace(
            record,
            rules=tuple(
                replace(
                    rule,
                    cotangents=tuple(map(moved, rule.cotangents)),
                    gradients=tuple(map(moved, rule.gradients)),
                )
                for rule in record.rules
            ),
            overwritten=tuple(new[node] for node in record.overwritten),
            writes=tuple(new[node] for node in record.writes),
        ),
    )  # fmt: skip


def _recorded(record: HistoryRecord) -> list[Node | None]:
    def of(rule: AppliedRule) -> list[Node | None]:
        return [*rule.cotangents, *rule.gradients]

    return [node for rule in record.rules for node in of(rule)] + [
        *record.overwritten, *record.writes
    ]  # fmt: skip
