"""The repository as the house tests see it: its root, its settings, its packages.

In: the working tree.  Out: paths and tables.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # a dependency of pytest on 3.10

ROOT = Path(__file__).parents[2]
MAPPED = {"symgrad.templates": "templates", "symgrad.generated": "generated"}
_LEFT_OUT = shutil.ignore_patterns(
    ".*", "__pycache__", "*.egg-info", "build", "dist", "shared", "*.so", "*.o"
)


def settings() -> dict[str, Any]:
    """``pyproject.toml``, parsed."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return table


def packages(root: Path = ROOT) -> dict[str, Path]:
    """Every package of the tree at ``root`` and its folder."""
    found = {}
    for name, folder in {"symgrad": "symgrad", **MAPPED}.items():
        for path in sorted((root / folder).rglob("__init__.py")):
            inner = path.parent.relative_to(root / folder).parts
            found[".".join((name, *inner))] = path.parent
    return found


def copy_to(folder: Path) -> Path:
    """Copy the tree, without what tools and builds leave in it."""
    return Path(shutil.copytree(ROOT, folder, ignore=_LEFT_OUT))


def run(*command: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in ``cwd`` without this process's Python settings; capture what it prints."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**env, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
