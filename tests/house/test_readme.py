"""The README and CONTRIBUTING tell the truth: what examples print, commands and paths."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from symgrad.tools.cli import main
from tests.house import readme, tree


@pytest.mark.slow
@pytest.mark.parametrize(("program", "printed"), readme.printing())
def test_the_examples_print_what_the_readme_says(
    program: str, printed: str, tmp_path: Path
) -> None:
    (tmp_path / "example.py").write_text(program)
    done = tree.run(sys.executable, "-W", "error", "example.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert done.stdout == printed


def test_there_are_examples() -> None:
    assert len(readme.printing()) >= 2


def test_the_commands_exist() -> None:
    rules = set(
        re.findall(r"^([\w-]+):", (tree.ROOT / "Makefile").read_text(), re.MULTILINE),
    )
    named = set(re.findall(r"\bmake ([\w-]+)\b", readme.TEXT))
    assert {"demo", "test"} <= named <= rules


GUIDE = (tree.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_paths_of_the_guide_exist() -> None:
    paths = set(re.findall(r"\b(?:symgrad|tests|docs|templates|generated)/[\w./*]*[\w*]", GUIDE))
    assert len(paths) > 10
    for path in paths:
        assert list(tree.ROOT.glob(path)), path


def test_the_commands_of_the_guide_exist() -> None:
    rules = re.findall(r"^([\w-]+):", (tree.ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"`make ([\w-]+)`", GUIDE)) <= set(rules)
    assert set(re.findall(r"`python -m symgrad (\w+)", GUIDE)) <= set(main.commands)


def the_map() -> list[str]:
    """The paths that the map names; indented ones lie in the folder above."""
    (drawn,) = [block for block in readme.blocks("") if block.startswith("symgrad/\n")]
    paths, folder = [], ""
    for line in drawn.splitlines():
        names = re.match(r" *((?:[\w/]+(?:\.py|/) ?)+)", line)
        assert names, line
        if line.startswith(" "):
            paths += [folder + name for name in names[1].split()]
        else:
            folder = names[1].strip()
            paths.append(folder)
    return paths


def test_the_map_is_the_tree() -> None:
    for path in the_map():
        assert (tree.ROOT / path).exists(), path


def test_the_map_names_every_module_and_package() -> None:
    package = tree.ROOT / "symgrad"
    modules = {f"symgrad/{path.name}" for path in package.glob("[!_]*.py")}
    packages = {f"symgrad/{path.parent.name}/" for path in package.glob("*/__init__.py")}
    assert modules | packages | {f"{folder}/" for folder in tree.MAPPED.values()} <= set(the_map())


def test_the_commands_of_the_command_line_exist() -> None:
    (listed,) = [block for block in readme.blocks("") if block.startswith("symgrad verify")]
    for line in listed.splitlines():
        name = line.split()[1]
        assert name in main.commands, line


def test_what_ci_runs_is_what_the_readme_says() -> None:
    commands = (tree.ROOT / ".ci" / "run").read_text().splitlines()
    assert "make test" in commands
