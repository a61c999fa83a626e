"""Axes of size 0: what works in torch gives the same here, and what raises there raises here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.frontend.trace import trace
from symgrad.kernels import plan
from symgrad.numpy_op import NumpyOp

pytestmark = pytest.mark.peers
torch: Any = pytest.importorskip("torch")

SHAPES = ((0, 3), (3, 0), (0, 0), (2, 3))
FUNCTIONAL = {torch: torch.nn.functional, sg: sg.nn.functional}


def _first(found: Any) -> Any:
    return found[0] if isinstance(found, tuple) else found


def _written(place: Callable[[Any, Any], Any], value: float) -> Callable[[Any, Any], Any]:
    def call(lib: Any, x: Any) -> Any:
        y = x * 1.0
        y[place(lib, x)] = value
        return y

    return call


def _along(name: str, axis: int) -> Callable[[Any, Any], Any]:
    return lambda lib, x: _first(getattr(lib, name)(x, axis))


def _of_all(name: str) -> Callable[[Any, Any], Any]:
    return lambda lib, x: getattr(lib, name)(x)


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    **{
        f"{name} {axis}": _along(name, axis)
        for name in (
            "amax", "amin", "argmax", "argmin", "max", "min", "sum", "prod", "mean", "logsumexp",
            "any", "all", "softmax", "log_softmax", "cumsum", "cumprod", "sort", "var", "std",
            "norm", "logcumsumexp", "chunk", "split", "unsqueeze",
        )
        for axis in ((2, 1) if name in ("norm", "chunk", "split") else (0, 1))
    },
    **{
        f"{name} of all": _of_all(name)
        for name in (
            "amax", "amin", "argmax", "argmin", "max", "min", "sum", "prod", "mean", "any", "all",
            "var", "std", "norm", "count_nonzero", "tril", "trace", "exp", "diff",
        )
    },
    "roll": lambda lib, x: lib.roll(x, 1, 1) + lib.roll(x, 2),
    "flip": lambda lib, x: lib.flip(x, (0, 1)),
    "norm inf": lambda lib, x: lib.norm(x, float("inf"), 1),
    "diff 0": lambda lib, x: lib.diff(x, dim=0),
    "product": lambda lib, x: x @ x.T,
    "stack": lambda lib, x: lib.stack([x, x]),
    "cat": lambda lib, x: lib.cat([x, x], 1),
    "repeat": lambda lib, x: x.repeat(2, 2),
    "expand": lambda lib, x: x.unsqueeze(0).expand(3, *x.shape),
    "cdist": lambda lib, x: lib.cdist(x, x),
    "unfold": lambda lib, x: x.unfold(0, 1, 1),
    "pieces": lambda lib, x: x[1:1].sum() + x[:, :0].sum() + x[x > 5].sum(),
    "index_add": lambda lib, x: lib.zeros((4, x.shape[1])).index_add(
        0, lib.zeros(x.shape[0], dtype=lib.int64), x
    ),
    "layer_norm": lambda lib, x: FUNCTIONAL[lib].layer_norm(x, (x.shape[1],)),
    "linear": lambda lib, x: FUNCTIONAL[lib].linear(x, lib.ones(2, x.shape[1])),
    "cross_entropy": lambda lib, x: FUNCTIONAL[lib].cross_entropy(
        x, lib.zeros(x.shape[0], dtype=lib.int64)
    ),
    "nn.softmax": lambda lib, x: FUNCTIONAL[lib].softmax(x, -1),
    "written slice": _written(lambda lib, x: slice(1, 1), 3.0),
    "written columns": _written(lambda lib, x: (slice(None), slice(1, 1)), 3.0),
    "written mask": _written(lambda lib, x: x > 100, 3.0),
    "written places": _written(lambda lib, x: lib.zeros(0, dtype=lib.int64), 3.0),
}  # fmt: skip


def _run(lib: Any, call: Callable[[Any, Any], Any], shape: tuple[int, ...]) -> list[Any]:
    """The value and the gradient; an empty list where it raises."""
    x = lib.ones(*shape).requires_grad_()
    try:
        y = call(lib, x)
    except (RuntimeError, IndexError):
        return []
    if not y.requires_grad:
        return [y.numpy(), None]
    y.sum().backward()
    return [y.detach().numpy(), None if x.grad is None else x.grad.numpy()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_as_in_torch(name: str) -> None:
    for shape in SHAPES:
        found, wanted = (_run(lib, CALLS[name], shape) for lib in (sg, torch))
        assert len(found) == len(wanted), shape
        for one, other in zip(found, wanted, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
                assert one.shape == other.shape


CHOOSING = [
    f"{name} {which}" for name in ("amax", "amin", "argmax", "argmin", "max", "min")
    for which in ("0", "1", "of all")
]  # fmt: skip


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", CHOOSING)
def test_an_op_has_no_kernel_for_a_choice_of_nothing(name: str, first: int) -> None:
    """Not even of what is left of an axis."""

    def call(lib: Any, x: Any) -> Any:
        return CALLS[name](lib, x[first:])

    class Chosen(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return call(sg, x)

    op = NumpyOp(plan(trace(Chosen, "n m")))
    for rows, columns in SHAPES:
        shape = (rows + first, columns)
        x = np.ones(shape, np.float32)
        wanted = _run(torch, call, shape)
        if wanted:
            np.testing.assert_allclose(op(x), wanted[0])
        else:
            with pytest.raises(sg.SymgradError, match="no kernel serves"):
                op(x)
