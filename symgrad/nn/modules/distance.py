"""Distances and directions of vectors, as modules.

In: settings.  Out: modules.
"""

from __future__ import annotations

from typing import Any

from symgrad.nn import functional as F
from symgrad.nn.modules.module import Module


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along the axis ``dim``; no length below ``eps``."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Any, x2: Any) -> Any:
        """The common shape without the axis."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of ``x1 - x2 + eps`` along the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Any, x2: Any) -> Any:
        """The common shape without the last axis."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
