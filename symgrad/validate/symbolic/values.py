"""The values that a kernel computes with: integers as ``Dim``, all others as index notation.

In: constants, elements, operations.  Out: interned expressions whose accesses have one index, the
address; with axes, minima and what memory held before replaced where more is known.

An integer that is no polynomial (a choice, a sum of truth values) is an element of a defined
array: ``Element("@3", indices)``, whose definition is an expression of the indices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import TypeGuard

from symgrad.ir.dim import Atom, Axis, Derived, Dim, Element
from symgrad.ir.dtype import DType, bool_, float32, float64, int64
from symgrad.ir.expr import (
    OPPOSITE,
    Access,
    Call,
    Expr,
    ExprPool,
    IntValue,
    Literal,
    Reduce,
    free_axes,
    postorder,
    rebuild,
)
from symgrad.validate.symbolic import orders
from symgrad.validate.symbolic.integers import BUILD, Bounds, Integers, least, put, uppers
from symgrad.validate.symbolic.orders import Order

Elements = Callable[[str, tuple[Dim, ...], DType], Expr | None]
"""What stands for an element of an array; None where it stays."""

DEFINED = "@"
_NOTHING = {
    "sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf, "any": False, "all": True,
}  # fmt: skip
"""What a reduction over nothing is."""
_PLACES = ("argmax", "argmin")
ASSOCIATIVE = ("sum", "prod", "max", "min", "any", "all")
"""Reductions over blocks of a range that are one over the range."""


class Values:
    """Makes values, in one pool."""

    def __init__(self, integers: Integers) -> None:
        self.integers = integers
        self.pool = ExprPool()
        self._definitions: dict[str, tuple[tuple[Element, ...], Expr]] = {}
        self._names: dict[tuple[tuple[Element, ...], Expr], str] = {}
        self._fresh = count()
        self._depths: dict[Expr, int] = {}
        self._numbers: dict[Expr, bool] = {}

    def axis(self, name: str, extent: Dim) -> Axis:
        """An axis that nothing else is named as."""
        return Axis(f"{name.split(chr(39))[0]}'{next(self._fresh)}", extent)

    # -- between integers and expressions

    def expression(self, value: Dim | Expr) -> Expr:
        """An integer as an expression."""
        if isinstance(value, Expr):
            return value
        atom = value.atom
        if isinstance(atom, Element):
            if is_defined(atom):
                return self.definition(atom)
            return self.pool.access(atom.tensor, atom.indices, int64)
        return self.pool.integer(value)

    def integer(self, value: Dim | Expr) -> Dim:
        """An integer expression, or a truth value, as an index expression."""
        if isinstance(value, Dim):
            return value
        if isinstance(value, IntValue):
            return value.value
        if isinstance(value, Literal):
            return Dim.of(int(value.value))
        if isinstance(value, Access) and value.dtype.is_integer:
            return Dim.of(Element(value.tensor, value.indices))
        if isinstance(value, Call) and value.function == "cast" and value.dtype == int64:
            inner = value.operands[0]
            if inner.dtype.is_integer:
                return self.integer(inner)
        actual = self._parameters(value)
        formal = tuple(Element(f"{DEFINED}{place}", ()) for place in range(len(actual)))
        names = {one: Dim.of(new) for one, new in zip(actual, formal, strict=True)}
        template = self._with_parameters(value, names)
        key = (formal, template)
        if key not in self._names:
            self._names[key] = f"{DEFINED}{len(self._names)}="
            self._definitions[self._names[key]] = key
            if value.dtype == bool_:
                self.integers.limit(self._names[key], 0, 1)
            if isinstance(template, Reduce) and template.kind in _PLACES:
                facts = self._place(self._names[key], formal, template.axis.extent)
                self.integers.bound(self._names[key], facts)
        return Dim.of(Element(self._names[key], actual))

    def _place(self, name: str, formal: tuple[Element, ...], length: Dim) -> Bounds:
        """Where the greatest is: 0 where there is none, else before the end of the axis."""

        def facts(indices: tuple[Dim, ...]) -> Iterator[Dim]:
            value = Dim.of(Element(name, indices))
            mapping = dict(zip(formal, indices, strict=True))
            yield value
            extent = put(length, mapping)
            if self.integers.entails(extent - 1):
                yield extent - 1 - value

        return facts

    def _extent_of_place(self, value: Dim) -> Dim | None:
        """The axis that a value is a place in, by what it is."""
        atom = value.atom
        if not is_defined(atom):
            return None
        made = self.definition(atom)
        return made.axis.extent if isinstance(made, Reduce) and made.kind in _PLACES else None

    def _parameters(self, value: Expr) -> tuple[Dim, ...]:
        """The index expressions that a value depends on by its axes; the axes, with reductions."""
        parts = postorder([value])
        if any(isinstance(one, Reduce) for one in parts):
            return tuple(Dim.of(axis) for axis in sorted(value.free, key=lambda one: one.key))
        found: dict[Dim, None] = {}
        for one in parts:
            dims = one.indices if isinstance(one, Access) else ()
            for dim in (one.value,) if isinstance(one, IntValue) else dims:
                if dim.axes:
                    found[dim] = None
        return tuple(found)

    def _with_parameters(self, value: Expr, names: Mapping[Dim, Dim]) -> Expr:
        if any(isinstance(one, Reduce) for one in postorder([value])):
            return self.replaced(value, {dim.axes[0]: new for dim, new in names.items()}, None)

        def rule(expr: Expr, _: Mapping[Expr, Expr]) -> Expr | None:
            if isinstance(expr, Access):
                indices = tuple(names.get(one, one) for one in expr.indices)
                return self.pool.access(expr.tensor, indices, expr.dtype)
            if isinstance(expr, IntValue):
                return self.pool.integer(names.get(expr.value, expr.value), expr.dtype)
            return None

        return rebuild(self.pool, [value], rule)[value]

    def named(self, element: Element) -> Dim:
        """An element of a defined array, by what it depends on now."""
        return self.integer(self.definition(element))

    def definition(self, element: Element) -> Expr:
        """What an element of a defined array is."""
        formal, template = self._definitions[element.tensor]
        return self.replaced(template, dict(zip(formal, element.indices, strict=True)), None)

    # -- operations

    def call(self, function: str, *operands: Expr, dtype: DType) -> Expr:
        """An operation, decided where its operands decide it."""
        a = operands[0]
        b = operands[1] if len(operands) > 1 else a
        if function in RELATIONS:
            return self._relation(function, a, b)
        if function in ("logical_or", "logical_and"):
            absorbing = function == "logical_or"
            for one, other in ((a, b), (b, a)):
                if isinstance(one, Literal):
                    return one if bool(one.value) == absorbing else other
        if function == "logical_not" and isinstance(a, Literal):
            return self.truth(not a.value)
        if function == "where":
            return self._choice(*operands, dtype=dtype)
        return self.pool.call(function, *operands, dtype=dtype)

    def truth(self, value: bool) -> Expr:
        """True, or false."""
        return self.pool.literal(value, bool_)

    def _relation(self, function: str, a: Expr, b: Expr) -> Expr:
        if a is b and (not a.dtype.is_float or self._is_no_nan(a)):
            return self.truth(function in ("eq", "le", "ge"))
        if a.dtype.is_float or b.dtype.is_float:
            return self.pool.call(function, a, b, dtype=bool_)
        left, right = self.integer(a), self.integer(b)
        entails = self.integers.entails
        known: bool | None = None
        if function in ("eq", "ne"):
            if entails(left - right - 1) or entails(right - left - 1):
                known = function == "ne"
            elif self.integers.same(left, right):
                known = function == "eq"
        else:
            low, high = (left, right) if function in ("lt", "le") else (right, left)
            strict = 1 if function in ("lt", "gt") else 0
            if entails(high - low - strict):
                known = True
            elif entails(low - high - 1 + strict):
                known = False
        if known is not None:
            return self.truth(known)
        if function in ("lt", "ge") and right == self._extent_of_place(left):
            empty = self.pool.integer(0), self.pool.integer(right)
            return self._relation(function, *empty)
        return self.pool.call(function, a, b, dtype=bool_)

    def _is_no_nan(self, expr: Expr) -> bool:
        """Is it a real number, or an infinity, wherever the elements in it are real numbers?"""
        if isinstance(expr, Reduce) and expr.kind in ("max", "min"):
            return self._is_no_nan(expr.body)
        if isinstance(expr, Call) and expr.function in ("maximum", "minimum"):
            return all(map(self._is_no_nan, expr.operands))
        return self._is_number(expr)

    def _is_number(self, root: Expr) -> bool:
        for one in postorder([root], self._numbers):
            inside = all(self._numbers[part] for part in one.args)
            self._numbers[one] = inside and _is_total(one)
        return self._numbers[root]

    def _choice(self, condition: Expr, chosen: Expr, other: Expr, *, dtype: DType) -> Expr:
        condition = without_own_check(condition, chosen, other)
        if is_never(condition) and _is_asked_of(condition, other):
            return other
        if isinstance(condition, Literal):
            return chosen if condition.value else other
        if chosen is other:
            return chosen
        if isinstance(condition, Call) and condition.function in ("gt", "lt", "ge", "le"):
            left, right = condition.operands
            upper = condition.function in ("gt", "ge")
            if (left, right) == (chosen, other):
                return self.pool.call("maximum" if upper else "minimum", chosen, other, dtype=dtype)
            if (left, right) == (other, chosen):
                return self.pool.call("minimum" if upper else "maximum", chosen, other, dtype=dtype)
        return self.pool.call("where", condition, chosen, other, dtype=dtype)

    def reduce(self, kind: str, axis: Axis, body: Expr, order: Order = ()) -> Expr:
        """A reduction over an axis; one over blocks of a range is one over the range."""
        if (body.dtype.is_float or body.dtype == bool_) and self.integers.entails(-axis.extent):
            nothing = _NOTHING.get(kind)
            if nothing is not None:
                return self.pool.literal(nothing, body.dtype)
        if kind == "any" and axis not in body.free:
            some = self._relation("lt", self.pool.integer(0), self.pool.integer(axis.extent))
            return self.call("logical_and", some, body, dtype=bool_)
        part = narrow(body)
        if isinstance(part, Reduce) and part.kind == kind and kind in ASSOCIATIVE:
            joined = self.joined(axis, part.axis)
            if joined is not None:
                whole, step = joined
                inner = self.substitute(part.body, {part.axis: Dim.of(whole) - step * Dim.of(axis)})
                if axis not in inner.free:
                    order = orders.joined(order, part.order, step)
                    if part is body:
                        return self.reduce(kind, whole, inner, order)
                    order = orders.named(*order, orders.DOUBLE)
                    return self.wide(self.reduce(kind, whole, inner, order))
        return self._named(kind, axis, body, order)

    def wide(self, value: Expr) -> Expr:
        """A float32 as a float64."""
        return self.pool.call("cast", value, dtype=float64)

    def _named(self, kind: str, axis: Axis, body: Expr, order: Order) -> Expr:
        """With an axis that is named by how deep it lies, so that equal reductions are one."""
        name = Axis(f"#r{1 + self._depth(body)}", axis.extent)
        if not self.integers.has_facts(axis) and name not in body.free:
            body = self.substitute(body, {axis: Dim.of(name)})
            axis = name
        return self.pool.reduce(kind, axis, body, order if kind in orders.ROUNDED else ())

    def _depth(self, root: Expr) -> int:
        """How many reductions lie in each other."""
        for one in postorder([root], self._depths):
            inner = max((self._depths[part] for part in one.args), default=0)
            self._depths[one] = inner + isinstance(one, Reduce)
        return self._depths[root]

    def joined(self, outer: Axis, inner: Axis) -> tuple[Axis, Dim] | None:
        """Blocks as one range: ``(whole, step)`` with ``whole == step * Dim.of(outer) + inner``.

        Each point of ``whole`` is met exactly once: blocks are ``step`` long but for those that
        its end cuts, and there are enough of them.
        """
        limits = uppers(inner.extent)
        if outer not in free_axes(limits):
            return None
        for step in (*limits, *self._block(outer, limits)):
            if outer in step.axes:
                continue
            ends = [limit + step * Dim.of(outer) for limit in limits if limit != step]
            if not ends or any(outer in end.axes for end in ends):
                continue
            whole = ends[0]
            for end in ends[1:]:
                whole = least(whole, end)
            counts = uppers(outer.extent)
            with self.integers.given(*(end - 1 for end in ends)):  # else all of it is empty
                enough = all(self.integers.entails(count * step - whole) for count in counts)
                if enough and self.integers.entails(step - 1):
                    return self.axis(inner.name, whole), step
        return None

    def _block(self, outer: Axis, limits: Sequence[Dim]) -> Iterator[Dim]:
        """The length of a block, where it is known that none is longer."""
        trips = outer.extent.atom
        if isinstance(trips, Element) and len(trips.indices) == 2:
            step = trips.indices[1]
            with self.integers.given(*self.integers.range_of(outer)):
                if any(self.integers.entails(step - limit) for limit in limits):
                    yield step

    # -- replacement

    def substitute(self, root: Expr, mapping: Mapping[Axis, Dim]) -> Expr:
        """``root`` with axes replaced, those in extents of reductions too."""
        return self.replaced(root, dict(mapping.items()), None)

    def replaced(self, root: Expr, mapping: Mapping[Atom, Dim], elements: Elements | None) -> Expr:
        """``root`` with axes, and with elements of arrays, replaced."""
        return _Replacing(self, dict(mapping), elements).expression(root)

    def index(self, dim: Dim, mapping: Mapping[Atom, Dim], elements: Elements | None) -> Dim:
        """An index expression with axes and elements replaced."""
        return _Replacing(self, dict(mapping), elements).dim(dim)


def is_defined(atom: Atom | None) -> TypeGuard[Element]:
    """Is it an element of a defined array?"""
    return isinstance(atom, Element) and atom.tensor.endswith("=")


def narrow(value: Expr) -> Expr:
    """The float32 that a float64 is; else itself."""
    if isinstance(value, Call) and value.function == "cast" and value.dtype == float64:
        return value.operands[0] if value.operands[0].dtype == float32 else value
    return value


def without_own_check(condition: Expr, *values: Expr) -> Expr:
    """``c || v != v``, where ``v`` is one of ``values``, without what is false of numbers."""
    if isinstance(condition, Call) and condition.function == "logical_or":
        for check, rest in (condition.operands, condition.operands[::-1]):
            if _compares_itself(check) and check.args[0] in values:
                return rest
    return condition


def _is_asked_of(condition: Expr, value: Expr) -> bool:
    """Is what ``is_never`` is true of about nothing but parts that ``value`` computes with?"""
    if isinstance(condition, Call) and condition.function == "logical_or":
        return all(_is_asked_of(one, value) for one in condition.operands)
    if _compares_itself(condition) and condition.args[0] is value:
        return True
    if isinstance(value, Call) and value.function in ("maximum", "minimum"):
        return any(_is_asked_of(condition, one) for one in value.operands)
    if isinstance(condition, Reduce) and isinstance(value, Reduce) and condition.axis == value.axis:
        return _is_asked_of(condition.body, value.body)
    return False


def is_never(condition: Expr) -> bool:
    """Is it false for real numbers: ``v != v``, of whatever; of any, one of these?"""
    if isinstance(condition, Reduce):
        return condition.kind == "any" and is_never(condition.body)
    if not isinstance(condition, Call):
        return False
    if condition.function == "logical_or":
        return all(map(is_never, condition.operands))
    if condition.function == "logical_and":
        return any(map(is_never, condition.operands))
    return _compares_itself(condition)


def _compares_itself(condition: Expr) -> bool:
    """Is it ``v != v``, or ``v < v``?"""
    if not isinstance(condition, Call) or condition.function not in ("ne", "lt", "gt"):
        return False
    return condition.operands[0] is condition.operands[1]


def _is_total(one: Expr) -> bool:
    """Is it a real number where its operands are?"""
    if isinstance(one, Literal):
        return math.isfinite(one.value)
    if isinstance(one, Access):
        return " " not in one.tensor  # no element of before an iteration, which may be anything
    if isinstance(one, Reduce):
        return one.kind == "sum"
    return isinstance(one, IntValue) or (isinstance(one, Call) and one.function in _TOTAL)


def facts_of(values: Values, condition: Expr, truth: bool) -> list[Dim]:
    """What a condition says of integers."""
    if not isinstance(condition, Call):
        return []
    function = condition.function
    if function == "logical_not":
        return facts_of(values, condition.operands[0], not truth)
    if function == ("logical_and" if truth else "logical_or"):
        return [fact for one in condition.operands for fact in facts_of(values, one, truth)]
    if function not in OPPOSITE or any(one.dtype.is_float for one in condition.operands):
        return []
    if not truth:
        function = OPPOSITE[function]
    left, right = (values.integer(one) for one in condition.operands)
    if function == "eq":
        return [left - right, right - left]
    if function == "ne":
        gaps = (left - right, right - left)
        return [gap - 1 for gap in gaps if values.integers.entails(gap)]
    low, high = (left, right) if function in ("lt", "le") else (right, left)
    return [high - low - (1 if function in ("lt", "gt") else 0)]


class _Replacing:
    """One replacement, with what it has made so far."""

    def __init__(self, values: Values, mapping: dict[Atom, Dim], elements: Elements | None) -> None:
        self._values = values
        self._mapping = mapping
        self._targets = free_axes(mapping.values())
        self._elements = elements
        self._done: dict[Expr, Expr] = {}
        self._dims: dict[Dim, Dim] = {}

    def expression(self, root: Expr) -> Expr:
        found = self._done.get(root)
        if found is None:
            found = self._made(root)
            self._done[root] = found
        return found

    def _made(self, root: Expr) -> Expr:
        values = self._values
        if isinstance(root, Literal):
            return values.pool.literal(root.value, root.dtype)
        if isinstance(root, IntValue):
            return self._integer(self.dim(root.value), root.dtype)
        if isinstance(root, Access):
            own = Element(root.tensor, root.indices)
            if own in self._mapping:
                return self._values.expression(self._mapping[own])
            indices = tuple(map(self.dim, root.indices))
            if self._elements is not None:
                made = self._elements(root.tensor, indices, root.dtype)
                if made is not None:
                    return made
            return values.pool.access(root.tensor, indices, root.dtype)
        if isinstance(root, Call):
            if root.function == "where":
                return self._choice(root)
            operands = [self.expression(one) for one in root.operands]
            return values.call(root.function, *operands, dtype=root.dtype)
        assert isinstance(root, Reduce)
        extent = self.dim(root.axis.extent)
        bound = root.axis in self._mapping or root.axis in self._targets
        if extent == root.axis.extent and not bound:
            return values.reduce(root.kind, root.axis, self.expression(root.body), root.order)
        axis = values.axis(root.axis.name, extent)
        inner = {**self._mapping, root.axis: Dim.of(axis)}
        body = _Replacing(values, inner, self._elements).expression(root.body)
        return values.reduce(root.kind, axis, body, root.order)

    def _choice(self, root: Call) -> Expr:
        """Each side is read where it is chosen."""
        condition = self.expression(root.operands[0])
        sides = []
        for side, truth in zip(root.operands[1:], (True, False), strict=True):
            facts = facts_of(self._values, condition, truth)
            kept = self._done, self._dims
            if facts:
                self._done, self._dims = {}, {}
            with self._values.integers.given(*facts):
                sides.append(self.expression(side))
            self._done, self._dims = kept
        return self._values.call("where", condition, *sides, dtype=root.dtype)

    def _integer(self, value: Dim, dtype: DType) -> Expr:
        return (
            self._values.expression(value)
            if dtype == int64
            else self._values.pool.integer(value, dtype)
        )

    def dim(self, dim: Dim) -> Dim:
        found = self._dims.get(dim)
        if found is None:
            found = self._dims[dim] = self._dim(dim)
        return found

    def _dim(self, dim: Dim) -> Dim:
        touched = not dim.atoms.isdisjoint(self._mapping)
        named = self._elements is not None and any(isinstance(one, Element) for one in dim.atoms)
        if not touched and not named:
            return dim
        total = Dim.of(0)
        for monomial, value in dim.terms:
            product = Dim.of(value)
            for atom, power in monomial:
                one = self._atom(atom)
                for _ in range(power):
                    product = product * one
            total = total + product
        return total

    def _atom(self, atom: Atom) -> Dim:
        if atom in self._mapping:
            return self._mapping[atom]
        if isinstance(atom, Element):
            indices = tuple(map(self.dim, atom.indices))
            element = Element(atom.tensor, indices)
            if self._elements is None:
                joined = len(indices) > 1 and is_defined(atom)
                return self._values.named(element) if joined else Dim.of(element)
            if is_defined(atom):
                return self._values.integer(self.expression(self._values.definition(atom)))
            made = self._elements(atom.tensor, indices, int64)
            return Dim.of(element) if made is None else self._values.integer(made)
        if isinstance(atom, Derived):
            left, right = self.dim(atom.left), self.dim(atom.right)
            return BUILD[atom.function](left, right)
        return Dim.of(atom)


RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge")
"""What a relation is where it does not hold."""
_TOTAL = frozenset((
    "add", "sub", "mul", "neg", "square", "abs", "maximum", "minimum", "relu", "shift", "exp",
    "tanh", "sigmoid", "cast", "where",
))  # fmt: skip
"""Some ops that are defined for all real numbers."""
