"""Thresholds that are found in a sorted row: the support of a sparse projection.

In: a ``Subject`` and facts.  Out: facts in which the conditions on a row are conditions on ranks.

Forward sorts a row downwards (``z``), asks ``c(i)`` of each place ``i``, counts where it holds, and
compares the elements ``x(j)`` with a threshold that it reads at the last such place ``k``.  With
``P(u, i)`` for an element ``u`` less the threshold that place ``i`` gives, let it be shown that

- ``c(i)`` has the sign of ``P(z(i), i)``,
- ``P(z(i), i)`` and ``P(z(i), i - 1)`` have one sign for ``i >= 1``,
- ``P`` grows in ``u``, and ``P(z(0), 0) > 0``.

Then ``c(i)`` says ``i <= k``: where it holds, ``P(z(i), i - 1) > 0``, so that
``P(z(i - 1), i - 1) > 0``, since ``z(i - 1) >= z(i)``.  And ``P(x(j), k) > 0`` says
``rank(j) <= k``: an element before or at ``k`` is at least ``z(k)``, and ``P(z(k), k) > 0``; one
behind it is at most ``z(k + 1)``, and ``P(z(k + 1), k)`` has the sign of ``P(z(k + 1), k + 1)``, of
which ``c(k + 1)`` says that it is not positive.  So ties change nothing.  With ``>=`` in ``c``, all
of this holds of ``>=``.

In P there may be one root, ``a + b sqrt(relu(G))`` with ``b >= 0``, as in 1.5-entmax.  Where
``a <= 0``, it has the sign of ``b^2 G - a^2``, but where ``a`` is 0, a tie; and where ``c`` holds,
``G > 0``.
[rule: support]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from symgrad.budgets import SUPPORT_WORK
from symgrad.errors import SymgradError
from symgrad.index.lower import Lowering
from symgrad.ir.dim import Axis, Dim, Element
from symgrad.ir.dtype import bool_
from symgrad.ir.expr import Expr
from symgrad.ir.graph import Node, ancestors
from symgrad.proof.judge.goals import definitions, opaque_atoms
from symgrad.proof.normal import atoms as kinds
from symgrad.proof.normal.algebra import (
    Substitution,
    by_condition,
    integer_nonnegative,
    is_nonnegative,
    is_positive,
    multiply,
    opened,
    primitive,
    substitute,
)
from symgrad.proof.normal.atoms import Atom, Undecided
from symgrad.proof.normal.context import Proof
from symgrad.proof.normal.facts import NONNEGATIVE_INTERVAL, Decision, Facts
from symgrad.proof.normal.from_expr import Conversion, decide
from symgrad.proof.normal.poly import ZERO, Poly, all_atoms, constant, of_atom
from symgrad.proof.normal.rules import RULES
from symgrad.proof.normal.sums import sum_over
from symgrad.proof.normal.zero import is_zero, rewritten
from symgrad.proof.oracle.subject import Subject

_STRICT = {"gt": True, "lt": True, "ge": False, "le": False}
_COMPARING = frozenset((*_STRICT, "relu", "abs", "sign", "maximum", "minimum", "eq", "ne"))
_SORTED = "the sorted "
_MORE = "what is more than the element"


def with_supports(subject: Subject, facts: Facts) -> Facts:
    """The facts, and what each comparison with a threshold of a sorted row says of the ranks."""
    for rank in [node for node in subject.forward.nodes if node.op == "rank"]:
        source, downward = facts.orders.get(f"%{rank.index}", ("", False))
        if not downward:
            continue
        for asked in _comparisons(subject.forward.nodes, rank, rank):
            if asked.node.op not in _STRICT or not _is_counted(subject, asked.node):
                continue
            found = _Threshold(subject, facts, rank, source, asked).decided()
            if found is not None:
                facts = found
    return facts


def _is_counted(subject: Subject, node: Node) -> bool:
    """Is it more than the condition of a choice?"""
    return any(node in other.args and other.op != "where" for other in subject.forward.nodes)


@dataclass(frozen=True)
class _Comparison:
    """``upper > lower``, or ``>=``, of two nodes of one shape; ``lower`` None is 0."""

    node: Node
    upper: Node
    lower: Node | None
    strict: bool = True


def _comparisons(nodes: Iterable[Node], rank: Node, below: Node) -> Iterator[_Comparison]:
    """The comparisons of the shape of the ranks that depend on a node."""
    found: dict[tuple[Node, Node | None], _Comparison] = {}
    for node in nodes:
        if not node.args or node.args[0].shape != rank.shape or not node.args[0].dtype.is_float:
            continue
        upper, lower = node.args[0], node.args[1] if len(node.args) == 2 else None
        if node.op in ("lt", "le") and lower is not None:
            upper, lower = lower, upper
        if node.op in _COMPARING and below in ancestors([node]):
            one = _Comparison(node, upper, lower, strict=_STRICT.get(node.op, True))
            found.setdefault((upper, lower), one)
    yield from found.values()


class _Threshold:
    """One question that is asked of each place of a sorted row, and what depends on it."""

    def __init__(
        self, subject: Subject, facts: Facts, rank: Node, source: str, asked: _Comparison
    ) -> None:
        self.subject, self.rank, self.source, self.asked = subject, rank, source, asked
        self.axis = int(rank.attributes["axis"])
        self.last = f"the last place of %{asked.node.index}"
        self.facts = replace(
            facts,
            ranges={**facts.ranges, self.last: rank.shape[self.axis]},
            intervals={**facts.intervals, _MORE: NONNEGATIVE_INTERVAL},
        )
        self.lowering = Lowering(subject.graph, opaque_atoms(subject.everything.nodes))
        self.at = tuple(
            Dim.of(0) if size == 1 else Dim.of(Axis(f"@{axis}", size))
            for axis, size in enumerate(rank.shape)
        )

    def decided(self) -> Facts | None:
        """Facts with what is decided; None where the lemma is not shown of any comparison."""
        if self.at[self.axis].constant is not None:
            return None
        try:
            within = self._below(self.at[self.axis])
            own = self._decision(self.asked, within)
            supposed = replace(self.facts, decided=(*self.facts.decided, own))
            nodes = self.subject.everything.nodes
            there = self._below(Dim.of(Element(f"%{self.rank.index}", self.at)))
            found = [
                self._decision(one, there, upward)
                for one in _comparisons(nodes, self.rank, self.asked.node)
                if (upward := _Lemma(self, supposed, one).upward) is not None
            ]
            branches = [*self._branches(supposed)] if found else []
        except (SymgradError, Undecided):
            return None
        return replace(supposed, decided=(*supposed.decided, *branches, *found)) if found else None

    @property
    def _end(self) -> Dim:
        """The last place."""
        rows = tuple(one for axis, one in enumerate(self.at) if axis != self.axis)
        return Dim.of(Element(self.last, rows))

    def _below(self, place: Dim) -> Expr:
        """``place <= last``."""
        return self.lowering.pool.relation("le", place, self._end)

    def _branches(self, facts: Facts) -> Iterator[Decision]:
        """Which branch a threshold takes at the last place, where what is asked holds."""
        lemma = _Lemma(self, facts, self.asked)
        at = tuple(self._end if axis == self.axis else one for axis, one in enumerate(self.at))
        for one in _comparisons(self.subject.forward.nodes, self.rank, self.rank):
            upward = None if one is self.asked else lemma.branch(one)
            if upward is not None:
                point = self.element(one, at)
                if not upward:
                    zero = self.lowering.pool.literal(0.0, point.dtype)
                    point = self.lowering.pool.call("sub", zero, point, dtype=point.dtype)
                holds = self.lowering.pool.literal(True, bool_)
                yield Decision(point, holds, definitions(self.lowering))

    def _decision(self, one: _Comparison, holds: Expr, upward: bool = True) -> Decision:
        """What is positive exactly where a condition holds, or where it fails."""
        pool = self.lowering.pool
        point = self.element(one)
        if self.asked.strict != upward:
            zero = pool.literal(0.0, point.dtype)
            point = pool.call("sub", zero, point, dtype=point.dtype)
        if not self.asked.strict:
            holds = pool.call("logical_not", holds, dtype=holds.dtype)
        return Decision(point, holds, definitions(self.lowering))

    def element(self, one: _Comparison, at: tuple[Dim, ...] | None = None) -> Expr:
        """The difference that is compared with 0."""
        upper = self.lowering.element(one.upper, at or self.at)
        if one.lower is None:
            return upper
        lower = self.lowering.element(one.lower, at or self.at)
        return self.lowering.pool.call("sub", upper, lower, dtype=upper.dtype)


class _Lemma:
    """What is to be shown of one comparison with the threshold, in a proof of its own."""

    def __init__(self, threshold: _Threshold, facts: Facts, one: _Comparison) -> None:
        self.threshold = threshold
        self.context = Proof(RULES, facts, budget=SUPPORT_WORK)
        decide(self.context)
        self.conversion = Conversion(self.context, definitions(threshold.lowering))
        self.one = one

    @cached_property
    def upward(self) -> bool | None:
        """Does the difference grow with the element?  None where the lemma is not shown."""
        try:
            return self._shown()
        except (SymgradError, Undecided):
            return None

    def _shown(self) -> bool | None:
        asked = self._sorted(self.threshold.element(self.threshold.asked))
        point = self._sorted(self.threshold.element(self.one))
        element, last = self._element(), self._last()
        slope = _slope(point, element)
        if slope is None or _leaves(asked, self.threshold.source):
            return None
        upward = is_positive(self.context, slope)
        if not upward:
            point, slope = -point, -slope
        if not is_positive(self.context, slope):
            return None

        def at(place: Poly, end: Poly) -> Poly:
            return substitute(self.context, point, {element: self._place(place), last: end})

        index = self._index()
        behind = self.context.fresh(index.data[1].plus(-1))
        here, before, next_ = of_atom(index), of_atom(behind), of_atom(behind).plus(1)
        shown = (
            index not in at(before, before).free  # of its own place it depends by the element alone
            and self._alike(asked, at(here, here), here)
            and self._alike(at(next_, next_), at(next_, before), next_)
            and is_positive(self.context, self._base(at(ZERO, ZERO)))
            and is_positive(self.context, self._base(_Constant(self).poly(point)))
        )
        return upward if shown and self._is_generic() else None

    def _is_generic(self) -> bool:
        """Is all that must not vanish identically not 0 where the row is 0?"""
        for owed in list(self.context.obligations.values()):
            there = _Constant(self).poly(owed.base)
            if owed.piecewise or owed.distinct is not None:
                return False
            if not (is_positive(self.context, there) or is_positive(self.context, -there)):
                return False
        return True

    def _index(self) -> Atom:
        (axis,) = self.threshold.at[self.threshold.axis].axes
        return self.conversion.index(axis)

    def _rows(self) -> tuple[Poly, ...]:
        rows = (one for at, one in enumerate(self.threshold.at) if at != self.threshold.axis)
        return tuple(
            of_atom(self.conversion.index(*one.axes)) if one.axes else constant(0) for one in rows
        )

    def _last(self) -> Atom:
        return self.context.atom(kinds.LEAF, self.threshold.last, self._rows(), "int")

    def _element(self) -> Atom:
        place = of_atom(self._index())
        return self._read(self.threshold.source, place)

    def _place(self, place: Poly) -> Poly:
        return of_atom(self._read(_SORTED + self.threshold.source, place))

    def _read(self, tensor: str, place: Poly) -> Atom:
        rows, axis = self._rows(), self.threshold.axis
        return self.context.atom(kinds.LEAF, tensor, (*rows[:axis], place, *rows[axis:]), "real")

    def _sorted(self, expr: Expr) -> Poly:
        """The normal form over the sorted row, of what is defined for all rows."""
        poly = self.conversion.poly(expr)
        if self.context.requirements:
            raise Undecided("it is not shown that a threshold is defined for all rows")
        found = _Sorted(self.context, self.threshold, self._rows()).poly(poly)
        self.context.requirements.clear()  # of roots that are read again at other places
        ranks = _leaves(found, f"%{self.threshold.rank.index}")
        own = {*_leaves(found, self.threshold.source)} - {self._element()}
        if ranks or own:
            raise Undecided("a sum over a row is no sum over the sorted row")
        return found

    def _base(self, poly: Poly) -> Poly:
        """What has the same sign, without positive factors."""
        return primitive(self.context, rewritten(self.context, poly))

    def _alike(self, left: Poly, right: Poly, place: Poly) -> bool:
        """Do two differences have the same sign, 0 included?  ``place``: of the element."""
        if left == right:
            return True
        left, right = (self._base(self._without_root(one, place)[0]) for one in (left, right))
        return left == right or is_zero(self.context, left - right).is_zero

    def branch(self, one: _Comparison) -> bool | None:
        """Which side of 0 is a difference on where what is asked holds?  None: not shown."""
        try:
            asked = self._sorted(self.threshold.element(self.threshold.asked))
            point = self._sorted(self.threshold.element(one))
            below = self._without_root(asked, of_atom(self._index()))[1]
            for upward in (True, False):
                same = primitive(self.context, point if upward else -point)
                if below is not None and same == primitive(self.context, below):
                    return upward
        except (SymgradError, Undecided):
            pass
        return None

    def _without_root(self, poly: Poly, place: Poly) -> tuple[Poly, Poly | None]:
        """``b^2 G - a^2`` for ``a + b sqrt(relu(G))`` with ``b >= 0``, and G; where ``a <= 0``.

        It has the same sign but where a is 0, which is a tie.
        """
        conditions = {atom for m in poly.terms for atom, _ in m if atom.kind == kinds.POSITIVE}
        if len(conditions) != 1:
            return poly, None
        pieces = by_condition(self.context, poly, *conditions)
        for with_root, plain in (pieces, pieces[::-1]):
            root = with_root - plain
            square = multiply(self.context, root, root)
            if _roots(plain) or _roots(square) or not is_nonnegative(self.context, root):
                continue
            (condition,) = conditions
            known: Poly = condition.data[0] if with_root is pieces[0] else -condition.data[0]
            if primitive(self.context, square) != primitive(self.context, known):
                continue
            if is_nonnegative(self.context, -_Behind(self, place).poly(plain)):
                return square - multiply(self.context, plain, plain), known
        return poly, None


class _Sorted(Substitution):
    """Sums over a row become sums over the sorted row: a permutation of their terms."""

    def __init__(self, context: Proof, threshold: _Threshold, rows: tuple[Poly, ...]) -> None:
        super().__init__(context, {})
        self.indices_only = False
        self.threshold, self.rows = threshold, rows

    def atom(self, atom: Atom) -> Poly:
        """The atom over the sorted row."""
        if atom.kind == kinds.SUM:
            return self._sum(atom)
        if atom.kind in kinds.BINDERS:
            raise Undecided("a row is reduced otherwise than by a sum")
        return super().atom(atom)

    def _sum(self, atom: Atom) -> Poly:
        binders, monomial = opened(self.context, atom)
        moved: dict[Atom, Poly] = {}
        order = list(binders)
        for at, binder in enumerate(binders):
            place = self.context.fresh(binder.data[1])
            own = {
                one: value for one in all_atoms(tuple(one for one, _ in monomial))
                if (value := self._moved(one, binder, place)) is not None
            }  # fmt: skip
            if own:
                moved.update(own)
                order[at] = place
        body = Substitution(self.context, moved).monomial(monomial)
        gone = {one for one, new in zip(binders, order, strict=True) if one is not new}
        if gone & body.free:
            raise Undecided("a sum over a row depends on more than its elements")
        nested = any(one.kind == kinds.SUM for one in all_atoms(body))
        return sum_over(self.context, order, self.poly(body) if nested else body)

    def _moved(self, one: Atom, binder: Atom, place: Atom) -> Poly | None:
        """What an element of the row, or its rank, is at a place of the sorted row."""
        if one.kind != kinds.LEAF or one.data[0] not in (self.threshold.source, self._rank):
            return None
        axis, indices = self.threshold.axis, one.data[1]
        if indices[axis].atom is not binder:
            return None
        if (*indices[:axis], *indices[axis + 1 :]) != self.rows:
            raise Undecided("another row is summed")
        if one.data[0] == self._rank:
            return of_atom(place)
        there = (*indices[:axis], of_atom(place), *indices[axis + 1 :])
        return of_atom(self.context.atom(kinds.LEAF, _SORTED + one.data[0], there, "real"))

    @property
    def _rank(self) -> str:
        return f"%{self.threshold.rank.index}"


class _Behind(Substitution):
    """The elements at or before a place, as the one there and what they have more."""

    def __init__(self, lemma: _Lemma, place: Poly) -> None:
        super().__init__(lemma.context, {})
        self.indices_only = False
        self.lemma, self.place = lemma, place

    def atom(self, atom: Atom) -> Poly:
        """A sum over elements up to the place."""
        here = self.lemma._place(self.place)
        if atom.kind == kinds.LEAF and atom.data[0].startswith(_SORTED):
            if of_atom(atom) != here:
                raise Undecided("it is not known which of two elements is greater")
            return here
        if atom.kind != kinds.SUM:
            return super().atom(atom)
        binders, monomial = opened(self.context, atom)
        context, moved = self.context, {}
        for one, _ in monomial:
            if one.kind == kinds.LEAF and one.data[0].startswith(_SORTED):
                at = one.data[1][self.lemma.threshold.axis]
                ends = (a.data[0] + at for a, _ in monomial if a.kind == kinds.ATLEAST)
                if not any(
                    end.free.isdisjoint(binders) and integer_nonnegative(context, self.place - end)
                    for end in ends
                ):
                    raise Undecided("elements behind the place are summed")
                more = of_atom(context.atom(kinds.LEAF, _MORE, one.data[1], "real"))
                moved[one] = here + more
        return sum_over(context, binders, Substitution(context, moved).monomial(monomial))


class _Constant(Substitution):
    """All elements of the row are 0."""

    def __init__(self, lemma: _Lemma) -> None:
        super().__init__(lemma.context, {})
        self.indices_only = False
        source = lemma.threshold.source
        self.names = (source, _SORTED + source)

    def atom(self, atom: Atom) -> Poly:
        """The atom where they are."""
        if atom.kind == kinds.LEAF and atom.data[0] in self.names:
            return ZERO
        return super().atom(atom)


def _slope(poly: Poly, element: Atom) -> Poly | None:
    """The coefficient of an atom in which a polynomial is linear; None where it is not."""
    found: dict[object, object] = {}
    for monomial, value in poly.terms.items():
        rest = tuple((atom, e) for atom, e in monomial if atom is not element)
        if any(atom is element or element in all_atoms(atom) for atom, _ in rest):
            return None
        if len(rest) < len(monomial):
            if dict(monomial)[element] != 1:
                return None
            found[rest] = value
    return Poly(found) if found else None  # type: ignore[arg-type]


def _roots(poly: Poly) -> bool:
    return any(isinstance(e, Fraction) for m in poly.terms for _, e in m)


def _leaves(poly: Poly, tensor: str) -> list[Atom]:
    return [one for one in all_atoms(poly) if one.kind == kinds.LEAF and one.data[0] == tensor]
