"""Examples: numbers that satisfy what is known, at which a question has the answer no.

In: facts, each a ``Dim`` that is at least 0, and a goal.  Out: is there an example, among a few,
where all facts hold and the goal does not?  Nothing rests on a no: it saves the search for a proof.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

from symgrad.ir.dim import Atom, Axis, Derived, Dim, Element, Size

FactsOf = Callable[[Atom], Iterable[Dim]]
"""What holds of an axis or an element whenever it is spoken of."""

_SIZES = (
    (1, 1), (2, 2), (3, 3), (1, 4), (1, 4), (2, 9), (5, 40), (5, 40), (60, 300), (60, 300),
    (4000, 9000), (4000, 9000), (1, 9000), (0, 0), (0, 3), (9000, 20000), (70000, 90000),
    (300000, 900000),
)  # fmt: skip
"""For each example, the range that sizes are drawn from."""


class Models:
    """A few examples, each drawn as far as it is asked for."""

    def __init__(self, facts_of: FactsOf) -> None:
        self._models = [_Model(seed, facts_of) for seed in range(2 * len(_SIZES))]
        self._fitting: dict[tuple[Dim, ...], tuple[_Model, ...]] = {}
        self._drawing = False

    def forget(self) -> None:
        """More is known of atoms than before."""
        for one in self._models:
            one.forget()
        self._fitting.clear()

    def disprove(self, goal: Dim, facts: tuple[Dim, ...]) -> bool:
        """Is there one where ``facts`` hold and ``goal`` is negative?"""
        return any((value := one.value(goal)) is not None and value < 0 for one in self._fit(facts))

    def _fit(self, facts: tuple[Dim, ...]) -> Sequence[_Model]:
        known = self._fitting.get(facts)
        if known is None:
            known = tuple(one for one in self._models if one.satisfies(facts))
            self._fitting[facts] = known
        return known


class _Model:
    """A number for each atom; None where what is known of one cannot hold."""

    def __init__(self, seed: int, facts_of: FactsOf) -> None:
        self._range = _SIZES[seed % len(_SIZES)]
        self._drawn = random.Random(seed)
        self._facts_of = facts_of
        self._atoms: dict[Atom, int | None] = {}
        self._dims: dict[Dim, int | None] = {}

    def forget(self) -> None:
        self._atoms.clear()
        self._dims.clear()

    def satisfies(self, facts: Iterable[Dim]) -> bool:
        """Do all of them hold?"""
        return all((value := self.value(one)) is not None and value >= 0 for one in facts)

    def value(self, dim: Dim) -> int | None:
        """What it is there."""
        if dim in self._dims:
            return self._dims[dim]
        total: int | None = 0
        for monomial, factor in dim.terms:
            for atom, power in monomial:
                number = self._number(atom)
                if number is None:
                    break
                factor *= number**power
            else:
                assert total is not None
                total += factor
                continue
            total = None
            break
        self._dims[dim] = total
        return total

    def _number(self, atom: Atom) -> int | None:
        if atom not in self._atoms:
            self._atoms[atom] = None  # what is known of it may speak of it
            self._atoms[atom] = self._first(atom)
        return self._atoms[atom]

    def _first(self, atom: Atom) -> int | None:
        """The first candidate that all facts of the atom admit."""
        if isinstance(atom, Derived):
            return self._derived(atom)
        known = None if isinstance(atom, Size) else list(self._facts_of(atom))
        for candidate in self._candidates(atom):
            if known is None or self._admits(atom, candidate, known):
                return candidate
        return None

    def _derived(self, atom: Derived) -> int | None:
        left, right = self.value(atom.left), self.value(atom.right)
        if left is None or right is None:
            return None
        if atom.function in ("min", "max"):
            return min(left, right) if atom.function == "min" else max(left, right)
        if right < 1:
            return None
        return left // right if atom.function == "floordiv" else left % right

    def _candidates(self, atom: Atom) -> Iterable[int]:
        if isinstance(atom, Size):
            yield self._drawn.randint(*self._range)
        elif isinstance(atom, Axis):
            extent = self.value(atom.extent)
            if extent is not None and extent > 0:
                yield self._drawn.choice((0, extent - 1, self._drawn.randrange(extent)))
                yield from (0, extent - 1)
        elif isinstance(atom, Element) and atom.tensor.startswith("#"):
            yield from self._pieces(atom)
        elif isinstance(atom, Element):
            yield self._drawn.choice((-(10**6), 10**6, 1))
            yield self._drawn.randint(*self._range)
            yield from (0, 1)

    def _pieces(self, atom: Element) -> Iterable[int]:
        """Named numbers: most of them count pieces of something."""
        numbers = [self.value(one) for one in atom.indices]
        if len(numbers) == 2 and None not in numbers:
            length, step = numbers
            assert length is not None
            if step is not None and step > 0:
                yield max(0, -(-length // step))
        else:
            yield self._drawn.choice((1, 2, 3, 5) if numbers else (10**6, 5000, 64, 8, 1))
        yield self._drawn.randint(*self._range)
        yield from (1, 0, 2)

    def _admits(self, atom: Atom, candidate: int, known: Iterable[Dim]) -> bool:
        """Try it; what was computed with it is forgotten where it fails."""
        kept = dict(self._atoms), dict(self._dims)
        self._atoms[atom] = candidate
        if self.satisfies(known):
            return True
        self._atoms, self._dims = kept
        return False
