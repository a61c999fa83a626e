"""Convolutions, as sums of products of slices.

In: an ``Equation``.  Out: the node of its result.  Fills ``RULES``.

A kernel of a known size is gone through place by place; of a kernel of symbolic size, the output is
gone through, where that has a known size (the gradient by a kernel, say).
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Sequence
from functools import reduce
from typing import Any

from symgrad.budgets import MOST_STEPS
from symgrad.frontend.views import concatenate, permute
from symgrad.interop.jax.equations import Equation, rule
from symgrad.interop.jax.primitives import part
from symgrad.interop.jax.sizes import sizes
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Node


@rule("conv_general_dilated")
def _convolution(equation: Equation) -> Node:
    how, session = equation.params["dimension_numbers"], equation.session
    left = permute(session, equation.args[0], tuple(how.lhs_spec))
    kernel = permute(session, equation.args[1], tuple(how.rhs_spec))
    groups = sizes().ours(equation.params["feature_group_count"])
    each = groups != 1 and groups == left.shape[1] == kernel.shape[0]
    if equation.params["batch_group_count"] != 1 or not (groups == 1 or each):
        raise equation.refused("with groups of several channels")
    left = _padded(equation, left)
    whole = [equation.shape[axis] for axis in how.out_spec]
    found = _summed(equation, left, kernel, whole, each)
    order = [how.out_spec.index(axis) for axis in range(found.rank)]
    return session.cast(permute(session, found, tuple(order)), equation.dtype)


def _padded(equation: Equation, node: Node) -> Node:
    """The input with zeros around it, and between its elements."""
    session, known = equation.session, sizes()
    steps = (1, 1, *equation.params["lhs_dilation"])
    edges = [(Dim.of(0), Dim.of(0)) for _ in range(2)]
    edges += [(known.ours(low), known.ours(high)) for low, high in equation.params["padding"]]
    shape = [
        (size - 1) * step + 1 if step != 1 else size
        for size, step in zip(node.shape, steps, strict=True)
    ]
    if any(edge.constant is None for pair in edges for edge in pair):
        raise equation.refused("padded by symbolic sizes")
    numbers = [(low.constant or 0, high.constant or 0) for low, high in edges]
    shape = [
        size + max(low, 0) + max(high, 0) for size, (low, high) in zip(shape, numbers, strict=True)
    ]
    starts = tuple(Dim.of(max(low, 0)) for low, _ in numbers)
    if tuple(shape) != node.shape:
        node = session.apply("unslice", node, shape=tuple(shape), starts=starts, steps=steps)
    cut = [Dim.of(max(-low, 0)) for low, _ in numbers]
    kept = [
        size + min(low, 0) + min(high, 0) for size, (low, high) in zip(shape, numbers, strict=True)
    ]
    return part(session, node, cut, kept)


def _summed(
    equation: Equation, left: Node, kernel: Node, whole: Sequence[Dim], each: bool
) -> Node:  # fmt: skip
    """The output, with the axes (batch, channel, places).

    ``each``: every channel has a kernel of its own.
    """
    session, count = equation.session, left.rank - 2
    if each:
        kernel = session.reshape(kernel, (kernel.shape[0], *kernel.shape[2:]))
    own = kernel.rank - count
    names = string.ascii_lowercase[:count]
    taken, weight, given = ("z", "z", "z") if each else ("y", "wy", "w")
    none = [Dim.of(0), Dim.of(0)]
    strides, spread = equation.params["window_strides"], equation.params["rhs_dilation"]
    found = []
    if (places := _places(kernel.shape[own:])) is not None:
        for place in places:
            starts = [Dim.of(at * gap) for at, gap in zip(place, spread, strict=True)]
            shape = (*left.shape[:2], *whole[2:])
            piece = part(session, left, (*none, *starts), shape, (1, 1, *strides))
            ones = tuple(Dim.of(1) for _ in place)
            weights = part(
                session, kernel, (*none[:own], *map(Dim.of, place)), (*kernel.shape[:own], *ones)
            )
            weights = session.reshape(weights, kernel.shape[:own])
            spec = f"x{taken}{names},{weight}->x{given}{names}"
            found.append(session.apply("einsum", piece, weights, spec=spec))
        return reduce(lambda one, other: session.apply("add", one, other), found)
    if (places := _places(whole[2:])) is not None:
        for place in places:
            starts = [Dim.of(at * step) for at, step in zip(place, strides, strict=True)]
            shape = (*left.shape[:2], *kernel.shape[own:])
            piece = part(session, left, (*none, *starts), shape, (1, 1, *spread))
            spec = f"x{taken}{names},{weight}{names}->x{given}"
            one = session.apply("einsum", piece, kernel, spec=spec)
            found.append(session.reshape(one, (*one.shape, Dim.of(1))))
        return session.reshape(concatenate(session, found, 2), tuple(whole))
    raise equation.refused("where both the kernel and the output have symbolic sizes")


def _places(shape: Sequence[Dim]) -> list[tuple[int, ...]] | None:
    """The places of a shape; None for a symbolic one, or too many."""
    known = [one.constant for one in shape]
    if any(one is None for one in known):
        return None
    ranges: list[Any] = [range(one) for one in known if one is not None]
    if not 0 < math.prod(map(len, ranges)) <= MOST_STEPS:
        return None
    return list(itertools.product(*ranges))
