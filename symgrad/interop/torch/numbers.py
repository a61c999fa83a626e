"""What torch's C code asks a size: the protocol of ``torch.SymInt.node``.

In: a symbolic size or float.  Out: its answers; each comparison that has to be decided splits the
trace, as one in Python does.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from symgrad.frontend.session import current
from symgrad.frontend.sizes import SymInt, as_dim, is_size
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType
from symgrad.ir.graph import Node


class SizeNode:
    """The node of a size or a float, as torch's C code sees it.

    Called with a dtype, it is the number in the graph: the frontend has a method of that name.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, dtype: DType) -> Node:
        """The number in the graph in progress."""
        kind = next(base for base in type(self.value).__mro__[1:] if "node" in vars(base))
        node: Node = vars(kind)["node"](self.value, dtype)
        return node

    # -- what it is

    def is_int(self) -> bool:
        """Is it a size?"""
        return is_size(self.value)

    def is_float(self) -> bool:
        """Is it a float computed from sizes?"""
        return not self.is_int()

    def is_bool(self) -> bool:
        """It is no truth value."""
        return False

    def is_nested_int(self) -> bool:
        """It is no size of a nested tensor."""
        return False

    is_constant = is_symbolic_bool = is_nested_int

    def is_symbolic(self) -> bool:
        """Is it no plain number?"""
        return not isinstance(self.value, (bool, int, float))

    def has_hint(self) -> bool:
        """There is no example of it."""
        return False

    def maybe_as_int(self) -> int | None:
        """The number, if it is one."""
        return self.value if type(self.value) is int else None

    def nested_int(self) -> None:
        """None: it is no size of a nested tensor."""

    def clone(self) -> SizeNode:
        """Itself."""
        return self

    def str(self) -> str:
        """A text, for torch's messages."""
        return "a symbolic size"

    _graph_repr = str

    # -- what has to be decided

    def guard_int(self, file: Any = "", line: Any = 0) -> int:
        """The number.  Raises ControlFlowError for a symbol."""
        return operator.index(self.value)

    int_ = guard_int

    def guard_float(self, file: Any = "", line: Any = 0) -> float:
        """The number.  Raises ControlFlowError for a symbol."""
        return float(self.value)

    def expect_size(self, file: Any = "", line: Any = 0) -> bool:
        """Sizes are not negative."""
        return bool(self.value >= 0)

    # -- arithmetic

    def wrap_int(self, value: int) -> SizeNode:
        """The node of a number."""
        return SizeNode(value)

    wrap_float = wrap_int

    def wrap_bool(self, value: bool) -> TruthNode:
        """The node of a truth value."""
        return TruthNode(lambda: value)

    def neg(self) -> SizeNode:
        """Minus it."""
        return SizeNode(-self.value)

    def sym_float(self) -> SizeNode:
        """The same number as a float."""
        return SizeNode(self.value / 1)

    def sym_max(self, other: Any) -> SizeNode:
        """The greater one."""
        return SizeNode(self.value if self.value >= other.value else other.value)

    def sym_min(self, other: Any) -> SizeNode:
        """The lesser one."""
        return SizeNode(self.value if self.value <= other.value else other.value)

    def is_contiguous(self, sizes: Any, strides: Any) -> TruthNode:
        """Do elements of these sizes and strides follow one another?"""
        return TruthNode(lambda: _contiguous(sizes, strides))

    is_non_overlapping_and_dense = is_contiguous


def _contiguous(sizes: Any, strides: Any) -> bool:
    expected: Any = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size.value != 1:
            if stride.value != expected:
                return False
            expected = expected * size.value
    return True


def _computed(compute: Callable[[Any, Any], Any]) -> Callable[[SizeNode, Any], SizeNode]:
    def method(self: SizeNode, other: Any) -> SizeNode:
        return SizeNode(compute(self.value, other.value))

    return method


def _compared(relation: str, compare: Callable[[Any, Any], bool]) -> Any:
    def method(self: SizeNode, other: Any) -> TruthNode:
        known = is_size(self.value) and is_size(other.value)
        sides = (as_dim(self.value), as_dim(other.value)) if known else None
        return TruthNode(
            lambda: compare(self.value, other.value),
            None if sides is None else (sides[0], relation, sides[1]),
        )

    return method


for _name, _compute in (
    ("add", operator.add), ("sub", operator.sub), ("mul", operator.mul), ("mod", operator.mod),
    ("floordiv", operator.floordiv), ("int_floordiv", operator.floordiv),
    ("truediv", operator.truediv), ("int_truediv", operator.truediv),
    ("float_truediv", operator.truediv), ("pow", operator.pow),
    ("pow_by_natural", operator.pow), ("float_pow", operator.pow),
):  # fmt: skip
    setattr(SizeNode, _name, _computed(_compute))
for _name, _relation, _compare in (
    ("eq", "==", operator.eq), ("ne", "!=", operator.ne), ("lt", "<", operator.lt),
    ("le", "<=", operator.le), ("gt", ">", operator.gt), ("ge", ">=", operator.ge),
):  # fmt: skip
    setattr(SizeNode, _name, _compared(_relation, _compare))


class TruthNode:
    """The node of a truth value about sizes, which is decided when it is needed.

    ``relation``: what it says of two sizes, where it says that.
    """

    def __init__(
        self, decide: Callable[[], bool], relation: tuple[Dim, str, Dim] | None = None
    ) -> None:
        self.decide = decide
        self.relation = relation

    def is_bool(self) -> bool:
        """It is a truth value."""
        return True

    def is_int(self) -> bool:
        """It is no number."""
        return False

    is_float = is_nested_int = is_constant = has_hint = is_int

    def is_symbolic(self) -> bool:
        """It may have to be decided."""
        return True

    def clone(self) -> TruthNode:
        """Itself."""
        return self

    def str(self) -> str:
        """A text, for torch's messages."""
        return "a question about sizes"

    def guard_bool(self, file: Any = "", line: Any = 0) -> bool:
        """The answer; splits the trace to find out."""
        return bool(self.decide())

    expect_true = bool_ = guard_size_oblivious = guard_bool

    def guard_or_false(self, file: Any = "", line: Any = 0) -> bool:
        """The answer where it is known, else False: torch then takes the general way."""
        return self._known(False)

    def guard_or_true(self, file: Any = "", line: Any = 0) -> bool:
        """The answer where it is known, else True: torch then takes the general way."""
        return self._known(True)

    def _known(self, otherwise: bool) -> bool:
        if self.relation is None:
            return bool(self.decide())
        found = current().facts.decide(*self.relation)
        return otherwise if found is None else found

    def sym_not(self) -> TruthNode:
        """Is it false?"""
        return TruthNode(lambda: not self.decide())

    def sym_and(self, other: Any) -> TruthNode:
        """Are both true?"""
        return TruthNode(lambda: bool(self.decide()) and bool(other.decide()))

    def sym_or(self, other: Any) -> TruthNode:
        """Is one of them true?"""
        return TruthNode(lambda: bool(self.decide()) or bool(other.decide()))

    and_, or_ = sym_and, sym_or

    def wrap_bool(self, value: bool) -> TruthNode:
        """The node of a truth value."""
        return TruthNode(lambda: value)


__all__ = ["SizeNode", "SymInt", "TruthNode"]
