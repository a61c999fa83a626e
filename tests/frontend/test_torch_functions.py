"""Functions of torch called with traced tensors: an error with the user's line, never a crash.

torch's C code reads the memory of what claims to be a ``torch.Tensor``.  So each program runs in
a process of its own, which must end by itself.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.peers, pytest.mark.slow]

CALLS = {
    "function": "torch.sin(x)",
    "functional": "TF.relu(x)",
    "python functional": "TF.gelu(x) + TF.softmax(x, 0)",
    "layer": "torch.nn.Linear(3, 3)(x)",
    "module": "torch.nn.Softplus()(x)",
    "method": "torch.Tensor.sin(x)",
    "tensor": "torch.tensor(x)",
    "tensor of a list": "torch.tensor([x, x])",
    "as_tensor": "torch.as_tensor(x)",
    "asarray": "torch.asarray(x)",
    "from_numpy": "torch.from_numpy(x)",
    "from_dlpack": "torch.from_dlpack(x)",
    "class": "torch.Tensor(x)",
    "typed class": "torch.FloatTensor(x)",
    "parameter": "torch.nn.Parameter(x)",
    "zeros_like": "torch.zeros_like(x)",
    "size": "torch.zeros(x.shape)",
    "fill": "torch.full((2,), x)",
    "stack": "torch.stack([x, x])",
    "where": "torch.where(W > 0, x, W)",
    "einsum": "torch.einsum('i,i->i', W, x)",
    "out": "torch.sin(W, out=x)",
    "constant on the left": "W * x",
    "constant on the right": "x * W",
    "matrix product": "W @ x",
    "power": "x ** W",
    "compared": "W < x",
    "equal": "x == W",
    "in place": "x.mul_(W)",
    "into a constant": "W.clone().add_(x)",
    "method of a constant": "W.add(x)",
    "index": "W[x]",
    "set item": "W.clone().__setitem__(0, x)",
    "item set": "x.__setitem__(0, W)",
    "autograd": "torch.autograd.grad(x, x)",
    "own function": "Theirs.apply(x)",
    "functional transform": "torch.func.vmap(torch.sin)(x)",
    "given to symgrad": "sg.add(x, W)",
}
CONVERTED = (
    "method", "tensor", "tensor of a list", "as_tensor", "asarray", "from_numpy", "from_dlpack",
    "class", "typed class", "parameter", "size", "functional transform", "index", "item set",
    "in place", "given to symgrad",
)  # fmt: skip
"""Those that torch does not ask ``__torch_function__`` about."""
PROGRAM = """
import json, sys, warnings
import symgrad as sg, torch, torch.nn.functional as TF
warnings.simplefilter("ignore")
W = torch.ones(3)


class Theirs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.sin(x)


def told(run):
    try:
        found = run()
    except Exception as error:
        ours = isinstance(error, sg.SymgradError)
        return type(error).__name__, str(error.location if ours else ""), str(error)
    return "", "", str(getattr(found, "verdict", "ran"))


CALLS = json.loads(sys.argv[1])
for name, text in CALLS.items():
    body = compile("lambda x: " + text, "<user>", "eval")
    call = eval(body)

    class Forward(sg.Function):
        @staticmethod
        def forward(ctx, x):
            return call(x)
        @staticmethod
        def backward(ctx, grad):
            return grad

    class Backward(sg.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2
        @staticmethod
        def backward(ctx, grad):
            return call(grad)

    print(json.dumps([name, {
        "forward": told(lambda: sg.verify(Forward, "3")),
        "any": told(lambda: sg.verify(Forward, "n")),
        "backward": told(lambda: sg.verify(Backward, "3")),
        "jit": told(lambda: sg.jit(call)(sg.ones(3))),
        "vmap": told(lambda: sg.vmap(call)(sg.ones(2, 3))),
        "vjp": told(lambda: sg.func.vjp(call, sg.ones(3))),
    }]), flush=True)
"""


@pytest.fixture(scope="module")
def told() -> dict[str, dict[str, list[str]]]:
    """What became of each call, in each kind of trace, as far as the process came."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(CALLS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = dict(json.loads(line) for line in done.stdout.splitlines())
    assert done.returncode == 0, (list(found)[-1:], done.stderr[-2000:])
    return found


@pytest.mark.parametrize("name", CALLS)
def test_a_torch_function_with_a_traced_tensor_is_an_error(
    told: dict[str, dict[str, list[str]]], name: str
) -> None:
    """No process ends by a signal, and no verdict rests on a tensor that torch computed."""
    found = told[name]
    for mode in ("forward", "any"):
        kind, place, _ = found[mode]
        assert kind.endswith("Error"), (mode, found[mode])
        assert kind == "ProtocolError" or place.startswith(("<user>", "<string>")), found[mode]
    assert found["backward"][2] != "PROVED"
    assert "TorchFunctionError" in {kind for kind, *_ in found.values()} or name in CONVERTED


def test_the_class_of_a_traced_tensor_is_not_torchs() -> None:
    """As when it runs on values: so the branch that is judged is the branch that runs."""
    import torch

    import symgrad as sg

    class Asks(sg.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x * 2 if isinstance(x, torch.Tensor) or type(x) is torch.Tensor else x * 3

        @staticmethod
        def backward(ctx, grad):  # type: ignore[no-untyped-def]
            return grad * 2

    assert not isinstance(sg.ones(2), torch.Tensor)
    assert sg.verify(Asks, "n").verdict == "REFUTED"
