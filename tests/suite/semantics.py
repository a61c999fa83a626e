"""Does symgrad read a Function as torch runs it?

In: the same class bound to both.  Out: texts of what differs: outputs and gradients (right or
wrong) of the traced graph, evaluated with NumPy, against torch's at the same inputs.  symgrad may
refuse what torch refuses at other sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

import symgrad as sg
from symgrad.frontend.trace import trace
from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.passes.evaluate import evaluate
from tests.suite.marks import Case
from tests.suite.sampling import (
    BATCH,
    SCALES,
    Unsatisfiable,
    sample_arguments,
    size_choices,
    size_names,
)
from tests.suite.torch_apply import caller

TOLERANCE = 1e-9
REFUSED = "refused here"
TORCH_REFUSES = "torch refuses"
_RELATIONS = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def disagreements(on_torch: Case, on_symgrad: Case, points: int = 6) -> list[str]:
    """What differs at the first few choices of sizes; nothing where both refuse alike."""
    graphs: dict[int, FunctionGraphs] = {}
    texts = []
    for position, sizes in enumerate(size_choices(size_names(on_torch))[:points]):
        rank = len(sizes.get(BATCH, ()))
        if rank not in graphs:
            graphs[rank] = _traced(on_symgrad, rank)
        generator = np.random.default_rng((7, position))
        try:
            arguments = sample_arguments(on_torch, sizes, generator, SCALES[position % 3])
        except Unsatisfiable:
            continue
        texts += [
            f"{text} ({sizes})" for text in _compared(on_torch, graphs[rank], arguments, sizes)
        ]
    if any(text.startswith(TORCH_REFUSES) for text in texts):
        return [text for text in texts if not text.startswith((REFUSED, TORCH_REFUSES))]
    return texts


def _traced(case: Case, rank: int) -> FunctionGraphs:
    return trace(
        case.function,
        *case.specs,
        static=case.static,
        assume=case.assume,
        dtype=sg.float64,
        batch_rank=rank,
    )


def _compared(
    case: Case, graphs: FunctionGraphs, arguments: dict[str, Any], sizes: dict[str, Any]
) -> Iterator[str]:
    names = [name for name, value in arguments.items() if torch.is_tensor(value)]
    leaves = {
        name: arguments[name].clone().requires_grad_(arguments[name].dtype == torch.float64)
        for name in names
    }
    given = {n: v * 1 if v.requires_grad else v for n, v in leaves.items()}
    fits = [one for one in graphs.cases if _holds(one, sizes)]
    if len(fits) != 1:
        yield f"{len(fits)} cases hold"
        return
    feeds = dict(zip((_name(n) for n in fits[0].inputs), map(_array, given.values()), strict=True))
    outputs = caller(case)({**arguments, **given})
    traced = evaluate(fits[0].outputs, feeds, _known(sizes))
    for index, (ours, theirs) in enumerate(zip(traced, outputs, strict=True)):
        yield from _differs(f"output {index}", ours, theirs)
    yield from _gradients(fits[0], feeds, sizes, list(outputs), leaves)


def _gradients(
    traced: FunctionCase,
    feeds: dict[str, Any],
    sizes: dict[str, Any],
    outputs: list[Any],
    leaves: dict[str, Any],
) -> Iterator[str]:
    generator = np.random.default_rng(11)
    pairs = []
    for cotangent, output in zip(traced.cotangents, outputs, strict=True):
        if cotangent is not None and output.requires_grad:
            weight = torch.tensor(generator.standard_normal(tuple(output.shape)))
            feeds[_name(cotangent)] = weight.numpy().copy()
            pairs.append((output, weight))
    wanted = {name: leaf for name, leaf in leaves.items() if leaf.requires_grad}
    problems = [one for one in traced.gradients if one.problem is not None]
    refused = traced.problem is not None or bool(problems)
    try:
        found = torch.autograd.grad(
            [output for output, _ in pairs],
            list(wanted.values()),
            [weight for _, weight in pairs],
            allow_unused=True,
        )
    except Exception as error:
        yield TORCH_REFUSES if refused else f"only torch refuses: {error}"
        return
    if refused:
        yield f"{REFUSED}: {traced.problem or problems[0].problem}"
        return
    pairs_found = zip(wanted.values(), found, strict=True)
    for gradient, (leaf, theirs) in zip(traced.gradients, pairs_found, strict=True):
        ours = _value(gradient.node, feeds, sizes)
        shape = tuple(leaf.shape)
        yield from _differs(f"gradient of {gradient.input}", _or_zero(ours, shape), theirs)


def _value(node: Any, feeds: dict[str, Any], sizes: dict[str, Any]) -> Any:
    return None if node is None else evaluate([node], feeds, _known(sizes))[0]


def _or_zero(value: Any, shape: tuple[int, ...]) -> Any:
    return np.zeros(shape) if value is None else value


def _differs(what: str, ours: Any, theirs: Any) -> Iterator[str]:
    if theirs is None:
        theirs = torch.zeros(ours.shape)
    right = _array(theirs)
    if ours.shape != right.shape:
        yield f"{what}: shape {ours.shape}, torch has {right.shape}"
    elif not np.allclose(ours, right, TOLERANCE, TOLERANCE, equal_nan=True):
        gap = np.max(np.abs(np.asarray(ours, float) - np.asarray(right, float)))
        yield f"{what}: differs by {gap}"


def _array(tensor: Any) -> Any:
    return tensor.detach().numpy().copy()


def _name(node: Any) -> str:
    name: str = node.attributes["name"]
    return name


def _known(sizes: dict[str, Any]) -> dict[str, int]:
    axes = {f"{BATCH}_{axis}": size for axis, size in enumerate(sizes.get(BATCH, ()))}
    return {**axes, **{name: size for name, size in sizes.items() if name != BATCH}}


def _holds(traced: FunctionCase, sizes: dict[str, Any]) -> bool:
    known = _known(sizes)
    return all(
        _RELATIONS[one.relation](one.left.at(known), one.right.at(known))
        for one in traced.conditions
    )
