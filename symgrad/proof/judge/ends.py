"""Is the side of a boundary, from which a gradient is a limit, inside the stated domain?

In: a boundary, what meets on it, and the subject.  Out: yes, or that it is not known.

At ``m == 0`` of ``m >= 0`` there is no other side below: ``m > 0`` is false there, and true at all
points beside it.  So the side has to be one that points inside the domain lie on:

1. an input without closed ends, which the point or the value is affine in with a number as its
   coefficient, goes to either side, wherever in the domain the others are moved first;
2. of two inputs, or of one and a number, the point goes up unless it is at its closed upper end
   where the other is at its closed lower end.

[rule: closed-end]
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from symgrad.ir.graph import Node
from symgrad.ops.movement import bare
from symgrad.proof.judge.boundaries import Boundary, Meeting, inputs_of, steep_inputs
from symgrad.proof.oracle.subject import Subject

Ends = tuple[Fraction | None, Fraction | None]
"""The closed lower and upper end of a domain; None where it is open or there is none."""


def closed_ends(subject: Subject) -> dict[str, Ends | None]:
    """The inputs that have closed ends; None for those of closed relations."""
    found: dict[str, Ends | None] = {}
    for one in subject.assumptions:
        if one.kind == "nonnegative":
            found[one.name] = (Fraction(0), None)
        elif one.kind == "interval":
            ends = (None if one.low_open else one.low, None if one.high_open else one.high)
            if ends != (None, None):
                found[one.name] = ends
    for relation in subject.relations:
        if relation.kind == ">=":
            found.update(dict.fromkeys(inputs_of(relation.node)))
    return found


def has_inner_side(
    boundary: Boundary, meeting: Meeting, closed: Mapping[str, Ends | None]
) -> bool:  # fmt: skip
    """Is everything on the boundary as it is on a side that the inside of the domain reaches?

    ``closed``: what ``closed_ends`` gives.
    """
    if boundary.inputs.isdisjoint(closed) or steep_inputs(boundary) - closed.keys():
        return True
    point, value = (_ends(side, closed) for side in (boundary.point, boundary.value))
    if point is None or value is None:
        return False
    return any(
        all(sides[way] == sides[1] for sides in meeting.sides)
        for way, end, other in ((0, point[0], value[1]), (2, point[1], value[0]))
        if end is None or end != other
    )


def _ends(side: Node | Fraction, closed: Mapping[str, Ends | None]) -> Ends | None:
    """The closed ends of a number, or of an input; None for anything else."""
    if isinstance(side, Fraction):
        return side, side
    source = bare(side)
    if source.op != "input":
        return None
    return closed.get(str(source.attributes["name"]), (None, None))
