"""C as a tree, and its text.

In: nothing.  Out: frozen records; ``expression_text`` and ``statements_text`` print them.

    Expression ::= Text(text, binding)              a name, number or call already in C
                 | Binary(operator, left, right) | Choice(condition, chosen, other)
                 | Call(function, arguments) | Element(array, index) | Cast(type, operand)
                 | Unary(operator, operand)
    Statement  ::= Declare | Assign | For | If | Line | Comment | Block
"""

from __future__ import annotations

from collections.abc import Sequence
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


# -- text


INDENT = "    "
WIDTH = 100


def expression_text(expression: Expression) -> str:
    """An expression in C."""
    if isinstance(expression, Text):
        return expression.text
    if isinstance(expression, Unary):
        return expression.operator + _prefixed(expression.operand, expression.operator)
    if isinstance(expression, Binary):
        return _binary(expression)
    if isinstance(expression, Choice):
        condition = within(expression.condition, CHOICE + 1)
        chosen = within(expression.chosen, CHOICE + 1)
        return f"{condition} ? {chosen} : {within(expression.other, CHOICE)}"
    if isinstance(expression, Call):
        arguments = ", ".join(expression_text(argument) for argument in expression.arguments)
        return f"{expression.function}({arguments})"
    if isinstance(expression, Element):
        return f"{expression.array}[{expression_text(expression.index)}]"
    return f"({expression.type}){_prefixed(expression.operand, '(')}"


def least(first: Expression, second: Expression) -> Expression:
    """The lesser of two numbers."""
    return Text(f"MIN({expression_text(first)}, {expression_text(second)})")


def greatest(first: Expression, second: Expression) -> Expression:
    """The greater of two numbers."""
    return Text(f"MAX({expression_text(first)}, {expression_text(second)})")


def within(expression: Expression, least: int) -> str:
    """An expression as an operand: in parentheses where it binds looser than ``least``."""
    text = expression_text(expression)
    return f"({text})" if binding(expression) < least else text


def _prefixed(operand: Expression, operator: str) -> str:
    """An operand of a prefix operator; ``- -x`` must not become ``--x``."""
    text = within(operand, PREFIX)
    return f"({text})" if text.startswith(operator) and operator in "+-" else text


def _binary(expression: Binary) -> str:
    own = BINDING[expression.operator]
    left = _operand(expression.left, own, own)
    right = _operand(expression.right, own, own + 1)
    if right.startswith("-"):
        right = f"({right})"
    tight = expression.operator in "*/%" and len(left) + len(right) < WIDTH // 4
    space = "" if tight and " " not in left + right else " "
    return f"{left}{space}{expression.operator}{space}{right}"


def _operand(operand: Expression, own: int, least: int) -> str:
    """An operand; mixtures of && and ||, of comparisons, read better in parentheses."""
    inner = binding(operand)
    mixed = inner in (OR, AND) and inner != own
    compared = own in (EQUAL, COMPARE) and inner in (EQUAL, COMPARE)
    return within(operand, ATOM if mixed or compared else least)


def statements_text(statements: Sequence[Statement], depth: int = 1) -> str:
    """Statements in C, one a line, each line ended."""
    lines: list[str] = []
    for statement in statements:
        _print(statement, depth, lines)
    return "".join(line + "\n" for line in lines)


def _print(statement: Statement, depth: int, lines: list[str]) -> None:
    pad = INDENT * depth
    if isinstance(statement, Declare):
        value = expression_text(statement.value)
        space = "" if statement.type.endswith(" *") else " "
        lines.extend(_wrapped(f"{statement.type}{space}{statement.name} = {value};", pad))
    elif isinstance(statement, Assign):
        target = expression_text(statement.target)
        value = expression_text(statement.value)
        lines.extend(_wrapped(f"{target} {statement.operator} {value};", pad))
    elif isinstance(statement, Line):
        lines.extend(_wrapped(statement.text, pad))
    elif isinstance(statement, Comment):
        lines.append(f"{pad}/* {statement.text} */")
    elif isinstance(statement, If):
        _braced(f"if ({expression_text(statement.condition)})", statement.body, depth, lines)
        if statement.otherwise:
            closed = lines[-1] == f"{pad}}}"
            if closed:
                lines.pop()
            _braced("} else" if closed else "else", statement.otherwise, depth, lines)
    elif isinstance(statement, Block):
        lines.append(f"{pad}{{")
        for inner in statement.body:
            _print(inner, depth + 1, lines)
        lines.append(f"{pad}}}")
    else:
        if statement.pragma:
            lines.append(f"{pad}{statement.pragma}")
        _braced(_head(statement), statement.body, depth, lines)


def _head(loop: For) -> str:
    variable = loop.variable
    start, stop = within(loop.start, SUM), within(loop.stop, SUM)
    if loop.downwards:
        return f"for (int64_t {variable} = {stop} - 1; {variable} >= {start}; {variable}--)"
    step = f"{variable} += {loop.step}" if loop.step else f"{variable}++"
    return f"for (int64_t {variable} = {start}; {variable} < {stop}; {step})"


def _braced(head: str, body: Sequence[Statement], depth: int, lines: list[str]) -> None:
    """A head and its body; braces are left out around a single simple statement."""
    pad = INDENT * depth
    inner: list[str] = []
    for statement in body:
        _print(statement, depth + 1, inner)
    simple = len(inner) == 1 and not isinstance(body[0], (Declare, Comment, Block))
    lines.append(f"{pad}{head}" if simple else f"{pad}{head} {{")
    lines.extend(inner)
    if not simple:
        lines.append(f"{pad}}}")


def _wrapped(text: str, pad: str) -> list[str]:
    """A statement on as many lines as it needs, broken at spaces outside of brackets' reach."""
    lines: list[str] = []
    indent = pad
    while len(indent) + len(text) > WIDTH:
        cut = text.rfind(" ", 0, WIDTH - len(indent))
        if cut <= 0:
            break
        lines.append(indent + text[:cut])
        text, indent = text[cut + 1 :], pad + INDENT
    return [*lines, indent + text]
