"""The cache of compiled kernels: folders named by their content, published at one stroke.

In: a key and a function that fills a folder.  Out: the path of a finished, checked entry.
Imports ``symgrad.errors`` and ``symgrad.runtime.digests``; ``filelock`` and ``platformdirs`` only
when they are needed.  Copied into every generated package.

An entry is a folder ``<root>/<key>`` with the files of one build and ``digests.json``, which holds
the SHA-256 of each.  It is filled in a private folder and renamed into place, so that nobody ever
sees half of one, whenever a process is killed; a lock file keeps two processes from doing the
same work twice, and correctness does not rest on it.  An entry whose digests do not match is
made again.  Where the cache cannot be used (read-only, full, owned by somebody else) the entry
stays in a folder of its own that is deleted when the process ends, with a warning.

``SYMGRAD_CACHE_DIR`` names another place than the user's cache folder.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import stat
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import CacheError
from .digests import digest, file_digest

_DIGESTS = "digests.json"
_TEMPORARY = ".new-"
_STALE_SECONDS = 24 * 3600
_LOCK_SECONDS = 600
# The layout of entries; another layout lives beside it.
_LAYOUT = "kernels-1"
_private: dict[str, Path] = {}


class CacheWarning(RuntimeWarning):
    """The cache cannot be used; kernels are compiled anew in every process."""


def cache_folder() -> Path:
    """Where entries are kept.  It need not exist."""
    chosen = os.environ.get("SYMGRAD_CACHE_DIR", "")
    if chosen:
        return Path(chosen).expanduser().absolute() / _LAYOUT
    import platformdirs

    return Path(platformdirs.user_cache_dir("symgrad", appauthor=False)) / _LAYOUT


def entry(key: str, fill: Callable[[Path], None]) -> Path:
    """The folder of the entry ``key``, made by ``fill(folder)`` where there is none.

    ``fill`` writes its files into the empty folder it is given; what it raises passes through.
    Raises CacheError where not even a temporary folder can be written.
    """
    if key in _private:
        return _private[key]
    root = cache_folder()
    try:
        _check_owner(root)
        if intact(root / key):
            return root / key
        _make_private(root)
        with _locked(root, key):
            if not intact(root / key):
                _discard(root / key)
                _publish(root / key, fill)
                _sweep(root)
        return root / key
    except _Unusable as problem:
        folder = _stay_private(key, fill)
        warnings.warn(
            f"the kernel cache {root} cannot be used ({problem}); compiled kernels are lost when"
            " this process ends. Set SYMGRAD_CACHE_DIR to a folder of yours that can be written",
            CacheWarning,
            stacklevel=2,
        )
        return folder


class _Unusable(Exception):
    """The folder of the cache cannot be trusted or written."""


def intact(folder: Path) -> bool:
    """Are all files of the entry there, as they were written?"""
    try:
        digests = json.loads((folder / _DIGESTS).read_text(encoding="utf-8"))
        return all(file_digest(folder / name) == digests[name] for name in digests)
    except (OSError, ValueError, TypeError):
        return False


def _check_owner(root: Path) -> None:
    """Code is loaded from here: nobody else may be able to write it."""
    try:
        found = root.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise _Unusable(error.strerror or str(error)) from error
    if not stat.S_ISDIR(found.st_mode):
        raise _Unusable("it is not a folder")
    if hasattr(os, "getuid") and found.st_uid not in (os.getuid(), 0):
        raise _Unusable("it belongs to another user")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _Unusable("others may write to it")


def _make_private(root: Path) -> None:
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        root.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _Unusable(error.strerror or str(error)) from error


@contextmanager
def _locked(root: Path, key: str) -> Iterator[None]:
    from filelock import FileLock, Timeout

    lock = FileLock(root / f"{key}.lock", timeout=_LOCK_SECONDS, mode=0o600)
    try:
        lock.acquire()
    except (OSError, NotImplementedError, Timeout) as error:
        raise _Unusable(str(error)) from error
    try:
        yield
    finally:
        lock.release()


def _publish(folder: Path, fill: Callable[[Path], None]) -> None:
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
                _flush(path)
            beside.rename(folder)
        except OSError as error:
            _remove(beside)
            if not intact(folder):
                raise _Unusable(error.strerror or str(error)) from error


@contextmanager
def scratch() -> Iterator[Path]:
    """A private folder to build in, gone afterwards.  Raises CacheError where none can be made."""
    folder = _temporary()
    try:
        yield folder
    finally:
        _remove(folder)


def replace_file(made: Path, target: Path) -> None:
    """Put a copy of ``made`` at ``target`` at one stroke.  Raises CacheError where that fails."""
    beside = target.with_name(f"{_TEMPORARY}{target.name}-{os.getpid()}")
    try:
        shutil.copyfile(made, beside)
        _flush(beside)
        os.replace(beside, target)
    except OSError as error:
        _remove(beside)
        raise CacheError(
            f"{target} cannot be written: {error.strerror or error}",
            hint="choose a folder that can be written, or free space",
        ) from error


def _temporary() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="symgrad-"))
    except OSError as error:
        raise CacheError(
            f"no temporary folder for a build can be made: {error}",
            hint="free space there, or set TMPDIR to a folder that can be written",
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
    if not folder.exists():
        return
    aside = folder.with_name(f"{_TEMPORARY}old-{folder.name}-{os.getpid()}-{time.time_ns()}")
    try:
        folder.rename(aside)
    except OSError as error:
        raise _Unusable(error.strerror or str(error)) from error
    _remove(aside)


def _remove(path: Path) -> None:
    """Delete a folder or file as far as that is possible."""
    if path.is_dir():
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


def read_note(name: str) -> str | None:
    """A short text kept under ``name``; None where there is none."""
    root = cache_folder()
    try:
        _check_owner(root)
        text, _, check = (root / f"{name}.note").read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError, _Unusable):
        return None
    return text if check == digest(text) else None


def write_note(name: str, text: str) -> None:
    """Keep one line of text; where that is not possible, do nothing."""
    root = cache_folder()
    with suppress(OSError, _Unusable):
        _check_owner(root)
        _make_private(root)
        descriptor, path = tempfile.mkstemp(prefix=_TEMPORARY, dir=root)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{text}\n{digest(text)}")
        os.replace(path, root / f"{name}.note")
