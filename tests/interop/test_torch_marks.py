"""What a Function sets on tensors, and reads again: torch says which histories of calls fail.

In: the bodies of forward and backward of the square.  A program that fails in some history is not
PROVED, and the report names a line of it; one that is harmless is.
"""

from __future__ import annotations

import importlib.util
import textwrap
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers

WRONG = {
    "hasattr in backward": ("", "k = 3 if hasattr(x, 'seen') else 2; x.seen = True"),
    "getattr in forward": ("ctx.k = 3 if getattr(x, 'seen', 0) else 2; x.seen = 1", "k = ctx.k"),
    "setattr": ("ctx.k = 3 if hasattr(x, 'seen') else 2; setattr(x, 'seen', 1)", "k = ctx.k"),
    "the dictionary": (
        "ctx.k = 3 if 'seen' in x.__dict__ else 2; x.__dict__['seen'] = 1",
        "k = ctx.k",
    ),
    "into the dictionary": (
        "ctx.k = 3 if hasattr(x, 'seen') else 2; x.__dict__.update(seen=1)",
        "k = ctx.k",
    ),
    "object.__setattr__": (
        "ctx.k = 3 if hasattr(x, 'seen') else 2; object.__setattr__(x, 'seen', 1)",
        "k = ctx.k",
    ),
    "a counter on the cotangent": (
        "",
        "g.n = getattr(g, 'n', 0) + 1; k = 2 if g.n == 1 else 3",
    ),
    "the class of a tensor": (
        "",
        "n = getattr(type(g), 'marks', 0); type(g).marks = n + 1; k = 2 if n < 2 else 3",
    ),
    "the class of ctx": (
        "",
        "n = getattr(ctx, 'calls', 0); type(ctx).calls = n + 1; k = 2 if n < 2 else 3",
    ),
    "grad": ("ctx.x = x", "k = 2 if x.grad is None else 3; ctx.x.grad = torch.ones_like(x)"),
    "an input keeps its size": ("x.w = ctx.w = x.shape[0]", "k = 2 * x.w / ctx.w"),
    "a trial": (
        "",
        """
        try:
            k = x.factor
        except AttributeError:
            k = x.factor = 2
        x.factor = 3
        """,
    ),
    "an output": (
        "ctx.k = 3 if hasattr(x, 'mine') else 2; y = x * x; y.mine = True; return y",
        "k = ctx.k",
    ),
}

HARMLESS = {
    "never read": ("x.tag = 'in'", "k = 2; g.tag = 'out'"),
    "of the call": ("t = x * 2; t.tag = 2; ctx.k = t.tag", "k = ctx.k"),
    "kept on ctx": ("ctx.t = x * 2; ctx.t.tag = 2", "k = ctx.t.tag"),
    "in backward": ("", "t = x.clone(); t.w = 2; k = t.w"),
    "on ctx": ("ctx.tag = 2; ctx.__dict__.update(m=1)", "k = ctx.__dict__['tag'] * ctx.m"),
    "nothing on ctx": ("", "k = 2 if ctx.__dict__ == {} else 3"),
    "leaves of its own": (
        "",
        """
        with torch.enable_grad():
            z = x.detach().requires_grad_()
            (z * z).sum().backward()
        return g * z.grad
        """,
    ),
}

CHANGED = (
    "x.requires_grad_(False)", "x.requires_grad = False", "x.detach_()", "x.grad = None",
    "x._backward_hooks = {}", "x.register_hook(lambda t: 3 * t)", "x.retain_grad()",
    "g.register_hook(lambda t: 3 * t)", "g.detach_()",
)  # fmt: skip

_numbers = count()


def _program(forward: str, backward: str, folder: Path) -> Any:
    def body(text: str, end: str) -> str:
        lines = textwrap.dedent(text).strip().replace("; ", "\n").splitlines()
        return textwrap.indent("\n".join([*lines, end]), " " * 8)

    text = (
        "import torch\n\n\nclass Marked(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n"
        f"{body(forward, 'return x * x')}\n\n"
        "    @staticmethod\n    def backward(ctx, g):\n        (x,) = ctx.saved_tensors\n"
        f"{body(backward, 'return k * g * x')}\n"
    )
    path = folder / f"marked_{next(_numbers)}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Marked


def _histories() -> Iterator[Callable[[Any], tuple[Any, Any]]]:
    """Orders of calls.  Each gives a gradient, and the true one."""

    def leaf(size: int = 3) -> Any:
        return torch.arange(1.0, size + 1).requires_grad_()

    def after(calls: int) -> Callable[[Any], tuple[Any, Any]]:
        def run(function: Any) -> tuple[Any, Any]:
            x, g = leaf(), torch.ones(3)
            for _ in range(calls):
                torch.autograd.grad(function.apply(x), x, g)
            return torch.autograd.grad(function.apply(x), x, g)[0], 2 * g * x

        return run

    def twice(function: Any) -> tuple[Any, Any]:
        x, g = leaf(), torch.ones(3)
        y = function.apply(x)
        torch.autograd.grad(y, x, g, retain_graph=True)
        return torch.autograd.grad(y, x, g)[0], 2 * g * x

    def of_itself(function: Any) -> tuple[Any, Any]:
        x, g = leaf(), torch.ones(3)
        return torch.autograd.grad(function.apply(function.apply(x)), x, g)[0], 4 * g * x**3

    def resized(function: Any) -> tuple[Any, Any]:
        x, g = leaf(), torch.ones(3)
        y = function.apply(x)
        x.data = torch.arange(1.0, 6)
        function.apply(x)
        x.data = torch.arange(1.0, 4)
        return torch.autograd.grad(y, x, g)[0], 2 * g * x

    yield from (after(0), after(1), after(2), after(5), twice, of_itself, resized)


def _fails(function: Any) -> bool:
    for history in _histories():
        found, true = history(function)
        if not torch.allclose(found, true):
            return True
    return False


def _verdict(forward: str, backward: str, folder: Path) -> Any:
    """Of a class of its own: torch's runs have left their marks on the other one."""
    return sg.verify(_program(forward, backward, folder), "n", suggest=False)


@pytest.fixture(autouse=True)
def _clean_tensor() -> Iterator[None]:
    yield
    for name in ("marks",):
        if name in vars(torch.Tensor):
            delattr(torch.Tensor, name)


@pytest.mark.parametrize("name", WRONG)
def test_what_a_later_call_reads_is_not_proved(name: str, tmp_path: Path) -> None:
    assert _fails(_program(*WRONG[name], tmp_path)), "a label that torch does not confirm"
    if "marks" in vars(torch.Tensor):
        del torch.Tensor.marks
    report = _verdict(*WRONG[name], tmp_path)
    assert str(report.verdict) != "PROVED", str(report)
    assert "marked_" in str(report)


@pytest.mark.parametrize("name", HARMLESS)
def test_what_no_later_call_reads_is_proved(name: str, tmp_path: Path) -> None:
    assert not _fails(_program(*HARMLESS[name], tmp_path))
    report = _verdict(*HARMLESS[name], tmp_path)
    assert str(report.verdict) == "PROVED", str(report)


@pytest.mark.parametrize("line", CHANGED)
def test_tensors_of_others_are_not_changed_unsaid(line: str, tmp_path: Path) -> None:
    report = _verdict("", f"{line}; k = 2", tmp_path)
    assert str(report.verdict) == "UNDECIDED", str(report)
    assert "marked_" in str(report)
