"""What a backward can name: the tensors, sizes and numbers in its variables.

In: the variables of a backward at a return statement.  Out: ``Scope``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from symgrad.frontend.function import Context, attributes_of, state_of
from symgrad.frontend.plain import is_plain_number
from symgrad.frontend.regions import PLAIN
from symgrad.frontend.sizes import SymInt
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.ir.dim import Dim, Size
from symgrad.ir.function import FunctionCase
from symgrad.ir.graph import Node
from symgrad.proof.repair.suggest import Scope

_PLAIN = frozenset((0.0, 1.0, 2.0, 3.0, 4.0, 0.5, 0.25))


def values_in(variables: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """What variables hold, and the texts that read it, plainest first.

    The variables; then the attributes of ctx, what it saved, and the elements of containers.
    """
    later: list[tuple[Any, str]] = []
    for name, value in variables.items():
        yield value, name
        held = [(value, name)]
        if isinstance(value, Context):
            held = [(inner, f"{name}.{key}") for key, inner in attributes_of(value).items()]
            held += _elements(state_of(value).saved, f"{name}.saved_tensors")
            later += held
        for inner, text in held:
            later += _elements(inner, text)
    yield from later


def _elements(value: Any, text: str) -> list[tuple[Any, str]]:
    """The elements of a tuple, list or dict."""
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, (list, tuple)):
        items = enumerate(value)
    elif isinstance(value, dict):
        items = value.items()
    return [(item, f"{text}[{key!r}]") for key, item in items]


def nodes_in(variables: Mapping[str, Any]) -> Iterator[tuple[Node, str]]:
    """The nodes of the tensors that variables hold, and the texts that read them."""
    for value, text in values_in(variables):
        node = value.known_node() if isinstance(value, SymbolicTensor) else None
        if node is not None:
            yield node, text


def scope_of(
    variables: Mapping[str, Any], case: FunctionCase, plain: frozenset[Node],
    elements: str = "numel()",
) -> Scope:  # fmt: skip
    """The tensors, sizes and numbers that a backward can name in one case.

    ``plain``: the inputs that are Python numbers.  ``elements``: how the number of elements of a
    tensor is read.
    """
    names: dict[Node, str] = {}
    symbols = {node.label: node for node in plain}
    found = sorted(nodes_in(variables), key=lambda item: item[1].startswith("_"))
    for node, text in found:
        if node.graph is case.graph and node.op not in ("constant", "size"):
            names.setdefault(node, text)
    numbers: dict[float, str] = {}
    known: list[tuple[Dim, str]] = []
    for value, text in values_in(variables):
        if is_plain_number(value):
            if value.op == PLAIN and value.regions[0].name in symbols:
                names.setdefault(symbols[value.regions[0].name], text)
        elif isinstance(value, SymInt):
            known.append((value.dim, text))
        elif type(value) in (int, float) and math.isfinite(value) and abs(value) not in _PLAIN:
            numbers.setdefault(value, text)
    known += sizes_of(names, elements)
    scope = Scope(names, {}, {}, numbers, taken=frozenset(variables), plain=plain)
    return with_sizes(scope, known)


def sizes_of(names: Mapping[Node, str], elements: str = "numel()") -> list[tuple[Dim, str]]:
    """The sizes of tensors, and the numbers of their elements, with the text that reads each."""
    found = [
        (size, f"{text}.shape[{axis}]")
        for node, text in names.items() for axis, size in enumerate(node.shape)
    ]  # fmt: skip
    return found + [
        (reduce(operator.mul, node.shape), f"{text}.{elements}")
        for node, text in names.items()
        if node.rank > 1
    ]


def from_the_end(scope: Scope) -> Scope:
    """A scope in which the axes of tensors are counted from the last one."""
    texts = {
        f"{text}.shape[{axis}]": f"{text}.shape[{axis - node.rank}]"
        for node, text in scope.names.items() for axis in range(node.rank)
    }  # fmt: skip
    sizes = {name: texts.get(text, text) for name, text in scope.sizes.items()}
    dims = {dim: texts.get(text, text) for dim, text in scope.dims.items()}
    return replace(scope, sizes=sizes, dims=dims, ends=True)


def with_sizes(scope: Scope, found: Sequence[tuple[Dim, str]]) -> Scope:
    """A scope with the texts that read sizes; a size can also be read from a multiple of it."""
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


def root_of(text: str) -> str:
    """The variable that a text starts from: ``ctx`` of ``ctx.saved_tensors[0]``."""
    text = text.lstrip("(")
    for mark in ".[":
        text = text.partition(mark)[0]
    return text
