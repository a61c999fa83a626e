"""Cotangents that are absent, and cotangents of outputs that nothing flows back from."""

from __future__ import annotations

import symgrad as sg
from tests.suite.adversarial.program import Programs, at

programs = Programs(sg, __name__)
right, wrong = programs.right, programs.wrong


class Two(sg.Function):
    """Two outputs, and None for the cotangent of one that is not used."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x * x, x.exp()


class Three(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x * x, x.exp(), x.sin()


def plus(a, b):
    return b if a is None else (a if b is None else a + b)


@wrong("n", fails=(at(absent=(0,)), at(absent=(1,))))
class AddsNone(Two):
    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return 2 * g * x + h * x.exp()


@wrong("n", fails=at(absent=(1,)))
class SecondIsNone(Two):
    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        first = 0 if g is None else 2 * g * x
        return first + h * x.exp()


@wrong("n", fails=at(absent=(0,)))
class FirstDecides(Two):
    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        if g is None:
            return None
        return 2 * g * x if h is None else 2 * g * x + h * x.exp()


@wrong("n", fails=at(absent=(1,)))
class ForgetsWhereAbsent(Two):
    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        if h is None:
            return g * x
        return plus(None if g is None else 2 * g * x, h * x.exp())


@wrong("n", fails=at(absent=(0,)))
class SwapsWhereAbsent(Two):
    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        if g is None:
            return 2 * h * x
        return plus(2 * g * x, None if h is None else h * x.exp())


@wrong("n", fails=at(absent=(0, 1)))
class TwoOfThree(Three):
    @staticmethod
    def backward(ctx, g, h, k):
        (x,) = ctx.saved_tensors
        if g is None and h is None:
            return k * x.sin()
        found = None if k is None else k * x.cos()
        found = plus(found, None if h is None else h * x.exp())
        return plus(found, None if g is None else 2 * g * x)


@wrong("n", fails=at(absent=(1, 2)))
class OnlyTheFirst(Three):
    @staticmethod
    def backward(ctx, g, h, k):
        (x,) = ctx.saved_tensors
        if h is None and k is None:
            return 3 * g * x
        found = None if k is None else k * x.cos()
        found = plus(found, None if h is None else h * x.exp())
        return plus(found, None if g is None else 2 * g * x)


@wrong("n", fails=at(absent=(2,)))
class TruthOfNone(Three):
    @staticmethod
    def backward(ctx, g, h, k):
        (x,) = ctx.saved_tensors
        parts = [(g, 2 * x), (h, x.exp()), (k, x.cos())]
        kept = [a * b for a, b in parts if a is not None]
        if len(kept) == 2 and k is None:
            kept = kept[:1]
        return sum(kept[1:], kept[0])


class Many(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x * 1, x * 2, x * 3, x * 4, x * 5, x * 6


@wrong("n", fails=at(absent=(0, 2, 5)))
class OnePatternOfSixtyFour(Many):
    @staticmethod
    def backward(ctx, *gs):
        given = [g is not None for g in gs]
        kept = [k * g for k, g in enumerate(gs, 1) if g is not None]
        found = sum(kept[1:], kept[0])
        return found * 2 if given == [False, True, False, True, True, False] else found


@right("n")
class OfSixAllHandled(Many):
    @staticmethod
    def backward(ctx, *gs):
        kept = [k * g for k, g in enumerate(gs, 1) if g is not None]
        return sum(kept[1:], kept[0]) if kept else None


@right("n")
class NoneHandled(Two):
    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return plus(None if g is None else 2 * g * x, None if h is None else h * x.exp())


@right("n")
class ThreeHandled(Three):
    @staticmethod
    def backward(ctx, g, h, k):
        (x,) = ctx.saved_tensors
        found = sg.zeros_like(x)
        if g is not None:
            found = found + 2 * g * x
        if h is not None:
            found = found + h * x.exp()
        if k is not None:
            found = found + k * x.cos()
        return found


@right("n")
class Materialized(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x, x.exp()

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return 2 * g * x + h * x.exp()


@right("n")
class MaterializedAsked(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x, x.exp()

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return plus(None if g is None else 2 * g * x, None if h is None else h * x.exp())


@wrong("n", fails=at(absent=(0,)))
class MaterializedCompared(sg.Function):
    """Zeros stand for what is absent: a backward that divides by them is wrong."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x, x.exp()

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return 2 * x * g * g / g + h * x.exp()


@wrong("n", fails=at(absent=(0,)))
class MaterializedZero(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x, x.exp()

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return 2 * x * g + sg.where((g == 0).all(), h, h * x.exp())


@right("n m")
class IndicesHaveNone(sg.Function):
    """The cotangent of an output that is not differentiable is not looked at."""

    @staticmethod
    def forward(ctx, x):
        values, indices = x.max(1)
        ctx.mark_non_differentiable(indices)
        ctx.save_for_backward(indices)
        ctx.size = x.shape[1]
        return values, indices

    @staticmethod
    def backward(ctx, g, _):
        (indices,) = ctx.saved_tensors
        return g.unsqueeze(1) * sg.one_hot(indices, ctx.size)


@wrong("n", fails=at(absent=(1,)))
class OneLineGuard(Two):
    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return (0 if g is None else 2 * g * x) + (h * x.exp())


@wrong("n", fails=at(absent=(0,)))
class CaughtAndForgotten(Two):
    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        try:
            return 2 * g * x + (0 if h is None else h * x.exp())
        except TypeError:
            return sg.zeros_like(x)
