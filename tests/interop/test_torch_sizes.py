"""Sizes of torch's tensors compute as integers do, and say what has no symbolic value."""

from __future__ import annotations

import linecache
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad import compiler  # noqa: E402
from symgrad.deadline import TimeUp  # noqa: E402

pytestmark = pytest.mark.peers

Function: Any = torch.autograd.Function

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
    size = f"x.shape[{axis}]"
    needed = f"{size} == 4 or {size} == 5 (Python needs a number)"
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
    either = [f"a.shape[0] == {n} and b.shape[0] == {n}" for n in (4, 5)]
    assert f"{' or '.join(either)} (Python needs numbers)" in texts


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
    either = [f"x.shape[0] == {n} and x.shape[1] == {m}" for n, m in ((4, 3), (5, 2))]
    assert f"{' or '.join(either)} (Python needs numbers)" in texts


class Pairs(FUNCTION):
    """Backward goes by twos: a last odd row gets no gradient."""

    rows = staticmethod(lambda n: 2 * (n // 2))

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.exp()

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        out = torch.zeros_like(g)
        for i in range(cls.rows(len(g))):
            out[i] = g[i] * x[i].exp()
        return out


class Whole(Pairs):
    """All rows."""

    rows = staticmethod(lambda n: n)


class PowersOfTwo(Pairs):
    """As many rows as the greatest power of two."""

    rows = staticmethod(lambda n: max(2**i for i in range(n) if 2**i <= n))


class Squares(Pairs):
    """As many rows as the greatest square."""

    rows = staticmethod(lambda n: max(i * i for i in range(n) if i * i <= n))


@pytest.mark.parametrize("cls", [Pairs, PowersOfTwo, Squares])
def test_a_mistake_at_odd_sizes_is_refuted(cls: Any) -> None:
    report = sg.verify(cls, suggest=False, timeout=None)
    assert str(report.verdict) == "REFUTED"
    assert report.inputs["x"].reason == "for x.shape[0] == 5"
    x = torch.rand(5, 1, dtype=torch.float64, requires_grad=True)
    assert not torch.autograd.gradcheck(cls.apply, x, raise_exception=False)
    assert str(sg.verify(Whole, suggest=False, timeout=None).verdict) == "PROVED"


class Halves(Whole):
    """Forward takes even sizes alone."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        for _ in range(x.shape[0]):
            pass
        if len(x) % 2:
            raise ValueError("an odd number of rows")
        ctx.save_for_backward(x)
        return x.exp()


def test_an_even_size_is_another_number_where_odd_ones_are_refused() -> None:
    report = sg.verify(Halves, suggest=False, timeout=None)
    assert str(report.verdict) == "PROVED"
    texts = [one.text for one in report.inputs["x"].conditions]
    assert "x.shape[0] == 4 or x.shape[0] == 6 (Python needs a number)" in texts


@pytest.mark.parametrize("late", [(), ("5",), ("5", "3", "6")])
def test_a_faster_size_is_judged_where_one_takes_too_long(
    monkeypatch: pytest.MonkeyPatch, late: tuple[str, ...]
) -> None:
    judged = compiler._traced

    def slow(request: Any, suggest: bool) -> sg.Report:
        if request.guess.sizes and request.guess.sizes[0].endswith(late):
            raise TimeUp(1.0, "a loop")
        return judged(request, suggest)

    monkeypatch.setattr(compiler, "_traced", slow)
    report = sg.verify(Whole, suggest=False, timeout=None)
    texts = [one.text for one in report.inputs["x"].conditions]
    if len(late) < 3:
        other = 3 if late else 5
        assert str(report.verdict) == "PROVED"
        assert f"x.shape[0] == 4 or x.shape[0] == {other} (Python needs a number)" in texts
    else:
        assert str(report.verdict) == "UNDECIDED"
        assert "judged at other sizes" in [one.name for one in report.protocol]


class EverySecond(FUNCTION):
    """Zeros between the elements; of an odd size, the last zero has to go."""

    last = True

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.size = x.shape[-1]
        return x[..., ::2]

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        whole = torch.stack([g, torch.zeros_like(g)], -1).flatten(-2)
        if whole.shape[-1] == ctx.size:
            return whole
        return whole[..., : ctx.size] if cls.last else whole[..., -ctx.size :]


@pytest.mark.parametrize("shapes", [(), ("n m",)])
@pytest.mark.parametrize("last", [True, False])
def test_a_gradient_has_the_size_that_the_case_makes_its_own_equal_to(
    last: bool, shapes: tuple[str, ...]
) -> None:
    """In ``2*m - 2*(m//2) == m`` no size is solved for: the shapes are written in two ways."""
    report = sg.verify(type("Every", (EverySecond,), {"last": last}), *shapes, suggest=False)
    assert str(report.verdict) == ("PROVED" if last else "REFUTED"), str(report)
    shown = {one.name: one.verdict for one in report.protocol}
    assert shown["shapes of the gradients"] is sg.PROVED
    assert not last or not report.inputs["x"].conditions


@pytest.mark.parametrize("factor", [1, 2])
def test_a_size_is_a_product_of_sizes_of_others(factor: int) -> None:
    """A bank of kernels: what is parted comes behind the axes that stay."""

    class Bank(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, a: Any, bank: Any) -> Any:
            b, c, h, w = x.shape
            ctx.save_for_backward(x, a, bank)
            return (a @ bank).reshape(b, h * w, c, c * w).sum(-1) + x.sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, a, bank = ctx.saved_tensors
            b, c, h, w = x.shape
            wide = g.unsqueeze(-1).expand(b, h * w, c, c * w).reshape(b, h * w, -1)
            by_bank = factor * a.flatten(0, 1).T @ wide.flatten(0, 1)
            return g.sum().expand(x.shape), wide @ bank.T, by_bank

    report = sg.verify(Bank, suggest=False)
    assert "x[n, m, k, l], a[n, k*l, h], bank[h, l*m*m]" in " ".join(report.notes)
    assert (report.verdict is sg.PROVED) is (factor == 1)
