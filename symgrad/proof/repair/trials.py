"""The points on which guesses about a gradient are tried.

In: a ``Subject`` and an input.  Out: the hand-written and the true gradient at a few points, in
doubles, and comparisons with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice

import numpy as np

from symgrad.budgets import REPAIR_NODES, REPAIR_POINTS, REPAIR_SHAPES
from symgrad.errors import SymgradError
from symgrad.ir.graph import Node, ancestors
from symgrad.proof.oracle.adjoints import derived_gradients
from symgrad.proof.oracle.numbers import Array, Double
from symgrad.proof.oracle.subject import Evaluation, Subject
from symgrad.proof.oracle.values import DomainError, Evaluator, size_function

_CLOSE = 1e-8
_DOUBLE = Double()


class Trials:
    """Points of several shapes, and the true gradient by the op records, which is not trusted."""

    def __init__(self, subject: Subject, name: str) -> None:
        self.subject, self.name = subject, name
        self.points: list[Evaluation] = []
        self.true: list[Array] = []
        self._programs: dict[Node, Evaluator] = {}
        self._readers: dict[tuple[Node, Node], list[Node]] = {}
        self._work = 0
        self.right_elsewhere = False
        """Is the hand-written gradient true at all points but the one that was added?"""
        try:
            _, _, adjoints = derived_gradients(subject)
        except (SymgradError, ValueError, KeyError):
            return
        adjoint = adjoints.get(subject.by_name[name])
        for number, sizes in enumerate(islice(subject.sampler.size_choices(), REPAIR_SHAPES)):
            if len(self.points) >= REPAIR_POINTS:
                break
            at = subject.draw(sizes, 20 + number)
            true = None if at is None or adjoint is None else self.evaluate(adjoint, at)
            if at is not None and true is not None:
                self.points.append(at)
                self.true.append(true)

    def add(self, found: tuple[Evaluation, Array] | None) -> None:
        """One more point, with the true gradient there."""
        if found is not None and self.points:
            hand = self.hand
            self.right_elsewhere = bool(hand) and all(map(same, hand, self.true))
            self.points.append(found[0])
            self.true.append(found[1])

    @property
    def usable(self) -> bool:
        """Was any point found?"""
        return bool(self.points)

    @property
    def hand(self) -> list[Array]:
        """The hand-written gradient at the points."""
        node = self.subject.gradients.get(self.name)
        return [] if node is None else [at.values[node] for at in self.points]

    def evaluate(self, node: Node, at: Evaluation) -> Array | None:
        """A node of any graph over the subject's inputs, at a point.

        None where it is undefined, and once the work is used up.
        """
        if self._work > REPAIR_NODES:
            return None
        if node not in self._programs:
            self._programs[node] = Evaluator([node])
        self._work += len(self._programs[node].nodes)
        with np.errstate(all="ignore"):
            try:
                program = self._programs[node]
                return program.run(_DOUBLE, at.point.doubles(), at.point.sizes)[node]
            except DomainError:
                return None

    def local_value(self, node: Node) -> Array | None:
        """A node at the first point, given what it is made of there."""
        at = self.points[0]
        known = at.values.get(node)
        if known is not None or not node.args:
            return known
        args = [value for arg in node.args if (value := self.local_value(arg)) is not None]
        if len(args) < len(node.args):
            return None
        self._work += 1
        with np.errstate(all="ignore"):
            try:
                return np.asarray(_DOUBLE.apply(node, args, size_function(at.point.sizes)))
            except (ValueError, ArithmeticError, IndexError):
                return None

    def fits_at_first(self, root: Node, node: Node, value: Array) -> bool:
        """Is ``root`` true at the first point, if ``node`` has another value there?"""
        at = self.points[0]
        if self._work > REPAIR_NODES or value.shape != at.values[node].shape:
            return False
        new = {node: value}
        size = size_function(at.point.sizes)
        parts = self._downstream(root, node)
        self._work += len(parts)
        with np.errstate(all="ignore"):
            try:
                for part in parts:
                    args = [new[arg] if arg in new else at.values[arg] for arg in part.args]
                    new[part] = _DOUBLE.apply(part, args, size)
            except (ValueError, ArithmeticError, IndexError):
                return False
        return same(new[root], self.true[0])

    def _downstream(self, root: Node, node: Node) -> list[Node]:
        """What depends on ``node`` on the way to ``root``, arguments first."""
        key = root, node
        if key not in self._readers:
            depends = {node}
            for part in ancestors([root], stop=[node]):
                if part is not node and any(arg in depends for arg in part.args):
                    depends.add(part)
            self._readers[key] = sorted(depends - {node}, key=lambda part: part.index)
        return self._readers[key]

    def node_is_true(self, node: Node) -> bool:
        """Has a node the values of the true gradient?  No, once the work is used up."""
        return self.usable and _match(lambda at: self.evaluate(node, at), self.points, self.true)

    def fits(self, node: Node) -> bool:
        """Has a node of another trace the values of the true gradient?  Counts as no work."""
        program = Evaluator([node])

        def value(at: Evaluation) -> Array | None:
            with suppress(DomainError, KeyError):
                return program.run(_DOUBLE, at.point.doubles(), at.point.sizes)[node]
            return None

        return _match(value, self.points, self.true)

    def is_zero(self, node: Node) -> bool:
        """Is a node 0 at every point?"""
        values = [self.evaluate(node, at) for at in self.points]
        return bool(values) and all(one is not None and not np.any(one) for one in values)

    def equals_hand(self, guess: Callable[[Evaluation], Array | None]) -> bool:
        """Is a guess the hand-written gradient at every point?"""
        return bool(self.hand) and _match(guess, self.points, self.hand)


def _match(
    guess: Callable[[Evaluation], Array | None], points: Sequence[Evaluation],
    wanted: Sequence[Array],
) -> bool:  # fmt: skip
    """Has a guess the wanted values?  The first wrong point answers."""
    values = ((guess(at), value) for at, value in zip(points, wanted, strict=True))
    return all(found is not None and same(found, value) for found, value in values)


def same(left: Array, right: Array) -> bool:
    """Equal shapes and, up to rounding, equal values."""
    if left.shape != right.shape or not np.all(np.isfinite(left)):
        return False
    scale = float(np.max(np.abs(right), initial=0.0)) + float(np.max(np.abs(left), initial=0.0))
    return bool(np.max(np.abs(left - right), initial=0.0) <= _CLOSE * (scale + 1e-30))
