"""What was once answered wrongly, or not at all: soundness traps and dear proofs.

Each Function stands for a way to be wrong that generic points do not see: cotangents that are
zero, sizes beyond the usual ones, values cut off from a second differentiation.
"""

import math

import pytest

import symgrad as sg
from symgrad.proof.report.verdict import Verdict


class _Twice(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2


class OneWhereNothingComesIn(_Twice):
    @staticmethod
    def backward(ctx, g):
        return sg.where(g == 0, sg.ones_like(g), g * 2)


class NotANumberWhereNothingComesIn(_Twice):
    @staticmethod
    def backward(ctx, g):
        return g * 2 * g / g


class SavedWhereNothingComesIn(_Twice):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return sg.where(g != 0, g * 2, x)


class SignTimesSize(_Twice):
    """Nonlinear to look at, linear all the same."""

    @staticmethod
    def backward(ctx, g):
        return 2 * g.abs() * sg.sign(g)


@pytest.mark.parametrize(
    "function", [OneWhereNothingComesIn, NotANumberWhereNothingComesIn, SavedWhereNothingComesIn]
)
def test_cotangents_that_are_zero(function: type) -> None:
    assert sg.verify(function, "n", suggest=False).verdict is Verdict.REFUTED


def test_nonlinear_to_look_at() -> None:
    assert sg.verify(SignTimesSize, "n", suggest=False).verdict is Verdict.PROVED


class _Mean(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.size = x.shape[0]
        return x.mean()


class WrongForLargeSizes(_Mean):
    @staticmethod
    def backward(ctx, g):
        scale = 2.0 if ctx.size > 100 else 1.0
        return (g * scale / ctx.size).expand(ctx.size)


class WrongForOneSize(_Mean):
    @staticmethod
    def backward(ctx, g):
        scale = 2.0 if ctx.size == 37 else 1.0
        return (g * scale / ctx.size).expand(ctx.size)


@pytest.mark.parametrize("function", [WrongForLargeSizes, WrongForOneSize])
def test_sizes_that_only_a_condition_names(function: type) -> None:
    assert sg.verify(function, "n", suggest=False).verdict is Verdict.REFUTED


class _Cube(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x**2


class Detached(_Cube):
    @staticmethod
    def backward(ctx, g):
        x = ctx.saved_tensors[0].detach()
        return 3 * g * x**2


class WithoutGradient(_Cube):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with sg.no_grad():
            return 3 * g * x**2


class SavedCopy(_Cube):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.clone())
        return x**3


@pytest.mark.parametrize("function", [Detached, WithoutGradient, SavedCopy])
def test_second_order_of_what_is_cut_off(function: type) -> None:
    report = sg.verify(function, "n", order=2, suggest=False)
    assert report.inputs["x"].verdict is Verdict.PROVED
    assert report.verdict is not Verdict.PROVED


def test_second_order_of_what_is_not() -> None:
    assert sg.verify(_Cube, "n", order=2, suggest=False).verdict is Verdict.PROVED


class SolveByTransposed(sg.Function):
    @staticmethod
    def forward(ctx, a, b):
        x = sg.linalg.solve(a, b)
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        found = sg.linalg.solve(a.t(), g)
        return -found @ x.t(), found


def test_the_inverse_of_a_transposed_matrix() -> None:
    assert sg.verify(SolveByTransposed, "n n", "n k", suggest=False).verdict is Verdict.PROVED


class LogDeterminant(sg.Function):
    """The inverse of a symmetric matrix is symmetric, though it is nowhere transposed."""

    @staticmethod
    def forward(ctx, a):
        m = a @ a.t() + sg.eye(a.shape[0])
        ctx.save_for_backward(a, sg.inverse(m))
        return sg.logdet(m)

    @staticmethod
    def backward(ctx, g):
        a, inverse = ctx.saved_tensors
        return 2 * g * inverse @ a


class LogDeterminantOfAsymmetric(LogDeterminant):
    @staticmethod
    def forward(ctx, a):
        m = a @ a + 9 * sg.eye(a.shape[0])
        ctx.save_for_backward(a, sg.inverse(m))
        return sg.logdet(m)


def test_the_inverse_of_a_symmetric_matrix() -> None:
    assert sg.verify(LogDeterminant, "n n", suggest=False).verdict is Verdict.PROVED
    found = sg.verify(LogDeterminantOfAsymmetric, "n n", suggest=False)
    assert found.verdict is Verdict.REFUTED


class PlainLogDeterminant(sg.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return sg.logdet(a)

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * sg.inverse(a).t()


class ForgottenTransposition(PlainLogDeterminant):
    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * sg.inverse(a)


def test_what_a_condition_implies_is_not_said_beside_it() -> None:
    found = sg.verify(PlainLogDeterminant, "n n", suggest=False)
    assert found.verdict is Verdict.PROVED
    assert [str(one) for one in found.inputs["a"].conditions] == ["a has a positive determinant"]


@pytest.mark.slow
def test_singular_matrices_on_the_way_to_an_explanation() -> None:
    found = sg.verify(ForgottenTransposition, "n n")
    assert found.verdict is Verdict.REFUTED
    assert "failed" not in " ".join(found.inputs["a"].diagnosis)


class Windows(sg.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x.unfold(1, 3, 1) @ w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        grad = sg.zeros_like(x)
        for k in range(3):
            grad[:, k : k + g.shape[1]] += g * w[k]
        return grad, sg.einsum("btk,bt->k", x.unfold(1, 3, 1), g)


class WindowsFlipped(Windows):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        grad = sg.zeros_like(x)
        for k in range(3):
            grad[:, k : k + g.shape[1]] += g * w[2 - k]
        return grad, sg.einsum("btk,bt->k", x.unfold(1, 3, 1), g)


def test_windows_along_an_axis() -> None:
    assert sg.verify(Windows, "b t+2", "3", suggest=False).verdict is Verdict.PROVED
    assert sg.verify(WindowsFlipped, "b t+2", "3", suggest=False).verdict is Verdict.REFUTED


class PaddedSoftmax(sg.Function):
    """Masked by a large number that several entries of a row share: a maximum with ties."""

    @staticmethod
    def forward(ctx, x, pad):
        y = sg.softmax(x.masked_fill(pad, -1e9), dim=-1)
        ctx.save_for_backward(y, pad)
        return y

    @staticmethod
    def backward(ctx, g):
        y, pad = ctx.saved_tensors
        grad = y * (g - (g * y).sum(-1, keepdim=True))
        return grad.masked_fill(pad, 0.0), None


class PaddedSoftmaxLeaking(PaddedSoftmax):
    @staticmethod
    def backward(ctx, g):
        y, _ = ctx.saved_tensors
        return g * y - y * (g * y).mean(-1, keepdim=True), None


def test_masks_by_a_large_number() -> None:
    right = sg.verify(PaddedSoftmax, "n m", "bool[n m]", suggest=False)
    wrong = sg.verify(PaddedSoftmaxLeaking, "n m", "bool[n m]", suggest=False)
    assert (right.verdict, wrong.verdict) == (Verdict.PROVED, Verdict.REFUTED)


class LstmInOneProduct(sg.Function):
    """Four gates out of one matrix: dear when unfolded, cheap piece by piece."""

    @staticmethod
    def forward(ctx, x, h, c, wi, wh, bias):
        i, f, g, o = (sg.addmm(bias, x, wi.t()) + h @ wh.t()).chunk(4, dim=1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        new = f * c + i * g
        ctx.save_for_backward(x, h, c, wi, wh, i, f, g, o, new.tanh())
        return o * new.tanh(), new

    @staticmethod
    def backward(ctx, gh, gc):
        x, h, c, wi, wh, i, f, g, o, tc = ctx.saved_tensors
        dc = gh * o * (1 - tc.pow(2)) + gc
        gates = [
            dc * g * i * (1 - i), dc * c * f * (1 - f), dc * i * (1 - g * g), gh * tc * o * (1 - o)
        ]  # fmt: skip
        dz = sg.cat(gates, dim=1)
        return dz @ wi, dz @ wh, dc * f, dz.t() @ x, dz.t().mm(h), dz.sum(0)


def test_an_lstm_cell_in_one_product() -> None:
    specs = ("b i", "b h", "b h", "4*h i", "4*h h", "4*h")
    assert sg.verify(LstmInOneProduct, *specs, suggest=False).verdict is Verdict.PROVED


class NormalCdf(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 0.5 * (1 + sg.erf(x / math.sqrt(2)))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * sg.exp(-x * x / 2) * 0.3989422804


class NormalCdfWrongDigit(NormalCdf):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * sg.exp(-x * x / 2) * 0.3989422814


def test_a_constant_with_a_wrong_digit() -> None:
    assert sg.verify(NormalCdf, "n", suggest=False).verdict is Verdict.PROVED
    assert sg.verify(NormalCdfWrongDigit, "n", suggest=False).verdict is Verdict.REFUTED


class Decayed(sg.Function):
    """0.1 * 3 is 0.30000000000000004 to Python, and 0.3 to the forward."""

    @staticmethod
    def forward(ctx, x):
        return 0.1 * x * 3

    @staticmethod
    def backward(ctx, g):
        return g * (0.1 * 3)


class Complement(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x - 0.999 * x

    @staticmethod
    def backward(ctx, g):
        return g * (1 - 0.999)


class Multiple(sg.Function):
    @staticmethod
    def forward(ctx, x):
        return x * math.sqrt(2) * 0.7

    @staticmethod
    def backward(ctx, g):
        return g * (math.sqrt(2) * 0.7)


class Rounded(sg.Function):
    """A product of forward's literals, rounded by Python, is read as that product."""

    @staticmethod
    def forward(ctx, x):
        return x * math.sqrt(0.137) * 0.7

    @staticmethod
    def backward(ctx, g):
        return g * (math.sqrt(0.137) * 0.7)


class RoundedAndWrong(Rounded):
    @staticmethod
    def backward(ctx, g):
        return g * (math.sqrt(0.137) * 0.7000001)


@pytest.mark.parametrize(
    ("function", "verdict"),
    [
        (Decayed, Verdict.PROVED), (Complement, Verdict.PROVED), (Multiple, Verdict.PROVED),
        (Rounded, Verdict.PROVED), (RoundedAndWrong, Verdict.REFUTED),
    ],
)  # fmt: skip
def test_literals_that_python_has_rounded(function: type, verdict: Verdict) -> None:
    assert sg.verify(function, "n", suggest=False).verdict is verdict


class Tiny(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x + 1e-30 * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x


def test_a_tiny_difference_has_its_counterexample() -> None:
    found = sg.verify(Tiny, "n", suggest=False).inputs["x"]
    assert found.verdict is Verdict.REFUTED
    assert found.counterexample is not None


class _Square(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2


class WrongAtOne(_Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return sg.where(x == 1, sg.zeros_like(g), 2 * g * x)


class WrongBetweenSigns(_Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x + g * (1 - sg.sign(x) ** 2)


class RightAtOne(_Square):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return sg.where(x == 1, 2 * g, 2 * g * x)


class WrongAtTies(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sum()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x == x.amax()).to(g.dtype).sum() * sg.ones_like(x)


class OneAtTheKink(sg.Function):
    """No other derivative is contradicted where forward has none."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return sg.abs(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return sg.where(x >= 0, g, -g)


class WrongBeforeTheKink(sg.Function):
    """Forward has a corner, but none where backward is wrong."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return sg.relu(x - 1)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return sg.where(x == 0, g, g * (x > 1))


@pytest.mark.parametrize(
    ("function", "verdict"),
    [
        (WrongBeforeTheKink, Verdict.REFUTED),
        (WrongAtOne, Verdict.REFUTED), (WrongBetweenSigns, Verdict.REFUTED),
        (WrongAtTies, Verdict.REFUTED), (RightAtOne, Verdict.PROVED),
        (OneAtTheKink, Verdict.PROVED),
    ],
)  # fmt: skip
def test_thresholds_that_are_met_exactly(function: type, verdict: Verdict) -> None:
    assert sg.verify(function, "n", suggest=False).verdict is verdict
