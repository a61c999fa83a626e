"""Is a hand-written gradient the true one?  By the normal form, in stages.

In: a ``Subject`` and the name of an input.  Out: ``Equality``.

1. *cut*: the results of forward contractions are opaque leaves: what holds for arbitrary values
   of them holds for theirs, and nothing blows up;
2. *whole*: everything unfolded down to the inputs;
3. *piece by piece*: where a backward node looks like the adjoint of a forward node, that is
   proved first, and then both are opaque: the cost grows with the depth no worse than linearly
   in the number of pieces.  By the chain rule, the adjoint of a node is the sum over the nodes
   that read it of their adjoints times their partials;
4. *step by step*: the adjoints that the op records give are proved one by one, and the backward is
   compared with them node by node (``steps``).

All of them are tried with a small budget before the first two get the whole one: what one of them
proves at once may cost another one minutes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

from symgrad import deadline
from symgrad.budgets import (
    DEEP_CONTRACTIONS,
    DEEP_NODES,
    NEAR_FAILURES,
    NEAR_PIECE_WORK,
    PIECE_WORK,
    QUICK_PROOF_WORK,
    READER_WORK,
)
from symgrad.errors import SymgradError
from symgrad.index.lower import Lowering
from symgrad.ir.dim import Dim
from symgrad.ir.expr import Expr
from symgrad.ir.graph import Node
from symgrad.proof.judge.equality import Equality, merge
from symgrad.proof.judge.goals import Equal, Goal, definitions, is_atom, opaque_atoms, unfold
from symgrad.proof.judge.reference import gradient, gradient_indices
from symgrad.proof.judge.steps import Steps
from symgrad.proof.normal.facts import Facts
from symgrad.proof.oracle.adjoints import matches
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.verdict import failure

Stage = Callable[[str, "int | None"], Equality]


class Prover:
    """Proves the gradients of one subject; what is found for one serves the others."""

    def __init__(self, subject: Subject, equal: Equal, facts: Facts | None = None) -> None:
        self.subject = subject
        self.equal = equal
        self.facts = facts or Facts()
        self.contractions = [node for node in subject.forward.nodes if node.op == "einsum"]
        self.atoms = opaque_atoms(subject.everything.nodes)
        self.in_pieces = False
        """Was the last proof one by pieces?  Then the next one is likely to be."""
        self._pieces: dict[bool, Pieces] = {}
        self._answers = Answers()

    @property
    def deep(self) -> bool:
        """Would unfolding the forward as a whole blow up?"""
        count = len(self.subject.forward.nodes)
        return len(self.contractions) >= DEEP_CONTRACTIONS or count >= DEEP_NODES

    def prove(self, name: str) -> Equality:
        """Is the gradient of ``name`` the true one?"""
        if name not in self.subject.gradients:
            return Equality(False, reason=f"there is no gradient of {name}")
        cut, whole = ("cut at contractions", self._cut), ("whole", self._whole)
        pieces, steps = ("piece by piece", self._by_pieces), ("step by step", self._by_steps)
        near = ("piece by piece", self._by_near_pieces)
        unfolded = [cut, whole] if self.contractions else [whole]
        deep = self.deep or self.in_pieces
        soon = ("piece by piece", self._by_near_pieces_soon)
        first = [steps] if deep and self._is_adjoint(name) else [soon, steps]
        quick = [*first, near, pieces, unfolded[0]] if deep else [*unfolded, steps, pieces]
        reasons = []
        exhausted = set()
        for label, stage in quick:
            at_once = stage == self._whole and self.facts.decided  # pieces do not see a whole row
            found = self._attempt(label, stage, name, None if at_once else QUICK_PROOF_WORK)
            if found.equal:
                self.in_pieces = label in (pieces[0], steps[0])
                return found
            reasons.append(found.reason)
            if found.exhausted:
                exhausted.add(label)
        for label, stage in unfolded[:1] if self.deep else unfolded:
            if label in exhausted:
                found = self._attempt(label, stage, name, None)
                if found.equal:
                    return found
                reasons.insert(0, found.reason)
        return Equality(False, reason=next((r for r in reasons if r), "a difference is left"))

    def prove_in_pieces(self, name: str) -> Equality:
        """Is it the true one, piece by piece?"""
        return self._attempt("piece by piece", self._by_pieces, name, None)

    def _attempt(self, label: str, stage: Stage, name: str, budget: int | None) -> Equality:
        try:
            with deadline.step(label):
                found = stage(name, budget)
        except SymgradError as error:
            return Equality(False, reason=failure(error))
        if not found.equal:
            return found
        method = f"{label}: {found.method}" if found.method else label
        return replace(found, method=method)

    def _cut(self, name: str, budget: int | None) -> Equality:
        return self.equal(self.goal(name, [*self.contractions, *self.atoms], budget))

    def _whole(self, name: str, budget: int | None) -> Equality:
        return self.equal(self.goal(name, self.atoms, budget))

    def _by_steps(self, name: str, _: int | None) -> Equality:
        return self._in_steps.prove(name)

    @cached_property
    def _in_steps(self) -> Steps:
        return Steps(self.subject, self.equal, self.atoms, self.facts)

    def _is_adjoint(self, name: str) -> bool:
        """Is the gradient the very node that the steps prove, as of autograd within backward?"""
        with suppress(SymgradError):
            own = self._in_steps.adjoints.get(self.subject.by_name[name])
            return own is self.subject.gradients[name]
        return False

    def _by_near_pieces_soon(self, name: str, budget: int | None) -> Equality:
        """As far as a part of the time goes: step by step may be faster."""
        try:
            with deadline.part(_SOON):
                return self._by_near_pieces(name, budget)
        except deadline.TimeUp:
            self._pieces.pop(False, None)
            deadline.check()
            return Equality(False)

    def _by_near_pieces(self, name: str, _: int | None) -> Equality:
        return self._in_pieces(far=False).prove(name)

    def _by_pieces(self, name: str, _: int | None) -> Equality:
        return self._in_pieces(far=True).prove(name)

    def _in_pieces(self, *, far: bool) -> Pieces:
        if far not in self._pieces:
            opaque = [*self.contractions, *self.atoms]
            answers = self._answers
            self._pieces[far] = Pieces(self.subject, self.equal, opaque, answers, far=far)
        return self._pieces[far]

    def goal(self, name: str, cuts: Sequence[Node], budget: int | None = None) -> Goal:
        """The hand-written gradient and the reference, with some forward nodes opaque."""
        subject = self.subject
        lowering = Lowering(subject.graph, cuts)
        at = gradient_indices(subject.by_name[name].shape)
        reference = gradient(lowering, subject.outputs, name, at, through=cuts)
        hand = lowering.element(subject.gradients[name], at)
        return Goal(hand, reference, lowering.leaves(), definitions(lowering), budget)


_SOON = 0.2
"""The part of the time that is left that pieces may take before the steps are tried."""


class Answers:
    """What near goals came to, one a state, an adjoint and a candidate for it.

    A state is what was proved before, in order: the goals are made of that alone.
    """

    def __init__(self) -> None:
        self._states: dict[tuple[int, Node, Node], int] = {}
        self._found: dict[tuple[int, str, Node], Equality] = {}

    def state(self, before: int, node: Node, candidate: Node) -> int:
        """The state once the adjoint of a node is proved as well."""
        return self._states.setdefault((before, node, candidate), len(self._states) + 1)

    def get(self, asked: tuple[int, str, Node], ask: Callable[[], Equality]) -> Equality:
        """The answer, asked for the first time."""
        if asked not in self._found:
            self._found[asked] = ask()
        return self._found[asked]


class Pieces:
    """Adjoints of forward nodes proved one by one, from the outputs to the inputs.

    ``far``: where the nodes that read one are not enough, unfold all but contractions.
    ``answers``: what was asked before is not asked again.
    """

    def __init__(
        self, subject: Subject, equal: Equal, contractions: Sequence[Node],
        answers: Answers | None = None, *, far: bool = True,
    ) -> None:  # fmt: skip
        self.far = far
        self._answers = answers or Answers()
        self._state = 0
        self.subject, self.equal = subject, equal
        self.opaque = tuple(contractions)
        self.proved: dict[Node, Node] = {}
        self._places: dict[Node, int] = {}
        self._users: dict[Node, list[Node]] = {}
        for user in subject.forward.nodes:
            for arg in dict.fromkeys(user.args):
                self._users.setdefault(arg, []).append(user)
        self.found: list[Equality] = []
        self.failures = 0
        candidates = matches(subject)
        order = [
            node
            for node in reversed(subject.forward.nodes)
            if node in candidates and not is_atom(node)
        ]
        self.known = tuple(order)
        """Forward nodes that a near goal reads as they are."""
        self._cuts = sorted({*self.opaque, *self.known}, key=lambda cut: cut.index)
        for node in order:
            if not far and self.failures > NEAR_FAILURES:
                break
            self._try(node, candidates[node])

    def _try(self, node: Node, candidates: Sequence[Node]) -> None:
        for candidate in candidates[:2]:
            equality = self._equal(node, f"%{node.index}", candidate)
            if equality.equal:
                self._places[node] = len(self.proved)
                self.proved[node] = candidate
                self._state = self._answers.state(self._state, node, candidate)
                self.found.append(equality)
                return
            self.failures += 1

    def prove(self, name: str) -> Equality:
        """The gradient of an input, given the adjoints proved so far."""
        node = self.subject.by_name[name]
        last = self._equal(node, name, self.subject.gradients[name])
        return merge([*self.found, last], f"{len(self.found) + 1} pieces")

    def _equal(self, node: Node, wrt: str, hand: Node) -> Equality:
        """First with only the readers of ``node`` unfolded, then with all but contractions."""
        near = self._answers.get((self._state, wrt, hand), lambda: self._near(node, wrt, hand))
        return (
            near
            if near.equal or not self.far
            else self.equal(self._goal(node, wrt, hand, near=False))
        )

    def _near(self, node: Node, wrt: str, hand: Node) -> Equality:
        """With only the readers unfolded: of a chain of contractions the last alone, at first.

        With ``s <- s @ w`` each state reads the one before: all of them written out are too long.
        """
        readers = self._readers(node)
        read = {arg for reader in readers for arg in reader.args}
        chained = {reader for reader in readers if reader.op == "einsum" and reader in read}
        if chained:
            found = self.equal(self._goal(node, wrt, hand, near=True, closed=chained))
            if found.equal:
                return found
        return self.equal(self._goal(node, wrt, hand, near=True))

    def _goal(
        self, node: Node, wrt: str, hand: Node, *, near: bool, closed: Collection[Node] = ()
    ) -> Goal:
        """The adjoint of ``node`` as the sum over its readers, against a backward node.

        The chain rule is applied with many nodes as leaves.  Then some are unfolded again, since
        a backward may use ``y`` for ``tanh(x)``: where ``near``, the nodes that read ``node``,
        but for those of ``closed``; otherwise all that are no contractions.
        """
        adjoints = set(self.proved.values())
        readers = self._readers(node)
        leaves = {*self.proved, *self.opaque, *adjoints}
        if near:
            leaves.update(self.known)
        if node.op != "input":
            leaves.add(node)
        chain = Lowering(self.subject.graph, leaves)
        at = gradient_indices(node.shape)
        reference = self._chain_rule(chain, node, wrt, at, readers)
        kept = leaves - set(readers).difference(closed) if near else {*self.opaque, *adjoints}
        plain = Lowering(self.subject.graph, kept, chain.pool)
        if reference is not None:
            unfolded = {f"%{leaf.index}": leaf for leaf in leaves.difference(kept)}
            reference = unfold(plain, reference, unfolded)
        claimed = plain.element(hand, at, body=hand not in adjoints)
        for forced in chain.forced:
            if forced not in plain.cuts:
                plain.cuts.add(forced)
                plain.forced.append(forced)
        budget = max(NEAR_PIECE_WORK if near else PIECE_WORK, READER_WORK * len(readers))
        return Goal(claimed, reference, plain.leaves(), definitions(plain), budget)

    def _readers(self, node: Node) -> list[Node]:
        """The proved nodes that read ``node`` with no other proved node in between."""
        found: dict[Node, None] = {}
        todo, seen = list(self._users.get(node, ())), set[Node]()
        while todo:
            user = todo.pop()
            if user in self.proved:
                found[user] = None
            elif user not in seen:
                seen.add(user)
                todo.extend(self._users.get(user, ()))
        return sorted(found, key=self._places.__getitem__)

    def _chain_rule(
        self, lowering: Lowering, node: Node, wrt: str, at: Sequence[Dim], readers: Sequence[Node]
    ) -> Expr | None:
        """The sum over outputs and readers; a leaf that is not proved is differentiated through.

        Only leaves that come after ``node`` can depend on it.
        """
        held = set(self.proved) | {node}
        after = bisect_right(self._cuts, node.index, key=lambda cut: cut.index)
        through = set(self._cuts[after:]) - held
        pairs = [(reader, self.proved[reader]) for reader in readers]
        own = gradient(lowering, self.subject.outputs, wrt, at, through=through)
        others = gradient(lowering, pairs, wrt, at, through=through, bodies=True)
        if own is None or others is None:
            return others if own is None else own
        return lowering.pool.call("add", own, others, dtype=own.dtype)
