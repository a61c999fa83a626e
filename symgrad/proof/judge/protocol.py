"""Theorems of the protocol: what holds of every correct backward, whatever it computes.

In: the cases of a traced Function, their subjects and judgements.  Out: ``Finding`` records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import islice

import numpy as np

from symgrad.errors import is_limit
from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.movement import bare
from symgrad.ops.record import get
from symgrad.proof.judge.decide import Judgement, beside
from symgrad.proof.oracle.numbers import Array
from symgrad.proof.oracle.sample import Point
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.oracle.values import DomainError
from symgrad.proof.report.records import Condition, CounterexampleReport, Finding
from symgrad.proof.report.rendering import worded
from symgrad.proof.report.verdict import Verdict

_CARRY = frozenset(("expand", "reshape", "permute", "slice", "unslice", "sum", "cumsum", "cast",
                    "concat", "diagonal", "neg"))  # fmt: skip
_CLOSE = 1e-9
VARIANTS = "needs_input_grad variants agree"
LINEAR = "linear in the cotangents"
ANSWERS = "right whatever it asks about its call"


def findings(
    cases: Sequence[FunctionCase], subjects: Sequence[Subject],
    judged: Sequence[Mapping[str, Judgement]],
) -> list[Finding]:  # fmt: skip
    """The protocol theorems of the cases in which backward ran, worst case first in each.

    There is none of what could not be run: of no case, or of gradients that cannot be used.
    """
    ran = [case for case in cases if case.problem is None]
    if not ran:
        return []
    found = [_linear(subjects, judged)] if any(judged) else []
    found += [*_writes(ran), _shapes(ran)]
    if len(ran) == len(cases):
        return found
    said = "where backward runs"
    return [replace(one, text="; ".join(filter(None, (said, one.text)))) for one in found]


# -- linear in the cotangents


def _linear(
    subjects: Sequence[Subject], judged: Sequence[Mapping[str, Judgement]]
) -> Finding:  # fmt: skip
    """The gradients are linear as they are built, or as derivatives that they are proved to be.

    The latter is known where the proofs hold: what these leave out is said.
    """
    name = LINEAR
    if all(structurally_linear(subject) for subject in subjects):
        return Finding(name, Verdict.PROVED)
    every = [j for found in judged for j in found.values()]
    if all(j.verdict is Verdict.PROVED and j.along is None for j in every):
        return Finding(name, Verdict.PROVED, _left_out(judged))
    for subject, known in zip(subjects, judged, strict=False):
        for gradient in subject.gradients:
            at = _nonlinear_at(subject, gradient, known.get(gradient))
            if at is not None:
                sizes = ", ".join(f"{k} = {v}" for k, v in at.sizes.items())
                said = f"the gradient of {gradient} is not linear"
                return Finding(name, Verdict.REFUTED, said + (f" (at {sizes})" if sizes else ""))
    return Finding(name, Verdict.UNDECIDED, "no difference was found, but there is no proof")


def _left_out(judged: Sequence[Mapping[str, Judgement]]) -> str:
    """Where proved gradients may not be linear, in words; empty where they are everywhere."""
    found = [c for one in judged for j in one.values() for c in j.conditions if c.excepted]
    said = dict.fromkeys(map(worded, found))
    return f"almost everywhere, {'; '.join(said)}" if said else ""


def structurally_linear(subject: Subject) -> bool:
    """Is every gradient built from the cotangents by linear ops alone?"""
    cotangents = {cotangent for _, cotangent in subject.outputs}
    return built_linearly(subject.everything.nodes, cotangents, subject.gradients.values())


def built_linearly(nodes: Iterable[Node], given: Set[Node], results: Iterable[Node]) -> bool:
    """Are results built from the given nodes by linear ops alone?  ``nodes``: in their order."""
    degree: dict[Node, int] = {}
    for node in nodes:
        if node in given:
            degree[node] = 1
        elif not any(degree.get(arg, 0) for arg in node.args):
            degree[node] = 0
        elif _is_linear(node, [degree[arg] for arg in node.args]):
            degree[node] = 1
        else:
            return False
    return all(degree.get(node, 0) == 1 or is_zero(node) for node in results)


def _is_linear(node: Node, degrees: Sequence[int]) -> bool:
    """Is the node linear in the arguments of degree 1, of which there is at least one?"""
    if not node.dtype.is_float:
        return False
    if node.op in _CARRY:
        return all(degrees) or len(degrees) == 1
    if node.op in ("add", "sub"):
        return all(d or is_zero(arg) for d, arg in zip(degrees, node.args, strict=True))
    if node.op == "where":
        return degrees[0] == 0 and all(
            d == 1 or is_zero(arg) for d, arg in zip(degrees[1:], node.args[1:], strict=True)
        )
    if node.op in ("mul", "einsum"):
        return sum(degrees) == 1
    if node.op in ("div", "index", "index_add"):
        return degrees[0] == 1 and not any(degrees[1:])
    return sum(degrees) == 1 and degrees.index(1) in get(node.op).linear


def is_zero(node: Node) -> bool:
    """Is it the constant 0, of whatever shape?"""
    origin = bare(node)
    return origin.op == "constant" and origin.attributes["value"].value == 0


def _nonlinear_at(subject: Subject, name: str, judged: Judgement | None) -> Point | None:
    """A point at which a multiple of the cotangents has no such multiple as its gradient.

    The counterexample is looked at, too: it may lie on a null set.
    """
    drawn = (
        subject.draw(sizes, number)
        for number, sizes in enumerate(islice(subject.sampler.size_choices(), 5))
    )
    points = [at.point for at in drawn if at is not None]
    if judged is not None and judged.counterexample is not None:
        points.append(judged.counterexample.point)
    return next((point for point in points if not _scales(subject, name, point)), None)


def _scales(subject: Subject, name: str, point: Point) -> bool:
    """Is the gradient of multiples of the cotangents that multiple, in doubles, at a point?"""
    cotangents = [cotangent.attributes["name"] for _, cotangent in subject.outputs]
    gradient, feeds = subject.gradients[name], point.doubles()
    try:
        own = subject.evaluate_feeds(feeds, point.sizes)[gradient]
    except DomainError:
        return True
    for factor in (-2.0, 0.0, 3.0):
        scaled = feeds | {key: feeds[key] * factor for key in cotangents}
        try:
            found = subject.evaluate_feeds(scaled, point.sizes)[gradient]
        except DomainError:
            continue
        if not _proportional(own * factor, found):
            return False
    return True


def _proportional(wanted: Array, found: Array) -> bool:
    if not np.all(np.isfinite(wanted)):
        return True
    scale = float(np.max(np.abs(wanted), initial=0.0)) + float(np.max(np.abs(found), initial=0.0))
    return bool(np.max(np.abs(wanted - found), initial=0.0) <= _CLOSE * (scale + 1e-30))


# -- nothing that backward reads is written


def _writes(cases: Sequence[FunctionCase]) -> Iterator[Finding]:
    """No saved tensor and no input is written in place, and none of the caller's gradients."""
    cotangents: set[str] = set()
    for node in (node for case in cases for node in case.cotangents if node is not None):
        cotangents |= {node.label, str(node.attributes.get("name", ""))}
    written = {name for case in cases for name in case.written}
    words = {name: word for case in cases for name, word in case.aliases.items()}
    updated = {name for case in cases for name in case.updated}
    taken = {one.input for case in cases for one in case.gradients if one.node is not None}
    if updated - taken and not updated & taken:
        said = f"forward updates {', '.join(sorted(updated))}, which gets no gradient"
        yield Finding("what forward writes", Verdict.PROVED, said)
    elif updated:
        said = f"{_listed(sorted(updated & taken))} written in place by forward, which autograd"
        yield Finding(
            "what forward writes", Verdict.REFUTED, f"{said} is not told: call ctx.mark_dirty"
        )
    for name, found, why in (
        ("a second call agrees", written - cotangents, "a second backward would read other values"),
        ("the incoming gradients are left alone", written & cotangents,
         "the caller may still need the values"),
    ):  # fmt: skip
        called = sorted({words.get(one, one) for one in found})
        said = f"{_listed(called)} written in place: {why}" if found else ""
        yield Finding(name, Verdict.REFUTED if found else Verdict.PROVED, said)


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"


# -- shapes


def _shapes(cases: Sequence[FunctionCase]) -> Finding:
    """Gradients of their inputs' shapes; where one had to be summed down, that is said."""
    name, notes = "shapes of the gradients", []
    for case in cases:
        inputs = {node.attributes["name"]: node for node in case.inputs}
        for gradient in case.gradients:
            if gradient.problem is not None:
                return Finding(name, Verdict.REFUTED, gradient.problem.what)
            returned, wanted = gradient.returned, inputs.get(gradient.input)
            if returned is not None and wanted is not None and returned.shape != wanted.shape:
                shape = " ".join(map(str, returned.shape))
                notes.append(
                    f"the gradient of {gradient.input} was returned as [{shape}] and is summed "
                    "down to the input's shape, as PyTorch does"
                )
    return Finding(name, Verdict.PROVED, "; ".join(dict.fromkeys(notes)))


# -- needs_input_grad, and what else a backward asks about its call


def variants_agree(
    full: FunctionGraphs,
    variants: Sequence[FunctionGraphs],
    judge_case: Callable[[FunctionCase, Sequence[str]], Mapping[str, Judgement]],
    printed: Collection[Condition] = (),
    untraced: str = "",
    shown: Callable[[FunctionCase, Judgement], CounterexampleReport | None] = lambda *_: None,
    wrong: Collection[str] = (),
) -> list[Finding]:
    """Is backward right whatever the answers are to what it asks about its call?

    A gradient that is built like that of ``full`` shares its verdict; one that is built in
    another way is judged by ``judge_case(case, names)``.  ``printed``: conditions that are said.
    ``untraced``: why there are variants that were not traced.  ``shown``: the point at which a
    gradient is refuted in a case that a call can be made of.  ``wrong``: gradients of ``full`` that
    are not proved; in cases that ``full`` does not have, nothing new is said of these.
    """
    if not variants and not untraced:
        return []
    name = VARIANTS if _only_needs(variants) else ANSWERS
    found = Finding(name, Verdict.PROVED)
    if untraced:
        found = Finding(name, Verdict.UNDECIDED, untraced)
    proved: list[Judgement] = []
    for variant in variants:
        for case in variant.cases:
            judged = (
                {}
                if case.problem is not None
                else judge_case(case, _other(full, case, variant.asked, wrong))
            )
            proved += judged.values()
            one = _variant_case(variant, case, judged)
            if one is not None and one[0] > found.verdict:
                verdict, said, judgement = one
                point = None if judgement is None else shown(case, judgement)
                found = Finding(name, verdict, said, point)
    return [replace(found, text=found.text or beside(proved, printed))]


def _only_needs(variants: Sequence[FunctionGraphs]) -> bool:
    return all(
        question.endswith(" requires a gradient")
        for variant in variants for question, _ in variant.answers
    )  # fmt: skip


def _variant_case(
    variant: FunctionGraphs, case: FunctionCase, judged: Mapping[str, Judgement]
) -> tuple[Verdict, str, Judgement | None] | None:
    """The worst that is found in one case of a variant, and its judgement; None: all is proved."""
    where = f" where {variant.told}"
    if case.problem is not None:
        undecided = is_limit(case.problem) or not variant.real
        verdict = Verdict.UNDECIDED if undecided else Verdict.REFUTED
        return verdict, f"backward fails{where}: {case.problem.what}", None
    found = None
    for gradient, judgement in judged.items():
        verdict = judgement.verdict
        if verdict is Verdict.REFUTED and not variant.real:
            verdict = Verdict.UNDECIDED
        if verdict is not Verdict.PROVED and (found is None or verdict > found[0]):
            reason = f": {judgement.reason}" if judgement.reason else ""
            said = f"the gradient of {gradient} is computed differently{where}{reason}"
            found = verdict, said, judgement
    return found


def _other(
    full: FunctionGraphs, case: FunctionCase, asked: Sequence[str], wrong: Collection[str]
) -> list[str]:
    """The inputs whose gradient in a variant's case is built unlike that of the same full case.

    Only those count that require a gradient: PyTorch drops the others.  Where forward is built in
    another way, all of them do; where there is no such case, those that are not ``wrong`` anyway.
    """
    alike = {case_key(one): one for one in full.cases}.get(case_key(case))
    if alike is None:
        asked = [name for name in asked if name not in wrong]
    known: dict[str, int | None] = {}
    if alike is not None and _outputs(alike) == _outputs(case):
        known = {gradient.input: digest(gradient.node) for gradient in alike.gradients}
    return [
        gradient.input for gradient in case.gradients
        if gradient.input in asked and known.get(gradient.input, 0) != digest(gradient.node)
    ]  # fmt: skip


def _outputs(case: FunctionCase) -> list[int | None]:
    return [digest(node) for node in case.outputs]


def case_key(case: FunctionCase) -> tuple[str, ...]:
    """What distinguishes the cases of one Function."""
    return tuple(sorted(map(str, case.conditions)))


def digest(root: Node | None) -> int | None:
    """A number that equal graphs share, in whatever ``Graph`` they are; None for None."""
    if root is None:
        return None
    found: dict[Node, int] = {}
    for node in ancestors([root]):
        inner = tuple(found[arg] for arg in node.args)
        found[node] = hash((node.op, inner, repr(node.attrs)))
    return found[root]
