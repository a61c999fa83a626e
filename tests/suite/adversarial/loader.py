"""The programs of the folder ``kinds``, over symgrad or, with the same text, over torch."""

from __future__ import annotations

import importlib
from pathlib import Path

from tests.suite.adversarial.program import Program
from tests.suite.corpus_loader import module_over_torch

FOLDER = Path(__file__).parent / "kinds"
KINDS = tuple(sorted(path.stem for path in FOLDER.glob("*.py")))


def over_symgrad(kind: str) -> dict[str, Program]:
    """The programs of a kind by name."""
    module = importlib.import_module(f"tests.suite.adversarial.kinds.{kind}")
    found: dict[str, Program] = module.programs.found
    return found


def over_torch(kind: str) -> dict[str, Program]:
    """The same programs, bound to torch."""
    found: dict[str, Program] = module_over_torch(kind, FOLDER).programs.found
    return found
