"""Best-first search over what the arguments of a Function may be.

In: a Function, values of plain arguments, assumptions.  Out: a ``Request``.

Shapes for which backward raises, or returns a gradient that does not fit, are taken only where
there are no others; a number or integers for what gets a gradient, only where forward accepts
nothing else: a gradient that is summed too far fits a number, and that of integers is ignored.
For the same reason a plain value stands for an argument only where tensors get no gradient.
Nothing is chosen by a verdict, since that would prefer shapes for which a mistake does not show.
What backward alone reads is what backward takes, since its true gradient is 0.
What forward and backward accept beside the cheapest shapes, with other ranks, is found too.
"""

from __future__ import annotations

import heapq
import inspect
import itertools
import re
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from types import NoneType
from typing import Any, TypeVar

from symgrad import deadline
from symgrad.budgets import (
    MOST_ELSEWHERE,
    MOST_OTHER_SHAPES,
    MOST_TOGETHER,
    SHAPE_STEPS,
    SHAPE_TRIALS,
    TENSOR_TRIALS,
    TOGETHER_SHARE,
    TRIAL_CASES,
    TRIALS_AFTER_A_TRACE,
)
from symgrad.errors import (
    CasesError,
    ControlFlowError,
    DTypeError,
    Location,
    ShapeError,
    SpecError,
    SymgradError,
    counted,
    is_limit,
)
from symgrad.frontend.asked import OTHER, values_of
from symgrad.frontend.branches import branches
from symgrad.frontend.compared import comparing
from symgrad.frontend.evidence import (
    MOST_UNPACKED,
    AnyFunction,
    asked_for_none,
    called,
    counts_axes,
    is_stated_tensor,
    listed,
    named_axes,
    parameters,
    saved_names,
)
from symgrad.frontend.function import class_location, class_of, raw_method
from symgrad.frontend.lift import IndexKindError
from symgrad.frontend.request import Guess, Presence, Request, bind, check_stated, declared, subsets
from symgrad.frontend.session import as_symgrad_error, refuses_sizes
from symgrad.frontend.spec import TensorSpec
from symgrad.frontend.state import changes_of
from symgrad.frontend.tensor import SelectedShapeError, SymbolicTensor
from symgrad.frontend.trace import trace_request
from symgrad.frontend.unsupported import MissingOperationError
from symgrad.ir.dim import Dim, Size
from symgrad.ir.dtype import DType, bool_, int64
from symgrad.ir.function import FunctionGraphs, SizeCondition
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.integers import ramp
from symgrad.ops.movement import bare
from symgrad.ops.record import get
from symgrad.passes.rules import number
from symgrad.plain_values import described, is_alike
from symgrad.shapes.candidates import (
    ABSENT,
    CONSTANT,
    INDICES,
    ITEMS,
    MORE_VALUES,
    RANKS,
    Candidate,
    Unknown,
    left_out,
    list_of_tensors,
    unknowns,
)
from symgrad.shapes.hopeless import Hopeless
from symgrad.shapes.sizes import (
    OTHER_NUMBERS,
    USUAL_NUMBERS,
    Places,
    Specs,
    Step,
    factors,
    fitted,
    following,
    indexed,
    letters,
    names,
    numbered,
    rank_fits,
    renamed,
    substituted,
    unpacks,
)

T = TypeVar("T")
ODD_PRICE = 2
FAILING_PRICE = 100
MOST_TIED = 2
"""Shapes of other ranks that are judged where backward takes these with two sizes as one alone."""
MOST_LOOSE = 4
"""Shapes that are judged in which sizes are not one that forward does not need to be."""
MOST_SUMMED = 9
"""Shapes of repeated tensors that are judged where PyTorch sums a gradient that is larger."""
MOST_PAIRS = 6
"""Shapes of two repeated tensors that are judged."""
RAISING_PRICE = 10
"""Of a backward that raises, beside one whose gradients do not fit: it makes none."""
NUMBER_PRICE = 2 * FAILING_PRICE
"""Of a number, or of integers, that get a gradient: more than that of a backward that fails."""
_UNPACKED = re.compile(r"not enough values to unpack \(expected (\d), got (\d)\)")
_BEYOND = re.compile(r"axis (\d) is out of range for a tensor with (\d) ax[ie]s")
MISTAKE_PRICE = 1
"""A gradient of the right rank and the wrong sizes is rather a mistake than a wrong guess."""
LEARNED_PRICE = 12
ENDING_ALIKE = 8
"""So many trials that end in a missing module, name or attribute show that all will."""
SHOWN_ERRORS = 3
FITTING_TRIALS = 12
"""How many shapes near to some are tried, since these do not fit backward."""
MOST_LATE = 4000
"""How many combinations wait until others were tried."""
READING_TRIALS = 80
"""How many calls are spent on what backward alone reads, where it raises."""
_NO_ITEMS = re.compile(
    r"'(int|bool|float)' object is not (iterable|subscriptable)"
    r"|object of type '(int|bool|float)' has no len|must be an iterable, not (int|bool|float)"
)
"""What Python says of a number that is used as a tuple."""
_OF_VALUES = (TypeError, ValueError, IndexError, AssertionError)
"""What other items may avoid."""
NONE: frozenset[str] = frozenset()
BOTH = (True, False)


def find(
    function: AnyFunction, static: Mapping[str, Any], assume: Mapping[str, str], order: int = 1
) -> Request:
    """The cheapest shapes with which forward, and if possible backward, can be traced.

    Its ``guess`` holds the same with other ranks, as far as forward and backward accept them, with
    tensors for plain defaults, and with optional tensors given and absent.  Raises SpecError,
    which lists what was tried, where there are none.
    """
    check_stated(function, static, assume, order)
    found = _Search(function, static, assume, order).run()
    assert found.guess is not None

    def again(other: AnyFunction, values: Mapping[str, Any] | None = None) -> Request:
        return find(other, {**static, **(values or {})}, assume, order)

    return replace(found, guess=replace(found.guess, again=again))


@dataclass(frozen=True)
class _Trial:
    """One combination of candidates, with the sizes that forward made equal."""

    chosen: tuple[Candidate, ...]
    specs: Specs
    failing: int = 0
    raising: bool = False
    """Does backward raise?"""
    hidden: bool = False
    """Is there a number, or are there integers, that get a gradient, or integers alone?"""
    fits: bool = True
    """Does backward run, and has each gradient the shape of its argument?"""
    tried: frozenset[Places] = frozenset()
    """Where numbers stand for sizes, since Python needs some."""
    uneven: frozenset[Places] = frozenset()
    """Where multiples stand for sizes, since symgrad traces no others."""
    tied: bool = False
    """Are sizes one that forward may not need to be?"""
    single: bool = False
    """Has an index one element along an axis that the tensor does not have?"""
    summed: frozenset[str] = NONE
    """The tensors whose gradients are made of them and of sums over all axes."""

    @property
    def kinds(self) -> list[Candidate]:
        """What the arguments are, whatever their ranks."""
        return [replace(one, price=0, rank=None if one.rank is None else 0) for one in self.chosen]

    @property
    def guessed(self) -> list[bool]:
        return [one.rank is not None for one in self.chosen]

    @property
    def price(self) -> int:
        """The less, the better: cheap candidates, free sizes, a backward that fits."""
        rows = list(zip(self.specs, self.guessed, strict=True))
        odd = sum(spec.oddities for spec, free in rows if spec is not None and free)
        odd += self.single + sum(
            len(dim.sizes) > 1 for spec, free in rows if spec is not None and free
            for dim in spec.dims
        )  # fmt: skip
        prices = sum(one.price for one in self.chosen) + ODD_PRICE * odd
        return prices + self.failing + NUMBER_PRICE * self.hidden


class _Search:
    def __init__(
        self, function: AnyFunction, static: Mapping[str, Any], assume: Mapping[str, str],
        order: int,
    ) -> None:  # fmt: skip
        self.function = function
        self.static, self.assume, self.order = static, assume, order
        self.guest = class_of(function).symgrad_guest
        facts = {**declared(class_of(function)), **assume}
        self.square = frozenset(name for name, fact in facts.items() if "symmetric" in fact)
        self.unknowns: list[Unknown] = list(unknowns(function, static))
        self.partly = any(one.spec for unknown in self.unknowns for one in unknown.candidates)
        self.refusals: list[Exception] = []
        self.accepted: list[_Trial] = []
        """What forward accepted, whatever backward did."""
        self.failed: list[_Trial] = []
        """What forward accepted, and backward did not."""
        self.trials = 0
        self.errors: dict[str, str] = {}
        self.first: Exception | None = None
        self.alike = True
        """Did all trials of tensors end in the same error, the first?"""
        self.missing: MissingOperationError | None = None
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
        self.ending: SymgradError | None = None
        self.same = 0
        """How many trials have ended alike, one after the other, as they will for all arguments."""
        self.numbers = USUAL_NUMBERS
        """What is put for sizes that Python has to know."""
        self.loose = 0
        """Which sizes stand in the place of those that forward need not have as one."""
        self.traced: dict[tuple[Any, ...], tuple[FunctionGraphs | None, Exception | None]] = {}
        """What was traced already, or why it was not."""
        self.hopeless = Hopeless()
        self.beside: dict[tuple[Any, ...], tuple[list[_Trial], bool]] = {}
        """What was traced at numbers that are no multiples."""
        self.untied: dict[tuple[Any, ...], _Trial] = {}
        """What was tried before an index got as many rows as what it is an index of."""
        self.values: dict[int, list[Candidate]] = {}
        """By place the other values of plain arguments that are judged alone."""
        self.void: set[tuple[str, tuple[str, ...]]] = set()
        """Shapes, with values of plain arguments that forward refuses there."""
        self.most_cases = TRIAL_CASES
        self.many_cases: CasesError | None = None
        """How a trial ended because forward asks too much about its sizes."""

    def run(self) -> Request:
        """The cheapest combination of those that forward accepts."""
        self._refuse_functions()
        self._refuse_lists()
        found = self._cheapest(SHAPE_TRIALS)
        if found is None and self.many_cases is not None:
            self.most_cases = 10 * TRIAL_CASES
            found = self._cheapest(self.trials + 16)
        if found is None:
            raise self.many_cases or self._nothing()
        self._refuse_values(found)
        if found.failing and self.guest is not None:
            found = self._as_returned(found)
        if found.raising:
            found = self._as_read(self._as_labels(found))
        if not found.failing:
            found = self._with_tensors(found)
        guess, ranks = self._presences(found), list(self._others(found))
        shapes = self._at_other_shapes(found, ranks)
        values = [] if found.failing else list(self._valued(found, bool(guess.presences)))
        longer = [] if found.failing else [
            *self._indexed(found), *self._compared(found), *self._longer(found)
        ]  # fmt: skip
        wider = self._wider(found)
        others = [*values, *longer, *(self._marked(one, **said) for one, said in shapes)]
        others += self._combined([(found, {}), *shapes], ranks, bool(guess.presences))
        guess = replace(
            guess, others=tuple(others), near=cache(partial(self._fitting, found)), wider=wider,
            counted=counts_axes(self.function), void=frozenset(self.void),
            unread=cache(partial(self._unread, found)),
        )  # fmt: skip
        return replace(self._found(found), guess=guess)

    def _at_other_shapes(
        self, found: _Trial, ranks: Sequence[_Trial]
    ) -> list[tuple[_Trial, dict[str, Any]]]:
        """Other shapes that are judged, with what ``Guess`` says of them."""
        uneven = [] if found.failing else self._uneven(found)[0]
        loose = [] if found.failing else self._loosened([found, *ranks])
        others = [(one, {"accident": self._leaves_labels(found, one)}) for one in ranks]
        shapes: list[tuple[_Trial, dict[str, Any]]] = [*others[:MOST_OTHER_SHAPES]]
        special = [*self._at_which_it_fails(found), *self._with_more_indices(found)]
        untied = self.untied.get((found.chosen, found.specs), found)
        special += [untied] if untied.specs != found.specs else []
        shapes += [(one, {"accident": True}) for one in special]
        shapes += [(one, {"accident": not one.fits, "written": one.fits}) for one in loose]
        for one, summed, alike in () if found.failing else self._repeated(found, ranks):
            said = {"accident": not (alike or summed), "written": alike, "summed": summed}
            shapes.append((one, said))
        return [*shapes, *((one, {"accident": True}) for one in uneven)]

    def _refuse_values(self, found: _Trial) -> None:
        """Raises SymgradError for a value that the code compares with, and that is not traced.

        Else the verdict would hold for the other values alone.  What the program raises on purpose
        shows that the value is none.
        """
        for at, (unknown, own) in enumerate(zip(self.unknowns, found.chosen, strict=True)):
            literals = self.literals.get(unknown.name, []) if own.is_value else []
            for value in [*literals, 2] if literals and type(own.value) is int else literals:
                self.refusals = []
                trial, _ = self._forward(_put(found.chosen, at, Candidate(0, value=value)))
                for error in self.refusals if trial is None else ():
                    said = as_symgrad_error(error, "forward")
                    if is_limit(said) and not refuses_sizes(said):
                        said.what += f" (for {unknown.name} = {value!r})"
                        raise said
                    if isinstance(said.__cause__, (AttributeError, TypeError, NameError)):
                        raise self._nothing()

    # -- shapes that fit backward, too

    def _fitting(self, found: _Trial) -> Request | None:
        """Shapes to judge where backward is refuted for what was found; None for none.

        They have numbers where the gradients are numbers.  Else they are the nearest shapes for
        which backward runs, and each gradient has its argument's shape, if it does not for these.
        What is compared by ``==`` alone is an integer there, such as a class; integers that forward
        takes as a mask as well are one.
        """
        other = self._with_numbers(found) if found.fits else self._nearest(found)
        other = self._with_integers(other or found) or other or self._with_mask(found)
        if other is None:
            return None
        return replace(self._found(other), guess=self._presences(other))

    def _with_numbers(self, found: _Trial) -> _Trial | None:
        """The same with numbers for tensors whose gradients are made of sums over all axes."""
        chosen = tuple(
            next((zero for zero in unknown.candidates if zero.rank == 0 and _is_float(zero)), one)
            if one.rank and unknown.name in found.summed
            else one
            for unknown, one in zip(self.unknowns, found.chosen, strict=True)
        )
        other = None if chosen == found.chosen else self._tried(chosen)
        return None if other is None or other.hidden or not other.fits else other

    def _nearest(self, found: _Trial) -> _Trial | None:
        """The nearest shapes for which backward runs, and each gradient has its argument's shape.

        They are near if two sizes are one that meet in backward, a size is a number that backward
        asks for, a tensor has an axis less, all sizes that Python has to know are one number, or
        tensors have as many axes as backward names or takes their shapes apart into.  If none of
        these fit, the cheapest do that were tried.
        """
        todo, seen, single = deque([found]), {found.specs}, 0
        last = self.trials + READING_TRIALS
        for _ in range(FITTING_TRIALS):
            if not todo or self.trials >= last:
                break
            trial = todo.popleft()
            graphs, _ = self._trace(trial)
            if graphs is None:
                continue
            if trial is found:
                single = _single(graphs)
            elif _fits(graphs) and _single(graphs) <= single:
                return trial
            for other in self._near(trial, graphs):
                if self.trials >= last:
                    break
                if other.specs not in seen:
                    seen.add(other.specs)
                    todo.append(other)
        for trial in sorted(self.accepted, key=lambda one: one.price):
            fits = trial.fits and not trial.hidden and trial.kinds == found.kinds
            if fits and all(
                mine.rank or not its.rank  # all fits a number
                for mine, its in zip(trial.chosen, found.chosen, strict=True)
            ):
                graphs, _ = self._trace(trial)
                if graphs is not None and _single(graphs) <= single:
                    return trial
        return None

    def _wider(self, found: _Trial) -> str:
        """Shapes that forward takes as well, more general ones, for which backward fails.

        More general is a tensor for a number, and any size for one.
        """
        wider = [one for one in self.failed if _is_more_general(one, found)]
        if not wider:
            return ""
        return self._shapes(
            min(wider, key=lambda trial: sum(one.rank or 0 for one in trial.chosen))
        )

    def _near(self, trial: _Trial, graphs: FunctionGraphs) -> Iterator[_Trial]:
        problem = _problem(graphs)
        last = Step(trial.specs, tried=trial.tried, uneven=trial.uneven)
        united = problem and following(last, trial.guessed, problem)
        if united:
            yield replace(trial, specs=united.specs, tried=united.tried, uneven=united.uneven)
        for case in graphs.cases if problem else ():
            asked = {
                one.left.atom: one.right for one in case.conditions
                if one.relation == "==" and isinstance(one.left.atom, Size)
            }  # fmt: skip
            if asked and case.problem is None:
                yield replace(trial, specs=substituted(trial.specs, trial.guessed, asked))
        yield from self._at_one_number(trial)
        longer = self._as_unpacked(trial, problem)
        if longer is not None:
            yield longer
            yield self._as_returned(longer)
        for place, (unknown, one) in enumerate(zip(self.unknowns, trial.chosen, strict=True)):
            if one.rank is not None and one.rank > 1 and _is_float(one):  # all fits a number
                rank = one.rank - 1
                less = replace(one, rank=rank, price=_price_of(unknown, rank))
                shorter, _ = self._forward(
                    (*trial.chosen[:place], less, *trial.chosen[place + 1 :])
                )
                if shorter is not None:
                    yield shorter

    def _at_one_number(self, trial: _Trial) -> Iterator[_Trial]:
        """With one number for all sizes that Python has to know: a window may have to fit.

        The shapes name it, since backward is known to fail at others.
        """
        for value in (3, 2) if trial.tried else ():
            specs = trial.specs
            for at, axis in itertools.chain(*trial.tried):
                spec = specs[at]
                assert spec is not None
                if spec.dims[axis].constant is not None:
                    dims = _put(spec.dims, axis, Dim.of(value))
                    specs = _put(specs, at, replace(spec, dims=dims))
            yield replace(trial, specs=specs, tried=frozenset())

    def _as_unpacked(self, trial: _Trial, problem: SymgradError | None) -> _Trial | None:
        """With as many axes as backward takes a shape apart into, or names."""
        text = str(problem)
        if counts := _UNPACKED.search(text):  # b, h, n, d = x.shape
            wanted, had = int(counts[1]), int(counts[2])
        elif counts := _BEYOND.search(text):  # g.sum((0, 2, 3))
            ranks = [one.rank or 0 for one in trial.chosen]
            had = int(counts[2]) if int(counts[2]) in ranks else max(ranks)
            wanted = min(max(int(counts[1]) + 1, named_axes(self.function)), MOST_UNPACKED)
        else:
            return None
        chosen = tuple(
            replace(one, rank=wanted, price=_price_of(unknown, wanted)) if one.rank == had else one
            for unknown, one in zip(self.unknowns, trial.chosen, strict=True)
        )
        return self._forward(chosen)[0]

    def _as_returned(self, found: _Trial) -> _Trial:
        """The same with tensors of as many axes as their gradients have.

        torch raises an error where a gradient has fewer elements than its argument, and JAX where
        it has another shape.
        """
        _, graphs = self._forward(found.chosen)
        returned = {} if graphs is None else {
            one.input: one.returned.rank for case in graphs.cases for one in case.gradients
            if one.problem is not None and one.returned is not None
        }  # fmt: skip
        for case in () if graphs is None else graphs.cases:
            raised = case.problem
            if isinstance(raised, ShapeError) and raised.gradient and raised.rank is not None:
                returned[raised.gradient] = raised.rank
        chosen = list(found.chosen)
        for place, (unknown, one) in enumerate(zip(self.unknowns, found.chosen, strict=True)):
            rank = returned.get(unknown.name)
            known = [other.rank for other in unknown.candidates]
            if rank is not None and rank in known and one.rank is not None and rank < one.rank:
                chosen[place] = replace(one, rank=rank, price=_price_of(unknown, rank))
        other = None if tuple(chosen) == found.chosen else self._tried(tuple(chosen))
        return found if other is None or other.failing else other

    def _as_labels(self, found: _Trial) -> _Trial:
        """The same with labels, or a mask, for a tensor of floats that backward refuses as such."""
        graphs, _ = self._trace(found)
        refused = graphs is not None and _takes_no_floats(graphs)
        for at, (unknown, own) in enumerate(zip(self.unknowns, found.chosen, strict=True)):
            if refused and own.rank is not None and _is_float(own):
                tried = [self._tried(_put(found.chosen, at, one))
                         for one in unknown.candidates if one.dtype is not None]  # fmt: skip
                fitting = [one for one in tried if one and not one.failing and not one.hidden]
                if fitting:
                    return min(fitting, key=lambda one: one.price)
        return found

    # -- what backward alone reads

    def _as_read(self, found: _Trial) -> _Trial:
        """The same with what backward alone reads as it does: other axes, an index, a plain value.

        Forward takes anything for it, and its true gradient is 0: that hides no mistake.  Raises
        SpecError where backward asks for a part of it that neither tensors nor numbers have.
        """
        todo, seen, last = deque([found]), {found.chosen}, self.trials + READING_TRIALS
        met: set[str] = set()
        while todo:
            trial = todo.popleft()
            graphs, _ = self._trace(trial)
            if graphs is None:
                continue
            problem = _problem(graphs)
            self._refuse_parts(trial, graphs, problem)
            for chosen in self._read_otherwise(trial, graphs):
                if self.trials >= last:
                    return found
                if chosen in seen:
                    continue
                seen.add(chosen)
                other = self._tried(chosen)
                if other is None or other.hidden:
                    continue
                if not other.raising and other.failing <= MISTAKE_PRICE:
                    return other
                again, _ = self._trace(other)
                after = again and _problem(again)
                if after and str(after) not in {*met, str(problem)}:  # it came further
                    met.add(str(after))
                    todo.append(other)
        return found

    def _refuse_parts(
        self, trial: _Trial, graphs: FunctionGraphs, problem: SymgradError | None
    ) -> None:  # fmt: skip
        """Raises SpecError where backward asks for what neither numbers nor tensors have.

        What is saved, or what forward computes with, is a tensor: that backward asks it for too
        much is a mistake.
        """
        cause = problem.__cause__ if problem is not None else None
        asked = getattr(cause, "obj", None) if isinstance(cause, AttributeError) else None
        node = asked.known_node() if isinstance(asked, SymbolicTensor) else None
        rows = zip(self.unknowns, trial.chosen, strict=True)
        numbers = {unknown.name for unknown, one in rows if one.constant}
        if node is None or node.op != "input" or problem is None:
            return
        name, part = str(node.attributes["name"]), getattr(cause, "name", "")
        if name not in numbers and not self._is_handed_on(name, graphs):
            return
        raise self._has_parts(name, part, "backward", problem.location)

    def _is_handed_on(self, name: str, graphs: FunctionGraphs) -> bool:
        """Does forward nothing with an argument of no stated kind but keep it as it is?"""
        used = {
            str(node.attributes["name"]) for case in graphs.cases
            for node in ancestors(case.outputs) if node.op == "input"
        }  # fmt: skip
        own = [one for one in parameters(self.function) if one.name == name]
        saved = saved_names(self.function)
        return name not in used | saved and not any(map(is_stated_tensor, own))

    def _has_parts(self, name: str, part: str, method: str, where: Location | None) -> SpecError:
        """The error for an argument that is no tensor, number or text."""
        return SpecError(
            f"{class_of(self.function).__name__}: nothing says what {name} is: "
            f"{method} asks it for {part}, which neither tensors nor numbers have",
            location=where,
            hint=f"give it: static of sg.verify takes {{{name!r}: ...}}; a module or a function, "
            f'in symgrad.toml: callables = {{ {name} = "module.name" }}',
        )

    def _read_otherwise(
        self, trial: _Trial, graphs: FunctionGraphs
    ) -> Iterator[tuple[Candidate, ...]]:
        """One argument that forward does not read as something else; tensors that are read, first.

        An index comes first where backward takes something for one.
        """
        read, problem = _read(graphs), _problem(graphs)
        is_index = isinstance(problem, IndexKindError)
        shown = {one.rank for unknown, one in zip(self.unknowns, trial.chosen, strict=True)
                 if unknown.name in read}  # fmt: skip

        def order(one: Candidate) -> tuple[bool, bool, int]:
            return (one.dtype == int64) is not is_index, one.rank not in shown, one.price

        for at, (unknown, own) in enumerate(zip(self.unknowns, trial.chosen, strict=True)):
            if unknown.name not in read and (own.rank is not None or own.constant):
                for one in sorted(unknown.candidates, key=order):
                    if one != own:
                        yield _put(trial.chosen, at, one)

    # -- optional tensors

    def _presences(self, found: _Trial) -> Guess:
        """Optional tensors given and absent, each time with shapes that forward accepts.

        Shapes of a call with all of them need not be those of a call without some: what is not
        read beside another tensor is of any shape there.
        """
        main = {
            unknown.name for unknown, one in zip(self.unknowns, found.chosen, strict=True)
            if one.is_tensor
        }  # fmt: skip
        candidates = self._optional(found, main)
        known: dict[frozenset[str], _Trial] = {frozenset(main.intersection(candidates)): found}
        refused: dict[frozenset[str], str] = {}
        unfound: dict[frozenset[str], str] = {}

        def look(given: frozenset[str], optional: Sequence[str]) -> None:
            if given in known or given in refused or given in unfound:
                return
            trial, why, sizes = self._given(found, given, optional)
            if trial is not None:
                known[given] = trial
            elif why:
                (unfound if sizes else refused)[given] = why

        for name in candidates:  # is it a tensor, beside the others or alone?
            if name not in main:
                look(frozenset({*main.intersection(candidates), name}), candidates)
                look(frozenset({name}), candidates)
        accepted = frozenset().union(*known, *unfound)
        optional = tuple(name for name in candidates if name in accepted)
        for some in subsets(optional):
            look(frozenset(some), optional)

        def presence(given: frozenset[str]) -> Presence:
            names = [tuple(name for name in optional if (name in given) is so) for so in BOTH]
            return Presence(names[0], names[1], self._found(known.get(given, found)))

        guess = self._guess(found)
        if not optional:
            return guess
        order = dict.fromkeys([*list(known)[:1], *map(frozenset, subsets(optional)), *known])
        every = {given: presence(given) for given in order if given in known}
        text = guess.text
        for given, one in every.items():
            own = self._shapes(known[given], one.absent)
            if own != self._shapes(found, one.absent):
                text += f"; with {one}: {own}"
        return replace(
            guess, text=text, presences=tuple(every.values()),
            refused={str(presence(given)): why for given, why in refused.items()
                     if given <= set(optional)},
            unfound={str(presence(given)): why for given, why in unfound.items()},
        )  # fmt: skip

    def _optional(self, found: _Trial, main: Collection[str]) -> list[str]:
        """The arguments that may be tensors and may be None, by default or as the code asks."""
        asked = {
            name for name in asked_for_none(self.function) if name in main
            and self._takes_none(found, name)
        }  # fmt: skip
        tensors = {
            unknown.name for unknown in self.unknowns
            if any(candidate.is_tensor for candidate in unknown.candidates)
        }  # fmt: skip
        return [
            one.name for one in parameters(self.function)
            if one.name in tensors and (one.default is None or one.name in asked)
        ]  # fmt: skip

    def _takes_none(self, found: _Trial, name: str) -> bool:
        """Does forward take None for an argument, beside the others?"""
        rows = zip(self.unknowns, found.chosen, strict=True)
        chosen = tuple(ABSENT if unknown.name == name else one for unknown, one in rows)
        return self._tried(chosen) is not None

    def _given(
        self, found: _Trial, given: Collection[str], optional: Collection[str]
    ) -> tuple[_Trial | None, str, bool]:
        """A call with just these optional tensors; or why forward refuses it, and for its sizes?"""
        tensors = {
            unknown.name for unknown, one in zip(self.unknowns, found.chosen, strict=True)
            if one.is_tensor
        }  # fmt: skip
        wanted = frozenset(given) - tensors
        near: list[tuple[Candidate, ...]] = []
        freely: list[tuple[Candidate, ...]] = []
        for unknown, one in zip(self.unknowns, found.chosen, strict=True):
            floats = tuple(other for other in unknown.candidates if _is_float(other))
            if unknown.name in optional and unknown.name not in given:
                near.append((ABSENT,))
                freely.append((ABSENT,))
            elif unknown.name in wanted:
                near.append(floats)
                freely.append(floats)
            else:
                near.append((one,))
                own = tuple(other for other in unknown.candidates if other.is_tensor)
                freely.append(own if unknown.name in given else unknown.candidates)
        self.refusals = []
        tried = [self._tried(chosen, wanted) for chosen in itertools.product(*near)]
        near_refusals, kept = list(self.refusals), self.unknowns
        if all(one is None or one.failing for one in tried):
            self.unknowns = [
                replace(unknown, candidates=some)
                for unknown, some in zip(kept, freely, strict=True)
            ]
            tried.append(self._cheapest(self.trials + TENSOR_TRIALS, wanted))
            self.unknowns = kept
        fitting = [one for one in tried if one is not None]
        if fitting:
            return min(fitting, key=lambda one: one.price), "", False
        errors = [as_symgrad_error(error, "forward") for error in near_refusals]
        alike = len(self.refusals) > 1 and len({str(error) for error in self.refusals}) == 1
        sizes = any(map(refuses_sizes, errors)) and not alike
        what = errors[0].what if errors else ""
        return None, f"no shapes were found that forward accepts: {what}" if sizes else what, sizes

    # -- what else an argument may be

    def _indices(self, found: _Trial) -> frozenset[str]:
        """Integers and masks that backward alone reads: their true gradient is 0."""
        graphs, _ = self._trace(found)
        read = NONE if graphs is None else _read(graphs)
        rows = zip(self.unknowns, found.chosen, strict=True)
        return frozenset(unknown.name for unknown, one in rows if one.dtype) - read

    def _with_tensors(self, found: _Trial) -> _Trial:
        """The same with a tensor for every argument that is one where it gets a gradient.

        It need not fit, and backward may raise: None or a number would hide that.  Integers that
        fit are what is meant where backward raises for a tensor.
        """
        every, indices = list(self.unknowns), self._indices(found)
        for position, unknown in enumerate(every):
            if _is_float(found.chosen[position]) or unknown.name in indices:
                continue
            floats = tuple(one for one in unknown.candidates if _is_float(one))
            kept = self.unknowns
            self.unknowns = [*kept]
            self.unknowns[position] = replace(unknown, candidates=floats)
            near = [(*found.chosen[:position], one, *found.chosen[position + 1 :])
                    for one in floats]  # fmt: skip
            wanted = frozenset({unknown.name})
            tried = [self._tried(chosen, wanted) for chosen in near]
            known = any(self._gets_none(chosen, unknown.name) for chosen in near)
            if not known:
                tried.append(self._cheapest(self.trials + TENSOR_TRIALS, wanted))
            labels = found.fits and found.chosen[position].dtype == int64
            fitting = [one for one in tried if one and not ((known or labels) and one.raising)]
            if fitting:
                found = min(fitting, key=lambda one: one.price)
            else:
                self.unknowns = kept
        self.unknowns = every
        return found

    def _gets_none(self, chosen: tuple[Candidate, ...], name: str) -> bool:
        """Does backward take a tensor for an argument, and return no gradient of it?

        Then it is a plain value, also where backward raises for tensors of other ranks.
        """
        _, graphs = self._forward(chosen)
        return graphs is not None and all(
            case.problem is None
            and any(one.input == name and one.returned is None for one in case.gradients)
            for case in graphs.cases
        )

    def _indexed(self, found: _Trial) -> Iterator[Request]:
        """The same with integers, or a mask, for what is a plain value or None, where both fit."""
        for position, unknown in enumerate(self.unknowns):
            for dtype in () if found.chosen[position].is_tensor else (int64, bool_):
                tried = [
                    self._tried((*found.chosen[:position], one, *found.chosen[position + 1 :]))
                    for one in unknown.candidates if one.dtype == dtype
                ]  # fmt: skip
                fitting = [one for one in tried if one and not one.failing and not one.hidden]
                if fitting:
                    yield self._found(min(fitting, key=lambda one: one.price))

    def _compared(self, found: _Trial) -> Iterator[Request]:
        other = self._with_integers(found)
        if other is not None:
            yield self._found(other)

    def _with_integers(self, found: _Trial) -> _Trial | None:
        """The same with integers for floats without a gradient that are compared by ``==``."""
        graphs, _ = self._trace(found)
        names = NONE if graphs is None else _labels(graphs)
        chosen = tuple(
            next((it for it in unknown.candidates if (it.rank, it.dtype) == (one.rank, int64)), one)
            if unknown.name in names and _is_float(one)
            else one
            for unknown, one in zip(self.unknowns, found.chosen, strict=True)
        )
        other = None if chosen == found.chosen else self._tried(chosen)
        return None if other is None or other.failing or other.hidden else other

    def _valued(self, found: _Trial, optional: bool) -> Iterator[Request]:
        """The same with other values of plain arguments that have no default, where they fit.

        The first for which backward fails is a condition for others.  ``optional``: are there
        tensors that may be absent?
        """
        for position, (unknown, own) in enumerate(zip(self.unknowns, found.chosen, strict=True)):
            left_out = own.absent and any(one.named for one in unknown.candidates)
            if not (own.is_value or left_out):
                continue
            judged: list[Any] = [own.value]
            failing: _Trial | None = None
            for one in (*unknown.candidates, *MORE_VALUES):
                alike = one.named or own.value is None or type(one.value) is type(own.value)
                alike |= type(own.value) is int and type(one.value) is float
                known = any(is_alike(it, one.value) for it in judged)
                if not one.is_value or not alike or known:
                    continue
                if one in MORE_VALUES and (
                    one.value < 0 <= _least(unknown) or any(type(it) is float for it in judged)
                ):
                    continue  # no negative number is counted to, and nothing that may be 0.5
                trial = self._tried(_put(found.chosen, position, one))
                if trial and not trial.failing and not trial.hidden:
                    judged.append(one.value)
                    self.values.setdefault(position, []).append(one)
                    yield self._beside(found, trial, optional)
                elif trial and trial.failing and one.named:
                    yield self._beside(found, trial, False)
                elif trial and trial.failing and _is_usual(one.value):
                    failing = failing or trial
            if failing is not None:
                yield self._beside(found, failing, False, accident=True)

    def _beside(
        self, found: _Trial, trial: _Trial, optional: bool, combined: bool = False, **said: Any
    ) -> Request:  # fmt: skip
        """A request with other values of plain arguments than those that were found."""
        request, place = self._marked(trial, **said), self._guess(found).place
        guess = self._presences(trial) if optional else request.guess
        assert guess is not None
        return replace(request, guess=replace(guess, place=place, combined=combined, **said))

    def _combined(
        self, shapes: Sequence[tuple[_Trial, dict[str, Any]]], free: Collection[_Trial],
        optional: bool,
    ) -> list[Request]:  # fmt: skip
        """Other values of plain arguments together, and at other shapes, as time allows.

        ``free``: shapes in the place of which other values may need others.
        """
        found, judged = shapes[0][0], list[Request]()
        rows = [
            [(at, one) for one in (found.chosen[at], *more)] for at, more in self.values.items()
        ]  # fmt: skip
        every = [[row for row in way if row[1] != found.chosen[row[0]]]
                 for way in itertools.product(*rows)]  # fmt: skip
        every.sort(key=len)
        cells = [(shapes[0], some) for some in every if len(some) > 1][:MOST_TOGETHER]
        more = [(one, some) for some in every if some for one in shapes[1:]
                if all(one[0].chosen[at].is_value for at, _ in some)]  # fmt: skip
        try:
            with deadline.part(TOGETHER_SHARE):
                for (trial, said), some in [*cells, *more[:MOST_ELSEWHERE]]:
                    other = self._with_values(trial, some, trial is found or trial in free)
                    if other is not None:
                        said = {"accident": True} if other.failing else said
                        own = optional and trial is found and not other.failing
                        judged.append(self._beside(trial, other, own, combined=True, **said))
        except deadline.TimeUp:
            deadline.check()  # was it the limit of all?
        return judged

    def _with_values(
        self, trial: _Trial, some: Sequence[tuple[int, Candidate]], free: bool
    ) -> _Trial | None:  # fmt: skip
        """The same with other values of plain arguments; None where forward does not take them."""
        chosen = trial.chosen
        for at, one in some:
            chosen = _put(chosen, at, one)
        self.refusals = []
        if free:
            other, errors = self._tried(chosen), self.refusals
        else:
            other = replace(trial, chosen=chosen)
            graphs, error = self._trace(other)
            error = error if graphs is None else _refusal(graphs)
            errors = [] if error is None else [error]
            failing = 0 if graphs is None else _price_of_failing(graphs)
            other = None if error is not None else replace(other, failing=failing)
        limit = any(is_limit(as_symgrad_error(error, "forward")) for error in errors)
        if other is None and errors and not limit:
            texts = tuple(described(one.value) for one in chosen if one.is_value)
            self.void.add((self._guess(trial).place, texts))
        return None if other is None or other.hidden else other

    def _masks(self, found: _Trial) -> Iterator[tuple[str, list[tuple[Candidate, ...]]]]:
        """Integers whose names say no index, with what is tried where they are a mask."""
        rows = zip(self.unknowns, found.chosen, strict=True)
        for at, (unknown, own) in enumerate(rows):
            masks = [one for one in unknown.candidates if one.dtype == bool_]
            if own.dtype == int64 and own.rank and masks and not INDICES.search(unknown.name):
                yield unknown.name, [_put(found.chosen, at, one) for one in masks]

    def _with_mask(self, found: _Trial) -> _Trial | None:
        """The same with a mask for such integers, where both fit."""
        for _, masks in self._masks(found):
            tried = [one for one in map(self._tried, masks) if one]
            fitting = [one for one in tried if not one.failing and not one.hidden]
            if fitting:
                return min(fitting, key=lambda one: one.price)
        return None

    def _unread(self, found: _Trial) -> str:
        """Which of these forward takes as a mask, but symgrad does not trace it; or nothing."""
        for name, masks in self._masks(found):
            self.refusals = []
            tried = [self._forward(chosen)[1] for chosen in masks]
            problems = [*self.refusals, *(_problem(graphs) for graphs in tried if graphs)]
            untraced = [one for one in problems if isinstance(one, SelectedShapeError)]
            if untraced and None not in problems:
                return f"where {name} holds truth values, this is not traced: {untraced[0].what}"
        return ""

    def _longer(self, found: _Trial) -> Iterator[Request]:
        """The same with one tensor more, where forward takes it and backward returns a gradient.

        What has a plain default is a plain value where backward raises for a tensor.
        """
        kept = self.unknowns
        known = {unknown.name: one for unknown, one in zip(kept, found.chosen, strict=True)}
        for unknown in left_out(self.function, self.static, known):
            self.unknowns = [*kept, unknown]
            wanted = frozenset({unknown.name})
            tried = [self._tried((*found.chosen, one), wanted) for one in unknown.candidates]
            returned = [one for one in tried if one is not None and not one.raising]
            if returned:
                yield self._found(min(returned, key=lambda one: one.price))
        self.unknowns = kept

    def _cheapest(self, last: int, wanted: frozenset[str] = NONE) -> _Trial | None:
        """``wanted``: arguments that are to get a gradient."""
        best: _Trial | None = None
        asked, todo = set(self.asked), self._in_turn(wanted)
        while (one := next(todo, None)) is not None:
            price, chosen = one
            if self.trials >= last or (best is not None and price >= best.price):
                break
            if best is None and self.ending is not None and self.same >= ENDING_ALIKE:
                break
            before = list(self.unknowns)
            trial = self._tried(chosen, wanted)
            if self.unknowns != before:  # what was tried stands for something else
                best, todo = None, self._in_turn(wanted)
                continue
            if trial is None and best is None and self.asked > asked:
                asked, todo = set(self.asked), self._in_turn(wanted)
            if trial is None:
                continue
            last = min(last, self.trials + TRIALS_AFTER_A_TRACE)
            if best is None or trial.price < best.price:
                best = trial
        return best

    def _tried(self, chosen: tuple[Candidate, ...], wanted: frozenset[str] = NONE) -> _Trial | None:
        """A combination as forward accepts it; None where it does not, or nothing is to prove.

        ``wanted``: arguments of which backward has to make a gradient.
        """
        if any(
            unknown.name in self.square and one.rank is not None and one.rank < 2
            for unknown, one in zip(self.unknowns, chosen, strict=True)
        ):
            return None
        trial, graphs = self._forward(chosen)
        if trial is None or graphs is None or not self._has_gradients(trial, graphs):
            return None
        if _calls_what_is_no_function(graphs) or (
            any(one.is_value and one.value == 0 for one in chosen) and _divides_by_zero(graphs)
        ):
            return None
        if wanted and (_takes_no_floats(graphs) or not wanted <= _with_gradient(graphs)):
            return None
        trial, graphs = self._at_numbers(trial, graphs)
        problem = _problem(graphs)
        if problem is not None:
            self.failed.append(trial)
        for _ in range(SHAPE_STEPS):
            own = [unknown.name for unknown in self.unknowns]
            specs = problem and fitted(trial.specs, own, trial.guessed, problem)
            if not specs:
                break
            again, _ = self._trace(replace(trial, specs=specs))
            if again is None or _single(again) > _single(graphs):
                break
            trial, problem, graphs = replace(trial, specs=specs), _problem(again), again
        for specs in self._like_others(trial, graphs) if problem is not None else ():
            again, _ = self._trace(replace(trial, specs=specs))
            if again is not None and _problem(again) is None:
                trial, problem, graphs = replace(trial, specs=specs), None, again
                break
        trial, graphs = self._as_met(trial, graphs)
        free, (trial, graphs) = trial, self._tied(trial, graphs)
        if not wanted <= _with_gradient(graphs) or self._wants_items(trial, graphs):
            return None
        with_gradient = _with_gradient(graphs)
        number = any(
            one.rank == 0 and not one.constant and unknown.name in with_gradient
            for unknown, one in zip(self.unknowns, chosen, strict=True)
        )
        raising = any(case.problem is not None for case in graphs.cases)
        # beside integers alone, outputs have no derivative: nothing that is wrong would show
        flat = any(one.dtype for one in chosen) and _read(graphs).isdisjoint(graphs.differentiable)
        # torch raises an error where a gradient has fewer elements than its argument
        hidden = (number and self.guest is None) or any(case.surplus for case in graphs.cases)
        hidden |= flat
        fits = _fits(graphs)
        found = replace(
            trial, failing=_price_of_failing(graphs), raising=raising, hidden=hidden, fits=fits,
            summed=_summed(graphs),
        )  # fmt: skip
        self.untied[found.chosen, found.specs] = free
        self.accepted.append(found)
        return found

    def _wants_items(self, trial: _Trial, graphs: FunctionGraphs) -> bool:
        """Does backward raise since a value that nobody stated has no items, or has other ones?

        Then the value is none that the program is meant for, and tuples are tried.
        """
        problem = next((case.problem for case in graphs.cases if case.problem is not None), None)
        if problem is None:
            return False
        cause = problem.__cause__
        said = _NO_ITEMS.search(str(cause)) if isinstance(cause, TypeError) else None
        wanted = False
        for at, one in enumerate(trial.chosen[: len(self.unknowns)]):
            is_odd = isinstance(one.value, tuple) and isinstance(cause, _OF_VALUES)
            is_number = said is not None and type(one.value).__name__ in said[0]
            if not one.is_value or not (is_odd or is_number):
                continue
            wanted, unknown = True, self.unknowns[at]
            self.with_items.setdefault(unknown.name, problem)
            if not any(isinstance(other.value, tuple) for other in unknown.candidates):
                rest = [replace(it, price=it.price + LEARNED_PRICE) for it in unknown.candidates]
                self.unknowns[at] = replace(unknown, candidates=(*ITEMS, *rest))
        return wanted

    def _as_met(self, trial: _Trial, graphs: FunctionGraphs) -> tuple[_Trial, FunctionGraphs]:
        """The same with sizes that backward needs, of what forward does not read and no others."""
        for _ in range(SHAPE_STEPS):
            read, problem = _read(graphs), _problem(graphs)
            rows = zip(self.unknowns, trial.guessed, strict=True)
            unread = [free and unknown.name not in read for unknown, free in rows]
            step = problem and following(
                Step(trial.specs, tried=trial.tried, uneven=trial.uneven), unread, problem
            )
            if not step or any(not unread[at] for place in step.tried - trial.tried
                               for at, _ in place):  # fmt: skip
                break
            other = replace(trial, specs=step.specs, tried=step.tried, uneven=step.uneven)
            again, _ = self._trace(other)
            if again is None:
                break
            trial, graphs = other, again
        return trial, graphs

    def _tied(self, trial: _Trial, graphs: FunctionGraphs) -> tuple[_Trial, FunctionGraphs]:
        """The same with as many rows of an index as the tensor has that it is an index of.

        ``gather`` takes fewer, and so does ``x[arange(len(index)), index]``.
        """
        pairs = [
            (size, one.high) for case in graphs.cases for one in case.demanded
            if one.high is not None and (size := ramp(one.node)) is not None
        ]  # fmt: skip
        if any(high == 1 != size for size, high in pairs):
            trial = replace(trial, single=True)
        specs = indexed(trial.specs, trial.guessed, pairs)
        if specs is None:
            return trial, graphs
        other = replace(trial, specs=specs)
        again, _ = self._trace(other)
        worse = again is None or (_problem(again) is not None and _problem(graphs) is None)
        return (trial, graphs) if again is None or worse else self._tied(other, again)

    def _leaves_labels(self, found: _Trial, other: _Trial) -> bool:
        """Have tensors more axes than those that were found, and their labels as many?"""
        more = any(
            len(its.dims) > len(own.dims)
            for own, its in zip(found.specs, other.specs, strict=True) if own and its
        )  # fmt: skip
        return more and any(
            found.chosen[at].rank == other.chosen[at].rank for at in self._labels(found)
        )

    def _labels(self, trial: _Trial) -> set[int]:
        """The places of integers whose axes are some of those of a tensor, in order."""
        rows = list(zip(trial.chosen, trial.specs, strict=True))
        shapes = [spec.dims for one, spec in rows if spec is not None and _is_float(one)]
        return {
            at for at, (one, spec) in enumerate(rows)
            if one.dtype == int64 and one.rank and spec
            and any(_is_part(spec.dims, shape) for shape in shapes)
        }  # fmt: skip

    def _like_others(self, trial: _Trial, graphs: FunctionGraphs) -> Iterator[Specs]:
        """What forward does not use in the shape of another tensor: that hides no mistake."""
        used = _read(graphs)
        if used >= {*graphs.input_names}:
            return
        rows = list(zip(self.unknowns, trial.specs, trial.guessed, strict=True))
        shapes = [spec for unknown, spec, _ in rows
                  if spec is not None and spec.dims and unknown.name in used]  # fmt: skip
        for other in dict.fromkeys(shapes):
            found = [
                replace(spec, dims=other.dims)
                if spec is not None and free and unknown.name not in used
                and len(spec.dims) == len(other.dims) else spec
                for unknown, spec, free in rows
            ]  # fmt: skip
            if found != list(trial.specs):
                yield tuple(found)

    def _others(self, best: _Trial) -> Iterator[_Trial]:
        """What fits beside the best, the cheapest first: tensors of other ranks.

        Those with as many axes as the program names come before.
        """
        found = [one for one in self._at_other_ranks(best) if not (one.failing or one.hidden)]

        def order(one: _Trial) -> tuple[bool, int]:
            return all((it.rank or 0) <= RANKS[-1] for it in one.chosen), one.price

        yield from sorted(found, key=order)

    def _at_which_it_fails(self, best: _Trial) -> Iterator[_Trial]:
        """Other ranks that forward takes, and backward does not: with more axes, the cheapest.

        Where backward takes them once two sizes are one, a mistake shows in no error.
        """
        failing = [one for one in self._at_other_ranks(best) if one.failing]
        failing.sort(key=lambda one: one.price)
        tied = filter(None, map(self._as_backward_ties, failing[:MOST_OTHER_SHAPES]))
        yield from itertools.islice(tied, MOST_TIED)
        more = [one for one in failing if _axes(one) > _axes(best) and _odd(one) <= _odd(best)]
        yield from more[:1]

    def _with_more_indices(self, best: _Trial) -> Iterator[_Trial]:
        """The same with one axis more of an index, as in ``x[index[0], index[1]]``."""
        labels = self._labels(best)
        for at, (unknown, one) in enumerate(zip(self.unknowns, best.chosen, strict=True)):
            if one.dtype == int64 and one.rank and at not in labels:
                rank = one.rank + 1
                price = _price_of(unknown, rank, int64)
                other = self._tried(_put(best.chosen, at, replace(one, rank=rank, price=price)))
                if other is not None and not (other.failing or other.hidden):
                    yield other

    def _as_backward_ties(self, trial: _Trial) -> _Trial | None:
        """The same with sizes that meet in backward as one; None where it fails for all that."""
        for _ in range(SHAPE_STEPS):
            graphs, _ = self._trace(trial)
            if graphs is None:
                return None
            problem = _problem(graphs)
            if problem is None:
                return trial
            step = following(
                Step(trial.specs, tried=trial.tried, uneven=trial.uneven), trial.guessed, problem
            )
            if step is None or step.tried != trial.tried or step.uneven != trial.uneven:
                return None
            trial = replace(trial, specs=step.specs)
        return None

    def _at_other_ranks(self, best: _Trial) -> list[_Trial]:
        """What forward takes beside the best: tensors of other ranks.

        Tensors of one shape change together; then all do.  A number stays what it is.
        """
        groups: dict[Any, dict[int, int]] = {}
        for position, (one, spec) in enumerate(zip(best.chosen, best.specs, strict=True)):
            if one.rank is not None and one.dtype is None and not one.constant:
                shape = spec.dims if spec is not None and spec.dims else position
                groups.setdefault(shape, {})[position] = one.rank
        every = {position: rank for group in groups.values() for position, rank in group.items()}
        named = named_axes(self.function)
        ranks = (*RANKS, *([named] if RANKS[-1] < named <= MOST_UNPACKED else []))
        changes = [dict.fromkeys(group, rank) for rank in ranks for group in groups.values()]
        changes += [{at: rank + by for at, rank in every.items()} for by in (1, -1)]
        integers = {at: one.rank for at, one in enumerate(best.chosen)
                    if one.dtype == int64 and one.rank}  # fmt: skip
        for by in (1, -1) if integers else ():
            labels = {at: rank + by for at, rank in integers.items()}
            changes += [{**{at: rank + by for at, rank in every.items()}, **labels}, labels]
        trials: dict[tuple[Candidate, ...], _Trial | None] = {best.chosen: None}
        for change in changes:
            chosen = tuple(
                replace(
                    one, rank=change[at],
                    price=_price_of(self.unknowns[at], change[at], best.chosen[at].dtype),
                ) if at in change else one
                for at, one in enumerate(best.chosen)
            )  # fmt: skip
            if set(change.values()) <= set(ranks) and chosen not in trials:
                trial = trials[chosen] = self._tried(chosen)
                if trial and not change.keys() & integers.keys() <= self._labels(trial):
                    trials[chosen] = None
        return [one for one in trials.values() if one]

    def _repeated(
        self, found: _Trial, others: Sequence[_Trial]
    ) -> Iterator[tuple[_Trial, str, bool]]:
        """The same with tensors that are repeated along axes; their names if torch sums.

        They have the size 1 there, or lack axes in front, beside tensors that have these sizes.
        Backward is written for it, which is said last, where no other gradient is larger than its
        argument, and something is done for it that is not done for the shape found.  Else three
        such shapes of each tensor are enough: with the size 1 in front or last, and with fewer
        axes.  With more axes than were found, backward may be written for fewer of them.
        """
        longer = [one for one in others if _axes(one) > _axes(found) and one.kinds == found.kinds]
        summed, pairs = Counter[str](), 0
        for trial in (found, *longer[:1]):
            for dims, alike in _repeatable(trial, both=trial is found):
                names = {self.unknowns[at].name for at in dims}
                label = " and ".join(sorted(names))
                if pairs >= MOST_PAIRS and len(dims) > 1:
                    continue
                other = self._with_shapes(trial, dims)
                graphs, _ = self._trace(other)
                if graphs is None or _refusal(graphs) or _problem(graphs):
                    continue
                larger = _larger(graphs)
                if not larger <= names:
                    continue
                if _done(graphs) - _done(self._trace(trial)[0]):
                    pairs += len(dims) > 1
                    yield other, "", alike
                elif larger and trial is found and summed.total() < MOST_SUMMED:
                    ((at, one), *more) = dims.items()
                    spec = trial.specs[at]
                    assert spec is not None
                    if not summed[label] if more else one in _shown(spec.dims):
                        summed[label] += 1
                        yield other, label, False

    def _with_shapes(self, trial: _Trial, shapes: Mapping[int, tuple[Dim, ...]]) -> _Trial:
        """The same with other shapes of some tensors, by their places."""
        for at, dims in shapes.items():
            spec, price = trial.specs[at], _price_of(self.unknowns[at], len(dims))
            assert spec is not None
            one = replace(trial.chosen[at], rank=len(dims), price=price)
            trial = replace(
                trial, chosen=_put(trial.chosen, at, one),
                specs=_put(trial.specs, at, replace(spec, dims=dims)),
                tried=_moved(trial.tried, at, spec.dims, dims),
                uneven=_moved(trial.uneven, at, spec.dims, dims),
            )  # fmt: skip
        return trial

    def _loosened(self, trials: Sequence[_Trial]) -> list[_Trial]:
        """The same with other sizes for those that are one, where forward takes them."""
        found: list[_Trial] = []
        for trial, loose in itertools.product([one for one in trials if one.tied], (1, 2)):
            if len(found) == MOST_LOOSE:
                break
            self.loose = loose
            other, graphs = self._forward(trial.chosen)
            if other is not None and graphs is not None:
                other, graphs = self._at_numbers(other, graphs)
                if other.specs not in [one.specs for one in (*trials, *found)]:
                    found.append(replace(other, fits=_fits(graphs)))
        self.loose = 0
        return found

    def _uneven(self, found: _Trial) -> tuple[list[_Trial], bool]:
        """The same at a number that is no multiple, and whether forward takes such."""
        key = found.chosen, found.specs
        if key not in self.beside:
            self.beside[key] = self._traced_uneven(found)
        return self.beside[key]

    def _traced_uneven(self, found: _Trial) -> tuple[list[_Trial], bool]:
        every: list[_Trial] = []
        taken = False
        for position, axis in map(min, found.uneven):
            spec = found.specs[position]
            assert spec is not None
            parts, name = factors(spec.dims[axis])
            size = Dim.of(3 * parts - 1)  # no piece of it is repeated to another one
            specs = _with_dim(found.specs, spec.dims[axis], size)
            other = replace(found, specs=specs, uneven=frozenset())
            graphs, error = (None, None) if name in names(specs) else self._trace(other)
            error = error if graphs is None else _refusal(graphs)
            if graphs is not None and error is None:
                every.append(other)
            taken |= error is None or is_limit(as_symgrad_error(error, "forward"))
        return every, taken

    def _marked(
        self, trial: _Trial, *, accident: bool = False, written: bool = False, summed: str = ""
    ) -> Request:
        """The request for a trial, with what ``Guess`` says of it."""
        request = self._found(trial)
        assert request.guess is not None
        guess = replace(request.guess, accident=accident, written=written, summed=summed)
        return replace(request, guess=guess)

    def _has_gradients(self, trial: _Trial, graphs: FunctionGraphs) -> bool:
        """Is there something to prove, an element at least, and has no number a gradient?"""
        if any(dim.constant == 0 for spec in trial.specs if spec is not None for dim in spec.dims):
            return False
        numbers = {
            unknown.name
            for unknown, one in zip(self.unknowns, trial.chosen, strict=True) if one.constant
        }  # fmt: skip
        returned = _with_gradient(graphs) if any(case.gradients for case in graphs.cases) else set()
        return not numbers & returned and bool(set(graphs.differentiable) - numbers)

    def _in_turn(self, wanted: Collection[str] = ()) -> Iterator[tuple[int, tuple[Candidate, ...]]]:
        """The combinations with their prices, those last that are likely to end in an error."""
        every, late = self._combinations(wanted), list[tuple[int, tuple[Candidate, ...]]]()
        for price, chosen in every:
            if not self.hopeless.covers(chosen):
                yield price, chosen
                continue
            late.append((price, chosen))
            if len(late) == MOST_LATE:
                break
        yield from late
        yield from every

    def _combinations(
        self, wanted: Collection[str] = ()
    ) -> Iterator[tuple[int, tuple[Candidate, ...]]]:
        """All of them with their prices, in order: numbers alone for what Python asks for."""
        lists = [
            (unknown.name in self.asked - {*wanted} and self._numbers(unknown))
            or unknown.candidates
            for unknown in self.unknowns
        ]  # fmt: skip
        if not lists or not all(lists):
            return
        start = (0,) * len(lists)
        heap = [(sum(one[0].price for one in lists), start)]
        seen = {start}
        while heap:
            deadline.check()
            price, at = heapq.heappop(heap)
            yield price, tuple(one[i] for one, i in zip(lists, at, strict=True))
            for position, index in enumerate(at):
                following = (*at[:position], index + 1, *at[position + 1 :])
                if index + 1 < len(lists[position]) and following not in seen:
                    seen.add(following)
                    step = lists[position][index + 1].price - lists[position][index].price
                    heapq.heappush(heap, (price + step, following))

    def _numbers(self, unknown: Unknown) -> tuple[Candidate, ...]:
        """Any number, unless it is one of a few, plain values, None; nothing without values."""
        values = tuple(one for one in unknown.candidates if one.is_value or one.absent)
        constant = () if unknown.name in self.literals else (CONSTANT,)
        return (*constant, *values) if any(one.is_value for one in values) else ()

    def _forward(
        self, chosen: tuple[Candidate, ...]
    ) -> tuple[_Trial | None, FunctionGraphs | None]:
        """Trace, making equal the sizes that meet, until forward accepts or refuses the rest."""
        few: tuple[_Trial | None, FunctionGraphs | None] = (None, None)
        for numbers in (self.numbers, self.numbers[:1]):
            step = Step(self._fresh(chosen), numbers=numbers, loose=self.loose)
            for _ in range(SHAPE_STEPS):
                trial = _Trial(
                    chosen, step.specs, tried=step.tried, uneven=step.uneven, tied=step.tied
                )
                graphs, error = self._trace(trial)
                if graphs is not None:
                    error = _refusal(graphs)
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

    def _at_number(
        self, trial: _Trial, graphs: FunctionGraphs
    ) -> tuple[_Trial, FunctionGraphs] | None:
        """The same with a number for one of them; None where forward takes none that is tried."""
        problem = _problem(graphs)
        for numbers in (self.numbers, self.numbers[:1]):
            last = Step(trial.specs, tried=trial.tried, numbers=numbers)
            step = problem and numbered(last, trial.guessed, problem)
            if not step:
                return None
            other = replace(trial, specs=step.specs, tried=step.tried)
            again, _ = self._trace(other)
            if again is not None:
                return self._as_named(step, other, again) or (other, again)
        return None

    def _as_named(
        self, step: Step, trial: _Trial, graphs: FunctionGraphs
    ) -> tuple[_Trial, FunctionGraphs] | None:
        """The same with as many as backward has names for; None where it unpacks no size."""
        problem = _problem(graphs)
        named = problem and unpacks(problem) and following(step, trial.guessed, problem)
        if not named:
            return None
        other = replace(trial, specs=named.specs)
        again, _ = self._trace(other)
        return None if again is None or _problem(again) is not None else (other, again)

    def _at_numbers(self, trial: _Trial, graphs: FunctionGraphs) -> tuple[_Trial, FunctionGraphs]:
        """The same with numbers for the sizes that Python has to know in backward."""
        for _ in range(SHAPE_STEPS):
            found = self._at_number(trial, graphs)
            if found is None:
                break
            trial, graphs = found
        return trial, graphs

    def _resized(self, trial: _Trial, unknowns: list[Unknown]) -> Iterator[Request]:
        """The same at other numbers for the sizes that Python has to know, as far as it fits."""
        for numbers in OTHER_NUMBERS:
            kept, self.unknowns, self.numbers = self.unknowns, unknowns, numbers
            other = self._tried(trial.chosen)
            found = other and _is_resized(trial, other) and self._found(other)
            self.unknowns, self.numbers = kept, USUAL_NUMBERS
            if found:
                yield found

    def _trace(self, trial: _Trial) -> tuple[FunctionGraphs | None, Exception | None]:
        self.trials += 1
        own = [(unknown.name, type(one.value))
               for unknown, one in zip(self.unknowns, trial.chosen, strict=True)]  # fmt: skip
        state = self.most_cases, len(changes_of(self.function))
        key = trial.chosen, trial.specs, tuple(own), state
        if key not in self.traced:
            self.traced[key] = self._traced(trial)
        return self.traced[key]

    def _traced(self, trial: _Trial) -> tuple[FunctionGraphs | None, Exception | None]:
        try:
            with comparing() as compared:
                found = self._in_a_branch(self._request(trial))
        except Exception as error:  # forward may raise anything on what it is not meant for
            what = error.what if isinstance(error, SymgradError) else error
            self.places.add(as_symgrad_error(error, "forward").location)
            if all(one.is_tensor and not one.constant for one in trial.chosen):
                first = self.first = self.first or error
                self.alike &= str(error) == str(first)
            if isinstance(error, CasesError):
                self.many_cases = error
            if isinstance(error, MissingOperationError):
                self.missing = self.missing or error
            asked = error.asked if isinstance(error, ControlFlowError) else NONE
            self.asked |= asked if len(asked) == 1 else NONE
            self._note_ending(as_symgrad_error(error, "forward"))
            if len(self.errors) < SHOWN_ERRORS:
                place = as_symgrad_error(error, "forward").location
                said = f"{type(error).__name__}: {what}"
                self.errors[self._shapes(trial)] = f"{said} (line {place.line})" if place else said
            return None, error
        finally:
            self._learn(trial, compared)
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

    def _learn(self, trial: _Trial, compared: Mapping[str, Sequence[Any]]) -> None:
        """What is compared with texts is one of these; what Python asks for, with integers, too."""
        for at, unknown in enumerate(self.unknowns[: len(trial.chosen)]):
            name, literals = unknown.name, compared.get(unknown.name, ())
            part = self.parts.get(name, ("", None))[0]
            is_text = hasattr(str, part) or any(type(one) in (str, NoneType) for one in literals)
            kind = str if is_text else int
            known = self.learned.setdefault(name, [])
            if (not is_text and not (literals and name in self.asked)) or kind in known:
                continue
            known.append(kind)

            def trace(value: Any, at: int = at) -> Any:
                chosen = _put(trial.chosen, at, Candidate(0, value=value))
                other = replace(trial, chosen=chosen, specs=_put(trial.specs, at, None))
                return trace_request(self._request(other), most_cases=self.most_cases)

            values = values_of(self.function, literals, kind, trace)
            plain = [one for one in unknown.candidates if not one.is_tensor]
            first = [Candidate(price, value=one) for price, one in enumerate(values)]
            rest = [replace(one, price=one.price + LEARNED_PRICE) for one in plain]
            if values:
                self.literals[name] = [one for one in values if one != OTHER]
                self.unknowns[at] = replace(unknown, candidates=(*first, *rest))
                self.ending = None

    def _note_ending(self, error: SymgradError) -> None:
        """Count trials that end in what no argument changes, one and the same."""
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
        if not name and not isinstance(cause, (ImportError, NameError)):
            self.ending = None
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
                spec = TensorSpec(tuple(dims), one.dtype)
            specs.append(spec)
        return tuple(specs)

    # -- what is found

    def _request(self, trial: _Trial) -> Request:
        """A combination, bound.  Raises SpecError."""
        specs, static, assume = {}, dict(self.static), dict(self.assume)
        for unknown, one, spec in zip(self.unknowns, trial.chosen, trial.specs, strict=True):
            name = unknown.name
            if spec is not None:
                specs[name] = _spec_text(spec)
            else:
                static[name] = one.value
            if one.constant:
                assume[name] = ", ".join(filter(None, ["constant, number", assume.get(name)]))
        return bind(self.function, specs, static, assume, self.order)

    def _shapes(self, trial: _Trial, absent: Collection[str] = ()) -> str:
        """What is inferred of the arguments but those that are absent, with sizes in order."""
        shown = [unknown.name not in absent for unknown in self.unknowns]
        specs = tuple(spec if kept else None for spec, kept in zip(trial.specs, shown, strict=True))
        specs = renamed(specs, trial.guessed, self._taken(trial))
        rows = zip(self.unknowns, trial.chosen, specs, shown, strict=True)
        return ", ".join(
            _described(unknown.name, one, spec) for unknown, one, spec, kept in rows if kept
        )

    def _taken(self, trial: _Trial) -> set[str]:
        """What no size is called: the numbers and plain values that forward takes."""
        rows = zip(self.unknowns, trial.chosen, strict=True)
        plain = {unknown.name for unknown, one in rows if one.is_value or one.constant}
        return plain | {
            one.name for one in parameters(self.function) if one.default is not one.empty
        }  # fmt: skip

    def _guess(self, trial: _Trial) -> Guess:
        rows = zip(self.unknowns, trial.chosen, strict=True)
        values = tuple(unknown.name for unknown, one in rows if one.is_value)
        sizes = tuple(self._size(trial, *min(places)) for places in sorted(trial.tried, key=min))
        resized = partial(self._resized, trial, self.unknowns) if sizes else None
        multiples = tuple(
            self._size(trial, *min(places)) for places in sorted(trial.uneven, key=min)
        ) if trial.uneven and self._uneven(trial)[1] else ()  # fmt: skip
        return Guess(
            self._shapes(trial), self.partly, values, sizes=sizes, resized=resized, fits=trial.fits,
            multiples=multiples, place=self._shapes(trial, values),
        )  # fmt: skip

    def _size(self, trial: _Trial, position: int, axis: int) -> str:
        spec = trial.specs[position]
        assert spec is not None
        return f"{self.unknowns[position].name}.shape[{axis}] == {spec.dims[axis]}"

    def _found(self, trial: _Trial) -> Request:
        specs = renamed(trial.specs, trial.guessed, self._taken(trial))
        return replace(self._request(replace(trial, specs=specs)), guess=self._guess(trial))

    def _no_argument(self) -> SpecError:
        cls = class_of(self.function)
        plain, hidden = raw_method(cls, "forward")
        taken = list(inspect.signature(plain).parameters)[:hidden]
        return SpecError(
            f"{cls.__name__}: forward takes no argument"
            f"{f' but {taken[-1]}, which stands for ctx' if taken else ''}",
            location=class_location(cls),
            hint="write forward(ctx, x), or forward(x) together with setup_context",
        )

    def _place(self) -> Location | None:
        """The line at which all trials ended; None where it is not one."""
        places = self.places - {None}
        return next(iter(places)) if len(places) == 1 else None

    def _refuse_lists(self) -> None:
        """Nothing stands for a list of tensors that forward is given.  Raises SpecError."""
        names = {one.name for one in self.unknowns}
        for name in listed(self.function):
            if name in names:
                raise list_of_tensors(self.function, name)

    def _refuse_functions(self) -> None:
        """Nothing stands for a function that forward or backward is given.  Raises SpecError."""
        open_ones = {
            one.name for one in self.unknowns
            if not any(some.absent or (some.value is None and some.is_value)
                       for some in one.candidates)
        }  # fmt: skip
        names = [name for name in called(self.function) if name in open_ones]
        if names:
            several = len(names) > 1
            given = ", ".join(f'{name} = "module.function"' for name in names)
            raise SpecError(
                f"{class_of(self.function).__name__}: {' and '.join(names)} "
                f"{'are' if several else 'is'} called, and nothing says which "
                f"{'functions they are' if several else 'function it is'}",
                location=class_location(class_of(self.function)),
                hint=f"declare it in symgrad.toml: callables = {{ {given} }}; in Python, "
                "static of sg.verify takes a function",
            )

    def _nothing(self) -> SymgradError:
        cls = class_of(self.function)
        if not self.unknowns and not self.trials:
            return self._no_argument()
        open_ones = {one.name: one for one in self.unknowns if not one.candidates[0].is_value}
        for name, (part, where) in self.parts.items():
            if name in open_ones:
                return self._has_parts(name, part, "forward", where)
        for name, problem in self.with_items.items():
            return SpecError(
                f"{cls.__name__}: nothing says what {name} is, and backward takes no value that "
                f"was tried; the first: {problem.what}",
                location=problem.location,
                hint=f"give it: --static {name}=VALUE, or static = {{ {name} = VALUE }} in "
                "symgrad.toml",
            )
        if self.ending is not None and self.same >= ENDING_ALIKE:
            return self.ending
        if self.first is not None:
            found = as_symgrad_error(self.first, f"{cls.__name__}: forward")
            limited = isinstance(found, SelectedShapeError) and len({*self.errors.values()}) == 1
            if (self.alike or limited) and not refuses_sizes(found):
                return found
        if self.missing is not None:  # no shapes help
            return self.missing
        wanted = [unknown.name for unknown in self.unknowns]
        others = [one.name for one in self.unknowns if not _is_float(one.candidates[0])]
        plain = next(iter(others), "NAME")
        tried = "".join(f"\n    {shapes}: {said}" for shapes, said in self.errors.items())
        return SpecError(
            f"{cls.__name__}: nothing says what {', '.join(wanted) or 'an argument'} "
            f"{'are' if len(wanted) > 1 else 'is'}, and "
            f"{counted(self.trials, 'trial')} found no shapes that "
            f"forward accepts"
            f"{'; the first:' if tried else ''}{tried}",
            location=self._place() or class_location(cls),
            hint='annotate forward, as in x: "f32[n m]"; or say --shapes '
            f'"{"; ".join(map(_likely, self.unknowns)) or "n m"}", one spec a tensor, where 2*n is '
            "an even size, 3 the number 3, and i64[n] a tensor of integers; and "
            f"--static {plain}=VALUE, or static = {{ {plain} = VALUE }} in symgrad.toml, for a "
            "non-tensor argument" + ("" if self.guest is None else self.guest.shapes_hint),
        )


def _described(name: str, one: Candidate, spec: TensorSpec | None) -> str:
    if one.constant:
        return f"{name} (any number, without a gradient)"
    return f"{name} = {described(one.value)}" if spec is None else spec.of(name)


def _likely(unknown: Unknown) -> str:
    """A spec of as many axes as the cheapest tensor has."""
    ranks = [one.rank for one in unknown.candidates if one.rank]
    return " ".join(itertools.islice(letters(set()), ranks[0] if ranks else 2))


def _is_usual(value: Any) -> bool:
    """Is it no number below 1, for which backward may fail as nobody counts so?"""
    return not isinstance(value, (int, float)) or value > 0


def _least(unknown: Unknown) -> float:
    """The least plain integer that is tried."""
    values = [one.value for one in unknown.candidates if one.is_value]
    return min((one for one in values if type(one) is int), default=0)


def _price_of(unknown: Unknown, rank: int, dtype: DType | None = None) -> int:
    """The price of a tensor of a rank, of floats or of another dtype."""
    prices = [one.price for one in unknown.candidates if (one.rank, one.dtype) == (rank, dtype)]
    return min(prices, default=max(one.price for one in unknown.candidates))


def _with_gradient(graphs: FunctionGraphs) -> set[str]:
    """The inputs of which a gradient is returned; all, where backward says nothing of that."""
    if any(case.problem is not None or not case.gradients for case in graphs.cases):
        return set(graphs.differentiable)
    return {
        one.input for case in graphs.cases for one in case.gradients
        if one.node is not None or one.problem is not None
    }  # fmt: skip


def _read(graphs: FunctionGraphs) -> set[str]:
    """The inputs that forward computes its outputs from."""
    outputs = [node for case in graphs.cases for node in case.outputs]
    return {node.attributes["name"] for node in ancestors(outputs) if node.op == "input"}


def _labels(graphs: FunctionGraphs) -> set[str]:
    """The inputs without a gradient that are compared by ``==`` or ``!=``."""
    roots = [node for case in graphs.cases for node in case.outputs]
    gradients = [one for case in graphs.cases for one in case.gradients]
    roots += [one.returned for one in gradients if one.returned is not None]
    sides = [
        bare(side) for node in ancestors(roots) if node.op in ("eq", "ne") for side in node.args
    ]
    compared = {side.attributes["name"] for side in sides if side.op == "input"}
    return compared - {one.input for one in gradients if one.returned is not None}


def _takes_no_floats(graphs: FunctionGraphs) -> bool:
    """Does backward take a tensor for a plain value, a mask or an index, which it then is?"""
    kinds = (ControlFlowError, DTypeError, IndexKindError)
    return any(isinstance(case.problem, kinds) for case in graphs.cases)


def _calls_what_is_no_function(graphs: FunctionGraphs) -> bool:
    """Does backward call an argument?  Then that is a function, which nothing stands for."""
    causes = [case.problem.__cause__ for case in graphs.cases if case.problem is not None]
    return any(
        isinstance(cause, TypeError) and str(cause).endswith("object is not callable")
        for cause in causes
    )


def _divides_by_zero(graphs: FunctionGraphs) -> bool:
    """Is something divided by the number 0?  A plain value that makes it so is not meant."""
    roots = [node for case in graphs.cases for node in case.outputs]
    roots += [one.returned for case in graphs.cases for one in case.gradients if one.returned]
    return any(
        node.op in ("div", "reciprocal") and number(node.args[-1]) == 0 for node in ancestors(roots)
    )


def _odd(trial: _Trial) -> int:
    """How many sizes are numbers or multiples, or occur before."""
    return sum(spec.oddities for spec in trial.specs if spec is not None)


def _axes(trial: _Trial) -> int:
    return sum(one.rank or 0 for one in trial.chosen)


def _shown(shape: tuple[Dim, ...]) -> list[tuple[Dim, ...]]:
    """Of shapes that are repeated to one: the size 1 in front or last, and an axis less."""
    one = Dim.of(1)
    return [(one, *shape[1:]), (*shape[:-1], one), shape[1:]]


def _repeatable(trial: _Trial, *, both: bool) -> Iterator[tuple[dict[int, tuple[Dim, ...]], bool]]:
    """Shapes, by places, of tensors that are repeated beside others; have these been alike?

    ``both``: also of two tensors at once, each beside the other, or beside a third one.
    """
    rows = zip(trial.chosen, trial.specs, strict=True)
    shapes = {at: spec.dims for at, (one, spec) in enumerate(rows)
              if spec is not None and _is_float(one) and one.rank}  # fmt: skip
    every = Counter(shapes.values())
    sizes = {at: {dim for it, dims in shapes.items() if it != at for dim in dims} for at in shapes}
    for at, shape in shapes.items():
        for dims in _repeated_to(shape):
            if every[shape] > 1 or {*shape} - {*dims} <= sizes[at]:
                yield {at: dims}, every[shape] > 1
    pairs = [
        (one, other) for one, other in itertools.combinations(shapes, 2)
        if both and shapes[one] == shapes[other] and len(shapes[one]) > 1
    ]  # fmt: skip
    for way in itertools.product(range(3), repeat=2):
        for one, other in pairs:
            shown = _shown(shapes[one])
            if way[0] != way[1] or every[shapes[one]] > 2:
                yield {one: shown[way[0]], other: shown[way[1]]}, True


def _moved(
    every: frozenset[Places], at: int, old: Sequence[Dim], new: Sequence[Dim]
) -> frozenset[Places]:
    """The places where they are once a tensor has other axes, of which the last ones are kept."""
    less = len(old) - len(new)
    moved = [
        frozenset(
            (place, axis - less if place == at else axis) for place, axis in places
            if place != at or (axis >= less and new[axis - less] == old[axis])
        )
        for places in every
    ]  # fmt: skip
    return frozenset(filter(None, moved))


def _repeated_to(shape: tuple[Dim, ...]) -> Iterator[tuple[Dim, ...]]:
    """Shapes that are repeated to one: an axis of size 1, or axes in front left out."""
    one = Dim.of(1)
    for axis, size in enumerate(shape):
        if size != one:
            yield _put(shape, axis, one)
    for axis in range(len(shape)):
        yield shape[axis + 1 :]


def _with_dim(specs: Specs, old: Dim, new: Dim) -> Specs:
    """The specs with one size in the place of another expression, wherever that stands alone."""
    return tuple(
        None if spec is None else replace(
            spec, dims=tuple(new if dim == old else dim for dim in spec.dims)
        )
        for spec in specs
    )  # fmt: skip


def _is_part(some: Sequence[Dim], dims: Iterable[Dim]) -> bool:
    """Are these among others, in this order?"""
    others = iter(dims)
    return all(one in others for one in some)


def _put(row: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    """The row with another value at a place."""
    return (*row[:at], value, *row[at + 1 :])


def _is_float(one: Candidate) -> bool:
    """Is it a tensor that may have a gradient?"""
    return one.is_tensor and one.dtype is None and not one.constant


def _price_of_failing(graphs: FunctionGraphs) -> int:
    """What it costs that backward raises, or that its gradients do not fit."""
    problem = _problem(graphs)
    if problem is None:
        return 0
    raised = any(
        case.problem is not None
        and not (isinstance(case.problem, ShapeError) and case.problem.gradient)
        for case in graphs.cases
    )
    price = MISTAKE_PRICE if rank_fits(problem) else FAILING_PRICE
    return price + RAISING_PRICE * raised


def _is_more_general(one: _Trial, found: _Trial) -> bool:
    """Has it tensors where numbers were found, or other sizes than 1, and nothing else?"""
    pairs = [
        (mine, its) for mine, its in zip(one.specs, found.specs, strict=False)
        if mine is not None and its is not None
    ]  # fmt: skip
    if one.kinds != found.kinds:
        return False
    more = [_ones(its) - _ones(mine) + (not its.dims and bool(mine.dims)) for mine, its in pairs]
    alike = all(not its.dims or len(mine.dims) == len(its.dims) for mine, its in pairs)
    return alike and min(more, default=0) >= 0 < max(more, default=0)


def _is_resized(one: _Trial, other: _Trial) -> bool:
    """Have both numbers for the same sizes, and else the same shapes?"""
    axes = [
        [None if dim.constant is not None else dim for spec in trial.specs if spec is not None
         for dim in spec.dims]
        for trial in (one, other)
    ]  # fmt: skip
    return one.tried == other.tried and axes[0] == axes[1]


def _ones(spec: TensorSpec) -> int:
    return sum(dim.constant == 1 for dim in spec.dims)


def _spec_text(spec: TensorSpec) -> str:
    """``n m``; with a dtype where it is not the default one."""
    text = str(spec)
    return text[len("float[") : -1] if spec.dtype is None else text


def _fits(graphs: FunctionGraphs) -> bool:
    """Does backward run, and has each gradient the shape of its argument?"""
    return _problem(graphs) is None and not _larger(graphs)


def _larger(graphs: FunctionGraphs) -> set[str]:
    """The arguments whose gradients are larger than they, so that PyTorch sums them."""
    gradients = [one for case in graphs.cases for one in case.gradients]
    return {one.input for one in gradients if one.returned is not one.node}


def _refusal(graphs: FunctionGraphs) -> SymgradError | None:
    """What forward raises for all sizes but a few numbers; None where it takes more."""
    if not all(_is_few(case.conditions) for case in graphs.cases):
        return None
    return next((one.reason for one in graphs.refused if not _is_few(one.conditions)), None)


def _is_few(conditions: Sequence[SizeCondition]) -> bool:
    """Do they hold for a number alone in the place of a size?"""
    return any(one.relation == "==" and one.right.constant is not None for one in conditions)


def _single(graphs: FunctionGraphs) -> int:
    """How many axes of outputs have the size 1, whatever the sizes of the inputs.

    Those that backward sums over are counted, too.  Shapes that add to them are not taken because
    backward fits them: a sum over such an axis does nothing, so that one over a wrong axis would
    not show.
    """
    case = graphs.cases[0]
    returned = [one.returned for one in case.gradients if one.returned is not None]
    summed = [
        node.args[0].shape[axis] for node in ancestors(returned) if node.op == "sum"
        for axis in node.attributes["axes"]
    ]  # fmt: skip
    dims = [*summed, *(dim for node in case.outputs for dim in node.shape)]
    return sum(dim.constant == 1 for dim in dims)


def _summed(graphs: FunctionGraphs) -> frozenset[str]:
    """The tensors whose gradients are made of them and of numbers: of sums over all axes."""
    found = set()
    for name in graphs.differentiable:
        gradients = [
            one.node for case in graphs.cases for one in case.gradients
            if one.input == name and one.node is not None
        ]  # fmt: skip
        numbers = [
            node for node in ancestors(gradients) if all(dim.constant == 1 for dim in node.shape)
        ]
        if _tensors(ancestors(gradients, numbers)) <= {name} and _tensors(ancestors(numbers)):
            found.add(name)
    return frozenset(found)


def _done(graphs: FunctionGraphs | None) -> Counter[str]:
    """How often gradients are made by each operation that computes, where it is done most often.

    What is done for a few sizes alone does not count.
    """
    found: Counter[str] = Counter()
    for case in graphs.cases if graphs is not None else ():
        if not _is_few(case.conditions):
            roots = [one.returned for one in case.gradients if one.returned is not None]
            found |= Counter(node.op for node in ancestors(roots) if _computes(node))
    return found


def _computes(node: Node) -> bool:
    """Does it make other elements, or leave some out?"""
    return get(node.op).kind not in ("source", "movement") or node.op == "slice"


def _tensors(nodes: Iterable[Node]) -> set[str]:
    """The inputs among some nodes that are no numbers."""
    return {node.attributes["name"] for node in nodes if node.op == "input" and node.shape}


def _problem(graphs: FunctionGraphs) -> SymgradError | None:
    """Why backward is of no use for these shapes: what it raises, a gradient that does not fit."""
    for case in graphs.cases:
        problems = [case.problem, *(one.problem for one in case.gradients)]
        if found := next((problem for problem in problems if problem is not None), None):
            return found
    return None
