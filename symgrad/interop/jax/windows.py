"""Reductions of windows (pooling), as sums or greatest values of slices.

In: an ``Equation``.  Out: the node of its result.  Fills ``RULES``.
"""

from __future__ import annotations

import itertools
import math
from functools import reduce

from symgrad.budgets import MOST_STEPS
from symgrad.interop.jax.equations import Equation, rule
from symgrad.interop.jax.primitives import part
from symgrad.interop.jax.sizes import sizes
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import bool_
from symgrad.ir.graph import Node

_WINDOWS = {"reduce_window_sum": ("add", 0.0), "reduce_window_max": ("maximum", -math.inf),
            "reduce_window_min": ("minimum", math.inf)}  # fmt: skip
"""What each puts values together with, and what stands where there is none."""


@rule(*_WINDOWS)
def _window(equation: Equation) -> Node:
    session, params = equation.session, equation.params
    op, outside = _WINDOWS[equation.name]
    if any(step != 1 for step in params["base_dilation"]):
        raise equation.refused("with elements between those of the array")
    if not equation.dtype.is_float:
        raise equation.refused(f"for {equation.dtype}")
    node = _padded(equation, equation.args[0], outside)
    window = [sizes().ours(size).constant for size in params["window_dimensions"]]
    known = [size for size in window if size is not None]
    if len(known) < len(window) or not 0 < math.prod(known) <= MOST_STEPS:
        raise equation.refused(f"with windows of a symbolic size, or of more than {MOST_STEPS}")
    pieces = []
    for place in itertools.product(*map(range, known)):
        gaps = zip(place, params["window_dilation"], strict=True)
        starts = [Dim.of(at * gap) for at, gap in gaps]
        steps = tuple(params["window_strides"])
        pieces.append(part(session, node, starts, equation.shape, steps))
    return reduce(lambda one, other: session.apply(op, one, other), pieces)


def _padded(equation: Equation, node: Node, outside: float) -> Node:
    """The array with what stands for no value around it."""
    session, known = equation.session, sizes()
    edges = [[known.ours(side).constant for side in pair] for pair in equation.params["padding"]]
    if any(side is None or side < 0 for pair in edges for side in pair):
        raise equation.refused("padded by symbolic or negative sizes")
    numbers = [(low or 0, high or 0) for low, high in edges]
    if not any(map(any, numbers)):
        return node
    shape = tuple(size + low + high for size, (low, high) in zip(node.shape, numbers, strict=True))
    how = {"shape": shape, "starts": tuple(Dim.of(low) for low, _ in numbers),
           "steps": (1,) * node.rank}  # fmt: skip
    wide = session.apply("unslice", node, **how)
    if not outside:
        return wide
    ones = session.expand(session.constant(1.0, node.dtype), node.shape)
    inside = session.cast(session.apply("unslice", ones, **how), bool_)
    around = session.expand(session.constant(outside, node.dtype), shape)
    return session.apply("where", inside, wide, around)
