"""Power series along a line, enclosed: they are those of the functions, and decide nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg
from symgrad.proof.oracle import balls, lines
from symgrad.proof.oracle.balls import Jet, Uncertain
from symgrad.proof.oracle.flint import fmpq
from symgrad.proof.oracle.lines import Beside, Line, applied, inverse
from tests.suite.adversarial.program import class_of, class_text

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": mpmath.exp, "expm1": mpmath.expm1, "sin": mpmath.sin, "cos": mpmath.cos,
    "tan": mpmath.tan, "atan": mpmath.atan, "sinh": mpmath.sinh, "cosh": mpmath.cosh,
    "tanh": mpmath.tanh, "asinh": mpmath.asinh, "erf": mpmath.erf, "erfc": mpmath.erfc,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "square": lambda x: x * x, "log1p": mpmath.log1p, "sqrt": mpmath.sqrt, "log": mpmath.log,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x), "lgamma": mpmath.loggamma, "exp2": lambda x: 2**x,
    "reciprocal": lambda x: 1 / x, "abs": abs, "relu": lambda x: max(x, 0), "atanh": mpmath.atanh,
    "log_sigmoid": lambda x: -mpmath.log1p(mpmath.exp(-x)), "asin": mpmath.asin,
}  # fmt: skip
STARTS = st.sampled_from((0, 1, fmpq(1, 2), fmpq(1, 3), fmpq(-1, 2)))
AT = mpmath.mpf(2) ** -30


def moving(start: Any, side: int = 1) -> tuple[Line, Any]:
    """X + t as a line, and as a number for a small t."""
    x = fmpq(start)
    return Line([x, fmpq(1)], whole=True), mpmath.mpf(int(x.p)) / int(x.q) + side * AT


def near(one: Line, side: int) -> Any:
    """The value of a line for a small t."""
    total = mpmath.mpf(0)
    for k, part in enumerate(one.known):
        middle = mpmath.mpf(str(balls.ball(part).mid().str(80, radius=False)))
        total += middle * (side * AT) ** (one.low + k)
    return total


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(FUNCTIONS)), min_size=1, max_size=3), STARTS,
    st.sampled_from((1, -1)), st.sampled_from(("", "+", "*", "/")),
)  # fmt: skip
def test_a_line_is_its_function(names: list[str], start: Any, side: int, how: str) -> None:
    with mpmath.workdps(80), balls.working(400), lines.sharing():
        x, value = moving(start, side)
        found, true = x, value
        try:
            for name in names:
                found, true = applied(name, Beside(side), found), FUNCTIONS[name](true)
                if isinstance(true, mpmath.mpc):
                    return
            if how:
                base, at = moving(0, side)
                found = {"+": base + found, "*": base * found, "/": base / found}[how]
                true = {"+": at + true, "*": at * true, "/": at / true}[how]
        except (Uncertain, ZeroDivisionError, ValueError):
            return
        if found.parts is None or found.end < 3:
            return
        allowed = 1e30 * AT**found.end if not found.whole else mpmath.mpf(10) ** -50
        assert abs(near(found, side) - true) <= allowed * (1 + abs(true))


def test_what_cancels_is_exact() -> None:
    with balls.working(200), lines.sharing():
        x, _ = moving(0)
        sinc = applied("sin", Beside(1), x) / x
        assert (sinc.low, sinc.at(0), sinc.at(1)) == (0, 1, 0)
        rest = (applied("exp", Beside(1), x) - 1 - x) / (x * x)
        assert rest.low == 0
        assert rest.at(0) == fmpq(1, 2)


def test_equal_numbers_are_known_to_be_equal() -> None:
    with balls.working(200), lines.sharing():
        (x, _), (three, _) = moving(3), moving(3)
        constant = Line([fmpq(3)], whole=True)
        quotient = (applied("exp", Beside(1), x) - applied("exp", Beside(1), constant)) / (x - 3)
        here = applied("exp", Beside(1), constant)
        assert balls.certainly_equal(quotient.at(0), here.at(0))
        assert three.whole


def test_nothing_is_said_of_what_has_no_series() -> None:
    with balls.working(200), lines.sharing():
        x, _ = moving(0)
        assert applied("log", Beside(1), x).parts is None
        assert applied("sin", Beside(1), inverse(x)).parts is None
        assert inverse(Line([], whole=True)).parts is None
        assert applied("erfinv", Beside(1), x).parts is None
        ball = Line([balls.around(fmpq(0), fmpq(1, 10**9)), fmpq(1)], whole=True)
        with pytest.raises(Uncertain):
            inverse(ball)
        with pytest.raises(Uncertain):
            Beside(1).order(ball, Line([], whole=True))


def test_sides_are_told_apart() -> None:
    with balls.working(200), lines.sharing():
        x, _ = moving(2)
        two = lines.line(Jet(fmpq(2)))
        assert (Beside(1).order(x, two), Beside(-1).order(x, two)) == (1, -1)
        assert (Beside(1).whole(x), Beside(-1).whole(x)) == (2, 1)
        tie = x + lines.line(Jet(balls.HALF))
        rounded = [applied("round", Beside(side), one) for side in (1, -1) for one in (x, tie)]
        assert [one.at(0) for one in rounded] == [2, 3, 2, 2]
        square = (x - 2) * (x - 2)
        assert Beside(1).order(square, lines.line(Jet(fmpq(0)))) == 1
        assert Beside(-1).order(square, lines.line(Jet(fmpq(0)))) == 1
        assert math.isinf(balls.INFINITY)


def test_roots_of_squares_are_absolute_values() -> None:
    with balls.working(200), lines.sharing():
        x, _ = moving(0)
        zero = Line([], whole=True)
        for side in (1, -1):
            beside = Beside(side)
            assert applied("sqrt", beside, x * x).at(1) == side
            assert applied("hypot", beside, x, zero).at(1) == side
            assert applied("sqrt", beside, x * x * x * x).at(2) == 1
            assert beside.asked == [side, side, 1]
        assert applied("sqrt", Beside(1), x).parts is None
        assert applied("sqrt", Beside(1), -(x * x)).parts is None
        assert applied("sqrt", Beside(1), zero).at(0) == 0


def test_an_infinity_is_known_where_it_is_compared() -> None:
    with balls.working(200), lines.sharing():
        x, _ = moving(2)
        above, below = lines.literal(math.inf), lines.literal(-math.inf)
        assert (Beside(1).order(x, above), Beside(1).order(x, below)) == (-1, 1)
        assert Beside(1).order(below, above) == -1
        assert Beside(1).order(lines.literal(math.inf), above) == 0
        assert (above + x).parts is None
        for unknown in (lines.literal(math.nan), above * x, inverse(x - 2)):
            with pytest.raises(Uncertain):
                Beside(1).order(unknown, above)


def report(forward: str, backward: str) -> sg.Report:
    text = class_text("Judged", forward, backward, "x")
    return sg.verify(class_of("Judged", text, sg), "n", suggest=False)


def test_a_refutation_on_a_boundary_prints_what_is_enclosed() -> None:
    """No quotient's error is printed as the derivative: it is 0, and not 1e-20."""
    found = report("sg.where(x > 0, x * x, -x * x)", "sg.where(x == 0, g, 2 * g * x.abs())")
    example = found.inputs["x"].counterexample
    assert example is not None
    assert (example.hand_text, example.true_text) == ("1", "0")


def test_where_no_enclosure_shows_it_nothing_is_refuted() -> None:
    """2/sqrt(pi), rounded, is not certainly what forward is beside the point."""
    head = "z = x == 0; s = sg.where(z, 1.0, x); "
    slope = "(1.1283791670955126 * s * (-s * s).exp() - s.erf()) / (s * s)"
    found = report(
        f"{head}sg.where(z, 1.1283791670955126, s.erf() / s)",
        f"{head}g * sg.where(z, 1.0, {slope})",
    )
    assert found.verdict != sg.REFUTED
    assert "but where x == 0" in str(found)
