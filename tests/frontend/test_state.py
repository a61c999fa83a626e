"""What is not the same in every call makes the verdict UNDECIDED, with the line that asks it."""

from __future__ import annotations

import collections
import datetime
import functools
import itertools
import math
import os
import random
import threading
import time
import types
import uuid
from collections.abc import Callable, Generator, MutableSequence
from os import environ
from pathlib import Path
from random import random as drawn
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from tests.frontend.counters import COUNTERS

GENERATOR = np.random.default_rng(0)
OWN = random.Random(0)
LOCAL = threading.local()
LOCAL.calls = 0
SWITCHES = itertools.cycle([0] * 30 + [1])


def imported() -> float:
    import time as clock

    return clock.monotonic()


def on_thread() -> int:
    LOCAL.calls += 1
    return int(LOCAL.calls)


def on_module(module: Any) -> int:
    module.symgrad_calls = getattr(module, "symgrad_calls", 0) + 1
    return int(module.symgrad_calls)


def switched() -> bool:
    for one in SWITCHES:
        return bool(one)
    return False


def named() -> int:
    globals()["CALLS"] = globals().get("CALLS", 0) + 1
    return int(globals()["CALLS"])


def counting() -> Generator[int, None, None]:
    number = 0
    while True:
        number += 1
        yield number


def counting_in_a_list() -> Generator[int, None, None]:
    numbers = [0]
    while True:
        numbers[0] += 1
        yield numbers[0]


COUNTED, LISTED = counting(), counting_in_a_list()
next(COUNTED)
next(LISTED)

QUESTIONS: dict[str, Callable[[Any, Any], bool]] = {
    "random": lambda ctx, g: random.random() < 0.001,
    "random, imported by name": lambda ctx, g: drawn() < 0.001,
    "a generator of random numbers": lambda ctx, g: OWN.random() < 0.001,
    "a generator that has begun": lambda ctx, g: next(COUNTED) > 30,
    "a generator that counts in a list": lambda ctx, g: next(LISTED) > 30,
    "a generator, sent to": lambda ctx, g: COUNTED.send(None) > 30,
    "a generator, sliced": lambda ctx, g: any(k > 30 for k in itertools.islice(COUNTED, 1)),
    "NumPy's random": lambda ctx, g: bool(np.random.rand() < 0.001),  # noqa: NPY002
    "NumPy's generator": lambda ctx, g: bool(GENERATOR.random() < 0.001),
    "time": lambda ctx, g: time.time() > 2e10,
    "time, imported there": lambda ctx, g: imported() > 2e10,
    "the environment": lambda ctx, g: bool(os.environ.get("SYMGRAD_TRIPLE")),
    "the environment, imported by name": lambda ctx, g: "SYMGRAD_TRIPLE" in environ,
    "an identity of a tensor": lambda ctx, g: id(g) % 1024 == 16,
    "an identity of ctx": lambda ctx, g: id(ctx) % 4096 == 16,
    "a hash of a text": lambda ctx, g: hash("a") % 97 == 3,
    "a hash of an object": lambda ctx, g: hash(object()) % 97 == 3,
    "the date": lambda ctx, g: datetime.datetime.now().year > 2100,
    "a new name": lambda ctx, g: uuid.uuid4().int % 97 == 3,
    "a thread's own": lambda ctx, g: on_thread() > 25,
    "a counter on symgrad": lambda ctx, g: on_module(sg) > 25,
    "a counter on math": lambda ctx, g: on_module(math) > 25,
    "an iterator": lambda ctx, g: switched(),
    "globals": lambda ctx, g: named() > 25,
    "a file": lambda ctx, g: Path(__file__).read_text() == "",
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_differs_between_calls_is_undecided(question: str) -> None:
    ask = QUESTIONS[question]

    class Identity(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 3 * g if ask(ctx, g) else g

    report = sg.verify(Identity, "n", suggest=False)
    assert str(report.verdict) != "PROVED", str(report)
    if str(report.verdict) == "REFUTED":
        return  # two calls of one trace have seen the difference
    assert __file__ in str(report).replace("\n", "").replace(" ", "")


@pytest.mark.parametrize("place", COUNTERS)
def test_no_counter_is_overlooked(place: str) -> None:
    count = COUNTERS[place]

    class Identity(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 3 * g if count() > 25 else g

    report = sg.verify(Identity, "n", suggest=False)
    assert str(report.verdict) != "PROVED", str(report)


class Calls:
    n = 0


class AcrossCases(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        if x.shape[0] > 100:
            Calls.n += 1
        ctx.n = x.shape[0]
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 3 * g if ctx.n <= 100 and Calls.n > 25 else g


class AcrossAnswers(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        if not ctx.needs_input_grad[1]:
            Calls.n += 1
            return g * w, None
        return (3 * g * w if Calls.n > 25 else g * w), g * x


class AcrossCotangents(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2.0, x * 3.0

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        if h is None:
            Calls.n += 1
            return 2 * g
        if g is None:
            return 3 * h
        return 2 * g + 3 * h if Calls.n < 25 else 2 * g


class AcrossNumbers(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, alpha: Any = 1.0) -> Any:
        if alpha > 5.0:
            Calls.n += 1
        ctx.alpha = alpha
        return x * alpha

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return (3 * g if Calls.n > 25 else g) * ctx.alpha, None


@pytest.mark.parametrize(
    ("function", "specs"),
    [
        (AcrossCases, ("n",)), (AcrossAnswers, ("n", "n")), (AcrossCotangents, ("n",)),
        (AcrossNumbers, ("n",)),
    ],
)  # fmt: skip
def test_what_calls_of_one_kind_change_others_do_not_read(function: Any, specs: Any) -> None:
    report = sg.verify(function, *specs, suggest=False)
    assert str(report.verdict) != "PROVED", str(report)


def test_the_class_of_ctx_is_shared() -> None:
    class Counting(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            type(ctx).calls = getattr(type(ctx), "calls", 0) + 1
            ctx.calls_before = type(ctx).calls
            return x * 1.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 3 * g if ctx.calls_before > 25 else g

    assert str(sg.verify(Counting, "n", suggest=False).verdict) != "PROVED"


def test_a_trace_leaves_no_unknown_number_behind() -> None:
    calls = {"n": 0}
    log: list[str] = []

    class Counting(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            calls["n"] += 1
            log.append("forward")
            return x * 1.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    assert sg.verify(Counting, "n")
    assert type(calls["n"]) is int
    assert type(log) is list
    assert set(log) == {"forward"}


def test_the_line_that_changes_is_named() -> None:
    calls = {"n": 0}

    class Counting(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            calls["n"] += 1
            return x * 1.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 3 * g if calls["n"] > 25 else g

    said = " ".join(str(sg.verify(Counting, "n")).split())
    assert "each call changes calls['n']" in said


class Row(MutableSequence[Any]):
    """A sequence that knows no slices."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def __getitem__(self, at: Any) -> Any:
        return self.items[int(at)]

    def __setitem__(self, at: Any, value: Any) -> None:
        self.items[int(at)] = value

    def __delitem__(self, at: Any) -> None:
        del self.items[int(at)]

    def __len__(self) -> int:
        return len(self.items)

    def insert(self, at: int, value: Any) -> None:
        self.items.insert(at, value)


CONTAINERS: dict[str, Callable[[], Any]] = {
    "deque": collections.deque, "short deque": lambda: collections.deque(maxlen=3), "list": list,
    "UserList": collections.UserList, "own sequence": Row, "dict": dict,
    "UserDict": collections.UserDict, "ChainMap": collections.ChainMap,
    "OrderedDict": collections.OrderedDict, "Counter": collections.Counter,
    "defaultdict": lambda: collections.defaultdict(list), "namespace": types.SimpleNamespace,
}  # fmt: skip


@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_container_that_keeps_a_tensor_is_seen(kind: str) -> None:
    box = CONTAINERS[kind]()

    class Square(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            if hasattr(box, "append"):
                box.append(x)
            elif hasattr(box, "keys"):
                box["x"] = x
            else:
                box.x = x
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if hasattr(box, "append"):
                return 2 * g * box[-1]
            return 2 * g * (box["x"] if hasattr(box, "keys") else box.x)

    report = sg.verify(Square, "n", suggest=False)
    assert str(report.verdict) == "REFUTED", str(report)
    assert not hasattr(box, "__len__") or len(box) == 0


def test_a_mapping_that_cannot_be_written_shows_what_another_one_keeps() -> None:
    kept: dict[str, Any] = {}
    seen = types.MappingProxyType(kept)

    class Square(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            kept["x"] = x
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * seen["x"]

    assert str(sg.verify(Square, "n", suggest=False).verdict) == "REFUTED"


class _Unnamed:
    """As classes of Cython are: what stands as its module is no text."""

    __module__ = property(lambda self: "somewhere")  # type: ignore[assignment]
    scale = 2.0


class _OfUnnamed(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * _Unnamed.scale

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * _Unnamed.scale


def test_a_class_whose_module_is_no_text_is_followed() -> None:
    assert str(sg.verify(_OfUnnamed, "n").verdict) == "PROVED"


# -- what an earlier call of other arguments, or of other sizes, left behind


def first_one(held: dict[str, Any], value: Any) -> Any:
    """What the first of all calls gave."""
    if "first" not in held:
        held["first"] = value
    return held["first"]


def sticky_of(switch: bool, held: dict[str, Any]) -> bool:
    held["on"] = held.get("on") or switch
    return bool(held["on"])


def scaled_by(chosen: Callable[[float, dict[str, Any]], Any], box: dict[str, Any]) -> Any:
    class Scaled(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, factor: float = 2.0) -> Any:
            ctx.factor = chosen(factor, box)
            return x * factor

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.factor, None

    return Scaled


def cached_factor() -> Callable[[float, dict[str, Any]], Any]:
    now = types.SimpleNamespace(factor=1.0)

    @functools.lru_cache(None)
    def kept(name: str) -> Any:
        return getattr(now, name)

    def chosen(factor: float, _: dict[str, Any]) -> Any:
        now.factor = factor
        return kept("factor")

    return chosen


EARLIER: dict[str, Callable[[float, dict[str, Any]], Any]] = {
    "set where there is none": lambda factor, box: first_one(box, factor),
    "setdefault": lambda factor, box: box.setdefault("factor", factor),
    "lru_cache of something else": cached_factor(),
}


@pytest.mark.parametrize("kind", EARLIER)
def test_the_factor_of_an_earlier_call_is_wrong_in_this_one(kind: str) -> None:
    report = sg.verify(scaled_by(EARLIER[kind], {}), "n", suggest=False)
    said = " ".join(str(report).split())
    assert str(report.verdict) == "REFUTED", said
    assert "after a call with factor = 1.5, n = 7, the gradient of x is wrong" in said


def test_what_each_call_sets_anew_is_its_own() -> None:
    report = sg.verify(scaled_by(lambda factor, box: factor, {}), "n", suggest=False)
    assert str(report.verdict) == "PROVED", str(report)


def test_a_switch_that_an_earlier_call_turned_on_is_wrong_in_this_one() -> None:
    box: dict[str, Any] = {}

    class Either(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, cube: bool = False) -> Any:
            ctx.save_for_backward(x)
            ctx.cube = sticky_of(cube, box)
            return x**3 if cube else x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * (3 * x * x if ctx.cube else 2 * x), None

    report = sg.verify(Either, "n", suggest=False)
    assert str(report.verdict) == "REFUTED", str(report)
    assert "after a call with cube = True" in " ".join(str(report).split())


def test_what_only_calls_with_another_value_change_is_found() -> None:
    class Noted(sg.Function):
        last: Any = None

        @staticmethod
        def forward(ctx: Any, x: Any, cube: bool = False) -> Any:
            if cube:
                Noted.last = "cube"
            ctx.save_for_backward(x)
            ctx.last = Noted.last
            return x**3 if cube else x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * (2 * x if ctx.last is None else 3 * x * x), None

    assert str(sg.verify(Noted, "n", suggest=False).verdict) == "REFUTED"


def test_a_text_that_another_forward_overwrites_is_wrong_in_backward() -> None:
    box: dict[str, Any] = {"kind": None}

    class Chosen(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, kind: str = "double") -> Any:
            box["kind"] = kind
            return 2 * x if kind == "double" else 5 * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return (2 * g if box["kind"] == "double" else 5 * g), None

    report = sg.verify(Chosen, "n", suggest=False)
    assert str(report.verdict) == "REFUTED", str(report)
    assert "comes between forward and backward" in " ".join(str(report).split())


SIZES: dict[str, Callable[[dict[str, Any], Any], Any]] = {
    "a size": lambda box, x: first_one(box, x.shape[-1]),
    "a number of axes": lambda box, x: first_one(box, len(x.shape)) * x.shape[-1] / len(x.shape),
}


@pytest.mark.parametrize("kind", SIZES)
def test_the_shape_of_an_earlier_call_is_wrong_in_this_one(kind: str) -> None:
    box: dict[str, Any] = {}

    class Mean(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.shape, ctx.count = x.shape, SIZES[kind](box, x)
            return x.mean(-1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return (g[..., None] / ctx.count).expand(ctx.shape)

    report = sg.verify(Mean, "*batch n", suggest=False)
    said = " ".join(str(report).split())
    assert str(report.verdict) == "REFUTED", said
    assert "after a call with" in said


def test_a_size_that_is_kept_and_decides_nothing_is_harmless() -> None:
    box: dict[str, Any] = {}

    class Largest(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            if "size" not in box or box["size"] < x.shape[0]:
                box["size"] = x.shape[0]
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * g * x

    assert str(sg.verify(Largest, "n", suggest=False).verdict) == "PROVED"


def test_a_default_that_calls_change_is_no_value_of_an_argument() -> None:
    class Noting(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, seen: dict[str, int] = {}) -> Any:  # noqa: B006
            seen["calls"] = 1
            return 2 * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g, None

    report = sg.verify(Noting, "n", suggest=False)
    assert str(report.verdict) == "PROVED", str(report)
    assert "seen" not in str(report)


COUNTED_IN: dict[str, Callable[[], Callable[[], Any]]] = {
    "count": lambda: itertools.count(1).__next__,
    "list": lambda: lambda steps=[0]: steps.__setitem__(0, steps[0] + 1) or steps[0],
}


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("kind", COUNTED_IN)
def test_a_factor_of_each_call_is_wrong_only_in_another_one(kind: str, kept: bool) -> None:
    counted = COUNTED_IN[kind]()

    class Annealed(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.step = counted()
            return x / ctx.step

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g / (ctx.step if kept else counted())

    report = sg.verify(Annealed, "n", suggest=False)
    assert str(report.verdict) == ("UNDECIDED" if kept else "REFUTED"), str(report)
