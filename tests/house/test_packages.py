"""What is in the tree is in the wheel: the lists of pyproject.toml are held against the tree."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

import pytest

from tests.house import tree

TOOL: dict[str, Any] = tree.settings()["tool"]["setuptools"]


def test_every_package_is_listed() -> None:
    assert TOOL["packages"] == sorted(tree.packages())


def test_packages_outside_are_mapped() -> None:
    assert TOOL["package-dir"] == tree.MAPPED


@pytest.mark.parametrize("name", sorted(tree.packages()))
def test_every_file_is_shipped(name: str) -> None:
    """A file that is neither a module nor matched by ``package-data`` would be lost."""
    shipped = ["*.py", *TOOL["package-data"].get(name, [])]
    folder = tree.packages()[name]
    files = [path.name for path in folder.iterdir() if path.is_file()]
    assert [file for file in files if not any(fnmatch(file, one) for one in shipped)] == []


def test_no_folder_of_python_is_not_a_package() -> None:
    """A folder without ``__init__.py`` would be imported here and missing from the wheel."""
    folders = set(tree.packages().values())
    for root in ("symgrad", *tree.MAPPED.values()):
        for path in (tree.ROOT / root).rglob("*.py"):
            assert path.parent in folders, f"{path.parent} has no __init__.py"
