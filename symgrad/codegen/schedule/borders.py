"""Rows whose ends are computed otherwise than what lies between: padding, windows, shifts.

In: the rows of a loop, where values live.  Out: ``Borders``: between which places of the lanes
conditions are known to hold.

There the loop has none of them, so that it runs at full speed; the few places before and behind
have loops of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from symgrad.codegen.program.guards import facts_of
from symgrad.codegen.program.rewrite import conjuncts
from symgrad.codegen.schedule.interchange import SHORT_ROW
from symgrad.codegen.schedule.items import Item
from symgrad.codegen.schedule.rows import Rows
from symgrad.codegen.schedule.storage import Storage
from symgrad.codegen.schedule.strips import is_plain_sum
from symgrad.ir.dim import Axis, Dim
from symgrad.ir.expr import Call, Expr, postorder

_FEW = 8  # places that are computed one by one


@dataclass(frozen=True)
class Borders:
    """From ``low`` up to ``high`` along ``lane``, all ``conditions`` hold."""

    lane: Axis
    low: Dim
    high: Dim
    conditions: frozenset[Expr]

    @property
    def few(self) -> bool:
        """Are surely few places before and behind?"""
        counts = (self.low, self.lane.extent - self.high)
        return all(Dim.of(_FEW).at_least(count) for count in counts)


def find_borders(rows: Rows, storage: Storage) -> Borders | None:
    """The borders of sums taken side by side; None where there are none, or other items."""
    items = [item for item in rows.loop.items if item not in storage.dropped]
    lanes = {item.axes[-1] for item in items if item.axes}
    if len(lanes) != 1 or not all(is_plain_sum(item, storage) for item in items):
        return None
    if not all(set(rows.axes) <= set(item.outside) and not item.needs for item in items):
        return None
    (lane,) = lanes
    constant = lane.extent.constant
    if constant is not None and constant < SHORT_ROW:
        return None
    conditions, lows, highs = set[Expr](), [Dim.of(0)], [lane.extent]
    for condition in _conditions(items):
        ends = [_end(fact, lane) for fact in facts_of(condition, holds=True)]
        if ends and None not in ends:
            conditions.add(condition)
            lows += [end for low, end in filter(None, ends) if low]
            highs += [end for low, end in filter(None, ends) if not low]
    low = next((one for one in lows if all((one - other).at_least(0) for other in lows)), None)
    high = next((one for one in highs if all((other - one).at_least(0) for other in highs)), None)
    if low is None or high is None or not conditions:
        return None
    if low == 1:
        low = low + 1  # a loop of one place is none
    if lane.extent - high == 1:
        high = high - 1
    return Borders(lane, low, high, frozenset(conditions))


def _conditions(items: Iterable[Item]) -> Iterable[Expr]:
    for expr in postorder([item.body for item in items if item.body is not None]):
        if isinstance(expr, Call) and expr.function == "where":
            yield from conjuncts(expr.operands[0])


def _end(fact: Dim, lane: Axis) -> tuple[bool, Dim] | None:
    """Where ``fact >= 0`` begins to hold (True), or ceases to (False), along the lanes."""
    rest = fact.substitute({lane: Dim.of(0)})
    if rest.axes:
        return None
    if fact - rest == Dim.of(lane):
        return True, -rest
    return (False, rest + 1) if rest - fact == Dim.of(lane) else None
