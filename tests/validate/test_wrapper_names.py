"""Callers may name arguments: wrappers that give them other names than the Function are refused."""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad import compiler
from symgrad.emission import emit
from symgrad.kernels import OpPlan
from tests.validate.test_wrappers import judged

SOURCE = """
class Two(sg.Function):
    @staticmethod
    def forward(ctx, {parameters}):
        ctx.save_for_backward({first}, {second})
        ctx.number = {number}
        return {first} * {number}, {second} * {second}

    @staticmethod
    def backward(ctx, ga, gb):
        first, second = ctx.saved_tensors
        return ga * ctx.number, 2 * second * gb, None{nones}
"""
SPECS = ("f32[n m]", "f32[n m]")


def function(first: str, second: str, number: str, *others: str) -> Any:
    parameters = f"{first}, {second}, {number}=1.5" + "".join(f", {one}='a'" for one in others)
    scope: dict[str, Any] = {"sg": sg}
    exec(
        SOURCE.format(
            parameters=parameters, first=first, second=second, number=number,
            nones=", None" * len(others),
        ),
        scope,
    )  # fmt: skip
    return scope["Two"]


@cache
def of(*names: str) -> tuple[OpPlan, str]:
    request = compiler._requested(function(*names), None, SPECS, None, None)
    op = compiler.judged_plan(request, allow=("UNDECIDED", "REFUTED"))[0]
    return op, emit(op, "").wrapper()


NAMES = [
    ("x", "y", "alpha", "mode"), ("x", "x_", "alpha", "mode"), ("_x", "x", "x_", "mode"),
    ("type", "type_", "float", "int"), ("out", "out_", "number", "mode"),
    ("a", "out_", "out", "mode"), ("grad_output_0", "grad_output_1", "residuals", "mode"),
    ("n", "m", "needs_input_grad", "mode"), ("β", "b", "ё", "mode"),
    ("output_0", "output_1", "alpha", "mode"), ("int", "x", "int_", "mode"),
]  # fmt: skip


@pytest.mark.parametrize("names", NAMES)
def test_any_names_are_validated(names: tuple[str, ...]) -> None:
    op, text = of(*names)
    outcome = judged(op, text)
    assert outcome.validated, f"line {outcome.line}: {outcome.reason}"


@pytest.mark.parametrize("names", NAMES)
def test_callers_know_arguments_by_the_names_of_the_function(names: tuple[str, ...]) -> None:
    op: Any = sg.compile(function(*names), *SPECS, allow=("UNDECIDED", "REFUTED"))
    x, y = np.full((2, 3), 2.0, np.float32), np.full((2, 3), 3.0, np.float32)
    known = list(inspect.signature(op.forward).parameters)
    assert {*names} - {"out"} <= {*known}
    first, second, number = (
        name if name != "out" else "out__" if "out_" in names else "out_" for name in names[:3]
    )
    (a, b), residuals = op.forward(**{second: y, number: 5.0, first: x})
    np.testing.assert_allclose(a, x * 5.0)
    np.testing.assert_allclose(b, y * y)
    if number in names:  # what is called as `out` is where the results go
        np.testing.assert_allclose(op(x, y, **{number: 4.0})[0], x * 4.0)
    names_of_outputs = [one.name for one in op.module.OP.cases[0].outputs]
    cotangents = dict(zip((f"grad_{one}" for one in names_of_outputs), (x, y), strict=True))
    gradients: Any = op.backward(residuals, **cotangents)
    np.testing.assert_allclose(gradients[0], x * 5.0)
    np.testing.assert_allclose(gradients[1], 2 * y * y)


def swapped(text: str, start: str, end: str, first: str, second: str) -> str:
    """Two words exchanged between two lines."""
    a = text.index(start)
    b = text.index(end, a)
    names = {first: second, second: first}
    part = re.sub(rf"\b({first}|{second})\b", lambda word: names[word[0]], text[a:b])
    return text[:a] + part + text[b:]


def by_name(text: str, table: str, *functions: str) -> str:
    runtime = "from symgrad.runtime.support import UNUSUAL"
    text = text.replace(
        runtime, f"from symgrad.runtime.support import by_name as _by_name\n{runtime}"
    )
    return text + "".join(f"\n\n{one} = _by_name({one}, {table})\n" for one in functions)


FORWARDS = ("inference", "forward")
TABLES = [
    '{"x": "x_", "x_": "x"}', '{"x": "alpha", "alpha": "x"}', '{"foo": "x"}', '{"x": "y"}',
    '{"into": "out"}', '{"out": "x"}', "{1: 2}", '{1: "x"}', '{"x": 1}', '{"x": "x_"}',
    '{"x": "x"}', '{"no name": "x"}', '{"foo": "x", "bar": "x"}', '{"x": "x_", "x": "x"}',
    '{"mode": "alpha", "alpha": "mode"}', '{"X": "x"}', '{None: "x"}',
]  # fmt: skip


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("functions", [("inference",), ("forward",), FORWARDS])
def test_tables_of_other_names_are_found(table: str, functions: tuple[str, ...]) -> None:
    op, text = of("x", "x_", "alpha", "mode")
    outcome = judged(op, by_name(text, table, *functions))
    assert not outcome.validated


@pytest.mark.parametrize("table", [
    '{"grad_output_0": "grad_output_1", "grad_output_1": "grad_output_0"}',
    '{"g": "grad_output_0"}', '{"needs_input_grad": "out", "out": "needs_input_grad"}',
])  # fmt: skip
def test_backward_has_no_other_names(table: str) -> None:
    op, text = of("x", "x_", "alpha", "mode")
    assert not judged(op, by_name(text, table, "backward")).validated


def test_a_table_over_another_is_found() -> None:
    op, text = of("type", "y", "alpha", "mode")
    assert judged(op, text).validated
    twice = '_by_name(forward, {"y": "alpha", "alpha": "y"})'
    assert not judged(op, text.replace("_by_name(forward,", f"_by_name({twice},")).validated


@pytest.mark.parametrize(("old", "new"), [
    ('{"type": "type_"}', "{}"), ('{"type": "type_"}', '{"Type": "type_"}'),
    ('{"type": "type_"}', '{"type": "type_", "z": "y"}'),
    ("inference = _by_name(inference, _RENAMED)\n", ""),
    ("forward = _by_name(forward, _RENAMED)\n", ""),
])  # fmt: skip
def test_a_table_that_says_less_or_more_is_found(old: str, new: str) -> None:
    op, text = of("type", "y", "alpha", "mode")
    assert old in text
    assert not judged(op, text.replace(old, new)).validated


def test_parameters_of_other_names_are_found() -> None:
    op, text = of("x", "x_", "alpha", "mode")
    for first, second in (("x", "x_"), ("x", "alpha"), ("x", "z"), ("alpha", "beta")):
        for start, end in (("def inference(", "def forward("), ("def forward(", "def _backward")):
            assert not judged(op, swapped(text, start, end, first, second)).validated
    assert judged(op, text).validated


@pytest.mark.parametrize(("first", "second"), [
    ("grad_output_0", "grad_output_1"), ("grad_output_0", "foo"), ("grad_output_1", "grad_output_"),
    ("grad_output_0", "residuals"), ("residuals", "kept"),
])  # fmt: skip
def test_cotangents_of_other_names_are_found(first: str, second: str) -> None:
    op, text = of("x", "x_", "alpha", "mode")
    assert not judged(
        op, swapped(f"{text}\n# end", "def backward(", "# end", first, second)
    ).validated


@pytest.mark.parametrize(("old", "new"), [
    ('check("two.forward", "mode"', 'check("two.inference", "mode"'),
    ('check("two.forward", "mode"', 'check("nn_gelu.backward", "mode"'),
    ('check("two.forward", "mode"', 'check(x, "mode"'),
    ('check("two.forward", "mode"', 'check("mode"'),
    ("_NUMBERS = ('alpha',)", "_NUMBERS = ('x',)"), ('_NUMBERS = ("alpha",)', '_NUMBERS = ("x",)'),
])  # fmt: skip
def test_labels_are_the_ops_own(old: str, new: str) -> None:
    op, text = of("x", "x_", "alpha", "mode")
    if "_NUMBERS" not in old:
        assert old in text
    changed = text.replace(old, new)
    assert changed == text or not judged(op, changed).validated


class Power(sg.Function):
    """A plain integer, which kernels compute with as a float."""

    @staticmethod
    def forward(ctx: Any, x: Any, power: int = 2) -> Any:
        ctx.power = power
        return x * power

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.power, None


def test_integers_that_callers_pass_are_validated() -> None:
    request = compiler._requested(Power, None, ("f32[n m]",), None, None)
    op = compiler.judged_plan(request, allow=())[0]
    assert any(one.number == "int64" for one in emit(op, "").op.values)
    outcome = judged(op)
    assert outcome.validated, f"line {outcome.line}: {outcome.reason}"
