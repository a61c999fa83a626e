"""What a program reads that depends on the number of batch axes.

In: words and the user's line.  Out: ``Observation``, and the exception that ends the trace.
"""

from __future__ import annotations

from dataclasses import dataclass

from symgrad.errors import Location


@dataclass(frozen=True)
class Observation:
    """The first thing that may differ with the number of batch axes, and where."""

    what: str
    location: Location | None

    def __str__(self) -> str:
        return f"{self.what} ({self.location})" if self.location else self.what


class RanksApart(BaseException):
    """The program treats some numbers of batch axes unlike all others: they are judged apart.

    Not an ``Exception``, so that no handler in the traced program catches it.
    """

    def __init__(self, ranks: frozenset[int]) -> None:
        self.ranks = ranks
        super().__init__(str(sorted(ranks)))


class RankDependent(BaseException):
    """The traced program may behave differently for another number of batch axes.

    Not an ``Exception``, so that no handler in the traced program catches it.
    """

    def __init__(self, observation: Observation) -> None:
        self.observation = observation
        super().__init__(str(observation))
