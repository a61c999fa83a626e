"""Sizes that are inferred as multiples, since symgrad traces no others: a condition."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg


class Halves(sg.Function):
    """Forward takes any size; of 5, the first part has 3."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        one, other = x.chunk(2, 0)
        return sg.cat([2 * one, 3 * other])

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        one, other = g.chunk(2, 0)
        return sg.cat([2 * one, 3 * other])


class RoundedDown(Halves):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        half = g.shape[0] // 2
        return sg.cat([2 * g[:half], 3 * g[half:]])


class Product(sg.Function):
    """Forward takes equal halves alone."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        one, other = x.chunk(2, -1)
        return one * other

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        one, other = ctx.saved_tensors[0].chunk(2, -1)
        return sg.cat([g * other, g * one], -1)


def conditions(function: type[sg.Function]) -> list[str]:
    report = sg.verify(function)
    assert str(report.verdict) == "PROVED"
    return [str(one) for one in report.conditions if one.kind in ("size", "shapes")]


def test_forward_takes_other_sizes() -> None:
    assert any("x.shape[0] == 2*n (others are not traced)" in one for one in conditions(Halves))


def test_what_is_wrong_for_other_sizes_says_so() -> None:
    found = conditions(RoundedDown)
    assert any("the gradient of x is wrong for x[5, n]" in one for one in found)
    assert sg.verify(RoundedDown, "5 m").verdict == "REFUTED"


@pytest.mark.parametrize("specs", [(), ("n 2*m",)])
def test_forward_takes_no_other_sizes(specs: tuple[str, ...]) -> None:
    report = sg.verify(Product, *specs)
    assert str(report.verdict) == "PROVED"
    assert not report.conditions


class Line(sg.Function):
    """Forward takes more than two points, and backward has names for two."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, p: Any, t: Any) -> Any:
        ctx.save_for_backward(p, t)
        return p[..., 0] * (1 - t) + p[..., 1] * t

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        p, t = ctx.saved_tensors
        first, second = p.unbind(-1)
        return sg.stack([g * (1 - t), g * t], -1), cls.scale * g * (second - first)


def test_a_number_for_which_backward_fails_is_none_that_it_is_written_for() -> None:
    assert any("p.shape[1] == 2 (Python needs a number)" in one for one in conditions(Line))
    assert str(sg.verify(type("Wrong", (Line,), {"scale": 2})).verdict) == "REFUTED"
