"""What is known of sizes on one path through a wrapper.

In: equalities and relations that the text has checked.  Out: whether others follow from them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

from symgrad.ir.dim import Atom, Derived, Dim, Size
from symgrad.ir.function import RELATIONS
from symgrad.validate.wrappers.values import Axes, NotShown, Shape, Wrong

TRIALS = 40
"""Draws of sizes at which two expressions may differ."""


def relation(left: Dim, sign: str, right: Dim) -> tuple[str, Dim]:
    """``left sign right`` as ``== 0``, ``!= 0`` or ``<= 0`` of one polynomial."""
    if sign in (">", ">="):
        left, right, sign = right, left, {">": "<", ">=": "<="}[sign]
    difference = left - right
    if sign in ("==", "!="):
        if difference.terms and difference.terms[-1][1] < 0:
            difference = -difference
        return sign, difference
    return "<=", difference + 1 if sign == "<" else difference


class Facts:
    """Equalities, solved for sizes; other relations; axes that are the same.

    ``quotients``: sizes that are a quotient, rounded down: its dividend and divisor; ``natural``:
    those of them that are not negative.
    """

    def __init__(self) -> None:
        self._put: dict[Atom, Dim] = {}
        self._relations: set[tuple[str, Dim]] = set()
        self._quotients: dict[Size, tuple[Dim, Dim]] = {}
        self._natural: set[Atom] = set()
        self._axes: dict[Axes, Axes] = {}
        self.apart: set[tuple[Axes, int]] = set()

    def copy(self) -> Facts:
        """The same, to be added to."""
        new = Facts()
        new._put, new._relations = dict(self._put), set(self._relations)
        new._quotients, new._axes = dict(self._quotients), dict(self._axes)
        new._natural, new.apart = set(self._natural), set(self.apart)
        return new

    # -- what is there

    def of(self, dim: Dim) -> Dim:
        """An expression in the sizes that are left."""
        return dim.substitute(self._put)

    def axes(self, axes: Axes) -> Axes:
        """The axes that stand for all that are the same."""
        return self._axes.get(axes, axes)

    def shape(self, shape: Shape) -> Shape:
        """A shape in the sizes that are left."""
        return tuple(self.of(one) if isinstance(one, Dim) else self.axes(one) for one in shape)

    def quotient(self, dividend: Dim, divisor: Dim) -> Dim:
        """A quotient, rounded down: a size of its own where it does not reduce."""
        dividend, divisor = self.of(dividend), self.of(divisor)
        found = dividend // divisor
        if not any(isinstance(atom, Derived) for atom in found.atoms):
            return found
        size = Size(f"quotient {len(self._quotients)}")
        if self._never_negative(dividend) and divisor.at_least(1):
            self._natural.add(size)
        self._quotients[size] = (dividend, divisor)
        return Dim.of(size)

    # -- more

    def equate(self, left: Dim, right: Dim) -> None:
        """Both are the same number."""
        difference = self.of(left) - self.of(right)
        for monomial, value in difference.terms:
            if len(monomial) != 1 or monomial[0][1] != 1 or value not in (1, -1):
                continue
            atom = monomial[0][0]
            rest = Dim.of(atom) - difference * value
            if isinstance(atom, Size) and atom not in rest.atoms:
                self._solve(atom, rest)
                return
        self._relations.add(relation(difference, "==", Dim.of(0)))

    def _solve(self, atom: Size, value: Dim) -> None:
        new: dict[Atom, Dim] = {atom: value}
        self._put = {one: dim.substitute(new) for one, dim in self._put.items()} | new
        self._relations = {
            relation(dim.substitute(new), sign, Dim.of(0)) for sign, dim in self._relations
        }
        self._quotients = {
            one: (dividend.substitute(new), divisor.substitute(new))
            for one, (dividend, divisor) in self._quotients.items()
        }

    def relate(self, left: Dim, sign: str, right: Dim) -> None:
        """A relation holds."""
        if sign == "==":
            self.equate(left, right)
        self._relations.add(relation(self.of(left), sign, self.of(right)))

    def equate_axes(self, left: Axes, right: Axes) -> None:
        """Both are the same axes."""
        kept, other = self.axes(left), self.axes(right)
        if kept == other:
            return
        self._axes = {one: kept if to == other else to for one, to in self._axes.items()}
        self._axes[other] = kept
        self.equate(other.count, kept.count)

    def unify(self, left: Shape, right: Shape) -> bool:
        """Both are the same shape; False where they cannot be compared."""
        if len(left) != len(right):
            return False
        for one, other in zip(left, right, strict=True):
            if isinstance(one, Axes) and isinstance(other, Axes):
                self.equate_axes(one, other)
            elif isinstance(one, Dim) and isinstance(other, Dim):
                self.equate(one, other)
            else:
                return False
        return True

    # -- what follows

    def same(self, left: Dim, right: Dim) -> bool:
        """Are both the same number?"""
        found = relation(self.of(left), "==", self.of(right))
        return found[1] == 0 or found in self._relations

    def holds(self, left: Dim, sign: str, right: Dim) -> bool:
        """Does a relation hold?"""
        found, difference = relation(self.of(left), sign, self.of(right))
        if (found, difference) in self._relations:
            return True
        constant = difference.constant
        if constant is not None:
            return RELATIONS[found](constant, 0)
        return found == "<=" and self._never_negative(-difference)

    def _never_negative(self, dim: Dim) -> bool:
        """Sizes are not, nor quotients of what is not."""
        if not {Size(name) for name in dim.sizes} & self._quotients.keys() <= self._natural:
            return False
        return dim.at_least(0)

    # -- what does not

    def witness(self, left: Dim, right: Dim) -> str:
        """Sizes at which two expressions differ, as text; empty where none was found."""
        left, right = self.of(left), self.of(right)
        draw = random.Random(0)
        names = sorted({*left.sizes, *right.sizes})
        for _ in range(TRIALS):
            sizes = {name: draw.randrange(1, 9) for name in names}
            if self._agrees(sizes) and left.at(sizes) != right.at(sizes):
                told = ", ".join(f"{name} = {value}" for name, value in sizes.items())
                return f"{left.at(sizes)} and not {right.at(sizes)} for {told}"
        return ""

    def _agrees(self, sizes: Mapping[str, int]) -> bool:
        """May these be sizes, as far as relations among them say?"""
        if any(one.name in sizes for one in self._quotients):
            return False
        for sign, dim in self._relations:
            if set(dim.sizes) <= set(sizes) and not RELATIONS[sign](dim.at(sizes), 0):
                return False
        return True

    def require(self, left: Dim, right: Dim, what: str, line: int) -> None:
        """Raises Wrong or NotShown where ``left`` is not ``right``."""
        if self.same(left, right):
            return
        witness = self.witness(left, right)
        if witness:
            raise Wrong(f"{what} is {self.of(left)}, not {self.of(right)}: {witness}", line)
        raise NotShown(f"{what} is {self.of(left)}, and not shown to be {self.of(right)}", line)


def merged(facts: Facts, shape: Shape, dims: Sequence[Dim]) -> Iterator[tuple[Dim, Dim]]:
    """What has to be equal for an array of ``shape`` to have ``dims``, all axes ``Axes`` as one.

    Raises NotShown where the numbers of axes differ.
    """
    if not all(isinstance(one, (Dim, Axes)) for one in shape):
        raise NotShown("an array of another shape is passed")
    groups = [place for place, one in enumerate(shape) if isinstance(one, Axes)]
    if len(groups) > 1 or (not groups and len(shape) != len(dims)) or len(dims) < len(shape) - 1:
        raise NotShown(f"an array of {len(shape)} axes is passed for one of {len(dims)}")
    start = groups[0] if groups else len(shape)
    end = start + (len(dims) - len(shape) + 1 if groups else 0)
    plain = [one for one in shape if isinstance(one, Dim)]
    yield from zip(plain, (*dims[:start], *dims[end:]), strict=True)
    for one in groups:
        axes = shape[one]
        assert isinstance(axes, Axes)
        together = Dim.of(1)
        for dim in dims[start:end]:
            together = together * dim
        yield facts.axes(axes).count, together


def product(dims: Sequence[Dim]) -> Dim:
    """Of all of them."""
    found = Dim.of(1)
    for dim in dims:
        found = found * dim
    return found
