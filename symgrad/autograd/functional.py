"""What ``torch.autograd.functional`` has: derivatives at a point.

In: a function of tensors, inputs, vectors.  Out: values and derivatives.
Imports: ``symgrad.tensor``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.tensor import functional
from symgrad.tensor.errors import AutogradError
from symgrad.tensor.functional import hessian as hessian
from symgrad.tensor.functional import hvp as hvp
from symgrad.tensor.functional import jacobian as jacobian
from symgrad.tensor.tensor import Tensor, wrap


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """``(value, v·J)``; ``v`` may be left out for a value of one element."""
    several = isinstance(inputs, (tuple, list))
    value, pull_back = functional.vjp(func, *(inputs if several else (inputs,)))
    if v is None:
        v = _one(value)
    found = pull_back(*(v if isinstance(v, (tuple, list)) else (v,)))
    return value, (found if several else found[0])


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """``(value, J·v)``; ``v`` may be left out for an input of one element."""
    return functional.jvp(func, inputs, _one(inputs) if v is None else v)


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """``(value, v·H)``: the same as ``hvp``, since Hessians are symmetric."""
    return hvp(func, inputs, v, create_graph, strict)


def _one(value: Any) -> Tensor:
    if not isinstance(value, Tensor) or value.numel() != 1:
        raise AutogradError(
            "The vector v can only be None if the user-provided function returns a single Tensor "
            "with a single element"
        )
    return wrap(np.ones_like(value._array))
