"""What was found, as a ``Request`` with the ``Guess`` that says how it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from symgrad.errors import is_limit
from symgrad.frontend.request import Guess, Request
from symgrad.frontend.session import as_symgrad_error
from symgrad.ir.dim import Dim
from symgrad.shapes.candidates import Unknown
from symgrad.shapes.outcomes import refusal_of
from symgrad.shapes.sizes import OTHER_NUMBERS, USUAL_NUMBERS, Specs, factors, names, renamed
from symgrad.shapes.tracing import Search
from symgrad.shapes.trial import Trial, is_resized
from symgrad.shapes.trying import attempt


def at_uneven(search: Search, found: Trial) -> tuple[list[Trial], bool]:
    """The same at a number that is no multiple, and whether forward takes such."""
    key = found.chosen, found.specs
    if key not in search.beside:
        search.beside[key] = _traced_uneven(search, found)
    return search.beside[key]


def _traced_uneven(search: Search, found: Trial) -> tuple[list[Trial], bool]:
    every: list[Trial] = []
    taken = False
    for position, axis in map(min, found.uneven):
        spec = found.specs[position]
        assert spec is not None
        parts, name = factors(spec.dims[axis])
        size = Dim.of(3 * parts - 1)  # no piece of it is repeated to another one
        specs = _with_dim(found.specs, spec.dims[axis], size)
        other = replace(found, specs=specs, uneven=frozenset())
        graphs, error = (None, None) if name in names(specs) else search.trace(other)
        error = error if graphs is None else refusal_of(graphs)
        if graphs is not None and error is None:
            every.append(other)
        taken |= error is None or is_limit(as_symgrad_error(error, "forward"))
    return every, taken


def marked(
    search: Search, trial: Trial, *, accident: bool = False, written: bool = False, summed: str = ""
) -> Request:
    """The request for a trial, with what ``Guess`` says of it."""
    request = request_of(search, trial)
    assert request.guess is not None
    guess = replace(request.guess, accident=accident, written=written, summed=summed)
    return replace(request, guess=guess)


def _resized(search: Search, trial: Trial, unknowns: list[Unknown]) -> Iterator[Request]:
    """The same at other numbers for the sizes that Python has to know, as far as it fits."""
    for numbers in OTHER_NUMBERS:
        kept, search.unknowns, search.numbers = search.unknowns, unknowns, numbers
        other = attempt(search, trial.chosen)
        found = other and is_resized(trial, other) and request_of(search, other)
        search.unknowns, search.numbers = kept, USUAL_NUMBERS
        if found:
            yield found


def guess_of(search: Search, trial: Trial) -> Guess:
    """What was inferred, in words, and what it depends on."""
    values = tuple(
        unknown.name for unknown, one in search.rows(trial)
        if one.is_value and unknown.name not in search.typed
    )  # fmt: skip
    sizes = tuple(_size(search, trial, *min(places)) for places in sorted(trial.tried, key=min))
    resized = partial(_resized, search, trial, search.unknowns) if sizes else None
    multiples = tuple(
        _size(search, trial, *min(places)) for places in sorted(trial.uneven, key=min)
    ) if trial.uneven and at_uneven(search, trial)[1] else ()  # fmt: skip
    return Guess(
        search.shapes(trial), search.partly, values, sizes=sizes, resized=resized, fits=trial.fits,
        multiples=multiples, place=search.shapes(trial, values),
    )  # fmt: skip


def _size(search: Search, trial: Trial, position: int, axis: int) -> str:
    spec = trial.specs[position]
    assert spec is not None
    return f"{search.unknowns[position].name}.shape[{axis}] == {spec.dims[axis]}"


def request_of(search: Search, trial: Trial) -> Request:
    """The request for a trial, with its sizes in order."""
    specs = renamed(trial.specs, trial.guessed, search.taken(trial))
    return replace(search.request(replace(trial, specs=specs)), guess=guess_of(search, trial))


def _with_dim(specs: Specs, old: Dim, new: Dim) -> Specs:
    """The specs with one size in the place of another expression, wherever that stands alone."""
    return tuple(
        None if spec is None else replace(
            spec, dims=tuple(new if dim == old else dim for dim in spec.dims)
        )
        for spec in specs
    )  # fmt: skip
