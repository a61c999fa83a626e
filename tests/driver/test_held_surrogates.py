"""Declared surrogates that detach values: ``u + (u.round() - u).detach()``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import symgrad as sg
from symgrad.errors import UnsupportedOpError


class Quantize(sg.Function):
    """A learned step size; its gradient reads what was rounded."""

    @staticmethod
    def forward(ctx: Any, x: Any, s: Any) -> Any:
        v = x / s
        ctx.save_for_backward(v)
        return v.round().clamp(-8, 7) * s

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (v,) = ctx.saved_tensors
        low, high = (v < -8).float(), (v > 7).float()
        return cls.of(g, v, low, high, 1 - low - high)

    @staticmethod
    def of(g: Any, v: Any, low: Any, high: Any, inside: Any) -> Any:
        return g * inside, (g * (-8 * low + 7 * high + inside * (v.round() - v))).sum()


WRONG: dict[str, Any] = {
    "sign": lambda g, v, low, high, inside: (
        g * inside, (g * (-8 * low + 7 * high + inside * (v - v.round()))).sum()
    ),
    "without the rounded": lambda g, v, low, high, inside: (
        g * inside, (g * (-8 * low + 7 * high - inside * v)).sum()
    ),
    "limits swapped": lambda g, v, low, high, inside: (
        g * inside, (g * (7 * low - 8 * high + inside * (v.round() - v))).sum()
    ),
    "one limit": lambda g, v, low, high, inside: (
        g * (1 - high), (g * (-8 * low + 7 * high + inside * (v.round() - v))).sum()
    ),
    "off by one": lambda g, v, low, high, inside: (
        g * inside, (g * (-8 * low + 8 * high + inside * (v.round() - v))).sum()
    ),
    "everywhere": lambda g, v, low, high, inside: (
        g, (g * (-8 * low + 7 * high + inside * (v.round() - v))).sum()
    ),
    "doubled": lambda g, v, low, high, inside: (
        2 * g * inside, (g * (-8 * low + 7 * high + inside * (v.round() - v))).sum()
    ),
    "mean": lambda g, v, low, high, inside: (
        g * inside, (g * (-8 * low + 7 * high + inside * (v.round() - v))).mean()
    ),
    "mask of the gradient": lambda g, v, low, high, inside: (
        g * (g.abs() <= 7).float(), (g * (-8 * low + 7 * high + inside * (v.round() - v))).sum()
    ),
    "floor": lambda g, v, low, high, inside: (
        g * inside, (g * (-8 * low + 7 * high + inside * (v.floor() - v))).sum()
    ),
    "left out": lambda g, v, low, high, inside: (g * inside, None),
    "of zero": lambda g, v, low, high, inside: (0 * g, 0 * g.sum()),
}  # fmt: skip
MEANT = (
    "((x / s).clamp(-8, 7) + ((x / s).round().clamp(-8, 7) - (x / s).clamp(-8, 7)).detach()) * s"
)


def declared(function: type[sg.Function], folder: Path, line: str, *specs: str) -> Any:
    path = folder / "symgrad.toml"
    path.write_text(f'[functions."{function.__qualname__}"]\n{line}\n')
    return sg.verify(function, *specs, config=path)


def rounding(slope: Any) -> type[sg.Function]:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.round()

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return slope(g, x)

    parts = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Rounding", (sg.Function,), parts)


@pytest.mark.parametrize("shape", ["n", "n m", "n m k"])
def test_the_derivative_of_what_is_not_detached(shape: str, tmp_path: Path) -> None:
    found = declared(Quantize, tmp_path, f'surrogate = "{MEANT}"', shape, "")
    assert found.verdict == sg.PROVED, str(found)
    for one in found.inputs.values():
        assert {str(said) for said in one.conditions} == {"x / s == -8", "x / s == 7"}


@pytest.mark.parametrize("which", WRONG)
def test_a_mistake_is_refuted_with_its_own_numbers(which: str, tmp_path: Path) -> None:
    made = type("Made", (Quantize,), {"of": staticmethod(WRONG[which])})
    found = declared(made, tmp_path, f'surrogate = "{MEANT}"', "n m", "")
    assert str(found.verdict) == "REFUTED", str(found)
    points = [one.counterexample for one in found.inputs.values() if one.counterexample]
    assert points
    assert all(one.hand != one.true and not one.snippet for one in points)
    assert all(one.suggestion is None for one in found.inputs.values())


def test_both_numbers_are_those_of_backward_and_the_surrogate(tmp_path: Path) -> None:
    line = 'surrogate = "x + (x.round() - x).detach()"'
    assert declared(rounding(lambda g, x: g), tmp_path, line, "n").verdict == sg.PROVED
    found = declared(rounding(lambda g, x: 3 * g), tmp_path, line, "n")
    point = found.inputs["x"].counterexample
    assert point is not None
    (weight,) = next(value for name, value in point.inputs.items() if name != "x")
    assert (point.hand, point.true) == (3 * weight, weight)
    zero = declared(rounding(lambda g, x: 0 * g), tmp_path, line, "n")
    assert str(zero.verdict) == "REFUTED"


def test_kinks_are_those_of_what_is_differentiated(tmp_path: Path) -> None:
    """At a kink nothing is claimed, and the report says so, on whichever side backward is."""
    line = 'surrogate = "x.clamp(-1, 1) + (x.round() - x.clamp(-1, 1)).detach()"'
    for inside in (lambda x: x.abs() < 1, lambda x: x.abs() <= 1):
        made = rounding(lambda g, x, inside=inside: g * inside(x).float())
        found = declared(made, tmp_path, line, "n")
        assert found.verdict == sg.PROVED, str(found)
        said = " ".join(map(str, found.inputs["x"].conditions))
        assert "x == -1" in said
        assert "x == 1" in said
    wider = rounding(lambda g, x: g * (x.abs() <= 1.001).float())
    assert declared(wider, tmp_path, line, "n").verdict != sg.PROVED


def test_what_is_detached_is_not_compared(tmp_path: Path) -> None:
    line = 'surrogate = "sg.where(x > x.detach(), x, 2 * x) + 0 * x.detach()"'
    with pytest.raises(UnsupportedOpError, match="compares a value that it detaches"):
        declared(rounding(lambda g, x: g), tmp_path, line, "n")


def test_a_step_to_a_fixed_point_detaches_nothing() -> None:
    made = rounding(lambda g, x: g)
    step = sg.fixed_point(lambda z, x: 0.5 * z.detach() + x)
    assert str(sg.verify(sg.surrogate(step)(made), "n").verdict) == "UNDECIDED"


def test_a_jvp_is_not_judged_against_it() -> None:
    made = rounding(lambda g, x: g)
    made.jvp = staticmethod(lambda ctx, tangent: 0 * tangent)  # type: ignore[method-assign]
    meant = sg.surrogate(lambda x: x + (x.round() - x).detach())
    report = sg.verify(meant(made), "n")
    assert report.verdict != sg.PROVED


def test_the_line_that_is_printed_declares_it(tmp_path: Path) -> None:
    first = sg.verify(Quantize, "n m", "")
    assert str(first.verdict) == "SURROGATE?"
    (line,) = {one.declaration for one in first.inputs.values()}
    assert line == f'surrogate = "{MEANT}"'
    assert declared(Quantize, tmp_path, line, "n m", "").verdict == sg.PROVED
