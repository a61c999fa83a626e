"""What torch refuses whatever the values are is not PROVED: its own argument checks are asked."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function

CALLS: dict[str, Any] = {
    "repeat": lambda g: g.repeat(2),
    "repeat, right": lambda g: g.repeat(2, 1),
    "einsum": lambda g: torch.einsum("i...j...", g),
    "einsum, right": lambda g: torch.einsum("i...->...", g),
    "meshgrid": lambda g: torch.meshgrid(g, g, indexing="ij")[0],
    "meshgrid, right": lambda g: torch.meshgrid(g[0], g[:, 0], indexing="ij")[0],
    "logsumexp": lambda g: g.logsumexp(()),
    "logsumexp, right": lambda g: g.logsumexp((0,)),
    "log_softmax": lambda g: g.log_softmax(None),
    "log_softmax, right": lambda g: g.log_softmax(-1),
    "cdist": lambda g: torch.cdist(g, g, p=-1),
    "cdist, right": lambda g: torch.cdist(g, g, p=2),
    "masked_fill": lambda g: g.masked_fill(g > 0, g),
    "masked_fill, right": lambda g: g.masked_fill(g > 0, 0.0),
    "softmax": lambda g: F.softmax(g, 2),
    "a number for a flag": lambda g: g.sum(0, keepdim="yes"),
    "view, right": lambda g: g.view(-1, g.shape[1]),
    "masked, right": lambda g: torch.where(g > 0, g, 0),
    "halves, right": lambda g: g[: (g.shape[0] + 1) // 2],
}


@pytest.mark.parametrize("name", CALLS)
def test_torch_decides_what_is_refused(name: str) -> None:
    class Doubled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g + 0 * CALLS[name](g).sum()

    x = torch.rand(2, 3, requires_grad=True)
    try:
        Doubled.apply(x).backward(torch.rand(2, 3))
        runs = True
    except (RuntimeError, TypeError, IndexError):
        runs = False
    assert runs == name.endswith("right")
    try:
        proved = sg.verify(Doubled, "n m").verdict == sg.PROVED
    except sg.SymgradError:
        proved = False
    assert proved == runs
