"""Compiled ops called with tensors; Functions and operations whose kernels come with symgrad."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import ops
import pytest

import symgrad as sg
import symgrad.nn.functional as F
from symgrad import nn
from symgrad.abi import all_sizes, shape_of
from symgrad.errors import BuildError, KernelArgumentError, KernelTypeError
from symgrad.runtime import strict
from symgrad.runtime.op import shipped_op
from symgrad.tensor.errors import FreedGraphError, SavedTensorError
from symgrad.tensor.plans import shippedplan
from symgrad.tensor.plans.shippedplan import RULES, SHIPPED, ShippedDerivative
from symgrad.tensor.tape.kernelnode import KernelNode

pytestmark = pytest.mark.slow  # kernels are compiled where the cache has none


def tensor(*shape: int, seed: int = 0, grad: bool = True) -> Any:
    values = np.random.default_rng(seed + sum(shape)).standard_normal(shape)
    found = sg.from_numpy(values.astype(np.float32))
    return found.requires_grad_() if grad else found


def close(left: Any, right: Any, tolerance: float = 2e-5) -> None:
    assert (left is None) == (right is None)
    if left is not None:
        assert left.shape == right.shape
        np.testing.assert_allclose(
            left.detach().numpy(), right.detach().numpy(), rtol=tolerance, atol=tolerance
        )


def derivatives(value: Any, wanted: list[Any], vector: Any) -> list[Any]:
    first = sg.autograd.grad(value, wanted, vector, create_graph=True, allow_unused=True)
    last: Any = sum((one * one).sum() for one in first if one is not None)
    if not last.requires_grad:
        return [value, *first]
    return [value, *first, *sg.autograd.grad(last, wanted, allow_unused=True)]


# -- compiled ops


@pytest.fixture(scope="module")
def layer_norm() -> Any:
    return sg.compile(ops.LayerNorm)


def inputs() -> list[Any]:
    return [tensor(6, 5), tensor(5), tensor(5, seed=1)]


def test_a_compiled_op_is_recorded(layer_norm: Any) -> None:
    args, vector = inputs(), tensor(6, 5, seed=2, grad=False)
    found = layer_norm(*args)
    assert isinstance(found.grad_fn, KernelNode)
    assert found.grad_fn.name() == "LayerNormBackward"
    found = derivatives(found, args, vector)
    for left, right in zip(
        found, derivatives(ops.LayerNorm.apply(*args), args, vector), strict=True
    ):
        close(left, right, 1e-3)
    arrays = [arg.detach().numpy() for arg in args]
    assert isinstance(layer_norm(*arrays), np.ndarray)
    with sg.no_grad():
        assert layer_norm(*args).grad_fn is None


def test_only_the_wanted_gradients_are_computed(
    layer_norm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    masks = []
    backward = layer_norm.backward

    def noted(*args: Any, needs_input_grad: Any = None) -> Any:
        masks.append(needs_input_grad)
        return backward(*args, needs_input_grad=needs_input_grad)

    monkeypatch.setattr(layer_norm, "backward", noted)
    x, weight, bias = inputs()
    weight.requires_grad_(False)
    layer_norm(x, weight, bias).sum().backward()
    assert weight.grad is None
    layer_norm(x, weight, bias).sum().backward(inputs=[bias])
    assert masks == [(True, False, True), (False, False, True)]


def test_what_backward_reads_must_not_change(layer_norm: Any) -> None:
    x, weight, bias = inputs()
    found = layer_norm(x, weight, bias).sum()
    with sg.no_grad():
        bias.add_(1)  # backward does not read it
    found.backward(retain_graph=True)
    with sg.no_grad():
        weight.add_(1)
    with pytest.raises(SavedTensorError, match="modified by an inplace operation"):
        found.backward()


@cache
def compiled() -> Any:
    return sg.compile(ops.SoftmaxCrossEntropy)


LOSS = sg.jit(lambda x, labels, w: (sg.exp(x)[sg.arange(4), labels] * w).sum())
WAYS: dict[str, Any] = {
    "compiled": lambda x, labels, w: (compiled()(x, labels) * w).sum(),
    "applied": lambda x, labels, w: (ops.SoftmaxCrossEntropy.apply(x, labels) * w).sum(),
    "jit": LOSS,
    "nn": lambda x, labels, w: (F.cross_entropy(x, labels, reduction="none") * w).sum(),
    "shipped": lambda x, labels, w: F.cross_entropy(x, labels) * w.sum(),
    "eager": lambda x, labels, w: (sg.gather(x * x, 1, labels[:, None])[:, 0] * w).sum(),
}


@pytest.mark.parametrize("way", sorted(WAYS))
@pytest.mark.parametrize("written", ["x", "labels", "w"])
def test_a_write_in_between_is_met_or_told(way: str, written: str) -> None:
    """Backward read what is written by then: the gradient is right, or there is none."""
    x, w, labels = tensor(4, 3), tensor(4), sg.tensor([0, 1, 2, 1])
    wanted = sg.autograd.grad(WAYS[way](x, labels, w), [x, w])
    loss = WAYS[way](x, labels, w)
    with sg.no_grad():
        {"x": x.mul_, "labels": labels.mul_, "w": w.mul_}[written](2)
    try:
        found = sg.autograd.grad(loss, [x, w])
    except SavedTensorError:
        return
    for one, other in zip(found, wanted, strict=True):
        close(one, other)


def test_a_second_backward_is_refused(layer_norm: Any) -> None:
    found = layer_norm(*inputs()).sum()
    found.backward()
    with pytest.raises(FreedGraphError, match="second time"):
        found.backward()


def test_wrong_calls(layer_norm: Any) -> None:
    x, weight, bias = inputs()
    with pytest.raises(KernelArgumentError, match="2 inputs given, 3 expected"):
        layer_norm(x, weight)
    with pytest.raises(KernelArgumentError, match="out="):
        layer_norm(x, weight, bias, out=np.empty((6, 5), np.float32))
    with pytest.raises(KernelTypeError, match="beside a Tensor"):
        layer_norm(x, weight, 1.0)
    with pytest.raises(KernelArgumentError, match="disagree"):
        layer_norm(x, tensor(4), bias)


def test_a_compiled_op_in_a_trace(layer_norm: Any) -> None:
    args = inputs()

    def function(x: Any, weight: Any, bias: Any) -> Any:
        return layer_norm(x * 2, weight, bias).sum(0)

    vector = tensor(5, seed=4, grad=False)
    pairs = zip(
        derivatives(sg.jit(function)(*args), args, vector),
        derivatives(function(*args), args, vector), strict=True,
    )  # fmt: skip
    for left, right in pairs:
        close(left, right, 1e-3)


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CC", "/nonexistent/cc")
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path))
    with pytest.warns(sg.NumpyBackendWarning):
        op = sg.compile(ops.Tanh)
    x = tensor(3, 4)
    vector = tensor(3, 4, seed=1, grad=False)
    with pytest.warns(sg.NumpyBackendWarning, match="second derivative of tanh"):
        found = derivatives(op(x), [x], vector)
    for left, right in zip(found, derivatives(sg.tanh(x), [x], vector), strict=True):
        close(left, right)


@pytest.mark.parametrize("call", [sg.gelu, nn.GELU()])
def test_operations_without_a_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, call: Any
) -> None:
    """It is said once, or raised."""
    from symgrad.tensor.plans import dispatch

    monkeypatch.setenv("CC", "/nonexistent/cc")
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(strict, "_told", set())
    monkeypatch.setattr(shippedplan, "_loaded", {})
    x = tensor(2048, 2, grad=False)
    for value in ("1", "0"):
        dispatch._plans.clear()
        monkeypatch.setenv("SYMGRAD_STRICT", value)
        with ExitStack() as expected:
            if value == "1":
                expected.enter_context(pytest.raises(BuildError, match="cannot be run"))
            else:
                expected.enter_context(pytest.warns(sg.NumpyBackendWarning, match="on NumPy"))
            found = call(x)
    dispatch._plans.clear()
    close(call(x), found)
    dispatch._plans.clear()


# -- kernels that come with symgrad


@pytest.fixture
def numpy_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Until ``undo``, nothing runs on kernels that come with symgrad."""
    from symgrad.tensor.plans import dispatch

    dispatch._plans.clear()
    monkeypatch.setattr(shippedplan, "RULES", {})
    yield monkeypatch
    dispatch._plans.clear()


def undo(patch: pytest.MonkeyPatch) -> None:
    from symgrad.tensor.plans import dispatch

    patch.undo()
    dispatch._plans.clear()


LABELS = sg.from_numpy(np.random.default_rng(3).integers(0, 64, 96))
WEIGHTS = tensor(64), tensor(64, seed=1)
KERNELS: dict[str, Any] = {
    **{name: getattr(sg, name) for name in ("relu", "sigmoid", "erf", "gelu", "silu", "softplus",
                                            "mish", "elu", "logsigmoid")},
    "gelu_tanh": lambda x: sg.gelu(x, approximate="tanh"),
    "softmax": lambda x: sg.softmax(x, -1),
    "log_softmax": lambda x: sg.log_softmax(x, dim=-1),
    "logsumexp": lambda x: sg.logsumexp(x, -1),
    "layer_norm": lambda x: sg.layer_norm(x, (64,), *WEIGHTS),
    "rms_norm": lambda x: sg.rms_norm(x, (64,), WEIGHTS[0]),
    "cross_entropy": lambda x: sg.cross_entropy(x.reshape(96, 64), LABELS),
    "mse_loss": lambda x: sg.mse_loss(x, tensor(3, 32, 64, seed=7, grad=False)),
}  # fmt: skip


def test_every_kernel_has_a_test() -> None:
    assert {f"nn_{name}" for name in KERNELS} == set(SHIPPED)
    assert {rule.function for rules in RULES.values() for rule in rules} == set(SHIPPED.values())
    assert len(set(SHIPPED.values())) == len(SHIPPED)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_operations(name: str, numpy_only: pytest.MonkeyPatch) -> None:
    call = KERNELS[name]
    x = tensor(3, 32, 64)
    wanted = [x, *WEIGHTS[: 2 if name == "layer_norm" else name == "rms_norm"]]
    shape = call(x).shape
    vector = tensor(*shape, seed=5, grad=False)
    expected = derivatives(call(x), wanted, vector)
    undo(numpy_only)
    value = call(x)
    assert type(value.grad_fn.derivative) is ShippedDerivative
    for left, right in zip(derivatives(value, wanted, vector), expected, strict=True):
        close(left, right, 1e-4)
    turned = x.detach().transpose(0, 1).requires_grad_()  # lies otherwise: NumPy computes it
    if name not in ("cross_entropy", "mse_loss"):
        close(call(turned), call(turned.contiguous()))


def test_other_arguments_are_left_to_numpy() -> None:
    x = tensor(32, 64)
    for value in (sg.softplus(x, beta=2.0), sg.gelu(x.double()), sg.gelu(x.t()), sg.gelu(x[:2])):
        assert type(value.grad_fn.derivative) is not ShippedDerivative


def test_a_wrong_label_is_told_as_before() -> None:
    x, labels = tensor(96, 64), LABELS.clone()
    labels[3] = 64
    with pytest.raises(IndexError, match="Target 64 is out of bounds"):
        sg.cross_entropy(x, labels)


# -- threads


def test_threads_are_set_for_all_kernels() -> None:
    before = sg.get_num_threads()
    x = tensor(64, 64, grad=False)
    try:
        found = []
        for threads in (1, 2):
            sg.set_num_threads(threads)
            assert sg.get_num_threads() == threads
            found.append(sg.gelu(x).numpy())
        np.testing.assert_array_equal(*found)
    finally:
        sg.set_num_threads(before)
    with pytest.raises(ValueError, match="threads"):
        sg.set_num_threads(-1)


def test_kernels_know_arguments_by_the_names_of_numpy() -> None:
    x = sg.ones(64, 64)
    for call in (sg.softmax, sg.log_softmax, sg.logsumexp):
        close(call(x, axis=-1), call(x, -1))


def test_kernels_that_come_with_symgrad_are_those_of_their_functions() -> None:
    """A kernel that is out of date would leave its operation to NumPy."""
    listed = shippedplan.manifest(Path(__file__).resolve().parents[2] / "generated")
    for name, function in SHIPPED.items():
        assert listed[name]["graph_sha256"] == shippedplan.digest(function), f"{name}: run regen"


def shipped_value(name: str) -> tuple[bytes, ...]:
    """What a kernel that comes with symgrad gives for one row, the same for every kernel."""
    op = shipped_op(name)
    case = op.caller.op.cases[0]
    last = case.inputs[0].dims[-1]
    long = {size: 12 if last in (size, *case.batches.get(size, ())) else 1 for size in case.sizes}
    sizes = all_sizes(case, [(n,) if size in case.batches else n for size, n in long.items()])
    draws = [np.random.default_rng(7).standard_normal(12), np.linspace(1, 2, 12), np.ones(12)]
    arrays = []
    for array, values in zip(case.inputs, draws, strict=False):
        shape = shape_of(array, sizes)
        kept = values[: math.prod(shape)] if array.dtype == "float32" else np.full(shape, 3)
        arrays.append(kept.reshape(shape).astype(array.dtype))
    result, residuals = op.forward(*arrays)
    gradients = op.backward(residuals, np.ones_like(result))
    return tuple(np.round(a, 4).tobytes() for a in (result, *gradients) if a is not None)


def test_no_two_kernels_that_come_with_symgrad_compute_the_same() -> None:
    names = sorted(shippedplan.manifest(Path(__file__).resolve().parents[2] / "generated"))
    assert names == sorted(SHIPPED)
    found: dict[tuple[bytes, ...], str] = {}
    for name in names:
        first = found.setdefault(shipped_value(name), name)
        assert first == name, f"{name} computes what {first} computes"
