"""``--quick``: one test of each file, which takes a minute for all.

Of each file the first test that is neither slow nor compares with peers, in its first case.  Where
tests are marked ``quick``, these in all of their cases, in place of the first.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_ELSEWHERE = re.compile(r"^pytestmark = (?:\[[^\]]*|.*)\b(?:peers|slow)\b", re.MULTILINE)
"""What says of a file that no test of it is among them: it is not even imported."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="one test of each file")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave a file as it is that has no quick test."""
    if not config.getoption("quick") or not re.fullmatch(r"test_\w+\.py", collection_path.name):
        return None
    return bool(_ELSEWHERE.search(collection_path.read_text(encoding="utf-8"))) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect all but the quick tests."""
    if not config.getoption("quick"):
        return
    of_files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        if not any(item.get_closest_marker(name) for name in ("slow", "peers")):
            of_files.setdefault(item.path, []).append(item)
    kept = {
        item
        for found in of_files.values()
        for item in [one for one in found if one.get_closest_marker("quick")] or found[:1]
    }
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]
