"""What lies in the folder of a package: everything that Python could import or load from there.

In: the folder; an op and its texts.  Out: digests by name, and what has no place in a package;
whether a shared object is what its texts build, or the note beside it says.

Nothing that lies there is imported or executed, and no link is followed.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from symgrad.abi import Op
from symgrad.errors import SymgradError
from symgrad.runtime import cache
from symgrad.runtime.blas import find_blas
from symgrad.runtime.build import compile_into
from symgrad.runtime.compiler import find_compiler
from symgrad.runtime.digests import file_digest, library_name, source_digest, stamp
from symgrad.runtime.package import RUNTIME

_BYTECODE = "__pycache__"


@dataclass(frozen=True)
class Contents:
    """``digests``: of the plain files, by their paths.  ``strange``: what must not be there."""

    digests: Mapping[str, str]
    strange: tuple[str, ...]


def contents(folder: Path) -> Contents:
    """All that lies in the folder of a package.  OSError where it cannot be read."""
    digests: dict[str, str] = {}
    strange = [*_open_to_all("its folder", folder.stat())]
    for name, entry in _entries(folder):
        strange += _open_to_all(name, entry.stat(follow_symlinks=False))
        if entry.is_symlink():
            strange.append(f"{name} is a link")
        elif entry.is_file():
            digests[name] = file_digest(Path(entry.path))
        elif entry.name == _BYTECODE:
            strange.append(
                f"{name} holds compiled Python, which cannot be proved: delete it, Python writes it"
                " again"
            )
        elif name != RUNTIME:
            strange.append(f"{name} is {'a folder' if entry.is_dir() else 'no file'} of its own")
    return Contents(digests, tuple(strange))


def _open_to_all(name: str, found: os.stat_result) -> Iterator[str]:
    """A line where every user may write to it.  A group may be the user's own."""
    if found.st_mode & stat.S_IWOTH and not stat.S_ISLNK(found.st_mode):
        yield f"{name} may be written to by everybody: chmod o-w it"


def _entries(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """What lies in the folder and, if it is one, in that of the runtime."""
    for entry in sorted(os.scandir(folder), key=lambda one: one.name):
        yield entry.name, entry
        if entry.name == RUNTIME and entry.is_dir(follow_symlinks=False):
            inner = sorted(os.scandir(entry.path), key=lambda one: one.name)
            yield from ((f"{RUNTIME}/{one.name}", one) for one in inner)


def built_files(op: Op) -> tuple[str, str]:
    """The shared object of an op, and the note beside it, for the Python that runs."""
    library = library_name(op)
    return library, f"{library}.json"


def stale(folder: Path, op: Op, texts: Mapping[str, str]) -> str:
    """Why the shared object that lies there is to be built again; empty where there is none."""
    library, note = (folder / name for name in built_files(op))
    if not os.path.lexists(library):
        return ""
    if not library.is_file():
        return f"{library.name} is no file"
    try:
        fits = _is_stamped(library, note, op, texts)
    except (OSError, ValueError, RecursionError):
        return f"{note.name} cannot be read"
    return "" if fits else f"{library.name} was changed, or was built from other sources"


def _is_stamped(library: Path, note: Path, op: Op, texts: Mapping[str, str]) -> bool:
    """Does the note say of the library what it is?  Raises OSError, ValueError, RecursionError."""
    stamped = json.loads(note.read_text(encoding="utf-8"))
    return bool(stamped == stamp(library.read_bytes(), source_digest(op, texts)))


def built_otherwise(folder: Path, op: Op, texts: Mapping[str, str], there: Contents) -> str:
    """Why the shared object is not what the C compiler makes of ``texts``; empty where it is.

    It is built again, portably and for this machine, and compared byte by byte.
    """
    library, note = built_files(op)
    if library not in there.digests:
        return f"{note} lies there without its library"
    made = there.digests[library]
    try:
        if not _is_stamped(folder / library, folder / note, op, texts):
            return f"{note} does not tell what {library} was built from"
        if any(_digest_built(op, texts, portable) == made for portable in (True, False)):
            return ""
    except (OSError, ValueError, RecursionError):
        return f"{note} cannot be read"
    except SymgradError as error:
        return f"{library} cannot be compared, since it cannot be built again: {error.what}"
    return (
        f"{library} is not what the C compiler of this machine makes of its sources: rebuild it,"
        " or delete it, and it is compiled when it is imported"
    )


def _digest_built(op: Op, texts: Mapping[str, str], portable: bool) -> str:
    blas = find_blas() if op.blas else None
    with cache.scratch() as work:
        return file_digest(
            compile_into(work, op, texts, find_compiler(), blas, portable=portable)
        )  # fmt: skip
