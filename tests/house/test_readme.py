"""The README tells the truth: its example prints what it says, its commands and paths exist."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.house import readme, tree


@pytest.mark.slow
def test_the_example_prints_what_the_readme_says(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(readme.blocks("python")[0])
    done = tree.run(sys.executable, "-W", "error", "example.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert done.stdout == readme.blocks("text")[0]


def test_the_commands_exist() -> None:
    rules = set(
        re.findall(r"^([\w-]+):", (tree.ROOT / "Makefile").read_text(), re.MULTILINE),
    )
    named = set(re.findall(r"\bmake ([\w-]+)\b", readme.TEXT))
    assert {"demo", "test"} <= named <= rules


def test_the_map_is_the_tree() -> None:
    """Each line of the map names a path; indented ones lie in the folder above."""
    (drawn,) = [block for block in readme.blocks("") if block.startswith("symgrad/\n")]
    folder = ""
    for line in drawn.splitlines():
        name = line.split()[0]
        path = folder + name if line.startswith(" ") else name
        if not line.startswith(" "):
            folder = name
        assert (tree.ROOT / path).exists(), path


def test_the_map_names_every_package() -> None:
    (drawn,) = [block for block in readme.blocks("") if block.startswith("symgrad/\n")]
    inner = {name.split(".")[1] for name in tree.packages() if name.startswith("symgrad.")}
    assert all(re.search(rf"^ *{name}/", drawn, re.MULTILINE) for name in inner)


def test_what_ci_runs_is_what_the_readme_says() -> None:
    commands = (tree.ROOT / ".ci" / "run").read_text().splitlines()
    assert "make test" in commands
