"""The names of backward's nodes, as PyTorch has them.

In: the name of an operation.  Out: ``MulBackward0``.
"""

from __future__ import annotations

import functools

_OTHER = {
    "truediv": "div", "rtruediv": "div", "radd": "add", "rmul": "mul", "iadd": "add",
    "isub": "sub", "imul": "mul", "itruediv": "div", "ipow": "pow", "divide": "div",
    "true_divide": "div", "multiply": "mul", "subtract": "sub", "negative": "neg",
    "absolute": "abs", "rpow": "pow", "mm": "mm", "getitem": "index", "setitem": "copy_slices",
    "arctan": "atan", "arcsin": "asin", "arccos": "acos", "matmul": "mm", "rmatmul": "mm",
    "astype": "to_copy", "to": "to_copy", "double": "to_copy", "float": "to_copy",
}  # fmt: skip


@functools.cache
def label_of(name: str) -> str:
    """``mul_`` and ``__mul__`` as ``MulBackward0``; a backward of a backward keeps its name."""
    if name.endswith("Backward"):
        return f"{label_of(name.removesuffix('Backward')).removesuffix('0')}Backward0"
    plain = name.strip("_")
    words = _OTHER.get(plain, plain).split("_")
    label = "".join(word[:1].upper() + word[1:] for word in words)
    return label if label == "CopySlices" else f"{label}Backward0"
