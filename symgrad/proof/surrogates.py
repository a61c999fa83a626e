"""What a refuted gradient is the derivative of, where backward means another function than forward.

In: a case, the names of the inputs whose gradients are refuted.  Out: ``Meant``: a predicate, which
was proved, one for all of them; and the function as code to be declared, where that can be written.

Three things are put for parts of forward, and backward is judged against the result, as against
any forward:

- A *step* is a node that is constant around almost every point: a rounding, a sign, a comparison
  as a number.  ``slope(u) + c`` stands for it, in forward and in backward alike, with an unknown
  constant ``c`` for each element: its value stays arbitrary, its derivative is that of ``slope``.
  A *clip* (the smaller or greater one of two values) is treated likewise.  What compares a step
  reads its own value: what holds for almost all ``c`` says nothing of the few that steps take.
- A whole output may have the derivative of another node of its type: of an input, times a number,
  or of what forward computes on the way.
- A gradient that is clipped is judged as it was before.
- Forward may keep its values where only what is differentiated is another function, ``slope(u) +
  (step(u) - slope(u)).detach()``: the gradients are compared with the derivative of that, by the
  records of the ops.  Scales and limits of what is rounded may be constants there.

Candidates are tried at a few points first, up to a factor; only what fits there is proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, islice, product
from typing import Any

import numpy as np

from symgrad import fitted
from symgrad.autodiff.reverse import recorded_vjp
from symgrad.budgets import (
    REPAIR_WORK,
    SURROGATE_NODES,
    SURROGATE_PROOFS,
    SURROGATE_SCALARS,
    SURROGATE_WINDOWS,
)
from symgrad.deadline import TimeUp, passed
from symgrad.errors import SymgradError
from symgrad.ir.assume import Assumption
from symgrad.ir.dtype import bool_
from symgrad.ir.function import AppliedRule, FunctionCase, Relation
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ops.markers import without_markers
from symgrad.ops.record import get
from symgrad.proof.altered import Factor, gate, is_curved, literal_value, rescaled, without
from symgrad.proof.clips import UPWARD, IntegerLimits, limit_of, unexpanded
from symgrad.proof.elementwise import without_shape
from symgrad.proof.judge.decide import judge
from symgrad.proof.judge.protocol import structurally_linear
from symgrad.proof.multipliers import integral, multiplier
from symgrad.proof.nested import asked_once
from symgrad.proof.oracle.sample import Point
from symgrad.proof.oracle.seek import seek
from symgrad.proof.oracle.stated import moved
from symgrad.proof.oracle.subject import NoPointError, Subject
from symgrad.proof.oracle.values import DomainError
from symgrad.proof.words.code import ATOM, PRODUCT, CodeWriter, NoSpelling

SubjectOf = Callable[[FunctionCase, Sequence[Assumption]], Subject]
Slope = Callable[[Node], Node]
"""What has the derivative that is put for that of a step, of the argument of the step."""

POINTS = 4
LONGEST_CODE = 60
"""Of letters; what is longer, and has a name in forward, is called by it."""


@dataclass(frozen=True)
class Meant:
    """What gradients are the derivatives of.  ``text``: a predicate, ``is the derivative of ...``.

    ``code``: a function with these derivatives, as an expression in the arguments of forward; it
    is a proposal, which is to be judged as what a user declares is.  Empty where there is none.
    ``codes``: those of single gradients, by name, where they differ.  ``facts``: what has to be
    declared of inputs as well, in words; ``fixed``: the plain arguments that keep their values.
    """

    text: str
    code: str = ""
    codes: Mapping[str, str] = field(default_factory=dict)
    facts: tuple[tuple[str, str], ...] = ()
    fixed: tuple[str, ...] = ()


_USUAL = (0, 1, 2, 0.5, -1)
_GIVEN = ("input", "size")
_CLOSE, _NEAR = 1e-7, 1e-5


def surrogate(
    case: FunctionCase, names: Sequence[str], declared: Sequence[Assumption],
    modes: Mapping[str, str], subject_of: SubjectOf, *, recognised: bool = False,
) -> Meant | None:  # fmt: skip
    """What the gradients of some inputs are the derivatives of; None where they are plain mistakes.

    Where forward is flat and nothing was recognised, it says that, unless ``recognised``.

    ``modes``: those in which the case was sampled.  ``subject_of``: makes the subject of a case.
    What was found for one shape is so for each other one that no element tells from it.
    """
    case = replace(case, outputs=asked_once(case.outputs))
    form = without_shape(case, names)
    asked = form, tuple(names), tuple(declared), tuple(sorted(modes.items())), recognised
    known: tuple[Meant | None] | None = fitted.noted(asked) if form is not None else None
    if known is not None:
        return known[0]
    found = _found(case, names, declared, modes, subject_of, recognised)
    if form is not None and not passed():
        fitted.note(asked, (found,))
    return found


def _found(
    case: FunctionCase, names: Sequence[str], declared: Sequence[Assumption],
    modes: Mapping[str, str], subject_of: SubjectOf, recognised: bool,
) -> Meant | None:  # fmt: skip
    """What the gradients are the derivatives of, for this shape."""
    search = _Search(case, names, declared, modes, subject_of)
    flat = not recognised and search.flat and search.linear
    unnamed = "unnamed", search.names, tuple(map(str, declared))
    if flat and fitted.noted(unnamed):
        return Meant(_not_zero(search))
    with suppress(TimeUp):
        if (found := _named(search)) is not None:
            return found
    fitted.note(unnamed, True)
    return Meant(_not_zero(search)) if flat else None


def _named(search: _Search) -> Meant | None:
    """What is recognised, in the way in which it was for other shapes first."""
    ways: dict[Hashable, Callable[[_Search], Meant | None]] = {
        "altered": _of_limited if search.linear else _of_altered,
        **search.ways(),
        "positive": _of_positive,
        "integral": _of_integral,
        "coefficients": _Search.of_coefficients,
        "in clip": _in_clip,
    }
    question = "way", search.names
    for key, way in fitted.in_turn(question, ways):
        if (found := way(search)) is not None:
            fitted.note(question, key)
            return found
    return None


def _of_altered(search: _Search) -> Meant | None:
    """What is not linear in the incoming gradient, by how it was made of what is."""
    ways = (_of_clipped, _of_rescaled, _of_gate, _of_penalty)
    return next((found for way in ways if (found := way(search)) is not None), None)


def _of_clipped(search: _Search) -> Meant | None:
    """Of a gradient that is clipped, what it was before."""
    inner = search.unclipped()
    if inner is not None:
        within, clip = inner
        search = _Search(within, search.names, search.declared, search.modes, search.subject_of)
        if search.is_proved(within):
            return Meant(f"is the true gradient, {clip}")
        found = search.first()
        if found is not None:
            return Meant(f"{found.text}, {clip}")
    return None


def _of_rescaled(search: _Search) -> Meant | None:
    """Of a gradient that is scaled by its norm, or is a sign alone, what it was before."""
    if len(search.gradients) != 1:
        return None
    given = [one for one in search.case.cotangents if one is not None]
    (gradient,) = search.gradients
    if gradient.op == "sign":
        return _before(search, gradient.args[0], "of which the sign is kept")
    for one in rescaled(gradient, given):
        where = "" if one.condition is None else f" where `{_one_code(one.condition)}`"
        found = _before(search, one.inner, f"scaled by `{_product_code(one.scale)}`{where}")
        if found is not None:
            return found
    return None


def _before(search: _Search, node: Node, said: str) -> Meant | None:
    """What a gradient is the derivative of that was altered, and how that was done."""
    within = _with_gradient(search.case, search.names[0], node)
    inner = _Search(within, search.names, search.declared, search.modes, search.subject_of)
    if not inner.linear:
        return None
    if inner.is_proved(within):
        return Meant(f"is the true gradient, {said}")
    found = inner.first()
    return None if found is None else Meant(f"{found.text}, {said}")


def _product_code(factors: Sequence[Factor]) -> str:
    level = PRODUCT if len(factors) > 1 else 0
    up = [_one_code(node, level) for node, inverted in factors if not inverted]
    down = [_one_code(node, ATOM) for node, inverted in factors if inverted]
    return " / ".join([" * ".join(up) or "1", *down])


def _one_code(node: Node, level: int = 0) -> str:
    """The code of what is one value, or one for each row."""
    while node.op in ("expand", "cast"):
        node = node.args[0]
    return _code(node, level=level)


def _of_limited(search: _Search) -> Meant | None:
    """The true gradient but for limits to what forward computes, which forward does not have.

    A limit of 0 may be a branch that was mistaken, and one near to it is a guard.
    """
    below, put = {*search.below}, dict[Node, Node]()
    for node in ancestors(search.gradients):
        found = None if node in below else limit_of(node)
        if found is None or not (found[0] in put or found[0] in search.forward):
            continue
        number = literal_value(found[1])
        named = number is None and _is_argument(unexpanded(found[1]), search.inputs)
        if named or abs(number or 0) >= LEAST_LIMIT:
            put[node] = put.get(found[0], found[0])
    if not put:
        return None
    graph = search.case.graph
    new = rewrite(graph, search.gradients, put, named=False)
    case = search.case
    for one in case.gradients:
        if one.input in search.names and one.node is not None:
            case = _with_gradient(case, one.input, new[one.node])
    if not search.is_proved(case):
        return None
    values = {found[0] for node in put if (found := limit_of(node)) is not None}
    shown = [f"`{_code(node)}` in place of `{_code(inner)}`" for node, inner in put.items()
             if node not in values]  # fmt: skip
    return Meant(f"is the true gradient with {' and '.join(shown)}")


LEAST_LIMIT = 1e-3


def _is_argument(node: Node, inputs: Collection[Node]) -> bool:
    """Is it a number made of plain arguments?"""
    leaves = [one for one in ancestors([node]) if not one.args]
    return all(not one.rank and one not in inputs for one in [node, *leaves])


def _of_gate(search: _Search) -> Meant | None:
    """A gradient that asks about the incoming one, and is one of three things after each answer.

    A limit beside it may have no gradient.
    """
    case, kept = search.case, [name for name in search.names if name not in search.dropped]
    left = [node for node in search.inputs if node.attributes["name"] in search.dropped]
    limits = {unexpanded(found[1]) for node in search.forward if (found := limit_of(node))}
    if len(search.gradients) != 1 or search.place is None or not limits.issuperset(left):
        return None
    given = [one for one in case.cotangents if one is not None]
    gated = gate(search.gradients[0], given)
    if gated is None:
        return None
    parts = []
    for node in (gated.holds, gated.fails):
        part = _Search(_with_gradient(case, kept[0], node), kept, search.declared, search.modes,
                       search.subject_of)  # fmt: skip
        parts.append(part.plainly(search.inputs, case.outputs[search.place]))
    if None in parts or parts[0] == parts[1]:
        return None
    asked = _code(gated.condition)
    said = f"is no derivative: it is {parts[0]} where `{asked}`, and {parts[1]} elsewhere"
    return Meant(said + _said_constant(left))


def _of_penalty(search: _Search) -> Meant | None:
    """The true gradient, and beside it that of a penalty, which forward does not have."""
    case, names = search.case, search.names
    given = [one for one in case.cotangents if one is not None]
    if len(search.gradients) != len(names) or not given:
        return None
    written = {one.input: one.node for one in case.gradients if one.node is not None}
    added = {name: without(written[name], given) for name in names}
    rest = case
    for name in names:
        rest = _with_gradient(rest, name, written[name] - added[name])
    if not {*ancestors(added.values())} & {*search.inputs} or not search.is_proved(rest):
        return None  # a number that is added is a mistake
    by_name = {node.attributes["name"]: node for node in search.inputs}
    parts = [_total(added[name] * by_name[name]) for name in names]
    whole = sum(parts[1:], start=parts[0])
    for degree, form in product(_DEGREES, [*_squares(added.values()), whole]):
        graph = case.graph
        penalty = form if degree == 1 else form * (1 / degree)
        weight = graph.apply("input", name="of the penalty", type=penalty.type)
        own_ones = tuple(one for one in case.gradients if one.input in names)
        made = replace(case, outputs=(penalty,), cotangents=(weight,), gradients=own_ones)
        for name in names:
            own = graph.expand(weight, added[name].shape) * added[name]
            made = _with_gradient(made, name, own)
        inner = _Search(made, names, search.declared, search.modes, search.subject_of)
        if inner.fits(made) and inner.is_proved(made):
            both = "" if _unused(search) else "the true gradient, and beside it "
            said = f"the derivative of the penalty `{_code(penalty)}`, which forward does not have"
            return Meant(f"is {both}{said}, whatever the incoming gradient is")
    return None


_DEGREES = (2, 1, 4, 3)
"""Of what is homogeneous, Euler's theorem gives the function for its derivative."""


def _squares(gradients: Iterable[Node]) -> Iterator[Node]:
    """Sums of what a gradient scatters, times what that was made of: ``x.amax() * x.amax()``."""
    for node in ancestors(gradients):
        if node.op == "index_add" and node.dtype.is_float:
            below = [one for one in ancestors(node.args[:1]) if one.shape == node.args[0].shape]
            for one in islice((one for one in below if one.dtype.is_float), SURROGATE_NODES):
                yield _total(node.args[0] * one)


def _total(node: Node) -> Node:
    return node.graph.apply("sum", node, axes=tuple(range(node.rank))) if node.rank else node


def _unused(search: _Search) -> bool:
    """Does forward use none of the inputs?"""
    return {*search.below}.isdisjoint(search.inputs)


def _in_clip(search: _Search) -> Meant | None:
    """The true gradient within the limits of forward, and a curve where forward is clipped."""
    argument, case = search.inputs[0], search.case
    chains = [_chain(node, search.forward) for node in search.forward if limit_of(node) is not None]
    tops = [one for one in chains if len(one) == 2 and one[-1] is case.outputs[0]]
    if search.place is None or len(search.names) != 1 or not tops or not search.linear:
        return None
    cotangent = case.cotangents[search.place]
    if cotangent is None or len(search.gradients) != 1 or len(case.outputs) != 1:
        return None
    found = multiplier(search.gradients[0], cotangent, argument)
    if found is None or not is_curved(found, argument):
        return None
    gradient, output = search.gradients[0], case.outputs[0]
    inner = limit_of(tops[0][0])
    if inner is None or inner[0] is not argument:
        return None
    for node in tops[0]:
        limited = limit_of(node)
        assert limited is not None
        limit, below = rewrite(case.graph, [limited[1]])[limited[1]], limited[2]
        inside = case.graph.apply("gt" if below else "lt", argument, limit)
        gradient, output = (
            case.graph.apply("where", inside, one, case.graph.lift(0.0, one))
            for one in (gradient, output)
        )
    within = replace(_with_gradient(case, search.names[0], gradient), outputs=(output,))
    if not search.is_proved(within):
        return None
    return Meant(
        f"is the true gradient within the limits of forward, and not outside; it multiplies "
        f"by `{_code(found)}`"
    )


def _with_gradient(case: FunctionCase, name: str, node: Node) -> FunctionCase:
    """The case with another gradient of one input."""
    return replace(case, gradients=tuple(
        replace(one, node=node, returned=node) if one.input == name else one
        for one in case.gradients
    ))  # fmt: skip


_NOT_ZERO = "is not zero; the true gradient is: forward is constant around almost every point"


def _not_zero(search: _Search) -> str:
    """That, and what backward multiplies by where it is elementwise."""
    with suppress(SymgradError, NoSpelling):  # operands of two dtypes, or what has no spelling
        return f"{_NOT_ZERO}{_multiplied(search)}"
    return _NOT_ZERO


def _multiplied(search: _Search) -> str:
    weights = [one for one in search.case.cotangents if one is not None]
    rows = list(zip(search.gradients, weights, search.inputs, strict=False))
    found = multiplier(*rows[0]) if len(search.names) == len(weights) == len(rows) == 1 else None
    if found is None:
        return ""
    given = [one for one in ancestors([found]) if one.op == "input"]
    plain = [one for one in given if not one.rank and one not in search.inputs]
    return f"; it multiplies by `{_code(found, plain=plain)}`"


class _Search:
    """The candidates for some gradients together."""

    def __init__(
        self, case: FunctionCase, names: Sequence[str], declared: Sequence[Assumption],
        modes: Mapping[str, str], subject_of: SubjectOf,
    ) -> None:  # fmt: skip
        self.case, self.names, self.declared = case, tuple(names), declared
        self.modes, self.subject_of = dict(modes), subject_of
        given = [one.node for one in case.gradients if one.input in names]
        self.gradients = [node for node in given if node is not None]
        self.inputs = [node for node in case.inputs if node.attributes["name"] in names]
        self.proofs = 0

    # -- what forward is

    @cached_property
    def forward(self) -> list[Node]:
        """The nodes of forward that depend on the inputs."""
        depends, every = {*self.inputs}, ancestors(self.case.outputs)
        for node in every:
            if any(arg in depends for arg in node.args):
                depends.add(node)
        return [node for node in every if node in depends]

    @cached_property
    def flat(self) -> bool:
        """Is forward constant in the inputs around almost every point, for how it is built?"""
        reached = {*self.inputs}
        for node in self.forward:
            follows = node.args[1:] if node.op == "where" else node.args
            if node.dtype.is_float and not _is_flat(node) and any(a in reached for a in follows):
                reached.add(node)
        return reached.isdisjoint(self.case.outputs)

    @cached_property
    def is_flat_at_points(self) -> bool:
        """Is its derivative 0 wherever it is looked at, and does it read ranks or positions?"""
        if all(node.dtype.is_float or node.dtype == bool_ for node in self.forward):
            return False
        try:
            subject = self._subject(self.case)
            sizes = subject.sampler.small_choices(POINTS) or [{}]
            points = [subject.draw(own, number) for number, own in enumerate(POINTS * sizes)]
        except (SymgradError, NoPointError):
            return False
        known = [at for at in points if at is not None]
        return bool(known) and all(
            abs(subject.compare(at, {name: subject.direction(name, at)}).quotient) <= _CLOSE
            for at in known for name in self.names
        )  # fmt: skip

    @cached_property
    def linear(self) -> bool:
        """Are the gradients linear in the cotangents, for how they are built?"""
        return structurally_linear(self._subject(self.case))

    @cached_property
    def is_identity(self) -> bool:
        """Is the only output the only input, with its cotangent given?"""
        outputs = [_same(node) for node in self.case.outputs]
        given = self.case.cotangents[:1] != (None,)
        return given and outputs == self.inputs and len(outputs) == 1

    @cached_property
    def place(self) -> int | None:
        """Which output it is that alone has a cotangent; None where several have, or none."""
        own = [at for at, one in enumerate(self.case.cotangents) if one is not None]
        return own[0] if len(own) == 1 else None

    @cached_property
    def is_swapped(self) -> bool:
        """Is forward made of inputs that get no gradient, and the gradient that of others?"""
        kept = [node for node in self.inputs if node.attributes["name"] not in self.dropped]
        return bool(self.dropped and kept) and {*self.below}.isdisjoint(kept)

    @cached_property
    def steps(self) -> list[Node]:
        """The steps of forward that are below no other one, with an argument to follow."""
        forward, found = {*self.forward}, []
        todo = [node for node in self.case.outputs if node in forward]
        while todo:
            node = todo.pop()
            forward.discard(node)
            if not _is_step(node, self.forward):
                todo += [arg for arg in node.args if arg in forward and arg.dtype.is_float]
            elif _argument(node) is not None:
                found.append(node)
        return sorted(found, key=lambda node: node.index)

    @cached_property
    def clips(self) -> list[Node]:
        """The nodes of forward that limit a value."""
        forward = {*self.forward}
        places = [(node, _bounded(node)) for node in self.forward]
        return [node for node, at in places if at is not None and node.args[at] in forward]

    @cached_property
    def is_clip(self) -> bool:
        """Is forward one limit of an input, and nothing else?"""
        if len(self.clips) != 1 or self.clips != [*self.case.outputs]:
            return False
        (node,) = self.clips
        return node.args[_bounded(node) or 0] in self.inputs

    def unclipped(self) -> tuple[FunctionCase, str] | None:
        """The case with the gradient as it was before it was clipped, and how that was done."""
        bounds: dict[str, str] = {}
        node = self.gradients[0] if len(self.gradients) == 1 else None
        weights = [one for one in self.case.cotangents if one is not None]
        while node is not None and (found := _clipped(node, weights)) is not None:
            node, side, limit = found
            bounds[side] = _number_code(limit)
        if node is None or not bounds or not {*self.case.cotangents} & {*ancestors([node])}:
            return None
        gradients = tuple(
            replace(one, node=node, returned=node) if one.input in self.names else one
            for one in self.case.gradients
        )
        said = f"clipped to [{bounds.get('min', '-inf')}, {bounds.get('max', 'inf')}]"
        return replace(self.case, gradients=gradients), said

    # -- candidates

    def first(self) -> Meant | None:
        """The first candidate that backward is proved to be the derivative of."""
        if len(self.gradients) < len(self.names) and not self.is_swapped:
            return None
        steps = () if self.is_swapped else self._of_steps()
        question = "first", self.names
        candidates = fitted.keyed(chain(steps, self._of_outputs()), lambda one: _key(one[0]))
        for key, (make, scaled) in fitted.in_turn(question, candidates):
            found = self._tried(make, scaled)
            if found is not None:
                fitted.note(question, key)
            if found is not None or self.proofs >= SURROGATE_PROOFS:
                return found
        return None

    def ways(self) -> dict[Hashable, Callable[[_Search], Meant | None]]:
        """The first that fits; where steps are limited, with forward's values in it first."""
        if any(len(_chain(step, self.forward)) > 1 for step in self.steps):
            return {"kept": _kept_values, "first": _Search.first}
        return {"first": _Search.first, "kept": _kept_values}

    def plainly(self, inputs: Sequence[Node], output: Node) -> str | None:
        """What the gradient is, if it is the true one, 0, or the incoming one."""
        (node,) = self.gradients
        if literal_value(node) == 0:
            return "0"
        if self.is_proved(self.case):
            return "the true gradient"
        own = [one for one in inputs if one.attributes["name"] == self.names[0]]
        if own[0].shape == output.shape and self.is_proved(self._replaced(own[0], None).case):
            return "the incoming gradient"
        return None

    def fits(self, case: FunctionCase, names: Sequence[str] = ()) -> bool:
        """Are the gradients the derivatives of this forward, at points?  ``names``: of some."""
        try:
            ratio = self._ratio(case, names or self.names)
        except (SymgradError, NoPointError, ValueError):
            return False
        return ratio is not None and abs(ratio - 1) < _NEAR

    @property
    def asked(self) -> set[Node]:
        """The numbers that the program asks for: it goes by them, though this forward may not."""
        names = {one.name for one in self.declared if one.kind == "interval" and one.taken}
        return {node for node in self.case.inputs if node.attributes["name"] in names}

    def of_coefficients(self) -> Meant | None:
        """A function that is linear in an input, its coefficients what forward does not use."""
        if len(self.gradients) != 1 or len(self.names) != 1 or not self.linear:
            return None
        used = {*self.below, *self.asked}
        known = {*self.case.cotangents, *used}
        given = [node for node in ancestors(self.gradients) if node.op == "input"]
        spare = [node for node in given if node not in known and node.dtype.is_float]
        if not spare or {*given} & used:
            return None
        said = " and ".join(f"`{node.label}`" for node in spare)
        return Meant(
            f"is the derivative of what is linear in `{self.names[0]}`, with coefficients made of "
            f"{said}, which forward does not use"
        )

    def _tried(self, make: _Make, scaled: bool) -> Meant | None:
        """The surrogate that one candidate gives: itself, or times a number."""
        try:
            plain = make(None)
            if not self._fits(plain.case):
                return None
            ratio = self._ratio(plain.case)
        except (SymgradError, NoPointError, ValueError):
            return None
        factors: list[Node | None] = [None] if ratio and abs(ratio - 1) < _NEAR else []
        by_size = any(node.op == "size" for node in ancestors(self.scalars))
        if scaled and ratio and not factors:
            factors += self._numbers(ratio)[:2]
        if scaled and (ratio is None or (ratio and by_size)):
            fits = (one for one in self._unknown() if self.fits(make(one).case))
            factors += islice(fits, 2)
        for factor in factors:
            made = plain if factor is None else make(factor)
            if self._is_doubtful(made):
                continue
            self.proofs += 1
            if self.is_proved(made.case):
                return self._as_identity(made) or Meant(made.text, self._declared(made))
        return None

    def _declared(self, made: _Made) -> str:
        """What was put for parts of forward as code, beside their values where these are read."""
        if not made.held or self.fits(replace(self.case, outputs=made.code)):
            return self.declarable(made.code)
        return self.declarable(made.held)

    def _as_identity(self, made: _Made) -> Meant | None:
        """The input itself, where what was put for parts of forward makes that of it."""
        if len(self.inputs) != 1 or self.place is None or len(made.code) != 1:
            return None
        (own,) = self.inputs
        if made.code[0].op == "input" or own.type != self.case.outputs[self.place].type:
            return None
        plain = self._replaced(own, None)
        if not self.fits(plain.case) or not self.is_proved(plain.case):
            return None
        return Meant(plain.text, self.declarable(plain.code))

    def declarable(self, outputs: Sequence[Node]) -> str:
        """The outputs of a surrogate as code; empty where there is none."""
        new = rewrite(Graph(), outputs, rule=_as_choice)
        given = [node for node in ancestors(new.values()) if node.op == "input"]
        known = {node.attributes["name"] for node in self.case.inputs}
        if not known.issuperset(node.attributes["name"] for node in given):
            return ""
        plain = [node for node in given if not node.rank and node.label not in self.names]
        try:
            writer = CodeWriter(given, plain=plain, ends=True)
            texts = [writer.text(new[node]) for node in outputs]
            return texts[0] if len(texts) == 1 else f"({', '.join(texts)})" if texts else ""
        except NoSpelling:
            return ""

    @cached_property
    def below(self) -> list[Node]:
        """All nodes of forward."""
        return ancestors(self.case.outputs)

    @cached_property
    def dropped(self) -> list[str]:
        """The inputs whose gradient is None."""
        none = {one.input for one in self.case.gradients if one.node is None and not one.problem}
        return [name for name in self.names if name in none]

    def _fits(self, case: FunctionCase) -> bool:
        return all(
            new.shape == old.shape for new, old in zip(case.outputs, self.case.outputs, strict=True)
        )

    def _of_steps(self) -> Iterator[tuple[_Make, bool]]:
        """The identity for steps, for clips as well, for clips alone; then other slopes."""
        steps = self.steps
        clips = self.clips if steps or len(self.clips) > 1 or self.is_clip else []
        clips = [] if _are_parts(filter(None, map(limit_of, clips))) else clips
        for places in (steps, [*steps, *clips], clips):
            if places and not (places is clips and steps):
                scaled = places is steps and self._is_plain(places)
                yield partial(self._stepped, _own_argument, places), scaled
        for slope in self._slopes() if steps else ():
            yield partial(self._stepped, slope, steps), self._is_plain(steps)

    def _is_plain(self, places: Sequence[Node]) -> bool:
        """Is forward one step, of the input: so that a number may be on purpose?"""
        return len(places) == 1 and places[0] in self.case.outputs

    def _of_outputs(self) -> Iterator[tuple[_Make, bool]]:
        """Other nodes in place of the output, where it has none of its own slope."""
        trivial = self.flat or self.is_identity or self.is_swapped or self.is_flat_at_points
        if self.place is None or not (trivial or self.steps):
            return
        output = self.case.outputs[self.place]
        below = [{*ancestors([step])} for step in self.steps]
        nodes = [*self.inputs, *reversed(self.forward)][:SURROGATE_NODES]
        nodes += self.of_backward if self.flat else []
        for node in nodes:
            given = node in self.inputs
            fits = node.shape == output.shape and node.dtype.is_float and (node != output or given)
            if fits and all(node in nodes for nodes in below):
                yield partial(self._replaced, node), given and trivial

    @cached_property
    def of_backward(self) -> list[Node]:
        """What backward alone computes of the inputs and no incoming gradient, the last first."""
        known, moving = {*self.forward}, {*self.inputs}
        given = {one for one in self.case.cotangents if one is not None}
        for node in ancestors(self.gradients):
            if node in given or any(arg in given for arg in node.args):
                given.add(node)
            elif any(arg in moving for arg in node.args):
                moving.add(node)
        own = [node for node in moving - known if node not in self.inputs]
        return sorted(own, key=lambda node: -node.index)[:SURROGATE_NODES]

    def _slopes(self) -> Iterator[Slope]:
        """Functions whose derivatives people put for that of a step."""
        widths = [1.0 / one for one in self.scalars if one.op == "input"]
        scalars = [*self.scalars, *widths]
        for low, high in _windows(self.limits):
            yield partial(_clamped, low=low, high=high)
        families = (_tanh, _sigmoid, _atan, _softsign, _erf, _under_hat, _under_decay)
        for family in families:
            for scale in (None, *map(_positive, scalars)):
                yield partial(family, scale=scale)
        yield _absolute
        for scale in scalars:
            yield partial(_leaky, scale=scale)
        for by in self.shifts:
            for family in families:
                for scale in (None, *map(_positive, scalars)):
                    yield partial(_shifted, family=family, scale=scale, by=by)

    @cached_property
    def shifts(self) -> list[float]:
        """What backward subtracts from the argument of a step: a slope may be centred there."""
        arguments = [step.args[0] for step in self.steps]
        arguments += [arg for one in arguments for arg in one.args if not one.dtype.is_float]
        found: dict[float, None] = {}
        for node in ancestors(self.gradients):
            if node.op in ("sub", "add") and node.args[0] in arguments:
                value = literal_value(node.args[1])
                if value:
                    found[value if node.op == "sub" else -value] = None
        return [*found][:SURROGATE_SCALARS]

    @cached_property
    def limits(self) -> list[Node]:
        """The literals of backward that may limit a window: also those of its comparisons."""
        compared = [node for node in ancestors(self.gradients) if node.op in UPWARD]
        sides = [unexpanded(arg) for node in compared for arg in node.args]
        own = [one for one in self.scalars if one.op == "constant"]
        return [*dict.fromkeys([*own, *(one for one in sides if one.op == "constant")])]

    @cached_property
    def scalars(self) -> list[Node]:
        """The numbers that backward computes with: literals, inputs of rank 0, what these make."""
        found: list[Node] = []
        known: set[Node] = set()
        others = {*self.case.cotangents, *self.inputs}
        for node in ancestors(self.gradients):
            literal = node.op == "constant" and node.attributes["value"].value not in _USUAL
            given = node.op == "size" or (node.op == "input" and node not in others)
            made = bool(node.args) and all(arg in known for arg in node.args)
            if node.rank or not node.dtype.is_float or not (node.op == "constant" or given or made):
                continue
            known.add(node)
            if literal or given or (made and node.op != "cast"):
                found.append(node)
        return found[-SURROGATE_SCALARS:]

    def _numbers(self, wanted: float) -> list[Node]:
        """Numbers made of those of backward that are ``wanted``, or else that number itself."""
        graph = self.case.graph
        made: list[tuple[Node, float | None]] = []
        bases: list[tuple[Node, float | None]] = [
            (one, float(one.attributes["value"].value) if one.op == "constant" else None)
            for one in self.scalars
        ]
        for node, value in bases:
            made += [(node, value), (-node, None if value is None else -value)]
            if value:
                made.append((1.0 / node, 1 / value))
        for value in (-1.0, 0.5, 2.0, -2.0, 1 / math.pi, 2 / math.pi):
            made.append((graph.constant(value, self.inputs[0].dtype), value))
        known = [
            node for node, value in made
            if value is not None and abs(value - wanted) <= _CLOSE * abs(wanted)
        ]  # fmt: skip
        return known or [graph.constant(wanted, self.inputs[0].dtype)]

    # -- the case with something put for a part of forward

    def _stepped(self, slope: Slope, places: Sequence[Node], factor: Node | None) -> _Made:
        """The case with another slope for some nodes, their values arbitrary."""
        graph = Graph()
        constants: list[Node] = []
        kinks: dict[Node, None] = {}
        put: dict[Node, str] = {}
        own_values: dict[Node, Node] = {}

        def bare(node: Node, args: Sequence[Node]) -> Node | None:
            if node not in places:
                return None
            argument = _argument(node, args)
            assert argument is not None
            return _times(slope(argument), factor)

        def rule(node: Node, args: Sequence[Node]) -> Node | None:
            made = bare(node, args)
            if made is None:
                return own_values[node] if _jumps(node) else None
            argument = _argument(node, args)
            assert argument is not None
            known = _integral(slope)
            shown = made if known is None else _times(known(argument), factor)
            put[node] = f"{'' if known is None else 'the integral of '}`{_code(shown, constants)}`"
            constants.append(graph.input(f"step {len(constants)}", node.type))
            kinks.update(dict.fromkeys(_kinks(made, argument)))
            return made + constants[-1]

        jumps = [node for node in ancestors([*self.below, *self.gradients]) if _jumps(node)]
        own_values |= rewrite(graph, jumps)
        new = _rewritten(self.case, graph, self.names, rule)
        inside = {one for node in places for one in ancestors(node.args) if one in places}
        texts = [
            f"{put[node]} in place of `{_code(node)}`"
            for node in places if node in put and node not in inside
        ]  # fmt: skip
        said = f"is the derivative of {' and '.join(dict.fromkeys(texts[:2]))}"
        case = replace(new, inputs=(*new.inputs, *constants))
        own = rewrite(self.case.graph, self.case.outputs, rule=bare, named=False)

        def held(node: Node, args: Sequence[Node]) -> Node | None:
            made = bare(node, args)
            return None if made is None else _held(made, made.graph.copy(node, args))

        whole = rewrite(self.case.graph, self.case.outputs, rule=held, named=False)
        return _Made(
            case,
            said,
            tuple(own[node] for node in self.case.outputs),
            (*kinks,),
            tuple(whole[node] for node in self.case.outputs),
        )

    def _replaced(self, node: Node, factor: Node | None) -> _Made:
        """The case with another node for its output."""
        graph = Graph()
        new = _rewritten(self.case, graph, self.names, None, [node])
        made = rewrite(graph, [node])[node]
        if factor is not None:
            made = _scaled(made, factor)
        code = _code(made)
        if node.name and factor is None and len(code) > LONGEST_CODE:
            code = node.name
        said = f"is the derivative of `{code}` in place of forward"
        outputs = [made if at == self.place else one for at, one in enumerate(new.outputs)]
        own = (made,) if len(outputs) == 1 else ()
        return _Made(replace(new, outputs=tuple(outputs)), said, own)

    # -- at points, and in general

    def _subject(self, case: FunctionCase, names: Sequence[str] = ()) -> Subject:
        subject = self.subject_of(case, self.declared)
        subject.gradients = {name: subject.gradients[name] for name in names or self.names}
        subject.settle_as(self.modes)
        subject.settle()
        return subject

    def _ratio(self, case: FunctionCase, names: Sequence[str] = ()) -> float | None:
        """The factor between backward and the derivative, if it is one at most points.

        0 where one of them is 0, and the other one is not.
        """
        names = names or self.names
        subject = self._subject(case, names)
        ratios: list[float] = []
        sizes = subject.sampler.small_choices(POINTS) or [{}]
        for number in range(2 * POINTS):
            at = subject.draw(sizes[number % len(sizes)], number)
            if at is None:
                continue
            for name in names:
                seen = subject.compare(at, {name: subject.direction(name, at)})
                if abs(seen.quotient) > _CLOSE:
                    ratios.append(float(seen.claimed / seen.quotient))
                elif abs(seen.claimed) > _CLOSE:
                    return 0.0
        if not ratios or not np.all(np.isfinite(ratios)) or not np.all(ratios):
            return 0.0
        middle = float(np.median(ratios))
        near = sum(abs(one - middle) <= _NEAR * abs(middle) for one in ratios)
        return middle if 2 * near > len(ratios) else None

    def _unknown(self) -> list[Node]:
        """Numbers made of plain arguments that backward computes with."""
        own = [one for one in self.scalars if any(n.op in _GIVEN for n in ancestors([one]))]
        return [part for one in own for part in (one, -one, 1.0 / one)]

    def _is_doubtful(self, made: _Made) -> bool:
        """Are there points beside thresholds, but for own kinks, at which they are not?"""
        beside = [Relation("beside a kink", "!=", node) for node in made.kinks]
        case = replace(made.case, relations=(*made.case.relations, *beside))
        try:
            subject = self._subject(case)
        except (SymgradError, NoPointError):
            return True
        return any(_is_inside(subject, point) for point in _sought(subject))

    def is_proved(self, case: FunctionCase) -> bool:
        """Are the gradients the derivatives of this forward?"""
        try:
            found = judge(self._subject(case), budget=REPAIR_WORK)
        except (SymgradError, NoPointError):
            return False
        return all(found[name].verdict for name in self.names)


@dataclass(frozen=True)
class _Made:
    """A case against which backward is judged, and what to say where it is right there.

    ``code``: its outputs, without unknown constants.  ``kinks``: what is 0 at those of what was
    put.  ``held``: the outputs with the values of forward, which are detached.
    """

    case: FunctionCase
    text: str
    code: tuple[Node, ...] = ()
    kinks: tuple[Node, ...] = ()
    held: tuple[Node, ...] = ()


_Make = Callable[["Node | None"], _Made]
"""A case, with something put for a part of forward; its derivative times a number, if given."""


def _key(one: Any) -> Hashable:
    """What tells a candidate from others, whatever the shapes are."""
    if isinstance(one, partial):
        return one.func.__name__, *map(_key, (*one.args, *one.keywords.values()))
    if isinstance(one, Node):
        return _number_code(one) if not one.rank and one.op in ("constant", "input") else one.op
    if isinstance(one, (list, tuple)):
        return tuple(map(_key, one))
    return one if isinstance(one, (int, float, str)) or one is None else one.__name__


def _rewritten(
    case: FunctionCase, graph: Graph, names: Sequence[str],
    rule: Callable[[Node, Sequence[Node]], Node | None] | None, more: Sequence[Node] = (),
) -> FunctionCase:  # fmt: skip
    """The case in another graph, with the gradients of some inputs alone."""
    gradients = tuple(one for one in case.gradients if one.input in names)
    kept = [node for one in gradients for node in (one.node, one.returned) if node is not None]
    cotangents = [node for node in case.cotangents if node is not None]
    roots = [*case.inputs, *case.outputs, *cotangents, *case.saved, *kept, *more]
    new = rewrite(graph, roots, rule=rule)
    stated = [node for one in case.relations for node in one.nodes]
    given = {node: new[node] for node in new if node.op == "input"}
    held = rewrite(graph, [*stated, *(one.node for one in case.demanded)], given)
    return replace(
        case,
        graph=graph,
        relations=tuple(one.put(held) for one in case.relations),
        demanded=tuple(replace(one, node=held[one.node]) for one in case.demanded),
        inputs=tuple(new[node] for node in case.inputs),
        outputs=tuple(new[node] for node in case.outputs),
        cotangents=tuple(None if node is None else new[node] for node in case.cotangents),
        saved=tuple(new[node] for node in case.saved),
        gradients=tuple(
            replace(
                one, node=new[one.node] if one.node is not None else None,
                returned=new[one.returned] if one.returned is not None else None,
            )
            for one in gradients
        ),
    )  # fmt: skip


# -- forward keeps its values


@dataclass(frozen=True)
class _Plan:
    """What is differentiated in place of parts of forward, whose values stay.

    ``parts``: the nodes that something else is put for, steps or what limits these.  ``limits``:
    what becomes of the clips in a part: they are kept, ``wider`` by a half, or left out
    (``through``).  ``slope``: what is put for a step.  ``constants``: nodes that pass nothing on.
    """

    parts: tuple[Node, ...]
    limits: str = "kept"
    slope: Slope = field(default=lambda u: u)
    constants: tuple[Node, ...] = ()


def _kept_values(search: _Search) -> Meant | None:
    """What the gradients are the derivatives of, the values of forward in them being its own.

    A gradient may be left out where an input is a scale, or a limit, of what is rounded or clipped;
    one beside a step may be scaled by a number that forward does not know.
    """
    case = search.case
    if len(case.outputs) != 1 or any(one.problem for one in case.gradients):
        return None
    if any(one.op == "draw" for one in ancestors([*case.outputs, *search.gradients])):
        return None
    left = [node for node in search.inputs if node.attributes["name"] in search.dropped]
    names = [name for name in search.names if name not in search.dropped]
    if not names:
        return _of_limits(search, left)
    proofs, question = 0, ("kept", search.names)
    plans = fitted.keyed(_plans(search, left), lambda one: (one.limits, _key(one.slope)))
    for key, plan in fitted.in_turn(question, plans):
        made = _Differentiated(search, plan, names)
        factors = made.factors()
        if factors is None:
            continue
        proofs += 1
        if made.is_proved(factors):
            fitted.note(question, key)
            codes = made.codes(factors)
            code = codes[names[0]] if len({*codes.values()}) == 1 else ""
            return Meant(made.said(factors, left), code, codes, fixed=made.fixed)
        if proofs >= SURROGATE_PROOFS:
            break
    return None


def _of_integral(search: _Search) -> Meant | None:
    """The integral of what a flat forward is given for a slope, where that is a sum of bells."""
    case, weights = search.case, [one for one in search.case.cotangents if one is not None]
    if not (search.flat and len(search.names) == len(search.gradients) == len(case.outputs) == 1):
        return None
    (argument,) = search.inputs
    found = multiplier(search.gradients[0], weights[0], argument) if weights else None
    try:
        whole = None if found is None else integral(found, argument)
        made = None if whole is None else search._replaced(whole, None)
    except SymgradError:  # operands of two dtypes
        return None
    if made is None or not search.is_proved(made.case):
        return None
    return Meant(made.text, search.declarable(made.code))


def _of_positive(search: _Search) -> Meant | None:
    """The same where what forward divides by, or limits by, is positive: the scale of a step.

    Where it is flat, so may be the numbers of backward: the width of a window.
    """
    known = {one for fact in search.declared for one in fact.inputs
             if fact.kind not in ("plain", "constant")}  # fmt: skip
    divided = [node.args[1] for node in search.below if node.op == "div"]
    limits = [found[1] for node in search.below if (found := limit_of(node)) is not None]
    numbers = search.scalars if search.flat else []
    leaves = dict.fromkeys(map(unexpanded, [*divided, *limits, *numbers]))
    names = [one.attributes["name"] for one in leaves
             if one in search.case.inputs and one.attributes["name"] not in known]  # fmt: skip
    if not search.steps or not names:
        return None
    facts = [Assumption(name, "positive", "positive") for name in names]
    modes = search.modes | dict.fromkeys(names, "positive")
    declared = [*search.declared, *facts]
    within = _Search(search.case, search.names, declared, modes, search.subject_of)
    inside = next((one for way in within.ways().values() if (one := way(within))), None)
    positive = " and ".join(f"{one} > 0" for one in names)
    if inside is None:
        return None
    text, stated = f"{inside.text}, for {positive}", tuple((one, "positive") for one in names)
    return replace(inside, text=text, facts=stated)


def _of_limits(search: _Search, left: Sequence[Node]) -> Meant | None:
    """The true gradients, but that of limits left out: they are only limits, from both sides."""
    chains = [_chain(node, search.forward) for node in search.forward if limit_of(node) is not None]
    two_sided = [one for one in chains if len(one) > 1]
    found = [limit_of(node) for one in two_sided for node in one]
    limits = {one[1] for one in found if one is not None}
    passed = [node for node in search.case.outputs if node in search.forward]
    within = {node for one in two_sided for node in one}
    if not within or _reaches(passed, {*left}, search.forward, limits):
        return None
    return Meant(f"is the true gradient{_said_constant(left)}")


def _reaches(
    roots: Sequence[Node], goals: set[Node], forward: Sequence[Node], cut: Collection[Node]
) -> bool:
    """Does one of ``goals`` influence ``roots`` but through ``cut``, and what is compared?"""
    todo, seen = [*roots], {*roots}
    while todo:
        node = todo.pop()
        if node in goals:
            return True
        follows = node.args[1:] if node.op == "where" else node.args
        fresh = {one for one in follows if one in forward and one not in cut} - seen
        seen |= fresh
        todo += fresh
    return False


def _plans(search: _Search, left: Sequence[Node]) -> Iterator[_Plan]:
    """The plans for a Function: of its steps, or of its clips alone."""
    fixed = tuple(left)
    kept = {node for node in search.inputs if node not in fixed}
    inner = tuple(one for one in search.steps if kept & {*ancestors([one])})
    if not inner:
        if search.steps:
            return
        if clips := _outermost(search):
            yield _Plan(clips, "through", constants=fixed)
        return
    outer = tuple(_chain(step, search.forward)[-1] for step in inner)
    if inner != outer:
        yield from (_Plan(outer, limits, constants=fixed) for limits in _LIMITS)
    yield _Plan(inner, constants=fixed)
    scales = tuple(node for top in outer for node in _scales(top, search.forward))
    literals = [one for one in search.scalars if one.op == "constant"]
    for low, high in [(None, None), *islice(_windows(literals), SURROGATE_WINDOWS)]:
        plain = low is None and high is None
        slope = _own_argument if plain else partial(_clamped, low=low, high=high)
        if not plain:
            yield _Plan(inner, slope=slope, constants=fixed)
        if scales:
            yield _Plan(inner, slope=slope, constants=(*fixed, *scales))


_LIMITS = ("kept", "wider", "through")


def _outermost(search: _Search) -> tuple[Node, ...]:
    """The clips of a Function without steps, where it is plain that they are meant.

    That a single limit of 0 or another literal passes everything is rather a mistake, and so is
    that both parts of a value do.
    """
    chains = [_chain(node, search.forward) for node in search.forward if limit_of(node) is not None]
    tops = dict.fromkeys(one[-1] for one in chains)
    limits = {node: limit_of(node) for one in chains for node in one}
    known = all(found is None or literal_value(found[1]) is not None for found in limits.values())
    plain = (known and len(limits) < 2) or _are_parts(filter(None, limits.values()))
    return () if plain else tuple(tops)


def _are_parts(limits: Iterable[tuple[Node, Node, bool]]) -> bool:
    """Are two of them the parts of one value on both sides of a limit, as in an upwind scheme?

    To leave out one of the branches is a mistake, and no surrogate.
    """
    found = set()
    for value, limit, is_least in limits:
        number = literal_value(limit)
        if value.op == "neg" and number is not None:  # relu(-x) is x.clamp(max=0), turned
            value, is_least, number = value.args[0], not is_least, -number
        found.add((value, limit if number is None else number, is_least))
    return any((value, limit, not is_least) in found for value, limit, is_least in found)


def _chain(node: Node, forward: Sequence[Node]) -> list[Node]:
    """A node and the clips of it, each of the one before, which nothing else reads."""
    found = [node]
    while True:
        readers = [one for one in forward if found[-1] in one.args and one.dtype.is_float]
        limited = limit_of(readers[0]) if len(readers) == 1 else None
        if limited is None or limited[0] is not found[-1]:
            return found
        found.append(readers[0])


def _scales(top: Node, forward: Sequence[Node]) -> list[Node]:
    """What a step is multiplied by, but for inputs: the mean of what is rounded, for example."""
    found = []
    for node in forward:
        if node.op == "mul" and top in node.args:
            other = node.args[1 - node.args.index(top)]
            if other in forward and unexpanded(other).op != "input":
                found.append(other)
    return found


class _Differentiated:
    """A plan carried out: the derivative of what it puts, beside the gradients of some inputs.

    Both are compared as functions of everything: each is multiplied by a tensor of its own.
    """

    def __init__(self, search: _Search, plan: _Plan, names: Sequence[str]) -> None:
        self.search, self.plan, self.names = search, plan, tuple(names)
        self.integers, self.plain = "", tuple[str, ...]()
        self.kinks: dict[Node, None] = {}
        self.orders: dict[Node, None] = {}
        self.graph = Graph()
        self.new = self._forward()
        case = search.case
        by_name = {node.attributes["name"]: node for node in case.inputs}
        pairs = [
            (self.new[node], cotangent)
            for node, cotangent in zip(case.outputs, case.cotangents, strict=True)
            if cotangent is not None
        ]
        given = [one for one in case.cotangents if one is not None]
        self.new |= rewrite(self.graph, given, {n: m for n, m in self.new.items() if n in given})
        wrt = [self.new[by_name[name]] for name in self.names]
        found = recorded_vjp(
            [node for node, _ in pairs], [self.new[one] for _, one in pairs], wrt, _no_rule
        )
        self.meant = {
            name: self.graph.lift(0.0, node) if one is None else one
            for name, node, one in zip(self.names, wrt, found, strict=True)
        }
        written = {one.input: one.node for one in case.gradients if one.node is not None}
        known = {node: self.new[node] for node in (*case.inputs, *given)}
        copies = rewrite(self.graph, [written[name] for name in self.names], known)
        self.written = {name: copies[written[name]] for name in self.names}
        self.copies = copies

    def _forward(self) -> dict[Node, Node]:
        """Where the nodes of forward go."""
        case, plan, graph = self.search.case, self.plan, self.graph
        new: dict[Node, Node] = {}

        def rule(node: Node, args: Sequence[Node]) -> Node:
            made = graph.copy(node, args)
            if node in plan.constants:
                made = graph.apply("detach", made)
            elif node in plan.parts:
                made = _held(self._slope(node, new), made)
            new[node] = made
            return made

        return rewrite(graph, [*case.inputs, *case.outputs], rule=rule)

    def _slope(self, node: Node, new: Mapping[Node, Node]) -> Node:
        """What is differentiated in place of a part."""
        if node in self.search.steps:
            argument = _argument(node, [new[arg] for arg in node.args])
            assert argument is not None
            made = self.plan.slope(argument)
            self._note_kinks(made, argument)
            return made
        limited = limit_of(node)
        if limited is None:
            return new[node]
        value, limit, below = limited
        inside = self._slope(value, new)
        if self.plan.limits == "through":
            return inside
        bound = new.get(limit) or rewrite(inside.graph, [limit], new)[limit]
        if self.plan.limits == "wider":
            bound = bound - 0.5 if below else bound + 0.5
        other = limit_of(value)
        if other is not None and other[2] is not below:
            opposite = new.get(other[1]) or rewrite(inside.graph, [other[1]], new)[other[1]]
            self._note_order(*((bound, opposite) if below else (opposite, bound)))
        made = inside.graph.binary("maximum" if below else "minimum", inside, bound)
        self._note_kinks(made, inside)
        return made

    def _note_order(self, low: Node, high: Node) -> None:
        """Limits that are no literals are taken to be in order; tensors are not."""
        low, high = unexpanded(low), unexpanded(high)
        numbers = [literal_value(one) is not None or (one.op == "input" and not one.rank)
                   for one in (low, high)]  # fmt: skip
        if all(numbers) and (literal_value(low) is None or literal_value(high) is None):
            self.orders[high - low] = None

    def _note_kinks(self, made: Node, argument: Node) -> None:
        """What is 0 where a clip of an argument has a kink, which is not looked at."""
        self.kinks.update(dict.fromkeys(_kinks(made, argument)))

    # -- at points, and in general

    def _subject(self, names: Sequence[str], factors: Mapping[str, Node | None]) -> Subject:
        """Are the gradients what is meant, times factors?"""
        case, graph = self.search.case, Graph()
        meant = {}
        for name in names:
            factor = factors.get(name)
            own = self.meant[name]
            meant[name] = own if factor is None else _scaled(own, factor)
        stated = [node for one in case.relations for node in one.nodes]
        stated = [node for node in ancestors(stated) if node.op == "input"]
        roots = [*meant.values(), *(self.written[name] for name in names)]
        roots += [self.new[node] for node in (*case.inputs, *stated)]
        roots += [*self.kinks, *(arg for node in self.orders for arg in node.args)]
        plain = Graph()
        whole = without_markers(plain, roots)
        facts: list[Assumption] = []
        known = self._in_order(graph, whole, facts)
        limits = IntegerLimits(graph, {made: node for node, made in known.items()})
        moved_to = rewrite(graph, [whole[node] for node in roots], known, limits)
        new = {node: moved_to[whole[node]] for node in roots}
        outputs, gradients = [], {}
        weights: list[Node] = []
        for name in names:
            weight = graph.input(f"{name} as meant", meant[name].type)
            cotangent = graph.input(f"of {name}", meant[name].type)
            outputs.append((weight * new[meant[name]], cotangent))
            gradients[weight.attributes["name"]] = cotangent * new[self.written[name]]
            weights.append(weight)
        given = [node for node in ancestors([*_outputs_of(outputs), *gradients.values()])
                 if node.op == "input"]  # fmt: skip
        cotangents = {cotangent for _, cotangent in outputs}
        named = [new[self.new[node]] for node in case.inputs]
        inputs = dict.fromkeys([*(node for node in named if node.op == "input"), *weights,
                                *(node for node in given if node not in cotangents)])  # fmt: skip
        gone = {node.label for node, made in zip(case.inputs, named, strict=True)
                if made.op != "input"}  # fmt: skip
        found = Subject(
            graph, [*inputs], outputs, gradients, conditions=case.conditions,
            assumptions=[*facts, *(a for a in self.search.declared if not gone & {*a.inputs})],
            relations=[*moved(case.relations, graph, {n: new[self.new[n]] for n in stated}),
                       *(Relation("beside a kink", "!=", new[node]) for node in self.kinks)],
        )  # fmt: skip
        self.integers, self.plain = limits.said(), tuple(limits.plain)
        found.settle_as(self.search.modes)
        found.settle()
        return found

    def _in_order(
        self, graph: Graph, whole: Mapping[Node, Node], facts: list[Assumption]
    ) -> dict[Node, Node]:
        """Limits that are in order: one of two is the other one and a positive distance."""
        known: dict[Node, Node] = {}
        for node in self.orders:
            high, low = (whole[arg] for arg in node.args)
            if high in known or low in known:
                continue
            name = f"{high.label} above {low.label}"
            distance = graph.input(name, high.type)
            facts.append(Assumption(name, "positive", "positive"))
            other = low if high.op == "input" else high
            copied = rewrite(graph, [other])[other]
            known[other] = copied
            known[high if other is low else low] = (
                copied + distance if other is low else copied - distance
            )
        return known

    def _agrees(self, names: Sequence[str], factors: Mapping[str, Node | None]) -> bool:
        """Are they the same at a few points, and not 0 at all of them?"""
        subject = self._subject(names, factors)
        sizes = subject.sampler.small_choices(POINTS) or [{}]
        seen = 0
        for number in range(2 * POINTS):
            at = subject.draw(sizes[number % len(sizes)], number)
            if at is None:
                continue
            for name in subject.gradients:
                found = subject.compare(at, {name: subject.direction(name, at)})
                if not found.gap <= _NEAR:
                    return False
                seen += abs(found.claimed) > _CLOSE
        return seen > 0 and not any(_is_inside(subject, point) for point in _sought(subject))

    def factors(self) -> dict[str, Node | None] | None:
        """The numbers by which gradients are scaled; None where that does not explain them."""
        found: dict[str, Node | None] = {}
        try:
            for name in self.names:
                own = self._numbers(name) if self.search.steps and len(self.names) > 1 else []
                for factor in (None, *own):
                    if self._agrees([name], {name: factor}):
                        found[name] = factor
                        break
                else:
                    return None
        except (SymgradError, NoPointError, ValueError):
            return None
        return found if None in found.values() else None

    def _numbers(self, name: str) -> list[Node]:
        """Numbers of a gradient that may be there to scale it.

        They are plain arguments that forward does not use, and what has the root of a size in it.
        """
        case = self.search.case
        used = {*ancestors(case.outputs), *self.search.asked}
        order = ancestors([one.node for one in case.gradients if one.input == name and one.node])
        numbers: list[Node] = []
        scaling: set[Node] = set()
        for node in order:
            spare = node.op == "input" and node in case.inputs and node not in used
            made = bool(node.args) and all(arg in numbers for arg in node.args)
            given = node.op in ("constant", "size")
            if node.rank or not node.dtype.is_float or not (spare or made or given):
                continue
            numbers.append(node)
            root = node.op in ("sqrt", "rsqrt", "pow") and not given
            sized = any(one.op == "size" for one in ancestors([node]))
            if spare or (root and sized) or any(arg in scaling for arg in node.args):
                scaling.add(node)
        found = [self.copies[node] for node in reversed(numbers) if node in scaling]
        parts = [part for one in found[:SURROGATE_SCALARS] for part in (one, 1.0 / one)]
        whole = self._factor(order[-1], numbers)
        return parts if whole is None or not scaling else [*parts, whole]

    def _factor(self, node: Node, numbers: Collection[Node]) -> Node | None:
        """The numbers that a gradient is multiplied with, or divided by, last; as one number."""
        found: Node | None = None
        while node.op in ("mul", "div"):
            of_number = [unexpanded(arg) in numbers for arg in node.args]
            if sum(of_number) != 1 or (node.op == "div" and of_number[0]):
                break
            place = of_number.index(True)
            by = self.copies[unexpanded(node.args[place])]
            by = by if node.op == "mul" else 1.0 / by
            found = by if found is None else found * by
            node = node.args[1 - place]
        return found

    def is_proved(self, factors: Mapping[str, Node | None]) -> bool:
        """Are the gradients what is meant, almost everywhere?"""
        try:
            found = judge(self._subject(self.names, factors), budget=REPAIR_WORK)
        except (SymgradError, NoPointError):
            return False
        return bool(found) and all(one.verdict for one in found.values())

    # -- words

    def codes(self, factors: Mapping[str, Node | None]) -> dict[str, str]:
        """For each gradient a function with that derivative, as code.

        Forward with what is differentiated in place of its parts, where that will do; or else
        beside their values, which are detached.
        """
        case, output = self.search.case, self.search.case.outputs[0]
        plain = self._without_values(output)
        own = tuple(one for one in case.gradients if one.input in self.names)
        code = ""
        if not any(factors.values()) and self.search.fits(
            replace(case, outputs=(plain,), gradients=own), self.names
        ):
            code = self.search.declarable([plain])
        code = code or self.search.declarable([self.new[output]])
        return {
            name: f"{_number_code(factor)} * ({code})" if code and factor is not None else code
            for name, factor in factors.items()
        }

    def _without_values(self, output: Node) -> Node:
        graph = output.graph
        new: dict[Node, Node] = {}

        def rule(node: Node, args: Sequence[Node]) -> Node:
            new[node] = graph.copy(node, args)
            if node in self.plan.parts:
                new[node] = self._slope(node, new)
            return new[node]

        return rewrite(graph, [output], rule=rule)[output]

    @property
    def fixed(self) -> tuple[str, ...]:
        """The plain arguments of which something is taken for granted."""
        sides = [unexpanded(arg) for node in self.orders for arg in node.args]
        named = [one.label for one in sides if one.op == "input"]
        return tuple(dict.fromkeys([*self.plain, *named]))

    def said(self, factors: Mapping[str, Node | None], left: Sequence[Node]) -> str:
        """What the gradients are the derivatives of."""
        roots = [*self.search.case.inputs, *self.plan.parts]
        copies = rewrite(Graph(), roots)
        texts = []
        for node in self.plan.parts:
            texts.append(f"`{_code(self._slope(node, copies))}` in place of `{_code(node)}`")
        said = f"is the derivative of {' and '.join(dict.fromkeys(texts[:2]))}"
        scaled = [
            f"; that by {name} is scaled by `{_number_code(factor)}`"
            for name, factor in factors.items() if factor is not None
        ]  # fmt: skip
        constants = [node for node in self.plan.constants if node.op != "input"]
        said += _said_constant([*left, *map(unexpanded, constants)])
        return said + "".join(scaled) + self.integers + self._orders_said()

    def _orders_said(self) -> str:
        pairs = [[_number_code(unexpanded(arg)) for arg in node.args] for node in self.orders]
        return "".join(dict.fromkeys(f", {low} < {high}" for high, low in pairs))


def _kinks(made: Node, argument: Node) -> Iterator[Node]:
    """What is 0 where a function of an argument has a kink."""
    for node in ancestors([made], stop={argument}):
        found = limit_of(node)
        if found is not None and node is not argument:
            yield found[0] - found[1]


def _outputs_of(pairs: Sequence[tuple[Node, Node]]) -> list[Node]:
    """The outputs of pairs of an output and its cotangent."""
    return [node for node, _ in pairs]


def _sought(subject: Subject) -> Iterator[Point]:
    """Points between thresholds at which gradients look wrong."""
    return chain.from_iterable(islice(seek(subject, name), POINTS) for name in subject.gradients)


def _is_inside(subject: Subject, point: Point) -> bool:
    """Is forward defined there, and do the relations hold?"""
    try:
        subject.evaluate_double(point)
    except DomainError:
        return False
    return True


def _held(meant: Node, value: Node) -> Node:
    """A value, of which something else is differentiated."""
    return meant + meant.graph.apply("detach", value - meant)


def _no_rule(number: int) -> AppliedRule:
    raise SymgradError("a Function is applied in forward")


def _said_constant(nodes: Sequence[Node]) -> str:
    if not nodes:
        return ""
    names = dict.fromkeys(f"`{_code(node)}`" for node in nodes)
    return (
        f", {' and '.join(names)} being taken for {'a constant' if len(names) < 2 else 'constants'}"
    )


# -- steps and clips


def _is_flat(node: Node) -> bool:
    """Is the op constant around almost every point?"""
    op = get(node.op)
    return bool(node.args) and op.scalar is not None and op.vjp is None and op.name != "shift"


def _jumps(node: Node) -> bool:
    """Is it computed of floats, and jumps with them?"""
    floats = [arg for arg in node.args if arg.dtype.is_float]
    return bool(floats) and (_is_flat(node) or not node.dtype.is_float)


def _is_step(node: Node, forward: Sequence[Node]) -> bool:
    """Does a node jump, and is constant between its jumps?"""
    if node.op == "cast":
        return node.args[0].dtype == bool_
    if node.op == "where":
        arms = [arg for arg in node.args[1:] if arg in forward]
        return node.args[0] in forward and not arms
    return _is_flat(node) and node.args[0].dtype.is_float


def _argument(node: Node, args: Sequence[Node] | None = None) -> Node | None:
    """What a step or a clip is a function of: of a comparison, the difference of its sides.

    ``args``: the node's own, or what stands for them in another graph.
    """
    args = node.args if args is None else args
    if _bounded(node) is not None:
        return args[_bounded(node) or 0]
    if node.op not in ("cast", "where"):
        return args[0]
    compared = args[0]
    if compared.op not in UPWARD or not compared.args[0].dtype.is_float:
        return None
    left, right = compared.args
    if literal_value(right) == 0:
        return left if UPWARD[compared.op] else -left
    return left - right if UPWARD[compared.op] else right - left


def _bounded(node: Node, tensors: Collection[Node] = ()) -> int | None:
    """Which argument a clip limits: the other one is a number.

    ``tensors``: what is none, whatever its shape.
    """
    if node.op == "relu":
        return 0
    if node.op in ("maximum", "minimum"):
        numbers = [_is_number(arg) and arg not in tensors for arg in node.args]
        return None if all(numbers) or not any(numbers) else numbers.index(False)
    if node.op == "where":  # where(u < low, low, u)
        compared, *arms = node.args
        numbers = [_is_number(arm) and arm not in tensors for arm in arms]
        for place, arm in enumerate(arms, 1):
            known = not numbers[place - 1] and numbers[2 - place]
            if known and compared.op in UPWARD and {arm, _unbounded(arm)} & {*compared.args}:
                return place
    return None


def _unbounded(node: Node) -> Node:
    """What clips limit: of ``where(u < low, low, where(u > high, high, u))`` both read it."""
    while (place := _bounded(node)) is not None:
        node = node.args[place]
    return node


def _clipped(
    node: Node, tensors: Collection[Node] = ()
) -> tuple[Node, str, Node | None] | None:  # fmt: skip
    """What a clip limits, its keyword in ``clamp``, and the limit, None for 0; None for no clip.

    ``tensors``: what is no limit, whatever its shape.
    """
    if node.op in ("maximum", "minimum", "where") and not node.rank:
        tensors = [one for one in node.args if {*tensors} & {*ancestors([one])}]
    place = _bounded(node, tensors)
    if place is None:
        return None
    limit = next((arg for arg in node.args if _is_number(arg) and arg not in tensors), None)
    if node.op == "where":
        smaller = node.args[0].op in ("lt", "le")
        own = node.args[0].args[0] in (node.args[place], _unbounded(node.args[place]))
        below = (smaller == own) == (place == 2)
        limit = node.args[3 - place]
    else:
        below = node.op in ("relu", "maximum")
    return node.args[place], "min" if below else "max", limit


def _as_choice(node: Node, args: Sequence[Node]) -> Node | None:
    """A clip by a number as a choice: functions of two tensors take no numbers."""
    place = _bounded(node) if node.op in ("maximum", "minimum") else None
    if place is None:
        return None
    value, limit = args[place], args[1 - place]
    compared = value.graph.apply("lt" if node.op == "maximum" else "gt", value, limit)
    return value.graph.apply("where", compared, limit, value)


def _is_number(node: Node) -> bool:
    """Is every element the same number, known or not?"""
    inner = node
    while inner.op in ("expand", "cast", "neg"):
        inner = inner.args[0]
    if inner.op == "constant" or (inner.op == "input" and not inner.rank):
        return True
    made = [one for one in ancestors([inner]) if not one.args]
    return node.rank > inner.rank == 0 and not any(one.rank for one in made)


def _same(node: Node) -> Node:
    """The node without what changes neither its values nor its shape."""
    while node.args and node.shape == node.args[0].shape:
        plain = node.op == "mul" and literal_value(node.args[1]) == 1
        plain = plain or (node.op in ("add", "sub") and literal_value(node.args[1]) == 0)
        if not plain:
            break
        node = node.args[0]
    return node


# -- slopes


def _own_argument(u: Node) -> Node:
    return u


def _windows(constants: Sequence[Node]) -> Iterator[tuple[float | None, float | None]]:
    """Limits that a window may have, made of the literals of backward."""
    values = sorted({float(one.attributes["value"].value) for one in constants} | {0.0, 1.0})
    for one in values:
        if one > 0:
            yield -one, one
            yield 0.0, one
    limits = sorted({*values, *(-one for one in values)})
    yield from ((low, high) for low in limits for high in limits if low < high)
    yield from ((low, None) for low in limits)
    yield from ((None, high) for high in limits)


def _positive(scale: Node) -> Node:
    """A literal without its sign: the functions below are odd, or take its absolute value."""
    value = literal_value(scale)
    return scale if value is None or value > 0 else scale.graph.constant(-value, scale.dtype)


def _clamped(u: Node, low: float | None, high: float | None) -> Node:
    graph = u.graph
    if low is not None:
        u = graph.binary("maximum", u, low)
    return u if high is None else graph.binary("minimum", u, high)


def _number_like(u: Node, scale: Node) -> Node:
    """A number of another graph, as a tensor like another one."""
    number = rewrite(u.graph, [scale])[scale]
    if number.dtype != u.dtype:
        number = u.graph.apply("cast", number, dtype=u.dtype)
    return u.graph.expand(number, u.shape)


def _scaled(u: Node, scale: Node) -> Node:
    """A value times a number of another graph."""
    return _number_like(u, scale) * u


def _times(u: Node, scale: Node | None) -> Node:
    return u if scale is None else _scaled(u, scale)


def _per(u: Node, scale: Node | None) -> Node:
    if scale is None:
        return u
    return u / _number_like(u, scale)


def _applied(u: Node, scale: Node | None, op: str) -> Node:
    return u.graph.apply(op, _times(u, scale))


_tanh, _sigmoid, _erf, _atan = (
    partial(_applied, op=op) for op in ("tanh", "sigmoid", "erf", "atan")
)


def _softsign(u: Node, scale: Node | None) -> Node:
    return u / (1.0 + _times(u.graph.apply("abs", u), scale))


def _hat(u: Node, scale: Node | None) -> Node:
    graph = u.graph
    return graph.binary("maximum", 1.0 - graph.apply("abs", _times(u, scale)), 0.0)


def _decay(u: Node, scale: Node | None) -> Node:
    return u.graph.apply("exp", -_times(u.graph.apply("abs", u), scale))


def _under_hat(u: Node, scale: Node | None) -> Node:
    inside = _clamped(_times(u, scale), -1.0, 1.0)
    return _per(inside - 0.5 * inside * u.graph.apply("abs", inside), scale)


def _under_decay(u: Node, scale: Node | None) -> Node:
    return _per(u.graph.apply("sign", u) * (1.0 - _decay(u, scale)), scale)


def _leaky(u: Node, scale: Node) -> Node:
    return u.graph.apply("relu", u) - _scaled(u.graph.apply("relu", -u), scale)


def _absolute(u: Node) -> Node:
    return u.graph.apply("abs", u)


def _shifted(u: Node, family: Callable[..., Node], scale: Node | None, by: float) -> Node:
    return family(u - by, scale)


_INTEGRALS: dict[Any, Callable[..., Node]] = {
    _under_hat: _hat,
    _under_decay: _decay,
}
"""What is known better by its derivative than by itself."""


def _integral(slope: Slope) -> Slope | None:
    """The derivative of a slope that is known better by it."""
    given = getattr(slope, "keywords", {})
    if getattr(slope, "func", None) is _shifted:
        known = _INTEGRALS.get(given["family"])
        return None if known is None else partial(_shifted, **{**given, "family": known})
    known = _INTEGRALS.get(getattr(slope, "func", slope))
    return None if known is None else partial(known, **given)


# -- words


def _code(
    node: Node, hidden: Sequence[Node] = (), plain: Sequence[Node] = (), level: int = 0
) -> str:
    """Tensor code of a node, without the constants of steps below it.

    ``plain``: inputs that are Python numbers.
    """
    if hidden:

        def rule(node: Node, args: Sequence[Node]) -> Node | None:
            shown = [arg for arg, old in zip(args, node.args, strict=True) if old not in hidden]
            return shown[0] if node.op == "add" and len(shown) == 1 else None

        node = rewrite(Graph(), [node], rule=rule)[node]
    names = {one: one.label for one in ancestors([node]) if one.op == "input"}
    drawn = [one for one in ancestors([node]) if one.op == "draw"]
    names |= {one: f"draw_{one.attributes['number']}" for one in drawn}
    limits, whole = list[tuple[str, Node | None]](), node
    while (found := _clipped(node)) is not None:
        node, side, limit = found
        limits.insert(0, (side, limit))
    values = {side: 0.0 if limit is None else literal_value(limit) for side, limit in limits}
    low, high = values.get("min"), values.get("max")
    if low is not None and high is not None and low <= high and len(limits) == 2:
        limits.sort(key=lambda one: one[0] == "max")  # whichever comes first
    try:
        if limits:
            given = ", ".join(f"{side}={_number_code(limit)}" for side, limit in limits)
            return f"{CodeWriter(names, plain=plain).text(node, ATOM)}.clamp({given})"
        return CodeWriter(names, plain=plain).text(whole, level)
    except NoSpelling:
        return whole.label


def _number_code(node: Node | None) -> str:
    if node is None:
        return "0"
    while node.op in ("expand", "cast"):
        node = node.args[0]
    return CodeWriter({node: node.label} if node.op == "input" else {}).text(node)
