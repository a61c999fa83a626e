"""Stated relations between inputs, traced: ``(x * x).sum(-1) < 1`` as nodes of a case.

In: a ``Request``, the inputs of a case and what is known of its sizes.  Out: ``Relation`` records.

The text is tensor code in the names of the parameters, and means what the same code means in
forward: names, numbers, arithmetic, indexing, attributes such as ``x.T`` and ``x.shape``, methods
and functions.  It is traced by itself, so that it asks the questions about sizes that it has.

What is related has to be continuous: only then ``<`` stands for an open set, near each point of
which almost every point is in it, too.  So operations with jumps are refused, and roots of what
may be negative.
"""

from __future__ import annotations

import ast
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

from symgrad.errors import ShapeError, SpecError
from symgrad.frontend.function import class_location
from symgrad.frontend.questions import Questions
from symgrad.frontend.request import Request
from symgrad.frontend.session import Session, activate, as_symgrad_error
from symgrad.frontend.sizes import as_size
from symgrad.frontend.table import FUNCTIONS
from symgrad.frontend.tensor import SymbolicTensor, fresh
from symgrad.ir.assume import MODULES, RELATION, Assumption, pointed
from symgrad.ir.dim import Dim
from symgrad.ir.function import Relation
from symgrad.ir.graph import Node, ancestors

CONTINUOUS = frozenset(
    ("input", "constant", "size", "iota", "add", "sub", "mul", "div", "neg", "square", "abs", "exp",
     "exp2", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tanh", "sinh", "cosh",
     "sigmoid", "softplus", "log_sigmoid", "erf", "erfc", "atan", "asinh", "reciprocal", "rsqrt",
     "maximum", "minimum", "relu", "sum", "prod", "amax", "amin", "einsum", "expand", "reshape",
     "permute", "slice", "unslice", "concat", "diagonal", "cast", "shift", "hypot", "logaddexp",
     "silu", "max", "min", "cumsum", "cumprod", "index", "where")
)  # fmt: skip
"""Ops of reals that are continuous, and defined on open sets."""
ROOTS = ("sqrt", "root")
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.MatMult: operator.matmul,
}  # fmt: skip
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip


def relations(
    request: Request, inputs: Mapping[str, Node], session: Session
) -> tuple[Relation, ...]:  # fmt: skip
    """The relations that are stated of the inputs of one case, in the graph of its trace.

    Raises SpecError, ShapeError for sizes that a relation does not fit, and NeedsDecision.
    """
    stated = [one for one in request.assumptions if one.kind == RELATION]
    if not stated:
        return ()
    own = Session(session.facts, assumed=session.assumed)
    own.graph = session.graph
    own.questions = Questions({})
    own.namer.start(sys._getframe())
    tensors = {name: fresh(node, name) for name, node in inputs.items()}
    plain = {one.name: one.value for one in request.arguments if type(one.value) in (int, float)}
    with activate(own), closing(own):
        sizes = {
            name: as_size(Dim.size(name).substitute(session.facts.mapping))
            for name in request.sizes
        }  # fmt: skip
        found = tuple(_traced(one, tensors, {**sizes, **plain}) for one in stated)
    for one in stated:
        if own.questions.observed:
            raise _unreadable(one, f"it asks: {own.questions.observed[0].what}", request)
    return found


def _traced(
    one: Assumption, tensors: Mapping[str, SymbolicTensor], numbers: Mapping[str, Any]
) -> Relation:  # fmt: skip
    """``numbers``: the sizes and the plain numbers that it may name."""
    assert one.sides is not None
    left, symbol, right = one.sides
    readers = [_Reader(one, side, tensors, numbers) for side in (left, right)]
    try:
        first, second = (reader.value() for reader in readers)
        difference = second - first if symbol in ("<", "<=") else first - second
    except SpecError:
        raise
    except ShapeError as error:
        error.what = f"the relation {one.text!r} cannot be evaluated: {error.what}"
        if "//" in error.what:
            error.hint = "write 2*m in the shape spec for a size that is even"
        raise
    except Exception as error:
        found = as_symgrad_error(error, "it")
        raise SpecError(
            f"the relation {one.text!r} cannot be evaluated: {found.what}", hint=_HINT
        ) from error
    if not isinstance(difference, SymbolicTensor):
        raise SpecError(
            f"the relation {one.text!r} is about no element of an input", hint=_ABOUT_SIZES
        )
    node = difference.node
    _check(one, node)
    kind = {"<": ">", "<=": ">="}.get(symbol, symbol)
    if symbol != "==":
        return Relation(one.text, kind, node, f"{left} == {right}")
    name, solved = _solved(one, (first, second), readers, node)
    return Relation(one.text, kind, node, "", name, solved)


def _solved(
    one: Assumption, values: tuple[Any, Any], readers: Sequence[_Reader], node: Node
) -> tuple[str, tuple[Node, ...]]:  # fmt: skip
    """An input of an equality, and the ways to change it so that the equality holds.

    Each leaves alone what meets the equality: that is seen here.  That what it makes meets the
    equality is proved of it.  Raises SpecError.
    """
    for place, reader in enumerate(readers):
        tensors = reader.tensors
        tree = ast.parse(reader.text, mode="eval").body
        names = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
        for name in sorted(names & tensors.keys()):
            ways = _ways(tensors[name], tree, values[place], values[1 - place], node, reader)
            if ways:
                return name, tuple(way.node for way in ways)
    raise SpecError(
        f"the equality {one.text!r} cannot be solved for one of its inputs",
        hint="write x == ..., x[...] == ..., x.sum(dim) == ... or x.mean(dim) == ...",
    )


def _ways(
    tensor: SymbolicTensor, tree: ast.expr, side: Any, other: Any, node: Node, reader: _Reader
) -> list[SymbolicTensor]:  # fmt: skip
    """The ways to change a tensor so that a side of an equality is the other one."""
    found: list[SymbolicTensor] = []
    if isinstance(tree, ast.Name) and side is tensor and node.shape == tensor.node.shape:
        value = tensor * 0 + other
        found = [value, (tensor + value) / 2]
    elif isinstance(tree, ast.Subscript) and isinstance(tree.value, ast.Name):
        key = reader.key(tree)
        if key is not None and node.shape == side.node.shape:
            changed = tensor.clone()
            changed[key] = side * 0 + other
            found = [changed]
    elif isinstance(tree, ast.Call) and isinstance(side, SymbolicTensor):
        found = _summed(tensor, side.node, other, node)
    return [way for way in found if way.node.shape == tensor.node.shape]


def _summed(tensor: SymbolicTensor, side: Node, other: Any, node: Node) -> list[SymbolicTensor]:
    """The last element along an axis, all elements shifted, or all multiplied: ``sum == other``."""
    while side.op in ("reshape", "div") and (side.op == "reshape" or side.args[0].op == "sum"):
        side = side.args[0]
    if side.op != "sum" or side.args[0] is not tensor.node or node.rank not in (
        side.rank, tensor.node.rank
    ):  # fmt: skip
        return []
    axes = tuple(side.attributes["axes"])
    mean = tensor.mean(axes, keepdim=True)
    total = tensor.sum(axes, keepdim=True)
    wanted = other
    if isinstance(other, SymbolicTensor) and other.node.rank == side.rank != tensor.node.rank:
        for axis in axes:
            wanted = wanted.unsqueeze(axis)
    is_mean = _is_mean(node, side)
    shift = wanted - (mean if is_mean else total)
    last = tensor.clone()
    count: Any = 1
    for axis in axes:
        count = count * tensor.shape[axis]
    ends = tuple(slice(-1, None) if axis in axes else slice(None) for axis in range(tensor.ndim))
    last[ends] = last[ends] + (shift * count if is_mean else shift)
    moved = tensor + (shift if is_mean else shift / count)
    scaled = tensor * (wanted / (mean if is_mean else total))
    return [moved, last, scaled]


def _is_mean(node: Node, side: Node) -> bool:
    """Is a sum divided by a number of elements before it is compared?"""
    return any(part.op == "div" and part.args[0] is side for part in ancestors([node]))


_HINT = (
    "write tensor code in the names of the parameters of forward, as in (x * x).sum(-1) < 1, with"
    " operations that are continuous"
)
_ABOUT_SIZES = "write conditions on sizes as shapes: a number in the shape spec, or the same name"


def _check(one: Assumption, node: Node) -> None:
    """Is it a continuous expression of reals?  Raises SpecError."""
    if not node.dtype.is_float:
        raise SpecError(
            f"the relation {one.text!r} compares {node.dtype} values",
            hint="relations are between reals; integers have index n, unique",
        )
    for part in ancestors([node]):
        known = part.op in CONTINUOUS or part.op in ROOTS or _is_power(part)
        if part.dtype.is_float and not known:
            raise SpecError(
                f"the relation {one.text!r} uses {part.op}, which is not known to be continuous",
                hint=_HINT,
            )
        if not part.dtype.is_float and any(arg.dtype.is_float for arg in part.args):
            raise SpecError(
                f"the relation {one.text!r} turns reals into {part.dtype} by {part.op}", hint=_HINT
            )
        if part.op in ROOTS and not _not_negative(part.args[0]):
            raise SpecError(
                f"the relation {one.text!r} takes a root of what may be negative",
                hint="write it without the root, or take roots of sums of squares",
            )


def _is_power(node: Node) -> bool:
    if node.op != "pow":
        return False
    exponent = node.args[1]
    while exponent.op in ("expand", "cast", "reshape"):
        exponent = exponent.args[0]
    return exponent.op == "constant" and float(exponent.attributes["value"].value).is_integer()


def _not_negative(node: Node) -> bool:
    """Is it a sum of squares, by how it is written?"""
    if node.op in ("sum", "expand", "reshape", "permute", "slice", "amax", "amin", "cast"):
        return _not_negative(node.args[0])
    if node.op in ("square", "abs", "relu", "exp"):
        return True
    if node.op in ("mul", "einsum") and node.args[0] is node.args[1]:
        if node.op == "mul":
            return True
        operands = node.attributes["spec"].split("->")[0].split(",")
        return bool(operands[0] == operands[1])
    if node.op in ("mul", "add", "div", "maximum"):
        return all(map(_not_negative, node.args))
    if node.op == "pow":
        exponent = node.args[1]
        while exponent.op in ("expand", "cast", "reshape"):
            exponent = exponent.args[0]
        return _is_power(node) and exponent.attributes["value"].value % 2 == 0
    return node.op == "constant" and bool(node.attributes["value"].value >= 0)


class _Reader:
    """One side of a relation, evaluated on traced tensors."""

    def __init__(
        self, stated: Assumption, text: str, tensors: Mapping[str, SymbolicTensor],
        numbers: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.stated, self.text, self.tensors, self.numbers = stated, text, tensors, numbers

    def key(self, tree: ast.Subscript) -> Any:
        """The key of a subscript of numbers; None where it is none."""
        try:
            key = self._of(tree.slice)
        except SpecError:
            return None
        parts = key if isinstance(key, tuple) else (key,)
        return None if any(isinstance(one, SymbolicTensor) for one in parts) else key

    def value(self) -> Any:
        """The tensor, or the number."""
        return self._of(ast.parse(self.text, mode="eval").body)

    def _of(self, part: ast.expr) -> Any:
        read = getattr(self, f"_{type(part).__name__.lower()}", None)
        if read is None:
            raise self._refused(part, "is nothing that a relation is made of")
        return read(part)

    def _refused(self, part: ast.expr, why: str) -> SpecError:
        source = ast.get_source_segment(self.text, part) or ast.unparse(part)
        return SpecError(
            f"in the relation {self.stated.text!r}, {source!r} {why}", hint=_HINT
        )  # fmt: skip

    def _constant(self, part: ast.Constant) -> Any:
        if (
            part.value is None
            or part.value is ...
            or isinstance(part.value, (bool, int, float, str))
        ):
            return part.value
        raise self._refused(part, "is no number")

    def _name(self, part: ast.Name) -> Any:
        if part.id in self.tensors:
            return self.tensors[part.id]
        if part.id in self.numbers:
            return self.numbers[part.id]
        shown = pointed(self.stated.text, part.id)
        raise SpecError(
            f"the relation {self.stated.text!r} names {part.id!r}, which is no tensor input{shown}",
            hint=f"the inputs are {', '.join(self.tensors)}",
        )

    def _binop(self, part: ast.BinOp) -> Any:
        return (
            _BINARY[type(part.op)](self._of(part.left), self._of(part.right))
            if (type(part.op) in _BINARY)
            else self._none(part)
        )

    def _unaryop(self, part: ast.UnaryOp) -> Any:
        known = _UNARY.get(type(part.op))
        return known(self._of(part.operand)) if known else self._none(part)

    def _none(self, part: ast.expr) -> Any:
        raise self._refused(part, "is nothing that a relation is made of")

    def _tuple(self, part: ast.Tuple) -> Any:
        return tuple(map(self._of, part.elts))

    def _list(self, part: ast.List) -> Any:
        return list(map(self._of, part.elts))

    def _slice(self, part: ast.Slice) -> Any:
        ends = (part.lower, part.upper, part.step)
        return slice(*(None if end is None else self._of(end) for end in ends))

    def _subscript(self, part: ast.Subscript) -> Any:
        return self._of(part.value)[self._of(part.slice)]

    def _attribute(self, part: ast.Attribute) -> Any:
        value = self._of(part.value)
        if part.attr.startswith("_") or part.attr.endswith("_"):
            raise self._refused(part, "is no value")
        return getattr(value, part.attr)

    def _call(self, part: ast.Call) -> Any:
        function = self._function(part.func)
        if any(isinstance(one, ast.Starred) for one in part.args):
            raise self._refused(part, "has a star")
        named = {one.arg: self._of(one.value) for one in part.keywords if one.arg}
        return function(*map(self._of, part.args), **named)

    def _function(self, part: ast.expr) -> Any:
        module = isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name)
        name = part.id if isinstance(part, ast.Name) else ""
        if isinstance(part, ast.Attribute) and module:
            assert isinstance(part.value, ast.Name)
            name = (
                part.attr if part.value.id in MODULES and part.value.id not in self.tensors else ""
            )
        if not name:
            return self._of(part)
        if name not in FUNCTIONS or name.endswith("_"):
            raise self._refused(part, "is no function that symgrad has")
        return FUNCTIONS[name]


def _unreadable(one: Assumption, why: str, request: Request) -> SpecError:
    return SpecError(
        f"the relation {one.text!r} cannot be taken as a precondition: {why}",
        location=class_location(request.cls), hint=_HINT,
    )  # fmt: skip
