"""Documented approximations of smooth functions, read as what they approximate.

In: a subject.  Out: the same with thresholds of softplus left out, and what to print.

Where forward puts NaN for what it cannot compute, as ``logcumsumexp`` does for a sum of
exponentials that underflows, it has no value, and nothing is claimed: the other branch is read.

PyTorch's softplus is its argument where that is above a threshold (20), and so is what public code
makes of it: ``where(u > T, u, log(1 + exp(u)))`` differs from ``log(1 + exp(u))`` by at most
``exp(-T)``, and so does its derivative from ``sigmoid(u)``.  What is proved is proved of the smooth
function; where the other one is read so, and by how much it differs, is printed.

That difference is at most ``exp(-u)``.  Where forward and backward make sums and products of few
factors of it alone, it stays small in the gradient, too.  Otherwise (``(softplus(x) - x) * exp(3 *
x)``) nothing is claimed above the threshold, which is printed as an exception.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ops.movement import bare
from symgrad.proof.judge.equality import facts_of
from symgrad.proof.judge.ranges import Range, Ranges, of_inputs
from symgrad.proof.oracle.numbers import Double
from symgrad.proof.oracle.sample import Point
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.oracle.values import Evaluator
from symgrad.proof.report.records import Condition
from symgrad.proof.words.code import NoSpelling
from symgrad.proof.words.relations import Said, related

_Place = tuple[Node, str, Fraction]
"""What is compared with a threshold, how, and the threshold."""

LEAST_THRESHOLD = 16
"""``exp(-16)`` is below the last place of a float32."""


def smoothed(subject: Subject) -> Subject | None:
    """The subject without thresholds of softplus; None where there are none.

    ``Subject.read_as`` then says what was read, and by how much it differs; ``Subject.beyond``
    where.
    """
    if not any(node.op == "where" for node in subject.everything.nodes):
        return None
    subject = _joined(subject)
    graph, said, beyond = Graph(), dict[str, None](), dict[_Place, None]()
    changed = False
    ranges = _ranges(subject)

    forward = {*subject.forward.nodes}

    def rule(node: Node, args: Sequence[Node]) -> Node | None:
        nonlocal changed
        kept = _number_branch(node) if node in forward else None
        if kept is not None:
            said[_NO_NUMBER.format(f" ({node.location})" if node.location else "")] = None
            return args[kept]
        within = _within_doubles(node)
        if within is not None:
            said[_DOUBLES] = None
            return args[within]
        place = _threshold(node)
        if place is None:
            return None
        changed = True
        if _reached(ranges.of(place[0]), place[2]):
            said[_sentence(node, place)] = None
            beyond[place] = None
        return args[2] if _above(node) else args[1]

    roots = [*subject.inputs, *(node for pair in subject.outputs for node in pair)]
    new = rewrite(graph, [*roots, *subject.gradients.values()], None, rule)
    if not said and not changed:
        return None
    found = subject.changed(graph=graph, new=new)
    found.read_as = (*subject.read_as, *said)
    found.beyond = (
        *found.beyond,
        *((new.get(point, point), relation, limit) for point, relation, limit in beyond),
    )
    return found


def _joined(subject: Subject) -> Subject:
    """The same with ``where(c, a, b*s)`` for ``where(c, a, 0) + where(c, 0, b)*s``.

    So torch writes the gradient of softplus, where it is one; other sums stay.
    """
    chosen: dict[Node, Node] = {}
    changed = False

    def rule(node: Node, args: Sequence[Node]) -> Node | None:
        nonlocal changed
        if node.op == "where":
            chosen[node] = args[0]
        factors = args[: _FACTORS.get(node.op, 0)]
        if conditions := [chosen[arg] for arg in factors if arg in chosen]:
            chosen[node] = conditions[0]
        one = _one_where(args[0], args[1], chosen) if node.op == "add" else None
        if one is None or _threshold(one) is None:
            return None
        changed = True
        return one

    roots = [*subject.inputs, *(node for pair in subject.outputs for node in pair)]
    new = rewrite(subject.graph, [*roots, *subject.gradients.values()], None, rule)
    return subject.changed(graph=subject.graph, new=new) if changed else subject


_FACTORS = {"mul": 2, "div": 1}
"""How many of the first arguments make 0 of a node where they are 0."""


def _one_where(left: Node, right: Node, chosen: Mapping[Node, Node]) -> Node | None:
    """What a sum is where one addend is 0 under a condition, and the other one elsewhere.

    ``chosen``: the conditions of ``where``, and of what has one as a factor.
    """
    condition = chosen.get(left)
    if condition is None or condition is not chosen.get(right):
        return None
    branches = [[_under(one, condition, so, chosen) for so in (True, False)]
                for one in (left, right)]  # fmt: skip
    for (first, other), (nothing, second) in (branches, branches[::-1]):
        if _number(other) == 0 and _number(nothing) == 0:
            return left.graph.apply("where", condition, first, second)
    return None


def _under(node: Node, condition: Node, holds: bool, chosen: Mapping[Node, Node]) -> Node:
    """A product where a condition holds, or does not; one with a factor 0 is that."""
    if chosen.get(node) is not condition:
        return node
    if node.op == "where":
        return node.args[1 if holds else 2]
    many = _FACTORS[node.op]
    factors = [_under(arg, condition, holds, chosen) for arg in node.args[:many]]
    zero = next((one for one in factors if _number(one) == 0), None)
    return zero or node.graph.apply(node.op, *factors, *node.args[many:])


def _ranges(subject: Subject) -> Ranges:
    facts = facts_of(subject.assumptions, subject.sampler.uses, subject.conditions)
    return Ranges(of_inputs(subject, facts), facts.least_sizes)


def _reached(of: Range, threshold: Fraction) -> bool:
    """May what lies in a range be above the threshold?"""
    return of.high[0] is None or of.high[0] > threshold


def _sentence(node: Node, place: _Place) -> str:
    """What the softplus of a ``where``, or its slope, is read as, and how much it differs."""
    region, bound = _region(place).text, math.exp(-place[2])
    linear, smooth = _branches(node)
    if not _is_softplus(linear, smooth, place[0]):
        return (
            f"the slope of softplus is constant where {region}; it is read as that of the smooth "
            f"function, from which it differs by at most {bound:.1e} of itself"
        )
    scale = None if linear is place[0] else _scale(place[0], linear)
    return (
        f"softplus is linear where {region}; it is read as the smooth function, from which "
        f"softplus itself differs by at most {bound / abs(scale or 1.0):.1e}"
    )


def _region(place: _Place) -> Said:
    """``x > 20``, in terms of the inputs."""
    point, relation, limit = place
    try:
        return related(point, relation, limit)
    except NoSpelling:
        where = f" ({point.location})" if point.location else ""
        return Said(f"the argument of softplus is {relation} {float(limit):g}{where}", "")


def left_out(subject: Subject, name: str) -> list[Condition]:
    """The regions above thresholds for which nothing is claimed of a gradient that is proved.

    None where what softplus differs by is multiplied by a few factors at most.
    """
    if not subject.beyond or _is_multiplied_little(subject, name):
        return []
    said = (_region(place) for place in subject.beyond)
    return list(dict.fromkeys(Condition("nonzero", one.text, code=one.code) for one in said))


def is_beyond(subject: Subject, point: Point) -> bool:
    """Is some element above a threshold of softplus that is read as the smooth function?"""
    if not subject.beyond:
        return False
    program = Evaluator([place[0] for place in subject.beyond])
    with np.errstate(all="ignore"):
        values = program.run(Double(), point.doubles(), point.sizes)
    return any(bool(np.any(values[one] >= float(limit))) for one, _, limit in subject.beyond)


# -- what becomes of a small difference

MOST_FACTORS = 2
"""Of how many factors forward may be a sum of products; gradients have a cotangent besides."""
LARGEST_FACTOR = 1e3
"""A number that is multiplied by, beyond which the difference does not stay small."""
_ALIKE = frozenset((
    "add", "sub", "neg", "expand", "reshape", "permute", "slice", "unslice", "sum", "cumsum",
    "concat", "diagonal", "softplus", "log_sigmoid", "silu",
))  # fmt: skip
_BOUNDED = frozenset(("sigmoid", "tanh"))


def _is_multiplied_little(subject: Subject, name: str) -> bool:
    outputs = [node for node, _ in subject.outputs]
    gradient = subject.gradients[name]
    degrees = _degrees([*outputs, gradient], {place[0] for place in subject.beyond})
    return degrees[gradient] <= MOST_FACTORS + 1 and all(
        degrees[node] <= MOST_FACTORS for node in outputs
    )


def _degrees(roots: Sequence[Node], points: set[Node]) -> dict[Node, float]:
    """Of how many factors nodes are sums of products; infinite for what is anything else.

    Sigmoids and tanh are no factors; an argument of softplus is one, and so is what depends on none
    of the inputs that such an argument depends on.
    """
    moving = {node for node in ancestors(points) if node.op == "input" and node.dtype.is_float}
    found: dict[Node, float] = {}
    for node in ancestors([*roots, *points]):
        if any(arg in moving for arg in node.args):
            moving.add(node)
            degree = _degree(node, found, moving)
            found[node] = min(degree, 1.0) if node in points and degree < math.inf else degree
        else:
            found[node] = float(node.op == "input" or any(found[arg] > 0 for arg in node.args))
    return found


def _degree(node: Node, found: Mapping[Node, float], moving: set[Node]) -> float:
    most = max(found[arg] for arg in node.args)
    if node.op in _ALIKE or (node.op == "cast" and node.dtype.is_float):
        return most
    if node.op in _BOUNDED:
        return 0.0 if most <= 1 else math.inf
    if node.op in ("mul", "einsum"):
        large = any(abs(_number(arg) or 0) > LARGEST_FACTOR for arg in node.args)
        return math.inf if large else sum(found[arg] for arg in node.args)
    if node.op == "square":
        return 2 * most
    if node.op == "where" and node.args[0] not in moving:
        return max(found[arg] for arg in node.args[1:])
    if node.op == "pow":
        power = _number(node.args[1])
        if power is not None and power >= 1 and power == int(power):
            return power * found[node.args[0]]
    if node.op == "div":
        return _degree_of_quotient(node, found, moving)
    of = next((one for one in found if _is_log1p_exp(node, one)), None) if _may_be(node) else None
    return math.inf if of is None else found[of]


def _may_be(node: Node) -> bool:
    return node.op in ("log1p", "log", "logaddexp")


def _degree_of_quotient(node: Node, found: Mapping[Node, float], moving: set[Node]) -> float:
    """Of what is divided by something else, or is a sigmoid, times something else."""
    above, below = node.args
    if below not in moving:
        small = abs(_number(below) or 1) < 1 / LARGEST_FACTOR
        return math.inf if small else found[above] + found[below]
    if below.op != "add":
        return math.inf
    for exponent in (arg.args[0] for arg in below.args if arg.op == "exp"):
        if not _is_one_more(below, exponent) or found[exponent] > 1:
            continue
        if above not in moving:
            return found[above]
        if _is_exp(above, exponent):
            return 0.0
        for arg, other in (above.args, above.args[::-1]) if above.op == "mul" else ():
            if _is_exp(arg, exponent):
                return found[other]
    return math.inf


# -- what is an approximation


_NO_NUMBER = "forward is not NaN{}"
_DOUBLES = "numbers compared with the greatest double are less"


def _within_doubles(node: Node) -> int | None:
    """Which branch a ``where`` takes where what it compares is less than the greatest double."""
    if node.op != "where" or node.args[0].op not in ("gt", "ge", "lt", "le"):
        return None
    above = node.args[0].op in ("gt", "ge")
    for side, limit in enumerate(node.args[0].args):
        value = _number(limit)
        if value is not None and abs(value) == sys.float_info.max:
            return 1 if (value < 0) == (above == (side == 1)) else 2
    return None


def _number_branch(node: Node) -> int | None:
    """Which branch a ``where`` takes where it is a number, if the other one is NaN."""
    if node.op != "where":
        return None
    for nothing, other in ((1, 2), (2, 1)):
        value = _number(node.args[nothing])
        if value is not None and math.isnan(value):
            return other
    return None


def _above(node: Node) -> bool:
    """Is the condition of a ``where`` that something is above a number?"""
    return node.args[0].op in ("gt", "ge")


def _branches(node: Node) -> tuple[Node, Node]:
    """The linear branch of a ``where``, and the other one."""
    _, first, second = node.args
    return (first, second) if _above(node) else (second, first)


def _threshold(node: Node) -> _Place | None:
    """Above which number a ``where`` takes the linear branch of softplus, or its slope."""
    if node.op != "where" or node.args[0].op not in ("gt", "ge", "lt", "le"):
        return None
    compared, limit = node.args[0].args
    number = bare(limit)
    if number.op != "constant":
        return None
    threshold = float(number.attributes["value"].value)
    if not LEAST_THRESHOLD <= threshold < math.inf:
        return None
    linear, smooth = _branches(node)
    matches = _is_softplus(linear, smooth, compared) or _is_slope(linear, smooth, compared)
    relation = ">" if node.args[0].op in ("gt", "le") else ">="
    return (compared, relation, Fraction(threshold)) if matches else None


def _is_softplus(linear: Node, smooth: Node, of: Node) -> bool:
    """Are the branches ``s*u`` and ``s*log(1 + exp(u))``, for one scale s?"""
    if linear is of:
        return _is_log1p_exp(smooth, of)
    scale = _scale(of, linear)
    if scale is None or smooth.op not in ("div", "mul"):
        return False
    inner, by = smooth.args
    if smooth.op == "mul" and not _is_log1p_exp(inner, of):
        inner, by = by, inner
    number = _number(by)
    if number is None or not _is_log1p_exp(inner, of):
        return False
    return number == scale if smooth.op == "div" else number * scale == 1


def _scale(of: Node, linear: Node) -> float | None:
    """b, where ``of`` is ``b * linear``."""
    if of.op != "mul" or linear not in of.args:
        return None
    return _number(of.args[1] if of.args[0] is linear else of.args[0])


def _number(node: Node) -> float | None:
    origin = bare(node)
    return float(origin.attributes["value"].value) if origin.op == "constant" else None


def _is_log1p_exp(node: Node, of: Node) -> bool:
    if node.op == "softplus":
        return node.args[0] is of
    if node.op == "log1p":
        return _is_exp(node.args[0], of)
    if node.op == "log":
        return _is_one_more(node.args[0], of)
    return node.op == "logaddexp" and any(
        left is of and _number(right) == 0 for left, right in (node.args, node.args[::-1])
    )


def _is_exp(node: Node, of: Node) -> bool:
    return node.op == "exp" and node.args[0] is of


def _is_one_more(node: Node, of: Node) -> bool:
    """Is it ``1 + exp(u)``?"""
    return node.op == "add" and any(
        _number(left) == 1 and _is_exp(right, of) for left, right in (node.args, node.args[::-1])
    )


def _is_slope(linear: Node, smooth: Node, of: Node) -> bool:
    """Are the branches ``a`` and ``a*sigmoid(u)``, but for the order of factors?"""
    number, above, below = _factors(smooth)
    for one in above:
        if _is_sigmoid(one, of):
            break
        if _is_exp(one, of) and (
            divisor := next((it for it in below if _is_one_more(it, of)), None)
        ):
            below[divisor] -= 1  # a*exp(u)/(1 + exp(u)), as torch writes it
            break
    else:
        return False
    above[one] -= 1
    return (number, +above, +below) == _factors(linear)


def _factors(node: Node) -> tuple[Fraction, Counter[Node], Counter[Node]]:
    """A node as a number times some nodes, divided by others."""
    value = _number(node)
    if value is not None and math.isfinite(value):
        return Fraction(value), Counter(), Counter()
    if node.op not in ("mul", "div"):
        return Fraction(1), Counter([node]), Counter()
    found = {arg: _factors(arg) for arg in node.args}
    (number, above, below), (other, more, less) = (found[arg] for arg in node.args)
    if node.op == "mul":
        return number * other, above + more, below + less
    if not other:
        return Fraction(1), Counter([node]), Counter()
    return number / other, above + less, below + more


def _is_sigmoid(node: Node, of: Node) -> bool:
    if node.op == "sigmoid":
        return node.args[0] is of
    return (
        node.op == "div" and _is_exp(node.args[0], of) and _is_one_more(node.args[1], of)
    )  # fmt: skip
