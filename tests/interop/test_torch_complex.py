"""Complex numbers: what to do is said with the line; what real tensors answer is real."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import SymgradError  # noqa: E402
from symgrad.frontend.guests import Call, Given  # noqa: E402
from symgrad.interop.torch.measuring import measured  # noqa: E402

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
        lambda x: torch.complex(x, x).atan().real, lambda x: torch.complex(x, x).asin().abs(),
        lambda x: torch.istft(torch.complex(x, x), 4), lambda x: torch.complex(x, x)[x > 0].real,
        lambda x: x.to(torch.complex32).real, lambda x: torch.complex(x, x).prod().real,
        lambda x: torch.complex(x, x).to(torch.float32),
        lambda x: torch.add(torch.complex(x, x), 1, out=torch.complex(x, x)).real,
        lambda x: torch.maximum(x, torch.complex(x, x)), lambda x: torch.complex(x, x) == 0,
        lambda x: torch.fft.rfft(torch.complex(x, x)).real, lambda x: x @ torch.complex(x, x).mT,
        lambda x: x.clone().copy_(torch.complex(x, x)),
        lambda x: torch.linalg.norm(torch.complex(x, x), "nuc"),
        lambda x: (torch.complex(x, x) ** 1j).real, lambda x: (torch.complex(x, x) ** x).imag,
    ],
)  # fmt: skip
def test_what_to_do_is_said_with_the_line(made: Any) -> None:
    cls = type("Complex", (Complex,), {"made": staticmethod(made)})
    with pytest.raises(SymgradError) as caught:
        sg.verify(cls, "n m", suggest=False, timeout=None)
    assert caught.value.hint
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


class Rotary(FUNCTION):
    """Pairs along the last axis are complex numbers that are turned."""

    turned: Any = staticmethod(lambda w: w.conj())

    @staticmethod
    def pairs(x: Any) -> Any:
        return torch.view_as_complex(x.float().contiguous().reshape(*x.shape[:-1], -1, 2))

    @classmethod
    def forward(cls, ctx: Any, x: Any, angles: Any) -> Any:
        w = torch.polar(torch.ones_like(angles), angles)
        z = cls.pairs(x)
        ctx.save_for_backward(z, w)
        return torch.view_as_real(z * w).flatten(-2)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        z, w = ctx.saved_tensors
        g = cls.pairs(g)
        return torch.view_as_real(g * cls.turned(w)).flatten(-2), (g * (1j * z * w).conj()).real


class Products(FUNCTION):
    """A matrix of complex numbers by another one."""

    turned: Any = staticmethod(lambda w: w.conj())

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        z, w = torch.complex(a, b), torch.complex(c, d)
        ctx.z, ctx.w = z, w
        y = torch.einsum("nm,mk->nk", z, w)
        return y.real, y.imag

    @classmethod
    def backward(cls, ctx: Any, real: Any, imaginary: Any) -> Any:
        g = torch.complex(real, imaginary)
        by_z, by_w = g @ cls.turned(ctx.w).mT, cls.turned(ctx.z).mT @ g
        return by_z.real, by_z.imag, by_w.real, by_w.imag


class Filter(FUNCTION):
    """A convolution along a circle, as a product of transforms."""

    norm: Any = None
    sign = 1

    @staticmethod
    def forward(ctx: Any, x: Any, real: Any, imaginary: Any) -> Any:
        ctx.w, ctx.n = torch.complex(real, imaginary), x.shape[-1]
        return torch.fft.irfft(torch.fft.rfft(x) * ctx.w, n=ctx.n)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        w = torch.complex(ctx.w.real, -cls.sign * ctx.w.imag)
        return torch.fft.irfft(torch.fft.rfft(g, norm=cls.norm) * w, n=ctx.n), None, None


class Convolution(FUNCTION):
    """Of two rows, which are as long as both together where they are transformed."""

    norm: Any = None
    turned: Any = staticmethod(lambda w: w.conj())

    @staticmethod
    def forward(ctx: Any, u: Any, k: Any) -> Any:
        n = 2 * u.shape[-1]
        by_u, by_k = torch.fft.rfft(u, n=n), torch.fft.rfft(k, n=n)
        ctx.save_for_backward(by_u, by_k)
        return torch.fft.irfft(by_u * by_k, n=n)[..., : u.shape[-1]]

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        by_u, by_k = ctx.saved_tensors
        length = g.shape[-1]
        n = 2 * length
        by_g = torch.fft.rfft(g, n=n, norm=cls.norm)
        u = torch.fft.irfft(by_g * cls.turned(by_k), n=n)[..., :length]
        return u, torch.fft.irfft(by_g * cls.turned(by_u), n=n)[..., :length]


class Mixed(FUNCTION):
    """The real part of a transform along two axes."""

    other = torch.fft.fft2

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return torch.fft.fft2(x).real

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return cls.other(g).real


class Power(FUNCTION):
    """The squares of the absolute values of a transform."""

    scale = 2

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        z = torch.fft.fft(x, dim=0, norm="ortho")
        ctx.save_for_backward(z)
        return (z * z.conj()).real

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (z,) = ctx.saved_tensors
        return cls.scale * torch.fft.ifft(g * z, dim=0, norm="ortho").real


def _same(w: Any) -> Any:
    return w


SHAPES = {
    Rotary: ("n 2*m", "n m"), Products: ("n m", "n m", "m k", "m k"),
    Filter: ("n m", "m//2+1", "m//2+1"), Convolution: ("n", "n"), Mixed: ("n m",), Power: ("n m",),
}  # fmt: skip


@pytest.mark.parametrize("cls", SHAPES)
def test_a_right_backward_is_proved(cls: Any) -> None:
    names = ("real", "imaginary") if cls is Filter else ()
    assumed = dict.fromkeys(names, "constant")
    report = sg.verify(cls, *SHAPES[cls], suggest=False, timeout=None, assume=assumed)
    assert str(report.verdict) == "PROVED"


@pytest.mark.parametrize(
    ("cls", "wrong"),
    [
        (Rotary, {"turned": staticmethod(_same)}), (Products, {"turned": staticmethod(_same)}),
        (Filter, {"sign": -1}), (Filter, {"norm": "ortho"}), (Filter, {"norm": "forward"}),
        (Convolution, {"turned": staticmethod(_same)}), (Convolution, {"norm": "forward"}),
        (Mixed, {"other": torch.fft.ifft2}), (Power, {"scale": 1}),
    ],
)  # fmt: skip
def test_a_wrong_one_is_refuted(cls: Any, wrong: Any) -> None:
    names = ("real", "imaginary") if cls is Filter else ()
    assumed = dict.fromkeys(names, "constant")
    changed = type(cls.__name__, (cls,), wrong)
    report = sg.verify(changed, *SHAPES[cls], suggest=False, timeout=None, assume=assumed)
    assert str(report.verdict) == "REFUTED"


def test_pairs_that_do_not_lie_side_by_side_are_found() -> None:
    """An expanded gradient, as sum().backward() makes it, is refused by torch."""

    class Bare(Rotary):
        @staticmethod
        def pairs(x: Any) -> Any:
            return torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))

    report = sg.verify(Bare, *SHAPES[Rotary], suggest=False, timeout=None)
    assert str(report.verdict) == "REFUTED"
    assert all(str(one.verdict) == "PROVED" for one in report.inputs.values())
    assert "sum().backward()" in str(report)


class Kept(FUNCTION):
    """Waves that are kept by their size."""

    kept: Any = {}  # noqa: RUF012
    scale = 1

    @classmethod
    def wave(cls, n: Any) -> Any:
        if n not in cls.kept:
            cls.kept[n] = torch.exp(2j * torch.pi * torch.arange(n) / n)
        return cls.kept[n]

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        return (x * cls.wave(x.shape[-1])).imag

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return cls.scale * g * cls.wave(g.shape[-1]).imag


def test_complex_numbers_in_a_table_by_sizes() -> None:
    wrong = type("Kept", (Kept,), {"scale": 2, "kept": {}})
    assert str(sg.verify(Kept, "n", suggest=False, timeout=None).verdict) == "PROVED"
    assert str(sg.verify(wrong, "n", suggest=False, timeout=None).verdict) == "REFUTED"


# -- complex inputs and outputs


class Complexes(FUNCTION):
    """The product of complex numbers, elementwise."""

    turned: Any = staticmethod(lambda w: w.conj())

    @staticmethod
    def forward(ctx: Any, z: Any, w: Any) -> Any:
        ctx.save_for_backward(z, w)
        return z * w

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        z, w = ctx.saved_tensors
        return g * w.conj(), g * cls.turned(z)


class Half(FUNCTION):
    """One half of a transform, which the incoming gradient is the other half of."""

    whole = torch.fft.ifft

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.n = x.shape[-1]
        return torch.fft.rfft(x)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        whole = torch.nn.functional.pad(g, (0, ctx.n - g.shape[-1]))
        return cls.whole(whole, norm="forward").real


class Spectral(FUNCTION):
    """A layer with complex weights between transforms."""

    twice = 2.0

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        z = torch.fft.rfft(x)
        ctx.save_for_backward(z, w)
        ctx.n = x.shape[-1]
        return torch.fft.irfft(z * w, n=ctx.n)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        z, w = ctx.saved_tensors
        by_g = torch.fft.rfft(g)
        place = torch.arange(by_g.shape[-1])
        times = torch.where((place == 0) | (2 * place == ctx.n), 1.0, cls.twice)
        by_w = (by_g * z.conj() * times / ctx.n).sum(0)
        return torch.fft.irfft(by_g * w.conj(), n=ctx.n), by_w


class Square(FUNCTION):
    """Of the absolute value, whose gradient is what torch says it is."""

    scale = 2

    @staticmethod
    def forward(ctx: Any, z: Any) -> Any:
        ctx.z = z
        return (z * z.conj()).real

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return cls.scale * g * ctx.z


class Real(FUNCTION):
    """Reals are the gradient of complex numbers, whose imaginary part is 0."""

    scale: Any = 1

    @staticmethod
    def forward(ctx: Any, z: Any) -> Any:
        return z.real.clone()

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return cls.scale * g


class Raised(FUNCTION):
    """``by``: of the exponent in backward."""

    exponent: float = 2.5
    by = 1

    @classmethod
    def forward(cls, ctx: Any, z: Any) -> Any:
        ctx.save_for_backward(z)
        return z**cls.exponent

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (z,) = ctx.saved_tensors
        return g * (cls.exponent * z ** (cls.exponent - cls.by)).conj()


class Length(FUNCTION):
    """``wrong``: of the conjugate."""

    wrong = False

    @staticmethod
    def forward(ctx: Any, z: Any) -> Any:
        length = torch.linalg.norm(z, dim=-1, keepdim=True)
        ctx.save_for_backward(z, length)
        return length

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        z, length = ctx.saved_tensors
        return g * (z.conj() if cls.wrong else z) / length


class Phase(FUNCTION):
    """Of reals, 0 or pi."""

    turn: Any = 1

    @staticmethod
    def forward(ctx: Any, z: Any) -> Any:
        x = z.real.clone()
        ctx.save_for_backward(x)
        return torch.angle(x) * x

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return cls.turn * g * torch.angle(x)


@pytest.mark.parametrize("exponent", [0.5, 1 / 3, -0.75, 6, 0])
def test_powers_of_all_real_exponents(exponent: float) -> None:
    cls = type("Raised", (Raised,), {"exponent": exponent})
    assert str(sg.verify(cls, "c128[n]", suggest=False, timeout=None).verdict) == "PROVED"


def test_why_forward_takes_no_shapes_is_said_where_it_is_not_for_shapes() -> None:
    class Turned(FUNCTION):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return (torch.complex(a, b) ** 1j).real

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g

    with pytest.raises(SymgradError, match=r"exponent is no real number") as caught:
        sg.verify(Turned, suggest=False, timeout=None)
    assert "trials" not in str(caught.value)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


COMPLEX = {
    Complexes: ("c64[n]", "complex[n]"), Half: ("b n",), Spectral: ("b n", "c64[n//2+1]"),
    Square: ("c128[n m]",), Real: ("c64[n]",), Raised: ("c128[n]",), Length: ("c128[n m]",),
    Phase: ("c128[n]",),
}  # fmt: skip


@pytest.mark.parametrize("cls", COMPLEX)
def test_complex_inputs_and_outputs_are_pairs(cls: Any) -> None:
    report = sg.verify(cls, *COMPLEX[cls], suggest=False, timeout=None)
    assert str(report.verdict) == "PROVED"


@pytest.mark.parametrize(
    ("cls", "wrong"),
    [
        (Complexes, {"turned": staticmethod(_same)}), (Half, {"whole": torch.fft.fft}),
        (Spectral, {"twice": 1.0}), (Square, {"scale": 1}), (Real, {"scale": 1j}),
        (Raised, {"by": 2}), (Length, {"wrong": True}), (Phase, {"turn": 2}),
    ],
)  # fmt: skip
def test_a_wrong_gradient_of_theirs_is_refuted_by_torch(cls: Any, wrong: Any) -> None:
    changed = type(cls.__name__, (cls,), wrong)
    report = sg.verify(changed, *COMPLEX[cls], suggest=False, timeout=None)
    assert str(report.verdict) == "REFUTED"
    assert "confirmed in torch" in str(report)
    found = [one.location for one in report.inputs.values() if one.location is not None]
    assert all(one.file == __file__ for one in found)


class Doubled(FUNCTION):
    """``made`` computes both; the imaginary part of a conjugate knows which by the dtype."""

    made: Any

    @classmethod
    def forward(cls, ctx: Any, z: Any) -> Any:
        return cls.made(z)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return cls.made(g)


def _imaginary(z: Any) -> Any:
    return -1j * z if z.is_floating_point() else z.conj().imag


VIEWS: tuple[Any, ...] = (lambda z: z.conj(), lambda z: z.mH, _imaginary)


@pytest.mark.parametrize("made", VIEWS)
def test_views_that_torch_keeps_as_conjugates_are_run(made: Any) -> None:
    cls = type("Doubled", (Doubled,), {"made": staticmethod(made)})
    assert str(sg.verify(cls, "c128[n m]", suggest=False, timeout=None).verdict) == "PROVED"
    place, weight = (1, 0, 1), np.arange(1.0, 13).reshape(2, 3, 2)
    shown = made(torch.view_as_complex(torch.tensor(weight)))
    given = torch.view_as_real(shown.resolve_conj()) if shown.is_complex() else shown
    point = [("z", Given(weight.tolist(), "float32", complex=True))]
    call = Call(point, frozenset("z"), [given.tolist()], "z", place)
    found = measured(cls, call)
    assert found.how == "by autograd through forward"
    assert found.backward == pytest.approx(found.derivative)
    wrong = type("Wrong", (cls,), {"backward": staticmethod(lambda ctx, g: g.mT + 0j)})
    report = sg.verify(wrong, "c128[n n]", suggest=False, timeout=None)
    assert str(report.verdict) == "REFUTED"
    assert "confirmed in torch: backward gives" in str(report)


def _times(z: Any) -> Any:
    z = z.clone()
    z[..., 1:] *= 2
    return z


def _plus(z: Any) -> Any:
    z = z.clone()
    z[..., 1:-1] += z[..., 1:-1]
    return z


def _shifted(z: Any) -> Any:
    z = z.clone()
    z[..., 1:] += z[..., :-1]
    return z


@pytest.mark.parametrize(
    ("made", "verdict"), [(_times, "PROVED"), (_plus, "PROVED"), (_shifted, "UNDECIDED")]
)
def test_what_is_written_in_place_is_read_in_its_own_place(made: Any, verdict: str) -> None:
    cls = type("Doubled", (Doubled,), {"made": staticmethod(made)})
    report = sg.verify(cls, "c128[n m]", suggest=False, timeout=None)
    assert str(report.verdict) == verdict
    assert ("in an order of torch's" in " ".join(str(report).split())) is (verdict != "PROVED")


class Inverse(FUNCTION):
    """``wrong``: the numbers in the middle count once."""

    wrong = False

    @staticmethod
    def forward(ctx: Any, z: Any) -> Any:
        ctx.n = 2 * (z.shape[-1] - 1)
        return torch.fft.irfft(z, n=ctx.n)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        z = torch.fft.rfft(g)
        z[..., 1:-1] *= 1 if cls.wrong else 2
        return z / ctx.n


def test_the_middle_of_a_transform_is_doubled_in_place() -> None:
    assert str(sg.verify(Inverse, "c128[n m+1]", timeout=None).verdict) == "PROVED"
    wrong = type("Inverse", (Inverse,), {"wrong": True})
    report = sg.verify(wrong, "c128[n m+1]", timeout=None, suggest=False)
    assert str(report.verdict) == "REFUTED"


def test_torch_takes_no_complex_gradient_of_reals() -> None:
    class Doubled(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return (2 + 0j) * g

    report = sg.verify(Doubled, "n", suggest=False, timeout=None)
    assert str(report.verdict) == "REFUTED"
    assert "run in torch: RuntimeError" in str(report)
