"""Products of matrices in C: subnormal numbers count as zero in them, and nowhere else."""

from __future__ import annotations

import ctypes
import platform
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.codegen.emit.file import included, prelude
from symgrad.ops.products_c import FLUSHED
from symgrad.runtime.compiler import ARITHMETIC, find_compiler
from symgrad.validate.definitions import without_definitions
from symgrad.validate.source import Unsupported, parse

FLUSHES = platform.machine().lower() in ("x86_64", "amd64")
needs_mode = pytest.mark.skipif(not FLUSHES, reason="this processor has no such mode here")
DTYPES = [pytest.param(np.float32, id="f32"), pytest.param(np.float64, id="f64")]
ZEROS, INVALID, OVERFLOW, UPWARD = 0x8040, 1, 8, 0x4000
USUAL = 0x1F80  # all that is noted is masked

# -- how the BLAS is called

BLAS = """
static unsigned modes[8];
static int calls;
static unsigned noted;

static void called(void)
{{
    modes[calls++ % 8] = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | noted);
}}
{definitions}
/* How often the BLAS was called; out: its modes, and the mode behind. */
int run(int wide, unsigned mode, unsigned note, int64_t n, const void *a, const void *b, int added,
    void *c, unsigned *out);
int run(int wide, unsigned mode, unsigned note, int64_t n, const void *a, const void *b, int added,
    void *c, unsigned *out)
{{
    const unsigned before = __builtin_ia32_stmxcsr();
    calls = 0;
    noted = note;
    __builtin_ia32_ldmxcsr(mode);
    if (wide) gemm_f64(PLAIN, TRANSPOSED, n, n, n, a, n, b, n, added, c, n);
    else gemm_f32(PLAIN, TRANSPOSED, n, n, n, a, n, b, n, (float)added, c, n);
    out[2] = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before);
    out[0] = modes[0];
    out[1] = modes[1];
    return calls;
}}
"""


class Watched:
    """The products, with a BLAS that notes how it is called, and computes nothing."""

    def __init__(self, folder: Path) -> None:
        source, library = folder / "product.c", folder / "product.so"
        declared = re.findall(r"void cblas_[sd]gemm\([^;]*\);", prelude())
        bodies = [re.sub(r";$", "\n{", one) + used(one) + "    called();\n}\n" for one in declared]
        text = prelude() + BLAS.format(definitions="\n".join(bodies))
        source.write_text(text, encoding="utf-8")
        words = [*find_compiler().command, "-O3", "-Wall", "-Wextra", "-Werror", *ARITHMETIC]
        words += ["-shared", "-fPIC", str(source), "-lm", "-o", str(library)]
        subprocess.run(words, check=True)
        self.library = ctypes.CDLL(str(library))

    def __call__(
        self, a: Any, b: Any, *, mode: int = USUAL, noted: int = 0, added: bool = False
    ) -> tuple[list[int], int]:
        """The mode of each call of the BLAS, and the mode after the product."""
        out = (ctypes.c_uint32 * 3)()
        c = np.zeros_like(a)
        pointers = [ctypes.c_void_p(one.ctypes.data) for one in (a, b, c)]
        count = self.library.run(
            int(a.dtype.itemsize == 8), ctypes.c_uint32(mode), ctypes.c_uint32(noted),
            ctypes.c_int64(len(a)), *pointers[:2], int(added), pointers[2], out,
        )  # fmt: skip
        return list(out)[:count], out[2]


def used(declaration: str) -> str:
    """Statements that use all parameters."""
    names = re.findall(r"(\w+)[,)]", declaration)
    return "\n" + "".join(f"    (void){name};\n" for name in names)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    return Watched(tmp_path_factory.mktemp("product"))


@pytest.fixture(params=DTYPES)
def ones(request: pytest.FixtureRequest) -> Any:
    return np.ones((3, 3), request.param)


@needs_mode
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("mode", [USUAL, USUAL | UPWARD, USUAL | ZEROS, USUAL | INVALID])
def test_the_mode_is_set_for_the_call_alone(
    watched: Watched, ones: Any, mode: int, added: bool
) -> None:
    calls, after = watched(ones, ones, mode=mode, added=added)
    assert calls == [(mode & ~INVALID) | ZEROS]
    assert after == mode


@needs_mode
def test_what_was_noted_stays(watched: Watched, ones: Any) -> None:
    calls, after = watched(ones, ones, noted=OVERFLOW)
    assert calls == [USUAL | ZEROS]
    assert after == USUAL | OVERFLOW


@needs_mode
def test_what_was_invalid_is_computed_again_as_it_is(watched: Watched, ones: Any) -> None:
    calls, after = watched(ones, ones, noted=INVALID)
    assert calls == [USUAL | ZEROS, USUAL | INVALID]
    assert after == USUAL | INVALID


@needs_mode
@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("place", [(0, 0), (2, 2), (1, 2)])
@pytest.mark.parametrize("left", [True, False])
def test_what_is_added_to_is_computed_once(
    watched: Watched, ones: Any, number: float, place: tuple[int, int], left: bool
) -> None:
    other = ones.copy()
    other[place] = number
    factors = (other, ones) if left else (ones, other)
    calls, after = watched(*factors, noted=INVALID, added=True)
    assert [one & ~INVALID for one in calls] == [USUAL]
    assert after == USUAL | INVALID


# -- what the validator reads


def test_the_products_are_read_as_what_they_mean() -> None:
    text = included(f'#include "_prelude.h"\n{CALLS}', prelude())
    bare, _ = without_definitions(text)
    assert "flush" not in bare
    assert bare.count("\n") == text.count("\n")
    assert {"gemm_f32", "gemm_f64", "product_f32"} <= parse(text).functions.keys()


CALLS = """
int64_t of_products(const float *x, float *y, const double *u, double *v)
{
    gemm_f32(PLAIN, PLAIN, 1, 1, 1, x, 1, x, 1, 0.0f, y, 1);
    gemm_f64(PLAIN, PLAIN, 1, 1, 1, u, 1, u, 1, 0.0, v, 1);
    return 0;
}
"""


@pytest.mark.parametrize(("old", "new"), [
    ("0x8040u", "0xe040u"), ("ldmxcsr(mode | noted)", "ldmxcsr(noted)"),
    ("a, lda, b, ldb, beta", "b, lda, a, ldb, beta"), ("noinline, unused", "unused"),
    ("isfinite", "isnan"), ("&& fresh)", ")"),
])  # fmt: skip
def test_other_products_are_refused(old: str, new: str) -> None:
    assert old in FLUSHED
    text = included(f'#include "_prelude.h"\n{CALLS}', prelude().replace(old, new))
    with pytest.raises(Unsupported):
        parse(text)


# -- kernels


def forward(ctx: Any, x: Any, w: Any) -> Any:
    return (x @ w.T) * 1.0


Linear = type("Linear", (sg.Function,), {"forward": staticmethod(forward)})


@pytest.fixture(scope="module", params=DTYPES)
def linear(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    short = {np.float32: "f32", np.float64: "f64"}[request.param]
    return sg.compile(Linear, f"{short}[n m]", f"{short}[k m]", validate=True), request.param


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    yield
    sg.set_num_threads(0)


SIZES = [(640, 96, 96), (300, 120, 130), (5, 70, 80)]
"""Rows that are cut into groups whose products are added up, or into fewer, or not at all."""


def drawn(dtype: Any, sizes: tuple[int, int, int]) -> list[Any]:
    """x, w and the cotangent; one of 16 numbers is subnormal."""
    n, m, k = sizes
    random = np.random.default_rng(n)
    found = []
    for shape in ((n, m), (k, m), (n, k)):
        one = random.standard_normal(shape).astype(dtype)
        few = random.random(shape) < 1 / 16
        one[few] = np.finfo(dtype).smallest_subnormal * dtype(12345)
        found.append(one)
    return found


def results(op: Any, x: Any, w: Any, cotangent: Any) -> list[Any]:
    y, residuals = op.forward(x, w)
    return [y, *op.backward(residuals, cotangent)]


def exact(x: Any, w: Any, cotangent: Any) -> list[tuple[Any, float]]:
    """The three products in a wider type, and what rounding and zeros may change at most."""
    found = []
    for left, right in ((x, w.T), (cotangent, w), (cotangent.T, x)):
        info, terms = np.finfo(left.dtype), left.shape[1]
        a, b = (one.astype(np.longdouble) for one in (left, right))
        most = max(np.abs(left).max(), np.abs(right).max())
        zeros = terms * (2 * most + 3) * info.tiny
        found.append((a @ b, terms * info.eps * (np.abs(a) @ np.abs(b)).max() + zeros))
    return found


@pytest.mark.parametrize("sizes", SIZES)
def test_a_result_changes_by_little(linear: tuple[Any, Any], sizes: tuple[int, int, int]) -> None:
    op, dtype = linear
    data = drawn(dtype, sizes)
    for found, (wanted, most) in zip(results(op, *data), exact(*data), strict=True):
        assert np.abs(found - wanted).max() <= most


@pytest.mark.parametrize("sizes", SIZES)
def test_the_same_bits_for_all_numbers_of_threads(
    linear: tuple[Any, Any], sizes: tuple[int, int, int]
) -> None:
    op, dtype = linear
    data = drawn(dtype, sizes)
    seen = []
    for count in (1, 2, 3, 5):
        sg.set_num_threads(count)
        seen.append([one.tobytes() for one in results(op, *data)])
    assert all(one == seen[0] for one in seen)


@pytest.mark.parametrize("sizes", SIZES)
def test_infinities_and_nan_are_what_they_were(
    linear: tuple[Any, Any], sizes: tuple[int, int, int]
) -> None:
    """Also where an infinity meets a subnormal number, which is not zero."""
    op, dtype = linear
    for seed in range(4):
        data = drawn(dtype, sizes)
        random = np.random.default_rng(seed)
        for one, other in zip(data, (np.inf, -np.inf, np.nan), strict=True):
            for value in (np.inf, other)[: 1 + seed % 2]:
                one[tuple(random.integers(size) for size in one.shape)] = value
        with np.errstate(all="ignore"):
            wanted = [one for one, _ in exact(*data)]
        assert all(np.isinf(one).any() for one in wanted)
        for found, value in zip(results(op, *data), wanted, strict=True):
            np.testing.assert_array_equal(np.isnan(found), np.isnan(value))
            np.testing.assert_array_equal(np.isposinf(found), np.isposinf(value))
            np.testing.assert_array_equal(np.isneginf(found), np.isneginf(value))


@pytest.mark.parametrize("dtype", DTYPES)
def test_other_arithmetic_keeps_subnormal_numbers(dtype: Any) -> None:
    """Before and behind a product, in the same kernel and on the same threads."""

    def mixed(ctx: Any, x: Any, w: Any) -> Any:
        return sg.exp(x) @ w * tiny, sg.exp(x)

    tiny = float(np.finfo(dtype).tiny) / 64
    low = float(np.log(np.finfo(dtype).tiny)) - 3
    short = {np.float32: "f32", np.float64: "f64"}[dtype]
    op = sg.compile(type("Mixed", (sg.Function,), {"forward": staticmethod(mixed)}),
                    f"{short}[n m]", f"{short}[m k]")  # fmt: skip
    for count in (1, 2, 5):
        sg.set_num_threads(count)
        x = np.full((640, 96), low, dtype)
        x[:, 0] = 0
        product, powers = op(x, np.ones((96, 100), dtype))
        assert np.all(powers[:, 1:] > 0)
        assert np.all(powers[:, 1:] < np.finfo(dtype).tiny)
        np.testing.assert_array_equal(product, dtype(tiny))


@needs_mode
def test_a_product_of_subnormal_numbers_is_zero(linear: tuple[Any, Any]) -> None:
    """Without the mode of the processor it is not."""
    op, dtype = linear
    x = np.full((100, 90), np.finfo(dtype).tiny / 2, dtype)
    np.testing.assert_array_equal(op(x, np.ones((80, 90), dtype)), 0)


@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_what_multiplies_no_matrices_needs_no_blas(tmp_path: Path, level: str) -> None:
    source, library = tmp_path / "plain.c", tmp_path / "plain.so"
    text = prelude() + "int plain(void);\nint plain(void) { return 7; }\n"
    source.write_text(text, encoding="utf-8")
    words = [*find_compiler().command, level, "-Wall", "-Wextra", "-Werror", *ARITHMETIC]
    subprocess.run([*words, "-shared", "-fPIC", str(source), "-lm", "-o", str(library)], check=True)
    assert ctypes.CDLL(str(library)).plain() == 7
