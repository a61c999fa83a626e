"""The numbers of ``exp`` in C, found again; and its error at every number of f32.

    python -m benchmarks.exponential [--every]

Out: for each format the terms of the polynomial ``1 + r + terms[0] r**2 + ...`` that is nearest to
``e**r``, by the algorithm of Remez, relative to it.  ``--every`` compiles the function of
``symgrad/ops/exponential_c.py`` with and without fused instructions, and compares it with the
exponential of doubles at all numbers of f32, a minute each on two cores: 0.909 and 0.777 ulp.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import tempfile
from pathlib import Path

import mpmath
import numpy as np

from symgrad.codegen.emit.file import prelude
from symgrad.ops.exponential_c import F32, F64
from symgrad.runtime.compiler import ARITHMETIC, find_compiler

GRID = 300
FURTHEST = {F32: "0.3468", F64: "0.3466"}
"""As far as r goes: half of ln 2, and what rounding adds."""

PROGRAM = r"""
#include <stdio.h>
#include <string.h>

int main(void)
{
    double worst = 0.0;
    int64_t wrong = 0;
    #pragma omp parallel for schedule(dynamic) reduction(max:worst) reduction(+:wrong)
    for (int64_t block = 0; block < 65536; block++) {
        float x[65536], y[65536];
        for (int64_t i = 0; i < 65536; i++) {
            const uint32_t bits = (uint32_t)(block << 16 | i);
            memcpy(x + i, &bits, 4);
        }
        #pragma omp simd
        for (int64_t i = 0; i < 65536; i++)
            y[i] = symgrad_@f(x[i]);
        for (int64_t i = 0; i < 65536; i++) {
            const double exact = @((double)x[i]);
            const float nearest = (float)exact;
            if (isnan(x[i]) || isinf(nearest) || isinf(y[i])) {
                wrong += isnan(x[i]) ? !isnan(y[i]) : y[i] != nearest;
                continue;
            }
            int exponent;
            frexp(exact, &exponent);
            const double ulp = ldexp(1.0, (exponent < -125 ? -125 : exponent) - 24);
            worst = fmax(worst, fabs(y[i] - exact) / ulp);
        }
    }
    printf("%.4f ulp at worst; %lld special values are wrong\n", worst, (long long)wrong);
    return 0;
}
"""


def nearest(count: int, furthest: mpmath.mpf) -> tuple[list[mpmath.mpf], mpmath.mpf]:
    """``count`` terms, and their relative error, which is as large ``count + 1`` times."""
    points = [
        furthest * mpmath.cos(mpmath.pi * (2 * place + 1) / (2 * count + 2))
        for place in range(count + 1)
    ]
    while True:
        rows = [
            [x ** (power + 2) * mpmath.exp(-x) for power in range(count)] + [(-1) ** place]
            for place, x in enumerate(points)
        ]
        wanted = [1 - (1 + x) * mpmath.exp(-x) for x in points]
        *terms, _ = mpmath.lu_solve(mpmath.matrix(rows), mpmath.matrix(wanted))
        peaks: list[tuple[mpmath.mpf, mpmath.mpf, bool]] = []  # the worst one between two zeros
        for place in filter(None, range(-GRID, GRID + 1)):  # at 0 there is no error
            x = furthest * place / GRID
            value = 1 + x + sum(term * x ** (power + 2) for power, term in enumerate(terms))
            peak = abs(value * mpmath.exp(-x) - 1), x, value > mpmath.exp(x)
            if peaks and peaks[-1][2] == peak[2]:
                peaks[-1] = max(peaks[-1], peak)
            else:
                peaks.append(peak)
        while len(peaks) > count + 1:
            peaks.remove(min(peaks[0], peaks[-1]))
        found = [x for _, x, _ in peaks]
        if len(found) <= count or found == points:
            return terms, max(peaks)[0]
        points = found


def every(name: str) -> None:
    """Print what is found of a function at all numbers of f32, with and without fused ones."""
    fused = ["native", "x86-64"] if platform.machine() in ("x86_64", "AMD64") else ["native"]
    for level in fused:
        with tempfile.TemporaryDirectory() as folder:
            source, program = Path(folder, "every.c"), Path(folder, "every")
            source.write_text(prelude() + PROGRAM.replace("@", name), encoding="utf-8")
            words = [*find_compiler().command, "-O3", *ARITHMETIC, "-fopenmp", f"-march={level}"]
            subprocess.run([*words, str(source), "-lm", "-o", str(program)], check=True)
            print(level, end=" ", flush=True)
            subprocess.run([str(program)], check=True)


def main() -> None:
    """Print the numbers, and with ``--every`` the errors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--every", action="store_true", help="compare at all numbers of f32")
    options = parser.parse_args()
    mpmath.mp.dps = 40
    for form, dtype in ((F32, np.float32), (F64, np.float64)):
        terms, worst = nearest(len(form.terms), mpmath.mpf(FURTHEST[form]))
        found = [dtype(str(term)) for term in terms]
        same = "as" if found == [dtype(term) for term in form.terms] else "not as"
        print(form.kind, *found, f"2**{float(mpmath.log(worst, 2)):.2f}, {same} in the source")
    if options.every:
        every("exp")


if __name__ == "__main__":
    main()
