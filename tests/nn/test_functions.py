"""Every Function of ``symgrad.nn`` is proved, and so is the derivative of its backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.nn import functions

REDUCED = (
    "MSELoss", "L1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss", "KLDivLoss", "KLDivLogLoss",
    "NLLLoss", "CrossEntropyLoss", "SoftTargetCrossEntropyLoss",
)  # fmt: skip
ATTENTION = [
    (("b n k", "b m k", "b m d", mask, keep), {"scale": 0.125, "causal": True})
    for mask in (None, "b n m")
    for keep in (None, "b n m")
]
VARIANTS: list[tuple[str, tuple[Any, ...], dict[str, Any] | None]] = [
    ("LayerNorm", ("n m", "m", None), {"eps": 1e-3}),
    ("RMSNorm", ("n m", None), {"eps": 1e-3}),
    ("ELU", (), {"alpha": 1.5}),
    ("CELU", (), {"alpha": 1.5}),
    ("LeakyReLU", (), {"negative_slope": 0.3}),
    ("Hardtanh", (), {"min_val": 0.0, "max_val": 6.0}),
    ("Softplus", (), {"beta": 2.0, "threshold": 5.0}),
    ("Dropout", (), {"p": 0.1}),
    ("HuberLoss", (), {"delta": 0.5, "scale": 0.5}),
    ("CrossEntropyLoss", (), {"label_smoothing": 0.1}),
    ("CrossEntropyLoss", (), {"ignore_index": 0, "reduction": "sum"}),
    *(("ScaledDotProductAttention", specs, static) for specs, static in ATTENTION),
    *((name, (), {"reduction": how}) for name in REDUCED for how in ("none", "sum")),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", functions.__all__)
def test_proved_twice(name: str) -> None:
    report = sg.verify(getattr(functions, name), order=2)
    assert report.verdict == sg.PROVED, str(report)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "specs", "static"), VARIANTS)
def test_variants_are_proved_twice(name: str, specs: Any, static: Any) -> None:
    report = sg.verify(getattr(functions, name), *specs, static=static, order=2)
    assert report.verdict == sg.PROVED, str(report)


class SavesWhatItNormalized(sg.Function):
    """LayerNorm that saves an intermediate: right once, wrong twice."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any, eps: float = 1e-5) -> Any:
        centred = x - x.mean(-1, keepdim=True)
        inverse = sg.rsqrt((centred * centred).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(centred * inverse, inverse, weight)
        return centred * inverse * weight + bias

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        normalized, inverse, weight = ctx.saved_tensors
        grad = grad_y * weight
        mean = grad.mean(-1, keepdim=True)
        projection = (grad * normalized).mean(-1, keepdim=True)
        grad_x = (grad - mean - normalized * projection) * inverse
        return grad_x, (grad_y * normalized).sum(0), grad_y.sum(0), None


def test_order_two_sees_what_is_lost() -> None:
    specs = ("n m", "m", "m")
    assert sg.verify(SavesWhatItNormalized, *specs, order=1).verdict == sg.PROVED
    assert sg.verify(SavesWhatItNormalized, *specs, order=2).verdict == sg.REFUTED


# -- the same Functions, run

ELEMENTWISE = (
    "CELU", "ELU", "GELU", "GELUTanh", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
    "LogSigmoid", "Mish", "ReLU", "SELU", "SiLU", "Sigmoid", "Softplus", "Softsign", "Tanh",
)  # fmt: skip
POINTS = np.array([[-3.7, -1.3, -0.4, 0.3], [0.9, 1.7, 2.6, 4.1]])


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_numbers_agree(name: str) -> None:
    """``gradcheck`` and ``gradgradcheck``, which know nothing of proofs."""
    call = getattr(functions, name).apply
    point = sg.tensor(POINTS, requires_grad=True)
    assert sg.gradcheck(call, (point,))
    assert sg.gradgradcheck(call, (point,))


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_far_away_nothing_is_nan(name: str) -> None:
    """Values, gradients and second derivatives where exponentials would overflow."""
    x = sg.tensor([-1e4, -100.0, 100.0, 1e4], dtype=sg.float64, requires_grad=True)
    y = getattr(functions, name).apply(x)
    (grad,) = sg.autograd.grad(y, x, sg.ones_like(y), create_graph=True)
    assert np.isfinite(y.detach().numpy()).all()
    assert np.isfinite(grad.detach().numpy()).all()
    if grad.requires_grad:  # else it does not depend on x: the Function is piecewise linear
        (second,) = sg.autograd.grad(grad, x, sg.ones_like(y))
        assert np.isfinite(second.numpy()).all()
