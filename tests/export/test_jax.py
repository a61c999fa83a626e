"""Compiled ops as functions of JAX arrays."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad import generated
from symgrad.errors import KernelArgumentError, KernelTypeError
from symgrad.frontend.trace import trace
from symgrad.kernels import plan
from symgrad.numpy_op import NumpyOp
from tests.export.programs import Cased, Dot, Greatest, Rows, Weighted, compiled

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.peers

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

from symgrad.export import jax as export  # noqa: E402
from symgrad.export.gradients import gradients_of  # noqa: E402


def matrix(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Any:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def numpy_weighted() -> Any:
    """The same, where there is no compiler."""
    return NumpyOp(plan(trace(Weighted, "n m")))


def by_jax(x: Any, alpha: float = 1.5, k: int = 2) -> Any:
    return jax.nn.softmax(alpha * x), (x * k).sum(0)


def close(found: Any, expected: Any, tolerance: float = 2e-5) -> None:
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: compiled(Weighted), numpy_weighted])
def test_jit_grad_and_vmap_compose(make: Any) -> None:
    op = export.function(make())

    def loss(x: Any, call: Any = op) -> Any:
        y, total = call(x)
        return (jnp.sin(y) * x).sum() + (total**2).sum()

    def theirs(x: Any) -> Any:
        return loss(x, by_jax)

    x, batch = matrix(3, 4), matrix(5, 3, 4, seed=1)
    close(op(x), by_jax(x))
    expected = jax.grad(theirs)(x)
    for how in (jax.grad(loss), jax.jit(jax.grad(loss)), jax.grad(jax.jit(loss))):
        close(how(x), expected)
    per_example = jax.vmap(jax.grad(theirs))(batch)
    close(jax.jit(jax.vmap(jax.grad(loss)))(batch), per_example)
    close(jax.grad(lambda x: jax.vmap(loss)(x).sum())(batch), per_example)
    twice = jnp.stack([batch, batch + 1], 2)
    close(jax.vmap(jax.vmap(loss, 1))(twice), jax.vmap(jax.vmap(theirs, 1))(twice))


def test_numbers_are_static() -> None:
    op, x = export.function(compiled(Weighted)), matrix(3, 4)
    for found in (op(x, 0.5, 3), op(x, k=3, alpha=0.5), jax.jit(lambda x: op(x, 0.5, k=3))(x)):
        close(found, by_jax(x, 0.5, 3))
    close(op(x, 0.0)[0], jax.nn.softmax(0 * x))
    close(op(x, -0.0)[0], jax.nn.softmax(0 * x))
    with pytest.raises(KernelTypeError, match="alpha is traced"):
        jax.jit(lambda alpha: op(x, alpha))(0.5)
    with pytest.raises(KernelTypeError, match="beta"):
        op(x, beta=2.0)
    with pytest.raises(KernelTypeError, match="integer is expected"):
        op(x, k=2.5)


@pytest.mark.parametrize("function", [Weighted, Dot, Cased])
def test_gradients_are_those_of_difference_quotients(function: Any) -> None:
    with jax.enable_x64(True):
        op = export.function(compiled(function), compiled(function, "f64"))
        shapes = [(3, 4), (4, 2)][: len(op.table.inputs)]
        inputs = [matrix(*shape, seed=s, dtype=np.float64) for s, shape in enumerate(shapes)]
        check_grads(op, inputs, order=1, modes=["rev"], atol=1e-6, rtol=1e-6)
        if function is Cased:
            check_grads(op, (matrix(1, 3, dtype=np.float64),), order=1, modes=["rev"], atol=1e-6)


def test_integers_go_in_and_come_out() -> None:
    with jax.enable_x64(True):
        rows, greatest = export.function(compiled(Rows)), export.function(compiled(Greatest))
        x, index = matrix(3, 4), jnp.array([2, 0, 2])
        close(rows(x, index), x[index])
        found = jax.grad(lambda x: rows(x, index).sum())(x)
        close(found, jax.grad(lambda x: x[index].sum())(x))
        y, place = greatest(x)
        close((y, place), (x * x, x.argmax(-1)))
        close(jax.grad(lambda x: greatest(x)[0].sum())(x), 2 * x)
        with pytest.raises(jax.errors.JaxRuntimeError, match="index is out of range"):
            rows(x, jnp.array([7])).block_until_ready()


def test_only_the_gradients_that_are_needed_are_computed() -> None:
    op = export.function(compiled(Dot))
    x, w = matrix(3, 4), matrix(4, 2)
    for argnums, kernel in ((0, "_10_"), (1, "_01_"), ((0, 1), "backward_")):
        text = str(jax.make_jaxpr(jax.grad(lambda x, w: op(x, w).sum(), argnums))(x, w))
        assert f"target_name=dot_backward{kernel.removeprefix('backward')}" in text


def test_what_nothing_depends_on_has_no_cost() -> None:
    op, x = export.function(compiled(Weighted)), matrix(3, 4)
    found = jax.grad(lambda x: op(x, 0.5, 3)[1].sum())(x)
    close(found, jnp.full((3, 4), 3.0))


def test_what_no_kernel_takes_is_said() -> None:
    op, x = export.function(compiled(Dot)), matrix(3, 4)
    with pytest.raises(KernelArgumentError, match="disagree on k"):
        op(x, x)
    with pytest.raises(KernelTypeError, match="float16, float32 is expected"):
        op(x, matrix(4, 2, dtype=np.float16))
    with pytest.raises(KernelTypeError, match="input w is missing"):
        op(x)
    rows = export.function(compiled(Rows))
    with pytest.raises(KernelTypeError, match="jax_enable_x64"):
        rows(x, jnp.array([1]))


def test_a_second_derivative_is_an_error_of_jax() -> None:
    op = export.function(generated.nn_gelu)
    with pytest.raises(Exception, match="cannot be differentiated"):
        jax.grad(jax.grad(op))(jnp.float32(1.0))


def test_nothing_and_one_number() -> None:
    op = export.function(generated.nn_gelu)
    for shape in ((), (0,), (2, 0, 3), (1,) * 6):
        x = jnp.ones(shape)
        assert op(x).shape == shape
        close(jax.grad(lambda x: op(x).sum())(x), jnp.full(shape, 1.0833155))


def test_xla_gives_kernels_its_own_memory() -> None:
    """No copy is in the compiled program: a parameter, the call, its result."""
    op, x = export.function(generated.nn_gelu), matrix(64, 64)
    text = jax.jit(op).lower(x).compile().as_text()
    (call,) = [line for line in text.splitlines() if "custom-call(" in line]
    assert "nn_gelu_forward" in call
    assert " copy(" not in text
    assert " transpose(" not in text


def test_an_array_of_numpy_is_taken() -> None:
    op, x = export.function(generated.nn_gelu), np.asarray(matrix(3, 4))
    close(op(x), jax.nn.gelu(x, approximate=False))
    close(op(x.T), jax.nn.gelu(x.T, approximate=False))


def test_copies_and_pickles() -> None:
    op, x = export.function(generated.nn_gelu), matrix(3)
    assert copy.deepcopy(op) is op
    close(pickle.loads(pickle.dumps(op))(x), op(x))
    with pytest.raises(KernelTypeError, match="cannot be pickled"):
        pickle.dumps(export.function(compiled(Dot)))


def test_threads() -> None:
    op, results = export.function(generated.nn_layer_norm), {}

    def work(seed: int) -> None:
        inputs = [matrix(*s, seed=seed) for s in ((9, 5), (5,), (5,))]
        for _ in range(10):
            results[seed] = jax.grad(lambda *a: (op(*a) ** 2).sum())(*inputs)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for seed in range(4):
        x, w, b = (matrix(*s, seed=seed) for s in ((9, 5), (5,), (5,)))

        def theirs(x: Any, w: Any = w, b: Any = b) -> Any:
            y = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b
            return (y**2).sum()

        close(results[seed], jax.grad(theirs)(x), 1e-3)


def test_the_gradients_of_an_unmodified_function_are_an_op() -> None:
    """Their derivative is the second one of the function."""

    @jax.custom_vjp
    def softplus(x: Any) -> Any:
        return jnp.log1p(jnp.exp(x))

    softplus.defvjp(
        lambda x: (softplus(x), x), lambda x, g: (g * jax.nn.sigmoid(x),)
    )  # fmt: skip
    op = export.function(gradients_of(sg.compile(softplus, "f32[n m]")))
    x = matrix(2, 3)
    slope = jax.nn.sigmoid(x)
    close(jax.grad(lambda x: op(x, jnp.ones_like(x)).sum())(x), slope * (1 - slope))
