"""One kernel: is the emitted C what its graph says, for all sizes?

In: the C text, the kernel's graph, what holds of its sizes.  Out: ``Outcome``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from symgrad.index.lower import Lowering
from symgrad.ir.dim import Dim, Element
from symgrad.ir.dtype import DType, bool_, uint8
from symgrad.ir.expr import Expr, Reduce, rebuild
from symgrad.ir.graph import Graph, Node
from symgrad.validate.source import INTEGERS, Unit, Unsupported, parse
from symgrad.validate.symbolic.integers import Integers
from symgrad.validate.symbolic.machine import WORKSPACE, Machine, Pointer, Typed
from symgrad.validate.symbolic.memory import Array, NotShown
from symgrad.validate.symbolic.normal import Reals
from symgrad.validate.symbolic.values import Values

_RANGES = {
    1: INTEGERS["int8_t"],
    2: INTEGERS["int16_t"],
    4: INTEGERS["int32_t"],
    8: INTEGERS["int64_t"],
}


@dataclass(frozen=True)
class Outcome:
    """Whether a kernel was validated; else the reason, with the line of the C."""

    validated: bool
    reason: str = ""
    line: int = 0
    paths: int = 0


def validate(text: str, name: str, graph: Graph) -> Outcome:
    """Is the kernel ``name`` in ``text`` what ``graph`` computes, for all sizes?"""
    try:
        unit = parse(text)
    except Unsupported as problem:
        return Outcome(False, problem.reason, problem.line)
    todo: list[list[bool]] = [[]]
    paths = 0
    try:
        while todo:
            paths += 1
            path = _Path(unit, name, graph, todo.pop())
            path.check()
            todo += path.machine.open
    except NotShown as problem:
        return Outcome(False, problem.reason, problem.line or 0, paths)
    except RecursionError:
        return Outcome(False, "it is nested too deeply", 0, paths)
    return Outcome(True, paths=paths)


class _Path:
    """One run, with some decisions."""

    def __init__(self, unit: Unit, name: str, graph: Graph, decisions: Sequence[bool]) -> None:
        self._unit, self._name, self._graph = unit, name, graph
        self.integers = Integers()
        self.values = Values(self.integers)
        self.machine = Machine(unit, self.integers, self.values, decisions)
        self.machine.bytes_are_truths = all(node.dtype != uint8 for node in graph.nodes)
        self._constants()

    def _constants(self) -> None:
        for name, constant in self._unit.constants.items():
            if constant.open:
                value = Dim.of(Element(f"#{name}", ()))
                facts = []
                for guard in constant.guards:
                    facts += {
                        "<": [value - guard.number], "<=": [value - guard.number - 1],
                        ">": [guard.number - value], ">=": [guard.number - 1 - value],
                    }.get(guard.relation, [])  # fmt: skip
                self.integers.bound(f"#{name}", lambda _, facts=tuple(facts): facts)  # type: ignore[misc]

    def check(self) -> None:
        """Run it, and compare each output."""
        given = dict(self._arguments())
        result = self.machine.run(self._name, given)
        if self.integers.contradictory:
            return
        status = self.values.integer(result.value) if result is not None else Dim.of(0)
        if status != 0:
            return
        lowering = Lowering(self._graph)
        reals = Reals(self.values)
        for name, node in self._graph.outputs.items():
            self._check_output(name, node, lowering, reals)

    def _arguments(self) -> Iterable[tuple[str, Typed]]:
        nodes = {**self._graph.inputs, **self._graph.outputs}
        signature = self._unit.signatures[self._name]
        names = [name for name, _ in signature.parameters]
        for name, kind in signature.parameters:
            if name == "workspace":
                yield name, Typed("char *", WORKSPACE)
            elif kind.pointers:
                self._array(name, nodes[name], names, read_only=kind.const, ctype=kind.base)
                yield name, Typed(f"{kind.base} *", Pointer(name, Dim.of(0)))
            elif name in nodes:
                raise NotShown(f"{name} is a plain number")
            else:
                yield name, Typed(kind.base, Dim.size(name))

    def _array(
        self, name: str, node: Node, names: Sequence[str], *, read_only: bool, ctype: str
    ) -> None:
        if node.dtype.c != ctype:
            raise NotShown(f"{name} is {node.dtype}, and passed as {ctype}")
        strides, run, strided = [], Dim.of(1), False
        for place in reversed(range(len(node.shape))):
            own = f"{name}_s{place}"
            strided |= own in names
            strides.append(Dim.size(own) if own in names else run)
            run = run * node.shape[place]
        self.machine.add(Array(
            name, ctype, None if strided else run, tuple(node.shape), tuple(reversed(strides)),
            read_only=read_only, given=True,
        ))  # fmt: skip

    def _check_output(self, name: str, node: Node, lowering: Lowering, reals: Reals) -> None:
        axes = [self.values.axis("o", extent) for extent in node.shape]
        place = tuple(
            Dim.of(0) if extent == 1 else Dim.of(axis)
            for axis, extent in zip(axes, node.shape, strict=True)
        )
        for axis in axes:
            self.integers.add(*self.integers.range_of(axis))
        if self.integers.contradictory:
            return
        found = self.machine.element(name, self._flat(name, place))
        wanted = self._flattened(lowering, lowering.element(node, place))
        got, want = reals.normal(found), reals.normal(wanted)
        if got != want:
            raise NotShown(
                f"{name} was not shown to be its formula:\n  C       {got}\n  formula {want}"
            )

    def _flat(self, name: str, place: Sequence[Dim]) -> Dim:
        strides = self.machine.arrays[name].strides
        return sum((index * step for index, step in zip(place, strides, strict=True)), Dim.of(0))

    def _flattened(self, lowering: Lowering, root: Expr) -> Expr:
        """A formula with one index an element: its address; cut nodes by what they are."""

        def element(tensor: str, indices: tuple[Dim, ...], dtype: DType) -> Expr | None:
            if tensor.startswith("%"):
                node = next(one for one in self._graph.nodes if f"%{one.index}" == tensor)
                return self._flattened(lowering, lowering.element(node, indices, body=True))
            return self.values.pool.access(tensor, (self._flat(tensor, indices),), dtype)

        return self._floored(self.values.replaced(root, {}, element))

    def _floored(self, root: Expr) -> Expr:
        """The greatest of no integers is the least of their type."""
        pool = self.values.pool

        def rule(expr: Expr, new: Mapping[Expr, Expr]) -> Expr | None:
            if not (isinstance(expr, Reduce) and expr.dtype.is_integer):
                return None
            ends = {"max": ("maximum", 0), "min": ("minimum", 1)}.get(expr.kind)
            if ends is None or expr.dtype == bool_:
                return None
            found = pool.reduce(expr.kind, expr.axis, new[expr.body])
            end = pool.integer(_RANGES[expr.dtype.itemsize][ends[1]], expr.dtype)
            return pool.call(ends[0], end, found, dtype=expr.dtype)

        return rebuild(pool, [root], rule)[root]
