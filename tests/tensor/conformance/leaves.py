"""Leaves, accumulation, fan-out, what requires a gradient."""

from typing import Any


def leaf_attributes(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    return x.requires_grad, x.is_leaf, x.grad_fn is None, x.grad is None, x.dtype, x.shape


def plain_attributes(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0])
    return x.requires_grad, x.is_leaf, (x + 1).is_leaf, (x + 1).requires_grad


def result_attributes(torch: Any) -> Any:
    x = torch.ones(2, 2, requires_grad=True)
    y = x + 2
    return y.requires_grad, y.is_leaf, y.grad_fn is not None, y


def out_backward(torch: Any) -> Any:
    x = torch.ones(2, 2, requires_grad=True)
    y = x + 2
    z = y * y * 3
    out = z.mean()
    out.backward()
    return out, x.grad


def vector_jacobian_product(torch: Any) -> Any:
    x = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
    y = x * 2
    while y.data.norm() < 1000:
        y = y * 2
    y.backward(torch.tensor([0.1, 1.0, 0.0001]))
    return y, x.grad


def accumulates(torch: Any) -> Any:
    x = torch.tensor(3.0, requires_grad=True)
    (x * x).backward()
    first = x.grad.clone()
    (x * x).backward()
    return first, x.grad


def accumulates_in_the_same_tensor(torch: Any) -> Any:
    x = torch.tensor([3.0], requires_grad=True)
    (x * x).sum().backward()
    kept = x.grad
    (x * x).sum().backward()
    return kept is x.grad, kept


def zeroed_between(torch: Any) -> Any:
    x = torch.tensor(3.0, requires_grad=True)
    (x * x).backward()
    x.grad.zero_()
    (x * 5).backward()
    return x.grad


def set_to_none_between(torch: Any) -> Any:
    x = torch.tensor(3.0, requires_grad=True)
    (x * x).backward()
    x.grad = None
    (x * 5).backward()
    return x.grad


def fan_out(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    (y.sum() + (y * y).sum() + x.sum()).backward()
    return x.grad


def diamond(torch: Any) -> Any:
    a = torch.tensor([2.0, 3.0], requires_grad=True)
    b = torch.tensor([6.0, 4.0], requires_grad=True)
    q = 3 * a**3 - b**2
    q.backward(gradient=torch.tensor([1.0, 1.0]))
    return 9 * a**2 == a.grad, -2 * b == b.grad, a.grad, b.grad


def external_gradient(torch: Any) -> Any:
    a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b = torch.tensor([4.0, 5.0, 6.0], requires_grad=True)
    c = a * b
    c.backward(torch.tensor([1.0, 0.1, 0.01]))
    return c, a.grad, b.grad


def second_variable(torch: Any) -> Any:
    x = torch.tensor(2.0, requires_grad=True)
    y = x * 3
    y.retain_grad()
    z = y * y
    z.backward()
    return x.grad, y.grad, y.retains_grad, x.retains_grad


def grad_of_non_leaf_warns(torch: Any) -> Any:
    x = torch.tensor(2.0, requires_grad=True)
    y = x * 3
    (y * y).backward()
    return y.grad


def one_element_is_scalar_enough(torch: Any) -> Any:
    x = torch.tensor([[2.0]], requires_grad=True)
    (x * 3).backward()
    return x.grad


def frozen_part(torch: Any) -> Any:
    w1 = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=False)
    w2 = torch.tensor([[0.5], [1.5]], requires_grad=True)
    x = torch.tensor([[1.0, -1.0]])
    h = (x @ w1).relu()
    y = h @ w2
    y.sum().backward()
    return h.requires_grad, y.requires_grad, w1.grad is None, w2.grad


def frozen_then_thawed(torch: Any) -> Any:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    v = torch.tensor([3.0, 4.0], requires_grad=True)
    w.requires_grad_(False)
    (w * v).sum().backward()
    first = w.grad is None, v.grad.clone()
    w.requires_grad = True
    (w * v).sum().backward()
    return first, w.grad, v.grad


def detached_branch(torch: Any) -> Any:
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = x * x
    z = (y.detach() * x).sum()
    z.backward()
    return x.grad, y.detach().requires_grad


def detach_shares_memory(torch: Any) -> Any:
    x = torch.tensor([2.0, 3.0])
    d = x.detach()
    d[0] = 9.0
    return x, d


def no_grad_block(torch: Any) -> Any:
    x = torch.tensor([2.0], requires_grad=True)
    with torch.no_grad():
        y = x * 2
        inside = torch.is_grad_enabled()
    return y.requires_grad, inside, torch.is_grad_enabled()


def no_grad_decorator(torch: Any) -> Any:
    @torch.no_grad()
    def double(x: Any) -> Any:
        return x * 2

    @torch.no_grad
    def triple(x: Any) -> Any:
        return x * 3

    x = torch.tensor([2.0], requires_grad=True)
    return double(x).requires_grad, triple(x).requires_grad, double(x)


def enable_inside_no_grad(torch: Any) -> Any:
    x = torch.tensor([2.0], requires_grad=True)
    with torch.no_grad(), torch.enable_grad():
        y = x * 2
    return y.requires_grad


def set_grad_enabled_block(torch: Any) -> Any:
    x = torch.tensor([2.0], requires_grad=True)
    with torch.set_grad_enabled(False):
        y = x * 2
    with torch.set_grad_enabled(True):
        z = x * 2
    return y.requires_grad, z.requires_grad, torch.is_grad_enabled()


def set_grad_enabled_call(torch: Any) -> Any:
    x = torch.tensor([2.0], requires_grad=True)
    torch.set_grad_enabled(False)
    y = x * 2
    torch.set_grad_enabled(True)
    return y.requires_grad, (x * 2).requires_grad


def inference_mode_block(torch: Any) -> Any:
    x = torch.tensor([2.0], requires_grad=True)
    with torch.inference_mode():
        y = x * 2
    return y.requires_grad, y


def update_by_hand(torch: Any) -> Any:
    w = torch.tensor([1.0, -2.0], requires_grad=True)
    for _ in range(3):
        loss = ((w - 3.0) ** 2).sum()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad.zero_()
    return w, loss, w.is_leaf


def update_through_data(torch: Any) -> Any:
    w = torch.tensor([1.0, -2.0], requires_grad=True)
    (w * w).sum().backward()
    w.data -= 0.5 * w.grad
    return w, w.is_leaf, w.requires_grad


def unused_input(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    y = torch.tensor([1.0], requires_grad=True)
    (x * 2).sum().backward()
    return y.grad is None


def integer_and_bool_inputs(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    mask = torch.tensor([True, False, True])
    weights = torch.tensor([1, 2, 3])
    y = (x * mask * weights).sum()
    y.backward()
    return y, x.grad


def comparison_needs_no_gradient(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    return (x > 1).requires_grad, x.argmax().requires_grad, (x > 1)


def piecewise_constant_gives_zeros(torch: Any) -> Any:
    x = torch.tensor([1.2, -2.7], requires_grad=True)
    y = x.floor() + x.sign() + x.round() + x.ceil() + x.trunc()
    y.sum().backward()
    return y, x.grad


def zeros_like_is_cut_off(torch: Any) -> Any:
    x = torch.tensor([1.2, -2.7], requires_grad=True)
    return torch.zeros_like(x).requires_grad, torch.ones_like(x).requires_grad


def requires_grad_at_creation(torch: Any) -> Any:
    return [
        torch.zeros(2, requires_grad=True).requires_grad,
        torch.full((2,), 3.0, requires_grad=True),
        torch.zeros_like(torch.ones(3), requires_grad=True),
        torch.arange(3.0, requires_grad=True),
        torch.eye(2, requires_grad=True),
        torch.linspace(0.0, 1.0, 3, requires_grad=True),
    ]


def deep_copy_of_leaf(torch: Any) -> Any:
    import copy

    x = torch.tensor([1.0], requires_grad=True)
    (x * 2).sum().backward()
    y = copy.deepcopy(x)
    y.data += 1
    return x, y, y.grad, y.requires_grad


def deep_copy_of_result(torch: Any) -> Any:
    import copy

    x = torch.tensor([1.0], requires_grad=True)
    return copy.deepcopy(x * 2)


def assign_grad(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.grad = torch.tensor([5.0, 6.0])
    (x * 2).sum().backward()
    return x.grad


def delete_grad(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * 2).sum().backward()
    del x.grad
    return x.grad is None


def sum_down_of_broadcast(torch: Any) -> Any:
    x = torch.ones(3, 1, requires_grad=True)
    b = torch.ones(4, requires_grad=True)
    s = torch.tensor(2.0, requires_grad=True)
    ((x * b + s) * torch.arange(12.0).reshape(3, 4)).sum().backward()
    return x.grad, b.grad, s.grad


def several_roots(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.autograd.backward([(x * 2).sum(), (x**2).sum()])
    return x.grad


def several_roots_with_gradients(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    given = [torch.tensor([1.0, 0.5]), torch.tensor(3.0)]
    torch.autograd.backward([x * 2, (x**2).sum()], given)
    return x.grad


def root_is_a_leaf(torch: Any) -> Any:
    x = torch.tensor(1.0, requires_grad=True)
    x.backward()
    return x.grad


def backward_into_inputs_only(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    w = torch.tensor([2.0], requires_grad=True)
    (x * w).sum().backward(inputs=[w])
    return x.grad is None, w.grad


def backward_into_one_input(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    w = torch.tensor([2.0], requires_grad=True)
    (x * w).sum().backward(inputs=x)
    return x.grad, w.grad is None


def retained_graph(torch: Any) -> Any:
    x = torch.tensor([2.0], requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


def nothing_saved_nothing_freed(torch: Any) -> Any:
    x = torch.tensor([2.0], requires_grad=True)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    return x.grad
