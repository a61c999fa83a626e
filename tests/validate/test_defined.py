"""The C is defined wherever its graph is; to be equal where both are defined is not enough."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from symgrad.ir.dim import Dim
from symgrad.ir.dtype import bool_, float64
from symgrad.ir.expr import Expr
from symgrad.ir.graph import Graph, Node
from symgrad.ir.types import TensorType
from symgrad.kernels import KernelPlan
from symgrad.ops.record import get
from symgrad.validate.symbolic.defined import check_defined
from symgrad.validate.symbolic.integers import Integers, least
from symgrad.validate.symbolic.kernel import Outcome, validate
from symgrad.validate.symbolic.memory import NotShown
from symgrad.validate.symbolic.normal import Reals
from symgrad.validate.symbolic.ranges import Range, Ranges
from symgrad.validate.symbolic.values import Values
from tests.validate.test_symbolic import Emitted, emitted, kernels

Meaning = Callable[[Graph, Node, Node], Node]


def _graph(meaning: Meaning) -> Graph:
    """``z[i]``, of ``x[i]`` and ``y[i]``."""
    graph, shape = Graph(), (Dim.size("n"),)
    x, y = (graph.input(name, TensorType(float64, shape)) for name in "xy")
    graph.output("z", meaning(graph, x, y))
    return graph


def _one(function: str) -> Meaning:
    return lambda graph, x, y: graph.apply(function, x)


def _two(function: str) -> Meaning:
    return lambda graph, x, y: graph.apply(function, x, y)


def _guarded(graph: Graph, x: Node, y: Node) -> Node:
    inside = graph.binary("gt", x, 0.0)
    return graph.apply("where", inside, graph.apply("log", x), y)


def _power(number: float) -> Meaning:
    return lambda graph, x, y: graph.apply("pow", x, graph.lift(number, x))


def _norm(graph: Graph, x: Node, y: Node) -> Node:
    return graph.apply("sqrt", graph.apply("square", x) + graph.apply("square", y))


GRAPHS: dict[str, Meaning] = {
    "sum": lambda graph, x, y: x + y,
    "quotient": _two("div"),
    "quotients": lambda graph, x, y: x / (y * (x + 1.0)),
    "log": _one("log"),
    "sqrt": _one("sqrt"),
    "rsqrt": _one("rsqrt"),
    "sigmoid": _one("sigmoid"),
    "power": _two("pow"),
    "inverse": _power(-2.0),
    "cube": _power(3.0),
    "guarded": _guarded,
    "norm": _norm,
    "asin": _one("asin"),
}


def _with_result(meaning: str, result: str) -> Outcome:
    """The kernel with another value for ``z[i]``; ``{z}`` in it is the right one."""
    text, record, graph = emitted(KernelPlan("k_defined", _graph(GRAPHS[meaning])))
    assert validate(text, record, graph).validated, text
    changed, count = re.subn(
        r"\bz\[i\] = (.+?);", lambda found: f"z[i] = {result.format(z=found[1])};", text
    )
    assert count == 1
    return validate(changed, record, graph)


WRONG = [
    ("sum", "({z}) * (x[i] / x[i])"),
    ("sum", "({z}) + (log(x[i]) - log(x[i]))"),
    ("sum", "({z}) + 0.0 * (1.0 / y[i])"),
    ("sum", "({z}) + 0.0 * sqrt(y[i])"),
    ("sum", "({z}) + 0.0 * asin(y[i])"),
    ("sum", "({z}) + 0.0 * acosh(y[i])"),
    ("sum", "({z}) + 0.0 * atanh(y[i])"),
    ("sum", "({z}) + 0.0 * lgamma(y[i])"),
    ("sum", "({z}) + 0.0 * pow(x[i], y[i])"),
    ("sum", "({z}) + 0.0 * pow(x[i], 0.5)"),
    ("sum", "({z}) + 0.0 * fmod(x[i], y[i])"),
    ("sum", "({z}) + 0.0 * tgamma(x[i])"),
    ("sum", "({z}) + 0.0 * INFINITY"),
    ("sum", "({z}) + 0.0 * fmax(INFINITY, x[i])"),
    ("sum", "({z}) * (pow(x[i], -1.0) * x[i])"),
    ("sum", "({z}) + 0.0 * log(x[i] * x[i])"),
    ("sum", "({z}) + 0.0 / (exp(x[i]) - 1.0)"),
    ("sum", "x[i] > 0.0 ? {z} + 0.0 * log(y[i]) : {z}"),
    ("sum", "{z} + (x[i] > 0.0 ? 0.0 * log(x[i] - 1.0) : 0.0)"),
    ("sum", "{z} + (x[i] >= 0.0 ? 0.0 * log(x[i]) : 0.0)"),
    ("sum", "{z} + (log(x[i]) > 0.0 ? 0.0 : 0.0 * y[i])"),
    ("sum", "isnan(log(x[i])) ? 0.0 : {z}"),
    ("sum", "isinf(1.0 / x[i]) ? 0.0 : {z}"),
    ("sum", "log(x[i]) != log(x[i]) ? 0.0 : {z}"),
    ("sum", "x[i] / y[i] == x[i] / y[i] ? {z} : 0.0"),
    ("sum", "sqrt(x[i]) < sqrt(x[i]) || y[i] > 0.0 ? {z} : x[i] + y[i] + 0.0 * log(-y[i])"),
    ("quotient", "{z} + 0.0 / x[i]"),
    ("quotient", "{z} + 0.0 * log(y[i])"),
    ("quotients", "{z} + 0.0 / (x[i] + 2.0)"),
    ("log", "{z} + 0.0 * log(-x[i])"),
    ("log", "{z} + 0.0 * log(x[i] - 1.0)"),
    ("sqrt", "{z} * (x[i] / x[i])"),
    ("sqrt", "x[i] / sqrt(x[i])"),
    ("sqrt", "sqrt(x[i]) + 0.0 * log(x[i])"),
    ("sigmoid", "{z} * (x[i] / x[i])"),
    ("power", "{z} + 0.0 * log(y[i])"),
    ("cube", "x[i] * x[i] * x[i] * x[i] / x[i]"),
    ("guarded", "x[i] > 0.0 ? log(x[i]) : y[i] + 0.0 * log(x[i])"),
    ("guarded", "x[i] > 0.0 ? log(x[i]) : y[i] + 0.0 / x[i]"),
    ("guarded", "log(x[i]) * (x[i] > 0.0 ? 1.0 : 0.0) + (x[i] > 0.0 ? 0.0 : y[i])"),
    ("norm", "{z} + 0.0 / (x[i] * x[i] + y[i] * y[i])"),
    ("norm", "{z} + 0.0 / sqrt(x[i] * x[i] + y[i] * y[i])"),
    ("asin", "{z} + 0.0 * atanh(x[i])"),
    ("asin", "{z} + 0.0 * asin(2.0 * x[i])"),
]

RIGHT = [
    ("sum", "{z} + 0.0 / (x[i] * x[i] + 1.0)"),
    ("sum", "{z} + 0.0 * log(exp(x[i]))"),
    ("sum", "{z} + 0.0 * log1p(exp(-fabs(x[i])))"),
    ("sum", "{z} + 0.0 * sqrt(x[i] * x[i] + y[i] * y[i])"),
    ("sum", "{z} + 0.0 * log(fmax(x[i], 0.5))"),
    ("sum", "{z} + 0.0 * asin(sin(x[i]))"),
    ("sum", "{z} + 0.0 * atanh(tanh(x[i]))"),
    ("sum", "{z} + (x[i] > 0.0 ? 0.0 * log(x[i]) : 0.0)"),
    ("sum", "{z} + (x[i] > 1.0 ? 0.0 * log(x[i] - 0.5) : 0.0)"),
    ("sum", "{z} + (x[i] > y[i] ? 0.0 * log(x[i] - y[i]) : 0.0)"),
    ("sum", "{z} + (x[i] == 0.0 ? 0.0 : 0.0 / x[i])"),
    ("sum", "{z} + 0.0 * pow(x[i], 2.0)"),
    ("sum", "{z} + (double)(n) * 0.0 / (double)(n)"),
    ("sum", "x[i] != x[i] ? 0.0 : {z}"),
    ("sum", "isnan(exp(x[i])) ? 0.0 : {z}"),
    ("sum", "isnan(1.0 / (x[i] * x[i] + 1.0)) ? 0.0 : {z}"),
    ("log", "isnan(log(x[i])) ? NAN : {z}"),
    ("quotient", "isinf(1.0 / y[i]) ? 0.0 : {z}"),
    ("quotient", "x[i] * (1.0 / y[i])"),
    ("quotient", "{z} + 0.0 / (y[i] * y[i])"),
    ("quotient", "2.0 * x[i] / (2.0 * y[i])"),
    ("quotients", "x[i] * (1.0 / ((x[i] + 1.0) * y[i]))"),
    ("log", "{z} * (x[i] / x[i])"),
    ("log", "{z} + 0.0 * sqrt(x[i])"),
    ("rsqrt", "1.0 / sqrt(x[i])"),
    ("sigmoid", "1.0 / (1.0 + exp(-x[i]))"),
    ("inverse", "1.0 / (x[i] * x[i])"),
    ("cube", "x[i] * x[i] * x[i]"),
    ("guarded", "x[i] <= 0.0 ? y[i] : log(x[i]) * (x[i] / x[i])"),
    ("asin", "{z} + 0.0 * asin(-x[i])"),
]


@pytest.mark.parametrize(("meaning", "result"), WRONG)
def test_what_need_not_be_defined_is_not_validated(meaning: str, result: str) -> None:
    outcome = _with_result(meaning, result)
    assert not outcome.validated
    assert "shown to be" in outcome.reason, outcome.reason


@pytest.mark.parametrize(("meaning", "result"), RIGHT)
def test_what_is_defined_where_the_graph_is_is_validated(meaning: str, result: str) -> None:
    outcome = _with_result(meaning, result)
    assert outcome.validated, outcome.reason


IN_LOOPS = ("nn_softmax", "nn_log_softmax", "nn_logsumexp", "nn_mse_loss", "nn_gelu", "nn_mish")


def _changed(one: Emitted, more: str) -> Iterator[str]:
    """The text with ``more`` behind a value that reads an input; ``{r}`` is what it reads."""
    text, record, _ = one
    names = "|".join(each.name for each in record.inputs)
    value = rf"[^;?{{}}]*?(?P<read>\b(?:{names})(?:_i)?\[[^][]+\])[^;?{{}}]*"
    pattern = rf"^ +(?:const float )?[\w \[\]*+-]+ \+?= (?P<value>{value});"
    for found in list(re.finditer(pattern, text, re.MULTILINE))[:3]:
        new = f"({found['value']}) {more.format(r=found['read'])}"
        yield text[: found.start("value")] + new + text[found.end("value") :]


@pytest.mark.parametrize("name", IN_LOOPS)
@pytest.mark.parametrize(
    ("more", "right"),
    [
        ("* ({r} / {r})", False), ("+ 0.0f * asinf({r})", False), ("* 1.0f", True),
        ("* (1.0f / (0.0f * {r} + 1.0f))", True),
    ],
)  # fmt: skip
def test_statements_of_shipped_kernels(name: str, more: str, right: bool) -> None:
    texts = 0
    for one in kernels(name).values():
        for text in _changed(one, more):
            assert validate(text, *one[1:]).validated == right, text
            texts += 1
    assert texts


STATEMENTS = [
    ("sum", "z[i] = {z}; if (log(x[i]) > 0.0) z[i] = z[i] + 0.0 * y[i];", False),
    ("sum", "z[i] = {z}; const double t = log(x[i]); if (t != t) z[i] = 0.0;", False),
    (
        "sum",
        "z[i] = {z}; int bad = 0; bad |= 1.0 / x[i] != 1.0 / x[i]; if (bad) z[i] = 0.0;",
        False,
    ),
    ("sum", "z[i] = {z}; if (x[i] > 0.0) z[i] += 0.0 * log(x[i]);", True),
    ("sum", "z[i] = {z}; if (y[i] > 0.0) z[i] += 0.0 * log(x[i]);", False),
    ("sum", "z[i] = {z}; const double t = log(x[i]); (void)t;", True),
    ("sum", "z[i] = {z}; for (int64_t j = 0; j < n; j++) z[i] += 0.0 / x[j];", False),
    ("sum", "z[i] = {z}; for (int64_t j = 0; j < n; j++) z[i] += 0.0 / (x[j] * x[j] + 1.0);", True),
    ("sum", "z[i] = {z}; for (int64_t j = i; j < i; j++) z[i] += 0.0 / x[j];", True),
    ("log", "z[i] = {z}; for (int64_t j = 0; j < n; j++) z[i] += 0.0 / x[j];", False),
    ("log", "z[i] = {z}; const double t = log(x[i]); if (t != t) z[i] = 0.0;", True),
    ("quotient", "z[i] = 1.0; z[i] /= y[i]; z[i] *= x[i];", True),
    ("quotient", "z[i] = 1.0; z[i] /= y[i]; z[i] *= x[i]; z[i] *= y[i]; z[i] /= y[i];", True),
    ("quotient", "z[i] = {z}; z[i] /= x[i]; z[i] *= x[i];", False),
]


@pytest.mark.parametrize(("meaning", "statements", "right"), STATEMENTS)
def test_what_statements_evaluate_on_the_way(meaning: str, statements: str, right: bool) -> None:
    text, record, graph = emitted(KernelPlan("k_defined", _graph(GRAPHS[meaning])))
    found = re.search(r"( +)#pragma omp simd\n +for (.+)\n +z\[i\] = (.+?);\n", text)
    assert found is not None, text
    body = f"for {found[2]} {{ {statements.format(z=found[3])} }}\n"
    outcome = validate(text.replace(found[0], body), record, graph)
    assert outcome.validated == right, outcome.reason


@pytest.mark.parametrize(
    ("more", "right"),
    [("0.0 * top", False), ("m > 0 ? 0.0 * top : 0.0", True), ("m > 1 ? 0.0 * top : 0.0", True)],
)
def test_the_greatest_of_nothing_is_no_number(more: str, right: bool) -> None:
    graph = Graph()
    x = graph.input("x", TensorType(float64, (Dim.size("n"), Dim.size("m"))))
    graph.output("y", graph.apply("sum", x, axes=(1,)))
    text, record, graph = emitted(KernelPlan("k_rows", graph))
    head, tail = text.rsplit("    return 0;", 1)
    loop = f"""
    for (int64_t i = 0; i < n; i++) {{
        double top = -INFINITY;
        for (int64_t j = 0; j < m; j++)
            top = x[i*m + j] > top ? x[i*m + j] : top;
        y[i] += {more};
    }}
    return 0;"""
    step = "x_s0" if "x_s0" in text else "m"
    changed = head + loop.replace("i*m", f"i*{step}") + tail
    outcome = validate(changed, record, graph)
    assert outcome.validated == right, outcome.reason


def test_what_holds_in_one_place_is_not_taken_to_hold_in_others() -> None:
    """``x[min(i, 5)]`` is ``x[i]`` where ``i < 5``, and only there."""
    values = Values(Integers())
    pool = values.pool
    axis = values.axis("i", Dim.size("n"))
    values.integers.add(*values.integers.range_of(axis))
    place = Dim.of(axis)
    cut, own = (pool.access("x", (one,), float64) for one in (least(place, Dim.of(5)), place))

    def formula(first: Expr, second: Expr) -> Expr:
        inverse = values.call("reciprocal", first, dtype=float64)
        early = values.call("lt", pool.integer(place), pool.integer(5), dtype=bool_)
        root = values.call("sqrt", second, dtype=float64)
        chosen = values.call("where", early, root, pool.literal(0.0, float64), dtype=float64)
        return values.call("add", chosen, inverse, dtype=float64)

    check_defined(values, Reals(values), formula(own, cut), formula(own, own), "z")
    with pytest.raises(NotShown, match="shown to be defined"):
        check_defined(values, Reals(values), formula(cut, cut), formula(own, own), "z")


POINTS = np.array([-4.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.25, 1.0, 1.75, 2.0, 4.0])


@pytest.mark.parametrize(("low", "high"), [(-2, 1), (0, 4), (1, 2), (-4, -1), (-1, 0), (-2, 2)])
@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("function", [
    "add", "sub", "mul", "div", "neg", "square", "reciprocal", "abs", "maximum", "minimum", "relu",
    "exp", "log1p", "expm1", "sqrt", "log", "tanh", "softplus", "sigmoid", "log_sigmoid", "hypot",
])  # fmt: skip
def test_values_lie_in_their_range(function: str, low: int, high: int, opened: bool) -> None:
    op, values = get(function), Values(Integers())
    own = Range(Fraction(low), Fraction(high), opened, opened)
    known = {
        values.pool.access("x", (Dim.of(0),), float64): own,
        values.pool.access("y", (Dim.of(0),), float64): Range(Fraction(-1), Fraction(2), opened),
    }
    call = values.call(function, *list(known)[: op.arity], dtype=float64)
    found = Ranges(values, known).of(call)
    sides = [[x for x in POINTS if _lies(x, one)] for one in known.values()][: op.arity]
    grid = [np.array(each) for each in zip(*product(*sides), strict=True)]
    for value in op.numpy(*grid, size=int):
        assert not np.isfinite(value) or _lies(value, found)


def _lies(value: float, one: Range) -> bool:
    low = one.low < value if one.low_open else one.low <= value
    return bool(low and (value < one.high if one.high_open else value <= one.high))
