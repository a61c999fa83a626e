"""Work in a child process with limits: a crash, a hang or a full memory ends the child alone.

In: what is to be done, and limits on its processor time, its time and its memory.  Out: what it
returned, pickled, or ``ChildEnded``, which says how the child ended without it.

The child is a fork: it has what was imported before.  What it prints is dropped; what it changes
in memory is changed in the child alone.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

with suppress(ImportError):  # on Windows, which has no forks either
    import resource

POSSIBLE = hasattr(os, "fork")
"""Has the system forks?"""


class ChildEnded(Exception):
    """A child ended without a result; the text says how."""


class Child:
    """A child process that does ``work``.

    ``cpu``: seconds of processor time; ``wall``: seconds until it is killed; ``memory``: bytes that
    it may take beside what this process has; None for no limit.
    """

    def __init__(
        self, work: Callable[[], Any], *, cpu: float | None = None, wall: float | None = None,
        memory: int | None = None,
    ) -> None:  # fmt: skip
        self.cpu, self.wall, self.memory = cpu, wall, memory
        self.started = time.monotonic()
        self.answer = b""
        self.late = False
        self.status: int | None = None
        self.pipe, end = os.pipe()
        with warnings.catch_warnings():
            # of threads that a fork does not have; what runs in the child starts its own
            warnings.simplefilter("ignore", DeprecationWarning)
            # of JAX, where it is imported: the child does not use it
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
            self.process = os.fork()
        if self.process == 0:
            os.close(self.pipe)
            _run(work, end, cpu, memory)
        os.close(end)

    def fileno(self) -> int:
        """The descriptor that can be read when the child has something to say, for ``select``."""
        return self.pipe

    @property
    def left(self) -> float | None:
        """The seconds until the child is killed."""
        return None if self.wall is None else self.started + self.wall - time.monotonic()

    def read(self) -> bool:
        """Take what can be read without waiting; True once the child has ended.

        A child that is late is killed.
        """
        left = self.left
        if left is not None and left <= 0:
            self.late = True
            self.kill()
        while select.select([self.pipe], [], [], 0)[0]:
            part = os.read(self.pipe, 1 << 16)
            if not part:
                self._end()
                return True
            self.answer += part
        return False

    def result(self) -> Any:
        """What the work returned, once the child has ended.  Raises ChildEnded."""
        while self.status is None and not self.read():
            left = self.left
            select.select([self.pipe], [], [], None if left is None else max(left, 0))
        try:
            done, value = pickle.loads(self.answer)
        except Exception as error:  # cut off in the middle
            raise ChildEnded(self._how()) from error
        if not done:
            raise ChildEnded(value)
        return value

    def kill(self) -> None:
        """End the child."""
        if self.status is None:
            with suppress(ProcessLookupError):
                os.kill(self.process, signal.SIGKILL)

    def _end(self) -> None:
        os.close(self.pipe)
        _, self.status = os.waitpid(self.process, 0)

    def _how(self) -> str:
        assert self.status is not None
        code = os.waitstatus_to_exitcode(self.status)
        if self.late:
            return f"it did not end within {self.wall:g} s"
        if code == -signal.SIGXCPU and self.cpu is not None:
            return f"it did not end within {self.cpu:g} s of processor time"
        if code < 0:
            with suppress(ValueError):
                return f"it ended the process with {signal.Signals(-code).name}"
        return f"it ended the process with status {code}"


def in_child(
    work: Callable[[], Any], *, cpu: float | None = None, wall: float | None = None,
    memory: int | None = None,
) -> Any:  # fmt: skip
    """What ``work`` returns in a child process.  Raises ChildEnded."""
    child = Child(work, cpu=cpu, wall=wall, memory=memory)
    try:
        return child.result()
    except BaseException:
        child.kill()
        raise


# -- in the child


def _run(work: Callable[[], Any], pipe: int, cpu: float | None, memory: int | None) -> None:
    """Do the work, write what it returns, and end without what Python does at its end."""
    try:
        _quiet()
        _limit(cpu, memory)
        text = pickle.dumps((True, work()))
    except MemoryError:
        text = pickle.dumps((False, "it needs more memory than it may have"))
    except SystemExit as end:
        text = pickle.dumps((False, f"it ends the program (status {end.code})"))
    except BaseException as error:
        said = " ".join(str(error).split())
        name = type(error).__name__
        text = pickle.dumps((False, f"it failed with {name}{': ' if said else ''}{said}"))
    with suppress(BaseException):
        while text:
            text = text[os.write(pipe, text) :]
    os._exit(0)


def _quiet() -> None:
    faulthandler.disable()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    sys.stdout = sys.stderr = os.fdopen(nowhere, "w")


def _limit(cpu: float | None, memory: int | None) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if cpu is not None:
            seconds = max(1, round(cpu))
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    if memory is not None:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (_data() + memory,) * 2)


def _data() -> int:
    """The bytes of data of this process, as RLIMIT_DATA counts them."""
    with suppress(OSError, ValueError, IndexError), open("/proc/self/statm") as file:
        return int(file.read().split()[5]) * resource.getpagesize()
    return 0
