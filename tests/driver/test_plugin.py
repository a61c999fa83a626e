"""``pytest --symgrad``: one test a Function."""

from __future__ import annotations

import subprocess
import sys

import pytest

import symgrad.tools.judging  # noqa: F401  (pytester forgets what a run imports first)

RIGHT = """
import symgrad as sg


@sg.assume(x="positive")
class Log(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n]"):
        ctx.save_for_backward(x)
        return sg.log(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad / x


@sg.surrogate(lambda x: x)
class Sign(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n]"):
        return sg.sign(x)

    @staticmethod
    def backward(ctx, grad):
        return grad
"""
WRONG = """
import symgrad as sg


class Square(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x
"""
UNKNOWN = """
import symgrad as sg


class Unknown(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n]"):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        if (grad > 0).any():
            return 2 * grad
        return grad * 2
"""
PLAIN = """
import symgrad as sg


class Scale(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n]", alpha=1.0):
        ctx.alpha = alpha
        return x * alpha

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.alpha, None
"""
TWICE = """
import symgrad as sg


class Tanh(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n]"):
        ctx.y = sg.tanh(x).detach()
        return ctx.y * 1

    @staticmethod
    def backward(ctx, grad):
        return grad * (1 - ctx.y * ctx.y)
"""


def test_proved_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(plugged=RIGHT)
    done = pytester.runpytest_inprocess("--symgrad", "-v")
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["plugged.py::Log PASSED*", "plugged.py::Sign PASSED*"])
    assert "symgrad inferred" not in done.stdout.str()


def test_values_of_plain_arguments_are_printed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(plugged=PLAIN)
    done = pytester.runpytest_inprocess("--symgrad", "-v")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["plugged.py::Scale PASSED, PROVED for all real alpha*"])
    summary = ["*values of arguments*", "plugged.py::Scale: PROVED for all real alpha*"]
    done.stdout.fnmatch_lines(summary)


def test_refuted_fails_with_the_report_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(plugged=WRONG)
    done = pytester.runpytest_inprocess("--symgrad")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        ["Square: REFUTED*", "*smallest counterexample found*", "*write instead (proved)*",
         "plugged.py::Square: No shapes were given; symgrad inferred x[[]n, m[]]*"]
    )  # fmt: skip
    assert "Traceback" not in done.stdout.str()
    assert "pytest_plugin.py" not in done.stdout.str()


def test_undecided_fails_unless_it_is_allowed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(plugged=UNKNOWN)
    pytester.runpytest_inprocess("--symgrad").assert_outcomes(failed=1)
    allowed = pytester.runpytest_inprocess("--symgrad", "--symgrad-allow=UNDECIDED")
    allowed.assert_outcomes(passed=1)
    assert pytester.runpytest_inprocess("--symgrad", "--symgrad-allow=REFUTED").ret == 4


def test_ini_options(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(plugged=UNKNOWN)
    pytester.makeini("[pytest]\nsymgrad = true\nsymgrad_allow = UNDECIDED\n")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_second_order(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(plugged=TWICE)
    first = pytester.runpytest_inprocess("--symgrad").parseoutcomes()
    second = pytester.runpytest_inprocess("--symgrad", "--symgrad-order", "2").parseoutcomes()
    assert first == {"passed": 1}
    assert second == {"failed": 1}


def test_a_class_that_cannot_be_traced_fails_with_its_error(pytester: pytest.Pytester) -> None:
    source = WRONG.replace("return x * x", "return sg.no_such_function(x)")
    pytester.makepyfile(plugged=source)
    done = pytester.runpytest_inprocess("--symgrad")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*no_such_function*"])
    assert "symgrad/tools/cli" not in done.stdout.str()


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("import no_such_module_at_all", "*the module no_such_module_at_all is missing"),
        ("1 / 0", "*plugged.py cannot be imported: ZeroDivisionError: division by zero"),
        ("import sys; sys.exit(3)", "*plugged.py ends the program while it is imported"),
        ("def f(:", "*plugged.py cannot be imported: SyntaxError: *"),
    ],
)
def test_a_file_that_cannot_be_imported_fails_alone(
    pytester: pytest.Pytester, first: str, said: str
) -> None:
    pytester.makepyfile(plugged=f"{first}\n{WRONG}", right=RIGHT)
    done = pytester.runpytest_inprocess("--symgrad")
    done.assert_outcomes(failed=1, passed=2)
    done.stdout.fnmatch_lines(["*plugged.py*", said])


def test_a_file_of_a_package_that_fails_is_imported_alone(pytester: pytest.Pytester) -> None:
    package = pytester.mkpydir("failing")
    (package / "__init__.py").write_text("import no_such_module_at_all\n")
    (package / "ops.py").write_text(RIGHT)
    done = pytester.runpytest_inprocess("--symgrad")
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["*without the packages around them*", "*no_such_module_at_all*"])


def test_a_file_that_skips_itself_is_skipped(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(plugged=f"import pytest\npytest.importorskip('no_such_module')\n{WRONG}")
    pytester.runpytest_inprocess("--symgrad").assert_outcomes(skipped=1)


def test_paths_and_names_choose(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(right=RIGHT, wrong=WRONG, other="class Plain(dict):\n    pass\n")
    run = pytester.runpytest_inprocess
    run("--symgrad", "right.py").assert_outcomes(passed=2)
    run("--symgrad", "right.py::Log").assert_outcomes(passed=1)
    run("--symgrad", "-k", "Sign").assert_outcomes(passed=1, deselected=2)
    run("--symgrad", "--ignore=wrong.py").assert_outcomes(passed=2)
    run("--symgrad", "-m", "not symgrad").assert_outcomes(deselected=3)


def test_without_the_option_nothing_is_collected(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(plugged=WRONG, test_plain="def test_plain():\n    pass\n")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_test_files_have_both(pytester: pytest.Pytester) -> None:
    """The asserts of forward are asked of the shapes, rewritten by pytest or not."""
    source = RIGHT.replace("return sg.sign(x)", "assert x.dim() == 1\n        return sg.sign(x)")
    pytester.makepyfile(test_ops=f"{source}\n\ndef test_plain():\n    assert Sign\n")
    pytester.runpytest_inprocess("--symgrad").assert_outcomes(passed=3)


@pytest.mark.slow
def test_distributed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(right=RIGHT, wrong=WRONG)
    done = pytester.runpytest_subprocess("--symgrad", "-n", "2")
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(
        [
            "Square: REFUTED*",
            "wrong.py::Square: No shapes were given; symgrad inferred x[[]n, m[]]*",
        ]
    )


def test_pytest_starts_as_fast_as_before() -> None:
    """What pytest loads at every start brings in nothing of weight."""
    code = (
        "import sys, pytest; before = set(sys.modules); import symgrad.pytest_plugin; "
        "print(sorted(m for m in set(sys.modules) - before if not m.startswith('_')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = ["symgrad", "symgrad.forks", "symgrad.garbage", "symgrad.pytest_plugin"]
    assert done.stdout.strip() == str(own)
