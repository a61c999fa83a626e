"""Each op's VJP and tangent agree with each other, with differences, and with sympy.

Tests over the registry: a new op is tested because it is there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import sympy

from symgrad.autodiff import jvp, vjp
from symgrad.errors import UnsupportedOpError
from symgrad.ir.dtype import float64
from symgrad.ir.graph import Graph, Node
from symgrad.ir.types import TensorType
from symgrad.ops.record import get
from symgrad.passes.evaluate import evaluate
from tests.ops.cases import ELEMENTWISE, OPS, Case, differentiable, for_uses

Array = np.ndarray[Any, Any]
SMOOTH = [name for name in OPS if differentiable(name)]
FLAT = [name for name in OPS if get(name).vjp is None and name != "shift"]
"""A shift is not flat: what it shifts is (tests/frontend/test_shifts.py)."""


def _like(source: np.random.Generator, array: Array) -> Array:
    return np.asarray(source.uniform(-1, 1, size=array.shape), array.dtype)


def _floats(case: Case) -> list[Node]:
    return [arg for arg in case.args if arg.dtype.is_float]


def _value(case: Case, nodes: Sequence[Node | None], feeds: dict[str, Array]) -> list[Any]:
    """The values of nodes; 0 for None."""
    there = [node for node in nodes if node is not None]
    values = iter(evaluate(there, {**case.feeds, **feeds}, case.sizes))
    return [0.0 if node is None else next(values) for node in nodes]


def _dot(left: Any, right: Any) -> float:
    return float(np.sum(np.asarray(left) * np.asarray(right)))


def _tangents(
    case: Case, source: np.random.Generator
) -> tuple[list[Node], list[Node], dict[str, Array]]:
    """The float arguments, tangents for them, and their values."""
    args = list(dict.fromkeys(_floats(case)))
    nodes = [case.node.graph.input(f"t_{arg.name}", arg.type) for arg in args]
    values = {f"t_{arg.name}": _like(source, case.feeds[str(arg.name)]) for arg in args}
    return args, nodes, values


@pytest.mark.parametrize("name", SMOOTH)
def test_vjp_is_the_adjoint_of_jvp(name: str) -> None:
    """<g, J v> = <J' g, v>, in f32 and f64, for every size."""

    @for_uses(name, floats=True)
    def check(case: Case) -> None:
        if not case.node.dtype.is_float or not np.all(np.isfinite(case.numpy())):
            return  # the greatest of no element is infinite
        source = case.source()
        args, tangents, feeds = _tangents(case, source)
        g = case.node.graph.input("g", case.node.type)
        feeds["g"] = _like(source, case.numpy())
        (image,) = jvp([case.node], args, tangents)
        backs = vjp([case.node], [g], args)
        for arg, back in zip(args, backs, strict=True):
            assert back is None or back.type == arg.type
        image_value, *back_values = _value(case, [image, *backs], feeds)
        forwards = _dot(feeds["g"], image_value)
        backwards = sum(
            _dot(value, feeds[f"t_{arg.name}"])
            for value, arg in zip(back_values, args, strict=True)
        )
        tolerance = 2e-4 if case.node.dtype != float64 or args[0].dtype != float64 else 1e-10
        scale = 1 + sum(np.abs(value).sum() for value in back_values)
        assert abs(forwards - backwards) <= tolerance * scale

    check()


@pytest.mark.parametrize("name", SMOOTH)
def test_jvp_is_the_limit_of_differences(name: str) -> None:
    @for_uses(name, double=True)
    def check(case: Case) -> None:
        if case.node.dtype != float64 or not np.all(np.isfinite(case.numpy())):
            return
        args, tangents, feeds = _tangents(case, case.source())
        (image,) = jvp([case.node], args, tangents)
        (found,) = _value(case, [image], feeds)
        step = 1e-6

        def moved(by: float) -> Array:
            shifted = dict(case.feeds)
            for arg in args:
                shifted[str(arg.name)] = shifted[str(arg.name)] + by * feeds[f"t_{arg.name}"]
            return case.call([shifted[str(arg.name)] for arg in case.args])

        wanted = (moved(step) - moved(-step)) / (2 * step)
        size = 1 + np.max(np.abs(wanted), initial=0) + np.max(np.abs(case.numpy()), initial=0)
        np.testing.assert_allclose(np.broadcast_to(found, wanted.shape), wanted, atol=2e-7 * size)

    check()


@pytest.mark.parametrize("name", SMOOTH)
def test_the_vjp_can_be_differentiated_again(name: str) -> None:
    """<v, J(J'g) w> = <J(J'g)' v, w>: what rules are made of has rules, too."""

    @for_uses(name, double=True)
    def check(case: Case) -> None:
        if case.node.dtype != float64:
            return
        source = case.source()
        args, tangents, feeds = _tangents(case, source)
        g = case.node.graph.input("g", case.node.type)
        feeds["g"] = _like(source, case.numpy())
        for back in vjp([case.node], [g], args):
            if back is None:
                continue
            seen = f"v{len(feeds)}"
            v = case.node.graph.input(seen, back.type)
            (feeds[seen],) = (_like(source, value) for value in _value(case, [back], feeds))
            try:
                (image,) = jvp([back], args, tangents)
                again = vjp([back], [v], args)
            except UnsupportedOpError:
                assert name == "trigamma"
                return
            image_value, *values = _value(case, [image, *again], feeds)
            backwards = sum(
                _dot(value, feeds[f"t_{arg.name}"]) for value, arg in zip(values, args, strict=True)
            )
            scale = 1 + sum(np.abs(value).sum() for value in values)
            assert abs(_dot(feeds[seen], image_value) - backwards) <= 1e-9 * scale

    check()


@pytest.mark.parametrize(
    "name", [name for name in SMOOTH if name in ELEMENTWISE and name != "cast"]
)
def test_vjp_is_sympys_derivative(name: str) -> None:
    @for_uses(name, double=True)
    def check(case: Case) -> None:
        graph = case.node.graph
        one = graph.lift(1.0, case.node)
        args = _floats(case)
        backs = _value(case, vjp([case.node], [one], args), {})
        for arg, back in zip(args, backs, strict=True):
            partial = _partial(name, case.args.index(arg))
            for where in np.ndindex(case.numpy().shape):
                wanted = float(partial(*(array[where] for array in case.arrays)))
                found = np.broadcast_to(back, case.numpy().shape)[where]
                assert found == pytest.approx(wanted, rel=1e-9, abs=1e-10)

    check()


@functools.cache
def _partial(name: str, position: int) -> Callable[..., Any]:
    op = get(name)
    assert op.scalar is not None
    symbols = sympy.symbols(f"x:{op.arity}", real=True)
    derivative = sympy.diff(op.scalar.sympy(sympy, *symbols), symbols[position])
    steps = derivative.replace(
        lambda e: isinstance(e, sympy.Derivative | sympy.Subs), lambda e: sympy.Integer(0)
    )
    meaning: Callable[..., Any] = sympy.lambdify(symbols, steps, "mpmath")
    return meaning


@pytest.mark.parametrize("name", FLAT)
def test_where_there_is_no_rule_the_op_is_piecewise_constant(name: str) -> None:
    @for_uses(name)
    def check(case: Case) -> None:
        arrays = [a + 1e-9 if a.dtype.kind == "f" else a for a in case.arrays]
        np.testing.assert_array_equal(case.call(arrays), case.numpy())

    if name in ELEMENTWISE or get(name).kind == "reduction":
        check()


def test_where_the_registry_ends_it_says_so() -> None:
    graph = Graph()
    x = graph.input("x", TensorType.of(float64, (2,)))
    y = graph.apply("lgamma", x)
    for _ in range(3):
        (y,) = vjp([y], [graph.lift(1.0, y)], [x])  # type: ignore[assignment]
    with pytest.raises(UnsupportedOpError, match="tetragamma"):
        vjp([y], [graph.lift(1.0, y)], [x])
