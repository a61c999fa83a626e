"""A graph as a list of definitions in index notation: what the scheduler orders.

In: a graph with named outputs.  Out: a ``KernelProgram``.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from symgrad.codegen.program.axes import unify
from symgrad.codegen.program.equations import Equation, equations, stored_node
from symgrad.codegen.program.joined import join, joinable
from symgrad.codegen.program.materialise import choose_materialised
from symgrad.codegen.program.patterns import Pattern, Scatter, recognise
from symgrad.codegen.program.rewrite import eliminate_deltas, in_range
from symgrad.errors import CodegenError
from symgrad.index.lower import Lowering, as_dim
from symgrad.ir.dim import Atom, Axis, Dim, Element, product
from symgrad.ir.dtype import DType
from symgrad.ir.expr import Call, Expr, ExprPool, Reduce
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ops.compared import compared, shared
from symgrad.ops.indexing import ranges
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
    """For all values of its axes, ``index`` must be at least 0 and below ``bound``.

    ``count``: how many elements it serves as an index, where it is the same for all of them.
    """

    index: Dim
    bound: Dim
    count: Dim

    @property
    def tensors(self) -> tuple[str, ...]:
        """The integer tensors that the index is read from."""
        return tuple(sorted(a.tensor for a in self.index.atoms if isinstance(a, Element)))


@dataclass(frozen=True)
class KernelProgram:
    """What a kernel computes.

    ``definitions`` in an order in which they can be computed; ``names``: the user's names for
    values; ``arrays``: dtype and shape of everything that is read, by the name of its tensor.
    """

    pool: ExprPool
    definitions: tuple[Definition, ...]
    checks: tuple[Check, ...]
    names: Mapping[Expr, str]
    arrays: Mapping[str, tuple[DType, tuple[Dim, ...]]]


def build_program(graph: Graph) -> KernelProgram:
    """Choose what is stored and lower it.  Raises CodegenError where there is no output."""
    if not graph.outputs:
        raise CodegenError("a kernel needs at least one output")
    outputs = list(dict.fromkeys(graph.outputs.values()))
    system = equations(graph, outputs)
    axes = unify(graph, system)
    checks = _checks(graph, outputs, [one.node for one in system])
    serving = [stored_node(graph, tensor) for check in checks for tensor in check.tensors]
    required = [*(node for node in outputs if node.op != "input"), *filter(None, serving)]
    once = _once(outputs)
    joined = joinable(system, _shapes(graph, system), {*required, *once})
    cuts = choose_materialised(system, axes, required, once, joined)
    held = _held(outputs, cuts.stored, {*filter(None, serving), *once})
    stored = [node for node in cuts.stored if node not in held]
    lowering = Lowering(graph, stored, axes=axes, fused=cuts.fused)
    bodies = {node: lowering.element(node, lowering.home(node), body=True) for node in stored}
    bodies.update({n: lowering.element(n, lowering.home(n)) for n in outputs if n.op == "input"})
    if lowering.forced:
        raise CodegenError(f"{lowering.forced[0]!r} serves as an index and was not stored")
    reduced = eliminate_deltas(lowering.pool, bodies.values())
    if joined:
        found = join(lowering.pool, reduced.values())
        reduced = {expr: found[one] for expr, one in reduced.items()}
    named: dict[Node, list[str]] = {}
    for name, output in graph.outputs.items():
        named.setdefault(held.get(output, output), []).append(name)
    definitions = [
        _definition(lowering, node, named.get(node, ()), reduced[bodies[node]]) for node in bodies
    ]
    return KernelProgram(
        lowering.pool,
        tuple(definitions),
        checks,
        _user_names(lowering, reduced),
        _arrays(graph, bodies),
    )


def _once(outputs: list[Node]) -> list[Node]:
    """The values that are compared with what is made of them, here or by who reads the outputs."""
    nodes = ancestors(outputs)
    found = compared(nodes) | shared(nodes, outputs)
    return [node for node in nodes if node.index in found]


def _held(
    outputs: Iterable[Node], stored: Collection[Node], apart: Collection[Node]
) -> dict[Node, Node]:
    """The outputs that are stored nodes in another shape, and these: one array holds both."""
    found: dict[Node, Node] = {}
    for node in outputs:
        source = node
        while source.op == "reshape":
            (source,) = source.args
            if source in stored and node not in apart:
                found[node] = source
    return found


def _definition(
    lowering: Lowering, node: Node, outputs: Sequence[str], body: Expr
) -> Definition:  # fmt: skip
    home = lowering.home(node)
    axes = [axis for index in home for axis in index.axes]
    pattern = recognise(lowering.pool, axes, body)
    tensor, names = f"%{node.index}", tuple(outputs)
    return Definition(tensor, names, node.dtype, node.shape, home, body, pattern)


def _user_names(lowering: Lowering, reduced: Mapping[Expr, Expr]) -> dict[Expr, str]:
    """What the user calls the values that are computed."""
    found: dict[Expr, str] = {}
    for node, expr in lowering.lowered():
        if node.name and isinstance(expr, (Call, Reduce)):
            found.setdefault(reduced.get(expr, expr), node.name)
    return found


def _shapes(graph: Graph, system: Sequence[Equation]) -> dict[str, tuple[Dim, ...]]:
    found = {name: node.shape for name, node in graph.inputs.items()}
    return found | {f"%{one.node.index}": one.node.shape for one in system}


def _arrays(graph: Graph, stored: Iterable[Node]) -> dict[str, tuple[DType, tuple[Dim, ...]]]:
    found = {name: (node.dtype, node.shape) for name, node in graph.inputs.items()}
    found.update({f"%{node.index}": (node.dtype, node.shape) for node in stored})
    return found


def _checks(graph: Graph, outputs: list[Node], known: list[Node]) -> tuple[Check, ...]:
    """The ranges that indices must keep to, unless they surely do.

    ``known``: nodes that may be stored; indices that are made of them are read from there.
    """
    found: dict[Check, None] = {}
    lowering = Lowering(graph, known)
    for node in ancestors(outputs):
        if get(node.op).kind != "indexing":
            continue
        for place, bound in ranges(node):
            index = _index(lowering, place)
            count = Dim.of(1) if index.axes else product(place.shape)
            if not in_range(index, bound, least_size=0):
                found.setdefault(Check(index, bound, count))
    return tuple(found)


def _index(lowering: Lowering, place: Node) -> Dim:
    """An element of a node that serves as an index."""
    home = lowering.home(place)
    index = as_dim(lowering.element(place, home))
    return Dim.of(Element(f"%{place.index}", home)) if index is None else index


def guarded(program: KernelProgram) -> KernelProgram:
    """The program with every scatter leaving out what lies outside, unless a check sees to it.

    A comparison with a place outside is false for every element; only indices are checked.
    """
    checked = {(_anywhere(check.index), check.bound) for check in program.checks}
    definitions = (_guarded(program.pool, one, checked) for one in program.definitions)
    return replace(program, definitions=tuple(definitions))


def _guarded(
    pool: ExprPool, definition: Definition, checked: Container[tuple[Dim, Dim]]
) -> Definition:
    pattern = definition.pattern
    if not isinstance(pattern, Scatter):
        return definition
    conditions = [pattern.condition]
    for axis, target in pattern.targets:
        if not in_range(target, axis.extent) and (_anywhere(target), axis.extent) not in checked:
            conditions.append(pool.relation("ge", target, 0))
            conditions.append(pool.relation("lt", target, axis.extent))
    return replace(definition, pattern=replace(pattern, condition=pool.conjunction(conditions)))


def _anywhere(index: Dim) -> Dim:
    """``index``, whatever its axes are called."""
    places: dict[Atom, Dim] = {
        axis: Dim.of(Axis(f"#{place}", axis.extent)) for place, axis in enumerate(index.axes)
    }
    return index.substitute(places)
