"""What a backward can name where it returns, and who tries a repair by pasting it there.

In: nothing.  Out: ``Scope``, a record; ``Paste``, what the driver provides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from symgrad.ir.dim import Dim
from symgrad.ir.function import FunctionCase
from symgrad.ir.graph import Node


@dataclass(frozen=True)
class Scope:
    """Texts of what is in reach at one return statement of a backward.

    ``names``: nodes of the case's graph.  ``sizes``: where a size can be read from; ``dims``: the
    same for expressions of sizes.  ``numbers``: variables that hold a plain number.  ``module``:
    what the user calls symgrad.  ``taken``: names that must not be bound.
    """

    names: Mapping[Node, str]
    sizes: Mapping[str, str] = field(default_factory=dict)
    dims: Mapping[Dim, str] = field(default_factory=dict)
    numbers: Mapping[float, str] = field(default_factory=dict)
    module: str = "sg"
    taken: frozenset[str] = frozenset()


Spell = Callable[[Scope], str | None]
"""The code of one gradient in a scope; None where it has none there."""


class Paste(Protocol):
    """Repairs tried in the user's own text: nothing is offered that was not proved there."""

    def scope(self, case: FunctionCase) -> Scope | None:
        """What backward can name where it returns in a case, where that is known."""

    def parameters(self, case: FunctionCase) -> Mapping[str, str]:
        """What backward calls the cotangents, by their names."""

    def offer(
        self, case: FunctionCase, name: str, spell: Spell, modes: Mapping[str, str]
    ) -> str | None:
        """The code of the gradient of ``name`` if, pasted into backward, it is PROVED.

        ``modes``: those in which the wrong backward was judged.
        """

    def needs(self, name: str) -> list[str]:
        """What else has to be changed for the code that was offered last, in words."""
