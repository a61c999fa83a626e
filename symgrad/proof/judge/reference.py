"""The true gradient, as index notation: what a hand-written one is compared with.

In: outputs with their cotangents, and the tensor to differentiate by.  Out: one element of the
vector-Jacobian product, at symbolic indices.

The tangent of an element along one basis direction is taken on index notation, where an access
``x[i, j]`` has the tangent ``[i == p0][j == p1]``: no rule of a structural op has to be trusted,
and those of scalar functions are sympy's.  Contracted with the cotangents and summed over the
outputs this is the gradient; eliminating the deltas, which does the transposition, is left to
the normal form.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symgrad.errors import GraphError
from symgrad.index.lower import Leaves, Lowering
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.dtype import bool_
from symgrad.ir.expr import (
    Access,
    Call,
    Expr,
    IntValue,
    Literal,
    Reduce,
    postorder,
    rebuild,
    substitute,
)
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.record import get
from symgrad.proof.scalars.bodies import partial_expr


def gradient_indices(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """Symbolic indices ``p0``, ``p1``, ... of a gradient; 0 along axes of size 1."""
    return tuple(
        Dim.of(0) if size == 1 else Dim.of(Axis(f"p{axis}", size))
        for axis, size in enumerate(shape)
    )


def gradient(
    lowering: Lowering,
    outputs: Iterable[tuple[Node, Node]],
    wrt: str,
    at: Sequence[Dim],
    *,
    through: Iterable[Node] = (),
    bodies: bool = False,
) -> Expr | None:
    """``sum over outputs of <cotangent, d output / d wrt[at]>``; None where it is plainly zero.

    ``outputs``: pairs of an output and its cotangent.  ``wrt``: the name of an input, or
    ``"%<index>"`` of a cut node.  ``through``: the cut nodes that depend on ``wrt`` by what they
    are computed from; the other cut nodes are held constant.  ``bodies``: an output that is a
    cut node is read as what it is computed from.
    """
    tangent = Tangent(lowering, wrt, tuple(at), through)
    total: Expr | None = None
    for node, cotangent in outputs:
        axes = lowering.axes(node)
        value = lowering.element(node, [Dim.of(axis) for axis in axes], body=bodies)
        along = tangent.of(value)
        if along is None:
            continue
        weight = lowering.element(cotangent, [Dim.of(axis) for axis in axes])
        term = lowering.pool.call("mul", weight, along, dtype=along.dtype)
        for axis, size in reversed(list(zip(axes, node.shape, strict=True))):
            if size != 1:
                term = lowering.pool.reduce("sum", axis, term)
        total = term if total is None else lowering.pool.call("add", total, term, dtype=term.dtype)
    return total


class _Missing(Exception):
    """The tangent of another expression is needed first."""

    def __init__(self, expr: Expr) -> None:
        self.expr = expr


class Tangent:
    """Tangents of expressions along the basis direction ``wrt[at]``; None where zero."""

    def __init__(
        self, lowering: Lowering, wrt: str, at: tuple[Dim, ...], through: Iterable[Node] = ()
    ) -> None:
        self.lowering, self.pool = lowering, lowering.pool
        self.wrt, self.at = wrt, at
        self.through = Leaves(through)
        self._memo: dict[int, Expr | None] = {}

    def of(self, goal: Expr) -> Expr | None:
        """The tangent of an expression; without recursion, since user graphs may be deep."""
        stack = [goal]
        while stack:
            expr = stack[-1]
            if expr.number not in self._memo:
                try:
                    self._memo[expr.number] = self._tangent(expr)
                except _Missing as missing:
                    stack.append(missing.expr)
                    continue
            stack.pop()
        return self._memo[goal.number]

    def _get(self, expr: Expr) -> Expr | None:
        if expr.number not in self._memo:
            raise _Missing(expr)
        return self._memo[expr.number]

    def _tangent(self, expr: Expr) -> Expr | None:
        if not expr.dtype.is_float or isinstance(expr, (Literal, IntValue)):
            return None
        if isinstance(expr, Access):
            return self._access(expr)
        if isinstance(expr, Call):
            return self._call(expr)
        if isinstance(expr, Reduce):
            return self._reduce(expr)
        raise GraphError(f"no tangent of {expr!r}")

    def _access(self, expr: Access) -> Expr | None:
        if expr.tensor == self.wrt:
            here = [
                self.pool.relation("eq", index, at)
                for index, at in zip(expr.indices, self.at, strict=True)
            ]
            condition = self.pool.conjunction(here)
            return self._masked(condition, self.pool.literal(1.0, expr.dtype))
        node = self.through.get(expr.tensor)
        if node is None:
            return None
        if get(node.op).lower is None and get(node.op).scalar is None:
            return self._opaque(node, expr.indices)
        return self._get(self.lowering.element(node, expr.indices, body=True))

    def _opaque(self, node: Node, indices: tuple[Dim, ...]) -> Expr | None:
        """The tangent of an op without index notation, such as a matrix inverse.

        The op's own tangent is lowered with placeholders for the tangents of its arguments,
        which are then put in element by element.
        """
        rule = get(node.op).tangent
        if rule is None:
            raise GraphError(f"the op {node.op!r} has no tangent")
        marks = [
            self._placeholder(arg) if arg.dtype.is_float else None for arg in node.args
        ]  # fmt: skip
        result = rule(node, marks)
        if result is None:
            return None
        placed = {mark for mark in marks if mark is not None}
        for made in ancestors([result], stop=[node]):
            if get(made.op).lower is None and made.op != "input" and get(made.op).scalar is None:
                if not placed.isdisjoint(ancestors([made])):
                    raise GraphError(f"the tangent of {node.op!r} has no index notation")
                self.lowering.cuts.add(made)
        names = {f"@{arg.index}": arg for arg in node.args}
        total = self.lowering.element(result, indices)
        return self._filled(total, names)

    def _placeholder(self, arg: Node) -> Node:
        name = f"@{arg.index}"
        graph = self.lowering.graph
        return graph.inputs[name] if name in graph.inputs else graph.input(name, arg.type)

    def _filled(self, expr: Expr, names: dict[str, Node]) -> Expr:
        """``expr`` with the placeholders replaced by tangents."""

        def rule(part: Expr, _: object) -> Expr | None:
            if not isinstance(part, Access) or part.tensor not in names:
                return None
            element = self.lowering.element(names[part.tensor], part.indices)
            return self._get(element) or self.pool.literal(0.0, part.dtype)

        return rebuild(self.pool, [expr], rule)[expr]

    def _call(self, expr: Call) -> Expr | None:
        name = expr.function
        if expr.dtype == bool_:
            return None
        if name == "cast":
            return self._get(expr.operands[0])
        if name == "where":
            condition, chosen, other = expr.operands
            return self._choose(condition, self._get(chosen), self._get(other))
        total: Expr | None = None
        for position, operand in enumerate(expr.operands):
            along = self._get(operand)
            if along is not None:
                total = self._sum(total, self._scaled(expr, position, along))
        return total

    def _scaled(self, expr: Call, position: int, along: Expr) -> Expr | None:
        if expr.function in ("add", "mul"):  # the commonest two, without the detour by sympy
            if expr.function == "add":
                return along
            factor: Expr | None = expr.operands[1 - position]
        else:
            factor = partial_expr(self.pool, expr.function, expr.operands, position, expr.dtype)
        if factor is None:
            return None
        if isinstance(factor, Literal) and factor.value == 1:
            return along
        return self.pool.call("mul", factor, along, dtype=expr.dtype)

    def _reduce(self, expr: Reduce) -> Expr | None:
        along = self._get(expr.body)
        if along is None:
            return None
        axis = expr.axis
        if expr.kind == "sum":
            return self.pool.reduce("sum", axis, along)
        if expr.kind in ("max", "min"):
            best = self.pool.reduce(f"arg{expr.kind}", axis, expr.body)
            here = self.pool.call("eq", self.pool.integer(Dim.of(axis)), best, dtype=bool_)
            masked = self._masked(here, along)
            return None if masked is None else self.pool.reduce("sum", axis, masked)
        if expr.kind == "prod":
            others = self._others(expr)
            term = self.pool.call("mul", along, others, dtype=expr.dtype)
            return self.pool.reduce("sum", axis, term)
        raise GraphError(f"no tangent of a reduction by {expr.kind!r}")

    def _others(self, expr: Reduce) -> Expr:
        """The product of all factors but the one at the reduction's own axis."""
        other = Axis(f"{expr.axis.name}'", expr.axis.extent)
        while other in expr.body.free or other in _bound(expr.body):
            other = Axis(f"{other.name}'", expr.axis.extent)
        factor = substitute(self.pool, expr.body, {expr.axis: Dim.of(other)})
        if factor is None:
            raise GraphError("a product over an axis that the extent of another depends on")
        same = self.pool.relation("eq", Dim.of(other), Dim.of(expr.axis))
        one = self.pool.literal(1.0, expr.dtype)
        return self.pool.reduce("prod", other, self.pool.select(same, one, factor))

    def _sum(self, left: Expr | None, right: Expr | None) -> Expr | None:
        if left is None or right is None:
            return right if left is None else left
        return self.pool.call("add", left, right, dtype=left.dtype)

    def _choose(self, condition: Expr, chosen: Expr | None, other: Expr | None) -> Expr | None:
        if chosen is None and other is None:
            return None
        present = chosen if chosen is not None else other
        assert present is not None
        zero = self.pool.literal(0.0, present.dtype)
        return self.pool.select(condition, chosen or zero, other or zero)

    def _masked(self, condition: Expr, value: Expr) -> Expr | None:
        if isinstance(condition, Literal):
            return value if condition.value else None
        return self.pool.select(condition, value, self.pool.literal(0.0, value.dtype))


def _bound(expr: Expr) -> set[Axis]:
    return {part.axis for part in postorder([expr]) if isinstance(part, Reduce)}
