"""Where a forward is not differentiable, in the user's names, and what the backward gives there.

In: a ``Subject``.  Out: conditions to print beside a verdict.

A kink at which nothing flows back (the shift of a softmax by its maximum) is not reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from symgrad.budgets import MOST_KINKS
from symgrad.errors import SymgradError
from symgrad.ir.dtype import bool_
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.logic import COMPARISONS
from symgrad.ops.movement import bare
from symgrad.ops.record import get
from symgrad.proof.judge.boundaries import Boundary, changes, kept_from, kinked, number
from symgrad.proof.judge.defined import Definedness, outside
from symgrad.proof.oracle.adjoints import derived_gradients
from symgrad.proof.oracle.numbers import Double
from symgrad.proof.oracle.subject import Evaluation, Subject
from symgrad.proof.oracle.thresholds import broken
from symgrad.proof.oracle.values import DomainError, Evaluator
from symgrad.proof.report.records import Condition
from symgrad.proof.scalars.bodies import kink_equation
from symgrad.proof.words.code import CodeWriter, NoSpelling
from symgrad.proof.words.spelling import shed

_TIES = {"amax": "maximum", "amin": "minimum", "max": "maximum", "min": "minimum"}
_JUMPS = frozenset(("lt", "le", "gt", "ge"))


def kinks(subject: Subject, name: str, names: Iterable[Node] = ()) -> list[Condition]:
    """The kinks and ties of a forward that matter, at most a handful.

    ``name``: the input whose gradient is reported.  ``names``: nodes to be printed by name.
    """
    ranked = _ranked(subject.forward.nodes, CodeWriter(names))
    flowing, jumping = bends(subject), jumps(subject)
    if not flowing and not jumping:
        return ranked
    if (known := outside(subject)) is not None:
        flowing = [node for node in flowing if not _excluded(known, kinked(node))]
        jumping = [node for node in jumping if not _excluded(known, changes(node))]
    at = _generic(subject)
    writer = CodeWriter(names)
    found: list[Condition] = ranked
    for node in flowing:
        condition = _condition(subject, name, node, writer, at)
        if condition is not None and condition not in found:
            found.append(condition)
    for node in jumping:
        condition = _jump(subject, name, node, writer, at)
        if condition is not None and condition not in found:
            found.append(condition)
    if len(found) > MOST_KINKS:
        rest = len(found) - MOST_KINKS
        return [*found[:MOST_KINKS], Condition("kink", f"and {rest} more like these")]
    return found


def _excluded(known: Definedness, found: Iterable[Any]) -> bool:
    """Are all of some boundaries outside of what is stated?"""
    own = [one if isinstance(one, Boundary) else one[0] for one in found]
    return bool(own) and all(map(known.excludes, own))


def _ranked(nodes: Iterable[Node], writer: CodeWriter) -> list[Condition]:
    """The ties of sorts: their ranks change where two elements are equal."""
    found: dict[Condition, None] = {}
    for node in nodes:
        if node.op == "rank" and node.args[0].dtype.is_float:
            try:
                text = _text(writer, node.args[0])
            except NoSpelling:
                continue
            axis = f" along axis {node.attributes['axis']}" if node.rank > 1 else ""
            found[Condition("ties", f"two elements of {text}{axis} are equal")] = None
    return list(found)


def bends(subject: Subject) -> list[Node]:
    """The nodes of forward whose kinks and ties a report names."""
    if subject.bends is None:
        candidates = [node for node in subject.forward.nodes if _may_kink(node)]
        flowing = _flowing(subject, candidates, _generic(subject)) if candidates else []
        subject.bends = tuple(flowing)
    return list(subject.bends)


def jumps(subject: Subject) -> list[Node]:
    """What forward's numbers depend on without a derivative, where that is more than a choice.

    Comparisons of reals that become numbers, or that choose together with others, reals that
    become integers, and places of maxima.  Comparisons that hold on a null set alone are left out
    where forward is continuous there.
    """
    readers: dict[Node, list[Node]] = {}
    discrete = {a.name for a in subject.assumptions if a.kind in _DISCRETE}
    for node in subject.forward.nodes:
        if node.op == "copysign":
            readers[node] = [node]
        elif node.dtype.is_float and not _may_kink(node):
            for source in _sources(node):
                if _is_asked(source, discrete):
                    readers.setdefault(source, []).append(node)
    if not readers:
        return []
    candidates = list(dict.fromkeys(node for nodes in readers.values() for node in nodes))
    flowing = set(_flowing(subject, candidates, _generic(subject)))
    return [
        source for source, nodes in sorted(readers.items(), key=lambda pair: pair[0].index)
        if not flowing.isdisjoint(nodes)
        and not (source.op in _ON_NULL_SETS and not broken(subject, *_compared(source)))
    ]  # fmt: skip


_DISCRETE = ("binary", "one-hot")
_ON_NULL_SETS = ("eq", "ne", "cast")


def _sources(node: Node) -> Iterator[Node]:
    """What makes integers or truth values of reals, of those that a node reads."""
    todo, seen = list(node.args), set[Node]()
    while todo:
        one = todo.pop()
        if one in seen or one.dtype.is_float:
            continue
        seen.add(one)
        if any(arg.dtype.is_float for arg in one.args):
            yield one
        todo += one.args


def _is_asked(source: Node, discrete: set[str]) -> bool:
    """Is it one that changes with real inputs, but for those that are 0 or 1 by declaration?"""
    kinds = (*_JUMPS, "eq", "ne", "cast", *_PLACES)
    real = [
        node for node in ancestors(source.args)
        if node.op == "input" and node.dtype.is_float and node.attributes["name"] not in discrete
    ]  # fmt: skip
    return source.op in kinds and bool(real)


_PLACES = {"argmax": "maximum", "argmin": "minimum"}


def _compared(source: Node) -> tuple[Node, Node | Fraction]:
    """What has to be equal for a comparison, or a cast to a truth value, to change."""
    if source.op == "cast":
        return source.args[0], Fraction(0)
    left, right = source.args
    value = number(right)
    return (left, right) if value is None else (left, value)


def _jump(
    subject: Subject, name: str, node: Node, writer: CodeWriter, at: Evaluation | None
) -> Condition | None:
    try:
        if node.op in _PLACES:
            said = f"the {_PLACES[node.op]} of {_text(writer, node.args[0])}"
            return Condition("ties", f"{said} is reached more than once")
        if node.op == "cast" and node.dtype != bool_:
            text = _text(writer, node.args[0])
            return Condition("kink", f"{text} - floor({text}) == 0")
        left, right = node.args if node.op in COMPARISONS else (node.args[-1], None)
        value = _number(right)
        if value is not None and not math.isfinite(value):
            return None
        equal = "0" if right is None else _text(writer, right)
        where = f"{_text(writer, left)} == {equal}"
        return Condition("kink", where + _there(subject, name, left, right, at))
    except NoSpelling:
        return None


def _may_kink(node: Node) -> bool:
    if not node.dtype.is_float:
        return False
    op = get(node.op)
    if node.op in ("abs", "relu") and kept_from(node.args[0], Fraction(0)):
        return False
    if op.scalar is not None and op.scalar.kinks:
        return True
    if node.op == "where" and node.args[0].op in _JUMPS:
        return node.args[0].args[0].dtype.is_float
    return node.op in _TIES


def _generic(subject: Subject) -> Evaluation | None:
    sizes = next(subject.sampler.size_choices(), None)
    return None if sizes is None else subject.draw(sizes, 0)


def _flowing(subject: Subject, nodes: list[Node], at: Evaluation | None) -> list[Node]:
    """The nodes whose adjoint is not zero at a generic point."""
    if at is None:
        return nodes
    try:
        _, _, adjoints = derived_gradients(subject)
        wanted = [node for node in nodes if node in adjoints]
        program = Evaluator([adjoints[node] for node in wanted])
        values = program.run(Double(), at.point.doubles(), at.point.sizes)
    except (SymgradError, DomainError, ValueError, KeyError):
        return nodes
    scale = 1e-9 * (1 + abs(float(at.objective)))
    return [
        node for node in wanted
        if float(np.max(np.abs(values[adjoints[node]]), initial=0.0)) > scale
    ]  # fmt: skip


def _condition(
    subject: Subject, name: str, node: Node, writer: CodeWriter, at: Evaluation | None
) -> Condition | None:
    try:
        if node.op in _TIES:
            said = (
                f"the {_TIES[node.op]} of {_text(writer, node.args[0])} is reached more than once"
            )
            return Condition("ties", said)
        if node.op == "where":
            left, right = node.args[0].args
            value = _number(right)
            if value is not None and not math.isfinite(value):
                return None  # no real number is there
            left = _behind_constants(left, value)
            where = f"{_text(writer, left)} == {_text(writer, right)}"
            return Condition("kink", where + _there(subject, name, left, right, at))
        if get(node.op).scalar.domain and bare(node.args[0]).op != "input":  # type: ignore[union-attr]
            return None  # the edge of the domain, which has a condition of its own
        where = _equation(node, writer)
        right_side = node.args[1] if len(node.args) == 2 else None
        return Condition("kink", where + _there(subject, name, node.args[0], right_side, at))
    except NoSpelling:
        return None


def _text(writer: CodeWriter, node: Node) -> str:
    return writer.text(shed(node, writer.names))


def _equation(node: Node, writer: CodeWriter) -> str:
    """``x == 0`` for a kink of ``relu(x)``, ``x == y`` for one of ``maximum(x, y)``."""
    args = [_text(writer, arg) for arg in node.args]
    return kink_equation(get(node.op), args)


def _there(
    subject: Subject, name: str, left: Node, right: Node | None, at: Evaluation | None
) -> str:
    """What the hand-written gradient gives at a kink of one input, for a cotangent of 1."""
    value = _number(right)
    source = bare(left)
    if at is None or source.op != "input" or value is None:
        return ""
    if source.attributes["name"] != name or name not in subject.gradients:
        return ""
    if any(one.kind == "plain" for one in subject.assumptions):
        return ""  # it is another value for each value of a plain number
    feeds = at.point.doubles()
    feeds[name] = np.full_like(feeds[name], value)
    for _, cotangent in subject.outputs:
        key = cotangent.attributes["name"]
        feeds[key] = np.ones_like(feeds[key])
    try:
        values = subject.everything.run(Double(), feeds, at.point.sizes)
    except DomainError:
        return ""
    found = np.unique(np.round(values[subject.gradients[name]], 12))
    return f" (yours gives {found[0]:g} there)" if len(found) == 1 else ""


def _behind_constants(node: Node, value: float | None) -> Node:
    """What must be ``value`` where ``node`` is: not a branch that is another constant."""
    while value is not None and (choice := bare(node)).op == "where":
        _, *branches = choice.args
        left = [one for one in branches if _number(one) in (None, value)]
        if len(left) != 1 or _number(left[0]) is not None:
            break
        node = left[0]
    return node


def _number(node: Node | None) -> float | None:
    if node is None:
        return 0.0
    node = bare(node)
    return float(node.attributes["value"].value) if node.op == "constant" else None
