"""Digests of texts, of files, and of what a shared object was built from; the object's file name.

In: text, a path or an ``Op``.  Out: SHA-256 in hexadecimal; a file name.
"""

from __future__ import annotations

import hashlib
import struct
import sysconfig
from collections.abc import Mapping
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from symgrad.abi import Op
from symgrad.runtime.binding import binding, declarations

STABLE = ".abi3.so"


def _suffix() -> str:
    """The stable one, for what cffi then writes: a module that later Pythons load as well."""
    own = ("Py_DEBUG", "Py_GIL_DISABLED", "Py_REF_DEBUG", "Py_TRACE_REFS")
    if STABLE in EXTENSION_SUFFIXES and not any(map(sysconfig.get_config_var, own)):
        return STABLE
    return sysconfig.get_config_var("EXT_SUFFIX") or ".so"


SUFFIX = _suffix()


def library_name(op: Op) -> str:
    """The file name of the shared object of an op: ``_softplus.so`` beside ``softplus.py``."""
    return f"{op.module.rpartition('.')[2]}{SUFFIX}"


def programs_name(stem: str) -> str:
    """The module with the programs for NumPy of an op, beside ``<stem>.py``."""
    return f"_{stem}_numpy"


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


def stamp(data: bytes, source: str) -> dict[str, str]:
    """What lies beside a library with these bytes, which was built from ``source``.

    ``code`` is empty for damaged ones.
    """
    try:
        code = code_digest(data)
    except (struct.error, IndexError, ValueError):
        code = ""
    return {"library": bytes_digest(data), "code": code, "source": source}


_CHANGED = (b".got", b".interp")


def code_digest(data: bytes) -> str:
    """The digest of an ELF file's code and data, which auditwheel and strip leave as they are.

    Empty for other files.  Raises struct.error, IndexError or ValueError for a damaged one.
    """
    if data[:6] != b"\x7fELF\x02\x01":
        return ""
    (first,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, first + size * one) for one in range(count)]
    start = headers[names][4]
    found = hashlib.sha256()
    for name, kind, flags, _, place, held in headers:
        word = data[start + name : data.index(b"\0", start + name)]
        if kind == 1 and flags & 2 and not word.startswith(_CHANGED):  # PROGBITS, ALLOC
            found.update(b"%s:%d:" % (word, held))
            found.update(data[place : place + held])
    return found.hexdigest()


def source_digest(op: Op, texts: Mapping[str, str]) -> str:
    """Tells whether a shared object was built from this very text."""
    files = (part for name in op.texts for part in (name, texts[name]))
    return digest(declarations(op), binding(op), repr(op), *files)
