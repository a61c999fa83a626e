"""The types of a unit: C that converts without saying so is not validated.

In: a parsed unit.  Out: nothing, or ``Unsupported`` with the line.

C widens, narrows and changes signs in silence, and what it computes in ``int`` overflows early.
Here each value goes where its own type is expected, and integers are computed in ``int64_t``:

- an integer goes into each type that holds all values that it may have; a number of the text
  into each that holds it, and ``float`` into ``double``;
- all else takes a cast, and pointers are never cast;
- what is computed in ``int`` fits in it for all operands, no type but ``uint8_t`` is unsigned, and
  no ``char`` is there but the pointer into the workspace.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from pycparser import c_ast

from symgrad.validate.rounding import nearest, stored
from symgrad.validate.source import (
    CLASSIFY,
    FLOATS,
    INTEGERS,
    NUMBERS,
    CType,
    Node,
    Signature,
    Unit,
    Unsupported,
    line_of,
    math_function,
    type_of,
    walk,
)

NARROW = ("int8_t", "int16_t", "int32_t", "uint8_t", "int")
SCALARS = (*NARROW, "int64_t", *FLOATS)
"""The types that a number may have, each of which C converts to those behind it."""


@dataclass(frozen=True)
class Kind:
    """What an expression is.

    ``values``: the least and the greatest that an integer narrower than ``int64_t`` may have.
    ``number``: the value of a float that the text has.
    """

    base: str
    pointers: int = 0
    const: bool = False
    values: tuple[int, int] | None = None
    number: float | None = None

    @property
    def whole(self) -> bool:
        """Is it an integer?"""
        return not self.pointers and self.base in (*NARROW, "int64_t")

    @property
    def real(self) -> bool:
        """Is it a float?"""
        return not self.pointers and self.base in FLOATS

    @property
    def range(self) -> tuple[int, int]:
        """The least and the greatest value of an integer."""
        return self.values or INTEGERS[self.base]

    @property
    def flag(self) -> bool:
        """Is it 0 or 1?"""
        return self.whole and self.range[0] >= 0 and self.range[1] <= 1

    def __str__(self) -> str:
        return str(CType(self.base, self.pointers, self.const and bool(self.pointers)))


TRUTH = Kind("int", values=(0, 1))


def _number(value: int) -> Kind:
    return Kind("int" if value <= INTEGERS["int"][1] else "int64_t", values=(value, value))


def check(unit: Unit, functions: Collection[str] | None = None) -> None:
    """Raises Unsupported where something is converted, or computed in too small a type.

    ``functions``: those that are looked into; None for all.
    """
    for name, function in unit.functions.items():
        if functions is None or name in functions:
            _Function(unit, unit.signatures[name]).check(function.body)


class _Function:
    """One function: the types of its names, by scopes."""

    def __init__(self, unit: Unit, signature: Signature) -> None:
        self._unit = unit
        self._name_of, self._result = signature.name, signature.result
        self._calls = {**unit.externals, **unit.signatures}
        self._scopes: list[dict[str, Kind]] = [{}]
        for name, kind in signature.parameters:
            if kind.base not in (*SCALARS, "void", "char") or (
                not kind.pointers and kind.base in ("void", "char")
            ):
                raise Unsupported(f"{name} is {kind}", signature.line)
            self._scopes[0][name] = Kind(kind.base, kind.pointers, kind.const)

    def check(self, node: Node) -> None:
        """A statement, and what is in it."""
        if isinstance(node, c_ast.Compound):
            self._inside(node.block_items or [])
        elif isinstance(node, c_ast.Pragma):
            condition = self._unit.directive(node).condition
            if condition is not None:
                self._condition(condition)
        elif isinstance(node, c_ast.Decl):
            self._declare(node)
        elif isinstance(node, c_ast.For):
            self._inside([*node.init.decls, node.stmt, node.next], node.cond)
        elif isinstance(node, c_ast.If):
            self._condition(node.cond)
            self._inside([one for one in (node.iftrue, node.iffalse) if one is not None])
        else:
            self._simple(node)

    def _simple(self, node: Node) -> None:
        if isinstance(node, c_ast.Return):
            if node.expr is not None:
                self._goes(self._kind(node.expr), self._result, node)
        elif isinstance(node, c_ast.Assignment):
            self._assign(node)
        elif isinstance(node, c_ast.UnaryOp):
            if self._kind(node.expr) != Kind("int64_t"):
                raise _bad(node, "steps of what is no int64_t")
        else:
            self._kind(node.expr if isinstance(node, c_ast.Cast) else node)

    def _inside(self, nodes: Sequence[Node], condition: Node | None = None) -> None:
        self._scopes.append({})
        for place, one in enumerate(nodes):
            self.check(one)
            if condition is not None and place == 0:
                self._condition(condition)
        self._scopes.pop()

    def _declare(self, node: c_ast.Decl) -> None:
        made = type_of(node)
        if made.base not in (*SCALARS, "char") or (made.base == "char" and not made.pointers):
            raise _bad(node, f"{node.name} is {made}")
        array = isinstance(node.type, c_ast.ArrayDecl)
        kind = Kind(made.base, made.pointers + array, made.const)
        value = None if node.init is None else self._kind(node.init)
        if kind.whole and kind.base == "int":
            byte = made.const and value is not None and value.base == "uint8_t"
            held = INTEGERS["uint8_t"] if byte else TRUTH.values
            kind = Kind("int", const=made.const, values=held)
        if value is not None:
            self._goes(value, kind, node)
        elif made.pointers:
            raise _bad(node, f"{node.name} points nowhere")
        self._scopes[-1][node.name] = kind

    def _assign(self, node: c_ast.Assignment) -> None:
        target, value = self._kind(node.lvalue), self._kind(node.rvalue)
        if target.base == "char" and self._name_of == "carve":
            return  # whose text is known
        if target.pointers or target.const:
            raise _bad(node, f"{target}, const or a pointer, is assigned to")
        if node.op in ("|=", "&="):
            if not _bits(target, value):
                raise _bad(node, f"{node.op} of what is no truth")
            return
        if node.op != "=" and target.base not in ("int64_t", *FLOATS):
            raise _bad(node, f"{node.op} computes in {target}")
        self._goes(value, target, node)

    def _goes(self, value: Kind, target: Kind | CType, node: Node) -> None:
        """May a value go there without a word?"""
        if value.pointers or target.pointers:
            fits = value.pointers == target.pointers and (target.const or not value.const)
            raw = value.pointers == target.pointers == 1 and value.base in ("void", "char")
            if not fits or (value.base != target.base and not raw):
                raise _bad(node, f"{value} becomes {target}")
        elif value.base != target.base and not _exact(value, target.base):
            raise _bad(node, f"{value} becomes {target} without a cast")
        elif isinstance(target, Kind) and target.flag and not value.flag:
            raise _bad(node, "a variable of type int holds a truth, and nothing else")

    def _condition(self, node: Node) -> None:
        kind = self._kind(node)
        if not kind.whole:
            raise _bad(node, f"{kind} is a condition")

    # -- expressions

    def _kind(self, node: Node) -> Kind:
        """The type of an expression, all of which is checked."""
        if isinstance(node, c_ast.Constant):
            return _constant(node)
        if isinstance(node, c_ast.ID):
            return self._name(node)
        if isinstance(node, c_ast.ArrayRef):
            if not self._kind(node.subscript).whole:
                raise _bad(node, "an index that is no integer")
            return self._pointed(self._kind(node.name), node)
        if isinstance(node, c_ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, c_ast.BinaryOp):
            return self._binary(node)
        if isinstance(node, c_ast.TernaryOp):
            self._condition(node.cond)
            return self._common(self._kind(node.iftrue), self._kind(node.iffalse), node)
        if isinstance(node, c_ast.Cast):
            return self._cast(node)
        if isinstance(node, c_ast.FuncCall):
            return self._call(node)
        raise _bad(node, f"the type of {type(node).__name__}")

    def _name(self, node: c_ast.ID) -> Kind:
        for scope in reversed(self._scopes):
            if node.name in scope:
                return scope[node.name]
        constant = self._unit.constants.get(node.name)
        if constant is not None:
            return Kind("int") if constant.open else _number(constant.value)
        if node.name in self._unit.enumerators:
            return _number(self._unit.enumerators[node.name])
        if node.name in NUMBERS:
            wide = node.name.startswith("INT64")
            return Kind("int64_t") if wide else _number(NUMBERS[node.name])
        if node.name in ("NAN", "INFINITY"):
            return Kind("float", number=float(node.name[:3].lower()))
        raise _bad(node, f"the type of {node.name}")

    def _pointed(self, kind: Kind, node: Node) -> Kind:
        if not kind.pointers or kind.base == "void":
            raise _bad(node, f"an element of {kind}")
        return Kind(kind.base, kind.pointers - 1, kind.const)

    def _unary(self, node: c_ast.UnaryOp) -> Kind:
        kind = self._kind(node.expr)
        if node.op == "&":
            return Kind(kind.base, kind.pointers + 1, kind.const)
        if node.op == "*":
            return self._pointed(kind, node)
        if node.op == "!" and kind.whole:
            return TRUTH
        if node.op == "-" and kind.real:
            return Kind(kind.base, number=None if kind.number is None else -kind.number)
        if node.op == "-" and kind.whole:
            low, high = kind.range
            return kind if kind.base == "int64_t" else _computed(node, (-high, -low))
        raise _bad(node, f"{node.op} of {kind}")

    def _binary(self, node: c_ast.BinaryOp) -> Kind:
        left, right = self._kind(node.left), self._kind(node.right)
        if node.op in ("&&", "||"):
            for one in (left, right):
                if not one.whole:
                    raise _bad(node, f"{node.op} of {one}")
            return TRUTH
        if node.op in ("|", "&"):
            if not _bits(left, right):
                raise _bad(node, f"{node.op} of what is no truth")
            return Kind("int", values=(0, max(left.range[1], right.range[1])))
        if left.pointers or right.pointers:
            if node.op not in "+-" or left.base not in SCALARS or not right.whole:
                raise _bad(node, f"{left} {node.op} {right}")
            return left
        if node.op in ("<", "<=", ">", ">=", "==", "!="):
            self._common(left, right, node)
            return TRUTH
        made = self._common(left, right, node)
        if made.base in FLOATS and node.op == "%":
            raise _bad(node, "% of floats")
        if made.base != "int":
            return Kind(made.base)
        return _computed(node, _interval(node, left.range, right.range))

    def _common(self, left: Kind, right: Kind, node: Node) -> Kind:
        """The type that C gives both, which must hold each exactly: either one, or an operand."""
        if not all(one.whole or one.real for one in (left, right)):
            raise _bad(node, f"{left} and {right} are compared, or one is chosen")
        base = max((left.base, right.base, "int"), key=SCALARS.index)
        for one in (left, right):
            if one.base != base and not _exact(one, base):
                raise _bad(node, f"{one} becomes {base} without a cast")
        if base != "int":
            return Kind(base)
        (low, high), (other_low, other_high) = left.range, right.range
        return Kind(base, values=(min(low, other_low), max(high, other_high)))

    def _cast(self, node: c_ast.Cast) -> Kind:
        target, value = type_of(node.to_type), self._kind(node.expr)
        if target.pointers or value.pointers or target.base not in SCALARS:
            raise _bad(node, f"{value} is cast to {target}")
        if value.real and target.base not in ("int64_t", *FLOATS):
            raise _bad(node, f"{value} is cast to {target}")
        values = value.values if target.base in INTEGERS and _exact(value, target.base) else None
        return Kind(target.base, values=values)

    def _call(self, node: c_ast.FuncCall) -> Kind:
        name = node.name.name
        given = [self._kind(one) for one in (node.args.exprs if node.args else [])]
        if name in self._unit.macros:
            return self._macro(name, given, node)
        if name in self._calls:
            signature = self._calls[name]
            for value, (_, kind) in zip(given, signature.parameters, strict=True):
                self._goes(value, kind, node)
            return Kind(signature.result.base, signature.result.pointers, signature.result.const)
        if name in CLASSIFY and given[0].real:
            return TRUTH
        if name == "INT64_C":
            return Kind("int64_t", values=given[0].values)
        known = math_function(name)
        if known is None:
            raise _bad(node, f"the type of {name}")
        for value in given:
            self._goes(value, CType(known[0]), node)
        return Kind(known[0])

    def _macro(self, name: str, given: Sequence[Kind], node: Node) -> Kind:
        """A macro is its body, with the types of its arguments."""
        macro = self._unit.macros[name]
        outer, self._scopes = self._scopes, [dict(zip(macro.parameters, given, strict=True))]
        try:
            return self._kind(macro.body)
        except Unsupported as problem:
            raise _bad(node, problem.reason) from problem
        finally:
            self._scopes = outer


def _bad(node: Node, reason: str) -> Unsupported:
    lines: Iterator[int] = (line_of(one) for one in walk(node))
    return Unsupported(reason, next((line for line in lines if line), 0))


def _constant(node: c_ast.Constant) -> Kind:
    text = node.value
    if text.endswith("u"):
        raise _bad(node, f"the number {text} is unsigned")
    if text.isdigit():
        return _number(int(text))
    return Kind("float" if text.endswith("f") else "double", number=stored(text))


def _bits(left: Kind, right: Kind) -> bool:
    """Are both truths, or bytes, of which ``|`` and ``&`` make one?"""
    bases = ("int", "uint8_t")
    return all(one.flag or one.base == "uint8_t" for one in (left, right)) and all(
        one.whole and one.base in bases for one in (left, right)
    )


def _exact(value: Kind, base: str) -> bool:
    """Does a type hold a value exactly, whatever it is?"""
    if value.number is not None:
        if base in INTEGERS:
            return False
        return value.number != value.number or nearest(value.number, base) == value.number
    if base in FLOATS and value.base not in FLOATS:
        return value.values is not None and max(map(abs, value.values)) <= 2**24
    if base in FLOATS or value.base in FLOATS:
        return (value.base, base) == ("float", "double")
    (least, most), (low, high) = value.range, INTEGERS[base]
    return low <= least and most <= high


def _interval(
    node: c_ast.BinaryOp, one: tuple[int, int], other: tuple[int, int]
) -> tuple[int, int]:
    """The least and the greatest result of arithmetic on integers in two ranges."""
    (low, high), (least, most) = one, other
    if node.op == "+":
        return low + least, high + most
    if node.op == "-":
        return low - most, high - least
    if node.op == "*":
        made = [x * y for x in one for y in other]
        return min(made), max(made)
    if low < 0 or least <= 0:
        raise _bad(node, f"{node.op} of what may be negative, or by 0")
    return (low // most, high // least) if node.op == "/" else (0, min(high, most - 1))


def _computed(node: Node, values: tuple[int, int]) -> Kind:
    """What is computed in ``int``, which must hold it."""
    if values[0] < INTEGERS["int"][0] or values[1] > INTEGERS["int"][1]:
        raise _bad(node, "arithmetic in int that may overflow")
    return Kind("int", values=values)
