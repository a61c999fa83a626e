"""Index notation: what each element of a tensor is, as a scalar expression.

In: tensors by name, index expressions (``Dim``), scalar functions by the name of their op.
Out: interned expressions; equal ones made by one ``ExprPool`` are the same object.

    Expr ::= Literal(value)                       a number as written
           | IntValue(dim)                        a size or an index as a number
           | Access(tensor, dim*)                 an element of an input or of a cut node
           | Call(op, Expr*)                      an elementwise op of the registry
           | Reduce(kind, axis, Expr)             kind: sum prod max min any all argmax argmin

A ``Reduce`` binds its axis: an inner one may bind an axis of the same name again.
``Access.tensor`` is an input's name, or ``"%<index>"`` for a node that was cut.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from symgrad.ir.dim import Atom, Axis, Dim
from symgrad.ir.dtype import DType, bool_, int64
from symgrad.ir.graph import ConstantValue, Scalar

T = TypeVar("T")
REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")


@dataclass(frozen=True, eq=False, repr=False)
class Expr:
    """A scalar; ``number`` orders it in its pool, ``free`` are the axes it depends on."""

    number: int
    dtype: DType
    free: frozenset[Axis]

    @property
    def args(self) -> tuple[Expr, ...]:
        """The expressions that it is made of."""
        return ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.number}>"


@dataclass(frozen=True, eq=False, repr=False)
class Literal(Expr):
    """A number as the user wrote it; f32 or f64 only says how it is stored."""

    value: Scalar


@dataclass(frozen=True, eq=False, repr=False)
class IntValue(Expr):
    """An integer expression as a number."""

    value: Dim


@dataclass(frozen=True, eq=False, repr=False)
class Access(Expr):
    """An element of a stored tensor."""

    tensor: str
    indices: tuple[Dim, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Call(Expr):
    """An elementwise op applied to scalars."""

    function: str
    operands: tuple[Expr, ...]

    @property
    def args(self) -> tuple[Expr, ...]:
        """The expressions that it is made of."""
        return self.operands


@dataclass(frozen=True, eq=False, repr=False)
class Reduce(Expr):
    """A reduction of ``body`` over all values of ``axis``.

    ``order``: how it is computed, as names; () where its values are taken one after the other.
    """

    kind: str
    axis: Axis
    body: Expr
    order: tuple[str, ...] = ()

    @property
    def args(self) -> tuple[Expr, ...]:
        """The expressions that it is made of."""
        return (self.body,)


class ExprPool:
    """Makes expressions, each once."""

    def __init__(self) -> None:
        self._interned: dict[tuple[Any, ...], Expr] = {}

    def __len__(self) -> int:
        return len(self._interned)

    def literal(self, value: Scalar, dtype: DType) -> Expr:
        """A number as the user wrote it."""
        key = ("literal", ConstantValue.of(value), dtype)
        return self._get(key) or self._add(key, Literal(len(self), dtype, frozenset(), value))

    def integer(self, value: Dim | int, dtype: DType = int64) -> Expr:
        """An integer expression as a number."""
        dim = Dim.of(value)
        key = ("integer", dim, dtype)
        return self._get(key) or self._add(key, IntValue(len(self), dtype, free_axes([dim]), dim))

    def access(self, tensor: str, indices: tuple[Dim, ...], dtype: DType) -> Expr:
        """An element of a stored tensor."""
        key = ("access", tensor, indices, dtype)
        if (found := self._get(key)) is not None:
            return found
        return self._add(key, Access(len(self), dtype, free_axes(indices), tensor, indices))

    def call(self, function: str, *operands: Expr, dtype: DType) -> Expr:
        """An elementwise op of the registry applied to scalars; ``dtype`` is the result's.

        A choice between one expression and itself is that.
        """
        if function == "where" and operands[1] is operands[2] and operands[1].dtype == dtype:
            return operands[1]
        key = ("call", function, tuple(operand.number for operand in operands), dtype)
        if (found := self._get(key)) is not None:
            return found
        free = frozenset[Axis]().union(*(operand.free for operand in operands))
        return self._add(key, Call(len(self), dtype, free, function, operands))

    def reduce(self, kind: str, axis: Axis, body: Expr, order: tuple[str, ...] = ()) -> Expr:
        """A reduction of ``body`` over ``axis``.  Raises ValueError for an unknown kind."""
        if kind not in REDUCTIONS:
            raise ValueError(f"no reduction is called {kind!r}")
        key = ("reduce", kind, axis, body.number, order)
        if (found := self._get(key)) is not None:
            return found
        dtype = int64 if kind.startswith("arg") else body.dtype
        free = (body.free - {axis}) | free_axes([axis.extent])
        return self._add(key, Reduce(len(self), dtype, free, kind, axis, body, order))

    # -- relations between integers, used by the meanings of structural ops

    def relation(self, function: str, left: Dim | int, right: Dim | int) -> Expr:
        """``left <function> right`` for ``eq ne lt le gt ge``; a literal when it is decided."""
        left, right = Dim.of(left), Dim.of(right)
        if (known := _decided(function, left, right)) is not None:
            return self.literal(known, bool_)
        return self.call(function, self.integer(left), self.integer(right), dtype=bool_)

    def select(self, condition: Expr, chosen: Expr, other: Expr) -> Expr:
        """``condition ? chosen : other``, decided when the condition is a literal."""
        if isinstance(condition, Literal):
            return chosen if condition.value else other
        return self.call("where", condition, chosen, other, dtype=chosen.dtype)

    def integer_cast(self, value: Expr, dtype: DType) -> Expr:
        """An integer in another integer dtype: as it is where all fit, else reduced to its range.

        ``cast`` between integers is exact; what reduces is ``wrap_i8`` and its like.
        """
        if value.dtype == dtype:
            return value
        if isinstance(value, Literal):
            return self.literal(dtype.wrapped(int(value.value)), dtype)
        if isinstance(value, Call) and value.function == "cast":
            (origin,) = value.operands
            if origin.dtype == dtype:  # it was widened from there
                return origin
        if dtype.holds(value.dtype):
            return self.call("cast", value, dtype=dtype)
        whole = self.integer_cast(value, int64)
        return self.call(f"wrap_{dtype.short}", whole, dtype=dtype)

    def conjunction(self, conditions: Iterable[Expr]) -> Expr:
        """All of them; true when there is none."""
        result: Expr | None = None
        for condition in conditions:
            if isinstance(condition, Literal):
                if not condition.value:
                    return condition
                continue
            result = (
                condition if result is None
                else self.call("logical_and", result, condition, dtype=bool_)
            )  # fmt: skip
        return result if result is not None else self.literal(True, bool_)

    def _get(self, key: tuple[Any, ...]) -> Expr | None:
        return self._interned.get(key)

    def _add(self, key: tuple[Any, ...], expr: Expr) -> Expr:
        self._interned[key] = expr
        return expr


def free_axes(dims: Iterable[Dim]) -> frozenset[Axis]:
    """The index variables that occur in ``dims``, those of tensor elements included."""
    return frozenset(axis for dim in dims for axis in dim.axes)


def postorder(roots: Iterable[Expr], known: Container[Expr] = ()) -> list[Expr]:
    """All expressions that ``roots`` are made of, arguments first; ``known`` are not entered."""
    found: dict[int, Expr] = {}
    todo = list(roots)
    while todo:
        expr = todo.pop()
        if expr.number not in found and expr not in known:
            found[expr.number] = expr
            todo.extend(expr.args)
    return [found[number] for number in sorted(found)]


def fold(
    roots: Iterable[Expr], step: Callable[[Expr, Mapping[Expr, T]], T],
    memo: dict[Expr, T] | None = None,
) -> dict[Expr, T]:  # fmt: skip
    """What ``step`` makes of each expression and of what it made of those inside it.

    ``memo``: what is known already; it grows, and is the result.
    """
    found: dict[Expr, T] = {} if memo is None else memo
    for expr in postorder(roots, found):
        if expr not in found:  # a step may fold by itself
            found[expr] = step(expr, found)
    return found


def rebuild(
    pool: ExprPool, roots: Iterable[Expr],
    rule: Callable[[Expr, Mapping[Expr, Expr]], Expr | None],
    memo: dict[Expr, Expr] | None = None,
) -> dict[Expr, Expr]:  # fmt: skip
    """What stands for each expression, given what stands for those inside it.

    Where ``rule`` gives None, it is the expression itself, with its arguments replaced.
    """

    def step(expr: Expr, new: Mapping[Expr, Expr]) -> Expr:
        return rule(expr, new) or with_args(pool, expr, new)

    return fold(roots, step, memo)


def with_args(pool: ExprPool, expr: Expr, new: Mapping[Expr, Expr]) -> Expr:
    """``expr`` with its arguments replaced."""
    if isinstance(expr, Call) and any(new[arg] is not arg for arg in expr.operands):
        return pool.call(expr.function, *(new[arg] for arg in expr.operands), dtype=expr.dtype)
    if isinstance(expr, Reduce) and new[expr.body] is not expr.body:
        return pool.reduce(expr.kind, expr.axis, new[expr.body], expr.order)
    return expr


def reading(root: Expr, axes: Collection[Axis]) -> list[Expr]:
    """The parts of ``root`` in which one of the axes is free, arguments first."""
    found: dict[int, Expr] = {}
    todo = [root]
    while todo:
        expr = todo.pop()
        if expr.number not in found and not expr.free.isdisjoint(axes):
            found[expr.number] = expr
            todo.extend(expr.args)
    return [found[number] for number in sorted(found)]


class _Changed(dict[Expr, Expr]):
    """What stands for expressions; for all others, they themselves."""

    def __missing__(self, expr: Expr) -> Expr:
        return expr


def substitute(pool: ExprPool, root: Expr, mapping: Mapping[Axis, Dim]) -> Expr | None:
    """``root`` with axes replaced.

    None where a reduction in it binds an axis that is put in, or is as long as an axis says.
    """
    put: dict[Atom, Dim] = dict(mapping.items())
    brought = free_axes(mapping.values()) | set(mapping)
    new = _Changed()
    for expr in reading(root, mapping.keys()):
        if isinstance(expr, Reduce):
            long = free_axes([expr.axis.extent])
            if expr.axis in brought or not long.isdisjoint(mapping):
                return None
        if isinstance(expr, Access):
            indices = tuple(index.substitute(put) for index in expr.indices)
            new[expr] = pool.access(expr.tensor, indices, expr.dtype)
        elif isinstance(expr, IntValue):
            new[expr] = pool.integer(expr.value.substitute(put), expr.dtype)
        else:
            new[expr] = with_args(pool, expr, new)
    return new[root]


def _decided(function: str, left: Dim, right: Dim) -> bool | None:
    """The truth of a relation where it holds, or fails, for all sizes >= 1."""
    if _shown(function, left, right):
        return True
    return False if _shown(OPPOSITE[function], left, right) else None


def _shown(function: str, left: Dim, right: Dim) -> bool:
    if function == "eq":
        return _shown("le", left, right) and _shown("ge", left, right)
    if function == "ne":
        return _shown("lt", left, right) or _shown("gt", left, right)
    difference = right - left if function in ("lt", "le") else left - right
    return difference.at_least(int(function in ("lt", "gt")), least_size=1)


OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
"""What holds of numbers where a comparison does not."""
TURNED = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
"""The same comparison with its sides exchanged."""
