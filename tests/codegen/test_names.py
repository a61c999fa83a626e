"""Whatever users call things, the C compiles."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symgrad.codegen.emit.file import FileDoc, emit_file
from symgrad.codegen.emit.kernel import KernelDoc, comment_lines, emit_kernel
from symgrad.codegen.names import Names, identifier, is_reserved
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import float64
from symgrad.ir.graph import Graph
from symgrad.ir.types import TensorType
from tests.codegen.support import compile_graphs
from tests.golden_files import compile_strictly

HARD = [
    "double", "n", "workspace", "λ", "x̂", "i", "expf", "group", "space", "_x", "2x", "t", "a b",
    "symgrad_exp", "SYMGRAD_INLINE",
]  # fmt: skip


def named(names: list[str], sizes: tuple[str, str]) -> Graph:
    """A softmax of a sum of inputs, in which everything is named."""
    n, m = map(Dim.size, sizes)
    graph = Graph()
    total = None
    for name in names:
        node = graph.input(name, TensorType(float64, (n, m)))
        total = node if total is None else total + node
    assert total is not None
    e = graph.apply("exp", total)
    summed = graph.apply("sum", e, axes=(1,))
    e.name, summed.name = names[0], names[-1]
    kept = graph.apply("reshape", summed, shape=(n, Dim.of(1)))
    graph.output(names[-1] + "?", e / graph.expand(kept, (n, m)))
    return graph


@pytest.mark.parametrize("sizes", [("n", "m"), ("int", "float"), ("i", "j"), ("x", "λ")], ids=str)
def test_hard_names(sizes: tuple[str, str], tmp_path: Path) -> None:
    kernel = compile_graphs({"k": named(HARD, sizes)}, tmp_path)["k"]
    feeds = {name: np.full((2, 3), 0.5) for name in HARD}
    (got,) = kernel(feeds)
    np.testing.assert_allclose(got, np.full((2, 3), 1 / 3))


def test_comments_do_not_end_early() -> None:
    doc = KernelDoc("*/ int x; /*", ("y = a */ b", "ends with \\"), ("PROVED */",))
    kernel = emit_kernel(named(["x"], ("n", "m")), "k", doc)
    file = emit_file([kernel], FileDoc("k", ("/* */ a long line " * 20, "\\")))
    compile_strictly(file.source)
    compile_strictly(file.header, suffix=".h")


@given(st.lists(st.text(min_size=0, max_size=8), max_size=20))
def test_every_name_once_and_an_identifier(wanted: list[str]) -> None:
    names = Names()
    found = [names.fresh(one) for one in wanted] + [names.loop_variable() for _ in range(30)]
    assert len(set(found)) == len(found)
    for name in found:
        assert name.isascii()
        assert name.isidentifier()
        assert not is_reserved(name)
        assert not name.startswith("_")


_HEADERS = """
assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal
stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time
uchar wchar wctype unistd pthread omp sys/types sys/stat sys/socket sys/time
"""


def test_no_name_is_a_macro() -> None:
    """Whatever of C and POSIX is included before a header of ours."""
    python = ["-I", sysconfig.get_path("include"), "-include", "Python.h"]
    included = [word for header in _HEADERS.split() for word in ("-include", f"{header}.h")]
    command = ["cc", "-fopenmp", "-D_GNU_SOURCE", *python, *included, "-dM", "-E", "-x", "c"]
    said = subprocess.run([*command, "/dev/null"], capture_output=True, text=True, check=True)
    macros = {line.split()[1].partition("(")[0]: line for line in said.stdout.splitlines()}
    constants = {name for name, line in macros.items() if f"{name}(" not in line}
    assert {"M_PI", "linux", "stdin", "errno", "INT64_MAX"} <= constants
    names = Names()
    for name in sorted(macros):
        assert identifier(name) == name.lstrip("_") or name.strip("_") == ""
        for _ in range(3):
            assert names.fresh(name) not in constants


@given(st.lists(st.text(max_size=150), max_size=4))
def test_comments_stay_comments(lines: list[str]) -> None:
    for line in comment_lines(lines):
        assert not any(mark in line for mark in ("*/", "/*", "??"))
        assert line.isprintable()
        assert not line.endswith("\\")


def test_names_stay_as_they_are() -> None:
    assert identifier("grad_y") == "grad_y"
    assert identifier("λ") == "lamda"
    assert identifier("Größe") == "Grose"
    assert [Names().fresh(one) for one in ("x", "W", "QK", "W_1")] == ["x", "W", "QK", "W_1"]
