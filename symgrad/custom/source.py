"""The user's C: what it defines, under names that meet no others; compiled and called.

In: C text, or the name of a symbol of the C library.  Out: ``Source``; a function of arrays,
compiled once and kept in the kernel cache.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from symgrad.errors import BuildError, SymgradError
from symgrad.runtime import cache
from symgrad.runtime.compiler import find_compiler, run
from symgrad.runtime.digests import digest

MOST_OPERANDS = 3
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DEFINITION = re.compile(
    r"^[ \t]*(?P<before>(?:(?:static|inline|const)\s+)*)(?P<result>\w+)\s+(?P<name>\w+)"
    r"\s*\((?P<parameters>[^()]*)\)\s*\{",
    re.MULTILINE,
)
_MOST_LINES = 12
_TYPES = (("float64", "double"), ("float32", "float"))
_KEYWORDS = frozenset(("if", "for", "while", "switch", "return", "else", "do"))


class CustomOpError(SymgradError, ValueError):
    """A custom op is not what it is declared to be, or cannot be declared so."""


@dataclass(frozen=True)
class Source:
    """C text that defines ``symgrad_<name>`` on doubles; ``single``: and ``symgrad_<name>f``."""

    name: str
    arity: int
    text: str
    single: bool


def from_text(name: str, text: str) -> Source:
    """The user's text, its functions renamed.  Raises CustomOpError for a wrong signature."""
    bare = _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    found = {
        match["name"]: match for match in _DEFINITION.finditer(bare)
        if match["result"] not in _KEYWORDS and match["name"] not in _KEYWORDS
    }  # fmt: skip
    if name not in found:
        defined = ", ".join(found) or "no function"
        raise CustomOpError(
            f"the C of {name!r} defines {defined}, not {name}",
            hint=f"write: double {name}(double x) {{ return ...; }}",
        )
    arity = _arity(name, found[name], "double")
    single = f"{name}f" in found
    if single and _arity(f"{name}f", found[f"{name}f"], "float") != arity:
        raise CustomOpError(f"{name}f takes another number of operands than {name}")
    renamed = _renamed(name, text, bare, found)
    return Source(name, arity, renamed.strip() + "\n", single)


def _arity(name: str, match: re.Match[str], kind: str) -> int:
    """The number of operands of a function, all of one type, which it returns."""
    words = [re.sub(r"\bconst\b", "", word).split() for word in match["parameters"].split(",")]
    fits = all(len(word) == 2 and word[0] == kind for word in words)
    if match["result"] != kind or not fits or len(words) > MOST_OPERANDS:
        said = f"{match['result']} {name}({' '.join(match['parameters'].split())})"
        raise CustomOpError(
            f"a custom op is a function of one to {MOST_OPERANDS} {kind}s that returns a {kind}, "
            f"not {said}",
            hint=f"{kind} {name}({kind} x)",
        )
    return len(words)


def _renamed(name: str, text: str, bare: str, found: dict[str, re.Match[str]]) -> str:
    """The text with every function it defines static, and under a name of its own."""
    own = {name: f"symgrad_{name}", f"{name}f": f"symgrad_{name}f"}
    names = {word: own.get(word, f"symgrad_{name}_{word}") for word in found}
    starts = {
        match.start("result") for match in found.values() if "static" not in match["before"]
    }  # fmt: skip
    word = re.compile(r"\b(?:" + "|".join(map(re.escape, names)) + r")\b")
    parts, last = [], 0
    marks = sorted([(m.start(), m.end(), names[m.group()]) for m in word.finditer(bare)]
                   + [(start, start, "static ") for start in starts])  # fmt: skip
    for start, end, put in marks:
        parts += [text[last:start], put]
        last = end
    return "".join([*parts, text[last:]])


def from_symbol(name: str, symbol: str, arity: int) -> Source:
    """A function of the C library, declared as one of doubles.  Raises CustomOpError."""
    if not symbol.isidentifier() or not 1 <= arity <= MOST_OPERANDS:
        raise CustomOpError(f"{symbol!r} is not the name of a C function of 1 to 3 doubles")
    kinds = ", ".join(["double"] * arity)
    parameters = ", ".join(f"double x{place}" for place in range(arity))
    operands = ", ".join(f"x{place}" for place in range(arity))
    text = (
        f"double {symbol}({kinds});\n\n"
        f"static double symgrad_{name}({parameters})\n{{\n    return {symbol}({operands});\n}}\n"
    )
    return Source(name, arity, text, single=False)


# -- called from NumPy


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
        done = run(words, folder=folder)
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
