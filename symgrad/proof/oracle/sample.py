"""Points to evaluate a Function at, drawn inside its declared domain.

In: the nodes of a case, declared assumptions.  Out: ``Point`` records.

Every axis by itself goes over 1, 2, 3, 5; elements are rationals with prime denominators, so that
thresholds harvested from the literals are approached but never hit; some points are small, since
exponentials saturate; cotangents are as generic as the inputs.  How integer inputs are used says
which range they are drawn from.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np

from symgrad.budgets import KEPT_ELEMENTS, LEAST_SIZES, MOST_ELEMENTS, SOUGHT_ELEMENTS
from symgrad.ir.assume import Assumption
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType, bool_, int64
from symgrad.ir.function import SizeCondition
from symgrad.ir.graph import Node
from symgrad.ops.integers import ANY, Integers, Labels, at_all_sizes
from symgrad.ops.logic import COMPARISONS
from symgrad.ops.movement import bare
from symgrad.proof.oracle.sizes import completed, sought

_CARRIERS = frozenset(("expand", "reshape", "permute", "slice", "concat", "diagonal", "cast"))


@dataclass
class IntegerUse:
    """How one integer input is used.

    ``dtype``: whose range it keeps to.  ``extents``: the sizes that it indexes as it is, so that
    it must stay below them.  ``likely``: sizes that it indexes after a choice, or whose ramp it is
    compared with.  ``literals``: numbers it is compared with.  ``marked``: what it is where
    others are put for some numbers.  ``anywhere``: forward takes it where it is too large for a
    place as well, since it puts another number there.
    """

    dtype: DType = int64
    extents: list[Dim] = field(default_factory=list)
    likely: list[Dim] = field(default_factory=list)
    literals: list[int] = field(default_factory=list)
    marked: Labels | None = None
    anywhere: bool = False

    @property
    def bounds(self) -> list[Dim]:
        """The extents that may be taken for its range: the likely ones unless it has marks.

        An input that is compared with numbers, such as an index to be ignored, may well have
        values outside; so may one that forward clamps.
        """
        negative = any(number < 0 for number in self.literals)
        if self.extents or self.marked or self.anywhere or negative:
            return self.extents
        return self.likely

    def demand(self, labels: Labels) -> None:
        """Take what operations demand of it."""
        if labels.counted and not labels.marks:
            self.extents += [labels.size] if labels.size not in self.extents else []
        elif self.marked is None and (labels.marks or not self.bounds):
            self.marked = labels


def integer_uses(nodes: Iterable[Node], forward: Iterable[Node] = ()) -> dict[str, IntegerUse]:
    """The uses of every integer input, by name.

    ``nodes``: arguments first; ``forward``: those that forward evaluates.
    """
    order = list(nodes)
    direct: dict[Node, frozenset[str]] = {}
    chosen: dict[Node, frozenset[str]] = {}
    found: dict[str, IntegerUse] = {}
    for node in order:
        if not node.dtype.is_integer:
            continue
        if node.op == "input":
            name = node.attributes["name"]
            direct[node] = chosen[node] = frozenset((name,))
            found[name] = IntegerUse(node.dtype)
        if node.op in _CARRIERS:
            direct[node] = _union(direct, node.args)
        if node.op in _CARRIERS or node.op in _CHOICES:
            chosen[node] = _union(chosen, node.args)
    for node in order:
        for name, extent in _indexed(node, direct):
            found[name].extents.append(extent)
        for name, extent in _indexed(node, chosen):
            found[name].likely.append(extent)
        if node.op in COMPARISONS:
            _compared(node, chosen, found)
    for name in _clamped(order, forward, direct):
        found[name].anywhere = True
    return found


def _clamped(
    order: Iterable[Node], forward: Iterable[Node], direct: dict[Node, frozenset[str]]
) -> Iterator[str]:
    """The integer inputs of which something is computed that is no larger than a place can be."""
    computed: dict[Node, frozenset[str]] = {}
    for node in order:
        if node.dtype.is_integer:
            computed[node] = direct.get(node) or _union(computed, node.args)
    ends = Integers(at_all_sizes, lambda name: ANY)
    for node in forward:
        for place, extent in _places(node):
            names = () if direct.get(place) else computed.get(place, ())
            yield from names if names and ends.below(place, extent) else ()


_CHOICES = frozenset(("where", "maximum", "minimum", "mod", "mul"))


def _union(sources: dict[Node, frozenset[str]], args: Iterable[Node]) -> frozenset[str]:
    return frozenset[str]().union(*(sources.get(arg, frozenset()) for arg in args))


def _indexed(node: Node, sources: dict[Node, frozenset[str]]) -> list[tuple[str, Dim]]:
    """The integer inputs that ``node`` reads as indices, each with the extent it indexes."""
    return [
        (name, extent)
        for place, extent in _indices(node)
        for name in sorted(sources.get(place, ()))
    ]


def _indices(node: Node) -> list[tuple[Node, Dim]]:
    """What ``node`` reads as indices, with the extents that they index."""
    if node.op == "index":
        shape = node.args[0].shape
    elif node.op == "index_add":
        shape = tuple(Dim.of(size) for size in node.attributes["shape"])
    else:
        return []
    return [(place, shape[axis]) for axis, place in enumerate(node.args[1:])]


def _places(node: Node) -> list[tuple[Node, Dim]]:
    """What ``node`` reads as indices, or compares with all places of an axis; with the extents."""
    if node.op not in COMPARISONS:
        return _indices(node)
    return [
        (bare(this), Dim.of(bare(other).attributes["length"]))
        for this, other in (node.args, node.args[::-1])
        if bare(other).op == "iota"
    ]


def _compared(
    node: Node, sources: dict[Node, frozenset[str]], found: dict[str, IntegerUse]
) -> None:
    for this, other in (node.args, node.args[::-1]):
        for name in sorted(sources.get(this, ())):
            origin = bare(other)
            if origin.op == "iota":
                found[name].likely.append(Dim.of(origin.attributes["length"]))
            elif origin.op == "constant":
                found[name].literals.append(int(origin.attributes["value"].value))


# -- points


Array = np.ndarray[Any, Any]

DENOMINATOR = 997 * 3989 * 10**6
"""Of every sampled real; numerators fit an int64 up to values of two million."""

MODES = ("real", "positive", "unit", "small", "above", "definite", "negative")
_GENERIC = (3, 2, 5, 4)
_RANDOM = (1, 2, 3, 4, 5, 7)
_TRUE = (1 / 2, 1 / 4, 3 / 4, 1 / 8, 7 / 8, 1 / 16, 15 / 16, 1 / 32)
FARTHEST = 10**6
"""Ends of intervals beyond it are never met by a sample."""
_LARGEST = Fraction(2**62, DENOMINATOR)


class Unsatisfiable(Exception):
    """A declared assumption cannot hold at these sizes."""


@dataclass(frozen=True)
class Point:
    """Sizes and input values.  Reals are ``numerators / DENOMINATOR``."""

    sizes: Mapping[str, int]
    numerators: Mapping[str, Array]
    integers: Mapping[str, Array]

    def doubles(self) -> dict[str, Array]:
        """The inputs for double arithmetic."""
        reals = {name: array / DENOMINATOR for name, array in self.numerators.items()}
        return reals | dict(self.integers)

    def precise(self) -> dict[str, Array]:
        """The inputs as 60-digit numbers."""
        reals = {name: _precise(array) for name, array in self.numerators.items()}
        return reals | dict(self.integers)

    def fractions(self, name: str) -> list[Fraction]:
        """The elements of a real input, flat."""
        return [Fraction(int(n), DENOMINATOR) for n in self.numerators[name].ravel()]


def _precise(numerators: Array) -> Array:
    result = np.empty(numerators.shape, dtype=object)
    result[...] = np.frompyfunc(lambda n: mpmath.mpf(int(n)) / DENOMINATOR, 1, 1)(numerators)
    return result


@dataclass(frozen=True)
class Style:
    """How reals are drawn: a mode for each input, a magnitude, and how often a threshold.

    ``sparse``: half of the elements of the cotangents are 0, as after a mask or a slice: a
    gradient is linear in them, so that 0 is no corner of theirs.  ``true``: how often a truth
    value is true.
    """

    modes: Mapping[str, str]
    scale: Fraction = Fraction(1)
    thresholds: float = 0.35
    repeated: bool = True
    sparse: bool = False
    true: float = 0.5


class Sampler:
    """Draws points for one case; the same ones in every run.

    ``like``: a sampler of the same nodes.
    """

    def __init__(
        self,
        inputs: Sequence[Node],
        nodes: Sequence[Node],
        conditions: Sequence[SizeCondition] = (),
        assumptions: Iterable[Assumption] = (),
        cotangents: Iterable[Node] = (),
        like: Sampler | None = None,
        forward: Sequence[Node] = (),
    ) -> None:
        self.inputs = tuple(inputs)
        self.cotangents = frozenset(n.attributes["name"] for n in cotangents if n.op == "input")
        self.conditions = tuple(conditions)
        self.assumptions: dict[str, list[Assumption]] = {}
        for assumption in assumptions:
            self.assumptions.setdefault(assumption.name, []).append(assumption)
        self.uses: dict[str, IntegerUse] = (
            integer_uses(nodes, forward) if like is None else like.uses
        )
        self.literals: Array | None = _thresholds(nodes) if like is None else like.literals
        self.shapes: list[Dim] = (
            list(dict.fromkeys(size for node in nodes for size in node.shape))
            if like is None else like.shapes
        )  # fmt: skip
        self.symbols = _symbols(self.shapes, self.assumptions)
        self.modes = {node.attributes["name"]: "real" for node in self.inputs}
        self._only_reals = not self.assumptions and all(n.dtype.is_float for n in self.inputs)
        self.most = MOST_ELEMENTS
        """Elements of all inputs of a point together."""
        self.solved: dict[Hashable, tuple[list[Point], Iterator[Point]]] = {}
        """Points of null sets (``thresholds``), and what finds more of them."""
        self.ascending: frozenset[str] = frozenset()
        """Reals whose elements are in ascending order along their last axis."""
        self.admitted: Callable[[Node, Sequence[int], Mapping[str, int]], list[int]] | None = None
        """Which values of an integer input meet what is demanded of it; None for all."""
        self._met: dict[tuple[Hashable, ...], tuple[list[int], list[int]]] = {}
        self.may_be_empty = False
        """May inputs have no element?  One has; the conditions allow nothing else."""
        self._candidates: tuple[tuple[int, ...], ...] | None = None
        self._tried = 0
        self._chosen: dict[tuple[int, ...], dict[str, int]] = {}

    # -- sizes

    def size_choices(self) -> Iterator[dict[str, int]]:
        """Sizes to try, generic ones first, then each axis by itself over 1, 2, 3, 5."""
        number = 0
        while number < len(self._chosen) or self._choose():
            yield dict(next(itertools.islice(self._chosen.values(), number, None)))
            number += 1

    def _choose(self) -> bool:
        """Take the next sizes that are allowed; False where there are no more."""
        if self._candidates is None:
            self._candidates = (*self._planned(), *_random_sizes(len(self.symbols)))
        while self._tried < len(self._candidates):
            values = self._candidates[self._tried]
            self._tried += 1
            sizes = dict(zip(self.symbols, values, strict=True))
            if values not in self._chosen and self.allows(sizes):
                self._chosen[values] = sizes
                return True
        if self._chosen or self.may_be_empty:
            return False
        if self.most > MOST_ELEMENTS:  # none of them all
            self.may_be_empty, self._tried = True, 0
        else:
            self.most = SOUGHT_ELEMENTS
            self._candidates = (*self._candidates, *sought(self.symbols, self.conditions))
        return self._choose()

    def small_choices(self, limit: int = 60) -> list[dict[str, int]]:
        """Sizes in order of how many elements they make, for the smallest counterexample.

        Where the case's conditions allow none of 1, 2 and 3, those that they speak of are the
        least that meet them.
        """
        found = _small_sizes(len(self.symbols))
        choices = (dict(zip(self.symbols, values, strict=True)) for values in found)
        allowed = list(itertools.islice(filter(self.allows, choices), limit))
        return allowed or list(itertools.islice(filter(self.allows, self._least_choices()), limit))

    def _least_choices(self) -> list[dict[str, int]]:
        """The least sizes that meet the conditions, with 1, 2 and 3 for those in none."""
        spoken = {name for c in self.conditions for name in (*c.left.sizes, *c.right.sizes)}
        bound = [name for name in self.symbols if name in spoken]
        free = [name for name in self.symbols if name not in spoken]
        places = list(itertools.product(range(LEAST_SIZES), repeat=2))
        least = list(itertools.islice(sought(bound, self.conditions), LEAST_SIZES))
        others = _small_sizes(len(free))
        return [
            dict(zip((*bound, *free), (*least[i], *others[j]), strict=True))
            for i, j in sorted(places, key=lambda place: (sum(place), place))
            if i < len(least) and j < len(others)
        ]

    def _planned(self) -> Iterator[tuple[int, ...]]:
        count = len(self.symbols)
        generic = tuple(_GENERIC[i % 4] for i in range(count))
        yield generic
        yield tuple((2, 3)[i % 2] for i in range(count))
        for i in range(count):
            yield (*generic[:i], 1, *generic[i + 1 :])
        yield (1,) * count
        yield (2,) * count
        for i in range(count):
            for value in (2, 3, 5, 4):
                yield (*generic[:i], value, *generic[i + 1 :])
        for i, value in itertools.product(range(count), self._named_sizes()):
            yield (*generic[:i], value, *generic[i + 1 :])
        for value in (3, 4, 6, 8):
            yield (value,) * count

    def _named_sizes(self) -> list[int]:
        """Sizes around the numbers that the case's conditions compare sizes with."""
        around = {number for condition in self.conditions for number in condition.numbers}
        return sorted(n for n in around if 8 < n <= MOST_ELEMENTS)

    def allows(self, sizes: Mapping[str, int]) -> bool:
        """Do the sizes meet the case's conditions, and is no shape negative or huge?"""
        known = completed(sizes, self.conditions)
        for condition in self.conditions:
            if not {*condition.left.sizes, *condition.right.sizes} <= known.keys():
                continue
            if not condition.holds(known):
                return False
        try:
            if not self._room_for_unique(sizes):
                return False
            if any(size.at(sizes) < 0 for size in self.shapes):
                return False
            elements = [math.prod(size.at(sizes) for size in n.shape) for n in self.inputs]
        except (ZeroDivisionError, KeyError):
            return False
        least = 0 if self.may_be_empty and any(elements) else 1
        return all(least <= count <= self.most for count in elements)

    def nowhere(self) -> str:
        """What was looked for in vain, where there are no sizes to choose."""
        wanted = " and ".join(map(str, self.conditions))
        met = f"meet {wanted}" if wanted else "fit all shapes"
        return f"no sizes with at most {self.most} elements of inputs were found that {met}"

    def _room_for_unique(self, sizes: Mapping[str, int]) -> bool:
        """Are there enough values for the integer inputs declared to have none twice?"""
        for node in self.inputs:
            name = node.attributes["name"]
            if any(known.kind == "unique" for known in self.assumptions.get(name, ())):
                count = math.prod(size.at(sizes) for size in node.shape)
                if count > self._bound(name, sizes):
                    return False
        return True

    def _bound(self, name: str, sizes: Mapping[str, int]) -> int:
        """How many values an integer input can take."""
        use = self.uses.get(name, IntegerUse())
        extents = [*use.extents, *use.likely]
        extents += [a.extent for a in self.assumptions.get(name, ()) if a.extent is not None]
        found = min((extent.at(sizes) for extent in extents), default=4)
        return min(found, use.dtype.greatest + 1)

    # -- values

    def style(self, number: int, attempt: int = 0) -> Style:
        """How the point of this number is drawn; masks are fuller and emptier at each attempt."""
        scale = (Fraction(1), Fraction(1, 8), Fraction(1), Fraction(3))[number % 4]
        thresholds = (0.0, 0.5, 0.35, 0.7)[number % 4] if self.literals is not None else 0.0
        sparse = number % 5 == 3
        repeated, true = number % 3 != 1, _TRUE[attempt % len(_TRUE)]
        return Style(dict(self.modes), scale, thresholds, repeated, sparse, true)

    def point(self, sizes: Mapping[str, int], seed: int, style: Style | None = None) -> Point:
        """A point of these sizes."""
        style = style or self.style(seed)
        shapes = [tuple([size.at(sizes) for size in node.shape]) for node in self.inputs]
        start = (seed, *sizes.values())
        if self._only_reals:
            wanted = [self._draws(n.attributes["name"], style) for n in self.inputs]
            drawn = _kept_draws(start, tuple(zip(shapes, wanted, strict=True)))
            names = [node.attributes["name"] for node in self.inputs]
            reals = [
                self._reals(name, draws, style) for name, draws in zip(names, drawn, strict=True)
            ]
            return self.in_order(Point(dict(sizes), dict(zip(names, reals, strict=True)), {}))
        random = np.random.default_rng(start)
        numerators: dict[str, Array] = {}
        integers: dict[str, Array] = {}
        for node, shape in zip(self.inputs, shapes, strict=True):
            name = node.attributes["name"]
            if node.dtype.is_float:
                draws = _draw(random, shape, *self._draws(name, style))
                numerators[name] = self._declared(random, name, self._reals(name, draws, style))
            elif node.dtype == bool_:
                integers[name] = _truths(random, shape, style.true)
            else:
                integers[name] = self._integers(random, node, shape, sizes, style)
        return self.in_order(Point(dict(sizes), numerators, integers))

    def in_order(self, point: Point) -> Point:
        """The point with those elements in order that are to ascend."""
        values = point.numerators
        sorted_ones = {name: np.sort(values[name], axis=-1) for name in self.ascending & {*values}}
        return Point(point.sizes, {**values, **sorted_ones}, point.integers)

    def _draws(self, name: str, style: Style) -> tuple[int, bool]:
        """What is drawn for a real: a literal among so many, whether it is 0."""
        near = style.modes[name] == "real" and style.thresholds
        literals = len(self.literals) if near and self.literals is not None else 0
        return literals, style.sparse and name in self.cotangents

    def _reals(self, name: str, draws: Draws, style: Style) -> Array:
        values = draws.values * style.scale.numerator // style.scale.denominator
        if draws.literal is not None and self.literals is not None:
            chosen = draws.near < style.thresholds
            values = np.where(chosen, self.literals[draws.literal] + values // 7, values)
        values = _in_mode(values, style.modes[name])
        return values if draws.kept is None else np.where(draws.kept, values, 0)

    def _declared(self, random: Any, name: str, values: Array) -> Array:
        for assumption in self.assumptions.get(name, ()):
            values = impose(assumption, values, random)
        return values

    def _integers(
        self, random: Any, node: Node, shape: tuple[int, ...], sizes: Mapping[str, int],
        style: Style,
    ) -> Array:  # fmt: skip
        name = node.attributes["name"]
        use = self.uses.get(name, IntegerUse())
        declared = self.assumptions.get(name, ())
        bound = self._bound(name, sizes)
        special = [*use.literals, *((-1, bound, bound + 1) if use.anywhere else ())]
        special = [number for number in special if use.dtype.holds_number(number)]
        usual, special = self._meeting(node, sizes, max(bound, 1), special)
        values = np.asarray(usual)[random.integers(0, len(usual), shape)]
        unique = any(assumption.kind == "unique" for assumption in declared)
        if unique or not style.repeated:
            count = math.prod(shape)
            if count <= len(usual):
                values = random.permutation(usual)[:count].reshape(shape)
            elif unique:
                raise Unsatisfiable(f"{count} different values below {bound} for {name}")
        if use.dtype.wraps:  # where arithmetic may leave the range
            low, high = use.dtype.least, use.dtype.greatest
            special += [low, high, *random.integers(low, high + 1, 2).tolist()]
        if special and not use.extents:
            chosen = random.random(shape) < 0.3
            values = np.where(chosen, random.choice(special, shape), values)
        return np.asarray(values, dtype=np.int64)

    def _meeting(
        self, node: Node, sizes: Mapping[str, int], bound: int, special: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """The places that meet what is demanded, all if none does, and such special values."""
        places = list(range(bound))
        if self.admitted is None:
            return places, list(special)
        key = node, *sizes.items()
        if key not in self._met:
            self._met[key] = (
                self.admitted(node, places, sizes) or places,
                self.admitted(node, special, sizes),
            )  # fmt: skip
        return self._met[key]


@dataclass(frozen=True)
class Draws:
    """What is random about a real input: numerators, and which are at a literal or 0.

    ``literal``: the place of the literal; ``near``: it is taken where this is below the share.
    """

    values: Array
    literal: Array | None
    near: Array
    kept: Array | None


def _truths(random: Any, shape: tuple[int, ...], share: float) -> Array:
    if share == 0.5:
        return np.asarray(random.integers(0, 2, shape).astype(bool))
    return np.asarray(random.random(shape) < share)


def _draw(random: Any, shape: tuple[int, ...], literals: int, sparse: bool) -> Draws:
    units = np.where(random.random(shape) < 0.5, DENOMINATOR // 997, DENOMINATOR // 3989)
    values = random.integers(1, 3900, shape) * units * np.where(random.random(shape) < 0.5, -1, 1)
    literal = random.integers(0, literals, shape) if literals else None
    near = random.random(shape) if literals else units
    kept = ~(random.random(shape) < 0.5) if sparse else None
    return Draws(values, literal, near, kept)


Wanted = tuple[tuple[tuple[int, ...], tuple[int, bool]], ...]


def _kept_draws(start: tuple[int, ...], wanted: Wanted) -> tuple[Draws, ...]:
    """The draws for several inputs; those of few elements are kept for other cases."""
    elements = sum(math.prod(shape) for shape, _ in wanted)
    return _few_draws(start, wanted) if elements <= KEPT_ELEMENTS else _all_draws(start, wanted)


def _all_draws(start: tuple[int, ...], wanted: Wanted) -> tuple[Draws, ...]:
    random = np.random.default_rng(start)
    return tuple(_draw(random, shape, *rest) for shape, rest in wanted)


_few_draws = lru_cache(maxsize=2048)(_all_draws)


@lru_cache(maxsize=16)
def _small_sizes(count: int) -> tuple[tuple[int, ...], ...]:
    ranges = itertools.product((1, 2, 3), repeat=count)
    found = list(itertools.islice(ranges, 2000))
    found.sort(key=lambda values: (math.prod(values), sum(values), values))
    return tuple(found)


@lru_cache(maxsize=16)
def _random_sizes(count: int) -> tuple[tuple[int, ...], ...]:
    rows = np.random.default_rng(7).integers(0, len(_RANDOM), (400, count)).tolist()
    return tuple(tuple(_RANDOM[place] for place in row) for row in rows)


def impose(assumption: Assumption, values: Array, random: Any) -> Array:
    """``values`` (numerators) moved so that a declared assumption holds."""
    kind = assumption.kind
    if kind in ("positive", "nonnegative"):
        return np.asarray(np.abs(values))
    if kind == "negative":
        return np.asarray(-np.abs(values))
    if kind == "interval":
        return _between(assumption, values)
    if kind == "binary":
        return np.asarray((random.random(values.shape) < 0.5) * DENOMINATOR)
    if kind == "symmetric":
        return np.asarray(np.tril(values) + np.swapaxes(np.tril(values, -1), -1, -2))
    if kind == "one-hot":
        hot = random.integers(0, values.shape[-1], values.shape[:-1])
        return np.asarray((np.arange(values.shape[-1]) == hot[..., None]) * DENOMINATOR)
    return values


def meets(assumption: Assumption, numerators: Array) -> bool:
    """Does a declared bound hold for all elements?  Ends of intervals are left out."""
    return bool(np.all(within(assumption, numerators)))


def within(assumption: Assumption, numerators: Array) -> Array:
    """For which elements a declared bound holds.  Ends of intervals are left out."""
    if assumption.kind in _SIGNS:
        return np.asarray(_SIGNS[assumption.kind](numerators, 0))
    found = np.ones(np.shape(numerators), dtype=bool)
    if assumption.low is not None:
        found &= np.asarray(numerators > assumption.low * DENOMINATOR, dtype=bool)
    if assumption.high is not None:
        found &= np.asarray(numerators < assumption.high * DENOMINATOR, dtype=bool)
    return found


_SIGNS = {"positive": np.greater, "nonnegative": np.greater_equal, "negative": np.less}


def _between(assumption: Assumption, values: Array) -> Array:
    """Into the interval: by scaling when it is bounded, by the absolute value when it is not."""
    low, high = assumption.low, assumption.high
    if (low is not None and low >= FARTHEST) or (high is not None and high <= -FARTHEST):
        raise Unsatisfiable(f"{assumption.name} is beyond the numbers that are sampled")
    low = None if low is None or low <= -FARTHEST else low
    high = None if high is None or high >= FARTHEST else high
    if low is None and high is None:
        return values
    if low is None or high is None:
        end = low if low is not None else high
        assert end is not None
        away = np.abs(values)
        return int(end * DENOMINATOR) + (away if low is not None else -away)
    inside = (np.abs(values) % (DENOMINATOR - 2) + 1) / DENOMINATOR
    width = float(high - low) * DENOMINATOR
    return np.asarray(int(low * DENOMINATOR) + inside * width).astype(np.int64)


def _in_mode(values: Array, mode: str) -> Array:
    if mode in ("positive", "negative"):
        away = np.abs(values) + DENOMINATOR // 997
        return np.asarray(away if mode == "positive" else -away)
    if mode == "unit":
        return np.abs(values) % (DENOMINATOR - 2) + 1
    if mode == "small":
        return np.asarray(values // 8)
    if mode == "above":
        return np.asarray(np.abs(values) + DENOMINATOR)
    if mode == "definite":
        if values.ndim < 2 or values.shape[-1] != values.shape[-2]:
            return values
        return np.asarray(values // 8 + np.eye(values.shape[-1], dtype=np.int64) * 3 * DENOMINATOR)
    return values


def _thresholds(nodes: Iterable[Node]) -> Array | None:
    """Numerators of the literals and their negatives, where they are not all 0, 1 or 2."""
    found: set[Fraction] = set()
    for node in nodes:
        if node.op == "constant" and node.dtype != bool_:
            value = node.attributes["value"].value
            if math.isfinite(value) and abs(value) < _LARGEST:
                found.add(Fraction(repr(value) if isinstance(value, float) else value))
    found |= {-value for value in found}
    if not found:
        return None
    return np.array(sorted(int(value * DENOMINATOR) for value in found), dtype=np.int64)


def _symbols(shapes: Iterable[Dim], assumptions: Mapping[str, list[Assumption]]) -> tuple[str, ...]:
    names = {name for size in shapes for name in size.sizes}
    for declared in assumptions.values():
        for assumption in declared:
            if assumption.extent is not None:
                names.update(assumption.extent.sizes)
    return tuple(sorted(names))
