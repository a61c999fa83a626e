"""Eager operations and a training step: symgrad eager, under ``sg.jit``, and PyTorch.

    python -m benchmarks.eager [--quick] [--threads 1]

Prints microseconds for forward and backward together, and how many times longer PyTorch takes.
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import symgrad as sg

SHAPES = ((4, 32), (64, 128), (512, 1024))
REPEATS, SECONDS = 5, 0.1

Step = Callable[[], Any]


def microseconds(step: Step, seconds: float) -> float:
    """The least time of one call, over several rounds."""
    step()
    step()
    once = max(timeit.timeit(step, number=1), 1e-6)
    number = max(1, int(seconds / once / REPEATS))
    return min(timeit.repeat(step, number=number, repeat=REPEATS)) / number * 1e6


def values(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda lib, x: x + x,
    "exp": lambda lib, x: lib.exp(x),
    "tanh": lambda lib, x: lib.tanh(x),
    "sigmoid": lambda lib, x: lib.sigmoid(x),
    "gelu": lambda lib, x: lib.gelu(x),
    "silu": lambda lib, x: lib.silu(x),
    "softplus": lambda lib, x: lib.softplus(x),
    "softmax": lambda lib, x: lib.softmax(x, -1),
    "log_softmax": lambda lib, x: lib.log_softmax(x, -1),
    "logsumexp": lambda lib, x: lib.logsumexp(x, -1),
    "layer_norm": lambda lib, x: lib.layer_norm(x, (x.shape[-1],), x[0].detach(), x[1].detach()),
    "sum": lambda lib, x: x.sum(),
    "matmul": lambda lib, x: x @ x.detach().t(),
}


class Torch:
    """PyTorch's functions under one roof, as symgrad has them."""

    def __init__(self) -> None:
        import torch

        self._places = (torch, torch.nn.functional)

    def __getattr__(self, name: str) -> Any:
        return next(getattr(place, name) for place in self._places if hasattr(place, name))


def operation_steps(name: str, shape: tuple[int, int]) -> dict[str, Step]:
    """Forward and backward of one operation, in each way."""
    call = OPERATIONS[name]
    x = sg.from_numpy(values(*shape)).requires_grad_()
    vector = sg.ones(*call(sg, x).shape)
    compiled = sg.jit(lambda t: call(sg, t))
    steps: dict[str, Step] = {
        "eager": lambda: call(sg, x).backward(vector),
        "jit": lambda: compiled(x).backward(vector),
    }
    lib = torch_or_none()
    if lib is not None:
        t = lib.from_numpy(values(*shape)).requires_grad_()
        ones = lib.ones_like(call(lib, t))
        steps["torch"] = lambda: call(lib, t).backward(ones)
    return steps


def loss_of(lib: Any, x: Any, weights: Sequence[Any]) -> Any:
    """A perceptron of two hidden layers and the mean of the squares of what comes out."""
    first, second, third = weights
    hidden = lib.gelu(x @ first)
    hidden = lib.gelu(hidden @ second)
    return (hidden @ third).square().mean()


def network_steps(batch: int, width: int) -> dict[str, Step]:
    """Forward, backward and a step of gradient descent, in each way."""
    arrays = [values(width, width) * width**-0.5 for _ in range(3)]
    x = sg.from_numpy(values(batch, width))
    weights = [sg.from_numpy(array.copy()).requires_grad_() for array in arrays]
    compiled = sg.jit(lambda t, w: loss_of(sg, t, w))
    steps: dict[str, Step] = {
        "eager": lambda: descend(sg, loss_of(sg, x, weights), weights),
        "jit": lambda: descend(sg, compiled(x, weights), weights),
    }
    lib = torch_or_none()
    if lib is not None:
        t = lib.from_numpy(values(batch, width))
        copies = [lib.from_numpy(array.copy()).requires_grad_() for array in arrays]
        steps["torch"] = lambda: descend(lib, loss_of(lib, t, copies), copies)
    return steps


def descend(lib: Any, loss: Any, weights: Sequence[Any]) -> None:
    """One step downhill."""
    loss.backward()
    with lib.no_grad():
        for weight in weights:
            weight.sub_(weight.grad, alpha=1e-3)
            weight.grad = None


_torch: list[Any] = []


def torch_or_none() -> Any:
    """PyTorch, where it is installed."""
    if not _torch:
        try:
            _torch.append(Torch())
        except ImportError:
            _torch.append(None)
    return _torch[0]


def row(name: str, steps: dict[str, Step], seconds: float) -> str:
    """One line of the table."""
    found = {way: microseconds(step, seconds) for way, step in steps.items()}
    cells = [f"{found[way]:10.1f}" if way in found else " " * 10 for way in WAYS]
    if "torch" in found:
        cells += [f"{found['torch'] / found[way]:7.2f}" for way in ("eager", "jit")]
    return f"{name:24s}" + "".join(cells)


WAYS = ("eager", "jit", "torch")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one shape, a tenth of the time")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    sg.set_num_threads(options.threads)
    if (lib := torch_or_none()) is not None:
        lib.set_num_threads(options.threads)
    seconds = SECONDS / 10 if options.quick else SECONDS
    print(f"{'µs, forward + backward':24s}" + "".join(f"{way:>10s}" for way in WAYS)
          + "  torch / eager, jit")  # fmt: skip
    for shape in SHAPES[1:2] if options.quick else SHAPES:
        for name in OPERATIONS:
            label = f"{name} {shape[0]}x{shape[1]}"
            print(row(label, operation_steps(name, shape), seconds), flush=True)
    for batch, width in ((32, 64),) if options.quick else ((32, 64), (256, 256)):
        label = f"network {batch}x{width}"
        print(row(label, network_steps(batch, width), seconds), flush=True)


if __name__ == "__main__":
    main()
