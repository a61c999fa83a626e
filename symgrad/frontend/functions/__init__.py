"""The operations on symbolic tensors, one file a theme.  Importing this enters them all.

In: nothing.  Out: ``FUNCTIONS`` and the methods of ``SymbolicTensor``.
"""

from symgrad.frontend.functions import (
    activations,
    arithmetic,
    assignment,
    casting,
    comparisons,
    composed,
    creation,
    einsum,
    gathering,
    indexing,
    joining,
    linalg,
    losses,
    mathematics,
    medians,
    movement,
    names,
    normalization,
    numpy_protocol,
    products,
    reductions,
    scans,
    sorting,
)
from symgrad.frontend.table import FUNCTIONS

__all__ = [
    "FUNCTIONS",
    "activations",
    "arithmetic",
    "assignment",
    "casting",
    "comparisons",
    "composed",
    "creation",
    "einsum",
    "gathering",
    "indexing",
    "joining",
    "linalg",
    "losses",
    "mathematics",
    "medians",
    "movement",
    "names",
    "normalization",
    "numpy_protocol",
    "products",
    "reductions",
    "scans",
    "sorting",
]
