"""What a backward can name: the tensors, sizes and numbers that its variables hold.

In: the variables of a backward at a return statement.  Out: ``Scope``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from symgrad.frontend.function import Context, attributes_of, state_of
from symgrad.frontend.sizes import SymInt
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.ir.dim import Dim, Size
from symgrad.ir.function import FunctionCase
from symgrad.ir.graph import Node
from symgrad.proof.repair.suggest import Scope

_PLAIN = frozenset((0.0, 1.0, 2.0, 3.0, 4.0, 0.5, 0.25))


def tensors_in(variables: Mapping[str, Any]) -> Iterator[tuple[Node, str]]:
    """The tensors in variables, in containers and on ctx, with their texts, plainest first."""
    later: list[tuple[Node, str]] = []
    for name, value in variables.items():
        if isinstance(value, SymbolicTensor):
            node = value.known_node()
            if node is not None:
                yield node, name
        elif isinstance(value, Context):
            later += _inside(attributes_of(value), name + ".{}")
            saved = dict(enumerate(state_of(value).saved))
            later += _inside(saved, name + ".saved_tensors[{}]")
        else:
            later += _elements(value, name)
    yield from later


def _inside(values: Mapping[Any, Any], pattern: str) -> list[tuple[Node, str]]:
    found: list[tuple[Node, str]] = []
    for key, value in values.items():
        if isinstance(value, SymbolicTensor):
            node = value.known_node()
            found += [(node, pattern.format(key))] if node is not None else []
        else:
            found += _elements(value, pattern.format(key))
    return found


def _elements(value: Any, text: str) -> list[tuple[Node, str]]:
    items: Any = ()
    if isinstance(value, (list, tuple)):
        items = enumerate(value)
    elif isinstance(value, dict):
        items = value.items()
    found = []
    for key, item in items:
        node = item.known_node() if isinstance(item, SymbolicTensor) else None
        if node is not None:
            found.append((node, f"{text}[{key!r}]"))
    return found


def scope_of(variables: Mapping[str, Any], case: FunctionCase, module: str) -> Scope:
    """What can be named by variables of a backward, in the graph of one case."""
    names: dict[Node, str] = {}
    found = sorted(tensors_in(variables), key=lambda item: item[1].startswith("_"))
    for node, text in found:
        if node.graph is case.graph and node.op not in ("constant", "size"):
            names.setdefault(node, text)
    numbers: dict[float, str] = {}
    known: list[tuple[Dim, str]] = []
    for text, value in _plain_values(variables):
        if isinstance(value, SymInt):
            known.append((value.dim, text))
        elif type(value) in (int, float) and math.isfinite(value) and abs(value) not in _PLAIN:
            numbers.setdefault(value, text)
    known += sizes_of(names)
    scope = Scope(names, {}, {}, numbers, module, frozenset(variables))
    return with_sizes(scope, known)


def sizes_of(names: Mapping[Node, str]) -> list[tuple[Dim, str]]:
    """The sizes of tensors, with the text that reads each."""
    return [
        (size, f"{text}.shape[{axis}]")
        for node, text in names.items() for axis, size in enumerate(node.shape)
    ]  # fmt: skip


def with_sizes(scope: Scope, found: Sequence[tuple[Dim, str]]) -> Scope:
    """Where sizes and expressions of sizes can be read from; a size also from a multiple of it."""
    sizes, dims = dict(scope.sizes), dict(scope.dims)
    for dim, text in found:
        if dim.constant is None:
            dims.setdefault(dim, text)
            if isinstance(dim.atom, Size):
                sizes.setdefault(dim.atom.name, text)
    for dim, text in found:
        if len(dim.sizes) == 1 and dim.sizes[0] not in sizes:
            own = Dim.size(dim.sizes[0])
            factor = next((k for k in range(2, 65) if own * k == dim), None)
            if factor is not None:
                sizes[dim.sizes[0]] = f"({text} // {factor})"
    return replace(scope, sizes=sizes, dims=dims)


def _plain_values(variables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What variables and attributes of ctx hold, and the entries of tuples and lists in them."""
    later: list[tuple[str, Any]] = []
    for name, value in variables.items():
        held = {name: value}
        if isinstance(value, Context):
            held = {f"{name}.{key}": inner for key, inner in attributes_of(value).items()}
        for text, one in held.items():
            yield text, one
            if isinstance(one, (tuple, list)):
                later += [(f"{text}[{at}]", inner) for at, inner in enumerate(one)]
    yield from later


def root_of(text: str) -> str:
    """The variable that a text starts from: ``ctx`` of ``ctx.saved_tensors[0]``."""
    text = text.lstrip("(")
    for mark in ".[":
        text = text.partition(mark)[0]
    return text
