"""A diff says what it was proved for, and drops nothing that other calls need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.pasting.test_repairs import HEAD, applied, loaded

import symgrad as sg  # isort: skip

PLAIN = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, groups):
        rows = x.reshape(groups, -1)
        mean = rows.mean(1, keepdim=True)
        ctx.save_for_backward(rows, mean)
        return ((rows - mean) ** 2).reshape(x.shape)

    @staticmethod
    def backward(ctx, g):
        rows, mean = ctx.saved_tensors
        return (3 * g.reshape(rows.shape) * (rows - mean)).reshape(g.shape), None
"""


def printed(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """What ``--suggest --quiet`` prints."""
    command = [sys.executable, "-m", "symgrad", "verify", f"{path}:Op", "--suggest", "--quiet"]
    return subprocess.run([*command, *options], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_diff_says_what_it_was_proved_for(tmp_path: Path) -> None:
    path = tmp_path / "plain.py"
    report: Any = sg.verify(loaded(path, PLAIN))
    assert report.diff.startswith("--- ")
    said, *_ = report.made.scope
    assert said.startswith("proved for x[")
    assert "if groups = 1" in said
    assert said.endswith("; other shapes and values were not judged")
    found = printed(path).stdout
    lines, diff = found[found.index("# proved") :].split("--- ", 1)
    assert all(line.startswith("# ") for line in lines.splitlines())
    assert f"# {said}\n" in lines
    right = applied(HEAD + PLAIN, f"--- {diff}")
    assert sg.verify(loaded(tmp_path / "right.py", right.removeprefix(HEAD))).verdict is sg.PROVED


STATED = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x
"""


def test_a_diff_for_all_that_is_stated_needs_no_line(tmp_path: Path) -> None:
    report: Any = sg.verify(loaded(tmp_path / "stated.py", STATED), "n")
    assert report.diff
    assert report.made.scope == ()


ABSENT = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        y = sg.log(sg.cosh(x)) * x
        if weight is not None:
            y = y * weight
        return y

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        given = g
        if weight is not None:
            given = g * weight
        return given * sg.sinh(x), None
"""
KEPT = ABSENT.replace("sg.log(sg.cosh(x)) * x", "sg.sinh(x)")
CARRIED = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, times):
        ctx.save_for_backward(x)
        ctx.times = times
        y = x
        for _ in range(times):
            y = sg.log(sg.cosh(y)) * x
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * sg.sinh(x) ** ctx.times, None
"""


def test_no_diff_leaves_out_a_number_that_has_one_value(tmp_path: Path) -> None:
    report: Any = sg.verify(loaded(tmp_path / "carried.py", CARRIED), "n", static={"times": 1})
    assert report.verdict is sg.REFUTED
    assert report.inputs["x"].suggestion
    assert "times = 1 alone" in report.made.refused, report.diff


def test_a_repair_that_keeps_the_branch_is_a_diff(tmp_path: Path) -> None:
    report: Any = sg.verify(loaded(tmp_path / "kept.py", KEPT), "n", None)
    assert "+        return given * sg.cosh(x), None\n" in report.diff
    assert "if weight = None" in report.made.scope[0]


def test_no_diff_leaves_out_the_branch_of_another_call(tmp_path: Path) -> None:
    path = tmp_path / "absent.py"
    report: Any = sg.verify(loaded(path, ABSENT), "n", None)
    assert report.verdict is sg.REFUTED
    assert "weight = None alone" in report.made.refused, str(report)
    assert (
        "no diff: the repair in the report is proved for"
        in printed(path, "--static", "weight=None", "--shapes", "n").stderr
    )
