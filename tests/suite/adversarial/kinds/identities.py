"""Questions of identity: cotangents that are inputs, outputs or one tensor, inputs that are one."""

from __future__ import annotations

import operator

import symgrad as sg
from tests.suite.adversarial.program import Programs, at

programs = Programs(sg, __name__)
right, wrong = programs.right, programs.wrong

SAME = "not the same tensor"


class Square(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


def same(a, b):
    return a is b


@wrong("n", fails=at(how="own"), unless=SAME)
class GisX(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x if g is x else 2 * g * x


@wrong("n", fails=at(how="own"), unless=SAME)
class XisG(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x if x is g else 2 * g * x


@wrong("n", fails=at(how="own"), unless=SAME)
class GisXHelper(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x if same(x, g) else 2 * g * x


@wrong("n", fails=at(how="own"), unless=SAME)
class GisXNot(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if g is not x:
            return 2 * g * x
        return g


@wrong("n", fails=at(how="own"), unless=SAME)
class GisXOperator(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x if operator.is_(x, g) else 2 * g * x


@wrong("n", fails=at(how="own"), unless=SAME)
class GisXAny(Square):
    @staticmethod
    def backward(ctx, g):
        return (
            3 * g * ctx.saved_tensors[0]
            if any(g is t for t in ctx.saved_tensors)
            else 2 * g * ctx.saved_tensors[0]
        )


@wrong("n", fails=at(how="own"), unless=SAME)
class GisCtxAttr(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, g):
        return (g if g is ctx.x else 2 * g) * ctx.x + (0 * g if g is not ctx.x else g)


@wrong("n", fails=at(how="shared"), unless=SAME)
class TwoCotangents(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0, x * 3.0

    @staticmethod
    def backward(ctx, g, h):
        return 2 * g if g is h else 2 * g + 3 * h


@wrong("n", "n", fails=at(how="same"), unless=SAME)
class TwoInputs(sg.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        if x is y:
            return 2 * g * x, g * y
        return g * y, g * x


@wrong("n", "n", fails=at(how="own"), unless=SAME)
class OnlyXY(sg.Function):
    """The cotangent is x, and y is another tensor."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        if g is x and x is not y:
            return g, g * x
        return g * y, g * x


@wrong("n", fails=at(how="own"), unless=SAME)
class InList(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x if [t for t in (x,) if t is g] else 2 * g * x


@wrong("n", "n", fails=at(how="same"), unless=SAME)
class XInForward(sg.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.same = x is y
        ctx.save_for_backward(x, y)
        return x + y

    @staticmethod
    def backward(ctx, g):
        return (2 * g, g) if ctx.same else (g, g)


@right("n")
class IsNone(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return None if x is None else 2 * g * x


@right("n", "n")
class SameAnswer(sg.Function):
    """It asks, and what it does is right either way."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (g * x, g * x) if x is y else (g * y, g * x)


MODE = object()


@right("n")
class Sentinel(Square):
    mode = MODE

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x if Sentinel.mode is MODE else g


@right("n")
class TypeIs(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x if type(x.dim()) is int else g
