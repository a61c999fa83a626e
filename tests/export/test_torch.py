"""Compiled ops as torch custom ops and as ``torch.autograd.Function``."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from typing import Any

import pytest

import symgrad as sg
from symgrad import generated
from symgrad.errors import KernelArgumentError, KernelTypeError
from symgrad.frontend.trace import trace
from symgrad.kernels import plan
from symgrad.numpy_op import NumpyOp
from tests.export.programs import Cased, Dot, Greatest, Rows, Weighted, compiled
from tests.house import tree

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers

from symgrad.export import torch as export  # noqa: E402
from symgrad.export.gradients import gradients_of  # noqa: E402

F = torch.nn.functional
FUNCTION: Any = torch.autograd.Function


def matrix(*shape: int, dtype: Any = torch.float32, grad: bool = False, seed: int = 0) -> Any:
    made = torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))
    return made.requires_grad_(grad)


def exported(function: Any) -> Any:
    """One op for both dtypes."""
    return export.custom_op(compiled(function), compiled(function, "f64"))


ELEMENTWISE = {
    "nn_elu": F.elu, "nn_gelu": F.gelu, "nn_logsigmoid": F.logsigmoid, "nn_mish": F.mish,
    "nn_relu": F.relu, "nn_sigmoid": torch.sigmoid, "nn_silu": F.silu, "nn_softplus": F.softplus,
    "nn_gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
}  # fmt: skip
ROWS = {
    "nn_softmax": lambda x: F.softmax(x, -1), "nn_log_softmax": lambda x: F.log_softmax(x, -1),
    "nn_logsumexp": lambda x: torch.logsumexp(x, -1),
}  # fmt: skip
OTHERS = {
    "nn_layer_norm": lambda x, w, b: F.layer_norm(x, w.shape, w, b),
    "nn_rms_norm": lambda x, w: F.rms_norm(x, w.shape, w, 1e-6),
    "nn_mse_loss": F.mse_loss,
    "nn_cross_entropy": F.cross_entropy,
}
PEERS: dict[str, Any] = {**ELEMENTWISE, **ROWS, **OTHERS}


def inputs_of(name: str) -> tuple[Any, ...]:
    x = matrix(4, 6, grad=True)
    if name == "nn_cross_entropy":
        return x, torch.tensor([0, 5, 2, 2])
    if name == "nn_mse_loss":
        return x, matrix(4, 6, grad=True, seed=1)
    if name in ("nn_layer_norm", "nn_rms_norm"):
        return (x, *(matrix(6, grad=True, seed=s) for s in (1, 2)))[: 3 if "layer" in name else 2]
    return (x,)


def shipped(name: str) -> Any:
    return export.custom_op(getattr(generated, name))


@pytest.mark.parametrize("name", sorted(PEERS))
def test_the_kernels_of_symgrad_are_torch_ops(name: str) -> None:
    op, inputs = shipped(name), inputs_of(name)
    torch.library.opcheck(op.overload, inputs)
    ours, theirs = op(*inputs), PEERS[name](*inputs)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    floats = [one for one in inputs if one.requires_grad]
    cotangent = torch.randn_like(ours)
    found = torch.autograd.grad(ours, floats, cotangent)
    expected = torch.autograd.grad(theirs, floats, cotangent)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)


PROGRAMS: dict[Any, Any] = {
    Weighted: lambda dtype: (matrix(3, 4, dtype=dtype, grad=True), 0.7, 3),
    Rows: lambda dtype: (matrix(3, 4, dtype=dtype, grad=True), torch.tensor([2, 0, 2])),
    Greatest: lambda dtype: (matrix(3, 4, dtype=dtype, grad=True),),
    Cased: lambda dtype: (matrix(3, 4, dtype=dtype, grad=True),),
    Dot: lambda dtype: (
        matrix(3, 4, dtype=dtype, grad=True), matrix(4, 2, dtype=dtype, grad=True, seed=1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("function", PROGRAMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_compiled_functions_are_torch_ops(function: Any, dtype: Any) -> None:
    op = exported(function)
    torch.library.opcheck(op.overload, PROGRAMS[function](dtype))
    torch.library.opcheck(op.overload, tuple(
        one.detach() if isinstance(one, torch.Tensor) else one for one in PROGRAMS[function](dtype)
    ))  # fmt: skip


@pytest.mark.parametrize("function", PROGRAMS)
@pytest.mark.parametrize("kind", ["custom_op", "function"])
def test_gradients_are_those_of_difference_quotients(function: Any, kind: str) -> None:
    ops = compiled(function), compiled(function, "f64")
    call = export.custom_op(*ops) if kind == "custom_op" else export.function(*ops).apply
    inputs = PROGRAMS[function](torch.float64)
    assert torch.autograd.gradcheck(call, inputs)


def test_one_row_has_a_kernel_of_its_own() -> None:
    op = exported(Cased)
    torch.library.opcheck(op.overload, (matrix(1, 4, grad=True),))
    assert torch.equal(op(torch.ones(1, 2)), torch.full((1, 2), 3.0))
    assert torch.autograd.gradcheck(op, matrix(1, 3, dtype=torch.float64, grad=True))


def test_numbers_go_by_position_and_by_name() -> None:
    op, x = exported(Weighted), matrix(3, 4)
    for found in (op(x, 0.5, k=3), op(x, alpha=0.5, k=3), torch.ops.symgrad.weighted(x, 0.5, 3)):
        torch.testing.assert_close(found[0], torch.softmax(0.5 * x, -1))
        torch.testing.assert_close(found[1], 3 * x.sum(0))
    torch.testing.assert_close(op(x)[0], torch.softmax(1.5 * x, -1))


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_graph_without_breaks(dynamic: bool) -> None:
    """AOT autograd traces forward and backward at symbolic sizes, with what is kept."""
    weighted, norm, dot = exported(Weighted), shipped("nn_layer_norm"), exported(Dot)

    def loss(x: Any, w: Any, b: Any) -> Any:
        y, total = weighted(norm(x, w, b), 0.5, k=3)
        return (dot(y, w[:, None]) ** 2).sum() + total.sum()

    graph = torch.compile(loss, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for rows in (3, 5):
        inputs = [matrix(rows, 4, grad=True), matrix(4, grad=True), matrix(4, grad=True, seed=2)]
        found, expected = graph(*inputs), loss(*inputs)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(
            torch.autograd.grad(found, inputs), torch.autograd.grad(expected, inputs)
        )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inductor_takes_it() -> None:
    op = shipped("nn_gelu")
    graph = torch.compile(lambda x: op(op(x) @ x.t()), fullgraph=True)  # no C++ is compiled
    x = matrix(7, 9, grad=True)
    (found,) = torch.autograd.grad(graph(x).sum(), x)
    (expected,) = torch.autograd.grad(F.gelu(F.gelu(x) @ x.t()).sum(), x)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_the_function_is_traced_too() -> None:
    apply = export.function(compiled(Weighted), compiled(Weighted, "f64")).apply
    graph = torch.compile(lambda x: apply(x, 0.5, 2)[0].sin().sum(), fullgraph=True,
                          backend="aot_eager")  # fmt: skip
    x = matrix(3, 4, grad=True)
    (found,) = torch.autograd.grad(graph(x), x)
    (expected,) = torch.autograd.grad(torch.softmax(0.5 * x, -1).sin().sum(), x)
    torch.testing.assert_close(found, expected)


# -- torch.func


def test_vmap_and_grad_compose() -> None:
    op = exported(Weighted)
    x = matrix(5, 3, 4)

    def loss(x: Any, call: Any) -> Any:
        y, total = call(x)
        return (y.sin() * x).sum() + (total**2).sum()

    def theirs(x: Any) -> Any:
        return torch.softmax(1.5 * x, -1), 2 * x.sum(0)

    for transform in (torch.func.vmap, lambda f: torch.func.vmap(torch.func.grad(f))):
        found = transform(lambda x: loss(x, op))(x)
        torch.testing.assert_close(found, transform(lambda x: loss(x, theirs))(x))
    found = torch.func.grad(lambda x: torch.func.vmap(lambda x: loss(x, op))(x).sum())(x)
    expected = torch.func.grad(lambda x: torch.func.vmap(lambda x: loss(x, theirs))(x).sum())(x)
    torch.testing.assert_close(found, expected)
    apply = export.function(compiled(Weighted), compiled(Weighted, "f64")).apply
    found = torch.func.vmap(torch.func.grad(lambda x: loss(x, apply)))(x)
    torch.testing.assert_close(
        found, torch.func.vmap(torch.func.grad(lambda x: loss(x, theirs)))(x)
    )


def test_vmap_of_some_inputs_and_along_any_axis() -> None:
    op = exported(Dot)
    x, w = matrix(5, 3, 4), matrix(4, 2, seed=1)
    per_example = torch.func.vmap(op, in_dims=(0, None))(x, w)
    torch.testing.assert_close(per_example, x @ w)
    torch.testing.assert_close(torch.func.vmap(op, in_dims=(2, None))(x.permute(1, 2, 0), w), x @ w)
    grads = torch.func.vmap(
        torch.func.grad(lambda x, w: (op(x, w) ** 2).sum(), argnums=1), in_dims=(0, None)
    )(x, w)
    torch.testing.assert_close(grads, 2 * x.mT @ (x @ w))
    twice = torch.func.vmap(torch.func.vmap(op, in_dims=(0, None)), in_dims=(0, None))
    torch.testing.assert_close(twice(x[None].expand(2, 5, 3, 4), w)[1], x @ w)
    assert torch.func.vmap(op, in_dims=(0, None))(x[:0], w).shape == (0, 3, 2)


def test_jacobian() -> None:
    op, x = shipped("nn_silu"), matrix(4)
    torch.testing.assert_close(torch.func.jacrev(op)(x), torch.func.jacrev(F.silu)(x))


# -- memory


def by_arrays(op: Any) -> Any:
    """The op, which makes an array of each tensor, as it does where addresses are not enough."""
    op.kernels.direct.able = False
    return op


def test_memory_is_shared_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """As arrays, too, kernels get the memory of the tensors, and tensors what they wrote."""
    op = by_arrays(export.custom_op(compiled(Dot), name="symgrad_test::shared"))
    runner = op.table.runners[0]
    seen: list[int] = []
    forward, backward = runner.forward, runner.backward

    def spy_forward(*arrays: Any) -> Any:
        found = forward(*arrays)
        seen.extend(one.ctypes.data for one in (*arrays, found[0]))
        return found

    def spy_backward(residuals: Any, g: Any, **how: Any) -> Any:
        found = backward(residuals, g, **how)
        seen.extend(one.ctypes.data for one in (*residuals[:2], g, *found))
        return found

    monkeypatch.setattr(runner, "forward", spy_forward)
    monkeypatch.setattr(runner, "backward", spy_backward)
    x, w, g = matrix(3, 4, grad=True), matrix(4, 2, grad=True), matrix(3, 2)
    y = op.overload(x, w)
    grads = torch.autograd.grad(y, (x, w), g)
    assert seen == [one.data_ptr() for one in (x, w, y, x, w, g, *grads)]


@pytest.mark.parametrize("call", ["plain", "dispatcher"])
def test_kernels_get_the_addresses_of_tensors(call: str) -> None:
    op = export.custom_op(compiled(Dot), name=f"symgrad_test::direct_{call}")
    called = op if call == "plain" else op.overload
    seen: list[int] = []

    def spied(ready: Any) -> None:
        call, ffi = ready.call, op.table.runners[0].caller.library.ffi

        def spy(*arguments: Any) -> Any:
            seen.extend(int(ffi.cast("uintptr_t", one)) for one in arguments[:-2]
                        if not isinstance(one, int))  # fmt: skip
            return call(*arguments)

        ready.call = spy

    x, w, g = matrix(3, 4, grad=True), matrix(4, 2, grad=True), matrix(3, 2)
    torch.autograd.grad(called(x, w), (x, w), g)
    (plan,) = op.kernels.direct.plans.values()
    (backward,) = op.kernels.direct.backwards.values()
    spied(plan.forward)
    spied(backward)
    y = called(x, w)
    grads = torch.autograd.grad(y, (x, w), g)
    assert seen[:3] == [one.data_ptr() for one in (x, w, y)]
    assert seen[-2:] == [one.data_ptr() for one in grads]
    assert set(seen[3:-2]) == {one.data_ptr() for one in (x, w, g)}


def test_addresses_and_arrays_agree() -> None:
    """Whatever the layout, the shape, and the cotangent, in turn and again."""
    wide = matrix(8, 12)
    views = [wide[:3, :4], wide[::2, ::3], wide.t()[4:8, :4], wide[0, :1].expand(3, 4),
             torch.as_strided(wide, (3, 4), (1, 1)), wide[2:2, 1:5], wide[3:5, 2:6]]  # fmt: skip
    for function, rest in ((Dot, (matrix(4, 2),)), (Weighted, (0.5, 3)), (Greatest, ())):
        op = exported(function)
        arrays = by_arrays(
            export.custom_op(
                compiled(function), compiled(function, "f64"), name=f"{op.name}_by_arrays"
            )
        )
        for view in (*views, *views):
            x = view.detach().requires_grad_()
            outputs = [call(x, *rest) for call in (op, op.overload, arrays)]
            one, *others = (o if isinstance(o, tuple) else (o,) for o in outputs)
            cotangents = [torch.ones(()).expand(one[0].shape), matrix(*one[0].shape),
                          matrix(*one[0].shape[::-1]).t()]  # fmt: skip
            for other in others:
                torch.testing.assert_close(one, other, rtol=0, atol=0)
                for g in cotangents:
                    found = [
                        torch.autograd.grad(y[0], x, g, retain_graph=True) for y in (one, other)
                    ]
                    torch.testing.assert_close(*found, rtol=0, atol=0)


class Seen(torch.Tensor):  # type: ignore[name-defined]
    """A subclass that counts what is done with it."""

    calls = 0

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), named: Any = None
    ) -> Any:
        Seen.calls += 1
        return super().__torch_function__(function, types, args, named or {})


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_who_watches_calls_sees_them() -> None:
    """Subclasses, modes and traces get each call, though a plain one goes around them."""
    from torch.utils._python_dispatch import TorchDispatchMode

    op, x = shipped("nn_gelu"), matrix(3, 4, grad=True)
    expected = op(x)
    assert op(x.detach().as_subclass(Seen)).shape == (3, 4)
    assert Seen.calls > 0
    seen: list[Any] = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (),
                               kwargs: Any = None) -> Any:  # fmt: skip
            seen.append(function)
            return function(*args, **(kwargs or {}))

    with Watch():
        torch.testing.assert_close(op(x), expected)
    assert any("nn_gelu" in str(one) for one in seen)
    graph = torch.fx.experimental.proxy_tensor.make_fx(op)(x.detach())
    torch.testing.assert_close(graph(2 * x), op(2 * x))
    traced = torch.jit.trace(lambda x: op(x), x.detach(), check_trace=False)
    torch.testing.assert_close(traced(2 * x), op(2 * x))


def test_a_tensor_without_its_memory_is_no_crash() -> None:
    op, x = shipped("nn_relu"), matrix(64, 64)
    op(x)
    x.untyped_storage().resize_(0)
    with pytest.raises(KernelArgumentError, match="memory was freed"):
        op(x)


def test_what_hooks_bring_back_is_looked_at() -> None:
    """A saved tensor of another shape is an error, not a read beyond its end."""
    op, x = shipped("nn_gelu"), matrix(3, 4, grad=True)
    op(x).sum().backward()
    hooks: list[Any] = [lambda t: t[:1], lambda t: t.double(), lambda t: t.as_subclass(Seen)]
    for unpack in hooks:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
            y = op(x)
        if unpack(x.detach()).shape == x.shape and unpack(x.detach()).dtype == x.dtype:
            assert torch.autograd.grad(y.sum(), x)[0].shape == (3, 4)
            continue
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            torch.autograd.grad(y.sum(), x)


def test_strides_of_every_kind() -> None:
    op, wide = exported(Dot), matrix(8, 12)
    w = matrix(4, 2)
    for x in (wide[:3, :4], wide[::2, ::3], wide.t()[4:8, :4], wide[0, :1].expand(3, 4),
              torch.as_strided(wide, (3, 4), (1, 1)), wide[2:2, 1:5], wide[:1, 5:9]):  # fmt: skip
        leaf = x.detach().requires_grad_()
        y = op(leaf, w)
        torch.testing.assert_close(y, leaf @ w)
        for cotangent in (torch.ones_like(y), torch.ones(()).expand(y.shape),
                          torch.ones(y.shape[1], y.shape[0]).t()):  # fmt: skip
            (found,) = torch.autograd.grad(y, leaf, cotangent, retain_graph=True)
            torch.testing.assert_close(found, cotangent @ w.t())
    torch.library.opcheck(op.overload, (wide.t()[4:8, :4], w))


def test_sizes_of_nothing_and_of_one_number() -> None:
    gelu, loss = shipped("nn_gelu"), shipped("nn_mse_loss")
    for shape in ((), (0,), (3, 0, 2), (1,) * 8):
        x = torch.ones(shape, requires_grad=True)
        y = gelu(x)
        assert y.shape == shape
        y.sum().backward()
        torch.testing.assert_close(x.grad, torch.full(shape, 1.0833155))
        torch.library.opcheck(gelu.overload, (x,))
    x = torch.tensor(2.0, requires_grad=True)
    (g,) = torch.autograd.grad(loss(x, torch.tensor(0.5)), x)
    assert g.item() == 3.0


def test_a_negative_bit_is_resolved() -> None:
    x = torch.complex(matrix(3, 4), matrix(3, 4, seed=1)).conj().imag
    assert x.is_neg()
    torch.testing.assert_close(shipped("nn_relu")(x), torch.relu(x))


# -- autograd


def test_only_the_gradients_that_are_needed_are_computed() -> None:
    op = by_arrays(export.custom_op(compiled(Dot), name="symgrad_test::masks"))
    asked: list[Any] = []
    backward = op.table.runners[0].backward

    def spy(*args: Any, needs_input_grad: Any) -> Any:
        asked.append(needs_input_grad)
        return backward(*args, needs_input_grad=needs_input_grad)

    op.table.runners[0].backward = spy
    for x_grad, w_grad in ((True, False), (False, True), (True, True)):
        x, w = matrix(3, 4, grad=x_grad), matrix(4, 2, grad=w_grad)
        op.overload(x, w).sum().backward()
        assert (x.grad is not None, w.grad is not None) == (x_grad, w_grad)
    assert asked == [(True, False), (False, True), (True, True)]
    x, w = matrix(3, 4, grad=True), matrix(4, 2, grad=True)
    torch.autograd.grad(op.overload(x, w).sum(), w)
    assert asked[3:] == [(True, True)]  # torch says what requires a gradient, not what is asked for


def test_an_output_without_a_gradient() -> None:
    op, x = exported(Greatest), matrix(3, 4, grad=True)
    y, place = op(x)
    assert (y.requires_grad, place.requires_grad, place.dtype) == (True, False, torch.int64)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())


def test_an_output_that_is_not_used_has_no_cotangent() -> None:
    op, x = exported(Weighted), matrix(3, 4, grad=True)
    (found,) = torch.autograd.grad(op(x, 0.5, 3)[1].sum(), x)
    assert torch.equal(found, torch.full((3, 4), 3.0))
    (found,) = torch.autograd.grad(op(x, 0.5, 3)[0].sum(), x, allow_unused=True)
    torch.testing.assert_close(found, torch.zeros(3, 4), atol=1e-6, rtol=0)


def test_a_second_derivative_is_an_error() -> None:
    x = matrix(3, 4, grad=True)
    (g,) = torch.autograd.grad(shipped("nn_gelu")(x).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="nn_gelu_backward is not implemented"):
        g.sum().backward()
    with pytest.raises(NotImplementedError, match="differentiable once"):
        torch.func.grad(torch.func.grad(shipped("nn_gelu")))(torch.tensor(1.0))


def test_a_second_derivative_by_the_op_of_the_gradients() -> None:
    """The derivative of the gradients, also of what forward kept, to every cotangent."""
    for function, make in PROGRAMS.items():
        op64 = compiled(function, "f64")
        name = f"symgrad_test::twice_{op64.name}"
        op = export.custom_op(op64, name=name, gradients=gradients_of(op64))
        inputs = make(torch.float64)
        for call in (op, op.overload, export.function(op64, name=name).apply):

            def floating(*args: Any, call: Any = call) -> Any:
                found = call(*args)
                many = found if isinstance(found, tuple) else (found,)
                return tuple(one for one in many if one.is_floating_point())

            assert torch.autograd.gradgradcheck(floating, inputs)
        torch.library.opcheck(op.overload, inputs)
    dot = export.custom_op(compiled(Dot, "f64"), name="symgrad_test::twice_dot")
    x = matrix(2, 2, dtype=torch.float64)
    hessians = [
        torch.func.jacrev(torch.func.grad(lambda x, call=call: call(x, x.t()).sin().sum()))(x)
        for call in (dot, torch.matmul)
    ]  # fmt: skip
    torch.testing.assert_close(*hessians)


class Scaled(FUNCTION):
    """An integer output, a number, a flag, and an attribute of ctx."""

    @staticmethod
    def forward(ctx: Any, x: Any, alpha: float = 1.5, flag: bool = True) -> Any:
        largest, place = x.max(-1)
        ctx.save_for_backward(x, place)
        ctx.alpha = alpha
        ctx.mark_non_differentiable(place)
        return torch.sin(x) * alpha, largest, place

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any, ignored: Any) -> Any:
        x, place = ctx.saved_tensors
        rows = torch.zeros_like(x).scatter_(-1, place.unsqueeze(-1), h.unsqueeze(-1))
        return g * torch.cos(x) * ctx.alpha + rows, None, None


class Shared(FUNCTION):
    """A setup_context, an input of fewer axes, and a name that cotangents have elsewhere."""

    @staticmethod
    def forward(x: Any, grad_0: Any) -> Any:
        return torch.exp(x * grad_0)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        x, w, y = ctx.saved_tensors
        own, other = (g * y * w, g * y * x) if ctx.needs_input_grad[1] else (g * y * w, None)
        return own, None if other is None else other.sum(0)


class Means(FUNCTION):
    """What torch's functions are called for is not the same for any number of axes."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return torch.tanh(x).mean(-1)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g.unsqueeze(-1).expand_as(x) * (1 - torch.tanh(x) ** 2) / x.shape[-1]


@pytest.mark.parametrize(
    ("function", "specs", "shapes"),
    [(Scaled, ["f64[n m]"], [(2, 3)]), (Shared, ["f64[n m]", "f64[m]"], [(2, 3), (3,)]),
     (Means, ["f64[*s m]"], [(2, 2, 3)])],
)  # fmt: skip
def test_a_second_derivative_of_an_unmodified_class(
    function: Any, specs: list[str], shapes: list[tuple[int, ...]]
) -> None:
    inputs = [matrix(*one, dtype=torch.float64, grad=True) for one in shapes]
    op = sg.compile(function, *specs)
    name = f"symgrad_test::twice_{op.name}"
    twice = export.custom_op(op, name=name, gradients=gradients_of(op))

    def floating(*args: Any) -> Any:
        found = twice(*args)
        many = found if isinstance(found, tuple) else (found,)
        return tuple(one for one in many if one.is_floating_point())

    own = function.apply(*inputs)
    torch.testing.assert_close(floating(*inputs)[0], own[0] if function is Scaled else own)
    assert torch.autograd.gradgradcheck(floating, inputs)


def test_gradients_that_cannot_be_differentiated_are_an_error() -> None:
    op = sg.compile(Means, "f64[m *s]")  # where m is the last axis, once in four
    with pytest.raises(KernelArgumentError, match=r"has some of the axes \*s"):
        gradients_of(op)
    once = gradients_of(sg.compile(Means, "f64[n m]"))
    with pytest.raises(KernelArgumentError, match="has no backward whose derivative"):
        gradients_of(once)


def test_the_op_of_other_gradients_is_refused() -> None:
    op = compiled(Dot, "f64")
    with pytest.raises(KernelArgumentError, match="does not compute the gradients"):
        export.custom_op(op, name="symgrad_test::other", gradients=compiled(Greatest, "f64"))
    with pytest.raises(KernelArgumentError, match="nothing says which Function"):
        gradients_of(generated.nn_gelu)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forward_mode_is_an_error() -> None:
    """What has no rule would have tangents of zero, and nobody would be told."""
    op, x = shipped("nn_gelu"), matrix(3)
    wrong: list[Any] = [
        lambda: torch.func.jvp(op, (x,), (x,)),
        lambda: torch.func.jacfwd(op)(x),
        lambda: torch.func.hessian(lambda x: op(x).sum())(x),
        lambda: torch.func.vmap(lambda x: torch.func.jvp(op, (x,), (x,)))(x),
        lambda: torch.func.jvp(torch.func.grad(lambda x: op(x).sum()), (x,), (x,)),
        lambda: torch.func.jvp(export.function(generated.nn_gelu).apply, (x,), (x,)),
    ]
    for transform in wrong:
        with pytest.raises((NotImplementedError, RuntimeError), match=r"forward AD|jvp"):
            transform()
    _, tangent = torch.func.jvp(lambda t: op(x) * t, (x,), (x,))
    torch.testing.assert_close(tangent, op(x) * x)
    with torch.autograd.forward_ad.dual_level(), pytest.raises(NotImplementedError):
        op(torch.autograd.forward_ad.make_dual(x, x))


def test_writing_into_what_is_kept_is_torchs_error() -> None:
    x = matrix(3, 4, grad=True)
    z = x * 1
    y = shipped("nn_gelu")(z)
    z.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_modes_hooks_and_views() -> None:
    op, x = shipped("nn_gelu"), matrix(3, 4, grad=True)
    with torch.no_grad():
        assert not op(x).requires_grad
    with torch.inference_mode():
        assert op(x).is_inference()
    seen: list[Any] = []
    y = op(x[1:])
    y.register_hook(seen.append)
    x.register_hook(seen.append)
    y.sum().backward()
    assert len(seen) == 2
    assert torch.equal(x.grad[0], torch.zeros(4))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = op(x)
    assert torch.autograd.grad(y.sum(), x)[0].shape == (3, 4)
    found = torch.utils.checkpoint.checkpoint(op, x, use_reentrant=False)
    assert torch.autograd.grad(found.sum(), x)[0].shape == (3, 4)


def test_autocast_casts_to_what_the_kernels_take() -> None:
    op, x = shipped("nn_gelu"), matrix(3, 4, grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        y = op(x @ torch.eye(4))
    assert y.dtype == torch.float32
    y.sum().backward()
    assert x.grad.dtype == torch.float32


# -- errors


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda x: x.double(), "float64, float32 is expected"),
        (lambda x: x.bfloat16(), "bfloat16, float32 is expected"),
        (lambda x: x.to_sparse(), "layout torch.sparse_coo"),
        (lambda x: None, "input x is None"),
    ],
)
def test_what_no_kernel_takes_is_said(change: Any, says: str) -> None:
    op = export.custom_op(compiled(Weighted), name="symgrad_test::refuses")
    with pytest.raises(KernelTypeError, match=says):
        op(change(matrix(3, 4)))
    with pytest.raises(KernelTypeError, match=says):
        op(change(matrix(3, 4, grad=True)))


def test_shapes_numbers_and_indices_that_fit_nothing() -> None:
    with pytest.raises(KernelArgumentError, match="disagree on k"):
        exported(Dot)(matrix(3, 4), matrix(3, 4))
    with pytest.raises(KernelArgumentError, match=r"2 axes|1 axis"):
        exported(Dot)(matrix(3), matrix(3, 4))
    with pytest.raises(KernelArgumentError, match="index is out of range"):
        exported(Rows)(matrix(3, 4), torch.tensor([7]))
    with pytest.raises(RuntimeError, match="alpha"):
        exported(Weighted)(matrix(3, 4), "two")
    with pytest.raises(KernelTypeError, match=r"dtypes \(float32, int64\)"):
        export.custom_op(compiled(Dot), compiled(Dot, "f64"))(matrix(3, 4), torch.ones(4, 2).long())


def test_errors_are_those_of_the_call_also_under_compile() -> None:
    graph = torch.compile(exported(Dot), backend="aot_eager", fullgraph=True)
    with pytest.raises(Exception, match="disagree on k"):
        graph(matrix(3, 4), matrix(3, 4))


# -- names, copies, processes


def test_the_same_op_under_the_same_name_is_one() -> None:
    assert shipped("nn_gelu") is shipped("nn_gelu")
    assert export.custom_op(generated.nn_gelu, name="nn_gelu") is shipped("nn_gelu")
    with pytest.raises(KernelArgumentError, match="is another op already"):
        export.custom_op(generated.nn_relu, name="symgrad::nn_gelu")
    with pytest.raises(KernelArgumentError, match="torch has an op aten::gelu already"):
        export.custom_op(generated.nn_gelu, name="aten::gelu")
    with pytest.raises(KernelArgumentError, match="cannot be the name"):
        export.custom_op(generated.nn_relu, name="a::b::c")
    with pytest.raises(KernelTypeError, match="no compiled op"):
        export.custom_op(F.relu)
    with pytest.raises(KernelArgumentError, match="more than dtypes"):
        export.custom_op(compiled(Dot), compiled(Weighted))


def test_copies_and_pickles() -> None:
    class Net(torch.nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.act = shipped("nn_gelu")
            self.first = torch.nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            return self.act(self.first(x))

    net, x = Net(), matrix(3, 4)
    twin = copy.deepcopy(net)
    assert torch.equal(net(x), twin(x))
    assert pickle.loads(pickle.dumps(shipped("nn_gelu"))) is shipped("nn_gelu")
    with pytest.raises(KernelTypeError, match="cannot be pickled"):
        pickle.dumps(exported(Dot))


def test_threads() -> None:
    op = shipped("nn_layer_norm")
    failed: list[Exception] = []

    def work(seed: int) -> None:
        try:
            for _ in range(20):
                x, w, b = (matrix(*s, grad=True, seed=seed) for s in ((9, 5), (5,), (5,)))
                (ours,) = torch.autograd.grad(op(x, w, b).square().sum(), x)
                (theirs,) = torch.autograd.grad(
                    F.layer_norm(x, (5,), w, b).square().sum(), x
                )  # fmt: skip
                torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failed == []


FORKS = """
import os, numpy as np, torch
import symgrad as sg
from symgrad import generated
from symgrad.export import torch as export
op, x = export.custom_op(generated.nn_gelu), torch.ones(300, 300)
expected = op(x).numpy()
child = os.fork()
if child == 0:  # torch's own kernels may hang here: what OpenMP had started is gone
    os._exit(0 if np.array_equal(op(x).numpy(), expected) else 1)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.slow
def test_a_forked_process_calls_it() -> None:
    done = tree.run(sys.executable, "-c", FORKS, cwd=tree.ROOT)
    assert done.returncode == 0, done.stdout


def test_an_op_evaluated_with_numpy() -> None:
    """Where no C compiler works, sg.compile gives an op that is exported as any other."""
    plain = NumpyOp(plan(trace(Weighted, "n m")))
    op = export.custom_op(plain, name="symgrad_test::with_numpy")
    x = matrix(3, 4, grad=True)
    torch.library.opcheck(op.overload, (x,))
    y, total = op(x)
    torch.testing.assert_close(y, torch.softmax(1.5 * x, -1))
    (found,) = torch.autograd.grad(y.sin().sum() + total.sum(), x)
    (expected,) = torch.autograd.grad(
        torch.softmax(1.5 * x, -1).sin().sum() + (2 * x).sum(), x
    )  # fmt: skip
    torch.testing.assert_close(found, expected)
