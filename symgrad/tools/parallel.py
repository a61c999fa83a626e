"""Work on many things in several processes, as if one process did it.

In: items, and what is to be done with each.  Out: the results, in the order of the items.

The processes are forks: they have what was imported before, classes of the user's among it, and
only numbers go to them.  What work prints is caught, and printed in the order of the items.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any, TypeVar

from symgrad.children import end_with_parent
from symgrad.errors import SymgradError

T = TypeVar("T")


@dataclass(frozen=True)
class Done:
    """What came of one item: a result, or the status with which the work ended the program.

    ``printed``: on stdout and on stderr.
    """

    result: Any
    printed: tuple[bytes, bytes]
    status: Any = None
    ended: bool = False


def in_processes(
    work: Callable[[int], T], count: int, jobs: int, begin: Callable[[], Callable[[], None]]
) -> Iterator[T]:
    """``work(0)`` to ``work(count - 1)`` in ``jobs`` processes, in this order.

    ``begin``: called once the processes are there; what it returns, whenever one more is done.
    Raises SymgradError where a process ends, and SystemExit where the work does.
    """
    context = multiprocessing.get_context("fork")
    pipes = [os.pipe() for _ in range(jobs)]
    started, others = context.Value("i", 0), {*multiprocessing.active_children()}
    pool = ProcessPoolExecutor(jobs, context, initializer=_start, initargs=(work, pipes, started))
    try:
        with warnings.catch_warnings():
            # threads of a BLAS, which looks after forks itself
            warnings.simplefilter("ignore", DeprecationWarning)
            # of JAX, where it is imported: the processes do not use it
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
            todo: list[Future[Done]] = [pool.submit(_work, number) for number in range(count)]
        advance = begin()
        for one in todo:
            one.add_done_callback(lambda _: advance())
        for one in todo:
            yield _printed(one.result())
    except BrokenProcessPool as error:
        raise SymgradError(
            "the program under test ended the process that judged it: there is no verdict"
        ) from error
    except BaseException:
        for process in {*multiprocessing.active_children()} - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        for pipe in pipes:
            os.close(pipe[0])
            os.close(pipe[1])


def _printed(done: Done) -> Any:
    for stream, text in zip((sys.stdout, sys.stderr), done.printed, strict=True):
        if text:
            stream.write(text.decode("utf-8", "backslashreplace"))
            stream.flush()
    if done.ended:
        raise SystemExit(done.status)
    return done.result


# -- in the processes

_task: Callable[[int], Any] | None = None


def _start(work: Callable[[int], Any], pipes: Sequence[tuple[int, int]], started: Any) -> None:
    """End with the parent, and at once where the user interrupts it.

    A pipe tells one process of its end, so that each process has one.
    """
    global _task
    _task = work
    for _, kept in pipes:
        os.close(kept)
    with started.get_lock():
        end_with_parent(pipes[started.value][0])
        started.value += 1
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout, sys.stderr = _on_descriptor(sys.stdout, 1), _on_descriptor(sys.stderr, 2)


def _on_descriptor(stream: Any, descriptor: int) -> Any:
    """The stream, or one in its place if it only lies in the memory of the process before."""
    with suppress(AttributeError, OSError):
        stream.fileno()
        return stream
    return open(descriptor, "w", encoding="utf-8", closefd=False)


def _work(number: int) -> Done:
    assert _task is not None
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        status, ended, result = None, False, None
        with _caught(1, out), _caught(2, err):
            try:
                result = _task(number)
            except SystemExit as end:
                status, ended = end.code, True
        return Done(result, (_all(out), _all(err)), status, ended)


@contextmanager
def _caught(descriptor: int, file: IO[bytes]) -> Iterator[None]:
    """What is written to a descriptor goes to a file."""
    stream = (sys.stdout, sys.stderr)[descriptor - 1]
    stream.flush()
    before = os.dup(descriptor)
    os.dup2(file.fileno(), descriptor)
    try:
        yield
    finally:
        stream.flush()
        os.dup2(before, descriptor)
        os.close(before)


def _all(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()
