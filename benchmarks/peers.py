"""Forward + backward against torch and JAX, side by side in one run.

    python -m benchmarks.peers [--only softmax,GELU] [--sizes 1e4,1e6] [--threads 1,2] [--write]

In: the rows of ``benchmarks.peer_rows``.  Out: a line of a log for each cell, and with ``--write``
the table of the whole log in ``benchmarks/PEERS.md``.  What the log has is not measured again.

The contestants take turns, in another order each round, since what one leaves in the caches costs
the next one time; a figure is the median of the rounds.  All have the same data, and their
gradients are compared first.  Each number of threads has a process, on as many cores.  One
thread is measured in processor time, which other programs hardly change; more in wall time.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peer_rows import ROWS, Row
from benchmarks.peer_table import FORMS, Cell, write

Step = Callable[..., Any]
LOG = Path(__file__).with_name("peers.jsonl")
COMPILED = "torch.compile"
SHORT = {"float32": "f32", "float64": "f64"}
TOLERANCE = {"float32": 2e-3, "float64": 1e-7}
WIDE, SIDE = 1 << 25, 2048  # what the machine is measured by: an array, a matrix


def data(row: Row, elements: int, dtype: str) -> list[np.ndarray]:
    """Numbers and indices; an update of moments takes none that are negative."""
    generator = np.random.default_rng(0)
    found = []
    for (_, below), shape in zip(row.inputs, row.shapes(elements), strict=True):
        if below:
            most = int(below) if below.isdigit() else row.sizes(elements)[below]
            found.append(generator.integers(0, most, shape))
        else:
            values = generator.standard_normal(shape)
            found.append((values if row.backward else abs(values)).astype(dtype))
    return found


def of_symgrad(row: Row, inputs: list[np.ndarray], cotangent: Any, *, out: bool) -> Step:
    """A step of the kernels; with ``out``, into arrays that are there."""
    import symgrad as sg

    def forward(ctx: Any, *given: Any) -> Any:
        return row.forward(sg, *given)

    function = type("Op", (sg.Function,), {"forward": staticmethod(forward)})
    specs = [f"{'i64' if below else SHORT[str(inputs[0].dtype)]}[{shape}]"
             for shape, below in row.inputs]  # fmt: skip
    op = sg.compile(function, *specs)
    if not row.backward:
        places = op(*inputs) if out else None
        return lambda: op(*inputs, out=places)
    if not out:
        return lambda: op.backward(op.forward(*inputs)[1], cotangent)
    y, residuals = op.forward(*inputs)
    gradients = op.backward(residuals, cotangent)
    return lambda: op.backward(op.forward(*inputs, out=y)[1], cotangent, out=gradients)


def of_torch(row: Row, inputs: list[np.ndarray], cotangent: Any, *, compiled: bool) -> Step:
    """A step of torch, eager or by torch.compile."""
    import torch

    class Names:
        """Functions of ``torch.nn.functional``, and of torch."""

        def __getattr__(self, name: str) -> Any:
            return getattr(torch.nn.functional, name, None) or getattr(torch, name)

    tensors = [torch.from_numpy(array) for array in inputs]
    leaves = [one.requires_grad_() for one in tensors if row.backward and one.is_floating_point()]
    forward: Step = partial(row.forward, Names())
    if compiled:
        torch._dynamo.reset()
        forward = torch.compile(forward, dynamic=False)
    if not row.backward:
        return lambda: forward(*tensors)
    given = torch.from_numpy(cotangent)
    return lambda: torch.autograd.grad(forward(*tensors), leaves, given)


def of_jax(row: Row, inputs: list[np.ndarray], cotangent: Any) -> Step:
    """A step of ``jax.jit``."""
    import jax

    class Names:
        """Functions of ``jax.nn``, and of ``jax.numpy``."""

        def __getattr__(self, name: str) -> Any:
            return getattr(jax.nn, name, None) or getattr(jax.numpy, name)

    forward = row.jax or (lambda *given: row.forward(Names(), *given))
    arrays = list(map(jax.numpy.asarray, inputs))
    if not row.backward:
        update = jax.jit(forward)
        return lambda: jax.block_until_ready(update(*arrays))
    real = [place for place, (_, below) in enumerate(row.inputs) if not below]

    @jax.jit
    def both(arrays: Any, cotangent: Any) -> Any:
        def of_leaves(*leaves: Any) -> Any:
            given = list(arrays)
            for place, leaf in zip(real, leaves, strict=True):
                given[place] = leaf
            return forward(*given)

        value, pullback = jax.vjp(of_leaves, *(arrays[place] for place in real))
        return value, pullback(cotangent)

    given = jax.numpy.asarray(cotangent)
    return lambda: jax.block_until_ready(both(arrays, given))[1]


def contestants(
    row: Row, inputs: list[np.ndarray], cotangent: Any, wanted: list[str]
) -> dict[str, Step]:
    """A step for each contestant, all of which agree."""
    made = {
        FORMS[0]: lambda: of_symgrad(row, inputs, cotangent, out=False),
        FORMS[1]: lambda: of_symgrad(row, inputs, cotangent, out=True),
        "torch": lambda: of_torch(row, inputs, cotangent, compiled=False),
        COMPILED: lambda: of_torch(row, inputs, cotangent, compiled=True),
        "JAX": lambda: of_jax(row, inputs, cotangent),
    }
    steps = {name: made[name]() for name in made if name in (*FORMS, *wanted)}
    results = {name: [one for one in step() if one is not None] for name, step in steps.items()}
    most = TOLERANCE[str(inputs[0].dtype)]
    for name, found in results.items():
        for ours, theirs in zip(found, results[FORMS[0]], strict=True):
            a, b = np.asarray(ours), np.asarray(theirs)
            worst = float(abs(a - b).max()) / (float(abs(b).max()) + 1e-30)
            if not worst < most:
                raise SystemExit(f"{row.name}: {name} differs from {FORMS[0]} by {worst:.1e}")
    return steps


def race(steps: dict[str, Step], seconds: float) -> dict[str, float]:
    """Median seconds of a step, the contestants taking turns in random order."""
    shuffle = random.Random(0).shuffle
    order = list(steps)
    for step in steps.values():
        step()
    repeats = {name: max(1, int(1e-3 / _seconds(step, 1))) for name, step in steps.items()}
    times: dict[str, list[float]] = {name: [] for name in steps}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(map(len, times.values())) < 5:
        shuffle(order)
        for name in order:
            times[name].append(_seconds(steps[name], repeats[name]))
    return {name: statistics.median(found) for name, found in times.items()}


def _seconds(step: Step, repeats: int) -> float:
    clock = time.process_time if os.environ["OMP_NUM_THREADS"] == "1" else time.perf_counter
    start = clock()
    for _ in range(repeats):
        step()
    return (clock() - start) / repeats


def measured(row: Row, elements: int, dtype: str, wanted: list[str], seconds: float) -> Cell:
    """One cell: bytes read and written at least, operations of products, and times."""
    inputs = data(row, elements, dtype)
    plain = dataclasses.replace(row, backward=False)
    results = of_torch(plain, inputs, None, compiled=False)()
    outputs = list(map(np.asarray, results if isinstance(results, tuple) else [results]))
    read, written = (sum(array.nbytes for array in arrays) for arrays in (inputs, outputs))
    cotangent = None
    if row.backward:
        (y,) = outputs
        cotangent = np.random.default_rng(1).standard_normal(y.shape).astype(dtype)
    least = 3 * read + 2 * written if row.backward else read + written
    steps = contestants(row, inputs, cotangent, wanted)
    return {"bytes": least, "flops": row.flops(elements), "times": race(steps, seconds)}


def machine() -> Cell:
    """Bytes and operations a second that torch reaches, by ``a + b`` and by a product; the load."""
    import torch

    a, b, c = (torch.ones(WIDE) for _ in range(3))
    x, y, z = (torch.ones(SIDE, SIDE) for _ in range(3))
    steps: dict[str, Step] = {
        "sum": lambda: torch.add(a, b, out=c),
        "product": lambda: torch.mm(x, y, out=z),
    }
    times = race(steps, 2.0)
    return {
        "bytes": 12 * WIDE / times["sum"],
        "flops": 2 * SIDE**3 / times["product"],
        "load": os.getloadavg()[0],
    }


def measure(options: argparse.Namespace) -> None:
    """Measure in this process, with one number of threads."""
    import jax
    import torch

    jax.config.update("jax_enable_x64", True)
    (threads,) = options.threads
    torch.set_num_threads(threads)
    known = {json.dumps(line["cell"]) for line in logged(options.log)}

    def cell(key: list[Any], made: Callable[[], Cell]) -> None:
        if json.dumps(key) in known:
            return
        try:
            found = made()
        except Exception as error:
            found = {"failed": f"{type(error).__name__}: {error}"[:300]}
        with options.log.open("a") as log:
            print(json.dumps({"cell": key, **found}), file=log)
        print(*key, found, file=sys.stderr)

    cell(["machine", threads], machine)
    for row, elements, dtype in itertools.product(ROWS, options.sizes, options.dtypes):
        if any(name in row.name for name in options.only):
            cell(
                [row.name, elements, dtype, threads],
                lambda: measured(row, elements, dtype, options.peers, options.seconds),  # noqa: B023
            )


def logged(log: Path) -> list[Cell]:
    """The lines of a log."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def main() -> None:
    """Measure in a process for each number of threads; write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])

    def listed(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
        return lambda text: [kind(one) for one in text.split(",")]

    parser.add_argument("--only", type=listed(str), default=[""], help="parts of names of rows")
    parser.add_argument("--sizes", type=listed(lambda one: int(float(one))),
                        default=[10**2, 10**4, 10**6, 10**7], help="elements")  # fmt: skip
    parser.add_argument("--dtypes", type=listed(str), default=["float32", "float64"])
    parser.add_argument("--threads", type=listed(int), default=[1, 2])
    parser.add_argument("--peers", type=listed(str), default=["torch", COMPILED, "JAX"])
    parser.add_argument("--seconds", type=float, default=2.0, help="for each cell")
    parser.add_argument("--log", type=Path, default=LOG)
    parser.add_argument("--write", action="store_true", help="the table, to benchmarks/PEERS.md")
    options = parser.parse_args()
    if len(options.threads) == 1 and os.environ.get("OMP_NUM_THREADS") == str(options.threads[0]):
        measure(options)
        return
    for threads in options.threads:
        cores = sorted(os.sched_getaffinity(0))[:threads]
        subprocess.run(
            [sys.executable, "-m", "benchmarks.peers", *sys.argv[1:], f"--threads={threads}"],
            env={**os.environ, "OMP_NUM_THREADS": str(threads)}, check=True,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),  # noqa: B023
        )  # fmt: skip
    if options.write:
        write(logged(options.log))


if __name__ == "__main__":
    main()
