"""Between which sizes the elements of an integer node lie, and what operations demand of integers.

In: nodes, and what decides relations between sizes.  Out: ``Ends``, ``Demand``.

``argmax`` along n elements lies in ``0..n - 1``, a truth value in ``0..1``, ``z % n`` in
``0..n - 1``.  Ends are sizes, so that they hold for all shapes; of floats, too, they are integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from symgrad.budgets import RANGE_DEPTH
from symgrad.ir.dim import Atom, Dim, DimLike, Size, product
from symgrad.ir.dtype import bool_
from symgrad.ir.expr import OPPOSITE, TURNED
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.indexing import ranges
from symgrad.ops.movement import bare
from symgrad.ops.record import get

LARGEST_SIZE = 2**29
"""What sizes are less than, where integers of 32 bits are counted with."""
MOST_ENDS = 4
"""Bounds of one node that are kept."""
MOST_CHOICES = 4
"""Choices within choices of which each condition is known."""

Decide = Callable[[DimLike, str, DimLike], bool | None]
"""Does a relation between sizes hold for all that are admissible (True), for none, or neither?"""


class Ends(NamedTuple):
    """No element is less than any of ``lows``, none is more than any of ``highs``."""

    lows: tuple[Dim, ...] = ()
    highs: tuple[Dim, ...] = ()


class Demand(NamedTuple):
    """What an operation raises without: ``low <= node < high``, or that no element is ``apart``."""

    node: Node
    low: Dim | None = None
    high: Dim | None = None
    apart: int | None = None


def truth(node: Node) -> Demand:
    """The demand that all elements of a node of truth values are true."""
    return Demand(node, Dim.of(1), Dim.of(2))


def up_to(size: DimLike | None) -> Ends:
    """From 0 up to one less than a size; anything for None."""
    return Ends() if size is None else Ends((Dim.of(0),), (Dim.of(size) - 1,))


def _granted(end: Dim, high: DimLike) -> bool:
    """Is it less than an end of 32 bits or more, since sizes are less than ``LARGEST_SIZE``?"""
    most = Dim.of(high).constant
    if most is None or most < 2**31:
        return False
    largest: dict[Atom, Dim] = {Size(name): LARGEST_SIZE - Dim.size(name) for name in end.sizes}
    return (most - end.substitute(largest)).at_least(1, least_size=0)


ANY = Ends()
TRUTH = Ends((Dim.of(0),), (Dim.of(1),))
_DIVISIONS = ("floordiv", "mod", "fmod")


def gap_of(left: Dim, relation: str, right: DimLike) -> Dim | None:
    """What is not negative where a relation holds."""
    gaps = {">=": left - right, ">": left - right - 1, "<=": right - left, "<": right - left - 1}
    return gaps.get(relation)


def at_all_sizes(left: DimLike, relation: str, right: DimLike) -> bool | None:
    """Does a relation hold for all sizes that are at least 1?  None where that is not known."""
    gap = gap_of(Dim.of(left), relation, right)
    return None if gap is None else gap.at_least(0, least_size=1) or None


def demands(node: Node) -> Iterator[Demand]:
    """What a node demands of integers that it reads."""
    if node.op in ("index", "index_add"):
        for place, size in ranges(node):
            plain = counted_from_the_end(place, size)
            yield Demand(place, Dim.of(0), size) if plain is None else Demand(plain, -size, size)
    elif node.op in _DIVISIONS and node.dtype.is_integer:
        yield Demand(node.args[1], apart=0)


def counted_from_the_end(place: Node, size: Dim) -> Node | None:
    """``z`` of ``where(z < 0, z + size, z)``; None for another place."""
    node = bare(place)
    if node.op != "where" or node.args[0].op != "lt":
        return None
    (plain, zero), moved = node.args[0].args, node.args[1]
    fits = moved.op == "add" and moved.args[0] is plain and node.args[2] is plain
    return plain if fits and size_of(zero) == 0 and size_of(moved.args[1]) == size else None


def size_of(node: Node) -> Dim | None:
    """The size that all elements of an integer node are."""
    node = bare(node)
    if node.op == "size":
        return Dim.of(node.attributes["dim"])
    if node.op == "constant" and node.dtype.is_integer:
        return Dim.of(int(node.attributes["value"].value))
    return None


def extremum(node: Node) -> tuple[str, Sequence[Node]]:
    """``minimum`` or ``maximum`` and its operands, by choice (``where(a > b, b, a)``) as well."""
    if node.op != "where" or not node.dtype.is_integer:
        return (node.op, node.args) if node.op in ("minimum", "maximum") else ("", ())
    condition, chosen, other = node.args
    lesser = {(chosen, other): ("lt", "le"), (other, chosen): ("gt", "ge")}
    for operands, (strict, loose) in lesser.items():
        if condition.args == operands and condition.op in (strict, loose):
            return "minimum", operands
        if condition.args == operands and condition.op in (TURNED[strict], TURNED[loose]):
            return "maximum", operands
    return "", ()


class Labels(NamedTuple):
    """What an input is by a demand: below ``size``, and not negative if ``counted``.

    But for some ``marks``, for which other numbers are put.
    """

    size: Dim
    counted: bool = True
    marks: tuple[int, ...] = ()


def labels(demand: Demand) -> tuple[str, Labels] | None:
    """The input that a demand is on, or on what is put for some of it, and what that is then.

    ``where(z != -100, z, 0)``, ``z * (z != -100)`` and ``z.clamp(min=0)`` are places where z is
    one; None for others.
    """
    node, marks, counted = moved(demand.node), set[int](), True
    low, high = demand.low, demand.high
    if low is None or high is None or low != 0:
        return None
    while node.op != "input":
        op, operands = extremum(node)
        kept = [one for one in operands if size_of(one) != 0]
        if op == "maximum" and len(kept) == 1:
            node, counted = moved(kept[0]), False
            continue
        found = _replaced(node)
        if found is None or not _lies(found[2], low, high):
            return None
        node = moved(found[0])
        marks.add(found[1])
    if not node.dtype.is_integer:
        return None
    return str(node.attributes["name"]), Labels(high, counted, tuple(sorted(marks)))


def _lies(size: Dim, low: Dim, high: Dim) -> bool:
    """Is it between them for all sizes?"""
    return size.at_least(low, least_size=1) and high.at_least(size + 1, least_size=1)


def _replaced(node: Node) -> tuple[Node, int, Dim] | None:
    """The rest, the number, and what is put for it: of ``where(z != -100, z, 0)`` z, -100, 0."""
    if node.op == "mul":
        for rest, truth in (node.args, node.args[::-1]):
            found = _singled_out(bare(truth), rest) if bare(truth).dtype == bool_ else None
            if found is not None and not found[1]:
                return rest, found[0], Dim.of(0)
    elif node.op == "where":
        condition, chosen, other = node.args
        for rest, put, equal in ((chosen, other, False), (other, chosen, True)):
            found, size = _singled_out(condition, rest), size_of(put)
            if found is not None and found[1] is equal and size is not None:
                return rest, found[0], size
    return None


def _singled_out(condition: Node, rest: Node) -> tuple[int, bool] | None:
    """The number that something is compared with, and whether it is equal where that holds."""
    equal = True
    while condition.op == "logical_not":
        condition, equal = condition.args[0], not equal
    if condition.op not in ("eq", "ne"):
        return None
    for own, number in (condition.args, condition.args[::-1]):
        size = size_of(number)
        if own is rest and size is not None and size.constant is not None:
            return size.constant, (condition.op == "eq") is equal
    return None


def moved(node: Node) -> Node:
    """The node whose elements these are."""
    while node.op in ("expand", "reshape", "permute"):
        node = node.args[0]
    return node


def numbers_of(node: Node) -> list[Dim] | None:
    """The sizes, numbers among them, that the elements of a node are; None where one is another."""
    node = bare(node)
    if node.op != "concat":
        found = size_of(node)
        return None if found is None else [found]
    parts = [numbers_of(arg) for arg in node.args]
    if None in parts:
        return None
    return list(dict.fromkeys(size for part in parts if part is not None for size in part))


def ramp(node: Node) -> Dim | None:
    """The size of the axis along which a node is 0, 1, 2...; None if it is not."""
    axis = ramp_axis(node)
    return None if axis is None else node.shape[axis]


def ramp_axis(node: Node) -> int | None:
    """The axis along which a node is 0, 1, 2..., the same along all others; None if it is not."""
    rank = node.rank
    if node.op == "expand":
        node = node.args[0]
    long = [axis for axis, size in enumerate(node.shape) if size != 1]
    source = node
    while source.op == "reshape":
        source = source.args[0]
    if source.op != "iota" or len(long) != 1:
        return None
    return rank - node.rank + long[0]


class Integers:
    """The ends of the nodes of one graph.  ``known``: those of integer inputs, by name."""

    def __init__(self, decide: Decide, known: Callable[[str], Ends]) -> None:
        self._decide, self._known = decide, known
        self._found: dict[Node, Ends] = {}

    def of(self, node: Node) -> Ends:
        """The ends of a node."""
        if node not in self._found:
            for part in ancestors([node], stop=self._found, follow=_read):
                if part not in self._found:
                    self._found[part] = self._own(part)
        return self._found[node]

    def _own(self, node: Node) -> Ends:
        if node.dtype == bool_:
            return TRUTH
        if node.op == "input":
            return self._known(str(node.attributes["name"])) if node.dtype.is_integer else ANY
        if _wraps(node):
            return ANY
        rule = _RULES.get(node.op)
        return _kept(_bounds(node) if rule is None else rule(self, node, self._args(node)))

    def _args(self, node: Node) -> list[Ends]:
        return [self._found[arg] for arg in _read(node)]

    def meets(self, demand: Demand) -> bool:
        """Is a demand met by all elements?"""
        if demand.apart is not None:
            near = Dim.of(demand.apart)
            return self.above(demand.node, near + 1) or self.below(demand.node, near)
        low, high = demand.low, demand.high
        return (low is None or self.above(demand.node, low)) and (
            high is None or self.below(demand.node, high)
        )

    def above(self, node: Node, low: Dim) -> bool:
        """Is no element less than ``low``?"""
        lows = self.of(node).lows
        return any(self.holds(end, ">=", low) or _granted(-end, -low) for end in lows)

    def below(self, node: Node, high: Dim) -> bool:
        """Are all elements less than ``high``?"""
        highs = self.of(node).highs
        return any(self.holds(end, "<", high) or _granted(end, high) for end in highs)

    def misses(self, demand: Demand) -> bool:
        """Does no element meet it, whatever the sizes are?"""
        node, near = demand.node, demand.apart
        if near is not None:
            return self.above(node, Dim.of(near)) and self.below(node, Dim.of(near + 1))
        low, high = demand.low, demand.high
        return (low is not None and self.below(node, low)) or (
            high is not None and self.above(node, high)
        )

    def holds(self, left: Dim, relation: str, right: DimLike) -> bool:
        """Does a relation hold for all sizes?"""
        return self._decide(left, relation, right) is True

    def nonnegative(self, ends: Ends) -> bool:
        """Is no element less than 0?"""
        return any(self.holds(low, ">=", 0) for low in ends.lows)

    def joined(self, parts: Sequence[Ends]) -> Ends:
        """The ends of what is an element of any of them."""
        found = parts[0]
        for other in parts[1:]:
            found = Ends(
                tuple(self._common(found.lows, other.lows, "<=")),
                tuple(self._common(found.highs, other.highs, ">=")),
            )
        return found

    def _common(self, one: Iterable[Dim], other: Iterable[Dim], relation: str) -> Iterator[Dim]:
        for own, others in ((tuple(one), tuple(other)), (tuple(other), tuple(one))):
            for end in own:
                if any(self.holds(end, relation, bound) for bound in others):
                    yield end


Rule = Callable[[Integers, Node, Sequence[Ends]], Ends]


def _read(node: Node) -> Sequence[Node]:
    """The arguments on whose ends those of a node rest."""
    if node.dtype == bool_ or node.op not in _RULES:
        return ()
    if node.op == "where":
        condition, *branches = node.args
        compared = (_comparisons(condition, held) for held in (True, False))
        return [*branches, *(side for one in compared for _, node, _ in one for side in node.args)]
    return node.args[:1] if node.op in _OF_FIRST else node.args


def _wraps(node: Node) -> bool:
    """May what is computed leave the range of its dtype, and come in again at the other end?"""
    return node.dtype.wraps and node.op in _COMPUTED


def _bounds(node: Node) -> Ends:
    """What the record of an op says of its values."""
    scalar = get(node.op).scalar
    if scalar is None or scalar.bounds is None:
        return ANY
    low, high = scalar.bounds.low, scalar.bounds.high
    return Ends(
        () if low is None else (Dim.of(math.floor(low)),),
        () if high is None else (Dim.of(math.ceil(high)),),
    )


def _same(of: Integers, node: Node, args: Sequence[Ends]) -> Ends:
    return args[0]


def _constant(of: Integers, node: Node, args: Sequence[Ends]) -> Ends:
    value = node.attributes["value"].value
    if not math.isfinite(value):
        return ANY
    return Ends((Dim.of(math.floor(value)),), (Dim.of(math.ceil(value)),))


def _dim(of: Integers, node: Node, args: Sequence[Ends]) -> Ends:
    return Ends((Dim.of(node.attributes["dim"]),), (Dim.of(node.attributes["dim"]),))


def _position(of: Integers, node: Node, args: Sequence[Ends]) -> Ends:
    axis = node.attributes["axes"][0] if "axes" in node.attributes else node.attributes["axis"]
    return up_to(node.args[0].shape[axis])


def _cast(of: Integers, node: Node, args: Sequence[Ends]) -> Ends:
    return ANY if node.dtype.wraps and node.args[0].dtype != bool_ else args[0]


def _add(of: Integers, node: Node, args: Sequence[Ends]) -> Ends:
    one, other = args
    return Ends(
        tuple(a + b for a in one.lows for b in other.lows),
        tuple(a + b for a in one.highs for b in other.highs),
    )


def _neg(of: Integers, node: Node, args: Sequence[Ends]) -> Ends:
    return Ends(tuple(-end for end in args[0].highs), tuple(-end for end in args[0].lows))


def _sub(of: Integers, node: Node, args: Sequence[Ends]) -> Ends:
    return _add(of, node, [args[0], _neg(of, node, args[1:])])


def _mul(of: Integers, node: Node, args: Sequence[Ends]) -> Ends:
    for one, other in (args, args[::-1]):
        for factor in set(one.lows) & set(one.highs):
            if factor == 0:
                return one
            if of.holds(factor, ">=", 0):
                return Ends(*(tuple(end * factor for end in ends) for ends in other))
            if of.holds(factor, "<", 0):
                return _neg(of, node, [Ends(*(tuple(-factor * e for e in ends) for ends in other))])
    if not all(map(of.nonnegative, args)):
        return ANY
    highs = (a * b for a in args[0].highs for b in args[1].highs)
    return Ends((Dim.of(0),), tuple(highs))


def _floordiv(of: Integers, node: Node, args: Sequence[Ends]) -> Ends:
    one, other = args
    if not any(of.holds(low, ">=", 1) for low in other.lows):
        return ANY
    divisor = next((low.constant for low in other.lows if low in other.highs), None)
    if divisor is not None:
        return Ends(*(tuple(end // divisor for end in ends) for ends in one))
    if of.nonnegative(one):
        return Ends((Dim.of(0),), one.highs)
    lows = (low for low in one.lows if of.holds(low, "<=", 0))
    return Ends(tuple(lows), tuple(high for high in one.highs if of.holds(high, ">=", 0)))


def _mod(of: Integers, node: Node, args: Sequence[Ends]) -> Ends:
    one, other = args
    if not any(of.holds(low, ">=", 1) for low in other.lows):
        return ANY
    positive = of.nonnegative(one)
    open_end = 1 if node.dtype.is_integer else 0
    highs = tuple(high - open_end for high in other.highs)
    if node.op == "fmod" and not positive:
        return Ends(tuple(-high for high in highs), highs)
    return Ends((Dim.of(0),), (*highs, *(one.highs if positive else ())))


def _maximum(of: Integers, node: Node, args: Sequence[Ends]) -> Ends:
    return Ends((*args[0].lows, *args[1].lows), of.joined(args).highs)


def _minimum(of: Integers, node: Node, args: Sequence[Ends]) -> Ends:
    return Ends(of.joined(args).lows, (*args[0].highs, *args[1].highs))


def _where(of: Integers, node: Node, args: Sequence[Ends]) -> Ends:
    """Of either branch, with what the condition says there."""
    return _Here(of).chosen(node, ())


_Path = tuple[tuple[Any, ...], ...]
"""How the elements of a node are moved, the last move first."""
_MOVING = ("expand", "reshape", "permute")


class _Here:
    """The ends of those elements of nodes of which something is known.

    ``known``: of nodes, by how their elements are moved to where it holds.
    """

    def __init__(
        self, whole: Integers, known: Mapping[tuple[_Path, Node], Ends] | None = None,
        choices: int = MOST_CHOICES,
    ) -> None:  # fmt: skip
        self._whole, self._known, self._choices = whole, known or {}, choices
        self._found: dict[tuple[_Path, Node], Ends] = {}

    def of(self, node: Node, path: _Path, depth: int = RANGE_DEPTH) -> Ends:
        """The ends of the elements of a node that are moved along a path."""
        at = path, node
        if at not in self._found:
            own = self._own(node, path, depth - 1) if self._known else self._whole.of(node)
            self._found[at] = _kept(_met(self._known.get(at, ANY), own))
        return self._found[at]

    def _own(self, node: Node, path: _Path, depth: int) -> Ends:
        rule = _RULES.get(node.op)
        if depth and rule is not None and node.dtype != bool_ and not _wraps(node):
            if node.op in _MOVING:
                return self.of(node.args[0], (*path, _move(node)), depth)
            if node.op == "where":
                return self.chosen(node, path, depth) if self._choices else self._whole.of(node)
            if get(node.op).kind == "elementwise":
                return rule(self._whole, node, [self.of(arg, path, depth) for arg in node.args])
        return self._whole.of(node)

    def chosen(self, node: Node, path: _Path, depth: int = RANGE_DEPTH) -> Ends:
        """The ends of a choice."""
        condition, *branches = node.args
        parts = []
        for branch, held in zip(branches, (True, False), strict=True):
            known = dict(self._known)
            for at, one, holds in _comparisons(condition, held, path):
                for side, other in ((0, 1), (1, 0)):
                    said = _compared(one, side, holds, self._whole.of(one.args[other]))
                    key = at, one.args[side]
                    known[key] = _met(said, known.get(key, ANY))
            parts.append(_Here(self._whole, known, self._choices - 1).of(branch, path, depth))
        return self._whole.joined(parts)


def _met(one: Ends, other: Ends) -> Ends:
    """The ends of what has both."""
    return Ends((*one.lows, *other.lows), (*one.highs, *other.highs))


def _kept(found: Ends) -> Ends:
    """As many as are kept."""
    lows, highs = map(dict.fromkeys, found)
    return Ends(tuple(lows)[:MOST_ENDS], tuple(highs)[:MOST_ENDS])


def _move(node: Node) -> tuple[Any, ...]:
    """How an op moves elements: the same of two nodes is the same move."""
    return node.op, node.args[0].shape, *node.attributes.values()


def _comparisons(
    condition: Node, held: bool, path: _Path = ()
) -> Iterator[tuple[_Path, Node, bool]]:
    """Comparisons that hold, or do not, wherever a condition does; how they are moved there."""
    if condition.op == "logical_not":
        yield from _comparisons(condition.args[0], not held, path)
    elif condition.op in _MOVING:
        yield from _comparisons(condition.args[0], held, (*path, _move(condition)))
    elif condition.op == ("logical_and" if held else "logical_or"):
        for part in condition.args:
            yield from _comparisons(part, held, path)
    elif condition.op in OPPOSITE:
        yield path, condition, held


def _compared(comparison: Node, side: int, held: bool, other: Ends) -> Ends:
    """What a comparison says of one of its sides; ``other``: the ends of the other one."""
    relation = comparison.op if held else OPPOSITE[comparison.op]
    relation = TURNED[relation] if side else relation
    apart = int(comparison.args[side].dtype.is_integer)
    if relation == "eq":
        return other
    if relation in ("lt", "le"):
        step = apart if relation == "lt" else 0
        return Ends((), tuple(high - step for high in other.highs))
    if relation in ("gt", "ge"):
        step = apart if relation == "gt" else 0
        return Ends(tuple(low + step for low in other.lows), ())
    return ANY


def _joined(of: Integers, node: Node, args: Sequence[Ends]) -> Ends:
    return of.joined(args)


def _with_zeros(of: Integers, node: Node, args: Sequence[Ends]) -> Ends:
    return of.joined([args[0], Ends((Dim.of(0),), (Dim.of(0),))])


def _abs(of: Integers, node: Node, args: Sequence[Ends]) -> Ends:
    found = args[0] if of.nonnegative(args[0]) else of.joined([args[0], _neg(of, node, args)])
    return Ends((*found.lows, Dim.of(0)), found.highs)


def _summed(of: Integers, node: Node, args: Sequence[Ends]) -> Ends:
    """Sums of elements none of which is negative, all along some axes or the first of them."""
    if not of.nonnegative(args[0]):
        return ANY
    over = node.attributes
    axes = over["axes"] if "axes" in over else (over["axis"],)
    count = product([node.args[0].shape[axis] for axis in axes])
    return Ends((Dim.of(0),), tuple(high * count for high in args[0].highs))


def _reordered(of: Integers, node: Node, args: Sequence[Ends]) -> Ends:
    """What is put at ranks along an axis, each element once, is the same elements."""
    ranked = [axis for axis, place in enumerate(node.args[1:]) if ramp_axis(place) != axis]
    once = all(node.args[1 + axis].op == "rank" and node.args[1 + axis].attributes["axis"] == axis
               for axis in ranked)  # fmt: skip
    whole = node.shape == node.args[0].shape and len(node.args) == 1 + node.rank
    return args[0] if whole and once and len(ranked) <= 1 else ANY


_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(
        ("expand", "reshape", "permute", "slice", "diagonal", "detach", "applied", "unwritten",
         "index", "amax", "amin", "max", "min", "floor", "ceil", "round", "trunc"),
        _same,
    ),
    **dict.fromkeys(("argmax", "argmin", "rank"), _position),
    **dict.fromkeys(("sum", "cumsum"), _summed),
    **dict.fromkeys(("mod", "fmod"), _mod),
    "constant": _constant, "size": _dim, "cast": _cast, "add": _add, "sub": _sub, "neg": _neg,
    "iota": lambda of, node, args: up_to(node.attributes["length"]),
    "mul": _mul, "floordiv": _floordiv, "maximum": _maximum, "minimum": _minimum, "where": _where,
    "concat": _joined, "unslice": _with_zeros, "abs": _abs, "index_add": _reordered,
}  # fmt: skip
_COMPUTED = ("add", "sub", "neg", "mul", "floordiv", "abs", "sum", "cumsum")
_OF_FIRST = ("index", "index_add", "detach", "applied", "unwritten")
