"""Programs for NumPy compute what the graphs of kernels mean, for every size."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from symgrad.codegen.calls import SizeNames
from symgrad.codegen.fallback import render_fallback
from symgrad.ir import dtype as dtypes
from symgrad.ir.dim import Dim
from symgrad.ir.graph import Graph
from symgrad.ir.types import TensorType
from symgrad.passes.evaluate import evaluate
from symgrad.runtime import on_numpy
from tests.graphs import Example, examples


def computed(graph: Graph, sizes: dict[str, int], feeds: dict[str, Any]) -> list[Any]:
    text = render_fallback("Test", "symgrad.runtime", {"kernel": graph}, SizeNames(("n", "m")))
    assert text is not None
    module = ModuleType("programs")
    exec(compile(text, "programs", "exec"), vars(module))
    with np.errstate(all="ignore"):
        return list(module.kernel(sizes, *(feeds[name] for name in graph.inputs)))


def check(example: Example) -> None:
    found = computed(example.graph, dict(example.sizes), dict(example.feeds))
    wanted = evaluate(list(example.graph.outputs.values()), example.feeds, example.sizes)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-12)


@given(examples(dtype=dtypes.float64))
def test_doubles(example: Example) -> None:
    check(example)


@given(examples(dtype=dtypes.float32, smooth=True))
def test_floats(example: Example) -> None:
    found = computed(example.graph, dict(example.sizes), dict(example.feeds))
    wanted = evaluate(list(example.graph.outputs.values()), example.feeds, example.sizes)
    for one, other in zip(found, wanted, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        scale = 1e-4 * max(1.0, float(np.abs(other).max(initial=0)))
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=scale)


N, M = Dim.size("n"), Dim.size("m")
X = TensorType(dtypes.float64, (N, M))
PLACES = TensorType(dtypes.int64, (M,))


@pytest.mark.parametrize("size", [0, 1, 2, 5])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_parts(size: int, step: int) -> None:
    """Slices, and zeros around them, whose ends depend on sizes."""
    graph = Graph()
    x = graph.input("x", X)
    start = N - 1 if step < 0 else Dim.of(0)
    taken = N if step != 2 else (N + 1) // 2
    attrs = {"starts": (start, Dim.of(0)), "steps": (step, 1)}
    some = graph.apply("slice", x, sizes=(taken, M), **attrs)
    graph.outputs["y"] = some
    graph.outputs["z"] = graph.apply("unslice", some, shape=(N, M), **attrs)
    value = np.arange(3.0 * size).reshape(size, 3)
    found = computed(graph, {"n": size, "m": 3}, {"x": value})
    wanted = evaluate(list(graph.outputs.values()), {"x": value}, {"n": size, "m": 3})
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("place", [-1, 4])
@pytest.mark.parametrize("op", ["index", "index_add"])
def test_places_outside(op: str, place: int) -> None:
    """NumPy would count a negative one from the end."""
    graph = Graph()
    places = graph.input("places", PLACES)
    if op == "index":
        whole = graph.input("x", X)
        graph.outputs["y"] = graph.apply("index", whole, places)
    else:
        part = graph.input("x", TensorType(dtypes.float64, (M, M)))
        graph.outputs["y"] = graph.apply("index_add", part, places, shape=(N, M))
    sizes = {"n": 4, "m": 2}
    x = np.ones((4, 2) if op == "index" else (2, 2))
    inside = computed(graph, sizes, {"x": x, "places": np.array([0, 3])})
    assert inside[0].shape == ((2, 2) if op == "index" else (4, 2))
    with pytest.raises(IndexError, match="outside of axis 0"):
        computed(graph, sizes, {"x": x, "places": np.array([0, place])})


def test_names_that_mean_something_else() -> None:
    """An input may have the name of a size, of a module, of what programs call."""
    graph = Graph()
    names = ("n", "np", "as_float64", "v3", "sizes", "lambda", "take")
    total = graph.input(names[0], X)
    for name in names[1:]:
        total = graph.binary("add", total, graph.input(name, X))
    graph.outputs["y"] = total
    x = np.ones((2, 3))
    assert (computed(graph, {"n": 2, "m": 3}, dict.fromkeys(names, x))[0] == len(names)).all()


def test_every_dtype_has_its_function() -> None:
    for name in ("bool", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"):
        assert getattr(on_numpy, f"as_{name}")([1]).dtype == np.dtype(name)
