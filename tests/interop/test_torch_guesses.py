"""What the arguments of a class are, found by what its code does with them."""

from __future__ import annotations

import linecache
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers

F = torch.nn.functional


def judged(cls: Any) -> sg.Report:
    return sg.verify(cls, suggest=False, timeout=None)


class Shift(torch.autograd.Function):
    """A shape of five axes is taken apart; ``fold`` bounds slices."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any, fold: Any) -> Any:
        n, t, c, h, w = x.size()
        ctx.fold = fold
        out = x.new_zeros(n, t, c, h, w)
        out[:, :-1, :fold] = x[:, 1:, :fold]
        out[:, :, fold:] = x[:, :, fold:]
        return out

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        out = torch.zeros_like(g)
        out[:, 1:, : ctx.fold] = g[:, :-1, : ctx.fold]
        out[:, :, ctx.fold :] = g[:, :, ctx.fold :]
        return cls.scale * out, None


class Cell(torch.autograd.Function):
    """Sizes meet in ``linear``."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any, z: Any, weights: Any) -> Any:
        ctx.save_for_backward(weights)
        return F.linear(x + z, weights)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (weights,) = ctx.saved_tensors
        return g @ weights, cls.scale * g @ weights, None


class Rows(torch.autograd.Function):
    """All axes but the last become one; that has the size of the book's."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any, book: Any) -> Any:
        ctx.save_for_backward(book)
        return x.view(-1, book.size(1)) @ book.t()

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (book,) = ctx.saved_tensors
        return cls.scale * (g @ book), None


class Parts(torch.autograd.Function):
    """What is left behind the third element meets three: one element is stretched."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        v, w = x[..., :3], x[..., 3:]
        ctx.save_for_backward(v, w)
        return v * w

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        v, w = ctx.saved_tensors
        return torch.cat([cls.scale * g * w, (g * v).sum(-1, keepdim=True)], -1)


def _scaled(x: Any, half_mode: bool) -> Any:
    return x * 0.5 if half_mode is True else x


class Switch(torch.autograd.Function):
    """A flag is handed on to a function, which asks for it."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any, half_mode: Any) -> Any:
        ctx.half_mode = half_mode
        return _scaled(x, half_mode)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return cls.scale * _scaled(g, ctx.half_mode), None


@pytest.mark.slow
@pytest.mark.parametrize("cls", [Shift, Parts, Switch])
def test_arguments_are_found(cls: Any) -> None:
    assert str(judged(cls).verdict) == "PROVED"
    assert str(judged(type("Wrong", (cls,), {"scale": 2})).verdict) == "REFUTED"


@pytest.mark.parametrize("cls", [Cell, Rows])
def test_sizes_that_meet_are_one(cls: Any) -> None:
    wanted = {one for one in ("x", "z") if one in cls.forward.__annotations__}
    for scale, verdict in ((1, "PROVED"), (2, "REFUTED")):
        report = judged(type("Scaled", (cls,), {"scale": scale}))
        found = [str(report.inputs[name].verdict) for name in sorted(wanted)]
        assert found[-1] == verdict


CACHING = """
import functools

def shape_of(sizes):
    return (sizes[0] * sizes[1],)

kept = functools.lru_cache(16)(shape_of)

def flat(x):
    try:
        shape = kept(tuple(x.shape))
    except TypeError:
        shape = shape_of(tuple(x.shape))
    return x.reshape(shape)
"""


def _library(name: str) -> Any:
    module = ModuleType(name)
    path = f"<{name}>"
    linecache.cache[path] = (len(CACHING), None, CACHING.splitlines(keepends=True), path)
    exec(compile(CACHING, path, "exec"), module.__dict__)
    return module


@pytest.mark.parametrize(
    ("name", "verdict"), [("einops.some", "PROVED"), ("einopsy", "UNDECIDED")]
)
def test_a_library_may_keep_what_it_finds_for_sizes(name: str, verdict: str) -> None:
    library = _library(name)

    class Flat(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return library.flat(x) ** 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * g.view(x.shape) * x

    assert str(sg.verify(Flat, "n m", suggest=False, timeout=None).verdict) == verdict


class Replaced(torch.autograd.Function):
    """Forward is one tensor, backward the gradient of another."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        return y * y

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return cls.scale * g, None


class Kept(Replaced):
    """Forward uses the tensor that gets a gradient: a mistake."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        return y * x


def test_the_gradient_of_a_tensor_that_another_one_stands_for_is_named() -> None:
    report = judged(Replaced)
    assert str(report.verdict) == "SURROGATE?"
    assert report.inputs["x"].surrogate == "is the derivative of `x` in place of forward"
    assert str(judged(Kept).verdict) == "REFUTED"
