"""Graph nodes as code in the words of ``jax.numpy``.

In: nodes, and those of them that have names in the user's scope.  Out: Python text.

What JAX writes as PyTorch does is written by ``CodeWriter``; what is not known to be the same
raises ``NoSpelling``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symgrad.ir.dtype import DType
from symgrad.ir.graph import Node
from symgrad.ops.record import get
from symgrad.proof.words.code import ATOM, CodeWriter, NoSpelling, Text
from symgrad.proof.words.spelling import INFIX, averaged, axes, inserted_axes, whole_flip

_ALIKE = frozenset(
    ("exp", "log", "log1p", "expm1", "exp2", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh",
     "tanh", "abs", "sign", "square", "reciprocal", "floor", "ceil", "round", "trunc", "maximum",
     "minimum", "logical_and", "logical_or", "logical_xor", "hypot")
)  # fmt: skip
"""Functions that ``jax.numpy`` has under the same names."""
_RENAMED = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh", "atan2": "arctan2",
}  # fmt: skip
_OF_JAX = {
    "sigmoid": "nn.sigmoid", "relu": "nn.relu", "silu": "nn.silu", "softplus": "nn.softplus",
    "log_sigmoid": "nn.log_sigmoid", "rsqrt": "lax.rsqrt", "erf": "scipy.special.erf",
}  # fmt: skip
_REDUCED = ("sum", "prod", "amax", "amin", "argmax", "argmin", "max", "min")
_SHARED = frozenset(("constant", "size", "neg", "logical_not", "einsum", "index", "shift"))
"""Ops that are written as in PyTorch."""


class JnpWriter(CodeWriter):
    """Writes nodes in the words of ``jax.numpy``: ``module``; ``functional`` is ``jax``."""

    def _spell(self, node: Node) -> Text:
        if node in self.names or node.op in (*_SHARED, "input"):
            return super()._spell(node)
        handler = _HANDLERS.get(node.op)
        if handler is not None:
            return handler(self, node)
        infix = INFIX.fullmatch(get(node.op).code or "")
        if infix is not None:
            return self._infix(node, infix[1])
        return self._called(node)

    def _infix(self, node: Node, operator: str) -> Text:
        average = averaged(node, self.names)
        if average is None:
            return super()._infix(node, operator)
        inner, over, kept = average
        self.text(inner)
        return self._reduced("mean", inner, over, kept=kept)

    def _called(self, node: Node) -> Text:
        """A function of the operands."""
        name = _RENAMED.get(node.op, node.op if node.op in _ALIKE else "")
        if not name and (node.op not in _OF_JAX or not self.functional):
            raise NoSpelling(node.op)
        called = f"{self.module}.{name}" if name else f"{self.functional}.{_OF_JAX[node.op]}"
        return f"{called}({', '.join(self._operands(node))})", ATOM

    def _choice(self, node: Node) -> Text:
        return f"{self.module}.where({', '.join(self._operands(node))})", ATOM

    def _root(self, node: Node) -> Text:
        if self._is_number(node.args[0]):
            return super()._root(node)
        return f"{self.module}.sqrt({self._inside(node.args[0], 0)})", ATOM

    def _reduced(self, name: str, inner: Node, over: Sequence[int], *, kept: bool = False) -> Text:
        """A reduction of a node over some axes."""
        listed = [self._inside(inner, 0)]
        if kept or len(over) < inner.rank:
            listed.append(f"axis={self._axes(over, inner.rank)}")
        if kept:
            listed.append("keepdims=True")
        return f"{self.module}.{name}({', '.join(listed)})", ATOM

    def _reduction(self, node: Node) -> Text:
        return self._reduced(node.op, node.args[0], node.attributes["axes"])

    def _receiver(self, node: Node) -> str:
        if self._is_number(node):
            return f"{self.module}.asarray({self._inside(node, 0)})"
        return self._inside(node, ATOM)

    def _filled(self, node: Node, value: str) -> str:
        like = self._like(node.shape, node.dtype)
        if like:
            zeros = f"{self.module}.zeros_like({like})"
            return zeros if value == "0" else f"{self.module}.full_like({like}, {value})"
        found = self._of_dtype(node.dtype)
        said = f", {found}.dtype" if found else self._said(node.dtype)
        sizes = self._sizes(node)
        if value == "0":
            return f"{self.module}.zeros({sizes}{said})"
        return f"{self.module}.full({sizes}, {value}{said})"

    def _sizes(self, node: Node) -> str:
        """A shape as an argument."""
        text = self._shape(node.shape)
        return text if self._like(node.shape) else f"({text},)" if node.rank else "()"

    def _said(self, dtype: DType) -> str:
        return "" if dtype.is_float else f", {self.module}.{dtype}"

    def _expand(self, node: Node) -> Text:
        (inner,) = node.args
        if self._is_number(inner):
            return self._filled(node, self._inside(inner, 0)), ATOM
        return f"{self.module}.broadcast_to({self._inside(inner, 0)}, {self._sizes(node)})", ATOM

    def _reshape(self, node: Node) -> Text:
        (arg,) = node.args
        while arg.op == "reshape" and arg not in self.names:
            arg = arg.args[0]
        self.text(arg)
        if arg.shape == node.shape:
            return self._memo[arg]
        inserted = inserted_axes(arg.shape, node.shape)
        if inserted:
            summed = arg.op == "sum" and arg not in self.names
            if summed and tuple(arg.attributes["axes"]) == inserted:
                self.text(arg.args[0])
                return self._reduced("sum", arg.args[0], inserted, kept=True)
            inner = self._receiver(arg)
            return f"{self.module}.expand_dims({inner}, {self._axes(inserted, node.rank)})", ATOM
        return f"{self._receiver(arg)}.reshape({self._sizes(node)})", ATOM

    def _permute(self, node: Node) -> Text:
        order, inner = node.attributes["axes"], self._inside(node.args[0], ATOM)
        moved = [axis for axis, source in enumerate(order) if axis != source]
        if moved == [0, 1] and node.rank == 2:
            return self._turned_product(node.args[0]) or (f"{inner}.T", ATOM)
        if len(moved) == 2:
            inner = self._inside(node.args[0], 0)
            first, second = (self._axis(axis, node.rank) for axis in moved)
            return f"{self.module}.swapaxes({inner}, {first}, {second})", ATOM
        return f"{inner}.transpose({axes(order)})", ATOM

    def _side(self, arg: Node, turned: bool, level: int) -> str:
        text = super()._side(arg, turned, level)
        return f"{text.removesuffix('.mT')}.T" if arg.rank == 2 and text.endswith(".mT") else text

    def _cast(self, node: Node) -> Text:
        (inner,) = node.args
        if node.dtype.is_float and (inner.dtype.is_float or self._is_number(inner)):
            return self._memo[inner]
        base = self._of_dtype(node.dtype)
        dtype = f"{base}.dtype" if base else f"{self.module}.{node.dtype}"
        return f"{self._inside(inner, ATOM)}.astype({dtype})", ATOM

    def _concat(self, node: Node) -> Text:
        parts = ", ".join(self._inside(arg, 0) for arg in node.args)
        axis = self._axis(node.attributes["axis"], node.rank)
        return f"{self.module}.concatenate([{parts}], axis={axis})", ATOM

    def _slice(self, node: Node) -> Text:
        flipped = whole_flip(node)
        if flipped:
            inner = self._inside(node.args[0], 0)
            return f"{self.module}.flip({inner}, {self._axes(flipped, node.rank)})", ATOM
        return super()._slice(node)

    def _scan(self, node: Node) -> Text:
        axis = self._axis(node.attributes["axis"], node.rank)
        inner = self._inside(node.args[0], 0)
        if node.attributes["reverse"]:
            inner = f"{self.module}.flip({inner}, {axis})"
            scanned = f"{self.module}.{node.op}({inner}, axis={axis})"
            return f"{self.module}.flip({scanned}, {axis})", ATOM
        return f"{self.module}.{node.op}({inner}, axis={axis})", ATOM

    def _statements(self, node: Node, name: str) -> list[str]:
        if node.op == "unslice" and not whole_flip(node):
            ranges = self._ranges(node.attributes, node.args[0].shape, node.shape)
            part = self.text(node.args[0])
            return [f"{name} = {self._filled(node, '0')}.at[{ranges}].set({part})"]
        if node.op == "index_add":
            places = ", ".join(self.text(place) for place in node.args[1:])
            part = self.text(node.args[0])
            return [f"{name} = {self._filled(node, '0')}.at[{places}].add({part})"]
        if node.op == "unslice":
            raise NoSpelling(node.op)
        return super()._statements(node, name)


_HANDLERS: dict[str, Callable[[JnpWriter, Node], Text]] = {
    "expand": JnpWriter._expand, "reshape": JnpWriter._reshape, "permute": JnpWriter._permute,
    "cast": JnpWriter._cast, "concat": JnpWriter._concat, "slice": JnpWriter._slice,
    "cumsum": JnpWriter._scan, "cumprod": JnpWriter._scan, "where": JnpWriter._choice,
    "sqrt": JnpWriter._root, "iota": CodeWriter._iota,
    **dict.fromkeys(_REDUCED, JnpWriter._reduction),
}  # fmt: skip
