"""Exceptions that a right backward does not need are not printed; those that it needs are.

A factor of sizes and indices stands beside a real one.  Where the first is 0 the program is right,
too, or it is not: the first half prints nothing, the second is never PROVED without a condition.
"""

from __future__ import annotations

import itertools

import pytest

import symgrad as sg
from tests.suite.adversarial.program import class_of, class_text

WHOLES = (
    "(n - 4)", "(n - 16) * (m - 2)", "(n * m - 6)", "(n + m - 7)", "(n - 7 * m)", "(i - 5)",
    "(i - j - 3)", "(n * n - m - 6)", "(i * j - 6)", "(n % 3 - 2)", "(n // 2 - i)",
    "(n - 3) * (i + 1)",
)  # fmt: skip
REALS = ("x", "x.exp()", "(x * x + 2)", "x.cosh()", "(x.sin() + 2)", "x.sigmoid()", "(x - 1)")
IDLE = (
    "sg.where({P} == 0, 1.0, 1.0)", "(1 - 0.0 * ({P} == 0))", "sg.where({P} > 0, 2.0, 2.0) / 2",
    "(1 - (({P} >= 0) & ({P} <= 0)) * 0.0)", "((({P} > 0) * 1.0) + (({P} <= 0) * 1.0))",
    "sg.ones_like(x).masked_fill({P} == 0, 1.0)", "(({P} == 0) * 1.0 + ({P} != 0) * 1.0)",
)  # fmt: skip
TELLING = (
    "sg.where({P} == 0, 2.0, 1.0)", "({P} != 0)", "(({P} > 0) * 1.0 + ({P} < 0) * 1.0)",
    "(({P}).sign() ** 2)",
)  # fmt: skip
NEVER = ("(n % 5 - 5)", "(n + m)", "(2 * i - 2 * j + 1)", "(n % 2 - 7)", "(i - n)")
HEAD = "n, m = x.shape\ni = sg.arange(n).unsqueeze(1)\nj = sg.arange(m)\n"


def judged(factor: str, base: str) -> sg.Report:
    backward = f"{HEAD}g * 2 * x * {factor.format(P=f'({base})')}"
    made = class_of("Judged", class_text("Judged", "x * x", backward, "x"), sg)
    return sg.verify(made, "n m", suggest=False, timeout=None)


def every_third(*tables: tuple[str, ...]) -> list[tuple[str, ...]]:
    return list(itertools.product(*tables))[::11]


@pytest.mark.parametrize(("whole", "real", "factor"), every_third(WHOLES, REALS, IDLE))
def test_what_is_right_everywhere_has_no_exception(whole: str, real: str, factor: str) -> None:
    report = judged(factor, f"{whole} * {real}")
    assert str(report.verdict) == "PROVED"
    assert not report.conditions


@pytest.mark.parametrize(("whole", "real", "factor"), every_third(WHOLES, REALS, TELLING)[::2])
def test_what_is_wrong_at_a_size_is_not_proved_there(whole: str, real: str, factor: str) -> None:
    report = judged(factor, f"{whole} * {real}")
    assert str(report.verdict) != "PROVED" or report.conditions


@pytest.mark.parametrize(("whole", "factor"), list(itertools.product(NEVER, TELLING[:3])))
def test_integers_that_are_never_0_need_no_exception(whole: str, factor: str) -> None:
    report = judged(factor, f"{whole} * (x.sin() + 2)")
    assert str(report.verdict) == "PROVED"
    assert not report.conditions


@pytest.mark.parametrize("compared", ["> 0", ">= 0", "== 0"])
def test_a_comparison_that_forward_shares_may_hold_at_a_size_everywhere(compared: str) -> None:
    """Beside ``x == 0`` it is not known what ``(n - 6) * x`` is, so it is continued as neither."""
    forward = f"n = x.shape[0]\nsg.where((n - 6) * x {compared}, x * x, x ** 3)"
    for slope, right in (("3 * x * x", False), ("sg.where({P}, 2 * x, 3 * x * x)", True)):
        backward = f"n = x.shape[0]\ng * {slope.format(P=f'(n - 6) * x {compared}')}"
        made = class_of("Judged", class_text("Judged", forward, backward, "x"), sg)
        report = sg.verify(made, "n", suggest=False, timeout=None)
        assert (str(report.verdict) == "PROVED") is right
        assert not any("n == 6" in str(one) for one in report.conditions if right)


SETTLED = {
    "(x / x).clamp(1, 1)": {"x == 0"},
    "((x / x) < 2)": {"x == 0"},
    "(x.exp() * (-x).exp()).clamp(1, 1)": set(),
    "(x.abs() * x.sign() == x)": set(),
    "(x.relu() - (-x).relu() == x)": set(),
    "sg.where((x * x + 1).log() == 0, 1.0, 1.0)": set(),
    "((x * 0 + 1) == 1)": set(),
    "sg.where(x.amax() == x, 1.0, 1.0)": set(),
    "sg.where(x.std() == 0, 1.0, 1.0)": {"n == 1"},
}


@pytest.mark.parametrize("factor", SETTLED)
def test_a_comparison_that_holds_wherever_it_is_defined_is_no_exception(factor: str) -> None:
    made = class_of("Judged", class_text("Judged", "x * x", f"2 * g * x * {factor}", "x"), sg)
    report = sg.verify(made, "n", suggest=False, timeout=None)
    assert str(report.verdict) == "PROVED"
    assert {str(one) for one in report.conditions} == SETTLED[factor]


@pytest.mark.parametrize("factor", ["(x.sign() ** 2 == 1)", "sg.where(x.sign().abs() == 1, 1, 2)"])
def test_a_comparison_that_holds_almost_everywhere_is_no_exception_and_refuted(factor: str) -> None:
    made = class_of("Judged", class_text("Judged", "3 * x", f"3 * g * {factor}", "x"), sg)
    assert str(sg.verify(made, "n", suggest=False, timeout=None).verdict) == "REFUTED"


@pytest.mark.parametrize(
    "line", [
        "2 * x * g * (n - 3) / (n - 3) if n != 3 else 2 * x * g",
        "2 * x * g * (n - 1) / (n - 1) if n > 1 else 2 * x * g",
        "2 * x * g * (n - m) / (n - m) if n > m else 2 * x * g",
        "2 * x * g * (n * m - 6) / (n * m - 6) if n * m != 6 else 2 * x * g",
    ],
)  # fmt: skip
def test_sizes_that_a_case_does_not_have_are_no_exceptions(line: str) -> None:
    made = class_of("Judged", class_text("Judged", "x * x", f"{HEAD}{line}", "x"), sg)
    report = sg.verify(made, "n m", suggest=False, timeout=None)
    assert str(report.verdict) == "PROVED"
    assert not report.conditions


@pytest.mark.parametrize("rows", ["n, m = x.shape", "n, m = x.shape\nassert n > 1"])
def test_a_variance_is_not_said_not_to_be_negative(rows: str) -> None:
    """Outside of the exception ``n == 1`` it is divided by what is positive."""
    backward = "n = x.shape[0]\n(x - x.mean(0)) * g / (n - 1) / x.std(0)"
    made = class_of("Judged", class_text("Judged", f"{rows}\nx.std(0)", backward, "x"), sg)
    report = sg.verify(made, "n m", suggest=False, timeout=None)
    assert str(report.verdict) == "PROVED"
    *sizes, deviation = map(str, report.conditions)
    assert sizes == (["n == 1"] if rows.endswith("shape") else [])
    assert deviation == "(x - x.mean(0, keepdim=True)).square().sum(0) / (n - 1) > 0"


@pytest.mark.parametrize(
    "factor", ["(x / x).clamp(1, 1)", "(x / x).clamp(1, 2)", "((x * x + 1) / (1 + x * x)).relu()"]
)
def test_forward_bends_nowhere_where_it_compares_a_number(factor: str) -> None:
    made = class_of("Judged", class_text("Judged", f"x * x * {factor}", "2 * g * x", "x"), sg)
    report = sg.verify(made, "n", suggest=False, timeout=None)
    assert str(report.verdict) == "PROVED"
    assert not report.conditions


@pytest.mark.parametrize(("factor", "said"), [("2", False), ("3", True)])
def test_a_distance_whose_product_is_a_contraction_is_not_negative(
    factor: str, said: bool
) -> None:  # fmt: skip
    """``x·x + y·y - 2 x·y`` is a square, and with 3 it is not."""
    forward = f"sg.sqrt((x*x).sum(1)[:, None] + (y*y).sum(1)[None] - {factor} * x @ y.t() + 1)"
    backward = (
        f"r = (x*x).sum(1)[:, None] + (y*y).sum(1)[None] - {factor} * x @ y.t() + 1\n"
        "w = g / (2 * r.sqrt())\n"
        f"2 * w.sum(1, keepdim=True) * x - {factor} * w @ y, "
        f"2 * w.sum(0)[:, None] * y - {factor} * w.t() @ x"
    )
    made = class_of("Judged", class_text("Judged", forward, backward, "xy"), sg)
    found = sg.verify(made, "n d", "m d", suggest=False, timeout=None)
    assert found.verdict == sg.PROVED
    assert bool(found.inputs["x"].conditions) == said
