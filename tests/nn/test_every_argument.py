"""Values, and the gradients of every float argument: weights, targets, masks, as torch has them.

No argument is silently a constant.  Where torch refuses to differentiate with respect to an
argument, the gradient is compared with difference quotients.
"""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import symgrad as sg
import symgrad.nn.functional as F

pytestmark = [pytest.mark.peers, pytest.mark.slow]

Arrays = dict[str, Any]
REFUSED = ("not differentiable with respect to", "derivative for", "does not require grad")
REDUCTIONS = ("none", "mean", "sum")
LABELS = np.array([0, 3, 1, -100])


def drawn(seed: int, *shape: int) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def positive(seed: int, *shape: int) -> Any:
    return np.random.default_rng([seed, *shape]).random(shape) * 0.9 + 0.05


def _losses() -> Iterator[tuple[str, Arrays, Arrays]]:
    pair = {"input": drawn(1, 3, 4), "target": drawn(2, 3, 4)}
    part = {"input": positive(3, 3, 4), "target": positive(4, 3, 4)}
    for reduction in REDUCTIONS:
        said = {"reduction": reduction}
        for name in ("mse_loss", "l1_loss", "huber_loss"):
            yield name, {**pair, "weight": positive(5, 3, 4)}, said
        yield "smooth_l1_loss", pair, {**said, "beta": 0.5}
        yield "hinge_embedding_loss", {**pair, "target": np.sign(pair["target"])}, said
        for weight in ((4,), (3, 4)):
            yield "binary_cross_entropy", {**part, "weight": positive(6, *weight)}, said
            yield (
                "binary_cross_entropy_with_logits",
                {**pair, "weight": positive(7, *weight), "pos_weight": positive(8, 4)}, said,
            )  # fmt: skip
        yield "kl_div", part, said
        yield "kl_div", pair, {**said, "log_target": True}
        scores = {"input": drawn(9, 4, 5), "weight": positive(10, 5)}
        yield "nll_loss", {**scores, "target": LABELS}, said
        for smoothing in (0.0, 0.1, -0.5):
            smoothed = {**said, "label_smoothing": smoothing}
            yield "cross_entropy", {**scores, "target": LABELS}, smoothed
            yield "cross_entropy", {**scores, "target": positive(11, 4, 5)}, smoothed
        deep = {"input": drawn(12, 2, 5, 3), "weight": positive(13, 5)}
        yield "cross_entropy", {**deep, "target": positive(14, 2, 5, 3)}, said


def _layers() -> Iterator[tuple[str, Arrays, Arrays]]:
    x, channels = drawn(20, 3, 4), {"weight": positive(21, 4), "bias": drawn(22, 4)}
    yield "linear", {"input": x, "weight": drawn(23, 5, 4), "bias": drawn(24, 5)}, {}
    yield "embedding", {"input": np.array([1, 0, 1]), "weight": drawn(25, 3, 4)}, {}
    yield "prelu", {"input": x, "weight": positive(26, 4)}, {}
    yield "layer_norm", {"input": x, **channels}, {"normalized_shape": (4,)}
    yield "rms_norm", {"input": x, "weight": positive(27, 4)}, {"normalized_shape": (4,)}
    wide = drawn(28, 2, 4, 3)
    yield "group_norm", {"input": wide, **channels}, {"num_groups": 2}
    yield "instance_norm", {"input": wide, **channels}, {}
    yield (
        "batch_norm",
        {"input": x, **channels, "running_mean": None, "running_var": None},
        {"training": True},
    )
    yield "cosine_similarity", {"x1": x, "x2": drawn(29, 3, 4)}, {}
    yield "pairwise_distance", {"x1": x, "x2": drawn(30, 3, 4)}, {}


def _attention() -> Iterator[tuple[str, Arrays, Arrays]]:
    parts = {"query": drawn(31, 2, 3, 4), "key": drawn(32, 2, 5, 4), "value": drawn(33, 2, 5, 6)}
    blocked = positive(34, 2, 3, 5) > 0.4
    blocked[0, 1] = False
    added = np.where(blocked, drawn(35, 2, 3, 5), -np.inf)
    for mask in (None, drawn(36, 3, 5), drawn(37, 2, 1, 5), blocked, blocked[0], added):
        yield "scaled_dot_product_attention", {**parts, "attn_mask": mask}, {}
    yield "scaled_dot_product_attention", parts, {"is_causal": True}


CASES = [*_losses(), *_layers(), *_attention()]


def _name(case: tuple[str, Arrays, Arrays]) -> str:
    name, arrays, settings = case
    shapes = (f"{key}{getattr(one, 'shape', one)}" for key, one in arrays.items())
    return "-".join((name, *shapes, *map(str, settings.values())))


def outcome(module: Any, functional: Any, case: Any, kind: Any) -> list[Any]:
    """The value, and the gradient of each float argument."""
    name, arrays, settings = case
    leaves: Arrays = {}
    for key, one in arrays.items():
        is_float = one is not None and one.dtype.kind == "f"
        leaves[key] = one if one is None else module.tensor(one.astype(kind) if is_float else one)
        if is_float:
            leaves[key].requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = getattr(functional, name)(**leaves, **settings)
    wanted = [one for one in leaves.values() if one is not None and one.requires_grad]
    ramp = module.tensor(np.linspace(0.5, 1.5, y.numel()).reshape(tuple(y.shape)).astype(kind))
    grads = module.autograd.grad((y * ramp).sum(), wanted, allow_unused=True)
    return [y.detach().numpy(), *(one if one is None else one.numpy() for one in grads)]


def _by_differences(case: Any) -> None:
    """The gradients, where torch has none."""
    name, arrays, settings = case
    fixed = {k: sg.tensor(one) for k, one in arrays.items() if one.dtype.kind != "f"}
    names = [key for key in arrays if key not in fixed]

    def call(*tensors: Any) -> Any:
        return getattr(F, name)(**dict(zip(names, tensors, strict=True)), **fixed, **settings)

    given = [sg.tensor(arrays[key]).requires_grad_() for key in names]
    assert sg.autograd.gradcheck(call, given)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES, ids=_name)
def test_value_and_gradients_are_torchs(case: Any, kind: Any) -> None:
    import torch

    try:
        wanted = outcome(torch, torch.nn.functional, case, kind)
    except RuntimeError as error:
        if not any(words in str(error) for words in REFUSED):
            raise
        if kind is np.float64:
            _by_differences(case)
        return
    found = outcome(sg, F, case, kind)
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        if theirs is None:
            assert ours is None or not ours.any()
            continue
        assert ours is not None
        assert ours.dtype == theirs.dtype
        relative, absolute = (1e-9, 1e-11) if kind is np.float64 else (2e-4, 2e-5)
        np.testing.assert_allclose(ours, theirs, rtol=relative, atol=absolute)


def test_every_function_of_several_tensors_is_compared() -> None:
    """A new loss or layer with a tensor beside its input cannot be left out."""
    known = {name for name, _, _ in CASES}
    words = {"weight", "target", "bias", "pos_weight", "attn_mask", "key", "x2"}
    taking = {
        name for name in F.__all__ if words & set(inspect.signature(getattr(F, name)).parameters)
    }
    assert taking <= known, taking - known


MIXED = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
         "binary_cross_entropy_with_logits", "kl_div", "cross_entropy")  # fmt: skip
KINDS = (np.float32, np.float64, np.int64, np.uint8)


@pytest.mark.parametrize("name", MIXED)
def test_mixed_dtypes_are_taken_or_refused_as_by_torch(name: str) -> None:
    import torch

    def told(module: Any, functional: Any, kinds: Any) -> str:
        pair = ([[1, 0.5], [1, 0.25]], [[1, 1], [1, 0]])
        one, other = (
            module.tensor(np.array(v).astype(k)) for v, k in zip(pair, kinds, strict=True)
        )
        for tensor in (one, other):
            if tensor.is_floating_point():
                tensor.requires_grad_()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                y = getattr(functional, name)(one, other)
                y.sum().backward()
        except (RuntimeError, TypeError, ValueError):
            return "refused"
        return str(y.dtype).rpartition(".")[2]

    for kinds in itertools.product(KINDS, KINDS):
        assert told(sg, F, kinds) == told(torch, torch.nn.functional, kinds), kinds
