"""A graph as formulas: one line a value that the user named, the rest written inside.

In: a graph's outputs.  Out: lines such as ``y = (x - mean)*rstd``.

Broadcasting is not shown; axes of size 1 that are put in or taken out are not, either.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from typing import Any

from symgrad.ir.dim import Dim, product
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.printer import fresh_name, node_names

MOST_CHARACTERS = 76
_SUM, _PRODUCT, _UNARY, _POWER, _ATOM = range(5)
_INFIX = {
    "add": ("+", _SUM), "sub": ("-", _SUM), "mul": ("*", _PRODUCT), "div": ("/", _PRODUCT),
    "einsum": ("@", _PRODUCT), "pow": ("**", _POWER), "eq": ("==", _SUM), "ne": ("!=", _SUM),
    "lt": ("<", _SUM), "le": ("<=", _SUM), "gt": (">", _SUM), "ge": (">=", _SUM),
    "logical_and": ("&", _SUM), "logical_or": ("|", _SUM),
}  # fmt: skip
_TRANSPARENT = ("expand", "cast")


def formulas(graph: Graph, results: Mapping[str, Node] | None = None) -> tuple[str, ...]:
    """Lines that define ``results`` (by default the graph's outputs), arguments first."""
    wanted = dict(graph.outputs if results is None else results)
    writer = _Writer(ancestors(wanted.values()), wanted, graph.inputs)
    return tuple(writer.lines())


class _Writer:
    """Decides which nodes get a line, and writes each."""

    def __init__(
        self, nodes: list[Node], wanted: Mapping[str, Node], inputs: Collection[str]
    ) -> None:
        self.nodes = nodes
        self.names = node_names(nodes)
        self.wanted = wanted
        self.uses: dict[int, int] = {}
        for node in nodes:
            for arg in node.args:
                self.uses[arg.index] = self.uses.get(arg.index, 0) + 1
        self.texts: dict[int, tuple[str, int]] = {}
        self.taken = {*wanted, *inputs}
        self.taken.update(size for node in nodes for dim in node.shape for size in dim.sizes)

    def _own_names(self) -> dict[int, str]:
        """What results and the user's values are called: each name stands for one value."""
        found = {node.index: name for name, node in self.wanted.items()}
        for node in self.nodes:
            if node.args and node.name and node.index not in found:
                found[node.index] = self._fresh(node.name)
        return found

    def _fresh(self, wanted: str) -> str:
        name = fresh_name(wanted, self.taken)
        self.taken.add(name)
        return name

    def lines(self) -> list[str]:
        found: list[str] = []
        own = self._own_names()
        numbered = (name for n in itertools.count() if (name := f"t{n}") not in self.taken)
        for node in self.nodes:
            text, level = self._text(node)
            named = own.get(node.index)
            shared = self.uses.get(node.index, 0) > 1 and level < _ATOM
            wide = node.args and not self._is_transparent(node) and len(text) > MOST_CHARACTERS
            if not named and (wide or (node.args and shared)):
                named = next(numbered)
            if named and text != named:
                found.append(f"{named} = {text}")
                text, level = named, _ATOM
            self.texts[node.index] = (text, level)
        for name, node in self.wanted.items():
            text = self.texts[node.index][0]
            if text != name:
                found.append(f"{name} = {text}")
        return found

    def _is_transparent(self, node: Node) -> bool:
        return node.op in _TRANSPARENT or (node.op == "reshape" and _only_ones_differ(node))

    def _text(self, node: Node) -> tuple[str, int]:
        if node.op == "iota":
            return f"iota({node.attributes['length']})", _ATOM
        if not node.args:
            text = self.names[node]
            atom = text.replace(".", "").replace("_", "").isalnum()
            return text, _ATOM if atom else _UNARY
        if self._is_transparent(node):
            return self.texts[node.args[0].index]
        if node.op == "neg":
            return f"-{self._inner(node.args[0], _UNARY)}", _UNARY
        if node.op == "permute" and node.attributes["axes"] == (1, 0):
            return f"{self._inner(node.args[0], _ATOM)}.T", _ATOM
        if node.op == "einsum":
            return self._contraction(node)
        if node.op == "div" and (total := self._mean_of(node)) is not None:
            return self._call(total).replace("sum(", "mean(", 1), _ATOM
        if node.op in _INFIX and len(node.args) == 2:
            return self._infix(node)
        return self._call(node), _ATOM

    def _mean_of(self, node: Node) -> Node | None:
        """The sum that ``node`` divides by the number of its terms, if it does."""
        total, count = (self._seen_through(arg) for arg in node.args)
        if total.op != "sum" or total.name or count.op not in ("size", "constant"):
            return None
        terms = product([total.args[0].shape[axis] for axis in total.attributes["axes"]])
        dim = count.attributes.get("dim")
        return total if dim == terms else None

    def _seen_through(self, node: Node) -> Node:
        while node.args and self._is_transparent(node):
            node = node.args[0]
        return node

    def _inner(self, node: Node, least: int) -> str:
        text, level = self.texts[node.index]
        return text if level >= least else f"({text})"

    def _infix(self, node: Node) -> tuple[str, int]:
        symbol, level = _INFIX[node.op]
        left = self._inner(node.args[0], level + (node.op == "pow"))
        right = self._inner(node.args[1], level + 1)
        gap = "" if level >= _PRODUCT and symbol != "@" else " "
        return f"{left}{gap}{symbol}{gap}{right}", level

    def _contraction(self, node: Node) -> tuple[str, int]:
        """``x @ w.T`` for products of matrices, ``einsum`` for the rest."""
        operands, result = node.attributes["spec"].split("->")
        left, right = operands.split(",")
        x, y = (self._inner(arg, _ATOM) for arg in node.args)
        if len(left) == len(right) == len(result) == 2 and len({*left, *right}) == 3:
            if result[0] in right:
                left, right, x, y = right, left, y, x
            x = x if left[0] == result[0] else f"{x}.T"
            y = y if right[1] == result[1] else f"{y}.T"
            return f"{x} @ {y}", _PRODUCT
        return f"einsum({node.attributes['spec']!r}, {x}, {y})".replace("'", '"'), _ATOM

    def _call(self, node: Node) -> str:
        arguments = [self.texts[arg.index][0] for arg in node.args]
        arguments += [f"{name}={_value(value)}" for name, value in node.attrs]
        return f"{node.op}({', '.join(arguments)})"


def _only_ones_differ(node: Node) -> bool:
    old = [size for size in node.args[0].shape if size != 1]
    return old == [size for size in node.shape if size != 1]


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        inner = ", ".join(map(_value, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return str(value).replace(" ", "") if isinstance(value, Dim) else str(value)
