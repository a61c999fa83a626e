"""The staged decision: refute, or prove with the consent of the second oracle, or say why not.

In: a ``Subject``.  Out: a ``Judgement`` of each of its gradients.

1. doubles at points over many shapes: where a gradient looks wrong, 60 digits decide;
2. 60 digits at a few points: nothing is PROVED without this;
3. the normal form, with exact decimals, then with recognised constants; what is equal almost
   everywhere is tried where comparisons of backward hold exactly;
4. where a residual is left, points between thresholds and beyond the numbers of the code, then
   forty more, then UNDECIDED with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from symgrad import deadline
from symgrad.budgets import (
    EXCEPTIONAL_ELEMENTS,
    FOUND_POINTS,
    GRADIENT_WORK,
    MORE_POINTS,
    PRECISE_POINTS,
    SCREEN_POINTS,
)
from symgrad.deadline import TimeUp
from symgrad.errors import DependencyError, SymgradError
from symgrad.ir.function import Relation
from symgrad.ir.graph import Graph
from symgrad.proof.judge import equalities, nullsets, stated
from symgrad.proof.judge.approximations import is_beyond, left_out, smoothed
from symgrad.proof.judge.boundaries import Boundary
from symgrad.proof.judge.branches import Branches, branch_by_branch, parted, settled
from symgrad.proof.judge.defined import Definedness, outside
from symgrad.proof.judge.equalities import Solution
from symgrad.proof.judge.equality import (
    Equality,
    Hopeless,
    decide_equal,
    domains,
    facts_of,
    with_ranks,
)
from symgrad.proof.judge.fills import filled
from symgrad.proof.judge.goals import Goal
from symgrad.proof.judge.matrices import prepared
from symgrad.proof.judge.prove import Prover
from symgrad.proof.judge.smooth import smooth
from symgrad.proof.judge.supports import with_supports
from symgrad.proof.judge.tiny import has_limits, outside_of_tiny, without_inside
from symgrad.proof.normal.facts import Facts
from symgrad.proof.oracle.corners import certain, corners
from symgrad.proof.oracle.refute import (
    Counterexample,
    agree_in_balls,
    confirmed,
    is_lost,
    refute,
    suspicious,
    tolerance,
)
from symgrad.proof.oracle.roundings import solved
from symgrad.proof.oracle.sample import Point
from symgrad.proof.oracle.seek import seek
from symgrad.proof.oracle.sizes import impossible
from symgrad.proof.oracle.stated import moved
from symgrad.proof.oracle.subject import (
    Evaluation,
    NoPointError,
    NoSizesError,
    Subject,
    literal_of,
    precisely,
)
from symgrad.proof.oracle.thresholds import look
from symgrad.proof.oracle.values import DOUBLE_TOLERANCE, DomainError
from symgrad.proof.report.records import Condition
from symgrad.proof.report.rendering import worded
from symgrad.proof.report.verdict import Verdict, failure
from symgrad.proof.scalars import literals


class UnsolvedError(SymgradError):
    """Stated equalities with which nothing can be proved."""


@dataclass(frozen=True)
class Proving:
    """A prover, the facts it relies on, the conditions under which all that it proves holds.

    ``declared``: the facts about inputs alone, as they were before matrices were made ready.
    """

    prover: Prover
    conditions: tuple[Condition, ...]
    facts: Facts
    declared: Facts


def proving(subject: Subject, budget: int, total: int | None = None) -> Proving:
    """The prover of a subject; ``budget``: work for one normal form; ``total``: for all."""
    spent = 0
    declared = {known.name for known in subject.assumptions}
    own = [d for d in domains(subject.forward.nodes) if d.name not in declared]
    facts = facts_of(
        [*own, *subject.assumptions], subject.sampler.uses, subject.conditions,
        shapes={name: node.shape for name, node in subject.by_name.items()},
        recognise=subject.recognised, products=subject.products, written=subject.written,
    )  # fmt: skip

    known_relations = stated.relations(subject)
    solved = equalities.solution(subject, facts)
    if solved.problem:
        raise UnsolvedError(solved.problem)
    if solved and (place := equalities.degenerate(subject, solved, facts)):
        text = " and ".join(one.text for one in subject.stated.equalities)
        raise UnsolvedError(f"{text} holds where forward or backward is not smooth: {place}")
    related: dict[Graph, tuple[Sequence[Relation], Solution]] = {}
    hopeless: Hopeless = {}
    facts = stated.with_relations(facts, known_relations, {})

    def equal_under(goal: Goal, facts: Facts) -> Equality:
        nonlocal spent
        if total is not None and spent > total:
            return Equality(False, reason="the work budget for this repair ran out")
        work = min(budget, goal.budget or budget)
        facts = replace(
            facts, intervals={**facts.intervals, **goal.intervals}, computed=goal.computed
        )
        own = next((n.graph for n in goal.leaves.values()), subject.graph)
        if own not in related:
            related[own] = moved(known_relations, own, None), solved.moved(own)
        found = decide_equal(
            goal.hand, goal.reference, facts, goal.leaves, goal.define, budget=work,
            graph=subject.graph, outputs=[node for node, _ in subject.outputs],
            relations=related[own][0], solved=related[own][1], hopeless=hopeless,
        )  # fmt: skip
        spent += found.work
        return found

    ready = prepared(subject, facts, equal_under)
    known = with_ranks(ready.facts, ready.subject.everything.nodes)
    known = with_supports(ready.subject, known)
    prover = Prover(ready.subject, lambda goal: equal_under(goal, known), known)
    said = [Condition("domain", str(domain), code=domain.code) for domain in own]
    said += stated.exclusions(subject)
    return Proving(prover, (*said, *ready.conditions), known, facts)


@dataclass(frozen=True)
class Judgement:
    """The verdict on one gradient in one case.

    ``recognised``: rounded constants among the literals were read as what they round; ``solved``:
    what literals of backward were read as beside these.
    ``smooth``: boundaries of forward at which it is differentiable, by this gradient.
    ``passed`` and ``failed``: the sizes of the points that agreed and that did not.
    ``along``: what was judged in place of the subject, where only some changes of an input count.
    """

    verdict: Verdict
    reason: str = ""
    method: str = ""
    conditions: tuple[Condition, ...] = ()
    counterexample: Counterexample | None = None
    recognised: bool = False
    solved: Mapping[float, literals.Constant] = field(default_factory=dict)
    smooth: frozenset[Boundary] = frozenset()
    passed: tuple[Mapping[str, int], ...] = ()
    failed: tuple[Mapping[str, int], ...] = ()
    along: Subject | None = None


def beside(judgements: Iterable[Judgement], printed: Collection[Condition] = ()) -> str:
    """Where proved gradients are defined, and what they leave out, unless it is printed already."""
    found = [
        worded(condition)
        for one in judgements if one.verdict is Verdict.PROVED
        for condition in one.conditions
        if condition.kind in ("domain", "nonzero", nullsets.KIND) and condition not in printed
    ]  # fmt: skip
    return "; ".join(dict.fromkeys(found))


_PROVED = Verdict.PROVED


@dataclass
class Evidence:
    """What was seen of one gradient: the points that agreed and those that did not."""

    passed: list[Point] = field(default_factory=list)
    failed: list[Point] = field(default_factory=list)


def judge(
    subject: Subject, *, budget: int = GRADIENT_WORK, until_refuted: bool = False,
    screen: int = SCREEN_POINTS, total: int | None = None,
) -> dict[str, Judgement]:  # fmt: skip
    """Judge every gradient of a subject; ``until_refuted``: of a wrong one the first alone.

    ``screen``: at how many points doubles are looked at first.  ``total``: work for all normal
    forms together.  Of sizes that no case can have, everything holds.  Where judging itself fails,
    each gradient is judged alone; the one that it fails for is UNDECIDED.
    """
    try:
        return _judged(subject, budget, until_refuted, screen, total)
    except DependencyError:
        raise
    except Exception as error:  # whatever it is, it is no verdict
        if len(subject.gradients) <= 1:
            undecided = Judgement(Verdict.UNDECIDED, reason=failure(error))
            return dict.fromkeys(subject.gradients, undecided)
    again = partial(judge, budget=budget, until_refuted=until_refuted, screen=screen, total=total)
    return {name: again(subject.changed([name]))[name] for name in subject.gradients}


def _of(sizes: Mapping[str, int]) -> str:
    return f" of {', '.join(f'{name} = {size}' for name, size in sizes.items())}" if sizes else ""


def _judged(
    subject: Subject, budget: int, until_refuted: bool, screen: int, total: int | None
) -> dict[str, Judgement]:
    if impossible(subject.conditions):
        nothing = Judgement(Verdict.PROVED, method="no sizes meet the conditions")
        return dict.fromkeys(subject.gradients, nothing)
    try:
        with deadline.step("points were looked for at which forward is defined"):
            subject.settle()
    except NoSizesError as error:
        return _at_all_sizes(subject, str(error), budget, total)
    except (NoPointError, TimeUp) as error:
        undecided = Judgement(Verdict.UNDECIDED, reason=str(error))
        return dict.fromkeys(subject.gradients, undecided)
    return _Decision(subject, budget, screen, total).run(until_refuted)


def _at_all_sizes(
    subject: Subject, reason: str, budget: int, total: int | None
) -> dict[str, Judgement]:  # fmt: skip
    """What holds for all sizes holds for those of a case, none of which can be tried.

    ``reason``: why not.  The graph of the case is judged without its conditions on sizes.
    """
    loose = subject.changed(conditions=()) if subject.conditions else None
    try:
        if loose is not None:
            loose.settle()
    except (NoPointError, TimeUp):
        loose = None
    found = {} if loose is None else _Decision(loose, budget, total=total).run()
    undecided = Judgement(Verdict.UNDECIDED, reason=reason)
    wrong = replace(undecided, reason=f"{reason}; at other sizes the gradient would be wrong")
    return {
        name: one if (one := found.get(name, undecided)).verdict is Verdict.PROVED
        else wrong if one.verdict is Verdict.REFUTED else undecided
        for name in subject.gradients
    }  # fmt: skip


class _Decision:
    """One run of the stages over one subject."""

    def __init__(
        self, subject: Subject, budget: int, screen: int = SCREEN_POINTS, total: int | None = None
    ) -> None:
        self.subject, self.budget, self.screen, self.total = subject, budget, screen, total
        self.evidence = {name: Evidence() for name in subject.gradients}
        self.found: dict[str, Judgement] = {}
        self.unsettled: dict[str, list[Point]] = {}
        """Where gradients differ in 60 digits, though no enclosure shows it."""

    def run(self, until_refuted: bool = False) -> dict[str, Judgement]:
        try:
            self._run(until_refuted)
        except TimeUp as error:
            for name in self._open():
                self._undecided(name, str(error))
        return {name: self.found[name] for name in self.subject.gradients if name in self.found}

    def _run(self, until_refuted: bool) -> None:
        with deadline.step("doubles were compared at points"):
            self._screen()
            for name in self.evidence:
                self._refute([name])
                if until_refuted and name in self.found:
                    return
        with deadline.step("difference quotients were compared in 60 digits"):
            doubtful = self._consult([name for name in self._open() if name not in self.unsettled])
            doubtful.update(self.unsettled)
            if doubtful:
                self._reread(doubtful)
        self._prove(self._open())
        for name in [name for name, one in self.found.items() if one.verdict is not _PROVED]:
            with deadline.step(f"the gradient of {name} was proved with masks of -inf"):
                self._prove_filled(name)
        if has_limits(self.subject):
            for name in [name for name, one in self.found.items() if one.counterexample]:
                with deadline.step(f"the gradient of {name} was proved beyond a limit"):
                    self._prove_outside(name)

    def _open(self) -> list[str]:
        return [name for name in self.subject.gradients if name not in self.found]

    # -- 1: doubles

    def _screen(self) -> None:
        count = self.screen + len(self.subject.sampler.symbols)
        for number, sizes in enumerate(islice(self.subject.sampler.size_choices(), count)):
            at = self.subject.draw(sizes, number)
            if at is not None:
                self._look(at, self.evidence)
        if all(mode == "real" for mode in self.subject.sampler.modes.values()):
            return
        for at in self._anywhere():
            self._look(at, self.evidence)

    def _anywhere(self) -> Iterable[Evaluation]:
        """Points of the whole domain, where the settled modes sample a part of it only."""
        sampler = self.subject.sampler
        settled = dict(sampler.modes)
        sampler.modes.update(dict.fromkeys(settled, "real"))
        try:
            smallest = sampler.small_choices(1)
            for number in range(4):
                at = self.subject.draw(smallest[0], 50 + number) if smallest else None
                if at is not None:
                    yield at
        finally:
            sampler.modes.update(settled)

    def _look(self, at: Evaluation, names: Iterable[str]) -> None:
        names = list(names)
        joint = {name: self.subject.direction(name, at) for name in names}
        try:
            fine = bool(self.subject.compare(at, joint).gap <= DOUBLE_TOLERANCE)
        except DomainError:
            return
        for name in names:
            wrong = not fine and (len(names) == 1 or suspicious(self.subject, at, name))
            seen = self.evidence[name]
            (seen.failed if wrong else seen.passed).append(at.point)

    def _refute(self, names: Iterable[str]) -> None:
        for name in list(names):
            failed = self.evidence[name].failed
            wrong = any(self._is_wrong(point, name) for point in failed[:4])
            if wrong and not self._refuted(name, failed):
                self.unsettled[name] = failed

    def _is_wrong(self, point: Point, name: str) -> bool:
        """Is a gradient wrong at a point, as its literals are written and as they may be read?"""
        if not confirmed(self.subject, point, name):
            return False
        again = self._recognising([name])
        return again is None or confirmed(again, point, name)

    def _refuted(self, name: str, points: list[Point]) -> bool:
        """Is there a counterexample?  Then the gradient is REFUTED by it."""
        return self._refuted_with(name, refute(self.subject, name, points), points)

    def _refuted_with(self, name: str, found: Counterexample | None, points: list[Point]) -> bool:
        if found is None:
            return False
        excuse = self._excuse(found)
        if excuse:
            self.found[name] = Judgement(
                Verdict.UNDECIDED,
                reason=f"it is not the derivative at a point{_of(found.point.sizes)} (yours "
                f"{found.hand_text}, true {found.true_text}), but {excuse}",
                recognised=self.subject.recognised,
            )
            return True
        seen = self.evidence[name]
        self.found[name] = Judgement(
            Verdict.REFUTED,
            counterexample=found,
            recognised=self.subject.recognised,
            passed=tuple(point.sizes for point in seen.passed),
            failed=tuple(point.sizes for point in points),
        )
        return True

    def _excuse(self, found: Counterexample) -> str:
        """Why a difference is too small to refute anything; empty where it is not."""
        if is_lost(self.subject, found):
            return "float64 rounds by more than that"
        near = abs(found.hand - found.true) <= DOUBLE_TOLERANCE * abs(found.true)
        read = smoothed(self.subject) if near else None
        if read is not None and is_beyond(read, found.point):
            return "softplus differs by as much from the smooth function above its threshold"
        return ""

    # -- 2: 60 digits

    def _consult(self, names: list[str]) -> dict[str, list[Point]]:
        """The second oracle at a few points; the gradients that it contradicts, with the points.

        A gradient with which it never agrees is UNDECIDED, whatever the normal form would say.
        """
        doubtful: dict[str, list[Point]] = {}
        agreed = dict.fromkeys(names, 0)
        for number, sizes in enumerate(self._precise_sizes()):
            open_names = [name for name in names if agreed[name] < PRECISE_POINTS]
            if not open_names:
                break
            at = self.subject.draw(sizes, number)
            if at is None:
                continue
            right, wrong = self._compared(at.point, open_names)
            for name in right:
                agreed[name] += 1
            for name in wrong:
                agreed[name] = PRECISE_POINTS
                doubtful.setdefault(name, []).append(at.point)
        for name in names:
            if not agreed[name]:
                self._undecided(name, "the difference quotient agreed in 60 digits at no point")
        return doubtful

    def _precise_sizes(self) -> Iterable[dict[str, int]]:
        """Small shapes first: 60-digit evaluation is expensive."""
        sampler = self.subject.sampler
        smallest = sampler.small_choices(40)
        chosen = [sizes for sizes in smallest if len(set(sizes.values())) > 1] or smallest
        middle = len(chosen) // 2
        yield from chosen[middle : middle + 2]
        yield from islice(sampler.size_choices(), 6)
        yield from smallest[:4]

    def _compared(self, point: Point, names: list[str]) -> tuple[list[str], list[str]]:
        """The gradients that the difference quotient confirms, and those that it refutes.

        Where the two derivatives disagree (a kink, a pole) a gradient is in neither list.
        """
        with precisely():
            if agree_in_balls(self.subject, point, names):
                return names, []
            try:
                at = self.subject.evaluate_precise(point)
                joint = {name: self.subject.direction(name, at) for name in names}
                if self.subject.compare(at, joint).gap <= tolerance(self.subject):
                    return names, []
                right = [
                    name for name in names
                    if self.subject.compare(at, {name: joint[name]}).gap <= tolerance(self.subject)
                ]  # fmt: skip
            except DomainError:
                return [], []
        others = [name for name in names if name not in right]
        return right, [name for name in others if confirmed(self.subject, point, name)]

    def _reread(self, doubtful: Mapping[str, list[Point]]) -> None:
        """Gradients that are nearly right: with recognised constants they may be exactly so."""
        names = list(doubtful)
        again = self._recognising(names)
        if again is not None:
            other = _Decision(again, self.budget)
            doubtful_still = other._consult(names)
            other._prove([name for name in names if name not in doubtful_still])
            for name, judgement in other.found.items():
                if judgement.verdict is Verdict.PROVED:
                    self.found[name] = judgement
        for name in names:
            if name not in self.found:
                self.evidence[name].failed.extend(doubtful[name])
                refuted = name not in self.unsettled and self._refuted(name, doubtful[name])
                if not refuted and not self._proved_as_rounded(name, doubtful[name]):
                    self._not_apart(name, doubtful[name][0])

    def _proved_as_rounded(self, name: str, points: list[Point]) -> bool:
        """Is it right with the numbers that its literals have to be, if these are near enough?"""
        old = self.subject
        if old.recognised or old.read_as or old.solved:
            return False
        for recognised in (True, False):
            found = solved(old.changed([name], recognised=recognised), name, points)
            if found is None:
                continue
            again = old.changed([name], recognised=recognised)
            again.solved = found
            other = _Decision(again, self.budget)
            if other._consult([name]):
                continue
            other._prove([name])
            if other.found[name].verdict is Verdict.PROVED:
                self.found[name] = other.found[name]
                return True
        return False

    def _not_apart(self, name: str, point: Point) -> None:
        """A gradient that differs, but by no more than what its literals may round."""
        nodes = self.subject.everything.nodes
        constants = (value for node in nodes for value in literal_of(node))
        rounded = [repr(v) for v in dict.fromkeys(constants) if self.subject.slack(v)]
        said = f"it is not the derivative at a point{_of(point.sizes)}, in 60 digits; "
        said += (
            f"what {' and '.join(rounded)} may be the rounding of is enough to explain that"
            if rounded else "no enclosure of both sides shows it"
        )  # fmt: skip
        self.found[name] = Judgement(
            Verdict.UNDECIDED, reason=said, recognised=self.subject.recognised
        )

    def _recognising(self, names: Iterable[str]) -> Subject | None:
        """The same subject with rounded constants, and approximations, read as what they are of.

        None where there are none.
        """
        old = self.subject
        constants = (n for n in old.everything.nodes if n.op == "constant" and n.dtype.is_float)
        known = (literals.recognise(node.attributes["value"].value) for node in constants)
        if old.recognised or old.read_as or old.solved:
            return None
        again = old.changed(names, recognised=True)
        rounded = bool(any(known) or again.products)
        return smoothed(again if rounded else old.changed(names)) or (again if rounded else None)

    # -- 3 and 4: the normal form

    def _prove(self, names: list[str]) -> None:
        if not names:
            return
        try:
            ready = proving(self.subject, self.budget, self.total)
        except UnsolvedError as error:
            for name in names:
                self._look_harder(name, str(error))
            return
        defined: Definedness | None = None
        for name in names:
            if name in self.found:
                continue
            with deadline.step(f"the gradient of {name} was proved"):
                proved_by, equality = ready, ready.prover.prove(name)
                if not equality.equal and len(self.subject.gradients) > 1:
                    proved_by, equality = self._alone(name, equality)
            branches = self._in_branches(name, equality)
            if branches is not None and not equality.equal and not branches.demanding:
                equality = Equality(True, "branch by branch", conditions=branches.conditions)
            if equality.equal:
                with deadline.step(f"it was asked where the gradient of {name} is right"):
                    defined = defined or Definedness(self.subject, proved_by.declared)
                    self._proved(proved_by, name, equality, defined, branches)
                continue
            with deadline.step(f"a counterexample for {name} was looked for"):
                if not self._proved_smooth(name):
                    self._look_harder(name, equality.reason)
            if self.found[name].verdict is Verdict.UNDECIDED:
                self._look_in_branches(name)
            if self.found[name].verdict is Verdict.UNDECIDED:
                with deadline.step(f"the gradient of {name} was proved outside of small regions"):
                    self._prove_outside(name)

    def _alone(self, name: str, reason: Equality) -> tuple[Proving, Equality]:
        """A gradient piece by piece, without the others, whose nodes may be taken for its own.

        So it is proved beside others where it is proved by itself.
        """
        alone = proving(self.subject.changed([name]), self.budget, self.total)
        found = alone.prover.prove_in_pieces(name)
        return alone, found if found.equal else reason

    def _in_branches(self, name: str, proved: Equality) -> Branches | None:
        """A gradient branch by branch, if it is not proved at once, or demands a domain."""
        if proved.equal and all(one.kind != "domain" for one in proved.conditions):
            return None

        def prove(leaf: Subject) -> Equality:
            ready = proving(leaf, self.budget, self.total)
            found = ready.prover.prove(name)
            return replace(found, conditions=(*ready.conditions, *found.conditions))

        with deadline.step(f"the gradient of {name} was proved branch by branch"):
            try:
                return branch_by_branch(self.subject, name, prove, proved=proved.equal)
            except (SymgradError, UnsolvedError):
                return None

    def _proved(
        self, ready: Proving, name: str, whole: Equality, defined: Definedness,
        branches: Branches | None = None,
    ) -> None:  # fmt: skip
        """What the normal form shows to be equal is PROVED, unless it is wrong in a corner.

        ``branches``: where what it demands is demanded.
        """
        equality = (branches and settled(branches, whole)) or whole
        if self._wrong_at_sizes(equality.doubtful, name) or self._wrong_in_a_corner(name):
            return
        if defined.nowhere(name):
            self._undecided(name, "it is not shown that backward is defined for any input")
            return
        almost = self._on_null_sets(ready.prover, name, equality)
        if almost and branches is not None and branches.whole and not branches.demanding:
            almost = nullsets.beside_kinks(self.subject, branches.edges)
        if almost is None or (almost and self._proved_as_read(name, len(almost))):
            return
        found = (*ready.conditions, *equality.conditions)
        said = (*(one for one in found if not defined.always(one)), *almost)
        self.found[name] = Judgement(
            Verdict.PROVED,
            method=f"{equality.method}, almost everywhere" if almost else equality.method,
            conditions=(
                *said,
                *self._defined(defined, name, said, equality, whole, branches),
                *self._readings(name),
            ),
            recognised=self.subject.recognised,
            solved=self.subject.solved,
            smooth=self._smooth(ready.prover, name, (*found, *almost)),
            passed=tuple(point.sizes for point in self.evidence[name].passed),
        )

    def _defined(
        self, defined: Definedness, name: str, said: Collection[Condition], equality: Equality,
        whole: Equality, branches: Branches | None,
    ) -> list[Condition]:  # fmt: skip
        """Where backward is not defined, but for what is printed; in a region for what it is of."""
        if branches is None or not branches.region or equality is whole:
            return defined.conditions(name, said, equality.known)
        region = branches.region
        inside = defined.conditions(name, (*said, *whole.conditions), whole.known, within=region)
        return [*inside, *defined.conditions(name, said, beside=region)]

    def _smooth(
        self, prover: Prover, name: str, conditions: Collection[Condition]
    ) -> frozenset[Boundary]:  # fmt: skip
        """Where forward chooses, and is differentiable all the same."""
        if prover.subject.graph is not self.subject.graph or self.subject.stated.equalities:
            return frozenset()
        fixed = nullsets.fixed(self.subject, name)  # of these, what is not shown is printed
        return smooth(self.subject, name, prover.equal, prover.atoms, conditions) | {*fixed}

    def _proved_as_read(self, name: str, most: int) -> bool:
        """Is it right on more null sets where rounded constants are read as what they round?"""
        found = self._as_read(name)
        if found is None:
            return False
        if sum(one.kind in (nullsets.KIND, "kink") for one in found.conditions) >= most:
            return False
        self.found[name] = found
        return True

    def _as_read(self, name: str) -> Judgement | None:
        """The proof with constants and approximations read as what they are of; None for none."""
        again = self._recognising([name])
        if again is None:
            return None
        other = _Decision(again, self.budget)
        if other._consult([name]):
            return None
        other._prove([name])
        found = other.found[name]
        return found if found.verdict is Verdict.PROVED else None

    def _readings(self, name: str) -> Iterable[Condition]:
        """What was read as something else, and what is left out where that may matter."""
        readings = (Condition("reading", said) for said in self.subject.read_as)
        return (*readings, *left_out(self.subject, name))

    def _proved_smooth(self, name: str) -> bool:
        """Is it right for the smooth function of which forward is a documented approximation?"""
        if self.subject.read_as or smoothed(self.subject) is None:
            return False
        found = self._as_read(name)
        if found is not None:
            self.found[name] = found
        return found is not None

    def _prove_filled(self, name: str) -> None:
        """Is it proved with -inf for the large negative numbers that mask logits?"""
        read = filled(self.subject.changed([name]))
        found = None if read is None else self._proved_of(read, name)
        if found is not None:
            self.found[name] = found

    def _proved_of(self, subject: Subject, name: str) -> Judgement | None:
        """The judgement of another subject, if a gradient is proved there."""
        other = _Decision(subject, self.budget)
        if not other._consult([name]):
            other._prove(other._open())
        found = other.found.get(name)
        return found if found is not None and found.verdict is _PROVED else None

    def _prove_outside(self, name: str) -> None:
        """Is it proved outside of the regions that thresholds next to 0 leave?"""
        outside = outside_of_tiny(self.subject, name)
        if outside is None:
            return
        found = self._proved_of(outside.subject, name)
        if found is not None:
            said = (*outside.regions, *without_inside(found.conditions, outside.regions))
            self.found[name] = replace(found, conditions=tuple(dict.fromkeys(said)))

    def _on_null_sets(self, prover: Prover, name: str, proved: Equality) -> list[Condition] | None:
        """The null sets on which a gradient that is right elsewhere is not shown to be right.

        None where it is wrong on one of them, and REFUTED.
        """
        found = nullsets.doubtful(prover.subject, name)
        if prover.subject.stated.equalities:
            found = nullsets.every(prover.subject, name)
        known = outside(prover.subject) if found else None
        if known is not None:
            found = {one: meeting for one, meeting in found.items() if not known.excludes(one)}
        if not found:
            return []
        if prover.subject.stated.equalities:
            named = nullsets.named(prover.subject, found)
            return list(
                dict.fromkeys(
                    nullsets.said(one, meeting, nullsets.KIND)
                    for one, meeting in found.items()
                    if one not in named
                )
            )
        cuts = [[*prover.contractions, *prover.atoms]]
        if prover.contractions and not prover.deep:
            cuts.append(prover.atoms)
        left = nullsets.unproved(
            prover.subject, name, found, prover.equal, cuts, proved.conditions
        )  # fmt: skip
        fixed = nullsets.fixed(prover.subject, name)
        almost, named = [], nullsets.named(prover.subject, left) - {*fixed}
        for boundary, meeting in left.items():
            point, value = boundary.point, boundary.value
            seen = look(prover.subject, name, point, value, spread=boundary in fixed)
            if seen.wrong is not None:
                self.evidence[name].failed.append(seen.wrong.point)
                self._refuted_with(name, seen.wrong, [seen.wrong.point])
                return None
            if boundary not in named and not nullsets.is_settled(
                prover.subject, boundary, prover.equal, prover.atoms
            ):
                almost.append(
                    nullsets.said(boundary, meeting, "kink" if seen.kinked else nullsets.KIND)
                )
        return list(dict.fromkeys(almost))

    def _wrong_in_a_corner(self, name: str) -> bool:
        """Is what is right almost everywhere wrong where a comparison of backward holds?"""
        for point in corners(self.subject, name):
            if certain(self.subject, point, name) and self._is_wrong(point, name):
                if not self._refuted_at(point, name):
                    self._not_apart(name, point)
                return True
        return False

    def _wrong_at_sizes(self, doubtful: Iterable[Mapping[str, int]], name: str) -> bool:
        """Is what is right elsewhere wrong at one of these sizes?"""
        sampler = self.subject.sampler
        usual = next(iter(sampler.small_choices(1)), {})
        for sizes in doubtful:
            whole = {**usual, **sizes}
            if {*whole} != {*sampler.symbols} or not sampler.allows(whole):
                continue
            if math.prod(whole.values()) > EXCEPTIONAL_ELEMENTS:
                continue
            for number in range(3):
                at = self.subject.draw(whole, number)
                if at is None or not suspicious(self.subject, at, name):
                    continue
                if self._refuted_at(at.point, name):
                    return True
        return False

    def _refuted_at(self, point: Point, name: str) -> bool:
        """Is a gradient wrong at one point?  Then it is REFUTED there."""
        if not self._is_wrong(point, name):
            return False
        self.evidence[name].failed.append(point)
        return self._refuted(name, [point])

    def _look_harder(self, name: str, reason: str) -> None:
        """Sought points, then forty more, the last few in 60 digits, before giving up."""
        if any(self._refuted_at(p, name) for p in islice(seek(self.subject, name), FOUND_POINTS)):
            return
        sizes = list(islice(self.subject.sampler.size_choices(), MORE_POINTS))
        for number in range(MORE_POINTS if sizes else 0):
            at = self.subject.draw(sizes[number % len(sizes)], 100 + number)
            if at is None:
                continue
            doubtful = number % 8 == 7 or suspicious(self.subject, at, name)
            if doubtful and self._refuted_at(at.point, name):
                return
        self._undecided(name, reason)

    def _look_in_branches(self, name: str) -> None:
        """Is it wrong in a branch?  There, what is not taken need not have a derivative."""
        with suppress(SymgradError, UnsolvedError, NoPointError):
            for branch in parted(self.subject, name):
                other = _Decision(branch, self.budget, self.screen, self.total)
                other._screen()
                other._refute([name])
                found = other.found.get(name)
                if found is not None and found.counterexample is not None:
                    self.found[name] = found
                    return

    def _undecided(self, name: str, reason: str) -> None:
        tried = len(self.evidence[name].passed)
        said = f"no difference was found at {tried} or more points, but no proof either: {reason}"
        self.found[name] = Judgement(
            Verdict.UNDECIDED, reason=said, recognised=self.subject.recognised
        )  # fmt: skip
