"""Conditions that follow from what is printed beside them of the signs of names: ``eps > 0``.

In: conditions.  Out: those that say more.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from enum import IntEnum

from symgrad.proof.report.records import Condition


class Sign(IntEnum):
    """What is known of a value, wherever it is defined."""

    ANY = 0
    NONNEGATIVE = 1
    POSITIVE = 2


_POSITIVE_NAME = re.compile(r"(\w+) > (\d+(?:\.\d+)?)")
_KEEPING = ("sum", "mean", "mT", "T", "sqrt", "amax", "amin", "unsqueeze", "squeeze", "expand")
"""Methods whose results have the sign that all elements have."""


def without_implied(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """The conditions without those that follow from the signs of names that others state."""
    every = tuple(dict.fromkeys(conditions))
    stated = {one: match[1] for one in every if (match := _POSITIVE_NAME.fullmatch(one.text))}
    signs = dict.fromkeys((name for one, name in stated.items() if not one.excepted), Sign.POSITIVE)
    return tuple(one for one in every if one in stated or not _follows(one, signs))


def _follows(condition: Condition, signs: Mapping[str, Sign]) -> bool:
    """Does a condition hold, or leave nothing out, whatever the other names are?"""
    try:
        tree = ast.parse(condition.code, mode="eval").body
    except SyntaxError:
        return False
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
        return False
    bound = tree.comparators[0]
    if not isinstance(bound, ast.Constant) or bound.value != 0:
        return False
    names = {node.id for node in ast.walk(tree.left) if isinstance(node, ast.Name)}
    if not names & {*signs}:
        return False
    least = {ast.Gt: Sign.POSITIVE, ast.NotEq: Sign.POSITIVE, ast.GtE: Sign.NONNEGATIVE}
    if condition.excepted:
        least = {ast.Eq: Sign.POSITIVE}
    wanted = least.get(type(tree.ops[0]))
    return wanted is not None and sign_of(tree.left, signs) >= wanted


def sign_of(tree: ast.expr, signs: Mapping[str, Sign]) -> Sign:
    """What is known of the value of an expression."""
    if isinstance(tree, ast.Name):
        return signs.get(tree.id, Sign.ANY)
    if isinstance(tree, ast.Constant) and isinstance(tree.value, (int, float)):
        return Sign.POSITIVE if tree.value > 0 else Sign(tree.value == 0)
    if isinstance(tree, ast.BinOp):
        return _of_operation(tree, signs)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute):
        inner = sign_of(tree.func.value, signs)
        if tree.func.attr in ("square", "abs"):
            return inner if inner is Sign.POSITIVE else Sign.NONNEGATIVE
        return inner if tree.func.attr in _KEEPING else Sign.ANY
    return Sign.ANY


def _of_operation(tree: ast.BinOp, signs: Mapping[str, Sign]) -> Sign:
    left, right = sign_of(tree.left, signs), sign_of(tree.right, signs)
    if isinstance(tree.op, ast.Add) and left and right:
        return max(left, right)
    if isinstance(tree.op, ast.Mult):
        same = ast.dump(tree.left) == ast.dump(tree.right)
        return max(min(left, right), Sign.NONNEGATIVE if same else Sign.ANY)
    if isinstance(tree.op, ast.Div) and right is Sign.POSITIVE:
        return left
    if isinstance(tree.op, ast.Pow) and isinstance(tree.right, ast.Constant):
        even = isinstance(tree.right.value, int) and tree.right.value % 2 == 0
        return left if left is Sign.POSITIVE else Sign.NONNEGATIVE if even else Sign.ANY
    return Sign.ANY
