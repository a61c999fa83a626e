# A Function that says what it is given.
import torch
from torch.autograd import Function


class MultiplyAdd(Function):
    @staticmethod
    def forward(ctx, w, x, b):
        print("type in forward", type(x))
        ctx.save_for_backward(w, x)
        output = w * x + b
        return output

    @staticmethod
    def backward(ctx, grad_output):
        w, x = ctx.saved_tensors
        print("type in backward", type(x))
        grad_w = grad_output * x
        grad_x = grad_output * w
        grad_b = grad_output * 1
        return grad_w, grad_x, grad_b


x = torch.ones(1)
w = torch.rand(1) * 0 + 0.25
w.requires_grad = True
b = torch.full((1,), 0.5, requires_grad=True)
z = MultiplyAdd.apply(w, x, b)
print("type of z", type(z), z.requires_grad, z.is_leaf, z.grad_fn.name())
z.backward()
print(x.grad, w.grad, b.grad)
print(z)
