"""Errors of kernels against ball arithmetic: the measure itself, and what it finds."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st

import symgrad as sg
from symgrad import compiler
from symgrad.accuracy import elementwise
from symgrad.accuracy.floats import FORMATS, around, errors, sweep
from symgrad.accuracy.records import OF_SUM, ULP, Measured, Place
from symgrad.accuracy.truth import KNOWN, Truth
from symgrad.frontend.trace import trace
from symgrad.ir.dtype import float32, float64
from symgrad.tools import accuracy as shown
from symgrad.tools.cli import main

FORMS = st.sampled_from(list(FORMATS.values()))


@pytest.fixture(autouse=True)
def _fewer_points(monkeypatch: Any) -> None:
    monkeypatch.setattr(elementwise, "ACCURACY_POINTS", 3000)
    monkeypatch.setattr(elementwise.measured, "__defaults__", (3000,))


@given(FORMS, st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False)))
@example(FORMATS["float32"], [-FORMATS["float32"].largest])
def test_places_are_in_the_order_of_the_numbers(form: Any, values: list[float]) -> None:
    array = np.asarray(values, dtype=form.dtype)
    places = form.to_order(array)
    assert (form.from_order(places) == array).all()
    below = form.from_order(places - 1)
    with np.errstate(over="ignore"):  # below the least number is minus infinity
        limited = np.nextafter(array, -np.inf, dtype=form.dtype)
    assert (below == np.maximum(limited, -form.largest)).all()


@pytest.mark.parametrize("form", FORMATS.values(), ids=str)
@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_a_sweep_meets_every_sign_and_exponent(form: Any, inputs: Any) -> None:
    for values in sweep(form, 40_000, inputs):
        exponents = np.frexp(values.astype(np.float64))[1]
        for sign in (-1, 1):
            met = set(exponents[np.sign(values) == sign].tolist())
            assert set(range(form.least + 1, form.greatest + 2)) <= met


@given(
    FORMS, st.floats(-(2.0**100), 2.0**100, width=32), st.integers(-40, 40), st.floats(-0.5, 0.5)
)
def test_an_error_is_counted_in_places(form: Any, value: Any, places: Any, part: Any) -> None:
    true = np.asarray([value], dtype=form.dtype)
    given = form.from_order(form.to_order(true) + places)
    gap = form.ulp(true.astype(np.float64)) * part
    error, broken = errors(form, given, true.astype(np.float64), gap)
    want = abs((float(given[0]) - float(true[0])) - float(gap[0])) / form.ulp(true)[0]
    assert error[0] == pytest.approx(want)
    assert not broken[0]
    assert abs(places) / 2 - 1 <= error[0] <= 2 * abs(places) + 1


@pytest.mark.parametrize("form", FORMATS.values(), ids=str)
def test_what_is_beyond_the_largest_number_has_to_be_infinite(form: Any) -> None:
    high = np.asarray([form.largest, form.largest, form.largest / 2, -math.inf, math.inf, 1.0])
    given = np.asarray([math.inf, form.largest, math.inf, -math.inf, form.largest, math.nan])
    error, broken = errors(form, given.astype(form.dtype), high, np.zeros(6))
    assert error[:2].tolist() == [1, 0]
    assert error[3:5].tolist() == [0, 1]
    assert broken.tolist() == [False, False, True, False, False, True]


@pytest.mark.parametrize("name", ["exp", "log1p", "tanh", "erf", "sigmoid", "softplus", "sin"])
def test_the_true_values_are_those_of_mpmath(name: Any) -> None:
    form, call = FORMATS["float64"], getattr(sg, name)
    one = type("One", (sg.Function,), {"forward": staticmethod(lambda ctx, x: call(x))})
    (node,) = trace(one, "f64[n]").cases[0].outputs
    points = np.asarray([-3.7, -0.9, -1e-300, 0.3, 5.5, 700.25, 1e17])
    values = Truth([node], form).at({"x": points}, {"n": points.size})[0]
    with mpmath.workdps(800):
        for x, high, low, state in zip(points, values.high, values.low, values.state, strict=True):
            if name == "log1p" and x < -1:
                assert state != KNOWN
                continue
            exact = {
                "exp": mpmath.exp, "tanh": mpmath.tanh, "erf": mpmath.erf, "sin": mpmath.sin,
                "log1p": lambda x: mpmath.log(1 + x),
                "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
                "softplus": lambda x: mpmath.log(1 + mpmath.exp(x)),
            }[name](mpmath.mpf(float(x)))  # fmt: skip
            if math.isinf(high):
                assert exact > form.largest
            else:
                gap = abs(mpmath.mpf(float(high)) + mpmath.mpf(float(low)) - exact)
                assert gap <= form.ulp(np.asarray(high)) * 2.0**-40 + form.subnormal


def test_a_sum_is_weighed_by_the_magnitudes_of_its_terms() -> None:
    class Sum(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return ((x * y).sum(-1) - 1).exp()

    (node,) = trace(Sum, "f64[n]", "f64[n]").cases[0].outputs
    x, y = np.asarray([3.0, -5.0, 2.0]), np.asarray([2.0, 1.0, -0.5])
    truth = Truth([node], FORMATS["float64"], weights=True)
    (values,) = truth.at({"x": x, "y": y}, {"n": 3})
    found = math.exp(float(x @ y) - 1)
    lost = np.abs(x) @ np.abs(y) + 1 - abs(float(x @ y) - 1)
    assert values.high[0] == pytest.approx(found)
    assert values.weight[0] == pytest.approx(found + found * lost)


def worst_of(one: Measured) -> Place:
    assert one.worst is not None
    return one.worst


class Naive(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return sg.exp(x) / (sg.exp(x) * 2.0 + 1.0)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * sg.exp(x) / (sg.exp(x) * 2.0 + 1.0) ** 2


def test_a_kernel_that_overflows_where_the_formula_does_not_is_named() -> None:
    found = compiler.accuracy(Naive, "n")
    assert {one.dtype for one in found.results} == {"float32", "float64"}
    for one in found.results:
        assert one.measure == ULP
        assert one.broken
        assert one.first_broken is not None
        limit = math.log(FORMATS[one.dtype].largest)
        assert limit / 2 - 1 < one.first_broken.at["x"] < limit + 20
        assert math.isfinite(one.first_broken.true)
    special = {(one.name, one.dtype, one.value): one for one in found.special}
    assert not special["output", "float32", "inf"].agrees
    assert special["output", "float32", "inf"].limit == 0.5
    assert special["output", "float32", "-inf"].agrees


def test_a_right_kernel_has_small_errors_everywhere() -> None:
    class Cube(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3 * x * x

    found = compiler.accuracy(Cube, "n m", dtypes=[float32])
    assert not found.failed
    assert all(one.points >= 3000 for one in found.results)
    assert all(worst_of(one).error < 2.6 for one in found.results)
    assert all(one.agrees for one in found.special)


def test_declared_facts_bound_the_sweep() -> None:
    class Root(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = sg.sqrt(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return g / (2 * y)

    found = compiler.accuracy(Root, "n", assume={"x": "(0, 100)"}, dtypes=[float64])
    assert all(0 < worst_of(one).at["x"] < 100 for one in found.results)
    assert {one.value for one in found.special} == {"least", "nan"}
    assert worst_of(found.results[0]).error <= 0.5001


def test_reductions_are_measured_at_stated_sizes() -> None:
    class Dot(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return (x * y).sum(-1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return g[:, None] * y, g[:, None] * x

    found = compiler.accuracy(
        Dot, "n m", "n m", dtypes=[float32], sizes=[{"n": 2, "m": 300}, {"n": 3, "m": 5}]
    )
    assert {one.name for one in found.results} == {"output", "grad_x", "grad_y"}
    for one in found.results:
        assert one.measure == OF_SUM
        assert not one.broken
        assert worst_of(one).error < 8
        assert {(worst_of(one).at["n"], worst_of(one).at["m"])} <= {(2, 300), (3, 5)}


@given(FORMS, st.floats(-(2.0**60), 2.0**60, width=32))
def test_a_closer_look_is_close(form: Any, value: Any) -> None:
    (near,) = around(form, [value], 48, 0)
    places = form.to_order(near) - form.place(value)
    assert {0, 1, -1} <= set(places.tolist())


def test_an_operation_is_named_by_itself() -> None:
    ((function, specs),) = shown.chosen("atan2")
    assert specs == ("n", "n")
    assert function.__name__ == "atan2"
    with pytest.raises(sg.SymgradError):
        shown.chosen("sum")


def test_the_command_prints_tables_json_and_a_plot(tmp_path: Path) -> None:
    plot = tmp_path / "p.svg"
    run = CliRunner().invoke(
        main, ["accuracy", "tanh", "--dtype", "float32", "--json", "--plot", str(plot)]
    )
    assert run.exit_code == 0, run.output
    (found,) = json.loads(run.stdout)
    assert {one["name"] for one in found["results"]} == {"output", "grad_x"}
    assert all(one["points"] > 0 for one in found["results"])
    text = plot.read_text()
    assert text.count("<polyline") == 4
    assert "grad_x" in text
    run = CliRunner().invoke(main, ["accuracy", "tanh", "--dtype", "float32"])
    assert run.exit_code == 0
    assert "ulp" in run.output
    assert "special values" in run.output
