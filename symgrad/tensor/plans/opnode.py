"""The node of an operation of the table.

In: the derivative of a plan, the tensors that it took.  Out: ``OperationNode``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.tensor import errors
from symgrad.tensor.plans.derivative import Derivative
from symgrad.tensor.tape.node import Grad, Node, SavedTensor, edge_of, named
from symgrad.tensor.tensor import Array, Tensor, wrap

if TYPE_CHECKING:
    from symgrad.tensor.plans.plan import Plan

_run: list[Callable[[Plan, Sequence[Tensor]], Any]] = []
"""``run.run``, entered there: a backward that is recorded runs a plan in turn."""


def provide_run(call: Callable[[Plan, Sequence[Tensor]], Any]) -> None:
    """Say how a plan is run."""
    _run[:] = [call]


def record_plan(plan: Plan, tensors: Sequence[Tensor]) -> Any:
    """Run a plan on tensors."""
    return _run[0](plan, tensors)


class OperationNode(Node):
    """One use of an operation of the table."""

    __slots__ = ("derivative", "freed", "linked", "saved")

    def __init__(self, derivative: Derivative, tensors: Sequence[Tensor]) -> None:
        edges = tuple(
            edge_of(tensor) if need else None
            for tensor, need in zip(tensors, derivative.needs, strict=True)
        )
        super().__init__(edges, derivative.types)
        self.derivative = derivative
        self.freed = False
        self.saved: tuple[Any, ...] = ()
        self.linked: tuple[Any, ...] = ()

    def save(
        self, before: dict[int, SavedTensor], results: Sequence[Tensor | None],
        tensors: Sequence[Tensor], between: Sequence[Array],
    ) -> None:  # fmt: skip
        """Keep what backward needs; ``before``: inputs as they were before they were written."""
        derivative = self.derivative
        found: list[Any] = []
        for kept in derivative.all_kept:
            if kept.kind == "between":
                found.append(between[kept.place])
            elif kept.kind == "output":
                output = results[kept.place]
                assert output is not None
                found.append(SavedTensor(output, is_output=True))
            else:
                found.append(before.get(kept.place) or SavedTensor(tensors[kept.place]))
        self.saved = tuple([found[place] for place in derivative.kept_at])
        same = derivative.kept_at == derivative.linked_at
        self.linked = (
            self.saved if same else tuple([found[place] for place in derivative.linked_at])
        )

    def backward(self, grads: list[Grad], needed: Sequence[bool], record: bool) -> Sequence[Grad]:
        """The gradients of the inputs for those of the outputs."""
        if self.freed:
            raise errors.FreedGraphError(errors.SECOND_BACKWARD)
        filled = [
            grad if grad is not None else _zeros(output, record)
            for grad, output in zip(grads, self.outputs, strict=True)
        ]
        mask = (
            self.derivative.needs
            if all(needed)
            else tuple(
                need and asked for need, asked in zip(self.derivative.needs, needed, strict=True)
            )
        )
        if record:
            linked = self.derivative.linked(mask)
            kept = [saved.tensor() for saved in self.linked]
            found = iter(record_plan(linked.plan, [*kept, *filled]) if any(linked.present) else [])
            present = linked.present
        else:
            gradients = self.derivative.gradients(mask)
            arrays = [
                saved.checked() if type(saved) is SavedTensor else saved for saved in self.saved
            ]
            found = iter(gradients.program.run([*arrays, *filled]))
            present = gradients.present
        results: list[Grad] = [None] * len(present)
        for place, there in enumerate(present):
            if there:
                results[place] = next(found)
            elif mask[place]:
                kind = self.derivative.zero(place)
                results[place] = None if kind is None else _zeros(kind, record)
        return results

    def release(self) -> None:
        """Let go of what was saved."""
        if self.saved or self.linked:
            self.freed = True
            self.saved = self.linked = ()


def operation_node(derivative: Derivative, tensors: Sequence[Tensor]) -> OperationNode:
    """A node in the class of its operation."""
    kind: type[OperationNode] = named(OperationNode, label_of(derivative.plan.name))
    return kind(derivative, tensors)


def _zeros(kind: Any, record: bool) -> Grad:
    array = np.zeros(*kind)
    return wrap(array) if record else array


_OTHER = {
    "truediv": "div", "rtruediv": "div", "radd": "add", "rmul": "mul", "iadd": "add",
    "isub": "sub", "imul": "mul", "itruediv": "div", "ipow": "pow", "divide": "div",
    "true_divide": "div", "multiply": "mul", "subtract": "sub", "negative": "neg",
    "absolute": "abs", "rpow": "pow", "mm": "mm", "getitem": "index", "setitem": "copy_slices",
    "arctan": "atan", "arcsin": "asin", "arccos": "acos", "matmul": "mm", "rmatmul": "mm",
    "astype": "to_copy", "to": "to_copy", "double": "to_copy", "float": "to_copy",
}  # fmt: skip


@functools.cache
def label_of(name: str) -> str:
    """``mul_`` and ``__mul__`` as ``MulBackward0``; a backward of a backward keeps its name."""
    if name.endswith("Backward"):
        return f"{label_of(name.removesuffix('Backward')).removesuffix('0')}Backward0"
    plain = name.strip("_")
    words = _OTHER.get(plain, plain).split("_")
    label = "".join(word[:1].upper() + word[1:] for word in words)
    return label if label == "CopySlices" else f"{label}Backward0"
