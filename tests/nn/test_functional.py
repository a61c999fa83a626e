"""``symgrad.nn.functional`` and torch's: the same values, gradients and second derivatives."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
import symgrad.nn.functional as F

pytestmark = pytest.mark.peers

Arrays = dict[str, Any]


ONCE = ("hardsigmoid",)
"""What torch does not differentiate twice."""


def drawn(seed: int, *shape: int) -> Any:
    """Generic numbers, some of them large."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape) * 2


def positive(seed: int, *shape: int) -> Any:
    return np.random.default_rng([seed, *shape]).random(shape) * 0.98 + 0.01


def outcome(module: Any, functional: Any, name: str, arrays: Arrays, settings: Arrays) -> list[Any]:
    """The value, the gradients, and the gradients of their squares, all as arrays."""
    leaves = {
        key: value if value is None else module.tensor(value) for key, value in arrays.items()
    }
    wanted = [one for one in leaves.values() if one is not None and one.is_floating_point()]
    for leaf in wanted:
        leaf.requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = getattr(functional, name)(**leaves, **settings)
    loss = (y * y).sum()
    options = {"create_graph": True, "allow_unused": True}
    first = module.autograd.grad(loss, wanted, **options)
    total = sum((one * one).sum() for one in first if one is not None)
    second: Any = [None] * len(wanted)
    if total.requires_grad and name not in ONCE:
        second = module.autograd.grad(total, wanted, allow_unused=True)
    return [one if one is None else one.detach().numpy() for one in (y, *first, *second)]


def agree(name: str, arrays: Arrays, constants: Arrays | None = None, **settings: Any) -> None:
    """The same numbers, in float64; ``constants``: tensors that torch has no gradient for."""
    import torch

    found = []
    for module, functional in ((sg, F), (torch, torch.nn.functional)):
        fixed = {key: one if one is None else module.tensor(one)
                 for key, one in (constants or {}).items()}  # fmt: skip
        found.append(outcome(module, functional, name, arrays, {**settings, **fixed}))
    for mine, other in zip(*found, strict=True):
        if mine is None or other is None:  # of what is constant, torch now gives None, now zeros
            assert mine is None or not mine.any()
            assert other is None or not other.any()
        else:
            np.testing.assert_allclose(mine, other, rtol=1e-7, atol=1e-9)
            assert mine.shape == other.shape


SHAPES = [(), (5,), (3, 4), (2, 3, 4), (0, 3)]
ACTIVATIONS = (
    "relu", "relu6", "hardtanh", "leaky_relu", "elu", "selu", "sigmoid", "logsigmoid", "tanh",
    "gelu", "silu", "mish", "softplus", "softsign", "hardsigmoid", "hardswish",
)  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str, shape: tuple[int, ...]) -> None:
    agree(name, {"input": drawn(1, *shape)})


@given(
    st.sampled_from([
        ("leaky_relu", "negative_slope"), ("elu", "alpha"), ("softplus", "beta"),
        ("hardtanh", "max_val"),
    ]),
    st.floats(0.1, 3.0),
    st.integers(0, 9),
)  # fmt: skip
def test_settings_of_activations(named: tuple[str, str], value: float, seed: int) -> None:
    settings: Arrays = {named[1]: value}
    agree(named[0], {"input": drawn(seed, 7) * 5}, **settings)


def test_gelu_by_tanh() -> None:
    agree("gelu", {"input": drawn(2, 3, 4)}, approximate="tanh")


def test_softplus_is_linear_above_its_threshold() -> None:
    agree("softplus", {"input": drawn(3, 40) * 10}, beta=2.0, threshold=3.0)


@pytest.mark.parametrize(("shape", "count"), [((3, 4), 4), ((2, 3, 4), 3), ((5,), 1), ((2, 3), 1)])
def test_prelu(shape: tuple[int, ...], count: int) -> None:
    agree("prelu", {"input": drawn(4, *shape), "weight": drawn(5, count)})


@given(
    st.sampled_from(["softmax", "log_softmax", "softmin"]),
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.integers(-4, 3),
)
def test_softmax_along_any_axis(name: str, shape: list[int], dim: int) -> None:
    agree(name, {"input": drawn(6, *shape)}, dim=dim % len(shape) - (len(shape) if dim < 0 else 0))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (0, 4)])
def test_linear(shape: tuple[int, ...], bias: bool) -> None:
    weights = {"weight": drawn(7, 5, 4), "bias": drawn(8, 5) if bias else None}
    agree("linear", {"input": drawn(9, *shape), **weights})


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=6), st.sampled_from([None, 0, 2, -1])
)  # fmt: skip
def test_embedding(indices: list[int], padding: int | None) -> None:
    table = {"weight": drawn(10, 4, 3), "input": np.array(indices)}
    agree("embedding", table, padding_idx=padding)


AFFINE = [(True, True), (True, False), (False, False)]


@pytest.mark.parametrize(("weight", "bias"), AFFINE)
@pytest.mark.parametrize(
    ("shape", "rows"), [((3, 4), (4,)), ((2, 3, 4), (4,)), ((2, 3, 4), (3, 4)), ((4,), (4,))]
)
def test_layer_norm(shape: Any, rows: Any, weight: bool, bias: bool) -> None:
    arrays = {
        "input": drawn(11, *shape),
        "weight": drawn(12, *rows) if weight else None,
        "bias": drawn(13, *rows) if bias else None,
    }
    agree("layer_norm", arrays, normalized_shape=rows)
    del arrays["bias"]
    agree("rms_norm", arrays, normalized_shape=rows)
    agree("rms_norm", arrays, normalized_shape=rows, eps=0.1)


@pytest.mark.parametrize(("weight", "bias"), AFFINE)
@pytest.mark.parametrize("shape", [(3, 6, 2), (2, 6, 5), (2, 4, 3, 2)])
def test_norms_of_channels(shape: Any, weight: bool, bias: bool) -> None:
    arrays = {
        "input": drawn(14, *shape),
        "weight": drawn(15, shape[1]) if weight else None,
        "bias": drawn(16, shape[1]) if bias else None,
    }
    agree("group_norm", arrays, num_groups=2)
    agree("instance_norm", arrays)
    agree("batch_norm", arrays, running_mean=None, running_var=None, training=True)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
def test_running_averages(name: str, training: bool) -> None:
    import torch

    found = []
    for module, functional in ((torch, torch.nn.functional), (sg, F)):
        mean, variance = module.tensor(drawn(17, 3)), module.tensor(positive(18, 3))
        how = {"training" if name == "batch_norm" else "use_input_stats": training}
        y = getattr(functional, name)(
            module.tensor(drawn(19, 4, 3, 5)), mean, variance, momentum=0.3, **how
        )
        found.append((y.numpy(), mean.numpy(), variance.numpy()))
    for mine, other in zip(*found, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-9)


REDUCTIONS = ["none", "mean", "sum"]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_losses_of_differences(name: str, shape: Any, reduction: str) -> None:
    pair = {"input": drawn(20, *shape), "target": drawn(21, *shape)}
    agree(name, pair, reduction=reduction)
    if shape:
        agree(name, {**pair, "target": drawn(22, shape[-1])}, reduction=reduction)
    if name == "smooth_l1_loss":
        agree(name, pair, reduction=reduction, beta=0.5)
        agree(name, pair, reduction=reduction, beta=0.0)
    if name == "huber_loss":
        agree(name, pair, reduction=reduction, delta=0.5)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary_cross_entropy(reduction: str, weighted: bool) -> None:
    weight = positive(23, 3, 4) if weighted else None
    pair = {"input": positive(24, 3, 4), "target": positive(25, 3, 4)}
    constants: Arrays = {"weight": weight}
    agree("binary_cross_entropy", pair, constants, reduction=reduction)
    logits = {"input": drawn(26, 3, 4), "target": positive(25, 3, 4)}
    name = "binary_cross_entropy_with_logits"
    agree(name, logits, constants, reduction=reduction)
    constants["pos_weight"] = positive(27, 4)
    agree(name, logits, constants, reduction=reduction)


@pytest.mark.parametrize("log_target", [True, False])
@pytest.mark.parametrize("reduction", [*REDUCTIONS, "batchmean"])
def test_kl_div(reduction: str, log_target: bool) -> None:
    pair = {"input": drawn(28, 3, 4), "target": positive(29, 3, 4)}
    agree("kl_div", pair, reduction=reduction, log_target=log_target)


LABELS = np.array([0, 3, 1, -100])


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy(smoothing: float, reduction: str, weighted: bool) -> None:
    constants = {"weight": positive(30, 5) if weighted else None}
    settings = {"reduction": reduction, "label_smoothing": smoothing}
    for shape, labels in (((4, 5), LABELS), ((4, 5, 2), np.stack([LABELS, LABELS], 1)),
                          ((5,), np.array(2))):  # fmt: skip
        arrays = {"input": drawn(31, *shape), "target": labels}
        agree("cross_entropy", arrays, constants, **settings)
        if not smoothing:
            agree("nll_loss", arrays, constants, reduction=reduction)
    for shape in ((4, 5), (4, 5, 3), (5,)):
        arrays = {"input": drawn(32, *shape), "target": positive(33, *shape)}
        agree("cross_entropy", arrays, constants, **settings)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.integers(-1, 4), st.floats(0.0, 1.0))
def test_ignored_labels(labels: list[int], ignored: int, smoothing: float) -> None:
    if all(one == ignored for one in labels):
        labels = [*labels, (ignored + 1) % 5]
    arrays = {"input": drawn(34, len(labels), 5), "target": np.array(labels)}
    agree("cross_entropy", arrays, ignore_index=ignored, label_smoothing=smoothing)
    agree("nll_loss", arrays, ignore_index=ignored)


ATTENTION: list[Callable[[], tuple[Arrays, Arrays]]] = [
    lambda: ({}, {}),
    lambda: ({}, {"is_causal": True}),
    lambda: ({"attn_mask": drawn(35, 4, 6)}, {}),
    lambda: ({"attn_mask": positive(36, 2, 1, 4, 6) > 0.3}, {}),
    lambda: (
        {"query": drawn(37, 4, 5), "key": drawn(38, 6, 5), "value": drawn(39, 6, 7)},
        {"scale": 0.3},
    ),
    lambda: ({"key": drawn(40, 3, 6, 5), "value": drawn(41, 1, 3, 6, 7)}, {}),
    lambda: ({"query": drawn(42, 2, 6, 4, 5)}, {"enable_gqa": True}),
]  # fmt: skip


@pytest.mark.parametrize("case", ATTENTION)
def test_attention(case: Callable[[], tuple[Arrays, Arrays]]) -> None:
    changed, settings = case()
    arrays = {"query": drawn(43, 2, 3, 4, 5), "key": drawn(44, 2, 3, 6, 5),
              "value": drawn(45, 2, 3, 6, 7)}  # fmt: skip
    agree("scaled_dot_product_attention", {**arrays, **changed}, **settings)


def test_one_hot() -> None:
    import torch

    for labels, count in (([0, 2, 1], -1), ([[0, 2], [1, 1]], 4)):
        mine = F.one_hot(sg.tensor(labels), count)
        assert mine.tolist() == torch.nn.functional.one_hot(torch.tensor(labels), count).tolist()
