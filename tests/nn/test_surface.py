"""One public surface: what stands in ``sg`` and in ``sg.nn.functional`` is one object, as torch's.

Signatures, values and gradients at kinks, warnings and errors are torch's.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import symgrad as sg
import symgrad.nn.functional as F

DOCUMENTED = {
    "cosine_similarity": "x1, x2, dim=1, eps=1e-8",
    "gelu": "input, *, approximate='none'",
    "hardshrink": "input, lambd=0.5",
    "linear": "input, weight, bias=None",
    "logsigmoid": "input",
    "one_hot": "tensor, num_classes=-1",
    "pairwise_distance": "x1, x2, p=2.0, eps=1e-6, keepdim=False",
    "pixel_shuffle": "input, upscale_factor",
    "prelu": "input, weight",
    "scaled_dot_product_attention": "query, key, value, attn_mask=None, dropout_p=0.0, "
    "is_causal=False, scale=None, enable_gqa=False",
    "softplus": "input, beta=1, threshold=20",
    "softshrink": "input, lambd=0.5",
}
"""Where torch's function has no signature, that which its documentation says."""


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    found = inspect.signature(function).parameters.values()
    return [(one.name, one.default, one.kind) for one in found]


def of_torch(name: str) -> Any:
    if name in DOCUMENTED:
        namespace: dict[str, Any] = {}
        exec(f"def documented({DOCUMENTED[name]}): ...", namespace)
        return namespace["documented"]
    torch = pytest.importorskip("torch")
    return getattr(torch.nn.functional, name)


@pytest.mark.parametrize("name", F.__all__)
def test_a_name_is_one_object(name: str) -> None:
    assert getattr(sg, name) is getattr(F, name)


@pytest.mark.peers
@pytest.mark.parametrize("name", F.__all__)
def test_signatures(name: str) -> None:
    assert parameters(getattr(sg, name)) == parameters(of_torch(name))


KINKS = [-6.0, -3.0, -1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 6.0, 19.0, 21.0]
ELEMENTWISE: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in (
        "celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu",
        "logsigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "softplus", "softshrink",
        "softsign", "tanh", "tanhshrink",
    )),
    ("celu", {"alpha": 0.5}), ("elu", {"alpha": 0.5}), ("gelu", {"approximate": "tanh"}),
    ("hardshrink", {"lambd": 1.0}), ("softshrink", {"lambd": 1.0}), ("softshrink", {"lambd": 0}),
    ("hardtanh", {"min_val": -0.5, "max_val": 2.0}), ("leaky_relu", {"negative_slope": -0.5}),
    ("softplus", {"threshold": 1.0}), ("softplus", {"beta": 2.0, "threshold": 6.0}),
    ("softplus", {"beta": 0.5}), ("threshold", {"threshold": 0.5, "value": -2.0}),
]  # fmt: skip


def differentiated(module: Any, call: Any, settings: dict[str, Any]) -> list[Any]:
    x = module.tensor(KINKS, dtype=module.float64, requires_grad=True)
    y = call(x, **settings)
    weight = module.arange(1, len(KINKS) + 1, dtype=module.float64)
    return [y.detach().numpy(), module.autograd.grad((y * weight).sum(), x)[0].numpy()]


@pytest.mark.peers
@pytest.mark.parametrize(("name", "settings"), ELEMENTWISE)
@pytest.mark.parametrize("way", ["eager", "derived", "jit"])
def test_kinks(name: str, settings: dict[str, Any], way: str) -> None:
    """By the hand-written backward, by the derived one, and by kernels of ``sg.jit``."""
    if way == "jit" and settings:
        pytest.skip("the defaults stand for them")
    torch = pytest.importorskip("torch")
    wanted = differentiated(torch, getattr(torch.nn.functional, name), settings)
    call: Any = getattr(F, name)
    if way == "jit":
        call = sg.jit(call, strict=True)
    elif way == "derived":
        call = sg.vmap(lambda one, **given: getattr(F, name)(one, **given))
    for mine, other in zip(differentiated(sg, call, settings), wanted, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-7, atol=5e-9)


def told(module: Any, functional: Any, program: Any) -> tuple[list[str], str | None]:
    """The warnings of a program, and the words of its error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        error = None
        try:
            program(module, functional)
        except Exception as raised:
            error = str(getattr(raised, "what", raised))
    words = [str(one.message).replace("torch.Size", "symgrad.Size") for one in caught]
    return words, error


WARNED: dict[str, Any] = {
    "mse_loss": lambda m, f: f.mse_loss(m.ones(2, 3), m.ones(3)),
    "l1_loss": lambda m, f: f.l1_loss(m.ones(2, 3), m.ones(3)),
    "smooth_l1_loss": lambda m, f: f.smooth_l1_loss(m.ones(2, 3), m.ones(3)),
    "huber_loss": lambda m, f: f.huber_loss(m.ones(2, 3), m.ones(3)),
    "softmax": lambda m, f: f.softmax(m.ones(2, 3)),
    "log_softmax": lambda m, f: f.log_softmax(m.ones(2, 3, 4)),
    "softmin": lambda m, f: f.softmin(m.ones(2)),
    "kl_div": lambda m, f: f.kl_div(m.ones(2), m.ones(2)),
    "size_average": lambda m, f: f.mse_loss(m.ones(2), m.ones(2), size_average=False),
    "reduce": lambda m, f: f.cross_entropy(m.ones(2, 3), m.tensor([0, 2]), reduce=False),
}
REFUSED: dict[str, Any] = {
    "gelu": lambda m, f: f.gelu(m.ones(2), approximate="foo"),
    "hardtanh": lambda m, f: f.hardtanh(m.ones(2), 2.0, 1.0),
    "reduction": lambda m, f: f.mse_loss(m.ones(2), m.ones(2), reduction="all"),
    "huber_loss": lambda m, f: f.huber_loss(m.ones(2), m.ones(2), delta=0.0),
    "smooth_l1_loss": lambda m, f: f.smooth_l1_loss(m.ones(2), m.ones(2), beta=-1.0),
    "softshrink": lambda m, f: f.softshrink(m.ones(2), -1.0),
    "label_smoothing": lambda m, f: f.cross_entropy(
        m.ones(2, 3), m.tensor([0, 1]), label_smoothing=2.0
    ),
    "cross_entropy": lambda m, f: f.cross_entropy(m.ones(2, 3), m.tensor([0, 5])),
    "embedding": lambda m, f: f.embedding(m.tensor([0, 5]), m.ones(2, 3)),
    "linear": lambda m, f: f.linear(m.ones(2, 3), m.ones(4, 5)),
    "dropout": lambda m, f: f.dropout(m.ones(2), 1.5),
    "layer_norm": lambda m, f: f.layer_norm(m.ones(2, 3), (4,)),
}


def test_gelu_knows_two_approximations() -> None:
    with pytest.raises(RuntimeError, match="none or tanh"):
        sg.gelu(sg.ones(2), approximate="foo")


@pytest.mark.peers
@pytest.mark.parametrize("name", sorted(WARNED))
def test_warnings(name: str) -> None:
    torch = pytest.importorskip("torch")
    wanted = told(torch, torch.nn.functional, WARNED[name])
    assert wanted[0]
    for _ in range(2):  # each call, not only the first
        assert told(sg, F, WARNED[name]) == wanted


@pytest.mark.peers
@pytest.mark.parametrize("name", sorted(REFUSED))
def test_errors(name: str) -> None:
    torch = pytest.importorskip("torch")
    _, wanted = told(torch, torch.nn.functional, REFUSED[name])
    _, found = told(sg, F, REFUSED[name])
    assert wanted is not None
    assert found is not None
    assert found.split("\n")[0] == wanted.split("\n")[0]
