"""Linear maps, embeddings and dropout under torch's names and with its arguments.

In: tensors of any rank.  Out: tensors.
"""

from __future__ import annotations

from typing import Any

import symgrad as sg
from symgrad.nn import functions
from symgrad.nn.errors import (
    ModuleDTypeError,
    ModuleIndexError,
    ModuleShapeError,
    ModuleValueError,
    UnsupportedOptionError,
)
from symgrad.nn.functional.shapes import rows_of
from symgrad.tensor import Tensor
from symgrad.tensor.batched import real_array


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """``x Wᵀ + b`` along the last axis.  Raises ModuleCallError where the sizes differ."""
    if weight.ndim == 1:
        return linear(input, weight.unsqueeze(0), bias).squeeze(-1)
    if not input.ndim or input.shape[-1] != weight.shape[1]:
        rows = rows_of(input).shape if input.ndim else (1, 1)
        raise ModuleShapeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows[0]}x{rows[1]} and "
            f"{weight.shape[1]}x{weight.shape[0]})"
        )
    if bias is None:
        found = functions.Linear.apply(rows_of(input), weight)
    else:
        whole = bias if bias.shape == weight.shape[:1] else bias.expand(weight.shape[0])
        found = functions.Linear.apply(rows_of(input), weight, whole)
    return found if input.ndim == 2 else found.reshape(*input.shape[:-1], weight.shape[0])


def embedding(
    input: Any, weight: Any, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Any:  # fmt: skip
    """Rows of a table; no gradient flows into that of ``padding_idx``.

    ``input``: int64 of any shape.  Raises ModuleIndexError outside the table,
    UnsupportedOptionError for ``max_norm``, ``scale_grad_by_freq`` and ``sparse``.
    """
    if max_norm is not None or scale_grad_by_freq or sparse:
        raise UnsupportedOptionError(
            "embedding has no max_norm, no scale_grad_by_freq and no sparse gradients"
        )
    count = weight.shape[0]
    if isinstance(input, Tensor) and input.numel():
        array = real_array(input)
        if array.min() < 0 or array.max() >= count:
            raise ModuleIndexError("index out of range in self")
    found = functions.Embedding.apply(weight, input.flatten())
    found = found.reshape(*input.shape, weight.shape[1])
    if padding_idx is None:
        return found
    if not -count <= padding_idx < count:
        raise ModuleValueError("Padding_idx must be within num_embeddings")
    padded = (input == padding_idx % count).unsqueeze(-1)
    return sg.where(padded, found.detach(), found)


def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """int64: 1 at the index that each element gives, along a new last axis.

    In a trace, and inside ``vmap``, the number of classes has to be said.
    """
    if tensor.dtype != sg.int64:
        raise ModuleDTypeError(
            "one_hot is only applicable to index tensor of type LongTensor.",
            hint="convert it with .long()",
        )
    if not isinstance(tensor, Tensor):
        return sg.one_hot(tensor, num_classes)
    array = real_array(tensor)
    if array.size and array.min() < 0:
        raise ModuleValueError("Class values must be non-negative.")
    if num_classes > 0 and array.size and array.max() >= num_classes:
        raise ModuleValueError("Class values must be smaller than num_classes.")
    if num_classes <= 0 and not array.size:
        raise ModuleValueError("Can not infer total number of classes from empty tensor.")
    count = num_classes if num_classes > 0 else int(tensor._array.max()) + 1
    return sg.one_hot(tensor, count)


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Each element is 0 with probability ``p``, else divided by ``1 - p``.

    The mask comes from the generator that ``sg.manual_seed`` starts anew.
    """
    if not 0.0 <= p <= 1.0:
        raise ModuleValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    if not isinstance(input, Tensor):
        return sg.dropout(input, p, training)  # a trace: says that it cannot draw
    found = functions.Dropout.apply(input, sg.rand(input.shape) >= p, p if p < 1 else 0.0)
    return input.copy_(found) if inplace else found
