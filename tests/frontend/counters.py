"""Counters in odd places: each is a number that grows with every call.

One counter a place that a program can keep something in.
"""

from __future__ import annotations

import array
import collections
import contextlib
import contextvars
import ctypes
import dataclasses
import decimal
import enum
import functools
import itertools
import logging
import operator
import queue
import types
from collections.abc import Callable
from typing import Any

import numpy as np

import symgrad as sg
from tests.frontend import counting_module as helpermod
from tests.frontend.counting_module import K as HK
from tests.frontend.counting_module import tick as imported_tick

COUNTERS: dict[str, Callable[[], Any]] = {}

COUNTERS["HelperModule"] = lambda: helpermod.tick()
COUNTERS["HelperImported"] = lambda: imported_tick()


def hm():
    helpermod.M += 1
    return helpermod.M


COUNTERS["HelperModuleAttr"] = hm


def hk():
    HK.n += 1
    return HK.n


COUNTERS["HelperClassAttr"] = hk


class A1:
    pass


class A2:
    pass


A1.b = A2
A2.c = types.SimpleNamespace(d={"n": [0]})


def deep():
    A1.b.c.d["n"][0] += 1
    return A1.b.c.d["n"][0]


COUNTERS["Deep"] = deep
CV = contextvars.ContextVar("cv", default=0)


def cv():
    CV.set(CV.get() + 1)
    return CV.get()


COUNTERS["ContextVar"] = cv
CT = ctypes.c_int(0)


def ct():
    CT.value += 1
    return CT.value


COUNTERS["Ctypes"] = ct
Q = queue.Queue()


def qq():
    Q.put(1)
    return Q.qsize()


COUNTERS["Queue"] = qq
LOGGER = logging.getLogger("symgrad-test")


def lg():
    LOGGER.count = getattr(LOGGER, "count", 0) + 1
    return LOGGER.count


COUNTERS["LoggerAttr"] = lg


def sgf():
    sg.Function.count = getattr(sg.Function, "count", 0) + 1
    return sg.Function.count


COUNTERS["OnFunctionClass"] = sgf


def sgs():
    sg.Function.count2 = getattr(sg.Function, "count2", 0) + 1
    return sg.Function.count2


COUNTERS["OnFunctionClassSetattr"] = sgs


def sge():
    sg.exp.count = getattr(sg.exp, "count", 0) + 1
    return sg.exp.count


COUNTERS["OnLibraryFunction"] = sge


def dc():
    decimal.getcontext().prec += 1
    return decimal.getcontext().prec - 28


COUNTERS["DecimalContext"] = dc


def npe():
    old = np.geterr()["divide"]
    np.seterr(divide="ignore")
    return 30 if old == "ignore" else 0


COUNTERS["NumpyErr"] = npe


def lvl():
    LOGGER2.setLevel(LOGGER2.level + 1)
    return LOGGER2.level


LOGGER2 = logging.getLogger("symgrad-test-2")
COUNTERS["LoggerLevel"] = lvl
Z = zip(itertools.count(), itertools.count(5))
COUNTERS["ZipOfCounts"] = lambda: next(Z)[0]
EN = enumerate(itertools.repeat(0))
COUNTERS["Enumerate"] = lambda: next(EN)[0]
MP = map(abs, itertools.count())
COUNTERS["MapOfCount"] = lambda: next(MP)
CI = iter(lambda c=[0]: (c.__setitem__(0, c[0] + 1), c[0])[1], -1)
COUNTERS["CallableIterator"] = lambda: next(CI)
TE, TE2 = itertools.tee(itertools.count())
COUNTERS["Tee"] = lambda: next(TE)
CH = itertools.chain([0] * 26, itertools.repeat(99))
COUNTERS["Chain"] = lambda: next(CH)
D1 = {}
KEYS = D1.keys()


def kv():
    D1[len(KEYS)] = 1
    return len(KEYS)


COUNTERS["KeysView"] = kv
D2 = {"n": 0}
PROXY = types.MappingProxyType(D2)


def px():
    D2["n"] += 1
    return PROXY["n"]


COUNTERS["Proxy"] = px
BA = bytearray(1)
MV = memoryview(BA)


def mv():
    MV[0] += 1
    return MV[0]


COUNTERS["Memoryview"] = mv
MV2 = memoryview(bytearray(1))


def mv2():
    MV2[0] += 1
    return MV2[0]


COUNTERS["MemoryviewOnly"] = mv2
AR = array.array("i", [0])


def ar():
    AR[0] += 1
    return AR[0]


COUNTERS["ArrayArray"] = ar
GET = D2.get
D2["m"] = 0


def gt():
    D2["m"] += 1
    return GET("m")


COUNTERS["BoundGet"] = gt


class Meta(type):
    n = 0

    def __getattr__(cls, name):
        Meta.n += 1
        return Meta.n


class WithMeta(metaclass=Meta):
    pass


COUNTERS["Metaclass"] = lambda: WithMeta.anything


class CGI:
    n = 0

    @classmethod
    def __class_getitem__(cls, k):
        cls.n += 1
        return cls.n


COUNTERS["ClassGetitem"] = lambda: CGI[0]


class Cached:
    @functools.cached_property
    def value(self):
        Cached.n = getattr(Cached, "n", 0) + 1
        return Cached.n


COUNTERS["CachedProperty"] = lambda: Cached().value


@functools.singledispatch
def sd(x):
    return 0


@sd.register(float)
def sdf(x):
    D2["s"] = D2.get("s", 0) + 1
    return D2["s"]


COUNTERS["Singledispatch"] = lambda: sd(1.0)
AG = operator.attrgetter("HID")
helpermod.HID = [0]


def agf():
    h = AG(helpermod)
    h[0] += 1
    return h[0]


COUNTERS["Attrgetter"] = agf


class Base:
    pass


def subs():
    KEEP.append(type("X", (Base,), {}))
    return len(Base.__subclasses__())


KEEP = []
COUNTERS["Subclasses"] = subs


@contextlib.contextmanager
def cm():
    D2["cm"] = D2.get("cm", 0) + 1
    yield D2["cm"]


def cmf():
    with cm() as k:
        return k


COUNTERS["ContextManager"] = cmf


class Iter:
    def __init__(self):
        self.n = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.n += 1
        return self.n


ITO = Iter()
COUNTERS["IteratorObject"] = lambda: next(ITO)


class Len:
    n = 0

    def __len__(self):
        Len.n += 1
        return Len.n


LO = Len()
COUNTERS["LenDunder"] = lambda: len(LO)


class Boolish:
    n = 0

    def __bool__(self):
        Boolish.n += 1
        return Boolish.n > 25


BO = Boolish()
COUNTERS["BoolDunder"] = lambda: 99 if BO else 0


class E(enum.Enum):
    A = 1


def en():
    E.A.count = getattr(E.A, "count", 0) + 1
    return E.A.count


COUNTERS["EnumMember"] = en


@dataclasses.dataclass
class DC:
    n: int = 0


DCI = DC()


def dcf():
    DCI.n += 1
    return DCI.n


COUNTERS["Dataclass"] = dcf
NT = collections.namedtuple("NT", "a")([0])


def nt():
    NT.a[0] += 1
    return NT.a[0]


COUNTERS["NamedTuple"] = nt
CM = collections.ChainMap({"n": 0})


def cmm():
    CM["n"] += 1
    return CM["n"]


COUNTERS["ChainMap"] = cmm
UD = collections.UserDict(n=0)


def ud():
    UD["n"] += 1
    return UD["n"]


COUNTERS["UserDict"] = ud
UL = collections.UserList()


def ul():
    UL.append(1)
    return len(UL)


COUNTERS["UserList"] = ul
