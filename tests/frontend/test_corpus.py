"""The corpus, traced: outputs and gradients are what torch computes from the same text.

Right and wrong backwards alike: what is compared is what the program says, not whether it is true.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from symgrad.errors import UnsupportedOpError
from symgrad.frontend.trace import trace
from symgrad.ir.dtype import float64
from symgrad.ir.function import FunctionCase
from symgrad.passes.evaluate import evaluate
from tests.frontend.support import holds
from tests.suite import corpus_loader
from tests.suite.marks import Case

pytestmark = [pytest.mark.peers, pytest.mark.slow]
BATCH_RANK = 2
POINTS = 3


def points(case: Case) -> Iterator[tuple[dict[str, int], dict[str, Any]]]:
    """Sizes, ``*batch`` written out, and arguments."""
    from tests.suite import sampling

    draw = np.random.default_rng(0)
    found = 0
    for sizes in sampling.size_choices(sampling.size_names(case)):
        batch = sizes.get(sampling.BATCH, ())
        if (sampling.BATCH in sizes and len(batch) != BATCH_RANK) or found == POINTS:
            continue
        try:
            arguments = sampling.sample_arguments(case, sizes, draw, 1.0)
        except sampling.Unsatisfiable:
            continue
        found += 1
        named = {name: size for name, size in sizes.items() if name != sampling.BATCH}
        yield {**named, **{f"batch_{axis}": size for axis, size in enumerate(batch)}}, arguments


def with_torch(case: Case, arguments: dict[str, Any], draw: Any) -> tuple[Any, Any, Any, Any]:
    """Outputs, cotangents, gradients of the float arguments; or what torch raised in backward."""
    import torch

    from tests.suite.torch_apply import caller

    leaves = {
        name: value.clone().requires_grad_(value.is_floating_point())
        if isinstance(value, torch.Tensor) else value
        for name, value in arguments.items()
    }  # fmt: skip
    # Leaves may not be written in place: each is multiplied by 1 first.
    given = {
        name: value * 1 if getattr(value, "requires_grad", False) else value
        for name, value in leaves.items()
    }
    outputs = [out for out in caller(case)(given) if isinstance(out, torch.Tensor)]
    cotangents = [draw.standard_normal(out.shape) for out in outputs]
    pairs = [
        (out, torch.tensor(cotangent))
        for out, cotangent in zip(outputs, cotangents, strict=True) if out.requires_grad
    ]  # fmt: skip
    inputs = [value for value in leaves.values() if getattr(value, "requires_grad", False)]
    try:
        found = torch.autograd.grad(
            [out for out, _ in pairs], inputs, [given for _, given in pairs], allow_unused=True
        )
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return outputs, cotangents, None, error
    return outputs, cotangents, found, None


def check(
    case: Case, traced: FunctionCase, sizes: dict[str, int], arguments: dict[str, Any]
) -> None:
    draw = np.random.default_rng(1)
    outputs, cotangents, gradients, error = with_torch(case, arguments, draw)
    feeds = {name: value.numpy() for name, value in arguments.items() if hasattr(value, "numpy")}
    for found, wanted in zip(evaluate(traced.outputs, feeds, sizes), outputs, strict=True):
        np.testing.assert_allclose(found, wanted.detach().numpy(), rtol=1e-9, atol=1e-11)
    problems = [gradient.problem for gradient in traced.gradients if gradient.problem]
    if error is not None or traced.problem or problems:
        # A shape that is wrong in general may fit at sizes that happen to be equal.
        assert traced.problem or problems
        return
    for node, cotangent in zip(traced.cotangents, cotangents, strict=True):
        if node is not None:
            feeds[node.attributes["name"]] = cotangent
    for gradient, wanted in zip(traced.gradients, gradients or (), strict=True):
        if gradient.node is None:
            assert wanted is None or not wanted.any()
            continue
        (found,) = evaluate([gradient.node], feeds, sizes)
        target = np.zeros_like(found) if wanted is None else wanted.numpy()
        np.testing.assert_allclose(found, target, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("category", corpus_loader.CATEGORIES)
def test_corpus(category: str) -> None:
    over_torch = corpus_loader.cases(corpus_loader.module_over_torch(category))
    over_symgrad = corpus_loader.cases(corpus_loader.module_over_symgrad(category))
    checked = 0
    for case, ours in zip(over_torch, over_symgrad, strict=True):
        if any(parameter.startswith("*") for parameter in _variadic(ours)):
            continue
        try:
            graphs = trace(
                ours.function, *ours.specs, static=ours.static, dtype=float64,
                batch_rank=BATCH_RANK,
            )  # fmt: skip
        except UnsupportedOpError:
            continue
        for sizes, arguments in points(case):
            fitting = [traced for traced in graphs.cases if holds(traced, sizes)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if fitting:
                    check(case, fitting[0], sizes, arguments)
                    checked += 1
            assert len(fitting) <= 1
    assert checked


def _variadic(case: Case) -> list[str]:
    import inspect

    return [str(p) for p in inspect.signature(case.function.forward).parameters.values()]
