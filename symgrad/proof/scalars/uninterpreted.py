"""Functions of which only the derivative is known, by declaration.

In: a name, a sympy function class whose ``fdiff`` is the declared derivative, and doubles.
Out: what the oracle computes with, and the axioms to print.

To the normal form such a function is an atom.  The oracle takes a model of it that has exactly
the declared derivative, and the double that the C gives as its value at the nearest point of a
grid: between grid points it is the Taylor series that the axiom gives.  What the model and the
true function agree on, then, is the derivative, and values to double precision: a difference
below ``VALUE_TOLERANCE`` refutes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import factorial
from typing import Any

import mpmath

from symgrad.ir.graph import Node
from symgrad.proof.scalars.bodies import PREFIX
from symgrad.proof.scalars.values import add_function, remove_function

VALUE_TOLERANCE = 1e-9
GRID_BITS = 44
GRID_SHIFT = "0.3717181920212223"
"""Cells meet where no number that anyone writes lies, nor a simple product of such."""
ORDER = 5
"""The terms of the series: ``2**-45`` to the sixth power is below the 60 digits' concern."""


@dataclass
class Uninterpreted:
    """``name``: of the op; ``kind``: the sympy class; ``double``: its value in doubles."""

    name: str
    kind: Any
    double: Callable[[float], float]
    _series: list[Callable[[Any], Any]] = field(default_factory=list)

    @property
    def axiom(self) -> str:
        """The declared derivative as text."""
        import sympy

        x = sympy.Symbol("x")
        derivative = str(sympy.diff(self.kind(x), x)).replace(PREFIX, "")
        return f"the derivative of {self.name}(x) is {derivative}, its values those of its C"

    def model(self, value: Any) -> Any:
        """The model's value at an mpmath number.  Raises ValueError off the real line."""
        if isinstance(value, mpmath.mpc) or not mpmath.isfinite(value):
            raise ValueError(f"{self.name} is a function of finite real numbers")
        shift = mpmath.mpf(GRID_SHIFT)
        place = mpmath.nint(mpmath.ldexp(value, GRID_BITS) - shift) + shift
        grid = mpmath.ldexp(place, -GRID_BITS)
        start = mpmath.mpf(self.double(float(grid)))
        offset = value - grid
        if abs(offset) < mpmath.ldexp(1, -2 * GRID_BITS):  # the grid point itself, but for rounding
            return start
        return start + sum(
            term(grid) * offset**order / factorial(order)
            for order, term in enumerate(self._terms(), 1)
        )

    def enclosure(self, value: Any) -> Any:
        """What encloses the value at an interval that is next to a point; else ValueError."""
        middle = (mpmath.mpf(value.a) + mpmath.mpf(value.b)) / 2
        if value.delta > mpmath.ldexp(1 + abs(middle), -GRID_BITS):
            raise ValueError("no enclosure of a declared function over a wide interval")
        found = mpmath.mpf(self.double(float(middle)))
        slack = VALUE_TOLERANCE * (1 + abs(found))
        return mpmath.iv.mpf([found - slack, found + slack])

    def _terms(self) -> list[Callable[[Any], Any]]:
        """The first derivatives as functions of mpmath numbers."""
        import sympy

        if not self._series:
            from symgrad.proof.scalars.symbolic import SYMBOLS, lambdified

            x = SYMBOLS[0]
            derivative: Any = self.kind(x)
            for _ in range(ORDER):
                derivative = sympy.diff(derivative, x)
                self._series.append(lambdified(derivative, 1))
        return self._series


KNOWN: dict[str, Uninterpreted] = {}
"""By the name of the sympy class."""


def enclosed(name: str, value: Any) -> Any:
    """What encloses the value of a function over an interval.  Raises ValueError."""
    if name not in KNOWN:
        raise ValueError(f"no enclosure of {name}")
    return KNOWN[name].enclosure(value)


def is_uninterpreted(name: str) -> bool:
    """Is this the name of the sympy class of such a function?"""
    return name in KNOWN


def declare(name: str, kind: Any, double: Callable[[float], float]) -> None:
    """Make a function known."""
    found = Uninterpreted(name, kind, double)
    KNOWN[kind.__name__] = found
    add_function(kind.__name__, found.model)


def withdraw(name: str) -> None:
    """Forget a function, and what was computed of it."""
    KNOWN.pop(PREFIX + name, None)
    remove_function(PREFIX + name)


def among(nodes: Iterable[Node]) -> list[Uninterpreted]:
    """Those that nodes apply, and those that their derivatives are made of, sorted by name."""
    todo = [PREFIX + name for name in sorted({node.op for node in nodes}) if PREFIX + name in KNOWN]
    found: dict[str, Uninterpreted] = {}
    while todo:
        name = todo.pop()
        if name not in found:
            found[name] = KNOWN[name]
            todo.extend(_within(KNOWN[name]))
    return [found[name] for name in sorted(found)]


def _within(known: Uninterpreted) -> Iterator[str]:
    """The declared functions that the derivative of one is made of."""
    import sympy

    x = sympy.Symbol("x")
    for part in sympy.preorder_traversal(sympy.diff(known.kind(x), x)):
        if type(part).__name__ in KNOWN:
            yield type(part).__name__


MEANINGS: dict[str, str] = {}
"""What is said of ops that came with C and a meaning, by the name of the op."""


def meanings(nodes: Iterable[Node]) -> list[str]:
    """What is said of those that nodes apply, sorted by name."""
    return [MEANINGS[name] for name in sorted({node.op for node in nodes}) if name in MEANINGS]
