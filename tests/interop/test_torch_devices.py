"""CUDA that a program calls for: judged on a machine that has none, and the verdict says so.

Where there is none, torch runs a counterexample on the CPU; what asks which GPU it is is UNDECIDED.
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function

MOVED: dict[str, Any] = {
    "method": lambda x: x.cuda(),
    "of a new tensor": lambda x: torch.zeros(x.shape).cuda() + x,
    "of numbers": lambda x: x * torch.tensor([1.0]).cuda(0),
    "to": lambda x: x.to("cuda"),
    "to a device": lambda x: x.to(torch.device("cuda", 0)),
    "made there": lambda x: torch.ones(x.shape, device="cuda:0") * x,
    "like it": lambda x: torch.ones_like(x, device="cuda") * x,
    "new": lambda x: x.new_ones(x.shape, device="cuda") * x,
    "current": lambda x: torch.ones(x.shape, device=torch.cuda.current_device()) * x,
}


@pytest.mark.parametrize("name", MOVED)
@pytest.mark.parametrize("factor", [2, 3], ids=["right", "wrong"])
def test_what_is_moved_to_cuda_keeps_its_values(name: str, factor: int) -> None:
    class Doubled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * MOVED[name](x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return factor * MOVED[name](g)

    report = sg.verify(Doubled, "n m")
    runs = torch.cuda.is_available()  # a refutation has to be confirmed
    wrong = sg.SURROGATE if runs else sg.UNDECIDED if name == "current" else sg.REFUTED
    assert report.verdict == (sg.PROVED if factor == 2 else wrong), str(report)
    assert "GPU of CUDA" in str(report) or "torch.cuda.current_device" in str(report)
    if factor == 3:
        assert report.inputs["x"].counterexample is not None


MADE: dict[str, Any] = {
    "data": lambda x: torch.FloatTensor([2.0]),
    "data for CUDA": lambda x: torch.cuda.FloatTensor([2.0]),
    "filled": lambda x: torch.cuda.FloatTensor(1).fill_(2),
    "sizes": lambda x: torch.FloatTensor(x.size(0), 1).fill_(2),
    "a shape": lambda x: torch.FloatTensor(x.size()).zero_() + 2,
    "drawn": lambda x: torch.cuda.FloatTensor([0]).bernoulli_(1.0) * 2,
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("factor", [2, 3], ids=["right", "wrong"])
def test_a_tensor_of_an_old_class_is_one_of_the_trace(name: str, factor: int) -> None:
    class Scaled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * MADE[name](x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return factor * g

    report = sg.verify(Scaled, "n m", suggest=False)
    assert (report.verdict == sg.PROVED) == (factor == 2), str(report)


@pytest.mark.parametrize("factor", [2, 3], ids=["right", "wrong"])
def test_a_move_back_to_the_device_of_an_input_is_for_both_devices(factor: int) -> None:
    class Moved(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, device: torch.device) -> Any:  # type: ignore[name-defined]
            ctx.own = x.device
            return 2 * x.to(device)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return factor * g.to(ctx.own), None

    report = sg.verify(Moved)
    assert report.verdict == (sg.PROVED if factor == 2 else sg.REFUTED), str(report)
    assert "for device = device(type='cpu')" in report.stated
    assert "GPU" not in str(report)


def test_memory_that_nobody_wrote_is_not_proved() -> None:
    class Unwritten(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x + torch.FloatTensor(1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    assert sg.verify(Unwritten, "n m").verdict != sg.PROVED


def test_outside_of_a_trace_torch_answers() -> None:
    if not torch.cuda.is_available():
        with pytest.raises((AssertionError, RuntimeError)):
            torch.cuda.current_device()
