"""Where backward is not defined though forward is: printed, in terms of the inputs, and once.

Every condition is about an op that has vanished from the normal form, or whose operand forward
does not restrict.  What the conditions of ``where`` exclude, what forward demands itself and what
always holds is not printed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
from symgrad.ir.dtype import float64
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.types import TensorType
from symgrad.ops.record import get
from symgrad.proof.judge.ranges import Ranges
from symgrad.proof.oracle.numbers import Double
from symgrad.proof.oracle.values import Evaluator
from symgrad.proof.report.rendering import worded
from tests.proof.written import function_from

SOURCE = """
def forward(ctx, x):
    ctx.save_for_backward(x)
    return {forward}

def backward(ctx, g):
    (x,) = ctx.saved_tensors
    {before}
    return {backward}
"""


def said(backward: str, forward: str = "x * x", before: str = "pass", **given: Any) -> set[str]:
    """The conditions of a backward that is PROVED, without those on kinks."""
    source = SOURCE.format(forward=forward, before=before, backward=backward)
    report = sg.verify(function_from(source), "n m", **given)
    assert report.verdict is sg.PROVED, str(report)
    kept = [c for c in report.conditions if c.kind not in ("kink", "ties", "declared")]
    return {worded(condition) for condition in kept}


@pytest.mark.parametrize(
    ("term", "conditions"),
    [
        ("(x - 5).reciprocal()", {"except where x == 5"}),
        ("(x - 6) ** -2.0", {"except where x == 6"}),
        ("x / (x * x * x - 27)", {"except where x * x * x == 27"}),
        ("(x + 3).lgamma()", {"if x + 3 is not a pole of lgamma"}),
        ("sg.polygamma(1, x)", {"if x is not a pole of trigamma"}),
        ("1 / (x.sum(1, keepdim=True) - 1)", {"except where x.sum(1) == 1"}),
        ("1 / x.prod()", {"except where x == 0"}),
        ("1 / (x * (x + 1))", {"except where x == 0", "except where x == -1"}),
        ("1 / x.tan()", {"except where x.tan() == 0", "except where x.cos() == 0"}),
        ("1 / (2 - x.abs())", {"except where x.abs() == 2"}),
        ("(x % (x - 2))", {"except where x == 2"}),
        ("1 / (x * x) + 1 / x", {"except where x == 0"}),
    ],
)
@pytest.mark.parametrize(
    "hidden", ["2 * g * x + 0 * t", "2 * g * x + t - t", "2 * g * x + t * (x - x)"]
)
def test_a_term_that_vanishes_is_evaluated(term: str, conditions: set[str], hidden: str) -> None:
    assert said(hidden, before=f"t = {term}") == conditions


@pytest.mark.parametrize(
    ("term", "conditions"),
    [
        ("x.asin()", {"if x >= -1", "if x <= 1"}),
        ("x.erfinv()", {"if x > -1", "if x < 1"}),
        ("(x + 1).acosh()", {"if x >= 0"}),
        ("(x + 9) ** 1.5", {"if x >= -9"}),
    ],
)
def test_a_term_that_is_compared_with_itself(term: str, conditions: set[str]) -> None:
    """Where it is no number, the gradient is 0 instead: seen at points of an open set."""
    source = SOURCE.format(
        forward="x * x", before=f"t = {term}", backward="sg.where(t == t, 2 * g * x, 2 * g * x)"
    )
    report = sg.verify(function_from(source), "n m")
    assert report.verdict is sg.PROVED, str(report)
    assert {worded(condition) for condition in report.conditions} == conditions


DIVISIONS = [
    "x * g / x",
    "g * x * x ** -1",
    "sg.div(x, x) * g",
    "g * x ** 3 / x ** 3",
    "g / (1 / x) / x",
]


@pytest.mark.parametrize("backward", DIVISIONS)
def test_what_cancels_is_divided_by(backward: str) -> None:
    assert said(backward, "x + 0") == {"except where x == 0"}


@pytest.mark.parametrize(
    ("backward", "forward"),
    [
        ("-g / x * (1 / x)", "1 / x"),
        ("g / x + 0 / x", "x.log()"),
        ("2 * g * x + 0 / x.sum(1, keepdim=True)", "x * x + 0 * (1 / x.sum(1, keepdim=True))"),
        ("2 * g * x + 0 / (1 + x.exp())", "x * x"),
        ("2 * g * x + 0 * (1 - x.tanh() ** 2).log()", "x * x"),
        ("2 * g * x + 0 / ((x * x).sum() + 1)", "x * x"),
        ("2 * g * x + 0 / x.shape[1]", "x * x"),
        ("2 * g * x + 0 * x ** 3", "x * x"),
        ("2 * g * x + 0 * (x.sigmoid() + x.abs().exp()).log()", "x * x"),
        ("2 * g * x + sg.where(x > 2, 0 * (x - 1).log(), 0.0)", "x * x"),
        ("2 * g * x + sg.where(x != 0, 0 / x, 0.0)", "x * x"),
        ("2 * g * x + sg.where(x == 0, 0.0, 0 / x)", "x * x"),
        ("2 * g * x + sg.where((x > 1) & (x < 3), 0 / x, 0.0)", "x * x"),
        ("2 * g * x + sg.where(x.abs() > 1e-6, 0 / x, 0.0)", "x * x"),
        ("2 * g * x + 0 / sg.where(x == 0, 1.0, x)", "x * x"),
        ("2 * g * x + 0 / x.abs().clamp(min=1e-6)", "x * x"),
        ("2 * g * x + sg.where(x.exp() > 0, 0.0, 0 / x)", "x * x"),
        ("2 * g * x + sg.where(x > 0, sg.where(x > 1, 0 / x, 0.0), 0.0)", "x * x"),
    ],
)  # fmt: skip
def test_what_is_always_defined_is_not_mentioned(backward: str, forward: str) -> None:
    assert not {one for one in said(backward, forward) if one.startswith("except")}


@pytest.mark.parametrize(
    ("backward", "condition"),
    [
        ("2 * g * x + 0 * sg.where(x > 2, 1.0, 1 / (x - 1))", "except where x == 1"),
        ("2 * g * x + sg.where(x == 0, 0.0, x) * 0 / x", "but where x == 0"),
        ("2 * g * x + sg.where(1 / x > 0, 0.0, 0.0)", "except where x == 0"),
        ("2 * g * x + sg.where(x.sum(1, keepdim=True) == 0, 0.0, 0 / x)", "except where x == 0"),
        ("2 * g * x + sg.where(x >= 0, 0 / x, 0.0)", "except where x == 0"),
        ("2 * g * x + (sg.where(x == 0, 0.0, 1 / x) * x * 0 / x)", "but where x == 0"),
    ],
)
def test_a_branch_that_is_chosen_at_the_point_counts(backward: str, condition: str) -> None:
    assert condition in said(backward)


@pytest.mark.parametrize(
    ("fact", "silent"), [("positive", True), ("nonzero", True), ("[0, 1]", False)]
)
def test_declared_facts_count(fact: str, silent: bool) -> None:
    assert said("2 * g * x + 0 / x", assume={"x": fact}) == (
        set() if silent else {"except where x == 0"}
    )


def test_a_condition_that_is_printed_implies_a_weaker_one() -> None:
    assert said("g / x + g - g / x", "x + 0 * x", before="pass") == {"except where x == 0"}
    hidden = "2 * g * x + 0 * (x + 1).log() + 0 / (x + 1)"
    assert said(hidden, assume={"x": "[-1, 5]"}) == {"if x > -1"}


def test_the_second_order_says_it_too() -> None:
    source = SOURCE.format(
        forward="x ** 3", before="pass", backward="3 * g * x * (x.detach() * 0 + x)"
    )
    report = sg.verify(function_from(source), "n", order=2)
    assert report.verdict is sg.PROVED, str(report)


# -- ranges hold the values

VALUES = [-3.0, -1.0, -0.5, 0.0, 0.25, 1.0, 2.0]
UNARY = [
    "neg",
    "square",
    "abs",
    "exp",
    "reciprocal",
    "sqrt",
    "relu",
    "tanh",
    "log",
    "log1p",
    "rsqrt",
    "sigmoid",
]
BINARY = ["add", "sub", "mul", "div", "maximum", "minimum", "pow"]


STEPS = st.tuples(st.sampled_from([*UNARY, *BINARY]), st.integers(0, 9), st.integers(0, 9))


@given(st.lists(STEPS, min_size=1, max_size=6), st.sampled_from(VALUES))
def test_a_range_holds_every_value(steps: list[tuple[str, int, int]], number: float) -> None:
    graph = Graph()
    x = graph.input("x", TensorType.of(float64, (len(VALUES),)))
    nodes: list[Node] = [x, graph.lift(number, x)]
    values = [np.array(VALUES), np.full(len(VALUES), number)]
    ranges = Ranges({}, {})
    for name, left, right in steps:
        places = [left % len(nodes), right % len(nodes)][: 1 if name in UNARY else 2]
        nodes.append(graph.apply(name, *(nodes[place] for place in places)))
        with np.errstate(all="ignore"):
            values.append(get(name).numpy(*(values[p] for p in places), size=None))
    for node, found in zip(nodes, values, strict=True):
        known = ranges.of(node)
        used = {part.index for part in ancestors([node])}
        fine = np.all(
            [np.isfinite(v) for n, v in zip(nodes, values, strict=True) if n.index in used], axis=0
        )
        for value in found[fine]:
            assert known.low[0] is None or value >= float(known.low[0])
            assert known.high[0] is None or value <= float(known.high[0])
            assert value != 0 or not known.nonzero or node.op in ("exp", "sigmoid", "pow", "rsqrt")


@given(
    st.sampled_from(("lt", "le", "gt", "ge")), st.sampled_from((0.0, 1.0, -2.0, 3.0)),
    st.booleans(), st.booleans(), st.sampled_from(("x", "c", "square", "neg")),
)  # fmt: skip
def test_a_branch_lies_on_the_side_that_it_is_chosen_on(
    relation: str, limit: float, turned: bool, first: bool, beside: str
) -> None:
    graph = Graph()
    x = graph.input("x", TensorType.of(float64, (len(VALUES),)))
    c = graph.lift(limit, x)
    other = {"x": x, "c": c}[beside] if beside in "xc" else graph.apply(beside, x)
    condition = graph.apply(relation, *((c, x) if turned else (x, c)))
    node = graph.apply("where", condition, *((x, other) if first else (other, x)))
    known = Ranges({}, {}).of(node)
    values = Evaluator([node]).run(Double(), {"x": np.array(VALUES)}, {})[node]
    for value in values:
        assert known.low[0] is None or value >= known.low[0]
        assert known.high[0] is None or value <= known.high[0]
        assert value != known.low[0] or not known.low[1]
        assert value != known.high[0] or not known.high[1]
    if beside == "c":  # a clamp, or what is cut off on the other side
        assert (known.low[0] is None) != (known.high[0] is None)


NAN = """
def forward(ctx, x):
    y = sg.where(x > 3, float("nan"), x * x)
    ctx.save_for_backward(x, y)
    return y

def backward(ctx, g):
    x, y = ctx.saved_tensors
    return {}
"""


@pytest.mark.parametrize(
    ("backward", "verdict"),
    [
        ("2 * g * x", "PROVED"),
        ("sg.where(x > 2, 7 * g, 2 * g * x)", "REFUTED"),
        ("3 * g * x", "REFUTED"),
    ],
)
def test_nothing_is_claimed_where_forward_is_nan(backward: str, verdict: str) -> None:
    report = sg.verify(function_from(NAN.format(backward)), "n", suggest=False)
    assert report.verdict == verdict
    assert verdict == "REFUTED" or "forward is not NaN" in str(report)


def test_a_gradient_that_may_be_nan_is_not_proved() -> None:
    source = NAN.replace('float("nan")', "x * x").format('sg.where(x > 3, float("nan"), 2 * g * x)')
    assert sg.verify(function_from(source), "n", suggest=False).verdict != "PROVED"


@pytest.mark.parametrize(
    "total",
    [
        "x[1:].softmax(0).sum(0)",
        "x[: x.shape[0] - 1].softmax(0).sum(0)",
        "x[1:].log_softmax(0).exp().sum(0)",
        "(x[1:] - x[1:].logsumexp(0)).exp().sum(0)",
        "1 + 0 * x[1:].logsumexp(0)",
    ],
)
def test_an_axis_that_may_have_no_elements(total: str) -> None:
    """At one row the sum is 0, or its logarithm is infinite: that is printed."""
    assert any("n == 1" in condition for condition in said(f"2 * g * x * {total}"))
    whole = total.replace("x[1:]", "x").replace("x[: x.shape[0] - 1]", "x")
    assert not said(f"2 * g * x * {whole}")
