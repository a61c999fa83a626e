"""A program to its loops: the order of axes, the longest path, what is kept.

In: a program.  Out: ``Schedule``.

Arrays vote on the order of axes: an axis goes outside another where it is the slower one in memory,
so that inner loops run over what lies together.  What is written counts twice.  Contractions that
are done by loops decide.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from symgrad.codegen.program.collapse import collapse_axes
from symgrad.codegen.program.definitions import Definition, KernelProgram, guarded
from symgrad.codegen.program.equations import elements_of
from symgrad.codegen.program.factored import factored
from symgrad.codegen.program.guards import Guards
from symgrad.codegen.program.patterns import Contraction, Scan, Scatter
from symgrad.codegen.program.termwise import termwise
from symgrad.codegen.schedule.items import Items
from symgrad.codegen.schedule.loops import Entry, arrange, paths_of
from symgrad.codegen.schedule.rematerialise import choose_kept
from symgrad.codegen.schedule.shifted import apart, in_order, precedence
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.expr import Access, Expr, Reduce, free_axes, postorder


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


def schedule(program: KernelProgram, *, derived: bool = False) -> Schedule:
    """Arrange a program; arrange it again with what is better kept than computed twice.

    ``derived``: nobody wrote its products, which may be grouped otherwise.
    """
    program = termwise(collapse_axes(program))
    program = apart(guarded(factored(program) if derived else program))
    order = axis_order(program.definitions, precedence(program))
    program = in_order(program, order)
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


# -- the order of axes


def axis_order(
    definitions: Iterable[Definition], decided: Collection[tuple[Axis, Axis]] = ()
) -> dict[Axis, int]:
    """The position of every axis that the definitions loop over; ``decided`` as in ``_sorted``."""
    votes: dict[tuple[Axis, Axis], int] = {}
    met: dict[Axis, None] = {}
    for definition in definitions:
        _count(definition.indices, 2, votes, met)
        for indices in _reads(definition):
            _count(indices, 1, votes, met)
    return {axis: place for place, axis in enumerate(_sorted(list(met), votes, decided))}


def bodies(definition: Definition) -> tuple[Expr, ...]:
    """The expressions that are evaluated for a definition."""
    pattern = definition.pattern
    if isinstance(pattern, Scatter):
        return (pattern.condition, pattern.body)
    if isinstance(pattern, Scan):
        return (pattern.body,)
    return (definition.body,)


def _reads(definition: Definition) -> Iterator[tuple[Dim, ...]]:
    for expr in postorder(bodies(definition)):
        if isinstance(expr, Access):
            yield expr.indices
        elif isinstance(expr, Reduce):
            yield (Dim.of(expr.axis),)
        for element in elements_of(expr):
            yield element.indices
    if isinstance(definition.pattern, Scatter):
        yield tuple(Dim.of(axis) for axis in definition.pattern.axes)
    if isinstance(definition.pattern, Contraction):
        yield tuple(Dim.of(axis) for axis in definition.pattern.summed)


def _count(
    indices: tuple[Dim, ...],
    weight: int,
    votes: dict[tuple[Axis, Axis], int],
    met: dict[Axis, None],
) -> None:
    """Every axis in an index votes for being outside of those in later ones."""
    axes = [sorted(free_axes([index]), key=lambda axis: axis.key) for index in indices]
    for place, outer in enumerate(axes):
        met.update(dict.fromkeys(outer))
        for inner in axes[place + 1 :]:
            for slow in outer:
                for fast in inner:
                    if slow != fast:
                        votes[slow, fast] = votes.get((slow, fast), 0) + weight


def _sorted(
    axes: list[Axis], votes: Mapping[tuple[Axis, Axis], int], decided: Collection[tuple[Axis, Axis]]
) -> list[Axis]:
    """Always the axis that the fewest votes put inside the others; the first among equals.

    ``decided``: pairs of which the first comes first, unless others decide otherwise.
    """

    def votes_inside(axis: Axis) -> int:
        return sum(votes.get((o, axis), 0) - votes.get((axis, o), 0) for o in rest)

    rest, found = list(axes), []
    while rest:
        best, waiting = min(rest, key=votes_inside), set[Axis]()
        while before := [o for o in rest if (o, best) in decided and o not in waiting]:
            waiting.add(best)
            best = min(before, key=votes_inside)
        rest.remove(best)
        found.append(best)
    return found
