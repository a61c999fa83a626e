"""A program to its loops: the order of axes, the longest path, what is kept.

In: a program.  Out: ``Schedule``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from symgrad.codegen.program.collapse import collapse_axes
from symgrad.codegen.program.definitions import KernelProgram, guarded
from symgrad.codegen.program.guards import Guards
from symgrad.codegen.schedule.items import Items
from symgrad.codegen.schedule.loops import Entry, arrange, paths_of
from symgrad.codegen.schedule.order import axis_order
from symgrad.codegen.schedule.rematerialise import choose_kept
from symgrad.ir.dim import Axis
from symgrad.ir.expr import Expr


@dataclass(frozen=True)
class Schedule:
    """The loops of a program.

    ``order``: the position of each axis, outermost first; ``kept``: the elementwise values that
    are kept rather than computed again.
    """

    program: KernelProgram
    order: Mapping[Axis, int]
    kept: tuple[Expr, ...]
    entries: tuple[Entry, ...]


def schedule(program: KernelProgram) -> Schedule:
    """Arrange a program; arrange it again with what is better kept than computed twice."""
    program = guarded(collapse_axes(program))
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
