"""What a report prints of conditions: in the user's names, each once, evaluable, not constant."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.proof.words.relations import decimal
from tests.suite.adversarial.program import class_of, class_text

PROGRAMS = {
    "x.log1p() | g / (1 + x)": {"x > -1"},
    "(1 - x * x).sqrt() | -g * x / (1 - x * x).sqrt()": {"x * x < 1"},
    "((x - 4) * (x - 4)).log() | 2 * g / (x - 4)": set(),
    "x * x | 2 * g * x + 0 * ((x - 4) * (x - 4)).log()": {"x == 4"},
    "(x.sigmoid() + 1).log() | g * x.sigmoid() * (1 - x.sigmoid()) / (x.sigmoid() + 1)": set(),
    "x.sigmoid() | y = x.sigmoid()\ng * (y.log() + (1 - y).log()).exp()": set(),
    "x.exp() | g * x.exp() * x.exp() / x.exp()": set(),
    "x.softmax(0).log() | g - x.softmax(0) * g.sum(0)": set(),
    "x * x | 4 * g * x * (x + 2) / (2 * x + 4)": {"x == -2"},
    "x * x | 2 * g * x + 0 / (x - 1) + 0 / (1 - x)": {"x == 1"},
    "(x - 1).relu() | g * (x > 1)": {"x == 1"},
    "x.clamp(-1, 2) | g * ((x >= -1) & (x <= 2))": {"x == -1", "x == 2"},
    "x.tanh().clamp(-1, 1) | g * (1 - x.tanh() ** 2)": set(),
    "sg.where(x.floor() == 2, x * x, x) | sg.where(x.floor() == 2, 2 * g * x, g)": {
        "x == 2", "x == 3",
    },
    "sg.where(x.round() > 2, x * x, x) | sg.where(x.round() > 2, 2 * g * x, g)": {"x == 2.5"},
    "sg.where(x.ceil() <= 2, x * x, x) | sg.where(x.ceil() <= 2, 2 * g * x, g)": {"x == 2"},
    "sg.where(x.trunc() == 0, x * x, x) | sg.where(x.trunc() == 0, 2 * g * x, g)": {
        "x == -1", "x == 1",
    },
    "x.exp().cumsum(0).log() | "
    "y = x.exp().cumsum(0)\n(g / y).flip(0).cumsum(0).flip(0) * x.exp()": set(),
    "x.exp().flip(0).cumsum(0).flip(0).log() | "
    "y = x.exp().flip(0).cumsum(0).flip(0)\n(g / y).cumsum(0) * x.exp()": set(),
    "x.floor() * x | g * x.floor()": {"x == x.floor()"},
    "x.floor().clamp(0, 5) * x | g * x.floor().clamp(0, 5)": {"x == x.floor()"},
}  # fmt: skip


def judged(program: str, spec: str = "n") -> sg.Report:
    forward, backward = program.split(" | ")
    return sg.verify(class_of("Judged", class_text("Judged", forward, backward, "x"), sg), spec)


def without_remark(text: str) -> str:
    return re.sub(r" \((yours|at) .*\)$", "", text)


@pytest.mark.parametrize("program", PROGRAMS)
def test_conditions_are_said_in_the_names_of_the_source(program: str) -> None:
    report = judged(program)
    assert report.verdict is sg.PROVED, str(report)
    assert {without_remark(str(one)) for one in report.conditions} == PROGRAMS[program]


@pytest.mark.parametrize("program", [one for one in PROGRAMS if PROGRAMS[one]][:8])
def test_conditions_are_python_that_holds_for_some_numbers_and_not_for_others(
    program: str,
) -> None:
    for condition in judged(program).conditions:
        x = sg.tensor(np.linspace(-8, 8, 65))
        found = np.asarray(eval(condition.code, {"sg": sg, "x": x, "n": 65}).numpy())
        assert found.any(), condition
        assert not found.all(), condition
        plain = judged(program).to_dict()["inputs"]["x"]["conditions"]
        assert any(one["code"] == condition.code for one in plain)


OPAQUE = """
def forward(ctx, a, b):
    c = a @ b
    d = c @ b
    ctx.save_for_backward(a, b, c, d)
    return (d @ b).exp()

def backward(ctx, g):
    a, b, c, d = ctx.saved_tensors
    h = g * (d @ b).exp() * (c * c) / (c * c)
    first = h @ b.t()
    return first @ b.t() @ b.t(), d.t() @ h + c.t() @ first + a.t() @ (first @ b.t())
"""


def test_no_condition_has_a_name_of_the_normal_form() -> None:
    from tests.proof.written import function_from

    report = sg.verify(function_from(OPAQUE), "n n", "n n")
    assert report.verdict is sg.PROVED, str(report)
    assert "%" not in str(report)
    assert {str(one) for one in report.conditions} == {"a @ b == 0"}


TWICE = """
def forward(ctx, x):
    t = x.exp() * x.sin() * x.cos() * x.tanh() + x.atan() + x.erf()
    t = t * x + x.sinh() + x.asinh() * x.sin() + x.erf() * x.cosh() + x.tan()
    ctx.save_for_backward(x)
    return t.log()

def backward(ctx, g):
    x, = ctx.saved_tensors
    return None
"""


def test_a_variable_that_is_bound_twice_is_not_named() -> None:
    from tests.proof.written import function_from

    report = sg.verify(function_from(TWICE), "n", suggest=False)
    assert "t_2" not in str(report)


def test_a_condition_on_indices_says_what_they_are() -> None:
    backward = """
i = sg.arange(x.shape[0]).unsqueeze(1) * 1.0
j = sg.arange(x.shape[1]) * 1.0
2 * g * x * (i * j - 19) / (i * j - 19)
"""
    (condition,) = judged(f"x * x | {backward.strip()}", "n m").conditions
    i, j = dict(condition.indices).values()
    assert str(condition) == f"i * j == 19 (i < {i}, j < {j})"
    assert (condition.code, condition.excepted) == ("i * j == 19", True)
    assert {i, j} == {"n", "m"}


def test_a_found_condition_is_called_sufficient_and_implies_those_that_are_left_out() -> None:
    report = judged("sg.where(x > 5, x * x, x) | g")
    assert report.verdict is sg.REFUTED
    found = [str(one) for one in report.conditions if one.kind == "found"]
    assert found == ["PROVED if x in (-inf, 5), a sufficient condition"]


def test_conditions_of_other_ranks_are_not_repeated() -> None:
    norm = "(x * x).sum(-1, keepdim=True)"
    backward = f"s = {norm}\ng / s - 2 * x * (g * x).sum(-1, keepdim=True) / (s * s)"
    text = class_text("Judged", f"x / {norm}", backward, "x")
    report = sg.verify(class_of("Judged", text, sg))
    assert report.verdict is sg.PROVED, str(report)
    assert len(report.beside) > 1
    assert len([one for one in report.conditions if one.kind == "nonzero"]) <= 1


def test_a_gradient_that_is_left_out_may_be_declared() -> None:
    text = class_text("Judged", "x * y", "g * y, None", "xy")
    report = sg.verify(class_of("Judged", text, sg), "n", "n")
    assert "--assume y=constant" in str(report)
    assert sg.verify(class_of("Judged", text, sg), "n", "n", assume={"y": "constant"})


class LimitedByAParameter(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, alpha: Any) -> Any:
        ctx.save_for_backward(x, alpha)
        return sg.minimum(x.clamp(min=0), alpha)

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        x, alpha = ctx.saved_tensors
        inside = (x >= 0) & (x <= alpha)
        return dy * inside.to(dy.dtype), (dy * (x >= alpha).to(dy.dtype)).sum().view(1)


def test_a_sign_is_found_where_the_counterexample_is_on_the_boundary_of_it() -> None:
    """Refuted at ``alpha == 0``, which is no point with ``alpha > 0``; one entry marks nothing."""
    report = sg.verify(LimitedByAParameter, "n m; 1")
    for one in report.inputs.values():
        found = [str(one) for one in one.conditions if one.kind == "found"]
        assert any(text.startswith("PROVED if alpha > 0") for text in found), str(report)
        assert not any("one-hot" in text or "0 or 1" in text for text in found)


LEAKY = "sg.where(x > 0, x, a * (x.exp() - 1))"


@pytest.mark.parametrize(("slope", "said"), [("a", False), ("0.5", True)])
def test_what_a_gradient_gives_at_a_kink_is_said_only_where_it_is_one_number(
    slope: str, said: bool
) -> None:
    forward = LEAKY.replace("a *", f"{slope} *")
    backward = f"sg.where(x > 0, g, g * {slope} * x.exp()), None"
    text = class_text("Judged", forward, backward, "xa")
    report = sg.verify(class_of("Judged", text, sg), "n; 1", assume={"a": "constant"})
    (kink,) = [str(one) for one in report.conditions if one.text.startswith("x == 0")]
    assert ("yours gives" in kink) is said


THERE: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "number": (lambda x, t: 7.0, "7"),
    "the same": (lambda x, t: x - t + 0.5, "0.5"),
    "of t": (lambda x, t: 100 * t, ""),
    "of x": (lambda x, t: 100 * x, ""),
}


@pytest.mark.parametrize("name", THERE)
@pytest.mark.parametrize("shape", ["n", "n m", ""])
def test_what_is_given_at_any_plain_number_is_said_where_it_is_one_number(
    name: str, shape: str
) -> None:
    there, said = THERE[name]

    class Bent(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, t: float = 1.0) -> Any:
            ctx.t = t
            ctx.save_for_backward(x)
            return sg.relu(x - t)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            step = sg.where(x > ctx.t, 1.0, 0.0)
            return g * sg.where(x == ctx.t, there(x, ctx.t), step), None

    report = sg.verify(Bent, shape, suggest=False)
    (kink,) = [one.text for one in report.conditions if one.text.startswith("x == t")]
    assert kink == ("x == t" + (f" (yours gives {said} there)" if said else ""))


@pytest.mark.parametrize(("slope", "said"), [("None", False), ("0 * a", True)])
def test_no_condition_is_looked_for_where_a_gradient_is_left_out(slope: str, said: bool) -> None:
    """A softmax of one element is 1, so that ``None`` is right there: that helps nobody."""
    weights = "a.softmax(-1)"
    text = class_text("Judged", f"x * {weights}", f"g * {weights}, {slope}", "xa")
    report = sg.verify(class_of("Judged", text, sg), "n m; n m")
    assert report.inputs["a"].verdict is sg.REFUTED
    assert any(one.kind == "found" for one in report.inputs["a"].conditions) is said


@pytest.mark.parametrize(
    ("value", "text"),
    [(Fraction(repr(math.pi)), "3.141592653589793"), (Fraction(1, 8), "0.125"),
     (Fraction(1, 3), "1/3"), (Fraction(10**20 + 1, 10**20), f"{10**20 + 1}/{10**20}")],
)  # fmt: skip
def test_a_number_is_printed_as_it_is_written(value: Fraction, text: str) -> None:
    assert decimal(value) == text
