"""``as_strided``: the views that are known, with torch as the oracle; the others are refused."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import UnsupportedOpError  # noqa: E402

pytestmark = pytest.mark.peers

FUNCTION: Any = torch.autograd.Function

VIEWS: dict[str, tuple[str, Any, Any]] = {
    "transposed": ("n m", lambda x: x.as_strided(x.shape[::-1], (1, x.shape[1])), lambda x: x.t()),
    "joined": ("n m", lambda x: torch.as_strided(x, (x.numel(),), (1,)), lambda x: x.reshape(-1)),
    "exchanged": (
        "n m k",
        lambda x: x.as_strided(
            (x.shape[1], 1, x.shape[0], x.shape[2]),
            (x.shape[2], 7, x.shape[1] * x.shape[2], 1),
        ),
        lambda x: x.permute(1, 0, 2).unsqueeze(1),
    ),
    "repeated": (
        "n", lambda x: x.as_strided((3, x.shape[0]), (0, 1)), lambda x: x.expand(3, x.shape[0]),
    ),
    "windows": (
        "n+2", lambda x: x.as_strided((x.shape[0] - 2, 3), (1, 1)), lambda x: x.unfold(0, 3, 1),
    ),
    "diagonal": (
        "n n", lambda x: x.as_strided((x.shape[0],), (x.shape[0] + 1,)), lambda x: x.diagonal(),
    ),
}  # fmt: skip


def squared(view: Any, meant: Any, factor: float = 2.0) -> Any:
    """The squares of a view; backward writes into the same view of zeros, by another name."""

    class Squared(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return view(x) ** 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                inner = x.detach().requires_grad_()
                found = meant(inner)
            (back,) = torch.autograd.grad(found, inner, g * meant(x) * factor)
            return back

    return Squared


@pytest.mark.slow
@pytest.mark.parametrize("name", VIEWS)
def test_a_known_view(name: str) -> None:
    spec, view, meant = VIEWS[name]
    size = 4 if name in ("windows", "repeated") else 3
    x = torch.randn([size] * len(spec.split()), dtype=torch.float64)
    assert torch.equal(view(x), meant(x))
    report = sg.verify(squared(view, meant), spec)
    assert report.ok, str(report)
    assert "contiguous" in str(report.to_dict())
    assert str(sg.verify(squared(view, meant, 3.0), spec).verdict) == "REFUTED"


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.as_strided((2, 2), (1, 3)),
        lambda x: x.as_strided((x.shape[0],), (1,), 1),
        lambda x: x.t().as_strided((2,), (1,)),
    ],
)
def test_another_view_is_refused(view: Any) -> None:
    with pytest.raises(UnsupportedOpError, match="is no view that symgrad knows"):
        sg.verify(squared(view, view), "n m")
