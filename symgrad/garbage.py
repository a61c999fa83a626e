"""Fewer collections of cyclic garbage while a verdict is made, or the command line starts.

In: ``with fewer_collections():`` around it.  Out: nothing.

A verdict makes many small objects that live as long as it does, and nearly no cycles; imports make
such that stay.  Python would look through them a hundred times.  The thresholds are the process's:
they are as before once the last of all threads is done, unless the program has changed them
meanwhile.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS = 300_000
"""New objects after which the youngest are looked through."""

_lock = threading.Lock()
_inside = 0
_before: tuple[int, int, int] | None = None


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Inside, collections are as rare as ``OBJECTS`` says, and none where there were none."""
    global _inside, _before
    with _lock:
        _inside += 1
        if _inside == 1:
            first, *rest = _before = gc.get_threshold()
            if 0 < first < OBJECTS:
                gc.set_threshold(OBJECTS, *rest)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and _before is not None and gc.get_threshold()[0] == OBJECTS:
                gc.set_threshold(*_before)
