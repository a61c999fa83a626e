"""The command line in a child process: a program that ends early has no verdict.

In: the program.  Out: its exit status, and its answer on stdout.

The command line imports the user's code, which may end the process (``os._exit``, a crash in C)
or print while Python ends.  So the program runs in a fork, which is made before anything else is
imported and takes a millisecond or two.  The child writes its status and its answer into a file
without a name.  Where an answer is wanted, only the parent writes to stdout: the answer, once the
child has ended.  A child that ends without writing a status has failed, whatever its exit status.

Where the system has no fork, the program runs in this process.
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
    """Where the child writes its state, a line of JSON each time; the last whole line counts."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.owner = os.getpid()
        self.answer: str | None = None
        self.answers = False

    def write(self, status: int | None) -> None:
        """Write the state; a fork of the child writes nothing."""
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
            from symgrad.children import end_with_parent

            end_with_parent(closed_with_parent)
            _work(program, _Report(file))
        os.close(closed_with_parent)
        ended = _wait(child)
        sys.exit(_status(file, ended))


def take_stdout() -> bool:
    """Redirect stdout to stderr; False where there is no parent to write the answer."""
    if _report is None:
        return False
    sys.stdout.flush()
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    _report.answers = True
    _report.write(None)
    return True


def answer(text: str) -> None:
    """Set the text that the parent writes to stdout, after ``take_stdout``."""
    assert _report is not None
    _report.answer = text


def _work(program: Callable[[], Any], report: _Report) -> None:
    """Run the program in the child.  An exception passes through and leaves no status."""
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


def _wait(child: int) -> int:
    """Wait for the child; its status as of ``os.waitpid``.  Signals are passed on to it first."""

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
        status = FAILED
        text = json.dumps({"error": {"type": "Ended", "message": message}}, indent=2)
    if said.get("answers") and text is not None:
        _print(text)
    return int(status)


def _print(text: str) -> None:
    """Write to stdout until its reader closes it."""
    left = f"{text}\n".encode("ascii")
    with suppress(BrokenPipeError):
        while left:
            left = left[os.write(1, left) :]


def _said(file: IO[bytes]) -> dict[str, Any]:
    """The last whole line."""
    file.seek(0)
    found: dict[str, Any] = {}
    for line in file:
        with suppress(ValueError):
            found = json.loads(line)
    return found
