"""Functions and modules of ``sg.nn`` inside ``sg.vmap``, in float32: what a loop gives."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symgrad as sg
import symgrad.nn.functional as F
from symgrad import nn
from symgrad.errors import SymgradError
from symgrad.tensor.errors import VmapError

SIZE = 3
_numbers = np.random.default_rng(0)


def floats(*shape: int) -> sg.Tensor:
    return sg.from_numpy(_numbers.uniform(0.1, 0.9, (SIZE, *shape)).astype(np.float32))


def places(count: int, *shape: int) -> sg.Tensor:
    return sg.from_numpy(_numbers.integers(0, count, (SIZE, *shape)))


def _of_labels(call: Callable[..., Any], weighted: bool) -> Callable[..., Any]:
    weight = sg.tensor([0.5, 1.0, 2.0, 0.1])
    return functools.partial(call, weight=weight, ignore_index=1) if weighted else call


_ROW, _WEIGHT, _BIAS = floats(4), floats(4), floats(4)
_ELEMENTWISE = [
    "celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu",
    "logsigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "softplus", "softshrink",
    "softsign", "tanh", "tanhshrink",
]  # fmt: skip
_PAIRS = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "huber_loss", "l1_loss",
    "mse_loss", "smooth_l1_loss", "cosine_similarity", "pairwise_distance",
]  # fmt: skip

# A function of one element, and its arguments for a whole batch.
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{name: (getattr(F, name), (floats(2, 4),)) for name in _ELEMENTWISE},
    **{name: (getattr(F, name), (floats(2, 4), floats(2, 4))) for name in _PAIRS},
    "kl_div": (lambda x, y: F.kl_div(x, y, reduction="sum"), (floats(2, 4), floats(2, 4))),
    "softmax": (lambda x: F.softmax(x, 0), (floats(2, 4),)),
    "log_softmax": (lambda x: F.log_softmax(x, -1), (floats(2, 4),)),
    "softmin": (lambda x: F.softmin(x, -1), (floats(4),)),
    "glu": (F.glu, (floats(2, 4),)),
    "normalize": (lambda x: F.normalize(x, dim=-1), (floats(2, 4),)),
    "threshold": (lambda x: F.threshold(x, 0.4, 0.2), (floats(2, 4),)),
    "prelu": (F.prelu, (floats(2, 4), floats(1))),
    "pad": (lambda x: F.pad(x, (1, 2)), (floats(2, 4),)),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), (floats(4, 2, 3),)),
    "hinge_embedding_loss": (lambda x: F.hinge_embedding_loss(x, sg.ones(4)), (floats(4),)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), (floats(2, 4), _WEIGHT, _BIAS)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (4,), w), (floats(4), _WEIGHT)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (floats(2, 4, 3), _WEIGHT, _BIAS)),
    "instance_norm": (F.instance_norm, (floats(2, 4, 3),)),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), (floats(5, 4),)),
    "linear": (F.linear, (floats(4), floats(2, 4), floats(2))),
    "linear of rows": (F.linear, (floats(3, 4), floats(2, 4), floats(2))),
    "scaled_dot_product_attention": (F.scaled_dot_product_attention, (floats(3, 4),) * 3),
    "dropout": (lambda x: F.dropout(x, training=False), (floats(4),)),
    "cross_entropy": (_of_labels(F.cross_entropy, False), (floats(2, 4), places(4, 2))),
    "cross_entropy, weighted": (_of_labels(F.cross_entropy, True), (floats(6, 4), places(4, 6))),
    "cross_entropy of one": (F.cross_entropy, (floats(4), places(4))),
    "cross_entropy, smooth": (F.cross_entropy, (floats(2, 4), floats(2, 4))),
    "nll_loss": (_of_labels(F.nll_loss, False), (floats(2, 4), places(4, 2))),
    "nll_loss, weighted": (_of_labels(F.nll_loss, True), (floats(6, 4), places(4, 6))),
    "embedding": (lambda i, w: F.embedding(i, w, padding_idx=1), (places(4, 5), floats(4, 3))),
    "one_hot": (lambda i, x: F.one_hot(i, 4) * x, (places(4, 5), floats())),
    "large": (lambda x, w, b: F.layer_norm(F.gelu(x), (40,), w, b),
              (floats(30, 40), floats(40), floats(40))),
}  # fmt: skip


class _Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.attention(x, x, x)[0]


SHAPES: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "Linear": (lambda: nn.Linear(4, 3), (4,)),
    "mixed": (lambda: nn.Sequential(nn.Linear(4, 5), nn.GELU(), nn.LayerNorm(5), nn.PReLU()), (4,)),
    "RMSNorm": (lambda: nn.Sequential(nn.RMSNorm(4), nn.Softmax(-1)), (2, 4)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
    "MultiheadAttention": (_Attending, (3, 4)),
}


def with_parameters(name: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A module as a function of its input and its parameters, which differ too."""
    build, shape = SHAPES[name]
    module = build()
    words = [word for word, _ in module.named_parameters()]
    given = [floats(*one.shape) for one in module.parameters()]

    def call(x: Any, *parameters: Any) -> Any:
        return sg.func.functional_call(module, dict(zip(words, parameters, strict=True)), (x,))

    return call, (floats(*shape), *given)


def gradients(call: Callable[..., Any], args: tuple[Any, ...]) -> Callable[..., Any]:
    """The gradients by all floats of a number that every element of the result counts for."""
    wanted = tuple(place for place, one in enumerate(args) if one.is_floating_point())

    def loss(*given: Any) -> Any:
        found = call(*given)
        return (found * sg.sin(found + 1.0)).sum()

    return sg.grad(loss, argnums=wanted)


def looped(call: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
    rows = [call(*(one[place] for one in args)) for place in range(SIZE)]
    columns = zip(*(row if isinstance(row, tuple) else (row,) for row in rows), strict=True)
    return [np.stack([one.detach().numpy() for one in column]) for column in columns]


def same(found: Any, wanted: list[Any]) -> None:
    found = found if isinstance(found, tuple) else (found,)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=1e-4, atol=1e-5)


def test_every_function_is_tried() -> None:
    assert {name.partition(",")[0].partition(" ")[0] for name in CASES} >= set(F.__all__)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CASES, *SHAPES])
def test_values_and_gradients_are_those_of_a_loop(name: str) -> None:
    call, args = CASES[name] if name in CASES else with_parameters(name)
    gradient = gradients(call, args)
    values, wanted = looped(call, args), looped(gradient, args)
    same(sg.vmap(call)(*args), values)
    same(sg.vmap(gradient)(*args), wanted)
    leaves = [one.clone().requires_grad_() if one.is_floating_point() else one for one in args]
    found = sg.vmap(call)(*leaves)
    (found * sg.sin(found + 1.0)).sum().backward()
    same(tuple(one.grad for one in leaves if one.requires_grad), wanted)


def test_gradients_of_each_sample_inside_jit() -> None:
    net = nn.Sequential(nn.Linear(4, 5), nn.GELU(), nn.LayerNorm(5), nn.Linear(5, 2))
    state = dict(net.named_parameters())
    x, y = floats(4), floats(2)

    def loss(state: Any, x: Any, y: Any) -> Any:
        return F.mse_loss(sg.func.functional_call(net, state, (x,)), y)

    each = sg.vmap(sg.grad(loss), in_dims=(None, 0, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.JitWarning)  # a hand-written backward is not traced
        compiled, eager = sg.jit(each)(state, x, y), each(state, x, y)
    for name in state:
        wanted = [sg.grad(loss)(state, x[place], y[place])[name] for place in range(SIZE)]
        same(eager[name], [np.stack([one.detach().numpy() for one in wanted])])
        same(compiled[name], [eager[name].detach().numpy()])


def test_labels_are_checked_in_the_whole_batch() -> None:
    labels = sg.tensor([[0, 1], [2, 4], [0, 0]])
    for loss in (F.cross_entropy, F.nll_loss):
        with pytest.raises(IndexError, match="Target 4 is out of bounds"):
            sg.vmap(loss)(floats(2, 4), labels)
    with pytest.raises(IndexError, match="index out of range"):
        sg.vmap(F.embedding)(labels, floats(4, 2))
    with pytest.raises(SymgradError, match="smaller than num_classes"):
        sg.vmap(lambda one: F.one_hot(one, 4))(labels)
    with pytest.raises(VmapError, match="needs the values"):
        sg.vmap(F.one_hot)(labels)
