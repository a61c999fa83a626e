"""Several reports on one Function, put together: the worst verdict counts.

In: reports by what each was judged for: which optional tensors are given, or the number of batch
axes that ``*batch`` stands for.  Out: one ``Report`` that says what it holds for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from symgrad.deadline import TimeUp
from symgrad.errors import SymgradError, counted, is_limit
from symgrad.ir.assume import Assumption
from symgrad.plain_values import either
from symgrad.proof.reasons import NOWHERE
from symgrad.proof.report.records import Condition, Finding, InputReport, Report
from symgrad.proof.report.verdict import FAILED, Verdict

JUDGED = "judged with every optional tensor given or absent"
EVERY_VALUE = "judged for every value of plain numbers, at shapes that were found"


def worst_inputs(reports: Mapping[str, Report]) -> dict[str, InputReport]:
    """Of each input the worst verdict; where they differ, for what it is.

    ``reports``: by words such as ``with 2 batch axes``, the one that is preferred first.
    """
    names = dict.fromkeys(name for report in reports.values() for name in report.inputs)
    return {
        name: _worst_input({k: r.inputs[name] for k, r in reports.items() if name in r.inputs})
        for name in names
    }


def _worst_input(found: Mapping[str, InputReport]) -> InputReport:
    said = max(found, key=lambda words: found[words].verdict)
    worst = found[said]
    if worst.verdict is Verdict.PROVED:
        others = {words: one.conditions for words, one in found.items() if one is not worst}
        return replace(worst, conditions=_together(worst.conditions, others))
    if len(found) > 1:
        worst = replace(worst, conditions=tuple(_found_for(one, said) for one in worst.conditions))
    if len({one.verdict for one in found.values()}) == 1:
        return worst
    return replace(worst, reason=f"{said}: {worst.reason}" if worst.reason else said)


def _found_for(one: Condition, words: str) -> Condition:
    """A theorem that was found beside a refutation, with what it was judged for."""
    return replace(one, text=f"{one.text}, {words}") if one.kind == "found" else one


def worst_findings(reports: Mapping[str, Report]) -> tuple[Finding, ...]:
    """Of each theorem of the protocol the worst finding, the first of equal ones.

    What limits proofs is said together.
    """
    found: dict[str, Finding] = {}
    limits: dict[str, dict[str, None]] = {}
    for words, report in reports.items():
        for finding in report.protocol:
            known = found.get(finding.name)
            if finding.limits:
                limits.setdefault(finding.name, {})[finding.text] = None
            if known is None or finding.verdict > known.verdict:
                failed = finding.verdict is not Verdict.PROVED
                text = f"{words}: {finding.text}" if failed else finding.text
                found[finding.name] = replace(finding, text=text)
    for name, texts in limits.items():
        if found[name].verdict is Verdict.PROVED:
            found[name] = replace(found[name], text="; ".join(texts), limits=True)
    return tuple(found.values())


class Presence(Protocol):
    """Which optional tensors are given; as text, ``bias absent``."""

    @property
    def given(self) -> tuple[str, ...]:
        """Their names."""

    @property
    def absent(self) -> tuple[str, ...]:
        """The names of the others."""

    @property
    def tried(self) -> bool:
        """Is it left out where forward does not accept it?"""


P = TypeVar("P", bound=Presence)


class Guess(Protocol):
    """Inferred shapes; as text, the sentence that says so."""

    @property
    def text(self) -> str:
        """The shapes alone."""

    @property
    def wider(self) -> str:
        """More general shapes that forward takes, but backward does not; or nothing."""

    @property
    def sized(self) -> str:
        """Those that have any size where a number was found; or nothing."""

    @property
    def summed(self) -> str:
        """The repeated tensor of which PyTorch sums the gradient; or nothing."""

    @property
    def combined(self) -> bool:
        """Are other values of plain arguments together in it, or other shapes with one?"""

    @property
    def refused(self) -> Mapping[str, str]:
        """What forward does not accept, of whatever shapes, and why."""

    @property
    def unfound(self) -> Mapping[str, str]:
        """What no shapes were found for, and why."""


def for_presences(
    every: Sequence[P], judge: Callable[[P], Report], guess: Guess | None = None
) -> Report:
    """One report for all that optional tensors may be, the first as it was asked for.

    What forward does not accept is noted, or left out; what cannot be judged is UNDECIDED.  Where
    shapes were inferred, it may be their fault that forward does not accept a call: that is
    UNDECIDED too.
    """
    reports: dict[str, Report] = {}
    refused = {} if guess is None else dict(guess.refused)
    unjudged = {} if guess is None else dict(guess.unfound)
    for one in every:
        try:
            reports[str(one)] = judge(one)
        except SymgradError as error:
            if one is every[0]:
                raise
            if one.tried and not is_limit(error):
                continue
            limit = guess is not None or is_limit(error)
            (unjudged if limit else refused)[str(one)] = error.what
        except TimeUp as error:
            if one is every[0]:
                raise
            unjudged[str(one)] = str(error)
    return _merged(reports, (*every[0].given, *every[0].absent), refused, unjudged)


G = TypeVar("G", bound=Guess)


def for_guesses(
    reports: Mapping[G, Report], late: Sequence[str] = (), together: Sequence[Condition] = ()
) -> Report:
    """The worst of the reports by inferred shapes, the first of equal ones; it says which.

    ``late``: more values of plain arguments that were not judged in time.  ``together``: what
    leaves out values that were not judged together.
    """
    nowhere = [one for one, found in reports.items() if _is_nowhere(found)]
    if len(nowhere) < len(reports):
        reports = {one: found for one, found in reports.items() if one not in nowhere}
    chosen = max(reports, key=lambda one: reports[one].verdict)
    report = reports[chosen]
    if report.verdict is Verdict.PROVED:
        ranks = {f"for {one.text}": found for one, found in reports.items() if one is not chosen}
        values = {words: _other_values(report, found) for words, found in ranks.items()}
        report = with_conditions(report, ranks, values)
        report = replace(report, values=_values(report, reports.values()))
    if report.verdict is not Verdict.REFUTED:
        report = replace(report, inputs=under(report.inputs, _sized(chosen), together))
    more = {
        one for one, found in reports.items()
        if one.combined and one is not chosen and found.verdict is Verdict.PROVED
    }  # fmt: skip
    beside = {
        one.text: str(found.verdict) for one, found in reports.items()
        if one is not chosen and one not in more
    }  # fmt: skip
    summed = {one.text: "; PyTorch sums a larger gradient" for one in reports if one.summed}
    others = ", ".join(
        f"{text} ({verdict}{summed.get(text, '')})" for text, verdict in beside.items()
    )
    said = f" Also judged: {others}." if others else ""
    said += f" And {counted(len(more), 'combination')} of these (PROVED)." if more else ""
    said += f" Not judged in time: {', '.join(late)}." if late else ""
    never = [one.text for one in nowhere if one not in reports]
    said += f" Forward is finite for no input that was tried: {', '.join(never)}." if never else ""
    worst = "is the worst of these, and " if others else ""
    numbers = [
        f'If {one.name} is a number, write {one.name}: "f32[]".' for one in report.inputs.values()
        if one.reason.startswith(f"the gradient of {one.name} has shape [],")
    ]  # fmt: skip
    wider = [f"Forward takes {chosen.wider} as well: backward fails there."] if chosen.wider else []
    inferred = " ".join(
        [f"{chosen}{said} The verdict {worst}covers only these shapes.", *wider, *numbers]
    )  # fmt: skip
    return replace(
        report, inferred=inferred, guessed=chosen.text, beside=beside,
        notes=(*report.notes, inferred),
    )  # fmt: skip


def _sized(guess: Guess) -> tuple[Condition, ...]:
    """The condition that sizes are the numbers that were found."""
    if not guess.sized:
        return ()
    wider = f"forward takes {guess.sized} too, where backward fails for some sizes or all"
    return (Condition("shapes", f"the shapes are {guess.text} ({wider})"),)


def _is_nowhere(report: Report) -> bool:
    """Was no input found on which forward is finite?"""
    return bool(report.inputs) and all(
        one.verdict is Verdict.UNDECIDED and one.reason.startswith(NOWHERE)
        for one in report.inputs.values()
    )


def _other_values(report: Report, other: Report) -> str:
    """The plain values of another report that are others: ``for mode = 'sum'``; empty for none."""
    own = dict(report.values)
    found = [f"{name} = {text}" for name, text in other.values if own.get(name) != text]
    return f"for {', '.join(found)}" if found else ""


def _values(report: Report, every: Iterable[Report]) -> tuple[tuple[str, str], ...]:
    """The plain arguments of a report, with the values of each at which others are judged alone."""
    found = {name: {text: None} for name, text in report.values}
    own = dict(report.values)
    for other in every:
        its = dict(other.values)
        changed = [name for name in own if its.get(name) != own[name]]
        if len(changed) == 1 and its.keys() == own.keys():
            found[changed[0]][its[changed[0]]] = None
    return tuple((name, either(texts)) for name, texts in found.items())


def for_narrower(report: Report, guess: Guess, wide: Report, wider: Guess) -> Report | None:
    """The report for inferred shapes that fit backward, if less is wrong there.

    ``wide``: the report for other shapes, which forward accepts as well: a condition names them.
    """
    found = under_shapes(report, guess, wide, wider)
    return None if found is None else for_guesses({guess: found})


def under_shapes(report: Report, guess: Guess, wide: Report, wider: Guess) -> Report | None:
    """The report with the condition that the shapes are these, if less is wrong than for others.

    Where nothing is wrong for the others, if less is undecided.  What is undecided for the others
    may be wrong for these: a gradient that is left out.
    """
    lacking = Verdict.REFUTED if _with(wide, Verdict.REFUTED) else Verdict.UNDECIDED
    wrong, here = _with(wide, lacking), _with(report, lacking)
    if wrong <= here or not here <= wrong | _with(wide, Verdict.UNDECIDED):
        return None
    failed = any(one.reason.startswith(FAILED) for one in wide.inputs.values())
    names = [name for name in wide.inputs if name in wrong - here]
    what = "wrong" if lacking is Verdict.REFUTED else "not decided"
    said = "the gradient of {} is" if len(names) == 1 else "the gradients of {} are"
    what = "backward fails" if failed else f"{said.format(' and '.join(names))} {what}"
    condition = Condition("shapes", f"the shapes are {guess.text} ({what} for {wider.text})")
    inputs = {
        name: replace(one, conditions=(condition, *one.conditions)) if name in wrong - here else one
        for name, one in report.inputs.items()
    }
    return replace(report, inputs=inputs)


def if_passed(report: Report, names: Sequence[str]) -> Report:
    """The report for calls that pass these arguments, as tensors: backward fails for others."""
    if not names:
        return report
    is_, it, tensors = ("are", "they are", "tensors") if names[1:] else ("is", "it is", "a tensor")
    said = f"{' and '.join(names)} {is_} passed as {tensors} (backward fails where {it} left out)"
    condition = Condition("asked", said)
    inputs = {
        name: one if one.verdict is Verdict.REFUTED
        else replace(one, conditions=(condition, *one.conditions))
        for name, one in report.inputs.items()
    }  # fmt: skip
    return replace(report, inputs=inputs)


def if_meant(report: Report, other: str, shapes: str) -> Report:
    """The report without what it refutes for shapes that may not be meant, but another reading."""
    if not other:
        return report
    said = f"{other}; for {shapes} it is REFUTED"
    inputs = {
        name: replace(
            one, verdict=Verdict.UNDECIDED, reason=f"{said}: {one.reason}" if one.reason else said,
            diagnosis=(), suggestion=None, surrogate="", counterexample=None, replayed=None,
        )
        if one.verdict > Verdict.UNDECIDED else one
        for name, one in report.inputs.items()
    }  # fmt: skip
    findings = tuple(
        replace(one, verdict=Verdict.UNDECIDED, text=f"{said}: {one.text}", counterexample=None)
        if one.verdict > Verdict.UNDECIDED
        else one
        for one in report.protocol
    )
    return replace(report, inputs=inputs, protocol=findings, repair=None, repaired=None)


def at_sizes(reports: Mapping[tuple[str, ...], Report], late: Sequence[str]) -> Report:
    """The worst of the reports at numbers for sizes, since Python needs some: a condition.

    ``reports``: by the sizes with their numbers, such as ``x.shape[0] == 4``.  ``late``: what came
    to no verdict at others; with one report alone, that is not enough.
    """
    every = {" and ".join(sizes): report for sizes, report in reports.items()}
    worst = max(every.values(), key=lambda report: report.verdict)
    by_words = {f"for {words}": report for words, report in every.items()}
    notes = [note for report in every.values() for note in report.notes] + [*late]
    several = "numbers" if any(len(sizes) > 1 for sizes in reports) else "a number"
    found = Condition("size", f"{' or '.join(every)} (Python needs {several})")
    inputs = under(worst_inputs(by_words), after=(found,))
    findings = worst_findings(by_words)
    if late and len(reports) == 1:
        findings += (Finding("judged at other sizes", Verdict.UNDECIDED, "; ".join(late)),)
    return replace(
        worst, inputs=inputs, protocol=findings, notes=tuple(dict.fromkeys(notes)),
        seconds=sum(report.seconds for report in every.values()),
    )  # fmt: skip


def at_multiples(report: Report, sizes: Sequence[str]) -> Report:
    """The report with sizes that are multiples since no others are traced, as conditions."""
    found = tuple(Condition("size", f"{size} (others are not traced)") for size in sizes)
    return replace(report, inputs=under(report.inputs, after=found)) if found else report


def under(
    inputs: Mapping[str, InputReport], before: Sequence[Condition] = (),
    after: Sequence[Condition] = (),
) -> dict[str, InputReport]:  # fmt: skip
    """What is PROVED with further conditions, before or after its own; the rest as it is."""
    return {
        name: replace(one, conditions=(*before, *one.conditions, *after))
        if one.verdict is Verdict.PROVED else one
        for name, one in inputs.items()
    }  # fmt: skip


def _with(report: Report, verdict: Verdict) -> set[str]:
    return {name for name, one in report.inputs.items() if one.verdict is verdict}


def with_conditions(
    report: Report, others: Mapping[str, Report], short: Mapping[str, str] = MappingProxyType({})
) -> Report:  # fmt: skip
    """The report with the conditions that other reports on the same inputs have as well.

    ``others``: by words for what they were judged for; ``short``: other words, for what several
    have.
    """
    inputs = {}
    for name, one in report.inputs.items():
        found = {
            words: other.inputs[name].conditions
            for words, other in others.items() if name in other.inputs
        }  # fmt: skip
        inputs[name] = replace(one, conditions=_together(one.conditions, found, short))
    return replace(report, inputs=inputs)


def _together(
    own: Sequence[Condition], others: Mapping[str, Sequence[Condition]],
    short: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Condition, ...]:  # fmt: skip
    """Conditions with those of other ranks, or other optional tensors, each once.

    What differs by the numbers of axes alone, and the sizes of these, is one condition; what
    another report has beside, is said to be about that.
    """
    more: dict[tuple[Any, ...], tuple[Condition, list[str]]] = {}
    for words, conditions in others.items():
        left, met = Counter(map(_whatever_axes, own)), Counter[tuple[str, str]]()
        for one in conditions:
            key = _whatever_axes(one)
            if left[key]:
                left[key] -= 1
            elif one not in own:
                more.setdefault((*key, met[key]), (one, []))[1].append(words)
                met[key] += 1
    found = [
        replace(one, text=f"{one.text} ({'; '.join(_shortened(every, short))})")
        for one, every in more.values()
    ]
    return tuple(dict.fromkeys((*own, *found)))


def _shortened(every: Sequence[str], short: Mapping[str, str]) -> Iterable[str]:
    """Words, those once that stand for several of them, or for all of what others say."""
    briefs = [short.get(words, "") for words in every]
    parts = {brief: {*brief.removeprefix("for ").split(", ")} for brief in briefs if brief}
    least = {
        brief: min((one for one in parts if parts[one] <= own), key=lambda one: len(parts[one]))
        for brief, own in parts.items()
    }
    briefs = [least.get(brief, "") for brief in briefs]
    return dict.fromkeys(
        brief if brief and briefs.count(brief) > 1 else words
        for words, brief in zip(every, briefs, strict=True)
    )


def _whatever_axes(one: Condition) -> tuple[str, str]:
    text = _AXES.sub(r"\1#", _ALONG.sub("", one.text))
    text = _BOUND.sub("#", _FIRST_AXES.sub("[", text))
    return one.kind, _SIZE.sub("# == ", text)


_AXES = re.compile(
    r"(\.(?:sum|mean|prod|amax|amin|var|std|cumsum|cumprod|unsqueeze|squeeze|flip|sort)\("
    r"|dim=|axis )(?:\d+|\([\d, ]+\))"
)
"""The axes of an operation."""
_ALONG = re.compile(r" along axis (?:\d+|\([\d, ]+\))")
"""The axes of a maximum in words, which a vector has none of."""
_FIRST_AXES, _BOUND = re.compile(r"\[(?:(?::|\.\.\.), )+"), re.compile(r"(?<=[\[:])[a-z](?=[:\]])")
"""The axes before the last one of a place in a tensor, and a size that bounds that one."""
_SIZE = re.compile(r"\A[a-z] == (?=\d+\Z)")
"""A condition on one size alone."""


def _merged(
    reports: Mapping[str, Report], optional: Sequence[str], refused: Mapping[str, str],
    unjudged: Mapping[str, str],
) -> Report:  # fmt: skip
    first = next(iter(reports.values()))
    labelled = {
        f"with {words}": report if report is first else _labelled(words, report)
        for words, report in reports.items()
    }
    notes = [note for report in reports.values() for note in report.notes]
    notes += [f"not accepted with {words}: {why}" for words, why in refused.items()]
    failed = "; ".join(f"with {words}: {why}" for words, why in unjudged.items())
    findings = worst_findings(labelled)
    return replace(
        first,
        inputs=worst_inputs(labelled),
        protocol=(*findings, Finding(JUDGED, Verdict.UNDECIDED, failed)) if failed else findings,
        notes=tuple(dict.fromkeys(notes)),
        values=tuple(pair for pair in first.values if pair[0] not in optional),
        presences=tuple(reports),
    )


def _labelled(words: str, report: Report, pattern: str = "") -> Report:
    """The repairs that match a pattern, with words for what they were proved for."""
    inputs = {
        name: replace(one, suggestion=f"# with {words}\n{one.suggestion}")
        if one.suggestion and re.search(pattern, one.suggestion) else one
        for name, one in report.inputs.items()
    }  # fmt: skip
    return replace(report, inputs=inputs)


# -- any number of batch axes, or several numbers of them


_POSITIONS = r"\w\([^)]|@|\[|\.m?T\b|\bshape\b"
"""What may count axes in a repair: arguments of calls, products of matrices, indices, shapes."""


def with_smallest(report: Report, smallest: Report) -> Report:
    """The report for batch axes with the counterexamples of that without any, where it has some."""
    inputs = dict(report.inputs)
    for name, one in report.inputs.items():
        other = smallest.inputs.get(name)
        if one.counterexample is not None and other is not None and other.counterexample:
            inputs[name] = replace(one, counterexample=other.counterexample)
    return replace(report, inputs=inputs)


def for_any_rank(
    report: Report, groups: Mapping[str, str], rank: int, apart: Mapping[int, Report],
    refused: Mapping[int, str],
) -> Report:  # fmt: skip
    """The report for ``rank`` batch axes, of a program that does the same for all but a few.

    ``groups``: the name of the number of elements by that of the batch axes.  ``apart``: the
    reports for the numbers of batch axes that it treats by themselves.  ``refused``: why forward
    does not accept a number of them.
    """
    stated = "; ".join(
        f"*{group}: any number of axes, "
        + (f"{size} elements together" if rank == 1 else f"judged with {rank}")
        for group, size in groups.items()
    )
    if apart:
        stated += f", {', '.join(map(str, sorted(apart)))} judged separately"
    if refused:
        stated += f", not accepted for {', '.join(map(str, sorted(refused)))}"
    notes = _rank_notes((report, *apart.values()), refused)
    whole = replace(report, domain=f"{report.domain}; {stated}", notes=notes)
    return _worst_rank(whole, {**apart, rank: whole})


def _batch_axes(rank: int) -> str:
    return counted(rank, "axis").replace(" ", " batch ")


def _rank_notes(reports: Iterable[Report], refused: Mapping[int, str]) -> tuple[str, ...]:
    notes = [note for report in reports for note in report.notes]
    notes += [f"not accepted with {_batch_axes(rank)}: {why}" for rank, why in refused.items()]
    return tuple(dict.fromkeys(notes))


def _worst_rank(base: Report, reports: Mapping[int, Report]) -> Report:
    """``base`` with the worst of the reports by rank."""
    said = {rank: f"with {_batch_axes(rank)}" for rank in reports}
    axes = {
        said[rank]: _labelled(_batch_axes(rank), reports[rank], _POSITIONS)
        for rank in sorted(reports, reverse=True)
    }
    findings = worst_findings({said[rank]: report for rank, report in reports.items()})
    return replace(
        base,
        inputs=worst_inputs(axes),
        protocol=findings if len(reports) > 1 else base.protocol,
        repair=next((one.repair for one in reports.values() if one.repair is not None), None),
        repaired=next((one.repaired for one in reports.values() if one.repaired), None),
    )


def for_sizes(
    reports: Mapping[int, Report], name: str, why: str, refused: Mapping[int, str],
    late: Mapping[int, str],
) -> Report:  # fmt: skip
    """One report of those for some numbers of a size, which the verdict is about alone.

    ``why``: what needs the number.  ``refused``: why forward does not accept some; ``late``: those
    that were not judged in time.
    """
    base = reports[max(reports)]
    by_words = {f"for {name} = {number}": reports[number] for number in sorted(reports)}
    numbers = ", ".join(map(str, sorted(reports)))
    only = Condition("size", f"{name} is one of {numbers}", code=f"{name} in ({numbers},)")
    inputs = {
        key: replace(one, conditions=(*one.conditions, only)) if one.verdict is Verdict.PROVED
        else one
        for key, one in worst_inputs(by_words).items()
    }  # fmt: skip
    said = [
        f"forward does not accept {name} = {number}: {what}" for number, what in refused.items()
    ]
    said += [f"not judged for {name} = {number}: {what}" for number, what in late.items()]
    return replace(
        base,
        inputs=inputs,
        protocol=worst_findings(by_words),
        domain=f"{base.domain}; for {name} = {numbers} only, each judged separately",
        notes=(
            *dict.fromkeys(note for one in reports.values() for note in one.notes),
            *said,
            f"not for every {name}: {why}",
        ),
    )


class Branch(Protocol):
    """Values of plain numbers for which a program takes one way; see ``frontend.branches``."""

    @property
    def text(self) -> str:
        """``scale < 1e-08``; empty for all values."""

    @property
    def stated(self) -> tuple[Assumption, ...]:
        """What is stated of these numbers."""

    @property
    def facts(self) -> tuple[Assumption, ...]:
        """What is stated, and the answers."""

    @property
    def only(self) -> bool:
        """Is one value judged in the place of more?"""


B = TypeVar("B", bound=Branch)


def for_answers(
    every: Iterable[tuple[B, Report | SymgradError]], unjudged: Callable[[SymgradError], bool]
) -> Report:
    """One report of those for the answers to what a program asks of plain numbers.

    The values of the numbers are all values together; after what is REFUTED no more are judged.  An
    error is why forward does not accept some, or was not judged for them, as ``unjudged`` says;
    raises it where it accepts none.  What declares a surrogate is left out: it was proved for some
    values alone.
    """
    reports: dict[str, Report] = {}
    refused: dict[str, SymgradError] = {}
    missing: dict[str, SymgradError] = {}
    some = False
    for branch, found in every:
        some |= branch.only
        if isinstance(found, SymgradError):
            (missing if unjudged(found) else refused)[branch.text] = found
            continue
        reports[branch.text] = _as_stated(found, branch)
        if found.verdict is Verdict.REFUTED:
            break
    if not reports:
        raise next(iter([*refused.values(), *missing.values()]))
    by_words = {f"where {where}": report for where, report in reports.items()}
    inputs = worst_inputs(by_words)
    for name, one in inputs.items():
        ways = {r.inputs[name].surrogate for r in reports.values() if name in r.inputs}
        if one.surrogate and len(ways) > 1:
            words = max(by_words, key=lambda key: by_words[key].inputs[name].verdict)
            inputs[name] = replace(one, surrogate=f"{one.surrogate}, {words}")
        inputs[name] = replace(inputs[name], declaration="")
    if refused or some:
        why = "others were not judged" if some else "forward does not accept other values"
        text = f"{' or '.join(reports)} ({why})"
        inputs = under(inputs, before=(Condition("value", text),))
    base = max(reports.values(), key=lambda one: one.verdict)
    values, quantified = _numbers(by_words)
    apart = ", each judged separately" if len(reports) > 1 else ""
    domain = "; ".join(filter(None, [base.domain, f"for {', '.join(reports)}{apart}"]))
    shapes = [one.inferred for one in reports.values()]
    notes = [note for one in reports.values() for note in one.notes if note not in shapes]
    said = [f"forward does not accept {where}: {one.what}" for where, one in refused.items()]
    said += [
        f"where {where}: {one.inferred}" for where, one in reports.items()
        if one.guessed != base.guessed
    ]  # fmt: skip
    findings = worst_findings(by_words)
    if missing:
        why = "; ".join(f"where {where}: {one.what}" for where, one in missing.items())
        findings = (*findings, Finding(EVERY_VALUE, Verdict.UNDECIDED, why))
    return replace(
        base, inputs=inputs, protocol=findings, repair=None, repaired=None,
        domain=domain, values=values, quantified=quantified,
        timed_out=any(one.timed_out for one in reports.values()),
        notes=tuple(dict.fromkeys([*notes, *said, *filter(None, [base.inferred])])),
    )  # fmt: skip


def _numbers(
    reports: Mapping[str, Report],
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The plain arguments that reports hold for, and those that are any; what differs, by words."""
    values: dict[str, dict[str, list[str]]] = {}
    quantified: dict[str, list[str]] = {}
    for words, report in reports.items():
        for name, text in report.values:
            values.setdefault(name, {}).setdefault(text, []).append(words)
        for text in report.quantified:
            quantified.setdefault(text, []).append(words)

    def said(text: str, where: Sequence[str]) -> str:
        return text if len(where) == len(reports) else f"{text} {' or '.join(where)}"

    fixed = {name: "; ".join(said(*one) for one in found.items()) for name, found in values.items()}
    return tuple(fixed.items()), tuple(said(*one) for one in quantified.items())


def _as_stated(report: Report, branch: Branch) -> Report:
    """The report on a branch with what is stated in the place of what it is judged under."""
    own = Condition("value", branch.text)
    texts = {str(one) for one in branch.facts}
    stated = tuple(Condition("declared", str(one), code=one.code) for one in branch.stated)
    inputs = {
        name: replace(
            one, conditions=(
                *stated, *(c for c in one.conditions if c.kind != "declared" or c.text not in texts)
            ),
            suggested_under=(own, *(c for c in one.suggested_under if c.text not in texts)),
        )
        for name, one in report.inputs.items()
    }  # fmt: skip
    return replace(report, inputs=inputs)


def for_ranks(
    reports: Mapping[int, Report], observation: str, refused: Mapping[int, str]
) -> Report:
    """One report of those by rank: of each input the worst verdict, with the rank it belongs to.

    ``observation``: what in the program depends on the number of batch axes.  ``refused``: why
    forward does not accept a number of them.
    """
    base = reports[max(reports)]
    ranks = ", ".join(map(str, sorted(reports)))
    said = replace(
        base,
        domain=f"{base.domain}; for {ranks} batch axes only, each judged separately",
        notes=(
            *_rank_notes(reports.values(), refused),
            f"not for every number of batch axes: {observation}",
        ),
    )  # fmt: skip
    return _worst_rank(said, reports)
