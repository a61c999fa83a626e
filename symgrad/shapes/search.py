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

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from symgrad.budgets import FIRST_SHAPE_TRIALS, SHAPE_TRIALS, TRIAL_CASES
from symgrad.frontend.evidence import AnyFunction, counts_axes
from symgrad.frontend.opened import with_lists_opened
from symgrad.frontend.plain import as_unstated
from symgrad.frontend.request import Request, check_stated
from symgrad.ir.assume import Assumption
from symgrad.shapes.beside import (
    as_integers,
    with_more_passed,
    with_one_more,
    with_tensors,
    with_typed,
)
from symgrad.shapes.by_running import run_shapes
from symgrad.shapes.fitting import (
    as_returned,
    near_shapes,
    sized_shapes,
    unread_masks,
    wider_shapes,
)
from symgrad.shapes.found import marked, request_of
from symgrad.shapes.other_shapes import at_other_ranks, at_other_shapes
from symgrad.shapes.presences import with_presences
from symgrad.shapes.reading import as_labels, as_read
from symgrad.shapes.refusals import (
    nothing_found,
    refuse_branches,
    refuse_functions,
    refuse_lists,
)
from symgrad.shapes.tracing import Search
from symgrad.shapes.trial import Trial
from symgrad.shapes.trying import cheapest
from symgrad.shapes.values import at_other_values, refuse_values, values_together


def find(
    function: AnyFunction, static: Mapping[str, Any], assume: Mapping[str, str], order: int = 1,
    facts: Sequence[Assumption] = (),
) -> Request:  # fmt: skip
    """The cheapest shapes with which forward, and if possible backward, can be traced.

    Its ``guess`` holds the same with other ranks, as far as forward and backward accept them, with
    tensors for plain defaults, and with optional tensors given and absent.  ``facts``: more of what
    is assumed of plain numbers that are symbols.  Raises SpecError, which lists what was tried,
    where there are none.
    """
    function = with_lists_opened(function, static)
    check_stated(function, static, assume, order)
    found = _best(Search(function, static, assume, order, facts))
    assert found.guess is not None

    def again(other: AnyFunction, values: Mapping[str, Any], more: Sequence[Assumption]) -> Request:
        return find(other, {**static, **values}, assume, order, (*facts, *more))

    return replace(found, guess=replace(found.guess, again=again))


def _best(search: Search) -> Request:
    """The cheapest combination of those that forward accepts."""
    refuse_functions(search)
    refuse_lists(search)
    found = cheapest(search, FIRST_SHAPE_TRIALS)
    if found is None:
        found = run_shapes(search, None) or cheapest(search, SHAPE_TRIALS)
    if found is None and search.many_cases is not None:
        search.most_cases = 10 * TRIAL_CASES
        found = cheapest(search, search.trials + 16)
    if search.ways_help and (found is None or found.failing):
        other = search.with_ways()
        again = cheapest(other, SHAPE_TRIALS)
        if again is not None and not (found and again.failing):
            search, found = other, again
    if found is None:
        raise search.many_cases or nothing_found(search)
    refuse_branches(search, found)
    refuse_values(search, found)
    if found.failing and search.guest is not None:
        found = as_returned(search, found)
    if found.raising:
        found = with_more_passed(search, found)
    if found.raising:
        found = as_read(search, as_labels(search, found))
    if not found.failing:
        found = with_tensors(search, found)
    whole, found = found, with_typed(search, found) or found
    guess = with_presences(search, found)
    ranks = [] if search.ways else list(at_other_ranks(search, found))
    shapes = at_other_shapes(search, found, ranks)
    values = [] if found.failing else list(at_other_values(search, found, bool(guess.presences)))
    longer = [] if found.failing else [*as_integers(search, found), *with_one_more(search, found)]
    as_tensors = None if found is whole else marked(search, whole, accident=True)
    longer += [] if as_tensors is None else [as_tensors]
    others = [*values, *longer, *(marked(search, one, **said) for one, said in shapes)]
    others += values_together(search, [(found, {}), *shapes], ranks, bool(guess.presences))
    guess = replace(
        guess, others=tuple(others), near=cache(partial(near_shapes, search, found)),
        wider=wider_shapes(search, found), sized=sized_shapes(search, found),
        counted=counts_axes(search.function), void=frozenset(search.void),
        unread=cache(partial(unread_masks, search, found)), passed=search.passed,
        as_tensors=None if found is whole else request_of(search, whole),
    )  # fmt: skip
    return _with_options(search, found, replace(request_of(search, found), guess=guess))


def _with_options(search: Search, found: Trial, request: Request) -> Request:
    """The request, in which nobody stated the options that are None and that are no tensors.

    Other values of these are judged as of any default.
    """
    assert request.guess is not None
    every = [request, *request.guess.others, *(one.request for one in request.guess.presences)]
    tensors = {one.name for its in every for one in its.tensors}
    options = {
        unknown.name for unknown, one in search.rows(found)
        if one.absent and not any(it.named for it in unknown.candidates)
    }  # fmt: skip
    request = as_unstated(request, search.typed, request)
    return as_unstated(request, options - tensors, request)
