"""Views: the same elements in another shape, order or selection, sharing memory.

In: tensors.  Out: views of them (a reshape of what does not lie contiguously is a copy).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.errors import ShapeError, UnsupportedOpError, counted
from symgrad.frontend.asked import used_as_axis
from symgrad.frontend.caller import here
from symgrad.frontend.dtypes import as_dtype
from symgrad.frontend.kinds import OperationTypeError, refused
from symgrad.frontend.lift import as_node, as_tensor, lined_up
from symgrad.frontend.questions import questions
from symgrad.frontend.session import current
from symgrad.frontend.sizes import Shape, as_dim, is_size
from symgrad.frontend.table import OperationCallError, operation
from symgrad.frontend.tensor import SelectedTensor, SymbolicTensor, fresh
from symgrad.frontend.views import Diagonal, Expand, Permute, Reshape, Slice
from symgrad.ir.dim import Dim, product

Tensor = SymbolicTensor


# -- arguments


def axis_of(axis: Any, rank: int) -> int:
    """A non-negative axis.

    Raises ShapeError when there is none such, ControlFlowError for a traced tensor.
    """
    if isinstance(axis, Tensor):
        axis = axis.__index__()
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise OperationTypeError(f"an axis must be an int, not {axis!r}", location=here())
    if not -max(rank, 1) <= axis < max(rank, 1):
        raise ShapeError(
            f"axis {axis} is out of range for a tensor with {counted(rank, 'axis')}",
            location=here(),
        )
    used_as_axis(axis)
    return axis % max(rank, 1)


def listed(axes: Sequence[Any]) -> list[Any]:
    """Several axes; in a list of them True is 1, as in torch."""
    return [int(axis) if isinstance(axis, bool) else axis for axis in axes]


def axes_of(axes: Any, rank: int) -> tuple[int, ...]:
    """Sorted non-negative axes from None (all), an int, or several ints."""
    if axes is None or (isinstance(axes, (tuple, list)) and not axes):
        return tuple(range(rank))
    several = listed(axes) if isinstance(axes, (tuple, list)) else [axes]
    if not rank:
        for axis in several:
            axis_of(axis, rank)
        return ()
    found = sorted({axis_of(axis, rank) for axis in several})
    if len(found) != len(several):
        raise ShapeError(f"the axes {tuple(several)} name one axis twice", location=here())
    return tuple(found)


def sizes_of(sizes: Sequence[Any]) -> tuple[Any, ...]:
    """``f(2, n)`` and ``f((2, n))`` alike."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        return tuple(sizes[0])
    return tuple(sizes)


def shape_of(sizes: Sequence[Any]) -> tuple[Dim, ...]:
    """``f(2, n)`` and ``f((2, n))`` alike, as a shape."""
    return tuple(map(as_dim, sizes_of(sizes)))


def whole_shape(shape: Sequence[Dim]) -> Sequence[Dim]:
    """The shape itself.  Raises OperationCallError for a negative size."""
    for size in shape:
        if not current().holds(size, ">=", 0):
            shown = ", ".join(map(str, shape))
            raise OperationCallError(
                f"Trying to create tensor with negative dimension {size}: [{shown}]",
                location=here(),
            )
    return shape


# -- reshaping


@operation("view", function=False)
def view(input: Tensor, *shape: Any) -> Tensor:
    """A view of another shape; -1 stands for what is left over."""
    if len(shape) == 1 and (shape[0] is None or isinstance(shape[0], bool)):
        raise refused("view", "size", "tuple of ints", shape[0])
    if len(shape) == 1 and not isinstance(shape[0], (tuple, list)) and not is_size(shape[0]):
        if as_dtype(shape[0]) == input.dtype:
            return share(input)
        raise UnsupportedOpError(
            f"view({shape[0]}) reads the memory of {input.dtype} as another dtype",
            location=here(), hint="to() converts the values",
        )  # fmt: skip
    return viewed(input, Reshape(_complete(input, shape)))


def viewed(input: Tensor, step: Reshape) -> Tensor:
    """A view; that the strides of inputs permit it is printed."""
    known = questions()
    if known is not None and not input.surely_shows(step):
        known.assume_here("view() is called on what its strides permit", here())
    return share(input, step)


@operation("reshape")
def reshape(input: Any, *shape: Any) -> Tensor:
    """The elements in another shape; a view where the memory can show it, else a copy."""
    source = as_tensor(input)
    return reshaped(source, _complete(source, shape))


def reshaped(input: Tensor, shape: Sequence[Dim]) -> Tensor:
    """A view where the memory can show that shape, else a copy."""
    step = Reshape(tuple(shape))
    if step.strides(input.node.shape, input.strides) is not None:
        if input.surely_shows(step):
            return share(input, step)
        return share(input.perhaps_copied("reshape() gives a view, and no copy"), step)
    copied = fresh(current().reshape(input.node, shape), settled=True)
    current().uncertain(input.storage, copied.storage)
    return copied


def share(input: Tensor, *steps: Any) -> Tensor:
    """A view of a tensor through steps."""
    return input.shared(*steps)


def _complete(input: Tensor, shape: Sequence[Any]) -> tuple[Dim, ...]:
    """The shape with -1 replaced by what the number of elements leaves."""
    sizes = shape_of(shape)
    unknown = [axis for axis, size in enumerate(sizes) if size == -1]
    if len(unknown) > 1:
        raise ShapeError("only one size can be -1", location=here())
    total = product(input.node.shape)
    if unknown:
        known = product([size for size in sizes if size != -1])
        left = total.exact_quotient(known)
        if left is None:
            raise _cannot_reshape(input, sizes)
        sizes = tuple(left if size == -1 else size for size in sizes)
    elif product(sizes) != total:
        raise _cannot_reshape(input, sizes)
    return sizes


def _cannot_reshape(input: Tensor, sizes: Sequence[Dim]) -> ShapeError:
    wanted = list(Shape.of(sizes))
    hint = ""
    if product(input.node.shape).constant is None:
        hint = "sizes that divide one another are written so in the shape spec: 2*n, or n with h*n"
    return ShapeError(
        f"shape {list(input.shape)} cannot become {wanted} for all sizes", location=here(),
        hint=hint, equal=_one_axis(input.node.shape, sizes),
        parted=_parted(input.node.shape, sizes),
    )  # fmt: skip


def _parted(old: Sequence[Dim], new: Sequence[Dim]) -> tuple[Dim, int] | None:
    """The first axis behind those that stay, and the number of parts that it is to have.

    Where as many as are left are asked for (-1), the last axis before those that stay.
    """
    stay, tail = _alike(old, new), _alike(old[::-1], new[::-1])
    parts = new[stay].constant if stay < min(len(old), len(new)) else None
    if parts == -1 and stay + tail < len(old):
        parts = product([size for size in new[stay : len(new) - tail] if size != -1]).constant
        stay = len(old) - tail - 1
    return (old[stay], parts) if parts is not None and parts > 1 else None


def _alike(old: Sequence[Dim], new: Sequence[Dim]) -> int:
    """How many sizes from the first on are the same."""
    alike = [one == other for one, other in zip(old, new, strict=False)]
    return len(list(itertools.takewhile(bool, alike)))


def _one_axis(old: Sequence[Dim], new: Sequence[Dim]) -> list[tuple[Dim, Dim]]:
    """What the size of a single axis would have to be, where no more than one size is not known.

    The last axis of several is to stay where all before it become one, and the first where all
    behind it do.
    """
    if len(new) == 2 and -1 in new and len(old) > 1:
        return [(old[-1], new[1]) if new[0] == -1 else (old[0], new[0])]
    if len(old) != 1 and new and -1 not in new:
        return _one_of_several(old, new)
    if len(old) != 1 or not new or -1 in new:
        return []
    rest = [size for size in new if size != 1]
    plain = len(rest) == 1 or all(size.constant is not None for size in rest)
    return [(old[0], product(rest))] if plain else []


def _one_of_several(old: Sequence[Dim], new: Sequence[Dim]) -> list[tuple[Dim, Dim]]:
    """The axes that the new sizes are no multiples of, as one, with what they leave for them.

    Of several, as many sizes have to be left; else the first of them stays, as what is parted
    comes behind what stays.
    """
    rest, other = product(tuple(new)), []
    for size in old:
        quotient = rest.exact_quotient(size)
        if quotient is None:
            other.append(size)
        else:
            rest = quotient
    known = len(other) == 1 or (len(other) == len(rest.atoms) and len(rest.terms) == 1)
    stay = _alike(old, new)
    if len(other) > 1 and not known and stay < len(old) - 1 < len(new) - 1:
        return [(old[stay], new[stay])] if new[stay].constant is None else []
    return [(product(other), rest)] if other and known and rest != 1 else []


@operation("view_as", function=False)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """A view in the shape of another tensor."""
    return view(input, *other.shape)


@operation("reshape_as", function=False)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements in the shape of another tensor."""
    return reshape(input, *other.shape)


@operation("flatten")
def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Consecutive axes made one."""
    source = as_tensor(input)
    rank = source.ndim
    first, last = axis_of(start_dim, rank), axis_of(end_dim, rank)
    shape = source.node.shape
    if not rank:
        return reshaped(source, (Dim.of(1),))
    if first > last:
        raise ShapeError("flatten: start_dim comes after end_dim", location=here())
    if first == last:
        return source
    return reshaped(source, (*shape[:first], product(shape[first : last + 1]), *shape[last + 1 :]))


@operation("ravel")
def ravel(input: Any) -> Tensor:
    """All axes made one."""
    return reshape(input, -1)


@operation("unflatten")
def unflatten(input: Any, dim: int, sizes: Any) -> Tensor:
    """One axis made several."""
    source = as_tensor(input)
    axis = axis_of(dim, source.ndim)
    shape = source.shape
    return reshape(source, *shape[:axis], *_filled(sizes, shape[axis]), *shape[axis + 1 :])


def _filled(sizes: Any, whole: Any) -> tuple[Any, ...]:
    known = [size for size in sizes if not (isinstance(size, int) and size == -1)]
    if len(known) == len(sizes):
        return tuple(sizes)
    by = product([as_dim(size) for size in known])
    rest = as_dim(whole).exact_quotient(by)
    if rest is None:
        raise ShapeError(
            f"size {whole} is not divisible by {tuple(known)}", location=here(),
            multiple=None if by.constant is None else (as_dim(whole), by.constant),
        )  # fmt: skip
    return tuple(rest if isinstance(size, int) and size == -1 else size for size in sizes)


@operation("unsqueeze", "expand_dims")
def unsqueeze(input: Any, dim: int) -> Tensor:
    """An axis of size 1 put in."""
    source = as_tensor(input)
    axis = axis_of(dim, source.ndim + 1)
    shape = source.node.shape
    return share(source, Reshape((*shape[:axis], Dim.of(1), *shape[axis:])))


def _at_least(rank: int) -> Callable[..., Any]:
    def call(*tensors: Any) -> Any:
        several = len(tensors) == 1 and isinstance(tensors[0], (tuple, list))
        found = tuple(_raised(as_tensor(one), rank) for one in (tensors[0] if several else tensors))
        return found if several or len(found) != 1 else found[0]

    call.__name__ = call.__qualname__ = f"atleast_{rank}d"
    call.__doc__ = f"The tensors with at least {counted(rank, 'axis')}; those that have it as are."
    return call


def _raised(source: Tensor, rank: int) -> Tensor:
    """With axes of size 1 in front up to two axes, and behind them up to three."""
    if source.ndim >= rank:
        return source
    shape = source.node.shape
    before = (Dim.of(1),) * max(0, min(rank, 2) - len(shape))
    behind = (Dim.of(1),) * (rank - len(before) - len(shape))
    return share(source, Reshape((*before, *shape, *behind)))


for _rank in (1, 2, 3):
    operation(f"atleast_{_rank}d", method=False)(_at_least(_rank))


@operation("squeeze")
def squeeze(input: Any, dim: Any = None) -> Tensor:
    """Without the axes of size 1, or without those of ``dim`` that have size 1.

    On a symbolic size this splits the trace: the size is 1, or it is not.
    """
    source = as_tensor(input)
    axes = axes_of(dim, source.ndim) if dim is not None else range(source.ndim)
    if dim == () or dim == []:
        return share(source)
    session = current()
    shape = source.node.shape
    gone = {axis for axis in axes if session.truth(shape[axis], "==", 1)}
    if not gone:
        return share(source)
    kept = tuple(size for axis, size in enumerate(shape) if axis not in gone)
    return share(source, Reshape(kept))


# -- reordering


@operation("permute")
def permute(input: Any, *dims: Any) -> Tensor:
    """The axes in another order."""
    source = as_tensor(input)
    axes = tuple(axis_of(axis, source.ndim) for axis in listed(sizes_of(dims)))
    if sorted(axes) != list(range(source.ndim)):
        raise ShapeError(
            f"permute: {axes} must name each of {source.ndim} axes once", location=here()
        )
    return share(source, Permute(axes))


@operation("transpose", "swapaxes", "swapdims")
def transpose(input: Any, dim0: int, dim1: int) -> Tensor:
    """Two axes swapped."""
    source = as_tensor(input)
    first, second = axis_of(dim0, source.ndim), axis_of(dim1, source.ndim)
    axes = list(range(source.ndim))
    if axes:
        axes[first], axes[second] = axes[second], axes[first]
    return share(source, Permute(tuple(axes)))


@operation("t")
def t(input: Any) -> Tensor:
    """The transpose of a matrix; a vector or number is itself."""
    source = as_tensor(input)
    if source.ndim > 2:
        raise ShapeError(
            f"t() takes at most 2 axes, not {source.ndim}", location=here(),
            hint="use .mT or transpose(-2, -1)",
        )  # fmt: skip
    return share(source, Permute(tuple(reversed(range(source.ndim)))))


@operation("adjoint")
def adjoint(input: Any) -> Tensor:
    """The last two axes swapped."""
    return transpose(input, -2, -1)


def _all_reversed(input: Tensor) -> Tensor:
    """The axes in reverse order."""
    if input.ndim <= 2:
        reversed_: Tensor = input.t()
        return reversed_
    return share(input, Permute(tuple(reversed(range(input.ndim)))))


SymbolicTensor.T = property(_all_reversed)  # type: ignore[attr-defined]
SymbolicTensor.mT = property(lambda self: self.adjoint())  # type: ignore[attr-defined]


def _transposed_matrix(input: Tensor) -> Tensor:
    """The transposed matrix.  Raises ShapeError for anything else."""
    if input.ndim != 2:
        raise ShapeError("H is an attribute of matrices, with 2 axes", location=here())
    return transpose(input, 0, 1)


SymbolicTensor.H = property(_transposed_matrix)  # type: ignore[attr-defined]
SymbolicTensor.mH = property(lambda self: self.adjoint())  # type: ignore[attr-defined]


@operation("movedim", "moveaxis")
def movedim(input: Any, source: Any, destination: Any) -> Tensor:
    """Axes moved to other places, the rest in their order."""
    tensor = as_tensor(input)
    rank = tensor.ndim
    several = isinstance(source, (tuple, list))
    if several != isinstance(destination, (tuple, list)):
        kind = "tuple of ints" if several else "int"
        raise refused("movedim", "destination", kind, destination)
    if several and len(source) != len(destination):
        raise OperationCallError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should "
            f"contain the same number of dims as destination ({list(destination)} dims)",
            location=here(),
        )
    taken = [axis_of(a, rank) for a in (source if several else [source])]
    if len(set(taken)) != len(taken):
        raise OperationCallError(
            f"movedim: repeated dim in `source` ({list(source)})", location=here()
        )
    places = destination if isinstance(destination, (tuple, list)) else [destination]
    order: list[int | None] = [None] * rank
    for place, axis in zip(places, taken, strict=True):
        order[axis_of(place, rank)] = axis
    rest = iter(axis for axis in range(rank) if axis not in taken)
    return share(tensor, Permute(tuple(next(rest) if axis is None else axis for axis in order)))


# -- broadcasting


@operation("expand", function=False)
def expand(input: Tensor, *sizes: Any) -> Tensor:
    """Broadcast to a shape; -1 keeps a size."""
    wanted = shape_of(sizes)
    added = len(wanted) - input.ndim
    old = input.node.shape
    if added < 0:
        raise ShapeError(
            f"expand: {len(wanted)} sizes given for a tensor with {input.ndim} axes",
            location=here(),
        )
    shape = tuple(
        old[axis - added] if size == -1 and axis >= added else size
        for axis, size in enumerate(wanted)
    )
    return share(input, Expand(tuple(whole_shape(shape))))


@operation("broadcast_to")
def broadcast_to(input: Any, shape: Any) -> Tensor:
    """Broadcast to a shape."""
    return expand(as_tensor(input), *shape)


@operation("expand_as", function=False)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Broadcast to the shape of another tensor."""
    if isinstance(other, SelectedTensor):
        node = as_node(lined_up(input, other))
        return other.with_whole(current().expand(node, other.whole.shape))
    return expand(input, *other.node.shape)


# -- parts


@operation("narrow")
def narrow(input: Any, dim: int, start: Any, length: Any) -> Tensor:
    """``length`` elements along an axis, from ``start``."""
    source = as_tensor(input)
    axis = axis_of(dim, source.ndim)
    first, count = as_dim(start), as_dim(length)
    size, truth = source.node.shape[axis], current().truth
    if truth(count, "<", 0):
        raise ShapeError(f"narrow(): length must be non-negative, and is {length}", location=here())
    if truth(first, "<", 0):
        first = size + first
    if truth(first, "<", 0) or truth(first, ">", size):
        raise ShapeError(
            f"start out of range (expected to be in range of [-{size}, {size}], but got {start})",
            location=here(),
        )
    if truth(first + count, ">", size):
        raise ShapeError(
            f"start ({first}) + length ({length}) exceeds dimension size ({size}).",
            location=here(),
        )
    return share(source, Slice(axis, first, 1, count))


@operation("select")
def select(input: Any, dim: int, index: Any) -> Tensor:
    """What an axis holds at one index; the axis disappears."""
    source = as_tensor(input)
    return share(source, *select_steps(source.node.shape, axis_of(dim, source.ndim), index))


def select_steps(shape: tuple[Dim, ...], axis: int, index: Any) -> tuple[Any, ...]:
    """The steps to one index of an axis.  Raises ShapeError when it is out of range."""
    place, size, session = as_dim(index), shape[axis], current()
    if session.truth(place, "<", 0):
        place = size + place
    if not session.truth(place, "<", size) or not session.truth(place, ">=", 0):
        raise ShapeError(
            f"index {index} is out of range for an axis of size {size}", location=here()
        )
    kept = (*shape[:axis], *shape[axis + 1 :])
    return Slice(axis, place, 1, Dim.of(1)), Reshape(kept)


@operation("diagonal")
def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two axes, as a last axis."""
    source = as_tensor(input)
    axes = axis_of(dim1, source.ndim), axis_of(dim2, source.ndim)
    rows, columns = (source.node.shape[axis] for axis in axes)
    truth = current().truth
    if truth(rows + min(offset, 0), "<", 0) or truth(columns - max(offset, 0), "<", 0):
        return share(source, Slice(axes[1], Dim.of(0), 1, Dim.of(0)), Diagonal(0, axes))
    return share(source, Diagonal(offset, axes))
