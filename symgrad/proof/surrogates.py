"""What a refuted gradient is the derivative of, where backward means another function than forward.

In: a case, the names of the inputs whose gradients are refuted.  Out: ``Surrogate``, proved: one
for all of them.

Three things are put for parts of forward, and backward is judged against the result, as against
any forward:

- A *step* is a node that is constant around almost every point: a rounding, a sign, a comparison
  as a number.  ``slope(u) + c`` stands for it, in forward and in backward alike, with an unknown
  constant ``c`` for each element: its value stays arbitrary, its derivative is that of ``slope``.
  A *clip* (the smaller or greater one of two values) is treated likewise.
- A whole output may have the derivative of another node of its type: of an input, times a number,
  or of what forward computes on the way.
- A gradient that is clipped is judged as it was before.

Candidates are tried at a few points first, up to a factor; only what fits there is proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np

from symgrad.budgets import REPAIR_WORK, SURROGATE_NODES, SURROGATE_PROOFS, SURROGATE_SCALARS
from symgrad.errors import SymgradError
from symgrad.ir.assume import Assumption
from symgrad.ir.dtype import bool_
from symgrad.ir.function import FunctionCase
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ops.record import get
from symgrad.proof.judge.decide import judge
from symgrad.proof.judge.protocol import structurally_linear
from symgrad.proof.oracle.subject import NoPointError, Subject
from symgrad.proof.words.code import ATOM, CodeWriter, NoSpelling

SubjectOf = Callable[[FunctionCase, Sequence[Assumption]], Subject]
Slope = Callable[[Node], Node]
"""What has the derivative that is put for that of a step, of the argument of the step."""

POINTS = 4
_USUAL = (0, 1, 2, 0.5, -1)
_CLOSE, _NEAR = 1e-7, 1e-5
_UPWARD = {"gt": True, "ge": True, "lt": False, "le": False}


@dataclass(frozen=True)
class Surrogate:
    """What backward does instead, as a predicate: ``is the derivative of ...``, which is proved.

    Where forward is flat and nothing was recognised, it says so.
    """

    text: str


def surrogate(
    case: FunctionCase, names: Sequence[str], declared: Sequence[Assumption],
    modes: Mapping[str, str], subject_of: SubjectOf,
) -> Surrogate | None:  # fmt: skip
    """What the gradients of some inputs are the derivatives of; None where they are plain mistakes.

    ``modes``: those in which the case was sampled.  ``subject_of``: makes the subject of a case.
    """
    search = _Search(case, names, declared, modes, subject_of)
    found = search.first()
    if found is not None:
        return found
    inner = search.unclipped()
    if inner is not None:
        within, clip = inner
        search = _Search(within, names, declared, modes, subject_of)
        if search.is_proved(within):
            return Surrogate(f"is the true gradient, {clip}")
        found = search.first()
        if found is not None:
            return Surrogate(f"{found.text}, {clip}")
    return Surrogate(_NOT_ZERO) if search.flat and search.linear else None


_NOT_ZERO = "is not zero, which is the true gradient: forward is constant around almost every point"


class _Search:
    """The candidates for some gradients together."""

    def __init__(
        self, case: FunctionCase, names: Sequence[str], declared: Sequence[Assumption],
        modes: Mapping[str, str], subject_of: SubjectOf,
    ) -> None:  # fmt: skip
        self.case, self.names, self.declared = case, tuple(names), declared
        self.modes, self.subject_of = modes, subject_of
        given = [one.node for one in case.gradients if one.input in names]
        self.gradients = [node for node in given if node is not None]
        self.inputs = [node for node in case.inputs if node.attributes["name"] in names]
        self.proofs = 0

    # -- what forward is

    @cached_property
    def forward(self) -> list[Node]:
        """The nodes of forward that depend on the inputs."""
        depends = {*self.inputs}
        for node in ancestors(self.case.outputs):
            if any(arg in depends for arg in node.args):
                depends.add(node)
        return [node for node in ancestors(self.case.outputs) if node in depends]

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
    def linear(self) -> bool:
        """Are the gradients linear in the cotangents, for how they are built?"""
        return structurally_linear(self._subject(self.case))

    @cached_property
    def passed(self) -> Node | None:
        """The cotangent of the only output, where that is the only input."""
        if len(self.case.outputs) != 1 or [_same(self.case.outputs[0])] != self.inputs:
            return None
        return self.case.cotangents[0]

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
        return [node for node in self.forward if _limited(node, self.forward) is not None]

    def unclipped(self) -> tuple[FunctionCase, str] | None:
        """The case with the gradient as it was before it was clipped, and how that was done."""
        bounds: dict[str, str] = {}
        node = self.gradients[0] if len(self.gradients) == 1 else None
        while node is not None and (found := _clipped(node)) is not None:
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

    def first(self) -> Surrogate | None:
        """The first candidate that backward is proved to be the derivative of."""
        if len(self.gradients) < len(self.names):
            return None
        for make, scaled in chain(self._of_steps(), self._of_outputs()):
            found = self._tried(make, scaled)
            if found is not None or self.proofs >= SURROGATE_PROOFS:
                return found
        return None

    def _tried(self, make: _Make, scaled: bool) -> Surrogate | None:
        """The surrogate that one candidate gives: itself, or times a number."""
        try:
            plain = make(None)
            ratio = self._ratio(plain.case) if self._fits(plain.case) else None
        except (SymgradError, NoPointError, ValueError):
            return None
        if not ratio:
            return None
        factors: list[Node | None] = [None] if abs(ratio - 1) < _NEAR else []
        if scaled and not factors:
            factors += self._numbers(ratio)[:2]
        for factor in factors:
            made = plain if factor is None else make(factor)
            self.proofs += 1
            if self.is_proved(made.case):
                return Surrogate(made.text)
        return None

    def _fits(self, case: FunctionCase) -> bool:
        return all(
            new.shape == old.shape for new, old in zip(case.outputs, self.case.outputs, strict=True)
        )

    def _of_steps(self) -> Iterator[tuple[_Make, bool]]:
        """The identity for steps, for clips as well, for clips alone; then other slopes."""
        steps = self.steps
        clips = self.clips if steps or len(self.clips) > 1 else []
        for places in (steps, [*steps, *clips], clips):
            if places and not (places is clips and steps):
                yield partial(self._stepped, _own_argument, places), self._is_plain(places)
        for slope in self._slopes() if steps else ():
            yield partial(self._stepped, slope, steps), self._is_plain(steps)

    def _is_plain(self, places: Sequence[Node]) -> bool:
        """Is forward one step, of the input: so that a number may be on purpose?"""
        return len(places) == 1 and places[0] in self.case.outputs

    def _of_outputs(self) -> Iterator[tuple[_Make, bool]]:
        """Other nodes in place of the output, where it has none of its own slope."""
        trivial = self.flat or self.passed is not None
        if len(self.case.outputs) != 1 or not (trivial or self.steps):
            return
        output = self.case.outputs[0]
        for node in [*self.inputs, *reversed(self.forward)][:SURROGATE_NODES]:
            given = node in self.inputs
            fits = node.shape == output.shape and node.dtype.is_float and (node != output or given)
            if fits and all(node in ancestors([step]) for step in self.steps):
                yield partial(self._replaced, node), given and trivial

    def _slopes(self) -> Iterator[Slope]:
        """Functions whose derivatives people put for that of a step."""
        scalars = self.scalars
        for low, high in _windows([one for one in scalars if one.op == "constant"]):
            yield partial(_clamped, low=low, high=high)
        for family in (_tanh, _sigmoid, _atan, _softsign, _erf, _under_hat, _under_decay):
            for scale in (None, *map(_positive, scalars)):
                yield partial(family, scale=scale)

    @cached_property
    def scalars(self) -> list[Node]:
        """The numbers that backward computes with: literals, inputs of rank 0, what these make."""
        found: list[Node] = []
        for node in ancestors(self.gradients):
            literal = node.op == "constant" and node.attributes["value"].value not in _USUAL
            given = node.op == "input" and node not in self.case.cotangents
            made = bool(node.args) and all(arg in found for arg in node.args)
            if (literal or given or made) and not node.rank and node.dtype.is_float:
                found.append(node)
        return found[-SURROGATE_SCALARS:]

    def _numbers(self, wanted: float) -> list[Node]:
        """Numbers made of those of backward that may be ``wanted``; of inputs all may be."""
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
        unknown = [node for node, value in made if value is None]
        return [*known, *unknown] or [graph.constant(wanted, self.inputs[0].dtype)]

    # -- the case with something put for a part of forward

    def _stepped(self, slope: Slope, places: Sequence[Node], factor: Node | None) -> _Made:
        """The case with another slope for some nodes, their values arbitrary."""
        graph = Graph()
        constants: list[Node] = []
        put: dict[Node, str] = {}

        def rule(node: Node, args: Sequence[Node]) -> Node | None:
            if node not in places:
                return None
            argument = _argument(node, args)
            assert argument is not None
            made = slope(argument)
            known = _INTEGRALS.get(getattr(slope, "func", slope))
            shown = made if known is None else known(argument, **getattr(slope, "keywords", {}))
            if factor is not None:
                made, shown = _scaled(made, factor), _scaled(shown, factor)
            put[node] = f"{'' if known is None else 'the integral of '}`{_code(shown, constants)}`"
            constants.append(graph.input(f"step {len(constants)}", node.type))
            return made + constants[-1]

        new = _rewritten(self.case, graph, self.names, rule)
        inside = {one for node in places for one in ancestors(node.args) if one in places}
        texts = [
            f"{put[node]} in place of `{_code(node)}`"
            for node in places if node in put and node not in inside
        ]  # fmt: skip
        said = f"is the derivative of {' and '.join(dict.fromkeys(texts[:2]))}"
        case = replace(new, inputs=(*new.inputs, *constants))
        return _Made(case, said)

    def _replaced(self, node: Node, factor: Node | None) -> _Made:
        """The case with another node for its output."""
        graph = Graph()
        new = _rewritten(self.case, graph, self.names, None, [node])
        made = rewrite(graph, [node])[node]
        if factor is not None:
            made = _scaled(made, factor)
        code = node.name if node.name and factor is None else _code(made)
        said = f"is the derivative of `{code}` in place of forward"
        return _Made(replace(new, outputs=(made,)), said)

    # -- at points, and in general

    def _subject(self, case: FunctionCase) -> Subject:
        subject = self.subject_of(case, self.declared)
        subject.gradients = {name: subject.gradients[name] for name in self.names}
        subject.settle_as(self.modes)
        subject.settle()
        return subject

    def _ratio(self, case: FunctionCase) -> float | None:
        """The factor between backward and the derivative, if it is one at most points."""
        subject = self._subject(case)
        ratios: list[float] = []
        sizes = subject.sampler.small_choices(POINTS) or [{}]
        for number in range(2 * POINTS):
            at = subject.draw(sizes[number % len(sizes)], number)
            if at is None:
                continue
            for name in self.names:
                seen = subject.compare(at, {name: subject.direction(name, at)})
                if abs(seen.quotient) > _CLOSE:
                    ratios.append(float(seen.claimed / seen.quotient))
                elif abs(seen.claimed) > _CLOSE:
                    return None
        if not ratios or not np.all(np.isfinite(ratios)):
            return None
        middle = float(np.median(ratios))
        near = sum(abs(one - middle) <= _NEAR * abs(middle) for one in ratios)
        return middle if 2 * near > len(ratios) or self._has_numbers() else None

    def _has_numbers(self) -> bool:
        return any(one.op == "input" for one in self.scalars)

    def is_proved(self, case: FunctionCase) -> bool:
        """Are the gradients the derivatives of this forward?"""
        try:
            found = judge(self._subject(case), budget=REPAIR_WORK)
        except (SymgradError, NoPointError):
            return False
        return all(found[name].verdict for name in self.names)


@dataclass(frozen=True)
class _Made:
    """A case against which backward is judged, and what to say where it is right there."""

    case: FunctionCase
    text: str


_Make = Callable[["Node | None"], _Made]
"""A case, with something put for a part of forward; its derivative times a number, if given."""


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
    return replace(
        case,
        graph=graph,
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


# -- steps and clips


def _is_flat(node: Node) -> bool:
    """Is the op constant around almost every point?"""
    op = get(node.op)
    return bool(node.args) and op.scalar is not None and op.vjp is None and op.name != "shift"


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
    if compared.op not in _UPWARD or not compared.args[0].dtype.is_float:
        return None
    left, right = compared.args
    if _value(right) == 0:
        return left if _UPWARD[compared.op] else -left
    return left - right if _UPWARD[compared.op] else right - left


def _bounded(node: Node) -> int | None:
    """Which argument a clip limits: the other one is a number."""
    if node.op == "relu":
        return 0
    if node.op in ("maximum", "minimum"):
        numbers = [_is_number(arg) for arg in node.args]
        return None if all(numbers) or not any(numbers) else numbers.index(False)
    if node.op == "where":  # where(u < low, low, u)
        compared, *arms = node.args
        for place, arm in enumerate(arms, 1):
            other = node.args[3 - place]
            known = not _is_number(arm) and _is_number(other)
            if known and compared.op in _UPWARD and arm in compared.args:
                return place
    return None


def _limited(node: Node, forward: Sequence[Node]) -> Node | None:
    place = _bounded(node)
    if place is None or node.args[place] not in forward:
        return None
    return node.args[place]


def _clipped(node: Node) -> tuple[Node, str, Node | None] | None:
    """What a clip limits, its keyword in ``clamp``, and the limit, None for 0; None for no clip."""
    place = _bounded(node)
    if place is None:
        return None
    limit = next((arg for arg in node.args if _is_number(arg)), None)
    if node.op == "where":
        smaller = node.args[0].op in ("lt", "le")
        own = node.args[0].args[0] is node.args[place]
        below = (smaller == own) == (place == 2)
        limit = node.args[3 - place]
    else:
        below = node.op in ("relu", "maximum")
    return node.args[place], "min" if below else "max", limit


def _is_number(node: Node) -> bool:
    """Is every element the same number, known or not?"""
    while node.op in ("expand", "cast", "neg"):
        node = node.args[0]
    return node.op == "constant" or (node.op == "input" and not node.rank)


def _value(node: Node) -> float | None:
    while node.op in ("expand", "cast"):
        node = node.args[0]
    return float(node.attributes["value"].value) if node.op == "constant" else None


def _same(node: Node) -> Node:
    """The node without what changes neither its values nor its shape."""
    while node.args and node.shape == node.args[0].shape:
        plain = node.op == "mul" and _value(node.args[1]) == 1
        plain = plain or (node.op in ("add", "sub") and _value(node.args[1]) == 0)
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
    value = _value(scale)
    return scale if value is None or value > 0 else scale.graph.constant(-value, scale.dtype)


def _clamped(u: Node, low: float | None, high: float | None) -> Node:
    graph = u.graph
    if low is not None:
        u = graph.binary("maximum", u, low)
    return u if high is None else graph.binary("minimum", u, high)


def _scaled(u: Node, scale: Node) -> Node:
    """A value times a number of another graph."""
    return u.graph.expand(rewrite(u.graph, [scale])[scale], u.shape) * u


def _times(u: Node, scale: Node | None) -> Node:
    return u if scale is None else _scaled(u, scale)


def _per(u: Node, scale: Node | None) -> Node:
    if scale is None:
        return u
    number = rewrite(u.graph, [scale])[scale]
    return u / u.graph.expand(number, u.shape)


def _applied(u: Node, scale: Node | None, op: str) -> Node:
    return u.graph.apply(op, _times(u, scale))


def _tanh(u: Node, scale: Node | None) -> Node:
    return _applied(u, scale, "tanh")


def _sigmoid(u: Node, scale: Node | None) -> Node:
    return _applied(u, scale, "sigmoid")


def _erf(u: Node, scale: Node | None) -> Node:
    return _applied(u, scale, "erf")


def _atan(u: Node, scale: Node | None) -> Node:
    return u.graph.apply("atan", _times(u, scale))


def _softsign(u: Node, scale: Node | None) -> Node:
    return u / (1.0 + _times(u.graph.apply("abs", u), scale))


def _hat(u: Node, scale: Node | None) -> Node:
    graph = u.graph
    return graph.binary("maximum", 1.0 - graph.apply("abs", _times(u, scale)), 0.0)


def _decay(u: Node, scale: Node | None) -> Node:
    return u.graph.apply("exp", -u.graph.apply("abs", _times(u, scale)))


def _under_hat(u: Node, scale: Node | None) -> Node:
    inside = _clamped(_times(u, scale), -1.0, 1.0)
    return _per(inside - 0.5 * inside * u.graph.apply("abs", inside), scale)


def _under_decay(u: Node, scale: Node | None) -> Node:
    return _per(u.graph.apply("sign", u) * (1.0 - _decay(u, scale)), scale)


_INTEGRALS: dict[Any, Callable[..., Node]] = {
    _under_hat: _hat,
    _under_decay: _decay,
}
"""What is known better by its derivative than by itself."""


# -- words


def _code(node: Node, hidden: Sequence[Node] = ()) -> str:
    """Tensor code of a node, without the constants of steps below it."""
    if hidden:

        def rule(node: Node, args: Sequence[Node]) -> Node | None:
            shown = [arg for arg, old in zip(args, node.args, strict=True) if old not in hidden]
            return shown[0] if node.op == "add" and len(shown) == 1 else None

        node = rewrite(Graph(), [node], rule=rule)[node]
    names = {one: one.label for one in ancestors([node]) if one.op == "input"}
    limits, whole = [], node
    while (found := _clipped(node)) is not None:
        node, side, limit = found
        limits.append((side, limit))
    try:
        if limits:
            given = ", ".join(f"{side}={_number_code(limit)}" for side, limit in reversed(limits))
            return f"{CodeWriter(names).text(node, ATOM)}.clamp({given})"
        return CodeWriter(names).text(whole)
    except NoSpelling:
        return whole.label


def _number_code(node: Node | None) -> str:
    if node is None:
        return "0"
    while node.op in ("expand", "cast"):
        node = node.args[0]
    return CodeWriter({node: node.label} if node.op == "input" else {}).text(node)
