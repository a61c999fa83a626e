"""Unmodified ``torch.autograd.Function`` classes: right ones are proved, doubled ones refuted.

What is right and what is wrong is for torch's gradcheck to say.
"""

from __future__ import annotations

import math
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import SpecError, SymgradError  # noqa: E402
from symgrad.frontend.anyrank.judge import rank_dependence  # noqa: E402
from symgrad.frontend.anyrank.session import AnyRankSession  # noqa: E402
from symgrad.frontend.guests import taken  # noqa: E402
from symgrad.frontend.request import bind  # noqa: E402
from symgrad.frontend.table import FUNCTIONS  # noqa: E402
from tests.interop.torch_classes import CASES, Case, doubled  # noqa: E402
from tests.suite.adversarial.program import class_of  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function


def _checked(function: Any, case: Case) -> bool:
    """Does torch agree that the gradients are right?"""

    def run(*args: Any) -> Any:
        found = function.apply(*(one.clone() if one.is_floating_point() else one for one in args))
        several = found if isinstance(found, tuple) else (found,)
        return tuple(one for one in several if one.is_floating_point())

    return bool(torch.autograd.gradcheck(run, case.inputs, raise_exception=False))


@pytest.mark.parametrize("name", CASES)
def test_right_backwards_are_proved(name: str) -> None:
    case = CASES[name]
    assert _checked(case.function, case)
    report = sg.verify(case.function, *case.specs, suggest=False)
    assert str(report.verdict) == "PROVED", str(report)
    assert report.name == name
    assert report.location is not None
    assert report.location.file.endswith("torch_classes.py")


@pytest.mark.parametrize("name", CASES)
def test_doubled_gradients_are_refuted(name: str) -> None:
    case = CASES[name]
    wrong = doubled(case.function)
    assert not _checked(wrong, case)
    report = sg.verify(wrong, *case.specs, suggest=False)
    assert str(report.verdict) == "REFUTED", str(report)


# -- what is refused


OUTSIDE = torch.ones(3)


class WritesOutside(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        OUTSIDE[0] = x.sum()
        return x * OUTSIDE

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * OUTSIDE


def _named(body: str) -> Any:
    """A Function whose forward is ``body``, and whose backward passes the gradient on."""
    names: dict[str, Any] = {"torch": torch, "W": torch.ones(3), "F": torch.nn.functional}
    exec(compile(f"def forward(ctx, x):\n    {body}", "<user>", "exec"), names)
    members = {
        "forward": staticmethod(names["forward"]),
        "backward": staticmethod(lambda ctx, grad: grad),
    }
    return type("Refused", (torch.autograd.Function,), members)


REFUSED = {
    "set item": "W[0] = x.sum(); return x",
    "in place": "W.add_(x); return x",
    "augmented": "W.__iadd__(x); return x",
    "in place, of itself": "W.mul_(2); return x",
    "copy": "W.copy_(x); return x",
    "through a view": "W[:2].zero_(); return x",
    "data": "W.data = x; return x",
    "out of torch's own": "torch.exp(W, out=W); return x",
    "activation in place": "F.relu(W, inplace=True); return x",
    "statistics": "return F.batch_norm(x.expand(3, 3), W, W, training=True)[0]",
    "pointer": "x.data_ptr(); return x",
    "storage": "x.untyped_storage(); return x",
    "array": "x.numpy(); return x",
    "value of a number": "return x * round(x.sum().item())",
    "complex": "return torch.complex(x, x).atan().real",
}


def _handling(body: str) -> str:
    """The body with a handler around what cannot be traced."""
    effect = body.partition("return")[2] if body.startswith("return") else body.split(";")[0]
    statement = effect if "=" in effect else f"z = {effect}"
    return (
        f"z = x\n    try:\n        {statement}\n    except Exception:\n        pass"
        "\n    return x + 0 * z"
    )


def _said(body: str, spec: str) -> str:
    """The error, or the report that the verdict is UNDECIDED; empty for any other verdict."""
    try:
        report = sg.verify(_named(body), spec, suggest=False)
    except SymgradError as error:
        return str(error)
    return str(report) if str(report.verdict) == "UNDECIDED" else ""


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_traced_is_said_with_its_line(name: str) -> None:
    assert "<user>:2" in _said(REFUSED[name], "3")
    # what the program does with the error says nothing of real calls
    assert "<user>:4" in _said(_handling(REFUSED[name]), "3")


@pytest.mark.parametrize(("call", "said"), [
    ("torch.linalg.lu_factor(x)[0]", "torch.linalg.lu_factor"),
    ("torch.histogram(x)", "torch.histogram"),
    ("torch.linalg.ldl_factor(x)[0]", "torch.linalg.ldl_factor"),
    ("x.data_ptr() + x", "torch.Tensor.data_ptr"),
])  # fmt: skip
def test_an_operation_that_is_missing_is_the_headline(call: str, said: str) -> None:
    """It is named as the user knows it, with the line and what to do, whatever shapes are tried."""
    source = f"""
import torch
import torch.nn.functional as F
class Calls(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = {call}
        return y
    @staticmethod
    def backward(ctx, g):
        return g
"""
    with pytest.raises(SymgradError) as caught:
        sg.verify(class_of("Calls", source, torch))
    assert caught.value.what == f"symgrad has no operation {said!r}"
    assert f"y = {call}" in caught.value.shown()
    assert "--replace" in caught.value.hint


def test_classes_in_classes_are_found(tmp_path: Path) -> None:
    inner = textwrap.indent(PROGRAM.format(wrong="").partition("class Swish")[2], "    ")
    text = f"import torch\n\nclass Outer:\n    class Swish{inner}"
    (tmp_path / "ops.py").write_text(text)
    for target in ("ops.py:Outer.Swish", "ops.py"):
        found = _run(tmp_path, "symgrad", "verify", target)
        assert "Outer.Swish" in found.stdout, found.stdout + found.stderr


def test_a_loop_over_a_tensor_is_judged_for_some_sizes() -> None:
    body = "return sum(one for one in x) + 0 * x.sum()"
    report = sg.verify(_named(body), "n", suggest=False)
    assert "not for every n: a loop over a tensor needs a number" in str(report)
    assert "<user>:4" in _said(_handling(body), "n")


def test_nothing_is_written_outside() -> None:
    with pytest.raises(SymgradError, match="from outside"):
        sg.verify(WritesOutside, "3")
    assert OUTSIDE.tolist() == [1, 1, 1]


class WithoutStaticmethod(Function):
    """``apply`` calls such methods on the class: ``self`` is the ctx."""

    def forward(self, x: Any) -> Any:
        self.save_for_backward(x)
        return x * x

    def backward(self, grad: Any) -> Any:
        (x,) = self.saved_tensors
        return 2 * x * grad


class TimesThree(WithoutStaticmethod):
    def backward(self, grad: Any) -> Any:
        (x,) = self.saved_tensors
        return 3 * x * grad


def test_self_is_the_ctx_of_a_method_that_apply_calls() -> None:
    assert sg.verify(WithoutStaticmethod, "n").verdict == "PROVED"
    wrong = sg.verify(TimesThree, "n", suggest=False)
    assert wrong.verdict == "REFUTED"
    assert "confirmed in torch" in str(wrong)


def test_an_instance_that_is_made_with_arguments_is_no_function_of_torch() -> None:
    class Old(Function):
        def __init__(self, scale: float = 2.0) -> None:
            self.scale = scale

        def forward(self, x: Any) -> Any:
            return x * self.scale

    with pytest.raises(SpecError, match="torch no longer calls"):
        sg.verify(Old, "n")


class Repeated(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return (grad,) * x


def test_a_tensor_of_floats_counts_nothing() -> None:
    """Torch raises TypeError whatever the values: a backward that does it is wrong, and is run."""
    found = sg.verify(Repeated, "n", suggest=False).inputs["x"]
    assert found.verdict == "REFUTED"
    assert "a tensor of floats cannot be a Python index" in str(found.reason)
    assert "run in torch: TypeError: only integer tensors" in str(found.replayed)


def test_a_function_among_the_arguments_is_no_number() -> None:
    class Called(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, function: Any) -> Any:
            ctx.function = function
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return ctx.function(grad), None

    with pytest.raises(SpecError, match="nothing says"):
        sg.verify(Called)


def test_one_size_is_never_all_sizes() -> None:
    class Fixed(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.count = x.shape[0]
            return x.sum(0) / 3

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad.expand(ctx.count, -1) / (3 if ctx.count != 7 else 2)

    report = sg.verify(Fixed, "n m", suggest=False)
    assert str(report.verdict) == "REFUTED"
    assert "n = 7" in str(report)


# -- what is left as it was


def test_torch_is_itself_after_a_trace() -> None:
    before = (
        torch.autograd.Function.__dict__["apply"], torch._C.ScriptFunction.__call__,
        torch.is_grad_enabled,
    )  # fmt: skip
    sg.verify(CASES["Nested"].function, "n m")
    after = (
        torch.autograd.Function.__dict__["apply"], torch._C.ScriptFunction.__call__,
        torch.is_grad_enabled,
    )  # fmt: skip
    assert after == before
    assert torch.is_grad_enabled()
    x = torch.ones(2, 2, requires_grad=True)
    CASES["Nested"].function.apply(x).sum().backward()
    assert x.grad is not None


def test_a_class_is_adapted_once() -> None:
    function = CASES["Softmax"].function
    assert taken(function) is taken(function)
    assert taken(FUNCTIONS) is FUNCTIONS


# -- from files


PROGRAM = """
import torch


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad * (s + x * s * (1 - s){wrong})
"""


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_command_line_and_pytest_take_them(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(textwrap.dedent(PROGRAM.format(wrong="")))
    done = _run(tmp_path, "symgrad", "verify", "ops.py:Swish", "--shapes", "n m", "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "ops.py").write_text(textwrap.dedent(PROGRAM.format(wrong=" * x")))
    done = _run(tmp_path, "symgrad", "verify", "ops.py", "--shapes", "n m", "--no-cache")
    assert done.returncode == 1
    assert "REFUTED" in done.stdout
    done = _run(
        tmp_path, "pytest", "--symgrad", "ops.py",
        "--symgrad-no-cache", "-q",
    )  # fmt: skip
    assert done.returncode == 1
    assert "REFUTED" in done.stdout


@pytest.mark.slow
def test_torch_is_imported_only_by_who_uses_it() -> None:
    program = "import symgrad as sg, sys, symgrad.tools.discover; assert 'torch' not in sys.modules"
    assert _run(Path(), "timeit", "-n", "1", "-r", "1", program).returncode == 0


def test_batch_axes_are_guarded_as_those_of_symgrad(monkeypatch: pytest.MonkeyPatch) -> None:
    class Twice(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return -(x * x) + torch.Tensor.mul(x, 2) + torch.logaddexp2(x, x) * 0

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    called: list[str] = []
    before = AnyRankSession.call

    def recording(self: Any, name: str, *given: Any) -> Any:
        called.append(name)
        return before(self, name, *given)

    monkeypatch.setattr(AnyRankSession, "call", recording)
    rank_dependence(bind(Twice, ("*batch m",)))
    assert {"__mul__", "__neg__", "__add__", "mul"} <= set(called)


def test_functions_of_math_are_no_state_of_the_program() -> None:
    """A ``math.gamma`` of symgrad's is read where ``ctx.gamma`` and ``math`` stand in one code."""

    class Scaled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, gamma: float) -> Any:
            torch.full((3,), math.inf, dtype=x.dtype)
            ctx.gamma = gamma
            return x * gamma

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.gamma, None

    assert sg.verify(Scaled, "2", static={"gamma": 1.0}).verdict == "PROVED"
