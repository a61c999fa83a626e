"""Sparse tensors of indices and values, and their products with dense ones."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402
from symgrad.errors import SymgradError  # noqa: E402

pytestmark = pytest.mark.peers

Function: Any = torch.autograd.Function
PRODUCTS = (
    "torch.matmul(a, b)", "torch.spmm(a, b)", "torch.sparse.mm(a, b)", "torch.mm(a, b)", "a @ b",
    "a.mm(b)", "a.to_dense() @ b", "torch.mm(a.coalesce(), b)", "a.t().t() @ b",
    "a.transpose(0, 1).transpose(0, 1).matmul(b)",
)  # fmt: skip
MADE = (
    "torch.sparse_coo_tensor(indices, values, (n, n))",
    "torch.sparse_coo_tensor(indices, values, torch.Size([n, n]), device=b.device)",
    "torch.sparse_coo_tensor(indices, values, size=[n, n], dtype=values.dtype)",
    "torch.sparse.FloatTensor(indices, values, (n, n))",
)


def multiplied(product: str = PRODUCTS[0], made: str = MADE[0], by_b: str = "a.t() @ g") -> Any:
    """A sparse matrix of indices and values times a dense one."""
    names: dict[str, Any] = {"torch": torch}
    body = f"""
def forward(ctx, indices, values, b):
    n = b.shape[0]
    a = {made}
    ctx.save_for_backward(a, b)
    return {product}


def backward(ctx, g):
    a, b = ctx.saved_tensors
    rows, columns = a._indices()
    return None, (g[rows] * b[columns]).sum(-1), {by_b}
"""
    exec(compile(body, __file__, "exec"), names)
    members = {name: staticmethod(names[name]) for name in ("forward", "backward")}
    return type("Multiplied", (Function,), members)


@pytest.mark.parametrize("product", PRODUCTS)
def test_products_with_a_dense_matrix(product: str) -> None:
    report = sg.verify(multiplied(product), "i64[2 k]", "k", "n m", suggest=False)
    assert report.verdict is sg.PROVED, str(report)
    assert "if 0 <= indices < n" in str(report)


@pytest.mark.parametrize("made", MADE)
def test_ways_to_make_them(made: str) -> None:
    assert sg.verify(multiplied(made=made), suggest=False).verdict is sg.PROVED


def test_a_wrong_gradient_is_confirmed_in_torch() -> None:
    wrong = multiplied(by_b="a @ g")
    report = sg.verify(wrong, "i64[2 k]", "k", "n m", suggest=False)
    assert report.verdict is sg.REFUTED
    assert "confirmed in torch" in str(report)
    assert report.inputs["values"].verdict is sg.PROVED


class Flattened(Function):
    """The gradient of the values by the places in the flat matrix."""

    right = True

    @staticmethod
    def forward(ctx: Any, indices: Any, values: Any, shape: Any, b: Any) -> Any:
        assert indices.requires_grad == False  # noqa: E712
        a = torch.sparse_coo_tensor(indices, values, shape)
        ctx.save_for_backward(a, b)
        ctx.columns = shape[1]
        return torch.matmul(a, b)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors
        by_values = by_b = None
        if ctx.needs_input_grad[1]:
            first, second = a._indices()[0, :], a._indices()[1, :]
            places = first * ctx.columns + second if cls.right else second * ctx.columns + first
            by_values = g.matmul(b.t()).view(-1)[places]
        if ctx.needs_input_grad[3]:
            by_b = a.t().matmul(g)
        return None, by_values, None, by_b


def test_sizes_may_be_stated() -> None:
    stated: dict[str, Any] = {"static": {"shape": (3, 4)}, "suggest": False}
    shapes = "i64[2 k]", "k", "4 m"
    report = sg.verify(Flattened, *shapes, **stated)
    assert report.verdict is sg.PROVED, str(report)
    wrong = type("Wrong", (Flattened,), {"right": False})
    assert sg.verify(wrong, *shapes, **stated).verdict is not sg.PROVED


class Written(Function):
    """The values are written once the matrix is made, which shares their memory."""

    factor = 3

    @staticmethod
    def forward(ctx: Any, indices: Any, values: Any, b: Any) -> Any:
        own = values.clone()
        a = torch.sparse_coo_tensor(indices, own, (b.shape[0], b.shape[0]))
        own *= 3
        ctx.save_for_backward(indices, values, b)
        return a @ b

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (rows, columns), values, b = ctx.saved_tensors
        back = torch.zeros_like(b).index_add(0, columns, g[rows] * values[:, None])
        by_values = (g[rows] * b[columns]).sum(-1)
        return None, cls.factor * by_values, cls.factor * back


def test_the_values_share_memory() -> None:
    shapes = "i64[2 k]", "k", "n m"
    assert sg.verify(Written, *shapes, suggest=False).verdict is sg.PROVED
    wrong = type("Wrong", (Written,), {"factor": 1})
    assert sg.verify(wrong, *shapes, suggest=False).verdict is sg.REFUTED


@pytest.mark.parametrize(
    "product",
    ["a", "a.relu()", "2 * a", "b.t() @ a", "a @ a", "a + b", "a.coalesce().indices()", "a.sum()"],
)
def test_what_is_not_traced_says_so(product: str) -> None:
    with pytest.raises(SymgradError, match="a sparse tensor"):
        sg.verify(multiplied(product), "i64[2 k]", "k", "n m", suggest=False)


def test_indices_and_sizes_are_found() -> None:
    report = sg.verify(Flattened, suggest=False)
    assert report.verdict is sg.PROVED, str(report)
    assert "i64 indices[2, n], values[n], shape = (2, 3), b[3, m]" in str(report)
