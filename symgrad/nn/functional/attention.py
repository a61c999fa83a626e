"""Attention under torch's name and with its arguments.

In: queries, keys, values with any axes for the batch.  Out: a tensor.
"""

from __future__ import annotations

import math
from typing import Any

import symgrad as sg
from symgrad.nn import functions
from symgrad.nn.errors import ModuleCallError, ModuleShapeError, ModuleValueError


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """``softmax(scale Q Kᵀ + mask) V``: (…, n, k), (…, m, k), (…, m, d) to (…, n, d).

    ``attn_mask``: bool (True: takes part) or float (added to the scores).  ``scale``:
    ``1 / sqrt(k)`` when None.  ``enable_gqa``: keys and values serve several heads each.
    """
    if is_causal and attn_mask is not None:
        raise ModuleCallError("Explicit attn_mask should not be set when is_causal=True")
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise ModuleShapeError("query, key and value need at least 2 dimensions each")
    if enable_gqa:
        key, value = _repeated(key, query), _repeated(value, query)
    batch = _broadcast(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    rows, columns = query.shape[-2], key.shape[-2]
    mask = _additive(attn_mask, query)
    keep = None
    if dropout_p:
        if not 0.0 <= dropout_p <= 1.0:
            raise ModuleValueError(
                f"dropout probability has to be between 0 and 1, but got {dropout_p}"
            )
        keep = sg.rand(*batch, rows, columns) >= dropout_p
        keep = keep.to(query.dtype) * (0.0 if dropout_p == 1 else 1 / (1 - dropout_p))
    found = functions.ScaledDotProductAttention.apply(
        _flat(query, batch), _flat(key, batch), _flat(value, batch),
        None if mask is None else _flat(mask.expand(*batch, rows, columns), batch),
        None if keep is None else _flat(keep, batch),
        query.shape[-1] ** -0.5 if scale is None else scale, is_causal,
    )  # fmt: skip
    return found.reshape(*batch, rows, value.shape[-1])


def _broadcast(*shapes: Any) -> tuple[Any, ...]:
    """The shape that the axes of the batch take together, by NumPy's rule."""
    rank = max(map(len, shapes))
    found: list[Any] = [1] * rank
    for shape in shapes:
        for place, size in enumerate(shape, rank - len(shape)):
            if found[place] == 1:
                found[place] = size
            elif size not in (1, found[place]):
                raise ModuleShapeError(
                    "the batch axes of query, key and value do not fit: "
                    + ", ".join(str(list(one)) for one in shapes)
                )
    return tuple(found)


def _flat(tensor: Any, batch: tuple[int, ...]) -> Any:
    """The tensor with one axis for the batch."""
    if tuple(tensor.shape[:-2]) != batch:
        tensor = tensor.expand(*batch, *tensor.shape[-2:])
    if len(batch) == 1:
        return tensor
    return tensor.reshape(math.prod(batch), *tensor.shape[-2:])


def _additive(mask: Any, query: Any) -> Any:
    """What a mask adds to the scores."""
    if mask is None or mask.is_floating_point():
        return mask
    zero = sg.zeros((), dtype=query.dtype)
    return sg.where(mask, zero, -math.inf)


def _repeated(tensor: Any, query: Any) -> Any:
    """Heads of keys or values, each repeated for the heads of the query that it serves."""
    heads, wanted = tensor.shape[-3], query.shape[-3]
    if wanted % heads:
        raise ModuleShapeError(
            "Number of heads in key and value must divide the number of heads in query"
        )
    return tensor.repeat_interleave(wanted // heads, -3)
