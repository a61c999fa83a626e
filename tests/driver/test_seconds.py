"""``seconds`` of a verdict: the processor time of all that was done to judge the class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

import symgrad as sg
from symgrad.deadline import processor_time
from symgrad.tools.cli import main

BURN = 0.2
SLOW = f"""
import time
import symgrad as sg

burnt = set()

def burn(name):
    if name in burnt:
        return
    burnt.add(name)
    end = time.thread_time() + {BURN}
    while time.thread_time() < end:
        pass

class Slow(sg.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad

def slowed(inner):
    def traced(*given):
        burn('Slow')
        return inner(*given)
    return staticmethod(traced)

Slow.forward = slowed(Slow.forward)

class Failing(sg.Function):
    @staticmethod
    def forward(ctx, x):
        burn('Failing')
        return x.no_such_method()

    @staticmethod
    def backward(ctx, grad):
        return grad
"""


def verified(path: Path, *arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(main, ["verify", str(path), "--json", *arguments])
    return {one["function"]: one for one in json.loads(done.stdout)}


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_tracing_counts_and_errors_have_it(tmp_path: Path, jobs: str) -> None:
    path, log = tmp_path / "slow.py", tmp_path / "log.xml"
    path.write_text(SLOW)
    before = processor_time()
    found = verified(path, "-j", jobs, "--junit", str(log))
    taken = processor_time() - before
    assert found["Failing"]["verdict"] == "ERROR"
    for one in found.values():
        assert one["seconds"] >= BURN
    assert sum(one["seconds"] for one in found.values()) <= taken + 0.01
    cases = ElementTree.parse(log).getroot().iter("testcase")
    times = {one.get("name"): float(one.get("time", 0)) for one in cases}
    assert times == {name: one["seconds"] for name, one in found.items()}


def test_a_report_has_it() -> None:
    class Square(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * x

    before = processor_time()
    report = sg.verify(Square, "n m")
    assert 0 < report.seconds <= processor_time() - before
