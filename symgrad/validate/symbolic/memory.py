"""What memory holds while a kernel runs: arrays, and what was written to them, for all sizes.

In: reads and writes at symbolic addresses.  Out: the value that a read meets, as an expression of
the inputs; or ``NotShown`` with the reason.

An address is a polynomial that counts elements from the start of an array.  A ``Write`` stands for
one write at each point of its axes.  What a loop's body wrote lies in a frame of its own until
the loop is summarised; what it read of memory from before the iteration stands in its values as an
access to ``before(array)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from symgrad.ir.dim import Atom, Axis, Dim, Size
from symgrad.ir.expr import Expr
from symgrad.validate.symbolic.integers import (
    Integers,
    coefficient,
    put,
    quotient,
    uppers,
    whole_part,
)


class NotShown(Exception):
    """Something could not be shown of a kernel; ``line`` of the C is added where it is known."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


class MaybeWritten(NotShown):
    """An element may have been written or not; which, ``end >= 0`` or ``end < 0`` may tell."""

    def __init__(self, reason: str, end: Dim) -> None:
        super().__init__(reason)
        self.end = end


@dataclass(frozen=True)
class Array:
    """What a pointer points into.

    ``count``: its elements; None for an input with strides, whose elements are those of ``shape``
    at ``strides``.
    """

    name: str
    ctype: str
    count: Dim | None
    shape: tuple[Dim, ...] = ()
    strides: tuple[Dim, ...] = ()
    read_only: bool = False
    given: bool = False

    def walks(self) -> Iterator[Iterable[tuple[Dim, Dim]]]:
        """Extents with strides, of as few axes as there can be, and of those that there are."""
        if self.shape:
            yield self.merged()
            whole = zip(self.shape, self.strides, strict=True)
            yield (pair for pair in whole if pair[0] != 1)

    def merged(self) -> Iterator[tuple[Dim, Dim]]:
        """Extents with strides; axes that lie in memory like one are one."""
        extent, step = Dim.of(1), Dim.of(1)
        for length, stride in reversed(list(zip(self.shape, self.strides, strict=True))):
            if length == 1:
                continue
            if extent == 1:
                extent, step = length, stride
            elif stride == extent * step:
                extent = extent * length
            else:
                yield extent, step
                extent, step = length, stride
        if extent != 1:
            yield extent, step


@dataclass(frozen=True)
class Write:
    """``array[address] = value`` for all values of ``axes``; None: what no one may read."""

    array: str
    axes: tuple[Axis, ...]
    address: Dim
    value: Expr | None
    line: int


def before(frame: int, array: str) -> str:
    """What an array held before the iteration that a frame stands for."""
    return f"before {frame} {array}"


def is_before(tensor: str) -> bool:
    """Is it what an array held before some iteration?"""
    return tensor.startswith("before ")


def owner_of(tensor: str) -> tuple[int, str]:
    """The frame and the array of ``before(frame, array)``; -1 and itself of any other."""
    if not is_before(tensor):
        return -1, tensor
    _, number, array = tensor.split(" ", 2)
    return int(number), array


@dataclass
class Frame:
    """What one iteration, or the function itself, has written so far.

    ``may_write``: all arrays that the loop's body can write.
    """

    writes: list[Write] = field(default_factory=list)
    local: set[str] = field(default_factory=set)
    may_write: frozenset[str] = frozenset()


def lies_within(integers: Integers, address: Dim, count: Dim) -> bool:
    """Is ``0 <= address < count``: as it is, or digit by digit?"""
    if integers.within(address, count):
        return True
    for step in _steps(address):
        rest = count.exact_quotient(step)
        if rest is None or rest == 1:
            continue
        digit = whole_part(address, step)
        if not lies_within(integers, address - digit * step, step):
            digit = digit + quotient(address - digit * step, step)
        inside = address - digit * step
        if lies_within(integers, inside, step) and lies_within(integers, digit, rest):
            return True
    return False


def _steps(address: Dim) -> Iterator[Dim]:
    """What digits of an address may be multiplied by, the widest first."""
    found = {
        tuple((atom, power) for atom, power in monomial if isinstance(atom, Size))
        for monomial, _ in address.terms
    }
    widest = sorted(found, key=lambda one: sum(power for _, power in one), reverse=True)
    return (Dim({one: 1}) for one in widest if one)


OUTSIDE = "outside"
Match = dict[Axis, Dim] | str | None
"""Where a write meets an address; OUTSIDE where it does not; None where that is not known."""


def strides(axes: Sequence[Axis], address: Dim) -> list[tuple[Axis, Dim]]:
    """Axes with what the address moves by in each, the widest first."""
    found = []
    for axis in axes:
        step = coefficient(address, axis)
        if step is None or not step.terms:
            raise NotShown(f"the address {address} is not linear in {axis}")
        found.append((axis, step))
    found.sort(key=lambda one: _width(one[1]), reverse=True)
    return found


def _ahead(step: Dim) -> Dim:
    """A step's length."""
    return -step if step.terms[-1][1] < 0 else step


def _width(step: Dim) -> tuple[int, int]:
    lead, value = step.terms[-1]
    return sum(power for _, power in lead), abs(value)


def injective(integers: Integers, axes: Sequence[Axis], address: Dim) -> bool:
    """Does each point of the axes have an address of its own?"""
    try:
        ordered = [(axis, _ahead(step)) for axis, step in strides(axes, address)]
    except NotShown:
        return False
    return all(
        _covers(integers, step, ordered[place + 1 :]) for place, (_, step) in enumerate(ordered)
    )


def _covers(integers: Integers, step: Dim, inner: Sequence[tuple[Axis, Dim]]) -> bool:
    """Is a step at least 1, and wider than all that the axes inside of it reach?

    The widest of these is itself wider than those in it.
    """
    if not inner:
        return integers.entails(step - 1)
    if _wider(integers, step, inner):
        return True
    (widest, width), *rest = inner
    ratio = step.exact_quotient(width)
    gaps = (
        step - width * upper if ratio is None else ratio - upper for upper in uppers(widest.extent)
    )
    return bool(rest) and any(map(integers.entails, gaps))


def _wider(integers: Integers, step: Dim, inner: Sequence[tuple[Axis, Dim]]) -> bool:
    """``step`` exceeds every difference of two points of the axes inside, where there are two."""
    total = Dim.of(0)
    for axis, width in inner:
        total = total + width * Dim.of(axis)
    return integers.entails(step - 1 - total)


def match(integers: Integers, write: Write, address: Dim) -> Match:
    """Where a write meets an address; each axis in the address has a value."""
    falling = {axis: axis.extent - 1 - Dim.of(axis) for axis in write.axes if _falls(axis, write)}
    ahead = replace(write, address=put(write.address, dict(falling.items())))
    with integers.given(*(fact for axis in address.axes for fact in integers.range_of(axis))):
        found = _match(integers, ahead, address)
    if isinstance(found, dict):
        return {**found, **{axis: axis.extent - 1 - found[axis] for axis in falling}}
    return found


def _falls(axis: Axis, write: Write) -> bool:
    """Does the address fall with it?"""
    step = coefficient(write.address, axis)
    falls = step is not None and bool(step.terms) and step.terms[-1][1] < 0
    return falls and axis.extent.atoms.isdisjoint(write.axes)


def _match(integers: Integers, write: Write, address: Dim) -> Match:
    base = put(write.address, {axis: Dim.of(0) for axis in write.axes})
    rest = address - base
    if not write.axes:
        if not rest.terms:
            return {}
        if integers.entails(rest - 1) or integers.entails(-rest - 1):
            return OUTSIDE
        return {} if integers.same(rest, Dim.of(0)) else None
    try:
        ordered = strides(write.axes, write.address)
    except NotShown:
        return None
    for digits in (_terms_digits, _quotient_digits):
        found = digits(integers, ordered, rest)
        if found is None:
            continue
        for made in _rows_apart(ordered, _carried(integers, ordered, found)):
            extents = _extents(write, made)
            if all(integers.within(value, extent) for value, extent in extents):
                return made
            if any(integers.outside(value, extent) for value, extent in extents) and _unique(
                integers, ordered, made
            ):
                return OUTSIDE
            if _beside(integers, ordered, *extents[write.axes.index(ordered[-1][0])]):
                return OUTSIDE
    return OUTSIDE if _apart(integers, write, address) else None


def open_end(integers: Integers, write: Write, address: Dim) -> Dim | None:
    """An end of an axis of a write that an address may lie before or behind."""
    base = put(write.address, {axis: Dim.of(0) for axis in write.axes})
    try:
        ordered = strides(write.axes, write.address)
    except NotShown:
        return None
    found = _terms_digits(integers, ordered, address - base) if ordered else None
    every = [
        [(made[axis], put(axis.extent, dict(made.items()))) for axis, _ in ordered]
        for made in (_rows_apart(ordered, found) if found else ())
    ]
    for places in sorted(every, key=lambda one: not all(integers.within(*o) for o in one[:-1])):
        if any(integers.outside(*one) for one in places):
            continue
        ends = (end for value, extent in places for end in (value, extent - 1 - value))
        if (end := next((one for one in ends if not _is_known(integers, one)), None)) is not None:
            return end
    return None


def _is_known(integers: Integers, end: Dim) -> bool:
    return integers.entails(end) or integers.entails(-end - 1)


def _rows_apart(
    ordered: Sequence[tuple[Axis, Dim]], digits: dict[Axis, Dim]
) -> Iterator[dict[Axis, Dim]]:
    """The digits, and those with one more, or one less, of the last row: the same address.

    Then those in which an axis counts places of the row, of which it fills a whole one.
    """
    if len(ordered) < 2 or (ratio := ordered[-2][1].exact_quotient(ordered[-1][1])) is None:
        yield digits
        return
    row, place = ordered[-2][0], ordered[-1][0]
    slopes = ((one, coefficient(digits[row], one)) for one in digits[row].axes)
    counts = (slope * Dim.of(one) for one, slope in slopes if slope is not None)
    for count in (Dim.of(0), *counts):
        for one in (0, -1, 1):
            more = count + one
            yield {**digits, row: digits[row] - more, place: digits[place] + more * ratio}


def _extents(write: Write, digits: Mapping[Axis, Dim]) -> list[tuple[Dim, Dim]]:
    """Each axis of a write as the digits have it, and how long it is there."""
    mapping: dict[Atom, Dim] = dict(digits.items())
    return [(digits[axis], put(axis.extent, mapping)) for axis in write.axes]


def _terms_digits(
    integers: Integers, ordered: Sequence[tuple[Axis, Dim]], rest: Dim
) -> dict[Axis, Dim] | None:
    """Each axis gets the terms that its stride divides."""
    found = {}
    for axis, step in ordered:
        digit = whole_part(rest, step)
        found[axis] = digit
        rest = rest - digit * step
    return found if not rest.terms or integers.same(rest, Dim.of(0)) else None


def _carried(
    integers: Integers, ordered: Sequence[tuple[Axis, Dim]], digits: dict[Axis, Dim]
) -> dict[Axis, Dim]:
    """With one more, or one less, of a step where the digit below it lies beyond its range."""
    for (upper, step), (lower, width) in pairwise(ordered):
        extent = lower.extent
        if step != extent * width or integers.within(digits[lower], extent):
            continue
        for sign in (1, -1):
            if integers.within(digits[lower] - sign * extent, extent):
                more = {upper: digits[upper] + sign, lower: digits[lower] - sign * extent}
                digits = {**digits, **more}
                break
    return digits


def _quotient_digits(
    integers: Integers, ordered: Sequence[tuple[Axis, Dim]], rest: Dim
) -> dict[Axis, Dim] | None:
    """A flat address: quotients and remainders."""
    if len(ordered) < 2 or ordered[-1][1] != 1:
        return None
    found = {}
    for place, (axis, step) in enumerate(ordered):
        if not integers.entails(step - 1):
            return None
        digit = whole_part(rest, step)
        if step != 1 and not integers.within(rest - digit * step, step):
            finer = [width for _, width in ordered[place + 1 :]]
            digit = digit + _divided(integers, rest - digit * step, step, finer)
        found[axis] = digit
        rest = rest - digit * step
    return found if not rest.terms else None


def _divided(integers: Integers, rest: Dim, step: Dim, finer: Sequence[Dim]) -> Dim:
    """``rest // step``, where both can be divided by a finer step first."""
    for width in finer:
        ratio = step.exact_quotient(width)
        whole = whole_part(rest, width)
        if ratio is not None and integers.within(rest - whole * width, width):
            return quotient(whole, ratio)
    return quotient(rest, step)


def _unique(
    integers: Integers, ordered: Sequence[tuple[Axis, Dim]], digits: Mapping[Axis, Dim]
) -> bool:
    """Can no other digits make the same address?

    Each but the first lies within the step above, or nearer than it to all that the write reaches.
    """
    for place, (_, step) in enumerate(ordered[:-1]):
        inner = ordered[place + 1 :]
        value = sum((digits[axis] * width for axis, width in inner), Dim.of(0))
        whole = integers.entails(value) and integers.entails(step - 1 - value)
        if not (whole and _wider(integers, step, inner)):
            (axis, width), *_ = inner
            ratio = step.exact_quotient(width)
            gap = digits[axis] - Dim.of(axis)
            if ratio is None or not digits[axis].atoms.isdisjoint(one for one, _ in ordered):
                return False
            if not (integers.entails(ratio - 1 - gap) and integers.entails(ratio - 1 + gap)):
                return False
    return integers.entails(ordered[-1][1] - 1)


def _beside(
    integers: Integers, ordered: Sequence[tuple[Axis, Dim]], value: Dim, extent: Dim
) -> bool:
    """Does no place of the innermost axis make the address, in this row or another?

    Steps from row to row are multiples of ``row``, and each place is nearer than that.
    """
    *outer, (axis, step) = ordered
    if not integers.outside(value, extent) or not integers.entails(step - 1):
        return False
    if not axis.extent.atoms.isdisjoint({one for one, _ in outer}):
        return False
    if not outer:
        return True
    row = outer[-1][1]
    return all(width.exact_quotient(row) is not None for _, width in outer) and all(
        integers.entails(row - 1 - far * step) for far in (value, extent - 1 - value)
    )


def _apart(integers: Integers, write: Write, address: Dim) -> bool:
    """Does the whole write lie before the address, or after it?"""
    return integers.entails(write.address - address - 1) or integers.entails(
        address - write.address - 1
    )


def renamed(write: Write, fresh: Mapping[Axis, Axis]) -> Write:
    """The write with other axes; its value is left to the caller."""
    mapping: dict[Atom, Dim] = {old: Dim.of(new) for old, new in fresh.items()}
    return replace(
        write,
        axes=tuple(fresh.get(axis, axis) for axis in write.axes),
        address=put(write.address, mapping),
    )
