"""What a report prints as the declaration of a surrogate is accepted, and PROVED."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import symgrad as sg
from tests.proof import test_surrogates as named

pytestmark = pytest.mark.slow
CLASSES = {
    named.OneHot: True, named.Scaled: True, named.Limited: True, named.LimitedByWhere: True,
    named.Tanh: False, named.HardSample: True, named.Parts: True,
}  # fmt: skip
"""Is there a function that declares it?"""
MADE = {
    **{f"{step} identity": (step, "identity") for step in named.STEPS},
    **{f"cast {slope}": ("cast", slope) for slope in named.SLOPES},
}
HEAD = "if that is meant, declare it in symgrad.toml:\n"


def declared(function: type[sg.Function], folder: Path, *specs: str) -> str:
    """The line that the report prints; empty where it is no surrogate.

    Once it is declared, the verdict is PROVED, or the one that it expects.
    """
    first = sg.verify(function, *specs)
    if str(first.verdict) != "SURROGATE?":
        return ""
    line = str(first).partition(HEAD)[2].partition("\n")[0].strip()
    path = folder / "symgrad.toml"
    path.write_text(f'[functions."{function.__qualname__}"]\n{line}\n')
    again = str(sg.verify(function, *specs, config=path).verdict)
    assert again == ("PROVED" if line.startswith("surrogate = ") else "SURROGATE?"), line
    return line


@pytest.mark.parametrize("which", MADE)
def test_slopes_of_steps(which: str, tmp_path: Path) -> None:
    step, slope = MADE[which]
    function = named.made(named.STEPS[step], named.SLOPES[slope][0])
    assert declared(function, tmp_path, "n").startswith("surrogate = ")


@pytest.mark.parametrize("function", CLASSES)
def test_classes(function: type[sg.Function], tmp_path: Path) -> None:
    line = declared(function, tmp_path)
    assert line.startswith("surrogate = " if CLASSES[function] else "verdict = ")


class WritesToo(sg.Function):
    """A surrogate that writes into the incoming gradient: wrong for that."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return sg.sign(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        g[x > 1] = 0
        g[x < -1] = 0
        return g


def test_the_verdict_that_is_to_be_declared_is_that_on_the_function() -> None:
    report = sg.verify(WritesToo, "n")
    assert report == sg.REFUTED
    assert report.inputs["x"].verdict == sg.SURROGATE
    assert 'verdict = "REFUTED"' in str(report)
