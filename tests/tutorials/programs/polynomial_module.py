# A model, a loss, an optimizer: the shortest training loop.
import math

import torch

x = torch.linspace(-math.pi, math.pi, 500)
y = torch.sin(x)
p = torch.tensor([1, 2, 3])
xx = x.unsqueeze(-1).pow(p)

model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
with torch.no_grad():
    model[0].weight.fill_(0.1)
    model[0].bias.zero_()
loss_fn = torch.nn.MSELoss(reduction="sum")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for t in range(200):
    y_pred = model(xx)
    loss = loss_fn(y_pred, y)
    if t % 50 == 49:
        print(t, round(loss.item(), 3))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(model)
linear_layer = model[0]
print(round(linear_layer.bias.item(), 3), linear_layer.weight.shape)
