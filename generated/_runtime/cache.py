"""The cache of compiled kernels: folders named by their content, published atomically.

In: a key and a function that fills a folder.  Out: the path of a finished, checked entry.

An entry is a folder ``<root>/<key>`` with the files of one build and ``digests.json``, which holds
the SHA-256 of each.  It is filled in a private folder and renamed into place: nobody sees half of
one, whenever a process is killed.  A lock keeps two processes from doing the same work twice;
correctness does not depend on it.  An entry whose digests do not match is made again.  Where the
cache cannot be used (read-only, full, open to other users) the entry stays in a folder of its own
that is deleted when the process ends, with a warning.

Code is loaded from the cache, so another user must not be able to write there, nor to put another
folder in its place: ``trusted`` says what is checked.  The folder is then held open, and everything
in it is reached through its descriptor, up to the loading of a library (``door``).

Lock files are never deleted: deleting one while another process waits for it would let two
processes in.  The keys share at most 64 of them.

``SYMGRAD_CACHE_DIR`` names another place than the user's cache folder.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import re
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .errors import CacheError
from .forks import forks_wait
from .digests import bytes_digest, digest, file_digest
from .trusted import Untrusted, open_folder, open_inside, read_inside

_DIGESTS = "digests.json"
_TEMPORARY = ".new-"
BEGUN = re.compile(re.escape(_TEMPORARY) + ".+-[0-9a-f]{16}")
"""The names of files that are written, until they are whole."""
_STALE_SECONDS = 24 * 3600
_LOCK_SECONDS = 600
# The layout of entries; another layout lives beside it.
_LAYOUT = "kernels-1"
_LOCKS = 64
_NOTE = ".note"
_SELF = Path("/proc/self/fd")
_private: dict[str, Path] = {}
# The folders that are held open, by their paths, and where the entries found in them are loaded.
_held: dict[Path, int] = {}
_doors: dict[Path, Path] = {}


class CacheWarning(RuntimeWarning):
    """The cache cannot be used; kernels are recompiled in every process."""


def cache_folder(layout: str = _LAYOUT) -> Path:
    """Where entries are kept.  It need not exist."""
    chosen = os.environ.get("SYMGRAD_CACHE_DIR", "")
    if chosen:
        return Path(chosen).expanduser().absolute() / layout
    platformdirs = _library("platformdirs")
    return Path(platformdirs.user_cache_dir("symgrad", appauthor=False)) / layout


def entry(key: str, fill: Callable[[Path], None]) -> Path:
    """The folder of the entry ``key``, made by ``fill(folder)`` where there is none.

    ``fill`` writes its files into the empty folder it is given; what it raises passes through.
    Raises CacheError where not even a temporary folder can be written.
    """
    if key in _private:
        return _private[key]
    root = cache_folder()
    try:
        held = _hold(root, create=True)
        way = _way(root, held)
        if not _whole(held, key):
            with _locked(way, key):
                if not _whole(held, key):
                    _discard(way / key)
                    _publish(held, way / key, fill)
                    _sweep(way)
    except (_Unusable, Untrusted, OSError) as problem:
        folder = _stay_private(key, fill)
        warnings.warn(
            f"the kernel cache {root} cannot be used ({_said(problem)}); compiled kernels are lost"
            " when this process ends. Set SYMGRAD_CACHE_DIR to a folder that only you can write to",
            CacheWarning,
            stacklevel=2,
        )
        return folder
    _doors[root / key] = way / key
    return root / key


def _library(name: str) -> Any:
    """A library that only a cache needs; what a package has compiled already does without."""
    with forks_wait():
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise CacheError(
                f"{name} is not installed, and kernels that are compiled here are kept in a cache",
                hint="pip install platformdirs filelock",
            ) from error


class _Unusable(Exception):
    """The cache cannot be locked or written."""


def _said(problem: Exception) -> str:
    return (problem.strerror if isinstance(problem, OSError) else "") or str(problem)


def door(path: Path) -> Path:
    """Where to load a file of an entry from: the folder that was checked, whatever its name is now.

    Without ``/proc`` it is the path itself, which no other user can redirect.
    """
    return _doors.get(path.parent, path.parent) / path.name


def _hold(folder: Path, *, create: bool = False) -> int:
    """A descriptor of ``folder``, which stays open.  Raises Untrusted and OSError.

    Libraries are told apart by their paths, so a descriptor must not come to mean another folder.
    """
    found = open_folder(folder, create=create)
    held = _held.get(folder)
    if held is not None and _is_same(held, found):
        os.close(found)
        return held
    _held[folder] = found
    return found


def _is_same(held: int, found: int) -> bool:
    """Is the descriptor still of that folder?  Some programs close every descriptor."""
    with suppress(OSError):
        return os.path.samestat(os.fstat(held), os.fstat(found))
    return False


def _way(folder: Path, held: int) -> Path:
    """A path to the folder that is held open."""
    way = _SELF / str(held)
    return way if way.exists() else folder.resolve()


def _whole(root: int, key: str) -> bool:
    """Is the entry as it was written?  Any damage means no, and it is made again."""
    try:
        folder = open_inside(root, key)
    except (OSError, Untrusted):
        return False
    try:
        digests = json.loads(read_inside(folder, _DIGESTS))
        listed = {*digests, _DIGESTS} == set(os.listdir(folder)) and len(digests) > 0
        return listed and all(bytes_digest(read_inside(folder, n)) == digests[n] for n in digests)
    except Exception:  # it may hold any bytes
        return False
    finally:
        os.close(folder)


@contextmanager
def _locked(root: Path, key: str) -> Iterator[None]:
    filelock = _library("filelock")
    number = int(digest(key)[:8], 16) % _LOCKS
    lock = filelock.FileLock(root / f".lock-{number}", timeout=_LOCK_SECONDS, mode=0o600)
    try:
        lock.acquire()
    except (OSError, NotImplementedError, filelock.Timeout) as error:
        raise _Unusable(str(error)) from error
    try:
        yield
    finally:
        lock.release()


def _publish(root: int, folder: Path, fill: Callable[[Path], None]) -> None:
    """Fill a folder elsewhere, copy it beside its place, rename it into place.

    The compiler works in the system's temporary folder, so that whatever goes wrong with the
    cache itself shows in the copy.
    """
    with scratch() as made:
        _fill(fill, made)
        _write_digests(made)
        beside = folder.with_name(f"{_TEMPORARY}{folder.name}-{os.getpid()}")
        try:
            _discard(beside)
            shutil.copytree(made, beside)
            for path in sorted(beside.iterdir()):
                path.chmod(0o600)
                _flush(path)
            beside.rename(folder)
        except OSError as error:
            _remove(beside)
            if not _whole(root, folder.name):
                raise _Unusable(error.strerror or str(error)) from error


@contextmanager
def scratch() -> Iterator[Path]:
    """A private folder to build in, gone afterwards.  Raises CacheError where none can be made."""
    folder = _temporary()
    try:
        yield folder
    finally:
        _remove(folder)


def beginning(path: Path) -> Path:
    """Where ``path`` is made: a new name, known before there is anything to clean up."""
    return path.with_name(f"{_TEMPORARY}{path.name}-{os.urandom(8).hex()}")


def replace_file(made: Path, target: Path) -> None:
    """Replace ``target`` by a copy of ``made``, atomically.  Raises CacheError where that fails."""

    def copy(beside: Path) -> None:
        shutil.copyfile(made, beside)
        _flush(beside)

    try:
        put(target, copy)
    except OSError as error:
        raise CacheError(
            f"{target} cannot be written: {error.strerror or error}",
            hint="choose a folder that can be written, or free space",
        ) from error


def put(target: Path, fill: Callable[[Path], None]) -> None:
    """Replace ``target`` atomically by what ``fill`` makes at the path it is given.

    Nothing else is left, whatever is raised.  Raises OSError.
    """
    try:
        _put(target, fill)
    except FileNotFoundError:  # another build took it for what a killed one had left
        _put(target, fill)


def _put(target: Path, fill: Callable[[Path], None]) -> None:
    beside = beginning(target)
    try:
        fill(beside)
        beside.replace(target)
    finally:
        _remove(beside)


def _temporary() -> Path:
    """A new folder of this user's, which nobody can exchange."""
    made = None
    try:
        made = Path(tempfile.mkdtemp(prefix="symgrad-"))
        os.close(open_folder(made))
        return made
    except (OSError, Untrusted) as error:
        if made is not None:
            _remove(made)
        raise CacheError(
            f"no temporary folder for a build can be made: {error}",
            hint="free space there, or set TMPDIR to a folder that can be written, by you alone",
        ) from error


def _fill(fill: Callable[[Path], None], folder: Path) -> None:
    try:
        fill(folder)
    except CacheError:
        raise
    except OSError as error:
        raise CacheError(
            f"{folder} cannot be written: {error.strerror or error}",
            hint="free space there, or set TMPDIR to a folder that can be written",
        ) from error


def _write_digests(folder: Path) -> None:
    digests = {path.name: file_digest(path) for path in sorted(folder.iterdir())}
    (folder / _DIGESTS).write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")


def _flush(path: Path) -> None:
    """Onto the disk before the rename: a power failure must not leave an empty file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _discard(folder: Path) -> None:
    """Move a broken entry away, then delete it: never a half-deleted entry in its place."""
    if not os.path.lexists(folder):  # a link to nothing is in the way, too
        return
    aside = folder.with_name(f"{_TEMPORARY}old-{folder.name}-{os.getpid()}-{time.time_ns()}")
    try:
        folder.rename(aside)
    except OSError as error:
        raise _Unusable(error.strerror or str(error)) from error
    _remove(aside)


def _remove(path: Path) -> None:
    """Delete a folder or file as far as that is possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _sweep(root: Path) -> None:
    """Delete what killed processes left behind a day ago or earlier."""
    with suppress(OSError):
        for path in sorted(root.glob(f"{_TEMPORARY}*")):
            if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                _remove(path)


def _stay_private(key: str, fill: Callable[[Path], None]) -> Path:
    """Keep the entry in a folder of this process, deleted at its end."""
    folder = _temporary()
    owner = os.getpid()

    def remove() -> None:
        """A forked child must not delete its parent's files."""
        if os.getpid() == owner:
            _remove(folder)

    atexit.register(remove)
    _fill(fill, folder)
    _private[key] = folder
    return folder


# -- notes: a line of text each, with its digest


def read_note(name: str, layout: str = _LAYOUT) -> str | None:
    """A line of text kept under ``name``; None where there is none, or a damaged one."""
    try:
        note = read_inside(_hold(cache_folder(layout)), f"{name}{_NOTE}")
        text, _, check = note.decode("utf-8").partition("\n")
    except (OSError, UnicodeDecodeError, Untrusted):
        return None
    return text if check == digest(text) else None


def write_note(name: str, text: str, layout: str = _LAYOUT, most: int | None = None) -> None:
    """Keep one line of text; where that is not possible, do nothing.

    ``most``: so many notes are kept, the latest.
    """
    with suppress(OSError, Untrusted):
        way = _way(root := cache_folder(layout), _hold(root, create=True))
        descriptor, path = tempfile.mkstemp(prefix=_TEMPORARY, dir=way)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{text}\n{digest(text)}")
        os.replace(path, way / f"{name}{_NOTE}")
        if most is not None:
            _keep_latest(way, most)


def _keep_latest(way: Path, most: int) -> None:
    """Delete the oldest notes where there are too many: a quarter more than that, at once."""
    with os.scandir(way) as found:
        notes = [(entry.stat().st_mtime, entry.path) for entry in found if _NOTE in entry.name]
    if len(notes) > most:
        _sweep(way)
        for _, path in sorted(notes)[: len(notes) - most + most // 4]:
            _remove(Path(path))
