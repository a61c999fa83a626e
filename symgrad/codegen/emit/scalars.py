"""Scalar expressions into statements: what is named, and in which scope.

In: expressions, the open scopes.  Out: declarations in the scopes, C expressions.

A value goes to the outermost open scope whose loops fix all of its axes, so that what does not
change in a loop is computed before it.  It gets a name when it is used twice, when it moves
outwards, when the user named it, or when its text grows long.  What might read outside of an array
stays where it is guarded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from symgrad.codegen.emit import ctree
from symgrad.codegen.emit.context import Array, EmitContext
from symgrad.codegen.emit.ctree import Binary, Declare, Expression, Statement, expression_text, name
from symgrad.codegen.emit.spelling import literal, repeats, spell
from symgrad.codegen.program.guards import Guards
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.dtype import DType, bool_
from symgrad.ir.expr import Access, Call, Expr, IntValue, Literal, Reduce, free_axes

_LONGEST = 60  # characters of an expression that has no name of its own


@dataclass
class Scope:
    """A block of C that is being written.

    ``axes``: those that are fixed in it; ``known``: values that it holds; ``pointers``: to rows,
    by array and place; ``names``: those that end with it.
    """

    axes: frozenset[Axis]
    statements: list[Statement] = field(default_factory=list)
    known: dict[Expr, Expression] = field(default_factory=dict)
    pointers: dict[tuple[str, tuple[Dim, ...]], str] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)


class ScalarWriter:
    """Writes expressions into the open ``scopes``.

    ``names``: values that the user named; ``hints``: names for others, should they need one;
    ``stored`` reads values that are arrays.
    """

    def __init__(
        self,
        context: EmitContext,
        names: Mapping[Expr, str],
        hints: Mapping[Expr, str],
        stored: Callable[[Expr], Expression | None],
    ) -> None:
        self.context = context
        self.scopes: list[Scope] = []
        self._names = names
        self._hints = hints
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

    def variable(self, kind: str, wanted: str, value: Expression) -> str:
        """Declare a variable in the innermost scope; return its name, ``wanted`` or one like it."""
        found = self.fresh(wanted)
        self.add(Declare(kind, found, value))
        return found

    def known(self, expr: Expr) -> Expression | None:
        """The C expression of a value that is there already."""
        for scope in reversed(self.scopes):
            if expr in scope.known:
                return scope.known[expr]
        return self._stored(expr)

    def fresh(self, wanted: str, level: int = -1) -> str:
        """A name that ends with an open scope, the innermost one unless another is given."""
        found = self.context.names.fresh(wanted)
        self.scopes[level].names.append(found)
        return found

    def open(self, axes: frozenset[Axis]) -> None:
        """Open a scope in which ``axes`` are fixed."""
        self.scopes.append(Scope(axes))

    def close(self) -> list[Statement]:
        """End the innermost scope: its names are free again."""
        scope = self.scopes.pop()
        for ended in scope.names:
            self.context.names.release(ended)
        return scope.statements

    def write(self, roots: Sequence[Expr]) -> list[Expression]:
        """Evaluate ``roots`` at the end of the innermost scope."""
        order, uses = self._collect(roots)
        inner = len(self.scopes) - 1
        levels = {e: inner if self._guards.guarded(e) else self._level(e) for e in order}
        outward = {a for e in order for a in e.args if levels.get(a, levels[e]) != levels[e]}
        outward.update(root for root in roots if levels.get(root, inner) != inner)
        for expr in order:
            single = expr in roots and uses[expr] == 1
            self._place(expr, levels[expr], uses[expr], moved=expr in outward, root=single)
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

    def _place(self, expr: Expr, level: int, uses: int, *, moved: bool, root: bool) -> None:
        """Give ``expr`` its C expression, in a declaration or inline."""
        value = self._translate(expr, level)
        scope = self.scopes[level]
        if self._deserves_name(expr, value, uses, moved=moved, root=root):
            c_name = self.fresh(self._wanted_name(expr), level)
            scope.statements.append(Declare(f"const {_c_type(expr.dtype)}", c_name, value))
            value = name(c_name)
        scope.known[expr] = value

    def _level(self, expr: Expr) -> int:
        return self._level_of(expr.free)

    def _level_of(self, axes: frozenset[Axis]) -> int:
        """The outermost scope in which all of ``axes`` are fixed."""
        opened: frozenset[Axis] = frozenset()
        for level, scope in enumerate(self.scopes):
            opened |= scope.axes
            if axes <= opened:
                return level
        missing = sorted(axis.name for axis in axes - opened)
        raise AssertionError(f"the axes {missing} are not open")

    def _deserves_name(
        self, expr: Expr, value: Expression, uses: int, *, moved: bool, root: bool
    ) -> bool:
        if isinstance(expr, (Literal, IntValue)) or ctree.is_leaf(value):
            return False
        if self._guards.guarded(expr):
            return False
        if uses > 1 or moved:
            return True
        if isinstance(expr, Access) or root:
            return False
        return expr in self._names or len(expression_text(value)) > _LONGEST

    def _wanted_name(self, expr: Expr) -> str:
        if expr in self._names:
            return self._names[expr]
        if isinstance(expr, Access) and not expr.tensor.startswith("%"):
            letters = "".join(self.context.variable(a) for a in self.context.in_order(expr.indices))
            return f"{expr.tensor}_{letters}" if letters else f"{expr.tensor}_0"
        return self._hints.get(expr, "t")

    # -- elements of arrays

    def element(self, array: Array, indices: Sequence[Dim], level: int = -1) -> Expression:
        """An element, through a pointer to its row where an outer scope fixes the row."""
        level %= len(self.scopes)
        places = [place for place, index in enumerate(indices) if index != 0]
        if self.context.flat is not None or len(places) < 2:
            return self.context.element(array, indices)
        last = places[-1]
        base = tuple(Dim.of(0) if p == last else index for p, index in enumerate(indices))
        outer = self._level_of(free_axes(base))
        contiguous = all(size == 1 for size in array.shape[last + 1 :]) and (
            not array.strides or not array.strides[last]
        )
        if not contiguous or outer >= level or not free_axes([indices[last]]):
            return self.context.element(array, indices)
        origin = array.origin[last] if array.origin else 0
        return ctree.Element(
            self._row(array, base, outer), self.context.dim(indices[last] - origin)
        )

    def _row(self, array: Array, base: tuple[Dim, ...], level: int) -> str:
        """A pointer to where the last index is 0."""
        scope = self.scopes[level]
        if (array.name, base) not in scope.pointers:
            letters = "".join(self.context.variable(a) for a in self.context.in_order(base))
            pointer = self.fresh(f"{array.name}_{letters}", level)
            kept = replace(array, origin=(*array.origin[:-1], Dim.of(0))) if array.origin else array
            start = Binary("+", name(array.name), self.context.address(kept, base))
            constant = "const " if array.constant else ""
            scope.statements.append(Declare(f"{constant}{array.dtype.c} *", pointer, start))
            scope.pointers[array.name, base] = pointer
        return scope.pointers[array.name, base]

    # -- one expression

    def _translate(self, expr: Expr, level: int) -> Expression:
        if isinstance(expr, Literal):
            return literal(expr.value, expr.dtype)
        if isinstance(expr, IntValue):
            value = self.context.dim(expr.value)
            return ctree.Cast(expr.dtype.c, value) if expr.dtype.is_float else value
        if isinstance(expr, Access):
            array = self.context.arrays[expr.tensor]
            if self._guards.guarded(expr):
                return self.context.element(array, expr.indices)
            return self.element(array, expr.indices, level)
        assert isinstance(expr, Call)
        operands = [self.known(operand) for operand in expr.operands]
        assert None not in operands
        found = [operand for operand in operands if operand is not None]
        used = self.context.used
        return spell(expr.function, found, _operand_dtype(expr), expr.dtype, used)


def _operand_dtype(call: Call) -> DType:
    return call.operands[-1].dtype if call.operands else call.dtype


def _c_type(dtype: DType) -> str:
    """The type of a temporary: comparisons are ``int`` in C."""
    return "int" if dtype == bool_ else dtype.c
