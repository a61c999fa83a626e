"""What ``int``, ``float`` and ``math`` give for symbolic sizes is what they give for numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
from symgrad.frontend import integers
from tests.frontend.support import run
from tests.suite.adversarial.program import class_of, class_text

KNOWN = (
    "n & 7", "n & 12", "13 & n", "n & -4", "n | 5", "n ^ 6", "n >> 1", "n << 3", "~n",
    "pow(n, 3, 5)", "(-1) ** n", "(-2.0) ** n", "0 ** n", "n.conjugate()",
    "n.as_integer_ratio()[0]", "abs(-n / 3)", "(n / 4).real", "math.fsum([n, 0.5])",
    "math.hypot(n, 3)", "math.dist([n, 1], [2, n])", "math.degrees(n)", "math.ldexp(n, 3)",
    "math.gamma(n)", "math.comb(n, 3)", "math.perm(n, 2)", "math.expm1(-n)", "math.erf(1 / n)",
    "math.atan2(n, 2)", "math.isfinite(n) + 0.0", "divmod(n, 4)[1]", "math.gcd(n, 6)",
    "math.gcd(6, 4, n)", "math.lcm(n, 4)", "round(n, -1)", "round(n / 2)", "round(-n / 4)",
    "math.trunc((3 - n) / 2)", "math.ceil(0.5 * n)", "math.trunc(n * 0.75)",
    "math.floor(-1.25 * n)", "math.floor(0.5 * (n / 3))", "int(n / 3)", "int(n // 2) / 3",
    "math.ceil(float(n) / 4)", "math.floor((n - 5) / 2 + 1)", "int(-n / 3 / 2)", "float(3 - n)",
    "round(n / 2 + 0.5)", "math.floor(n / 3 + 0.5)", "int(n * 0.75 * 3)", "int(7 / (n * 0.5))",
    "1.0 + (n / 3 > 1.5) + 2 * (n / 3 == 4) + 4 * (2 >= n / 3)", "max(float(n), 2.5, n / 2)",
    "1.0 + bool(float(n) - 3) + (-n / 4 < -1.25) + (3 / (2 - n * 2.0 - 1) >= -1)",
    "1.0 + (float(n) in (2, 3)) + (float(n) != None) + (1 / n < 1 / 3.0 ** 0)",
    "(n / 4) // 1", "(n / 4) % 1", "math.fsum(k for k in (n, 1))",
)  # fmt: skip
UNKNOWN = (
    "n & (n - 1)", "1 << n", "round(n ** 0.5)", "math.isqrt(n)", "n.bit_length()", "hex(n)",
    "math.factorial(n)", "math.fmod(n, 3)", "n.to_bytes(8, 'big')", "math.frexp(n)[0]",
    "(n / 3).hex()", "math.gcd(n, n + 1)", "chr(n)", "math.ceil(math.log2(n))", "pow(n, 2.5, 3)",
    "math.isclose(n, 3)", "math.ceil(0.3 * n)", "math.floor(n / 3 * 3)", "math.ceil(n / 3 + n / 5)",
    "int(3 / (n / 7))", "1.0 + (0.1 * n > 1)", "1.0 + (n / 3 + 1 == (n + 3) / 3)",
)  # fmt: skip


@pytest.mark.parametrize("text", KNOWN)
def test_numbers_of_sizes_are_those_of_python(text: str) -> None:
    made: dict[str, Any] = {"math": math}
    exec(f"def number(n): return {text}\ndef forward(x): return x * 0 + number(x.shape[0])", made)
    sizes = (1, 2, 3, 5, 6, 12, 15, 25)
    points = [({"n": n}, {"x": np.ones(n)}) for n in sizes]
    for n, found in zip(sizes, run(made["forward"], ["n"], points), strict=True):
        np.testing.assert_allclose(found[0], made["number"](n), rtol=1e-12)


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_no_symbol_has_is_said_with_the_line(text: str) -> None:
    program = class_text("Asks", "x * x", f"n = x.shape[0]\nk = {text}\n2 * x * g", "x")
    report = sg.verify(class_of("Asks", f"import math\n{program}", sg), "n", timeout=None)
    assert str(report.verdict) == "UNDECIDED"
    reason = report.inputs["x"].reason
    assert "<adversarial Asks>:12" in reason
    assert "is symbolic, so it has no" in reason


def test_a_method_of_an_integer_that_takes_no_symbol_refutes_nothing() -> None:
    program = class_text("Asks", "x * x", "k = (1).__add__(x.shape[0])\n2 * x * g + 0 * k", "x")
    report = sg.verify(class_of("Asks", program, sg), "n", suggest=False, timeout=None)
    assert str(report.verdict) == "UNDECIDED"


@given(st.integers(-300, 300), st.integers(-300, 300), st.integers(0, 3))
def test_integers_are_computed_as_python_does(number: int, other: int, digits: int) -> None:
    assert integers.masked(number, other) == number & other
    assert integers.joined(number, other) == number | other
    assert integers.differing(number, other) == number ^ other
    assert integers.rounded(number, -digits) == round(number, -digits)
    assert integers.greatest_divisor(number, other) == math.gcd(number, other)
    if other:
        assert integers.nearest(number, other) == round(number / other)
        assert integers.truncated(number, other) == math.trunc(number / other)
    if number >= 0:
        assert integers.combinations(number, digits) == math.comb(number, digits)
        assert integers.arrangements(number, digits) == math.perm(number, digits)


class Averaged(sg.Function):
    """Its number of a size is made in forward, for both derivatives."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.factor = float(x.shape[-1]) ** -0.5 + len(x)
        return x * ctx.factor

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.factor

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        return tangent * ctx.factor


def test_a_float_of_a_size_is_one_in_a_jvp_and_in_a_kernel() -> None:
    report = sg.verify(Averaged, "n m", order=2)
    assert str(report.verdict) == "PROVED"
    assert "for all m, n >= 1" in str(report)
    op = sg.compile(Averaged, "f64[n m]")
    for n, m in ((3, 4), (1, 7)):
        found, _ = op.forward(np.ones((n, m)))
        np.testing.assert_allclose(found, m**-0.5 + n)
