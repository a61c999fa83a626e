"""Masks have the dtypes that torch takes; what it refuses is refused."""

from __future__ import annotations

import warnings

import pytest

import symgrad as sg

pytestmark = pytest.mark.peers
torch = pytest.importorskip("torch")

USES = {
    "where": lambda mask, x: torch.where(mask, x, x),
    "where, a method": lambda mask, x: x.where(mask, x),
    "masked_fill": lambda mask, x: x.masked_fill(mask, 0.0),
    "masked_fill_": lambda mask, x: x.clone().masked_fill_(mask, 0.0),
    "masked_select": lambda mask, x: x.masked_select(mask).sum() * x,
}


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("use", USES)
def test_a_mask_is_refused_where_torch_refuses_it(use: str, dtype: str) -> None:
    kind = getattr(torch, dtype)

    class Masked(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            mask = (x != x).to(kind)  # of no element
            return 2 * grad * x + 0 * USES[use](mask, x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of uint8
        try:
            USES[use](torch.zeros(3).to(kind), torch.ones(3))
            refused = False
        except RuntimeError:
            refused = True
    report = sg.verify(Masked, "n", suggest=False)
    failed = [one for one in report.inputs.values() if "expects a mask" in one.reason]
    assert bool(failed) is refused


def test_a_repair_has_masks_of_truth_values() -> None:
    class Causal(torch.autograd.Function):
        @staticmethod
        def forward(ctx, scores):
            n = scores.shape[0]
            mask = torch.ones(n, n, dtype=torch.bool).triu(1)
            p = torch.softmax(scores.masked_fill(mask, float("-inf")), -1)
            ctx.save_for_backward(p)
            return p.square()

        @staticmethod
        def backward(ctx, grad):
            (p,) = ctx.saved_tensors
            inner = 2 * grad * p
            return p * (inner - inner.sum(-1, keepdim=True))

    report = sg.verify(Causal, "n n")
    code = report.inputs["scores"].suggestion
    assert code is not None
    *before, last = code.splitlines()
    place = {"torch": torch, "grad": torch.rand(4, 4, dtype=torch.float64)}
    scores = torch.rand(4, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.ones(4, 4, dtype=torch.bool).triu(1)
    place["scores"] = scores.detach()
    place["p"] = torch.softmax(scores.masked_fill(mask, float("-inf")), -1).detach()
    exec("\n".join(before), place)
    outputs = torch.softmax(scores.masked_fill(mask, float("-inf")), -1).square()
    (true,) = torch.autograd.grad(outputs, scores, place["grad"])
    assert torch.allclose(eval(last, place), true)
