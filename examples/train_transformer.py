"""Train a transformer: ``digits`` (sees them) or ``sonnets`` (writes them).

In: the data in ``data``.  Out: the loss as it falls; the held-out accuracy, or a few lines of
verse; the time of a step.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import click
import digits
import numpy as np
import sonnets
from rich.console import Console
from rich.progress import track
from transformer import CharTransformer, VisionTransformer

import symgrad as sg
import symgrad.nn.functional as F
from symgrad import optim

CONTEXT = 48
Batch = tuple[Any, Any]


def batches_of_digits(images: digits.Images, size: int, seed: int) -> Iterator[Batch]:
    """Images and labels, without end."""
    generator = np.random.default_rng(seed)
    while True:
        for batch in images.batches(size, generator):
            if len(batch) == size:
                yield batch.pixels, batch.labels


def batches_of_text(text: sonnets.Text, size: int, seed: int) -> Iterator[Batch]:
    """Pieces of text and what follows each character, without end."""
    generator = np.random.default_rng(seed)
    while True:
        yield text.batch(size, CONTEXT, generator)


def train(
    model: Any, batches: Iterator[Batch], steps: int, rate: float, compiled: bool
) -> tuple[list[float], list[float]]:
    """The loss and the seconds of each step of AdamW."""
    call: Callable[..., Any] = sg.jit(model) if compiled else model
    optimizer = optim.AdamW(model.parameters(), lr=rate)
    losses, seconds = [], []
    for _ in track(range(steps), "training", transient=True):
        given, wanted = (sg.from_numpy(array) for array in next(batches))
        start = time.perf_counter()
        scores = call(given)
        loss = F.cross_entropy(scores.reshape(-1, scores.shape[-1]), wanted.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
    return losses, seconds


def accuracy(model: Any, images: digits.Images) -> float:
    """The share of the images whose highest score is that of their label."""
    with sg.no_grad():
        scores = model(sg.from_numpy(images.pixels)).numpy()
    return float((scores.argmax(1) == images.labels).mean())


def verse(model: Any, text: sonnets.Text, length: int, seed: int) -> str:
    """``length`` characters, each drawn from the model's distribution after those before."""
    generator = np.random.default_rng(seed)
    codes = [text.alphabet.index("\n")]
    with sg.no_grad():
        for _ in range(length):
            seen = sg.tensor([codes[-CONTEXT:]])
            odds = F.softmax(model(seen)[0, -1], dim=-1).numpy().astype(np.float64)
            codes.append(int(generator.choice(len(odds), p=odds / odds.sum())))
    return text.read(np.array(codes))


@click.command()
@click.argument("task", type=click.Choice(["digits", "sonnets"]))
@click.option("--steps", default=300, show_default=True)
@click.option("--rate", default=2e-3, show_default=True, help="Learning rate of AdamW.")
@click.option("--seed", default=0, show_default=True)
@click.option("--eager", is_flag=True, help="One kernel an op, instead of fused ones.")
def main(task: str, steps: int, rate: float, seed: int, eager: bool) -> None:
    """Train a small transformer and show what it learnt."""
    console = Console(highlight=False)
    sg.manual_seed(seed)
    model: Any
    if task == "digits":
        seen, held_out = digits.load()
        model = VisionTransformer(digits.CLASSES)
        batches = batches_of_digits(seen, 64, seed)
    else:
        text = sonnets.load()
        model = CharTransformer(len(text.alphabet), CONTEXT)
        batches = batches_of_text(text, 16, seed)
    losses, seconds = train(model, batches, steps, rate, not eager)
    for step in range(0, steps, max(1, steps // 10)):
        console.print(f"step {step:5}  loss {losses[step]:.4f}")
    console.print(f"step {steps - 1:5}  loss {losses[-1]:.4f}")
    console.print(f"{1e3 * statistics.median(seconds):.2f} ms a step")
    if task == "digits":
        console.print(f"held-out accuracy {100 * accuracy(model, held_out):.1f}%")
    else:
        console.print(verse(model, text, 300, seed), markup=False)


if __name__ == "__main__":
    main()
