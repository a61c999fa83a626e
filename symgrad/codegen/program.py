"""A graph as a list of definitions in index notation: what the scheduler orders.

In: a graph with named outputs.  Out: a ``Program``.
Imports: ``symgrad.index``, ``symgrad.ir`` and its neighbours in ``symgrad.codegen``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from symgrad.codegen.axes import unify
from symgrad.codegen.cuts import choose_cuts
from symgrad.codegen.equations import Equation, equations, stored_node
from symgrad.codegen.patterns import Pattern, Scatter, recognise
from symgrad.codegen.rewrite import eliminate_deltas
from symgrad.errors import CodegenError
from symgrad.index.lower import Lowering
from symgrad.ir.dim import Axis, Dim, Element
from symgrad.ir.dtype import DType
from symgrad.ir.expr import Access, Call, Expr, ExprPool, Reduce, postorder
from symgrad.ir.graph import Graph, Node


@dataclass(frozen=True)
class Definition:
    """``tensor[indices] = body``, or the pattern that ``body`` is.

    ``indices`` are axes, 0 where there is one element along a dimension.  ``outputs``: the names
    of the outputs that the tensor is; a tensor that is none lives in the workspace.
    """

    tensor: str
    outputs: tuple[str, ...]
    dtype: DType
    shape: tuple[Dim, ...]
    indices: tuple[Dim, ...]
    body: Expr
    pattern: Pattern | None = None

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes among the indices, in order."""
        return tuple(axis for index in self.indices for axis in index.axes)


@dataclass(frozen=True)
class Check:
    """All elements of an integer array must be at least 0 and below ``bound``."""

    tensor: str
    bound: Dim


@dataclass(frozen=True)
class Program:
    """What a kernel computes.

    ``definitions`` in an order in which they can be computed; ``names``: the user's names for
    values; ``arrays``: dtype and shape of everything that is read, by the name of its tensor.
    """

    pool: ExprPool
    definitions: tuple[Definition, ...]
    checks: tuple[Check, ...]
    names: Mapping[Expr, str]
    arrays: Mapping[str, tuple[DType, tuple[Dim, ...]]]


def build_program(graph: Graph) -> Program:
    """Choose what is stored and lower it.  Raises CodegenError where there is no output."""
    if not graph.outputs:
        raise CodegenError("a kernel needs at least one output")
    outputs = list(dict.fromkeys(graph.outputs.values()))
    system = equations(graph, outputs)
    axes = unify(graph, system)
    cuts = choose_cuts(system, axes, [node for node in outputs if node.op != "input"])
    lowering = Lowering(graph, cuts.stored, axes=axes, fused=cuts.fused)
    bodies = {node: lowering.element(node, lowering.home(node), body=True) for node in cuts.stored}
    bodies.update({n: lowering.element(n, lowering.home(n)) for n in outputs if n.op == "input"})
    if lowering.forced:
        raise CodegenError(f"{lowering.forced[0]!r} serves as an index and was not stored")
    reduced = eliminate_deltas(lowering.pool, bodies.values())
    definitions = [_definition(graph, lowering, node, reduced[bodies[node]]) for node in bodies]
    return Program(
        lowering.pool,
        tuple(definitions),
        _checks(graph, system),
        _user_names(lowering, reduced),
        _arrays(graph, cuts.stored),
    )


def _definition(graph: Graph, lowering: Lowering, node: Node, body: Expr) -> Definition:
    home = lowering.home(node)
    names = tuple(name for name, output in graph.outputs.items() if output is node)
    axes = [axis for index in home for axis in index.axes]
    pattern = recognise(lowering.pool, axes, body)
    return Definition(f"%{node.index}", names, node.dtype, node.shape, home, body, pattern)


def _user_names(lowering: Lowering, reduced: Mapping[Expr, Expr]) -> dict[Expr, str]:
    """What the user calls the values that are computed."""
    found: dict[Expr, str] = {}
    for node, expr in lowering.lowered():
        if node.name and isinstance(expr, (Call, Reduce)):
            found.setdefault(reduced.get(expr, expr), node.name)
    return found


def _arrays(graph: Graph, stored: tuple[Node, ...]) -> dict[str, tuple[DType, tuple[Dim, ...]]]:
    found = {name: (node.dtype, node.shape) for name, node in graph.inputs.items()}
    found.update({f"%{node.index}": (node.dtype, node.shape) for node in stored})
    return found


def _checks(graph: Graph, system: list[Equation]) -> tuple[Check, ...]:
    """The ranges that the elements of integer tensors must keep to serve as indices."""
    found: dict[tuple[str, Dim], Check] = {}
    for equation in system:
        for element, bound in _indexing(graph, equation):
            found.setdefault((element.tensor, bound), Check(element.tensor, bound))
    return tuple(found.values())


def _indexing(graph: Graph, equation: Equation) -> Iterator[tuple[Element, Dim]]:
    if isinstance(equation.pattern, Scatter):
        for axis, target in equation.pattern.targets:
            if isinstance(target.atom, Element):
                yield target.atom, axis.extent
    for expr in postorder([equation.body]):
        if isinstance(expr, Access):
            node = stored_node(graph, expr.tensor) or graph.inputs[expr.tensor]
            for index, size in zip(expr.indices, node.shape, strict=True):
                if isinstance(index.atom, Element):
                    yield index.atom, size
