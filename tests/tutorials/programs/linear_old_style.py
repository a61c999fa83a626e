# The linear layer of the guide on extending, with ctx in forward.
import torch
import torch.nn as nn
from torch.autograd import Function, gradcheck


class LinearFunction(Function):
    # Note that forward, setup_context, and backward are @staticmethods
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None

        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)

        return grad_input, grad_weight, grad_bias


linear = LinearFunction.apply


def with_bias(input, weight, bias=None):
    return LinearFunction.apply(input, weight, bias)


class Linear(nn.Module):
    def __init__(self, input_features, output_features, bias=True):
        super().__init__()
        self.input_features = input_features
        self.output_features = output_features
        self.weight = nn.Parameter(torch.empty(output_features, input_features))
        if bias:
            self.bias = nn.Parameter(torch.empty(output_features))
        else:
            self.register_parameter("bias", None)
        with torch.no_grad():
            self.weight.copy_(torch.arange(6.0).reshape(2, 3) / 8)
            if self.bias is not None:
                self.bias.fill_(0.125)

    def forward(self, input):
        return LinearFunction.apply(input, self.weight, self.bias)

    def extra_repr(self):
        return "input_features={}, output_features={}, bias={}".format(
            self.input_features, self.output_features, self.bias is not None
        )


data = torch.arange(12.0).reshape(4, 3)
for bias in (True, False):
    layer = Linear(3, 2, bias=bias)
    print(layer)
    print(sorted(layer.state_dict()), [name for name, _ in layer.named_parameters()])
    result = layer(data)
    result.sum().backward()
    print(result)
    print(layer.weight.grad, None if layer.bias is None else layer.bias.grad)

double = (
    torch.arange(60, dtype=torch.double).reshape(20, 3).sin().requires_grad_(),
    torch.arange(6, dtype=torch.double).reshape(2, 3).cos().requires_grad_(),
)
print(gradcheck(linear, double, eps=1e-6, atol=1e-4))
print(with_bias(data, layer.weight).requires_grad)
