"""What a program compares tensors with that stand for arguments of which nothing is said.

In: comparisons that are traced.  Out: texts and integers, by the names of inputs.  No tensor is
equal to a text: an argument that is compared with one is a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from symgrad.ir.graph import Node

_COMPARED: ContextVar[dict[str, list[Any]] | None] = ContextVar("compared", default=None)


@contextmanager
def comparing() -> Iterator[dict[str, list[Any]]]:
    """A block that finds the texts and integers that inputs are compared with, by their names.

    None stands for what it looks up where an input is a key.
    """
    found: dict[str, list[Any]] = {}
    token = _COMPARED.set(found)
    try:
        yield found
    finally:
        _COMPARED.reset(token)


def compared(node: Node, other: object) -> None:
    """Note what the program compares a tensor with."""
    found = _COMPARED.get()
    if found is not None and node.op == "input" and (other is None or type(other) in (str, int)):
        known = found.setdefault(node.attributes["name"], [])
        if not any(type(one) is type(other) and one == other for one in known):
            known.append(other)
