"""Errors and warnings: each program ends in one."""

from typing import Any

# symgrad says of shapes and dtypes what its traces say.
OTHER_WORDS = frozenset({
    "gradient_is_a_list", "shapes_do_not_broadcast", "matmul_shapes", "view_of_wrong_size",
    "view_of_transposed", "axis_out_of_range", "cat_shapes", "in_place_too_small",
    "float_into_integers", "assigned_grad_of_wrong_dtype", "mean_of_integers", "ragged_list",
    "linear_shapes", "detach_in_place_of_view", "squeeze_axis_out_of_range",
})  # fmt: skip


def leaf_in_place(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    x.add_(1)


def leaf_augmented(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    x += 1


def leaf_assigned(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x[0] = 3.0


def leaf_view_in_place(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x[:1].mul_(2)


def saved_input_modified(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    z = y * y
    y.add_(1)
    z.sum().backward()


def saved_output_modified(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    y.add_(1)
    y.sum().backward()


def saved_leaf_modified_without_recording(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    z = (x * x).sum()
    with torch.no_grad():
        x.add_(1)
    z.backward()


def saved_modified_through_view(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    z = (y**2).sum()
    y[0] = 5.0
    z.backward()


def saved_modified_through_detached(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    z = (y**2).sum()
    y.detach().zero_()
    z.backward()


def second_backward(torch: Any) -> Any:
    x = torch.tensor([2.0], requires_grad=True)
    y = (x * x).sum()
    y.backward()
    y.backward()


def second_backward_of_shared_part(torch: Any) -> Any:
    x = torch.tensor([2.0], requires_grad=True)
    h = x.exp()
    (h * 2).sum().backward()
    (h * 3).sum().backward()


def not_scalar(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * 2).backward()


def no_grad_fn(torch: Any) -> Any:
    x = torch.tensor([1.0])
    (x * 2).sum().backward()


def no_grad_fn_with_gradient(torch: Any) -> Any:
    x = torch.tensor([1.0])
    (x * 2).backward(torch.ones(1))


def gradient_of_wrong_shape(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * 2).backward(torch.ones(3))


def gradient_is_a_list(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * 2).backward([1.0, 2.0])


def integers_require_no_gradient(torch: Any) -> Any:
    torch.tensor([1, 2], requires_grad=True)


def integers_require_no_gradient_later(torch: Any) -> Any:
    torch.tensor([1, 2]).requires_grad_()


def result_cannot_be_frozen(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    y = x * 2
    y.requires_grad = False


def numpy_of_what_requires_grad(torch: Any) -> Any:
    torch.tensor([1.0], requires_grad=True).numpy()


def item_of_several(torch: Any) -> Any:
    torch.tensor([1.0, 2.0]).item()


def truth_of_several(torch: Any) -> Any:
    bool(torch.tensor([1.0, 2.0]) > 0)


def length_of_scalar(torch: Any) -> Any:
    len(torch.tensor(1.0))


def iteration_over_scalar(torch: Any) -> Any:
    list(torch.tensor(1.0))


def index_out_of_range(torch: Any) -> Any:
    torch.tensor([1.0, 2.0])[5]


def negative_index_out_of_range(torch: Any) -> Any:
    torch.tensor([1.0, 2.0])[-3]


def too_many_indices(torch: Any) -> Any:
    torch.tensor([1.0, 2.0])[0, 0]


def index_tensor_out_of_range(torch: Any) -> Any:
    torch.tensor([1.0, 2.0])[torch.tensor([0, 7])]


def mask_of_wrong_shape(torch: Any) -> Any:
    torch.tensor([1.0, 2.0])[torch.tensor([True, False, True])]


def index_is_a_float(torch: Any) -> Any:
    torch.tensor([1.0, 2.0])[torch.tensor([0.5])]


def shapes_do_not_broadcast(torch: Any) -> Any:
    torch.ones(3) + torch.ones(4)


def matmul_shapes(torch: Any) -> Any:
    torch.ones(2, 3) @ torch.ones(2, 3)


def view_of_wrong_size(torch: Any) -> Any:
    torch.ones(6).view(4, 2)


def view_of_transposed(torch: Any) -> Any:
    torch.ones(2, 3).t().view(6)


def axis_out_of_range(torch: Any) -> Any:
    torch.ones(2, 3).sum(2)


def cat_shapes(torch: Any) -> Any:
    torch.cat([torch.ones(2, 3), torch.ones(2, 4)])


def expanded_in_place(torch: Any) -> Any:
    torch.ones(1).expand(3).add_(1)


def in_place_too_small(torch: Any) -> Any:
    torch.ones(3).add_(torch.ones(2, 3))


def float_into_integers(torch: Any) -> Any:
    torch.tensor([1, 2]).add_(0.5)


def function_of_a_list(torch: Any) -> Any:
    torch.exp([1.0, 2.0])


def add_a_string(torch: Any) -> Any:
    torch.ones(2) + "a"


def grad_of_unused(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    y = torch.tensor([1.0], requires_grad=True)
    torch.autograd.grad((x * 2).sum(), [x, y])


def grad_of_constant(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    y = torch.tensor([1.0])
    torch.autograd.grad((x * y).sum(), [y])


def grad_freed(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    y = (x * x).sum()
    torch.autograd.grad(y, x)
    torch.autograd.grad(y, x)


def hook_without_gradient(torch: Any) -> Any:
    torch.tensor([1.0]).register_hook(print)


def retain_without_gradient(torch: Any) -> Any:
    torch.tensor([1.0]).retain_grad()


def empty_inputs(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    (x * x).sum().backward(inputs=[])


def assigned_grad_is_no_tensor(torch: Any) -> Any:
    torch.tensor([1.0], requires_grad=True).grad = [1.0]


def assigned_grad_of_wrong_shape(torch: Any) -> Any:
    torch.tensor([1.0], requires_grad=True).grad = torch.ones(2)


def assigned_grad_of_wrong_dtype(torch: Any) -> Any:
    torch.tensor([1.0], requires_grad=True).grad = torch.ones(1, dtype=torch.float64)


def mean_of_integers(torch: Any) -> Any:
    torch.tensor([1, 2]).mean()


def from_numpy_of_a_list(torch: Any) -> Any:
    torch.from_numpy([1.0])


def ragged_list(torch: Any) -> Any:
    torch.tensor([[1.0], [1.0, 2.0]])


def copy_construction_warns(torch: Any) -> Any:
    return torch.tensor(torch.tensor([1.0]))


def default_dtype_must_be_float(torch: Any) -> Any:
    torch.set_default_dtype(torch.int64)


def several_views_in_place(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    a, _ = y.unbind()
    a.add_(1)


def view_made_without_recording(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    with torch.no_grad():
        v = y[:1]
    v.add_(1)


def detach_in_place_of_view(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    y[:1].detach_()


def unknown_attribute(torch: Any) -> Any:
    _ = torch.tensor([1.0]).no_such_thing


def linear_shapes(torch: Any) -> Any:
    torch.ones(2, 3).mm(torch.ones(2))


def squeeze_axis_out_of_range(torch: Any) -> Any:
    torch.ones(2).unsqueeze(4)


def post_hook_of_result(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    (x * 2).register_post_accumulate_grad_hook(print)


def contradictory_unused(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    torch.autograd.grad(x.sum(), x, allow_unused=False, materialize_grads=True)
