"""The source of a function, as a piece of its own that ``ast`` parses.

In: a function, or its code.  Out: its text without the indentation of what it stands in.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from types import CodeType
from typing import Any

_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)


def source_text(code: Callable[..., Any] | CodeType) -> str:
    """The text of a function.  Raises OSError, TypeError."""
    return dedented(inspect.getsource(code))


def dedented(text: str) -> str:
    """The text without its indentation, in which a tab ends at a multiple of 8, as in Python."""
    return textwrap.dedent(_INDENT.sub(lambda match: match[0].expandtabs(), text))
