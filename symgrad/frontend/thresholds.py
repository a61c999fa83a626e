"""Python asks for the truth of a plain number: ``if scale < 1e-8``, ``max(scale, 1e-8)``.

In: a truth value that is computed of a number which no gradient is wanted of.  Out: the answer that
the facts of the request give; or the question, which splits what is judged (``branches``).

What is linear in one number is compared with a literal.  An absolute value is split by its sign
first, the greater of two by their difference.  Questions of equality, of several numbers and of
elements of tensors stay errors with their line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from symgrad.errors import ControlFlowError
from symgrad.frontend.facts import OPPOSITE, NeedsDecision
from symgrad.frontend.regions import PLAIN, Region
from symgrad.ir.assume import Assumption
from symgrad.ir.graph import Node

if TYPE_CHECKING:
    from symgrad.frontend.session import Session

_RELATIONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SAME = ("cast", "reshape", "expand", "detach")
_ZERO = Fraction(0)
_SIGNS = {
    "positive": (_ZERO, None, True), "nonnegative": (_ZERO, None, False),
    "negative": (None, _ZERO, True),
}  # fmt: skip


class Threshold(NamedTuple):
    """Is a number on one side of a literal?"""

    name: str
    relation: str
    bound: Fraction

    def fact(self, holds: bool, known: Sequence[Assumption]) -> tuple[Assumption, ...]:
        """Where the answer is so, among what is ``known``."""
        relation = self.relation if holds else OPPOSITE[self.relation]
        region = region_of(self.name, known)
        is_open = relation in ("<", ">")
        if relation in ("<", "<="):
            region.high, region.high_open = self.bound, is_open
        else:
            region.low, region.low_open = self.bound, is_open
        kept = tuple(one for one in known if one.name != self.name or one.kind != "interval")
        return (*kept, replace(region.interval_fact, taken=True))

    def decided(self, known: Sequence[Assumption]) -> bool | None:
        """The answer where the facts give it."""
        region = region_of(self.name, known)
        if self.relation in (">", ">="):
            below = Threshold(self.name, OPPOSITE[self.relation], self.bound).decided(known)
            return None if below is None else not below
        reached = self.relation == "<="
        if region.high is not None and (
            region.high < self.bound
            or (region.high == self.bound and (reached or region.high_open))
        ):
            return True
        if region.low is not None and (
            region.low > self.bound
            or (region.low == self.bound and (not reached or region.low_open))
        ):
            return False
        return None


class ThresholdError(ControlFlowError):
    """Python asks on which side of a literal a number is; ``asks``: that question."""

    def __init__(self, error: ControlFlowError, asks: Threshold) -> None:
        side = region_of(asks.name, asks.fact(True, ())).interval
        super().__init__(
            error.what, location=error.location, asked=error.asked,
            hint=f'give {asks.name} a value; or say on which side it is: assume={{"{asks.name}": '
            f'"{side}"}}',
        )  # fmt: skip
        self.asks = asks


class NeedsAnswer(NeedsDecision):
    """A question about a plain number that the facts of the request leave open.

    Not an ``Exception``, so that no handler in the traced program catches it.
    """

    def __init__(self, error: ThresholdError) -> None:
        BaseException.__init__(self, str(error))
        self.error = error


def region_of(name: str, known: Sequence[Assumption]) -> Region:
    """The values of a number that facts leave."""
    region = Region(name, 0.0)
    for one in known:
        if one.name != name:
            continue
        if one.kind == "interval":
            region.meet(one.low, one.high, low_open=one.low_open, high_open=one.high_open)
        elif one.kind in _SIGNS:
            low, high, is_open = _SIGNS[one.kind]
            region.meet(low, high, low_open=is_open, high_open=is_open)
    return region


def answered(session: Session, node: Node, error: Callable[[], ControlFlowError]) -> bool | None:
    """The truth of a comparison of numbers; None for any other node.

    ``error``: what is raised where it cannot be split.  Raises NeedsAnswer.
    """
    while node.op in _SAME:
        node = node.args[0]
    if node.op == "logical_not":
        found = answered(session, node.args[0], error)
        return None if found is None else not found
    if node.op in ("logical_and", "logical_or"):
        first = answered(session, node.args[0], error)
        if first is None or first is (node.op == "logical_or"):
            return first
        return answered(session, node.args[1], error)
    relation = _RELATIONS.get(node.op)
    if relation is None or node.rank:
        return None
    numbers = session.declared(PLAIN) & session.declared("constant") - session.plain.keys()

    def holds(line: _Line, relation: str) -> bool:
        if not line.factor:
            return _compare(line.offset, relation)
        turned = _TURNED[relation] if line.factor < 0 else relation
        asks = Threshold(line.name, turned, -line.offset / line.factor)
        known = asks.decided(session.assumed)
        if known is not None:
            session.relied[asks.name] = None
            return known
        raise NeedsAnswer(ThresholdError(error(), asks))

    line = _line(node.args[0], numbers, holds)
    other = None if line is None else _line(node.args[1], numbers, holds)
    difference = None if line is None or other is None else line.plus(other, -1)
    return None if difference is None else holds(difference, relation)


def _compare(value: Fraction, relation: str) -> bool:
    return {"<": value < 0, "<=": value <= 0, ">": value > 0, ">=": value >= 0}[relation]


class _Line(NamedTuple):
    """``factor * name + offset``."""

    name: str
    factor: Fraction
    offset: Fraction

    def plus(self, other: _Line, sign: int) -> _Line | None:
        """The sum, or the difference; None where it is one of two numbers."""
        if self.factor and other.factor and self.name != other.name:
            return None
        name = self.name if self.factor else other.name
        return _Line(name, self.factor + sign * other.factor, self.offset + sign * other.offset)

    def times(self, value: Fraction) -> _Line:
        """The product with a number that is known."""
        return _Line(self.name, self.factor * value, self.offset * value)


def _line(
    node: Node, numbers: frozenset[str], holds: Callable[[_Line, str], bool]
) -> _Line | None:  # fmt: skip
    """A node as what is linear in one number; None where it is something else."""
    while node.op in _SAME:
        node = node.args[0]
    if node.op == "input":
        name = node.attributes["name"]
        return _Line(name, Fraction(1), Fraction(0)) if name in numbers and not node.rank else None
    if node.op == "constant":
        value = node.attributes["value"].value
        return _Line("", Fraction(0), Fraction(repr(value))) if isfinite(value) else None
    if node.op not in ("add", "sub", "mul", "div", "neg", "abs", "maximum", "minimum"):
        return None
    parts = [_line(one, numbers, holds) for one in node.args]
    known = [one for one in parts if one is not None]
    return _computed(node.op, known[0], known[-1], holds) if len(known) == len(parts) else None


def _computed(
    op: str, first: _Line, second: _Line, holds: Callable[[_Line, str], bool]
) -> _Line | None:  # fmt: skip
    """What an operation makes of what is linear in a number; None where that is something else."""
    if op == "neg":
        return first.times(Fraction(-1))
    if op == "abs":
        return first if holds(first, ">=") else first.times(Fraction(-1))
    if op in ("add", "sub"):
        return first.plus(second, 1 if op == "add" else -1)
    if op in ("maximum", "minimum"):
        difference = first.plus(second, -1)
        if difference is None:
            return None
        return first if holds(difference, ">=") == (op == "maximum") else second
    if op == "mul" and not first.factor:
        first, second = second, first
    if second.factor or (op == "div" and not second.offset):
        return None
    return first.times(1 / second.offset if op == "div" else second.offset)
