"""The state of a search: its arguments, what was traced, and what that told of the arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import ModuleType, NoneType
from typing import Any

from symgrad.budgets import SHAPE_STEPS, TRIAL_CASES
from symgrad.errors import (
    CasesError,
    ControlFlowError,
    Location,
    ShapeError,
    SymgradError,
    TraceError,
    TruthError,
)
from symgrad.frontend.asked import OTHER, values_of
from symgrad.frontend.branches import branches
from symgrad.frontend.compared import comparing
from symgrad.frontend.evidence import AnyFunction, parameters, statistics
from symgrad.frontend.function import class_of
from symgrad.frontend.request import Request, bind, declared
from symgrad.frontend.session import as_symgrad_error, refuses_sizes
from symgrad.frontend.settings import Attributes, Setting, Settings, settings_of
from symgrad.frontend.spec import TensorSpec
from symgrad.frontend.state import changes_of
from symgrad.frontend.tensor import SymbolicTensor
from symgrad.frontend.trace import trace_request
from symgrad.frontend.unsupported import MissingOperationError
from symgrad.ir.assume import Assumption
from symgrad.ir.dim import Dim
from symgrad.ir.function import FunctionGraphs
from symgrad.plain_values import described
from symgrad.shapes.candidates import (
    A_NUMBER,
    Candidate,
    Unknown,
    unknowns,
    with_complex,
    with_settings,
)
from symgrad.shapes.hopeless import Hopeless
from symgrad.shapes.outcomes import asks_ways, problem_of, refusal_of, valued_of
from symgrad.shapes.sizes import USUAL_NUMBERS, Specs, Step, following, letters, renamed
from symgrad.shapes.trial import NONE, Trial, is_float, put

LEARNED_PRICE = 12
ENDING_ALIKE = 8
"""So many trials that end in a missing module, name or attribute show that all will."""
Ending = tuple[SymgradError, str]
"""How a trial ended, and of which shapes."""


class Search:
    """What is searched, and what trials have told so far."""

    trials = 0
    first: Exception | None = None
    alike = True
    """Did all trials of tensors end in the same error, the first?"""
    missing: MissingOperationError | None = None
    ending: SymgradError | None = None
    same = 0
    """How many trials have ended alike, one after the other, as they will for all arguments."""
    numbers = USUAL_NUMBERS
    """What is put for sizes that Python has to know."""
    ways = False
    """May a trace have a way for each value of a number that Python has to know?"""
    ways_help = False
    """Was one refused that would have?"""
    loose = 0
    """Which sizes stand in the place of those that forward need not have as one."""
    passed: tuple[str, ...] = ()
    """Arguments with a default without which backward fails."""
    most_cases = TRIAL_CASES
    many_cases: CasesError | None = None
    """How a trial ended because forward asks too much about its sizes."""

    def __init__(
        self, function: AnyFunction, static: Mapping[str, Any], assume: Mapping[str, str],
        order: int, facts: Sequence[Assumption] = (),
    ) -> None:  # fmt: skip
        self.function = function
        self.static, self.assume, self.order, self.facts = static, assume, order, facts
        self.guest = class_of(function).symgrad_guest
        known = {**declared(class_of(function)), **assume}
        self.square = frozenset(name for name, fact in known.items() if "symmetric" in fact)
        self.unknowns: list[Unknown] = list(unknowns(function, static))
        self.settings = settings_of(function)
        """What is known of arguments that hold settings."""
        self.partly = any(one.spec for unknown in self.unknowns for one in unknown.candidates)
        self.refusals: list[Exception] = []
        self.accepted: list[Trial] = []
        """What forward accepted, whatever backward did."""
        self.failed: list[Trial] = []
        """What forward accepted, and backward did not."""
        self.endings: dict[str, Ending] = {}
        """How trials ended, each once: by what is said, the first that ended so."""
        self.shapeless: dict[str, Exception] = {}
        """The errors of trials of floats that are not about shapes."""
        self.asked: set[str] = set()
        """Arguments whose values Python would have to know, each alone: plain ones come first."""
        self.places: set[Location | None] = set()
        """Where trials ended."""
        self.learned: dict[str, list[type]] = {}
        """Whether arguments were found to be compared with texts, and with integers."""
        self.literals: dict[str, list[Any]] = {}
        """What they are compared with."""
        self.parts: dict[str, tuple[str, Location | None]] = {}
        """What arguments are asked for that neither tensors nor numbers have, and where."""
        self.with_items: dict[str, SymgradError] = {}
        """Arguments whose items backward uses, and what it raised for values that were tried."""
        self.traced: dict[tuple[Any, ...], tuple[FunctionGraphs | None, Exception | None]] = {}
        """What was traced already, or why it was not."""
        self.statistics = statistics(self.function)
        """Running statistics, of which no gradient is wanted."""
        self.typed: frozenset[str] = NONE
        """Numbers whose type the program may ask for, which are judged as such."""
        self.hopeless = Hopeless()
        self.beside: dict[tuple[Any, ...], tuple[list[Trial], bool]] = {}
        """What was traced at numbers that are no multiples."""
        self.untied: dict[tuple[Any, ...], Trial] = {}
        """What was tried before an index got as many rows as what it is an index of."""
        self.values: dict[int, list[Candidate]] = {}
        """By place the other values of plain arguments that are judged alone."""
        self.void: set[tuple[str, tuple[str, ...]]] = set()
        """Shapes, with values of plain arguments that forward refuses there."""

    def request(self, trial: Trial) -> Request:
        """A combination, bound.  Raises SpecError."""
        specs, static, assume = {}, dict(self.static), dict(self.assume)
        for unknown, one, spec in zip(self.unknowns, trial.chosen, trial.specs, strict=True):
            name = unknown.name
            if spec is not None:
                specs[name] = _spec_text(spec)
            else:
                static[name] = one.value
            own = "constant, number" if one.constant else self._held(name, one)
            if own:
                assume[name] = ", ".join(filter(None, [own, assume.get(name)]))
        found = bind(self.function, specs, static, assume, self.order)
        symbols = {unknown.name for unknown, one in self.rows(trial) if one.constant}
        facts = (one for one in self.facts if one.name in symbols)
        return replace(found, assumptions=(*found.assumptions, *facts))

    def _held(self, name: str, one: Candidate) -> str:
        """What is assumed of running statistics: no gradient of these is wanted."""
        return "constant" if name in self.statistics and is_float(one) else ""

    def shapes(self, trial: Trial, absent: Collection[str] = ()) -> str:
        """What is inferred of the arguments but those that are absent, with sizes in order."""
        shown = [unknown.name not in absent for unknown in self.unknowns]
        specs = tuple(spec if kept else None for spec, kept in zip(trial.specs, shown, strict=True))
        specs = renamed(specs, trial.guessed, self.taken(trial))
        rows = zip(self.unknowns, trial.chosen, specs, shown, strict=True)
        return ", ".join(
            _described(unknown.name, one, spec)
            + (" (without a gradient)" if self._held(unknown.name, one) else "")
            for unknown, one, spec, kept in rows
            if kept
        )

    def rows(self, trial: Trial) -> Iterator[tuple[Unknown, Candidate]]:
        """The arguments with what stands for them."""
        return zip(self.unknowns, trial.chosen, strict=True)

    def taken(self, trial: Trial) -> set[str]:
        """What no size is called: the numbers and plain values that forward takes."""
        plain = {unknown.name for unknown, one in self.rows(trial) if one.is_value or one.constant}
        return plain | {
            one.name for one in parameters(self.function) if one.default is not one.empty
        }  # fmt: skip

    def nearest(self) -> Ending | None:
        """The ending of the trial that came farthest: at the last line, rather not by its sizes.

        Lines are compared in the file in which most trials ended.
        """
        known = [(one, shapes) for one, shapes in self.endings.values() if one.location]
        files = Counter(one.location.file for one, _ in known if one.location)
        if not known:
            return next(iter(self.endings.values()), None)
        (file, _), *_ = files.most_common(1)

        def order(ending: Ending) -> tuple[bool, int, bool]:
            error, place = ending[0], ending[0].location
            assert place is not None
            return place.file == file, place.line, not refuses_sizes(error)

        return max(known, key=order)

    def with_ways(self) -> Search:
        """A new search, in which a trace may have a way for each value of a number."""
        other = Search(self.function, self.static, self.assume, self.order)
        other.ways, other.most_cases, other.unknowns = True, self.most_cases, list(self.unknowns)
        return other

    def forward(self, chosen: tuple[Candidate, ...]) -> tuple[Trial | None, FunctionGraphs | None]:
        """Trace, making equal the sizes that meet, until forward accepts or refuses the rest."""
        few: tuple[Trial | None, FunctionGraphs | None] = (None, None)
        for numbers in (self.numbers, self.numbers[:1]):
            step = Step(self._fresh(chosen), numbers=numbers, loose=self.loose, ways=self.ways)
            for _ in range(SHAPE_STEPS):
                trial = Trial(
                    chosen, step.specs, tried=step.tried, uneven=step.uneven, tied=step.tied
                )
                graphs, error = self.trace(trial)
                if graphs is not None:
                    error = refusal_of(graphs)
                    if error is None or following(step, trial.guessed, error) is None:
                        self.hopeless.note(chosen, None)
                        return trial, graphs
                    few = trial, graphs
                if error is None:
                    return few
                after = following(step, trial.guessed, error)
                if after is None:
                    self.refusals.append(error)
                    self.hopeless.note(chosen, error)
                    break
                step = after
            if len(step.tried) < 2:  # else the same number for both may do
                break
        return few

    def trace(self, trial: Trial) -> tuple[FunctionGraphs | None, Exception | None]:
        """The graphs of a trial, or why it was not traced."""
        self.trials += 1
        own = [(unknown.name, type(one.value))
               for unknown, one in zip(self.unknowns, trial.chosen, strict=True)]  # fmt: skip
        state = self.most_cases, len(changes_of(self.function))
        key = trial.chosen, trial.specs, tuple(own), state
        if key not in self.traced:
            self.traced[key] = self._traced(trial)
        return self.traced[key]

    def _traced(self, trial: Trial) -> tuple[FunctionGraphs | None, Exception | None]:
        try:
            with comparing() as compared:
                found = self._in_a_branch(self.request(trial))
            if not self.ways and (valued := valued_of(found)) is not None:
                raise valued
            refused = refusal_of(found)
            if isinstance(refused, TruthError) and not self.ways:
                raise refused
            self.ways_help |= any(one.problem and asks_ways(one.problem) for one in found.cases)
        except Exception as raised:  # forward may raise anything on what it is not meant for
            error = _as_question(raised) if isinstance(raised, TruthError) else raised
            ending = as_symgrad_error(error, "forward")
            self.ways_help |= asks_ways(ending)
            self.places.add(ending.location)
            if str(ending) not in self.endings:
                self.endings[str(ending)] = ending, self.shapes(trial)
            if all(one.is_tensor and not one.constant for one in trial.chosen):
                first = self.first = self.first or error
                self.alike &= str(error) == str(first)
            if all(map(is_float, trial.chosen)) and not isinstance(error, ShapeError):
                self.shapeless.setdefault(str(error), error)
            if isinstance(error, CasesError):
                self.many_cases = error
            if isinstance(error, MissingOperationError):
                self.missing = self.missing or error
            asked = error.asked if isinstance(error, ControlFlowError) else NONE
            self.asked |= asked if len(asked) == 1 else NONE
            self._note_ending(ending)
            self._learn_settings(trial, error)
            self._learn_complex(error, first=True)
            return None, error
        finally:
            self._learn(trial, compared)
        if (problem := problem_of(found)) is not None:
            self._learn_complex(problem, first=False)
        return found, None

    def _in_a_branch(self, request: Request) -> FunctionGraphs:
        """The trace; where it asks on which side of literals numbers are, of the first answers.

        Raises what forward raises for all answers, and the question where there are too many.
        """

        def trace(one: Request) -> FunctionGraphs:
            return trace_request(one, most_cases=self.most_cases)

        every = list(branches(request, trace))
        accepted = [one for _, one in every if isinstance(one, FunctionGraphs)]
        if not accepted and isinstance(every[0][1], SymgradError):
            raise every[0][1]
        numbers = {fact.name for branch, _ in every for fact in branch.facts}
        written = {name for one in accepted for case in one.cases for name in case.updated}
        if written & numbers:  # of a number, scale *= 2 makes another one
            said = "a number that Python asks for is written in place"
            raise ControlFlowError(said, asked=written & numbers)
        return accepted[0]

    def _learn(self, trial: Trial, compared: Mapping[str, Sequence[Any]]) -> None:
        """What is compared with texts is one of these; what Python asks for, with integers, too."""
        for at, unknown in enumerate(self.unknowns[: len(trial.chosen)]):
            name, literals = unknown.name, compared.get(unknown.name, ())
            part = self.parts.get(name, ("", None))[0]
            kinds = {type(one) for one in literals}
            is_text = hasattr(str, part) or str in kinds or kinds == {NoneType}
            kind = str if is_text else int
            known = self.learned.setdefault(name, [])
            if (not is_text and not (literals and name in self.asked)) or kind in known:
                continue
            known.append(kind)

            def trace(value: Any, at: int = at) -> Any:
                chosen = put(trial.chosen, at, Candidate(0, value=value))
                other = replace(trial, chosen=chosen, specs=put(trial.specs, at, None))
                return trace_request(self.request(other), most_cases=self.most_cases)

            values = values_of(self.function, literals, kind, trace)
            plain = [one for one in unknown.candidates if not (one.is_tensor or one.absent)]
            absent = [replace(one, price=0) for one in unknown.candidates if one.absent]
            first = [*absent, *(Candidate(at, value=one) for at, one in enumerate(values, 1))]
            rest = [replace(one, price=one.price + LEARNED_PRICE) for one in plain]
            if values:
                self.literals[name] = [one for one in values if one != OTHER]
                self.unknowns[at] = replace(unknown, candidates=(*first, *rest))
                self.ending = None

    def _learn_settings(self, trial: Trial, error: Exception) -> None:
        """What is asked for a key, or an attribute, that nothing has, holds settings.

        Each time one more is known, which a function that forward calls may read.
        """
        cause = error.__cause__ if isinstance(error, SymgradError) else error
        key = cause.args[0] if isinstance(cause, KeyError) and cause.args else None
        asked = getattr(cause, "obj", None) if isinstance(cause, AttributeError) else None
        for at, (unknown, own) in enumerate(self.rows(trial)):
            name, value = unknown.name, own.value
            if own.is_value and isinstance(value, (dict, Attributes)):
                known = self.settings.get(name) or Settings(isinstance(value, dict))
                wanted = key if known.by_key else getattr(cause, "name", None)
                missing = type(wanted) is str and wanted not in known.known
                if not missing or (not known.by_key and asked is not value):
                    continue
            elif own.is_tensor and name in self.parts and name not in self.settings:
                part = self.parts[name][0]
                known = Settings(part[:1] in "'\"")
                wanted = part.strip("'\"")
                if not wanted.isidentifier() or (not known.by_key and hasattr(str, part)):
                    continue
            else:
                continue
            known.known[str(wanted)] = Setting()
            self.settings[name] = known
            is_open = not any(one.absent for one in unknown.candidates)
            self.unknowns[at] = with_settings(name, known, is_open)
            self.parts.pop(name, None)
            self.ending, self.same = None, 0

    def _learn_complex(self, error: Exception, *, first: bool) -> None:
        """What would have to be complex may be.  ``first``: forward takes nothing else."""
        names = error.real if isinstance(error, TraceError) else NONE
        own = names & {unknown.name for unknown in self.unknowns}
        for at, unknown in enumerate(self.unknowns) if names else ():
            if unknown.name in own or not own:  # else it is computed from a gradient
                alone = first and len(own) == 1
                self.unknowns[at] = with_complex(unknown, alone=alone, first=first)

    def _note_ending(self, error: SymgradError) -> None:
        """Count trials that end in what no argument changes, one and the same.

        What ends by its sizes does not come so far, and says nothing.
        """
        cause = error.__cause__
        asked = getattr(cause, "obj", None) if isinstance(cause, AttributeError) else None
        node = asked.known_node() if isinstance(asked, SymbolicTensor) else None
        name = ""
        if node is not None and node.op == "input":
            name, part = node.attributes["name"], getattr(cause, "name", "")
        elif isinstance(error, ShapeError) and error.asked:
            (name,), part = error.asked, error.what.partition(" with ")[2]
        if name:
            self.parts.setdefault(name, (part, error.location))
        lacks = isinstance(cause, (ImportError, NameError)) or isinstance(asked, ModuleType)
        if not name and not lacks:
            self.ending = self.ending if refuses_sizes(error) else None
        elif self.ending is None or str(self.ending) != str(error):
            self.ending, self.same = error, 1
        else:
            self.same += 1

    def _fresh(self, chosen: Sequence[Candidate]) -> Specs:
        """Specs in which every axis has a size of its own."""
        given = [one.spec for one in chosen if one.spec is not None]
        fresh = letters({name for spec in given for name in (*spec.sizes, spec.batch or "")})
        specs: list[TensorSpec | None] = []
        for unknown, one in zip(self.unknowns, chosen, strict=True):
            spec = one.spec
            if one.rank is not None:
                dims = [Dim.size(next(fresh)) for _ in range(one.rank)]
                if unknown.name in self.square:
                    dims[-1] = dims[-2]
                pair = [Dim.of(2)] if one.complex else []
                spec = TensorSpec((*dims, *pair), one.dtype, complex=one.complex)
            specs.append(spec)
        return tuple(specs)


def _as_question(error: TruthError) -> ControlFlowError:
    """The truth value of several elements, as one that Python has to know: a plain value may do."""
    return ControlFlowError(error.what, location=error.location, asked=error.inputs, ways=True)


def _described(name: str, one: Candidate, spec: TensorSpec | None) -> str:
    if one is A_NUMBER:
        return f"{name} (a Python number)"
    if one.constant:
        return f"{name} (any number, without a gradient)"
    return f"{name} = {described(one.value)}" if spec is None else spec.of(name)


def _spec_text(spec: TensorSpec) -> str:
    """``n m``; with a dtype where it is not the default one."""
    text = str(spec)
    return text if spec.dtype is not None or spec.complex else text[len("float[") : -1]
