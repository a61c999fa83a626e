"""``erf`` in C, for f32: the error is proved to be less than one ulp, and measured at samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from flint import arb, arb_poly, arb_series, ctx

from symgrad.ops.erf_c import BORDER, FAR, FAR_CENTRE, FURTHEST, NEAR, NEAR_CENTRE
from symgrad.ops.exponential_c import F32
from tests.ops.rounding import LEVELS, Built, Rounding, exact, top
from tests.ops.test_exponential import Proof

FUSED = [pytest.param(True, id="fused"), pytest.param(False, id="twice")]
PIECES = 600
SERIES = 40
ULP = 2.0**-24
"""Between 1/2 and 1, where the result is from the border on."""


def pieces(low: float, high: float) -> list[arb]:
    step = (arb(high) - low) / PIECES
    return [low + step * (arb(place) + arb(0.5, 0.5)) for place in range(PIECES)]


class Near(Rounding):
    """Bounds on ``x + x c(x**2)``."""

    def __init__(self, fused: bool) -> None:
        super().__init__(F32, fused)
        self.terms = [exact(F32, term) for term in NEAR]
        two = 2 / arb.pi().sqrt()
        true = [
            two * (-1) ** place / (arb.fac_ui(place) * (2 * place + 1)) for place in range(SERIES)
        ]
        true[0] -= 1
        self.slope = arb_poly(self.terms).derivative()
        self.apart = arb_poly(self.terms)(arb_poly([-NEAR_CENTRE, 1])) - arb_poly(true)

    def error(self, x: arb) -> float:
        """Of ``c(x**2)``, in a piece."""
        square = x * x
        z = square - NEAR_CENTRE
        off = 0.0 if self.fused else self.half(top(square))
        # z is a multiple of an ulp of the square, and exact where it is not much larger than it.
        if self.fused or top(z) + off > math.ldexp(1.0, math.frexp(float(square.lower()))[1]):
            off += self.half(top(z) + off)
        middle = arb(square.mid())
        apart = self.apart(middle) + self.apart.derivative()(square) * (square - middle)
        rest = 2 / math.factorial(SERIES)  # of the series
        moved = z + arb(0, off)
        error = self.horner(self.terms, moved)[1] + off * top(self.slope(moved))
        return error + top(apart) + rest

    def ulps(self, x: arb) -> float:
        """The error of the result in a piece, in ulps of its true value."""
        error = self.error(x)
        c = self.horner(self.terms, x * x - NEAR_CENTRE)[0] + arb(0, error)
        end = arb(x.upper())  # where erf(x) / x is least, and x, in ulps of a result, most
        most = float((2**24 * end / end.erf()).upper())
        twice = most * top(c) / 2**24
        if x.lower() > 0:
            ulp = math.ldexp(1.0, math.frexp(float(x.erf().lower()))[1] - 24)
            most, twice = min(most, top(x) / ulp), min(twice, self.half(top(x * c)) / ulp)
        return 0.5 + error * most + (0.0 if self.fused else twice)


class Far(Rounding):
    """Bounds on ``1 - exp(-t**2) scaled(t)``."""

    def __init__(self, fused: bool) -> None:
        super().__init__(F32, fused)
        self.exp = Proof(F32, fused)
        self.terms = [exact(F32, term) for term in FAR]
        square = FURTHEST**2
        off = self.half(square) * top(self.exp.log2e) + square * top(
            self.exp.log2e - 1 / arb.const_log2()
        )
        off += 0.0 if fused else self.half(square * top(self.exp.log2e))
        self.reach = (0.5 + off) * top(arb.const_log2())  # the greatest r
        self.most = math.ceil(square * top(self.exp.log2e))  # the greatest n

    def r(self, t: arb, n: int) -> float:
        """The error of r, where it is ``n ln 2 - t**2``."""
        low = n * top(self.exp.low)
        error = n * self.exp.left / self.exp.most + self.half(self.reach + low)
        if self.fused:
            return error + self.half(self.reach + 1e-6)
        lost = 2.0**-11 * top(t)  # of t, in half of its digits
        rest = lost * 2 * top(t)
        error += lost * self.half(2 * top(t)) + self.half(rest) + self.half(low)
        return error + self.half(rest + low) + self.half(self.reach + rest + low)

    def apart(self, t: arb) -> float:
        """How far ``exp(-t**2) scaled(t)`` is from ``erfc(t)`` without any rounding."""
        middle, radius = arb(t.mid()), top(t - arb(t.mid()))
        found = [0.0, 0.0]
        for place, at in enumerate((middle, t)):
            x = arb_series([at, 1])
            scaled = arb_series([arb(0)])
            for term in self.terms[::-1]:
                scaled = scaled * (x - FAR_CENTRE) + term
            rest = scaled * (-x * x).exp() - x.erfc()
            count = ctx.cap
            orders = range(count - 1) if at is middle else [count - 1]
            found[place] = sum(top(rest[order]) * radius**order for order in orders)
        return sum(found)

    def left(self, t: arb) -> float:
        """The error of what is subtracted from 1, in a piece."""
        y = t - FAR_CENTRE  # exact
        scaled, error = self.horner(self.terms, y)
        worst = 0.0
        for n in range(self.most + 1):
            r = n * arb.const_log2() - t * t
            if not abs(r) > self.reach:
                r = r.intersection(arb(0, self.reach))
                off = self.r(t, n)
                r += arb(0, off)
                m = self.horner(self.exp.terms, r)
                value, moved = self.fma(m, r * r, r, self.half(top(r * r)))
                moved += self.exp.apart(r) + off * top(r.exp())
                wrong = error * (top(1 + value) + moved) + top(scaled) * moved
                if not self.fused:
                    wrong += self.half(top(scaled * value) + wrong)
                wrong += self.half(top(scaled * (1 + value)) + wrong)
                worst = max(worst, math.ldexp(wrong, -n))
        return worst + self.apart(t)

    def ulps(self, t: arb) -> float:
        """The error of the result in a piece, in ulps of its true value."""
        return 0.5 + self.left(t) / ULP


@pytest.fixture(autouse=True)
def _bits() -> Any:
    before = ctx.prec, ctx.cap
    ctx.prec, ctx.cap = 250, 8
    yield
    ctx.prec, ctx.cap = before


@pytest.mark.parametrize("fused", FUSED)
def test_the_error_is_less_than_an_ulp_near_0(fused: bool) -> None:
    proof = Near(fused)
    found = [proof.ulps(x) for x in pieces(0.0, BORDER)]
    assert 0.5 < max(found) < 0.99


@pytest.mark.parametrize("fused", FUSED)
def test_the_error_is_less_than_an_ulp_far_from_0(fused: bool) -> None:
    proof = Far(fused)
    found = [proof.ulps(t) for t in pieces(BORDER, FURTHEST)]
    assert 0.5 < max(found) < 0.99


def test_products_that_are_subnormal_add_little() -> None:
    """Where ``x c`` is rounded, it is off by half of the least number.

    Where that is half of an ulp of the result, the sum is exact; else, it is at most 1/4 of one.
    c is the same there for all x.
    """
    value = np.float32(NEAR[-1])
    for term in NEAR[-2::-1]:
        value = value * np.float32(-NEAR_CENTRE) + np.float32(term)
    slope = 2 / arb.pi().sqrt()
    assert 0.5 + 0.25 + top(float(value) + 1 - slope) * 2**24 / 1.128 < 0.99


def test_the_result_is_1_from_the_furthest_on() -> None:
    furthest = arb(FURTHEST)
    for fused in (True, False):
        assert top(furthest.erfc()) + Far(fused).left(furthest) < ULP / 2


@pytest.mark.parametrize(("low", "high"), [(BORDER, 1.0), (1.0, 2.0), (2.0, FURTHEST)])
def test_the_distance_from_the_centre_is_exact(low: float, high: float) -> None:
    ulp = math.ldexp(1.0, math.frexp(low)[1] - 24)
    assert FAR_CENTRE % ulp == 0
    assert max(abs(low - FAR_CENTRE), abs(high - FAR_CENTRE)) <= 2**24 * ulp


# -- the compiled text


@pytest.fixture(scope="module", params=LEVELS)
def built(request: Any, tmp_path_factory: Any) -> Built:
    return Built(tmp_path_factory.mktemp("erf"), request.param, "erf", (F32,))


def test_samples_are_off_by_less_than_an_ulp(built: Built) -> None:
    draws = np.random.default_rng(0)
    borders = np.array([BORDER, FURTHEST, 0.0], np.float32)
    near = [np.nextafter(borders, np.float32(way)) for way in (-np.inf, np.inf)]
    x = np.concatenate([
        borders, *near, draws.uniform(-4.1, 4.1, 4000), draws.uniform(0.8, 1.1, 2000),
        draws.uniform(-1, 1, 1000) * 2.0 ** draws.integers(-149, 0, 1000),
        draws.uniform(-1, 1, 500) * 2.0 ** draws.integers(-128, -122, 500),
    ]).astype(np.float32)  # fmt: skip
    for given, found in zip(x.tolist(), built(F32, x).tolist(), strict=True):
        true = arb(given).erf()
        place = max(math.frexp(float(true.mid()))[1] - 1, F32.lowest) - F32.digits
        assert abs(true - found) < arb(2) ** place, (given, found)


def test_special_values(built: Built) -> None:
    least = float(np.finfo(np.float32).smallest_subnormal)
    x = [math.inf, -math.inf, 1e30, -1e30, 4.0, -4.0, 0.0, -0.0, least, -least]
    found = built(F32, x)
    assert found.tolist() == [1, -1, 1, -1, 1, -1, 0, 0, least, -least]
    assert (np.signbit(found) == np.signbit(x)).all()
    nans = [one | low for one in (0x7F800000, 0xFF800000) for low in (1, 5, 1 << 22)]
    assert np.isnan(built(F32, np.array(nans, np.uint32).view(np.float32))).all()


def test_bits_do_not_depend_on_the_place_in_a_loop(built: Built) -> None:
    x = np.random.default_rng(1).uniform(-4.1, 4.1, 67)
    whole = built(F32, x)
    for begin, end in ((0, 1), (1, 67), (3, 20), (15, 66), (64, 67)):
        assert (built(F32, x[begin:end]) == whole[begin:end]).all()
