"""One witness for a family: what vanishes, or is not defined, at one size or index alone.

Each right backward is multiplied by a factor that is 1 but at a size, or at an index, that no
witness at small sizes sees.
"""

from __future__ import annotations

import symgrad as sg
from tests.suite.adversarial.program import Programs, at

programs = Programs(sg, __name__)

# forward, the derivative; over x[n] (with sizes n) or x[n m]
VECTORS = {
    "Linear": ("3 * x", "3"),
    "Square": ("x * x", "2 * x"),
    "Tanh": ("x.tanh()", "(1 - x.tanh() ** 2)"),
    "Exp": ("x.exp()", "x.exp()"),
    "Sine": ("x.sin()", "x.cos()"),
    "Cube": ("x ** 3", "3 * x ** 2"),
    "Sigmoid": ("x.sigmoid()", "x.sigmoid() * (1 - x.sigmoid())"),
}

# what is 1 where it hides, the sizes at which it is not; n = x.shape[0], i = 0 .. n - 1
FACTORS = {
    "SizeCompared": ("(((n - 31) * (x * x - 3)) != 0)", at(n=31)),
    "SizeSquareCompared": ("((n * n - 361) * (x - 2) != 0)", at(n=19)),
    "SizeQuotient": ("(n - 23) / (n - 23)", at(n=23)),
    "SizeQuotientOfReals": ("((n - 17) * x.exp()) / ((n - 17) * x.exp())", at(n=17)),
    "SizeProductQuotient": ("((n - 9) * (n - 26)) / ((n - 9) * (n - 26))", at(n=26)),
    "SizePower": ("((n - 41) * (x * x + 1)) ** 0", None),
    "SizeSign": ("((n - 13) * (x * x - 5)).sign() ** 2", at(n=13)),
    "SizeBothSides": (
        "(((n - 37) * (x - 0.3) > 0) * 1.0 + ((n - 37) * (x - 0.3) < 0) * 1.0)",
        at(n=37),
    ),
    "IndexBothSides": (
        "(((i - 33) * (x * x - 2) > 0) * 1.0 + ((i - 33) * (x * x - 2) < 0) * 1.0)",
        at(n=40),
    ),
    "IndexQuotient": ("(i - 21.0) / (i - 21.0)", at(n=24)),
    "IndexQuotientOfReals": ("((i - 14) * x.cosh()) / ((i - 14) * x.cosh())", at(n=16)),
    "IndexCompared": ("((i - 27) * (x.exp() - 2) != 0)", at(n=29)),
    "IndexSign": ("((i - 18) * (x - 0.7)).sign().abs()", at(n=20)),
    "IndexFromTheEnd": ("((n - 12 - i) * (x * x - 2) != 0)", at(n=14)),
    "IndexQuadratic": ("((i * i - 225) * (x + 3)).sign() ** 2", at(n=17)),
    "IndexOfProduct": (
        "((i * (i - 1) - 110) * x.exp()) / ((i * (i - 1) - 110) * x.exp())",
        at(n=12),
    ),
    "SizeAndIndex": ("((2 * i - n + 9) * (x * x + 2) != 0)", at(n=15)),
    "SizeModulo": ("((n % 16 - 15) * (x * x - 2) != 0)", at(n=31)),
    "SizeHalf": ("((n // 2 - 11) * (x - 1.5) != 0)", at(n=22)),
    "SumOfReals": ("(((n - 28) * (x * x).sum()) != 0)", at(n=28)),
    "Log": ("((((n - 25) * (x * x + 1)) ** 2).log() > -1e9)", at(n=25)),
}

for number, (slip, (factor, point)) in enumerate(FACTORS.items()):
    for step in (0, 3):
        right = list(VECTORS)[(number + step) % len(VECTORS)]
        forward, slope = VECTORS[right]
        head = "n = x.shape[0]\ni = sg.arange(n)\n" if "i" in factor else "n = x.shape[0]\n"
        programs.op(
            f"{right}{slip}",
            forward,
            f"{head}g * {slope} * ({factor})",
            "n",
            fails=() if point is None else point,
        )

# two sizes: what vanishes where they are in a ratio that is not tried
for slip, factor, point in (
    ("Ratio", "((n - 7 * m) * (x.exp() - 2) != 0)", at(n=14, m=2)),
    ("Sum", "((n + m - 30) * (x * x - 2) != 0)", at(n=17, m=13)),
    ("Product", "((n * m - 77) * (x - 4)).sign() ** 2", at(n=7, m=11)),
    ("Square", "((n - m * m) * (x * x + 1) != 0)", at(n=16, m=4)),
    ("Indices", "((i - j - 19) * (x * x - 3) != 0)", at(n=21, m=2)),
    ("IndicesInProduct", "((i * j - 35) * (x + 9)).sign() ** 2", at(n=8, m=8)),
    ("IndexAndSize", "((i - 5 * m) / (i - 5 * m))", at(n=12, m=2)),
    (
        "RowSum",
        "((n - 22) * x.sum(1, keepdim=True)) / ((n - 22) * x.sum(1, keepdim=True))",
        at(n=22),
    ),
    ("RowNorm", "(((m - 18) * (x * x).sum(1, keepdim=True)) != 0)", at(m=18)),
):
    programs.op(
        f"Matrix{slip}",
        "x * x",
        f"n, m = x.shape\ni = sg.arange(n).unsqueeze(1)\nj = sg.arange(m)\ng * 2 * x * {factor}",
        "n m",
        fails=point,
    )

# what vanishes is in a weight of a sum, in an exponent, beside a cumulated sum, in a term
programs.op(
    "SizeInAddedTerm",
    "x * x",
    "n = x.shape[0]\ng * 2 * x + (n - 43) / (n - 43) - 1",
    "n",
    fails=at(n=43),
)
programs.op(
    "SizeInMean",
    "x.mean()",
    "n = x.shape[0]\n(g * (n - 47) / (n * (n - 47))).expand(n)",
    "n",
    fails=at(n=47),
)
programs.op(
    "SizeUnbiased",
    "x.var()",
    "n = x.shape[0]\ng * 2 * (x - x.mean()) * (n - 53) / ((n - 1) * (n - 53))",
    "n+1",
    fails=at(n=52),
)
programs.op(
    "IndexOfCumsum",
    "x.cumsum(0)",
    "n = x.shape[0]\nc = sg.ones_like(x).cumsum(0) - 24\n(g * c / c).flip(0).cumsum(0).flip(0)",
    "n",
    fails=at(n=26),
)
programs.op(
    "IndexWeights",
    "(x * sg.arange(x.shape[0])).sum()",
    "w = sg.arange(x.shape[0]) - 35.0\ng * (w * w / w + 35)",
    "n",
    fails=at(n=38),
)
programs.op(
    "ReciprocalOfSize",
    "x * x",
    "n = x.shape[0]\nr = 1 / (n - 60.0)\ng * 2 * x * r * (n - 60)",
    "n",
    fails=at(n=60),
)
programs.op(
    "LinspaceWeights",
    "2.0 * x",
    "w = sg.arange(x.shape[0]) / 8.0 - 3\n2 * g * (w * w) / (w * w)",
    "n",
    fails=at(n=26),
)
programs.op(
    "FactorialLike",
    "x.sin()",
    "n = x.shape[0]\nq = (n - 10) * (n - 20) * (n - 30)\ng * x.cos() * q / q",
    "n",
    fails=(at(n=10), at(n=20), at(n=30)),
)

# right ones that look alike: what vanishes nowhere
programs.op("NeverZeroSize", "x * x", "n = x.shape[0]\ng * 2 * x * (n + 29) / (n + 29)", "n")
programs.op("NeverZeroIndex", "x * x", "w = sg.arange(x.shape[0]) + 0.5\ng * 2 * x * w / w", "n")
programs.op(
    "NeverZeroHalf", "x.exp()", "n = x.shape[0]\ng * x.exp() * (2 * n - 57) / (2 * n - 57)", "n"
)
programs.op(
    "NeverZeroSquare", "x.exp()", "n = x.shape[0]\ng * x.exp() * (n * n - 10) / (n * n - 10)", "n"
)
programs.op(
    "NeverZeroModThree",
    "x.sin()",
    "n = x.shape[0]\ng * x.cos() * (n * n - 3 * n + 1) / (n * n - 3 * n + 1)",
    "n",
)
programs.op(
    "NeverZeroPositive",
    "x.sin()",
    "n = x.shape[0]\ng * x.cos() * (n * (x * x + 1)) / (n * (x * x + 1))",
    "n",
)
programs.op("SizeCancels", "x / x.shape[0] * 2", "n = x.shape[0]\n2 * g / n", "n")
programs.op(
    "IndexSquaresDiffer",
    "x * x",
    "i = sg.arange(x.shape[0])\nw = 2 * (i * i) - 7\ng * 2 * x * w / w",
    "n",
)
programs.op("BothBranches", "x * x", "n = x.shape[0]\ng * 2 * x if n != 29 else g * (x + x)", "n")
