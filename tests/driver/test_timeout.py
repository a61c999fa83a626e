"""The time limit: what is not decided by then is UNDECIDED, and nothing half done stays behind."""

from __future__ import annotations

import contextlib
import importlib
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import symgrad as sg
from symgrad import deadline, everywhere
from symgrad.errors import NotProvedError, SpecError
from symgrad.tools.cli import main


class Softmax(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = sg.softmax(x, -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return (g - (g * y).sum(-1, keepdim=True)) * y


class WrongProduct(sg.Function):
    """One gradient is right, the other one has the wrong sign, which a repair corrects."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x.tanh() * w

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        return g * w * (1 - x.tanh() ** 2), -g * x.tanh()


class Scaled(sg.Function):
    """A plain number, which becomes a symbol, and a tensor that may be absent."""

    @staticmethod
    def forward(ctx: Any, x: Any, bias: Any = None, alpha: float = 2.0) -> Any:
        ctx.alpha, ctx.biased = alpha, bias is not None
        return x * alpha if bias is None else x * alpha + bias

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.alpha, g if ctx.biased else None, None


class Ticks:
    """A clock that counts how often it is looked at."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> float:
        self.count += 1
        return float(self.count)


def judged_until(function: Any, specs: tuple[str, ...], ticks: float) -> tuple[Any, int]:
    """The report if the clock may be looked at so often, and how often it was."""
    clock = Ticks()
    with deadline.limited(ticks, clock):
        report = sg.verify(function, *specs, timeout=None)
    return report, clock.count


CASES = [(Softmax, ("n m",)), (WrongProduct, ("n", "n")), (Scaled, ("n", "n")), (Softmax, ())]


@pytest.mark.parametrize(("function", "specs"), CASES)
def test_wherever_it_is_stopped_nothing_false_is_said(function: Any, specs: Any) -> None:
    importlib.import_module("flint")  # points are consulted in other ways until it is there
    whole, count = judged_until(function, specs, 1e9)
    assert not whole.timed_out
    assert count > 20
    stopped = 0
    for number in range(16):
        report, _ = judged_until(function, specs, 1 + count * number // 15)
        if report.timed_out:
            stopped += 1
            assert report.verdict in ("UNDECIDED", whole.verdict)
            for name, one in report.inputs.items():
                assert one.verdict in ("UNDECIDED", whole.inputs[name].verdict)
                if one.verdict == "UNDECIDED":
                    assert "the time limit of" in one.reason
        else:
            assert str(report) == str(whole)
    assert stopped >= 10
    again, other = judged_until(function, specs, 1e9)
    assert str(again) == str(whole)
    assert other == count


@pytest.mark.parametrize(
    "step",
    [
        "Softmax was traced",
        "doubles were compared at points",
        "difference quotients were compared in 60 digits",
        "the gradient of x was proved",
        "whole",
    ],
)
def test_what_was_under_way_is_named(step: str) -> None:
    def clock() -> float:
        return float(step in deadline.under_way())

    with deadline.limited(1, clock):
        report = sg.verify(Softmax, "n m", timeout=None)
    assert report.timed_out
    assert report.verdict == "UNDECIDED"
    said = " ".join(str(report).split())
    assert "the time limit of 1 s was reached while " in said
    assert step in said


def test_a_counterexample_that_was_found_is_kept() -> None:
    _, count = judged_until(WrongProduct, ("n", "n"), 1e9)
    report, _ = judged_until(WrongProduct, ("n", "n"), count - 3)
    assert report.timed_out
    assert report.inputs["w"].verdict == "REFUTED"
    assert report.inputs["w"].counterexample is not None


def test_a_refutation_stands_where_repairs_are_checked_too_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No time is left to judge a repair for all shapes: the verdict was found before."""
    checked, late = everywhere.checked, list[float]()

    def slow(*args: Any) -> Any:
        late.append(2.0)
        return checked(*args)

    monkeypatch.setattr(everywhere, "checked", slow)
    with deadline.limited(1, lambda: sum(late)):
        report = sg.verify(WrongProduct, timeout=None)
    assert late
    assert report.timed_out
    assert report.inputs["x"].verdict == "PROVED"
    assert report.inputs["w"].verdict == "REFUTED"
    alone = [one.text for one in report.inputs["w"].suggested_under if one.kind == everywhere.ALONE]
    assert "the time limit" in str(alone)


def test_what_took_the_time_is_named_and_not_what_is_stopped_next() -> None:
    now = [0.0]
    with deadline.limited(1, lambda: now[0]):
        for under_way in ("one part", "another part"):
            now[0] += 1.0
            with deadline.step(under_way), pytest.raises(deadline.TimeUp) as stopped:
                deadline.check()
            assert str(stopped.value) == "the time limit of 1 s was reached while one part"


@pytest.mark.parametrize("inner", ["none", "a part", "a limit", "a limit by another clock"])
def test_the_clock_is_looked_at_again_only_where_a_limit_may_be_reached(
    inner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall, ran, looks = [100.0], [5.0], list[float]()

    def clock() -> float:
        looks.append(ran[0])
        return ran[0]

    monkeypatch.setattr(time, "monotonic", lambda: wall[0])
    monkeypatch.setattr(time, "thread_time", clock)
    others: dict[str, contextlib.AbstractContextManager[Any]] = {
        "none": contextlib.nullcontext(), "a part": deadline.part(0.75),
        "a limit": deadline.limited(6, clock),
        "a limit by another clock": deadline.limited(1, lambda: float(wall[0] >= 106)),
    }  # fmt: skip
    ends = {"none": 8.0, "a part": 6.0, "a limit": 6.0, "a limit by another clock": 1e9}[inner]
    with deadline.limited(8, clock), others[inner]:
        looks.clear()
        stopped = 0.0
        for _ in range(4000):  # the thread runs half of the time
            wall[0] += 0.01
            ran[0] += 0.005
            try:
                deadline.check()
            except deadline.TimeUp:
                stopped = wall[0]
                break
    if inner == "a limit by another clock":
        assert stopped == pytest.approx(106)
    else:
        assert ran[0] - 5 == pytest.approx(ends, abs=0.006)
        assert len(looks) < 40


class Endless(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        while True:
            pass

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


def test_a_loop_of_the_user_is_left() -> None:
    report = sg.verify(Endless, "n", timeout=0.05)
    assert report.verdict == "UNDECIDED"
    assert report.timed_out
    said = " ".join(str(report).split())
    assert "the time limit of 0.05 s was reached while Endless was traced, at " in said
    line = Endless.forward.__code__.co_firstlineno + 2
    assert f"{Path(__file__).name}:{line}" in said or f"{Path(__file__).name}:{line + 1}" in said
    assert "--shapes" in said


def test_a_library_that_does_not_return_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    from symgrad.proof.normal import zero

    def endless(*_: Any, **__: Any) -> Any:
        while True:
            time.process_time()

    assert sg.verify(Softmax, "n m").verdict == "PROVED"
    with monkeypatch.context() as patched:
        patched.setattr(zero, "attempt", endless)
        report = sg.verify(Softmax, "n m", timeout=1)
    assert report.verdict == "UNDECIDED"
    assert "the time limit of 1 s was reached while the gradient of x" in " ".join(
        str(report).split()
    )
    assert sg.verify(Softmax, "n m").verdict == "PROVED"


def test_another_thread_looks_at_the_clock_alone() -> None:
    found: list[Any] = []

    def judge() -> None:
        found.extend((sg.verify(Softmax, "n m", timeout=1e-4), sg.verify(Softmax, "n m")))

    thread = threading.Thread(target=judge)
    thread.start()
    thread.join()
    assert [str(report.verdict) for report in found] == ["UNDECIDED", "PROVED"]
    assert found[0].timed_out


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan"), "30", True])
def test_a_limit_is_a_positive_number(timeout: Any) -> None:
    with pytest.raises(SpecError, match="timeout="):
        sg.verify(Softmax, "n m", timeout=timeout)


def test_no_kernels_of_what_was_not_decided_in_time() -> None:
    with pytest.raises(NotProvedError, match="time limit"):
        sg.compile(Softmax, "n m", timeout=1e-4)


OPS = """\
import symgrad as sg


class Cube(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x * x
"""


def test_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(OPS)
    target = str(tmp_path / "ops.py")
    done = CliRunner().invoke(main, ["verify", target, "--timeout", "0.0001", "--json"])
    assert done.exit_code == 1
    (found,) = json.loads(done.stdout)
    assert (found["verdict"], found["timed_out"]) == ("UNDECIDED", True)
    for seconds in ("0", "60"):
        assert CliRunner().invoke(main, ["verify", target, "--timeout", seconds]).exit_code == 0
    assert CliRunner().invoke(main, ["verify", target, "--timeout", "-1"]).exit_code == 2


def test_in_pytest(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(plugged=OPS)
    slow = pytester.runpytest_inprocess("--symgrad", "--symgrad-timeout=0.0001")
    slow.assert_outcomes(failed=1)
    slow.stdout.fnmatch_lines(["*time limit of 0.0001 s*"])
    pytester.makeini("[pytest]\nsymgrad = true\nsymgrad_timeout = 0.0001\n")
    pytester.runpytest_inprocess().assert_outcomes(failed=1)
    pytester.runpytest_inprocess("--symgrad-timeout=0").assert_outcomes(passed=1)
    assert pytester.runpytest_inprocess("--symgrad-timeout=-2").ret != 0


class HalfRight(sg.Function):
    """Right where all sizes are 1."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return (x * x).mean(0)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 2 * x


def test_a_refutation_keeps_its_repair_where_conditions_take_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And the true gradient, where what is wrong takes too long as well."""
    whole = sg.verify(HalfRight, "n m").inputs["x"]
    assert whole.suggestion
    assert any(one.kind == "found" for one in whole.conditions)
    monkeypatch.setattr("symgrad.proof.verify.CONDITION_SECONDS", 0.0)
    short = sg.verify(HalfRight, "n m").inputs["x"]
    assert short.verdict == "REFUTED"
    assert short.suggestion == whole.suggestion
    assert not any(one.kind == "found" for one in short.conditions)
    monkeypatch.setattr("symgrad.proof.repair.diagnose.REPAIR_SECONDS", 0.0)
    shortest = sg.verify(HalfRight, "n m").inputs["x"]
    assert shortest.verdict == "REFUTED"
    assert shortest.suggestion is None
    assert shortest.derived == whole.derived
    assert any("time limit" in words for words in shortest.diagnosis)
