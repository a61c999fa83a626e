"""Forward + backward against torch eager and JAX jit, side by side in one run, as ratios.

In: the ops of ``examples/ops.py`` and the peers' own.  Out: a Markdown table on standard output,
and in ``benchmarks/PEERS.md`` with ``--write``.

For each op and size all contestants take turns, many rounds; the figure is the median of the
rounds.  A ratio is the peer's time over ours: above 1 we are faster.  All use two threads (or the
machine's cores), fresh outputs, and the same f32 data; gradients are compared first.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

import jax
import jax.numpy as jnp
import ops
import torch

import symgrad as sg

Arrays = tuple[np.ndarray, ...]
Step = Callable[[], Any]


class Softmax(sg.Function):
    """``softmax(x)`` over the last axis."""

    @staticmethod
    def forward(ctx: Any, x: "f32[n m]") -> Any:  # type: ignore[valid-type]
        shifted = sg.exp(x - x.amax(-1, keepdim=True))
        y = shifted / shifted.sum(-1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        (y,) = ctx.saved_tensors
        return y * (grad_y - (grad_y * y).sum(-1, keepdim=True))


@dataclass(frozen=True)
class Contest:
    """One op: ours, the peers' forward, and the shapes for a number of elements."""

    function: type[sg.Function]
    torch: Callable[..., Any]
    jax: Callable[..., Any]
    shapes: Callable[[int], Sequence[tuple[int, ...]]]


def _square(elements: int) -> int:
    return round(elements**0.5)


def _jax_layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias


CONTESTS = {
    "softmax": Contest(
        Softmax,
        lambda x: torch.softmax(x, -1),
        lambda x: jax.nn.softmax(x, -1),
        lambda n: [(_square(n), _square(n))],
    ),
    "gelu": Contest(
        ops.Gelu,
        torch.nn.functional.gelu,
        lambda x: jax.nn.gelu(x, approximate=False),
        lambda n: [(_square(n), _square(n))],
    ),
    "layer norm": Contest(
        ops.LayerNorm,
        lambda x, w, b: torch.nn.functional.layer_norm(x, x.shape[-1:], w, b),
        _jax_layer_norm,
        lambda n: [(_square(n), _square(n)), (_square(n),), (_square(n),)],
    ),
    "linear": Contest(
        ops.Linear,
        torch.nn.functional.linear,
        lambda x, w, b: x @ w.T + b,
        lambda n: [(_square(n), _square(n)), (_square(n), _square(n)), (_square(n),)],
    ),
}


def contestants(contest: Contest, inputs: Arrays, cotangent: np.ndarray) -> dict[str, Step]:
    """A step of forward and backward for each, on the same data."""
    op = sg.compile(contest.function)

    def ours() -> Any:
        _, residuals = op.forward(*inputs)
        return op.backward(residuals, cotangent)

    leaves = [torch.from_numpy(array).requires_grad_() for array in inputs]
    torch_cotangent = torch.from_numpy(cotangent)

    def in_torch() -> Any:
        return torch.autograd.grad(contest.torch(*leaves), leaves, torch_cotangent)

    arrays, jax_cotangent = [jnp.asarray(array) for array in inputs], jnp.asarray(cotangent)

    @jax.jit
    def both(arrays: Any, cotangent: Any) -> Any:
        value, pullback = jax.vjp(contest.jax, *arrays)
        return value, pullback(cotangent)

    def in_jax() -> Any:
        return jax.block_until_ready(both(arrays, jax_cotangent))[1]

    return {"symgrad": ours, "torch": in_torch, "jax": in_jax}


def check(steps: dict[str, Step]) -> None:
    """All must agree before they race."""
    expected = [np.asarray(gradient) for gradient in steps["torch"]()]
    for name, step in steps.items():
        found = [np.asarray(gradient) for gradient in step() if gradient is not None]
        for ours, theirs in zip(found, expected, strict=True):
            scale = float(np.abs(theirs).max()) + 1e-6
            worst = float(np.abs(ours - theirs).max()) / scale
            if worst > 1e-3:
                raise SystemExit(f"{name} differs from torch by {worst:.1e}")


def race(steps: dict[str, Step], seconds: float) -> dict[str, float]:
    """Median seconds of a step, the contestants taking turns."""
    for step in steps.values():
        for _ in range(3):
            step()
    times: dict[str, list[float]] = {name: [] for name in steps}
    repeats = {name: _repeats(step) for name, step in steps.items()}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times["symgrad"]) < 5:
        for name, step in steps.items():
            start = time.perf_counter()
            for _ in range(repeats[name]):
                step()
            times[name].append((time.perf_counter() - start) / repeats[name])
    return {name: statistics.median(found) for name, found in times.items()}


def _repeats(step: Step) -> int:
    start = time.perf_counter()
    step()
    return max(1, int(1e-3 / (time.perf_counter() - start)))


def row(name: str, elements: int, seconds: float) -> str:
    """One line of the table."""
    contest = CONTESTS[name]
    generator = np.random.default_rng(0)
    inputs = tuple(
        generator.standard_normal(shape).astype(np.float32) for shape in contest.shapes(elements)
    )
    output = np.asarray(contest.jax(*map(jnp.asarray, inputs)))
    cotangent = generator.standard_normal(output.shape).astype(np.float32)
    steps = contestants(contest, inputs, cotangent)
    check(steps)
    found = race(steps, seconds)
    ours = found["symgrad"]
    ratios = " | ".join(f"{found[peer] / ours:.2f}" for peer in ("torch", "jax"))
    shape = "×".join(map(str, inputs[0].shape))
    return f"| {name} | {shape} | {ours * 1e6:.1f} | {ratios} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="for each cell")
    parser.add_argument("--write", action="store_true", help="also to benchmarks/PEERS.md")
    options = parser.parse_args()
    lines = ["| op | shape | symgrad, µs | torch eager / ours | JAX jit / ours |"]
    lines.append("|---|---|--:|--:|--:|")
    for name in CONTESTS:
        for elements in (10**2, 10**4, 10**6):
            lines.append(row(name, elements, options.seconds))
            print(lines[-1], file=sys.stderr)
    table = "\n".join(lines) + "\n"
    print(table)
    if options.write:
        versions = f"torch {torch.__version__}, JAX {jax.__version__}, NumPy {np.__version__}"
        heading = "# Forward + backward, f32, two threads, fresh outputs\n\n"
        text = (
            f"{heading}{table}\nMedian of rounds in turn; above 1 symgrad is faster. {versions}.\n"
        )
        Path(__file__).with_name("PEERS.md").write_text(text)


if __name__ == "__main__":
    main()
