"""Quotients that forward computed are read by a derived backward, with the same values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.frontend.trace import trace_request
from symgrad.ir.graph import Node, ancestors
from symgrad.kernels import OpPlan, plan
from symgrad.passes.evaluate import evaluate
from symgrad.passes.restate import Steps
from symgrad.shapes import requested
from symgrad.validate.forms import is_restated
from symgrad.validate.symbolic.written import READ_AGAIN
from symgrad.validation import NOT_VALIDATED, VALIDATED, validated

Program = Callable[..., Any]


def _over_norm(x: Any) -> Any:
    return x / sg.sqrt((x * x).sum(-1, keepdim=True) + 1)


READ: dict[str, Program] = {
    "softmax": lambda x: sg.softmax(x, -1),
    "softmax along columns": lambda x: sg.softmax(x, 0),
    "written softmax": lambda x: sg.exp(x) / sg.exp(x).sum(-1, keepdim=True),
    "softmax of all": lambda x: sg.softmax(x.reshape(-1), 0),
    "softmax of something": lambda x: sg.softmax(sg.tanh(x) * 3, -1),
    "share of squares": lambda x: sg.exp(x) / (1 + (sg.exp(x) * x).square().sum(-1, keepdim=True)),
    "softmax, and more of it": lambda x: sg.softmax(x, -1) * sg.sin(sg.softmax(x, -1)),
    "softmax twice": lambda x: sg.softmax(sg.softmax(x, -1), -1),
}
KEPT: dict[str, Program] = {
    "no quotient": lambda x: sg.exp(x) * sg.reciprocal(2 + x * x),
    "no sum": lambda x: sg.sin(x) * 2,
    "another term": lambda x: sg.exp(x) / (2 + sg.cos(x)) + sg.exp(x),
}


def _plan(program: Program, *, steady: bool = True) -> OpPlan:
    function: Any = type(
        "Made", (sg.Function,), {"forward": staticmethod(lambda ctx, x: program(x))}
    )
    return plan(trace_request(requested(function, ("f64[n m]",))), steady=steady)


def _gradient(planned: OpPlan) -> Node:
    (case,) = planned.graphs.cases
    (gradient,) = case.gradients
    assert gradient.node is not None
    return gradient.node


def _value(planned: OpPlan, n: int, m: int) -> np.ndarray[Any, Any]:
    generator = np.random.default_rng(3)
    gradient = _gradient(planned)
    (case,) = planned.graphs.cases
    feeds = {
        name: generator.standard_normal([dim.at({"n": n, "m": m}) for dim in node.shape])
        for name, node in case.graph.inputs.items()
    }
    needed = {node.attributes["name"] for node in ancestors([gradient]) if node.op == "input"}
    (found,) = evaluate([gradient], {k: feeds[k] for k in needed}, {"n": n, "m": m})
    return found


@pytest.mark.parametrize("name", [*READ, *KEPT])
@pytest.mark.parametrize("sizes", [(1, 1), (3, 5), (4, 1), (2, 0), (0, 3)], ids=str)
def test_gradients_keep_their_values(name: str, sizes: tuple[int, int]) -> None:
    program = {**READ, **KEPT}[name]
    found, wanted = _value(_plan(program), *sizes), _value(_plan(program, steady=False), *sizes)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", READ)
def test_quotients_are_read(name: str) -> None:
    planned = _plan(READ[name])
    assert planned.steps.late
    (case,) = planned.graphs.cases
    quotients = {node for node in ancestors(case.outputs) if node.op == "div"}
    for found in planned.steps.late.values():
        assert quotients & {*found.args}


@pytest.mark.parametrize("name", KEPT)
def test_what_forward_does_not_compute_is_not_put(name: str) -> None:
    assert not _plan(KEPT[name]).steps.late


def test_backward_of_softmax_reads_the_output_alone() -> None:
    (case,) = _plan(READ["softmax"]).cases
    assert [one.source for one in case.parts.residuals] == ["output"]
    assert case.forward.name == case.inference.name


def test_a_hand_written_backward_is_left_as_it_is() -> None:
    class Softmax(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            e = sg.exp(x)
            s = e.sum(-1, keepdim=True)
            ctx.save_for_backward(e, s)
            return e / s

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            e, s = ctx.saved_tensors
            return e * (g / s - (g * e).sum(-1, keepdim=True) / s / s)

    planned = plan(trace_request(requested(Softmax, ("f64[n m]",))))
    assert not planned.steps.late


@pytest.mark.slow
@pytest.mark.parametrize("name", READ)
def test_its_kernels_are_validated_and_say_so(name: str) -> None:
    planned = _plan(READ[name])
    _, found = validated(planned, "", cached=False)
    assert found.verdict == VALIDATED, "\n".join(map(str, found.findings))
    backward = {kernel.name for case in planned.cases for kernel in case.backward if kernel}
    for one in found.kernels:
        assert (READ_AGAIN in (one.written or ())) == (one.name in backward)


def test_a_wrong_step_is_not_validated() -> None:
    planned = _plan(READ["softmax"])
    assert is_restated(planned.traced, planned.graphs, planned.steps)
    assert not is_restated(planned.traced, planned.graphs, Steps(planned.steps.everywhere))
    wrong = {node: found + found for node, found in planned.steps.late.items()}
    assert not is_restated(planned.traced, planned.graphs, Steps(planned.steps.everywhere, wrong))
    unsaid = replace(planned, steps=Steps(planned.steps.everywhere))
    assert validated(unsaid, "", cached=False)[1].verdict == NOT_VALIDATED
