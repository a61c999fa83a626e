"""Second order where forward keeps what may be a copy: a copy has no history in torch.

torch is the oracle: it differentiates twice for several layouts and dtypes of the input.
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers

FUNCTION: Any = torch.autograd.Function
CHANGES = {
    "contiguous": lambda x: x.contiguous(),
    "float": lambda x: x.float(),
    "to a dtype": lambda x: x.to(torch.float32),
    "to a format": lambda x: x.to(memory_format=torch.contiguous_format),
    "type": lambda x: x.type(torch.float32),
    "type_as": lambda x: x.type_as(torch.zeros(1)),
    "as_tensor": lambda x: torch.as_tensor(x, dtype=torch.float32),
    "itself": lambda x: x,
}
INPUTS = (
    torch.arange(1.0, 7).reshape(2, 3),
    torch.arange(1.0, 7).reshape(3, 2).t(),
    torch.arange(1.0, 7).double().reshape(2, 3),
)


def kept(change: Any) -> Any:
    class Kept(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x = change(x)
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * g * x * x

    return Kept


def returned(change: Any) -> Any:
    class Returned(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.t().exp()
            ctx.save_for_backward(y)
            return change(y)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return (g * y).t()

    return Returned


def computed(change: Any) -> Any:
    class Computed(FUNCTION):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return change(2 * x) ** 3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 24 * g.contiguous() * x * x

    return Computed


def is_wrong(function: Any, given: Any) -> bool:
    """Does torch lose what the derivative of backward depends on?"""
    x = given.detach().requires_grad_()
    (first,) = torch.autograd.grad(function.apply(x).sum(), x, create_graph=True)
    if not first.requires_grad:
        return True
    (second,) = torch.autograd.grad(first.sum(), x, allow_unused=True)
    return second is None or not bool((second != 0).all())


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("program", [kept, returned, computed])
@pytest.mark.filterwarnings("ignore")
def test_what_torch_loses_is_printed(program: Any, change: str) -> None:
    function = program(CHANGES[change])
    report = sg.verify(function, "n m", order=2)
    (found,) = [one for one in report.protocol if one.name == "second order"]
    wrong = any(is_wrong(function, one) for one in INPUTS)
    assert str(found.verdict) == "PROVED"
    printed = "gives the tensor itself, and no copy" in found.text
    assert printed or not wrong
    assert not printed or (change != "itself" and program is not computed)
