"""What an argument may be beside what was found: a tensor, integers, a mask; one tensor more."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from symgrad.budgets import TENSOR_TRIALS
from symgrad.frontend.evidence import asks_types
from symgrad.frontend.function import class_of
from symgrad.frontend.gradients import SurplusError
from symgrad.frontend.questions import asked_for_tensors
from symgrad.frontend.request import Request
from symgrad.ir.dtype import bool_, int64
from symgrad.shapes.candidates import A_NUMBER, Candidate, left_out
from symgrad.shapes.fitting import with_integers
from symgrad.shapes.found import request_of
from symgrad.shapes.outcomes import inputs_read, problem_of
from symgrad.shapes.tracing import Search
from symgrad.shapes.trial import NONE, Trial, is_float, put
from symgrad.shapes.trying import attempt, cheapest, cheapest_fitting


def _indices(search: Search, found: Trial) -> frozenset[str]:
    """Integers and masks that backward alone reads: their true gradient is 0."""
    graphs, _ = search.trace(found)
    read = NONE if graphs is None else inputs_read(graphs)
    return frozenset(unknown.name for unknown, one in search.rows(found) if one.dtype) - read


def with_tensors(search: Search, found: Trial) -> Trial:
    """The same with a tensor for every argument that is one where it gets a gradient.

    It need not fit, and backward may raise: None or a number would hide that.  Integers that
    fit are what is meant where backward raises for a tensor.
    """
    every, indices = list(search.unknowns), _indices(search, found)
    for position, unknown in enumerate(every):
        if is_float(found.chosen[position]) or unknown.name in indices:
            continue
        floats = tuple(one for one in unknown.candidates if is_float(one))
        kept = search.unknowns
        search.unknowns = [*kept]
        search.unknowns[position] = replace(unknown, candidates=floats)
        near = [put(found.chosen, position, one) for one in floats]
        wanted = frozenset({unknown.name})
        tried = [attempt(search, chosen, wanted) for chosen in near]
        known = any(_gets_none(search, chosen, unknown.name) for chosen in near)
        if not known:
            last = search.trials + TENSOR_TRIALS
            tried.append(cheapest(search, last, wanted, late=False))
        labels = found.fits and found.chosen[position].dtype == int64
        fitting = [one for one in tried if one and not ((known or labels) and one.raising)]
        if fitting:
            found = min(fitting, key=lambda one: one.price)
        else:
            search.unknowns = kept
    search.unknowns = every
    return found


def _gets_none(search: Search, chosen: tuple[Candidate, ...], name: str) -> bool:
    """Does backward take a tensor for an argument, and return no gradient of it?

    Then it is a plain value, also where backward raises for tensors of other ranks.
    """
    _, graphs = search.forward(chosen)
    return graphs is not None and all(
        case.problem is None
        and any(one.input == name and one.returned is None for one in case.gradients)
        for case in graphs.cases
    )


def with_more_passed(search: Search, found: Trial) -> Trial:
    """The same with the arguments that it leaves out, and of which backward has gradients.

    PyTorch raises where they are left out, and takes a gradient of a tensor alone.
    """
    graphs, _ = search.trace(found)
    problem = None if graphs is None else problem_of(graphs)
    names = frozenset(problem.names if isinstance(problem, SurplusError) else NONE)
    known = {unknown.name: one for unknown, one in search.rows(found)}
    tensors = left_out(search.function, search.static, known, names)
    more = [one for one in tensors if one.name in names]
    if not names or len(more) < len(names):
        return found
    kept, search.unknowns = search.unknowns, [*search.unknowns, *more]
    every = itertools.product(*(one.candidates for one in more))
    tried = [attempt(search, (*found.chosen, *some), names) for some in every]
    running = [one for one in tried if one is not None and not one.raising]
    if not running:
        search.unknowns = kept
        return found
    search.passed = tuple(sorted(names))
    return min(running, key=lambda one: one.price)


def as_integers(search: Search, found: Trial) -> Iterator[Request]:
    """The same with integers, or a mask, for a plain value or None; with integers for labels.

    One integer or truth is no tensor where a plain value is taken: it is that value.
    """
    for position, (unknown, own) in enumerate(search.rows(found)):
        for dtype in () if own.is_tensor or own is A_NUMBER else (int64, bool_):
            every = [put(found.chosen, position, one)
                     for one in unknown.candidates
                     if one.dtype == dtype and (one.rank or own.absent)]  # fmt: skip
            if (other := cheapest_fitting(search, every)) is not None:
                yield request_of(search, other)
    if (other := with_integers(search, found)) is not None:
        yield request_of(search, other)


def with_one_more(search: Search, found: Trial) -> Iterator[Request]:
    """The same with one tensor more, where forward takes it and backward returns a gradient.

    What has a plain default is a plain value where backward raises for a tensor.
    """
    kept = search.unknowns
    known = {unknown.name: one for unknown, one in zip(kept, found.chosen, strict=True)}
    for unknown in left_out(search.function, search.static, known):
        search.unknowns = [*kept, unknown]
        wanted, tried = frozenset({unknown.name}), list[Trial | None]()
        for one in unknown.candidates:
            chosen = (*found.chosen, one)
            tried.append(attempt(search, chosen, wanted))
            if tried[-1] is None and _gets_none(search, chosen, unknown.name):
                break  # whatever its rank
        returned = [one for one in tried if one is not None and not one.raising]
        if returned:
            yield request_of(search, min(returned, key=lambda one: one.price))
    search.unknowns = kept


def with_typed(search: Search, found: Trial) -> Trial | None:
    """The same with Python numbers for those whose type the program may ask for.

    None where there are none, or forward does not take them; and where the library says which
    arguments are plain, so that they are numbers already.
    """
    plain = class_of(search.function).symgrad_plain
    constant = {
        unknown.name for unknown, one in search.rows(found) if one.constant and plain is None
    }  # fmt: skip
    graphs, _ = search.trace(found) if constant else (None, None)
    if graphs is None:
        return None
    asked = asked_for_tensors(one for case in graphs.cases for one in case.assumed)
    names = frozenset(constant if asks_types(search.function) else constant & asked)
    chosen = tuple(
        A_NUMBER if unknown.name in names else one for unknown, one in search.rows(found)
    )
    other = attempt(search, chosen) if names else None
    search.typed = NONE if other is None else names
    return other
