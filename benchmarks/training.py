"""The transformers of ``examples`` trained by symgrad and by torch, step by step in one run.

    python -m benchmarks.training --write

In: ``examples/transformer.py``, loaded a second time with ``symgrad`` bound to torch; its data.
Out: loss curves and the time of a step as a Markdown table on standard output, and in
``benchmarks/TRAINING.md`` with ``--write``.

All contestants start from the same weights, see the same batches and take turns, one thread each; a
step is forward, loss, backward and AdamW.  A time is the median over the steps after the first
ten; a ratio is the peer's time over that of ``sg.jit``: above 1 we are faster.  How far two loss
curves lie apart is the greatest relative difference of two losses of the same step.
"""

from __future__ import annotations

import builtins
import itertools
import statistics
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np

EXAMPLES = Path(__file__).parent.parent / "examples"
sys.path.insert(0, str(EXAMPLES))

import digits
import sonnets
import torch
import train_transformer as examples
import transformer
from rich.progress import track

import symgrad as sg
import symgrad.nn.functional
import symgrad.optim

RATE = 2e-3
WARM_UP = 10
THREADS = 1
HERE = Path(__file__).parent


def transformer_over_torch() -> types.ModuleType:
    """``examples/transformer.py``, its text as it is, with torch behind its imports."""
    stand_ins = {
        "symgrad": torch,
        "symgrad.nn": torch.nn,
        "symgrad.nn.functional": torch.nn.functional,
    }

    def over_torch(name: str, *rest: Any) -> Any:
        """``import a.b as c`` asks for ``a`` and walks to ``b``: torch has the same tree."""
        if name not in stand_ins:
            return builtins.__import__(name, *rest)
        wanted = rest[2] if len(rest) > 2 else ()
        return stand_ins[name] if wanted else torch

    module = types.ModuleType("transformer_over_torch")
    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": over_torch}
    path = EXAMPLES / "transformer.py"
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    return module


@dataclass
class Contestant:
    """A model, how it is called, and what was measured."""

    model: Any
    call: Callable[..., Any]
    optimizer: Any
    as_tensor: Callable[[Any], Any]
    cross_entropy: Callable[..., Any]
    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def step(self, batch: tuple[Any, Any]) -> None:
        """One step of training."""
        given, wanted = map(self.as_tensor, batch)
        start = time.perf_counter()
        scores = self.call(given)
        loss = self.cross_entropy(scores.reshape(-1, scores.shape[-1]), wanted.reshape(-1))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.seconds.append(time.perf_counter() - start)
        self.losses.append(float(loss.item()))

    @property
    def milliseconds(self) -> float:
        """Of a step, warmed up."""
        return 1e3 * statistics.median(self.seconds[WARM_UP:])


@dataclass(frozen=True)
class Task:
    """What is trained: ``make`` builds the model from a module of ``examples/transformer.py``."""

    title: str
    make: Callable[[Any], Any]
    batches: Callable[[int], Iterator[tuple[Any, Any]]]


def tasks() -> list[Task]:
    """Digits by vision, sonnets by character."""
    seen, _ = digits.load()
    text = sonnets.load()
    return [
        Task(
            "Vision: 8×8 digits, 16 patches, width 32, 2 blocks, batches of 64",
            lambda source: source.VisionTransformer(digits.CLASSES),
            lambda seed: examples.batches_of_digits(seen, 64, seed),
        ),
        Task(
            f"Characters: sonnets, context {examples.CONTEXT}, width 64, 2 blocks, batches of 16",
            lambda source: source.CharTransformer(len(text.alphabet), examples.CONTEXT),
            lambda seed: examples.batches_of_text(text, 16, seed),
        ),
    ]


NAMES = ("sg.jit", "symgrad eager", "torch eager", "torch.compile")


def contestants(task: Task, dtype: str, names: Sequence[str] = NAMES) -> dict[str, Contestant]:
    """Those of ``names``, with the same weights."""
    sg.manual_seed(0)
    start = task.make(transformer)
    weights = {name: np.array(value.numpy()) for name, value in start.state_dict().items()}
    numpy_dtype = np.dtype(dtype)

    def ours(compiled: bool) -> Contestant:
        model = task.make(transformer)
        model.load_state_dict({name: sg.from_numpy(array) for name, array in weights.items()})
        model.to(getattr(sg, dtype))
        call = sg.jit(model) if compiled else model
        optimizer = symgrad.optim.AdamW(model.parameters(), lr=RATE)
        cross_entropy = symgrad.nn.functional.cross_entropy
        return Contestant(model, call, optimizer, _cast(sg.from_numpy, numpy_dtype), cross_entropy)

    def theirs(compiled: bool) -> Contestant:
        model = task.make(transformer_over_torch())
        model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
        model.to(getattr(torch, dtype))
        call = torch.compile(model) if compiled else model
        optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
        cross_entropy = torch.nn.functional.cross_entropy
        as_tensor = _cast(torch.from_numpy, numpy_dtype)
        return Contestant(model, call, optimizer, as_tensor, cross_entropy)

    makers = dict(
        zip(NAMES, ((ours, True), (ours, False), (theirs, False), (theirs, True)), strict=True)
    )
    return {name: make(compiled) for name, (make, compiled) in makers.items() if name in names}


def _cast(make: Callable[[Any], Any], dtype: np.dtype[Any]) -> Callable[[Any], Any]:
    return lambda array: make(array.astype(dtype) if array.dtype.kind == "f" else array)


def apart(one: list[float], other: list[float]) -> float:
    """The greatest relative difference of two losses of the same step."""
    return max(abs(a - b) / abs(b) for a, b in zip(one, other, strict=True))


def race(task: Task, dtype: str, steps: int) -> dict[str, Contestant]:
    """Train all contestants side by side."""
    entered = contestants(task, dtype)
    batches = itertools.islice(task.batches(0), steps)
    for batch in track(batches, f"{task.title}, {dtype}", total=steps, transient=True):
        for one in entered.values():
            one.step(batch)
    return entered


def section(task: Task, steps: int) -> str:
    """The table of one task."""
    single, double = (race(task, dtype, steps) for dtype in ("float32", "float64"))
    baseline = single["sg.jit"].milliseconds
    head = (
        "| | ms a step, f32 | its time / sg.jit | loss: first | last | apart from torch eager, f32 "
        "| the same, f64 |\n|---|--:|--:|--:|--:|--:|--:|"
    )
    lines = [f"## {task.title}, {steps} steps", "", *head.splitlines()]
    for name, one in single.items():
        distances = (
            apart(one.losses, single["torch eager"].losses),
            apart(double[name].losses, double["torch eager"].losses),
        )
        lines.append(
            f"| {name} | {one.milliseconds:.2f} | {one.milliseconds / baseline:.2f} "
            f"| {one.losses[0]:.4f} | {one.losses[-1]:.4f} "
            f"| {distances[0]:.1e} | {distances[1]:.1e} |"
        )
    return "\n".join(lines)


@click.command()
@click.option("--steps", default=200, show_default=True)
@click.option("--write", is_flag=True, help="Write TRAINING.md.")
def main(steps: int, write: bool) -> None:
    """Train, print, write."""
    torch.set_num_threads(THREADS)
    sg.set_num_threads(THREADS)
    title = "# Training, symgrad beside torch"
    note = " ".join((__doc__ or "").split("\n\n")[-1].split())
    text = "\n\n".join([title, note, *(section(task, steps) for task in tasks())]) + "\n"
    print(text)
    if write:
        (HERE / "TRAINING.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
