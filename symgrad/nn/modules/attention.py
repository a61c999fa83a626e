"""Attention with several heads, as a module.

In: sizes.  Out: a module.
"""

from __future__ import annotations

import math
from typing import Any

import symgrad as sg
from symgrad.nn import functional as F
from symgrad.nn import init
from symgrad.nn.errors import (
    ModuleCallError,
    ModuleShapeError,
    ModuleValueError,
    UnsupportedOptionError,
)
from symgrad.nn.modules.linear import Linear
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import Parameter


class MultiheadAttention(Module):
    """Attention of Vaswani and others (2017); parameters are named and shaped as torch's.

    (places, examples, embed_dim), or (examples, places, embed_dim) if ``batch_first``; without
    the axis of the examples, one example.  There is no ``add_bias_kv`` and no ``add_zero_attn``.
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
        add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
        vdim: int | None = None, batch_first: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ModuleValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        if embed_dim % num_heads:
            raise ModuleValueError("embed_dim must be divisible by num_heads")
        if add_bias_kv or add_zero_attn:
            raise UnsupportedOptionError(
                "MultiheadAttention has no add_bias_kv and no add_zero_attn"
            )
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.dropout, self.batch_first = dropout, batch_first
        self.head_dim = embed_dim // num_heads
        same = self.kdim == embed_dim and self.vdim == embed_dim
        sizes = (embed_dim, self.kdim, self.vdim)
        for name, size in zip(("q", "k", "v"), sizes, strict=True):
            made = None if same else Parameter(sg.empty(embed_dim, size, dtype=dtype))
            self.register_parameter(f"{name}_proj_weight", made)
        whole = Parameter(sg.empty(3 * embed_dim, embed_dim, dtype=dtype)) if same else None
        self.register_parameter("in_proj_weight", whole)
        made = Parameter(sg.empty(3 * embed_dim, dtype=dtype)) if bias else None
        self.register_parameter("in_proj_bias", made)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier's uniform weights; biases are 0."""
        weights = (
            self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        )  # fmt: skip
        for weight in weights:
            if weight is not None:
                init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)

    def forward(
        self, query: Any, key: Any, value: Any, key_padding_mask: Any = None,
        need_weights: bool = True, attn_mask: Any = None, average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:  # fmt: skip
        """The result and, if ``need_weights``, the weights: averaged over the heads or not.

        Bool masks say what is left out; float masks are added to the scores.  ``is_causal`` is
        a hint beside ``attn_mask``, which must be given.
        """
        if is_causal and attn_mask is None:
            raise ModuleCallError("Need attn_mask if specifying the is_causal hint.")
        alone = query.ndim == 2
        aligned = [self._examples_first(one, alone) for one in (query, key, value)]
        queries, keys, values = map(self._heads, aligned, self._projections())
        mask = self._mask(attn_mask, key_padding_mask, aligned[0], aligned[1])
        rate = self.dropout if self.training else 0.0
        if need_weights:
            found, weights = _explicit(queries, keys, values, mask, rate)
            weights = weights.mean(1) if average_attn_weights else weights
            weights = weights.squeeze(0) if alone else weights
        else:
            weights = None
            found = F.scaled_dot_product_attention(queries, keys, values, mask, rate)
        joined = found.transpose(1, 2).flatten(2)
        result = self.out_proj(joined)
        if alone:
            return result.squeeze(0), weights
        return (result if self.batch_first else result.transpose(0, 1)), weights

    def _examples_first(self, input: Any, alone: bool) -> Any:
        if input.ndim != (2 if alone else 3):
            raise ModuleShapeError(
                "For batched (3-D) `query`, expected `key` and `value` to be 3-D, for unbatched "
                f"(2-D) ones 2-D, but found a {input.ndim}-D tensor"
            )
        if alone:
            return input.unsqueeze(0)
        return input if self.batch_first else input.transpose(0, 1)

    def _projections(self) -> list[tuple[Any, Any]]:
        """The weight and the bias for queries, for keys and for values."""
        size = self.embed_dim
        biases: list[Any] = [None, None, None]
        if self.in_proj_bias is not None:
            biases = [self.in_proj_bias[n * size : (n + 1) * size] for n in range(3)]
        if self.in_proj_weight is None:
            weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        else:
            weights = [self.in_proj_weight[n * size : (n + 1) * size] for n in range(3)]  # type: ignore[misc]
        return list(zip(weights, biases, strict=True))

    def _heads(self, input: Any, projection: tuple[Any, Any]) -> Any:
        """(examples, places, features) to (examples, heads, places, features of a head)."""
        found = F.linear(input, *projection)
        return found.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

    def _mask(self, attn_mask: Any, padding: Any, query: Any, key: Any) -> Any:
        """What both masks add to the scores, in a shape that (examples, heads, n, m) takes."""
        examples, rows = query.shape[:2]
        columns = key.shape[1]
        mask = _added(attn_mask, query)
        if mask is not None and mask.ndim == 3:
            mask = mask.reshape(examples, self.num_heads, rows, columns)
        if padding is None:
            return mask
        left_out = _added(padding, query).reshape(examples, 1, 1, columns)
        return left_out if mask is None else mask + left_out


def _added(mask: Any, like: Any) -> Any:
    """Minus infinity where a bool mask is True."""
    if mask is None or mask.is_floating_point():
        return mask
    return sg.where(mask, -math.inf, sg.zeros((), dtype=like.dtype))


def _explicit(query: Any, key: Any, value: Any, mask: Any, rate: float) -> tuple[Any, Any]:
    """Attention with its weights, after dropout as in torch."""
    scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)
    weights = F.softmax(scores if mask is None else scores + mask, -1)
    weights = F.dropout(weights, rate)
    return weights @ value, weights
