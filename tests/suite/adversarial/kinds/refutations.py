"""Right backwards that look wrong, and wrong ones that differ by little.

Rounded literals, cancellation, removable points, thresholds.
"""

from __future__ import annotations

import symgrad as sg
from tests.suite.adversarial.program import Programs, at

programs = Programs(sg, __name__)
op, right, wrong = programs.op, programs.right, programs.wrong

# -- literals that were rounded by hand: right to their last digit
PI, ROOT_TWO_PI = "3.14159265", "2.50662827"
LITERALS = {
    "GeluCubic": (
        "0.5 * x * (1 + (0.79788456 * x * (1 + 0.044715 * x * x)).tanh())",
        "t = (0.79788456 * x * (1 + 0.044715 * x * x)).tanh()\n"
        "g * (0.5 * x * ((1 - t * t) * (0.79788456 + 0.1070322243 * x * x)) + 0.5 * (1 + t))",
    ),
    "GeluProduct": (
        "u = 0.7978845608 * (x + 0.044715 * x ** 3)\n0.5 * x * (1 + u.tanh())",
        "u = 0.7978845608 * (x + 0.044715 * x ** 3)\nt = u.tanh()\n"
        "g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (0.7978845608 + 0.10703222440 * x * x))",
    ),
    "SeluProduct": (
        "1.0507009874 * sg.where(x > 0, x, 1.6732632423 * (x.exp() - 1))",
        "g * sg.where(x > 0, 1.0507009874, 1.7580993409 * x.exp())",
    ),
    "ThirdOfThree": ("x ** 3 * 0.3333333333", "g * x * x * 0.9999999999"),
    "TwoOverRootPi": ("(x * 0.70710678).erf()", "g * 0.79788456 * (-0.49999999 * x * x).exp()"),
    "DensityOfNormal": (
        "0.5 * (1 + (x / 1.41421356).erf())",
        "g * 0.39894228 * (-x * x / 2).exp()",
    ),
    "LogTwo": ("(0.69314718 * x).exp()", "g * 0.69314718 * (x * 0.69314718).exp()"),
    "SiluSlope": (
        "x * (1.702 * x).sigmoid()",
        "s = (1.702 * x).sigmoid()\ng * s * (1 + 1.702 * x * (1 - s))",
    ),
    "ProductOfRounded": ("0.123456789 * x * 0.987654321", "g * 0.121932631"),
    "QuotientOfRounded": ("x * x / 0.35355339", "g * 2 * x * 2.8284271"),
    "SquareOfRounded": ("(1.772453851 * x) ** 2 / 2", "g * 3.141592654 * x"),
    "SumOfRounded": ("0.1428571 * x + 0.2857143 * x", "g * 0.4285714"),
    "DegreesToRadians": (
        "(x * 0.01745329252).sin()",
        "g * 0.01745329252 * (x * 0.01745329252).cos()",
    ),
    "LogTenBase": ("(x * x + 1).log10()", "g * 2 * x / ((x * x + 1) * 2.302585093)"),
}
for name, (forward, backward) in LITERALS.items():
    op(f"Literal{name}", forward, backward, "n", rounded=True)

# -- the same with a digit that is wrong
op(
    "DigitOfGelu",
    LITERALS["GeluCubic"][0],
    LITERALS["GeluCubic"][1].replace("0.1070322243", "0.1080322243"),
    "n",
    fails=at(x=1.0),
    hides=False,
    tiny=True,
)
op(
    "DigitOfSelu",
    LITERALS["SeluProduct"][0],
    LITERALS["SeluProduct"][1].replace("1.7580993409", "1.7580893409"),
    "n",
    fails=at(x=-1.0),
    hides=False,
    tiny=True,
)
op(
    "DigitOfDensity",
    LITERALS["DensityOfNormal"][0],
    LITERALS["DensityOfNormal"][1].replace("0.39894228", "0.39894128"),
    "n",
    fails=at(x=0.5),
    hides=False,
    tiny=True,
)
op(
    "DigitOfProduct",
    LITERALS["ProductOfRounded"][0],
    "g * 0.121942631",
    "n",
    fails=at(),
    hides=False,
    tiny=True,
)

# -- thresholds: linear where the difference is below what is computed with
op(
    "SoftplusThreshold",
    "sg.where(x > 20, x, (1 + x.exp()).log())",
    "g * x.sigmoid()",
    "n",
    rounded=True,
)
op(
    "SoftplusThresholdShort",
    "sg.where(x > 20, x, (1 + x.exp()).log())",
    "sg.where(x > 20, g, g * x.sigmoid())",
    "n",
)
op(
    "MishThreshold",
    "x * sg.where(x > 20, x, (1 + x.exp()).log()).tanh()",
    "t = (1 + x.exp()).log().tanh()\ng * (t + x * (1 - t * t) * x.sigmoid())",
    "n",
    rounded=True,
)
op(
    "SoftplusThresholdTooLow",
    "sg.where(x > 2, x, (1 + x.exp()).log())",
    "g * x.sigmoid()",
    "n",
    fails=at(x=3.0),
)

# -- cancellation: the same number by another way, and large numbers that cancel
op("LargeCancels", "x * 1.0", "g * ((x + 1e8) - 1e8) / x * 1.0", "n", fails=at(x=0.0))
op("LargeCancelsPlus", "x * x", "g * (2 * x + (1e15 * x - 1e15 * x))", "n")
op("LargeSquares", "x * x", "g * ((x + 1e4) ** 2 - (x - 1e4) ** 2) / 2e4 * 1.0", "n")
op("TinyTimesHuge", "x * x", "g * 2 * (x * 1e-150) * 1e150", "n")
op("SmallDifference", "x ** 3", "g * ((x + 0.5) ** 3 - (x - 0.5) ** 3 - 0.25)", "n")
op("CoshBySums", "x.sinh()", "g * (x.exp() + (-x).exp()) / 2", "n")
op("HalfAngle", "x.cos()", "-g * 2 * (x / 2).sin() * (x / 2).cos()", "n")
op("TanhHalf", "x.sigmoid()", "g * (1 - (x / 2).tanh() ** 2) / 4", "n")
op("DoubleAngleFar", "(8 * x).sin()", "g * 8 * (1 - 2 * (4 * x).sin() ** 2)", "n")
op(
    "ExpFar",
    "(x + 50).exp()",
    "g * (x + 60).exp() * math.exp(-10)".replace("math.exp(-10)", "0.0000453999297624848515"),
    "n",
    rounded=True,
)
op("LogFar", "(x * x + 1e6).log()", "g * 2 * x / (x * x + 1e6)", "n")
op(
    "CancelsExactly",
    "x.exp()",
    "g * ((2 * x).exp() - 1) / (x.exp() - (-x).exp())",
    "n",
    fails=at(x=0.0),
)
op("Wide", "x * x", "g * (2 * x + 1e-12)", "n", fails=at(), hides=False, tiny=True)
op(
    "NotQuiteZero",
    "x * x",
    "g * (2 * x + 1e-9 * x.sin())",
    "n",
    fails=at(x=1.0),
    hides=False,
    tiny=True,
)
op(
    "VanishesFast",
    "x * x",
    "g * (2 * x + (-(x * x) * 40).exp() * x)",
    "n",
    fails=at(x=0.1),
    hides=False,
)
op("BeginsLate", "x * x", "g * (2 * x + (x - 30).relu())", "n", fails=at(x=35.0))
op("StepFarAway", "x * x", "g * (2 * x + (x > 250))", "n", fails=at(x=300.0))
op("BumpFarAway", "x * x", "g * (2 * x + ((x > 1000) & (x < 1001)))", "n", fails=at(x=1000.5))
op("SaturatesLate", "x * x", "g * 2 * x.clamp(-64, 64)", "n", fails=at(x=100.0))
op(
    "ThinInterval",
    "x.exp()",
    "g * x.exp() * (~((x > 0.5) & (x < 0.5000001)))",
    "n",
    fails=at(x=0.50000005),
    hides=True,
)

# -- conditions that must be true: 0 * log(x + c), right on a half line
op("ZeroTimesLog", "x * x", "2 * g * x + 0 * (x + 1e6).log()", "n", fails=at(x=-2e6))
op("ZeroTimesRoot", "x * x", "2 * g * x + 0 * (1e5 - x).sqrt()", "n", fails=at(x=2e5))

# -- special points: where one side is no number though the limit is
op("NormAtZero", "(x * x).sum().sqrt()", "g * x / (x * x).sum().sqrt()", "n")
op("SignByQuotient", "x.abs()", "g * x / x.abs()", "n")
op("RootOfSquare", "(x * x).sqrt()", "g * x.sign()", "n")
op("LogAbs", "x.abs().log()", "g / x", "n")
op(
    "XLogAbsX",
    "x * (x * x + 1e-3).log()",
    "g * ((x * x + 1e-3).log() + 2 * x * x / (x * x + 1e-3))",
    "n",
)
op("ProdByQuotient", "x.prod()", "p = sg.stack([x[1], x[0]])\ng * p", "2")
op(
    "CumprodByQuotient",
    "x.cumprod(0)",
    "y = x.cumprod(0)\n(g * y).flip(0).cumsum(0).flip(0) / x",
    "n",
    fails=at(x=0.0, n=1),
)


@right("n", order=2)
class UnitTwice(sg.Function):
    """A double backward of x / |x|."""

    @staticmethod
    def forward(ctx, x):
        r = (x * x).sum().sqrt()
        ctx.save_for_backward(x)
        return x / r

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        r = (x * x).sum().sqrt()
        u = x / r
        return (g - u * (g * u).sum()) / r


@right("n m", order=2)
class RowsUnitTwice(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / (x * x).sum(1, keepdim=True).sqrt()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        r = (x * x).sum(1, keepdim=True).sqrt()
        return g / r - x * (g * x).sum(1, keepdim=True) / r**3


@right("n", order=2)
class StandardizedTwice(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        c = x - x.mean()
        return c / (c * c).mean().sqrt()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        c = x - x.mean()
        s = (c * c).mean().sqrt()
        y = c / s
        return (g - g.mean() - y * (g * y).mean()) / s


@right("n", order=2)
class SoftmaxTwice(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.softmax(0)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        y = x.softmax(0)
        return y * (g - (g * y).sum())


@right("n", order=2)
class TanhTwice(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.tanh()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (1 - x.tanh() ** 2)


@right("n", order=2)
class GeluTanhTwice(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 0.5 * x * (1 + (0.79788456 * (x + 0.044715 * x**3)).tanh())

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        t = (0.79788456 * (x + 0.044715 * x**3)).tanh()
        inner = 0.79788456 * (1 + 3 * 0.044715 * x * x)
        return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner)


# -- the families of the other files through a second order and a jvp


@wrong("n", order=2, fails=at(n=29))
class SecondOrderAtOneSize(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = x.shape[0]
        kept = x * (n - 29) / (n - 29)
        return 3 * g * x * kept


@wrong("n", order=2, fails=at(x=5.0))
class SecondOrderOnNullSet(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * sg.where(x.sum() == 5 * x.shape[0], x.detach(), x) * x


@wrong("n", order=2, fails=at(n=45))
class SecondOrderDetachedAtOneSize(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        w = ((x.shape[0] - 45) * (x * x + 1)).sign() ** 2
        return 3 * g * x * (w * x + (1 - w) * x.detach())


class CubePushed(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x * x


@wrong("n", fails=at(n=27, how="pushed"))
class PushedAtOneSize(CubePushed):
    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        n = x.shape[0]
        return 3 * t * x * x * (n - 27) / (n - 27)


@wrong("n", fails=at(n=3, x=2.0, how="pushed"))
class PushedOnNullSet(CubePushed):
    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 3 * t * x * x * (x.sum() != 6)


@wrong("n", fails=at(n=25, how="pushed"))
class PushedAtOneIndex(CubePushed):
    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        w = sg.arange(x.shape[0]) - 22.0
        return 3 * t * x * x * w / w


@right("n")
class PushedRight(CubePushed):
    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return t * 3 * x**2
