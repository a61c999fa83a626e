"""What can be computed: one record an op.  Importing this package registers them all."""

from symgrad.ops import (
    arithmetic,
    contraction,
    exponential,
    indexing,
    logic,
    movement,
    reductions,
    rounding,
    scans,
    slicing,
    sources,
    special,
    trigonometric,
)
from symgrad.ops.record import Op, get

__all__ = [
    "Op",
    "arithmetic",
    "contraction",
    "exponential",
    "get",
    "indexing",
    "logic",
    "movement",
    "reductions",
    "rounding",
    "scans",
    "slicing",
    "sources",
    "special",
    "trigonometric",
]
