"""What Python raises for some sizes, or for some plain numbers, is raised in the trace as well."""

from __future__ import annotations

import math
import operator
import re
from typing import Any

import pytest

import symgrad as sg
from symgrad.frontend.request import bind
from symgrad.frontend.trace import trace_request
from symgrad.ir.function import FunctionCase, FunctionGraphs
from tests.frontend.support import case_for
from tests.suite.adversarial.program import class_of, class_text

SIZES = (1, 2, 3, 4, 5, 7, 36, 37, 38, 40)
REFUSED = (
    "1 / (n - 3)", "1 // (n - 3)", "n % (n - 37)", "divmod(n, n - 3)", "divmod(5, n - 3)",
    "(n - 3) ** -1", "pow(n - 37, -2)", "operator.floordiv(1, n - 3)", "operator.mod(n, 4 - n)",
    "1.0 / (n * n - 9)", "1 / (n / 2 - 2)", "1 / ((n - 3) * 0.5)", "(n + 0.5) / (3 - n)",
    "0 ** (3 - n)", "0.0 ** (n - 4)", "1 / abs(n - 4)", "1 / math.sqrt(n - 3)", "1 // (n // 5)",
    "(n / 4) % (n - 3)", "2 / ((n - 2) / n)", "1 / (n - 3) + 1 / (n - 5)", "1 / math.tanh(n - 4)",
    "math.sqrt(3 - n)", "math.log(n - 3)", "math.log2(4 - n)", "math.log10(n - 37)",
    "math.log1p(3 - n)", "math.acosh(n - 3)", "math.asin(n - 4)", "math.acos((n - 3) / 2)",
    "math.atanh(n - 4)", "math.log(n / 4 - 1)", "math.exp(n * 20)", "math.cosh(30 * n)",
    "math.expm1(n * n)", "2.0 ** (n * 28)", "0.5 ** (-n * 29)", "math.sqrt((n - 3) / (n + 1))",
)  # fmt: skip
NEVER = (
    "1 / n", "n / 2", "7 // n", "n % n", "1 / (n + 1)", "1 / math.sqrt(n)", "n ** -0.5",
    "1 / (1 + math.exp(-n))", "1 / (1 - 0.9 ** n)", "math.log(n)", "math.log(n + 1) / n",
    "1 / (n * n + n)", "math.sqrt(2 / n)", "1 / (math.sqrt(n) + 1e-8)", "0.9 ** n", "1 / (n // 1)",
    "1 / math.hypot(n, 2)", "math.tanh(1 / n)",
)  # fmt: skip


def _computed(text: str) -> Any:
    return eval(f"lambda n: {text}", {"math": math, "operator": operator})


def _traced(text: str) -> FunctionGraphs:
    """A backward that fails with the class of what a number raises, if it raises."""
    compute = _computed(text)

    class Asks(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            try:
                compute(x.shape[0])
            except Exception as error:
                raise RuntimeError(f"<{type(error).__name__}>") from None
            return grad * 2

    return trace_request(bind(Asks, ("n",)))


def _raised(text: str, n: int) -> str:
    try:
        _computed(text)(n)
    except Exception as error:
        return f"<{type(error).__name__}>"
    return ""


def _said(case: FunctionCase) -> str:
    found = re.search("<.*>", "" if case.problem is None else case.problem.what)
    return "" if found is None else found[0]


@pytest.mark.parametrize("text", REFUSED)
def test_for_each_size_what_python_raises_is_raised(text: str) -> None:
    graphs = _traced(text)
    assert len(graphs.cases) > 1
    for n in SIZES:
        case = case_for(graphs, {"n": n})
        assert not case.observed
        assert not case.assumed
        assert _said(case) == _raised(text, n)


@pytest.mark.parametrize("text", NEVER)
def test_what_no_size_is_refused_by_is_not_asked(text: str) -> None:
    assert not any(_raised(text, n) for n in SIZES)
    (case,) = _traced(text).cases
    assert case.problem is None
    assert not case.conditions
    assert not case.assumed
    assert not case.requires


def test_what_cannot_be_asked_is_printed() -> None:
    (case,) = _traced("1 / (math.sqrt(n) - 2)").cases
    (said,) = case.assumed
    assert said.what.startswith("what is divided by is not 0")


def test_numpy_raises_nothing() -> None:
    program = class_text("Asks", "x * x", "k = np.divide(1.0, x.shape[0] - 3)\n2 * x * g", "x")
    report = sg.verify(class_of("Asks", f"import numpy as np\n{program}", sg), "n", timeout=None)
    assert str(report.verdict) == "PROVED"


def test_forward_is_judged_where_it_does_not_raise() -> None:
    program = class_text("Asks", "k = 1 / (x.shape[0] - 3)\nx * x", "2 * x * g", "x")
    report = sg.verify(class_of("Asks", program, sg), "n", timeout=None)
    assert str(report.verdict) == "PROVED"
    assert "forward does not accept n == 3" in str(report)


# -- sizes of tensors


NEGATIVE = ("x.new_zeros(4 - n)", "sg.zeros(2, 3 - n)", "x.repeat(4 - n)", "sg.eye(3 - n)")


def _tensors(text: str) -> FunctionGraphs:
    class Asks(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            eval(text, {"sg": sg, "x": x, "n": x.shape[0]})
            return grad * 2

    return trace_request(bind(Asks, ("n",)))


def _fails(graphs: FunctionGraphs, n: int) -> bool:
    return case_for(graphs, {"n": n}).problem is not None


@pytest.mark.parametrize("text", NEGATIVE)
def test_a_negative_number_of_elements_is_refused(text: str) -> None:
    graphs, least = _tensors(text), 3 if "3 - n" in text else 4
    assert [n for n in SIZES if _fails(graphs, n)] == [n for n in SIZES if n > least]


# -- plain numbers


NUMBERS = (
    ("1 / (a - 5)", "a < 5 or a > 5"), ("math.sqrt(a)", "a >= 0"), ("math.log(a - 1)", "a > 1"),
    ("1 / (1 + a * a)", ""), ("1 / (1 + math.exp(-a))", "a >= -709."),
    ("(4 - a) ** -1", "a < 4 or"),
    ("1 / (a * (a + 1))", "a < -1 or -1 < a < 0 or a > 0"),
    ("math.exp(a)", "a <= 709."), ("2.0 ** a", "a <= 102"),
    ("(a + 1) ** 200", "a in ["),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("text", "values"), NUMBERS)
def test_a_plain_number_is_proved_where_nothing_is_raised(text: str, values: str) -> None:
    source = f"""
import math
class Asks(sg.Function):
    @staticmethod
    def forward(ctx, x, a: float = 2.0):
        ctx.a = a
        return x * a
    @staticmethod
    def backward(ctx, g):
        a = ctx.a
        try:
            {text}
        except (ArithmeticError, ValueError):
            return 3 * g, None
        return g * a, None
"""
    report = sg.verify(class_of("Asks", source, sg), "n", timeout=None)
    said = " ".join((*report.quantified, *report.notes))
    assert "all real a" in said
    assert values in said
    assert bool(values) == (report.verdict == sg.REFUTED or "it is REFUTED" in said)


@pytest.mark.parametrize("text", ["math.exp(a)", "2.0 ** a", "a ** 30"])
def test_an_overflow_that_nothing_handles_is_none_of_the_proof(text: str) -> None:
    source = f"""
import math
class Asks(sg.Function):
    @staticmethod
    def forward(ctx, x, a: float = 2.0):
        ctx.a = a
        return x * {text}
    @staticmethod
    def backward(ctx, g):
        a = ctx.a
        return g * {text}, None
"""
    report = sg.verify(class_of("Asks", source, sg), "n", timeout=None)
    assert str(report).splitlines()[0].startswith("Asks: PROVED for all real a ")


# -- identity


IDENTITIES = (
    "n is 3", "3 is n", "x.shape[0] is 37", "n is not 3", "x.shape[0] is g.shape[0]", "ctx.n is n",
    "operator.is_(n, 5)", "(lambda v: v is 3)(n)", "is_not(n, 5)", "n is LIMIT", "n + 1 is 4",
    "any(map(operator.is_, [n], [3]))", "any(map(PICK, [n], [3]))",
    "getattr(operator, 'is_')(n, 3)", "n is Mode.ONE.value", "n is math.pi",
)  # fmt: skip
FINE = (
    "n is None", "n is True", "n is SENTINEL", "type(n) is int", "ctx.flag is False",
    "n is Mode.ONE", "operator.add is not n",
)  # fmt: skip


def _identity(text: str, name: str) -> Any:
    source = f"""
import enum, math, operator
from operator import is_not
Mode = enum.Enum("Mode", "ONE")
LIMIT, SENTINEL, PICK = 5, object(), operator.is_
class Asks(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.n, ctx.flag = x.shape[0], True
        return x * x
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = x.shape[0]
        return 2 * x * g if {text} else g * x * 2
"""
    return sg.verify(class_of("Asks", source, sg), "n", timeout=None)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("text", IDENTITIES)
def test_identity_of_numbers_is_undecided_with_the_line(text: str) -> None:
    report = _identity(text, "Asks")
    assert str(report.verdict) == "UNDECIDED"
    assert "compared by identity" in report.inputs["x"].reason
    assert "<adversarial Asks>:16" in report.inputs["x"].reason


@pytest.mark.parametrize("text", ["ctx.a is ctx.b", "any(map(operator.is_, [ctx.a], [ctx.b]))"])
def test_identity_of_what_is_not_known_is_printed(text: str) -> None:
    source = f"""
import operator
class Asks(sg.Function):
    @staticmethod
    def forward(ctx, x, a, b):
        ctx.a, ctx.b = a, b
        return x * a
    @staticmethod
    def backward(ctx, g):
        one = {text}
        return (3 * g if one else g * ctx.a), None, None
"""
    report = sg.verify(class_of("Asks", source, sg), "n", 1000, 1001, timeout=None)
    assert "if no number is compared by identity (<adversarial Asks>:10)" in str(report)


@pytest.mark.parametrize("text", FINE)
def test_identity_of_what_is_no_number_is_none_of_numbers(text: str) -> None:
    assert str(_identity(text, "Asks").verdict) == "PROVED"
