"""State that outlives a call: a second forward, or a second backward, finds what the first left."""

from __future__ import annotations

import symgrad as sg
from tests.suite.adversarial.program import Programs, at

programs = Programs(sg, __name__)
right, wrong = programs.right, programs.wrong


class Square(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


LAST = []
BY_SIZE = {}
BOX = {"x": None}
_slope = None


@wrong("n", fails=at(how="between"))
class InModuleList(Square):
    @staticmethod
    def forward(ctx, x):
        LAST[:] = [x]
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * LAST[0]


@wrong("n", fails=at(how="between"))
class InModuleDictionary(Square):
    @staticmethod
    def forward(ctx, x):
        BOX["x"] = x
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * BOX["x"]


@wrong("n", fails=at(how="between"))
class InGlobal(Square):
    @staticmethod
    def forward(ctx, x):
        global _slope
        _slope = 2 * x
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * _slope


@wrong("n", fails=at(how="between"))
class InClassAttribute(Square):
    kept = None

    @staticmethod
    def forward(ctx, x):
        InClassAttribute.kept = x
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * InClassAttribute.kept


@wrong("n", fails=at(how="between"))
class InMutableDefault(Square):
    @staticmethod
    def forward(ctx, x, kept=[None]):  # noqa: B006
        kept[0] = x
        ctx.kept = kept
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.kept[0], None


@wrong("n", fails=at(how="between"))
class BySizeOverwritten(Square):
    @staticmethod
    def forward(ctx, x):
        ctx.size = x.shape[0]
        BY_SIZE[ctx.size] = x
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * BY_SIZE[ctx.size]


MEMO = {}


@wrong("n", fails=at(how="between"), hides=False)
class MemoOfFirstSeen(Square):
    @staticmethod
    def forward(ctx, x):
        ctx.slope = MEMO.setdefault("slope", 2 * x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.slope


def cached(function):
    table = {}

    def call(x):
        if "value" not in table:
            table["value"] = function(x)
        return table["value"]

    return call


exponential = cached(lambda x: x.exp())


@wrong("n", fails=at(how="between"), hides=False)
class CachedHelper(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * exponential(x)


@wrong("n", fails=at(how="twice"))
class WritesContext(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        ctx.scale = getattr(ctx, "scale", 1) + 1
        return ctx.scale * g * x


@wrong("n", fails=at(how="twice"))
class FirstCotangentKept(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if not hasattr(ctx, "first"):
            ctx.first = g
        return 2 * ctx.first * x


@wrong("n", fails=at(how="twice"))
class AccumulatesInContext(Square):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.total = []
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        ctx.total.append(2 * g * x)
        return sum(ctx.total[1:], ctx.total[0])


@wrong("n", fails=at(how="twice"))
class PopsFromContext(Square):
    @staticmethod
    def forward(ctx, x):
        ctx.stack = [x, x * 0]
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.stack.pop(0)


@wrong("n", fails=at(how="twice"))
class DeletesFromContext(Square):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, g):
        x = ctx.x
        ctx.x = None
        return 2 * g * x


CALLS = [0]


@wrong("n", fails=at(how="twice"), hides=False)
class CountsCalls(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        CALLS[0] += 1
        return 2 * g * x if CALLS[0] % 2 else g * x


SCALES = []


@wrong("n", fails=at(how="between"))
class StackOfCalls(Square):
    """Last in, first out: right where each backward follows its forward."""

    @staticmethod
    def forward(ctx, x):
        SCALES.append(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * SCALES[-1]


@wrong("n", fails=at(how="between"))
class SizeOfLastCall(sg.Function):
    size = 1

    @staticmethod
    def forward(ctx, x):
        SizeOfLastCall.size = x.shape[0]
        ctx.save_for_backward(x)
        return x.mean()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * sg.ones_like(x) / SizeOfLastCall.size


@right("n")
class CountsWithoutUse(Square):
    seen = 0

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        CountsWithoutUse.seen += 1
        return 2 * g * x


CONSTANTS = {}


@right("n")
class MemoOfConstants(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        two = CONSTANTS.setdefault("two", 2.0)
        return two * g * x


@right("n")
class ContextField(Square):
    @staticmethod
    def forward(ctx, x):
        ctx.x, ctx.scale = x, 2.0
        return x * x

    @staticmethod
    def backward(ctx, g):
        return ctx.scale * g * ctx.x


@right("n")
class ContextFieldOfBackward(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        ctx.slope = 2 * x
        return g * ctx.slope
