"""What a fork waits for.

In: nothing.  Out: ``with forks_wait():`` around late imports and the start of other programs.

A child that is forked while another thread imports a module inherits that module's lock, and no
thread of the child releases it: the child hangs when it imports the module itself.  A child that is
forked while a program is started inherits an end of its pipes: the reader waits until the child
ends.

A module that is imported while a fork waits may register functions with ``os.register_at_fork``.
Python then calls those for after the fork alone; it prints the errors that they raise, and goes on.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Longer than any import takes.  A fork inside an import on which the other thread waits would
# otherwise deadlock.
_MOST_SECONDS = 60
_busy = threading.RLock()
_waited: list[bool] = []


@contextmanager
def forks_wait() -> Iterator[None]:
    """While this is entered, a fork in another thread waits."""
    with _busy:
        yield


def _before_fork() -> None:
    _waited.append(_busy.acquire(timeout=_MOST_SECONDS))


def _after_fork() -> None:
    if _waited.pop():
        _busy.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
