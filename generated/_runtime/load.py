"""A shared object into the process: found beside its wrapper or built into the cache.

In: an ``Op`` and where its files lie.  Out: a ``Library`` of callable kernels.  What builds is
imported only when something is built.
"""

from __future__ import annotations

import importlib.util
import json
import struct
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from typing import Any

from .abi import Op
from .errors import BuildError, CacheError, SymgradError
from .forks import forks_wait
from . import threads
from .blas import find_blas, preload
from .digests import (
    bytes_digest,
    code_digest,
    library_name,
    programs_name,
    source_digest,
)
from .strict import NumpyBackendWarning, is_strict

# What finds the libraries of wrappers that live in memory, and have no files beside them.
_in_memory: dict[str, Callable[[Op], Library]] = {}
_loaded: dict[str, Library] = {}
# What the libraries loaded from beside a wrapper were built from: a path is loaded only once.
_sources: dict[str, str] = {}


@dataclass(frozen=True)
class Library:
    """A loaded module of kernels: cffi's ``ffi`` and ``lib``, and the file they came from.

    ``entry``: the module that ``runtime.entry`` describes, of the same file, if there is one;
    ``programs``: what NumPy computes in the place of each kernel, where no library was loaded.
    """

    ffi: Any
    lib: Any
    path: Path
    programs: Mapping[str, Any] | None = None
    entry: Any = None


def keep_in_memory(file: str, find: Callable[[Op], Library]) -> None:
    """Let ``find`` give the kernels of the wrapper ``file``, which is no real path."""
    _in_memory[file] = find


def beside(file: str, op: Op) -> Library:
    """The kernels of the wrapper ``file`` (its ``__file__``).

    A shared object that lies beside the wrapper is taken if it was built from the C beside it;
    else one is taken from the user's cache, or compiled into it; else NumPy computes, with a
    warning, where its programs lie beside the wrapper.  Raises BuildError or CacheError for a
    wrapper in memory, and ImportError for one on disk.
    """
    if file in _in_memory:
        return _in_memory[file](op)
    folder = Path(file).parent
    texts = _texts_beside(op, folder)
    ready = folder / library_name(op)
    source = source_digest(op, texts)
    refused: BuildError | None = None
    if _is_fresh(ready, source) and _sources.setdefault(str(ready), source) == source:
        try:
            return load(ready, op)
        except BuildError as error:
            refused = error
    try:
        return from_cache(op, texts)
    except (BuildError, CacheError) as error:
        missing = ImportError(_missing(op, ready, refused, error), path=str(ready))
        return _on_numpy(Path(file), missing, error)


def _on_numpy(wrapper: Path, missing: ImportError, error: Exception) -> Library:
    """The programs for NumPy beside a wrapper.  Raises ``missing`` where there are none."""
    name = programs_name(wrapper.stem)
    if not wrapper.with_name(f"{name}.py").exists() or is_strict():
        raise missing from error
    from .on_numpy import NoFFI

    programs = importlib.import_module(f"{__package__.rpartition('.')[0]}.{name}")
    warnings.warn(f"{missing}\n  NumPy computes it", NumpyBackendWarning, stacklevel=4)
    return Library(NoFFI(), NoFFI(), wrapper, vars(programs))


def _missing(op: Op, ready: Path, refused: BuildError | None, error: SymgradError) -> str:
    """What a library lacks, or that there is none, and what would build it."""
    if refused is not None:
        return f"{op.name}: the library {ready.name} is there, but {refused}"
    found = "was not built from the C beside it" if ready.exists() else "is not there"
    return (
        f"{op.name}: the library {ready.name} {found}, and none can be compiled: {error}\n"
        f"  or run `symgrad build` on a machine like this one and copy the file here"
    )


def _texts_beside(op: Op, folder: Path) -> dict[str, str]:
    """The C files and the header that lie in a folder.  Raises ImportError."""
    texts = {}
    try:
        for name in op.texts:
            texts[name] = (folder / name).read_text(encoding="utf-8")
    except OSError as error:
        raise ImportError(f"{op.name}: {folder / name} is missing; rebuild the package") from error
    except UnicodeDecodeError as error:
        raise ImportError(f"{op.name}: {folder / name} is damaged; rebuild the package") from error
    return texts


def from_cache(op: Op, texts: Mapping[str, str], key_extra: str = "") -> Library:
    """The kernels of these texts, compiled where the cache lacks them: ``build.build_cached``."""
    with forks_wait():
        from .build import build_cached
        from .cache import door

    path = build_cached(op, texts, key_extra)
    return load(path, op, door(path))


def _is_fresh(path: Path, source: str) -> bool:
    """Is there a library at ``path``, whole, and built from this source?"""
    try:
        stamp = json.loads(path.with_name(f"{path.name}.json").read_text(encoding="utf-8"))
        data = path.read_bytes()
        as_built = stamp["library"] == bytes_digest(data)
        rewritten = bool(stamp["code"]) and stamp["code"] == code_digest(data)
        return bool(stamp["source"] == source and (as_built or (rewritten and _is_whole(data))))
    except Exception:  # the note may hold any bytes
        return False


def _is_whole(data: bytes) -> bool:
    """Do all segments of an ELF file lie inside of it?"""
    (first,) = struct.unpack_from("<Q", data, 0x20)
    size, count = struct.unpack_from("<HH", data, 0x36)
    headers = [struct.unpack_from("<IIQQQQ", data, first + size * one) for one in range(count)]
    return bool(headers) and all(offset + held <= len(data) for _, _, offset, _, _, held in headers)


def _extension(name: str, path: str) -> Any:
    """One of the modules in a shared object.  Raises ImportError."""
    loader = ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def load(path: Path, op: Op, door: Path | None = None) -> Library:
    """Import the shared object at ``path``.  Raises BuildError where the system refuses it.

    ``door``: another path to the same file, which is the one to use.
    """
    known = _loaded.get(str(path))
    if known is not None:
        return known
    if op.blas:
        preload(find_blas())
    try:
        module = _extension(op.module, str(door or path))
    except ImportError as error:
        needs_cffi = importlib.util.find_spec("_cffi_backend") is None
        raise BuildError(
            f"{path} cannot be loaded: {error}",
            hint="pip install cffi"
            if needs_cffi
            else f"delete it, so that it is rebuilt for Python {sys.version.split()[0]}",
        ) from error
    try:
        entry = _extension(f"{op.module}_entry", str(door or path))
    except ImportError:
        entry = None
    library = Library(module.ffi, module.lib, path, entry=entry)
    threads.register(library.lib)
    _loaded[str(path)] = library
    return library
