"""What is proved is run in torch, at points that meet what the proof supposes."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg
from symgrad.frontend.session import active

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function


class _Refuses(Function):
    """Stands for an operation that the trace has for more inputs than torch has."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        if active() is None and refused(x):
            raise RuntimeError("no kernel takes this")
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * grad


def refused(x: Any) -> bool:
    return True


def test_what_torch_runs_nowhere_is_undecided() -> None:
    report = sg.verify(_Refuses, "n m")
    assert str(report.verdict) == "UNDECIDED"
    reason = report.inputs["x"].reason
    assert "torch runs it at no point that was tried" in reason
    assert "forward raises RuntimeError: no kernel takes this" in reason


@pytest.mark.parametrize("wide", [True, False])
def test_where_torch_refuses_some_sizes_others_are_run(
    monkeypatch: pytest.MonkeyPatch, wide: bool
) -> None:
    monkeypatch.setitem(globals(), "refused", lambda x: (x.shape[0] < x.shape[1]) is wide)
    assert str(sg.verify(_Refuses, "n m").verdict) == "PROVED"


def test_what_this_machine_lacks_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(x: Any) -> bool:
        raise RuntimeError("Torch not compiled with CUDA enabled")

    monkeypatch.setitem(globals(), "refused", absent)
    assert str(sg.verify(_Refuses, "n m").verdict) == "PROVED"


_FACTS = {
    "positive": lambda x: bool((x > 0).all()),
    "(0, 1)": lambda x: bool(((x > 0) & (x < 1)).all()),
    "symmetric": lambda x: bool((x == x.mT).all()),
    "binary": lambda x: bool(((x == 0) | (x == 1)).all()),
    "one-hot": lambda x: bool((x.sum(-1) == 1).all()),
}


@pytest.mark.parametrize("fact", list(_FACTS))
def test_the_points_meet_what_is_declared(monkeypatch: pytest.MonkeyPatch, fact: str) -> None:
    monkeypatch.setitem(globals(), "refused", lambda x: not _FACTS[fact](x))
    assert str(sg.verify(_Refuses, "n n", assume={"x": fact}).verdict) == "PROVED"


class _Rows(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, places: Any) -> Any:
        if active() is None and len(set(places.tolist())) < len(places):
            raise ValueError("a place twice")
        ctx.save_for_backward(places)
        ctx.rows = x.shape[0]
        return x[places]

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (places,) = ctx.saved_tensors
        made = grad.new_zeros(ctx.rows, grad.shape[1])
        made[places] = grad
        return made, None


def test_places_are_distinct_where_that_is_declared() -> None:
    report = sg.verify(_Rows, "n m", "i64[k]", assume={"places": ["index n", "unique"]})
    assert str(report.verdict) == "PROVED", report
