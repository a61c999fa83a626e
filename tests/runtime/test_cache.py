"""The cache survives concurrent builds, kills, corruption, and folders it cannot write."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from symgrad.errors import BuildError, CacheError
from symgrad.runtime import cache
from symgrad.runtime.compiler import find_compiler
from symgrad.runtime.trusted import open_folder
from tests.runtime import scripts


def intact(folder: Path) -> bool:
    """Are all files of the entry there, as they were written, and open to nobody else?"""
    parent = open_folder(folder.parent)
    try:
        return cache._whole(parent, folder.name)
    finally:
        os.close(parent)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; its folder of entries, which does not exist yet."""
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_private", {})
    return cache.cache_folder()


class Fill:
    """Fills an entry and counts how often."""

    def __init__(self, text: str = "content") -> None:
        self.text, self.count = text, 0

    def __call__(self, folder: Path) -> None:
        self.count += 1
        (folder / "kernel.so").write_text(self.text, encoding="utf-8")


def entries(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if path.is_dir())


def test_an_entry_is_made_once(root: Path) -> None:
    fill = Fill()
    first = cache.entry("key", fill)
    assert (first / "kernel.so").read_text(encoding="utf-8") == "content"
    assert cache.entry("key", fill) == first
    assert fill.count == 1
    assert cache.entry("other", fill) != first
    assert entries(root) == ["key", "other"]


def test_nobody_else_may_read(root: Path) -> None:
    folder = cache.entry("key", Fill())
    for path in (root, folder):
        assert path.stat().st_mode & 0o077 == 0


# What may stand in the place of digests.json, of another file, of the whole entry.
JUNK: dict[str, bytes] = {
    "nothing": b"",
    "no text": b"\xff\xfe\x00",
    "a list": b"[1, 2]",
    "lists in lists": b'[["kernel.so"], {}]',
    "a number": b"1",
    "a long number": b"1" * 10_000,
    "no digest": b'{"kernel.so": {"a": NaN}}',
    "other names": b'{"../kernel.so": "", "": "", "a\\u0000b": ""}',
    "too deep": b"[" * 200_000,
    "too deep inside": b'{"kernel.so": ' + b'{"a":' * 200_000,
}


def _link_to_nothing(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.symlink_to("nothing")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("in the way", encoding="utf-8")


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "truncated": lambda entry: (entry / "kernel.so").write_text("cont", encoding="utf-8"),
    "emptied": lambda entry: (entry / "kernel.so").write_bytes(b""),
    "changed": lambda entry: (entry / "kernel.so").write_text("Content", encoding="utf-8"),
    "deleted": lambda entry: (entry / "kernel.so").unlink(),
    "added": lambda entry: (entry / "more.so").write_bytes(b""),
    "no digests": lambda entry: (entry / "digests.json").unlink(),
    "a link for a file": lambda entry: _link_to_nothing(entry / "kernel.so"),
    "a folder for a file": lambda entry: _folder(entry / "kernel.so"),
    "a pipe for a file": lambda entry: _pipe(entry / "kernel.so"),
    "open to all": lambda entry: (entry / "kernel.so").chmod(0o666),
    "a link for the entry": _link_to_nothing,
    "a file for the entry": _file,
} | {
    f"digests: {name}": lambda entry, junk=junk: (entry / "digests.json").write_bytes(junk)
    for name, junk in JUNK.items()
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_made_again(root: Path, damage: str) -> None:
    fill = Fill()
    folder = cache.entry("key", fill)
    kernel = folder / "kernel.so"
    DAMAGES[damage](folder)
    assert not intact(folder)
    assert cache.entry("key", fill) == folder
    assert (fill.count, intact(folder)) == (2, True)
    assert kernel.read_text(encoding="utf-8") == "content"
    assert entries(root) == ["key"]


def test_a_failing_build_leaves_nothing(root: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("half", encoding="utf-8")
        raise BuildError("no")

    with pytest.raises(BuildError, match="no"):
        cache.entry("key", fail)
    assert entries(root) == []
    assert cache.entry("key", Fill()).name == "key"


def _below_a_file(root: Path) -> None:
    root.parent.parent.mkdir(parents=True, exist_ok=True)
    root.parent.write_text("in the way", encoding="utf-8")


def _a_file(root: Path) -> None:
    root.parent.mkdir(parents=True)
    root.write_text("in the way", encoding="utf-8")


def _open_to_all(root: Path) -> None:
    root.mkdir(parents=True)
    root.chmod(0o777)


def _read_only(root: Path) -> None:
    root.mkdir(parents=True)
    root.chmod(0o500)
    if os.access(root, os.W_OK):
        pytest.skip("this user may write to folders that are read-only")


@pytest.mark.parametrize("spoil", [_below_a_file, _a_file, _open_to_all, _read_only])
def test_a_folder_that_cannot_be_used(root: Path, spoil: Any) -> None:
    spoil(root)
    fill = Fill()
    with pytest.warns(cache.CacheWarning, match="SYMGRAD_CACHE_DIR"):
        folder = cache.entry("key", fill)
    assert root not in folder.parents
    assert (folder / "kernel.so").exists()
    assert folder.stat().st_mode & 0o077 == 0
    assert cache.entry("key", fill) == folder  # and no second warning
    assert fill.count == 1


@pytest.mark.parametrize(
    ("name", "code"),
    [("mkdir", errno.EROFS), ("rename", errno.EACCES)],
)
def test_a_file_system_that_refuses(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    def refuse(path: Path, *_: Any, **__: Any) -> None:
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr(Path, name, refuse)
    with pytest.warns(cache.CacheWarning, match=os.strerror(code)):
        folder = cache.entry("key", Fill())
    assert (folder / "kernel.so").exists()
    assert not (root / "key").exists()


def test_a_full_disk(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room runs out while the entry is copied: what was copied so far goes away."""

    def stop_half_way(source: Path, target: Path) -> None:
        Path(target).mkdir()
        (Path(target) / "kernel.so").write_text("con", encoding="utf-8")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copytree", stop_half_way)
    with pytest.warns(cache.CacheWarning, match="No space left"):
        folder = cache.entry("key", Fill())
    assert (folder / "kernel.so").read_text(encoding="utf-8") == "content"
    assert entries(root) == []


def test_no_place_at_all(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(CacheError, match="No space left"):
        cache.entry("key", Fill())


def test_leftovers_of_killed_builds_are_swept(root: Path) -> None:
    cache.entry("first", Fill())
    for name, age in ((".new-old-build", 2 * 24 * 3600), (".new-recent-build", 60)):
        (root / name).mkdir()
        os.utime(root / name, (time.time() - age,) * 2)
    cache.entry("second", Fill())
    assert entries(root) == [".new-recent-build", "first", "second"]


def test_notes(root: Path) -> None:
    assert cache.read_note("flags") is None
    cache.write_note("flags", "-O3 -fopenmp")
    assert cache.read_note("flags") == "-O3 -fopenmp"
    (root / "flags.note").write_text("-O3 -fope", encoding="utf-8")
    assert cache.read_note("flags") is None


# -- with other processes


@pytest.mark.slow
def test_processes_that_build_the_same_at_once(tmp_path: Path) -> None:
    compiler = scripts.fake_compiler(tmp_path, find_compiler().command[0])
    folder = tmp_path / "cache"
    variables = {"CC": str(compiler), "SYMGRAD_CACHE_DIR": str(folder)}
    (tmp_path / "wait").touch()
    running = [scripts.start(scripts.USE_SOFTPLUS, **variables) for _ in range(3)]
    _until((tmp_path / "started").exists)
    (tmp_path / "wait").unlink()
    paths = {scripts.finish(process).strip() for process in running}
    assert len(paths) == 1
    assert (tmp_path / "log").read_text(encoding="utf-8").splitlines() == ["softplus.c"]
    assert all(intact(path) for path in (folder / cache._LAYOUT).iterdir() if path.is_dir())


@pytest.mark.slow
def test_a_build_killed_half_way(tmp_path: Path) -> None:
    compiler = scripts.fake_compiler(tmp_path, find_compiler().command[0])
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    variables = {"CC": str(compiler), "SYMGRAD_CACHE_DIR": str(tmp_path / "cache")}
    variables["TMPDIR"] = str(temporary)
    (tmp_path / "wait").touch()
    process = scripts.start(scripts.USE_SOFTPLUS, **variables)
    _until((tmp_path / "started").exists)
    waiting = scripts.start(scripts.USE_SOFTPLUS, **variables)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    (tmp_path / "wait").unlink()
    scripts.finish(waiting)  # it got the lock of the dead
    path = Path(scripts.run(scripts.USE_SOFTPLUS, **variables).strip())
    assert intact(path.parent)
    assert (tmp_path / "log").read_text(encoding="utf-8").splitlines() == ["softplus.c"] * 2


@pytest.mark.slow
def test_a_library_that_was_cut_short_is_not_loaded(tmp_path: Path) -> None:
    """Loading it would end the process with a bus error."""
    variables = {"SYMGRAD_CACHE_DIR": str(tmp_path / "cache")}
    path = Path(scripts.run(scripts.USE_SOFTPLUS, **variables).strip())
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 3])
    assert scripts.run(scripts.USE_SOFTPLUS, **variables).strip() == str(path)
    assert len(path.read_bytes()) == len(whole)


def _until(true: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


@pytest.mark.slow
def test_fallback_is_removed_at_exit_but_not_by_children(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way", encoding="utf-8")
    (tmp_path / "tmp").mkdir()
    script = (
        """
import os, warnings, sys
warnings.simplefilter("ignore")
"""
        + scripts.USE_SOFTPLUS.replace("print(op", "folder = (op")
        + """
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
assert folder.exists(), "the child took its parent's files away"
print(folder)
"""
    )
    said = scripts.run(
        script,
        SYMGRAD_CACHE_DIR=str(tmp_path / "cache"),
        TMPDIR=str(tmp_path / "tmp"),
        PYTHONWARNINGS="default",
    )
    assert str(tmp_path / "tmp") in said
    assert list((tmp_path / "tmp").iterdir()) == []


def test_default_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SYMGRAD_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = cache.cache_folder()
    assert tmp_path in folder.parents
    assert "symgrad" in folder.parts


@pytest.mark.parametrize("at", ["copyfile", "replace"])
def test_an_interrupted_library_is_not_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    made, target = tmp_path / "made", tmp_path / "target"
    made.write_text("new")

    def stop(source: Path, beside: Path) -> None:
        if at == "copyfile":
            beside.write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil if at == "copyfile" else os, at, stop)
    with pytest.raises(KeyboardInterrupt):
        cache.replace_file(made, target)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == [made]
    cache.replace_file(made, target)
    assert target.read_text() == "new"
