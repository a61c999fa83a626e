"""``import symgrad`` is light, and the names it promises are there, typed as they are."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import symgrad
from tests.house import tree

HEAVY = ("cffi", "flint", "jinja2", "mpmath", "numpy", "rich", "sympy", "torch", "jax")


def imported_by(statement: str, tmp_path: Path) -> set[str]:
    """The modules that ``statement`` imports, as ``-X importtime`` tells."""
    done = tree.run(sys.executable, "-X", "importtime", "-c", statement, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    lines = [line for line in done.stdout.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


def test_import_symgrad_is_light(tmp_path: Path) -> None:
    modules = imported_by("import symgrad", tmp_path)
    assert "symgrad" in modules
    assert not modules & set(HEAVY)


def test_help_is_light(tmp_path: Path) -> None:
    done = (
        "import click, sys; sys.argv[1:] = ['--help']; from symgrad.tools.cli import main; main()"
    )
    modules = imported_by(done, tmp_path)
    assert "symgrad.tools.cli" in modules
    assert not modules & {*HEAVY, "symgrad.compiler", "symgrad.frontend"}


VERDICT = """
import symgrad as sg

class Square(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad

assert sg.verify(Square, "n").verdict == "PROVED"
"""


def test_a_verdict_needs_neither_sympy_nor_the_code_generator(tmp_path: Path) -> None:
    modules = imported_by(f"exec({VERDICT!r})", tmp_path)
    assert "symgrad.proof.verify" in modules
    assert not modules & {"sympy", "flint", "cffi", "jinja2", "rich", "symgrad.emission"}


@pytest.mark.parametrize("layer", ["errors", "ir", "ops", "index", "frontend", "runtime"])
def test_lower_layers_do_not_import_sympy(layer: str, tmp_path: Path) -> None:
    modules = imported_by(f"import symgrad.{layer}", tmp_path)
    assert f"symgrad.{layer}" in modules
    assert not modules & {"sympy", "jinja2", "torch", "jax"}


@pytest.mark.parametrize("name", symgrad.__all__)
def test_public_name_is_there(name: str) -> None:
    assert getattr(symgrad, name) is not None
    assert name in dir(symgrad)


def test_operations_are_public() -> None:
    assert {"exp", "where", "cat"} <= set(dir(symgrad))
    assert callable(symgrad.exp)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'gradent'"):
        _ = symgrad.gradent


def test_types_and_table_agree() -> None:
    """Type checkers read the imports under TYPE_CHECKING, Python the table: they say the same."""
    module = ast.parse(Path(symgrad.__file__).read_text(encoding="utf-8"))
    typed = {
        alias.asname or alias.name: (statement.module, alias.name)
        for block in module.body
        if isinstance(block, ast.If)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    table = {}
    for name, source in symgrad._SOURCES.items():
        where, _, attribute = source.partition(":")
        table[name] = (where, attribute or name)
    assert typed == table


@pytest.mark.slow
@pytest.mark.parametrize("name", ["compile", "verify", "jit", "tensor", "func", "nn", "sin"])
def test_any_name_may_be_asked_for_first(name: str) -> None:
    """No module waits for one that is being imported because of it."""
    done = tree.run(sys.executable, "-c", f"import symgrad as sg; sg.{name}", cwd=tree.ROOT)
    assert done.returncode == 0, done.stdout
