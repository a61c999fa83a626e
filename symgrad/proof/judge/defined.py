"""Where backward is not defined though forward is: what has to be printed beside a proof.

In: a ``Subject``, what is declared, conditions that are printed already.  Out: conditions.

A term that is multiplied by 0, subtracted from itself, compared with itself or divided by itself
has vanished from the normal form, and is evaluated all the same.  So this looks at the graph: each
op that backward evaluates, with the constraints of its record on its operands.  A ``where`` takes
the branch that its condition chooses; an op counts where each ``where`` between it and the
gradient chooses its side.  Ops that forward evaluates as well are defined where forward is.

A constraint is met by interval arithmetic on the graph (``ranges``), by the signs of the normal
form (``positivity``), by the conditions under which the op is evaluated, or by what forward itself
demands.  The others are printed, each once, in terms of the inputs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from symgrad.budgets import DOMAIN_WORK, MOST_GUARDS
from symgrad.errors import SymgradError
from symgrad.index.lower import Lowering
from symgrad.ir.expr import OPPOSITE, TURNED
from symgrad.ir.graph import Node, ancestors
from symgrad.ops.logic import COMPARISONS
from symgrad.ops.markers import value_args
from symgrad.ops.movement import bare
from symgrad.ops.record import get
from symgrad.proof.judge import stated
from symgrad.proof.judge.boundaries import Boundary
from symgrad.proof.judge.domain_text import condition_about, where_zero
from symgrad.proof.judge.equalities import NOTHING
from symgrad.proof.judge.equality import element_of, facts_of, with_ranks
from symgrad.proof.judge.exceptional import is_excluded
from symgrad.proof.judge.families import Families
from symgrad.proof.judge.goals import definitions, opaque_atoms
from symgrad.proof.judge.positivity import holds
from symgrad.proof.judge.ranges import (
    ANY,
    APART,
    NONNEGATIVE,
    POSITIVE,
    Known,
    Range,
    Ranges,
    number,
    of_inputs,
    point,
)
from symgrad.proof.judge.reference import gradient_indices
from symgrad.proof.judge.supports import with_supports
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.algebra import multiples, primitive
from symgrad.proof.normal.atoms import Undecided
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.facts import Facts
from symgrad.proof.normal.from_expr import Conversion, decide
from symgrad.proof.normal.poly import Poly, direct_atoms, of_atom
from symgrad.proof.normal.rules import RULES
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.records import Condition
from symgrad.proof.scalars.bodies import Nodes, of_operands, translated
from symgrad.proof.scalars.terms import OPERANDS, Term, term
from symgrad.proof.words.code import NoSpelling
from symgrad.proof.words.polytext import PolyText
from symgrad.proof.words.relations import related, spelled

Atom = tuple[Node, bool]
"""A condition, and whether it holds."""
Guards = frozenset[Atom]
"""Conditions under which a node is evaluated, at its own indices."""

_RELATIONS = {"positive": ">", "nonnegative": ">=", "nonzero": "!="}
_STRENGTH = {"positive": 0, "nonnegative": 1, "regular": 2, "nonzero": 3}
_MEANING = {"positive": POSITIVE, "nonnegative": NONNEGATIVE, "nonzero": APART}
_ENOUGH = {
    "positive": [(">", False)], "nonnegative": [(">", False), (">=", False)],
    "nonzero": [("!=", False), ("!=", True), (">", False), (">", True)],
}  # fmt: skip
"""By which relations a kind is implied, of the value or of its negative."""
_KINDS = {relation: kind for kind, relation in _RELATIONS.items()}
_SHOWN = {**_RELATIONS, "nonzero": "=="}
_ALWAYS: Guards = frozenset()


@dataclass(frozen=True)
class Need:
    """All elements of ``node`` must be of a kind where ``guards`` hold, for ``reader`` to be."""

    kind: str
    node: Node
    guards: Guards
    reader: Node


def outside(subject: Subject) -> Definedness | None:
    """What says where points cannot be, by what is stated; None where nothing is."""
    if not subject.relations:
        return None
    shapes = {name: node.shape for name, node in subject.by_name.items()}
    facts = facts_of(
        subject.assumptions, subject.sampler.uses, subject.conditions, shapes=shapes
    )  # fmt: skip
    return Definedness(subject, stated.with_relations(facts, stated.relations(subject), {}))


class Definedness:
    """What the gradients of one subject need to be defined; what is found for one serves all."""

    def __init__(self, subject: Subject, facts: Facts) -> None:
        self.subject, self.facts = subject, facts
        self._forward = guarded(subject.forward.results)
        self._ranges = Ranges(of_inputs(subject, facts), facts.least_sizes)
        self._inputs = self._ranges.copy()
        self._given: list[Need] = []
        self._algebra: _Algebra | None = None
        self._given += learn_stated(self._ranges, subject)
        learn_stated(self._inputs, subject)
        for need in _needs(self._forward):
            if need.guards:
                self._given.append(need)
            else:
                _learn(self._ranges, need)

    def conditions(
        self, name: str, printed: Iterable[Condition] = (),
        known: Iterable[tuple[Node, Range]] = (), *,
        within: Guards = _ALWAYS, beside: Guards | None = None,
    ) -> list[Condition]:  # fmt: skip
        """Where the gradient of ``name`` is not defined, but for what is printed already.

        ``known``: what the printed conditions say of single nodes.  Only what is evaluated under
        the conditions ``within`` alone counts, and not what is under those ``beside``.
        """
        open_needs = [
            need for need in self._own(name)
            if within <= need.guards and not (beside is not None and beside <= need.guards)
            and self._left(need)
        ]  # fmt: skip
        if not open_needs:
            return []
        before, self._ranges = self._ranges, self._ranges.copy()
        try:
            for node, found in known:
                self._ranges.learn(node, found)
            return self._printed([need for need in open_needs if self._left(need)], printed)
        finally:
            self._ranges = before

    def _printed(self, open_needs: Sequence[Need], printed: Iterable[Condition]) -> list[Condition]:
        """What is printed of needs that are not met; the strongest first, which imply others."""
        said = {condition.about for condition in printed if condition.about}
        for need in open_needs:
            if said and self._said(need, said):
                _learn(self._ranges, need)
        found: dict[Condition, None] = {}
        for need in sorted(open_needs, key=lambda one: _STRENGTH[one.kind]):
            for part in self._left(need):
                if not (said and self._said(part, said)):
                    found[self._condition(part)] = None
                _learn(self._ranges, part)
        return list(found)

    def nowhere(self, name: str) -> bool:
        """Is the gradient of ``name`` defined for no input, since a need is met by none?"""
        return any(
            need.kind in _MEANING
            and _MEANING[need.kind].meet(self._ranges.of(need.node)).empty
            for need in self._own(name) if not need.guards
        )  # fmt: skip

    def always(self, condition: Condition) -> bool:
        """Is a condition on what is not 0 met by every input, whether forward is defined or not?"""
        if condition.kind != "nonzero" or not condition.about:
            return False
        before, self._ranges = self._ranges, self._inputs
        try:
            return any(
                need.kind in ("nonzero", "positive")
                and self._is_about(need.node, condition.about)
                and not self._left(replace(need, guards=_ALWAYS))
                for need in _needs(guarded(self.subject.everything.results))
            )
        finally:
            self._ranges = before

    def _is_about(self, node: Node, about: str) -> bool:
        return any(self._normal.about(node, "!=", turned) == about for turned in (False, True))

    def _own(self, name: str) -> Iterator[Need]:
        """What backward demands and forward does not."""
        gradient = self.subject.gradients[name]
        for need in _needs(guarded([gradient])):
            evaluated = self._forward.get(need.reader, ())
            if not any(guards <= need.guards for guards in evaluated):
                yield need

    def is_number(self, node: Node) -> bool:
        """Is it one number wherever it is defined, as ``x / x`` is?"""
        poly = self._normal.poly(node)
        return poly is not None and poly.constant is not None

    def excludes(self, boundary: Boundary) -> bool:
        """Does what is stated of the inputs keep a point from a value everywhere?"""
        graph, point, value = self.subject.graph, boundary.point, boundary.value
        if isinstance(value, Node):
            if value.shape != point.shape:
                return False
            gap = graph.apply("sub", point, value)
        else:
            gap = graph.apply("sub", point, graph.lift(float(value), point))
            if Fraction(repr(float(value))) != value:
                return False
        return not self._left(Need("nonzero", gap, _ALWAYS, gap))

    # -- is it met?

    def _left(self, need: Need) -> list[Need]:
        """What is left to show; empty where it is met."""
        here = self._known_here(need.guards)
        if need.kind == "regular" and need.node in self._ranges.regular:
            return []
        if here is None or _met(need.kind, self._ranges.of(need.node, here)):
            return []
        if any(
            one.guards <= need.guards and one.node is need.node and _implies(one.kind, need.kind)
            for one in self._given
        ):
            return []
        parts = self._parts(need)
        if parts is not None:
            return [left for part in parts for left in self._left(part)]
        return [] if self._by_algebra(need) else [need]

    def _known_here(self, guards: Guards) -> Known | None:
        """What conditions say of single nodes; None where they exclude each other."""
        if any((condition, not value) in guards for condition, value in guards):
            return None
        found: dict[Node, Range] = {}
        for need in self._given:
            if need.guards <= guards and need.kind in _MEANING:
                _take(found, need.node, _MEANING[need.kind])
        for condition, value in guards:
            if condition.op in COMPARISONS:
                relation = condition.op if value else OPPOSITE[condition.op]
                left, right = condition.args
                _take(found, left, _compared(relation, self._ranges.of(right)))
                _take(found, right, _compared(TURNED[relation], self._ranges.of(left)))
        if any(known.meet(self._ranges.of(node)).empty for node, known in found.items()):
            return None
        return found

    def _parts(self, need: Need) -> list[Need] | None:
        """Needs of the operands that are together the same; None where there are none."""
        node, kind, guards = need.node, need.kind, need.guards

        def part(of: Node, kind: str = kind, guards: Guards = guards) -> Need:
            return Need(kind, of, guards, need.reader)

        if node.op == "where":
            condition, chosen, other = node.args
            sides = [(chosen, True), (other, False)]
            return [part(of, guards=guards | atoms(condition, side)) for of, side in sides]
        if node.op in _MOVING:
            kept = transported(guards, node)
            return [part(node.args[0], guards=kept)] if len(kept) == len(guards) else None
        if kind in ("nonzero", "positive") and node.op in ("square", "abs", "sqrt", "root"):
            return [part(node.args[0], "nonzero")]
        if kind == "nonzero" and (factors := _factors(node, guards)):
            return [part(of) for of in factors]
        if node.op == "mul" and kind in ("positive", "nonnegative"):
            for one, other in (node.args, node.args[::-1]):
                if self._ranges.of(one, self._known_here(guards)).positive:
                    return [part(other)]
        return None

    def _by_algebra(self, need: Need) -> bool:
        relation = _RELATIONS.get(need.kind, ">")
        try:
            algebra = self._normal
            poly = algebra.poly(need.node)
            if poly is None:
                return False
            if algebra.holds(poly, relation):
                return True
            if relation == "!=" and (
                algebra.holds(-poly, ">") or is_excluded(poly, self.facts)
            ):  # fmt: skip
                return True
            facts = [
                fact for condition, value in need.guards
                if condition.op in COMPARISONS
                for fact in algebra.facts(condition, value)
            ]  # fmt: skip
            return any(algebra.follows(poly, relation, *fact) for fact in facts)
        except (SymgradError, Undecided):
            return False

    @property
    def _normal(self) -> _Algebra:
        if self._algebra is None:
            self._algebra = _Algebra(self.subject, self.facts)
        return self._algebra

    # -- what is printed

    def _said(self, need: Need, said: Collection[str]) -> bool:
        """Is a condition printed that implies it?  ``said``: what printed ones are about."""
        return any(
            self._normal.about(need.node, relation, turned) in said
            for relation, turned in _ENOUGH.get(need.kind, ())
        )

    def _solved_size(self, node: Node) -> Condition | None:
        """``n == 1`` for what is 0 there, and made of sizes alone."""
        try:
            poly = self._normal.poly(node)
        except (SymgradError, Undecided):
            return None
        solved = None if poly is None else _size_alone(poly)
        if solved is None:
            return None
        return PolyText().equation("nonzero", of_atom(solved[0]), solved[1])

    def _condition(self, need: Need) -> Condition:
        node = need.node
        while node.op in ("expand", "reshape"):
            node = node.args[0]
        sizes = self._solved_size(node) if need.kind == "nonzero" else None
        if sizes is not None:
            return sizes
        try:
            if need.kind == "regular":
                return _no_pole(node, need.reader.op)
            said = related(node, _SHOWN[need.kind])
        except NoSpelling:
            location = need.reader.location
            place = f" ({location})" if location is not None else ""
            return Condition("domain", f"{get(need.reader.op).name} is defined{place}")
        always = self._normal.where_zero(node) if need.kind != "nonnegative" else ""
        kind = "nonzero" if need.kind == "nonzero" else "domain"
        return Condition(kind, said.text + always, code=said.code)


def _size_alone(poly: Poly) -> tuple[kinds.Atom, Poly] | None:
    """A size, and what it is where a polynomial in sizes is 0."""
    if any(atom.kind != kinds.SIZE for atom in direct_atoms(poly)):
        return None
    return next(((atom, value) for atom, _, value in poly.solved(kinds.SIZE)), None)


def _factors(node: Node, guards: Guards) -> Sequence[Node]:
    """What must not be 0 for a node not to be; empty where that is nothing simpler."""
    if node.op == "mul":
        return list(dict.fromkeys(node.args))
    if node.op in ("neg", "div") or (node.op == "prod" and not guards):
        return node.args[:1]
    return node.args[:1] if node.op == "pow" and (number(node.args[1]) or 0) > 0 else ()


def _no_pole(node: Node, function: str) -> Condition:
    said = spelled(node)
    code = f"({said.code} > 0) | ({said.code} != ({said.code}).floor())" if said.code else ""
    return Condition("domain", f"{said.text} is not a pole of {function}", code=code)


# -- under which conditions nodes are evaluated


_MOVING = frozenset(("expand", "reshape", "permute", "detach"))


def guarded(roots: Iterable[Node], *, values: bool = False) -> dict[Node, list[Guards]]:
    """The nodes that ``roots`` need, each with the sets of conditions under which it is read.

    Arguments last.  A condition is kept as long as elements are read at the same indices.
    ``values``: what only says which branch is taken is left out.
    """
    found: dict[Node, list[Guards]] = {root: [_ALWAYS] for root in roots}
    for node in reversed(ancestors(list(found))):
        for guards in found.get(node, ()):
            for arg, own in _read(node, guards):
                if values and not arg.dtype.is_float:
                    continue
                _add(found.setdefault(arg, []), own)
    return found


def _read(node: Node, guards: Guards) -> Iterator[tuple[Node, Guards]]:
    """The arguments of a node with the conditions under which they matter."""
    if node.op == "where":
        condition, chosen, other = node.args
        yield condition, guards
        for arg, value in ((chosen, True), (other, False)):
            own = guards | atoms(condition, value)
            if not any((one, not held) in own for one, held in own):
                yield arg, own
        return
    if node.op in _MOVING:
        yield node.args[0], transported(guards, node)
        return
    kept = guards if get(node.op).kind == "elementwise" else _ALWAYS
    for arg in value_args(node):
        yield arg, kept


def excluded(guards: Guards, ranges: Ranges) -> bool:
    """Does one of some conditions hold nowhere, by the ranges of what it compares?"""
    for condition, value in guards:
        if condition.op in COMPARISONS and condition.op not in ("eq", "ne"):
            relation = condition.op if value else OPPOSITE[condition.op]
            left, right = (ranges.of(side) for side in condition.args)
            if _compared(relation, right).meet(left).empty:
                return True
    return False


def _add(known: list[Guards], guards: Guards) -> None:
    """Take one more set in; what a smaller one implies is left out."""
    if any(own <= guards for own in known):
        return
    known[:] = [own for own in known if not guards <= own] + [guards]
    if len(known) > MOST_GUARDS:
        known[:] = [frozenset.intersection(*known)]


def atoms(condition: Node, value: bool) -> Guards:
    """The simple conditions that must hold for a condition to be true, or false."""
    if condition.op == "logical_not":
        return atoms(condition.args[0], not value)
    if (condition.op, value) in (("logical_and", True), ("logical_or", False)):
        return atoms(condition.args[0], value) | atoms(condition.args[1], value)
    return frozenset([(condition, value)])


def transported(guards: Guards, node: Node) -> Guards:
    """The conditions at the indices of the argument of a node that only moves elements."""
    found: list[Atom] = []
    for condition, value in guards:
        inner = _before(condition, node)
        if inner is not None:
            found += atoms(inner, value)
    return frozenset(found)


def _before(condition: Node, node: Node) -> Node | None:
    """What ``condition`` was before it was moved as ``node`` was."""
    arg = node.args[0]
    if condition.op == node.op and condition.args[0].shape == arg.shape:
        return condition.args[0] if condition.attributes == node.attributes else None
    if condition.op not in COMPARISONS:
        return None
    sides = []
    for side in condition.args:
        if side.op == node.op and side.args[0].shape == arg.shape:
            sides.append(side.args[0] if side.attributes == node.attributes else None)
        elif bare(side).op in ("constant", "size") and bare(side).rank == 0:
            sides.append(node.graph.expand(bare(side), arg.shape))
        else:
            sides.append(None)
    if sides[0] is None or sides[1] is None or sides[0].dtype != sides[1].dtype:
        return None
    return node.graph.apply(condition.op, *(side for side in sides if side is not None))


# -- what ops demand


def _needs(nodes: Mapping[Node, Sequence[Guards]]) -> Iterator[Need]:
    """The constraints of the records on operands; each once, with all its conditions."""
    seen: dict[tuple[str, Node], list[Guards]] = {}
    for node, ways in list(nodes.items()):
        for kind, operand in demands(node):
            for guards in ways:
                known = seen.setdefault((kind, operand), [])
                if not any(own <= guards for own in known):
                    known.append(guards)
                    yield Need(kind, operand, guards, node)


def demands(node: Node) -> Iterator[tuple[str, Node]]:
    """Which nodes must be positive, nonzero, ... for a node to have a value."""
    scalar = get(node.op).scalar
    if scalar is None or not node.dtype.is_float:
        return
    for constraint in scalar.domain if scalar.defined is None else scalar.defined:
        operands = [_symbol(place, arg) for place, arg in enumerate(node.args)]
        where = of_operands(get(node.op), constraint.expression, operands)
        if where in OPERANDS:
            yield constraint.kind, node.args[OPERANDS.index(where)]
        elif not where.is_number:
            yield constraint.kind, translated(Nodes(node), where, node.args, node.dtype)


def _symbol(place: int, arg: Node) -> Term:
    value = number(arg)
    if value is None or (get(arg.op).kind != "movement" and arg.op != "constant"):
        return OPERANDS[place]
    return term(value)


# -- what is known


def learn_stated(ranges: Ranges, subject: Subject) -> list[Need]:
    """Take what is stated of the inputs as met, of all elements.  [rule: stated-relation]."""
    found = [
        Need(_KINDS[one.kind], one.node, _ALWAYS, one.node) for one in stated.relations(subject)
    ]
    for need in found:
        _learn(ranges, need)
    return found


def _learn(ranges: Ranges, need: Need) -> None:
    """Take a need as met, of all elements."""
    if need.kind in _MEANING and not need.guards:
        found: dict[Node, Range] = {}
        _take(found, need.node, _MEANING[need.kind], everywhere=True)
        for node, known in found.items():
            ranges.learn(node, known)
    elif need.kind == "regular":
        ranges.regular.add(need.node)


def _take(
    found: dict[Node, Range], node: Node, known: Range, *, everywhere: bool = False
) -> None:  # fmt: skip
    """Note what is known of a node, and what follows for its operands.

    ``everywhere``: of all its elements, so that it does not matter where they were moved.
    """
    if known == ANY:
        return
    found[node] = found.get(node, ANY).meet(known)
    operands = _followed(node, known)
    if everywhere and node.op in _MOVING:
        operands = [(node.args[0], known)]
    for operand, own in operands:
        _take(found, operand, own, everywhere=everywhere)


def _followed(node: Node, known: Range) -> list[tuple[Node, Range]]:
    """What follows for the operands of an elementwise op."""
    if node.op in ("add", "sub", "mul") and (other := _other(node, known)):
        return [other]
    if node.op == "neg":
        return [(node.args[0], -known)]
    if not known.nonzero:
        return []
    if node.op in ("abs", "square", "sqrt", "root", "div"):
        return [(node.args[0], APART)]
    return [(arg, APART) for arg in node.args] if node.op == "mul" else []


def _other(node: Node, known: Range) -> tuple[Node, Range] | None:
    """What follows for the operand beside a number."""
    one, other = map(number, node.args)
    first, second = node.args
    if node.op == "mul":
        factor = one or other
        return (second if one else first, known * point(1 / factor)) if factor else None
    if other is not None:
        return first, known + point(-other if node.op == "add" else other)
    if one is not None:
        rest = known + point(-one)
        return second, rest if node.op == "add" else -rest
    return None


def _compared(relation: str, other: Range) -> Range:
    """What is known of a number that stands in a relation to one of a range."""
    if relation == "eq":
        return other
    if relation in ("gt", "ge"):
        return Range((other.low[0], other.low[1] or relation == "gt"))
    if relation in ("lt", "le"):
        return Range(high=(other.high[0], other.high[1] or relation == "lt"))
    zero = point(Fraction(0))
    return APART if (other.low, other.high) == (zero.low, zero.high) else ANY


def _met(kind: str, found: Range) -> bool:
    if kind == "nonnegative":
        return found.nonnegative
    return found.nonzero if kind == "nonzero" else found.positive


def _implies(one: str, other: str) -> bool:
    return one == other or (one == "positive" and other in _STRENGTH)


# -- the normal form


class _Algebra:
    """Nodes as polynomials of one context, contractions and inverses as they are."""

    def __init__(self, subject: Subject, facts: Facts) -> None:
        nodes = subject.everything.nodes
        self._cuts = [*(node for node in nodes if node.op == "einsum"), *opaque_atoms(nodes)]
        self._lowering = Lowering(subject.graph, self._cuts)
        facts = with_supports(subject, with_ranks(facts, nodes))
        self.context = Proof(RULES, facts)
        decide(self.context)
        self._conversion = Conversion(self.context, definitions(self._lowering))
        if facts.stated:
            self._conversion.state()
        self._found: dict[Node, Poly | None] = {}
        self.leaves = {f"%{node.index}": node for node in self._cuts}
        define = partial(element_of, subject.graph, self.leaves, NOTHING, {})
        self._families = Families(self.context, define)

    def poly(self, node: Node) -> Poly | None:
        """The normal form of an element; None where it is too large."""
        if node not in self._found:
            self._found[node] = self._convert(node)
        return self._found[node]

    def _convert(self, node: Node) -> Poly | None:
        self.context.budget = self.context.work + DOMAIN_WORK
        try:
            element = self._lowering.element(node, gradient_indices(node.shape))
            return self._conversion.poly(element)
        except (SymgradError, Undecided):
            return None

    def holds(self, poly: Poly, relation: str) -> bool:
        """Does a relation to 0 hold always?"""
        return holds(self.context, poly, relation, self._families)

    def about(self, node: Node, relation: str, turned: bool) -> str | None:
        """What a condition on a node, or on its negative, is known by."""
        poly = self.poly(node)
        if poly is None or not poly.terms:
            return None
        self.context.budget = self.context.work + DOMAIN_WORK
        try:
            signed = -poly if turned else poly
            return condition_about(self.context, signed, relation, self.leaves)
        except (SymgradError, Undecided):
            return None

    def where_zero(self, node: Node) -> str:
        """The sizes that make it 0, as a remark."""
        poly = self.poly(node)
        return where_zero(self.context, poly) if poly is not None else ""

    def facts(self, condition: Node, value: bool) -> Iterator[tuple[Poly, str]]:
        """A comparison as ``poly <relation> 0``."""
        left, right = (self.poly(side) for side in condition.args)
        if left is None or right is None or not condition.args[0].dtype.is_float:
            return
        relation = condition.op if value else OPPOSITE[condition.op]
        if relation in ("gt", "ge", "ne"):
            yield left - right, {"gt": ">", "ge": ">=", "ne": "!="}[relation]
        elif relation in ("lt", "le"):
            yield right - left, ">" if relation == "lt" else ">="

    def follows(self, poly: Poly, relation: str, known: Poly, given: str) -> bool:
        """Does a relation follow from another one?"""
        if relation == "!=" and poly in (known, known.scaled(-1)) and given != ">=":
            return True
        if given == "!=":
            return False
        poly, known = (primitive(self.context, one) for one in (poly, known))
        for signed in (poly, -poly) if relation == "!=" else (poly,):
            for factor in dict.fromkeys((1, *multiples(signed, known))):
                rest = signed - known.scaled(factor)
                enough = not rest.terms or holds(self.context, rest, ">=")
                if enough and (given == ">" or relation == ">="):
                    return True
                if given == ">=" and relation in (">", "!=") and holds(self.context, rest, ">"):
                    return True
        return False
