"""``symgrad.func``: what ``torch.func`` has, under the same names; all of it may be nested.

In: nothing.  Out: the names.
"""

from symgrad.nn.modules.stateless import functional_call as functional_call
from symgrad.tensor.functional.transforms import grad as grad
from symgrad.tensor.functional.transforms import grad_and_value as grad_and_value
from symgrad.tensor.functional.transforms import hessian_of as hessian
from symgrad.tensor.functional.transforms import jacfwd as jacfwd
from symgrad.tensor.functional.transforms import jacrev as jacrev
from symgrad.tensor.functional.transforms import jvp as jvp
from symgrad.tensor.functional.transforms import linearize as linearize
from symgrad.tensor.functional.transforms import vjp as vjp
from symgrad.tensor.vmap.vmap import vmap as vmap

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "vjp", "vmap",
]  # fmt: skip
