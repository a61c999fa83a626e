"""Repairs pasted into the user's file: what a diff changes, and that it then is PROVED."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import symgrad as sg
from symgrad.proof.report.records import Report
from symgrad.tools.cli import main

HEAD = "import symgrad as sg\n\n\n"
HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


def applied(text: str, diff: str) -> str:
    """A text after a unified diff of it; fails where the diff does not fit."""
    lines, result, at = text.splitlines(keepends=True), [], 0
    for line in diff.splitlines(keepends=True)[2:]:
        hunk = HUNK.match(line)
        if hunk:
            start = int(hunk.group(1)) - 1
            result += lines[at:start]
            at = start
        elif line[0] == "+":
            result.append(line[1:])
        else:
            assert lines[at] == line[1:], "the diff does not fit"
            at += 1
            if line[0] == " ":
                result.append(line[1:])
    return "".join([*result, *lines[at:]])


def loaded(path: Path, text: str) -> Any:
    """The class ``Op`` of a file with this text."""
    path.write_text(HEAD + text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module.Op


def repaired(tmp_path: Path, text: str, *specs: str, **options: Any) -> tuple[Report, str]:
    """The report on a wrong text, and the text after the diff, which is PROVED."""
    wrong = sg.verify(loaded(tmp_path / "written_wrong.py", text), *specs, **options)
    assert wrong.verdict is sg.REFUTED, str(wrong)
    assert wrong.diff, str(wrong)
    right = applied(HEAD + text, wrong.diff)
    report = sg.verify(
        loaded(tmp_path / "written_right.py", right.removeprefix(HEAD)), *specs, **options
    )
    assert report.verdict is sg.PROVED, f"{wrong.diff}\n{report}"
    return wrong, right


SOFTPLUS = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return sg.log1p(sg.exp(x))

    @staticmethod
    def backward(ctx, grad_y):
        # what is saved has another name here
        (point,) = ctx.saved_tensors
        return (  # kept
            grad_y * sg.sigmoid(-point)
        )
"""


def test_only_the_expression_changes_in_the_names_of_backward(tmp_path: Path) -> None:
    report, right = repaired(tmp_path, SOFTPLUS, "n m")
    assert report.inputs["x"].suggestion == "grad_y * point.sigmoid()"
    before, after = (HEAD + SOFTPLUS).splitlines(), right.splitlines()
    changed = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    assert changed == [
        ("            grad_y * sg.sigmoid(-point)", "            grad_y * sg.sigmoid(point)")
    ]
    assert any("`-point`" in said and "line 15" in said for said in report.inputs["x"].diagnosis)


GUARDED = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return x @ weight.mT + bias

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_x = 2 * grad_output @ weight
        if ctx.needs_input_grad[1]:
            grad_weight = -grad_output.mT @ x
        if ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_x, grad_weight, grad_bias
"""


def test_a_gradient_is_repaired_under_its_guard(tmp_path: Path) -> None:
    _, right = repaired(tmp_path, GUARDED, "n k", "m k", "m")
    assert "            grad_x = grad_output @ weight\n" in right
    assert "            grad_weight = grad_output.mT @ x\n" in right
    assert "        return grad_x, grad_weight, grad_bias\n" in right


def test_what_is_not_saved_is_saved(tmp_path: Path) -> None:
    text = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(w)
        return sg.sin(x) * w

    @staticmethod
    def backward(ctx, g):
        w, = ctx.saved_tensors
        return g * w, g
"""
    report, right = repaired(tmp_path, text, "n", "n")
    assert "ctx.save_for_backward(w, x)" in right
    assert "w, x, = ctx.saved_tensors" in right
    assert any("save x too" in said for said in report.inputs["x"].diagnosis)


def test_what_is_saved_nowhere_is_saved_first(tmp_path: Path) -> None:
    text = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mask = x > 0
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.mask
"""
    _, right = repaired(tmp_path, text, "n m")
    assert "ctx.save_for_backward(x)\n" in right
    assert "(x,) = ctx.saved_tensors\n" in right


def test_an_overwritten_cotangent_is_kept(tmp_path: Path) -> None:
    text = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, z):
        ctx.save_for_backward(x, z)
        return x / z

    @staticmethod
    def backward(ctx, g):
        x, z = ctx.saved_tensors
        g = g.sum()
        return g / z, -g * x / z
"""
    report, right = repaired(tmp_path, text, "n", "n")
    assert "g_in = g\n" in right
    assert any("gives the name g to another value" in said for said in report.inputs["x"].diagnosis)


def test_numbers_keep_their_names(tmp_path: Path) -> None:
    text = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.slope = slope
        s = sg.sigmoid(slope * x)
        ctx.save_for_backward(s)
        return s

    @staticmethod
    def backward(ctx, g):
        (s,) = ctx.saved_tensors
        return g * s * (1 - s), None
"""
    _, right = repaired(tmp_path, text, "n", static={"slope": 1.7})
    assert "ctx.slope, None\n" in right
    assert "1.7" not in right


STATED = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, scale, power):
        ctx.save_for_backward(x)
        ctx.scale, ctx.power = scale, power
        return scale * x ** power

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x ** (ctx.power - 1), None, None
"""


@pytest.mark.parametrize("scale", [1.0, 2.0, 3, 0.75])
def test_a_stated_number_is_read_from_where_it_is_kept(tmp_path: Path, scale: float) -> None:
    """Whatever else has its value: no other scale makes the repaired class wrong."""
    report, right = repaired(tmp_path, STATED, "n", static={"scale": scale, "power": 2})
    found = report.inputs["x"]
    assert "ctx.scale" in (found.suggestion or "")
    assert all("scale" not in one.text for one in found.suggested_under)
    other = loaded(tmp_path / "other.py", right.removeprefix(HEAD))
    assert sg.verify(other, "n", static={"scale": -0.3, "power": 2}).verdict is sg.PROVED


def test_a_line_that_fails_is_repaired_alone(tmp_path: Path) -> None:
    text = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, g):
        left, right = ctx.saved_tensors
        grad = g @ right
        return grad, 2 * left.mT @ -g
"""
    _, right = repaired(tmp_path, text, "n k", "k m")
    assert "        grad = g @ right.mT\n        return grad, left.mT @ g\n" in right


def test_a_backward_that_fails_is_written_anew_after_what_it_reads(tmp_path: Path) -> None:
    text = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, g):
        left, right = ctx.saved_tensors
        grad = g @ right
        return grad @ left, grad.mT @ g
"""
    _, right = repaired(tmp_path, text, "n k", "k m")
    assert "        return g @ right.mT, left.mT @ g\n" in right
    assert "grad = " not in right


def test_gradients_that_are_not_written_one_by_one(tmp_path: Path) -> None:
    text = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, scale, *inputs):
        ctx.save_for_backward(scale, *inputs)
        return tuple(scale * one for one in inputs)

    @staticmethod
    def backward(ctx, *grads):
        scale, *inputs = ctx.saved_tensors
        total = sum(g * one for g, one in zip(grads, inputs))
        return (total, *[2 * g * scale for g in reversed(grads)])
"""
    _, right = repaired(tmp_path, text, "n m", "n m", "n m")
    assert "gradients = list((total, *[2 * g * scale for g in reversed(grads)]))\n" in right
    assert "return tuple(gradients)\n" in right


@pytest.mark.parametrize(
    "decorations",
    ["    @staticmethod\n", "    @staticmethod\n    @sg.once_differentiable\n"],
    ids=["plain", "once"],
)
def test_decorators_stay(tmp_path: Path, decorations: str) -> None:
    text = SOFTPLUS.replace(
        "    @staticmethod\n    def backward", f"{decorations}    def backward"
    )  # fmt: skip
    _, right = repaired(tmp_path, text, "n")
    assert decorations in right


def test_the_setup_style(tmp_path: Path) -> None:
    text = """class Op(sg.Function):
    @staticmethod
    def forward(x, w):
        return x * w

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w = inputs
        ctx.save_for_backward(w)

    @staticmethod
    def backward(ctx, g):
        (w,) = ctx.saved_tensors
        return g * w, g * w
"""
    _, right = repaired(tmp_path, text, "n", "n")
    assert "ctx.save_for_backward(w, x)" in right


def test_a_class_inside_a_function(tmp_path: Path) -> None:
    text = """def make(power):
    class Inner(sg.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** power

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x ** (power - 1)

    return Inner


Op = make(3)
"""
    repaired(tmp_path, text, "n")


def test_nothing_is_offered_for_what_is_right(tmp_path: Path) -> None:
    right = SOFTPLUS.replace("(-point)", "(point)")
    report = sg.verify(loaded(tmp_path / "written_right.py", right), "n m")
    assert report.verdict is sg.PROVED
    assert report.diff == ""


def test_an_inherited_backward_is_left_alone(tmp_path: Path) -> None:
    text = SOFTPLUS.replace("class Op", "class Base") + "\n\nclass Op(Base):\n    pass\n"
    report = sg.verify(loaded(tmp_path / "written_wrong.py", text), "n m")
    assert report.inputs["x"].suggestion == "grad_y * point.sigmoid()"
    assert report.diff == ""


def test_what_is_mutated_is_not_repaired_by_an_expression(tmp_path: Path) -> None:
    text = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g.mul_(2 * x)
"""
    report = sg.verify(loaded(tmp_path / "written_wrong.py", text), "n m")
    assert report.verdict is sg.REFUTED
    assert report.diff == ""


def test_the_command_line_prints_the_diff(tmp_path: Path) -> None:
    path = tmp_path / "written_wrong.py"
    path.write_text(HEAD + SOFTPLUS, encoding="utf-8")
    result = CliRunner().invoke(main, ["verify", str(path), "--shapes", "n m", "--suggest"])
    assert result.exit_code == 1
    diff = result.output[result.output.index("--- a") :]
    assert "sg.sigmoid(point)" in applied(HEAD + SOFTPLUS, diff)


SQUARE = """{head}

class Square(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        # Größe
        return g * 3 * x
"""


@pytest.mark.skipif(shutil.which("patch") is None, reason="there is no patch")
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.rstrip().encode(),
        lambda text: text.rstrip().replace("\n", "\r\n").encode(),
        lambda text: text.replace("\n", "\r\n", 5).encode(),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
    ],
    ids=["lf", "crlf", "no last newline", "crlf, no last newline", "mixed", "bom"],
)
def test_patch_takes_the_diff(change: Callable[[str], bytes], tmp_path: Path) -> None:
    """Whatever ends the lines."""
    file = tmp_path / "square.py"
    file.write_bytes(change(SQUARE.format(head="import symgrad as sg")))
    command = [sys.executable, "-m", "symgrad", "verify", "square.py", "--suggest"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert told.returncode == 1, told.stderr.decode()
    diff = told.stdout[told.stdout.index(b"--- a/") :]
    done = subprocess.run(
        ["patch", "-p1"], input=diff, cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert b"Hunk" not in done.stdout
    fixed = file.read_bytes()
    assert b"3 * x" not in fixed
    compile(fixed, "square.py", "exec")


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("grad_y, grad_y.mean(0)", "should be a sum, not a mean"),
        ("grad_y, grad_y.sum(0) * b", "there is an extra factor: leave out `b`"),
        ("grad_y, grad_y.sum(0) / b", "should not be a quotient"),
    ],
)
def test_it_is_said_which_operation_is_too_much(tmp_path: Path, returned: str, said: str) -> None:
    text = f"""class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, b):
        ctx.save_for_backward(b)
        return x + b

    @staticmethod
    def backward(ctx, grad_y):
        (b,) = ctx.saved_tensors
        return {returned}
"""
    report = sg.verify(loaded(tmp_path / "superfluous.py", text), "n m", "m")
    assert any(said in words for words in report.inputs["b"].diagnosis), str(report)


@pytest.mark.parametrize(
    ("wrong", "said", "right"),
    [
        ("g * (1 - y * y) * w", "leave out `w`", "g * (1 - y * y)"),
        ("-(w * (g * y * y - g))", "leave out `w`", "-(g * y * y - g)"),
    ],
)
def test_an_extra_factor_is_left_out(tmp_path: Path, wrong: str, said: str, right: str) -> None:
    text = f"""class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, w):
        y = (x / w).tanh()
        ctx.save_for_backward(y, w)
        return y * w

    @staticmethod
    def backward(ctx, g):
        y, w = ctx.saved_tensors
        return {wrong}, None
"""
    op = loaded(tmp_path / "extra.py", text)
    found = sg.verify(op, "n", "n", assume={"w": "constant"}).inputs["x"]
    assert found.verdict is sg.REFUTED
    assert found.diagnosis == (f"there is an extra factor: {said}",)
    assert found.suggestion == right


def test_a_sum_that_should_be_a_mean_is_written_as_one(tmp_path: Path) -> None:
    text = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x - x.mean(1, keepdim=True)

    @staticmethod
    def backward(ctx, g):
        return g - g.sum(1, keepdim=True)
"""
    found = sg.verify(loaded(tmp_path / "mean.py", text), "n m").inputs["x"]
    assert found.verdict is sg.REFUTED
    assert found.diagnosis[0].startswith("`g.sum(1, keepdim=True)` should be a mean, not a sum")
    assert found.suggestion == "g - g.mean(1, keepdim=True)"


def test_a_divisor_that_should_be_squared_is_blamed(tmp_path: Path) -> None:
    text = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / (1 + x.abs())

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / (1 + x.abs())
"""
    found = sg.verify(loaded(tmp_path / "divisor.py", text), "n").inputs["x"]
    assert found.verdict is sg.REFUTED
    assert "the divisor in `g / (1 + x.abs())` should be squared" in found.diagnosis[0]
    assert found.suggestion == "g / (1 + x.abs()).square()"


def test_what_another_right_gradient_is_made_of_is_not_blamed(tmp_path: Path) -> None:
    text = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, s, w, t):
        p = sg.softmax(s - w * t, 1)
        ctx.save_for_backward(p, t)
        return p

    @staticmethod
    def backward(ctx, g):
        p, t = ctx.saved_tensors
        d = p * (g - (p * g).sum(1, keepdim=True))
        return d, (d * t).sum(1, keepdim=True), None
"""
    op = loaded(tmp_path / "shared.py", text)
    found = sg.verify(op, "n m", "n 1", "n m", assume={"t": "constant"}).inputs
    assert found["s"].verdict is sg.PROVED
    assert found["w"].diagnosis == ("the sign is wrong",)
    assert found["w"].suggestion == "-(d * t).sum(1, keepdim=True)"


SHARED = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, a, b, s):
        ctx.save_for_backward(x, a, b, s)
        return s * (x @ a.mT @ b.mT)

    @staticmethod
    def backward(ctx, g):
        x, a, b, s = ctx.saved_tensors
        h = g @ b
        return s * h @ a, h.mT @ x, s * g.mT @ (x @ a.mT), (g * (x @ a.mT @ b.mT)).sum()
"""

SQUARED = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        p = g * y
        return p, 2 * p * x
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "wrong", "shapes"),
    [
        (SHARED, ["a"], ("n d", "r d", "o r", "")),
        (SQUARED, ["x"], ("n", "n")),
        (SQUARED.replace("g * y", "g").replace("return p", "return p * y"), ["x", "y"], ("n", "n")),
    ],
)
def test_only_what_no_right_gradient_is_made_of_is_edited(
    tmp_path: Path, text: str, wrong: list[str], shapes: tuple[str, ...]
) -> None:
    report, after = repaired(tmp_path, text, *shapes)
    assert [one.name for one in report.inputs.values() if one.verdict is sg.REFUTED] == wrong
    local = next(line for line in text.splitlines() if re.match(r"\s+[hp] = ", line))
    assert (local in after.splitlines()) == (len(wrong) == 1)
