"""A surrogate is named also where something is stated of the inputs, or of what is drawn."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

import pytest

import symgrad as sg
from symgrad.proof.report.records import Report

pytest.importorskip("torch")
SOURCE = """
import torch


class Drawn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, p):
        ctx.save_for_backward(p)
        return {forward}

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        return {backward}
"""


def judged(folder: Path, forward: str, backward: str, spec: str, assume: str = "") -> Report:
    (folder / "drawn.py").write_text(SOURCE.format(forward=forward, backward=backward))
    function = run_path(str(folder / "drawn.py"))["Drawn"]
    return sg.verify(function, spec, suggest=False, assume=assume or None)


@pytest.mark.parametrize(
    ("forward", "backward", "meant"),
    [
        ("torch.bernoulli(p)", "g", "p"),
        ("torch.bernoulli(p).float()", "g.clone()", "p"),
        ("torch.bernoulli(torch.sigmoid(p))", "g * torch.sigmoid(p) * (1 - torch.sigmoid(p))",
         "p.sigmoid()"),
    ],
)  # fmt: skip
def test_the_mean_of_a_draw_is_named(
    tmp_path: Path, forward: str, backward: str, meant: str
) -> None:
    found = judged(tmp_path, forward, backward, "n")
    assert found.verdict is sg.SURROGATE, str(found)
    (one,) = found.inputs.values()
    assert f"`{meant}`" in one.surrogate


def test_a_step_beside_a_stated_relation_is_named(tmp_path: Path) -> None:
    found = judged(tmp_path, "torch.round(p)", "g", "n", "p.sum() < 3")
    assert found.verdict is sg.SURROGATE, str(found)


def test_what_is_no_derivative_of_a_draw_is_refuted(tmp_path: Path) -> None:
    found = judged(tmp_path, "torch.bernoulli(p)", "g.sum() * torch.ones_like(p)", "n")
    assert found.verdict is not sg.PROVED
