"""Sizes that meet the conditions of a case: looked for on a grid, or shown not to exist.

In: names of sizes and conditions on them.  Out: choices of their values, small ones first; whether
there are none.

``n * n - 2 * m * m == 1 and n >= 90`` holds at 99 and 70, and at no small sizes.  In a case with
``n == m + 3`` the graph has no n any more, but other conditions may.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, product

import numpy as np

from symgrad.budgets import LARGEST_BOUND, SOUGHT_EXTENTS, SOUGHT_SIZES, TRIED_SIZES
from symgrad.ir.atoms import Atom, Derived, Size
from symgrad.ir.dim import Dim
from symgrad.ir.function import RELATIONS, SizeCondition

Values = tuple[int, ...]


def sought(symbols: Sequence[str], conditions: Sequence[SizeCondition]) -> Iterator[Values]:
    """Values of the sizes at which all conditions hold, those with the least sum first."""
    count = len(symbols)
    if not 0 < count <= len(SOUGHT_EXTENTS):
        return
    extent = SOUGHT_EXTENTS[count - 1]
    axes = np.meshgrid(*[np.arange(1, extent + 1)] * count, indexing="ij", sparse=True)
    grid = dict(zip(symbols, axes, strict=True))

    def lookup(atom: Atom) -> np.ndarray:
        if isinstance(atom, Size):
            return grid[atom.name]
        raise KeyError(str(atom))

    holds = np.ones((extent,) * count, dtype=bool)
    for condition in conditions:
        if {*condition.left.sizes, *condition.right.sizes} <= grid.keys():
            try:
                with np.errstate(all="ignore"):
                    left, right = (
                        side.evaluate(lookup)  # type: ignore[arg-type]
                        for side in (condition.left, condition.right)
                    )
            except (KeyError, ValueError, ZeroDivisionError):
                continue  # the one who takes the values asks again
            holds &= RELATIONS[condition.relation](left, right)
    places = np.argwhere(holds) + 1
    order = np.argsort(places.sum(axis=1), kind="stable")
    yield from (tuple(map(int, places[place])) for place in islice(order, SOUGHT_SIZES))


def completed(sizes: Mapping[str, int], conditions: Iterable[SizeCondition]) -> dict[str, int]:
    """These sizes, and those that conditions equate with expressions in them."""
    found, last = dict(sizes), -1
    while len(found) > last:
        last = len(found)
        for condition in conditions:
            for name, value in _equated(condition):
                if name not in found and {*value.sizes} <= found.keys():
                    with suppress(ZeroDivisionError):
                        found[name] = value.at(found)
    return found


def _equated(condition: SizeCondition) -> Iterator[tuple[str, Dim]]:
    """A size and what it is, for an equality with one size alone on a side."""
    sides = (condition.left, condition.right)
    for left, right in (sides, sides[::-1]):
        if condition.relation == "==" and isinstance(left.atom, Size):
            yield left.atom.name, right


def impossible(conditions: Sequence[SizeCondition]) -> bool:
    """Is it shown that no sizes meet all conditions?

    Sizes that a condition bounds, as ``(4 * m) // 8 <= 1`` bounds m, are tried one by one, with the
    conditions on them alone.
    """
    conditions = _substituted(conditions)
    if any(_never(one) for one in conditions):
        return True
    bounds: dict[str, int] = {}
    for condition in conditions:
        for value in _at_most_zero(condition):
            for name in value.sizes:
                most = _bound(value, name)
                if most is not None:
                    bounds[name] = min(most, bounds.get(name, most))
    names = sorted(bounds, key=lambda name: bounds[name])
    while names and math.prod(bounds[name] for name in names) > TRIED_SIZES:
        names.pop()
    known = [c for c in conditions if {*c.left.sizes, *c.right.sizes} <= {*names}]
    choices = product(*(range(1, bounds[name] + 1) for name in names))
    tried = (dict(zip(names, values, strict=True)) for values in choices)
    return bool(known) and not any(all(_may_hold(one, sizes) for one in known) for sizes in tried)


def _may_hold(condition: SizeCondition, sizes: Mapping[str, int]) -> bool:
    try:
        return condition.holds(sizes)
    except ZeroDivisionError:
        return True


def _never(condition: SizeCondition) -> bool:
    """Do the two sides differ by a number that contradicts it?"""
    difference = (condition.left - condition.right).constant
    return difference is not None and not RELATIONS[condition.relation](difference, 0)


def _substituted(conditions: Sequence[SizeCondition]) -> list[SizeCondition]:
    """The conditions in the sizes that are not equated with others; that these are at least 1."""
    found = list(conditions)
    for _ in conditions:
        equated = next((pair for one in found for pair in _equated(one)), None)
        if equated is None or equated[0] in equated[1].sizes:
            break
        name, value = equated
        found = [one.substitute({Size(name): value}) for one in found]
        found = [one for one in found if one.left != one.right or one.relation not in ("==", "<=")]
        found.append(SizeCondition(value, ">=", Dim.of(1)))
    return found


def _at_most_zero(condition: SizeCondition) -> Iterator[Dim]:
    """Growing expressions that are at most 0 where the condition holds."""
    difference = condition.left - condition.right
    found = {
        "<=": [difference], "<": [difference + 1], ">=": [-difference], ">": [-difference + 1],
        "==": [difference, -difference],
    }  # fmt: skip
    yield from filter(_grows, found.get(condition.relation, []))


def _grows(value: Dim) -> bool:
    """Does it not fall where a size grows?"""
    return all(
        factor > 0 and all(map(_atom_grows, (atom for atom, _ in monomial)))
        for monomial, factor in value.terms if monomial
    )  # fmt: skip


def _atom_grows(atom: Atom) -> bool:
    if isinstance(atom, Size):
        return True
    if not isinstance(atom, Derived) or not _grows(atom.left):
        return False
    if atom.function == "floordiv":
        return (atom.right.constant or 0) > 0 and (atom.left.least or 0) >= 0
    return atom.function in ("min", "max") and _grows(atom.right)


def _bound(value: Dim, name: str) -> int | None:
    """The greatest value of a size at which a growing expression is at most 0; None if not found.

    The other sizes are 1, where it is least.
    """
    sizes = dict.fromkeys(value.sizes, 1)

    def exceeds(size: int) -> bool:
        return value.at({**sizes, name: size}) > 0

    if not exceeds(LARGEST_BOUND):
        return None
    low, high = 0, LARGEST_BOUND
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if exceeds(middle) else (middle, high)
    return low
