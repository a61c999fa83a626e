"""The table of simplifications: an op's name -> what a node of it can be replaced by.

In: a node.  Out: a simpler node of the same graph, or None.

Every rule gives the same bits for every float, NaN (but for its sign and payload), infinities and
signed zeros included, on which each was tested.  So ``x - 0``, ``x + (-0)``, ``x * 1`` and
``x / 4 = x * 0.25`` are rules, but ``x + 0`` (wrong for -0), ``x * 0`` (NaN), ``x - x`` (NaN) and
``x / 3`` are not.  The one exception is ``pow`` with the constant exponents that torch itself
replaces: within a rounding or two, and at ``pow(x, 0.5)`` NaN for x = -infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.ir.dtype import bool_, promote
from symgrad.ir.graph import Node, Scalar
from symgrad.ops.record import apply, get

Rule = Callable[[Node], "Node | None"]


def number(node: Node) -> Scalar | None:
    """The value of a constant, broadcast or not; None for other nodes."""
    while node.op == "expand":
        (node,) = node.args
    value: Scalar | None = node.attributes["value"].value if node.op == "constant" else None
    return value


def _is(node: Node, wanted: float) -> bool:
    """Is it this very constant?  0.0 and -0.0 are two."""
    value = number(node)
    if value is None or node.dtype == bool_ or value != wanted:
        return False
    return math.copysign(1, value) == math.copysign(1, wanted) or not node.dtype.is_float


def build(op: str, *args: Node, **attrs: Any) -> Node:
    """A new node, as simple as the rules make it."""
    return simplest(apply(op, *args, **attrs))


def simplest(node: Node) -> Node:
    """What is left of a node when no rule applies any more; each makes it smaller."""
    while (found := simpler(node)) is not None:
        node = found
    return node


# -- arithmetic


def _add(node: Node) -> Node | None:
    x, y = node.args
    for left, right in ((x, y), (y, x)):
        if _is(right, -0.0) or (not node.dtype.is_float and _is(right, 0)):
            return left
        if right.op == "neg":
            return build("sub", left, right.args[0])
    return None


def _sub(node: Node) -> Node | None:
    x, y = node.args
    if _is(y, 0.0):
        return x
    return build("add", x, y.args[0]) if y.op == "neg" else None


def _mul(node: Node) -> Node | None:
    x, y = node.args
    if x is y:
        return build("square", x)
    for left, right in ((x, y), (y, x)):
        if _is(right, 1.0):
            return left
        if _is(right, -1.0):
            return build("neg", left)
    if x.op == y.op == "neg":
        return build("mul", x.args[0], y.args[0])
    return None


def _div(node: Node) -> Node | None:
    x, y = node.args
    if _is(x, 1.0):
        return build("reciprocal", y)
    value = number(y)
    if value is None:
        return None
    if value == 1:
        return x
    exact = bool(value) and math.isfinite(value) and math.frexp(value)[0] in (0.5, -0.5)
    if exact and abs(math.frexp(value)[1]) < 100:  # a power of two: so is its inverse
        return node.graph.binary("mul", x, 1.0 / value)
    return None


def _neg(node: Node) -> Node | None:
    (x,) = node.args
    return x.args[0] if x.op == "neg" else None


def _even(node: Node) -> Node | None:
    """``square`` and ``abs`` do not see a sign."""
    (x,) = node.args
    return build(node.op, x.args[0]) if x.op in ("neg", "abs") else None


def _idempotent(node: Node) -> Node | None:
    (x,) = node.args
    return x if x.op == node.op else None


def _same_operands(node: Node) -> Node | None:
    x, y = node.args
    return x if x is y else None


_POWERS: dict[float, Callable[[Node], Node]] = {
    1.0: lambda x: x,
    2.0: lambda x: build("square", x),
    3.0: lambda x: build("mul", build("square", x), x),
    -1.0: lambda x: build("reciprocal", x),
    -2.0: lambda x: build("reciprocal", build("square", x)),
    0.5: lambda x: build("sqrt", x),
    -0.5: lambda x: build("rsqrt", x),
    0.0: lambda x: x.graph.lift(1.0, x),
}


def _pow(node: Node) -> Node | None:
    x, y = node.args
    value = number(y)
    power = None if value is None else _POWERS.get(float(value))
    return power(x) if power else None


# -- logic


def _logical_not(node: Node) -> Node | None:
    (x,) = node.args
    return x.args[0] if x.op == "logical_not" else None


def _connective(neutral: bool) -> Rule:
    """``and``, ``or``: the neutral constant goes, the other one wins."""

    def rule(node: Node) -> Node | None:
        x, y = node.args
        for left, right in ((x, y), (y, x)):
            value = number(right)
            if value is not None:
                return left if bool(value) == neutral else right
        return x if x is y else None

    return rule


def _where(node: Node) -> Node | None:
    condition, chosen, other = node.args
    value = number(condition)
    if value is not None:
        return chosen if value else other
    if chosen is other:
        return chosen
    if condition.op == "logical_not":
        return build("where", condition.args[0], other, chosen)
    return None


def _cast(node: Node) -> Node | None:
    """Casts that change nothing, and casts of casts that lost nothing."""
    (x,) = node.args
    if x.dtype == node.dtype:
        return x
    if x.op != "cast":
        return None
    (origin,) = x.args
    widened = origin.dtype == bool_ or (
        origin.dtype.category == x.dtype.category and promote(origin.dtype, x.dtype) == x.dtype
    )
    return build("cast", origin, dtype=node.dtype) if widened else None


# -- movement


def _scalar_below(node: Node) -> Node | None:
    """The rank-0 node that an argument broadcasts."""
    (x,) = node.args
    while x.op in ("expand", "reshape") and x.type.size != 1:
        (x,) = x.args
    return x if x.rank == 0 else None


def _movement(same: Callable[[Node], bool]) -> Rule:
    """Moving what is the same everywhere is broadcasting; moving nothing is nothing."""

    def rule(node: Node) -> Node | None:
        (x,) = node.args
        if x.shape == node.shape and same(node):
            return x
        scalar = _scalar_below(node) if x.op == "expand" else None
        if scalar is not None:
            return node.graph.expand(scalar, node.shape)
        return None

    return rule


def _first(*rules: Rule) -> Rule:
    def rule(node: Node) -> Node | None:
        return next((found for rule in rules if (found := rule(node)) is not None), None)

    return rule


def _expand_twice(node: Node) -> Node | None:
    (x,) = node.args
    return node.graph.expand(x.args[0], node.shape) if x.op == "expand" else None


def _reshape_twice(node: Node) -> Node | None:
    (x,) = node.args
    return build("reshape", x.args[0], shape=node.shape) if x.op == "reshape" else None


def _permute_twice(node: Node) -> Node | None:
    (x,) = node.args
    if x.op != "permute":
        return None
    inner = x.attributes["axes"]
    return build("permute", x.args[0], axes=tuple(inner[a] for a in node.attributes["axes"]))


def _in_order(node: Node) -> bool:
    axes = node.attributes["axes"]
    return bool(axes == tuple(range(len(axes))))


def _from_the_start(node: Node) -> bool:
    attrs = node.attributes
    return all(start == 0 for start in attrs["starts"]) and set(attrs["steps"]) <= {1}


def _unslice(node: Node) -> Node | None:
    """A part that is the whole; zeros among zeros."""
    (x,) = node.args
    if x.shape == node.shape and _from_the_start(node):
        return x
    value = number(x)
    if value is not None and (value is False or _is(x, 0.0)):
        return node.graph.lift(value, node)
    return None


def _concat(node: Node) -> Node | None:
    return node.args[0] if len(node.args) == 1 else None


def _over_ones(node: Node) -> Node | None:
    """Reducing an axis of size 1 is dropping it."""
    (x,) = node.args
    axes = node.attributes["axes"]
    rest = tuple(axis for axis in axes if x.shape[axis] != 1)
    if len(rest) == len(axes):
        return None
    kept = tuple(size for axis, size in enumerate(x.shape) if axis not in axes or axis in rest)
    smaller = build("reshape", x, shape=kept)
    dropped = [axis for axis in axes if axis not in rest]
    moved = tuple(axis - sum(gone < axis for gone in dropped) for axis in rest)
    return build(node.op, smaller, axes=moved) if moved else smaller


# -- numbers


def _elementwise_on_scalars(node: Node) -> Node | None:
    """What is applied to broadcast numbers is applied to the numbers, and then broadcast."""
    if node.rank == 0:
        return _fold(node)
    bases = []
    for arg in node.args:
        while arg.op == "expand":
            (arg,) = arg.args
        if arg.rank or arg.op not in ("constant", "size"):
            return None
        bases.append(arg)
    return node.graph.expand(build(node.op, *bases, **node.attributes), node.shape)


def _fold(node: Node) -> Node | None:
    """An op on constants is a constant: the value that NumPy gives it, in its dtype."""
    if not node.args or any(arg.op != "constant" for arg in node.args):
        return None
    arrays = [np.asarray(number(arg), str(arg.dtype)) for arg in node.args]
    value = get(node.op).numpy(*arrays, size=None, **node.attributes)
    return node.graph.constant(value.item(), node.dtype)


RULES: dict[str, Rule] = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "neg": _neg, "square": _even,
    "abs": _first(_even, _idempotent), "relu": _idempotent, "sign": _idempotent,
    "floor": _idempotent, "ceil": _idempotent, "trunc": _idempotent, "round": _idempotent,
    "maximum": _same_operands, "minimum": _same_operands, "pow": _pow,
    "logical_not": _logical_not, "logical_and": _connective(True),
    "logical_or": _connective(False), "where": _where, "cast": _cast,
    "shift": lambda node: node.args[0],
    "expand": _first(_expand_twice, _movement(lambda node: True)),
    "reshape": _first(_movement(lambda node: True), _reshape_twice),
    "permute": _first(_movement(_in_order), _permute_twice),
    "slice": _movement(_from_the_start), "unslice": _unslice, "concat": _concat,
    "sum": _over_ones, "prod": _over_ones, "amax": _over_ones, "amin": _over_ones,
    "max": _over_ones, "min": _over_ones, "any": _over_ones, "all": _over_ones,
}  # fmt: skip
"""The rules by the op they apply to; elementwise ops fold constants besides."""


def simpler(node: Node) -> Node | None:
    """One step of simplification, or None."""
    rule = RULES.get(node.op)
    found = rule(node) if rule else None
    if found is None and get(node.op).kind == "elementwise":
        found = _elementwise_on_scalars(node)
    return found
