"""Where a float that is made of integers decides something, is it so in the graph?

In: the value found from the C, and the graph's formula.  Out: nothing; or ``NotShown``.

``(float)j == (float)i`` also holds of integers that are not equal.  A comparison of such floats, a
step as of ``floor``, a conversion back to an integer, the place of the greatest: each has to be one
of the formula, computed in the same types.  What a float holds exactly decides as an integer does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from symgrad.ir.dim import Axis, Dim
from symgrad.ir.dtype import DType, bool_
from symgrad.ir.expr import Call, Expr, IntValue, Reduce
from symgrad.validate.symbolic.memory import NotShown
from symgrad.validate.symbolic.parts import parts
from symgrad.validate.symbolic.values import RELATIONS, Values
from symgrad.validate.symbolic.written import Written

_STEPS = ("floor", "ceil", "trunc", "round", "rint", "sign", "fmod", "mod", "floordiv", "copysign")
_MOST_AXES = 3


def check_decisions(values: Values, written: Written, found: Expr, wanted: Expr, name: str) -> None:
    """Raises NotShown for a decision of ``found`` that ``wanted`` does not have.

    ``name``: of the output.
    """
    if found is wanted:
        return
    own = list(dict.fromkeys(_decisions(values, found)))
    if not own:
        return
    others = list(dict.fromkeys(_decisions(values, wanted)))
    for one in own:
        if not any(_is_same(values, written, one, other) for other in others):
            function = one.function if isinstance(one, Call) else one.kind  # type: ignore[attr-defined]
            raise NotShown(
                f"{name} has {function} of a float that is made of integers, which the formula "
                "does not have"
            )


def _decisions(values: Values, root: Expr) -> Iterator[Expr]:
    for one in parts(values, [root]):
        if _decides(one) and any(_is_rounded(values, part) for part in parts(values, one.args)):
            yield one


def _decides(one: Expr) -> bool:
    if isinstance(one, Reduce):
        return one.kind.startswith("arg") and one.body.dtype.is_float
    if not isinstance(one, Call) or not one.operands[0].dtype.is_float:
        return False
    turned = one.function == "cast" and not one.dtype.is_float
    return turned or one.function in RELATIONS or one.function in _STEPS


def _is_rounded(values: Values, one: Expr) -> bool:
    """Is it an integer as a float, which may not hold it?"""
    if isinstance(one, IntValue) and one.dtype.is_float:
        return not _is_held(values, one.value, one.dtype)
    if not isinstance(one, Call) or one.function != "cast" or not one.dtype.is_float:
        return False
    inner = one.operands[0]
    if inner.dtype.is_float or inner.dtype == bool_:
        return False
    return not _is_held(values, values.integer(inner), one.dtype)


def _is_held(values: Values, value: Dim, dtype: DType) -> bool:
    most, integers = 2 ** (24 if dtype.itemsize == 4 else 53), values.integers
    with integers.given(*(fact for axis in value.axes for fact in integers.range_of(axis))):
        return integers.entails(most - value) and integers.entails(value + most)


def _is_same(values: Values, written: Written, one: Expr, other: Expr) -> bool:
    """Is a decision one of the formula, whatever the axes of sums around it are called?"""
    if written.is_as(one, other):
        return True
    left = sorted(one.free - other.free, key=lambda axis: axis.key)
    right = sorted(other.free - one.free, key=lambda axis: axis.key)
    if not left or len(left) != len(right) or len(left) > _MOST_AXES:
        return False
    return any(
        written.is_as(one, values.substitute(other, dict(pairs)))
        for pairs in _matches(values, left, right)
    )


def _matches(
    values: Values, left: list[Axis], right: list[Axis]
) -> Iterator[list[tuple[Axis, Dim]]]:  # fmt: skip
    settled = values.integers.settled
    for order in permutations(left):
        pairs = list(zip(right, order, strict=True))
        if all(settled(one.extent) == settled(other.extent) for one, other in pairs):
            yield [(one, Dim.of(other)) for one, other in pairs]
