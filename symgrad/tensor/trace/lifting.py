"""The trace of a whole function of tensors: sizes are symbols, tensors it closes over are inputs.

In: a function of tensors that runs in a ``LiftingSession``.  Out: the graph, the tensors that were
met, and the conditions on sizes that were used.

A question about sizes is answered with the sizes at hand, and noted as a condition.  The trace
follows histories (``frontend.history``): what a Function returned is an ``applied`` node, which is
differentiated by that Function's own backward, and what is detached or computed under ``no_grad``
is a ``detach`` node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symgrad.frontend.facts import OPPOSITE, SizeFacts
from symgrad.frontend.function import class_of, is_once
from symgrad.frontend.history import History
from symgrad.frontend.regions import Region
from symgrad.frontend.session import Session
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.ir.atoms import Size
from symgrad.ir.dim import Dim, DimLike
from symgrad.ir.dtype import DType
from symgrad.ir.function import SizeCondition
from symgrad.ir.graph import Node
from symgrad.ir.types import TensorType
from symgrad.tensor.errors import AutogradError
from symgrad.tensor.modes import state
from symgrad.tensor.tensor import Tensor

LEAST_SIZE = 2
"""What every symbolic size is at least: 0 and 1 are written as numbers."""


class Untraceable(AutogradError):
    """A function does what a trace of it cannot hold."""


class NeedsNumbers(BaseException):
    """These sizes have to be numbers: the trace is to be done again.

    Not an ``Exception``, so that no handler in the traced program catches it.
    """

    def __init__(self, sizes: frozenset[int]) -> None:
        self.sizes = sizes
        super().__init__(sorted(sizes))


class LiftedHistory(History):
    """What the tape would have recorded of the trace."""

    def __init__(self, session: LiftingSession) -> None:
        super().__init__(session)
        self.following = True

    @property
    def recording(self) -> bool:
        """Not inside ``no_grad``."""
        return state.grad_enabled

    @recording.setter
    def recording(self, mode: bool) -> None:
        """Nothing: tensors have a mode of their own."""

    def give_up(self, reason: str) -> None:
        """Raises Untraceable: the history cannot be followed."""
        raise Untraceable(reason)

    def call(self, function: Any, ctx: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Apply a Function: what it returns is differentiated by its backward."""
        if is_once(function):
            raise Untraceable(f"{class_of(function).__name__} is marked once_differentiable")
        return super().call(function, ctx, args, kwargs)


class LiftingSession(Session):
    """``sizes``: the numbers behind the symbols.  ``captured``: tensors that were met, in order.

    ``regions``: for which floats the trace does the same, by their names among the sizes.
    """

    history: LiftedHistory

    def __init__(self, sizes: Mapping[str, int], dtype: DType) -> None:
        super().__init__(SizeFacts(tuple(sizes), least=LEAST_SIZE), dtype)
        self.sizes = dict(sizes)
        self.conditions: dict[tuple[Dim, str, Dim], SizeCondition] = {}
        self.captured: list[tuple[Tensor, SymbolicTensor]] = []
        self.given: list[tuple[SymbolicTensor, Node]] = []
        self.regions: dict[str, Region] = {}
        self.history = LiftedHistory(self)

    @property
    def own_backwards(self) -> bool:
        """Where derivatives may be taken."""
        return self.history.records

    # -- what goes in

    def take(self, name: str, dtype: DType, shape: Sequence[DimLike]) -> SymbolicTensor:
        """A new input."""
        self.namer.reserve(name)
        node = self.graph.input(name, TensorType(dtype, tuple(map(Dim.of, shape))))
        before, state.grad_enabled = state.grad_enabled, True
        found = fresh(node, name)
        state.grad_enabled = before
        self.given.append((found, node))
        return found

    def foreign(self, value: Any) -> Any:
        """A tensor as an input of the trace, while it lifts them."""
        lifts = state.lifting and isinstance(value, Tensor)
        return self.lift(value) if lifts else super().foreign(value)

    def lift(self, tensor: Tensor) -> SymbolicTensor:
        """The input that stands for a tensor that the function closes over."""
        for known, symbol in self.captured:
            if known is tensor:
                return symbol
        shape = tensor._array.shape
        meeting = frozenset(shape) & frozenset(self.sizes.values())
        if meeting:
            raise NeedsNumbers(meeting)
        found = self.take(f"captured_{len(self.captured)}", tensor.dtype, shape)
        self.captured.append((tensor, found))
        return found

    def check_unwritten(self) -> None:
        """Raises Untraceable where an input was written in place."""
        for symbol, node in self.given:
            if symbol.storage.node is not node:
                raise Untraceable("it writes to a tensor that it did not make")

    # -- questions about sizes

    def truth(self, left: DimLike, relation: str, right: DimLike) -> bool:
        """Whether a relation between sizes holds; noted where it need not."""
        left, right = Dim.of(left), Dim.of(right)
        decided = self.facts.decide(left, relation, right)
        if decided is not None:
            return decided
        holds = satisfied(SizeCondition(left, relation, right), self.sizes)
        kept = relation if holds else OPPOSITE[relation]
        self.conditions.setdefault((left, kept, right), SizeCondition(left, kept, right))
        return holds


def satisfied(condition: SizeCondition, sizes: Mapping[str, int]) -> bool:
    """Does a relation hold for these sizes?"""
    left, right = (number_of(dim, sizes) for dim in (condition.left, condition.right))
    return {
        "==": left == right, "!=": left != right, "<": left < right, "<=": left <= right,
        ">": left > right, ">=": left >= right,
    }[condition.relation]  # fmt: skip


def number_of(dim: Dim, sizes: Mapping[str, int]) -> int:
    """The value of a size expression."""
    return dim.evaluate(lambda atom: sizes[atom.name] if isinstance(atom, Size) else 0)
