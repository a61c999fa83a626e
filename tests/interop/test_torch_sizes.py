"""Sizes of torch's tensors compute as integers do, and say what has no symbolic value."""

from __future__ import annotations

import linecache
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers

PROGRAM = """
import math
import torch

class Asks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        n = x.shape[0]
        return x * x * ({forward})

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = x.shape[0]
        return 2 * g * x * ({backward})
"""


def judged(forward: str, backward: str) -> sg.Report:
    text = PROGRAM.format(forward=forward, backward=backward)
    path = f"<torch sizes {forward} {backward}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    space: dict[str, Any] = {"__name__": "torch_sizes"}
    exec(compile(text, path, "exec"), space)
    return sg.verify(space["Asks"], "n", suggest=False, timeout=None)


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        ("n & 7", "n % 8"), ("n >> 3", "n // 8"), ("(n << 2) + (~n)", "3 * n - 1"),
        ("n | 1", "n + 1 - n % 2"), ("math.trunc(n / 3)", "n // 3"),
        ("(-1) ** n", "1 - 2 * (n % 2)"),
        ("torch.sym_float(n)", "n"), ("torch.sym_int(n / 2)", "n // 2"),
        ("torch.sym_max(n, 3)", "n if n > 3 else 3"), ("torch.sym_sqrt(n)", "n ** 0.5"),
        ("1 + math.gcd(n, 4) - math.gcd(4, n)", "torch.pow(x, 0)"),
    ],
)  # fmt: skip
def test_sizes_compute_as_integers_do(forward: str, backward: str) -> None:
    assert str(judged(forward, backward).verdict) == "PROVED"
    assert str(judged(forward, f"2 * ({backward})").verdict) == "REFUTED"


@pytest.mark.parametrize(
    "text", ["n & (n - 1)", "round(n ** 0.5)", "math.isqrt(n)", "n.bit_length()", "(n / 3).hex()"]
)
def test_what_has_no_symbolic_value_is_said(text: str) -> None:
    reason = judged("1", f"len([{text}])").inputs["x"].reason
    assert ":16: the size" in reason
    assert "is symbolic, so it has no" in reason


FUNCTION: Any = torch.autograd.Function


class Rows(FUNCTION):
    """Backward alone counts the rows."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return (x * x).sum(0)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        out = torch.zeros_like(x)
        for i in range(len(x)):
            out[i] = 2 * cls.scale * x[i] * g
        return out


class Differences(FUNCTION):
    """A range up to one less than a size."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return torch.stack([x[..., i + 1] - x[..., i] for i in range(x.shape[-1] - 1)], -1)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        m = g.shape[-1]
        inner = [g[..., i - 1] - g[..., i] for i in range(1, m)]
        return cls.scale * torch.stack([-g[..., 0], *inner, g[..., m - 1]], -1)


class Doubling(FUNCTION):
    """A loop asks about a size until it is passed."""

    scale = 1

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        step = 1
        while step < x.shape[0]:
            x, step = torch.cat([x[:step], x[step:] + x[:-step]]), 2 * step
        return x

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return cls.scale * g.flip(0).cumsum(0).flip(0)


@pytest.mark.parametrize(
    ("cls", "axis"),
    [(Rows, 0), (Differences, 1), pytest.param(Doubling, 0, marks=pytest.mark.slow)],
)
def test_a_loop_over_a_size_is_traced_for_a_number(cls: Any, axis: int) -> None:
    def judged(scale: int) -> sg.Report:
        scaled = type(cls.__name__, (cls,), {"scale": scale})
        return sg.verify(scaled, suggest=False, timeout=None)

    found = judged(1)
    assert str(found.verdict) == "PROVED"
    needed = f"x.shape[{axis}] == 4 (Python needs a number)"
    assert needed in [str(one.text) for one in found.inputs["x"].conditions]
    assert str(judged(2).verdict) == "REFUTED"


class Recurrence(FUNCTION):
    """Forward counts to one size, and reads another tensor as far; backward counts to that one."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        states = [torch.zeros_like(b[0])]
        for i in range(b.shape[0]):
            states.append(a[i] * states[-1] + b[i])
        ctx.save_for_backward(a, torch.stack(states))
        return torch.stack(states[1:])

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        a, states = ctx.saved_tensors
        by_a, by_b, left = torch.empty_like(a), torch.empty_like(g), torch.zeros_like(g[0])
        for i in range(a.shape[0] - 1, -1, -1):
            left = left + g[i]
            by_a[i], by_b[i] = left * states[i], left
            left = left * a[i]
        return by_a, by_b


def test_what_backward_counts_to_has_a_number_that_forward_takes() -> None:
    found = sg.verify(Recurrence, suggest=False, timeout=None)
    assert str(found.verdict) == "PROVED"
    texts = [one.text for one in found.inputs["a"].conditions]
    assert "a.shape[0] == 4 (Python needs a number)" in texts


class Table(FUNCTION):
    """A double loop, of which the bounds are one more than the sizes."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        n, m = x.shape
        total = torch.zeros((n + 1, m + 1), dtype=x.dtype)
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                total[i, j] = x[i - 1, j - 1] + total[i - 1, j] * total[i, j - 1]
        ctx.save_for_backward(total)
        return total[-1, -1]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (total,) = ctx.saved_tensors
        n, m = total.shape[0] - 1, total.shape[1] - 1
        out = torch.zeros((n + 2, m + 2), dtype=total.dtype)
        for i in range(n, 0, -1):
            for j in range(m, 0, -1):
                out[i, j] = g if (i, j) == (n, m) else 0
                if i < n:
                    out[i, j] += out[i + 1, j] * total[i + 1, j - 1]
                if j < m:
                    out[i, j] += out[i, j + 1] * total[i - 1, j + 1]
        return out[1 : n + 1, 1 : m + 1]


@pytest.mark.slow
def test_a_double_loop_has_other_numbers_for_both_sizes() -> None:
    found = sg.verify(Table, suggest=False, timeout=None)
    assert str(found.verdict) == "PROVED"
    texts = [one.text for one in found.inputs["x"].conditions]
    for axis, number in ((0, 4), (1, 3)):
        assert f"x.shape[{axis}] == {number} (Python needs a number)" in texts
