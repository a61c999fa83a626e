"""The command line in a process of its own: what does not come to its end has no verdict.

In: the program.  Out: its exit status, and its answer on stdout.

The command line imports the user's code, which may end the process (``os._exit``, a crash in C),
or print when Python ends.  So the program runs in a fork, made before anything else is imported:
that takes a millisecond or two.  It writes its status and its answer into a file without a name.
The parent alone holds stdout where an answer is wanted, and writes the answer once the child has
ended.  A child that ends without a status has failed, whatever its own status says.

Where there is no fork the program runs in this process, without this.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import IO, Any

FAILED = 2
"""The status where there is no verdict."""


class _Report:
    """What a child says, a line of JSON each time; the last that is whole counts."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.owner = os.getpid()
        self.answer: str | None = None
        self.answers = False

    def write(self, status: int | None) -> None:
        """A fork of the child says nothing."""
        if os.getpid() == self.owner:
            said = {"status": status, "answers": self.answers, "answer": self.answer}
            self.file.write(json.dumps(said).encode("ascii") + b"\n")
            self.file.flush()


_report: _Report | None = None


def run(program: Callable[[], Any]) -> None:
    """Run ``program``, which ends with SystemExit, in a child; end as it does."""
    if not hasattr(os, "fork"):
        program()
        return
    with _unnamed() as file:
        closed_with_parent, kept = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(kept)
            _end_with_parent(closed_with_parent)
            _work(program, _Report(file))
        os.close(closed_with_parent)
        ended = _wait(child)
        sys.exit(_status(file, ended))


def take_stdout() -> bool:
    """From now on all that is printed goes to stderr; is there a parent to write the answer?"""
    if _report is None:
        return False
    sys.stdout.flush()
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    _report.answers = True
    _report.write(None)
    return True


def answer(text: str) -> None:
    """What the parent is to write to stdout, after ``take_stdout``."""
    assert _report is not None
    _report.answer = text


def _work(program: Callable[[], Any], report: _Report) -> None:
    """In the child.  An exception passes through, and leaves no status."""
    global _report
    _report = report
    try:
        program()
    except SystemExit as end:
        report.write(end.code if isinstance(end.code, int) else int(end.code is not None))
        raise
    report.write(0)
    sys.exit(0)


def _unnamed() -> IO[bytes]:
    if hasattr(os, "memfd_create"):  # needs no folder that can be written
        return open(os.memfd_create("symgrad"), "w+b")
    return tempfile.TemporaryFile()


def _end_with_parent(pipe: int) -> None:
    """A parent that is killed takes the child with it: the signal's default is to end."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)


def _wait(child: int) -> int:
    """How the child ended, as ``os.waitpid`` says.  What ends the parent ends the child first."""

    def pass_on(number: int, _: FrameType | None) -> None:
        os.kill(child, number)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to both
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    _, ended = os.waitpid(child, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
        if os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == number:
            os.kill(os.getpid(), number)
    return ended


def _status(file: IO[bytes], ended: int) -> int:
    """Write the answer, and return the exit status."""
    said = _said(file)
    status, text = said.get("status"), said.get("answer")
    if status is None:
        how = os.waitstatus_to_exitcode(ended)
        message = (
            "the program under test ended the process"
            f" ({f'signal {-how}' if how < 0 else f'status {how}'}): there is no verdict"
        )
        print(f"Error: {message}", file=sys.stderr)
        status, text = (
            FAILED,
            json.dumps({"error": {"type": "Ended", "message": message}}, indent=2),
        )
    if said.get("answers") and text is not None:
        _print(text)
    return int(status)


def _print(text: str) -> None:
    """To stdout, as far as somebody reads it."""
    left = f"{text}\n".encode("ascii")
    with suppress(BrokenPipeError):
        while left:
            left = left[os.write(1, left) :]


def _said(file: IO[bytes]) -> dict[str, Any]:
    """The last line that was written whole."""
    file.seek(0)
    found: dict[str, Any] = {}
    for line in file:
        with suppress(ValueError):
            found = json.loads(line)
    return found
