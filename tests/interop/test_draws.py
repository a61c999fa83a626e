"""Random numbers in torch's Functions are unknowns: what is proved holds for all draws."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

import symgrad as sg  # noqa: E402
from symgrad.errors import SymgradError, UnsupportedOpError  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function


class Drop(Function):
    @staticmethod
    def forward(ctx, x, p: float = 0.3):
        mask = torch.bernoulli(torch.full_like(x, 1 - p)) / (1 - p)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask, None


class DropAgain(Drop):
    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * torch.bernoulli(torch.full_like(mask, 0.5)), None


class Noise(Function):
    @staticmethod
    def forward(ctx, x, std):
        noise = torch.randn_like(x)
        ctx.save_for_backward(noise)
        return x + std * noise

    @staticmethod
    def backward(ctx, g):
        (noise,) = ctx.saved_tensors
        return g, (g * noise).sum()


class NoiseWrong(Noise):
    @staticmethod
    def backward(ctx, g):
        (noise,) = ctx.saved_tensors
        return g, (g * torch.randn_like(noise)).sum()


class StochasticRound(Function):
    @staticmethod
    def forward(ctx, x):
        return torch.floor(x + torch.rand_like(x))

    @staticmethod
    def backward(ctx, g):
        return g


class Uniform(Function):
    @staticmethod
    def forward(ctx, x):
        u = torch.empty_like(x).uniform_(-1, 1)
        ctx.save_for_backward(x, u)
        return x * x * u

    @staticmethod
    def backward(ctx, g):
        x, u = ctx.saved_tensors
        return 2 * g * x * u


class Dropout(Function):
    @staticmethod
    def forward(ctx, x):
        y = F.dropout(x, 0.5, training=True)
        ctx.mask = y != 0
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.mask * 2


class Seeded(Function):
    @staticmethod
    def forward(ctx, x):
        torch.manual_seed(0)
        return x * torch.rand_like(x)

    @staticmethod
    def backward(ctx, g):
        torch.manual_seed(0)
        return g * torch.rand_like(g)


class OutKw(Function):
    @staticmethod
    def forward(ctx, x, hi):
        y = x.clone()
        torch.minimum(x, hi, out=y)
        ctx.save_for_backward(x, hi)
        return y

    @staticmethod
    def backward(ctx, g):
        x, hi = ctx.saved_tensors
        return g * (x < hi), g * (x >= hi)


class Gumbel(Function):
    @staticmethod
    def forward(ctx, x):
        n = -torch.log(-torch.log(torch.rand_like(x)))
        y = (x + n).softmax(-1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(-1, keepdim=True))


class DropoutMask(Dropout):
    @staticmethod
    def forward(ctx, x):
        mask = F.dropout(torch.ones_like(x), 0.25)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask


class BernoulliInPlace(Function):
    @staticmethod
    def forward(ctx, x):
        keep = torch.empty_like(x).bernoulli_(0.5)
        ctx.keep = keep
        return x.exp() * keep + torch.normal(0.0, 1.0, size=x.shape)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.keep


class BernoulliRight(BernoulliInPlace):
    @staticmethod
    def forward(ctx, x):
        keep = torch.empty_like(x).bernoulli_(0.5)
        ctx.save_for_backward(x, keep)
        return x.exp() * keep + torch.normal(0.0, 1.0, size=x.shape)

    @staticmethod
    def backward(ctx, g):
        x, keep = ctx.saved_tensors
        return g * x.exp() * keep * keep


class AverageOnly(Function):
    """Right on average alone: the draw is not the one of forward."""

    @staticmethod
    def forward(ctx, x):
        return x * torch.rand_like(x)

    @staticmethod
    def backward(ctx, g):
        return g * torch.rand_like(g)


@pytest.mark.parametrize("function", [Drop, Uniform, Gumbel, DropoutMask, BernoulliRight])
def test_the_same_draw_is_the_same_unknown(function: Any) -> None:
    report = sg.verify(function, "n m")
    assert str(report.verdict) == "PROVED", str(report)
    assert "the verdict is for all draws" in " ".join(report.notes)


def test_two_inputs() -> None:
    assert str(sg.verify(Noise, "n m", "").verdict) == "PROVED"


@pytest.mark.parametrize("function", [DropAgain, AverageOnly, Dropout, BernoulliInPlace])
def test_another_draw_is_another_unknown(function: Any) -> None:
    report = sg.verify(function, "n m")
    assert str(report.verdict) == "REFUTED", str(report)
    assert "not run in torch" in str(report.inputs["x"].replayed)


def test_a_draw_of_backward_is_not_that_of_forward() -> None:
    report = sg.verify(NoiseWrong, "n m", "")
    assert str(report.inputs["x"].verdict) == "PROVED"
    assert str(report.inputs["std"].verdict) == "REFUTED"


def test_stochastic_rounding_is_a_surrogate() -> None:
    report = sg.verify(StochasticRound, "n m")
    assert str(report.verdict) == "SURROGATE?"
    assert "derivative of `x` in place of forward" in report.inputs["x"].surrogate


def test_draws_that_are_replayed_are_undecided() -> None:
    report = sg.verify(Seeded, "n m")
    assert str(report.verdict) == "UNDECIDED"
    assert "manual_seed" in report.inputs["x"].reason


def test_there_are_no_kernels() -> None:
    with pytest.raises(UnsupportedOpError, match="draws random numbers"):
        sg.compile(Drop, "n m")


class OutOfOther(OutKw):
    @staticmethod
    def backward(ctx, g):
        x, hi = ctx.saved_tensors
        return g * (x < hi), g * (x < hi)


def test_out_is_written() -> None:
    assert str(sg.verify(OutKw, "n", "n").verdict) == "PROVED"
    assert str(sg.verify(OutOfOther, "n", "n").verdict) == "REFUTED"


_watched = False


def _told() -> None:
    if _watched:
        print(inspect.currentframe())


class Watched(Function):
    """Frames are named by code that no call comes to."""

    @staticmethod
    def forward(ctx, x):
        _told()
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


class Asking(Watched):
    @staticmethod
    def forward(ctx, x):
        return 2 * x if inspect.stack()[1].function != "main" else 3 * x


def test_frames_are_noted_where_they_are_asked_for() -> None:
    assert str(sg.verify(Watched, "n").verdict) == "PROVED"
    report = sg.verify(Asking, "n")
    assert str(report.verdict) == "UNDECIDED"
    assert "inspect.stack() is called" in report.inputs["x"].reason


class SquaredHinge(Function):
    """What is resized holds anything until it is written."""

    @staticmethod
    def forward(ctx, x, target):
        ctx.save_for_backward(x, target)
        return (1 - x * target).clamp(min=0).square().mean()

    @staticmethod
    def backward(ctx, g):
        x, target = ctx.saved_tensors
        margin = (1 - x * target).clamp(min=0)
        out = torch.empty(1).new_zeros(1)
        out.resize_as_(x).copy_(target).mul_(-2 * g / x.numel()).mul_(margin)
        return out, None


class SquaredHingeUnscaled(SquaredHinge):
    @staticmethod
    def backward(ctx, g):
        x, target = ctx.saved_tensors
        margin = (1 - x * target).clamp(min=0)
        g.resize_as_(x).copy_(target).mul_(-2).mul_(margin).div_(x.numel())
        return g, None


class ReadsResized(SquaredHinge):
    @staticmethod
    def backward(ctx, g):
        x, _ = ctx.saved_tensors
        return torch.zeros_like(g).resize_as_(x) + g, None


def test_what_is_resized_is_unknown() -> None:
    assume = {"target": "constant"}
    report = sg.verify(SquaredHinge, "n m", "n m", assume=assume)
    assert str(report.inputs["x"].verdict) == "PROVED", str(report)
    wrong = sg.verify(SquaredHingeUnscaled, "n m", "n m", assume=assume)
    assert str(wrong.verdict) == "REFUTED", str(wrong)
    assert sg.verify(ReadsResized, "n m", "n m", assume=assume).verdict == sg.REFUTED


class NoisySlope(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).float()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.where(x > 0, torch.ones_like(x), torch.rand_like(x))


def test_what_is_drawn_may_be_multiplied_by() -> None:
    found = sg.verify(NoisySlope, "n m").inputs["x"].surrogate
    assert "it multiplies by `torch.where(x > 0, 1, draw_1)`" in found


class Doubled(Function):
    """Backward adds 0 times a draw, or multiplies with one."""

    draw: Any = None

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @classmethod
    def of(cls, draw: Any) -> Any:
        return type("Drawing", (cls,), {"backward": staticmethod(lambda ctx, g: draw(g))})


def _runs(function: Any) -> bool:
    x = torch.tensor([0.25, 0.5], requires_grad=True)
    try:
        function.apply(x).backward(torch.tensor([0.25, 0.5]))
    except (RuntimeError, ValueError):
        return False
    return True


DRAWS: dict[str, Any] = {
    "bernoulli_": lambda g, p: torch.empty_like(g).bernoulli_(p),
    "bernoulli": lambda g, p: torch.bernoulli(torch.full_like(g, p)),
    "bernoulli of it and p": lambda g, p: torch.bernoulli(g, p),
    "computed": lambda g, p: torch.bernoulli(p * torch.ones_like(g)),
    "dropout": lambda g, p: F.dropout(g, p),
    "dropout of evaluation": lambda g, p: F.dropout(g, p, training=False),
    "normal_": lambda g, p: torch.empty_like(g).normal_(0, p),
    "normal": lambda g, p: torch.normal(0.0, p, size=g.shape),
    "uniform_": lambda g, p: torch.empty_like(g).uniform_(0, p),
    "a range": lambda g, p: torch.empty_like(g).uniform_(p, 1),
    "exponential_": lambda g, p: torch.empty_like(g).exponential_(p),
    "log_normal_": lambda g, p: torch.empty_like(g).log_normal_(0, p),
    "cauchy_": lambda g, p: torch.empty_like(g).cauchy_(0, p),
}


class Gumbel(Function):
    """A sample of the relaxed categorical distribution."""

    @staticmethod
    def forward(ctx, x, temperature):
        noise = -torch.empty_like(x).exponential_().log()
        y = F.softmax((x + noise) / temperature, dim=-1)
        ctx.save_for_backward(y)
        ctx.temperature = temperature
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(-1, keepdim=True)) / ctx.temperature, None


class GumbelByTorch(Gumbel):
    @staticmethod
    def forward(ctx, x, temperature):
        y = F.gumbel_softmax(x, temperature)
        ctx.save_for_backward(y)
        ctx.temperature = temperature
        return y


class GumbelLost(Gumbel):
    @staticmethod
    def backward(ctx, g):
        return Gumbel.backward(ctx, g)[0] * ctx.temperature, None


def test_noise_of_gumbel_is_the_same_in_backward() -> None:
    for right in (Gumbel, GumbelByTorch):
        assert sg.verify(right, "n m", static={"temperature": 0.5}).verdict == sg.PROVED
    lost = sg.verify(GumbelLost, "n m", static={"temperature": 0.5}, suggest=False)
    assert lost.verdict == sg.REFUTED


@pytest.mark.parametrize("setting", [-0.5, 0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("name", DRAWS)
def test_settings_that_torch_refuses_raise(name: str, setting: float) -> None:
    function = Doubled.of(lambda g: 2 * g + 0 * DRAWS[name](g, setting))
    report = sg.verify(function, "n", suggest=False)
    assert (report.verdict == sg.PROVED) == _runs(function), str(report)


@pytest.mark.parametrize("setting", [0.0, 1.0])
@pytest.mark.parametrize("name", list(DRAWS)[:4])
def test_what_is_sure_is_no_unknown(name: str, setting: float) -> None:
    function = Doubled.of(lambda g: 2 * g * (DRAWS[name](g, setting) + 1 - setting))
    assert sg.verify(function, "n", suggest=False).verdict == sg.PROVED
    assert (
        sg.verify(Doubled.of(lambda g: 2 * g * DRAWS[name](g, 0.5)), "n", suggest=False).verdict
        != sg.PROVED
    )


def test_probabilities_that_are_data_are_printed() -> None:
    report = sg.verify(Doubled.of(lambda g: 2 * g + 0 * torch.bernoulli(g)), "n")
    found = [one.text.partition(" (")[0] for one in report.conditions]
    assert found == ["g >= 0", "g <= 1"] or found == ["grad_output >= 0", "grad_output <= 1"]
    shown = sg.verify(Doubled.of(lambda g: 2 * g + 0 * torch.bernoulli(g.sigmoid())), "n")
    assert not shown.conditions, str(shown)


class Dropped(Function):
    """Its probability is a plain argument, which nothing tells apart from any other number."""

    @staticmethod
    def forward(ctx, x, share):
        left_out = share
        mask = (1 - torch.empty_like(x).bernoulli_(1 - left_out)).bool()
        ctx.scale = 1.0 / (1 - left_out)
        if left_out > 0:
            ctx.save_for_backward(mask)
            return x.masked_fill(mask, 0) * ctx.scale
        return x

    @staticmethod
    def backward(ctx, g):
        if ctx.scale > 1:
            (mask,) = ctx.saved_tensors
            return g.masked_fill(mask, 0) * ctx.scale, None
        return g, None


def test_a_probability_is_guessed_within_its_range() -> None:
    report = sg.verify(Dropped, suggest=False)
    assert report.verdict == sg.PROVED, str(report)


def test_a_draw_may_be_its_least_value() -> None:
    report = sg.verify(Doubled.of(lambda g: 2 * g * (torch.rand_like(g) > 0)), "n")
    assert "draw_1 == 0" in [str(one) for one in report.conditions], str(report)


@pytest.mark.parametrize("share", [lambda p: p, lambda p: p.clamp(0, 1), lambda p: p * p])
def test_counterexamples_have_draws_that_are_possible(share: Any) -> None:
    class Through(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, p: Any) -> Any:
            return torch.bernoulli(share(p))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    report = sg.verify(Through, "n", suggest=False)
    point = report.inputs["p"].counterexample
    assert str(report.verdict) == "SURROGATE?"
    assert point is not None
    for p, draw in zip(point.inputs["p"], point.inputs["draw_1"], strict=True):
        probability = float(share(torch.tensor(float(p))))
        assert draw in (0, 1)
        assert probability > 0 if draw else probability < 1


def test_what_is_right_for_all_draws_is_proved_where_the_probability_is_data() -> None:
    class Zero(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, p: Any, x: Any) -> Any:
            y = torch.bernoulli(p)
            ctx.save_for_backward(y)
            return y * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return torch.zeros_like(y), g * y

    assert str(sg.verify(Zero, "n; n", suggest=False).verdict) == "PROVED"


def picking(samples: int, replacement: bool, again: bool) -> Any:
    """Rows of x at places that are drawn with given shares."""

    class Picked(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, shares: Any) -> Any:
            ctx.places = torch.multinomial(shares, samples, replacement)
            ctx.save_for_backward(x, shares)
            return x.gather(1, ctx.places)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, shares = ctx.saved_tensors
            places = torch.multinomial(shares, samples, replacement) if again else ctx.places
            return torch.zeros_like(x).scatter_add(1, places, g), None

    return Picked


@pytest.mark.slow
@pytest.mark.parametrize(("samples", "replacement"), [(1, False), (2, False), (3, True)])
def test_places_that_are_drawn_with_shares(samples: int, replacement: bool) -> None:
    shapes = "n m", "n m"
    right = sg.verify(picking(samples, replacement, again=False), *shapes, suggest=False)
    assert right.inputs["x"].verdict == sg.PROVED, str(right)
    wrong = sg.verify(picking(samples, replacement, again=True), *shapes, suggest=False)
    assert wrong.inputs["x"].verdict != sg.PROVED, str(wrong)


def test_more_places_than_shares_are_refused() -> None:
    cls = picking(3, replacement=False, again=False)
    with pytest.raises(SymgradError):
        sg.verify(cls, "n 2", "n 2", suggest=False)
    with pytest.raises(RuntimeError):
        cls.apply(torch.rand(2, 2), torch.rand(2, 2))
