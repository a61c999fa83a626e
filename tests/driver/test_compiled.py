"""Compiled ops against NumPy evaluation, and what compile refuses."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import ops
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg
from symgrad.errors import (
    BuildError,
    KernelArgumentError,
    KernelTypeError,
    NotProvedError,
    SpecError,
)
from symgrad.frontend.trace import trace
from symgrad.kernels import masks, plan
from symgrad.numpy_op import NumpyOp
from symgrad.runtime.strict import NumpyBackendWarning

Array = np.ndarray[Any, Any]
SIZES = st.integers(0, 6)

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler was found")


class Wrong(sg.Function):
    """Forgets the incoming gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return sg.sin(x)

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        (x,) = ctx.saved_tensors
        return sg.cos(x)


class Derived(sg.Function):
    """Has no backward of its own."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        return sg.tanh(x @ w) * x.sum(-1, keepdim=True), sg.exp(w)


@pytest.fixture(scope="module")
def layer_norm() -> tuple[Any, NumpyOp]:
    return sg.compile(ops.LayerNorm), NumpyOp(plan(trace(ops.LayerNorm)))


def _data(shapes: list[tuple[int, ...]], seed: int) -> list[Array]:
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(shape).astype(np.float32) for shape in shapes]


def _agree(ours: Any, reference: Any) -> None:
    for left, right in zip(ours, reference, strict=True):
        assert (left is None) == (right is None)
        if left is not None:
            np.testing.assert_allclose(left, right, rtol=2e-4, atol=2e-4)


@pytest.mark.slow
@given(n=SIZES, m=st.integers(1, 9), seed=st.integers(0, 99))
@settings(max_examples=40)
def test_layer_norm_is_what_numpy_says(
    layer_norm: tuple[Any, NumpyOp], n: int, m: int, seed: int
) -> None:
    compiled, reference = layer_norm
    x, weight, bias, grad = _data([(n, m), (m,), (m,), (n, m)], seed)
    y, residuals = compiled.forward(x, weight, bias)
    expected, kept = reference.forward(x, weight, bias)
    _agree([y], [expected])
    # Rows of equal numbers divide noise by sqrt(eps): the gradients are compared elsewhere.
    if m > 1:
        _agree(compiled.backward(residuals, grad), reference.backward(kept, grad))


def test_strided_inputs(layer_norm: tuple[Any, NumpyOp]) -> None:
    compiled, reference = layer_norm
    wide, weight, bias = _data([(8, 20), (5,), (5,)], 0)
    for x in (wide[::2, 3:8], wide[:, ::4], wide[::-1, :5], np.asfortranarray(wide[:, :5])):
        _agree([compiled(x, weight, bias)], [reference(x, weight, bias)])


@pytest.mark.parametrize("mask", masks((True, True, True)))
def test_pruned_backwards(layer_norm: tuple[Any, NumpyOp], mask: tuple[bool, ...]) -> None:
    compiled, reference = layer_norm
    x, weight, bias, grad = _data([(4, 5), (5,), (5,), (4, 5)], 1)
    _, residuals = compiled.forward(x, weight, bias)
    _, kept = reference.forward(x, weight, bias)
    found = compiled.backward(residuals, grad, needs_input_grad=mask)
    assert tuple(gradient is not None for gradient in found) == mask
    _agree(found, reference.backward(kept, grad, needs_input_grad=mask))


def test_derived_backward() -> None:
    """By the inner-product identity with a difference quotient in double precision."""
    op = sg.compile(Derived, "f64[n k]", "f64[k m]")
    generator = np.random.default_rng(3)
    x, w, dx, dw = (generator.standard_normal(s) for s in ((3, 4), (4, 2), (3, 4), (4, 2)))
    outputs, residuals = op.forward(x, w)
    cotangents = [generator.standard_normal(y.shape) for y in outputs]
    gradients = op.backward(residuals, *cotangents)
    step = 1e-6
    plus, minus = op(x + step * dx, w + step * dw), op(x - step * dx, w - step * dw)
    quotient = sum(
        float((g * (p - q)).sum()) / (2 * step)
        for g, p, q in zip(cotangents, plus, minus, strict=True)
    )
    product = sum(
        float((gradient * tangent).sum())
        for gradient, tangent in zip(gradients, (dx, dw), strict=True)
    )
    assert quotient == pytest.approx(product, rel=1e-6)


def test_wrong_backward_is_refused() -> None:
    with pytest.raises(NotProvedError, match="REFUTED"):
        sg.compile(Wrong, "n m")
    op = sg.compile(Wrong, "n m", allow=("REFUTED",))
    np.testing.assert_allclose(op(np.zeros((1, 2), np.float32)), 0)


class SqueezedBias(sg.Function):
    """PyTorch's documented linear layer in the old style: its bias gradient is wrong for m == 1."""

    @staticmethod
    def forward(ctx: Any, input: Any, weight: Any, bias: Any = None) -> Any:
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0).squeeze(0)
        return grad_input, grad_weight, grad_bias


def test_sizes_for_which_backward_fails_get_no_kernel() -> None:
    report = sg.verify(SqueezedBias, "n k", "m k", "m")
    assert "PROVED if m != 1" in str(report)
    assert report.verdict is sg.REFUTED
    with pytest.raises(NotProvedError, match="m != 1"):
        sg.compile(SqueezedBias, "n k", "m k", "m")
    op = sg.compile(SqueezedBias, "n k", "m k", "m", allow=("REFUTED",))
    x, weight, bias, grad = _data([(2, 4), (3, 4), (3,), (2, 3)], 2)
    y, residuals = op.forward(x, weight, bias)
    np.testing.assert_allclose(y, x @ weight.T + bias, rtol=1e-5, atol=1e-5)
    _agree(op.backward(residuals, grad), [grad @ weight, grad.T @ x, grad.sum(0)])
    with pytest.raises(KernelArgumentError, match="m != 1"):
        op.forward(x, weight[:1], bias[:1])


def test_the_old_linear_without_a_bias_is_proved() -> None:
    assert sg.verify(SqueezedBias, "n k", "m k", None).verdict is sg.PROVED


@pytest.mark.quick
def test_allow_is_checked() -> None:
    with pytest.raises(SpecError, match="allow"):
        sg.compile(Wrong, "n m", allow="REFUTED")


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CC", "/nonexistent/cc")
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path))
    with pytest.raises(BuildError, match="cannot be run"):
        sg.compile(ops.Tanh, strict=True)
    with pytest.warns(NumpyBackendWarning, match="runs on NumPy"):
        op = sg.compile(ops.Tanh)
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    y, residuals = op.forward(x)
    np.testing.assert_allclose(y, np.tanh(x), rtol=1e-6)
    (grad_x,) = op.backward(residuals, y)
    assert grad_x is not None
    np.testing.assert_allclose(grad_x, y * (1 - y * y), rtol=1e-6)
    with pytest.raises(KernelTypeError):
        op(x.astype(np.float64))
    with pytest.raises(KernelArgumentError):
        op(x[0])


def test_labels_out_of_range_are_refused() -> None:
    op = sg.compile(ops.SoftmaxCrossEntropy)
    logits = np.zeros((2, 3), np.float32)
    for labels in ([0, 3], [-1, 0]):
        with pytest.raises(KernelArgumentError, match="range"):
            op.forward(logits, np.array(labels))
