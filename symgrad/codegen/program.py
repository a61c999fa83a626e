"""A graph as a list of definitions in index notation: what the scheduler orders.

In: a graph with named outputs.  Out: a ``Program``.
Imports: ``symgrad.index``, ``symgrad.ir`` and its neighbours in ``symgrad.codegen``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from symgrad.codegen.axes import unify
from symgrad.codegen.cuts import choose_cuts
from symgrad.codegen.equations import equations, stored_node
from symgrad.codegen.patterns import Pattern, match_scatter, recognise
from symgrad.codegen.rewrite import eliminate_deltas, in_range
from symgrad.errors import CodegenError
from symgrad.index.lower import Lowering
from symgrad.ir.dim import Axis, Dim, Element
from symgrad.ir.dtype import DType, int64
from symgrad.ir.expr import Access, Call, Expr, ExprPool, Reduce
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ops.compared import compared, shared
from symgrad.ops.record import get


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
    """For all values of its axes, ``index`` must be at least 0 and below ``bound``."""

    index: Dim
    bound: Dim

    @property
    def tensors(self) -> tuple[str, ...]:
        """The integer tensors that the index is read from."""
        return tuple(sorted(a.tensor for a in self.index.atoms if isinstance(a, Element)))


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
    checks = _checks(graph, outputs, [node for one in system for node in one.index_reads])
    serving = (stored_node(graph, tensor) for check in checks for tensor in check.tensors)
    required = [*(node for node in outputs if node.op != "input"), *filter(None, serving)]
    cuts = choose_cuts(system, axes, required, _once(outputs))
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
        checks,
        _user_names(lowering, reduced),
        _arrays(graph, (*cuts.stored, *outputs)),
    )


def _once(outputs: list[Node]) -> list[Node]:
    """The values that are compared with what is made of them, here or by who reads the outputs."""
    nodes = ancestors(outputs)
    found = compared(nodes) | shared(nodes, outputs)
    return [node for node in nodes if node.index in found]


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


def _checks(graph: Graph, outputs: list[Node], serving: list[Node]) -> tuple[Check, ...]:
    """The ranges that indices must keep to, unless they surely do.

    ``serving``: nodes that serve as indices, which are read from where they are stored.
    """
    found: dict[tuple[Dim, Dim], Check] = {}
    for node in ancestors(outputs):
        if get(node.op).kind == "indexing":
            for index, bound in _indexing(graph, node, serving):
                if not in_range(index, bound):
                    found.setdefault((index, bound), Check(index, bound))
    return tuple(found.values())


def _indexing(graph: Graph, node: Node, serving: list[Node]) -> Iterator[tuple[Dim, Dim]]:
    """The indices that one op reads or writes at, whatever that is."""
    lowering = Lowering(graph, [*serving, *(arg for arg in node.args if arg.dtype != int64)])
    axes = lowering.axes(node)
    body = lowering.element(node, axes_as_indices(axes), body=True)
    pattern = match_scatter(lowering.pool, axes, eliminate_deltas(lowering.pool, [body])[body])
    if pattern is not None:
        for axis, target in pattern.targets:
            yield target, axis.extent
    elif isinstance(body, Access):
        shape = (stored_node(graph, body.tensor) or graph.inputs[body.tensor]).shape
        yield from zip(body.indices, shape, strict=True)


def axes_as_indices(axes: Iterable[Axis]) -> tuple[Dim, ...]:
    """Axes as the indices of an element."""
    return tuple(Dim.of(axis) for axis in axes)
