"""Floats of 16 bits are not judged: what a program does otherwise for them is printed.

torch is the oracle: it runs each program in both dtypes.
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers

FUNCTION: Any = torch.autograd.Function
NARROW = (torch.float16, torch.bfloat16)
TABLE = {torch.float32: 2, torch.float64: 2, torch.float16: 3}
WAYS = {
    "==": lambda x: x.dtype == torch.bfloat16,
    "reflected": lambda x: torch.float16 == x.dtype,
    "in": lambda x: x.dtype in NARROW,
    "is": lambda x: x.dtype is torch.bfloat16,
    "finfo": lambda x: torch.finfo(x.dtype).eps > 1e-3,
    "most": lambda x: torch.finfo(x.dtype).max < 1e5,
    "size": lambda x: x.element_size() == 2,
    "text": lambda x: "16" in str(x.dtype),
    "type": lambda x: x.type() == "torch.HalfTensor",
    "class": lambda x: isinstance(x, torch.HalfTensor),
    "table": lambda x: TABLE.get(x.dtype, 2) == 3,
    "another narrow one": lambda x: x.dtype in NARROW and x.to(torch.float16).dtype != x.dtype,
    "after a cast": lambda x: x.float().dtype != x.dtype and x.dtype != torch.float64,
    "its neighbour": lambda x: x.double().to(x.dtype).element_size() < 4,
    "never": lambda x: x.dtype == torch.int64,
    "made of it": lambda x: torch.zeros(1, dtype=x.dtype).dtype != x.dtype,
    "wide": lambda x: x.float().element_size() == 8,
}


def square(asks: Any) -> Any:
    class Square(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return (3 if asks(x) else 2) * g * x

    return Square


def is_wrong(function: Any, dtype: Any) -> bool:
    x = torch.ones(1, dtype=dtype, requires_grad=True)
    function.apply(x).sum().backward()
    return bool(x.grad.item() != 2)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_wrong_for_16_bits_is_printed(way: str) -> None:
    function = square(WAYS[way])
    report = sg.verify(function, "n")
    printed = [one.text for one in report.inputs["x"].conditions if one.kind == "asked"]
    wrong = [dtype for dtype in NARROW if is_wrong(function, dtype)]
    assert str(report.verdict) == "PROVED"
    assert bool(printed) == bool(wrong)
    for dtype in wrong:
        assert str(dtype).removeprefix("torch.") in printed[0]


UNLIKE = {
    "==": lambda x, y: x.dtype != y.dtype,
    "promoted": lambda x, y: torch.promote_types(x.dtype, y.dtype) != x.dtype,
    "of the result": lambda x, y: (x * y).dtype != y.dtype,
    "sizes": lambda x, y: x.element_size() < y.element_size(),
    "half": lambda x, y: x.dtype == torch.bfloat16 and y.dtype == torch.float32,
    "cast": lambda x, y: x.to(y.dtype).dtype != y.dtype,
    "not asked": lambda x, y: False,
}


def product(asks: Any) -> Any:
    class Product(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return (3 if asks(x, y) else 1) * g * y, g * x

    return Product


def is_wrong_mixed(function: Any, one: Any, other: Any) -> bool:
    x, y = (torch.ones(1, dtype=dtype, requires_grad=True) for dtype in (one, other))
    function.apply(x, y).sum().backward()
    return bool(x.grad.item() != 1)


@pytest.mark.parametrize("way", UNLIKE)
def test_what_is_wrong_for_two_dtypes_is_printed(way: str) -> None:
    function = product(UNLIKE[way])
    report = sg.verify(function, "n", "n")
    kinds = (torch.float32, torch.float64, *NARROW)
    wrong = any(is_wrong_mixed(function, one, other) for one in kinds for other in kinds)
    assert str(report.verdict) == "PROVED"
    assert wrong == any("one dtype" in one.text for one in report.conditions)


def test_what_forward_refuses_is_not_printed() -> None:
    class Strict(square(WAYS["in"])):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            if x.dtype in NARROW:
                raise TypeError("float32 expected")
            ctx.save_for_backward(x)
            return x * x

    report = sg.verify(Strict, "n")
    assert str(report.verdict) == "PROVED"
    assert not report.inputs["x"].conditions
