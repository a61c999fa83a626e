"""The operations on symbolic tensors, one file a theme.

Importing this fills ``FUNCTIONS``, and attaches the methods of ``SymbolicTensor``.
"""

from symgrad.frontend.functions import (  # noqa: F401
    activations,
    arithmetic,
    bits,
    casting,
    comparisons,
    composed,
    convolutions,
    creation,
    gathering,
    grouping,
    indexing,
    joining,
    layers,
    linalg,
    losses,
    mathematics,
    movement,
    names,
    normalization,
    numpy_protocol,
    pooling,
    products,
    reductions,
    resampling,
    scans,
    selected,
    selecting,
    sorting,
    torch_protocol,
)
from symgrad.frontend.table import FUNCTIONS as FUNCTIONS
