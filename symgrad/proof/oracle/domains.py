"""Intervals that the forward itself restricts its inputs to.

In: the nodes of a forward.  Out: assumptions such as ``x > 1`` for ``acosh(x)``.

Where ``log(x)`` is always evaluated, the Function is defined for positive x only.  A ``where``
may select another branch, so that nothing is concluded from a forward that has one.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import sympy

from symgrad.ir.assume import Assumption
from symgrad.ir.graph import Node
from symgrad.ops.record import Constraint, get


def domains(nodes: Iterable[Node]) -> list[Assumption]:
    """The intervals that unary ops demand of inputs they are applied to."""
    order = list(nodes)
    if any(node.op == "where" for node in order):
        return []
    found: dict[str, tuple[Fraction | None, Fraction | None, bool]] = {}
    for node in order:
        scalar = get(node.op).scalar
        if scalar is None or len(node.args) != 1:
            continue
        source = _bare(node.args[0])
        if source.op == "input":
            for constraint in scalar.domain:
                _narrow(found, source.attributes["name"], constraint)
    return [
        Assumption(name, "interval", _text(low, high, is_open), low, high, is_open, is_open)
        for name, (low, high, is_open) in found.items()
    ]


def _narrow(
    found: dict[str, tuple[Fraction | None, Fraction | None, bool]],
    name: str,
    constraint: Constraint,
) -> None:
    """Take a constraint that is linear in its argument into the interval of an input."""
    if constraint.kind not in ("positive", "nonnegative"):
        return
    x = sympy.Symbol("x", real=True)
    expression = sympy.sympify(constraint.expression(sympy, x))
    if not expression.is_polynomial(x) or sympy.degree(expression, x) != 1:
        return
    slope, offset = sympy.Poly(expression, x).all_coeffs()
    if not (slope.is_Rational and offset.is_Rational):
        return
    end = -offset / slope
    bound = Fraction(int(end.p), int(end.q))
    low, high, is_open = found.get(name, (None, None, False))
    if slope > 0:
        low = bound if low is None else max(low, bound)
    else:
        high = bound if high is None else min(high, bound)
    found[name] = (low, high, is_open or constraint.kind == "positive")


def _text(low: Fraction | None, high: Fraction | None, is_open: bool) -> str:
    left = "(-inf" if low is None else f"{'(' if is_open else '['}{low}"
    right = "inf)" if high is None else f"{high}{')' if is_open else ']'}"
    return f"{left}, {right}"


def _bare(node: Node) -> Node:
    while node.op in ("expand", "reshape", "permute", "cast"):
        node = node.args[0]
    return node
