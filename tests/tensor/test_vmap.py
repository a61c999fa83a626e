"""``sg.vmap``: what a loop over the elements gives, nested and with derivatives, as torch's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad as sg
from symgrad.errors import SymgradError
from symgrad.tensor.errors import TensorValueError, VmapError

Array = np.ndarray[Any, Any]


def tensor(*shape: int, seed: int = 0) -> sg.Tensor:
    return sg.from_numpy(np.random.default_rng(seed).standard_normal(shape))


# Functions of one element: x of shape (3, 4), k of shape (2,) holding places below 3.
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "arithmetic": lambda x, k: 2.0 * x - x / (1.0 + x * x) + x**2,
    "elementwise": lambda x, k: sg.tanh(x) * sg.sigmoid(x) + sg.where(x > 0, x, 0.1 * x),
    "clamped": lambda x, k: x.clamp(-0.5, 0.5).abs(),
    "reduced": lambda x, k: x.mean(0) + x.amax(0) + x.logsumexp(0) + x.prod(0),
    "norms": lambda x, k: x.std(-1, keepdim=True) * x.norm(dim=1, keepdim=True) * x.var(),
    "softmax": lambda x, k: sg.softmax(x, -1) * sg.log_softmax(x, 0),
    "matmul": lambda x, k: x @ x.mT + (x @ x[0])[:, None],
    "einsum": lambda x, k: sg.einsum("ij,kj->ikj", x, x).sum(2),
    "moved": lambda x, k: x.t().reshape(2, 6).flip(0).roll(1, 1).unsqueeze(0).expand(2, 2, 6),
    "spread": lambda x, k: x.expand(3, 3, 4) * x.t().expand(3, 4, 3).mT + x[0].expand(3, 4),
    "joined": lambda x, k: sg.cat([x, x[:1] * 2.0]) + sg.stack([x[0]] * 4),
    "sliced": lambda x, k: x[1:, ::2].sum() * x[..., -1],
    "indexed": lambda x, k: x[k] + x.index_select(0, k.abs()) + x[k, k][:, None],
    "gathered": lambda x, k: x.gather(0, k.unsqueeze(1).expand(2, 4)),
    "scattered": lambda x, k: sg.zeros(3, 4, dtype=sg.float64).index_add(0, k, x[:2]),
    "sorted": lambda x, k: sg.sort(x, 1)[0] + x.topk(4, 1)[0] + x.argmax(1, keepdim=True),
    "scanned": lambda x, k: x.cumsum(0) * x.cumprod(1),
    "triangles": lambda x, k: x.tril() + x.triu(1) + x.diagonal().sum(),
    "matrices": lambda x, k: sg.linalg.inv(x @ x.mT + 3 * sg.eye(3, dtype=sg.float64)),
    "cholesky": lambda x, k: sg.linalg.cholesky(x @ x.mT + 3 * sg.eye(3, dtype=sg.float64)),
    "written": lambda x, k: _written(x),
    "several": lambda x, k: (x.sum(), {"a": x[0], "b": [x.mean(1)]}),
}


def _written(x: Any) -> Any:
    found = x.clone()
    found[0] = 1.0
    part = found[1:].view(-1)
    part.mul_(2.0)
    found += x
    found[1, 1:3] = x[0, :2]
    found[found > 1.5] = 0.25
    return found


def leaves(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    if isinstance(value, dict):
        return [leaf for key in value for leaf in leaves(value[key])]
    return [value]


def looped(function: Any, *args: Any) -> list[Array]:
    """The function called for each element, stacked."""
    rows = [leaves(function(*one)) for one in zip(*args, strict=True)]
    return [
        np.stack([leaf.detach().numpy() for leaf in column]) for column in zip(*rows, strict=True)
    ]


def same(found: Any, wanted: list[Array]) -> None:
    found = leaves(found)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert tuple(one.shape) == other.shape
        np.testing.assert_allclose(one.detach().numpy(), other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@given(size=st.integers(1, 4), mapped=st.booleans(), seed=st.integers(0, 99))
def test_values_are_those_of_a_loop(name: str, size: int, mapped: bool, seed: int) -> None:
    function = FUNCTIONS[name]
    x = tensor(size, 3, 4, seed=seed)
    k = sg.from_numpy(np.random.default_rng(seed).integers(-1, 3, (size, 2)))
    if name in ("gathered", "scattered"):
        k = k.abs()
    if mapped:
        same(sg.vmap(function)(x, k), looped(function, x, k))
    else:
        found = sg.vmap(function, in_dims=(0, None))(x, k[0])
        same(found, looped(function, x, [k[0]] * size))
        found = sg.vmap(function, in_dims=(None, 0))(x[0], k) if _uses_places(name) else found
        if _uses_places(name):
            same(found, looped(function, [x[0]] * size, k))


def _uses_places(name: str) -> bool:
    return name in ("indexed", "gathered", "scattered")


DIFFERENTIABLE = sorted(set(FUNCTIONS) - {"several"})


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives_inside_and_outside(name: str) -> None:
    x, v = tensor(3, 3, 4), tensor(3, 3, 4, seed=1)
    k = sg.tensor([[0, 1], [2, 2], [1, 0]])

    def number(one: Any, places: Any) -> Any:
        return sg.sin(FUNCTIONS[name](one, places)).sum()

    same(sg.vmap(sg.grad(number))(x, k), looped(sg.grad(number), x, k))
    total = sg.grad(lambda whole: sg.vmap(number)(whole, k).sum())(x)
    same(total, looped(sg.grad(number), x, k))

    def along(one: Any, places: Any, direction: Any) -> Any:
        return sg.jvp(lambda y: FUNCTIONS[name](y, places), (one,), (direction,))[1]

    same(sg.vmap(along)(x, k, v), looped(along, x, k, v))

    def product(one: Any, places: Any, direction: Any) -> Any:
        return sg.hvp(lambda y: number(y, places), one, direction)[1]

    same(sg.vmap(product)(x, k, v), looped(product, x, k, v))


def test_jacobians_and_hessians() -> None:
    x, w = tensor(3, 4), tensor(4, 2)

    def function(one: Any) -> Any:
        return sg.tanh(one @ w)

    for transform in (sg.jacobian, lambda f, a: sg.hessian(lambda y: f(y).sum(), a)):
        found = sg.vmap(lambda one, t=transform: t(function, one))(x)
        same(found, looped(lambda one, t=transform: t(function, one), x))


def test_gradients_of_each_sample() -> None:
    x, w = tensor(5, 4), tensor(4, 3)

    def loss(weight: Any, one: Any) -> Any:
        return sg.tanh(one @ weight).sum()

    found = sg.vmap(sg.grad(loss), in_dims=(None, 0))(w, x)
    assert found.shape == (5, 4, 3)
    same(found, looped(lambda one: sg.grad(loss)(w, one), x))


def test_nested() -> None:
    x, w = tensor(5, 4), tensor(3, 4)
    outer = sg.vmap(sg.vmap(lambda a, b: (a * b).sum(), in_dims=(None, 0)), in_dims=(0, None))
    same(outer(x, w), [np.asarray((x @ w.mT).numpy())])
    closed = sg.vmap(lambda a: sg.vmap(lambda b: sg.grad(lambda c: (a * c * c).sum())(b))(w))(x)
    same(closed, [2 * x.numpy()[:, None] * w.numpy()[None]])


def test_a_pull_back_and_a_push_forward_over_a_basis() -> None:
    x, w = tensor(4), tensor(4, 3)

    def function(one: Any) -> Any:
        return sg.tanh(one @ w)

    jacobian = sg.jacobian(function, x).numpy()
    _, pull_back = sg.vjp(function, x)
    same(sg.vmap(lambda v: pull_back(v)[0])(sg.eye(3, dtype=sg.float64)), [jacobian])
    pushed = sg.vmap(lambda t: sg.jvp(function, (x,), (t,))[1], out_dims=1)
    same(pushed(sg.eye(4, dtype=sg.float64)), [jacobian])


def test_axes_in_and_out() -> None:
    x, y = tensor(2, 5, 3), tensor(5, 3)
    add = sg.vmap(lambda a, b: a + b, in_dims=(1, 0), out_dims=-1)
    same(add(x, y), [np.moveaxis(x.numpy() + y.numpy(), 1, -1)])
    tree = sg.vmap(
        lambda d, pair: {"s": d["x"] * pair[1], "u": pair[0]},
        in_dims=({"x": -2}, (None, 0)), out_dims={"s": 1, "u": None},
    )  # fmt: skip
    found = tree({"x": x}, (y, y))
    same(found["s"], [x.numpy() * y.numpy()])
    assert found["u"] is y
    repeated = sg.vmap(lambda a: sg.ones(2))(x)
    assert repeated.shape == (2, 2)
    by_keyword = sg.vmap(lambda a, *, b: a + b)(y, b=y)
    same(by_keyword, [2 * y.numpy()])


@given(size=st.integers(1, 7), chunk=st.integers(1, 8))
def test_chunks(size: int, chunk: int) -> None:
    x = tensor(3, size)
    call = sg.vmap(lambda a: (a * 2, a.sum()), in_dims=1, out_dims=(1, 0), chunk_size=chunk)
    found = call(x)
    same(found, [2 * x.numpy(), x.numpy().sum(0)])


# -- Functions, kernels, traces


class Scaled(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, power: int = 2) -> Any:
        y = sg.exp(x) * w
        ctx.save_for_backward(x, w, y)
        ctx.power = power
        ctx.twice = 2.0 * y
        return y, x.sum()

    @staticmethod
    def backward(ctx: Any, grad_y: Any, grad_s: Any) -> Any:
        x, _, y = ctx.saved_tensors
        assert x.shape == (4,)
        assert ctx.power == 3
        grad_x = grad_y * (ctx.twice - y) + grad_s
        return (grad_x if ctx.needs_input_grad[0] else None), grad_y * sg.exp(x), None


def scaled(x: Any, w: Any) -> Any:
    y, total = Scaled.apply(x, w, 3)
    return (y * y).sum() * total


def test_functions_keep_their_backward() -> None:
    x, w = tensor(3, 4), tensor(4, seed=2)
    both = sg.grad(scaled, argnums=(0, 1))
    same(sg.vmap(both, in_dims=(0, None))(x, w), looped(lambda one: both(one, w), x))
    shared = w.clone().requires_grad_()
    given = x.clone().requires_grad_()
    sg.vmap(lambda one: scaled(one, shared))(given).sum().backward()
    wanted = looped(lambda one: both(one, w), x)
    np.testing.assert_allclose(given.grad.numpy(), wanted[0], rtol=1e-9)
    np.testing.assert_allclose(shared.grad.numpy(), wanted[1].sum(0), rtol=1e-9)


def test_a_wrong_backward_stays_wrong() -> None:
    class Wrong(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 7.0 * grad

    x = tensor(3, 4)
    found = sg.vmap(sg.grad(lambda one: Wrong.apply(one).sum()))(x)
    same(found, [np.full((3, 4), 7.0)])


def test_second_derivatives_through_functions() -> None:
    class Exp(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = sg.exp(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0]

    x = tensor(3, 4)
    found = sg.vmap(lambda one: sg.hessian(lambda y: Exp.apply(y).sum(), one))(x)
    same(found, [np.stack([np.diag(np.exp(row)) for row in x.numpy()])])


def test_compiled_ops_and_jit_inside() -> None:
    class Double(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2.0 * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 2.0 * grad

    op: Any = sg.compile(Double, "f64[n]")
    x = tensor(3, 4)
    same(sg.vmap(lambda one: op(one))(x), [2 * x.numpy()])
    same(sg.vmap(sg.jit(lambda one: sg.sin(one) * 2.0))(x), [2 * np.sin(x.numpy())])


def test_inside_jit() -> None:
    x, w = tensor(5, 4), tensor(4, 3)

    def crossed(x: Any, w: Any) -> Any:
        return sg.vmap(lambda a: sg.vmap(lambda b: a @ b, in_dims=1)(w), out_dims=1)(x)

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a fallback to eager operations warns
        same(sg.jit(crossed)(x, w), [crossed(x, w).numpy()])
        weight = w.clone().requires_grad_()
        (sg.jit(crossed)(x, weight) ** 2).sum().backward()
    wanted = sg.grad(lambda v: (crossed(x, v) ** 2).sum())(w)
    np.testing.assert_allclose(weight.grad.numpy(), wanted.numpy(), rtol=1e-9)


def test_gradients_of_each_sample_inside_jit() -> None:
    x, w = tensor(5, 4), tensor(4, 3)

    def each(x: Any, w: Any) -> Any:
        return sg.vmap(sg.grad(lambda v, a: sg.tanh(a @ v).sum()), in_dims=(None, 0))(w, x)

    same(sg.jit(each)(x, w), [each(x, w).numpy()])


def test_inside_a_function_that_is_proved() -> None:
    class Rows(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return sg.vmap(lambda row: row @ w)(x)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, w = ctx.saved_tensors
            grad_x = sg.vmap(lambda row: w @ row)(grad)
            outer = sg.vmap(lambda a, b: a[:, None] * b[None, :])(x, grad)
            return grad_x, outer.sum(0)

    assert str(sg.verify(Rows, "n m", "m k").verdict) == "PROVED"


# -- random numbers

DRAWN: dict[str, Callable[[Any], Any]] = {
    "rand": lambda x: sg.rand(50) + x,
    "randn_like": lambda x: sg.randn_like(x),
    "randint": lambda x: sg.randint(0, 1000, (50,)),
    "randperm": lambda x: sg.randperm(50),
    "normal": lambda x: sg.normal(0.0, 1.0, (50,)),
    "in place": lambda x: x.clone().uniform_(),
    "dropout": lambda x: sg.nn.functional.dropout(x),
    "dropout of what all share": lambda x: sg.nn.functional.dropout(sg.ones(50)) + x,
    "dropout, differentiated": sg.grad(lambda x: sg.nn.functional.dropout(x).sum()),
}


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_random_numbers_are_different_the_same_or_an_error(name: str) -> None:
    x = sg.ones(6, 50)

    def rows(randomness: str, **how: Any) -> int:
        found = sg.vmap(DRAWN[name], randomness=randomness, **how)(x)
        assert tuple(found.shape) == (6, 50)
        return len(np.unique(found.numpy(), axis=0))

    assert (rows("different"), rows("same")) == (6, 1)
    assert (rows("different", chunk_size=4), rows("same", chunk_size=4)) == (6, 1)
    with pytest.raises(VmapError, match="randomness error mode"):
        sg.vmap(DRAWN[name])(x)


@pytest.mark.parametrize(
    ("outer", "inner", "rows", "columns"),
    [("different", "different", 6, 3), ("different", "same", 2, 1), ("same", "different", 3, 3)],
)
def test_random_numbers_of_nested_batches(outer: str, inner: str, rows: int, columns: int) -> None:
    each = sg.vmap(lambda one: sg.rand(20) + one, randomness=inner)
    found = sg.vmap(each, randomness=outer)(sg.zeros(2, 3)).numpy()
    assert len(np.unique(found.reshape(6, 20), axis=0)) == rows
    assert len(np.unique(found[0], axis=0)) == columns
    with pytest.raises(VmapError, match="randomness error mode"):
        sg.vmap(each)(sg.zeros(2, 3))
    with pytest.raises(SymgradError, match="Only allowed values for randomness"):
        sg.vmap(each, randomness="any")


def test_what_draws_nothing_needs_no_randomness() -> None:
    x = sg.ones(5, 4)
    same(sg.vmap(lambda one: sg.nn.functional.dropout(one, training=False))(x), [x.numpy()])


# -- what is refused


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda a: a.item(), "item"),
        (lambda a: a if a.sum() > 0 else -a, "truth"),
        (lambda a: a.numpy(), "numpy"),
        (lambda a: a.tolist(), "tolist"),
        (lambda a: np.asarray(a), "asarray"),
        (lambda a: a[a > 0], "nonzero"),
        (lambda a: sg.unique(a), "values"),
        (lambda a: sg.zeros(4)[int(a[0])], "values"),
        (lambda a: a.sum().backward(), r"backward\(\) adds"),
        (lambda a: sg.zeros(4, dtype=sg.float64).add_(a), "same for all"),
    ],
)
def test_values_are_not_there(function: Any, said: str) -> None:
    with pytest.raises(Exception, match=said) as caught:
        sg.vmap(function)(tensor(3, 4).requires_grad_())
    assert isinstance(caught.value, sg.SymgradError)


def test_wrong_axes() -> None:
    x, y = tensor(3, 4), tensor(2, 4)
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: sg.vmap(lambda a, b: a)(x, y), r"same size .* got sizes \[3, 2\]"),
        (lambda: sg.vmap(lambda a: a, in_dims=None)(x), "at least one"),
        (lambda: sg.vmap(lambda a: a, in_dims=2)(x), "in_dim=2"),
        (lambda: sg.vmap(lambda a, b: a, in_dims=(0, 0))(x, 3), "in_dim=0 for an input that is a"),
        (lambda: sg.vmap(lambda a, b: a, in_dims=(0,))(x, x), "structure"),
        (lambda: sg.vmap(lambda a: a, out_dims=3)(x), "out_dim=3"),
        (lambda: sg.vmap(lambda a: a, out_dims=None)(x), "out_dims=None"),
        (lambda: sg.vmap(lambda a: 3)(x), "only return Tensors"),
        (lambda: sg.vmap(tuple)(), "no inputs"),
    ]
    for call, said in cases:
        with pytest.raises(TensorValueError, match=said):
            call()


def test_gradients_by_what_all_elements_share() -> None:
    w = tensor(4).requires_grad_()
    with pytest.raises(VmapError, match="same for all elements"):
        sg.vmap(lambda a: sg.autograd.grad((a * w).sum(), w)[0])(tensor(3, 4))


def test_a_tensor_that_was_kept() -> None:
    kept: list[Any] = []

    def keep(one: Any) -> Any:
        kept.append(one)
        return one

    sg.vmap(keep)(tensor(3, 4))
    with pytest.raises(VmapError, match="after that vmap is over"):
        kept[0] * 2.0
