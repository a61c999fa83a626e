"""What need not be judged, or traced, is not: the report is the same without it."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg
from symgrad import compiler
from symgrad.frontend.request import Request
from symgrad.shapes.trying import attempt


class Normalised(sg.Function):
    """For any ``eps`` it is right where a root is taken of no negative number."""

    @staticmethod
    def forward(ctx: Any, x: Any, eps: float = 1e-3) -> Any:
        root = sg.sqrt(x * x + eps)
        ctx.save_for_backward(x, root)
        return x / root

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, root = ctx.saved_tensors
        return g * (1 / root - x * x / (root * root * root)), None


class Rounded(sg.Function):
    """A rounding with the slope of the identity, whatever the limits are."""

    @staticmethod
    def forward(ctx: Any, x: Any, steps: float = 4.0) -> Any:
        ctx.steps = steps
        return sg.round(x) * steps

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.steps, None


class Shifted(sg.Function):
    """For any ``by`` but 0 the default is no better than all others."""

    @staticmethod
    def forward(ctx: Any, x: Any, by: float = 0.5) -> Any:
        ctx.save_for_backward(x)
        ctx.by = by
        return sg.sqrt(x * x + by)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x / sg.sqrt(x * x + ctx.by) * 2, None


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Of each request that is judged the shapes, and is a plain number its default there?"""
    found: list[tuple[str, bool]] = []
    traced = compiler._traced

    def noted(request: Request, suggest: bool) -> Any:
        found.append((request.guess.place if request.guess else "", not request.static))
        return traced(request, suggest)

    monkeypatch.setattr(compiler, "_traced", noted)
    return found


def test_the_default_is_not_judged_where_it_is_among_values_proved_under_no_condition(
    judged: list[tuple[str, bool]],
) -> None:
    report = sg.verify(Normalised)
    assert report.verdict == "PROVED"
    assert "all real eps > 0" in str(report)
    assert judged
    assert not any(is_default for _, is_default in judged)


def test_that_a_default_is_a_surrogate_too_is_seen_at_the_first_shapes(
    judged: list[tuple[str, bool]],
) -> None:
    report = sg.verify(Rounded)
    assert report.verdict == "SURROGATE?"
    assert "all real steps" in str(report)
    shapes = {place for place, is_default in judged if not is_default}
    assert len(shapes) > 1
    assert len([place for place, is_default in judged if is_default]) == 1


def test_a_default_that_is_wrong_is_judged_at_all_shapes(judged: list[tuple[str, bool]]) -> None:
    assert sg.verify(Shifted).verdict == "REFUTED"
    assert any(is_default for _, is_default in judged)


class Scaled(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, by: Any = 2.0) -> Any:
        ctx.by = by
        return x * by

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.by, None


class ScaledBoth(Scaled):
    @staticmethod
    def forward(ctx: Any, x: Any, by: Any = 2.0) -> Any:
        ctx.x, ctx.by = x, by
        return x * by

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.by, g * ctx.x


@pytest.mark.parametrize(("function", "most"), [(Scaled, [1]), (ScaledBoth, range(2, 9))])
def test_a_plain_value_without_a_gradient_is_tried_as_one_tensor(
    function: Any, most: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def noted(search: Any, chosen: Any, wanted: Any = frozenset()) -> Any:
        if wanted == {"by"}:
            tried.append(chosen)
        return attempt(search, chosen, wanted)

    monkeypatch.setattr("symgrad.shapes.beside.attempt", noted)
    assert sg.verify(function).verdict == "PROVED"
    assert len(tried) in most
