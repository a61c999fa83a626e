"""What an op is made of, on its way to another process: pieces, each named by its SHA-256.

In: the texts of an op and its library.  Out: a ``Manifest`` that names the pieces, and the pieces;
where it arrives, the op's ``Library``: loaded if it was built for such a machine, else compiled
from the C, else NumPy's programs.

A piece is taken only if its bytes have the digest that the manifest states.
"""

from __future__ import annotations

import json
import pickle
import platform
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from symgrad.abi import Op
from symgrad.errors import BuildError, CacheError, SymgradError
from symgrad.runtime import cache
from symgrad.runtime.digests import SUFFIX, bytes_digest, digest, library_name
from symgrad.runtime.load import Library, from_cache, load
from symgrad.runtime.on_numpy import NoFFI
from symgrad.runtime.strict import fall_back

Pieces = dict[str, bytes]


class CarriedError(SymgradError):
    """What arrived of an op is not what was sent, or is not there."""


@dataclass(frozen=True)
class Parts:
    """What an op is made of.

    ``texts``: C files and header by name; ``programs``: gives the module of programs for NumPy,
    None where there is none; ``key_extra``: what else its cached library stands for.
    """

    wrapper: str
    texts: Mapping[str, str]
    programs: Callable[[], str | None]
    key_extra: str = ""


@dataclass(frozen=True)
class Machine:
    """What a library needs: ``features`` are those of the processor, empty where unknown."""

    system: str
    suffix: str
    features: frozenset[str]

    def runs_on(self, other: Machine) -> bool:
        """Does a library that was built on this machine run on another?"""
        alike = (self.system, self.suffix) == (other.system, other.suffix)
        return alike and bool(self.features) and self.features <= other.features


@lru_cache(maxsize=1)
def this_machine() -> Machine:
    """Where this process runs."""
    features: frozenset[str] = frozenset()
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("flags", "Features"):
                features = frozenset(value.split())
                break
    return Machine(f"{sys.platform} {platform.machine()}", SUFFIX, features)


@dataclass(frozen=True)
class Manifest:
    """The digests of the pieces of an op.

    ``texts``: by file name.  ``programs`` and ``library`` may be empty; ``machine``: that which
    the library was built on.
    """

    name: str
    wrapper: str
    texts: Mapping[str, str]
    programs: str
    key_extra: str
    library: str = ""
    machine: Machine | None = None

    @property
    def key(self) -> str:
        """The digest of it all, whatever library comes with it."""
        return digest(json.dumps(asdict(replace(self, library="", machine=None)), sort_keys=True))


def packed(name: str, parts: Parts, library: Path | None) -> tuple[Manifest, Pieces]:
    """The manifest of an op and its pieces.  ``library``: its shared object, if it has one."""
    pieces: Pieces = {}

    def put(data: bytes | str | None) -> str:
        if data is None:
            return ""
        data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        pieces[bytes_digest(data)] = data
        return bytes_digest(data)

    manifest = Manifest(
        name, put(parts.wrapper), {file: put(text) for file, text in parts.texts.items()},
        put(parts.programs()), put(parts.key_extra),
    )  # fmt: skip
    with suppress(OSError):  # an op on NumPy has none
        if library is not None and this_machine().features:
            data = cache.door(library).read_bytes()
            return replace(manifest, library=put(data), machine=this_machine()), pieces
    return manifest, pieces


# -- on the way

_collected: ContextVar[Pieces | None] = ContextVar("_collected", default=None)


@contextmanager
def collecting() -> Iterator[Pieces]:
    """A block in which ops pickle as their manifests; their pieces go into the dict."""
    pieces: Pieces = {}
    token = _collected.set(pieces)
    try:
        yield pieces
    finally:
        _collected.reset(token)


def enclosed(manifest: Manifest, pieces: Pieces) -> bytes:
    """What is pickled beside a manifest: the texts, compressed; nothing if they are collected."""
    there = _collected.get()
    if there is not None:
        there.update(pieces)
        return b""
    return zlib.compress(pickle.dumps({k: v for k, v in pieces.items() if k != manifest.library}))


def opened(data: bytes) -> None:
    """Keep the pieces that came with a manifest.  Raises CarriedError."""
    if data:
        keep(pickle.loads(zlib.decompress(data)))


# -- where it arrives

_kept: Pieces = {}


def keep(pieces: Mapping[str, bytes]) -> None:
    """Keep pieces for the ops that are to arrive.  Raises CarriedError for altered ones."""
    for name, data in pieces.items():
        if name not in _kept:
            if bytes_digest(data) != name:
                raise CarriedError(
                    f"a piece of an op was altered on the way: {bytes_digest(data)} arrived in the "
                    f"place of {name}",
                    hint="send it again",
                )
            _kept[name] = data


def _piece(manifest: Manifest, name: str) -> bytes:
    """A piece that was kept.  Raises CarriedError."""
    try:
        return _kept[name]
    except KeyError:
        raise CarriedError(
            f"{manifest.name}: its piece {name[:12]} is not in this process",
            hint="pickle ops by themselves, or send them in a function of symgrad.interop.dask",
        ) from None


def _text(manifest: Manifest, name: str) -> str:
    return _piece(manifest, name).decode("utf-8", "surrogatepass")


def unpacked(manifest: Manifest) -> Parts:
    """The parts of an op that arrived.  Raises CarriedError."""
    programs = _text(manifest, manifest.programs) if manifest.programs else None
    texts = {file: _text(manifest, name) for file, name in manifest.texts.items()}
    return Parts(
        _text(manifest, manifest.wrapper), texts, lambda: programs,
        _text(manifest, manifest.key_extra),
    )  # fmt: skip


def library(manifest: Manifest, parts: Parts, op: Op) -> Library:
    """The kernels of an op that arrived: as they were built, else of its C, else on NumPy.

    Raises BuildError or CacheError where nothing of that is possible, and in place of NumPy where
    the process is strict.
    """
    if manifest.library in _kept and manifest.machine and manifest.machine.runs_on(this_machine()):
        with suppress(BuildError, CacheError, OSError):
            return _prebuilt(manifest, op)
    try:
        return from_cache(op, parts.texts, parts.key_extra)
    except (BuildError, CacheError) as error:
        programs = parts.programs()
        if programs is None:
            raise
        fall_back(f"{op.name} runs", error, stacklevel=5)
    namespace: dict[str, Any] = {}
    exec(compile(programs, f"<{op.name} on NumPy>", "exec", dont_inherit=True), namespace)
    return Library(NoFFI(), NoFFI(), Path("NumPy"), namespace)


def _prebuilt(manifest: Manifest, op: Op) -> Library:
    """The library that came along, from an entry of the cache.  Raises BuildError, CacheError."""
    data, file = _piece(manifest, manifest.library), library_name(op)
    folder = cache.entry(manifest.library[:40], lambda made: _write(made / file, data))
    door = cache.door(folder / file)
    if bytes_digest(door.read_bytes()) != manifest.library:
        raise CacheError(f"{folder / file} was altered", hint="delete it")
    return load(folder / file, op, door)


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
