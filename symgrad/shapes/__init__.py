"""Shapes found by trying, for a Function of which nobody said what it takes.

In: a Function, the values of plain arguments that are known.  Out: ``FoundShapes``: specs as text,
values, and a line that says both.

Candidates of every argument have a price (``candidates``); combinations are traced in the order
of their price (``search``).  Every axis begins with a size of its own; where the tracer says that
two sizes meet in *forward*, they become one (``sizes``), so that what is found is as general as
forward allows.  What backward raises never makes sizes equal: that would hide its mistakes.
"""

from __future__ import annotations

from symgrad.shapes.candidates import are_known
from symgrad.shapes.search import FoundShapes, find

__all__ = ["FoundShapes", "are_known", "find"]
