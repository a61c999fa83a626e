"""A C file with its own header in it."""

from __future__ import annotations

import pytest

from symgrad.codegen.emit.file import PRELUDE, included, prelude
from symgrad.validate.source import Unsupported, parse, parts

TEXT = f"""\
/* On top. */
#include "{PRELUDE}"

int64_t twice_rounded(int64_t n)
{{
    return 2*ROUND_UP(MIN(n, 5));
}}
"""


def test_what_is_used_of_the_header_is_in_the_unit() -> None:
    unit = parse(included(TEXT, prelude()))
    assert {*unit.macros} == {"ROUND_UP", "MIN"}
    assert not unit.externals
    assert not unit.constants
    assert unit.signatures["twice_rounded"].line == 4
    assert unit.source(6) == "return 2*ROUND_UP(MIN(n, 5));"


def test_what_functions_of_the_header_use_is_there_too() -> None:
    unit = parse(included(TEXT.replace("ROUND_UP(MIN(n, 5))", "block_rows(n, n, n)"), prelude()))
    assert {*unit.macros} == {"MAX", "MIN"}
    assert "block_rows" in unit.functions


def test_lines_stay() -> None:
    own, header = parts(included(TEXT, prelude()))
    assert header == prelude()
    assert own == TEXT.replace(f'#include "{PRELUDE}"', "")
    assert parts(TEXT) == (TEXT, "")


@pytest.mark.parametrize(("old", "new"), [
    ("/* On top. */", "int64_t first;"),
    ("twice_rounded", "carve"),
    ("2*ROUND_UP", "2*ROUND_DOWN"),
])  # fmt: skip
def test_what_is_refused(old: str, new: str) -> None:
    with pytest.raises(Unsupported):
        parse(included(TEXT.replace(old, new), prelude()))


def test_a_wrong_line_marker() -> None:
    marker = '# 3 "kernels.c"'
    text = included(TEXT, prelude())
    assert marker in text
    with pytest.raises(Unsupported, match="line marker"):
        parse(text.replace(marker, '# 4 "kernels.c"'))


def test_a_header_that_is_not_in_the_language() -> None:
    with pytest.raises(Unsupported):
        parse(included(TEXT, prelude()).replace("*space += ROUND_UP(bytes);", "goto out;"))
