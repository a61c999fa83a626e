"""Sparse tensors, as a trace sees them: places and values, of which the dense tensor is made.

In: indices, one row for each axis, and as many values.  Out: a tensor that can be multiplied with a
dense one, turned, and made dense; each of it computes with the dense tensor, in which the values of
one place are added.

The indices and values are those that it was made of, in the same memory.  A sparse tensor has no
node: whatever else computes with one gets an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from symgrad.errors import ShapeError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.kinds import OperationTypeError, class_name
from symgrad.frontend.lift import as_index
from symgrad.frontend.questions import note_limit
from symgrad.frontend.sizes import Shape, as_dim
from symgrad.frontend.table import functions
from symgrad.frontend.tensor import SymbolicTensor, fresh, own_names
from symgrad.frontend.views import Storage
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Node


class SparseTensor(SymbolicTensor):
    """A matrix, or a tensor of more axes, of ``elements`` at ``places``, one row for each axis.

    ``extent``: its sizes.  ``is_merged``: are its elements put in order, with one for each place?
    """

    places: SymbolicTensor
    elements: SymbolicTensor
    extent: tuple[Dim, ...]
    is_merged: bool

    def __init__(
        self, places: SymbolicTensor, elements: SymbolicTensor, extent: Sequence[Dim], *,
        is_merged: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(Storage(elements.node))
        own_names(self).update(
            places=places, elements=elements, extent=tuple(extent), is_merged=is_merged
        )

    @property
    def is_sparse(self) -> bool:
        """It is one by what the program calls."""
        return True

    @property
    def dense(self) -> SymbolicTensor:
        """The dense tensor of the same elements, which are 0 elsewhere."""
        empty = functions.zeros(*Shape.of(self.extent), dtype=self.elements.dtype)
        found: SymbolicTensor = empty.index_put(self.rows, self.elements, accumulate=True)
        return found

    @property
    def rows(self) -> tuple[SymbolicTensor, ...]:
        """The places along each axis."""
        return tuple(self.places.select(0, axis) for axis in range(len(self.extent)))

    @property
    def node(self) -> Node:
        """Raises UnsupportedOpError: a node is of a dense tensor."""
        raise refused("meets an operation that is not traced for it")

    def known_node(self) -> Node | None:
        """Nothing to name."""
        return None

    def shared(self, *steps: Any) -> NoReturn:
        """Raises UnsupportedOpError: it has no views."""
        raise refused("meets an operation that is not traced for it")

    @property
    def shape(self) -> Shape:
        """Its sizes."""
        return Shape.of(self.extent)

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return len(self.extent)

    def dim(self) -> int:
        """The number of its axes."""
        return len(self.extent)

    def to_dense(self, *given: Any, **settings: Any) -> SymbolicTensor:
        """The dense tensor.  Raises UnsupportedOpError for settings."""
        if given or settings:
            raise refused("is made dense with settings")
        return self.dense

    def coalesce(self) -> SparseTensor:
        """A copy with one element for each place; which these are depends on values."""
        places, elements = fresh(self.places.node), fresh(self.elements.node)
        return SparseTensor(places, elements, self.extent, is_merged=True)

    def _indices(self) -> SymbolicTensor:
        """The places, one row for each axis.  Raises UnsupportedOpError once they are merged."""
        return self._unmerged().places

    def _values(self) -> SymbolicTensor:
        """The elements.  Raises UnsupportedOpError once they are merged."""
        return self._unmerged().elements

    def _unmerged(self) -> SparseTensor:
        if self.is_merged:
            raise refused("is coalesced, and asked for its elements")
        return self

    def t(self) -> SparseTensor:
        """With both axes exchanged.  Raises UnsupportedOpError for others than a matrix."""
        if len(self.extent) != 2:
            raise refused("that is no matrix is turned")
        places = functions.stack(self.rows[::-1])
        turned = self.extent[::-1]
        return SparseTensor(places, self.elements, turned, is_merged=self.is_merged)

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """With both axes exchanged."""
        if {dim0 % len(self.extent), dim1 % len(self.extent)} != {0, 1}:
            raise refused("is turned along these axes")
        return self.t()

    def matmul(self, other: Any) -> SymbolicTensor:
        """The product with a dense tensor, which is dense."""
        if isinstance(other, SparseTensor):
            raise refused("is multiplied with another one")
        if len(self.extent) != 2:
            raise ShapeError(
                f"a sparse tensor of {len(self.extent)} axes is multiplied, which is no matrix",
                location=here(),
            )  # fmt: skip
        found: SymbolicTensor = functions.matmul(self.dense, other)
        return found

    mm = mv = __matmul__ = matmul

    def __rmatmul__(self, other: Any) -> NoReturn:
        raise refused("stands on the right of a product")

    def __repr__(self) -> str:
        return "<symbolic sparse tensor>"


def sparse_of(indices: Any, values: Any, size: Any) -> SparseTensor:
    """A sparse tensor.  Raises ShapeError, and UnsupportedOpError for what depends on values."""
    if not isinstance(indices, SymbolicTensor) or not isinstance(values, SymbolicTensor):
        raise refused("is made of what is no tensor")
    if size is None:
        raise refused("is made without its sizes")
    if not isinstance(size, (tuple, list)):
        raise OperationTypeError(
            f"sparse_coo_tensor(): argument 'size' must be tuple of ints, not {class_name(size)}",
            location=here(),
        )
    extent = [as_dim(one) for one in size]
    places, number = indices.node, len(extent)
    as_index(places)
    if places.rank != 2 or values.node.rank != 1:
        raise ShapeError(
            "the indices of a sparse tensor are a matrix, and its values a vector", location=here()
        )
    pairs = [(places.shape[0], Dim.of(number)), (places.shape[1], values.node.shape[0])]
    if any(one != other for one, other in pairs):
        raise ShapeError(
            f"indices of shape {list(map(str, places.shape))} of {number} axes do not go with "
            f"{values.node.shape[0]} values", location=here(), equal=pairs,
        )  # fmt: skip
    return SparseTensor(indices, values, extent)


def refused(what: str) -> UnsupportedOpError:
    """The error for what is not traced for sparse tensors."""
    error = UnsupportedOpError(
        f"a sparse tensor {what}", location=here(),
        hint="a product with a dense tensor, t(), to_dense(), and _indices() and _values() of what "
        "is not coalesced work",
    )  # fmt: skip
    note_limit(error)
    return error
