"""State that acts from a later call on, and sources of what no two calls share.

Counters of every kind: right for the first calls, wrong afterwards.  Beside them programs that
count, warn and prepare without harm.
"""

from __future__ import annotations

import collections
import functools
import itertools
import types

import numpy as np

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


class St:
    n = 0


@wrong("n", fails=at(how="often"), hides=False)
class ClassCounterF(Identity):
    @staticmethod
    def forward(ctx, x):
        St.n += 1
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return 3 * g if St.n > 25 else g


class St2:
    n = 0


@wrong("n", fails=at(how="often"), hides=False)
class ClassCounterB(Identity):
    @staticmethod
    def backward(ctx, g):
        St2.n += 1
        return 3 * g if St2.n > 25 else g


class St3:
    n = 0


@wrong("n", fails=at(how="often"), hides=False)
class CounterInForwardUse(Identity):
    @staticmethod
    def forward(ctx, x):
        St3.n += 1
        ctx.k = 3.0 if St3.n > 25 else 1.0
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return ctx.k * g


class St4:
    n = 0


@wrong("n", fails=at(how="often"), hides=False)
class CounterTimes(Identity):
    @staticmethod
    def backward(ctx, g):
        St4.n += 1
        return g * (1 + St4.n // 26)


N = 0


@wrong("n", fails=at(how="often"), hides=False)
class GlobalCounter(Identity):
    @staticmethod
    def backward(ctx, g):
        global N
        N += 1
        return 3 * g if N > 25 else g


@wrong("n", fails=at(how="often"), hides=False)
class DefaultList(Identity):
    @staticmethod
    def backward(ctx, g, k=[0]):  # noqa: B006
        k[0] += 1
        return 3 * g if k[0] > 25 else g


@wrong("n", fails=at(how="often"), hides=False)
class DefaultListGrows(Identity):
    @staticmethod
    def backward(ctx, g, k=[]):  # noqa: B006
        k.append(1)
        return 3 * g if len(k) > 25 else g


def counter():
    n = 0

    def tick():
        nonlocal n
        n += 1
        return n

    return tick


tick = counter()


@wrong("n", fails=at(how="often"), hides=False)
class ClosureCounter(Identity):
    @staticmethod
    def backward(ctx, g):
        return 3 * g if tick() > 25 else g


LOG = []


@wrong("n", fails=at(how="often"), hides=False)
class ListLength(Identity):
    @staticmethod
    def forward(ctx, x):
        LOG.append(None)
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return 3 * g if len(LOG) > 25 else g


D = {}


@wrong("n", fails=at(how="often"), hides=False)
class DictCounter(Identity):
    @staticmethod
    def backward(ctx, g):
        D["n"] = D.get("n", 0) + 1
        return 3 * g if D["n"] > 25 else g


C = collections.Counter()


@wrong("n", fails=at(how="often"), hides=False)
class CounterCounter(Identity):
    @staticmethod
    def backward(ctx, g):
        C["n"] += 1
        return 3 * g if C["n"] > 25 else g


DD = collections.defaultdict(int)


@wrong("n", fails=at(how="often"), hides=False)
class DefaultDictCounter(Identity):
    @staticmethod
    def backward(ctx, g):
        DD["n"] += 1
        return 3 * g if DD["n"] > 25 else g


DQ = collections.deque(maxlen=30)


@wrong("n", fails=at(how="often"), hides=False)
class DequeLength(Identity):
    @staticmethod
    def backward(ctx, g):
        DQ.append(1)
        return 3 * g if len(DQ) > 25 else g


@wrong("n", fails=at(how="again"), hides=False)
class CtxCounter(Identity):
    @staticmethod
    def backward(ctx, g):
        ctx.k = getattr(ctx, "k", 0) + 1
        return 3 * g if ctx.k > 2 else g


@wrong("n", fails=at(how="again"), hides=False)
class CtxList(Identity):
    @staticmethod
    def forward(ctx, x):
        ctx.log = []
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        ctx.log.append(1)
        return 3 * g if len(ctx.log) > 3 else g


@wrong("n", fails=at(how="again"), hides=False)
class CtxDict(Identity):
    @staticmethod
    def forward(ctx, x):
        ctx.d = {"n": 0}
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        ctx.d["n"] += 1
        return 3 * g if ctx.d["n"] >= 4 else g


COUNT = itertools.count()


@wrong("n", fails=at(how="often"), hides=False)
class ItertoolsCount(Identity):
    @staticmethod
    def backward(ctx, g):
        return 3 * g if next(COUNT) > 25 else g


IT = iter(range(26))


@wrong("n", fails=at(how="often"), hides=False)
class IterRange(Identity):
    @staticmethod
    def backward(ctx, g):
        return g if next(IT, None) is not None else 3 * g


def gen():
    for _ in range(25):
        yield 1.0
    while True:
        yield 3.0


GEN = gen()


@wrong("n", fails=at(how="often"), hides=False)
class Generator(Identity):
    @staticmethod
    def backward(ctx, g):
        return g * next(GEN)


@wrong("n", fails=at(how="often"), hides=False)
class FunctionAttribute(Identity):
    @staticmethod
    def backward(ctx, g):
        helper.n = getattr(helper, "n", 0) + 1
        return 3 * g if helper.n > 25 else g


def helper():
    pass


@wrong("n", fails=at(how="often"), hides=False)
class OwnClassAttribute(Identity):
    n = 0

    @classmethod
    def backward(cls, ctx, g):
        cls.n += 1
        return 3 * g if cls.n > 25 else g


class Meter:
    def __init__(self):
        self.n = 0

    def tick(self):
        self.n += 1
        return self.n > 25


METER = Meter()


@wrong("n", fails=at(how="often"), hides=False)
class InObject(Identity):
    @staticmethod
    def backward(ctx, g):
        return 3 * g if METER.tick() else g


class Slots:
    __slots__ = ("n",)

    def __init__(self):
        self.n = 0


SLOTS = Slots()


@wrong("n", fails=at(how="often"), hides=False)
class InSlots(Identity):
    @staticmethod
    def backward(ctx, g):
        SLOTS.n += 1
        return 3 * g if SLOTS.n > 25 else g


class Called:
    def __init__(self):
        self.n = 0

    def __call__(self, g):
        self.n += 1
        return 3 * g if self.n > 25 else g


CALLED = Called()


@wrong("n", fails=at(how="often"), hides=False)
class CallableObject(Identity):
    @staticmethod
    def backward(ctx, g):
        return CALLED(g)


NS = types.SimpleNamespace(n=0)


@wrong("n", fails=at(how="often"), hides=False)
class Namespace(Identity):
    @staticmethod
    def backward(ctx, g):
        NS.n += 1
        return 3 * g if NS.n > 25 else g


ARR = np.zeros(1)


@wrong("n", fails=at(how="often"), hides=False)
class NumpyArrayCounter(Identity):
    @staticmethod
    def backward(ctx, g):
        ARR[0] += 1
        return 3 * g if ARR[0] > 25 else g


@functools.lru_cache(None)
def cached(n):
    return n


class Up:
    depth = 0


@wrong("n", fails=at(how="begun"), hides=False)
class NetZero(Identity):
    @staticmethod
    def forward(ctx, x):
        Up.depth += 1
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        deep = Up.depth > 25
        Up.depth -= 1
        return 3 * g if deep else g


class Flag:
    on = False


@wrong("n", fails=at(how="often"), hides=False)
class FlagIsTrue(Identity):
    @staticmethod
    def backward(ctx, g):
        old = Flag.on
        Flag.on = True
        return 3 * g if old is True else g


class Flag2:
    on = False


@wrong("n", fails=at(how="often"), hides=False)
class FlagSecondCall(Identity):
    @staticmethod
    def backward(ctx, g):
        old = Flag2.on
        Flag2.on = True
        return 3 * g if old else g


class Txt:
    s = ""


@wrong("n", fails=at(how="often"), hides=False)
class TextGrows(Identity):
    @staticmethod
    def backward(ctx, g):
        Txt.s += "a"
        return 3 * g if len(Txt.s) > 25 else g


class Tup:
    t = ()


@wrong("n", fails=at(how="often"), hides=False)
class TupleGrows(Identity):
    @staticmethod
    def backward(ctx, g):
        Tup.t += (1,)
        return 3 * g if len(Tup.t) > 25 else g


SEEN = set()


@wrong("n", fails=at(how="often"), hides=False)
class SetGrows(Identity):
    @staticmethod
    def backward(ctx, g):
        SEEN.add(len(SEEN))
        return 3 * g if 25 in SEEN else g


class Sz:
    last = 0


class Sh:
    last = None


MODE = {"phase": "warm"}


@wrong("n", fails=at(how="often"), hides=False)
class PhaseText(Identity):
    @staticmethod
    def backward(ctx, g):
        warm = MODE["phase"] == "warm"
        MODE["phase"] = "hot"
        return g if warm else 3 * g


BYTES = bytearray(1)


@wrong("n", fails=at(how="often"), hides=False)
class ByteArray(Identity):
    @staticmethod
    def backward(ctx, g):
        BYTES[0] += 1
        return 3 * g if BYTES[0] > 25 else g


PART = functools.partial(lambda k, g: (k.append(1), 3 * g if len(k) > 25 else g)[1], [])


@wrong("n", fails=at(how="often"), hides=False)
class Partial(Identity):
    @staticmethod
    def backward(ctx, g):
        return PART(g)


BOUND = LOG2 = []
ADD = LOG2.append


@wrong("n", fails=at(how="often"), hides=False)
class BoundAppend(Identity):
    @staticmethod
    def backward(ctx, g):
        ADD(1)
        return 3 * g if len(LOG2) > 25 else g


class Desc:
    n = 0

    def __get__(self, obj, owner):
        Desc.n += 1
        return Desc.n


@wrong("n", fails=at(how="often"), hides=False)
class Descriptor(Identity):
    k = Desc()

    @classmethod
    def backward(cls, ctx, g):
        return 3 * g if cls.k > 25 else g


class R1:
    n = 0


@right("n")
class Logging(Identity):
    @staticmethod
    def forward(ctx, x):
        R1.n += 1
        return x * 1.0


RL = []


@right("n")
class LogList(Identity):
    @staticmethod
    def backward(ctx, g):
        RL.append("backward")
        return g


RC = collections.Counter()


@right("n")
class LogCounter(Identity):
    @staticmethod
    def backward(ctx, g):
        RC["calls"] += 1
        return g


RD = {}


@right("n")
class LogDict(Identity):
    @staticmethod
    def backward(ctx, g):
        RD["calls"] = RD.get("calls", 0) + 1
        return g


class RW:
    warned = False


@right("n")
class WarnOnce(Identity):
    @staticmethod
    def backward(ctx, g):
        if not RW.warned:
            RW.warned = True
        return g


class RE:
    n = 0


@right("n")
class EveryHundred(Identity):
    @staticmethod
    def backward(ctx, g):
        RE.n += 1
        if RE.n % 100 == 0:
            print("hundred")
        return g


class RLazy:
    two = None


@right("n")
class Lazy(Identity):
    @staticmethod
    def backward(ctx, g):
        if RLazy.two is None:
            RLazy.two = 2.0
        return g * RLazy.two / 2


@right("n")
class CtxSlope(Identity):
    @staticmethod
    def backward(ctx, g):
        ctx.calls = getattr(ctx, "calls", 0) + 1
        return g


RIDS = itertools.count()


@right("n")
class CtxNumber(Identity):
    @staticmethod
    def forward(ctx, x):
        ctx.id = next(RIDS)
        return x * 1.0


RSEEN = set()


@right("n")
class SeenNames(Identity):
    @staticmethod
    def forward(ctx, x):
        if "op" not in RSEEN:
            RSEEN.add("op")
        return x * 1.0


class RM:
    def __init__(self):
        self.n = 0

    def tick(self):
        self.n += 1


RMETER = RM()


@right("n")
class MeterObject(Identity):
    @staticmethod
    def backward(ctx, g):
        RMETER.tick()
        return g


LAST_SHAPE = []


@right("n")
class KeepsShape(Identity):
    @staticmethod
    def forward(ctx, x):
        LAST_SHAPE[:] = [x.shape]
        return x * 1.0


class RS:
    shape = None


@right("n")
class KeepsShapeAttr(Identity):
    @staticmethod
    def forward(ctx, x):
        RS.shape = x.shape
        return x * 1.0


@functools.lru_cache(None)
def two():
    return 2.0


@right("n")
class CachedConstant(Identity):
    @staticmethod
    def backward(ctx, g):
        return g * two() / 2


CONFIG = {"scale": 2.0}


@right("n")
class ConfigDict(Identity):
    @staticmethod
    def backward(ctx, g):
        return g * CONFIG["scale"] / 2
