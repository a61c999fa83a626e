"""Null sets on which the comparisons of a backward change: which they are, and what they choose.

In: the nodes that a gradient needs.  Out: ``Boundary`` records, each with what the comparisons
that change there give on both sides of the set and on it.

A comparison is taken apart first: through broadcasting, shifts and scales by numbers, absolute
values, maxima and choices, so that ``2 * x - 6 > 0``, ``x <= 3`` and ``relu(x - 3) == 0`` change
on one and the same set.

On the set a gradient is the limit of its own values from one side if each comparison gives there
what it gives on that side, and the side is there: then it is right wherever forward has a
derivative.  That is so of ``x > 0`` by itself, never of ``x == 0``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, combinations

from symgrad.ir.dtype import bool_
from symgrad.ir.expr import TURNED
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.logic import COMPARISONS
from symgrad.ops.movement import bare
from symgrad.ops.record import get
from symgrad.ops.reductions import EXTREMES_ALONG
from symgrad.proof.words.relations import number

Sides = tuple[object, object, object]
"""What is chosen where a point is below a value, where it is the value, and above."""
_SIDES: dict[str, Sides] = {
    "eq": (False, True, False), "ne": (True, False, True),
    "lt": (True, False, False), "le": (True, True, False),
    "gt": (False, False, True), "ge": (False, True, True),
    "sign": (-1, 0, 1), "copysign": (-1, 1, 1),
}  # fmt: skip
_UNKNOWN: Sides = ("below", "on", "above")
"""Of a product with a factor of sizes and indices, whose sign is not known, and which may be 0."""
_MOVED = ("expand", "reshape", "permute", "shift", "detach")
_LINEAR = (*_MOVED, "slice", "concat", "unslice", "sum", "diagonal", "cumsum", "index", "neg")


@dataclass(frozen=True)
class Boundary:
    """The set of all inputs at which some element of ``point`` is ``value``."""

    point: Node
    value: Fraction | Node

    @property
    def inputs(self) -> frozenset[str]:
        """The real inputs that it depends on; without any it is no null set."""
        nodes = [self.value] if isinstance(self.value, Node) else []
        return inputs_of(self.point, *nodes)


@dataclass
class Meeting:
    """What meets on one boundary: the sides of each comparison, and one of them, to be shown."""

    shown: Node
    sides: list[Sides] = field(default_factory=list)

    @property
    def one_sided(self) -> bool:
        """Is everything on the set as it is on one of its sides?"""
        return any(all(one[side] == one[1] for one in self.sides) for side in (0, 2))


Names = frozenset[str]
"""Inputs that are positive: as factors they change no comparison with 0."""
NO_NAMES: Names = frozenset()


def boundaries(nodes: Iterable[Node], positive: Names = NO_NAMES) -> dict[Boundary, Meeting]:
    """The boundaries of all comparisons of reals among some nodes."""
    found: dict[Boundary, Meeting] = {}
    for node in nodes:
        for boundary, sides in changes(node, positive):
            found.setdefault(boundary, Meeting(node)).sides.append(sides)
    return found


def over_the_reals(node: Node) -> Sequence[Node]:
    """The arguments that a node reads where all numbers are finite; of two equal branches one."""
    if node.op != "where":
        return node.args
    one, other = node.args[1:]
    if one is other or (number(one) is not None and number(one) == number(other)):
        return (one,)
    chosen = _chosen(node.args[0])
    return node.args if chosen is None else node.args[1:2] if chosen else node.args[2:]


def _chosen(condition: Node) -> bool | None:
    """Does a comparison with an infinity hold for all numbers, or for none?"""
    condition = bare(condition)
    if condition.op == "logical_not":
        chosen = _chosen(condition.args[0])
        return None if chosen is None else not chosen
    if condition.op not in COMPARISONS:
        return None
    for op, one in zip((condition.op, TURNED.get(condition.op, condition.op)), (1, 0), strict=True):
        infinity = bare(condition.args[one])
        if infinity.op == "constant" and infinity.dtype.is_float:
            value = infinity.attributes["value"].value
            if value in (float("inf"), float("-inf")):
                below, _, above = _SIDES[op]
                return bool(below if value > 0 else above)
    return None


def changes(node: Node, positive: Names = NO_NAMES) -> Iterator[tuple[Boundary, Sides]]:
    """The boundaries of a comparison of reals, each with what is chosen on its sides."""
    if not node.args or not node.args[0].dtype.is_float:
        return
    if node.op in COMPARISONS:
        left, right = node.args
        yield from _compared(node.op, left, right, positive)
    elif node.op == "sign":
        yield from _against(node.op, node.args[0], Fraction(0), positive)
    elif node.op == "copysign":
        yield from _against(node.op, node.args[1], Fraction(0), positive)
    elif node.op == "cast" and node.dtype == bool_:
        yield from _against("ne", node.args[0], Fraction(0), positive)


def kinked(node: Node, positive: Names = NO_NAMES) -> Iterator[Boundary]:
    """The boundaries on which a node of forward may have no derivative."""
    if node.op in ("abs", "relu", "sqrt", "root"):
        found = _against("gt", node.args[0], Fraction(0), positive)
    elif node.op in ("maximum", "minimum"):
        pairs = combinations(_operands(node), 2)
        found = chain(*(_compared("gt", *two, positive) for two in pairs))
    elif node.op in EXTREMES_ALONG:
        found = iter([(Boundary(bare(node.args[0]), node), _SIDES["eq"])])
    elif node.op == "where":
        if may_be_nan(node):
            return
        found = changes(node.args[0], positive)
    else:
        found = changes(node, positive)
    for boundary, _ in found:
        yield boundary


def edges(node: Node) -> Iterator[Boundary | Node]:
    """Where a comparison of integers changes: ``x == 0`` and ``x == 1`` for ``floor(x) == 0``.

    Where that is more than a number, the nodes that round.
    """
    left, right = node.args
    first, second = number(left), number(right)
    if second is not None:
        yield from _edges(node.op, left, second)
    elif first is not None:
        yield from _edges(TURNED.get(node.op, node.op), right, first)
    else:
        yield from (*roundings(left), *roundings(right))


def _edges(op: str, point: Node, value: Fraction) -> Iterator[Boundary | Node]:
    while (simpler := _simpler(point, value)) is not None:
        point, value, turned = simpler
        op = TURNED.get(op, op) if turned else op
    if number(point) is not None:
        return
    if point.op in _STEPS:
        for one in _STEPS[point.op](op, value):
            yield Boundary(*_solved(point.args[0], one))
        return
    parts = _parts(op, point, value)
    if parts is None:
        yield from roundings(point)
    for part in parts or ():
        yield from _edges(*part)


def _solved(point: Node, value: Fraction) -> tuple[Node, Fraction]:
    """An equation with the same solutions."""
    while (simpler := _simpler(point, value)) is not None:
        point, value, _ = simpler
    return point, value


def _of_floor(op: str, value: Fraction) -> list[Fraction]:
    low, high = Fraction(math.ceil(value)), Fraction(math.floor(value) + 1)
    if op in ("eq", "ne"):
        return [low, high] if value.denominator == 1 else []
    return [low] if op in ("lt", "ge") else [high]


def _of_ceil(op: str, value: Fraction) -> list[Fraction]:
    return [-one for one in reversed(_of_floor(TURNED.get(op, op), -value))]


def _of_trunc(op: str, value: Fraction) -> list[Fraction]:
    if value == 0 and op in ("eq", "ne"):
        return [Fraction(-1), Fraction(1)]
    upward = value > 0 or (value == 0 and op in ("le", "gt"))
    return (_of_floor if upward else _of_ceil)(op, value)


def _of_round(op: str, value: Fraction) -> list[Fraction]:
    return [one - Fraction(1, 2) for one in _of_floor(op, value)]


_STEPS = {"floor": _of_floor, "ceil": _of_ceil, "trunc": _of_trunc, "round": _of_round}


def roundings(node: Node) -> list[Node]:
    """The nodes that round reals, of those that integers are made of."""
    return [
        one for one in ancestors([node], follow=_values)
        if one.op in (*_STEPS, "floordiv") and inputs_of(one)
    ]  # fmt: skip


def _compared(
    op: str, left: Node, right: Node, positive: Names
) -> Iterator[tuple[Boundary, Sides]]:
    first, second = number(left), number(right)
    if (first is not None and second is not None) or (integral(left) and integral(right)):
        return
    if second is not None:
        yield from _against(op, left, second, positive)
    elif first is not None:
        yield from _against(TURNED.get(op, op), right, first, positive)
    elif _infinite(left) or _infinite(right):
        return
    else:
        yield from _pair(op, left, right, positive)


_ROUNDING = ("floor", "ceil", "trunc", "round", "floordiv", "size", "iota")
_AMONG_INTEGERS = frozenset((
    *_MOVED, "slice", "concat", "unslice", "sum", "diagonal", "cumsum", "index", "index_add", "neg",
    "add", "sub", "mul", "square", "abs", "relu", "maximum", "minimum", "where", *EXTREMES_ALONG,
))  # fmt: skip


def integral(node: Node) -> bool:
    """Are all its elements integers, such as those of ``clamp(floor(x), 0, 9)``?

    A comparison of integers holds on whole intervals: it has no null set, and the normal form
    proves both of its cases.
    """
    found: dict[Node, bool] = {}
    for one in ancestors([node], follow=_summands):
        found[one] = _integral(one, [found[arg] for arg in _summands(one)])
    return found[node]


def _summands(node: Node) -> Sequence[Node]:
    """The arguments that have to be integers for a node to be integers; none where it is none."""
    return _values(node) if node.op in _AMONG_INTEGERS or node.op == "cast" else ()


def _values(node: Node) -> Sequence[Node]:
    """The arguments whose elements a node is made of."""
    if not node.dtype.is_float or node.op in _ROUNDING:
        return ()
    if node.op == "index":
        return node.args[:1]
    return node.args[1:] if node.op == "where" else node.args


def _integral(node: Node, args: Sequence[bool]) -> bool:
    if not node.dtype.is_float or node.op in _ROUNDING:
        return True
    if node.op == "constant":
        value = number(node)
        return value is not None and value.denominator == 1
    return (node.op in _AMONG_INTEGERS or node.op == "cast") and bool(args) and all(args)


def may_be_nan(node: Node) -> bool:
    """Is NaN one of the two values that it chooses from?  Where it is chosen there is no value."""
    constants = (one for one in map(bare, node.args[1:]) if one.op == "constant")
    values = (one.attributes["value"].value for one in constants)
    return node.op == "where" and any(isinstance(v, float) and math.isnan(v) for v in values)


def _infinite(node: Node) -> bool:
    node = bare(node)
    return node.op == "constant" and number(node) is None


def _against(
    op: str, point: Node, value: Fraction, positive: Names
) -> Iterator[tuple[Boundary, Sides]]:
    """The changes of ``point <op> value``."""
    point, value, turned = _simplest(point, value, positive)
    if number(point) is not None or integral(point):
        return
    if turned:
        op = TURNED.get(op, op)
    if op in COMPARISONS:
        parts = _parts(op, point, value)
        if parts is not None:
            for part, node, number_ in parts:
                yield from _against(part, node, number_, positive)
            return
    if value == 0 and point.op == "sub":
        left, right = point.args
        yield from _pair(op, left, right, positive)
        return
    sides = _SIDES[op][::-1] if turned and op not in COMPARISONS else _SIDES[op]
    inner = _vanishing(point, sides) if value == 0 else None
    if inner is not None:
        for boundary, _ in _against("eq", inner[0], value, positive):
            yield boundary, inner[1]
    elif not kept_from(point, value):
        yield Boundary(point, value), sides


def _simplest(point: Node, value: Fraction, positive: Names) -> tuple[Node, Fraction, bool]:
    """The simplest equation with the same solutions; whether above and below are exchanged."""
    turned = False
    while (simpler := _simpler(point, value, positive)) is not None:
        point, value, turns = simpler
        turned ^= turns
    return point, value, turned


def _vanishing(point: Node, sides: Sides) -> tuple[Node, Sides] | None:
    """What is 0 where a square or a product is, and what is chosen beside that and there."""
    if point.op in ("abs", "square") or is_square(point):
        return point.args[0], (sides[2], sides[1], sides[2])
    real = _real_factor(point)
    return None if real is None else (real, _UNKNOWN)


def _pair(op: str, left: Node, right: Node, positive: Names) -> Iterator[tuple[Boundary, Sides]]:
    """The changes of ``left - right <op> 0``, neither of them a number."""
    if bare(right).op in _EXTREMES and _plain(right):
        yield from _with_extreme(op, left, bare(right), positive)
    elif bare(left).op in _EXTREMES and _plain(left):
        yield from _with_extreme(TURNED.get(op, op), right, bare(left), positive)
    elif op in COMPARISONS and "where" in (left.op, right.op):
        chosen, other = (left, right) if left.op == "where" else (right, left)
        turned = op if chosen is left else TURNED.get(op, op)
        for branch in chosen.args[1:]:
            yield from _compared(turned, branch, other, positive)
    elif left is not right and _sign(left, positive) * _sign(right, positive) >= 0:
        sides = _SIDES[op]
        if left.index < right.index:
            left, right, sides = right, left, sides[::-1]
        yield Boundary(left, right), sides


_EXTREMES = ("maximum", "minimum", *EXTREMES_ALONG)


def _plain(node: Node) -> bool:
    """Is an extreme compared as it is, or is it the extreme of an axis?"""
    return node.op in _EXTREMES or bare(node).op in EXTREMES_ALONG


def _with_extreme(
    op: str, other: Node, extreme: Node, positive: Names
) -> Iterator[tuple[Boundary, Sides]]:
    """The changes of ``other <op> max(...)``: who is one of the operands never exceeds them."""
    if extreme.op in EXTREMES_ALONG:
        if bare(other) is bare(extreme.args[0]):
            yield Boundary(bare(other), extreme), _SIDES["eq"]
        else:
            yield (
                Boundary(extreme, other)
                if other.shape == extreme.shape
                else (Boundary(other, extreme)),
                _SIDES["eq"],
            )
        return
    operands, least = _operands(extreme), extreme.op == "minimum"
    if other in operands:
        op = (_AT_LEAST if least else _AT_MOST)[TURNED.get(op, op)]
        op = TURNED.get(op, op)
    elif op in ("eq", "ne"):
        for first, second in combinations(operands, 2):
            yield from _compared("gt", first, second, positive)
    for one in operands if op else ():
        if one is not other:
            yield from _compared(op, other, one, positive)


def _operands(extreme: Node) -> list[Node]:
    """The operands of nested maxima, or minima."""
    found, todo = [], [extreme]
    while todo:
        node = todo.pop()
        if node.op == extreme.op:
            todo += node.args
        elif node not in found:
            found.append(node)
    return found


def is_square(node: Node) -> bool:
    """Is it a product of a node with itself?"""
    return node.op == "mul" and node.args[0] is node.args[1]


def _never(point: Node, value: Fraction) -> bool:
    """Do the bounds of an op keep it from a value?"""
    scalar = get(point.op).scalar
    if scalar is None or scalar.bounds is None:
        return False
    low, high, is_open = scalar.bounds.low, scalar.bounds.high, scalar.bounds.open
    if low is not None and (value < low or (is_open and value == low)):
        return True
    return high is not None and (value > high or (is_open and value == high))


def kept_from(node: Node, value: Fraction) -> bool:
    """Does a choice keep it from a value, as ``where(x == 0, 1, x)`` keeps it from 0?

    Where it jumps over the value is where the comparison changes.
    """
    node = bare(node)
    if node.op != "where":
        return False
    asked, turned = bare(node.args[0]), False
    if asked.op == "logical_not":
        asked, turned = bare(asked.args[0]), True
    if asked.op not in ("eq", "ne"):
        return False
    chosen, other = node.args[1:] if (asked.op == "eq") is not turned else node.args[:0:-1]
    known = number(chosen)
    sides = [number(side) for side in asked.args]
    if known is None or known == value or value not in sides:
        return False
    left = asked.args[1 - sides.index(value)]
    return bare(left) is bare(other) and left.shape == other.shape == node.shape


def _grows(node: Node) -> bool:
    """Is it a growing function of its argument?"""
    scalar = get(node.op).scalar
    return scalar is not None and scalar.growing


def _simpler(
    point: Node, value: Fraction, positive: Names = NO_NAMES
) -> tuple[Node, Fraction, bool] | None:
    """An equation with the same solutions, and whether above and below are exchanged."""
    if point.op in _MOVED or (point.op == "cast" and point.args[0].dtype.is_float):
        return point.args[0], value, False
    if point.op == "neg":
        return point.args[0], -value, True
    if _AT_ZERO.get(point.op) == value:
        return point.args[0], Fraction(0), False
    if point.op == "log" and value == 0:
        return point.args[0], Fraction(1), False
    if point.op not in ("add", "sub", "mul", "div"):
        return None
    left, right = point.args
    second = number(right)
    if second is not None:
        if point.op in ("add", "sub"):
            return left, value - second if point.op == "add" else value + second, False
        if second != 0:
            return left, value / second if point.op == "mul" else value * second, second < 0
    return _without_first(point, value) or _without_factor(point, value, positive)


_AT_ZERO = {
    "exp": 1, "expm1": 0, "log1p": 0, "tanh": 0, "sinh": 0, "asinh": 0, "atan": 0, "erf": 0,
    "sigmoid": Fraction(1, 2),
}  # fmt: skip
"""The values of growing functions at 0."""


def _without_first(point: Node, value: Fraction) -> tuple[Node, Fraction, bool] | None:
    """The same where the first operand is a number."""
    first, right = number(point.args[0]), point.args[1]
    if first is None:
        return None
    if point.op == "add":
        return right, value - first, False
    if point.op == "sub":
        return right, first - value, True
    if point.op == "mul" and first != 0:
        return right, value / first, first < 0
    return None


def _without_factor(
    point: Node, value: Fraction, positive: Names
) -> tuple[Node, Fraction, bool] | None:
    """The same without a positive input or size as a factor, or as what is divided by."""
    left, right = point.args
    if value == 0 and point.op in ("mul", "div"):
        if _is_positive(right, positive) or _is_extent(right):
            return left, value, False
        if point.op == "mul" and (_is_positive(left, positive) or _is_extent(left)):
            return right, value, False
    return None


def _real_factor(point: Node) -> Node | None:
    """The factor of a product that is 0 on a null set, beside one of sizes and indices alone.

    Where that one is 0 all is decided, and the normal form proves it; its sign is not known.
    """
    if point.op != "mul" and (point.op != "div" or not _is_given(point.args[1])):
        return None
    left, right = point.args
    if _is_given(left) is _is_given(right):
        return None
    return right if _is_given(left) else left


def _is_given(node: Node) -> bool:
    """Is it made of sizes, indices and numbers alone?"""
    return all(one.op != "input" for one in ancestors([node]))


def _sign(node: Node, positive: Names) -> int:
    """1 for a positive input, -1 for the negative of one, 0 where that is not known."""
    node, turned = bare(node), 1
    while node.op == "neg":
        node, turned = bare(node.args[0]), -turned
    return turned if _is_positive(node, positive) else 0


def _is_extent(node: Node) -> bool:
    """Is it a number of elements, at least 1?"""
    node = bare(node)
    return node.op == "size" and node.attributes["dim"].at_least(1, least_size=1)


def _is_positive(node: Node, positive: Names) -> bool:
    """Is it a positive input, moved or not?"""
    node = bare(node)
    return node.op == "input" and node.attributes["name"] in positive


_Parts = list[tuple[str, Node, Fraction]]


def _parts(op: str, point: Node, value: Fraction) -> _Parts | None:
    """The comparisons that ``point <op> value`` is made of; None where it is one by itself."""
    if point.op in ("maximum", "minimum", "relu"):
        return _of_greatest(op, point, value)
    if point.op == "where":
        return [(op, branch, value) for branch in point.args[1:]]
    if point.op == "sign":
        same = {(op, Fraction(0)): op, ("eq", Fraction(1)): "gt", ("eq", Fraction(-1)): "lt"}
        return [(same.get((op, value), "eq"), point.args[0], Fraction(0))]
    if (value < 0 and is_square(point)) or _never(point, value):
        return []
    if point.op == "abs" and value > 0:
        inner = point.args[0]
        return [(op, inner, value), (TURNED.get(op, op), inner, -value)]
    return None


def _of_greatest(op: str, point: Node, value: Fraction) -> _Parts:
    least = point.op == "minimum"
    args = list(point.args)
    numbers = [number(arg) for arg in args]
    if point.op == "relu":
        numbers.append(Fraction(0))
    bound = next((one for one in numbers if one is not None), None)
    free = [arg for arg, one in zip(args, numbers, strict=False) if one is None]
    part = op
    if bound is not None and bound == value:
        part = (_AT_LEAST if least else _AT_MOST)[op]
    elif bound is not None and (bound < value) == least:
        return []
    return [(part, arg, value) for arg in free] if part else []


_AT_MOST = {"eq": "le", "ne": "gt", "le": "le", "gt": "gt", "lt": "", "ge": ""}
"""What ``max(u, b) <op> b`` says of u; nothing where it always holds, or never."""
_AT_LEAST = {"eq": "ge", "ne": "lt", "ge": "ge", "lt": "lt", "gt": "", "le": ""}


# -- are both sides of a boundary there?


def both_sides(boundary: Boundary) -> bool:
    """Are there points below and above the value near every point of the set?

    So it is of what is affine in each element by itself, since that has no extreme value inside;
    of growing functions of it; of what is homogeneous, at values other than 0.
    """
    point, value = boundary.point, boundary.value
    if isinstance(value, Node):
        left, right = affine(point), affine(value)
        return (left is not None and right is not None) or any(
            one.op == "input" and one.attributes["name"] not in inputs_of(other)
            for one, other in ((bare(point), value), (bare(value), point))
        )
    if affine(point) or (_grows(point) and affine(point.args[0])):
        return True
    return value != 0 and homogeneous(point) not in (None, 0)


def name_of(node: Node) -> str:
    """What a node is called in index notation where it is read as it is."""
    return str(node.attributes["name"]) if node.op == "input" else f"%{node.index}"


def source_of(node: Node) -> Node:
    """What the elements of a node are elements of."""
    while (node := bare(node)).op in ("index", "slice", *EXTREMES_ALONG) or _is_sorted(node):
        node = node.args[0]
    return node


def _is_sorted(node: Node) -> bool:
    """Are elements put where their ranks are?"""
    return node.op == "index_add" and any(
        one.op == "rank" and bare(one.args[0]) is bare(node.args[0]) for one in node.args[1:]
    )


def inputs_of(*nodes: Node) -> frozenset[str]:
    """The real inputs that nodes depend on."""
    return frozenset(
        str(node.attributes["name"])
        for node in ancestors(nodes)
        if node.op == "input" and node.dtype.is_float
    )


def affine(node: Node) -> frozenset[str] | None:
    """The inputs of what is affine in each element of each of them by itself; None otherwise."""
    found: dict[Node, frozenset[str] | None] = {}
    for one in ancestors([node]):
        found[one] = _affine(one, [found[arg] for arg in one.args])
    return found[node]


def _affine(node: Node, args: list[frozenset[str] | None]) -> frozenset[str] | None:
    if node.op == "input":
        return frozenset((str(node.attributes["name"]),) if node.dtype.is_float else ())
    known = [arg for arg in args if arg is not None]
    union = frozenset[str]().union(*known)
    if not node.dtype.is_float or len(known) < len(args):
        return None if union or len(known) < len(args) else frozenset()
    if not union or node.op in ("add", "sub", "cast") or node.op in _LINEAR:
        return union
    if node.op in ("mul", "einsum"):
        return union if len(union) == sum(map(len, known)) else None
    return union if node.op == "div" and not known[1] else None


def homogeneous(node: Node) -> Fraction | None:
    """The degree of what is multiplied by ``t**degree`` if all inputs are by t > 0."""
    found: dict[Node, Fraction | None] = {}
    for one in ancestors([node]):
        found[one] = _degree(one, [found[arg] for arg in one.args])
    return found[node]


def _degree(node: Node, degrees: list[Fraction | None]) -> Fraction | None:
    if node.op == "input":
        return Fraction(1 if node.dtype.is_float else 0)
    known = [one for one in degrees if one is not None]
    if len(known) < len(degrees):
        return None
    if not any(known):
        return Fraction(0) if not inputs_of(node) else None
    if node.op in ("mul", "einsum"):
        return sum(known, Fraction(0))
    if node.op == "div":
        return known[0] - known[1]
    if node.op in ("sqrt", "root"):
        return known[0] / 2
    if node.op == "square":
        return 2 * known[0]
    same = ("cast", "abs", "relu", "add", "sub", "maximum", "minimum", "hypot", *EXTREMES_ALONG)
    return known[0] if node.op in (*_LINEAR, *same) and len(set(known)) == 1 else None


def entangled(found: Iterable[Boundary], positive: Names = NO_NAMES) -> set[Boundary]:
    """Boundaries that meet others, so that the sides of one may depend on those of another.

    Two values of one point never meet.  Those that have an input of their own, with a number as
    its coefficient, go to either side whatever the others do.
    """
    left = list(found)
    while True:
        free = [one for one in left if _alone(one, [b for b in left if b is not one], positive)]
        if not free:
            return set(left)
        left.remove(free[0])


def _apart(one: Boundary, other: Boundary, positive: Names) -> bool:
    """Are they about one point and two values that are never the same?"""
    first, second = one.value, other.value
    if isinstance(first, Fraction) or isinstance(second, Fraction):
        both = isinstance(first, Fraction) and isinstance(second, Fraction)
        return both and one.point is other.point
    return any(
        a is c and _sign(b, positive) * _sign(d, positive) < 0
        for a, b in ((one.point, first), (first, one.point))
        for c, d in ((other.point, second), (second, other.point))
    )


def _alone(boundary: Boundary, others: list[Boundary], positive: Names) -> bool:
    own = boundary.inputs
    beside = [
        one for one in others
        if not _apart(one, boundary, positive)
    ]  # fmt: skip
    taken = frozenset[str]().union(*(one.inputs for one in beside))
    return not own & taken or bool(steep_inputs(boundary) - taken)


def steep_inputs(boundary: Boundary) -> frozenset[str]:
    """The inputs by which a boundary is crossed, wherever the others are."""
    free = _steep(boundary.point)
    if isinstance(boundary.value, Node):
        free = (free - inputs_of(boundary.value)) | (
            _steep(boundary.value) - inputs_of(boundary.point)
        )
    return free


def _steep(node: Node) -> frozenset[str]:
    """The inputs that a node is affine in, with numbers other than 0 as coefficients."""
    if node.op == "input":
        return frozenset((str(node.attributes["name"]),) if node.dtype.is_float else ())
    if node.op in (*_MOVED, "slice", "sum", "neg"):
        return _steep(node.args[0])
    if node.op in ("add", "sub"):
        left, right = node.args
        return (_steep(left) - inputs_of(right)) | (_steep(right) - inputs_of(left))
    if node.op in ("mul", "div"):
        left, right = node.args
        for one, other in ((left, right), (right, left)):
            factor = number(other)
            if factor and (node.op == "mul" or other is right):
                return _steep(one)
    return frozenset()
