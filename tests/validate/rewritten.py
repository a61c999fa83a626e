"""Formulas rewritten at random, over the reals: some have the same bits, and some have not.

In: a generator of random numbers.  Out: trees, each a tuple of an operation and its operands; their
C, and their values in float32.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Tree = tuple[Any, ...]
Array = npt.NDArray[Any]
NAMES = "xyz"
_NUMBERS = (0.1, 0.5, 1.5, 2.0, 3.0, 7.0)
_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_LEAVES = ("name", "number")
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "neg": lambda a: -a,
}  # fmt: skip


def formula(draw: random.Random, depth: int) -> Tree:
    """A formula of ``x``, ``y`` and ``z``."""
    if depth == 0 or draw.random() < 0.15:
        number = draw.random() < 0.2
        return ("number", draw.choice(_NUMBERS)) if number else ("name", draw.choice(NAMES))
    operation = draw.choice(["add", "add", "sub", "mul", "mul", "div", "neg"])
    count = 1 if operation == "neg" else 2
    return (operation, *(formula(draw, depth - 1) for _ in range(count)))


def evaluated(tree: Tree, given: Mapping[str, Any]) -> Any:
    """What a formula without ``wide`` is, of nodes or arrays."""
    if tree[0] == "name":
        return given[tree[1]]
    if tree[0] == "number":
        return tree[1]
    return _FUNCTIONS[tree[0]](*(evaluated(one, given) for one in tree[1:]))


def value(tree: Tree, given: Mapping[str, Array], dtype: Any = np.float32) -> Any:
    """What its C computes, in float32; ``wide`` in float64, and then rounded."""
    if tree[0] == "name":
        return given[tree[1]].astype(dtype)
    if tree[0] == "number":
        return dtype(np.float32(tree[1]))
    if tree[0] == "wide":
        return np.float32(value(tree[1], given, np.float64)).astype(dtype)
    return _FUNCTIONS[tree[0]](*(value(one, given, dtype) for one in tree[1:]))


def text(tree: Tree, cast: str = "") -> str:
    """Its C; ``cast``: what stands before each leaf."""
    if tree[0] == "name":
        return f"{cast}{tree[1]}[i]"
    if tree[0] == "number":
        return f"{cast}{tree[1]}f"
    if tree[0] == "wide":
        return f"{cast}(float)({text(tree[1], '(double)')})"
    if tree[0] == "neg":
        return f"(-{text(tree[1], cast)})"
    return f"({text(tree[1], cast)} {_SYMBOLS[tree[0]]} {text(tree[2], cast)})"


def rewritten(tree: Tree, draw: random.Random) -> Tree:
    """One part of it, written in another way that is the same real number."""
    path = draw.choice(list(_paths(tree)))
    part = tree
    for place in path:
        part = part[place]
    others = [*_others(part)]
    if part[0] not in (*_LEAVES, "wide") and draw.random() < 0.1:
        others = [("wide", part)]
    return _put(tree, path, draw.choice(others)) if others else tree


def _paths(tree: Tree, path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    yield path
    if tree[0] not in (*_LEAVES, "wide"):
        for place, one in enumerate(tree[1:], 1):
            yield from _paths(one, (*path, place))


def _put(tree: Tree, path: tuple[int, ...], part: Tree) -> Tree:
    if not path:
        return part
    place = path[0]
    return (*tree[:place], _put(tree[place], path[1:], part), *tree[place + 1 :])


def _others(tree: Tree) -> Iterator[Tree]:
    operation, *operands = tree
    if operation == "name":
        yield ("mul", tree, ("number", 1.0))
        yield ("sub", ("add", tree, ("number", 7.0)), ("number", 7.0))
    elif operation == "neg":
        yield from _of_negated(operands[0])
    elif operation == "div":
        yield from _of_quotient(*operands)
    elif operation in ("add", "sub", "mul"):
        yield from _of_sum_or_product(operation, *operands)


def _of_negated(a: Tree) -> Iterator[Tree]:
    if a[0] == "neg":
        yield a[1]
    elif a[0] == "sub":
        yield ("sub", a[2], a[1])
    elif a[0] in ("add", "mul", "div"):
        yield ({"add": "sub"}.get(a[0], a[0]), ("neg", a[1]), a[2])


def _of_quotient(a: Tree, b: Tree) -> Iterator[Tree]:
    yield ("mul", a, ("div", ("number", 1.0), b))
    if a[0] in ("add", "sub"):
        yield (a[0], ("div", a[1], b), ("div", a[2], b))
    if a[0] == "mul":
        yield ("mul", a[1], ("div", a[2], b))
    if b[0] == "mul":
        yield ("div", ("div", a, b[1]), b[2])
    if b[0] == "neg":
        yield ("neg", ("div", a, b[1]))
    if b == ("number", 2.0):
        yield ("mul", a, ("number", 0.5))


def _of_sum_or_product(operation: str, a: Tree, b: Tree) -> Iterator[Tree]:
    if operation == "sub":
        yield ("add", a, ("neg", b))
        yield ("neg", ("sub", b, a))
        if b[0] == "add":
            yield ("sub", ("sub", a, b[1]), b[2])
        return
    yield (operation, b, a)
    if a[0] == operation:
        yield (operation, a[1], (operation, a[2], b))
    if b[0] == operation:
        yield (operation, (operation, a, b[1]), b[2])
    if operation == "add" and a[0] == "sub":
        yield ("sub", ("add", a[1], b), a[2])
    if operation == "mul" and a[0] in ("add", "sub"):
        yield (a[0], ("mul", a[1], b), ("mul", a[2], b))
    if operation == "mul" and a[0] == "neg":
        yield ("neg", ("mul", a[1], b))
