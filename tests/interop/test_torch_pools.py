"""Windows at the end, windows that fill an axis, numbers with digits: judged as in torch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import SymgradError  # noqa: E402

pytestmark = [pytest.mark.peers, pytest.mark.slow]
FUNCTION: Any = torch.autograd.Function
F: Any = torch.nn.functional


class ToOne(FUNCTION):
    """``wrong``: all places share the gradient."""

    wrong = False

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y, place = F.adaptive_max_pool1d(x, 1, return_indices=True)
        ctx.save_for_backward(x, place)
        return y

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, place = ctx.saved_tensors
        if cls.wrong:
            return g.expand_as(x) / x.shape[-1]
        return torch.zeros_like(x).scatter(2, place, g)


class Slope(FUNCTION):
    wrong = False

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return F.rrelu(x, 0.1, 0.3, training=False)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, g, (0.3 if cls.wrong else 0.2) * g)


class LogOfMore(FUNCTION):
    wrong = False

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return torch.special.xlog1py(x, y)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * torch.log1p(y), g * x / (y if cls.wrong else 1 + y)


class Digits(FUNCTION):
    wrong = False

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * torch.round(x, decimals=2)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * torch.round(x, decimals=1 if cls.wrong else 2)


JUDGED = [(ToOne, ["n m k"]), (Slope, ["n"]), (LogOfMore, ["n", "n"]), (Digits, ["n"])]


@pytest.mark.parametrize(("cls", "shapes"), JUDGED)
def test_the_right_backward_is_proved_and_the_wrong_one_refuted(cls: Any, shapes: Any) -> None:
    assert sg.verify(cls, *shapes, timeout=None).verdict is sg.PROVED
    wrong = type(cls.__name__, (cls,), {"wrong": True})
    report = sg.verify(wrong, *shapes, timeout=None, suggest=False)
    assert report.verdict is sg.REFUTED
    assert "confirmed in torch" in str(report)


@pytest.mark.parametrize("decimals", [-2, -1, 0, 1, 3])
def test_rounding_to_digits(decimals: int) -> None:
    values = np.linspace(-321.5, 123.456, 101)
    own = sg.round(sg.tensor(values), decimals=decimals).numpy()
    np.testing.assert_allclose(own, torch.round(torch.tensor(values), decimals=decimals).numpy())


@pytest.mark.parametrize("size", range(2, 9))
@pytest.mark.parametrize("window", [(2, 2, 0, 1), (3, 2, 1, 1), (3, 2, 0, 1), (2, 1, 1, 2)])
def test_a_last_window_may_end_outside(size: int, window: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).permutation(np.arange(2.0 * size)).reshape(1, 2, size)
    given = {"ceil_mode": True, "return_indices": True}
    theirs = F.max_pool1d(torch.tensor(values), *window, **given)
    ours = sg.max_pool1d(sg.tensor(values), *window, **given)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_a_window_that_may_begin_outside_is_refused() -> None:
    with pytest.raises(SymgradError, match="ceil_mode"):
        sg.max_pool1d(sg.ones(1, 1, 5), 2, 3, ceil_mode=True)


@pytest.mark.parametrize(("shape", "wanted"), [((6, 4), (3, 2)), ((6, 4), 2), ((3, 4), (None, 1))])
def test_as_many_windows_as_are_asked_for(shape: tuple[int, int], wanted: Any) -> None:
    values = (
        np.random.default_rng(0)
        .permutation(np.arange(2.0 * math.prod(shape)))
        .reshape(1, 2, *shape)
    )
    ours = sg.adaptive_max_pool2d(sg.tensor(values), wanted, return_indices=True)
    theirs = F.adaptive_max_pool2d(torch.tensor(values), wanted, return_indices=True)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
