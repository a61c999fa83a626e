"""Operations, dtypes, indexing, printing, conversion: values and gradients."""

from typing import Any


def _both(torch: Any, f: Any, *values: Any) -> Any:
    """The value of ``f`` and its gradients for a cotangent that is not uniform."""
    tensors = [torch.tensor(value, requires_grad=True) for value in values]
    out = f(*tensors)
    weights = torch.arange(1.0, out.numel() + 1).reshape(out.shape)
    (out * weights).sum().backward()
    return out, [one.grad for one in tensors]


ROW = [0.5, -1.5, 2.0]
GRID = [[0.5, -1.5, 2.0], [1.0, 3.0, -0.25]]


def promotion(torch: Any) -> Any:
    i, f, d, b = (
        torch.tensor([1, 2]), torch.tensor([1.5, 2.5]),
        torch.tensor([1.5, 2.5], dtype=torch.float64), torch.tensor([True, False]),
    )  # fmt: skip
    s = torch.tensor(2.0, dtype=torch.float64)
    return [
        i + 1, i + 1.5, i + f, f + d, b + b, b + 1, b * 2.5, i / i, i // 2, f + s, i + s, i * True,
        b & b, -i, i**2, f**2, i % 2, 2 - i, 1 / f, i == 1, f > 2, torch.tensor(3) + i, f * 2,
    ]  # fmt: skip


def inference_of_dtypes(torch: Any) -> Any:
    import numpy as np

    return [
        torch.tensor(1), torch.tensor(1.0), torch.tensor(True), torch.tensor([1, 2.0]),
        torch.tensor([]), torch.tensor([[1], [2]]), torch.tensor(np.float64(2.0)),
        torch.tensor(np.arange(3)), torch.as_tensor([1.0, 2.0]), torch.zeros(2),
        torch.arange(3), torch.arange(3.0), torch.full((2,), 1), torch.ones(2, dtype=torch.int64),
        torch.zeros((2, 3)), torch.eye(2), torch.arange(1, 7, 2), torch.linspace(0, 1, 5),
    ]  # fmt: skip


def default_dtype(torch: Any) -> Any:
    torch.set_default_dtype(torch.float64)
    try:
        made = [torch.tensor([1.0]), torch.zeros(2), torch.tensor([1]) / 2, torch.tensor([1]) * 0.5]
    finally:
        torch.set_default_dtype(torch.float32)
    return made, str(torch.get_default_dtype())


def conversions(torch: Any) -> Any:
    x = torch.tensor([1.7, -2.2])
    return [
        x.double(), x.long(), x.bool(), x.to(torch.float64), x.to("cpu") is x, x.float() is x,
        x.type(torch.int64), x.type(), x.long().float(), x.to(torch.zeros(1).double()),
    ]  # fmt: skip


def conversion_has_gradient(torch: Any) -> Any:
    x = torch.tensor([1.5, 2.0], requires_grad=True)
    y = x.double() * 2
    y.sum().backward()
    return y, x.grad


def elementwise(torch: Any) -> Any:
    functions = [
        torch.exp, torch.sin, torch.cos, torch.tanh, torch.sigmoid, torch.abs, torch.square,
        lambda x: x.clamp(-1, 1), torch.relu, lambda x: x**3, lambda x: 2**x, lambda x: x / 3,
        lambda x: 3 / x, lambda x: x - 1, lambda x: 1 - x, lambda x: -x, torch.atan, torch.erf,
        torch.expm1, lambda x: x.clamp_min(0.1), torch.neg, torch.reciprocal, torch.sinh,
    ]  # fmt: skip
    return [_both(torch, f, ROW) for f in functions]


def elementwise_positive(torch: Any) -> Any:
    functions = [
        torch.log, torch.sqrt, torch.rsqrt, torch.log1p, torch.log2, torch.lgamma, torch.digamma,
        lambda x: x**0.5, lambda x: x**-2, lambda x: x**x,
    ]  # fmt: skip
    return [_both(torch, f, [0.5, 1.5, 2.0]) for f in functions]


def binary(torch: Any) -> Any:
    functions = [
        lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y,
        torch.maximum, torch.minimum, torch.atan2, lambda x, y: torch.where(x > y, x, y * 2),
        torch.hypot, lambda x, y: torch.add(x, y, alpha=2), lambda x, y: x.lerp(y, 0.3),
    ]  # fmt: skip
    return [_both(torch, f, GRID, [1.0, -2.0, 0.5]) for f in functions]


def reductions(torch: Any) -> Any:
    functions = [
        lambda x: x.sum(), lambda x: x.sum(0), lambda x: x.sum(-1, keepdim=True),
        lambda x: x.mean(), lambda x: x.mean(dim=1), lambda x: x.sum((0, 1)), lambda x: x.prod(),
        lambda x: x.amax(1), lambda x: x.max(), lambda x: x.max(1)[0], lambda x: x.min(0).values,
        lambda x: x.var(), lambda x: x.var(1, unbiased=False), lambda x: x.std(0),
        lambda x: x.norm(), lambda x: x.norm(p=1), lambda x: x.logsumexp(1),
        lambda x: x.softmax(-1), lambda x: x.log_softmax(0), lambda x: x.cumsum(1),
    ]  # fmt: skip
    return [_both(torch, f, GRID) for f in functions]


def positions(torch: Any) -> Any:
    x = torch.tensor(GRID)
    return [
        x.argmax(), x.argmax(1), x.argmin(0), x.max(1).indices, x.sort(1)[1], x.argsort(),
        x.topk(2, dim=1)[1], (x > 0).any(), (x > 0).all(1), torch.nonzero(x > 0),
        torch.where(x > 0)[0], torch.unique(torch.tensor([3, 1, 3])), x.count_nonzero(),
    ]  # fmt: skip


def matrices(torch: Any) -> Any:
    functions = [
        lambda x, y: x @ y.t(), lambda x, y: x.mm(y.T), lambda x, y: torch.matmul(x, y[0]),
        lambda x, y: (x * y).sum(1), lambda x, y: torch.einsum("ij,kj->ik", x, y),
        lambda x, y: torch.outer(x[0], y[1]), lambda x, y: x[0].dot(y[1]),
        lambda x, y: x.mv(y[0]), lambda x, y: torch.bmm(x[None], y.t()[None]),
    ]  # fmt: skip
    return [_both(torch, f, GRID, [[1.0, 2.0, -1.0], [0.5, 0.25, 4.0]]) for f in functions]


def batched_matmul(torch: Any) -> Any:
    x = torch.arange(12.0).reshape(2, 2, 3).requires_grad_()
    y = torch.arange(6.0).reshape(3, 2).requires_grad_()
    out = x @ y
    (out * torch.arange(8.0).reshape(2, 2, 2)).sum().backward()
    return out, x.grad, y.grad


def movement(torch: Any) -> Any:
    functions = [
        lambda x: x.t(), lambda x: x.T, lambda x: x.reshape(3, 2), lambda x: x.view(-1),
        lambda x: x.unsqueeze(1), lambda x: x[None].squeeze(0), lambda x: x.permute(1, 0),
        lambda x: x.flatten(), lambda x: x.transpose(0, 1), lambda x: x.flip(1),
        lambda x: x.repeat(2, 1), lambda x: torch.cat([x, x * 2]), lambda x: torch.stack([x, x], 1),
        lambda x: x.expand(2, 2, 3), lambda x: x.roll(1, 0), lambda x: x.tril(), lambda x: x.triu(),
        lambda x: torch.cat(x.split(1)), lambda x: x.diagonal(), lambda x: x.narrow(1, 1, 2),
        lambda x: x.repeat_interleave(2, dim=0), lambda x: torch.hstack([x, x]),
    ]  # fmt: skip
    return [_both(torch, f, GRID) for f in functions]


def basic_indexing(torch: Any) -> Any:
    functions = [
        lambda x: x[0], lambda x: x[-1], lambda x: x[:, 1], lambda x: x[..., -1], lambda x: x[1, 2],
        lambda x: x[:, ::2], lambda x: x[:, 1:], lambda x: x[None], lambda x: x[:, None, 1:],
        lambda x: x[0:0], lambda x: x[:], lambda x: x[...], lambda x: x[:, -2:],
    ]  # fmt: skip
    return [_both(torch, f, GRID) for f in functions]


def index_tensors(torch: Any) -> Any:
    i = torch.tensor([0, 1, 1])
    functions = [
        lambda x: x[i], lambda x: x[:, i], lambda x: x[i, i], lambda x: x[[1, 0]],
        lambda x: x[torch.tensor([[0, 1], [1, 0]])], lambda x: x[torch.tensor([-1, 0])],
        lambda x: x[torch.tensor(1)], lambda x: x.index_select(1, i), lambda x: x[i, 1:],
        lambda x: x.gather(1, torch.tensor([[0, 0], [2, 1]])), lambda x: torch.take(x, i),
    ]  # fmt: skip
    return [_both(torch, f, GRID) for f in functions]


def masks(torch: Any) -> Any:
    functions = [
        lambda x: x[x > 0], lambda x: x[torch.tensor([True, False])],
        lambda x: x.masked_select(x > 0),
        lambda x: x[:, torch.tensor([True, False, True])], lambda x: x[x > 100],
        lambda x: x[torch.tensor([False, True]), 1:],
    ]  # fmt: skip
    return [_both(torch, f, GRID) for f in functions]


def losses(torch: Any) -> Any:
    f = torch.nn.functional if hasattr(torch, "nn") else torch
    target = torch.tensor([0, 2])
    functions = [
        lambda x: f.cross_entropy(x, target), lambda x: f.mse_loss(x, torch.ones(2, 3)),
        lambda x: f.nll_loss(f.log_softmax(x, dim=1), target), lambda x: f.gelu(x),
        lambda x: f.softplus(x), lambda x: f.silu(x), lambda x: f.leaky_relu(x, 0.1),
        lambda x: f.layer_norm(x, (3,)), lambda x: f.elu(x),
        lambda x: f.l1_loss(x, torch.ones(2, 3)),
    ]  # fmt: skip
    return [_both(torch, one, GRID) for one in functions]


def scatters(torch: Any) -> Any:
    i = torch.tensor([[0, 1, 0], [1, 0, 1]])
    functions = [
        lambda x: torch.zeros(2, 3).scatter_add(0, i, x), lambda x: x.scatter(0, i, 5.0),
        lambda x: torch.zeros(3, 3).index_add(0, torch.tensor([0, 2]), x),
        lambda x: x.index_fill(1, torch.tensor([0]), 7.0),
    ]  # fmt: skip
    return [_both(torch, f, GRID) for f in functions]


def printing(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0, 3.0])
    print(x, torch.tensor(3), torch.tensor([True, False]), torch.tensor([[1, 2], [3, 40]]))
    print(torch.tensor([1.5, 2.25]), torch.tensor(0.1234567), torch.tensor([1.0, float("nan")]))
    print(torch.tensor([1e-8, 1.0]), torch.tensor([1e10]), torch.zeros(2, 2), torch.tensor([]))
    print(x.requires_grad_(), x * 2, x.shape, x.size(), x.dtype, x.double())
    print(
        torch.tensor([[1.5, -2.25], [100.0, 3.0]]), torch.tensor(-0.5), f"{torch.tensor(2.5):.2f}"
    )


def python_numbers(torch: Any) -> Any:
    x = torch.tensor([[1.5, 2.0]])
    return [
        float(x[0, 0]), int(x[0, 1]), x[0, 1].item(), x.tolist(), bool(x[0, 0] > 1), len(x),
        x.dim(), x.numel(), list(x.shape), [10, 20, 30][torch.tensor(1)], x.size(1), x.ndim,
        torch.tensor(3).item(), 1.5 in x, x.shape.numel(), x.stride(), x.element_size(),
    ]  # fmt: skip


def numpy_protocols(torch: Any) -> Any:
    import numpy as np

    x = torch.tensor([1.0, 4.0])
    return [
        np.asarray(x), np.sum(np.asarray(x)), x.numpy().dtype.name,
        isinstance(np.add(x.numpy(), 1), np.ndarray),
    ]  # fmt: skip


def whole_comparisons(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0])
    return [
        torch.equal(x, x.clone()), torch.equal(x, x[:1]), torch.allclose(x, x + 1e-9),
        x.equal(x), torch.is_tensor(x), torch.is_tensor(1), torch.isclose(x, x + 1),
        torch.is_floating_point(x), x.is_floating_point(),
    ]  # fmt: skip


def empty_tensors(torch: Any) -> Any:
    x = torch.zeros(0, 3, requires_grad=True)
    y = x * 2
    y.sum().backward()
    return y, y.sum(), x.grad, torch.cat([x, torch.ones(1, 3)])


def special_values(torch: Any) -> Any:
    x = torch.tensor([0.0, -1.0, float("inf"), float("nan")], requires_grad=True)
    y = x.sqrt() + x.log() + 1 / x
    y.sum().backward()
    return y, x.grad, y.isnan(), x.isinf()


def kinks(torch: Any) -> Any:
    x = torch.tensor([0.0, 1.0, -1.0], requires_grad=True)
    y = x.abs() + x.relu() + x.clamp(-1, 1) + x.sign()
    y.sum().backward()
    return y, x.grad


def ties_in_maxima(torch: Any) -> Any:
    x = torch.tensor([[2.0, 2.0, 1.0], [0.0, 3.0, 3.0]], requires_grad=True)
    x.amax(1).sum().backward()
    first = x.grad.clone()
    x.grad = None
    torch.maximum(x, x.flip(1)).sum().backward()
    return first, x.grad


def maximum_along_axis_takes_one(torch: Any) -> Any:
    x = torch.tensor([[2.0, 5.0, 1.0], [0.0, 3.0, 4.0]], requires_grad=True)
    values, places = x.max(1)
    values.sum().backward()
    return values, places, x.grad


def training_loop(torch: Any) -> Any:
    x = torch.linspace(-1, 1, 20).reshape(-1, 1)
    y = x**3 - x
    w1 = (torch.arange(8.0).reshape(1, 8) / 8 - 0.4).requires_grad_()
    b1 = torch.zeros(8, requires_grad=True)
    w2 = (torch.arange(8.0).reshape(8, 1) / 8 - 0.5).requires_grad_()
    losses = []
    for _ in range(30):
        prediction = (x @ w1 + b1).tanh() @ w2
        loss = (prediction - y).pow(2).mean()
        loss.backward()
        losses.append(loss.item())
        with torch.no_grad():
            for parameter in (w1, b1, w2):
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
    return losses, w1, b1, w2


def gradient_clipping(torch: Any) -> Any:
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    (w * w).sum().backward()
    norm = w.grad.norm()
    w.grad.mul_(1.0 / norm)
    return norm, w.grad


def aliases_of_functions(torch: Any) -> Any:
    x = torch.tensor(GRID)
    return [
        torch.sum(x, dim=0), torch.mean(x), torch.mul(x, 2), torch.sub(x, 1), torch.div(x, 2),
        torch.pow(x, 2), torch.clamp(x, 0, 1), torch.transpose(x, 0, 1), torch.unsqueeze(x, 0),
        torch.reshape(x, (-1,)), torch.full_like(x, 2.0), torch.zeros_like(x), x.new_zeros(2),
        x.new_tensor([1.0]), x.new_ones((1, 2)), x.new_full((2,), 3.0), torch.abs(x),
    ]  # fmt: skip
