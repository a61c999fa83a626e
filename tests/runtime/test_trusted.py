"""Nothing is loaded from the cache that another user could have put there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from symgrad.runtime import cache
from symgrad.runtime.trusted import Untrusted, open_folder

STRANGER = 54321
AS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not AS_ROOT, reason="only root can act as two users")


def fill(folder: Path) -> None:
    (folder / "kernel.so").write_text("content", encoding="utf-8")


def poison(folder: Path) -> None:
    """An entry as good as any, but for who made it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.so").write_text("poison", encoding="utf-8")
    digests = {"kernel.so": hashlib.sha256(b"poison").hexdigest()}
    (folder / "digests.json").write_text(json.dumps(digests), encoding="utf-8")


def give(*paths: Path) -> None:
    """To the stranger."""
    for path in paths:
        os.chown(path, STRANGER, STRANGER, follow_symlinks=False)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that strangers can reach, with an empty cache in ``parent/cache``."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(folder / "parent" / "cache"))
    monkeypatch.setattr(cache, "_private", {})
    yield folder
    shutil.rmtree(folder)


def looked_up() -> tuple[str, bool]:
    """What is loaded for a key, and whether it is from the cache."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cache.CacheWarning)
        found = cache.entry("key", fill)
    text = cache.door(found / "kernel.so").read_text(encoding="utf-8")
    return text, found.parent == cache.cache_folder()


def _anyones(mode: int) -> Callable[[Path], None]:
    def spoil(parent: Path) -> None:
        poison(cache.cache_folder() / "key")
        parent.chmod(mode)

    return spoil


def _strangers_parent(parent: Path) -> None:
    poison(cache.cache_folder() / "key")
    give(parent)


def _strangers_link(parent: Path) -> None:
    """In a folder like /tmp, where anyone can make a link, to a cache of ours."""
    poison(parent / "elsewhere" / "kernels-1" / "key")
    (parent / "cache").symlink_to(parent / "elsewhere")
    give(parent / "cache")
    parent.chmod(0o1777)


def _strangers_entry(parent: Path) -> None:
    poison(cache.cache_folder() / "key")
    give(cache.cache_folder() / "key")


def _strangers_file(parent: Path) -> None:
    poison(cache.cache_folder() / "key")
    give(cache.cache_folder() / "key" / "kernel.so")


def _open_file(parent: Path) -> None:
    poison(cache.cache_folder() / "key")
    (cache.cache_folder() / "key" / "kernel.so").chmod(0o664)


def _open_entry(parent: Path) -> None:
    poison(cache.cache_folder() / "key")
    (cache.cache_folder() / "key").chmod(0o775)


def _linked_entry(parent: Path) -> None:
    poison(parent / "other" / "key")
    cache.cache_folder().mkdir(parents=True)
    (cache.cache_folder() / "key").symlink_to(parent / "other" / "key")


def _linked_file(parent: Path) -> None:
    poison(cache.cache_folder() / "key")
    poison(parent / "other")
    (cache.cache_folder() / "key" / "kernel.so").unlink()
    (cache.cache_folder() / "key" / "kernel.so").symlink_to(parent / "other" / "kernel.so")


def _pipe(parent: Path) -> None:
    poison(cache.cache_folder() / "key")
    (cache.cache_folder() / "key" / "kernel.so").unlink()
    os.mkfifo(cache.cache_folder() / "key" / "kernel.so")


# How it is spoiled, and whether the cache itself can still be used.
SPOILED: dict[str, tuple[Callable[[Path], None], bool]] = {
    "a parent for all": (_anyones(0o777), False),
    "a parent for a group": (_anyones(0o775), False),
    "an open file": (_open_file, True),
    "an open entry": (_open_entry, True),
    "a linked entry": (_linked_entry, True),
    "a linked file": (_linked_file, True),
    "a pipe": (_pipe, True),
}
OF_STRANGERS: dict[str, tuple[Callable[[Path], None], bool]] = {
    "a parent": (_strangers_parent, False),
    "a link": (_strangers_link, False),
    "an entry": (_strangers_entry, True),
    "a file": (_strangers_file, True),
}


@pytest.mark.parametrize("name", sorted(SPOILED))
def test_what_others_can_write_is_not_loaded(place: Path, name: str) -> None:
    spoil, usable = SPOILED[name]
    (place / "parent").mkdir()
    spoil(place / "parent")
    assert looked_up() == ("content", usable)


@needs_root
@pytest.mark.parametrize("name", sorted(OF_STRANGERS))
def test_what_a_stranger_owns_is_not_loaded(place: Path, name: str) -> None:
    spoil, usable = OF_STRANGERS[name]
    (place / "parent").mkdir()
    spoil(place / "parent")
    assert looked_up() == ("content", usable)


def test_links_of_ones_own_and_sticky_folders_are_followed(place: Path) -> None:
    """As ``~/.cache`` that lies on another disk, or ``/tmp``."""
    (place / "real").mkdir(mode=0o700)
    (place / "sticky").mkdir()
    (place / "sticky").chmod(0o1777)
    (place / "sticky" / "link").symlink_to("../real")
    (place / "parent").symlink_to(place / "sticky" / "link")
    assert looked_up() == ("content", True)
    assert (place / "real" / "cache" / "kernels-1" / "key" / "kernel.so").exists()
    (place / "round").symlink_to("round")
    with pytest.raises(Untrusted, match="too many"):
        open_folder(place / "round")


def test_what_was_checked_is_what_is_loaded(place: Path) -> None:
    """Even where the folder comes to be called otherwise, and another one takes its place."""
    found = cache.entry("key", fill)
    (place / "parent").rename(place / "away")
    poison(found)
    assert (found / "kernel.so").read_text(encoding="utf-8") == "poison"
    assert cache.door(found / "kernel.so").read_text(encoding="utf-8") == "content"


def test_a_folder_that_a_program_closed_is_opened_again(place: Path) -> None:
    cache.entry("key", fill)
    for held in cache._held.values():
        os.close(held)
    other = os.open(place, os.O_RDONLY)  # takes one of the numbers
    assert looked_up() == ("content", True)
    os.close(other)


def test_locks_are_few(place: Path) -> None:
    """They cannot be deleted, so that each key must not have one of its own."""
    for number in range(300):
        with cache._locked(place, f"key{number}"):
            pass
    assert 32 < len(list(place.iterdir())) <= 64


FLIP = """
import os, sys
place, uid = sys.argv[1], int(sys.argv[2])
os.setgid(uid), os.setuid(uid)
os.chdir(place)
print("ready", flush=True)
while True:
    for target in ("honest", "poisoned"):
        os.symlink(target, "next")
        os.replace("next", "cache")
"""


@needs_root
@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_link_that_is_flipped(place: Path, mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger leads the same name to our cache and to another, between check and use."""
    parent = place / "parent"
    parent.mkdir()
    for name, kind in (("honest", fill), ("poisoned", poison)):
        folder = parent / name / "kernels-1" / "key"
        poison(folder)
        if kind is poison:
            give(parent / name, parent / name / "kernels-1", folder, *folder.iterdir())
        else:
            (folder / "kernel.so").write_text("content", encoding="utf-8")
            digests = {"kernel.so": hashlib.sha256(b"content").hexdigest()}
            (folder / "digests.json").write_text(json.dumps(digests), encoding="utf-8")
    parent.chmod(mode)
    running: subprocess.Popen[str] = subprocess.Popen(
        [sys.executable, "-c", FLIP, str(parent), str(STRANGER)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        found: list[Any] = []
        for _ in range(300):
            monkeypatch.setattr(cache, "_private", {})
            found.append(looked_up()[0])
    finally:
        running.kill()
        running.communicate()
    assert set(found) == {"content"}
