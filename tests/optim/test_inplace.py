"""Kernels that write where they read: which are allowed, what they refuse, what runs instead."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.codegen.emit.kernel import KernelDoc, emit_kernel
from symgrad.errors import BuildError, CodegenError
from symgrad.frontend.trace import trace
from symgrad.ir.graph import Graph
from symgrad.optim import kernels, updates
from symgrad.optim.inplace import check_in_place, compile_in_place, in_place_texts
from symgrad.optim.kernels import Update

DECAYS = ("none", "coupled", "decoupled")
FORMULAS: list[tuple[Any, dict[str, Any], int]] = [
    *(
        (updates.SGDUpdate, {"maximize": up, "weight_decay": decay}, 2)
        for up, decay in itertools.product((False, True), repeat=2)
    ),
    *(
        (updates.MomentumUpdate, {"maximize": up, "weight_decay": decay, "nesterov": ahead}, 5)
        for up, decay, ahead in itertools.product((False, True), repeat=3)
    ),
    *(
        (formula, {"maximize": up, "weight_decay": decay}, 7)
        for formula in (updates.AdamUpdate, updates.AMSGradUpdate)
        for up, decay in itertools.product((False, True), DECAYS)
    ),
]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(("formula", "static", "scalars"), FORMULAS)
def test_every_update_may_work_in_place(
    formula: Any, static: dict[str, Any], scalars: int, dtype: str
) -> None:
    specs, written = kernels.arguments(formula, static, dtype, scalars)
    _, texts = in_place_texts(formula, specs, written, static)
    for text in texts.values():
        assert "restrict" not in text
    assert sum(text.count("In place:") for text in texts.values()) == 1


def arrays(dtype: Any, count: int, shape: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(count)
    return [np.asarray(np.abs(rng.standard_normal(shape)), dtype) for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (40, 1000), (0, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("formula", "static", "scalars"), FORMULAS[::5])
def test_kernels_compute_what_the_formula_says(
    formula: Any, static: dict[str, Any], scalars: int, dtype: Any, shape: tuple[int, ...]
) -> None:
    """In place, against the same formula operation by operation."""
    update = Update(formula, **static)
    _, names = kernels.arguments(formula, static, "f32", scalars)
    numbers = np.linspace(0.1, 0.9, scalars).astype(dtype)
    grad, *written = arrays(dtype, len(names) + 1, shape)
    expected = [one.copy() for one in written]
    update._on_numpy(numbers, grad, expected)
    update(numbers, grad, *written)
    for one, other in zip(written, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5 if dtype == np.float32 else 1e-13)


STATIC = {"maximize": False, "weight_decay": True, "nesterov": True}
NUMBERS = np.linspace(0.1, 0.9, 5).astype(np.float32)


def both_ways(grad: Any, param: Any, buffer: Any) -> None:
    """The update of these very arrays is that of copies of them."""
    update = Update(updates.MomentumUpdate, **STATIC)
    expected = [param.copy(), buffer.copy()]
    update._on_numpy(NUMBERS, grad.copy(), expected)
    update(NUMBERS, grad, param, buffer)
    np.testing.assert_allclose(param, expected[0], rtol=1e-6)
    np.testing.assert_allclose(buffer, expected[1], rtol=1e-6)


@pytest.mark.slow
def test_memory_of_any_kind() -> None:
    """Strided parameters and gradients, and a gradient that is the parameter."""
    grad, param, buffer = arrays(np.float32, 3, (6, 8))
    both_ways(grad.T, param.T, np.ascontiguousarray(buffer.T))
    both_ways(grad[:, ::2], param[:, ::2].copy(), buffer[:, ::2])
    both_ways(grad[:, ::2], param[:, ::2], buffer[:, ::2].copy())
    both_ways(np.broadcast_to(grad[0], (6, 8)), param, buffer)
    both_ways(param, param, buffer)


@pytest.mark.slow
def test_the_memory_stays() -> None:
    """A parameter is written where it lies: whoever shares its memory sees it."""
    array = np.ones(4, np.float32)
    x = sg.from_numpy(array).requires_grad_()
    x.grad = sg.ones(4)
    sg.optim.SGD([x], lr=0.5).step()
    assert array.tolist() == [0.5] * 4
    assert x._version == 1


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise BuildError("there is no compiler")

    monkeypatch.setattr(kernels, "compile_in_place", refuse)
    kernels._kernel.cache_clear()
    x = sg.ones(3, requires_grad=True)
    optimizer = sg.optim.Adam([x], lr=0.1)
    x.grad = sg.ones(3)
    with pytest.warns(sg.NumpyBackendWarning, match="optimizers run on NumPy"):
        optimizer.step()
    optimizer.step()  # said once
    np.testing.assert_allclose(x.detach().numpy(), 0.8, rtol=1e-5)
    kernels._kernel.cache_clear()


class ReadsLate(sg.Function):
    """Its second output needs what the first replaces, summed: two loops."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        return a + b, b * (a * b).sum()


def test_what_reads_late_is_refused() -> None:
    with pytest.raises(CodegenError, match=r"one loop|once"):
        compile_in_place(ReadsLate, ["f32[n]", "f32[n]"], ["a", "b"], {})


class WritesEarly(sg.Function):
    """The first output, which replaces a, is there before a is read."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        return sg.exp(b) * 2, a * sg.exp(b)


def test_what_is_written_before_it_is_read_is_refused() -> None:
    graph = Graph()
    case = trace(WritesEarly, "f32[n]", "f32[n]").cases[0]
    kernel = emit_swap(graph, case)
    with pytest.raises(CodegenError, match="after it has been written"):
        check_in_place(kernel, ["a", "b"])


def emit_swap(graph: Graph, case: Any) -> Any:
    from symgrad.ir.rewrite import rewrite

    new = rewrite(graph, case.outputs, inputs=case.inputs)
    for name, node in zip(("y", "z"), case.outputs, strict=True):
        graph.output(name, new[node])
    return emit_kernel(graph, "swap", KernelDoc("swap"))
