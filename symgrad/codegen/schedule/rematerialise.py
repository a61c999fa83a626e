"""Rematerialisation: which elementwise values are kept rather than computed again.

In: a program, its items and their loops.  Out: the expressions to be kept.

One sweep from readers to what they read finds in which loops each value is needed.  Within one
loop sharing is free.  A value that several loops need, or that a loop computes afresh though it
does not depend on it, is kept where that costs less than computing it again.  So is a value that
is dear and needed around an inner loop, where it is computed by itself: ahead, it has lanes.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence

from symgrad.codegen.program.equations import scalar_cost
from symgrad.codegen.program.guards import Guards
from symgrad.codegen.schedule.items import KEEP, Item, Items, roots_of
from symgrad.codegen.schedule.loops import Path, common
from symgrad.ir.expr import Call, Expr

# What storing and loading an element costs, in ns.
_ROW, _WHOLE, _HOIST, _THERE = 0.10, 1.0, 0.10, 0.10
_HIGHEST = 2.0  # a cost is not summed up beyond this
_ALONE = 7.0  # what a value costs by itself beyond what it costs with lanes, in such costs
_AHEAD = 0.9  # ns: less is not worth a loop of its own


def choose_kept(items: Items, paths: Mapping[Item, Path], guards: Guards) -> list[Expr]:
    """The values to keep, in the order of their expressions."""
    return _Chooser(items, paths, guards).choose()


def _needed_by(item: Item) -> list[Expr]:
    """What an item evaluates besides the value that is kept."""
    return list(item.result.args) if item.role == KEEP else roots_of(item)


class _Chooser:
    def __init__(self, items: Items, paths: Mapping[Item, Path], guards: Guards) -> None:
        self._items = items
        self._paths = paths
        self._guards = guards
        self._needed: dict[Expr, dict[Path, None]] = {}
        self._stored = {d.body for d in items.program.definitions if d.pattern is None}
        self._kept: set[Expr] = set()

    def choose(self) -> list[Expr]:
        """Sweep over all expressions, readers first."""
        mine = sorted(self._paths, key=lambda item: item.number)
        for item in mine:
            for root in _needed_by(item):
                self._needed.setdefault(root, {})[self._paths[item]] = None
        every = {e for item in mine for e in self._items.evaluated(_needed_by(item))}
        for expr in sorted(every, key=lambda one: -one.number):
            places = list(self._needed.get(expr, ()))
            if expr in self._items.values or not places:
                continue
            if self._worth_keeping(expr, places):
                self._kept.add(expr)
                places = [self._own_loops(expr, places[0])]
            for arg in expr.args:
                self._needed.setdefault(arg, {}).update(dict.fromkeys(places))
        return sorted(self._kept, key=lambda one: one.number)

    def _worth_keeping(self, expr: Expr, places: Sequence[Path]) -> bool:
        if not isinstance(expr, Call) or not expr.free or not expr.dtype.is_float:
            return False
        if self._guards.guarded(expr):
            return False
        loops = list(dict.fromkeys(self._placed(expr, path) for path in places))
        again = any(loop.axis not in expr.free for path in loops for loop in path)
        if len(loops) < 2 and not again:
            return (
                self._has_lanes_ahead(expr, places[0])
                and _ALONE * self._cost(expr, places) > _AHEAD
            )
        return self._cost(expr, places) > self._price(expr, loops, again=again)

    def _has_lanes_ahead(self, expr: Expr, path: Path) -> bool:
        """Is it computed around an inner loop, though a loop of its own could come before?"""
        placed = self._placed(expr, path)
        if not 1 < len(placed) < len(path) or any(loop.sequential for loop in path):
            return False
        return all(placed[-1].axis not in need.kept for need in self._items.needs([expr]))

    def _own_loops(self, expr: Expr, path: Path) -> Path:
        """The loops in which a kept value is computed: only those that it depends on."""
        return tuple(loop for loop in path if loop.axis in expr.free)

    def _placed(self, expr: Expr, path: Path) -> Path:
        """The loops down to the one in which the value is computed."""
        inner = max(
            (place for place, loop in enumerate(path) if loop.axis in expr.free), default=-1
        )
        return path[: inner + 1]

    def _price(self, expr: Expr, loops: Sequence[Path], *, again: bool) -> float:
        if expr in self._stored:
            return _THERE
        if again:
            return _HOIST
        return _ROW if all(common(loops[0], path) for path in loops) else _WHOLE

    def _cost(self, expr: Expr, places: Sequence[Path]) -> float:
        """The price of computing a value again; reductions and what is kept cost a load.

        What loops outside of it compute is there.
        """
        depths = [len(self._placed(expr, path)) for path in places]
        total, todo, seen = 0.0, [expr], {expr}
        while todo and total < _HIGHEST:
            one = todo.pop()
            total += scalar_cost(one)
            for arg in one.args if one not in self._items.values else ():
                placed = (len(self._placed(arg, path)) for path in places)
                outside = all(map(operator.lt, placed, depths))
                if arg not in seen and arg not in self._kept and not outside:
                    seen.add(arg)
                    todo.append(arg)
        return total
