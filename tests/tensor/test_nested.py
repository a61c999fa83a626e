"""Derivatives inside derivatives, whose functions close over what others differentiate by."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg

WIDTH = 2
UNARY: dict[str, Callable[[Any], Any]] = {
    "sin": lambda a: a.sin(), "tanh": lambda a: a.tanh(), "square": lambda a: a * a,
    "mean": lambda a: a.mean() + a * 0.5, "flip": lambda a: a.flip(0),
    "detach": lambda a: a.detach() + a,
}  # fmt: skip
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "dot": lambda a, b: (a * b).sum() * a,
}  # fmt: skip
MODES = ("grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "vmap")


@dataclass(frozen=True)
class Expression:
    """``name``: an operation, a mode of differentiation, or "variable" with its ``place``."""

    name: str
    parts: tuple[Expression, ...] = ()
    place: int = 0


def expressions(variables: int, depth: int) -> st.SearchStrategy[Expression]:
    """Expressions in so many variables; those inside of a derivative have one more."""
    leaf = st.builds(Expression, st.just("variable"), place=st.integers(0, variables - 1))
    flat = st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(Expression, st.sampled_from(list(UNARY)), st.tuples(inner)),
            st.builds(Expression, st.sampled_from(list(BINARY)), st.tuples(inner, inner)),
        ),
        max_leaves=4,
    )
    if not depth:
        return flat
    body = st.builds(
        lambda own, rest: Expression("mul", (own, rest)),  # nothing is constant by chance
        st.just(Expression("sin", (Expression("variable", place=variables),))),
        expressions(variables + 1, depth - 1),
    )
    nested = st.builds(Expression, st.sampled_from(MODES), st.tuples(body, flat, flat))
    both = st.one_of(st.tuples(nested, flat), st.tuples(flat, nested))
    return st.builds(Expression, st.sampled_from(list(BINARY)), both)


def evaluate(expression: Expression, known: Sequence[Any], func: Any) -> Any:
    """Its value, with the transformations of ``func``."""
    name, parts = expression.name, expression.parts
    if name == "variable":
        return known[expression.place]
    if name not in MODES:
        operation: Any = UNARY.get(name) or BINARY[name]
        return operation(*(evaluate(part, known, func) for part in parts))
    point, direction = (evaluate(part, known, func) for part in parts[1:])
    return derivative(
        name, lambda x: evaluate(parts[0], [*known, x], func), point, direction, func
    )  # fmt: skip


def derivative(mode: str, body: Any, point: Any, direction: Any, func: Any) -> Any:
    """Something of the width of the point, which a mode makes of a function."""
    if mode == "grad":
        return func.grad(lambda x: body(x).sum())(point)
    if mode == "grad_and_value":
        gradient, value = func.grad_and_value(lambda x: (body(x) * direction).sum())(point)
        return gradient + value
    if mode == "vjp":
        value, pull_back = func.vjp(body, point)
        return value * pull_back(direction)[0]
    if mode == "jvp":
        value, along = func.jvp(body, (point,), (direction,))
        return value + along
    if mode == "hessian":
        return func.hessian(lambda x: body(x).sum())(point) @ direction
    if mode == "vmap":
        both = func.vmap(body)(point.expand(3, WIDTH) * direction[0])
        return both.sum(0)
    return getattr(func, mode)(body)(point) @ direction


PROGRAMS = st.integers(1, 3).flatmap(lambda depth: expressions(2, depth))
POINTS = (np.array([0.6, -0.9]), np.array([1.1, 0.3]))


def measured(program: Expression, lib: Any, compiled: bool = False) -> list[Any]:
    """The value, its gradient by the tape (a penalty), and the derivatives by transformations."""
    func = lib.func
    leaves = [lib.from_numpy(point.copy()).requires_grad_() for point in POINTS]
    constants = [lib.from_numpy(point.copy()) for point in POINTS]
    call: Any = lambda x, y: evaluate(program, [x, y], func)  # noqa: E731
    outer: Any = lambda x, y: func.jacrev(lambda v: call(v, y).tanh())(x)  # noqa: E731
    if compiled:
        call, outer = sg.jit(call), sg.jit(outer)
    value = call(*leaves)
    found = [value]
    if value.requires_grad:
        value.sum().backward()
        found += [leaf.grad for leaf in leaves]
    else:
        found += [None, None]
    found += [call(*constants), outer(*constants)]
    return [None if one is None else one.detach().numpy() for one in found]


def same(left: Sequence[Any], right: Sequence[Any]) -> None:
    for one, other in zip(left, right, strict=True):
        if one is None or other is None:
            assert one is other or not np.any(one if other is None else other)
        else:
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9)


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.slow
@settings(max_examples=25)
@given(PROGRAMS)
def test_as_torch(program: Expression) -> None:
    torch: Any = pytest.importorskip("torch")
    same(measured(program, sg), measured(program, torch))


@pytest.mark.slow
@settings(max_examples=3)
@given(PROGRAMS)
def test_compiled_as_eager(program: Expression) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.JitWarning)
        compiled = measured(program, sg, compiled=True)
    same(measured(program, sg), compiled)


def two(value: float = 2.0) -> Any:
    return sg.tensor(value, dtype=sg.float64)


def through(mode: str, body: Callable[[Any], Any], point: Any) -> Any:
    """A first derivative of a function of one number, taken in one of many ways."""
    if mode == "value_and_grad":
        return sg.value_and_grad(body)(point)[1]
    if mode == "vjp":
        return sg.vjp(body, point)[1](two(1.0))[0]
    if mode == "jvp":
        return sg.jvp(body, (point,), (two(1.0),))[1]
    if mode == "linearize":
        return sg.func.linearize(body, point)[1](two(1.0))
    if mode == "hvp":
        return sg.hvp(lambda x: body(x) * x / 3, point, two(1.0))[1]
    if mode == "hessian":
        return sg.hessian(lambda x: body(x) * x / 3, point)
    if mode == "autograd.functional":
        return sg.autograd.functional.jacobian(body, point)
    if mode in ("jacrev", "jacfwd"):
        return getattr(sg.func, mode)(body)(point)
    return getattr(sg, mode)(body)(point) if mode == "grad" else sg.jacobian(body, point)


WAYS = (
    "grad", "value_and_grad", "vjp", "jvp", "linearize", "jacrev", "jacfwd", "jacobian", "hessian",
    "hvp", "autograd.functional",
)  # fmt: skip


@pytest.mark.parametrize("inner", WAYS)
@pytest.mark.parametrize("outer", ["grad", "vjp", "jvp", "jacrev", "jacfwd"])
def test_closed_over_variables_are_differentiated_by(outer: str, inner: str) -> None:
    def first(w: Any) -> Any:
        return through(inner, lambda x: x * x * w, two(3.0))

    assert float(through(outer, first, two())) == pytest.approx(6.0)


@pytest.mark.parametrize("way", WAYS[:-1])
def test_a_penalty_on_a_derivative(way: str) -> None:
    w = two().requires_grad_()
    (through(way, lambda x: x * x * w, two(3.0)) ** 2).backward()
    assert float(w.grad) == pytest.approx(2 * 12.0 * 6.0)


def test_what_nothing_outside_is_differentiated_by_has_no_history() -> None:
    x, w = two(), two().requires_grad_()
    (value, aux), gradient = sg.value_and_grad(lambda x: (x**3, x * 2), has_aux=True)(x)
    assert not any(one.requires_grad for one in (gradient, value, aux))
    (value, aux), gradient = sg.value_and_grad(lambda x: (x * w, x * 2), has_aux=True)(x)
    assert (gradient.requires_grad, value.requires_grad, aux.requires_grad) == (True, True, False)
    with sg.no_grad():
        value, gradient = sg.value_and_grad(lambda x: x * w)(x)
    assert not gradient.requires_grad
    assert not value.requires_grad
    assert not sg.autograd.functional.jacobian(lambda x: x * w, x).requires_grad
    assert sg.autograd.functional.jacobian(lambda x: x * w, x, create_graph=True).requires_grad


def test_an_outer_variable_may_be_the_inner_point_as_well() -> None:
    def confused(x: Any) -> Any:  # the derivative of x by y is 0, wherever y is x
        return x * sg.grad(lambda y: x + 0 * y)(x)

    assert float(sg.grad(confused)(two())) == 0.0
    both = sg.grad(lambda x: sg.grad(lambda y: x * y * y)(x))  # 2 x^2, and not 3 x^2
    assert float(both(two())) == pytest.approx(8.0)


def test_what_a_backward_closes_over_is_not_lost() -> None:
    def function(w: Any) -> Any:
        class Scaled(sg.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 1.0

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                return grad * w

        return sg.grad(Scaled.apply)(two(3.0))

    assert float(sg.grad(function)(two())) == 1.0
    w = two().requires_grad_()
    function(w).backward()
    assert float(w.grad) == 1.0


def test_a_backward_that_is_meant_for_once_is_not_differentiated_in_silence() -> None:
    class Once(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @sg.once_differentiable
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 3 * ctx.saved_tensors[0] ** 2

    assert float(sg.grad(Once.apply)(two())) == 12.0
    with pytest.raises(sg.SymgradError, match="once_differentiable"):
        sg.grad(sg.grad(Once.apply))(two())


def test_backward_inside_is_refused() -> None:
    def inside(x: Any) -> Any:
        leaf = two().requires_grad_()
        (leaf * x).backward()
        return leaf.grad

    for call in (sg.grad(inside), sg.jit(sg.grad(inside))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sg.JitWarning)
            with pytest.raises(RuntimeError, match=r"backward\(\) called inside"):
                call(two())


def test_vmap_in_a_trace_keeps_what_is_differentiated_outside() -> None:
    def gradient(x: Any, y: Any) -> Any:
        return sg.grad(lambda v: sg.vmap(lambda t: (t * v).sum())(y).sum())(x)

    x, y = sg.tensor([1.0, 2.0]), sg.tensor([[3.0, 4.0], [5.0, 6.0]])
    assert sg.jit(gradient)(x, y).tolist() == gradient(x, y).tolist() == [8.0, 10.0]


CONSTANT = sg.tensor([1.0, 2.0, 3.0])


@pytest.mark.slow
def test_constants_are_tangents_and_cotangents_in_a_trace() -> None:
    def f(x: Any) -> Any:
        return x.sin() * x[0]

    def every(x: Any) -> Any:
        return [
            sg.jvp(f, (x,), (CONSTANT,))[1], sg.jvp(f, (x,), (sg.tensor([1.0, 2.0, 3.0]),))[1],
            sg.vjp(f, x)[1](CONSTANT)[0], sg.vjp(f, x)[1](sg.ones(3))[0],
            sg.hvp(lambda y: f(y).sum(), x, CONSTANT)[1], sg.hvp(lambda y: y**3, x[0])[1],
            sg.func.linearize(f, x)[1](CONSTANT), sg.grad(lambda y: (y * x).sum())(CONSTANT),
            sg.autograd.functional.jvp(f, x, CONSTANT)[1],
            sg.autograd.functional.vjp(lambda y: f(y).sum(), x)[1],
        ]  # fmt: skip

    x = sg.tensor([0.3, 0.4, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error", sg.JitWarning)
        compiled = sg.jit(every)(x)
    for one, other in zip(every(x), compiled, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5)


def test_functional_call_is_a_function_of_parameters() -> None:
    net = sg.nn.Sequential(sg.nn.Linear(2, 3), sg.nn.Tanh(), sg.nn.Linear(3, 1))
    given = {name: value.detach() * 2 for name, value in net.named_parameters()}
    x = sg.ones(4, 2)
    found = sg.func.grad(lambda p: sg.func.functional_call(net, p, (x,)).sum())(given)
    before = {name: value.detach().clone() for name, value in net.named_parameters()}
    for name, value in net.named_parameters():
        value.data = given[name]
    net(x).sum().backward()
    for name, value in net.named_parameters():
        assert value.grad is not None
        np.testing.assert_allclose(found[name].numpy(), value.grad.numpy(), rtol=1e-5)
        assert not sg.equal(value.detach(), before[name])
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 'bias'. Missing"):
        sg.func.functional_call(net, {"bias": x}, (x,), strict=True)
    tied = sg.nn.Sequential(net[1], net[0], net[0])
    with pytest.raises(ValueError, match="which are tied"):
        sg.func.functional_call(tied, {"1.bias": x[0], "2.bias": x[1]}, (x,))
