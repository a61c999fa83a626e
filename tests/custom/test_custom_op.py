"""Scalar C functions as ops: eager, in kernels, differentiated, judged; wrong ones refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import symgrad as sg
from symgrad.custom import CustomOpError, custom_op, define
from symgrad.errors import BuildError
from symgrad.proof.scalars import uninterpreted

SINC = """
/* sin(x) / x; sinc_of(0) is 1 */
double sinc_of(double x)
{
    return fabs(x) < 1e-8 ? 1.0 : sin(x) / x;
}
float sinc_off(float x) { return fabsf(x) < 1e-4f ? 1.0f : sinf(x) / x; }
"""


def sinc_meaning(sp: Any, x: Any) -> Any:
    return sp.Piecewise((sp.sin(x) / x, sp.Ne(x, 0)), (1, True))


@pytest.fixture(autouse=True, scope="module")
def declared() -> Iterator[None]:
    """The ops of this module, which other tests must not find in the registry."""
    custom_op("sinc_of", c=SINC, meaning=sinc_meaning)
    custom_op(
        "pade_tanh",  # of tanh, known by its derivative alone
        c="static double square(double x) { return x * x; }\n"
        "double pade_tanh(double x) { return x * (27.0 + square(x)) / (27.0 + 9.0 * square(x)); }",
        derivative=lambda x: ((x * x - 9) / (3 * (x * x + 3))) ** 2,
    )
    custom_op("bessel_j0", symbol="j0", derivative=lambda x: -sg.bessel_j1(x))
    custom_op("bessel_j1", symbol="j1", derivative=lambda x: sg.bessel_j0(x) - sg.bessel_j1(x) / x)
    custom_op(
        "cube_root", symbol="cbrt", derivative=lambda x: 1 / (3 * sg.cube_root(x) ** 2),
        domain=(0.0, math.inf),
    )  # fmt: skip
    custom_op(
        "blend", c="double blend(double x, double y) { return x * exp(-y * y); }",
        meaning=lambda sp, x, y: x * sp.exp(-(y**2)),
        derivative=lambda x, y: (sg.exp(-y * y), -2 * x * y * sg.exp(-y * y)),
    )  # fmt: skip
    yield
    for name in list(define._known):
        define.undeclare(name)


class _Late:
    """An op by its name, looked up when it is used."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *operands: Any) -> Any:
        return getattr(sg, self.name)(*operands)


sinc, pade, bessel = _Late("sinc_of"), _Late("pade_tanh"), _Late("bessel_j0")
bessel1, cube_root, blend = _Late("bessel_j1"), _Late("cube_root"), _Late("blend")


def function(forward_: Any, backward_: Any) -> Any:
    class Written(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = forward_(x)
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * backward_(*ctx.saved_tensors)

    return Written


def right_sinc(x: Any, y: Any) -> Any:
    return (sg.cos(x) - y) / x


CASES = [
    (function(sinc, right_sinc), np.sinc, "PROVED"),
    (function(sinc, lambda x, y: sg.cos(x) / x), None, "REFUTED"),
    (function(pade, lambda x, y: ((x * x - 9) / (3 * (x * x + 3))) ** 2), None, "PROVED"),
    (function(pade, lambda x, y: 1 - y * y), None, "REFUTED"),
    (function(lambda x: bessel(2 * x), lambda x, y: -2 * bessel1(2 * x)), None, "PROVED"),
    (function(lambda x: bessel(2 * x), lambda x, y: -bessel1(2 * x)), None, "REFUTED"),
    (function(cube_root, lambda x, y: 1 / (3 * y * y)), None, "PROVED"),
    # Right, but not by what is declared: what doubles cannot tell apart refutes nothing.
    (function(cube_root, lambda x, y: y / (3 * x)), None, "UNDECIDED"),
    (function(cube_root, lambda x, y: y / (3 * x + 0.001)), None, "REFUTED"),
]


@pytest.mark.parametrize(("written", "_", "verdict"), CASES)
def test_judged_by_its_meaning_or_its_derivative(written: Any, _: Any, verdict: str) -> None:
    assert str(sg.verify(written, "n m").verdict) == verdict


def test_what_was_declared_is_printed() -> None:
    """[rule: declared-derivative]: the axioms, those of what a derivative is made of too."""
    report = str(sg.verify(CASES[4][0], "n"))
    assert "the derivative of bessel_j0(x) is -bessel_j1(x)" in report
    assert "the derivative of bessel_j1(x) is bessel_j0(x) - bessel_j1(x)/x" in report
    assert "sinc_of(x) is Piecewise(" in " ".join(str(sg.verify(CASES[0][0], "n")).split())


def test_order_two() -> None:
    written = function(pade, lambda x, y: ((x * x - 9) / (3 * (x * x + 3))) ** 2)
    assert str(sg.verify(written, "n", order=2).verdict) == "PROVED"


EAGER = [
    (sinc, lambda x: np.sinc(x / np.pi)),
    (bessel, np.vectorize(lambda x: float(mpmath.besselj(0, x)), otypes=[float])),
    (cube_root, np.cbrt),
    (pade, lambda x: x * (27 + x * x) / (27 + 9 * x * x)),
]


@pytest.mark.parametrize(("op", "numpy"), EAGER)
@given(data=st.data())
def test_eager_values(op: Any, numpy: Any, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["float32", "float64"]))
    elements = st.floats(0.125, 8, width=32)
    x = data.draw(arrays.arrays(dtype, arrays.array_shapes(max_dims=2), elements=elements))
    found = op(sg.from_numpy(x)).numpy()
    assert found.dtype == x.dtype
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(found, numpy(x.astype(float)), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("op", [sinc, bessel, cube_root, pade])
def test_gradients(op: Any) -> None:
    x = sg.tensor([0.25, 0.5, 2.0], dtype=sg.float64, requires_grad=True)
    assert sg.gradcheck(op, (x,))
    assert sg.gradgradcheck(op, (x,))


def test_two_operands_broadcast() -> None:
    x = sg.tensor([[0.5], [2.0]], dtype=sg.float64, requires_grad=True)
    y = sg.tensor([0.25, -1.0, 3.0], dtype=sg.float64, requires_grad=True)
    assert blend(x, y).shape == (2, 3)
    assert sg.gradcheck(blend, (x, y))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_kernels_hold_the_c(dtype: str) -> None:
    op: Any = sg.compile(CASES[0][0], f"{dtype}[n m]")
    text = op.c_paths[0].read_text(encoding="utf-8")
    assert "static double symgrad_sinc_of(double x)" in text
    assert ("symgrad_sinc_off(x" in text) == (dtype == "f32")
    kind = np.float32 if dtype == "f32" else np.float64
    x = np.linspace(-3, 3, 40, dtype=kind).reshape(8, 5)
    y, residuals = op.forward(x)
    (gradient,) = op.backward(residuals, np.ones_like(y))
    exact = x.astype(float)
    np.testing.assert_allclose(y, np.sinc(exact / np.pi), rtol=1e-5)
    wanted = (np.cos(exact) - np.sinc(exact / np.pi)) / exact
    np.testing.assert_allclose(gradient, wanted, rtol=1e-3, atol=1e-6)
    eager = sinc(sg.from_numpy(x)).numpy()
    np.testing.assert_array_equal(y, eager)


def test_a_symbol_and_helpers_of_the_users_own_in_a_kernel() -> None:
    for case, op in ((CASES[4][0], bessel), (CASES[2][0], pade)):
        compiled: Any = sg.compile(case, "f64[n]")
        x = np.linspace(0.5, 4, 7)
        factor = 2 if op is bessel else 1
        wanted = op(sg.from_numpy(factor * x)).numpy()
        np.testing.assert_allclose(compiled(x), wanted, rtol=1e-15)


def test_a_package_holds_the_c_and_needs_no_definition(tmp_path: Path) -> None:
    from symgrad import compiler

    compiler.build([CASES[0][0]], tmp_path, specs=("f32[n]",), compiled=False)
    assert "symgrad_sinc_of" in (tmp_path / "written.c").read_text(encoding="utf-8")
    wrapper = (tmp_path / "written.py").read_text(encoding="utf-8")
    assert "import symgrad" not in wrapper
    assert "custom_op" not in wrapper


@pytest.mark.quick
def test_another_text_has_another_key() -> None:
    first = custom_op(
        "scaled_a", c="double scaled_a(double x) { return 2.0 * x; }", meaning=lambda sp, x: 2 * x
    )
    assert first(sg.tensor(3.0)).item() == 6.0
    same = custom_op(
        "scaled_a", c="double scaled_a(double x) { return 2.0 * x; }", meaning=lambda sp, x: 2 * x
    )
    assert same is first
    with pytest.raises(CustomOpError, match="'scaled_a' is taken: declared differently"):
        custom_op(
            "scaled_a", c="double scaled_a(double x) { return x + x; }",
            meaning=lambda sp, x: 2 * x,
        )  # fmt: skip


# -- refused


def test_names_that_are_taken() -> None:
    for name in ("exp", "softmax", "where", "expf", "fused", "bits"):
        with pytest.raises(CustomOpError, match=f"'{name}' is taken"):
            custom_op(name, symbol="exp", meaning=lambda sp, x: sp.exp(x))
    with pytest.raises(CustomOpError, match="not a valid op name"):
        custom_op("not a name", symbol="exp", meaning=lambda sp, x: sp.exp(x))


def test_c_that_does_not_compile() -> None:
    with pytest.raises(BuildError, match="undeclared") as caught:
        custom_op(
            "broken", c="double broken(double x) { return x + y; }", meaning=lambda sp, x: x
        )  # fmt: skip
    assert "broken" in str(caught.value)
    with pytest.raises(BuildError, match="no_such_function"):
        custom_op("unlinked", symbol="no_such_function", meaning=lambda sp, x: x)


def test_a_meaning_that_differs() -> None:
    text = "double half(double x) { return x > 5.5 ? 0.0 : 0.5 * x; }"
    with pytest.raises(CustomOpError, match=r"half\([0-9.]+\) is 0.0 in C \(float64\)") as caught:
        custom_op("half", c=text, meaning=lambda sp, x: x / 2)
    assert "its meaning is" in str(caught.value)
    half = custom_op("half", c=text, meaning=lambda sp, x: x / 2, domain=(-5.0, 5.0))
    assert half(sg.tensor(3.0)).item() == 1.5


def test_a_float_variant_that_differs() -> None:
    text = "double third(double x) { return x / 3.0; } \nfloat thirdf(float x) { return x / 2.0f; }"
    with pytest.raises(CustomOpError, match=r"in C \(float32\)"):
        custom_op("third", c=text, meaning=lambda sp, x: x / 3)


def test_a_derivative_that_differs() -> None:
    cube = "double cubed(double x) { return x * x * x; }"
    with pytest.raises(CustomOpError, match="the declared derivative of 'cubed'"):
        custom_op("cubed", c=cube, derivative=lambda x: 2 * x * x)
    with pytest.raises(CustomOpError, match="its meaning's is"):
        custom_op("cubed", c=cube, meaning=lambda sp, x: x**3, derivative=lambda x: 2 * x * x)
    cubed = custom_op("cubed", c=cube, derivative=lambda x: 3 * x * x)
    assert str(sg.verify(function(cubed, lambda x, y: 3 * x**2), "n").verdict) == "PROVED"
    assert str(sg.verify(function(cubed, lambda x, y: 2 * x**2), "n").verdict) == "REFUTED"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("double other(double x) { return x; }", "defines other, not wanted"),
        ("", "defines no function"),
        ("float wanted(double x) { return x; }", "not float wanted"),
        ("double wanted(int x) { return x; }", "not double wanted"),
        ("double wanted(double x, double y) { return x; }", "takes 2 operands"),
        ("double wanted(void) { return 1; }", "not double wanted"),
    ],
)
def test_wrong_signatures(text: str, said: str) -> None:
    with pytest.raises(CustomOpError, match=said):
        custom_op("wanted", c=text, meaning=lambda sp, x: x)


def test_incomplete_declarations() -> None:
    with pytest.raises(CustomOpError, match="either c= or symbol="):
        custom_op("nothing", meaning=lambda sp, x: x)
    with pytest.raises(CustomOpError, match="a meaning or a derivative"):
        custom_op("nothing", symbol="sin")
    with pytest.raises(CustomOpError, match="has no meaning"):
        custom_op("nothing", symbol="hypot", derivative=lambda x, y: (x, y))
    with pytest.raises(CustomOpError, match="not an open interval"):
        custom_op("nothing", symbol="sin", meaning=lambda sp, x: sp.sin(x), domain=(1, 0))
    with pytest.raises(CustomOpError, match="cannot differentiate"):
        custom_op("nothing", symbol="sin", meaning=lambda sp, x: sp.Function("f")(x))
    with pytest.raises(CustomOpError, match="no form in index notation"):
        custom_op("nothing", symbol="j0", meaning=lambda sp, x: sp.besselj(0, x))


def test_operands_are_counted() -> None:
    with pytest.raises(CustomOpError, match="2 operands given, 1 expected"):
        sinc(sg.tensor(1.0), sg.tensor(2.0))


@given(st.floats(0.1, 6.0))
def test_the_model_has_the_declared_derivative(x: float) -> None:
    known = uninterpreted.KNOWN["custom_bessel_j0"]
    with mpmath.workdps(60):
        at, step = mpmath.mpf(x), mpmath.mpf(10) ** -20
        quotient = (known.model(at + step) - known.model(at - step)) / (2 * step)
        slope = -uninterpreted.KNOWN["custom_bessel_j1"].model(at)
        assert abs(quotient - slope) < mpmath.mpf(10) ** -32
