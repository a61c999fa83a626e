"""Softmax and its logarithm, along the last axis.

In: matrices.  Out: ``symgrad.Function`` classes.
"""

import symgrad as sg


class Softmax(sg.Function):
    """``exp(x) / sum(exp(x))`` of each row, without overflow."""

    @staticmethod
    def forward(ctx, x: "f32[n m]"):
        y = sg.softmax(x, -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return y * (grad_y - (grad_y * y).sum(-1, keepdim=True))


class LogSoftmax(sg.Function):
    """The logarithm of softmax of each row, without overflow."""

    @staticmethod
    def forward(ctx, x: "f32[n m]"):
        y = sg.log_softmax(x, -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_y):
        (y,) = ctx.saved_tensors
        return grad_y - sg.exp(y) * grad_y.sum(-1, keepdim=True)
