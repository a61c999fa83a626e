"""The demo: judge the ops of ``ops.py``, build their kernels, train a classifier with them.

In: the UCI optical digits, shipped in ``data``.  Out: the verdicts, a package of kernels (on
NumPy, with a notice, where no C compiler works), the held-out accuracy, and the time spent in
kernels.  Exit status 1 if a backward is not proved.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import digits
import numpy as np
import ops
from classifier import Adam, Classifier, Timed
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import symgrad as sg
from symgrad.compiler import build

FUNCTIONS = (ops.Linear, ops.Tanh, ops.Gelu, ops.LayerNorm, ops.SoftmaxCrossEntropy)
ACTIVATIONS = {"tanh": ops.Tanh, "gelu": ops.Gelu}
NAMES = {
    ops.Linear: "linear",
    ops.Tanh: "tanh",
    ops.Gelu: "gelu",
    ops.SoftmaxCrossEntropy: "softmax_cross_entropy",
}
FOLDER = Path(__file__).resolve().parents[1] / "build" / "digits_kernels"


def judge(console: Console) -> bool:
    """Print the verdict on every backward; say whether all are proved."""
    table = Table("op", "gradient of", "verdict", "conditions", title="Is the backward right?")
    reports = [sg.verify(function) for function in FUNCTIONS]
    for function, report in zip(FUNCTIONS, reports, strict=True):
        for name, judged in report.inputs.items():
            conditions = "\n".join(condition.text for condition in judged.conditions)
            table.add_row(function.__name__, name, str(judged.verdict), escape(conditions))
    console.print(table)
    unproved = [report for report in reports if report.verdict != sg.PROVED]
    for report in unproved:
        console.print(escape(str(report)))
    return not unproved


def kernels(console: Console, activation: str, folder: Path) -> list[Timed]:
    """The ops of the classifier, imported from the package of kernels that this writes."""
    used = (ops.Linear, ACTIVATIONS[activation], ops.SoftmaxCrossEntropy)
    build(FUNCTIONS, folder, compiled=False)  # importing compiles, once
    sys.path.insert(0, str(folder.parent))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            modules = [importlib.import_module(f"{folder.name}.{NAMES[one]}") for one in used]
    finally:
        sys.path.remove(str(folder.parent))
    if caught:
        said = escape(str(caught[0].message))
        console.print(f"[yellow]notice[/]: no kernels, NumPy instead: {said}")
        return [Timed(module) for module in modules]
    for module in modules:
        for file in module.OP.files:
            console.print(f"{module.OP.name}: {folder / file}", soft_wrap=True, highlight=False)
    return [Timed(module) for module in modules]


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
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of the package of kernels")
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
    timed = kernels(console, options.activation, options.folder.resolve())
    linear, activation, loss = timed
    images, held_out = digits.load()
    parameters = Classifier.initial(options.width, np.random.default_rng(options.seed))
    model = Classifier(linear, activation, loss, parameters)
    start = time.perf_counter()
    train(console, model, images, options)
    return Outcome(
        seconds=time.perf_counter() - start,
        kernel_seconds=sum(kernel.seconds for kernel in timed),
        calls=sum(kernel.calls for kernel in timed),
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
        "of the ops",
        soft_wrap=True,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
