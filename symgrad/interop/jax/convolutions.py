"""Convolutions of JAX.

In: an ``Equation``.  Out: the node of its result.  Fills ``RULES``.
"""

from __future__ import annotations

from symgrad.errors import ShapeError, UnsupportedOpError
from symgrad.frontend.views import permute
from symgrad.frontend.windows import Window, convolved, padded
from symgrad.interop.jax.equations import Equation, rule
from symgrad.interop.jax.sizes import sizes
from symgrad.ir.graph import Node


@rule("conv_general_dilated")
def _convolution(equation: Equation) -> Node:
    how, session, params = equation.params["dimension_numbers"], equation.session, equation.params
    left = permute(session, equation.args[0], tuple(how.lhs_spec))
    kernel = permute(session, equation.args[1], tuple(how.rhs_spec))
    if params["batch_group_count"] != 1:
        raise equation.refused("with groups of batches")
    edges = [tuple(sizes().ours(side).constant for side in pair) for pair in params["padding"]]
    if any(side is None for pair in edges for side in pair):
        raise equation.refused("padded by symbolic sizes")
    left = padded(session, left, edges, between=params["lhs_dilation"])  # type: ignore[arg-type]
    window = Window(kernel.shape[2:], params["window_strides"], params["rhs_dilation"])
    count = tuple(equation.shape[axis] for axis in how.out_spec[2:])
    groups = sizes().ours(params["feature_group_count"])
    try:
        found = convolved(session, left, kernel, window, count, groups)
    except (ShapeError, UnsupportedOpError) as error:
        raise equation.refused(f"where {error.what}") from error
    order = tuple(how.out_spec.index(axis) for axis in range(found.rank))
    return session.cast(permute(session, found, order), equation.dtype)
