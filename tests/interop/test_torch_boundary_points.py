"""Backwards of torch that ask for a value at which forward is differentiable all the same.

In: bodies of forward and backward.  A wrong value there is REFUTED, in any number of coordinates;
the right one is PROVED.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers


def _class(forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    class Judged(torch.autograd.Function):  # type: ignore[name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return backward(g, ctx.saved_tensors[0])

    return Judged


def _of_two(forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    class Judged(torch.autograd.Function):  # type: ignore[name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return forward(x, y)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return backward(g, *ctx.saved_tensors)

    return Judged


def _verdict(judged: Any, name: str, *shapes: str) -> str:
    return str(sg.verify(judged, *shapes, suggest=False).inputs[name].verdict)


def _huber(x: Any) -> Any:
    n = x.norm()
    return torch.where(n < 1, 0.5 * n * n, n - 0.5)


def _of_huber(factor: float) -> Callable[[Any, Any], Any]:
    def backward(g: Any, x: Any) -> Any:
        n = x.norm()
        return g * torch.where(n == 1, factor * x, torch.where(n < 1, x, x / n))

    return backward


_ASKED: dict[str, Callable[[Any], Any]] = {
    "norm": lambda x: x.norm() == 1,
    "sum of squares": lambda x: (x * x).sum() == 2,
    "mean of squares": lambda x: (x * x).mean() == 1,
    "sum": lambda x: x.sum() == 0.1,
    "sum of distances": lambda x: x.abs().sum() == 1,
    "maximum": lambda x: x.abs().max() == 0.3,
}


@pytest.mark.parametrize("shape", ["3", "5", "n 3"])
def test_the_join_of_a_huber_loss_of_a_norm_is_looked_at(shape: str) -> None:
    assert _verdict(_class(_huber, _of_huber(3)), "x", shape) == "REFUTED"
    assert _verdict(_class(_huber, _of_huber(1)), "x", shape) == "PROVED"


@pytest.mark.parametrize("name", _ASKED)
def test_a_value_of_all_coordinates_is_met(name: str) -> None:
    def backward(factor: float) -> Callable[[Any, Any], Any]:
        return lambda g, x: factor * g * x if _ASKED[name](x) else 2 * g * x

    judged = _class(lambda x: (x * x).sum(), backward(3))
    assert _verdict(judged, "x", "3") == "REFUTED"
    assert _verdict(_class(lambda x: (x * x).sum(), backward(2)), "x", "3") == "PROVED"


_SMOOTH: dict[str, Callable[[Any, Any], Any]] = {
    "hypot": lambda x, y: torch.hypot(x, y) ** 2,
    "complex": lambda x, y: torch.complex(x, y).abs() ** 2,
    "norm": lambda x, y: torch.stack((x, y)).norm(dim=0) ** 2,
}


@pytest.mark.parametrize("name", _SMOOTH)
@pytest.mark.parametrize("there", [0, 7])
def test_the_root_of_a_square_is_no_kink_where_it_is_squared(name: str, there: int) -> None:
    def backward(g: Any, x: Any, y: Any) -> Any:
        return torch.where(x * x + y * y == 0, there * g, 2 * g * x), 2 * g * y

    judged = _of_two(_SMOOTH[name], backward)
    expected = "REFUTED" if there else "PROVED"
    assert _verdict(judged, "x", "f64[2]", "f64[2]") == expected
    assert _verdict(judged, "y", "f64[2]", "f64[2]") == "PROVED"


_READ: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "squared": (lambda h: h**2, False),
    "a square": (lambda h: h * h + h.square(), False),
    "to the fourth": (lambda h: h.reshape(-1) ** 4, False),
    "cubed": (lambda h: h**3, True),
    "squared and not": (lambda h: h * h + h, True),
    "squared and compared": (lambda h: h * h * (h > 1), True),
}


@pytest.mark.parametrize("name", _READ)
@pytest.mark.parametrize("size", [torch.hypot, lambda x, y: torch.complex(x, y).abs()])
def test_an_absolute_value_is_a_kink_unless_only_squares_of_it_are_read(
    name: str, size: Callable[[Any, Any], Any]
) -> None:
    read, is_kink = _READ[name]

    def backward(g: Any, x: Any, y: Any) -> Any:
        with torch.enable_grad():
            squares = (x * x + y * y).detach().requires_grad_()
            (slope,) = torch.autograd.grad(read(squares.sqrt()), squares, g)
        return 2 * x * slope, 2 * y * slope

    judged = _of_two(lambda x, y: read(size(x, y)), backward)
    found = sg.verify(judged, "f64[2]", "f64[2]", suggest=False).inputs["x"]
    assert str(found.verdict) == "PROVED", str(found)
    assert any(one.kind == "kink" for one in found.conditions) is is_kink


_LOGARITHMS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "xlogy": (torch.xlogy, lambda y: y.log()),
    "xlog1py": (torch.special.xlog1py, lambda y: y.log1p()),
}


@pytest.mark.parametrize("name", _LOGARITHMS)
@pytest.mark.parametrize("there", [0, 1, None])
def test_the_factor_of_a_logarithm_has_a_derivative_at_0(name: str, there: int | None) -> None:
    forward, slope = _LOGARITHMS[name]
    shift = 1 if name == "xlog1py" else 0

    def backward(g: Any, x: Any, y: Any) -> Any:
        own = g * slope(y)
        return own if there is None else torch.where(x == 0, there * g, own), g * x / (y + shift)

    expected = "PROVED" if there is None else "REFUTED"
    assert _verdict(_of_two(forward, backward), "x", "f64[2]", "f64[2]") == expected
