"""What fitted other shapes is tried first, and changes no verdict."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest

import symgrad as sg
from symgrad import fitted
from symgrad.proof import surrogates, verify
from symgrad.proof.judge.conditions import find_conditions


def test_the_last_answer_comes_first() -> None:
    candidates: dict[Hashable, int] = {"a": 1, "b": 2, "c": 3}
    with fitted.remembered():
        assert [*fitted.in_turn("q", candidates)] == [*candidates.items()]
        fitted.note("q", "b")
        assert [*fitted.in_turn("q", candidates)] == [("b", 2), ("a", 1), ("c", 3)]
        assert [*fitted.in_turn("other", candidates)] == [*candidates.items()]
        fitted.note("q", "gone")
        assert [*fitted.in_turn("q", candidates)] == [*candidates.items()]
        with fitted.remembered():
            assert fitted.noted("q") is None
    assert fitted.noted("q") is None


def test_candidates_of_equal_keys_are_all_kept() -> None:
    words = ["one", "two", "three", "six"]
    assert [*fitted.keyed(words, len).values()] == words


class Spike(sg.Function):
    """A step with a slope that is centred elsewhere, which few candidates fit."""

    @staticmethod
    def forward(ctx: Any, x: Any, slope: float = 25.0) -> Any:
        ctx.save_for_backward(x)
        ctx.slope = slope
        return (x > 0).float()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * ctx.slope * sg.exp(-sg.abs(x - 1)), None


def _judged(monkeypatch: pytest.MonkeyPatch, *, kept: bool) -> tuple[int, Any]:
    """How many candidates are tried where shapes are inferred, and the report."""
    tried: list[Any] = []
    plain = surrogates._Search._tried

    def counted(search: Any, make: Any, scaled: bool) -> Any:
        tried.append(make)
        return plain(search, make, scaled)

    with monkeypatch.context() as patched:
        patched.setattr(surrogates._Search, "_tried", counted)
        if not kept:
            patched.setattr(fitted, "noted", lambda question: None)
        report = sg.verify(Spike)
    return len(tried), report


@pytest.mark.slow
def test_other_shapes_cost_one_candidate_each(monkeypatch: pytest.MonkeyPatch) -> None:
    fewer, report = _judged(monkeypatch, kept=True)
    more, alone = _judged(monkeypatch, kept=False)
    shapes = 1 + len(report.beside)
    assert shapes > 2
    assert fewer * 2 < more
    assert str(report.verdict) == str(alone.verdict) == "SURROGATE?"
    assert report.beside == alone.beside
    assert report.inputs["x"].surrogate == alone.inputs["x"].surrogate


class Sign(sg.Function):
    """A sign with the gradient of the identity."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.sign()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad


class SignByRank(sg.Function):
    """A sign with the gradient of the identity, but for three axes with a wrong one."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * sg.tanh(x * grad) if x.ndim == 3 else grad


@pytest.mark.parametrize(("function", "explained"), [(Sign, 1), (SignByRank, 2)])
def test_what_is_no_worse_for_other_shapes_is_not_explained(
    function: type[sg.Function], explained: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several shapes the report has the words of one."""
    looked = list[str]()

    def counted(subject: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        looked.append(name)
        return find_conditions(subject, name, *args, **kwargs)

    monkeypatch.setattr(verify, "find_conditions", counted)
    report = sg.verify(function)
    assert len(looked) == explained
    assert len(report.beside) >= 2
    assert report.inputs["x"].suggestion or report.inputs["x"].derived
