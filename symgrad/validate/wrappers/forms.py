"""Which statements the functions of a wrapper consist of, and at which places they stand.

In: the syntax tree of a function.  Out: nothing, or its local names; raises NotShown for any
other statement, also where no path reaches it: what is never reached still makes names local.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from symgrad.validate.wrappers.values import NotShown

_KNOWN = (
    ast.Assign, ast.If, ast.Try, ast.ExceptHandler, ast.Raise, ast.Return, ast.Expr, ast.Pass,
    ast.Name, ast.Constant, ast.Tuple, ast.Starred, ast.Attribute, ast.Subscript, ast.Call,
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp,
    ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
_OF_NUMBERS = (
    ast.Name, ast.Constant, ast.Call, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare,
    ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip


def check_tries(function: ast.FunctionDef) -> None:
    """``inference``, ``forward``: values are compared, C asked, cases tried, the runtime called."""
    body = _body(function)
    checks = next((i for i, one in enumerate(body) if not isinstance(one, ast.If)), len(body))
    for one in body[:checks]:
        assert isinstance(one, ast.If)
        if one.orelse or not all(isinstance(part, ast.Expr) for part in one.body):
            raise _another(one)
    _asks(function, body[checks : checks + 2])
    for one in body[checks + 2 : -1]:
        if not isinstance(one, ast.Try):
            raise _another(one)
        _block(one.body)
        if [type(part) for part in _handler(one)] != [ast.Pass]:
            raise _another(one)
    if not isinstance(body[-1], ast.Return):
        raise _another(body[-1])


def check_chooses(function: ast.FunctionDef) -> None:
    """``backward``: it returns what C does, what one function does, or what the runtime does."""
    body = _body(function)
    _asks(function, body[:2])
    if len(body) != 3 or not isinstance(body[2], ast.Try):
        raise _another(function)
    for part in (body[2].body, _handler(body[2])):
        if [type(one) for one in part] != [ast.Return]:
            raise _another(body[2])


def check_straight(function: ast.FunctionDef) -> None:
    """What computes gradients: statements that are tried elsewhere; it returns at its end."""
    body = _body(function)
    _block(body)
    if not isinstance(body[-1], ast.Return):
        raise _another(body[-1])


def _asks(function: ast.FunctionDef, statements: Sequence[ast.stmt]) -> None:
    """C is asked for the whole call, and what it returns may be returned."""
    if [type(one) for one in statements] != [ast.Assign, ast.If]:
        raise _another(function)
    asked, answered = statements
    assert isinstance(asked, ast.Assign)
    assert isinstance(answered, ast.If)
    if not all(map(_is_name, asked.targets)) or answered.orelse:
        raise _another(asked)
    if [type(one) for one in answered.body] != [ast.Return]:
        raise _another(answered)


def locals_of(function: ast.FunctionDef) -> frozenset[str]:
    """The names that are local to all of a function, assigned or not."""
    arguments = function.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    stored = (
        node.id for one in function.body for node in ast.walk(one)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    )  # fmt: skip
    return frozenset((*names, *stored))


def is_of_numbers(test: ast.expr) -> bool:
    """Does a test consist of names, numbers, comparisons, arithmetic, and calls alone?"""
    return all(
        isinstance(node, _OF_NUMBERS)
        and not (isinstance(node, ast.Constant) and type(node.value) not in (int, float, bool))
        and not (isinstance(node, ast.Call) and (node.keywords or not _is_name(node.func)))
        for node in ast.walk(test)
    )


def is_of_kinds(test: ast.BoolOp) -> bool:
    """Is each part the type or the dtype of an array, compared?"""
    return all(
        isinstance(one, ast.Compare)
        and [type(op) for op in one.ops] in ([ast.Is], [ast.IsNot])
        and _is_name(one.comparators[0])
        and (_is_dtype(one.left) or _is_type(one.left))
        for one in test.values
    )


def _is_dtype(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and _is_name(node.value) and node.attr == "dtype"


def _is_type(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and _is_name(node.func) and not node.keywords
        and all(map(_is_name, node.args))
    )  # fmt: skip


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Name)


def _another(node: ast.stmt) -> NotShown:
    return NotShown(f"another form of {ast.unparse(node).splitlines()[0]}", node.lineno)


def _body(function: ast.FunctionDef) -> Sequence[ast.stmt]:
    """Its statements, all nodes of which are known, without the docstring."""
    for one in function.body:
        for node in ast.walk(one):
            if not isinstance(node, _KNOWN):
                line = getattr(node, "lineno", one.lineno)
                raise NotShown(f"the statement {ast.unparse(one).splitlines()[0]}", line)
    first, *others = function.body
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        if not others or type(first.value.value) is not str:
            raise _another(function)
        return others
    return function.body


def _handler(one: ast.Try) -> Sequence[ast.stmt]:
    if len(one.handlers) != 1 or one.orelse or one.finalbody:
        raise _another(one)
    return one.handlers[0].body


def _block(statements: Sequence[ast.stmt]) -> None:
    """Assignments, tests, and at the end perhaps ``raise`` or ``return``."""
    for place, one in enumerate(statements, 1):
        if isinstance(one, ast.If):
            _block(one.body)
            _block(one.orelse)
        elif isinstance(one, ast.Assign):
            if len(one.targets) != 1 or not _is_target(one.targets[0]):
                raise _another(one)
        elif not isinstance(one, (ast.Raise, ast.Return)) or place < len(statements):
            raise _another(one)


def _is_target(node: ast.expr) -> bool:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return all(_is_name(one.value if isinstance(one, ast.Starred) else one) for one in parts)
