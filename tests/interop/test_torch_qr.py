"""``qr``: orthonormal columns and an upper triangle, judged as in torch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = [pytest.mark.peers, pytest.mark.slow]
FUNCTION: Any = torch.autograd.Function


def mirrored(matrix: Any, below: int = -1) -> Any:
    """The symmetric matrix with the same lower triangle."""
    return matrix.tril() + matrix.tril(below).mT


class Factors(FUNCTION):
    wrong = False

    @staticmethod
    def forward(ctx: Any, A: Any) -> Any:
        Q, R = torch.linalg.qr(A)
        ctx.save_for_backward(Q, R)
        return Q, R

    @classmethod
    def backward(cls, ctx: Any, dQ: Any, dR: Any) -> Any:
        Q, R = ctx.saved_tensors
        inner = R @ dR.mT - dQ.mT @ Q
        right = dQ + Q @ mirrored(inner, 0 if cls.wrong else -1)
        return torch.linalg.solve_triangular(R, right.mT, upper=True).mT


class Directions(FUNCTION):
    """``wrong``: a sign."""

    wrong = False

    @staticmethod
    def forward(ctx: Any, A: Any) -> Any:
        Q, R = torch.qr(A)
        ctx.save_for_backward(Q, R)
        return Q

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        Q, R = ctx.saved_tensors
        inner = g.t() @ Q if cls.wrong else -g.t() @ Q
        return (g + Q @ mirrored(inner)) @ torch.inverse(R).t()


class SameSigns(FUNCTION):
    """The diagonal of R made positive.  ``wrong``: forgotten in backward."""

    wrong = False

    @staticmethod
    def forward(ctx: Any, A: Any) -> Any:
        Q, R = A.qr()
        signs = R.diagonal().sign()
        ctx.save_for_backward(Q, R, signs)
        return Q * signs

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        Q, R, signs = ctx.saved_tensors
        own = g if cls.wrong else g * signs
        right = own + Q @ mirrored(-own.mT @ Q)
        return torch.linalg.solve_triangular(R, right.mT, upper=True).mT


class Volume(FUNCTION):
    """``wrong``: not transposed."""

    wrong = False

    @staticmethod
    def forward(ctx: Any, A: Any) -> Any:
        Q, R = torch.linalg.qr(A)
        ctx.save_for_backward(Q, R)
        return R.diagonal(dim1=-2, dim2=-1).abs().log().sum()

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        Q, R = ctx.saved_tensors
        inverse = torch.linalg.inv(R)
        return g * Q @ (inverse if cls.wrong else inverse.mT)


class OfProduct(FUNCTION):
    """``wrong``: without the part below the diagonal."""

    wrong = False

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        Q, R = torch.linalg.qr(x @ w, mode="reduced")
        ctx.save_for_backward(x, w, Q, R)
        return R

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, w, Q, R = ctx.saved_tensors
        inner = R @ g.mT
        right = Q @ (inner.tril() if cls.wrong else mirrored(inner))
        own = torch.linalg.solve_triangular(R, right.mT, upper=True).mT
        return own @ w.mT, x.mT @ own


JUDGED = [
    (Factors, ["n+m m"]), (Factors, ["k n+m m"]), (Directions, ["n+m m"]), (SameSigns, ["n+m m"]),
    (Volume, ["n+m m"]), (OfProduct, ["n+m k", "k m"]),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "shapes"), JUDGED)
def test_the_right_backward_is_proved_and_the_wrong_one_refuted(cls: Any, shapes: Any) -> None:
    report = sg.verify(cls, *shapes, timeout=None)
    assert report.verdict is sg.PROVED, str(report)
    assert "linearly independent" in str(report)
    wrong = type(cls.__name__, (cls,), {"wrong": True})
    report = sg.verify(wrong, *shapes, timeout=None, suggest=False)
    assert report.verdict is sg.REFUTED
    assert "confirmed in torch" in str(report)


def test_shapes_that_fit_a_backward_for_no_more_columns_than_rows_are_found() -> None:
    """Torch's ``qr`` takes more columns, too, for which R is no square."""
    report = sg.verify(Factors, timeout=None)
    assert report.verdict is sg.PROVED
    assert "if the shapes are A[n+m-1, n] (backward fails for A[n, m])" in str(report)
    assert sg.verify(Factors, "n m", timeout=None).verdict is sg.REFUTED


def test_a_mistake_is_shown_where_backward_runs() -> None:
    wrong = type("Factors", (Factors,), {"wrong": True})
    report = sg.verify(wrong, timeout=None, suggest=False)
    assert report.verdict is sg.REFUTED
    assert report.inputs["A"].counterexample is not None
    said = " ".join(str(report).split())
    assert "confirmed in torch: backward gives" in said
    assert "REFUTED if n < m: backward failed:" in said


class Orthonormal(FUNCTION):
    """The identity, whatever the matrix.  ``scale``: of what backward adds to 0."""

    scale = 0.0

    @staticmethod
    def forward(ctx: Any, A: Any) -> Any:
        Q, _ = torch.linalg.qr(A)
        ctx.save_for_backward(A)
        return Q.mT @ Q

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (A,) = ctx.saved_tensors
        return cls.scale * A * g.sum()


@pytest.mark.parametrize("shapes", [["n+m m"], ["n m"]])
def test_what_is_constant_by_cancellation_has_no_gradient(shapes: Any) -> None:
    """Its difference quotient in 60 digits is the rounding of zeros."""
    report = sg.verify(Orthonormal, *shapes, timeout=None)
    assert report.verdict is sg.PROVED, str(report)
    wrong = type("Orthonormal", (Orthonormal,), {"scale": 1.0})
    report = sg.verify(wrong, *shapes, timeout=None, suggest=False)
    assert report.verdict is sg.REFUTED
    assert "confirmed in torch" in str(report)


class Squares(FUNCTION):
    mode = "r"

    @classmethod
    def forward(cls, ctx: Any, A: Any) -> Any:
        ctx.save_for_backward(A)
        return torch.linalg.qr(A, mode=cls.mode)[1].square().sum()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (A,) = ctx.saved_tensors
        return 2 * g * A


@pytest.mark.parametrize(("mode", "shape"), [("r", "n+m m"), ("complete", "n n")])
def test_a_triangle_without_its_directions(mode: str, shape: str) -> None:
    assert sg.verify(type("Squares", (Squares,), {"mode": mode}), shape).verdict is sg.PROVED


@pytest.mark.parametrize(("mode", "what"), [("complete", "that belong to a column"), ("q", "mode")])
def test_what_is_refused_of_qr(mode: str, what: str) -> None:
    with pytest.raises((sg.errors.SymgradError, ValueError), match=what):
        sg.verify(type("Squares", (Squares,), {"mode": mode}), "n+m m")


@pytest.mark.parametrize("shape", [(4, 2), (3, 3), (2, 4), (3, 5, 2), (1, 1)])
def test_values_and_gradients_are_those_of_torch(shape: tuple[int, ...]) -> None:
    values = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    given, own = values.clone().requires_grad_(), sg.tensor(values.numpy()).requires_grad_()
    theirs, ours = torch.linalg.qr(given), sg.linalg.qr(own)
    for one, other in zip(theirs, ours, strict=True):
        torch.testing.assert_close(torch.from_numpy(other.detach().numpy()), one.detach())
    (theirs.Q.square() @ theirs.R).sum().backward()
    (ours.Q.square() @ ours.R).sum().backward()
    torch.testing.assert_close(torch.from_numpy(own.grad.numpy()), given.grad)
