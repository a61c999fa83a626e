"""Tables that calls share, by sizes and by ctx: what they keep is a function of the key or not."""

from __future__ import annotations

import collections
import functools

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


TABLE = {}


@right("n")
class MemoBySize(sg.Function):
    @staticmethod
    def forward(ctx, x):
        n = x.shape[0]
        if n not in TABLE:
            TABLE[n] = sg.arange(n)
        ctx.w = TABLE[n]
        return x * TABLE[n]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.w


TABLE1 = {}


@right("n")
class MemoGet(sg.Function):
    @staticmethod
    def forward(ctx, x):
        n = x.shape[0]
        w = TABLE1.get(n)
        if w is None:
            w = TABLE1[n] = sg.arange(n) * 2.0
        ctx.w = w
        return x * w

    @staticmethod
    def backward(ctx, g):
        return g * ctx.w


TABLE2 = {}


@right("n")
class MemoTry(sg.Function):
    @staticmethod
    def forward(ctx, x):
        n = x.shape[0]
        try:
            w = TABLE2[n]
        except KeyError:
            w = TABLE2[n] = sg.arange(n) * 2.0
        ctx.w = w
        return x * w

    @staticmethod
    def backward(ctx, g):
        return g * ctx.w


TABLE3 = {}


@right("n m")
class MemoTuple(sg.Function):
    @staticmethod
    def forward(ctx, x):
        k = (x.shape[0], x.shape[1])
        if k not in TABLE3:
            TABLE3[k] = 1.0 / (k[0] * k[1])
        ctx.s = TABLE3[k]
        ctx.shape = x.shape
        return x.sum() * ctx.s

    @staticmethod
    def backward(ctx, g):
        return (g * ctx.s).expand(ctx.shape)


STORE = {}


@right("n")
class KeyedByCtx(Square):
    @staticmethod
    def forward(ctx, x):
        STORE[ctx] = x
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * STORE[ctx]


@right("n", "n")
class DictOfTensors(sg.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        grads = {"x": g * y, "y": g * x}
        return grads["x"], grads["y"]


ROWS = {}


@right("n m")
class RowsColumnsSame(sg.Function):
    @staticmethod
    def forward(ctx, x):
        n, m = x.shape
        if n not in ROWS:
            ROWS[n] = 1.0 / n
        if m not in ROWS:
            ROWS[m] = 1.0 / m
        ctx.s = ROWS[n]
        ctx.n = n
        return x.mean(0)

    @staticmethod
    def backward(ctx, g):
        return (g * ctx.s).expand(ctx.n, g.shape[0])


ONES = {}


@wrong("n", fails=at(how="often"), hides=False)
class WrittenInPlace(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = x.shape[0]
        if n not in ONES:
            ONES[n] = sg.ones(n)
        w = ONES[n]
        out = 2 * g * x * w
        w.add_(1.0)
        return out


COTANGENTS = {}


@wrong("n", fails=at(how="between"), hides=False)
class KeepsCotangent(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = x.shape[0]
        k = COTANGENTS.setdefault(n, g)
        return 2 * k * x


LISTS = {}


@wrong("n", fails=at(how="often"), hides=False)
class KeepsList(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        kept = LISTS.setdefault(x.shape[0], [])
        kept.append(1)
        return 2 * g * x if len(kept) < 20 else g


ORDERED = collections.OrderedDict()


@wrong("n", fails=at(how="often"), hides=False)
class Ordered(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = x.shape[0]
        if n in ORDERED:
            return 3 * g * x
        ORDERED[n] = 1
        return 2 * g * x


COUNTS = collections.defaultdict(int)


@wrong("n", fails=at(how="often"), hides=False)
class CountsBySize(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        COUNTS[x.shape[0]] += 1
        return 2 * g * x if COUNTS[x.shape[0]] < 20 else g


CALLS = {}


@wrong("n", fails=at(how="often"), hides=False)
class CountsBySizeDict(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = x.shape[0]
        CALLS[n] = CALLS.get(n, 0) + 1
        return 2 * g * x if CALLS[n] < 20 else g


SEEN = set()


@wrong("n", fails=at(how="often"), hides=False)
class SeenSizes(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = x.shape[0]
        if n in SEEN:
            return 3 * g * x
        SEEN.add(n)
        return 2 * g * x


SEEN_TOO = set()


@right("n")
class SeenSizesHarmless(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = x.shape[0]
        if n not in SEEN_TOO:
            SEEN_TOO.add(n)
        return 2 * g * x


@functools.lru_cache(maxsize=4)
def mixed(n, k):
    return k / n


@right("n")
class LruTwo(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.n = x.shape[0]
        return x.sum() * mixed(ctx.n, 2.0)

    @staticmethod
    def backward(ctx, g):
        return (g * mixed(ctx.n, 2.0)).expand(ctx.n)


class Op:
    def __init__(self):
        self.memo = {}

    def w(self, n):
        if n not in self.memo:
            self.memo[n] = 1.0 / n
        return self.memo[n]


OBJECT = Op()


@right("n")
class ObjectMemo(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.n = x.shape[0]
        return x.sum() * OBJECT.w(ctx.n)

    @staticmethod
    def backward(ctx, g):
        return (g * OBJECT.w(ctx.n)).expand(ctx.n)


@right("n")
class ClassMemo(sg.Function):
    memo = {}  # noqa: RUF012

    @staticmethod
    def forward(ctx, x):
        ctx.n = x.shape[0]
        if ctx.n not in ClassMemo.memo:
            ClassMemo.memo[ctx.n] = 1.0 / ctx.n
        return x.sum() * ClassMemo.memo[ctx.n]

    @staticmethod
    def backward(ctx, g):
        return (g * ClassMemo.memo[ctx.n]).expand(ctx.n)


PRODUCTS = {}


@right("n m")
class ByNumelRight(sg.Function):
    @staticmethod
    def forward(ctx, x):
        k = x.numel()
        if k not in PRODUCTS:
            PRODUCTS[k] = 1.0 / k
        ctx.s = PRODUCTS[k]
        ctx.shape = x.shape
        return x.sum() * ctx.s

    @staticmethod
    def backward(ctx, g):
        return (g * ctx.s).expand(ctx.shape)


@functools.lru_cache(None)
def weights(n):
    return 1.0 / n


@right("n")
class LruBySize(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.n = x.shape[0]
        return (x * weights(ctx.n)).sum()

    @staticmethod
    def backward(ctx, g):
        return (g * weights(ctx.n)).expand(ctx.n)


@functools.lru_cache(maxsize=8)
def ramp(n):
    return sg.arange(n) * 1.0


@right("n")
class LruTensor(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.n = x.shape[0]
        return (x * ramp(ctx.n)).sum()

    @staticmethod
    def backward(ctx, g):
        return g * ramp(ctx.n)


FIXED = {}


@right("3 4")
class FixedSizes(sg.Function):
    @staticmethod
    def forward(ctx, x):
        key = tuple(x.shape)
        if key not in FIXED:
            FIXED[key] = sg.ones(3, 4) * 2.0
        ctx.w = FIXED[key]
        return x * ctx.w

    @staticmethod
    def backward(ctx, g):
        return g * ctx.w


HITS = {}


@wrong("n", fails=at(how="often"), hides=False)
class HitIsWrong(Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = x.shape[0]
        if n in HITS:
            return 3 * g * x
        HITS[n] = True
        return 2 * g * x


INPUTS = {}


@wrong("n", fails=at(how="between"), hides=False)
class KeepsInput(sg.Function):
    @staticmethod
    def forward(ctx, x):
        n = x.shape[0]
        if n not in INPUTS:
            INPUTS[n] = 2 * x
        ctx.w = INPUTS[n]
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.w
