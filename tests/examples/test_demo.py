"""The demo does what it promises, with a C compiler and without."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import ops
import pytest

import symgrad as sg
from tests.house import tree

FUNCTIONS = [
    function
    for function in vars(ops).values()
    if isinstance(function, type) and issubclass(function, sg.Function)
]
# What scikit-learn's MLPClassifier reaches on the same split (benchmarks/digits_accuracy.py),
# less two images of 360 for the luck of the start.
SKLEARN = 0.972 - 2 / 360


def demo(tmp_path: Path, *options: str, **variables: str) -> str:
    program = tree.ROOT / "examples" / "train_digits.py"
    folder = f"--folder={tmp_path / 'digits_kernels'}"
    done = tree.run(sys.executable, program, folder, *options, cwd=tmp_path, **variables)
    assert done.returncode == 0, done.stdout
    return done.stdout


def accuracy(printed: str) -> float:
    (share,) = re.findall(r"held-out accuracy ([\d.]+)%", printed)
    return float(share) / 100


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_every_backward_is_proved(function: type[sg.Function]) -> None:
    report = sg.verify(function)
    assert report.verdict == sg.PROVED, str(report)


@pytest.mark.slow
def test_kernels_reach_the_accuracy_of_scikit_learn(tmp_path: Path) -> None:
    printed = demo(tmp_path)
    assert accuracy(printed) >= SKLEARN
    sources = [Path(path) for path in re.findall(r"^\w+: (/.*\.c)$", printed, re.MULTILINE)]
    assert {path.stem for path in sources} >= {"linear", "tanh", "softmax_cross_entropy"}
    for path in sources:
        assert "restrict" in path.read_text(encoding="utf-8")
    assert "PROVED" in printed
    assert "notice" not in printed


@pytest.mark.slow
def test_without_a_compiler_it_says_so_and_still_learns(tmp_path: Path) -> None:
    printed = demo(
        tmp_path,
        "--epochs=8",
        CC="/nowhere/cc",
        SYMGRAD_CACHE_DIR=str(tmp_path / "cache"),
    )
    assert "no kernels, NumPy instead" in printed
    assert accuracy(printed) > 0.9
