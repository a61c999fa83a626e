"""What a mask selects, the places where it holds, and numbers that tensors hold: as in torch."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import SymgradError  # noqa: E402
from symgrad.frontend.session import Session, activate  # noqa: E402
from symgrad.frontend.sizes import symbolic_math  # noqa: E402
from symgrad.frontend.tensor import fresh  # noqa: E402
from symgrad.interop.torch.running import GUEST  # noqa: E402
from symgrad.ir.dim import Dim  # noqa: E402
from symgrad.ir.dtype import float64  # noqa: E402
from symgrad.ir.types import TensorType  # noqa: E402
from symgrad.passes.evaluate import evaluate  # noqa: E402

pytestmark = pytest.mark.peers

FUNCTION: Any = torch.autograd.Function

SHAPES = {"x": (4, 3), "y": (4, 3), "v": (4,), "w": (3,), "z": (4, 2, 3), "a": (1,)}
"""The tensors that the texts name."""
ROWS, ALL, SOME = "m = v > 0", "m = y > 0", "m = v >= v.median()"
SELECTING = [
    # rows, by a mask of the first axis
    (ROWS, "x[m].sum()"),
    (ROWS, "x[m].sum(-1).pow(2).sum()"),
    (ROWS, "x[m].sum(1, keepdim=True).mul(x[m]).sum()"),
    (ROWS, "x[m].sum(0)"),
    (ROWS, "x[m].sum(0, keepdim=True)"),
    (ROWS, "x[m].sum((0, 1), keepdim=True)"),
    (ROWS, "x[m].mean()"),
    (ROWS, "x[m].mean(1).exp().sum()"),
    (ROWS, "x[m].mean(0)"),
    (ROWS, "(x[m] * w).sum(1).exp().sum()"),
    (ROWS, "(x[m] * v[m].unsqueeze(1)).sum(0)"),
    (ROWS, "(x[m] * v[m][:, None]).sum()"),
    (ROWS, "z[m].sum(1).pow(2).sum((0, 1))"),
    (ROWS, "z[m][:, 1].pow(2).sum(0)"),
    (ROWS, "z[m].select(2, -1).exp().sum()"),
    (ROWS, "sum(part.exp().sum() * k for k, part in enumerate(z[m].unbind(1)))"),
    (ROWS, "x[m].flatten().exp().sum()"),
    (ROWS, "x[m].sum() / x[m].shape[0]"),
    (ROWS, "x[m].sum() / x[m].numel()"),
    (ROWS, "x.t()[:, m].sum(0).pow(2).sum()"),
    (ROWS, "x.t()[:, m].sum(1)"),
    (ROWS, "x.t()[:, m].mean(0, keepdim=True).sum(1)"),
    (ROWS, "m.sum() + torch.ones_like(x[m]).sum()"),
    (ROWS, "(x[m] + w.expand_as(x[m]) + a.squeeze().expand_as(x[m])).sum(0)"),
    (ROWS, "(x[m] - x.mean(0, keepdim=True)).pow(2).sum(0)"),
    (ROWS, "(x.t()[:, m] - x.t().mean(1, keepdim=True)).pow(2).sum(1)"),
    (ROWS, "(z[m] * w + x[0][None, None]).sum((0, 1))"),
    (ROWS, "out = torch.zeros_like(x); out[m] = w; out"),
    (ROWS, "out = torch.zeros_like(x); out[m] = w[None]; out"),
    (ROWS, "out = torch.zeros_like(x.t()); out[:, m] = w[:, None]; out"),
    (ROWS, "(x[m] > 1).any()"),
    (ROWS, "(x[m] > -1).all()"),
    (ROWS, "x * 2 if torch.tensor(1.5).clone() > 1 else x"),
    # elements, by a mask of all axes
    (ALL, "(x[m] * y[m]).sum()"),
    (ALL, "x[m].mean()"),
    (ALL, "(x[m] * a).sum(0)"),
    (ALL, "out = torch.zeros_like(x); out[m] = a; out"),
    (ALL, "x.masked_select(m).exp().sum(0)"),
    (ALL, "z.transpose(1, 2)[m].sum(1).pow(2).sum()"),
    (ALL, "z.transpose(1, 2)[m].sum(0)"),
    (ALL, "torch.zeros_like(x).masked_scatter(m, x[m] * 2 + 1)"),
    # places
    (ROWS, "x[m.nonzero().squeeze(-1)].sum(0)"),
    (ROWS, "x[m.nonzero().squeeze(1)].sum(1).exp().sum()"),
    (ROWS, "x[torch.nonzero(m).view(-1)].sum(0)"),
    (ROWS, "x[m.nonzero()[:, 0]].sum(0)"),
    (ROWS, "x[m.nonzero().flatten()].sum(0)"),
    (ROWS, "x[torch.where(m)[0]].sum(0)"),
    (ROWS, "x[torch.where(m)].sum(0)"),
    (ROWS, "x.index_select(0, m.nonzero().squeeze(-1)).sum(0)"),
    (ROWS, "x.t().index_select(1, m.nonzero().squeeze(-1)).sum(1)"),
    (ROWS, "i = m.nonzero().squeeze(-1); out = torch.zeros_like(x); out[i] = x[i] * 2; out"),
    (ROWS, "i = m.nonzero().squeeze(-1); x.index_add(0, i, x[i] * 3, alpha=2)"),
    (ROWS, "i = m.nonzero().squeeze(-1); x.index_copy(0, i, torch.ones_like(x[i]))"),
    (ROWS, "i = m.nonzero().squeeze(-1); x.index_fill(0, i, 5)"),
    (ROWS, "i = m.nonzero().squeeze(-1); out = x.clone(); out[i, 1:] += w[1:]; out"),
    (ROWS, "i = m.nonzero().squeeze(-1); (i * 2 + 1).sum()"),
    (ALL, "i, j = torch.nonzero(m, as_tuple=True); (x[i, j] * y[i, j]).sum()"),
    (ALL, "i, j = m.nonzero().t(); x[i, j].exp().sum()"),
    (ALL, "i, j = m.nonzero().unbind(1); x[i, j].exp().sum()"),
    (ALL, "n = m.nonzero(); x[n[:, 0], n[:, 1]].exp().sum()"),
    (ALL, "i = m.view(-1).nonzero().squeeze(-1); x.view(-1)[i].pow(2).sum()"),
    (ALL, "out = torch.zeros_like(x); i = torch.where(m); out[i] = x[i].exp(); out"),
    (ALL, "i, j = torch.where(m); x[i].sum(0)"),
    (ALL, "i, j = torch.where(m); x.t()[:, i].exp().sum(1)"),
    (ALL, "i, j = torch.where(m); (w[j] * x[i, j]).sum()"),
    (ALL, "i, j = torch.where(m); (x[i] * y[i, j, None] + w[j][:, None]).sum(0)"),
    (ALL, "i, j = torch.where(m); x.index_add(0, i, x[i] * 2, alpha=3)"),
    (ALL, "i, j = torch.where(m); x.t().index_add(1, i, (y[i] * x[i, j, None]).t())"),
    (ALL, "i, j = torch.where(m); w.index_add(0, j, x[i, j])"),
    # products
    (ROWS, "(x[m] @ x.t()).exp().sum(0)"),
    (ROWS, "x[m].t() @ x[m]"),
    (ROWS, "x[m].T @ v[m]"),
    (ROWS, "v[m] @ x[m]"),
    (ROWS, "x[m].mT.mm(x[m])"),
    (ROWS, "torch.dot(v[m], v[m].exp())"),
    (ROWS, "(x[m] @ w).pow(2).sum()"),
    (ROWS, "torch.mv(x[m], w).pow(2).sum()"),
    (ROWS, "(z[m] @ x.t()).pow(2).sum((0, 1))"),
    (ROWS, "(z[m].mT @ z[m]).exp().sum(0)"),
    (ROWS, "torch.einsum('ki,kj->ij', x[m], x[m])"),
    (ROWS, "torch.einsum('kai,ki', z[m], x[m])"),
    (ROWS, "torch.einsum('ki,ji->jk', x[m], x).exp().sum(1)"),
    (ROWS, "torch.nn.functional.linear(x[m], x, v).exp().sum(0)"),
    (ROWS, "out = torch.zeros_like(x); out[m] = x[m] @ (w[:, None] * w); out"),
    (ALL, "x[m] @ y[m]"),
    (ALL, "z.transpose(1, 2)[m].t() @ x[m]"),
    # along other axes
    (ROWS, "x[m].softmax(-1).pow(2).sum(0)"),
    (ROWS, "torch.log_softmax(x[m], 1).pow(2).sum(0)"),
    (ROWS, "x[m].logsumexp(1).sum()"),
    (ROWS, "x[m].amax(1, keepdim=True).mul(x[m]).sum(0)"),
    (ROWS, "x[m].max(1).values.exp().sum()"),
    (ROWS, "x[m].max(dim=-1)[1].sum()"),
    (ROWS, "z[m].min(1)[0].exp().sum(0)"),
    (ROWS, "z[m].amax((1, 2)).exp().sum(0)"),
    (ROWS, "z.permute(1, 0, 2)[:, m].amin(0).exp().sum(0)"),
    (ROWS, "x[m].argmax(1).sum()"),
    (ROWS, "x[m].cumsum(1).exp().sum(0)"),
    (ROWS, "x[m].prod(1).exp().sum()"),
    (ROWS, "x[m].sort(1).values.sum(0)"),
    (ROWS, "x[m].topk(2, dim=-1).values.sum(0)"),
    (ROWS, "x[m].var(1).sum()"),
    (ROWS, "z[m].transpose(1, 2).std(2, unbiased=False).sum(0)"),
    (ROWS, "z[m].permute(2, 0, 1).exp().sum(1)"),
    (SOME, "x[m].amax()"),
    (SOME, "x[m].max()"),
    (SOME, "x[m].min() + v[m].max()"),
    (SOME, "x[m].amin(0)"),
    (SOME, "x.t()[:, m].amax((0, 1))"),
    (SOME, "x[m].var(0, unbiased=False)"),
    (SOME, "v[m].var(unbiased=False)"),
    (SOME, "torch.std(x[m], 0, correction=-1)"),
    # numbers
    ("", "x * a.item() + a.item() ** 2"),
    ("", "torch.clamp(x, 0, a.item())"),
    ("", "x * (2 * a.item() - 1) / (1 + abs(a.item()))"),
    ("", "torch.full((3,), a.item()) * v.sum().item()"),
    ("", "x + (v > 0).sum().item()"),
    ("", "sum(row[0] * k for k, row in enumerate(x.tolist())) * x"),
    ("", "sum(torch.tensor([1.0, 2.5]).tolist()) * x"),
    ("", "import math; x * math.exp(a.item())"),
]
"""Statements, and an expression or more of them, the last one compared."""


def _traced(session: Session) -> dict[str, Any]:
    return {
        name: fresh(
            session.graph.input(name, TensorType(float64, tuple(map(Dim.of, shape)))), name
        )
        for name, shape in SHAPES.items()
    }  # fmt: skip


def _node(tensor: Any) -> Any:
    """The node of a traced tensor, which the program does not see."""
    return inspect.getattr_static(type(tensor).__mro__[1], "node").fget(tensor)


def _value(first: str, text: str, tensors: dict[str, Any]) -> Any:
    *statements, last = [one for one in (*first.split("; "), *text.split("; ")) if one]
    space = {"torch": torch, **tensors}
    for one in statements:
        exec(one, space)
    return eval(last, space)


@pytest.mark.parametrize(("first", "text"), SELECTING)
def test_what_a_mask_selects_is_as_in_torch(first: str, text: str) -> None:
    session = Session()
    session.guest = GUEST
    with activate(session), symbolic_math(), GUEST.running(session):
        tensors = _traced(session)
        node = _node(_value(first, text, tensors))
    rng = np.random.default_rng(0)
    for _ in range(4):
        feeds = {name: rng.normal(size=shape) for name, shape in SHAPES.items()}
        given = {name: torch.from_numpy(one) for name, one in feeds.items()}
        expected = _value(first, text, given).numpy()
        (found,) = evaluate([node], feeds)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-6)


REFUSED = [
    (ROWS, "x[m] @ x[m].t()"),
    (ROWS, "x[m].t() @ x"),
    (ROWS, "x.t() @ x[m]"),
    (ROWS, "x[m].t() @ x[v < 0]"),
    (ROWS, "torch.einsum('ki,kj->ij', x[m], x)"),
    (ROWS, "torch.einsum('ki,kj,k->ij', x[m], x[m], v[m])"),
    (ROWS, "x[m].cumsum(0)"),
    (ROWS, "x[m].max(0)"),
    (ROWS, "x[m].argmax()"),
    (ROWS, "x[m].amax(0, keepdim=True)"),
    (ROWS, "x[m].var()"),
    (ROWS, "x[m] + x"),
    (ROWS, "x[m] + v"),
    (ROWS, "x[m].softmax(0)"),
    (ROWS, "x[m].view(2, -1)"),
    (ROWS, "x[m][0]"),
    (ROWS, "len(x[m])"),
    (ROWS, "[row for row in x[m]]"),
    (ROWS, "x[m] * x[v < 0]"),
    (ROWS, "torch.zeros_like(x).masked_scatter(m[:, None], x[:1])"),
    (ROWS, "x.t()[:, m] * x[m]"),
    (ROWS, "out = torch.zeros_like(x); out[m] = x[v < 1]; out"),
    (ROWS, "out = torch.zeros_like(x); out[m.nonzero().squeeze(-1) + 1] = 1; out"),
    (ALL, "x[m.nonzero()]"),
    (ALL, "i, j = torch.where(m); x.t()[j, i]"),
    (ALL, "i, j = torch.where(m); x[j]"),
    (ALL, "i, j = torch.where(m); x[i + 1]"),
    (ALL, "i, j = torch.where(m); x.index_add(0, i, y[j])"),
    (ALL, "x if a.item() > 0 else -x"),
    ("", "v[int(a.item())]"),
    ("", "x * float(a)"),
    ("", "x.sum(v.long().sum().item())"),
    ("", "x * v.item()"),
    ("", "x * round(a.item(), 2)"),
    ("", "x * (a.item() // 2)"),
]
"""What has no shape or value that a trace knows."""


@pytest.mark.parametrize(("first", "text"), REFUSED)
def test_what_depends_on_values_is_refused_with_the_line(first: str, text: str) -> None:
    session = Session()
    session.guest = GUEST
    with activate(session), symbolic_math(), GUEST.running(session):
        tensors = _traced(session)
        with pytest.raises(SymgradError) as caught:
            _node(_value(first, text, tensors))
    assert str(caught.value)


class OfRows(sg.Function):
    """The squares of the sums of the rows that a mask selects."""

    @staticmethod
    def forward(ctx: Any, x: Any, v: Any) -> Any:
        m = v > 0
        ctx.save_for_backward(x, m)
        return x[m].sum(-1).pow(2).sum()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, m = ctx.saved_tensors
        out = sg.zeros_like(x)
        out[m] = (2 * g * x[m].sum(-1)).unsqueeze(-1)
        return out, None


class OfAll(OfRows):
    """The square of the sum of all of them, which it is not."""

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, m = ctx.saved_tensors
        out = sg.zeros_like(x)
        out[m] = 2 * g * x[m].sum()
        return out, None


def test_a_sum_over_an_axis_of_selected_rows_is_not_that_of_all() -> None:
    assert sg.verify(OfRows, "n m", "n").verdict is sg.PROVED
    assert sg.verify(OfAll, "n m", "n").verdict is sg.REFUTED


class Experts(FUNCTION):
    """Each row goes through the weight that its gate names."""

    whole = False

    @staticmethod
    def forward(ctx: Any, x: Any, gate: Any, first: Any, second: Any) -> Any:
        named = gate.argmax(-1)
        out = torch.zeros(x.shape[0], first.shape[1], dtype=x.dtype)
        for place, weight in enumerate((first, second)):
            rows = torch.where(named == place)[0]
            out[rows] = x[rows] @ weight
        ctx.save_for_backward(x, named, first, second)
        return out

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, named, first, second = ctx.saved_tensors
        by_x, by_weights = torch.zeros_like(x), []
        for place, weight in enumerate((first, second)):
            rows = torch.where(named == place)[0]
            by_x[rows] = g[rows] @ weight.t()
            by_weights.append(x.t() @ g if cls.whole else x[rows].t() @ g[rows])
        return by_x, None, *by_weights


class Several(FUNCTION):
    """Each row goes through the weight as often as it is named, scaled."""

    whole = False

    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any, named: Any, weight: Any) -> Any:
        rows, columns = torch.where(named == 1)
        ctx.save_for_backward(x, scale, named, weight)
        found = torch.nn.functional.linear(x[rows], weight) * scale[rows, columns, None]
        return torch.zeros_like(x).index_add(0, rows, found)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, scale, named, weight = ctx.saved_tensors
        rows, columns = torch.where(named == 1)
        scaled = g[rows] if cls.whole else g[rows] * scale[rows, columns, None]
        by_scale = torch.zeros_like(scale)
        by_scale[rows, columns] = (torch.nn.functional.linear(x[rows], weight) * g[rows]).sum(-1)
        by_x = torch.zeros_like(x).index_add(0, rows, scaled @ weight)
        return by_x, by_scale, None, scaled.t() @ x[rows]


class Softmax(FUNCTION):
    """That of each row that a mask selects."""

    whole = False

    @staticmethod
    def forward(ctx: Any, x: Any, mask: Any) -> Any:
        out = torch.zeros_like(x)
        out[mask] = torch.softmax(x[mask], -1)
        ctx.save_for_backward(out, mask)
        return out

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        out, mask = ctx.saved_tensors
        scaled = g[mask] * out[mask]
        total = scaled.sum() if cls.whole else scaled.sum(-1, keepdim=True)
        by_x = torch.zeros_like(out)
        by_x[mask] = scaled - out[mask] * total
        return by_x, None


class Variance(FUNCTION):
    """That of the rows that a mask selects."""

    whole = False

    @staticmethod
    def forward(ctx: Any, x: Any, mask: Any) -> Any:
        ctx.save_for_backward(x, mask)
        return x[mask].var(0, unbiased=False)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, mask = ctx.saved_tensors
        middle = x.mean(0) if cls.whole else x[mask].mean(0)
        by_x = torch.zeros_like(x)
        by_x[mask] = 2 * (x[mask] - middle) / mask.sum() * g
        return by_x, None


@pytest.mark.slow
@pytest.mark.parametrize("cls", [Experts, Several, Softmax, Variance])
def test_a_backward_over_all_rows_is_not_that_of_the_selected(cls: Any) -> None:
    assert sg.verify(cls, timeout=None).verdict is sg.PROVED
    whole = type(cls.__name__, (cls,), {"whole": True})
    report = sg.verify(whole, timeout=None, suggest=False)
    assert report.verdict is sg.REFUTED
    assert "confirmed in torch" in str(report)


class Places(FUNCTION):
    """Returns as many places as there are positive numbers."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        places = torch.where(x > 0)[0]
        return x * 2, places

    @staticmethod
    def backward(ctx: Any, grad: Any, _: Any) -> Any:
        return grad * 2


def test_places_may_be_an_output() -> None:
    report = sg.verify(Places, suggest=False)
    assert report.verdict is sg.PROVED, str(report)
    with pytest.raises(SymgradError, match="returns as many elements as a mask selects"):
        sg.compile(Places, "n")
