"""The transformers learn; compiled, one op at a time, and in torch they learn the same."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from typing import Any

import digits
import numpy as np
import pytest
import sonnets
import train_transformer as training
import transformer

import symgrad as sg
from tests.house import tree

TEXT = sonnets.load()


def vision() -> Any:
    sg.manual_seed(0)
    return transformer.VisionTransformer(digits.CLASSES, width=8, heads=2, depth=1)


def characters() -> Any:
    sg.manual_seed(0)
    return transformer.CharTransformer(
        len(TEXT.alphabet), training.CONTEXT, width=8, heads=2, depth=1
    )


MODELS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "vision": (vision, lambda: training.batches_of_digits(digits.load()[0], 16, 0)),
    "characters": (characters, lambda: training.batches_of_text(TEXT, 4, 0)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_one_batch_is_learnt(name: str) -> None:
    make, batches = MODELS[name]
    same = itertools.repeat(next(batches()))
    losses, _ = training.train(make(), same, 60, 1e-2, compiled=False)
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_compiled_and_eager_learn_alike(name: str) -> None:
    make, batches = MODELS[name]
    eager, _ = training.train(make(), batches(), 12, 1e-2, compiled=False)
    compiled, _ = training.train(make(), batches(), 12, 1e-2, compiled=True)
    assert compiled == pytest.approx(eager, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["digits", "sonnets"])
def test_the_program_runs(task: str) -> None:
    program = tree.ROOT / "examples" / "train_transformer.py"
    done = tree.run(sys.executable, program, task, "--steps=2", "--eager", cwd=tree.ROOT)
    assert done.returncode == 0, done.stdout
    assert "ms a step" in done.stdout


def test_verse_is_made_of_the_alphabet() -> None:
    written = training.verse(characters(), TEXT, 20, 0)
    assert len(written) == 21
    assert set(written) <= set(TEXT.alphabet)


def test_text_and_what_follows_it() -> None:
    given, wanted = TEXT.batch(3, 10, np.random.default_rng(0))
    assert given.shape == wanted.shape == (3, 10)
    assert (given[:, 1:] == wanted[:, :-1]).all()


@pytest.mark.peers
@pytest.mark.parametrize("index", [0, 1], ids=list(MODELS))
def test_torch_learns_the_same(index: int) -> None:
    pytest.importorskip("torch")
    from benchmarks import training as benchmark

    task = benchmark.tasks()[index]
    entered = benchmark.contestants(task, "float64", ["symgrad eager", "torch eager"])
    for batch in itertools.islice(task.batches(0), 5):
        for one in entered.values():
            one.step(batch)
    ours, theirs = (entered[name].losses for name in ("symgrad eager", "torch eager"))
    assert all(math.isfinite(loss) for loss in ours)
    assert ours == pytest.approx(theirs, rel=1e-10)
