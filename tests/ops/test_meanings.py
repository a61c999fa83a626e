"""Each op's meanings agree: its type, NumPy, sympy and index notation.

Tests over the registry: a new op is tested because it is there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy

from symgrad.errors import GraphError
from symgrad.ir.dtype import float32, float64
from symgrad.ir.graph import Graph
from symgrad.ir.types import TensorType
from symgrad.ops.record import get
from tests.ops.cases import ELEMENTWISE, OPS, Case, for_uses
from tests.ops.interpreter import interpret

TOLERANCE = {"float32": 2e-5, "float64": 1e-11}


def assert_close(found: Any, wanted: Any, dtype: str) -> None:
    if dtype.startswith("float"):
        tolerance = TOLERANCE[dtype]
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", OPS)
def test_type_is_what_numpy_gives(name: str) -> None:
    @for_uses(name)
    def check(case: Case) -> None:
        value = case.numpy()
        assert value.dtype == str(case.node.dtype)
        assert value.shape == tuple(case.size(size) for size in case.node.shape)

    check()


@pytest.mark.parametrize("special", [False, True], ids=["ordinary", "special"])
@pytest.mark.parametrize("name", [name for name in OPS if get(name).kind != "linalg"])
def test_index_notation_means_what_numpy_does(name: str, special: bool) -> None:
    @for_uses(name, special=special)
    def check(case: Case) -> None:
        if name == "einsum" and not all(np.all(np.isfinite(array)) for array in case.arrays):
            return  # NumPy sums before it multiplies: another order of infinities
        found = interpret(case.node, case.feeds, case.sizes)
        assert_close(found, case.numpy(), str(case.node.dtype))

    check()


@functools.cache
def _meaning(name: str) -> Callable[..., Any]:
    op = get(name)
    assert op.scalar is not None
    assert op.arity is not None
    symbols = sympy.symbols(f"x:{op.arity}", real=True)
    meaning: Callable[..., Any] = sympy.lambdify(
        symbols, op.scalar.sympy(sympy, *symbols), "mpmath"
    )
    return meaning


def _exact(value: Any) -> Any:
    return bool(value) if isinstance(value, np.bool_) else mpmath.mpf(float(value))


@pytest.mark.parametrize("name", [name for name in ELEMENTWISE if name != "cast"])
def test_sympy_means_what_numpy_does(name: str) -> None:
    @for_uses(name, least=1)
    def check(case: Case) -> None:
        wanted = case.numpy()
        with mpmath.workdps(30):
            for where in np.ndindex(wanted.shape):
                operands = [_exact(array[where]) for array in case.arrays]
                if name in ("floordiv", "mod", "fmod") and operands[1] == 0:
                    continue  # among integers that is 0 by convention
                found = _meaning(name)(*operands)
                if case.node.dtype.wraps:
                    found = case.node.dtype.wrapped(int(found))
                assert_close(np.asarray(found, wanted.dtype), wanted[where], str(case.node.dtype))

    check()


STRUCTURAL = [name for name in OPS if name not in ELEMENTWISE and name not in ("any", "all")]


@pytest.mark.parametrize("name", STRUCTURAL)
def test_structural_ops_take_arrays_of_high_precision(name: str) -> None:
    """What the second oracle of the proof stands on: the NumPy meaning, on Python numbers."""

    @for_uses(name, double=True)
    def check(case: Case) -> None:
        precise = [_precise(array) for array in case.arrays]
        found = case.call(precise)
        assert isinstance(found, np.ndarray)
        if case.node.dtype == float64 and all(array.size for array in case.arrays):
            assert all(isinstance(value, int | mpmath.mpf) for value in found.ravel())
        assert_close(found.astype(str(case.node.dtype)), case.numpy(), str(case.node.dtype))

    check()


def _precise(array: Any) -> Any:
    if array.dtype.kind != "f":
        return array
    result = np.empty(array.shape, dtype=object)
    for where in np.ndindex(array.shape):
        result[where] = mpmath.mpf(float(array[where]))
    return result


@pytest.mark.parametrize("name", [name for name in OPS if get(name).arity is not None])
def test_arity_is_checked(name: str) -> None:
    graph = Graph()
    args = [graph.input(f"x{i}", TensorType.of(float32, (2,))) for i in range(4)]
    with pytest.raises(GraphError, match="arguments"):
        graph.apply(name, *args)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_kinks_domains_and_costs_are_stated(name: str) -> None:
    op = get(name)
    assert op.scalar is not None
    assert op.scalar.cost > 0
    symbols = sympy.symbols(f"x:{op.arity}", real=True)
    for constraint in op.scalar.domain:
        assert constraint.kind in ("positive", "nonnegative", "nonzero")
        assert constraint.expression(sympy, *symbols).free_symbols <= set(symbols)
    for kink in op.scalar.kinks:
        assert kink.convention
        assert kink.expression(sympy, *symbols).free_symbols
