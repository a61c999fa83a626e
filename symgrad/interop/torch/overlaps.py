"""Operations that write memory which they read at other places.

In: an operation that writes, its target and its operands.  Out: an observation, with the line.

torch raises an error for some of these calls (``y.mul_(y[0])``); in others elements are read that
are written already (``y.mul_(y[:, :1])``, ``y[:, 1:] = y[:, :-1]``), in an order of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from symgrad.frontend.caller import here
from symgrad.frontend.functions.indexing import getitem
from symgrad.frontend.questions import questions
from symgrad.frontend.session import current
from symgrad.frontend.table import FUNCTIONS
from symgrad.frontend.tensor import SelectedTensor, SymbolicTensor
from symgrad.frontend.views import Diagonal, Expand, Permute, Places, Reshape, Slice, Windows
from symgrad.interop.torch.constants import leaves
from symgrad.ir.registry import registered
from symgrad.ops.record import get

_OPERATORS = frozenset(
    f"__i{name}__"
    for name in ("add", "sub", "mul", "truediv", "div", "floordiv", "mod", "pow", "and", "or",
                 "xor", "lshift", "rshift")
)  # fmt: skip
_ITEMS = ("__setitem__", "setitem")
_WRITES = _OPERATORS | {*_ITEMS, "__delitem__", "__set__", "__delete__"}
_OF_SHAPES = frozenset(("resize_as_", "set_", "requires_grad_"))
_OF_TWO = {"min": "minimum", "max": "maximum"}
_MOVES = (Diagonal, Expand, Permute, Reshape, Places, Slice, Windows)
_OVERLAP = "what is written is read at other places by the same operation, in an order of torch's"


def writes(name: str) -> bool:
    """Does an operation of this name write into its first argument?"""
    return name in _WRITES or (name.endswith("_") and not name.endswith("__"))


def of_two(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The name of an operation; ``min`` and ``max`` of two tensors are elementwise ones."""
    tensors = [one for one in (*args, kwargs.get("other")) if isinstance(one, torch.Tensor)]
    return _OF_TWO.get(name, name) if len(tensors) == 2 else name


def check_written(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Observe a method that writes what it reads elsewhere."""
    target, *operands = args
    operands += kwargs.values()
    if name in _OF_SHAPES or not _shares(target, operands):
        return
    if name in _ITEMS:
        key = operands.pop(0)
        plain = all(map(_is_number, leaves(key)))
        target = getitem(target, key) if plain else target
    check(name, target, operands)


def _is_number(item: Any) -> bool:
    """Is it no tensor, or one that stands for a number in brackets?"""
    if not isinstance(item, SymbolicTensor):
        return True
    selected = isinstance(item, SelectedTensor)
    return not selected and item.dtype.is_integer and not item.node.rank


def check(name: str, target: Any, operands: Iterable[Any]) -> None:
    """Observe an operation that writes a target and reads its memory at other places."""
    known = questions()
    for one in _shares(target, operands):
        if known is not None and not _in_step(name, target, one) and not _apart(target, one):
            known.observe(_OVERLAP, here())


def _shares(target: Any, operands: Iterable[Any]) -> list[SymbolicTensor]:
    """The operands that may lie in the memory of the target."""
    if not isinstance(target, SymbolicTensor) or isinstance(target, SelectedTensor):
        return []
    memory = current().perhaps_one(target.storage)
    return [
        one for one in leaves(tuple(operands))
        if isinstance(one, SymbolicTensor) and any(one.storage is part for part in memory)
    ]  # fmt: skip


def _moves(tensor: SymbolicTensor) -> tuple[Any, ...]:
    return tuple(step for step in tensor.steps if isinstance(step, _MOVES))


def _in_step(name: str, target: SymbolicTensor, operand: SymbolicTensor) -> bool:
    """Is each element read where it is written, before that?"""
    if target.storage is not operand.storage or not _is_elementwise(name):
        return False
    if _moves(target) == _moves(operand):
        return True
    rigid = not any(
        isinstance(step, (Slice, Diagonal, Places, Windows))
        for step in (*_moves(target), *_moves(operand))
    )
    same = target.node.shape == operand.node.shape
    return rigid and same and target.strides == operand.strides


def _is_elementwise(name: str) -> bool:
    if name in _OPERATORS or name in (*_ITEMS, "copy_"):
        return True
    plain = name.removesuffix("_")
    if getattr(FUNCTIONS.get(plain), "elementwise", False):
        return True
    return registered(plain) and get(plain).kind == "elementwise"


def _apart(target: SymbolicTensor, operand: SymbolicTensor) -> bool:
    """Do both show other elements, for all sizes?"""
    if target.storage is not operand.storage:
        return False
    axes: set[int] = set()  # along which they differ so far
    for one, other in zip(_moves(target), _moves(operand), strict=False):
        sliced = isinstance(one, Slice) and isinstance(other, Slice)
        if one == other and (sliced or not axes):
            continue
        if not isinstance(one, Slice) or not isinstance(other, Slice):
            return False
        if one.axis == other.axis and one.axis not in axes and _other_places(one, other):
            return True
        axes |= {one.axis, other.axis}
    return False


def _other_places(one: Slice, other: Slice) -> bool:
    """Have two slices of one axis no place in common?"""
    decide = current().facts.decide
    for low, high in ((one, other), (other, one)):
        if decide(low.start + (low.size - 1) * low.step, "<", high.start):
            return True
    distance = (one.start - other.start).constant
    return one.step == other.step and distance is not None and distance % one.step != 0
