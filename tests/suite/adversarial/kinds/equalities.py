"""Stated equalities: right where they hold, and wrong elsewhere; or wrong where they hold, too.

A program that is right on the set alone is ``wrong`` at a point outside, which the printed equality
excludes.  The others fail at a point that meets the equality.
"""

from __future__ import annotations

import symgrad as sg
from tests.suite.adversarial.program import Programs, at

programs = Programs(sg, __name__)
op = programs.op

ROWS = {"x": "x.sum(-1) == 1"}
HALVES = [[0.5, 0.5], [0.25, 0.75]]


def _there(name: str, forward: str, backward: str, *specs: str, **about: object) -> None:
    """Right where the equality holds."""
    op(name, forward, backward, *specs, hides=False, unless="==", **about)


def _nowhere(name: str, forward: str, backward: str, *specs: str, **about: object) -> None:
    """Wrong where the equality holds."""
    op(name, forward, backward, *specs, hides=False, **about)


_there("RowsOfOne", "x * 1", "g * x.sum(-1, keepdim=True)", "n m", assume=ROWS, fails=at(x=1.0))
_nowhere("ColumnsOfOne", "x * 1", "g * x.sum(-1, keepdim=True)", "n m",
         assume={"x": "x.sum(0) == 1"},
         fails=at(n=2, m=2, x=[[0.5, 0.25], [0.5, 0.75]]))  # fmt: skip
_there("Normalised", "x / x.sum(-1, keepdim=True)", "g - (g * x).sum(-1, keepdim=True)", "n m",
       assume=ROWS, fails=at(x=1.0))  # fmt: skip
_nowhere("NormalisedByConstant", "x / x.sum(-1, keepdim=True)", "g", "n m", assume=ROWS,
         fails=at(n=2, m=2, x=HALVES))  # fmt: skip
_nowhere("RelationIsDifferentiated", "(x * x).sum(-1)",
         "d = 2 * g.unsqueeze(-1) * x; d - d.mean(-1, keepdim=True)", "n m", assume=ROWS,
         fails=at(n=2, m=2, x=HALVES))  # fmt: skip
_there("Entropy", "(x * x.log()).sum(-1)",
       "g.unsqueeze(-1) * (x.log() + x.sum(-1, keepdim=True))", "n m",
       assume={"x": "positive and x.sum(-1) == 1"}, fails=at(x=1.0))  # fmt: skip
_nowhere("EntropyShort", "(x * x.log()).sum(-1)", "g.unsqueeze(-1) * x.log()", "n m",
         assume={"x": "positive and x.sum(-1) == 1"}, fails=at(n=2, m=2, x=HALVES))  # fmt: skip
_nowhere("NanThere", "x * 1", "g + 0 / (x.sum(-1, keepdim=True) - 1)", "n m", assume=ROWS,
         fails=at(n=2, m=2, x=HALVES))  # fmt: skip
_nowhere("CancelsThere", "x * 1",
         "s = x.sum(-1, keepdim=True) - 1; g * s / s", "n m", assume=ROWS,
         fails=at(n=2, m=2, x=HALVES))  # fmt: skip
_nowhere("AskedThere", "x * 1", "g * (x.sum(-1, keepdim=True) != 1)", "n m", assume=ROWS,
         fails=at(n=2, m=2, x=HALVES))  # fmt: skip
_nowhere("HiddenRemovable", "s = x.sum(-1); sg.where(s == 1, 0 * s, s - 1)", "0 * x * g.sum()",
         "n m", assume=ROWS, fails=at(n=2, m=2, x=HALVES))  # fmt: skip
_nowhere("HiddenRemovableClose", "s = x.sum(-1); sg.where(s != 1, 2 * s - 2, 0 * s)",
         "g.unsqueeze(-1).expand(x.shape)", "n m", assume=ROWS,
         fails=at(n=2, m=2, x=HALVES))  # fmt: skip
_there("Centred", "x * 1", "g + x.mean(-1, keepdim=True)", "n m", assume={"x": "x.mean(-1) == 0"},
       fails=at(x=1.0))  # fmt: skip
_there("MeanOfTwo", "x * 1", "g * x.mean(-1, keepdim=True) / 2", "n m",
       assume={"x": "x.mean(-1) == 2"}, fails=at(x=1.0))  # fmt: skip
_nowhere("MeanForSum", "x * 1", "g * x.sum(-1, keepdim=True)", "n m",
         assume={"x": "x.mean(-1) == 1"}, fails=at(n=2, m=2, x=1.0))  # fmt: skip
_there("Twice", "x * y", "(g * x / 2, g * y * 2)", "n", "n", assume={"x": "x == 2 * y"},
       fails=at(x=1.0, y=1.0))  # fmt: skip
_nowhere("TwiceTurned", "x * y", "(g * x * 2, g * y / 2)", "n", "n", assume={"x": "x == 2 * y"},
         fails=at(x=2.0, y=1.0))  # fmt: skip
_there("SymmetricByRelation", "(x @ x).diagonal().sum()", "2 * g * x", "n n",
       assume={"x": "x == x.T"}, fails=at(n=2, x=[[1.0, 2.0], [0.0, 1.0]]))  # fmt: skip
_there("Antisymmetric", "(x @ x).diagonal().sum()", "-2 * g * x", "n n",
       assume={"x": "x == -x.T"}, fails=at(n=2, x=[[1.0, 2.0], [0.0, 1.0]]))  # fmt: skip
_nowhere("AntisymmetricTurned", "(x @ x).diagonal().sum()", "2 * g * x", "n n",
         assume={"x": "x == -x.T"}, fails=at(n=2, x=[[0.0, 2.0], [-2.0, 0.0]]))  # fmt: skip
_there("Diagonal", "x @ y", "(g @ y.t(), x @ g)", "n n", "n m",
       assume={"x": "x == x.diagonal().diag()"},
       fails=at(n=2, m=1, x=[[1.0, 2.0], [0.0, 1.0]]))  # fmt: skip
_there("EqualHalves", "x * x", "h = x[:, 3:]; 2 * g * sg.cat([h, h], 1)", "n 6",
       assume={"x": "x[:, :3] == x[:, 3:]"}, fails=at(n=1, x=[[1.0, 2, 3, 4, 5, 6]]))  # fmt: skip
_nowhere("OtherHalves", "x * x", "h = x[:, 3:]; 2 * g * sg.cat([h, h], 1)", "n 6",
         assume={"x": "x[:, 0] == x[:, 3]"}, fails=at(n=1, x=[[1.0, 2, 3, 1, 5, 6]]))  # fmt: skip
_there("FirstIsZero", "x * x", "2 * g * x + x[:, :1]", "n 3", assume={"x": "x[:, 0] == 0"},
       fails=at(n=1, x=[[1.0, 2, 3]]))  # fmt: skip
_nowhere("SecondIsZero", "x * x", "2 * g * x + x[:, :1]", "n 3", assume={"x": "x[:, 1] == 0"},
         fails=at(n=1, x=[[1.0, 0, 3]]))  # fmt: skip
_there("DoublyStochastic", "x * 1", "g * x.sum(0) * x.sum(1, keepdim=True)", "n n",
       assume={"x": "x.sum(-1) == 1 and x.sum(0) == 1"}, fails=at(n=2, x=1.0))  # fmt: skip
_nowhere("OnlyRowsStochastic", "x * 1", "g * x.sum(0) * x.sum(1, keepdim=True)", "n n",
         assume=ROWS, fails=at(n=2, x=[[1.0, 0.0], [1.0, 0.0]]))  # fmt: skip
_nowhere("KinkOnTheSet", "(x.sum(-1) - 1).abs() + x.sum(-1)", "g.unsqueeze(-1).expand(x.shape)",
         "n m", assume={"x": "x.sum(-1) == 2"}, fails=at(n=1, m=2, x=1.0))  # fmt: skip
_nowhere("WrongAtZeroOfRows", "x * 1", "g * sg.where(x == 0, 2, 1)", "n m", assume=ROWS,
         fails=at(n=1, m=2, x=[[1.0, 0.0]]))  # fmt: skip
_nowhere("WrongForOne", "x * 1", "g * sg.where(x == 1, 2, 1)", "n m", assume=ROWS,
         fails=at(n=1, m=1, x=1.0))  # fmt: skip
