"""One kernel: is the emitted C what its graph says, for all sizes?

In: the C text, the kernel's graph, what holds of its sizes.  Out: ``Outcome``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from symgrad import abi
from symgrad.index.lower import Lowering
from symgrad.ir.dim import Axis, Dim, Element
from symgrad.ir.dtype import DType, bool_, uint8
from symgrad.ir.expr import Call, Expr, Reduce, rebuild
from symgrad.ir.function import SizeCondition
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ops.indexing import ranges
from symgrad.ops.record import get
from symgrad.validate import conversions, dialect
from symgrad.validate.bounded import interface
from symgrad.validate.source import INTEGERS, CType, Unit, Unsupported, parse
from symgrad.validate.symbolic.definitions import Defined, without_definitions
from symgrad.validate.symbolic.integers import Integers
from symgrad.validate.symbolic.machine import WORKSPACE, Machine, Pointer, Typed, alternatives
from symgrad.validate.symbolic.memory import Array, NotShown
from symgrad.validate.symbolic.normal import Reals
from symgrad.validate.symbolic.values import Values

_RANGES = {
    1: INTEGERS["int8_t"],
    2: INTEGERS["int16_t"],
    4: INTEGERS["int32_t"],
    8: INTEGERS["int64_t"],
}


_Side = tuple[Node, Dim, str]
"""An index, the size of the axis that it is a place in, and ``lt`` or ``ge`` for its ends."""
_LARGE = "too large for the BLAS"


def _facts(one: SizeCondition) -> list[Dim]:
    gap = one.left - one.right
    facts = {
        "==": [gap, -gap], "<": [-gap - 1], "<=": [-gap], ">": [gap - 1], ">=": [gap],
    }  # fmt: skip
    return facts.get(one.relation, [])


def _asked(graph: Graph) -> Iterator[tuple[Node, Dim]]:
    """The indices of a graph, each with the size of the axis that it is a place in."""
    for node in ancestors(list(graph.outputs.values())):
        if get(node.op).kind == "indexing":
            yield from ranges(node)


@dataclass(frozen=True)
class Outcome:
    """Whether a kernel was validated; else the reason, with the line of the C.

    ``taken``: the functions that were taken for ops, which their records define.
    """

    validated: bool
    reason: str = ""
    line: int = 0
    paths: int = 0
    taken: tuple[str, ...] = ()


def validate(
    text: str, kernel: abi.Kernel, graph: Graph, conditions: Sequence[SizeCondition] = ()
) -> Outcome:
    """Is a kernel in ``text`` what ``graph`` computes, for all sizes under ``conditions``?"""
    bare, defined = without_definitions(text)
    paths = 0
    taken: set[str] = set()
    try:
        unit = parse(bare)
        dialect.check(unit)
        conversions.check(unit)
        wrong = interface(unit, kernel)
        if wrong:
            return Outcome(False, wrong)
        todo: list[list[bool]] = [[]]
        while todo:
            paths += 1
            path = _Path(unit, kernel, graph, conditions, todo.pop(), defined)
            path.check()
            todo += path.machine.open
            taken |= path.machine.taken
    except Unsupported as problem:
        return Outcome(False, problem.reason, problem.line)
    except NotShown as problem:
        return Outcome(False, problem.reason, problem.line or 0, paths)
    except RecursionError:
        return Outcome(False, "it is nested too deeply", 0, paths)
    except Exception as error:  # C that the compiler refuses, too: nothing passes by default
        return Outcome(False, f"not understood: {type(error).__name__}: {error}", 0, paths)
    return Outcome(True, paths=paths, taken=tuple(sorted(taken)))


class _Path:
    """One run, with some decisions."""

    def __init__(
        self, unit: Unit, kernel: abi.Kernel, graph: Graph, conditions: Sequence[SizeCondition],
        decisions: Sequence[bool], defined: Mapping[str, Defined],
    ) -> None:  # fmt: skip
        self._unit, self._kernel, self._graph = unit, kernel, graph
        self.integers = Integers()
        self.values = Values(self.integers)
        self.machine = Machine(unit, self.integers, self.values, decisions, defined)
        self.machine.bytes_are_truths = all(node.dtype != uint8 for node in graph.nodes)
        self._asked = list(dict.fromkeys(_asked(graph)))
        self._constants()
        for one in conditions:
            self.integers.add(*_facts(one))

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
        result = self.machine.run(self._kernel.name, given)
        self.machine.assume_all()
        if self.integers.contradictory:
            return
        status = self.values.integer(result.value) if result is not None else Dim.of(0)
        self._check_workspace()
        if status != 0:
            self._check_refusal(status)
            return
        self._check_accepted()
        lowering = Lowering(self._graph)
        reals = Reals(self.values)
        for name, node in self._graph.outputs.items():
            self._check_output(name, node, lowering, reals)

    def _check_workspace(self) -> None:
        """The pieces lie in what ``_workspace`` asks for, one after the other."""
        if not self.machine.carved:
            return
        name = f"{self._kernel.name}_workspace"
        parameters = self._unit.signatures[name].parameters
        used = sum(self.machine.carved, Dim.of(0))
        with self.integers.anywhere():
            asked = self.machine.run(name, dict(self._sizes(iter(parameters))))
            if asked is None or not self.integers.entails(self.values.integer(asked.value) - used):
                raise NotShown(f"the workspace was not shown to hold {used} bytes")

    def _check_refusal(self, status: Dim) -> None:
        """What it refuses, it has a reason to refuse."""
        number = status.constant or 0
        if not 0 < number <= len(self._kernel.statuses):
            raise NotShown(f"it returns {status}, which has no meaning")
        if _LARGE in self._kernel.statuses[number - 1]:
            sizes = [one for node in self._graph.nodes for one in node.shape]
            products = [*sizes, *(one * other for one in sizes for other in sizes)]
            if any(self.integers.entails(one - INTEGERS["int"][1] - 1) for one in products):
                return
        elif any(truth and self._sides(one) for one, truth in self.machine.conditions):
            return
        raise NotShown(f"it returns {number} where it has no reason to")

    def _check_accepted(self) -> None:
        """It goes on only where each index lies in its axis, by a check or anyway."""
        checked = [
            side for one, truth in self.machine.conditions if not truth
            for part in alternatives(one) for side in self._sides(part)
        ]  # fmt: skip
        for place, bound in self._asked:
            index, facts = self._index(place)
            with self.integers.given(*facts):
                sure = self.integers.within(index, bound)
            if not sure and not all((place, bound, side) in checked for side in ("lt", "ge")):
                raise NotShown(
                    f"an index is used as a place in an axis of {bound}, and not checked"
                )

    def _index(self, place: Node) -> tuple[Dim, list[Dim]]:
        """Any element of an index, and what holds of its axes."""
        axes = [self.values.axis("p", extent) for extent in place.shape]
        facts = [fact for axis in axes for fact in self.integers.range_of(axis)]
        where = [Dim.of(0 if one.extent == 1 else one) for one in axes]
        with self.integers.given(*facts):
            lowering = Lowering(self._graph)
            found = self._flattened(lowering, lowering.element(place, where))
            return self.values.integer(found), facts

    def _sides(self, condition: Expr, axes: tuple[Axis, ...] = ()) -> list[_Side]:
        """The ends that a condition compares indices with, where it does nothing else."""
        parts = list(alternatives(condition))
        if len(parts) == 1 and isinstance(parts[0], Reduce) and parts[0].kind == "any":
            return self._sides(parts[0].body, (*axes, parts[0].axis))
        found = [self._side(one, axes) for one in parts]
        return [side for sides in found for side in sides] if all(found) else []

    def _side(self, one: Expr, axes: tuple[Axis, ...]) -> list[_Side]:
        if not isinstance(one, Call) or one.function not in ("lt", "ge"):
            return []
        end = self.values.integer(one.operands[1])
        return [
            (place, bound, one.function)
            for place, bound in self._asked
            if end == (0 if one.function == "lt" else bound)
            and self._is_element(one.operands[0], place, axes)
        ]

    def _is_element(self, index: Expr, place: Node, axes: Sequence[Axis]) -> bool:
        extents = [one for one in place.shape if one != 1]
        if extents != [axis.extent for axis in axes]:
            return False
        reals, lowering = Reals(self.values), Lowering(self._graph)
        left = iter(axes)
        where = [Dim.of(0) if one == 1 else Dim.of(next(left)) for one in place.shape]
        found = self._flattened(lowering, lowering.element(place, where))
        return reals.normal(found) == reals.normal(index)

    def _arguments(self) -> Iterator[tuple[str, Typed]]:
        """What each parameter is, by the order in which the record of the call has them."""
        given = iter(self._unit.signatures[self._kernel.name].parameters)
        yield from self._sizes(given)
        graph = self._graph
        for record, node in (
            *((one, graph.inputs[one.name]) for one in self._kernel.inputs),
            *((one, graph.outputs[one.name]) for one in self._kernel.outputs),
        ):
            name, kind = next(given)
            if kind.pointers:
                steps = {axis: next(given)[0] for axis in record.strides}
                self._array(record.name, node, kind, steps)
                yield name, Typed(f"{kind.base} *", Pointer(record.name, Dim.of(0)))
                yield from ((own, Typed("int64_t", Dim.size(own))) for own in steps.values())
            else:
                yield name, Typed(kind.base, self._number(record.name, node))
        yield next(given)[0], Typed("char *", WORKSPACE)

    def _sizes(self, parameters: Iterator[tuple[str, CType]]) -> Iterator[tuple[str, Typed]]:
        """The sizes come first; a name that C has for something else has underscores there."""
        shapes = (node.shape for node in (*self._graph.nodes, *self._graph.inputs.values()))
        known = {one.strip("_"): one for shape in shapes for dim in shape for one in dim.sizes}
        for size in self._kernel.sizes:
            name, kind = next(parameters)
            yield name, Typed(kind.base, Dim.size(known.get(size.strip("_"), size)))

    def _number(self, name: str, node: Node) -> Dim | Expr:
        place = (Dim.of(0),)
        if node.dtype.is_integer:
            return Dim.of(Element(name, place))
        return self.values.pool.access(name, place, node.dtype)

    def _array(self, name: str, node: Node, kind: CType, own: Mapping[int, str]) -> None:
        if node.dtype.c != kind.base:
            raise NotShown(f"{name} is {node.dtype}, and passed as {kind.base}")
        strides, run = [], Dim.of(1)
        for place in reversed(range(len(node.shape))):
            strides.append(Dim.size(own[place]) if place in own else run)
            run = run * node.shape[place]
        self.machine.add(Array(
            name, kind.base, None if own else run, tuple(node.shape), tuple(reversed(strides)),
            read_only=kind.const, given=True,
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
        strides = self.machine.arrays[name].strides if place else ()
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
