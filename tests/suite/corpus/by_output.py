"""Backwards that know only the output: activations and row operations inverted in place."""

import math

import symgrad as sg
from tests.suite.marks import right
from tests.suite.twins import twins


@twins(
    SoftsignOutputSign=("1 - y", "1 + y", "1 + |y|"),
    SoftsignOutputPower=(".square()", "", "not squared"),
    SoftsignOutputValue=("y.abs()", "y", "y for its absolute value"),
)
@right("n m")
class SoftsignOutput(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x / (1 + x.abs())
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (1 - y.abs()).square()


@twins(
    SoftsignPowerSign=("- s", "+ s", "1 + |y|"),
    SoftsignPowerThree=("** 2", "** 3", "cubed"),
    SoftsignPowerTwice=("1 - s", "1 - 2 * s", "|y| counted twice"),
)
@right("*batch m")
class SoftsignOutputPow(sg.Function):
    """torch's own softsign, the absolute value as a product with the sign."""

    @staticmethod
    def forward(ctx, x):
        y = sg.softsign(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        s = y * y.sign()
        return g * (1 - s) ** 2


@twins(
    EluOutputSign=("+ alpha", "- alpha", "alpha subtracted"),
    EluOutputMask=("y > 0", "y > 1", "mask at 1"),
    EluOutputFactor=("g * (y", "g * 2 * (y", "factor 2"),
)
@right("n", static={"alpha": 0.5})
class EluOutput(sg.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        y = sg.where(x > 0, x, alpha * (sg.exp(x) - 1))
        ctx.save_for_backward(y)
        ctx.alpha = alpha
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        alpha = ctx.alpha
        return sg.where(y > 0, g, g * (y + alpha)), None


@twins(
    EluMinSlope=("1 + y", "1 - y", "sign of y"),
    EluMinMask=("y < 0", "y > 0", "mask the wrong way"),
    EluMinClamp=("g * sg.where", "2 * g * sg.where", "factor 2"),
)
@right("n m")
class EluOutputMinMax(sg.Function):
    """The output as a maximum and a minimum."""

    @staticmethod
    def forward(ctx, x):
        y = x.clamp(min=0) + (sg.expm1(x)).clamp(max=0)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * sg.where(y < 0, 1 + y, sg.ones_like(y))


@twins(
    SeluOutputAlpha=("scale * alpha)", "alpha)", "scale left out below 0"),
    SeluOutputScale=("g * scale", "g", "scale left out above 0"),
    SeluOutputMask=("y > 0", "y > scale", "mask at the scale"),
)
@right("n")
class SeluOutput(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = sg.selu(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
        return sg.where(y > 0, g * scale, g * (y + scale * alpha))


@twins(
    SoftplusOutputSign=("-y", "y", "sign of the exponent"),
    SoftplusOutputOne=("1 - ", "2 - ", "2 for 1"),
    SoftplusOutputFactor=("g * (", "2 * g * (", "factor 2"),
)
@right("n m")
class SoftplusOutput(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = sg.log1p(sg.exp(x))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (1 - sg.exp(-y))


@twins(
    SoftplusBetaSign=("-sg.expm1", "sg.expm1", "sign"),
    SoftplusBetaFactor=("g * -", "ctx.beta * g * -", "factor beta"),
    SoftplusBetaNone=("-ctx.beta * y", "-y", "beta left out"),
)
@right("n", static={"beta": 2.0})
class SoftplusBetaOutput(sg.Function):
    @staticmethod
    def forward(ctx, x, beta):
        y = sg.log(1 + sg.exp(beta * x)) / beta
        ctx.save_for_backward(y)
        ctx.beta = beta
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * -sg.expm1(-ctx.beta * y), None


@twins(
    LogSigmoidOutputSign=("1 - y.exp()", "1 + y.exp()", "sign"),
    LogSigmoidOutputExp=("y.exp()", "(-y).exp()", "sign of the exponent"),
    LogSigmoidOutputFactor=("g * (", "g * y * (", "factor y"),
)
@right("n")
class LogSigmoidOutput(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = -sg.log1p(sg.exp(-x))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (1 - y.exp())


@twins(
    LeakyOutputSlope=("ctx.slope", "-ctx.slope", "sign of the slope"),
    LeakyOutputMask=("y > 0", "y < 0", "mask the wrong way"),
    LeakyOutputSquare=("ctx.slope", "ctx.slope ** 2", "slope squared"),
)
@right("*batch", static={"slope": 0.01})
class LeakyOutput(sg.Function):
    @staticmethod
    def forward(ctx, x, slope):
        y = sg.where(x >= 0, x, slope * x)
        ctx.save_for_backward(y)
        ctx.slope = slope
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return sg.where(y > 0, g, ctx.slope * g), None


@twins(
    HardtanhOutputOr=("&", "|", "or for and"),
    HardtanhOutputLow=("y > -1", "y > 0", "cut at 0"),
    HardtanhOutputFactor=("g * (", "2 * g * (", "factor 2"),
)
@right("n m")
class HardtanhOutput(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clamp(-1, 1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * ((y > -1) & (y < 1))


@twins(
    Relu6OutputMask=("y < 6", "y < 0.5", "0.5 for 6"),
    Relu6OutputLow=("y > 0", "y > 1", "1 for 0"),
    Relu6OutputInverted=("~(", "(", "mask inverted"),
)
@right("n m")
class Relu6Output(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = sg.minimum(sg.relu(x), sg.full_like(x, 6.0))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g.masked_fill(~((y > 0) & (y < 6)), 0)


@twins(
    HardsigmoidOutputScale=("/ 6", "/ 3", "3 for 6"),
    HardsigmoidOutputMask=("y < 1", "y < 0.5", "mask at one half"),
    HardsigmoidOutputSign=("g / 6", "-g / 6", "sign"),
)
@right("n")
class HardsigmoidOutput(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = sg.clamp(x / 6 + 0.5, 0.0, 1.0)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return sg.where((y > 0) & (y < 1), g / 6, sg.zeros_like(g))


@twins(
    SquaredReluOutputPower=("y.sqrt()", "y", "no root"),
    SquaredReluOutputFactor=("2 * g", "g", "factor 2 left out"),
    SquaredReluOutputSign=("2 * g", "-2 * g", "sign"),
)
@right("n m")
class SquaredReluOutput(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = sg.relu(x) ** 2
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return 2 * g * y.sqrt()


@twins(
    CeluOutputAlpha=("y / ctx.alpha", "y", "alpha left out"),
    CeluOutputClamp=("max=0", "max=1", "clamped at 1"),
    CeluOutputSign=("1 + ", "1 - ", "sign"),
)
@right("n", static={"alpha": 1.5})
class CeluOutput(sg.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        y = sg.relu(x) + sg.minimum(sg.zeros_like(x), alpha * (sg.exp(x / alpha) - 1))
        ctx.save_for_backward(y)
        ctx.alpha = alpha
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (1 + (y / ctx.alpha).clamp(max=0)), None


@twins(
    AbsByOutputSign=("2 * ", "-2 * ", "sign"),
    AbsByOutputFactor=("2 * ", "", "factor 2"),
    AbsByOutputRoot=("y.sqrt()", "y", "no root"),
)
@right("n")
class SignedSquareOutput(sg.Function):
    """x |x| by its output."""

    @staticmethod
    def forward(ctx, x):
        y = x * x.abs()
        ctx.save_for_backward(y.abs())
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return 2 * g * y.sqrt()


@twins(
    AbsSignInverted=("y.sign()", "-y.sign()", "sign"),
    AbsSignExp=("(-y.abs()).exp()", "y.abs().exp()", "sign of the exponent"),
    AbsSignSquare=("y.sign()", "y.sign() ** 2", "sign squared"),
)
@right("n m")
class SymLogAbsOutput(sg.Function):
    """|sign(x) log(1 + |x|)| by what is inside of it."""

    @staticmethod
    def forward(ctx, x):
        y = x.sign() * x.abs().log1p()
        ctx.save_for_backward(y)
        return y.abs()

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y.sign() * (-y.abs()).exp()


@twins(
    SymLogOutputSign=("-y.abs()", "y.abs()", "sign of the exponent"),
    SymLogOutputFactor=("g * ", "g * y * ", "factor y"),
    SymLogOutputAbs=("-y.abs()", "-y", "y for its absolute value"),
)
@right("n m")
class SymLogOutput(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = sg.sign(x) * sg.log1p(sg.abs(x))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (-y.abs()).exp()


@twins(
    IsruOutputPower=("** 1.5", "** 0.5", "power"),
    IsruOutputSign=("1 - ", "1 + ", "sign"),
    IsruOutputAlpha=("ctx.alpha * ", "", "alpha left out"),
)
@right("n", static={"alpha": 2.0})
class IsruOutput(sg.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        y = x / (1 + alpha * x * x).sqrt()
        ctx.save_for_backward(y)
        ctx.alpha = alpha
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (1 - ctx.alpha * y * y) ** 1.5, None


@twins(
    IsrluOutputMask=("y < 0", "y > 0", "mask the wrong way"),
    IsrluOutputRoot=("r * r * r", "r * r", "squared"),
    IsrluOutputOne=("sg.ones_like(y)", "sg.zeros_like(y)", "0 above 0"),
)
@right("n")
class IsrluOutput(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = sg.where(x < 0, x / sg.sqrt(1 + x * x), x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        below = y.clamp(max=0)
        r = (1 - below * below).sqrt()
        return g * sg.where(y < 0, r * r * r, sg.ones_like(y))


@twins(
    AtanOutputSquare=(".square()", "", "not squared"),
    AtanOutputSin=(".cos()", ".sin()", "sine"),
    AtanOutputSign=("g * ", "-g * ", "sign"),
)
@right("n")
class AtanOutput(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = sg.atan(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y.cos().square()


@twins(
    AsinhOutputSinh=("cosh", "sinh", "sinh"),
    AsinhOutputProduct=("g / ", "g * ", "product"),
    AsinhOutputSign=("g / ", "-g / ", "sign"),
)
@right("n")
class AsinhOutput(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = sg.asinh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g / sg.cosh(y)


@twins(
    ReciprocalOutputSign=("-g", "g", "sign"),
    ReciprocalOutputPower=("y * y", "y", "not squared"),
    ReciprocalOutputCube=("y * y", "y * y * y", "cubed"),
)
@right("n", assume={"x": "positive"})
class RootOutput(sg.Function):
    """1 / sqrt(x) by its output."""

    @staticmethod
    def forward(ctx, x):
        y = x.rsqrt()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return -g * y * y * y / 2


@twins(
    HardshrinkOutputEq=("y != 0", "y == 0", "inverted"),
    HardshrinkOutputFactor=("g * ", "2 * g * ", "factor"),
    HardshrinkOutputMask=("y != 0", "y > 0", "the negative half left out"),
)
@right("n m")
class SoftshrinkOutput(sg.Function):
    """By whether the output is 0."""

    @staticmethod
    def forward(ctx, x):
        y = x.sign() * (x.abs() - 0.5).clamp(min=0)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (y != 0)


@twins(
    HardShrinkSelf=("y.abs() > 0", "y.abs() > 1", "at 1"),
    HardShrinkSign=("y.abs() > 0", "y > 0", "the negative half left out"),
    HardShrinkZero=("sg.zeros_like(g)", "g", "everything passes"),
)
@right("n m")
class HardshrinkOutput(sg.Function):
    @staticmethod
    def forward(ctx, x):
        y = sg.hardshrink(x, 0.5)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return sg.where(y.abs() > 0, g, sg.zeros_like(g))


@twins(
    TanhshrinkSign=("1 - ", "1 + ", "sign"),
    TanhshrinkPower=("t * t", "t", "not squared"),
    TanhshrinkOnly=("t * t", "t * t * t", "cubed"),
)
@right("n")
class ScaledTanhOutput(sg.Function):
    """LeCun's tanh by its output."""

    @staticmethod
    def forward(ctx, x):
        y = 1.7159 * sg.tanh(2 * x / 3)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        t = y / 1.7159
        return g * 1.7159 * 2 / 3 * (1 - t * t)


@twins(
    SoftmaxOutputMean=(
        ".sum(-1, keepdim=True)",
        ".mean(-1, keepdim=True)",
        "mean",
        {"right_if": "m == 1"},
    ),
    SoftmaxOutputSign=("g - ", "g + ", "sign", {"right_if": ""}),
    SoftmaxOutputTemp=("/ ctx.t", "* ctx.t", "product"),
)
@right("*batch m", static={"t": 2.0})
class SoftmaxTemperatureOutput(sg.Function):
    @staticmethod
    def forward(ctx, x, t):
        y = sg.softmax(x / t, -1)
        ctx.save_for_backward(y)
        ctx.t = t
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(-1, keepdim=True)) / ctx.t, None


@twins(
    NormalizeOutputSign=("g - y", "g + y", "sign"),
    NormalizeOutputNorm=("/ norm", "* norm", "product"),
    NormalizeOutputAxis=(".sum(1, keepdim=True)", ".sum(0, keepdim=True)", "axis"),
)
@right("n m")
class NormalizeOutput(sg.Function):
    """Unit rows by the output and the norm."""

    @staticmethod
    def forward(ctx, x):
        norm = x.norm(dim=1, keepdim=True)
        y = x / norm
        ctx.save_for_backward(y, norm)
        return y

    @staticmethod
    def backward(ctx, g):
        y, norm = ctx.saved_tensors
        return (g - y * (g * y).sum(1, keepdim=True)) / norm


@twins(
    SigmoidGateOutput=("1 - s", "1 + s", "sign"),
    SigmoidGateOutputX=("y * (1 - s)", "s * (1 - s)", "s for y"),
    SigmoidGateOutputS=("s + ", "", "the first term left out"),
)
@right("n m")
class SiluOutput(sg.Function):
    @staticmethod
    def forward(ctx, x):
        s = sg.sigmoid(x)
        y = x * s
        ctx.save_for_backward(s, y)
        return y

    @staticmethod
    def backward(ctx, g):
        s, y = ctx.saved_tensors
        return g * (s + y * (1 - s))


@twins(
    InverseLeakySlope=("/ ctx.slope", "* ctx.slope", "not inverted"),
    InverseLeakyMask=("y >= 0", "y < 0", "mask the wrong way"),
    InverseLeakyNorm=("* scale", "", "scale left out"),
)
@right("n m", "m", static={"slope": 0.1})
class InplaceAbn(sg.Function):
    """Scale and leaky relu inverted from the output, as in-place activated batch norm does."""

    @staticmethod
    def forward(ctx, x, scale, slope):
        z = x * scale
        y = sg.where(z >= 0, z, slope * z)
        ctx.save_for_backward(y, scale)
        ctx.slope = slope
        return y

    @staticmethod
    def backward(ctx, g):
        y, scale = ctx.saved_tensors
        z = sg.where(y >= 0, y, y / ctx.slope)
        dz = sg.where(y > 0, g, g * ctx.slope)
        return dz * scale, (dz * z / scale).sum(0), None


@twins(
    GeluFamilyCdf=("math.sqrt(2 * math.pi)", "math.sqrt(math.pi)", "constant"),
    GeluFamilySign=("-x * x / 2", "x * x / 2", "sign of the exponent"),
    GeluFamilyTerm=("cdf + ", "", "a term left out"),
)
@right("n m")
class GeluSavedCdf(sg.Function):
    @staticmethod
    def forward(ctx, x):
        cdf = 0.5 * (1 + sg.erf(x / math.sqrt(2)))
        ctx.save_for_backward(x, cdf)
        return x * cdf

    @staticmethod
    def backward(ctx, g):
        x, cdf = ctx.saved_tensors
        return g * (cdf + x * sg.exp(-x * x / 2) / math.sqrt(2 * math.pi))
