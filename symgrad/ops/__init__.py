"""What can be computed: one record an op.  Importing this package registers them all."""

from symgrad.ops import arithmetic, contraction, movement, reductions, sources
from symgrad.ops.record import Op, get

__all__ = ["Op", "arithmetic", "contraction", "get", "movement", "reductions", "sources"]
