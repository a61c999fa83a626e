"""Where torch reads one triangle, matrices that are not plainly symmetric are a condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = [pytest.mark.peers, pytest.mark.slow]

FUNCTION: Any = torch.autograd.Function
CONDITION = "the matrices that cholesky takes are symmetric"


def same(x: Any) -> Any:
    return torch.eye(x.shape[0])


SYMMETRIC: dict[str, Callable[[Any], Any]] = {
    "x xT": lambda x: x @ x.t() + 1e-3 * same(x),
    "xT x": lambda x: x.t() @ x + same(x),
    "by letters": lambda x: torch.einsum("ik,jk->ij", x, x) + same(x),
    "the half": lambda x: (x + x.t()) / 2 + same(x),
    "outer": lambda x: x[0][:, None] * x[0][None] + same(x),
    "a kernel": lambda x: (-((x[0][:, None] - x[0][None]) ** 2)).exp() + same(x),
    "an inverse": lambda x: torch.inverse(x @ x.t() + same(x)),
}
OTHER: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x,
    "x x": lambda x: x @ x + same(x),
    "x yT": lambda x: x @ (x * 2).exp().t() + same(x),
    "by letters": lambda x: torch.einsum("ik,kj->ij", x, x) + same(x),
    "columns": lambda x: x[0][:, None] + same(x),
    "two vectors": lambda x: x[0][:, None] * x[1 % x.shape[0]][None] + same(x),
    "a difference": lambda x: x - x.t() + same(x),
}


def judged(make: Callable[[Any], Any], **options: Any) -> list[str]:
    class Op(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.sum() + 0 * torch.linalg.cholesky(make(x)).sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    report = sg.verify(Op, "n n", suggest=False, **options)
    return [str(one) for one in report.conditions]


def is_symmetric(make: Callable[[Any], Any]) -> bool:
    torch.manual_seed(0)
    found = make(torch.rand(4, 4))
    return bool(torch.allclose(found, found.mT.expand_as(found)))


@pytest.mark.parametrize("name", sorted(SYMMETRIC))
def test_a_matrix_that_is_symmetric_by_the_way_it_is_built_has_no_condition(name: str) -> None:
    assert is_symmetric(SYMMETRIC[name])
    assert not any(CONDITION in one for one in judged(SYMMETRIC[name]))


@pytest.mark.parametrize("name", sorted(OTHER))
def test_any_other_has(name: str) -> None:
    assert not is_symmetric(OTHER[name])
    assert any(CONDITION in one or "x is symmetric" in one for one in judged(OTHER[name]))


def test_a_declared_one_has_none() -> None:
    found = judged(OTHER["itself"], assume={"x": "symmetric"})
    assert not any(CONDITION in one for one in found)


class LogDet(FUNCTION):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return 2 * torch.linalg.cholesky(x).diagonal().log().sum()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * torch.linalg.inv(x).mT


def test_no_point_is_tried_where_the_input_is_not() -> None:
    """Such a point, which the printed condition excludes, refuted it."""
    report = sg.verify(LogDet, "n n")
    assert report.verdict == "PROVED"
    assert any("x is symmetric" in str(one) for one in report.conditions)


def test_a_slip_is_found_where_it_is() -> None:
    class Twice(LogDet):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * LogDet.backward(ctx, g)

    report = sg.verify(Twice, "n n")
    assert report.verdict == "REFUTED"
    point = report.inputs["x"].counterexample
    assert point is not None
    found = np.array(point.inputs["x"])
    assert (found == found.T).all()


class Root(FUNCTION):
    """The root of a matrix; its gradient solves an equation, as along symmetric changes."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, a: Any) -> Any:
        w, v = torch.linalg.eigh(a)
        ctx.save_for_backward(w.sqrt(), v)
        return v @ torch.diag_embed(w.sqrt()) @ v.mT

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        w, v = ctx.saved_tensors
        kernel = cls.scale / (w.unsqueeze(-1) + w.unsqueeze(-2))
        return v @ (kernel * (v.mT @ g @ v)) @ v.mT


def test_along_symmetric_changes_what_is_not_decided_is_not_refuted() -> None:
    def judged(cls: Any) -> str:
        return str(sg.verify(cls, "n n", assume={"a": "symmetric"}, suggest=False).verdict)

    assert judged(Root) == "UNDECIDED"
    assert judged(type("Twice", (Root,), {"scale": 2})) == "REFUTED"


class Values(FUNCTION):
    @staticmethod
    def forward(ctx: Any, a: Any) -> Any:
        w, v = torch.linalg.eigh(a)
        ctx.save_for_backward(v)
        return w

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (v,) = ctx.saved_tensors
        return v.mT @ torch.diag_embed(g) @ v


def test_where_torch_is_right_at_a_small_point_others_are_run() -> None:
    """Of two rows, the vectors that torch returns are a symmetric matrix."""
    found = sg.verify(Values, "n n", suggest=False).inputs["a"]
    assert found.verdict == "REFUTED"
    assert found.counterexample is not None
    assert found.counterexample.sizes["n"] > 2
    assert found.replayed
