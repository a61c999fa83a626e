"""What is wrong with a gradient, in words, and what to write instead.

In: a ``Subject``, the name of a refuted gradient, what backward returned.  Out: ``Diagnosis``.

Numbers at a few points suggest an explanation.  An explanation with code is given only when the
code is proved.  Tried in order: the shape; a missing factor; two exchanged gradients; a
transposition; an intermediate that is treated as a constant; a term that is missing, superfluous or
has the wrong sign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np

from symgrad.budgets import REPAIR_CONSTANTS, REPAIR_OFFERS, REPAIR_SECONDS
from symgrad.deadline import TimeUp, check, limited
from symgrad.errors import SymgradError
from symgrad.ir.function import FunctionCase, Gradient
from symgrad.ir.graph import Node, ancestors
from symgrad.proof.oracle.adjoints import derived_gradients
from symgrad.proof.oracle.refute import Counterexample
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.repair.search import Fix, complexity, fixes, shape_fixes, without_dead_terms
from symgrad.proof.repair.suggest import (
    Derived,
    Offer,
    Paste,
    avoidable,
    derived_code,
    derived_nodes,
    proved_under,
    spelled,
    spelled_in,
    writer_for,
)
from symgrad.proof.repair.trials import Trials
from symgrad.proof.repair.witness import Witness
from symgrad.proof.report.records import Condition
from symgrad.proof.report.verdict import failure

_LONGEST_BLAMED = 60
"""Characters of the code of a blamed node; of a longer one, and of one of several statements, the
name of the op is printed."""


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong and what is right.

    ``words``: what is wrong.  ``suggestion``: proved code; ``conditions``: all that is printed
    beside that proof.  ``derived``: the true gradient; ``derived_but``: where it is not.
    """

    words: tuple[str, ...] = ()
    suggestion: str | None = None
    derived: str | None = None
    conditions: tuple[Condition, ...] = ()
    derived_but: str = ""


def diagnose(
    subject: Subject, name: str, gradient: Gradient | None, case: FunctionCase, *, budget: int,
    paste: Paste | None = None, counterexample: Counterexample | None = None,
    repairs: bool = True,
) -> Diagnosis:  # fmt: skip
    """What is wrong with a gradient and how to write it.

    ``paste``: tries code in the user's own text; without it, code is proved by itself.
    ``counterexample``: no code is offered, or called the true gradient, that is wrong there.
    ``repairs``: is code offered?
    """
    witness = Witness(subject, counterexample)
    shelf = _Shelf(subject, witness, partial(_offered, subject, name, case, budget, paste))
    true = _true(subject, name, witness)
    but = "" if not true or witness.agrees(true[-1].node) else witness.excluded()
    words: list[str] = []
    try:
        with limited(REPAIR_SECONDS):
            trials = _explain(subject, name, case, shelf, true, words, paste)
            for one in true if repairs else ():
                if not trials.usable or trials.node_is_true(one.node):
                    _taken(shelf, trials, one.node, one.copies)
            words += _summed_down(subject, name, gradient)
    except TimeUp as error:
        check()  # was it the limit of the verdict?
        words.append(f"no more was found: {failure(error)}")
    offer = shelf.best if repairs else None
    if paste is not None and offer is not None:
        words += paste.take(name, offer)
    code, conditions = (None, ()) if offer is None else (offer.code, offer.conditions)
    return Diagnosis(
        tuple(words), code, derived_code(subject, true, paste, case.aliases), conditions, but
    )


def _true(subject: Subject, name: str, witness: Witness) -> list[Derived]:
    """The derived gradients that are true at the counterexample; all of one kind if none is."""
    plain = derived_nodes(subject, name, plain=True)
    true = [one for one in plain if witness.agrees(one.node)]
    if not true:
        try:
            with limited(REPAIR_SECONDS):
                found = derived_nodes(subject, name)
                true = [one for one in found if witness.agrees(one.node)]
        except TimeUp:
            check()  # was it the limit of the verdict?
    return true or plain


def _explain(
    subject: Subject, name: str, case: FunctionCase, shelf: _Shelf, true: Sequence[Derived],
    words: list[str], paste: Paste | None,
) -> Trials:  # fmt: skip
    """Add to the words what is wrong, and to the shelf what that shows to be right."""
    trials = Trials(subject, name)
    if true and shelf.witness.agrees(true[-1].node):
        trials.add(shelf.witness.evaluated(true[-1].node))
    if trials.usable and not (
        name in subject.gradients and trials.node_is_true(subject.gradients[name])
    ):
        found = [*islice(_candidates(subject, name, trials), REPAIR_OFFERS)]
        right = _right_parts(subject, name) if len(found) > 1 else frozenset()
        for fix in sorted(
            found, key=lambda fix: (not right.isdisjoint(fix.blamed[:1]), complexity(fix.node))
        ):
            if _taken(shelf, trials, fix.node):
                words.append(_words(subject, fix, case, paste))
                break
        if not words:
            words += _explanations(subject, name, trials, paste)
    return trials


def _right_parts(subject: Subject, name: str) -> frozenset[Node]:
    """What other gradients are computed from whose numbers are right: it is blamed last."""
    right = [
        node for other, node in subject.gradients.items()
        if other != name and Trials(subject, other).node_is_true(node)
    ]  # fmt: skip
    return frozenset(ancestors(right))


def _taken(
    shelf: _Shelf, trials: Trials, node: Node, copies: Mapping[Node, Node] | None = None
) -> bool:
    """Is a node the right gradient, with or without its terms that are 0 everywhere?"""
    short = shelf.take(without_dead_terms(node, trials) if trials.usable else None, copies)
    return shelf.take(node, copies) or short


class _Shelf:
    """Offers of one gradient: the first with the fewest conditions that can be avoided."""

    def __init__(
        self, subject: Subject, witness: Witness, offer: Callable[..., Offer | None]
    ) -> None:
        self.subject, self.witness, self.offer = subject, witness, offer
        self.best: Offer | None = None
        self.avoidable = 0

    def take(self, node: Node | None, copies: Mapping[Node, Node] | None = None) -> bool:
        """Is a node the right gradient?  It is not asked where no better offer is possible."""
        if node is None or (self.best is not None and not self.avoidable):
            return False
        found = self.offer(node, copies) if self.witness.agrees(node) else None
        if found is None:
            return False
        count = len(avoidable(self.subject, found.conditions)) + found.alone
        if self.best is None or count < self.avoidable:
            self.best, self.avoidable = found, count
        return True


def _offered(
    subject: Subject, name: str, case: FunctionCase, budget: int, paste: Paste | None,
    node: Node, copies: Mapping[Node, Node] | None = None,
) -> Offer | None:  # fmt: skip
    """The code of a node, once it is proved.  ``copies``: where the node's graph has others."""
    if paste is not None:
        return paste.offer(
            case, name, partial(spelled_in, subject, node, copies), subject.sampler.modes
        )
    writer = writer_for(subject, copies, [] if copies is not None else _named(subject, node))
    code = spelled(writer, node)
    under = None if code is None else proved_under(subject, name, node, budget, copies)
    return None if code is None or under is None else Offer(code, under)


def _words(subject: Subject, fix: Fix, case: FunctionCase, paste: Paste | None) -> str:
    """What was wrong, with the code of the blamed nodes put in, and the line."""
    codes = []
    scope = None if paste is None else paste.scope(case)
    for node in fix.blamed:
        code = None if scope is None else spelled_in(subject, node, None, scope)
        named = [*_named(subject, node), *([node] if node.name else [])]
        code = (
            code or spelled(writer_for(subject, None, named, paste, case.aliases), node) or node.op
        )
        short = len(code) <= _LONGEST_BLAMED and "\n" not in code
        codes.append(f"`{code if short else node.op}`")
    known = fix.blamed[0].location if fix.blamed else None
    line = f" (line {known.line})" if known is not None and fix.words.count("{}") else ""
    return fix.words.format(*codes) + line


def _named(subject: Subject, node: Node) -> list[Node]:
    """The nodes of backward that have names and that ``node`` is computed from."""
    forward = set(subject.forward.nodes)
    inner = (part for part in ancestors([node]) if part.name and part not in forward)
    return [part for part in inner if part is not node]


def _candidates(subject: Subject, name: str, trials: Trials) -> Iterator[Fix]:
    if name in subject.gradients:
        yield from fixes(subject, name, trials)
    elif subject.returned.get(name) is not None:
        yield from shape_fixes(subject, name, subject.returned[name], trials)


def _explanations(
    subject: Subject, name: str, trials: Trials, paste: Paste | None
) -> list[str]:  # fmt: skip
    """The first explanation without code of its own, if there is one."""
    held, zero = partial(_held_constant, paste=paste), partial(_zero, paste=paste)
    found = (explain(subject, name, trials) for explain in (zero, _exchanged, held))
    return [said for said in found if said is not None][:1]


def _summed_down(subject: Subject, name: str, gradient: Gradient | None) -> list[str]:
    """A wrong gradient of another shape than its input: symgrad sums it, as torch does."""
    if gradient is None or gradient.returned is None or gradient.problem is not None:
        return []
    wanted, given = subject.by_name[name].shape, gradient.returned.shape
    if tuple(wanted) == tuple(given):
        return []
    shapes = [f"[{', '.join(map(str, shape))}]" for shape in (given, wanted)]
    return [f"it is returned as {shapes[0]}, which is summed down to {shapes[1]} silently"]


def _zero(subject: Subject, name: str, trials: Trials, paste: Paste | None = None) -> str | None:
    own = "symgrad" if paste is not None and paste.functional != paste.module else "sg"
    own_nodes = [subject.gradients[name]] if name in subject.gradients else []
    reads = {*ancestors(own_nodes)} & {given for _, given in subject.outputs}
    if trials.hand and not reads and all(not np.any(hand) for hand in trials.hand):
        return (
            f"the gradient of {name} is left out, as if {name} had no influence: return it, or "
            f'declare that none is asked for (@{own}.assume({name}="constant"), or in the shell '
            f"--assume {name}=constant)"
        )
    return None


def _exchanged(subject: Subject, name: str, trials: Trials) -> str | None:
    for other, node in subject.gradients.items():
        if other != name and trials.node_is_true(node):
            return f"gradients exchanged: what you return for {other} is the gradient of {name}"
    return None


def _held_constant(
    subject: Subject, name: str, trials: Trials, paste: Paste | None = None
) -> str | None:  # fmt: skip
    """Is the hand-written gradient the true one with one intermediate held constant?

    Not where it is wrong at single values alone: what is held would be missing elsewhere, too.
    """
    plain = _gradient_without(subject, name)
    if plain is not None and trials.equals_hand(partial(trials.evaluate, plain)):
        return (
            "where it is wrong it is the derivative of the branch that a choice takes, "
            "not that of forward"
        )
    if trials.right_elsewhere:
        return None
    forward = subject.forward.nodes
    outputs = {node for node, _ in subject.outputs}
    candidates = [
        node for node in forward
        if node.dtype.is_float and node.op not in ("input", "constant", "size")
        and node not in outputs and subject.by_name[name] in ancestors([node])
    ]  # fmt: skip
    candidates.sort(key=lambda node: (node.name is None, node.index))
    for node in candidates[:REPAIR_CONSTANTS]:
        adjoint = _gradient_without(subject, name, node)
        if adjoint is not None and trials.equals_hand(partial(trials.evaluate, adjoint)):
            label = node.name or spelled(writer_for(subject, paste=paste), node) or node.op
            return f"you treat `{label}` as a constant: its dependence on {name} is missing"
    return None


def _gradient_without(subject: Subject, name: str, *held: Node) -> Node | None:
    """The gradient of an input, derived with some nodes held constant."""
    try:
        return derived_gradients(subject, held)[2].get(subject.by_name[name])
    except SymgradError:
        return None
