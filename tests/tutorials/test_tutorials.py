"""Programs as tutorials write them, verbatim but for the import, print the same as with torch."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?")


def over_symgrad(text: str) -> str:
    """The program with its imports, and nothing else, changed."""
    text = re.sub(r"^import torch$", "import symgrad as torch", text, flags=re.MULTILINE)
    return re.sub(r"^(import|from) torch\b", r"\1 symgrad", text, flags=re.MULTILINE)


def printed(text: str, path: Path) -> str:
    """What the program prints, without the name of the library."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, str(path), "exec"), {"__name__": path.stem})
    return re.sub(r"\b(torch|symgrad)\.(\w+\.)*", "", out.getvalue())


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_it_runs(path: Path) -> None:
    assert printed(over_symgrad(path.read_text(encoding="utf-8")), path)


@pytest.mark.peers
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_it_prints_what_torch_prints(path: Path) -> None:
    pytest.importorskip("torch")
    text = path.read_text(encoding="utf-8")
    theirs, ours = printed(text, path), printed(over_symgrad(text), path)
    assert NUMBER.sub("#", ours) == NUMBER.sub("#", theirs)
    numbers = [[float(word) for word in NUMBER.findall(words)] for words in (ours, theirs)]
    assert numbers[0] == pytest.approx(numbers[1], rel=2e-4, abs=2e-4)
