"""The pages lead to files and headings that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house import tree

PAGES = [*sorted(tree.ROOT.glob("*.md")), *sorted((tree.ROOT / "docs").glob("*.md"))]
CODE = re.compile(r"`[^`]*`")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def text_of(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """What a link may name behind ``#``: the headings, as GitHub writes them."""
    headings = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", text_of(page))):
        if re.match(r"\w+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize(
    "name", ["emitted-c", "frameworks", "inferred", "method", "rules", "tracing"]
)
def test_files_that_are_named_exist(name: str) -> None:
    """Paths are those below symgrad, or those of the repository."""
    text = text_of(tree.ROOT / "docs" / f"{name}.md")
    paths = re.findall(r"`((?:[a-z_]+/)+[a-z_0-9]+\.py|[a-z_]+\.py)`", text)
    assert len(paths) > 1
    for path in paths:
        found = (tree.ROOT / path, *(tree.ROOT / "symgrad").rglob(path))
        assert any(one.exists() for one in found), path
