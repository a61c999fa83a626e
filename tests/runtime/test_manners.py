"""What is nearly an array of NumPy: read as one, or refused with what to do."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from symgrad.errors import KernelTypeError
from symgrad.runtime.op import CompiledOp


class Shared:
    """A tensor of another library, which hands its memory over."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


class Lazy:
    """An array that computes by functions of its own, as those of Dask do."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return numpy.asarray(self.values, dtype)

    def __array_ufunc__(self, *_: Any, **__: Any) -> Any:
        return NotImplemented

    def __array_function__(self, *_: Any, **__: Any) -> Any:
        return NotImplemented


X = numpy.arange(6, dtype="f4").reshape(2, 3)


@pytest.mark.parametrize("make", [
    Shared, lambda x: x.view(numpy.matrix), lambda x: x.view(numpy.recarray),
    lambda x: x.astype(">f4"), lambda x: numpy.frombuffer(x.tobytes(), "f4").reshape(2, 3),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_what_is_read(softplus: CompiledOp, make: Any) -> None:
    y, residuals = softplus.forward(make(X))
    assert type(y) is numpy.ndarray
    assert numpy.array_equal(y, softplus(X))
    assert numpy.array_equal(softplus.backward(residuals, make(y))[0], softplus.backward(
        softplus.forward(X)[1], y)[0])  # fmt: skip


@pytest.mark.parametrize(("make", "message"), [
    (Lazy, r"Lazy, not a NumPy array\n.*asarray\(value"),
    (lambda x: x.astype(object), r"object.*\n.*Python objects"),
    (lambda x: x.tolist(), r"list, not a NumPy array"),
    (numpy.ma.asarray, r"masked array.*\n.*filled"),
    (lambda x: x.astype("M8[s]"), r"datetime64\[s\]"),
    (lambda x: x.astype(complex), r"complex128"),
])  # fmt: skip
def test_what_is_refused(softplus: CompiledOp, make: Any, message: str) -> None:
    for call in (softplus, softplus.forward):
        with pytest.raises(KernelTypeError, match=message):
            call(make(X))
    _, residuals = softplus.forward(X)
    with pytest.raises(KernelTypeError, match=message):
        softplus.backward(residuals, make(X))
