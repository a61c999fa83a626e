"""Names of torch's that are no operations: dtypes, constants, ``Size``, modules such as ``jit``.

In: nothing.  Out: entries of ``FUNCTIONS``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from symgrad.frontend.caller import here
from symgrad.frontend.function import Function, custom_bwd, custom_fwd, once_differentiable
from symgrad.frontend.questions import questions
from symgrad.frontend.sizes import Shape
from symgrad.frontend.table import FUNCTIONS
from symgrad.ir.dtype import ALIASES, DType, float32


def size_of(sizes: Iterable[Any] = ()) -> Shape:
    """``torch.Size``: a tuple of sizes."""
    return Shape(sizes)


def device(name: Any = "cpu", index: int | None = None) -> str:
    """``torch.device``: a name; there are no devices here."""
    return str(name)


def variable(data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
    """``torch.autograd.Variable``: the tensor itself."""
    return data


def is_grad_enabled() -> bool:
    """Does PyTorch record here?  Not in forward; in backward, the trace splits on it."""
    known = questions()
    return known is None or known.recording(here())


def get_default_dtype() -> DType:
    """The dtype of floats that say no other: float32."""
    return float32


def script(function: Any = None, **settings: Any) -> Any:
    """``torch.jit.script``: the function itself."""
    return function if function is not None else lambda call: call


def _none_available() -> bool:
    """False: there are no devices here."""
    return False


_AMP = SimpleNamespace(custom_fwd=custom_fwd, custom_bwd=custom_bwd)
NAMESPACES: dict[str, Any] = {
    "amp": _AMP,
    "autograd": SimpleNamespace(
        Function=Function,
        Variable=variable,
        function=SimpleNamespace(Function=Function, once_differentiable=once_differentiable),
    ),
    "cuda": SimpleNamespace(amp=_AMP, is_available=_none_available),
    "jit": SimpleNamespace(script=script, ignore=script, export=script, unused=script),
}
"""Modules of torch's that hold names: ``sg.autograd.Function``, ``sg.jit.script``."""

FUNCTIONS.update(NAMESPACES)
FUNCTIONS.update(
    {
        "Size": size_of,
        "Variable": variable,
        "device": device,
        "e": math.e,
        "get_default_dtype": get_default_dtype,
        "inf": math.inf,
        "is_grad_enabled": is_grad_enabled,
        "nan": math.nan,
        "newaxis": None,
        "pi": math.pi,
        **ALIASES,
    }
)
