"""``sg.vmap`` gives what ``torch.func.vmap`` gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symgrad as sg

pytestmark = pytest.mark.peers
torch: Any = pytest.importorskip("torch")


def _written(x: Any) -> Any:
    found = x.clone()
    found[0] = 1.0
    found[1:].mul_(2.0)
    found += x
    return found


# Of the module and an element of shape (3, 4).
BODIES: dict[str, Callable[[Any, Any], Any]] = {
    "arithmetic": lambda m, x: 2.0 * x - x / (1.0 + x * x),
    "elementwise": lambda m, x: m.tanh(x) * m.sigmoid(x) + m.where(x > 0, x, 0.1 * x),
    "reduced": lambda m, x: x.mean(0) + x.amax(0) + x.logsumexp(0) + x.prod(0),
    "softmax": lambda m, x: m.softmax(x, -1) * m.log_softmax(x, 0),
    "matmul": lambda m, x: (x @ x.mT)[:, :2],
    "moved": lambda m, x: x.t().reshape(2, 6).flip(0).unsqueeze(0),
    "sliced": lambda m, x: x[1:, ::2].sum() * x[..., -1],
    "sorted": lambda m, x: m.sort(x, 1)[0] + x.cumsum(0),
    "written": lambda m, x: _written(x),
}


def same(found: Any, wanted: Any) -> None:
    assert tuple(found.shape) == tuple(wanted.shape)
    np.testing.assert_allclose(
        found.detach().numpy(), wanted.detach().numpy(), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("name", sorted(BODIES))
@pytest.mark.parametrize("axes", [(0, 0), (1, -1)])
def test_values_and_gradients(name: str, axes: tuple[int, int]) -> None:
    array = np.random.default_rng(0).standard_normal((5, 3, 4))
    array = np.ascontiguousarray(np.moveaxis(array, 0, axes[0]))
    ours, theirs = sg.from_numpy(array), torch.from_numpy(array.copy())
    body = BODIES[name]
    in_dim, out_dim = axes

    def both(call: Callable[[Any], Any]) -> tuple[Any, Any]:
        return (
            sg.vmap(call(sg), in_dims=in_dim, out_dims=out_dim)(ours),
            torch.func.vmap(call(torch), in_dims=in_dim, out_dims=out_dim)(theirs),
        )

    same(*both(lambda m: lambda x: body(m, x)))

    def gradient(m: Any) -> Any:
        grad = sg.grad if m is sg else torch.func.grad
        return grad(lambda x: (body(m, x) ** 2).sum())

    same(*both(gradient))
