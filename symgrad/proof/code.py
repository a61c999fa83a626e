"""Graph nodes as tensor code that can be pasted into a backward.

In: nodes, and those of them that have names in the user's scope.  Out: Python text.
Imports: ``symgrad.ir``.

Methods and operators are those of PyTorch; what is broadcast by the operators themselves is not
expanded.  An op without a spelling raises ``NoSpelling``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from symgrad.ir.dim import Axis, Dim, Size
from symgrad.ir.graph import Node

SHORT = 24
SUM, PRODUCT, UNARY, POWER, ATOM = 10, 20, 30, 40, 50
_INFIX: dict[str, tuple[str, int]] = {
    "add": (" + ", SUM), "sub": (" - ", SUM), "mul": (" * ", PRODUCT), "div": (" / ", PRODUCT),
    "pow": ("**", POWER), "mod": (" % ", PRODUCT), "floordiv": (" // ", PRODUCT),
    "eq": (" == ", 4), "ne": (" != ", 4), "lt": (" < ", 4), "le": (" <= ", 4), "gt": (" > ", 4),
    "ge": (" >= ", 4), "logical_and": (" & ", 8), "logical_or": (" | ", 6),
    "logical_xor": (" ^ ", 7),
}  # fmt: skip
_FUNCTIONS = frozenset(("maximum", "minimum", "atan2", "fmod", "where"))
_METHODS = frozenset(
    [
        "abs",
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "ceil",
        "cos",
        "cosh",
        "digamma",
        "erf",
        "erfc",
        "erfinv",
        "exp",
        "exp2",
        "expm1",
        "floor",
        "lgamma",
        "log",
        "log10",
        "log1p",
        "log2",
        "reciprocal",
        "relu",
        "round",
        "rsqrt",
        "sigmoid",
        "sign",
        "sin",
        "sinh",
        "sqrt",
        "square",
        "tan",
        "tanh",
        "trunc",
    ]
)
_PLAIN_FUNCTIONS = {"softplus": "softplus", "log_sigmoid": "logsigmoid", "silu": "silu"}
_REDUCTIONS = {"sum": "sum", "prod": "prod", "amax": "amax", "amin": "amin", "any": "any",
               "all": "all", "argmax": "argmax", "argmin": "argmin"}  # fmt: skip
Text = tuple[str, int]


class NoSpelling(Exception):
    """There is no tensor code for an op."""


class CodeWriter:
    """Writes nodes as code.

    ``names``: nodes printed by their names.  ``shapes``: where a size can be read from, such as
    ``{n: "x.shape[0]"}``; other sizes are printed by their own names.
    """

    def __init__(self, names: Iterable[Node] = (), shapes: Mapping[str, str] | None = None) -> None:
        self.names = {node: node.label for node in names}
        self.shapes = dict(shapes or {})
        self._memo: dict[Node, Text] = {}

    def text(self, node: Node, level: int = 0) -> str:
        """The node on one line; in parentheses where its precedence is below ``level``.

        Raises NoSpelling.
        """
        for part in _needed(node, self.names):
            if part not in self._memo:
                self._memo[part] = self._spell(part)
        return self._inside(node, level)

    def program(self, node: Node) -> str:
        """The node as statements, where something is used more than once, and an expression.

        Raises NoSpelling.
        """
        lines = []
        taken = {*self.names.values(), *_words(self.names)}
        for part in _shared(node, self.names):
            code = self.text(part)
            if len(code) > SHORT:
                name = next(n for n in (f"t{i}" for i in range(1000)) if n not in taken)
                taken.add(name)
                lines.append(f"{name} = {code}")
                self.names[part] = name
                self._memo = {}
        return "\n".join([*lines, self.text(node)])

    def _inside(self, node: Node, level: int) -> str:
        text, own = self._memo[node]
        return f"({text})" if own < level else text

    def _spell(self, node: Node) -> Text:
        if node in self.names:
            return self.names[node], ATOM
        if node.op == "input":
            return node.label, ATOM
        if node.op in _INFIX:
            return self._infix(node)
        if node.op in _METHODS:
            return f"{self._inside(node.args[0], ATOM)}.{node.op}()", ATOM
        handler = _HANDLERS.get(node.op)
        if handler is not None:
            return handler(self, node)
        if node.op in _FUNCTIONS or node.op in _PLAIN_FUNCTIONS:
            name = _PLAIN_FUNCTIONS.get(node.op, node.op)
            return f"sg.{name}({', '.join(self._operands(node))})", ATOM
        if node.op in _REDUCTIONS:
            axes = _axes(node.attributes["axes"])
            return f"{self._inside(node.args[0], ATOM)}.{_REDUCTIONS[node.op]}({axes})", ATOM
        raise NoSpelling(node.op)

    def _operands(self, node: Node, levels: Sequence[int] = ()) -> list[str]:
        """The operands of an elementwise op; what broadcasting does by itself is left out."""
        levels = levels or [0] * len(node.args)
        chosen = _least_expanded(node, self.names)
        for arg in chosen:
            self.text(arg)
        return [self._inside(arg, level) for arg, level in zip(chosen, levels, strict=True)]

    def _infix(self, node: Node) -> Text:
        symbol, level = _INFIX[node.op]
        right = level + 1 if node.op in ("sub", "div", "mod", "floordiv") else level
        left = level + 1 if node.op == "pow" or level < SUM else level
        operands = self._operands(node, (left, right + (level < SUM)))
        return symbol.join(operands), level

    # -- ops with a spelling of their own

    def _negative(self, node: Node) -> Text:
        return f"-{self._inside(node.args[0], UNARY)}", UNARY

    def _not(self, node: Node) -> Text:
        return f"~{self._inside(node.args[0], ATOM)}", UNARY

    def _constant(self, node: Node) -> Text:
        value = node.attributes["value"].value
        if isinstance(value, float) and value == int(value) if _finite(value) else False:
            value = int(value)
        return (repr(value), ATOM if value >= 0 else UNARY)

    def _size(self, node: Node) -> Text:
        return self.dim(node.attributes["dim"]), ATOM if node.attributes["dim"].atom else SUM

    def dim(self, dim: Dim) -> str:
        """A size as code."""
        if dim.atom is not None and isinstance(dim.atom, Size):
            return self.shapes.get(dim.atom.name, dim.atom.name)
        text = str(dim)
        for name in sorted(dim.sizes, key=len, reverse=True):
            text = _replace_word(text, name, self.shapes.get(name, name))
        return text

    def _shape(self, shape: Sequence[Dim]) -> str:
        return ", ".join(self.dim(Dim.of(size)) for size in shape)

    def _expand(self, node: Node) -> Text:
        return f"{self._inside(node.args[0], ATOM)}.expand({self._shape(node.shape)})", ATOM

    def _reshape(self, node: Node) -> Text:
        (arg,) = node.args
        inner = self._inside(arg, ATOM)
        inserted = _inserted_axes(arg.shape, node.shape)
        if inserted is not None:
            if inserted and arg.op == "sum" and arg not in self.names:
                kept = tuple(arg.attributes["axes"])
                if kept == inserted:
                    whole = self._inside(arg.args[0], ATOM)
                    return f"{whole}.sum({_axes(kept)}, keepdim=True)", ATOM
            return inner + "".join(f".unsqueeze({axis})" for axis in inserted), ATOM
        removed = _inserted_axes(node.shape, arg.shape)
        if removed is not None:
            return inner + "".join(f".squeeze({axis})" for axis in reversed(removed)), ATOM
        return f"{inner}.reshape({self._shape(node.shape)})", ATOM

    def _permute(self, node: Node) -> Text:
        axes, inner = node.attributes["axes"], self._inside(node.args[0], ATOM)
        moved = [axis for axis, source in enumerate(axes) if axis != source]
        if moved == [node.rank - 2, node.rank - 1]:
            return f"{inner}.mT", ATOM
        if len(moved) == 2:
            return f"{inner}.transpose({moved[0]}, {moved[1]})", ATOM
        return f"{inner}.permute({', '.join(map(str, axes))})", ATOM

    def _einsum(self, node: Node) -> Text:
        spec = node.attributes["spec"]
        product = _matrix_product(spec)
        if product is not None:
            swapped, turned = product
            pair = node.args[::-1] if swapped else node.args
            sides = [
                f"{self._inside(arg, ATOM)}.mT" if turn else self._inside(arg, level)
                for arg, turn, level in zip(pair, turned, (PRODUCT, PRODUCT + 1), strict=True)
            ]
            return " @ ".join(sides), PRODUCT
        operands = ", ".join(self._inside(arg, 0) for arg in node.args)
        return f'sg.einsum("{spec}", {operands})', ATOM

    def _cast(self, node: Node) -> Text:
        if node.dtype.is_float and node.args[0].dtype.is_float:
            return self._memo[node.args[0]]
        return f"{self._inside(node.args[0], ATOM)}.to(sg.{node.dtype})", ATOM

    def _concat(self, node: Node) -> Text:
        parts = ", ".join(self._inside(arg, 0) for arg in node.args)
        return f"sg.cat([{parts}], {node.attributes['axis']})", ATOM

    def _index(self, node: Node) -> Text:
        places = ", ".join(self._inside(arg, 0) for arg in node.args[1:])
        return f"{self._inside(node.args[0], ATOM)}[{places}]", ATOM

    def _index_add(self, node: Node) -> Text:
        if len(node.args) != 2 or node.args[1].rank != 1:
            raise NoSpelling("index_add")
        part, place = (self._inside(arg, 0) for arg in node.args)
        zeros = f"sg.zeros({self._shape(tuple(map(Dim.of, node.attributes['shape'])))})"
        return f"{zeros}.index_add(0, {place}, {part})", ATOM

    def _slice(self, node: Node) -> Text:
        attributes = node.attributes
        if any(step <= 0 for step in attributes["steps"]):
            flipped = [a for a, step in enumerate(attributes["steps"]) if step == -1]
            whole = all(
                size == own for size, own in zip(node.shape, node.args[0].shape, strict=True)
            )
            if whole and all(step in (1, -1) for step in attributes["steps"]):
                return f"{self._inside(node.args[0], ATOM)}.flip({_axes(tuple(flipped))})", ATOM
            raise NoSpelling("slice")
        parts = []
        for axis, step in enumerate(attributes["steps"]):
            start, size = Dim.of(attributes["starts"][axis]), Dim.of(attributes["sizes"][axis])
            end = start + size * step
            low = "" if start == 0 else self.dim(start)
            high = "" if step == 1 and end == node.args[0].shape[axis] else self.dim(end)
            parts.append(f"{low}:{high}" + (f":{step}" if step != 1 else ""))
        while len(parts) > 1 and parts[-1] == ":":
            parts.pop()
        return f"{self._inside(node.args[0], ATOM)}[{', '.join(parts)}]", ATOM

    def _scan(self, node: Node) -> Text:
        axis, inner = node.attributes["axis"], self._inside(node.args[0], ATOM)
        if node.attributes["reverse"]:
            return f"{inner}.flip({axis}).{node.op}({axis}).flip({axis})", ATOM
        return f"{inner}.{node.op}({axis})", ATOM

    def _iota(self, node: Node) -> Text:
        return f"sg.arange({self.dim(Dim.of(node.attributes['length']))})", ATOM


_HANDLERS: dict[str, Callable[[CodeWriter, Node], Text]] = {
    "neg": CodeWriter._negative, "logical_not": CodeWriter._not, "constant": CodeWriter._constant,
    "size": CodeWriter._size, "expand": CodeWriter._expand, "reshape": CodeWriter._reshape,
    "permute": CodeWriter._permute, "einsum": CodeWriter._einsum, "cast": CodeWriter._cast,
    "concat": CodeWriter._concat, "index": CodeWriter._index, "slice": CodeWriter._slice,
    "index_add": CodeWriter._index_add, "cumsum": CodeWriter._scan, "cumprod": CodeWriter._scan,
    "iota": CodeWriter._iota,
}  # fmt: skip


def _needed(node: Node, stop: Mapping[Node, str]) -> list[Node]:
    found: dict[int, Node] = {}
    todo = [node]
    while todo:
        part = todo.pop()
        if part.index not in found:
            found[part.index] = part
            if part not in stop:
                todo.extend(part.args)
    return [found[index] for index in sorted(found)]


def _words(names: Mapping[Node, str]) -> set[str]:
    """Names of inputs that may turn up in the code."""
    graphs = {node.graph for node in names}
    return {name for graph in graphs for name in graph.inputs}


def _shared(root: Node, names: Mapping[Node, str]) -> list[Node]:
    """Unnamed nodes that are read more than once, arguments first."""
    uses: dict[Node, int] = {}
    order = _needed(root, names)
    for node in order:
        if node not in names:
            operands = _least_expanded(node, names) if _is_elementwise(node) else node.args
            for arg in operands:
                uses[arg] = uses.get(arg, 0) + 1
    plain = ("input", "constant", "size", "expand", "iota")
    return [n for n in order if uses.get(n, 0) > 1 and n not in names and n.op not in plain]


def _is_elementwise(node: Node) -> bool:
    return node.op in _INFIX or node.op in _FUNCTIONS or node.op in _PLAIN_FUNCTIONS


def _shed(node: Node, names: Mapping[Node, str]) -> Node:
    """What an operand was expanded from, unless it has a name of its own."""
    while node.op == "expand" and node not in names:
        node = node.args[0]
    return node


def _least_expanded(node: Node, names: Mapping[Node, str]) -> list[Node]:
    """The operands as they were before expansion, as far as broadcasting gives the same shape."""
    shed = [_shed(arg, names) for arg in node.args]
    if _broadcast(shed) == node.shape:
        return shed
    for position, arg in enumerate(node.args):
        if shed[position].rank:
            mixed = [*shed[:position], arg, *shed[position + 1 :]]
            if _broadcast(mixed) == node.shape:
                return mixed
    return list(node.args)


def _broadcast(nodes: Sequence[Node]) -> tuple[Dim, ...]:
    rank = max(node.rank for node in nodes)
    shape = [Dim.of(1)] * rank
    for node in nodes:
        for axis, size in enumerate(node.shape, rank - node.rank):
            if size != 1:
                shape[axis] = size
    return tuple(shape)


def _axes(axes: Sequence[int]) -> str:
    return str(axes[0]) if len(axes) == 1 else f"({', '.join(map(str, axes))})"


def _finite(value: float) -> bool:
    return value == value and value not in (float("inf"), float("-inf"))


def _inserted_axes(old: Sequence[Dim], new: Sequence[Dim]) -> tuple[int, ...] | None:
    """The axes of size 1 that ``new`` has beyond ``old``; None where they differ otherwise."""
    found, position = [], 0
    for axis, size in enumerate(new):
        if (
            position < len(old)
            and old[position] == size
            and (size != 1 or len(new) - axis <= len(old) - position)
        ):
            position += 1
        elif size == 1:
            found.append(axis)
        else:
            return None
    return tuple(found) if position == len(old) else None


def _matrix_product(spec: str) -> tuple[bool, tuple[bool, bool]] | None:
    """Whether operands are swapped and which are transposed, where a spec is a matrix product."""
    operands, result = spec.split("->")
    left, right = operands.split(",")
    if len(left) != len(right) or len(left) < 2 or len(result) != len(left):
        return None
    batch = result[:-2]
    if left[:-2] != batch or right[:-2] != batch:
        return None
    row, column = result[-2], result[-1]
    for swapped, (first, second) in ((False, (left, right)), (True, (right, left))):
        a, b = first[-2:], second[-2:]
        if row in a and column in b and row not in b and column not in a:
            inner = a.replace(row, "")
            if inner == b.replace(column, ""):
                return swapped, (a[0] != row, b[1] != column)
    return None


def _replace_word(text: str, word: str, new: str) -> str:
    return re.sub(rf"\b{re.escape(word)}\b", new, text)


def size_sources(inputs: Iterable[Node]) -> dict[str, str]:
    """Where each size can be read from: ``{"n": "x.shape[0]"}``."""
    found: dict[str, str] = {}
    for node in inputs:
        for axis, size in enumerate(node.shape):
            atom = size.atom
            if isinstance(atom, Size) and not isinstance(atom, Axis):
                found.setdefault(atom.name, f"{node.label}.shape[{axis}]")
    return found
