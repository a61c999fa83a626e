"""Where a forward is not differentiable, in the user's names, and what the backward gives there.

In: a ``Subject``.  Out: conditions to print beside a verdict.

A kink at which nothing flows back (the shift of a softmax by its maximum) is not reported, nor is
one that no input meets (``tanh(x) == 1``, ``x == 0`` for a positive x).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import islice

import numpy as np

from symgrad.budgets import MOST_KINKS
from symgrad.errors import SymgradError
from symgrad.ir.dtype import bool_
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.logic import COMPARISONS
from symgrad.ops.movement import bare
from symgrad.ops.record import get
from symgrad.ops.reductions import EXTREMES_ALONG
from symgrad.proof.judge.boundaries import (
    Boundary,
    changes,
    edges,
    integral,
    is_square,
    kept_from,
    kinked,
    may_be_nan,
    roundings,
    source_of,
)
from symgrad.proof.judge.defined import Definedness, excluded, guarded, outside
from symgrad.proof.judge.equality import domains, facts_of
from symgrad.proof.judge.ranges import Ranges, of_inputs, point
from symgrad.proof.normal.facts import Facts
from symgrad.proof.oracle.adjoints import derived_gradients
from symgrad.proof.oracle.numbers import Double
from symgrad.proof.oracle.subject import Evaluation, Subject
from symgrad.proof.oracle.thresholds import broken
from symgrad.proof.oracle.values import DomainError, Evaluator
from symgrad.proof.report.records import Condition
from symgrad.proof.scalars.bodies import bends_at_ends, kink_node
from symgrad.proof.words.code import ATOM, NoSpelling
from symgrad.proof.words.relations import Said, number, reached_twice, related, spelled

_TIES = {"amax": "maximum", "amin": "minimum", "max": "maximum", "min": "minimum"}
_JUMPS = frozenset(("lt", "le", "gt", "ge"))


def kinks(
    subject: Subject, name: str, smooth: Collection[Boundary] = frozenset()
) -> list[Condition]:
    """The kinks and ties of a forward that matter, at most a handful.

    ``name``: the input whose gradient is reported.  ``smooth``: boundaries at which it is proved
    to be the derivative.
    """
    found = _ranked(subject.forward.nodes)
    flowing, jumping = bends(subject), jumps(subject)
    if not flowing and not jumping:
        return found
    said = _Kinks(subject, name, smooth)
    for node in flowing:
        found += said.of(node)
    for node in jumping:
        found += said.of_jump(node)
    found = _without_integers(dict.fromkeys(found))
    if len(found) > MOST_KINKS:
        rest = len(found) - MOST_KINKS
        return [*found[:MOST_KINKS], Condition("kink", f"and {rest} more like these")]
    return found


def _without_integers(found: Iterable[Condition]) -> list[Condition]:
    """Without ``x == 3`` where all integers are named: ``x == x.floor()``."""
    kept = list(found)
    codes = {one.code for one in kept}
    return [
        one for one in kept
        if not ((match := _AN_INTEGER.fullmatch(one.code))
                and _AT_INTEGERS.format(match[1], match[1]) in codes)
    ]  # fmt: skip


_AN_INTEGER = re.compile(r"(.+) == -?\d+")


def _ranked(nodes: Iterable[Node]) -> list[Condition]:
    """The ties of sorts: their ranks change where two elements are equal."""
    found: dict[Condition, None] = {}
    for node in nodes:
        if node.op == "rank" and node.args[0].dtype.is_float:
            if node.shape[node.attributes["axis"]].constant in (0, 1):
                continue
            try:
                said = spelled(node.args[0])
            except NoSpelling:
                continue
            axis = node.attributes["axis"]
            along = f" along axis {axis}" if node.rank > 1 else ""
            code = f"({said.code}).sort({axis}).values.diff(dim={axis}) == 0" if said.code else ""
            text = f"two elements of {said.text}{along} are equal"
            found[Condition("ties", text, code=code)] = None
    return list(found)


def _ties(node: Node, extreme: str) -> list[Condition]:
    """Where an extremum along axes is reached more than once."""
    try:
        said = reached_twice(node.args[0], extreme, node.attributes["axes"])
    except NoSpelling:
        return []
    return [Condition("ties", said.text, code=said.code)]


def bends(subject: Subject) -> list[Node]:
    """The nodes of forward whose kinks and ties a report names."""
    if subject.bends is None:
        squared = _only_squared(subject)
        candidates = [n for n in subject.forward.nodes if _may_kink(n) and n not in squared]
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
        elif node.dtype.is_float and not _may_kink(node) and not may_be_nan(node):
            for source in _sources(node):
                if _is_asked(source, discrete):
                    readers.setdefault(source, []).append(node)
    if not readers:
        return []
    candidates = list(dict.fromkeys(node for nodes in readers.values() for node in nodes))
    flowing = set(_flowing(subject, candidates, _generic(subject)))
    found = [
        source for source, nodes in sorted(readers.items(), key=lambda pair: pair[0].index)
        if not flowing.isdisjoint(nodes)
    ]  # fmt: skip
    null = {source for source in found if _on_null_set(source)}
    known = _ranges(subject) if null else None
    return [
        source for source in found
        if known is None or source not in null
        or (_may_be(known, *_compared(source)) and broken(subject, *_compared(source)))
    ]  # fmt: skip


_DISCRETE = ("binary", "one-hot")


def _on_null_set(source: Node) -> bool:
    """Is it the same but for a null set, as ``x == 3`` and ``x.bool()`` are?"""
    if source.op == "cast":
        return source.dtype == bool_
    return source.op in ("eq", "ne") and not all(map(integral, source.args))


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
    return source.op in kinds and _moved_by_reals(source.args, discrete)


def _moved_by_reals(nodes: Iterable[Node], discrete: Collection[str] = ()) -> bool:
    """Do nodes depend on a real input that is not 0 or 1 by declaration?"""
    return any(
        node.op == "input" and node.dtype.is_float and node.attributes["name"] not in discrete
        for node in ancestors(nodes)
    )  # fmt: skip


_PLACES = {"argmax": "maximum", "argmin": "minimum"}


def _compared(source: Node) -> tuple[Node, Node | Fraction]:
    """What has to be equal for a comparison, or a cast to a truth value, to change."""
    if source.op == "cast":
        return source.args[0], Fraction(0)
    left, right = source.args
    value = number(right)
    return (left, right) if value is None else (left, value)


def _may_kink(node: Node) -> bool:
    if not node.dtype.is_float:
        return False
    if all(map(integral, node.args)) and not _moved_by_reals(node.args):
        return False  # a count stays what it is where a real input moves
    op = get(node.op)
    if node.op in ("abs", "relu") and kept_from(node.args[0], Fraction(0)):
        return False
    if op.scalar is not None and op.scalar.kinks:
        return True
    if node.op == "where" and node.args[0].op in _JUMPS:
        return node.args[0].args[0].dtype.is_float
    return node.op in _TIES


def _only_squared(subject: Subject) -> set[Node]:
    """Absolute values and norms that forward reads in even powers alone, which bend nowhere."""
    readers: dict[Node, list[Node]] = {}
    for reader in subject.forward.nodes:
        for arg in reader.args:
            readers.setdefault(arg, []).append(reader)
    outputs = {node for node, _ in subject.outputs}

    def is_squared(node: Node) -> bool:
        return node not in outputs and all(
            one.dtype.is_float
            and (_is_even_power(one) or (bare(one) is bare(node) and is_squared(one)))
            for one in readers.get(node, ())
        )

    return {node for node in readers if node.op in ("abs", "hypot") and is_squared(node)}


def _is_even_power(node: Node) -> bool:
    if node.op != "pow":
        return node.op == "square" or is_square(node)
    exponent = number(node.args[1])
    return exponent is not None and exponent > 0 and exponent % 2 == 0


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


def untaken(subject: Subject) -> Callable[[Node, Boundary], bool]:
    """Is a node of forward read only in branches that are not taken where it bends?"""
    read = guarded(subject.forward.results, values=True)
    known = _ranges(subject)

    def is_untaken(node: Node, one: Boundary) -> bool:
        ways = read.get(node)
        if not ways or not all(ways) or isinstance(one.value, Node):
            return False
        there = known.copy()
        there.learn(one.point, point(one.value))
        return all(excluded(guards, there) for guards in ways)

    return is_untaken


class _Kinks:
    """The conditions of the nodes of one forward, for the gradient of one input."""

    def __init__(self, subject: Subject, name: str, smooth: Collection[Boundary]) -> None:
        self.subject, self.name, self.smooth = subject, name, smooth
        self.at = _generic(subject)
        self._is_untaken = untaken(subject)
        self._outside = outside(subject)

    def of(self, node: Node) -> list[Condition]:
        """Where a node bends or jumps."""
        if node.op in _TIES:
            return _ties(node, _TIES[node.op])
        if node.op == "where":
            return self._compared(node.args[0])
        if bends_at_ends(node.op) and bare(node.args[0]).op != "input":
            return []  # the edge of the domain, which has a condition of its own
        if node.op in _ROUNDING:
            return self._rounded(node)
        if node.op in _BOUNDED:
            return self._all(one for one in kinked(node) if not self._is_untaken(node, one))
        return self._by_record(node)

    def of_jump(self, node: Node) -> list[Condition]:
        """Where integers or truth values that forward makes of reals change."""
        if node.op in _PLACES:
            return _ties(node, _PLACES[node.op])
        if node.op in COMPARISONS:
            return self._compared(node)
        if node.op == "cast" and node.dtype != bool_:
            return self._rounded(node)
        return self._all(boundary for boundary, _ in changes(node))

    def _compared(self, node: Node) -> list[Condition]:
        if node.op in COMPARISONS and all(map(integral, node.args)):
            return [said for one in edges(node) for said in self._edge(one)]
        return self._all(boundary for boundary, _ in changes(node))

    def _edge(self, one: Boundary | Node) -> list[Condition]:
        return self._all([one]) if isinstance(one, Boundary) else self._rounded(one)

    def _all(self, found: Iterable[Boundary]) -> list[Condition]:
        said = []
        for one in found:
            if one not in self.smooth and self._met(one):
                with suppress(NoSpelling):
                    condition = equation(one, "kink")
                    there = self._there(one) if condition.kind == "kink" else ""
                    said.append(replace(condition, text=condition.text + there))
        return said

    def _rounded(self, node: Node) -> list[Condition]:
        """Where a node that rounds jumps."""
        operand = node.args[0]
        if integral(operand):
            return [said for one in roundings(operand) for said in self._rounded(one)]
        try:
            one = spelled(operand, ATOM)
            if node.op == "floordiv":
                divisor = spelled(node.args[1], ATOM)
                one = Said(
                    f"({one.text} / {divisor.text})",
                    f"({one.code} / {divisor.code})" if one.code and divisor.code else "",
                )
        except NoSpelling:
            return []
        form = _HALFWAY if node.op == "round" else _AT_INTEGERS
        bare_text = one.text[1:-1] if node.op == "floordiv" else one.text
        text = form.format(bare_text, one.text)
        return [Condition("kink", text, code=form.format(one.code, one.code) if one.code else "")]

    def _by_record(self, node: Node) -> list[Condition]:
        """Where the record of an op has its first kink."""
        try:
            vanishing = kink_node(node)
            if self._known.of(vanishing).nonzero:
                return []
            said = related(vanishing, "==")
        except (NoSpelling, SymgradError):
            return []
        return [Condition("kink", said.text, code=said.code)]

    def _met(self, one: Boundary) -> bool:
        """May an input lie on a boundary, as far as intervals show?"""
        if self._outside is not None and self._outside.excludes(one):
            return False
        if not _may_be(self._known, one.point, one.value):
            return False
        return isinstance(one.value, Node) or not self._is_number(one.point)

    def _is_number(self, node: Node) -> bool:
        """Is it one number wherever it is defined?  Then forward bends nowhere there."""
        values = None if self.at is None else self.at.values.get(node)
        if values is None or not np.size(values) or not np.allclose(values, np.ravel(values)[0]):
            return False
        return Definedness(self.subject, Facts()).is_number(node)

    @cached_property
    def _known(self) -> Ranges:
        return _ranges(self.subject)

    def _there(self, one: Boundary) -> str:
        """What the hand-written gradient gives at a kink of one input, for a cotangent of 1.

        Nothing where that is another number at other points.
        """
        subject, point, there = self.subject, one.point, one.value
        if isinstance(there, Node) and bare(there).op == "input":
            point, there = there, point
        source = bare(point)
        if self.at is None or source.op != "input":
            return ""
        if source.attributes["name"] != self.name or self.name not in subject.gradients:
            return ""
        points = [self.at, *self._others]
        if not self._plain_differ(points):
            return ""
        found = {
            None if value is None else self._given(at, value)
            for at, value in ((at, _number(at, there)) for at in points)
        }
        value = found.pop()
        return "" if found or value is None else f" (yours gives {value + 0.0:g} there)"

    def _plain_differ(self, points: Sequence[Evaluation]) -> bool:
        """Has each plain number several values at these points?  One may have one of its own."""
        names = [known.name for known in self.subject.assumptions if known.kind == "plain"]
        return all(len({float(at.point.doubles()[name]) for at in points}) > 2 for name in names)

    @cached_property
    def _others(self) -> list[Evaluation]:
        """Generic points of other sizes, if any, at which what is said must be the same."""
        known = list(islice(self.subject.sampler.size_choices(), GENERIC_POINTS))
        numbers = range(1, GENERIC_POINTS) if known else ()
        found = (self.subject.draw(known[number % len(known)], number) for number in numbers)
        return [at for at in found if at is not None]

    def _given(self, at: Evaluation, value: float) -> float | None:
        """The one element of the hand-written gradient where all of its input is ``value``."""
        feeds = at.point.doubles()
        feeds[self.name] = np.full_like(feeds[self.name], value)
        for _, cotangent in self.subject.outputs:
            key = cotangent.attributes["name"]
            feeds[key] = np.ones_like(feeds[key])
        try:
            values = self.subject.everything.run(Double(), feeds, at.point.sizes)
        except DomainError:
            return None
        found = np.unique(np.round(values[self.subject.gradients[self.name]], 12))
        return float(found[0]) if len(found) == 1 else None


def _shifted(one: Node, other: Node) -> bool:
    """Are they slices of one node of which no element is in the same place in both?"""
    if one.op != "slice" or other.op != "slice" or one.args != other.args:
        return False
    if one.attributes["steps"] != other.attributes["steps"]:
        return False
    pairs = zip(one.attributes["starts"], other.attributes["starts"], strict=True)
    return any((left - right).constant not in (0, None) for left, right in pairs)


def _tied(one: Node, other: Node) -> Condition:
    """Where an element of a node is another one.  Raises NoSpelling.

    That some element is the greatest one, or the third in their order, is so everywhere; which one
    it is changes where two are equal.
    """
    for node in (bare(other), bare(one)):
        if node.op in EXTREMES_ALONG and bare(node.args[0]) in (bare(one), bare(other)):
            for said in _ties(node, _TIES[node.op]):
                return said
    source = source_of(one)
    ranks = [
        node
        for node in ancestors([one, other])
        if node.op == "rank" and source_of(node.args[0]) is source
    ]
    for said in _ranked(ranks):
        return said
    whole = spelled(source)
    code = f"({whole.code}).flatten().sort().values.diff() == 0" if whole.code else ""
    return Condition("ties", f"two elements of {whole.text} are equal", code=code)


def _number(at: Evaluation, value: Node | Fraction) -> float | None:
    """The number that a boundary is at; None where it is not one."""
    found = np.unique(at.values[value]) if isinstance(value, Node) and value in at.values else None
    if isinstance(value, Node):
        return float(found[0]) if found is not None and len(found) == 1 else None
    return float(value)


GENERIC_POINTS = 3
_ROUNDING = ("floor", "ceil", "trunc", "round", "floordiv")
_BOUNDED = ("abs", "relu", "sqrt", "root", "maximum", "minimum", "sign", *COMPARISONS)
_AT_INTEGERS, _HALFWAY = "{0} == {1}.floor()", "{0} - {1}.floor() == 0.5"


def _ranges(subject: Subject) -> Ranges:
    """The ranges of nodes, by what is declared and by what forward demands of its inputs."""
    declared = {known.name for known in subject.assumptions}
    own = [one for one in domains(subject.forward.nodes) if one.name not in declared]
    facts = facts_of(
        [*own, *subject.assumptions], subject.sampler.uses, subject.conditions,
        shapes={name: node.shape for name, node in subject.by_name.items()},
        recognise=subject.recognised, products=subject.products,
    )  # fmt: skip
    return Ranges(of_inputs(subject, facts), facts.least_sizes)


def _may_be(ranges: Ranges, node: Node, value: Node | Fraction) -> bool:
    """May a node be a value, as far as intervals show?"""
    known = ranges.of(node)
    if isinstance(value, Node):
        return not (known + -ranges.of(value)).nonzero
    return not known.meet(point(value)).empty


def equation(boundary: Boundary, kind: str) -> Condition:
    """A boundary as a condition to print.  Raises NoSpelling."""
    point, value = boundary.point, boundary.value
    alike = isinstance(value, Node) and source_of(point) is source_of(value)
    if alike and isinstance(value, Node) and not _shifted(point, value):
        return _tied(point, value)
    sides = (value, point) if isinstance(value, Node) else (point, value)
    said = related(sides[0], "==", sides[1])
    return Condition(kind, said.text, code=said.code)
