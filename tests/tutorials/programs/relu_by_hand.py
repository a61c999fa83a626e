# Two layers with a rectifier of one's own, updated by hand.
import torch


class MyReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[input < 0] = 0
        return grad_input


N, D_in, H, D_out = 16, 20, 12, 3
x = torch.sin(torch.arange(N * D_in, dtype=torch.float32)).reshape(N, D_in)
y = torch.cos(torch.arange(N * D_out, dtype=torch.float32)).reshape(N, D_out)
w1 = (torch.sin(torch.arange(D_in * H, dtype=torch.float32) * 1.3) * 0.3).reshape(D_in, H)
w2 = (torch.sin(torch.arange(H * D_out, dtype=torch.float32) * 1.7) * 0.3).reshape(H, D_out)
w1.requires_grad_()
w2.requires_grad_()

for t in range(60):
    relu = MyReLU.apply
    y_pred = relu(x.mm(w1)).mm(w2)
    loss = (y_pred - y).pow(2).sum()
    if t % 20 == 19:
        print(t, round(loss.item(), 3))
    loss.backward()
    with torch.no_grad():
        w1 -= 1e-3 * w1.grad
        w2 -= 1e-3 * w2.grad
        w1.grad.zero_()
        w2.grad.zero_()
