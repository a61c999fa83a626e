"""Questions about sizes split the trace; questions about values are refused with a line."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.errors import (
    ControlFlowError,
    ProtocolError,
    ShapeError,
    TraceError,
    UnsupportedOpError,
)
from symgrad.frontend.trace import trace
from tests.frontend.support import forward_only, holds, run


def cases(forward: Any, *specs: str) -> list[list[str]]:
    graphs = trace(forward_only(forward), *specs)
    return [[str(condition) for condition in case.conditions] for case in graphs.cases]


@pytest.mark.parametrize(
    ("forward", "specs", "wanted"),
    [
        (lambda x: x.squeeze(0), ("n m",), [["n != 1"], ["n == 1"]]),
        (lambda x: x.squeeze(), ("3 m",), [["m != 1"], ["m == 1"]]),
        (lambda x: x.squeeze(1), ("n 1",), [[]]),
        (lambda x: x if x.shape[0] == x.shape[1] else x.t(), ("n m",), [["n != m"], ["m == n"]]),
        (lambda x: x * 2 if x.size(0) > 5 else x, ("n",), [["n > 5"], ["n <= 5"]]),
        (lambda x: x if x.shape[0] > 2.5 else -x, ("n",), [["n > 2"], ["n <= 2"]]),
        (lambda x: x if x.shape[0] == 2.5 else -x, ("n",), [[]]),
        (lambda x: x if x.shape[0] < float("inf") else -x, ("n",), [[]]),
        (lambda x: x[:2], ("n",), [["2 <= n"], ["n == 1"]]),
        (lambda x: x[1:], ("n",), [[]]),
        (lambda x: x[1:-1], ("n",), [["n - 2 >= 0"], ["n == 1"]]),
        (lambda x: x * (2 if x.shape[0] > 0 else 3), ("n",), [[]]),
        (lambda x: x.reshape(-1) if x.numel() == 1 else x, ("n m",), None),
        (lambda x: x + sum(range(x.shape[0])), ("4 m",), [[]]),
        (lambda x: x if x.shape[1] in (4, 8) else x * 2, ("n m",), None),
    ],
)
def test_cases(forward: Any, specs: tuple[str, ...], wanted: list[list[str]] | None) -> None:
    found = cases(forward, *specs)
    if wanted is not None:
        assert found == wanted
    graphs = trace(forward_only(forward), *specs)
    for n in range(1, 9):
        for m in range(1, 9):
            assert sum(holds(case, {"n": n, "m": m}) for case in graphs.cases) == 1


@pytest.mark.parametrize(
    ("forward", "wanted"),
    [
        (lambda x: x[0], ["0 < n"]),
        (lambda x: x[1:] + x[:-1], ["1 <= n"]),
        (lambda x: x[-1] * x[1:], ["n - 1 >= 0"]),
        (lambda x: x.sum(0) / x.shape[0], []),
        (lambda x: x if x.shape[0] else -x, ["n != 0"]),
        (lambda x: x.topk(1, 0).values, ["1 <= n"]),
        (lambda x: x[1] if x.shape[0] != 1 else x[0], ["1 < n"]),
    ],
)
def test_what_size_zero_would_break_is_required(forward: Any, wanted: list[str]) -> None:
    graphs = trace(forward_only(forward), "n m")
    found = [str(condition) for case in graphs.cases for condition in case.requires]
    assert found == wanted


def test_implied_questions_do_not_split() -> None:
    def forward(x: Any) -> Any:
        if x.shape[0] == 1:
            return x
        if x.shape[0] >= 2 and x.shape[0] * x.shape[1] > 1 and x.shape[0] != 1:
            return x * 2
        raise AssertionError("not reached")

    assert cases(forward, "n m") == [["n != 1"], ["n == 1"]]


def test_a_replaced_size_is_replaced_everywhere() -> None:
    def forward(x: Any, y: Any) -> Any:
        return x.mm(y) if x.shape[1] == y.shape[0] else x.mm(x.t())

    graphs = trace(forward_only(forward), "n m", "k n")
    general, equal = graphs.cases
    assert [str(condition) for condition in equal.conditions] == ["k == m"]
    assert [str(node.type) for node in equal.inputs] == ["f32[n m]", "f32[m n]"]
    assert str(general.outputs[0].type) == "f32[n n]"


def test_sizes_that_forward_refuses_have_no_case() -> None:
    def forward(x: Any) -> Any:
        if x.shape[1] != 3:
            raise ValueError("three columns")
        return x * 2

    assert cases(forward, "n m") == [["m == 3"]]
    (refused,) = trace(forward_only(forward), "n m").refused
    assert [str(condition) for condition in refused.conditions] == ["m != 3"]
    assert "three columns" in str(refused.reason)
    assert cases(lambda x: x[4], "n") == [["4 < n"]]
    with pytest.raises(TraceError, match="raised ValueError: three columns"):
        trace(forward_only(forward), "n 4")


def test_too_many_cases() -> None:
    def forward(x: Any) -> Any:
        return x * sum(number for number in range(2, 100) if x.shape[0] == number)

    with pytest.raises(ControlFlowError, match="more than 64 cases"):
        trace(forward_only(forward), "n")


def test_a_handler_does_not_catch_a_question() -> None:
    def forward(x: Any) -> Any:
        try:
            return x.squeeze(0)
        except Exception:
            return x * 0

    assert cases(forward, "n m") == [["n != 1"], ["n == 1"]]


def test_unequal_names_do_not_broadcast() -> None:
    with pytest.raises(ShapeError, match="one name for both") as caught:
        trace(forward_only(lambda x, y: x + y), "n m", "k")
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


SIZED: list[Any] = [
    lambda x: x * math.sqrt(x.shape[1]),
    lambda x: x / np.sqrt(x.shape[1]),
    lambda x: x * x.shape[1] ** 0.5,
    lambda x: x * (x.shape[1] ** -0.5) * x.shape[1],
    lambda x: x * math.log(x.shape[0] + 1, 2),
    lambda x: x * math.pow(x.shape[0], 2) / (2 * x.shape[1]),
    lambda x: x * math.prod(x.shape),
    lambda x: x[: math.ceil(x.shape[0] / 2)],
    lambda x: x[: x.shape[0] // 2 + 1] * math.floor(x.shape[0] / 2),
    lambda x: x * (1.0 / (x.shape[0] + x.shape[1] - 1)),
    lambda x: x * (x.shape[0] % 2),
    lambda x: x * max(x.shape[0], x.shape[1]),
    lambda x: x * (2.0 - 1 / x.shape[0]) * (x.shape[0] / 3 + x.shape[1]),
    lambda x: x * float(x.shape[0]) ** -0.5 / float(x.shape[0] / x.shape[1]),
    lambda x: x * float(x.sum()),
    lambda x: x[: int(x.shape[0] // 2) + 1] * len(x) + int(x.shape[1] / 2),
    lambda x: x * np.ceil(x.shape[0] / 4) + np.floor(x.shape[1] / 2) + np.rint(x.shape[0] / 2),
    lambda x: x * max(float(x.shape[0]), 2.0) if 1.5 / x.shape[0] > 0.5 else -x,
    lambda x: x if x.shape[0] / 2 == 1.0 else -x if x.shape[0] / 3 <= x.shape[1] else 2 * x,
]


@pytest.mark.parametrize("number", range(len(SIZED)))
def test_arithmetic_of_sizes(number: int) -> None:
    forward = SIZED[number]
    points = []
    for n, m in ((1, 1), (2, 5), (4, 3), (5, 1)):
        points.append(({"n": n, "m": m}, {"x": np.ones((n, m))}))
    found = run(forward, ["n m"], points)
    for (_, arrays), (result,) in zip(points, found, strict=True):
        np.testing.assert_allclose(result, forward(arrays["x"]))
    assert math.sqrt(4.0) == 2.0
    assert not hasattr(math.sqrt, "__wrapped__"), "math is as it was"


REFUSED = {
    "if": lambda x: x if x.sum() > 0 else -x,
    "while": lambda x: [x for _ in iter(lambda: bool(x.max() > 1), False)],
    "float": lambda x: x if float(x.sum()) > 0 else -x,
    "int": lambda x: x * int(x.sum()),
    "item": lambda x: x if x.sum().item() > 0 else -x,
    "tolist": lambda x: x * x.tolist()[0],
    "numpy": lambda x: x * x.numpy(),
    "array": lambda x: x * np.asarray(x),
    "range": lambda x: [x[i] for i in range(x.argmax())],
    "iterate": lambda x: [row * 2 for row in x],
    "range of size": lambda x: [x[i] for i in range(x.shape[0])],
    "compare": lambda x: x if 1.5 / x.shape[0] > 0.3 else -x,
    "float equality": lambda x: x if x.shape[0] / 2 == 1 / x.shape[1] + 0.1 else -x,
    "range of len": lambda x: [x[i] for i in range(len(x))],
    "repeat": lambda x: [x] * x.shape[0],
    "assert": lambda x: (x.sum() > 0) and x,
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_control_flow_on_values_is_refused(name: str) -> None:
    forward = REFUSED[name]
    with pytest.raises(ControlFlowError) as caught:
        trace(forward_only(forward), "n m")
    error = caught.value
    assert error.hint
    assert error.location is not None
    assert error.location.file == __file__
    assert error.location.line == inspect.getsourcelines(forward)[1]


def test_an_empty_list_is_no_output() -> None:
    with pytest.raises(ProtocolError, match="forward returned no tensor: it returns nothing"):
        trace(forward_only(lambda x: []), "n m")


MISSING = {
    "topological": (lambda x: x.lu(), "'lu'"),
    "function": (lambda x: sg.igamma(x, x), "'igamma'"),
    "random": (lambda x: x + sg.randn_like(x), "pass them as an input"),
    "shape by values": (lambda x: x.nonzero().flip(0), "mask"),
    "half": (lambda x: x.half(), "float32"),
    "numpy": (lambda x: np.fft.fft(x), "np.fft"),
}


@pytest.mark.parametrize("name", sorted(MISSING))
def test_missing_operations_are_named(name: str) -> None:
    forward, message = MISSING[name]
    with pytest.raises(UnsupportedOpError) as caught:
        trace(forward_only(forward), "n m")
    assert message in str(caught.value)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def test_has_attribute() -> None:
    seen: list[bool] = []

    def forward(x: Any) -> Any:
        seen.extend(hasattr(x, name) for name in ("exp", "lu", "foo"))
        return x.exp()

    trace(forward_only(forward), "n")
    assert seen == [True, False, False]
    with pytest.raises(AttributeError, match="foo"):
        _ = sg.foo
    assert not hasattr(sg, "lu")


def test_no_tensor_is_left_for_another_trace() -> None:
    kept: list[Any] = []

    def forward(x: Any) -> Any:
        kept.append(x)
        return x * 2 + kept[0]

    function = forward_only(forward)
    trace(function, "n")
    assert not kept
    trace(function, "n")


def test_loops_over_known_sizes() -> None:
    def forward(x: Any) -> Any:
        total = x[0] * 0
        for row in x:
            total = total + row
        for piece in x.split([1, 2]):
            total = total * len(piece)
        return total

    (found,) = run(forward, ["3 m"], [({"m": 2}, {"x": np.arange(6.0).reshape(3, 2)})])
    np.testing.assert_allclose(found[0], [12.0, 18.0])


def test_numpy_functions_work_on_symbolic_tensors() -> None:
    def forward(x: Any) -> Any:
        y = np.exp(x) + np.maximum(x, 0.5) * np.float32(2.0)
        z = np.where(x > 0, np.sum(y, axis=1, keepdims=True), np.concatenate([y, x], axis=1)[:, :1])
        w = np.clip(np.matmul(z, np.transpose(x)), -1, 1) + np.ones(1)
        return np.sqrt(np.abs(w)), np.mean(y, axis=0), np.var(x, axis=1), np.stack([x, y])

    x = np.linspace(-1, 1, 6).reshape(2, 3)
    (found,) = run(forward, ["n 3"], [({"n": 2}, {"x": x[:, :3]})])
    for one, other in zip(found, forward(x), strict=True):
        np.testing.assert_allclose(one, other)


@pytest.mark.parametrize(("spec", "other"), [("n 3", "3"), ("3", "n 3"), ("n m 3", "m 3")])
def test_a_vector_product_is_of_tensors_with_as_many_axes(spec: str, other: str) -> None:
    """Torch refuses others, though it expands axes of size 1."""
    with pytest.raises(ShapeError, match="as many axes"):
        trace(forward_only(lambda a, b: sg.cross(a, b, dim=-1)), spec, other)
    assert cases(lambda a, b: sg.cross(a, b, dim=-1), "n 3", "1 3") == [[]]
