"""Images at other places, edges that are repeated, places among boundaries: judged as in torch."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import SymgradError  # noqa: E402

pytestmark = [pytest.mark.peers, pytest.mark.slow]
FUNCTION: Any = torch.autograd.Function
F: Any = torch.nn.functional


class Sinc(FUNCTION):
    wrong = False

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return torch.sinc(x)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        safe = torch.where(x == 0, torch.ones_like(x), x)
        waves = torch.cos(math.pi * x) + (1 if cls.wrong else -1) * torch.sinc(x)
        return g * torch.where(x == 0, torch.zeros_like(x), waves / safe)


class Circular(FUNCTION):
    wrong = False

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return F.pad(x, (1, 1), mode="circular")

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        first, last = (0, -1) if cls.wrong else (-1, 0)
        found = g[..., 1:-1].clone()
        found[..., 0] += g[..., first]
        found[..., -1] += g[..., last]
        return found


class Replicate(FUNCTION):
    wrong = False

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return F.pad(x, (2, 1), mode="replicate")

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        found = g[..., 2:-1].clone()
        found[..., 0] += g[..., 0] + (0 if cls.wrong else g[..., 1])
        found[..., -1] += g[..., -1]
        return found


class Bucket(FUNCTION):
    wrong = False

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, b: Any) -> Any:
        places = torch.bucketize(x, b)
        ctx.save_for_backward(x, places, w)
        return w[places] * x

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, places, w = ctx.saved_tensors
        by_w = torch.zeros_like(w).index_add_(0, places, g if cls.wrong else g * x)
        return g * w[places], by_w, None


class Grid(FUNCTION):
    """``wrong``: backward has the other convention for corners."""

    wrong = False

    @staticmethod
    def forward(ctx: Any, image: Any, grid: Any) -> Any:
        ctx.save_for_backward(image, grid)
        return F.grid_sample(image, grid, align_corners=True)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        with torch.enable_grad():
            image, grid = (one.detach().requires_grad_() for one in ctx.saved_tensors)
            found = F.grid_sample(image, grid, align_corners=not cls.wrong)
            return torch.autograd.grad(found, (image, grid), g)


class GridByName(FUNCTION):
    """``wrong``: the backward operation is given the other convention for corners."""

    wrong = False

    @staticmethod
    def forward(ctx: Any, image: Any, grid: Any) -> Any:
        ctx.save_for_backward(image, grid)
        return F.grid_sample(image, grid, align_corners=False)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        op = torch._C._jit_get_operation("aten::grid_sampler_2d_backward")
        op = op[0] if isinstance(op, tuple) else op
        return op(g, *ctx.saved_tensors, 0, 0, cls.wrong, ctx.needs_input_grad)


class Larger(FUNCTION):
    """``wrong``: backward is that of the nearest elements."""

    wrong = False

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return F.interpolate(x, scale_factor=2, mode="linear", align_corners=False)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        if cls.wrong:
            return F.avg_pool1d(g, 2) * 2
        with torch.enable_grad():
            x = ctx.saved_tensors[0].detach().requires_grad_()
            found = F.interpolate(x, scale_factor=2, mode="linear", align_corners=False)
            return torch.autograd.grad(found, x, g)[0]


class Nuclear(FUNCTION):
    wrong = False

    @staticmethod
    def forward(ctx: Any, a: Any) -> Any:
        left, _, right = torch.linalg.svd(a, full_matrices=False)
        ctx.save_for_backward(left, right)
        return torch.linalg.matrix_norm(a, "nuc")

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        left, right = ctx.saved_tensors
        return (2 if cls.wrong else 1) * g * (left @ right)


JUDGED = [Sinc, Circular, Replicate, Bucket, Grid, GridByName, Larger, Nuclear]


@pytest.mark.parametrize("cls", JUDGED)
def test_the_right_backward_is_proved_and_the_wrong_one_refuted(cls: Any) -> None:
    assert sg.verify(cls, timeout=None).verdict is sg.PROVED
    wrong = type(cls.__name__, (cls,), {"wrong": True})
    report = sg.verify(wrong, timeout=None, suggest=False)
    assert report.verdict is sg.REFUTED
    assert "confirmed in torch" in str(report)


def test_what_is_assumed_of_boundaries_is_printed() -> None:
    assert "in ascending order" in str(sg.verify(Bucket, timeout=None))


class Hat(FUNCTION):
    """The lesser distance to an end of the interval that a value lies in; no gradient of ends."""

    @staticmethod
    def forward(ctx: Any, x: Any, ends: Any) -> Any:
        i = torch.searchsorted(ends, x).clamp(1, ends.shape[0] - 1)
        ctx.save_for_backward(x, ends, i)
        return torch.minimum(x - ends[i - 1], ends[i] - x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return torch.zeros_like(g), None


def test_a_counterexample_has_its_boundaries_in_order() -> None:
    report = sg.verify(Hat, "n", "k", timeout=None, suggest=False)
    for name in ("x", "ends"):
        found = report.inputs[name].counterexample
        assert found is not None, str(report)
        ends = found.inputs["ends"]
        assert ends == sorted(ends)


class Descending(FUNCTION):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * torch.bucketize(x, torch.tensor([2.0, 1.0]))

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


def test_boundaries_that_descend_are_refused() -> None:
    with pytest.raises(SymgradError, match="not in ascending order"):
        sg.verify(Descending, "n")
