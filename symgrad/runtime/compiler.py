"""The C compiler of this machine: which one, and which of our options it understands.

In: ``CC`` and what Python was built with.  Out: a ``Compiler`` record.

One call of the compiler tells its version and the instruction set that ``-march=native`` means.
Both go into the keys of the cache, so that different machines can share a home directory.  The
answer, and the options that the compiler takes, are noted in the cache for this program on this
processor: kernels that are already there load without a call of the compiler.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

from symgrad.errors import BuildError
from symgrad.forks import forks_wait
from symgrad.runtime import cache
from symgrad.runtime.digests import digest

PREFIX_MAP = "-ffile-prefix-map="
ARITHMETIC = ("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off")
"""What floating point may leave out, and that it rounds each operation."""
# Wanted of every build; what a compiler does not know is left out.
_COMMON = (
    "-std=gnu11",
    "-O3",
    "-mprefer-vector-width=512",
    *ARITHMETIC,
    "-fopenmp",
    f"{PREFIX_MAP}/=/",  # changes nothing, and shows that it is known
)
_NATIVE = "-march=native"
_LINK = ("-lmvec", "-lm")
_WRAPPED = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
WRAP = (f"-Wl,{','.join(f'--wrap={name}' for name in _WRAPPED)},-z,nodelete",)
"""What lets kernels call the functions of ``team_c``, for as long as its threads are there."""
_OPTIONS = (_COMMON, _LINK, WRAP)
_PROGRAM = "int main(void) { return 0; }\n"
_OF_GCC = "#ifdef __clang__\n#error it calls other functions for a region\n#endif\n" + _PROGRAM
_HINT = "install a C compiler (gcc or clang), or set CC to one"


@dataclass(frozen=True)
class Compiler:
    """A working compiler: how to call it, the options it takes, and who it is.

    ``wrap``: the options of a link in which regions run on threads of our own.
    """

    command: tuple[str, ...]
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    wrap: tuple[str, ...]
    identity: str

    @property
    def version(self) -> str:
        """The first line of what it says of itself, for manifests."""
        done = run([*self.command, "--version"])
        return done.stdout.splitlines()[0] if done.stdout else self.command[0]


def start(command: Sequence[str], folder: Path | None = None) -> subprocess.Popen[str]:
    """Start the compiler.  Raises BuildError where that fails."""
    try:
        with forks_wait():
            return subprocess.Popen(
                command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, errors="replace",
                env={**os.environ, "LC_ALL": "C"},
            )  # fmt: skip
    except OSError as error:
        raise BuildError(
            f"the C compiler {shlex.join(command[:1])} cannot be run: {error.strerror}", hint=_HINT
        ) from error


def run(
    command: Sequence[str], text: str = "", folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the compiler.  Raises BuildError where it cannot be started."""
    with start(command, folder) as process:
        said, complaints = process.communicate(text)
    return subprocess.CompletedProcess(command, process.returncode, said, complaints)


def _candidates() -> list[tuple[str, ...]]:
    """The commands to try, the user's own alone where there is one."""
    chosen = os.environ.get("CC", "").strip()
    if chosen:
        try:
            return [tuple(shlex.split(chosen))]
        except ValueError as error:
            raise BuildError(f"CC={chosen} cannot be read: {error}", hint=_HINT) from error
    built_with = shlex.split(sysconfig.get_config_var("CC") or "")[:1]
    names = dict.fromkeys([*built_with, "cc", "gcc", "clang"])
    return [(name,) for name in names if shutil.which(name)]


def _identify(command: tuple[str, ...], where: str, *, native: bool) -> str | None:
    """A digest of the compiler's own macros; None where it does not take ``-march=native``."""
    options = [_NATIVE] if native else []
    done = run([*command, *options, "-dM", "-E", "-x", "c", "-"])
    if done.returncode != 0 or not done.stdout:
        return None
    return digest(where, repr(command), done.stdout)


def _takes(command: tuple[str, ...], options: tuple[str, ...]) -> bool:
    """Does a program compile and link with these options, without a warning?"""
    program = _OF_GCC if WRAP[0] in options else _PROGRAM
    with cache.scratch() as folder:
        words = [*command, "-Werror", "-x", "c", "-", "-o", "probe", *options]
        return run(words, program, folder).returncode == 0


def _understood(command: tuple[str, ...], options: tuple[str, ...]) -> tuple[str, ...]:
    """Those of ``options`` that the compiler takes: all together, else one by one."""
    if _takes(command, options):
        return options
    if not _takes(command, ()):
        raise _not_working(command)
    return tuple(option for option in options if _takes(command, (option,)))


def _not_working(command: tuple[str, ...]) -> BuildError:
    done = run([*command, "--version"])
    said = (done.stderr or done.stdout).strip().splitlines()
    what = f"the C compiler {shlex.join(command)} does not compile an empty program"
    return BuildError(what + (f": {said[0]}" if said else ""), hint=_HINT)


@lru_cache(maxsize=8)
def _probe(command: tuple[str, ...]) -> Compiler:
    """The compiler behind ``command``, from the note of an earlier probe where there is one."""
    where = shutil.which(command[0])
    if where is None:
        raise BuildError(f"the C compiler {command[0]} cannot be run: no such program", hint=_HINT)
    note = f"compiler-{digest(repr((command, _stamp(where), *_OPTIONS)), _processor())[:40]}"
    known = (cache.read_note(note) or "").split("|")
    if len(known) != 1 + len(_OPTIONS):
        known = list(_asked(command, where))
        cache.write_note(note, "|".join(known))
    identity, flags, links, wrap = known
    return Compiler(
        command, tuple(flags.split()), tuple(links.split()), tuple(wrap.split()), identity
    )


def _asked(command: tuple[str, ...], where: str) -> tuple[str, ...]:
    """Who the compiler is and which options it takes, by calling it."""
    identity = _identify(command, where, native=True)
    native = (_NATIVE,) if identity else ()
    identity = identity or _identify(command, where, native=False)
    if identity is None:
        raise _not_working(command)
    understood = _understood(command, tuple(chain(*_OPTIONS)))
    flags, *others = ([one for one in options if one in understood] for options in _OPTIONS)
    return identity, *map(" ".join, ((*flags, *native), *others))


def _stamp(where: str) -> tuple[str, int, int]:
    """Changes when the program is replaced."""
    found = os.stat(where)
    return where, found.st_mtime_ns, found.st_size


def _processor() -> str:
    """What this processor can do: the lasting lines of the first block of ``/proc/cpuinfo``."""
    try:
        with open("/proc/cpuinfo", "rb") as file:
            block = file.read(8192).partition(b"\n\n")[0].decode("ascii", "replace")
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    kept = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU ")
    return "\n".join(line for line in block.splitlines() if line.startswith(kept))


def find_compiler() -> Compiler:
    """The compiler to use: ``CC`` if it is set, else the one Python was built with, else ``cc``.

    Raises BuildError where there is none or where it does not work.
    """
    if sys.platform == "win32":
        raise BuildError("kernels are not built on Windows yet", hint="use WSL")
    candidates = _candidates()
    if not candidates:
        raise BuildError("no C compiler was found", hint=_HINT)
    problem = BuildError("CC is empty", hint=_HINT)
    for command in candidates:
        try:
            return _probe(command)
        except BuildError as error:
            problem = error
    raise problem
