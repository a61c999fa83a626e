"""What backward evaluates and forward does not: logarithms, roots, inverses, poles, 0/0.

A term that is multiplied by zero, subtracted from itself or divided by itself is no number where
it is not defined, and then the gradient is none, though forward has one there.
"""

from __future__ import annotations

import symgrad as sg
from tests.suite.adversarial.program import Programs, at

programs = Programs(sg, __name__)

FORWARDS = {
    "Square": ("x * x", "2 * x"),
    "Tanh": ("x.tanh()", "(1 - x.tanh() ** 2)"),
    "Exp": ("x.exp()", "x.exp()"),
    "Cosine": ("x.cos()", "-x.sin()"),
    "Atan": ("x.atan()", "1 / (1 + x * x)"),
}

# a term, and a number at which it is no finite number
TERMS = {
    "Asin": ("x.asin()", 3.0),
    "Acos": ("(x - 2).acos()", -1.0),
    "Acosh": ("(x + 1).acosh()", -0.5),
    "Atanh": ("x.atanh()", 1.5),
    "Erfinv": ("(x / 3).erfinv()", 4.0),
    "Logit": ("x.logit()", 2.0),
    "Lgamma": ("(x + 3).lgamma()", -4.0),
    "Digamma": ("x.digamma()", -2.0),
    "Reciprocal": ("(x - 5).reciprocal()", 5.0),
    "Rsqrt": ("(x * x - 9).rsqrt()", 3.0),
    "Log": ("(x - 40).log()", 1.0),
    "LogOfSquare": ("(x - 4).square().log()", 4.0),
    "Log1p": ("(x / 8).log1p()", -8.0),
    "Log2": ("(x * x - 81).abs().log2()", 9.0),
    "Root": ("(x + 50).sqrt()", -51.0),
    "Power": ("(x + 60) ** 1.5", -61.0),
    "NegativePower": ("(x - 6) ** -2.0", 6.0),
    "Quotient": ("x / (x * x * x - 27)", 3.0),
    "Softplus": ("(1 - x.exp()).log()", 2.0),
    "Nested": ("(x * x).asin().exp()", 1.5),
}

HIDES = {
    "TimesZero": "g * {slope} + 0 * {term}",
    "LessItself": "t = {term}\ng * {slope} + t - t",
    "OverItself": "t = {term}\ng * {slope} * t / t",
    "InSumOfMultiples": "t = {term}\ng * ({slope} + 2 * t - t - t)",
    "PowerZero": "t = {term}\ng * {slope} * (1 + 0 * t * t)",
    "ComparedWithItself": "t = {term}\ng * {slope} * (t == t)",
    "InBothBranches": "t = {term}\nsg.where(t > 0, g * {slope}, g * {slope} + 0 * t)",
    "TimesCancelled": "t = {term}\ng * ({slope} + (x - x) * t)",
}

CHANGED = {
    ("Lgamma", "InBothBranches"): "PowerZero",
    ("Log2", "ComparedWithItself"): "LessItself",
    ("Reciprocal", "OverItself"): "LessItself",
    ("NegativePower", "OverItself"): "LessItself",
}

for number, (name, (term, where)) in enumerate(TERMS.items()):
    for step in (0, 3):
        hide = list(HIDES)[(number + step) % len(HIDES)]
        forward, slope = list(FORWARDS.values())[(number + step) % len(FORWARDS)]
        if (name, hide) in CHANGED:  # infinities compare, and 1 / inf is 0
            hide = CHANGED[name, hide]
        programs.op(
            f"{name}{hide}",
            forward,
            HIDES[hide].format(slope=slope, term=term),
            "n",
            fails=at(x=where),
            inside={"x": (0.1, 0.9)},
            hides=name not in ("Acosh", "Log", "Acos", "Rsqrt", "Softplus"),
        )

# divisions in every form
DIVISIONS = {
    "Plain": "x * g / x",
    "Reciprocal": "g * x * x.reciprocal()",
    "PowerMinusOne": "g * x * x ** -1",
    "PowerMinusHalf": "g * (x * x) ** -0.5 * x.abs()",
    "RootQuotient": "g * (x * x).sqrt() / x.abs()",
    "Exponents": "g * x ** 3 / x ** 3",
    "DivMethod": "g * sg.div(x, x)",
    "Mixed": "g * (x * x + x) / (x * (x + 1))",
    "Nested": "g / (x / (x * x)) / x",
    "LogQuotient": "g * (x * x).log() / (2 * x.abs().log())",
}
for name, text in DIVISIONS.items():
    programs.op(f"Division{name}", "x + 0", text, "n", fails=at(x=0.0))

# sums that vanish, products of two inputs, norms
programs.op(
    "NormOverNorm", "x + 0", "r = (x * x).sum(-1, keepdim=True)\ng * r / r", "n m", fails=at(x=0.0)
)
programs.op("MeanOverMean", "2 * x", "r = x.mean()\n2 * g * r / r", "n", fails=at(x=0.0))
programs.op("SumOverSum", "2 * x", "r = x.sum() - 1\n2 * g * r / r", "n", fails=at(n=2, x=0.5))
programs.op(
    "DifferenceOverDifference",
    "x * y",
    "d = x - y\n(g * y * d / d, g * x)",
    "n",
    "n",
    fails=at(x=2.0, y=2.0),
)
programs.op(
    "ProductOverProduct", "x + y", "(g * (x * y) / (x * y), g)", "n", "n", fails=at(x=1.0, y=0.0)
)
programs.op(
    "OutputOverInput",
    "x * y",
    "(g * (x * y) / x, g * (x * y) / y)",
    "n",
    "n",
    fails=(at(x=0.0), at(y=0.0)),
)
programs.op("ProductOverElement", "x.prod()", "g * x.prod() / x", "n", fails=at(x=0.0, n=1))
programs.op(
    "NormDirection",
    "(x * x).sum()",
    "r = (x * x).sum().sqrt()\ng * 2 * r * (x / r)",
    "n",
    fails=at(x=0.0),
)
programs.op(
    "VarianceOverItself",
    "x * 1.5",
    "v = ((x - x.mean()) ** 2).mean()\n1.5 * g * (v.sqrt() / v) * v.sqrt()",
    "n+1",
    fails=at(x=1.0),
)
programs.op(
    "DeterminantOverItself",
    "a + 0",
    "g * sg.linalg.det(a) / sg.linalg.det(a)",
    "n n",
    takes="a",
    fails=at(a=1.0, n=2),
)
programs.op(
    "InverseTimesItself",
    "a + 0",
    "g @ (a @ sg.linalg.inv(a))",
    "n n",
    takes="a",
    fails=at(a=0.0, n=2),
)
programs.op(
    "SolveOfItself", "a + 0", "sg.linalg.solve(a, a @ g)", "n n", takes="a", fails=at(a=0.0, n=2)
)
programs.op("PowerOfZeroByZero", "x ** 2", "g * 2 * x ** 2 * x ** -1", "n", fails=at(x=0.0))
programs.op("XLogX", "x * x", "g * (2 * x + 0 * x * x.abs().log())", "n", fails=at(x=0.0))
programs.op(
    "SigmoidByLogit",
    "x * x",
    "s = x.logit().sigmoid()\n2 * g * s",
    "n",
    fails=at(x=2.0),
    inside={"x": (0.1, 0.9)},
)
programs.op(
    "ExpOfLog", "x * x", "2 * g * x.log().exp()", "n", fails=at(x=-1.0), inside={"x": (0.1, 3.0)}
)
programs.op(
    "SquareOfRoot",
    "x * x",
    "2 * g * x.sqrt() ** 2",
    "n",
    fails=at(x=-1.0),
    inside={"x": (0.1, 3.0)},
)
programs.op(
    "SineOfAsin", "x * x", "2 * g * x.asin().sin()", "n", fails=at(x=2.0), inside={"x": (0.1, 0.9)}
)
programs.op(
    "TanhOfAtanh",
    "x * x",
    "2 * g * x.atanh().tanh()",
    "n",
    fails=at(x=2.0),
    inside={"x": (0.1, 0.9)},
)
programs.op(
    "CoshOfAcosh",
    "x * x",
    "2 * g * x.acosh().cosh()",
    "n",
    fails=at(x=0.5),
    inside={"x": (1.1, 3.0)},
)
programs.op(
    "CosineOfAcos",
    "x * x",
    "2 * g * x.acos().cos()",
    "n",
    fails=at(x=1.5),
    inside={"x": (0.1, 0.9)},
)
programs.op(
    "ErfOfErfinv",
    "x * x",
    "2 * g * x.erfinv().erf()",
    "n",
    fails=at(x=1.5),
    inside={"x": (0.1, 0.9)},
)
programs.op(
    "ProductOfRoots",
    "x * y",
    "(g * y, g * y.sqrt() * x * y.rsqrt())",
    "n",
    "n",
    fails=at(y=-1.0),
    inside={"y": (0.1, 3.0)},
)
programs.op(
    "QuotientOfRoots",
    "x + y",
    "(g * (x * y).sqrt() / (x.sqrt() * y.sqrt()), g)",
    "n",
    "n",
    fails=at(x=-1.0, y=-2.0),
    inside={"x": (0.1, 3.0), "y": (0.1, 3.0)},
)
programs.op(
    "DifferenceOfLogs",
    "x - y",
    "(g * (x / y).log() / (x.log() - y.log()), -g)",
    "n",
    "n",
    fails=at(x=-1.0, y=-2.0),
    inside={"x": (2.1, 3.0), "y": (0.1, 2.0)},
)
programs.op(
    "CauchyByArctangent", "x.atan()", "g * x.atan().cos() ** 2 * x / x", "n", fails=at(x=0.0)
)
programs.op(
    "SoftmaxByLog",
    "x.softmax(-1)",
    "s = x.softmax(-1)\ns * (g - (g * s).sum(-1, keepdim=True)) + 0 * (x - 1e3).log()",
    "n m",
    fails=at(),
    hides=False,
)

# right: what is not defined is not defined in forward either, or is never so
programs.op("LogInForward", "x.log()", "g / x + 0 * x.log()", "n", inside={"x": (0.1, 3.0)})
programs.op("RootInForward", "x.sqrt()", "g * 0.5 / x.sqrt()", "n", inside={"x": (0.1, 3.0)})
programs.op(
    "AsinInForward",
    "x.asin()",
    "g / (1 - x * x).sqrt() + x.acos() - x.acos()",
    "n",
    inside={"x": (-0.9, 0.9)},
)
programs.op("DividedInForward", "1 / x", "-g / x * (1 / x)", "n")
programs.op("AlwaysPositive", "x * x", "t = (1 + x * x).log()\n2 * g * x + t - t", "n")
programs.op("AlwaysInside", "x * x", "t = (x.tanh() / 2).asin()\n2 * g * x + 0 * t", "n")
programs.op("AlwaysAboveOne", "x * x", "t = (x.cosh() + 1).acosh()\n2 * g * x + 0 * t", "n")
programs.op(
    "SigmoidIsInside", "x.sigmoid()", "s = x.sigmoid()\ng * s * (1 - s) * (1 + s) / (1 + s)", "n"
)
programs.op("ExpOverExp", "x.exp()", "g * x.exp() * x.exp() / x.exp()", "n")
programs.op(
    "LogSumExp",
    "x.exp().sum(-1).log()",
    "e = x.exp()\ng.unsqueeze(-1) * e / e.sum(-1, keepdim=True)",
    "n m",
)
programs.op("NormPlusOne", "x * 2", "r = (x * x).sum() + 1\n2 * g * r / r", "n")
programs.op(
    "DeclaredPositive",
    "x * x",
    "2 * g * x.log().exp()",
    "n",
    assume={"x": "positive"},
    inside={"x": (0.1, 3.0)},
)
programs.op(
    "DeclaredInside",
    "x * x",
    "2 * g * x.asin().sin()",
    "n",
    assume={"x": "(-1, 1)"},
    inside={"x": (-0.9, 0.9)},
)
