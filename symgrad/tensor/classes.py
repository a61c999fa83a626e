"""torch's old classes of tensors: ``LongTensor([1, 2])``, ``isinstance(x, FloatTensor)``.

In: sizes, sequences, tensors.  Out: tensors of one dtype.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad.frontend.session import active
from symgrad.frontend.sizes import Shape, is_size
from symgrad.frontend.table import FUNCTIONS
from symgrad.ir.dtype import ALL, DType
from symgrad.tensor import creation, errors
from symgrad.tensor.memory import new_array
from symgrad.tensor.parts import Size
from symgrad.tensor.tensor import Tensor, wrap


class TensorClass(type):
    """A class whose instances are the tensors of one dtype."""

    dtype: DType

    def __call__(cls, *data_or_sizes: Any) -> Any:
        """Zeros of these sizes, or the numbers of a sequence, array or tensor in its dtype.

        Raises TensorTypeError for a tensor of another dtype, DTypeError for what does not fit.
        """
        data = data_or_sizes[0] if len(data_or_sizes) == 1 else None
        kind = getattr(data, "dtype", cls.dtype)
        if isinstance(kind, DType) and kind != cls.dtype:
            raise errors.TensorTypeError(
                f"expected {cls.dtype} (got {kind})", hint=f"convert it with .{cls.dtype.method}()"
            )
        if active() is not None:
            return cls._traced(*data_or_sizes)
        if isinstance(data, (list, tuple, np.ndarray)) and not isinstance(data, (Shape, Size)):
            return creation.tensor(data, dtype=cls.dtype)
        return wrap(new_array(data_or_sizes, cls.dtype))

    def _traced(cls, *data_or_sizes: Any) -> Any:
        sizes = all(isinstance(part, (Shape, Size)) or is_size(part) for part in data_or_sizes)
        name = "zeros" if sizes else "tensor"
        return FUNCTIONS[name](*(data_or_sizes or (0,)), dtype=cls.dtype)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor) and value.dtype == cls.dtype


CLASSES = {
    one.tensor_class: TensorClass(one.tensor_class, (), {"dtype": one, "__module__": "symgrad"})
    for one in ALL
}
"""By name, one for every dtype."""
