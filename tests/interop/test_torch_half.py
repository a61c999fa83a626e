"""Inputs of 16 bits are not judged: what a program does otherwise for them is printed.

What a program stores in 16 bits is judged as real numbers.

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


STORED = {
    "half()": lambda x: x.half(),
    "bfloat16()": lambda x: x.bfloat16(),
    "to": lambda x: x.to(torch.float16),
    "to, by name": lambda x: x.to(dtype=torch.bfloat16),
    "type": lambda x: x.type(torch.float16),
    "like another": lambda x: x.to(torch.zeros(2, dtype=torch.float16)),
    "made": lambda x: torch.zeros_like(x, dtype=torch.bfloat16).copy_(x),
    "both": lambda x: (x.half() + x.bfloat16()) / 2,
}


def stored(narrow: Any, factor: int = 3) -> Any:
    class Stored(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(narrow(x), narrow(w))
            return narrow(x).float() * narrow(w).float() ** 3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = (one.float() for one in ctx.saved_tensors)
            return g * w**3, factor * g * x * w**2

    return Stored


@pytest.mark.parametrize("way", STORED)
def test_what_is_stored_in_16_bits_is_judged_as_real_numbers(way: str) -> None:
    narrow = STORED[way]
    report = sg.verify(stored(narrow), "n", "n")
    assert str(report.verdict) == "PROVED"
    (x,) = (one.text for one in report.inputs["x"].conditions[:1])
    kinds = [str(kind).removeprefix("torch.") for kind in NARROW]
    assert any(f"rounding to {kind}, and its range, are left aside" in x for kind in kinds)
    wrong = sg.verify(stored(narrow, 2), "n", "n", suggest=False)
    assert str(wrong.inputs["w"].verdict) == "REFUTED"
    assert wrong.to_dict()["inputs"]["w"]["replayed"]["confirmed"] is True


@pytest.mark.parametrize("kind", NARROW)
def test_the_program_sees_the_dtype_that_it_stores(kind: Any) -> None:
    class Asks(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.to(kind)
            right = (
                y.dtype == kind and y.element_size() == 2 and (y + y).dtype == kind
                and (y + x).dtype == x.dtype and y.type() == torch.ones(1, dtype=kind).type()
                and torch.zeros_like(y).dtype == kind and (y * 2).is_floating_point()
                and (y > 0).float().to(y).dtype == kind
            )  # fmt: skip
            return 3 * x if right else x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 3 * g

    assert str(sg.verify(Asks, "n").verdict) == "PROVED"


def test_no_kernels_are_made_of_what_is_stored_in_16_bits() -> None:
    with pytest.raises(sg.SymgradError, match="stores values as float16"):
        sg.compile(stored(STORED["half()"]), "n", "n")
