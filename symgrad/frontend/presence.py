"""Optional tensors: with which of them given, and which absent, a Function is judged.

In: a Function, shape specs, values by name.  Out: ``Presence`` records, all given first.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symgrad.frontend.function import Function
from symgrad.frontend.request import bind, parameters

MOST_OPTIONAL = 3
"""Optional tensors of which every subset is judged: 8 verdicts, each as long as the first."""


@dataclass(frozen=True)
class Presence:
    """A call of forward with some optional tensors, and None for the others.

    ``specs`` and ``static`` say so, as ``verify`` takes them.
    """

    given: tuple[str, ...]
    absent: tuple[str, ...]
    specs: tuple[Any, ...]
    static: Mapping[str, Any]

    def __str__(self) -> str:
        """``weight given, bias absent``."""
        parts = [(self.given, "given"), (self.absent, "absent")]
        return ", ".join(f"{' and '.join(names)} {word}" for names, word in parts if names)

    def about(self, assume: Mapping[str, str] | None) -> dict[str, str]:
        """The facts about what is not absent."""
        return {name: fact for name, fact in (assume or {}).items() if name not in self.absent}


def presences(
    function: type[Function] | Function, specs: Sequence[Any], static: Mapping[str, Any] | None
) -> list[Presence]:
    """One for each subset of the optional tensors; of many, all, none, and each alone.

    Optional is a tensor whose parameter has the default None; what is stated as None is no tensor.
    Empty where nothing is optional.  Raises SpecError.
    """
    tensors = _tensors(function, specs, static)
    names = [one.name for one in parameters(function) if one.default is None]
    optional = tuple(name for name in names if name in tensors)
    places = {
        name: place for place in range(len(specs))
        for name in tensors - _tensors(function, _without(specs, [place]), static)
    }  # fmt: skip
    found = []
    for given in _subsets(optional) if optional else ():
        absent = tuple(name for name in optional if name not in given)
        left = _without(specs, [places[name] for name in absent if name in places])
        values = {name: None for name in absent if name not in places}
        found.append(Presence(tuple(given), absent, left, {**(static or {}), **values}))
    return found


def _tensors(
    function: type[Function] | Function, specs: Sequence[Any], static: Mapping[str, Any] | None
) -> set[str]:
    return {one.name for one in bind(function, specs, static).arguments if one.is_tensor}


def _without(specs: Sequence[Any], places: Sequence[int]) -> tuple[Any, ...]:
    return tuple(None if place in places else spec for place, spec in enumerate(specs))


def _subsets(names: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    """The greatest first."""
    if len(names) > MOST_OPTIONAL:
        return [names, *((name,) for name in names), ()]
    sizes = range(len(names), -1, -1)
    return itertools.chain.from_iterable(itertools.combinations(names, size) for size in sizes)
