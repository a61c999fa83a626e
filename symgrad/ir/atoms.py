"""What integer expressions are polynomials over: sizes, index variables, and what does not reduce.

In: names and the Dims inside quotients and indices.  Out: ``Atom`` and its kinds, and the products
of them that ``Dim`` is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from symgrad.ir.dim import Dim


class _Once(type):
    """Equal atoms are one object wherever they can be, so that they are quickly compared."""

    def __call__(cls, *parts: Any) -> Any:
        found = _atoms.get((cls, *parts))
        return (
            _atoms.setdefault((cls, *parts), super().__call__(*parts)) if found is None else found
        )


_atoms: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()


@dataclass(frozen=True)
class Atom(metaclass=_Once):
    """What a ``Dim`` is a polynomial over.  ``key`` orders atoms and never depends on identity."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Made anew of its parts: what was computed from them holds the atom itself."""
        return type(self), tuple(getattr(self, one.name) for one in fields(self))

    @property
    def key(self) -> str:
        """Text that is equal for equal atoms only; it orders them."""
        raise NotImplementedError

    def evaluate(self, lookup: Callable[[Atom], int]) -> int:
        """Its value, ``lookup`` giving those of sizes, axes and elements."""
        return lookup(self)

    @cached_property
    def atoms(self) -> frozenset[Atom]:
        """Itself and the atoms inside it."""
        return frozenset((self,))

    @property
    def least(self) -> int | None:
        """A lower bound that always holds, or None."""
        return None


@dataclass(frozen=True)
class Size(Atom):
    """A symbolic size, such as ``n``: an integer, at least 0."""

    name: str

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def key(self) -> str:
        """Text that is equal for equal atoms only; it orders them."""
        return self.name

    @property
    def least(self) -> int | None:
        """A lower bound that always holds, or None."""
        return 0

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Axis(Atom):
    """An index variable: ``0 <= name < extent``."""

    name: str
    extent: Dim

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.extent))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def key(self) -> str:
        """Text that is equal for equal atoms only; it orders them."""
        return f"~{self.name}<{self.extent}"

    @property
    def least(self) -> int | None:
        """A lower bound that always holds, or None."""
        return 0

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Element(Atom):
    """An element of an integer tensor: what a gather reads its index from.

    ``tensor`` names an input, or a node of the graph as ``"%<index>"``.
    """

    tensor: str
    indices: tuple[Dim, ...]

    @cached_property
    def _hash(self) -> int:
        return hash((self.tensor, self.indices))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def key(self) -> str:
        """Text that is equal for equal atoms only; it orders them."""
        return f"{self.tensor}[{';'.join(index.key for index in self.indices)}]"

    @cached_property
    def atoms(self) -> frozenset[Atom]:
        """Itself and the atoms inside it."""
        return frozenset((self,)).union(*(index.atoms for index in self.indices))

    def __str__(self) -> str:
        return f"{self.tensor}[{', '.join(map(str, self.indices))}]"


@dataclass(frozen=True)
class Derived(Atom):
    """A quotient, remainder, minimum or maximum that does not reduce to a polynomial."""

    function: str  # "floordiv" | "mod" | "min" | "max"
    left: Dim
    right: Dim

    @cached_property
    def _hash(self) -> int:
        return hash((self.function, self.left, self.right))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def key(self) -> str:
        """Text that is equal for equal atoms only; it orders them."""
        return f"{self.function}({self.left.key};{self.right.key})"

    def evaluate(self, lookup: Callable[[Atom], int]) -> int:
        """Its value, ``lookup`` giving those of sizes, axes and elements."""
        return _EVALUATE[self.function](self.left.evaluate(lookup), self.right.evaluate(lookup))

    @cached_property
    def atoms(self) -> frozenset[Atom]:
        """Itself and the atoms inside it."""
        return frozenset((self,)) | self.left.atoms | self.right.atoms

    @property
    def least(self) -> int | None:
        """A lower bound that always holds, or None."""
        lows = (self.left.least, self.right.least)
        if self.function == "mod":
            return 0 if lows[1] is not None and lows[1] > 0 else None
        if self.function == "floordiv":
            return 0 if all(low is not None and low >= 0 for low in lows) else None
        if self.function == "min":
            return None if None in lows else min(low for low in lows if low is not None)
        known = [low for low in lows if low is not None]
        return max(known) if known else None

    def __str__(self) -> str:
        if self.function in ("min", "max"):
            return f"{self.function}({self.left}, {self.right})"
        operator = {"floordiv": "//", "mod": "%"}[self.function]
        return f"({self.left.grouped}{operator}{self.right.grouped})"


Monomial = tuple[tuple[Atom, int], ...]
"""A product of powers of atoms, sorted by their keys."""


def term_key(term: tuple[Monomial, int]) -> tuple[int, list[tuple[str, int]]]:
    """What orders the terms of a polynomial: degree, then the atoms."""
    monomial, _ = term
    if len(monomial) == 1:
        ((atom, power),) = monomial
        return power, [(atom.key, power)]
    return sum([power for _, power in monomial]), [(atom.key, power) for atom, power in monomial]


def multiply(left: Monomial, right: Monomial) -> Monomial:
    """The product of two monomials."""
    if not left or not right:
        return left or right
    if len(left) == len(right) == 1:
        one, other = left[0][0].key, right[0][0].key
        if one != other:
            return left + right if one < other else right + left
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: item[0].key))


def divide(left: Monomial, right: Monomial) -> Monomial | None:
    """The quotient of two monomials, None where it is no monomial."""
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) - power
        if powers[atom] < 0:
            return None
    return tuple((atom, power) for atom, power in powers.items() if power)


_EVALUATE: dict[str, Callable[[int, int], int]] = {
    "floordiv": lambda left, right: left // right,
    "mod": lambda left, right: left % right,
    "min": min,
    "max": max,
}
