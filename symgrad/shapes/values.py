"""Other values of plain arguments, alone, together and at other shapes."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from symgrad import deadline
from symgrad.budgets import MOST_ELSEWHERE, MOST_TOGETHER, TOGETHER_SHARE
from symgrad.errors import is_limit
from symgrad.frontend.request import Request
from symgrad.frontend.session import as_symgrad_error, refuses_sizes
from symgrad.plain_values import described, is_alike
from symgrad.shapes.candidates import MORE_VALUES, Candidate, Unknown
from symgrad.shapes.found import guess_of, marked
from symgrad.shapes.outcomes import price_of_failing, refusal_of
from symgrad.shapes.presences import with_presences
from symgrad.shapes.refusals import nothing_found
from symgrad.shapes.tracing import Search
from symgrad.shapes.trial import Trial, put
from symgrad.shapes.trying import attempt


def refuse_values(search: Search, found: Trial) -> None:
    """Raises SymgradError for a value that the code compares with, and that is not traced.

    Else the verdict would hold for the other values alone.  What the program raises on purpose
    shows that the value is none.
    """
    for at, (unknown, own) in enumerate(search.rows(found)):
        literals = search.literals.get(unknown.name, []) if own.is_value else []
        for value in [*literals, 2] if literals and type(own.value) is int else literals:
            search.refusals = []
            trial, _ = search.forward(put(found.chosen, at, Candidate(0, value=value)))
            for error in search.refusals if trial is None else ():
                said = as_symgrad_error(error, "forward")
                if is_limit(said) and not refuses_sizes(said):
                    said.what += f" (for {unknown.name} = {value!r})"
                    raise said
                if isinstance(said.__cause__, (AttributeError, TypeError, NameError)):
                    raise nothing_found(search)


def at_other_values(search: Search, found: Trial, optional: bool) -> Iterator[Request]:
    """The same with other values of plain arguments that have no default, where they fit.

    The first for which backward fails is a condition for others.  ``optional``: are there
    tensors that may be absent?
    """
    for position, (unknown, own) in enumerate(search.rows(found)):
        left_out = own.absent and any(one.named for one in unknown.candidates)
        if not (own.is_value or left_out) or unknown.name in search.typed:
            continue
        judged: list[Any] = [own.value]
        failing: Trial | None = None
        for one in (*unknown.candidates, *MORE_VALUES):
            alike = one.named or own.value is None or type(one.value) is type(own.value)
            alike |= type(own.value) is int and type(one.value) is float
            known = any(is_alike(it, one.value) for it in judged)
            spare = one.spare and not own.spare
            if not one.is_value or spare or not alike or known:
                continue
            if one in MORE_VALUES and (
                unknown.closed
                or not _is_integer(unknown)
                or one.value < 0 <= _least(unknown)
                or any(type(it) is float for it in judged)
            ):
                continue  # no text, no negative number where one counts, nothing that may be 0.5
            trial = attempt(search, put(found.chosen, position, one))
            if trial and not trial.failing and not trial.hidden:
                judged.append(one.value)
                search.values.setdefault(position, []).append(one)
                yield _beside(search, found, trial, optional)
            elif trial and trial.failing and one.named:
                yield _beside(search, found, trial, False)
            elif trial and trial.failing and _is_usual(one.value):
                failing = failing or trial
        if failing is not None:
            yield _beside(search, found, failing, False, accident=True)


def _beside(
    search: Search, found: Trial, trial: Trial, optional: bool, combined: bool = False, **said: Any
) -> Request:
    """A request with other values of plain arguments than those that were found."""
    request, place = marked(search, trial, **said), guess_of(search, found).place
    guess = with_presences(search, trial) if optional else request.guess
    assert guess is not None
    return replace(request, guess=replace(guess, place=place, combined=combined, **said))


def values_together(
    search: Search, shapes: Sequence[tuple[Trial, dict[str, Any]]], free: Collection[Trial],
    optional: bool,
) -> list[Request]:  # fmt: skip
    """Other values of plain arguments together, and at other shapes, as time allows.

    ``free``: shapes in the place of which other values may need others.
    """
    found, judged = shapes[0][0], list[Request]()
    rows = [
        [(at, one) for one in (found.chosen[at], *more)] for at, more in search.values.items()
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
                other = _with_values(search, trial, some, trial is found or trial in free)
                if other is not None:
                    said = {"accident": True} if other.failing else said
                    own = optional and trial is found and not other.failing
                    judged.append(_beside(search, trial, other, own, combined=True, **said))
    except deadline.TimeUp:
        deadline.check()  # was it the limit of all?
    return judged


def _with_values(
    search: Search, trial: Trial, some: Sequence[tuple[int, Candidate]], free: bool
) -> Trial | None:
    """The same with other values of plain arguments; None where forward does not take them."""
    chosen = trial.chosen
    for at, one in some:
        chosen = put(chosen, at, one)
    search.refusals = []
    if free:
        other, errors = attempt(search, chosen), search.refusals
    else:
        other = replace(trial, chosen=chosen)
        graphs, error = search.trace(other)
        error = error if graphs is None else refusal_of(graphs)
        errors = [] if error is None else [error]
        failing = 0 if graphs is None else price_of_failing(graphs)
        other = None if error is not None else replace(other, failing=failing)
    limit = any(is_limit(as_symgrad_error(error, "forward")) for error in errors)
    if other is None and errors and not limit:
        texts = tuple(described(one.value) for one in chosen if one.is_value)
        search.void.add((guess_of(search, trial).place, texts))
    return None if other is None or other.hidden else other


def _is_usual(value: Any) -> bool:
    """Is it no number below 1, for which backward may fail as nobody counts so?"""
    return not isinstance(value, (int, float)) or value > 0


def _is_integer(unknown: Unknown) -> bool:
    """Are plain integers tried?"""
    return any(type(one.value) is int for one in unknown.candidates)


def _least(unknown: Unknown) -> float:
    """The least plain integer that is tried."""
    values = [one.value for one in unknown.candidates if one.is_value]
    return min((one for one in values if type(one) is int), default=0)
