"""One combination of candidates, and its price."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from symgrad.frontend.spec import TensorSpec
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType
from symgrad.shapes.candidates import Candidate, Unknown
from symgrad.shapes.outcomes import FAILING_PRICE
from symgrad.shapes.sizes import Places, Specs

ODD_PRICE = 2
NUMBER_PRICE = 2 * FAILING_PRICE
"""Of a number, or of integers, that get a gradient, or of numbers alone: more than that of a
backward that fails."""
NONE: frozenset[str] = frozenset()
T = TypeVar("T")


@dataclass(frozen=True)
class Trial:
    """One combination of candidates, with the sizes that forward made equal."""

    chosen: tuple[Candidate, ...]
    specs: Specs
    failing: int = 0
    raising: bool = False
    """Does backward raise?"""
    hidden: bool = False
    """Is there a number, or are there integers, that get a gradient, or integers alone?"""
    fits: bool = True
    """Does backward run, and has each gradient the shape of its argument?"""
    tried: frozenset[Places] = frozenset()
    """Where numbers stand for sizes, since Python needs some."""
    uneven: frozenset[Places] = frozenset()
    """Where multiples stand for sizes, since symgrad traces no others."""
    tied: bool = False
    """Are sizes one that forward may not need to be?"""
    single: bool = False
    """Has an index one element along an axis that the tensor does not have?"""
    summed: frozenset[str] = NONE
    """The tensors whose gradients are made of them and of sums over all axes."""

    @property
    def kinds(self) -> list[Candidate]:
        """What the arguments are, whatever their ranks."""
        return [replace(one, price=0, rank=None if one.rank is None else 0) for one in self.chosen]

    @property
    def guessed(self) -> list[bool]:
        """Which shapes nobody stated."""
        return [one.rank is not None for one in self.chosen]

    @property
    def price(self) -> int:
        """The less, the better: cheap candidates, free sizes, a backward that fits."""
        rows = list(zip(self.specs, self.guessed, strict=True))
        odd = sum(spec.oddities for spec, free in rows if spec is not None and free)
        odd += self.single + sum(
            len(dim.sizes) > 1 for spec, free in rows if spec is not None and free
            for dim in spec.dims
        )  # fmt: skip
        prices = sum(one.price for one in self.chosen) + ODD_PRICE * odd
        return prices + self.failing + NUMBER_PRICE * (self.hidden or not has_axes(self))


def has_axes(trial: Trial) -> bool:
    """Has any tensor of floats one?  What is right for numbers alone is no program for tensors."""
    return any(
        one.rank or (one.spec is not None and bool(one.spec.dims))
        for one in trial.chosen if is_float(one)
    )  # fmt: skip


def price_of(unknown: Unknown, rank: int, dtype: DType | None = None) -> int:
    """The price of a tensor of a rank, of floats or of another dtype."""
    prices = [one.price for one in unknown.candidates if (one.rank, one.dtype) == (rank, dtype)]
    return min(prices, default=max(one.price for one in unknown.candidates))


def oddities(trial: Trial) -> int:
    """How many sizes are numbers or multiples, or occur before."""
    return sum(spec.oddities for spec in trial.specs if spec is not None)


def axes_of(trial: Trial) -> int:
    """How many axes its tensors have together."""
    return sum(one.rank or 0 for one in trial.chosen)


def is_part(some: Sequence[Dim], dims: Iterable[Dim]) -> bool:
    """Are these among others, in this order?"""
    others = iter(dims)
    return all(one in others for one in some)


def put(row: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    """The row with another value at a place."""
    return (*row[:at], value, *row[at + 1 :])


def is_float(one: Candidate) -> bool:
    """Is it a tensor that may have a gradient?"""
    return one.is_tensor and one.dtype is None and not one.constant


def is_more_general(one: Trial, found: Trial) -> bool:
    """Has it tensors where numbers were found, or other sizes than 1, and nothing else?"""
    pairs = [
        (mine, its) for mine, its in zip(one.specs, found.specs, strict=False)
        if mine is not None and its is not None
    ]  # fmt: skip
    if one.kinds != found.kinds:
        return False
    more = [_ones(its) - _ones(mine) + (not its.dims and bool(mine.dims)) for mine, its in pairs]
    alike = all(not its.dims or len(mine.dims) == len(its.dims) for mine, its in pairs)
    return alike and min(more, default=0) >= 0 < max(more, default=0)


def is_sized(one: Trial, found: Trial) -> bool:
    """Has it any sizes where numbers greater than 1 were found, and else as many axes?"""
    pairs = list(zip(one.specs, found.specs, strict=False))
    if one.kinds != found.kinds or any((mine is None) is not (its is None) for mine, its in pairs):
        return False
    dims = [(mine.dims, its.dims) for mine, its in pairs if mine is not None and its is not None]
    if any(len(mine) != len(its) for mine, its in dims):
        return False
    fixed = [
        mine.constant is None for both in dims for mine, its in zip(*both, strict=True)
        if its.constant is not None and its.constant > 1
    ]  # fmt: skip
    return bool(fixed) and all(fixed)


def is_resized(one: Trial, other: Trial) -> bool:
    """Have both numbers for the same sizes, and else the same shapes?"""
    axes = [
        [None if dim.constant is not None else dim for spec in trial.specs if spec is not None
         for dim in spec.dims]
        for trial in (one, other)
    ]  # fmt: skip
    return one.tried == other.tried and axes[0] == axes[1]


def _ones(spec: TensorSpec) -> int:
    return sum(dim.constant == 1 for dim in spec.dims)
