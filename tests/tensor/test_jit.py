"""``sg.jit``: the same values and derivatives as the eager function, traced once a pattern."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg
from symgrad.errors import BuildError
from symgrad.tensor.jit.jit import Jitted
from symgrad.tensor.jit.watching import Watched

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unoptimised")]  # programs are compiled


def tensor(*shape: int, seed: int = 0, grad: bool = True, dtype: Any = np.float64) -> Any:
    values = np.random.default_rng(seed + sum(shape)).standard_normal(shape)
    found = sg.from_numpy(values.astype(dtype))
    return found.requires_grad_() if grad else found


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def close(left: Any, right: Any, tolerance: float = 1e-10) -> None:
    assert (left is None) == (right is None)
    if left is not None:
        assert left.shape == right.shape
        assert left.dtype == right.dtype
        left, right = left.detach().numpy(), right.detach().numpy()
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)


def total(values: Sequence[Any]) -> Any:
    return sum(((leaf * leaf).sum() for leaf in values if leaf is not None), sg.zeros(()))


def same_derivatives(
    function: Callable[..., Any], jitted: Any, args: Sequence[Any], wanted: Sequence[Any]
) -> None:
    """Values, gradients and gradients of gradients."""
    found = []
    for call in (function, jitted):
        values = [leaf for leaf in leaves(call(*args)) if isinstance(leaf, sg.Tensor)]
        floats = [leaf for leaf in values if leaf.is_floating_point() and leaf.requires_grad]
        first: Any = [None] * len(wanted)
        second: Any = [None] * len(wanted)
        if floats:
            first = sg.autograd.grad(
                total(floats), wanted, create_graph=True, allow_unused=True
            )  # fmt: skip
            if (last := total(first)).requires_grad:
                second = sg.autograd.grad(last, wanted, allow_unused=True)
        found.append((values, first, second))
    for eager, compiled in zip(*found, strict=True):
        for left, right in zip(eager, compiled, strict=True):
            close(left, right, 1e-7)


def traced_once(jitted: Jitted) -> int:
    """How many traces there are."""
    return sum(
        len(family.entries)
        for variant in jitted._variants.values()
        for family, _ in variant._families.values()
    )


# -- programs

UNARY: list[Callable[[Any], Any]] = [
    sg.tanh, sg.sigmoid, sg.exp, lambda x: x * 0.5 + 1, lambda x: x.transpose(0, 1),
    lambda x: x.reshape(-1, x.shape[0]), lambda x: x.sum(0, keepdim=True) * x,
    lambda x: x - x.mean(-1, keepdim=True), lambda x: sg.softmax(x, -1), lambda x: x @ x.t(),
    lambda x: sg.cat([x, x * x], 0), lambda x: x[:1] + x, lambda x: sg.where(x > 0, x, x * x),
    lambda x: x.t() @ x, lambda x: x.detach() * x, lambda x: x.amax(0) + x,
]  # fmt: skip
BINARY: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x.sum() * y, lambda x, y: (x.t() @ x).mean() + y,
    lambda x, y: x / (1 + y.sum() ** 2),
    lambda x, y: sg.outer(x.sum(1), y.sum(1)), lambda x, y: (x, y)[1] * x.mean(),
]  # fmt: skip
Program = tuple[list[int], list[int]]
PROGRAMS = st.tuples(
    st.lists(st.integers(0, len(UNARY) - 1), min_size=1, max_size=4),
    st.lists(st.integers(0, len(BINARY) - 1), min_size=1, max_size=2),
)


def run(program: Program, x: Any, y: Any) -> Any:
    unary, binary = program
    for step in unary:
        x = UNARY[step](x)
    for number, step in enumerate(binary):
        x = BINARY[step](x, y)
        x = UNARY[unary[number % len(unary)]](x)
    return sg.tanh(x), {"sum": x.sum()}


@settings(max_examples=6)
@given(program=PROGRAMS, rows=st.integers(2, 4), columns=st.integers(2, 5))
def test_programs(program: Program, rows: int, columns: int) -> None:
    def function(x: Any, y: Any) -> Any:
        return run(program, x * 0.3, y * 0.3)

    jitted = sg.jit(function)
    args = tensor(rows, columns, seed=1), tensor(3, 2, seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same_derivatives(function, jitted, args, args)


def block(x: Any, first: Any, second: Any) -> Any:
    hidden = (x.reshape(-1, x.shape[-1]) @ first).reshape(*x.shape[:-1], first.shape[1])
    gated = hidden * sg.sigmoid(hidden)
    wide = gated.reshape(-1, gated.shape[-1]) @ second
    return wide.reshape(*x.shape[:-1], second.shape[1]) + x


def test_products_of_stacked_rows() -> None:
    """A product whose operand is copied from an array waits for that array."""
    args = tensor(3, 40, 16), tensor(16, 32), tensor(32, 16)
    jitted = sg.jit(block)
    with sg.no_grad():
        close(jitted(*args), block(*args))
    same_derivatives(block, jitted, args, args)


# -- what is traced, and when


def test_other_sizes_of_a_pattern_are_not_traced() -> None:
    calls = []

    def function(x: Any, y: Any) -> Any:
        calls.append(x.shape)
        return sg.tanh(x @ y).sum(0)

    jitted = sg.jit(function)
    for n, k, m in ((3, 4, 5), (7, 2, 6), (9, 11, 10)):
        x, y = tensor(n, k), tensor(k, m)
        close(jitted(x, y), sg.tanh(x @ y).sum(0))
    assert len(calls) == 1
    x, y = tensor(4, 4), tensor(4, 5)  # two sizes that were not equal before
    close(jitted(x, y), sg.tanh(x @ y).sum(0))
    x, y = tensor(1, 4), tensor(4, 5)  # a size of 1 is a number
    close(jitted(x, y), sg.tanh(x @ y).sum(0))
    assert len(calls) == 3
    jitted(tensor(3, 4, dtype=np.float32), tensor(4, 5, dtype=np.float32))
    assert len(calls) == 4


def test_a_question_about_sizes_is_a_condition() -> None:
    def function(x: Any) -> Any:
        return x * 2 if x.shape[0] > 5 else x * 3

    jitted = sg.jit(function)
    for n in (3, 4, 8, 2, 9):
        x = tensor(n)
        close(jitted(x), function(x))
    assert traced_once(jitted) == 2


def test_plain_arguments_count_by_value() -> None:
    def function(x: Any, *, power: int, scale: float = 1.0) -> Any:
        return x**power * scale

    jitted = sg.jit(function)
    x = tensor(4)
    for power, scale in ((2, 1.0), (3, 1.0), (2, 0.5), (2, 1.0)):
        close(jitted(x, power=power, scale=scale), function(x, power=power, scale=scale))
    assert traced_once(jitted) == 2  # the float is passed
    with pytest.raises(TypeError, match="hash"):
        jitted(x, power={1, 2})


SCALE: Any = 2.0
SETTINGS: dict[str, Any] = {"powers": [1, 2], "flip": False}


def _scaled(x: Any, shift: float = 0.0) -> Any:
    return x * SCALE + shift


def _shifted(x: Any) -> Any:
    return x + SCALE


def _by_settings(x: Any) -> Any:
    return -x if SETTINGS["flip"] else x ** SETTINGS["powers"][1]


class _Scaling(sg.nn.Module):
    def forward(self, x: Any) -> Any:
        return self.inner(x)

    def inner(self, x: Any) -> Any:
        return _scaled(x)


def test_plain_values_that_are_read_elsewhere_count_by_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, factor = tensor(4), 2.0
    near: Any = sg.jit(lambda x: x * factor, strict=True)
    far: Any = sg.jit(_Scaling(), strict=True)
    for value in (2.0, 7, -0.0, 2.0):
        factor = value
        monkeypatch.setattr(f"{__name__}.SCALE", value)
        close(near(x), x * value)
        close(far(x), x * value)
    assert traced_once(near) == traced_once(far) == 3


def test_what_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    factor: Any = 2.0
    chosen: Any = _scaled

    def near(x: Any) -> Any:
        return x * factor

    def through(x: Any) -> Any:
        return chosen(x)

    readers: dict[str, Sequence[Any]] = {
        "factor": [near, sg.grad(near), sg.vmap(near), sg.jit(near), lambda x: near(x)],
        "chosen": [through, functools.partial(through)],
        "SCALE": [through, _Scaling(), _Scaling().inner, sg.nn.Sequential(_Scaling())],
        "SETTINGS": [_by_settings],
        "default": [_scaled, through, _Scaling()],
    }
    watched = {name: [Watched([one]) for one in found] for name, found in readers.items()}

    def keys() -> dict[str, list[Any]]:
        for one in (one for found in watched.values() for one in found):
            one.renew()
        return {name: [one.key() for one in found] for name, found in watched.items()}

    def changed(name: str) -> None:
        now = keys()
        assert all(old != new for old, new in zip(before[name], now[name], strict=True)), name
        before.update(now)

    before = keys()
    assert keys() == before
    for value in (2, True, "2", None, (2.0,), -0.0, float("nan"), sg.float32):
        factor = value
        changed("factor")
    monkeypatch.setattr(f"{__name__}.SCALE", 3.0)
    changed("SCALE")
    for name, item in (("powers", [1, 3]), ("flip", 0), ("more", {"deep": (1,)})):
        monkeypatch.setitem(SETTINGS, name, item)
        changed("SETTINGS")
    monkeypatch.setattr(_scaled, "__defaults__", (1.0,))
    changed("default")
    chosen = _shifted
    changed("chosen")
    monkeypatch.setattr(f"{__name__}.SCALE", 4.0)  # which the other function reads, too
    changed("SCALE")


def test_what_a_function_writes_itself_is_not_watched() -> None:
    calls: list[int] = []
    count = 0

    def function(x: Any) -> Any:
        nonlocal count
        count += 1
        calls.append(count)
        return x * 2.0

    jitted = sg.jit(function)
    for _ in range(3):
        close(jitted(tensor(4)), tensor(4) * 2.0)
    assert calls == [1]


def test_slices_count_by_value() -> None:
    jitted = sg.jit(lambda x, key: x[key], strict=True)
    x = tensor(5, 4)
    for key in (slice(1, 3), slice(None, None, 2), (slice(0, 2), slice(1, 4)), slice(1, 3)):
        close(jitted(x, key), x[key])
    with pytest.raises(TypeError, match="a slice with a tensor"):
        jitted(x, slice(sg.tensor(1), 3))


def test_trees_of_tensors() -> None:
    def function(parameters: Any, pair: Any) -> Any:
        first, (second, flag) = pair
        return {"y": [first @ parameters["w"] + parameters["b"]], "z": (second, flag, None)}

    jitted = sg.jit(function)
    parameters = {"w": tensor(3, 4), "b": tensor(4)}
    pair = [tensor(2, 3), (tensor(5), True)]
    found, wanted = jitted(parameters, pair), function(parameters, pair)
    assert list(found) == ["y", "z"]
    assert isinstance(found["y"], list)
    assert found["z"][1:] == (True, None)
    close(found["y"][0], wanted["y"][0])
    same_derivatives(
        lambda *_: function(parameters, pair)["y"], lambda *_: jitted(parameters, pair)["y"], (),
        [*parameters.values(), pair[0]],
    )  # fmt: skip


def test_arrays_are_constants_and_no_grad_records_nothing() -> None:
    jitted = sg.jit(lambda x, y: (x * y).sum())
    x, y = tensor(3), np.arange(3.0)
    with sg.no_grad():
        assert not jitted(x, y).requires_grad
    found = jitted(x, y)
    found.backward()
    np.testing.assert_allclose(x.grad.numpy(), y)


# -- tensors that are closed over


class Model:
    """As a module is: parameters, a mode, methods."""

    def __init__(self) -> None:
        self.weight = tensor(3, 4)
        self.parts = [{"bias": tensor(4)}]
        self.training = True

    def modules(self) -> list[Model]:
        return [self]

    def __call__(self, x: Any) -> Any:
        y = x @ self.weight + self.parts[0]["bias"]
        return sg.relu(y) if self.training else y

    @sg.jit
    def method(self, x: Any) -> Any:
        return self(x) * 2


def test_parameters_are_found_again() -> None:
    model = Model()
    jitted = sg.jit(model)
    x = tensor(2, 3)

    def parameters() -> list[Any]:
        return [x, model.weight, model.parts[0]["bias"]]

    same_derivatives(model, jitted, (x,), parameters())
    with sg.no_grad():
        model.weight.mul_(0.5)
    close(jitted(x), model(x))
    model.weight = tensor(3, 4, seed=9)  # another tensor in its place
    same_derivatives(model, jitted, (x,), parameters())
    model.training = False
    close(jitted(x), model(x))
    model.weight = tensor(3, 4, seed=9, dtype=np.float64)
    model.parts[0]["bias"] = tensor(1)  # of another shape
    close(jitted(x), model(x))
    close(model.method(x), model(x) * 2)


def test_frozen_parameters_and_inputs() -> None:
    model = Model()
    model.weight.requires_grad_(False)
    x = tensor(2, 3, grad=False)
    jitted = sg.jit(model)
    jitted(x).sum().backward()
    assert model.weight.grad is None
    assert model.parts[0]["bias"].grad is not None
    model.weight.requires_grad_()
    found = jitted(x).sum()
    found.backward(inputs=[model.weight], retain_graph=True)
    assert model.weight.grad is not None
    before = model.parts[0]["bias"].grad.clone()
    found.backward(inputs=[model.weight])
    close(model.parts[0]["bias"].grad, before)


def test_a_tensor_that_cannot_be_found_again_is_not_frozen_into_the_kernels() -> None:
    made = iter([tensor(3, seed=5), tensor(3, seed=6)] * 3)
    jitted = sg.jit(lambda x: x * next(made))
    x = tensor(3)
    with pytest.warns(sg.JitWarning, match="closes over a tensor"):
        jitted(x)


# -- Functions with backwards of their own


class Steep(sg.Function):
    """A backward that is not the derivative, so that it shows."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x * x
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, y = ctx.saved_tensors
        return grad * (7 * x + y)


class Both(sg.Function):
    """Two outputs, a plain argument."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, scale: float) -> Any:
        ctx.save_for_backward(x, y)
        ctx.scale = scale
        return x * y * scale, sg.sin(x)

    @staticmethod
    def backward(ctx: Any, first: Any, second: Any) -> Any:
        x, y = ctx.saved_tensors
        return first * y * ctx.scale + second * sg.cos(x), first * x * ctx.scale, None


def test_functions_keep_their_backwards() -> None:
    def function(x: Any, y: Any) -> Any:
        first, second = Both.apply(Steep.apply(x), y, 2.0)
        return sg.tanh(Steep.apply(first)) + second

    args = tensor(2, 3) * 0.2, tensor(2, 3, seed=3) * 0.2
    args = tuple(one.detach().requires_grad_() for one in args)
    same_derivatives(function, sg.jit(function), args, args)


def test_no_grad_and_detach_inside() -> None:
    def function(x: Any) -> Any:
        with sg.no_grad():
            scale = (x * x).sum()
        return x * scale + x.detach() * x

    x = (tensor(4),)
    same_derivatives(function, sg.jit(function), x, x)


# -- derivatives of functions inside

WEIGHT = tensor(4, 4)


def scalar(x: Any) -> Any:
    return sg.tanh(x @ WEIGHT).sum() ** 2


@pytest.mark.parametrize(
    "function",
    [
        sg.grad(scalar),
        sg.value_and_grad(scalar),
        lambda x: sg.grad(lambda t: (sg.grad(scalar)(t) ** 2).sum())(x),
        lambda x: sg.hvp(scalar, x, sg.cos(x)),
        lambda x: sg.jvp(scalar, (x,), (sg.cos(x),)),
        lambda x: sg.vjp(lambda t: sg.sin(t) @ WEIGHT, x)[1](x * x),
        lambda x: sg.hessian(scalar, x),
        lambda x: sg.jacobian(lambda t: sg.sin(t[0]) * t[1], x),
        lambda x: sg.grad(lambda t: (t * x * Steep.apply(t)).sum())(x),
    ],
)
def test_derivatives_inside(function: Callable[[Any], Any]) -> None:
    x = tensor(2, 4, grad=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = leaves(sg.jit(function)(x))
    for left, right in zip(found, leaves(function(x)), strict=True):
        close(left, right)


# -- what cannot be compiled


def test_control_flow_on_values_runs_eagerly_with_one_warning() -> None:
    def function(x: Any) -> Any:
        return x * 2 if x.sum() > 0 else -x

    jitted = sg.jit(function)
    x, y = sg.tensor([1.0, 2.0]), sg.tensor([-1.0, -2.0, -3.0])
    with pytest.warns(sg.JitWarning, match="cannot branch on a tensor"):
        close(jitted(x), function(x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close(jitted(y), function(y))


def test_the_functions_own_errors_are_its_own() -> None:
    def function(x: Any) -> Any:
        if x.shape[0] == 3:
            raise KeyError("three")
        return x * 2

    jitted = sg.jit(function)
    with pytest.raises(KeyError, match="three"):
        jitted(tensor(3))
    close(jitted(tensor(4)), tensor(4) * 2)


@pytest.mark.parametrize("wrong", ["write", "read", "random"])
def test_what_a_trace_cannot_hold(wrong: str) -> None:
    kept = tensor(3, grad=False)

    def function(x: Any) -> Any:
        if wrong == "write":
            kept.add_(1)
        elif wrong == "read":
            return x * float(kept.sum())
        else:
            return x + sg.rand(3, dtype=sg.float64) * 0
        return x + kept

    with pytest.warns(sg.JitWarning, match="runs eagerly"):
        close(sg.jit(function)(tensor(3)), function(tensor(3)) - (wrong == "write"))


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CC", "/nonexistent/cc")
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path))
    jitted = sg.jit(lambda x: x * 2 + 1)
    with pytest.warns(sg.JitWarning, match="runs eagerly"):
        close(jitted(tensor(3)), tensor(3) * 2 + 1)

    @sg.jit(strict=True)
    def strict(x: Any) -> Any:
        return x * 2 + 1

    for _ in range(2):
        with pytest.raises(BuildError):
            strict(tensor(3))
    assert strict(sg.zeros(0)).shape == (0,)


def test_empty_tensors_run_eagerly() -> None:
    jitted = sg.jit(lambda x: x.sum() + 1)
    assert jitted(sg.zeros(0)).item() == 1
    assert jitted(sg.ones(3)).item() == 4


def test_inside_another_trace_it_is_inlined() -> None:
    inner = sg.jit(lambda x: x * x)

    class Square(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return inner(x)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * grad * x

    assert sg.verify(Square, "n").verdict is sg.PROVED
    outer = sg.jit(lambda x: inner(x) + 1)
    close(outer(tensor(3)), tensor(3) * tensor(3) + 1)
    assert not inner._variants


def test_the_kernels_can_be_read() -> None:
    lowered = sg.jit(lambda x: sg.exp(x).sum()).lower(tensor(3))
    assert "exp(x)" in str(lowered)
    assert "expf" in lowered.c or "exp(" in lowered.c


def test_a_product_that_is_read_backwards_too_is_not_overwritten() -> None:
    generator = np.random.default_rng(0)
    shapes = ((70, 9), (9, 33), (33, 33))
    x, w, v = (sg.from_numpy(generator.normal(size=shape)) for shape in shapes)

    def function(x: Any, w: Any, v: Any) -> Any:
        return (x @ w + sg.flip(x @ w, [1]) * 2) @ v

    expected = function(x, w, v).numpy()
    np.testing.assert_allclose(sg.jit(function)(x, w, v).numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: x @ sg.flip(x, [0]).t(),
        lambda x, w: sg.flip(x, [0]) @ w,
        lambda x, w: sg.flip(x, [0, 1]) @ sg.flip(w, [1]),
        lambda x, w: x @ w[::2].repeat_interleave(2, 0)[: x.shape[1]],
        lambda x, w: x.reshape(-1).unfold(0, 9, 1) @ w,
        lambda x, w: x[:1].expand(5, 9) @ w,
        lambda x, w: x[:, :1].expand(*x.shape) @ w,
    ],
    ids=["rows", "left", "both", "steps", "windows", "one row", "one column"],
)
def test_products_of_what_no_blas_reads(function: Any) -> None:
    """Backwards, overlapping, or the same line again and again."""
    generator = np.random.default_rng(0)
    w = sg.from_numpy(generator.normal(size=(9, 12)))
    compiled = sg.jit(function, strict=True)
    for rows in (1, 40):
        x = sg.from_numpy(generator.normal(size=(rows, 9)))
        np.testing.assert_allclose(
            compiled(x, w).numpy(), function(x, w).numpy(), rtol=1e-9, atol=1e-12
        )
