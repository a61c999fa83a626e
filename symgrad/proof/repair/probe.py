"""Fast tests at one point: which new value of which node would make a gradient right?

In: a wrong gradient at a point, and the true one.  Out: tests of new values for inner nodes.

Multiply the gradient by a random tensor.  Where the gradient is affine in an inner node, a change
of the node changes this product by the product of the change with the node's adjoint.  One reverse
pass gives the adjoints of all nodes; then a guess costs one scalar product.  A guess that passes is
only likely to be right.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symgrad.autodiff import adjoints
from symgrad.errors import SymgradError
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.record import get
from symgrad.proof.oracle.numbers import Array, Double
from symgrad.proof.oracle.values import DomainError, Evaluator
from symgrad.proof.repair.trials import Trials

_CLOSE = 1e-6
_ROUNDING = 1e-13
_SEEN = 1e-9
"""Relative size of a difference of the gradients below which rounding hides it."""
_LINEAR_IN_ALL = frozenset(("add", "sub", "concat"))
_LINEAR_IN_ONE = frozenset(("mul", "einsum"))
_LINEAR_IN_FIRST = frozenset(("div", "index", "index_add"))


class Probe:
    """The adjoints of the inner nodes of a gradient at one point.

    ``wanted``: by how much the product with the seed is to change.
    """

    def __init__(self, trials: Trials, root: Node, inner: Sequence[Node]) -> None:
        self.values = trials.points[0].values
        self._adjoint: dict[Node, Array] = {}
        own, true = self.values[root], trials.true[0]
        source = trials.subject.by_name[trials.name]
        self.wanted = self._tolerance = 0.0
        if own.shape != true.shape or source.type != root.type or not np.all(np.isfinite(own)):
            return
        seed = self.values[source]
        self.wanted = float(np.sum(seed * (true - own)))
        scale = float(np.sum(np.abs(seed) * (np.abs(true) + np.abs(own))))
        self._tolerance = _CLOSE * abs(self.wanted) + _ROUNDING * scale
        if abs(self.wanted) <= _SEEN * scale:
            return
        affine = [node for node in inner if is_affine(root, node)]
        self._adjoint = _adjoints(trials, root, source, inner, affine)

    def knows(self, node: Node) -> bool:
        """Is there an adjoint of the node, so that guesses can be tested?"""
        return node in self._adjoint

    def fits(self, node: Node, value: Array) -> bool:
        """Would the node with another value make the gradient right, as far as is seen here?"""
        old = self.values[node]
        if value.shape != old.shape:
            return False
        with np.errstate(all="ignore"):
            change = float(np.sum(self._adjoint[node] * (value - old)))
        return abs(change - self.wanted) <= self._tolerance

    def fitting(self, node: Node, base: Array, factors: Array) -> list[int]:
        """Which rows of ``factors`` times ``base`` would do as the value of the node."""
        weighted = self._adjoint[node] * base
        start = float(np.sum(self._adjoint[node] * self.values[node]))
        with np.errstate(all="ignore"):
            changes = factors @ weighted.ravel() - start
        close = np.abs(changes - self.wanted) <= self._tolerance
        return [int(row) for row in np.flatnonzero(close)]


def is_affine(root: Node, node: Node) -> bool:
    """Is ``root`` affine in the value of ``node``, all else held?"""
    depends = {node}
    for part in ancestors([root], stop=[node]):
        places = [at for at, arg in enumerate(part.args) if arg in depends]
        if part is node or not places:
            continue
        if not _is_affine_step(part, places):
            return False
        depends.add(part)
    return True


def _is_affine_step(part: Node, places: list[int]) -> bool:
    if part.op in _LINEAR_IN_ALL:
        return True
    if part.op in _LINEAR_IN_ONE:
        return len(places) == 1
    if part.op in _LINEAR_IN_FIRST:
        return places == [0]
    if part.op == "where":
        return 0 not in places
    return part.op == "neg" or (len(part.args) == 1 and get(part.op).linear == (0,))


def _adjoints(
    trials: Trials, root: Node, seed: Node, inner: Sequence[Node], wanted: Sequence[Node]
) -> dict[Node, Array]:
    """The adjoints of nodes at the first point; the adjoint of the root is the value of ``seed``.

    An input serves as the seed: its values are generic, and it is there.
    """
    at = trials.points[0]
    try:
        found = adjoints([(root, seed)], inner)
        known = [node for node in wanted if node in found]
        program = Evaluator([found[node] for node in known], list(at.values))
        with np.errstate(all="ignore"):
            feeds = at.point.doubles()
            values = program.run(Double(), feeds, at.point.sizes, dict(at.values))
    except (SymgradError, DomainError, ValueError, KeyError):
        return {}
    made = {node: values[found[node]] for node in known}
    return {node: value for node, value in made.items() if np.all(np.isfinite(value))}
