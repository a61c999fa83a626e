"""What the operations of a trace demand of integers: else they raise, for the whole call.

In: the nodes that are applied, in whatever the program computes, used or not.  Out: what is not
plain from the sizes, for the proof to show or to print.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from symgrad.errors import Location
from symgrad.frontend.caller import here
from symgrad.ir.assume import Assumption
from symgrad.ir.dim import Dim
from symgrad.ir.function import Demanded
from symgrad.ir.graph import Node, current_location
from symgrad.ops.integers import Demand, Ends, Integers, demands, up_to

if TYPE_CHECKING:
    from symgrad.frontend.session import Session

_WHATEVER = Ends((Dim.of(0),))


class Demands:
    """What the operations of one trace demand, each once, with the user's line."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._found: dict[Demand, Location | None] = {}
        self._said: dict[Demand, str] = {}
        self._wholes: dict[str, Node] = {}
        self._wished: list[Demanded] = []

    def of(self, node: Node) -> None:
        """Note what a node demands."""
        guest = self._session.guest
        for one in demands(node):
            if one.apart is None or guest is None or not guest.divides_by_zero:
                self.note(one)

    def note(self, demand: Demand, location: Location | None = None, said: str = "") -> None:
        """Note a demand, beside a line, or that which is traced.  ``said``: it, in words."""
        if said:
            self._said[demand] = said
        self._found.setdefault(demand, location or current_location.get() or here())

    def wish(self, demand: Demand) -> None:
        """Note what counterexamples are looked for first at which it holds."""
        self._wished.append(Demanded(*demand, here(), wished=True))

    def stands_for(self, element: str, whole: Node) -> None:
        """An input of this name is any element of ``whole``."""
        self._wholes[element] = whole

    @property
    def count(self) -> int:
        """How many demands there are."""
        return len(self._found)

    def taken_since(self, count: int) -> list[tuple[Demand, Location | None]]:
        """All demands but the first, which are no longer noted here."""
        found = list(self._found.items())[count:]
        for demand, _ in found:
            del self._found[demand]
        return found

    def lies_below(self, node: Node, high: Dim) -> bool:
        """Are places less than ``high`` by what is demanded so far, or declared of the inputs?"""
        known = {one.name: one.extent for one in self._session.assumed if one.extent is not None}
        integers = self._integers(lambda name: up_to(known.get(name)))
        met = any(
            one.node is node and one.high is not None and integers.holds(one.high, "<=", high)
            for one in self._found
        )
        return met or integers.below(node, high)

    def ends(self, node: Node) -> Ends:
        """What is known of the least and the greatest element of integers."""
        known = {one.name: one.extent for one in self._session.assumed if one.extent is not None}
        return self._integers(lambda name: up_to(known.get(name))).of(node)

    def counts_from_the_front(self, node: Node) -> bool:
        """Are places not negative, where no input that they are computed from is?"""
        return self._integers(lambda name: _WHATEVER).above(node, Dim.of(0))

    def left(self, declared: Iterable[Assumption]) -> tuple[Demanded, ...]:
        """What is not met by all that is declared of the inputs, and by their sizes."""
        known = {one.name: one.extent for one in declared if one.extent is not None}
        integers = self._integers(lambda name: up_to(known.get(name)))
        left = [
            Demanded(*one, location, said=self._said.get(one, ""))
            for one, location in self._found.items()
            if not integers.meets(one)
        ]  # fmt: skip
        return (*left, *self._wished)

    def _integers(self, known: Callable[[str], Ends]) -> Integers:
        def of(name: str) -> Ends:
            whole = self._wholes.get(name)
            return known(name) if whole is None else found.of(whole)

        found = Integers(self._session.facts.decide, of)
        return found
