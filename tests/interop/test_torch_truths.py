"""The truth value of a tensor of several elements: torch's own error."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers

Function: Any = torch.autograd.Function
ASKED = (
    "2 * g if x > 0 else 2 * g", "2 * g if not x else 2 * g + 0 * x", "2 * g * (1 if x else 1)",
    "2 * g * (x is x and 1) if x > 1 and x < 2 else 2 * g",
)  # fmt: skip


def asking(body: str) -> Any:
    names: dict[str, Any] = {"torch": torch}
    text = f"""
def forward(ctx, x):
    ctx.save_for_backward(x)
    return 2 * x


def backward(ctx, g):
    (x,) = ctx.saved_tensors
    {body}
"""
    exec(compile(text, __file__, "exec"), names)
    members = {name: staticmethod(names[name]) for name in ("forward", "backward")}
    return type("Asking", (Function,), members)


@pytest.mark.parametrize(
    "body", [*(f"return {one}" for one in ASKED), "assert x > 0; return 2 * g"]
)
def test_there_is_none_of_several_elements(body: str) -> None:
    report = sg.verify(asking(body), "n", suggest=False)
    assert report.verdict is sg.REFUTED, str(report)
    assert "run in torch: RuntimeError: Boolean value of Tensor with more than one" in str(report)
    assert "PROVED if n == 1" in str(report)
    assert sg.verify(asking(body), "1", suggest=False).verdict is sg.PROVED
