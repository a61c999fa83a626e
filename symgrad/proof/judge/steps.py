"""A long computation proved step by step: adjoints one by one, then equal nodes of two programs.

In: a ``Subject``.  Out: ``Steps``, which proves its gradients; what is found for one serves all.

1. *Adjoints.*  The op records say what the adjoint of each forward node is, as a node of the same
   graph.  That is a guess, which is proved by the chain rule: the adjoint of a node is the sum over
   the nodes that read it of their adjoints times their partials, with those adjoints and all other
   forward nodes opaque.
2. *Equal nodes.*  The hand-written backward is then compared with these adjoints, node by node,
   arguments first.  Where two nodes have the same values at sampled points, their equality is
   proved with what lies below opaque, more and more of it unfolded where that is not enough.  From
   then on both are one node, so that what is computed from them alike is one node, too.

The cost grows with the number of nodes: each proof is about a few of them, however deep the graph.
Values at points only say what is worth proving.
"""

from __future__ import annotations

import itertools
import math
import operator
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

import numpy as np

from symgrad import deadline
from symgrad.autodiff import adjoints
from symgrad.budgets import (
    NEAR_PIECE_WORK,
    PIECE_WORK,
    READER_WORK,
    STEP_DEPTHS,
    STEP_FAILURES,
    STEP_POINTS,
    STEP_SCALES,
)
from symgrad.errors import DependencyError, SymgradError
from symgrad.index.lower import Lowering
from symgrad.index.parts import places
from symgrad.ir.dim import Dim
from symgrad.ir.expr import Expr, postorder
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.record import get
from symgrad.ops.reductions import EXTREMES_ALONG
from symgrad.proof.judge.boundaries import name_of
from symgrad.proof.judge.defined import learn_stated
from symgrad.proof.judge.equality import Equality, merge
from symgrad.proof.judge.goals import Equal, Goal, definitions, unfold
from symgrad.proof.judge.ranges import Ranges, interval, of_inputs
from symgrad.proof.judge.reference import gradient, gradient_indices
from symgrad.proof.normal.facts import Facts
from symgrad.proof.oracle.adjoints import sampled
from symgrad.proof.oracle.numbers import Array, Double
from symgrad.proof.oracle.subject import Subject, literal_of
from symgrad.proof.oracle.values import DomainError, Evaluator, is_finite
from symgrad.proof.scalars import literals
from symgrad.proof.words.relations import number

_CLOSE = 1e-9
_ZERO = 1e-11
"""Relative differences below these may be rounding."""
_MOVES = frozenset(("movement", "source", "indexing"))
"""Kinds of ops that compute nothing: they are always unfolded."""
_CHOICES = frozenset(("maximum", "minimum", *EXTREMES_ALONG, "where", "abs", "relu"))
_FACTORS = frozenset(("mul", "einsum", "div", "square"))
"""Ops whose results are small where an operand is, though nothing cancels."""
_RATIONAL = frozenset(("add", "sub", "mul", "div", "neg", "square", "reciprocal", "sum", "einsum"))
"""Ops that make rational functions, also of sums, of their operands."""
_ROOM = 16
"""Marks for which there is room at first."""
_SHALLOW = 2
"""How many depths are tried for nodes that are hardly equal."""
Depths = Iterable[tuple[int, bool]]
Point = Mapping[Node, Array]


class Steps:
    """The proofs of one subject, step by step.

    ``opaque``: nodes without index notation, which are read as they are.
    """

    def __init__(
        self, subject: Subject, equal: Equal, opaque: Iterable[Node], facts: Facts
    ) -> None:
        self.subject, self.equal = subject, equal
        self.opaque = frozenset(opaque)
        self.forward = [n for n in subject.forward.nodes if n.dtype.is_float]
        self.own = frozenset(self.forward)
        self.moves = frozenset(one for one in self.forward if get(one.op).kind in _MOVES)
        self.readers = _readers(subject.forward.nodes)
        self.adjoints = adjoints(subject.outputs, subject.forward.nodes)
        self.right: dict[Node, Equality] = {}
        """For each forward node, is its adjoint the true one?"""
        self.ranges = Ranges(of_inputs(subject, facts), facts.least_sizes)
        learn_stated(self.ranges, subject)
        self._classes: Classes | None = None

    def prove(self, name: str) -> Equality:
        """The gradient of one input."""
        node = self.subject.by_name[name]
        wanted = [one for one in self._below(node) if one in self.adjoints]
        found = []
        for one in sorted(wanted, key=lambda one: one.index):
            found.append(self._adjoint(one))
            if not found[-1].equal:
                return found[-1]
        classes = self._classes or Classes(self)
        self._classes = classes
        hand = self.subject.gradients[name]
        equality = classes.same(hand, self.adjoints.get(node))
        return merge([*found, equality], f"{len(wanted)} adjoints, {classes.count} equal nodes")

    def _below(self, node: Node) -> list[Node]:
        """The node, and the float nodes of forward that are computed from it."""
        found = {node: None}
        for one in self.subject.forward.nodes:
            if one.dtype.is_float and any(arg in found for arg in one.args):
                found[one] = None
        return list(found)

    # -- adjoints

    def _adjoint(self, node: Node) -> Equality:
        if node not in self.right:
            equality = Equality(False)
            for levels in (0, 1):
                with suppress(SymgradError):
                    equality = self.equal(self._chain_rule(node, levels))
                if equality.equal:
                    break
            self.right[node] = equality
        return self.right[node]

    def _chain_rule(self, node: Node, levels: int) -> Goal:
        """The adjoint of a node against the sum over its readers.

        All forward nodes are opaque while the tangent is taken; then those that read ``node`` are
        unfolded, what only moves elements, and with ``levels`` what these read, too.
        """
        subject, claimed = self.subject, self.adjoints[node]
        pairs = [(one, self.adjoints[one]) for one in self.readers[node] if one in self.adjoints]
        outputs = [(one, cotangent) for one, cotangent in subject.outputs if one is node]
        fixed = {node, *(cotangent for _, cotangent in (*pairs, *outputs))}
        readers = [one for one, _ in pairs]
        leaves = {*fixed, *readers, *self._closing(readers, fixed, frozenset())}
        chain = Lowering(subject.graph, leaves)
        at = gradient_indices(node.shape)
        wrt = name_of(node)
        own = gradient(chain, outputs, wrt, at)
        reference = gradient(chain, pairs, wrt, at, through=[], bodies=True)
        if own is not None and reference is not None:
            reference = chain.pool.call("add", own, reference, dtype=own.dtype)
        opened = {one for one in self.readers[node] if one in self.own}
        if levels:
            opened |= {arg for one in opened for arg in one.args if arg in self.own}
        opened = (opened | self.moves) - self.opaque - {node}
        leaves |= self._closing([claimed, *readers, *opened.intersection(leaves)], fixed, opened)
        unfolded = {f"%{one.index}": one for one in leaves & opened}
        kept = leaves - opened
        plain = Lowering(subject.graph, kept, chain.pool)
        total = reference if reference is not None else own
        if total is not None:
            total = unfold(plain, total, unfolded)
        is_leaf = claimed in fixed or (self._closes(claimed) and claimed not in opened)
        hand = plain.element(claimed, at, body=not is_leaf)
        budget = max(NEAR_PIECE_WORK, READER_WORK * len(pairs))
        return self.goal(plain, hand, total, [chain], budget)

    def _closes(self, node: Node) -> bool:
        return node in self.own or node in self.opaque

    def _closing(
        self, roots: Iterable[Node], fixed: Collection[Node], opened: Collection[Node]
    ) -> set[Node]:
        """The leaves that a way down from some nodes ends at, and the opened ones on it."""
        found, seen, todo = set(), set(), list(roots)
        while todo:
            for arg in todo.pop().args:
                if arg in seen:
                    continue
                seen.add(arg)
                if arg in fixed or self._closes(arg):
                    found.add(arg)
                if arg not in found or arg in opened:
                    todo.append(arg)
        return found

    def goal(
        self,
        lowering: Lowering,
        left: Expr,
        right: Expr | None,
        others: Sequence[Lowering],
        budget: int,
    ) -> Goal:
        """Two expressions of one lowering, with what is known of the leaves."""
        for other in others:
            for forced in other.forced:
                if forced not in lowering.cuts:
                    lowering.cuts.add(forced)
                    lowering.forced.append(forced)
        leaves = lowering.leaves()
        intervals = {
            name: known for name, cut in leaves.items()
            if cut.dtype.is_float and (known := interval(self.ranges.of(cut))) is not None
        }  # fmt: skip
        return Goal(left, right, leaves, definitions(lowering), budget, intervals)


def _readers(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """The nodes that read each node, in order."""
    found: dict[Node, dict[Node, None]] = {}
    for node in nodes:
        found.setdefault(node, {})
        for arg in node.args:
            found.setdefault(arg, {})[node] = None
    return {node: list(readers) for node, readers in found.items()}


class Classes:
    """Nodes that are proved equal, each with the first of them."""

    def __init__(self, steps: Steps) -> None:
        self.steps, self.subject = steps, steps.subject
        self.graph = steps.subject.graph
        self.count = 0
        """Pairs that were proved equal."""
        self._first: dict[Node, Node] = {}
        self._why: dict[Node, Equality] = {}
        self._shared = _common(steps)
        """First nodes that stand for others, too, and what both programs have."""
        self._members: dict[object, _Members] = {}
        self._origins: dict[Node, Node] = {}
        """The nodes whose values the marks are made of."""
        self._failures = 0
        """Pairs that were not proved equal since one was."""
        self._points = _points(steps)
        self._balls: Point | None = None
        """The values of all nodes at one point in balls, once it was asked for them."""
        own = ancestors(self.subject.gradients.values())
        self._written = frozenset(own).difference(self.subject.forward.nodes)
        """The nodes of the backward as it is written."""

    def same(self, hand: Node, other: Node | None) -> Equality:
        """Are two nodes equal?  None is zero."""
        roots = [hand] if other is None else [hand, other]
        order = ancestors(roots)
        for node in order:
            self._place(node)
        found = [self._why[node] for node in order if node in self._why]
        left = self._first[hand]
        right = None if other is None else self._first[other]
        if left is right:
            return merge(found, "")
        last = self._equal(left, right, PIECE_WORK)
        if not last.equal:
            roots = [left] if right is None else [left, right]
            last = self._equal_above(roots, self._functions(roots), PIECE_WORK)
        return merge([*found, last], "")

    def _place(self, node: Node) -> None:
        """Find the class of a node whose arguments have theirs."""
        if node in self._first:
            return
        deadline.check()
        made = self._rebuilt(node)
        if made is not node and made in self._first:
            self._first[node] = self._first[made]
            self._shared.add(self._first[made])
            return
        first = made
        known = node in self.steps.own or node in self.steps.opaque or not node.dtype.is_float
        if not known and node.op != "input":
            first = self._proved(node, made) or made
        self._first[node] = self._first[made] = first
        if first is made and node.dtype.is_float:
            mark = self._mark(node)
            if mark is not None:
                self._members.setdefault(node.shape, _Members(len(mark))).add(first, mark)
                self._origins[first] = node

    def _rebuilt(self, node: Node) -> Node:
        """The node with the first of each class as its arguments."""
        args = [self._first[arg] for arg in node.args]
        if node in self.steps.opaque or all(map(operator.is_, args, node.args)):
            return node
        return self.graph.apply(node.op, *args, **node.attributes)

    def _proved(self, node: Node, made: Node) -> Node | None:
        """A first node that is proved equal; zero is one, too."""
        mark = self._mark(node)
        if mark is None or self._failures >= STEP_FAILURES:
            return None
        if self._vanishes(node):
            zero = self.graph.lift(0.0, made)
            if zero is not made and self._take(node, self._equal(made, None, NEAR_PIECE_WORK)):
                self._first[zero] = zero
                return zero
            return None
        members = self._members.get(node.shape)
        for one in () if members is None else members.like(mark)[:2]:
            other = self._origins[one]
            if node in self._written and other in self._written:
                continue  # these are to be found among adjoints, not among each other
            found = self._equal(made, one, NEAR_PIECE_WORK, self._depths(node, other))
            if self._take(node, found):
                self._shared.add(one)
                return one
        return None

    def _take(self, node: Node, found: Equality) -> bool:
        if found.equal:
            self.count += 1
            self._failures = 0
            self._why[node] = found
        else:
            self._failures += 1
        return found.equal

    # -- values at points

    def _mark(self, node: Node) -> Array | None:
        """Two numbers for each point that tell nodes of one shape apart; None where undefined."""
        found = []
        for values in self._points:
            value = values.get(node)
            if value is None or not np.all(np.isfinite(value)):
                return None
            with np.errstate(all="ignore"):
                found += [
                    float(np.sum(value * _weights(value.shape))),
                    float(np.sum(np.abs(value))),
                ]
        return np.asarray(found) if found else None

    def _vanishes(self, node: Node) -> bool:
        """Is it 0 at all points, but for rounding?  Products are, where a factor is."""
        if node.op in _FACTORS and any(number(self._first[arg]) == 0 for arg in node.args):
            return True
        for values in self._points:
            sizes = [_size(values[arg]) for arg in node.args if arg in values]
            if _size(values[node]) > _ZERO * _mass(node.op, sizes):
                return False
        return True

    def _depths(self, one: Node, other: Node) -> Iterator[tuple[int, bool]]:
        """How much of two nodes to unfold, while it is not known that they are apart.

        Balls are asked where they are known, where the first proof fails, or where doubles say
        that it will.
        """
        agree = self._zeros_agree(one, other)
        for tried, depth in enumerate(STEP_DEPTHS if agree else STEP_DEPTHS[:_SHALLOW]):
            asked = tried > 0 or self._balls is not None or not agree
            if asked and self._are_apart(one, other):
                return
            yield depth

    def _are_apart(self, one: Node, other: Node) -> bool:
        """Are two nodes certainly different at a point?"""
        if self._balls is None:
            self._balls = _in_balls(self.steps)
        known = one in self._balls and other in self._balls
        return known and bool(np.any(self._balls[one] != self._balls[other]))

    def _zeros_agree(self, one: Node, other: Node) -> bool:
        """Are the same elements exactly 0, at some point?

        If not, one of them may lack parts that are too small to be seen, as the first layers of a
        deep network are.
        """
        pairs = [(at[one], at[other]) for at in self._points if one in at and other in at]
        return not pairs or any(np.array_equal(a == 0, b == 0) for a, b in pairs)

    # -- proofs

    def _equal(
        self, left: Node, right: Node | None, budget: int, depths: Depths = STEP_DEPTHS
    ) -> Equality:
        """Are two first nodes equal?  With more and more below them unfolded."""
        roots = [left] if right is None else [left, right]
        found, tried = Equality(False), set[frozenset[Node]]()
        for depth, choices in depths:
            leaves = self._leaves(roots, depth, choices=choices)
            if leaves in tried:
                continue
            tried.add(leaves)
            found = self._equal_above(roots, leaves, budget)
            if found.equal:
                break
        return found

    def _equal_above(
        self, roots: Sequence[Node], leaves: frozenset[Node], budget: int
    ) -> Equality:  # fmt: skip
        """Are one or two first nodes equal, or zero, whatever the leaves are?"""
        with suppress(SymgradError):
            at = gradient_indices(roots[0].shape)
            exprs = self._elements(Lowering(self.graph, leaves), at, roots, leaves)
            parts = _parts(exprs, roots[0].shape)
            return merge((self._equal_at(part, roots, leaves, budget) for part in parts), "")
        return Equality(False)

    def _equal_at(
        self, at: Sequence[Dim], roots: Sequence[Node], leaves: frozenset[Node], budget: int
    ) -> Equality:
        """Are one or two nodes equal, or zero, at these indices?"""
        lowering = Lowering(self.graph, leaves)
        left, *right = self._elements(lowering, at, roots, leaves)
        other = right[0] if right else None
        return self.steps.equal(self.steps.goal(lowering, left, other, (), budget))

    def _elements(
        self, lowering: Lowering, at: Sequence[Dim], roots: Sequence[Node], leaves: frozenset[Node]
    ) -> list[Expr]:
        return [lowering.element(one, at, body=one in leaves) for one in roots]

    def _leaves(self, roots: Sequence[Node], depth: int, *, choices: bool) -> frozenset[Node]:
        """The nodes below that are opaque: forward's, and those that are proved equal to others.

        ``depth``: so many of these on a way down are unfolded; ``choices``: those of forward, too.
        """
        own, opaque = self.steps.own, self.steps.opaque
        found: set[Node] = set()
        above = dict.fromkeys(roots, 0)
        todo = deque(roots)
        while todo:
            node = todo.popleft()
            level = above[node]
            for arg in node.args:
                closes = arg in opaque or (
                    arg.dtype.is_float and get(arg.op).kind not in _MOVES
                    and (arg in own or arg in self._shared)
                )  # fmt: skip
                below = level + closes
                held = not choices and arg.op in _CHOICES and arg in own
                if arg in opaque or held or below > depth:
                    found.add(arg)
                elif below < above.get(arg, depth + 1):
                    above[arg] = below
                    todo.append(arg)
        opened = {node for node in above if node not in opaque}
        return frozenset((found - opened) | opaque)

    def _functions(self, roots: Sequence[Node]) -> frozenset[Node]:
        """The nearest nodes below that are no rational functions of what they read.

        Down to these everything is unfolded: `|u - v|^2` is then a polynomial in `|u|^2`, `|v|^2`
        and `u v`, while the root that is taken of it stays one atom.
        """
        opaque = self.steps.opaque
        found, seen, todo = set(opaque), set(roots), list(roots)
        while todo:
            for arg in todo.pop().args:
                if arg in seen or arg in opaque:
                    continue
                seen.add(arg)
                rational = arg.op in _RATIONAL or get(arg.op).kind in _MOVES
                if arg.dtype.is_float and not rational:
                    found.add(arg)
                else:
                    todo.append(arg)
        return frozenset(found)


def _parts(exprs: Iterable[Expr], shape: Sequence[Dim]) -> Iterator[tuple[Dim, ...]]:
    """Indices that cover a shape, between the places where the parts are joined that it has.

    ``exprs``: elements at the indices of the whole shape.
    """
    whole = gradient_indices(shape)
    known = postorder(exprs)
    cuts = [places(known, index, extent) for index, extent in zip(whole, shape, strict=True)]
    axis = max(range(len(shape)), key=lambda one: len(cuts[one]), default=0)
    if not shape or len(cuts[axis]) < 3:
        yield whole
        return
    for start, end in itertools.pairwise(cuts[axis]):
        extents = (*shape[:axis], end - start, *shape[axis + 1 :])
        inside = list(gradient_indices(extents))
        inside[axis] = start + inside[axis]
        yield tuple(inside)


class _Members:
    """First nodes of one shape, to be found by their marks: sorted by each number of these."""

    def __init__(self, length: int) -> None:
        self._nodes: list[Node] = []
        self._marks = np.empty((_ROOM, length))
        self._sorted: list[list[tuple[float, int]]] = [[] for _ in range(length)]

    def add(self, node: Node, mark: Array) -> None:
        """One more."""
        for ordered, value in zip(self._sorted, mark.tolist(), strict=True):
            insort(ordered, (value, len(self._nodes)))
        if len(self._nodes) == len(self._marks):
            self._marks = np.concatenate([self._marks, np.empty_like(self._marks)])
        self._marks[len(self._nodes)] = mark
        self._nodes.append(node)

    def like(self, mark: Array) -> list[Node]:
        """Those of nearly the same mark, the first that was added first."""
        largest = int(np.abs(mark).argmax())  # where few others are near by chance
        ordered, value = self._sorted[largest], float(mark[largest])
        low, high = sorted(value * (1 + sign * 2 * _CLOSE) for sign in (-1, 1))
        near = ordered[
            bisect_left(ordered, (low, -1)) : bisect_right(ordered, (high, len(ordered)))
        ]
        places = sorted(place for _, place in near)
        alike = _alike(self._marks[places], mark)
        return [
            self._nodes[place] for place, is_alike in zip(places, alike, strict=True) if is_alike
        ]


def _alike(marks: Array, mark: Array) -> Array:
    """Which of some marks are nearly this one."""
    scale = np.maximum(np.abs(marks), np.abs(mark))
    largest = np.abs(marks[:, 1::2]).max(axis=1, keepdims=True)
    return np.asarray(np.all(np.abs(marks - mark) <= _CLOSE * np.maximum(scale, largest), axis=1))


@lru_cache(maxsize=512)
def _weights(shape: tuple[int, ...]) -> Array:
    """Weights of elements, by which nodes of one sum are told apart."""
    return np.asarray(np.random.default_rng(shape).uniform(0.5, 1.5, shape))


def _mass(op: str, sizes: Sequence[float]) -> float:
    """How large a result of operands of these sizes is, if nothing cancels."""
    if op == "einsum":
        return math.prod(sizes)
    return 0.0 if op in _FACTORS else max(sizes, default=0.0)


def _size(value: Array) -> float:
    return float(np.max(np.abs(value), initial=0.0))


def _common(steps: Steps) -> set[Node]:
    """The nodes that both the backward and the adjoints of inputs have, but forward has not."""
    subject = steps.subject
    inputs = [steps.adjoints[one] for one in subject.by_name.values() if one in steps.adjoints]
    found = set(ancestors(subject.gradients.values())) & set(ancestors(inputs))
    return found - set(subject.forward.nodes)


def _program(steps: Steps) -> Evaluator:
    """The adjoints of the inputs."""
    inputs = steps.subject.by_name.values()
    return Evaluator([steps.adjoints[node] for node in inputs if node in steps.adjoints])


def _in_balls(steps: Steps) -> Point:
    """The values of all nodes at a point, in balls; none where these have no form.

    Nor where literals may be read as what they round: nodes that are equal then are apart here.
    """
    subject, program = steps.subject, _program(steps)
    values = [v for n in (*subject.everything.nodes, *program.nodes) for v in literal_of(n)]
    sizes = next(subject.sampler.size_choices(), None)
    at = None if sizes is None else subject.draw(sizes, 0)
    if at is None or subject.relations or any(map(literals.recognise, values)):
        return {}
    with suppress(DependencyError):
        from symgrad.proof.oracle.quotients import enclosed

        return enclosed(subject, at.point, program)
    return {}


def _points(steps: Steps) -> list[Point]:
    """The values of all nodes at some points."""
    subject, program = steps.subject, _program(steps)
    samples = sampled(subject, program, STEP_POINTS)
    return [*({**values, **found} for values, found in samples), *_scaled(subject, program)]


def _scaled(subject: Subject, program: Evaluator) -> Iterator[Point]:
    """Points with larger and with smaller numbers: masks that always hold tell nothing.

    Only where all is finite there, and nothing is declared that may not hold there.
    """
    sizes = next(subject.sampler.size_choices(), None)
    at = None if sizes is None or subject.assumptions else subject.draw(sizes, 0)
    if at is None or subject.stated.relations:
        return
    inputs = (node for node in subject.everything.nodes if node.op == "input")
    real = {str(node.attributes["name"]) for node in inputs if node.dtype.is_float}
    for factor in STEP_SCALES:
        feeds = {
            name: array * factor if name in real else array
            for name, array in at.point.doubles().items()
        }
        with suppress(DomainError):
            values = subject.everything.run(Double(), feeds, at.point.sizes)
            values = {**values, **program.run(Double(), feeds, at.point.sizes)}
            if all(map(is_finite, values.values())):
                yield values
