"""Backwards that ask for gradients themselves, instead of writing them out.

``order=2``: without ``create_graph`` what they get is a constant.
"""

import symgrad as sg
from tests.suite.marks import right, wrong


def wave(x, w):
    return x.sin() * x * w


@right("n m", "m")
class ByInnerGradient(sg.Function):
    """The function is computed again, with gradients."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return wave(x, w)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        with sg.enable_grad():
            x = x.detach().requires_grad_()
            w = w.detach().requires_grad_()
            y = wave(x, w)
        return sg.autograd.grad(y, (x, w), g)


@wrong(ByInnerGradient, bug="the cotangent forgotten")
class ByInnerGradientOfSum(ByInnerGradient):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        with sg.enable_grad():
            x = x.detach().requires_grad_()
            w = w.detach().requires_grad_()
            y = wave(x, w).sum()
        return sg.autograd.grad(y, (x, w))


@wrong(ByInnerGradient, bug="one use of x is cut off")
class ByInnerGradientOfPart(ByInnerGradient):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        with sg.enable_grad():
            x = x.detach().requires_grad_()
            w = w.detach().requires_grad_()
            y = x.sin() * x.detach() * w
        return sg.autograd.grad(y, (x, w), g)


@wrong(ByInnerGradient, order=2, bug="the gradient is a constant", kind="error")
class ByInnerGradientTwice(ByInnerGradient):
    pass


@right("n m", order=2)
class ByRecordedGradient(sg.Function):
    """With ``create_graph`` the gradient keeps its history."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin() * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with sg.enable_grad():
            y = x.sin() * x
            (grad_x,) = sg.autograd.grad(y, x, g, create_graph=True)
        return grad_x


@wrong(ByRecordedGradient, bug="without create_graph", kind="second order")
class ByUnrecordedGradient(ByRecordedGradient):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with sg.enable_grad():
            y = x.sin() * x
            (grad_x,) = sg.autograd.grad(y.sum(), x)
        return g * grad_x


@wrong(ByRecordedGradient, bug="y's cotangent is recorded, x is not", kind="second order")
class ByRecordedGradientOfDetached(ByRecordedGradient):
    @staticmethod
    def backward(ctx, g):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with sg.enable_grad():
            y = x.sin() * x
            (grad_x,) = sg.autograd.grad(y, x, g, create_graph=True)
        return grad_x


@right("n m", "m")
class Checkpointed(sg.Function):
    """Forward is run again, and backward through it, as checkpoints do."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return wave(x, w)

    @staticmethod
    def backward(ctx, g):
        again = [saved.detach().requires_grad_() for saved in ctx.saved_tensors]
        with sg.enable_grad():
            y = wave(*again)
        sg.autograd.backward(y, g)
        return tuple(one.grad for one in again)


@wrong(Checkpointed, bug="gradients of both passes are added up")
class CheckpointedTwice(Checkpointed):
    @staticmethod
    def backward(ctx, g):
        again = [saved.detach().requires_grad_() for saved in ctx.saved_tensors]
        with sg.enable_grad():
            wave(*again).backward(g)
            wave(*again).backward(g)
        return tuple(one.grad for one in again)
