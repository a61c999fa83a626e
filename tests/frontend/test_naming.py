"""Nodes bear the names of the user's variables and the lines they were made on."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import symgrad as sg
from symgrad.frontend.trace import trace


class Norm(sg.Function):
    @staticmethod
    def forward(ctx, x, eps):  # type: ignore[no-untyped-def]
        mean = x.mean(-1, keepdim=True)
        centred = x - mean
        rstd = centred.square().mean(-1, keepdim=True).add(eps).rsqrt()
        for _ in range(2):
            scaled = centred * rstd
            rstd = rstd * 1.5
        ctx.save_for_backward(centred, rstd)
        return scaled

    @staticmethod
    def backward(ctx, grad_y):  # type: ignore[no-untyped-def]
        centred, rstd = ctx.saved_tensors
        first, second = grad_y * rstd, grad_y * centred
        return helper(first, second), None


def helper(first: Any, second: Any) -> Any:
    total = first + second
    return total * 2


def test_names() -> None:
    (case,) = trace(Norm, "n m", static={"eps": 1e-5}).cases
    names = {node.name for node in case.graph.nodes if node.name}
    assert {"mean", "centred", "rstd", "rstd_2", "first", "second", "total", "grad_y"} <= names
    assert case.output_names == ("y",)
    assert [node.label for node in case.saved] == ["centred", "rstd_3"]
    assert len(names) == sum(node.name is not None for node in case.graph.nodes)


def test_locations() -> None:
    (case,) = trace(Norm, "n m", static={"eps": 1e-5}).cases
    by_name = {node.label: node for node in case.graph.nodes}
    lines, start = inspect.getsourcelines(Norm)
    for name, text in (("centred", "x - mean"), ("first", "grad_y * rstd")):
        location = by_name[name].location
        assert location is not None
        assert text in lines[location.line - start]
    location = by_name["total"].location
    assert location is not None
    assert (location.function, location.file) == ("helper", __file__)


def test_where_the_function_stands_and_its_text() -> None:
    graphs = trace(Norm, "n m", static={"eps": 1e-5})
    assert graphs.location is not None
    assert (graphs.location.file, graphs.location.line) == (
        __file__, inspect.getsourcelines(Norm)[1],
    )  # fmt: skip
    assert "rstd = centred.square()" in graphs.source
    assert "first, second = grad_y * rstd" in graphs.source
    inherited = type("Derived", (Norm,), {})
    assert trace(inherited, "n m", static={"eps": 1.0}).source == graphs.source


_PROGRAM = """
import sys
sys.path.insert(0, {root!r})
from tests.frontend.test_naming import Norm
from symgrad.frontend.trace import trace
(case,) = trace(Norm, "n m", static={{"eps": 1e-5}}).cases
for node in case.graph.nodes:
    print(node.label, node.op, [arg.index for arg in node.args], node.type, node.attrs)
"""


def test_traces_are_the_same_under_any_hash_seed() -> None:
    root = str(Path(__file__).parents[2])
    texts = {
        subprocess.run(
            [sys.executable, "-c", _PROGRAM.format(root=root)], env={"PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }  # fmt: skip
    assert len(texts) == 1
    assert "centred" in texts.pop()


def test_a_long_loop_is_traced() -> None:
    class Chain(sg.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            for _ in range(3000):
                x = x * 1.5 + 1
            return x

    (case,) = trace(Chain, "n").cases
    assert len(case.graph.nodes) > 6000
