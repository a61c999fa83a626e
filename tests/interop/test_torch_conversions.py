"""``float``, ``int`` and ``len`` of sizes and of tensors stay symbolic in torch's classes."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers

FUNCTION: Any = torch.autograd.Function
HALF = 0.5


def _of_module(size: Any) -> Any:
    return 1.0 / float(size)


class Scaled(FUNCTION):
    """A multiple of x by a number that forward makes of sizes, and backward makes again."""

    @staticmethod
    def forward(ctx: Any, x: Any, number: Any) -> Any:
        ctx.number, ctx.shape = number, x.shape
        return x * number(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.number(torch.empty(ctx.shape)), None


class ScaledTwice(Scaled):
    """Its backward is wrong."""

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return 2 * grad * ctx.number(torch.empty(ctx.shape)), None


NUMBERS: dict[str, Any] = {
    "float": lambda x: float(x.shape[-1]) ** -0.5,
    "int": lambda x: int(x.size(0)) + int(x.shape[1] // 2) + int(x.shape[1] / 2),
    "len": lambda x: 1 / len(x),
    "numel": lambda x: 1.0 / float(x.numel()),
    "math": lambda x: math.sqrt(float(x.shape[0])) + int(np.ceil(x.shape[1] / 4)),
    "a function of the module": lambda x: _of_module(x.shape[0]),
    "inside": lambda x: sum(float(one) for one in x.shape) + (lambda n: int(n))(x.shape[0]),
    "max": lambda x: max(float(x.shape[0]) - 1.0, 1.0),
    "a tensor of a size": lambda x: float(torch.tensor(x.shape[0])),
    "keyword": lambda x: int("11", base=2) * float(x.shape[0]) + float("0.5") + int(x.shape[0]),
    "type": lambda x: x.shape[0] if isinstance(float(x.shape[0]), float) else 0,
    "dtype": lambda x: torch.ones(2, dtype=float).sum().to(x.dtype) + float(x.shape[0]),
    "is": lambda x: float(x.shape[0]) + {float: 1, int: 2}[type(HALF)] + (type(HALF) is float),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_a_size_as_a_number_stays_symbolic(name: str) -> None:
    report = sg.verify(Scaled, "n m", static={"number": NUMBERS[name]})
    assert str(report.verdict) == "PROVED"
    assert "for all m, n >= 1" in str(report)
    wrong = sg.verify(ScaledTwice, "n m", static={"number": NUMBERS[name]})
    assert str(wrong.verdict) == "REFUTED"


class ByItsGreatest(FUNCTION):
    """A number that is read of x, whose dependence on x backward leaves out."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        scale = float(x.abs().max())
        ctx.scale = scale
        return y * scale

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, grad * ctx.scale


def test_a_number_of_a_tensor_is_differentiated() -> None:
    report = sg.verify(ByItsGreatest, "n m", "k m")
    assert str(report.inputs["y"].verdict) == "PROVED"
    assert str(report.inputs["x"].verdict) == "REFUTED"


def test_code_is_as_it_was_after_a_verdict() -> None:
    functions = [_of_module, Scaled.forward, Scaled.backward, ByItsGreatest.forward]
    before = [one.__code__ for one in functions]
    sg.verify(Scaled, "n m", static={"number": NUMBERS["a function of the module"]})
    sg.verify(ByItsGreatest, "n m", "k m")
    assert all(one.__code__ is code for one, code in zip(functions, before, strict=True))
    assert (builtins.float, builtins.int, builtins.len) == (float, int, len)


class Raises(FUNCTION):
    """It raises, within ``try``, what float raises."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        try:
            return x * float("no number")
        except ValueError as error:
            return x * len(str(error).split("'")[1])

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * int("9 of them")


def test_what_float_refuses_is_refused_where_it_is_called() -> None:
    report = sg.verify(Raises, "n")
    assert str(report.verdict) == "REFUTED"
    assert "invalid literal for int()" in str(report)
    assert "test_torch_conversions.py" in str(report)


def test_a_name_of_the_module_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "float", lambda size: size * 3)
    number = NUMBERS["a function of the module"]
    report = sg.verify(Scaled, "n", static={"number": lambda x: number(x) * x.shape[0] * 3})
    assert str(report.verdict) == "PROVED"
    assert _of_module(2) == 1 / 6
