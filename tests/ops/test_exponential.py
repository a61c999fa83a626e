"""``exp`` in C: the error is proved to be less than one ulp, and measured at samples."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

from symgrad.ops.exponential_c import F32, F64, Exponential
from tests.ops.rounding import LEVELS, Built, Rounding, dtype, exact, top

FORMS = [pytest.param(F32, id="f32"), pytest.param(F64, id="f64")]
FUSED = [pytest.param(True, id="fused"), pytest.param(False, id="twice")]
PIECES = 600


class Proof(Rounding):
    """Bounds on what ``symgrad_exp`` does between ``zero`` and ``largest``."""

    def __init__(self, form: Exponential, fused: bool) -> None:
        super().__init__(form, fused)
        self.terms = [exact(form, one) for one in form.terms]
        self.log2e, self.high, self.low = (
            exact(form, one) for one in (form.log2e, form.high, form.low)
        )
        self.longest = max(-form.zero, form.largest)
        product = top(self.longest * self.log2e)
        whole = 0.5 + self.half(product)  # how far n may be from x log2 e
        apart = whole + top(self.longest * (self.log2e - 1 / arb.const_log2()))
        self.most = math.ceil(product + 1)  # the greatest n
        self.reach = top(apart * arb.const_log2())  # the greatest r
        self.left = self.most * top(arb.const_log2() - self.high - self.low)
        self.tail = self.half(self.most * top(self.low))  # in the product n low

    def apart(self, r: arb) -> float:
        """How far ``1 + r + terms[0] r**2 + ...`` is from ``e**r`` in a piece."""
        middle, far = arb(r.mid()), len(self.terms) + 25
        rest = [*self.terms, *[arb(0)] * 23]
        rest = [one - 1 / arb.fac_ui(place) for place, one in enumerate(rest, 2)]
        at = sum((one * middle**place for place, one in enumerate(rest, 2)), arb(0))
        slope = sum((one * place * r ** (place - 1) for place, one in enumerate(rest, 2)), arb(0))
        return top(at + slope * (r - middle)) + 2 * top(r) ** far / math.factorial(far)

    def error(self, r: arb) -> float:
        """Of ``e**r`` in a piece, in absolute terms, without the last rounding."""
        one = arb(1)
        moved = self.left + self.tail + self.half(top(r) + 1e-6)  # r from what it stands for
        value = self.horner(self.terms, r)
        if self.fused:
            inner = self.fma(value, r, one)
            rounded = inner[1] * top(r)
            return self.apart(r) + top(r.exp()) * moved + rounded
        square = r * r
        off = self.half(top(square)) * top(value[0]) + value[1] * top(square)
        off += self.half(top(square * value[0]) + off)
        off += self.tail + self.half(top(square * value[0]) + off + self.tail + self.left)
        off += self.half(top(square * value[0]) + off + self.tail + self.left + self.half(1.0))
        return self.apart(r) + self.left + off + top((r.exp() - 1) * (1 + 1e-6)) * moved

    def ulps(self) -> float:
        """The error of ``e**r``, in ulps of its true value.

        What should be less than 1 and is not before it is rounded is rounded to 1.
        """
        worst = 0.0
        for sign, place in itertools.product((-1, 1), range(PIECES)):
            step = arb(self.reach) / PIECES
            r = sign * step * (arb(place) + arb(0.5, 0.5))
            ulp = math.ldexp(1.0, -self.form.digits - (sign < 0))
            worst = max(worst, self.error(r) / ulp + 0.5)
        return worst


@pytest.fixture(autouse=True)
def _bits() -> Any:
    before, ctx.prec = ctx.prec, 250
    yield
    ctx.prec = before


@pytest.mark.parametrize("fused", FUSED)
@pytest.mark.parametrize("form", FORMS)
def test_the_error_is_less_than_an_ulp(form: Exponential, fused: bool) -> None:
    """And where the result is subnormal, half of an ulp and half of this."""
    found = Proof(form, fused).ulps()
    assert 0.5 < found < 0.99


@pytest.mark.parametrize("form", FORMS)
def test_x_less_n_times_high_is_exact(form: Exponential) -> None:
    proof = Proof(form, fused=False)
    over, under = float(proof.high).as_integer_ratio()
    assert proof.most * over < 2 ** (form.digits + 1)  # n times high
    # Where n is not 0, x is at least 1/4: both are multiples of the same, and less than 1/2 apart.
    assert proof.reach < 0.36
    assert 2 * 0.36 - math.log(2) < 0.25 < math.log(2) - 0.36
    assert under <= 2 ** (form.digits + 2)
    assert proof.reach + proof.most * float(proof.low) + proof.left < 0.5


@pytest.mark.parametrize("form", FORMS)
def test_n_goes_into_the_exponent(form: Exponential) -> None:
    number, bits = dtype(form), np.uint32 if form is F32 else np.uint64
    width = 8 * number().itemsize
    most = Proof(form, fused=False).most
    for n in (-most, -1, 0, 1, most):
        shifted = int(number(form.whole + n).view(bits)) << form.digits
        assert (shifted - (n << form.digits)) % 2**width == 0


@pytest.mark.parametrize("form", FORMS)
def test_borders_lie_between_two_numbers(form: Exponential) -> None:
    """So far from them that an error of an ulp does not cross them."""
    number = dtype(form)
    ulp = arb(2) ** -form.digits
    least = arb(2) ** form.lowest
    subnormal, largest = number(form.subnormal), number(form.largest)
    assert arb(float(subnormal)).exp() > least * (1 + 2 * ulp)
    assert arb(float(np.nextafter(subnormal, number(-np.inf)))).exp() < least * (1 - 2 * ulp)
    most = arb(float(np.finfo(number).max))
    assert arb(float(largest)).exp() < most * (1 - 2 * ulp)
    assert arb(float(np.nextafter(largest, number(np.inf)))).exp() > most * (1 + 2 * ulp)
    assert (1 + 2 * ulp) * arb(float(number(form.zero))).exp() < least * ulp / 2


# -- the compiled text


@pytest.fixture(scope="module", params=LEVELS)
def level(request: Any) -> Any:
    return request.param


@pytest.fixture(scope="module")
def built(level: str, tmp_path_factory: Any) -> Built:
    return Built(tmp_path_factory.mktemp("exp"), level, "exp", (F32, F64))


@pytest.mark.parametrize("form", FORMS)
def test_samples_are_off_by_less_than_an_ulp(built: Built, form: Exponential) -> None:
    number, draws = dtype(form), np.random.default_rng(0)
    borders = np.array([form.subnormal, form.largest, form.zero, 0.0], number)
    near = [np.nextafter(borders, number(way)) for way in (-np.inf, np.inf)]
    lowest = form.zero * (1 - 2**-6)
    x = np.concatenate([
        borders, *near, draws.uniform(form.zero, form.largest, 4000),
        draws.uniform(lowest, form.subnormal, 1000), draws.uniform(-1, 1, 2000),
        np.arange(-form.largest, form.largest, math.log(2) / 2)[:2000],
        draws.uniform(-1, 1, 500) * 2.0 ** draws.integers(form.lowest, 0, 500),
    ]).astype(number)  # fmt: skip
    for given, found in zip(x.tolist(), built(form, x).tolist(), strict=True):
        true = arb(given).exp()
        if math.isinf(found):
            assert given > float(dtype(form)(form.largest))
            continue
        place = max(math.frexp(float(true.mid()))[1] - 1, form.lowest) - form.digits
        assert abs(true - found) < arb(2) ** place, (given, found)


@pytest.mark.parametrize("form", FORMS)
def test_special_values(built: Built, form: Exponential) -> None:
    least = np.finfo(dtype(form)).smallest_subnormal
    x = [math.inf, 1e30, -math.inf, -1e30, 2 * form.zero, 0.0, -0.0, least, -least]
    assert built(form, x).tolist() == [math.inf, math.inf, 0, 0, 0, 1, 1, 1, 1]
    bits, payload = (np.uint32, 22) if form is F32 else (np.uint64, 51)
    patterns = [int(np.array(one, dtype(form)).view(bits)) for one in (math.inf, -math.inf)]
    nans = [one | low for one in patterns for low in (1, 5, 1 << payload, (1 << payload) + 9)]
    assert np.isnan(built(form, np.array(nans, bits).view(dtype(form)))).all()


@pytest.mark.parametrize("form", FORMS)
def test_bits_do_not_depend_on_the_place_in_a_loop(built: Built, form: Exponential) -> None:
    x = np.random.default_rng(1).uniform(1.1 * form.zero, 1.1 * form.largest, 67)
    whole = built(form, x)
    for begin, end in ((0, 1), (1, 67), (3, 20), (15, 66), (64, 67)):
        assert (built(form, x[begin:end]) == whole[begin:end]).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["sigmoid", "silu"])
def test_activations_have_the_bits_of_their_formulas(
    built: Built, level: str, tmp_path_factory: Any, name: str, form: Exponential
) -> None:
    """In a sum with 1, what is subnormal counts as nothing; all other bits of exp are there."""
    activation = Built(tmp_path_factory.mktemp(name), level, name, (form,))
    number, draws = dtype(form), np.random.default_rng(2)
    borders = [form.subnormal, math.ceil(form.subnormal), form.largest, form.zero, 0.0, math.inf]
    near = np.array([*borders, -math.inf, math.nan], number)
    near = np.concatenate([np.nextafter(near, number(way)) for way in (-np.inf, np.inf)] + [near])
    reach = 1.1 * form.zero
    x = np.concatenate([
        near, -near, draws.uniform(reach, -reach, 20000), draws.uniform(-3, 3, 20000),
        draws.uniform(-1, 1, 500) * 2.0 ** draws.integers(form.lowest, 0, 500),
    ]).astype(number)  # fmt: skip
    one = number(1)
    with np.errstate(all="ignore"):
        wanted = (one if name == "sigmoid" else x) / (one + built(form, -x))
    np.testing.assert_array_equal(activation(form, x), wanted)
    assert (one + math.exp(math.ceil(form.subnormal)) == one).all()
