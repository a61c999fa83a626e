"""What is said of backwards that are not written, and of those that could not be run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

import symgrad as sg
from symgrad.tools.cli import main

DERIVED = "derived: no backward written"
SOURCE = """
import symgrad as sg


class Tanh(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n]"):
        return sg.tanh(x)
"""


def op(backward: Any, forward: Any = lambda ctx, x: x * x) -> type[sg.Function]:
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Op", (sg.Function,), methods)


def run(*arguments: object) -> str:
    done = CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0
    return " ".join(done.stdout.split())


def test_a_derived_backward_is_told_wherever_its_verdict_stands(tmp_path: Path) -> None:
    path, junit, sarif = (tmp_path / name for name in ("ops.py", "junit.xml", "log.sarif"))
    path.write_text(SOURCE)
    assert DERIVED in run("verify", path, "--junit", junit, "--sarif", sarif)
    (plain,) = json.loads(run("verify", path, "--json"))
    assert plain["derived"] is True
    assert DERIVED in str(next(ElementTree.parse(junit).iter("system-out")).text)
    assert json.loads(sarif.read_text())["runs"][0]["properties"]["judged"][0]["derived"] is True
    run("build", path, "-o", tmp_path / "package", "--no-compile")
    for name in ("tanh.h", "tanh.py"):
        assert f"PROVED ({DERIVED})" in (tmp_path / "package" / name).read_text()
    manifest = json.loads((tmp_path / "package" / "MANIFEST.json").read_text())
    assert manifest["ops"]["tanh"]["proof"]["derived"] is True


def test_a_written_backward_is_not_called_derived() -> None:
    def backward(ctx: Any, grad: Any) -> Any:
        return 3 * grad

    report = sg.verify(op(backward, lambda ctx, x: 3 * x), "n")
    assert report
    assert DERIVED not in str(report)
    assert report.to_dict()["derived"] is False


def fails(ctx: Any, grad: Any) -> Any:
    raise KeyError("y")


def unsupported(ctx: Any, grad: Any) -> Any:
    return grad if (grad > 0).any() else 2 * grad


@pytest.mark.parametrize("backward", [fails, unsupported])
@pytest.mark.parametrize("order", [1, 2])
def test_nothing_is_said_of_what_could_not_be_run(backward: Any, order: int) -> None:
    report = sg.verify(op(backward), "n", order=order)
    assert not report
    assert not any(report.protocol)
    assert "PROVED" not in str(report)


def test_what_ran_for_some_sizes_is_said_of_these() -> None:
    def backward(ctx: Any, grad: Any) -> Any:
        if grad.shape[0] == 1:
            raise KeyError("y")
        return 3 * grad

    report = sg.verify(op(backward, lambda ctx, x: 3 * x), "n")
    assert report == sg.REFUTED
    assert len(report.protocol) == 4
    assert all(one.text == "where backward runs" for one in report.protocol)


def test_a_gradient_that_does_not_fit_is_not_called_linear() -> None:
    report = sg.verify(op(lambda ctx, grad: grad.sum()), "n")
    assert "linear in the cotangents" not in [one.name for one in report.protocol]


def test_that_there_is_nothing_to_judge_is_told() -> None:
    report = sg.verify(op(lambda ctx, grad: None), "i64[n]")
    assert "no input has a gradient: nothing was judged" in report.notes
