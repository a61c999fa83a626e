"""The true gradient as it is printed: pasted into backward it is PROVED, and it runs.

In each float dtype: what is printed makes tensors in the dtype of the tensors it is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import symgrad as sg
import symgrad.nn.functional as F

X: Mapping[str, str] = {"x": "n m"}
PAIR = {"x": "n m", "w": "m"}


def _interleaved(x: Any, w: Any) -> Any:
    y = sg.empty_like(x)
    y[..., 0::2] = x[..., 0::2] * w
    y[..., 1::2] = x[..., 1::2] - w
    return y


FORWARDS: dict[str, tuple[Callable[..., Any], Mapping[str, str]]] = {
    "root of a size": (lambda x: x * x.shape[1] ** -0.5, X),
    "root of a product of sizes": (lambda x: x * (x.shape[0] * x.shape[1]) ** 0.5, X),
    "roots, added": (lambda x: sg.sin(x) / (x.shape[0] ** 0.5 + x.shape[1] ** 0.5), X),
    "power of sizes": (lambda x: x * x.shape[0] ** x.shape[1] + (x.shape[1] - 1.5) ** 2 * x, X),
    "logarithm of a size": (lambda x: x * math.log(2.0) * sg.log(sg.full((), x.shape[1])), X),
    "exponential of a size": (lambda x: x * sg.exp(sg.full((), -x.shape[1] / 2)), X),
    "size alone": (lambda x: (x * x).sum() / x.shape[0] + x.sum() * x.shape[1], X),
    "standard deviation": (lambda x: x.std(1), X),
    "mean": (lambda x: sg.exp(x).mean(0), X),
    "mask as number": (lambda x: ((x > 0).float() * x * x).sum(0), X),
    "where of two numbers": (lambda x: x * sg.where(x > 0, 1.0, 0.5), X),
    "log-sum-exp": (lambda x: x.logsumexp(1), X),
    "softmax by the size": (lambda x: sg.softmax(x * x.shape[-1] ** -0.5, -1), X),
    "part": (lambda x: x[:, 1:] * x[:, :-1], {"x": "n 4"}),
    "padded": (lambda x: F.pad(x * x, (1, 2)), X),
    "rows by index": (lambda x: x[sg.tensor([0, 2, 0])] ** 2, {"x": "3 m"}),
    "elements by index": (lambda x: x[:, sg.tensor([0, 2, 0])] ** 2, {"x": "n 3"}),
    "weights by label": (
        lambda x, t, w: F.nll_loss(x, t, weight=w, reduction="sum"),
        {"x": "n c", "t": "i64[n]", "w": "c"},
    ),
    "weighted cross-entropy": (
        lambda x, t, w: F.cross_entropy(x, t, weight=w, reduction="sum"),
        {"x": "n c", "t": "i64[n]", "w": "c"},
    ),
    "embedding": (lambda w, t: F.embedding(t, w) ** 2, {"w": "c m", "t": "i64[n]"}),
    "gathered": (lambda x, t: x.gather(1, t.unsqueeze(1)) ** 2, {"x": "n c", "t": "i64[n]"}),
    "normalized": (lambda x, w: F.layer_norm(x, (x.shape[1],), w), PAIR),
    "cumulative sum": (lambda x: sg.cumsum(x * x, 1), X),
    "largest": (lambda x: x.amax(1), X),
    "outer": (lambda x, w: sg.einsum("ij,k->ikj", x, w) * w.shape[0] ** 0.5, PAIR),
}
SIZES = {"n": 2, "m": 3, "c": 3}


def _op(forward: Callable[..., Any], names: list[str], texts: Mapping[str, str]) -> Any:
    """``forward`` with a backward of these texts; without texts, one that is wrong."""

    def whole(ctx: Any, *tensors: Any) -> Any:
        ctx.save_for_backward(*tensors)
        return forward(*tensors)

    written = {name: _function(text, [*names, "grad_output"]) for name, text in texts.items()}

    def backward(ctx: Any, grad_output: Any) -> Any:
        scope = dict(zip(names, ctx.saved_tensors, strict=True))
        return tuple(
            written[name](*ctx.saved_tensors, grad_output)
            if name in written else None if scope[name].dtype == sg.int64
            else sg.zeros_like(scope[name]) + 7.0
            for name in names
        )  # fmt: skip

    source = f"def forward(ctx, {', '.join(names)}):\n    return whole(ctx, {', '.join(names)})"
    scope: dict[str, Any] = {"whole": whole}
    exec(source, scope)
    methods = {"forward": staticmethod(scope["forward"]), "backward": staticmethod(backward)}
    return type("Op", (sg.Function,), methods)


def _function(text: str, names: list[str]) -> Any:
    *lines, last = text.splitlines()
    body = "\n".join(f"    {line}" for line in [*lines, f"return {last}"])
    scope: dict[str, Any] = {"sg": sg}
    exec(f"def written({', '.join(names)}):\n{body}", scope)
    return scope["written"]


def _array(spec: str, seed: int, kind: Any) -> Any:
    dims = spec.removeprefix("i64[").removesuffix("]").split()
    shape = [SIZES.get(one) or int(one) for one in dims]
    random = np.random.default_rng(seed)
    whole = spec.startswith("i64")
    return random.integers(0, 3, shape) if whole else random.normal(size=shape).astype(kind)


@pytest.mark.parametrize("name", FORWARDS)
def test_the_printed_gradient_is_proved_and_runs_in_every_dtype(name: str) -> None:
    forward, specs = FORWARDS[name]
    names = list(specs)
    report = sg.verify(_op(forward, names, {}), *specs.values())
    floats = [one for one in names if not specs[one].startswith("i64")]
    texts = {one: report.inputs[one].derived or "" for one in floats}
    assert all(texts.values())
    right = _op(forward, names, texts)
    again = sg.verify(right, *specs.values())
    assert again.verdict == "PROVED", (texts, str(again))
    for kind in (np.float32, np.float64):
        arrays = [_array(spec, seed, kind) for seed, spec in enumerate(specs.values())]
        found = []
        for call in (right.apply, forward):
            leaves = [sg.tensor(one) for one in arrays]
            wanted = [one.requires_grad_() for one in leaves if one.dtype != sg.int64]
            y = call(*leaves)
            found.append(sg.autograd.grad((y * y).sum(), wanted))
        for mine, other in zip(*found, strict=True):
            assert mine.dtype == other.dtype
            np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("forward", "written"),
    [
        (
            lambda x: (x - x) * sg.sin(x) + x * sg.exp(x),
            "g * x.exp() + g * x * x.exp()",
        ),
        (lambda x: x * sg.exp(x) + x**0, "g * x.exp() + g * x * x.exp()"),
    ],
)
def test_a_repair_has_no_terms_that_are_zero_or_cancel(forward: Any, written: str) -> None:
    def whole(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return forward(x)

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x * 17

    methods = {"forward": staticmethod(whole), "backward": staticmethod(backward)}
    report = sg.verify(type("Op", (sg.Function,), methods), "n m")
    assert report.inputs["x"].suggestion == written


def test_the_printed_gradient_of_writes_into_every_other_element_runs() -> None:
    report = sg.verify(_op(_interleaved, ["x", "w"], {}), "n 2*m", "n m")
    text = report.inputs["x"].derived or ""
    x, w, g = (np.random.default_rng(0).normal(size=(2, size)) for size in (6, 3, 6))
    given = (sg.tensor(one) for one in (x, w, g))
    wanted = g.copy()
    wanted[:, ::2] *= w
    np.testing.assert_allclose(_function(text, ["x", "w", "grad_output"])(*given).numpy(), wanted)
