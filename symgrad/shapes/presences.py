"""Optional tensors: which forward takes given and absent, and with which shapes."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import replace

from symgrad.budgets import TENSOR_TRIALS
from symgrad.frontend.evidence import asked_for_none, parameters
from symgrad.frontend.request import Guess, Presence, subsets
from symgrad.frontend.session import as_symgrad_error, refuses_sizes
from symgrad.shapes.candidates import ABSENT, Candidate
from symgrad.shapes.found import guess_of, request_of
from symgrad.shapes.outcomes import fits_backward
from symgrad.shapes.tracing import Search
from symgrad.shapes.trial import Trial, is_float
from symgrad.shapes.trying import attempt, cheapest

BOTH = (True, False)


def with_presences(search: Search, found: Trial, *, kept: bool = False) -> Guess:
    """Optional tensors given and absent, each time with shapes that forward accepts.

    Shapes of a call with all of them need not be those of a call without some: what is not
    read beside another tensor is of any shape there.  ``kept``: the shapes are narrower than
    forward needs, and stay what they are where backward fits.
    """
    main = {
        unknown.name for unknown, one in search.rows(found)
        if one.is_tensor
    }  # fmt: skip
    candidates = _optional(search, found, main)
    known: dict[frozenset[str], Trial] = {frozenset(main.intersection(candidates)): found}
    refused: dict[frozenset[str], str] = {}
    unfound: dict[frozenset[str], str] = {}

    def look(given: frozenset[str], optional: Sequence[str]) -> None:
        if given in known or given in refused or given in unfound:
            return
        trial, why, sizes = _given(search, found, given, optional, kept)
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
        return Presence(names[0], names[1], request_of(search, known.get(given, found)))

    guess = guess_of(search, found)
    if not optional:
        return guess
    order = dict.fromkeys([*list(known)[:1], *map(frozenset, subsets(optional)), *known])
    every = {given: presence(given) for given in order if given in known}
    text = guess.text
    for given, one in every.items():
        own = search.shapes(known[given], one.absent)
        if own != search.shapes(found, one.absent):
            text += f"; with {one}: {own}"
    return replace(
        guess, text=text, presences=tuple(every.values()),
        refused={str(presence(given)): why for given, why in refused.items()
                 if given <= set(optional)},
        unfound={str(presence(given)): why for given, why in unfound.items()},
    )  # fmt: skip


def _optional(search: Search, found: Trial, main: Collection[str]) -> list[str]:
    """The arguments that may be tensors and may be None, by default or as the code asks."""
    asked = {
        name for name in asked_for_none(search.function) if name in main
        and _takes_none(search, found, name)
    }  # fmt: skip
    tensors = {
        unknown.name for unknown in search.unknowns
        if any(candidate.is_tensor for candidate in unknown.candidates)
    }  # fmt: skip
    return [
        one.name for one in parameters(search.function)
        if one.name in tensors and (one.default is None or one.name in asked)
    ]  # fmt: skip


def _takes_none(search: Search, found: Trial, name: str) -> bool:
    """Does forward take None for an argument, beside the others?"""
    chosen = (ABSENT if unknown.name == name else one for unknown, one in search.rows(found))
    return attempt(search, tuple(chosen)) is not None


def _without(search: Search, found: Trial, names: Collection[str]) -> Trial | None:
    """The same without some tensors; None where forward or backward does not take that."""
    gone = [unknown.name in names for unknown in search.unknowns]
    other = replace(
        found,
        chosen=tuple(ABSENT if out else one for one, out in zip(found.chosen, gone, strict=True)),
        specs=tuple(None if out else one for one, out in zip(found.specs, gone, strict=True)),
    )
    graphs, _ = search.trace(other)
    return other if graphs is not None and fits_backward(graphs) else None


def _given(
    search: Search, found: Trial, given: Collection[str], optional: Collection[str], kept: bool
) -> tuple[Trial | None, str, bool]:
    """A call with just these optional tensors; or why forward refuses it, and for its sizes?"""
    tensors = {
        unknown.name for unknown, one in search.rows(found)
        if one.is_tensor
    }  # fmt: skip
    wanted = frozenset(given) - tensors
    same = _without(search, found, {*optional} - {*given}) if kept and not wanted else None
    if same is not None:
        return same, "", False
    near: list[tuple[Candidate, ...]] = []
    freely: list[tuple[Candidate, ...]] = []
    for unknown, one in search.rows(found):
        floats = tuple(other for other in unknown.candidates if is_float(other))
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
    search.refusals = []
    tried = [attempt(search, chosen, wanted) for chosen in itertools.product(*near)]
    near_refusals, unknowns = list(search.refusals), search.unknowns
    if all(one is None or one.failing for one in tried):
        search.unknowns = [
            replace(unknown, candidates=some)
            for unknown, some in zip(unknowns, freely, strict=True)
        ]
        tried.append(cheapest(search, search.trials + TENSOR_TRIALS, wanted))
        search.unknowns = unknowns
    fitting = [one for one in tried if one is not None]
    if fitting:
        return min(fitting, key=lambda one: one.price), "", False
    errors = [as_symgrad_error(error, "forward") for error in near_refusals]
    alike = len(search.refusals) > 1 and len({str(error) for error in search.refusals}) == 1
    sizes = any(map(refuses_sizes, errors)) and not alike
    what = errors[0].what if errors else ""
    return None, f"no shapes were found that forward accepts: {what}" if sizes else what, sizes
