"""The update of one parameter: one call of a compiled kernel, or NumPy where no compiler works.

In: an update's formula, arrays.  Out: the arrays, written in place.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.budgets import MOST_UPDATE_KERNELS
from symgrad.errors import BuildError, CacheError
from symgrad.frontend.function import Function
from symgrad.optim.inplace import compile_in_place
from symgrad.runtime.op import CompiledOp
from symgrad.runtime.strict import fall_back
from symgrad.tensor.modes import no_grad
from symgrad.tensor.tensor import Array, Tensor, wrap

Static = tuple[tuple[str, Any], ...]
_SPECS = {np.dtype("float32"): "f32", np.dtype("float64"): "f64"}


class Update:
    """A formula with its plain arguments: ``update(scalars, grad, param, *state)`` writes.

    ``scalars``: a vector; ``grad``: an array of the shape of ``param``; both stay.  ``param`` and
    ``state``: arrays of one shape and dtype, which take their new values.
    """

    def __init__(self, formula: type[Function], **static: Any) -> None:
        self.formula: Any = formula
        self.static: Static = tuple(sorted(static.items()))

    def __call__(self, scalars: Array, grad: Array, *written: Array) -> None:
        """Write the new values.  All arrays have one dtype."""
        op = None
        if all(array.flags.c_contiguous for array in written):
            op = _kernel(self.formula, self.static, grad.dtype, scalars.size)
        if op is None or _overlap(grad, written):
            self._on_numpy(scalars, grad, written)
        elif grad.size:
            flat = np.ascontiguousarray(grad).reshape(-1)
            out = [one.reshape(-1) for one in written]
            op.inference(flat, scalars, out=tuple(out) if len(out) > 1 else out[0])

    def _on_numpy(self, scalars: Array, grad: Array, written: Sequence[Array]) -> None:
        """The same formula, operation by operation."""
        tensors = [wrap(one) for one in (written[0], grad, *written[1:], scalars)]
        with no_grad():
            found = self.formula.apply(*tensors, **dict(self.static))
        several: Sequence[Tensor] = found if isinstance(found, tuple) else (found,)
        for array, new in zip(written, several, strict=True):
            np.copyto(array, new._array)


def _overlap(grad: Array, written: Sequence[Array]) -> bool:
    """Might arrays share memory?  Kernels refuse that."""
    arrays = (grad, *written)
    return any(
        np.may_share_memory(one, other)
        for position, one in enumerate(written, 1)
        for other in arrays[:position]
    )


def arguments(
    formula: Any, static: Mapping[str, Any], dtype: str, scalars: int
) -> tuple[list[str], list[str]]:
    """The shapes of a formula's inputs, and the names of those that are written."""
    parameters = list(inspect.signature(formula.forward).parameters)[1:]
    names = [name for name in parameters if name not in static]
    specs = [f"{dtype}[{scalars}]" if name == "scalars" else f"{dtype}[n]" for name in names]
    return specs, [name for name in names if name not in ("grad", "scalars")]


@functools.lru_cache(maxsize=MOST_UPDATE_KERNELS)
def _kernel(formula: Any, static: Static, dtype: np.dtype[Any], scalars: int) -> CompiledOp | None:
    """The kernel of a formula for vectors of a dtype; None, with a warning, without a compiler."""
    given = dict(static)
    specs, written = arguments(formula, given, _SPECS[dtype], scalars)
    try:
        return compile_in_place(formula, specs, written, given)
    except (BuildError, CacheError) as error:
        fall_back("optimizers run", error, stacklevel=4)
        return None
