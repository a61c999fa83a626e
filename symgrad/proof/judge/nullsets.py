"""Is a gradient that is right almost everywhere right where its comparisons hold exactly, too?

In: a ``Prover`` and a gradient that it proved.  Out: the boundaries (``boundaries.py``) on which
that is not known.

Where forward has no derivative nothing is claimed, and the report names the kink.  What is left
is a boundary that backward alone knows, or on which forward is smooth all the same:

1. if everything on the boundary is as it is on one of its sides, which is there, the gradient is
   the limit of right values there, and so it is right;
2. otherwise the goal is proved again with the relation forced: each element of the point is
   replaced by the value wherever an arbitrary mask says so, for all boundaries together, since
   inputs may lie on several of them; comparisons of forward that change there are arbitrary;
3. what is not proved by that is tried at points of the boundary (``oracle/corners.py``), and
   printed where these refute nothing.

A boundary that lies in the values of other inputs alone (``t == 1``, for the gradient of x) is no
kink: there forward is a function of the input as anywhere, and labels have such values.  The goal
is proved again with forward as it is there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product

import numpy as np

from symgrad.budgets import NULL_SET_FAILURES, NULL_SET_WORK
from symgrad.errors import SymgradError
from symgrad.index.lower import Lowering
from symgrad.ir.assume import Assumption
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import bool_, float64
from symgrad.ir.expr import Access, Expr, rebuild
from symgrad.ir.graph import Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ir.types import TensorType
from symgrad.ops.logic import COMPARISONS
from symgrad.ops.movement import bare
from symgrad.ops.record import get
from symgrad.proof.judge.boundaries import (
    Boundary,
    Meeting,
    both_sides,
    boundaries,
    changes,
    entangled,
    kinked,
    name_of,
    over_the_reals,
    source_of,
)
from symgrad.proof.judge.ends import closed_ends, has_inner_side
from symgrad.proof.judge.goals import Equal, Goal, definitions
from symgrad.proof.judge.kinks import bends, equation, untaken
from symgrad.proof.judge.masks import masks_of, name_of_mask
from symgrad.proof.judge.reference import gradient, gradient_indices
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.records import Condition
from symgrad.proof.words.code import NoSpelling

FEW, MANY = 8, 64
"""How many boundaries are compared with one another at once, and at all."""
KIND = "null set"
"""The kind of a condition that leaves one out."""
MOST_FORCED = 6
LARGEST = 2**53
LARGEST_PART = 1000
DISCRETE = ("binary", "one-hot")
"""Declared kinds of numbers that equal others on more than null sets: the normal form decides."""


def doubtful(subject: Subject, name: str) -> dict[Boundary, Meeting]:
    """The boundaries on which a gradient is no limit of its own values from one side.

    Those that are ``fixed`` for the input are among them, also where forward alone compares.
    """
    return {**_unlike_beside(subject, name), **fixed(subject, name)}


def fixed(subject: Subject, name: str) -> dict[Boundary, Meeting]:
    """The values of other inputs at which a gradient has to be that of forward as it is there.

    Single values of inputs, and equal inputs.
    """
    roots = [subject.gradients[name], *(node for node, _ in subject.outputs)]
    found = boundaries(ancestors(roots, follow=over_the_reals), positive_inputs(subject))
    discrete = {a.name for a in subject.assumptions if a.kind in DISCRETE}
    return {
        boundary: meeting for boundary, meeting in found.items()
        if boundary.inputs and boundary.inputs <= {*subject.by_name} - {name}
        and not meeting.one_sided
        and all(bare(one).op == "input" for one in (boundary.point, boundary.value)
                if isinstance(one, Node))
        and not _decided(boundary, discrete)
        and not any(_excludes(one, boundary) for one in subject.assumptions)
    }  # fmt: skip


def _unlike_beside(subject: Subject, name: str) -> dict[Boundary, Meeting]:
    needed = ancestors([subject.gradients[name]], follow=over_the_reals)
    discrete = {a.name for a in subject.assumptions if a.kind in DISCRETE}
    found = {
        boundary: meeting
        for boundary, meeting in boundaries(needed, positive_inputs(subject)).items()
        if boundary.inputs
        and not _decided(boundary, discrete)
        and not any(_excludes(one, boundary) for one in subject.assumptions)
    }
    if not found:
        return {}
    if len(found) <= FEW:
        found = _unsafe(subject, found)
    if not found:
        return {}
    kinks = named(subject, found)
    one_sided = {b for b, meeting in found.items() if meeting.one_sided and b in kinks}
    others = {b: meeting for b, meeting in found.items() if b not in one_sided}
    beside = {b: meeting for b, meeting in others.items() if b not in kinks}
    unsafe = _unsafe(subject, beside) if len(beside) <= MANY else beside
    return {b: meeting for b, meeting in others.items() if b in kinks or b in unsafe}


def every(subject: Subject, name: str) -> dict[Boundary, Meeting]:
    """All boundaries that a gradient depends on, but for those that are excluded by declaration.

    On a set without inside points, what is so on one side says nothing of the boundary.
    """
    needed = ancestors([subject.gradients[name]], follow=over_the_reals)
    return {
        boundary: meeting
        for boundary, meeting in boundaries(needed, positive_inputs(subject)).items()
        if boundary.inputs and not any(_excludes(one, boundary) for one in subject.assumptions)
    }


def positive_inputs(subject: Subject) -> frozenset[str]:
    """The inputs that are declared positive, plain numbers among them."""
    return frozenset(
        one.name for one in subject.assumptions
        if one.kind == "positive"
        or (one.low is not None and (one.low > 0 or (one.low == 0 and one.low_open)))
    )  # fmt: skip


def _decided(boundary: Boundary, discrete: set[str]) -> bool:
    """Is it about single elements that are 0 or 1 by declaration?"""
    return isinstance(boundary.value, Fraction) and name_of(boundary.point) in discrete


def _excludes(declared: Assumption, boundary: Boundary) -> bool:
    """Is no element of an input the value, by declaration?"""
    value = boundary.value
    if not isinstance(value, Fraction) or name_of(boundary.point) != declared.name:
        return False
    if declared.kind == "interval":
        low, high = declared.low, declared.high
        return (low is not None and (value < low or (declared.low_open and value == low))) or (
            high is not None and (value > high or (declared.high_open and value == high))
        )
    signs = {"positive": value <= 0, "nonnegative": value < 0, "negative": value >= 0}
    return signs.get(declared.kind, declared.kind == "nonzero" and value == 0)


def _unsafe(subject: Subject, found: Mapping[Boundary, Meeting]) -> dict[Boundary, Meeting]:
    """Those of some boundaries on which not everything is as it is on some side."""
    tied = entangled(found, positive_inputs(subject)) if len(found) > 1 else set()
    closed = closed_ends(subject)
    return {
        boundary: meeting for boundary, meeting in found.items()
        if boundary in tied or not meeting.one_sided or not both_sides(boundary)
        or not has_inner_side(boundary, meeting, closed)
    }  # fmt: skip


def named(subject: Subject, found: Iterable[Boundary]) -> set[Boundary]:
    """Those of some boundaries that a report names as kinks, or as ties, of forward."""
    positive = positive_inputs(subject)
    bending = bends(subject)
    is_untaken = untaken(subject) if bending else None
    kinks = {
        boundary for node in bending for boundary in kinked(node, positive)
        if is_untaken is None or not is_untaken(node, boundary)
    }  # fmt: skip
    sorted_ones = {source_of(node.args[0]) for node in subject.forward.nodes if node.op == "rank"}
    return {
        boundary for boundary in found
        if boundary in kinks or (
            isinstance(boundary.value, Node)
            and source_of(boundary.point) in sorted_ones
            and source_of(boundary.point) is source_of(boundary.value)
        )
    }  # fmt: skip


def unproved(
    subject: Subject, name: str, found: Mapping[Boundary, Meeting], equal: Equal,
    cuts: Iterable[Iterable[Node]], conditions: Iterable[Condition],
) -> dict[Boundary, Meeting]:  # fmt: skip
    """Those of some boundaries on which a gradient is not proved to be right.

    ``conditions``: of the proof almost everywhere; one on the boundary may rest on no others.
    ``cuts``: what is opaque, in the order in which it is tried.
    """
    asking = (*COMPARISONS, "where")
    nodes = ancestors([node for node, _ in subject.outputs], follow=over_the_reals)
    positive = positive_inputs(subject)
    bent = {b for node in nodes if node.op not in asking for b in kinked(node, positive)}
    open_ones = {b: m for b, m in found.items() if b in bent}
    own = [boundary for boundary in found if boundary not in bent]
    labels = fixed(subject, name)
    known = [*conditions]
    texts, values = {str(one) for one in known}, {one.about for one in known if one.about}

    def is_known(one: Condition) -> bool:
        return str(one) in texts or one.about in values

    def holds(some: list[Boundary]) -> bool:
        there = [one for one in some if one in labels]
        beside = _beside(subject, [one for one in some if one not in labels])
        for outputs, opaque in product(beside, cuts):
            try:
                goal = forced(subject, name, some, opaque, _as_there(subject, outputs, there))
                answer = None if goal is None else equal(goal)
            except SymgradError:
                continue
            if answer is not None and answer.equal and all(map(is_known, answer.conditions)):
                return True
        return False

    while own and not (len(own) <= MOST_FORCED and holds(own)):
        failing = own if len(own) == 1 else _failing(own, holds) or own
        open_ones.update((one, found[one]) for one in failing)
        own = [one for one in own if one not in failing]
    return open_ones


def is_settled(
    subject: Subject, boundary: Boundary, equal: Equal, opaque: Iterable[Node]
) -> bool:  # fmt: skip
    """Is the point one number, or the value, wherever it is defined, as ``x / x`` is?

    Then the comparison holds everywhere or nowhere, and was proved as it is.
    """
    point, value = boundary.point, boundary.value
    seen = _seen(subject, point, value)
    if seen is None:
        return False
    lowering = Lowering(subject.graph, opaque)
    at = gradient_indices(point.shape)
    try:
        there = lowering.element(point, at)
        other = (
            _written(lowering, seen, there) if isinstance(seen, Fraction)
            else lowering.element(seen, _places(seen, at))
        )  # fmt: skip
    except SymgradError:
        return False
    leaves = lowering.leaves()
    answer = equal(Goal(there, other, leaves, definitions(lowering), NULL_SET_WORK))
    return answer.equal and not answer.conditions


def _seen(subject: Subject, point: Node, value: Node | Fraction) -> Node | Fraction | None:
    """What a node seems to be: the other one, or the number that all elements are where drawn."""
    sizes = next(subject.sampler.size_choices(), None)
    at = None if sizes is None else subject.draw(sizes, 0)
    if at is None or not np.size(at.values.get(point, ())):
        return None
    values = np.asarray(at.values[point])
    if isinstance(value, Node):
        other = at.values.get(value)
        alike = value.shape == point.shape and other is not None and np.allclose(values, other)
        return value if alike else None
    first = float(values.flat[0])
    found = Fraction(first).limit_denominator(LARGEST_PART) if math.isfinite(first) else None
    return found if found is not None and np.allclose(values, float(found), 1e-12) else None


def _failing(own: Sequence[Boundary], holds: Callable[[list[Boundary]], bool]) -> list[Boundary]:
    """The boundaries on which it does not hold by itself; all, where it does on none of the first.

    Those of a deep network are many, and each is where forward bends.
    """
    failing: list[Boundary] = []
    for number, one in enumerate(own):
        if number == len(failing) == NULL_SET_FAILURES and len(own) > MOST_FORCED:
            return [*own]
        if not holds([one]):
            failing.append(one)
    return failing


def _beside(subject: Subject, found: Sequence[Boundary]) -> Iterator[Sequence[tuple[Node, Node]]]:
    """The outputs of forward beside some boundaries: continued, and with arbitrary comparisons."""
    wanted = set(found)
    if any(
        node.op in COMPARISONS
        and any(boundary in wanted for boundary, _ in changes(node, positive_inputs(subject)))
        for node in subject.forward.nodes
    ):
        from symgrad.proof.judge.continuation import continued  # sympy is needed here alone

        own = continued(subject, found, {a.name for a in subject.assumptions if a.kind in DISCRETE})
        if own is not None:
            yield own
    yield _freed(subject, found)


def forced(
    subject: Subject, name: str, found: Sequence[Boundary], opaque: Iterable[Node],
    outputs: Sequence[tuple[Node, Node]],
) -> Goal | None:  # fmt: skip
    """The goal of a gradient, with points that are their values wherever a mask says so.

    ``outputs``: of forward as it is beside the boundaries.  None where that cannot be said: where
    an index is computed.
    """
    if not _alike(found):
        return None
    lowering, cuts = _lowering(subject, found, opaque)
    at = gradient_indices(subject.by_name[name].shape)
    reference = gradient(lowering, outputs, name, at, through=cuts)
    hand = lowering.element(_off_branches(subject, subject.gradients[name], found), at)
    return _goal(lowering, found, hand, reference)


def forced_values(
    subject: Subject, found: Sequence[Boundary], opaque: Iterable[Node], one: Node, other: Node
) -> Goal | None:
    """The goal that two nodes are equal, with points that are their values in the same way."""
    if not _alike(found):
        return None
    lowering, _ = _lowering(subject, found, opaque)
    at = gradient_indices(one.shape)
    return _goal(lowering, found, lowering.element(one, at), lowering.element(other, at))


def _alike(found: Iterable[Boundary]) -> bool:
    return all(
        one.value.shape == one.point.shape for one in found if isinstance(one.value, Node)
    )  # fmt: skip


def _lowering(
    subject: Subject, found: Iterable[Boundary], opaque: Iterable[Node]
) -> tuple[Lowering, list[Node]]:
    """Index notation in which the points are read as they are; what it reads so."""
    own = [one.point for one in found if one.point.op != "input"]
    cuts = list(dict.fromkeys([*opaque, *own]))
    return Lowering(subject.graph, cuts), cuts


def _goal(
    lowering: Lowering, found: Iterable[Boundary], hand: Expr, reference: Expr | None
) -> Goal | None:
    points: dict[str, list[Boundary]] = {}
    for one in found:
        points.setdefault(name_of(one.point), []).append(one)
    put = _putting(lowering, points)
    goals = [hand] if reference is None else [hand, reference]
    new = rebuild(lowering.pool, goals, put)
    if lowering.forced:
        return None
    leaves = lowering.leaves()
    there = None if reference is None else new[reference]
    return Goal(new[hand], there, leaves, definitions(lowering), NULL_SET_WORK)


def _freed(subject: Subject, found: Iterable[Boundary]) -> list[tuple[Node, Node]]:
    """The outputs, where each comparison of forward that changes on a boundary is arbitrary.

    What is right for both of its values is right on the boundary: forward is one of the two on
    either side.
    """
    graph, free, positive = subject.graph, set(found), positive_inputs(subject)
    known: dict[Node, Node] = {}
    for node in subject.forward.nodes:
        if node.op in COMPARISONS and not free.isdisjoint(kinked(node, positive)):
            tensor = f"@%{node.index}"
            kind = TensorType(float64, node.shape)
            side = graph.inputs.get(tensor) or graph.input(tensor, kind)
            known[node] = graph.binary("gt", side, 0.0)
    if not known:
        return list(subject.outputs)
    new = rewrite(graph, [node for node, _ in subject.outputs], known, named=False)
    return [(new[node], cotangent) for node, cotangent in subject.outputs]


def _as_there(
    subject: Subject, outputs: Sequence[tuple[Node, Node]], found: Sequence[Boundary]
) -> list[tuple[Node, Node]]:
    """The outputs where elements lie on boundaries."""
    return [(_off_branches(subject, node, found), cotangent) for node, cotangent in outputs]


_ELEMENTWISE = (*COMPARISONS, "expand", "where", "logical_not")


def _off_branches(subject: Subject, root: Node, found: Sequence[Boundary]) -> Node:
    """The same where elements lie on boundaries: branches for elsewhere need no value there.

    In ``where(x == 0, a, sin(x) / x)`` the other branch reads 1 for the elements that the mask puts
    on the boundary.
    """
    graph, positive = root.graph, positive_inputs(subject)
    masks = dict(zip(found, masks_of(graph, found), strict=True))

    def rule(node: Node, args: Sequence[Node]) -> Node | None:
        asked = _without_not(node.args[0]) if node.op == "where" else node
        own = list(changes(asked, positive)) if node.op == "where" else []
        if len(own) != 1 or own[0][0] not in masks or node.args[0].op == "expand":
            return None
        boundary, sides = own[0]
        if sides not in ((False, True, False), (True, False, True)):
            return None
        turned = node.args[0].op == "logical_not"
        place = 2 if (sides[1] is not turned) else 1
        point = boundary.point
        parts = node.args[0], node.args[place]
        if not all(_elementwise(one, point) for one in parts):
            return None
        if not isinstance(boundary.value, Fraction):
            return None
        away = graph.lift(float(boundary.value + 1), point)
        put = {point: graph.apply("where", masks[boundary], away, point)}
        new = rewrite(graph, [args[place]], put, named=False)[args[place]]
        return graph.apply("where", *(new if k == place else arg for k, arg in enumerate(args)))

    return rewrite(graph, [root], None, rule, named=False)[root]


def _without_not(node: Node) -> Node:
    return node.args[0] if node.op == "logical_not" else node


def _elementwise(root: Node, point: Node) -> bool:
    """Does an element of a node depend on the same element of the point alone?"""
    moving = {point}
    for node in ancestors([root], stop=[point]):
        if node is not point and any(arg in moving for arg in node.args):
            if get(node.op).scalar is None and node.op not in _ELEMENTWISE:
                return False
            moving.add(node)
    return root in moving


def _putting(
    lowering: Lowering, points: Mapping[str, Sequence[Boundary]]
) -> Callable[[Expr, Mapping[Expr, Expr]], Expr | None]:
    """Replaces the elements of points; a mask is the sign of a tensor that nothing else reads."""
    pool = lowering.pool

    def put(part: Expr, _: object) -> Expr | None:
        if not isinstance(part, Access) or part.tensor not in points:
            return None
        result: Expr = part
        for count, boundary in enumerate(points[part.tensor]):
            value = boundary.value
            chosen = (
                _written(lowering, value, part) if isinstance(value, Fraction)
                else lowering.element(value, _places(value, part.indices))
            )  # fmt: skip
            mask = pool.access(name_of_mask(part.tensor, count), part.indices, part.dtype)
            holds = pool.call("gt", mask, pool.literal(0.0, part.dtype), dtype=bool_)
            result = pool.select(holds, chosen, result)
        return result

    return put


def _places(node: Node, indices: tuple[Dim, ...]) -> tuple[Dim, ...]:
    return tuple(
        Dim.of(0) if size == 1 else index for size, index in zip(node.shape, indices, strict=True)
    )


def _written(lowering: Lowering, value: Fraction, like: Expr) -> Expr:
    pool = lowering.pool
    top, bottom = (pool.literal(float(n), like.dtype) for n in value.as_integer_ratio())
    if max(abs(value.numerator), value.denominator) > LARGEST:
        raise SymgradError("a number has too many digits to be put for an element")
    return top if value.denominator == 1 else pool.call("div", top, bottom, dtype=like.dtype)


# -- in words


def beside_kinks(subject: Subject, found: Sequence[Boundary]) -> list[Condition]:
    """Some boundaries as conditions to print, but for those that a report names in any case."""
    known = named(subject, found)
    return [said(one, Meeting(one.point), KIND) for one in found if one not in known]


def said(boundary: Boundary, meeting: Meeting, kind: str) -> Condition:
    """A boundary as a condition to print, in terms of the inputs."""
    node = meeting.shown
    try:
        return equation(boundary, kind)
    except NoSpelling:
        where = f" at {node.location}" if node.location else ""
        return Condition(kind, f"the two sides of a comparison{where} are equal")
