"""Compiled ops take what shares its memory by DLPack, without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.errors import KernelArgumentError, KernelTypeError
from tests.export.programs import Dot, Weighted, compiled


class Foreign:
    """The tensor of some library."""

    def __init__(self, array: Any, says: str = "") -> None:
        self.array = array
        self.says = says

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **how: Any) -> Any:
        if self.says:
            raise BufferError(self.says)
        return self.array.__dlpack__(**how)


def test_inputs_cotangents_and_outputs() -> None:
    op = compiled(Dot)
    x, w = np.ones((3, 4), np.float32), np.ones((4, 2), np.float32)
    y, residuals = op.forward(Foreign(x), w)
    assert np.array_equal(y, x @ w)
    assert residuals[0].ctypes.data == x.ctypes.data
    (grad_x, _) = op.backward(residuals, Foreign(np.ones((3, 2), np.float32)))
    assert np.array_equal(grad_x, np.full((3, 4), 2.0))
    out = np.zeros((3, 2), np.float32)
    op(x, w, out=Foreign(out))
    assert np.array_equal(out, x @ w)


def test_a_tensor_that_cannot_be_shared() -> None:
    x = np.ones((3, 4), np.float32)
    with pytest.raises(KernelTypeError, match="cannot be shared: it lies on Mars"):
        compiled(Weighted)(Foreign(x, "it lies on Mars"))
    with pytest.raises(KernelTypeError, match="has the dtype float64"):
        compiled(Weighted)(Foreign(x.astype(float)))
    with pytest.raises(KernelTypeError, match=r"is a symgrad\.Tensor"):
        compiled(Weighted).forward(sg.ones(3, 4))


@pytest.mark.peers
def test_tensors_of_torch_and_arrays_of_jax() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    op = compiled(Dot)
    x, w = torch.ones(3, 8)[:, ::2], jax.numpy.ones((4, 2))
    y, residuals = op.forward(x, w)
    assert isinstance(y, np.ndarray)
    assert np.array_equal(y, np.full((3, 2), 4.0))
    assert residuals[1].ctypes.data == w.unsafe_buffer_pointer()
    contiguous = x.contiguous()
    assert op.forward(contiguous, w)[1][0].ctypes.data == contiguous.data_ptr()
    out = torch.zeros(3, 2)
    op(x, w, out=out)
    assert torch.equal(out, torch.full((3, 2), 4.0))
    with pytest.raises(KernelTypeError, match="require gradients"):
        op(contiguous.requires_grad_(), w)
    with pytest.raises(KernelArgumentError, match="read-only"):
        op(x, w, out=jax.numpy.zeros((3, 2)))
