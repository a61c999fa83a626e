"""Scalar expressions into statements: what is named, and in which scope.

In: expressions, the open scopes.  Out: declarations in the scopes, C expressions.
Imports: ``symgrad.ir``, ``symgrad.ops`` and its neighbours in ``symgrad.codegen``.

A value goes to the outermost open scope whose loops fix all of its axes, so that what does not
change in a loop is computed before it.  It gets a name when it is used twice, when it moves
outwards, when the user named it, or when its text grows long.  What might read outside of an array
stays where it is guarded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from symgrad.codegen import ctree
from symgrad.codegen.context import Context
from symgrad.codegen.ctree import Declare, Expression, Statement, name
from symgrad.codegen.guards import Guards
from symgrad.codegen.numbers import literal
from symgrad.codegen.printer import expression_text
from symgrad.codegen.spelling import repeats, spell
from symgrad.ir.dim import Axis
from symgrad.ir.dtype import DType, bool_
from symgrad.ir.expr import Access, Call, Expr, IntValue, Literal, Reduce

_LONGEST = 60  # characters of an expression that has no name of its own


@dataclass
class Scope:
    """A block of C that is being written: the axes that are fixed in it, and what it holds."""

    axes: frozenset[Axis]
    statements: list[Statement] = field(default_factory=list)
    known: dict[Expr, Expression] = field(default_factory=dict)
    pointers: dict[tuple[str, Expression], str] = field(default_factory=dict)


class Evaluator:
    """Writes expressions into the open ``scopes``; ``stored`` reads values that are arrays."""

    def __init__(
        self,
        context: Context,
        names: Mapping[Expr, str],
        stored: Callable[[Expr], Expression | None],
    ) -> None:
        self.context = context
        self.scopes: list[Scope] = []
        self._names = names
        self._stored = stored
        self._guards = Guards(
            lambda tensor: context.arrays[tensor].shape, lambda expr: self.known(expr) is not None
        )

    @property
    def scope(self) -> Scope:
        """The innermost scope."""
        return self.scopes[-1]

    def add(self, statement: Statement) -> None:
        """Append a statement to the innermost scope."""
        self.scope.statements.append(statement)

    def known(self, expr: Expr) -> Expression | None:
        """The C expression of a value that is there already."""
        for scope in reversed(self.scopes):
            if expr in scope.known:
                return scope.known[expr]
        return self._stored(expr)

    def write(self, roots: Sequence[Expr]) -> list[Expression]:
        """Evaluate ``roots`` at the end of the innermost scope."""
        order, uses = self._collect(roots)
        for expr in order:
            self._place(expr, uses[expr])
        found = [self.known(root) for root in roots]
        assert None not in found
        return [one for one in found if one is not None]

    def _collect(self, roots: Iterable[Expr]) -> tuple[list[Expr], dict[Expr, int]]:
        """What has to be evaluated, arguments first, and how often each occurs in the text."""
        uses: dict[Expr, int] = {}
        order: dict[int, Expr] = {}
        todo = list(roots)
        for root in todo:
            uses[root] = uses.get(root, 0) + 1
        while todo:
            expr = todo.pop()
            if expr.number in order or self.known(expr) is not None:
                continue
            assert not isinstance(expr, Reduce), f"{expr!r} was not computed"
            order[expr.number] = expr
            for position, arg in enumerate(expr.args):
                times = 1
                if isinstance(expr, Call):
                    times = repeats(expr.function, _operand_dtype(expr), position)
                uses[arg] = uses.get(arg, 0) + times
                todo.append(arg)
        return [order[number] for number in sorted(order)], uses

    def _place(self, expr: Expr, uses: int) -> None:
        """Give ``expr`` its C expression, in a declaration or inline."""
        level = len(self.scopes) - 1 if self._guards.guarded(expr) else self._level(expr)
        moved = level < len(self.scopes) - 1
        value = self._translate(expr, level)
        scope = self.scopes[level]
        if self._deserves_name(expr, value, uses, moved=moved):
            c_name = self.context.names.fresh(self._wanted_name(expr))
            scope.statements.append(Declare(f"const {_c_type(expr.dtype)}", c_name, value))
            value = name(c_name)
        scope.known[expr] = value

    def _level(self, expr: Expr) -> int:
        opened: frozenset[Axis] = frozenset()
        for level, scope in enumerate(self.scopes):
            opened |= scope.axes
            if expr.free <= opened:
                return level
        missing = sorted(axis.name for axis in expr.free - opened)
        raise AssertionError(f"{expr!r} needs the axes {missing}, which are not open")

    def _deserves_name(self, expr: Expr, value: Expression, uses: int, *, moved: bool) -> bool:
        if (
            isinstance(expr, (Literal, IntValue))
            or ctree.is_leaf(value)
            or self._guards.guarded(expr)
        ):
            return False
        if isinstance(expr, Access):
            return uses > 1 or moved
        if expr in self._names or moved:
            return True
        return uses > 1 or len(expression_text(value)) > _LONGEST

    def _wanted_name(self, expr: Expr) -> str:
        if expr in self._names:
            return self._names[expr]
        if isinstance(expr, Access) and not expr.tensor.startswith("%"):
            letters = "".join(self.context.variable(axis) for axis in _by_key(expr.free))
            return f"{expr.tensor}_{letters}" if letters else f"{expr.tensor}_0"
        return "t"

    # -- one expression

    def _translate(self, expr: Expr, level: int) -> Expression:
        if isinstance(expr, Literal):
            return literal(expr.value, expr.dtype)
        if isinstance(expr, IntValue):
            value = self.context.dim(expr.value)
            return ctree.Cast(expr.dtype.c, value) if expr.dtype.is_float else value
        if isinstance(expr, Access):
            return self.context.element(self.context.arrays[expr.tensor], expr.indices)
        assert isinstance(expr, Call)
        operands = [self.known(operand) for operand in expr.operands]
        assert None not in operands
        found = [operand for operand in operands if operand is not None]
        used = self.context.used
        return spell(expr.function, found, _operand_dtype(expr), expr.dtype, used)


def _by_key(axes: Iterable[Axis]) -> list[Axis]:
    return sorted(axes, key=lambda axis: axis.key)


def _operand_dtype(call: Call) -> DType:
    return call.operands[-1].dtype if call.operands else call.dtype


def _c_type(dtype: DType) -> str:
    """The type of a temporary: comparisons are ``int`` in C."""
    return "int" if dtype == bool_ else dtype.c
