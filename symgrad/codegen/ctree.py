"""The C that is emitted, as a tree: expressions and statements.

In: nothing.  Out: frozen records that ``symgrad.codegen.printer`` prints.

    Expression ::= Text(text, binding)              a name, number or call already in C
                 | Binary(operator, left, right) | Choice(condition, chosen, other)
                 | Call(function, arguments) | Element(array, index) | Cast(type, operand)
                 | Unary(operator, operand)
    Statement  ::= Declare | Assign | For | If | Line | Comment | Block
"""

from __future__ import annotations

from dataclasses import dataclass

# How tightly C binds, from the loosest; an operand that binds looser is put in parentheses.
CHOICE, OR, AND, BITS, EQUAL, COMPARE, SUM, PRODUCT, PREFIX, ATOM = range(1, 11)

BINDING = {
    "||": OR, "&&": AND, "|": BITS, "&": BITS, "==": EQUAL, "!=": EQUAL, "<": COMPARE,
    "<=": COMPARE, ">": COMPARE, ">=": COMPARE, "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT,
    "%": PRODUCT,
}  # fmt: skip


@dataclass(frozen=True)
class Text:
    """C text that is atomic unless ``binding`` says otherwise."""

    text: str
    binding: int = ATOM


@dataclass(frozen=True)
class Unary:
    """``operator operand``."""

    operator: str
    operand: Expression


@dataclass(frozen=True)
class Binary:
    """``left operator right``, evaluated as it is written: right operands keep parentheses."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Choice:
    """``condition ? chosen : other``."""

    condition: Expression
    chosen: Expression
    other: Expression


@dataclass(frozen=True)
class Call:
    """``function(arguments)``."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Element:
    """``array[index]``."""

    array: str
    index: Expression


@dataclass(frozen=True)
class Cast:
    """``(type)operand``."""

    type: str
    operand: Expression


Expression = Text | Unary | Binary | Choice | Call | Element | Cast


@dataclass(frozen=True)
class Declare:
    """``type name = value;``."""

    type: str
    name: str
    value: Expression


@dataclass(frozen=True)
class Assign:
    """``target operator value;``."""

    target: Expression
    value: Expression
    operator: str = "="


@dataclass(frozen=True)
class For:
    """A loop of ``variable`` from ``start`` up to ``stop``, or down from ``stop - 1``."""

    variable: str
    start: Expression
    stop: Expression
    body: tuple[Statement, ...]
    pragma: str = ""
    step: str = ""
    downwards: bool = False


@dataclass(frozen=True)
class If:
    """``if (condition) body else otherwise``."""

    condition: Expression
    body: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class Block:
    """Statements in a scope of their own."""

    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Line:
    """A statement as text, its semicolon included."""

    text: str


@dataclass(frozen=True)
class Comment:
    """``/* text */``."""

    text: str


Statement = Declare | Assign | For | If | Block | Line | Comment


def name(text: str) -> Text:
    """A name."""
    return Text(text)


def number(value: int) -> Text:
    """An integer."""
    return Text(str(value), ATOM if value >= 0 else PREFIX)


def binding(expression: Expression) -> int:
    """How tightly an expression holds together."""
    if isinstance(expression, Text):
        return expression.binding
    if isinstance(expression, Binary):
        return BINDING[expression.operator]
    if isinstance(expression, Choice):
        return CHOICE
    if isinstance(expression, (Unary, Cast)):
        return PREFIX
    return ATOM


def is_leaf(expression: Expression) -> bool:
    """Is it a name or a number?"""
    return isinstance(expression, Text) and expression.binding == ATOM
