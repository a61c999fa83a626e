"""What a report prints as the declaration of a surrogate is accepted, and PROVED."""

from __future__ import annotations

from pathlib import Path

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
