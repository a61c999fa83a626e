"""Best-first search over what the arguments of a Function may be.

In: a Function, values of plain arguments.  Out: ``FoundShapes``.

Shapes for which backward raises, or returns a gradient that does not fit, are taken only where
there are no others; a number or integers for what gets a gradient, only where forward accepts
nothing else: a gradient that is summed too far fits a number, and that of integers is ignored.
For the same reason a plain value stands for an argument only where tensors get no gradient.
Nothing is chosen by a verdict, since that would prefer shapes for which a mistake does not show.
What forward and backward accept beside the cheapest shapes, with other ranks, is found too.
"""

from __future__ import annotations

import heapq
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from symgrad.errors import ControlFlowError, DTypeError, SpecError, SymgradError
from symgrad.frontend.function import class_of, raw_method
from symgrad.frontend.outcome import as_symgrad_error, refuses_sizes
from symgrad.frontend.request import check_static
from symgrad.frontend.source import class_location
from symgrad.frontend.spec import TensorSpec
from symgrad.frontend.trace import trace
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import bool_, int64
from symgrad.ir.function import FunctionGraphs
from symgrad.shapes.candidates import AnyFunction, Candidate, Unknown, left_out, unknowns
from symgrad.shapes.sizes import (
    Specs,
    Step,
    fitted,
    following,
    letters,
    oddities,
    rank_fits,
    renamed,
)

MOST_TRIALS = 1200
MOST_AFTER_A_TRACE = 150
"""Trials after the first shapes that forward accepts, when there is something to be better."""
MOST_CASES = 6
"""Cases of sizes in a trial; where nothing is found with so few, the first trials get more."""
MOST_STEPS = 16
ODD_PRICE = 2
FAILING_PRICE = 100
NUMBER_PRICE = 2 * FAILING_PRICE
"""Of a number, or of integers, that get a gradient: more than that of a backward that fails."""
MOST_AS_TENSOR = 48
"""Trials with a tensor where a plain value has been found: is there a gradient to judge?"""
RANKS = (0, 1, 2, 3)
"""The ranks that are tried beside those of the cheapest shapes."""
MOST_OTHERS = 4
"""Other shapes that are judged: each takes as long as the first."""
MISTAKE_PRICE = 1
"""A gradient of the right rank and the wrong sizes is rather a mistake than a wrong guess."""
SHOWN_ERRORS = 3


@dataclass(frozen=True)
class FoundShapes:
    """What a Function was found to take.

    ``specs``: one a tensor argument.  ``static``: plain values, those that were given included.
    ``assume``: which numbers have no gradient.  ``text``: what was guessed, for a person.
    ``others``: the same with other ranks, as far as forward and backward accept them, and with
    tensors for plain defaults.
    """

    specs: tuple[str | None, ...] = ()
    static: Mapping[str, Any] = field(default_factory=dict)
    assume: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    others: tuple[FoundShapes, ...] = ()


def find(
    function: AnyFunction, static: Mapping[str, Any] | None = None, square: Sequence[str] = ()
) -> FoundShapes:
    """The cheapest shapes with which forward, and if possible backward, can be traced.

    Raises SpecError, which lists what was tried, where there are none.
    """
    return _Search(function, dict(static or {}), square).run()


@dataclass(frozen=True)
class _Trial:
    """One combination of candidates, with the sizes that forward made equal."""

    chosen: tuple[Candidate, ...]
    specs: Specs
    failing: int = 0
    raising: bool = False
    """Does backward raise?"""
    hidden: bool = False
    """Is there a number, or are there integers, that get a gradient?"""

    @property
    def guessed(self) -> list[bool]:
        return [one.rank is not None for one in self.chosen]

    @property
    def price(self) -> int:
        """The less, the better: cheap candidates, free sizes, a backward that fits."""
        odd = ODD_PRICE * oddities(self.specs, self.guessed)
        return (
            sum(one.price for one in self.chosen) + odd + self.failing + NUMBER_PRICE * self.hidden
        )


class _Search:
    def __init__(
        self, function: AnyFunction, static: dict[str, Any], square: Sequence[str] = ()
    ) -> None:
        self.function = function
        self.square = frozenset(square)
        self.static = static
        check_static(function, static)
        self.unknowns: list[Unknown] = list(unknowns(function, static))
        self.trials = 0
        self.errors: dict[str, str] = {}
        self.first: Exception | None = None
        self.alike = True
        """Did all trials of tensors end in the same error, the first?"""
        self.most_cases = MOST_CASES
        self.many_cases = False
        """Did a trial end because forward asks too much about its sizes?"""

    def run(self) -> FoundShapes:
        """The cheapest combination of those that forward accepts."""
        found = self._cheapest(MOST_TRIALS)
        if found is None and self.many_cases:
            self.most_cases = 10 * MOST_CASES
            found = self._cheapest(self.trials + 16)
        if found is None:
            raise self._nothing()
        if not found.failing:
            found = self._with_tensors(found)
        others = [self._found(other) for other in self._others(found)]
        longer = [] if found.failing else [*self._indexed(found), *self._longer(found)]
        return replace(self._found(found), others=(*longer, *others[:MOST_OTHERS]))

    def _with_tensors(self, found: _Trial) -> _Trial:
        """The same with a tensor for every argument that is one where it gets a gradient.

        It need not fit, and backward may raise: None, a number or an index would hide that.
        """
        every = list(self.unknowns)
        for position, unknown in enumerate(every):
            if _is_float(found.chosen[position]):
                continue
            floats = tuple(one for one in unknown.candidates if _is_float(one))
            kept = self.unknowns
            self.unknowns = [*kept]
            self.unknowns[position] = replace(unknown, candidates=floats)
            near = [(*found.chosen[:position], one, *found.chosen[position + 1 :])
                    for one in floats]  # fmt: skip
            tried = [self._tried(chosen, unknown.name) for chosen in near]
            tried.append(self._cheapest(self.trials + MOST_AS_TENSOR, unknown.name))
            fitting = [one for one in tried if one is not None]
            if fitting:
                found = min(fitting, key=lambda one: one.price)
            else:
                self.unknowns = kept
        self.unknowns = every
        return found

    def _indexed(self, found: _Trial) -> Iterator[FoundShapes]:
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

    def _longer(self, found: _Trial) -> Iterator[FoundShapes]:
        """The same with one tensor more, where forward takes it and backward returns a gradient.

        What has a plain default is a plain value where backward raises for a tensor.
        """
        kept = self.unknowns
        known = {unknown.name: one for unknown, one in zip(kept, found.chosen, strict=True)}
        for unknown in left_out(self.function, self.static, known):
            self.unknowns = [*kept, unknown]
            tried = [self._tried((*found.chosen, one), unknown.name) for one in unknown.candidates]
            returned = [one for one in tried if one is not None and not one.raising]
            if returned:
                yield self._found(min(returned, key=lambda one: one.price))
        self.unknowns = kept

    def _cheapest(self, last: int, tensor: str = "") -> _Trial | None:
        """``tensor``: an argument that is to get a gradient."""
        best: _Trial | None = None
        for price, chosen in self._combinations():
            if self.trials >= last or (best is not None and price >= best.price):
                break
            trial = self._tried(chosen, tensor)
            if trial is None:
                continue
            last = min(last, self.trials + MOST_AFTER_A_TRACE)
            if best is None or trial.price < best.price:
                best = trial
        return best

    def _tried(self, chosen: tuple[Candidate, ...], tensor: str = "") -> _Trial | None:
        """A combination as forward accepts it; None where it does not, or nothing is to prove.

        ``tensor``: an argument of which backward has to make a gradient.
        """
        if any(
            unknown.name in self.square and one.rank is not None and one.rank < 2
            for unknown, one in zip(self.unknowns, chosen, strict=True)
        ):
            return None
        trial, graphs = self._forward(chosen)
        if trial is None or graphs is None or not self._has_gradients(chosen, graphs):
            return None
        if tensor and (_takes_no_floats(graphs) or tensor not in _with_gradient(graphs)):
            return None
        problem = _problem(graphs)
        for _ in range(MOST_STEPS):
            own = [unknown.name for unknown in self.unknowns]
            specs = problem and fitted(trial.specs, own, trial.guessed, problem)
            if not specs:
                break
            again, _ = self._trace(replace(trial, specs=specs))
            if again is None:
                break
            trial, problem = replace(trial, specs=specs), _problem(again)
        price = 0 if problem is None else MISTAKE_PRICE if rank_fits(problem) else FAILING_PRICE
        with_gradient = _with_gradient(graphs)
        number = any(
            one.rank == 0 and not one.constant and unknown.name in with_gradient
            for unknown, one in zip(self.unknowns, chosen, strict=True)
        )
        raising = any(case.problem is not None for case in graphs.cases)
        hidden = number or any(case.surplus for case in graphs.cases)
        return replace(trial, failing=price, raising=raising, hidden=hidden)

    def _others(self, best: _Trial) -> Iterator[_Trial]:
        """What fits beside the best, the cheapest first: tensors of other ranks.

        Tensors of one shape change together; then all do.  A number stays what it is.
        """
        groups: dict[Any, dict[int, int]] = {}
        for position, (one, spec) in enumerate(zip(best.chosen, best.specs, strict=True)):
            if one.rank is not None and one.dtype is None and not one.constant:
                shape = spec.dims if spec is not None and spec.dims else position
                groups.setdefault(shape, {})[position] = one.rank
        every = {position: rank for group in groups.values() for position, rank in group.items()}
        changes = [dict.fromkeys(group, rank) for rank in RANKS for group in groups.values()]
        changes += [{at: rank + by for at, rank in every.items()} for by in (1, -1)]
        trials: dict[tuple[Candidate, ...], _Trial | None] = {best.chosen: None}
        for change in changes:
            chosen = tuple(
                replace(one, rank=change[at], price=_price_of(self.unknowns[at], change[at]))
                if at in change else one
                for at, one in enumerate(best.chosen)
            )  # fmt: skip
            if set(change.values()) <= set(RANKS) and chosen not in trials:
                trials[chosen] = self._tried(chosen)
        found = [one for one in trials.values() if one and not one.failing and not one.hidden]
        yield from sorted(found, key=lambda one: one.price)

    def _has_gradients(self, chosen: Sequence[Candidate], graphs: FunctionGraphs) -> bool:
        """Is there something to prove, and has no number a gradient?"""
        numbers = {
            unknown.name
            for unknown, one in zip(self.unknowns, chosen, strict=True) if one.constant
        }  # fmt: skip
        returned = _with_gradient(graphs) if any(case.gradients for case in graphs.cases) else set()
        return not numbers & returned and bool(set(graphs.differentiable) - numbers)

    def _combinations(self) -> Iterator[tuple[int, tuple[Candidate, ...]]]:
        """All of them with their prices, in order."""
        lists = [unknown.candidates for unknown in self.unknowns]
        if not lists or not all(lists):
            return
        start = (0,) * len(lists)
        heap = [(sum(one[0].price for one in lists), start)]
        seen = {start}
        while heap:
            price, at = heapq.heappop(heap)
            yield price, tuple(one[i] for one, i in zip(lists, at, strict=True))
            for position, index in enumerate(at):
                following = (*at[:position], index + 1, *at[position + 1 :])
                if index + 1 < len(lists[position]) and following not in seen:
                    seen.add(following)
                    step = lists[position][index + 1].price - lists[position][index].price
                    heapq.heappush(heap, (price + step, following))

    def _forward(
        self, chosen: tuple[Candidate, ...]
    ) -> tuple[_Trial | None, FunctionGraphs | None]:
        """Trace, making equal the sizes that meet, until forward accepts or refuses the rest."""
        step = Step(self._fresh(chosen))
        for _ in range(MOST_STEPS):
            trial = _Trial(chosen, step.specs)
            graphs, error = self._trace(trial)
            if graphs is not None or error is None:
                return trial, graphs
            after = following(step, trial.guessed, error)
            if after is None:
                break
            step = after
        return None, None

    def _trace(self, trial: _Trial) -> tuple[FunctionGraphs | None, Exception | None]:
        self.trials += 1
        specs, static, _ = self._call(trial)
        try:
            found = trace(self.function, *specs, static=static, most_cases=self.most_cases)
        except Exception as error:  # forward may raise anything on what it is not meant for
            what = error.what if isinstance(error, SymgradError) else error
            if all(one.is_tensor and not one.constant for one in trial.chosen):
                first = self.first = self.first or error
                self.alike &= str(error) == str(first)
            self.many_cases |= "cases" in str(what) and isinstance(error, ControlFlowError)
            if len(self.errors) < SHOWN_ERRORS:
                self.errors[self._text(trial)] = f"{type(error).__name__}: {what}"
            return None, error
        return found, None

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

    def _call(self, trial: _Trial) -> tuple[tuple[str | None, ...], dict[str, Any], dict[str, str]]:
        """Specs, plain values and assumptions, as ``verify`` takes them."""
        specs: list[str | None] = []
        static = dict(self.static)
        assume = {}
        rows = zip(self.unknowns, trial.chosen, trial.specs, strict=True)
        for unknown, one, spec in rows:
            if one.constant:
                assume[unknown.name] = "constant"
            if unknown.named:
                static[unknown.name] = spec
            elif unknown.plain or not (one.is_tensor or one.absent):
                if spec is None:  # a keyword with a spec is found by its annotation alone
                    static[unknown.name] = one.value
            else:
                specs.append(None if spec is None else _spec_text(spec))
        return tuple(specs), static, assume

    def _text(self, trial: _Trial) -> str:
        parts = []
        for unknown, one, spec in zip(self.unknowns, trial.chosen, trial.specs, strict=True):
            if one.constant:
                parts.append(f"{unknown.name}: any number, without a gradient")
            elif spec is not None:
                parts.append(f"{unknown.name}: {_spec_text(spec) or 'a number'}")
            else:
                parts.append(f"{unknown.name} = {one.value!r}")
        return ", ".join(parts)

    def _found(self, trial: _Trial) -> FoundShapes:
        trial = replace(trial, specs=renamed(trial.specs, trial.guessed))
        specs, static, assume = self._call(trial)
        return FoundShapes(specs, static, assume, self._text(trial))

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

    def _nothing(self) -> SymgradError:
        cls = class_of(self.function)
        if not self.unknowns and not self.trials:
            return self._no_argument()
        if self.first is not None and self.alike:
            found = as_symgrad_error(self.first, f"{cls.__name__}: forward")
            if not refuses_sizes(found):
                return found
        wanted = [unknown.name for unknown in self.unknowns]
        tried = "".join(f"\n    {shapes}: {said}" for shapes, said in self.errors.items())
        return SpecError(
            f"{cls.__name__}: nothing says what {', '.join(wanted) or 'an argument'} "
            f"{'are' if len(wanted) > 1 else 'is'}, and "
            f"{self.trials} {'trial' if self.trials == 1 else 'trials'} found no shapes that "
            f"forward accepts"
            f"{'; the first:' if tried else ''}{tried}",
            location=class_location(cls),
            hint='annotate forward, as in x: "f32[n m]"; or say --shapes '
            f'"{"; ".join("n m" for _ in wanted) or "n m"}", one spec a tensor, and '
            "--static NAME=VALUE for what is no tensor",
        )


def _price_of(unknown: Unknown, rank: int) -> int:
    """The price of a float tensor of a rank."""
    prices = [one.price for one in unknown.candidates if (one.rank, one.dtype) == (rank, None)]
    return min(prices, default=max(one.price for one in unknown.candidates))


def _with_gradient(graphs: FunctionGraphs) -> set[str]:
    """The inputs of which a gradient is returned; all, where backward says nothing of that."""
    if any(case.problem is not None or not case.gradients for case in graphs.cases):
        return set(graphs.differentiable)
    return {
        one.input for case in graphs.cases for one in case.gradients
        if one.node is not None or one.problem is not None
    }  # fmt: skip


def _takes_no_floats(graphs: FunctionGraphs) -> bool:
    """Does backward take a tensor for a plain value, a mask or an index, which it then is?"""
    kinds = (ControlFlowError, DTypeError)
    return any(isinstance(case.problem, kinds) for case in graphs.cases)


def _is_float(one: Candidate) -> bool:
    """Is it a tensor that may have a gradient?"""
    return one.is_tensor and one.dtype is None and not one.constant


def _spec_text(spec: TensorSpec) -> str:
    """``n m``; with a dtype where it is not the default one."""
    text = str(spec)
    return text[len("float[") : -1] if spec.dtype is None else text


def _problem(graphs: FunctionGraphs) -> SymgradError | None:
    """Why backward is of no use for these shapes: what it raises, a gradient that does not fit."""
    for case in graphs.cases:
        problems = [case.problem, *(one.problem for one in case.gradients)]
        if found := next((problem for problem in problems if problem is not None), None):
            return found
    return None
