"""Functions with a backward of their own."""

# ruff: noqa: RET504, RUF059  (written as their users write them)

from typing import Any

OTHER_WORDS = frozenset({"once"})
"""PyTorch gives a gradient without history there where the vector has none."""


def multiply_add_prints_types(torch: Any) -> Any:
    class MultiplyAdd(torch.autograd.Function):
        @staticmethod
        def forward(ctx, w, x, b):  # type: ignore[no-untyped-def]
            print("type in forward", type(x))
            ctx.save_for_backward(w, x)
            output = w * x + b
            return output

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            w, x = ctx.saved_tensors
            print("type in backward", type(x))
            grad_w = grad_output * x
            grad_x = grad_output * w
            grad_b = grad_output * 1
            return grad_w, grad_x, grad_b

    x = torch.ones(1, requires_grad=True)
    w = torch.rand(1, requires_grad=True)
    b = torch.rand(1, requires_grad=True)
    print("start forward")
    z = MultiplyAdd.apply(w, x, b)
    print("start backward")
    z.backward()
    return x.grad == w, w.grad == x, b.grad


def linear_with_optional_bias(torch: Any) -> Any:
    class LinearFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input, weight, bias=None):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(input, weight, bias)
            output = input.mm(weight.t())
            if bias is not None:
                output += bias.unsqueeze(0).expand_as(output)
            return output

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            input, weight, bias = ctx.saved_tensors
            grad_input = grad_weight = grad_bias = None
            if ctx.needs_input_grad[0]:
                grad_input = grad_output.mm(weight)
            if ctx.needs_input_grad[1]:
                grad_weight = grad_output.t().mm(input)
            if bias is not None and ctx.needs_input_grad[2]:
                grad_bias = grad_output.sum(0)
            return grad_input, grad_weight, grad_bias

    def linear(input: Any, weight: Any, bias: Any = None) -> Any:
        return LinearFunction.apply(input, weight, bias)

    class Linear:
        def __init__(self, weight: Any, bias: Any) -> None:
            self.weight, self.bias = weight, bias

        def __call__(self, input: Any) -> Any:
            return linear(input, self.weight, self.bias)

    weight = torch.arange(6.0).view(2, 3).requires_grad_()
    bias = torch.tensor([0.5, -0.5], requires_grad=True)
    x = torch.tensor([[1.0, 2.0, -1.0]], requires_grad=True)
    first = Linear(weight, bias)(x)
    first.backward(torch.tensor([[1.0, 2.0]]))
    second = Linear(weight, None)(x.detach())
    second.sum().backward()
    return first, second, x.grad, weight.grad, bias.grad


def linear_with_setup_context(torch: Any) -> Any:
    class LinearFunction(torch.autograd.Function):
        @staticmethod
        def forward(input, weight, bias):  # type: ignore[no-untyped-def]
            output = input.mm(weight.t())
            if bias is not None:
                output += bias.unsqueeze(0).expand_as(output)
            return output

        @staticmethod
        def setup_context(ctx, inputs, output):  # type: ignore[no-untyped-def]
            input, weight, bias = inputs
            ctx.save_for_backward(input, weight, bias)

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            input, weight, bias = ctx.saved_tensors
            grad_bias = None if bias is None else grad_output.sum(0)
            return grad_output.mm(weight), grad_output.t().mm(input), grad_bias

    weight = torch.arange(6.0).view(2, 3).requires_grad_()
    x = torch.tensor([[1.0, 2.0, -1.0]], requires_grad=True)
    LinearFunction.apply(x, weight, None).backward(torch.tensor([[1.0, 2.0]]))
    return x.grad, weight.grad


def constant_argument(torch: Any) -> Any:
    class MulConstant(torch.autograd.Function):
        @staticmethod
        def forward(ctx, tensor, constant):  # type: ignore[no-untyped-def]
            ctx.constant = constant
            return tensor * constant

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            return grad_output * ctx.constant, None

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    MulConstant.apply(x, 5).sum().backward()
    return x.grad


def undefined_gradients(torch: Any) -> Any:
    class MulConstant(torch.autograd.Function):
        @staticmethod
        def forward(ctx, tensor, constant):  # type: ignore[no-untyped-def]
            ctx.set_materialize_grads(False)
            ctx.constant = constant
            return tensor * constant, tensor * 2

        @staticmethod
        def backward(ctx, first, second):  # type: ignore[no-untyped-def]
            print(first is None, second is None)
            return None if first is None else first * ctx.constant, None

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    MulConstant.apply(x, 5)[0].sum().backward()
    return x.grad


def materialized_gradients(torch: Any) -> Any:
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):  # type: ignore[no-untyped-def]
            print(second.sum().item())
            return first * 2 + second * 3

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    Two.apply(x)[0].sum().backward()
    return x.grad


def non_differentiable_output(torch: Any) -> Any:
    class Sorted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            values, places = x.sort()
            ctx.mark_non_differentiable(places)
            ctx.save_for_backward(x, places)
            return values, places

        @staticmethod
        def backward(ctx, grad_values, grad_places):  # type: ignore[no-untyped-def]
            x, places = ctx.saved_tensors
            grad = torch.zeros_like(x)
            grad.index_add_(0, places, grad_values)
            return grad

    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    values, places = Sorted.apply(x)
    (values * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    return values, places.requires_grad, x.grad


def float_output_marked_non_differentiable(torch: Any) -> Any:
    class Split(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            a, b = x * 2, x * 3
            ctx.mark_non_differentiable(b)
            return a, b

        @staticmethod
        def backward(ctx, first, second):  # type: ignore[no-untyped-def]
            print(second is None, second)
            return first * 2

    x = torch.tensor([1.0], requires_grad=True)
    a, b = Split.apply(x)
    a.sum().backward()
    return a.requires_grad, b.requires_grad, x.grad


def dirty_input(torch: Any) -> Any:
    class Inplace(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            return grad_output * 7

    a = torch.tensor(1.0, requires_grad=True)
    b = a * 2
    c = Inplace.apply(b)
    c.backward()
    return b is c, b, a.grad


def dirty_leaf(torch: Any) -> Any:
    class Inplace(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            return grad_output

    Inplace.apply(torch.tensor(1.0, requires_grad=True))


def saved_output(torch: Any) -> Any:
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            (result,) = ctx.saved_tensors
            return grad_output * result

    x = torch.tensor([0.0, 1.0], requires_grad=True)
    y = Exp.apply(x)
    y.sum().backward()
    return y, x.grad


def saved_output_modified(torch: Any) -> Any:
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            (result,) = ctx.saved_tensors
            return grad_output * result

    x = torch.tensor([0.0, 1.0], requires_grad=True)
    y = Exp.apply(x)
    y.mul_(2)
    y.sum().backward()


def saved_tensors_twice(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            return 2 * x * grad_output

    x = torch.tensor([2.0], requires_grad=True)
    y = Square.apply(x).sum()
    y.backward()
    y.backward()


def too_few_gradients(torch: Any) -> Any:
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):  # type: ignore[no-untyped-def]
            return x * y

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            return grad_output

    x = torch.tensor([2.0], requires_grad=True)
    Two.apply(x, x).sum().backward()


def too_many_gradients(torch: Any) -> Any:
    class One(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            return grad_output, grad_output

    x = torch.tensor([2.0], requires_grad=True)
    One.apply(x).sum().backward()


def trailing_nones(torch: Any) -> Any:
    class One(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            return grad_output * 2, None, None

    x = torch.tensor([2.0], requires_grad=True)
    One.apply(x).sum().backward()
    return x.grad


def gradient_of_wrong_shape(torch: Any) -> Any:
    class One(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            return torch.ones(3)

    x = torch.tensor([2.0, 1.0], requires_grad=True)
    One.apply(x).sum().backward()


def gradient_summed_down(torch: Any) -> Any:
    class AddRow(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, row):  # type: ignore[no-untyped-def]
            return x + row

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            return grad_output, grad_output

    x = torch.zeros(3, 2, requires_grad=True)
    row = torch.zeros(2, requires_grad=True)
    AddRow.apply(x, row).backward(torch.arange(6.0).view(3, 2))
    return x.grad, row.grad


def gradient_for_a_number(torch: Any) -> Any:
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):  # type: ignore[no-untyped-def]
            return x * factor

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            return grad_output, grad_output

    x = torch.tensor([2.0, 1.0], requires_grad=True)
    Scale.apply(x, 3.0).sum().backward()


def gradient_is_a_number(torch: Any) -> Any:
    class One(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            return 2.0

    x = torch.tensor([2.0, 1.0], requires_grad=True)
    One.apply(x).sum().backward()


def error_in_backward_comes_through(torch: Any) -> Any:
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            raise ValueError("my own")

    x = torch.tensor([2.0, 1.0], requires_grad=True)
    try:
        Bad.apply(x).sum().backward()
    except ValueError as error:
        return str(error)


def needs_input_grad_of_constants(torch: Any) -> Any:
    class Mul(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, z):  # type: ignore[no-untyped-def]
            print(ctx.needs_input_grad)
            ctx.save_for_backward(x, y)
            return x * y * z

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            print(ctx.needs_input_grad)
            x, y = ctx.saved_tensors
            return grad_output * y, None, None

    x = torch.tensor([2.0], requires_grad=True)
    Mul.apply(x, torch.tensor([3.0]), 1.0).sum().backward()
    return x.grad


def nothing_required_nothing_recorded(torch: Any) -> Any:
    class Mul(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            print(ctx.needs_input_grad, torch.is_grad_enabled())
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            return grad_output * 2

    y = Mul.apply(torch.tensor([3.0]))
    return y, y.requires_grad, y.grad_fn is None


def identity_is_another_tensor(torch: Any) -> Any:
    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            return -grad_output

    x = torch.tensor([3.0], requires_grad=True)
    y = Reverse.apply(x)
    y.sum().backward()
    return y is x, y.requires_grad, x.is_leaf, x.grad


def view_as_of_input(torch: Any) -> Any:
    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            return grad_output.neg() * 0.5

    x = torch.tensor([3.0], requires_grad=True)
    y = Reverse.apply(x * 2)
    y.sum().backward()
    return y, x.grad


def straight_through(torch: Any) -> Any:
    class Sign(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return torch.sign(x)

        @staticmethod
        def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            grad = grad_output.clone()
            grad[x > 1] = 0
            grad[x < -1] = 0
            return grad

    x = torch.tensor([-2.0, -0.5, 0.5, 2.0], requires_grad=True)
    (Sign.apply(x) * torch.arange(4.0)).sum().backward()
    return x.grad


def class_methods(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @classmethod
        def forward(cls, ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return x * x

        @classmethod
        def backward(cls, ctx, g):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            return 2 * g * x

    x = torch.tensor([3.0], requires_grad=True)
    Square.apply(x).sum().backward()
    return x.grad


def attributes_hold_tensors(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.x = x
            ctx.pair = [x, {"two": 2.0}]
            return x * x

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            return ctx.pair[1]["two"] * g * ctx.x

    x = torch.tensor([3.0], requires_grad=True)
    Square.apply(x).sum().backward()
    return x.grad


def gradient_of_another_dtype(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x * 2

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            return g.double() * 2

    x = torch.tensor([3.0], requires_grad=True)
    Square.apply(x).sum().backward()
    return x.grad


def data_dependent_loop(torch: Any) -> Any:
    class Until(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.steps = 0
            while x.norm().item() < 100:
                x = x * 2
                ctx.steps += 1
            return x

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            return g * 2**ctx.steps

    x = torch.tensor([3.0, 4.0], requires_grad=True)
    y = Until.apply(x)
    y.sum().backward()
    return y, x.grad


def data_dependent_branch(torch: Any) -> Any:
    class Abs(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.positive = bool(x.sum() > 0)
            return x if ctx.positive else -x

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            return g if ctx.positive else -g

    x = torch.tensor([-3.0, 1.0], requires_grad=True)
    Abs.apply(x).sum().backward()
    return x.grad


def numpy_inside(torch: Any) -> Any:
    import numpy as np

    class Sinus(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return torch.from_numpy(np.sin(x.detach().numpy()))

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            return g * torch.as_tensor(np.cos(x.detach().numpy()))

    x = torch.tensor([-3.0, 1.0], requires_grad=True)
    y = Sinus.apply(x)
    y.sum().backward()
    return y, x.grad


def once(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = torch.tensor([3.0], requires_grad=True)
    (grad,) = torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    print(grad.item())
    grad.sum().backward()


def inner_function(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            return 2 * x * g

    class Fourth(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            with torch.enable_grad():
                inner = x.detach().requires_grad_()
                ctx.inner = inner
                ctx.out = Square.apply(Square.apply(inner))
            return ctx.out.detach()

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            (grad,) = torch.autograd.grad(ctx.out, ctx.inner, g)
            return grad

    x = torch.tensor([3.0], requires_grad=True)
    Fourth.apply(x).sum().backward()
    return x.grad


def node_is_named_after_function(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            ctx.note = "here"
            return x * x

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = torch.tensor([3.0], requires_grad=True)
    y = Square.apply(x)
    return y.grad_fn.name(), y.grad_fn.saved_tensors[0] is x, y.grad_fn.note


def save_what_is_no_tensor(torch: Any) -> Any:
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x, 2.0)
            return x * 2

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            return g * 2

    Bad.apply(torch.tensor([3.0], requires_grad=True))


def other_outputs_pass_through(torch: Any) -> Any:
    class Several(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x * 2, 3.0, None

        @staticmethod
        def backward(ctx, g, *rest):  # type: ignore[no-untyped-def]
            return g * 2

    found = Several.apply(torch.tensor([3.0], requires_grad=True))
    return found


def keywords_have_the_places_of_forward(torch: Any) -> Any:
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, k=1.0):  # type: ignore[no-untyped-def]
            print(ctx.needs_input_grad)
            ctx.save_for_backward(x)
            ctx.k = k
            return x * k

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            return g * ctx.k, g * x if ctx.needs_input_grad[1] else None

    x = torch.tensor([2.0, 1.0], requires_grad=True)
    k = torch.tensor([5.0, 7.0], requires_grad=True)
    found = [Scaled.apply(x, k=k), Scaled.apply(x=x, k=3.0), Scaled.apply(x, k=k.detach())]
    return [torch.autograd.grad(y.sum(), (x, k), allow_unused=True) for y in found]


def defaults_have_places_for_setup_context(torch: Any) -> Any:
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(x, k=1.0):  # type: ignore[no-untyped-def]
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):  # type: ignore[no-untyped-def]
            print(len(inputs))
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            print(ctx.needs_input_grad)
            return g * ctx.k, None

    x = torch.tensor([2.0, 1.0], requires_grad=True)
    return [
        torch.autograd.grad(Scaled.apply(*a, **k).sum(), x)
        for a, k in (((x,), {}), ((x, 2.0), {}), ((x,), {"k": 3.0}), ((), {"k": 4.0, "x": x}))
    ]


def arrays_in_forward(torch: Any) -> Any:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return torch.from_numpy(x.numpy() ** 3)

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            return torch.from_numpy(3 * x.numpy() ** 2) * g

    x = torch.tensor([2.0, 1.0], requires_grad=True)
    Cube.apply(x * 2).sum().backward()
    with torch.no_grad():
        array = x.numpy()
    return x.grad, array


def vjp_is_a_name_of_backward(torch: Any) -> Any:
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x * 2

        @staticmethod
        def vjp(ctx, g):  # type: ignore[no-untyped-def]
            return g * 3

    x = torch.tensor([2.0, 1.0], requires_grad=True)
    Wrong.apply(x).sum().backward()
    return x.grad
