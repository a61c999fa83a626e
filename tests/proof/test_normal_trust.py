"""The table of docs/rules.md and the rules in the source are the same, and each rule has a test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TAG = re.compile(r"\[rule: ([a-z-]+)\]")
ROW = re.compile(r"^\| ([a-z-]+) \|", re.MULTILINE)
HOLDS = re.compile(r"^\| ([a-z-]+) \|.*\| (everywhere|almost everywhere|assumed) \|(.*)\|$", re.M)


def _in_source() -> set[str]:
    files = [*sorted((ROOT / "symgrad/proof/normal").glob("*.py"))]
    files.append(ROOT / "symgrad/index/parts.py")
    return {name for path in files for name in TAG.findall(path.read_text(encoding="utf-8"))}


def _page() -> str:
    return (ROOT / "docs/rules.md").read_text(encoding="utf-8")


def _in_page() -> list[str]:
    return [name for name in ROW.findall(_page()) if name != "rule"]


def test_every_rule_of_the_source_is_on_the_page_and_no_other() -> None:
    apart = set(_in_page()) ^ _in_source()
    assert not apart, f"not both in docs/rules.md and tagged in symgrad/proof/normal: {apart}"


def test_no_rule_stands_twice_on_the_page() -> None:
    assert len(_in_page()) == len(set(_in_page()))


def test_every_rule_says_how_it_holds_and_what_it_owes() -> None:
    rows = HOLDS.findall(_page())
    assert {name for name, _, _ in rows} == set(_in_page())
    for name, kind, owed in rows:
        assert kind == "everywhere" or owed.strip(), f"{name} holds {kind}: under what?"


def test_every_rule_is_named_by_a_test() -> None:
    files = sorted((ROOT / "tests/proof").glob("test_normal_*.py"))
    named = {name for path in files for name in TAG.findall(path.read_text(encoding="utf-8"))}
    apart = named ^ _in_source()
    assert not apart, f"not tagged in both tests/proof/test_normal_*.py and the source: {apart}"


def test_every_recorded_rule_is_on_the_page() -> None:
    """The rules that obligations and requirements are recorded under."""
    recorded = re.compile(r"context\.require(?:_nonzero|_distinct)?\(\s*\"([a-z-]+)\"")
    files = sorted((ROOT / "symgrad/proof/normal").glob("*.py"))
    names = {n for path in files for n in recorded.findall(path.read_text(encoding="utf-8"))}
    assert names
    assert names <= set(_in_page())
