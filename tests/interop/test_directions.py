"""Matrices that are declared symmetric are changed symmetrically alone."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.proof.second.order import NAME as SECOND_ORDER  # noqa: E402

pytestmark = [pytest.mark.peers, pytest.mark.slow]

FUNCTION: Any = torch.autograd.Function
DIRECTIONS = "changes of H that keep it symmetric"


class ByFactors(FUNCTION):
    """The gradient by H is right along symmetric changes, and not symmetric."""

    @staticmethod
    def forward(ctx: Any, H: Any, b: Any) -> Any:
        factor = torch.linalg.cholesky(H)
        x = torch.cholesky_solve(b, factor)
        ctx.save_for_backward(factor, x)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        factor, x = ctx.saved_tensors
        z = torch.cholesky_solve(g, factor)
        return -x @ z.transpose(-1, -2), z


class Solved(FUNCTION):
    """Forward takes any matrix, and its derivative is not symmetric either."""

    sign, more = -1.0, 0.0

    @classmethod
    def forward(cls, ctx: Any, H: Any, b: Any) -> Any:
        x = torch.linalg.solve(H, b)
        ctx.save_for_backward(H, x)
        return x

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        H, x = ctx.saved_tensors
        z = torch.linalg.solve(H, g)
        product = x @ z.transpose(-1, -2)
        return cls.sign * product + cls.more * (product - product.mT), z


class Turned(Solved):
    """Products with symmetric changes do not see what changes its sign when it is transposed."""

    more = 3.0


class Negative(Solved):
    sign = 1.0


class Half(ByFactors):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        factor, x = ctx.saved_tensors
        z = torch.cholesky_solve(g, factor)
        return -x @ z.transpose(-1, -2) / 2, z


class NotLinear(FUNCTION):
    """A part that no symmetric change sees need not be linear, and the report says so."""

    @staticmethod
    def forward(ctx: Any, H: Any) -> Any:
        ctx.save_for_backward(H)
        return H.sum()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (H,) = ctx.saved_tensors
        part = torch.tril(torch.ones_like(H)) * (g * g)
        return g * torch.ones_like(H) + part - part.mT


def judged(cls: Any, *shapes: str, **options: Any) -> Any:
    return sg.verify(cls, *(shapes or ("n n", "n m")), suggest=False, **options)


@pytest.mark.parametrize("cls", [ByFactors, Solved, Turned])
def test_what_is_right_along_symmetric_changes_is_proved_where_that_is_declared(cls: Any) -> None:
    report = judged(cls, assume={"H": "symmetric"}, audit=True)
    assert str(report.verdict) == "PROVED"
    assert DIRECTIONS in [str(one) for one in report.inputs["H"].conditions]
    assert f"for {DIRECTIONS}" in str(report)
    assert DIRECTIONS not in [str(one) for one in report.inputs["b"].conditions]
    (audit,) = [one for one in report.protocol if one.name == "audit"]
    assert "H: " in audit.text


@pytest.mark.parametrize("cls", [ByFactors, Solved])
def test_what_nobody_declared_is_refuted_and_the_condition_is_found(cls: Any) -> None:
    report = judged(cls)
    assert str(report.inputs["H"].verdict) == "REFUTED"
    found = [one.text for one in report.inputs["H"].conditions if one.kind == "found"]
    assert len(found) == 1
    assert found[0].startswith("PROVED if H and its changes are symmetric and ")


@pytest.mark.parametrize("cls", [Negative, Half])
def test_what_is_wrong_along_symmetric_changes_stays_refuted(cls: Any) -> None:
    report = judged(cls, assume={"H": "symmetric"})
    assert str(report.inputs["H"].verdict) == "REFUTED"
    assert not any("its changes" in one.text for one in report.inputs["H"].conditions)


def test_linearity_does_not_follow_from_a_proof_along_some_changes() -> None:
    report = judged(NotLinear, "n n", assume={"H": "symmetric"})
    assert str(report.inputs["H"].verdict) == "PROVED"
    assert str(report.verdict) == "REFUTED"
    (linear,) = [one for one in report.protocol if one.name == "linear in the cotangents"]
    assert str(linear.verdict) == "REFUTED"


def test_second_order_is_not_trusted_where_first_order_holds_along_some_changes() -> None:
    report = judged(Solved, assume={"H": "symmetric"}, order=2, timeout=None)
    (second,) = [one for one in report.protocol if one.name == SECOND_ORDER]
    assert str(second.verdict) != "PROVED"


def test_the_symmetric_changes_are_those_of_the_declared_matrix_alone() -> None:
    """That of another matrix is judged in full."""
    report = judged(TwoMatrices, "n n", "n n", assume={"H": "symmetric"})
    verdicts = {name: str(one.verdict) for name, one in report.inputs.items()}
    assert verdicts == {"H": "PROVED", "other": "REFUTED"}


class TwoMatrices(FUNCTION):
    @staticmethod
    def forward(ctx: Any, H: Any, other: Any) -> Any:
        ctx.save_for_backward(H, other)
        return (H @ other).sum()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        H, other = ctx.saved_tensors
        ones = g * torch.ones_like(H)
        return (ones @ other.mT).mT, (H.mT @ ones).mT
