"""How many tensors ``*args`` stands for, as the code shows.

In: a Function.  Out: a number that the code states, or the least with which it runs; which of them
are numbers.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import NamedTuple

from symgrad.errors import SpecError
from symgrad.frontend.evidence import AnyFunction, Kind, as_written, parameters
from symgrad.frontend.function import raw_method
from symgrad.frontend.source_text import source_text


class Starred(NamedTuple):
    """``stated``: no other number fits the code."""

    number: int
    stated: bool


USUAL = 2
"""So many where nothing shows that it needs more."""


def starred_of(function: AnyFunction) -> Starred:
    """How many tensors ``*args`` of forward is judged with.

    Stated is what forward takes apart into names, or compares its length with, and how many
    gradients every return of backward has.  An item that is asked for is there: ``xs[2]``.
    """
    function = as_written(function)
    own, name = parameters(function), starred_name(function)
    forward = _tree(function, "forward")
    stated = [*_taken_apart(forward, name), *_lengths(forward, name)]
    if stated:
        return Starred(max(stated), True)
    named = [one for one in own if one.kind in (Kind.POSITIONAL_ONLY, Kind.POSITIONAL_OR_KEYWORD)]
    returned = {_items(one) for one in _returns(_tree(function, "backward"))}
    known = next(iter(returned)) if len(returned) == 1 else None
    if known is not None and known > len(named):
        return Starred(known - len(named), True)
    return Starred(max([USUAL, *_needed(forward, name)]), False)


def number_of(function: AnyFunction, name: str) -> int:
    """How many items a list among the arguments is judged with, as the code shows."""
    forward, backward = (_tree(function, method) for method in ("forward", "backward"))
    stated = [*_taken_apart(forward, name), *_lengths(forward, name)]
    stated += _taken_apart(backward, f"ctx.{name}")
    return max(stated or [USUAL, *_needed(forward, name)])


def starred_name(function: AnyFunction) -> str:
    """``args``, where forward takes ``*args``; empty where it does not."""
    own = parameters(function)
    return next((one.name for one in own if one.kind is Kind.VAR_POSITIONAL), "")


def is_one_of(name: str, starred: str) -> bool:
    """Is ``args_2`` one of ``*args``?"""
    place = name.removeprefix(f"{starred}_")
    return place != name and place.isdecimal()


def plain_items(function: AnyFunction) -> frozenset[int]:
    """The places in ``*args`` of what forward makes a tensor or a number of: ``float(args[1])``."""
    function = as_written(function)
    name, forward = starred_name(function), _tree(function, "forward")
    places: dict[str, int] = {}
    assigned = [one for one in ast.walk(forward) if isinstance(one, ast.Assign)]
    for node in assigned:
        for target in node.targets:
            parts = getattr(target, "elts", [])
            if _is(node.value, name):
                places |= {ast.unparse(one): at for at, one in enumerate(parts)}
            values = getattr(node.value, "elts", [])
            pairs = zip(parts, values, strict=False) if parts else [(target, node.value)]
            places |= {
                ast.unparse(one): at for one, value in pairs
                for at in [_place(value, name)] if at is not None
            }  # fmt: skip
    found = {
        places.get(ast.unparse(one), _place(one, name)) for node in ast.walk(forward)
        if isinstance(node, ast.Call) and _called(node) in _OF_NUMBERS for one in node.args[:1]
    }  # fmt: skip
    return frozenset(at for at in found if at is not None)


_OF_NUMBERS = ("torch.tensor", "float", "int", "bool")
"""Functions that nobody calls with a tensor, as a rule."""


def _called(node: ast.Call) -> str:
    return ast.unparse(node.func)


def _place(node: ast.AST, name: str) -> int | None:
    """The place of ``args[1]`` in ``*args``."""
    item = isinstance(node, ast.Subscript) and _is(node.value, name)
    place = _number(node.slice) if item and isinstance(node, ast.Subscript) else None
    return place if place is not None and place >= 0 else None


def _tree(function: AnyFunction, method: str) -> ast.AST:
    try:
        plain, _ = raw_method(function, method)
        tree = ast.parse(source_text(inspect.unwrap(plain)))
    except (OSError, TypeError, SyntaxError, SpecError):
        return ast.Module([], [])
    return tree.body[0]


def _is(node: ast.AST | None, name: str) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == name


def _taken_apart(tree: ast.AST, name: str) -> Iterator[int]:
    """``a, b, c = xs``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _is(node.value, name):
            for target in node.targets:
                parts = getattr(target, "elts", ())
                if parts and not any(isinstance(one, ast.Starred) for one in parts):
                    yield len(parts)


def _lengths(tree: ast.AST, name: str) -> Iterator[int]:
    """``assert len(xs) == 3``, ``if len(xs) != 3: raise``."""
    for node in ast.walk(tree):
        test = getattr(node, "test", None)
        raising = isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise)
        wanted = ast.NotEq if raising else ast.Eq if isinstance(node, ast.Assert) else None
        if wanted is None or not isinstance(test, ast.Compare) or len(test.ops) != 1:
            continue
        left, right = test.left, test.comparators[0]
        if isinstance(left, ast.Constant):
            left, right = right, left
        value = getattr(right, "value", None)
        if not isinstance(left, ast.Call) or not _is(left.func, "len") or type(value) is not int:
            continue
        if isinstance(test.ops[0], wanted) and any(_is(one, name) for one in left.args):
            yield value


def _needed(tree: ast.AST, name: str) -> Iterator[int]:
    """``xs[2]``, ``xs[-1]``, ``xs[1:]`` and ``a, b, *others = xs`` need three, one, two, three."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and _is(node.value, name):
            part = node.slice
            ends = [part.lower, part.upper] if isinstance(part, ast.Slice) else [part]
            for end in ends:
                place = _number(end)
                if place is not None:
                    yield place + 1 if place >= 0 else -place
        elif isinstance(node, ast.Assign) and _is(node.value, name):
            yield from (len(one.elts) for one in node.targets if isinstance(one, ast.Tuple))


def _number(node: ast.AST | None) -> int | None:
    try:
        value = None if node is None else ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
    return value if type(value) is int else None


def _returns(tree: ast.AST) -> Iterator[ast.AST | None]:
    """What a function returns, without those that are written in it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Return):
            yield node.value
        elif not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            yield from _returns(node)


def _items(node: ast.AST | None) -> int | None:
    """How many items ``(None, g)``, ``(g,) * 3`` and their sums have; None for anything else."""
    if isinstance(node, (ast.Tuple, ast.List)):
        parts = [_items(one.value) if isinstance(one, ast.Starred) else 1 for one in node.elts]
        return None if None in parts else sum(filter(None, parts))
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _items(node.left), _items(node.right)
    if isinstance(node.op, ast.Add):
        return None if left is None or right is None else left + right
    times = _number(node.right) if right is None else _number(node.left)
    items = left if right is None else right
    if not isinstance(node.op, ast.Mult) or items is None or times is None:
        return None
    return items * times
