# Products of vectors, and a gradient from outside.
import torch

a = torch.tensor([2.0, 3.0], requires_grad=True)
b = torch.tensor([6.0, 4.0], requires_grad=True)
Q = 3 * a**3 - b**2
external_grad = torch.tensor([1.0, 1.0])
Q.backward(gradient=external_grad)
print(9 * a**2 == a.grad)
print(-2 * b == b.grad)

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = torch.tensor([4.0, 5.0, 6.0], requires_grad=True)
z = x * y
try:
    z.backward()
except RuntimeError as error:
    print(error)
z.backward(torch.tensor([0.1, 1.0, 10.0]))
print(x.grad, y.grad)

v = torch.tensor([0.1, 1.0, 0.0001], dtype=torch.float)
y = x * 2
while y.data.norm() < 1000:
    y = y * 2
y.backward(v)
print(y, x.grad)
