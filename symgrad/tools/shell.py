"""Values of arguments as a shell has them: ``dtype=torch.float64``.

In: texts, and the Functions that they are for.  Out: Python values.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from symgrad.errors import SpecError
from symgrad.frontend.function import Function

ACCEPTED = (
    "write a literal of Python (0.5, True, None, (1, 2), 'text'), a dotted name (torch.float64, "
    "math.inf, Mode.FAST) or a word (mean)"
)
_WORDS = {
    "true": "True", "false": "False", "none": "None", "null": "None",
    "inf": "math.inf", "-inf": "-math.inf", "nan": "math.nan",
}  # fmt: skip
"""Words that are rather meant as values than as texts."""
_OPENING, _CLOSING = tuple("([{'\""), tuple(")]}'\"")
_COMPUTED = (ast.Call, ast.Subscript, ast.List, ast.Dict, ast.Set, ast.Lambda)


def values(texts: Mapping[str, str], functions: Sequence[type[Function]]) -> dict[str, Any]:
    """What the texts stand for.  Raises SpecError.

    A dotted name is looked up where the classes are defined, then among the modules that they
    import.  A word is itself.
    """
    modules = [sys.modules[one.__module__] for one in functions if one.__module__ in sys.modules]
    return {name: _value(f"{name}={text}", text, modules) for name, text in texts.items()}


def _value(said: str, text: str, modules: Sequence[ModuleType]) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        pass
    if (meant := _WORDS.get(text.lower())) is not None:
        raise SpecError(
            f"--static {said} would be the text {text!r}",
            hint=f"write {meant} for the value, or \"'{text}'\" for the text",
        )
    tree = _parsed(text)
    negative = isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub)
    parts = _parts(tree.operand if isinstance(tree, ast.UnaryOp) and negative else tree)
    for holder in _holders(parts[0], modules) if len(parts) > 1 else ():
        found = _member(said, holder, parts)
        return -found if negative else found
    if _is_expression(tree) or text.startswith(_OPENING) or text.endswith(_CLOSING):
        raise SpecError(f"--static {said} is neither a value nor a name", hint=ACCEPTED)
    return text


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def _is_expression(tree: ast.expr | None) -> bool:
    """Is something computed in it, of numbers alone or by a call?"""
    inside = [] if tree is None else list(ast.walk(tree))
    if any(isinstance(one, _COMPUTED) for one in inside):
        return True
    return bool(inside) and not any(isinstance(one, ast.Name) for one in inside)


def _parts(tree: ast.expr | None) -> list[str]:
    """``torch``, ``float64`` of a dotted name; nothing of anything else."""
    if isinstance(tree, ast.Name):
        return [tree.id]
    before = _parts(tree.value) if isinstance(tree, ast.Attribute) else []
    return [*before, tree.attr] if before and isinstance(tree, ast.Attribute) else []


def _holders(name: str, modules: Sequence[ModuleType]) -> Iterator[Any]:
    """What a name stands for: in the files of the classes, as such a file, as a module."""
    yield from (vars(one)[name] for one in modules if name in vars(one))
    yield from (one for one in modules if Path(one.__file__ or "").stem == name)
    if name in sys.modules:
        yield sys.modules[name]


def _member(said: str, holder: Any, parts: Sequence[str]) -> Any:
    for at, part in enumerate(parts[1:], 1):
        try:
            holder = getattr(holder, part)
        except AttributeError:
            what = f"{'.'.join(parts[:at])} has no {part}"
            raise SpecError(f"--static {said}: {what}", hint=ACCEPTED) from None
    return holder
