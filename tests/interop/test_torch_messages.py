"""What is said of mistakes, to someone who knows torch: what, where, and what to do."""

from __future__ import annotations

import inspect
import json
import operator
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import symgrad as sg
from symgrad.errors import SpecError, SymgradError
from symgrad.tools.cli import main

torch = pytest.importorskip("torch")

from symgrad.interop.torch.removed import REMOVED  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function
to_dlpack: Any = torch.utils.dlpack.to_dlpack


def shown(function: Any, *specs: str) -> str:
    """What a user reads, in one line without the margins."""
    try:
        text = str(sg.verify(function, *specs, suggest=False))
    except SymgradError as error:
        text = error.shown()
    return " ".join(text.split())


class _Squared(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class MissingAttribute(_Squared):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.scale, ctx.bias = 3, 4
        return x * 3

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.scales


class NoAttribute(MissingAttribute):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 3


class NothingSaved(_Squared):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * x


class SavesOther(_Squared):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, x)
        return x * x


class SavesTwice(_Squared):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x * x
        ctx.save_for_backward(x, y)
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, y = ctx.saved_tensors
        return 2 * x * grad + 0 * y


class SavesList(_Squared):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward([x])
        return x * x


class UnknownFunction(_Squared):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return torch.expp(x)


class UnknownMethod(_Squared):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return (x * 2).sigmod()


class UnknownOperation(_Squared):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return torch.ops.no_such_library.swish(x)


class AddsText(_Squared):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x + "a"


class TimesNone(_Squared):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.bias = None
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.bias


class BeyondNeeded(_Squared):
    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * grad if ctx.needs_input_grad[1] else None


class DirtyOther(_Squared):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x * 2


class ReturnsNothing(_Squared):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        x * 2


class ReturnsDict(_Squared):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return {"y": x * 2}


class ReturnsList(_Squared):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return [x * 2]


class OneTooMany(_Squared):
    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * grad, grad


_SAID = {
    MissingAttribute: ("return grad * ctx.scales", "did you mean ctx.scale?"),
    NoAttribute: ("forward sets no attribute of ctx: set ctx.scales there",),
    NothingSaved: ("(x,) = ctx.saved_tensors", "saves no tensor: call ctx.save_for_backward there"),
    SavesOther: ("forward saves 2 tensors (line", "and backward reads 1"),
    SavesTwice: ("forward saves 1 tensor (line", "in the place of those of line"),
    SavesList: ("taken apart by a star: ctx.save_for_backward(*values)",),
    UnknownFunction: ("no attribute 'expp'", "did you mean torch.exp?"),
    UnknownMethod: ("did you mean .sigmoid?",),
    UnknownOperation: ("import what registers the operation",),
    AddsText: ("for +: 'Tensor' and 'str'", 'x + "a"'),
    TimesNone: ("for *: 'Tensor' and 'NoneType'", "ctx.bias is None here"),
    BeyondNeeded: ("ctx.needs_input_grad[1]: forward has 1 argument", "REFUTED"),
    DirtyOther: ("mark_dirty was called with", "ctx.mark_dirty(x)"),
    ReturnsNothing: ("it returns nothing", "def forward(ctx: Any, x: Any) -> Any:"),
    ReturnsDict: ("it returns dict", 'return {"y": x * 2}'),
    ReturnsList: ("forward returns a list", "return [x * 2]"),
    OneTooMany: ("backward returned 2 gradients for 1 argument", "return 2 * x * grad, grad"),
}


@pytest.mark.parametrize("function", list(_SAID), ids=lambda one: str(one.__name__))
def test_a_mistake_is_told_with_its_line_and_what_to_do(function: Any) -> None:
    text = shown(function, "n m")
    print(text)
    for said in (*_SAID[function], f"{__file__}:", "^^"):
        assert said in text
    assert "Symbolic" not in text


class _OfInstance(Function):
    def __init__(self) -> None:
        self.factor = 2

    def forward(self, x: Any) -> Any:
        return x * 2

    def backward(self, grad: Any) -> Any:
        return grad * 2


def test_a_class_that_torch_does_not_run_leaves_the_others(
    tmp_path: Path,
) -> None:
    file = tmp_path / "two.py"
    methods = textwrap.dedent(inspect.getsource(_OfInstance)).replace("Any", "object")
    file.write_text(
        "import torch\nFunction = torch.autograd.Function\n"
        + methods + methods.replace("_OfInstance", "Right").replace("self", "ctx")
        .replace("    def", "    @staticmethod\n    def")
    )  # fmt: skip
    result = CliRunner().invoke(main, ["verify", str(file), "--json"])
    assert result.exit_code == 1
    found = {one["function"]: one for one in json.loads(result.stdout)}
    assert found["Right"]["verdict"] == "PROVED"
    assert found["_OfInstance"]["verdict"] == "ERROR"
    assert "write @staticmethod above it" in found["_OfInstance"]["error"]
    alone = CliRunner().invoke(main, ["verify", f"{file}:_OfInstance"])
    assert "forward is a method of an instance" in alone.output


class _WithBoth(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        (_x,) = inputs

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


def test_ctx_beside_a_setup_context_is_told() -> None:
    text = shown(_WithBoth)
    assert "forward takes ctx, though there is a setup_context" in text
    assert "class _WithBoth(Function)" in text


def test_a_method_that_nothing_has_is_near_to_one() -> None:
    assert "did you mean .sigmoid?" in shown(_Inferred)


class _Inferred(_Squared):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.sigmod()


class _Padded(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.length = x.shape[-1]
        return torch.fft.fft(x, n=8).real

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return torch.fft.fft(grad, n=8).real[..., : ctx.length]


def test_a_size_that_is_judged_at_a_number_alone_is_a_condition() -> None:
    report = sg.verify(_Padded)
    assert str(report.verdict) == "PROVED"
    (found,) = [one.text for one in report.conditions if one.kind == "shapes"]
    assert "the shapes are x[n, 8]" in found
    assert "forward takes x[n, m] too" in found


class _Spectrum(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        a = torch.fft.fft(x)
        ctx.save_for_backward(a)
        return a.abs()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (a,) = ctx.saved_tensors
        return torch.fft.fft(grad * torch.sgn(a).conj()).real


def test_a_long_expression_is_named_by_its_line() -> None:
    report = sg.verify(_Spectrum, "n")
    kinks = [one.text for one in report.conditions if one.kind == "kink"]
    assert kinks
    assert all(len(one) < 100 and "arange" not in one for one in kinks), kinks


class _NotDifferentiable(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


def test_that_backward_is_never_called_is_a_note() -> None:
    report = sg.verify(_NotDifferentiable, "n m")
    assert any("backward is never called" in note for note in report.notes)


def test_the_table_says_for_what_and_how_long(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    methods = textwrap.dedent(inspect.getsource(_Squared)).replace("Any", "object")
    file.write_text(f"import torch\nFunction = torch.autograd.Function\n{methods}")
    table = " ".join(CliRunner().invoke(main, ["verify", str(file)]).output.split())
    assert "for all m, n >= 1, over the reals" in table
    assert "shapes inferred: x[n, m]; also x[n]" in table.replace("│ │ │ │ ", "")
    assert re.search(r"\d\.\d s ", table)


class _OfOldTorch(_Squared):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return torch.potrf(x, False)


class _OfOldTensors(_Squared):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.potrf()


@pytest.mark.parametrize("function", [_OfOldTorch, _OfOldTensors])
def test_what_torch_has_removed_is_said_with_what_replaces_it(function: Any) -> None:
    said = shown(function, "n n")
    assert "torch has removed potrf: call torch.linalg.cholesky" in said
    assert "did you mean" not in said


def test_what_torch_has_removed_is_said_where_no_shapes_are_stated() -> None:
    """After a few shapes: none helps."""
    with pytest.raises(SymgradError) as raised:
        sg.verify(_OfOldTorch)
    assert "torch has removed potrf" in str(raised.value)
    assert "--shapes" not in str(raised.value)


def test_what_stands_in_the_place_of_removed_functions_exists() -> None:
    for name, path in REMOVED.items():
        assert not hasattr(torch, name)
        assert not hasattr(torch.Tensor, name)
        assert callable(operator.attrgetter(path.removeprefix("torch."))(torch))


class _ByNumpy(Function):
    @staticmethod
    def forward(ctx: Any, n: Any, x: Any) -> Any:
        return torch.as_tensor(np.power(x.detach().cpu().numpy(), n))


def test_what_leaves_for_numpy_is_said_to_and_not_that_shapes_are_unknown() -> None:
    said = shown(_ByNumpy)
    assert ".numpy() cannot read a tensor here" in said
    assert "NumPy computes outside of the trace" in said
    assert "nothing says what" not in said


class _OfSettings(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, eps: Any) -> Any:
        raise RuntimeError("only for another machine")


def test_settings_are_not_asked_for_as_tensors() -> None:
    said = shown(_OfSettings)
    assert "nothing says what x, eps are" in said
    assert 'say --shapes "n m" (' in said
    assert "--static eps=VALUE" in said


class Decoded(Function):
    """What is annotated as a function is one, by whatever name it is called."""

    @staticmethod
    def forward(ctx: Any, x: Any, decoder: Callable[[Any], Any], size: int = 3) -> Any:
        ctx.decoder = decoder
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        decode = ctx.decoder
        return decode(g), None, None


def test_what_is_annotated_as_a_function_is_one() -> None:
    with pytest.raises(SpecError, match="decoder is called, and nothing says which function"):
        sg.verify(Decoded)


_with_cupy = False


class PassedOn(Function):
    """What exchanges memory with another library is read, and never called."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return to_dlpack(x) if _with_cupy else x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g


def test_an_exchange_of_memory_that_nothing_reaches() -> None:
    assert sg.verify(PassedOn).verdict == "PROVED"


class _Printing(Function):
    factor = 2

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        print("%d rows" % x.shape[0])  # noqa: UP031
        print("%d x %d" % (x.shape[0], len(x)))  # noqa: UP031
        return x * 2

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        text = "%d" % len(g) if cls.factor == 0 else ""  # noqa: UP031
        return g * (3 if text == "1" else 2)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code has no columns")
def test_a_size_that_is_only_printed_as_a_number_stays_a_size() -> None:
    assert sg.verify(_Printing, "n m").verdict is sg.PROVED
    assert "inferred x[n, m]" in shown(_Printing)


def test_a_text_of_a_size_that_is_kept_is_no_message() -> None:
    kept = type("Kept", (_Printing,), {"factor": 0})
    assert sg.verify(kept, "n m", suggest=False).verdict is sg.UNDECIDED
