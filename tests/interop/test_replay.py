"""Refutations of torch's Functions are run in torch before they are called confirmed."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad import children  # noqa: E402
from symgrad.children import ChildEnded, in_child, said_by  # noqa: E402
from symgrad.frontend.guests import Call, Given, Measured, NotMeasured  # noqa: E402
from symgrad.frontend.request import bind  # noqa: E402
from symgrad.frontend.trace import trace_request  # noqa: E402
from symgrad.interop.torch.measuring import measured  # noqa: E402
from symgrad.proof.report.records import CounterexampleReport  # noqa: E402
from symgrad.replay import _told, replayed  # noqa: E402
from tests.interop.torch_classes import CASES, doubled  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function


def _call(function: Any, inputs: Any, wanted: int, at: tuple[int, ...]) -> Call:
    """A call at inputs of gradcheck, with cotangents that differ from element to element."""
    outputs = function.apply(*(one.detach().clone() for one in inputs))
    several = outputs if isinstance(outputs, tuple) else (outputs,)
    cotangents = [
        (torch.arange(one.numel(), dtype=one.dtype) / 4 - 1).reshape(one.shape).tolist()
        if one.is_floating_point() else None
        for one in several
    ]  # fmt: skip
    arguments = [
        (f"a{place}", Given(one.tolist(), str(one.dtype).removeprefix("torch.")))
        for place, one in enumerate(inputs)
    ]
    asked = frozenset(f"a{place}" for place, one in enumerate(inputs) if one.is_floating_point())
    return Call(arguments, asked, cotangents, f"a{wanted}", at)


@pytest.mark.parametrize("name", CASES)
def test_what_is_measured_is_backward_and_the_derivative(name: str) -> None:
    case = CASES[name]
    for place, one in enumerate(case.inputs):
        if one.is_floating_point():
            for at in ((0,) * one.ndim, tuple(size - 1 for size in one.shape)):
                right = measured(case.function, _call(case.function, case.inputs, place, at))
                assert abs(right.backward - right.derivative) <= right.error <= 1e-6
                wrong = doubled(case.function)
                twice = measured(wrong, _call(case.function, case.inputs, place, at))
                assert twice.backward == pytest.approx(2 * right.backward, abs=1e-9)
                assert twice.derivative == pytest.approx(right.derivative, abs=1e-6)


def _made(forward: Any, backward: Any) -> Any:
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Made", (Function,), members)


def _saving(compute: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return compute(x)

    return forward


def _times(slope: Any) -> Any:
    return lambda ctx, grad: grad * slope(ctx.saved_tensors[0])


FORWARDS: dict[str, Any] = {
    "detached": (lambda x: x.detach() ** 3, lambda x: 3 * x**2),
    "numpy": (lambda x: torch.tensor(x.detach().numpy() ** 3), lambda x: 3 * x**2),
    "in 32 bits": (lambda x: x.float() ** 3, lambda x: 3 * x**2),
    "in 32 bits between": (lambda x: (x.float() ** 3).to(x.dtype), lambda x: 3 * x**2),
    "in a tensor of 32 bits": (
        lambda x: torch.zeros_like(x, dtype=torch.float32).copy_(x).to(x.dtype) ** 3,
        lambda x: 3 * x**2,
    ),
    "in 32 bits, detached": (lambda x: (x.data.float() * 3).to(x.dtype), lambda x: 3 + 0 * x),
    "in 16 bits between": (lambda x: x.bfloat16().to(x.dtype) * 3, lambda x: 3 + 0 * x),
    "in 16 bits of 32": (lambda x: x.float().half().to(x.dtype) * 3, lambda x: 3 + 0 * x),
    "steps": (lambda x: x.round(), lambda x: 0 * x),
    "half a parabola": (lambda x: torch.where(x > 0, x**2, -(x**2)), lambda x: 2 * x.abs()),
    "a domain": (lambda x: (x + 2).sqrt(), lambda x: 0.5 / (x + 2).sqrt()),
    "a pole": (lambda x: 1 / x, lambda x: -1 / x**2),
}
POINTS = {
    "a domain": (-2 + 2.0**-9, 1e8, 0.0), "a pole": (2.0**-12, -1e6, 3.0),
    "steps": (0.4375, -2.25, 1e6 + 0.25), **{
        name: (0.5, -3.0, 1.25) for name in FORWARDS if name.startswith("in ")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", FORWARDS)
def test_derivatives_are_those_of_what_forward_computes(name: str) -> None:
    compute, slope = FORWARDS[name]
    made = _made(_saving(compute), _times(slope))
    for x in POINTS.get(name, (0.0, 2.0**-6, 1e6, -1e-3)):
        call = Call([("x", Given([x], "float32"))], frozenset("x"), [[1.5]], "x", (0,))
        found = measured(made, call)
        true = 1.5 * float(slope(torch.tensor([x], dtype=torch.float64)))
        assert abs(found.derivative - true) <= max(found.error, 1e-9 * (1 + abs(true)))
        assert abs(found.backward - found.derivative) <= max(found.error, 1e-6 * (1 + abs(true)))


def test_where_there_is_no_derivative_none_is_measured() -> None:
    made = _made(_saving(lambda x: x.detach().abs()), _times(torch.sign))
    call = Call([("x", Given([0.0], "float32"))], frozenset("x"), [[1.0]], "x", (0,))
    with pytest.raises(NotMeasured):
        measured(made, call)


# -- in reports


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


def test_a_refutation_says_what_torch_gives() -> None:
    report = sg.verify(doubled(Cube), "n m", suggest=False)
    found = report.inputs["x"]
    assert str(report.verdict) == "REFUTED"
    assert found.replayed is not None
    assert found.counterexample is not None
    assert found.replayed
    assert found.replayed.backward == pytest.approx(found.counterexample.hand)
    assert found.replayed.derivative == pytest.approx(found.counterexample.true)
    assert "confirmed in torch: backward gives" in str(report)
    assert report.to_dict()["inputs"]["x"]["replayed"]["confirmed"] is True


_ONE_CALL = """
import sys
import torch
from symgrad.frontend.guests import Call, Given
from symgrad.interop.torch.measuring import measured

class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3, x * 2

    @staticmethod
    def backward(ctx, grad, other):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2 + 2 * other

at = [("x", Given([1.0, 2.0], "float64"))]
found = measured(Cube, Call(at, frozenset({"x"}), [[3.0, 5.0], [7.0, 9.0]], "x", (1,)))
print(found.backward, found.derivative, "sympy" in sys.modules)
"""


@pytest.mark.slow
def test_a_real_call_does_not_import_sympy() -> None:
    done = subprocess.run([sys.executable, "-c", _ONE_CALL], capture_output=True, text=True)
    backward, derivative, imported = done.stdout.split()
    assert float(backward) == float(derivative) == 5 * 3 * 2**2 + 2 * 9
    assert imported == "False"


def _not_compiled(graph: Any, inputs: Any) -> Any:
    raise NotImplementedError("compiled")


@torch.compile(backend=_not_compiled)
def _scaled(x: Any, factor: float) -> Any:
    return x * factor


class CompiledTwice(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return _scaled(x, 3.0)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return _scaled(grad, 2.0)


def test_what_torch_would_compile_is_run_as_it_is_written() -> None:
    found = sg.verify(CompiledTwice, "n").inputs["x"].replayed
    assert found is not None
    assert found.confirmed
    assert abs((found.derivative or 0) / (found.backward or 1) - 1.5) < 1e-9


def test_a_gradient_that_is_left_out_beside_casts_is_refuted() -> None:
    class Affine(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(w)
            return (x.float() * w.float()).to(dtype=x.dtype)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (w,) = ctx.saved_tensors
            return (grad.float() * w).to(grad.dtype), None

    report = sg.verify(Affine, "n", "n", suggest=False)
    assert str(report.inputs["x"].verdict) == "PROVED"
    assert str(report.inputs["w"].verdict) == "REFUTED"
    assert "confirmed in torch in float32: backward gives 0, the derivative is" in str(report)


def test_what_torch_does_not_confirm_is_undecided() -> None:
    wrong = sg.verify(doubled(Cube), "n m")
    request = bind(Cube, ("n m",))
    report = replayed(request, trace_request(request), wrong)
    assert str(report.verdict) == "UNDECIDED"
    said = report.inputs["x"].replayed
    assert said is not None
    assert not said
    assert said.backward == pytest.approx(said.derivative)
    assert "not confirmed in torch: backward gives" in str(report)
    assert report.diff == ""


@pytest.mark.parametrize("materialize", [True, False])
@pytest.mark.parametrize("kind", ["behind", "before", "sizes"])
def test_outputs_that_are_no_tensors_have_no_cotangent(kind: str, materialize: bool) -> None:
    class Several(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(materialize)
            ctx.save_for_backward(x)
            others = {"behind": (x * x, None, 3), "before": ("name", x * x)}
            return others.get(kind, (x.shape, x * x, x.shape[0]))

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            (x,) = ctx.saved_tensors
            (place,) = (0,) if kind == "behind" else (1,)
            assert all(one is None for at, one in enumerate(grads) if at != place)
            return None if grads[place] is None else 3 * grads[place] * x

    report = sg.verify(Several, "n m", suggest=False)
    assert str(report.verdict) == "REFUTED"
    found = report.inputs["x"].replayed
    assert found is not None
    assert (found.backward, found.derivative) == pytest.approx((3.0, 2.0))


class AnyNumber(Function):
    """Plain numbers, an absent tensor, integers, an output without a gradient, None patterns."""

    @staticmethod
    def forward(ctx: Any, x: Any, index: Any, scale: float = 0.5, bias: Any = None) -> Any:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, index)
        ctx.scale, ctx.biased = scale, bias is not None
        y = x[index] * scale
        best = x.argmax(-1)
        ctx.mark_non_differentiable(best)
        return (y if bias is None else y + bias), best, x.sin()

    @staticmethod
    def backward(ctx: Any, grad: Any, _: Any, other: Any) -> Any:
        x, index = ctx.saved_tensors
        grad_x = torch.zeros_like(x)
        if grad is not None:
            grad_x = grad_x.index_add(0, index, grad * ctx.scale)
        if other is not None:
            grad_x = grad_x + other * x.cos()
        return grad_x, None, None, grad.sum(0) if ctx.biased and grad is not None else None


@pytest.mark.parametrize("specs", [("n m", "i64[k]"), ("n m", "i64[k]", "m")])
def test_calls_of_many_kinds_are_replayed(specs: tuple[str, ...]) -> None:
    assert str(sg.verify(AnyNumber, *specs).verdict) == "PROVED"
    report = sg.verify(doubled(AnyNumber), *specs, suggest=False)
    assert str(report.verdict) == "REFUTED", str(report)
    for one in report.inputs.values():
        assert one.replayed, str(report)


class Constants(Function):
    """Tensors that may be declared constant: masks, a matrix, a scalar, indices; plain numbers."""

    @staticmethod
    def forward(ctx: Any, x: Any, a: Any, scale: Any, mask: Any, power: Any) -> Any:
        ctx.save_for_backward(x, a, scale, mask)
        ctx.power = power
        return ((x @ a) * scale).masked_fill(mask, 0.0) * 2**power

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        _, a, scale, mask = ctx.saved_tensors
        grad = (grad * scale * 2**ctx.power).masked_fill(mask, 0.0)
        return grad @ a.t(), None, None, None, None


def test_tensors_that_are_declared_constant_are_replayed_as_tensors() -> None:
    constant = {"a": "constant", "scale": "constant", "mask": "constant"}
    report = sg.verify(doubled(Constants), assume=constant, suggest=False, timeout=None)
    assert str(report.verdict) == "REFUTED", str(report)
    found = report.inputs["x"].replayed
    assert found
    assert "confirmed in torch" in found.text


def test_cotangents_of_none_are_replayed() -> None:
    def backward(ctx: Any, grad: Any, other: Any) -> Any:
        (x,) = ctx.saved_tensors
        if grad is None:
            return other
        return grad * x.exp() if other is None else grad * x.exp() + other * x.cos()

    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x.exp(), x.sin()

    report = sg.verify(_made(forward, backward), "n", suggest=False)
    (found,) = (one for one in report.protocol if not one)
    assert str(found.verdict) == "REFUTED"
    assert "confirmed in torch: backward gives" in found.text


def _run_as(backward: Any) -> Any:
    """The report on a doubled gradient, with another class run in its place."""
    wrong = sg.verify(doubled(Cube), "n m", suggest=False)
    other = type("Other", (Cube,), {"backward": staticmethod(backward)})
    request = bind(Cube, ("n m",))
    graphs = trace_request(request)
    return replayed(replace(request, function=bind(other, ("n m",)).function), graphs, wrong)


def test_a_class_that_fails_in_torch_is_not_refuted() -> None:
    def backward(ctx: Any, grad: Any) -> Any:
        raise ValueError("no such device")

    report = _run_as(backward)
    assert str(report.verdict) == "UNDECIDED"
    assert "not confirmed in torch: ValueError: no such device" in str(report)


def test_a_class_that_runs_changes_nothing_here() -> None:
    seen: list[int] = []

    def backward(ctx: Any, grad: Any) -> Any:
        seen.append(1)
        return grad * 7

    assert _run_as(backward).inputs["x"].replayed
    assert seen == []


# -- child processes


def _hang() -> None:
    while True:
        pass


def test_a_child_that_ends_badly_says_how() -> None:
    assert in_child(lambda: [1, "two"]) == [1, "two"]
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (lambda: bytearray(1 << 31), {"memory": 1 << 28}, "memory"),
        (_hang, {"cpu": 1}, "processor time"),
        (lambda: time.sleep(60), {"wall": 0.1}, "within 0.1 s"),
        (lambda: time.sleep(60), {"rest": 0.2}, "waited for something for 0.2 s"),
        (lambda: os._exit(3), {}, "status 3"),
        (lambda: os.kill(os.getpid(), 11), {}, "SIGSEGV"),
        (lambda: math.sqrt(-1), {}, "ValueError"),
    ]
    for work, limits, said in cases:
        with pytest.raises(ChildEnded, match=said):
            in_child(work, **limits)


def _program(text: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "import os, sys, time; " + text]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_a_program_that_ends_badly_says_how() -> None:
    limits = {"cpu": 1, "wall": 60, "rest": 60}
    echo = _program("sys.stdout.write(sys.stdin.read())")
    assert said_by(echo, b"a" * 200_000, cpu=1, wall=60, rest=60) == b"a" * 200_000
    limited = "from symgrad.children import limit_processor_time as f; f(1)"
    cases = [
        ("time.sleep(60)", {"wall": 0.1}, "within 0.1 s"),
        ("time.sleep(60)", {"rest": 0.5}, "waited for something for 0.5 s"),
        (f"exec({limited!r})\nwhile True: pass", {}, "processor time"),
        ("os._exit(3)", {}, "status 3"),
    ]
    for text, changed, said in cases:
        with pytest.raises(ChildEnded, match=said):
            said_by(_program(text), b"", **{**limits, **changed})


def test_a_process_that_works_does_not_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 30, 60, 119, 120, 180])
    taken = iter([["1", "0"], ["2", "0"], ["2", "1"], ["2", "1"]])
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    monkeypatch.setattr(children, "_taken", lambda process: next(taken))
    patience = children.Patience(1, None, 60)
    found = [patience.lost() for _ in range(5)]
    assert found == ["", "", "", "", "it waited for something for 60 s"]


class Squared(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x


class Indices(Squared):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * g + 0 * torch.triu_indices(x.shape[0], x.shape[1]).sum()


class ThreeAxes(Squared):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        _, _, _ = x.shape
        return 2 * x * g


class WrongProduct(Squared):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x @ g  # runs where n == m alone


def test_what_fails_in_the_trace_alone_is_not_refuted() -> None:
    report = sg.verify(Indices, "n m")
    assert report == "UNDECIDED"
    assert "triu_indices of the symbolic size n" in " ".join(str(report).split())


@pytest.mark.parametrize("function", [ThreeAxes, WrongProduct])
def test_what_fails_in_torch_too_is_refuted(function: Any) -> None:
    report = sg.verify(function, "n m")
    assert report == "REFUTED"
    assert "run in torch" in str(report)


class _Fails(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad, grad, grad


def test_what_is_refuted_without_a_point_is_said_not_to_be_run() -> None:
    wrong = sg.verify(_Fails, "n", suggest=False)
    assert wrong.inputs["x"].counterexample is None
    assert "run in torch: RuntimeError" in str(wrong)
    request = bind(_Fails, ("n",))
    nowhere = replace(trace_request(request), cases=())  # no call of backward is known
    plain = replace(wrong, inputs={"x": replace(wrong.inputs["x"], replayed=None)})
    found = replayed(request, nowhere, plain)
    assert str(found.verdict) == "REFUTED"
    assert "not run in torch: it is refuted without a point" in str(found)


ON_GPU: dict[str, Any] = {
    "forward": (lambda x: x * x.new_tensor([2.0]).cuda(), lambda g: 3 * g),
    "made there": (lambda x: x * 2, lambda g: 3 * g * torch.ones(1, device="cuda")),
    "by a device": (lambda x: x.to(torch.device("cuda", 0)) * 2, lambda g: 3 * g),
}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("way", ON_GPU)
def test_what_runs_on_a_gpu_is_run_on_the_cpu_where_there_is_none(way: str) -> None:
    forwards, backwards = ON_GPU[way]

    class OnGpu(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return forwards(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return backwards(g)

    report = sg.verify(OnGpu, "n", suggest=False)
    assert str(report.verdict) == "REFUTED"
    assert "GPU being the CPU" in " ".join(str(report).split())


_KEPT: dict[str, Any] = {}


class _OfTheFirstCall(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, factor: float = 2.0) -> Any:
        ctx.factor = _KEPT.setdefault("factor", factor)
        return x * factor

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.factor, None


class _OfTheLastCall(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, kind: str = "double") -> Any:
        _KEPT["kind"] = kind
        return x * 2 if kind == "double" else x * 5

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return (grad * 2 if _KEPT["kind"] == "double" else grad * 5), None


@pytest.mark.parametrize(
    ("function", "told", "given"),
    [
        (_OfTheFirstCall, "after a call with factor = 1.5", "1.5"),
        (_OfTheLastCall, "comes between forward and backward", "5"),
    ],
)
def test_another_call_that_makes_a_gradient_wrong_is_run_too(
    function: Any, told: str, given: str
) -> None:
    report = sg.verify(function, "n", suggest=False)
    said = " ".join(str(report).split())
    assert report.verdict == "REFUTED", said
    assert told in said
    assert f"confirmed in torch: backward gives {given}, the derivative is 2" in said


def test_another_call_has_tensors_of_its_own_shapes() -> None:
    class Mean(Function):
        size: Any = None

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            Mean.size = Mean.size or x.shape[-1]
            ctx.shape = x.shape
            return x.mean(-1)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return (grad.unsqueeze(-1) / Mean.size).expand(ctx.shape)

    report = sg.verify(Mean, "n", suggest=False)
    said = " ".join(str(report).split())
    assert report.verdict == "REFUTED", said
    assert "confirmed in torch: backward gives 0.142857, the derivative is 1" in said


class NearStep(Function):
    """It jumps within 2**-10 of the point at which backward is refuted."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.gt(0.999).float()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad.clone()


def test_a_refutation_near_a_jump_is_confirmed() -> None:
    report = sg.verify(NearStep, "n")
    assert str(report.verdict) == "SURROGATE?"
    replayed = report.inputs["x"].replayed
    assert replayed is not None
    assert replayed.confirmed


@pytest.mark.parametrize("slope", [1.0, 1e-2])
def test_what_is_detached_is_measured_as_it_is(slope: float) -> None:
    class Detached(NearStep):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.detach() * slope

    point = [("x", Given([0.5], "float32"))]
    found = measured(Detached, Call(point, frozenset("x"), [[1.0]], "x", (0,)))
    assert found.backward == 1.0
    assert abs(found.derivative - slope) <= found.error < 1e-3


class Factor(Function):
    """Torch reads one triangle, and its derivative is symmetric; this one is not."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        factor = torch.linalg.cholesky(x)
        ctx.save_for_backward(factor)
        return factor

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (factor,) = ctx.saved_tensors
        return grad @ factor


def _factored(place: tuple[int, int]) -> Call:
    matrix = Given([[3.0, 0.5], [0.5, 2.0]], "float64")
    return Call(
        [("x", matrix)], frozenset("x"), [[[1.0, 0.0], [2.0, -1.0]]], "x", place,
        mirror=(place[1], place[0]),
    )  # fmt: skip


@pytest.mark.parametrize("place", [(0, 1), (1, 0)])
@pytest.mark.parametrize("hidden", [False, True])
def test_the_derivative_by_a_symmetric_matrix_is_along_symmetric_changes(
    place: tuple[int, int], hidden: bool, monkeypatch: Any
) -> None:
    """The quotients of one element were 0 in one triangle, and twice as much in the other."""
    x = torch.tensor([[3.0, 0.5], [0.5, 2.0]], dtype=torch.float64, requires_grad=True)
    grad = torch.tensor([[1.0, 0.0], [2.0, -1.0]], dtype=torch.float64)
    (true,) = torch.autograd.grad(torch.linalg.cholesky(x), x, grad)
    if hidden:
        monkeypatch.setattr("symgrad.interop.torch.measuring._by_autograd", lambda _: None)
    found = measured(Factor, _factored(place))
    assert abs(found.derivative - float(true[place])) <= found.error < 1e-6
    assert abs(found.backward - found.derivative) > 0.1
    assert ("autograd" in found.how) is not hidden


def test_what_confirms_gives_the_derivative_that_is_claimed() -> None:
    report = sg.verify(Factor, "n n", suggest=False)
    point, replayed = report.inputs["x"].counterexample, report.inputs["x"].replayed
    assert point is not None
    assert replayed is not None
    assert "confirmed in torch" in str(replayed)
    assert replayed.derivative == pytest.approx(point.true, rel=1e-6)
    assert replayed.backward == pytest.approx(point.hand, rel=1e-6)


def test_another_derivative_confirms_nothing() -> None:
    """What is wrong in torch by other numbers than those that are shown is called that."""
    point = CounterexampleReport({}, {}, "grad_x", 4.0, 1.0, "", "")
    same = Measured(4.0, 1.0 + 1e-9, 1e-9, "by difference quotients", "float64")
    assert str(_told(point, same, "torch")).startswith("confirmed in torch: ")
    other = _told(point, replace(same, derivative=0.0), "torch")
    assert other.confirmed
    assert "confirmed" not in str(other)


IN_ONE_DTYPE = {
    "compared": "(2 if x.dtype == torch.float32 else 3)",
    "key": "{torch.float32: 2, torch.float64: 3}[x.dtype]",
    "text": "(2 if 'float32' in str(x.dtype) else 3)",
    "bits": "(torch.finfo(x.dtype).bits // 32 + 1)",
}


@pytest.mark.parametrize("way", IN_ONE_DTYPE)
def test_what_is_wrong_in_float32_alone_is_confirmed_there(way: str) -> None:
    class Cubed(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return factor(x) * x * x * g

    factor = eval(f"lambda x: {IN_ONE_DTYPE[way]}", {"torch": torch})
    report = sg.verify(Cubed, "n", suggest=False)
    assert str(report.verdict) == "REFUTED"
    assert "confirmed in torch in float32: backward gives 2, the derivative is 3" in str(report)
