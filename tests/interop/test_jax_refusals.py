"""What Python raises for some sizes is raised while JAX traces, too."""

from __future__ import annotations

import math
from typing import Any

import pytest

import symgrad as sg

pytestmark = pytest.mark.peers
jax: Any = pytest.importorskip("jax")

REFUSED = (
    "1 // (n - 2)", "1 / (n - 2)", "n % (n - 2)", "divmod(n, n - 2)", "(n - 2) ** -1",
    "math.log(n - 2)", "1 / (n / 2 - 1)", "1 / (1 / n - 0.5)", "1 / math.sqrt(n - 2)",
)  # fmt: skip
NEVER = ("1 / n", "1 / (1 + 1 / n)", "math.sqrt(n)", "n // 2", "1 / (math.sqrt(n) + 1)")


def _report(text: str) -> Any:
    compute = eval(f"lambda n: {text}", {"math": math})

    def backward(x: Any, g: Any) -> Any:
        try:
            compute(x.shape[0])
        except (ArithmeticError, ValueError):
            return (3 * x * g,)
        return (2 * x * g,)

    square = jax.custom_vjp(lambda x: x * x)
    square.defvjp(lambda x: (x * x, x), backward)
    return sg.verify(square, "n", timeout=None)


@pytest.mark.parametrize("text", REFUSED)
def test_a_handler_of_what_some_sizes_raise_is_refuted(text: str) -> None:
    assert str(_report(text).verdict) == "REFUTED"


@pytest.mark.parametrize("text", NEVER)
def test_what_no_size_is_refused_by_is_proved(text: str) -> None:
    report = _report(text)
    assert str(report.verdict) == "PROVED"
    assert "  if " not in str(report)


NUMBERS = (
    ("1 / (a - 5)", "a < 5 or a > 5"), ("(a - 5) ** -1", "a < 5 or a > 5"),
    ("1 / (1 + a * a)", "all real a"), ("7 % (a - 5)", "a = 0.25 or 0.5 or 2.0"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "values"), NUMBERS)
def test_a_plain_number_is_proved_where_nothing_is_raised(text: str, values: str) -> None:
    compute = eval(f"lambda a: {text}")

    def scaled(x: Any, a: float = 2.0) -> Any:
        return x * a

    def backward(a: Any, x: Any, g: Any) -> Any:
        try:
            compute(a)
        except ArithmeticError:
            return (3 * g,)
        return (g * a,)

    op = jax.custom_vjp(scaled, nondiff_argnums=(1,))
    op.defvjp(lambda x, a: (x * a, x), backward)
    report = sg.verify(op, "n", timeout=None)
    assert values in " ".join((*report.quantified, *report.notes, report.given))
    assert (report.verdict == sg.REFUTED) == ("5 or a" in values)
