"""Memory that nobody wrote: what is written entirely is fine; what is read before is no proof."""

from __future__ import annotations

import importlib.util
import itertools
import re
from pathlib import Path
from typing import Any

import pytest

import symgrad as sg

WRITTEN = (
    "y = M.empty_like(x); y.copy_(2 * x); return y",
    "y = M.empty_like(x); y[...] = 2 * x; return y",
    "y = x.new_empty(x.shape); y.fill_(0); y += 2 * x; return y",
    "y = M.empty(x.shape[0], x.shape[1]); y.zero_(); return y + 2 * x",
    "y = M.empty_like(x); h = x.shape[1] // 2; y[:, :h] = 2 * x[:, :h]; y[:, h:] = 2 * x[:, h:];"
    " return y",
    "y = M.empty_like(x); m = x > 0; y[m] = 2 * x[m]; y[~m] = 2 * x[~m]; return y",
    "y = M.empty_like(x); y.masked_fill_(x > 0, 0); y.masked_fill_(x <= 0, 0); return y + 2 * x",
    "y = M.empty(3, *x.shape)\n        for i in range(3):\n            y[i] = 2 * x / 3\n"
    "        return y.sum(0)",
    "y = M.empty_like(x); return M.zeros_like(y) + 2 * x",
    "y = M.empty_like(x); y[0] = 2 * x[0]; y[1:] = 2 * x[1:]; return y",
    "y = M.empty_like(x).view(-1); y[:] = 2 * x.reshape(-1); return y.view(x.shape)",
    "y = M.empty_like(x); y[:, 1:] = x[:, 1:]; y[:, :1] = x[:, :1]; y[:, 1:] += x[:, 1:];"
    " y[:, :1] *= 2; return y",
)
READ = (
    "y = M.empty_like(x); return y + 2 * x",
    "y = M.empty_like(x); return 0 * y + 2 * x",
    "y = M.empty_like(x); y -= y; return y + 2 * x",
    "y = M.empty_like(x); y += 2 * x; return y",
    "y = x.new_empty(x.shape); y[:, 1:] = 0; return y + 2 * x",
    "y = M.empty_like(x); y[x > 0] = 0; y[x < 0] = 0; return y + 2 * x",
    "y = M.empty_like(x); y[:, ::3] = 0; y[:, 1::3] = 0; return 2 * x + y - y",
    "y = M.empty(3, *x.shape)\n        for i in range(2):\n            y[i] = 0\n"
    "        return y.sum(0) + 2 * x",
    "y = M.empty_like(x); y[:, :1] = 0; return 2 * x + y[:, :1] * y[:, -1:]",
    "y = M.empty_like(x); return M.where(y > 0, 2 * x, x + x)",
)
TEXT = """import symgrad as sg
{imports}

class Op({base}):
    @staticmethod
    def forward(ctx, x):
        {forward}

    @staticmethod
    def backward(ctx, g):
        {backward}
"""


def loaded(folder: Path, module: str, body: str, method: str) -> Any:
    """The class whose forward or backward is this body, and the other one right."""
    other = re.sub(r"\bx\b", "g", body)
    text = TEXT.format(
        imports="" if module == "sg" else "import torch\n",
        base="sg.Function" if module == "sg" else "torch.autograd.Function",
        forward=body if method == "forward" else "return 2 * x",
        backward=other if method == "backward" else "return 2 * g",
    ).replace("M.", f"{module}.")
    path = folder / f"unwritten_{abs(hash(text))}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found.Op


MODULES = ("sg", pytest.param("torch", marks=pytest.mark.peers))


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("method", ["forward", "backward"])
def test_what_is_written_entirely_is_proved(module: str, method: str, tmp_path: Path) -> None:
    for body in WRITTEN:
        report = sg.verify(loaded(tmp_path, module, body, method), "n m")
        assert report.verdict is sg.PROVED, f"{body}\n{report}"


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("method", ["forward", "backward"])
def test_what_nobody_wrote_is_no_proof(module: str, method: str, tmp_path: Path) -> None:
    line = 7 if method == "forward" else 11
    for body in READ:
        report = sg.verify(loaded(tmp_path, module, body, method), "n m")
        assert report.verdict is sg.UNDECIDED, f"{body}\n{report}"
        assert re.search(r"elements of (new_)?empty(_like)?\(\) that nobody wrote", str(report))
        shown = " ".join(one.reason for one in report.inputs.values())
        assert f".py:{line + (module == 'torch')}" in shown, shown


@pytest.mark.parametrize(("step", "left"), list(itertools.product((2, 3, 4), (0, 1))))
def test_elements_between_others(step: int, left: int, tmp_path: Path) -> None:
    """``y[:, i::step]`` for each remainder, or for all but one."""
    writes = "".join(f"y[:, {i}::{step}] = 0; " for i in range(step - left))
    body = f"y = M.empty_like(x); {writes}return y + 2 * x"
    report = sg.verify(loaded(tmp_path, "sg", body, "forward"), "n m")
    assert (report.verdict is sg.PROVED) == (not left), f"{body}\n{report}"
