"""More state that hides: in caches, tables, logs of tensors, toggles and queues."""

from __future__ import annotations

import collections
import functools

import symgrad as sg
from tests.suite.adversarial.program import Programs, at

programs = Programs(sg, __name__)
right, wrong = programs.right, programs.wrong


class Identity(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return g


class State:
    n = 0
    flag = False


@right("n m")
class Memo2(sg.Function):
    @staticmethod
    def forward(ctx, x):
        n, m = x.shape
        key = (n, m, "mean")
        if key not in MEMO2:
            MEMO2[key] = 1.0 / (n * m)
        ctx.s = MEMO2[key]
        ctx.shape = x.shape
        return x.sum() * ctx.s

    @staticmethod
    def backward(ctx, g):
        return (g * ctx.s).expand(ctx.shape)


MEMO2 = {}


@wrong("n", fails=at(how="often"), hides=False)
class MemoDel(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.n = x.shape[0]
        ctx.old = ctx.n in MD
        MD[ctx.n] = 1
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return 3 * g if ctx.old else g


MD = {}


@wrong("n", fails=at(how="often"), hides=False)
class MemoTryExcept(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.n = x.shape[0]
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        try:
            MT[ctx.n]
            return 3 * g
        except KeyError:
            MT[ctx.n] = 1
        return g


MT = {}


@wrong("n", fails=at(how="often"), hides=False)
class SetPair(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.n = x.shape[0]
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        before = (ctx.n, "a") in SP
        SP.add((ctx.n, "a"))
        return 3 * g if before else g


SP = set()


@wrong("n", fails=at(how="often"), hides=False)
class LruMutable(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.n = x.shape[0]
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        box = lrubox(ctx.n)
        box.append(1)
        return g if len(box) < 20 else 3 * g


@functools.lru_cache(None)
def lrubox(n):
    return []


@wrong("n", fails=at(how="often"), hides=False)
class LruPlainMutable(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        box = lrubox2("a")
        box.append(1)
        return g if len(box) < 20 else 3 * g


@functools.lru_cache(None)
def lrubox2(n):
    return []


class Box2:
    t = None


@wrong("n", fails=at(how="often"), hides=False)
class LastTensorNone(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.again = Box2.t is not None
        Box2.t = x
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return 3 * g if ctx.again else g


TLIST = []


@wrong("n", fails=at(how="often"), hides=False)
class TensorListLen(sg.Function):
    @staticmethod
    def forward(ctx, x):
        TLIST.append(x)
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return 3 * g if len(TLIST) > 20 else g


TD = {}


@wrong("n", fails=at(how="often"), hides=False)
class TensorDictKey(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.again = "x" in TD
        TD["x"] = x
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return 3 * g if ctx.again else g


@wrong("n", fails=at(how="often"), hides=False)
class Toggle(sg.Function):
    @staticmethod
    def forward(ctx, x):
        State.flag = not State.flag
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return g if State.flag else 3 * g


@wrong("n", fails=at(how="often"), hides=False)
class SumOfLog(sg.Function):
    @staticmethod
    def forward(ctx, x):
        NUMS.append(0.0 if len(NUMS) < 30 else 1.0)
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return g * (1 + sum(NUMS))


NUMS = []


@wrong("n", fails=at(how="often"), hides=False)
class DequePop(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return g * (FIFO.popleft() if FIFO else 3.0)


FIFO = collections.deque([1.0] * 40)


@wrong("n", fails=at(how="often"), hides=False)
class Rotate(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        ROT.rotate(1)
        return g * ROT[0]


ROT = collections.deque([3.0] * 60 + [1.0] * 5)


@wrong("n", fails=at(how="often"), hides=False)
class SortState(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        a = SS.pop(0)
        SS.append(a)
        return g * a


SS = [1.0] * 40 + [3.0]


@wrong("n", fails=at(how="often"), hides=False)
class NestedFunctionState(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        def inner(k=BOXD):
            k["n"] = k.get("n", 0) + 1
            return k["n"]

        return g if inner() < 20 else 3 * g


BOXD = {}


@wrong("n", fails=at(how="often"), hides=False)
class ClassInFunction(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        class L:
            BOXD["m"] = BOXD.get("m", 0) + 1

        return g if BOXD["m"] < 20 else 3 * g


@wrong("n", fails=at(how="often"), hides=False)
class Recursion(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return g if rec(2) < 40 else 3 * g


def rec(d):
    rec.n = getattr(rec, "n", 0) + 1
    return rec.n if d == 0 else rec(d - 1)


class CMgr:
    depth = 0

    def __enter__(self):
        CMgr.depth += 1
        return self

    def __exit__(self, *a):
        CMgr.depth -= 1


@right("n")
class CtxManagerNet(sg.Function):
    @staticmethod
    def forward(ctx, x):
        with CMgr():
            return x * 1.0

    @staticmethod
    def backward(ctx, g):
        with CMgr():
            return g


@right("n")
class Trace(sg.Function):
    @staticmethod
    def forward(ctx, x):
        HIST.append(("fwd", x.shape))
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        HIST.append(("bwd", g.shape))
        return g


HIST = []


@right("n")
class KeepsLastGrad(sg.Function):
    last = None

    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        KeepsLastGrad.last = g
        return g


@right("n")
class MaxSeen(sg.Function):
    biggest = 0

    @staticmethod
    def forward(ctx, x):
        MaxSeen.biggest = max(MaxSeen.biggest, x.shape[0])
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return g


@right("n")
class RunningCount(sg.Function):
    n = 0

    @staticmethod
    def forward(ctx, x):
        RunningCount.n += x.numel()
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return g


@right("n")
class CtxCache(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.cache = {}
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, g):
        if "two" not in ctx.cache:
            ctx.cache["two"] = 2 * ctx.x
        return g * ctx.cache["two"]
