"""What an op computes at sampled points: values that the tests of a package compare with.

In: an ``OpPlan``.  Out: plain data, one table a case: inputs, outputs, cotangents, gradients.

NumPy evaluates the graphs of the kernels.  Results have so few digits that they are the same on
every machine; inputs are exact.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from symgrad.errors import SymgradError
from symgrad.ir.graph import Node, ancestors
from symgrad.kernels import CasePlan, OpPlan
from symgrad.passes.evaluate import evaluate
from symgrad.proof.oracle.sample import MODES, Sampler, Style, Unsatisfiable

DIGITS = 5
_SEED = 1


def samples(plan: OpPlan) -> list[dict[str, Any]]:
    """One table for each case that has a point where everything is finite."""
    numbers = default_numbers(plan)
    if numbers is None:
        return []
    found = (_sample(plan, case, numbers) for case in plan.cases)
    return [one for one in found if one is not None]


def default_numbers(plan: OpPlan) -> dict[str, Any] | None:
    """The plain numbers by name, as they are by default; None where one has no default."""
    found = {}
    for one in plan.graphs.values:
        if one.number:
            if not one.text:
                return None
            found[one.name] = ast.literal_eval(one.text)
    return found


def _sample(plan: OpPlan, case: CasePlan, numbers: Mapping[str, Any]) -> dict[str, Any] | None:
    cotangents = [node for node in case.case.cotangents if node is not None]
    results = [*case.case.outputs, *(g.node for g in case.case.gradients if g.node is not None)]
    given = [*case.case.tensors, *(one for one in cotangents if one not in case.case.tensors)]
    nodes = ancestors([*results, *given])
    sampler = Sampler(given, nodes, case.case.conditions, plan.graphs.assumptions, cotangents)
    for sizes in sampler.size_choices():
        for mode in MODES:
            try:
                style = Style(dict.fromkeys(sampler.modes, mode), thresholds=0.0)
                point = sampler.point(sizes, _SEED, style)
                feeds = {n.attributes["name"]: _given(n, point.doubles()) for n in given}
                table = _table(plan, case, {**feeds, **_typed(case, numbers)}, sizes)
            except (SymgradError, Unsatisfiable, IndexError, KeyError):
                continue
            if table is not None:
                return {**table, "numbers": dict(numbers)}
        return None
    return None


def _given(node: Node, values: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(values[node.attributes["name"]], dtype=str(node.dtype))


def _typed(case: CasePlan, numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: np.asarray(numbers[name], dtype=str(node.dtype))
        for node in case.case.numbers
        if (name := node.attributes["name"]) in numbers
    }


def _table(
    plan: OpPlan, case: CasePlan, feeds: Mapping[str, Any], sizes: Mapping[str, int]
) -> dict[str, Any] | None:
    """The table at one point; None where something is not finite."""
    one = case.case
    gradients = {g.input: g.node for g in one.gradients if g.node is not None}
    found = evaluate([*one.outputs, *gradients.values()], feeds, sizes)
    if not all(np.isfinite(array).all() for array in found):
        return None
    outputs, rest = found[: len(one.outputs)], found[len(one.outputs) :]
    return {
        "inputs": [_exact(feeds[node.attributes["name"]]) for node in one.tensors],
        "outputs": list(map(_rounded, outputs)),
        "cotangents": [
            None if node is None else _exact(feeds[node.attributes["name"]])
            for node in one.cotangents
        ],
        "gradients": dict(_by_place(plan, gradients, rest)),
    }


def _by_place(
    plan: OpPlan, gradients: Mapping[str, Node], values: list[np.ndarray[Any, Any]]
) -> Iterator[tuple[str, Any]]:
    """The gradients, by the places of their inputs."""
    for name, value in zip(gradients, values, strict=True):
        yield str(plan.graphs.input_names.index(name)), _rounded(value)


def _exact(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    return {"dtype": str(array.dtype), "shape": array.shape, "values": array.ravel().tolist()}


def _rounded(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    found = _exact(array)
    if array.dtype.kind == "f":
        found["values"] = [float(f"{value:.{DIGITS}g}") + 0.0 for value in found["values"]]
    return found
