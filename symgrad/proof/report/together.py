"""Which values of plain arguments were judged together, and for which shapes?

In: requests, as they are judged.  Out: conditions that leave out what was not judged.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from symgrad.plain_values import described
from symgrad.proof.report.records import Condition

Values = tuple[str, ...]
MOST_LEFT_OUT = 3
"""Combinations that a condition leaves out one by one."""


class Judged:
    """Values of plain arguments, by the shapes for which they were judged: the first ones of each.

    ``names``: the arguments.  ``main``: the shapes that are judged first, with the values
    ``static``.  ``refused``: shapes, with values of which forward does not accept both.
    """

    def __init__(
        self, names: Sequence[str], main: str, static: Mapping[str, Any],
        refused: Collection[tuple[str, Values]],
    ) -> None:  # fmt: skip
        self.names, self.main, self.refused = names, main, refused
        self.first = tuple(described(static.get(name)) for name in names)
        self.judged: dict[str, dict[Values, None]] = {main: {self.first: None}}
        self.lacking: dict[str, set[str]] = {}
        """Where what is an argument with a value is a tensor."""

    def add(self, place: str, static: Mapping[str, Any]) -> None:
        """These values were judged for these shapes."""
        self.judged.setdefault(place, {})[self._of(static)] = None
        self.lacking.setdefault(place, {*self.names} - {*static})

    def leave_out(self, place: str) -> None:
        """A condition leaves out these shapes, unless they are those that are judged first."""
        if place != self.main:
            self.judged.pop(place, None)

    def _of(self, static: Mapping[str, Any]) -> Values:
        return tuple(
            described(static[name]) if name in static else own
            for name, own in zip(self.names, self.first, strict=True)
        )

    def _changes(self, values: Values) -> int:
        return sum(one != own for one, own in zip(values, self.first, strict=True))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What leaves out the values that were not judged together, or not for all shapes."""
        alone = [values for values in self.judged[self.main] if self._changes(values) < 2]
        kinds = [list(dict.fromkeys([own, *(values[at] for values in alone)]))
                 for at, own in enumerate(self.first)]  # fmt: skip
        every = list(itertools.product(*kinds))
        texts: dict[str, list[str]] = {}
        for place, judged in self.judged.items():
            fixed = [self.names.index(name) for name in self.lacking.get(place, ())]
            left = [
                one for one in every if one not in judged and (place, one) not in self.refused
                and all(one[at] == self.first[at] for at in fixed)
            ]  # fmt: skip
            if left:
                kept = self._kept([*filter(judged.__contains__, every)], left)
                texts.setdefault(kept, []).append(place)
        return tuple(Condition("together", text) for text in self._said(texts))

    def _said(self, texts: Mapping[str, Sequence[str]]) -> Iterator[str]:
        for text, places in texts.items():
            if self.main in places:
                yield f"{text} (other values were not judged together)"
            if others := [place for place in places if place != self.main]:
                yield f"{text} for {' or '.join(others)} (other values were not judged there)"

    def _kept(self, judged: Sequence[Values], left: Sequence[Values]) -> str:
        """Values of which all were judged."""
        varied = [at for at, own in enumerate(self.first) if any(one[at] != own for one in left)]

        def shown(values: Values) -> str:
            return ", ".join(f"{self.names[at]} = {values[at]}" for at in varied)

        if len(left) <= min(MOST_LEFT_OUT, len(judged)):
            return f"it is not {' or '.join(dict.fromkeys(map(shown, left)))}"
        most = min(map(self._changes, left)) - 1
        if most < 1:
            return shown(self.first)
        names = " and ".join(self.names[at] for at in varied)
        differ = "differs" if most == 1 else "differ"
        return f"at most {most} of {names} {differ} from {shown(self.first)}"
