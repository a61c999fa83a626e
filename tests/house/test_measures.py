"""The house's measures: short functions, docstrings that say what a module is for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.house import tree

LONGEST_FUNCTION = 60
MODULES = sorted((tree.ROOT / "symgrad").rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(tree.ROOT)))
def test_measures(path: Path) -> None:
    module = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(module), "a module says what comes in, what goes out, what it imports"
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{node.name}, line {node.lineno}: {length} lines"
