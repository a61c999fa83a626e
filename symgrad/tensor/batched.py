"""Tensors inside ``vmap``: one element of a batch, whose operations run on all of it.

In: a tensor with the batch in front.  Out: ``BatchedTensor``, which looks like one element.

Its array is only a description: shape and dtype are known, values are not, and to ask for them
is an error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from symgrad.tensor import errors
from symgrad.tensor.errors import VmapError
from symgrad.tensor.tensor import Tensor, wrap


class Level:
    """One ``vmap`` in progress.  ``depth`` tells it from those around it.

    ``randomness``: what random numbers are inside, ``"error"``, ``"different"`` or ``"same"``.
    """

    def __init__(self, size: int, depth: int, randomness: str) -> None:
        self.size = size
        self.depth = depth
        self.randomness = randomness


class _Levels(threading.local):
    def __init__(self) -> None:
        self.active: list[Level] = []


levels = _Levels()
"""``active``: those in progress in this thread, the outermost first."""


@contextmanager
def entered(size: int, randomness: str) -> Iterator[Level]:
    """A level of its own."""
    level = Level(size, len(levels.active), randomness)
    levels.active.append(level)
    try:
        yield level
    finally:
        levels.active.pop()


class Description:
    """Stands where the array of a tensor would."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape = shape
        self.dtype = dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return int(self.dtype.itemsize)

    @property
    def flags(self) -> Any:
        """Raises ForeignOperand: an operation looks at how the array lies in memory."""
        raise errors.ForeignOperand

    @property
    def strides(self) -> tuple[int, ...]:
        """Those of a contiguous array."""
        steps = [self.itemsize]
        for size in reversed(self.shape[1:]):
            steps.append(steps[-1] * size)
        return tuple(reversed(steps[: self.ndim]))

    def __len__(self) -> int:
        return self.shape[0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__array"):
            raise AttributeError(name)
        raise values_needed(name)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise values_needed("its array")

    def __bool__(self) -> bool:
        raise values_needed("its truth")


def values_needed(what: str) -> VmapError:
    """The error where the values of a batched tensor are asked for."""
    return VmapError(
        f"vmap: {what} needs the values of a tensor, of which there is one for each element of "
        "the batch; this is not supported (data-dependent control flow is not, either)",
        hint="use sg.where to choose by values, or call the function outside of vmap",
    )


class BatchedTensor(Tensor):
    """One element of ``value``, whose first axis is the batch of ``level``."""

    _level: Level
    _value: Tensor

    @property
    def _array(self) -> Any:
        inner = self._value._array
        return Description(tuple(inner.shape[1:]), inner.dtype)

    @_array.setter
    def _array(self, array: Any) -> None:
        raise VmapError("vmap: the memory of a batched tensor cannot be replaced")

    @property
    def requires_grad(self) -> bool:
        """Are operations on it recorded?"""
        return self._value.requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self.requires_grad_(wanted)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Say whether it is differentiated."""
        self._value.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Has it no history?"""
        return self._value.is_leaf

    @property
    def grad_fn(self) -> Any:
        """The node that computed the whole batch."""
        return self._value.grad_fn

    def counter(self) -> Any:
        """The counter of writes to the memory of the batch."""
        return self._value.counter()

    def detach(self) -> Tensor:
        """The same without history."""
        return batched(self._value.detach(), self._level)

    @property
    def data(self) -> Tensor:
        """The same without history."""
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        raise VmapError("vmap: .data of a batched tensor cannot be set")

    def detach_(self) -> Tensor:
        """Itself, cut off from its history."""
        self._value.detach_()
        return self

    def numpy(self, *, force: bool = False) -> Any:
        """Raises VmapError: there is one array for each element of the batch."""
        raise values_needed(".numpy()")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise values_needed("np.asarray()")

    def item(self) -> Any:
        """Raises VmapError."""
        raise values_needed(".item()")

    def tolist(self) -> Any:
        """Raises VmapError."""
        raise values_needed(".tolist()")

    def __bool__(self) -> bool:
        raise values_needed("its truth")

    def __index__(self) -> int:
        raise values_needed("its use as an index")

    def __repr__(self) -> str:
        shape = list(self._array.shape)
        return f"BatchedTensor(shape={shape}, batch={self._level.size}, depth={self._level.depth})"

    __str__ = __repr__
    __hash__ = object.__hash__

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        raise VmapError("vmap: a batched tensor cannot be copied deeply", hint="use clone()")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise VmapError("vmap: a batched tensor cannot be pickled")


def batched(value: Tensor, level: Level) -> BatchedTensor:
    """One element of a tensor whose first axis is the batch."""
    found = object.__new__(BatchedTensor)
    found._value, found._level = value, level
    return found


def drawn(draw: Callable[[tuple[int, ...]], Any], shape: Sequence[int]) -> Tensor:
    """The random numbers that ``draw`` gives for a shape; more of them where elements differ.

    Raises VmapError where a ``vmap`` in progress does not say how its elements differ.
    """
    if any(level.randomness == "error" for level in levels.active):
        raise VmapError(
            "vmap: called random operation while in randomness error mode. Please either use the "
            "'same' or 'different' randomness flags on vmap or perform the randomness operation "
            "out of vmap"
        )
    different = [level for level in levels.active if level.randomness == "different"]
    found = wrap(draw((*(level.size for level in different), *shape)))
    for level in different:
        found = batched(found, level)
    return found


def deepest(values: Iterable[Any]) -> Level | None:
    """The innermost level that one of the tensors belongs to.

    Raises VmapError for a tensor that was kept from a ``vmap`` that is over.
    """
    found: Level | None = None
    for value in values:
        if isinstance(value, BatchedTensor):
            if value._level not in levels.active:
                raise VmapError("a tensor of a vmap is used after that vmap is over")
            if found is None or value._level.depth > found.depth:
                found = value._level
    return found


def inside(value: Any, level: Level) -> tuple[Any, bool]:
    """The whole batch of a tensor, and True; anything that ``level`` has no part in, and False."""
    if isinstance(value, BatchedTensor) and value._level is level:
        return value._value, True
    return value, False


def physical(value: Any, level: Level) -> tuple[Any, bool]:
    """As ``inside``, also where a deeper ``vmap`` has wrapped the tensor again."""
    if isinstance(value, BatchedTensor) and value._level.depth > level.depth:
        found, has = physical(value._value, level)
        return batched(found.movedim(1, 0), value._level) if has else value, has
    return inside(value, level)


def enclosed(value: Tensor, level: Level) -> BatchedTensor:
    """The reverse: one element of a whole batch, below the wrapping of deeper levels."""
    if isinstance(value, BatchedTensor) and value._level.depth > level.depth:
        return batched(enclosed(value._value.movedim(1, 0), level), value._level)
    return batched(value, level)


def spread(value: Any) -> Any:
    """The tensor with a copy of its own for each element of every batch in progress.

    What is differentiated by has to be: its gradients differ from element to element.
    """
    for level in levels.active:
        value = _at(value, level)
    return value


def _at(value: Tensor, level: Level) -> Tensor:
    if isinstance(value, BatchedTensor) and value._level.depth > level.depth:
        inner = _at(value._value, level)
        return batched(inner, value._level)
    return batched(whole(value, level), level)


def whole(value: Any, level: Level) -> Any:
    """The whole batch of a tensor, repeated where it is the same for all elements."""
    found, has = inside(value, level)
    return found if has else found.expand((level.size, *found.shape))


def changed(change: Callable[[Tensor], Tensor], value: Tensor) -> Tensor:
    """``change`` of the tensor of all batches, in the place of a tensor."""
    if isinstance(value, BatchedTensor):
        return batched(changed(change, value._value), value._level)
    return change(value)


def innermost(tensor: Tensor) -> Tensor:
    """The tensor of all batches, which a batched one stands for one element of."""
    while isinstance(tensor, BatchedTensor):
        tensor = tensor._value
    return tensor


def real_array(tensor: Tensor) -> Any:
    """The array of all batches, in whose memory the tensor lies."""
    return innermost(tensor)._array
