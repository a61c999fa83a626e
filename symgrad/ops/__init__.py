"""What can be computed: one record an op.  Importing this package registers them all."""

from symgrad.ops import (
    arithmetic,
    contraction,
    exponential,
    indexing,
    linalg,
    logic,
    markers,
    movement,
    reductions,
    rounding,
    scans,
    slicing,
    sorting,
    sources,
    special,
    spectral,
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
    "linalg",
    "logic",
    "markers",
    "movement",
    "reductions",
    "rounding",
    "scans",
    "slicing",
    "sorting",
    "sources",
    "special",
    "spectral",
    "trigonometric",
]
