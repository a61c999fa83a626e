"""A proof is one of the trace: torch is asked at a point whether that is what it computes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers
F = torch.nn.functional
Function: Any = torch.autograd.Function


class Divergence(Function):
    """The batch is the first axis of the input, whatever it is broadcast to."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return F.kl_div(x, y, log_target=True, reduction="batchmean")

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        count = x.shape[0] if x.ndim else 1
        e = g * y.exp() / count
        return (-e + 0 * x).sum_to_size(x.shape), (e * (y - x + 1)).sum_to_size(y.shape)


class DividedByWhole(Divergence):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        e = g * y.exp() / (x + y).shape[0]
        return (-e + 0 * x).sum_to_size(x.shape), (e * (y - x + 1)).sum_to_size(y.shape)


@pytest.mark.parametrize("shapes", [("1 m", "n m"), ("", "n m"), ("n m", "n m")])
def test_a_mean_over_the_batch_divides_by_the_size_of_the_input(shapes: tuple[str, ...]) -> None:
    assert sg.verify(Divergence, *shapes, suggest=False).verdict == sg.PROVED
    wrong = sg.PROVED if shapes[0] == "n m" else sg.REFUTED
    assert sg.verify(DividedByWhole, *shapes, suggest=False).verdict == wrong


PROGRAM = """
import sys
import symgrad as sg
import torch
from symgrad.frontend.table import FUNCTIONS

class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        print("run")
        ctx.save_for_backward(x)
        return torch.cosh(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.exp(x) * g

if sys.argv[1] == "mistaken":
    sg.cosh  # which fills the table
    FUNCTIONS["cosh"] = FUNCTIONS["exp"]
report = sg.verify(Wrong, "n", suggest=False)
print(report.verdict, report.inputs["x"].reason)
"""


@pytest.mark.parametrize(("kind", "verdict"), [("right", "REFUTED"), ("mistaken", "UNDECIDED")])
def test_what_torch_does_not_compute_is_not_proved(
    kind: str, verdict: str, tmp_path: Path
) -> None:  # fmt: skip
    """With a mistake in the trace, ``cosh`` is ``exp``: the proof would be one of that."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, str(file), kind], capture_output=True, text=True, check=True
    )
    last = ran.stdout.splitlines()[-1]
    assert last.startswith(verdict), ran.stdout
    assert ("in torch backward gives" in last) == (kind == "mistaken")
