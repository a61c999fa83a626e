"""Whatever a user calls things: the texts are sound, the kernels are those that are meant."""

from __future__ import annotations

import ast
import inspect
import json
import keyword
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg
from symgrad.emission import EmittedOp, emit
from symgrad.errors import KernelTypeError, ShapeError
from symgrad.frontend.request import bind
from symgrad.frontend.trace import trace, trace_request
from symgrad.kernels import op_name, plan
from symgrad.manifest import packaged, packaged_op
from symgrad.runtime.op import make_op
from symgrad.tools import importing, outputs
from symgrad.tools.judging import judge
from symgrad.tools.regression import regression_tests
from tests.golden_files import compile_strictly

pytestmark = pytest.mark.usefixtures("unoptimised")

BODY = """
def forward(ctx, {first}, {second}):
    {doc!r}
    {saved} = sg.exp({first}) + {second}
    ctx.save_for_backward({saved}, {second})
    return {saved} * {saved} - {second}

def backward(ctx, {cotangent}):
    {saved}, {second} = ctx.saved_tensors
    {local} = 2 * {saved} * {cotangent}
    return {local} * ({saved} - {second}), {local} - {cotangent}
"""
PROOF = 'Backward PROVED, under: */ """ \\ ??/ {{ x }} \n\x00\udc80.'
# Keywords, macros, types and functions of C, C++ and OpenMP; what wrappers use themselves.
_WORDS = """
M_PI M_PIf INT64_MAX UINTPTR_MAX PRId64 FP_NAN I NULL INFINITY NAN EOF BUFSIZ linux unix errno stdin
min max restrict int8_t int64_t uint8_t size_t double float register inline asm exp expf read err
index random st_atime si_pid omp_get_num_threads alignas noreturn co_await workspace space carve
M_rows M_ isnan isnan_x omp_rank lgamma_x MATH_n cblas_x FP_k INT_x SIG_a
BLOCK MIN residuals Residuals Residuals1 out OP inference type tuple bool zip Any needs_input_grad
_x __x _empty _p_x _call_x Größe λ ℌ 名 ª ſ x̂ i j k t u1 PI PI_2 QK
"""
WORDS = _WORDS.split()
CLASSES = (
    *(
        "Größe",
        'a"b',
        "a'b",
        "",
        "_",
        "x\ny",
        "a\\",
        "a*/b",
        "??/",
        "../up",
        "{{x}}",
        "日本",
        "None",
    ),
    *(
        "Class",
        "Omp_x",
        "isnan",
        "isnan_loss",
        "Cblas_loss",
        "Lgamma_r",
        "Int",
        "Math",
        "Float",
        "Err",
        "Read",
        "Random",
        "A" * 300,
        "__init__",
        "*" * 40,
    ),
)
identifiers = st.sampled_from(WORDS) | st.from_regex(r"\A[^\W\d]\w{0,9}\Z").filter(
    lambda word: word.isidentifier() and not keyword.iskeyword(_as_python_reads(word))
)
texts = st.text(max_size=12) | st.sampled_from(["\udc80", '"""', "*/", "\\", "\x00", "\u202e"])


def _as_python_reads(word: str) -> str:
    return unicodedata.normalize("NFKC", word)


def hostile(name: str, words: Sequence[str], doc: str = "") -> type[sg.Function]:
    roles = ("first", "second", "saved", "cotangent", "local")
    source = BODY.format(doc=doc, **dict(zip(roles, words, strict=True)))
    scope: dict[str, Any] = {"sg": sg}
    exec(compile(source, "<hostile>", "exec"), scope)
    methods = {one: staticmethod(scope[one]) for one in ("forward", "backward")}
    return type(name, (sg.Function,), methods)


def emitted(function: type[sg.Function], sizes: Sequence[str] = ("n", "m")) -> EmittedOp:
    return emit(plan(trace(function, " ".join(sizes), " ".join(sizes))), PROOF)


def check_values(op: Any) -> None:
    a, b = np.full((2, 3), 0.5, np.float32), np.full((2, 3), 0.25, np.float32)
    y, residuals = op.forward(a, b)
    total = np.exp(a) + b
    np.testing.assert_allclose(y, total * total - b, rtol=1e-6)
    np.testing.assert_allclose(op(a, b), y)
    got = op.backward(residuals, np.ones_like(a))
    np.testing.assert_allclose(got, [2 * total * np.exp(a), 2 * total - 1], rtol=1e-6)


@st.composite
def programs(draw: st.DrawFn) -> tuple[type[sg.Function], list[str]]:
    name = draw(st.sampled_from(CLASSES) | texts.filter(_can_be_a_class))
    words = draw(st.lists(identifiers, min_size=5, max_size=5, unique_by=_as_python_reads))
    sizes = draw(st.lists(identifiers, min_size=2, max_size=2, unique_by=_as_python_reads))
    return hostile(name, words, draw(texts)), sizes


def _can_be_a_class(text: str) -> bool:
    try:
        return bool(type(text, (), {}))
    except ValueError:
        return False


def statements(text: str) -> list[type[ast.stmt]]:
    """The kinds of the statements of a wrapper, but those that give parameters their names."""
    body = ast.parse(text).body
    return [type(one) for one in body if not {"_by_name", "_RENAMED"} & set(_names_in(one))]


def _names_in(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.asname or node.name


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(programs())
def test_any_names_give_sound_texts(program: tuple[type[sg.Function], list[str]]) -> None:
    """Python parses the wrapper to the same statements, C compiles as strictly as can be."""
    function, sizes = program
    found = emitted(function, sizes)
    plain = emitted(hostile("Plain", ("a", "b", "c", "d", "e")))
    assert statements(found.wrapper()) == statements(plain.wrapper())
    assert Path(found.op.header).name == found.op.header
    assert len(found.op.header.encode()) < 100
    for name, text in found.texts.items():
        assert text.isascii() or text.encode("utf-8")
        if not name.endswith("_pruned.c"):
            compile_strictly(
                text, suffix=name[-2:], flags=["-Wno-unknown-pragmas", "-fsyntax-only"]
            )


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(programs())
def test_any_names_are_built_and_called(program: tuple[type[sg.Function], list[str]]) -> None:
    found = emitted(*program)
    check_values(make_op(found.wrapper(), found.texts))


@pytest.mark.parametrize("name", ["Err", "Random", "Math", 'a"b'])
def test_a_kernel_is_not_taken_for_what_the_process_has_under_its_name(name: str) -> None:
    """err() of libc ends the process, math.h is a header, _random a Python module."""
    import random  # noqa: F401

    modules = dict(sys.modules)
    found = emitted(hostile(name, ("x", "y", "s", "g", "t")))
    check_values(make_op(found.wrapper(), found.texts))
    for one, module in modules.items():
        assert sys.modules[one] is module or one.startswith("_symgrad_kernels.")


def test_names_of_ops_can_be_modules_files_and_c() -> None:
    names = [op_name(one) for one in CLASSES]
    assert all(one.isascii() and one.isidentifier() and len(one) <= 63 for one in names)
    assert names[:2] == ["grose", "a_b"]
    assert op_name("SoftmaxCrossEntropy") == "softmax_cross_entropy"
    assert op_name("Class") == "class_"
    assert op_name("A" * 300) != op_name("A" * 301)


def test_more_axes_than_arrays_have_are_refused() -> None:
    sizes = " ".join(f"n{axis}" for axis in range(70))
    with pytest.raises(ShapeError, match="a tensor of 70 axes"):
        sg.verify(hostile("F", ("x", "y", "s", "g", "t")), sizes, sizes)


def test_a_package_of_hostile_names_can_be_written() -> None:
    from symgrad.compiler import texts, verify

    function = hostile('a"b\n*/', ("M_PI", "I", "stdin", "errno", "int8_t"), '\udc80 """ */')
    report = verify(function, "M_E n", "M_E n", suggest=False)
    request = bind(function, ("M_E n", "M_E n"))
    planned = plan(trace_request(request))
    emitted, validation = texts(planned, report, validate=True)
    files = packaged([packaged_op(request, planned, report, emitted, validation)])
    assert {"a_b_.py", "a_b_.c", "a_b_.h"} <= files.keys()
    assert all(text.encode("utf-8") for text in files.values() if text)


EVIL = "E\"'\n<b>&\\ ${x}$ */ ]]>\x01\u202e```"


def test_reports_and_pictures_hold_any_name(tmp_path: Path) -> None:
    """HTML, SVG, SARIF, JUnit, the program of a counterexample and the tests written of it."""
    path = tmp_path / "evil_ops.py"
    roles = dict(zip(("first", "second", "saved", "cotangent", "local"), "xwsgt", strict=True))
    path.write_text(f"import symgrad as sg\n{BODY.format(doc=EVIL, **roles)}")
    module = importing.load_file(path)
    wrong = {"backward": staticmethod(lambda ctx, g: (g, g)), "__module__": module.__name__}
    function = type(EVIL, (sg.Function,), {**wrong, "forward": staticmethod(module.forward)})
    function.__qualname__ = EVIL
    one = judge(function, ("n", "n"))
    assert one.report is not None
    found = one.report.inputs["x"].counterexample
    assert found is not None
    compile(found.snippet, "<snippet>", "exec")
    ast.parse(regression_tests([one], tmp_path / "test_it.py").text)
    for text in (sg.draw(function, "n", "n").svg, outputs.junit([one]).partition("\n")[2]):
        ElementTree.fromstring(text)
    assert json.loads(outputs.sarif([one], tmp_path))["runs"][0]["results"]
    html = one.report._repr_html_()
    assert "<b>&\\" not in html
    assert "&lt;b&gt;&amp;\\" in html


PARAMETERS = [
    ("x", "n"), ("n", "k"), ("x", "residuals"), ("OP", "x"), ("x", "int"), ("_empty", "_Complex"),
    ("forward", "backward"), ("_p_x", "_careful"), ("tuple", "type"), ("grad_output", "Residuals"),
    ("_found", "_quick"),
]  # fmt: skip


@pytest.mark.parametrize(("array", "number"), PARAMETERS)
def test_parameters_keep_their_names(array: str, number: str) -> None:
    names: dict[str, Any] = {"sg": sg}
    lines = [
        f"def forward(ctx, {array}, {number}=2.0):",
        f"    ctx.save_for_backward({array})",
        f"    ctx.kept = {number}",
        f"    return sg.exp({array}) * {number}",
        "def backward(ctx, g):",
        "    (saved,) = ctx.saved_tensors",
        "    return g * sg.exp(saved) * ctx.kept, None",
    ]
    exec("\n".join(lines), names)
    methods = {name: staticmethod(names[name]) for name in ("forward", "backward")}
    op = sg.compile(type("Op", (sg.Function,), methods), "n m")
    x = np.full((2, 3), 0.5, np.float32)
    y, residuals = op.forward(**{array: x, number: 2.0})
    np.testing.assert_allclose(y, 2 * np.exp(x), rtol=1e-6)
    np.testing.assert_array_equal(op.inference(x, 2.0), y)
    gradient = op.backward(residuals, np.ones_like(x))[0]
    assert gradient is not None
    np.testing.assert_allclose(gradient, y, rtol=1e-6)
    assert list(inspect.signature(op.forward).parameters) == [array, number, "out"]
    with pytest.raises(KernelTypeError, match=f"input {array} has the dtype int64"):
        op.forward(**{array: x.astype(np.int64), number: 2.0})


def test_an_argument_called_out_is_not_written_into() -> None:
    class Scaled(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, out: float = 2.0) -> Any:
            ctx.out = out
            return x * out

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.out, None

    op, x = sg.compile(Scaled, "n"), np.ones(3, np.float32)
    np.testing.assert_array_equal(op.inference(x, 3.0), 3 * x)
    np.testing.assert_array_equal(op.inference(x, out_=3.0), 3 * x)
    with pytest.raises(KernelTypeError, match=r"out for output is a float(.|\n)*is out_ here"):
        op.inference(x, out=3.0)
