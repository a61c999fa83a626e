"""Views and writes in place: values, versions, histories."""

from typing import Any


def add_in_place(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.add_(1).mul_(3)
    (y * torch.tensor([1.0, 10.0])).sum().backward()
    return y, x.grad


def augmented(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    before = y
    y += x
    y *= 3
    y -= 1
    y /= 2
    y.sum().backward()
    return y, x.grad, before is y


def in_place_through_view(torch: Any) -> Any:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x * 2
    y[0].mul_(10)
    (y * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    return y, x.grad


def in_place_through_view_of_view(torch: Any) -> Any:
    x = torch.arange(8.0).reshape(2, 4).requires_grad_()
    y = x * 1
    y.t()[1:3][0].mul_(5)
    (y * y).sum().backward()
    return y, x.grad


def view_sees_write_to_base(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    v = y[1:]
    y.mul_(3)
    (v * v).sum().backward()
    return v, x.grad


def view_sees_write_through_other_view(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    v, w = y[:2], y[1:]
    v.mul_(3)
    (w * torch.tensor([1.0, 10.0])).sum().backward()
    return w, x.grad


def constant_becomes_tracked(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.zeros(3)
    y[1:] = x * 2
    (y * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    return y, y.requires_grad, x.grad


def constant_becomes_tracked_by_add(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.zeros(2)
    y.add_(x)
    return y.requires_grad, y.is_leaf, y


def fill_loop(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    out = torch.zeros(3)
    for i in range(3):
        out[i] = x[i] * (i + 1)
    out.sum().backward()
    return out, x.grad


def masked_assignment(torch: Any) -> Any:
    x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    y = x * 2
    y[y < 0] = 0.0
    y.sum().backward()
    return y, x.grad


def masked_assignment_of_values(torch: Any) -> Any:
    x = torch.tensor([1.0, -2.0, 3.0, -4.0], requires_grad=True)
    v = torch.tensor([10.0, 20.0], requires_grad=True)
    y = x * 2
    y[x < 0] = v
    (y * torch.arange(4.0)).sum().backward()
    return y, x.grad, v.grad


def masked_fill(torch: Any) -> Any:
    x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    y = x.masked_fill(x < 0, 7.0)
    y.sum().backward()
    return y, x.grad


def index_assignment(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    y[torch.tensor([0, 2])] = torch.tensor([5.0, 6.0])
    (y * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    return y, x.grad


def relu_in_place(torch: Any) -> Any:
    x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    y = (x * 2).relu_()
    y.sum().backward()
    return y, x.grad


def exp_in_place(torch: Any) -> Any:
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    y = x * 2
    y.exp_()
    y.sum().backward()
    return y, x.grad


def mul_in_place_saves_old(torch: Any) -> Any:
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    y = x + 0
    y.mul_(w)
    y.sum().backward()
    return y, x.grad, w.grad


def zero_in_place(torch: Any) -> Any:
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    y = x * 2
    z = y.sum()
    y.zero_()
    (z + y.sum()).backward()
    return y, x.grad


def copy_in_place(torch: Any) -> Any:
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    y = x * 2
    y.copy_(w)
    (y * y).sum().backward()
    return y, x.grad, w.grad


def versions_count_writes(torch: Any) -> Any:
    x = torch.tensor([1.0, -2.0])
    first = x._version
    x.add_(1)
    x[0] = 3.0
    v = x[:1]
    v.mul_(2)
    d = x.detach()
    d.add_(1)
    return first, x._version, v._version, d._version


def data_writes_are_not_counted(torch: Any) -> Any:
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    y = x * x
    x.data.mul_(10)
    y.sum().backward()
    return x._version, x.grad


def unsaved_may_be_modified(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = y + 1
    y.mul_(5)
    (z + y).sum().backward()
    return x.grad


def clone_before_write(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.clone()
    y[0] = 0.0
    (y * x).sum().backward()
    return x.grad


def reshape_is_a_view(torch: Any) -> Any:
    x = torch.arange(6.0)
    y = x.reshape(2, 3)
    y[0, 0] = 50.0
    return x, y._version, x._version


def reshape_of_transposed_copies(torch: Any) -> Any:
    x = torch.arange(6.0).view(2, 3)
    y = x.t().reshape(6)
    y[0] = 50.0
    return x, y


def contiguous_copies(torch: Any) -> Any:
    x = torch.arange(6.0).view(2, 3)
    y = x.t().contiguous()
    return y, y.is_contiguous(), x.t().is_contiguous(), x.t().stride(), x.contiguous() is x


def expand_repeats(torch: Any) -> Any:
    x = torch.tensor([[1.0], [2.0]], requires_grad=True)
    y = x.expand(2, 3)
    (y * torch.arange(6.0).view(2, 3)).sum().backward()
    return y, x.grad


def diagonal_written(torch: Any) -> Any:
    x = torch.ones(3, 3, requires_grad=True)
    y = x * 2
    y.diagonal().mul_(4)
    (y * torch.arange(9.0).view(3, 3)).sum().backward()
    return y, x.grad


def no_grad_write_keeps_history(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    with torch.no_grad():
        y.add_(1)
    y.sum().backward()
    return y, x.grad


def detached_in_place(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    y.detach_()
    return y.requires_grad, y.is_leaf


def unbind_and_chunk(torch: Any) -> Any:
    x = torch.arange(6.0).view(2, 3).requires_grad_()
    a, b = x.unbind(0)
    c, d = (x * x).chunk(2, dim=1)
    (a * 2 + b * 3).sum().backward()
    first = x.grad.clone()
    (c.sum() * 2 + d.sum() * 3).backward()
    return first, x.grad


def iteration(torch: Any) -> Any:
    x = torch.arange(6.0).view(3, 2).requires_grad_()
    total = sum(row.sum() * (i + 1) for i, row in enumerate(x))
    total.backward()
    return x.grad, len(x)


def numpy_shares_memory(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0])
    a = x.numpy()
    a[0] = 7.0
    x.add_(1)
    return x, a


def from_numpy_shares_memory(torch: Any) -> Any:
    import numpy as np

    a = np.array([1.0, 2.0])
    x = torch.from_numpy(a)
    a[0] = 5.0
    return x, x.dtype


def setitem_with_int_value(torch: Any) -> Any:
    x = torch.zeros(2, 3)
    x[0] = 2
    x[1, 2] = 5
    x[:, 1] = torch.tensor([7.0, 8.0])
    return x


def retained_gradient_then_backward_twice(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    y = x * 2
    y.retain_grad()
    (y * 3).sum().backward(retain_graph=True)
    (y * 4).sum().backward()
    return y.grad, x.grad
