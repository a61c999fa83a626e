"""Sizes of torch's tensors compute as integers do, and say what has no symbolic value."""

from __future__ import annotations

import linecache
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers

PROGRAM = """
import math
import torch

class Asks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        n = x.shape[0]
        return x * x * ({forward})

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = x.shape[0]
        return 2 * g * x * ({backward})
"""


def judged(forward: str, backward: str) -> sg.Report:
    text = PROGRAM.format(forward=forward, backward=backward)
    path = f"<torch sizes {forward} {backward}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    space: dict[str, Any] = {"__name__": "torch_sizes"}
    exec(compile(text, path, "exec"), space)
    return sg.verify(space["Asks"], "n", suggest=False, timeout=None)


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        ("n & 7", "n % 8"), ("n >> 3", "n // 8"), ("(n << 2) + (~n)", "3 * n - 1"),
        ("n | 1", "n + 1 - n % 2"), ("math.trunc(n / 3)", "n // 3"),
        ("(-1) ** n", "1 - 2 * (n % 2)"),
        ("torch.sym_float(n)", "n"), ("torch.sym_int(n / 2)", "n // 2"),
        ("torch.sym_max(n, 3)", "n if n > 3 else 3"), ("torch.sym_sqrt(n)", "n ** 0.5"),
        ("1 + math.gcd(n, 4) - math.gcd(4, n)", "torch.pow(x, 0)"),
    ],
)  # fmt: skip
def test_sizes_compute_as_integers_do(forward: str, backward: str) -> None:
    assert str(judged(forward, backward).verdict) == "PROVED"
    assert str(judged(forward, f"2 * ({backward})").verdict) == "REFUTED"


@pytest.mark.parametrize(
    "text", ["n & (n - 1)", "round(n ** 0.5)", "math.isqrt(n)", "n.bit_length()", "(n / 3).hex()"]
)
def test_what_has_no_symbolic_value_is_said(text: str) -> None:
    reason = judged("1", f"len([{text}])").inputs["x"].reason
    assert ":16: the size" in reason
    assert "is symbolic, so it has no" in reason
