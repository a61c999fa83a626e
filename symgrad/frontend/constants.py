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


def known_values(node: Node, *, rounded: bool = False) -> Array | None:
    """The values of a node; None where they are not known.

    They have the same bits wherever the program runs, and in floats of all widths, unless
    ``rounded`` ones do as well.
    """
    order = ancestors([node])
    if len(order) > _MOST_NODES or not all(map(_is_small, order)):
        return None
    found = _evaluated(order, wide=False, rounded=rounded)
    if found is None or rounded:
        return found
    wide = _evaluated(order, wide=True, rounded=rounded)
    return found if wide is not None and np.array_equal(found, wide) else None


def _evaluated(order: Sequence[Node], *, wide: bool, rounded: bool) -> Array | None:
    """The value of the last node.  ``wide``: all floats are float64."""
    values: dict[Node, Array] = {}
    for node in order:
        op, dtype = get(node.op), "float64" if wide and node.dtype.is_float else str(node.dtype)
        if node.op in _UNKNOWN or op.kind not in _KINDS:
            return None
        with np.errstate(all="ignore"):
            raw = op.numpy(*(values[arg] for arg in node.args), size=_number, **node.attributes)
        found = np.asarray(raw, dtype=dtype)
        if not (rounded or _is_exact(node, values, found)):
            return None
        values[node] = found
    return values[order[-1]]


def known_number(node: Node, *, rounded: bool = False) -> Any:
    """The value of a node of one element; None where it is not known."""
    if any(size != 1 for size in node.shape):
        return None
    found = known_values(node, rounded=rounded)
    return None if found is None else found.item()


def is_computed_of_sizes(node: Node) -> bool:
    """Would its values be known if its sizes were?"""
    return all(one.op not in _UNKNOWN for one in ancestors([node]))


def _is_small(node: Node) -> bool:
    sizes = [size.constant for size in node.shape]
    known = [size for size in sizes if size is not None]
    return len(known) == len(sizes) and math.prod(known) <= MOST_CONSTANTS


def _is_exact(node: Node, values: Mapping[Node, Array], found: Array) -> bool:
    """Is it rounded correctly, in whatever order it is computed?"""
    kind = get(node.op).kind
    if not node.dtype.is_float or kind not in ("elementwise", "reduction"):
        return True
    if kind == "elementwise":
        return node.op in _CORRECT
    if node.op in ("prod", "cumprod"):
        return False
    if node.op in ("sum", "cumsum"):
        return _adds_exactly(values[node.args[0]], found.dtype)
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
_CORRECT = frozenset(
    ("abs", "add", "cast", "ceil", "copysign", "div", "floor", "floordiv", "maximum", "minimum",
     "mul", "neg", "reciprocal", "relu", "round", "sign", "sqrt", "square", "sub", "trunc", "where")
)  # fmt: skip
"""Elementwise ops of floats that round correctly."""
