"""Where one token of backward is wrong, the diff changes that token and nothing else."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

import pytest

from symgrad.pasting.patch import Method
from symgrad.pasting.tokens import token_edits
from tests.pasting.test_repairs import HEAD, repaired

SWISH = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x):
        s = sg.sigmoid(x)
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        slope = s + x * s * (1 - s)
        return g * slope
"""
LINEAR = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x @ w + b

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        grad_x = g @ w.mT
        grad_w = x.mT @ g
        return grad_x, grad_w, g.sum(0)
"""
NORM = """class Op(sg.Function):
    @staticmethod
    def forward(ctx, x):
        c = x - x.mean(-1, keepdim=True)
        r = (c * c).mean(-1, keepdim=True).add(0.5).rsqrt()
        y = c * r
        ctx.save_for_backward(y, r)
        return y

    @staticmethod
    def backward(ctx, g):
        y, r = ctx.saved_tensors
        p = y * (g * y).mean(-1, keepdim=True)
        m = g.mean(-1, keepdim=True)
        return r * (g - m - p)
"""
SLIPS = (
    (SWISH, "s + x", "s - x"), (SWISH, "(1 - s)", "(1 + s)"), (SWISH, "(1 - s)", "(2 - s)"),
    (SWISH, "x * s * (1", "s * s * (1"), (SWISH, "x * s * (1", "x * (1"),
    (SWISH, "g * slope", "g * s"), (SWISH, "return g *", "return -g *"),
    (SWISH, "s + x", "2 * s + x"), (SWISH, "(1 - s)", "(1 - s ** 2)"),
    (LINEAR, "g.sum(0)", "g.mean(0)"), (LINEAR, "g.sum(0)", "3 * g.sum(0)"),
    (LINEAR, "x.mT @ g", "-x.mT @ g"), (LINEAR, "g @ w.mT", "g / 2 @ w.mT"),
    (NORM, "g - m - p", "g - m + p"), (NORM, "(g * y)", "(g * g)"),
    (NORM, "g.mean(-1, k", "g.sum(-1, k"), (NORM, "r * (g", "r * r * (g"),
    (NORM, "- m", "- 2 * m"),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("text", "right", "wrong"), SLIPS)
def test_one_token_is_what_the_diff_changes(
    tmp_path: Path, text: str, right: str, wrong: str
) -> None:
    assert text.count(right) == 1
    shapes = ("n k", "k m", "m") if text is LINEAR else ("n m",)
    report, after = repaired(tmp_path, text.replace(right, wrong), *shapes)
    old = ast.unparse(ast.parse(HEAD + text.replace(right, wrong))).splitlines()
    new = ast.unparse(ast.parse(after)).splitlines()
    changed = [(one, other) for one, other in zip(old, new, strict=True) if one != other]
    assert len(changed) == 1
    (one, other), = changed  # fmt: skip
    assert abs(len(one) - len(other)) <= 8, report.diff


def test_each_edit_is_another_method_of_the_same_name() -> None:
    lines = tuple(NORM[NORM.index("    def backward") :].splitlines(keepends=True))
    method = Method("here.py", 1, lines)
    found = list(token_edits(method))
    assert len({one.lines for one in found}) == len(found) > 50
    assert method.lines not in {one.lines for one in found}
    assert all(one.tree.name == "backward" for one in found)
    right = "        return r * (g - m - p)\n"
    wrong = Method("here.py", 1, (*lines[:-1], right.replace("- p", "+ p")))
    assert any(one.lines[-1] == right for one in token_edits(wrong))


def test_what_an_edit_writes_is_one_operand_and_no_warning() -> None:
    text = (
        "    def backward(ctx, g):\n"
        '        """Of \\d."""\n'
        "        a, i = ctx.saved_tensors\n"
        "        return (a * g).clone().index_add_(0, i, -g)[0].sum(1)\n"
    )
    method = Method("here.py", 1, tuple(text.splitlines(keepends=True)))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        lines = {edited.lines[-1].strip() for edited in token_edits(method)}
    assert not said
    assert "return ((a * g).clone() ** 2).index_add_(0, i, -g)[0].sum(1)" in lines
    assert "return (-(a * g).clone()).index_add_(0, i, -g)[0].sum(1)" in lines
    assert not any("2.index_add_" in line for line in lines)
