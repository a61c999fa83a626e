"""Axes of which each node that reads one reads several: where they meet in a loop, and then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import symgrad as sg
from symgrad.codegen.emit.kernel import emit_kernel
from symgrad.codegen.program.definitions import build_program
from symgrad.frontend.trace import trace
from symgrad.ir.dim import Axis
from symgrad.ir.graph import Graph
from symgrad.kernels import plan

BESIDE: dict[str, tuple[Callable[[Any], tuple[Any, Any]], bool]] = {
    "groups": (
        lambda x: (x.reshape(2, 3, -1).sum(-1).reshape(-1), x.reshape(2, 3, -1).exp()), True,
    ),
    "of symbolic length": (
        lambda x: (x.reshape(6, 2, -1).sum(0).reshape(-1), x.reshape(6, 2, -1).exp()), True,
    ),
    "other groups": (
        lambda x: (x.reshape(2, 3, -1).sum(-1).reshape(-1), x.reshape(3, 2, -1).exp()), False,
    ),
}  # fmt: skip
"""Two results of ``f32[6 2*m]``, and whether the first has no axes but those of the second."""


def _graph(function: Callable[[Any], Any], spec: str) -> Graph:
    class Op(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return function(x)

    (case,) = plan(trace(Op, spec), name="op").cases
    assert case.inference is not None
    return case.inference.graph


def _axes(function: Callable[[Any], tuple[Any, Any]]) -> list[frozenset[Axis]]:
    """The axes of each result."""
    graph = _graph(function, "f32[6 2*m]")
    return [one.body.free for one in build_program(graph).definitions]


@pytest.mark.parametrize("name", BESIDE)
def test_they_meet_where_they_split_it_alike(name: str) -> None:
    function, meet = BESIDE[name]
    first, second = _axes(function)
    assert (first <= second) is meet, (first, second)


@pytest.mark.parametrize(
    ("summed", "strides"), [(2, ()), (3, ()), (0, (0,)), (1, (0, 1)), ((0, 2), (0, 1, 2))]
)
def test_what_is_inside_of_axes_that_are_one_has_no_stride_of_its_own(
    summed: Any, strides: tuple[int, ...]
) -> None:
    graph = _graph(lambda x: x.sum(summed), "f32[n 3 h w]")
    assert emit_kernel(graph, "k").record.inputs[0].strides == strides
