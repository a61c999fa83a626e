"""A process that things happen to: it compiles an op, calls it, and says so.

In: what to do, a number.  Out: ``right`` on standard output; ``refused: ...`` where a SymgradError
said that it cannot be done.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import warnings
from typing import Any

import numpy as np

from benchmarks.reliability.loading import defined
from symgrad.emission import emit
from symgrad.errors import SymgradError
from symgrad.frontend.trace import trace
from symgrad.kernels import plan
from symgrad.runtime.op import make_op
from symgrad.runtime.threads import set_num_threads

_TEXT = """class Program(Base):
    @staticmethod
    def forward(ctx, x):
        return (T.tanh(x) * {factor}).sum(1)
"""
_ROWS = 3000  # enough for several threads
_THREADS = 16
_INTERRUPTS = 12
_CALLS = 40
_FORK_SECONDS = 60


def made(number: int) -> Any:
    """An op of its own for each number."""
    text = _TEXT.format(factor=number + 1)
    function = defined("Program", text, f"<victim {number}>")
    emitted = emit(plan(trace(function, "f64[n m]")), "")
    return make_op(emitted.wrapper(), emitted.texts)


def check(op: Any, number: int, rows: int = _ROWS) -> None:
    """Forward and backward are right."""
    x = np.random.default_rng(rows).standard_normal((rows, 7))
    y, residuals = op.forward(x)
    (gradient,) = op.backward(residuals, np.ones(rows))
    np.testing.assert_allclose(y, (np.tanh(x) * (number + 1)).sum(1), 1e-12, 1e-12)
    np.testing.assert_allclose(gradient, (1 - np.tanh(x) ** 2) * (number + 1), 1e-12, 1e-12)


def call(number: int) -> None:
    """Compile and call."""
    check(made(number), number)


def limited(number: int) -> None:
    """The same where no file may grow beyond some size, as on a full disk."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    most = random.Random(number).choice([0, 100, 2000, 9000, 14000, 20000, 40000])
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    call(number)


def forked(number: int) -> None:
    """Children of a process whose threads compute and compile."""
    set_num_threads(4)
    op = made(number)
    check(op, number)
    stop = threading.Event()

    def busy(own: int) -> None:
        while not stop.is_set():
            check(op, number)
            made(number + own)

    threads = [threading.Thread(target=busy, args=(own,), daemon=True) for own in (1, 2)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(4):
            _child(op, number, turn)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _child(op: Any, number: int, turn: int) -> None:
    """A forked process that calls and compiles, and must end in time and well."""
    child = os.fork()
    if child == 0:
        signal.alarm(_FORK_SECONDS)
        try:
            check(op, number)
            call(number + turn)
            os._exit(0)
        except BaseException as error:
            print(f"in a child: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit(f"a forked child ended with status {status}")


def threaded(number: int) -> None:
    """Sixteen threads that compile the same few ops and call them."""
    problems: list[BaseException] = []

    def work(own: int) -> None:
        try:
            for turn in range(3):
                call(number + (own + turn) % 3)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(own,)) for own in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]


def interrupted(number: int) -> None:
    """Ctrl-C at any moment of a compilation or a call; then all is as before."""
    choice = random.Random(number)
    op = made(number)
    for turn in range(_INTERRUPTS):
        compiling = turn % 3 == 0
        signal.setitimer(signal.ITIMER_REAL, choice.uniform(1e-5, 1.5 if compiling else 5e-3))
        try:
            if compiling:
                call(number + turn)
            for _ in range(_CALLS):
                check(op, number)
        except KeyboardInterrupt:
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        check(op, number)
        if compiling:
            call(number + turn)


ACTIONS = {"call": call, "limited": limited, "forked": forked, "threaded": threaded,
           "interrupted": interrupted}  # fmt: skip


def main() -> None:
    """Do it."""
    warnings.simplefilter("default")
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        ACTIONS[sys.argv[1]](int(sys.argv[2]))
    except SymgradError as error:
        print(f"refused: {type(error).__name__}: {error}")
    else:
        print("right")


if __name__ == "__main__":
    main()
