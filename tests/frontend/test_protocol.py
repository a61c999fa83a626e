"""``sg.Function`` keeps PyTorch's contract, in every style."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.errors import ProtocolError, SpecError, TraceError
from symgrad.frontend.trace import trace
from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.passes.evaluate import evaluate
from tests.frontend.support import case_for


def only(graphs: FunctionGraphs) -> FunctionCase:
    (case,) = graphs.cases
    assert case.problem is None, case.problem
    return case


def gradients(case: FunctionCase, **feeds: Any) -> list[Any]:
    """The gradients for these arrays; None where there is none."""
    arrays = {name: np.asarray(value, np.float32) for name, value in feeds.items()}
    nodes = [gradient.node for gradient in case.gradients]
    values = iter(evaluate([node for node in nodes if node is not None], arrays))
    return [None if node is None else next(values) for node in nodes]


class Linear(sg.Function):
    """PyTorch's documented example."""

    @staticmethod
    def forward(ctx, input, weight, bias=None):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0).squeeze(0)
        return grad_input, grad_weight, grad_bias


def test_linear_is_wrong_for_one_output_only() -> None:
    graphs = trace(Linear, "n m", "k m", "k")
    assert [[str(c) for c in case.conditions] for case in graphs.cases] == [["k != 1"], ["k == 1"]]
    general, single = graphs.cases
    assert [gradient.problem for gradient in general.gradients] == [None] * 3
    problem = single.gradients[2].problem
    assert problem is not None
    assert "shape [], bias has [1]" in str(problem)
    assert problem.location is not None
    assert problem.location.file == __file__
    assert (general.output_names, graphs.differentiable) == (
        ("output",), ("input", "weight", "bias"),
    )  # fmt: skip


def test_linear_without_bias() -> None:
    for graphs in (trace(Linear, "n m", "k m"), trace(Linear, "n m", "k m", None)):
        case = only(graphs)
        assert [gradient.input for gradient in case.gradients] == ["input", "weight"]
        assert graphs.input_names == ("input", "weight")


def test_needs_input_grad_mask() -> None:
    case = only(trace(Linear, "n m", "k m", needs_input_grad=(False, True)))
    assert [gradient.node is None for gradient in case.gradients] == [True, False]
    named = only(trace(Linear, "n m", "k m", needs_input_grad={"weight": False}))
    assert [gradient.node is None for gradient in named.gradients] == [False, True]
    with pytest.raises(SpecError, match="1 value, 2 expected, one for each input"):
        trace(Linear, "n m", "k m", needs_input_grad=(True,))


def _static() -> Any:
    class Exp(sg.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_y):  # type: ignore[no-untyped-def]
            (y,) = ctx.saved_tensors
            return grad_y * y

    return Exp


def _setup_context() -> Any:
    class Exp(sg.Function):
        @staticmethod
        def forward(x):  # type: ignore[no-untyped-def]
            return x.exp()

        @staticmethod
        def setup_context(ctx, inputs, output):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, grad_y):  # type: ignore[no-untyped-def]
            (y,) = ctx.saved_variables
            return grad_y * y

    return Exp


def _class_methods() -> Any:
    class Exp(sg.Function):
        @classmethod
        def forward(cls, ctx, x):  # type: ignore[no-untyped-def]
            ctx.y = cls.compute(x)
            return ctx.y

        @classmethod
        def compute(cls, x: Any) -> Any:
            return x.exp()

        @classmethod
        def backward(cls, ctx, grad_y):  # type: ignore[no-untyped-def]
            return grad_y * ctx.y

    return Exp


def _instance() -> Any:
    class Exp(sg.Function):
        def __init__(self, scale=1.0):  # type: ignore[no-untyped-def]
            self.scale = scale

        def forward(self, x):  # type: ignore[no-untyped-def, override]
            y = x.exp() * self.scale
            self.save_for_backward(y)
            return y

        def backward(self, grad_y):  # type: ignore[no-untyped-def, override]
            (y,) = self.saved_tensors
            return grad_y * y if self.needs_input_grad[0] else None

    return Exp


def _undecorated() -> Any:
    class Exp(sg.Function):
        def forward(ctx, x):  # type: ignore[no-untyped-def, override]
            ctx.y = x.exp()
            return ctx.y

        def backward(ctx, grad_y):  # type: ignore[no-untyped-def, override]
            return grad_y * ctx.y

    return Exp


STYLES = [_static, _setup_context, _class_methods, _instance, _undecorated]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: str(style.__name__))
def test_styles(style: Any) -> None:
    case = only(trace(style(), "n m"))
    assert (case.output_names, [node.label for node in case.saved]) == (("y",), ["y"])
    (found,) = gradients(case, x=[[0.0, 1.0]], grad_y=[[2.0, 3.0]])
    np.testing.assert_allclose(found, [[2.0, 3 * np.e]], rtol=1e-6)


def test_instance_with_arguments() -> None:
    made = _instance()
    for graphs in (trace(made(3.0), "n"), trace(made, "n", static={"scale": 3.0})):
        (found,) = gradients(only(graphs), x=[0.0], grad_y=[1.0])
        np.testing.assert_allclose(found, [3.0])


class Scale(sg.Function):
    """Plain arguments, one of which has a tensor-like name."""

    @staticmethod
    def forward(ctx, x, factor, x_requires_grad=True, mode="plain"):  # type: ignore[no-untyped-def]
        ctx.factor, ctx.wanted = factor, x_requires_grad
        assert mode == "plain"
        return x * factor

    @staticmethod
    def backward(ctx, grad_y):  # type: ignore[no-untyped-def]
        return (grad_y * ctx.factor if ctx.wanted else None), None, None, None


def test_plain_arguments() -> None:
    graphs = trace(Scale, "n", static={"factor": 2.5})
    assert dict(graphs.static) == {"factor": 2.5}
    (found,) = gradients(only(graphs), x=[1.0], grad_y=[2.0])
    np.testing.assert_allclose(found, [5.0])
    off = only(trace(Scale, "n", 2.0, static={"x_requires_grad": False}))
    assert off.gradients[0].node is None
    with pytest.raises(SpecError, match="factor"):
        trace(Scale, "n")
    with pytest.raises(SpecError, match="too many"):
        trace(Scale, "n", "n", "n")
    with pytest.raises(SpecError, match="no argument 'facto'"):
        trace(Scale, "n", static={"factor": 1.0, "facto": 2})


def returning(value: Any, arguments: int = 1) -> Any:
    """A Function of x (and a plain number) whose backward returns what ``value`` makes of g."""

    class Returns(sg.Function):
        @staticmethod
        def forward(ctx, x, number=1.0):  # type: ignore[no-untyped-def]
            return x * number

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            return value(g)

    specs = ("n",) if arguments == 1 else ("n", 2.0)
    return trace(Returns, *specs).cases[0]


def test_surplus_nones_are_ignored() -> None:
    assert returning(lambda g: (g, None, None)).problem is None
    assert returning(lambda g: (g, None), arguments=2).problem is None


@pytest.mark.parametrize(
    ("value", "arguments", "message"),
    [
        (lambda g: (g, g), 1, "2 gradients for 1 argument"),
        (lambda g: g, 2, "1 gradient for 2 arguments"),
        (lambda g: (g, g), 2, "'number'"),
        (lambda g: [g], 1, "list"),
        (lambda g: 1.0, 1, "float"),
        (lambda g: g.unknown(), 1, "no attribute 'unknown'"),
        (lambda g: g + None, 1, "TypeError"),
    ],
    ids=["many", "few", "plain", "list", "number", "name", "type"],
)
def test_what_backward_may_not_return(value: Any, arguments: int, message: str) -> None:
    case = returning(value, arguments)
    assert case.gradients == ()
    assert isinstance(case.problem, TraceError)
    assert message in str(case.problem)


def test_gradient_is_summed_down_as_torch_does() -> None:
    case = returning(lambda g: g.unsqueeze(0).expand(3, -1) * 2)
    (gradient,) = case.gradients
    assert gradient.returned is not gradient.node
    np.testing.assert_allclose(gradients(case, grad_output=[1.0, 2.0]), [[6.0, 12.0]])


def test_missing_backward_is_derived() -> None:
    class Square(sg.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x * x

    graphs = trace(Square, "n")
    assert graphs.derived
    assert only(graphs).gradients == ()
    assert [node.label for node in only(graphs).cotangents if node] == ["grad_output"]


def test_derived_backward_refuses_a_cut() -> None:
    class StraightThrough(sg.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x + (x.round() - x).detach()

    with pytest.raises(ProtocolError, match="write the backward"):
        trace(StraightThrough, "n")


class Both(sg.Function):
    """Two outputs: one marked, one of integers, one plain value."""

    @staticmethod
    def forward(ctx, x, keep=False):  # type: ignore[no-untyped-def]
        best, where = x.max(1)
        scale = x * 2
        ctx.mark_non_differentiable(scale)
        ctx.set_materialize_grads(not keep)
        return best, where, scale, "text", x.exp()

    @staticmethod
    def backward(ctx, grad_best, grad_where, grad_scale, grad_text, grad_power):  # type: ignore[no-untyped-def]
        ctx.seen = [grad_where, grad_scale, grad_text, grad_power]
        assert grad_text is None
        total = grad_power
        for part in (grad_where, grad_scale):
            if part is not None:
                total = total + (part if part.ndim == 2 else part.unsqueeze(1))
        return total, None


def test_several_outputs() -> None:
    case = only(trace(Both, "n m", static={"keep": False}))
    assert case.output_names == ("best", "where", "scale", "power")
    assert [node and node.label for node in case.cotangents] == [
        "grad_best", None, None, "grad_power",
    ]  # fmt: skip
    kept = only(trace(Both, "n m", static={"keep": True}))
    assert kept.gradients[0].node is kept.cotangents[3]


def test_cotangents_that_are_not_given() -> None:
    class Pair(sg.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):  # type: ignore[no-untyped-def]
            return a * 2 if b is None else b * 3

    case = only(trace(Pair, "n", given_cotangents=(True, False)))
    assert [node is None for node in case.cotangents] == [False, True]
    (found,) = gradients(case, grad_output_0=[1.0])
    np.testing.assert_allclose(found, [2.0])


def test_star_arguments() -> None:
    class Total(sg.Function):
        @staticmethod
        def forward(ctx, *parts, factor=1.0):  # type: ignore[no-untyped-def]
            ctx.factor = factor
            return factor * (parts[0] + parts[1])

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            return g * ctx.factor, g * ctx.factor

    graphs = trace(Total, "n", "n", static={"factor": 4.0})
    assert graphs.input_names == ("parts_0", "parts_1")
    np.testing.assert_allclose(gradients(only(graphs), grad_output=[1.0]), [[4.0], [4.0]])


def test_annotations_say_the_shapes() -> None:
    class Scaled(sg.Function):
        @staticmethod
        def forward(ctx, x: "f64[n m]", factor: float, w: f64[m]):  # type: ignore
            return x * factor * w

        backward = _static().backward

    graphs = trace(Scaled, static={"factor": 2.0})
    assert [str(node.type) for node in graphs.cases[0].inputs] == ["f64[n m]", "f64[m]"]


def written_by(forward: Any, backward: Any) -> tuple[str, ...]:
    body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    made: Any = type("Writes", (sg.Function,), body)
    (case,) = trace(made, "n").cases
    return (*case.updated, *case.written)


def _save(ctx: Any, x: Any) -> Any:
    y = x * 2
    ctx.save_for_backward(y)
    return x.exp()


def _mutates_dirty(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2)


def _use_up(ctx: Any, x: Any) -> Any:
    ctx.rest = iter([2.0, 3.0])
    return x * 2


@pytest.mark.parametrize(
    ("forward", "backward", "wanted"),
    [
        (_save, lambda ctx, g: g * ctx.saved_tensors[0], ()),
        (_save, lambda ctx, g: g.mul_(2), ("grad_output",)),
        (_save, lambda ctx, g: ctx.saved_tensors[0].mul_(g), ("y",)),
        (_save, lambda ctx, g: ctx.saved_tensors[0].view(-1).add_(g), ("y",)),
        (lambda ctx, x: x.mul_(2), lambda ctx, g: g * 2, ("x",)),
        (_mutates_dirty, lambda ctx, g: g * 2, ()),
        (_use_up, lambda ctx, g: g * next(ctx.rest), ("ctx",)),
    ],
    ids=["none", "cotangent", "saved", "view", "input", "dirty", "iterator"],
)
def test_what_is_written_is_recorded(forward: Any, backward: Any, wanted: tuple[str, ...]) -> None:
    assert written_by(forward, backward) == wanted


def test_inner_functions_are_inlined() -> None:
    exp = _static()

    class Twice(sg.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.y = exp.apply(x)
            return exp.apply(ctx.y)

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            return g * exp.apply(ctx.y) * ctx.y

    graphs = trace(Twice, "n")
    assert [(call.function, list(map(str, call.arguments))) for call in graphs.inner] == [
        (exp, ["f32[n]"])
    ] * 3
    (found,) = gradients(only(graphs), x=[0.0], grad_y=[1.0])
    np.testing.assert_allclose(found, [np.exp(1.0)], rtol=1e-6)


def test_apply_on_arrays_points_to_compile() -> None:
    with pytest.raises(ProtocolError, match=r"sg\.compile"):
        Linear.apply(np.ones((2, 3)), np.ones((4, 3)))
    with pytest.raises(ProtocolError, match="traced"):
        sg.exp(np.ones(3))


def test_once_differentiable_and_amp() -> None:
    class Exp(sg.Function):
        @staticmethod
        @sg.custom_fwd(cast_inputs=None)
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.y = x.exp()
            return ctx.y

        @staticmethod
        @sg.custom_bwd
        @sg.once_differentiable
        def backward(ctx, grad_out):  # type: ignore[no-untyped-def]
            return grad_out * ctx.y

    case = only(trace(Exp, "n"))
    assert case.output_names == ("out",)
    assert Exp.backward.once_differentiable


def test_saving_what_is_no_tensor() -> None:
    with pytest.raises(ProtocolError, match="argument 1 is of type float"):
        trace(type("Bad", (sg.Function,), {
            "forward": staticmethod(lambda ctx, x: ctx.save_for_backward(x, 2.0)),
        }), "n")  # fmt: skip


def test_sizes_of_one_case() -> None:
    graphs = trace(Linear, "n m", "k m", "k")
    assert case_for(graphs, {"n": 3, "m": 2, "k": 1}).conditions[0].relation == "=="


def test_names_of_torch_modules() -> None:
    @sg.jit.script
    def helper(x: Any) -> Any:
        return x.exp()

    class Exp(sg.autograd.Function):
        @staticmethod
        @sg.cuda.amp.custom_fwd
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.y = helper(x)
            return ctx.y

        @staticmethod
        @sg.autograd.function.once_differentiable
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            return g * sg.autograd.Variable(ctx.y)

    assert issubclass(Exp, sg.Function)
    (found,) = gradients(only(trace(Exp, "n")), x=[0.0], grad_output=[2.0])
    np.testing.assert_allclose(found, [2.0])


@pytest.mark.parametrize("use", [lambda g, x: g * sg.exp(x), lambda g, x: g * sg.where(x, g, g)])
def test_saved_tensors_that_are_not_unpacked_are_no_tensor(use: Any) -> None:
    class Unpacked(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return sg.exp(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return use(g, ctx.saved_tensors)

    report = sg.verify(Unpacked, "n", suggest=False)
    assert str(report.verdict) == "REFUTED"
    assert "unpack it, as in (x,) = ctx.saved_tensors" in report.inputs["x"].reason
