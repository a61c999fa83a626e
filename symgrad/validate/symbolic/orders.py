"""The orders in which a kernel adds, or multiplies, what a reduction is over.

In: how a loop is run.  Out: ``Order``, names in a fixed order; ``()`` where each value is added to
all before it, from the first to the last.
"""

from __future__ import annotations

from symgrad.ir.dim import Dim, Element

Order = tuple[str, ...]
"""How a reduction is computed, by the names below."""

ON = "on"
"""It begins with what it is added to, so that one in another is one over both."""
LANES = "in lanes"
BLOCKS = "in blocks"
GROUPS = "in groups of rows"
THREADS = "over threads"
BLAS = "by the BLAS"
DOUBLE = "of floats in double"
TERMS = "of several terms in another order"
REVERSED = "from the last to the first"
BEGUN = "that begin with what they are added to"
ORDERS = (LANES, BLOCKS, GROUPS, THREADS, BLAS, DOUBLE, BEGUN, REVERSED, TERMS)
"""What is said of sums, and of products."""
ROUNDED = ("sum", "prod")
"""Reductions that depend on their order."""


def named(*names: str) -> Order:
    """An order by its names."""
    return tuple(one for one in (*ORDERS, ON) if one in names)


def joined(outer: Order, inner: Order, step: Dim) -> Order:
    """The order of one reduction over blocks of ``step`` places, each ``inner``."""
    if ON in inner:
        return named(*outer, *(one for one in inner if one != ON))
    numbers = all(isinstance(one, Element) and not one.indices for one in step.atoms)
    return named(*outer, *inner, BLOCKS if numbers else GROUPS)
