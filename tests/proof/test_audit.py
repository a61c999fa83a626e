"""The audit: agrees with what is right, and finds what a proof would have missed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import symgrad as sg
from symgrad.frontend.forward_mode import pushing
from symgrad.frontend.request import bind
from symgrad.frontend.trace import trace_request
from symgrad.proof.judge.decide import Judgement
from symgrad.proof.judge.jvp import _pushed
from symgrad.proof.judge.opinions import Opinions
from symgrad.proof.oracle.audit import LARGEST_SIZE, LEAST_POINTS, audit
from symgrad.proof.report.verdict import Verdict
from symgrad.proof.verify import JudgedCase, hear, subject_of
from symgrad.tools.cli import main
from tests.proof.written import saving_input

Forward = Callable[[Any], Any]
Backward = Callable[[Any, Any], Any]


def _softmax(g: Any, x: Any) -> Any:
    y = sg.softmax(x, 1)
    return y * (g - (g * y).sum(1, keepdim=True))


RIGHT: dict[str, tuple[Forward, Backward, str]] = {
    "softmax": (lambda x: sg.softmax(x, 1), _softmax, "n m"),
    "relu": (lambda x: x.relu(), lambda g, x: g * (x > 0), "n"),
    "inverse": (
        lambda x: x.inverse(), lambda g, x: -(x.inverse().t() @ g @ x.inverse().t()), "n n",
    ),
    "literal": (lambda x: x * 0.3333333333333333, lambda g, x: g / 3, "n"),
    "sort": (lambda x: x.sort(0)[0], lambda g, x: g[x.argsort(0).argsort(0)], "n"),
}  # fmt: skip

MISSED: dict[str, tuple[Forward, Backward, str]] = {
    "a size": (
        lambda x: x * x,
        lambda g, x: g * 2 * x * ((x.shape[0] - 31) * (x * x + 1) != 0),
        "n",
    ),
    "an index": (lambda x: 3 * x, lambda g, x: g * 3 * (sg.arange(x.shape[0]) != 29), "n"),
    "a region": (lambda x: x * x, lambda g, x: sg.where(x > 2.5, g, 2 * g * x), "n"),
    "no value": (lambda x: x * x, lambda g, x: 2 * g * x + 0 * (x + 0.01).log(), "n"),
    "by little": (lambda x: x * x, lambda g, x: g * x * 2.0000000000001, "n m"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_agrees(name: str) -> None:
    forward, backward, spec = RIGHT[name]
    report = sg.verify(saving_input(forward, backward), spec, suggest=False, audit=True)
    assert report.verdict == sg.PROVED, str(report)
    (finding,) = (one for one in report.protocol if one.name == "audit")
    points = int(finding.text.split(": ")[1].split()[0])
    assert points >= LEAST_POINTS
    assert "probability 1/2000" in finding.text


@pytest.mark.parametrize("name", MISSED)
def test_what_a_proof_missed_is_refuted(name: str) -> None:
    """The audit asks no prover: here one is taken to have proved what is wrong."""
    forward, backward, spec = MISSED[name]
    (case,) = trace_request(bind(saving_input(forward, backward), (spec,))).cases
    subject = subject_of(case, ())
    subject.settle()
    found = audit(subject, ["x"])
    assert found.wrong is not None
    assert all(size <= LARGEST_SIZE for size in found.wrong[2].sizes.values())
    opinions = Opinions()
    hear(opinions, JudgedCase(case, subject, {"x": Judgement(Verdict.PROVED)}))
    (said,) = opinions.finding()
    assert said.verdict is Verdict.REFUTED
    assert "please report it" in said.text
    assert "gradient by x[" in said.text


class Tangent(sg.Function):
    """A right backward and jvp; the tests change the latter."""

    @staticmethod
    def forward(ctx, x, w):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(x, w)
        ctx.save_for_forward(x, w)
        return x.sin() * w

    @staticmethod
    def backward(ctx, g):  # type: ignore[no-untyped-def]
        x, w = ctx.saved_tensors
        return g * x.cos() * w, (g * x.sin()).sum(0)

    @staticmethod
    def jvp(ctx, x_t, w_t):  # type: ignore[no-untyped-def]
        x, w = ctx.saved_tensors
        return x.cos() * w * x_t + x.sin() * w_t


def test_a_jvp_is_heard_as_well() -> None:
    report = sg.verify(Tangent, "n m", "m", suggest=False, audit=True)
    (finding,) = (one for one in report.protocol if one.name == "audit")
    assert finding.verdict is Verdict.PROVED
    assert re.search(r"jvp: \d\d random points .*; x, w: \d\d random points", finding.text)


@pytest.mark.parametrize(
    "slip",
    [
        lambda x, w, x_t, w_t: x.cos() * w * x_t,
        lambda x, w, x_t, w_t: x.cos() * w * x_t + x.sin() * w_t * (x.shape[0] != 31),
        lambda x, w, x_t, w_t: x.cos() * w * x_t + x.sin() * w_t + 1e-9 * x,
    ],
)
def test_a_wrong_jvp_disagrees(slip: Any) -> None:
    def jvp(ctx: Any, x_t: Any, w_t: Any) -> Any:
        return slip(*ctx.saved_tensors, x_t, w_t)

    wrong = type("Wrong", (Tangent,), {"jvp": staticmethod(jvp)})
    opinions = Opinions()
    for case in trace_request(pushing(bind(wrong, ("n m", "m")))).cases:
        subject, pushed, tangents = _pushed(case, ())
        opinions.on_tangents(subject, pushed, tangents, {}, "")
    assert opinions.wrong is not None
    assert opinions.wrong.verdict is Verdict.REFUTED
    assert "jvp is not the derivative" in opinions.wrong.text


def test_the_backward_of_the_backward_is_heard_as_well() -> None:
    class Cube(sg.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            return 3 * g * x * x

    report = sg.verify(Cube, "n", order=2, suggest=False, audit=True)
    (finding,) = (one for one in report.protocol if one.name == "audit")
    assert re.search(r"x, grad_\w+ \(second order\): \d\d random points", finding.text)


def test_literals_are_read_as_the_proof_has_read_them() -> None:
    one = saving_input(lambda x: (0.1 * x) ** 2 * 1.561679, lambda g, x: 0.031234 * g * x)
    report = sg.verify(one, "n", suggest=False, audit=True)
    assert report.verdict == sg.PROVED, str(report)
    assert any("0.031234 is read as" in condition.text for condition in report.conditions)


def test_the_command_line_says_what_was_compared(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    path.write_text(
        "import symgrad as sg\n\n\nclass Square(sg.Function):\n    @staticmethod\n"
        "    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x * x\n\n"
        "    @staticmethod\n    def backward(ctx, g):\n        (x,) = ctx.saved_tensors\n"
        "        return 2 * g * x\n"
    )
    done = CliRunner().invoke(main, ["verify", f"{path}:Square", "--shapes", "n", "--audit"])
    assert done.exit_code == 0, done.output
    assert "40 random points (n <= 40)" in " ".join(done.output.split())
