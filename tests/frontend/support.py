"""Tracing an expression over symgrad, and evaluating what was traced.

In: text or functions over tensors.  Out: NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import symgrad as sg
from symgrad.frontend.trace import trace
from symgrad.ir.dtype import float64
from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.passes.evaluate import evaluate

Array = np.ndarray[Any, Any]

_HOLDS: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def forward_only(forward: Callable[..., Any]) -> Any:
    """A Function with this forward, which takes no ctx, and a backward that nobody calls."""
    return type("Traced", (sg.Function,), {
        "forward": staticmethod(forward),
        "setup_context": staticmethod(lambda ctx, inputs, output: None),
        "backward": staticmethod(_no_backward),
    })  # fmt: skip


def holds(case: FunctionCase, sizes: Mapping[str, int]) -> bool:
    """Is this the case for these sizes?"""
    return all(
        _HOLDS[condition.relation](condition.left.at(sizes), condition.right.at(sizes))
        for condition in case.conditions
    )


def case_for(graphs: FunctionGraphs, sizes: Mapping[str, int]) -> FunctionCase:
    """The one case for these sizes."""
    (found,) = [case for case in graphs.cases if holds(case, sizes)]
    return found


def _no_backward(ctx: Any, *cotangents: Any) -> Any:
    raise NotImplementedError("only forward is tried")


def run(
    forward: Callable[..., Any],
    specs: Sequence[str],
    points: Sequence[tuple[Mapping[str, int], Mapping[str, Array]]],
) -> list[list[Array]]:
    """Trace a forward in float64 once, and evaluate its outputs at several sizes and arrays."""
    graphs = trace(forward_only(forward), *specs, dtype=float64)
    return [evaluate(case_for(graphs, sizes).outputs, arrays, sizes) for sizes, arrays in points]


def compare(left: int, relation: str, right: int) -> bool:
    """Does the relation hold between two numbers?"""
    return _HOLDS[relation](left, right)
