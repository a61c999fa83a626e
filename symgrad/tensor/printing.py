"""A tensor as text, in PyTorch's manner.

In: a tensor.  Out: ``tensor([1., 2.], requires_grad=True)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.ir.dtype import bool_, int64
from symgrad.tensor.modes import state
from symgrad.tensor.tensor import Tensor

PREFIX = "tensor("
LINE = 80
"""The characters of a line, as in torch."""


def text(self: Tensor) -> str:
    """Its elements, and what else there is to say."""
    array = self._array
    parts = [_elements(array)]
    if not array.size and array.shape != (0,):
        parts.append(f"size={tuple(array.shape)}")
    if self.dtype not in (state.dtype, int64, bool_) or (
        not array.size and self.dtype is not state.dtype
    ):
        parts.append(f"dtype={self.dtype!r}")
    node = self.grad_fn
    if node is not None:
        parts.append(f"grad_fn=<{node.name()}>")
    elif self.requires_grad:
        parts.append("requires_grad=True")
    return _joined(parts) + ")"


def _joined(parts: list[str]) -> str:
    """The parts in one line; what does not fit goes to the next line."""
    found = PREFIX + parts[0]
    for part in parts[1:]:
        room = LINE - (len(found) - found.rfind("\n") - 1)
        found += f", {part}" if len(part) + 4 <= room else f",\n{' ' * len(PREFIX)}{part}"
    return found


def _elements(array: Any) -> str:
    if not array.size:
        return "[]"
    formatter: Any = {}
    if array.dtype.kind == "f":
        formatter["float_kind"] = _float_format(array)
    elif array.dtype.kind == "b":
        width = 5 if not array.all() and array.ndim else 4
        formatter["bool"] = lambda value: str(bool(value)).rjust(width if array.ndim else 0)
    shown = np.array2string(
        array, separator=", ", formatter=formatter or None, prefix=PREFIX, threshold=1000,
        edgeitems=3, max_line_width=LINE,
    )  # fmt: skip
    return str(shown)


def _float_format(array: Any) -> Any:
    """One format for all elements: whole numbers as ``1.``, others with four decimals."""
    finite = array[np.isfinite(array)]
    if (
        finite.size
        and bool((finite == np.ceil(finite)).all())
        and float(np.abs(finite).max()) < 1e8
    ):
        plain = [f"{value:.0f}." for value in finite.reshape(-1).tolist()]
        form = "{:.0f}."
    else:
        sizes = np.abs(finite[finite != 0])
        large = sizes.size and (
            sizes.max() / sizes.min() > 1000.0 or sizes.max() >= 1e8 or sizes.min() < 1e-4
        )
        form = "{:.4e}" if large else "{:.4f}"
        plain = [form.format(value) for value in finite.reshape(-1).tolist()]
    width = max(map(len, plain), default=0) if array.ndim else 0

    def write(value: Any) -> str:
        number = float(value)
        return (form.format(number) if np.isfinite(number) else str(number)).rjust(width)

    return write
