"""Is the C of an op, and its wrapper, what was traced?  And the texts that say so.

In: the plan of an op and its emitted texts.  Out: ``Validation``; the same texts with its lines.

Each kernel is validated for all sizes (``validate.symbolic``), and the wrapper against the kernels'
graphs and the traced Function (``validate.wrappers``).  What is not validated is executed at small
sizes with exact numbers (``validate.bounded``), which may find a call that is wrong.  What is not
wrong is kept for another time.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from symgrad import abi
from symgrad.budgets import MOST_VERDICTS, ORACLE_SECONDS, VALIDATION_SECONDS
from symgrad.deadline import TimeUp, limited
from symgrad.emission import EmittedOp, Notes, emit
from symgrad.errors import CodegenError, NotValidatedError
from symgrad.ir.function import FunctionGraphs, SizeCondition
from symgrad.ir.graph import Graph
from symgrad.kept import key_of
from symgrad.kernels import OpPlan
from symgrad.runtime.cache import read_note, write_note
from symgrad.validate import bounded
from symgrad.validate.definitions import without_definitions
from symgrad.validate.forms import is_restated
from symgrad.validate.source import (
    Unsupported,
    differences,
    parse,
    parse_header,
    parts,
    without_comments,
)
from symgrad.validate.symbolic.kernel import Outcome
from symgrad.validate.symbolic.kernel import validate as validate_kernel
from symgrad.validate.symbolic.written import READ_AGAIN, STABLE, in_order, sentence
from symgrad.validate.wrappers.wrapper import validate as validate_wrapper

VALIDATED, WRONG, NOT_VALIDATED = "VALIDATED", "WRONG", "NOT VALIDATED"
LAYOUT = "validations-4"
"""The folder of notes beside that of kernels."""
_WRAPPER = "This wrapper VALIDATED against the C and what was traced."
_WRAPPER_ALONE = "This wrapper VALIDATED against the header of its C and what was traced"
_MAY_BE_RIGHT = (
    "it may be right: report it, please, with the Function, since either the validator is too weak"
    " or the generator has a defect"
)
_ROOMS = ("index", "ir", "ops", "passes", "proof", "validate")
_LIBRARIES = ("flint", "mpmath", "numpy", "pycparser", "sympy")


@dataclass(frozen=True)
class Finding:
    """What became of one text: of a kernel, or of the wrapper.

    ``source``: the line of it that ``reason`` is about.  ``taken``: the functions of C that were
    taken for the ops whose records define them.  ``written``: of a kernel, what of it is not
    evaluated as written.  ``limits``: what sizes have to meet so that no integer overflows.
    ``passing``: for lack of time, memory or stack, so that it may end otherwise another time.
    """

    name: str
    verdict: str
    reason: str = ""
    source: str = ""
    taken: tuple[str, ...] = ()
    written: tuple[str, ...] | None = None
    limits: tuple[str, ...] = ()
    passing: bool = False

    @property
    def short(self) -> str:
        """The reason in one line."""
        return self.reason.partition("\n")[0].rstrip(":")

    def to_dict(self) -> dict[str, Any]:
        """What the manifest states."""
        texts = {"verdict": self.verdict, "reason": self.short, "source": self.source}
        lists = {
            "taken": self.taken or None, "written": self.written, "limits": self.limits or None,
        }  # fmt: skip
        return {
            **{name: text for name, text in texts.items() if text},
            **{name: list(one) for name, one in lists.items() if one is not None},
        }

    def __str__(self) -> str:
        where = f"\n    {self.source}" if self.source else ""
        return f"{self.name}: {self.verdict}{self.reason and f': {self.reason}'}{where}"


@dataclass(frozen=True)
class Validation:
    """What became of the kernels of an op, and of its wrapper."""

    kernels: tuple[Finding, ...]
    wrapper: Finding

    @property
    def verdict(self) -> str:
        """The worst of all."""
        found = {one.verdict for one in self.findings}
        return next(one for one in (WRONG, NOT_VALIDATED, VALIDATED) if one in found)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those of the kernels, and that of the wrapper."""
        return (*self.kernels, self.wrapper)

    def to_dict(self) -> dict[str, Any]:
        """What the manifest states."""
        return {
            "kernels": {one.name: one.to_dict() for one in self.kernels},
            "wrapper": self.wrapper.to_dict(),
        }

    def check(self, name: str, allow: Sequence[str] = ()) -> None:
        """Raises NotValidatedError for what is wrong, or not validated and not allowed."""
        if self.verdict == VALIDATED or (self.verdict == NOT_VALIDATED and NOT_VALIDATED in allow):
            return
        failed = "\n".join(str(one) for one in self.findings if one.verdict != VALIDATED)
        hint = (
            "this is a defect of symgrad: report it, please, with the Function"
            if self.verdict == WRONG
            else f'{_MAY_BE_RIGHT}; allow=("{NOT_VALIDATED}",) takes it as it is'
        )
        raise NotValidatedError(f"the C of {name} is {self.verdict}:\n{failed}", hint=hint)

    @property
    def notes(self) -> Notes:
        """The lines that the texts say it in."""
        return Notes(
            self._headline,
            next(iter(_lines(self.wrapper)), self._of_wrapper),
            {one.name: _lines(one) for one in self.kernels},
        )

    @property
    def _failed(self) -> list[str]:
        """The kernels that are not validated."""
        return [one.name for one in self.kernels if one.verdict != VALIDATED]

    @property
    def _of_wrapper(self) -> str:
        """What is said of a wrapper that is validated itself."""
        if not self._failed:
            return _WRAPPER
        whole = len(self._failed) == len(self.kernels)
        of_them = "" if whole else f" for {', '.join(self._failed)}"
        return f"{_WRAPPER_ALONE}; the C {NOT_VALIDATED}{of_them}."

    @property
    def _headline(self) -> str:
        """What is said of all kernels."""
        other = self._failed
        if other and len(other) == len(self.kernels):
            return "This C NOT VALIDATED: no kernel was shown to compute what was traced."
        but = f" but for {', '.join(other)}" if other else ""
        limits = " within the limits stated" if any(one.limits for one in self.kernels) else ""
        sizes = f"for all sizes{limits} and over the reals"
        return f"This C VALIDATED against what was traced{but}, {sizes}."


def _lines(one: Finding) -> tuple[str, ...]:
    if one.verdict != VALIDATED:
        return (f"{one.verdict}: {one.short}",)
    taken = f"VALIDATED with {', '.join(one.taken)} as defined above." if one.taken else ""
    written = sentence(one.written) if one.written is not None else ""
    limits = f"VALIDATED for {', '.join(one.limits)}." if one.limits else ""
    return tuple(filter(None, (taken, limits, written)))


def validated(
    plan: OpPlan, proof: str, *, cached: bool = True
) -> tuple[EmittedOp, Validation]:  # fmt: skip
    """The texts of an op, as ``emit`` makes them, which say whether they are validated.

    ``cached``: what was validated before, by this version, is not validated again.
    """
    first = emit(plan, proof)
    found = validation(plan, first, cached)
    said = emit(plan, proof, notes=found.notes)
    if _programs(first) != _programs(said):
        raise CodegenError(f"the texts of {plan.name} depend on what is said of them")
    return said, found


def _programs(emitted: EmittedOp) -> list[str]:
    """The texts of an op without comments."""
    _docstring, *wrapper = ast.parse(emitted.wrapper()).body
    texts = (without_comments(text).split() for text in emitted.texts.values())
    return [*map(ast.unparse, wrapper), *map(" ".join, texts)]


def validation(plan: OpPlan, emitted: EmittedOp, cached: bool = True) -> Validation:
    """What becomes of the kernels of ``emitted``, and of its wrapper."""
    judged = _kept if cached else _anew
    records = {one.name: one for one in emitted.op.kernels}
    conditions = _conditions(plan)
    found = []
    for one in plan.kernels:
        text = emitted.unit(emitted.op.files[-1 if one.pruned else 0])
        of_kernel = (text, records[one.name], one.graph, conditions[one.name])
        found.append(judged(one.name, _kernel, of_kernel))
    if plan.graphs is not plan.traced:
        found = [*_restated(plan, found)]
    sources = tuple(map(emitted.unit, emitted.op.files))
    graphs = {one.name: one.graph for one in plan.kernels}
    of_wrapper = (
        emitted.wrapper(), emitted.texts[emitted.op.header], sources, emitted.op, plan.graphs,
        graphs,
    )  # fmt: skip
    return Validation(tuple(found), judged("wrapper", _wrapper, of_wrapper))


def _restated(plan: OpPlan, found: Sequence[Finding]) -> Iterator[Finding]:
    """The findings of kernels of a plan in which other forms were put."""
    shown = is_restated(plan.traced, plan.graphs, plan.steps)
    changed = plan.restated
    forms = {STABLE} if plan.steps.everywhere else set()
    backward = forms | ({READ_AGAIN} if plan.steps.late else set())
    said = {
        kernel.name: backward
        for case in plan.cases for kernel in case.backward if kernel is not None
    }  # fmt: skip
    for one in found:
        if one.verdict != VALIDATED or one.name not in changed:
            yield one
        elif shown:
            yield replace(one, written=in_order({*(one.written or ()), *said.get(one.name, forms)}))
        else:
            yield Finding(one.name, NOT_VALIDATED, "its forms were not shown to be equal")


def _conditions(plan: OpPlan) -> dict[str, tuple[SizeCondition, ...]]:
    """What holds of the sizes whenever a kernel is called."""
    return {
        kernel.name: (*one.case.conditions, *one.case.requires)
        for one in plan.cases
        for kernel in (one.inference, one.forward, *one.backward)
        if kernel is not None
    }


def _anew(name: str, judge: Callable[..., Finding], seen: tuple[Any, ...]) -> Finding:
    return judge(name, *seen)


def _kept(name: str, judge: Callable[..., Finding], seen: tuple[Any, ...]) -> Finding:
    """What ``judge`` finds of ``seen`` now, or has found of the same before."""
    key = key_of((name, version("islpy"), seen), _ROOMS, _LIBRARIES)
    note = None if key is None else read_note(key, LAYOUT)
    if note is not None:
        return _of_note(name, note)
    found = judge(name, *seen)
    if key is not None and found.verdict != WRONG and not found.passing:
        write_note(key, json.dumps(_noted(found)), LAYOUT, MOST_VERDICTS)
    return found


def _noted(found: Finding) -> dict[str, Any]:
    """All of a finding but the name, which is in the key."""
    return {key: one for key, one in vars(found).items() if key not in ("name", "passing")}


def _of_note(name: str, note: str) -> Finding:
    said: dict[str, Any] = {
        key: tuple(one) if isinstance(one, list) else one for key, one in json.loads(note).items()
    }  # fmt: skip
    return Finding(name, **said)


def _kernel(
    name: str, text: str, record: abi.Kernel, graph: Graph, conditions: Sequence[SizeCondition]
) -> Finding:
    try:
        with limited(VALIDATION_SECONDS):
            outcome = validate_kernel(text, record, graph, conditions)
    except TimeUp:
        outcome = Outcome(False, f"it takes more than {VALIDATION_SECONDS:g} s", passing=True)
    if outcome.validated:
        taken, written = outcome.taken, outcome.written
        return Finding(name, VALIDATED, taken=taken, written=written, limits=outcome.limits)
    wrong, ended = _executed(text, record, graph, conditions)
    if wrong is not None:
        return Finding(name, WRONG, wrong.told, wrong.source)
    source, passing = _line_of(text, outcome.line), outcome.passing or not ended
    return Finding(name, NOT_VALIDATED, outcome.reason, source, passing=passing)


def _executed(
    text: str, record: abi.Kernel, graph: Graph, conditions: Sequence[SizeCondition]
) -> tuple[bounded.Wrong | None, bool]:
    """A call at small sizes that is wrong, where one is found in time; did the search end?"""

    def admits(sizes: Mapping[str, int]) -> bool:
        return all(one.holds(sizes) for one in conditions)

    try:
        with limited(ORACLE_SECONDS):
            found = bounded.check(parse(text), record, graph, admits)
    except Unsupported:  # what the oracle cannot execute, it cannot call wrong
        return None, True
    except (TimeUp, Exception):
        return None, False
    return (found if isinstance(found, bounded.Wrong) else None), True


def _wrapper(
    name: str, text: str, header: str, sources: Sequence[str], op: abi.Op, graphs: FunctionGraphs,
    kernels: Mapping[str, Graph],
) -> Finding:  # fmt: skip
    try:
        with limited(VALIDATION_SECONDS):
            declared = parse_header(header)
            units = [parse(without_definitions(one)[0]) for one in sources]
            for difference in differences(declared, units):
                raise Unsupported(difference)
            outcome = validate_wrapper(text, declared, op, graphs, kernels)
    except Unsupported as problem:
        outcome = Outcome(False, f"its header: {problem.reason}")
    except TimeUp:
        outcome = Outcome(False, f"it takes more than {VALIDATION_SECONDS:g} s", passing=True)
    except Exception as error:  # nothing passes by default
        outcome = Outcome(False, f"not understood: {type(error).__name__}: {error}", passing=True)
    if outcome.validated:
        return Finding(name, VALIDATED)
    wrong = outcome.reason.startswith("wrong: ")
    reason = outcome.reason.removeprefix("wrong: ")
    verdict, source = WRONG if wrong else NOT_VALIDATED, _line_of(text, outcome.line)
    return Finding(name, verdict, reason, source, passing=outcome.passing)


def _line_of(text: str, number: int) -> str:
    """A line by its number from 1; "" for 0."""
    return parts(text)[0].split("\n")[number - 1].strip() if number else ""
