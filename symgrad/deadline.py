"""A limit on the processor time of a verdict.

In: ``with limited(seconds):`` around what may take long, ``check()`` in its loops, ``step(words)``
around its parts.  Out: ``TimeUp`` where the time is over, with the part that was under way.

Processor time of the thread is counted, so that a machine with much else to do changes no
verdict.  ``check`` is cheap.  For loops that are not ours (sympy, a user's own) the main thread is
interrupted by a timer as well, shortly after the limit: in the user's code, in libraries and in the
proof, but not in the parts of symgrad that put things back, not while a module is imported, and not
inside of C, which has to return first.  ``TimeUp`` is no ``Exception``, so that a handler of other
errors does not take it for one.
"""

from __future__ import annotations

import contextlib
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType

with contextlib.suppress(ImportError):  # on Windows
    import resource

Clock = Callable[[], float]
_GRACE = 0.3
"""Seconds after the limit at which the timer interrupts what did not look at the clock."""
_AGAIN = 2.0
"""Seconds after an interruption at which what still runs is interrupted again."""
_LONGEST = 1e6
"""Seconds that the timer is set to at most."""
_SOON = 0.05
"""Seconds until the next attempt where an interruption has to wait."""


def processor_time() -> float:
    """The seconds of processor time of this process, and of its children that have ended."""
    with contextlib.suppress(NameError):
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + ended.ru_utime + ended.ru_stime
    return time.process_time()


class TimeUp(BaseException):
    """The limit was reached; ``step``: what was under way."""

    def __init__(self, seconds: float, step: str) -> None:
        self.seconds, self.step = seconds, step
        super().__init__(
            f"the time limit of {seconds:g} s was reached{f' while {step}' * bool(step)}"
        )


class Limit:
    """One limit: when it ends, by which clock, and whether anything was stopped by it.

    ``seconds``: what was asked for, for text; a part of a limit ends earlier.  ``during``: what was
    under way when it was reached; what else is stopped by it took no time.
    """

    quiet = -math.inf
    """The time on the wall before which no limit around here is reached: a thread gets no more
    processor time than passes there, which is cheaper to ask for."""

    def __init__(self, seconds: float, end: float, clock: Clock, outer: Limit | None) -> None:
        self.seconds, self.end, self.clock, self.outer = seconds, end, clock, outer
        self.passed = False
        self.during: str | None = None

    def over(self) -> Limit | None:
        """The innermost limit around here that is reached."""
        one: Limit | None = self
        wall, left = time.monotonic(), math.inf
        while one is not None:
            rest = one.end - one.clock()
            if rest <= 0:
                return one
            left = min(left, rest if one.clock is time.thread_time else 0)
            one = one.outer
        self.quiet = wall + left
        return None


_limit: ContextVar[Limit | None] = ContextVar("limit", default=None)
_steps: ContextVar[tuple[str, ...]] = ContextVar("steps", default=())


def check() -> None:
    """Raise TimeUp if a limit is reached."""
    limit = _limit.get()
    if limit is not None and time.monotonic() >= limit.quiet:
        over = limit.over()
        if over is not None:
            raise _time_up(over)


def _time_up(limit: Limit) -> TimeUp:
    limit.passed = True
    if limit.during is None:
        limit.during = ", ".join(under_way())
    return TimeUp(limit.seconds, limit.during)


def under_way() -> tuple[str, ...]:
    """The steps that are under way, the outermost first."""
    return _steps.get()


def passed() -> bool:
    """Was anything stopped by a limit that is around here?"""
    limit = _limit.get()
    while limit is not None and not limit.passed:
        limit = limit.outer
    return limit is not None


@contextmanager
def step(words: str) -> Iterator[None]:
    """What is under way inside, for the message of TimeUp."""
    token = _steps.set((*_steps.get(), words))
    try:
        yield
    finally:
        _steps.reset(token)


@contextmanager
def limited(seconds: float | None, clock: Clock = time.thread_time) -> Iterator[Limit | None]:
    """Inside, ``check`` raises TimeUp after so many seconds; None: no limit but the one around.

    An outer limit that ends earlier counts.  On the main thread a timer runs as well.
    """
    if seconds is None:
        yield _limit.get()
        return
    limit = Limit(seconds, clock() + seconds, clock, _limit.get())
    with _within(limit), _timer(limit):
        yield limit


@contextmanager
def part(share: float) -> Iterator[Limit | None]:
    """Inside, only this share of the time that is left may be used; no limit if none is."""
    outer = _limit.get()
    if outer is None:
        yield None
        return
    now = outer.clock()
    own = Limit(outer.seconds, now + share * max(0.0, outer.end - now), outer.clock, outer)
    try:
        with _within(own):
            yield own
    finally:
        outer.passed = outer.passed or own.passed


@contextmanager
def _within(limit: Limit) -> Iterator[None]:
    token = _limit.set(limit)
    try:
        yield
    finally:
        _limit.reset(token)


# -- the timer, for what does not look at the clock itself


@contextmanager
def _timer(limit: Limit) -> Iterator[None]:
    """Interrupt the main thread after the limit, unless the program uses this timer itself."""
    if not _timer_is_free():
        yield
        return

    def interrupt(_: int, frame: FrameType | None) -> None:
        left = limit.end - limit.clock()
        if left > 0:
            _arm(left + _GRACE)
        elif _may_stop(frame) and _imports(frame) == imports:
            _arm(_AGAIN)
            raise _time_up(limit)
        else:
            _arm(_SOON)

    imports = _imports(sys._getframe())
    before = signal.signal(signal.SIGPROF, interrupt)
    _arm(limit.end - limit.clock() + _GRACE)
    try:
        yield
    finally:
        _arm(0)
        signal.signal(signal.SIGPROF, before)


def _timer_is_free() -> bool:
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGPROF"):
        return False
    unused = signal.getsignal(signal.SIGPROF) is signal.SIG_DFL
    return unused and signal.getitimer(signal.ITIMER_PROF)[0] == 0


def _arm(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, min(max(seconds, 0.0), _LONGEST))


_HOME = Path(__file__).parent
_LOOPS = tuple(str(_HOME / name) for name in ("proof", "index", "ops", "ir", "passes", "autodiff"))


def _may_stop(frame: FrameType | None) -> bool:
    """May what runs be left at any instruction: is it a loop that changes nothing but its own?

    Not symgrad's code that puts back what a trace has replaced, and no context manager.
    """
    here = frame.f_code.co_filename if frame is not None else ""
    if here.startswith(str(_HOME)):
        return here.startswith(_LOOPS)
    return here != contextlib.__file__


def _imports(frame: FrameType | None) -> int:
    """How many imports are under way."""
    count = 0
    while frame is not None:
        count += frame.f_code.co_filename.startswith("<frozen importlib")
        frame = frame.f_back
    return count
