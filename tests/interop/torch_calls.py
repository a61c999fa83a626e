"""Functions of torch made of one text, and whether a trace is what torch computes.

In: the lines of ``torch_calls.txt``.  Out: classes, arrays, the values and gradients of both.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import torch

from symgrad.frontend.trace import trace
from symgrad.ir.dtype import float64
from symgrad.passes.evaluate import evaluate
from tests.frontend.support import case_for

SPECS = {
    "x": "n m", "y": "n m", "p": "n m", "v": "m", "u": "n", "w": "m k", "sq": "m m",
    "img": "b 3 4 6", "seq": "b 3 7", "grid": "b 3 5 2", "th": "b 2 3", "ker": "3 3 2 2",
    "wide": "4 3", "t4": "4 4", "r6": "6", "r9": "9", "i": "i64[n]", "j": "i64[n m]",
    "mask": "bool[n m]",
}  # fmt: skip
SIZES = {"n": 3, "m": 4, "k": 2, "b": 2}


def _arrays() -> dict[str, Any]:
    draw = np.random.default_rng(3)

    def made(name: str, spec: str) -> Any:
        kind, _, inner = spec.rstrip("]").rpartition("[")
        shape = [SIZES.get(size) or int(size) for size in inner.split()]
        if kind == "i64":
            return draw.integers(0, SIZES["n"], shape)
        if kind == "bool":
            return draw.random(shape) < 0.5
        if name in ("p", "grid"):
            return draw.uniform(0.1 if name == "p" else -1.2, 0.9, shape)
        if name == "t4":
            square = draw.standard_normal(shape)
            return square @ square.T + 4 * np.eye(4)
        return draw.standard_normal(shape)

    return {name: made(name, spec) for name, spec in SPECS.items()}


ARRAYS = _arrays()


def texts() -> list[str]:
    """The lines that are calls."""
    lines = (Path(__file__).parent / "torch_calls.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def function_of(text: str) -> tuple[Any, Any, list[str]]:
    """What the text computes, a class whose backward is autograd's, and what it is called with."""
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    stored = {
        node.id for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }  # fmt: skip
    names = [name for name in SPECS if name in used]
    names = [name for name in names if name not in stored or _reads_first(text, name)]
    *before, last = [part.strip() for part in text.split(";")]
    scope: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
    body = "\n    ".join([*before, f"return {last}"])
    exec(f"def compute({', '.join(names)}):\n    {body}", scope)
    compute = scope["compute"]

    class Call(torch.autograd.Function):
        differentiable: list[bool]

        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            ctx.save_for_backward(*args)
            return compute(*args)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            args, floats = ctx.saved_tensors, [one.is_floating_point() for one in ctx.saved_tensors]
            with torch.enable_grad():
                args = [
                    one.detach().requires_grad_() if real else one
                    for one, real in zip(args, floats, strict=True)
                ]
                pairs = [
                    (one, g)
                    for one, g, known in zip(
                        listed(compute(*args)), gradients, Call.differentiable, strict=True
                    )
                    if known
                ]
                wanted = [one for one, real in zip(args, floats, strict=True) if real]
                outputs, given = zip(*pairs, strict=True)
                found = iter(torch.autograd.grad(outputs, wanted, given, allow_unused=True))
            return tuple(next(found) if real else None for real in floats)

    return compute, Call, names


def _reads_first(text: str, name: str) -> bool:
    """Is the name of an input, and not of what the text itself computes?"""
    first = next(
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name) and node.id == name
    )
    return isinstance(first.ctx, ast.Load)


def listed(value: Any) -> list[Any]:
    """One output, or all of them."""
    return list(value) if isinstance(value, (tuple, list)) else [value]


def check(text: str) -> None:
    """Values and gradients of the trace are torch's; gradients where torch has them."""
    compute, call, names = function_of(text)
    arrays = {name: ARRAYS[name] for name in names}
    inputs = [
        torch.tensor(array, requires_grad=array.dtype.kind == "f") for array in arrays.values()
    ]
    wanted = listed(compute(*inputs))
    call.differentiable = [one.is_floating_point() and one.requires_grad for one in wanted]
    gradients = [torch.randn(one.shape, dtype=torch.float64) for one in wanted]
    pairs = [
        (one, g)
        for one, g, known in zip(wanted, gradients, call.differentiable, strict=True)
        if known
    ]
    by_torch = None
    if pairs:
        try:
            outputs, given = zip(*pairs, strict=True)
            floats = [one for one in inputs if one.requires_grad]
            by_torch = torch.autograd.grad(outputs, floats, given, allow_unused=True)
        except (RuntimeError, NotImplementedError):  # torch has no derivative of it
            pass
    specs = [f"{name}: {SPECS[name]}" for name in names]
    graphs = trace(_named(call, names), *(one.partition(": ")[2] for one in specs), dtype=float64)
    case = case_for(graphs, SIZES)
    values = dict(arrays)
    for mine, theirs in zip(evaluate(case.outputs, values, SIZES), wanted, strict=True):
        _same(mine, theirs.detach().numpy())
    if by_torch is None:
        return
    assert case.problem is None, case.problem
    for cotangent, g in zip(case.cotangents, gradients, strict=True):
        if cotangent is not None:
            values[cotangent.attributes["name"]] = g.numpy()
    for own, theirs in zip(case.gradients, by_torch, strict=True):
        shape = values[own.input].shape
        expected = np.zeros(shape) if theirs is None else theirs.numpy()
        assert own.problem is None, own.problem
        found = np.zeros(shape) if own.node is None else evaluate([own.node], values, SIZES)[0]
        _same(found, expected)


def _same(mine: Any, theirs: Any) -> None:
    assert mine.shape == theirs.shape
    assert mine.dtype.kind == theirs.dtype.kind
    np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-7)


def _named(call: Any, names: list[str]) -> Any:
    """The class with the names of the inputs as parameters of forward."""
    scope: dict[str, Any] = {"call": call}
    given = ", ".join(names)
    exec(f"def forward(ctx, {given}):\n    return call.forward(ctx, {given})", scope)
    return type("Call", (call,), {"forward": staticmethod(scope["forward"])})
