"""Operations that are blind to the number of batch axes, and when.

In: calls.  Out: ``RULES``, filled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import symgrad.frontend.functions  # noqa: F401  (attaches the methods)
from symgrad.errors import ShapeError
from symgrad.frontend.anyrank.call import (
    Call,
    broadcasts,
    elementwise,
    fits_right,
    has_batch_axis,
    layout,
    off_batch_axis,
    rule,
    same_layout,
    shape_of,
)
from symgrad.frontend.anyrank.session import Layout, is_batch_axis, layout_of
from symgrad.frontend.anyrank.shape import AnyRankShape, rank_of
from symgrad.frontend.functions.indexing import getitem
from symgrad.frontend.functions.movement import reshaped, sizes_of, viewed
from symgrad.frontend.sizes import AnyRankSize, as_dim, is_size
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.frontend.views import Reshape
from symgrad.ir.dim import Dim, product
from symgrad.ir.dtype import bool_

LOSSES = """
    mse_loss l1_loss huber_loss smooth_l1_loss binary_cross_entropy binary_cross_entropy_with_logits
    kl_div hinge_embedding_loss dist
"""
REDUCTIONS = """
    sum prod mean var std var_mean std_mean amax amin aminmax argmax argmin any all count_nonzero
    norm logsumexp nansum nanmean linalg.vector_norm
"""
ALONG_AXES = """
    softmax log_softmax softmin cumsum cumprod cummax cummin logcumsumexp sort argsort topk kthvalue
    glu normalize cosine_similarity select narrow diff roll unbind chunk split split_with_sizes
    unfold squeeze repeat_interleave flip tensor_split
"""
PLACES = """
    gather take_along_dim take_along_axis scatter scatter_add scatter_reduce
"""
SLICES = "index_select index_add index_fill index_copy"
WHOLE = """
    clone contiguous copy detach detach_ alias cpu cuda float double long bool to astype type
    type_as zeros_like ones_like empty_like full_like numel nelement is_floating_point is_complex
    is_tensor result_type element_size get_device requires_grad_ data __deepcopy__ one_hot
"""


def in_place(names: str) -> str:
    """The names of the forms that write into their first argument, where there are such."""
    return " ".join(f"{name}_" for name in names.split() if hasattr(SymbolicTensor, f"{name}_"))


@rule(LOSSES)
def _loss(call: Call) -> Any:
    """Element by element, then over all elements or none."""
    if call.given.get("reduction") == "batchmean":
        call.refuse("divides by the size of the first axis")
    return elementwise(call)


@rule(WHOLE)
def _whole(call: Call) -> Any:
    """Looks at no axis; what it is given beside the tensor has no batch axes to meet."""
    for tensor in call.tensors[1:]:
        if call.name in ("full_like",) and layout(tensor) is not None:
            call.refuse("takes a value with batch axes")
    return call.run()


# -- over axes


def _axes(call: Call) -> tuple[Any, ...]:
    """The axes that a call names, in whichever way; none where it means all of them."""
    found: list[Any] = []
    for name in ("dim", "dims", "axis", "dimension", "axes_given"):
        named = call.given.get(name)
        for item in named if isinstance(named, (tuple, list)) else (named,):
            found.extend(item if isinstance(item, (tuple, list)) else (item,))
    return tuple(axis for axis in found if axis is not None and not isinstance(axis, bool))


@rule(REDUCTIONS)
def _reduction(call: Call) -> Any:
    """Over all axes, or over axes that are no batch axes."""
    if call.name in ("std", "var_mean", "std_mean"):  # they hand their arguments on to var
        var: Any = SymbolicTensor.var  # type: ignore[attr-defined]
        _check_reduction(Call(call.session, call.name, var, call.args, call.kwargs))
    else:
        _check_reduction(call)
    return call.run()


def _check_reduction(call: Call) -> None:
    tensor, *others = call.tensors
    if any(map(has_batch_axis, others)):
        call.refuse("takes several tensors with batch axes")
    axes = _axes(call)
    if not axes and (call.given.get("keepdim") or call.name == "logsumexp"):
        call.refuse("keeps the batch axes that it reduces")
    if isinstance(call.given.get("dim"), bool) and call.name != "var":
        call.refuse("takes no axes")
    for axis in axes:
        off_batch_axis(call, axis, layout(tensor))


@rule("max min")
def _extremum(call: Call) -> Any:
    """Of all elements, along an axis, or of two tensors."""
    second = call.given["other"]
    second = call.given["dim"] if second is None else second
    if isinstance(second, SymbolicTensor):
        return elementwise(call)
    return _reduction(call)


@rule(f"{ALONG_AXES} {in_place('cumsum cumprod')}")
def _along_axes(call: Call) -> Any:
    """Along axes that are no batch axes; all axes are not meant."""
    axes = _axes(call)
    if not axes:
        call.refuse("names no axis")
    same_layout(call, call.tensors)
    for axis in axes:
        off_batch_axis(call, axis, layout(call.tensors[0]))
    return call.run()


@rule(f"{PLACES} {in_place('scatter scatter_add scatter_reduce')}")
def _places(call: Call) -> Any:
    """Elements at computed places along an axis: all tensors have the same batch axes."""
    tensors = [tensor for tensor in call.tensors if shape_of(tensor)]
    same_layout(call, tensors)
    dim = call.given["dim"]
    if dim is None:  # take_along_dim(input, indices)
        call.refuse("names no axis")
    off_batch_axis(call, dim, layout(tensors[0]))
    return call.run()


@rule(f"{SLICES} {in_place('index_add index_fill index_copy')}")
def _slices(call: Call) -> Any:
    """Slices along an axis that an index without batch axes names."""
    if has_batch_axis(call.given["index"]):
        call.refuse("takes an index with batch axes")
    given = [call.given[name] for name in ("input", "source", "value") if name in call.given]
    same_layout(call, [one for one in given if isinstance(one, SymbolicTensor) and shape_of(one)])
    off_batch_axis(call, call.given["dim"], layout(call.given["input"]))
    return call.run()


@rule("embedding")
def _embedding(call: Call) -> Any:
    """Rows of a table: the table has no batch axes."""
    if has_batch_axis(call.given["weight"]):
        call.refuse("takes a table with batch axes")
    return call.run()


@rule("tril triu tril_ triu_")
def _triangle(call: Call) -> Any:
    found = layout(call.args[0])
    if found is not None and found.right < 2:
        call.refuse("works on the last two axes")
    if len(call.tensors) > 1:
        call.refuse("takes a tensor as diagonal")
    return call.run()


@rule("sum_to_size")
def _sum_to_size(call: Call) -> Any:
    """As gradients are summed to the shapes of inputs."""
    from symgrad.frontend.functions.movement import shape_of as sizes

    tensor, wanted = call.args[0], sizes(call.args[1:])
    found, other = layout(tensor), layout_of(wanted)
    if found is None or (other is None and len(wanted) > found.right):
        call.refuse("sums to a shape that fits only some numbers of batch axes")
    elif other is not None and (other.batch, other.right) != (found.batch, found.right):
        call.refuse("sums to a shape with batch axes at another place")
    return call.run()


@rule("__array_ufunc__ __array_function__")
def _numpy(call: Call) -> Any:
    """NumPy's functions end in operations that have rules of their own."""
    name = getattr(call.args[1], "__name__", "")
    if name == "transpose" or call.kwargs.get("out") is not None:
        call.refuse(f"calls np.{name}")
    return call.run()


# -- products and normalisations


@rule("matmul __matmul__ linalg.matmul")
def _matmul(call: Call) -> Any:
    _check_product(call, call.args[0], call.args[1])
    return call.run()


@rule("__rmatmul__")
def _reflected(call: Call) -> Any:
    _check_product(call, call.args[1], call.args[0])
    return call.run()


def _check_product(call: Call, left: Any, right: Any) -> None:
    """Matrices right of the batch axis; or rows right of it, times one matrix or vector.

    Without batch axes, rows times a matrix are a vector times a matrix.
    """
    batches = [layout(side) for side in (left, right)]
    rows, table = batches
    if rows is not None and rows.right == 1 and table is None:
        if len(shape_of(right)) > 2:
            call.refuse("multiplies vectors by a batch of matrices")
        return
    if any(found is not None and found.right < 2 for found in batches):
        call.refuse("takes batch axes for rows or columns")
    broadcasts(call, [_batch(side) for side in (left, right)])


def _batch(side: Any) -> tuple[Any, ...]:
    shape = shape_of(side)
    return shape[: max(len(shape) - 2, 0)]


@rule("linear")
def _linear(call: Call) -> Any:
    """The weight and bias have no batch axes, and the vectors stand right of them."""
    fits_right(call, call.given["input"], 1)
    if has_batch_axis(call.given["weight"]) or has_batch_axis(call.given["bias"]):
        call.refuse("takes a weight with batch axes")
    bias = call.given["bias"]
    if bias is not None and len(shape_of(bias)) > 1:
        call.refuse("takes a bias with several axes")
    return call.run()


@rule("einsum")
def _einsum(call: Call) -> Any:
    """The ellipsis stands for the batch axes and for nothing else."""
    operands = call.given["operands"]
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = operands[0]
    words = call.given["equation"].replace(" ", "").partition("->")[0].split(",")
    batches = set()
    for word, operand in zip(words, operands, strict=True):
        before, dots, after = word.partition("...")
        found = layout(operand)
        if found is None and dots and len(shape_of(operand)) != len(before) + len(after):
            call.refuse("has an ellipsis for axes other than the batch axes")
        if found is not None and not (
            dots and (found.left, found.right) == (len(before), len(after))
        ):
            call.refuse("labels batch axes")
        batches |= {found.batch} if found is not None else set()
    if len(batches) > 1:
        call.refuse("lets different batch axes meet")
    return call.run()


@rule("scaled_dot_product_attention")
def _attention(call: Call) -> Any:
    """Matrices right of the batch axis; the mask has the same batch axes or none."""
    matrices = [call.given[name] for name in ("query", "key", "value")]
    same_layout(call, matrices)
    for matrix in matrices:
        fits_right(call, matrix, 2)
    if isinstance(call.given["attn_mask"], SymbolicTensor):
        broadcasts(call, [shape_of(matrices[0]), shape_of(call.given["attn_mask"])])
    return call.run()


@rule("layer_norm rms_norm")
def _normalised(call: Call) -> Any:
    """Over last axes that are no batch axes."""
    found = layout(call.given["input"])
    shape = call.given["normalized_shape"]
    several = isinstance(shape, (tuple, list))
    if found is None or (several and (len(shape) > found.right)) or found.right < 1:
        call.refuse("reaches into the batch axes")
    broadcasts(call, [shape_of(tensor) for tensor in call.tensors])
    return call.run()


@rule(
    "inverse det logdet slogdet cholesky matrix_power "
    "linalg.inv linalg.det linalg.slogdet linalg.cholesky linalg.matrix_power"
)
def _matrices(call: Call) -> Any:
    """Of the last two axes."""
    fits_right(call, call.args[0], 2)
    return call.run()


# -- reshaping


@rule("view")
def _view(call: Call) -> Any:
    """The same memory in another shape."""
    tensor, *shape = call.args
    if len(shape) == 1 and not _is_sizes(shape[0]):
        return call.run()  # a dtype
    return _reshaped(call, tensor, shape, shares=True)


def _is_sizes(value: Any) -> bool:
    return isinstance(value, (tuple, list)) or type(value) is AnyRankSize or is_size(value)


@rule("reshape")
def _reshape(call: Call) -> Any:
    """The same elements in another shape."""
    return _reshaped(call, call.given["input"], call.given["shape"], shares=False)


@rule("view_as reshape_as")
def _reshape_as(call: Call) -> Any:
    shape = AnyRankShape.of(shape_of(call.given["other"]))
    return _reshaped(call, call.given["self" if "self" in call.given else "input"], [shape],
                     shares=call.name == "view_as")  # fmt: skip


def _reshaped(call: Call, tensor: Any, sizes: Sequence[Any], *, shares: bool) -> Any:
    """Elements keep their order, so that any shape of as many elements will do.

    Whether memory can be shared may depend on whether there are batch axes at all: where it
    cannot be with a batch axis, it may be without.
    """
    session = call.session
    wanted = [as_dim(size) for size in sizes_of(tuple(sizes))]
    total = session.flat(product(tensor.node.shape))
    unknown = sum(size == -1 for size in wanted)
    if unknown > 1:
        raise ShapeError("only one size can be -1")
    if unknown:
        known = session.flat(product([size for size in wanted if size != -1]))
        left = total.exact_quotient(known)
        if left is None:
            raise ShapeError("the sizes do not divide the number of elements")
        wanted = [left if size == -1 else size for size in wanted]
    if session.flat(product(wanted)) != total:
        raise ShapeError("the shape has another number of elements")
    return viewed(tensor, Reshape(tuple(wanted))) if shares else reshaped(tensor, wanted)


@rule("flatten ravel")
def _flatten(call: Call) -> Any:
    """All axes, or neighbours on one side of the batch axis, or a run across it."""
    tensor = call.given["input"]
    found = layout(tensor)
    assert found is not None
    start, end = call.given.get("start_dim", 0), call.given.get("end_dim", -1)
    shape = tensor.node.shape
    if (start, end) == (0, -1):
        return _reshaped(call, tensor, [_flat(call, shape)], shares=False)
    off_batch_axis(call, end, found)
    if start != found.left or not found.right or end >= 0:
        off_batch_axis(call, start, found)
    first, last = start % len(shape), end % len(shape)
    if first > last:
        raise ShapeError("start_dim comes after end_dim")
    middle = _flat(call, shape[first : last + 1])
    sizes = (*map(_item, shape[:first]), middle, *map(_item, shape[last + 1 :]))
    return _reshaped(call, tensor, sizes, shares=False)


def _flat(call: Call, sizes: Sequence[Dim]) -> Dim:
    return call.session.flat(product(tuple(sizes)))


def _item(size: Dim) -> Any:
    return AnyRankSize(size) if is_batch_axis(size) else size


@rule("unflatten")
def _unflatten(call: Call) -> Any:
    """One axis that is no batch axis made several."""
    tensor = call.given["input"]
    if any(map(has_batch_axis, call.given["sizes"])):
        call.refuse("splits an axis into batch axes")
    if layout(tensor) is not None:
        off_batch_axis(call, call.given["dim"], layout(tensor))
    return call.run()


@rule("is_contiguous")
def _is_contiguous(call: Call) -> Any:
    """What lies contiguously with batch axes does so without."""
    result = call.run()
    if not result:
        call.refuse("may be True where there are no batch axes")
    return result


@rule("unsqueeze expand_dims")
def _unsqueeze(call: Call) -> Any:
    off_batch_axis(call, call.given["dim"], layout(call.given["input"]), added=1)
    return call.run()


# -- reordering


@rule("transpose swapaxes swapdims")
def _transpose(call: Call) -> Any:
    found = layout(call.given["input"])
    off_batch_axis(call, call.given["dim0"], found)
    off_batch_axis(call, call.given["dim1"], found)
    return call.run()


@rule("adjoint mT mH")
def _adjoint(call: Call) -> Any:
    off_batch_axis(call, -2, layout(call.args[0]))
    return call.run()


@rule("diagonal")
def _diagonal(call: Call) -> Any:
    found = layout(call.given["input"])
    off_batch_axis(call, call.given["dim1"], found)
    off_batch_axis(call, call.given["dim2"], found)
    return call.run()


@rule("diag_embed")
def _diag_embed(call: Call) -> Any:
    found = layout(call.given["input"])
    if (call.given["dim1"], call.given["dim2"]) != (-2, -1) or found is None or not found.right:
        call.refuse("puts the matrices at axes that are not known")
    return call.run()


@rule("movedim moveaxis")
def _movedim(call: Call) -> Any:
    """Axes that are no batch axes, to places that are counted from their own end."""
    found = layout(call.given["input"])
    assert found is not None
    taken, places = (_several(call.given[name]) for name in ("source", "destination"))
    for axis in taken:
        off_batch_axis(call, axis, found)
    left = found.left - sum(axis >= 0 for axis in taken) + sum(place >= 0 for place in places)
    right = found.right - sum(axis < 0 for axis in taken) + sum(place < 0 for place in places)
    for place in places:
        off_batch_axis(call, place, Layout(left, found.batch, right))
    return call.run()


def _several(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


# -- broadcasting and joining


@rule("expand broadcast_to expand_as")
def _expand(call: Call) -> Any:
    """To batch axes, or where they are already."""
    tensor, *sizes = call.args
    if call.name == "expand_as":
        wanted = shape_of(sizes[0])
    else:
        wanted = tuple(as_dim(size) for size in sizes_of(tuple(sizes)))
    target, own = layout_of(wanted), layout(tensor)
    if target is None:
        call.refuse("to a shape without batch axes")
    assert target is not None
    broadcasts(call, [shape_of(tensor), wanted])
    for axis, size in enumerate(wanted[: target.left]):
        if size == -1 and (own is None or axis < target.left - own.left):
            call.refuse(f"keeps the size of axis {axis}")
    return call.run()


@rule("cat concat concatenate")
def _cat(call: Call) -> Any:
    pieces = list(call.given["tensors"])
    same_layout(call, pieces)
    off_batch_axis(call, call.given["dim"], layout(pieces[0]))
    return call.run()


@rule("stack")
def _stack(call: Call) -> Any:
    pieces = list(call.given["tensors"])
    same_layout(call, pieces)
    off_batch_axis(call, call.given["dim"], layout(pieces[0]), added=1)
    return call.run()


@rule("pad")
def _pad(call: Call) -> Any:
    found = layout(call.given["input"])
    if found is None or len(call.given["pad"]) > 2 * found.right:
        call.refuse("reaches into the batch axes")
    if isinstance(call.given["value"], SymbolicTensor):
        call.refuse("takes a tensor as value")
    return call.run()


@rule("zeros ones empty new_zeros new_ones new_empty full new_full")
def _created(call: Call) -> Any:
    """Constants in a shape with batch axes."""
    if has_batch_axis(call.given.get("fill_value")):
        call.refuse("takes a value with batch axes")
    return call.run()


# -- what it is


@rule("size")
def _size(call: Call) -> Any:
    shape = AnyRankShape.of(shape_of(call.args[0]))
    dim = call.given["dim"]
    return shape if dim is None else shape[dim]


@rule("dim ndimension")
def _dim(call: Call) -> Any:
    return rank_of(shape_of(call.args[0]))


@rule("is_same_size")
def _is_same_size(call: Call) -> Any:
    one, other = (AnyRankShape.of(shape_of(tensor)) for tensor in call.args)
    return bool(one == other)


@rule("__len__ __iter__")
def _first_axis(call: Call) -> Any:
    off_batch_axis(call, 0, layout(call.args[0]))
    return call.run()


# -- brackets


@rule("__getitem__")
def _getitem(call: Call) -> Any:
    """Axes left of the batch axis from the left, those right of it behind an ellipsis."""
    tensor, key = call.args
    if layout(tensor) is None:
        if not _is_index(key):
            call.refuse("is given batch axes inside of brackets")
        return call.run()  # rows of a table
    _check_key(call, tensor, key)
    return call.run()


def _is_index(key: Any) -> bool:
    return isinstance(key, SymbolicTensor) and key.dtype != bool_


def _check_key(call: Call, tensor: Any, key: Any) -> None:
    found = layout(tensor)
    assert found is not None
    items = list(key) if isinstance(key, tuple) else [key]
    at = [place for place, item in enumerate(items) if item is Ellipsis]
    if len(at) > 1:
        call.refuse("has two ellipses")
    sides = (items[: at[0]], items[at[0] + 1 :]) if at else (items, [])
    for side, room in zip(sides, (found.left, found.right), strict=True):
        if sum(item is not None for item in side) > room:
            call.refuse("counts axes across the batch axes")
    if all(any(_is_advanced(call, item) for item in side) for side in sides):
        call.refuse("takes index tensors on both sides of the batch axes")


def _is_advanced(call: Call, item: Any) -> bool:
    """Is it an index tensor or a list of indices?"""
    if item is None or isinstance(item, slice) or is_size(item):
        return False
    if isinstance(item, SymbolicTensor):
        kind: Any = item.dtype
        if has_batch_axis(item) or kind == bool_:
            call.refuse("takes a mask or an index with batch axes")
        return True
    if np.asarray(item).dtype.kind not in "iu":
        call.refuse(f"takes {type(item).__name__}")
    return True


@rule("__setitem__")
def _setitem(call: Call) -> Any:
    tensor, key, value = call.args
    if isinstance(key, SymbolicTensor) and key.dtype == bool_:
        if shape_of(key) != shape_of(tensor) or (_ranked(value) or has_batch_axis(value)):
            call.refuse("assigns under a mask of another shape, or no number")
        return call.run()
    if layout(tensor) is None:
        call.refuse("is given batch axes inside of brackets")
    _check_key(call, tensor, key)
    items = key if isinstance(key, tuple) else (key,)
    if any(item is not Ellipsis and _is_advanced(call, item) for item in items) and _ranked(value):
        call.refuse("assigns a tensor at computed places")
    if _ranked(value):
        shown = getitem(tensor, key)
        broadcasts(call, [shape_of(shown), shape_of(value)])
    return call.run()


def _ranked(value: Any) -> bool:
    """Is it an array or tensor with axes?"""
    return isinstance(value, (SymbolicTensor, np.ndarray)) and bool(shape_of(value))
