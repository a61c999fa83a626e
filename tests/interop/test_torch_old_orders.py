"""Numbers before the tensors, as torch documented it once, mean the same as by name."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = [
    pytest.mark.peers, pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:This overload:UserWarning"),
]  # fmt: skip
FUNCTION: Any = torch.autograd.Function


class OfThree(FUNCTION):
    """``gradients``: by each argument.  ``wrong``: the last one is twice as large."""

    wrong = False

    @classmethod
    def forward(cls, ctx: Any, x: Any, a: Any, b: Any) -> Any:
        ctx.save_for_backward(a, b)
        return cls.value(x, a, b)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors
        by_x, by_a, by_b = cls.gradients(a, b)
        return by_x * g, by_a * g, (2 if cls.wrong else 1) * by_b * g

    value: Any
    gradients: Any


CALLS: dict[str, Any] = {
    "addcmul": (
        lambda x, a, b: torch.addcmul(x, -1, a, b), lambda a, b: (1, -b, -a),
    ),
    "method": (
        lambda x, a, b: x.addcmul(0.5, a, b), lambda a, b: (1, b / 2, a / 2),
    ),
    "addcdiv": (
        lambda x, a, b: x.addcdiv(2, a, b), lambda a, b: (1, 2 / b, -2 * a / b**2),
    ),
    "add and sub": (
        lambda x, a, b: torch.add(x, 2, a).add(3, b).sub(4, a), lambda a, b: (1, -2, 3),
    ),
    "in place": (
        lambda x, a, b: x.clone().add_(2, a).addcmul_(1, a, b),
        lambda a, b: (1, 2 + b, a),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_number_before_the_tensors_is_a_scale(name: str) -> None:
    value, gradients = CALLS[name]
    members = {"value": staticmethod(value), "gradients": staticmethod(gradients)}
    made: Any = type("Made", (OfThree,), members)
    assert sg.verify(made, "n", "n", "n", timeout=None).verdict is sg.PROVED
    wrong = type("Made", (made,), {"wrong": True})
    assert sg.verify(wrong, "n", "n", "n", timeout=None, suggest=False).verdict is sg.REFUTED


class Product(FUNCTION):
    """``beta x + alpha a b``."""

    method = False

    @classmethod
    def forward(cls, ctx: Any, x: Any, a: Any, b: Any) -> Any:
        ctx.save_for_backward(a, b)
        return x.addmm(2, 3, a, b) if cls.method else torch.addmm(2, x, 3, a, b)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors
        return 2 * g, 3 * g @ b.t(), 3 * a.t() @ g


@pytest.mark.parametrize("method", [False, True])
def test_both_scales_of_a_product_before_the_matrices(method: bool) -> None:
    made = type("Product", (Product,), {"method": method})
    assert sg.verify(made, "n k", "n m", "m k", timeout=None).verdict is sg.PROVED
