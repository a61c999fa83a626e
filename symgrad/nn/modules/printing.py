"""A module as text, in torch's manner: modules inside are indented by two.

In: a module.  Out: its text.
"""

from __future__ import annotations

import itertools
from typing import Any


def described(module: Any, ordinary: Any) -> str:
    """The text of a module and of those inside it, without recursion.

    ``ordinary``: the ``__repr__`` of modules that write none of their own.
    """
    texts: dict[int, str] = {}
    todo: list[tuple[Any, bool]] = [(module, False)]
    while todo:
        one, ready = todo.pop()
        if ready:
            texts[id(one)] = _text(one, texts)
        elif id(one) not in texts:
            todo.append((one, True))
            todo.extend(
                (inner, False) for inner in one._modules.values() if _walks(inner, ordinary)
            )
    return texts[id(module)]


def _walks(module: Any, ordinary: Any) -> bool:
    """Is its text made here (and not by a ``__repr__`` of its own)?"""
    return type(module).__repr__ is ordinary


def _text(module: Any, texts: dict[int, str]) -> str:
    extra = module.extra_repr()
    lines = extra.split("\n") if extra else []
    pairs = [
        (name, texts[id(one)] if id(one) in texts else repr(one))
        for name, one in module._modules.items()
    ]
    if getattr(module, "shows_repeats", False):
        pairs = _repeats(pairs)
    inner = [f"({name}): {_indented(text)}" for name, text in pairs]
    if len(lines) == 1 and not inner:
        return f"{module._get_name()}({lines[0]})"
    if not lines and not inner:
        return f"{module._get_name()}()"
    body = "\n  ".join([*lines, *inner])
    return f"{module._get_name()}(\n  {body}\n)"


def _repeats(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Equal texts in a row as one: ``(0-2): 3 x Linear(…)``."""
    found = []
    for text, group in itertools.groupby(pairs, key=lambda pair: pair[1]):
        names = [name for name, _ in group]
        many = len(names) > 1
        found.append((f"{names[0]}-{names[-1]}" if many else names[0],
                      f"{len(names)} x {text}" if many else text))  # fmt: skip
    return found


def _indented(text: str) -> str:
    """Every line but the first moved by two."""
    return text.replace("\n", "\n  ")
