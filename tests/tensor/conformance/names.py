"""Names that torch has: directions, constructors, ``keepdims``, medians, triangles, sizes."""

from typing import Any

from tests.tensor.conformance.dtypes import _each

LEFT = [[0.5, -1.5, 2.0], [1.0, 3.0, -0.25], [0.0, 0.0, 0.0]]
RIGHT = [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
TIES = [[3.0, 1.0, 2.0, 4.0, 1.0], [2.0, 2.0, 1.0, 2.0, 5.0], [1.0, 0.0, 7.0, 5.0, -3.0]]
NAN = float("nan")


def _both(torch: Any, f: Any, *values: Any) -> Any:
    """The value of ``f`` and its gradients for a cotangent that is not uniform."""
    tensors = [torch.tensor(value, requires_grad=True) for value in values]
    out = f(*tensors)
    (out * torch.arange(1.0, out.numel() + 1).reshape(out.shape)).sum().backward()
    return out, [one.grad for one in tensors]


def cosine_similarity(torch: Any) -> Any:
    f = torch.nn.functional.cosine_similarity
    rows, others = LEFT[:2], [[1.0, 2.0, 3.0], [0.5, -0.1, 0.25]]
    return [
        _both(torch, f, rows, others), _both(torch, lambda x, y: f(x, y, dim=0), rows, others),
        _both(torch, f, [LEFT[0]], rows), _both(torch, f, LEFT[0], rows),
        _both(torch, torch.nn.CosineSimilarity(dim=0), rows, rows[::-1]),
        torch.cosine_similarity(torch.ones(2, 3), torch.ones(2, 3, dtype=torch.float64)),
        str(torch.nn.CosineSimilarity(2, 1e-3)),
    ]  # fmt: skip


def cosine_similarity_refuses(torch: Any) -> Any:
    f = torch.nn.functional.cosine_similarity
    whole = torch.ones(2, dtype=torch.int64)
    return _each(
        lambda: f(whole, whole, dim=0), lambda: f(torch.ones(3), torch.ones(3)),
        lambda: f(torch.ones(2, 3), torch.ones(2, 4)),
    )  # fmt: skip


def normalize(torch: Any) -> Any:
    f = torch.nn.functional.normalize
    rows = LEFT[:2]
    out = torch.zeros(2, 3)
    return [
        _both(torch, f, rows), _both(torch, lambda x: f(x, p=1.0), rows),
        _both(torch, lambda x: f(x, p=3.0, dim=0), rows),
        _both(torch, lambda x: f(x, p=float("inf"), dim=-1), rows),
        _both(torch, lambda x: f(x, dim=(0, 1), eps=10.0), rows),
        f(torch.tensor(rows), out=out) is out, out,
        *_each(lambda: f(torch.ones(3)), lambda: f(torch.ones(2, 3, dtype=torch.int64))),
    ]  # fmt: skip


def directions_of_nothing(torch: Any) -> Any:
    f, g = torch.nn.functional.cosine_similarity, torch.nn.functional.normalize
    return [
        _both(torch, f, LEFT, RIGHT), _both(torch, lambda x, y: f(x, y, dim=0), LEFT, RIGHT),
        _both(torch, lambda x, y: f(x, y, -1, 0.5), LEFT, RIGHT), _both(torch, g, LEFT),
        _both(torch, lambda x: g(x, p=1.0), LEFT), _both(torch, lambda x: g(x, dim=0), RIGHT),
    ]  # fmt: skip


def pairwise_distance(torch: Any) -> Any:
    rows = LEFT[:2]
    return [
        _both(torch, torch.nn.functional.pairwise_distance, rows, rows[::-1]),
        _both(torch, torch.nn.PairwiseDistance(1.0, keepdim=True), rows, rows[::-1]),
    ]


def padded(torch: Any) -> Any:
    pad = torch.nn.functional.pad
    return [
        _both(torch, lambda x: pad(x, (1, 2)), LEFT),
        _both(torch, lambda x: pad(x, (0, 1, 1, 0)), LEFT),
        pad(torch.ones(2, dtype=torch.int8), (1, 1)), pad(torch.ones(2), (1, 0), value=2.0),
    ]  # fmt: skip


def constructor(torch: Any) -> Any:
    import numpy as np

    made = [
        torch.Tensor(2, 3), torch.Tensor(5), torch.Tensor(torch.Size([2, 3])), torch.Tensor(3, 0),
        torch.Tensor(np.int64(3)), torch.Tensor(size=(2,)),
    ]  # fmt: skip
    double = torch.ones(2, dtype=torch.float64)
    made += [double.new(2, 3), double.new(torch.Size([2])), torch.ones(2).new()]
    i = torch.ones(2, dtype=torch.int64)
    return [
        [(one.shape, one.dtype) for one in made],
        torch.Tensor(), torch.Tensor([1, 2]), torch.Tensor((2, 3)), torch.Tensor([[1], [2]]),
        torch.Tensor(np.ones(2)), torch.Tensor(double), torch.Tensor(i), torch.Tensor(data=[1, 2]),
        i.new([1, 2]), i.new((1, 2)), i.new([1.5]), i.new(i), double.new([1, 2]),
    ]  # fmt: skip


def constructor_refuses(torch: Any) -> Any:
    i = torch.ones(2, dtype=torch.int64)
    return _each(
        lambda: torch.Tensor(2.5), lambda: torch.Tensor(True), lambda: torch.Tensor([[1], [2, 3]]),
        lambda: torch.Tensor("a"), lambda: torch.Tensor(None), lambda: torch.Tensor(-1),
        lambda: torch.Tensor(2, 3.5), lambda: torch.Tensor([1], dtype=torch.int64),
        lambda: i.new(torch.ones(2)),
    )  # fmt: skip


def constructor_of_a_number(torch: Any) -> Any:
    torch.Tensor(2.5)


def constructor_of_negative_size(torch: Any) -> Any:
    torch.Tensor(2, -1)


def new_ones_and_others(torch: Any) -> Any:
    x = torch.ones(2)
    i = torch.ones(2, dtype=torch.int64)
    return [
        i.new_tensor([1.5, 2]), x.new_tensor([1], requires_grad=True), x.new_zeros((2, 3)),
        x.new_zeros((2, 3), dtype=torch.int8), x.new_zeros(2, 3, requires_grad=True),
        x.new_full((2,), 3), i.new_full((2,), 3.7), i.new_ones(size=(2,)), x.new_empty(2).shape,
        i.new_tensor([[1, 2]]), x.new_ones(torch.Size([1])), x.new_tensor(3.0),
    ]  # fmt: skip


def keepdims(torch: Any) -> Any:
    x = torch.tensor(LEFT)
    names = (
        "sum", "mean", "prod", "amax", "amin", "var", "std", "all", "any", "argmax", "argmin",
        "logsumexp", "nansum", "median", "nanmedian",
    )  # fmt: skip
    found = [getattr(x, name)(0, keepdims=True) for name in names]
    found += [getattr(torch, name)(x, axis=1, keepdims=True) for name in names]
    return [
        *[list(one) if isinstance(one, tuple) else one for one in found],
        list(x.max(0, keepdims=True)), list(x.kthvalue(1, 0, keepdims=True)),
        list(torch.var_mean(x, 0, keepdims=True)), x.std(dim=0, unbiased=False, keepdims=True),
        list(x.aminmax(dim=0, keepdims=True)), x.cumsum(axis=0), x.softmax(axis=0),
        x.log_softmax(axis=1), x.logsumexp(axis=0), list(x.sort(axis=0)), list(x.unbind(axis=1)),
        x.unsqueeze(axis=0), torch.cat([x, x], axis=1), torch.stack([x, x], axis=0),
        *_each(lambda: x.sum(0, keepdim=True, keepdims=True)),
    ]  # fmt: skip


def median(torch: Any) -> Any:
    x, odd = torch.tensor(TIES), torch.tensor([[3.0, NAN, 2.0], [NAN, NAN, 1.0], [NAN, NAN, NAN]])
    even = torch.tensor([[3.0, NAN, 2.0, 1.0], [2.0, 4.0, 1.0, 7.0]])
    found = []
    for one in (x, odd, even, x.t(), x.to(torch.float64), x.long(), x.to(torch.int8)):
        for name in ("median", "nanmedian"):
            along = [getattr(one, name)(dim) for dim in (0, 1, -1)]
            found += [getattr(one, name)(), [pair.values for pair in along]]
            found.append([pair.indices for pair in along if one is not odd and one is not x.t()])
    return [
        *found, x.median(1, True).values, torch.median(x, dim=0, keepdim=True).indices,
        torch.tensor([]).median(), torch.tensor(3.0).median(), list(torch.tensor(3.0).median(0)),
        _both(torch, lambda x: x.median(), TIES), _both(torch, lambda x: x.median(1).values, TIES),
        _both(torch, lambda x: x.median(0).values, TIES[:2]),
        _both(torch, lambda x: x.nanmedian(), [2.0, NAN, 1.0, 5.0]),
        _both(torch, lambda x: x.nanmedian(1).values, [[2.0, NAN, 1.0, 5.0]]),
        *_each(lambda: torch.ones(2, 0).median(1), lambda: torch.tensor([True]).median()),
    ]  # fmt: skip


def triangles(torch: Any) -> Any:
    sizes = ((3, 4), (4, 3), (0, 4), (2, 0), (1, 1))
    names = (torch.tril_indices, torch.triu_indices)
    return [
        *[f(*size, offset) for f in names for size in sizes for offset in (-5, -1, 0, 1, 5)],
        torch.tril_indices(row=2, col=2, offset=1, dtype=torch.int32),
        *_each(lambda: torch.tril_indices(-1, 4), lambda: torch.triu_indices(4, -1)),
        torch.ones(3, 3)[tuple(torch.triu_indices(3, 3, 1))],
    ]  # fmt: skip


def resized(torch: Any) -> Any:
    x = torch.arange(6.0).reshape(2, 3)
    grown = x.clone().resize_(2, 5)
    return [
        x.clone().resize_(2, 2), x.clone().resize_((3, 2)), x.clone().resize_(6),
        x.clone().resize_as_(torch.ones(3)), grown.shape, grown.reshape(-1)[:6],
        x.to(torch.int8).resize_(0), x.clone().resize_(()),
    ]  # fmt: skip


def resized_with_gradient(torch: Any) -> Any:
    torch.ones(2, requires_grad=True).resize_(1)


def strides(torch: Any) -> Any:
    x = torch.arange(6.0).reshape(2, 3)
    shapes = ((), (0,), (2, 0), (2, 0, 3), (1, 3, 1), (2, 3))
    return [
        *[torch.ones(shape).stride() for shape in shapes], x.t().stride(), x.stride(0),
        x.stride(-1), x.t().stride(dim=1), torch.ones(3).expand(2, 3).stride(), x[:, ::2].stride(),
        torch.ones(4, 1, 2).permute(2, 1, 0).stride(), x[:, :1].stride(),
    ]  # fmt: skip


def stride_of_no_axis(torch: Any) -> Any:
    torch.ones(2, 3).stride(2)
