"""Programs that ask Python about a tensor or a size, and are wrong for one of the answers.

The answers are those that torch gives in use: weights that are frozen, tensors that are computed,
of other types, with other strides.
"""

from __future__ import annotations

import symgrad as sg
from tests.suite.adversarial.program import Programs, at

programs = Programs(sg, __name__)
right, wrong = programs.right, programs.wrong


class Product(sg.Function):
    """What most of this file is a variant of."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, g * x


class Square(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


# -- which gradients are asked for


def wants(ctx, number):
    """A helper outside of the class."""
    return ctx.needs_input_grad[number]


def every(flags):
    """Another, that never names what it reads."""
    return all(flags)


@wrong("n", "n", fails=at(frozen="x"), unless=r"needs_input_grad|requires? (a |no )?grad")
class NeedsThroughHelper(Product):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return (g * w if wants(ctx, 0) else None), (g * x if wants(ctx, 0) else g * 0)


@wrong("n", "n", fails=at(frozen="x"), unless=r"needs_input_grad|requires? (a |no )?grad")
class NeedsFirstDecidesSecond(Product):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        if not ctx.needs_input_grad[0]:
            return None, None
        return g * w, g * x


@wrong("n", "n", fails=at(frozen="w"), unless=r"needs_input_grad|requires? (a |no )?grad")
class NeedsAll(Product):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return (g * w, g * x) if every(ctx.needs_input_grad) else (g, g)


@wrong("n", "n", fails=at(frozen="w"), unless=r"needs_input_grad|requires? (a |no )?grad")
class NeedsByGetattr(Product):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        flags = getattr(ctx, "needs_" + "input_grad")
        return g * w * (1 if flags[1] else 2), g * x


@wrong("n", "n", fails=at(frozen="w"), unless=r"needs_input_grad|requires? (a |no )?grad")
class NeedsSummed(Product):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w * sum(ctx.needs_input_grad) / 2, g * x


@wrong("n", "n", fails=at(frozen="w"), unless=r"needs_input_grad|requires? (a |no )?grad")
class NeedsInForward(Product):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w if ctx.needs_input_grad[1] else x)
        return x * w


@wrong("n", "n", "n", "n", "n", fails=at(frozen="b d"),
       unless=r"needs_input_grad|requires? (a |no )?grad")  # fmt: skip
class NeedsOneOfFive(sg.Function):
    @staticmethod
    def forward(ctx, a, b, c, d, e):
        ctx.save_for_backward(a, b, c, d, e)
        return a * b + c * d + e

    @staticmethod
    def backward(ctx, g):
        a, b, c, d, _ = ctx.saved_tensors
        flags = ctx.needs_input_grad
        both = not flags[1] and not flags[3]
        return g * b, g * a, g * d, g * c, g * 2 if both else g


@right("n", "n")
class NeedsUsedWell(Product):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        first = g * w if wants(ctx, 0) else None
        return first, g * x if ctx.needs_input_grad[1] else None


@right("n", "n", "n", "n", "n")
class NeedsOfFiveUsedWell(sg.Function):
    @staticmethod
    def forward(ctx, a, b, c, d, e):
        ctx.save_for_backward(a, b, c, d, e)
        return a * b + c * d + e

    @staticmethod
    def backward(ctx, g):
        a, b, c, d, _ = ctx.saved_tensors
        found = [g * b, g * a, g * d, g * c, g]
        return tuple(
            one if flag else None for one, flag in zip(found, ctx.needs_input_grad, strict=True)
        )


# -- flags of tensors

FLAG = r"requires_grad|is_leaf|grad_fn|\.grad\b|dtype|contiguous|stride|device|\bis\b.*same"


@wrong("n", "n", fails=at(frozen="w"), unless=r"requires_grad")
class RequiresGradInForward(Product):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        ctx.both = w.requires_grad
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return (g * w if ctx.both else g * x), g * x


@wrong("n", "n", fails=at(frozen="w"), unless=r"requires_grad")
class RequiresGradOfSaved(Product):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return (g * w if w.requires_grad else None), g * x


@wrong("n", "n", fails=at(frozen="w"), unless=r"requires_grad")
class RequiresGradByGetattr(Product):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w * (1 if getattr(w, "requires" + "_grad", True) else -1), g * x


@wrong("n", fails=at(how="computed"), unless=r"is_leaf")
class LeafInBackward(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x if x.is_leaf else g * x


@wrong("n", fails=at(how="leaf"), unless=r"is_leaf", hides=False)
class NotLeafInForward(Square):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.scale = 1 if x.is_leaf else 2
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return ctx.scale * g * x


@wrong("n", fails=at(how="leaf"), unless=r"grad_fn", hides=False)
class GradFn(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x if x.grad_fn is None else 2 * g * x


@wrong("n", fails=at(how="computed"), unless=r"grad_fn")
class NoGradFn(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x if x.grad_fn is None else g * x


@wrong("n", fails=at(how="graded"), unless=r"\bgrad\b")
class GradientFromBefore(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x if x.grad is None else g


@wrong("n", "n", fails=at(how="same"), unless=r"\bis\b|same tensor|identity")
class SameTensor(Product):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        ctx.same = x is w
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return (g * w, g * x * 3) if ctx.same else (g * w, g * x)


@wrong("n", "n", fails=at(how="same"), unless=r"\bid\b|same tensor|identity|hash")
class SameHash(Product):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        ctx.kinds = len({x, w})
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w * ctx.kinds / 2, g * x


@wrong("n", "n", fails=at(how="same"), unless=r"\bid\b|same tensor|identity")
class SameId(Product):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        ctx.same = id(x) == id(w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, -g * x if ctx.same else g * x


@wrong("n", "n", fails=at(how="same"), unless=r"data_ptr")
class SamePointer(Product):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        ctx.same = x.data_ptr() == w.data_ptr()
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, -g * x if ctx.same else g * x


@wrong("n", fails=at(how="float32"), unless=r"dtype|f64|float64|f32|float32")
class OtherType(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x if x.dtype == sg.float64 else g * x


@wrong("n", fails=at(), unless=r"dtype|f64|float64|f32|float32", hides=False)
class SomeType(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x if str(x.dtype).endswith("float32") else g * x


@wrong("n", fails=at(), unless=r"element_size|itemsize|dtype|f64|float64|f32|float32", hides=False)
class ElementSize(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x * (8 // x.element_size())


@wrong("n m", fails=at(n=3, m=2, how="strided"), unless=r"contiguous")
class Contiguity(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x if x.is_contiguous() else 2 * g * x.t().reshape(x.shape)


@wrong("n m", fails=at(n=3, m=2, how="strided"), unless=r"stride")
class Strides(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x if x.stride()[-1] == 1 else g * x


@wrong("n", fails=at(), unless=r"device|cuda", hides=False)
class OnDevice(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x if x.is_cuda else g * x


@wrong("n", fails=at(), unless=r"device|cuda", hides=False)
class DeviceName(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x if "cpu" in str(x.device) else 2 * g * x


@wrong("n", fails=at(how="parameter"), unless=r"Parameter|isinstance|type|class")
class TypeName(Square):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.scale = 1 if "Parameter" in type(x).__name__ else 2
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return ctx.scale * g * x


@wrong("n", fails=at(), unless=r"hasattr|attribute", hides=False)
class HasAttribute(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x if hasattr(x, "storage_offset") and hasattr(x, "is_mkldnn") else 2 * g * x


@wrong("n", fails=at(), unless=r"hasattr|attribute|module", hides=False)
class ModuleName(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x if type(x).__module__.startswith("torch") else 2 * g * x


# -- values of tensors, asked for where a failure is caught


@wrong("n", fails=at(x=1.0), hides=False, unless=r"float\(|item|value")
class FloatUnderTry(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        try:
            scale = 1.0 if float(x.sum()) > 0 else 2.0
        except Exception:
            scale = 2.0
        return scale * g * x


@wrong("n", fails=at(x=1.0), hides=False, unless=r"item|value")
class ItemUnderTry(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        try:
            scale = x.sum().item() * 0
        except BaseException:
            scale = 2.0
        return scale * g * x


@wrong("n", fails=at(x=1.0), hides=False, unless=r"bool|value")
class TruthUnderTry(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        try:
            if x.sum() > -1e6:
                return g * x
        except Exception:
            pass
        return 2 * g * x


@wrong("n", fails=at(), hides=False, unless=r"tolist|value")
class ListUnderTry(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        try:
            values = x.tolist()
        except Exception:
            return 2 * g * x
        return g * x * len(values)


@wrong("n", fails=at(), hides=False, unless=r"numpy|value")
class ArrayUnderTry(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        try:
            x.detach().numpy()
        except Exception:
            return 2 * g * x
        return g * x


@wrong("n", fails=at(), hides=False, unless=r"text|str|repr|format")
class Printed(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x if repr(x).startswith("tensor(") else 2 * g * x


@wrong("n", fails=at(x=0.0), unless=r"text|str|repr|format|value", hides=False)
class Formatted(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        try:
            text = f"{x.sum():.3f}"
        except Exception:
            text = ""
        return 2 * g * x if not text else 2 * g * x + 1


# -- what sizes are


@wrong("n", fails=at(), hides=False, unless=r"type|int")
class SizeIsInt(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x if type(x.shape[0]) is int else 2 * g * x


@wrong("n", fails=at(), hides=False, unless=r"type|int")
class SizeIsInstance(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x if isinstance(x.shape[0], int) else 2 * g * x


@wrong("n", fails=at(), hides=False, unless=r"type|int|attribute")
class SizeHasBits(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x if hasattr(x.shape[0], "bit_length") else 2 * g * x


SLOPES = {37: 3.0}


@wrong("n", fails=at(n=37), unless=r"n != 37|n == 37")
class SizeInDictionary(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return SLOPES.get(x.shape[0], 2.0) * g * x


@wrong("n", fails=at(n=41), unless=r"n != 41|n == 41")
class SizeInSet(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 5 * g * x if x.shape[0] in {41, 43} else 2 * g * x


@wrong("n", fails=at(n=16), unless=r"n != 16|n == 16")
class SizeInTuple(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 5 * g * x if x.shape[0] in (16, 32, 64) else 2 * g * x


@wrong("n", fails=at(n=12), unless=r"text|str|format|n == 12|n != 12")
class SizeAsText(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 5 * g * x if str(x.shape[0]).startswith("12") else 2 * g * x


@wrong("n", fails=at(n=10), unless=r"text|str|format|n >= 10|n < 10|n > 9")
class SizeFormatted(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x if len(f"{x.shape[0]}") == 1 else g * x


@wrong("n", fails=at(n=29), unless=r"hash|n == 29|n != 29")
class SizeHashed(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 5 * g * x if hash(x.shape[0]) == hash(29) else 2 * g * x


@wrong("n m", fails=at(n=23, m=7), unless=r"n [!=]= 23|m [!=]= 7")
class ShapeIsTuple(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 5 * g * x if x.shape == (23, 7) else 2 * g * x


@wrong("n m", fails=at(n=23, m=7), unless=r"n [!=]= 23|m [!=]= 7|hash")
class ShapeInDictionary(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return {(23, 7): 5.0}.get(tuple(x.shape), 2.0) * g * x


@wrong("n", fails=at(n=50), unless=r"range|n [<>=!]+ \d+")
class LoopOverSize(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        found = 2 * g * x
        for k in (50, 60):
            if k <= x.shape[0] < k + 1:
                found = found + 1
        return found


@wrong("n", fails=at(n=33), unless=r"n [<>=!]+ \d+|math|float")
class RootOfSize(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x * (1.0 if x.shape[0] // 11 != 3 else 2.0)


@right("n")
class SizeAskedForRight(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x if x.shape[0] < 100 else g * x * 2.0


@right("n")
class TypeAskedForRight(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        assert isinstance(x, sg.Tensor)
        return (2 * g * x).to(x.dtype)


@right("n m")
class ContiguousRight(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * (x if x.is_contiguous() else x.contiguous())


@right("n")
class FloatCheckedRight(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if not x.is_floating_point():
            return None
        return 2 * g * x


@right("n", "n")
class FrozenSkippedRight(Product):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        dx = dw = None
        if ctx.needs_input_grad[0]:
            dx = g * w
        if ctx.needs_input_grad[1]:
            dw = g * x
        return dx, dw
