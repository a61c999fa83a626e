"""What a gradient on Dask costs on one worker and on two, and what a model says of a thousand.

    PYTHONPATH=examples python -m benchmarks.dask_growth

The model has five numbers, each measured by itself: seconds of a shard, of a task that does
nothing, of a task that waits for another, of a byte between workers, of adding a partial sum.
With them it says how long the example's gradient takes on one and two workers, which is measured
as well, and how long others take on up to 1,000.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask
import distributed
import numpy as np
from dask_gradient import Logistic, classifier_loss, parameters, rows_of_shards, shard

import symgrad as sg
from symgrad.interop import dask as sgd
from symgrad.interop.dask.gradients import SPLIT_EVERY
from symgrad.interop.dask.partials import combined, partial_of

GIGABYTES, MEGABYTES = 0.2, 20.0
TASKS, CHAIN, SENT = 200, 20, 64_000_000
LARGE = (1_000_000, 100_000_000)
WORKERS = (1, 2, 10, 100, 1_000)


@dataclass(frozen=True)
class Costs:
    """Seconds: of a task at the scheduler, of one after another, of a byte sent or added."""

    task: float
    latency: float
    sent: float
    added: float

    def seconds(self, workers: int, shards: int, shard: float, numbers: int) -> dict[str, float]:
        """The parts of the time of a gradient of so many numbers (float32)."""
        levels = math.ceil(math.log(max(shards, 2), SPLIT_EVERY))
        alone = workers == 1
        # A task has one of its terms beside it; a shard gives float32, a sum float64.
        received = (SPLIT_EVERY - 1) * numbers * (4 + 8 * (levels - 1))
        rounds = math.ceil(math.log2(workers)) if workers > 1 else 0
        compute = math.ceil(shards / workers) * shard
        tasks = shards * (2 + 1 / (SPLIT_EVERY - 1)) * self.task
        return {
            "shards": compute,
            "scheduler": tasks,
            "parameters": rounds * 4 * numbers * self.sent,
            "tree": levels * (self.latency + SPLIT_EVERY * 8 * numbers * self.added)
            + (0 if alone else received * self.sent),
        }

    def total(self, *given: Any) -> float:
        """Seconds in all: the scheduler works while the shards are computed."""
        parts = self.seconds(*given)
        return max(parts["shards"], parts["scheduler"]) + parts["parameters"] + parts["tree"]


def _timed(call: Callable[[], Any], times: int = 3) -> float:
    """The shortest of some runs, in seconds."""
    found = []
    for _ in range(times):
        before = time.perf_counter()
        call()
        found.append(time.perf_counter() - before)
    return min(found)


def _nothing(*_: Any) -> None:
    """A task that does nothing."""


def _costs(client: Any) -> Costs:
    """What the parts cost on a cluster of two workers."""
    nothing, zeros = dask.delayed(_nothing, pure=False), dask.delayed(np.zeros, pure=False)

    def chain() -> None:
        last = nothing()
        for _ in range(CHAIN):
            last = nothing(last)
        last.compute(optimize_graph=False)

    first, second = list(client.scheduler_info()["workers"])

    def send() -> None:
        client.submit(len, made, workers=[second], pure=False).result()

    task = _timed(lambda: nothing([nothing() for _ in range(TASKS)]).compute()) / TASKS
    latency = _timed(chain) / CHAIN
    sent = []
    for _ in range(3):
        made = client.persist(zeros(SENT // 8), workers=[first])
        made = client.compute(made)
        distributed.wait(made)
        sent.append(_timed(send, 1))
    part = partial_of(np.zeros(LARGE[0], np.float32), 1, True)
    added = _timed(lambda: combined([part] * SPLIT_EVERY)) / (SPLIT_EVERY * 8 * LARGE[0])
    return Costs(task, latency, max(min(sent) - 2 * latency, 0) / SENT, added)


def _measured(workers: int, rows: list[int], step: Any) -> tuple[float, Costs | None]:
    """Seconds of a gradient on so many workers, and what its parts cost on two."""
    make = dask.delayed(shard, pure=False)
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):

        def run() -> None:
            step(parameters(), [make(number, count) for number, count in enumerate(rows)])

        run()
        return _timed(run, 2), _costs(client) if workers == 2 else None


def main() -> None:
    """Measure and print."""
    loss = classifier_loss(sg.compile(Logistic, "f32[n m]"))
    rows = rows_of_shards(GIGABYTES, MEGABYTES)
    step, numbers = sgd.value_and_grad(loss), sum(one.size for one in parameters().values())
    with dask.config.set(scheduler="synchronous"):
        one = _timed(lambda: step(parameters(), [dask.delayed(shard)(0, rows[0])]))
    seconds = {workers: _measured(workers, rows, step) for workers in (1, 2)}
    costs = seconds[2][1]
    assert costs is not None
    print(f"a shard of {MEGABYTES:.0f} MB {one:.3f} s; a task {costs.task * 1e3:.2f} ms")
    print(f"one after another {costs.latency * 1e3:.1f} ms; {1e-9 / costs.sent:.2f} GB/s sent")
    print(f"{1e-9 / costs.added:.2f} GB/s added")
    for workers in (1, 2):
        model = costs.total(workers, len(rows), one, numbers)
        print(
            f"{workers} workers: {seconds[workers][0]:.2f} s measured, {model:.2f} s in the model"
        )
    for size in LARGE:
        for workers in WORKERS:
            given = workers, 10 * workers, one, size
            parts = "  ".join(f"{k} {v:.2f}" for k, v in costs.seconds(*given).items())
            print(f"{size:>11} numbers {workers:>5} workers {costs.total(*given):8.2f} s: {parts}")


if __name__ == "__main__":
    main()
