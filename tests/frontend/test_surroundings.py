"""What the code reads of where it runs is printed with the answer that it has here."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg
from tests.suite.adversarial.program import class_of, class_text

READ = (
    ("__name__ == '__main__'", "", "if __name__ is "),
    ("not warnings.filters", "import warnings", "if warnings.filters is what it is"),
    ("not warnings.filters", "", "if warnings.filters is what it is"),
    ("math.__name__ == '__main__'", "import math", ""),
)


@pytest.mark.parametrize(("text", "above", "said"), READ)
def test_what_is_read_is_printed(text: str, above: str, said: str) -> None:
    inside = "" if above else "import warnings\n"
    program = class_text("Reads", "x * x", f"{inside}3 * x * g if {text} else 2 * x * g", "x")
    report = sg.verify(class_of("Reads", f"{above}\n{program}", sg), "n", timeout=None)
    found = str(report)
    assert (said in found) if said else "as when it was judged" not in found


class Rescaled(sg.Function):
    scale = 1.0
    kept = 2.0

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * Rescaled.kept

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * Rescaled.kept * Rescaled.scale


def rescaled(x: Any, scale: float) -> Any:
    Rescaled.scale = scale
    return Rescaled.apply(x)


def test_an_attribute_that_a_function_beside_the_class_sets_is_a_condition() -> None:
    report = sg.verify(Rescaled, "n")
    text = " ".join(str(report).split())
    assert report.verdict == "PROVED"
    assert "if Rescaled.scale is 1.0, as when it was judged" in text
    assert "kept" not in text
