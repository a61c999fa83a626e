"""Elementwise arithmetic.

In: nothing.  Out: records.  Imports: ``symgrad.ops.record`` and numpy.
"""

from __future__ import annotations

import numpy as np

from symgrad.ir.dtype import DType, bool_
from symgrad.ops.record import Constraint, Infix, Template, elementwise


def number(dtype: DType) -> bool:
    """Floats and integers: what arithmetic takes."""
    return dtype != bool_


elementwise(
    "add", numpy=np.add, sympy=lambda sp, x, y: x + y, c=Infix("+"), takes=number,
    vjp=lambda g, out, x, y: (g, g),
)  # fmt: skip
elementwise(
    "sub", numpy=np.subtract, sympy=lambda sp, x, y: x - y, c=Infix("-"), takes=number,
    vjp=lambda g, out, x, y: (g, -g),
)  # fmt: skip
elementwise(
    "mul", numpy=np.multiply, sympy=lambda sp, x, y: x * y, c=Infix("*"), takes=number,
    vjp=lambda g, out, x, y: (g * y, g * x),
)  # fmt: skip
elementwise(
    "div", numpy=np.divide, sympy=lambda sp, x, y: x / y, c=Infix("/"), cost=0.10,
    domain=(Constraint("nonzero", lambda sp, x, y: y),),
    vjp=lambda g, out, x, y: (g / y, -(g * out / y)),
)  # fmt: skip
elementwise(
    "neg", numpy=np.negative, sympy=lambda sp, x: -x, c=Template("-{0}"), takes=number,
    vjp=lambda g, out, x: (-g,),
)  # fmt: skip
