"""A static ``jvp`` is what ``sg.jvp`` computes with, and nothing else does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.errors import SymgradError

FACTOR = 3.0
"""The jvp below is wrong by this factor, so that its use shows."""


class Marked(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, scale: float = 1.0) -> Any:
        y = sg.tanh(x) * w
        ctx.save_for_backward(x, w)
        ctx.save_for_forward(x, w, y)
        ctx.scale = scale
        return y, x.sum()

    @staticmethod
    def backward(ctx: Any, grad: Any, grad_sum: Any) -> Any:
        x, w = ctx.saved_tensors
        t = sg.tanh(x)
        return grad * w * (1 - t * t) + grad_sum, grad * t, None

    @staticmethod
    def jvp(ctx: Any, x_t: Any, w_t: Any, *rest: Any) -> Any:
        assert all(one is None for one in rest)
        assert ctx.scale == 1.0
        x, w, y = ctx.saved_tensors
        t = sg.tanh(x)
        assert tuple(y.shape) == tuple(x.shape)
        return FACTOR * (x_t * w * (1 - t * t) + t * w_t), FACTOR * x_t.sum()


def tensor(*shape: int, seed: int = 0) -> sg.Tensor:
    return sg.from_numpy(np.random.default_rng(seed).standard_normal(shape))


X, W, X_T, W_T = (tensor(4, seed=seed) for seed in range(4))


def function(x: Any, w: Any) -> Any:
    y, total = Marked.apply(x, w)
    return sg.sin(y) * 2.0 + total


def expected(x: Any, w: Any, x_t: Any, w_t: Any) -> Any:
    x, w, x_t, w_t = (np.asarray(one) for one in (x, w, x_t, w_t))
    t = np.tanh(x)
    along = FACTOR * (x_t * w * (1 - t * t) + t * w_t)
    return np.cos(t * w) * 2.0 * along + FACTOR * x_t.sum()


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-9)


def test_jvp_is_honoured() -> None:
    value, along = sg.jvp(function, (X, W), (X_T, W_T))
    close(along, expected(X, W, X_T, W_T))
    close(value, function(X, W).numpy())


def test_keyword_style_and_setup_context() -> None:
    class Separate(sg.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx: Any, x_t: Any) -> Any:
            return 7.0 * ctx.saved_tensors[0] * x_t

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise AssertionError("not in forward mode")

    close(sg.jvp(Separate.apply, (X,), (X_T,))[1], 7 * X.numpy() * X_T.numpy())


def test_reverse_derivatives_are_backwards() -> None:
    t = np.tanh(X.numpy())
    close(sg.grad(lambda x: Marked.apply(x, W)[0].sum())(X), W.numpy() * (1 - t * t))
    rows = sg.jacobian(lambda x: Marked.apply(x, W)[0], X, strategy="reverse-mode")
    close(rows, np.diag(W.numpy() * (1 - t * t)))
    columns = sg.jacobian(lambda x: Marked.apply(x, W)[0], X, strategy="forward-mode")
    close(columns, FACTOR * np.diag(W.numpy() * (1 - t * t)))


def test_forward_over_reverse_differentiates_the_backward() -> None:
    gradient = sg.grad(lambda x: Marked.apply(x, W)[0].sum())
    t = np.tanh(X.numpy())
    wanted = -2 * t * (1 - t * t) * W.numpy() * X_T.numpy()
    close(sg.jvp(gradient, (X,), (X_T,))[1], wanted)


def test_reverse_over_forward_differentiates_the_jvp() -> None:
    found = sg.grad(lambda x: sg.jvp(lambda y: Marked.apply(y, W)[0], (x,), (X_T,))[1].sum())(X)
    t = np.tanh(X.numpy())
    close(found, -2 * FACTOR * t * (1 - t * t) * W.numpy() * X_T.numpy())


def test_under_vmap_and_jit() -> None:
    x, x_t = tensor(3, 4), tensor(3, 4, seed=5)

    def along(one: Any, direction: Any) -> Any:
        return sg.jvp(lambda y: function(y, W), (one,), (direction,))[1]

    zero = np.zeros(4)
    close(sg.vmap(along)(x, x_t), [expected(a, W, b, zero) for a, b in zip(x, x_t, strict=True)])
    close(sg.jit(along)(X, X_T), expected(X, W, X_T, zero))


def test_tangents_of_wrong_shapes_and_numbers() -> None:
    class Wrong(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

        @staticmethod
        def jvp(ctx: Any, x_t: Any) -> Any:
            return x_t.sum()

    class Many(Wrong):
        @staticmethod
        def jvp(ctx: Any, x_t: Any) -> Any:
            return x_t, x_t

    with pytest.raises(SymgradError, match=r"a tangent of shape \[\] for an output of shape \[4\]"):
        sg.jvp(Wrong.apply, (X,), (X_T,))
    with pytest.raises(SymgradError, match="2 tangents for 1 output"):
        sg.jvp(Many.apply, (X,), (X_T,))


def test_none_is_no_tangent() -> None:
    class Constant(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

        @staticmethod
        def jvp(ctx: Any, x_t: Any) -> Any:
            return None

    close(sg.jvp(Constant.apply, (X,), (X_T,))[1], np.zeros(4))


def test_what_is_saved_for_whom() -> None:
    seen: list[Any] = []

    class Both(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_forward(x)
            ctx.save_for_backward(x, x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append(len(ctx.saved_tensors))
            return 2.0 * grad * ctx.saved_tensors[0]

    x = tensor(3).requires_grad_()
    Both.apply(x).sum().backward()
    assert seen == [2]


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_as_torch() -> None:
    torch: Any = pytest.importorskip("torch")

    class Theirs(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, w: Any) -> Any:
            return torch.tanh(x) * w, x.sum()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_forward(*inputs, output[0])

        @staticmethod
        def jvp(ctx: Any, x_t: Any, w_t: Any) -> Any:
            x, w, _ = ctx.saved_tensors
            t = torch.tanh(x)
            return FACTOR * (x_t * w * (1 - t * t) + t * w_t), FACTOR * x_t.sum()

    def theirs(x: Any, w: Any) -> Any:
        y, total = Theirs.apply(x, w)
        return torch.sin(y) * 2.0 + total

    given = [torch.from_numpy(one.numpy().copy()) for one in (X, W, X_T, W_T)]
    wanted = torch.func.jvp(theirs, tuple(given[:2]), tuple(given[2:]))[1]
    close(sg.jvp(function, (X, W), (X_T, W_T))[1], wanted.numpy())
