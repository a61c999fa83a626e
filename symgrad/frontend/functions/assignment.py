"""Methods that write whole tensors in place: ``copy_``, ``fill_``, ``zero_``, ``index_put_``.

In: a tensor and what to write.  Out: the tensor.
"""

from __future__ import annotations

from typing import Any

from symgrad.errors import DTypeError, UnsupportedOpError
from symgrad.frontend.dtypes import check_fits
from symgrad.frontend.functions import indexing
from symgrad.frontend.functions.movement import share, squeeze, t, transpose, unsqueeze
from symgrad.frontend.lift import as_node
from symgrad.frontend.session import current, here
from symgrad.frontend.table import operation
from symgrad.frontend.tensor import SymbolicTensor, fresh

Tensor = SymbolicTensor


@operation("copy_", function=False)
def copy_(self: Tensor, source: Any, non_blocking: bool = False) -> Tensor:
    """Take over the elements of ``source``, broadcast and converted."""
    self.write(as_node(source, self.dtype), convert=True)
    return self


@operation("fill_", function=False)
def fill_(self: Tensor, value: Any) -> Tensor:
    """Take one number everywhere."""
    check_fits(value, self.dtype)
    return copy_(self, value)


@operation("zero_", function=False)
def zero_(self: Tensor) -> Tensor:
    """Take 0 everywhere."""
    return copy_(self, 0)


@operation("fill", function=False)
def fill(self: Tensor, value: Any) -> Tensor:
    """A tensor of one number in the shape and dtype of this one."""
    check_fits(value, self.dtype)
    return fresh(current().expand(as_node(value, self.dtype), self.node.shape))


@operation("fill_diagonal_", function=False)
def fill_diagonal_(self: Tensor, value: Any, wrap: bool = False) -> Tensor:
    """Take one number on the diagonal of a matrix."""
    if wrap or self.ndim != 2:
        raise UnsupportedOpError("fill_diagonal_ of other than a matrix", location=here())
    fill_(self.diagonal(), value)
    return self


@operation("index_put", function=False)
def index_put(self: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """A copy with ``values`` at the places that index tensors name."""
    copied = fresh(self.node)
    return index_put_(copied, indices, values, accumulate)


@operation("index_put_", function=False)
def index_put_(self: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """Take ``values`` at the places that index tensors name."""
    kind = getattr(values, "dtype", self.dtype)
    if isinstance(values, Tensor) and kind != self.dtype:
        raise DTypeError(
            "Index put requires the source and destination dtypes match, got "
            f"{self.dtype.scalar_type} for the destination and {kind.scalar_type} for the source.",
            location=here(),
        )
    (indexing.add_at if accumulate else indexing.setitem)(self, tuple(indices), values)
    return self


def _reshaped_in_place(name: str, call: Any) -> None:
    """Methods that change the shape of the tensor itself, and of no other view of its memory."""

    def method(self: Tensor, *args: Any) -> Tensor:
        shown: Tensor = call(share(self), *args)
        self.steps, self.strides = shown.steps, shown.strides
        self._cached = None
        return self

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"``{name[:-1]}`` of the tensor itself."
    operation(name, function=False)(method)


for _name, _call in (
    ("unsqueeze_", unsqueeze), ("squeeze_", squeeze), ("t_", t), ("transpose_", transpose),
):  # fmt: skip
    _reshaped_in_place(_name, _call)
