"""Kernels that come with symgrad: loaded if they are those of the Function as it is now.

In: the name of a module of ``symgrad.generated``, the Function it was compiled from.  Out: an op.
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

from symgrad.frontend.function import Function
from symgrad.frontend.trace import trace
from symgrad.ir.printer import graph_text
from symgrad.kernels import with_backward
from symgrad.runtime.op import CompiledOp, shipped_op


def load(name: str, function: type[Function]) -> CompiledOp:
    """The op.  Raises ImportError where it is not there, out of date, or cannot be compiled.

    Out of date: the manifest has another digest of the graphs than the Function traces to, with one
    axis for all batch axes (a Function that looks at their number has more graphs, and is not for
    here).
    """
    op = shipped_op(name)
    recorded = manifest(Path(op.module.__file__ or "").parent).get(name, {}).get("graph_sha256")
    if recorded != digest(function):
        raise ImportError(f"symgrad.generated.{name} is out of date: run symgrad regen")
    return op


def digest(function: type[Function]) -> str:
    """The digest of the graphs that a Function traces to, its backward among them."""
    traced = with_backward(trace(function, batch_rank=None))
    graphs = "".join(graph_text(case.graph) for case in traced.cases)
    return hashlib.sha256(graphs.encode()).hexdigest()


@functools.lru_cache(maxsize=4)
def manifest(folder: Path) -> dict[str, Any]:
    """The ops that a folder's manifest lists, by name.  Raises ImportError."""
    try:
        found: dict[str, Any] = json.loads((folder / "MANIFEST.json").read_text("utf-8"))["ops"]
    except (OSError, ValueError, KeyError) as error:
        raise ImportError(f"{folder} has no readable manifest") from error
    return found
