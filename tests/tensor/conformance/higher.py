"""Gradients of gradients, ``autograd.grad``, ``autograd.functional``, hooks, gradcheck."""

from typing import Any


def gradient_of_gradient(torch: Any) -> Any:
    x = torch.tensor(2.0, requires_grad=True)
    y = x**3
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x, create_graph=True)
    (third,) = torch.autograd.grad(second, x)
    return y, first, second, third


def create_graph_accumulates(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x**3).sum()
    y.backward(create_graph=True)
    first = x.grad
    x.grad = None
    first.sum().backward()
    return first, x.grad


def penalty_on_gradient(torch: Any) -> Any:
    w = torch.tensor([[0.5, -1.0], [2.0, 1.0]], requires_grad=True)
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    loss = ((x @ w).tanh() ** 2).sum()
    (g,) = torch.autograd.grad(loss, x, create_graph=True)
    (loss + (g.norm() - 1) ** 2).backward()
    return w.grad, x.grad


def second_order_of_functions(torch: Any) -> Any:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            return 3 * x**2 * g

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (first,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), x)
    return first, second, third


def second_order_through_saved_output(torch: Any) -> Any:
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            (y,) = ctx.saved_tensors
            return y * g

    x = torch.tensor([0.5, 1.0], requires_grad=True)
    (first,) = torch.autograd.grad(Exp.apply(x).sum(), x, create_graph=True)
    first.sum().backward()
    return first, x.grad


def second_order_misses_saved_intermediate(torch: Any) -> Any:
    class Sinh(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            expx, expnegx = torch.exp(x), torch.exp(-x)
            ctx.save_for_backward(expx, expnegx)
            return (expx - expnegx) / 2

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            expx, expnegx = ctx.saved_tensors
            return g * (expx + expnegx) / 2

    x = torch.tensor([0.5, 1.0], requires_grad=True)
    (first,) = torch.autograd.grad(Sinh.apply(x).sum(), x, create_graph=True)
    return first.requires_grad, first


def second_order_with_returned_intermediate(torch: Any) -> Any:
    class Sinh(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            expx, expnegx = torch.exp(x), torch.exp(-x)
            ctx.save_for_backward(expx, expnegx)
            return (expx - expnegx) / 2, expx, expnegx

        @staticmethod
        def backward(ctx, g, g_exp, g_neg):  # type: ignore[no-untyped-def]
            expx, expnegx = ctx.saved_tensors
            return g * (expx + expnegx) / 2 + g_exp * expx - g_neg * expnegx

    x = torch.tensor([0.5, 1.0], requires_grad=True)
    (first,) = torch.autograd.grad(Sinh.apply(x)[0].sum(), x, create_graph=True)
    first.sum().backward()
    return first, x.grad


def grad_of_intermediate(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    z = (y * y).sum()
    return torch.autograd.grad(z, [y, x])


def grad_leaves_grad_alone(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.autograd.grad((x * x).sum(), x)
    return x.grad is None


def grad_allows_unused(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    y = torch.tensor([1.0], requires_grad=True)
    found = torch.autograd.grad((x * 2).sum(), [x, y], allow_unused=True)
    return found[0], found[1] is None


def grad_materializes(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    y = torch.tensor([1.0], requires_grad=True)
    return torch.autograd.grad((x * 2).sum(), [x, y], materialize_grads=True)


def grad_batched(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x**2
    return torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)


def gradient_with_history(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    v = torch.tensor([0.5, 3.0], requires_grad=True)
    (g,) = torch.autograd.grad(x**2, x, v, create_graph=True)
    return torch.autograd.grad(g.sum(), [v, x])


def hook_replaces_gradient(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    handle = y.register_hook(lambda g: g * 10)
    y.sum().backward()
    first = x.grad.clone()
    handle.remove()
    (x * 2).sum().backward()
    return first, x.grad


def hook_on_leaf(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.register_hook(lambda g: g + 1)
    x.register_hook(lambda g: print(g.tolist()))
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    return x.grad


def hook_removed(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    handle = x.register_hook(lambda g: g * 100)
    handle.remove()
    (x * 2).sum().backward()
    return x.grad


def hook_sees_sum_of_fan_out(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: print(g.tolist()))
    (y * 3 + y * 4).sum().backward()
    return x.grad


def hook_before_retained_gradient(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    return y.grad, x.grad


def hook_returns_nonsense(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.register_hook(lambda g: "no tensor")
    (x * 2).sum().backward()


def post_accumulate_hook(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda p: print(p.grad.tolist()))
    (x * 2).sum().backward()
    (x * 2).sum().backward()


def node_hook(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 2,))
    y.sum().backward()
    return x.grad


def node_prehook(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 3,))
    y.sum().backward()
    return x.grad


def names_of_nodes(torch: Any) -> Any:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    results = [
        x + 1, x - 1, x * 2, x / 2, x**2, -x, x.exp(), x.log(), x.sum(), x.mean(), x.relu(),
        x.tanh(), x.sigmoid(), x @ x, x.sqrt(), x.abs(), x.clone(), x.sin(),
    ]  # fmt: skip
    return [result.grad_fn.name() for result in results]


def next_functions(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    y = x * 2
    z = y + x
    (first, _), (second, _) = z.grad_fn.next_functions
    return first.name(), second.name()[-14:], first is y.grad_fn, second.variable is x


def jacobian_of_vector(torch: Any) -> Any:
    def f(x: Any) -> Any:
        return x.exp() * x.sum()

    return torch.autograd.functional.jacobian(f, torch.tensor([0.5, 1.0, -1.0]))


def jacobian_of_two(torch: Any) -> Any:
    def f(x: Any, y: Any) -> Any:
        return x * y.sum(), y**2

    given = (torch.tensor([0.5, 1.0]), torch.tensor([2.0, 3.0, 4.0]))
    return torch.autograd.functional.jacobian(f, given)


def hessian_of_cubes(torch: Any) -> Any:
    return torch.autograd.functional.hessian(
        lambda x: (x**3).sum() + x[0] * x[1], torch.tensor([0.5, 1.0, -1.0])
    )


def hessian_of_two(torch: Any) -> Any:
    given = (torch.tensor([0.5, 1.0]), torch.tensor([2.0, 3.0]))
    return torch.autograd.functional.hessian(lambda x, y: (x**2 * y).sum(), given)


def hessian_vector_product(torch: Any) -> Any:
    x, v = torch.tensor([0.5, 1.0]), torch.tensor([2.0, -1.0])
    return torch.autograd.functional.hvp(lambda x: (x**3).sum() * x[0], x, v)


def functional_vjp(torch: Any) -> Any:
    x, v = torch.tensor([0.5, 1.0]), torch.tensor([2.0, -1.0])
    return torch.autograd.functional.vjp(lambda x: x.exp() * x[0], x, v)


def functional_jvp(torch: Any) -> Any:
    x, v = torch.tensor([0.5, 1.0]), torch.tensor([2.0, -1.0])
    return torch.autograd.functional.jvp(lambda x: x.exp() * x[0], x, v)


def gradcheck_passes(torch: Any) -> Any:
    x = torch.tensor([[0.5, 1.0], [-1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    f = lambda x: (x.exp() @ x).tanh()  # noqa: E731
    return [
        torch.autograd.gradcheck(f, (x,)), torch.autograd.gradgradcheck(f, (x,)),
        torch.autograd.gradcheck(f, x, fast_mode=True, eps=1e-6, atol=1e-4),
    ]  # fmt: skip


def _doubled(torch: Any) -> Any:
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            return x * g

    return Wrong


def gradcheck_raises(torch: Any) -> Any:
    x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(_doubled(torch).apply, (x,))


def gradcheck_says_false(torch: Any) -> Any:
    x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    return torch.autograd.gradcheck(_doubled(torch).apply, (x,), raise_exception=False)


def gradcheck_fast_says_false(torch: Any) -> Any:
    x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    return torch.autograd.gradcheck(
        _doubled(torch).apply, (x,), raise_exception=False, fast_mode=True
    )


def gradcheck_needs_gradients(torch: Any) -> Any:
    torch.autograd.gradcheck(lambda x: x * 2, (torch.ones(2, dtype=torch.float64),))


def gradcheck_warns_of_single_precision(torch: Any) -> Any:
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    return torch.autograd.gradcheck(lambda x: x * 2, (x,), eps=1e-2, atol=1e-2)


def gradgradcheck_finds_missing_terms(torch: Any) -> Any:
    class Sinh(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            e = torch.exp(x)
            ctx.save_for_backward(e)
            return (e - 1 / e) / 2

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            (e,) = ctx.saved_tensors
            return g * (e + 1 / e) / 2

    x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    return torch.autograd.gradgradcheck(Sinh.apply, (x,), raise_exception=False)


def deep_chain(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    y = x
    for _ in range(20000):
        y = y * 1.0001
    y.sum().backward()
    return x.grad


def wide_fan_out(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    total = x.sum()
    for i in range(200):
        total = total + (x * i).sum()
    total.backward()
    return x.grad


def leaves_do_not_share_a_gradient(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = torch.ones(2, requires_grad=True)
    (x + y).sum().backward()
    x.grad.zero_()
    return x.grad, y.grad


def recorded_leaves_do_not_share_a_gradient(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = torch.ones(2, requires_grad=True)
    ((x + y) ** 2).sum().backward(create_graph=True)
    with torch.no_grad():
        x.grad.zero_()
    return x.grad, y.grad


def given_gradient_is_not_kept(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    v = torch.tensor([1.0, 2.0])
    x.backward(v)
    x.backward(v)
    return x.grad, v


def backward_inside_backward(torch: Any) -> Any:
    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                inner = x.detach().requires_grad_()
                inner.sin().sum().backward()
            return g * inner.grad

    x = torch.tensor([0.5, 1.0], requires_grad=True)
    Outer.apply(x).sum().backward()
    return x.grad, x.grad.requires_grad


def recompute_in_backward(torch: Any) -> Any:
    class Checkpoint(torch.autograd.Function):
        @staticmethod
        def forward(ctx, run, x, w):  # type: ignore[no-untyped-def]
            ctx.run = run
            ctx.save_for_backward(x, w)
            return run(x, w)

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            x, w = [t.detach().requires_grad_() for t in ctx.saved_tensors]
            with torch.enable_grad():
                out = ctx.run(x, w)
            torch.autograd.backward(out, g)
            return None, x.grad, w.grad

    x = torch.tensor([[0.5, 1.0]], requires_grad=True)
    w = torch.tensor([[1.0, 2.0], [3.0, -1.0]], requires_grad=True)
    Checkpoint.apply(lambda x, w: (x @ w).tanh(), x, w).sum().backward()
    return x.grad, w.grad


def gradient_reversal_in_a_network(torch: Any) -> Any:
    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, alpha):  # type: ignore[no-untyped-def]
            ctx.alpha = alpha
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            return g.neg() * ctx.alpha, None

    w = torch.tensor([1.0, 2.0], requires_grad=True)
    features = (w * 3).tanh()
    (features.sum() + Reverse.apply(features, 0.5).sum()).backward()
    return w.grad


def second_order_with_needs_input_grad(torch: Any) -> Any:
    class Mul(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x, y)
            return x * x * y

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            x, y = ctx.saved_tensors
            gx = 2 * x * y * g if ctx.needs_input_grad[0] else None
            gy = x * x * g if ctx.needs_input_grad[1] else None
            return gx, gy

    x = torch.tensor([2.0], requires_grad=True)
    y = torch.tensor([3.0], requires_grad=True)
    gx, gy = torch.autograd.grad(Mul.apply(x, y).sum(), [x, y], create_graph=True)
    return torch.autograd.grad(gx.sum(), [x, y], retain_graph=True), torch.autograd.grad(
        gy.sum(), [x]
    )


def materialized_none_in_second_order(torch: Any) -> Any:
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = torch.tensor([1.0, 4.0], requires_grad=True)
    (g,) = torch.autograd.grad((x * y).sum(), x, create_graph=True)
    return torch.autograd.grad(g.sum(), [x, y], allow_unused=True)


def no_grad_inside_a_graph(torch: Any) -> Any:
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    with torch.no_grad():
        scale = x.norm()
    (x / scale).sum().backward()
    return x.grad


def retained_then_freed(torch: Any) -> Any:
    x = torch.tensor([2.0], requires_grad=True)
    y = (x**3).sum()
    y.backward(retain_graph=True)
    y.backward()
    y.backward()


def hook_during_create_graph(torch: Any) -> Any:
    x = torch.tensor([2.0], requires_grad=True)
    y = x * x
    y.register_hook(lambda g: g * g)
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return g, h


def _hooked(torch: Any, run: Any) -> Any:
    log: list[Any] = []
    x = torch.tensor([2.0, 1.0], requires_grad=True)
    y = x * 3
    z = (y * y).sum()
    x.register_hook(lambda g: log.append(["x", g.tolist()]))
    x.register_post_accumulate_grad_hook(lambda t: log.append("accumulated"))
    y.register_hook(lambda g: log.append(["y", g.tolist()]))
    y.retain_grad()
    z.register_hook(lambda g: log.append("z"))
    accumulate = y.grad_fn.next_functions[0][0]
    for name, node in (("of x", accumulate), ("of y", y.grad_fn), ("of z", z.grad_fn)):
        node.register_prehook(lambda grads, name=name: log.append(["before", name, len(grads)]))
        node.register_hook(lambda found, grads, name=name: log.append(["after", name, len(grads)]))
    found = run(x, y, z)
    return log, found, x.grad, y.grad


def hooks_of_a_backward(torch: Any) -> Any:
    runs = [
        lambda x, y, z: z.backward(),
        lambda x, y, z: z.backward(inputs=[x]),
        lambda x, y, z: z.backward(inputs=[y]),
        lambda x, y, z: z.backward(inputs=[x, y]),
    ]
    return [_hooked(torch, run) for run in runs]


def hooks_of_grad(torch: Any) -> Any:
    grad = torch.autograd.grad
    runs = [
        lambda x, y, z: grad(z, x),
        lambda x, y, z: grad(z, y),
        lambda x, y, z: grad(z, z),
        lambda x, y, z: grad(z, (x, y)),
        lambda x, y, z: grad(z, y, create_graph=True),
    ]
    return [_hooked(torch, run) for run in runs]


def types_of_nodes(torch: Any) -> Any:
    x = torch.tensor([2.0, 1.0], requires_grad=True)
    nodes = [one.grad_fn for one in (x.exp(), x * 2, x.sum())]
    nodes.append(nodes[0].next_functions[0][0])
    return [(type(node).__name__, str(node).split(" ")[0], repr(node)[:5]) for node in nodes]
