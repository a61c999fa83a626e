"""Which node of a hand-written backward holds the adjoint of which forward node: a guess.

In: a ``Subject``.  Out: pairs of nodes whose values agree at sampled points.

Nothing here is trusted: the op records' VJPs and doubles only say what is worth proving.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from symgrad.autodiff import adjoints
from symgrad.errors import SymgradError
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.proof.oracle.numbers import Array, Double
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.oracle.values import DomainError, Evaluator

_CLOSE = 1e-9
_LEAST = 1e-280
"""Doubles below have lost digits, or will after another product or two."""


def derived_gradients(
    subject: Subject, held: Sequence[Node] = (),
    outputs: Sequence[tuple[Node, Node]] | None = None,
) -> tuple[Graph, dict[Node, Node], dict[Node, Node]]:  # fmt: skip
    """A copy of the forward with derived adjoints: the copy, old node -> copy, old -> adjoint.

    ``held``: nodes that are treated as constants.  ``outputs``: in place of those of forward.
    """
    graph = Graph()
    pairs = subject.outputs if outputs is None else outputs
    copies = rewrite(graph, [node for pair in pairs for node in pair])
    nodes = subject.forward.nodes if outputs is None else ancestors([node for node, _ in pairs])
    order = [copies[node] for node in nodes if node not in held]
    found = adjoints([(copies[node], copies[cotangent]) for node, cotangent in pairs], order)
    return graph, copies, {node: found[copies[node]] for node in nodes if copies[node] in found}


def matches(subject: Subject, points: int = 2) -> dict[Node, list[Node]]:
    """Forward nodes with the backward nodes that look like their adjoints, likeliest first."""
    try:
        _, _, adjoints = derived_gradients(subject)
    except (SymgradError, ValueError, KeyError):
        return {}
    forward = set(subject.forward.nodes)
    backward = [
        node for node in subject.everything.nodes
        if node not in forward and node.dtype.is_float and node.op not in ("constant", "size")
    ]  # fmt: skip
    wanted = [
        node for node in subject.forward.nodes
        if node in adjoints and node.dtype.is_float and node.op not in ("input", "constant", "size")
    ]  # fmt: skip
    if not wanted or not backward:
        return {}
    program = Evaluator([adjoints[node] for node in wanted])
    samples = sampled(subject, program, points)
    if not samples:
        return {}
    by_shape: dict[object, _Candidates] = {}
    for node in backward:
        by_shape.setdefault(node.shape, _Candidates(samples)).add(node)
    none = _Candidates(samples)
    return {
        node: found
        for node in wanted
        if (found := by_shape.get(node.shape, none).close(adjoints[node]))
    }


Samples = Sequence[tuple[Mapping[Node, Array], Mapping[Node, Array]]]


def sampled(subject: Subject, program: Evaluator, points: int) -> Samples:
    """At some points, the values of everything, and those that a program gives there.

    Points at which nothing is too small for doubles come first: a long product of small numbers
    is 0 like any other.
    """
    found: list[tuple[Mapping[Node, Array], Mapping[Node, Array]]] = []
    others: list[tuple[Mapping[Node, Array], Mapping[Node, Array]]] = []
    for number, sizes in enumerate(subject.sampler.size_choices()):
        if len(found) == points or number > 3 * points:
            break
        at = subject.draw(sizes, number)
        if at is not None:
            with suppress(DomainError):
                values = program.run(Double(), at.point.doubles(), sizes)
                vanishing = any(0 < _size(values[node]) < _LEAST for node in program.results)
                (others if vanishing else found).append((at.values, values))
    return [*found, *others][:points]


class _Candidates:
    """Nodes of one shape, to be found by their values; sorted by their largest element.

    What is near in all elements is near in that, relative to it: so few others are looked at,
    however small or large single elements are.
    """

    def __init__(self, samples: Samples) -> None:
        self._samples = samples
        self._nodes: list[Node] = []
        self._sorted: list[tuple[float, int]] | None = None

    def add(self, node: Node) -> None:
        """One more."""
        self._nodes.append(node)

    def close(self, adjoint: Node) -> list[Node]:
        """Those that have the values of an adjoint, in the order in which they were added."""
        hand, derived = self._samples[0]
        wanted = derived[adjoint]
        scale = _size(wanted)
        if not np.isfinite(scale) or scale == 0.0:
            return []
        if self._sorted is None:
            sizes = ((_size(hand[node]), place) for place, node in enumerate(self._nodes))
            self._sorted = sorted(one for one in sizes if np.isfinite(one[0]))
        low, high = (scale + sign * 2 * _CLOSE * scale for sign in (-1, 1))
        near = self._sorted[
            bisect_left(self._sorted, (low, -1)) : bisect_right(self._sorted, (high, len(hand)))
        ]
        places = sorted(place for _, place in near)
        return [
            self._nodes[place] for place in places
            if all(_same(hand[self._nodes[place]], true[adjoint]) for hand, true in self._samples)
        ]  # fmt: skip


def _size(array: Array) -> float:
    return float(np.max(np.abs(array), initial=0.0))


def _same(left: Array, right: Array) -> bool:
    scale = _size(right)
    if not np.isfinite(scale) or scale == 0.0:
        return False
    return bool(np.max(np.abs(left - right), initial=0.0) <= _CLOSE * scale)
