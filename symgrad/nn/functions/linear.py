"""Products with weights: linear layers, embeddings.

In: matrices.  Out: ``symgrad.Function`` classes.
"""

import symgrad as sg


class Linear(sg.Function):
    """``y = x Wᵀ + b``; the bias may be None."""

    @staticmethod
    def forward(ctx, x: "f32[n k]", weight: "f32[m k]", bias: "f32[m]" = None):
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        y = x @ weight.t()
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, grad_y):
        x, weight = ctx.saved_tensors
        wants_x, wants_weight, wants_bias = (*ctx.needs_input_grad, False)[:3]
        grad_x = grad_y @ weight if wants_x else None
        grad_weight = grad_y.t() @ x if wants_weight else None
        grad_bias = grad_y.sum(0) if ctx.has_bias and wants_bias else None
        return grad_x, grad_weight, grad_bias


@sg.assume(indices="index v")
class Embedding(sg.Function):
    """Rows of a table: ``y[i] = weight[indices[i]]``."""

    @staticmethod
    def forward(ctx, weight: "f32[v m]", indices: "i64[n]"):
        ctx.save_for_backward(indices)
        ctx.rows = weight.shape[0]
        return weight.index_select(0, indices)

    @staticmethod
    def backward(ctx, grad_y):
        (indices,) = ctx.saved_tensors
        table = sg.zeros(ctx.rows, grad_y.shape[1], dtype=grad_y.dtype)
        return table.index_add(0, indices, grad_y), None
