"""A repair holds for all that its class is judged for, or says for what it was proved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import symgrad as sg
from benchmarks.repairs import ALL, NO_DIFF, outcome, programs
from tests.pasting.test_repairs import HEAD, loaded, repaired

WIDER = {
    "elements": ("((x - y) ** 2).mean()", "x, y", "x - y, x.shape[0]",
                 "2 * g * a / b, -2 * g * a / b"),
    "last axis": ("x.softmax(-1)", "x", "x.softmax(-1)", "a * (g + (g * a).sum(-1, keepdim=True))"),
    "last size": ("x.mean(-1)", "x", "x", "g.unsqueeze(-1).expand(a.shape) / a.shape[0]"),
}  # fmt: skip


def text_of(forward: str, takes: str, kept: str, backward: str) -> str:
    """A class whose backward reads what forward keeps as a and b."""
    names = ", ".join("ab"[: kept.count(",") + 1])
    return f"""class Op(sg.Function):
    @staticmethod
    def forward(ctx, {takes}):
        ctx.kept = ({kept},)
        return {forward}

    @staticmethod
    def backward(ctx, g):
        ({names},) = ctx.kept
        return {backward}
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", WIDER)
def test_a_repair_fits_other_numbers_of_axes(name: str, tmp_path: Path) -> None:
    report, _ = repaired(tmp_path, text_of(*WIDER[name]))
    under = [c.kind for one in report.inputs.values() for c in one.suggested_under]
    assert "alone" not in under, str(report)


NARROW = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x @ x).diagonal().sum()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x
"""


def test_a_repair_says_for_which_shapes_it_was_proved(tmp_path: Path) -> None:
    report: Any = sg.verify(loaded(tmp_path / "narrow.py", NARROW))
    assert report.verdict is sg.REFUTED
    (under,) = [one for one in report.inputs["x"].suggested_under if one.kind == "alone"]
    assert "alone: REFUTED for x[" in under.text
    assert under.text in " ".join(str(report).split())
    assert not report.diff, "a diff is for all that is judged"


COUNTED = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.save_for_backward(x)
        ctx.n = n
        y = x
        for _ in range(n):
            y = y * x
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.n * x ** (ctx.n - 1), None
"""


def test_a_value_is_said_once_beside_the_shapes(tmp_path: Path) -> None:
    report: Any = sg.verify(loaded(tmp_path / "counted.py", COUNTED))
    (under,) = [one.text for one in report.inputs["x"].suggested_under if one.kind == "alone"]
    assert under.endswith("alone: REFUTED for x[m, k], n = 1")


ASKING = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        if not ctx.needs_input_grad[0]:
            return None, g
        return g * w, 2 * g * x
"""


def test_a_repair_of_one_of_several_calls_says_so(tmp_path: Path) -> None:
    report: Any = sg.verify(loaded(tmp_path / "asking.py", ASKING), "n", "n")
    (under,) = report.inputs["w"].suggested_under
    assert under.kind == "alone"
    assert "this call alone" in str(report)
    right = ASKING.replace("None, g\n", "None, g * x\n")
    report = sg.verify(loaded(tmp_path / "asked.py", right), "n", "n")
    assert not report.inputs["w"].suggested_under
    assert report.diff


TWICE = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return (x - y).square()

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        grad = g * (x - y)
        return grad, -grad
"""


def test_one_edit_repairs_what_is_computed_from_it(tmp_path: Path) -> None:
    _, right = repaired(tmp_path, TWICE)
    assert "return grad, -grad\n" in right
    changed = [a for a, b in zip((HEAD + TWICE).splitlines(), right.splitlines(), strict=True)
               if a != b]  # fmt: skip
    assert len(changed) == 1


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_repairs_hold_as_a_user_takes_them(part: int) -> None:
    found = [outcome(*one) for one in programs(4, 3)[part::2]]
    held = [one for one in found if one.called == ALL]
    assert held
    assert all(one.after in (sg.PROVED.name, NO_DIFF) for one in held), [
        (one.name, one.what, one.after) for one in held
    ]
