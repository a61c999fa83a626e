"""Is the C defined wherever the formula is?

In: what the C computes, and the formula.  Out: nothing; or NotShown with what is not.

Equal normal forms are equal numbers where both are defined: ``x / x`` is 1 there.  So each need of
an op that the C evaluates has to be one of the formula's, evaluated under no more conditions, or to
hold anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cached_property
from math import inf, isfinite

from symgrad.ir.dim import Axis, Dim
from symgrad.ir.dtype import bool_, float64
from symgrad.ir.expr import OPPOSITE, TURNED, Call, Expr, Literal
from symgrad.validate.symbolic.domains import Need
from symgrad.validate.symbolic.gathered import Context, Gathering, Guard, Instance, TooMany
from symgrad.validate.symbolic.memory import NotShown
from symgrad.validate.symbolic.normal import UNDEFINED, Monomial, Polynomial, Reals, Term
from symgrad.validate.symbolic.ranges import Range, Ranges
from symgrad.validate.symbolic.values import Values, facts_of

_Key = tuple[str, tuple[Expr, ...], Context]


def check_defined(values: Values, reals: Reals, found: Expr, wanted: Expr, name: str) -> None:
    """Each op that ``found`` evaluates is defined where those of ``wanted`` are.

    ``name``: of the output.  Raises NotShown.
    """
    if found is wanted:
        return
    try:
        own = list(Gathering(values, found, complete=True).run())
    except TooMany:
        raise NotShown(f"{name} chooses in too many ways") from None
    formula: _Formula | None = None
    for one in own:
        formula = formula or _Formula(values, reals, wanted)
        if not formula.answers(one):
            operands = ", ".join(str(reals.normal(each)) for each in one.need.operands)
            raise NotShown(
                f"{name} has {one.need.function} in it, and it was not shown to be defined where "
                f"the formula is: is it {one.need.kind}?\n  {operands}"
            )


class _Formula:
    """What a formula needs, and whether that answers another's need."""

    def __init__(self, values: Values, reals: Reals, root: Expr) -> None:
        self._values, self._reals, self._integers = values, reals, values.integers
        self._instances = list(Gathering(values, root, complete=False).run())
        self._keys: set[_Key] = {
            (kind, one.need.operands, one.context)
            for one in self._instances
            for kind in (one.need.kind, *_FOLLOWS.get(one.need.kind, ()))
        }

    def answers(self, one: Instance) -> bool:
        """Does a need hold wherever all of the formula's do?"""
        need = one.need
        if self._has(need.kind, one):
            return True
        if need.kind == "positive" and all(self._has(kind, one) for kind in _FOLLOWS["positive"]):
            return True
        with self._where(one.context) as possible:
            if not possible or self._lies_in_range(one):
                return True
        return self._is_demanded(one) or self._covers(one)

    def _has(self, kind: str, one: Instance) -> bool:
        return (kind, one.need.operands, one.context) in self._keys

    @contextmanager
    def _where(self, context: Context) -> Iterator[bool]:
        """With what is known of integers in a place; whether there is such a place."""
        facts = [
            fact for one in context if isinstance(one, Axis)
            for fact in self._integers.range_of(one)
        ]  # fmt: skip
        for guard in _guards(context):
            facts += facts_of(self._values, guard.condition, guard.truth)
        with self._integers.given(*facts):
            yield not (facts and self._integers.contradictory)

    # -- by itself

    def _lies_in_range(self, one: Instance) -> bool:
        asked, operand = _asked(one.need), one.need.operands[0]
        if asked is None:
            return False
        known = _known(_relations(one.context))
        return Ranges(self._values, known).of(operand).meets(asked)

    def _is_demanded(self, one: Instance) -> bool:
        """Is it one of the conditions around it?"""
        asked, relations = _asked(one.need), _relations(one.context)
        if asked is None or not relations:
            return False
        wanted = self._reals.undefined(asked, self._reals.normal(one.need.operands[0]))
        return any(wanted == each for each in self._excluded(relations))

    def _excluded(self, relations: list[tuple[str, Expr, Expr]]) -> Iterator[Polynomial]:
        """What is 0 by the conditions."""
        for function, left, right in relations:
            gap = self._reals.normal(left) - self._reals.normal(right)
            if function in ("lt", "le"):
                gap = -gap
            kinds = {
                "lt": ("positive", "nonnegative", "nonzero"), "le": ("nonnegative",),
                "gt": ("positive", "nonnegative", "nonzero"), "ge": ("nonnegative",),
                "ne": ("nonzero",),
            }.get(function, ())  # fmt: skip
            for kind in kinds:
                yield self._reals.undefined(kind, gap)

    # -- by the formula's needs

    def _covers(self, one: Instance) -> bool:
        kind = one.need.kind
        if self._is_met(kind, one):
            return True
        return kind == "positive" and all(self._is_met(each, one) for each in _FOLLOWS[kind])

    def _is_met(self, kind: str, one: Instance) -> bool:
        own, others = self._undefined(kind, one).terms, self._monomials
        with self._where(one.context):  # only here: normal forms are kept for all places
            return all(
                value > 0 and any(self._contains(monomial, other) for other in others)
                for monomial, value in own
            )

    @cached_property
    def _monomials(self) -> tuple[Monomial, ...]:
        """What is 0 where the formula is defined."""
        found: dict[Monomial, None] = {}
        for one in self._instances:
            for kind in (one.need.kind, *_FOLLOWS.get(one.need.kind, ())):
                total = self._undefined(kind, one)
                if all(value > 0 for _, value in total.terms):
                    found.update(dict.fromkeys(monomial for monomial, _ in total.terms))
        return tuple(found)

    def _undefined(self, kind: str, one: Instance) -> Polynomial:
        """In how many of the places where it arises a need is not met."""
        values = self._values
        made = values.pool.call(f"{UNDEFINED}{kind}", *one.need.operands, dtype=float64)
        nothing = values.pool.literal(0.0, float64)
        for each in reversed(one.context):
            if isinstance(each, Axis):
                made = values.reduce("sum", each, made)
            else:
                made = values.call("where", self._told(each), made, nothing, dtype=float64)
        return self._reals.normal(made)

    def _told(self, guard: Guard) -> Expr:
        """A guard, as a condition whose normal form has no negative coefficients."""
        values, condition = self._values, guard.condition
        if not guard.truth:
            opposite = OPPOSITE.get(getattr(condition, "function", ""))
            assert isinstance(condition, Call) or opposite is None
            if opposite is not None and not any(o.dtype.is_float for o in condition.args):
                condition = values.call(opposite, *condition.args, dtype=bool_)
            else:
                condition = values.call("logical_not", condition, dtype=bool_)
        if all(value > 0 for _, value in self._reals.normal(condition).terms):
            return condition
        return values.pool.call("holds", condition, dtype=bool_)

    def _contains(self, monomial: Monomial, other: Monomial) -> bool:
        """Is ``other`` not 0, or the formula undefined anyway, wherever ``monomial`` is not 0?"""
        powers = dict(monomial)
        return all(
            term in powers
            or any(self._implies(own, term) for own in powers)
            or self._is_needed(term)
            for term, _ in other
        )

    def _is_needed(self, term: Term) -> bool:
        """Does the formula need a number to be positive?"""
        if term.kind != "integer":
            return False
        needed = self._reals.undefined("positive", Polynomial.of(term))
        return all(monomial in self._monomials for monomial, _ in needed.terms)

    def _implies(self, own: Term, other: Term) -> bool:
        """Is one reduction not 0 wherever another is not, term by term?"""
        if own.kind != "reduce" or other.kind != "reduce":
            return other.kind == "integer" and self._integers.entails(other.parts[0] - 1)
        (kind, axis, body), (other_kind, other_axis, other_body) = own.parts, other.parts
        if kind != "sum" or other_kind != "sum":
            return False
        if any(value < 0 for _, value in (*body.terms, *other_body.terms)):
            return False
        if axis != other_axis:
            if not self._integers.entails(other_axis.extent - axis.extent):
                return False
            other_body = self._reals.substitute(other_body, {other_axis: Dim.of(axis)})
        return all(
            any(self._contains(one, each) for each, _ in other_body.terms) for one, _ in body.terms
        )


def _asked(need: Need) -> str | None:
    """What to show of the operand of a need by itself."""
    known = {"regular": "positive", "positive": "", "nonnegative": "", "nonzero": ""}
    return known[need.kind] or need.kind if need.kind in known else None


def _guards(context: Context) -> Iterator[Guard]:
    """The guards that speak of the same values of the axes as what they guard."""
    for place, one in enumerate(context):
        if isinstance(one, Guard):
            bound = {each for each in context[place:] if isinstance(each, Axis)}
            if bound.isdisjoint(one.condition.free):
                yield one


def _relations(context: Context) -> list[tuple[str, Expr, Expr]]:
    """The relations that hold in a place."""
    return [part for one in _guards(context) for part in _parts(one.condition, one.truth)]


def _parts(condition: Expr, truth: bool) -> Iterator[tuple[str, Expr, Expr]]:
    if not isinstance(condition, Call):
        return
    function = condition.function
    if function == "logical_not":
        yield from _parts(condition.operands[0], not truth)
    elif function == ("logical_and" if truth else "logical_or"):
        for one in condition.operands:
            yield from _parts(one, truth)
    elif function in OPPOSITE:
        left, right = condition.operands
        yield function if truth else OPPOSITE[function], left, right


def _known(relations: list[tuple[str, Expr, Expr]]) -> dict[Expr, Range]:
    """The ranges of what is compared with a number."""
    found: dict[Expr, Range] = {}
    for function, left, right in relations:
        for one, other, name in ((left, right, function), (right, left, TURNED[function])):
            if isinstance(other, Literal) and isfinite(other.value):
                number = Fraction(other.value)
                made = {
                    "lt": Range(-inf, number, high_open=True), "le": Range(-inf, number),
                    "gt": Range(number, inf, low_open=True), "ge": Range(number, inf),
                    "eq": Range(number, number), "ne": Range(),
                }[name]  # fmt: skip
                found[one] = found[one].within(made) if one in found else made
    return found


_FOLLOWS = {"positive": ("nonnegative", "nonzero")}
"""What else is so of what is; both together make it so."""
