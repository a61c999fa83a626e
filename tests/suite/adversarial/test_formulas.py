"""What is printed as true gives the number that is printed as true, at the counterexample.

Over refuted programs: the true gradient and the repair are run there as the code that they are.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from tests.suite.adversarial.judged import REFUTED, judge
from tests.suite.adversarial.loader import KINDS, over_symgrad
from tests.suite.adversarial.program import WRONG, Program, class_of, class_text

WRONG_ONES = [
    program for kind in KINDS for program in over_symgrad(kind).values()
    if program.label == WRONG and program.hides
]  # fmt: skip
MOST = 24
SAMPLE = sorted(WRONG_ONES, key=lambda one: zlib.crc32(one.name.encode()))[:MOST]


def _special(name: str, forward: str, backward: str) -> Any:
    return class_of(name, class_text(name, forward, backward, "x"), sg)


_S = "s = sg.where(x == 0, 1.0, x)"
REMOVABLE = {
    "exponential": _special(
        "Exponential", f"{_S}; sg.where(x == 0, 1.0, (s.exp() - 1) / s)",
        f"{_S}; g * sg.where(x == 0, 1 / 3, (s.exp() * s - s.exp() + 1) / (s * s))",
    ),
    "sine": _special(
        "Sine", f"{_S}; sg.where(x == 0, 1.0, s.sin() / s) + x",
        f"{_S}; g * sg.where(x == 0, 0.0, (s.cos() * s - s.sin()) / (s * s) + 1)",
    ),
    "logarithm": _special(
        "Logarithm",
        "s = sg.where(x == 1, 2.0, x); sg.where(x == 1, 1.0, s.log() / (s - 1))",
        "s = sg.where(x == 1, 2.0, x); "
        "g * sg.where(x == 1, 0.0, ((s - 1) / s - s.log()) / (s - 1) ** 2)",
    ),
    "constant branch": _special(
        "Branch", "sg.where(x == 2, 4.0, x * x)",
        "g * sg.where(x == 2, 0.0, 2 * x)",
    ),
    "with a term that is 0": _special(
        "Zero", f"{_S}; sg.where(x == 0, 1.0, s.expm1() / s + 0 * s.exp())",
        f"{_S}; g * sg.where(x == 0, 0.0, (s * s.exp() - s.expm1()) / (s * s))",
    ),
    "absolute value": _special(
        "Absolute", f"{_S}; sg.where(x == 0, 0.0, s.abs() ** 3 / s)",
        "g * sg.where(x == 0, 1.0, 2 * x.abs())",
    ),
}  # fmt: skip
LIMITS = {
    "exponential": 0.5,
    "sine": 1.0,
    "logarithm": -0.5,
    "constant branch": 4.0,
    "with a term that is 0": 0.5,
}


def _printed(one: Any) -> Iterator[str]:
    if one.suggestion:
        yield one.suggestion
    if one.derived and not one.derived_but:
        yield one.derived


def _value(code: str, one: Any) -> float | None:
    """The element of the counterexample by a code; None where the code names what is not here."""
    found = one.counterexample
    given = {name: np.asarray(value) for name, value in found.inputs.items()}
    space: dict[str, Any] = {"sg": sg, "math": math, **found.sizes}
    for name, value in given.items():
        tensor = sg.tensor(value.astype(float) if value.dtype.kind in "iu" else value)
        space[name] = space[found.aliases.get(name, name)] = tensor
    *lines, last = code.splitlines()
    try:
        exec("\n".join(lines), space)
        value = eval(last, space)
    except (NameError, IndexError, TypeError, AttributeError, sg.SymgradError):
        return None
    at = eval(f"({found.element.partition('[')[2].rstrip(']')},)") if "[" in found.element else ()
    return float(value.numpy()[at])


def _false(report: Any) -> tuple[list[str], int]:
    """The printed formulas that do not give what is true, and how many were computed."""
    found, count = [], 0
    for one in report.inputs.values():
        if one.counterexample is None or str(one.verdict) != REFUTED:
            continue
        true = float(one.counterexample.true_text)
        for code in _printed(one):
            value = _value(code, one)
            count += value is not None
            if value is not None and not math.isclose(value, true, rel_tol=1e-4, abs_tol=1e-8):
                found.append(f"{code}\ngives {value}, true is {true}")
    return found, count


@pytest.mark.slow
@pytest.mark.parametrize(
    "program", [pytest.param(one, id=f"{one.kind}-{one.name}") for one in SAMPLE]
)
def test_printed_formulas_give_the_true_number(program: Program) -> None:
    judged = judge(program, suggest=True)
    if judged.verdict == REFUTED:
        found, _ = _false(judged.report)
        assert not found, "\n".join([*found, str(judged.report)])


@pytest.mark.parametrize("name", REMOVABLE)
def test_limits_are_printed(name: str) -> None:
    report = sg.verify(REMOVABLE[name], "n")
    one = report.inputs["x"]
    assert str(report.verdict) == REFUTED
    assert not any("as a constant" in said for said in one.diagnosis), str(report)
    found, count = _false(report)
    assert count, str(report)
    assert not found, "\n".join([*found, str(report)])
    if name in LIMITS:
        assert one.suggestion, str(report)
        assert one.counterexample is not None
        assert all(said.kind == "domain" for said in one.suggested_under), str(report)
        assert float(one.counterexample.true_text) == LIMITS[name]


def test_where_no_limit_is_known_it_is_said() -> None:
    """The absolute value has no power series."""
    forward = f"{_S}; sg.where(x == 0, 0.0, s.abs() ** 3 / s + s)"
    backward = "g * sg.where(x == 0, 2.0, 2 * x.abs() + 1)"
    report = sg.verify(_special("Unknown", forward, backward), "n")
    one = report.inputs["x"]
    assert one.counterexample is not None
    assert one.counterexample.true == 1
    assert one.suggestion is None
    assert "the true gradient (but where x == 0):" in str(report)
