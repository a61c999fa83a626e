"""How many threads kernels use, in the whole process and after a fork.

In: a number.  Out: that number in every loaded library.

GNU OpenMP hangs in a forked child that starts a parallel region: the pool it believes it has is
gone.  Kernels in such a child run on one thread, whatever is asked for.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

from symgrad.runtime.arguments import whole

_MOST = 2**31 - 1  # what an int of C holds
_libraries: list[Any] = []
_threads = 0
_team = 0  # the address of what one library has and all share: the threads that run regions
_forked = False


def register(library: Any) -> None:
    """Let ``library`` (cffi's ``lib`` of a loaded kernel module) follow the setting."""
    global _team
    library.symgrad_threads = _threads
    if _team:
        library.symgrad_set_team(_team)
    else:
        _team = library.symgrad_get_team()
    _libraries.append(library)


def set_num_threads(threads: int) -> None:
    """Let every kernel use ``threads`` threads, from whatever Python thread it is called.

    0 leaves the choice to OpenMP (``OMP_NUM_THREADS``).  The results have the same bits for any
    number.  Raises KernelTypeError and KernelArgumentError.
    """
    global _threads
    threads = whole("the number of threads", threads, _MOST)
    if _forked and threads != 1:
        warnings.warn(
            "kernels in a forked process run on one thread; start processes with the"
            " multiprocessing method 'spawn' or 'forkserver' to use more",
            RuntimeWarning,
            stacklevel=2,
        )
        return
    _threads = threads
    for library in _libraries:
        library.symgrad_threads = _threads


def get_num_threads() -> int:
    """The number of threads that kernels use."""
    if _threads:
        return _threads
    if _libraries:
        return int(_libraries[0].symgrad_max_threads())
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if first.isdigit() and int(first) > 0:
        return int(first)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _after_fork() -> None:
    global _forked, _threads
    _forked, _threads = True, 1
    for library in _libraries:
        library.symgrad_threads = 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
