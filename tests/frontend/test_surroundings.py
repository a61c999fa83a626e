"""What the code reads of where it runs is printed with the answer that it has here."""

from __future__ import annotations

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
