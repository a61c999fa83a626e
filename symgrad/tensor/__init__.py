"""The eager tensor with ``backward()``: PyTorch's autograd semantics on NumPy arrays.

In: arrays, operations of the frontend's table, Functions.  Out: tensors and their gradients.
Read ``plans/plan.py`` and ``tape/engine.py`` first.

    call --dispatch--> Plan (traced once) --run--> arrays, and a node --engine--> gradients

The package has the name of the function ``sg.tensor`` and may be called like it: whichever of the
two was imported last, ``sg.tensor([1.0])`` is a tensor.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from symgrad.tensor import gradients as _gradients  # noqa: F401  (attaches backward and hooks)
from symgrad.tensor import interpreters as _interpreters  # noqa: F401  (of tensors)
from symgrad.tensor import methods as _methods  # noqa: F401  (attaches methods)
from symgrad.tensor.creation import as_tensor as as_tensor
from symgrad.tensor.creation import from_numpy as from_numpy
from symgrad.tensor.functions import FUNCTIONS as FUNCTIONS
from symgrad.tensor.tensor import Size as Size
from symgrad.tensor.tensor import Tensor as Tensor


class _CallablePackage(types.ModuleType):
    """A package that may be called as the function of its name."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return FUNCTIONS["tensor"](*args, **kwargs)


sys.modules[__name__].__class__ = _CallablePackage
