"""The README, taken apart.

In: ``README.md``.  Out: its text and its blocks of code.
"""

from __future__ import annotations

import re

from tests.house import tree

TEXT = (tree.ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The blocks that the README fences as ``language``, in order."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    return [text for found, text in fenced if found == language]


def printing() -> list[tuple[str, str]]:
    """The programs that are followed by what they print, with that."""
    lines = r"((?:(?!```).*\n)*)"
    return re.findall(rf"^```python\n{lines}```\n\n```text\n{lines}```$", TEXT, re.MULTILINE)
