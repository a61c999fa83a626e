"""Modules: what belongs to them, under which names, in which order; their state; their text."""

from collections import OrderedDict
from typing import Any


def _net(torch: Any) -> Any:
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(2, 2)
            self.register_parameter("scale", None)
            self.register_buffer("count", torch.zeros(1))
            self.register_buffer("hidden", torch.ones(2), persistent=False)
            self.gain = nn.Parameter(torch.ones(2))

        def forward(self, x: Any) -> Any:
            return self.fc(x) * self.gain

    class Net(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first = Block()
            self.blocks = nn.ModuleList([Block(), Block(), nn.ReLU()])
            self.table = nn.ModuleDict({"a": nn.Tanh(), "b": self.first})

        def forward(self, x: Any) -> Any:
            for block in self.blocks:
                x = block(x)
            return self.table["a"](self.first(x))

    return Net()


def names(torch: Any) -> Any:
    net = _net(torch)
    return (
        [name for name, _ in net.named_parameters()], [name for name, _ in net.named_modules()],
        [name for name, _ in net.named_buffers()], [name for name, _ in net.named_children()],
        [name for name, _ in net.named_parameters("net", remove_duplicate=False)],
        [name for name, _ in net.first.named_parameters(recurse=False)],
        list(net.state_dict()), len(list(net.parameters())), len(list(net.modules())),
    )  # fmt: skip


def text(torch: Any) -> Any:
    return repr(_net(torch)), str(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()))


def training(torch: Any) -> Any:
    net = _net(torch)
    before = [one.training for one in net.modules()]
    net.eval()
    return before, [one.training for one in net.modules()], net.train() is net


def freezing(torch: Any) -> Any:
    net = _net(torch)
    net.first.requires_grad_(False)
    net(torch.ones(3, 2)).sum().backward()
    return [parameter.grad is None for parameter in net.parameters()]


def zero_grad(torch: Any) -> Any:
    net = torch.nn.Linear(2, 1)
    net(torch.ones(3, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    zeros = net.weight.grad.abs().sum().item()
    net.zero_grad()
    return zeros, net.weight.grad is None


def apply_in_order(torch: Any) -> Any:
    seen: list[str] = []
    _net(torch).apply(lambda module: seen.append(type(module).__name__))
    return seen


def dtypes(torch: Any) -> Any:
    net = _net(torch)
    net(torch.ones(3, 2)).sum().backward()
    net.double()
    wide = [str(one.dtype) for one in (*net.parameters(), *net.buffers())]
    grads = [str(one.grad.dtype) for one in net.parameters() if one.grad is not None]
    same = net.to(torch.float32) is net
    return wide, grads, same, [str(one.dtype) for one in net.parameters()]


def attributes(torch: Any) -> Any:
    nn = torch.nn
    net = nn.Linear(2, 2)
    net.bias = None
    net.note = 3
    net.extra = nn.ReLU()
    found = [name for name, _ in net.named_parameters()], net.bias is None, net.note
    del net.extra
    del net.weight
    return found, hasattr(net, "extra"), hasattr(net, "weight"), list(net.state_dict())


def replaced_by_a_module(torch: Any) -> Any:
    nn = torch.nn
    net = nn.Module()
    net.layer = 3
    net.layer = nn.ReLU()
    net.value = nn.ReLU()
    net.value = nn.Parameter(torch.ones(1))
    return [n for n, _ in net.named_modules()], [n for n, _ in net.named_parameters()]


def buffers_take_tensors(torch: Any) -> Any:
    net = torch.nn.BatchNorm1d(2)
    net.running_mean = torch.ones(2)
    return net.state_dict()


def state_is_shared_memory(torch: Any) -> Any:
    net = torch.nn.Linear(2, 1)
    state = net.state_dict()
    with torch.no_grad():
        net.weight.fill_(3.0)
    return state["weight"], state["weight"].requires_grad


def load_state(torch: Any) -> Any:
    one, other = _net(torch), _net(torch)
    with torch.no_grad():
        for number, parameter in enumerate(one.parameters()):
            parameter.fill_(float(number))
    found = other.load_state_dict(one.state_dict())
    return str(found), list(other.state_dict().values())


def load_part(torch: Any) -> Any:
    net = torch.nn.Linear(2, 1)
    found = net.load_state_dict({"weight": torch.ones(1, 2), "more": torch.ones(1)}, strict=False)
    return found.missing_keys, found.unexpected_keys, net.weight


def sequential(torch: Any) -> Any:
    nn = torch.nn
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    net.append(nn.Tanh())
    net.insert(1, nn.Sigmoid())
    del net[2]
    net[-1] = nn.Softplus()
    net.extend([nn.GELU()])
    named = nn.Sequential(OrderedDict([("a", nn.ReLU()), ("b", nn.Tanh())]))
    return repr(net), len(net), repr(net[1:3]), repr(named), [type(one).__name__ for one in net]


def module_list(torch: Any) -> Any:
    nn = torch.nn
    one = nn.ModuleList([nn.ReLU()])
    found = one + [nn.ReLU(), nn.Tanh()]  # noqa: RUF005
    found += [nn.Tanh()]
    return repr(found), repr(found[::2]), len(found), [n for n, _ in found.named_modules()]


def module_dict(torch: Any) -> Any:
    nn = torch.nn
    found = nn.ModuleDict({"a": nn.ReLU()})
    found["b"] = nn.Tanh()
    found.update({"c": nn.GELU()})
    taken = found.pop("a")
    return repr(found), list(found), "b" in found, type(taken).__name__, len(found)


def parameter_list(torch: Any) -> Any:
    nn = torch.nn
    found = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(3))])
    found.append(nn.Parameter(torch.ones(1)))
    net = nn.Module()
    net.weights = found
    return [n for n, _ in net.named_parameters()], len(found), found[-1], list(net.state_dict())


def hooks(torch: Any) -> Any:
    net = torch.nn.Linear(2, 2)
    torch.nn.init.ones_(net.weight)
    torch.nn.init.zeros_(net.bias)
    before = net.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    after = net.register_forward_hook(lambda module, args, result: result + 1)
    both = net(torch.ones(1, 2))
    before.remove()
    one = net(torch.ones(1, 2))
    after.remove()
    return both, one, net(torch.ones(1, 2))


def parameters_are_leaves(torch: Any) -> Any:
    p = torch.nn.Parameter(torch.ones(2))
    q = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    shared = torch.ones(2)
    r = torch.nn.Parameter(shared)
    shared.fill_(5.0)
    return repr(p), p.is_leaf, p.requires_grad, q.requires_grad, r, isinstance(p, torch.Tensor)


def parameters_compute_tensors(torch: Any) -> Any:
    p = torch.nn.Parameter(torch.ones(2))
    y = p * 2
    return type(y).__name__ == "Tensor", isinstance(y, torch.nn.Parameter)


def deep_copies(torch: Any) -> Any:
    import copy

    net = _net(torch)
    other = copy.deepcopy(net)
    with torch.no_grad():
        other.first.fc.weight.fill_(1.0)
    apart = bool((net.first.fc.weight == other.first.fc.weight).all())
    shared = other.table["b"] is other.first
    return apart, shared, [name for name, _ in other.named_parameters()]


def get_submodule(torch: Any) -> Any:
    net = _net(torch)
    return type(net.get_submodule("blocks.1.fc")).__name__, net.get_submodule("") is net


def evaluation_draws_nothing(torch: Any) -> Any:
    net = torch.nn.Dropout(0.9).eval()
    x = torch.ones(4)
    return net(x) is x


def dropout_keeps_the_mean(torch: Any) -> Any:
    torch.manual_seed(0)
    y = torch.nn.functional.dropout(torch.ones(10000), 0.25)
    kept = y[y != 0]
    return bool((kept == kept[0]).all()), kept[0], 0.7 < len(kept) / 10000 < 0.8


def xor_is_learnt(torch: Any) -> Any:
    """Four points, a hidden layer, full gradient descent: the same losses step by step."""
    nn = torch.nn
    net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    with torch.no_grad():
        for number, parameter in enumerate(net.parameters()):
            flat = torch.arange(parameter.numel()).to(torch.float32)
            parameter.copy_(torch.sin(flat * 2.3 + number).reshape(parameter.shape))
    x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    t = torch.tensor([[0.0], [1.0], [1.0], [0.0]])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(net(x), t)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[::5], losses[-1] < losses[0]


def _with_gradients(torch: Any) -> Any:
    net = torch.nn.Linear(3, 2)
    for number, parameter in enumerate(net.parameters()):
        flat = torch.arange(parameter.numel()).to(torch.float32)
        parameter.grad = (torch.sin(flat + number) * 3).reshape(parameter.shape)
    return net


def clipped_norms(torch: Any) -> Any:
    found = []
    for norm_type in (2.0, 1.0, float("inf")):
        for most in (0.5, 100.0):
            net = _with_gradients(torch)
            norm = torch.nn.utils.clip_grad_norm_(net.parameters(), most, norm_type)
            found.append((norm, net.weight.grad, net.bias.grad))
    return found, torch.nn.utils.clip_grad_norm_([torch.ones(1)], 1.0)


def clipped_values(torch: Any) -> Any:
    net = _with_gradients(torch)
    torch.nn.utils.clip_grad_value_(net.parameters(), 1.0)
    return net.weight.grad, net.bias.grad


def infinite_norm_is_refused(torch: Any) -> Any:
    net = _with_gradients(torch)
    net.bias.grad.fill_(float("inf"))
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)


def parameters_as_a_vector(torch: Any) -> Any:
    net = torch.nn.Linear(3, 2)
    torch.nn.utils.vector_to_parameters(torch.arange(8).to(torch.float32), net.parameters())
    vector = torch.nn.utils.parameters_to_vector(net.parameters())
    (vector * vector).sum().backward()
    return net.weight, net.bias, vector, net.bias.grad


def _trained(torch: Any, name: str, options: Any) -> Any:
    """Thirty steps with a schedule and clipped gradients: the losses, and that of evaluation."""
    nn, optim = torch.nn, torch.optim
    net = nn.Sequential(
        nn.Linear(6, 16), nn.BatchNorm1d(16), nn.SiLU(), nn.LayerNorm(16), nn.Linear(16, 4)
    )
    with torch.no_grad():
        for number, one in enumerate(net.parameters()):
            flat = torch.arange(one.numel()).to(torch.float32)
            one.copy_((torch.sin(flat * 1.3 + number) / 2).reshape(one.shape))
    x = torch.sin(torch.arange(120).to(torch.float32)).reshape(20, 6)
    labels = torch.tensor([place % 4 for place in range(20)])
    optimizer = getattr(optim, name)(net.parameters(), **options)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), labels, label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    losses.append(nn.functional.cross_entropy(net.eval()(x), labels).item())
    return losses


def trained_by_sgd(torch: Any) -> Any:
    return _trained(torch, "SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True})


def trained_by_adam(torch: Any) -> Any:
    return _trained(torch, "Adam", {"lr": 0.01, "amsgrad": True, "weight_decay": 0.01})
