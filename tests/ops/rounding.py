"""Bounds on what rounding does to functions of C, by balls; and these functions, compiled.

In: the format, and whether ``a * b + c`` is rounded once.  Out: values with their errors; arrays.
"""

from __future__ import annotations

import ctypes
import math
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from flint import arb

from symgrad.codegen.emit.file import prelude
from symgrad.ops.exponential_c import F32, Exponential
from symgrad.runtime.compiler import ARITHMETIC, find_compiler

LEVELS = ["native"]
if platform.machine().lower() in ("x86_64", "amd64"):
    LEVELS.append("x86-64")  # which has no fused instructions


def dtype(form: Exponential) -> Any:
    return np.float32 if form is F32 else np.float64


def exact(form: Exponential, value: float) -> arb:
    """A number as C reads it."""
    return arb(float(dtype(form)(value)))


def top(ball: arb) -> float:
    """The greatest magnitude in a ball, and a little more."""
    return float(ball.abs_upper()) * (1 + 1e-15)


class Rounding:
    """Each operation is off by half of an ulp of its result at most.

    Where processors round ``a * b + c`` once, one of two roundings is left out.
    """

    def __init__(self, form: Exponential, fused: bool) -> None:
        self.form, self.fused = form, fused

    def half(self, most: float) -> float:
        """Half of an ulp of numbers up to ``most``, or of subnormal ones."""
        place = max(math.frexp(most)[1] - 1, self.form.lowest) - self.form.digits
        return math.ldexp(0.5, place)

    def fma(
        self, a: tuple[arb, float], r: arb, c: arb, off: float = 0.0
    ) -> tuple[arb, float]:  # fmt: skip
        """``a r + c`` with the errors of a, and of r (``off``): its values, and its error."""
        value = a[0] * r + c
        error = a[1] * (top(r) + off) + off * top(a[0])
        twice = 0 if self.fused else self.half(top(a[0] * r) + error)
        return value, error + self.half(top(value) + error + twice) + twice

    def horner(self, terms: Sequence[arb], r: arb, off: float = 0.0) -> tuple[arb, float]:
        """A polynomial of r, whose least coefficient comes first."""
        value: tuple[arb, float] = (terms[-1], 0.0)
        for term in terms[-2::-1]:
            value = self.fma(value, r, term, off)
        return value


TEXT = """
void run{f}(int64_t n, const {kind} *restrict x, {kind} *restrict y);
void run{f}(int64_t n, const {kind} *restrict x, {kind} *restrict y)
{{
    #pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = symgrad_{name}{f}(x[i]);
}}
"""


class Built:
    """A function of arrays, as a C compiler makes it."""

    def __init__(self, folder: Path, level: str, name: str, forms: Sequence[Exponential]) -> None:
        source, library = folder / "function.c", folder / "function.so"
        loops = (TEXT.format(f=one.suffix, kind=one.kind, name=name) for one in forms)
        source.write_text(prelude() + "".join(loops), encoding="utf-8")
        words = [*find_compiler().command, "-O3", "-Wall", "-Wextra", "-Werror", *ARITHMETIC]
        words += ["-fopenmp-simd", f"-march={level}", "-shared", "-fPIC"]
        subprocess.run([*words, str(source), "-lm", "-o", str(library)], check=True)
        self.library = ctypes.CDLL(str(library))

    def __call__(self, form: Exponential, x: Any) -> Any:
        x = np.ascontiguousarray(x, dtype(form))
        y = np.empty_like(x)
        function = getattr(self.library, f"run{form.suffix}")
        function(ctypes.c_int64(x.size), *(ctypes.c_void_p(one.ctypes.data) for one in (x, y)))
        return y
