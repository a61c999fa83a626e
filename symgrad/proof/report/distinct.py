"""Conditions that are printed once: no set is left out twice, and no empty one.

In: conditions.  Out: the same ones in their order, without those that say nothing more.

Two codes ``a == b`` leave out the same set where their differences are multiples of each other, as
sums of terms that nothing is known of: ``x == x.floor()`` and ``x.floor() - x == 0``.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product

from symgrad.proof.report.records import Condition

Sum = dict[str, Fraction]
_NUMBER = ""  # the term of a plain number


def distinct(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """The conditions without those that leave out what another one does, or nothing at all.

    Where ``a > b`` is supposed, ``a == b`` is left out already.
    """
    found: list[Condition] = []
    every = dict.fromkeys(_unfolded(one) if one.excepted else one for one in conditions)
    known: set[object] = {
        key for one in every if not one.excepted and (key := _ends(one, _STRICT)) is not None
    }
    for one in every:
        left_out = _left_out(one) if one.excepted else None
        if left_out is not None:
            if left_out in known or not left_out[0]:
                continue
            known.add(left_out)
        found.append(one)
    return tuple(found)


def is_left_out(
    condition: Condition, others: Iterable[Condition], values: Mapping[str, str]
) -> bool:  # fmt: skip
    """Does another condition leave out the same set where some names have these values?"""
    own = _left_out(condition) if condition.excepted else None
    numbers = {name: value for name, text in values.items() if (value := _value(text)) is not None}
    return own is not None and any(
        own == _left_out(replace(other, code=_put(other.code, numbers)))
        for other in others if other.excepted
    )  # fmt: skip


def _value(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _put(code: str, values: Mapping[str, float]) -> str:
    """A code with numbers for some names."""
    return re.sub(
        r"(?<![\w.])[A-Za-z_]\w*", lambda m: repr(values.get(m[0], m[0])).strip("'"), code
    )


def _left_out(condition: Condition) -> tuple[frozenset[tuple[str, Fraction]], object] | None:
    """A key of the set ``a == b`` that a condition names; an empty sum for no points at all."""
    return _ends(condition, (ast.Eq,))


def _unfolded(condition: Condition) -> Condition:
    """``x == 0`` for ``2 * (x > 0) * x - x == 0``: what is a multiple of ``x`` on both its sides.

    Of all elements ``x[i]`` it is said as of ``x``.
    """
    tree = _compared(condition, (ast.Eq,))
    sides = [node for node in ast.walk(tree.left) if isinstance(node, ast.Compare)] if tree else []
    if tree is None or not sides or not condition.text.endswith(" == 0"):
        return condition
    if ast.unparse(tree.comparators[0]) != "0":
        return condition
    value = sides[0].left
    if any(ast.unparse(one) != f"{ast.unparse(value)} > 0" for one in sides):
        return condition
    for side in (1, 0):
        slope = _slope(tree.left, ast.dump(value), ast.dump(sides[0]), Fraction(side))
        if slope is None or [power for power, factor in slope.items() if factor] != [1]:
            return condition
    if isinstance(value, ast.Subscript) and condition.indices:
        places = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
        letters = [one.id if isinstance(one, ast.Name) else "" for one in places]
        if sorted(letters) == sorted(letter for letter, _ in condition.indices):
            code = f"{ast.unparse(value.value)} == 0"
            return replace(condition, text=code, code=code, indices=())
    code = f"{ast.unparse(value)} == 0"
    return replace(condition, text=code, code=code)


def _slope(tree: ast.expr, value: str, side: str, on: Fraction) -> dict[int, Fraction] | None:
    """An expression as a polynomial in a value, whose side it asks for; None for any other."""
    if ast.dump(tree) == value:
        return {1: Fraction(1)}
    if ast.dump(tree) == side:
        return {0: on}
    if (number := _number(tree)) is not None:
        return {0: number}
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        tree = ast.BinOp(ast.Constant(0), ast.Sub(), tree.operand)
    if not isinstance(tree, ast.BinOp) or not isinstance(tree.op, (ast.Add, ast.Sub, ast.Mult)):
        return None
    left, right = (_slope(one, value, side, on) for one in (tree.left, tree.right))
    if left is None or right is None:
        return None
    found: dict[int, Fraction] = {}
    if isinstance(tree.op, ast.Mult):
        for (one, first), (other, second) in product(left.items(), right.items()):
            found[one + other] = found.get(one + other, Fraction(0)) + first * second
        return found
    sign = -1 if isinstance(tree.op, ast.Sub) else 1
    return {power: left.get(power, Fraction(0)) + sign * right.get(power, Fraction(0))
            for power in {*left, *right}}  # fmt: skip


def _compared(condition: Condition, relations: tuple[type[ast.cmpop], ...]) -> ast.Compare | None:
    """The code of a condition that is one comparison in one of these ways."""
    try:
        tree = ast.parse(condition.code, mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(tree, ast.Compare) or len(tree.ops) > 1:
        return None
    return tree if isinstance(tree.ops[0], relations) else None


_STRICT = (ast.Gt, ast.Lt, ast.NotEq)


def _ends(
    condition: Condition, relations: tuple[type[ast.cmpop], ...]
) -> tuple[frozenset[tuple[str, Fraction]], object] | None:
    """The key of ``a == b`` for a condition that compares a and b in one of these ways."""
    tree = _compared(condition, relations)
    if tree is None:
        return None
    terms = _added(_sum(tree.left), _sum(tree.comparators[0]), -1)
    if terms is None:
        return None
    number = terms.pop(_NUMBER, Fraction(0))
    kept = {name: value for name, value in terms.items() if value}
    if not kept:
        return (frozenset(), condition.indices) if number else None
    if len(kept) < len(terms):
        return None  # what cancels may be undefined, and a part of the set is left out with it
    scale = kept[min(kept)]
    scaled = frozenset((name, value / scale) for name, value in kept.items())
    return scaled | {(_NUMBER, number / scale)}, condition.indices


def _added(left: Sum | None, right: Sum | None, factor: int) -> Sum | None:
    """``left + factor * right``, in which terms that cancel stay with a factor of 0."""
    if left is None or right is None:
        return None
    found = dict(left)
    for name, value in right.items():
        found[name] = found.get(name, Fraction(0)) + factor * value
    return found


def _sum(tree: ast.expr) -> Sum | None:
    """An expression as terms with numbers before them."""
    if isinstance(tree, ast.Constant):
        value = _number(tree)
        return None if value is None else {_NUMBER: value} if value else {}
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return _added({}, _sum(tree.operand), -1)
    if isinstance(tree, ast.BinOp):
        if isinstance(tree.op, (ast.Add, ast.Sub)):
            factor = 1 if isinstance(tree.op, ast.Add) else -1
            return _added(_sum(tree.left), _sum(tree.right), factor)
        if isinstance(tree.op, (ast.Mult, ast.Div)) and (found := _scaled(tree)) is not None:
            return found
    return {ast.dump(tree): Fraction(1)}


def _scaled(tree: ast.BinOp) -> Sum | None:
    """A product with a plain number, or a quotient by one; None for any other."""
    divides = isinstance(tree.op, ast.Div)
    pairs = [(tree.left, tree.right), (tree.right, tree.left)]
    for part, by in pairs[:1] if divides else pairs:
        value = _number(by)
        if value:
            terms = _sum(part)
            factor = 1 / value if divides else value
            return None if terms is None else {name: one * factor for name, one in terms.items()}
    return None


def _number(tree: ast.expr) -> Fraction | None:
    """The number that is written; None where none is."""
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        inner = _number(tree.operand)
        return None if inner is None else -inner
    value = tree.value if isinstance(tree, ast.Constant) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return Fraction(repr(value)) if math.isfinite(value) else None
