"""The programs of docs/export.md and docs/dask.md print what the pages say."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from tests.house import tree

PAGES = [(tree.ROOT / "docs" / f"{one}.md").read_text("utf-8") for one in ("export", "dask")]
PROGRAMS = [
    found
    for page in PAGES
    for found in re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", page, re.M | re.S)
]


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize(("program", "printed"), PROGRAMS)
def test_the_programs_print_what_the_page_says(program: str, printed: str, tmp_path: Path) -> None:
    for peer in re.findall(r"^import (torch|jax|dask)\b", program, re.M):
        if importlib.util.find_spec(peer) is None:
            pytest.skip(f"{peer} is not installed")
    (tmp_path / "example.py").write_text(program)
    done = tree.run(sys.executable, "example.py", cwd=tmp_path)
    assert done.stdout == printed


def test_there_is_one_for_each_framework_and_its_own_classes() -> None:
    assert len(PROGRAMS) == 4
