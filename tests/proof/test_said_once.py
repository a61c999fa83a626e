"""What a program asks of its call is said once: for all lines, and for all gradients."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

import pytest

import symgrad as sg
from symgrad.proof.report.records import Condition
from symgrad.proof.report.rendering import at_once

TWO = """
import torch


class Two(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        a = x.view(x.shape[0] * x.shape[1])
        b = w.view(x.shape[0] * x.shape[1])
        return a * b

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        g = g.reshape(x.shape)
        return g * w, g * x
"""


def test_lines_of_one_file_are_said_together() -> None:
    found = [
        Condition("asked", "view() is called (a.py:8)"),
        Condition("domain", "x > 0"),
        Condition("asked", "view() is called (a.py:9)"),
        Condition("asked", "view() is called (b.py:9)"),
    ]
    assert at_once(found) == [
        "if view() is called (a.py:8, 9)", "if x > 0", "if view() is called (b.py:9)",
    ]  # fmt: skip


def test_what_all_gradients_rest_on_is_said_above_them(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "two.py").write_text(TWO)
    found = sg.verify(run_path(str(tmp_path / "two.py"))["Two"], "n m; n m", suggest=False)
    assert found.verdict is sg.PROVED, str(found)
    lines = str(found).splitlines()
    said = [number for number, line in enumerate(lines) if "strides permit" in line]
    assert len(said) == 1
    assert lines[said[0]].endswith(":9, 10)") or lines[said[0] + 1].endswith(":9, 10)")
    assert said[0] < next(number for number, line in enumerate(lines) if "gradient of" in line)
    assert all(
        any("strides permit" in each.text for each in one.conditions)
        for one in found.inputs.values()
    )
