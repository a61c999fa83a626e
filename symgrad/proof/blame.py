"""Which marker makes a second derivative wrong, in words.

In: the markers of a backward, the adjoints that went through them, a point.  Out: sentences.
Imports: ``symgrad.ir``, ``symgrad.proof``: ``adjoints``, ``history``, ``numbers``, ``oracle``,
``sample``; numpy.

Nothing here is trusted: a refutation stands without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from symgrad.errors import SymgradError
from symgrad.ir.graph import Node, ancestors
from symgrad.proof.adjoints import reverse
from symgrad.proof.history import Marker, Recorded, stripped
from symgrad.proof.numbers import Double
from symgrad.proof.oracle import DomainError, Program
from symgrad.proof.sample import Point

_MOST = 3
_CLOSE = 1e-9


def blamed(
    recorded: Recorded, adjoint: Mapping[Node, Node], name: str, point: Point | None
) -> list[str]:
    """What is said of the markers that make the derivative by ``name`` wrong."""
    suspects = [
        marker for marker in recorded.markers if name in marker.depends and marker.node in adjoint
    ]
    if len(suspects) > 1 and point is not None:
        suspects = [one for one in suspects if _matters(recorded, adjoint, one, name, point)]
    said = dict.fromkeys(_said(recorded, marker, name) for marker in suspects)
    return list(said)[:_MOST]


def _matters(
    recorded: Recorded, adjoint: Mapping[Node, Node], marker: Marker, name: str, point: Point
) -> bool:
    """Is what the marker passes on to an input another thing than its value's derivative?"""
    passed = _passed(recorded, marker, adjoint[marker.node])
    roots = [marker.node, adjoint[marker.node], *(node for pair in passed for node in pair)]
    _, new = stripped(roots)
    try:
        true = _by_input([(new[marker.node], new[adjoint[marker.node]])], name)
        claimed = _by_input([(new[node], new[part]) for node, part in passed], name)
        program = Program([node for node in (true, claimed) if node is not None])
        with np.errstate(all="ignore"):
            values = program.run(Double(), point.doubles(), point.sizes)
    except (SymgradError, DomainError, ValueError, KeyError):
        return True
    parts = [np.asarray(0.0) if node is None else values[node] for node in (true, claimed)]
    return bool(np.max(np.abs(parts[0] - parts[1]), initial=0.0) > _CLOSE)


def _passed(recorded: Recorded, marker: Marker, cotangent: Node) -> list[tuple[Node, Node]]:
    if marker.rule is None:
        return []
    parts = recorded.by_rule(marker.node, marker.rule, cotangent)
    pairs = zip(marker.node.args[1:], parts, strict=False)
    return [(arg, part) for arg, part in pairs if part is not None]


def _by_input(outputs: Sequence[tuple[Node, Node]], name: str) -> Node | None:
    nodes = ancestors([node for node, _ in outputs])
    found = reverse(outputs, nodes)
    return next((found.get(n) for n in nodes if n.attributes.get("name") == name), None)


def _said(recorded: Recorded, marker: Marker, name: str) -> str:
    if marker.rule is not None:
        if marker.node.attributes["rule"] == 0:
            return f"the derivative of a saved output by {name} is what backward itself gives"
        rule = marker.rule
        return (
            f"the backward of {rule.name}, applied in backward ({rule.location}), is not its "
            f"derivative by {name}"
        )
    value, why = marker.node.args[0], marker.node.attributes["why"]
    lost = f"its dependence on {name} is lost in double backward"
    if why == "saved":
        if value.op == "input":
            own = value.attributes["name"]
            return f"a copy of `{own}` is kept in place of it: {lost}; save {own} itself"
        return (
            f"{_called(value, value)} is computed in forward and saved: {lost}; save {name} and "
            "compute it again, or return it as an output"
        )
    if why == "detached":
        return f"{_called(value, marker.node)} is detached in backward: {lost}; leave detach out"
    return f"{_called(value, marker.node)} is computed under no_grad in backward: {lost}"


def _called(value: Node, place: Node) -> str:
    """The user's name of a value, and the line to look at."""
    where = place.location or value.location
    line = f" ({where})" if where is not None else ""
    named = value.name or place.name
    return f"`{named}`{line}" if named else f"a value{line}"
