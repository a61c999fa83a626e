"""Sizes that operations of torch ask to be equal, by which shapes are inferred and refused."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import SymgradError  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function
F: Any = torch.nn.functional


class Normalised(Function):
    """A layer norm of which the shape is that of the weight."""

    factor = 1

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return F.layer_norm(x, w.shape, w)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        r = (x.var(-1, correction=0, keepdim=True) + 1e-5).rsqrt()
        y = (x - x.mean(-1, keepdim=True)) * r
        p = g * w
        down = p.mean(-1, keepdim=True) + y * (p * y).mean(-1, keepdim=True)
        return r * (p - down), cls.factor * (g * y).flatten(0, -2).sum(0)


class Weighted(Function):
    """The loss of a detector, with weights of examples and of what is found."""

    factor = 1

    @staticmethod
    def forward(ctx: Any, x: Any, t: Any, w: Any, p: Any) -> Any:
        ctx.save_for_backward(x, t, w, p)
        return F.binary_cross_entropy_with_logits(x, t, weight=w, pos_weight=p)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, t, w, p = ctx.saved_tensors
        s = x.sigmoid()
        return cls.factor * g * w * ((1 - t) * s - p * t * (1 - s)) / x.numel(), None, None, None


class Solved(Function):
    """One right side for all matrices, or a vector for each."""

    factor = 1

    @staticmethod
    def forward(ctx: Any, A: Any, b: Any) -> Any:
        x = torch.linalg.solve(A, b)
        ctx.save_for_backward(A, x)
        return x

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        A, x = ctx.saved_tensors
        back = cls.factor * torch.linalg.solve(A.mT, g)
        if g.ndim >= A.ndim:
            return -back @ x.mT, back
        return -back.unsqueeze(-1) * x.unsqueeze(-2), back


def test_a_weight_names_the_shape_that_is_normalised() -> None:
    report = sg.verify(Normalised, suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert "symgrad inferred x[n, m], w[m]" in str(report)
    wrong = type("Wrong", (Normalised,), {"factor": 2})
    assert sg.verify(wrong, suggest=False).verdict == sg.REFUTED


def test_weights_of_losses_have_the_shape_of_the_input() -> None:
    given = dict.fromkeys("twp", "constant")
    for shapes in (("n m", "n m", "n m", "m"), ("n", "n", "n", ""), ("", "", "", "")):
        for factor, verdict in ((1, sg.PROVED), (2, sg.REFUTED)):
            loss = type("Loss", (Weighted,), {"factor": factor})
            report = sg.verify(loss, *shapes, assume=given, suggest=False)
            assert report.verdict == verdict, str(report)
    with pytest.raises(SymgradError, match="doesn't match the broadcast shape"):
        sg.verify(Weighted, "", "", "n", "", suggest=False)
    with pytest.raises(SymgradError, match="doesn't match the broadcast shape"):
        sg.verify(Weighted, "m", "m", "m", "n m", suggest=False)
    report = sg.verify(Weighted, assume=given, suggest=False)
    assert report.verdict == sg.PROVED, str(report)


@pytest.mark.parametrize("shapes", [
    ("m m", "m"), ("m m", "m k"), ("n m m", "n m"), ("n m m", "m"), ("n m m", "n m k"),
    ("m m", "n m k"), ("3 2 2", "2 4"), ("2 2 2", "2 2"),
])  # fmt: skip
def test_a_right_side_is_of_vectors_or_of_matrices_as_in_torch(shapes: tuple[str, ...]) -> None:
    report = sg.verify(Solved, *shapes, suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    wrong = type("Wrong", (Solved,), {"factor": 2})
    assert sg.verify(wrong, *shapes, suggest=False).verdict == sg.REFUTED


@pytest.mark.parametrize("shapes", [("3 2 2", "4 2"), ("4 3 2 2", "3 2"), ("3 2 2", "2 1 2 2")])
def test_right_sides_are_refused_as_in_torch(shapes: tuple[str, ...]) -> None:
    A, b = (torch.ones([int(size) for size in one.split()]) for one in shapes)
    A = A + torch.eye(A.shape[-1])
    try:
        torch.linalg.solve(A, b)
    except RuntimeError:
        with pytest.raises(SymgradError):
            sg.verify(Solved, *shapes, suggest=False)
    else:
        assert sg.verify(Solved, *shapes, suggest=False).verdict == sg.PROVED
