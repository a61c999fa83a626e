"""Modules without a peer: gradients against differences, depth, copies, initial values."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import symgrad as sg
import symgrad.nn.functional as F
from symgrad import nn
from symgrad.errors import SymgradError
from symgrad.frontend.trace import trace
from symgrad.kernels import plan
from symgrad.nn.errors import MissingForwardError
from symgrad.numpy_op import NumpyOp

LAYERS: list[tuple[Any, tuple[int, ...]]] = [
    (lambda: nn.Linear(3, 2), (4, 3)),
    (lambda: nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.LayerNorm(4)), (2, 3)),
    (lambda: nn.RMSNorm(3), (4, 3)),
    (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
    (lambda: nn.BatchNorm1d(3, track_running_stats=False), (4, 3)),
    (lambda: nn.BatchNorm1d(3).eval(), (4, 3)),
    (lambda: nn.InstanceNorm1d(3, affine=True), (2, 3, 4)),
    (lambda: nn.PReLU(3), (4, 3)),
    (lambda: nn.Softmax(0), (4, 3)),
]


@pytest.mark.parametrize(("make", "shape"), LAYERS)
def test_gradients_are_right(make: Any, shape: tuple[int, ...]) -> None:
    """First and second derivatives with respect to the input and every parameter."""
    sg.manual_seed(1)
    layer = make().double()
    names = [name for name, _ in layer.named_parameters()]
    x = sg.randn(*shape, dtype="float64", requires_grad=True)

    def call(x: Any, *values: Any) -> Any:
        for name, value in zip(names, values, strict=True):
            path, _, last = name.rpartition(".")
            layer.get_submodule(path)._parameters[last] = value
        return layer(x)

    values = [parameter.detach().clone().requires_grad_() for parameter in layer.parameters()]
    assert sg.gradcheck(call, (x, *values))
    assert sg.gradgradcheck(call, (x, *values))


def test_attention_has_right_gradients() -> None:
    sg.manual_seed(2)
    inputs = [sg.randn(2, 3, 4, dtype="float64", requires_grad=True) for _ in range(3)]

    def call(query: Any, key: Any, value: Any) -> Any:
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)

    assert sg.gradcheck(call, inputs)
    assert sg.gradgradcheck(call, inputs)


@pytest.mark.slow
def test_functions_run_in_a_trace() -> None:
    """A Function whose forward calls ``functional``: its derived backward is that of the layers."""

    class Block(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any, bias: Any) -> Any:
            return F.layer_norm(F.gelu(F.linear(x, weight, bias)), (4,))

    op = sg.compile(Block, "f32[n k]", "f32[4 k]", "f32[4]")
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((5, 3), (4, 3), (4,))]
    tensors = [sg.tensor(array, requires_grad=True) for array in arrays]
    y = F.layer_norm(F.gelu(F.linear(*tensors)), (4,))
    given = rng.standard_normal((5, 4)).astype(np.float32)
    y.backward(sg.tensor(given))
    found, residuals = op.forward(*arrays)
    np.testing.assert_allclose(found, y.detach().numpy(), rtol=1e-4, atol=1e-5)
    for mine, tensor in zip(op.backward(residuals, given), tensors, strict=True):
        np.testing.assert_allclose(mine, tensor.grad.numpy(), rtol=1e-3, atol=1e-4)


TRACED: list[tuple[Any, dict[str, tuple[int, ...]]]] = [
    (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        {"f32[b n k]": (2, 4, 3), "f32[m k]": (5, 3), "f32[1 m d]": (1, 5, 2)},
    ),
    (
        lambda x: F.group_norm(F.batch_norm(F.silu(x), None, None, training=True), 2),
        {"f32[n 4 h w]": (3, 4, 2, 2)},
    ),
    (lambda x, w: F.rms_norm(F.prelu(x, w), x.shape[-1:]), {"f32[n c]": (3, 4), "f32[c]": (4,)}),
    (lambda x: F.log_softmax(x, 1), {"f32[n c m]": (2, 3, 4)}),
]


@pytest.mark.parametrize(("call", "shapes"), TRACED)
def test_functional_in_a_trace(call: Any, shapes: dict[str, tuple[int, ...]]) -> None:
    """Traced for all sizes, the functions compute what they compute eagerly."""

    class Traced(sg.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any = None, c: Any = None) -> Any:
            return call(*(one for one in (a, b, c) if one is not None))

    specs = [*shapes, None, None][:3]
    op = NumpyOp(plan(trace(Traced, *specs)))  # the graph, node by node
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes.values()]
    expected = call(*map(sg.tensor, arrays)).numpy()
    np.testing.assert_allclose(op(*arrays), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_model_under_jit() -> None:
    """Fused kernels of a whole model: the loss and every gradient of the eager one."""
    sg.manual_seed(6)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(7, 8)
            self.norm = nn.RMSNorm(8)
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
            self.head = nn.Linear(8, 7)

        def forward(self, tokens: Any, labels: Any) -> Any:
            x = self.norm(self.table(tokens))
            x = x + self.attention(x, x, x, need_weights=False)[0]
            return F.cross_entropy(self.head(F.silu(x)).flatten(0, 1), labels.flatten())

    model = Model()
    tokens, labels = (sg.randint(0, 7, (3, 5)) for _ in range(2))
    found = []
    for call in (model, sg.jit(model)):
        model.zero_grad()
        loss = call(tokens, labels)
        loss.backward()
        found.append([loss.item(), *(np.asarray(one.grad) for one in model.parameters())])
    for eager, compiled in zip(*found, strict=True):
        np.testing.assert_allclose(compiled, eager, rtol=1e-3, atol=1e-6)


def test_depth_is_no_recursion() -> None:
    """Ten thousand modules inside each other."""
    net: nn.Module = nn.Linear(1, 1)
    for _ in range(10_000):
        outer = nn.Module()
        outer.inner = net
        net = outer
    assert len(list(net.modules())) == 10_001
    assert len(net.state_dict()) == 2
    net.train(False).double().requires_grad_(False).zero_grad()
    seen: list[nn.Module] = []
    net.apply(seen.append)
    assert type(seen[0]) is nn.Linear
    assert seen[-1] is net
    shallow: nn.Module = nn.ReLU()
    for _ in range(1200):
        outer = nn.Module()
        outer.inner = shallow
        shallow = outer
    assert repr(shallow).count("Module(") == 1200


def test_copies_and_pickles() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    x = sg.randn(4, 2)
    net(x)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert repr(other) == repr(net)
        assert type(next(other.parameters())) is nn.Parameter
        for name, tensor in net.state_dict().items():
            assert np.array_equal(other.state_dict()[name].numpy(), tensor.numpy())
        with sg.no_grad():
            other[0].weight.fill_(7.0)
        assert not np.array_equal(other[0].weight.detach().numpy(), net[0].weight.detach().numpy())


def test_seeds_reproduce_layers() -> None:
    def made() -> list[Any]:
        sg.manual_seed(5)
        layers = (nn.Linear(3, 4), nn.Embedding(4, 3), nn.MultiheadAttention(4, 2))
        drawn = F.dropout(sg.ones(20)).numpy()
        return [drawn, *(one.detach().numpy() for layer in layers for one in layer.parameters())]

    for one, other in zip(made(), made(), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("fill", "deviation"),
    [
        (lambda t: nn.init.uniform_(t, -3.0, 3.0), 3 / 3**0.5),
        (lambda t: nn.init.normal_(t, 0.0, 2.0), 2.0),
        (lambda t: nn.init.xavier_uniform_(t, 2.0), 2 * (2 / 500) ** 0.5),
        (lambda t: nn.init.xavier_normal_(t), (2 / 500) ** 0.5),
        (lambda t: nn.init.kaiming_uniform_(t, a=5**0.5), (1 / 3 / 300) ** 0.5),
        (lambda t: nn.init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"), 0.1),
        (lambda t: nn.init.trunc_normal_(t, a=-100.0, b=100.0), 1.0),
    ],
)
def test_deviations_of_initial_values(fill: Any, deviation: float) -> None:
    sg.manual_seed(3)
    tensor = nn.Parameter(sg.empty(200, 300))
    assert fill(tensor) is tensor
    found = tensor.detach().numpy()
    assert abs(found.std() / deviation - 1) < 0.02
    assert abs(found.mean()) < 0.02 * deviation
    assert tensor.is_leaf
    assert tensor.requires_grad


def test_constant_initial_values() -> None:
    assert nn.init.eye_(sg.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert nn.init.ones_(sg.empty(2)).tolist() == [1, 1]
    assert nn.init.zeros_(sg.ones(2)).tolist() == [0, 0]
    cut = nn.init.trunc_normal_(sg.empty(1000), a=-0.5, b=0.25).numpy()
    assert cut.min() >= -0.5
    assert cut.max() <= 0.25


def test_masked_rows_of_attention() -> None:
    """What a mask leaves out has no influence, and gets no gradient."""
    sg.manual_seed(4)
    query, key, value = (sg.randn(1, 3, 4, requires_grad=True) for _ in range(3))
    mask = sg.tensor([[True, True, False]]).expand(3, 3)
    y = F.scaled_dot_product_attention(query, key, value, mask)
    y.sum().backward()
    assert not key.grad.numpy()[:, 2].any()
    assert not value.grad.numpy()[:, 2].any()


def test_options_that_there_are_not() -> None:
    for call in (
        lambda: nn.Embedding(3, 2, max_norm=1.0),
        lambda: nn.MultiheadAttention(4, 2, add_bias_kv=True),
        lambda: F.embedding(sg.tensor([0]), sg.ones(1, 1), sparse=True),
    ):
        with pytest.raises(NotImplementedError):
            call()
    with pytest.raises(MissingForwardError):
        nn.Module()(1)
    with pytest.raises(SymgradError, match="divisible by num_heads"):
        nn.MultiheadAttention(5, 2)
