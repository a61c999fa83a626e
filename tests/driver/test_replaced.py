"""References in the place of what cannot be traced."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import symgrad as sg
from symgrad.errors import SpecError
from symgrad.tools.cli import main


def _refused(*args: Any) -> Any:
    raise RuntimeError("there is no GPU")


class Launcher:
    """Launched on a grid; writes into its last argument."""

    def __getitem__(self, grid: Any) -> Any:
        return _refused


KERNEL, LAUNCHED = _refused, Launcher()
CALLS: list[Any] = []


def swish(x: Any) -> Any:
    return x * sg.sigmoid(x)


def swish_into(x: Any, y: Any) -> None:
    y.copy_(swish(x))


def doubled(x: Any) -> Any:
    return 2 * x


def keeping(x: Any) -> Any:
    CALLS.append(1)
    return swish(x) * (1 if len(CALLS) < 9 else 2)


class Swish(sg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return KERNEL(x)

    @staticmethod
    def backward(ctx: Any, grad_y: Any) -> Any:
        (x,) = ctx.saved_tensors
        s = sg.sigmoid(x)
        return grad_y * (s + x * s * (1 - s))


class Launching(Swish):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        y = sg.empty_like(x)
        LAUNCHED[(4,)](x, y)
        return y


def test_a_reference_is_called_and_printed() -> None:
    report = sg.verify(Swish, "n m", replace={"KERNEL": swish})
    assert report.verdict is sg.PROVED
    (condition,) = report.inputs["x"].conditions
    assert condition.text.startswith("KERNEL computes what swish does (")
    assert KERNEL is _refused
    assert sg.verify(Swish, "n m", replace={"KERNEL": doubled}).verdict is sg.REFUTED


def test_a_kernel_is_launched_on_a_grid() -> None:
    report = sg.verify(Launching, "n m", replace={"LAUNCHED": "swish_into"})
    assert report.verdict is sg.PROVED
    assert "LAUNCHED computes what swish_into does" in str(report)
    assert type(LAUNCHED) is Launcher


def test_names_with_modules_are_replaced_wherever_they_are_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module: Any = types.ModuleType("kernels_of_a_test")
    module.fused = _refused
    monkeypatch.setitem(sys.modules, module.__name__, module)
    report = sg.verify(Swish, "n", replace={f"{module.__name__}.fused": f"{__name__}.swish"})
    assert report.verdict is sg.PROVED
    assert module.fused is _refused


def test_what_a_reference_keeps_is_looked_at() -> None:
    assert sg.verify(Swish, "n", replace={"KERNEL": keeping}).verdict is sg.UNDECIDED


@pytest.mark.parametrize(
    ("name", "reference"),
    [("NOTHING", "swish"), ("KERNEL", "nothing"), ("no_module.kernel", "swish"), ("KERNEL", 3)],
)
def test_names_of_nothing_are_errors(name: str, reference: Any) -> None:
    with pytest.raises(SpecError, match="there is no"):
        sg.verify(Swish, "n", replace={name: reference})


SOURCE = """
import symgrad as sg


def kernel(x):
    raise RuntimeError("there is no GPU")


def reference(x):
    return x * x


class Square(sg.Function):
    @staticmethod
    def forward(ctx, x: "f32[n]"):
        ctx.save_for_backward(x)
        return kernel(x)

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return grad_y * x FACTOR
"""


def _written(folder: Path, name: str, factor: str) -> Path:
    path = folder / f"{name}.py"
    path.write_text(SOURCE.replace("FACTOR", factor))
    return path


def test_the_command_line_and_files_name_references(tmp_path: Path) -> None:
    path = _written(tmp_path, "squares_of_a_test", "* 2")
    options = ["verify", str(path), "--json", "--no-cache"]
    said = CliRunner().invoke(main, [*options, "--replace", "kernel=reference"])
    assert said.exit_code == 0, said.output
    (found,) = json.loads(said.stdout)
    assert found["inputs"]["x"]["conditions"][0]["text"].startswith("kernel computes what")
    assert CliRunner().invoke(main, options).exit_code == 1
    table = '[functions."Square"]\nreplace = { kernel = "reference" }\n'
    (tmp_path / "symgrad.toml").write_text(table)
    assert CliRunner().invoke(main, options).exit_code == 0
    (tmp_path / "symgrad.toml").write_text(table.replace("reference", "referenz"))
    said = CliRunner().invoke(main, options)
    assert "symgrad.toml:2" in said.output + said.stderr or "symgrad.toml:1" in said.output


def test_a_repair_is_proved_with_the_reference(tmp_path: Path) -> None:
    path = _written(tmp_path, "wrong_squares_of_a_test", "")
    options = ["verify", str(path), "--suggest", "--replace", "kernel=reference"]
    said = CliRunner().invoke(main, options)
    assert "+        return" in said.output
