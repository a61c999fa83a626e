"""Backwards that put a permutation back: by writing at its places, and by its inverse."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers
FUNCTION: Any = torch.autograd.Function


def _written(g: Any, order: Any) -> Any:
    out = torch.empty_like(g)
    out[order] = g
    return out


def _inverted(g: Any, order: Any) -> Any:
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(order.shape[0])
    return g[inverse]


def _sorted_back(g: Any, order: Any) -> Any:
    return g.index_select(0, torch.argsort(order))


def _again(g: Any, order: Any) -> Any:
    return g[order]


BACK = (_written, _inverted, _sorted_back)


class Reordered(FUNCTION):
    """The rows in another order."""

    back: Any = staticmethod(_written)

    @staticmethod
    def order(x: Any) -> Any:
        return torch.argsort(x.reshape(x.shape[0], -1)[:, 0])

    @classmethod
    def forward(cls, ctx: Any, x: Any) -> Any:
        order = cls.order(x)
        ctx.save_for_backward(order)
        return x[order]

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (order,) = ctx.saved_tensors
        return cls.back(g, order)


class Shuffled(Reordered):
    @staticmethod
    def order(x: Any) -> Any:
        return torch.randperm(x.shape[0])


class Given(FUNCTION):
    back: Any = staticmethod(_written)

    @staticmethod
    def forward(ctx: Any, x: Any, order: Any) -> Any:
        ctx.save_for_backward(order)
        return x[order]

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (order,) = ctx.saved_tensors
        return cls.back(g, order), None


def judged(cls: Any, back: Any, *given: Any, **kwargs: Any) -> str:
    made = type(cls.__name__, (cls,), {"back": staticmethod(back)})
    return str(sg.verify(made, *given, suggest=False, timeout=None, **kwargs).verdict)


@pytest.mark.parametrize("cls", [Reordered, Shuffled])
def test_an_order_is_put_back(cls: Any) -> None:
    for back in BACK:
        assert judged(cls, back, "n m") == "PROVED", back
    assert judged(cls, _again, "n m") == "REFUTED"


def test_a_declared_permutation_is_put_back() -> None:
    def of(back: Any, length: str = "n", **kwargs: Any) -> str:
        return judged(Given, back, f"n m; i64[{length}]", **kwargs)

    for back in BACK:
        assert of(back, assume={"order": "unique"}) == "PROVED", back
        assert of(back) != "PROVED"  # an index may stand twice in it
    assert of(_written, "k", assume={"order": "unique"}) != "PROVED"  # some rows are not named
    assert of(_again, assume={"order": "unique"}) == "REFUTED"
