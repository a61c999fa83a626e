# A variable that depends on another one, and where its gradient went.
import warnings

import torch

x = torch.ones(2, 2, requires_grad=True)
y = x + 2
z = y * y * 3
out = z.mean()
print(y.grad_fn is not None, x.grad_fn, z.is_leaf, out)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    out.backward(retain_graph=True)
    print(y.grad, len(caught), "retain_grad()" in str(caught[0].message))
y.retain_grad()
out.backward()
print(y.grad)
print(x.grad)
try:
    out.backward()
except RuntimeError as error:
    print(str(error)[:60])

print(x.requires_grad, (x**2).requires_grad)
with torch.no_grad():
    print((x**2).requires_grad)
d = x.detach()
print(d.requires_grad, x.eq(d).all())
