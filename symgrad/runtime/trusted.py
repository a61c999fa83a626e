"""Folders and files that no other user can change or exchange, opened one name at a time.

In: a path.  Out: a descriptor of the folder, or what is in a file.

Code is loaded from these folders.  A folder is trusted if it and all above it belong to this user
or to root and nobody else may write to them; in one with the sticky bit, as /tmp, others cannot
exchange what is not theirs.  A symbolic link is followed if it is ours or root's and lies in such
a folder, so that nobody can point it elsewhere.  Each name is opened from the descriptor of the
folder before it, and it is the descriptors that are looked at: what was checked is what is used.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path, PurePath

# A parent that may be passed through need not be readable.
_PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Nothing that is opened may keep this process waiting, as a pipe would.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_LINKS = 40  # as many as Linux follows
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class Untrusted(Exception):
    """Another user could change what is there."""


def open_folder(path: Path, *, create: bool = False) -> int:
    """A descriptor of a folder that only this user and root can write to; the caller closes it.

    ``create``: make what is missing, for this user alone.  Raises Untrusted, and OSError where
    there is no such folder.
    """
    names, here, shown, links = list(reversed(path.absolute().parts)), -1, Path(), 0
    try:
        while names:
            name = names.pop()
            target = _link(here, name, shown)
            if target is not None:
                links += 1
                if links > _MOST_LINKS:
                    raise Untrusted(f"{path} has too many symbolic links")
                names += reversed(target.parts)
                continue
            inner = _step(here, name, create)
            _close(here)
            here, shown = inner, shown / name
            _check(os.fstat(here), shown, sticky=bool(names))
    except BaseException:
        _close(here)
        raise
    return here


def open_inside(folder: int, name: str) -> int:
    """A descriptor of the folder ``name`` in ``folder``, as ``open_folder`` gives; to be listed."""
    here = os.open(name, _LIST, dir_fd=folder)
    try:
        _check(os.fstat(here), Path(name))
    except Untrusted:
        os.close(here)
        raise
    return here


def read_inside(folder: int, name: str) -> bytes:
    """What is in the file ``name`` in ``folder``, if nobody else can write to it.

    Raises Untrusted, and OSError where there is no such file.
    """
    here = os.open(name, _READ, dir_fd=folder)
    with os.fdopen(here, "rb") as file:
        found = os.fstat(here)
        if not stat.S_ISREG(found.st_mode):
            raise Untrusted(f"{name} is not a file")
        _check(found, Path(name))
        return file.read()


def _link(folder: int, name: str, shown: Path) -> PurePath | None:
    """Where a symbolic link points; None for what is none."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISLNK(found.st_mode):
        return None
    if not _is_ours(found):
        raise Untrusted(f"{shown / name} is a symbolic link of another user")
    return PurePath(os.readlink(name, dir_fd=folder))


def _step(folder: int, name: str, create: bool) -> int:
    try:
        return os.open(name, _PASS, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=folder)
    return os.open(name, _PASS, dir_fd=folder)


def _check(found: os.stat_result, shown: Path, *, sticky: bool = False) -> None:
    """``sticky``: others may write, if they cannot exchange what is not theirs."""
    if not _is_ours(found):
        raise Untrusted(f"{shown} belongs to another user")
    if found.st_mode & _OTHERS and not (sticky and found.st_mode & stat.S_ISVTX):
        raise Untrusted(f"others may write to {shown}")


def _is_ours(found: os.stat_result) -> bool:
    return found.st_uid in (os.geteuid(), 0)


def _close(folder: int) -> None:
    if folder >= 0:
        os.close(folder)
