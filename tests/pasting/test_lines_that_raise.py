"""Where backward raises at one line, that line is blamed, and what needs no repair has none."""

from __future__ import annotations

from typing import Any

import pytest

import symgrad as sg
from tests.suite.adversarial.program import class_of

RULE = """
class Raising(sg.Function):
    @staticmethod
    def forward(ctx, q, k, tau):
        rq = 1 / (q * q).sum(1, keepdim=True).sqrt()
        rk = 1 / (k * k).sum(1, keepdim=True).sqrt()
        ctx.save_for_backward(q * rq, k * rk, rq, rk, tau)
        return (q * rq) @ (k * rk).T * tau

    @staticmethod
    def backward(ctx, g):
        qh, kh, rq, rk, tau = ctx.saved_tensors
        gq, gk = g * tau @ kh, (g * tau).T @ qh
        dq = rq * (gq - qh * (gq * qh).sum(1, keepdim=True))
        dk = {line}
        return dq, dk, (g * (qh @ kh.T)).sum()
"""
RIGHT = "rk * (gk - kh * (gk * kh).sum(1, keepdim=True))"
PROVED = "with that all gradients are PROVED"


def verified(line: str) -> Any:
    text = RULE.format(line=line).lstrip()
    return sg.verify(class_of("Raising", text, sg), "t d", "s d", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        (RIGHT.replace("rk", "rq"), "rq", "rk"),
        (RIGHT.replace("kh", "qh", 1), "qh", "kh"),
        (RIGHT.replace("(gk * kh)", "(gk * qh)"), "qh", "kh"),
    ],
)
def test_one_wrong_name_is_all_that_is_blamed(line: str, old: str, new: str) -> None:
    report = verified(line)
    assert report.verdict == sg.REFUTED
    for one in report.inputs.values():
        assert one.diagnosis == (f"`{old}` should be `{new}` in line 14: {PROVED}",)
        assert one.suggestion is None
        assert "always equal" not in one.reason
    changed = [text[1:].strip() for text in report.diff.splitlines() if text[:2] == "+ "]
    assert changed == [f"dk = {RIGHT}"]


@pytest.mark.slow
def test_gradients_that_do_not_need_the_line_have_no_repair() -> None:
    report = verified("rk * (gq - 2 * kh * (gk * kh).sum(1, keepdim=True))")
    assert report.verdict == sg.REFUTED
    for name in ("q", "tau"):
        (said,) = report.inputs[name].diagnosis
        assert said.startswith("as it is written it is PROVED")
        assert report.inputs[name].suggestion is None
    assert report.inputs["k"].suggestion
