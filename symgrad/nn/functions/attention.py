"""Attention, and dropout with a mask that is an input.

In: tensors.  Out: ``symgrad.Function`` classes.
"""

import math

import symgrad as sg


def _probabilities(query, key, mask, scale, causal):
    """The softmax of the scores, over the keys."""
    scores = (query @ key.transpose(1, 2)) * scale
    scores = scores if mask is None else scores + mask
    if causal:
        rows = sg.arange(scores.shape[1]).unsqueeze(1)
        columns = sg.arange(scores.shape[2])
        scores = scores.masked_fill(columns > rows, -math.inf)
    powers = sg.exp(scores - scores.amax(-1, keepdim=True))
    return powers / powers.sum(-1, keepdim=True)


class ScaledDotProductAttention(sg.Function):
    """``softmax(scale Q Kᵀ + mask) V`` for each example of a batch.

    ``mask``: added to the scores; ``keep``: what the probabilities are multiplied with (dropout);
    ``causal``: a query sees the keys up to its own place.
    """

    @staticmethod
    def forward(
        ctx, query: "f32[b n k]", key: "f32[b m k]", value: "f32[b m d]",
        mask: "f32[b n m]" = None, keep: "f32[b n m]" = None, scale=1.0, causal=False,
    ):  # fmt: skip
        ctx.save_for_backward(query, key, value, mask, keep)
        ctx.scale, ctx.causal = scale, causal
        probabilities = _probabilities(query, key, mask, scale, causal)
        return (probabilities if keep is None else probabilities * keep) @ value

    @staticmethod
    def backward(ctx, grad_y):
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


class Dropout(sg.Function):
    """``x keep / (1 - p)``: ``keep`` says which elements stay."""

    @staticmethod
    def forward(ctx, x: "f32[*s]", keep: "bool[*s]", p=0.5):
        ctx.save_for_backward(keep)
        ctx.scale = 1 / (1 - p)
        return x * keep * ctx.scale

    @staticmethod
    def backward(ctx, grad_y):
        (keep,) = ctx.saved_tensors
        return grad_y * keep * ctx.scale, None, None
