"""Reductions over axes, which disappear.

In: nothing.  Out: records.  Imports: ``symgrad.ops.record``, ``symgrad.ir`` and numpy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symgrad.ir.dim import Dim
from symgrad.ir.graph import Node
from symgrad.ops.movement import reshape
from symgrad.ops.record import reduction


def keep_axes(reduced: Node, node: Node) -> Node:
    """A reduction's result with its axes put back as size 1, then broadcast to the argument."""
    (arg,) = node.args
    axes = node.attributes["axes"]
    kept = tuple(Dim.of(1) if axis in axes else size for axis, size in enumerate(arg.shape))
    return node.graph.expand(reshape(reduced, kept), arg.shape)


def _sum_vjp(node: Node, g: Node) -> Sequence[Node]:
    return (keep_axes(g, node),)


reduction("sum", numpy=np.sum, reduce="sum", vjp=_sum_vjp, linear=True)
