"""Best-first search over what the arguments of a Function may be.

In: a Function, values of plain arguments.  Out: ``FoundShapes``.
Imports: the frontend, its neighbours, ``symgrad.ir``, ``symgrad.errors``.

A gradient of another rank than its argument is a hint: the argument is tried with that rank.
Nothing is chosen by a verdict, since that would prefer shapes for which a mistake does not show.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from symgrad.errors import ShapeError, SpecError, SymgradError
from symgrad.frontend.function import class_of
from symgrad.frontend.source import class_location
from symgrad.frontend.spec import TensorSpec
from symgrad.frontend.trace import trace
from symgrad.ir.dim import Dim
from symgrad.ir.function import FunctionGraphs
from symgrad.shapes.candidates import AnyFunction, Candidate, Unknown, unknowns
from symgrad.shapes.sizes import Specs, letters, renamed, united

MOST_TRIALS = 1200
MOST_AFTER_A_TRACE = 150
"""Trials after the first shapes that forward accepts, when there is something to be better."""
MOST_CASES = 16
MOST_UNITED = 16
SHOWN_ERRORS = 3


@dataclass(frozen=True)
class FoundShapes:
    """What a Function was found to take.

    ``specs``: one a tensor argument.  ``static``: plain values, those that were given included.
    ``assume``: which numbers have no gradient.  ``text``: what was guessed, for a person.
    """

    specs: tuple[str | None, ...] = ()
    static: Mapping[str, Any] = field(default_factory=dict)
    assume: Mapping[str, str] = field(default_factory=dict)
    text: str = ""


def find(function: AnyFunction, static: Mapping[str, Any] | None = None) -> FoundShapes:
    """The cheapest shapes with which forward, and if possible backward, can be traced.

    Raises SpecError, which lists what was tried, where there are none.
    """
    return _Search(function, dict(static or {})).run()


@dataclass(frozen=True)
class _Trial:
    """One combination of candidates, with the sizes that forward made equal."""

    chosen: tuple[Candidate, ...]
    specs: Specs

    @property
    def guessed(self) -> list[bool]:
        return [one.rank is not None for one in self.chosen]

    @property
    def is_plain(self) -> bool:
        """Are all sizes names and numbers, and not sums and products?"""
        dims = [dim for spec in self.specs if spec is not None for dim in spec.dims]
        return all(dim.atom is not None or dim.constant is not None for dim in dims)


class _Search:
    def __init__(self, function: AnyFunction, static: dict[str, Any]) -> None:
        self.function = function
        self.static = static
        self.unknowns: list[Unknown] = list(unknowns(function, static))
        self.trials = 0
        self.errors: dict[str, str] = {}

    def run(self) -> FoundShapes:
        """The first combination that is good in every way; else the first of the next best."""
        second: dict[int, _Trial] = {}
        last = MOST_TRIALS
        for chosen in self._combinations():
            if self.trials >= last:
                break
            trial, graphs = self._forward(chosen)
            if trial is None or graphs is None:
                continue
            if _fails(graphs):
                trial = self._by_gradients(trial, graphs) or trial
                _, graphs = self._forward(trial.chosen)
            rank = 2 * (graphs is None or _fails(graphs)) + (not trial.is_plain)
            if rank == 0:
                return self._found(trial)
            second.setdefault(rank, trial)
            last = min(last, self.trials + MOST_AFTER_A_TRACE)
        if not second:
            raise self._nothing()
        return self._found(second[min(second)])

    def _combinations(self) -> Iterator[tuple[Candidate, ...]]:
        """All of them, in the order of the sum of their prices."""
        lists = [unknown.candidates for unknown in self.unknowns]
        if not lists or not all(lists):
            return
        start = (0,) * len(lists)
        heap = [(sum(one[0].price for one in lists), start)]
        seen = {start}
        while heap:
            price, at = heapq.heappop(heap)
            yield tuple(one[i] for one, i in zip(lists, at, strict=True))
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
        trial = _Trial(chosen, _fresh(chosen))
        for _ in range(MOST_UNITED):
            graphs, error = self._trace(trial)
            if graphs is not None:
                return trial, graphs
            specs = None
            if isinstance(error, ShapeError):
                specs = united(trial.specs, trial.guessed, error)
            if specs is None:
                break
            trial = replace(trial, specs=specs)
        return None, None

    def _trace(self, trial: _Trial) -> tuple[FunctionGraphs | None, Exception | None]:
        self.trials += 1
        specs, static, _ = self._call(trial)
        try:
            found = trace(self.function, *specs, static=static, most_cases=MOST_CASES)
        except Exception as error:  # forward may raise anything on what it is not meant for
            what = error.what if isinstance(error, SymgradError) else error
            if len(self.errors) < SHOWN_ERRORS:
                self.errors[self._text(trial)] = f"{type(error).__name__}: {what}"
            return None, error
        return found, None

    def _by_gradients(self, trial: _Trial, graphs: FunctionGraphs) -> _Trial | None:
        """The trial with the ranks that backward's gradients have, where both methods accept it."""
        ranks = _returned_ranks(graphs)
        chosen = tuple(
            replace(one, rank=ranks.get(unknown.name, one.rank)) if one.rank is not None else one
            for unknown, one in zip(self.unknowns, trial.chosen, strict=True)
        )
        if chosen == trial.chosen:
            return None
        again, traced = self._forward(chosen)
        return None if traced is None or _fails(traced) else again

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
            if unknown.plain or not (one.is_tensor or one.absent):
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

    def _nothing(self) -> SpecError:
        cls = class_of(self.function)
        wanted = [unknown.name for unknown in self.unknowns]
        tried = "".join(f"\n    {shapes}: {said}" for shapes, said in self.errors.items())
        return SpecError(
            f"{cls.__name__}: nothing says what {', '.join(wanted) or 'its arguments'} are, and "
            f"{self.trials} trials found no shapes that forward accepts"
            f"{'; the first:' if tried else ''}{tried}",
            location=class_location(cls),
            hint='annotate forward, as in x: "f32[n m]"; or say --shapes '
            f'"{"; ".join("n m" for _ in wanted) or "n m"}", one spec a tensor, and '
            "--static NAME=VALUE for what is no tensor",
        )


def _fresh(chosen: Sequence[Candidate]) -> Specs:
    """Specs in which every axis has a size of its own."""
    given = [one.spec for one in chosen if one.spec is not None]
    fresh = letters({name for spec in given for name in (*spec.sizes, spec.batch or "")})
    return tuple(
        one.spec if one.rank is None
        else TensorSpec(tuple(Dim.size(next(fresh)) for _ in range(one.rank)), one.dtype)
        for one in chosen
    )  # fmt: skip


def _spec_text(spec: TensorSpec) -> str:
    """``n m``; with a dtype where it is not the default one."""
    text = str(spec)
    return text[len("float[") : -1] if spec.dtype is None else text


def _fails(graphs: FunctionGraphs) -> bool:
    """Does backward raise, or return a gradient that does not fit, for these shapes?"""
    return any(
        case.problem is not None or any(one.problem is not None for one in case.gradients)
        for case in graphs.cases
    )


def _returned_ranks(graphs: FunctionGraphs) -> dict[str, int]:
    """The ranks of the gradients that do not fit their arguments, by argument."""
    return {
        one.input: one.returned.rank
        for case in graphs.cases for one in case.gradients
        if one.problem is not None and one.returned is not None
    }  # fmt: skip
