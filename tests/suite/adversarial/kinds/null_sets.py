"""Wrong only where reals are equal: a set that generic points never meet.

``{equal}`` is the text of a comparison that holds on a null set.  There backward gives another
number, though forward has a derivative.
"""

from __future__ import annotations

import symgrad as sg
from tests.suite.adversarial.program import Programs, at

programs = Programs(sg, __name__)

FORWARDS = {
    "Linear": ("3 * x", "3"),
    "Sine": ("x.sin()", "x.cos()"),
    "Exp": ("(x / 4).exp()", "(x / 4).exp() / 4"),
    "Square": ("x * x", "2 * x"),
    "Shifted": ("(x + 100) ** 2", "2 * (x + 100)"),
    "Arctangent": ("x.atan()", "1 / (1 + x * x)"),
}

# conditions that hold on a null set, and a point of it; x[n]
SETS = {
    "Literal": ("x == 2.75", at(x=2.75)),
    "LiteralFar": ("x == 4321", at(x=4321.0)),
    "Product": ("x * x == 1369 / 4", at(x=18.5)),
    "Cubic": ("x ** 3 - 2 * x == 4", at(x=2.0)),
    "SumOfAll": ("x.sum() == 12", at(n=3, x=4.0)),
    "MeanOfAll": ("x.mean() == 1.5", at(x=1.5)),
    "SumOfSquares": ("(x * x).sum() == 27", at(n=3, x=3.0)),
    "Sandwich": ("(x >= 77) & (x <= 77)", at(x=77.0)),
    "NotStrictlyBetween": ("~((x > 19) | (x < 19))", at(x=19.0)),
    "SizeOf": ("x == x.shape[0]", at(n=3, x=3.0)),
    "TwiceSize": ("x == 2 * x.shape[0] + 11", at(n=2, x=15.0)),
    "IndexOf": ("x == sg.arange(x.shape[0]) + 50", at(n=3, x=[50.0, 51.0, 52.0])),
    "Difference": ("(x - 8) * (x - 9) == 0", at(x=9.0)),
    "ExpIsOne": ("(x - 33).exp() == 1", at(x=33.0)),
    "AbsIsZero": ("(x - 66).abs() == 0", at(x=66.0)),
    "AbsIsNotPositive": ("(x + 5).abs() <= 0", at(x=-5.0)),
    "SquareIsNotPositive": ("~((x - 23).square() > 0)", at(x=23.0)),
    "SignIsZero": ("(x - 29).sign() == 0", at(x=29.0)),
    "FloorMeets": ("(x.floor() == x) & (x > 5)", at(x=7.0)),
    "RootIsThree": ("(x * x).sqrt() == 3", at(x=-3.0)),
    "First": ("x[0] == 6", at(x=6.0)),
    "FirstAndLast": ("x[0] + x[-1] == 31", at(n=2, x=15.5)),
    "Largest": ("x.amax() == 14", at(x=14.0)),
    "MaximumOfBoth": ("sg.maximum(x, 2 * x) == 16", at(x=8.0)),
    "Cosh": ("(x - 37).cosh() == 1", at(x=37.0)),
    "Prod": ("x.prod() == 24", at(n=1, x=24.0)),
    "Reciprocal": ("1 / x == 0.125", at(x=8.0)),
    "Norm": ("x.norm() == 10", at(n=1, x=10.0)),
    "Trigonometric": ("(x - 58).sin() == 0", at(x=58.0)),
}

SLIPS = {
    "IsZero": "sg.where({equal}, 0.0, g * {slope})",
    "Doubles": "g * {slope} * (1 + 1.0 * ({equal}))",
    "Masked": "(g * {slope}).masked_fill({equal}, 0.0)",
    "Dropped": "g * {slope} * (~({equal}))",
    "Adds": "g * ({slope} + ({equal}).to(x.dtype))",
    "Negates": "sg.where({equal}, -g, g) * {slope}",
}

for number, (name, (equal, where)) in enumerate(SETS.items()):
    for step in (0, 1):
        forward, slope = list(FORWARDS.values())[(number + 2 * step) % len(FORWARDS)]
        slip = list(SLIPS)[(number + 3 * step) % len(SLIPS)]
        programs.op(
            f"{name}{slip}",
            forward,
            SLIPS[slip].format(equal=equal, slope=slope),
            "n",
            fails=where,
            inside={"x": (0.31, 0.97)},
        )

# comparisons of two inputs
for name, equal, where in (
    ("Line", "x + y == 1", at(x=3.0, y=-2.0)),
    ("Hyperbola", "x * y == 6", at(x=2.0, y=3.0)),
    ("Circle", "x * x + y * y == 25", at(x=3.0, y=4.0)),
    ("Same", "x == y", at(x=5.0, y=5.0)),
    ("Ratio", "x / y == 7", at(x=14.0, y=2.0)),
    ("Inner", "(x * y).sum() == 40", at(n=2, x=4.0, y=5.0)),
    ("BothZero", "(x == 0) & (y == 0)", at(x=0.0, y=0.0)),
    ("FarOrNear", "(x == 90) | (y == -90)", at(x=1.0, y=-90.0)),
    ("Order", "(x >= y) & (x <= y)", at(x=1.25, y=1.25)),
    ("SumIsSize", "x + y == x.shape[0]", at(n=3, x=1.0, y=2.0)),
):
    programs.op(  # at zero the factor does not count
        f"Two{name}",
        "x * y",
        f"h = sg.where({equal}, 2 * g, g)\n(h * y, h * x)",
        "n",
        "n",
        fails=() if name == "BothZero" else where,
    )
    programs.op(
        f"Weighed{name}", "x.sin() + y", f"(g * x.cos() * (~({equal})), g)", "n", "n", fails=where
    )

# rows of a matrix
for name, equal, where in (
    ("RowSum", "x.sum(1, keepdim=True) == 9", at(m=3, x=3.0)),
    ("RowNorm", "(x * x).sum(1, keepdim=True) == 25", at(m=1, x=5.0)),
    ("ColumnMean", "x.mean(0) == 4", at(x=4.0)),
    ("RowMaximum", "x.amax(1, keepdim=True) == 2.5", at(x=2.5)),
    ("Trace", "x[0, 0] == 17", at(x=17.0)),
    ("RowVariance", "x.var(1, correction=0, keepdim=True) == 0", at(x=6.0, m=3)),
    ("Gram", "(x @ x.t()).diagonal().unsqueeze(1) == 8", at(m=2, x=2.0)),
    ("Softmax", "x.softmax(1) == 0.5", at(m=2, x=1.0)),
):
    programs.op(f"Rows{name}", "x * x", f"2 * x * sg.where({equal}, g * 0, g)", "n m", fails=where)

# comparisons that forward shares: a removable singularity has a derivative
programs.op(
    "SincAtZero",
    "z = x == 0\ns = sg.where(z, 1.0, x)\nsg.where(z, 1.0, s.sin() / s)",
    "z = x == 0\ns = sg.where(z, 1.0, x)\ng * sg.where(z, 1.0, (s * s.cos() - s.sin()) / (s * s))",
    "n",
    fails=at(x=0.0),
)
programs.op(
    "SincAtZeroRight",
    "z = x == 0\ns = sg.where(z, 1.0, x)\nsg.where(z, 1.0, s.sin() / s)",
    "z = x == 0\ns = sg.where(z, 1.0, x)\ng * sg.where(z, 0.0, (s * s.cos() - s.sin()) / (s * s))",
    "n",
)
programs.op(
    "TanhOverX",
    "z = x == 0\ns = sg.where(z, 1.0, x)\nsg.where(z, 1.0, s.tanh() / s)",
    "z = x == 0\ns = sg.where(z, 1.0, x)\n"
    "g * sg.where(z, 0.5, ((1 - s.tanh() ** 2) * s - s.tanh()) / (s * s))",
    "n",
    fails=at(x=0.0),
)
programs.op(
    "LogOverX",
    "z = x == 1\ns = sg.where(z, 2.0, x)\nsg.where(z, 1.0, s.log() / (s - 1))",
    "z = x == 1\ns = sg.where(z, 2.0, x)\n"
    "g * sg.where(z, 0.0, ((s - 1) / s - s.log()) / ((s - 1) ** 2))",
    "n",
    fails=at(x=1.0),
    inside={"x": (0.2, 0.9)},
)
programs.op(
    "LogOverXRight",
    "z = x == 1\ns = sg.where(z, 2.0, x)\nsg.where(z, 1.0, s.log() / (s - 1))",
    "z = x == 1\ns = sg.where(z, 2.0, x)\n"
    "g * sg.where(z, -0.5, ((s - 1) / s - s.log()) / ((s - 1) ** 2))",
    "n",
    inside={"x": (0.2, 0.9)},
)
programs.op(
    "VersineOverSquare",
    "z = x == 0\ns = sg.where(z, 1.0, x)\nsg.where(z, 0.5, (1 - s.cos()) / (s * s))",
    "z = x == 0\ns = sg.where(z, 1.0, x)\n"
    "g * sg.where(z, 1.0, s.sin() / (s * s) - 2 * (1 - s.cos()) / s ** 3)",
    "n",
    fails=at(x=0.0),
)
programs.op(
    "XCothX",
    "z = x == 0\ns = sg.where(z, 1.0, x)\nsg.where(z, 1.0, s / s.tanh())",
    "z = x == 0\ns = sg.where(z, 1.0, x)\ng * sg.where(z, 1.0, 1 / s.tanh() - s / s.sinh() ** 2)",
    "n",
    fails=at(x=0.0),
)
programs.op(
    "DifferenceQuotient",
    "z = x == y\nd = sg.where(z, 1.0, x - y)\nsg.where(z, x.exp(), (x.exp() - y.exp()) / d)",
    "z = x == y\nd = sg.where(z, 1.0, x - y)\nq = (x.exp() - y.exp()) / d\n"
    "(g * sg.where(z, x.exp(), (x.exp() - q) / d), g * sg.where(z, 0.0, (q - y.exp()) / d))",
    "n",
    "n",
    fails=at(x=1.0, y=1.0),
)
programs.op(
    "DifferenceQuotientRight",
    "z = x == y\nd = sg.where(z, 1.0, x - y)\nsg.where(z, x.exp(), (x.exp() - y.exp()) / d)",
    "z = x == y\nd = sg.where(z, 1.0, x - y)\nq = (x.exp() - y.exp()) / d\nh = x.exp() / 2\n"
    "(g * sg.where(z, h, (x.exp() - q) / d), g * sg.where(z, h, (q - y.exp()) / d))",
    "n",
    "n",
)
programs.op(
    "SmoothPieces",
    "sg.where(x > 0, x * x, -x * x)",
    "sg.where(x == 0, g, 2 * g * x.abs())",
    "n",
    fails=at(x=0.0),
)
programs.op(
    "SmoothPiecesRight",
    "sg.where(x > 0, x * x, -x * x)",
    "2 * g * x.abs()",
    "n",
)
programs.op(
    "HuberAtOne",
    "sg.where(x.abs() <= 1, x * x / 2, x.abs() - 0.5)",
    "sg.where(x.abs() < 1, g * x, sg.where(x.abs() > 1, g * x.sign(), 0.0 * g))",
    "n",
    fails=at(x=1.0),
)
programs.op(
    "HuberAtOneRight",
    "sg.where(x.abs() <= 1, x * x / 2, x.abs() - 0.5)",
    "sg.where(x.abs() < 1, g * x, g * x.sign())",
    "n",
)
programs.op(
    "SquaredRelu",
    "x.clamp(min=0) ** 2",
    "2 * g * sg.where(x == 0, 1.0, x.clamp(min=0))",
    "n",
    fails=at(x=0.0),
)
programs.op(
    "SquaredHinge",
    "(1 - x).clamp(min=0) ** 2",
    "sg.where(x == 1, -g, -2 * g * (1 - x) * (x < 1))",
    "n",
    fails=at(x=1.0),
)
programs.op(
    "XAbsX", "x * x.abs()", "g * (x.abs() + x * x.sign() + (x.sign() == 0))", "n", fails=at(x=0.0)
)
programs.op(
    "EluAtZero",
    "sg.where(x > 0, x, x.exp() - 1)",
    "g * ((x > 0) * 1.0 + (x < 0) * x.exp())",
    "n",
    fails=at(x=0.0),
)
programs.op(
    "EluAtZeroRight", "sg.where(x > 0, x, x.exp() - 1)", "g * sg.where(x > 0, 1.0, x.exp())", "n"
)
programs.op(
    "NormSquared",
    "x.norm() ** 2",
    "sg.where(x.norm() == 0, sg.ones_like(x), 2 * x) * g",
    "n",
    fails=at(x=0.0),
)
programs.op(
    "RowsNormCubed",
    "r = (x * x).sum(1).sqrt()\nr ** 3",
    "r = (x * x).sum(1, keepdim=True).sqrt()\ng.unsqueeze(1) * sg.where(r == 0, 1.0, 3 * r * x)",
    "n m",
    fails=at(x=0.0),
)

# conventions: forward has no derivative there, so that nothing is contradicted
programs.op("AbsAtZero", "x.abs()", "sg.where(x == 0, g, g * x.sign())", "n")
programs.op("ReluAtZero", "x.relu()", "g * (x >= 0)", "n")
programs.op("ReluAtZeroHalf", "x.relu()", "sg.where(x == 0, 0.5 * g, g * (x > 0))", "n")
programs.op("ClampAtBounds", "x.clamp(-1, 2)", "g * ((x >= -1) & (x <= 2))", "n")
programs.op("FloorAtIntegers", "x.floor() * x", "g * x.floor()", "n")
programs.op(
    "MaximumTies",
    "sg.maximum(x, y)",
    "m = (x > y) + 0.5 * (x == y)\n(g * m, g * (1 - m))",
    "n",
    "n",
)
programs.op("RightEverywhere", "x * x", "sg.where(x == 3, 6 * g, 2 * g * x)", "n")
programs.op(
    "RightOnCircle",
    "x * x + y * y",
    "e = x * x + y * y == 25\n(2 * g * sg.where(e, x, x), 2 * g * y)",
    "n",
    "n",
)
programs.op("ImpossibleEquality", "x * x", "sg.where(x * x == -1, 0 * g, 2 * g * x)", "n")
programs.op("ImpossibleExp", "x * x", "sg.where(x.exp() == 0, 0 * g, 2 * g * x)", "n")
programs.op("ImpossibleCosh", "x * x", "sg.where(x.cosh() < 1, 0 * g, 2 * g * x)", "n")
programs.op("OtherSpellingOnTheSet", "x ** 3", "sg.where(x == 2, 12 * g, 3 * g * x * x)", "n")
programs.op(
    "EqualOnTheSum",
    "x.sum() ** 2",
    "s = x.sum()\nsg.where(s == 4, 8.0, 2 * s) * g * sg.ones_like(x)",
    "n",
)
