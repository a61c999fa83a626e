"""The backward of the backward: is what PyTorch makes of it the derivative of the backward?

In: a Function traced with histories.  Out: a ``Finding``.

Differentiating a backward again, PyTorch follows saved inputs and outputs back to the inputs.  An
intermediate that forward computed and kept is a constant to it, and so is whatever was detached;
a Function that backward applies is differentiated by its own backward.  The derivative that this
gives is judged like a hand-written gradient, the forward being the backward.

A backward that is right everywhere may choose, at single values, a branch with another derivative
(``where(x == 0, 0, 2 * x)``): where something changes in it is excepted.  [rule: second order]
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from symgrad.budgets import MOST_KINKS
from symgrad.ir.assume import Assumption
from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.ir.graph import Node, ancestors
from symgrad.proof.judge.boundaries import Boundary, Meeting, kinked, over_the_reals
from symgrad.proof.judge.decide import Judgement, beside, judge
from symgrad.proof.judge.nullsets import said
from symgrad.proof.judge.opinions import Opinions
from symgrad.proof.judge.protocol import digest
from symgrad.proof.oracle.stated import moved
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.repair.suggest import spelled, writer_for
from symgrad.proof.report.records import Condition, Finding
from symgrad.proof.report.verdict import Verdict, worst
from symgrad.proof.second.blame import blamed
from symgrad.proof.second.history import Recorded, stripped
from symgrad.proof.words.code import NoSpelling
from symgrad.proof.words.relations import spelled as spelled_values
from symgrad.proof.words.snippet import counterexample_report

NAME = "second order"
_DEFINED = Condition("domain", "forward is defined")
_KEPT = "all that backward reads keeps its dependence on the inputs"
ONCE = "is marked once_differentiable: differentiating it again raises an error, as in PyTorch"


def second_order(
    traced: Sequence[FunctionGraphs],
    declared: Sequence[Assumption],
    *,
    trusted: bool,
    budget: int,
    printed: Collection[Condition] = (),
    opinions: Opinions | None = None,
) -> Finding:
    """Judge the derivative of the backward by the inputs and by the cotangents.

    ``traced``: the Function, and its variants for other ``needs_input_grad``, with histories.
    ``trusted``: its first derivative is proved.  ``printed``: conditions that are said already.
    ``opinions``: hear what is proved, too.
    """
    if not traced:
        return Finding(NAME, Verdict.UNDECIDED, "it was not traced with histories")
    constant = {assumption.name for assumption in declared if assumption.kind == "constant"}
    found = Finding(NAME, Verdict.PROVED, _KEPT)
    seen: set[tuple[object, ...]] = set()
    excepted: dict[str, None] = {}
    bent: dict[str, None] = {}
    for graphs in traced:
        wanted = [name for name in graphs.asked if name not in constant]
        for case in graphs.cases:
            bent |= dict.fromkeys(_bends(case, wanted, printed))
            whole = opinions if graphs is traced[0] else None
            one = _case(case, wanted, declared, trusted, budget, seen, printed, opinions, whole)
            if one is not None and (one.verdict > found.verdict or found.text == _KEPT):
                found = one
            if one is not None and one.verdict is Verdict.PROVED and one.text:
                excepted[one.text] = None
    if found.verdict is Verdict.PROVED:
        said = [*(excepted or [found.text]), *_resting(traced, printed)]
        if bent:
            shown = [*bent][:MOST_KINKS]
            more = len(bent) - len(shown)
            rest = [f"and {more} more like these"] if more else []
            said.append(f"almost everywhere, not where {' or '.join([*shown, *rest])}")
        return Finding(NAME, Verdict.PROVED, "; ".join(said), limits=said != [_KEPT])
    return found


def _resting(traced: Sequence[FunctionGraphs], printed: Collection[Condition]) -> list[str]:
    """What the traces with histories take to be so, but for what is said already."""
    known = {one.text for one in printed}
    asked = [str(one) for graphs in traced for case in graphs.cases for one in case.assumed]
    return [f"if {one}" for one in dict.fromkeys(asked) if one not in known]


def _bends(
    case: FunctionCase, wanted: Sequence[str], printed: Collection[Condition]
) -> Iterator[str]:
    """Where something changes in backward itself, but for what is said already.

    What forward gave is differentiated by backward again, which is right.
    """
    outputs = {*case.outputs}
    known = {one.text.partition(" (yours ")[0] for one in printed}
    roots = [one.node for one in case.gradients if one.node is not None and one.input in wanted]
    for node in ancestors(roots, follow=lambda n: () if n in outputs else over_the_reals(n)):
        for boundary in kinked(node):
            text = _said(boundary, node)
            if boundary.inputs and not known & {text, text.replace(" == 0", " > 0")}:
                yield text


def _said(boundary: Boundary, node: Node) -> str:
    for one, other in ((boundary.value, boundary.point), (boundary.point, boundary.value)):
        if isinstance(one, Node) and isinstance(other, Node) and one.op in _EXTREMES:
            with suppress(NoSpelling):
                shown = spelled_values(other).text
                return f"the {_EXTREMES[one.op]} of {shown} is reached more than once"
    return said(boundary, Meeting(node), "null set").text


_EXTREMES = {"amax": "maximum", "amin": "minimum"}


def _case(
    case: FunctionCase,
    wanted: Sequence[str],
    declared: Sequence[Assumption],
    trusted: bool,
    budget: int,
    seen: set[tuple[object, ...]],
    printed: Collection[Condition],
    opinions: Opinions | None,
    whole: Opinions | None,
) -> Finding | None:
    """What is found in one case; None where there is nothing to judge, or it is known already.

    ``whole``: hears what holds by the chain rule; that of variants is a part of it.
    """
    if case.record is None or case.record.reason:
        reason = "it was not traced with histories" if case.record is None else case.record.reason
        return Finding(NAME, Verdict.UNDECIDED, f"the history could not be followed: {reason}")
    if case.problem is not None:
        return Finding(NAME, Verdict.UNDECIDED, "not judged, since backward failed")
    recorded = Recorded(case, wanted, trusted=trusted)
    nothing = not recorded.markers and not recorded.overwritten
    if nothing and whole is None:
        return None
    key = (*map(str, case.conditions), *wanted, *map(digest, recorded.gradients.values()))
    if key in seen:
        return None
    seen.add(key)
    if nothing:
        names = [name for name in _names(recorded.inputs) if name in wanted]
        twice = _Twice.of(recorded, [*names, *_names(recorded.cotangents)], declared)
        if any(condition.kind == "literal" for condition in printed):
            right = judge(twice.subject, budget=budget)  # as which literals are read
        else:
            proved = Judgement(Verdict.PROVED, conditions=(_DEFINED,))  # by the chain rule
            right = dict.fromkeys(twice.subject.gradients, proved)
        _hear(whole, case, twice, right)
        return None
    failing = _failing_rule(recorded)
    if failing is not None:
        return failing
    twice = _Twice.of(recorded, _affected(recorded, wanted), declared)
    late = _written_late(recorded)
    if not twice.subject.gradients:
        return late
    judged = judge(twice.subject, budget=budget, until_refuted=True)
    verdict = worst(judgement.verdict for judgement in judged.values())
    name = next(name for name, one in judged.items() if one.verdict is verdict)
    if late is not None and verdict is not Verdict.REFUTED:
        return late
    if verdict is Verdict.PROVED:
        _hear(opinions, case, twice, judged)
    found = _finding(recorded, twice, name, judged[name])
    return replace(found, text=found.text or beside(judged.values(), printed))


def _hear(
    opinions: Opinions | None, case: FunctionCase, twice: _Twice, judged: Mapping[str, Judgement]
) -> None:
    """An opinion on what is proved, where one is asked for."""
    if opinions is None:
        return
    sizes = " and ".join(map(str, case.conditions))
    where = f" (second order{f', {sizes}' if sizes else ''})"
    opinions.on_gradients(twice.subject, judged, where, of="derivative of backward by")


def _affected(recorded: Recorded, wanted: Sequence[str]) -> list[str]:
    """What is differentiated by, as far as PyTorch's record differs from the computation there."""
    affected = frozenset().union(*(marker.depends for marker in recorded.markers))
    return [
        *(name for name in _names(recorded.inputs) if name in affected and name in wanted),
        *(name for name in _names(recorded.cotangents) if name in affected),
    ]


def _written_late(recorded: Recorded) -> Finding | None:
    """A value that is needed again, but has been written over."""
    node = next(iter(recorded.read_late), None)
    if node is None:
        return None
    where = f" ({node.location})" if node.location is not None else ""
    said = (
        f"`{node.label}`{where} is read and then written in place: PyTorch may refuse to "
        "differentiate backward again (a variable needed for gradient computation has been "
        "modified by an inplace operation)"
    )
    return Finding(NAME, Verdict.UNDECIDED, said)


def _names(nodes: Iterable[Node]) -> list[str]:
    return [str(node.attributes["name"]) for node in nodes]


def _failing_rule(recorded: Recorded) -> Finding | None:
    """A Function that backward applies and that cannot be differentiated."""
    for marker in recorded.markers:
        rule = marker.rule
        if rule is not None and rule.once:
            said = f"the backward of {rule.name}, applied in backward ({rule.location}), {ONCE}"
            return Finding(NAME, Verdict.REFUTED, said)
        if rule is not None and rule.problem is not None:
            said = f"the backward of {rule.name}, applied in backward, fails: {rule.problem.what}"
            return Finding(NAME, Verdict.UNDECIDED, said)
    return None


@dataclass(frozen=True)
class _Twice:
    """The backward as a forward, with the derivative that PyTorch would find for it.

    ``adjoint``: of each node of ``recorded``; ``new``: where its nodes are in the subject.
    """

    subject: Subject
    adjoint: dict[Node, Node]
    new: dict[Node, Node]

    def text(self, node: Node) -> str:
        """The formula of a node of ``recorded``."""
        own = self.new[node]
        return spelled(writer_for(self.subject), own) or own.op

    @staticmethod
    def of(recorded: Recorded, names: Sequence[str], declared: Sequence[Assumption]) -> _Twice:
        graph, outputs = recorded.graph, []
        for name, gradient in recorded.gradients.items():
            outputs.append((gradient, graph.input(f"grad_grad_{name}", gradient.type)))
        adjoint = recorded.derivative(outputs)
        by_name = {str(n.attributes["name"]): n for n in (*recorded.inputs, *recorded.cotangents)}
        found = {name: adjoint.get(by_name[name], graph.lift(0.0, by_name[name])) for name in names}
        inputs = [*recorded.all_inputs, *recorded.cotangents]
        roots = [*inputs, *(node for pair in outputs for node in pair), *found.values()]
        roots += [node for m in recorded.markers for node in (m.node, adjoint.get(m.node))
                  if node is not None]  # fmt: skip
        plain, new = stripped(roots)
        subject = Subject(
            plain, [new[node] for node in inputs],
            [(new[node], new[cotangent]) for node, cotangent in outputs],
            {name: new[node] for name, node in found.items()},
            conditions=recorded.case.conditions, assumptions=declared,
            relations=moved(recorded.case.relations, plain, None),
        )  # fmt: skip
        return _Twice(subject, adjoint, new)


def _finding(recorded: Recorded, twice: _Twice, name: str, judgement: Judgement) -> Finding:
    if judgement.verdict is Verdict.UNDECIDED:
        return Finding(NAME, Verdict.UNDECIDED, f"by {name}: {judgement.reason}")
    if judgement.verdict is Verdict.PROVED:
        return Finding(NAME, Verdict.PROVED)
    found = judgement.counterexample
    reasons = blamed(recorded, twice.adjoint, name, found, twice.text)
    said = "; ".join(reasons) or f"the derivative by {name} is wrong"
    if found is None:
        return Finding(NAME, Verdict.REFUTED, said)
    element = f"the derivative of backward by {found.element}"
    shown = counterexample_report(twice.subject, found, element)
    said += f" (at {shown})"
    return Finding(NAME, Verdict.REFUTED, said, shown)
