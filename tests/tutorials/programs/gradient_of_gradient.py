# The gradient of a gradient, by hand-written backwards too.
import torch
from torch.autograd import grad, gradcheck, gradgradcheck

x = torch.tensor(3.0, requires_grad=True)
y = x**3
(first,) = grad(y, x, create_graph=True)
(second,) = grad(first, x, create_graph=True)
(third,) = grad(second, x)
print(first.item(), second.item(), third.item())


class Sinh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        expx = torch.exp(x)
        expnegx = torch.exp(-x)
        ctx.save_for_backward(expx, expnegx)
        return (expx - expnegx) / 2, expx, expnegx

    @staticmethod
    def backward(ctx, grad_out, grad_expx, grad_expnegx):
        expx, expnegx = ctx.saved_tensors
        grad_input = grad_out * (expx + expnegx) / 2
        grad_input += grad_expx * expx
        grad_input -= grad_expnegx * expnegx
        return grad_input


def sinh(x):
    return Sinh.apply(x)[0]


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, grad_out):
        (x,) = ctx.saved_tensors
        return grad_out * 2 * x


points = torch.tensor([0.3, -1.2, 2.0], dtype=torch.double, requires_grad=True)
print(gradcheck(sinh, points), gradgradcheck(sinh, points))
print(gradcheck(Square.apply, points), gradgradcheck(Square.apply, points))

w = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
given = torch.tensor([1.0, -1.0], requires_grad=True)
score = torch.tanh(w @ given).sum()
(slope,) = grad(score, given, create_graph=True)
penalty = ((slope.norm() - 1) ** 2) + score
penalty.backward()
print(w.grad)
