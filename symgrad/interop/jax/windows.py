"""Reductions of windows (pooling), as sums or greatest values of slices.

In: an ``Equation``.  Out: the node of its result.  Fills ``RULES``.
"""

from __future__ import annotations

import math

from symgrad.errors import UnsupportedOpError
from symgrad.frontend.windows import Window, padded, pooled
from symgrad.interop.jax.equations import Equation, rule
from symgrad.interop.jax.sizes import sizes
from symgrad.ir.graph import Node

_WINDOWS = {"reduce_window_sum": ("add", 0.0), "reduce_window_max": ("maximum", -math.inf),
            "reduce_window_min": ("minimum", math.inf)}  # fmt: skip
"""What each puts values together with, and what stands where there is none."""


@rule(*_WINDOWS)
def _window(equation: Equation) -> Node:
    session, params, known = equation.session, equation.params, sizes()
    op, outside = _WINDOWS[equation.name]
    if any(step != 1 for step in params["base_dilation"]):
        raise equation.refused("with elements between those of the array")
    if not equation.dtype.is_float:
        raise equation.refused(f"for {equation.dtype}")
    edges = [
        (known.ours(low).constant, known.ours(high).constant) for low, high in params["padding"]
    ]
    if any(side is None or side < 0 for pair in edges for side in pair):
        raise equation.refused("padded by symbolic or negative sizes")
    node = padded(session, equation.args[0], edges, outside)  # type: ignore[arg-type]
    own = tuple(map(known.ours, params["window_dimensions"]))
    window = Window(own, tuple(params["window_strides"]), tuple(params["window_dilation"]))
    try:
        return pooled(session, op, node, window, equation.shape)
    except UnsupportedOpError as error:
        raise equation.refused(f"where {error.what}") from error
