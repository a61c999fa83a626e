"""Compiling: what is said when it fails, options a compiler does not know, other machines."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import platform
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy
import pytest

from symgrad.abi import Op, evaluate
from symgrad.errors import BuildError, CacheError
from symgrad.runtime import blas, cache, compiler
from symgrad.runtime.build import build_beside, build_cached, compile_into
from symgrad.runtime.digests import SUFFIX
from symgrad.runtime.libraries import read_op
from symgrad.runtime.load import load
from symgrad.runtime.op import make_op
from symgrad.runtime.size_text import c_expression
from tests.runtime import scripts
from tests.runtime.examples import MATMUL, SOFTPLUS

REAL = compiler.find_compiler().command[0]


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, so that everything is compiled."""
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def _softplus() -> Op:
    return read_op(SOFTPLUS.wrapper())


def _script(folder: Path, text: str) -> str:
    path = folder / "cc"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("/nonexistent/cc", r"C compiler /nonexistent/cc cannot be run: no such program"),
        ("symgrad-no-such-compiler -m64", r"symgrad-no-such-compiler cannot be run"),
        ("/dev/null", r"/dev/null cannot be run"),
        ("/bin/false", r"/bin/false does not compile an empty program"),
        ("'unclosed", r"CC='unclosed cannot be read: No closing quotation"),
    ],
)
def test_no_compiler(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, command: str, message: str
) -> None:
    monkeypatch.setenv("CC", command)
    with pytest.raises(BuildError, match=message) as caught:
        SOFTPLUS.op()
    assert "install a C compiler (gcc or clang), or set CC to one" in str(caught.value)


def test_nothing_on_the_path(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(fresh))
    with pytest.raises(BuildError, match="no C compiler was found"):
        SOFTPLUS.op()


def test_a_compiler_that_finds_a_mistake(fresh: Path) -> None:
    wrong = dataclasses.replace(SOFTPLUS, c=SOFTPLUS.c.replace("expf(x[i])", "expf(nothing)"))
    with pytest.raises(BuildError) as caught:
        wrong.op()
    said = str(caught.value)
    assert "softplus.c" in said
    assert "nothing" in said
    assert "hint: the command was: " in said
    assert list(cache.cache_folder().glob("*/*.so")) == []


def test_a_kernel_that_breaks_its_contract(fresh: Path) -> None:
    """Its prototype is compiled against its signature."""
    texts = {name: getattr(SOFTPLUS, name) for name in ("c", "header")}
    doubles = {name: text.replace("float *y", "double *y") for name, text in texts.items()}
    with pytest.raises(BuildError, match="incompatible"):
        dataclasses.replace(SOFTPLUS, **doubles).op()
    renamed = {name: text.replace("_backward(", "_reverse(") for name, text in texts.items()}
    with pytest.raises(BuildError, match=r"softplus_backward.*-Werror=implicit"):
        dataclasses.replace(SOFTPLUS, **renamed).op()


def test_options_that_a_compiler_does_not_know(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are left out; the kernels are right all the same, with one thread."""
    unknown = "-fopenmp|-mprefer-vector-width=512|-lmvec|-march=native|-Wl,--wrap=*"
    refusal = 'echo "unknown option $word" >&2; exit 1'
    loop = f'for word in "$@"; do case "$word" in {unknown}) {refusal} ;; esac; done'
    monkeypatch.setenv("CC", _script(fresh, f'{loop}\nexec {REAL} "$@"'))
    found = compiler.find_compiler()
    assert set(found.flags) == {
        *("-std=gnu11", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"),
        "-ffile-prefix-map=/=/",
    }
    assert (found.link_flags, found.wrap) == (("-lm",), ())
    x = numpy.ones((100, 100), "f4")
    assert numpy.allclose(SOFTPLUS.op()(x), numpy.log1p(numpy.exp(x)))


def test_the_compiler_is_probed_once(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", _script(fresh, f'echo "$*" >> {fresh}/log\nexec {REAL} "$@"'))
    first = compiler._probe.__wrapped__((str(fresh / "cc"),))
    calls = (fresh / "log").read_text(encoding="utf-8").splitlines()
    assert compiler._probe.__wrapped__((str(fresh / "cc"),)) == first
    assert (fresh / "log").read_text(encoding="utf-8").splitlines() == calls
    os.utime(fresh / "cc", (1, 1))
    assert compiler._probe.__wrapped__((str(fresh / "cc"),)) == first
    assert len((fresh / "log").read_text(encoding="utf-8").splitlines()) == 2 * len(calls)


def test_no_folder_to_probe_in(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a disk where not a byte is left."""

    def full(*args: object, **kwargs: object) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(CacheError, match="no temporary folder for a build"):
        compiler._probe.__wrapped__((REAL,))


def test_another_processor_is_another_compiler(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home directory may be shared: what another machine found is not believed here."""
    monkeypatch.setenv("CC", _script(fresh, f'echo "$*" >> {fresh}/log\nexec {REAL} "$@"'))
    compiler._probe.__wrapped__((str(fresh / "cc"),))
    calls = len((fresh / "log").read_text(encoding="utf-8").splitlines())
    monkeypatch.setattr(compiler, "_processor", lambda: "flags: of another kind")
    compiler._probe.__wrapped__((str(fresh / "cc"),))
    assert len((fresh / "log").read_text(encoding="utf-8").splitlines()) == 2 * calls


def test_the_processor_is_the_same_at_each_look() -> None:
    assert len({compiler._processor() for _ in range(20)}) == 1
    assert compiler._processor()


def test_options_that_keep_the_meaning_of_numbers() -> None:
    flags = compiler.find_compiler().flags
    assert not [flag for flag in flags if "fast-math" in flag or "unsafe" in flag]
    assert "-ffp-contract=off" in flags


@pytest.mark.slow
def test_what_a_key_stands_for(fresh: Path) -> None:
    op, texts = _softplus(), SOFTPLUS.texts
    first = build_cached(op, texts)
    assert build_cached(op, texts) == first
    assert build_cached(op, texts, "another backward") != first
    other = {**texts, "softplus.c": f"{texts['softplus.c']}/* more */\n"}
    assert build_cached(op, other) != first
    assert {path.name for path in first.parent.iterdir()} == {
        *("_softplus.c", "softplus.c", "softplus.h"),
        *("digests.json", first.name),
    }


def test_a_key_stands_for_the_binding(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library built by another version of symgrad, with other statuses, is not taken."""
    op, texts = _softplus(), SOFTPLUS.texts
    first = build_cached(op, texts)
    monkeypatch.setattr("symgrad.runtime.binding.OVERLAP", -77)
    assert build_cached(op, texts) != first


def test_portable(tmp_path: Path) -> None:
    """One library for every x86-64: each level has its kernels, the right one is called."""
    made = build_beside(tmp_path, _softplus(), SOFTPLUS.texts, portable=True)
    library = load(made, _softplus())
    x, y = numpy.ones(3, "f4"), numpy.zeros(3, "f4")
    cast = library.ffi.cast
    call = library.lib.call_softplus_forward
    null = library.ffi.NULL
    assert call(1, 3, cast("float *", x.ctypes.data), cast("float *", y.ctypes.data), null, 0) == 0
    assert numpy.allclose(y, numpy.log1p(numpy.exp(x)))
    if platform.machine() == "x86_64":
        plain = ctypes.CDLL(str(made))
        for level in ("v4", "v3", "base"):
            assert hasattr(plain, f"softplus_forward_{level}")


def test_portable_objects_hold_no_instructions_of_this_machine(tmp_path: Path) -> None:
    if platform.machine() != "x86_64" or shutil.which("objdump") is None:
        pytest.skip("needs objdump on x86-64")
    commands: list[tuple[str, ...]] = []
    real = compiler.find_compiler()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("symgrad.runtime.build._run_all", lambda some, folder: commands.extend(some))
        patch.setattr(Path, "unlink", lambda path, **_: None)
        compile_into(tmp_path, _softplus(), SOFTPLUS.texts, real, portable=True)
    assert not [word for command in commands for word in command if word == "-march=native"]
    assert sum("-march=x86-64-v4" in command for command in commands) == 1


def test_no_path_of_this_machine_is_needed_to_load(matmul: object) -> None:
    """The BLAS is found by name: the library holds no search path."""
    if shutil.which("readelf") is None:
        pytest.skip("needs readelf")
    path = MATMUL.op().library_path
    said = scripts.run(
        "import subprocess, sys; print(subprocess.run(['readelf', '-d', sys.argv[1]],"
        " capture_output=True, text=True, check=True).stdout)",
        str(path),
    )
    assert "RPATH" not in said
    assert "RUNPATH" not in said
    assert "[libscipy_openblas" in said


def test_the_blas_is_single_threaded(matmul: object) -> None:
    found = blas.find_blas()
    library = ctypes.CDLL(found.library)
    assert getattr(library, f"{found.prefix}openblas_get_num_threads")() == 1


def test_another_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any library with the C interface will do; its prefix is found by looking."""
    wheel = blas.find_blas()
    monkeypatch.setenv("SYMGRAD_BLAS", wheel.library)
    monkeypatch.setenv("SYMGRAD_BLAS_INCLUDE", wheel.include)
    assert blas.find_blas() == wheel
    assert "-Dcblas_sgemm=scipy_cblas_sgemm" in wheel.options
    assert dataclasses.replace(wheel, prefix="", include="").options == ()


def test_a_blas_that_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SYMGRAD_BLAS", str(tmp_path / "libnone.so"))
    with pytest.raises(BuildError, match="cannot be loaded"):
        blas.find_blas()
    some = Path(sysconfig.get_path("platstdlib")) / "lib-dynload"
    libraries = sorted(some.glob("_bisect*.so")) or sorted(some.glob("_struct*.so"))
    if libraries:
        monkeypatch.setenv("SYMGRAD_BLAS", str(libraries[0]))
        with pytest.raises(BuildError, match="has no function cblas_sgemm"):
            blas.find_blas()


def test_python_without_headers(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = sysconfig.get_path
    monkeypatch.setattr(
        sysconfig, "get_path", lambda name: str(fresh) if name == "include" else real(name)
    )
    with pytest.raises(BuildError, match=r"Python\.h is not in .*\n.*python3-dev"):
        SOFTPLUS.op()


def test_without_cffi(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cffi", None)
    with pytest.raises(BuildError, match=r"cffi is not installed.*\n.*pip install cffi"):
        SOFTPLUS.op()


def test_a_library_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / f"_softplus{SUFFIX}"
    path.write_text("not a library", encoding="utf-8")
    with pytest.raises(BuildError, match=r"cannot be loaded"):
        load(path, _softplus())


def test_tracebacks_show_the_wrapper(softplus: object) -> None:
    import linecache

    op = make_op(SOFTPLUS.wrapper(), SOFTPLUS.texts)
    file = op.module.__file__
    assert file is not None
    assert linecache.getline(file, 1).startswith('"""Softplus')


EXPRESSIONS = (
    *("n", "n*m - 3", "(n//2)", "(n%3)", "((n - m)//3)", "((m - n)%4)", "(-n//2)"),
    *("min(n, m)", "max(n, 2*m - 5) + (n//(m + 1))", "((n*m + 7)//((n%5) + 1))"),
)


def test_size_expressions_mean_the_same_in_c(tmp_path: Path) -> None:
    """Python rounds quotients down, C towards zero."""
    from symgrad.runtime.binding import binding

    prelude = binding(_softplus()).partition("struct symgrad_span")[0]
    helpers = binding(_softplus()).partition("static int64_t symgrad_floor_div")
    text = helpers[1] + helpers[2].partition("/* 0, or the reason")[0]
    functions = "".join(
        f"int64_t f{index}(int64_t size0, int64_t size1) {{ return {expression}; }}\n"
        for index, expression in enumerate(c_expression(one, "nm") for one in EXPRESSIONS)
    )
    assert "symgrad_threads" in prelude
    (tmp_path / "f.c").write_text(f"#include <stdint.h>\n{text}\n{functions}", encoding="utf-8")
    scripts.run(
        "import subprocess, sys; subprocess.run(sys.argv[1:], check=True)",
        *(REAL, "-shared", "-fPIC", str(tmp_path / "f.c"), "-o", str(tmp_path / "f.so")),
    )
    library = ctypes.CDLL(str(tmp_path / "f.so"))
    for index, expression in enumerate(EXPRESSIONS):
        function = getattr(library, f"f{index}")
        function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_int64] * 2
        for n in range(12):
            for m in range(12):
                assert function(n, m) == evaluate(expression, {"n": n, "m": m}), expression
