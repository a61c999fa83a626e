"""Functions of torch that are thresholds of smooth ones: a proof says where.

In: bodies of forward and backward of one input.  What is PROVED is compared with autograd of torch
through forward, above the threshold and below it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers
OFF = 1e-7
"""Above what softplus differs by, times a few factors."""


def _class(forward: Callable[[Any], Any], backward: Callable[[Any, Any], Any]) -> Any:
    class Judged(torch.autograd.Function):  # type: ignore[name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return backward(g, ctx.saved_tensors[0])

    return Judged


def _grown(g: Any, x: Any) -> Any:
    return g * (torch.sigmoid(x) - 1 + 3 * (F.softplus(x) - x)) * torch.exp(3 * x)


def _inner(of: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """The gradient by autograd within backward."""

    def backward(g: Any, x: Any) -> Any:
        with torch.enable_grad():
            z = x.detach().requires_grad_()
            (found,) = torch.autograd.grad(of(z), z, g)
        return found

    return backward


@pytest.mark.parametrize("factor", [1.0, 1e10])
def test_what_a_large_number_multiplies_is_left_out(factor: float) -> None:
    report = sg.verify(
        _class(
            lambda x: factor * (F.softplus(x) - x), lambda g, x: factor * g * (torch.sigmoid(x) - 1)
        ),
        "n", suggest=False,
    )  # fmt: skip
    assert report.verdict == sg.PROVED, str(report)
    assert ("except where x > 20" in str(report)) == (factor > 1), str(report)


def _mish(g: Any, x: Any) -> Any:
    t = torch.tanh(F.softplus(x))
    return g * (t + x * (1 - t * t) * torch.sigmoid(x))


PROGRAMS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "plain": (F.softplus, lambda g, x: g * torch.sigmoid(x)),
    "of twice": (lambda x: F.softplus(x, 2), lambda g, x: g * torch.sigmoid(2 * x)),
    "a module": (torch.nn.Softplus(), lambda g, x: g / (1 + torch.exp(-x))),
    "below": (torch.ops.aten.softplus, lambda g, x: g * torch.sigmoid(x)),
    "mirrored": (lambda x: -F.softplus(-x), lambda g, x: g * torch.sigmoid(-x)),
    "mish": (lambda x: x * torch.tanh(F.softplus(x)), _mish),
    "mish of torch": (F.mish, _mish),
    "a square": (lambda x: F.softplus(x) ** 2, lambda g, x: 2 * g * F.softplus(x) * x.sigmoid()),
    "growing": (lambda x: (F.softplus(x) - x) * torch.exp(3 * x), _grown),
    "growing, of twice": (
        lambda x: (F.softplus(x, 2) - x) * torch.exp(3 * x),
        lambda g, x: g * (torch.sigmoid(2 * x) - 1 + 3 * (F.softplus(x, 2) - x)) * torch.exp(3 * x),
    ),
    "a logarithm": (
        lambda x: torch.log(F.softplus(x) - x),
        lambda g, x: g * (torch.sigmoid(x) - 1) / (F.softplus(x) - x),
    ),
    "within": (lambda x: torch.log(1 + x.exp()), _inner(F.softplus)),
    "of twice, within": (
        lambda x: torch.log1p((2 * x).exp()) / 2,
        _inner(lambda z: F.softplus(z, 2)),
    ),
    "mirrored, within": (lambda x: torch.log1p((-x).exp()), _inner(lambda z: F.softplus(-z))),
    "compared": (lambda x: torch.where(F.softplus(x) > x, x, x * x), lambda g, x: g),
}
GROWING = {
    "of a logarithm": (
        lambda x: (F.softplus(x.log()) - x.log()) * x,
        lambda g, x: g * (F.softplus(x.log()) - x.log() + x.log().sigmoid() - 1),
    ),
    "of a root": (
        lambda x: (F.softplus(x.sqrt()) - x.sqrt()) * x,
        lambda g, x: (
            g * (F.softplus(x.sqrt()) - x.sqrt() + x.sqrt() * (x.sqrt().sigmoid() - 1) / 2)
        ),
    ),
    "beside an exponential": (
        lambda x: F.softplus(x) * x.exp(),
        lambda g, x: g * (F.softplus(x) + x.sigmoid()) * x.exp(),
    ),
    "divided": (
        lambda x: 1 / (1 + F.softplus(x)),
        lambda g, x: -g * x.sigmoid() / (1 + F.softplus(x)) ** 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GROWING)
def test_nothing_is_claimed_above_where_a_difference_may_grow(name: str) -> None:
    report = sg.verify(_class(*GROWING[name]), "n", suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert any(one.excepted and "> 20" in str(one) for one in report.conditions), str(report)


STATED = {
    "mirrored": "x < -20", "of twice": "x > 10", "growing, of twice": "x > 10",
    "mirrored, within": "x < -20", "of twice, within": "x > 10",
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_proof_is_right_but_where_it_says(name: str) -> None:
    forward, backward = PROGRAMS[name]
    report = sg.verify(_class(forward, backward), "n", suggest=False, audit=True)
    if name == "compared":
        assert report.verdict != sg.PROVED, str(report)
        return
    assert report.verdict == sg.PROVED, str(report)
    assert not any("audit" in one.name and one.text.startswith("x: 0 ") for one in report.protocol)
    said = " ".join(str(one) for one in report.conditions if one.kind == "reading" or one.excepted)
    assert STATED.get(name, "x > 20") in said, str(report)
    excepted = {str(one) for one in report.conditions if one.excepted}
    left_out = any(re.search("> [12]0|== x", one) for one in excepted)
    points = [-21.0, -3.0, 0.5, 19.0] + ([] if left_out else [20.5, 21.0, 30.0, 100.0])
    x = torch.tensor(points, dtype=torch.float64, requires_grad=True)
    forward(x).sum().backward()
    hand = backward(torch.ones_like(x), x).detach()
    assert torch.allclose(hand, x.grad, rtol=OFF, atol=0), (hand, x.grad)


EXACT: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "log of a sigmoid": (F.logsigmoid, lambda g, x: g * torch.sigmoid(-x)),
    "within": (F.softplus, _inner(F.softplus)),
    "by the threshold": (F.softplus, lambda g, x: torch.where(x > 20, g, g * torch.sigmoid(x))),
    "of what is negative": (
        lambda x: F.softplus(-x.abs()), lambda g, x: -g * x.sign() * torch.sigmoid(-x.abs())
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_what_is_exact_is_not_read_as_something_else(name: str) -> None:
    report = sg.verify(_class(*EXACT[name]), "n", suggest=False)
    assert report.verdict == sg.PROVED, str(report)
    assert not [one for one in report.conditions if one.kind == "reading"], str(report)


WRONG: dict[str, Callable[[Any, Any], Any]] = {
    "another slope": lambda g, x: g * torch.tanh(x),
    "within, of a low threshold": _inner(lambda z: F.softplus(z, threshold=5)),
    "within, twice": _inner(lambda z: 2 * F.softplus(z)),
    "where it is 0": lambda g, x: (
        torch.where(x > 20, g, 0 * x) + torch.where(x > 20, 0 * x, 3 * g) * x.sigmoid()
    ),
    "two regions": lambda g, x: (
        torch.where(x > 20, g, 0 * x) + torch.where(x > 30, 0 * x, g) * x.sigmoid()
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_slope_is_refuted(name: str) -> None:
    report = sg.verify(_class(F.softplus, WRONG[name]), "n", suggest=False)
    assert report.verdict == sg.REFUTED, str(report)
