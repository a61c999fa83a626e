"""What was found before, of the same: keys for notes that outlive a process.

In: the values that something was found of, and the packages that found it.  Out: a key.

A key is a digest of these values, of the source of the packages, and of the versions of Python and
of the libraries that decide.  There is none where something has no bytes of its own: a value of the
user's that is no plain data, an op that is not symgrad's.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from symgrad.ir.encoding import Encoder, Uncoded
from symgrad.ops.record import get, is_own

OFF = "SYMGRAD_NO_VERDICT_CACHE"
"""The environment variable that turns all notes off."""
_LIBRARIES = {
    "flint": "__init__.py", "mpmath": "__init__.py", "numpy": "version.py",
    "pycparser": "__init__.py", "sympy": "release.py",
}  # fmt: skip
"""The file of each library that tells its version."""


def key_of(seen: Any, rooms: Sequence[str], libraries: Sequence[str]) -> str | None:
    """The key of ``seen``, by the source of ``rooms`` and the versions of ``libraries``."""
    if os.environ.get(OFF, "") not in ("", "0"):
        return None
    try:
        version = _version(tuple(rooms), tuple(libraries))
        return digest_of((version, seen))
    except (Uncoded, OSError, RecursionError):
        return None


def digest_of(value: Any, plain: bool = True) -> str:
    """A digest of a value.  Raises Uncoded, also for an op that symgrad does not define.

    ``plain``: the plain arguments that a program was traced with count as well.
    """
    encoder = Encoder(plain)
    encoder.add(value)
    for graph in encoder.graphs:
        for op in {node.op for node in graph.nodes}:
            if get(op).scalar is not None and not is_own(get(op)):
                raise Uncoded(f"the op {op}")
    return hashlib.sha256(encoder.written()).hexdigest()


@cache
def _version(rooms: Sequence[str], libraries: Sequence[str]) -> str:
    """A digest of symgrad's source, and of the versions of what it runs on.  Raises OSError."""
    home = Path(__file__).parent
    files = [*home.glob("*.py"), *(path for room in rooms for path in (home / room).rglob("*.py"))]
    found = hashlib.sha256(f"{sys.version}{sys.flags}".encode())
    for path in sorted(files):
        found.update(f"{path.relative_to(home)}\n".encode() + path.read_bytes() + b"\n")
    for library in libraries:
        spec = importlib.util.find_spec(library)
        if spec is None or spec.origin is None:
            raise FileNotFoundError(library)
        found.update(Path(spec.origin).with_name(_LIBRARIES[library]).read_bytes())
    return found.hexdigest()
