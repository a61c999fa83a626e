"""What forward does not accept is said of no sizes that it accepts: operations take some of them.

An operation raises for two symbols as for two unequal sizes.  Forward asks something else here, so
that there is a case in which it raises.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import pytest

import symgrad as sg
from symgrad.errors import ShapeError, SymgradError
from symgrad.frontend.trace import trace
from tests.frontend.support import forward_only, holds
from tests.suite.adversarial.program import class_of, class_text

TAKEN: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, w: x + w,
    "matmul": lambda x, w: x @ w,
    "einsum": lambda x, w: sg.einsum("ij,kj->ik", x, w),
    "cat": lambda x, w: sg.cat([x, w]),
    "stack": lambda x, w: sg.stack([x, w]),
    "expand_as": lambda x, w: w.expand_as(x),
    "distances": lambda x, w: (x[:, None] - w[None]).square().sum(-1),
    "squeeze": lambda x, w: x.squeeze(-1) * w.sum(-1),
    "written": lambda x, w: x.clone().copy_(w),
    "cross": lambda x, w: sg.linalg.cross(x, w),
}
ASKS: dict[str, Callable[[Any, Any], bool]] = {
    "shapes": lambda x, w: x.shape == w.shape,
    "last": lambda x, w: x.shape[1] != w.shape[1],
}


@cache
def _accepted(operation: str) -> list[dict[str, int]]:
    """Numbers for sizes that an operation accepts."""
    found = []
    for numbers in product((1, 2, 3), repeat=4):
        specs = (" ".join(map(str, pair)) for pair in (numbers[:2], numbers[2:]))
        try:
            trace(forward_only(TAKEN[operation]), *specs)
        except SymgradError:
            continue
        found.append(dict(zip("nmkl", numbers, strict=True)))
    return found


@pytest.mark.parametrize("question", ASKS)
@pytest.mark.parametrize("operation", TAKEN)
def test_each_call_has_a_case_or_is_refused(operation: str, question: str) -> None:
    def forward(x: Any, w: Any) -> Any:
        if x.numel() == 1:  # a case that is accepted at first
            return x
        return TAKEN[operation](x, w) * (2 if ASKS[question](x, w) else 3)

    graphs = trace(forward_only(forward), "n m", "k l")
    for numbers in product((1, 2, 3), repeat=4):
        sizes = dict(zip("nmkl", numbers, strict=True))
        accepted = numbers[:2] == (1, 1) or sizes in _accepted(operation)
        assert sum(holds(case, sizes) for case in graphs.cases) == accepted, sizes
        refused = [all(one.holds(sizes) for one in case.conditions) for case in graphs.refused]
        assert sum(refused) == 1 - accepted, sizes


SUM = "t = g[:, :, None] * 2 * (x[:, None, :] - w[None, :, :])"
PROGRAMS = {  # what forward returns, and the gradients
    "gram": ("x @ w.t()", "g @ w", "g.t() @ x"),
    "cat": ("sg.cat([x, w], 0)", "g[:x.shape[0]]", "g[x.shape[0]:]"),
    "distances": ("(x[:, None, :] - w[None, :, :]).square().sum(-1)", f"{SUM}; t.sum(1)",
                  "-t.sum(0)"),
    "product": ("x * w", "g * w", "g * x"),
}  # fmt: skip
QUESTIONS = {
    "x.shape == w.shape": (),
    "list(x.shape) == list(w.shape)": (),
    "x.size() == w.size()": ("n m", "k l"),
}


def _verdict(program: str, factor: str, question: str, *specs: str) -> sg.Report:
    forward, by_x, by_w = PROGRAMS[program]
    first, _, by_x = by_x.rpartition("; ")
    text = class_text(
        "Asks", f"n, m = x.shape\nctx.same = {question}\n{forward}",
        f"{first or 'pass'}\nk = {factor}\n{by_x}, k * ({by_w})", ["x", "w"],
    )  # fmt: skip
    return sg.verify(class_of("Asks", text, sg), *specs, timeout=None, suggest=False)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_sizes_that_differ_are_judged(program: str, question: str) -> None:
    specs = QUESTIONS[question]
    right = _verdict(program, "1", question, *specs)
    assert right.verdict == "PROVED", str(right)
    wrong = _verdict(program, "1 if ctx.same else 2", question, *specs)
    assert wrong.verdict == "REFUTED", str(wrong)
    assert "forward does not accept n != k:" not in str(wrong)


def test_an_axis_that_is_squeezed_may_have_the_size_of_another_one() -> None:
    text = class_text(
        "Squeezed", "x.squeeze(-1) * w",
        "k = 1 if x.shape[-1] == 1 else 2\n(k * g * w).reshape(x.shape), g * x.squeeze(-1)",
        ["x", "w"],
    )  # fmt: skip
    report = sg.verify(class_of("Squeezed", text, sg), "n m", "n", timeout=None)
    assert report.verdict == "REFUTED", str(report)


def test_what_is_not_traced_for_a_symbol_is_not_refused() -> None:
    text = class_text(
        "Unbound", "x * w if x.shape == w.shape else sum(row.sum() for row in w.unbind(0)) + x",
        "(g * w, g * x) if x.shape == w.shape else (g, 2 * g.sum().expand_as(w))", ["x", "w"],
    )  # fmt: skip
    with pytest.raises(ShapeError, match="unbind"):
        trace(class_of("Unbound", text, sg), "n m", "k l")
    assert sg.verify(class_of("Unbound", text, sg), timeout=None).verdict == "REFUTED"
