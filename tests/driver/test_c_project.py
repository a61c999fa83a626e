"""``symgrad build --package`` for C: cmake, pkg-config, C11 and C++17, a training program.

CLANG is the clang of this machine, or that of the package ziglang.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import ops
import pytest

import symgrad as sg
from symgrad import abi, compiler
from symgrad.emission import emit
from symgrad.frontend.trace import trace
from symgrad.kernels import plan
from symgrad.runtime.blas import Blas, find_blas
from symgrad.runtime.compiler import find_compiler

ROOT = Path(__file__).resolve().parents[2]
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")
C, CXX = (*STRICT, "-std=c11"), (*STRICT, "-std=c++17")
NOTHING: Mapping[str, str] = MappingProxyType({})
CLANG: tuple[str, ...] = ()
if shutil.which("clang"):
    CLANG = ("clang",)
elif importlib.util.find_spec("ziglang"):
    CLANG = (sys.executable, "-m", "ziglang", "cc")
needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
needs_clang = pytest.mark.skipif(not CLANG, reason="neither clang nor ziglang is installed")
compilers = pytest.mark.parametrize(
    "command",
    [
        pytest.param(("gcc", "-fopenmp"), marks=needs_gcc, id="gcc-openmp"),
        pytest.param(("gcc",), marks=needs_gcc, id="gcc"),
        pytest.param(CLANG, marks=needs_clang, id="clang"),
    ],
)
needs_cmake = pytest.mark.skipif(
    not all(map(shutil.which, ("cmake", "gcc", "g++", "pkg-config"))),
    reason="cmake, gcc, g++ or pkg-config is not installed",
)


class Plain(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Annotated[Any, "f64[n]"]) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * grad_y


def built(folder: Path, *functions: Any) -> Path:
    compiler.build(functions, folder, package="kit", compiled=False, validate=False)
    return folder


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    functions = (ops.Linear, ops.Tanh, ops.SoftmaxCrossEntropy)
    return built(tmp_path_factory.mktemp("kit"), *functions)


def run(*command: str | Path, cwd: Path | None = None, given: Mapping[str, str] = NOTHING) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **given}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def with_kernels(command: Sequence[str], kit: Path, program: Path, target: Path) -> Path:
    """The program and all sources of the package in one call of a compiler."""
    blas = find_blas()
    source = kit / "src"
    options = (option for option in blas.options if option.startswith("-D"))
    run(
        *command, *C, *options, "-O2", f"-I{kit / 'include'}", f"-I{source}", program,
        *sorted((source / "kit").glob("*.c")), blas.library, f"-Wl,-rpath,{_folder(blas)}", "-lm",
        "-o", target,
    )  # fmt: skip
    return target


def _folder(blas: Blas) -> Path:
    return Path(blas.library).parent


def losses(said: str) -> list[float]:
    return [float(one) for one in re.findall(r"loss (\d+\.\d+)", said)]


def test_the_header_names_every_status(kit: Path) -> None:
    text = (kit / "include" / "kit.h").read_text(encoding="utf-8")
    found = re.findall(r"KIT_(\w+) = (\d+),? /\* (.*?)(?:: .*)? \*/", text)
    assert [int(number) for _, number, _ in found] == list(range(len(abi.STATUSES) + 1))
    assert tuple(said for _, _, said in found[1:]) == abi.STATUSES
    assert f"KIT_ALIGNMENT {abi.ALIGNMENT}" in text


def test_blas_only_where_it_is_needed(kit: Path, tmp_path: Path) -> None:
    without = built(tmp_path, Plain) / "CMakeLists.txt"
    assert "BLAS" not in without.read_text(encoding="utf-8")
    text = (kit / "CMakeLists.txt").read_text(encoding="utf-8")
    assert "foreach(function cblas_sgemm cblas_dgemm)" in text


def test_a_status_means_the_same_in_every_kernel() -> None:
    """A product is refused with one number, whether an index may be out of range or not."""

    class Chosen(sg.Function):
        @staticmethod
        def forward(
            ctx: Any, x: Annotated[Any, "f32[n k]"], w: Annotated[Any, "f32[k c]"],
            labels: Annotated[Any, "i64[n]"],
        ) -> Any:  # fmt: skip
            return (x @ w).gather(1, labels.unsqueeze(1))

    both = emit(plan(trace(Chosen)), "")
    assert both.op.cases[0].forward.statuses == abi.STATUSES
    for emitted in (both, emit(plan(trace(ops.Linear)), "")):
        text = "".join(emitted.texts.values())
        assert f"returns 2: {abi.TOO_LARGE}" in text
        assert re.search(r"> INT32_MAX\)\n +return 2;", text)


@pytest.mark.slow
@needs_cmake
def test_an_installed_package(kit: Path, tmp_path: Path) -> None:
    """C++ by pkg-config, C by CMake, shared and static; the kernels compile without a warning."""
    blas, installed = find_blas(), tmp_path / "moved"
    run(
        "cmake", "-S", kit, "-B", tmp_path / "build", f"-DKIT_BLAS={blas.library}",
        f"-DKIT_BLAS_PREFIX={blas.prefix}", f"-DCMAKE_C_FLAGS={' '.join(STRICT)}",
        "-DCMAKE_C_COMPILER=gcc",
    )  # fmt: skip
    run("cmake", "--build", tmp_path / "build")
    run("ctest", "--test-dir", tmp_path / "build")
    library = tmp_path / "build" / "libkit.so"
    assert (b"__wrap_GOMP_parallel" in library.read_bytes()) == bool(find_compiler().wrap)
    run("cmake", "--install", tmp_path / "build", "--prefix", tmp_path / "installed")
    (tmp_path / "installed").rename(installed)

    (tmp_path / "use.cpp").write_text(USE, encoding="utf-8")
    (pc,) = installed.rglob("kit.pc")
    flags = run(
        "pkg-config", "--cflags", "--libs", "kit", given={"PKG_CONFIG_PATH": str(pc.parent)}
    )
    run(
        "g++",
        *CXX,
        "use.cpp",
        *flags.split(),
        f"-Wl,-rpath,{pc.parents[1]}",
        "-o",
        "use",
        cwd=tmp_path,
    )
    assert run(tmp_path / "use") == "0.462117 2\n"

    (tmp_path / "use.c").write_text(USE, encoding="utf-8")
    (tmp_path / "CMakeLists.txt").write_text(CONSUMER, encoding="utf-8")
    run("cmake", "-S", tmp_path, "-B", tmp_path / "used", f"-DCMAKE_PREFIX_PATH={installed}")
    run("cmake", "--build", tmp_path / "used")
    for name in ("with_shared", "with_static"):
        assert run(tmp_path / "used" / name) == "0.462117 2\n"


USE = r"""
#include <kit.h>
#include <stdio.h>
int main(void)
{
    const float x[2] = {0.5f, 0.0f};
    float y[2];
    const int64_t huge = (int64_t)1 << 32;
    if (tanh_forward(1, 2, x, y, NULL) != KIT_OK)
        return 1;
    printf("%f %d\n", (double)y[0], linear_forward(huge, 1, 1, x, x, x, y, NULL));
    return 0;
}
"""

CONSUMER = """
cmake_minimum_required(VERSION 3.18)
project(consumer LANGUAGES C)
find_package(kit 0.1.0 EXACT REQUIRED)
foreach(kind shared static)
  add_executable(with_${kind} use.c)
  target_link_libraries(with_${kind} PRIVATE kit::${kind})
endforeach()
"""


@pytest.mark.slow
@compilers
def test_a_program_that_trains(command: Sequence[str], kit: Path, tmp_path: Path) -> None:
    program = with_kernels(command, kit, ROOT / "examples" / "c" / "train.c", tmp_path / "train")
    once = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    found = losses(run(program, given=once))
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.2
    if command == ("gcc",) and shutil.which("valgrind"):
        watch = ("--leak-check=full", "--errors-for-leak-kinds=all", "--error-exitcode=9")
        assert losses(run("valgrind", "-q", *watch, program, given=once)) == found


class Batched(sg.Function):
    """Any number of axes, a plain number, and an output that is kept."""

    @staticmethod
    def forward(ctx: Any, x: Annotated[Any, "f64[*batch 2*m]"], alpha: float = 2.0) -> Any:
        y = sg.exp(alpha * x)
        ctx.save_for_backward(y)
        ctx.alpha = alpha
        return y

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        (y,) = ctx.saved_tensors
        return ctx.alpha * y * grad_y, None


class Counted(sg.Function):
    """A kernel of its own for inference, two outputs, one of integers, and conditions on sizes."""

    @staticmethod
    def forward(
        ctx: Any, x: Annotated[Any, "f32[n m]"], mask: Annotated[Any, "bool[n m]"]
    ) -> Any:  # fmt: skip
        kept = sg.where(mask, x, 0.0).squeeze(1)
        ctx.save_for_backward(sg.tanh(x), mask)
        return (kept * kept).sum(), mask.sum(-1)

    @staticmethod
    def backward(ctx: Any, grad: Any, _: Any) -> Any:
        t, mask = ctx.saved_tensors
        return grad * sg.where(mask, t, 0.0), None


@pytest.mark.slow
@needs_gcc
def test_the_tests_in_c(tmp_path: Path) -> None:
    """They pass for kernels of any kind, and fail where a value is another."""
    functions = (Plain, Batched, Counted, ops.LayerNorm, ops.SoftmaxCrossEntropy)
    kit = tmp_path / "kit"
    compiler.build(
        functions, kit, package="kit", compiled=False, validate=False, allow=("REFUTED",)
    )
    program = kit / "tests" / "test_kit.c"
    text = program.read_text(encoding="utf-8")
    assert {"batched_0();", "counted_0();", "counted_1();"} <= {*text.replace(" ", "").split()}
    for name in ("forward", "backward", "inference"):
        assert re.search(rf'COMPARE\(.*"counted_{name}_case0"', text)
    run(with_kernels(("gcc", "-fsanitize=address,undefined"), kit, program, tmp_path / "right"))
    first = re.search(r"double d0\[\d+\] = \{(.*?),", text)
    assert first
    program.write_text(text.replace(first[0], first[0].replace(first[1], "0.5e3")), "utf-8")
    wrong = with_kernels(("gcc",), kit, program, tmp_path / "wrong")
    done = subprocess.run([wrong], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.fullmatch(r"\w+_backward\w*: \S+, and not 500\n", done.stdout)


@pytest.mark.slow
@compilers
def test_shipped_kernels_compile(command: Sequence[str], tmp_path: Path) -> None:
    """Without a warning, as C11; their headers, all in one file, as C++17."""
    folder = ROOT / "generated"
    for source in sorted(folder.glob("*.c")):
        run(*command, *C, "-Wconversion", "-O1", "-c", source, "-o", tmp_path / "kernel.o")
    headers = "".join(f'#include "{path}"\n' for path in sorted(folder.glob("*.h")))
    (tmp_path / "all.cpp").write_text(headers, encoding="utf-8")
    run(*command, "-x", "c++", *CXX, "-c", tmp_path / "all.cpp", "-o", tmp_path / "all.o")
