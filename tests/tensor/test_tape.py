"""The graph behind eager tensors: depth, freeing, what backward asks for, Functions."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symgrad as sg
from symgrad.errors import SymgradError

DEEP = 20_000


def in_a_small_stack(call: Callable[[], None]) -> None:
    """Run ``call`` in a thread with a stack that a recursion of that depth would overflow."""
    failures: list[BaseException] = []

    def body() -> None:
        try:
            call()
        except BaseException as error:
            failures.append(error)

    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    if failures:
        raise failures[0]


def chain(x: Any, length: int) -> Any:
    for _ in range(length):
        x = x * 1.00001
    return x


@pytest.mark.slow
def test_deep_chains_neither_recurse_nor_stay() -> None:
    def body() -> None:
        x = sg.ones(1, dtype=sg.float64, requires_grad=True)
        y = chain(x, DEEP)
        y.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), [1.00001**DEEP], rtol=1e-9)
        z = chain(x, DEEP)
        last = weakref.ref(z.grad_fn)
        del z, y
        assert last() is None

    in_a_small_stack(body)


@pytest.mark.slow
def test_deep_chains_of_functions_and_of_gradients() -> None:
    class Scale(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 1.0001

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 1.0001

    def body() -> None:
        x = sg.ones(1, dtype=sg.float64, requires_grad=True)
        y = x
        for _ in range(5000):
            y = Scale.apply(y)
        y.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), [1.0001**5000], rtol=1e-9)
        (g,) = sg.autograd.grad((chain(x, 5000) ** 2).sum(), x, create_graph=True)
        (h,) = sg.autograd.grad(g.sum(), x)
        np.testing.assert_allclose(h.numpy(), [2 * 1.00001**10000], rtol=1e-9)

    in_a_small_stack(body)


@pytest.mark.slow
def test_memory_of_a_chain_is_linear_and_freed() -> None:
    x = sg.ones(1, requires_grad=True)
    chain(x, 10)
    gc.collect()
    tracemalloc.start()
    try:
        y = chain(x, 20_000)
        held = tracemalloc.get_traced_memory()[0]
        del y
        left = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 20_000 * 1000
    assert left < held / 10  # CPython keeps 2,000 empty tuples of each length


def test_outputs_do_not_keep_themselves_alive() -> None:
    """The node of exp saves its result: no reference cycle, nothing waits for the collector."""
    gc.disable()
    try:
        x = sg.ones(3, requires_grad=True)
        y = x.exp()
        node, tensor = weakref.ref(y.grad_fn), weakref.ref(y)
        del y
        assert node() is None
        assert tensor() is None
    finally:
        gc.enable()


def test_backward_frees_what_was_saved() -> None:
    x = sg.ones(3, requires_grad=True)
    h = x * 2
    y = (h * h).sum()
    kept = weakref.ref(h)
    del h
    y.backward()
    assert kept() is None
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


class Product(sg.Function):
    """Notes which gradients it is asked for."""

    asked: tuple[bool, ...] = ()

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any, factor: float) -> Any:
        ctx.save_for_backward(a, b)
        ctx.factor = factor
        return a * b * factor

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        Product.asked = ctx.needs_input_grad
        a, b = ctx.saved_tensors
        grad_a = g * b * ctx.factor if ctx.needs_input_grad[0] else None
        grad_b = g * a * ctx.factor if ctx.needs_input_grad[1] else None
        return grad_a, grad_b, None


def test_needs_input_grad_follows_what_is_needed() -> None:
    a, b = sg.ones(2, requires_grad=True), sg.ones(2, requires_grad=True)
    Product.apply(a, b, 2.0).sum().backward()
    assert Product.asked == (True, True, False)
    Product.apply(a, b.detach(), 2.0).sum().backward()
    assert Product.asked == (True, False, False)
    Product.apply(a, b, 2.0).sum().backward(inputs=[b])
    assert Product.asked == (False, True, False)
    sg.autograd.grad(Product.apply(a * 1, b * 1, 2.0).sum(), a)
    assert Product.asked == (True, False, False)


def test_backward_skips_what_leads_nowhere() -> None:
    """With inputs, nodes that do not lead to them do not run at all."""

    class Loud(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise AssertionError("not needed")

    a, b = sg.ones(2, requires_grad=True), sg.ones(2, requires_grad=True)
    (Loud.apply(a) * b).sum().backward(inputs=[b])
    assert a.grad is None
    assert b.grad.tolist() == [2.0, 2.0]


def test_old_style_with_a_helper() -> None:
    """Methods of an instance, which is the ctx: PyTorch ran these before 1.3."""

    class LinearFunction(sg.Function):
        def forward(self, input: Any, weight: Any, bias: Any = None) -> Any:  # type: ignore[override]
            self.save_for_backward(input, weight, bias)
            output = input.mm(weight.t())
            if bias is not None:
                output += bias.unsqueeze(0).expand_as(output)
            return output

        def backward(self, grad_output: Any) -> Any:  # type: ignore[override]
            input, weight, bias = self.saved_tensors
            grad_input = grad_weight = grad_bias = None
            if self.needs_input_grad[0]:
                grad_input = grad_output.mm(weight)
            if self.needs_input_grad[1]:
                grad_weight = grad_output.t().mm(input)
            if bias is not None and self.needs_input_grad[2]:
                grad_bias = grad_output.sum(0).squeeze(0)
            return grad_input, grad_weight, grad_bias

    def linear(input: Any, weight: Any, bias: Any = None) -> Any:
        return LinearFunction()(input, weight, bias)

    x = sg.tensor([[1.0, 2.0, -1.0]])
    w = sg.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], requires_grad=True)
    b = sg.tensor([0.5, -0.5], requires_grad=True)
    y = linear(x, w, b)
    assert y.tolist() == [[0.5, 5.5]]
    y.backward(sg.tensor([[1.0, 2.0]]))
    assert w.grad.tolist() == [[1.0, 2.0, -1.0], [2.0, 4.0, -2.0]]
    assert b.grad.tolist() == [1.0, 2.0]
    assert linear(x, w).tolist() == [[0.0, 6.0]]


def test_old_style_with_arguments_of_init() -> None:
    class Scale(sg.Function):
        def __init__(self, factor: float) -> None:
            self.factor = factor

        def forward(self, x: Any) -> Any:  # type: ignore[override]
            return x * self.factor

        def backward(self, g: Any) -> Any:  # type: ignore[override]
            return g * self.factor

    x = sg.ones(2, requires_grad=True)
    scale = Scale(3.0)
    (scale(x) + scale(scale(x))).sum().backward()
    assert x.grad.tolist() == [12.0, 12.0]


def test_wrong_backwards_run_too() -> None:
    """``apply`` refuses no Function: ``compile`` does."""

    class Reversed(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return -g

    x = sg.ones(2, requires_grad=True)
    Reversed.apply(x).sum().backward()
    assert x.grad.tolist() == [-1.0, -1.0]
    with pytest.raises(SymgradError):
        sg.compile(Reversed, "n")


def test_without_a_backward_forward_is_differentiated() -> None:
    class Cube(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

    x = sg.tensor([2.0], requires_grad=True)
    Cube.apply(x).sum().backward()
    assert x.grad.tolist() == [12.0]


def test_eager_and_compiled_agree() -> None:
    class Softplus(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return sg.log1p(sg.exp(x))

        @staticmethod
        def backward(ctx: Any, grad_y: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad_y * sg.sigmoid(x)

    values = np.linspace(-2, 2, 12).reshape(3, 4).astype(np.float32)
    x = sg.tensor(values, requires_grad=True)
    y = Softplus.apply(x)
    y.backward(sg.ones(3, 4))
    from symgrad.frontend.trace import trace
    from symgrad.kernels import with_backward
    from symgrad.passes.evaluate import evaluate

    case = with_backward(trace(Softplus, "n m")).cases[0]
    node = case.gradients[0].node
    assert node is not None
    feeds = {"x": values, case.cotangents[0].label: np.ones((3, 4), np.float32)}  # type: ignore[union-attr]
    found, gradient = evaluate([case.outputs[0], node], feeds)
    np.testing.assert_allclose(y.detach().numpy(), found, rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), gradient, rtol=1e-6)


def test_tensors_are_constants_of_a_trace() -> None:
    weights = sg.tensor([1.0, 2.0])

    class Weighted(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * weights + sg.exp(weights)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return weights * g

    assert sg.verify(Weighted, "n 2").verdict is sg.PROVED
    x = sg.ones(3, 2, requires_grad=True)
    Weighted.apply(x).sum().backward()
    assert x.grad.tolist() == [[1.0, 2.0]] * 3


def test_errors_are_symgrads_and_the_builtin_ones() -> None:
    x = sg.ones(2, requires_grad=True)
    calls: list[tuple[Callable[[], Any], type[Exception]]] = [
        (lambda: x.add_(1), RuntimeError),
        (lambda: (x * 2).backward(), RuntimeError),
        (lambda: sg.ones(2)[5], IndexError),
        (lambda: sg.ones(2) + sg.ones(3), RuntimeError),
        (lambda: sg.exp([1.0]), TypeError),
    ]
    for call, kind in calls:
        with pytest.raises(SymgradError) as caught:
            call()
        assert isinstance(caught.value, kind)


def test_plans_depend_on_all_that_matters() -> None:
    """Calls that differ in a value, a type of number or a sign of zero do not share a plan."""
    x = sg.tensor([4.0])
    assert (x * 2).tolist() == [8.0]
    assert (x * 3).tolist() == [12.0]
    i = sg.tensor([4])
    assert (i * 1).dtype is sg.int64
    assert (i * 1.0).dtype is sg.float32
    assert str((sg.tensor([True]) * True).dtype) == "bool"
    assert np.signbit((sg.tensor([0.0]) * -0.0).item())
    assert not np.signbit((sg.tensor([0.0]) * 0.0).item())
    assert sg.ones(2, 3).t().reshape(6).shape == (6,)
    with pytest.raises(RuntimeError, match="view"):
        sg.ones(2, 3).t().view(6)


def test_package_and_function_share_a_name() -> None:
    import symgrad.tensor

    assert sg.tensor([1.0]).tolist() == [1.0]
    assert symgrad.tensor([1.0]).tolist() == [1.0]


def test_recording_into_grad_warns() -> None:
    x = sg.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="reference cycle"):
        (x**3).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    x.grad = None


def test_tensors_that_are_constructed_are_different_ones() -> None:
    first, second = sg.Tensor([1.0]), sg.Tensor([1.0])
    assert first is not second


def test_a_missing_backward_that_cannot_be_derived_is_told_at_once() -> None:
    class Read(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return sg.from_numpy(x.numpy() * 2)

    class Cut(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return sg.from_numpy(x.detach().numpy() * 2)

    x = sg.tensor([1.0], requires_grad=True)
    for function in (Read, Cut):
        with pytest.raises(NotImplementedError, match="You must implement either the backward"):
            function.apply(x)
        assert function.apply(x.detach()).tolist() == [2.0]


def test_a_tensor_by_keyword_only_is_refused_where_its_gradient_would_be_lost() -> None:
    class Scaled(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, *, k: Any) -> Any:
            ctx.k = k
            return x * k

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.k

    x, k = sg.tensor([1.0], requires_grad=True), sg.tensor([3.0], requires_grad=True)
    with pytest.raises(SymgradError, match="tensor k is taken by keyword only"):
        Scaled.apply(x, k=k)
    Scaled.apply(x, k=k.detach()).sum().backward()
    assert x.grad.tolist() == [3.0]


def test_backward_and_vjp_are_not_both_written() -> None:
    both = {"backward": staticmethod(lambda ctx, g: g), "vjp": staticmethod(lambda ctx, g: g)}
    with pytest.raises(SymgradError, match="Implementing both 'backward' and 'vjp'"):
        type("Both", (sg.Function,), both)


def test_hooks_inside_of_a_derivative() -> None:
    seen: list[float] = []

    def function(x: Any) -> Any:
        x.register_hook(lambda g: seen.append(float(g)))
        (x * 2).register_hook(lambda g: seen.append(float(g)))  # leads nowhere
        return x * x

    assert float(sg.grad(function)(sg.tensor(3.0))) == 6.0
    assert seen == [6.0]


def _put(key: Any, value: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def call(w: Any, i: Any) -> Any:
        found = w * 1.0
        found[key(i)] = value(w)
        return found

    return call


# What keeps an index or a mask for its backward, and that index or mask.
INDEXED: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "rows": (lambda w, i: w[i], [0, 2]),
    "rows from the end": (lambda w, i: w[i], [0, -1]),
    "int32": (lambda w, i: w[i.int()], [0, 2]),
    "columns": (lambda w, i: w[:, i], [0, 1]),
    "with a number": (lambda w, i: w[i, 0], [0, 2]),
    "mask": (lambda w, i: w[i], [True, False, True]),
    "mask of elements": (lambda w, i: w[i], [[True, False]] * 3),
    "masked_select": (lambda w, i: w.masked_select(i), [True, False]),
    "masked_fill": (lambda w, i: w.masked_fill(i, 2.0), [True, False]),
    "where": (lambda w, i: sg.where(i, w, w * 2.0), [True, False]),
    "rows written": (_put(lambda i: i, lambda w: w[:2] * 2.0), [0, 2]),
    "mask written": (_put(lambda i: i, lambda w: w[:2] * 2.0), [True, False, True]),
    "number written": (_put(lambda i: i, lambda w: 3.0), [True, False, True]),
    "scalar written": (_put(lambda i: i, lambda w: w[0, 0]), [True, False, True]),
    "index_select": (lambda w, i: w.index_select(0, i), [0, 2]),
    "gather": (lambda w, i: w.gather(0, i), [[0, 2]]),
    "index_add": (lambda w, i: w.index_add(0, i, w[:2] * 2.0), [0, 2]),
    "scatter": (lambda w, i: w.scatter(0, i, w[:1] * 2.0), [[0, 2]]),
    "take": (lambda w, i: w.take(i), [0, 2]),
    "embedding": (lambda w, i: sg.nn.functional.embedding(i, w), [0, 2]),
    "cross_entropy": (lambda w, i: sg.nn.functional.cross_entropy(w, i), [0, 1, 0]),
}


COPIED = ("int32", "cross_entropy")  # backward reads what forward made of them


@pytest.mark.parametrize("name", sorted(INDEXED))
def test_an_index_that_is_written_before_backward_is_noticed(name: str) -> None:
    call, index = INDEXED[name]
    w = sg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
    i = sg.tensor(index)
    found = call(w, i.clone() if name == "int32" else i)
    found.sum().backward(retain_graph=True)  # unwritten, it is well
    first, w.grad = w.grad, None
    i.copy_(~i if str(i.dtype) == "bool" else sg.ones_like(i))
    if name in COPIED:
        found.sum().backward()
        assert w.grad is not None
        assert w.grad.equal(first)
    else:
        with pytest.raises(SymgradError, match="modified by an inplace operation"):
            found.sum().backward()


def test_an_index_of_one_element_is_read_at_once() -> None:
    w = sg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    i = sg.tensor(0)
    found = w[i].sum() + w[:, i].sum()
    i.fill_(1)
    found.backward()
    assert w.grad.tolist() == [[2.0, 1.0], [1.0, 0.0]]


def _doubled() -> tuple[Any, Any]:
    x = sg.ones(4, requires_grad=True)
    return x, x * 2.0


def test_a_gradient_that_is_kept_is_that_of_what_was_written_last() -> None:
    x, y = _doubled()
    y.retain_grad()
    y.mul_(3.0)
    (y * y).sum().backward()
    assert (y.grad.tolist(), x.grad.tolist()) == ([12.0] * 4, [72.0] * 4)

    x, y = _doubled()  # through a view
    y.retain_grad()
    y[0].mul_(3.0)
    y[1] = x[2]
    (y * y).sum().backward()
    assert y.grad.tolist() == [12.0, 2.0, 4.0, 4.0]

    x, y = _doubled()  # of a view, through another
    part, other = y[:2], y[1:]
    part.retain_grad()
    other.mul_(3.0)
    ((part * part).sum() + (y * y).sum()).backward()
    assert part.grad.tolist() == [4.0, 12.0]

    x, y = _doubled()  # hooks stay with the value that they were registered for
    seen: list[Any] = []
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    y.mul_(3.0)
    (y * y).sum().backward()
    assert seen == [[36.0] * 4]


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        (lambda grad: grad.sum(), "hook '<lambda>' has changed the size of value"),
        (lambda grad: grad[None], "has changed the size of value"),
        (lambda grad: grad.double(), "type of value .was symgrad.FloatTensor got symgrad.Double"),
        (
            lambda grad: (grad, grad),
            "returned an incorrect number of values .got 2|hook returned .tuple",
        ),
    ],
)
@pytest.mark.parametrize("record", [False, True])
def test_a_hook_gives_a_gradient_of_the_same_kind(hook: Any, said: str, record: bool) -> None:
    def of_a_leaf(x: Any, y: Any) -> None:
        x.register_hook(hook)

    def of_a_result(x: Any, y: Any) -> None:
        y.register_hook(hook)

    def before_a_node(x: Any, y: Any) -> None:
        y.grad_fn.register_prehook(lambda grads: hook(*grads))

    def behind_a_node(x: Any, y: Any) -> None:
        y.grad_fn.register_hook(lambda grads, given: hook(*grads))

    for register in (of_a_leaf, of_a_result, before_a_node, behind_a_node):
        x = sg.ones(4, requires_grad=True)
        y = sg.tanh(x)
        register(x, y)
        with pytest.raises(SymgradError, match=said):
            sg.autograd.grad((y * y).sum(), [x], create_graph=record)
