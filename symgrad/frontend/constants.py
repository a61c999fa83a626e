"""What is computed of numbers alone has a value while a program is traced.

In: a node.  Out: its values, if it depends on no input and on no symbolic size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.budgets import MOST_CONSTANTS
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.record import get

Array = np.ndarray[Any, Any]
_MOST_NODES = 512
"""Nodes that are evaluated for one question."""


def known_values(node: Node) -> Array | None:
    """The values of a node; None where they are not known.

    They have the same bits wherever the program runs, and in floats of all widths.
    """
    order = ancestors([node])
    both = _evaluated(order)
    if both is None or not all(_is_exact(one, values) for values in both for one in order):
        return None
    narrow, wide = (values[node] for values in both)
    return narrow if np.array_equal(narrow, wide) else None


def known_number(node: Node) -> Any:
    """The value of a node of one element; None where it is not known."""
    if any(size != 1 for size in node.shape):
        return None
    found = known_values(node)
    return None if found is None else found.item()


def known_truth(node: Node) -> bool | None:
    """The truth value of one element; None where it is not known, or where rounding decides it."""
    order = ancestors([node])
    both = _evaluated(order) if all(size == 1 for size in node.shape) else None
    if both is None:
        return None
    narrow, wide = both
    rounded: set[Node] = set()
    for one in order:
        read = not rounded.isdisjoint(one.args)
        exact = all(_is_exact(one, values) for values in both)
        same = np.array_equal(narrow[one], wide[one], equal_nan=one.dtype.is_float)
        if one.dtype.is_float and one.op not in _STEPS:
            if read or not exact or not same:
                rounded.add(one)
        elif read and not (one.op in _COMPARISONS and _are_apart(*(wide[a] for a in one.args))):
            return None
    return None if node in rounded else bool(wide[node])


def _are_apart(left: Array, right: Array) -> bool:
    return bool((np.abs(left - right) > _FAR * (np.abs(left) + np.abs(right))).all())


def _evaluated(order: Sequence[Node]) -> tuple[dict[Node, Array], dict[Node, Array]] | None:
    """The values of nodes as they are, and with all floats in float64; None for what is unknown."""
    if len(order) > _MOST_NODES or not all(map(_is_small, order)):
        return None
    if any(node.op in _UNKNOWN or get(node.op).kind not in _KINDS for node in order):
        return None
    narrow, wide = dict[Node, Array](), dict[Node, Array]()
    for values in (narrow, wide):
        for node in order:
            is_wide = values is wide and node.dtype.is_float
            with np.errstate(all="ignore"):
                found = get(node.op).numpy(
                    *(values[arg] for arg in node.args), size=_number, **node.attributes
                )
            values[node] = np.asarray(found, dtype="float64" if is_wide else node.dtype.of_numpy)
    return narrow, wide


def is_computed_of_sizes(node: Node) -> bool:
    """Would its values be known if its sizes were?"""
    return all(one.op not in _UNKNOWN for one in ancestors([node]))


def _is_small(node: Node) -> bool:
    sizes = [size.constant for size in node.shape]
    known = [size for size in sizes if size is not None]
    return len(known) == len(sizes) and math.prod(known) <= MOST_CONSTANTS


def _is_exact(node: Node, values: Mapping[Node, Array]) -> bool:
    """Is it rounded correctly, in whatever order it is computed?"""
    kind = get(node.op).kind
    if not node.dtype.is_float or kind not in ("elementwise", "reduction"):
        return True
    if kind == "elementwise":
        return node.op in _CORRECT
    if node.op in ("prod", "cumprod"):
        return False
    if node.op in ("sum", "cumsum"):
        return _adds_exactly(values[node.args[0]], values[node].dtype)
    return True


def _adds_exactly(summands: Array, dtype: Any) -> bool:
    """Is each partial sum a float, in whatever order?  They are multiples of one power of 2."""
    numbers = [float(one) for one in summands.ravel()]
    if not all(map(math.isfinite, numbers)):
        return False
    unit = max((one.as_integer_ratio()[1] for one in numbers), default=1)
    return math.fsum(map(abs, numbers)) * unit <= 1 / float(np.finfo(dtype).eps)


def _number(size: Any) -> int:
    found = Dim.of(size).constant
    assert found is not None
    return found


_UNKNOWN = frozenset(("input", "draw", "size", "unwritten"))
"""Ops whose values nobody knows."""
_KINDS = frozenset(("source", "elementwise", "movement", "reduction", "marker"))
_STEPS = ("floor", "ceil", "trunc", "round", "sign", "floordiv")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_FAR = 1e-3
"""Numbers that are so far apart, relative to their size, are so in any arithmetic."""
_CORRECT = frozenset(
    ("abs", "add", "cast", "ceil", "copysign", "div", "floor", "floordiv", "maximum", "minimum",
     "mul", "neg", "reciprocal", "relu", "round", "sign", "sqrt", "square", "sub", "trunc", "where")
)  # fmt: skip
"""Elementwise ops of floats that round correctly."""
