"""How functions, and the kernels of their ops, reach workers.

In: a function.  Out: a ``Program``: its pickle, in which ops are manifests, and their pieces.

A program is one node of the graph.  Dask hands it from worker to worker, and has it again where a
worker is lost.  A process unpickles it once.
"""

from __future__ import annotations

import pickle
import threading
from typing import Any

import cloudpickle
from distributed import WorkerPlugin

from symgrad.errors import KernelArgumentError, SymgradError
from symgrad.interop.dask.partials import ShardError
from symgrad.runtime import carried
from symgrad.runtime.digests import bytes_digest, digest

MOST_PROGRAMS = 32
"""Functions that a process keeps unpickled."""
_there: dict[str, Any] = {}
_unpickling = threading.RLock()


class Program:
    """A function as it is sent.  Raises ShardError where it cannot be pickled."""

    def __init__(self, function: Any) -> None:
        try:
            with carried.collecting() as pieces:
                self.data = cloudpickle.dumps(function)
        except SymgradError:
            raise
        except Exception as error:
            raise ShardError(
                f"the function cannot be sent to workers: {error}",
                hint="what it closes over has to be pickled; open files and locks cannot be",
            ) from error
        self.pieces = pieces
        self.digest = self._digest()

    def _digest(self) -> str:
        return digest(bytes_digest(self.data), *sorted(self.pieces))

    def function(self) -> Any:
        """The function, in the process that it has reached.  Raises CarriedError."""
        with _unpickling:
            if self.digest not in _there:
                if self._digest() != self.digest:
                    raise carried.CarriedError("a function was altered on the way")
                carried.keep(self.pieces)
                if len(_there) >= MOST_PROGRAMS:
                    _there.pop(next(iter(_there)))
                _there[self.digest] = pickle.loads(self.data)
            return _there[self.digest]


class Kernels(WorkerPlugin):
    """Libraries and texts of ops, on every worker that there is or will be.

    ``client.register_plugin(Kernels(op))`` is for ops that tasks of your own call
    (``x.map_blocks(op)``): by itself an op takes its C along, and no library.
    """

    idempotent = True

    def __init__(self, *ops: Any) -> None:
        with carried.collecting() as pieces:
            data = b"".join(map(_pickled, ops))
        self.pieces = pieces
        self.name = f"symgrad-kernels-{bytes_digest(data)[:16]}"

    def setup(self, worker: Any) -> None:
        """Keep the pieces.  Raises CarriedError where one was altered."""
        carried.keep(self.pieces)


def _pickled(op: Any) -> bytes:
    if not hasattr(op, "parts"):
        raise KernelArgumentError(
            f"{op!r} is no compiled op", hint="give what sg.compile returned"
        )  # fmt: skip
    data: bytes = cloudpickle.dumps(op)
    return data
