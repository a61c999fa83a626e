"""Parsed C, executed on exact numbers, with all that C leaves undefined as an error.

In: a unit, values for its macros, pointers to arrays of exact numbers.  Out: what the function
returns, what it wrote; ``Fault`` with the line where it did what no kernel may.

Integers are those of C, and signed ones that overflow are an error.  ``float`` and ``double`` are
reals (``validate.reals``).  An element that was never written has no value.  The iterations of a
loop under ``#pragma omp`` must not write the same element, nor read what another one writes; a
variable of its reduction clause is one for each of two lanes, which are joined behind the loop.
What is reached through a ``restrict`` pointer, and written, is reached through no other pointer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from flint import fmpq
from pycparser import c_ast

from symgrad.validate.reals import INFINITY, NAN, ONE, ZERO, Reals
from symgrad.validate.rounding import stored
from symgrad.validate.source import (
    BYTES,
    CLASSIFY,
    FLOATS,
    INTEGERS,
    NUMBERS,
    CType,
    Macro,
    Node,
    Signature,
    Unit,
    Unsupported,
    line_of,
    math_function,
    type_of,
)

Frame = list[Any]
Run = Callable[[Frame], Any]
Join = Callable[[Any, Any], Any]
LANES = 2
MANY = -1


class Fault(Exception):
    """The C did what no kernel may do.

    ``long``: it ran for too many iterations; ``wide``: arithmetic in int64_t overflowed.
    """

    long = False
    wide = False

    def __init__(self, reason: str, line: int) -> None:
        self.reason = reason
        self.line = line
        super().__init__(f"line {line}: {reason}")


# -- memory


class Memory:
    """An array.  ``base``: the type of its elements; empty for bytes that hold any type.

    ``cells``: what was written, by element; of bytes, pairs of a type and a value by byte.
    ``watched``: it may be reached through two pointers of which one is ``restrict``.  ``lines``:
    the line that wrote each element last, where that is asked for.
    """

    __slots__ = ("base", "cells", "const", "count", "lines", "name", "watched")

    def __init__(
        self, name: str, base: str, count: int, cells: dict[int, Any] | None = None,
        *, const: bool = False, lines: dict[int, int] | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.base = base
        self.count = count
        self.cells = {} if cells is None else cells
        self.const = const
        self.lines = lines
        self.watched = False


class Owner:
    """A ``restrict`` pointer while its block runs; ``parent``: of the pointer it was made from."""

    __slots__ = ("name", "parent", "scope")

    def __init__(self, name: str, scope: Scope, parent: Owner | None) -> None:
        self.name = name
        self.scope = scope
        self.parent = parent


class Scope:
    """The ``restrict`` pointers of a block or function that runs.

    ``log``: through which of them each element was reached, and whether it was written.
    """

    __slots__ = ("log", "memories")

    def __init__(self) -> None:
        self.memories: set[Memory] = set()
        self.log: dict[tuple[Memory, int], tuple[Any, bool]] = {}

    def watch(self, memory: Memory) -> None:
        """Log what is reached of it."""
        self.memories.add(memory)
        memory.watched = True


class Pointer:
    """``offset``: in elements; in bytes where the memory is bytes."""

    __slots__ = ("base", "memory", "offset", "owner")

    def __init__(self, memory: Memory, offset: int, base: str, owner: Owner | None = None) -> None:
        self.memory = memory
        self.offset = offset
        self.base = base
        self.owner = owner

    def moved(self, count: int) -> Pointer:
        """So many elements behind."""
        scale = 1 if self.memory.base else BYTES[self.base]
        return Pointer(self.memory, self.offset + count * scale, self.base, self.owner)


class Loop:
    """A loop under ``#pragma omp`` that runs: which iteration reached what."""

    __slots__ = ("iteration", "kind", "reads", "writes")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.iteration = 0
        self.reads: dict[tuple[Memory, int], int] = {}
        self.writes: dict[tuple[Memory, int], int] = {}

    def race(self, memory: Memory, write: bool, line: int) -> Fault:
        """What went wrong."""
        what = "is written by two iterations" if write else "is read where another one writes it"
        return Fault(f"race: {memory.name} {what} of a loop that is {self.kind}", line)


# -- what is compiled


@dataclass
class Compiled:
    """A function: its frame, and what runs."""

    signature: Signature
    slots: int = 0
    boxed: tuple[bool, ...] = ()
    body: Run = field(default=lambda frame: None)


@dataclass(frozen=True)
class Value:
    """An expression: how it is computed, and its type (``float *`` is ``float*``)."""

    run: Run
    kind: str
    const: bool = False

    @property
    def is_pointer(self) -> bool:
        """Is it a pointer?"""
        return self.kind.endswith("*")

    @property
    def is_float(self) -> bool:
        """Is it a real?"""
        return self.kind in FLOATS


@dataclass(frozen=True)
class Variable:
    """A name: its slot in the frame.  ``boxed``: the slot holds a Memory of one element."""

    slot: int
    kind: str
    const: bool  # what it points to, or itself
    fixed: bool  # it is not assigned to
    boxed: bool
    sure: bool  # it has a value as soon as it is declared
    array: bool = False


_RANKS = {"int": 0, "unsigned": 1, "int64_t": 2, "uint64_t": 3, "float": 4, "double": 5}
_LIMITS = {**INTEGERS, "unsigned": (0, 2**32 - 1)}
_WRAPS = frozenset(("unsigned", "uint64_t", "uint32_t", "uint16_t", "uint8_t"))


def _promoted(kind: str) -> str:
    if kind in ("char", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t"):
        return "int"
    return "unsigned" if kind == "uint32_t" else kind


def _common(left: str, right: str) -> str:
    """The usual arithmetic conversions."""
    return max(_promoted(left), _promoted(right), key=_RANKS.__getitem__)


_ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_BITS = {"|": operator.or_, "&": operator.and_, "^": operator.xor}
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip
_NEUTRAL: dict[str, Any] = {"+": 0, "*": 1, "|": 0, "^": 0, "&": -1, "||": 0, "&&": 1}


class Machine:
    """Executes the functions of a unit.

    ``constants``: values of its macros in place of their own.  ``helpers``: functions of integers
    in place of those of the unit.  ``tight``: macros that round up to a multiple of 64 do so to
    one of 8, so that too little is not hidden.  ``limit``: of iterations of all loops of a call.
    """

    def __init__(
        self, unit: Unit, reals: Reals, constants: Mapping[str, int] | None = None,
        helpers: Mapping[str, Callable[..., int]] | None = None, *, tight: bool = False,
        limit: int = 60_000,
    ) -> None:  # fmt: skip
        self.unit = unit
        self.reals = reals
        self.constants = {
            **{name: one.value for name, one in unit.constants.items()}, **(constants or {}),
        }  # fmt: skip
        self.helpers = helpers or {}
        self.tight = tight
        self.limit = limit
        self.steps = 0
        self.loops: list[Loop] = []
        self.scopes: list[Scope] = []
        self._compiled: dict[str, Compiled] = {}

    def compiled(self, name: str) -> Compiled:
        """A function, compiled when it is first called.  Raises Fault, Unsupported."""
        found = self._compiled.get(name)
        if found is None:
            found = self._compiled[name] = _Compiler(self, name).function()
        return found

    def call(self, name: str, arguments: Sequence[Any]) -> Any:
        """Call a function from outside.  Raises Fault, Undecided, Unsupported."""
        self.steps = 0
        self.loops.clear()
        self.scopes.clear()
        return self.enter(self.compiled(name), arguments)

    def enter(self, function: Compiled, arguments: Sequence[Any]) -> Any:
        """Call a function."""
        frame: Frame = [None] * function.slots
        scope = None
        for place, (argument, (name, kind)) in enumerate(
            zip(arguments, function.signature.parameters, strict=True)
        ):
            value = argument
            if kind.restrict and isinstance(argument, Pointer):
                scope = scope or Scope()
                value = Pointer(
                    argument.memory, argument.offset, argument.base,
                    Owner(name, scope, argument.owner),
                )  # fmt: skip
            frame[place] = value
            if function.boxed[place]:
                frame[place] = Memory(name, "any", 1, {0: value})
        if scope is None:
            return _returned(function.body(frame))
        reached = [one.memory for one in arguments if isinstance(one, Pointer)]
        for memory in reached:
            if reached.count(memory) > 1:
                scope.watch(memory)
        self.scopes.append(scope)
        try:
            return _returned(function.body(frame))
        finally:
            self.scopes.pop()

    # -- elements

    def load(self, pointer: Pointer, index: int, line: int) -> Any:
        """An element.  Raises Fault."""
        memory = pointer.memory
        if memory.base:
            key = pointer.offset + index
            if not 0 <= key < memory.count:
                raise _outside(memory, key, line)
            value = memory.cells.get(key)
            if value is None:
                raise Fault(f"{memory.name}[{key}] is read and was never written", line)
            if memory.const:
                return value
        else:
            size = BYTES[pointer.base]
            key = pointer.offset + index * size
            _in_bytes(memory, key, size, line)
            kind, value = memory.cells.get(key, ("", None))
            if kind != pointer.base:
                what = (
                    f"holds {kind} and is read as {pointer.base}" if kind else "was never written"
                )
                raise Fault(f"{memory.name} at byte {key} {what}", line)
        if self.loops:
            self._log_read(memory, key, line)
        if memory.watched:
            self._log_owner(pointer, memory, key, False, line)
        return value

    def store(self, pointer: Pointer, index: int, value: Any, line: int) -> None:
        """Write an element.  Raises Fault."""
        memory = pointer.memory
        if memory.const:
            raise Fault(f"{memory.name} is const and is written", line)
        if memory.base:
            key = pointer.offset + index
            if not 0 <= key < memory.count:
                raise _outside(memory, key, line)
            memory.cells[key] = value
            if memory.lines is not None:
                memory.lines[key] = line
        else:
            size = BYTES[pointer.base]
            key = pointer.offset + index * size
            _in_bytes(memory, key, size, line)
            _forget(memory, key, size)
            memory.cells[key] = (pointer.base, value)
        if self.loops:
            self._log_write(memory, key, line)
        if memory.watched:
            self._log_owner(pointer, memory, key, True, line)

    def _log_read(self, memory: Memory, key: int, line: int) -> None:
        place = (memory, key)
        for loop in self.loops:
            now = loop.iteration
            if loop.writes.get(place, now) != now:
                raise loop.race(memory, False, line)
            before = loop.reads.get(place)
            if before is None:
                loop.reads[place] = now
            elif before != now:
                loop.reads[place] = MANY

    def _log_write(self, memory: Memory, key: int, line: int) -> None:
        place = (memory, key)
        for loop in self.loops:
            now = loop.iteration
            if loop.writes.get(place, now) != now:
                raise loop.race(memory, True, line)
            if loop.reads.get(place, now) != now:
                raise loop.race(memory, False, line)
            loop.writes[place] = now

    def _log_owner(
        self, pointer: Pointer, memory: Memory, key: int, write: bool, line: int
    ) -> None:  # fmt: skip
        size = 1 if memory.base else BYTES[pointer.base]
        for scope in self.scopes:
            if memory not in scope.memories:
                continue
            owner = pointer.owner
            while owner is not None and owner.scope is not scope:
                owner = owner.parent
            for byte in range(key, key + size):
                before = scope.log.get((memory, byte))
                if before is None:
                    scope.log[memory, byte] = owner, write
                    continue
                other, written = before
                if other is not owner and (write or written):
                    names = [one.name if isinstance(one, Owner) else "another pointer"
                             for one in (other, owner)]  # fmt: skip
                    raise Fault(
                        f"{memory.name} is reached through {names[0]} and through {names[1]}, "
                        "of which one is restrict, and is written", line,
                    )  # fmt: skip
                if other is not owner:
                    scope.log[memory, byte] = MANY, False
                elif write and not written:
                    scope.log[memory, byte] = owner, True

    def step(self, line: int) -> None:
        """One iteration of a loop."""
        self.steps += 1
        if self.steps > self.limit:
            fault = Fault(f"more than {self.limit} iterations", line)
            fault.long = True
            raise fault


def _returned(result: Any) -> Any:
    return result[0] if result is not None else None


def _outside(memory: Memory, key: int, line: int) -> Fault:
    return Fault(f"{memory.name}[{key}] of {memory.count} elements", line)


def _in_bytes(memory: Memory, key: int, size: int, line: int) -> None:
    if key < 0 or key + size > memory.count:
        raise Fault(f"byte {key} to {key + size} of {memory.name}, of {memory.count} bytes", line)
    if key % size:
        raise Fault(f"byte {key} of {memory.name} is not aligned to {size} bytes", line)


def _forget(memory: Memory, key: int, size: int) -> None:
    """What lay where a number of this size is written now."""
    for other in range(key - 7, key + size):
        if other != key and other in memory.cells:
            kind, _ = memory.cells[other]
            if other > key or other + BYTES[kind] > key:
                del memory.cells[other]


# -- the compiler


def _kind(kind: CType) -> str:
    return kind.base + "*" * kind.pointers


class _Compiler:
    """One function, as closures."""

    def __init__(self, machine: Machine, name: str) -> None:
        self._machine = machine
        self._unit = machine.unit
        self._node = machine.unit.functions[name]
        self._signature = machine.unit.signatures[name]
        self._boxed = _boxed(self._unit, self._node)
        self._scopes: list[dict[str, Variable]] = []
        self._bound: list[dict[str, Value]] = []
        self._slots = 0

    def function(self) -> Compiled:
        """The whole function."""
        names: dict[str, Variable] = {}
        boxed = []
        for name, kind in self._signature.parameters:
            box = name in self._boxed
            boxed.append(box)
            fixed = kind.fixed or (kind.const and not kind.pointers)
            names[name] = Variable(self._slots, _kind(kind), kind.const, fixed, box, sure=True)
            self._slots += 1
        self._scopes.append(names)
        body = self._block(self._node.body)
        return Compiled(self._signature, self._slots, tuple(boxed), body)

    def _new(self, name: str, kind: CType, boxed: bool, sure: bool, array: bool) -> Variable:
        fixed = kind.fixed or (kind.const and not kind.pointers) or array
        found = Variable(self._slots, _kind(kind), kind.const, fixed, boxed, sure, array)
        self._slots += 1
        self._scopes[-1][name] = found
        return found

    def _variable(self, name: str) -> Variable | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    # -- statements

    def _block(self, node: c_ast.Compound) -> Run:
        self._scopes.append({})
        statements: list[Run] = []
        pragma = None
        restricts = False
        for one in node.block_items or []:
            if isinstance(one, c_ast.Pragma):
                pragma = one
                continue
            if isinstance(one, c_ast.Decl):
                restricts |= type_of(one).restrict
            if not isinstance(one, c_ast.EmptyStatement):
                statements.append(self._statement(one, pragma))
            pragma = None
        self._scopes.pop()
        return self._sequence(statements, restricts)

    def _sequence(self, statements: list[Run], restricts: bool) -> Run:
        if len(statements) == 1 and not restricts:
            return statements[0]
        machine, runs = self._machine, tuple(statements)

        def run(frame: Frame) -> Any:
            for one in runs:
                result = one(frame)
                if result is not None:
                    return result
            return None

        def scoped(frame: Frame) -> Any:
            machine.scopes.append(Scope())
            try:
                return run(frame)
            finally:
                machine.scopes.pop()

        return scoped if restricts else run

    def _statement(self, node: Node, pragma: c_ast.Pragma | None = None) -> Run:
        if isinstance(node, c_ast.Compound):
            return self._block(node)
        if isinstance(node, c_ast.Decl):
            return self._declare(node)
        if isinstance(node, c_ast.For):
            return self._loop(node, pragma)
        if isinstance(node, c_ast.If):
            return self._if(node)
        if isinstance(node, c_ast.Return):
            return self._return(node)
        if isinstance(node, c_ast.Assignment):
            return self._assign(node.lvalue, node.op.removesuffix("="), node.rvalue, line_of(node))
        if isinstance(node, c_ast.UnaryOp):
            step = c_ast.Constant("int", "1", node.coord)
            return self._assign(node.expr, node.op.strip("p")[0], step, line_of(node))
        if isinstance(node, c_ast.FuncCall):
            called = self._call(node).run

            def run(frame: Frame) -> None:
                called(frame)

            return run
        if isinstance(node, c_ast.Cast):  # (void)x
            return lambda frame: None
        raise Unsupported(f"the statement {type(node).__name__}", line_of(node))

    def _inner(self, node: Node) -> Run:
        self._scopes.append({})
        found = self._statement(node) if not isinstance(node, c_ast.EmptyStatement) else (
            lambda frame: None
        )  # fmt: skip
        self._scopes.pop()
        return found

    def _if(self, node: c_ast.If) -> Run:
        condition = self._truth(node.cond)
        chosen = self._inner(node.iftrue)
        other = self._inner(node.iffalse) if node.iffalse is not None else None

        def run(frame: Frame) -> Any:
            if condition(frame):
                return chosen(frame)
            return other(frame) if other is not None else None

        return run

    def _return(self, node: c_ast.Return) -> Run:
        if node.expr is None:
            return lambda frame: (None,)
        kind = _kind(self._signature.result)
        value = self._converted(self._value(node.expr), kind, line_of(node))
        return lambda frame: (value(frame),)

    def _declare(self, node: c_ast.Decl) -> Run:
        kind, line, name = type_of(node), line_of(node), node.name
        if isinstance(node.type, c_ast.ArrayDecl):
            count = int(node.type.dim.value)
            slot = self._new(name, CType(kind.base, 1), False, True, True).slot

            def array(frame: Frame) -> None:
                frame[slot] = Pointer(Memory(name, kind.base, count), 0, kind.base)

            return array
        value = None
        if node.init is not None:
            value = self._converted(self._value(node.init), _kind(kind), line)
            if kind.restrict:
                value = self._restricted(name, value)
        boxed = node in self._boxed
        slot = self._new(name, kind, boxed, node.init is not None, False).slot

        def run(frame: Frame) -> None:
            first = value(frame) if value is not None else None
            if boxed:
                frame[slot] = Memory(name, "any", 1, {} if first is None else {0: first})
            else:
                frame[slot] = first

        return run

    def _restricted(self, name: str, value: Run) -> Run:
        """A pointer through which alone memory is reached, while the block runs."""
        machine = self._machine

        def run(frame: Frame) -> Pointer:
            pointer: Pointer = value(frame)
            scope = machine.scopes[-1]
            scope.watch(pointer.memory)
            owner = Owner(name, scope, pointer.owner)
            return Pointer(pointer.memory, pointer.offset, pointer.base, owner)

        return run

    def _loop(self, node: c_ast.For, pragma: c_ast.Pragma | None) -> Run:
        directive = self._unit.directive(pragma) if pragma is not None else None
        reductions = []
        if directive is not None:
            for symbol, name in directive.reductions:
                found = self._variable(name)
                if found is None or found.kind.endswith("*") or found.fixed:
                    raise Fault(f"a reduction of {name}", directive.line)
                reductions.append(self._lanes(symbol, found, directive.line))
        self._scopes.append({})
        first = self._declare(node.init.decls[0]) if node.init is not None else None
        condition = self._truth(node.cond)
        following = self._statement(node.next)
        body = self._inner(node.stmt)
        self._scopes.pop()
        parts = _Parts(first, condition, body, following, line_of(node))
        if directive is None:
            return _one_by_one(self._machine, parts)
        kind = "parallel" if directive.parallel else "simd"
        check = self._truth(directive.condition) if directive.condition is not None else None
        return _side_by_side(self._machine, parts, kind, check, reductions)

    def _lanes(self, symbol: str, variable: Variable, line: int) -> _Lanes:
        """A variable of a reduction clause."""
        is_float = variable.kind in FLOATS
        if is_float and symbol in ("|", "&", "^", "||", "&&"):
            raise Fault(f"a reduction of reals by {symbol}", line)
        if symbol in ("max", "min"):
            ends: tuple[Any, Any] = (-INFINITY, INFINITY) if is_float else _LIMITS[variable.kind]
            neutral = ends[symbol == "min"]
        else:
            neutral = fmpq(_NEUTRAL[symbol]) if is_float else _NEUTRAL[symbol]
        return _Lanes(variable, neutral, self._join(symbol, variable.kind, line), line)

    def _join(self, symbol: str, kind: str, line: int) -> Join:
        """How the lanes of a reduction are joined."""
        reals = self._machine.reals
        if symbol in ("max", "min"):
            if kind in FLOATS:
                return reals.maximum if symbol == "max" else reals.minimum
            return max if symbol == "max" else min
        if symbol == "||":
            return lambda x, y: int(bool(x) or bool(y))
        if symbol == "&&":
            return lambda x, y: int(bool(x) and bool(y))
        left, right = Value(operator.itemgetter(0), kind), Value(operator.itemgetter(1), kind)
        final = self._converted(self._binary(symbol, left, right, line), kind, line)
        return lambda x, y: final([x, y])

    # -- assignments

    def _assign(self, target: Node, symbol: str, node: Node, line: int) -> Run:
        value = self._value(node)
        if isinstance(target, c_ast.ID):
            return self._assign_variable(target.name, symbol, value, line)
        pointer = self._value(target.name if isinstance(target, c_ast.ArrayRef) else target.expr)
        if not pointer.is_pointer or pointer.kind == "void*":
            raise Fault("an element of what is no array", line)
        if pointer.const:
            raise Fault("an element of a const array is written", line)
        index = self._index(target)
        machine, kind = self._machine, pointer.kind[:-1]
        where = pointer.run
        if not symbol:
            plain = self._converted(value, kind, line)

            def store(frame: Frame) -> None:
                machine.store(where(frame), index(frame), plain(frame), line)

            return store
        holder = self._slots
        self._slots += 1
        old = Value(lambda frame: frame[holder], kind)
        new = self._converted(self._binary(symbol, old, value, line), kind, line)

        def update(frame: Frame) -> None:
            pointer, place = where(frame), index(frame)
            frame[holder] = machine.load(pointer, place, line)
            machine.store(pointer, place, new(frame), line)

        return update

    def _index(self, target: Node) -> Run:
        if not isinstance(target, c_ast.ArrayRef):
            return lambda frame: 0
        index = self._value(target.subscript)
        if index.is_float or index.is_pointer:
            raise Fault("an index that is no integer", line_of(target))
        return index.run

    def _assign_variable(self, name: str, symbol: str, value: Value, line: int) -> Run:
        variable = self._variable(name)
        if variable is None:
            raise Fault(f"{name} is assigned to and is no variable", line)
        if variable.fixed:
            raise Fault(f"{name} is const and is assigned to", line)
        old = self._read(name, variable, line)
        if symbol:
            value = self._binary(symbol, old, value, line)
        new, slot = self._converted(value, variable.kind, line), variable.slot
        if variable.boxed:
            machine = self._machine

            def boxed(frame: Frame) -> None:
                machine.store(Pointer(frame[slot], 0, "any"), 0, new(frame), line)

            return boxed

        def run(frame: Frame) -> None:
            frame[slot] = new(frame)

        return run

    # -- expressions

    def _value(self, node: Node) -> Value:
        line = line_of(node)
        if isinstance(node, c_ast.Constant):
            return _constant(node.value)
        if isinstance(node, c_ast.ID):
            return self._name(node.name, line)
        if isinstance(node, c_ast.ArrayRef):
            return self._element(node)
        if isinstance(node, c_ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, c_ast.BinaryOp):
            if node.op in ("&&", "||"):
                return self._logic(node)
            return self._binary(node.op, self._value(node.left), self._value(node.right), line)
        if isinstance(node, c_ast.TernaryOp):
            return self._choice(node)
        if isinstance(node, c_ast.Cast):
            kind = type_of(node.to_type)
            value = self._value(node.expr)
            return Value(self._converted(value, _kind(kind), line), _kind(kind), kind.const)
        if isinstance(node, c_ast.FuncCall):
            return self._call(node)
        raise Unsupported(f"{type(node).__name__} in an expression", line)

    def _name(self, name: str, line: int) -> Value:
        for bound in reversed(self._bound):
            if name in bound:
                return bound[name]
        variable = self._variable(name)
        if variable is not None:
            return self._read(name, variable, line)
        if name in self._machine.constants:
            return _integer(self._machine.constants[name])
        if name in self._unit.enumerators:
            return _integer(self._unit.enumerators[name])
        if name in NUMBERS:
            kind = "int" if name.startswith("INT32") else "int64_t"
            number = NUMBERS[name]
            return Value(lambda frame: number, kind)
        special = {"NAN": NAN, "INFINITY": INFINITY}.get(name)
        if special is None:
            raise Fault(f"{name} is not declared", line)
        return Value(lambda frame: special, "float")

    def _read(self, name: str, variable: Variable, line: int) -> Value:
        slot = variable.slot
        machine = self._machine
        if variable.boxed:
            run: Run = lambda frame: machine.load(Pointer(frame[slot], 0, "any"), 0, line)  # noqa: E731
        elif variable.sure:
            run = lambda frame: frame[slot]  # noqa: E731
        else:

            def run(frame: Frame) -> Any:
                value = frame[slot]
                if value is None:
                    raise Fault(f"{name} is read and was never written", line)
                return value

        return Value(run, variable.kind, variable.const)

    def _element(self, node: c_ast.ArrayRef) -> Value:
        line = line_of(node)
        pointer = self._value(node.name)
        if not pointer.is_pointer or pointer.kind in ("void*", "char*"):
            raise Fault("an element of what is no array", line)
        index, where, machine = self._index(node), pointer.run, self._machine
        return Value(
            lambda frame: machine.load(where(frame), index(frame), line), pointer.kind[:-1]
        )

    def _unary(self, node: c_ast.UnaryOp) -> Value:
        line = line_of(node)
        if node.op == "&":
            return self._address(node.expr.name, line)
        if node.op == "!":
            truth = self._truth(node.expr)
            return Value(lambda frame: int(not truth(frame)), "int")
        value = self._value(node.expr)
        run = value.run
        if node.op == "*":
            if not value.is_pointer or value.kind == "void*":
                raise Fault("the element of what is no pointer", line)
            machine = self._machine
            return Value(lambda frame: machine.load(run(frame), 0, line), value.kind[:-1])
        if value.is_pointer:
            raise Fault(f"{node.op} of a pointer", line)
        if node.op == "-":
            if value.is_float:
                reals = self._machine.reals
                return Value(lambda frame: reals.neg(run(frame)), value.kind)
            return self._binary("-", _integer(0), value, line)
        if node.op == "~":
            if value.is_float:
                raise Fault("~ of a real", line)
            return self._binary("^", value, _integer(-1), line)
        return Value(run, value.kind if value.is_float else _promoted(value.kind))

    def _address(self, name: str, line: int) -> Value:
        variable = self._variable(name)
        if variable is None or not variable.boxed:
            raise Fault(f"the address of {name}", line)
        slot, kind = variable.slot, variable.kind
        return Value(lambda frame: Pointer(frame[slot], 0, kind), f"{kind}*", variable.const)

    def _logic(self, node: c_ast.BinaryOp) -> Value:
        left, right = self._truth(node.left), self._truth(node.right)
        if node.op == "&&":
            return Value(lambda frame: int(left(frame) and right(frame)), "int")
        return Value(lambda frame: int(left(frame) or right(frame)), "int")

    def _truth(self, node: Node) -> Callable[[Frame], bool]:
        value = self._value(node)
        run = value.run
        if value.is_pointer:
            raise Fault("the truth of a pointer", line_of(node))
        if not value.is_float:
            return lambda frame: run(frame) != 0
        reals = self._machine.reals
        return lambda frame: reals.sign(run(frame)) != 0

    def _choice(self, node: c_ast.TernaryOp) -> Value:
        line = line_of(node)
        condition = self._truth(node.cond)
        chosen, other = self._value(node.iftrue), self._value(node.iffalse)
        if chosen.is_pointer or other.is_pointer:
            raise Fault("a choice of pointers", line)
        kind = _common(chosen.kind, other.kind)
        one, two = self._converted(chosen, kind, line), self._converted(other, kind, line)
        return Value(lambda frame: one(frame) if condition(frame) else two(frame), kind)

    def _binary(self, symbol: str, left: Value, right: Value, line: int) -> Value:
        if left.is_pointer or right.is_pointer:
            return self._moved(symbol, left, right, line)
        if "void" in (left.kind, right.kind):
            raise Fault("a value that is void", line)
        kind = _common(left.kind, right.kind)
        one, two = self._converted(left, kind, line), self._converted(right, kind, line)
        if symbol in _ORDER:
            if kind in FLOATS:
                return Value(self._compared(symbol, one, two), "int")
            test = _ORDER[symbol]
            return Value(lambda frame: int(test(one(frame), two(frame))), "int")
        if kind in FLOATS:
            return Value(self._of_reals(symbol, one, two, line), kind)
        return Value(_of_integers(symbol, kind, one, two, line), kind)

    def _moved(self, symbol: str, left: Value, right: Value, line: int) -> Value:
        """Pointer arithmetic."""
        if right.is_pointer and symbol == "+":
            left, right = right, left
        if right.is_pointer or right.is_float or symbol not in "+-" or left.kind == "void*":
            raise Fault(f"{symbol} of pointers", line)
        where, count = left.run, right.run
        sign = 1 if symbol == "+" else -1
        return Value(lambda frame: where(frame).moved(sign * count(frame)), left.kind, left.const)

    def _compared(self, symbol: str, one: Run, two: Run) -> Run:
        test, reals, unordered = _ORDER[symbol], self._machine.reals, int(symbol == "!=")

        def run(frame: Frame) -> int:
            order = reals.compare(one(frame), two(frame))
            return unordered if order is None else int(test(order, 0))

        return run

    def _of_reals(self, symbol: str, one: Run, two: Run, line: int) -> Run:
        reals = self._machine.reals
        join = {"+": reals.add, "-": reals.sub, "*": reals.mul, "/": reals.div}.get(symbol)
        if join is None:
            raise Fault(f"{symbol} of reals", line)
        return lambda frame: join(one(frame), two(frame))

    # -- conversions

    def _converted(self, value: Value, kind: str, line: int) -> Run:
        """A value as another type."""
        run, given = value.run, value.kind
        if given == kind:
            return run
        if kind.endswith("*") or given.endswith("*"):
            return self._pointer(value, kind, line)
        if kind in FLOATS:
            return run if given in FLOATS else lambda frame: fmpq(run(frame))
        if kind == "void":
            raise Fault("a value that is void", line)
        low, high = _LIMITS[kind]
        if given in FLOATS:
            return self._truncated(run, low, high, kind, line)
        own = _LIMITS[_promoted(given)] if given not in _LIMITS else _LIMITS[given]
        if low <= own[0] and own[1] <= high:
            return run
        if kind == "int":

            def checked(frame: Frame) -> int:
                found: int = run(frame)
                if low <= found <= high:
                    return found
                raise Fault(f"{found} does not fit an int", line)

            return checked
        span = high - low + 1
        return lambda frame: (run(frame) - low) % span + low

    def _pointer(self, value: Value, kind: str, line: int) -> Run:
        """A pointer as one to another type: from and to ``void *`` alone."""
        run, given = value.run, value.kind
        free = ("void*", "char*")
        if not (kind.endswith("*") and given.endswith("*")) or "**" in kind + given:
            raise Fault(f"{given} as {kind}", line)
        if given not in free and kind not in free:
            raise Fault(f"{given} as {kind}", line)
        base = kind[:-1]

        def converted(frame: Frame) -> Pointer:
            found: Pointer = run(frame)
            if found.memory.base and base not in ("void", found.memory.base):
                raise Fault(f"{found.memory.name} is {found.memory.base}, not {base}", line)
            return Pointer(found.memory, found.offset, base, found.owner)

        return converted

    def _truncated(self, run: Run, low: int, high: int, kind: str, line: int) -> Run:
        reals = self._machine.reals

        def truncated(frame: Frame) -> int:
            found = run(frame)
            whole = found if isinstance(found, float) else reals.apply("trunc", found)
            if isinstance(whole, float) or not low <= int(whole.p) <= high:
                raise Fault(f"{found} as {kind}", line)
            return int(whole.p)

        return truncated

    # -- calls

    def _call(self, node: c_ast.FuncCall) -> Value:
        name, line = node.name.name, line_of(node)
        nodes = node.args.exprs if node.args is not None else []
        values = [self._value(one) for one in nodes]
        if name in self._unit.macros:
            return self._macro(self._unit.macros[name], values)
        if name in self._unit.signatures:
            return self._function(name, values, line)
        if name in ("cblas_sgemm", "cblas_dgemm") and name in self._unit.externals:
            return self._product(self._unit.externals[name], values, line)
        if name == "INT64_C":
            return Value(values[0].run, "int64_t")
        if name in CLASSIFY:
            return self._classified(name, values[0], line)
        defined = self._unit.defined.get(name)
        if defined is not None:
            return self._of_math(defined.op, defined.ctype, values, line)
        known = math_function(name)
        if known is None or name in self._unit.externals:
            raise Unsupported(f"a call of {name}", line)
        plain = name if known[0] == "double" else name[:-1]
        return self._of_math(plain, known[0], values, line)

    def _macro(self, macro: Macro, values: list[Value]) -> Value:
        if macro.kind == "round_up" and self._machine.tight:
            run = values[0].run
            return Value(lambda frame: (run(frame) + 7) // 8 * 8, values[0].kind)
        self._bound.append(dict(zip(macro.parameters, values, strict=True)))
        found = self._value(macro.body)
        self._bound.pop()
        return found

    def _function(self, name: str, values: list[Value], line: int) -> Value:
        machine = self._machine
        signature = self._unit.signatures[name]
        parameters = signature.parameters
        runs = tuple(
            self._converted(value, _kind(kind), line)
            for value, (_, kind) in zip(values, parameters, strict=True)
        )
        kind = _kind(signature.result)
        helper = machine.helpers.get(name)
        if helper is not None and all(one == CType("int64_t") for _, one in parameters):
            return Value(lambda frame: helper(*[run(frame) for run in runs]), kind)
        function = machine.compiled(name)
        return Value(lambda frame: machine.enter(function, [run(frame) for run in runs]), kind)

    def _of_math(self, name: str, kind: str, values: list[Value], line: int) -> Value:
        reals = self._machine.reals
        runs = [self._converted(value, kind, line) for value in values]
        if len(runs) == 1:
            run = runs[0]
            return Value(lambda frame: reals.apply(name, run(frame)), kind)
        one, two = runs
        return Value(lambda frame: reals.apply(name, one(frame), two(frame)), kind)

    def _classified(self, name: str, value: Value, line: int) -> Value:
        run = self._converted(value, "double", line)
        reals = self._machine.reals
        tests: dict[str, Callable[[Any], bool]] = {
            "isnan": lambda x: isinstance(x, float) and x != x,
            "isinf": lambda x: isinstance(x, float) and x == x,
            "isfinite": lambda x: not isinstance(x, float),
            "signbit": lambda x: reals.sign(x) == -1,
        }
        test = tests[name]
        return Value(lambda frame: int(test(run(frame))), "int")

    def _product(self, signature: Signature, values: list[Value], line: int) -> Value:
        """A product of matrices, by its definition."""
        _check_product(signature, line)
        runs = [
            self._converted(value, _kind(kind), line)
            for value, (_, kind) in zip(values, signature.parameters, strict=True)
        ]
        machine = self._machine

        def run(frame: Frame) -> None:
            _multiply(machine, [one(frame) for one in runs], line)

        return Value(run, "void")


@dataclass(frozen=True)
class _Parts:
    """The parts of a loop."""

    first: Run | None
    condition: Callable[[Frame], bool]
    body: Run
    following: Run
    line: int


def _one_by_one(machine: Machine, loop: _Parts) -> Run:
    """A loop."""
    first, condition, body, following = loop.first, loop.condition, loop.body, loop.following

    def run(frame: Frame) -> Any:
        if first is not None:
            first(frame)
        while condition(frame):
            machine.step(loop.line)
            result = body(frame)
            if result is not None:
                return result
            following(frame)
        return None

    return run


@dataclass(frozen=True)
class _Lanes:
    """A variable of a reduction clause: one for each lane."""

    variable: Variable
    neutral: Any
    join: Join
    line: int

    def get(self, frame: Frame) -> Any:
        """Its value."""
        held = frame[self.variable.slot]
        return held.cells.get(0) if self.variable.boxed else held

    def put(self, frame: Frame, value: Any) -> None:
        """Give it a value, in memory of the lane."""
        if self.variable.boxed:
            value = Memory("a lane", "any", 1, {0: value})
        frame[self.variable.slot] = value

    def join_all(self, frame: Frame, held: Any, values: Sequence[Any]) -> None:
        """Behind the loop: what there was before it, and what each lane has."""
        frame[self.variable.slot] = held
        total = self.get(frame)
        if total is None:
            raise Fault("a reduction of what was never written", self.line)
        for value in values:
            total = self.join(total, value)
        if self.variable.boxed:
            held.cells[0] = total
        else:
            frame[self.variable.slot] = total


def _side_by_side(
    machine: Machine, loop: _Parts, kind: str, check: Callable[[Frame], bool] | None,
    reductions: Sequence[_Lanes],
) -> Run:  # fmt: skip
    """A loop under ``#pragma omp``."""
    condition, body, following, line = loop.condition, loop.body, loop.following, loop.line

    def iterate(frame: Frame, log: Loop) -> None:
        held = [frame[one.variable.slot] for one in reductions]
        lanes = [[one.neutral for one in reductions] for _ in range(LANES)]
        while condition(frame):
            machine.step(line)
            own = lanes[log.iteration % LANES]
            for one, value in zip(reductions, own, strict=True):
                one.put(frame, value)
            body(frame)
            for place, one in enumerate(reductions):
                own[place] = one.get(frame)
            following(frame)
            log.iteration += 1
        for place, one in enumerate(reductions):
            one.join_all(frame, held[place], [own[place] for own in lanes])

    def run(frame: Frame) -> None:
        if check is not None:
            check(frame)
        if loop.first is not None:
            loop.first(frame)
        log = Loop(kind)
        machine.loops.append(log)
        try:
            iterate(frame, log)
        finally:
            machine.loops.pop()

    return run


def _integer(value: int) -> Value:
    return Value(lambda frame: value, "int" if abs(value) < 2**31 else "int64_t")


def _constant(text: str) -> Value:
    """A number as it is written: a real as it is stored."""
    if text.isdigit():
        return _integer(int(text))
    if text.endswith("u"):
        number = int(text[:-1])
        return Value(lambda frame: number, "unsigned")
    single = text.endswith("f")
    exact = Fraction(stored(text))
    value = fmpq(exact.numerator, exact.denominator)
    return Value(lambda frame: value, "float" if single else "double")


def _of_integers(symbol: str, kind: str, one: Run, two: Run, line: int) -> Run:
    low, high = _LIMITS[kind]
    if symbol in _BITS:
        join = _BITS[symbol]
        return lambda frame: join(one(frame), two(frame))
    compute = _ARITHMETIC.get(symbol) or (_quotient(line) if symbol == "/" else _rest(line))
    if kind in _WRAPS:
        return lambda frame: compute(one(frame), two(frame)) & high

    def run(frame: Frame) -> int:
        found: int = compute(one(frame), two(frame))
        if low <= found <= high:
            return found
        fault = Fault(f"{found} does not fit {kind}: {symbol} overflows", line)
        fault.wide = str(kind) == "int64_t"
        raise fault

    return run


def _quotient(line: int) -> Callable[[int, int], int]:
    def divide(x: int, y: int) -> int:
        if y == 0:
            raise Fault("an integer is divided by zero", line)
        return x // y if (x < 0) == (y < 0) or x % y == 0 else x // y + 1

    return divide


def _rest(line: int) -> Callable[[int, int], int]:
    divide = _quotient(line)
    return lambda x, y: x - y * divide(x, y)


# -- products of matrices

_ROW_MAJOR, _PLAIN, _TRANSPOSED = 101, 111, 112


def _check_product(signature: Signature, line: int) -> None:
    """That the BLAS is declared as it is."""
    real = "float" if signature.name == "cblas_sgemm" else "double"
    whole, number = CType("int"), CType(real)
    matrix = CType(real, 1, True)
    wanted = [
        *[whole] * 6, number, matrix, whole, matrix, whole, number, CType(real, 1), whole,
    ]  # fmt: skip
    if signature.result != CType("void") or [kind for _, kind in signature.parameters] != wanted:
        raise Fault(f"{signature.name} is declared as another function", line)


def _multiply(machine: Machine, arguments: list[Any], line: int) -> None:
    order, form, other, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc = arguments
    forms = {_PLAIN, _TRANSPOSED}
    if order != _ROW_MAJOR or form not in forms or other not in forms or min(m, n, k) < 0:
        raise Fault("the BLAS is called with a wrong argument", line)
    wide = (k if form == _PLAIN else m, n if other == _PLAIN else k, n)
    for name, given, least in zip(("lda", "ldb", "ldc"), (lda, ldb, ldc), wide, strict=True):
        if given < max(1, least):
            raise Fault(f"{name} is {given}, at least {max(1, least)} is needed", line)
    reals = machine.reals
    found = []
    for i in range(m):
        for j in range(n):
            total = ZERO
            for p in range(k):
                machine.step(line)
                left = machine.load(a, i * lda + p if form == _PLAIN else p * lda + i, line)
                right = machine.load(b, p * ldb + j if other == _PLAIN else j * ldb + p, line)
                total = reals.add(total, reals.mul(left, right))
            total = total if alpha == ONE else reals.mul(alpha, total)
            if beta != ZERO:
                kept = machine.load(c, i * ldc + j, line)
                total = reals.add(total, reals.mul(beta, kept))
            found.append((i * ldc + j, total))
    touched = {(one.memory, one.offset + place) for one, place in _read_places(arguments)}
    for place, total in found:
        if (c.memory, c.offset + place) in touched:
            raise Fault("the BLAS writes what it reads", line)
        machine.store(c, place, total, line)


def _read_places(arguments: list[Any]) -> list[tuple[Pointer, int]]:
    """The elements of both factors that a product reads, where the result may be one of them."""
    _, form, other, m, n, k, _, a, lda, b, ldb, _, c, _ = arguments
    found = []
    for pointer, lead, rows, columns in (
        (a, lda, *((m, k) if form == _PLAIN else (k, m))),
        (b, ldb, *((k, n) if other == _PLAIN else (n, k))),
    ):
        if pointer.memory is c.memory:
            scale = 1 if pointer.memory.base else BYTES[pointer.base]
            found += [
                (pointer, (row * lead + column) * scale)
                for row in range(rows) for column in range(columns)
            ]  # fmt: skip
    return found


# -- which variables need memory of their own


def _boxed(unit: Unit, function: c_ast.FuncDef) -> set[Any]:
    """Declarations (and names of parameters) whose address is taken, or that a loop under
    ``#pragma omp`` assigns to from outside, and not by its reduction clause.
    """  # noqa: D205
    found: set[Any] = set()
    names = {one.name: (one.name, 0) for one in _parameters(function)}
    _Boxes(unit, found).visit(function.body, [names], [])
    return found


def _parameters(function: c_ast.FuncDef) -> list[c_ast.Decl]:
    args = function.decl.type.args
    return [one for one in args.params if isinstance(one, c_ast.Decl)] if args is not None else []


class _Boxes:
    def __init__(self, unit: Unit, found: set[Any]) -> None:
        self._unit = unit
        self._found = found

    def visit(
        self, node: Node, scopes: list[dict[str, tuple[Any, int]]], loops: list[set[str]]
    ) -> None:
        """``scopes``: what names mean, and under how many loops they are declared.

        ``loops``: the names in the reduction clause of each loop around.
        """
        if isinstance(node, c_ast.Compound):
            self._block(node, scopes, loops)
            return
        if isinstance(node, c_ast.For):
            scopes = [*scopes, {}]
        if isinstance(node, c_ast.Decl):
            scopes[-1][node.name] = (node, len(loops))
        target = None
        if isinstance(node, c_ast.Assignment):
            target = node.lvalue
        elif isinstance(node, c_ast.UnaryOp) and node.op in ("p++", "p--", "++", "--"):
            target = node.expr
        if isinstance(target, c_ast.ID):
            self._assigned(target.name, scopes, loops)
        if isinstance(node, c_ast.UnaryOp) and node.op == "&":
            self._box(node.expr.name, scopes)
        for _, child in node.children():
            self.visit(child, scopes, loops)

    def _block(
        self, node: c_ast.Compound, scopes: list[dict[str, tuple[Any, int]]], loops: list[set[str]]
    ) -> None:
        scopes = [*scopes, {}]
        pragma = None
        for one in node.block_items or []:
            if isinstance(one, c_ast.Pragma):
                pragma = one
                continue
            if pragma is None:
                self.visit(one, scopes, loops)
            else:
                names = {name for _, name in self._unit.directive(pragma).reductions}
                own = [*scopes, {}]
                decl = one.init.decls[0]
                own[-1][decl.name] = (decl, len(loops) + 1)
                self.visit(one, own, [*loops, names])
            pragma = None

    def _assigned(
        self, name: str, scopes: list[dict[str, tuple[Any, int]]], loops: list[set[str]]
    ) -> None:
        for scope in reversed(scopes):
            if name in scope:
                decl, depth = scope[name]
                if any(name not in clause for clause in loops[depth:]):
                    self._found.add(decl)
                return

    def _box(self, name: str, scopes: list[dict[str, tuple[Any, int]]]) -> None:
        for scope in reversed(scopes):
            if name in scope:
                self._found.add(scope[name][0])
                return
