"""At the counterexample: does a formula give there what is true?

In: a ``Subject`` and the counterexample of one of its gradients.  Out: answers about nodes, and
the comparisons of forward for single values that hold there.

A formula that is printed as the true gradient, or as a repair, has to give the number that is
printed as the true one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mpmath
import numpy as np

from symgrad.ir.graph import Node
from symgrad.proof.judge.boundaries import Meeting, changes
from symgrad.proof.judge.nullsets import KIND, said
from symgrad.proof.oracle.numbers import Array, Double
from symgrad.proof.oracle.refute import Counterexample
from symgrad.proof.oracle.subject import Evaluation, Subject, precisely
from symgrad.proof.oracle.values import DomainError, Evaluator

_OF_GAP = 1e-3
"""How far a value may be from the true one, relative to how far the wrong one is."""
_CLOSE = 1e-9
_ROUNDING = 1e-15
_DOUBLE = Double()


class Witness:
    """The counterexample of a gradient.  Without one, every formula passes."""

    def __init__(self, subject: Subject, found: Counterexample | None) -> None:
        self.subject, self.found = subject, found

    def agrees(self, node: Node) -> bool:
        """Is the value of a node the true one there?"""
        if self.found is None or not np.isfinite(self.found.true):
            return True
        if self._is_true(self._value(node, precise=False)):
            return True
        with precisely():
            return self._is_true(self._value(node, precise=True))

    def _is_true(self, value: Any) -> bool:
        assert self.found is not None
        if value is None or not mpmath.isfinite(value):
            return False
        off, near = abs(value - self.found.true), _CLOSE * (1 + abs(self.found.true))
        gap = abs(self.found.hand - self.found.true)  # infinite, or no number, where hand is
        return bool(off <= near and not off > _OF_GAP * gap + _ROUNDING * (1 + abs(value)))

    def _value(self, node: Node, *, precise: bool) -> Any:
        assert self.found is not None
        point = self.found.point
        feeds = point.precise() if precise else point.doubles()
        try:
            values = Evaluator([node]).run(
                self.subject.precise if precise else _DOUBLE, feeds, point.sizes
            )
            return values[node][self.found.at]
        except (DomainError, IndexError, KeyError):
            return None

    def evaluated(self, node: Node) -> tuple[Evaluation, Array] | None:
        """The point with the values of everything, and of a node, in doubles."""
        if self.found is None:
            return None
        point = self.found.point
        try:
            at = self.subject.evaluate_double(point)
            true = Evaluator([node]).run(_DOUBLE, point.doubles(), point.sizes)[node]
        except (DomainError, KeyError):
            return None
        finite = np.all(np.isfinite(true))
        return (at, true) if finite else None

    def excluded(self) -> str:
        """What to say of a formula that is not true there: ``but where x == 0``."""
        texts = list(dict.fromkeys(self._special()))
        return f"but where {' or '.join(texts)}" if texts else "but not at the counterexample"

    def _special(self) -> Iterator[str]:
        """The comparisons of forward for single values that hold for some element."""
        assert self.found is not None
        point = self.found.point
        for node in self.subject.forward.nodes:
            for boundary, sides in changes(node):
                if sides[0] != sides[2] or sides[0] == sides[1]:
                    continue
                value = boundary.value
                roots = [boundary.point, *([value] if isinstance(value, Node) else [])]
                try:
                    values = Evaluator(roots).run(_DOUBLE, point.doubles(), point.sizes)
                except (DomainError, KeyError):
                    continue
                other = values[value] if isinstance(value, Node) else float(value)
                if np.any(values[boundary.point] == other):
                    yield said(boundary, Meeting(node), KIND).text
