"""The gradient of a classifier over a batch that no machine holds, on two worker processes.

    python examples/dask_gradient.py --gigabytes 10

Each shard of the batch is made where it is needed, from its number.  A worker is killed on the way.
The gradient is compared with that of one process: the same bits from the same shards, and what
a plain loop gives to the rounding that docs/dask.md states.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import distributed
import numpy as np

import symgrad as sg
from symgrad.interop import dask as sgd

FEATURES, HIDDEN = 256, 16
SEED = 20


class Logistic(sg.Function):
    """log(1 + exp(-margin)), the loss of a classifier of two classes."""

    @staticmethod
    def forward(ctx: Any, margin: Any) -> Any:
        """The loss, without overflow."""
        ctx.save_for_backward(margin)
        return sg.relu(-margin) + sg.log1p(sg.exp(-sg.abs(margin)))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Its gradient."""
        (margin,) = ctx.saved_tensors
        return -grad * sg.sigmoid(-margin)


def parameters() -> dict[str, Any]:
    """The weights of two layers."""
    rng = np.random.default_rng(SEED)
    return {
        "inner": (rng.standard_normal((FEATURES, HIDDEN)) / FEATURES**0.5).astype(np.float32),
        "outer": (rng.standard_normal((HIDDEN, 1)) / HIDDEN**0.5).astype(np.float32),
    }


def shard(number: int, rows: int, fatal: int = -1, mark: str = "") -> tuple[Any, Any]:
    """Features and labels.  The process that makes the fatal shard dies of it, the first time."""
    if number == fatal and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    rng = np.random.default_rng((SEED, number))
    x = rng.standard_normal((rows, FEATURES), dtype=np.float32)
    return x, np.where(x[:, :1] + x[:, 1:2] > 0, np.float32(1), np.float32(-1))


def rows_of_shards(gigabytes: float, megabytes: float) -> list[int]:
    """How many rows each shard has; the last has fewer."""
    total = max(1, int(gigabytes * 1e9) // (4 * FEATURES))
    most = max(1, int(megabytes * 1e6) // (4 * FEATURES))
    return [min(most, total - at) for at in range(0, total, most)]


def classifier_loss(logistic: Any) -> Any:
    """The mean loss over the rows of a shard, as a function."""

    def loss(weights: Any, batch: Any) -> Any:
        x, labels = batch
        scores = sg.tanh(x @ weights["inner"]) @ weights["outer"]
        return logistic(scores * labels).mean()

    return loss


def on_workers(step: Any, rows: list[int], workers: int, kill: bool) -> tuple[Any, Any, float]:
    """The value, the gradient and the seconds on a local cluster of processes."""
    with tempfile.TemporaryDirectory() as folder:
        mark, fatal = str(Path(folder) / "killed"), len(rows) // 2 if kill else -1
        make = dask.delayed(shard)
        shards = [make(number, count, fatal, mark) for number, count in enumerate(rows)]
        with (
            distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster),
        ):
            before = time.perf_counter()
            value, grads = step(parameters(), shards)
            seconds = time.perf_counter() - before
        if kill and not Path(mark).exists():
            raise SystemExit("no worker was killed")
    return value, grads, seconds


def looped(loss: Any, rows: list[int]) -> tuple[float, dict[str, Any], dict[str, Any]]:
    """The value, the gradient, and the sum of its parts' magnitudes, from a plain loop.

    Extended precision, in which the sum over shards is as good as exact.
    """
    graded = sg.value_and_grad(loss)
    weights = {name: sg.from_numpy(one) for name, one in parameters().items()}
    total = np.longdouble(0)
    sums: dict[str, Any] = {name: np.longdouble(0) for name in weights}
    sizes: dict[str, Any] = dict(sums)
    for count, batch in _batches(rows):
        value, grads = graded(weights, batch)
        total += count * np.longdouble(value.item())
        for name, grad in grads.items():
            part = count * grad.numpy().astype(np.longdouble)
            sums[name], sizes[name] = sums[name] + part, sizes[name] + abs(part)
    every = sum(rows)
    divided = [{name: one / every for name, one in parts.items()} for parts in (sums, sizes)]
    return float(total / every), divided[0], divided[1]


def _batches(rows: list[int]) -> Iterator[tuple[int, Any]]:
    for number, count in enumerate(rows):
        x, labels = shard(number, count)
        yield count, (sg.from_numpy(x), sg.from_numpy(labels))


def worst_share(grads: Any, exact: Any, sizes: Any, shards: int) -> float:
    """How much of the error that is stated the gradient has, at worst.  More than 1 is a defect."""
    steps = (shards - 1).bit_length() + 2
    worst = 0.0
    for name, found in grads.items():
        # Half a unit in the last place of the result, beside what the additions may lose.
        stated = np.spacing(np.abs(found)) / 2 + steps * 2.0**-53 * sizes[name]
        worst = max(worst, float(np.max(np.abs(found - exact[name]) / stated)))
    return worst


def main(arguments: list[str] | None = None) -> float:
    """Run it; return the worst share of the error that is stated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("--gigabytes", type=float, default=0.02, help="of features, in all")
    parser.add_argument("--megabytes", type=float, default=100.0, help="of a shard")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--no-kill", action="store_true", help="let every worker live")
    parser.add_argument("--progress", action="store_true", help="show a bar")
    given = parser.parse_args(arguments)
    loss = classifier_loss(sg.compile(Logistic, "f32[n m]"))
    rows = rows_of_shards(given.gigabytes, given.megabytes)
    step = sgd.value_and_grad(loss, progress=given.progress)
    value, grads, seconds = on_workers(step, rows, given.workers, not given.no_kill)
    killed = "none killed" if given.no_kill else "one killed"
    print(f"{sum(rows)} rows in {len(rows)} shards, {given.workers} workers, {killed}")
    print(f"loss {value:.9f} in {seconds:.1f} s")
    before = time.process_time()
    _, exact, sizes = looped(loss, rows)
    print(f"one process: {time.process_time() - before:.1f} s of processor time")
    worst = worst_share(grads, exact, sizes, len(rows))
    print(f"the gradient has {worst:.3f} of the error that is stated, at worst")
    with dask.config.set(scheduler="synchronous"):
        make = dask.delayed(shard)
        again = step(parameters(), [make(number, count) for number, count in enumerate(rows)])
    same = all(np.array_equal(grads[name], again[1][name]) for name in grads)
    print(f"the same bits from the same graph in one process: {same and again[0] == value}")
    return worst if same else float("inf")


_Raw = argparse.RawDescriptionHelpFormatter

if __name__ == "__main__":
    raise SystemExit(main() > 1)
