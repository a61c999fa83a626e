"""Joining, splitting, repeating, rolling, padding.

In: tensors.  Out: tensors; pieces are views of what was split.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from symgrad.errors import ShapeError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.dtypes import as_dtype
from symgrad.frontend.functions.creation import filled
from symgrad.frontend.functions.movement import (
    axes_of,
    axis_of,
    select_steps,
    share,
    sizes_of,
    whole_shape,
)
from symgrad.frontend.kinds import refused
from symgrad.frontend.lift import as_tensor, elementwise, result_dtype
from symgrad.frontend.session import current
from symgrad.frontend.sizes import Shape, as_dim, is_size
from symgrad.frontend.table import OperationCallError, operation
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.frontend.views import Slice, Windows, concatenate
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import bool_
from symgrad.ir.graph import Node

Tensor = SymbolicTensor


def _check_sequence(name: str, tensors: Any) -> None:
    """Raises OperationTypeError for one tensor in place of several."""
    if not isinstance(tensors, (list, tuple)):
        raise refused(name, "tensors", "tuple of Tensors", tensors)


@operation("cat", "concat", "concatenate", method=False)
def cat(tensors: Sequence[Any], dim: int = 0) -> Tensor:
    """Tensors one after the other along an axis."""
    _check_sequence("cat", tensors)
    pieces = [as_tensor(piece) for piece in tensors]
    if not pieces:
        raise ShapeError("cat needs at least one tensor", location=here())
    dtype, session = result_dtype(pieces), current()
    nodes = [session.cast(piece.node, dtype) for piece in pieces]
    place = axis_of(dim, nodes[0].rank)
    for node in nodes:
        _check_fit(nodes[0], node, place)
    return fresh(concatenate(session, nodes, place))


def _check_fit(first: Node, node: Node, axis: int) -> None:
    pairs = enumerate(zip(node.shape, first.shape, strict=False))
    unequal = [pair for place, pair in pairs if place != axis and pair[0] != pair[1]]
    if unequal or first.rank != node.rank:
        raise ShapeError(
            f"cat along axis {axis}: {list(Shape.of(node.shape))} does not fit "
            f"{list(Shape.of(first.shape))}", location=here(), equal=unequal,
        )  # fmt: skip


@operation("stack", method=False)
def stack(tensors: Sequence[Any], dim: int = 0) -> Tensor:
    """Tensors of one shape along a new axis."""
    _check_sequence("stack", tensors)
    pieces = [as_tensor(piece) for piece in tensors]
    place = axis_of(dim, pieces[0].ndim + 1)
    return cat([piece.unsqueeze(place) for piece in pieces], place)


@operation("hstack", method=False)
def hstack(tensors: Sequence[Any]) -> Tensor:
    """Tensors side by side: along axis 1, vectors along axis 0."""
    pieces = [as_tensor(piece) for piece in tensors]
    return cat(pieces, 0 if pieces[0].ndim == 1 else 1)


@operation("vstack", method=False)
def vstack(tensors: Sequence[Any]) -> Tensor:
    """Tensors one above the other; a vector is a row."""
    pieces = [as_tensor(piece) for piece in tensors]
    return cat([piece if piece.ndim > 1 else piece.unsqueeze(0) for piece in pieces], 0)


# -- splitting


def _pieces(source: Tensor, axis: int, sizes: Sequence[Dim]) -> tuple[Tensor, ...]:
    start, found = Dim.of(0), []
    for size in sizes:
        found.append(share(source, Slice(axis, start, 1, size)))
        start = start + size
    return tuple(found)


@operation("split")
def split(tensor: Any, split_size_or_sections: Any = None, dim: int = 0, **named: Any) -> Any:
    """Pieces of one size (the last may be smaller), or of the sizes given."""
    source = as_tensor(tensor)
    wanted = named.get("split_size", split_size_or_sections)
    axis = axis_of(dim, source.ndim)
    whole = source.node.shape[axis]
    if isinstance(wanted, (list, tuple)):
        sizes = [as_dim(size) for size in wanted]
        total = sum(sizes, Dim.of(0))
        if total != whole:
            raise ShapeError(f"split: the sizes add up to {total}, not to {whole}", location=here())
        if any(current().truth(size, "<", 0) for size in sizes):
            raise ShapeError(
                f"split: sizes must not be negative, got {list(wanted)}", location=here()
            )
        return _pieces(source, axis, sizes)
    size = as_dim(wanted)
    if size.constant is not None and size.constant < 0:
        raise OperationCallError(
            f"split expects split_size be non-negative, but got split_size={size}", location=here()
        )
    return _pieces(source, axis, _equal_sizes(whole, size))


def _equal_sizes(whole: Dim, size: Dim) -> list[Dim]:
    """The sizes of pieces of ``size``, when their number is known.  Raises ShapeError."""
    if whole == 0:
        return [whole]
    count = whole.exact_quotient(size)
    if count is not None and count.constant is not None:
        return [size] * count.constant
    if whole.constant is not None and size.constant:
        full, rest = divmod(whole.constant, size.constant)
        return [size] * full + ([Dim.of(rest)] if rest else [])
    raise ShapeError(
        f"the number of pieces of size {size} in an axis of size {whole} is not known",
        location=here(), hint=f"write the axis as a multiple in the shape spec: 2*{size}",
        number=whole,
    )  # fmt: skip


MOST_FEWER_CHUNKS = 4
"""Numbers of chunks of a sum of sizes that are told apart: each is a case."""


@operation("chunk")
def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """That many pieces of one size."""
    if isinstance(chunks, int) and chunks <= 0:
        raise OperationCallError(
            f"chunk expects `chunks` to be greater than 0, got: {chunks}", location=here()
        )
    source = as_tensor(input)
    axis = axis_of(dim, source.ndim)
    whole = source.node.shape[axis]
    if whole == 0:
        return _pieces(source, axis, [whole] * chunks)
    if whole.constant is not None:
        size = max(1, -(-whole.constant // chunks))
        return _pieces(source, axis, _equal_sizes(whole, Dim.of(size)))
    return _pieces(source, axis, _chunks(whole, chunks))


def _chunks(whole: Dim, chunks: int) -> list[Dim]:
    """The sizes of chunks of an axis.  Raises ShapeError where there may be others.

    Of an axis that is a sum, such as that of joined tensors, the last one may be smaller, and there
    may be fewer.
    """
    equal, session = whole.exact_quotient(chunks), current()
    if equal is not None:
        return [equal] * chunks
    if len(whole.sizes) > 1:
        if session.truth(whole % chunks, "==", 0):
            return [whole // chunks] * chunks
        each = (whole + (chunks - 1)) // chunks
        for full in range(chunks - 1, max(-1, chunks - 1 - MOST_FEWER_CHUNKS), -1):
            last = whole - each * full
            certain = full == chunks - 1 and session.facts.decide(last, ">", 0)
            if certain or session.truth((whole - 1) // each, "==", full):
                return [*[each] * full, last]
    raise ShapeError(
        f"an axis of size {whole} does not split into {chunks} equal chunks for all {whole}",
        location=here(),
        hint=f"write it as a multiple in the shape spec: {chunks}*k",
        multiple=(whole, chunks), uneven=True,
    )  # fmt: skip


@operation("tensor_split")
def tensor_split(
    input: Any, indices_or_sections: Any = None, dim: int = 0, **named: Any
) -> tuple[Tensor, ...]:
    """That many pieces, the first ones larger by 1 where they must be; or those between indices."""
    source = as_tensor(input)
    wanted = named.get("sections", named.get("indices", indices_or_sections))
    axis = axis_of(dim, source.ndim)
    if isinstance(wanted, (list, tuple)):
        before = (slice(None),) * axis
        pairs = itertools.pairwise([None, *wanted, None])
        keys = [(*before, slice(start, end)) for start, end in pairs]
        return tuple(source[key] for key in keys)
    if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted <= 0:
        raise OperationCallError(
            f"number of sections must be larger than 0, got {wanted}", location=here()
        )
    whole = source.node.shape[axis]
    if whole.constant is not None:
        each, more = divmod(whole.constant, wanted)
        sizes = [Dim.of(each + (place < more)) for place in range(wanted)]
        return _pieces(source, axis, sizes)
    return chunk(source, wanted, axis)


@operation("unbind")
def unbind(input: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices of an axis of known size."""
    source = as_tensor(input)
    axis = axis_of(dim, source.ndim)
    count = source.shape[axis]
    if not isinstance(count, int):
        raise ShapeError(
            f"unbind cannot split an axis of symbolic size {count}", location=here(),
            hint="write a number for it in the shape spec", number=as_dim(count),
        )  # fmt: skip
    shape = source.node.shape
    return tuple(share(source, *select_steps(shape, axis, place)) for place in range(count))


@operation("split_with_sizes")
def split_with_sizes(input: Any, split_sizes: Sequence[Any], dim: int = 0) -> Any:
    """Pieces of the sizes given."""
    return split(input, list(split_sizes), dim)


@operation("unfold", function=False)
def unfold(self: Tensor, dimension: int, size: int, step: int = 1) -> Tensor:
    """All windows of ``size`` elements along an axis, ``step`` apart; they lie along a new one."""
    if not isinstance(size, int) or not isinstance(step, int) or size < 1 or step < 1:
        raise UnsupportedOpError(
            "unfold: size and step must be positive integers, not symbolic ones",
            location=here(),
            hint="give them as numbers",
        )
    axis = axis_of(dimension, self.ndim)
    if not self.ndim:  # torch takes it for one of one axis, and returns it so
        if size != 1:
            raise ShapeError("unfold: the axis is shorter than a window", location=here())
        row: Tensor = getattr(self, "reshape")(1)  # noqa: B009
        return row
    whole = self.node.shape[axis]
    if current().truth(whole, "<", size):
        raise ShapeError(
            f"unfold: a window of {size} is longer than the axis of size {whole}", location=here()
        )
    return share(self, Windows(axis, size, step))


@operation("diff")
def diff(input: Any, n: int = 1, dim: int = -1) -> Tensor:
    """Each element less the one before it, along an axis."""
    source = as_tensor(input)
    for _ in range(n):
        axis = axis_of(dim, source.ndim)
        if not current().holds(source.node.shape[axis], ">", 0):
            break
        less = source.node.shape[axis] - 1
        after, before = (share(source, Slice(axis, Dim.of(at), 1, less)) for at in (1, 0))
        source = elementwise("logical_xor" if source.dtype == bool_ else "sub", after, before)
    return source


# -- repeating


@operation("repeat", "tile", function=True)
def repeat(input: Any, *sizes: Any) -> Tensor:
    """The whole tensor, that many times along each axis."""
    source = as_tensor(input)
    counts = list(whole_shape([as_dim(size) for size in sizes_of(sizes)]))
    if len(counts) < source.ndim:
        counts = [Dim.of(1)] * (source.ndim - len(counts)) + counts
    session = current()
    shape = (*(Dim.of(1) for _ in counts[source.ndim :]), *source.node.shape)
    pairs = [(count, size) for count, size in zip(counts, shape, strict=True)]
    node = session.reshape(source.node, [part for _, size in pairs for part in (1, size)])
    node = session.expand(node, [part for pair in pairs for part in pair])
    return fresh(session.reshape(node, [count * size for count, size in pairs]))


@operation("repeat_interleave")
def repeat_interleave(
    input: Any, repeats: Any, dim: Any = None, *, output_size: Any = None
) -> Tensor:
    """Each slice of an axis, ``repeats`` times in a row."""
    if isinstance(repeats, Tensor):
        raise UnsupportedOpError(
            "repeat_interleave by a tensor has a shape that depends on values", location=here()
        )
    source = as_tensor(input)
    if dim is None:
        source, dim = source.flatten(), 0
    axis, count, session = axis_of(dim, source.ndim), as_dim(repeats), current()
    if count.constant is not None and count.constant < 0:
        raise OperationCallError("Repeats must be non-negative", location=here())
    shape = source.node.shape
    lined = (*shape[: axis + 1], Dim.of(1), *shape[axis + 1 :])
    wide = (*shape[: axis + 1], count, *shape[axis + 1 :])
    node = session.expand(session.reshape(source.node, lined), wide)
    return fresh(session.reshape(node, (*shape[:axis], shape[axis] * count, *shape[axis + 1 :])))


# -- turning round


@operation("flip")
def flip(input: Any, *axes_given: Any, dims: Any = None, axis: Any = None) -> Tensor:
    """Axes in reverse order (a copy)."""
    node = as_tensor(input).node
    named = dims if axis is None else axis
    given = sizes_of(axes_given) if axes_given else named
    axes = () if given == () or given == [] else axes_of(given, node.rank)
    if not axes:
        return fresh(node)
    starts = tuple(size - 1 if axis in axes else Dim.of(0) for axis, size in enumerate(node.shape))
    steps = tuple(-1 if axis in axes else 1 for axis in range(node.rank))
    return fresh(current().apply("slice", node, starts=starts, steps=steps, sizes=node.shape))


@operation("fliplr")
def fliplr(input: Any) -> Tensor:
    """Columns in reverse order."""
    return flip(input, 1)


@operation("flipud")
def flipud(input: Any) -> Tensor:
    """Rows in reverse order."""
    return flip(input, 0)


@operation("roll")
def roll(input: Any, shifts: Any, dims: Any = None) -> Tensor:
    """Elements moved along axes; what leaves at one end comes in at the other."""
    source = as_tensor(input)
    if dims is None:
        if isinstance(shifts, (list, tuple)) and len(shifts) != 1:
            raise _misaligned(len(shifts), 0)
        return roll(source.flatten(), shifts, 0).reshape(*source.shape)  # type: ignore[no-any-return]
    for name, one in (("shifts", shifts), ("dims", dims)):
        if not isinstance(one, (list, tuple)) and not is_size(one):
            raise refused("roll", name, "tuple of ints", one)
    moves, axes = (one if isinstance(one, (list, tuple)) else [one] for one in (shifts, dims))
    if len(moves) != len(axes):
        raise _misaligned(len(moves), len(axes))
    for shift, dim in zip(moves, axes, strict=True):
        source = _rolled(source, as_dim(shift), axis_of(dim, source.ndim))
    return fresh(source.node)


def _misaligned(shifts: int, dims: int) -> OperationCallError:
    return OperationCallError(
        f"shifts and dimensions must align. shifts: {shifts}, dims:{dims}", location=here()
    )


def _rolled(source: Tensor, shift: Dim, axis: int) -> Tensor:
    session, whole = current(), source.node.shape[axis]
    if whole.constant is not None and shift.constant is not None:
        start = Dim.of(-shift.constant % whole.constant) if whole.constant else Dim.of(0)
    else:
        start = _roll_start(shift, whole)
    if start == 0:
        return source
    parts = [
        Slice(axis, start, 1, whole - start).read(session, source.node),
        Slice(axis, Dim.of(0), 1, start).read(session, source.node),
    ]
    return fresh(concatenate(session, parts, axis))


def _roll_start(shift: Dim, whole: Dim) -> Dim:
    """Which element comes first after a shift: ``-shift`` modulo a symbolic size."""
    session = current()
    if session.truth(shift, "<", 0):
        back = -shift
        if session.truth(back, "<", whole):
            return back
        return back % whole if back.constant is None else _known_remainder(back.constant, whole)
    if session.truth(shift, "==", 0):
        return Dim.of(0)
    if session.truth(shift, "<", whole):
        return whole - shift
    if shift.constant is None:
        return (-shift) % whole
    return (whole - _known_remainder(shift.constant, whole)) % whole


def _known_remainder(value: int, whole: Dim) -> Dim:
    """``value % whole`` where ``1 <= whole <= value``: the trace is split by the size."""
    for size in range(1, value + 1):
        if current().truth(whole, "==", size):
            return Dim.of(value % size)
    raise ShapeError(f"roll of an axis of size {whole}", location=here())


# -- padding


@operation("pad", method=False)
def pad(input: Any, pad: Sequence[Any], mode: str = "constant", value: Any = None) -> Tensor:
    """A number (0) before and behind the axes, given in pairs from the last axis on.

    Other modes repeat what is there: the edges (``replicate``), what lies behind them, backwards
    (``reflect``), or at the other end (``circular``); these take one to three pairs, and one or two
    axes before those that are padded.
    """
    if mode not in ("constant", *_REPEATED):
        raise UnsupportedOpError(
            f"pad has no mode {mode!r}", location=here(),
            hint=f"there are constant, {', '.join(_REPEATED)}",
        )  # fmt: skip
    tensor = as_tensor(input)
    if len(pad) % 2:
        raise OperationCallError("Padding length must be divisible by 2", location=here())
    if len(pad) > 2 * tensor.ndim:
        raise OperationCallError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(pad)} and input of dimension {tensor.ndim}", location=here(),
        )  # fmt: skip
    pairs = len(pad) // 2
    if mode != "constant" and not (1 <= pairs <= 3 and 1 <= tensor.ndim - pairs <= 2):
        raise OperationCallError(
            f"Padding size {len(pad)} is not supported for {tensor.ndim}D input tensor with "
            f"mode {mode!r}", location=here(),
            hint="2 numbers pad a 2D or 3D input, 4 a 3D or 4D one, and 6 a 4D or 5D one",
        )  # fmt: skip
    for number in range(pairs):
        axis = tensor.ndim - 1 - number
        before, behind = as_dim(pad[2 * number]), as_dim(pad[2 * number + 1])
        if mode == "constant":
            tensor = _padded(tensor, axis, before, behind, 0 if value is None else value)
        else:
            tensor = _repeated(mode, tensor, axis, before, behind)
    return fresh(tensor.node)


_REPEATED = ("replicate", "reflect", "circular")


def _repeated(mode: str, tensor: Tensor, axis: int, before: Dim, behind: Dim) -> Tensor:
    """What is there, again before and behind an axis; a negative number takes elements away."""
    session, whole = current(), tensor.node.shape[axis]
    own = _padded(tensor, axis, _least(before), _least(behind), 0)
    less = whole if mode == "circular" else whole - 1
    for one in (before, behind):
        if mode != "replicate" and session.truth(one, ">", less):
            raise ShapeError(
                f"pad: {one} elements {mode} of an axis of size {whole}", location=here()
            )
    parts = [_copied(mode, tensor, axis, before, first=True), own,
             _copied(mode, tensor, axis, behind, first=False)]  # fmt: skip
    found = [part.node for part in parts if part is not None]
    return fresh(concatenate(session, found, axis))


def _least(count: Dim) -> Dim:
    """A number of elements where it is negative, else 0."""
    return count if current().truth(count, "<", 0) else Dim.of(0)


def _copied(mode: str, tensor: Tensor, axis: int, count: Dim, *, first: bool) -> Tensor | None:
    """So many elements to put before (or behind) an axis."""
    session, node = current(), tensor.node
    whole = node.shape[axis]
    if not session.truth(count, ">", 0):
        return None
    if mode == "replicate":
        at = Dim.of(0) if first else whole - 1
        edge = Slice(axis, at, 1, Dim.of(1)).read(session, node)
        return fresh(session.expand(edge, (*node.shape[:axis], count, *node.shape[axis + 1 :])))
    if mode == "circular":
        at = whole - count if first else Dim.of(0)
        return fresh(Slice(axis, at, 1, count).read(session, node))
    at = Dim.of(1) if first else whole - 1 - count
    return flip(fresh(Slice(axis, at, 1, count).read(session, node)), axis)


def _padded(tensor: Tensor, axis: int, before: Dim, behind: Dim, value: Any) -> Tensor:
    session = current()
    node = tensor.node
    first = -before if session.truth(before, "<", 0) else Dim.of(0)
    last = -behind if session.truth(behind, "<", 0) else Dim.of(0)
    if first != 0 or last != 0:
        left = node.shape[axis] - first - last
        if session.truth(left, "<", 0):
            raise ShapeError(
                f"pad: an axis of size {node.shape[axis]} cannot lose {first + last} elements",
                location=here(),
            )
        node = Slice(axis, first, 1, left).read(session, node)
    before, behind = before + first, behind + last
    if before == 0 and behind == 0:
        return fresh(node)
    size = before + node.shape[axis] + behind
    shape = (*node.shape[:axis], size, *node.shape[axis + 1 :])
    if isinstance(value, (int, float)) and value == 0:
        starts = tuple(before if place == axis else Dim.of(0) for place in range(node.rank))
        return fresh(
            session.apply("unslice", node, shape=shape, starts=starts, steps=(1,) * node.rank)
        )
    ends = [
        filled(value, (*shape[:axis], end, *shape[axis + 1 :]), as_dtype(node.dtype)).node
        for end in (before, behind)
    ]
    parts = [ends[0] if before != 0 else None, node, ends[1] if behind != 0 else None]
    return fresh(concatenate(session, [part for part in parts if part is not None], axis))
