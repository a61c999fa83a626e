"""Declared facts: contradictory ones, ones that leave nothing over, ones that are needed."""

from __future__ import annotations

import symgrad as sg
from tests.suite.adversarial.program import Programs, at

programs = Programs(sg, __name__)
op, right, wrong = programs.op, programs.right, programs.wrong

# wrong where the fact does not hold, and where it holds nowhere
op(
    "NoSuchPositive",
    "x * x",
    "g",
    "n",
    assume={"x": "positive and (-2, -1)"},
    fails=at(),
    hides=False,
)
op("NoSuchInterval", "x * x", "g", "n", assume={"x": "(2, 1)"}, fails=at(), hides=False)
op("NoSuchBinary", "x * x", "g", "n", assume={"x": "{0, 1} and (3, 4)"}, fails=at(), hides=False)
op(
    "NoSuchNegative",
    "x * x",
    "g",
    "n",
    assume={"x": "negative and positive"},
    fails=at(),
    hides=False,
)
op("NoSuchRows", "x * x", "g", "n m", assume={"x": "one-hot and (2, 3)"}, fails=at(), hides=False)
op(
    "NoSuchSign",
    "x * x",
    "g",
    "n",
    assume={"x": "nonnegative and (-3, -2)"},
    fails=at(),
    hides=False,
)
op("NoSuchBranch", "sg.where(x > 5, x * x, x)", "g", "n", fails=at(x=6.0))
op(
    "NoSuchBranchDeclared",
    "sg.where(x > 5, x * x, x)",
    "g",
    "n",
    assume={"x": "(-1, 1)"},
    inside={"x": (-0.9, 0.9)},
)
op("NoSuchBranchNested", "sg.where(x > 5, sg.where(x < 4, x ** 3, x), x)", "g", "n")
op("AbsOfPositive", "x.abs()", "g", "n", assume={"x": "positive"}, inside={"x": (0.1, 3.0)})
op("AbsOfAny", "x.abs()", "g", "n", fails=at(x=-1.0), inside={"x": (0.1, 3.0)})
op("ReluOfNonnegative", "x.relu()", "g", "n", assume={"x": "[0, 5]"}, inside={"x": (0.1, 3.0)})
op(
    "SquareOfBinary",
    "x * x",
    "2 * g * x * x",
    "n",
    assume={"x": "{0, 1}"},
    fails=at(x=0.5),
    hides=False,
    unless="0 or 1|binary|\\{0, 1\\}",
)
op(
    "RootOfSquareOfPositive",
    "(x * x).sqrt()",
    "g * x / x",
    "n",
    assume={"x": "positive"},
    inside={"x": (0.1, 3.0)},
)
op("BoundIsMet", "x.clamp(0, 1)", "g", "n", assume={"x": "(0, 1)"}, inside={"x": (0.1, 0.9)})
op(
    "BoundIsPassed",
    "x.clamp(0, 1)",
    "g",
    "n",
    assume={"x": "(0, 2)"},
    fails=at(x=1.5),
    inside={"x": (0.1, 0.9)},
)
op(
    "LogOfInterval",
    "(1 - x).log()",
    "-g / (1 - x)",
    "n",
    assume={"x": "(0, 1)"},
    inside={"x": (0.1, 0.9)},
)
op(
    "AcoshOfLarge",
    "x.acosh()",
    "g / (x * x - 1).sqrt()",
    "n",
    assume={"x": "(1, 9)"},
    inside={"x": (1.1, 3.0)},
)
op(
    "SymmetricSum",
    "(x @ x).diagonal().sum()",
    "2 * g * x",
    "n n",
    assume={"x": "symmetric"},
    fails=at(n=2, x=[[1.0, 2.0], [0.0, 1.0]]),
    hides=False,
    unless="symmetric",
)
op(
    "ConstantTarget",
    "(x - y) ** 2",
    "(2 * g * (x - y), None)",
    "n",
    "n",
    assume={"y": "constant"},
    fails=at(),
    hides=False,
    unless="constant",
)
op(
    "ConstantTargetNotSaid",
    "(x - y) ** 2",
    "(2 * g * (x - y), None)",
    "n",
    "n",
    fails=at(),
    hides=False,
)
