"""The demo: judge the ops of ``ops.py``, build their kernels, train a classifier with them.

In: the UCI optical digits, shipped in ``data``.  Out: the verdicts, where the C lies, the
held-out accuracy, and the time spent in kernels.  Exit status 1 if an op is refuted.
Imports symgrad, rich, NumPy and its neighbours here.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass

import digits
import numpy as np
import ops
from classifier import Adam, Classifier, Timed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import symgrad as sg

FUNCTIONS = (ops.Linear, ops.Tanh, ops.Gelu, ops.LayerNorm, ops.SoftmaxCrossEntropy)
ACTIVATIONS = {"tanh": ops.Tanh, "gelu": ops.Gelu}


def judge(console: Console) -> bool:
    """Print the verdict on every backward; say whether none is refuted."""
    table = Table("op", "gradient of", "verdict", "under", title="Is the backward right?")
    reports = [sg.verify(function) for function in FUNCTIONS]
    for function, report in zip(FUNCTIONS, reports, strict=True):
        for name, judged in report.inputs.items():
            conditions = "; ".join(map(str, judged.conditions))
            table.add_row(function.__name__, name, str(judged.verdict), conditions)
    console.print(table)
    for report in reports:
        if report.verdict == sg.REFUTED:
            console.print(str(report))
    return all(report.verdict != sg.REFUTED for report in reports)


def train(
    console: Console, model: Classifier, images: digits.Images, options: argparse.Namespace
) -> None:
    """Train for ``options.epochs``, behind a progress bar; the rate falls linearly to zero."""
    generator = np.random.default_rng(options.seed)
    adam = Adam(model.parameters)
    steps = options.epochs * -(-len(images) // options.batch)
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.4f}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("training", total=steps, loss=float("nan"))
        for _ in range(options.epochs):
            for batch in images.batches(options.batch, generator):
                loss, gradients = model.gradients(batch)
                adam.step(gradients, options.rate * (1 - adam.steps / steps))
                progress.update(task, advance=1, loss=loss)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--activation", choices=sorted(ACTIVATIONS), default="tanh")
    parser.add_argument("--width", type=int, default=128, help="hidden units")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=3e-3, help="of Adam, at the start")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


@dataclass(frozen=True)
class Outcome:
    """What training came to; ``kernel_seconds`` of ``seconds`` went by inside the ops."""

    held_out_accuracy: float
    seconds: float
    kernel_seconds: float
    calls: int


def run(console: Console, options: argparse.Namespace) -> Outcome:
    """Build the kernels, train with them, measure on the held-out images."""
    used = (ops.Linear, ACTIVATIONS[options.activation], ops.SoftmaxCrossEntropy)
    kernels = linear, activation, loss = [Timed(sg.compile(function)) for function in used]
    for kernel in kernels:
        where = ", ".join(map(str, kernel.op.c_paths)) or "evaluated with NumPy"
        console.print(f"{kernel.op.name}: {where}", soft_wrap=True)

    images, held_out = digits.load()
    parameters = Classifier.initial(options.width, np.random.default_rng(options.seed))
    model = Classifier(linear, activation, loss, parameters)
    start = time.perf_counter()
    train(console, model, images, options)
    return Outcome(
        seconds=time.perf_counter() - start,
        kernel_seconds=sum(kernel.seconds for kernel in kernels),
        calls=sum(kernel.calls for kernel in kernels),
        held_out_accuracy=model.accuracy(held_out),
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return its exit status."""
    options = parse(arguments)
    console = Console()
    if not judge(console):
        return 1
    outcome = run(console, options)
    console.print(
        f"held-out accuracy {outcome.held_out_accuracy:.1%} on {digits.HELD_OUT} images; "
        f"{outcome.kernel_seconds:.2f} s of {outcome.seconds:.2f} s in {outcome.calls:,} calls "
        "of kernels"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
