"""Combinations of arguments that end as others have: the search tries them last.

In: combinations, and how forward ended for them.  Out: is another one likely to end in that way?

For every shape ``forward`` raises the same error at the same line where a flag asks for a dtype
that symgrad has not, or where a tensor stands for a flag.  What such combinations have in common
is found by comparing them.  It is a guess, which another ending refutes, and no verdict: what is
likely to end in an error is tried as well, after what is not.  Where tensors alone are common, a
plain value that none of them had may avoid the error, as a flag does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from symgrad.errors import SymgradError, says_sizes
from symgrad.frontend.session import as_symgrad_error, refuses_sizes
from symgrad.shapes.candidates import Candidate

ALIKE = 5
"""So many combinations that end alike show that others will."""
Traits = frozenset[tuple[Any, ...]]


@dataclass
class _Group:
    """Combinations with one ending, what they have in common, and which plain values they had."""

    ending: tuple[Any, ...]
    common: Traits
    values: Traits
    count: int = 1

    def covers(self, traits: Traits) -> bool:
        """Has a combination all that is common?  A value may help where that is tensors alone."""
        return self.common <= traits and (
            bool(_values(self.common)) or _values(traits) <= self.values
        )


class Hopeless:
    """What the combinations tried so far tell of those that are not."""

    def __init__(self) -> None:
        self.groups: list[_Group] = []
        self.endings: list[tuple[tuple[Any, ...] | None, Traits]] = []
        self.refuted = 0
        """How many guesses were wrong."""

    def note(self, chosen: tuple[Candidate, ...], error: Exception | None) -> None:
        """A combination, and what forward raised; None where it accepted it."""
        traits, ending = _traits(chosen), _ending(error)
        kept = [one for one in self.groups if one.ending == ending or not one.common <= traits]
        self.refuted += any(one.count >= ALIKE and one not in kept for one in self.groups)
        self.groups = kept
        self.endings.append((ending, traits))
        if ending is None:
            return
        for group in self.groups:
            common = group.common & traits
            if group.ending == ending and (common == group.common or self._fits(common, ending)):
                group.common, group.count = common, group.count + 1
                group.values |= _values(traits)
                return
        self.groups.append(_Group(ending, traits, _values(traits)))

    def _fits(self, common: Traits, ending: tuple[Any, ...]) -> bool:
        """Have all combinations with this in common ended so, and is there something?"""
        return bool(common) and all(
            other == ending or not common <= traits for other, traits in self.endings
        )

    def covers(self, chosen: tuple[Candidate, ...]) -> bool:
        """Has a combination in common what several have that ended alike?"""
        guessed = [one for one in self.groups if one.count >= ALIKE]
        traits = _traits(chosen) if guessed else frozenset()
        return any(one.covers(traits) for one in guessed)


def _traits(chosen: tuple[Candidate, ...]) -> Traits:
    """What each argument is, and which are tensors: all that combinations may share."""
    exact = [(at, one, type(one.value)) for at, one in enumerate(chosen)]
    return frozenset([*exact, *((at,) for at, one in enumerate(chosen) if one.is_tensor)])


def _values(traits: Traits) -> Traits:
    """Of what combinations have in common: the arguments that are plain values."""
    return frozenset(one for one in traits if len(one) > 1 and one[1].is_value)


def _ending(error: Exception | None) -> tuple[Any, ...] | None:
    """What an error is, and where; None for one that other sizes may avoid."""
    if error is None:
        return None
    found: SymgradError = as_symgrad_error(error, "forward")
    if refuses_sizes(found) or says_sizes(found):
        return None
    return type(found), found.what, found.location
