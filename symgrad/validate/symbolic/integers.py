"""What is known of integers: sizes, loop variables, elements of index arrays.

In: facts, each a ``Dim`` that is at least 0.  Out: does another hold whenever they do?

An axis is an index variable with ``0 <= axis < extent``.  Its extent may be a minimum, which stands
for several bounds, and may be negative, which means that the range is empty.  Facts about
quotients, minima and elements of integer arrays are brought in where they occur.  What is
linear in products of atoms is decided by isl, over all integers; products of facts are added
where a product occurs, and variables that a bound grows or falls with are put at their ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any, TypeGuard

import islpy

from symgrad.ir.atoms import Monomial, divide, multiply
from symgrad.ir.dim import Atom, Axis, Derived, Dim, Element, Size
from symgrad.validate.symbolic.models import Models

Bounds = Callable[[tuple[Dim, ...]], Iterable[Dim]]
"""The facts of an element of an integer array, by its indices."""

_DEEPEST = 8
"""Variables that are put at their ends, one after the other."""
_MOST_FACTS = 60
TRIPS = "#trips"
"""How often a loop runs, by its length and its step."""


class Integers:
    """Facts that hold at a point of a program, and what follows from them."""

    def __init__(self) -> None:
        self._facts: list[Dim] = []
        self._gaps: list[Dim] = []
        self._inside = 0
        self._bounds: dict[str, list[Bounds]] = {}
        self._limits: dict[str, tuple[int, int]] = {}
        self._known: dict[tuple[Dim, tuple[Dim, ...], int], bool] = {}
        self._working: set[Dim] = set()
        self._circular = False
        self._of_axes: dict[Axis, tuple[Dim, ...]] = {}
        self._version = 0
        self._models = Models(self._known_of)

    # -- facts

    @contextmanager
    def given(self, *facts: Dim) -> Iterator[None]:
        """Within, these hold as well."""
        self._facts.extend(facts)
        self._inside += 1
        try:
            yield
        finally:
            del self._facts[len(self._facts) - len(facts) :]
            self._inside -= 1

    @contextmanager
    def anywhere(self) -> Iterator[None]:
        """Within, only what holds at every point of the program does."""
        kept, self._facts = self._facts, []
        self._inside += 1
        try:
            yield
        finally:
            self._facts = kept
            self._inside -= 1

    def add(self, *facts: Dim) -> None:
        """From here on, these hold as well, also where a ``given`` around this ends."""
        self._facts[:0] = facts
        self._sharpen()

    def differ(self, *gaps: Dim) -> None:
        """From here on, none of these is 0."""
        self._gaps += gaps
        self._sharpen()

    def _sharpen(self) -> None:
        """What is at least 0, and is not 0, is at least 1: by what holds for good."""
        for gap in [] if self._inside else self._gaps:
            for side in (gap, -gap):
                if self.entails(side):
                    self._gaps.remove(gap)
                    self.add(side - 1)
                    return

    def bound(self, tensor: str, bounds: Bounds) -> None:
        """What holds of each element of an integer array."""
        self._bounds.setdefault(tensor, []).append(bounds)
        self._grew()

    def limit(self, array: str, low: int, high: int) -> None:
        """The range of every element of an array, now and before."""
        self._limits[array] = low, high
        self._grew()

    def know(self, axis: Axis, *facts: Dim) -> None:
        """What holds for each value of an axis, besides its range."""
        self._of_axes[axis] = facts
        self._grew()

    def _grew(self) -> None:
        self._version += 1
        self._models.forget()

    def bound_of(self, atom: Element, *, without: Axis) -> Dim | None:
        """An extent that an element lies within, which does not depend on an axis."""
        value = Dim.of(atom)
        for fact in self.facts_of(atom):
            extent = fact + value + 1
            if without not in extent.axes and self.within(value, extent):
                return extent
        return None

    def has_facts(self, axis: Axis) -> bool:
        """Is more known of it than its range?"""
        return axis in self._of_axes

    def said_of(self, axis: Axis) -> tuple[Dim, ...]:
        """What was said of an axis besides its range."""
        return self._of_axes.get(axis, ())

    def range_of(self, axis: Axis) -> list[Dim]:
        """The facts of an axis."""
        value = Dim.of(axis)
        inside = (upper - 1 - value for upper in uppers(axis.extent))
        return [value, *inside, *self._of_axes.get(axis, ())]

    @property
    def contradictory(self) -> bool:
        """Can nothing satisfy all facts?"""
        return self.entails(Dim.of(-1))

    # -- questions

    def entails(self, goal: Dim) -> bool:
        """Is ``goal >= 0`` for all values of what stands in it, wherever the facts hold?"""
        if (constant := goal.constant) is not None and constant >= 0:
            return True
        key = (goal, tuple(self._facts), self._version)
        if key in self._known:
            return self._known[key]
        if self._is_said(goal):
            self._known[key] = True
            return True
        if self._models.disprove(goal, key[1]):
            self._known[key] = False
            return False
        if goal in self._working:  # it was asked on the way to itself
            self._circular = True
            return False
        outer, self._circular = self._circular, False
        self._working.add(goal)
        try:
            found = self._at_ends(goal, _DEEPEST)
        finally:
            self._working.discard(goal)
        if found or not self._working or not self._circular:
            self._known[key] = found
        self._circular = outer or (self._circular and bool(self._working))
        return found

    def _is_said(self, goal: Dim) -> bool:
        """Is it a fact, or more than one?"""
        own, number = _split(goal)
        return any(number >= other and own == rest for rest, other in map(_split, self._facts))

    def same(self, left: Dim, right: Dim) -> bool:
        """Are they equal wherever the facts hold?"""
        return left == right or (self.entails(left - right) and self.entails(right - left))

    def settled(self, dim: Dim) -> Dim:
        """It with the minima and quotients that the facts decide."""
        for atom in sorted(dim.atoms, key=lambda one: one.key):
            if isinstance(atom, Derived) or _is_named_number(atom):
                known = self._decided(atom)
                if known is not None:
                    return self.settled(put(dim, {atom: known}))
        return dim

    def _decided(self, atom: Derived | Element) -> Dim | None:
        if isinstance(atom, Element):
            return Dim.of(1) if self.same(Dim.of(atom), Dim.of(1)) else None
        left, right = atom.left, atom.right
        if atom.function == "mod":
            return left - right * quotient(left, right)
        if atom.function == "floordiv":
            if self.entails(1 - right) and self.entails(right - 1):
                return left
            near = (whole_part(left, right) + step for step in (0, -1, 1, -2))
            return next((one for one in near if self.within(left - one * right, right)), None)
        for side, other in ((left, right), (right, left)):
            if self.entails(other - side):
                return side
        return None

    def within(self, value: Dim, extent: Dim) -> bool:
        """Is ``0 <= value < extent``?"""
        return self.entails(value) and all(
            self.entails(upper - 1 - value) for upper in uppers(extent)
        )

    def outside(self, value: Dim, extent: Dim) -> bool:
        """Is ``value < 0``, or ``value >= extent``?"""
        return self.entails(-value - 1) or any(
            self.entails(value - upper) for upper in uppers(extent)
        )

    # -- how they are answered

    def _at_ends(self, goal: Dim, depth: int) -> bool:
        """Asked as it is, then with a variable at the end at which ``goal`` is least."""
        if (constant := goal.constant) is not None and constant >= 0:
            return True
        if self._is_sum_of_products(goal) or (constant is not None and self._is_denied()):
            return True
        for atom in _outermost(goal, 1):
            return all(
                self._at_ends(put(goal, {atom: side}), depth) for side in (atom.left, atom.right)
            )
        if self._linear(goal):
            return True
        shared = (goal - fact for fact in self._facts if _shares_product(goal, fact))
        for rest in (goal - max(0, dict(goal.terms).get((), 0)), *shared):
            shorter = _without_common_sizes(rest)
            if shorter is not rest and self._at_ends(shorter, depth):
                return True
        if depth == 0:
            return False
        for moved, slope in _slopes(goal):
            ends = self._ends(moved, slope)
            if ends:
                return any(self._at_ends(put(goal, {moved: end}), depth - 1) for end in ends)
        return False

    def _is_sum_of_products(self, goal: Dim) -> bool:
        """Is each term a product of what is never negative?"""
        return all(value >= 0 for _, value in goal.terms) and all(
            isinstance(atom, (Size, Axis)) or (goal.atom != atom and self.entails(Dim.of(atom)))
            for atom in goal.atoms
        )

    def _ends(self, atom: Axis | Element, slope: Dim) -> list[Dim]:
        """Where ``goal`` is least for ``atom``: any of these bounds it from below."""
        value = Dim.of(atom)
        for sign in (1, -1):
            if self.entails(slope if sign > 0 else -slope):
                facts = [one for one in self.facts_of(atom) if coefficient(one, atom) == sign]
                return [value - one if sign > 0 else value + one for one in facts]
        return []

    def _is_denied(self) -> bool:
        """Is a product of sizes said to be 0, each of which is at least 1?"""
        return any(
            _is_product_of_sizes(-fact) and all(self.entails(Dim.of(one) - 1) for one in fact.atoms)
            for fact in self._facts
        )

    def _linear(self, goal: Dim) -> bool:
        facts = self._all_facts([goal, *self._facts])
        facts += self._products_of_naturals([goal, *facts])
        if _is_product_of_sizes(goal + 1):
            sizes = [Dim.of(size) for size in goal.atoms]
            if len(sizes) > 1 or sizes[0] != goal + 1:
                return all(self.entails(size - 1) for size in sizes)
            if _empty([put(one, {size.atom: Dim.of(0)}) for size in sizes for one in facts]):
                return True
        nothing = {
            fact.terms[0][0][0][0]: Dim.of(0) for fact in self._facts
            if fact != 0 and isinstance((-fact).atom, Size)
        }  # fmt: skip
        if nothing:
            facts, goal = [put(one, nothing) for one in facts], put(goal, nothing)
        related = _related([*facts, -goal - 1], goal)
        if _empty(related) or _empty_by_cases(related):
            return True
        facts = _near(goal, facts, self.facts_of)
        needed = {one for dim in (goal, *facts) for one, _ in dim.terms if _degree(one) > 1}
        if not needed or len(facts) > _MOST_FACTS:
            return False
        sizes = [Dim.of(size) for size in goal.atoms if isinstance(size, Size)]
        facts += [size - 1 for size in sizes if self.entails(size - 1)]
        products, denial = [], -goal - 1
        own: list[Dim] = []
        for left, right in combinations_with_replacement([*facts, denial], 2):
            product = _product_over(left, right, needed)
            if product is not None:
                products.append(product)
                if right is denial:
                    own.append(product)
        for atom in goal.atoms:
            if (
                isinstance(atom, Derived)
                and atom.function == "floordiv"
                and self.entails(atom.right)
            ):
                own.append(denial * atom.right)
                products.append(own[-1])
        return bool(products) and _empty(_related([*facts, *products, denial], goal, *own))

    def _all_facts(self, roots: Sequence[Dim]) -> list[Dim]:
        """The facts, and those of every atom in them and in ``roots``."""
        found: dict[Dim, None] = dict.fromkeys(self._facts)
        todo, seen = list(roots), set[Atom]()
        while todo:
            for atom in todo.pop().atoms - seen:
                seen.add(atom)
                for fact in self.facts_of(atom):
                    if fact not in found and fact.constant is None:
                        found[fact] = None
                        todo.append(fact)
        return list(found)

    def _products_of_naturals(self, dims: Sequence[Dim]) -> list[Dim]:
        """Products in ``dims`` of what is never negative: nor are they."""
        found = {one for dim in dims for one, _ in dim.terms if _degree(one) > 1}
        return [Dim({one: 1}) for one in found if all(self.is_natural(atom) for atom, _ in one)]

    def is_natural(self, atom: Atom) -> bool:
        """Is it said that it is at least 0?"""
        value = Dim.of(atom)
        gaps = ((value - fact).constant for fact in self.facts_of(atom))
        return any(gap is not None and gap >= 0 for gap in gaps)

    def _known_of(self, atom: Atom) -> Iterable[Dim]:
        """What was said of an axis or an element."""
        if isinstance(atom, Axis):
            return self.range_of(atom)
        assert isinstance(atom, Element)
        value = Dim.of(atom)
        found = [one for each in self._bounds.get(atom.tensor, ()) for one in each(atom.indices)]
        low_high = self._limits.get(atom.tensor.split(" ")[-1])
        if low_high is not None:
            found += [value - low_high[0], low_high[1] - value]
        return found

    def facts_of(self, atom: Atom) -> Iterable[Dim]:
        """What holds of an atom by itself."""
        value = Dim.of(atom)
        if isinstance(atom, Size):
            return [value]
        if isinstance(atom, (Axis, Element)):
            return self._known_of(atom)
        assert isinstance(atom, Derived)
        left, right = atom.left, atom.right
        if atom.function == "min":
            return [left - value, right - value]
        if atom.function == "max":
            return [value - left, value - right]
        if not self.entails(right - 1):
            return []
        above = [value] if atom.function == "floordiv" and self.entails(left) else []
        extent = _extent(Dim.of(atom))
        if extent is not None:
            above.append(extent - 1 - value)
        elif atom.function == "floordiv":
            above += [extent - 1 - value for extent in self._even_ends(left, right)]
        if atom.function == "mod":
            quotient = Dim.of(Derived("floordiv", left, right))
            equal = left - quotient * right - value
            return [value, right - 1 - value, equal, -equal]
        return [*above, left - right * value, right * value + right - 1 - left]

    def _even_ends(self, value: Dim, step: Dim) -> Iterator[Dim]:
        """What ``value // step`` lies below: bounds of ``value`` that ``step`` divides."""
        own = (fact for axis in value.axes for fact in self.range_of(axis))
        for fact in (*self._facts, *own):
            if value.atoms <= fact.atoms:  # else what is left holds one of them
                found = (fact + value + 1).exact_quotient(step)
                if found is not None and found.atoms.isdisjoint(value.atoms):
                    yield found


def _split(dim: Dim) -> tuple[tuple[tuple[Monomial, int], ...], int]:
    """The terms with atoms, and the number."""
    if dim.terms and not dim.terms[0][0]:
        return dim.terms[1:], dim.terms[0][1]
    return dim.terms, 0


def _is_named_number(atom: Atom) -> TypeGuard[Element]:
    return isinstance(atom, Element) and atom.tensor.startswith("#")


def _extent(dim: Dim) -> Dim | None:
    """What an axis, or a quotient of one that comes out even, lies below."""
    atom = dim.atom
    if isinstance(atom, Axis):
        return atom.extent
    if isinstance(atom, Derived) and atom.function == "floordiv":
        inner = _extent(atom.left)
        return None if inner is None else inner.exact_quotient(atom.right)
    return None


def uppers(extent: Dim) -> tuple[Dim, ...]:
    """Bounds whose least is ``extent``: minima in it, one by one, the outermost first."""
    for atom in _outermost(extent, 1):
        times = dict(extent.terms)[(atom, 1),]
        rest = extent - times * Dim.of(atom)
        sides = (*uppers(rest + times * atom.left), *uppers(rest + times * atom.right))
        return tuple(dict.fromkeys(sides))
    for factor in extent.atoms:
        if isinstance(factor, Derived) and factor.function == "min" and _rises(extent, factor):
            ends = (put(extent, {factor: side}) for side in (factor.left, factor.right))
            return tuple(dict.fromkeys(upper for end in ends for upper in uppers(end)))
    return (extent,)


def _rises(dim: Dim, atom: Atom) -> bool:
    """Is it a sum of products, in which that is only multiplied by what is never negative?"""
    slope = coefficient(dim, atom)
    return slope is not None and all(
        value > 0 and all(isinstance(one, (Size, Axis)) for one, _ in monomial)
        for monomial, value in slope.terms
    )


def _outermost(dim: Dim, sign: int) -> list[Derived]:
    """The minima that are added, or subtracted, as they are; those that hold others first."""
    found = [
        monomial[0][0]
        for monomial, value in dim.terms
        if value * sign > 0 and len(monomial) == 1 and monomial[0][1] == 1
    ]
    minima = [one for one in found if isinstance(one, Derived) and one.function == "min"]
    return [
        one for one in minima if not any(one in other.atoms for other in minima if other is not one)
    ]


def least(left: Dim, right: Dim) -> Dim:
    """The lesser of two, written so that a number added to both is added to it."""
    gap = right - left
    if gap.constant is not None:
        return left if gap.constant >= 0 else right
    if gap.terms[-1][1] < 0:
        left, gap = right, -gap
    return left + Dim.of(Derived("min", Dim.of(0), gap))


def greatest(left: Dim, right: Dim) -> Dim:
    """The greater of two."""
    return -least(-left, -right)


def quotient(left: Dim, right: Dim) -> Dim:
    """``left // right``, for divisors above 0; divided only where it comes out even."""
    if left.constant is not None and right.constant:
        return Dim.of(left.constant // right.constant)
    exact = left.exact_quotient(right)
    if exact is not None:
        return exact
    whole = whole_part(left, right) if _is_product_of_sizes(right) else Dim.of(0)
    if whole.terms:
        return whole + quotient(left - whole * right, right)
    inner = left.atom
    if isinstance(inner, Derived) and inner.function == "floordiv":
        return quotient(inner.left, inner.right * right)
    return Dim.of(Derived("floordiv", left, right))


def whole_part(rest: Dim, step: Dim) -> Dim:
    """The part of the quotient ``rest / step`` that is a polynomial."""
    exact = rest.exact_quotient(step)
    if exact is not None:
        return exact
    total = Dim.of(0)
    lead, value = step.terms[-1]
    for _ in range(len(rest.terms)):
        for monomial, own in rest.terms:
            factor = divide(monomial, lead)
            if factor is not None and own % value == 0:
                part = Dim({factor: own // value})
                total, rest = total + part, rest - part * step
                break
        else:
            break
    return total


def put(dim: Dim, mapping: Mapping[Any, Dim]) -> Dim:
    """``dim`` with atoms replaced, all at once; quotients and minima are built as above."""
    return dim.replaced(mapping, _put)


def _put(atom: Atom, mapping: Mapping[Any, Dim]) -> Dim:
    if isinstance(atom, Element):
        return Dim.of(Element(atom.tensor, tuple(put(one, mapping) for one in atom.indices)))
    if isinstance(atom, Derived):
        return BUILD[atom.function](put(atom.left, mapping), put(atom.right, mapping))
    return Dim.of(atom)


BUILD: dict[str, Callable[[Dim, Dim], Dim]] = {
    "floordiv": quotient,
    "mod": lambda left, right: left - right * quotient(left, right),
    "min": least,
    "max": greatest,
}


def coefficient(dim: Dim, atom: Atom) -> Dim | None:
    """What ``atom`` is multiplied by where ``dim`` is linear in it, else None."""
    found: dict[tuple[tuple[Atom, int], ...], int] = {}
    for monomial, value in dim.terms:
        power, rest = 0, []
        for factor, exponent in monomial:
            if factor == atom:
                power = exponent
            elif atom in factor.atoms:
                return None
            else:
                rest.append((factor, exponent))
        if power > 1:
            return None
        if power:
            found[tuple(rest)] = value
    return Dim(found)


def _degree(monomial: tuple[tuple[Atom, int], ...]) -> int:
    return sum(power for _, power in monomial)


def _product_over(left: Dim, right: Dim, needed: Collection[Monomial]) -> Dim | None:
    """The product, where it holds some of these products of atoms, and no others."""
    terms: dict[Monomial, int] = {}
    for one, value in left.terms:
        for other, factor in right.terms:
            monomial = _multiplied(one, other)
            terms[monomial] = terms.get(monomial, 0) + value * factor
    found = [one for one, value in terms.items() if value and _degree(one) > 1]
    return Dim(terms) if found and all(one in needed for one in found) else None


_multiplied = lru_cache(maxsize=1 << 16)(multiply)


def _slopes(goal: Dim) -> list[tuple[Axis | Element, Dim]]:
    """The axes and elements that ``goal`` is linear in, those with the simplest factors first."""
    found: list[tuple[int, Axis | Element, Dim]] = []
    for atom in goal.atoms:
        if isinstance(atom, (Axis, Element)):
            slope = coefficient(goal, atom)
            if slope is not None and slope.terms:
                found.append((max(_degree(one) for one, _ in slope.terms), atom, slope))
    found.sort(key=lambda one: (one[0], one[1].key))
    # What others' bounds depend on is put at its end after them.
    inner = [one for one in found if not any(_bounds(other[1], one[1]) for other in found)]
    return [(atom, slope) for _, atom, slope in (inner or found)]


def _bounds(atom: Axis | Element, other: Axis | Element) -> bool:
    """Do the bounds of ``atom`` depend on ``other``?"""
    dims = [atom.extent] if isinstance(atom, Axis) else list(atom.indices)
    return any(other in dim.atoms for dim in dims)


def _near(goal: Dim, facts: Sequence[Dim], facts_of: Callable[[Atom], Iterable[Dim]]) -> list[Dim]:
    """The facts over what stands in a goal, and in the facts of that, and over sizes."""
    atoms = {atom for atom in goal.atoms if not isinstance(atom, Size)}
    for atom in list(atoms):
        for fact in facts_of(atom):
            atoms |= fact.atoms
    return [one for one in facts if all(isinstance(a, Size) or a in atoms for a in one.atoms)]


def _shares_product(goal: Dim, fact: Dim) -> bool:
    """Do both hold the same product of sizes, the goal one of a size and a minimum?"""
    bent = any(
        len(one) > 1 and any(isinstance(atom, Derived) for atom, _ in one) for one, _ in goal.terms
    )
    own = {one for one, _ in fact.terms if _degree(one) > 1}
    return bent and bool(own)


def _is_product_of_sizes(dim: Dim) -> bool:
    return (
        len(dim.terms) == 1
        and dim.terms[0][1] > 0
        and all(isinstance(atom, Size) for atom in dim.atoms)
    )


def _without_common_sizes(goal: Dim) -> Dim:
    """``goal`` divided by the sizes and axes that each of its terms holds.

    They are never negative: where what is left is not, their product with it is not.
    """
    if not goal.terms:
        return goal
    common: dict[Atom, int] = {
        atom: power for atom, power in goal.terms[0][0] if isinstance(atom, (Size, Axis))
    }
    for monomial, _ in goal.terms[1:]:
        powers = dict(monomial)
        common = {
            atom: min(power, powers[atom]) for atom, power in common.items() if atom in powers
        }
    if not common:
        return goal
    shorter = {}
    for monomial, value in goal.terms:
        left = ((atom, power - common.get(atom, 0)) for atom, power in monomial)
        shorter[tuple((atom, power) for atom, power in left if power)] = value
    return Dim(shorter)


def _related(constraints: Sequence[Dim], *seeds: Dim) -> list[Dim]:
    """Those that share a monomial with a seed, or with one that does."""
    monomials = {one for seed in seeds for one, _ in seed.terms if one}
    if not monomials:
        return list(constraints)
    taken: list[Dim] = []
    rest, grew = list(constraints), True
    while grew:
        grew = False
        for one in list(rest):
            own = {monomial for monomial, _ in one.terms if monomial}
            if not own or not own.isdisjoint(monomials):
                taken.append(one)
                rest.remove(one)
                monomials |= own
                grew = True
    return taken


def _empty_by_cases(constraints: Sequence[Dim]) -> bool:
    """Do no integers satisfy them, whichever side a minimum is that one of them bounds?"""
    for one in constraints:
        for atom in _outermost(one, -1):
            cases = (
                [*(put(one, {atom: side}) for one in constraints), other - side]
                for side, other in ((atom.left, atom.right), (atom.right, atom.left))
            )
            return all(_empty(case) or _empty_by_cases(case) for case in cases)
    return False


def _empty(constraints: Sequence[Dim]) -> bool:
    """Do no integers satisfy them all?  Each monomial counts as a variable of its own."""
    places: dict[Monomial, int] = {}
    return _unsatisfiable(
        tuple(
            tuple(
                (places.setdefault(one, len(places)) if one else _CONSTANT, value)
                for one, value in dim.terms
            )
            for dim in constraints
        )
    )


_CONSTANT = -1  # stands in the place of a variable


@lru_cache(maxsize=1 << 14)
def _unsatisfiable(rows: tuple[tuple[tuple[int, int], ...], ...]) -> bool:
    """Do no integers make the sum of each row, pairs of a variable and its factor, 0 or more?"""
    count = max((place for row in rows for place, _ in row), default=_CONSTANT) + 1
    space = islpy.Space.set_alloc(islpy.DEFAULT_CONTEXT, 0, count)
    local, found = islpy.LocalSpace.from_space(space), islpy.BasicSet.universe(space)
    for row in rows:
        own = islpy.Constraint.alloc_inequality(local)
        for place, value in row:
            factor = _value(value)
            if place == _CONSTANT:
                own = own.set_constant_val(factor)
            else:
                own = own.set_coefficient_val(islpy.dim_type.set, place, factor)
        found = found.add_constraint(own)
    return bool(found.is_empty())


@lru_cache(maxsize=1 << 10)
def _value(number: int) -> islpy.Val:
    return islpy.Val(str(number))  # of any length
