"""What the judge itself fails at is said; it is no verdict, and no silence."""

from __future__ import annotations

import subprocess
import sys

import pytest

import symgrad as sg
from symgrad.proof import verify
from tests.suite.adversarial.program import class_of, class_text

WITHOUT_FLINT = """
import sys

sys.modules["flint"] = None
import symgrad as sg
from tests.suite.adversarial.program import class_of, class_text

text = class_text("Slip", "x*x", {backward!r}, "x")
print(sg.verify(class_of("Slip", text, sg), "n", audit={audit}).verdict)
"""


@pytest.mark.parametrize(("backward", "audit"), [("3*g*x", False), ("2*g*x", True)])
def test_without_flint_the_package_is_named(backward: str, audit: bool) -> None:
    code = WITHOUT_FLINT.format(backward=backward, audit=audit)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "DependencyError: python-flint" in done.stderr
    assert "pip install" in done.stderr
    assert not done.stdout


def test_what_is_right_needs_no_flint() -> None:
    code = WITHOUT_FLINT.format(backward="2*g*x", audit=False)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "PROVED\n"


def test_an_explanation_that_fails_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise KeyError("a slip")

    monkeypatch.setattr(verify, "diagnose", failing)
    text = class_text("Slip", "x*x", "3*g*x", "x")
    report = sg.verify(class_of("Slip", text, sg), "n")
    assert report.verdict is sg.REFUTED
    (said,) = report.inputs["x"].diagnosis
    assert "KeyError at test_failures.py" in said
    assert "a slip" in said


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        ("x*x", "g*x*1e308"),
        ("x*x", "3*g*x*1e308/1e308"),
        ("x*x", "3*g*x*(-x).log()"),
        ("(-x).log()", "3*g/x"),
        ("x.exp()", "(1e200*x)*(1e200*x)*g"),
    ],
)
def test_values_that_overflow_or_are_none_warn_of_nothing(forward: str, backward: str) -> None:
    text = class_text("Slip", forward, backward, "x")
    report = sg.verify(class_of("Slip", text, sg), "n")
    assert report.verdict is sg.REFUTED
    assert "Warning" not in str(report)
