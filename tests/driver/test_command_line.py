"""The command line, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from symgrad.cli import main
from symgrad.compiler import STAGES

ROOT = Path(__file__).parent.parent.parent
OPS = str(ROOT / "examples" / "ops.py")
WRONG = """
import symgrad as sg


class Square(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return grad_y * x
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    path = tmp_path / "wrong.py"
    path.write_text(WRONG)
    return path


def test_verify_proves_the_examples() -> None:
    done = run("verify", OPS)
    assert done.exit_code == 0, done.output
    assert "PROVED" in done.output
    assert "REFUTED" not in done.output


def test_verify_refutes(wrong: Path) -> None:
    done = run("verify", str(wrong), "--shapes", "n")
    assert done.exit_code == 1
    assert "REFUTED" in done.output


def test_verify_prints_json(wrong: Path) -> None:
    done = run("verify", f"{wrong}:Square", "--shapes", "n m", "--json")
    assert done.exit_code == 1
    (report,) = json.loads(done.stdout)
    assert report["verdict"] == "REFUTED"
    assert report["inputs"]["x"]["verdict"] == "REFUTED"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("verify", "nowhere.py"), "there is no file"),
        (("verify", "no_such_module_at_all"), "neither a file nor a module"),
        (("verify", f"{OPS}:Nothing"), "has no Function 'Nothing'"),
        (("verify", OPS, "--static", "oops"), "NAME=VALUE"),
        (("build", OPS, "-o", "x", "--shapes", "n n n; ["), "Error"),
    ],
)
def test_wrong_calls_end_in_a_message(arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize("stage", STAGES)
def test_show_every_stage(stage: str) -> None:
    done = run("show", f"{OPS}:LayerNorm", "--stage", stage)
    assert done.exit_code == 0, done.output
    assert "normalized" in done.output


def test_build_refuses_what_is_not_proved(wrong: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    done = run("build", str(wrong), "-o", str(folder), "--shapes", "n")
    assert done.exit_code == 2
    assert "NotProvedError" in done.output
    assert not folder.exists()


def test_build_writes_a_package(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    assert run("build", f"{OPS}:Tanh", "-o", str(folder), "--no-compile").exit_code == 0
    names = {path.name for path in folder.iterdir()}
    assert {"__init__.py", "tanh.py", "tanh.c", "tanh.h", "MANIFEST.json"} <= names
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    assert manifest["ops"]["tanh"]["proof"]["verdict"] == "PROVED"
    again = run("build", f"{OPS}:Tanh", "-o", str(folder), "--check")
    assert again.exit_code == 0, again.output
    (folder / "tanh.c").write_text("changed")
    assert run("build", f"{OPS}:Tanh", "-o", str(folder), "--check").exit_code == 1


def test_generated_is_up_to_date() -> None:
    done = run("regen", "--check")
    assert done.exit_code == 0, done.output


SURROGATE = """
import symgrad as sg


@sg.surrogate(lambda x, slope=2.0: slope * sg.clamp(x, -1, 1))
class Sign(sg.Function):
    @staticmethod
    def forward(ctx, x, slope=2.0):
        ctx.save_for_backward(x)
        ctx.slope = slope
        return sg.sign(x)

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return ctx.slope * grad_y * (x.abs() <= 1), None
"""


def test_what_a_verdict_is_against_stands_in_the_table(tmp_path: Path, wrong: Path) -> None:
    path = tmp_path / "sign.py"
    path.write_text(SURROGATE)
    done = run("verify", str(path), "--quiet")
    assert done.exit_code == 0, done.output
    assert "declared surrogate" in done.output
    assert "declared surrogate" not in run("verify", str(wrong), "--quiet").output


@pytest.mark.parametrize("shapes", [(), ("--shapes", "n")])
def test_an_argument_that_is_not_there_is_named(wrong: Path, shapes: tuple[str, ...]) -> None:
    done = run("verify", str(wrong), "--static", "beta=3", *shapes)
    assert done.exit_code == 1
    assert "Square has no argument 'beta'" in done.output
    assert "its arguments: x" in done.output


def test_the_table_says_what_a_condition_does(tmp_path: Path) -> None:
    path = tmp_path / "inverse.py"
    path.write_text("""
import symgrad as sg


class Inverse(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n]", index: "i64[k]"):
        ctx.save_for_backward(x, index)
        return (x.abs() / x)[index]

    @staticmethod
    def backward(ctx, grad_y):
        x, index = ctx.saved_tensors
        return sg.zeros(x.shape[0]), None
""")
    done = run("verify", str(path), "--quiet")
    assert done.exit_code == 0, done.output
    assert "if 0 <= index < n" in done.output
    assert "at the kink: x == 0" in done.output
