"""Held-out accuracy on the digits: our kernels beside scikit-learn's equivalent classifiers.

In: the split of ``examples/digits.py``.  Out: a table, mean and range over seeds.  The equivalent
of the demo is ``MLPClassifier((128,), activation="tanh")``: one hidden layer of 128 tanh units,
softmax cross-entropy, Adam; ``LogisticRegression`` is the floor.  Needs the extra ``peers``.
Run: ``python benchmarks/digits_accuracy.py``.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import digits
import train_digits

SEEDS = range(5)
WIDTH = 128


def ours(activation: str) -> Callable[[int], float]:
    """The demo's classifier with ``activation``, as a function of the seed."""

    def accuracy(seed: int) -> float:
        options = train_digits.parse(["--activation", activation, "--seed", str(seed)])
        return train_digits.run(Console(quiet=True), options).held_out_accuracy

    return accuracy


def mlp(seed: int) -> float:
    """scikit-learn's equivalent, trained until it stops by itself."""
    images, held_out = digits.load()
    model = MLPClassifier((WIDTH,), activation="tanh", random_state=seed, max_iter=500)
    model.fit(images.pixels, images.labels)
    return float(model.score(held_out.pixels, held_out.labels))


def logistic(seed: int) -> float:
    """A linear classifier; it has no random start."""
    images, held_out = digits.load()
    model = LogisticRegression(max_iter=2000, random_state=seed)
    model.fit(images.pixels, images.labels)
    return float(model.score(held_out.pixels, held_out.labels))


def main() -> None:
    """Print the table."""
    warnings.simplefilter("error", ConvergenceWarning)
    table = Table("classifier", "mean", "lowest", "highest", "seconds a fit")
    rows = {
        f"symgrad, {WIDTH} tanh": ours("tanh"),
        f"symgrad, {WIDTH} GELU": ours("gelu"),
        f"scikit-learn MLPClassifier, {WIDTH} tanh": mlp,
        "scikit-learn LogisticRegression": logistic,
    }
    for name, fit in rows.items():
        start = time.perf_counter()
        scores = [fit(seed) for seed in SEEDS]
        seconds = (time.perf_counter() - start) / len(scores)
        shares = (f"{value:.2%}" for value in (np.mean(scores), min(scores), max(scores)))
        table.add_row(name, *shares, f"{seconds:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
