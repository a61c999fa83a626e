# Some layers frozen, the others trained.
import torch
from torch import nn, optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh())
        self.classifier = nn.Linear(8, 3)

    def forward(self, x):
        return self.classifier(self.backbone(x))


def fill(model):
    with torch.no_grad():
        for place, parameter in enumerate(model.parameters()):
            count = parameter.numel()
            values = torch.sin(torch.arange(count, dtype=torch.float32) * 0.7 + place)
            parameter.copy_(values.reshape(parameter.shape) * 0.5)


model = Net()
fill(model)
for param in model.backbone.parameters():
    param.requires_grad = False
print([name for name, param in model.named_parameters() if param.requires_grad])

before = {name: value.clone() for name, value in model.state_dict().items()}
optimizer = optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.5, momentum=0.9)
x = torch.cos(torch.arange(40, dtype=torch.float32)).reshape(10, 4)
labels = torch.arange(10) % 3
criterion = nn.CrossEntropyLoss()
for _ in range(30):
    optimizer.zero_grad()
    loss = criterion(model(x), labels)
    loss.backward()
    optimizer.step()
print(round(loss.item(), 4))
for name, value in model.state_dict().items():
    print(name, bool((value == before[name]).all()))
print([param.grad is None for param in model.parameters()])

for param in model.parameters():
    param.requires_grad_(True)
loss = criterion(model(x), labels)
loss.backward(inputs=[model.backbone[0].weight])
print(model.backbone[0].weight.grad.shape, model.backbone[0].bias.grad)
