"""Graph nodes as tensor code that can be pasted into a backward.

In: nodes, and those of them that have names in the user's scope.  Out: Python text.

Methods and operators are those of PyTorch; what is broadcast by the operators themselves is not
expanded.  An op without a spelling raises ``NoSpelling``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from symgrad.ir.dim import Dim, Size
from symgrad.ir.dtype import DType, bool_
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.movement import bare
from symgrad.ops.record import get
from symgrad.proof.words.spelling import (
    INFIX,
    WRITING,
    averaged,
    axes,
    broadcasts,
    finite,
    inserted_axes,
    is_transposition,
    least_expanded,
    matrix_product,
    needed,
    replace_word,
    scattered_axis,
    shared,
    shed,
    vector_product,
    whole_flip,
    words,
)

SHORT = 24
LONG = 60
SUM, PRODUCT, UNARY, POWER, ATOM = 10, 20, 30, 40, 50
_LEVELS = {
    "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "**": POWER, "%": PRODUCT, "//": PRODUCT,
    "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "&": 8, "|": 6, "^": 7,
}  # fmt: skip
"""How tightly Python's operators bind."""
Text = tuple[str, int]


class NoSpelling(Exception):
    """There is no tensor code for an op."""


class CodeWriter:
    """Writes nodes as code.

    ``names``: nodes printed by their names, or by the texts of a mapping.  ``shapes``: where a
    size can be read from, such as ``{n: "x.shape[0]"}``; other sizes are printed by their own
    names.  ``dims``: the same for whole expressions.  ``numbers``: literals printed by the names
    of variables.  ``taken``: names that statements must not bind.  ``module``: what symgrad is
    called, and ``functional`` the module that has its activations.  ``strict``: an input that is
    not in ``names`` has no spelling.  ``plain``: inputs that are Python numbers, and no tensors.
    ``ends``: axes are counted from the last one.
    """

    def __init__(
        self, names: Iterable[Node] | Mapping[Node, str] = (),
        shapes: Mapping[str, str] | None = None, *, dims: Mapping[Dim, str] | None = None,
        numbers: Mapping[float, str] | None = None,
        taken: Iterable[str] = (), module: str = "sg", strict: bool = False,
        plain: Iterable[Node] = (), functional: str = "", ends: bool = False,
    ) -> None:  # fmt: skip
        given = names if isinstance(names, Mapping) else {node: node.label for node in names}
        self.names = dict(given)
        self.shapes = dict(shapes or {})
        self.dims = dict(dims or {})
        self.numbers = dict(numbers or {})
        self.taken = frozenset(taken)
        self.module = module
        self.functional = functional or module
        self.strict = strict
        self.ends = ends
        self._memo: dict[Node, Text] = {}
        self._plain = frozenset(plain)
        self._numbers: dict[Node, bool] = {
            node: False for node in self.names if not self._made_of_plain(node)
        }
        self._numbers |= dict.fromkeys(self._plain, True)

    def _made_of_plain(self, node: Node) -> bool:
        """Is a named node computed from plain numbers alone?"""
        if node.rank or not self._plain:
            return False
        inputs = {part for part in ancestors([node]) if part.op == "input"}
        return bool(inputs) and inputs <= self._plain

    def text(self, node: Node, level: int = 0) -> str:
        """The node on one line; in parentheses where its precedence is below ``level``.

        Raises NoSpelling.
        """
        for part in needed(node, self.names):
            if part not in self._memo:
                self._memo[part] = self._spell(part)
        return self._inside(node, level)

    def program(self, node: Node) -> str:
        """The node as statements, where something is used more than once or is long; an expression.

        Raises NoSpelling.
        """
        lines: list[str] = []
        taken = {*self.names.values(), *words(self.names), *self.taken}
        often = set(shared(node, self.names))
        for part in needed(node, self.names):
            if part in self.names or (part not in often and not self._is_long(part, node)):
                continue
            name = next(n for n in (f"t{i}" for i in range(1000)) if n not in taken)
            statements = self._statements(part, name)
            if statements:
                self._is_number(part)  # is kept, whatever name it gets
                taken.add(name)
                lines += statements
                self.names[part] = name
                self._memo = {}
        last = self.text(node)
        if lines and lines[-1].startswith(f"{last} = "):
            return "\n".join([*lines[:-1], lines[-1].removeprefix(f"{last} = ")])
        return "\n".join([*lines, last])

    def _is_long(self, part: Node, whole: Node) -> bool:
        """Is a part of an expression so long that it gets a line of its own?"""
        if part is whole or part.op in ("expand", "reshape", *WRITING):
            return False
        return len(self.text(part)) > LONG

    def _statements(self, node: Node, name: str) -> list[str]:
        """The statements that compute a node; none where it is short enough to be repeated."""
        if node.op in WRITING:
            part = self.text(node.args[0])
            zeros = f"{name} = {self._filled(node, '0')}"
            flipped = whole_flip(node)
            if flipped:
                over = self._axes(flipped, node.rank)
                return [f"{name} = {self.text(node.args[0], ATOM)}.flip({over})"]
            if node.op == "unslice":
                ranges = self._ranges(node.attributes, node.args[0].shape, node.shape)
                return [zeros, f"{name}[{ranges}] = {part}"]
            places = node.args[1:]
            if len(places) == 1 and places[0].rank == 1:
                return [f"{zeros}.index_add(0, {self.text(places[0])}, {part})"]
            axis = scattered_axis(places, node.rank)
            if axis is None:
                listed = ", ".join(self.text(place) for place in places)
                listed = f"({listed},)" if len(places) == 1 else f"({listed})"
                return [zeros, f"{name}.index_put_({listed}, {part}, accumulate=True)"]
            axis = self._axis(place := axis, node.rank)
            return [f"{zeros}.scatter_add({axis}, {self.text(places[place])}, {part})"]
        code = self.text(node)
        return [f"{name} = {code}"] if len(code) > SHORT else []

    def _axis(self, axis: int, rank: int) -> int:
        """An axis of a tensor of so many axes, as it is counted."""
        return axis - rank if self.ends else axis

    def _axes(self, listed: Sequence[int], rank: int) -> str:
        """Axes of a tensor of so many axes as an argument."""
        return axes([self._axis(axis, rank) for axis in listed])

    def _inside(self, node: Node, level: int) -> str:
        text, own = self._memo[node]
        return f"({text})" if own < level else text

    def _spell(self, node: Node) -> Text:
        if node in self.names:
            return self.names[node], ATOM
        if node.op == "input":
            if self.strict:
                raise NoSpelling(node.label)
            return node.label, ATOM
        handler = _HANDLERS.get(node.op)
        return handler(self, node) if handler is not None else self._by_record(node)

    def _choice(self, node: Node) -> Text:
        """``clamp``, where it is one, as forward traces it."""
        found = self._clamped(node)
        if found is None:
            return self._by_record(node)
        inner, bounds = found
        self.text(inner)
        listed = [
            f"{word}={text}" for word, text in zip(("min", "max"), bounds, strict=True) if text
        ]
        if all(bounds):
            listed = list(bounds)
        return f"{self._receiver(inner)}.clamp({', '.join(listed)})", ATOM

    def _limited(self, node: Node) -> Text:
        """``clamp`` of a tensor by a number, which torch's functions of two tensors do not take."""
        bare = [shed(arg, self.names) for arg in node.args]
        numbers = [arg for arg in bare if self._is_number(arg)]
        if len(numbers) != 1:
            return self._by_record(node)
        (number,) = numbers
        inner = node.args[1 - bare.index(number)]
        self.text(number)
        word = "min" if node.op == "maximum" else "max"
        return f"{self._receiver(inner)}.clamp({word}={self._inside(number, 0)})", ATOM

    def _clamped(self, node: Node) -> tuple[Node, tuple[str, str]] | None:
        """What a choice clamps, and its bounds as text; None where it does something else."""
        condition, bound, inner = node.args
        number = bare(bound)
        if condition in self.names or condition.op not in ("lt", "gt") or number.rank:
            return None
        same = condition.args[0] is inner and condition.args[1] is bound
        known = number.op in ("constant", "size") or self._is_plain(bound)
        if not same or not known or inner.shape != node.shape:
            return None
        text = self.text(number)
        if condition.op == "lt":
            return inner, (text, "")
        below = self._clamped(inner) if inner.op == "where" and inner not in self.names else None
        if below is not None and below[1][0] and not below[1][1]:
            return below[0], (below[1][0], text)
        return inner, ("", text)

    def _by_record(self, node: Node) -> Text:
        """As the record of the op says."""
        code = get(node.op).code
        if code is None:
            raise NoSpelling(node.op)
        infix = INFIX.fullmatch(code)
        if infix is not None:
            return self._infix(node, infix[1])
        if broadcasts(node):
            operands = self._operands(node)
            if node.op != "where" or all(map(self._is_plain, node.args[1:])):
                operands = self._as_tensors(node, operands)
            elif self._is_plain(node.args[0]):
                operands[0] = self._receiver(shed(node.args[0], self.names))
        else:
            operands = [self._inside(arg, 0) for arg in node.args]
            if code.startswith("{0}."):
                operands[0] = self._receiver(node.args[0])
        facts = node.attributes
        if "axes" in facts:
            whole = node.op == "sum" and not node.rank
            over = "" if whole else self._axes(facts["axes"], node.args[0].rank)
            facts = {**facts, "over": over}
        if "axis" in facts:
            facts = {**facts, "axis": self._axis(facts["axis"], node.args[0].rank)}
        module = self.functional if node.op in _ACTIVATIONS else self.module
        return code.format(*operands, sg=module, **facts), ATOM

    def _is_plain(self, node: Node) -> bool:
        """Is an operand a Python number that is expanded, or a named one that is?"""
        return bool(self._plain) and self._is_number(shed(node, self.names))

    def _as_tensors(self, node: Node, operands: Sequence[str]) -> list[str]:
        """Operands of a function of torch's that takes tensors alone."""
        bare = [shed(arg, self.names) for arg in node.args]
        return [
            self._receiver(arg) if self._is_plain(arg) else text
            for arg, text in zip(bare, operands, strict=True)
        ]

    def _operands(self, node: Node, levels: Sequence[int] = ()) -> list[str]:
        """The operands of an elementwise op; what broadcasting does by itself is left out."""
        levels = levels or [0] * len(node.args)
        chosen = least_expanded(node, self.names)
        for arg in chosen:
            self.text(arg)
        return [self._inside(arg, level) for arg, level in zip(chosen, levels, strict=True)]

    def _infix(self, node: Node, operator: str) -> Text:
        average = averaged(node, self.names)
        if average is not None:
            inner, over, kept = average
            self.text(inner)
            listed = self._axes(over, inner.rank) + (", keepdim=True" if kept else "")
            listed = "" if not kept and len(over) == inner.rank else listed
            return f"{self._inside(inner, ATOM)}.mean({listed})", ATOM
        symbol = operator.strip()
        if symbol == "+" and node.args[0] is node.args[1] and node.dtype.is_float:
            return f"2 * {self._operands(node, (PRODUCT, PRODUCT))[0]}", PRODUCT
        level = _LEVELS[symbol]
        right = level + 1 if symbol in ("-", "/", "%", "//") else level
        left = level + 1 if symbol == "**" or level < SUM else level
        operands = self._operands(node, (left, right + (level < SUM)))
        return operator.join(operands), level

    # -- ops with a spelling of their own

    def _negative(self, node: Node) -> Text:
        inner = node.args[0]
        if inner.op == "neg" and inner not in self.names:
            return self._memo[inner.args[0]]
        return f"-{self._inside(node.args[0], UNARY)}", UNARY

    def _not(self, node: Node) -> Text:
        if self._is_number(node.args[0]):
            return f"(not {self._inside(node.args[0], UNARY)})", ATOM
        return f"~{self._inside(node.args[0], ATOM)}", UNARY

    def _constant(self, node: Node) -> Text:
        value = node.attributes["value"].value
        if node.dtype == bool_:
            return repr(bool(value)), ATOM
        if value in self.numbers and not isinstance(value, bool):
            return self.numbers[value], ATOM
        if not finite(value):
            return f"float({str(value)!r})", ATOM
        if isinstance(value, float) and abs(value) < _EXACT and value == int(value):
            value = int(value)
        return (repr(value), ATOM if value >= 0 else UNARY)

    def _size(self, node: Node) -> Text:
        dim = node.attributes["dim"]
        return self.dim(dim), ATOM if dim.atom or dim in self.dims else SUM

    def dim(self, dim: Dim) -> str:
        """A size as code."""
        if dim in self.dims:
            return self.dims[dim]
        if dim.atom is not None and isinstance(dim.atom, Size):
            return self._size_text(dim.atom.name)
        text = str(dim)
        for name in sorted(dim.sizes, key=len, reverse=True):
            text = replace_word(text, name, self._size_text(name))
        return text

    def _size_text(self, name: str) -> str:
        if self.strict and name not in self.shapes:
            raise NoSpelling(name)
        return self.shapes.get(name, name)

    def _filled(self, node: Node, value: str) -> str:
        """A tensor of a node's shape and dtype that holds one number everywhere."""
        like = self._like(node.shape, node.dtype)
        base = like or self._of_dtype(node.dtype)
        shape = self._shape(node.shape)
        if value == "0":
            if like:
                return f"{self.module}.zeros_like({like})"
            if base:
                return f"{base}.new_zeros({shape})"
            return f"{self.module}.zeros({shape}{self._said(node.dtype)})"
        whole = self._like(node.shape)  # then the shape is one expression already
        sizes = f"({shape},)" if node.rank and not whole else shape or "()"
        if like:
            return f"{self.module}.full_like({like}, {value})"
        if base:
            return f"{base}.new_full({sizes}, {value})"
        return f"{self.module}.full({sizes}, {value}{self._said(node.dtype)})"

    def _said(self, dtype: DType) -> str:
        """A dtype as an argument, where it is not the one of the program's floats."""
        return "" if dtype.is_float else f", dtype={self.module}.{dtype}"

    def _of_dtype(self, dtype: DType) -> str:
        """A named tensor of a float dtype: the program may run in another than it was traced in."""
        found = [
            (node.op != "input", len(text), text) for node, text in self.names.items()
            if dtype.is_float and node.dtype == dtype and text.isidentifier()
            and node not in self._plain
        ]  # fmt: skip
        return min(found)[-1] if found else ""

    def _like(self, shape: Sequence[Dim], dtype: DType | None = None) -> str:
        """A named tensor of this shape; empty where there is none, or it has one axis only."""
        wanted = tuple(shape)
        found = [
            text for node, text in self.names.items()
            if node.shape == wanted and dtype in (None, node.dtype)
        ]  # fmt: skip
        return min(found, key=len) if len(wanted) > 1 and found else ""

    def _is_number(self, node: Node) -> bool:
        """Is its code a Python number: computed from sizes and literals, and no tensor?"""
        found = self._numbers.get(node)
        if found is None:
            code = get(node.op).code
            plain = node.op in _OF_NUMBERS or (
                code is not None and INFIX.fullmatch(code) is not None
            )
            found = not node.rank and plain and all(map(self._is_number, node.args))
            self._numbers[node] = found
        return found

    def _receiver(self, node: Node) -> str:
        """A node as a tensor whose method is called."""
        text = self._inside(node, ATOM)
        if not self._is_number(node):
            return text
        base = self._of_dtype(node.dtype)
        if base:
            return f"{base}.new_full((), {self._inside(node, 0)})"
        return f"{self.module}.tensor({self._inside(node, 0)}{self._said(node.dtype)})"

    def _root(self, node: Node) -> Text:
        (inner,) = node.args
        if not self._is_number(inner):
            return self._by_record(node)
        exponent = "0.5" if node.op == "sqrt" else "-0.5"
        return f"{self._inside(inner, POWER + 1)} ** {exponent}", POWER

    def _shape(self, shape: Sequence[Dim]) -> str:
        like = self._like(shape)
        if like:
            return f"{like}.shape"
        return ", ".join(self.dim(Dim.of(size)) for size in shape)

    def _expand(self, node: Node) -> Text:
        (inner,) = node.args
        if self._is_number(inner):
            return self._filled(node, self._inside(inner, 0)), ATOM
        return f"{self._inside(inner, ATOM)}.expand({self._shape(node.shape)})", ATOM

    def _reshape(self, node: Node) -> Text:
        (arg,) = node.args
        while arg.op == "reshape" and arg not in self.names:
            arg = arg.args[0]
        self.text(arg)
        if self._is_plain(arg) and node not in self.names:
            return self._filled(node, self._inside(arg, 0)), ATOM
        if arg.shape == node.shape:
            return self._memo[arg]
        inner = self._receiver(arg)
        inserted = inserted_axes(arg.shape, node.shape)
        if inserted is not None:
            if inserted and arg.op == "sum" and arg not in self.names:
                kept = tuple(arg.attributes["axes"])
                if kept == inserted:
                    whole = self._inside(arg.args[0], ATOM)
                    over = self._axes(kept, node.rank)
                    return f"{whole}.sum({over}, keepdim=True)", ATOM
            places = [self._axis(at, arg.rank + k) for k, at in enumerate(inserted, 1)]
            return inner + "".join(f".unsqueeze({axis})" for axis in places), ATOM
        removed = inserted_axes(node.shape, arg.shape)
        if removed is not None:
            left = arg.rank - len(removed)
            places = [self._axis(at, left + k) for k, at in enumerate(removed, 1)]
            return inner + "".join(f".squeeze({axis})" for axis in reversed(places)), ATOM
        return f"{inner}.reshape({self._shape(node.shape)})", ATOM

    def _permute(self, node: Node) -> Text:
        order, inner = node.attributes["axes"], self._inside(node.args[0], ATOM)
        moved = [axis for axis, source in enumerate(order) if axis != source]
        if moved == [node.rank - 2, node.rank - 1]:
            return self._turned_product(node.args[0]) or (f"{inner}.mT", ATOM)
        if len(moved) == 2:
            first, second = (self._axis(axis, node.rank) for axis in moved)
            return f"{inner}.transpose({first}, {second})", ATOM
        return f"{inner}.permute({', '.join(map(str, order))})", ATOM

    def _turned_product(self, node: Node) -> Text | None:
        """The transpose of an unnamed matrix product, as the product of the transposes."""
        if node.op != "einsum" or node in self.names:
            return None
        product = matrix_product(node.attributes["spec"])
        if product is None:
            return None
        swapped, (first, second) = product
        pair = node.args if swapped else node.args[::-1]
        return self._product(pair, (not second, not first))

    def _product(self, pair: Sequence[Node], turned: Sequence[bool], operator: str = "@") -> Text:
        sides = [
            self._side(arg, turn, level)
            for arg, turn, level in zip(pair, turned, (PRODUCT, PRODUCT + 1), strict=True)
        ]
        return f" {operator} ".join(sides), PRODUCT

    def _einsum(self, node: Node) -> Text:
        spec = node.attributes["spec"]
        product = matrix_product(spec)
        if product is not None:
            swapped, turned = product
            return self._product(node.args[::-1] if swapped else node.args, turned)
        plain = vector_product(spec)
        if plain is not None:
            operator, swapped = plain
            pair = node.args[::-1] if swapped else node.args
            return self._product(pair, (False, False), operator)
        operands = ", ".join(self._inside(arg, 0) for arg in node.args)
        return f'{self.module}.einsum("{spec}", {operands})', ATOM

    def _side(self, arg: Node, turned: bool, level: int) -> str:
        """A side of a matrix product; what would be transposed twice is not at all."""
        if turned and arg not in self.names and is_transposition(arg):
            self.text(arg.args[0])
            return self._inside(arg.args[0], level)
        return f"{self._inside(arg, ATOM)}.mT" if turned else self._inside(arg, level)

    def _cast(self, node: Node) -> Text:
        (inner,) = node.args
        if node.dtype.is_float and (inner.dtype.is_float or self._is_number(inner)):
            return self._memo[inner]
        base = self._of_dtype(node.dtype)
        dtype = f"{base}.dtype" if base else f"{self.module}.{node.dtype}"
        return f"{self._inside(inner, ATOM)}.to({dtype})", ATOM

    def _concat(self, node: Node) -> Text:
        parts = ", ".join(self._inside(arg, 0) for arg in node.args)
        axis = self._axis(node.attributes["axis"], node.rank)
        return f"{self.module}.cat([{parts}], {axis})", ATOM

    def _index(self, node: Node) -> Text:
        places = ", ".join(self._inside(arg, 0) for arg in node.args[1:])
        return f"{self._inside(node.args[0], ATOM)}[{places}]", ATOM

    def _slice(self, node: Node) -> Text:
        attributes = node.attributes
        flipped = whole_flip(node)
        if flipped:
            return (
                f"{self._inside(node.args[0], ATOM)}.flip({self._axes(flipped, node.rank)})",
                ATOM,
            )
        ranges = self._ranges(attributes, node.shape, node.args[0].shape)
        return f"{self._inside(node.args[0], ATOM)}[{ranges}]", ATOM

    def _ranges(
        self, attributes: Mapping[str, Any], part: Sequence[Dim], whole: Sequence[Dim]
    ) -> str:
        """Slices as code; raises NoSpelling for steps backwards."""
        found = []
        for axis, step in enumerate(attributes["steps"]):
            if step <= 0:
                raise NoSpelling("slice")
            start = Dim.of(attributes["starts"][axis])
            end = start + (part[axis] - 1) * step + 1
            low = "" if start == 0 else self.dim(start)
            high = "" if (end + step - 1 - whole[axis]).at_least(0) else self.dim(end)
            found.append(f"{low}:{high}" + (f":{step}" if step != 1 else ""))
        while len(found) > 1 and found[-1] == ":":
            found.pop()
        return ", ".join(found) or "..."

    def _scan(self, node: Node) -> Text:
        axis = self._axis(node.attributes["axis"], node.rank)
        inner = self._inside(node.args[0], ATOM)
        if node.attributes["reverse"]:
            return f"{inner}.flip({axis}).{node.op}({axis}).flip({axis})", ATOM
        return f"{inner}.{node.op}({axis})", ATOM

    def _iota(self, node: Node) -> Text:
        return f"{self.module}.arange({self.dim(Dim.of(node.attributes['length']))})", ATOM


_EXACT = 2.0**53
"""Floats below it that are whole are written as integers; beyond, these would not fit int64."""
_ACTIVATIONS = ("silu", "softplus", "log_sigmoid")
"""Ops that torch has in ``torch.nn.functional`` alone."""
_OF_NUMBERS = ("constant", "size", "neg", "sqrt", "rsqrt", "cast")
"""Ops that are written for Python numbers too, beside the operators."""
_HANDLERS: dict[str, Callable[[CodeWriter, Node], Text]] = {
    "neg": CodeWriter._negative, "logical_not": CodeWriter._not, "constant": CodeWriter._constant,
    "size": CodeWriter._size, "expand": CodeWriter._expand, "reshape": CodeWriter._reshape,
    "permute": CodeWriter._permute, "einsum": CodeWriter._einsum, "cast": CodeWriter._cast,
    "concat": CodeWriter._concat, "index": CodeWriter._index, "slice": CodeWriter._slice,
    "cumsum": CodeWriter._scan, "cumprod": CodeWriter._scan, "iota": CodeWriter._iota,
    "sqrt": CodeWriter._root, "rsqrt": CodeWriter._root,
    "shift": lambda writer, node: writer._memo[node.args[0]], "where": CodeWriter._choice,
    "maximum": CodeWriter._limited, "minimum": CodeWriter._limited,
}  # fmt: skip
