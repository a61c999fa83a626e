"""The ops of a package are made in several processes, with a bar.

In: what makes one op, and the Functions.  Out: what it made, in their order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from symgrad.errors import SymgradError
from symgrad.tools import parallel
from symgrad.tools.judging import bare, progress

if TYPE_CHECKING:
    from rich.console import Console


def in_turn(
    make: Callable[[Any], Any], functions: Sequence[type], console: Console, jobs: int
) -> Iterator[Any]:
    """``make`` of each Function, in at most ``jobs`` processes.

    Raises what it raises, in the order of the Functions.
    """
    if min(jobs, len(functions)) < 2 or not hasattr(os, "fork"):
        with progress(console, len(functions)) as begin:
            for function in functions:
                begin(function.__qualname__)
                yield make(function)
        return
    import symgrad.proof.verify
    import symgrad.validation  # noqa: F401  (both once, and not in each process)

    def work(number: int) -> Any:
        try:
            return make(functions[number])
        except SymgradError as error:
            return bare(error)

    with ExitStack() as stack:

        def begin_all() -> Callable[[], None]:
            advance = stack.enter_context(progress(console, len(functions)))
            said = f"{min(jobs, len(functions))} processes"
            advance(said)
            return lambda: advance(said)

        count, processes = len(functions), min(jobs, len(functions))
        for made in parallel.in_processes(work, count, processes, begin_all):
            if isinstance(made, SymgradError):
                raise made
            yield made
