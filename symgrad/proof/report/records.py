"""What a proof says to a person, a script and a notebook.

In: verdicts, conditions and counterexamples, already in the user's names.  Out: ``Report``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from symgrad.errors import Location, NotProvedError
from symgrad.plain_values import stated
from symgrad.proof.report.rendering import as_html, as_latex, as_text, text
from symgrad.proof.report.verdict import DERIVED, REFUSED, HasVerdict, Verdict, worst

if TYPE_CHECKING:
    from symgrad.proof.repair.formulas import Formulas


@dataclass(frozen=True)
class Condition:
    """Something a verdict depends on.

    ``kind``: declared, domain, kink, ties, index, size, literal, reading, nonzero, null set, axiom,
    asked, value, shapes, together, alone, directions or found.
    ``about``: a relation and a normal form, by which conditions on one value are known.
    ``code``: the text as Python that can be evaluated, element by element, in terms of the inputs,
    the sizes, the plain numbers and ``sg``; empty where it has no such form.  ``indices``: the
    letters in it, each with the number of its values.
    """

    kind: str
    text: str
    about: str = field(default="", compare=False, repr=False)
    code: str = field(default="", compare=False, repr=False)
    indices: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        return self.text

    @property
    def excepted(self) -> bool:
        """Does the verdict leave out where it holds?  Else it rests on it."""
        return self.kind in _EXCEPTED

    def to_dict(self) -> dict[str, Any]:
        """What JSON, SARIF and manifests hold of it."""
        return {
            "kind": self.kind, "text": self.text, "excepted": self.excepted, "code": self.code,
            "indices": [list(one) for one in self.indices],
        }  # fmt: skip


_EXCEPTED = ("kink", "ties", "nonzero", "null set")


@dataclass(frozen=True)
class CounterexampleReport:
    """A counterexample to recompute: sizes, inputs as nested lists, both values of one element.

    ``hand_text`` and ``true_text``: both with so many digits that they differ.  ``snippet``: a
    program that needs NumPy alone and shows both values.  ``aliases``: what backward calls its
    parameters.  ``cotangents``: for each output the input that is its cotangent, None for none.
    ``beside``: the arguments of another call that comes first, or ``between`` forward and backward;
    of tensors the types.
    """

    sizes: Mapping[str, int]
    inputs: Mapping[str, Any]
    element: str
    hand: float
    true: float
    hand_text: str
    true_text: str
    snippet: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)
    cotangents: tuple[str | None, ...] = field(default=(), compare=False, repr=False)
    beside: tuple[tuple[str, Any], ...] = field(default=(), compare=False, repr=False)
    between: bool = field(default=False, compare=False, repr=False)

    def __str__(self) -> str:
        sizes = ", ".join(f"{name} = {value}" for name, value in self.sizes.items())
        values = ", ".join(
            f"{self.aliases.get(name, name)} = {text(value)}" for name, value in self.inputs.items()
        )
        where = ": ".join(part for part in (sizes, values) if part)
        return f"{where}; {self.element} is {self.hand_text}, true is {self.true_text}"


@dataclass(frozen=True)
class Replayed:
    """What the library of the class gives at a counterexample, in a real call.

    ``confirmed``: its backward is wrong there as well; None where the call says nothing.
    """

    confirmed: bool | None
    text: str
    backward: float | None = None
    derivative: float | None = None

    def __bool__(self) -> bool:
        return self.confirmed is True

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, eq=False)
class CaseReport(HasVerdict):
    """What holds for one input in one case; ``when``: the case's size conditions as text.

    ``conditions``: what a proof of it is under, but for what the report prints for all cases.
    """

    when: str
    verdict: Verdict
    reason: str = ""
    method: str = ""
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, eq=False)
class InputReport(HasVerdict):
    """The verdict on the gradient of one input.

    ``reason``: why it is REFUTED or UNDECIDED.  ``method``: how it was proved.  ``diagnosis``:
    what is wrong, in words.  ``suggestion``: a gradient that is itself proved, as tensor code in
    the user's names.  ``suggested_under``: the conditions that would be printed beside it, but for
    ``conditions``.  ``derived``: the true gradient as symgrad derives it, as tensor code;
    ``derived_but``: where it is not.  ``surrogate``: what backward is instead, of a SURROGATE?;
    ``surrogate_code``: that function as an expression in the arguments of forward, a proposal;
    ``surrogate_facts``: what it needs of inputs; ``surrogate_fixed``: the plain arguments that keep
    their values; ``declaration``: the lines of symgrad.toml that
    declare it, against which backward was PROVED.
    ``replayed``: what the class itself gives at the counterexample, of another library's class.
    """

    name: str
    verdict: Verdict
    reason: str = ""
    method: str = ""
    conditions: tuple[Condition, ...] = ()
    counterexample: CounterexampleReport | None = None
    diagnosis: tuple[str, ...] = ()
    suggestion: str | None = None
    suggested_under: tuple[Condition, ...] = ()
    derived: str | None = None
    derived_but: str = ""
    surrogate: str = ""
    surrogate_code: str = ""
    surrogate_facts: tuple[tuple[str, str], ...] = ()
    surrogate_fixed: tuple[str, ...] = ()
    declaration: str = ""
    replayed: Replayed | None = None
    location: Location | None = None
    cases: tuple[CaseReport, ...] = ()


@dataclass(frozen=True, eq=False)
class Finding(HasVerdict):
    """One theorem of the protocol, such as "linear in the cotangents".

    ``counterexample``: where it does not hold, of what is refuted at a point.  ``limits``: the
    text says under what it is proved, which stands beside no gradient.
    """

    name: str
    verdict: Verdict
    text: str = ""
    counterexample: CounterexampleReport | None = None
    limits: bool = False


@dataclass(frozen=True)
class Repaired:
    """A Function with repairs: their code, by the names of the inputs whose gradients they are.

    ``asks``: a call of it is judged in more ways than its repairs were.
    """

    function: Any
    codes: Mapping[str, str]
    asks: bool = False


@dataclass(frozen=True)
class Diff:
    """A unified diff of the user's file.

    ``scope``: a line for each that says what it was proved for.  ``refused``: why there is none
    though a repair is known.
    """

    text: str = ""
    scope: tuple[str, ...] = ()
    refused: str = ""


@dataclass(frozen=True, eq=False)
class Report(HasVerdict):
    """The verdict on a Function; printing it shows what a person wants to read.

    It is true, and ``ok``, exactly if the verdict is PROVED; it equals its verdict.
    ``domain``: what all verdicts take for granted ("for all n, m >= 1").  ``values``: the plain
    arguments that they hold for, as names and texts; ``quantified``: those of which they hold for
    more than one value (``all real alpha > 0``).  ``presences``: which
    optional tensors are given and which are not.  ``derived``: there is no hand-written backward,
    and the derived one was judged.  ``inferred``: which shapes were, where nobody stated them, in
    sentences; ``guessed``: these shapes alone; ``beside``: the verdicts for other ranks, of which
    this is the worst.  ``timed_out``: the time limit stopped a part of the work, so that the same
    call may say more another time.  ``repair``: makes the diff; ``repaired``: the Function with all
    repairs.  ``seconds``: of processor time, from the search for shapes to the repairs, without
    ``diff``.
    """

    name: str
    location: Location | None
    inputs: Mapping[str, InputReport]
    protocol: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    domain: str = ""
    values: tuple[tuple[str, str], ...] = ()
    quantified: tuple[str, ...] = ()
    presences: tuple[str, ...] = ()
    derived: bool = False
    inferred: str = ""
    guessed: str = ""
    beside: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    timed_out: bool = False
    details: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    repair: Callable[[], Diff] | None = field(default=None, repr=False, compare=False)
    repaired: Repaired | None = field(default=None, repr=False, compare=False)

    @property
    def diff(self) -> str:
        """A unified diff of the user's file after which what is refuted here is PROVED.

        Empty where nothing is refuted, or where no repair could be written into the file.
        """
        return self.made.text

    @cached_property
    def made(self) -> Diff:
        """The diff, with what it was proved for, or why there is none."""
        return self.repair() if self.repair is not None else Diff()

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all inputs and of the protocol."""
        return worst(
            [*(report.verdict for report in self.inputs.values()),
             *(finding.verdict for finding in self.protocol)]
        )  # fmt: skip

    @property
    def given(self) -> str:
        """`` for alpha = 1.0; for bias given``: the arguments that it holds for."""
        fixed = ", ".join(f"{name} = {text}" for name, text in self.values)
        return stated((), [", ".join(self.quantified), fixed, *_together(self.presences)])

    @property
    def stated(self) -> str:
        """The verdict with all that must not be left out beside it, on one line."""
        return f"{self.verdict}{self.given}{f' ({DERIVED})' if self.derived else ''}"

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of all inputs, each once."""
        found = [c for report in self.inputs.values() for c in report.conditions]
        return tuple(dict.fromkeys(found))

    @property
    def refuses(self) -> bool:
        """Does backward raise by a ``raise`` or an ``assert`` of its own, for all inputs?"""
        found = [one.reason.startswith(REFUSED) for one in self.inputs.values()]
        return bool(found) and all(found)

    @property
    def limits(self) -> tuple[str, ...]:
        """Under what theorems of the protocol are proved, where no gradient has that condition."""
        return tuple(f"{one.name}: {one.text}" for one in self.protocol if one.limits)

    @property
    def declared(self) -> str:
        """What was declared of the inputs; the regions of plain numbers are in ``quantified``."""
        said = " ".join(self.quantified)
        found = (one.text for one in self.conditions if one.kind == "declared")
        return "; ".join(text for text in found if text not in said)

    def raise_for_verdict(self) -> None:
        """Raise NotProvedError unless the verdict is PROVED."""
        if self.verdict is not Verdict.PROVED:
            blamed = [
                f"{report.name} is {report.verdict}" for report in self.inputs.values()
                if report.verdict is not Verdict.PROVED
            ] + [
                f"{finding.name} is {finding.verdict}" for finding in self.protocol
                if finding.verdict is not Verdict.PROVED
            ]  # fmt: skip
            raise NotProvedError(
                f"the backward of {self.name} is {self.verdict}{self.given}: {'; '.join(blamed)}\n"
                f"{self}",
                location=self.location,
            )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain dicts, lists, strings and numbers: what ``--json`` prints."""
        shapes = {"inferred_shapes": self.inferred, "judged_as_well": dict(self.beside)}
        return {
            "function": self.name,
            **_placed(self.location),
            "verdict": str(self.verdict),
            "values": dict(self.values),
            "quantified": list(self.quantified),
            "presences": list(self.presences),
            "derived": self.derived,
            "domain": self.domain,
            "seconds": self.seconds,
            "timed_out": self.timed_out,
            "inputs": {
                name: _plain(one) | _placed(one.location) for name, one in self.inputs.items()
            },
            "protocol": [_plain(finding) for finding in self.protocol],
            "notes": list(self.notes),
            **(shapes if self.inferred else {}),
        }

    def __str__(self) -> str:
        return as_text(self)

    @property
    def formulas(self) -> Formulas | None:
        """Both gradients of every input as LaTeX, made when they are asked for."""
        found: Formulas | None = self.details.get("formulas")
        return found

    def _repr_html_(self) -> str:
        return as_html(self)

    def _repr_latex_(self) -> str:
        return as_latex(self)


def _together(presences: Sequence[str]) -> Sequence[str]:
    """``bias given or absent`` where every choice of optional tensors is there."""
    words = {word for text in presences for word in re.findall(r"\w+", text)}
    names = sorted(words - {"given", "absent", "and"})
    if len(presences) < 2 or len(presences) != 2 ** len(names):
        return presences
    return [f"{' and '.join(names)} given or absent"]


def _placed(location: Location | None) -> dict[str, Any]:
    """Where something is; ``columns``: the first character from 1, and that after the last."""
    if location is None:
        return {"location": None}
    columns = location.characters()
    found = {"columns": [one + 1 for one in columns]} if columns is not None else {}
    return {"location": str(location), **found}


def _plain(value: Any) -> Any:
    if isinstance(value, (Verdict, Location)):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Condition):
        return value.to_dict()
    if hasattr(value, "__dataclass_fields__"):
        shown = [name for name, one in value.__dataclass_fields__.items() if one.compare]
        return {name: _plain(getattr(value, name)) for name in shown}
    return value
