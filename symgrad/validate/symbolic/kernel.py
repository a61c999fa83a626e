"""One kernel: is the emitted C what its graph says, for all sizes?

In: the C text, the kernel's graph, what holds of its sizes.  Out: ``Outcome``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations

from symgrad import abi
from symgrad.index.lower import Lowering
from symgrad.ir.dim import Axis, Dim, Element, product
from symgrad.ir.dtype import DType, bool_, int64, uint8
from symgrad.ir.expr import Call, Expr, Reduce, rebuild
from symgrad.ir.function import SizeCondition
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ops.indexing import ranges
from symgrad.ops.record import get
from symgrad.validate import conversions, dialect
from symgrad.validate.bounded import interface
from symgrad.validate.definitions import Defined, without_definitions
from symgrad.validate.sizes import size_called
from symgrad.validate.source import INTEGERS, CType, Unit, Unsupported, parse
from symgrad.validate.symbolic import orders
from symgrad.validate.symbolic.data import Data
from symgrad.validate.symbolic.decisions import check_decisions
from symgrad.validate.symbolic.defined import check_defined
from symgrad.validate.symbolic.exact import Exact
from symgrad.validate.symbolic.integers import Integers
from symgrad.validate.symbolic.machine import WORKSPACE, Machine, Pointer, Typed, alternatives
from symgrad.validate.symbolic.memory import Array, MaybeWritten, NotShown
from symgrad.validate.symbolic.normal import Reals
from symgrad.validate.symbolic.overflow import Limits, Reach
from symgrad.validate.symbolic.values import Values
from symgrad.validate.symbolic.written import Written, in_order

_RANGES = {
    1: INTEGERS["int8_t"],
    2: INTEGERS["int16_t"],
    4: INTEGERS["int32_t"],
    8: INTEGERS["int64_t"],
}


_MOST_ENDS = 6
"""Ends of writes that one element of an output lies before or behind."""
_Side = tuple[Node, Dim, str]
"""An index, the size of the axis that it is a place in, and ``lt`` or ``ge`` for its ends."""


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


def _lengths(graph: Graph) -> Iterator[Dim]:
    """The lengths of what a graph computes; where elements are joined, how often that is done."""
    for node in graph.nodes:
        length = product(node.shape)
        yield length
        if node.op == "einsum":
            letters = node.attributes["spec"].partition("->")[0].split(",")
            extents = {
                letter: dim for one, own in zip(node.args, letters, strict=True)
                for letter, dim in zip(own, one.shape, strict=True)
            }  # fmt: skip
            yield product([*extents.values()])
        elif get(node.op).kind == "reduction":
            yield from (length * extent for one in node.args for extent in one.shape)


@dataclass(frozen=True)
class Outcome:
    """Whether a kernel was validated; else the reason, with the line of the C.

    ``taken``: the functions that were taken for ops, which their records define.  ``written``: how
    what is evaluated differs from what is written, over floating point.  ``limits``: what sizes
    have to meet so that no integer overflows.  ``passing``: for lack of time, memory or stack.
    """

    validated: bool
    reason: str = ""
    line: int = 0
    paths: int = 0
    taken: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    passing: bool = False


def validate(
    text: str, kernel: abi.Kernel, graph: Graph, conditions: Sequence[SizeCondition] = ()
) -> Outcome:
    """Is a kernel in ``text`` what ``graph`` computes, for all sizes under ``conditions``?"""
    bare, defined = without_definitions(text)
    paths = 0
    taken: set[str] = set()
    written: set[str] = set()
    try:
        unit = parse(bare)
        own = unit.called_by(kernel.name, f"{kernel.name}_workspace")
        dialect.check(unit, own)
        conversions.check(unit, own)
        wrong = interface(unit, kernel)
        if wrong:
            return Outcome(False, wrong)
        limits = Limits(_lengths(graph))
        todo: list[list[bool]] = [[]]
        while todo:
            paths += 1
            path = _Path(unit, kernel, graph, conditions, todo.pop(), defined, limits)
            path.check()
            todo += path.machine.open
            taken |= path.machine.taken
            written |= path.differences
    except Unsupported as problem:
        return Outcome(False, problem.reason, problem.line)
    except NotShown as problem:
        return Outcome(False, problem.reason, problem.line or 0, paths)
    except RecursionError:
        return Outcome(False, "it is nested too deeply", 0, paths, passing=True)
    except Exception as error:  # C that the compiler refuses, too: nothing passes by default
        reason = f"not understood: {type(error).__name__}: {error}"
        return Outcome(False, reason, 0, paths, passing=True)
    return Outcome(
        True, paths=paths, taken=tuple(sorted(taken)), written=in_order(written),
        limits=limits.stated,
    )  # fmt: skip


class _Path:
    """One run, with some decisions."""

    def __init__(
        self, unit: Unit, kernel: abi.Kernel, graph: Graph, conditions: Sequence[SizeCondition],
        decisions: Sequence[bool], defined: Mapping[str, Defined], limits: Limits,
    ) -> None:  # fmt: skip
        self._unit, self._kernel, self._graph = unit, kernel, graph
        self._later = bool(decisions)
        self.integers = Integers()
        self.values = Values(self.integers)
        self._limits = limits
        data = Data(self.values, self._computed)
        self._reach = Reach(self.integers, self.values, limits, data)
        self.machine = Machine(unit, self.integers, self.values, decisions, defined, self._reach)
        self.machine.bytes_are_truths = all(node.dtype != uint8 for node in graph.nodes)
        self._asked = list(dict.fromkeys(_asked(graph)))
        self.differences: set[str] = set()
        self._constants()
        self._granted = [fact for one in conditions for fact in _facts(one)]
        self.integers.add(*self._granted)
        self.integers.differ(*(one.left - one.right for one in conditions if one.relation == "!="))

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
        self._reach.settle()
        self.machine.constants.settle(self._formulas, Exact(self.values).of)
        if status != 0:
            self._check_refusal(status)
            return
        self._check_accepted()
        lowering = Lowering(self._graph)
        reals = Reals(self.values)
        floats = {node.dtype for node in self._graph.nodes if node.dtype.is_float}
        written = Written(self.values, reals, floats)
        for name, node in self._graph.outputs.items():
            self._check_output(name, node, lowering, written)
        self.differences = written.differences

    def _check_workspace(self) -> None:
        """The pieces, one after the other, are what ``_workspace`` asks for."""
        if not self.machine.carved and self._later:
            return
        name = f"{self._kernel.name}_workspace"
        parameters = self._unit.signatures[name].parameters
        used = sum(self.machine.carved, Dim.of(0))
        with self.integers.anywhere(), self.integers.given(*self._granted):
            asked = self.machine.run(name, dict(self._sizes(iter(parameters))))
            if asked is None or not self.integers.same(self.values.integer(asked.value), used):
                raise NotShown(f"the workspace was not shown to be {used} bytes")

    def _check_refusal(self, status: Dim) -> None:
        """What it refuses, it has a reason to refuse."""
        reason = self._kernel.reasons.get(status.constant or 0)
        if reason is None:
            raise NotShown(f"it returns {status}, which has no meaning")
        if reason == abi.TOO_LARGE and any(
            self.integers.entails(side - INTEGERS["int"][1] - 1) for side in self._matrix_sides()
        ):
            return
        if reason == abi.OUT_OF_RANGE and any(
            truth and self._sides(one) for one, truth in self.machine.conditions
        ):
            return
        if reason == abi.OUT_OF_RANGE and any(self._is_outside(*one) for one in self._asked):
            return
        raise NotShown(f"it returns {status}, which says {reason!r}, and that was not shown")

    def _is_outside(self, place: Node, bound: Dim) -> bool:
        """Is there an element of an index, and does none lie in its axis?"""
        if not all(self.integers.entails(extent - 1) for extent in place.shape):
            return False
        index, facts = self._index(place)
        with self.integers.given(*facts):
            return self.integers.outside(index, bound)

    def _matrix_sides(self) -> Iterator[Dim]:
        """The numbers of rows and columns that a product of the graph may have."""
        for node in self._graph.nodes:
            if get(node.op).kind == "contraction":
                for one in (node, *node.args):
                    yield from one.shape
                    yield from (left * right for left, right in combinations(one.shape, 2))

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
        if any(operand.dtype.is_float for operand in one.operands):
            return []
        end = self.values.integer(one.operands[1])
        return [
            (place, bound, one.function)
            for place, bound in self._asked
            if end == (0 if one.function == "lt" else bound)
            and self._is_element(one.operands[0], place, axes)
        ]

    def _is_element(self, index: Expr, place: Node, axes: Sequence[Axis]) -> bool:
        """Is it each element of an index, by axes in any order, or by its row-major number?"""
        own = [self.values.axis("p", one) for one in place.shape if one != 1]
        walks = [
            [Dim.of(one) for one in order] for order in permutations(own)
            if [one.extent for one in order] == [axis.extent for axis in axes]
        ]  # fmt: skip
        if len(axes) == 1 and axes[0].extent == product(place.shape):
            walks.append([_row_major(own)])
        return any(
            self._is_at(index, place, own, dict(zip(axes, one, strict=True))) for one in walks
        )

    def _is_at(
        self, index: Expr, place: Node, own: Sequence[Axis], walked: Mapping[Axis, Dim]
    ) -> bool:
        """Is it the element of an index at its own axes, walked over like that?"""
        left = iter(own)
        where = [Dim.of(0) if one == 1 else Dim.of(next(left)) for one in place.shape]
        reals, lowering = Reals(self.values), Lowering(self._graph)
        with self.integers.given(*(fact for one in own for fact in self.integers.range_of(one))):
            found = self._flattened(lowering, lowering.element(place, where))
            each = self.values.substitute(index, walked)
            return reals.normal(found) == reals.normal(each)

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
                own = {axis: next(given)[0] for axis in record.strides}
                steps = {axis: Dim.size(f"{record.name}'s{axis}") for axis in own}
                self._array(record.name, node, kind, steps)
                yield name, Typed(f"{kind.base} *", Pointer(record.name, Dim.of(0)))
                yield from ((own[axis], Typed("int64_t", step)) for axis, step in steps.items())
            else:
                yield name, Typed(kind.base, self._number(record.name, node))
        yield next(given)[0], Typed("char *", WORKSPACE)

    def _sizes(self, parameters: Iterator[tuple[str, CType]]) -> Iterator[tuple[str, Typed]]:
        """The sizes come first; a name that C has for something else has underscores there."""
        shapes = (node.shape for node in (*self._graph.nodes, *self._graph.inputs.values()))
        known = {one for shape in shapes for dim in shape for one in dim.sizes}
        for size in self._kernel.sizes:
            name, kind = next(parameters)
            found = size_called(size, known)
            if len(found) > 1:
                raise NotShown(f"{size} may be any of {', '.join(found)}")
            yield name, Typed(kind.base, Dim.size(found[0] if found else size))

    def _number(self, name: str, node: Node) -> Dim | Expr:
        place = (Dim.of(0),)
        if node.dtype.is_integer:
            return Dim.of(Element(name, place))
        return self.values.pool.access(name, place, node.dtype)

    def _array(self, name: str, node: Node, kind: CType, own: Mapping[int, Dim]) -> None:
        if node.dtype.c != kind.base:
            raise NotShown(f"{name} is {node.dtype}, and passed as {kind.base}")
        strides, run = [], Dim.of(1)
        for place in reversed(range(len(node.shape))):
            strides.append(own.get(place, run))
            run = run * node.shape[place]
            self._limits.grant(run, node.shape[place] * strides[-1])
        self.machine.add(Array(
            name, kind.base, None if own else run, tuple(node.shape), tuple(reversed(strides)),
            read_only=kind.const, given=True,
        ))  # fmt: skip

    def _formulas(self) -> Iterator[Expr]:
        """What the outputs are."""
        lowering = Lowering(self._graph)
        for node in self._graph.outputs.values():
            _, place = self._place(node)
            yield self._flattened(lowering, lowering.element(node, place))

    def _computed(self) -> Iterator[Expr]:
        """What the outputs are, and each integer on the way to them."""
        yield from self._formulas()
        lowering = Lowering(self._graph)
        for node in self._graph.nodes:
            if node.dtype == int64 and node.args:
                _, place = self._place(node)
                yield self._flattened(lowering, lowering.element(node, place))

    def _place(self, node: Node) -> tuple[list[Axis], tuple[Dim, ...]]:
        """Any element: its axes, its indices."""
        axes = [self.values.axis("o", extent) for extent in node.shape]
        pairs = zip(axes, node.shape, strict=True)
        return axes, tuple(Dim.of(0 if extent == 1 else axis) for axis, extent in pairs)

    def _check_output(self, name: str, node: Node, lowering: Lowering, written: Written) -> None:
        """An output is its formula: everywhere, or before and behind each end of what wrote it."""
        axes, place = self._place(node)
        ranges = [fact for axis in axes for fact in self.integers.range_of(axis)]
        cases: list[tuple[Dim, ...]] = [()]
        while cases:
            facts = cases.pop()
            own = written.alike() if facts else written
            try:
                with self.integers.given(*ranges, *facts):
                    self._check_element(name, node, place, lowering, own)
            except MaybeWritten as unknown:
                if len(facts) >= _MOST_ENDS:
                    raise
                cases += [(*facts, unknown.end), (*facts, -unknown.end - 1)]

    def _check_element(
        self, name: str, node: Node, place: Sequence[Dim], lowering: Lowering, written: Written
    ) -> None:
        if self.integers.contradictory:
            return
        found = self.machine.element(name, self._flat(name, place))
        wanted = self._flattened(lowering, lowering.element(node, place))
        reals = written.reals
        got, want = reals.normal(found), reals.normal(wanted)
        if got != want:
            raise NotShown(
                f"{name} was not shown to be its formula:\n  C       {got}\n  formula {want}"
            )
        for one in (found, *self.machine.checked):
            check_defined(self.values, reals, one, wanted, name)
        check_decisions(self.values, written, found, wanted, name)
        written.compare(found, wanted)

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

        root = rebuild(lowering.pool, [root], _as_one(lowering))[root]
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


def _row_major(axes: Sequence[Axis]) -> Dim:
    """The number of a place in an array of these axes."""
    number = Dim.of(0)
    for axis in axes:
        number = number * axis.extent + Dim.of(axis)
    return number


def _as_one(lowering: Lowering) -> Callable[[Expr, Mapping[Expr, Expr]], Expr | None]:
    """A sum over several axes by one node of a graph is one sum."""
    inner: set[Expr] = set()
    lowered = dict(lowering.lowered())
    for node, expr in lowered.items():
        bound = lowering.bound.get(node, ())
        for one in (expr, *expr.args) if len(bound) > 1 else ():
            for axis, after in pairwise(bound):
                if not (isinstance(one, Reduce) and one.axis == axis):
                    break
                one = one.body
                if isinstance(one, Reduce) and one.axis == after:
                    inner.add(one)
    inner -= {*lowered.values()}

    def rule(expr: Expr, new: Mapping[Expr, Expr]) -> Expr | None:
        if not isinstance(expr, Reduce) or expr not in inner:
            return None
        return lowering.pool.reduce(expr.kind, expr.axis, new[expr.body], (orders.ON,))

    return rule
