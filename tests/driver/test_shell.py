"""Values of arguments as a shell has them."""

from __future__ import annotations

import enum
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import symgrad as sg
from symgrad.errors import SpecError
from symgrad.tools.cli import main
from symgrad.tools.shell import values


class Mode(enum.Enum):
    FAST = 1


class Inner:
    limit = 4.0


class Scale(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, factor: Any) -> Any:
        return x * 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2.5", 2.5), ("-1", -1), ("True", True), ("None", None), ("(1, 2)", (1, 2)),
        ("'true'", "true"), ("mean", "mean"), ("cuda:0", "cuda:0"), ("ij,jk->ik", "ij,jk->ik"),
        ("a-b", "a-b"), ("b h n", "b h n"), ("", ""), ("Mode.FAST", Mode.FAST),
        ("Inner.limit", 4.0), ("-Inner.limit", -4.0), ("math.inf", math.inf),
        ("-math.inf", -math.inf), ("test_shell.Mode.FAST", Mode.FAST), ("no.such", "no.such"),
        ("Mode", "Mode"),
    ],
)  # fmt: skip
def test_values(text: str, value: Any) -> None:
    found = values({"factor": text}, [Scale])["factor"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("true", "write True"), ("false", "write False"),
        ("NONE", "write None"), ("-inf", "write -math.inf"), ("Mode.SLOW", "Mode has no SLOW"),
        ("math.inf.x", "math.inf has no x"), ("1/3", "neither a value nor a name"),
        ("float('inf')", "a dotted name"), ("[1, n]", "a literal of Python"), ("(1, 2", "neither"),
        ("2**8", "neither"),
    ],
)  # fmt: skip
def test_what_is_no_value_is_an_error(text: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        values({"factor": text}, [Scale])
    assert f"factor={text}" in caught.value.what
    assert said in str(caught.value)


@pytest.mark.peers
@pytest.mark.parametrize("text", ["torch.float64", "torch.float16", "Kind.DOUBLE"])
def test_dtypes_of_torch(text: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "casts.py"
    file.write_text(
        """
import enum

import torch


class Kind(enum.Enum):
    DOUBLE = torch.float64


class Cast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dtype):
        ctx.dtype = x.dtype
        return x.to(getattr(dtype, "value", dtype)) * 2

    @staticmethod
    def backward(ctx, g):
        return (g * 2).to(ctx.dtype), None
"""
    )
    done = CliRunner().invoke(main, ["verify", str(file), "--static", f"dtype={text}"])
    assert done.exit_code == 0, done.output
    assert f"for dtype = {text}" in done.output
