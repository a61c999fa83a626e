"""A second opinion on each proof of a report: what random points say of it.

In: subjects with their judgements, as they are proved.  Out: a ``Finding``, the audit.

Gradients, the derivative of backward by what it reads, and tangents that a ``jvp`` gives are heard
alike.  A disagreement is REFUTED at its point, or UNDECIDED where a printed condition may exclude
the point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from symgrad.errors import SymgradError
from symgrad.ir.graph import Node
from symgrad.proof.judge.approximations import is_beyond, smoothed
from symgrad.proof.judge.decide import Judgement
from symgrad.proof.oracle.refute import Counterexample
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.records import CounterexampleReport, Finding
from symgrad.proof.report.verdict import Verdict

NAME = "audit"
EXCLUDING = frozenset(("axiom", "domain", "nonzero", "size"))
"""Kinds of conditions that may exclude more than what random points never meet."""
DEFECT = "a proof and the audit disagree, which is a defect of symgrad: please report it"
Show = Callable[[Counterexample], CounterexampleReport | None]


class Opinions:
    """What was said so far of the proofs of one report; ``wrong``: of the first that is none."""

    def __init__(self) -> None:
        self.said: dict[str, None] = {}
        self.wrong: Finding | None = None
        self.heard = 0

    def on_gradients(
        self, subject: Subject, judged: Mapping[str, Judgement], label: str, *,
        of: str = "gradient of", show: Show | None = None,
    ) -> None:  # fmt: skip
        """On the gradients of a subject that are PROVED, those with one reading together."""
        for names in _alike(judged):
            if self.wrong is None:
                heard = judged[names[0]].along or subject
                self._gradients(heard, names, judged, label, of, show)

    def _gradients(
        self, subject: Subject, names: Sequence[str], judged: Mapping[str, Judgement],
        label: str, of: str, show: Show | None,
    ) -> None:  # fmt: skip
        from symgrad.proof.oracle.audit import audit

        read = _as_read(subject, names, judged[names[0]])
        conditional = _conditional(judged[name] for name in names)
        label = f"{', '.join(names)}{label}"
        if not self._can(read, label):
            return
        found = audit(
            read, names, self.heard, conditional=conditional, excluded=partial(is_beyond, read)
        )
        self.heard += 1
        if found.wrong is None:
            self.said[f"{label}: {found}"] = None
            return
        name, example, point = found.wrong
        said = f"the {of} {name} is not the derivative at a random point of {_shapes(point.sizes)}"
        if example is not None:
            said += f" ({of.split()[0]} by {example.element}: yours {example.hand_text}, true "
            said += f"{example.true_text})"
        self._disagree(
            said, conditional, None if example is None or show is None else show(example)
        )

    def on_tangents(
        self, subject: Subject, pushed: Sequence[tuple[Node, Node]], tangents: Mapping[str, str],
        judged: Mapping[str, Judgement], label: str,
    ) -> None:  # fmt: skip
        """On what ``jvp`` gives, ``pushed`` with its weights, where that is PROVED.

        ``tangents``: the input that holds the tangent of each input.
        """
        from symgrad.proof.oracle.audit import audit_tangents

        if self.wrong is not None or not self._can(subject, f"jvp{label}"):
            return
        recognised = any(one.recognised for one in judged.values())
        if recognised:
            subject = subject.changed(recognised=True)
        conditional = _conditional(judged.values())
        found = audit_tangents(subject, pushed, tangents, self.heard, conditional=conditional)
        self.heard += 1
        if found.wrong is None:
            self.said[f"jvp{label}: {found}"] = None
            return
        shapes = _shapes(found.wrong[2].sizes)
        self._disagree(f"jvp is not the derivative at a random point of {shapes}", conditional)

    def _can(self, subject: Subject, label: str) -> bool:
        from symgrad.proof.oracle.audit import auditable

        if not auditable(subject):
            self.said[f"{label}: not audited, since a function is known by its C alone"] = None
            return False
        try:
            subject.settle()
        except SymgradError as error:
            self.said[f"{label}: not audited: {error.what}"] = None
            return False
        return True

    def _disagree(
        self, said: str, conditional: bool, point: CounterexampleReport | None = None
    ) -> None:
        said += f"; {DEFECT}" + (", unless a printed condition excludes it" if conditional else "")
        verdict = Verdict.UNDECIDED if conditional else Verdict.REFUTED
        self.wrong = Finding(NAME, verdict, said, point)

    def finding(self) -> list[Finding]:
        """The audit as a line of the report; none where nothing was proved."""
        from symgrad.proof.oracle.audit import MISSED

        if self.wrong is not None:
            return [self.wrong]
        said = "; ".join([*self.said, MISSED])
        return [Finding(NAME, Verdict.PROVED, said)] if self.said else []


def _alike(judged: Mapping[str, Judgement]) -> list[list[str]]:
    """The gradients that are PROVED, those whose literals are read alike together."""
    groups: list[list[str]] = []
    for name, one in judged.items():
        if one.verdict is not Verdict.PROVED:
            continue
        for group in groups:
            first = judged[group[0]]
            if (
                first.along is one.along
                and all(first.solved.get(key, read) == read for key, read in one.solved.items())
                and (first.recognised == one.recognised and len(first.solved) == len(one.solved))
            ):
                group.append(name)
                break
        else:
            groups.append([name])
    return groups


def _as_read(subject: Subject, names: Iterable[str], one: Judgement) -> Subject:
    """The subject with literals, and approximations, read as the proof has read them."""
    found = subject.changed(names, recognised=one.recognised)
    found.solved = one.solved
    if any(condition.kind == "reading" for condition in one.conditions):
        return smoothed(found) or found
    return found


def _conditional(judged: Iterable[Judgement]) -> bool:
    return any(c.kind in EXCLUDING for one in judged for c in one.conditions)


def _shapes(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.items()) or "rank 0"
