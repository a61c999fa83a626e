"""Complex numbers: what to do is said with the line; what real tensors answer is real."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import SymgradError  # noqa: E402

pytestmark = pytest.mark.peers
FUNCTION: Any = torch.autograd.Function


class Complex(FUNCTION):
    made: Any

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        return cls.made(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


@pytest.mark.parametrize(
    "made",
    [
        lambda x: torch.fft.rfft(x).abs(), lambda x: torch.complex(x, x).abs(),
        lambda x: torch.polar(x, x).real, lambda x: torch.view_as_complex(x[..., :2]).real,
        lambda x: x.to(torch.complex64).abs(), lambda x: torch.stft(x, 4, return_complex=True),
    ],
)  # fmt: skip
def test_what_to_do_is_said_with_the_line(made: Any) -> None:
    cls = type("Complex", (Complex,), {"made": staticmethod(made)})
    with pytest.raises(SymgradError) as caught:
        sg.verify(cls, "n m", suggest=False, timeout=None)
    assert "the real and the imaginary part" in caught.value.hint
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


class Product(FUNCTION):
    """As it is written for complex matrices, too."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x @ w

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        by_x = g @ w.mH
        return by_x if torch.is_complex(x) else by_x.real, cls.scale * torch.real(x.t().conj() @ g)


class Pairs(FUNCTION):
    """Pairs along the last axis are turned, of which nobody says that it has an even size."""

    scale = 1

    @staticmethod
    def turned(x: Any) -> Any:
        pairs = x.reshape(*x.shape[:-1], -1, 2)
        return torch.stack([-pairs[..., 1], pairs[..., 0]], -1).flatten(-2)

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        return cls.turned(x)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return -cls.scale * cls.turned(g)


@pytest.mark.parametrize("cls", [Product, Pairs])
def test_real_tensors_are_their_real_part(cls: Any) -> None:
    assert str(sg.verify(cls, suggest=False, timeout=None).verdict) == "PROVED"
    doubled = type(cls.__name__, (cls,), {"scale": 2})
    assert str(sg.verify(doubled, suggest=False, timeout=None).verdict) == "REFUTED"


@pytest.mark.parametrize("part", [lambda z: z.real, torch.real], ids=["attribute", "function"])
def test_that_a_real_part_is_taken_of_reals_is_printed(part: Any) -> None:
    class Square(FUNCTION):
        """For complex z it lacks the conjugate."""

        @staticmethod
        def forward(ctx: Any, z: Any) -> Any:
            ctx.save_for_backward(z)
            return part(z * z)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (z,) = ctx.saved_tensors
            return 2 * g * z

    report = sg.verify(Square, "n", suggest=False)
    assert str(report.verdict) == "PROVED"
    assert "if no tensor whose real part is taken is complex" in str(report)
