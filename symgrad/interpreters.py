"""The interpreter of a call: the one that the classes of its operands name.

In: the operands of an operation, of a Function or of a compiled op.  Out: their interpreter.

A trace in progress carries out every operation itself (``symgrad.frontend.session``).  Outside of
one, operands decide: arrays with a tape, whole batches under ``vmap``, symbolic tensors.  A class
names the interpreter of its objects in the attribute ``__symgrad_interpreter__``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from numpy import ndarray

ATTRIBUTE = "__symgrad_interpreter__"


class Interpreter(Protocol):
    """Carries out calls on operands of one kind.  Where kinds meet, the greater ``level`` does."""

    level: int

    def operation(self, name: str, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Apply an operation of the table: ``call`` defines it over symbolic tensors."""

    def function(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """What ``Function.apply`` returns."""

    def compiled(self, op: Any, inputs: Sequence[Any], out: Any) -> Any:
        """What a compiled op returns."""

    def gradients(self, roots: Any, wanted: Any, given: Any, asked: Any) -> tuple[Any, ...]:
        """The gradients of ``roots`` by ``wanted`` for vectors, as ``symgrad.tensor.gradients``."""

    def backward(self, roots: Any, given: Any, inputs: Any, keep: bool, create: bool) -> None:
        """Add gradients to leaves, or to ``inputs``."""

    def constant(self, value: Any) -> Any:
        """The operand as a constant of a trace that does not know its class."""

    def filled(self, like: Any, number: int) -> Any:
        """A constant in the shape and dtype of an operand."""

    def basis(self, like: Any) -> list[Any]:
        """For each element of an operand a constant that is 1 there and 0 elsewhere."""

    def leaf(self, value: Any, level: Any = None) -> Any:
        """The same value to differentiate by, at a level of derivatives where one is given."""

    def renew_history(self, view: Any) -> None:
        """Record again how a view is computed, after its memory was written."""


def interpreter_of(operands: Iterable[Any]) -> Any:
    """The interpreter of the greatest level that an operand names; None where none does."""
    found: Any = None
    for value in operands:
        if type(value) is not ndarray:
            one = getattr(type(value), ATTRIBUTE, None)
            if one is not found and one is not None and (found is None or one.level > found.level):
                found = one
    return found
