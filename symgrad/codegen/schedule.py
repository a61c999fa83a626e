"""A program to its loops: the order of axes, the longest path, what is kept.

In: a program.  Out: ``Schedule``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from symgrad.codegen.arrange import Entry, arrange
from symgrad.codegen.guards import Guards
from symgrad.codegen.items import Items
from symgrad.codegen.keep import choose_kept
from symgrad.codegen.layout import paths_of
from symgrad.codegen.merge import merge_axes
from symgrad.codegen.order import axis_order
from symgrad.codegen.program import Program, guarded
from symgrad.ir.dim import Axis
from symgrad.ir.expr import Expr


@dataclass(frozen=True)
class Schedule:
    """The loops of a program.

    ``order``: the position of each axis, outermost first; ``kept``: the elementwise values that
    are kept rather than computed again.
    """

    program: Program
    order: Mapping[Axis, int]
    kept: tuple[Expr, ...]
    entries: tuple[Entry, ...]


def schedule(program: Program) -> Schedule:
    """Arrange a program; arrange it again with what is better kept than computed twice."""
    program = guarded(merge_axes(program))
    order = axis_order(program.definitions)
    items = Items(program, order)
    entries = arrange(items.found)
    kept = tuple(choose_kept(items, paths_of(entries), guards_of(items)))
    if kept:
        entries = arrange(Items(program, order, kept).found)
    return Schedule(program, order, kept, entries)


def guards_of(items: Items) -> Guards:
    """What may be evaluated everywhere, the values of items being there."""
    arrays = items.program.arrays
    return Guards(lambda tensor: arrays[tensor][1], lambda expr: expr in items.values)
