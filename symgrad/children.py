"""Work in a child process with limits: a crash, a hang or a full memory ends the child alone.

In: what is to be done, and limits on its processor time, its time and its memory.  Out: what it
returned, pickled, or ``ChildEnded``, which says how the child ended without it.

The child is a fork: it has what was imported before.  What it prints is dropped; what it changes
in memory is changed in the child alone.  ``said_by`` waits in the same way for a program.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import select
import signal
import subprocess
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


class Patience:
    """How long a process is waited for: ``wall`` seconds, and ``rest`` without processor time.

    On a busy machine a process takes longer, but it does not rest.  None for no limit.
    """

    def __init__(self, process: int, wall: float | None, rest: float | None) -> None:
        self.process, self.wall, self.rest = process, wall, rest
        self.started = self.looked = time.monotonic()
        self.taken = _taken(process)

    @property
    def left(self) -> float | None:
        """The seconds until ``lost`` may say something else."""
        ends = ((self.started, self.wall), (self.looked, self.rest))
        left = [start + limit for start, limit in ends if limit is not None]
        return max(min(left) - time.monotonic(), 0) if left else None

    def lost(self) -> str:
        """Why the process is to be killed; empty while it is not."""
        now = time.monotonic()
        if self.wall is not None and now >= self.started + self.wall:
            return f"it did not end within {self.wall:g} s"
        if self.rest is None or now < self.looked + self.rest:
            return ""
        before, self.looked, self.taken = self.taken, now, _taken(self.process)
        rests = before is not None and before == self.taken
        return f"it waited for something for {self.rest:g} s" if rests else ""


def _taken(process: int) -> list[str] | None:
    """The processor time that a process has taken, as Linux counts it; None where nothing says."""
    with suppress(OSError), open(f"/proc/{process}/stat") as file:
        return file.read().rpartition(")")[2].split()[11:13] or None
    return None


class Child:
    """A child process that does ``work``.

    ``cpu``: seconds of processor time; ``wall``: seconds until it is killed; ``rest``: seconds
    without processor time until it is; ``memory``: bytes that it may take beside what this process
    has; None for no limit.  ``seconds``: the processor time that it took, once it has ended.
    """

    def __init__(
        self, work: Callable[[], Any], *, cpu: float | None = None, wall: float | None = None,
        rest: float | None = None, memory: int | None = None,
    ) -> None:  # fmt: skip
        self.cpu = cpu
        self.answer = b""
        self.late = ""
        self.status: int | None = None
        self.seconds = 0.0
        self.pipe, end = os.pipe()
        closed_with_parent, self.kept = os.pipe()
        with warnings.catch_warnings():
            # of threads that a fork does not have; what runs in the child starts its own
            warnings.simplefilter("ignore", DeprecationWarning)
            # of JAX, where it is imported: the child does not use it
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
            self.process = os.fork()
        if self.process == 0:
            os.close(self.pipe)
            os.close(self.kept)
            _run(work, end, cpu, memory, closed_with_parent)
        os.close(end)
        os.close(closed_with_parent)
        with suppress(OSError):  # here too: whichever of both comes first
            os.setpgid(self.process, self.process)
        self.patience = Patience(self.process, wall, rest)

    def fileno(self) -> int:
        """The descriptor that can be read when the child has something to say, for ``select``."""
        return self.pipe

    @property
    def left(self) -> float | None:
        """The seconds until it is to be read again, to see whether it is late."""
        return self.patience.left

    def read(self) -> bool:
        """Take what can be read without waiting; True once the child has ended.

        A child that is late is killed.
        """
        self.late = self.late or self.patience.lost()
        if self.late:
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
            select.select([self.pipe], [], [], self.left)
        try:
            done, value = pickle.loads(self.answer)
        except Exception as error:  # cut off in the middle
            raise ChildEnded(self._how()) from error
        if not done:
            raise ChildEnded(value)
        return value

    def kill(self) -> None:
        """End the child, and the programs that it has started."""
        if self.status is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process, signal.SIGKILL)

    def stop(self) -> None:
        """End the child, and wait until it has ended."""
        self.kill()
        if self.status is None:
            self._end()

    def _end(self) -> None:
        os.close(self.pipe)
        os.close(self.kept)
        _, self.status, taken = os.wait4(self.process, 0)
        self.seconds = taken.ru_utime + taken.ru_stime

    def _how(self) -> str:
        assert self.status is not None
        return self.late or _how_ended(os.waitstatus_to_exitcode(self.status), self.cpu)


def in_child(
    work: Callable[[], Any], *, cpu: float | None = None, wall: float | None = None,
    rest: float | None = None, memory: int | None = None,
) -> Any:  # fmt: skip
    """What ``work`` returns in a child process.  Raises ChildEnded."""
    child = Child(work, cpu=cpu, wall=wall, rest=rest, memory=memory)
    try:
        return child.result()
    except BaseException:
        child.kill()
        raise


def said_by(
    process: subprocess.Popen[bytes], task: bytes, *, cpu: float, wall: float, rest: float
) -> bytes:  # fmt: skip
    """What a program answers to ``task``; it calls ``limit_processor_time`` of ``cpu`` itself.

    Raises ChildEnded.
    """
    patience, late = Patience(process.pid, wall, rest), ""
    given: bytes | None = task
    with process:
        try:
            while not late:
                try:
                    said, _ = process.communicate(given, timeout=patience.left)
                    break
                except subprocess.TimeoutExpired:
                    given, late = None, patience.lost()
        finally:
            process.kill()
    if late:
        raise ChildEnded(late)
    if process.returncode:
        raise ChildEnded(_how_ended(process.returncode, cpu))
    return said


def _how_ended(code: int, cpu: float | None) -> str:
    """How a process ended without an answer, by its exit code."""
    if code == -signal.SIGXCPU and cpu is not None:
        return f"it did not end within {cpu:g} s of processor time"
    if code < 0:
        with suppress(ValueError):
            return f"it ended the process with {signal.Signals(-code).name}"
    return f"it ended the process with status {code}"


# -- in the child


def end_with_parent(pipe: int) -> None:
    """End this process where its parent is killed, which alone holds the other end of the pipe.

    The default action of SIGIO is to end.
    """
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        signal.signal(signal.SIGIO, signal.SIG_DFL)
        fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        if select.select([pipe], [], [], 0)[0]:  # the parent has ended meanwhile
            os.kill(os.getpid(), signal.SIGIO)


def _run(
    work: Callable[[], Any], pipe: int, cpu: float | None, memory: int | None,
    closed_with_parent: int,
) -> None:  # fmt: skip
    """Do the work, write what it returns, and end without what Python does at its end."""
    try:
        with suppress(OSError):  # a group of its own: what the terminal sends goes to the parent
            os.setpgid(0, 0)
        end_with_parent(closed_with_parent)
        gc.freeze()  # what was there before the fork is not looked through again
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
        limit_processor_time(cpu)
    if memory is not None:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (_data() + memory,) * 2)


def limit_processor_time(seconds: float) -> None:
    """End this process after so many seconds of processor time, all its threads together."""
    with suppress(NameError, ValueError, OSError):
        least = max(1, round(seconds))
        resource.setrlimit(resource.RLIMIT_CPU, (least, least + 5))


def _data() -> int:
    """The bytes of data of this process, as RLIMIT_DATA counts them."""
    with suppress(OSError, ValueError, IndexError), open("/proc/self/statm") as file:
        return int(file.read().split()[5]) * resource.getpagesize()
    return 0
