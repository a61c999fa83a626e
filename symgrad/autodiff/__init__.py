"""Graph -> reverse graph: vector-Jacobian and Jacobian-vector products."""

from symgrad.autodiff.reverse import jvp, vjp

__all__ = ["jvp", "vjp"]
