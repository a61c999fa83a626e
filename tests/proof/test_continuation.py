"""Removable singularities that forward shares: the limit is proved, other values are refuted."""

from __future__ import annotations

import mpmath
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg
from symgrad.proof.judge.continuation import Series, Unknown, _Walk
from tests.suite.adversarial.program import class_of, class_text

SAFE = "z = x == {at}; s = sg.where(z, {safe}, x); "


def quotient(at: str, limit: str, forward: str, slope: str, safe: str = "0.5") -> tuple[str, str]:
    """Forward and backward, in which ``{}`` stands for the value at the point."""
    head = SAFE.format(at=at, safe=safe)
    return f"{head}sg.where(z, {limit}, {forward})", f"{head}g * sg.where(z, {{}}, {slope})"


EXPM1, SINC = "(s * s.exp() - s.expm1()) / (s * s)", "(s * s.cos() - s.sin()) / (s * s)"
GUARD = SAFE.format(at="0", safe="1.0")
DIVIDED = (
    "z = x == y; d = sg.where(z, 1.0, x - y); sg.where(z, x.exp(), (x.exp() - y.exp()) / d)",
    "z = x == y; d = sg.where(z, 1.0, x - y); q = (x.exp() - y.exp()) / d; "
    "g * sg.where(z, {}, (x.exp() - q) / d), g * sg.where(z, x.exp() / 2, (q - y.exp()) / d)",
)
CASES = {
    "expm1": (quotient("0", "1.0", "s.expm1() / s", EXPM1), "0.5", "0.0"),
    "sinc": (quotient("0", "1.0", "s.sin() / s", SINC), "0.0", "1.0"),
    "log at 1": (
        quotient("1", "1.0", "s.log() / (s - 1)", "((s - 1) / s - s.log()) / ((s - 1) * (s - 1))"),
        "-0.5", "0.0",
    ),
    "second order": (
        quotient("0", "0.5", "(1 - s.cos()) / (s * s)",
                 "(s * s.sin() - 2 * (1 - s.cos())) / (s * s * s)"), "0.0", "1.0",
    ),
    "a rounded value": (
        quotient("0", "0.5", "(s.exp() - 1 - s) / (s * s)",
                 "(s * s.exp() - 2 * s.exp() + 2 + s) / (s * s * s)"), "1 / 6", "0.1667",
    ),
    "a pole that cancels": (
        quotient("0", "1.0", "s * s.cosh() / s.sinh()",
                 "(s.cosh() * s.sinh() - s) / (s.sinh() * s.sinh())"), "0.0", "1.0",
    ),
    "a root": (
        quotient("4", "0.25", "(s.sqrt() - 2) / (s - 4)",
                 "(0.5 * (s - 4) / s.sqrt() - s.sqrt() + 2) / ((s - 4) * (s - 4))", "5.0"),
        "-1 / 64", "0.0",
    ),
    "a logarithm of 2": (
        quotient("0", "0.5", "((1 + s.exp()).log() - (sg.ones_like(s) * 2).log()) / s",
                 "(s * s.sigmoid() - (1 + s.exp()).log() + (sg.ones_like(s) * 2).log()) / (s * s)"),
        "0.125", "0.0",
    ),
    "divided difference": (DIVIDED, "x.exp() / 2", "x.exp()"),
    "what is unguarded": (
        ("sg.where(x == 0, 1.0, x.sin() / x)",
         "g * sg.where(x == 0, {}, (x * x.cos() - x.sin()) / (x * x))"), "0.0", "1.0",
    ),
    "under a reduction": (
        (GUARD + "sg.where(z, 1.0, s.sin() / s).sum(0, keepdim=True).exp()",
         GUARD + "q = sg.where(z, 1.0, s.sin() / s)\n"
         f"g * q.sum(0, keepdim=True).exp() * sg.where(z, {{}}, {SINC})"), "0.0", "1.0",
    ),
    "of a sum": (
        ("t = x.sum(0, keepdim=True); z = t == 0; s = sg.where(z, 1.0, t); "
         "sg.where(z, 1.0, s.sin() / s)",
         "t = x.sum(0, keepdim=True); z = t == 0; s = sg.where(z, 1.0, t); "
         f"(g * sg.where(z, {{}}, {SINC})).expand(x.shape[0])"), "0.0", "1.0",
    ),
}  # fmt: skip


def report(forward: str, backward: str) -> sg.Report:
    takes = "xy" if "y" in forward else "x"
    text = class_text("Judged", forward, backward, takes)
    return sg.verify(class_of("Judged", text, sg), *["n"] * len(takes), suggest=False)


@pytest.mark.parametrize("name", CASES)
def test_the_limit_is_proved(name: str) -> None:
    (forward, backward), right, _ = CASES[name]
    found = report(forward, backward.format(right))
    assert found.verdict == sg.PROVED, str(found)
    assert {c.kind for c in found.conditions} <= {"domain", "literal"}, str(found)


@pytest.mark.parametrize("name", list(CASES)[::3])
def test_another_value_is_refuted_there(name: str) -> None:
    (forward, backward), _, wrong = CASES[name]
    found = report(forward, backward.format(wrong))
    assert found.inputs["x"].verdict == sg.REFUTED, str(found)


UNKNOWN = {
    "no limit of the derivative": (
        "z = x == 0; s = sg.where(z, 1.0, x); sg.where(z, 0.0, s * s * (1 / s).sin())",
        "z = x == 0; s = sg.where(z, 1.0, x); "
        "g * sg.where(z, 1.0, 2 * s * (1 / s).sin() - (1 / s).cos())",
    ),
    "transposed": (
        "sg.where(x == 0, 1.0, x.sin() / x)",
        "g * sg.where(x.t() == 0, 0.0, (x * x.cos() - x.sin()) / (x * x))",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_shown_is_not_proved(name: str) -> None:
    forward, backward = UNKNOWN[name]
    text = class_text("Judged", forward, backward, "x")
    spec = "n n" if ".t()" in backward else "n"
    found = sg.verify(class_of("Judged", text, sg), spec, suggest=False)
    said = [c for c in found.conditions if c.kind not in ("domain", "literal")]
    assert found.verdict != sg.PROVED or said, str(found)


X = sympy.Symbol("x", real=True)
PARTS = st.sampled_from((X, X + 1, 2 * X, X**2, sympy.exp(X), sympy.sin(X), sympy.cos(X) + 2,
                         sympy.log(X + 2), sympy.atan(X), sympy.sqrt(X + 3)))  # fmt: skip


@settings(max_examples=40)
@given(st.lists(PARTS, min_size=2, max_size=4), st.sampled_from("+*/e"))
def test_a_series_is_that_of_the_function(parts: list[sympy.Expr], how: str) -> None:
    whole = parts[0]
    for part in parts[1:]:
        whole = {"+": whole + part, "*": whole * part, "/": whole / part,
                 "e": sympy.exp(part) * whole}[how]  # fmt: skip
    t = Series(1, (sympy.Integer(1), *[sympy.Integer(0)] * 7))
    try:
        found = _Walk({X: t}).of(whole)
    except Unknown:
        return
    with mpmath.workdps(40):
        at = mpmath.mpf(1) / 1000
        true = mpmath.mpmathify(sympy.N(whole.subs(X, sympy.Rational(1, 1000)), 40))
        near = sum(
            mpmath.mpmathify(sympy.N(part, 40)) * at ** (found.low + k)
            for k, part in enumerate(found.parts)
        )
        assert abs(true - near) <= 1e6 * at**found.end
