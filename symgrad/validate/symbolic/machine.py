"""A kernel runs once, for all sizes: what stands in memory after it.

In: a parsed unit, a kernel's name, its arrays.  Out: ``Machine``, with what each element of an
output is.

A loop's body runs once, for any iteration.  What it wrote is then summarised: for each array,
writes that each iteration makes at addresses of its own (maps), or an accumulator that each
iteration adds to.  The kernel is run once for each set of decisions on its conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf
from typing import Any

from pycparser import c_ast

from symgrad.ir.atoms import Element
from symgrad.ir.dim import Axis, Derived, Dim, product
from symgrad.ir.dtype import BY_NAME, DType, bool_, float32, float64, int64
from symgrad.ir.expr import (
    Access,
    Call,
    Expr,
    IntValue,
    Literal,
    Reduce,
    free_axes,
    postorder,
    rebuild,
)
from symgrad.validate.definitions import Defined
from symgrad.validate.dialect import FLOORED
from symgrad.validate.rounding import nearest, stored
from symgrad.validate.source import (
    BYTES,
    FLOATS,
    INTEGERS,
    Directive,
    Node,
    Unit,
    math_function,
    walk,
)
from symgrad.validate.symbolic import orders
from symgrad.validate.symbolic.constants import Constants
from symgrad.validate.symbolic.defined import check_defined
from symgrad.validate.symbolic.integers import (
    TRIPS,
    Integers,
    coefficient,
    greatest,
    least,
    put,
    quotient,
    uppers,
)
from symgrad.validate.symbolic.memory import (
    OUTSIDE,
    Array,
    Frame,
    MaybeWritten,
    NotShown,
    Write,
    before,
    injective,
    is_before,
    lies_within,
    match,
    open_end,
    owner_of,
    renamed,
)
from symgrad.validate.symbolic.normal import Reals
from symgrad.validate.symbolic.overflow import Reach
from symgrad.validate.symbolic.values import (
    Values,
    facts_of,
    is_defined,
    is_never,
    without_own_check,
)

DTYPES = {"float": float32, "double": float64, "int": int64}


@dataclass(frozen=True)
class Pointer:
    """The address of an element of an array."""

    array: str
    offset: Dim


@dataclass(frozen=True)
class Typed:
    """A value with its type in C.  Integers are ``Dim``; truth values are expressions."""

    ctype: str
    value: Any


_ALIGNED = 8
"""Bytes that the longest number begins at a multiple of."""
_THROUGH = "through "
WORKSPACE = object()
"""Where the next piece of the workspace begins."""


class Returned(Exception):
    """A function came to its ``return``."""

    def __init__(self, value: Typed | None) -> None:
        super().__init__()
        self.value = value


@dataclass
class Scope:
    """Names of a block."""

    names: dict[str, Typed] = field(default_factory=dict)


class Machine:
    """One run of a kernel, with some decisions on its conditions."""

    def __init__(
        self, unit: Unit, integers: Integers, values: Values, decisions: Sequence[bool],
        defined: Mapping[str, Defined], reach: Reach,
    ) -> None:  # fmt: skip
        self.unit, self.integers, self.values = unit, integers, values
        self._reach = reach
        self.constants = Constants(values)
        self._defined = defined
        self.taken: set[str] = set()
        self._numbers: dict[tuple[str, tuple[Dim, ...]], Typed] = {}
        self.bytes_are_truths = True
        self.arrays: dict[str, Array] = {}
        self.decisions = list(decisions)
        self.open: list[list[bool]] = []
        self.conditions: list[tuple[Expr, bool]] = []
        self.checked: list[Expr] = []
        self._taken = 0
        self._frames: list[Frame] = [Frame()]
        self._scopes: list[Scope] = [Scope()]
        self._line = 0
        integers.bound(TRIPS, _enough)
        self.carved: list[Dim] = []

    # -- running

    def run(self, name: str, arguments: Mapping[str, Typed]) -> Typed | None:
        """Execute a function of the unit; what it returns."""
        try:
            result = self._body(name, arguments)
        except NotShown as problem:
            problem.line = problem.line or self._line
            raise
        return result

    def assume_all(self) -> None:
        """From here on, all that was decided holds."""
        for condition, truth in self.conditions:
            self._assume(condition, truth)

    def _body(self, name: str, arguments: Mapping[str, Typed]) -> Typed | None:
        outer, self._scopes = self._scopes, [Scope(dict(arguments))]
        try:
            self._block(self.unit.functions[name].body)
        except Returned as done:
            return done.value
        finally:
            self._scopes = outer
        return None

    def element(self, array: str, address: Dim) -> Expr:
        """What stands at an address at the end."""
        return self._fetch(array, address, 0)

    # -- statements

    def _block(self, block: Node) -> None:
        self._scopes.append(Scope())
        items = (block.block_items or []) if isinstance(block, c_ast.Compound) else [block]
        directive: Directive | None = None
        for item in items:
            if isinstance(item, c_ast.Pragma):
                directive = self.unit.directive(item)
                if directive.condition is not None:
                    self._numbers_of(directive.condition)
                continue
            self._statement(item, directive)
            directive = None
        self._scopes.pop()

    def _statement(self, node: Node, directive: Directive | None) -> None:
        self._line = self.unit.line(node) or self._line
        if isinstance(node, c_ast.Compound):
            self._block(node)
        elif isinstance(node, c_ast.Decl):
            self._declare(node)
        elif isinstance(node, c_ast.Assignment):
            self._assign(node)
        elif isinstance(node, c_ast.For):
            self._loop(node, directive)
        elif isinstance(node, c_ast.If):
            self._if(node)
        elif isinstance(node, c_ast.Return):
            raise Returned(self._evaluate(node.expr) if node.expr is not None else None)
        elif isinstance(node, c_ast.FuncCall):
            self._evaluate(node)
        elif isinstance(node, c_ast.Cast) and _is_void(node):
            pass
        elif isinstance(node, c_ast.UnaryOp) and node.op in ("p++", "++", "p--", "--"):
            raise NotShown(f"{node.op} outside of a loop's head")
        elif not isinstance(node, c_ast.EmptyStatement):
            raise NotShown(f"a statement of kind {type(node).__name__}")

    def _declare(self, node: c_ast.Decl) -> None:
        kind = node.type
        if isinstance(kind, c_ast.ArrayDecl):
            count = self._integer(kind.dim)
            self._local(node.name, _base(kind.type), count)
            if node.init is not None:
                raise NotShown(f"{node.name} is an array with initial values")
        elif isinstance(kind, c_ast.PtrDecl):
            self._bind(node.name, self._pointer(node))
        elif "const" in (kind.quals or []):
            made = self._evaluate(node.init)
            self._bind(node.name, self._converted(made, _base(kind)))
        elif _base(kind) == "char":
            raise NotShown(f"{node.name} is a char")
        else:
            self._local(node.name, _base(kind), Dim.of(1), scalar=True)
            if node.init is not None:
                value = self._converted(self._evaluate(node.init), _base(kind))
                self._store(self._look(node.name).value, value)

    def add(self, array: Array) -> None:
        """An array that pointers lead to."""
        self.arrays[array.name] = array
        if array.ctype in ("int8_t", "int16_t", "int32_t", "uint8_t"):
            self.integers.limit(array.name, *INTEGERS[array.ctype])

    def _local(self, name: str, ctype: str, count: Dim, *, scalar: bool = False) -> None:
        array = f"{name}'{len(self.arrays)}"
        self.add(Array(array, ctype, count))
        self._frames[-1].local.add(array)
        self._bind(
            name, Typed(f"{ctype} cell" if scalar else f"{ctype} *", Pointer(array, Dim.of(0)))
        )

    def _pointer(self, node: c_ast.Decl) -> Typed:
        ctype = _base(node.type.type)
        if isinstance(node.init, c_ast.FuncCall) and node.init.name.name == "carve":
            return self._piece(node.name, ctype, node.init.args.exprs)
        made = self._evaluate(node.init)
        if made.value is WORKSPACE:
            return made
        if not isinstance(made.value, Pointer):
            raise NotShown(f"{node.name} is no pointer into an array")
        own = self.arrays[made.value.array].ctype
        if own != ctype:
            raise NotShown(f"{node.name} points to {ctype}, into an array of {own}")
        return Typed(f"{ctype} *", made.value)

    def _piece(self, name: str, ctype: str, arguments: Sequence[Node]) -> Typed:
        """The next piece of the workspace: an array of its own."""
        source = arguments[0]
        if not isinstance(source, c_ast.UnaryOp) or source.op != "&":
            raise NotShown("carve takes the address of the pointer into the workspace")
        if self._name(source.expr.name).value is not WORKSPACE:
            raise NotShown(f"{source.expr.name} does not point into the workspace")
        count = self.integers.settled(self._integer(arguments[1]))
        if not self.integers.entails(count):
            raise NotShown(f"{name} takes {count} bytes, which was not shown to be at least 0")
        rounded = self.values.integer(self._macro("ROUND_UP", [arguments[1]]).value)
        if not self.integers.entails(rounded - count) or rounded.exact_quotient(_ALIGNED) is None:
            raise NotShown(f"the piece behind {name} was not shown to begin behind it, aligned")
        self.carved.append(rounded)
        array = f"{name}'{len(self.arrays)}"
        exact = count.exact_quotient(BYTES[ctype])
        if exact is None:
            raise NotShown(f"{count} bytes are not shown to hold whole numbers of {ctype}")
        self.add(Array(array, ctype, exact))
        self._frames[0].local.add(array)
        return Typed(f"{ctype} *", Pointer(array, Dim.of(0)))

    def _bind(self, name: str, value: Typed) -> None:
        self._scopes[-1].names[name] = value

    def _look(self, name: str) -> Typed:
        for scope in reversed(self._scopes):
            if name in scope.names:
                return scope.names[name]
        raise NotShown(f"{name} is not declared")

    def _assign(self, node: c_ast.Assignment) -> None:
        target = self._place(node.lvalue)
        ctype = self.arrays[target.array].ctype
        value = self._evaluate(node.rvalue)
        if node.op in ("|=", "&=") and _is_truth(value):
            old = Typed("int", self._flag(self._read(target.array, target.offset)))
            value = self._binary(node.op[0], old, value)
        elif node.op != "=":
            value = self._binary(node.op[:-1], self._load(target), value)
        self._store(target, self._converted(value, ctype))

    def _flag(self, value: Expr) -> Expr:
        """A number that only ever holds a truth value, as one."""
        if value.dtype == bool_:
            return value
        if isinstance(value, Access):
            return self.values.pool.access(value.tensor, value.indices, bool_)
        return self._truth(Typed("int", value))

    def _place(self, node: Node) -> Pointer:
        if isinstance(node, c_ast.ID):
            found = self._look(node.name)
            if found.ctype.endswith("cell"):
                return found.value  # type: ignore[no-any-return]
        if isinstance(node, c_ast.ArrayRef):
            base = self._evaluate(node.name).value
            if isinstance(base, Pointer):
                return Pointer(base.array, base.offset + self._integer(node.subscript))
        if isinstance(node, c_ast.UnaryOp) and node.op == "*":
            base = self._evaluate(node.expr).value
            if isinstance(base, Pointer):
                return base
        raise NotShown("what is assigned to is no element of an array")

    # -- conditions

    def _if(self, node: c_ast.If) -> None:
        condition = self._truth(self._evaluate(node.cond))
        known = len(self.conditions)
        decided = self._decided(condition)
        if decided is None:
            self._guarded(node, condition)
            return
        if len(self._frames) == 1:
            parts = self.conditions[known:]
            for one, truth in dict.fromkeys([(condition, decided), *parts]):
                self._assume(one, truth)
        with self._assumed(condition, decided):
            if decided:
                self._block(node.iftrue)
            elif node.iffalse is not None:
                self._block(node.iffalse)

    def _decided(self, condition: Expr) -> bool | None:
        """Known, or chosen for this run; None where each iteration decides it."""
        if isinstance(condition, Literal):
            return bool(condition.value)
        if condition.free or any(
            isinstance(one, Access) and is_before(one.tensor) for one in postorder([condition])
        ):
            return None
        return self._chosen(condition)

    def _chosen(self, condition: Expr) -> bool:
        if isinstance(condition, Literal):
            return bool(condition.value)
        if isinstance(condition, Call) and condition.function in ("logical_or", "logical_and"):
            enough = condition.function == "logical_or"
            return any(self._chosen(one) == enough for one in condition.operands) == enough
        if is_never(condition):
            self.checked.append(condition)
            return False
        for known, truth in self.conditions:
            if known is condition:
                return truth
        if self._taken < len(self.decisions):
            choice = self.decisions[self._taken]
        else:
            choice = True
            self.open.append([*self.decisions[: self._taken], False])
            self.decisions.append(True)
        self._taken += 1
        self.conditions.append((condition, choice))
        return choice

    @contextmanager
    def _assumed(self, condition: Expr, truth: bool) -> Iterator[None]:
        with self.integers.given(*facts_of(self.values, condition, truth)):
            yield

    def _assume(self, condition: Expr, truth: bool) -> None:
        self.integers.add(*facts_of(self.values, condition, truth))
        self._learn(condition, truth)

    def _learn(self, condition: Expr, truth: bool) -> None:
        """Of a check of all elements: what holds of each."""
        if truth:
            return
        for part in alternatives(condition):
            if isinstance(part, Reduce) and part.kind == "any":
                for one in alternatives(part.body):
                    self._learn_each(part.axis, one)

    def _learn_each(self, axis: Axis, refused: Expr) -> None:
        if not (isinstance(refused, Call) and refused.function in ("lt", "ge", "gt", "le")):
            return
        for fact in facts_of(self.values, refused, False):
            for atom in fact.atoms:
                if isinstance(atom, Element) and atom.indices == (Dim.of(axis),):
                    self._bound_element(atom.tensor, axis, fact)

    def _bound_element(self, tensor: str, axis: Axis, fact: Dim) -> None:
        def facts(indices: tuple[Dim, ...]) -> Iterable[Dim]:
            (index,) = indices
            if self.integers.within(index, axis.extent):
                yield put(fact, {axis: index})

        self.integers.bound(tensor, facts)

    def _guarded(self, node: c_ast.If, condition: Expr) -> None:
        """Each iteration decides: what a branch writes is chosen, element by element."""
        for branch, truth in ((node.iftrue, True), (node.iffalse, False)):
            if branch is None:
                continue
            with self._assumed(condition, truth), self._frame(self._targets(branch)) as frame:
                self._block(branch)
                number = len(self._frames) - 1
            with self._assumed(condition, truth):
                writes = self._settled(frame, number)
                there = [self._read(one.array, one.address) for one in writes]
            for write, held in zip(writes, there, strict=True):
                assert write.value is not None
                old = self._elsewhere(write, held)
                part = None
                if not write.value.dtype.is_integer:
                    part = _without(self.values, write.value, held, "add")
                zero = self.values.pool.literal(0, write.value.dtype)
                value, other = (write.value, old) if part is None else (part, zero)
                pick = (value, other) if truth else (other, value)
                value = self.values.call("where", condition, *pick, dtype=value.dtype)
                if part is not None:
                    value = self.values.call("add", old, value, dtype=value.dtype)
                self._put(replace(write, value=value))

    def _elsewhere(self, write: Write, there: Expr) -> Expr:
        """What stands where a branch writes, also where it does not: what is read ``there``,
        where the address is one under its condition alone.
        """  # noqa: D205
        try:
            return self._read(write.array, write.address)
        except NotShown:
            return there

    def _settled(self, frame: Frame, number: int) -> list[Write]:
        """A frame's writes, with what was read from before them read where they go."""
        found = []
        for write in frame.writes:
            if write.array not in frame.local:

                def resolve(tensor: str, indices: tuple[Dim, ...], dtype: DType) -> Expr | None:
                    owner, array = owner_of(tensor)
                    return self._read(array, indices[0]) if owner == number else None

                if write.value is None:
                    raise NotShown("a loop's scratch under a condition")
                value = self.values.replaced(write.value, {}, resolve)
                found.append(replace(write, value=value))
        return found

    @contextmanager
    def _frame(self, may_write: frozenset[str]) -> Iterator[Frame]:
        frame = Frame(may_write=may_write)
        self._frames.append(frame)
        try:
            yield frame
        finally:
            self._frames.pop()

    def _targets(self, body: Node) -> frozenset[str]:
        """The arrays that a statement can write, by the names that lead to them."""
        names: set[str] = set()
        sources: dict[str, set[str]] = {}
        for node in _kind(body, c_ast.Assignment):
            place = node.lvalue
            while isinstance(place, c_ast.ArrayRef):
                place = place.name
            names |= _names(place)
        for node in _kind(body, c_ast.FuncCall):
            names |= _names(node.args) if node.args is not None else set()
        for node in _kind(body, c_ast.Decl):
            if isinstance(node.type, c_ast.PtrDecl) and node.init is not None:
                sources.setdefault(node.name, set()).update(_names(node.init))
        todo = list(names)
        while todo:
            for name in sources.get(todo.pop(), set()) - names:
                names.add(name)
                todo.append(name)
        found = set()
        for scope in self._scopes:
            for name, made in scope.names.items():
                if name in names and isinstance(made.value, Pointer):
                    found.add(made.value.array)
        return frozenset(found)

    # -- memory

    def _load(self, place: Pointer) -> Typed:
        array = self.arrays[place.array]
        value = self._read(place.array, place.offset)
        if array.ctype in INTEGERS and value.dtype != bool_:
            return Typed(array.ctype, self.values.integer(value))
        return Typed(array.ctype, value)

    def _read(self, name: str, address: Dim) -> Expr:
        array = self.arrays[name]
        if array.read_only:
            self._check(name, address, "read")
            return self.values.pool.access(name, (address,), self._dtype(array))
        return self._fetch(name, address, len(self._frames) - 1)

    def _fetch(self, name: str, address: Dim, level: int) -> Expr:
        frame = self._frames[level]
        for write in reversed(frame.writes):
            if write.array == name:
                found = match(self.integers, write, address)
                if found is None:
                    raise self._maybe(write, address)
                if found is not OUTSIDE:
                    assert isinstance(found, dict)
                    if write.value is None:
                        raise NotShown(
                            f"{_shown(name)}[{address}] is read, and holds what the last iteration "
                            f"of line {write.line} left there"
                        )
                    return self.values.substitute(write.value, found)
        if level == 0 or name in frame.local:
            if self._is_nowhere(address.axes):
                return self.values.pool.literal(0, self._dtype(self.arrays[name]))
            raise NotShown(f"{_shown(name)}[{address}] is read before it is written")
        if name not in frame.may_write:
            return self._fetch(name, address, level - 1)
        self._check(name, address, "read")
        tensor = before(level, name)
        return self.values.pool.access(tensor, (address,), self._dtype(self.arrays[name]))

    def _maybe(self, write: Write, address: Dim) -> NotShown:
        reason = (
            f"{_shown(write.array)}[{address}] is read, and line {write.line} may have written it"
            " or not"
        )
        with self.integers.given(*(f for a in address.axes for f in self.integers.range_of(a))):
            end = open_end(self.integers, write, address)
        return NotShown(reason) if end is None else MaybeWritten(reason, end)

    def _is_nowhere(self, axes: Iterable[Axis]) -> bool:
        """Is one of these axes empty, so that nothing is read or written?"""
        ranges = [fact for axis in axes for fact in self.integers.range_of(axis)]
        with self.integers.given(*ranges):
            return bool(ranges) and self.integers.contradictory

    def _dtype(self, array: Array) -> DType:
        truths = array.ctype == "uint8_t" and self.bytes_are_truths
        return bool_ if truths else _dtype(array.ctype)

    def _store(self, place: Pointer, value: Typed) -> None:
        array = self.arrays[place.array]
        if array.read_only:
            raise NotShown(f"{_shown(place.array)} is an input, and is written")
        self._check(place.array, place.offset, "written")
        self._put(
            Write(place.array, (), place.offset, self.values.expression(value.value), self._line)
        )

    def _put(self, write: Write) -> None:
        if self._is_nowhere(write.axes):
            return
        frame = self._frames[-1]
        frame.writes = [
            old for old in frame.writes if old.array != write.array or not self._covers(write, old)
        ]
        frame.writes.append(write)

    def _covers(self, write: Write, old: Write) -> bool:
        found = match(self.integers, write, old.address)
        return found is not None and found is not OUTSIDE

    def _check(self, name: str, address: Dim, what: str) -> None:
        """The address lies in the array."""
        ranges = (fact for axis in address.axes for fact in self.integers.range_of(axis))
        with self.integers.given(*ranges):
            if not self._lies_in(self.arrays[name], address):
                raise NotShown(
                    f"{_shown(name)}[{address}] is {what}, which was not shown to lie in it"
                )

    def _lies_in(self, array: Array, address: Dim) -> bool:
        if array.count is not None and lies_within(self.integers, address, array.count):
            return True
        return any(self._is_element(array, list(ways), address) for ways in array.walks())

    def _is_element(self, array: Array, walk: Sequence[tuple[Dim, Dim]], address: Dim) -> bool:
        """Does an address lie where axes of these extents and strides lead to?"""
        axes = [self.values.axis("s", extent) for extent, _ in walk]
        steps = (step * Dim.of(axis) for (_, step), axis in zip(walk, axes, strict=True))
        every = Write(array.name, tuple(axes), sum(steps, Dim.of(0)), self.values.truth(True), 0)
        return isinstance(match(self.integers, every, address), dict)

    # -- expressions

    def _integer(self, node: Node) -> Dim:
        made = self._evaluate(node)
        if made.ctype in FLOATS or isinstance(made.value, Pointer):
            raise NotShown("an integer was expected")
        return self.values.integer(made.value)

    def _numbers_of(self, condition: Node) -> None:
        """The integers that a condition compares are computed."""
        compared = isinstance(condition, c_ast.BinaryOp) and condition.op in _COMPARISONS
        for one in (condition.left, condition.right) if compared else (condition,):
            self._integer(one)

    def _truth(self, made: Typed) -> Expr:
        if isinstance(made.value, Expr) and made.value.dtype == bool_:
            return made.value
        if made.ctype in FLOATS:
            zero = self.values.pool.literal(0.0, _dtype(made.ctype))
            return self.values.call("ne", made.value, zero, dtype=bool_)
        value = self.values.expression(made.value)
        return self.values.call("ne", value, self.values.pool.integer(0), dtype=bool_)

    def _evaluate(self, node: Node) -> Typed:
        if isinstance(node, c_ast.Constant):
            return self._constant(node)
        if isinstance(node, c_ast.ID):
            return self._name(node.name)
        if isinstance(node, c_ast.ArrayRef):
            return self._load(self._place(node))
        if isinstance(node, c_ast.BinaryOp):
            return self._binary(node.op, self._evaluate(node.left), self._evaluate(node.right))
        if isinstance(node, c_ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, c_ast.Cast):
            return self._cast(node)
        if isinstance(node, c_ast.TernaryOp):
            return self._choice(node)
        if isinstance(node, c_ast.FuncCall):
            return self._call(node)
        raise NotShown(f"an expression of kind {type(node).__name__}")

    def _constant(self, node: c_ast.Constant) -> Typed:
        if "int" in node.type or node.type == "char":
            return Typed("int", Dim.of(int(node.value.rstrip("uUlL"), 0)))
        ctype = "float" if node.value[-1] in "fF" else "double"
        return Typed(ctype, self._number(stored(node.value), ctype))

    def _number(self, value: Fraction | float, ctype: str) -> Expr:
        return self.values.pool.literal(nearest(value, ctype), _dtype(ctype))

    def _name(self, name: str) -> Typed:
        for scope in reversed(self._scopes):
            if name in scope.names:
                found = scope.names[name]
                return self._load(found.value) if found.ctype.endswith("cell") else found
        if name in self.unit.constants:
            constant = self.unit.constants[name]
            if not constant.open:
                return Typed("int", Dim.of(constant.value))
            return Typed("int", Dim.of(Element(f"#{name}", ())))
        if name in self.unit.enumerators:
            return Typed("int", Dim.of(self.unit.enumerators[name]))
        if name in ("INFINITY", "NAN"):
            return Typed("float", self._number(float(name[:3].lower()), "float"))
        if name in _INTEGER_MACROS:
            return Typed("int64_t", Dim.of(_INTEGER_MACROS[name]))
        raise NotShown(f"{name} is not declared")

    def _unary(self, node: c_ast.UnaryOp) -> Typed:
        if node.op == "&":
            place = self._place(node.expr)
            return Typed(f"{self.arrays[place.array].ctype} *", place)
        made = self._evaluate(node.expr)
        if node.op == "-":
            if made.ctype in FLOATS:
                if isinstance(made.value, Literal):
                    return Typed(made.ctype, self._number(-made.value.value, made.ctype))
                return Typed(
                    made.ctype, self.values.call("neg", made.value, dtype=made.value.dtype)
                )
            less = self._computed(-self.values.integer(made.value))
            return Typed(_promoted(made.ctype), less)
        if node.op == "!":
            return Typed("int", self.values.call("logical_not", self._truth(made), dtype=bool_))
        if node.op == "*" and isinstance(made.value, Pointer):
            return self._load(made.value)
        if node.op == "+":
            return made
        raise NotShown(f"the operator {node.op}")

    def _binary(self, operator: str, left: Typed, right: Typed) -> Typed:
        if isinstance(left.value, Pointer) or isinstance(right.value, Pointer):
            return self._moved(operator, left, right)
        if operator in ("||", "&&", "|", "&"):
            if operator in "|&" and not all(_is_truth(x) or _is_flag(x) for x in (left, right)):
                raise NotShown(f"{operator} of numbers")
            name = "logical_or" if "|" in operator else "logical_and"
            made = self.values.call(name, self._truth(left), self._truth(right), dtype=bool_)
            return Typed("int", made)
        floating = left.ctype in FLOATS or right.ctype in FLOATS
        ctype = _common(left.ctype, right.ctype)
        if operator in _COMPARISONS:
            one, other = self._converted(left, ctype).value, self._converted(right, ctype).value
            sides = self.values.expression(one), self.values.expression(other)
            tell = self._rounding if floating else self.values.call
            return Typed("int", tell(_COMPARISONS[operator], *sides, dtype=bool_))
        if operator not in _ARITHMETIC:
            raise NotShown(f"the operator {operator}")
        if floating:
            one, other = self._converted(left, ctype).value, self._converted(right, ctype).value
            name = _ARITHMETIC[operator]
            return Typed(ctype, self._rounding(name, one, other, dtype=_dtype(ctype)))
        return Typed(
            ctype,
            self._whole(
                operator, self.values.integer(left.value), self.values.integer(right.value)
            ),
        )

    def _rounding(self, function: str, *operands: Expr, dtype: DType) -> Expr:
        """An operation on floats."""
        self.constants.computed(self.values.pool.call(function, *operands, dtype=dtype), self._line)
        return self.values.call(function, *operands, dtype=dtype)

    def _whole(self, operator: str, left: Dim, right: Dim) -> Dim:
        if operator == "+":
            return self._computed(left + right)
        if operator == "-":
            return self._computed(left - right)
        if operator == "*":
            return self._computed(left * right)
        if not self.integers.entails(right - 1):
            raise NotShown(f"{right} is divided by, and was not shown to be at least 1")
        if not self.integers.entails(left):
            raise NotShown(f"{left} is divided, and was not shown to be at least 0")
        whole = self.integers.settled(quotient(left, right))
        return whole if operator == "/" else left - right * whole

    def _computed(self, value: Dim) -> Dim:
        """What the C computes in a signed type, which has to hold it."""
        self._reach.computed(value, self._line)
        return value

    def _moved(self, operator: str, left: Typed, right: Typed) -> Typed:
        if operator == "+" and isinstance(right.value, Pointer):
            left, right = right, left
        if not isinstance(left.value, Pointer) or operator not in ("+", "-"):
            raise NotShown(f"{operator} of pointers")
        if isinstance(right.value, Pointer):
            raise NotShown("two pointers")
        step = self.values.integer(right.value)
        step = -step if operator == "-" else step
        offset = left.value.offset + step
        self._computed(offset * BYTES[self.arrays[left.value.array].ctype])
        return Typed(left.ctype, Pointer(left.value.array, offset))

    def _cast(self, node: c_ast.Cast) -> Typed:
        made = self._evaluate(node.expr)
        if isinstance(node.to_type.type, c_ast.PtrDecl):
            return made
        ctype = _base(node.to_type.type)
        if ctype == "int" and made.ctype in INTEGERS and not _is_truth(made):
            value = self.values.integer(made.value)
            low, high = INTEGERS[ctype]
            if not (self.integers.entails(value - low) and self.integers.entails(high - value)):
                raise NotShown(f"{value} is cast to {ctype}, and was not shown to fit")
        return self._converted(made, ctype, explicit=True)

    def _converted(self, made: Typed, ctype: str, *, explicit: bool = False) -> Typed:
        """As C converts it."""
        if made.ctype == ctype or isinstance(made.value, Pointer):
            return Typed(ctype, made.value)
        if ctype in FLOATS:
            return Typed(ctype, self._as_real(made, ctype))
        if made.ctype in FLOATS:
            if not explicit or ctype != "int64_t":
                raise NotShown(f"a {made.ctype} becomes {ctype}")
            turned = self._rounding("cast", made.value, dtype=int64)
            if not isinstance(made.value, Literal):
                self._reach.converted(made.value, self._line)
            return Typed(ctype, turned)
        if ctype == "uint8_t" and self.bytes_are_truths:
            return Typed(ctype, self._truth(made))
        if ctype in ("int", "int64_t"):
            truth = _is_truth(made)
            return Typed(ctype, made.value if truth else self.values.integer(made.value))
        return Typed(ctype, self._wrapped(self.values.integer(made.value), ctype))

    def _as_real(self, made: Typed, ctype: str) -> Expr:
        """A float; it is a cast where a number is rounded to it."""
        value = self.values.expression(made.value)
        constant: Fraction | float | None = None
        if isinstance(value, Literal):
            constant = float(value.value)
        elif isinstance(made.value, Dim) and made.value.constant is not None:
            constant = Fraction(made.value.constant)
        if constant is not None:
            return self._number(constant, ctype)
        if made.ctype in FLOATS and (ctype, value.dtype) != ("float", float64):
            return value
        return self._rounding("cast", value, dtype=_dtype(ctype))

    def _fits(self, number: Dim, low: int, high: int) -> bool:
        """Does it lie in a range, for all that was said of what it is made of?"""
        if self.integers.entails(number - low) and self.integers.entails(high - number):
            return True
        found = extreme(number)
        if found is not None:
            return all(self._fits(side, low, high) for side in found[1:])
        atom = number.atom
        if not is_defined(atom):
            return False
        made = self.values.definition(atom)
        if isinstance(made, Reduce) and made.kind in ("max", "min"):
            with self.integers.given(*self.integers.range_of(made.axis)):
                return self._fits(self.values.integer(made.body), low, high)
        if not isinstance(made, Call) or made.function not in ("where", "maximum", "minimum"):
            return False
        facts: Sequence[Sequence[Dim]] = ([], [])
        if made.function == "where":
            facts = [facts_of(self.values, made.operands[0], truth) for truth in (True, False)]
        for fact, side in zip(facts, made.operands[-2:], strict=True):
            with self.integers.given(*fact):
                if not self._fits(self.values.integer(side), low, high):
                    return False
        return True

    def _wrapped(self, number: Dim, ctype: str) -> Dim:
        """A number in a narrower type, reduced to its range where it may leave it."""
        if self._fits(number, *INTEGERS[ctype]):
            return number
        short = {"int8_t": "i8", "int16_t": "i16", "int32_t": "i32", "uint8_t": "u8"}.get(ctype)
        if short is None:
            raise NotShown(f"{number} becomes {ctype}, and was not shown to fit")
        dtype = next(one for one in BY_NAME.values() if one.short == short)
        whole = self.values.expression(number)
        return self.values.integer(self.values.call(f"wrap_{short}", whole, dtype=dtype))

    def _choice(self, node: c_ast.TernaryOp) -> Typed:
        condition = self._truth(self._evaluate(node.cond))
        if isinstance(condition, Literal):
            return self._evaluate(node.iftrue if condition.value else node.iffalse)
        with self._assumed(condition, True):
            one = self._evaluate(node.iftrue)
        with self._assumed(condition, False):
            other = self._evaluate(node.iffalse)
        ctype = _common(one.ctype, other.ctype)
        one, other = self._converted(one, ctype), self._converted(other, ctype)
        if ctype not in FLOATS:
            if _is_truth(one) and _is_truth(other):
                made = self.values.call("where", condition, one.value, other.value, dtype=bool_)
                return Typed(ctype, made)
            left, right = self.values.integer(one.value), self.values.integer(other.value)
            smallest = self._minimum(condition, left, right)
            if smallest is not None:
                return Typed(ctype, smallest)
            chosen = self.values.call(
                "where", condition, self.values.expression(left), self.values.expression(right),
                dtype=int64,
            )  # fmt: skip
            return Typed(ctype, self.values.integer(chosen))
        made = self.values.call("where", condition, one.value, other.value, dtype=_dtype(ctype))
        return Typed(ctype, made)

    def _minimum(self, condition: Expr, left: Dim, right: Dim) -> Dim | None:
        """``a < b ? a : b``, which indices may hold."""
        if not isinstance(condition, Call) or condition.function not in ("lt", "gt"):
            return None
        if [self.values.integer(one) for one in condition.operands] != [left, right]:
            return None
        return (least if condition.function == "lt" else greatest)(left, right)

    # -- calls

    def _call(self, node: c_ast.FuncCall) -> Typed:
        name = node.name.name
        arguments = node.args.exprs if node.args else []
        if name in ("INT64_C",):
            return Typed("int64_t", self._integer(arguments[0]))
        if name in self.unit.macros:
            return self._macro(name, arguments)
        if name in self.unit.functions:
            return self._inlined(name, arguments)
        if name.startswith("cblas_") and name in self.unit.externals:
            return self._product(arguments)
        if name in self._defined:
            return self._defined_call(name, arguments)
        if name in ("isnan", "isinf"):
            return Typed("int", self._no_number(name, self._evaluate(arguments[0]).value))
        known = math_function(name)
        if known is not None:
            ctype, number = known
            values = [self._converted(self._evaluate(one), ctype).value for one in arguments]
            if len(values) != number:
                raise NotShown(f"{name} takes {number}")
            plain = name.removesuffix("f") if ctype == "float" and name not in ("erf",) else name
            return Typed(
                ctype,
                self._rounding(_OF_MATH.get(plain, plain), *values, dtype=_dtype(ctype)),
            )
        raise NotShown(f"{name} is called, which is not known")

    def _no_number(self, name: str, value: Expr) -> Expr:
        """``value != value``; of an infinity ``value - value`` is NaN."""
        if name == "isinf":
            value = self.values.call("sub", value, value, dtype=value.dtype)
        return self.values.call("ne", value, value, dtype=bool_)

    def _defined_call(self, name: str, arguments: Sequence[Node]) -> Typed:
        one = self._defined[name]
        if not one.proved:
            self.taken.add(name)
        values = [self._converted(self._evaluate(each), one.ctype) for each in arguments]
        operands = [self.values.expression(each.value) for each in values]
        return Typed(one.ctype, self._rounding(one.op, *operands, dtype=_dtype(one.ctype)))

    def _macro(self, name: str, arguments: Sequence[Node]) -> Typed:
        macro = self.unit.macros[name]
        if macro.kind in ("min", "max"):
            left, right = (self._evaluate(one) for one in arguments)
            if left.ctype not in FLOATS and right.ctype not in FLOATS:
                choose = least if macro.kind == "min" else greatest
                ctype = _common(left.ctype, right.ctype)
                low, high = self.values.integer(left.value), self.values.integer(right.value)
                for one, other in ((low, high), (high, low)):
                    if self.integers.entails(other - one):
                        return Typed(ctype, one if macro.kind == "min" else other)
                return Typed(ctype, choose(low, high))
        values = [self._evaluate(one) for one in arguments]
        self._scopes.append(Scope(dict(zip(macro.parameters, values, strict=True))))
        try:
            return self._evaluate(macro.body)
        finally:
            self._scopes.pop()

    def _inlined(self, name: str, arguments: Sequence[Node]) -> Typed:
        signature = self.unit.signatures[name]
        given = {}
        for (parameter, kind), argument in zip(signature.parameters, arguments, strict=True):
            made = self._evaluate(argument)
            given[parameter] = made if kind.pointers else self._converted(made, kind.base)
        if name in FLOORED:
            return self._floored(name, given)
        if self._is_pure(name):
            return self._integer_function(name, given)
        result = self._body(name, given)
        return result or Typed("void", None)

    def _floored(self, name: str, given: Mapping[str, Typed]) -> Typed:
        value, step = (self.values.integer(given[one].value) for one in "xy")
        if not self.integers.entails(step - 1):
            raise NotShown(f"{step} is divided by, and was not shown to be at least 1")
        whole = self.integers.settled(quotient(value, step))
        return Typed("int64_t", whole if name == "floor_divide" else value - step * whole)

    def _is_pure(self, name: str) -> bool:
        signature = self.unit.signatures[name]
        return signature.result.base == "int64_t" and not any(
            kind.pointers for _, kind in signature.parameters
        )

    def _integer_function(self, name: str, given: Mapping[str, Typed]) -> Typed:
        """A function of integers alone: a polynomial, or a number of its own.

        Of such a number it is known whether it is at least 1.
        """
        body = self.unit.functions[name].body.block_items
        if len(body) != 1 or not isinstance(body[0], c_ast.Return):
            raise NotShown(f"{name} is more than one expression")
        call = name, tuple(self.values.integer(one.value) for one in given.values())
        if call not in self._numbers:
            with self.integers.anywhere():
                self._numbers[call] = self._number_of(name, body[0].expr, given)
        return self._numbers[call]

    def _number_of(self, name: str, body: Node, given: Mapping[str, Typed]) -> Typed:
        outer, self._scopes = self._scopes, [Scope(dict(given))]
        try:
            results = list(self._results(body))
        finally:
            self._scopes = outer
        if len(results) == 1 and not any(isinstance(one, Derived) for one in results[0][1].atoms):
            return Typed("int64_t", results[0][1])
        tensor = f"#{name}"
        arguments = tuple(self.values.integer(one.value) for one in given.values())
        element = Dim.of(Element(tensor, arguments))
        bounds = []
        for bound in _likely(arguments):
            if all(self._holds(facts, bound(value)) for facts, value in results):
                bounds.append(bound(element))
        self.integers.bound(tensor, _exactly(arguments, bounds))
        self._reach.named(Element(tensor, arguments), (value for _, value in results))
        return Typed("int64_t", element)

    def _holds(self, facts: Sequence[Dim], goal: Dim) -> bool:
        with self.integers.given(*facts):
            return self.integers.entails(goal)

    def _results(self, node: Node) -> Iterator[tuple[list[Dim], Dim]]:
        """The values of an expression, with what holds where it has them."""
        if not isinstance(node, c_ast.TernaryOp):
            yield [], self._integer(node)
            return
        condition = self._truth(self._evaluate(node.cond))
        if isinstance(condition, Literal):
            yield from self._results(node.iftrue if condition.value else node.iffalse)
            return
        for branch, truth in ((node.iftrue, True), (node.iffalse, False)):
            facts = facts_of(self.values, condition, truth)
            with self.integers.given(*facts):
                found = list(self._results(branch))
            for more, value in found:
                yield [*facts, *more], value

    def _product(self, arguments: Sequence[Node]) -> Typed:
        """``c = a b + beta c`` as a BLAS computes it, rows one after the other."""
        made = [self._evaluate(one) for one in arguments]
        order, a_form, b_form, m, n, k = (self.values.integer(one.value) for one in made[:6])
        alpha, a, lda, b, ldb, beta, c, ldc = (one.value for one in made[6:])
        lda, ldb, ldc = (self.values.integer(one) for one in (lda, ldb, ldc))
        if order != 101 or not _is_number(alpha, 1.0):
            raise NotShown("a product of another order, or with a factor")
        rows, columns, inner = (
            self.values.axis(name, extent) for name, extent in (("r", m), ("c", n), ("k", k))
        )
        left = self._of_matrix(a, a_form, lda, (rows, inner))
        right = self._of_matrix(b, b_form, ldb, (inner, columns))
        for length in (m, n, k):
            if not self.integers.entails(length):
                raise NotShown(f"a product of {length} rows or columns, which may be negative")
        for width, step in (
            (m if a_form == 112 else k, lda), (k if b_form == 112 else n, ldb), (n, made[13].value),
        ):  # fmt: skip
            if not (self.integers.entails(step - width) and self.integers.entails(step - 1)):
                raise NotShown(f"a leading dimension {step} for rows of {width}")
        dtype = left.dtype
        product = self.values.call("mul", left, right, dtype=dtype)
        total = self.values.reduce("sum", inner, product, (orders.BLAS,))
        nonempty = [fact for one in (rows, columns) for fact in self.integers.range_of(one)]
        with self.integers.given(*nonempty):
            ldc = self.integers.settled(ldc)
        address = c.offset + ldc * Dim.of(rows) + Dim.of(columns)
        if not _is_number(beta, 0.0):
            if not _is_number(beta, 1.0):
                raise NotShown("a product that is added to a multiple")
            old = self._read(c.array, address)
            total = self.values.call("add", old, total, dtype=dtype)
        self._check(c.array, address, "written")
        self._put(Write(c.array, (rows, columns), address, total, self._line))
        return Typed("void", None)

    def _of_matrix(self, pointer: Pointer, form: Dim, step: Dim, axes: Sequence[Axis]) -> Expr:
        if form not in (111, 112):
            raise NotShown("a form of a matrix that is not known")
        row, column = axes if form == 111 else reversed(axes)
        with self.integers.given(*(fact for one in axes for fact in self.integers.range_of(one))):
            address = pointer.offset + self.integers.settled(step) * Dim.of(row) + Dim.of(column)
            return self._read(pointer.array, address)

    # -- loops

    def _loop(self, node: c_ast.For, directive: Directive | None) -> None:
        head = self._head(node)
        if self._once(node, head):
            return
        count = self._rounded(head.length, head.step)
        digits = self._digits(node, head) if head.low == 0 and head.step == 1 else []
        if digits:
            self._nested(node, head, directive, [*digits, count], Dim.of(0))
        else:
            axis = self.values.axis(head.name, count)
            if head.step != 1:
                self.integers.know(axis, head.length - 1 - head.step * Dim.of(axis))
            self._over(node, head, directive, axis, head.at(Dim.of(axis)))

    def _over(
        self, node: c_ast.For, head: Head, directive: Directive | None, axis: Axis, value: Dim,
        inside: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        """One loop over an axis; ``inside``: what it runs in the place of the body."""
        line = self.unit.line(node)
        if directive is not None:
            _check_shared(node.stmt, directive, line)
        with self.integers.given(*self.integers.range_of(axis)):
            if self.integers.contradictory:  # it never runs
                return
            with self._frame(self._targets(node.stmt)) as frame:
                if inside is not None:
                    inside()
                else:
                    self._scopes.append(Scope({head.name: Typed("int64_t", value)}))
                    self._block(node.stmt)
                    self._scopes.pop()
                number = len(self._frames) - 1
            summary = Summary(self, frame, number, axis, directive, line)
            summary.iterations()
        summary.put()

    def _nested(
        self, node: c_ast.For, head: Head, directive: Directive | None, divisors: list[Dim],
        value: Dim,
    ) -> None:  # fmt: skip
        """A loop over rows of several axes, as loops over each.

        ``divisors``: the lengths of what is left to walk over, each a multiple of the one before.
        """
        *inner, whole = divisors
        step = inner[-1] if inner else Dim.of(1)
        extent = whole.exact_quotient(step)
        assert extent is not None
        axis = self.values.axis(head.name, extent)
        value = value + step * Dim.of(axis)
        inside = (lambda: self._nested(node, head, directive, inner, value)) if inner else None
        self._over(node, head, directive, axis, value, inside)

    def _digits(self, node: c_ast.For, head: Head) -> list[Dim]:
        """What the body divides the variable by, each a divisor of the next, and of the length."""
        found: dict[Dim, None] = {}
        for one in _kind(node.stmt, c_ast.BinaryOp):
            if one.op in "%/" and not _assigned(node.stmt, _names(one)):
                left, within = one.left, []
                while isinstance(left, c_ast.BinaryOp) and left.op == "/":
                    within.append(left.right)
                    left = left.left
                if _is(left, head.name):
                    outer = product([self._integer(each) for each in within])
                    found[outer * self._integer(one.right)] = None
                    found[outer] = None
        chain: list[Dim] = []
        for one in sorted(found, key=_width):
            last = chain[-1] if chain else Dim.of(1)
            if one != last and one != head.length:
                if one.exact_quotient(last) is None or head.length.exact_quotient(one) is None:
                    return []
                chain.append(one)
        return chain

    def _once(self, node: c_ast.For, head: Head) -> bool:
        """A loop that runs at most once, as the condition that it is.

        One from 1 goes on with what stands at 0, and is summarised.
        """
        if head.low == 1 or not self.integers.entails(head.step - head.length):
            return False
        pool = self.values.pool
        runs = self.values.call("lt", pool.integer(0), pool.integer(head.length), dtype=bool_)
        decided = self._decided(runs)
        if decided is None:
            return False
        if len(self._frames) == 1:
            self._assume(runs, decided)
        if decided:
            with self._assumed(runs, True):
                self._scopes.append(Scope({head.name: Typed("int64_t", head.at(Dim.of(0)))}))
                self._block(node.stmt)
                self._scopes.pop()
        return True

    def _rounded(self, length: Dim, step: Dim) -> Dim:
        """How often a loop runs: a number of its own, of which it is known that it is enough."""
        if step == 1:
            return length
        if not self.integers.entails(step - 1):
            raise NotShown(f"a loop's step {step} was not shown to be at least 1")
        if length.constant is not None and step.constant:
            return Dim.of(-(-length.constant // step.constant))
        return Dim.of(Element(TRIPS, (length, step)))

    def _head(self, node: c_ast.For) -> Head:
        """``for (int64_t i = low; i < high; i += step)``, or ``(i = high - 1; i >= low; i--)``."""
        if not isinstance(node.init, c_ast.DeclList) or len(node.init.decls) != 1:
            raise NotShown("a loop that declares no variable of its own")
        declared = node.init.decls[0]
        name, first = declared.name, self._integer(declared.init)
        condition, advance = node.cond, node.next
        if not (isinstance(condition, c_ast.BinaryOp) and _is(condition.left, name)):
            raise NotShown("a loop whose condition is no comparison of its variable")
        end = self._integer(condition.right)
        one_on = isinstance(advance, c_ast.UnaryOp) and _is(advance.expr, name)
        if condition.op == ">=" and one_on and advance.op in ("p--", "--"):
            self._computed(end - 1)
            return Head(name, end, first - end + 1, Dim.of(1), down=True)
        if condition.op == "<" and one_on and advance.op in ("p++", "++"):
            return Head(name, first, end - first, Dim.of(1))
        if (
            condition.op == "<"
            and isinstance(advance, c_ast.Assignment)
            and advance.op == "+="
            and _is(advance.lvalue, name)
        ):
            step = self._integer(advance.rvalue)
            self._computed(end + step)
            return Head(name, first, end - first, step)
        raise NotShown("a loop that counts neither up to an end nor down to one")


@dataclass(frozen=True)
class Head:
    """A loop over ``low``, ``low + step``, ... below ``low + length``; or over these downwards."""

    name: str
    low: Dim
    length: Dim
    step: Dim
    down: bool = False

    def at(self, place: Dim) -> Dim:
        """The variable's value in an iteration."""
        if self.down:
            return self.low + self.length - 1 - place
        return self.low + self.step * place


@dataclass(frozen=True)
class _Joined:
    """A write by all iterations.

    ``mapping``: what stands for the axes of one iteration's.  ``block``: an axis of the write, and
    how much of it belongs to one iteration.  ``plain``: the same with the loop's axis by itself.
    """

    write: Write
    mapping: dict[Axis, Dim]
    block: tuple[Axis, Dim]
    plain: _Joined | None = None


class Summary:
    """What all iterations of a loop did, from what one did."""

    def __init__(
        self, machine: Machine, frame: Frame, number: int, axis: Axis,
        directive: Directive | None, line: int,
    ) -> None:  # fmt: skip
        self._machine, self._frame, self._number, self._axis = machine, frame, number, axis
        self._integers, self._values = machine.integers, machine.values
        self._directive, self._line = directive, line
        self._maps: dict[str, list[Write]] = {}
        self._sums: dict[str, tuple[Write, str, Expr]] = {}
        self._moved: set[str] = set()
        self._scatters: dict[str, tuple[Write, Expr, Element]] = {}
        self._left: dict[str, list[Write]] = {}
        self._whole: dict[str, list[_Joined]] = {}

    def iterations(self) -> None:
        """What each iteration did, and that no two meet."""
        writes = [one for one in self._frame.writes if one.array not in self._frame.local]
        for name in dict.fromkeys(one.array for one in writes):
            self._classify(name, [one for one in writes if one.array == name])
        self._places = [found for name in list(self._left) if (found := self._position(name))]
        self._check_clauses()
        self._whole = {name: self._joined(group) for name, group in self._maps.items()}
        self._values_of_maps = [
            (joined, self._mapped(own) if own.value is not None else None)
            for name, group in self._maps.items()
            for own, joined in zip(group, self._whole[name], strict=True)
        ]
        self._gathers = [
            self._gathered(write, self._resolved(part, within=name), place)
            for name, (write, part, place) in self._scatters.items()
        ]
        self._parts = [
            (write, kind, self._resolved(part, within=write.array))
            for write, kind, part in self._sums.values()
        ]

    def put(self) -> None:
        """The writes of all iterations, into the frame around the loop."""
        out = [self._whole_write(joined, value) for joined, value in self._values_of_maps]
        out += [self._total(*one) for one in self._parts] + self._gathers + self._places
        out += [replace(one, value=None) for group in self._left.values() for one in group]
        for one in out:
            self._machine._put(one)

    # -- what kind of write

    def _classify(self, name: str, group: list[Write]) -> None:
        group = [one for one in group if not self._unchanged(name, one)]
        if not group:
            return
        write = group[0]
        moving = [one for one in group if self._axis in one.address.axes]
        if len(moving) == len(group):
            scattered = self._scattered(write) if len(group) == 1 else None
            if scattered is None:
                self._maps[name] = group
            else:
                self._scatters[name] = scattered
            return
        if len(group) == 1 and write.value is not None:
            found = self._accumulated(write)
            if found is not None:
                self._sums[name] = (write, *found)
                return
        if moving:
            raise NotShown(f"{_shown(name)} is written in several ways in one loop", self._line)
        if self._directive is not None:
            raise NotShown(
                f"race: every iteration of a loop that runs in parallel writes {_shown(name)}"
                f"[{write.address}]", self._line,
            )  # fmt: skip
        self._left[name] = [self._widest(one) for one in group]

    def _widest(self, write: Write) -> Write:
        """What any iteration writes, or more."""
        fresh = {}
        for axis in write.axes:
            limits = [one for one in uppers(axis.extent) if self._axis not in one.axes]
            if self._axis in axis.extent.axes:
                if not limits:
                    raise NotShown(f"how much of {_shown(write.array)} each writes", self._line)
                fresh[axis] = self._values.axis(axis.name, limits[0])
        return renamed(write, fresh)

    def _scattered(self, write: Write) -> tuple[Write, Expr, Element] | None:
        """A sum into the element that an index array names."""
        places = [
            one for one in write.address.atoms
            if isinstance(one, Element) and self._axis in free_axes(one.indices)
        ]  # fmt: skip
        if len(places) != 1 or write.value is None or self._directive is not None:
            return None
        found = self._accumulated(write)
        return (write, found[1], places[0]) if found is not None and found[0] == "sum" else None

    def _gathered(self, write: Write, part: Expr, place: Element) -> Write:
        """What each element gets: the parts of the iterations whose index names it."""
        extent = self._integers.bound_of(place, without=self._axis)
        if extent is None:
            raise NotShown(f"{place}, an index, was not shown to have bounds", self._line)
        axis = self._values.axis(self._axis.name, extent)
        address = put(write.address, {place: Dim.of(axis)})
        axes = (*write.axes, axis)
        if self._axis in address.axes or not injective(self._integers, axes, address):
            raise NotShown(
                f"two iterations may write one element of {_shown(write.array)}", write.line
            )
        pool = self._values.pool
        here = self._values.call(
            "eq", pool.access(place.tensor, place.indices, int64), pool.integer(Dim.of(axis)),
            dtype=bool_,
        )  # fmt: skip
        nothing = pool.literal(0, part.dtype)
        each = self._values.call("where", here, part, nothing, dtype=part.dtype)
        old = self._machine._fetch(write.array, address, len(self._machine._frames) - 1)
        order = self._order(write.array, old, "sum")
        total = self._values.reduce("sum", self._axis, self._stored(write.array, each), order)
        whole = self._plus("sum", old, total, write.array)
        return Write(write.array, axes, address, whole, write.line)

    def _position(self, name: str) -> Write | None:
        """Where the greatest, or the least, was met first, kept beside it."""
        (write, *others) = self._left[name]
        chosen = write.value
        if others or not (isinstance(chosen, Call) and chosen.function == "where"):
            return None
        condition, place, _ = chosen.operands
        parts = [part for _, _, part in self._sums.values()]
        condition = without_own_check(condition, *parts)
        old = self._values.pool.access(before(self._number, name), (write.address,), int64)
        here = self._values.expression(Dim.of(self._axis))
        if chosen.operands[2] is not old or place is not here or not isinstance(condition, Call):
            return None
        level = len(self._machine._frames) - 1
        for best, kind, part in self._sums.values():
            tensor = before(self._number, best.array)
            kept = self._values.pool.access(tensor, (best.address,), part.dtype)
            better = {"max": "gt", "min": "lt"}.get(kind)
            start = self._machine._fetch(best.array, best.address, level)
            ctype = self._machine.arrays[best.array].ctype
            if (
                (condition.function, condition.operands) == (better, (part, kept))
                and _is_end(kind, start, ctype)
                and self._is_zero(self._machine._fetch(name, write.address, level))
            ):
                del self._left[name]
                found = self._values.reduce(f"arg{kind}", self._axis, self._resolved(part))
                return replace(write, value=found)
        return None

    def _is_zero(self, value: Expr) -> bool:
        return self._values.integer(value) == 0

    def _unchanged(self, name: str, write: Write) -> bool:
        """Does it write what was there before?  For threads that is a write as any other."""
        if self._directive is not None and not self._in_clause(name):
            return False
        return (
            isinstance(write.value, Access)
            and write.value.tensor == before(self._number, write.array)
            and write.value.indices == (write.address,)
        )

    def _in_clause(self, array: str) -> bool:
        found = [
            self._machine._look(name).value
            for _, name in (self._directive.reductions if self._directive is not None else ())
        ]
        return any(isinstance(one, Pointer) and one.array == array for one in found)

    def _accumulated(self, write: Write) -> tuple[str, Expr] | None:
        """``old + part``: the kind of reduction, and the part."""
        assert write.value is not None
        tensor = before(self._number, write.array)
        old = self._values.pool.access(tensor, (write.address,), write.value.dtype)
        for kind, operator in _OPERATORS.items():
            part = _without(self._values, write.value, old, operator)
            if part is not None and not _holds_expr(part, old):
                if isinstance(write.value, Call) and old not in write.value.operands:
                    self._moved.add(write.array)
                return kind, part
        return None

    def _check_clauses(self) -> None:
        directive = self._directive
        if directive is None:
            return
        names = {}
        for operator, name in directive.reductions:
            found = self._machine._look(name).value
            if isinstance(found, Pointer):
                names[found.array] = _CLAUSES.get(operator)
        for array, (_, kind, _) in self._sums.items():
            if names.get(array) != kind:
                raise NotShown(
                    f"race: every iteration of a {'parallel' if directive.parallel else 'simd'} "
                    f"loop adds to {_shown(array)}", self._line,
                )  # fmt: skip
        for array in names:
            if array not in self._sums and array in self._maps:
                raise NotShown(f"{_shown(array)} is in a clause and no sum", self._line)

    # -- maps

    def _joined(self, group: list[Write]) -> list[_Joined]:
        whole = [self._join(one) for one in group]
        for write in (joined.write for joined in whole):
            if not injective(self._integers, write.axes, write.address):
                raise NotShown(
                    f"two iterations may write one element of {_shown(write.array)}", write.line
                )
        for place, one in enumerate(group):
            for other in group[:place]:
                self._check_apart(one, other)
                self._check_apart(other, one)
        return whole

    def _join(self, write: Write) -> _Joined:
        """The axes of a write with the loop's: added, or joined where it walks over blocks."""
        for place, inner in enumerate(write.axes):
            if self._axis not in free_axes([inner.extent]):
                continue
            found = self._values.joined(self._axis, inner)
            if found is None:
                raise NotShown(
                    f"blocks of {_shown(write.array)}: {inner.extent} for each of "
                    f"{self._axis.extent}", self._line,
                )  # fmt: skip
            axis, step = found
            mapping = {inner: Dim.of(axis) - step * Dim.of(self._axis)}
            address = put(write.address, dict(mapping.items()))
            if self._axis in address.axes:
                raise NotShown(f"the address {write.address} depends on the block", self._line)
            axes = (*write.axes[:place], axis, *write.axes[place + 1 :])
            return _Joined(replace(write, axes=axes, address=address), mapping, (axis, step))
        other = self._values.axis(self._axis.name, self._axis.extent)
        mapping = {self._axis: Dim.of(other)}
        address = put(write.address, dict(mapping.items()))
        whole = replace(write, axes=(*write.axes, other), address=address)
        plain = _Joined(whole, mapping, (other, Dim.of(1)))
        tiled = (self._tiled(write, inner) for inner in write.axes)
        joined = next((one for one in tiled if one is not None), None)
        return plain if joined is None else replace(joined, plain=plain)

    def _tiled(self, write: Write, inner: Axis) -> _Joined | None:
        """An axis of a write and the loop's as one, where they only occur as one."""
        count, step = inner.extent, coefficient(write.address, inner)
        if not (count.constant or 0) > 0 or step is None or write.value is None:
            return None
        if inner in free_axes(one.extent for one in write.axes):
            return None
        if coefficient(write.address, self._axis) != count * step:
            return None
        axis = self._values.axis(inner.name, count * self._axis.extent)
        mapping = {inner: Dim.of(axis) - count * Dim.of(self._axis)}
        address = put(write.address, dict(mapping.items()))
        if self._axis in self._values.substitute(write.value, mapping).free:
            return None
        axes = tuple(axis if one is inner else one for one in write.axes)
        return _Joined(replace(write, axes=axes, address=address), mapping, (axis, count))

    def _whole_write(self, joined: _Joined, value: Expr | None) -> Write:
        if value is None:
            return replace(joined.write, value=None)
        wanted, value = value, self._values.substitute(value, joined.mapping)
        if self._axis in value.free and joined.plain is not None:
            return self._whole_write(joined.plain, wanted)
        if self._axis in value.free:
            raise NotShown(
                f"what {_shown(joined.write.array)} gets depends on the block", self._line
            )
        return replace(joined.write, value=value)

    def _check_apart(self, one: Write, other: Write) -> None:
        """Writes of different iterations never meet."""
        later = self._values.axis(self._axis.name, self._axis.extent)
        fresh = {axis: self._values.axis(axis.name, axis.extent) for axis in other.axes}
        fresh[self._axis] = later
        moved = renamed(other, fresh)
        gap = moved.address - one.address
        with self._integers.given(Dim.of(later) - Dim.of(self._axis) - 1):
            if self._integers.entails(gap - 1) or self._integers.entails(-gap - 1):
                return
            if self._is_ahead(gap, later):
                return
            if match(self._integers, moved, one.address) is not OUTSIDE:
                raise NotShown(
                    f"two iterations may write one element of {_shown(one.array)}", one.line
                )

    def _is_ahead(self, gap: Dim, later: Axis) -> bool:
        """Is a gap at least 1 where it is least, one iteration later?"""
        step = coefficient(gap, later)
        if step is None:
            return False
        nearest = gap - step * (Dim.of(later) - Dim.of(self._axis) - 1)
        fixed = nearest.atoms.isdisjoint((later, self._axis))
        return fixed and self._integers.entails(step) and self._integers.entails(nearest - 1)

    # -- what was read from before the iteration

    def _resolved(self, value: Expr, *, within: str = "") -> Expr:
        """With what it read from before the iteration; ``within``: the sum that it is part of."""
        through = {
            write.value: self._values.pool.access(f"{_THROUGH}{name}", (write.address,), part.dtype)
            for name, (write, _, part) in self._sums.items() if name != within
        }  # fmt: skip
        if through:
            rule = lambda expr, new: through.get(expr)  # noqa: E731
            value = rebuild(self._values.pool, [value], rule)[value]

        def element(tensor: str, indices: tuple[Dim, ...], dtype: DType) -> Expr | None:
            if tensor.startswith(_THROUGH):
                return self._scanned(tensor.removeprefix(_THROUGH), indices[0], within, through=1)
            owner, array = owner_of(tensor)
            return self._earlier(array, indices[0], within) if owner == self._number else None

        return self._values.replaced(value, {}, element)

    def _mapped(self, own: Write) -> Expr:
        assert own.value is not None
        return self._recurrence(own) or self._resolved(own.value)

    def _recurrence(self, own: Write) -> Expr | None:
        """``a[t] = t > 0 ? a[t - 1] + part : part``, as the sum of the parts so far."""
        chosen = own.value
        if self._directive is not None or not isinstance(chosen, Call):
            return None
        if chosen.function != "where":
            return None
        condition, later, first = chosen.operands
        place = Dim.of(self._axis)
        last = put(own.address, {self._axis: place - 1})
        before_it = self._values.pool.access(before(self._number, own.array), (last,), later.dtype)
        for kind, operator in _OPERATORS.items():
            if (
                _without(self._values, later, before_it, operator) is first
                and self._follows(condition, True, place - 1)
                and self._follows(condition, False, -place)
            ):
                so_far = self._values.axis(self._axis.name, place + 1)
                each = self._values.substitute(first, {self._axis: Dim.of(so_far)})
                if isinstance(later, Call) and before_it not in later.operands:
                    self._moved.add(own.array)
                order = self._order(own.array, None, kind)
                each = self._stored(own.array, self._resolved(each))
                return self._values.reduce(kind, so_far, each, order)
        return None

    def _follows(self, condition: Expr, truth: bool, fact: Dim) -> bool:
        facts = facts_of(self._values, condition, truth)
        with self._integers.given(fact):
            return bool(facts) and all(self._integers.entails(one) for one in facts)

    def _earlier(self, array: str, address: Dim, within: str) -> Expr:
        """What an iteration finds at an address that it has not written itself."""
        outside = len(self._machine._frames) - 1
        if array in self._sums:
            return self._scanned(array, address, within)
        if array in self._left or array in self._scatters:
            raise NotShown(
                f"{_shown(array)}[{address}] is read before the iteration writes it", self._line
            )
        for write in self._whole.get(array, ()):
            self._check_own(write, address)
        return self._machine._fetch(array, address, outside)

    def _check_own(self, joined: _Joined, address: Dim) -> None:
        """No other iteration writes there."""
        found = match(self._integers, joined.write, address)
        if found is OUTSIDE:
            return
        axis, step = joined.block
        if isinstance(found, dict):
            into = found[axis] - step * Dim.of(self._axis)
            if self._integers.within(into, step):
                return
        raise NotShown(
            f"{_shown(joined.write.array)}[{address}] depends on another iteration", self._line
        )

    def _scanned(self, array: str, address: Dim, within: str, *, through: int = 0) -> Expr:
        """An accumulator on the way: what it held before, and the parts so far.

        ``through``: 1 with this iteration's, else 0.
        """
        write, kind, part = self._sums[array]
        outside = len(self._machine._frames) - 1
        found = match(self._integers, write, address)
        if found is OUTSIDE:
            return self._machine._fetch(array, address, outside)
        if found is None or self._directive is not None or within:
            raise NotShown(f"{_shown(array)} is read while it is added to", self._line)
        assert isinstance(found, dict)
        start = self._machine._fetch(array, address, outside)
        so_far = self._values.axis(self._axis.name, Dim.of(self._axis) + through)
        each = self._values.substitute(part, {**found, self._axis: Dim.of(so_far)})
        each = self._resolved(each)
        order = self._order(array, start, kind)
        total = self._values.reduce(kind, so_far, self._stored(array, each), order)
        return self._plus(kind, start, total, array)

    def _total(self, write: Write, kind: str, part: Expr) -> Write:
        start = self._machine._fetch(write.array, write.address, len(self._machine._frames) - 1)
        self._machine._reach.summed(write.array, write.line, kind, part)
        if not _is_start(kind, start) and self._integers.entails(self._axis.extent):
            longer = self._values.axis(self._axis.name, self._axis.extent + 1)
            first = self._values.substitute(part, {self._axis: Dim.of(-1)})
            if self._same(first, start):
                each = self._values.substitute(part, {self._axis: Dim.of(longer) - 1})
                return self._from_first(write, kind, longer, each, first is start)
            found = self._read_from_the_start(write, start, longer)
            if found is not None:
                return self._from_first(write, kind, longer, *found)
        order = self._order(write.array, start, kind)
        total = self._values.reduce(kind, self._axis, self._stored(write.array, part), order)
        if self._axis in total.free:
            raise NotShown(
                f"what is added to {_shown(write.array)} depends on the block", self._line
            )
        return replace(write, value=self._plus(kind, start, total, write.array))

    def _stored(self, array: str, part: Expr) -> Expr:
        """What is added to an array, in its type."""
        wide = self._machine.arrays[array].ctype == "double" and part.dtype == float32
        return self._values.wide(part) if wide else part

    def _order(self, array: str, start: Expr | None, kind: str) -> orders.Order:
        """In which order what is added to an array is added."""
        directive = self._directive
        return orders.named(
            *([orders.THREADS if directive.parallel else orders.LANES] if directive else []),
            *([orders.TERMS] if array in self._moved else []),
            *([orders.ON] if start is not None and not _is_start(kind, start) else []),
        )

    def _from_first(
        self, write: Write, kind: str, axis: Axis, each: Expr, is_start: bool
    ) -> Write:  # fmt: skip
        """A reduction that starts from its first part; ``is_start``: computed as the others are."""
        moved = () if is_start else (orders.TERMS,)
        order = orders.named(*self._order(write.array, None, kind), *moved)
        each = self._stored(write.array, each)
        return replace(write, value=self._values.reduce(kind, axis, each, order))

    def _read_from_the_start(
        self, write: Write, start: Expr, longer: Axis
    ) -> tuple[Expr, bool] | None:  # fmt: skip
        """``a[0] += a[i + 1]``: the parts with ``a[0]``, as elements that the loop found there.

        And whether ``a[0]`` is computed as they are.
        """
        raw, level = self._sums[write.array][2], len(self._machine._frames) - 1

        def element(tensor: str, indices: tuple[Dim, ...], dtype: DType) -> Expr | None:
            owner, array = owner_of(tensor)
            if owner == self._number and array != write.array:
                raise NotShown(f"{_shown(array)} changes in the loop", self._line)
            return self._machine._fetch(array, indices[0], level) if owner == self._number else None

        place = Dim.of(longer) - 1
        try:
            first = self._values.replaced(raw, {self._axis: Dim.of(-1)}, element)
            with self._integers.given(*self._integers.range_of(longer)):
                each = self._values.replaced(raw, {self._axis: place}, element)
        except NotShown:
            return None
        return (each, first is start) if self._same(first, start) else None

    def _same(self, one: Expr, other: Expr) -> bool:
        if one is other:
            return True
        reals = Reals(self._values)
        if reals.normal(one) != reals.normal(other):
            return False
        check_defined(self._values, reals, other, one, "a sum")
        return True

    def _plus(self, kind: str, start: Expr, total: Expr, array: str) -> Expr:
        if _is_start(kind, start):
            return total
        operator = _OPERATORS[kind]
        if start.dtype.is_integer and kind in ("sum", "prod"):
            one, other = self._values.integer(start), self._values.integer(total)
            return self._values.expression(one + other if kind == "sum" else one * other)
        stored = self._machine._dtype(self._machine.arrays[array])
        dtype = stored if stored.is_float else start.dtype
        return self._values.call(operator, start, total, dtype=dtype)


# -- helpers


def alternatives(condition: Expr) -> Iterator[Expr]:
    """What a disjunction consists of."""
    if isinstance(condition, Call) and condition.function == "logical_or":
        for one in condition.operands:
            yield from alternatives(one)
    else:
        yield condition


def _without(values: Values, value: Expr, old: Expr, operator: str) -> Expr | None:
    """The other operand where ``value`` is ``old`` and it, by an operator; None where it is not."""
    whole = value.dtype.is_integer and operator in ("add", "mul", "maximum", "minimum")
    if whole and not (isinstance(value, Call) and value.function == operator):
        return _without_integer(values.integer(value), values.integer(old), operator, values)
    if not isinstance(value, Call):
        return None
    if value.function == operator:
        left, right = value.operands
        if left is old:
            return right
        if right is old:
            return left
        if operator in ("add", "mul"):
            for one, other in ((left, right), (right, left)):
                part = _without(values, one, old, operator)
                if part is not None:
                    return values.call(operator, part, other, dtype=value.dtype)
    if operator == "add" and value.function == "sub":
        left, right = value.operands
        if left is old:
            return values.call("neg", right, dtype=value.dtype)
        part = _without(values, left, old, operator)
        if part is not None:
            return values.call("sub", part, right, dtype=value.dtype)
    return None


def _without_integer(value: Dim, old: Dim, operator: str, values: Values) -> Expr | None:
    if operator == "add":
        rest = value - old
        return values.expression(rest) if rest.terms else None
    if operator == "mul":
        factor = value.exact_quotient(old)
        return None if factor is None else values.expression(factor)
    found = extreme(value)
    if found is None or found[0] != operator or old not in found[1:]:
        return None
    return values.expression(found[2] if found[1] == old else found[1])


def extreme(value: Dim) -> tuple[str, Dim, Dim] | None:
    """The lesser, or the greater, of two."""
    for atom in value.atoms:
        if isinstance(atom, Derived) and atom.function == "min":
            for sign, operator in ((1, "minimum"), (-1, "maximum")):
                base = value - sign * Dim.of(atom)
                if atom not in base.atoms:
                    return operator, base + sign * atom.left, base + sign * atom.right
    return None


def _holds_expr(value: Expr, part: Expr) -> bool:
    """Does an element stand in a value, or in an index of it?"""
    if any(one is part for one in postorder([value])):
        return True
    assert isinstance(part, Access)
    element = Element(part.tensor, part.indices)
    dims = [
        dim
        for one in postorder([value])
        for dim in ((one.value,) if isinstance(one, IntValue) else getattr(one, "indices", ()))
    ]
    return any(element in dim.atoms for dim in dims)


def _likely(arguments: Sequence[Dim]) -> Iterator[Callable[[Dim], Dim]]:
    """What may hold of a function's value, to be shown."""
    yield lambda value: value - 1
    for one in arguments:
        yield lambda value, one=one: one - value  # type: ignore[misc]
        for other in arguments:
            if other is not one and other.constant is not None:
                yield lambda value, one=one, other=other: one - other * (value - 1)  # type: ignore[misc]


def _enough(indices: tuple[Dim, ...]) -> Iterable[Dim]:
    length, step = indices
    trips = Dim.of(Element(TRIPS, indices))
    return [trips, trips * step - length]


def _exactly(
    arguments: tuple[Dim, ...], facts: Sequence[Dim]
) -> Callable[[tuple[Dim, ...]], Iterable[Dim]]:
    return lambda indices: facts if indices == arguments else ()


def _is_start(kind: str, start: Expr) -> bool:
    """Does it add nothing?"""
    if kind in ("any", "all"):
        neutral = int(kind == "all")
        if isinstance(start, IntValue):
            return start.value == neutral
        return isinstance(start, Literal) and bool(start.value) == bool(neutral)
    wanted = {"sum": 0.0, "prod": 1.0, "max": -inf, "min": inf}[kind]
    if isinstance(start, (Literal, IntValue)):
        value = start.value.constant if isinstance(start, IntValue) else start.value
        return value is not None and float(value) == wanted
    return False


def _is_end(kind: str, start: Expr, ctype: str) -> bool:
    """Is nothing of the type beyond it?"""
    if ctype in FLOATS:
        return _is_start(kind, start)
    end = INTEGERS[ctype][0 if kind == "max" else 1]
    return isinstance(start, IntValue) and start.value == end


def _is_number(value: Any, wanted: float) -> bool:
    return isinstance(value, Literal) and float(value.value) == wanted


def _kind(node: Node, kind: type[Node]) -> Iterator[Any]:
    return (one for one in walk(node) if isinstance(one, kind))


def _check_shared(body: Node, directive: Directive, line: int) -> None:
    """A variable from outside that a body adds to is in a clause, whatever is added."""
    clauses = {(operator, name) for operator, name in directive.reductions}
    for one in _kind(body, c_ast.Assignment):
        target = one.lvalue
        if one.op == "=" or not isinstance(target, c_ast.ID) or _assigned(body, {target.name}):
            continue
        if (one.op[:-1], target.name) not in clauses:
            raise NotShown(f"race: every iteration changes {target.name}", line)


def _width(dim: Dim) -> tuple[int, int]:
    """It orders products by how many sizes they hold, then by their numbers."""
    return max(((sum(power for _, power in one), own) for one, own in dim.terms), default=(0, 0))


def _assigned(node: Node, names: set[str]) -> bool:
    """Does it declare one of these?"""
    return any(one.name in names for one in _kind(node, c_ast.Decl))


def _names(node: Node) -> set[str]:
    return {one.name for one in _kind(node, c_ast.ID)}


def _is(node: Node, name: str) -> bool:
    return isinstance(node, c_ast.ID) and node.name == name


def _is_truth(made: Typed) -> bool:
    return isinstance(made.value, Expr) and made.value.dtype == bool_


def _is_flag(made: Typed) -> bool:
    return isinstance(made.value, Dim) and made.value.constant in (0, 1)


def _is_void(node: c_ast.Cast) -> bool:
    kind = node.to_type.type
    return isinstance(kind, c_ast.TypeDecl) and kind.type.names == ["void"]


def _base(kind: Node) -> str:
    while not isinstance(kind, c_ast.IdentifierType):
        kind = kind.type
    return " ".join(kind.names)


def _dtype(ctype: str) -> DType:
    return DTYPES.get(ctype, int64)


def _promoted(ctype: str) -> str:
    return ctype if ctype in (*FLOATS, "int64_t") else "int"


def _common(left: str, right: str) -> str:
    for kind in ("double", "float", "int64_t"):
        if kind in (left, right):
            return kind
    return "int"


def _shown(array: str) -> str:
    return array.split("'")[0]


_OPERATORS = {
    "sum": "add", "prod": "mul", "max": "maximum", "min": "minimum",
    "any": "logical_or", "all": "logical_and",
}  # fmt: skip
_CLAUSES = {"+": "sum", "*": "prod", "|": "any", "&": "all", "max": "max", "min": "min"}
_COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod"}
_INTEGER_MACROS = {"INT32_MAX": 2**31 - 1, "INT64_MAX": 2**63 - 1, "INT64_MIN": -(2**63)}
_OF_MATH = {"fabs": "abs", "pow": "pow", "fmax": "maximum", "fmin": "minimum"}
