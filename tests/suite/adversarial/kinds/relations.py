"""Stated relations between inputs: branches that they decide, and ones that they only seem to.

Points of wrong programs meet the relation, unless the program is wrong outside of it alone.
"""

from __future__ import annotations

import symgrad as sg
from tests.suite.adversarial.program import Programs, at

programs = Programs(sg, __name__)
op = programs.op

BALL = {"x": "(x * x).sum(-1) < 1"}
SMALL = {"x": (-0.3, 0.3)}
S = "(x * x).sum(-1)"

# a branch, a root, a logarithm inside the ball
op("BranchInside", f"sg.where(1 - {S} > 0, {S}, 5 * {S})", "2 * g.unsqueeze(-1) * x", "n m",
   assume=BALL, inside=SMALL)  # fmt: skip
op("BranchInsideTurned", f"sg.where(1 - {S} > 0, {S}, 5 * {S})", "10 * g.unsqueeze(-1) * x",
   "n m", assume=BALL, inside=SMALL, hides=False, fails=at(x=0.1))  # fmt: skip
op("ClampedInside", f"(1 - {S}).clamp(min=0)", "-2 * g.unsqueeze(-1) * x", "n m", assume=BALL,
   inside=SMALL)  # fmt: skip
op("ClampedOutside", f"(1 - {S}).clamp(min=0)", "-2 * g.unsqueeze(-1) * x", "n m", inside=SMALL,
   fails=at(x=2.0))  # fmt: skip
op("ClampedAbove", f"(1 - {S}).clamp(min=0.5)", "-2 * g.unsqueeze(-1) * x", "n m", assume=BALL,
   inside={"x": (-0.2, 0.2)}, fails=at(n=1, m=1, x=0.9))  # fmt: skip
op("ColumnsForRows", "(1 - (x * x).sum(0)).clamp(min=0)", "-2 * g * x", "n m", assume=BALL,
   inside=SMALL, fails=at(n=3, m=1, x=0.9))  # fmt: skip
op("ColumnsForRowsSquare", "(1 - (x * x).sum(0)).clamp(min=0)", "-2 * g * x", "n n", assume=BALL,
   inside=SMALL, fails=at(n=3, x=[[0.9, 0, 0], [0.9, 0, 0], [0.0, 0, 0]]))  # fmt: skip
op("WholeForRows", "(1 - (x * x).sum()).clamp(min=0)", "-2 * g * x", "n m", assume=BALL,
   inside={"x": (-0.2, 0.2)}, fails=at(n=4, m=1, x=0.9))  # fmt: skip
op("RowsForWhole", f"(1 - {S}).clamp(min=0)", "-2 * g.unsqueeze(-1) * x", "n m",
   assume={"x": "(x * x).sum() < 1"}, inside={"x": (-0.2, 0.2)})  # fmt: skip
op("OtherRow", "y = x.roll(1, 0); (1 - (y * y).sum(-1)).relu()",
   "-2 * g.roll(-1, 0).unsqueeze(-1) * x", "n m", assume=BALL, inside=SMALL)  # fmt: skip
op("LogNormOfBall", f"(1 - {S}).log()", f"-2 * x * (g / (1 - {S})).unsqueeze(-1)", "n m",
   assume=BALL, inside=SMALL)  # fmt: skip
op("LogOfTwoPlus", f"(2 - {S}).log().relu()", "-2 * x * (g / (2 - " + S + ")).unsqueeze(-1)",
   "n m", assume=BALL, inside=SMALL)  # fmt: skip
op("ElementOfBall", "(1 - x).relu()", "-g", "n m", assume=BALL, inside=SMALL)
op("ElementOfLargerBall", "(1 - x).relu()", "-g", "n m", assume={"x": "(x * x).sum(-1) < 4"},
   inside=SMALL, fails=at(n=1, m=1, x=1.5))  # fmt: skip
op("SumOfBall", "(1 - x.sum(-1)).relu()", "-g.unsqueeze(-1).expand(x.shape)", "n m", assume=BALL,
   inside={"x": (-0.2, 0.2)}, fails=at(n=1, m=4, x=0.4))  # fmt: skip
op("NormForSquares", f"(1 - {S}).relu()", "-2 * g.unsqueeze(-1) * x", "n m",
   assume={"x": "x.norm(dim=-1) < 1"}, inside=SMALL)  # fmt: skip
op("NormBelowTwo", f"(1 - {S}).relu()", "-2 * g.unsqueeze(-1) * x", "n m",
   assume={"x": "x.norm(dim=-1) < 2"}, inside=SMALL, fails=at(n=1, m=1, x=1.5))  # fmt: skip

# two inputs
op("Ordered", "(y - x).relu()", "(-g, g)", "n", "n", assume={"x": "x < y"},
   inside={"x": (-2, -1), "y": (1, 2)})  # fmt: skip
op("OrderedTurned", "(y - x).relu()", "(-g, g)", "n", "n", assume={"x": "x > y"}, hides=False,
   fails=at(x=2.0, y=1.0))  # fmt: skip
op("OrderedNegation", "(y - x).relu()", "(0 * g, 0 * g)", "n", "n", assume={"x": "x > y"},
   inside={"x": (1, 2), "y": (-2, -1)})  # fmt: skip
op("OrderedRows", "(y - x).relu()", "(-g, g.sum(0))", "n m", "m", assume={"x": "x < y"},
   inside={"x": (-2, -1), "y": (1, 2)})  # fmt: skip
op("OrderedSums", "(y - x).relu()", "(-g, g)", "n", "n", assume={"x": "x.sum() < y.sum()"},
   inside={"x": (-2, -1), "y": (1, 2)}, fails=at(n=2, x=[0.0, 2.0], y=[9.0, 1.0]))  # fmt: skip
op("OrderedInSteps", "(z - x).relu()", "(-g, 0 * g, g)", "n", "n", "n",
   assume={"x": "x < y", "y": "y < z"},
   inside={"x": (-2, -1), "y": (0, 0.5), "z": (1, 2)})  # fmt: skip
op("Chain", "(z - x).relu()", "(-g, 0 * g, g)", "n", "n", "n", assume={"x": "x < y < z"},
   inside={"x": (-2, -1), "y": (0, 0.5), "z": (1, 2)})  # fmt: skip
op("ChainMiddle", "(y - x - 1).relu()", "(-g, g, 0 * g)", "n", "n", "n",
   assume={"x": "x < y < z"}, inside={"x": (-2, -1), "y": (0.5, 1), "z": (2, 3)},
   fails=at(x=0.0, y=0.5, z=1.0))  # fmt: skip
op("Apart", "1 / (x - y)", "(-g / (x - y) ** 2, g / (x - y) ** 2)", "n", "n",
   assume={"x": "x != y"}, inside={"x": (-2, -1), "y": (1, 2)})  # fmt: skip
op("ApartForOrdered", "(x - y).relu()", "(g, -g)", "n", "n", assume={"x": "x != y"},
   inside={"x": (1, 2), "y": (-2, -1)}, fails=at(x=0.0, y=1.0))  # fmt: skip
op("Discriminant", "d = y * y - 4 * x; d.relu().sqrt()",
   "r = (y * y - 4 * x).sqrt(); (-2 * g / r, g * y / r)", "n", "n",
   assume={"x": "4 * x < y * y"}, inside={"x": (-2, -1), "y": (1, 2)})  # fmt: skip
op("DiscriminantSlipped", "d = y * y - 4 * x; d.relu()", "(-4 * g, 2 * g * y)", "n", "n",
   assume={"x": "2 * x < y * y"}, inside={"x": (-2, -1), "y": (1, 2)},
   fails=at(x=1.0, y=1.5))  # fmt: skip

# ends, thin sets, single values
op("EndOfBall", f"(1 - {S}).relu()", "-2 * g.unsqueeze(-1) * x", "n m",
   assume={"x": "(x * x).sum(-1) <= 1"}, inside=SMALL)  # fmt: skip
op("WrongAtEnd", "x * 1", f"g * sg.where({S}.unsqueeze(-1) == 1, 2, 1)", "n m",
   assume={"x": "(x * x).sum(-1) <= 1"}, inside=SMALL, fails=at(n=1, m=1, x=1.0))  # fmt: skip
op("OutOfReach", "x * 1", f"g * sg.where({S}.unsqueeze(-1) == 1, 2, 1)", "n m", assume=BALL,
   inside=SMALL)  # fmt: skip
op("ThinBall", "x * 1", "g * sg.where(x == 0, 2, 1)", "n", assume={"x": "(x * x).sum() <= 0"},
   hides=False, fails=at(x=0.0))  # fmt: skip
op("ThinBetween", "x * 1", "g * sg.where(x == y, 2, 1), 0 * g", "n", "n",
   assume={"x": "x <= y and y <= x"}, hides=False, fails=at(x=1.0, y=1.0))  # fmt: skip
op("NeedOfLog", "x * 1", "g + 0 * (1 - x * x).log()", "n", assume={"x": "x.abs() < 1"},
   inside={"x": (-0.9, 0.9)})  # fmt: skip
op("NeedOfLogOpen", "x * 1", "g + 0 * (1 - x * x).log()", "n", assume={"x": "x.abs() < 2"},
   inside={"x": (-0.9, 0.9)}, fails=at(x=1.5))  # fmt: skip
op("PoincareGap", f"((1 - {S}) * (1 - (y * y).sum(-1))).relu()",
   f"a = 1 - {S}; b = 1 - (y * y).sum(-1);"
   " (-2 * (g * b).unsqueeze(-1) * x, -2 * (g * a).unsqueeze(-1) * y)",
   "n m", "n m", assume={**BALL, "y": "(y * y).sum(-1) < 1"},
   inside={"x": (-0.3, 0.3), "y": (-0.3, 0.3)})  # fmt: skip
op("PoincareGapOfOne", f"((1 - {S}) * (1 - (y * y).sum(-1))).relu()",
   f"a = 1 - {S}; b = 1 - (y * y).sum(-1);"
   " (-2 * (g * b).unsqueeze(-1) * x, -2 * (g * a).unsqueeze(-1) * y)",
   "n m", "n m", assume=BALL, inside={"x": (-0.3, 0.3), "y": (-0.3, 0.3)},
   fails=at(n=1, m=1, x=0.5, y=2.0))  # fmt: skip

# bounds that seem to follow
op("CubesForSquares", "(1 - x * x).relu()", "-2 * g * x", "n", hides=False,
   assume={"x": "(x * x * x).sum() < 1"}, fails=at(n=1, x=-2.0))  # fmt: skip
op("SumOfPositive", "(x @ y).relu()", "(g @ y.t(), x.t() @ g)", "n k", "k m", hides=False,
   assume={"x": "positive and x.sum() < 1", "y": "y.sum() > 0"},
   fails=at(n=1, k=2, m=1, x=[[0.1, 0.8]], y=[[5.0], [-3.0]]))  # fmt: skip
op("PartialSums", "(x * 1).cumsum(0).relu()", "g.flip(0).cumsum(0).flip(0)", "n", hides=False,
   assume={"x": "x.sum() > 0"}, fails=at(n=2, x=[-1.0, 2.0]))  # fmt: skip
op("FallingAround", "(x.roll(1, 0) - x).relu()", "g.roll(-1, 0) - g", "n", hides=False,
   assume={"x": "x[1:] < x[:-1]"}, fails=at(n=2, x=[2.0, 1.0]))  # fmt: skip
op("RisingByTwo", "(x[2:] - x[:-2]).relu()",
   "z = x[:2] * 0; sg.cat([z, g]) - 2 * sg.cat([g, z])", "n+2", hides=False,
   assume={"x": "x[1:] > x[:-1]"}, fails=at(n=1, x=[1.0, 2.0, 3.0]))  # fmt: skip
op("OtherPairs", "x * 1", "(g + 0 * (1 - x.unsqueeze(0) * y.unsqueeze(1)).log().sum(0), 0 * y)",
   "n", "n", hides=False, assume={"x": "x * y < 1"},
   fails=at(n=2, x=[0.1, 5.0], y=[4.0, 0.1]))  # fmt: skip
op("FourthForSecond", f"(1 - {S}).relu()", "-2 * g.unsqueeze(-1) * x", "n m", hides=False,
   assume={"x": "(x ** 4).sum(-1) < 1"}, fails=at(n=1, m=2, x=0.8))  # fmt: skip
op("GapOfTenth", "(y - x).clamp(min=0.1)", "(-g, g)", "n", "n", hides=False,
   assume={"x": "x < y"}, fails=at(n=1, x=1.0, y=1.05))  # fmt: skip
op("GapKept", "(y - x).clamp(min=0.1)", "(-g, g)", "n", "n", assume={"x": "x + 0.1 < y"},
   inside={"x": (-2, -1), "y": (1, 2)})  # fmt: skip
op("TransposedOrder", "(y - x).relu()", "(-g, g)", "n n", "n n", hides=False,
   assume={"x": "x < y.t()"},
   fails=at(n=2, x=[[0.0, 3.0], [0.0, 0.0]], y=[[1.0, 1.0], [4.0, 1.0]]))  # fmt: skip
op("AllPairs", "(y.unsqueeze(0) - x.unsqueeze(1)).relu()", "(-g.sum(1), g.sum(0))", "n", "n",
   assume={"x": "x.unsqueeze(1) < y"}, inside={"x": (-2, -1), "y": (1, 2)})  # fmt: skip
op("PairsByElement", "(y.unsqueeze(0) - x.unsqueeze(1)).relu()", "(-g.sum(1), g.sum(0))", "n",
   "n", hides=False, assume={"x": "x < y"}, fails=at(n=2, x=[0.0, 5.0], y=[1.0, 6.0]))  # fmt: skip
op("LengthOfOtherAxis", "(x.shape[0] - x).relu()", "-g", "n m", hides=False,
   assume={"x": "x < x.shape[-1]"}, fails=at(n=1, m=3, x=2.0))  # fmt: skip
op("LengthOfAxis", "(x.shape[-1] - x).relu()", "-g", "n m", assume={"x": "x < x.shape[-1]"},
   inside={"x": (-1, 0.5)})  # fmt: skip
