"""``prefer``: a derived backward in the place of a hand-written one that is proved equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import symgrad as sg
from symgrad.errors import NotProvedError, SpecError
from symgrad.stages import PREFERENCES
from symgrad.tools.cli import main

KEEPS_TOO_MUCH = """
import symgrad as sg


class Share(sg.Function):
    @staticmethod
    def forward(ctx, x):
        e = sg.exp(x)
        s = e.sum(-1, keepdim=True) + 1
        ctx.save_for_backward(e, s)
        return e / s

    @staticmethod
    def backward(ctx, grad):
        e, s = ctx.saved_tensors
        return e * (grad / s - (grad * e).sum(-1, keepdim=True) / s / s)
"""
INSTEAD = "The kernels compute the derivative in its place."


class Share(sg.Function):
    """Saves two arrays, where the derivative reads the output alone."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        e = sg.exp(x)
        s = e.sum(-1, keepdim=True) + 1
        ctx.save_for_backward(e, s)
        return e / s

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        e, s = ctx.saved_tensors
        return e * (grad / s - (grad * e).sum(-1, keepdim=True) / s / s)


class Tanh(sg.Function):
    """As cheap as can be."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = sg.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (y,) = ctx.saved_tensors
        return grad * (1 - y * y)


class Halved(sg.Function):
    """Wrong."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * x


class Quadratic(sg.Function):
    """Right for symmetric matrices alone, and dearer than it has to be."""

    @staticmethod
    def forward(ctx: Any, x: Any, a: Any) -> Any:
        ctx.save_for_backward(x, a)
        return (x @ a) @ x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, a = ctx.saved_tensors
        return grad * (4 * (x @ a) - 2 * (a @ x)), None


class Kinked(sg.Function):
    """At 0 it has a value of its own."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = sg.relu(x)
        ctx.save_for_backward(x, y, x * 2)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, _, _ = ctx.saved_tensors
        return grad * (x >= 0).to(x.dtype)


def _text(op: Any) -> str:
    """The C in one line: comments are wrapped."""
    texts = (Path(path).read_text() for path in op.c_paths)
    return " ".join("".join(texts).replace("*", " ").split())


@pytest.mark.parametrize("prefer", PREFERENCES)
def test_all_have_the_same_values(prefer: str) -> None:
    op = sg.compile(Share, "f64[n m]", prefer=prefer)
    assert (INSTEAD in _text(op)) == (prefer != "hand")
    x, grad = np.random.default_rng(0).standard_normal((2, 5, 7))
    y, residuals = op.forward(x)
    e = np.exp(x)
    share = e / (e.sum(-1, keepdims=True) + 1)
    np.testing.assert_allclose(y, share)
    wanted = share * (grad - (grad * share).sum(-1, keepdims=True))
    (found,) = op.backward(residuals, grad)
    assert found is not None
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_auto_keeps_what_is_as_cheap() -> None:
    assert INSTEAD not in _text(sg.compile(Tanh, "f32[n]", prefer="auto"))


def test_what_is_not_proved_is_not_replaced() -> None:
    with pytest.raises(NotProvedError, match="REFUTED") as caught:
        sg.compile(Halved, "f32[n]", prefer="derived", allow=("REFUTED",))
    assert "allow" not in str(caught.value.hint)
    op = sg.compile(Halved, "f32[n]", prefer="auto", allow=("REFUTED",))
    _, residuals = op.forward(np.full(1, 3.0, np.float32))
    (found,) = op.backward(residuals, np.ones(1, np.float32))
    np.testing.assert_array_equal(found, [3.0])


def test_auto_replaces_nothing_under_a_condition_that_is_not_declared() -> None:
    op = sg.compile(Kinked, "f64[n]", prefer="auto")
    assert INSTEAD not in _text(op)
    _, residuals = op.forward(np.zeros(1))
    (found,) = op.backward(residuals, np.ones(1))
    np.testing.assert_array_equal(found, [1.0])


def test_what_is_declared_is_taken_as_it_is() -> None:
    assume = {"a": "symmetric, constant"}
    op = sg.compile(Quadratic, "f64[n]", "f64[n n]", assume=assume, prefer="auto")
    assert INSTEAD in _text(op)
    a = np.array([[2.0, 1.0], [1.0, 3.0]])
    x = np.array([0.5, -1.0])
    _, residuals = op.forward(x, a)
    found, *_ = op.backward(residuals, np.ones(()))
    assert found is not None
    np.testing.assert_allclose(found, 2 * a @ x)


def test_other_words_are_refused() -> None:
    with pytest.raises(SpecError, match="prefer='best'") as caught:
        sg.compile(Tanh, "f32[n]", prefer="best")
    assert "'hand', 'derived', 'auto'" in str(caught.value.hint)


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def test_a_package_says_so_and_is_proved_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ops.py").write_text(KEEPS_TOO_MUCH)
    asked = ("build", "ops.py", "-o", "kernels", "--shapes", "n m", "--no-compile")
    done = _run(*asked, "--prefer", "auto")
    assert done.exit_code == 0, done.output
    said = json.loads(Path("kernels/MANIFEST.json").read_text())["ops"]["share"]
    assert said["prefer"] == "derived"
    assert said["proof"]["derived"] is False
    assert INSTEAD in Path("kernels/share.c").read_text()
    found = _run("verify", "--certificate", "kernels", "--json")
    assert json.loads(found.stdout)["holds"], found.stdout
    assert _run(*asked, "--prefer", "derived", "--check").exit_code == 0
    assert _run(*asked, "--check").exit_code == 1
    Path("ops.py").write_text(KEEPS_TOO_MUCH.replace("/ s / s", "/ s"))
    assert not json.loads(_run("verify", "--certificate", "kernels", "--json").stdout)["holds"]
