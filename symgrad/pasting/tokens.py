"""Small edits of a method's text: what undoes a slip of one token.

In: the source of backward.  Out: the method with each edit, likeliest first: a sign, an operator, a
number, an axis, ``keepdim``, a transposition, an operation or a factor too many, the name of
another tensor, a factor that was left out.

Nothing here is known to be right: the caller proves what it offers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from symgrad.pasting.patch import Edit, Method, own_nodes, parameters, unwarned

_OPERATORS: dict[type[ast.operator], tuple[str, tuple[str, ...]]] = {
    ast.Add: ("+", ("-", "*")), ast.Sub: ("-", ("+",)), ast.Mult: ("*", ("+", "/", "**")),
    ast.Div: ("/", ("*",)), ast.BitAnd: ("&", ("|",)), ast.BitOr: ("|", ("&",)),
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Gt: (">", ("<", ">=")), ast.Lt: ("<", (">", "<=")), ast.GtE: (">=", ("<=", ">")),
    ast.LtE: ("<=", (">=", "<")), ast.Eq: ("==", ("!=",)), ast.NotEq: ("!=", ("==",)),
}  # fmt: skip
_PAIRS = (
    ("sum", "mean"), ("sigmoid", "tanh"), ("sin", "cos"), ("sinh", "cosh"), ("exp", "log1p"),
    ("exp", "expm1"), ("log", "log1p"), ("sqrt", "rsqrt"), ("tril", "triu"), ("abs", "sign"),
    ("amax", "amin"), ("maximum", "minimum"), ("scatter_add", "scatter"),
    ("index_add", "index_copy"), ("square", "abs"), ("exp", "exp2"),
)  # fmt: skip
_NAMES = {one: [b if one == a else a for a, b in _PAIRS if one in (a, b)]
          for pair in _PAIRS for one in pair}  # fmt: skip
_REDUCED = frozenset(("sum", "mean", "amax", "amin", "prod", "logsumexp"))
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)
Rule = Callable[["_Text", ast.AST], Iterator[list[Edit]]]


def token_edits(method: Method) -> Iterator[Method]:
    """The method with each small edit that leaves it a method."""
    text = _Text(method)
    seen = {method.lines}
    for rule in _RULES:
        for node in text.nodes:
            for edits in rule(text, node):
                try:
                    made = method.edited(edits)
                except (SyntaxError, UnicodeDecodeError):
                    continue
                if made.lines not in seen:
                    seen.add(made.lines)
                    yield made


class _Text:
    """A method, its nodes that may be edited, and the tensors that it names."""

    def __init__(self, method: Method) -> None:
        self.method = method
        self.nodes = list(own_nodes(method.tree))
        stores = [
            node.id for node in self.nodes
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]  # fmt: skip
        self.names = list(dict.fromkeys([*parameters(method)[1:], *stores]))
        self.terms = list(self._terms())
        self.owners = [
            node.func if isinstance(node, ast.Call) else node.value
            for node in self.nodes if isinstance(node, (ast.Call, ast.Attribute, ast.Subscript))
        ]  # fmt: skip

    def _terms(self) -> Iterator[ast.expr]:
        """The expressions that a factor or a sign may be missing of."""
        for node in self.nodes:
            if isinstance(node, (ast.Return, ast.Assign)) and node.value is not None:
                found = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                yield from found
            elif isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Pow):
                yield from (node.left, node.right)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield node.func.value

    def atom(self, node: ast.expr) -> str:
        """The text of an expression, in parentheses where it needs them."""
        text = self.method.segment(node)
        return text if isinstance(node, _ATOMS) else f"({text})"

    def put(self, node: ast.AST, text: str) -> list[Edit]:
        """A node replaced by a text, in parentheses where something is read from a sum or so."""
        assert isinstance(node, (ast.expr, ast.keyword))
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
        return [
            Edit(start, end, text if node not in self.owners or _is_read(text) else f"({text})")
        ]

    def between(self, left: ast.expr, right: ast.expr, old: str, new: str) -> list[list[Edit]]:
        """An operator replaced, where it stands in one line with its operands."""
        row, start = left.end_lineno, left.end_col_offset
        if row != right.lineno or row is None or start is None:
            return []
        part = self.method.lines[row - 1].encode()[start : right.col_offset].decode()
        place = part.find(old)
        if place < 0:
            return []
        at = start + len(part[:place].encode())
        return [[Edit((row, at), (row, at + len(old)), new)]]


def _is_read(text: str) -> bool:
    """Can something be read from an expression that is written like this?"""
    try:
        with unwarned():
            tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        return False  # it stands in several lines
    return isinstance(tree, _ATOMS) and not isinstance(tree, ast.Constant)


# -- the edits of one node, by kind


def _signs(text: _Text, node: ast.AST) -> Iterator[list[Edit]]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield text.put(node, text.atom(node.operand))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield from _operators(text, node)
    elif node in text.terms and not isinstance(node, ast.Constant):
        assert isinstance(node, ast.expr)
        yield text.put(node, f"-{text.atom(node)}")


def _numeric(text: _Text, node: ast.AST) -> Iterator[list[Edit]]:
    """Without a factor or a term that is a number."""
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else []
    for kept, other in zip(sides, reversed(sides), strict=True):
        if isinstance(other, ast.Constant):
            yield text.put(node, text.atom(kept))


def _numbers(text: _Text, node: ast.AST) -> Iterator[list[Edit]]:
    value = node.value if isinstance(node, ast.Constant) else None
    if type(value) is int:
        whole = (value + 1, value - 1, -value, value + 2, 2 * value)
        yield from (text.put(node, str(one)) for one in whole)
    elif type(value) is float:
        found = (-value, value / 2, 2 * value, value - 1, value + 1)
        yield from (text.put(node, repr(one)) for one in found)
    elif type(value) is bool:
        yield text.put(node, str(not value))


def _operators(text: _Text, node: ast.AST) -> Iterator[list[Edit]]:
    if isinstance(node, ast.BinOp):
        old, others = _OPERATORS.get(type(node.op), ("", ()))
        for new in others:
            yield from text.between(node.left, node.right, old, new)
        if isinstance(node.op, (ast.Sub, ast.Div, ast.MatMult)):
            sides = {ast.Sub: "-", ast.Div: "/", ast.MatMult: "@"}[type(node.op)]
            yield text.put(node, f"{text.atom(node.right)} {sides} {text.atom(node.left)}")
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        old, others = _COMPARISONS.get(type(node.ops[0]), ("", ()))
        for new in others:
            yield from text.between(node.left, node.comparators[0], old, new)


def _calls(text: _Text, node: ast.AST) -> Iterator[list[Edit]]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    name, whole = node.func.attr, text.method.segment(node)
    owner = text.method.segment(node.func)
    for other in _NAMES.get(name, ()):
        yield text.put(node.func, f"{owner[: -len(name)]}{other}")
    kept = [one for one in node.keywords if one.arg == "keepdim"]
    if name in _REDUCED and not kept and node.args:
        yield text.put(node, re.sub(r",?\s*\)$", ", keepdim=True)", whole))
    if name == "reshape" or (node.args and not kept):
        return
    yield text.put(node, text.method.segment(node.func.value))


def _transposed(text: _Text, node: ast.AST) -> Iterator[list[Edit]]:
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield text.put(node, text.method.segment(node.value))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        for side in (node.left, node.right):
            yield text.put(side, f"{text.atom(side)}.mT")


def _dropped(text: _Text, node: ast.AST) -> Iterator[list[Edit]]:
    if isinstance(node, ast.BinOp):
        yield text.put(node, text.atom(node.left))
        if not isinstance(node.op, ast.Pow):
            yield text.put(node, text.atom(node.right))
    elif isinstance(node, ast.Call) and node.args:
        first = node.args[0] if isinstance(node.func, ast.Name) else node.func
        value = first.value if isinstance(first, ast.Attribute) else first
        for one in (value, node.args[0]):
            yield text.put(node, text.atom(one))


def _renamed(text: _Text, node: ast.AST) -> Iterator[list[Edit]]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in text.names:
        yield from (text.put(node, name) for name in text.names if name != node.id)


def _factors(text: _Text, node: ast.AST) -> Iterator[list[Edit]]:
    if node in text.terms and not isinstance(node, ast.Constant):
        assert isinstance(node, ast.expr)
        own = text.atom(node)
        yield from (text.put(node, f"{number} * {own}") for number in ("2", "0.5"))
        yield text.put(node, f"{own} ** 2")
        yield from (text.put(node, f"{own} * {name}") for name in text.names)
        yield from (text.put(node, f"{own} / {name}") for name in text.names)


_RULES: tuple[Rule, ...] = (
    _signs, _numeric, _numbers, _operators, _calls, _transposed, _dropped, _renamed, _factors,
)  # fmt: skip
