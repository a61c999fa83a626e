"""Devices: the CPU and a GPU are both judged; what tells a third kind from them is printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers

FUNCTION: Any = torch.autograd.Function
CONDITION = "the tensors are on the CPU or on a GPU of CUDA"


def square(factor: Callable[[Any], float]) -> Any:
    """Its backward has the factor that is made of the input; 2 is right."""

    class Square(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return factor(x) * g * x

    return Square


def of_three(x: Any) -> int:
    if x.device.type == "cpu":
        return 2
    return 2 if x.is_cuda else 3


THIRD: dict[str, Callable[[Any], int]] = {
    "mps": lambda x: 3 if x.device.type == "mps" else 2,
    "meta": lambda x: 3 if x.device.type != "cpu" and x.device.type == "meta" else 2,
    "a device": lambda x: 3 if x.device == torch.device("mps") else 2,
    "one of": lambda x: 3 if x.device.type in ("xpu", "hpu") else 2,
    "text": lambda x: 3 if str(x.device) == "mps:0" else 2,
    "formatted": lambda x: 3 if f"{x.device}" == "mps:0" else 2,
    "in the text": lambda x: 3 if "mps" in str(x.device) else 2,
    "begins": lambda x: 3 if x.device.type.startswith("m") else 2,
    "looked up": lambda x: {"mps": 3}.get(x.device.type, 2),
    "a set": lambda x: 3 if x.device in {torch.device("mps")} else 2,
    "flag": lambda x: 3 if x.is_mps else 2,
    "neither": of_three,
}
BOTH: dict[str, Callable[[Any], float]] = {
    "cuda": lambda x: 2 if x.device.type == "cuda" else 2.0,
    "cpu": lambda x: 2 if x.device.type == "cpu" else 2.0,
    "flags": lambda x: 2 if x.is_cuda else 2.0,
    "twice": lambda x: 2 if x.is_cuda or x.device.type == "cuda" else 2.0,
    "alike": lambda x: 2 if x.device == x.device else 3,
    "handed on": lambda x: 2 * x.new_ones((), device=x.device),
}


@pytest.mark.parametrize("name", THIRD)
def test_what_tells_a_third_device_from_both_is_printed(name: str) -> None:
    report = sg.verify(square(THIRD[name]), "n", suggest=False)
    assert str(report.verdict) == "PROVED"
    assert CONDITION in str(report)


@pytest.mark.parametrize("name", BOTH)
def test_what_is_judged_for_both_has_no_condition(name: str) -> None:
    report = sg.verify(square(BOTH[name]), "n", suggest=False)
    assert str(report.verdict) == "PROVED"
    assert CONDITION not in str(report)


@pytest.mark.parametrize(
    "factor",
    [
        lambda x: 3 if x.is_cuda else 2,
        lambda x: 2 if x.device.type == "cpu" else 3,
        lambda x: 3 if x.device.type == "cuda" else 2,
    ],
)
def test_what_is_wrong_on_a_gpu_is_refuted(factor: Any) -> None:
    assert str(sg.verify(square(factor), "n", suggest=False).verdict) != "PROVED"


def test_another_gpu_is_printed() -> None:
    found = sg.verify(square(lambda x: 3 if x.device == torch.device("cuda:1") else 2), "n")
    assert "if no tensor is on another GPU than the first" in str(found)
