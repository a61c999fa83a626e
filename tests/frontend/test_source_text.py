"""The text of a method, whatever its lines are indented with."""

from __future__ import annotations

import ast

import pytest

from symgrad.frontend.source_text import dedented


@pytest.mark.parametrize("second", ["       \t", "\t", "        ", "    \t"])
def test_tabs_end_at_a_multiple_of_eight(second: str) -> None:
    text = f"    def f(x):\n        y = x\n{second}z = y\n        return z\n"
    (function,) = ast.parse(dedented(text)).body
    assert isinstance(function, ast.FunctionDef)
    assert len(function.body) == 3
