"""Digests: of texts, of files, of what a shared object was built from.

In: text or a path.  Out: SHA-256 in hexadecimal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from symgrad.abi import Op
from symgrad.runtime.binding import binding, declarations


def digest(*parts: str) -> str:
    """The digest of a sequence of texts; no two sequences run together."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        total.update(f"{len(data)}:".encode())
        total.update(data)
    return total.hexdigest()


def bytes_digest(data: bytes) -> str:
    """The digest of bytes."""
    return hashlib.sha256(data).hexdigest()


def file_digest(path: Path) -> str:
    """The digest of a file's bytes.  OSError where it cannot be read."""
    return bytes_digest(path.read_bytes())


def source_digest(op: Op, texts: Mapping[str, str]) -> str:
    """Tells whether a shared object was built from this very text."""
    files = (part for name in (op.header, *op.files) for part in (name, texts[name]))
    return digest(declarations(op), binding(op), repr(op), *files)
