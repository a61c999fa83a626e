"""The contracts between packages hold, and catch what they are there to catch."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.house import tree

pytestmark = pytest.mark.slow

LINT = (sys.executable, "-c", "from importlinter.cli import lint_imports_command as m; m()")

# A module, an import planted in it, the contract that this breaks.
PLANTED = [
    ("errors.py", "import symgrad.ir.dim", "Imports point one way"),
    ("ir/dim.py", "import symgrad.ops", "Imports point one way"),
    ("ops/__init__.py", "import symgrad.frontend", "Imports point one way"),
    ("autodiff/__init__.py", "import symgrad.codegen", "Imports point one way"),
    ("runtime/__init__.py", "def f():\n    import symgrad.proof", "Imports point one way"),
    ("frontend/__init__.py", "import symgrad.index", "Only proof and codegen"),
    ("proof/oracle/values.py", "import symgrad.proof.normal.zero", "The rooms of the proof"),
    ("ops/__init__.py", "import sympy", "sympy stays in the proof"),
    ("proof/oracle/values.py", "import symgrad.autodiff", "What judges a gradient"),
    ("runtime/__init__.py", "import jinja2", "Templates are the code generator's affair"),
    (
        "tools/__init__.py",
        "import torch",
        "Only what adapts torch or exports to it imports it, and JAX",
    ),
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package and its settings, to plant imports in."""
    shutil.copy(tree.ROOT / "pyproject.toml", tmp_path)
    ignore = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(tree.ROOT / "symgrad", tmp_path / "symgrad", ignore=ignore))


def lint(package: Path) -> tuple[int, str]:
    done = tree.run(*LINT, "--no-logo", "--no-cache", cwd=package.parent)
    return done.returncode, done.stdout


def test_the_tree_keeps_its_contracts(copy: Path) -> None:
    code, printed = lint(copy)
    assert code == 0, printed


@pytest.mark.parametrize(("module", "line", "contract"), PLANTED)
def test_planted_import_is_caught(copy: Path, module: str, line: str, contract: str) -> None:
    path = copy / module
    path.write_text(f"{path.read_text()}\n\n{line}\n")
    code, printed = lint(copy)
    assert code == 1
    broken = [text for text in printed.splitlines() if " BROKEN" in text]
    assert any(text.startswith(contract) for text in broken)  # one import may break two


def test_module_without_a_layer_is_caught(copy: Path) -> None:
    (copy / "sideways.py").write_text('"""A module of no layer."""\n')
    code, printed = lint(copy)
    assert code == 1
    assert "sideways" in printed
