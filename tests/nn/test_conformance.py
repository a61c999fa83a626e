"""The same program with torch's modules and with ours: values, gradients, text, errors alike."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import symgrad
from tests.tensor.conformance_runner import assert_alike, outcome

pytestmark = pytest.mark.peers
FOLDER = Path(__file__).parent / "conformance"


def programs() -> Iterator[tuple[str, Callable[[Any], Any], bool]]:
    """Every program, and whether its error is worded as torch words it."""
    for path in sorted(FOLDER.glob("*.py")):
        module = importlib.import_module(f"tests.nn.conformance.{path.stem}")
        other_words: frozenset[str] = getattr(module, "OTHER_WORDS", frozenset())
        for name, program in vars(module).items():
            own = getattr(program, "__module__", "") == module.__name__
            if callable(program) and own and not name.startswith("_"):
                yield f"{path.stem}-{name}", program, name not in other_words


ALL = list(programs())


@pytest.mark.parametrize(
    ("program", "same_words"), [case[1:] for case in ALL], ids=[case[0] for case in ALL]
)
def test_alike(program: Callable[[Any], Any], same_words: bool) -> None:
    torch = pytest.importorskip("torch")
    assert_alike(outcome(program, torch), outcome(program, symgrad), same_words=same_words)
