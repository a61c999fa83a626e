"""Verdicts as files: SARIF, JUnit, and tests that fail until a backward is fixed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from symgrad.tools.cli import main
from symgrad.tools.regression import _words

OPS = """
import symgrad as sg


class Right(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n]"):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad


class Wrong(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n]"):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x


class Unknown(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n]"):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad if (grad > 0).any() else grad * 2


class Unreadable(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n]"):
        raise RuntimeError("odd \\x1b\\x00 characters <&>")

    @staticmethod
    def backward(ctx, grad):
        return grad
"""
MARKS = {"REFUTED": "refuted", "UNDECIDED": "undecided", "ERROR": "error"}


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(one) for one in arguments], catch_exceptions=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "with blank").mkdir()
    (tmp_path / "with blank" / "ops.py").write_text(OPS)
    return tmp_path


def line_of(text: str, source: str = OPS) -> int:
    return source[: source.index(text)].count("\n") + 1


def check_sarif(log: Any) -> None:
    """What SARIF 2.1.0 requires of the objects that are used (sections 3.13 to 3.30)."""
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    assert log["runs"]
    for run in log["runs"]:
        driver = run["tool"]["driver"]
        assert driver["name"]
        assert re.fullmatch(r"\d+\.\d+\.\d+(-[\w.]+)?", driver["semanticVersion"])
        rules = driver["rules"]
        assert len({rule["id"] for rule in rules}) == len(rules)
        for rule in rules:
            assert rule["shortDescription"]["text"].endswith(".")
            assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
        for base in run["originalUriBaseIds"].values():
            assert base["uri"].startswith("file:///")
            assert base["uri"].endswith("/")
        for result in run["results"]:
            assert result["message"]["text"]
            assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
            assert result["level"] in ("none", "note", "warning", "error")
            assert result["kind"] == "fail"
            for location in result["locations"]:
                physical = location["physicalLocation"]
                artifact = physical["artifactLocation"]
                assert " " not in artifact["uri"]
                assert artifact.get("uriBaseId", "SRCROOT") in run["originalUriBaseIds"]
                assert physical["region"]["startLine"] >= 1


def test_sarif(folder: Path) -> None:
    done = run("verify", "with blank/ops.py", "--quiet", "--sarif", "deep/out.sarif")
    assert done.exit_code == 1
    log = json.loads((folder / "deep" / "out.sarif").read_text())
    check_sarif(log)
    (only,) = log["runs"]
    found = {result["properties"]["function"]: result for result in only["results"]}
    assert list(found) == ["Wrong", "Unknown", "Unreadable"]
    for name, verdict in zip(found, ("REFUTED", "UNDECIDED", "ERROR"), strict=True):
        result = found[name]
        assert result["ruleId"] == f"symgrad/{MARKS[verdict]}"
        assert "\n" not in result["message"]["text"]
        assert result["properties"]["report"] in result["message"]["markdown"]
        artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
        assert unquote(artifact["uri"]) == "with blank/ops.py"
    lines = [
        result["locations"][0]["physicalLocation"]["region"]["startLine"]
        for result in found.values()
    ]
    assert lines[0] == line_of("return grad * x")
    assert lines[2] == line_of("raise RuntimeError")
    assert "grad_x[0]" in found["Wrong"]["message"]["text"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="no columns of expressions")
def test_columns_are_those_of_the_returned_expression(folder: Path) -> None:
    source = OPS.replace("return grad * x", 's = "é𝄞"; return grad * x')
    (folder / "ops.py").write_text(source, encoding="utf-8")
    done = run("verify", "ops.py:Wrong", "--json", "--sarif", "out.sarif")
    (line,) = (line for line in source.splitlines() if "grad * x" in line)
    first = line.index("grad * x") + 1
    (judged,) = json.loads(done.stdout)
    assert judged["inputs"]["x"]["columns"] == [first, first + len("grad * x")]
    (result,) = json.loads((folder / "out.sarif").read_text())["runs"][0]["results"]
    region = result["locations"][0]["physicalLocation"]["region"]
    units = first + 1  # the clef is two code units of UTF-16
    assert (region["startColumn"], region["endColumn"]) == (units, units + len("grad * x"))


def test_sarif_of_proved_functions_has_no_results(folder: Path) -> None:
    assert run("verify", "with blank/ops.py:Right", "--sarif", "out.sarif").exit_code == 0
    log = json.loads((folder / "out.sarif").read_text())
    check_sarif(log)
    assert log["runs"][0]["results"] == []


def test_sarif_notes_the_conditions_of_a_proof(folder: Path) -> None:
    (folder / "quotients.py").write_text(
        "import symgrad as sg\n\n\nclass Quotient(sg.Function):\n    @staticmethod\n"
        '    def forward(ctx, x: "f32[n]", y: "f32[n]"):\n'
        "        ctx.save_for_backward(x, y)\n        return x * y\n\n    @staticmethod\n"
        "    def backward(ctx, g):\n        x, y = ctx.saved_tensors\n"
        "        return g * x * y / x, g * x\n"
    )
    assert run("verify", "quotients.py", "--sarif", "out.sarif").exit_code == 0
    log = json.loads((folder / "out.sarif").read_text())
    check_sarif(log)
    (result,) = log["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("symgrad/conditional", "note")
    assert result["message"]["text"] == "Quotient: PROVED except where x == 0"


def test_junit(folder: Path) -> None:
    run("verify", "with blank/ops.py", "--quiet", "--junit", "out.xml")
    top = ElementTree.parse(folder / "out.xml").getroot()
    assert top.tag == "testsuites"
    (suite,) = top
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4", "failures": "2", "errors": "1", "skipped": "0"
    }  # fmt: skip
    kinds = {case.get("name"): [child.tag for child in case] for case in suite}
    assert kinds == {
        "Right": ["system-out"], "Wrong": ["failure"], "Unknown": ["failure"],
        "Unreadable": ["error"],
    }  # fmt: skip
    wrong = suite[1]
    assert wrong.get("classname") == "ops"
    assert wrong.get("line") == str(line_of("return grad * x"))
    assert wrong[0].get("type") == "REFUTED"
    assert "smallest counterexample found" in str(wrong[0].text)


def test_a_file_that_cannot_be_written_is_a_message(folder: Path) -> None:
    (folder / "blocked").write_text("a file where a folder is wanted")
    done = run("verify", "with blank/ops.py:Right", "--junit", "blocked/out.xml")
    assert done.exit_code == 2
    assert "cannot be written" in done.output


def test_what_was_there_is_replaced_as_a_whole(folder: Path) -> None:
    (folder / "out.xml").write_text("old" * 10_000)
    run("verify", "with blank/ops.py:Right", "--junit", "out.xml")
    assert ElementTree.parse(folder / "out.xml").getroot().tag == "testsuites"
    assert sorted(path.name for path in folder.iterdir()) == ["out.xml", "with blank"]


# -- tests from counterexamples

BROKEN = {
    "two_inputs": (
        '''
class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight.t(), x.t() @ (BUG * grad)
''',
        ["weight"],
    ),
    "several_outputs": (
        '''
class Op(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n]"):
        ctx.save_for_backward(x)
        return sg.exp(x), x.argmax(0), 3 * x

    @staticmethod
    def backward(ctx, grad_y, _, grad_z):
        (x,) = ctx.saved_tensors
        return grad_y * sg.exp(x) + 3 * BUG * grad_z
''',
        ["x"],
    ),
    "indices_and_values": (
        '''
class Op(sg.Function):
    @staticmethod
    def forward(ctx, table: "f32[n m]", rows: "i64[k]", scale=2.5, *, power=2):
        ctx.save_for_backward(rows)
        ctx.rows, ctx.scale = table.shape[0], scale * power
        return table[rows] * ctx.scale

    @staticmethod
    def backward(ctx, grad):
        (rows,) = ctx.saved_tensors
        grad = grad * ctx.scale * BUG
        whole = grad.new_zeros(ctx.rows, grad.shape[-1])
        return whole.index_add(0, rows, grad), None, None, None
''',
        ["table"],
    ),
    "numbers": (
        '''
class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, alpha, shift):
        ctx.alpha = alpha
        ctx.save_for_backward(x, shift)
        return alpha * x + shift.reshape(())

    @staticmethod
    def backward(ctx, grad):
        return ctx.alpha * BUG * grad, None, grad.sum()
''',
        ["x"],
    ),
    "old_style": (
        '''
class Op(sg.Function):
    def __init__(self, slope):
        self.slope = slope

    def forward(self, x):
        return self.slope * x

    def backward(self, grad):
        return self.slope * BUG * grad
''',
        ["x"],
    ),
    "left_out_gradient": (
        '''
class Op(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n]", y: "f32[n]"):
        return x + y

    @staticmethod
    def backward(ctx, grad):
        return grad, grad if BUG == 1 else None
''',
        ["y"],
    ),
    "surrogate": (
        '''
@sg.surrogate(lambda x: 2 * x)
class Op(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n]"):
        return sg.sign(x)

    @staticmethod
    def backward(ctx, grad):
        return BUG * grad
''',
        ["x"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_written_tests_fail_until_backward_is_fixed(
    kind: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, inputs = BROKEN[kind]
    folder = pytester.path
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the text changes, its length does not
    (folder / "src").mkdir()
    ops = folder / "src" / f"ops_{kind}.py"
    ops.write_text(f"import symgrad as sg\n\nBUG = 5.0\n{source}")
    done = run("verify", ops, "--quiet", "--write-test", "tests/test_backward.py")
    assert done.exit_code == 1
    text = (folder / "tests" / "test_backward.py").read_text()
    compile(text, "test_backward.py", "exec")
    tests = [f"test_op_gradient_of_{name}" for name in inputs]
    assert re.findall(r"^def (test_\w+)", text, re.MULTILINE) == tests
    assert re.search(r"grad_\w+(\[.*\])? was \S+, the true value is \S+\.", text)
    failed = pytester.runpytest_inprocess("tests", "-p", "no:symgrad")
    failed.assert_outcomes(failed=len(tests))
    failed.stdout.fnmatch_lines(["*AssertionError: backward gives*"])
    if kind == "surrogate":  # holds both formulas as they were
        assert "import symgrad" not in text
        return
    ops.write_text(ops.read_text().replace("BUG = 5.0", "BUG = 1.0"))
    pytester.runpytest_inprocess("tests", "-p", "no:symgrad").assert_outcomes(passed=len(tests))


def test_a_class_of_a_package(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Relative imports work, in the verdict and in the test."""
    folder = pytester.path
    monkeypatch.chdir(folder)
    package = folder / "src" / "regression_package"
    (package / "inner").mkdir(parents=True)
    for name, text in {
        "__init__.py": "", "constants.py": "BUG = 3.0\n", "inner/__init__.py": "",
        "inner/ops.py": "import symgrad as sg\nfrom ..constants import BUG\n"
        + BROKEN["left_out_gradient"][0],
    }.items():  # fmt: skip
        (package / name).write_text(text)
    done = run(
        "verify", "src/regression_package/inner/ops.py", "--quiet", "--write-test", "test.py"
    )
    assert done.exit_code == 1, done.output
    assert (
        'load_module("src", "regression_package.inner.ops").Op' in (folder / "test.py").read_text()
    )
    pytester.runpytest_inprocess("test.py", "-p", "no:symgrad").assert_outcomes(failed=1)
    (package / "constants.py").write_text("BUG = 1\n")
    pytester.runpytest_subprocess("test.py", "-p", "no:symgrad").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("first", "own"),
    [
        ("import symgrad_no_such_module\n", "from .constants import BUG\n"),
        ("", "from src.outputs_package.constants import BUG\n"),
    ],
    ids=["a package that cannot be imported", "an import from the working folder"],
)
def test_what_is_found_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, own: str
) -> None:
    """The written test imports what the verdict did, by pytest in a process of its own."""
    package = tmp_path / "src" / "outputs_package"
    (tmp_path / "tests").mkdir()
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(first)
    (package / "constants.py").write_text("BUG = 3.0\n")
    ops = package / "ops.py"
    ops.write_text(f"import symgrad as sg\n{own}{BROKEN['left_out_gradient'][0]}")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    done = run(
        "verify", "src/outputs_package/ops.py", "--quiet", "--write-test", "tests/test_it.py"
    )
    assert done.exit_code == 1, done.output
    monkeypatch.chdir(package)  # pytest as a module looks into the working folder
    again = [sys.executable, "-m", "pytest", "-p", "no:symgrad", str(tmp_path / "tests/test_it.py")]
    found = subprocess.run(again, capture_output=True, text=True)
    assert "AssertionError" in found.stdout
    assert "ModuleNotFoundError" not in found.stdout
    (package / "constants.py").write_text("BUG = 1\n")
    found = subprocess.run(again, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


def test_what_has_no_test_is_named(folder: Path) -> None:
    (folder / "ops.py").write_text(OPS.replace("return grad * x", "return (grad * x).sum()"))
    done = run("verify", "ops.py", "--quiet", "--write-test", "test_ops.py")
    assert done.exit_code == 1
    assert "no counterexample to write a test for" in done.output
    assert "no test for Wrong, gradient of x" in done.output
    assert not (folder / "test_ops.py").exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [("GIoU", "giou"), ("RMSNorm", "rms_norm"), ("Op", "op"), ("SwiGLU", "swi_glu"), ("x", "x")],
)
def test_a_written_test_is_named_in_words(name: str, words: str) -> None:
    assert _words(name) == words
