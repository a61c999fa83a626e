"""In-place operations keep the shape of what they write, as torch's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import ShapeError  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function
Write = Callable[[Any, Any], Any]

GROW: dict[str, Write] = {
    "mul_": lambda d, v: d.mul_(v[None]),
    "*=": lambda d, v: d.__imul__(v[None, None]),
    "copy_": lambda d, v: d.copy_(v[None]),
    "addcmul_": lambda d, v: d.addcmul_(v[None], v),
    "clamp_": lambda d, v: d.clamp_(min=v[None]),
    "of a number": lambda d, v: d[0, 0].add_(v[:1, 0]),
}
KEEP: dict[str, Write] = {
    "row": lambda d, v: d.mul_(v[0]),
    "items": lambda d, v: d.__setitem__(slice(None), d * v[None]),
    "an item": lambda d, v: d.__setitem__((0, 0), v[:1, 0]),
}


def _class(write: Write) -> Any:
    class Written(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, v: Any) -> Any:
            d = x * 2
            write(d, v)
            return d

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, None

    return Written


@pytest.mark.parametrize("name", GROW)
def test_a_larger_result_is_not_written(name: str) -> None:
    tensors = torch.ones(2, 3), torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="broadcast shape"):
        _class(GROW[name]).apply(*tensors)
    with pytest.raises(ShapeError):
        sg.verify(_class(GROW[name]), "2 3", "2 3")


@pytest.mark.parametrize("name", KEEP)
def test_what_has_the_shape_is_written(name: str) -> None:
    _class(KEEP[name]).apply(torch.ones(2, 3), torch.ones(2, 3))
    assert sg.verify(_class(KEEP[name]), "2 3", "2 3", suggest=False) == sg.REFUTED
