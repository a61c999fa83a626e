"""What the size conditions of a case say of single sizes.

In: conditions.  Out: the least value of each size; whether no sizes meet them at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from symgrad.ir.dim import Dim
from symgrad.ir.function import SizeCondition

LARGEST = 4096
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_HOLDS = {
    "==": int.__eq__, "!=": int.__ne__, "<": int.__lt__, "<=": int.__le__, ">": int.__gt__,
    ">=": int.__ge__,
}  # fmt: skip

Bound = tuple[str, str, int]


def least_sizes(conditions: Sequence[SizeCondition]) -> dict[str, int]:
    """``k != 1``, ``k > 3``, ``4 <= k`` as least values of single sizes, where more than 1."""
    least: dict[str, int] = {}
    bounds = _bounds(conditions)
    for _ in bounds:
        before = dict(least)
        for name, relation, bound in bounds:
            known = least.get(name, 1)
            if relation == "!=" and bound == known:
                least[name] = bound + 1
            elif relation in (">", ">=", "=="):
                least[name] = max(known, bound + (relation == ">"))
        if least == before:
            break
    return {name: value for name, value in least.items() if value > 1}


def contradictory(conditions: Sequence[SizeCondition]) -> bool:
    """Is there a size, bounded above, of which no value meets the conditions on it alone?"""
    bounds = _bounds(conditions)
    for name in dict.fromkeys(name for name, _, _ in bounds):
        own = [(relation, bound) for which, relation, bound in bounds if which == name]
        above = [bound for relation, bound in own if relation in ("<", "<=", "==")]
        if above and min(above) <= LARGEST:
            values = range(1, min(above) + 1)
            if not any(all(_HOLDS[r](value, b) for r, b in own) for value in values):
                return True
    return False


def _bounds(conditions: Sequence[SizeCondition]) -> list[Bound]:
    """The conditions that compare a size with a number: size, relation, number."""
    found = []
    for condition in conditions:
        for left, relation, right in (
            (condition.left, condition.relation, condition.right),
            (condition.right, _TURNED[condition.relation], condition.left),
        ):
            names, bound = left.sizes, right.constant
            if bound is not None and len(names) == 1 and left == Dim.size(names[0]):
                found.append((names[0], relation, bound))
    return found
