"""The BLAS that contractions go to: where its header and library are, how its symbols are named.

In: the installed packages and ``SYMGRAD_BLAS``.  Out: a ``Blas`` record; ``preload`` makes the
library known to the process.

The default is the ``scipy-openblas32`` wheel, whose symbols are called ``scipy_cblas_sgemm`` and so
on.  ``SYMGRAD_BLAS=/path/to/libopenblas.so`` names another library with 32-bit integers; its
``cblas.h`` is sought in ``SYMGRAD_BLAS_INCLUDE``, then where the compiler looks.  Emitted C says
``cblas_sgemm``; ``options`` put the prefix there.

The BLAS always runs single-threaded.  Kernels call it inside their own parallel regions, where each
thread multiplies a block of rows, so that a result has the same bits for any number of threads.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from .errors import BuildError

FUNCTIONS = tuple(
    f"cblas_{kind}{name}"
    for name in ("axpy", "dot", "gemm", "gemv", "ger", "scal", "symm", "syrk", "trmm", "trsm")
    for kind in "sd"
)
_SUFFIXES = {"darwin": ".dylib"}
_preloaded: dict[str, ctypes.CDLL] = {}


@dataclass(frozen=True)
class Blas:
    """A library with a C interface; ``library`` is an absolute path, ``include`` may be empty."""

    library: str
    include: str
    prefix: str

    @property
    def options(self) -> tuple[str, ...]:
        """Compiler options: the prefix before the names in ``FUNCTIONS``, where ``cblas.h`` is."""
        names = FUNCTIONS if self.prefix else ()
        include = (f"-I{self.include}",) if self.include else ()
        return (*(f"-D{name}={self.prefix}{name}" for name in names), *include)


def _chosen() -> Blas | None:
    """The library that the environment names."""
    path = os.environ.get("SYMGRAD_BLAS", "")
    if not path:
        return None
    library = _open(path)
    prefixes = [p for p in ("", "scipy_") if hasattr(library, f"{p}cblas_sgemm")]
    if not prefixes:
        raise BuildError(
            f"SYMGRAD_BLAS={path} has no function cblas_sgemm",
            hint="name the shared library of a BLAS with a C interface, or unset SYMGRAD_BLAS",
        )
    include = os.environ.get("SYMGRAD_BLAS_INCLUDE", "")
    return Blas(os.path.abspath(path), include, prefixes[0])


def _wheel() -> Blas | None:
    """The library in the ``scipy-openblas32`` wheel, found without importing the package."""
    spec = importlib.util.find_spec("scipy_openblas32")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0])
    suffix = _SUFFIXES.get(sys.platform, ".so")
    found = sorted((folder / "lib").glob(f"libscipy_openblas*{suffix}"))
    return Blas(str(found[0].absolute()), str(folder / "include"), "scipy_") if found else None


def find_blas() -> Blas:
    """The BLAS to build with and to load.  Raises BuildError where there is none."""
    found = _chosen() or _wheel()
    if found is None:
        raise BuildError(
            "no BLAS with a C interface is installed",
            hint="pip install scipy-openblas32, or set SYMGRAD_BLAS to a shared library",
        )
    return found


def _open(path: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise BuildError(
            f"the BLAS library cannot be loaded: {error}",
            hint="check SYMGRAD_BLAS, or reinstall scipy-openblas32",
        ) from error


def preload(blas: Blas) -> None:
    """Load the library once, by its absolute path, and make it single-threaded.

    A kernel's shared object then needs no search path: the loader finds a library that is already
    in the process by its name.  Its symbols stay private to what links with it, so that they
    cannot replace those of another copy of the same BLAS, such as SciPy's.
    """
    if blas.library in _preloaded:
        return
    library = _open(blas.library)
    for name in ("openblas_set_num_threads", "MKL_Set_Num_Threads", "bli_thread_set_num_threads"):
        function = getattr(library, blas.prefix + name, None)
        if function is not None:
            function(ctypes.c_int(1))
    _preloaded[blas.library] = library
