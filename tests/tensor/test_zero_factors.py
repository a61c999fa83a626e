"""First and second derivatives of products are exact where factors are zero.

A product is affine in each factor, so differences of its values are its derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg

pytestmark = pytest.mark.usefixtures("unoptimised")

SHAPE = (2, 3)
COUNT = 6
FACTORS = st.lists(st.sampled_from([0, 0, 1, 2, -3]), min_size=COUNT, max_size=COUNT)
WEIGHTS = st.lists(st.integers(-3, 3), min_size=COUNT, max_size=COUNT)
SCALES = (1.0, -2.0, 3.0, 0.5, -1.0, 2.0)
Function = Callable[..., Any]


def _scaled(lib: Any, x: Any) -> Any:
    scales = lib.tensor(SCALES[: x.numel()], dtype=lib.float64)
    return (x.reshape(-1) * scales).sum()


# of torch and of symgrad alike
PRODUCTS: dict[str, Function] = {
    "all": lambda lib, x: x.prod(),
    "rows": lambda lib, x: _scaled(lib, x.prod(1)),
    "columns": lambda lib, x: _scaled(lib, x.prod(0)),
    "running": lambda lib, x: _scaled(lib, x.reshape(-1).cumprod(0)),
    "running rows": lambda lib, x: _scaled(lib, x.cumprod(1)),
    "from the end": lambda lib, x: _scaled(lib, x.flip(0, 1).reshape(-1).cumprod(0)),
}


def _derivatives(name: str) -> list[Function]:
    """The gradient, and along w its derivative by grad of grad and by jvp of grad."""
    gradient = sg.grad(lambda x: PRODUCTS[name](sg, x))
    return [
        lambda x, w: gradient(x),
        sg.grad(lambda x, w: (gradient(x) * w).sum()),
        lambda x, w: sg.jvp(gradient, (x,), (w,))[1],
    ]


COMPILED = {name: [sg.jit(f) for f in _derivatives(name)] for name in PRODUCTS}


def _value(name: str, x: list[Fraction]) -> Fraction:
    """The function in exact numbers."""
    rows = np.array(x, object).reshape(SHAPE)
    scales = np.array([Fraction(scale) for scale in SCALES])
    terms: dict[str, Function] = {
        "all": lambda: [rows.prod()],
        "rows": lambda: scales[:2] * rows.prod(1),
        "columns": lambda: scales[:3] * rows.prod(0),
        "running": lambda: scales * np.cumprod(rows),
        "running rows": lambda: scales * np.cumprod(rows, axis=1).ravel(),
        "from the end": lambda: scales * np.cumprod(rows.ravel()[::-1]),
    }
    return sum(terms[name](), Fraction(0))


def _difference(f: Function, place: int) -> Function:
    """The exact derivative by one factor of what is affine in it."""

    def at(x: list[Fraction]) -> Fraction:
        one, zero = ([*x[:place], Fraction(end), *x[place + 1 :]] for end in (1, 0))
        return f(one) - f(zero)

    return at


def _exact(name: str, x: list[int], w: list[int]) -> tuple[list[float], list[float]]:
    at = [Fraction(factor) for factor in x]
    slopes = [_difference(lambda x: _value(name, x), place) for place in range(COUNT)]
    first = [float(slope(at)) for slope in slopes]
    second = [
        float(sum(w[k] * _difference(slopes[k], j)(at) for k in range(COUNT))) for j in range(COUNT)
    ]
    return first, second


def _check(found: Sequence[Function], x: list[int], w: list[int], first: Any, second: Any) -> None:
    point, along = (sg.tensor(np.array(a, float).reshape(SHAPE)) for a in (x, w))
    for f, wanted in zip(found, (first, second, second), strict=True):
        got = np.asarray(f(point, along)).ravel()
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("name", PRODUCTS)
@settings(max_examples=12, deadline=None)
@given(x=FACTORS, w=WEIGHTS)
def test_derivatives_are_exact(name: str, x: list[int], w: list[int]) -> None:
    first, second = _exact(name, x, w)
    _check(_derivatives(name), x, w, first, second)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["all", "columns", "running"])
@settings(max_examples=12, deadline=None)
@given(x=FACTORS, w=WEIGHTS)
def test_compiled_derivatives_are_exact(name: str, x: list[int], w: list[int]) -> None:
    first, second = _exact(name, x, w)
    _check(COMPILED[name], x, w, first, second)


@pytest.mark.peers
@pytest.mark.parametrize("name", PRODUCTS)
@settings(max_examples=12, deadline=None)
@given(x=FACTORS, w=WEIGHTS)
def test_derivatives_are_torchs(name: str, x: list[int], w: list[int]) -> None:
    torch: Any = pytest.importorskip("torch")
    point = torch.tensor(x, dtype=torch.float64).reshape(SHAPE).requires_grad_()
    along = torch.tensor(w, dtype=torch.float64).reshape(SHAPE)
    (first,) = torch.autograd.grad(PRODUCTS[name](torch, point), point, create_graph=True)
    (second,) = torch.autograd.grad((first * along).sum(), point)
    _check(_derivatives(name), x, w, first.detach().numpy().ravel(), second.numpy().ravel())


@settings(max_examples=20, deadline=None)
@given(x=FACTORS, w=WEIGHTS)
def test_a_third_derivative_is_exact_or_nan(x: list[int], w: list[int]) -> None:
    slopes = [_difference(lambda x: _value("running", x), place) for place in range(COUNT)]
    along, hessian = sg.tensor(np.array(w, float).reshape(SHAPE)), _derivatives("running")[1]
    third = sg.grad(lambda x: (hessian(x, along) * along).sum())
    got = np.asarray(third(sg.tensor(np.array(x, float).reshape(SHAPE)))).ravel()
    at = [Fraction(factor) for factor in x]
    for place, found in enumerate(got):
        wanted = sum(
            w[j] * w[k] * _difference(_difference(slopes[k], j), place)(at)
            for j in range(COUNT)
            for k in range(COUNT)
        )
        assert np.isnan(found) or abs(found - float(wanted)) < 1e-9
