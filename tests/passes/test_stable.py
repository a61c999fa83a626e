"""Stable forms are what they are put for, finite where that is, and refused where they are not."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
from symgrad.frontend.trace import trace_request
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import float64
from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.types import TensorType
from symgrad.kernels import OpPlan, plan, with_backward
from symgrad.ops.record import apply
from symgrad.passes import stable
from symgrad.passes.evaluate import evaluate
from symgrad.passes.restate import Steps, restated
from symgrad.passes.stable import Forms
from symgrad.proof.judge.same import is_same
from symgrad.shapes import requested
from symgrad.validate.forms import is_restated
from symgrad.validate.symbolic.written import STABLE
from symgrad.validation import NOT_VALIDATED, VALIDATED, validated
from tests.graphs import Example, examples

Program = Callable[..., Any]


@dataclass(frozen=True)
class Form:
    """A program of one tensor, and the same with mpmath."""

    name: str
    program: Program
    true: Program

    def __str__(self) -> str:
        return self.name


ELEMENTWISE = [
    Form("log1p(exp(x))", lambda x: sg.log1p(sg.exp(x)), lambda m, x: m.log1p(m.exp(x))),
    Form("log(1 + exp(x))", lambda x: sg.log(1 + sg.exp(x)), lambda m, x: m.log(1 + m.exp(x))),
    Form("log(exp(x) + exp(2x))", lambda x: sg.log(sg.exp(x) + sg.exp(2 * x)),
         lambda m, x: m.log(m.exp(x) + m.exp(2 * x))),
    Form("log(sigmoid(x))", lambda x: sg.log(sg.sigmoid(x)), lambda m, x: -m.log(1 + m.exp(-x))),
    Form("log(1/(1 + exp(-x)))", lambda x: sg.log(1 / (1 + sg.exp(-x))),
         lambda m, x: -m.log(1 + m.exp(-x))),
    Form("log(1 - sigmoid(x))", lambda x: sg.log(1 - sg.sigmoid(x)),
         lambda m, x: -m.log(1 + m.exp(x))),
    Form("log1p(-sigmoid(x))", lambda x: sg.log1p(-sg.sigmoid(x)),
         lambda m, x: -m.log(1 + m.exp(x))),
    Form("x - log(1 + exp(x))", lambda x: x - sg.log(1 + sg.exp(x)),
         lambda m, x: x - m.log(1 + m.exp(x))),
    Form("log1p(exp(x)) - x", lambda x: sg.log1p(sg.exp(x)) - x,
         lambda m, x: m.log(1 + m.exp(x)) - x),
    Form("exp(x)/(1 + exp(x))", lambda x: sg.exp(x) / (1 + sg.exp(x)),
         lambda m, x: m.exp(x) / (1 + m.exp(x))),
    Form("1/(1 + exp(-x))", lambda x: 1 / (1 + sg.exp(-x)), lambda m, x: 1 / (1 + m.exp(-x))),
    Form("x/(1 + exp(-x))", lambda x: x / (1 + sg.exp(-x)), lambda m, x: x / (1 + m.exp(-x))),
    Form("3x exp(x) (1/(1 + exp(x)))", lambda x: 3 * x * sg.exp(x) * (1 / (1 + sg.exp(x))),
         lambda m, x: 3 * x * m.exp(x) / (1 + m.exp(x))),
    Form("exp(2x)/(exp(x) + exp(2x))", lambda x: sg.exp(2 * x) / (sg.exp(x) + sg.exp(2 * x)),
         lambda m, x: m.exp(2 * x) / (m.exp(x) + m.exp(2 * x))),
    Form("exp(x)/(1 + exp(x))^2", lambda x: sg.exp(x) / (1 + sg.exp(x)) ** 2,
         lambda m, x: m.exp(x) / (1 + m.exp(x)) ** 2),
    Form("1 - sigmoid(x)", lambda x: 1 - sg.sigmoid(x), lambda m, x: 1 / (1 + m.exp(x))),
    Form("1 - tanh(x)^2", lambda x: 1 - sg.tanh(x) ** 2, lambda m, x: m.cosh(x) ** -2),
    Form("1 + tanh(x)", lambda x: 1 + sg.tanh(x), lambda m, x: 2 / (1 + m.exp(-2 * x))),
    Form("1 - tanh(x)", lambda x: 1 - sg.tanh(x), lambda m, x: 2 / (1 + m.exp(2 * x))),
    Form("x (tanh(3x) + 1)", lambda x: x * (sg.tanh(x * 3) + 1),
         lambda m, x: 2 * x / (1 + m.exp(-6 * x))),
    Form("x/(exp(x) - 1)", lambda x: x / (sg.exp(x) - 1), lambda m, x: x / (m.exp(x) - 1)),
    Form("x/expm1(x)", lambda x: x / sg.expm1(x), lambda m, x: x / (m.exp(x) - 1)),
    Form("log(cosh(x))", lambda x: sg.log(sg.cosh(x)), lambda m, x: m.log(m.cosh(x))),
    Form("sinh(x)/cosh(x)", lambda x: sg.sinh(x) / sg.cosh(x), lambda m, x: m.tanh(x)),
    Form("log(2 + exp(x))", lambda x: sg.log(2 + sg.exp(x)), lambda m, x: m.log(2 + m.exp(x))),
    Form("exp(x)/(3 + exp(x))", lambda x: sg.exp(x) / (3 + sg.exp(x)),
         lambda m, x: m.exp(x) / (3 + m.exp(x))),
    Form("(exp(2x) - 1)/(exp(2x) + 1)", lambda x: (sg.exp(2 * x) - 1) / (sg.exp(2 * x) + 1),
         lambda m, x: m.tanh(x)),
    Form("(1 - exp(-2x))/(1 + exp(-2x))", lambda x: (1 - sg.exp(-2 * x)) / (1 + sg.exp(-2 * x)),
         lambda m, x: m.tanh(x)),
    Form("(exp(x) - exp(-x))/(exp(x) + exp(-x))",
         lambda x: (sg.exp(x) - sg.exp(-x)) / (sg.exp(x) + sg.exp(-x)), lambda m, x: m.tanh(x)),
]  # fmt: skip
POSITIVE = [
    Form("log(exp(x) - 1)", lambda x: sg.log(sg.exp(x) - 1), lambda m, x: m.log(m.exp(x) - 1)),
]
ROWS = [
    Form("log(sum(exp(x)))", lambda x: sg.log(sg.exp(x).sum(-1, keepdim=True)),
         lambda m, x, i: m.log(sum(map(m.exp, x)))),
    Form("log(mean(exp(x)))", lambda x: sg.log(sg.exp(x).mean(-1, keepdim=True)),
         lambda m, x, i: m.log(sum(map(m.exp, x)) / len(x))),
    Form("log(sum(exp(x)(1 + x^2)))",
         lambda x: sg.log((sg.exp(x) * (1 + x * x)).sum(-1, keepdim=True)),
         lambda m, x, i: m.log(sum(m.exp(v) * (1 + v * v) for v in x))),
    Form("sum(x exp(x))/sum(exp(x))",
         lambda x: (sg.exp(x) * x).sum(-1, keepdim=True) / sg.exp(x).sum(-1, keepdim=True),
         lambda m, x, i: sum(m.exp(v) * v for v in x) / sum(map(m.exp, x))),
    Form("exp(x)/sum(exp(x))", lambda x: sg.exp(x) / sg.exp(x).sum(-1, keepdim=True),
         lambda m, x, i: m.exp(x[i]) / sum(map(m.exp, x))),
    Form("log(exp(x)/sum(exp(x)))",
         lambda x: sg.log(sg.exp(x) / sg.exp(x).sum(-1, keepdim=True)),
         lambda m, x, i: x[i] - m.log(sum(map(m.exp, x)))),
    Form("x - log(sum(exp(x)))", lambda x: x - sg.log(sg.exp(x).sum(-1, keepdim=True)),
         lambda m, x, i: x[i] - m.log(sum(map(m.exp, x)))),
    Form("log(softmax(x))", lambda x: sg.log(sg.softmax(x, -1)),
         lambda m, x, i: x[i] - m.log(sum(map(m.exp, x)))),
]  # fmt: skip
POINTS = (-200.0, -95.0, -20.0, -1.0, 0.25, 1.0, 20.0, 95.0, 200.0)
SCALES = {"f32": 1, "f64": 8}
"""By which the points are multiplied: exponentials overflow at 88.7 and 709.8."""
KINDS: dict[str, Any] = {"f32": np.float32, "f64": np.float64}


def _function(program: Program) -> type[sg.Function]:
    return type("Made", (sg.Function,), {"forward": staticmethod(lambda ctx, x: program(x))})


def _traced(function: Any, *specs: str) -> FunctionGraphs:
    return trace_request(requested(function, specs))


def _plan(program: Program, dtype: str = "f32") -> OpPlan:
    return plan(_traced(_function(program), f"{dtype}[n m]"))


def _values(case: FunctionCase, x: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """The output of a case, and its gradient where all cotangents are 1."""
    (gradient,) = case.gradients
    assert gradient.node is not None
    (output,), (cotangent,) = case.outputs, case.cotangents
    sizes = {"n": x.shape[0], "m": x.shape[1]}
    shape = [dim.at(sizes) for dim in output.shape]
    feeds = {"x": x}
    if cotangent in ancestors([gradient.node]):
        assert cotangent is not None
        feeds[cotangent.attributes["name"]] = np.ones(shape, x.dtype)
    with np.errstate(all="ignore"):
        return evaluate([output, gradient.node], feeds, sizes)


@pytest.mark.parametrize("dtype", SCALES)
@pytest.mark.parametrize("form", [*ELEMENTWISE, *POSITIVE], ids=str)
def test_values_and_derived_gradients_are_finite_and_near_the_true_ones(
    form: Form, dtype: str
) -> None:
    points = [p * SCALES[dtype] for p in POINTS if p > 0 or form not in POSITIVE]
    x = np.array([points], KINDS[dtype])
    found = _values(_plan(form.program, dtype).graphs.cases[0], x)
    with mpmath.workdps(190 * SCALES[dtype]):
        m = mpmath.mp
        true = [[float(form.true(m, m.mpf(p))) for p in points]]
        slope = [[float(mpmath.diff(lambda t: form.true(m, t), m.mpf(p))) for p in points]]
    tiny = {"f32": 3e-6, "f64": 1e-14}[dtype]
    np.testing.assert_allclose(found[0], true, rtol=10 * tiny, atol=tiny)
    np.testing.assert_allclose(found[1], slope, rtol=10 * tiny, atol=tiny)


@pytest.mark.parametrize("dtype", SCALES)
@pytest.mark.parametrize("form", ROWS, ids=str)
def test_rows_are_finite_and_near_the_true_ones(form: Form, dtype: str) -> None:
    scale = SCALES[dtype]
    rows = [(1, 2, 3), (200, 199, -200), (-300, -301, -299), (95, 95, 95)]
    x = np.array([[v * scale for v in row] for row in rows], KINDS[dtype])
    found, gradient = _values(_plan(form.program, dtype).graphs.cases[0], x)
    with mpmath.workdps(190 * SCALES[dtype]):
        m = mpmath.mp
        true = [
            [float(form.true(m, [m.mpf(float(v)) for v in row], i)) for i in range(found.shape[1])]
            for row in x
        ]
    tiny = {"f32": 3e-6, "f64": 1e-14}[dtype]
    np.testing.assert_allclose(found, true, rtol=10 * tiny, atol=100 * scale * tiny)
    assert np.isfinite(gradient).all()


@pytest.mark.slow
@pytest.mark.parametrize("form", [*ELEMENTWISE, *POSITIVE, *ROWS], ids=str)
def test_its_kernels_are_validated_and_say_so(form: Form) -> None:
    planned = _plan(form.program)
    assert planned.steps.everywhere
    assert planned.restated
    emitted, found = validated(planned, "", cached=False)
    assert found.verdict == VALIDATED, "\n".join(map(str, found.findings))
    for one in found.kernels:
        assert (STABLE in (one.written or ())) == (one.name in planned.restated)
    texts = (" ".join(text.replace("*", "").split()) for text in emitted.texts.values())
    assert any(STABLE in text for text in texts)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", SCALES)
@pytest.mark.parametrize(
    "form", [ELEMENTWISE[0], ELEMENTWISE[9], ELEMENTWISE[-1], *ROWS[:3]], ids=str
)
def test_compiled_kernels_are_finite_and_keep_nan(form: Form, dtype: str) -> None:
    op = sg.compile(_function(form.program), f"{dtype}[n m]", validate=True)
    x = np.array([[p * SCALES[dtype] for p in POINTS]], KINDS[dtype])
    y: Any
    y, residuals = op.forward(x)
    gradient: Any
    (gradient,) = op.backward(residuals, np.ones_like(y))
    wanted = _values(_plan(form.program, dtype).graphs.cases[0], x)
    np.testing.assert_allclose(y, wanted[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gradient, wanted[1], rtol=1e-5, atol=1e-6)
    y, residuals = op.forward(np.full((1, 1), np.nan, KINDS[dtype]))
    assert np.isnan(y).all()
    (gradient,) = op.backward(residuals, np.ones_like(y))
    assert np.isnan(gradient).all()


LIMITS = {
    ELEMENTWISE[0]: ([0, np.inf], [0, 1]), ELEMENTWISE[3]: ([-np.inf, 0], [1, 0]),
    ELEMENTWISE[5]: ([0, -np.inf], [0, -1]), ELEMENTWISE[7]: ([-np.inf, 0], [1, 0]),
    ELEMENTWISE[9]: ([0, 1], [0, 0]), ELEMENTWISE[14]: ([0, 0], [0, 0]),
    ELEMENTWISE[16]: ([0, 0], [0, 0]), ELEMENTWISE[-1]: ([-1, 1], [0, 0]),
}  # fmt: skip


@pytest.mark.parametrize("form", LIMITS, ids=str)
def test_infinities_give_the_limits(form: Form) -> None:
    case = _plan(form.program).graphs.cases[0]
    found = _values(case, np.array([[-np.inf, np.inf]], np.float32))
    for values, wanted in zip(found, LIMITS[form], strict=True):
        np.testing.assert_array_equal(values, [wanted])
    assert all(np.isnan(one).all() for one in _values(case, np.full((1, 1), np.nan, np.float32)))


# -- what is saved


class Saved(sg.Function):
    """Softplus that keeps the exponential."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        e = sg.exp(x)
        ctx.save_for_backward(e)
        return sg.log(1 + e)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (e,) = ctx.saved_tensors
        return grad * e / (1 + e)


class Again(Saved):
    """Softplus whose backward computes the exponential again."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return sg.log(1 + sg.exp(x))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        e = sg.exp(x)
        return grad * e / (1 + e)


def _ops(node: Node | None) -> set[str]:
    return set() if node is None else {one.op for one in ancestors([node])}


def test_backward_does_not_look_below_what_is_saved() -> None:
    planned = plan(_traced(Saved, "f32[n]"))
    (case,) = planned.cases
    assert "softplus" in _ops(case.case.outputs[0])
    (backward,) = (one for one in case.backward if one is not None)
    assert set(backward.graph.inputs) == {"e", "grad_output"}
    assert planned.restated == {case.inference.name, case.forward.name}
    assert validated(planned, "", cached=False)[1].verdict == VALIDATED


def test_a_hand_written_backward_has_stable_forms() -> None:
    (case,) = plan(_traced(Again, "f32[n]")).graphs.cases
    (gradient,) = case.gradients
    assert "sigmoid" in _ops(gradient.node)
    assert "div" not in _ops(gradient.node)


class Greatest(sg.Function):
    """The greatest softplus of a row; backward looks for where it is."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        e = sg.exp(x)
        greatest = sg.log(1 + e).amax(-1, keepdim=True)
        ctx.save_for_backward(e, greatest)
        return greatest

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        e, greatest = ctx.saved_tensors
        return sg.where(sg.log(1 + e) == greatest, grad * e / (1 + e), 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("derived", [False, True])
def test_what_is_compared_with_its_maximum_is_found(derived: bool) -> None:
    def program(x: Any) -> Any:
        return sg.log(1 + sg.exp(x)).amax(-1, keepdim=True)

    function = _function(program) if derived else Greatest
    op = sg.compile(function, "f32[n m]", allow=("REFUTED", "UNDECIDED"))
    x = np.random.default_rng(0).standard_normal((500, 7)).astype(np.float32)
    y: Any
    y, residuals = op.forward(x)
    gradient: Any
    (gradient,) = op.backward(residuals, np.ones_like(y))
    assert (np.argmax(gradient, -1) == np.argmax(x, -1)).all()
    assert (np.count_nonzero(gradient, -1) >= 1).all()


def test_what_is_traced_stays_as_it_is() -> None:
    graphs = _traced(Again, "f32[n]")
    nodes = [len(case.graph.nodes) for case in graphs.cases]
    planned = plan(graphs)
    assert planned.traced == graphs
    assert [len(case.graph.nodes) for case in graphs.cases] == nodes


# -- what is refused


def _leaf(graph: Graph, name: str) -> Node:
    return graph.input(name, TensorType(float64, (Dim.size("n"),)))


def _shifted_twice(x: Node) -> Node:
    return apply("log", apply("exp", x - apply("shift", x))) + x


FALSE: dict[str, Callable[[Node, Node], tuple[Node, Node]]] = {
    "the other sign": lambda x, y: (apply("log1p", apply("exp", x)), apply("softplus", -x)),
    "another constant": lambda x, y: (
        apply("exp", x) / (2.0 + apply("exp", x)), apply("sigmoid", x),
    ),
    "no square": lambda x, y: (1.0 - apply("tanh", x), 1.0 - apply("square", apply("tanh", x))),
    "defined at less": lambda x, y: (x, apply("exp", apply("log", x))),
    "a quotient of zeros": lambda x, y: (x, x * y / y),
    "logarithms of negative numbers": lambda x, y: (
        apply("log", x * y), apply("log", x) + apply("log", y),
    ),
    "a divisor that is another input": lambda x, y: (x / apply("square", y), x * y / y / x / x),
    "a root that is multiplied by 0": lambda x, y: (x, x + 0.0 * apply("sqrt", y)),
    "a kink": lambda x, y: (apply("sqrt", apply("square", x)), apply("abs", x)),
    "a shift that has to be the input": lambda x, y: (x + 0.0 * y, _shifted_twice(x)),
}  # fmt: skip


@pytest.mark.parametrize("name", FALSE)
def test_what_is_not_the_same_is_refused(name: str) -> None:
    graph = Graph()
    assert not is_same(*FALSE[name](_leaf(graph, "x"), _leaf(graph, "y")))


def test_products_of_products_are_looked_at_up_to_a_number_of_factors() -> None:
    graph = Graph()
    x = apply("exp", _leaf(graph, "x"))
    for _ in range(60):
        x = x * (x + 1.0) / (x * 2.0)
    assert len(Forms(is_same).factors(x)) <= stable.MOST_FACTORS


def test_a_wrong_rule_puts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(forms: Forms, node: Node) -> Node | None:
        x = forms.of(node.args[0], "exp")
        return None if x is None else apply("softplus", x + x)

    monkeypatch.setitem(stable.RULES, "log1p", (wrong,))
    (case,) = _plan(ELEMENTWISE[0].program).graphs.cases
    assert {"log1p", "exp"} <= _ops(case.outputs[0])


def test_a_wrong_step_is_not_validated() -> None:
    planned = _plan(ELEMENTWISE[0].program)
    ((node, found),) = planned.steps.everywhere.items()
    x = found.args[0]
    assert is_restated(planned.traced, planned.graphs, planned.steps)
    assert not is_restated(planned.traced, planned.graphs, Steps())
    assert not is_restated(planned.traced, planned.graphs, Steps({node: apply("softplus", -x)}))
    wrong = replace(planned, steps=Steps())
    assert validated(wrong, "", cached=False)[1].verdict == NOT_VALIDATED


@given(examples())
def test_random_graphs_keep_their_values(example: Example) -> None:
    names = tuple(example.graph.inputs)
    outputs = tuple(example.graph.outputs.values())
    case = FunctionCase(
        (), example.graph, tuple(example.graph.inputs.values()), outputs,
        tuple(example.graph.outputs), (None,) * len(outputs), (), (),
    )  # fmt: skip
    graphs = FunctionGraphs("Random", None, (case,), names, (), derived=False)
    forms = Forms(is_same)
    (found,) = restated(graphs, forms).cases
    assert _finite(example, found.outputs, outputs)
    assert is_restated(graphs, replace(graphs, cases=(found,)), Steps(forms.steps))


@given(st.integers(0, 2**32))
def test_random_programs_of_exponentials_keep_values_and_gradients(seed: int) -> None:
    graphs = _of_exponentials(random.Random(seed))
    forms = Forms(is_same)
    found = restated(graphs, forms)
    assert is_restated(graphs, found, Steps(forms.steps))
    (old,), (new,) = with_backward(graphs).cases, found.cases
    points = np.meshgrid([-2.3, -0.4, 0.3, 1.7], [-1.9, -0.2, 0.6, 2.1])
    feeds = dict(
        zip(("x", "y", "g"), [one.ravel() for one in [*points, points[0] + 3]], strict=True)
    )
    for left, right in zip(_computed(new), _computed(old), strict=True):
        with np.errstate(all="ignore"):
            (one,) = evaluate([left], {n: feeds[n] for n in left.graph.inputs}, {"n": 16})
            (other,) = evaluate([right], {n: feeds[n] for n in right.graph.inputs}, {"n": 16})
        there = np.isfinite(other)
        size = np.abs(other[there]).max(initial=1)
        np.testing.assert_allclose(one[there], other[there], rtol=1e-5, atol=1e-7 * size)


def _computed(case: FunctionCase) -> list[Node]:
    nodes = [*case.outputs, *(one.node for one in case.gradients)]
    return [node for node in nodes if node is not None]


def _of_exponentials(source: random.Random) -> FunctionGraphs:
    """A program in which forms are likely."""
    graph = Graph()
    x, y, cotangent = (_leaf(graph, name) for name in ("x", "y", "g"))
    nodes, exps = [x, y, -x], [apply("exp", one) for one in (x, y, -x)]
    for _ in range(source.randint(3, 9)):
        a, b = source.choice(nodes + exps), source.choice(nodes + exps)
        e, f = source.choice(exps), source.choice(exps)
        op = source.choice(("log", "log1p", "sigmoid", "square", "reciprocal", "tanh"))
        made = (1.0 + e, e + f, e - 1.0, e - f, a * b, a / b, a / (e + f), 1.0 - b, a - b)
        nodes.append(apply(op, a) if source.random() < 0.4 else source.choice(made))
        if source.random() < 0.3:
            exps.append(apply("exp", source.choice(nodes)))
    case = FunctionCase((), graph, (x, y), (nodes[-1],), ("z",), (cotangent,), (), ())
    return FunctionGraphs("Random", None, (case,), ("x", "y"), ("x", "y"), derived=True)


def _finite(example: Example, found: Sequence[Node], wanted: Sequence[Node]) -> bool:
    """Are values near each other, where what was traced has finite ones?"""
    with np.errstate(all="ignore"):
        left = evaluate(list(found), example.feeds, example.sizes)
        right = evaluate(list(wanted), example.feeds, example.sizes)
    return all(
        np.allclose(one[there], other[there], rtol=1e-6, atol=1e-6)
        for one, other in zip(left, right, strict=True)
        for there in [np.isfinite(other)]
    )
