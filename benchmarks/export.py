"""Exported ops beside torch's own: calls per second, and a training step of a small model.

In: the kernels of ``symgrad.generated``, exported.  Out: Markdown tables on standard output, and in
``benchmarks/EXPORT.md`` with ``--write``.

Contestants take turns, many rounds; the figure is the median of the rounds, in processor
time on one thread.  A ratio
is torch's time over ours: above 1 the exported op makes more calls in a second.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from symgrad import generated
from symgrad.export import torch as export

functional = torch.nn.functional


def race(calls: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """The seconds of processor time of one call of each; they take turns, many rounds."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    counts = {}
    for name, call in calls.items():
        for _ in range(20):
            call()
        begun = time.process_time()
        for _ in range(20):
            call()
        counts[name] = max(1, round(0.002 / max((time.process_time() - begun) / 20, 1e-7)))
    end = time.process_time() + seconds * len(calls)
    while time.process_time() < end:
        for name, call in calls.items():
            begun = time.process_time()
            for _ in range(counts[name]):
                call()
            found[name].append((time.process_time() - begun) / counts[name])
    return {name: statistics.median(times) for name, times in found.items()}


def _softmax(x: Any) -> Any:
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def _layer_norm(x: Any, w: Any, b: Any) -> Any:
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt((centred * centred).mean(-1, keepdim=True) + 1e-5) * w + b


# The module, torch's own op, what a user writes who lacks one, and the number of inputs.
OPS: dict[str, tuple[str, Callable[..., Any], Callable[..., Any], int]] = {
    "gelu": (
        "nn_gelu", functional.gelu, lambda x: 0.5 * x * (1 + torch.erf(x * 0.7071067811865476)), 1,
    ),
    "silu": ("nn_silu", functional.silu, lambda x: x * torch.sigmoid(x), 1),
    "softmax": ("nn_softmax", lambda x: torch.softmax(x, -1), _softmax, 1),
    "layer norm": (
        "nn_layer_norm", lambda x, w, b: functional.layer_norm(x, w.shape, w, b), _layer_norm, 3,
    ),
}  # fmt: skip


class Empty(torch.autograd.Function):
    """What a Function costs that computes nothing."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


def inputs_of(count: int, elements: int) -> list[Any]:
    side = round(elements**0.5)
    torch.manual_seed(0)
    return [torch.randn(side, side), torch.randn(side), torch.randn(side)][:count]


def calls(name: str, elements: int, seconds: float) -> str:
    """One line of the first table: forward alone, then forward and backward."""
    module, theirs, composed, count = OPS[name]
    op = export.custom_op(getattr(generated, module))
    apply = export.function(getattr(generated, module)).apply
    plain = inputs_of(count, elements)
    leaves = [one.clone().requires_grad_() for one in plain]
    cotangent = torch.ones_like(plain[0])

    def both(call: Callable[..., Any], leaves: Any = leaves) -> Callable[[], Any]:
        return lambda: torch.autograd.grad(call(*leaves), leaves, cotangent)

    for other in (theirs, composed):
        torch.testing.assert_close(both(op)(), both(other)(), rtol=1e-3, atol=1e-4)
    alone = race(
        {"symgrad": lambda: op(*plain), "torch": lambda: theirs(*plain),
         "composed": lambda: composed(*plain)}, seconds,
    )  # fmt: skip
    found = race(
        {"symgrad": both(op), "function": both(apply), "overload": both(op.overload),
         "torch": both(theirs), "composed": both(composed), "empty": both(Empty.apply, leaves[:1])},
        seconds,
    )  # fmt: skip
    cells = [f"{1 / alone['symgrad']:,.0f}"]
    cells += [f"{alone[one] / alone['symgrad']:.2f}" for one in ("torch", "composed")]
    cells += [f"{1 / found['symgrad']:,.0f}"]
    cells += [
        f"{found[one] / found['symgrad']:.2f}"
        for one in ("torch", "composed", "empty", "function", "overload")
    ]
    return f"| {name} | {elements} | {' | '.join(cells)} |"


class Net(nn.Module):
    """A perceptron of three layers with a norm, whose two nonlinear operations are given."""

    def __init__(self, act: Any, norm: Any, width: int = 128) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(64, width), nn.Linear(width, width)
        self.last = nn.Linear(width, 10)
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.act, self.norm = act, norm

    def forward(self, x: Any) -> Any:
        hidden = self.norm(self.act(self.first(x)), self.weight, self.bias)
        return self.last(self.act(self.second(hidden)))


def step_of(net: Any, compiled: bool) -> Callable[[], Any]:
    """A step of training on the same data."""
    torch.manual_seed(0)
    data, labels = torch.randn(64, 64), torch.randint(0, 10, (64,))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    run = torch.compile(net, fullgraph=True) if compiled else net

    def step() -> float:
        optimizer.zero_grad()
        loss = functional.cross_entropy(run(data), labels)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def training(compiled: bool, seconds: float) -> str:
    """One line of the second table."""
    ours = export.custom_op(generated.nn_gelu), export.custom_op(generated.nn_layer_norm)
    theirs = functional.gelu, OPS["layer norm"][1]
    steps, losses = {}, {}
    for name, (act, norm) in (("symgrad", ours), ("torch", theirs)):
        torch.manual_seed(1)
        step = steps[name] = step_of(Net(act, norm), compiled)
        losses[name] = [step() for _ in range(20)]
    torch.testing.assert_close(losses["symgrad"], losses["torch"], rtol=1e-3, atol=1e-4)
    found = race(steps, seconds)
    how = "torch.compile" if compiled else "eager"
    return (
        f"| {how} | {1 / found['symgrad']:,.0f} | {1 / found['torch']:,.0f} |"
        f" {found['torch'] / found['symgrad']:.2f} |"
    )


def machine() -> str:
    """What the figures were measured on."""
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    names = [line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line]
    kind = names[0] if names else platform.machine()
    load = os.getloadavg()[0]
    return f"torch {torch.__version__}, {os.cpu_count()} cores of {kind}, load {load:.0f}."


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="for each cell")
    parser.add_argument("--write", action="store_true", help="also to benchmarks/EXPORT.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = [
        "| op | elements | forwards a second | torch | composed | forward + backward a second |"
        " torch | composed | empty Function | `function` | dispatcher |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name in OPS:
        for elements in (10**2, 10**4):
            lines.append(calls(name, elements, options.seconds))
            print(lines[-1], file=sys.stderr)
    lines += ["", "A step of training, 64 rows, three layers of 128, gelu and layer norm:", ""]
    lines += ["| | steps a second, exported | torch's own | torch / ours |", "|---|--:|--:|--:|"]
    for compiled in (False, True):
        lines.append(training(compiled, options.seconds))
        print(lines[-1], file=sys.stderr)
    table = "\n".join(lines) + "\n"
    print(table)
    if options.write:
        text = (
            f"# Exported ops beside torch's own, f32, one thread\n\n{table}\nMedian of rounds in"
            " turn, of processor time. The other columns are times over ours: above 1 the exported"
            " op is faster. torch: its own op; composed: what a user writes of several; empty"
            " Function: a `torch.autograd.Function` that computes nothing; `function`: the op as"
            " such a class;"
            f" dispatcher: the op as `torch.ops` has it. {machine()}\n"
        )
        Path(__file__).with_name("EXPORT.md").write_text(text)


if __name__ == "__main__":
    main()
