"""What layers of torch take beside tensors is what their signatures say, where nobody states it."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.frontend.evidence import evidence_of, statistics  # noqa: E402
from symgrad.frontend.guests import taken  # noqa: E402
from symgrad.interop.torch.signatures import kinds_of  # noqa: E402
from symgrad.shapes import requested  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function
aten: Any = torch.ops.aten
EVERY = [True, True, True]


class Convolution(Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Any,
        w: Any,
        b: Any,
        st: Any,
        pa: Any,
        di: Any,
        turned: Any,
        behind: Any,
        gr: Any,
    ) -> Any:
        ctx.save_for_backward(x, w, b)
        ctx.given = st, pa, di, turned, behind, gr
        return aten.convolution.default(x, w, b, st, pa, di, turned, behind, gr)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w, b = ctx.saved_tensors
        found = aten.convolution_backward(g, x, w, [len(b)], *ctx.given, EVERY)
        return (*found, None, None, None, None, None, None)


class Pointwise(Function):
    factor: Any = 1
    """Of the gradient where places are left out."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, stride: Any) -> Any:
        kernel = w[:, :, None, None]
        ctx.save_for_backward(x, kernel)
        ctx.stride = stride
        return torch.convolution(x, kernel, None, stride, [0, 0], [1, 1], False, [0, 0], 1)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, kernel = ctx.saved_tensors
        by_x, by_w, _ = aten.convolution_backward(
            g, x, kernel, None, ctx.stride, [0, 0], [1, 1], False, [0, 0], 1, [True, True, False]
        )
        factor = 1 if ctx.stride[0] == 1 else Pointwise.factor
        return factor * by_x, by_w[:, :, 0, 0], None


class Normalized(Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Any,
        weight: Any,
        bias: Any,
        mean: Any,
        var: Any,
        training: Any,
        momentum: Any,
        eps: Any,
    ) -> Any:
        out, *saved = torch.native_batch_norm(
            x, weight, bias, mean, var, training, momentum, eps
        )  # fmt: skip
        ctx.save_for_backward(x, weight, mean, var, *saved)
        ctx.training, ctx.eps = training, eps
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        found = aten.native_batch_norm_backward(
            g, *ctx.saved_tensors, ctx.training, ctx.eps, EVERY
        )  # fmt: skip
        return (*found, None, None, None, None, None)


class ByLayer(Function):
    """By averages alone."""

    @staticmethod
    def forward(ctx: Any, x: Any, mean: Any, var: Any, w: Any, b: Any, eps: Any) -> Any:
        ctx.save_for_backward(x, mean, var, w)
        ctx.eps = eps
        return torch.nn.functional.batch_norm(x, mean, var, w, b, False, 0.1, eps)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, mean, var, w = ctx.saved_tensors
        scale = (var + ctx.eps).rsqrt()
        return g * w * scale, None, None, (g * (x - mean) * scale).sum(0), g.sum(0), None


class OfLearned(ByLayer):
    """Statistics that backward returns a gradient for are no averages."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, mean, var, w = ctx.saved_tensors
        scale = (var + ctx.eps).rsqrt()
        by_mean = -(g * w * scale).sum(0)
        return g * w * scale, by_mean, None, (g * (x - mean) * scale).sum(0), g.sum(0), None


class Columns(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, places: Any) -> Any:
        found = torch.nn.functional.unfold(x, kernel_size=1)
        return found, places.unfold(0, 2, 1)

    @staticmethod
    def backward(ctx: Any, g: Any, other: Any) -> Any:
        return g, None


def test_what_columns_are_made_of_has_four_axes() -> None:
    found = evidence_of(taken(Columns))
    assert found["x"] == 4
    assert found.get("places") != 4  # the method of this name takes any tensor


def test_lists_of_numbers_and_flags_are_evidence() -> None:
    found = evidence_of(taken(Convolution))
    assert {found[one] for one in ("st", "di")} == {"windows"}
    assert {found[one] for one in ("pa", "behind")} == {"added windows"}
    assert (found["gr"], found["turned"]) == ("window", "rare switch")
    assert (found["x"], found["w"], found["b"]) == (4, 4, 1)
    assert kinds_of("conv2d")["stride"] == "window"  # where a number is taken, too
    assert kinds_of("conv2d")["padding"] == "added window"


def test_settings_are_first_what_torch_has_for_defaults() -> None:
    guess = requested(taken(Convolution)).guess
    assert guess is not None
    first = "st = (1, 1), pa = (0, 0), di = (1, 1), turned = False, behind = (0, 0), gr = 1"
    assert guess.text.endswith(first)
    others = " ".join(str(one.guess and one.guess.text) for one in guess.others)
    for value in ("st = (2, 1)", "pa = (1, 0)", "di = (2, 1)", "turned = True", "gr = 2"):
        assert value in others
    for value in ("(1,)", "(2,)", "(1, 1, 1)", "gr = 0", "gr = 3"):  # another text for the same
        assert value not in others


def test_a_list_is_as_long_as_the_weight_has_windows() -> None:
    class Along(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any, b: Any, st: Any, pa: Any) -> Any:
            _n, _c, _length = x.shape
            ctx.save_for_backward(x, w, b)
            ctx.given = st, pa, [1], False, [0], 1
            return aten.convolution.default(x, w, b, st, pa, [1], False, [0], 1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return (*Convolution.backward(ctx, g)[:3], None, None)

    guess = requested(taken(Along)).guess
    assert guess is not None
    assert guess.text.startswith("x[n, m, k]")
    assert "st = (2, 1)" not in " ".join(str(one.guess and one.guess.text) for one in guess.others)


def test_a_stride_that_nobody_stated_is_judged_at_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = sg.verify(Pointwise, suggest=False)
    assert right.verdict is sg.PROVED
    assert "stride = (1, 1) or (2, 1)" in str(right)
    monkeypatch.setattr(Pointwise, "factor", 2)
    assert sg.verify(Pointwise, suggest=False).verdict is sg.REFUTED


def test_running_statistics_get_no_gradient() -> None:
    assert statistics(taken(Normalized)) == statistics(taken(ByLayer)) == {"mean", "var"}
    assert statistics(taken(OfLearned)) == {"var"}
    report = sg.verify(ByLayer, suggest=False)
    assert report.verdict is sg.PROVED
    assert "if mean is constant: no gradient by it is judged" in str(report)
    assert "mean[m] (without a gradient)" in " ".join(report.notes)
