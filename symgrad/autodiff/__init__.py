"""Graph -> reverse graph: vector-Jacobian and Jacobian-vector products."""

from symgrad.autodiff.reverse import adjoints, jvp, recorded_vjp, vjp

__all__ = ["adjoints", "jvp", "recorded_vjp", "vjp"]
