"""What a backward asks about its call: every answer is proved, printed, or makes it UNDECIDED."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import symgrad as sg
from symgrad.frontend.paths import other_paths
from symgrad.frontend.request import bind
from symgrad.frontend.trace import trace_request


class Product(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        return g * w, g * x


def product(of_x: str, of_w: str, before: str = "pass") -> type[sg.Function]:
    """``Product`` with other gradients; ``before``: a statement of its own."""
    text = (
        "def backward(ctx, g):\n"
        "    x, w = ctx.saved_tensors\n"
        f"    {before}\n"
        f"    return {of_x}, {of_w}\n"
    )
    space: dict[str, Any] = {"sg": sg, "helper": lambda bits, number: bits[number]}
    exec(text, space)
    return type("Changed", (Product,), {"backward": staticmethod(space["backward"])})


QUESTIONS = (
    "ctx.needs_input_grad[1]", "helper(ctx.needs_input_grad, 1)", "all(ctx.needs_input_grad)",
    "sum(ctx.needs_input_grad) == 2", "ctx.needs_input_grad == (True, True)",
    "(False, *ctx.needs_input_grad)[2]", "[*reversed(ctx.needs_input_grad)][0]",
    "getattr(ctx, 'needs_' + 'input_grad')[-1]", "w.requires_grad", "x.is_contiguous()",
    "x.is_leaf", "x.grad_fn is None", "not x.is_cuda", "x.device == 'cpu'",
    "x.device.type == 'cpu'", "g.is_contiguous()", "not isinstance(w, sg.nn.Parameter)",
)  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_answer_is_proved(question: str) -> None:
    asks = product(f"g * w if {question} else g * w * 1", f"g * x if {question} else x * g")
    assert sg.verify(asks, "n", "n").verdict == sg.PROVED


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_other_answer_is_judged(question: str) -> None:
    asks = product(f"g * w if {question} else 2 * g * w", "g * x")
    report = sg.verify(asks, "n", "n", suggest=False)
    assert report.verdict == sg.REFUTED, report
    assert " where " in " ".join(str(report).split())


OBSERVED = (
    "hash(x) == 0", "x in {w}", "str(x) == ''", "f'{x}' == ''", "{7: True}.get(x.shape[0], False)",
    "f'{x.shape[0]:4}' == ''", "str(x.shape) == ''", "x.shape[0] in {1, 2}",
    "hasattr(x, 'storage_offset')", "hash(x.shape) == 0",
)  # fmt: skip


@pytest.mark.parametrize("question", OBSERVED)
def test_what_has_no_answer_is_undecided(question: str) -> None:
    asks = product(f"2 * g * w if {question} else g * w", "g * x")
    report = sg.verify(asks, "n", "n", suggest=False)
    assert report.verdict == sg.UNDECIDED, report
    assert "real call" in str(report)


VALUES = (
    "x.tolist()", "x.numpy()", "list(range(x.shape[0]))", "x.data_ptr()", "f'{x.sum():.3f}'",
)  # fmt: skip
HANDLED = "try:\n        {}; s = 2\n    except BaseException:\n        s = 1"


@pytest.mark.parametrize("value", VALUES)
def test_a_limit_is_remembered_whatever_handles_it(value: str) -> None:
    asks = product("g * w * s", "g * x", HANDLED.format(value))
    report = sg.verify(asks, "n", "n", suggest=False)
    assert report.verdict == sg.UNDECIDED, report


@pytest.mark.parametrize("value", ["x.sum().item() > 0", "bool(x.sum() > 0)"])
def test_what_has_an_answer_either_way_raises_nothing(value: str) -> None:
    for factor, verdict in (("s", sg.REFUTED), ("s / 2", sg.PROVED)):
        asks = product(f"g * w * {factor}", "g * x", HANDLED.format(value))
        assert sg.verify(asks, "n", "n", suggest=False).verdict == verdict


ALWAYS = ("isinstance(x, sg.Tensor)", "isinstance(x.shape[0], int)", "not isinstance(x, int)",
          "isinstance(x.shape[0] / 2, float)", "not hasattr(x, 'my_own')",
          "x.device == w.device", "type(x.shape[0]) is int", "isinstance(type(x), type)",
          "type(type(x)) is type",
          "type(ctx).__name__")  # fmt: skip


@pytest.mark.parametrize("question", ALWAYS)
def test_what_holds_of_all_calls_is_so(question: str) -> None:
    asks = product("g * w", "g * x", f"assert {question}")
    assert sg.verify(asks, "n", "n").verdict == sg.PROVED


@pytest.mark.parametrize("question", ["sg.is_grad_enabled()", "g.requires_grad", "not g.is_leaf"])
def test_what_differentiation_again_would_change_is_no_refutation(question: str) -> None:
    asks = product(f"g * w if not ({question}) else 2 * g * w", "g * x")
    report = sg.verify(asks, "n", "n", suggest=False)
    assert report.verdict == sg.UNDECIDED
    assert "differentiated again" in " ".join(str(report).split())


def test_conditions_are_printed() -> None:
    asks = product("g * w if x.grad is None else g", "g * x")
    report = sg.verify(asks, "n", "n")
    assert report.verdict == sg.PROVED
    assert any("x.grad is None" in str(one) for one in report.conditions)


def test_identity_is_printed() -> None:
    asks = product("g * w if x is not w else g", "g * x")
    report = sg.verify(asks, "n", "n")
    assert report.verdict != sg.PROVED or "same tensor" in str(report)


class Outer(sg.Function):
    """``y`` gets the shape of ``w``: right where both are of one shape, as one tensor is."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, w: Any) -> Any:
        ctx.save_for_backward(helped(x), helped(y), w)
        return x * w + y.sum(0)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, _, w = ctx.saved_tensors
        return g * w, g.expand(w.shape), g * x


def helped(x: Any) -> Any:
    return getattr(x, "clo" + "ne")()


def test_a_wrong_shape_that_is_right_for_one_tensor_asks_nothing_of_identity() -> None:
    report = sg.verify(Outer, "n m", "k m", "n m", suggest=False)
    assert report.inputs["y"].verdict == sg.REFUTED
    assert report.inputs["x"].verdict == sg.PROVED
    assert "same tensor" not in str(report)


@pytest.mark.parametrize("question", ["x.dtype == sg.float32", "x.element_size() == 4"])
def test_both_widths_are_judged(question: str) -> None:
    report = sg.verify(product(f"g * w if {question} else g", "g * x"), "n", "n", suggest=False)
    assert report.verdict == sg.REFUTED
    right = product(f"g * w if {question} else w * g", "g * x")
    assert sg.verify(right, "n", "n", suggest=False).verdict == sg.PROVED


def test_the_type_of_a_size_is_that_of_a_real_one() -> None:
    report = sg.verify(
        product("g * w * 2 if type(x.shape[0]) is int else g * w", "g * x"), "n", "n", suggest=False
    )
    assert report.verdict == sg.REFUTED
    report = sg.verify(product("g * w if type(x) is sg.Tensor else g * w * 1", "g * x"), "n", "n")
    assert report.verdict == sg.PROVED
    assert any("those of the module symgrad" in str(one) for one in report.conditions)


def test_a_parameter_is_a_tensor_whatever_is_loaded() -> None:
    """In a process of its own, where no Parameter is loaded."""
    text = """
import sys
import symgrad as sg

class Op(sg.Function):
    @staticmethod
    def forward(ctx, x):
        assert isinstance(x, sg.Tensor)
        ctx.save_for_backward(x)
        ctx.scale = 1 if "Parameter" in type(x).__name__ else 2
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return ctx.scale * g * x

print(sg.verify(Op, "n", suggest=False).verdict)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "REFUTED"


class Many(sg.Function):
    """Ten tensors: a path for each one that is found first, not one for each set of them."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
        return a + b + c + d + e + f

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        assert any(ctx.needs_input_grad)
        return g, g, g, g, g, g


def test_only_the_ways_that_exist_are_traced() -> None:
    request = bind(Many, ("n",) * 6)
    first = trace_request(request)
    paths = other_paths(first, lambda answers: trace_request(request, answers=answers))
    assert len(paths.traced) == 5
    assert paths.complete


def test_constants_and_integers_require_no_gradient() -> None:
    asks = product("g * w", "g * x if ctx.needs_input_grad[1] else None")
    assert sg.verify(asks, "n", "n", assume={"w": "constant"}).verdict == sg.PROVED
    wrong = product("g * w if ctx.needs_input_grad[1] else g", "g * x")
    assert sg.verify(wrong, "n", "n", assume={"w": "constant"}, suggest=False).verdict == sg.REFUTED


# -- state


KEPT: dict[Any, Any] = {}


class Keeps(sg.Function):
    last: Any = None

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        KEPT["x"], Keeps.last = x, x
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g * KEPT["x"]


class KeepsBySize(Keeps):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.size = x.shape[0]
        KEPT[ctx.size] = x
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g * KEPT[ctx.size]


@pytest.mark.parametrize("function", [Keeps, KeepsBySize])
def test_state_is_refuted_and_nothing_stays_behind(function: Any) -> None:
    report = sg.verify(function, "n", suggest=False)
    assert report.verdict == sg.REFUTED, report
    assert "forward(A), forward(B)" in " ".join(str(report).split())
    assert not KEPT
    assert Keeps.last is None
