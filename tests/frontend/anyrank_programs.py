"""Programs that are blind to the number of batch axes, and programs that are not.

In: nothing.  Out: ``BLIND``, ``LOOKING``: a name, the program, the specs of its arguments.
"""

from __future__ import annotations

import copy
import functools
import math
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

import symgrad as sg

Program = tuple[Callable[..., Any], tuple[str, ...]]


def _set_slices(x: Any) -> Any:
    y = x.clone()
    y[..., 0] = 0
    y[..., 1] += y[..., 2]
    y[...] = y * 2
    return y


def _set_masked(x: Any) -> Any:
    y = x.clone()
    y[x < 0] = 0
    return y


def _through_a_view(x: Any) -> Any:
    y = x * 1
    z = y[..., :2].reshape(-1, 2)
    z += 1
    return y


def _lead_in_a_variable(x: Any) -> Any:
    lead, heads = x.shape[:-1], 2
    return x.view(*lead, heads, -1).sum(-1)


def _by_shape(x: Any, y: Any) -> Any:
    return x + y if x.shape == y.shape else x


BLIND: dict[str, Program] = {
    "star": (lambda x: x.view(*x.shape[:-1], 2, 2), ("*batch 4",)),
    "star, keyword": (lambda x: sg.zeros(*x.shape[:-1], 2, dtype=sg.float32), ("*batch 4",)),
    "star in a tuple": (lambda x: x.reshape((*x.shape[:-1], 2, 2)), ("*batch 4",)),
    "star, whole shape": (lambda x: x.reshape(-1, 4).view(*x.shape), ("*batch 4",)),
    "star, calls beside": (
        lambda x: x.view(*x.shape[:-1], x.size(-1) // 2, abs(-2)), ("*batch 4",)),
    "two stars": (lambda x: x.view(*x.shape[:-1], *x.shape[-1:]), ("*batch 4",)),
    "star, variable": (_lead_in_a_variable, ("*batch 4",)),
    "shape plus tuple": (lambda x: x.reshape(x.shape[:-1] + (2, 2)), ("*batch 4",)),  # noqa: RUF005
    "tuple plus shape": (lambda x: x.expand((3,) + x.shape).sum(0), ("*batch 4",)),  # noqa: RUF005
    "numel": (lambda x: x.sum() / x.numel() + x.mean(), ("*batch 4",)),
    "numel of a shape": (lambda x: x.sum() / x.shape[:-1].numel(), ("*batch 4",)),
    "math.prod": (lambda x: x.sum() / math.prod(x.shape[:-1]), ("*batch 4",)),
    "np.prod": (lambda x: x.sum() / np.prod(x.shape), ("*batch 4",)),
    "equal shapes": (_by_shape, ("*batch 4", "*batch 4")),
    "same size": (lambda x, y: x if x.is_same_size(y) else y, ("*batch 4", "*batch 4")),
    "flattened": (lambda x: x.reshape(-1, 4).sum(0) + x.reshape(-1, 4)[0], ("*batch 4",)),
    "flattened, transposed": (
        lambda x: x.reshape(-1, 4).T @ x.reshape(-1, 4), ("*batch 4",)),
    "index": (lambda x: x[..., 0] + x[..., [1, 2]].sum(-1), ("*batch 4",)),
    "new axes": (lambda x: x[..., None] + x[None, ..., None], ("*batch 4",)),
    "unsqueeze": (lambda x: x.unsqueeze(0) + x.unsqueeze(-1).squeeze(-1), ("*batch 4",)),
    "stack": (lambda x: sg.stack([x, x]).sum(0) + sg.stack([x, x], -1).sum(-1), ("*batch 4",)),
    "cat": (lambda x: sg.cat([x, x * 2], -1), ("*batch 4",)),
    "pieces": (lambda x: x.chunk(2, -1)[1] * x.split([1, 3], dim=-1)[0], ("*batch 4",)),
    "more pieces": (lambda x: sum(x.unbind(-1)) + x.narrow(-1, 1, 2).sum(-1), ("*batch 4",)),
    "select": (lambda x: x.select(-1, 1) + x.index_select(-1, sg.tensor([0])).sum(-1),
               ("*batch 4",)),
    "matrix product": (lambda x: x.mT @ x, ("*batch n 4",)),
    "weight": (lambda x, w: x @ w, ("*batch 4", "4 o")),
    "vector weight": (lambda x, w: x @ w, ("*batch 4", "4")),
    "weight in front": (lambda w, x: w @ x, ("o n", "*batch n 4")),
    "linear": (lambda x, w, b: sg.linear(x, w, b), ("*batch 4", "o 4", "o")),
    "heads": (lambda x, y: x @ y, ("*batch h n k", "h k m")),
    "attention": (
        lambda q, k, v: sg.scaled_dot_product_attention(q, k, v, is_causal=True),
        ("*batch n 4", "*batch n 4", "*batch n 4")),
    "einsum": (lambda x, w: sg.einsum("...i,oi->...o", x, w), ("*batch 4", "o 4")),
    "einsum over all": (lambda x, y: sg.einsum("...i,...j->ij", x, y), ("*batch 4", "*batch 5")),
    "layer norm": (lambda x, w: sg.layer_norm(x, x.shape[-1:], w), ("*batch 4", "4")),
    "transpose": (
        lambda x: x.view(*x.shape[:-1], 2, 2).transpose(-3, -2).reshape(x.shape), ("*batch n 4",)),
    "left of the batch axis": (lambda x: x.sum(0), ("n *spatial",)),
    "loop left of the batch axis": (lambda x: sum(row for row in x) * len(x), ("3 *spatial",)),
    "channels": (lambda x, w: (x.transpose(0, 1).reshape(x.shape[1], -1) * w).sum(1),
                 ("n c *spatial", "c 1")),
    "in place": (lambda x: (x * 1).add_(1).mul_(x), ("*batch 4",)),
    "slices in place": (_set_slices, ("*batch 4",)),
    "masks in place": (_set_masked, ("*batch 4",)),
    "views in place": (_through_a_view, ("*batch 4",)),
    "contiguous": (lambda x: x.mT.contiguous() if x.is_contiguous() else x, ("*batch n 4",)),
    "constants": (lambda x: sg.ones(x.shape) + x.new_zeros(x.shape) + sg.full_like(x, 2.0),
                  ("*batch 4",)),
    "gather": (lambda x: x.gather(-1, x.argmax(-1, keepdim=True)), ("*batch 4",)),
    "scatter": (lambda x, i: sg.zeros_like(x).scatter_add(-1, i * 0, x),
                ("*batch 4", "i64[*batch 4]")),
    "rows": (lambda t, w: w[t * 0] + sg.embedding(t * 0, w), ("i64[*batch]", "5 d")),
    "one-hot": (lambda t, w: sg.one_hot(t * 0, 5).double() @ w, ("i64[*batch]", "5 d")),
    "index_add": (lambda x, t: x.index_add(-1, t * 0, x), ("*batch 4", "i64[4]")),
    "NumPy": (lambda x: np.float32(2) * np.exp(x) + np.sum(x) + np.mean(x, axis=-1, keepdims=True),
              ("*batch 4",)),
    "expand": (lambda x: x.sum().expand(x.shape) + x[..., :1].expand(*x.shape), ("*batch 4",)),
    "expand_as": (lambda x: x.mean(-1, keepdim=True).expand_as(x), ("*batch 4",)),
    "all in one": (lambda x: x.flatten().cumsum(0)[-1] + x.ravel()[0], ("*batch 4",)),
    "order": (lambda x: x.topk(2).values.sum(-1) + x.sort(-1).values[..., 0], ("*batch 4",)),
    "triangle": (lambda x: x.tril() + x.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None],
                 ("*batch n n",)),
    "inverse": (lambda x: sg.linalg.det(x) * x.sum((-1, -2)), ("*batch 2 2",)),
    "pad": (lambda x: sg.pad(x, (1, 1)), ("*batch 4",)),
    "loss": (lambda x, y: sg.mse_loss(x, y) + sg.l1_loss(x, y, reduction="none"),
             ("*batch 4", "*batch 4")),
    "two batch axes": (lambda x, y: x.sum() + y.sum(), ("*one 4", "*other")),
    "last size": (lambda x: x * 2 if x.shape[-1] > 3 else x, ("*batch k",)),
    "difference of ranks": (lambda x, y: x if x.ndim - y.ndim == 0 else y,
                            ("*batch k", "*batch k")),
    "all sizes": (lambda x: x * 2 if x.numel() > 3 else x, ("*batch k",)),
    "movedim": (lambda x: x.movedim(-1, 0).sum(0), ("*batch 4",)),
    "unflatten": (lambda x: x.unflatten(-1, (2, 2)).flatten(-2, -1), ("*batch 4",)),
    "view_as": (lambda x: x.reshape(-1).view_as(x), ("*batch 4",)),
    "sum_to_size": (lambda x: x.sum_to_size(4), ("*batch 4",)),
    "deepcopy": (lambda x: copy.deepcopy(x) + x.detach(), ("*batch 4",)),
    "statistics": (lambda x: x.std(-1) + sg.var_mean(x, -1)[0] + x.norm(dim=-1) + x.max(-1).values,
                   ("*batch 4",)),
    "two tensors": (lambda x: sg.max(x, x * 2) + x.clamp(x * 0, x), ("*batch 4",)),
}  # fmt: skip


def _unpack(x: Any) -> Any:
    rows, columns = x.shape
    return x * rows * columns


def _swallow(x: Any) -> Any:
    try:
        return x * x.ndim
    except BaseException:
        return x


def _match(x: Any) -> Any:
    match x.shape:
        case (_, _):
            return x * 2
        case _:
            return x


def _walrus(x: Any) -> Any:
    return x.view(*(sizes := (*x.shape[:-1], 4))) * len(sizes)


def _count(*sizes: Any) -> int:
    return len(sizes)


def _count_and_view(x: Any, *sizes: Any) -> Any:
    return x.view(*sizes) * len(sizes)


def _alias(x: Any) -> Any:
    y = x * 1
    z = y[..., :2].reshape(-1)
    z += 1
    return y


def _alias_written_below(x: Any) -> Any:
    y = x * 1
    z = y.mT.contiguous()
    y += 1
    return z


_ON_ROWS: dict[str, Callable[..., Any]] = {
    "ndim": lambda x: x * x.ndim,
    "dim()": lambda x: x * x.dim(),
    "getattr": lambda x: x * getattr(x, "ndim"),  # noqa: B009
    "range of ndim": lambda x: x * len(range(x.ndim)),
    "ndim as an axis": lambda x: x.sum(x.ndim - 1),
    "ndim as an axis of another": lambda x: sg.ones(3).sum(x.ndim - 2) * x,
    "ndim as text": lambda x: x * len(f"{x.ndim}"),
    "ndim, many": lambda x: x if x.ndim < 9 else x * 2,
    "times ndim": lambda x: [x, x, x][x.ndim],
    "class of ndim": lambda x: x if isinstance(x.ndim, int) else x * 2,
    "power of ndim": lambda x: x * 2**x.ndim,
    "hash of ndim": lambda x: x * {2: 1.0}.get(x.ndim, 2.0),
    "len of shape": lambda x: x * len(x.shape),
    "len of size": lambda x: x * len(x.size()),
    "shape[0]": lambda x: x * x.shape[0],
    "size(0)": lambda x: x * x.size(0),
    "shape[-2]": lambda x: x * x.shape[-2],
    "shape[1:]": lambda x: x.view(x.shape[1:]),
    "shape[:-2]": lambda x: x * x.shape[:-2].numel(),
    "shape[::-1]": lambda x: x * x.shape[::-1].numel(),
    "iteration": lambda x: x * sum(1 for size in x.shape),
    "list": lambda x: x * len(list(x.shape)),
    "tuple": lambda x: x * len(tuple(x.shape)),
    "set": lambda x: x * len({*x.shape}),
    "zip": lambda x: x * len(list(zip(x.shape, x.shape, strict=True))),
    "map": lambda x: x * len(list(map(id, x.shape))),
    "unpacking": _unpack,
    "star to a helper": lambda x: x * _count(*x.shape[:-1]),
    "star to a helper that views": lambda x: _count_and_view(x, *x.shape),
    "star into a list": lambda x: x * len([*x.shape]),
    "star into a tuple": lambda x: x * len((*x.shape, 1)),
    "star through a walrus": _walrus,
    "match": _match,
    "str": lambda x: x * len(str(x.shape)),
    "format": lambda x: x * len(f"{x.shape}"),
    "percent": lambda x: x * len("%s" % (x.shape,)),  # noqa: UP031
    "repr of the tensor": lambda x: x * len(repr(x)),
    "hash": lambda x: x * hash(x.shape),
    "equal to a tuple": lambda x: x if x.shape == (3, 4) else x * 2,
    "in": lambda x: x if 3 in x.shape else x * 2,
    "truth": lambda x: x if x.shape else x * 2,
    "less": lambda x: x if x.shape < (3,) else x * 2,
    "times": lambda x: x * len(x.shape * 2),
    "class": lambda x: x if isinstance(x.shape, tuple) else x * 2,
    "copy": lambda x: x * len(copy.copy(x.shape)),
    "pickle": lambda x: x * len(pickle.dumps(x.shape)),
    "np.array": lambda x: x * np.array(x.shape, dtype=object).size,
    "np.shape": lambda x: x * len(np.shape(x)),
    "np.transpose": np.transpose,
    "np.sum over 0": lambda x: np.sum(x, axis=0),
    "reduce": lambda x: x * functools.reduce(operator.mul, x.shape, 1),
    "index of a size": lambda x: x * x.shape.index(4),
    "strides": lambda x: x * len(x.strides),
    "node": lambda x: x * x.node.rank,
    "vars": lambda x: x * len(vars(x)),
    "T": lambda x: x.T,
    "H": lambda x: x.H,
    "mT": lambda x: x.mT,
    "t()": lambda x: x.t(),
    "a handler for everything": _swallow,
    "x[0]": lambda x: x[0],
    "x[:, 0]": lambda x: x[:, 0],
    "x[..., 0, 0]": lambda x: x[..., 0, 0],
    "mask": lambda x: x[x > 0].sum(),
    "len of the tensor": lambda x: x * len(x),
    "iteration over the tensor": lambda x: sum(row for row in x),
    "broadcasting": lambda x: x + sg.zeros(3, 1, 1),
    "rows by rows": lambda x: x @ x,
    "labels": lambda x: sg.einsum("ij->ji", x),
    "ellipsis for less": lambda x: sg.einsum("...ij->...ji", x),
    "flatten to the last": lambda x: x.flatten(0, -2),
    "sum, kept": lambda x: x.sum(keepdim=True),
    "squeeze": lambda x: x.squeeze(),
    "repeat": lambda x: x.repeat(2, 1),
    "tile": lambda x: x.tile(2),
    "expand": lambda x: x.expand(-1, -1),
    "axis and dim": lambda x: x.sum(dim=-1, axis=0),
    "norm of matrices": lambda x: sg.linalg.norm(x, 2),
    "inverse": lambda x: sg.linalg.inv(x),
    "first axis of a loss": lambda x: sg.kl_div(x, x, reduction="batchmean"),
    "shared memory": _alias,
}
LOOKING: dict[str, Program] = {name: (program, ("*batch 4",)) for name, program in _ON_ROWS.items()}
LOOKING |= {
    "memory shared without batch axes": (_alias_written_below, ("n *batch m",)),
    "dtype of numbers": (lambda x, y: x * y, ("f64[*batch]", "f32[m]")),
    "another batch axis": (lambda x, y: x + y, ("*one m", "*other m")),
    "another place": (lambda x, y: x + y, ("*batch m", "*batch")),
    "a mask of another shape": (lambda x, y: x[y], ("*batch m", "bool[*batch]")),
    "indices on both sides": (
        lambda x, i: x[i, ..., i], ("n *batch m", "i64[k]")),
    "gradient of the flat size": (lambda x: x[..., None].squeeze(0), ("*batch m",)),
}  # fmt: skip
