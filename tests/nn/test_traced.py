"""Every function of ``symgrad.nn.functional`` takes symbolic tensors, in forward and in backward.

What an operation of symgrad itself fails at while it is traced says nothing of a Function.
"""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg
import symgrad.nn.functional as F
from symgrad.errors import UnsupportedOpError
from symgrad.frontend.trace import trace

ELEMENTWISE = (
    "celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 "
    "selu sigmoid silu softplus softshrink softsign tanh tanhshrink"
)
PAIRS = (
    "binary_cross_entropy_with_logits cosine_similarity hinge_embedding_loss huber_loss l1_loss "
    "linear mse_loss pairwise_distance smooth_l1_loss"
)
CALLS: dict[str, Any] = {
    **{name: lambda f, x, i: f(x) for name in ELEMENTWISE.split()},
    **{name: lambda f, x, i: f(x, 1) for name in ("log_softmax", "softmax", "softmin")},
    **{name: lambda f, x, i: f(x, x * 2) for name in PAIRS.split()},
    **{name: lambda f, x, i: f(x, i) for name in ("cross_entropy", "nll_loss")},
    "batch_norm": lambda f, x, i: f(x, None, None, training=True),
    "binary_cross_entropy": lambda f, x, i: f(sg.sigmoid(x), sg.sigmoid(x)),
    "dropout": lambda f, x, i: f(x, training=False),
    "embedding": lambda f, x, i: f(i, x),
    "glu": lambda f, x, i: f(sg.cat([x, x], 1), 1),
    "group_norm": lambda f, x, i: f(x, 1),
    "instance_norm": lambda f, x, i: f(x.unsqueeze(0)),
    "kl_div": lambda f, x, i: f(x, x.exp(), reduction="sum"),
    "layer_norm": lambda f, x, i: f(x, x.shape[1:]),
    "normalize": lambda f, x, i: f(x),
    "one_hot": lambda f, x, i: f(i, x.shape[1]),
    "pad": lambda f, x, i: f(x, (1, 2)),
    "pixel_shuffle": lambda f, x, i: f(x.reshape(1, *x.shape), 1),
    "prelu": lambda f, x, i: f(x, x[0, :1]),
    "rms_norm": lambda f, x, i: f(x, x.shape[1:]),
    "scaled_dot_product_attention": lambda f, x, i: f(x, x, x),
    "threshold": lambda f, x, i: f(x, 0.5, 1.0),
}


@pytest.mark.parametrize("name", F.__all__)
def test_symbolic_tensors_are_taken(name: str) -> None:
    class Calls(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, labels: Any) -> Any:
            ctx.save_for_backward(x, labels)
            return CALLS[name](getattr(F, name), x, labels) * 1.0

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, labels = ctx.saved_tensors
            return grad.sum() * x * CALLS[name](getattr(F, name), x, labels).sum(), None

    (case, *_) = trace(Calls, "4 6", "i64[4]").cases
    assert case.problem is None or isinstance(case.problem, UnsupportedOpError), case.problem


class Chosen(sg.Function):
    """The rows that labels choose, by one hot rows."""

    @staticmethod
    def forward(ctx: Any, x: Any, labels: Any) -> Any:
        ctx.save_for_backward(labels)
        ctx.classes = x.shape[1]
        return x[sg.arange(x.shape[0]), labels]

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (labels,) = ctx.saved_tensors
        return grad.unsqueeze(1) * F.one_hot(labels, ctx.classes), None


def test_one_hot_has_one_meaning() -> None:
    assert sg.verify(Chosen, "n m", "i64[n]").verdict == sg.PROVED
    labels = sg.tensor([2, 0])
    assert F.one_hot(labels).tolist() == F.one_hot(labels, 3).tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize(
    ("fails", "verdict"),
    [
        (lambda x: sg.unflatten(x, 0, 5), "UNDECIDED"),  # raised inside an operation
        (lambda x: sg.diag(x, x), "UNDECIDED"),
        (lambda x: x.no_such_name, "REFUTED"),  # asked for by the backward itself
        (lambda x: None + x, "REFUTED"),
    ],
)
def test_what_an_operation_fails_at_refutes_nothing(fails: Any, verdict: str) -> None:
    class Fails(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * 2 if not ctx.needs_input_grad[0] else fails(x)

    report = sg.verify(Fails, "n")
    assert str(report.verdict) == verdict
    assert "backward raised" in report.inputs["x"].reason
