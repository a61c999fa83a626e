"""The backward of a plan: what forward keeps for it, and the program that computes it.

In: a plan, and which of its inputs need a gradient.  Out: ``Derivative``.

What is kept is the frontier between the forward and the backward part of the differentiated
graph: inputs, outputs, and values in between.  Where the backward is itself recorded, it is
computed from inputs and outputs alone, since those have a history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.autodiff.reverse import Parts, adjoints, by_op, reached
from symgrad.frontend.function import Context, Function, run_backward
from symgrad.frontend.gradients import collect_by_position
from symgrad.frontend.session import Session, activate
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ops.markers import recorded_args
from symgrad.ops.record import get
from symgrad.tensor.plans.program import Program, Runs, sizes

if TYPE_CHECKING:
    from symgrad.tensor.plans.plan import Plan

Array = np.ndarray[Any, Any]
_DIFFERENTIABLE = ("value", "view", "written")


@dataclass(frozen=True)
class Kept:
    """One thing kept for backward: an ``input``, an ``output``, or a value in ``between``."""

    kind: str
    place: int


@dataclass(frozen=True)
class OwnRule:
    """A Function applied in the trace of an operation, which differentiates its output.

    ``inputs``: the float tensors among its arguments; ``others``: how many outputs without a
    derivative it has beside that.
    """

    session: Session
    function: type[Function]
    ctx: Context
    args: tuple[Any, ...]
    inputs: tuple[Node, ...]
    output: Node
    others: int = 0

    def parts(self, cotangent: Node, flows: Callable[[Node], bool]) -> Parts:
        """What its backward passes on to the arguments."""
        nodes = iter(self.inputs)
        with activate(self.session):
            self.ctx.needs_input_grad = tuple(
                is_float(arg) and flows(next(nodes)) for arg in self.args
            )
            given = [fresh(cotangent), *[None] * self.others]
            returned = run_backward(self.function, self.ctx, given)
            found = collect_by_position(self.session, returned, self.args)
        return [(node, one.node) for node, one in zip(self.inputs, found, strict=True)]


def is_float(value: Any) -> bool:
    """Is it a tensor that may have a gradient?"""
    return isinstance(value, SymbolicTensor) and value.dtype.is_float


class Derivative:
    """``tracked``: the outputs that depend on an input that needs a gradient, by place.

    ``forward``: computes what the plan computes, and behind it the values in between.
    ``kept``: what ``gradients`` takes.  ``kept_linked``: what ``linked`` takes.
    """

    def __init__(self, plan: Plan, needs: tuple[bool, ...]) -> None:
        self.plan = plan
        self.needs = needs
        graph = plan.graph
        wanted = [node for node, need in zip(plan.inputs, needs, strict=True) if need]
        floats = reached(graph.nodes, wanted, recorded_args)
        self.tracked = tuple(
            place
            for place, output in enumerate(plan.outputs)
            if (output.kind in _DIFFERENTIABLE and output.node in floats)
            or (output.kind == "written" and needs[output.place])
        )
        self._before = len(graph.nodes)
        self._cotangents = [
            graph.input(f"g{place}_{self._before}", plan.outputs[place].node.type)
            for place in self.tracked
        ]
        nodes = [plan.outputs[place].node for place in self.tracked]
        self.types = tuple((sizes(node.shape), np.dtype(str(node.dtype))) for node in nodes)
        found = iter(self._pulled(nodes, wanted))
        self._gradients = [next(found) if need else None for need in needs]
        inner = self._frontier(between=True)
        outer = self._frontier(between=False)
        between = [node for node in inner if self._known(node) is None]
        self.forward: Runs = (
            Program(plan.inputs, (*plan.computed, *between)) if between else plan.program
        )
        self._inner, self._outer = inner, outer
        self.kept_linked = tuple(self._source(node) for node in outer)
        self.keep(self._known(node) or Kept("between", between.index(node)) for node in inner)
        self._programs: dict[tuple[bool, ...], Gradients] = {}
        self._linked: dict[tuple[bool, ...], LinkedGradients] = {}
        self._zeros: dict[int, tuple[tuple[int, ...], Any] | None] = {}

    def keep(self, kept: Iterable[Kept]) -> None:
        """Let ``gradients`` take these."""
        self.kept = tuple(kept)
        self.all_kept = tuple(dict.fromkeys((*self.kept, *self.kept_linked)))
        self.kept_at = tuple(map(self.all_kept.index, self.kept))
        self.linked_at = tuple(map(self.all_kept.index, self.kept_linked))

    def _pulled(self, outputs: Sequence[Node], wanted: Sequence[Node]) -> list[Node | None]:
        """The gradients of inputs, by the backwards of the Functions that were applied."""
        session = self.plan.session
        rules = {} if session is None else {rule.output: rule for rule in session.rules}
        order = ancestors(outputs)
        flows = reached(order, wanted, recorded_args).__contains__

        def parts(node: Node, cotangent: Node) -> Parts:
            if node in rules:
                return rules[node].parts(cotangent, flows)
            return () if node.op == "detach" else by_op(node, cotangent)

        given = zip(outputs, self._cotangents, strict=True)
        found = adjoints(given, order, flows=flows, parts=parts)
        return [found.get(node) for node in wanted]

    def gradients(self, mask: tuple[bool, ...]) -> Gradients:
        """The program for the gradients of the inputs in ``mask``."""
        found = self._programs.get(mask)
        if found is None:
            _, given, nodes = self._extract(self._inner, mask)
            program = Program(given, [node for node in nodes if node is not None])
            found = Gradients(program, tuple(node is not None for node in nodes))
            self._programs[mask] = found
        return found

    def linked(self, mask: tuple[bool, ...]) -> LinkedGradients:
        """The same as a plan, which is recorded when it runs."""
        found = self._linked.get(mask)
        if found is None:
            graph, given, nodes = self._extract(self._outer, mask)
            present = [node for node in nodes if node is not None]
            plan = self.plan.computing(f"{self.plan.name}Backward", graph, given, present)
            found = LinkedGradients(plan, tuple(node is not None for node in nodes))
            self._linked[mask] = found
        return found

    def zero(self, place: int) -> tuple[tuple[int, ...], Any] | None:
        """Shape and dtype of a gradient that is zero; None where no path of floats leads here."""
        if place not in self._zeros:
            node = self.plan.inputs[place]
            floats = reached(self.plan.graph.nodes, [node])
            outputs = (self.plan.outputs[number] for number in self.tracked)
            leads = any(
                output.node in floats or (output.kind == "written" and output.place == place)
                for output in outputs
            )
            found = sizes(node.shape), np.dtype(str(node.dtype))
            self._zeros[place] = found if leads else None
        return self._zeros[place]

    # -- the frontier

    def _known(self, node: Node) -> Kept | None:
        """An input or an output that this node is."""
        for place, given in enumerate(self.plan.inputs):
            if node is given:
                return Kept("input", place)
        for place, output in enumerate(self.plan.outputs):
            if node is output.node and output.kind in _DIFFERENTIABLE:
                return Kept("output", place)
        return None

    def _source(self, node: Node) -> Kept:
        found = self._known(node)
        assert found is not None
        return found

    def _frontier(self, *, between: bool) -> list[Node]:
        """The nodes of forward that the gradients are computed from, in order of creation.

        ``between``: values that are neither inputs nor outputs may be among them; otherwise they
        are computed again.
        """
        dynamic = _dependents(self.plan.graph, self.plan.inputs)
        own = {node.index for node in self._cotangents}
        found: dict[int, Node] = {}
        seen: set[int] = set()
        todo = [node for node in self._gradients if node is not None]
        while todo:
            node = todo.pop()
            if node.index in seen or node.index in own:
                continue
            seen.add(node.index)
            forward = node.index < self._before and node.index in dynamic
            if forward and (self._known(node) or (between and not _is_cheap(node))):
                found[node.index] = node
            else:
                todo.extend(node.args)
        return [found[index] for index in sorted(found)]

    def _extract(
        self, kept: Sequence[Node], mask: tuple[bool, ...]
    ) -> tuple[Graph, list[Node], list[Node | None]]:
        """The gradients in a graph of their own, whose inputs are what was kept, and cotangents."""
        graph = Graph()
        leaves = [*kept, *self._cotangents]
        known = {node: graph.input(f"x{n}", node.type) for n, node in enumerate(leaves)}
        wanted = [
            node if chosen else None for node, chosen in zip(self._gradients, mask, strict=True)
        ]
        present = [node for node in wanted if node is not None]
        copied = rewrite(graph, present, known)
        inputs = [known[node] for node in leaves]
        return graph, inputs, [None if node is None else copied[node] for node in wanted]


@dataclass(frozen=True)
class Gradients:
    """``program``: what was kept and cotangents, to the gradients that are ``present``."""

    program: Runs
    present: tuple[bool, ...]


@dataclass(frozen=True)
class LinkedGradients:
    """The same as a plan for tensors."""

    plan: Plan
    present: tuple[bool, ...]


def _is_cheap(node: Node) -> bool:
    """Is it computed again rather than kept?"""
    return node.op == "cast" or get(node.op).kind in ("movement", "source")


def _dependents(graph: Graph, inputs: Sequence[Node]) -> set[int]:
    """The nodes whose value depends on an input."""
    found = {node.index for node in inputs}
    for node in graph.nodes:
        if any(arg.index in found for arg in node.args):
            found.add(node.index)
    return found
