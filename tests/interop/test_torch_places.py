"""Places that a program computes, compared with torch: where it raises, the report says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers
Function: Any = torch.autograd.Function

PLACES: dict[str, Callable[[Any, int], Any]] = {
    "argmax": lambda x, n: x.argmax(),
    "argmax + 1": lambda x, n: x.argmax() + 1,
    "argmax - 1": lambda x, n: x.argmax() - 1,
    "-argmax - 2": lambda x, n: -x.argmax() - 2,
    "argmax - n": lambda x, n: x.argmax() - n,
    "argmax % 2": lambda x, n: x.argmax() % 2,
    "argsort": lambda x, n: x.argsort(),
    "argsort - 1": lambda x, n: x.argsort() - 1,
    "topk": lambda x, n: x.topk(1)[1],
    "max": lambda x, n: x.max(0)[1],
    "mask": lambda x, n: (x > 1).long(),
    "mask - 1": lambda x, n: (x > 1).long() - 1,
    "mask * 7": lambda x, n: (x > 1).long() * 7,
    "count - 1": lambda x, n: (x > 1).long().sum() - 1,
    "count": lambda x, n: (x > 1).long().sum(),
    "floats": lambda x, n: (x * 3).long(),
    "clamp": lambda x, n: x.long().clamp(0, n - 1),
    "clamp to n": lambda x, n: x.long().clamp(0, n),
    "floor % n": lambda x, n: x.floor().long() % n,
    "where": lambda x, n: torch.where(x > 1, n, 0),
    "ramp": lambda x, n: torch.arange(n) // 2,
    "ramp + mask": lambda x, n: torch.arange(n) + (x > 1).long(),
}
READERS: dict[str, Callable[[Any, Any, int], Any]] = {
    "brackets": lambda x, z, n: x[z],
    "written": lambda x, z, n: x.clone().index_put((z,), x.new_zeros(())),
    "added": lambda x, z, n: x.index_put((z,), x.new_zeros(()), True),
    "take": lambda x, z, n: x.take(z),
    "take_along_dim": lambda x, z, n: torch.take_along_dim(x, z.reshape(-1), 0),
    "gather": lambda x, z, n: x.gather(0, z.reshape(-1)),
    "scatter": lambda x, z, n: x.scatter(0, z.reshape(-1), 0.0),
    "scatter_add": lambda x, z, n: x.scatter_add(0, z.reshape(-1), x),
    "index_select": lambda x, z, n: x.index_select(0, z.reshape(-1)),
    "index_add": lambda x, z, n: x.index_add(0, z.reshape(-1), x[0].expand(z.reshape(-1).shape)),
    "index_fill": lambda x, z, n: x.index_fill(0, z.reshape(-1), 1.0),
    "one_hot": lambda x, z, n: torch.nn.functional.one_hot(z, n),
    "embedding": lambda x, z, n: torch.nn.functional.embedding(z, x[:, None]),
    "cross_entropy": lambda x, z, n: torch.nn.functional.cross_entropy(
        x.expand(z.reshape(-1).shape[0], n), z.reshape(-1)
    ),
    "nll_loss": lambda x, z, n: torch.nn.functional.nll_loss(
        x.expand(z.reshape(-1).shape[0], n), z.reshape(-1)
    ),
    "divisor": lambda x, z, n: torch.arange(n) // z,
    "remainder": lambda x, z, n: torch.arange(n) % z,
}
POINTS = [
    torch.tensor(values, dtype=torch.float64)
    for values in ([1.5], [0.5], [0.5, 1.5], [3.0, 1.0, 2.0], [0.2, 0.3, 0.1], [-0.5, 1.5, 4, 0.5])
]  # fmt: skip


def unread(place: Callable[[Any, int], Any], reader: Callable[[Any, Any, int], Any]) -> Any:
    """A right backward that computes something for nothing."""

    class Unread(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            reader(x, place(x, x.shape[0]), x.shape[0])
            return 2 * g * x

    return Unread


def holds(code: str, x: Any) -> bool:
    """Does a printed condition hold for all elements?"""
    names = {"sg": sg, "x": sg.tensor(x.numpy()), "n": len(x)}
    found = eval(code, names)
    return bool(found if isinstance(found, bool) else found.numpy().all())


def raises(function: Any, x: Any) -> bool:
    given = x.clone().requires_grad_()
    try:
        function.apply(given).sum().backward()
    except (IndexError, RuntimeError):
        return True
    assert torch.equal(given.grad, 2 * x)
    return False


FITTING = [
    ("argmax", reader) for reader in READERS if reader not in ("divisor", "remainder")
] + [
    (place, reader)
    for place in ("argsort", "topk", "max", "clamp", "floor % n", "ramp")
    for reader in ("brackets", "gather", "index_select", "index_add", "one_hot")
] + [("argmax - 1", "brackets"), ("argmax - n", "brackets"), ("argmax - 1", "take")]  # fmt: skip
"""What fits at all values: no condition is printed."""


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("place", PLACES)
def test_a_backward_is_proved_only_where_torch_does_not_raise(place: str, reader: str) -> None:
    function = unread(PLACES[place], READERS[reader])
    report = sg.verify(function, "n", suggest=False)
    if report.verdict is not sg.PROVED:
        assert report.verdict is sg.UNDECIDED, str(report)
        assert (place, reader) not in FITTING, str(report)
        return
    conditions = [one for one in report.inputs["x"].conditions if one.kind == "index"]
    assert not conditions or (place, reader) not in FITTING, str(report)
    for x in POINTS:
        if raises(function, x):
            assert any(not (one.code and holds(one.code, x)) for one in conditions), str(report)


COUNTED = ["brackets", "take", "take_along_dim"]


@pytest.mark.parametrize("reader", COUNTED)
def test_a_negative_place_that_torch_counts_from_the_end_is_no_zero(reader: str) -> None:
    read = READERS[reader]

    class Previous(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return read(x, x.argmax() - 1, x.shape[0])

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * (torch.arange(x.shape[0]) == x.argmax() - 1)

    report = sg.verify(Previous, "n")
    assert report.verdict is sg.REFUTED, str(report)
    x = torch.tensor([3.0, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    Previous.apply(x).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]
    assert read(x.detach(), torch.tensor(-1), 3).reshape(-1).tolist() == [2.0]
