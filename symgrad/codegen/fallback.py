"""Kernels as a module of NumPy programs, for where no library can be loaded.

In: the graphs of kernels, what their sizes are called.  Out: text; None where NumPy lacks an op.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from symgrad.codegen.calls import SizeNames, safe_name
from symgrad.codegen.environment import environment
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType
from symgrad.ir.formula import formulas
from symgrad.ir.graph import Graph, Node
from symgrad.ops.record import get

_WORD = re.compile(r"[^\W\d]\w*")
_OWN = ("add_at", "part", "put", "take")
_CALLED = re.compile(rf"(?<![\w.])(as_\w+|{'|'.join(_OWN)})\(")
_RESERVED = frozenset((*keyword.kwlist, "math", "np", "sizes", "min", "max", *_OWN))


@dataclass(frozen=True)
class ProgramView:
    """One function.  ``sizes``: those that it reads."""

    name: str
    parameters: tuple[str, ...]
    formulas: tuple[str, ...]
    sizes: tuple[str, ...]
    lines: tuple[str, ...]
    results: tuple[str, ...]


@dataclass(frozen=True)
class FallbackView:
    """All that the template is shown."""

    title: str
    runtime: str
    imports: tuple[str, ...]
    preludes: tuple[str, ...]
    programs: tuple[ProgramView, ...]


class _Text:
    """A size in the text of a program, which prints as its expression."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def __sub__(self, other: int) -> _Text:
        return _Text(f"({self.text} - {other})")


def render_fallback(
    title: str, runtime: str, kernels: Mapping[str, Graph], names: SizeNames
) -> str | None:
    """The module; None where an op has no text for NumPy.

    ``kernels``: by name.  ``runtime``: the package that it imports what it calls from.
    """
    preludes: dict[str, None] = {}
    programs = []
    for name, graph in kernels.items():
        writer = _Writer(graph, names)
        if not writer.whole:
            return None
        programs.append(writer.view(name))
        preludes |= dict.fromkeys(writer.preludes)
    called = {word for one in programs for line in one.lines for word in _CALLED.findall(line)}
    view = FallbackView(title, runtime, tuple(sorted(called)), tuple(preludes), tuple(programs))
    return environment().get_template("fallback.py.j2").render(file=view)


class _Writer:
    """The statements of one graph.  ``whole``: every op has a text."""

    def __init__(self, graph: Graph, sizes: SizeNames) -> None:
        self.graph = graph
        self.sizes = sizes
        self.read: dict[str, None] = {}
        self.preludes: list[str] = []
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.whole = self._written()

    def view(self, name: str) -> ProgramView:
        """The function."""
        return ProgramView(
            name,
            tuple(self.names[node.index] for node in self.graph.inputs.values()),
            formulas(self.graph),
            tuple(self.read),
            tuple(self.lines),
            tuple(self.names[node.index] for node in self.graph.outputs.values()),
        )

    def _written(self) -> bool:
        dims = (
            d for node in self.graph.nodes for d in _dims((node.shape, *node.attributes.values()))
        )
        taken = {word for dim in dims for word in _WORD.findall(self.sizes.text(dim))}
        for name, node in self.graph.inputs.items():
            free = safe_name(name, (*taken, *self.names.values()), _RESERVED)
            self.names[node.index] = free if not re.fullmatch(r"v\d+|as_\w+", free) else f"{free}_"
        for node in self.graph.nodes:
            if node.op == "input":
                if node.rank == 0:  # it may be a number of Python
                    name = self.names[node.index]
                    self.lines.append(f"{name} = as_{node.dtype}({name})")
                continue
            text = self._text(node)
            if text is None:
                return False
            self.names[node.index] = f"v{node.index}"
            self.lines.append(f"v{node.index} = as_{node.dtype}({text})")
        return True

    def _text(self, node: Node) -> str | None:
        op, operands = get(node.op), [self.names[arg.index] for arg in node.args]
        facts = {**node.attributes, "shape": node.shape, "shapes": [a.shape for a in node.args]}
        facts = {name: self._said(value) for name, value in facts.items()}
        own = _own_text(node.op, operands, facts)
        if own is not None:
            return own
        text = op.numpy_text(operands, {**facts, "dtype": node.dtype, "kind": _kind(node.dtype)})
        if text is not None and op.prelude:
            self.preludes.append(op.prelude)
        return text

    def _said(self, value: Any) -> Any:
        """A fact as a text that prints; sizes are noted."""
        if isinstance(value, (tuple, list)):
            return type(value)(map(self._said, value))
        if not isinstance(value, Dim):
            return value
        text = self.sizes.text(value)
        self.read |= dict.fromkeys(w for w in _WORD.findall(text) if w not in ("min", "max"))
        return _Text(text)


def _own_text(op: str, operands: list[str], facts: Mapping[str, Any]) -> str | None:
    """What depends on the values of sizes, or has to refuse indices."""
    if op in ("slice", "unslice"):
        sizes = facts["sizes"] if op == "slice" else facts["shapes"][0]
        where = f"part({facts['starts']}, {facts['steps']}, {tuple(sizes)})"
        if op == "slice":
            return f"{operands[0]}[{where}]"
        return f"put({operands[0]}, {facts['shape']}, {where})"
    if op == "index":
        return f"take({', '.join(operands)})"
    if op == "index_add":
        return f"add_at({operands[0]}, {facts['shape']}, {', '.join(operands[1:])})"
    return None


def _kind(dtype: DType) -> str:
    """How a program calls a dtype."""
    return "bool" if str(dtype) == "bool" else f"np.{dtype}"


def _dims(values: Iterable[Any]) -> Iterable[Dim]:
    for value in values:
        if isinstance(value, Dim):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _dims(value)
