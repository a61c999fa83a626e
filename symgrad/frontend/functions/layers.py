"""Linear maps, embeddings, dropout and attention, each with its hand-written backward.

In: tensors.  Out: tensors; and the Functions that differentiate the operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

from symgrad.errors import DTypeError, ShapeError, UnsupportedOpError
from symgrad.frontend.caller import here
from symgrad.frontend.function import Function, assume, own_backward
from symgrad.frontend.functions.arithmetic import add, mul
from symgrad.frontend.functions.casting import constant
from symgrad.frontend.functions.comparisons import holds, where
from symgrad.frontend.functions.normalization import softmax
from symgrad.frontend.functions.products import BATCH, contract, matmul
from symgrad.frontend.functions.reductions import amax
from symgrad.frontend.lift import as_index, as_node, as_tensor, broadcast_shapes, elementwise
from symgrad.frontend.session import current
from symgrad.frontend.sizes import Shape, as_dim, as_size
from symgrad.frontend.table import (
    OperationAssertionError,
    OperationCallError,
    OperationValueError,
    operation,
)
from symgrad.frontend.table import functions as sg
from symgrad.frontend.tensor import SelectedTensor, SymbolicTensor, fresh
from symgrad.frontend.views import iota_along
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import int64
from symgrad.ops.integers import Demand

Tensor = SymbolicTensor
Each = Annotated[Any, "f32[*s]"]
Mask = Annotated[Any, "bool[*s]"]


# -- products with weights


class Linear(Function):
    """``y = x Wᵀ + b``; the bias may be None."""

    @staticmethod
    def forward(
        ctx: Any, x: Annotated[Any, "f32[n k]"], weight: Annotated[Any, "f32[m k]"],
        bias: Annotated[Any, "f32[m]"] = None,
    ) -> Any:  # fmt: skip
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        return sg.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        x, weight = ctx.saved_tensors
        wants_x, wants_weight, wants_bias = (*ctx.needs_input_grad, False)[:3]
        grad_x = grad_y @ weight if wants_x else None
        grad_weight = grad_y.t() @ x if wants_weight else None
        grad_bias = grad_y.sum(0) if ctx.has_bias and wants_bias else None
        return grad_x, grad_weight, grad_bias


def _product(x: Tensor, weight: Tensor, bias: Any) -> Tensor:
    labels, columns = BATCH[: x.ndim - 1], "o"[: weight.ndim - 1]
    product = fresh(contract(f"{labels}k,{columns}k->{labels}{columns}", x.node, weight.node))
    return product if bias is None else add(product, bias)


def _check_bias(bias: Any, shape: Sequence[Dim]) -> None:
    """Raises ShapeError for a bias that is not broadcast to the shape of the product."""
    given = () if bias is None else as_tensor(bias).node.shape
    pairs = zip(given[::-1], shape[::-1], strict=False)
    wrong = [(own, size) for own, size in pairs if own not in (1, size)]
    if wrong or len(given) > len(shape):
        raise ShapeError(
            f"The bias of shape {list(Shape.of(given))} is not broadcast to the product of shape "
            f"{list(Shape.of(shape))}", location=here(), equal=wrong,
        )  # fmt: skip


@own_backward(Linear)
def _linear(x: Tensor, weight: Tensor, bias: Any) -> Tensor:
    return _product(x, weight, bias)


@operation("linear", method=False)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x Wᵀ + b`` along the last axis."""
    x, w = as_tensor(input), as_tensor(weight)
    if w.ndim not in (1, 2) or not x.ndim:
        raise ShapeError("linear takes a weight of one or two axes", location=here())
    if isinstance(x, SelectedTensor):
        product = matmul(x, w.t())
        return product if bias is None else add(product, bias)
    if x.node.shape[-1] != w.node.shape[-1]:
        rows = math.prod(x.shape[:-1])
        columns = w.shape[0] if w.ndim == 2 else 1
        raise ShapeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{x.shape[-1]} and "
            f"{w.shape[-1]}x{columns})", location=here(),
            equal=[(x.node.shape[-1], w.node.shape[-1])],
        )  # fmt: skip
    _check_bias(bias, (*x.node.shape[:-1], *w.node.shape[:-1]))
    if not current().own_backwards or w.ndim == 1 or (bias is not None and bias.ndim > 1):
        return _product(x, w, bias)
    whole = bias if bias is None else as_tensor(bias).expand(w.shape[0])
    flat = x if x.ndim == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    found = _linear(flat, w, whole)
    return found if x.ndim == 2 else found.reshape(*x.shape[:-1], w.shape[0])


# -- integers as rows


@operation("one_hot", method=False)
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """int64: 1 at the index that each element gives, along a new last axis.

    In a trace, and inside ``vmap``, the number of classes has to be said.
    """
    source = as_node(tensor)
    if source.dtype != int64:
        raise DTypeError(
            "one_hot is only applicable to index tensor of type LongTensor.", location=here(),
            hint="convert it with .long()",
        )  # fmt: skip
    if isinstance(num_classes, int) and num_classes < 0:
        raise ShapeError(
            "one_hot without num_classes has a shape that depends on values", location=here(),
            hint="give num_classes",
        )  # fmt: skip
    session = current()
    shape = (*source.shape, as_dim(num_classes))
    session.demanded.note(Demand(source, Dim.of(0), shape[-1]))
    lined = session.reshape(source, (*source.shape, Dim.of(1)))
    ramp = iota_along(session, shape, len(shape) - 1)
    return fresh(session.cast(session.apply("eq", ramp, session.expand(lined, shape)), int64))


@assume(indices="index v")
class Embedding(Function):
    """Rows of a table: ``y[i] = weight[indices[i]]``."""

    @staticmethod
    def forward(
        ctx: Any, weight: Annotated[Any, "f32[v m]"], indices: Annotated[Any, "i64[n]"]
    ) -> Any:
        ctx.save_for_backward(indices)
        ctx.rows = weight.shape[0]
        return sg.embedding(indices, weight)

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        (indices,) = ctx.saved_tensors
        table = sg.zeros(ctx.rows, grad_y.shape[-1], dtype=grad_y.dtype)
        if indices.ndim != 1:
            indices, grad_y = indices.flatten(), grad_y.reshape(-1, grad_y.shape[-1])
        return table.index_add(0, indices, grad_y), None


@own_backward(Embedding)
def _embedding(table: Tensor, places: Tensor) -> Tensor:
    return fresh(current().apply("index", table.node, places.node))


@operation("embedding", method=False)
def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """The rows of ``weight`` that the integers name; that at ``padding_idx`` has no gradient."""
    if max_norm is not None or scale_grad_by_freq or sparse:
        raise UnsupportedOpError(
            "embedding has no max_norm, no scale_grad_by_freq and no sparse gradients",
            location=here(),
        )
    table, places = as_tensor(weight), fresh(as_index(as_node(input)))
    if table.ndim != 2:
        raise ShapeError("'weight' must be 2-D", location=here())
    rows = _embedding(table, places)
    if padding_idx is None:
        return rows
    count = table.shape[0]
    if isinstance(count, int) and not -count <= padding_idx < count:
        raise OperationAssertionError("Padding_idx must be within num_embeddings", location=here())
    padding = padding_idx + count if padding_idx < 0 else padding_idx
    return where(elementwise("eq", places, padding).unsqueeze(-1), constant(rows), rows)


@operation("embedding_bag", method=False)
def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Any = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
    sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """The sums, means or greatest of rows: of each row of integers, or from offset to offset."""
    unusual = max_norm is not None or scale_grad_by_freq or sparse or padding_idx is not None
    if unusual or mode not in ("sum", "mean", "max") or include_last_offset:
        raise UnsupportedOpError(
            f"embedding_bag has no {mode!r} with these settings", location=here(),
            hint="sum, mean and max are there, by rows or by offsets",
        )  # fmt: skip
    rows = embedding(input, weight)
    if per_sample_weights is not None:
        if mode != "sum":
            raise OperationCallError("per_sample_weights go with mode='sum'", location=here())
        rows = rows * as_tensor(per_sample_weights).unsqueeze(-1)
    if offsets is None:
        found: Tensor = {"sum": rows.sum, "mean": rows.mean, "max": rows.amax}[mode](1)
        return found
    starts = as_tensor(offsets)
    if mode == "max":
        raise UnsupportedOpError("embedding_bag has no 'max' by offsets", location=here())
    bag = sg.searchsorted(starts, sg.arange(rows.shape[0]), right=True) - 1
    whole = sg.zeros(starts.shape[0], rows.shape[1], dtype=rows.dtype)
    found = whole.index_add(0, bag, rows)
    if mode == "sum":
        return found
    ones = sg.ones(rows.shape[0], dtype=rows.dtype)
    number = sg.zeros(starts.shape[0], dtype=rows.dtype).index_add(0, bag, ones)
    return found / number.clamp(1).unsqueeze(-1)  # type: ignore[no-any-return]


# -- dropout


class Dropout(Function):
    """``x keep / (1 - p)``: ``keep`` says which elements stay."""

    @staticmethod
    def forward(ctx: Any, x: Each, keep: Mask, p: Any = 0.5) -> Any:
        ctx.save_for_backward(keep)
        ctx.scale = 1 / (1 - p)
        return x * keep * ctx.scale

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        (keep,) = ctx.saved_tensors
        return grad_y * keep * ctx.scale, None, None


@own_backward(Dropout)
def kept(input: Tensor, keep: Tensor, p: float) -> Tensor:
    """What dropout leaves, for the elements that are kept."""
    return mul(mul(input, keep), 1 / (1 - p))


def check_probability(p: float) -> None:
    """Raises OperationValueError where it is none."""
    if not (holds("le", 0.0, p) and holds("le", p, 1.0)):
        raise OperationValueError(
            f"dropout probability has to be between 0 and 1, but got {p}", location=here()
        )


@operation("dropout", method=False, elementwise=True)
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element is 0 with probability ``p``, else divided by ``1 - p``.

    The mask comes from the generator that ``sg.manual_seed`` starts anew; a trace draws none.
    """
    check_probability(p)
    if p and training:
        raise _drawing()
    return as_tensor(input)


def _drawing() -> UnsupportedOpError:
    return UnsupportedOpError(
        "dropout draws random numbers", location=here(),
        hint="draw the mask outside and pass it as an input",
    )  # fmt: skip


# -- attention


def _probabilities(query: Any, key: Any, mask: Any, scale: Any, causal: bool) -> Any:
    """The softmax of the scores, over the keys; 0 for a query that the mask lets see none."""
    scores = (query @ key.transpose(1, 2)) * scale
    scores = scores if mask is None else scores + mask
    if causal:
        rows = sg.arange(scores.shape[1]).unsqueeze(1)
        columns = sg.arange(scores.shape[2])
        scores = scores.masked_fill(columns > rows, -math.inf)
    top = scores.amax(-1, keepdim=True)
    powers = sg.exp(scores - top)
    probabilities = powers / powers.sum(-1, keepdim=True)
    return probabilities if mask is None else sg.where(top == -math.inf, 0.0, probabilities)


class ScaledDotProductAttention(Function):
    """``softmax(scale Q Kᵀ + mask) V`` for each example of a batch.

    ``mask``: added to the scores; a query for which all are ``-inf`` sees nothing, and gives 0.
    ``keep``: what the probabilities are multiplied with (dropout);
    ``causal``: a query sees the keys up to its own place.
    """

    @staticmethod
    def forward(
        ctx: Any, query: Annotated[Any, "f32[b n k]"], key: Annotated[Any, "f32[b m k]"],
        value: Annotated[Any, "f32[b m d]"], mask: Annotated[Any, "f32[b n m]"] = None,
        keep: Annotated[Any, "f32[b n m]"] = None, scale: Any = 1.0, causal: Any = False,
    ) -> Any:  # fmt: skip
        ctx.save_for_backward(query, key, value, mask, keep)
        ctx.scale, ctx.causal = scale, causal
        probabilities = _probabilities(query, key, mask, scale, causal)
        return (probabilities if keep is None else probabilities * keep) @ value

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        query, key, value, mask, keep = ctx.saved_tensors
        probabilities = _probabilities(query, key, mask, ctx.scale, ctx.causal)
        kept = probabilities if keep is None else probabilities * keep
        grad_value = kept.transpose(1, 2) @ grad_y
        grad_kept = grad_y @ value.transpose(1, 2)
        grad = grad_kept if keep is None else grad_kept * keep
        mean = (grad * probabilities).sum(-1, keepdim=True)
        grad_scores = probabilities * (grad - mean)
        grad_query = (grad_scores @ key) * ctx.scale
        grad_key = (grad_scores.transpose(1, 2) @ query) * ctx.scale
        grad_mask = None if mask is None else grad_scores
        wants_keep = keep is not None and ctx.needs_input_grad[4]
        grad_keep = grad_kept * probabilities if wants_keep else None
        return grad_query, grad_key, grad_value, grad_mask, grad_keep, None, None


def _attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Any, keep: Any, scale: Any, causal: bool
) -> Tensor:
    scores = mul(matmul(query, key.mT), scale)
    if causal:
        session, matrix = current(), scores.node.shape[-2:]
        rows, columns = (iota_along(session, matrix, axis) for axis in (0, 1))
        scores = where(fresh(session.apply("ge", rows, columns)), scores, float("-inf"))
    if mask is not None:
        plain = mask.dtype.is_float
        scores = add(scores, mask) if plain else where(mask, scores, float("-inf"))
    probabilities = softmax(scores, -1)
    if mask is not None:
        blocked = elementwise("eq", amax(scores, -1, keepdim=True), float("-inf"))
        probabilities = where(blocked, 0.0, probabilities)
    return matmul(probabilities if keep is None else mul(probabilities, keep), value)


@own_backward(ScaledDotProductAttention)
def _flat_attention(*args: Any) -> Tensor:
    return _attention(*args)


def _flat(tensor: Any, batch: tuple[Any, ...]) -> Any:
    """The tensor with one axis for the batch."""
    if tuple(tensor.shape[:-2]) != batch:
        tensor = tensor.expand(*batch, *tensor.shape[-2:])
    if len(batch) == 1:
        return tensor
    return tensor.reshape(math.prod(batch), *tensor.shape[-2:])


def _repeated(tensor: Tensor, query: Tensor) -> Any:
    """Heads of keys or values, each repeated for the heads of the query that it serves."""
    heads, wanted = tensor.shape[-3], query.shape[-3]
    if wanted % heads:
        raise ShapeError(
            "Number of heads in key and value must divide the number of heads in query",
            location=here(),
        )
    return tensor.repeat_interleave(wanted // heads, -3)


def attended(
    query: Any, key: Any, value: Any, attn_mask: Any, keep: Any, is_causal: bool, scale: Any,
    enable_gqa: bool,
) -> Tensor:  # fmt: skip
    """``scaled_dot_product_attention`` with a mask for dropout."""
    q, k, v = as_tensor(query), as_tensor(key), as_tensor(value)
    if is_causal and attn_mask is not None:
        raise OperationCallError(
            "Explicit attn_mask should not be set when is_causal=True", location=here()
        )
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ShapeError("query, key and value need at least 2 dimensions each", location=here())
    if enable_gqa:
        k, v = _repeated(k, q), _repeated(v, q)
    mask = None if attn_mask is None else as_tensor(attn_mask)
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    if not current().own_backwards:
        return _attention(q, k, v, mask, keep, factor, is_causal)
    dims = broadcast_shapes(*(one.node.shape[:-2] for one in (q, k, v)))
    batch, rows, columns = tuple(map(as_size, dims)), q.shape[-2], k.shape[-2]
    if mask is not None and not mask.dtype.is_float:
        zero = fresh(current().constant(0.0, q.dtype))
        mask = where(mask, zero, float("-inf"))
    found = _flat_attention(
        _flat(q, batch), _flat(k, batch), _flat(v, batch),
        None if mask is None else _flat(mask.expand(*batch, rows, columns), batch),
        None if keep is None else _flat(keep, batch), factor, is_causal,
    )  # fmt: skip
    return found.reshape(*batch, rows, v.shape[-1])  # type: ignore[no-any-return]


@operation("scaled_dot_product_attention", method=False)
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """``softmax(scale Q Kᵀ + mask) V``: (…, n, k), (…, m, k), (…, m, d) to (…, n, d).

    ``attn_mask``: bool (True: takes part) or float (added to the scores).  ``scale``:
    ``1 / sqrt(k)`` when None.  ``enable_gqa``: keys and values serve several heads each.
    """
    check_probability(dropout_p)
    if dropout_p:
        raise _drawing()
    return attended(query, key, value, attn_mask, None, is_causal, scale, enable_gqa)
