"""Layers: their text, their state, what they compute, and the gradients of their parameters."""

from typing import Any

_SETTINGS: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = [
    ("Linear", (3, 4), {}, (5, 3)),
    ("Linear", (3, 4), {"bias": False}, (2, 5, 3)),
    ("Identity", (7,), {}, (5, 3)),
    ("Flatten", (), {}, (2, 3, 4)),
    ("Flatten", (0, 1), {}, (2, 3, 4)),
    ("Unflatten", (1, (2, 3)), {}, (2, 6)),
    ("ReLU", (), {}, (5, 3)),
    ("ReLU", (True,), {}, (5, 3)),
    ("ReLU6", (), {}, (5, 3)),
    ("LeakyReLU", (0.3,), {"inplace": True}, (5, 3)),
    ("ELU", (0.5,), {}, (5, 3)),
    ("SELU", (), {}, (5, 3)),
    ("SiLU", (), {"inplace": True}, (5, 3)),
    ("Mish", (), {}, (5, 3)),
    ("GELU", (), {}, (5, 3)),
    ("GELU", ("tanh",), {}, (5, 3)),
    ("Sigmoid", (), {}, (5, 3)),
    ("LogSigmoid", (), {}, (5, 3)),
    ("Tanh", (), {}, (5, 3)),
    ("Softsign", (), {}, (5, 3)),
    ("Softplus", (2.0, 3.0), {}, (5, 3)),
    ("Hardtanh", (-0.5, 2.0), {}, (5, 3)),
    ("Hardsigmoid", (), {}, (5, 3)),
    ("Hardswish", (), {}, (5, 3)),
    ("PReLU", (), {}, (5, 3)),
    ("PReLU", (3,), {}, (5, 3)),
    ("Softmax", (-1,), {}, (5, 3)),
    ("LogSoftmax", (0,), {}, (5, 3)),
    ("Softmin", (1,), {}, (5, 3)),
    ("LayerNorm", (3,), {}, (5, 3)),
    ("LayerNorm", ((4, 3),), {"bias": False}, (5, 4, 3)),
    ("LayerNorm", (3,), {"elementwise_affine": False}, (5, 3)),
    ("RMSNorm", (3,), {"eps": 1e-3}, (5, 3)),
    ("RMSNorm", (3,), {"elementwise_affine": False}, (5, 3)),
    ("GroupNorm", (2, 4), {}, (3, 4, 5)),
    ("GroupNorm", (2, 4), {"affine": False}, (3, 4, 5)),
    ("BatchNorm1d", (3,), {}, (5, 3)),
    ("BatchNorm1d", (3,), {"momentum": None}, (5, 3, 2)),
    ("BatchNorm2d", (3,), {"affine": False}, (5, 3, 2, 2)),
    ("BatchNorm3d", (3,), {"track_running_stats": False}, (5, 3, 2, 2, 1)),
    ("InstanceNorm1d", (3,), {"affine": True}, (5, 3, 4)),
    ("InstanceNorm2d", (3,), {"track_running_stats": True}, (5, 3, 2, 2)),
    ("InstanceNorm2d", (3,), {}, (3, 2, 2)),
    ("Dropout", (0.0,), {}, (5, 3)),
    ("Dropout", (1.0,), {"inplace": True}, (5, 3)),
]


def _numbers(torch: Any, *shape: int) -> Any:
    count = 1
    for size in shape:
        count *= size
    return torch.sin(torch.arange(count).to(torch.float64) * 1.7 + 0.4).reshape(shape) * 2


def _set(torch: Any, module: Any) -> Any:
    module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(_numbers(torch, *parameter.shape))
    return module


def _layer(place: int) -> Any:
    name, args, settings, shape = _SETTINGS[place]

    def program(torch: Any) -> Any:
        layer = _set(torch, getattr(torch.nn, name)(*args, **settings))
        x = _numbers(torch, *shape).requires_grad_()
        found = []
        for mode in (True, False):
            layer.train(mode)
            y = layer(x.clone())
            grads = torch.autograd.grad((y * y).sum(), [x, *layer.parameters()])
            found.append((y, *grads))
        state = layer.state_dict()
        return found, repr(layer), list(state), list(state.values()), layer.training

    program.__name__ = f"{name}_{place}"
    return program


for _place in range(len(_SETTINGS)):
    _program = _layer(_place)
    globals()[_program.__name__] = _program
    _program.__module__ = __name__


def embedding(torch: Any) -> Any:
    layer = _set(torch, torch.nn.Embedding(5, 3, padding_idx=-2))
    y = layer(torch.tensor([[0, 3], [4, 4]]))
    (y * y).sum().backward()
    return y, layer.weight.grad, repr(layer), list(layer.state_dict()), layer.padding_idx


def embedding_of_given_rows(torch: Any) -> Any:
    rows = _numbers(torch, 4, 2)
    layer = torch.nn.Embedding.from_pretrained(rows)
    return layer(torch.tensor([1, 1])), layer.weight.requires_grad, repr(layer)


def embedding_begins_with_zeros_at_its_padding(torch: Any) -> Any:
    layer = torch.nn.Embedding(5, 3, padding_idx=2)
    return layer.weight[2].abs().sum().item(), (layer.weight.abs().sum(1) > 0).sum().item()


def _attention(torch: Any, settings: Any, shapes: Any, call: Any) -> Any:
    layer = _set(torch, torch.nn.MultiheadAttention(4, 2, **settings))
    inputs = [_numbers(torch, *shape).requires_grad_() for shape in shapes]
    y, weights = layer(*inputs, **call)
    grads = torch.autograd.grad((y * y).sum(), [*inputs, *layer.parameters()])
    return y, weights, grads, list(layer.state_dict())


def attention(torch: Any) -> Any:
    return _attention(torch, {}, [(5, 3, 4), (6, 3, 4), (6, 3, 4)], {})


def attention_without_weights(torch: Any) -> Any:
    call = {"need_weights": False, "attn_mask": _numbers(torch, 5, 6)}
    return _attention(torch, {"batch_first": True}, [(3, 5, 4), (3, 6, 4), (3, 6, 4)], call)


def attention_of_other_sizes(torch: Any) -> Any:
    call = {"average_attn_weights": False, "attn_mask": _numbers(torch, 5, 6) > 1}
    settings = {"kdim": 3, "vdim": 2, "bias": False}
    return _attention(torch, settings, [(5, 3, 4), (6, 3, 3), (6, 3, 2)], call)


def attention_with_padding(torch: Any) -> Any:
    padding = torch.tensor([[False, False, True], [False, True, True]])
    shapes = [(2, 3, 4)] * 3
    return _attention(torch, {"batch_first": True}, shapes, {"key_padding_mask": padding})


def attention_of_one_example(torch: Any) -> Any:
    return _attention(torch, {}, [(5, 4), (6, 4), (6, 4)], {})


def losses(torch: Any) -> Any:
    nn = torch.nn
    x, t = _numbers(torch, 4, 3), _numbers(torch, 4, 3) * 0.3
    p, q = torch.sigmoid(x), torch.sigmoid(t)
    labels, weight = torch.tensor([0, 2, 1, 2]), torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
    found = [
        nn.MSELoss()(x, t), nn.L1Loss(reduction="sum")(x, t), nn.SmoothL1Loss(beta=0.5)(x, t),
        nn.HuberLoss("none", 0.5)(x, t), nn.BCELoss(weight)(p, q), nn.BCELoss()(p, q),
        nn.BCEWithLogitsLoss(pos_weight=weight)(x, q), nn.BCEWithLogitsLoss()(x, q),
        nn.KLDivLoss(reduction="batchmean")(x, p), nn.CrossEntropyLoss()(x, labels),
        nn.CrossEntropyLoss(weight, label_smoothing=0.1)(x, labels),
        nn.NLLLoss(ignore_index=2)(x, labels), nn.CrossEntropyLoss()(x, p),
    ]  # fmt: skip
    return found, repr(nn.CrossEntropyLoss(weight)), list(nn.NLLLoss(weight).state_dict())


def old_style_reduction(torch: Any) -> Any:
    return torch.nn.MSELoss(size_average=False)(torch.ones(3), torch.zeros(3))


def broadcast_target_warns(torch: Any) -> Any:
    return torch.nn.functional.mse_loss(torch.ones(3, 2), torch.zeros(2))


def softmax_without_axis_warns(torch: Any) -> Any:
    return torch.nn.Softmax()(torch.ones(3, 2))


def probabilities_of_zero_and_one(torch: Any) -> Any:
    p = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.5], requires_grad=True)
    call = torch.nn.functional.binary_cross_entropy
    loss = call(p, torch.tensor([0.0, 1.0, 1.0, 0.0, 1.0]), reduction="none")
    loss.sum().backward()
    return loss, p.grad


def rows_that_are_masked_out(torch: Any) -> Any:
    x = torch.tensor([[1.0, -float("inf")], [-float("inf"), -float("inf")]])
    nothing = torch.nn.functional.cross_entropy(x[:1], torch.tensor([-100]))
    return torch.nn.functional.softmax(x, -1), nothing
