"""Between which numbers the elements of a node lie, by interval arithmetic on the graph.

In: nodes, the intervals of inputs, and what else is known of single nodes.  Out: ``Range``.

Exact rationals, with open and closed ends: ``1 + exp(x)`` is more than 1, ``1 - tanh(x)**2`` is
positive.  What an op has no rule for here may be any number within the bounds of its record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from symgrad.budgets import RANGE_DEPTH
from symgrad.ir.dim import Dim, Size
from symgrad.ir.dtype import bool_
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.contraction import parse
from symgrad.ops.movement import bare
from symgrad.ops.record import get
from symgrad.proof.normal.facts import Facts, Interval
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.scalars import literals

End = tuple[Fraction | None, bool]
"""A number and whether it is left out; None: there is no bound."""

_NONE: End = (None, True)


@dataclass(frozen=True)
class Range:
    """Where all elements lie, as far as they are numbers; ``apart``: none of them is 0."""

    low: End = _NONE
    high: End = _NONE
    apart: bool = False

    @property
    def positive(self) -> bool:
        """Are all more than 0?"""
        low, is_open = self.low
        return low is not None and (low > 0 or (low == 0 and (is_open or self.apart)))

    @property
    def nonnegative(self) -> bool:
        """Is none less than 0?"""
        return self.low[0] is not None and self.low[0] >= 0

    @property
    def nonzero(self) -> bool:
        """Is none 0?"""
        return self.apart or self.positive or (-self).positive

    @property
    def empty(self) -> bool:
        """Is there no such number?"""
        low, high = self.low, self.high
        if low[0] is None or high[0] is None or low[0] < high[0]:
            return False
        return low[0] > high[0] or low[1] or high[1] or (self.apart and low[0] == 0)

    def __neg__(self) -> Range:
        return Range(_turned(self.high), _turned(self.low), self.apart)

    def __add__(self, other: Range) -> Range:
        return Range(_added(self.low, other.low), _added(self.high, other.high))

    def __mul__(self, other: Range) -> Range:
        ends = [_times(a, b) for a in self._ends() for b in other._ends()]
        low, high = min(ends), max((value, -is_open) for value, is_open in ends)
        apart = self.nonzero and other.nonzero
        return Range(_end(low[0], bool(low[1])), _end(high[0], bool(-high[1])), apart)

    def _ends(self) -> list[tuple[Fraction | float, int]]:
        low, high = self.low, self.high
        return [
            (-math.inf if low[0] is None else low[0], int(low[1])),
            (math.inf if high[0] is None else high[0], int(high[1])),
        ]

    def inverse(self) -> Range:
        """One over it, where that is defined."""
        if self.positive:
            low, high = self.low, self.high
            assert low[0] is not None
            least = (Fraction(0), True) if high[0] is None else (1 / high[0], high[1])
            return Range(least, (1 / low[0], low[1]) if low[0] else _NONE, True)
        if (-self).positive:
            return -((-self).inverse())
        return Range(apart=True)

    def meet(self, other: Range) -> Range:
        """What lies in both."""
        return Range(
            max(self.low, other.low, key=_above), min(self.high, other.high, key=_below),
            self.apart or other.apart,
        )  # fmt: skip

    def join(self, other: Range) -> Range:
        """What lies in either."""
        low = min(self.low, other.low, key=_above)
        return Range(
            low, max(self.high, other.high, key=_below), self.nonzero and other.nonzero
        )  # fmt: skip


def _above(end: End) -> tuple[Fraction | float, bool]:
    return (-math.inf if end[0] is None else end[0], end[1])


def _below(end: End) -> tuple[Fraction | float, bool]:
    return (math.inf if end[0] is None else end[0], not end[1])


def _turned(end: End) -> End:
    return (None if end[0] is None else -end[0], end[1])


def _added(one: End, other: End) -> End:
    if one[0] is None or other[0] is None:
        return _NONE
    return (one[0] + other[0], one[1] or other[1])


def _times(
    one: tuple[Fraction | float, int], other: tuple[Fraction | float, int]
) -> tuple[Fraction | float, int]:
    """The product of two ends; that with 0 is 0, left out where each 0 in it is."""
    zeros = [is_open for value, is_open in (one, other) if value == 0]
    if zeros:
        return Fraction(0), min(zeros)
    if isinstance(one[0], float) or isinstance(other[0], float):
        return math.inf if (one[0] > 0) == (other[0] > 0) else -math.inf, 1
    return one[0] * other[0], max(one[1], other[1])


def _end(value: Fraction | float, is_open: bool) -> End:
    return _NONE if isinstance(value, float) else (value, is_open)


ANY = Range()
POSITIVE = Range((Fraction(0), True))
NONNEGATIVE = Range((Fraction(0), False))
APART = Range(apart=True)
TRUTH = Range((Fraction(0), False), (Fraction(1), False))


def point(value: Fraction | int) -> Range:
    """A number alone."""
    return Range((Fraction(value), False), (Fraction(value), False))


def number(node: Node) -> Fraction | None:
    """The number that all elements of a node are."""
    source = bare(node)
    if source.op != "constant" or source.dtype == bool_:
        return None
    value = source.attributes["value"].value
    return literals.exact(value) if math.isfinite(value) else None


Known = Mapping[Node, Range]


class Ranges:
    """The ranges of the nodes of one graph.

    ``known``: what is known of all elements of a node, whatever computes it.
    ``least_sizes``: the least value of a size where that is not 1.
    """

    def __init__(self, known: Known, least_sizes: Mapping[str, int]) -> None:
        self.known = dict(known)
        self.least_sizes = least_sizes
        self.regular: set[Node] = set()
        """What is no pole of the gamma function."""
        self._found: dict[Node, Range] = {}

    def copy(self) -> Ranges:
        """The same, to learn more in."""
        found = Ranges(self.known, self.least_sizes)
        found.regular |= self.regular
        return found

    def learn(self, node: Node, found: Range) -> None:
        """Take more as known of all elements of a node."""
        self.known[node] = self.known.get(node, ANY).meet(found)
        self._found.clear()

    def of(self, node: Node, here: Known | None = None) -> Range:
        """The range of a node; ``here``: what holds at the element that is looked at alone."""
        return self._here(node, here, RANGE_DEPTH) if here else self._everywhere(node)

    def _here(self, node: Node, here: Known, depth: int) -> Range:
        found = self._everywhere(node)
        if depth and get(node.op).kind == "elementwise":
            args = [self._here(arg, here, depth - 1) for arg in node.args]
            found = found.meet(self._own(node, args))
        return found.meet(here[node]) if node in here else found

    def _everywhere(self, node: Node) -> Range:
        if node not in self._found:
            for part in ancestors([node], stop=self._found):
                if part not in self._found:
                    args = [self._found[arg] for arg in part.args]
                    self._found[part] = self._own(part, args).meet(self.known.get(part, ANY))
        return self._found[node]

    def _own(self, node: Node, args: Sequence[Range]) -> Range:
        rule = _RULES.get(node.op)
        if rule is not None:
            return rule(self, node, args)
        scalar = get(node.op).scalar
        if node.dtype == bool_:
            return TRUTH
        if scalar is None or scalar.bounds is None:
            return ANY
        low, high, is_open = scalar.bounds.low, scalar.bounds.high, scalar.bounds.open
        return Range(
            _NONE if low is None else (Fraction(low), is_open),
            _NONE if high is None else (Fraction(high), is_open),
        )  # fmt: skip

    def least(self, size: Dim) -> int:
        """A lower bound of a size."""

        def least(symbol: Size) -> int:
            return self.least_sizes.get(symbol.name, 1)

        return next((n for n in (2, 1) if size.at_least(n, least_size=least)), 0)

    def filled(self, sizes: Sequence[Dim]) -> bool:
        """Is none of these sizes 0?"""
        return all(self.least(size) >= 1 for size in sizes)


Rule = Callable[[Ranges, Node, Sequence[Range]], Range]


def _same(ranges: Ranges, node: Node, args: Sequence[Range]) -> Range:
    return args[0]


def _constant(ranges: Ranges, node: Node, args: Sequence[Range]) -> Range:
    if node.dtype == bool_:
        return point(int(node.attributes["value"].value))
    value = number(node)
    return ANY if value is None else point(value)


def _size(ranges: Ranges, node: Node, args: Sequence[Range]) -> Range:
    return Range((Fraction(ranges.least(node.attributes["dim"])), False))


def _joined(ranges: Ranges, node: Node, args: Sequence[Range]) -> Range:
    found = args[0]
    for other in args[1:]:
        found = found.join(other)
    return found


def _product(ranges: Ranges, node: Node, args: Sequence[Range]) -> Range:
    found = args[0] * args[1]
    return _squared(args[0]) if node.args[0] is node.args[1] else found


def _squared(one: Range) -> Range:
    magnitude = _magnitude(one)
    return magnitude * magnitude


def _magnitude(one: Range) -> Range:
    if one.nonnegative:
        return one
    if (-one).nonnegative:
        return -one
    ends = one.high, _turned(one.low)
    low = (Fraction(0), False)
    if any(end[0] is None for end in ends):
        return Range(low, apart=one.apart)
    return Range(low, max(ends, key=_below), one.apart)


def _root(ranges: Ranges, node: Node, args: Sequence[Range]) -> Range:
    return _rooted(args[0])


def _rooted(one: Range) -> Range:
    """A root lies between the number and 1."""
    one = one.meet(NONNEGATIVE)
    low, high = one.low, one.high
    assert low[0] is not None
    most = _NONE if high[0] is None else (max(high[0], Fraction(1)), high[1])
    return Range((min(low[0], Fraction(1)), low[1]), most, one.apart)


def _sum(ranges: Ranges, node: Node, args: Sequence[Range]) -> Range:
    """At least one of the summands, where all have one sign."""
    (one,), (arg,) = args, node.args
    filled = ranges.filled([arg.shape[axis] for axis in node.attributes["axes"]])
    found = ANY
    for turned in (False, True):
        own = -one if turned else one
        if own.nonnegative:
            least = (own.low[0], own.low[1]) if filled else (Fraction(0), False)
            half = Range(least, apart=filled and own.nonzero)
            found = found.meet(-half if turned else half)
    return found


def _scanned(ranges: Ranges, node: Node, args: Sequence[Range]) -> Range:
    """Sums and products of some of the elements, each of its own among them."""
    (one,) = args
    if one.positive:
        return POSITIVE
    return NONNEGATIVE if one.nonnegative else ANY


def _prod(ranges: Ranges, node: Node, args: Sequence[Range]) -> Range:
    (one,) = args
    if one.positive:
        return POSITIVE
    if one.nonnegative:
        return Range((Fraction(0), False), apart=one.apart)
    return Range(apart=one.nonzero)


def _einsum(ranges: Ranges, node: Node, args: Sequence[Range]) -> Range:
    left, right, result = parse(node.attributes["spec"])
    one, other = args
    if node.args[0] is node.args[1] and left == right:
        one, other = _squared(one), point(1)
    sizes = dict(zip(left + right, (*node.args[0].shape, *node.args[1].shape), strict=True))
    filled = ranges.filled([size for label, size in sizes.items() if label not in result])
    product = one * other
    if not product.nonnegative:
        return ANY
    return POSITIVE if product.positive and filled else NONNEGATIVE


def _power(ranges: Ranges, node: Node, args: Sequence[Range]) -> Range:
    base, exponent = args[0], number(node.args[1])
    if base.positive:
        return POSITIVE
    if exponent is None or exponent.denominator != 1:
        return NONNEGATIVE if exponent is not None or base.nonnegative else ANY
    if exponent % 2 == 0:
        return Range((Fraction(0), False), apart=base.nonzero or exponent <= 0)
    return Range(apart=base.nonzero or exponent < 0).meet(NONNEGATIVE if base.nonnegative else ANY)


def _exp(ranges: Ranges, node: Node, args: Sequence[Range]) -> Range:
    return Range((Fraction(1), args[0].low[1])) if args[0].nonnegative else POSITIVE


def _log(shift: int) -> Rule:
    """The logarithm of a number plus ``shift``."""

    def rule(ranges: Ranges, node: Node, args: Sequence[Range]) -> Range:
        low, is_open = args[0].low
        at_least_one = low is not None and low + shift >= 1
        more = low is not None and (low + shift > 1 or is_open)
        return Range((Fraction(0), more)) if at_least_one else ANY

    return rule


def _greatest(ranges: Ranges, node: Node, args: Sequence[Range]) -> Range:
    one, other = args
    low = max(one.low, other.low, key=_above)
    high = max(one.high, other.high, key=_below)
    return Range(low, high, one.nonzero and other.nonzero)


def _least(ranges: Ranges, node: Node, args: Sequence[Range]) -> Range:
    return -_greatest(ranges, node, [-one for one in args])


def _cast(ranges: Ranges, node: Node, args: Sequence[Range]) -> Range:
    return args[0] if node.dtype.is_float else TRUTH if node.dtype == bool_ else ANY


def _chosen(ranges: Ranges, node: Node, args: Sequence[Range]) -> Range:
    """Either branch; one that is compared with a number lies on the side that it is chosen on."""
    compared, *branches = node.args
    found = args[1:]
    if compared.op in _SIDES:
        for this, other, below in ((0, 1, True), (1, 0, False)):
            side, value = compared.args[this], number(compared.args[other])
            if side in branches and value is not None:
                chosen = branches.index(side) == 0
                is_below = ((compared.op in _LESS) == below) == chosen
                end = value, (compared.op in _STRICT) == chosen
                part = Range(high=end) if is_below else Range(end)
                found = [one.meet(part) if at == branches.index(side) else one
                         for at, one in enumerate(found)]  # fmt: skip
    return found[0].join(found[1])


_SIDES = frozenset(("lt", "le", "gt", "ge"))
_LESS, _STRICT = frozenset(("lt", "le")), frozenset(("lt", "gt"))


def _with_zeros(ranges: Ranges, node: Node, args: Sequence[Range]) -> Range:
    return args[0].join(point(0))


_RULES: dict[str, Rule] = {
    **dict.fromkeys(
        ("expand", "reshape", "permute", "slice", "diagonal", "detach", "applied", "shift", "index",
         "amax", "amin", "max", "min"),
        _same,
    ),
    "constant": _constant, "size": _size, "concat": _joined, "unslice": _with_zeros,
    "where": _chosen, "cast": _cast, "mul": _product, "sum": _sum, "prod": _prod,
    "cumsum": _scanned, "cumprod": _scanned, "einsum": _einsum, "pow": _power, "exp": _exp,
    "log": _log(0), "log1p": _log(1),
    "maximum": _greatest, "minimum": _least, "sqrt": _root, "root": _root,
    "iota": lambda ranges, node, args: NONNEGATIVE,
    "add": lambda ranges, node, args: args[0] + args[1],
    "sub": lambda ranges, node, args: args[0] + -args[1],
    "neg": lambda ranges, node, args: -args[0],
    "div": lambda ranges, node, args: replace(args[0] * args[1].inverse(), apart=args[0].nonzero),
    "reciprocal": lambda ranges, node, args: args[0].inverse(),
    "square": lambda ranges, node, args: _squared(args[0]),
    "abs": lambda ranges, node, args: _magnitude(args[0]),
    "rsqrt": lambda ranges, node, args: POSITIVE,
    "relu": lambda ranges, node, args: args[0].meet(NONNEGATIVE) if args[0].positive
    else NONNEGATIVE,
}  # fmt: skip


def of_inputs(subject: Subject, facts: Facts) -> dict[Node, Range]:
    """What the facts and the assumptions say of the inputs."""
    found = of_names(subject.by_name, facts)
    for known in subject.assumptions:
        if known.kind == "nonzero" and known.name in subject.by_name:
            node = subject.by_name[known.name]
            found[node] = found.get(node, ANY).meet(APART)
    return found


def of_names(inputs: Mapping[str, Node], facts: Facts) -> dict[Node, Range]:
    """What the facts say of inputs."""
    found: dict[Node, Range] = {}
    for name, node in inputs.items():
        if name in facts.intervals:
            found[node] = _of_interval(facts.intervals[name])
        elif name in facts.binary or name in facts.one_hot:
            found[node] = Range(point(0).low, point(1).high)
    return found


def _of_interval(interval: Interval) -> Range:
    return Range((interval.low, interval.low_open), (interval.high, interval.high_open))


def interval(one: Range) -> Interval | None:
    """The same for the normal form; None where there is no bound."""
    if one.low[0] is None and one.high[0] is None:
        return None
    return Interval(one.low[0], one.high[0], one.low[1], one.high[1])
