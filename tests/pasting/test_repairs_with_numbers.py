"""Repairs and written tests of Functions that take plain numbers: they run with numbers.

Each program is drawn from a right backward by one slip.  Where a repair is printed, the class is
loaded with it and its gradient is compared with difference quotients for several numbers, in
symgrad for a Function of its own and in torch for a ``torch.autograd.Function``.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import symgrad as sg
from symgrad.tools.cli import main

from .test_repairs import applied


@dataclass(frozen=True)
class Written:
    """``forward`` of x, p, n and flag; ``right``: what backward computes, in the same names."""

    forward: str
    right: str
    slips: tuple[tuple[str, str], ...]


WRITTEN = (
    Written("x * x * p", "2 * g * x * p", ((" * p", ""), ("* p", "/ p"), ("2 * ", ""))),
    Written("M.exp(x * n)", "g * n * M.exp(x * n)", (("g * n", "g"), ("exp(x * n)", "exp(x)"))),
    Written("x / p + x", "g / p + g", (("g / p + ", ""), ("/ p", "* p"), ("+ g", "- g"))),
    Written("M.sin(x * p) * n", "g * M.cos(x * p) * p * n", ((" * n", ""), (" * p *", " *"))),
    Written("(x * p).sum(1)", "(g * p).unsqueeze(1).expand_as(x)", (("(g * p)", "g"),)),
    Written("M.where(x > p, x, p * x)", "M.where(x > p, g, p * g)", (("p * g", "g"),)),
    Written("x * p if flag else x / p", "g * p if flag else g / p", (("* p", "/ p"), (" * p", ""))),
    Written("(x - p) ** 2 * n", "2 * g * (x - p) * n", ((" * n", ""), ("2 * ", ""), ("- p", ""))),
    Written("M.tanh(p * x) / (1 + n)", "g * p * (1 - M.tanh(p * x) ** 2) / (1 + n)",
            ((" / (1 + n)", ""), ("* p", ""))),
    Written("x @ (p * x.mT)", "p * (g + g.mT) @ x", (("p * ", ""), (" + g.mT", ""))),
)  # fmt: skip
PARAMETERS = (
    "p: float, n: int = 2, flag: bool = True",
    "p=1.5, n=3, flag=True",
    "p, n=2, flag=True",
)
TEXT = """import symgrad as sg
{imports}

class Op({base}):
    @staticmethod
    def forward(ctx, x, {parameters}):
        ctx.save_for_backward(x)
{keeps}        return {forward}

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
{takes}        return {backward}, None, None, None
"""


def programs(module: str) -> Iterator[str]:
    """The text of each class; what of the numbers backward has is kept on ctx in forward."""
    for number, (written, parameters) in enumerate(itertools.product(WRITTEN, PARAMETERS)):
        for turn, (old, new) in enumerate(written.slips):
            wrong = written.right.replace(old, new, 1)
            if wrong == written.right or (number + turn) % 3:
                continue
            words = re.findall(r"\w+", wrong)
            reads = [name for name in ("p", "n", "flag") if turn % 2 or name in words]
            keeps = "".join(f"        ctx.{name} = {name}\n" for name in reads)
            takes = "".join(f"        {name} = ctx.{name}\n" for name in reads)
            base = "sg.Function" if module == "sg" else "torch.autograd.Function"
            yield TEXT.format(
                imports="" if module == "sg" else "import torch\n", base=base, keeps=keeps,
                takes=takes, parameters=parameters, forward=written.forward, backward=wrong,
            ).replace("M.", f"{module}.")  # fmt: skip


def loaded(folder: Path, text: str) -> Any:
    """The class of a file with this text."""
    path = folder / f"numbers_{abs(hash(text))}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module.Op


def repaired(folder: Path, module: str, part: int, parts: int) -> Iterator[tuple[Any, str, Any]]:
    """The repaired class of each program that has a repair, with its diff and the report."""
    texts = list(programs(module))[part::parts]
    found = 0
    for text in texts:
        report = sg.verify(
            loaded(folder, text), "a b", static={"p": 1.5} if "p, n=" in text else None
        )
        assert report.verdict is not sg.PROVED, text
        own = report.inputs["x"]
        alone = any(one.kind == "alone" for one in own.suggested_under)  # not for all n, or flags
        if own.suggestion is not None and (report.diff or not alone):
            assert report.diff, f"{text}\n{report}"
            yield loaded(folder, applied(text, report.diff)), f"{report.diff}\n{report}", report
            found += 1
    assert found >= 0.7 * len(texts), f"{found} repairs of {len(texts)}"


def values(report: Any) -> Iterator[tuple[float, int, bool]]:
    """Numbers that a repair is said to be right for."""
    under = [one.text for one in report.inputs["x"].suggested_under if one.kind == "value"]
    fixed = {word[0]: json.loads(word[1].lower()) for one in under if (word := one.split(" = "))}
    for p, n, flag in ((1.5, 3, True), (0.75, 2, True), (2.25, 2, False)):
        yield fixed.get("p", p), fixed.get("n", n), fixed.get("flag", flag)


X = np.array([[0.5, -1.25, 2.0], [0.875, 1.75, -0.625]])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_repairs_of_own_functions_are_right_for_numbers(part: int, tmp_path: Path) -> None:
    for op, said, report in repaired(tmp_path, "sg", part, 3):
        for p, n, flag in values(report):
            x = sg.tensor(X, requires_grad=True)
            assert sg.autograd.gradcheck(lambda x: op.apply(x, p, n, flag), (x,)), said  # noqa: B023


@pytest.mark.peers
@pytest.mark.parametrize("part", range(3))
def test_repairs_of_torch_classes_are_right_for_numbers(part: int, tmp_path: Path) -> None:
    import torch

    for op, said, report in repaired(tmp_path, "torch", part, 3):
        assert "sg." not in said, said
        for p, n, flag in values(report):
            x = torch.tensor(X, requires_grad=True)
            assert torch.autograd.gradcheck(lambda x: op.apply(x, p, n, flag), (x,)), said  # noqa: B023


@pytest.mark.slow
@pytest.mark.parametrize("module", ["sg", pytest.param("torch", marks=pytest.mark.peers)])
def test_written_tests_fail_until_the_class_is_repaired(module: str, tmp_path: Path) -> None:
    for number, text in enumerate(list(programs(module))[::4]):
        file, test = tmp_path / f"ops_{number}.py", tmp_path / f"test_{number}.py"
        file.write_text(text, encoding="utf-8")
        static = {"p": 1.5} if "p, n=" in text else None
        given = ["--shapes", "a b", "--quiet", *(["--static", "p=1.5"] if static else [])]
        CliRunner().invoke(main, ["verify", str(file), *given, "--write-test", str(test)])
        written = test.read_text(encoding="utf-8")
        assert f'load("{file.name}").Op' in written, f"{text}\n{written}"
        assert ("torch.tensor" in written) == (module == "torch"), written
        assert outcome(test) == "backward gives", written
        report = sg.verify(loaded(tmp_path, text), "a b", static=static)
        if not report.diff:  # a repair for the defaults alone
            continue
        file.write_text(applied(text, report.diff), encoding="utf-8")
        os.utime(file, (0, 0))  # no bytecode of a text of this length, of the same second, is its
        assert outcome(test) == "passed", f"{report.diff}\n{written}"


def outcome(test: Path) -> str:
    """How the tests of a file end: ``passed``, or the first words of what is asserted."""
    scope: dict[str, Any] = {"__file__": str(test), "__name__": test.stem}
    exec(compile(test.read_text(encoding="utf-8"), str(test), "exec"), scope)
    try:
        for name in [name for name in scope if name.startswith("test_")]:
            scope[name]()
    except AssertionError as error:
        return " ".join(str(error).split()[:2])
    return "passed"


HINTS = """import torch


class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        {forward}

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        {backward}
"""


@pytest.mark.peers
@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        ("return torch.exp(x)", "return g if x > 0 else -g"),
        ("return torch.exp(x)", "return g[x > 0].sum() * x[1] if x[0] else g"),
        ("return torch.nn.functional.softplus(x)", "return g * torch.nn.functional.silu(x)"),
        ("return x.double() + x.to(torch.float32)", "x += g.double(); return g"),
        ("return torch.nn.functional.logsigmoid(x).sum()", "return None"),
    ],
)  # fmt: skip
def test_messages_on_torch_classes_use_its_words(
    forward: str, backward: str, tmp_path: Path
) -> None:
    text = HINTS.format(forward=forward, backward=backward)
    op, said = loaded(tmp_path, text), ""
    try:
        report = sg.verify(op, "n m")
        said = f"{report}\n{report.diff}"
    except sg.SymgradError as error:
        said = error.shown()
    assert said
    assert not re.search(r"\bsg\.", said), said
