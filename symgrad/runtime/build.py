"""C text to a shared object, through cffi's API mode and the C compiler.

In: an ``Op`` and the text of its files.  Out: the path of a shared object that Python can import.
The same compiler makes the same bytes of the same text, in any folder.

Options are those of ``compiler``: optimised for this machine.  ``portable=True`` instead compiles
each kernel for several x86-64 levels and chooses at the first call; such a library runs anywhere.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from symgrad.abi import Op
from symgrad.errors import BuildError
from symgrad.forks import forks_wait
from symgrad.runtime import cache
from symgrad.runtime.binding import binding, declarations, dispatch
from symgrad.runtime.blas import Blas, find_blas
from symgrad.runtime.compiler import PREFIX_MAP, Compiler, find_compiler, start
from symgrad.runtime.digests import (
    STABLE,
    SUFFIX,
    digest,
    file_digest,
    library_name,
    source_digest,
    stamp,
)

_X86_LEVELS = (("v4", "-march=x86-64-v4"), ("v3", "-march=x86-64-v3"), ("base", "-march=x86-64"))
# A kernel whose prototype is not what its signature says must not be called.
_STRICT = ("-Werror=incompatible-pointer-types", "-Werror=implicit-function-declaration")
_AROUND = "-O1"
"""For what lies around kernels, which takes longer to compile than a small kernel does."""
_STABLE_API = "-DPy_LIMITED_API=0x030a0000"  # the oldest Python that is supported
_MOST_LINES = 12


def build_cached(
    op: Op, texts: Mapping[str, str], key_extra: str = "", *, portable: bool = False
) -> Path:
    """The shared object for ``op``, from the cache if it is there.

    ``texts`` maps the names in ``op.texts`` to C text; ``key_extra`` is whatever
    else the entry should stand for, such as the source of the backward.  The C lies beside the
    result.  Raises BuildError where it cannot be compiled and CacheError where it cannot be
    written anywhere.
    """
    compiler = find_compiler()
    blas = find_blas() if op.blas else None
    key = digest(
        source_digest(op, texts),
        binding(op),
        compiler.identity,
        repr((compiler.flags, _AROUND, compiler.link_flags, compiler.wrap, blas, portable)),
        _recipe(),
        f"{sys.implementation.cache_tag} {SUFFIX} {platform.machine()} {_cffi_version()}",
        key_extra,
    )[:40]

    def fill(folder: Path) -> None:
        compile_into(folder, op, texts, compiler, blas, portable=portable)

    return cache.entry(key, fill) / library_name(op)


def build_beside(folder: Path, op: Op, texts: Mapping[str, str], *, portable: bool = True) -> Path:
    """Put the shared object for ``op`` into ``folder``; an older one is replaced atomically.

    Beside it comes ``<name>.json`` with the digests of its sources and of its bytes.  What was
    built of the same before is taken from the cache.
    """
    made = cache.door(build_cached(op, texts, portable=portable))
    target = folder / made.name
    stamped = stamp(made.read_bytes(), source_digest(op, texts))
    with cache.scratch() as work:
        note = work / f"{made.name}.json"
        note.write_text(json.dumps(stamped, indent=1) + "\n", encoding="utf-8")
        cache.replace_file(made, target)
        cache.replace_file(note, folder / note.name)
    return target


def compile_into(
    folder: Path,
    op: Op,
    texts: Mapping[str, str],
    compiler: Compiler,
    blas: Blas | None = None,
    *,
    portable: bool = False,
) -> Path:
    """Write the C into ``folder`` and compile it there; return the shared object's path."""
    library = library_name(op)
    binding_file = f"{library.removesuffix(SUFFIX)}.c"
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    levels = _X86_LEVELS if portable and is_x86 else ()
    for file in op.texts:
        (folder / file).write_text(texts[file], encoding="utf-8")
    _write_binding(folder / binding_file, op)
    around = (_AROUND, *_no_paths(compiler, folder), *_python_options(compiler))
    objects = [_command(compiler, binding_file, around)]
    native = (flag for flag in compiler.flags if not (portable and flag.startswith("-march")))
    flags = (*native, *_no_paths(compiler, folder), *(blas.options if blas else ()))
    for file in op.files:
        if levels:
            objects += [
                _command(compiler, file, (*flags, march, *_renamed(op, level)), level)
                for level, march in levels
            ]
        else:
            objects.append(_command(compiler, file, flags))
    if levels:
        text = dispatch(op, tuple(level for level, _ in levels))
        (folder / "symgrad-dispatch.c").write_text(text, encoding="utf-8")
        objects.append(_command(compiler, "symgrad-dispatch.c", flags))
    _run_all(objects, folder)
    _run_all([_link_command(compiler, objects, library, blas)], folder)
    for command in objects:
        (folder / command[-1]).unlink()
    return folder / library


def _write_binding(path: Path, op: Op) -> None:
    try:
        with forks_wait():
            import cffi
            from cffi import recompiler

            ffi = cffi.FFI()  # which imports its parser
    except ImportError as error:
        raise BuildError(
            "cffi is not installed, so that kernels cannot be compiled", hint="pip install cffi"
        ) from error
    ffi.cdef(declarations(op))
    text = binding(op)
    ffi.set_source(op.module, text)
    recompiler.make_c_source(ffi, op.module, text, str(path))


def _cffi_version() -> str:
    """The version of cffi's compiled half, which is that of the whole and quick to import."""
    try:
        import _cffi_backend
    except ImportError as error:
        raise BuildError("cffi is not installed", hint="pip install cffi") from error
    return str(_cffi_backend.__version__)


@lru_cache(maxsize=1)
def _recipe() -> str:
    """The digest of this module: part of the keys of the cache, as a build depends on it."""
    try:
        return file_digest(Path(__file__))
    except OSError:
        return ""


def _python_options(compiler: Compiler) -> tuple[str, ...]:
    """For what cffi writes: Python's headers, and OpenMP for the setting of threads."""
    include = sysconfig.get_path("include")
    if not (Path(include) / "Python.h").exists():
        raise BuildError(
            f"Python.h is not in {include}",
            hint="install Python's headers (python3-dev or python3-devel)",
        )
    api = (_STABLE_API,) if SUFFIX == STABLE else ()
    wrap = ("-DSYMGRAD_WRAP",) if compiler.wrap else ()
    return (f"-I{include}", *api, *_STRICT, *wrap, *_openmp_option(compiler))


def _no_paths(compiler: Compiler, folder: Path) -> tuple[str, ...]:
    """The folder of the build is not told, where ``CC`` asks for what tells it (``gcc -g``)."""
    known = f"{PREFIX_MAP}/=/" in compiler.flags
    return (f"{PREFIX_MAP}{os.path.realpath(folder)}=.",) if known else ()


def _openmp_option(compiler: Compiler) -> tuple[str, ...]:
    return ("-fopenmp",) if "-fopenmp" in compiler.flags else ()


def _renamed(op: Op, level: str) -> tuple[str, ...]:
    """Options that give the kernels of one level names of their own."""
    names = (n for kernel in op.kernels for n in (kernel.name, f"{kernel.name}_workspace"))
    return tuple(f"-D{name}={name}_{level}" for name in names)


def _command(
    compiler: Compiler, file: str, options: tuple[str, ...], level: str = ""
) -> tuple[str, ...]:
    target = f"{Path(file).stem}{f'_{level}' if level else ''}.o"
    # No -I: a header of an op called Math must not be taken for <math.h>.
    return (*compiler.command, *options, "-fPIC", "-c", file, "-o", target)


def _link_command(
    compiler: Compiler, objects: list[tuple[str, ...]], library: str, blas: Blas | None
) -> tuple[str, ...]:
    darwin = sys.platform == "darwin"
    # Symbolic: a kernel's name means the kernel, whatever the process has under that name.
    elf = ("-shared", "-Wl,-Bsymbolic")
    shared = ("-bundle", "-undefined", "dynamic_lookup") if darwin else elf
    openmp = _openmp_option(compiler)
    files = tuple(command[-1] for command in objects)
    libraries = ((blas.library,) if blas else ()) + compiler.link_flags
    return (*compiler.command, *shared, *openmp, *compiler.wrap, *files, *libraries, "-o", library)


def _run_all(commands: list[tuple[str, ...]], folder: Path) -> None:
    """Run compilers side by side; BuildError with the output of the first that failed."""
    running: list[subprocess.Popen[str]] = []
    try:
        for command in commands:
            running.append(start(command, folder))
        said = ["".join(process.communicate()) for process in running]
        for process, command, text in zip(running, commands, said, strict=True):
            if process.returncode:
                raise _failed(command, text, process.returncode)
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
                process.communicate()


def _failed(command: tuple[str, ...], said: str, status: int) -> BuildError:
    lines = said.strip().splitlines() or [f"it ended with status {status}"]
    more = [f"... and {len(lines) - _MOST_LINES} lines more"] if len(lines) > _MOST_LINES else []
    text = "\n  ".join([*lines[:_MOST_LINES], *more])
    return BuildError(
        f"the C compiler failed:\n  {text}",
        hint=f"the command was: {shlex.join(command)}",
    )
