"""The user's C called from NumPy.

In: ``Source``.  Out: a function of arrays, compiled once and kept in the kernel cache.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from symgrad.custom.source import Source
from symgrad.errors import BuildError
from symgrad.runtime import cache
from symgrad.runtime.compiler import find_compiler, run
from symgrad.runtime.digests import digest

_MOST_LINES = 12
_POINTER = np.ctypeslib.ndpointer
_TYPES = (("float64", "double"), ("float32", "float"))


def compiled(source: Source) -> Callable[..., Any]:
    """The function on arrays of one shape, float32 or float64.

    Raises BuildError with what the compiler says, where there is none or it does not compile.
    """
    library = ctypes.CDLL(str(_library(source)))
    calls = {}
    for dtype, _ in _TYPES:
        call = getattr(library, f"over_{dtype}")
        call.argtypes = [ctypes.c_int64] + [ctypes.c_void_p] * (source.arity + 1)
        call.restype = None
        calls[np.dtype(dtype)] = call

    def function(*arrays: Any) -> Any:
        shape, dtype = np.shape(arrays[0]), np.asarray(arrays[0]).dtype
        given = [np.ascontiguousarray(array, dtype) for array in arrays]
        result = np.empty(shape, dtype)
        pointers = [array.ctypes.data for array in (*given, result)]
        calls[dtype](result.size, *pointers)
        return result

    return function


def _library(source: Source) -> Path:
    """The shared object, from the cache if it is there."""
    compiler = find_compiler()
    text = _text(source)
    key = digest("custom", text, compiler.identity, repr((compiler.flags, compiler.link_flags)))

    def fill(folder: Path) -> None:
        (folder / "custom.c").write_text(text, encoding="utf-8")
        words = [
            *compiler.command, *compiler.flags, "-Werror=implicit-function-declaration", "-fPIC",
            "-shared", "custom.c", "-o", "custom.so", *compiler.link_flags, "-Wl,--no-undefined",
        ]  # fmt: skip
        done = run(words, cwd=folder)
        if done.returncode:
            said = "\n".join((done.stderr or done.stdout).strip().splitlines()[:_MOST_LINES])
            raise BuildError(f"the C of {source.name!r} does not compile:\n{said}")

    return cache.door(cache.entry(key[:40], fill) / "custom.so")


def _text(source: Source) -> str:
    """The user's C and a loop over arrays of each type."""
    parts = ["#include <math.h>\n#include <stdint.h>\n", source.text]
    for dtype, kind in _TYPES:
        suffix = "f" if kind == "float" and source.single else ""
        arrays = ", ".join(f"const {kind} *x{place}" for place in range(source.arity))
        operands = ", ".join(f"x{place}[i]" for place in range(source.arity))
        parts.append(
            f"void over_{dtype}(int64_t n, {arrays}, {kind} *y)\n{{\n"
            f"    for (int64_t i = 0; i < n; i++)\n"
            f"        y[i] = ({kind})symgrad_{source.name}{suffix}({operands});\n}}\n"
        )
    return "\n".join(parts)
