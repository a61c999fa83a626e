"""The nodes of the graph that backward walks.

In: the tensors that an operation took.  Out: ``Node``, its edges, what it saved.

A node refers to the nodes of its inputs, never to its outputs, so that the graph is
freed with its last output.  Nodes hold each other only through slots and tuples, whose
destructors CPython unrolls however deep the graph is.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from symgrad.tensor import errors
from symgrad.tensor.tensor import Tensor, Version, wrap

Array = np.ndarray[Any, Any]
Edge = tuple["Node", int]
Grad = Any  # an Array; a Tensor when the backward is itself recorded; None for zero

LAST = float("inf")
_sequence = itertools.count()
_hook_numbers = itertools.count()


class RemovableHandle:
    """``remove()`` takes a hook away."""

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self.id = next(_hook_numbers)
        self._hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        """Take the hook away."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def add_hook(owner: Any, table: str, hook: Any) -> RemovableHandle:
    """Add a hook to a table of an object, which is made when the first one is added."""
    if getattr(owner, table) is None:
        setattr(owner, table, {})
    return RemovableHandle(getattr(owner, table), hook)


class Node:
    """One use of an operation.  ``edges``: for each input, the node it comes from, or None.

    ``outputs``: shape and dtype of each output, None for one that has no gradient.
    """

    __slots__ = (
        "__weakref__", "edges", "hooks", "number", "outputs", "prehooks", "retained",
        "tensor_hooks",
    )  # fmt: skip
    runs_on_nothing = False
    """Does it run when no gradient arrives at any output?"""

    def __init__(
        self, edges: tuple[Edge | None, ...],
        outputs: Sequence[tuple[tuple[int, ...], Any] | None],
    ) -> None:  # fmt: skip
        self.edges = edges
        self.outputs = outputs
        self.number: float = next(_sequence)
        self.tensor_hooks: dict[int, dict[int, Any]] | None = None
        self.retained: dict[int, Any] | None = None
        self.hooks: dict[int, Any] | None = None
        self.prehooks: dict[int, Any] | None = None

    # -- what the engine asks

    def backward(self, grads: list[Grad], needed: Sequence[bool], record: bool) -> Sequence[Grad]:
        """The gradients of the inputs for those of the outputs; None where not ``needed``.

        ``record``: the gradients are tensors, and so is the result, with its own history.
        """
        raise NotImplementedError

    def release(self) -> None:
        """Free what was saved."""

    @property
    def opaque(self) -> bool:
        """May its gradients depend on more than what it is linked to?"""
        return bool(self.hooks or self.prehooks or self.tensor_hooks)

    # -- what the user asks

    def name(self) -> str:
        """What it undoes: ``MulBackward0``."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes of its inputs."""
        return tuple((None, 0) if edge is None else edge for edge in self.edges)

    @property
    def metadata(self) -> dict[str, Any]:
        """Nothing: for programs that look."""
        return {}

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_inputs, grad_outputs)`` after it ran."""
        return add_hook(self, "hooks", hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_outputs)`` before it runs."""
        return add_hook(self, "prehooks", hook)

    def __repr__(self) -> str:
        return f"<{self.name()} object at 0x{id(self):x}>"


NodeType = TypeVar("NodeType", bound=Node)


@functools.cache
def named(kind: type[NodeType], name: str) -> type[NodeType]:
    """The nodes of a kind that undo the same thing, as a class: ``MulBackward0``."""
    return type(name, (kind,), {"__slots__": ()})


class AccumulateGrad(Node):
    """Where backward arrives at a leaf: its gradient is added to ``variable.grad``."""

    __slots__ = ("variable",)

    def __init__(self, variable: Tensor) -> None:
        super().__init__((), ((variable._array.shape, variable._array.dtype),))
        self.variable = variable
        self.number = LAST


def accumulator(tensor: Tensor) -> Node:
    """The one such node of a leaf, or what it has instead."""
    found: Node | None = None if tensor._accumulator is None else tensor._accumulator()
    if found is None:
        found = AccumulateGrad(tensor)
        tensor._accumulator = weakref.ref(found)
    return found


def edge_of(tensor: Tensor) -> Edge | None:
    """Where the gradient of a tensor goes; None where it is not needed."""
    node = tensor._grad_fn if tensor._base is None else tensor.grad_fn
    if node is not None:
        return node, tensor._output_number
    return (accumulator(tensor), 0) if tensor._requires_grad else None


def retain(tensor: Tensor, node: Node, number: int) -> None:
    """Let backward leave its gradient at an output of a node with the tensor, and nowhere else."""
    old = tensor._grad_fn
    if tensor._retains and old is not None and old.retained is not None:
        old.retained.pop(tensor._output_number, None)
    tensor._retains = True
    node.retained = {} if node.retained is None else node.retained
    node.retained[number] = weakref.ref(tensor)


class SavedTensor:
    """A tensor kept for backward, with the version that it had."""

    __slots__ = ("array", "counter", "edge", "is_output", "leaf", "version")

    def __init__(self, tensor: Tensor, *, is_output: bool = False) -> None:
        counter = tensor._counter or tensor.counter()
        self.array = tensor._array
        self.counter: Version = counter
        self.version = counter.value
        self.is_output = is_output
        node = tensor._grad_fn if tensor._base is None else tensor.grad_fn
        self.leaf = tensor if node is None and not is_output else None
        self.edge: Any = None
        if node is not None:  # an output refers back to the node that saves it: weakly
            self.edge = (weakref.ref(node) if is_output else node, tensor._output_number)

    def checked(self) -> Array:
        """Its array.  Raises SavedTensorError if it was written since."""
        if self.counter.value != self.version:
            raise self._modified()
        return self.array

    def tensor(self) -> Tensor:
        """The tensor, with its history.  Raises SavedTensorError if it was written since."""
        array = self.checked()
        if self.leaf is not None and self.leaf._array is array:
            return self.leaf
        found = wrap(array)
        found._counter = self.counter
        found._seen = self.counter.value
        if self.edge is not None:
            node, found._output_number = self.edge
            found._grad_fn = node() if isinstance(node, weakref.ref) else node
        elif self.leaf is not None:
            found._requires_grad = self.leaf._requires_grad
        return found

    def _modified(self) -> errors.SavedTensorError:
        tensor = wrap(self.array)
        origin = ""
        if self.edge is not None:
            node = self.edge[0]() if isinstance(self.edge[0], weakref.ref) else self.edge[0]
            if node is not None:
                origin = f", which is output {self.edge[1]} of {node.name()},"
        return errors.SavedTensorError(
            "one of the variables needed for gradient computation has been modified by an inplace "
            f"operation: [{tensor.type()} {list(tensor.shape)}]{origin} is at version "
            f"{self.counter.value}; expected version {self.version} instead.",
            hint="clone() the tensor before writing to it, or compute out of place",
        )
