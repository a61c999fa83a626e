"""The order in which axes are looped over, outermost first.

In: the definitions of a program.  Out: a position for every axis.

Arrays vote: an axis goes outside another where it is the slower one in memory, so that inner
loops run over what lies together.  What is written counts twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from symgrad.codegen.program.definitions import Definition
from symgrad.codegen.program.equations import elements_of
from symgrad.codegen.program.patterns import Contraction, Scan, Scatter
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.expr import Access, Expr, Reduce, free_axes, postorder


def axis_order(definitions: Iterable[Definition]) -> dict[Axis, int]:
    """The position of every axis that the definitions loop over."""
    votes: dict[tuple[Axis, Axis], int] = {}
    met: dict[Axis, None] = {}
    for definition in definitions:
        _count(definition.indices, 2, votes, met)
        for indices in _reads(definition):
            _count(indices, 1, votes, met)
    return {axis: place for place, axis in enumerate(_sorted(list(met), votes))}


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


def _sorted(axes: list[Axis], votes: dict[tuple[Axis, Axis], int]) -> list[Axis]:
    """Always the axis that the fewest votes want further inside; the first met among equals."""
    rest, found = list(axes), []
    while rest:
        best = min(
            range(len(rest)),
            key=lambda place: (
                sum(votes.get((o, rest[place]), 0) - votes.get((rest[place], o), 0) for o in rest),
                place,
            ),
        )
        found.append(rest.pop(best))
    return found
